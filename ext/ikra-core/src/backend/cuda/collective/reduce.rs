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

/// The operation as a template of `reduce.cuh`.
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

/// The bytes of the operation's state.
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

/// How many blocks a multiprocessor is to hold at least where elements are loaded: with four, of 64 registers each thread, enough rows are always under
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

/// Of so many tiles and so many blocks that run at once: how many blocks there are, so that each has as many tiles as any other, but for one.
pub fn blocks(tiles: u64, resident: u64) -> u64 {
    let most = resident.max(1);
    tiles.div_ceil(tiles.div_ceil(most).max(1)).max(1)
}

/// Queues the reduction of `count` elements at `input`; [`Reduction::WORDS`] words at `out` then hold what
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

/// Statements of a program, at most, whose jobs are run by the threads that reduce.
const MAX_FUSED_STATEMENTS: usize = 200;

/// Whether a program's elements are reduced, or compacted, by the kernel that computes them. A tile is gone over by few
/// threads, which is right where memory is what takes time; jobs that compute for long have a thread each, and what
/// they store is little beside that.
pub fn at_once(program: &Program, epilogue: Epilogue) -> bool {
    // tiles of several dimensions are in no order of elements; a compaction has tiles of its own
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

/// The memory in which one reduction at a time leaves its tiles' states and its result. It is kept, so that a reduction
/// copies nothing, and allocates nothing unless it is the largest so far.
pub struct ReductionScratch {
    /// The count of blocks that have ended, which is 0 whenever no kernel runs, then the states.
    states: Block,
    /// In the host's memory, to which the kernel writes.
    out: PageLockedBuffer,
}

impl ReductionScratch {
    /// With room for so many tiles' states. Waits for the stream.
    ///
    /// # Errors
    /// `Memory`, `Device`. The context must be current.
    pub fn new(device: &Arc<Device>, stream: &Stream, bytes: usize) -> Result<Self> {
        let out = PageLockedBuffer::new(device, 1)?;
        let states = Block::new(device, stream, ALIGNMENT + bytes)?;
        let filled = states.on(stream).fill(0, ALIGNMENT, 0);
        // whatever came of it: a block that is dropped may be used again at once
        stream.finish()?;
        filled?;
        Ok(Self { states, out })
    }
    pub fn has_room(&self, bytes: usize) -> bool {
        self.states.bytes() >= ALIGNMENT + bytes
    }
    /// `struct ReduceArgs`.
    pub fn words(&self, input: u64, count: u64) -> [u64; 5] {
        let counter = self.states.address();
        [input, count, counter + ALIGNMENT as u64, counter, self.out.address(0)]
    }
    /// What the last kernel left, which the host has waited for.
    pub fn result(&self, reduction: Reduction, element: Element) -> Reduced {
        let slot = self.out.read(0);
        let (words, _) = slot.as_chunks::<8>();
        reduction.read(element, &std::array::from_fn(|at| u64::from_ne_bytes(words[at])))
    }
}
