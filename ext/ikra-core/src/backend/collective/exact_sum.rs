//! The exactly rounded sum of Floats.
//!
//! Here: [`ExactSum`], a fixed-point number with a bit for every bit that a Float may have. So the sum does not depend
//! on the order of its terms. It is rounded once, to the nearest Float, ties to even. Not here: compensated sums, which
//! are those of Ruby's `sum` ([`super::reduce`]).
//!
//! Source: U. Kulisch and W. Miranker, *The arithmetic of the digital computer: a new approach* (1986): the long
//! accumulator. Cost: three additions for a term, [`WORDS`] words for a sum.

use crate::memory::room;

/// The payload of a word. The other bits are carries that have not been propagated.
const BITS: u32 = 32;
/// Bits from the least one of a denormal number (2⁻¹⁰⁷⁴) to the greatest one of a Float, and room for carries.
const WORDS: usize = 68;
/// Each addition adds less than 2³² to a word. So a word holds this many.
const MAX_PENDING: u32 = 1 << 30;
/// The bits of a Float's fraction.
const FRACTION: u32 = 52;

/// A sum of Floats.
#[derive(Clone)]
pub struct ExactSum {
    words: [i64; WORDS],
    pending: u32,
    /// The sum of the terms that are infinite or NaN, if there are any.
    special: Option<f64>,
    /// Whether all terms were -0.0.
    negative_zero: bool,
}

impl Default for ExactSum {
    fn default() -> Self {
        Self { words: [0; WORDS], pending: 0, special: None, negative_zero: true }
    }
}

impl ExactSum {
    pub fn add(&mut self, x: f64) {
        let bits = x.to_bits();
        self.negative_zero &= bits == (-0.0_f64).to_bits();
        let exponent = (bits >> FRACTION & 0x7ff) as u32;
        let fraction = bits & ((1 << FRACTION) - 1);
        if exponent == 0x7ff {
            self.special = Some(self.special.map_or(x, |other| other + x));
            return;
        }
        let implicit = if exponent == 0 { 0 } else { 1 << FRACTION };
        let place = exponent.max(1) - 1;
        let shifted = u128::from(fraction | implicit) << (place % BITS);
        let first = (place / BITS) as usize;
        for (k, word) in self.words[first..first + 3].iter_mut().enumerate() {
            let part = (shifted >> (BITS as usize * k)) as u32;
            *word += if x.is_sign_negative() { -i64::from(part) } else { i64::from(part) };
        }
        self.pending += 1;
        if self.pending == MAX_PENDING {
            self.carry();
        }
    }

    /// Adds an Integer, exactly.
    pub fn add_int(&mut self, x: i128) {
        // -1074 is the place of bit 0, so 1 is at 1074
        const ONE: u32 = 1074;
        self.negative_zero = false;
        let magnitude = x.unsigned_abs();
        for k in 0..4 {
            let part = u64::from((magnitude >> (BITS * k)) as u32) << (ONE % BITS);
            for (at, part) in [part as u32, (part >> BITS) as u32].into_iter().enumerate() {
                let word = &mut self.words[(ONE / BITS + k) as usize + at];
                *word += if x < 0 { -i64::from(part) } else { i64::from(part) };
            }
        }
        self.pending += 2;
        if self.pending >= MAX_PENDING {
            self.carry();
        }
    }

    /// Propagates carries. Then all words but the last are from 0 to 2³² - 1. The last one has the sign.
    fn carry(&mut self) {
        let mut carry = 0;
        for word in &mut self.words[..WORDS - 1] {
            let sum = *word + carry;
            *word = sum & ((1 << BITS) - 1);
            carry = sum >> BITS;
        }
        self.words[WORDS - 1] += carry;
        self.pending = 0;
    }

    /// The sum, rounded to nearest, ties to even. -0.0 if all terms were -0.0.
    pub fn rounded(mut self) -> f64 {
        if let Some(special) = self.special {
            return special;
        }
        self.carry();
        let negative = self.words[WORDS - 1] < 0;
        if negative {
            self.words.iter_mut().for_each(|word| *word = -*word);
            self.carry();
        }
        let Some(top) = self.words.iter().rposition(|word| *word != 0) else {
            return if self.negative_zero { -0.0 } else { 0.0 };
        };
        // The place of the greatest bit. The last word holds only carries, so it is small.
        let highest = top as u32 * BITS + self.words[top].ilog2();
        let lowest = highest.saturating_sub(FRACTION);
        let mut number = self.bits(lowest, highest);
        let rest = |below: u32| (0..below / BITS).any(|k| self.words[k as usize] != 0) || self.low(below) != 0;
        if lowest > 0 && self.bits(lowest - 1, lowest - 1) == 1 && (number & 1 == 1 || rest(lowest - 1)) {
            number += 1;
        }
        // A carry out of the fraction makes the next exponent; below 2⁵², a number is denormal and its own bits.
        let bits = if lowest == 0 { number } else { (u64::from(lowest) << FRACTION) + number };
        let rounded = if bits >= 0x7ff << FRACTION { f64::INFINITY } else { f64::from_bits(bits) };
        if negative { -rounded } else { rounded }
    }

    /// Floats whose exact sum this is, the greatest first. One that is infinite or NaN, or a zero, stands alone.
    pub fn parts(mut self) -> Vec<f64> {
        let mut parts = Vec::new();
        loop {
            let rounded = self.clone().rounded();
            // a sum beyond all Floats is no infinity before all is added
            let part = if self.special.is_none() { rounded.clamp(f64::MIN, f64::MAX) } else { rounded };
            if part != 0.0 || parts.is_empty() {
                room::push(&mut parts, part);
            }
            if part == 0.0 || self.special.is_some() {
                return parts;
            }
            self.add(-part);
        }
    }

    /// The bits of the word with the bit at `end` that are below that bit.
    fn low(&self, end: u32) -> i64 {
        self.words[(end / BITS) as usize] & ((1 << (end % BITS)) - 1)
    }

    /// The bits from one place to another, at most 53.
    fn bits(&self, from: u32, to: u32) -> u64 {
        let first = (from / BITS) as usize;
        let words = (first..(first + 3).min(WORDS)).map(|k| (self.words[k] as u128) << (BITS as usize * (k - first)));
        let all = words.fold(0, |all, word| all | word) >> (from % BITS);
        (all & ((1 << (to - from + 1)) - 1)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Random;
    use super::*;

    fn sum(terms: &[f64]) -> f64 {
        let mut sum = ExactSum::default();
        terms.iter().for_each(|x| sum.add(*x));
        sum.rounded()
    }

    #[test]
    fn a_sum_is_rounded_once() {
        assert_eq!(sum(&[0.1; 10]), 1.0);
        assert_eq!(sum(&[1e100, 1.0, -1e100]), 1.0);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0]), 1.0);
        assert_eq!(sum(&[1.0, f64::EPSILON / 2.0, 5e-324]), 1.0 + f64::EPSILON);
        assert_eq!(sum(&[5e-324, 5e-324, -1e-320]), -9.99e-321);
        assert_eq!(sum(&[f64::MIN_POSITIVE, -5e-324]), f64::from_bits(f64::MIN_POSITIVE.to_bits() - 1));
    }

    #[test]
    fn zeroes_infinities_and_nans_are_those_of_plain_additions() {
        assert_eq!(sum(&[-0.0, -0.0]).to_bits(), (-0.0_f64).to_bits());
        assert_eq!(sum(&[-0.0, 0.0]).to_bits(), 0);
        assert_eq!(sum(&[1.5, -1.5]).to_bits(), 0);
        assert_eq!(sum(&[f64::INFINITY, -1e308]), f64::INFINITY);
        assert!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).is_nan());
        assert!(sum(&[f64::NAN, 1.0]).is_nan());
    }

    #[test]
    fn one_term_and_pairs_are_as_the_processor_rounds_them() {
        let mut random = Random(7);
        for _ in 0..200_000 {
            let [x, y] = [0, 1].map(|_| f64::from_bits(random.word()));
            if x.is_finite() && y.is_finite() {
                assert_eq!(sum(&[x]), x);
                assert_eq!(sum(&[x, y]), x + y, "{x:e} {y:e}");
                let near = f64::from_bits(x.to_bits() ^ random.word() >> 12 ^ (random.word() & 3) << 52);
                assert!(near.is_nan() || sum(&[x, near]) == x + near, "{x:e} {near:e}");
            }
        }
    }

    #[test]
    fn integers_are_added_exactly() {
        for x in [0, 1, -1, 1 << 53, (1 << 53) + 1, i128::from(i64::MIN), i128::from(u64::MAX) * 3] {
            for y in [0.0, 0.5, -0.25, 1e16, -1e300] {
                let mut sum = ExactSum::default();
                sum.add(y);
                sum.add_int(x);
                let parts = [x >> 64 << 64, x & (0xffff_ffff << 32), x & 0xffff_ffff].map(|part| part as f64);
                assert_eq!(sum.rounded(), self::sum(&[y, parts[0], parts[1], parts[2]]), "{x} {y}");
            }
        }
    }

    #[test]
    fn parts_of_sums_lose_nothing() {
        let parts = |terms: &[f64]| {
            let mut sum = ExactSum::default();
            terms.iter().for_each(|x| sum.add(*x));
            sum.parts()
        };
        assert_eq!(parts(&[0.5, 0.25]), [0.75]);
        assert_eq!(parts(&[1.0, 1e-300, 1e300]), [1e300, 1.0, 1e-300]);
        assert_eq!(parts(&[f64::MAX, f64::MAX]), [f64::MAX, f64::MAX]);
        assert_eq!(sum(&[parts(&[f64::MAX, f64::MAX]), parts(&[-f64::MAX])].concat()), f64::MAX);
        assert_eq!(parts(&[f64::INFINITY, 1.0]), [f64::INFINITY]);
        assert!(matches!(parts(&[f64::NAN, 1.0])[..], [one] if one.is_nan()));
        for (terms, zero) in [(vec![-0.0; 3], -0.0_f64), (vec![-0.0, 0.0], 0.0), (vec![1.5, -1.5], 0.0)] {
            assert!(matches!(parts(&terms)[..], [one] if one.to_bits() == zero.to_bits()), "{terms:?}");
        }
        let mut random = Random(5);
        for _ in 0..2_000 {
            let mut terms: Vec<f64> = (0..random.word() % 40).map(|_| f64::from_bits(random.word())).collect();
            terms.retain(|term| term.is_finite());
            let negated: Vec<f64> = terms.iter().map(|x| -x).collect();
            assert_eq!(sum(&[parts(&terms), negated].concat()), 0.0, "{terms:?}");
        }
    }

    #[test]
    fn the_order_of_terms_does_not_matter() {
        let mut random = Random(11);
        for _ in 0..200 {
            let scale = |word: u64| (word as i64 >> 12) as f64 * 2f64.powi((word & 0xff) as i32 - 128);
            let mut terms: Vec<f64> = (0..50).map(|_| scale(random.word())).collect();
            let forward = sum(&terms);
            terms.reverse();
            assert_eq!(sum(&terms), forward);
            let negated: Vec<f64> = terms.iter().map(|x| -x).collect();
            assert_eq!(sum(&negated), -forward);
            terms.extend(negated);
            assert_eq!(sum(&terms), 0.0);
        }
    }
}
