//! Picks elements at listed places, and sorts rows: see `gather.cuh`.

use super::sort::{By, Payload, Tuning, sort_by_digits};
use super::{Blocks, Machine, Parts, Text};
use crate::backend::collective::sort::Key;
use crate::error::Result;

const GATHER: &str = include_str!("gather.cuh");
const THREADS: u32 = 256;
/// How many elements a block processes at least.
const PIECE: u64 = 2048;

/// The kernel for elements of `width` bytes.
pub(super) fn gathering(width: usize) -> Text {
    let ty = match width {
        1 => "u8",
        4 => "u32",
        8 => "u64",
        _ => panic!("elements have 1, 4 or 8 bytes"),
    };
    Text::new(format!("ikra_gather_{ty}"), &[GATHER], (THREADS, 1), "GatherArgs", &format!("gather<{ty}>(args)"))
}

pub(super) fn numbering() -> Text {
    Text::new("ikra_gather_rows".to_owned(), &[GATHER], (THREADS, 1), "GatherArgs", "rows_of(args)")
}

fn blocks(count: u64) -> Blocks {
    Blocks::Resident(count.div_ceil(PIECE))
}

/// Queues the copy of elements of `width` bytes at `count` places, which are u32, to `out`.
///
/// # Errors
/// `Memory`, `Device`.
///
/// # Panics
/// For elements of other widths than 1, 4 and 8 bytes.
pub fn gather(machine: &impl Machine, width: usize, input: u64, places: u64, count: u64, out: u64) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    machine.run(&gathering(width), blocks(count), &mut [places, count, input, out, 0])
}

/// Keys in rows, each of which is sorted separately.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub keys: u64,
    pub count: u64,
    /// Keys of a row. The last row may be shorter.
    pub row: u64,
    /// Whether to use the exact order of Floats: by the signs of zeroes and the bits of NaNs.
    pub exact: bool,
}

/// Queues that the indices of keys, as u32, are written to `places`: in sorted order within each row, one row after the
/// other.
///
/// Sorts all keys together, then by their rows. That works because sorting is stable, and is cheap because row numbers
/// have few digits.
///
/// # Errors
/// `Memory`, `Device`.
pub fn order_of_rows(machine: &impl Machine, key: Key, descending: bool, from: Rows, places: u64) -> Result<()> {
    let Rows { keys, count, row, exact } = from;
    if count == 0 {
        return Ok(());
    }
    let rows = count.div_ceil(row);
    let mut parts = Parts::default();
    let sorted = parts.add(count * key.bytes() as u64);
    let [all, row_of, sorted_rows] = [(); 3].map(|()| parts.add(if rows > 1 { count * 4 } else { 0 }));
    let scratch = machine.allocate(parts.bytes)?;
    let at = scratch.address();
    let sort = |by: By, digits, from, to, moved| {
        sort_by_digits(machine, (by, digits), from, count, at + to, moved, Tuning::of(by.key, moved != Payload::None))
    };
    let (by, digits) = (By { key, descending, exact }, key.bytes() as u64);
    if rows == 1 {
        return sort(by, digits, keys, sorted, Payload::Indices(places));
    }
    sort(by, digits, keys, sorted, Payload::Indices(at + all))?;
    machine.run(&numbering(), blocks(count), &mut [at + all, count, 0, at + row_of, row])?;
    let by = By { key: Key::U32, descending: false, exact };
    sort(by, u64::from((rows - 1).ilog2()) / 8 + 1, at + row_of, sorted_rows, Payload::Values(at + all, places))
}
