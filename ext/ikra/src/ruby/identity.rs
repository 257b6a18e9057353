//! Maps from VALUEs to numbers.
//!
//! Here: [`IdentityMap`], from the address of an object on Ruby's heap to a word, and [`RawMap`], a small hash map for
//! a few classes or symbols. Three modules belong to the identity map:
//!
//! * [`codes`]: words in half their size.
//! * [`near`]: the words of objects that lie together.
//! * [`reservations`]: how several threads number new objects.
//!
//! Not here: reading objects.
//! Invariant: the objects of a map are alive and pinned whenever the map is used. The only exception compares addresses
//! first ([`crate::marshal::trace`]'s `revalidate`).

mod codes;
mod near;
mod reservations;

use crate::ruby::heap::{self, Raw};
use codes::{Codes, Short};
use ikra_core::memory::{ahead, table::Table};
pub use reservations::MAX_PLACES;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Hashes by multiplication. VALUEs differ in their middle bits.
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

/// The least distance, in bytes, of two objects on Ruby's heap, in every Ruby since 2.0.
const APART: usize = 40;
/// The most objects that are kept in a list, without regions.
const MAX_LISTED_OBJECTS: usize = 8;
/// The number of values whose words are prefetched together, before the first of them is read. Half as many took a
/// tenth longer.
pub const TOGETHER: usize = 32;
const REGION_BITS: u32 = 16;
/// Numbers of entries of a region: the least of a hash table; enough unless objects lie close; the most of a hash
/// table; and with one entry for each slot.
const MIN_ENTRIES: usize = 16;
const MAX_SCATTERED_ENTRIES: usize = 128;
const MAX_ENTRIES: usize = 512;
const SLOTS: usize = (1 << REGION_BITS) / APART + 1;
/// A region that would need more entries than this becomes full, if that wastes little memory.
const MIN_FULL_ENTRIES: usize = 32;
/// The most bytes that words of full regions may take for each object that has a word there; and a number of full
/// regions that is always allowed.
const MAX_FULL_BYTES_PER_OBJECT: usize = 19;
const MAX_SPARE_REGIONS: usize = 640;
/// Bytes of the words of a full region.
const FULL_REGION_BYTES: usize = SLOTS * size_of::<Short>();
/// The number of words of full regions for which memory is reserved at once.
const RESERVED_WORDS: usize = 1 << 22;
/// The bits of a hash table's word that name its object's slot within the region. Words that callers give have zeros
/// there.
const SLOT: u64 = ((1 << 11) - 1) << SLOT_SHIFT;
const SLOT_SHIFT: u32 = 48;
const _: () = assert!(SLOTS <= 1 << 11);

/// A word other than 0 for each of many heap objects. Bits 48 to 58 of the word are 0.
///
/// The map is a two-level table. Addresses are cut into regions of 64 KiB, which a small hash table finds. The offset
/// within a region, divided by 40, is the object's slot.
///
/// * A sparse region has a hash table of words by slot, which grows with the number of its objects.
/// * A full region has one entry for each slot, which is found without a search. The entry is a short word ([`Codes`]).
///
/// A region becomes full with 28 objects, or at once where nearly all regions are full. This holds as long as full
/// regions have at most 19 bytes of words for each object, and for some regions more. Otherwise a region becomes full
/// with 448 objects, or with 112 that lie close to each other.
///
/// So memory grows with the number of objects, however far they are from each other. An object takes 4 to 19 bytes, 59
/// where a few lie close, and 128 where it is alone. The map takes 4 MiB more. Where a region has room, many threads
/// may set its words at once.
///
/// A few objects are kept in a list, without regions.
#[derive(Default)]
pub struct IdentityMap {
    few: SmallVec<[(Raw, u64); MAX_LISTED_OBJECTS]>,
    /// A hash table with open addressing. Its size is a power of two, or 0.
    regions: Vec<Region>,
    used: usize,
    /// How many regions are full, and how many objects have words there, or room for them.
    full: usize,
    objects: AtomicUsize,
    /// The short words of full regions, one region after the other. The first belongs to no region, and is always 0.
    words: Table<AtomicU32>,
    /// The codes of the short words, if there are any.
    codes: Option<Box<Codes>>,
}

#[derive(Default)]
struct Region {
    /// The number of the region. 0: there is none.
    number: usize,
    /// In a full region, the index of its first word among all short words. Else 0.
    from: u32,
    few: Sparse,
}

/// The words of a region that is not full.
#[derive(Default)]
struct Sparse {
    /// Objects that have words, or room for them.
    count: usize,
    /// The number of objects from which on there is too little room.
    most: usize,
    /// Determines the first entry for a slot: the slot times 0x9e37, shifted right by so many bits.
    shift: u32,
    /// A hash table with open addressing. Its size is a power of two, and less than seven eighths are used. 0: free.
    words: Box<[AtomicU64]>,
}

impl Sparse {
    /// The first entry where a slot's word may be.
    #[inline]
    fn first(&self, slot: usize) -> usize {
        usize::from((slot as u16).wrapping_mul(0x9e37)) >> self.shift
    }
    /// The entry of a slot's word, or the one that it will have, and the word, or 0. For this, there must be room for
    /// one more.
    #[inline]
    fn find(&self, slot: usize) -> (usize, u64) {
        let mut at = self.first(slot);
        loop {
            let Some(word) = self.words.get(at) else { return (at, 0) };
            let word = word.load(Ordering::Relaxed);
            if word == 0 || word & SLOT == (slot as u64) << SLOT_SHIFT {
                return (at, word);
            }
            at = (at + 1) & (self.words.len() - 1);
        }
    }
    /// Whether at least a third of the slots between the first and the last object have objects.
    fn are_close(&self) -> bool {
        let slots = self.words.iter().map(|word| (word.load(Ordering::Relaxed) & SLOT) >> SLOT_SHIFT);
        let taken = slots.zip(&self.words).filter(|(_, word)| word.load(Ordering::Relaxed) != 0).map(|(slot, _)| slot);
        let (first, last) = taken.fold((u64::MAX, 0), |(first, last), slot| (first.min(slot), last.max(slot)));
        first <= last && self.count as u64 * 3 > last - first
    }
    fn grow(&mut self, places: usize) {
        (self.shift, self.most) = (16 - places.trailing_zeros(), (places * 7).div_ceil(8));
        let fresh = (0..places).map(|_| AtomicU64::new(0)).collect();
        for (slot, word) in slots(std::mem::replace(&mut self.words, fresh)) {
            let (place, _) = self.find(slot);
            *self.words[place].get_mut() = marked(slot, word);
        }
    }
}

/// The slots of words, and the words without their slot bits.
fn slots(words: Box<[AtomicU64]>) -> impl Iterator<Item = (usize, u64)> {
    let words = words.into_iter().map(AtomicU64::into_inner).filter(|word| *word != 0);
    words.map(|word| (((word & SLOT) >> SLOT_SHIFT) as usize, word & !SLOT))
}

/// A word with its slot in it.
#[inline]
fn marked(slot: usize, word: u64) -> u64 {
    assert!(word & SLOT == 0, "no program has 65536 classes");
    word | (slot as u64) << SLOT_SHIFT
}

/// The index of a value's word, or of its future word, among those of full regions. 0: it is in none of these. For a
/// value that is no object, the index means nothing.
#[derive(Clone, Copy, Default)]
pub struct Found(u32);

/// Where the word of an object is, or will be. It is valid until another object gets a word.
#[derive(Clone, Copy)]
pub struct Place {
    region: u32,
    /// The entry in a region that is not full.
    at: u16,
    slot: u16,
}

/// What the map knows of a value.
#[derive(Clone, Copy)]
pub enum Known {
    Immediate,
    Word(u64),
    Nothing,
}

impl IdentityMap {
    /// The word of an object, 0 if it has none, and its place.
    #[inline]
    pub fn look(&self, object: Raw) -> (u64, Place) {
        let (number, slot) = place(object);
        let mut place = Place { region: 0, at: 0, slot: slot as u16 };
        if self.regions.is_empty() {
            let known = self.few.iter().find(|(known, _)| *known == object);
            return (known.map_or(0, |(_, word)| *word), place);
        }
        let at = self.place_of(number);
        place.region = at as u32;
        let region = &self.regions[at];
        if region.from != 0 {
            let short = self.words[region.from as usize + slot].load(Ordering::Relaxed);
            return (self.word(object, short), place);
        }
        let (at, word) = region.few.find(slot);
        place.at = at as u16;
        (word & !SLOT, place)
    }
    /// The word of an object in a full region, from its short word.
    #[inline]
    fn word(&self, object: Raw, short: Short) -> u64 {
        self.codes.as_deref().map_or(0, |codes| codes.word(object, short))
    }
    /// The word of an object, 0 if it has none.
    #[inline]
    pub fn get(&self, object: Raw) -> u64 {
        self.look(object).0
    }
    /// Gives a word to an object, which a look-up has found to have none.
    #[inline]
    pub fn fill(&mut self, object: Raw, place: Place, word: u64) {
        match self.regions.get_mut(place.region as usize) {
            Some(region) if region.from != 0 => {
                *self.objects.get_mut() += 1;
                self.put(object, place, word);
            }
            Some(region) if region.few.count + 1 < region.few.most => {
                region.few.count += 1;
                self.put(object, place, word);
            }
            _ => self.fill_slowly(object, word),
        }
    }
    #[cold]
    fn fill_slowly(&mut self, object: Raw, word: u64) {
        if self.regions.is_empty() {
            if self.few.len() < MAX_LISTED_OBJECTS {
                return self.few.push((object, word));
            }
            self.spread();
        }
        self.add_to(place(object).0, 1);
        let (_, place) = self.look(object);
        self.put(object, place, word);
    }
    /// The same, where there is room.
    #[inline]
    fn put(&mut self, object: Raw, place: Place, word: u64) {
        let region = &mut self.regions[place.region as usize];
        if region.from != 0 {
            let at = region.from as usize + usize::from(place.slot);
            *self.words[at].get_mut() = self.codes.get_or_insert_default().shorten(object, word);
        } else {
            *region.few.words[usize::from(place.at)].get_mut() = marked(usize::from(place.slot), word);
        }
    }
    /// Gives an object a word, unless it has one. Gives the word that it had, or 0.
    #[inline]
    pub fn enter(&mut self, object: Raw, word: u64) -> u64 {
        let (known, place) = self.look(object);
        if known == 0 {
            self.fill(object, place, word);
        }
        known
    }
    /// Finds many values, at most [`TOGETHER`], and prefetches their words.
    #[inline]
    pub fn look_all(&self, values: &[Raw], found: &mut [Found; TOGETHER]) {
        // Consecutive values are mostly in one region.
        let (mut last, mut from, mut few) = (0, 0, None);
        for (value, found) in values.iter().zip(found) {
            let (number, slot) = place(*value);
            if number != last {
                if heap::is_immediate(*value) || self.regions.is_empty() {
                    *found = Found(0);
                    continue;
                }
                let region = &self.regions[self.place_of(number)];
                (last, from) = (number, region.from);
                few = (from == 0).then_some(&region.few);
            }
            if let Some(few) = few {
                ahead::to_read(few.words.as_ptr().wrapping_add(few.first(slot)));
                *found = Found(0);
            } else {
                let at = from + slot as u32;
                ahead::to_read(self.words.as_ptr().wrapping_add(at as usize));
                *found = Found(at);
            }
        }
    }
    /// Prefetches the objects among these values that have no word, because the caller reads them next.
    #[inline]
    pub fn ask_for_unknown(&self, values: &[Raw], found: &[Found; TOGETHER]) {
        for (value, found) in values.iter().zip(found) {
            if self.words.get(found.0 as usize).is_none_or(|word| word.load(Ordering::Relaxed) == 0) {
                // For a value that is no object, the hint is useless, but harmless.
                heap::prefetch(*value);
            }
        }
    }
    /// Visits values that were found together, as long as they are in full regions and `step` continues. `step` gets
    /// what the map knows of each, and gives the word for one that has none. Returns how many values it visited.
    #[inline(always)]
    pub fn fill_while(
        &mut self,
        values: &[Raw],
        found: &[Found],
        mut step: impl FnMut(Raw, Known) -> Option<u64>,
    ) -> usize {
        let (words, mut codes) = (&mut self.words[..], self.codes.as_deref_mut());
        let (mut done, mut objects) = (0, 0);
        for (value, found) in values.iter().zip(found) {
            if heap::is_immediate(*value) {
                if step(*value, Known::Immediate).is_none() {
                    break;
                }
            } else {
                if found.0 == 0 {
                    break;
                }
                let (Some(word), Some(codes)) = (words.get_mut(found.0 as usize), &mut codes) else { break };
                let short = word.get_mut();
                let known = if *short == 0 { Known::Nothing } else { Known::Word(codes.word(*value, *short)) };
                let Some(given) = step(*value, known) else { break };
                if *short == 0 {
                    *short = codes.shorten(*value, given);
                    objects += 1;
                }
            }
            done += 1;
        }
        *self.objects.get_mut() += objects;
        done
    }
    /// Passes to `tell` the word of each of many values, by its position: 0 where the value has none, or is no object.
    /// Memory is prefetched some values ahead.
    ///
    /// # Errors
    /// The first error of `tell`.
    #[inline]
    pub fn each<E>(&self, values: &[Raw], mut tell: impl FnMut(usize, u64) -> Result<(), E>) -> Result<(), E> {
        let mut words = [0; TOGETHER];
        for (chunk, values) in values.chunks(TOGETHER).enumerate() {
            self.words_of(values, &mut words);
            let mut words = words[..values.len()].iter().enumerate();
            words.try_for_each(|(i, word)| tell(chunk * TOGETHER + i, *word))?;
        }
        Ok(())
    }
    /// The words of many values, at most [`TOGETHER`].
    fn words_of(&self, values: &[Raw], words: &mut [u64; TOGETHER]) {
        if let Some(near) = self.near(values) {
            near.all(values).zip(words).for_each(|(word, out)| *out = word);
            return;
        }
        let mut found = [Found(0); TOGETHER];
        self.look_all(values, &mut found);
        for ((value, found), out) in values.iter().zip(&found).zip(words) {
            *out = match self.words.get(found.0 as usize) {
                _ if heap::is_immediate(*value) => 0,
                Some(word) if found.0 != 0 => self.word(*value, word.load(Ordering::Relaxed)),
                _ => self.get(*value),
            };
        }
    }
    /// The number of the region that an object is in.
    #[inline]
    pub fn region(object: Raw) -> usize {
        place(object).0
    }
    /// Makes room for so many more objects of each region, whose words have these upper halves.
    pub fn reserve(&mut self, more: &WordMap<usize, usize>, uppers: impl Iterator<Item = u32>) {
        let codes = self.codes.get_or_insert_default();
        uppers.for_each(|upper| _ = codes.give(upper));
        if self.regions.is_empty() {
            self.spread();
        }
        more.iter().for_each(|(number, more)| self.add_to(*number, *more));
    }
    /// Gives a word to an object that was found, and for which there is room. False where it has one already.
    #[inline]
    pub fn claim(&self, object: Raw, found: Found, word: u64) -> bool {
        if found.0 != 0 {
            let place = &self.words[found.0 as usize];
            let claim = |short| place.compare_exchange(0, short, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            return self.codes.as_deref().is_some_and(|codes| codes.claim(object, word, claim));
        }
        let (number, slot) = place(object);
        let Some(region) = self.region_of(number).filter(|region| region.from == 0) else { return false };
        loop {
            let (place, known) = region.few.find(slot);
            if known != 0 {
                return false;
            }
            let (place, word) = (&region.few.words[place], marked(slot, word));
            if place.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return true;
            }
        }
    }

    #[cfg(test)]
    fn find(&self, object: Raw) -> Found {
        let mut found = [Found::default(); TOGETHER];
        self.look_all(&[object], &mut found);
        found[0]
    }

    /// Whether no object has a word.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty() && self.few.is_empty()
    }

    /// Prefetches an object's word.
    #[inline]
    pub fn prefetch(&self, object: Raw) {
        let (number, slot) = place(object);
        match self.region_of(number) {
            Some(region) if region.from == 0 => {
                ahead::to_read(region.few.words.as_ptr().wrapping_add(region.few.first(slot)));
            }
            Some(region) => ahead::to_read(self.words.as_ptr().wrapping_add(region.from as usize + slot)),
            None => {}
        }
    }

    /// Moves the objects of the list to regions.
    #[cold]
    fn spread(&mut self) {
        self.grow();
        for (object, word) in std::mem::take(&mut self.few) {
            self.enter(object, word);
        }
    }

    #[inline]
    fn region_of(&self, number: usize) -> Option<&Region> {
        let region = if self.regions.is_empty() { None } else { self.regions.get(self.place_of(number)) };
        region.filter(|region| region.number == number)
    }

    /// The entry of a region, or the free one that it will have.
    #[inline]
    fn place_of(&self, number: usize) -> usize {
        let mask = self.regions.len() - 1;
        let mut at = hash(number) & mask;
        while self.regions[at].number != number && self.regions[at].number != 0 {
            at = (at + 1) & mask;
        }
        at
    }
    /// Makes room in a region for so many more objects.
    fn add_to(&mut self, number: usize, more: usize) {
        let mut at = self.place_of(number);
        if self.regions[at].number == 0 {
            self.used += 1;
            if self.used * 2 > self.regions.len() {
                self.grow();
                at = self.place_of(number);
            }
            self.regions[at].number = number;
        }
        let region = &mut self.regions[at];
        region.few.count += more;
        if region.from != 0 {
            *self.objects.get_mut() += more;
            return;
        }
        if region.few.count < region.few.most {
            return;
        }
        let places = (region.few.count * 8 / 7 + 1).next_power_of_two().max(MIN_ENTRIES);
        // Where nearly all regions are full, this one will be, too.
        let soon = places > MIN_FULL_ENTRIES || self.full * 4 >= self.used * 3;
        let (bytes, spare) = (self.full * FULL_REGION_BYTES, MAX_SPARE_REGIONS * FULL_REGION_BYTES);
        let is_no_waste = bytes <= spare + MAX_FULL_BYTES_PER_OBJECT * *self.objects.get_mut();
        if places > MAX_ENTRIES || soon && is_no_waste || places > MAX_SCATTERED_ENTRIES && region.few.are_close() {
            self.fill_up(at);
        } else {
            region.few.grow(places);
        }
    }
    /// Makes a region full.
    fn fill_up(&mut self, at: usize) {
        self.full += 1;
        *self.objects.get_mut() += self.regions[at].few.count;
        let from = self.words.len().max(1);
        if from + SLOTS > self.words.capacity() {
            // Pages that are never touched take only addresses.
            self.words.reserve(if self.full > 8 { RESERVED_WORDS } else { 8 * SLOTS });
        }
        let fresh = self.words.add(from + SLOTS - self.words.len());
        fresh.iter_mut().for_each(|word| *word = AtomicU32::default());
        let region = &mut self.regions[at];
        region.from = u32::try_from(from).expect("16 GiB of words are those of four thousand million objects");
        let (start, codes) = ((region.number - 1) << REGION_BITS, self.codes.get_or_insert_default());
        for (slot, word) in slots(std::mem::take(&mut region.few).words) {
            *self.words[from + slot].get_mut() = codes.shorten((start + slot * APART) as Raw, word);
        }
    }
    #[cold]
    fn grow(&mut self) {
        let len = (self.regions.len() * 4).max(64);
        let fresh = std::iter::repeat_with(Region::default).take(len).collect();
        let old = std::mem::replace(&mut self.regions, fresh);
        for region in old.into_iter().filter(|region| region.number != 0) {
            let at = self.place_of(region.number);
            self.regions[at] = region;
        }
    }
}

#[inline]
fn hash(number: usize) -> usize {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// Region number + 1, and slot within the region.
#[inline]
fn place(object: Raw) -> (usize, usize) {
    let address = object as usize;
    ((address >> REGION_BITS) + 1, (address & ((1 << REGION_BITS) - 1)) / APART)
}

#[cfg(test)]
mod tests {
    use super::{
        APART, FULL_REGION_BYTES, Found, IdentityMap, Known, MAX_SPARE_REGIONS, Ordering, REGION_BITS, Raw, TOGETHER,
        WordMap,
    };
    use std::collections::HashMap;

    /// Pseudo-random numbers, the same each time.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (self.0 >> 33) % end
        }
    }

    /// Objects of a heap: of ten, `near` follow each other, and the others are anywhere.
    fn objects(count: u64, near: u64, dice: &mut Dice) -> Vec<Raw> {
        let mut next = 1 << 40;
        let mut objects = Vec::new();
        for _ in 0..count {
            next += APART as u64 * if dice.below(10) < near { 1 } else { 1 + dice.below(400) };
            objects.push(next as Raw);
        }
        objects
    }

    #[test]
    fn every_object_has_its_own_word_however_near_or_far_others_are() {
        let mut dice = Dice(7);
        for (count, near) in [(0, 0), (1, 0), (8, 10), (9, 10), (300, 0), (3_000, 9), (30_000, 10), (30_000, 0)] {
            let all = objects(count, near, &mut dice);
            let (mut map, mut known) = (IdentityMap::default(), HashMap::new());
            for _ in 0..2 * count {
                let object = all[dice.below(count) as usize];
                let word = 1 << 63 | dice.below(1 << 48) | 1;
                assert_eq!(map.enter(object, word), *known.get(&object).unwrap_or(&0));
                known.entry(object).or_insert(word);
            }
            let word = |object: &Raw| known.get(object).copied().unwrap_or(0);
            assert!(all.iter().all(|object| map.get(*object) == word(object)));
            let mut told = Vec::new();
            let told_all = map.each(&all, |i, word| {
                told.push((i, word));
                Ok::<_, ()>(())
            });
            assert_eq!(told_all, Ok(()));
            assert_eq!(told, all.iter().map(word).enumerate().collect::<Vec<_>>());
            // Numbers and nil have no word, whatever their bits are.
            let immediate: Vec<Raw> = all.iter().map(|object| object | 1).chain([super::heap::NIL, 0]).collect();
            assert_eq!(map.each(&immediate, |_, word| if word == 0 { Ok(()) } else { Err(word) }), Ok(()));
        }
    }

    #[test]
    fn what_was_found_of_many_at_once_is_right_while_they_get_their_words() {
        let mut dice = Dice(11);
        for (count, near) in [(5, 10), (100, 0), (5_000, 9), (60_000, 10), (20_000, 2)] {
            let all = objects(count, near, &mut dice);
            let (mut map, mut known) = (IdentityMap::default(), HashMap::new());
            for turn in 0..2 * count as usize / TOGETHER + 1 {
                // Some occur twice, and there are numbers among them.
                let any = (0..TOGETHER).map(|_| all[dice.below(count) as usize] | Raw::from(dice.below(8) == 0));
                let in_order = all.iter().cycle().skip(turn * TOGETHER).take(TOGETHER).copied();
                let some: Vec<Raw> = if turn % 2 == 0 { any.collect() } else { in_order.collect() };
                let mut found = [Found::default(); TOGETHER];
                map.look_all(&some, &mut found);
                map.ask_for_unknown(&some, &found);
                let mut at = 0;
                while at < some.len() {
                    at += map.fill_while(&some[at..], &found[at..], |object, what| {
                        let word = known.get(&object).copied().unwrap_or(0);
                        match what {
                            Known::Immediate => assert_eq!(object & 1, 1),
                            Known::Nothing => assert_eq!(word, 0),
                            Known::Word(what) => assert_eq!(what, word),
                        }
                        let given = dice.below(1 << 48) + 1;
                        if let Known::Nothing = what {
                            if given.is_multiple_of(8) {
                                return None;
                            }
                            known.insert(object, given);
                        }
                        Some(given)
                    });
                    let Some(object) = some.get(at).filter(|object| *object & 1 == 0) else { continue };
                    let given = dice.below(1 << 48) + 1;
                    assert_eq!(map.enter(*object, given), known.get(object).copied().unwrap_or(0));
                    known.entry(*object).or_insert(given);
                    at += 1;
                }
            }
            assert!(all.iter().all(|object| map.get(*object) == known.get(object).copied().unwrap_or(0)));
            assert_eq!(map.objects.load(Ordering::Relaxed), in_full_regions(&map), "each is counted once");
        }
    }

    fn in_full_regions(map: &IdentityMap) -> usize {
        map.words.iter().filter(|word| word.load(Ordering::Relaxed) != 0).count()
    }

    #[test]
    fn words_of_objects_near_each_other_are_those_that_each_of_them_has() {
        let mut dice = Dice(13);
        let all = objects(20_000, 10, &mut dice);
        let (mut map, mut known) = (IdentityMap::default(), HashMap::new());
        // Regions become full, and some of their objects have words.
        // A few of these words have no short form.
        let beyond = 5 << 32 | u64::from(u32::MAX);
        for object in &all {
            let word = match dice.below(150) {
                0..50 => continue,
                50..52 => beyond,
                _ => 5 << 32 | 7,
            };
            map.enter(*object, word);
            known.insert(*object, word);
        }
        map.reserve(&WordMap::default(), 6..7);
        let mut together = 0;
        for some in all.chunks(TOGETHER) {
            let mut some = some.to_vec();
            some.sort_by_key(|object| !known.contains_key(object));
            some.rotate_right(dice.below(3) as usize);
            let immediate = dice.below(8) == 0;
            some[TOGETHER / 2] |= Raw::from(immediate);
            let Some(near) = map.near(&some) else { continue };
            assert!(!immediate, "it is no object");
            assert_eq!(IdentityMap::region(some[0]), IdentityMap::region(some[TOGETHER / 2]));
            together += 1;
            let word = |object: &Raw| known.get(object).copied().unwrap_or(0);
            assert_eq!(near.all(&some).collect::<Vec<_>>(), some.iter().map(word).collect::<Vec<_>>());
            let told = map.each(&some, |i, told| if told == word(&some[i]) { Ok(()) } else { Err(told) });
            assert_eq!(told, Ok(()));
            let expected: Vec<u64> = some.iter().map(word).take_while(|word| *word == 5 << 32 | 7).collect();
            assert_eq!(near.known(5).collect::<Vec<_>>(), expected);
            assert_eq!(near.known(6).count(), 0);
            let most = dice.below(TOGETHER as u64) as usize;
            let fresh = some[expected.len()..].iter().take_while(|object| word(object) == 0);
            let fresh: Vec<Raw> = fresh.take(most).copied().collect();
            let first = 6 << 32 | dice.below(1 << 20);
            let filled = near.fill(expected.len(), first, |at| at < expected.len() + most);
            assert_eq!(filled, fresh.len());
            known.extend(fresh.into_iter().zip(first..));
        }
        assert!(together > 300, "{together} of 625");
        assert_eq!(map.objects.load(Ordering::Relaxed), in_full_regions(&map));
        assert!(all.iter().all(|object| map.get(*object) == known.get(object).copied().unwrap_or(0)));
        assert!(map.near(&[]).is_none() && map.near(&[super::heap::NIL; TOGETHER]).is_none());
    }

    #[test]
    fn objects_that_are_given_words_twice_among_those_near_each_other_keep_the_first() {
        let mut map = IdentityMap::default();
        let all = objects(2_000, 10, &mut Dice(17));
        all.iter().skip(TOGETHER).for_each(|object| assert_eq!(map.enter(*object, 9 << 32), 0));
        let mut some = all[..TOGETHER].to_vec();
        some[TOGETHER - 1] = some[3];
        assert_eq!(map.near(&some).map(|near| near.fill(0, 1 << 32, |_| true)), Some(0), "there is no such word yet");
        map.reserve(&WordMap::default(), 1..2);
        let near = map.near(&some).expect("they are one after the other");
        assert_eq!(near.fill(0, 1 << 32, |_| true), TOGETHER - 1);
        let words: Vec<u64> = near.known(1).collect();
        assert_eq!((words.len(), words[TOGETHER - 1]), (TOGETHER, 1 << 32 | 3));
    }

    #[test]
    fn words_take_five_bytes_an_object_where_they_lie_close_and_no_more_than_nineteen_elsewhere_but_for_some_regions() {
        const COUNT: usize = 1_000_000;
        for (near, most) in [(10, 5), (9, 19), (0, 19)] {
            let mut map = IdentityMap::default();
            for object in objects(COUNT as u64, near, &mut Dice(5)) {
                map.enter(object, 1);
            }
            let by_hash: usize = map.regions.iter().map(|region| size_of_val(&region.few.words[..])).sum();
            let bytes = by_hash + size_of_val(&map.words[..]);
            let spare = if near == 10 { 0 } else { MAX_SPARE_REGIONS * FULL_REGION_BYTES };
            assert!(bytes <= COUNT * most + spare, "{} bytes an object", bytes as f64 / COUNT as f64);
        }
    }

    #[test]
    fn regions_are_full_soon_but_not_where_that_is_waste() {
        let full = |regions: usize, objects: usize| {
            let mut map = IdentityMap::default();
            for region in 0..regions {
                for object in 0..objects {
                    map.enter((((region + 9) << REGION_BITS) + object * 13 * APART) as Raw, 1);
                }
            }
            map.full
        };
        assert_eq!(full(10, 27), 0);
        assert_eq!(full(10, 40), 10);
        // 66 bytes for each of a hundred objects. With a hash table it would be 10.
        let some = full(4 * MAX_SPARE_REGIONS, 100);
        assert!((MAX_SPARE_REGIONS..2 * MAX_SPARE_REGIONS).contains(&some), "{some}");
    }

    #[test]
    fn threads_give_words_where_there_is_room_and_one_of_them_is_the_first() {
        let all = objects(20_000, 5, &mut Dice(3));
        let mut map = IdentityMap::default();
        assert_eq!(map.enter(all[5], 77), 0);
        let mut regions = WordMap::default();
        for object in &all {
            *regions.entry(IdentityMap::region(*object)).or_default() += 1;
        }
        map.reserve(&regions, 0..1);
        let first = std::thread::scope(|scope| {
            let claim = |thread: u64| {
                let (map, all) = (&map, &all);
                scope.spawn(move || {
                    all.iter().filter(|object| map.claim(**object, map.find(**object), thread + 1)).count()
                })
            };
            let threads: Vec<_> = (0..4).map(claim).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum::<usize>()
        });
        assert_eq!(first, all.len() - 1, "each but the one that was known");
        assert!(all.iter().enumerate().all(|(i, object)| if i == 5 {
            map.get(*object) == 77
        } else {
            (1..5).contains(&map.get(*object))
        }));
        let far = all[0] + (1 << 30);
        assert!(!map.claim(far, map.find(far), 9), "there is no room");
    }
}
