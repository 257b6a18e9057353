//! Predicts on which side, CPU or GPU, a section is faster: the choice of backend `auto`.
//!
//! Here: [`History`], the times of a block's earlier calls on the CPU and on the GPU; [`Ways`], the speed of transfers
//! to and from the GPU. Both give an [`Estimate`] for the next call. Not here: the measurements, and who asks.
//!
//! The time of a block cannot be read off its text, because the data say when loops end. So the first call goes by its
//! size alone, and later ones by what earlier ones took, scaled to their size. A side that was not tried yet is tried
//! once two things hold: the other side has cost as much as a trial, and the trial may pay. That bounds the time that
//! is wasted, as in the ski-rental problem (Karlin et al., *Competitive snoopy caching*, Algorithmica 1988). Tracing,
//! packing and writing back are the same for both sides and do not count.

/// How fast the machine moves data between host and GPU, measured once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ways {
    /// Seconds of a launch that moves next to nothing, up to its end.
    pub launch: f64,
    /// Bytes per second to the device, and to the host.
    pub up: f64,
    pub down: f64,
}

impl Default for Ways {
    /// For a machine that was not measured: values of a common PCIe link.
    fn default() -> Self {
        Self { launch: 60e-6, up: 12e9, down: 6e9 }
    }
}

impl Ways {
    /// The form for the file on disk.
    pub fn to_bytes(self) -> Vec<u8> {
        [self.launch, self.up, self.down].iter().flat_map(|number| number.to_le_bytes()).collect()
    }
    /// None for bytes that [`Ways::to_bytes`] did not make.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, []) = bytes.as_chunks::<8>() else { return None };
        let numbers: Vec<f64> = numbers.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
        let sane = numbers.iter().all(|number| number.is_finite() && *number > 0.0);
        match numbers[..] {
            [launch, up, down] if sane => Some(Self { launch, up, down }),
            _ => None,
        }
    }
}

/// The measurements of one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    pub elements: u64,
    pub ticks: u64,
    /// Seconds of the kernel, and of the transfers to and from the device.
    pub kernel: f64,
    pub moved: f64,
    /// Bytes that the program reads, and that it writes.
    pub up: f64,
    pub down: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Cpu,
    Gpu,
}

/// Seconds that a call is expected to take on each side; None where nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    pub cpu: Option<f64>,
    pub gpu: Option<f64>,
}

/// What earlier calls of one block took.
#[derive(Clone, Copy, Debug, Default)]
pub struct History {
    cpu: Option<Taken>,
    gpu: Option<Taken>,
    /// Seconds of all calls on the CPU.
    spent: f64,
    /// Number of calls on each side.
    calls: [u32; 2],
}

/// A GPU is busy from so many threads on: beyond, time grows with their number.
const BUSY: f64 = 100_000.0;
/// Before anything was measured, `auto` tries a GPU from so many elements and so many runs of a block on.
pub const MIN_GPU_ELEMENTS: u64 = 4_096;
pub const MIN_GPU_RUNS: u64 = 2_000_000;
/// Before a GPU was tried: how many CPU cores a busy GPU equals, at least and at most, and how many one of its threads
/// equals.
const WORTH: [f64; 2] = [50.0, 1_000.0];
const THREAD: f64 = 1.0 / 8.0;
/// Seconds that the first call on a GPU costs, for compiling and making a context. The CPU's are next to nothing.
const TRYING: f64 = 0.25;
/// A side that was not tried is tried if it is expected to take at most this share of the other's time.
const GAIN: f64 = 0.8;
/// By what factor one slower call raises the known time for calls of its size, at most. It is too small to change
/// sides.
const BELIEVED: f64 = 1.2;
/// Calls on a side before it is given up, unless they take [`FAR`] times as long as on the other side. The first calls
/// prepare what later ones reuse, such as memory.
const TRIALS: u32 = 4;
const FAR: f64 = 4.0;

impl History {
    /// Records a call. The first one on a GPU loads code, so its times say nothing about later ones.
    pub fn note(&mut self, side: Side, taken: Taken) {
        self.calls[side as usize] = self.calls[side as usize].saturating_add(1);
        if side == Side::Gpu && self.calls(side) == 1 {
            return;
        }
        let known = match side {
            Side::Cpu => {
                self.spent += taken.kernel;
                &mut self.cpu
            }
            Side::Gpu => &mut self.gpu,
        };
        // Of calls of one size the fastest counts, because a disturbance only makes a call slower. If all calls become
        // slower, the known time follows in steps.
        match known {
            Some(known) if (known.elements, known.ticks) == (taken.elements, taken.ticks) => {
                known.kernel = taken.kernel.min(known.kernel * BELIEVED);
                known.moved = taken.moved.min(known.moved * BELIEVED);
            }
            _ => *known = Some(taken),
        }
    }

    /// The expected time of a call of this size. `cores`: of the CPU.
    pub fn estimate(&self, elements: u64, ticks: u64, cores: usize, ways: &Ways) -> Estimate {
        let runs = (elements * ticks) as f64;
        let of = |taken: &Taken| (taken.elements * taken.ticks).max(1) as f64;
        let share = |taken: &Taken| elements as f64 / taken.elements.max(1) as f64;
        let cores = cores as f64;
        let cpu = self.cpu.map(|taken| taken.kernel * runs / of(&taken));
        let gpu = self.gpu.map(|taken| {
            let busy = |elements: u64| (elements as f64 / BUSY).max(1.0);
            let grown = ticks as f64 / taken.ticks.max(1) as f64 * busy(elements) / busy(taken.elements);
            // each time includes a launch; only the rest grows
            ways.launch + (taken.kernel * grown) + (taken.moved - ways.launch).max(0.0) * share(&taken)
        });
        // a side that was not tried: the best that can be expected
        let gpu_at_best = |taken: Taken| {
            let run = taken.kernel * cores / of(&taken);
            let kernel = (runs * run / WORTH[1]).max(ticks as f64 * run / THREAD);
            ways.launch + kernel + (taken.up / ways.up + taken.down / ways.down) * share(&taken)
        };
        let cpu_at_best = |taken: Taken| taken.kernel * runs / of(&taken) * WORTH[0] / cores;
        Estimate { cpu: cpu.or(self.gpu.map(cpu_at_best)), gpu: gpu.or(self.cpu.map(gpu_at_best)) }
    }

    /// The side on which a call of this size runs, where both are available.
    pub fn choose(&self, elements: u64, ticks: u64, cores: usize, ways: &Ways) -> Side {
        let Estimate { cpu: Some(cpu), gpu: Some(gpu) } = self.estimate(elements, ticks, cores, ways) else {
            return if elements >= MIN_GPU_ELEMENTS && elements * ticks >= MIN_GPU_RUNS {
                Side::Gpu
            } else {
                Side::Cpu
            };
        };
        match (self.cpu, self.gpu) {
            (_, None) if self.spent < TRYING || gpu > cpu * GAIN => Side::Cpu,
            (_, None) => Side::Gpu,
            (None, _) if cpu > gpu * GAIN => Side::Gpu,
            (None, _) => Side::Cpu,
            _ if self.calls(Side::Gpu) < TRIALS && gpu < cpu * FAR => Side::Gpu,
            _ if self.calls(Side::Cpu) < TRIALS && cpu < gpu * FAR => Side::Cpu,
            _ if gpu < cpu => Side::Gpu,
            _ => Side::Cpu,
        }
    }

    /// The reason for a choice that does not follow from the expected times alone, in words; None: there is no such
    /// reason.
    pub fn reservation(&self, expected: Estimate) -> Option<String> {
        let Estimate { cpu: Some(cpu), gpu: Some(gpu) } = expected else { return None };
        let ms = |seconds: f64| format!("{:.0} ms", seconds * 1e3);
        let gain = GAIN * 100.0;
        let trial = |side| (self.calls(side) < TRIALS).then_some(self.calls(side));
        match (self.cpu, self.gpu) {
            (_, None) if self.spent < TRYING => Some(format!(
                "a GPU is tried once a block has cost {} on the CPU, and this one has cost {}",
                ms(TRYING),
                ms(self.spent)
            )),
            (_, None) if gpu > cpu * GAIN => {
                Some(format!("a GPU is tried where it promises to take at most {gain:.0} % of the time"))
            }
            (None, _) if cpu > gpu * GAIN => {
                Some(format!("the CPU is tried where it promises to take at most {gain:.0} % of the time"))
            }
            (_, None) | (None, _) => Some("it promises to be faster, and is tried".into()),
            _ => {
                let tried = trial(Side::Gpu).filter(|_| gpu < cpu * FAR && gpu >= cpu);
                let tried = tried.or_else(|| trial(Side::Cpu).filter(|_| cpu < gpu * FAR && cpu >= gpu));
                tried.map(|calls| {
                    format!("each is given {TRIALS} calls to show what it takes, and this is number {}", calls + 1)
                })
            }
        }
    }

    fn calls(&self, side: Side) -> u32 {
        self.calls[side as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAYS: Ways = Ways { launch: 50e-6, up: 20e9, down: 8e9 };

    fn taken(elements: u64, ticks: u64, kernel: f64, moved: f64) -> Taken {
        Taken { elements, ticks, kernel, moved, up: elements as f64 * 8.0, down: elements as f64 * 8.0 }
    }

    fn choose(history: &History, elements: u64, ticks: u64) -> Side {
        history.choose(elements, ticks, 16, &WAYS)
    }

    /// Records calls on a GPU that was used before.
    fn on_gpu(history: &mut History, taken: Taken) {
        (0..TRIALS).for_each(|_| history.note(Side::Gpu, taken));
    }

    #[test]
    fn a_side_is_not_given_up_for_what_its_first_calls_pay_for_all() {
        let mut history = History::default();
        (0..3).for_each(|_| history.note(Side::Cpu, taken(100_000, 1, 0.1, 0.0)));
        // the first calls load code and page-lock memory, later ones reuse both
        for moved in [9.0, 0.3] {
            assert_eq!(choose(&history, 100_000, 1), Side::Gpu);
            history.note(Side::Gpu, taken(100_000, 1, 1e-4, moved));
        }
        assert_eq!(choose(&history, 100_000, 1), Side::Gpu);
        history.note(Side::Gpu, taken(100_000, 1, 1e-4, 1e-3));
        history.note(Side::Gpu, taken(100_000, 1, 1e-4, 0.2));
        assert_eq!(choose(&history, 100_000, 1), Side::Gpu);
        // the same with a CPU that is a little slower at first
        let mut history = History::default();
        on_gpu(&mut history, taken(8_000_000, 1, 45e-6, 14e-3));
        for kernel in [40e-3, 20e-3, 5e-3, 20e-3] {
            assert_eq!(choose(&history, 8_000_000, 1), Side::Cpu);
            history.note(Side::Cpu, taken(8_000_000, 1, kernel, 0.0));
        }
        assert_eq!(choose(&history, 8_000_000, 1), Side::Cpu);
    }

    #[test]
    fn a_side_that_is_far_slower_is_given_up_at_once() {
        let mut history = History::default();
        (0..3).for_each(|_| history.note(Side::Cpu, taken(100_000, 1, 0.1, 0.0)));
        (0..2).for_each(|_| history.note(Side::Gpu, taken(100_000, 1, 2.0, 0.0)));
        assert_eq!(choose(&history, 100_000, 1), Side::Cpu);
    }

    #[test]
    fn the_first_call_goes_by_its_size() {
        let history = History::default();
        assert_eq!(choose(&history, 1_000, 1), Side::Cpu);
        assert_eq!(choose(&history, 1_000_000, 1_000), Side::Gpu);
        assert_eq!(choose(&history, 100, 1_000_000), Side::Cpu);
    }

    #[test]
    fn a_long_loop_over_few_elements_moves_to_the_gpu_once_it_has_cost_enough() {
        let mut history = History::default();
        // 4000 stars, each against all others
        history.note(Side::Cpu, taken(4_000, 1, 0.2, 0.0));
        assert_eq!(choose(&history, 4_000, 1), Side::Cpu);
        history.note(Side::Cpu, taken(4_000, 1, 0.2, 0.0));
        assert_eq!(choose(&history, 4_000, 1), Side::Gpu);
        for _ in 0..TRIALS {
            history.note(Side::Gpu, taken(4_000, 1, 0.014, 0.0002));
            assert_eq!(choose(&history, 4_000, 1), Side::Gpu);
        }
        assert_eq!(choose(&history, 20, 1), Side::Cpu);
    }

    #[test]
    fn what_decides_beside_estimates_is_said() {
        let said = |history: &History, elements| history.reservation(history.estimate(elements, 1, 16, &WAYS));
        let mut history = History::default();
        assert_eq!(said(&history, 4_000), None);
        history.note(Side::Cpu, taken(4_000, 1, 0.2, 0.0));
        let cost = "a GPU is tried once a block has cost 250 ms on the CPU, and this one has cost 200 ms";
        assert_eq!(said(&history, 4_000).as_deref(), Some(cost));
        history.note(Side::Cpu, taken(4_000, 1, 0.2, 0.0));
        assert_eq!(said(&history, 4_000).as_deref(), Some("it promises to be faster, and is tried"));
        assert!(said(&history, 1).is_some_and(|said| said.contains("at most 80 % of the time")));
        (0..2).for_each(|_| history.note(Side::Gpu, taken(4_000, 1, 0.3, 0.0)));
        let trial = "each is given 4 calls to show what it takes, and this is number 3";
        assert_eq!(said(&history, 4_000).as_deref(), Some(trial));
        (0..2).for_each(|_| history.note(Side::Gpu, taken(4_000, 1, 0.014, 0.0)));
        (0..2).for_each(|_| history.note(Side::Cpu, taken(4_000, 1, 0.2, 0.0)));
        assert_eq!(said(&history, 4_000), None);
    }

    #[test]
    fn what_only_moves_data_stays_on_the_cpu() {
        let mut history = History::default();
        on_gpu(&mut history, taken(8_000_000, 1, 45e-6, 14e-3));
        // a trial of the CPU costs next to nothing, and may pay
        assert_eq!(choose(&history, 8_000_000, 1), Side::Cpu);
        history.note(Side::Cpu, taken(8_000_000, 1, 5e-3, 0.0));
        assert_eq!(choose(&history, 8_000_000, 1), Side::Cpu);
        assert_eq!(choose(&history, 80_000_000, 1), Side::Cpu);
    }

    #[test]
    fn a_cpu_that_cannot_win_is_not_tried() {
        let mut history = History::default();
        on_gpu(&mut history, taken(1_000_000, 1_000, 2e-3, 3e-3));
        assert_eq!(choose(&history, 1_000_000, 1_000), Side::Gpu);
    }

    #[test]
    fn estimates_grow_with_the_size() {
        let mut history = History::default();
        history.note(Side::Cpu, taken(1_000, 1, 1e-3, 0.0));
        on_gpu(&mut history, taken(1_000, 1, 20e-6, 60e-6));
        let small = history.estimate(1_000, 1, 16, &WAYS);
        let large = history.estimate(1_000_000, 1, 16, &WAYS);
        assert_eq!(small.cpu, Some(1e-3));
        assert!(large.cpu > Some(0.99) && large.gpu > small.gpu && large.gpu < large.cpu, "{small:?} {large:?}");
    }

    #[test]
    fn of_calls_of_one_size_the_fastest_counts_until_all_are_slower() {
        let mut history = History::default();
        let mut after = |kernel| {
            history.note(Side::Cpu, taken(1_000, 1, kernel, 0.0));
            history.estimate(1_000, 1, 16, &WAYS).cpu.expect("it ran there")
        };
        assert_eq!([3e-3, 1e-3].map(&mut after)[1], 1e-3);
        // one disturbed call changes no side
        assert!(after(50e-3) < 1e-3 / GAIN);
        assert_eq!(after(1e-3), 1e-3);
        assert_eq!([5e-3; 10].map(&mut after)[9], 5e-3);
    }

    #[test]
    fn ways_survive_the_disk() {
        assert_eq!(Ways::from_bytes(&WAYS.to_bytes()), Some(WAYS));
        assert_eq!(Ways::from_bytes(&[0; 24]), None);
        assert_eq!(Ways::from_bytes(&[1; 23]), None);
    }
}
