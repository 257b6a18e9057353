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
pub const TOGETHER: usize = 32;
const REGION_BITS: u32 = 16;
/// Places for regions of one piece of work.
const REGIONS: usize = 64;
/// Of what has no word.
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
/// objects; from 896 on each slot has its own place, and before where that leaves twelve bytes an object on the whole. So memory goes by the number of objects (8 to 19 bytes
/// each, 128 for one that is alone), however far they are from each other. Where there is room in a region, many threads may set words of it.
///
/// As long as there are but a few objects, they stand in a list, and there are no regions.
#[derive(Default)]
pub struct IdentityMap {
    few: [(Raw, u64); FEW],
    /// Objects that have words, or room for them.
    count: usize,
    /// Open addressing; as many as a power of two, or none.
    regions: Vec<Region>,
    used: usize,
    /// Of all regions.
    places: usize,
    /// How often regions, or the words of one, have moved.
    version: u32,
}

#[derive(Default)]
struct Region {
    /// 0: none.
    number: usize,
    /// Objects that have words, or room for them.
    count: usize,
    /// With so many there is too little room.
    most: usize,
    /// What takes a slot to the place where its word is looked for first: times this, and then so many bits less.
    factor: u16,
    shift: u32,
    /// Open addressing; as many as a power of two, less than seven eighths of them used, or as slots. 0: free.
    words: Box<[AtomicU64]>,
}

impl Region {
    /// Where a slot's word is looked for first.
    #[inline]
    fn first(&self, slot: usize) -> usize {
        (u32::from((slot as u16).wrapping_mul(self.factor)) >> self.shift) as usize
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
        self.count >= self.most
    }
    /// Makes room for as many objects as are counted.
    #[inline]
    fn fit(&mut self) {
        if self.is_full() {
            self.grow((self.count * 8 / 7 + 1).next_power_of_two().clamp(FEWEST, SLOTS));
        }
    }
    #[cold]
    fn grow(&mut self, places: usize) {
        (self.factor, self.shift, self.most) = match places {
            SLOTS => (1, 0, usize::MAX),
            _ => (0x9e37, 16 - places.trailing_zeros(), (places * 7).div_ceil(8)),
        };
        let fresh = (0..places).map(|_| AtomicU64::new(0)).collect();
        let old = std::mem::replace(&mut self.words, fresh);
        for word in old.into_iter().map(AtomicU64::into_inner).filter(|word| *word != 0) {
            self.set(((word & SLOT) >> SLOT_SHIFT) as usize, word & !SLOT);
        }
    }
}

/// What is known of a value, and where its word is, or is to be; the latter is of no use once the map has [changed](IdentityMap::version).
#[derive(Clone, Copy)]
pub struct Found {
    /// 0: it has none, or is no object.
    pub word: u64,
    /// [`NOWHERE`]: its region has none.
    region: u32,
    place: u16,
    slot: u16,
}

const NOWHERE: u32 = u32::MAX;

impl Found {
    /// Of what no object is.
    pub const NOTHING: Self = Self { word: 0, region: NOWHERE, place: 0, slot: 0 };
}

impl IdentityMap {
    /// Of what was found the places are right as long as this is the same.
    #[inline]
    pub fn version(&self) -> u32 {
        self.version
    }
    /// What is known of an object.
    #[inline]
    pub fn look(&self, object: Raw) -> Found {
        let (number, slot) = place(object);
        let mut found = Found { slot: slot as u16, ..Found::NOTHING };
        if self.regions.is_empty() {
            let known = self.few[..self.count].iter().find(|(known, _)| *known == object);
            found.word = known.map_or(0, |(_, word)| *word);
            return found;
        }
        let at = self.place_of(number);
        let region = &self.regions[at];
        if !region.words.is_empty() {
            let (place, word) = region.find(slot);
            found = Found { word: word & !SLOT, region: at as u32, place: place as u16, slot: slot as u16 };
        }
        found
    }
    /// What is known of each of many values, at most [`TOGETHER`]. Its memory is asked for before the first is looked at, and that of objects of which nothing is known for whoever
    /// looks at them next.
    #[inline]
    pub fn look_all(&self, values: &[Raw], found: &mut [Found]) {
        if self.regions.is_empty() {
            for (value, found) in values.iter().zip(found) {
                *found = if heap::is_immediate(*value) { Found::NOTHING } else { self.look(*value) };
            }
            return;
        }
        let mut words = [&NO_WORD; TOGETHER];
        // those that follow each other are mostly of one region
        let (mut last, mut at, mut region) = (0, 0, &self.regions[0]);
        let mut of_region = &region.words[..];
        for ((value, found), out) in values.iter().zip(&mut *found).zip(&mut words) {
            let (number, slot) = place(*value);
            if number != last && !heap::is_immediate(*value) {
                (last, at) = (number, self.place_of(number));
                region = &self.regions[at];
                of_region = &region.words;
            }
            let first = region.first(slot);
            *found = Found { word: 0, region: at as u32, place: first as u16, slot: slot as u16 };
            match of_region.get(first) {
                Some(word) if !heap::is_immediate(*value) => {
                    ahead::to_read(word);
                    *out = word;
                }
                _ => found.region = NOWHERE,
            }
        }
        for ((found, word), value) in found.iter_mut().zip(&words).zip(values) {
            let word = word.load(Ordering::Relaxed);
            found.word = word & !SLOT;
            if word == 0 {
                // of what is no object it is a hint about nothing
                heap::prefetch(*value);
            } else if word & SLOT != u64::from(found.slot) << SLOT_SHIFT {
                // seldom
                let (place, word) = self.regions[found.region as usize].find(usize::from(found.slot));
                (found.word, found.place) = (word & !SLOT, place as u16);
            }
        }
    }
    /// The same of one that had no word when the map had this version.
    #[inline]
    pub fn look_again(&self, object: Raw, found: Found, version: u32) -> Found {
        let region = self.regions.get(found.region as usize).filter(|_| version == self.version);
        let word = region.and_then(|region| region.words.get(usize::from(found.place)));
        match word {
            Some(word) if word.load(Ordering::Relaxed) == 0 => found,
            _ => self.look(object),
        }
    }
    /// Gives an object its word, after it was looked for and had none.
    #[inline]
    pub fn fill(&mut self, object: Raw, found: Found, word: u64) {
        let slot = usize::from(found.slot);
        if let Some(region) = self.regions.get_mut(found.region as usize) {
            region.count += 1;
            self.count += 1;
            if !region.is_full() {
                return region.put(usize::from(found.place), slot, word);
            }
            return self.fill_slowly(found.region as usize, slot, word);
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
        self.regions[region].count += 1;
        self.count += 1;
        self.fill_slowly(region, slot, word);
    }
    #[cold]
    fn fill_slowly(&mut self, region: usize, slot: usize, word: u64) {
        let region = &mut self.regions[region];
        if region.is_full() {
            let before = region.words.len();
            // where most regions are full, this will be, too
            if (self.places - before + SLOTS) * 2 <= self.count * 3 {
                region.grow(SLOTS)
            } else {
                region.fit()
            }
            self.places += region.words.len() - before;
            self.version = self.version.wrapping_add(1);
        }
        region.set(slot, word);
    }
    /// Gives an object its word, or leaves it the one that it has: that, or 0.
    #[inline]
    pub fn enter(&mut self, object: Raw, word: u64) -> u64 {
        let found = self.look(object);
        if found.word == 0 {
            self.fill(object, found, word);
        }
        found.word
    }
    /// The word of an object, 0 if it has none.
    #[inline]
    pub fn get(&self, object: Raw) -> u64 {
        self.look(object).word
    }
    /// Tells the word of each of many values, by its position: 0 for one that has none, and for what is no object. Memory is asked for some values ahead.
    ///
    /// # Errors
    /// The first that `tell` gives.
    #[inline]
    pub fn each<E>(&self, values: &[Raw], mut tell: impl FnMut(usize, u64) -> Result<(), E>) -> Result<(), E> {
        let mut found = [Found::NOTHING; TOGETHER];
        for (chunk, values) in values.chunks(TOGETHER).enumerate() {
            self.look_all(values, &mut found);
            let mut words = found[..values.len()].iter().enumerate();
            words.try_for_each(|(i, found)| tell(chunk * TOGETHER + i, found.word))?;
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
            let region = self.add(*number);
            self.regions[region].count += more;
            self.count += more;
        }
        let regions = self.regions.chunks_mut(REGIONS).collect();
        crew::map(more.values().sum(), regions, |regions: &mut [Region]| {
            regions.iter_mut().filter(|region| region.number != 0).for_each(Region::fit);
        });
        self.places = self.regions.iter().map(|region| region.words.len()).sum();
        self.version = self.version.wrapping_add(1);
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
    /// The place of a region, which may have none for words yet.
    #[inline]
    fn add(&mut self, number: usize) -> usize {
        let mut at = self.place_of(number);
        if self.regions[at].number == 0 {
            self.used += 1;
            if self.used * 2 > self.regions.len() {
                self.grow();
                at = self.place_of(number);
            }
            self.regions[at].number = number;
        }
        at
    }
    #[cold]
    fn grow(&mut self) {
        self.version = self.version.wrapping_add(1);
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
    use super::{APART, Found, IdentityMap, Raw, TOGETHER, WordMap};
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
    fn what_was_found_of_many_at_once_is_right_however_the_map_changed_since() {
        let mut dice = Dice(11);
        for (count, near) in [(5, 10), (100, 0), (5_000, 9), (60_000, 10), (20_000, 2)] {
            let all = objects(count, near, &mut dice);
            let (mut map, mut known) = (IdentityMap::default(), HashMap::new());
            for turn in 0..2 * count as usize / TOGETHER + 1 {
                // some twice, and numbers among them
                let any = (0..TOGETHER).map(|_| all[dice.below(count) as usize] | Raw::from(dice.below(8) == 0));
                let in_order = all.iter().cycle().skip(turn * TOGETHER).take(TOGETHER).copied();
                let some: Vec<Raw> = if turn % 2 == 0 { any.collect() } else { in_order.collect() };
                let mut found = [Found::NOTHING; TOGETHER];
                map.look_all(&some, &mut found);
                let version = map.version();
                for (object, found) in some.iter().zip(found) {
                    let word = |known: &HashMap<Raw, u64>| known.get(object).copied().unwrap_or(0);
                    if super::heap::is_immediate(*object) {
                        assert_eq!(found.word, 0);
                        continue;
                    }
                    let found = if found.word == 0 { map.look_again(*object, found, version) } else { found };
                    assert_eq!(found.word, word(&known));
                    if found.word == 0 {
                        let word = dice.below(1 << 48) + 1;
                        map.fill(*object, found, word);
                        known.insert(*object, word);
                    }
                }
            }
            assert!(all.iter().all(|object| map.get(*object) == known.get(object).copied().unwrap_or(0)));
        }
    }

    #[test]
    fn words_take_twelve_bytes_an_object_where_they_lie_close_and_no_more_than_nineteen_elsewhere() {
        for (near, most) in [(10, 12), (9, 19), (0, 19)] {
            let mut map = IdentityMap::default();
            for object in objects(200_000, near, &mut Dice(5)) {
                map.enter(object, 1);
            }
            let places: usize = map.regions.iter().map(|region| region.words.len()).sum();
            assert_eq!(places, map.places);
            assert!(places * 8 <= 200_000 * most, "{} bytes an object", places as f64 * 8.0 / 200_000.0);
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
