//! Objects that lie near each other.
//!
//! Here: [`Near`], the words of values that are all objects of one full region. Objects that were allocated one after
//! the other mostly are. The indices of their words are computed for all of them at once, in vectors. The words of one
//! region are few and in the cache, so they need no prefetch. Not here: other objects ([`IdentityMap`]).

use super::codes::{Codes, Short};
use super::{APART, IdentityMap, REGION_BITS, Raw, SLOTS, TOGETHER, place};
use ikra_core::backend::vectors::{Work, widest};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// The fewest values for which this pays. Fewer are found one by one as fast.
const SEVERAL: usize = 8;

/// The words of objects of one full region.
pub struct Near<'a> {
    words: &'a [AtomicU32; SLOTS],
    /// How many objects have words in full regions.
    objects: &'a AtomicUsize,
    codes: &'a Codes,
    /// The slot of each object.
    slots: [u16; TOGETHER],
    count: usize,
}

impl IdentityMap {
    /// The words of some values. None unless there are several, at most [`TOGETHER`], and all of them are objects in
    /// one full region.
    #[inline]
    pub fn near(&self, values: &[Raw]) -> Option<Near<'_>> {
        let (first, last) = (values.first()?, values.last()?);
        let number = place(*first).0;
        if !(SEVERAL..=TOGETHER).contains(&values.len()) || place(*last).0 != number {
            return None;
        }
        let from = self.region_of(number)?.from as usize;
        let mut slots = [0; TOGETHER];
        if from == 0 || !widest(Slots { values, slots: &mut slots }) {
            return None;
        }
        let words = self.words.get(from..from + SLOTS)?.try_into().ok()?;
        Some(Near { words, objects: &self.objects, codes: self.codes.as_deref()?, slots, count: values.len() })
    }
}

impl Near<'_> {
    /// The words of the first values, up to the first that has no short word with this upper half.
    #[inline]
    pub fn known(&self, upper: u32) -> impl Iterator<Item = u64> {
        let with = self.codes.with(upper);
        let slots = self.slots[..self.count].iter();
        slots.map_while(move |slot| with(self.words[usize::from(*slot)].load(Ordering::Relaxed)))
    }
    /// The words of all these values, which must be those of the look-up. 0 for one that has none.
    #[inline]
    pub fn all(&self, values: &[Raw]) -> impl Iterator<Item = u64> {
        let places = values.iter().zip(&self.slots);
        places.map(|(value, slot)| self.codes.word(*value, self.words[usize::from(*slot)].load(Ordering::Relaxed)))
    }
    /// Gives consecutive words to the values from one on, as long as they have none and `goes_along` accepts their
    /// position. Gives how many.
    #[inline]
    pub fn fill(&self, from: usize, first: u64, mut goes_along: impl FnMut(usize) -> bool) -> usize {
        let Some(first) = self.codes.shorten_all(first, self.count - from) else { return 0 };
        let mut next: Short = first;
        for (at, slot) in (from..).zip(&self.slots[from..self.count]) {
            let word = &self.words[usize::from(*slot)];
            if word.load(Ordering::Relaxed) != 0 || !goes_along(at) {
                break;
            }
            word.store(next, Ordering::Relaxed);
            next += 1;
        }
        let given = (next - first) as usize;
        self.objects.fetch_add(given, Ordering::Relaxed);
        given
    }
}

/// Computes the slots of values, as [`place`] does, in lanes of 16 bits. Also tests whether all of them are objects in
/// the region of the first.
struct Slots<'a> {
    values: &'a [Raw],
    slots: &'a mut [u16; TOGETHER],
}

impl Work for Slots<'_> {
    type Result = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Self { values, slots } = self;
        // No immediate has the lower bits and the region of an object.
        let differ = |a: Raw, b: Raw| (a ^ b) >> REGION_BITS | (a & 7);
        let mut different = 0;
        for (value, slot) in values.iter().zip(slots) {
            different |= differ(*value, values[0]);
            *slot = (*value & ((1 << REGION_BITS) - 1)) as u16 / APART as u16;
        }
        different == 0
    }
}
