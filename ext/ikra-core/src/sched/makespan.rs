//! How long kernels take side by side.
//!
//! Here: [`Curve`], what a kernel took with how many warps, and the time of a batch that follows. The paper counts
//! threads, which are not time. Not here: who measures.

/// Jobs a second, by the warps of the kernel on each multiprocessor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// In the order of warps.
    points: Vec<(u32, f64)>,
}

/// One kernel of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// Seconds with its share of the machine.
    pub alone: f64,
    /// Seconds of a machine that does nothing else, as busy as the kernel can make it.
    pub whole: f64,
}

/// The most points of a curve. A kernel has few sizes.
const MAX_POINTS: usize = 16;
/// By what factor one slower launch lowers the known speed, at most.
const BELIEVED: f64 = 1.2;
/// A plan has to be faster by this factor.
pub const GAIN: f64 = 1.05;

impl Curve {
    /// Notes a launch of so many jobs.
    pub fn note(&mut self, warps: u32, jobs: u64, seconds: f64) {
        if warps == 0 || jobs == 0 || !(seconds.is_finite() && seconds > 0.0) {
            return;
        }
        let speed = jobs as f64 / seconds;
        match self.points.binary_search_by_key(&warps, |(warps, _)| *warps) {
            // A disturbance only makes a launch slower.
            Ok(at) => self.points[at].1 = speed.max(self.points[at].1 / BELIEVED),
            Err(at) => {
                self.points.insert(at, (warps, speed));
                if self.points.len() > MAX_POINTS {
                    self.points.remove(MAX_POINTS / 2);
                }
            }
        }
    }

    /// Jobs a second with so many warps. Fewer than were measured are slower in proportion. More are as fast.
    fn speed(&self, warps: u32) -> Option<f64> {
        let at = self.points.partition_point(|(known, _)| *known <= warps);
        let below = at.checked_sub(1).map(|at| self.points[at]);
        match (below, self.points.get(at)) {
            (None, None) => None,
            (None, Some((known, speed))) => Some(speed * f64::from(warps.max(1)) / f64::from(*known)),
            (Some((_, speed)), None) => Some(speed),
            (Some((from, slow)), Some((to, fast))) => {
                let part = f64::from(warps - from) / f64::from(to - from);
                Some(slow + (fast - slow) * part)
            }
        }
    }

    /// A launch as a member of a batch. It has `warps` of the `most` that fit on a multiprocessor. None: no launch was
    /// measured.
    pub fn member(&self, jobs: u64, warps: u32, most: u32) -> Option<Member> {
        let alone = jobs as f64 / self.speed(warps)?;
        let part =
            |(warps, speed): &(u32, f64)| jobs as f64 / speed * (f64::from(*warps) / f64::from(most.max(1))).min(1.0);
        let whole = self.points.iter().map(part).fold(f64::INFINITY, f64::min);
        Some(Member { alone, whole: whole.min(alone) })
    }

    /// The form for the file on disk.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.points
            .iter()
            .flat_map(|(warps, speed)| warps.to_le_bytes().into_iter().chain(speed.to_le_bytes()))
            .collect()
    }

    /// None for bytes that [`Curve::to_bytes`] did not make.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (points, []) = bytes.as_chunks::<12>() else { return None };
        let point = |bytes: &[u8; 12]| {
            let (warps, speed) = bytes.split_first_chunk::<4>()?;
            Some((u32::from_le_bytes(*warps), f64::from_le_bytes(speed.try_into().ok()?)))
        };
        let points: Vec<(u32, f64)> = points.iter().map(point).collect::<Option<_>>()?;
        let sane = points.iter().all(|(warps, speed)| *warps > 0 && speed.is_finite() && *speed > 0.0);
        let ordered = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        (sane && ordered && points.len() <= MAX_POINTS).then_some(Self { points })
    }
}

/// Seconds of a batch: as long as its longest kernel, and as long as the work of all.
pub fn batch(members: &[Member]) -> f64 {
    let longest = members.iter().map(|member| member.alone).fold(0.0, f64::max);
    let all: f64 = members.iter().map(|member| member.whole).sum();
    longest.max(all)
}

/// Whether to run kernels side by side, which costs so much, is worth it.
pub fn pays(serial: f64, beside: f64, cost: f64) -> bool {
    serial > (beside + cost) * GAIN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn sixteen_little_kernels_gain_and_two_that_flood_do_not() {
        let mut little = Curve::default();
        little.note(2, 1000, 100e-6);
        let member = little.member(1000, 2, 64).expect("it was measured");
        assert!(close(member.alone, 100e-6) && close(member.whole, 100e-6 / 32.0));
        let beside = batch(&[member; 16]);
        assert!(close(beside, 100e-6) && pays(1600e-6, beside, 50e-6));
        assert!(close(batch(&[member; 64]), 200e-6));

        let mut flood = Curve::default();
        flood.note(64, 1_000_000, 1e-3);
        let member = flood.member(1_000_000, 64, 64).expect("it was measured");
        let beside = batch(&[member; 2]);
        assert!(close(beside, 2e-3) && !pays(2e-3, beside, 0.0));
    }

    #[test]
    fn speeds_between_measurements() {
        let mut curve = Curve::default();
        assert_eq!(curve.member(1, 1, 64), None);
        curve.note(4, 400, 1.0);
        curve.note(8, 600, 1.0);
        let time = |curve: &Curve, warps| curve.member(600, warps, 64).map(|member| member.alone);
        assert_eq!([2, 4, 6, 8, 64].map(|warps| time(&curve, warps)), [3.0, 1.5, 1.2, 1.0, 1.0].map(Some));
        // one slow launch counts little
        curve.note(8, 600, 10.0);
        assert_eq!(time(&curve, 8), Some(1.2));
        curve.note(0, 600, 1.0);
        curve.note(8, 600, f64::NAN);
        assert_eq!(time(&curve, 8), Some(1.2));
        assert_eq!(Curve::from_bytes(&curve.to_bytes()), Some(curve.clone()));
        assert_eq!(Curve::from_bytes(&[0; 12]), None);
        assert_eq!(Curve::from_bytes(&[0; 11]), None);
        (1..40).for_each(|warps| curve.note(warps, 1, 1.0));
        assert!(Curve::from_bytes(&curve.to_bytes()).is_some());
    }
}
