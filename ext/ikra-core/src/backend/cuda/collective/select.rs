//! Selections: see `select.cuh`.

use super::{Blocks, LOOK_BACK, Machine, Text, TileStates};
use crate::error::Result;

const SELECT: &str = include_str!("select.cuh");
const THREADS: u32 = 256;
/// Elements of a tile.
pub(super) const SELECT_TILE: u64 = 4096;

/// The kernel for elements of `width` bytes; 0: it writes their indices.
pub(super) fn text(width: usize, others: bool) -> Text {
    let (from, to) = match width {
        0 => ("Indices", "u32"),
        1 => ("u8", "u8"),
        4 => ("u32", "u32"),
        8 => ("u64", "u64"),
        _ => panic!("elements have 1, 4 or 8 bytes"),
    };
    let kernel = format!("ikra_select_{from}{}", if others { "_others" } else { "" }).to_lowercase();
    let body = format!("select<{from}, {to}, {others}>(args)");
    Text::new(kernel, &[LOOK_BACK, SELECT], (THREADS, 4), "SelectArgs", &body)
}

/// Elements of `width` bytes, and a flag of one byte for each.
#[derive(Clone, Copy, Debug)]
pub struct Flagged {
    pub flags: u64,
    pub input: u64,
    pub width: usize,
    pub count: u64,
}

fn run(machine: &impl Machine, from: Flagged, to: u64, others: u64, hits: u64) -> Result<()> {
    if from.count == 0 {
        return machine.fill(hits, 8, 0);
    }
    let tiles = from.count.div_ceil(SELECT_TILE);
    let states = TileStates::new(machine, tiles, 8)?;
    let [a, b, c, d, e] = states.words;
    let mut args = [from.flags, from.input, to, others, from.count, a, b, c, d, e, hits];
    machine.run(&text(from.width, others != 0), Blocks::All(tiles), &mut args)
}

/// Queues that the elements whose flags are not 0 are written to `to`, in their order, and their number, in 8 bytes, to
/// `hits`.
///
/// # Errors
/// `Memory`, `Device`.
///
/// # Panics
/// For elements of other widths than 1, 4 and 8 bytes.
pub fn chosen(machine: &impl Machine, from: Flagged, to: u64, hits: u64) -> Result<()> {
    run(machine, from, to, 0, hits)
}

/// As [`chosen`]. Also writes the elements whose flags are 0 to `others`, in their order.
///
/// # Errors
/// `Memory`, `Device`.
///
/// # Panics
/// As [`chosen`].
pub fn split(machine: &impl Machine, from: Flagged, to: u64, others: u64, hits: u64) -> Result<()> {
    run(machine, from, to, others, hits)
}

/// Queues that the indices of flags that are not 0 are written to `to`, as u32, and their number, in 8 bytes, to
/// `hits`.
///
/// # Errors
/// `Memory`, `Device`.
pub fn indices(machine: &impl Machine, flags: u64, count: u64, to: u64, hits: u64) -> Result<()> {
    run(machine, Flagged { flags, input: 0, width: 0, count }, to, 0, hits)
}
