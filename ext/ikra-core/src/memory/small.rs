//! Checks the value-range assumption that a program makes for some columns of Integers.
//!
//! Here: the check of their rows before a launch ([`crate::ir::Column::small`]). Not here: what happens to a section
//! whose Integers are outside the range.

use super::column::HostColumn;
use crate::ir::{Program, SMALL_ROWS};

/// Whether all rows are within [`SMALL_ROWS`].
pub fn are_small(rows: &[i64]) -> bool {
    // the range holds a power of two of numbers: counted from its start, a number outside has a bit above that power
    const { assert!(SMALL_ROWS.0 == -SMALL_ROWS.1 - 1 && (SMALL_ROWS.1 + 1).count_ones() == 1) };
    let beyond = rows.iter().fold(0, |beyond, x| beyond | x.wrapping_sub(SMALL_ROWS.0) as u64);
    beyond >> (SMALL_ROWS.1 + 1).trailing_zeros() >> 1 == 0
}

/// Whether the assumption holds for all columns of a program that make it.
pub fn fits(program: &Program, columns: &[HostColumn]) -> bool {
    let mut small = program.columns.iter().zip(columns).filter(|(column, _)| column.small);
    small.all(|(_, rows)| are_small(rows.view()))
}

#[cfg(test)]
mod tests {
    use super::are_small;
    use crate::ir::SMALL_ROWS;

    #[test]
    fn rows_are_small_up_to_both_ends() {
        let (from, to) = SMALL_ROWS;
        assert!(are_small(&[]) && are_small(&[from, -1, 0, 1, to]));
        for beyond in [from - 1, to + 1, i64::MIN, i64::MAX, 1 << 40, -(1 << 40)] {
            assert!(!are_small(&[0, beyond, 3]), "{beyond}");
        }
    }
}
