//! Keys of pairs that kernels group, as words.
//!
//! Here: how a key of several parts, such as an array of numbers, is described. Its first word, the head, has a code
//! for each part, the first part in the lowest bits. The words of those parts follow that have one. An array is a part
//! with its length, in front of its elements. So keys of equal heads are alike, and are compared word by word. Not
//! here: tables of keys ([`crate::backend::collective::emitted`]).

/// What a part of a key is.
pub struct KeyCode;

impl KeyCode {
    pub const NIL: u64 = 1;
    pub const FALSE: u64 = 2;
    pub const TRUE: u64 = 3;
    pub const INT: u64 = 4;
    /// The word has the bits of the Float.
    pub const FLOAT: u64 = 5;
    pub const SYM: u64 = 6;
    /// The word is a [`super::StrWord`].
    pub const STR: u64 = 7;
    /// An array of `n` elements has the code `LIST + n`.
    pub const LIST: u64 = 8;

    /// Whether the part has a word of its own.
    pub fn has_word(code: u64) -> bool {
        (Self::INT..=Self::STR).contains(&code)
    }
}

/// The most parts of a key.
pub const MAX_PARTS: usize = 12;
/// The bits of a code.
pub const CODE_BITS: u32 = 5;
/// The most words of a key.
pub const MAX_WORDS: usize = MAX_PARTS + 1;

/// The codes of a head, in order.
pub fn codes(head: u64) -> impl Iterator<Item = u64> {
    (0..MAX_PARTS as u32).map(move |part| head >> (part * CODE_BITS) & 31).take_while(|code| *code != 0)
}

/// How many words a key with this head has.
pub fn words_of(head: u64) -> usize {
    1 + codes(head).filter(|code| KeyCode::has_word(*code)).count()
}
