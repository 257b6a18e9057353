//! The layout of a Hash in kernels: its keys, its values, and an index over the keys' hashes, as arrays.
//!
//! Here: the names of these parts, the hashes of keys, and the index. Not here: look-up, which is written in Ruby
//! (`prelude/hash_functions.rb`), and Ruby's own Hashes. Invariant: host and kernel hash a key alike, and keys that are
//! `eql?` have the same hash.
//!
//! A constant key needs no look-up in the kernel. The value at that key is a field of every Hash, like an ivar, and the
//! host looks it up ([`KeyField`]). So Hashes with the same keys are rows, and each key that a program names is a
//! column.

use crate::types::Tag;

/// Fields of a Hash, in the order in which a host keeps them. No ivar or member has such a name.
pub const PARTS: [&str; 4] = ["#keys", "#values", "#index", "#default"];

/// Fields of a Hash that a kernel makes. Keys, values and the hashes of the keys stand at places in insertion order; a
/// hash below 0 is that of a key that was deleted. If there are many, an index has places by hashes, as in a Hash of
/// the host. Numbers tell how many places are in use, how many of them have keys, and how many methods go over them.
pub const MADE_PARTS: [&str; 9] = ["keys", "values", "hashes", "index", "used", "live", "walks", "default", "given"];

/// Whether a part of a Hash that a kernel makes is an array, which nothing else refers to.
pub fn is_list(part: &str) -> bool {
    MADE_PARTS[..4].contains(&part)
}

/// A constant key of a Hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConstKey<'a> {
    Str(&'a str),
    Sym(&'a str),
}

/// What a field of a Hash says about a constant key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyField {
    /// The value at the key; without one, the default of the Hash.
    Value,
    /// Whether the Hash has the key.
    Present,
}

/// What the names of these fields begin with.
const VALUE_AT: &str = "#[";
const PRESENT_AT: &str = "#?[";

impl KeyField {
    /// The name of the field for a key, such as `#[age]`, `#[:age]` or `#?[age]`. None for a key that is looked up like
    /// any value: names of columns hold only some characters.
    pub fn name(self, key: ConstKey<'_>) -> Option<String> {
        let begin = if self == KeyField::Value { VALUE_AT } else { PRESENT_AT };
        let plain = |c: char| c.is_ascii_alphanumeric() || "_ -.?!/@$".contains(c);
        match key {
            ConstKey::Str(text) if text.chars().all(plain) => Some(format!("{begin}{text}]")),
            ConstKey::Sym(text) if text.chars().all(plain) => Some(format!("{begin}:{text}]")),
            _ => None,
        }
    }

    /// The field and the key that a name stands for.
    pub fn of(name: &str) -> Option<(Self, ConstKey<'_>)> {
        let (field, rest) = match name.strip_prefix(VALUE_AT) {
            Some(rest) => (KeyField::Value, rest),
            None => (KeyField::Present, name.strip_prefix(PRESENT_AT)?),
        };
        let key = rest.strip_suffix(']')?;
        Some((field, key.strip_prefix(':').map_or(ConstKey::Str(key), ConstKey::Sym)))
    }
}

/// A key that kernels can hash: its tag and payload, a String by its bytes, an Array or a Struct by the hashes of its
/// parts. Other objects have no hash that distinguishes them.
#[derive(Clone, Copy, Debug)]
pub enum Key<'a> {
    Word(i32, u64),
    Str(&'a [u8]),
    Parts(&'a [u64]),
    Object,
}

/// The start value of FNV-1a in 32 bits, and the factor of each step.
const FNV: (u64, u64) = (2_166_136_261, 16_777_619);

/// The factor for a payload; the upper half of the product is the hash.
pub const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Key<'_> {
    pub fn hash(self) -> u64 {
        match self {
            Key::Word(tag, payload) => {
                // 0.0 and -0.0 are the same key
                let payload = if tag == Tag::FLOAT && f64::from_bits(payload) == 0.0 { 0 } else { payload };
                (payload ^ tag as u64).wrapping_mul(FACTOR) >> 32
            }
            Key::Str(bytes) => fold(bytes.iter().map(|b| u64::from(*b))),
            Key::Parts(hashes) => fold(hashes.iter().copied()),
            Key::Object => 0,
        }
    }
}

fn fold(parts: impl Iterator<Item = u64>) -> u64 {
    parts.fold(FNV.0, |h, part| ((h ^ part) * FNV.1) & 0xffff_ffff)
}

/// The index: positions of keys by their hashes, -1 for an empty slot. Open addressing; its length is a power of two,
/// and it is at most half full.
pub fn index(hashes: &[u64]) -> Vec<i64> {
    let size = (hashes.len() * 2).next_power_of_two().max(1);
    let mut index = vec![-1; size + usize::from(size == 1)];
    let mask = index.len() - 1;
    for (i, hash) in hashes.iter().enumerate() {
        let mut at = *hash as usize & mask;
        while index[at] >= 0 {
            at = (at + 1) & mask;
        }
        index[at] = i as i64;
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_its_field_and_key_back() {
        for key in [ConstKey::Str("age"), ConstKey::Sym("age"), ConstKey::Str(""), ConstKey::Sym("last name?")] {
            for field in [KeyField::Value, KeyField::Present] {
                let name = field.name(key).expect("plain characters");
                assert_eq!(KeyField::of(&name), Some((field, key)));
            }
        }
    }

    #[test]
    fn other_keys_and_parts_have_no_such_name() {
        assert_eq!(KeyField::Value.name(ConstKey::Str(":age")), None);
        assert_eq!(KeyField::Value.name(ConstKey::Str("a\"b")), None);
        assert_eq!(KeyField::Value.name(ConstKey::Sym("[]")), None);
        assert!(PARTS.iter().all(|part| KeyField::of(part).is_none()));
    }
}
