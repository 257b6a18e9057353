//! Reductions: see `reduce.cuh`.

use super::{Block, Blocks, Machine, REDUCE, Text, name, tiles};
use crate::backend::collective::reduce::{Reduced, Reduction};
use crate::backend::collective::{Element, LANES};
use crate::backend::cuda::driver::{Device, Stream};
use crate::backend::cuda::storage::{ALIGNMENT, PageLockedBuffer};
use crate::backend::epilogue::Epilogue;
use crate::error::Result;
use crate::ir::{Program, Stmt, walk};
use std::sync::Arc;

/// The template of `reduce.cuh` for the operation.
pub fn operation(reduction: Reduction, element: Element) -> String {
    let ty = name(element);
    match (reduction, element.is_float()) {
        (Reduction::Sum, false) => format!("IntSum<{ty}>"),
        (Reduction::Sum, true) => format!("FloatSum<{ty}>"),
        (Reduction::Product, false) => format!("IntProduct<{ty}>"),
        (Reduction::Product, true) => format!("FloatProduct<{ty}>"),
        (Reduction::Min, _) => format!("Extreme<{ty}, false>"),
        (Reduction::Max, _) => format!("Extreme<{ty}, true>"),
        (Reduction::MinMax, _) => format!("BothExtremes<{ty}>"),
        (Reduction::Count, _) => format!("Counting<{ty}>"),
    }
}

/// Bytes of the operation's state.
pub fn state_bytes(reduction: Reduction, element: Element) -> u64 {
    let words = match reduction {
        Reduction::Product if element.is_float() => 1,
        Reduction::Sum | Reduction::Product => 2,
        Reduction::Min | Reduction::Max => 3,
        Reduction::MinMax => 6,
        Reduction::Count => 1,
    };
    words * 8
}

/// Threads of a block.
pub const THREADS: u32 = LANES as u32;

/// The fewest blocks that a multiprocessor must be able to run, where elements are loaded from memory. With four, and
/// 64 registers per thread, enough rows are always being loaded. States of the least and the greatest need twice as
/// many registers.
/// way. States of the least and the greatest need twice as many.
pub fn fewest_blocks(reduction: Reduction) -> u32 {
    if reduction == Reduction::MinMax { 1 } else { 4 }
}

pub fn text(reduction: Reduction, element: Element) -> Text {
    let operation = operation(reduction, element);
    let ty = name(element);
    let kernel = format!("ikra_reduce_{reduction:?}_{ty}").to_lowercase();
    let bounds = (THREADS, fewest_blocks(reduction));
    Text::new(kernel, &[REDUCE], bounds, "ReduceArgs", &format!("reduce<{ty}, {operation}>(args)"))
}

/// The number of blocks for so many tiles, if the device runs `resident` blocks at once. The numbers of tiles per block
/// then differ by at most one.
pub fn blocks(tiles: u64, resident: u64) -> u64 {
    let most = resident.max(1);
    tiles.div_ceil(tiles.div_ceil(most).max(1)).max(1)
}

/// Queues the reduction of `count` elements at `input`. It writes [`Reduction::WORDS`] words to `out`, which
/// [`Reduction::read`] reads.
///
/// # Errors
/// `Memory`, `Device`.
pub fn reduce(
    machine: &impl Machine,
    reduction: Reduction,
    element: Element,
    input: u64,
    count: u64,
    out: u64,
) -> Result<()> {
    let tiles = tiles(count);
    let states = machine.allocate((tiles * state_bytes(reduction, element)) as usize)?;
    let mut args = [input, count, states.address(), machine.counter()?, out];
    machine.run(&text(reduction, element), Blocks::Even(tiles), &mut args)
}

/// Jobs of programs with at most so many statements run on the threads that reduce.
const MAX_FUSED_STATEMENTS: usize = 200;

/// Whether the kernel that computes a program's elements also reduces, or compacts, them. A tile is processed by few
/// threads, which suffices if memory is the bottleneck. Jobs that compute for long need a thread each, and their stores
/// cost little in comparison.
pub fn at_once(program: &Program, epilogue: Epilogue) -> bool {
    // tiles of several dimensions are not in the order of elements; a compaction has tiles of its own
    let most = usize::from(matches!(epilogue, Epilogue::Fold(_)));
    let (mut size, mut light) = (0, !program.uses_slots());
    for func in &program.funcs {
        light &= !func.recursive && func.stage.as_ref().is_none_or(|stage| stage.tile.len() <= most);
        walk(&func.body, &mut |stmt| {
            size += 1;
            light &= !matches!(stmt, Stmt::Loop { .. });
        });
    }
    light && size <= MAX_FUSED_STATEMENTS
}

/// Scratch memory of reductions, for one at a time: the states of its tiles, and its result. It is reused, so a
/// reduction copies nothing, and allocates only if it is the largest so far.
pub struct ReductionScratch {
    /// The counter of blocks that have ended, which is 0 whenever no kernel runs, then the states.
    states: Block,
    /// Host memory to which the kernel writes.
    out: PageLockedBuffer,
}

impl ReductionScratch {
    /// Makes room for states of so many bytes. Waits for the stream.
    ///
    /// # Errors
    /// `Memory`, `Device`. The context must be current.
    pub fn new(device: &Arc<Device>, stream: &Stream, bytes: usize) -> Result<Self> {
        let out = PageLockedBuffer::new(device, 1)?;
        let states = Block::new(device, stream, ALIGNMENT + bytes)?;
        let filled = states.on(stream).fill(0, ALIGNMENT, 0);
        // also after an error: a dropped block may be reused at once
        stream.finish()?;
        filled?;
        Ok(Self { states, out })
    }
    pub fn has_room(&self, bytes: usize) -> bool {
        self.states.bytes() >= ALIGNMENT + bytes
    }
    /// The words of `struct ReduceArgs`.
    pub fn words(&self, input: u64, count: u64) -> [u64; 5] {
        let counter = self.states.address();
        [input, count, counter + ALIGNMENT as u64, counter, self.out.address(0)]
    }
    /// The result of the last kernel, for which the host has waited.
    pub fn result(&self, reduction: Reduction, element: Element) -> Reduced {
        let slot = self.out.read(0);
        let (words, _) = slot.as_chunks::<8>();
        reduction.read(element, &std::array::from_fn(|at| u64::from_ne_bytes(words[at])))
    }
}
