//! Privatized reductions of blocks of threads ([`crate::ir::privatized`]).
//!
//! Here: the words of a launch that say which rows have cells in a block's shared memory, or that none have. Not here:
//! the text ([`super::emit`], and `privatization.cuh`).

use crate::backend::{Key, Launch};
use crate::ir::AtomicOp;
use crate::ir::privatized::Privatized;

/// The templates of kernels that privatize.
pub const TEMPLATES: &str = include_str!("privatization.cuh");
/// The cells of a block, as in `privatization.cuh`. They take a third of the shared memory that blocks may use, so they
/// do not reduce how many blocks run at once.
const CELLS: u64 = 1024;
/// How many copies a row's cell has at most: one for each thread of a warp.
const COPIES: u64 = 32;
/// With so many cells in a column, threads of a warp rarely collide. Each further copy adds work at the end of a block.
/// There are always some copies, because all values may be for one row.
const APART: u64 = 64;
const MIN_COPIES: u64 = 4;

/// The words after a launch's parameters: the number of copies, and two words for each privatized column.
#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    pub words: Vec<u64>,
    /// How many rows have cells; 0: each addition goes to memory at once.
    pub rows: u64,
}

impl Cells {
    pub fn none(columns: usize) -> Self {
        Self { words: vec![0; words(columns)], rows: 0 }
    }

    /// The cells for these buffers, if their columns have few rows. A launch with a limit uses none: there, an overflow
    /// must be raised by an element.
    pub fn of(buffers: &[usize], launch: &Launch<'_>) -> Self {
        let rows = buffers.iter().map(|buffer| launch.columns[*buffer].len() as u64).sum();
        if !(1..=CELLS).contains(&rows) || launch.limit != Key::NONE {
            return Self::none(buffers.len());
        }
        let fewest = buffers.iter().map(|buffer| launch.columns[*buffer].len() as u64).min().unwrap_or(0);
        let mut copies = COPIES;
        while copies * rows > CELLS || copies > MIN_COPIES && copies / 2 * fewest >= APART {
            copies /= 2;
        }
        let (mut words, mut cell) = (vec![copies], 0);
        for buffer in buffers {
            let rows = launch.columns[*buffer].len() as u64;
            words.extend([launch.biases[*buffer], cell << 32 | rows]);
            cell += rows;
        }
        Self { words, rows }
    }
}

/// The number of words for so many columns.
pub fn words(columns: usize) -> usize {
    if columns == 0 { 0 } else { 1 + 2 * columns }
}

/// The name of the operation in `privatization.cuh`.
pub fn operation(privatized: Privatized) -> &'static str {
    match (privatized.op, privatized.site) {
        (AtomicOp::Add, Some(_)) => "Sums",
        (AtomicOp::Add, None) => "Wraps",
        (AtomicOp::FAdd, _) => "FloatSums",
        (AtomicOp::And, _) => "Ands",
        (AtomicOp::Or, _) => "Ors",
        (AtomicOp::Xor, _) => "Xors",
        (AtomicOp::Min, _) => "Leasts",
        (AtomicOp::Max, _) => "Greatests",
    }
}

#[cfg(test)]
mod tests {
    use super::super::CudaShim;
    use super::Cells;
    use crate::backend::{CancelToken, Launch, Timings, privatization};
    use crate::ir::Storage;
    use crate::memory::column::HostColumn;

    #[test]
    fn rows_have_as_many_copies_as_keep_a_warp_apart_and_fit_and_a_few_anyway() {
        let copies = |rows: &[usize]| {
            let mut columns: Vec<_> = rows.iter().map(|rows| HostColumn::zeroed(Storage::I64, *rows)).collect();
            let biases = vec![0; rows.len()];
            let buffers: Vec<usize> = (0..rows.len()).collect();
            let (cancel, mut timings) = (CancelToken::default(), Timings::default());
            Cells::of(&buffers, &Launch::of(1, &mut columns, &biases, &[], &cancel, &mut timings)).words[0]
        };
        assert_eq!([&[1][..], &[2], &[16], &[16, 16, 16], &[64], &[200], &[300]].map(copies), [32, 32, 4, 4, 4, 4, 2]);
        assert_eq!([&[1024][..], &[1025], &[500, 3]].map(copies), [1, 0, 2]);
    }

    #[test]
    fn sums_of_blocks_are_those_of_all() {
        privatization::check(&CudaShim::new().expect("a C++ compiler is installed").sanitized(), 2_000);
    }
}
