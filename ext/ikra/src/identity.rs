//! Maps from VALUEs to numbers.
//!
//! Here: [`IdentityMap`], from objects on Ruby's heap to what was noted of them, by
//! address; and [`RawMap`], a small hash map for a few classes or symbols. Not here: reading objects.
//! Invariant: a map is asked only while what it names is alive and pinned; or else by who compares addresses first ([`crate::trace`]'s `again`).

use crate::crew;
use crate::heap::{self, Raw};
use ikra_core::memory::ahead;
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
/// Values whose words are asked for together, before the first of them is looked at; half as many took a tenth longer.
const TOGETHER: usize = 32;
const REGION_BITS: u32 = 16;
/// Places for regions of one piece of work.
const REGIONS: usize = 64;
/// Of what no object is.
static NO_WORD: AtomicU64 = AtomicU64::new(0);
/// Places of a region that has but a few objects, and of one in which each slot has its own.
const FEWEST: usize = 16;
const SLOTS: usize = (1 << REGION_BITS) / APART + 1;
/// Where a word says whose it is: the slot within the region. Words that are given have nothing there.
const SLOT: u64 = ((1 << 11) - 1) << SLOT_SHIFT;
const SLOT_SHIFT: u32 = 48;
const _: () = assert!(SLOTS <= 1 << 11);

/// A word other than 0 for each of many heap objects, with 0 in the bits 48 to 58.
///
/// A two-level table: addresses are cut into regions of 64 KiB, found by a small hash table, and within a region the
/// offset divided by 40, its slot, tells objects apart. A region has a hash table of words by slot, which grows with the number of its
/// objects; from 896 on each slot has its own place. So memory goes by the number of objects (8 to 19 bytes each, 128 for one that is
/// alone), however far they are from each other. Where there is room in a region, many threads may set words of it.
///
/// As long as there are but a few objects, they stand in a list, and there are no regions.
#[derive(Default)]
pub struct IdentityMap {
    few: [(Raw, u64); FEW],
    count: usize,
    /// Open addressing; as many as a power of two, or none.
    regions: Vec<Region>,
    used: usize,
}

#[derive(Default)]
struct Region {
    /// 0: none.
    number: usize,
    /// Objects that have words, or room for them.
    count: usize,
    /// Open addressing; as many as a power of two, less than seven eighths of them used, or as slots. 0: free.
    words: Box<[AtomicU64]>,
}

impl Region {
    /// Where a slot's word is looked for first.
    #[inline]
    fn first(&self, slot: usize) -> usize {
        match self.words.len() {
            SLOTS => slot,
            len => usize::from((slot as u16).wrapping_mul(0x9e37) >> (16 - len.trailing_zeros())),
        }
    }
    /// The place where a slot's word is, or is to be, and the word: 0 where there is none.
    #[inline]
    fn find(&self, slot: usize) -> (usize, u64) {
        let mut at = self.first(slot);
        loop {
            let word = self.words[at].load(Ordering::Relaxed);
            if word == 0 || word & SLOT == (slot as u64) << SLOT_SHIFT {
                return (at, word);
            }
            // there is a free one, and of as many as slots the first was it
            at = (at + 1) & (self.words.len() - 1);
        }
    }
    /// Gives a slot its word, or leaves it the one that it has: that, or 0.
    #[inline]
    fn enter(&self, slot: usize, word: u64) -> u64 {
        assert!(word & SLOT == 0, "no program has 65536 classes");
        loop {
            let (place, known) = self.find(slot);
            if known != 0 {
                return known & !SLOT;
            }
            let own = word | (slot as u64) << SLOT_SHIFT;
            if self.words[place].compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return 0;
            }
        }
    }
    /// The same where nobody else does.
    #[inline]
    fn set(&mut self, slot: usize, word: u64) -> u64 {
        let (place, known) = self.find(slot);
        if known == 0 {
            self.put(place, slot, word);
        }
        known & !SLOT
    }
    #[inline]
    fn put(&mut self, place: usize, slot: usize, word: u64) {
        assert!(word & SLOT == 0, "no program has 65536 classes");
        *self.words[place].get_mut() = word | (slot as u64) << SLOT_SHIFT;
    }
    /// Whether there is too little room for as many objects as are counted.
    #[inline]
    fn is_full(&self) -> bool {
        self.count * 8 >= self.words.len() * 7 && self.words.len() < SLOTS
    }
    /// Makes room for as many objects as are counted.
    #[inline]
    fn fit(&mut self) {
        if self.is_full() {
            self.grow();
        }
    }
    #[cold]
    fn grow(&mut self) {
        let len = (self.count * 8 / 7 + 1).next_power_of_two().clamp(FEWEST, SLOTS);
        let fresh = (0..len).map(|_| AtomicU64::new(0)).collect();
        let old = std::mem::replace(&mut self.words, fresh);
        for word in old.into_iter().map(AtomicU64::into_inner).filter(|word| *word != 0) {
            self.set(((word & SLOT) >> SLOT_SHIFT) as usize, word & !SLOT);
        }
    }
}

/// Where the word of an object is to be that has none; of no use once another object got one.
#[derive(Clone, Copy)]
pub struct Vacancy {
    /// None where the object's region has none.
    place: Option<(u32, u16)>,
    slot: u16,
}

impl IdentityMap {
    /// The word of an object, or where that is to be ([`IdentityMap::fill`]).
    #[inline]
    pub fn look(&self, object: Raw) -> Result<u64, Vacancy> {
        let (number, slot) = place(object);
        let vacancy = |place| Vacancy { place, slot: slot as u16 };
        if self.regions.is_empty() {
            let known = self.few[..self.count].iter().find(|(known, _)| *known == object);
            return known.map_or(Err(vacancy(None)), |(_, word)| Ok(*word));
        }
        let at = self.place_of(number);
        let region = &self.regions[at];
        if region.words.is_empty() {
            return Err(vacancy(None));
        }
        match region.find(slot) {
            (place, 0) => Err(vacancy(Some((at as u32, place as u16)))),
            (_, word) => Ok(word & !SLOT),
        }
    }
    /// Gives an object its word, after it was looked for.
    #[inline]
    pub fn fill(&mut self, object: Raw, vacancy: Vacancy, word: u64) {
        let slot = usize::from(vacancy.slot);
        if let Some((region, at)) = vacancy.place {
            let region = &mut self.regions[region as usize];
            region.count += 1;
            if !region.is_full() {
                return region.put(usize::from(at), slot, word);
            }
            region.grow();
            region.set(slot, word);
            return;
        }
        if self.regions.is_empty() {
            if self.count < FEW {
                self.few[self.count] = (object, word);
                self.count += 1;
                return;
            }
            self.spread();
        }
        let region = self.add(IdentityMap::region(object));
        region.count += 1;
        region.fit();
        region.set(slot, word);
    }
    /// Gives an object its word, or leaves it the one that it has: that, or 0.
    #[inline]
    pub fn enter(&mut self, object: Raw, word: u64) -> u64 {
        match self.look(object) {
            Ok(known) => known,
            Err(vacancy) => {
                self.fill(object, vacancy, word);
                0
            }
        }
    }
    /// The word of an object, 0 if it has none.
    #[inline]
    pub fn get(&self, object: Raw) -> u64 {
        self.look(object).unwrap_or(0)
    }
    /// Tells the word of each of many values, by its position: 0 for one that has none, and for what is no object. Memory is asked for some values ahead.
    ///
    /// # Errors
    /// The first that `tell` gives.
    #[inline]
    pub fn each<E>(&self, values: &[Raw], mut tell: impl FnMut(usize, u64) -> Result<(), E>) -> Result<(), E> {
        if self.regions.is_empty() {
            return values.iter().enumerate().try_for_each(|(i, value)| tell(i, self.get(*value)));
        }
        for (chunk, values) in values.chunks(TOGETHER).enumerate() {
            let mut words = [&NO_WORD; TOGETHER];
            for (word, value) in words.iter_mut().zip(values).filter(|(_, value)| !heap::is_immediate(**value)) {
                let (number, slot) = place(*value);
                if let Some(region) = self.region_of(number) {
                    *word = &region.words[region.first(slot)];
                    ahead::to_read(*word);
                }
            }
            for (i, (value, word)) in values.iter().zip(&words).enumerate() {
                let word = word.load(Ordering::Relaxed);
                // nearly always
                let is_own = word == 0 || word & SLOT == (place(*value).1 as u64) << SLOT_SHIFT;
                tell(chunk * TOGETHER + i, if is_own { word & !SLOT } else { self.get(*value) })?;
            }
        }
        Ok(())
    }
    /// The number of the region that an object is in.
    #[inline]
    pub fn region(object: Raw) -> usize {
        place(object).0
    }
    /// Makes room for so many more objects of each region.
    pub fn reserve(&mut self, more: &WordMap<usize, usize>) {
        if self.regions.is_empty() {
            self.spread();
        }
        for (number, more) in more {
            self.add(*number).count += more;
        }
        let regions = self.regions.chunks_mut(REGIONS).collect();
        crew::map(more.values().sum(), regions, |regions: &mut [Region]| {
            regions.iter_mut().filter(|region| region.number != 0).for_each(Region::fit);
        });
    }
    /// Gives an object, for which there is room, its word; false where it has one already.
    #[inline]
    pub fn claim(&self, object: Raw, word: u64) -> bool {
        let (number, slot) = place(object);
        self.region_of(number).is_some_and(|region| region.enter(slot, word) == 0)
    }

    /// Whether no object has a word.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty() && self.count == 0
    }

    /// Asks for the memory of an object's word ahead of its use.
    #[inline]
    pub fn prefetch(&self, object: Raw) {
        let (number, slot) = place(object);
        if let Some(region) = self.region_of(number) {
            ahead::to_read(region.words.as_ptr().wrapping_add(region.first(slot)));
        }
    }

    /// Moves the few to their regions.
    #[cold]
    fn spread(&mut self) {
        self.grow();
        for at in 0..std::mem::take(&mut self.count) {
            let (object, word) = self.few[at];
            self.enter(object, word);
        }
    }

    #[inline]
    fn region_of(&self, number: usize) -> Option<&Region> {
        let mask = self.regions.len().wrapping_sub(1);
        let mut at = hash(number) & mask;
        loop {
            let region = self.regions.get(at)?;
            if region.number == number {
                return Some(region);
            }
            if region.number == 0 {
                return None;
            }
            at = (at + 1) & mask;
        }
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
    /// A region, which may have no places yet.
    #[inline]
    fn add(&mut self, number: usize) -> &mut Region {
        let mut at = self.place_of(number);
        if self.regions[at].number == 0 {
            self.used += 1;
            if self.used * 2 > self.regions.len() {
                self.grow();
                at = self.place_of(number);
            }
            self.regions[at].number = number;
        }
        &mut self.regions[at]
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
    use super::{APART, IdentityMap, Raw, WordMap};
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
    fn threads_give_words_where_there_is_room_and_one_of_them_is_the_first() {
        let all = objects(20_000, 5, &mut Dice(3));
        let mut map = IdentityMap::default();
        assert_eq!(map.enter(all[5], 77), 0);
        let mut regions = WordMap::default();
        for object in &all {
            *regions.entry(IdentityMap::region(*object)).or_default() += 1;
        }
        map.reserve(&regions);
        let first = std::thread::scope(|scope| {
            let claim = |thread: u64| {
                let (map, all) = (&map, &all);
                scope.spawn(move || all.iter().filter(|object| map.claim(**object, thread + 1)).count())
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
        assert!(!map.claim(all[0] + (1 << 30), 9), "there is no room");
    }
}
