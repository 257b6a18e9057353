//! Maps from VALUEs to numbers.
//!
//! Here: [`IdentityMap`], from objects on Ruby's heap to what was noted of them, by address and without hashing on the
//! fast path; and [`RawMap`], a small hash map for a few classes or symbols. Not here: reading objects.
//! Invariant: a map is asked only while what it names is alive and pinned; or else by who compares addresses first ([`crate::trace`]'s `again`).

use crate::heap::Raw;
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
    /// Open addressing: region number + 1 (0: free), and its index in `regions`.
    buckets: Vec<(usize, u32)>,
    regions: Vec<Box<[AtomicU64; REGION_SLOTS]>>,
    last: (usize, u32),
}

impl IdentityMap {
    /// The word of an object: 0 at first. To be set by whoever sees it first.
    #[inline]
    pub fn entry(&mut self, object: Raw) -> &mut u64 {
        if self.regions.is_empty() {
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
        let index = if self.last.0 == region { self.last.1 } else { self.find_or_add(region) };
        self.regions[index as usize][slot].get_mut()
    }
    /// The word of an object, 0 if it has none.
    #[inline]
    pub fn get(&self, object: Raw) -> u64 {
        if self.regions.is_empty() {
            let known = self.few[..self.count].iter().find(|(known, _)| *known == object);
            return known.map_or(0, |(_, word)| *word);
        }
        let (region, slot) = place(object);
        let index = if self.last.0 == region {
            self.last.1
        } else {
            match self.find(region) {
                Some(index) => index,
                None => return 0,
            }
        };
        self.regions[index as usize][slot].load(Ordering::Relaxed)
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
        let (region, slot) = place(object);
        let Some(index) = self.find(region) else { return false };
        let entry = &self.regions[index as usize][slot];
        entry.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Whether no object has a word.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty() && self.count == 0
    }

    /// Asks for the memory of an object's word ahead of its use.
    #[inline]
    pub fn prefetch(&self, object: Raw) {
        let (region, slot) = place(object);
        if let Some(index) = self.find(region) {
            crate::heap::prefetch((&raw const self.regions[index as usize][slot]) as Raw);
        }
    }

    /// Moves the few to their regions.
    fn spread(&mut self) {
        for at in 0..std::mem::take(&mut self.count) {
            let (object, word) = self.few[at];
            let (region, slot) = place(object);
            let index = self.find_or_add(region);
            *self.regions[index as usize][slot].get_mut() = word;
        }
    }

    fn bucket(&self, region: usize) -> usize {
        let mask = self.buckets.len() - 1;
        let mut at = (region.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) & mask;
        loop {
            let key = self.buckets[at].0;
            if key == region || key == 0 {
                return at;
            }
            at = (at + 1) & mask;
        }
    }
    #[inline]
    fn find(&self, region: usize) -> Option<u32> {
        if self.regions.is_empty() {
            return None;
        }
        let bucket = self.buckets[self.bucket(region)];
        (bucket.0 == region).then_some(bucket.1)
    }
    fn find_or_add(&mut self, region: usize) -> u32 {
        if self.buckets.is_empty() {
            self.buckets = vec![(0, 0); 64];
        }
        let at = self.bucket(region);
        let index = if self.buckets[at].0 == region {
            self.buckets[at].1
        } else {
            let index = self.regions.len() as u32;
            self.regions.push(zeroes());
            self.buckets[at] = (region, index);
            if self.regions.len() * 2 > self.buckets.len() {
                self.grow();
            }
            index
        };
        self.last = (region, index);
        index
    }
    fn grow(&mut self) {
        let size = self.buckets.len() * 4;
        let old = std::mem::replace(&mut self.buckets, vec![(0, 0); size]);
        for bucket in old.into_iter().filter(|b| b.0 != 0) {
            let at = self.bucket(bucket.0);
            self.buckets[at] = bucket;
        }
    }
}

/// Region number + 1, and slot within the region.
#[inline]
fn place(object: Raw) -> (usize, usize) {
    let address = object as usize;
    ((address >> REGION_BITS) + 1, (address & ((1 << REGION_BITS) - 1)) / APART)
}

fn zeroes() -> Box<[AtomicU64; REGION_SLOTS]> {
    let boxed: Box<[AtomicU64]> = std::iter::repeat_with(AtomicU64::default).take(REGION_SLOTS).collect();
    boxed.try_into().expect("the slice has as many slots as the array")
}
