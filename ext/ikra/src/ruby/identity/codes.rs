//! Words in half their size.
//!
//! Here: [`Codes`], which replaces the upper half of a word by a code of eight bits. A program has few upper halves:
//! one for each class or kind of Arrays. The lower half is a row, which hardly ever needs more than 24 bits. Other
//! words are in a separate map, by region and slot, which takes several times as long and as much memory. Not here:
//! where short words are stored ([`super::IdentityMap`]).

use super::{Raw, WordMap, place};
use parking_lot::RwLock;

/// A word whose upper half is replaced by its code. 0: none.
pub type Short = u32;

const ROW_BITS: u32 = 24;
pub const ROWS: u64 = 1 << ROW_BITS;
const CODES: usize = 1 << (Short::BITS - ROW_BITS);
/// The short word of words that have no short form.
const BEYOND: Short = Short::MAX;
/// The short word of a reservation, with its place in the bits of the row ([`super::reservations`]). Its code is the
/// one before that of `BEYOND`, which no word has either.
pub const RESERVED: Short = (CODES as Short - 2) << ROW_BITS;
/// The most upper halves that are found without a search.
const RECENT: usize = 512;

/// Codes of upper halves.
pub struct Codes {
    /// Upper halves by code. Code 0 is unused. The last code is that of words without a short form, and the one before
    /// it that of reservations.
    uppers: [u32; CODES],
    used: usize,
    recent: [(u32, u32); RECENT],
    /// Words without a short form, by region and slot.
    beyond: RwLock<WordMap<(usize, usize), u64>>,
}

impl Default for Codes {
    fn default() -> Self {
        Self { uppers: [0; CODES], used: 1, recent: [(0, 0); RECENT], beyond: RwLock::default() }
    }
}

impl Codes {
    /// The code of an upper half that is found without a search.
    #[inline]
    fn at_once(&self, upper: u32) -> Option<u32> {
        let (known, code) = self.recent[recent(upper)];
        (known == upper && code != 0).then_some(code)
    }
    /// The code of an upper half, if it has one.
    #[inline]
    pub fn find(&self, upper: u32) -> Option<u32> {
        self.at_once(upper)
            .or_else(|| self.uppers[1..self.used].iter().position(|known| *known == upper).map(|at| at as u32 + 1))
    }
    /// The same. An upper half without a code gets one now, if there are any left.
    #[inline]
    pub fn give(&mut self, upper: u32) -> Option<u32> {
        self.at_once(upper).or_else(|| self.give_slowly(upper))
    }
    #[cold]
    fn give_slowly(&mut self, upper: u32) -> Option<u32> {
        let code = match self.find(upper) {
            Some(code) => code,
            None if self.used < CODES - 2 => {
                self.uppers[self.used] = upper;
                self.used += 1;
                self.used as u32 - 1
            }
            None => return None,
        };
        self.recent[recent(upper)] = (upper, code);
        Some(code)
    }
    /// The first short word of so many consecutive words. None where some have no short form.
    #[inline]
    pub fn shorten_all(&self, first: u64, count: usize) -> Option<Short> {
        let (code, row) = (self.find((first >> 32) as u32)?, first & u64::from(u32::MAX));
        (row + count as u64 <= ROWS).then_some(code << ROW_BITS | row as u32)
    }
    /// The short word of an object's word. A word without a short form is stored by its object.
    #[inline]
    pub fn shorten(&mut self, object: Raw, word: u64) -> Short {
        match self.give((word >> 32) as u32) {
            Some(code) if word as u32 >> ROW_BITS == 0 => code << ROW_BITS | word as u32,
            _ => self.put_beyond(object, word),
        }
    }
    /// Gives an object the short word of its word, by `claim`, which says whether this thread is the first that does.
    #[inline]
    pub fn claim(&self, object: Raw, word: u64, claim: impl FnOnce(Short) -> bool) -> bool {
        if let Some(short) = self.shorten_all(word, 1) {
            return claim(short);
        }
        let claimed = claim(BEYOND);
        if claimed {
            self.put_beyond(object, word);
        }
        claimed
    }
    #[cold]
    fn put_beyond(&self, object: Raw, word: u64) -> Short {
        self.beyond.write().insert(place(object), word);
        BEYOND
    }
    /// The word of an object, from its short word.
    #[inline]
    pub fn word(&self, object: Raw, short: Short) -> u64 {
        if short == BEYOND {
            return self.word_beyond(object);
        }
        u64::from(self.uppers[(short >> ROW_BITS) as usize]) << 32 | u64::from(short) & (ROWS - 1)
    }
    #[cold]
    fn word_beyond(&self, object: Raw) -> u64 {
        self.beyond.read().get(&place(object)).copied().unwrap_or(0)
    }
    /// Expands short words that have this upper half.
    #[inline]
    pub fn with(&self, upper: u32) -> impl Fn(Short) -> Option<u64> + use<> {
        // No short word has a code so high.
        let code = self.find(upper).unwrap_or(Short::MAX);
        move |short| (short >> ROW_BITS == code).then(|| u64::from(upper) << 32 | u64::from(short) & (ROWS - 1))
    }
}

#[inline]
fn recent(upper: u32) -> usize {
    upper.wrapping_mul(0x9e37_79b1) as usize >> (u32::BITS - RECENT.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::{BEYOND, CODES, Codes, ROWS};

    #[test]
    fn words_come_back_as_they_were_however_many_upper_halves_there_are_and_however_large_rows_are() {
        let mut codes = Codes::default();
        let uppers = (0..400u64).map(|upper| (upper * 0x1_0001 % 0x7fff) | ((upper % 3) << 30));
        let rows = [1, 7, ROWS - 1, ROWS, u64::from(u32::MAX)];
        let words: Vec<u64> = uppers.flat_map(|upper| rows.map(|row| upper << 32 | row)).collect();
        let shorts: Vec<_> = words.iter().zip(1..).map(|(word, object)| codes.shorten(object * 40, *word)).collect();
        assert!(shorts.iter().all(|short| *short != 0));
        assert_eq!(shorts.iter().filter(|short| **short != BEYOND).count(), 3 * (CODES - 3));
        for ((word, object), short) in words.iter().zip(1..).zip(shorts) {
            assert_eq!(codes.word(object * 40, short), *word);
        }
        assert_eq!(codes.word(3, 0), 0);
    }

    #[test]
    fn words_that_follow_each_other_have_short_ones_that_do_as_long_as_there_are_any() {
        let mut codes = Codes::default();
        assert_eq!(codes.shorten_all(5 << 32, 1), None, "it has no code yet");
        let short = codes.shorten(8, 5 << 32 | 9);
        assert_eq!(codes.shorten_all(5 << 32 | 10, 32), Some(short + 1));
        let last = 5 << 32 | (ROWS - 32);
        assert_eq!(codes.shorten_all(last, 32).map(|short| codes.word(8, short)), Some(last));
        assert_eq!(codes.shorten_all(last, 33), None);
    }
}
