//! Maps from VALUEs to numbers.
//!
//! Here: [`IdentityMap`], from objects on Ruby's heap to what was noted of them, by address and without hashing on the
//! fast path; and [`RawMap`], a small hash map for a few classes or symbols. Not here: reading objects.
//! Invariant: a map is asked only while what it names is alive and pinned; or else by who compares addresses first ([`crate::trace`]'s `again`).

use crate::heap::{self, Raw};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// Multiplies; VALUEs differ in their middle bits.
#[derive(Default)]
pub struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for b in bytes {
            self.write_u64(u64::from(*b));
        }
    }
    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// A hash map keyed by words.
pub type WordMap<K, V> = HashMap<K, V, BuildHasherDefault<WordHasher>>;
/// A hash map keyed by VALUEs.
pub type RawMap<V> = WordMap<Raw, V>;

/// Two objects on Ruby's heap are at least this many bytes apart, in every Ruby since 2.0.
const APART: usize = 40;
/// Objects that need no region.
const FEW: usize = 8;
/// Of what no object is.
static NO_WORD: AtomicU64 = AtomicU64::new(0);
/// Values whose words are asked for together.
const AHEAD: usize = 32;
const REGION_BITS: u32 = 16;
const REGION_SLOTS: usize = (1 << REGION_BITS) / APART + 1;

/// A word other than 0 for each of many heap objects.
///
/// A two-level table: addresses are cut into regions of 64 KiB, found by a small hash table, and within a region the
/// offset divided by 40 is the index, so that no two objects meet. Where a region is known, many threads may set words of it.
///
/// As long as there are but a few objects, they stand in a list, and there are no regions: one takes longer to clear than a small launch does.
#[derive(Default)]
pub struct IdentityMap {
    few: [(Raw, u64); FEW],
    count: usize,
    /// Open addressing; as many as a power of two, or none.
    buckets: Vec<Bucket>,
    regions: usize,
}

/// Words by slot.
type Region = [AtomicU64; REGION_SLOTS];

#[derive(Default)]
struct Bucket {
    /// Number of the region, 0: free.
    region: usize,
    words: Option<Box<Region>>,
}

impl IdentityMap {
    /// The word of an object: 0 at first. To be set by whoever sees it first.
    #[inline]
    pub fn entry(&mut self, object: Raw) -> &mut u64 {
        if self.buckets.is_empty() {
            let known = self.few[..self.count].iter().position(|(known, _)| *known == object);
            let at = known.unwrap_or(self.count);
            if at < FEW {
                if known.is_none() {
                    self.few[at] = (object, 0);
                    self.count += 1;
                }
                return &mut self.few[at].1;
            }
            self.spread();
        }
        let (region, slot) = place(object);
        self.find_or_add(region)[slot].get_mut()
    }
    /// The word of an object, 0 if it has none.
    #[inline]
    pub fn get(&self, object: Raw) -> u64 {
        if self.buckets.is_empty() {
            let known = self.few[..self.count].iter().find(|(known, _)| *known == object);
            return known.map_or(0, |(_, word)| *word);
        }
        self.word(object).map_or(0, |word| word.load(Ordering::Relaxed))
    }
    /// Tells the word of each of many values, by its position: 0 for one that has none, and for what is no object. Memory is asked for some values ahead.
    ///
    /// # Errors
    /// The first that `tell` gives.
    #[inline]
    pub fn each<E>(&self, values: &[Raw], mut tell: impl FnMut(usize, u64) -> Result<(), E>) -> Result<(), E> {
        if self.buckets.is_empty() {
            return values.iter().enumerate().try_for_each(|(i, value)| tell(i, self.get(*value)));
        }
        for (chunk, values) in values.chunks(AHEAD).enumerate() {
            let mut words = [&NO_WORD; AHEAD];
            for (word, value) in words.iter_mut().zip(values) {
                if !heap::is_immediate(*value)
                    && let Some(known) = self.word(*value)
                {
                    *word = known;
                    heap::prefetch_word(known);
                }
            }
            for (i, word) in words[..values.len()].iter().enumerate() {
                tell(chunk * AHEAD + i, word.load(Ordering::Relaxed))?;
            }
        }
        Ok(())
    }
    /// The number of the region that an object is in.
    #[inline]
    pub fn region(object: Raw) -> usize {
        place(object).0
    }
    /// Makes a region known.
    pub fn reserve(&mut self, region: usize) {
        self.spread();
        self.find_or_add(region);
    }
    /// Gives an object its word; false where it has one already, or its region is not known.
    #[inline]
    pub fn claim(&self, object: Raw, word: u64) -> bool {
        let Some(own) = self.word(object) else { return false };
        own.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether no object has a word.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty() && self.count == 0
    }

    /// Asks for the memory of an object's word ahead of its use.
    #[inline]
    pub fn prefetch(&self, object: Raw) {
        if let Some(word) = self.word(object) {
            heap::prefetch_word(word);
        }
    }

    /// Moves the few to their regions.
    fn spread(&mut self) {
        for at in 0..std::mem::take(&mut self.count) {
            let (object, word) = self.few[at];
            let (region, slot) = place(object);
            *self.find_or_add(region)[slot].get_mut() = word;
        }
    }

    /// Where the word of an object is; None where its region is not known.
    #[inline]
    fn word(&self, object: Raw) -> Option<&AtomicU64> {
        let (region, slot) = place(object);
        let mask = self.buckets.len().wrapping_sub(1);
        let mut at = hash(region) & mask;
        loop {
            let bucket = self.buckets.get(at)?;
            if bucket.region == region {
                return bucket.words.as_ref().map(|words| &words[slot]);
            }
            if bucket.region == 0 {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    /// The bucket of a region, or the free one that it is to have.
    #[inline]
    fn bucket(&self, region: usize) -> usize {
        let mask = self.buckets.len() - 1;
        let mut at = hash(region) & mask;
        while self.buckets[at].region != region && self.buckets[at].region != 0 {
            at = (at + 1) & mask;
        }
        at
    }
    #[inline]
    fn find_or_add(&mut self, region: usize) -> &mut Region {
        if (self.regions + 1) * 2 > self.buckets.len() {
            self.grow();
        }
        let at = self.bucket(region);
        let bucket = &mut self.buckets[at];
        if bucket.region == 0 {
            bucket.region = region;
            self.regions += 1;
        }
        bucket.words.get_or_insert_with(zeroes)
    }
    #[cold]
    fn grow(&mut self) {
        let size = (self.buckets.len() * 4).max(64);
        let fresh = std::iter::repeat_with(Bucket::default).take(size).collect();
        let old = std::mem::replace(&mut self.buckets, fresh);
        for bucket in old.into_iter().filter(|bucket| bucket.region != 0) {
            let at = self.bucket(bucket.region);
            self.buckets[at] = bucket;
        }
    }
}

#[inline]
fn hash(region: usize) -> usize {
    region.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// Region number + 1, and slot within the region.
#[inline]
fn place(object: Raw) -> (usize, usize) {
    let address = object as usize;
    ((address >> REGION_BITS) + 1, (address & ((1 << REGION_BITS) - 1)) / APART)
}

fn zeroes() -> Box<Region> {
    let boxed: Box<[AtomicU64]> = std::iter::repeat_with(AtomicU64::default).take(REGION_SLOTS).collect();
    boxed.try_into().expect("the slice has as many slots as the array")
}
