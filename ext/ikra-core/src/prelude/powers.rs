//! Powers of ten for the shortest digits of Floats.
//!
//! Here: the table that `Float#to_s` reads, by exact arithmetic. Not here: the algorithm (`string_functions.rb`). It is
//! Schubfach (Giulietti, "The Schubfach way to render doubles", 2020).
//!
//! For each k from [`LEAST`] to [`GREATEST`], g is floor(10^-k · 2^r) + 1 with the r for which it has 126 bits. An
//! entry is g >> 63 and the 63 bits below, in 8 bytes each, the lowest first.

use once_cell::sync::Lazy;

const LEAST: i32 = -324;
const GREATEST: i32 = 292;
/// The bits of g.
const BITS: usize = 126;

/// The table's bytes.
pub fn table() -> &'static [u8] {
    static TABLE: Lazy<Vec<u8>> = Lazy::new(build);
    &TABLE
}

fn build() -> Vec<u8> {
    let mut entries = vec![0; (GREATEST - LEAST + 1) as usize];
    let mut positive = vec![1];
    for n in 0..=-LEAST {
        entries[(-n - LEAST) as usize] = top(&positive);
        multiply(&mut positive);
    }
    // enough bits that 126 are left
    let mut negative = vec![0; 40];
    negative.push(1);
    for n in 0..=GREATEST {
        if n > 0 {
            entries[(n - LEAST) as usize] = top(&negative);
        }
        divide(&mut negative);
    }
    let words = entries.into_iter().map(|floor| floor + 1).flat_map(|g: u128| [g >> 63, g & (u128::MAX >> 65)]);
    words.flat_map(|word| (word as u64).to_le_bytes()).collect()
}

/// Multiplies digits to the base 2^32, the lowest first, by ten.
fn multiply(digits: &mut Vec<u32>) {
    let mut carry = 0;
    for digit in digits.iter_mut() {
        let product = u64::from(*digit) * 10 + carry;
        *digit = product as u32;
        carry = product >> 32;
    }
    if carry > 0 {
        digits.push(carry as u32);
    }
}

/// Divides them by ten, and drops the rest.
fn divide(digits: &mut Vec<u32>) {
    let mut rest = 0;
    for digit in digits.iter_mut().rev() {
        let part = rest << 32 | u64::from(*digit);
        *digit = (part / 10) as u32;
        rest = part % 10;
    }
    while digits.last() == Some(&0) {
        digits.pop();
    }
}

/// Their highest 126 bits.
fn top(digits: &[u32]) -> u128 {
    let last = digits.last().expect("not zero");
    let bits = digits.len() * 32 - last.leading_zeros() as usize;
    let bit = |at: usize| u128::from(digits[at / 32] >> (at % 32) & 1);
    (0..BITS).fold(0, |top, at| top << 1 | bits.checked_sub(at + 1).map_or(0, bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(k: i32) -> (u64, u64) {
        let at = (k - LEAST) as usize * 16;
        let word = |at: usize| u64::from_le_bytes(table()[at..at + 8].try_into().unwrap());
        (word(at), word(at + 8))
    }

    #[test]
    fn entries_are_those_of_the_paper() {
        assert_eq!(table().len(), 617 * 16);
        assert_eq!(entry(0), (1 << 62, 1));
        assert_eq!(entry(-1), (5 << 60, 1));
        // 2^128 / 10 = 0x1999…, whose highest bit is moved to bit 125
        assert_eq!(entry(1), (0x6666_6666_6666_6666, 0x3333_3333_3333_3334));
        for k in LEAST..=GREATEST {
            assert_eq!(entry(k).0 >> 62, 1, "{k}");
            assert_eq!(entry(k).1 >> 63, 0, "{k}");
        }
    }
}
