//! Room for what a kernel makes.
//!
//! Here: [`HeapCapacities`], the rows of each heap of a program, which grow where a launch needed more; and [`fresh`],
//! where these rows are in columns. Not here: the objects and arrays that the rows become ([`crate::marshal::made`]).

use ikra_core::backend::{Fresh, TrapRecord};
use ikra_core::error::Error as CoreError;
use ikra_core::ir::{HeapId, Program, Space};
use parking_lot::Mutex;

/// The rows of each heap of a program, or of each slot of a scratch heap. A heap grows, and never shrinks.
pub struct HeapCapacities(Mutex<Vec<u64>>);

/// The initial rows of a scratch heap, for each slot.
const SCRATCH_ROWS_PER_SLOT: u64 = 32;
/// The least initial rows of another heap.
const MIN_INITIAL_ROWS: u64 = 256;
/// More rows than elements: threads may take rows in advance, and not use them.
const SPARE_SHARE: u64 = 8;
/// The initial bytes of Strings, for each element.
const INITIAL_BYTES: u64 = 16;
/// The greatest factor by which a heap grows at once.
const MAX_GROWTH_FACTOR: u64 = 32;

/// The rows of a program's heaps in one launch.
#[derive(Clone, Debug, Default)]
pub struct HeapCapacity {
    /// By heap: rows in all.
    pub rows: Vec<u64>,
    /// By heap: rows, or rows of each slot.
    pub capacities: Vec<u64>,
    pub slots: u64,
}

impl HeapCapacities {
    pub fn new(program: &Program, elements: usize) -> Self {
        let first = |heap: usize| match program.heaps[heap].scratch {
            true => SCRATCH_ROWS_PER_SLOT,
            false if program.heaps[heap].space == Space::Bytes => {
                (elements as u64 * INITIAL_BYTES).max(MIN_INITIAL_ROWS)
            }
            false => (elements as u64 + elements as u64 / SPARE_SHARE).max(MIN_INITIAL_ROWS),
        };
        Self(Mutex::new((0..program.heaps.len()).map(first).collect()))
    }

    /// The heap capacities of the next launch.
    pub fn now(&self, program: &Program, slots: u64) -> HeapCapacity {
        let mut capacities = self.0.lock().clone();
        for (i, capacity) in capacities.iter_mut().enumerate() {
            if !program.takes_from(HeapId::new(i)) {
                *capacity = 0;
            }
        }
        let times = |(i, capacity): (usize, &u64)| capacity * if program.heaps[i].scratch { slots } else { 1 };
        let rows = capacities.iter().enumerate().map(times).collect();
        HeapCapacity { rows, capacities, slots }
    }

    /// Grows a heap after a launch that stopped at an element because it was full. The first word of the trap says how
    /// many rows would have been enough so far.
    ///
    /// # Errors
    /// `Memory` where there is not so much.
    pub fn grow(
        &self,
        program: &Program,
        heap: HeapId,
        record: &TrapRecord,
        (elements, ticks, slots): (u64, u64, u64),
        memory: u64,
    ) -> Result<(), CoreError> {
        let (needed, key) = (record.words[0], record.key);
        let description = &program.heaps[heap.index()];
        let mut capacities = self.0.lock();
        let capacity = &mut capacities[heap.index()];
        // The elements that follow will need as many rows each as those before.
        let done = key.tick() * elements + key.index() + 1;
        let share = (elements * ticks) as f64 / done as f64;
        let expected = if description.scratch { needed } else { (needed as f64 * share * 1.1) as u64 };
        let most = needed.max(capacity.saturating_mul(MAX_GROWTH_FACTOR));
        let wanted = expected.clamp(needed.max(*capacity * 2), most.max(*capacity * 2));
        let rows = wanted.saturating_mul(if description.scratch { slots } else { 1 });
        let width: u64 = program
            .columns
            .iter()
            .filter(|c| c.space.covers(description.space))
            .map(|c| c.storage.bytes() as u64)
            .sum();
        let bytes = rows.saturating_mul(width.max(1));
        if rows > u64::from(u32::MAX) / 2 || bytes > memory / 2 {
            let what = match description.space {
                Space::Array(_) => "arrays",
                Space::Bytes => "Strings",
                _ => "objects",
            };
            let site = &program.sites[record.site.index()];
            let place = format!("making {what} at {}:{}", site.path, site.line);
            let advice = "make fewer or smaller ones, or run fewer elements at a time";
            return Err(CoreError::Memory { what: place, wanted: bytes, free: memory / 2, advice });
        }
        *capacity = wanted;
        Ok(())
    }
}

/// The rows of columns that are undefined before a launch. The host fills the flags of frozen objects all the same.
pub fn fresh(program: &Program, capacity: &HeapCapacity, biases: &[u64], params: &[u64], host: &[usize]) -> Vec<Fresh> {
    let mut fresh = Vec::new();
    for (i, heap) in program.heaps.iter().enumerate().filter(|(i, _)| capacity.rows[*i] > 0) {
        let start = params[heap.start.index()];
        for (at, column) in program.columns.iter().enumerate() {
            if column.space.covers(heap.space) && !host.contains(&at) {
                let first = start - biases[at];
                fresh.push(Fresh {
                    column: ikra_core::ir::ColumnId::new(at),
                    rows: first..first + capacity.rows[i],
                    taken: (!heap.scratch).then_some(heap.taken),
                });
            }
        }
    }
    fresh
}
