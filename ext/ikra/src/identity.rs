//! Maps from VALUEs to numbers.
//!
//! Here: [`IdentityMap`], from objects on Ruby's heap to what was noted of them, by
//! address, with its words in short ([`codes`]), those of objects that lie together ([`near`]), and what stands in their place while several threads come to new ones ([`bids`]); and [`RawMap`], a small hash map for a few classes or symbols. Not here: reading objects.
//! Invariant: a map is asked only while what it names is alive and pinned; or else by who compares addresses first ([`crate::trace`]'s `again`).

mod bids;
mod codes;
mod near;

use crate::heap::{self, Raw};
pub use bids::MOST_PLACES;
use codes::{Codes, Short};
use ikra_core::memory::{ahead, table::Table};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

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
/// Values whose words are asked for together, before the first of them is looked at; half as many took a tenth longer.
pub const TOGETHER: usize = 32;
const REGION_BITS: u32 = 16;
/// Places of a region that has but a few objects, those that are enough unless objects lie close, the most that are found by a hash, and those of one in which each slot has its own.
const FEWEST: usize = 16;
const CLOSE: usize = 128;
const MOST: usize = 512;
const SLOTS: usize = (1 << REGION_BITS) / APART + 1;
/// With more places a region is full, if that is no waste.
const FULLER: usize = 32;
/// Bytes that words of full regions take at most for each object that has one there, for that; and regions for which nobody asks.
const WASTE: usize = 19;
const SPARE: usize = 640;
/// Bytes of the words of a full region.
const FULL: usize = SLOTS * size_of::<Short>();
/// Words of full regions that room is made for at once.
const MANY: usize = 1 << 22;
/// Where a word that is found by a hash says whose it is: the slot within the region. Words that are given have nothing there.
const SLOT: u64 = ((1 << 11) - 1) << SLOT_SHIFT;
const SLOT_SHIFT: u32 = 48;
const _: () = assert!(SLOTS <= 1 << 11);

/// A word other than 0 for each of many heap objects, with 0 in the bits 48 to 58.
///
/// A two-level table: addresses are cut into regions of 64 KiB, found by a small hash table, and within a region the
/// offset divided by 40, its slot, tells objects apart. A region has a hash table of words by slot, which grows with the number of its
/// objects; at last it is full, and each slot has its own place, for its word in short ([`Codes`]), which is found without a search: from 28 objects on, or from the start where nearly all regions are full, as long as full regions have
/// words of 19 bytes an object at most, and for some more, and else from 448 on, or 112 that lie close to each other. So memory goes by the number of objects (4 to 19 bytes
/// each, 59 of a few that lie close, 128 for one that is alone, and 4 MiB more), however far they are from each other. Where there is room in a region, many threads may set words of it.
///
/// As long as there are but a few objects, they stand in a list, and there are no regions.
#[derive(Default)]
pub struct IdentityMap {
    few: SmallVec<[(Raw, u64); FEW]>,
    /// Open addressing; as many as a power of two, or none.
    regions: Vec<Region>,
    used: usize,
    /// How many of them are full, and how many objects have words there, or room.
    full: usize,
    objects: AtomicUsize,
    /// The words of those in short, one region's after the other's; the first is nobody's, and always 0.
    words: Table<AtomicU32>,
    /// Where there are any.
    codes: Option<Box<Codes>>,
}

#[derive(Default)]
struct Region {
    /// 0: none.
    number: usize,
    /// Of a full one: where its words begin among those of all. Else 0.
    from: u32,
    few: Sparse,
}

/// The words of a region that is not full.
#[derive(Default)]
struct Sparse {
    /// Objects that have words, or room for them.
    count: usize,
    /// With so many there is too little room.
    most: usize,
    /// What takes a slot to the place where its word is looked for first: times 0x9e37, and then so many bits less.
    shift: u32,
    /// Open addressing, as many as a power of two, less than seven eighths of them used. 0: free.
    words: Box<[AtomicU64]>,
}

impl Sparse {
    /// Where a slot's word is looked for first.
    #[inline]
    fn first(&self, slot: usize) -> usize {
        usize::from((slot as u16).wrapping_mul(0x9e37)) >> self.shift
    }
    /// The place where a slot's word is, or is to be, and the word, 0 where there is none; as long as there is room for one more.
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
    /// Whether a third of the slots from the first object's to the last one's are those of objects.
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

/// Whose they are, and what they are without it.
fn slots(words: Box<[AtomicU64]>) -> impl Iterator<Item = (usize, u64)> {
    let words = words.into_iter().map(AtomicU64::into_inner).filter(|word| *word != 0);
    words.map(|word| (((word & SLOT) >> SLOT_SHIFT) as usize, word & !SLOT))
}

/// A word that says whose it is.
#[inline]
fn marked(slot: usize, word: u64) -> u64 {
    assert!(word & SLOT == 0, "no program has 65536 classes");
    word | (slot as u64) << SLOT_SHIFT
}

/// Where the word of a value is, or is to be, among those of full regions; 0: in none of these. For what is no object, anywhere.
#[derive(Clone, Copy, Default)]
pub struct Found(u32);

/// Where the word of an object is, or is to be, as long as no other is given one.
#[derive(Clone, Copy)]
pub struct Place {
    region: u32,
    /// Among those of a region that is not full.
    at: u16,
    slot: u16,
}

/// What is known of a value.
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
    /// The word of an object in a full region, by its short one.
    #[inline]
    fn word(&self, object: Raw, short: Short) -> u64 {
        self.codes.as_deref().map_or(0, |codes| codes.word(object, short))
    }
    /// The word of an object, 0 if it has none.
    #[inline]
    pub fn get(&self, object: Raw) -> u64 {
        self.look(object).0
    }
    /// Gives an object its word, after it was looked for and had none.
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
            if self.few.len() < FEW {
                return self.few.push((object, word));
            }
            self.spread();
        }
        self.add_to(place(object).0, 1);
        let (_, place) = self.look(object);
        self.put(object, place, word);
    }
    /// Where there is room.
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
    /// Gives an object its word, or leaves it the one that it has: that, or 0.
    #[inline]
    pub fn enter(&mut self, object: Raw, word: u64) -> u64 {
        let (known, place) = self.look(object);
        if known == 0 {
            self.fill(object, place, word);
        }
        known
    }
    /// Finds many values, at most [`TOGETHER`], and asks for the memory of their words.
    #[inline]
    pub fn look_all(&self, values: &[Raw], found: &mut [Found; TOGETHER]) {
        // those that follow each other are mostly of one region
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
    /// Asks for the memory of those of which nothing is known, for whoever looks at them next.
    #[inline]
    pub fn ask_for_unknown(&self, values: &[Raw], found: &[Found; TOGETHER]) {
        for (value, found) in values.iter().zip(found) {
            if self.words.get(found.0 as usize).is_none_or(|word| word.load(Ordering::Relaxed) == 0) {
                // of what is no object it is a hint about nothing
                heap::prefetch(*value);
            }
        }
    }
    /// Goes over values that were looked for together, as long as they are in full regions and `step` goes along: it hears of each what is known of it, and says the word of one that has none. Returns how many it went over.
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
    /// Tells the word of each of many values, by its position: 0 for one that has none, and for what is no object. Memory is asked for some values ahead.
    ///
    /// # Errors
    /// The first that `tell` gives.
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
    /// Makes room for so many more objects of each region, with words that have such upper halves.
    pub fn reserve(&mut self, more: &WordMap<usize, usize>, uppers: impl Iterator<Item = u32>) {
        let codes = self.codes.get_or_insert_default();
        uppers.for_each(|upper| _ = codes.give(upper));
        if self.regions.is_empty() {
            self.spread();
        }
        more.iter().for_each(|(number, more)| self.add_to(*number, *more));
    }
    /// Gives an object that was found, and for which there is room, its word; false where it has one already.
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

    /// Asks for the memory of an object's word ahead of its use.
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

    /// Moves the few to their regions.
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

    /// The place of a region, or the free one that it is to have.
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
        let places = (region.few.count * 8 / 7 + 1).next_power_of_two().max(FEWEST);
        // where nearly all regions are full, this will be, too
        let soon = places > FULLER || self.full * 4 >= self.used * 3;
        let (bytes, spare) = (self.full * FULL, SPARE * FULL);
        let is_no_waste = bytes <= spare + WASTE * *self.objects.get_mut();
        if places > MOST || soon && is_no_waste || places > CLOSE && region.few.are_close() {
            self.fill_up(at);
        } else {
            region.few.grow(places);
        }
    }
    /// Gives each slot of a region its place.
    fn fill_up(&mut self, at: usize) {
        self.full += 1;
        *self.objects.get_mut() += self.regions[at].few.count;
        let from = self.words.len().max(1);
        if from + SLOTS > self.words.capacity() {
            // what is never touched costs addresses alone
            self.words.reserve(if self.full > 8 { MANY } else { 8 * SLOTS });
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
    use super::{APART, FULL, Found, IdentityMap, Known, Ordering, REGION_BITS, Raw, SPARE, TOGETHER, WordMap};
    use std::collections::HashMap;

    /// Numbers that look as if by chance, the same each time.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (self.0 >> 33) % end
        }
    }

    /// Objects of a heap: `near` of ten are one after the other, others anywhere.
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
            // numbers and nil have none, whatever their bits are
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
                // some twice, and numbers among them
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
        // regions get full, and some of their objects have words
        // and a few of these such that have no short ones
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
            let spare = if near == 10 { 0 } else { SPARE * FULL };
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
        // 66 bytes for each of a hundred objects, 10 with a hash
        let some = full(4 * SPARE, 100);
        assert!((SPARE..2 * SPARE).contains(&some), "{some}");
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
