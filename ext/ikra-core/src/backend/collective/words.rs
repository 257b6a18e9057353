//! The words of a text: where they are, and how often each occurs.
//!
//! Here: [`find`], which shows the words of a piece of text, and their [`count`]; [`counted`], which counts equal words
//! while it finds them, so that no list of words is made. Not here: which bytes are text, and how a text is cut into
//! pieces (the bridge's `buffers/text.rs`), and groups of other keys ([`super::table`]).
//!
//! Invariant: a word is a run of bytes without ASCII white space, which ends at the end of its piece, too. Words are
//! equal if their bytes are. Each is told by its first place in the text.
//!
//! # How
//!
//! 1. Each worker takes pieces, and finds white space in 64 bytes at a time. Each word goes into the worker's table, in
//!    one of [`PARTS`] parts, which the upper bits of its hash choose. A slot has the first bytes of its word, so most
//!    words are compared without a look at the text. Where a part is full, words that it lacks are only written down.
//! 2. Workers merge. Each takes one part of all tables, and what was written down for it.

use super::Workers;
use super::table::Seed;
use crate::error::Result;
use crate::memory::{ahead, room};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Whether a byte is white space, at which `String#split` without arguments splits.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, 9..=13 | b' ')
}

/// Bytes in which white space is found at once.
const BLOCK: usize = u64::BITS as usize;

/// A byte in each byte of a word.
const fn repeated(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// A bit for each of eight bytes: whether it is white space.
#[inline]
fn spaces_of_eight(bytes: u64) -> u64 {
    const HIGH: u64 = repeated(0x80);
    let low = bytes & !HIGH;
    // The highest bit of a byte tells whether the other seven bits are at least a number: no sum carries.
    let at_least_9 = low + repeated(0x80 - 9);
    let at_least_14 = low + repeated(0x80 - 14);
    let not_blank = (low ^ repeated(b' ')) + repeated(0x7f);
    let found = (at_least_9 & !at_least_14 | !not_blank) & !bytes & HIGH;
    // The product has the lowest bits of the eight bytes side by side in its highest byte.
    (found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[inline]
fn spaces(block: &[u8; BLOCK]) -> u64 {
    let (eights, _) = block.as_chunks::<8>();
    eights.iter().rev().fold(0, |found, eight| found << 8 | spaces_of_eight(u64::from_le_bytes(*eight)))
}

/// Shows the words of a piece: where each begins, and how many bytes it has.
#[inline]
pub fn find(piece: &[u8], mut see: impl FnMut(usize, usize)) {
    let (blocks, rest) = piece.as_chunks::<BLOCK>();
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    // Whether the byte before a block is part of a word, and where that word begins.
    let (mut within, mut start) = (0, 0);
    for (block, from) in blocks.iter().chain([&last]).zip((0..).step_by(BLOCK)) {
        let word = !spaces(block);
        // Bytes that are part of a word, where the byte before is not, or the other way round.
        let mut edges = word ^ (word << 1 | within);
        if within == 1 && edges != 0 {
            see(start, from + edges.trailing_zeros() as usize - start);
            edges &= edges - 1;
        }
        while edges != 0 {
            let begin = edges.trailing_zeros() as usize;
            edges &= edges - 1;
            if edges == 0 {
                start = from + begin;
                break;
            }
            see(from + begin, edges.trailing_zeros() as usize - begin);
            edges &= edges - 1;
        }
        within = word >> (BLOCK - 1);
    }
}

/// The number of the words of a piece.
pub fn count(piece: &[u8]) -> usize {
    let (blocks, rest) = piece.as_chunks::<BLOCK>();
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    let (mut within, mut count) = (0, 0);
    for block in blocks.iter().chain([&last]) {
        let word = !spaces(block);
        count += (word & !(word << 1 | within)).count_ones() as usize;
        within = word >> (BLOCK - 1);
    }
    count
}

/// A word that occurs in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Where it first begins.
    pub first: u32,
    pub len: u32,
    pub count: u32,
}

/// Parts of all hashes. Each is merged by one thread, and small enough for the caches of a core.
const PARTS: usize = 64;
/// The most words of a part of a worker's table. With more, the caches of a core hold too little of it.
const MOST_PRIVATE: usize = 1 << 12;
/// Slots of each part of a new table.
const FIRST_SLOTS: usize = 1 << 6;
/// Words that are looked up together, so that memory loads their slots at the same time.
const BATCH: usize = 64;

/// What decides whether words are equal. Words of at most 16 bytes are, if these are.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Key {
    /// The first 8 bytes, with zeroes behind a shorter word.
    head: u64,
    /// The last 8 bytes of a word of more than 8 bytes; a hash of all if it has more than 16 bytes; 0 for others.
    rest: u64,
    len: u32,
}

/// The most bytes of a word whose key has all of them.
const WHOLE: usize = 16;

impl Key {
    #[inline]
    fn of(seed: &Seed, text: &[u8], place: usize, len: usize) -> Self {
        let eight =
            |at: usize| text.get(at..).and_then(|bytes| bytes.first_chunk()).map(|bytes| u64::from_le_bytes(*bytes));
        if len <= 8 {
            let head = match eight(place) {
                Some(head) => head & u64::MAX >> (64 - 8 * len),
                // near the end of the text
                None => text[place..place + len].iter().rev().fold(0, |head, byte| head << 8 | u64::from(*byte)),
            };
            return Self { head, rest: 0, len: len as u32 };
        }
        let head = eight(place).unwrap_or_default();
        let rest = if len <= WHOLE {
            eight(place + len - 8).unwrap_or_default()
        } else {
            seed.word(&text[place..place + len])
        };
        Self { head, rest, len: len as u32 }
    }

    #[inline]
    fn hash(&self, seed: &Seed) -> u64 {
        let head = seed.hash(self.head ^ u64::from(self.len) << 56);
        if self.len <= 8 { head } else { seed.hash(head ^ self.rest) }
    }
}

/// A word with its key and how often it was found so far. A free slot has a count of 0.
#[derive(Clone, Copy, Default)]
struct Slot {
    key: Key,
    place: u32,
    count: u32,
}

/// A hash table with open addressing. Each of its parts has as many slots, which lie together.
struct Table {
    slots: Vec<Slot>,
    /// The number of words of each part.
    used: Vec<usize>,
    /// The first bits of hashes, which are all alike and choose nothing.
    known: u32,
    /// The next ones, which choose a slot, and those of them that choose one in a part.
    bits: u32,
    bits_within: u32,
}

impl Table {
    fn new(parts: usize, known: u32) -> Self {
        let slots = parts * FIRST_SLOTS;
        Self {
            slots: room::filled(Slot::default(), slots),
            used: vec![0; parts],
            known,
            bits: slots.ilog2(),
            bits_within: FIRST_SLOTS.ilog2(),
        }
    }

    #[inline]
    fn slot_of(&self, hash: u64) -> usize {
        (hash << self.known >> (u64::BITS - self.bits)) as usize
    }

    /// The slot that follows in the same part.
    #[inline]
    fn next(&self, at: usize) -> usize {
        let mask = (1 << self.bits_within) - 1;
        at & !mask | (at + 1) & mask
    }

    /// Adds some occurrences of a word. False: there is no room for a word that the table lacks.
    #[inline(always)] // as a call it takes a sixth longer
    fn add(&mut self, seed: &Seed, text: &[u8], hash: u64, found: &Slot, most: usize) -> bool {
        let mut at = self.slot_of(hash);
        loop {
            let slot = &mut self.slots[at];
            if slot.count == 0 {
                return self.put(seed, at, found, most);
            }
            if slot.key == found.key && same(text, slot, found) {
                slot.count += found.count;
                slot.place = slot.place.min(found.place);
                return true;
            }
            at = self.next(at);
        }
    }

    /// Fills a free slot.
    #[cold]
    fn put(&mut self, seed: &Seed, at: usize, found: &Slot, most: usize) -> bool {
        let used = &mut self.used[at >> self.bits_within];
        if *used >= most {
            return false;
        }
        *used += 1;
        self.slots[at] = *found;
        if *used * 2 > 1 << self.bits_within {
            self.grow(seed);
        }
        true
    }

    #[cold]
    fn grow(&mut self, seed: &Seed) {
        (self.bits, self.bits_within) = (self.bits + 1, self.bits_within + 1);
        let before = std::mem::replace(&mut self.slots, room::filled(Slot::default(), 1 << self.bits));
        for slot in before.into_iter().filter(|slot| slot.count > 0) {
            let mut at = self.slot_of(slot.key.hash(seed));
            while self.slots[at].count > 0 {
                at = self.next(at);
            }
            self.slots[at] = slot;
        }
    }

    /// The words of a part.
    fn part(&self, part: usize) -> impl Iterator<Item = &Slot> {
        self.slots[part << self.bits_within..][..1 << self.bits_within].iter().filter(|slot| slot.count > 0)
    }
}

/// Whether the words of two slots with the same key are equal.
#[inline]
fn same(text: &[u8], one: &Slot, other: &Slot) -> bool {
    let bytes = |slot: &Slot| &text[slot.place as usize..][..slot.key.len as usize];
    one.key.len as usize <= WHOLE || bytes(one) == bytes(other)
}

/// The bits of a hash that choose its part.
const PART_BITS: u32 = PARTS.ilog2();

/// What a worker has found.
struct Own {
    table: Table,
    /// Words that the table had no room for, by part: where each begins, and its bytes.
    written: Vec<Vec<(u32, u32)>>,
}

impl Own {
    fn new() -> Self {
        Self { table: Table::new(PARTS, 0), written: (0..PARTS).map(|_| Vec::new()).collect() }
    }

    fn take(&mut self, seed: &Seed, text: &[u8], from: usize, piece: &[u8]) {
        let mut batch = [(0_u32, 0_u32); BATCH];
        let mut count = 0;
        find(piece, |start, len| {
            batch[count] = ((from + start) as u32, len as u32);
            count += 1;
            if count == BATCH {
                self.count(seed, text, &batch);
                count = 0;
            }
        });
        self.count(seed, text, &batch[..count]);
    }

    fn count(&mut self, seed: &Seed, text: &[u8], words: &[(u32, u32)]) {
        let mut found = [(0, Slot::default()); BATCH];
        for ((hash, slot), (place, len)) in found.iter_mut().zip(words) {
            slot.key = Key::of(seed, text, *place as usize, *len as usize);
            (slot.place, slot.count) = (*place, 1);
            *hash = slot.key.hash(seed);
            ahead::to_read(self.table.slots.as_ptr().wrapping_add(self.table.slot_of(*hash)));
        }
        for (hash, slot) in &found[..words.len()] {
            if !self.table.add(seed, text, *hash, slot, MOST_PRIVATE) {
                let part = (*hash >> (u64::BITS - PART_BITS)) as usize;
                room::push(&mut self.written[part], (slot.place, slot.key.len));
            }
        }
    }
}

/// Counts the words of the pieces of a text, which are in order. Each has its place. Gives each word once, in the order
/// of first places. None: cancelled. Within that, None: some piece does not fit.
///
/// # Errors
/// `Device` when the system cannot start threads.
///
/// # Panics
/// For a text of 2³² bytes or more.
pub fn counted(
    on: Workers<'_>,
    seed: &Seed,
    text: &[u8],
    pieces: &[(usize, &[u8])],
    fits: impl Fn(&[u8]) -> bool + Sync,
) -> Result<Option<Option<Vec<Word>>>> {
    assert!(u32::try_from(text.len()).is_ok(), "a text has too many bytes");
    let (next, foreign) = (AtomicUsize::new(0), AtomicBool::new(false));
    let workers = on.several(on.threads.count().min(pieces.len()), |_| {
        let mut own = Own::new();
        while !on.cancel.is_cancelled()
            && !foreign.load(Relaxed)
            && let Some((from, piece)) = pieces.get(next.fetch_add(1, Relaxed))
        {
            if fits(piece) { own.take(seed, text, *from, piece) } else { foreign.store(true, Relaxed) }
        }
        own
    })?;
    if foreign.into_inner() {
        return Ok(Some(None));
    }
    let Some(parts) = on.each(PARTS, |part| merged(seed, text, &workers, part))? else { return Ok(None) };
    let mut words = room::concat(&parts);
    // It finds the parts, which are in order.
    words.sort_by_key(|word| word.first);
    Ok(Some(Some(words)))
}

/// One part of what all workers have found, in the order of first places.
fn merged(seed: &Seed, text: &[u8], workers: &[Own], part: usize) -> Vec<Word> {
    let mut table = Table::new(1, PART_BITS);
    for own in workers {
        for slot in own.table.part(part) {
            table.add(seed, text, slot.key.hash(seed), slot, usize::MAX);
        }
        for (place, len) in &own.written[part] {
            let key = Key::of(seed, text, *place as usize, *len as usize);
            let slot = Slot { key, place: *place, count: 1 };
            table.add(seed, text, key.hash(seed), &slot, usize::MAX);
        }
    }
    let word = |slot: &Slot| Word { first: slot.place, len: slot.key.len, count: slot.count };
    let mut words = room::collect(table.part(0).map(word));
    words.sort_unstable_by_key(|word| word.first);
    words
}

/// The words that occur most often, at most so many: the most frequent one first, and of equally frequent ones the
/// first.
pub fn most_frequent(words: &[Word], most: usize) -> Vec<Word> {
    let key = |word: &Word| (Reverse(word.count), word.first);
    let mut words = room::copied(words);
    if most < words.len() {
        words.select_nth_unstable_by_key(most, key);
        words.truncate(most);
    }
    words.sort_unstable_by_key(key);
    words
}

#[cfg(test)]
mod tests {
    use super::super::groups::seed;
    use super::super::testing::{Random, on_host};
    use super::*;
    use crate::backend::CancelToken;
    use crate::backend::threads::Threads;
    use std::collections::HashMap;

    fn found(piece: &[u8]) -> Vec<(usize, usize)> {
        let mut words = Vec::new();
        find(piece, |start, len| words.push((start, len)));
        assert_eq!(words.len(), super::count(piece));
        words
    }

    /// One byte after the other.
    fn plain(piece: &[u8]) -> Vec<(usize, usize)> {
        let mut words: Vec<(usize, usize)> = Vec::new();
        for at in (0..piece.len()).filter(|at| !is_space(piece[*at])) {
            match words.last_mut() {
                Some((start, len)) if *start + *len == at => *len += 1,
                _ => words.push((at, 1)),
            }
        }
        words
    }

    #[test]
    fn words_have_no_white_space() {
        assert_eq!(found(b""), []);
        assert_eq!(found(b" \t\r\n"), []);
        assert_eq!(found(b"the cat"), [(0, 3), (4, 3)]);
        assert_eq!(found(b"\n a\0b\x0bc "), [(2, 3), (6, 1)]);
        let each: Vec<u8> = (0..=255).flat_map(|byte| [byte, b'a', b' ', byte]).collect();
        assert_eq!(found(&each), plain(&each));
    }

    #[test]
    fn words_are_found_wherever_blocks_end() {
        let mut r = Random(7);
        for len in (0..300).chain([1 << 12]) {
            for spaces in [2, 5, 90] {
                let text: Vec<u8> = (0..len)
                    .map(|_| if r.word().is_multiple_of(spaces) { b'\n' } else { 128 + (r.word() % 128) as u8 })
                    .collect();
                assert_eq!(found(&text), plain(&text), "{text:?}");
            }
        }
    }

    /// Counts words in pieces of about so many bytes.
    fn count(text: &[u8], piece: usize) -> Vec<Word> {
        let mut pieces = Vec::new();
        let mut from = 0;
        while from < text.len() {
            let more = text[from..].iter().skip(piece).position(|byte| is_space(*byte));
            let to = more.map_or(text.len(), |more| from + piece + more);
            pieces.push((from, &text[from..to]));
            from = to;
        }
        on_host(|workers| counted(workers, seed(), text, &pieces, |_| true)).expect("all pieces fit")
    }

    fn counted_plainly(text: &[u8]) -> Vec<Word> {
        let mut words: Vec<Word> = Vec::new();
        let mut known = HashMap::new();
        for (first, len) in plain(text) {
            let at = *known.entry(&text[first..first + len]).or_insert(words.len());
            if at == words.len() {
                words.push(Word { first: first as u32, len: len as u32, count: 0 });
            }
            words[at].count += 1;
        }
        words
    }

    #[test]
    fn equal_words_are_counted_together() {
        let mut r = Random(5);
        for (words, kinds, most) in [(0, 1, 1), (5, 1, 3), (1000, 40, 30), (50_000, 3000, 20), (50_000, 1 << 40, 9)] {
            let mut text = Vec::new();
            for _ in 0..words {
                // words of one length differ in few bytes, anywhere
                let kind = r.word() % kinds;
                let len = 1 + kind as usize % most;
                let mut word = vec![b'a'; len];
                word[kind as usize / 7 % len] = 33 + (kind % 90) as u8;
                word[kind as usize / 31 % len] ^= (kind >> 3) as u8 & 64;
                text.extend(word.iter().map(|byte| if is_space(*byte) { b'.' } else { *byte }));
                text.push(b" \n\t"[kind as usize % 3]);
            }
            text.pop();
            for piece in [1, 1000, 1 << 20] {
                assert_eq!(count(&text, piece), counted_plainly(&text), "{words} of {kinds}");
            }
        }
    }

    #[test]
    fn words_beyond_full_tables_are_counted_too() {
        let words = 3 * PARTS * MOST_PRIVATE;
        let text: Vec<u8> =
            (0..words).flat_map(|word| format!("{} ", word * 7 % (words - 1000)).into_bytes()).collect();
        assert_eq!(count(&text, 1 << 16), counted_plainly(&text));
    }

    #[test]
    fn zeroes_and_what_follows_a_word_are_told_apart() {
        let text = b"a a\0 a\0\0 \0 abcdefgh abcdefghi abcdefgh\0 a abcdefgh abcdefghijklmnop abcdefghijklmnopq abcdefghijklmnopq";
        assert_eq!(count(text, 1 << 20), counted_plainly(text));
    }

    #[test]
    fn frequent_words_come_first() {
        let words = count(b"c b a b c d a e", 1 << 20);
        let pair = |word: &Word| (word.first, word.count);
        let most = |most| most_frequent(&words, most).iter().map(pair).collect::<Vec<_>>();
        let all = [(0, 2), (2, 2), (4, 2), (10, 1), (14, 1)];
        for count in 0..7 {
            assert_eq!(most(count), all[..count.min(5)]);
        }
    }

    #[test]
    fn cancelled_work_and_foreign_pieces_give_nothing() {
        let (threads, cancel) = (Threads::new(2), CancelToken::default());
        let pieces: Vec<(usize, &[u8])> = (0..9).map(|place| (place, &b"a"[..])).collect();
        let on = Workers { threads: &threads, cancel: &cancel };
        let count = |fits: fn(&[u8]) -> bool| counted(on, seed(), b"aaaaaaaaa", &pieces, fits).expect("threads start");
        assert_eq!(count(|_| true), Some(Some(vec![Word { first: 0, len: 1, count: 9 }])));
        assert_eq!(count(|_| false), Some(None));
        cancel.cancel();
        assert_eq!(count(|_| true), None);
    }
}
