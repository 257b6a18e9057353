//! Hash tables of groups: equal keys meet while they are inserted, and what a group computes is combined at once.
//!
//! Here: [`Grouping`], which takes elements in stretches and gives [`Groups`]; what a key is ([`Keys`]) and what a
//! group computes ([`Fold`]). Not here: which engine serves best ([`super::monitor`]), and the groups of columns
//! ([`super::groups`]).
//!
//! # How
//!
//! 1. Each worker takes a range of a stretch. A key is one word ([`Keys`]).
//!    * `:direct`: a word within a small range has a cell of its own in an array.
//!    * `:small`: other words go into the worker's private table, which fits its cache.
//!    * `:hash`: where that table is full, elements with new keys are only written down, by the upper bits of hashes.
//! 2. Workers merge. Each takes a part of all hashes: the groups of all private tables there, and what was written
//!    down.
//! 3. Groups are numbered by their first elements.
//!
//! So a wrong guess costs little: words beyond the range go into tables, and tables that are full into parts. A key
//! that occurs often is in the private table early, so that no part gets long.
//!
//! Source: M. Mokhtari and others, *Soren: Adaptive MapReduce for Programmable GPUs* (2011), for the engines; V. Leis
//! and others, *Morsel-driven parallelism* (2014), section 4.4, for tables that spill into parts.

use super::Workers;
use crate::error::Result;
use crate::memory::{ahead, room};
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The keys of a list of elements.
pub trait Keys: Sync {
    /// The words of elements from `first` on. Equal keys have equal words. False: one has none, and nothing is grouped.
    fn words(&self, first: usize, out: &mut [u64]) -> bool;

    /// Whether the keys of two elements, which have this same word, are equal.
    fn same(&self, word: u64, one: usize, other: usize) -> bool;

    /// Whether [`Keys::same`] looks at keys that are far away in memory.
    fn are_far(&self) -> bool {
        false
    }

    /// Loads the key of an element that [`Keys::same`] is about to compare with others of this word.
    fn ahead(&self, _word: u64, _element: usize) {}
}

/// Words that are their own keys.
impl Keys for [u64] {
    fn words(&self, first: usize, out: &mut [u64]) -> bool {
        out.copy_from_slice(&self[first..first + out.len()]);
        true
    }

    fn same(&self, _: u64, _: usize, _: usize) -> bool {
        true
    }
}

/// What takes elements stretch by stretch, and then tells their groups. Keys of one stretch need not be there for the
/// next: the caller may find them anew.
pub trait Gathering {
    type Found;

    /// Takes a stretch of elements, which must follow the last one.
    ///
    /// # Errors
    /// `Device` when the system cannot start threads.
    fn feed<K: Keys + ?Sized>(&mut self, on: Workers<'_>, keys: &K, stretch: Range<usize>) -> Result<Fed>;

    /// What is known of all elements. None: cancelled.
    ///
    /// # Errors
    /// `Device` when the system cannot start threads.
    fn finish<K: Keys + ?Sized>(self, on: Workers<'_>, keys: &K) -> Result<Option<Self::Found>>;
}

/// Groups with what their elements compute.
pub struct Folding<'a, F: Fold> {
    grouping: Grouping<'a, F::State>,
    fold: &'a F,
}

impl<'a, F: Fold> Folding<'a, F> {
    /// For so many elements in all.
    ///
    /// # Panics
    /// For more elements than 32 bits can count.
    pub fn new(seed: &'a Seed, plan: Plan, threads: usize, elements: usize, fold: &'a F) -> Self {
        Self { grouping: Grouping::new(seed, plan, threads, elements), fold }
    }
}

impl<F: Fold> Gathering for Folding<'_, F> {
    type Found = Groups<F::State>;

    fn feed<K: Keys + ?Sized>(&mut self, on: Workers<'_>, keys: &K, stretch: Range<usize>) -> Result<Fed> {
        self.grouping.feed(on, keys, self.fold, stretch)
    }

    fn finish<K: Keys + ?Sized>(self, on: Workers<'_>, keys: &K) -> Result<Option<Self::Found>> {
        self.grouping.finish(on, keys, self.fold)
    }
}

/// What the elements of a group compute. The order of elements must not matter.
pub trait Fold: Sync {
    type State: Copy + Default + Send + Sync;

    /// The state of a new group with an element. No other group of tables has this number.
    fn start(&self, number: u32, element: usize) -> Self::State;
    fn add(&self, state: &mut Self::State, element: usize);
    /// The state of a new group that begins with what a worker computed.
    fn adopt(&self, number: u32, part: Self::State) -> Self::State;
    fn merge(&self, state: &mut Self::State, part: Self::State);
}

/// Only counts.
pub struct Count;

impl Fold for Count {
    type State = ();

    fn start(&self, _: u32, _: usize) {}
    fn add(&self, (): &mut (), _: usize) {}
    fn adopt(&self, _: u32, (): ()) {}
    fn merge(&self, (): &mut (), (): ()) {}
}

/// Sums of Integers. 2³² terms of 64 bits need 96 bits.
pub struct Sum<V>(pub V);

impl<V: Fn(usize) -> i64 + Sync> Fold for Sum<V> {
    type State = i128;

    fn start(&self, _: u32, element: usize) -> i128 {
        self.0(element).into()
    }
    fn add(&self, state: &mut i128, element: usize) {
        *state += i128::from(self.0(element));
    }
    fn adopt(&self, _: u32, part: i128) -> i128 {
        part
    }
    fn merge(&self, state: &mut i128, part: i128) {
        *state += part;
    }
}

/// Integers combined by an operator that is associative and commutative, such as `min` or `&`.
pub struct Each<V, C>(pub V, pub C);

impl<V: Fn(usize) -> i64 + Sync, C: Fn(i64, i64) -> i64 + Sync> Fold for Each<V, C> {
    type State = i64;

    fn start(&self, _: u32, element: usize) -> i64 {
        self.0(element)
    }
    fn add(&self, state: &mut i64, element: usize) {
        *state = self.1(*state, self.0(element));
    }
    fn adopt(&self, _: u32, part: i64) -> i64 {
        part
    }
    fn merge(&self, state: &mut i64, part: i64) {
        *state = self.1(*state, part);
    }
}

/// Notes the number of each element's group.
pub struct Number<'a> {
    pub of: &'a [AtomicU32],
    /// Which groups the numbers of private tables became.
    pub became: &'a [AtomicU32],
}

impl Fold for Number<'_> {
    type State = u32;

    fn start(&self, number: u32, element: usize) -> u32 {
        self.of[element].store(number, Relaxed);
        number
    }
    fn add(&self, state: &mut u32, element: usize) {
        self.of[element].store(*state, Relaxed);
    }
    fn adopt(&self, number: u32, part: u32) -> u32 {
        self.became[part as usize].store(number, Relaxed);
        number
    }
    fn merge(&self, state: &mut u32, part: u32) {
        self.became[part as usize].store(*state, Relaxed);
    }
}

/// What makes hashes differ from process to process.
pub struct Seed {
    words: u64,
    bytes: foldhash::quality::RandomState,
}

impl Default for Seed {
    fn default() -> Self {
        let bytes = foldhash::quality::RandomState::default();
        Self { words: bytes.build_hasher().finish() | 1, bytes }
    }
}

/// The most bytes of a String that is its own word.
const SHORT: usize = 7;

impl Seed {
    /// One that gives all words the same hash.
    #[cfg(test)]
    pub fn alike() -> Self {
        Self { words: 0, ..Self::default() }
    }

    /// The hash of a word.
    pub fn hash(&self, word: u64) -> u64 {
        let product = u128::from(word ^ 0x9e37_79b9_7f4a_7c15) * u128::from(self.words);
        let folded = (product >> 64) as u64 ^ product as u64;
        folded.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ folded >> 32
    }

    /// The word of a String: its bytes and their number, or their hash.
    pub fn word(&self, bytes: &[u8]) -> u64 {
        if bytes.len() > SHORT {
            let mut hasher = self.bytes.build_hasher();
            hasher.write(bytes);
            return hasher.finish() | 0xff << 56;
        }
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        word[SHORT] = bytes.len() as u8;
        u64::from_le_bytes(word)
    }

    /// Whether Strings of this word are equal without a look at their bytes.
    pub fn is_whole(word: u64) -> bool {
        word >> 56 <= SHORT as u64
    }
}

/// How elements are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Words from the first number on, so many, are counted in cells of an array. Only for words that are their own
    /// keys.
    pub direct: Option<(u64, usize)>,
    /// The most groups of a worker's private table.
    pub private: usize,
}

/// The most groups of a private table. With more, the caches of cores hold too little of it.
pub const MOST_PRIVATE: usize = 1 << 18;
/// The most cells of an array.
pub const MOST_CELLS: usize = 1 << 16;

impl Plan {
    pub const SMALL: Plan = Plan { direct: None, private: MOST_PRIVATE };
    pub const HASH: Plan = Plan { direct: None, private: 0 };
}

/// Elements that are looked up together, so that memory loads them at the same time.
const BATCH: usize = 64;
/// A worker has so many elements at least.
const MIN_SHARE: usize = 1 << 14;
/// Elements between two looks at the cancel token.
const STRETCH: usize = 1 << 15;
/// Groups of a part of all hashes should fit the cache of a core. So there are this many parts at most.
pub(super) const PARTS: usize = 256;
/// So many groups are merged by one worker.
const MIN_MERGED: usize = 1 << 12;
/// A full table is not asked any more where it knew less than one in so many of the last elements.
pub(super) const MIN_KNOWN: usize = 4;

#[derive(Clone, Copy, Default)]
struct Group<S> {
    word: u64,
    first: u32,
    /// 0: an empty slot.
    count: u32,
    state: S,
}

impl<S: Copy> Group<S> {
    fn absorb<F: Fold<State = S>>(&mut self, fold: &F, other: &Group<S>) {
        self.first = self.first.min(other.first);
        self.count += other.count;
        fold.merge(&mut self.state, other.state);
    }
}

/// A hash table with open addressing.
struct Table<S> {
    slots: Vec<Group<S>>,
    len: usize,
    /// The number of its first group.
    base: u32,
}

impl<S: Copy + Default> Table<S> {
    fn new(base: u32, groups: usize) -> Self {
        let slots = (2 * groups).next_power_of_two().max(2 * BATCH);
        Self { slots: room::filled(Group::default(), slots), len: 0, base }
    }

    fn place(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// The slot of a key, or the empty one where it belongs.
    fn find(&self, word: u64, hash: u64, same: impl Fn(u32) -> bool) -> usize {
        let mut at = self.place(hash);
        loop {
            let slot = &self.slots[at];
            if slot.count == 0 || slot.word == word && same(slot.first) {
                return at;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Room for one more group, and its number.
    fn number(&mut self) -> u32 {
        self.len += 1;
        self.base + self.len as u32 - 1
    }

    fn grow_if_full(&mut self, seed: &Seed) {
        if self.len * 2 < self.slots.len() {
            return;
        }
        let larger = room::filled(Group::default(), self.slots.len() * 4);
        let mask = larger.len() - 1;
        for group in std::mem::replace(&mut self.slots, larger).into_iter().filter(|group| group.count > 0) {
            let mut at = seed.hash(group.word) as usize & mask;
            while self.slots[at].count > 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = group;
        }
    }

    fn groups(&self) -> impl Iterator<Item = &Group<S>> {
        self.slots.iter().filter(|group| group.count > 0)
    }

    fn list(&self) -> Vec<Group<S>> {
        let mut list = room::with_capacity(self.len);
        list.extend(self.groups().copied());
        list
    }
}

/// An element that was written down: the halves of its word, and its index.
type Noted = [u32; 3];

fn noted(word: u64, element: usize) -> Noted {
    [word as u32, (word >> 32) as u32, element as u32]
}

/// What one worker has grouped.
struct Private<S> {
    cells: Vec<Group<S>>,
    table: Table<S>,
    /// By the upper bits of hashes.
    notes: Vec<Vec<Noted>>,
    /// How many elements the full table knew, and how many it did not, since the last look.
    known: usize,
    unknown: usize,
    /// Whether it is not asked any more.
    given_up: bool,
}

/// Groups of equal keys, in the order of their first elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups<S> {
    pub firsts: Vec<u32>,
    pub counts: Vec<u32>,
    pub states: Vec<S>,
    /// How many elements no array and no private table had room for.
    pub noted: usize,
}

impl<S: Copy + Default> Groups<S> {
    fn of<'a>(groups: impl Iterator<Item = &'a Group<S>>, noted: usize) -> Self
    where
        S: 'a,
    {
        let mut out = Groups { firsts: Vec::new(), counts: Vec::new(), states: Vec::new(), noted };
        for group in groups {
            room::push(&mut out.firsts, group.first);
            room::push(&mut out.counts, group.count);
            room::push(&mut out.states, group.state);
        }
        out
    }
}

/// How a stretch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fed {
    Done,
    Cancelled,
    /// One of the keys has no word.
    Foreign,
}

/// Elements that are being grouped.
pub struct Grouping<'a, S> {
    seed: &'a Seed,
    plan: Plan,
    workers: Vec<Private<S>>,
    /// The numbers from here on are those of parts.
    merged: u32,
    elements: usize,
}

impl<'a, S: Copy + Default + Send + Sync> Grouping<'a, S> {
    /// For so many elements in all.
    ///
    /// # Panics
    /// For more elements than 32 bits can count.
    pub fn new(seed: &'a Seed, mut plan: Plan, threads: usize, elements: usize) -> Self {
        assert!(u32::try_from(elements).is_ok(), "indices have 32 bits");
        if elements > u32::MAX as usize / 2 {
            // Groups have numbers of 32 bits, too.
            plan = Plan::HASH;
        }
        // what is as large as tables takes long to make for a few elements
        plan.private = plan.private.min(elements);
        let count = threads.min(elements / MIN_SHARE).max(1);
        let cells = plan.direct.map_or(0, |(_, cells)| cells);
        // a little more than the even share of a part
        let noted = elements / (count * PARTS) / 8 * 9 + BATCH;
        let private = |worker: usize| Private {
            cells: room::filled(Group::default(), cells),
            table: Table::new((cells + worker * plan.private) as u32, plan.private.min(1 << 9)),
            notes: if plan.private > 0 {
                Vec::new()
            } else {
                room::collect((0..PARTS).map(|_| room::with_capacity(noted)))
            },
            known: 0,
            unknown: 0,
            given_up: plan.private == 0,
        };
        let workers = room::collect((0..count).map(private));
        Self { seed, plan, workers, merged: (cells + count * plan.private) as u32, elements }
    }

    /// How many numbers private tables may give to groups.
    pub fn numbers(&self) -> usize {
        self.merged as usize
    }

    /// Groups a stretch of elements, which must follow the last one.
    ///
    /// # Errors
    /// `Device` when the system cannot start threads.
    pub fn feed<K: Keys + ?Sized, F: Fold<State = S>>(
        &mut self,
        on: Workers<'_>,
        keys: &K,
        fold: &F,
        stretch: Range<usize>,
    ) -> Result<Fed> {
        let (seed, plan, count) = (self.seed, self.plan, self.workers.len());
        let shares = if stretch.len() < MIN_SHARE { 1 } else { count };
        let bound = |share: usize| stretch.start + (stretch.len() as u64 * share as u64 / shares as u64) as usize;
        let work = |(share, private): (usize, &mut Private<S>)| {
            let range = bound(share)..bound(share + 1);
            for first in range.clone().step_by(STRETCH) {
                if on.cancel.is_cancelled() {
                    return Fed::Cancelled;
                }
                if !private.feed(seed, plan, keys, fold, first..range.end.min(first + STRETCH)) {
                    return Fed::Foreign;
                }
            }
            Fed::Done
        };
        let pieces: Vec<_> = self.workers.iter_mut().take(shares).enumerate().collect();
        let fed = if shares == 1 { pieces.into_iter().map(work).collect() } else { on.threads.map(pieces, work) };
        Ok(fed.into_iter().find(|fed| *fed != Fed::Done).unwrap_or(Fed::Done))
    }

    /// The groups of all elements. None: cancelled.
    ///
    /// # Errors
    /// `Device` when the system cannot start threads.
    pub fn finish<K: Keys + ?Sized, F: Fold<State = S>>(
        mut self,
        on: Workers<'_>,
        keys: &K,
        fold: &F,
    ) -> Result<Option<Groups<S>>> {
        let mut lists: Vec<Vec<Group<S>>> = Vec::new();
        if self.plan.direct.is_some() {
            lists.push(self.cells(fold));
        }
        let noted = self.workers.iter().flat_map(|worker| &worker.notes).map(Vec::len).sum();
        let groups: usize = self.workers.iter().map(|worker| worker.table.len).sum();
        if noted == 0 && self.workers.iter().filter(|worker| worker.table.len > 0).count() < 2 {
            // Nothing is merged.
            for worker in self.workers.iter().filter(|worker| worker.table.len > 0) {
                lists.push(worker.table.list());
            }
        } else {
            // parts of notes follow the upper bits of hashes, so there are as many or fewer
            let parts = if noted > 0 { PARTS } else { (groups / MIN_MERGED).next_power_of_two().min(PARTS) };
            let Some(merged) = self.merge(on, keys, fold, parts)? else { return Ok(None) };
            lists.extend(merged);
        }
        in_order(on, &lists, self.elements, noted)
    }

    /// The groups of all workers' cells.
    fn cells<F: Fold<State = S>>(&mut self, fold: &F) -> Vec<Group<S>> {
        let mut all = std::mem::take(&mut self.workers[0].cells);
        for worker in &self.workers[1..] {
            for (group, other) in all.iter_mut().zip(&worker.cells).filter(|(_, other)| other.count > 0) {
                if group.count == 0 {
                    *group = *other;
                } else {
                    // Its number is the same in all workers.
                    group.first = group.first.min(other.first);
                    group.count += other.count;
                    fold.merge(&mut group.state, other.state);
                }
            }
        }
        all.retain(|group| group.count > 0);
        all
    }

    /// The groups of all tables and notes, part by part. None: cancelled.
    fn merge<K: Keys + ?Sized, F: Fold<State = S>>(
        &self,
        on: Workers<'_>,
        keys: &K,
        fold: &F,
        parts: usize,
    ) -> Result<Option<Vec<Vec<Group<S>>>>> {
        let seed = self.seed;
        let split = |worker: &Private<S>| {
            let mut split: Vec<Vec<Group<S>>> = room::filled(Vec::new(), parts);
            for group in worker.table.groups() {
                room::push(&mut split[part(seed.hash(group.word), parts)], *group);
            }
            split
        };
        let tables = on.several(self.workers.len(), |worker| split(&self.workers[worker]))?;
        let mut bases = room::with_capacity(parts);
        let mut next = self.merged;
        for p in 0..parts {
            bases.push(next);
            let notes: usize = self.workers.iter().filter_map(|worker| worker.notes.get(p)).map(Vec::len).sum();
            let groups: usize = tables.iter().map(|table| table[p].len()).sum();
            next += (notes + groups) as u32;
        }
        on.each(parts, |p| {
            let groups = tables.iter().map(|table| table[p].len()).max().unwrap_or(0);
            let notes: usize = self.workers.iter().filter_map(|worker| worker.notes.get(p)).map(Vec::len).sum();
            let mut table = Table::new(bases[p], groups.max(notes));
            for group in tables.iter().flat_map(|table| &table[p]) {
                let same = |first| keys.same(group.word, first as usize, group.first as usize);
                let at = table.find(group.word, seed.hash(group.word), same);
                if table.slots[at].count > 0 {
                    table.slots[at].absorb(fold, group);
                    continue;
                }
                let state = fold.adopt(table.number(), group.state);
                table.slots[at] = Group { state, ..*group };
                table.grow_if_full(seed);
            }
            for note in self.workers.iter().filter_map(|worker| worker.notes.get(p)).flatten() {
                let (word, i) = (u64::from(note[0]) | u64::from(note[1]) << 32, note[2]);
                let at = table.find(word, seed.hash(word), |first| keys.same(word, first as usize, i as usize));
                let slot = &mut table.slots[at];
                if slot.count > 0 {
                    slot.count += 1;
                    slot.first = slot.first.min(i);
                    fold.add(&mut slot.state, i as usize);
                    continue;
                }
                let state = fold.start(table.number(), i as usize);
                table.slots[at] = Group { word, first: i, count: 1, state };
                table.grow_if_full(seed);
            }
            table.list()
        })
    }
}

/// The part of all hashes to which one belongs.
pub(super) fn part(hash: u64, parts: usize) -> usize {
    ((u128::from(hash) * parts as u128) >> 64) as usize
}

impl<S: Copy + Default> Private<S> {
    /// Groups elements. False: a key has no word.
    fn feed<K: Keys + ?Sized, F: Fold<State = S>>(
        &mut self,
        seed: &Seed,
        plan: Plan,
        keys: &K,
        fold: &F,
        range: Range<usize>,
    ) -> bool {
        let mut words = [0; BATCH];
        for first in range.clone().step_by(BATCH) {
            let words = &mut words[..BATCH.min(range.end - first)];
            if !keys.words(first, words) {
                return false;
            }
            let Some((base, cells)) = plan.direct else {
                self.add(seed, plan, keys, fold, words.iter().copied().zip(first..));
                continue;
            };
            let mut others = false;
            for (word, i) in words.iter().zip(first..) {
                let at = word.wrapping_sub(base);
                match self.cells.get_mut(at as usize).filter(|_| at < cells as u64) {
                    Some(cell) if cell.count > 0 => {
                        cell.count += 1;
                        fold.add(&mut cell.state, i);
                    }
                    Some(cell) => {
                        let state = fold.start(at as u32, i);
                        *cell = Group { word: *word, first: i as u32, count: 1, state };
                    }
                    None => others = true,
                }
            }
            if others {
                let beyond = |(word, _): &(u64, usize)| word.wrapping_sub(base) >= cells as u64;
                self.add(seed, plan, keys, fold, words.iter().copied().zip(first..).filter(beyond));
            }
        }
        true
    }

    /// Adds a batch of elements to the table, or notes them.
    fn add<K: Keys + ?Sized, F: Fold<State = S>>(
        &mut self,
        seed: &Seed,
        plan: Plan,
        keys: &K,
        fold: &F,
        elements: impl Iterator<Item = (u64, usize)>,
    ) {
        let mut batch = [(0, 0, 0); BATCH];
        let mut len = 0;
        for ((word, i), place) in elements.zip(&mut batch) {
            let hash = seed.hash(word);
            if !self.given_up {
                ahead::to_read(&raw const self.table.slots[self.table.place(hash)]);
            }
            *place = (word, hash, i);
            len += 1;
        }
        if keys.are_far() && !self.given_up {
            for (word, hash, _) in &batch[..len] {
                let slot = &self.table.slots[self.table.place(*hash)];
                if slot.count > 0 && slot.word == *word {
                    keys.ahead(*word, slot.first as usize);
                }
            }
        }
        for (word, hash, i) in batch[..len].iter().copied() {
            if self.given_up {
                self.note(word, hash, i);
                continue;
            }
            let at = self.table.find(word, hash, |first| keys.same(word, first as usize, i));
            let slot = &mut self.table.slots[at];
            if slot.count > 0 {
                slot.count += 1;
                self.known += 1;
                fold.add(&mut slot.state, i);
            } else if self.table.len < plan.private {
                let state = fold.start(self.table.number(), i);
                self.table.slots[at] = Group { word, first: i as u32, count: 1, state };
                self.table.grow_if_full(seed);
            } else {
                self.unknown += 1;
                self.note(word, hash, i);
            }
        }
        if self.known + self.unknown > STRETCH {
            self.given_up = self.unknown > self.known * (MIN_KNOWN - 1);
            (self.known, self.unknown) = (0, 0);
        }
    }

    fn note(&mut self, word: u64, hash: u64, element: usize) {
        if self.notes.is_empty() {
            self.notes = room::filled(Vec::new(), PARTS);
        }
        room::push(&mut self.notes[part(hash, PARTS)], noted(word, element));
    }
}

/// The least number of elements for each group at which groups are sorted. With fewer, each group is put at the place
/// of its first element.
const MIN_SORTED: usize = 4;

/// All groups, in the order of their first elements. None: cancelled.
fn in_order<S: Copy + Default + Send + Sync>(
    on: Workers<'_>,
    lists: &[Vec<Group<S>>],
    elements: usize,
    noted: usize,
) -> Result<Option<Groups<S>>> {
    let count: usize = lists.iter().map(Vec::len).sum();
    if count * MIN_SORTED < elements {
        let mut groups: Vec<Group<S>> = room::concat(lists);
        groups.sort_unstable_by_key(|group| group.first);
        return Ok(Some(Groups::of(groups.iter(), noted)));
    }
    // The number of the list of a group that begins there, plus one, and its place in that list.
    let begins: Vec<AtomicU64> = room::collect((0..elements).map(|_| AtomicU64::new(0)));
    let put = on.each(lists.len(), |list| {
        for (group, at) in lists[list].iter().zip(0u64..) {
            begins[group.first as usize].store((list as u64 + 1) << 32 | at, Relaxed);
        }
    })?;
    let taken = on.all(begins.chunks(STRETCH).collect(), |begins: &[AtomicU64]| {
        let places = begins.iter().map(|place| place.load(Relaxed)).filter(|place| *place > 0);
        Groups::of(places.map(|place| &lists[(place >> 32) as usize - 1][place as u32 as usize]), 0)
    })?;
    let (Some(_), Some(taken)) = (put, taken) else { return Ok(None) };
    fn all<S, T: Clone>(taken: &[Groups<S>], part: impl Fn(&Groups<S>) -> &[T]) -> Vec<T> {
        let parts: Vec<&[T]> = room::collect(taken.iter().map(part));
        room::concat(&parts)
    }
    let (firsts, counts) = (all(&taken, |groups| &groups.firsts), all(&taken, |groups| &groups.counts));
    Ok(Some(Groups { firsts, counts, states: all(&taken, |groups| &groups.states), noted }))
}

/// Groups the elements `0..count`. None: cancelled. Within that, None: some key has no word.
///
/// # Errors
/// `Device` when the system cannot start threads.
///
/// # Panics
/// For more elements than 32 bits can count.
pub fn groups<K: Keys + ?Sized, F: Fold>(
    on: Workers<'_>,
    seed: &Seed,
    plan: Plan,
    keys: &K,
    count: usize,
    fold: &F,
) -> Result<Option<Option<Groups<F::State>>>> {
    let mut grouping = Grouping::new(seed, plan, on.threads.count(), count);
    match grouping.feed(on, keys, fold, 0..count)? {
        Fed::Done => Ok(grouping.finish(on, keys, fold)?.map(Some)),
        Fed::Cancelled => Ok(None),
        Fed::Foreign => Ok(Some(None)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::groups::{Grouped, numbered};
    use super::super::testing::{Random, on_host};
    use super::*;
    use std::collections::HashMap;

    /// Keys that all have the same word.
    struct Alike<'a>(&'a [u64]);

    impl Keys for Alike<'_> {
        fn words(&self, _: usize, out: &mut [u64]) -> bool {
            out.fill(7);
            true
        }
        fn same(&self, _: u64, one: usize, other: usize) -> bool {
            self.0[one] == self.0[other]
        }
    }

    /// Plans of all engines, with full tables and small arrays.
    fn plans() -> Vec<Plan> {
        let private = [0, 1, 7, MOST_PRIVATE];
        let direct = [None, Some((0, 1)), Some((5, 90)), Some((0_u64.wrapping_sub(3), 2000))];
        private.into_iter().flat_map(|private| direct.map(|direct| Plan { direct, private })).collect()
    }

    /// Groups one element after the other, with a map of the standard library.
    fn plain(keys: &[u64], value: impl Fn(usize) -> i64) -> (Grouped, Vec<i128>, Vec<i64>) {
        let (mut known, mut out) = (HashMap::new(), Grouped::default());
        let (mut sums, mut least) = (Vec::new(), Vec::new());
        for (i, key) in keys.iter().enumerate() {
            let group = *known.entry(*key).or_insert(out.firsts.len());
            if group == out.firsts.len() {
                out.firsts.push(i as u32);
                out.counts.push(0);
                sums.push(0);
                least.push(i64::MAX);
            }
            out.counts[group] += 1;
            sums[group] += i128::from(value(i));
            least[group] = least[group].min(value(i));
            out.group_of.push(group as u32);
        }
        (out, sums, least)
    }

    fn check<K: Keys + ?Sized>(keys: &K, words: &[u64], plan: Plan, told: &str) {
        let (seed, n) = (Seed::default(), words.len());
        let value = |i: usize| if i.is_multiple_of(3) { i64::MAX - i as i64 } else { i64::MIN + i as i64 };
        let (grouped, sums, least) = plain(words, value);
        let found = on_host(|on| groups(on, &seed, plan, keys, n, &Count)).expect("all have words");
        assert_eq!((&found.firsts, &found.counts), (&grouped.firsts, &grouped.counts), "{told}");
        assert_eq!(on_host(|on| groups(on, &seed, plan, keys, n, &Sum(value))).expect("words").states, sums, "{told}");
        let found = on_host(|on| groups(on, &seed, plan, keys, n, &Each(value, i64::min)));
        assert_eq!(found.expect("words").states, least, "{told}");
        assert_eq!(on_host(|on| numbered(on, plan, keys, n)).as_ref(), Some(&grouped), "{told}");
    }

    #[test]
    fn all_plans_find_the_same_groups() {
        for n in [0, 1, 2, 767, 999, 1000, 1001, 2 * MIN_SHARE + 1] {
            for kinds in [1, 100, 3000, u64::MAX] {
                let mut random = Random(n as u64 ^ kinds);
                let even: Vec<u64> = (0..n).map(|_| random.word() % kinds).collect();
                let hot: Vec<u64> =
                    (0..n).map(|_| random.word()).map(|x| if x & 7 > 0 { 6 } else { x % kinds }).collect();
                for plan in plans() {
                    check(&even[..], &even, plan, &format!("{n} of {kinds}, {plan:?}"));
                    if kinds == u64::MAX {
                        check(&hot[..], &hot, plan, &format!("{n}, one hot, {plan:?}"));
                    }
                }
            }
        }
    }

    #[test]
    fn keys_with_equal_words_are_compared() {
        for n in [1, 1000, MIN_SHARE * 3] {
            let mut random = Random(5);
            let keys: Vec<u64> = (0..n).map(|_| random.word() % 20).collect();
            let plans = plans().into_iter().filter(|plan| plan.direct.is_none());
            plans.for_each(|plan| check(&Alike(&keys), &keys, plan, &format!("{n}, {plan:?}")));
        }
    }

    /// Keys of which one has no word.
    struct Foreign;

    impl Keys for Foreign {
        fn words(&self, first: usize, out: &mut [u64]) -> bool {
            out.fill(1);
            !(first..first + out.len()).contains(&700)
        }
        fn same(&self, _: u64, _: usize, _: usize) -> bool {
            true
        }
    }

    #[test]
    fn a_key_without_a_word_ends_the_grouping() {
        let seed = Seed::default();
        for plan in plans() {
            assert_eq!(on_host(|on| groups(on, &seed, plan, &Foreign, 1000, &Count)), None);
            assert_eq!(on_host(|on| numbered(on, plan, &Foreign, 1000)), None);
            assert_eq!(
                on_host(|on| groups(on, &seed, plan, &Foreign, 600, &Count)).map(|found| found.counts),
                Some(vec![600])
            );
        }
    }

    #[test]
    fn stretches_continue_each_other() {
        let mut random = Random(9);
        let words: Vec<u64> = (0..3 * MIN_SHARE).map(|_| random.word() % 5000).collect();
        let seed = Seed::default();
        let found = on_host(|on| {
            let mut grouping = Grouping::new(&seed, Plan { direct: Some((7, 50)), private: 100 }, 2, words.len());
            for first in (0..words.len()).step_by(MIN_SHARE) {
                let fed = grouping.feed(on, &words[..], &Count, first..words.len().min(first + MIN_SHARE))?;
                assert_eq!(fed, Fed::Done);
            }
            grouping.finish(on, &words[..], &Count)
        });
        assert!(found.noted > 0, "the tables were full");
        let (grouped, ..) = plain(&words, |_| 0);
        assert_eq!((found.firsts, found.counts), (grouped.firsts, grouped.counts));
    }

    #[test]
    fn words_of_strings_tell_them_apart() {
        let seed = Seed::default();
        let texts = ["", "\0", "a", "a\0", "aa", "1234567", "12345678", "12345679"];
        for (i, one) in texts.iter().enumerate() {
            for (j, other) in texts.iter().enumerate() {
                assert_eq!(seed.word(one.as_bytes()) == seed.word(other.as_bytes()), i == j, "{one:?} {other:?}");
            }
            assert_eq!(Seed::is_whole(seed.word(one.as_bytes())), one.len() <= SHORT);
        }
        assert_ne!(seed.word(b"a long String"), Seed::default().word(b"a long String"), "each process has its own");
    }
}
