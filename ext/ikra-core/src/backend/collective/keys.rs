//! Keys of several parts, and the table in which one thread groups them.
//!
//! Here: [`Key`], the parts of a key that a kernel makes, and [`KeyTable`]. Not here: what the words of a key mean
//! ([`crate::types::keys`]), and groups of keys that are one word ([`super::emitted`]).
//!
//! Invariant: a group has the words of its first pair. A key with a NaN is equal to no other.

use super::emitted::{Combine, Group, Total};
use super::table::Seed;
use crate::memory::room;
use crate::types::keys::{CODE_BITS, KeyCode, MAX_PARTS, MAX_WORDS, codes, words_of};
use crate::types::{Encoding, StrWord};

/// The parts of a key so far.
#[derive(Clone, Copy)]
pub struct Key {
    words: [u64; MAX_WORDS],
    len: usize,
    parts: usize,
    /// Whether it is equal to no other.
    alone: bool,
}

impl Default for Key {
    fn default() -> Self {
        Self { words: [0; MAX_WORDS], len: 1, parts: 0, alone: false }
    }
}

impl Key {
    pub fn add(&mut self, code: u64, word: u64) {
        if self.parts < MAX_PARTS {
            self.words[0] |= code << (self.parts as u32 * CODE_BITS);
            if KeyCode::has_word(code) {
                self.words[self.len] = word;
                self.len += 1;
            }
            self.alone |= code == KeyCode::FLOAT && f64::from_bits(word).is_nan();
        }
        self.parts += 1;
    }

    /// Whether it has too many parts.
    pub fn is_too_long(&self) -> bool {
        self.parts > MAX_PARTS
    }

    fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }
}

/// A hash table with open addressing, in front of a list of groups.
#[derive(Default)]
pub(super) struct KeyTable<T> {
    /// The upper half has a hash, the lower one the number of a group plus 1.
    slots: Vec<u64>,
    /// Their keys are places in `words`.
    pub(super) groups: Vec<Group<T>>,
    pub words: Vec<u64>,
}

const FIRST_SLOTS: usize = 1 << 9;

impl<T: Total> KeyTable<T> {
    /// Adds a group with this key, for which there may be one. `text` gives the bytes of Strings.
    pub(super) fn add<'t>(
        &mut self,
        seed: &Seed,
        key: &Key,
        group: Group<T>,
        combine: Combine,
        text: &impl Fn(StrWord) -> Text<'t>,
    ) {
        if key.alone {
            return self.put(key.words(), group);
        }
        self.grow_if_full();
        let (own, mask) = (key.words(), self.slots.len() - 1);
        let hash = hash_of(seed, own, text);
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                self.put(own, group);
                self.slots[at] = u64::from(hash) << 32 | self.groups.len() as u64;
                return;
            }
            let known = &mut self.groups[slot as u32 as usize - 1];
            let words = &mut self.words[known.key as usize..];
            if (slot >> 32) as u32 == hash && same(own, words, text) {
                known.total.merge(group.total, combine);
                if group.first < known.first {
                    known.first = group.first;
                    words[..own.len()].copy_from_slice(own);
                }
                return;
            }
            at = (at + 1) & mask;
        }
    }

    fn put(&mut self, words: &[u64], group: Group<T>) {
        let key = self.words.len() as u64;
        words.iter().for_each(|word| room::push(&mut self.words, *word));
        room::push(&mut self.groups, Group { key, ..group });
    }

    fn grow_if_full(&mut self) {
        if self.groups.len() * 2 < self.slots.len() {
            return;
        }
        let slots = (4 * self.slots.len()).max(FIRST_SLOTS);
        let before = std::mem::replace(&mut self.slots, room::filled(0, slots));
        for slot in before.into_iter().filter(|slot| *slot != 0) {
            let mut at = (slot >> 32) as usize & (slots - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = slot;
        }
    }
}

/// What Strings are compared by.
pub type Text<'t> = (&'t [u8], Encoding);

/// The bytes of a String, and its encoding. Strings of ASCII are equal in all encodings, whatever their words say.
pub fn canonical(text: &[u8], word: StrWord) -> Text<'_> {
    let encoding = match word.encoding() {
        _ if text.is_ascii() => Encoding::Ascii,
        Encoding::Ascii => Encoding::Utf8,
        other => other,
    };
    (text, encoding)
}

/// The words of a key, each with its code.
fn parts(key: &[u64]) -> impl Iterator<Item = (u64, u64)> {
    codes(key[0]).filter(|code| KeyCode::has_word(*code)).zip(key[1..].iter().copied())
}

/// Whether a key has a NaN.
pub fn is_alone(key: &[u64]) -> bool {
    parts(key).any(|(code, word)| code == KeyCode::FLOAT && f64::from_bits(word).is_nan())
}

pub fn hash_of<'t>(seed: &Seed, key: &[u64], text: &impl Fn(StrWord) -> Text<'t>) -> u32 {
    let hash = parts(key).fold(seed.hash(key[0]), |hash, (code, word)| {
        let word = match code {
            KeyCode::STR => seed.word(text(StrWord(word)).0),
            KeyCode::FLOAT if f64::from_bits(word) == 0.0 => 0,
            _ => word,
        };
        seed.hash(hash.rotate_left(23) ^ word)
    });
    folded(hash)
}

/// A hash of 32 bits.
pub fn folded(hash: u64) -> u32 {
    (hash >> 32) as u32 ^ hash as u32
}

/// Whether two keys without a NaN are equal.
pub fn same<'t>(one: &[u64], other: &[u64], text: &impl Fn(StrWord) -> Text<'t>) -> bool {
    one[0] == other[0]
        && parts(one).zip(&other[1..words_of(one[0])]).all(|((code, word), other)| {
            word == *other
                || match code {
                    KeyCode::STR => text(StrWord(word)) == text(StrWord(*other)),
                    KeyCode::FLOAT => f64::from_bits(word) == f64::from_bits(*other),
                    _ => false,
                }
        })
}

#[cfg(test)]
mod tests {
    use super::super::groups::seed;
    use super::*;

    const BYTES: &[u8] = "aab\u{fc}".as_bytes();

    fn text(word: StrWord) -> Text<'static> {
        canonical(&BYTES[word.offset() as usize..][..word.length()], word)
    }

    fn key(parts: &[(u64, u64)]) -> Key {
        let mut key = Key::default();
        parts.iter().for_each(|(code, word)| key.add(*code, *word));
        key
    }

    fn float(x: f64) -> (u64, u64) {
        (KeyCode::FLOAT, x.to_bits())
    }

    #[test]
    fn keys_are_equal_as_ruby_says() {
        let string = |offset, length, encoding| (KeyCode::STR, StrWord::new(offset, length, encoding, true).0);
        let list = |n| (KeyCode::LIST + n, 0);
        // keys of one line are equal
        let alike: &[&[&[(u64, u64)]]] = &[
            &[&[float(0.0)], &[float(-0.0)]],
            &[&[(KeyCode::INT, 0)], &[(KeyCode::INT, 0)]],
            &[&[(KeyCode::NIL, 0)]],
            &[&[string(0, 1, Encoding::Utf8)], &[string(1, 1, Encoding::Binary)], &[string(1, 1, Encoding::Ascii)]],
            &[&[string(3, 2, Encoding::Utf8)], &[string(3, 2, Encoding::Ascii)]],
            &[&[string(3, 2, Encoding::Binary)]],
            &[&[list(2), list(0), list(1), (KeyCode::INT, 5)]],
            &[&[list(2), list(1), (KeyCode::INT, 5), list(0)]],
            &[&[float(f64::NAN)]],
            &[&[float(f64::NAN)]],
        ];
        let mut table = KeyTable::default();
        for round in 0..2 {
            for (at, parts) in alike.iter().flat_map(|line| line.iter()).enumerate() {
                let group = Group { key: 0, first: (round * 100 + at) as u64, total: 1_i128 };
                table.add(seed(), &key(parts), group, Combine::Sum, &text);
            }
        }
        let totals: Vec<i128> = table.groups.iter().map(|group| group.total).collect();
        assert_eq!(totals, [4, 4, 2, 6, 4, 2, 2, 2, 1, 1, 1, 1]);
    }

    #[test]
    fn a_group_has_the_words_of_its_first_pair() {
        let mut table = KeyTable::default();
        for (first, x) in [(7, 0.0), (3, -0.0), (5, 0.0)] {
            let group = Group { key: 0, first, total: 1_i128 };
            table.add(seed(), &key(&[float(x)]), group, Combine::Sum, &text);
        }
        assert_eq!((table.groups[0].first, table.words[1]), (3, (-0.0_f64).to_bits()));
    }

    #[test]
    fn many_keys_are_told_apart() {
        let mut table = KeyTable::default();
        for first in 0..6000 {
            let parts = [(KeyCode::LIST + 2, 0), (KeyCode::INT, first % 3000), (KeyCode::SYM, first % 7)];
            let group = Group { key: 0, first, total: 1_i128 };
            table.add(seed(), &key(&parts), group, Combine::Sum, &text);
        }
        // 3000 is no multiple of 7
        assert_eq!(table.groups.len(), 6000);
        let long = key(&[(KeyCode::NIL, 0); MAX_PARTS]);
        assert!(!long.is_too_long() && key(&[(KeyCode::NIL, 0); MAX_PARTS + 1]).is_too_long());
    }
}
