//! Where a section is likely to be faster: what `auto` means.
//!
//! Here: [`History`], what a block has taken on the CPU and on the GPU, and [`Ways`], what a machine's ways to the GPU take; from
//! both an [`Estimate`] for the next call. Not here: measuring them, and who asks.
//!
//! A block's time cannot be read off its text: loops end when data say so. So the first call goes by its size alone, and later ones by
//! what earlier ones took, scaled to their size. The side that was not tried yet is tried once the other has cost as much as trying does,
//! and only where even that may pay: what is wasted is bounded, as in the ski-rental problem (Karlin et al., *Competitive snoopy
//! caching*, Algorithmica 1988). Tracing, packing and writing back are the same for both sides and do not count.

/// What the machine's ways between host and GPU take, measured once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ways {
    /// Seconds of a launch that moves next to nothing and is waited for.
    pub launch: f64,
    /// Bytes a second to the device, and to the host.
    pub up: f64,
    pub down: f64,
}

impl Default for Ways {
    /// Of a machine that was not measured: PCIe as it commonly is.
    fn default() -> Self {
        Self { launch: 60e-6, up: 12e9, down: 6e9 }
    }
}

impl Ways {
    /// For the disk.
    pub fn to_bytes(self) -> Vec<u8> {
        [self.launch, self.up, self.down].iter().flat_map(|number| number.to_le_bytes()).collect()
    }
    /// None for bytes that no machine has written.
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

/// A call that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    pub elements: u64,
    pub ticks: u64,
    /// Seconds of its kernel, and of what moved to the device and back.
    pub kernel: f64,
    pub moved: f64,
    /// Bytes that the program reads, and that it writes.
    pub up: f64,
    pub down: f64,
}

/// A side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Cpu,
    Gpu,
}

/// Seconds that a call is expected to take on each side, as far as something is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    pub cpu: Option<f64>,
    pub gpu: Option<f64>,
}

/// What one block has taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct History {
    cpu: Option<Taken>,
    gpu: Option<Taken>,
    /// Seconds on the CPU in all.
    spent: f64,
    /// Calls on each.
    calls: [u32; 2],
}

/// Threads from which on a GPU is busy: with more, time grows with their number.
const BUSY: f64 = 100_000.0;
/// Before anything was measured, `auto` tries a GPU from so many elements and so many runs of a block on.
pub const MIN_GPU_ELEMENTS: u64 = 4_096;
pub const MIN_GPU_RUNS: u64 = 2_000_000;
/// Cores that a busy GPU is worth at least and at most, before it was tried, and cores that one of its threads is worth.
const WORTH: [f64; 2] = [50.0, 1_000.0];
const THREAD: f64 = 1.0 / 8.0;
/// Seconds of compiling and of making a context, which trying a GPU costs; on a CPU they are next to nothing.
const TRYING: f64 = 0.25;
/// What is to be gained before a change of sides.
const GAIN: f64 = 0.8;
/// How much slower a call may make what is known of others of its size; less than what changes sides.
const BELIEVED: f64 = 1.2;
/// Calls on a side before it is given up, unless they take so many times as long as on the other: the first ones make what later ones find, such as memory.
const TRIALS: u32 = 4;
const FAR: f64 = 4.0;

impl History {
    /// Notes a call that ended. The first one on a GPU loads its code, and tells nothing of others.
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
        // of calls of one size the fastest counts: what disturbs a call only makes it slower. But what all calls take from now on is believed by and by
        match known {
            Some(known) if (known.elements, known.ticks) == (taken.elements, taken.ticks) => {
                known.kernel = taken.kernel.min(known.kernel * BELIEVED);
                known.moved = taken.moved.min(known.moved * BELIEVED);
            }
            _ => *known = Some(taken),
        }
    }

    /// What a call of this size is expected to take. `cores`: of the CPU.
    pub fn estimate(&self, elements: u64, ticks: u64, cores: usize, ways: &Ways) -> Estimate {
        let runs = (elements * ticks) as f64;
        let of = |taken: &Taken| (taken.elements * taken.ticks).max(1) as f64;
        let share = |taken: &Taken| elements as f64 / taken.elements.max(1) as f64;
        let cores = cores as f64;
        let cpu = self.cpu.map(|taken| taken.kernel * runs / of(&taken));
        let gpu = self.gpu.map(|taken| {
            let busy = |elements: u64| (elements as f64 / BUSY).max(1.0);
            let grown = ticks as f64 / taken.ticks.max(1) as f64 * busy(elements) / busy(taken.elements);
            // a launch is in both; what is beyond it grows
            ways.launch + (taken.kernel * grown) + (taken.moved - ways.launch).max(0.0) * share(&taken)
        });
        // at its best, as long as it was not tried
        let gpu_at_best = |taken: Taken| {
            let run = taken.kernel * cores / of(&taken);
            let kernel = (runs * run / WORTH[1]).max(ticks as f64 * run / THREAD);
            ways.launch + kernel + (taken.up / ways.up + taken.down / ways.down) * share(&taken)
        };
        let cpu_at_best = |taken: Taken| taken.kernel * runs / of(&taken) * WORTH[0] / cores;
        Estimate { cpu: cpu.or(self.gpu.map(cpu_at_best)), gpu: gpu.or(self.cpu.map(gpu_at_best)) }
    }

    /// Where a call of this size is to run, where there are both.
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

    /// What decided beside what the sides are expected to take, in words; None: nothing did.
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

    /// Notes calls on a GPU that was used before.
    fn on_gpu(history: &mut History, taken: Taken) {
        (0..TRIALS).for_each(|_| history.note(Side::Gpu, taken));
    }

    #[test]
    fn a_side_is_not_given_up_for_what_its_first_calls_pay_for_all() {
        let mut history = History::default();
        (0..3).for_each(|_| history.note(Side::Cpu, taken(100_000, 1, 0.1, 0.0)));
        // code is loaded; memory is page-locked; from then on they are there
        for moved in [9.0, 0.3] {
            assert_eq!(choose(&history, 100_000, 1), Side::Gpu);
            history.note(Side::Gpu, taken(100_000, 1, 1e-4, moved));
        }
        assert_eq!(choose(&history, 100_000, 1), Side::Gpu);
        history.note(Side::Gpu, taken(100_000, 1, 1e-4, 1e-3));
        history.note(Side::Gpu, taken(100_000, 1, 1e-4, 0.2));
        assert_eq!(choose(&history, 100_000, 1), Side::Gpu);
        // the same on a CPU that takes little longer at first
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
        // trying the CPU costs next to nothing, and may pay
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
        // one that is disturbed changes no side
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
