//! Rows that a thread takes from a heap in advance.
//!
//! Here: which counters have such rows ([`counters`]), and how many rows a thread takes at once ([`batch`]). Not here:
//! the code that takes a row ([`super::lower`]), and the words that say which rows are left ([`super::state`]).
//!
//! A counter that all threads change at each new object moves from core to core each time, and so do the cache lines of
//! neighbouring rows. So a thread takes many rows at once, and gives one after the other to its jobs. At the end of a
//! chunk it returns those that are left if no other thread took rows meanwhile. The others are rows that nothing refers
//! to. (Thread-local allocation buffers; Jones, Hosking and Moss, The Garbage Collection Handbook, 2012, §7.7.)

use super::lower::Facts;
use crate::ir::{ColumnId, ParamId, Program};

/// All threads together take at most this part of a heap in advance: 1 / `SHARE`.
const SHARE: u64 = 16;
/// The most rows that a thread takes at once.
const MAX_BATCH: u64 = 4096;
/// The fewest allocations of one size in a batch. Larger allocations take their rows from the counter itself, so that
/// less than an eighth of a batch is lost.
pub const LEAST_IN_BATCH: i64 = 8;

/// The counters of heaps from which programs take rows for good, with the parameters that tell the heaps' rows.
pub fn counters(program: &Program) -> Vec<(ColumnId, ParamId)> {
    let used = |taken: ColumnId| program.columns[taken.index()].written;
    let heaps = program.heaps.iter().filter(|heap| !heap.scratch && used(heap.taken));
    heaps.map(|heap| (heap.taken, heap.capacity)).collect()
}

/// How many rows a thread takes at once: one of `threads`, from a heap of `capacity` rows.
pub fn batch(capacity: u64, threads: usize) -> u64 {
    (capacity / (SHARE * threads as u64)).min(MAX_BATCH)
}

/// The number of the first of a counter's words ([`super::state`]). `at`: its number among the counters.
pub fn word(program: &Program, facts: &Facts, at: usize) -> usize {
    let before = program.columns.len() + program.params.len() + facts.privatized.len();
    super::state::COLUMNS + before + at * super::state::COUNTER_WORDS
}

#[cfg(test)]
mod tests {
    use super::super::CpuBackend;
    use crate::backend::{Backend, CancelToken, Launch, Outcome, Timings};
    use crate::config::CodeOptions;
    use crate::ir::testing::{INPUT, INTS, heaps, program};
    use crate::ir::{HeapId, Program, Scalar, SiteId, Space};
    use crate::layout::Layout;
    use crate::memory::column::HostColumn;
    use crate::passes::{COMMON, run};

    const JOBS: usize = 200_000;

    /// Each element takes as many rows as it says, and tells the first of them.
    fn taking() -> Program {
        let mut program = program(|b, index| {
            let count = b.load(Scalar::I64, INPUT, index);
            let first = b.alloc(Scalar::I64, HeapId(0), count, SiteId(4));
            b.store(INTS, index, first);
        });
        heaps(&mut program);
        program.heaps[0].space = Space::Array(crate::id::ArrayKind::new(0));
        run(COMMON, program).unwrap_or_else(|e| panic!("{e}"))
    }

    /// The rows that each element was given, and how many were taken in all.
    fn taken(threads: usize, counts: &[i64], capacity: u64) -> (Outcome, Vec<(i64, i64)>, u64) {
        let program = taking();
        let backend = CpuBackend::with_threads(threads).expect("this host is supported");
        let mut columns: Vec<HostColumn> = program
            .columns
            .iter()
            .map(|column| {
                HostColumn::zeroed(column.storage, if column.space == Space::Element { counts.len() } else { 8 })
            })
            .collect();
        columns[INPUT.index()].view_mut::<i64>().copy_from_slice(counts);
        let layout = Layout::structure_of_arrays(&program);
        let kernel = backend.prepare(&program, &layout, &CodeOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let mut params = vec![0; program.params.len()];
        params[program.heaps[0].start.index()] = 1000;
        params[program.heaps[0].capacity.index()] = capacity;
        let (cancel, mut timings) = (CancelToken::default(), Timings::default());
        let biases = vec![0; columns.len()];
        let launch = Launch::of(counts.len() as u64, &mut columns, &biases, &params, &cancel, &mut timings);
        let outcome = backend.launch(&*kernel, launch).unwrap_or_else(|e| panic!("{e}"));
        let firsts = columns[INTS.index()].view::<i64>();
        let rows = firsts.iter().zip(counts).map(|(first, count)| (*first, first + count)).collect();
        (outcome, rows, columns[program.heaps[0].taken.index()].view::<u64>()[0])
    }

    #[test]
    fn no_two_elements_are_given_one_row() {
        // some do not fit into a batch
        let counts: Vec<i64> = (0..JOBS as i64).map(|i| if i % 1000 == 7 { 3000 } else { 1 + i % 3 }).collect();
        let sum: i64 = counts.iter().sum();
        for threads in [1, 2, 4] {
            let capacity = sum as u64 * 5 / 4;
            let (outcome, mut rows, taken) = taken(threads, &counts, capacity);
            assert_eq!(outcome, Outcome::Done);
            rows.sort_unstable();
            assert_eq!(rows[0].0, 1000, "the first row of all");
            assert!(rows.is_sorted_by(|before, row| before.1 <= row.0), "rows of two elements");
            assert!((sum as u64..=capacity).contains(&taken), "{taken} of {sum}");
            assert!(rows.last().is_some_and(|last| last.1 <= 1000 + taken as i64), "a row that nobody took");
            let few = if threads == 1 { sum as u64 / 8 } else { capacity };
            assert!(taken - sum as u64 <= few, "one thread loses less than an eighth: {taken} of {sum}");
        }
    }

    #[test]
    fn a_heap_that_is_too_small_is_noticed() {
        let counts = vec![1; JOBS];
        for threads in [1, 4] {
            let (outcome, _, _) = taken(threads, &counts, JOBS as u64 / 2);
            assert!(matches!(outcome, Outcome::Trapped(record) if record.words[0] > JOBS as u64 / 2), "{outcome:?}");
        }
    }
}
