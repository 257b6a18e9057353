//! Reductions: see `reduce.cuh`.

use super::{Blocks, Machine, REDUCE, Text, name};
use crate::backend::collective::reduce::Reduction;
use crate::backend::collective::{Element, LANES, TILE};
use crate::error::Result;

/// The operation as a template of `reduce.cuh`, and the bytes of its state.
pub(super) fn operation(reduction: Reduction, element: Element) -> (String, u64) {
    let ty = name(element);
    let (template, words) = match (reduction, element.is_float()) {
        (Reduction::Sum, false) => (format!("IntSum<{ty}>"), 2),
        (Reduction::Sum, true) => (format!("FloatSum<{ty}>"), 2),
        (Reduction::Product, false) => (format!("IntProduct<{ty}>"), 2),
        (Reduction::Product, true) => (format!("FloatProduct<{ty}>"), 1),
        (Reduction::Min, _) => (format!("Extreme<{ty}, false>"), 3),
        (Reduction::Max, _) => (format!("Extreme<{ty}, true>"), 3),
        (Reduction::MinMax, _) => (format!("BothExtremes<{ty}>"), 6),
        (Reduction::Count, _) => (format!("Counting<{ty}>"), 1),
    };
    (template, words * 8)
}

pub(super) fn text(reduction: Reduction, element: Element) -> Text {
    let (operation, _) = operation(reduction, element);
    let ty = name(element);
    let kernel = format!("ikra_reduce_{reduction:?}_{ty}").to_lowercase();
    Text::new(kernel, &[REDUCE], (LANES as u32, 1), "ReduceArgs", &format!("reduce<{ty}, {operation}>(args)"))
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
    let tiles = count.div_ceil(TILE as u64);
    let (_, state) = operation(reduction, element);
    let states = machine.allocate((tiles * state) as usize)?;
    let mut args = [input, count, states.address(), machine.counter()?, out];
    machine.run(&text(reduction, element), Blocks::Resident(tiles), &mut args)
}
