//! Deterministic reservations of objects that several threads meet before any of them has a word.
//!
//! Here: reservations, which stand in the table until words replace them. Each thread reserves every object that it
//! meets with a place in some order, and the least place wins. Once all threads are done, the thread that made the
//! winning reservation knows that no other meets the object before it. Then words are given. Only full regions hold
//! reservations, so this file also makes regions full. Not here: the order, and the words ([`crate::marshal::trace`]).
//!
//! Between the first reservation and the last word, no words may be read: a reservation is no word.

use super::codes::RESERVED;
use super::{
    FULL_REGION_BYTES, Found, IdentityMap, MAX_ENTRIES, MAX_FULL_BYTES_PER_OBJECT, MAX_SPARE_REGIONS, MIN_FULL_ENTRIES,
    Ordering, SLOTS, WordMap,
};
use std::sync::atomic::AtomicU32;

/// Places of reservations are less than this, and so are the rows of words that are given then.
pub const MAX_PLACES: usize = super::codes::ROWS as usize;

impl Found {
    /// Whether it is in a full region.
    #[inline]
    pub fn is_full(self) -> bool {
        self.0 != 0
    }
}

impl IdentityMap {
    /// Whether a region is full.
    pub fn is_full(&self, number: usize) -> bool {
        self.region_of(number).is_some_and(|region| region.from != 0)
    }
    /// Makes a region full if so many objects will come to it that it would become full soon, as long as that wastes
    /// little memory. Some objects may come more than once. Also makes codes for the upper halves of words. Gives how
    /// many objects will come to other regions. None where there are no codes left.
    pub fn prepare(&mut self, coming: &WordMap<usize, usize>, mut uppers: impl Iterator<Item = u32>) -> Option<usize> {
        let codes = self.codes.get_or_insert_default();
        if uppers.any(|upper| codes.give(upper).is_none()) {
            return None;
        }
        if self.regions.is_empty() {
            self.spread();
        }
        // Some values name the same object.
        let objects = *self.objects.get_mut() + coming.values().map(|count| (*count).min(SLOTS)).sum::<usize>();
        let mut others = 0;
        for (number, count) in coming {
            if self.is_full(*number) {
                continue;
            }
            if *count >= MAX_ENTRIES * 7 / 8
                || *count >= MIN_FULL_ENTRIES * 7 / 8
                    && self.full * FULL_REGION_BYTES
                        <= MAX_SPARE_REGIONS * FULL_REGION_BYTES + MAX_FULL_BYTES_PER_OBJECT * objects
            {
                self.add_to(*number, 0);
                let at = self.place_of(*number);
                if self.regions[at].from == 0 {
                    self.fill_up(at);
                }
            } else {
                others += count;
            }
        }
        Some(others)
    }
    /// Reserves an object that has no word. Gives whether it is the first reservation.
    #[inline]
    pub fn place_reservation(&self, found: Found, place: u32) -> bool {
        let (word, own) = (self.reservation(found), RESERVED | place);
        match word.load(Ordering::Relaxed) {
            0 if word.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed).is_ok() => return true,
            // Where many threads meet an object, most of them meet it after others, and need not write.
            known if known != 0 && known < own => return false,
            _ => {}
        }
        word.fetch_min(own, Ordering::Relaxed);
        false
    }
    /// Whether this reservation won.
    #[inline]
    pub fn stands(&self, found: Found, place: u32) -> bool {
        self.reservation(found).load(Ordering::Relaxed) == RESERVED | place
    }
    /// Gives an object its word, after all reservations are made. [`IdentityMap::prepare`] knows its upper half, and
    /// its row is less than [`MAX_PLACES`].
    #[inline]
    pub fn give(&self, found: Found, word: u64) {
        let short = self.codes.as_deref().and_then(|codes| codes.shorten_all(word, 1));
        self.reservation(found)
            .store(short.expect("its upper half has a code, and its row is no larger"), Ordering::Relaxed);
    }
    /// Counts objects that were given words.
    pub fn gave(&mut self, count: usize) {
        *self.objects.get_mut() += count;
    }
    #[inline]
    fn reservation(&self, found: Found) -> &AtomicU32 {
        &self.words[found.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{APART, REGION_BITS, Raw};
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_first_of_all_who_come_to_an_object_has_it_whichever_thread_is_faster() {
        let objects: Vec<Raw> = (0..5000).map(|at| (1 << 40) + at * APART as Raw).collect();
        // Some come twice or more, in an order of their own.
        let coming: Vec<Raw> = (0..20_000u64).map(|at| objects[(at * at * 31 % 4999) as usize]).collect();
        let mut map = IdentityMap::default();
        map.enter(objects[4999], 7 << 32);
        let mut regions = WordMap::default();
        coming.iter().for_each(|object| *regions.entry(IdentityMap::region(*object)).or_default() += 1);
        assert_eq!(map.prepare(&regions, [9].into_iter()), Some(0));
        assert!(regions.keys().all(|number| map.is_full(*number)));
        let before = map.objects.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (map, coming) = (&map, &coming);
                scope.spawn(move || {
                    for (place, object) in coming.iter().enumerate().skip(thread).step_by(4) {
                        map.place_reservation(map.find(*object), place as u32);
                    }
                });
            }
        });
        let mut first = HashMap::new();
        coming.iter().enumerate().for_each(|(place, object)| _ = first.entry(*object).or_insert(place));
        let mut given = 0;
        for (place, object) in coming.iter().enumerate() {
            let stands = first[object] == place;
            assert_eq!(map.stands(map.find(*object), place as u32), stands);
        }
        for (object, place) in &first {
            map.give(map.find(*object), 9 << 32 | *place as u64);
            given += 1;
        }
        map.gave(given);
        assert!(first.iter().all(|(object, place)| map.get(*object) == 9 << 32 | *place as u64));
        assert_eq!((map.get(objects[4999]), map.objects.load(Ordering::Relaxed)), (7 << 32, before + given));
    }

    #[test]
    fn regions_that_few_come_to_stay_as_they_are() {
        let mut map = IdentityMap::default();
        let few = WordMap::from_iter([
            (IdentityMap::region(1 << 40), 3),
            (IdentityMap::region((1 << 40) + (1 << REGION_BITS)), 2),
        ]);
        assert_eq!(map.prepare(&few, [9].into_iter()), Some(5));
        assert!(few.keys().all(|number| !map.is_full(*number)));
        assert_eq!(map.prepare(&few, 1..400), None, "there are not so many codes");
    }
}
