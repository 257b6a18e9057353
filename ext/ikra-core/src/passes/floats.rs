//! Intervals of Floats, like the intervals of Integers in [`super::ranges`].
//!
//! A Float is numbered by its place in the order of all Floats ([`key`]), in which -0.0 comes right before 0.0. So an
//! interval of places is an interval of numbers. NaN has no place: each interval means "this, or NaN". So a comparison
//! may be known to fail, as it fails for NaN too, but never known to hold (for `!=` the opposite).
//!
//! Here: the places, and the results of arithmetic on intervals of them. Rounding keeps the order, so the ends of an
//! interval bound all results.

use crate::ir::{Cmp, Op};

type Interval = (i64, i64);

/// The interval of all Floats.
pub const FULL: Interval = (i64::MIN, i64::MAX);

/// The place of a number that is not NaN; 0 is that of 0.0.
pub fn key(x: f64) -> i64 {
    let bits = x.to_bits() as i64;
    if bits < 0 { !(bits & i64::MAX) } else { bits }
}

/// The number at a place; at a place beyond infinity it is infinite.
fn number(key: i64) -> f64 {
    let (least, most) = (self::key(f64::NEG_INFINITY), self::key(f64::INFINITY));
    let key = key.clamp(least, most);
    f64::from_bits(if key < 0 { (!key as u64) | 1 << 63 } else { key as u64 })
}

/// The interval of the number with these bits.
pub fn constant(bits: u64) -> Interval {
    let x = f64::from_bits(bits);
    if x.is_nan() { FULL } else { (key(x), key(x)) }
}

pub fn may_be_minus_zero((lo, hi): Interval) -> bool {
    (lo..=hi).contains(&key(-0.0))
}

/// The interval of an Integer converted to a Float.
pub fn of_integers((lo, hi): Interval) -> Interval {
    (key(lo as f64), key(hi as f64))
}

/// The interval of the result of an operation on Floats. `same`: both operands are one register.
pub fn result(op: Op, a: Interval, b: Interval, same: bool) -> Interval {
    let (x, y) = ([number(a.0), number(a.1)], [number(b.0), number(b.1)]);
    let between = |corners: &[f64]| {
        if corners.iter().any(|c| c.is_nan()) {
            return FULL;
        }
        let keys = corners.iter().map(|c| key(*c));
        keys.clone().min().zip(keys.max()).unwrap_or(FULL)
    };
    match op {
        // No square is -0.0.
        Op::FMul if same => (key(0.0), between(&[x[0] * x[0], x[1] * x[1]]).1),
        Op::FMul => between(&[x[0] * y[0], x[0] * y[1], x[1] * y[0], x[1] * y[1]]),
        Op::FAdd => between(&[x[0] + y[0], x[1] + y[1]]),
        Op::FSub if !same => between(&[x[0] - y[1], x[1] - y[0]]),
        Op::FNeg => (key(-x[1]), key(-x[0])),
        Op::FAbs => (key(0.0), key(x[0].abs().max(x[1].abs()))),
        Op::FSingle => {
            let single = |x: f64| f64::from(x as f32);
            (key(single(x[0])), key(single(x[1])))
        }
        Op::FSqrt if x[0] >= 0.0 => (key(x[0].sqrt()), key(x[1].sqrt())),
        _ => FULL,
    }
}

/// The answer of a comparison, if it is known, NaN or not.
pub fn compare(cmp: Cmp, a: Interval, b: Interval) -> Option<bool> {
    let (x, y) = ([number(a.0), number(a.1)], [number(b.0), number(b.1)]);
    let apart = x[1] < y[0] || x[0] > y[1];
    match cmp {
        Cmp::Lt => (x[0] >= y[1]).then_some(false),
        Cmp::Le => (x[0] > y[1]).then_some(false),
        Cmp::Gt => (x[1] <= y[0]).then_some(false),
        Cmp::Ge => (x[1] < y[0]).then_some(false),
        Cmp::Eq => apart.then_some(false),
        Cmp::Ne => apart.then_some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::{compare, constant, key, number, result};
    use crate::ir::{Cmp, Op};

    const NUMBERS: [f64; 13] = [
        f64::NEG_INFINITY,
        f64::MIN,
        -2.5,
        -1.0,
        -f64::MIN_POSITIVE,
        -0.0,
        0.0,
        5e-324,
        0.5,
        1.0,
        3e200,
        f64::MAX,
        f64::INFINITY,
    ];

    #[test]
    fn places_are_in_the_order_of_numbers() {
        for pair in NUMBERS.windows(2) {
            assert!(key(pair[0]) < key(pair[1]), "{pair:?}");
        }
        for x in NUMBERS {
            assert_eq!(number(key(x)).to_bits(), x.to_bits());
        }
        assert_eq!(constant(f64::NAN.to_bits()), super::FULL);
    }

    #[test]
    fn minus_zero_is_a_place_of_its_own() {
        assert!(super::may_be_minus_zero((key(-1.0), key(-0.0))));
        assert!(super::may_be_minus_zero(super::FULL));
        assert!(!super::may_be_minus_zero((key(0.0), key(1.0))));
    }

    /// Every interval between two of the numbers.
    fn intervals() -> impl Iterator<Item = (usize, usize)> {
        (0..NUMBERS.len()).flat_map(|lo| (lo..NUMBERS.len()).map(move |hi| (lo, hi)))
    }

    #[test]
    fn results_lie_where_they_are_said_to_lie() {
        let apply = |op: Op, x: f64, y: f64| match op {
            Op::FMul => x * y,
            Op::FAdd => x + y,
            Op::FSub => x - y,
            Op::FNeg => -x,
            Op::FAbs => x.abs(),
            Op::FSingle => f64::from(x as f32),
            _ => x.sqrt(),
        };
        for op in [Op::FMul, Op::FAdd, Op::FSub, Op::FNeg, Op::FAbs, Op::FSqrt, Op::FSingle] {
            for a in intervals() {
                for b in intervals() {
                    let place = |(lo, hi): (usize, usize)| (key(NUMBERS[lo]), key(NUMBERS[hi]));
                    let check = |z: f64, (lo, hi): (i64, i64)| {
                        assert!(z.is_nan() || (lo..=hi).contains(&key(z)), "{op:?} {a:?} {b:?}: {z}");
                    };
                    for x in &NUMBERS[a.0..=a.1] {
                        check(apply(op, *x, *x), result(op, place(a), place(a), true));
                        for y in &NUMBERS[b.0..=b.1] {
                            check(apply(op, *x, *y), result(op, place(a), place(b), false));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn comparisons_are_known_where_all_numbers_and_nan_answer_alike() {
        for cmp in [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge] {
            for a in intervals() {
                for b in intervals() {
                    let place = |(lo, hi): (usize, usize)| (key(NUMBERS[lo]), key(NUMBERS[hi]));
                    let Some(answer) = compare(cmp, place(a), place(b)) else { continue };
                    assert_eq!(cmp.holds(&f64::NAN, &1.0), answer);
                    for x in &NUMBERS[a.0..=a.1] {
                        for y in &NUMBERS[b.0..=b.1] {
                            assert_eq!(cmp.holds(x, y), answer, "{x} {cmp:?} {y}");
                        }
                    }
                }
            }
        }
    }
}
