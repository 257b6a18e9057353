//! Checks the value-range assumption that a program makes for some columns of Integers.
//!
//! Here: the check of their rows before a launch ([`crate::ir::Column::ranged`]). Not here: what happens to a section
//! whose Integers are outside the range.

use super::column::HostColumn;
use crate::ir::{AssumedRows, Column, Program};
use crate::world::OutOfRange;

/// What some row is that is outside the range.
pub fn outside(rows: &[i64], assumed: AssumedRows) -> Option<OutOfRange> {
    let (from, to) = assumed.interval();
    // the ranges hold a power of two of numbers: counted from the start, a number outside has a bit above that power
    let size = (to - from + 1) as u64;
    debug_assert!(size.is_power_of_two());
    let beyond = rows.iter().fold(0, |beyond, x| beyond | x.wrapping_sub(from) as u64);
    if beyond < size { None } else { rows.iter().filter_map(|x| OutOfRange::of(*x)).max() }
}

/// The same for all columns of a program.
pub fn any_outside(program: &Program, columns: &[HostColumn]) -> Option<OutOfRange> {
    let of = |(column, rows): (&Column, &HostColumn)| {
        let assumed = column.ranged?;
        outside(rows.view(), assumed)
    };
    program.columns.iter().zip(columns).filter_map(of).max()
}

#[cfg(test)]
mod tests {
    use super::outside;
    use crate::ir::AssumedRows::{Natural, Signed};
    use crate::world::OutOfRange::{Far, Negative};

    #[test]
    fn rows_are_in_range_up_to_both_ends() {
        let (from, to) = Signed.interval();
        assert_eq!(Natural.interval(), (0, to));
        assert_eq!(outside(&[], Natural), None);
        assert_eq!(outside(&[0, 1, to], Natural), None);
        assert_eq!(outside(&[from, -1, 0, 1, to], Signed), None);
        for negative in [-1, from] {
            assert_eq!(outside(&[0, negative, 3], Natural), Some(Negative), "{negative}");
        }
        for beyond in [from - 1, to + 1, i64::MIN, i64::MAX, 1 << 40, -(1 << 40)] {
            assert_eq!(outside(&[-1, beyond, 3], Natural), Some(Far), "{beyond}");
            assert_eq!(outside(&[-1, beyond, 3], Signed), Some(Far), "{beyond}");
        }
    }
}
