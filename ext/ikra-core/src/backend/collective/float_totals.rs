//! Totals of Floats in tables: least and greatest ones, and exact sums.
//!
//! Here: the words in which tables keep Floats, and when they cannot. For `min` and `max`, a Float is an Integer whose
//! order is that of Floats. For `+`, a sum is a fixed-point number ([`FixedSum`]), so it does not depend on the order
//! of its terms. It is rounded once, as [`super::exact_sum::ExactSum`] is. Not here: the tables ([`super::emitted`]),
//! and the same on devices (`groups.cuh`).
//!
//! Some Floats are not for tables: NaN, and for sums all with bits outside of the fixed-point numbers. Then the groups
//! of the launch mean nothing. -0.0 counts as 0.0. If there was a -0.0 and a total is zero, its sign is unknown, and
//! groups mean nothing, either.

use super::emitted::Combine;
use crate::memory::room;

/// The words of a fixed-point number.
pub const WORDS: usize = 3;
/// The place of its lowest bit: that bit means 2 to this power.
const LOWEST: i32 = -96;
/// Bits for the sign, and for carries out of 2⁴⁴ terms. No launch has so many.
const SPARE: u32 = 45;
/// The bits of a Float's fraction, and the exponent of a Float whose fraction ends with the lowest bit.
const FRACTION: u32 = 52;
pub const FIRST_EXPONENT: i32 = 1023 + FRACTION as i32 + LOWEST;
/// The greatest number of places by which a fraction is shifted.
pub const MAX_SHIFT: i32 = (WORDS as u32 * 64 - SPARE - FRACTION - 1) as i32;

const SIGN: u64 = 1 << 63;

/// What the values of a launch were, beside those that tables take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Some value was not for tables.
    pub refused: bool,
    pub negative_zero: bool,
}

impl Seen {
    /// The word of a value with these bits. Where it is refused, the word means nothing.
    #[inline]
    pub fn word(&mut self, combine: Combine, bits: i64) -> i64 {
        if bits as u64 == SIGN {
            self.negative_zero = true;
            return 0;
        }
        if combine == Combine::Sum {
            self.refused |= FixedSum::of(bits).is_none();
            return bits;
        }
        self.refused |= f64::from_bits(bits as u64).is_nan();
        ordered(bits)
    }

    pub fn merge(&mut self, other: Self) {
        self.refused |= other.refused;
        self.negative_zero |= other.negative_zero;
    }
}

/// An Integer for the bits of a Float that is no NaN, and back: greater Floats have greater Integers.
pub fn ordered(bits: i64) -> i64 {
    bits ^ (bits >> 63 & i64::MAX)
}

/// A sum of Floats in fixed point, in two's complement. The lowest word is the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedSum(pub [u64; WORDS]);

impl FixedSum {
    /// None where some bits of a value are outside.
    #[inline]
    pub fn of(bits: i64) -> Option<Self> {
        let exponent = (bits as u64 >> FRACTION & 0x7ff) as i32;
        let fraction = bits as u64 & ((1 << FRACTION) - 1);
        if exponent == 0 {
            return (fraction == 0).then_some(Self::default());
        }
        let (mut number, mut shift) = (fraction | 1 << FRACTION, exponent - FIRST_EXPONENT);
        if shift < 0 {
            if number.trailing_zeros() < -shift as u32 {
                return None;
            }
            (number, shift) = (number >> -shift, 0);
        }
        if shift > MAX_SHIFT {
            return None;
        }
        let (first, place) = (shift as usize / 64, shift as u32 % 64);
        let mut words = [0; WORDS];
        words[first] = number << place;
        if place > 0 && first + 1 < WORDS {
            words[first + 1] = number >> (64 - place);
        }
        let sum = Self(words);
        Some(if bits < 0 { sum.negated() } else { sum })
    }

    fn negated(self) -> Self {
        let mut sum = Self(self.0.map(|word| !word));
        sum.add(Self(std::array::from_fn(|at| u64::from(at == 0))));
        sum
    }

    #[inline]
    pub fn add(&mut self, other: Self) {
        let mut carry = false;
        for (word, other) in self.0.iter_mut().zip(other.0) {
            let (sum, first) = word.overflowing_add(other);
            let (sum, second) = sum.overflowing_add(carry.into());
            (*word, carry) = (sum, first | second);
        }
    }

    pub fn is_zero(self) -> bool {
        self.0 == [0; WORDS]
    }

    /// The sum, rounded to nearest, ties to even. All bits are those of ordinary Floats, so none is lost.
    pub fn rounded(self) -> f64 {
        let negative = self.0[WORDS - 1] >> 63 == 1;
        let words = if negative { self.negated().0 } else { self.0 };
        let Some(top) = words.iter().rposition(|word| *word != 0) else { return 0.0 };
        let highest = top as u32 * 64 + words[top].ilog2();
        let lowest = highest.saturating_sub(FRACTION);
        let bits = |from: u32| {
            let (first, place) = (from as usize / 64, from % 64);
            let above = if place > 0 && first + 1 < WORDS { words[first + 1] << (64 - place) } else { 0 };
            words[first] >> place | above
        };
        let mut number = bits(lowest) & ((1 << (FRACTION + 1)) - 1);
        if lowest > 0 && bits(lowest - 1) & 1 == 1 {
            let below = lowest - 1;
            let first = below as usize / 64;
            let is_tie = words[..first].iter().all(|word| *word == 0) && words[first] & ((1 << (below % 64)) - 1) == 0;
            number += u64::from(!is_tie || number & 1 == 1);
        }
        let rounded = number as f64 * 2f64.powi(lowest as i32 + LOWEST);
        if negative { -rounded } else { rounded }
    }

    /// Floats whose sum this is: at least one, and more only if none is zero.
    pub fn parts(self) -> Vec<f64> {
        let negative = self.0[WORDS - 1] >> 63 == 1;
        let words = if negative { self.negated().0 } else { self.0 };
        let mut parts = Vec::new();
        for (at, word) in words.into_iter().enumerate() {
            // a Float has 53 bits
            for (half, place) in [(word & u64::from(u32::MAX), 0), (word >> 32, 32)] {
                if half != 0 {
                    let part = half as f64 * 2f64.powi(at as i32 * 64 + place + LOWEST);
                    room::push(&mut parts, if negative { -part } else { part });
                }
            }
        }
        if parts.is_empty() {
            room::push(&mut parts, 0.0);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::super::exact_sum::ExactSum;
    use super::super::testing::Random;
    use super::*;

    fn fixed(terms: &[f64]) -> Option<f64> {
        let mut sum = FixedSum::default();
        for term in terms {
            sum.add(FixedSum::of(term.to_bits() as i64)?);
        }
        Some(sum.rounded())
    }

    fn exact(terms: &[f64]) -> f64 {
        let mut sum = ExactSum::default();
        terms.iter().for_each(|x| sum.add(*x));
        sum.rounded()
    }

    #[test]
    fn sums_are_those_of_the_long_accumulator() {
        let mut random = Random(3);
        for round in 0..20_000 {
            // fractions of all lengths, and exponents of all of the window
            let mut term = || {
                let fraction = (random.word() as i64 >> 11 >> (random.word() % 53)) as f64;
                fraction * 2f64.powi((random.word() % 92) as i32 + LOWEST)
            };
            let mut terms: Vec<f64> = (0..1 + round % 9).map(|_| term()).collect();
            if round % 3 == 0 {
                terms.extend(terms.clone().iter().map(|x| -x * 1.5));
            }
            let Some(sum) = fixed(&terms) else { continue };
            assert_eq!(sum, exact(&terms) + 0.0, "{terms:?}");
            let mut all = FixedSum::default();
            terms.iter().for_each(|term| all.add(FixedSum::of(term.to_bits() as i64).unwrap()));
            let parts = all.parts();
            assert!(parts == [0.0] || parts.iter().all(|part| *part != 0.0), "{parts:?}");
            let negated = terms.iter().map(|term| -term);
            let nothing: Vec<f64> = parts.into_iter().chain(negated).collect();
            assert_eq!(exact(&nothing), 0.0, "{terms:?}");
        }
    }

    #[test]
    fn sums_are_rounded_to_even_at_every_place() {
        for place in [0, 10, 11, 12, 63, 64, 80] {
            let one = 2f64.powi(LOWEST + place);
            for terms in [
                vec![one, one * 2f64.powi(53)],
                vec![one, one * 2f64.powi(53), one * 2.0],
                vec![one * 2f64.powi(53), one * 3.0, one],
                vec![-one, one * 2f64.powi(53)],
                vec![-one, one * -2f64.powi(53)],
                vec![one, one * (2f64.powi(53) - 1.0), one * (2f64.powi(53) - 1.0)],
                vec![one; 5],
            ] {
                if let Some(sum) = fixed(&terms) {
                    assert_eq!(sum, exact(&terms), "{terms:?}");
                }
            }
        }
    }

    #[test]
    fn values_outside_of_the_words_are_refused() {
        let limit = 2f64.powi(WORDS as i32 * 64 - SPARE as i32 + LOWEST);
        for (value, fits) in [
            (0.0, true),
            (2f64.powi(LOWEST), true),
            (2f64.powi(LOWEST - 1), false),
            (2f64.powi(LOWEST) * 1.5, false),
            (0.1, true),
            (limit, false),
            (f64::from_bits(limit.to_bits() - 1), true),
            (5e-324, false),
            (f64::MAX, false),
            (f64::INFINITY, false),
            (f64::NAN, false),
        ] {
            assert_eq!(FixedSum::of(value.to_bits() as i64).is_some(), fits, "{value:e}");
            let negative = FixedSum::of((-value).to_bits() as i64);
            assert_eq!(negative.is_some(), fits, "-{value:e}");
            if fits {
                assert_eq!((fixed(&[value]), fixed(&[-value])), (Some(value), Some(-value)), "{value:e}");
            }
        }
    }

    #[test]
    fn integers_have_the_order_of_floats() {
        let mut random = Random(9);
        for _ in 0..100_000 {
            let [x, y] = [0, 1].map(|_| random.word() as i64);
            let floats = [x, y].map(|bits| f64::from_bits(bits as u64));
            assert_eq!(ordered(ordered(x)), x);
            if let (Some(order), true) = (floats[0].partial_cmp(&floats[1]), floats != [0.0; 2]) {
                assert_eq!(ordered(x).cmp(&ordered(y)), order, "{floats:?}");
            }
        }
    }

    #[test]
    fn nan_is_refused_and_negative_zero_noted() {
        let seen = |combine, value: f64| {
            let mut seen = Seen::default();
            let word = seen.word(combine, value.to_bits() as i64);
            (word, seen)
        };
        for combine in [Combine::Sum, Combine::Min, Combine::Max] {
            assert!(seen(combine, f64::NAN).1.refused && seen(combine, -f64::NAN).1.refused);
            assert_eq!(seen(combine, -0.0), (0, Seen { refused: false, negative_zero: true }));
            assert_eq!(seen(combine, 0.0), (0, Seen::default()));
            assert_eq!(seen(combine, f64::INFINITY).1.refused, combine == Combine::Sum);
        }
    }
}
