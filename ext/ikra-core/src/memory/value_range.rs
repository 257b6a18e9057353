//! Checks the value-range assumption that a program makes for some columns of Integers.
//!
//! Here: the check of their rows before a launch ([`crate::ir::Column::ranged`]). Not here: what happens to a section
//! whose Integers are outside the range.

use super::column::HostColumn;
use crate::ir::{ASSUMED_ROWS, Program};

/// Whether all rows are within [`ASSUMED_ROWS`].
pub fn all_in_range(rows: &[i64]) -> bool {
    // the range holds a power of two of numbers: counted from its start, a number outside has a bit above that power
    const { assert!(ASSUMED_ROWS.0 == -ASSUMED_ROWS.1 - 1 && (ASSUMED_ROWS.1 + 1).count_ones() == 1) };
    let beyond = rows.iter().fold(0, |beyond, x| beyond | x.wrapping_sub(ASSUMED_ROWS.0) as u64);
    beyond >> (ASSUMED_ROWS.1 + 1).trailing_zeros() >> 1 == 0
}

/// Whether the assumption holds for all columns of a program that make it.
pub fn holds(program: &Program, columns: &[HostColumn]) -> bool {
    let mut ranged = program.columns.iter().zip(columns).filter(|(column, _)| column.ranged);
    ranged.all(|(_, rows)| all_in_range(rows.view()))
}

#[cfg(test)]
mod tests {
    use super::all_in_range;
    use crate::ir::ASSUMED_ROWS;

    #[test]
    fn rows_are_in_range_up_to_both_ends() {
        let (from, to) = ASSUMED_ROWS;
        assert!(all_in_range(&[]) && all_in_range(&[from, -1, 0, 1, to]));
        for beyond in [from - 1, to + 1, i64::MIN, i64::MAX, 1 << 40, -(1 << 40)] {
            assert!(!all_in_range(&[0, beyond, 3]), "{beyond}");
        }
    }
}
