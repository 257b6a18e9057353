//! Combines what elements contributed to a captured local into one value.
//!
//! Here: [`combine`], a pure function of the start value and each element's contribution. Not here: how the
//! contributions of one element (one per tick) become one; kernels do that.
//!
//! Integers are combined in 128 bits, so the order does not matter. Floats are added (or multiplied) by a pairwise tree
//! over the element indices. The tree halves the range of indices until single elements are left, and skips elements
//! that contributed nothing. Last, the start value is combined with the result of the tree, as its left operand. So
//! equal numbers give the same sum on every backend and number of threads. The sum may differ from Ruby's in the last
//! digits.

use crate::types::combine::{Combine, Equals};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    fn float(self) -> f64 {
        match self {
            Number::Int(i) => i as f64,
            Number::Float(f) => f,
        }
    }
    fn is_nan(self) -> bool {
        matches!(self, Number::Float(f) if f.is_nan())
    }
}

/// The result does not fit 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

/// Combines `start` with the contributions of elements `0..len`. `None` as a contribution: the element contributed
/// nothing.
///
/// [`Combine::Last`] is done elsewhere, because it takes values of all kinds.
///
/// # Errors
/// When an Integer does not fit 128 bits.
///
/// # Panics
/// For [`Combine::Last`], and for bit operations on Floats.
pub fn combine(
    how: Combine,
    start: Number,
    len: usize,
    contribution: &mut dyn FnMut(usize) -> Option<Number>,
) -> Result<Number, Overflow> {
    let all = tree(0, len, &mut |i| contribution(i), &|a, b| two(how, a, b))?;
    with_start(how, start, all)
}

/// As [`combine`], of Floats that lie in a column. It takes a few nanoseconds for each. `written`: an element whose
/// number is negative contributed nothing.
///
/// # Errors
/// As [`combine`].
///
/// # Panics
/// As [`combine`].
pub fn combine_floats(how: Combine, start: Number, written: &[i64], values: &[f64]) -> Result<Number, Overflow> {
    let mut contribution = |i: usize| (written[i] >= 0).then(|| values[i]);
    let len = written.len();
    let all = match how {
        Combine::Add => tree(0, len, &mut contribution, &|a, b| Ok(a + b)),
        Combine::Mul => tree(0, len, &mut contribution, &|a, b| Ok(a * b)),
        _ => tree(0, len, &mut contribution, &|a, b| Ok(two(how, Number::Float(a), Number::Float(b))?.float())),
    };
    with_start(how, start, all?.map(Number::Float))
}

fn with_start(how: Combine, start: Number, all: Option<Number>) -> Result<Number, Overflow> {
    match (all, start) {
        (Some(all), start) if !(start.is_nan() && matches!(how, Combine::Min(_) | Combine::Max(_))) => {
            two(how, start, all)
        }
        // no contribution is less or greater than a NaN as start value
        _ => Ok(start),
    }
}

fn tree<T: Copy>(
    from: usize,
    to: usize,
    contribution: &mut impl FnMut(usize) -> Option<T>,
    two: &impl Fn(T, T) -> Result<T, Overflow>,
) -> Result<Option<T>, Overflow> {
    match to - from {
        0 => Ok(None),
        1 => Ok(contribution(from)),
        length => {
            // the recursion is as deep as a balanced tree over at most 2^32 elements
            let middle = from + length / 2;
            let left = tree(from, middle, contribution, two)?;
            let right = tree(middle, to, contribution, two)?;
            match (left, right) {
                (Some(a), Some(b)) => two(a, b).map(Some),
                (a, b) => Ok(a.or(b)),
            }
        }
    }
}

fn two(how: Combine, a: Number, b: Number) -> Result<Number, Overflow> {
    use Number::{Float, Int};
    let int = |result: Option<i128>| result.map(Int).ok_or(Overflow);
    match (how, a, b) {
        (Combine::Add, Int(a), Int(b)) => int(a.checked_add(b)),
        (Combine::Mul, Int(a), Int(b)) => int(a.checked_mul(b)),
        (Combine::Add, a, b) => Ok(Float(a.float() + b.float())),
        (Combine::Mul, a, b) => Ok(Float(a.float() * b.float())),
        (Combine::And, Int(a), Int(b)) => Ok(Int(a & b)),
        (Combine::Or, Int(a), Int(b)) => Ok(Int(a | b)),
        (Combine::Xor, Int(a), Int(b)) => Ok(Int(a ^ b)),
        // a contribution that is NaN counts as none
        (Combine::Min(_) | Combine::Max(_), a, b) if a.is_nan() || b.is_nan() => Ok(if a.is_nan() { b } else { a }),
        (Combine::Min(Equals::Earliest), a, b) => Ok(if less(b, a) { b } else { a }),
        (Combine::Max(Equals::Earliest), a, b) => Ok(if less(a, b) { b } else { a }),
        (Combine::Min(Equals::Latest), a, b) => Ok(if less(a, b) { a } else { b }),
        (Combine::Max(Equals::Latest), a, b) => Ok(if less(b, a) { a } else { b }),
        (Combine::And | Combine::Or | Combine::Xor, ..) => panic!("bits of a Float"),
        (Combine::Last, ..) => panic!("the last writer's value is not combined"),
    }
}

fn less(a: Number, b: Number) -> bool {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a < b,
        (Number::Float(a), Number::Float(b)) => a < b,
        (Number::Int(a), Number::Float(b)) => int_less(a, b),
        (Number::Float(a), Number::Int(b)) => !a.is_nan() && !int_less(b, a) && !int_equal(b, a),
    }
}

/// Compares exactly, as Ruby does.
fn int_less(a: i128, b: f64) -> bool {
    if b.is_nan() {
        return false;
    }
    if b.is_infinite() || b.abs() >= 1e38 {
        return b > 0.0;
    }
    a < b.ceil() as i128
}

fn int_equal(a: i128, b: f64) -> bool {
    b.is_finite() && b.fract() == 0.0 && b.abs() < 1e38 && a == b as i128
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Combine = Combine::Min(Equals::Earliest);
    const MAX: Combine = Combine::Max(Equals::Earliest);

    fn run(how: Combine, start: Number, parts: &[Option<Number>]) -> Result<Number, Overflow> {
        combine(how, start, parts.len(), &mut |i| parts[i])
    }

    #[test]
    fn integers_are_exact_beyond_64_bits_on_the_way() {
        let max = Number::Int(i64::MAX.into());
        let parts = [Some(max), Some(max), Some(Number::Int(-i128::from(i64::MAX)))];
        assert_eq!(run(Combine::Add, Number::Int(0), &parts), Ok(max));
    }

    #[test]
    fn floats_are_added_in_pairs_after_the_start() {
        let parts: Vec<_> = [0.1, 0.2, 0.3, 0.4].into_iter().map(|f| Some(Number::Float(f))).collect();
        let expected = 1.0 + ((0.1 + 0.2) + (0.3 + 0.4));
        assert_eq!(run(Combine::Add, Number::Float(1.0), &parts), Ok(Number::Float(expected)));
    }

    #[test]
    fn floats_of_a_column_come_to_the_same_bits() {
        let values: Vec<f64> = (0..1000).map(|i| (f64::from(i) * 0.37).sin() / 7.0).collect();
        let written: Vec<i64> = (0..1000).map(|i| if i % 7 == 3 { -1 } else { i }).collect();
        let last = Combine::Max(Equals::Latest);
        for len in [0, 1, 2, 3, 8, 999, 1000] {
            for how in [Combine::Add, Combine::Mul, MIN, MAX, last] {
                for start in [Number::Float(0.5), Number::Int(1), Number::Float(f64::NAN)] {
                    let mut part = |i: usize| (written[i] >= 0).then(|| Number::Float(values[i]));
                    let expected = combine(how, start, len, &mut part).map(|n| n.float().to_bits());
                    let found = combine_floats(how, start, &written[..len], &values).map(|n| n.float().to_bits());
                    assert_eq!(found, expected, "{how:?} {start:?} {len}");
                }
            }
        }
    }

    #[test]
    fn those_who_contribute_nothing_are_left_out() {
        assert_eq!(run(Combine::Mul, Number::Int(3), &[None, None]), Ok(Number::Int(3)));
        assert_eq!(run(MIN, Number::Int(3), &[None, Some(Number::Int(2))]), Ok(Number::Int(2)));
    }

    #[test]
    fn of_equals_the_earliest_stays_or_the_latest_and_nan_does_not_come_in() {
        let parts = [Some(Number::Float(f64::NAN)), Some(Number::Int(2)), Some(Number::Float(2.0))];
        assert_eq!(run(MAX, Number::Int(1), &parts[1..]), Ok(Number::Int(2)));
        assert_eq!(run(Combine::Max(Equals::Latest), Number::Int(1), &parts[1..]), Ok(Number::Float(2.0)));
        assert_eq!(run(Combine::Min(Equals::Latest), Number::Int(2), &parts[2..]), Ok(Number::Float(2.0)));
        assert_eq!(run(MAX, Number::Int(1), &parts[..1]), Ok(Number::Int(1)));
    }

    #[test]
    fn what_comes_after_a_nan_still_counts() {
        let float = |f| Some(Number::Float(f));
        // the NaN may come first anywhere in the tree
        for parts in [[f64::NAN, -2.5, 3.0, 1.0], [3.0, 1.0, f64::NAN, -2.5], [f64::NAN, f64::NAN, f64::NAN, -2.5]] {
            assert_eq!(run(MIN, Number::Float(9.0), &parts.map(float)), Ok(Number::Float(-2.5)), "{parts:?}");
            let parts = parts.map(|f: f64| float(-f));
            assert_eq!(run(MAX, Number::Float(-9.0), &parts), Ok(Number::Float(2.5)), "{parts:?}");
        }
    }

    #[test]
    fn a_start_that_is_nan_stays() {
        let found = run(MIN, Number::Float(f64::NAN), &[Some(Number::Float(1.0)), Some(Number::Int(0))]);
        assert!(found.is_ok_and(Number::is_nan));
    }

    #[test]
    fn a_product_beyond_128_bits_is_an_error() {
        let parts = [Some(Number::Int(i128::MAX)), Some(Number::Int(2))];
        assert_eq!(run(Combine::Mul, Number::Int(1), &parts), Err(Overflow));
    }
}
