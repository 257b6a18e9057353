//! What identifies compiled code: everything that went into it, hashed.
//!
//! Here: the hash, and that the version of Ikra is always part of it. Not here: which inputs a backend has.

use std::fmt;
use std::hash::{Hash, Hasher};

/// Names one piece of compiled code. Equal inputs, in order, give equal keys, in any process on any machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

impl Key {
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// Collects the inputs.
pub struct KeyBuilder(blake3::Hasher);

impl KeyBuilder {
    /// A key for code of this backend.
    pub fn new(backend: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(concat!("ikra ", env!("CARGO_PKG_VERSION")).as_bytes());
        Self(hasher).text(backend)
    }
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.0.update(&(text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
        self
    }
    /// Anything that can be hashed: a struct of options goes in whole, and none of its fields can be forgotten.
    #[must_use]
    pub fn value(mut self, value: &impl Hash) -> Self {
        value.hash(&mut Feed(&mut self.0));
        self
    }
    pub fn finish(self) -> Key {
        Key(*self.0.finalize().as_bytes())
    }
}

struct Feed<'a>(&'a mut blake3::Hasher);

impl Hasher for Feed<'_> {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn finish(&self) -> u64 {
        let hash = self.0.finalize();
        u64::from_le_bytes(hash.as_bytes()[..8].try_into().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::CodeOptions;

    #[test]
    fn every_input_counts() {
        let key = |text: &str, options: CodeOptions| KeyBuilder::new("cuda").text(text).value(&options).finish();
        let plain = key("a", CodeOptions::default());
        assert_eq!(plain, key("a", CodeOptions::default()));
        assert_ne!(plain, key("b", CodeOptions::default()));
        assert_ne!(plain, key("a", CodeOptions { fast_math: true, ..CodeOptions::default() }));
        assert_ne!(plain, KeyBuilder::new("cpu").text("a").value(&CodeOptions::default()).finish());
    }

    #[test]
    fn where_one_text_ends_counts() {
        let two = |a: &str, b: &str| KeyBuilder::new("cuda").text(a).text(b).finish();
        assert_ne!(two("ab", "c"), two("a", "bc"));
    }
}
