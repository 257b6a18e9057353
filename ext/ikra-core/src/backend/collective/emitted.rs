//! Groups of the pairs that a kernel emits: values of equal keys are combined while the kernel runs.
//!
//! Here: [`Emitter`], which one thread of a launch fills, and [`Emitted`], the groups that all of them make. Not here:
//! how generated code calls it, and groups of elements that are in memory ([`super::table`]).
//!
//! 1. Sums of Integers with keys in a small range are in cells of their own (`:direct`, [`super::cells`]).
//! 2. Other pairs wait in a short list, so that memory loads their slots at the same time.
//! 3. They are added to the thread's own table, which fits its cache (`:small`).
//! 4. Where that is full, pairs with new keys are split by the upper bits of their hashes. Each part is a short list
//!    before a table of its own, so that pairs meet tables that are in the cache, too (`:hash`). Memory grows with the
//!    number of keys, not with that of pairs.
//! 5. In the end each part of all hashes is merged by one worker, and groups are ordered by their first pairs.
//!
//! Invariant: nothing depends on which thread ran which element. The order of a pair is a number of its own, and the
//! least one of a group decides where the group is.

use super::Workers;
use super::cells::{CELLS, Cells};
use super::equal;
use super::float_totals::{FixedSum, Seen, ordered};
use super::groups::seed;
use super::keys::{self, Key, KeyTable, canonical};
use super::table::{MIN_KNOWN, PARTS, Seed, part};
use crate::error::Result;
use crate::memory::{ahead, room};
use crate::types::StrWord;
use crate::types::keys::words_of;
use parking_lot::Mutex;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What the values of a group combine to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combine {
    #[default]
    Sum,
    Min,
    Max,
    And,
    Or,
}

/// How pairs are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grouping {
    pub combine: Combine,
    /// Whether values are the bits of Floats, and not Integers. Their bits are not combined by `&` and `|`.
    pub floats: bool,
    /// The most groups of a thread's own table.
    pub private: usize,
    /// The first word that has a cell, for sums of Integers. None: no word has one.
    pub first_cell: Option<i64>,
    /// Whether the kernel must not run twice over its columns, because it reads what it stores. Then a table on a
    /// device that has too little room refuses the groups.
    pub once: bool,
}

impl Grouping {
    pub fn new(combine: Combine) -> Self {
        Self { combine, floats: false, private: MOST_OWN, first_cell: None, once: false }
    }

    /// The first word that has a cell, if sums may be in cells.
    pub fn cell(self) -> Option<i64> {
        self.first_cell.filter(|_| self.combine == Combine::Sum && !self.floats)
    }

    /// Whether totals are sums of Floats, which have more words than others.
    pub fn has_sums(self) -> bool {
        self.floats && self.combine == Combine::Sum
    }
}

/// The groups of a launch, in the order of their first pairs.
#[derive(Debug)]
pub struct Emitted {
    pub how: Grouping,
    /// Words, or for keys of several parts places in `words`.
    pub keys: Vec<u64>,
    /// Keys of several parts.
    pub words: Vec<u64>,
    /// Whether several threads may have a group of one such key.
    pub is_split: bool,
    /// Whether a key had too many parts, or tables cannot tell the total of some Floats, or had too little room. Then
    /// groups mean nothing.
    pub refused: bool,
    pub totals: Vec<i128>,
    /// The same for sums of Floats.
    sums: Vec<FixedSum>,
    /// How many pairs were emitted. None: not counted.
    pub pairs: Option<u64>,
    /// How many were split by their hashes.
    pub split: u64,
    /// For tables on devices: how many groups they have room for, and whether keys have parts.
    pub records: u64,
    pub has_parts: bool,
}

/// The groups of a table on a device.
pub struct Records<'a> {
    /// `struct Record` in `groups.cuh`. Keys of several parts are places in `words`.
    pub rows: &'a [u64],
    /// `struct State`.
    pub states: &'a [u64],
    pub words: Option<&'a [u64]>,
    /// The second words of sums.
    pub highs: &'a [u64],
    /// The third words of sums of Floats.
    pub tops: Option<&'a [u64]>,
    /// Whether -0.0 was among the values.
    pub negative_zero: bool,
}

impl Records<'_> {
    /// The words of a record, and of a state.
    pub const WORDS: usize = 2;
}

/// The factor by which a table on a device grows.
const GROWTH: u64 = 4;

/// Pairs that wait, at most.
const BATCH: usize = 128;
/// The most groups of a thread's own table. Its slots fit the second-level cache, about.
const MOST_OWN: usize = 1 << 15;
/// Pairs that wait in a part of all hashes, at most.
const PART_BATCH: usize = 512;
/// Pairs between two looks at whether a full table still knows many keys.
const STRETCH: usize = 1 << 15;
/// Slots of a table at first. They fit the first-level cache.
const FIRST_SLOTS: usize = 1 << 9;
/// The fewest groups of a part, on average, where workers merge or order parts at the same time.
const MIN_MERGED: usize = 1 << 12;

#[derive(Clone, Copy, Default)]
pub(super) struct Pair {
    key: u64,
    value: i64,
    order: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Group<T> {
    pub key: u64,
    /// The order of its first pair. [`EMPTY`]: an empty slot.
    pub first: u64,
    pub total: T,
}

pub(super) const EMPTY: u64 = u64::MAX;

impl<T: Default> Default for Group<T> {
    fn default() -> Self {
        Self { key: 0, first: EMPTY, total: T::default() }
    }
}

impl<T: Total> From<Pair> for Group<T> {
    fn from(pair: Pair) -> Self {
        Self { key: pair.key, first: pair.order, total: T::of(pair.value) }
    }
}

/// What the values of a group combine to.
pub(super) trait Total: Copy + Default + Send + Sync {
    fn of(value: i64) -> Self;

    fn merge(&mut self, other: Self, combine: Combine);

    fn is_zero(self) -> bool;

    /// Adds the pairs that wait.
    fn add_all(own: &mut Own<Self>, seed: &Seed, pairs: &[Pair], how: Grouping);

    /// The totals of groups.
    fn all(groups: &mut Emitted) -> &mut Vec<Self>;

    /// The tables of a thread, which are of this kind.
    fn own(tables: Tables) -> Option<Own<Self>>;
}

/// Integers, and least and greatest Floats.
impl Total for i128 {
    fn of(value: i64) -> Self {
        value.into()
    }

    #[inline(always)]
    fn merge(&mut self, other: Self, combine: Combine) {
        *self = match combine {
            Combine::Sum => *self + other,
            Combine::Min => (*self).min(other),
            Combine::Max => (*self).max(other),
            Combine::And => *self & other,
            Combine::Or => *self | other,
        };
    }

    fn is_zero(self) -> bool {
        self == 0
    }

    fn add_all(own: &mut Own<Self>, seed: &Seed, pairs: &[Pair], how: Grouping) {
        match how.combine {
            Combine::Sum => own.add(seed, pairs, how, |total, value| *total += i128::from(value)),
            Combine::Min => own.add(seed, pairs, how, |total, value| *total = (*total as i64).min(value).into()),
            Combine::Max => own.add(seed, pairs, how, |total, value| *total = (*total as i64).max(value).into()),
            Combine::And => own.add(seed, pairs, how, |total, value| *total = (*total as i64 & value).into()),
            Combine::Or => own.add(seed, pairs, how, |total, value| *total = (*total as i64 | value).into()),
        }
    }

    fn all(groups: &mut Emitted) -> &mut Vec<Self> {
        &mut groups.totals
    }

    fn own(tables: Tables) -> Option<Own<Self>> {
        if let Tables::Words(own) = tables { Some(own) } else { None }
    }
}

/// Sums of Floats.
impl Total for FixedSum {
    /// The launch is refused where there is none.
    fn of(value: i64) -> Self {
        FixedSum::of(value).unwrap_or_default()
    }

    #[inline(always)]
    fn merge(&mut self, other: Self, _combine: Combine) {
        self.add(other);
    }

    fn is_zero(self) -> bool {
        FixedSum::is_zero(self)
    }

    fn add_all(own: &mut Own<Self>, seed: &Seed, pairs: &[Pair], how: Grouping) {
        own.add(seed, pairs, how, |total, value| total.add(Total::of(value)));
    }

    fn all(groups: &mut Emitted) -> &mut Vec<Self> {
        &mut groups.sums
    }

    fn own(tables: Tables) -> Option<Own<Self>> {
        if let Tables::Sums(own) = tables { Some(own) } else { None }
    }
}

/// A hash table with open addressing.
#[derive(Default)]
struct Table<T> {
    slots: Vec<Group<T>>,
    len: usize,
}

impl<T: Total> Table<T> {
    fn with_slots(slots: usize) -> Self {
        Self { slots: room::filled(Group::default(), slots.next_power_of_two()), len: 0 }
    }

    /// The slot of a key, or the empty one where it belongs.
    #[inline(always)]
    fn slot(&mut self, key: u64, hash: u64) -> &mut Group<T> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].first != EMPTY && self.slots[at].key != key {
            at = (at + 1) & mask;
        }
        &mut self.slots[at]
    }

    fn grow_if_full(&mut self, seed: &Seed) {
        if self.len * 2 < self.slots.len() {
            return;
        }
        let larger = Self::with_slots(self.slots.len() * 4);
        let before = std::mem::replace(&mut self.slots, larger.slots);
        for group in before.into_iter().filter(|group| group.first != EMPTY) {
            *self.slot(group.key, seed.hash(group.key)) = group;
        }
    }

    /// Adds a group, for whose key there may be one.
    fn merge(&mut self, seed: &Seed, group: Group<T>, combine: Combine) {
        let slot = self.slot(group.key, seed.hash(group.key));
        if slot.first != EMPTY {
            slot.first = slot.first.min(group.first);
            slot.total.merge(group.total, combine);
            return;
        }
        *slot = group;
        self.len += 1;
        self.grow_if_full(seed);
    }

    fn groups(&self) -> impl Iterator<Item = &Group<T>> {
        self.slots.iter().filter(|group| group.first != EMPTY)
    }
}

/// A part of all hashes.
#[derive(Default)]
struct Part<T> {
    waiting: Vec<Pair>,
    table: Table<T>,
}

impl<T: Total> Part<T> {
    fn add_waiting(&mut self, seed: &Seed, combine: Combine) {
        if self.table.slots.is_empty() {
            self.table = Table::with_slots(2 * PART_BATCH);
        }
        for pair in self.waiting.drain(..) {
            self.table.merge(seed, pair.into(), combine);
        }
    }
}

/// One word for all equal Strings of one encoding that a thread has met: that of the first one.
#[derive(Default)]
struct Names {
    slots: Vec<Name>,
    len: usize,
}

#[derive(Clone, Copy)]
struct Name {
    /// As [`Seed::word`] makes it.
    word: u64,
    /// [`NO_NAME`]: an empty slot.
    key: u64,
}

/// No String is so long.
const NO_NAME: u64 = u64::MAX;

impl Names {
    fn of<'t>(&mut self, seed: &Seed, key: StrWord, text: &impl Fn(StrWord) -> &'t [u8]) -> u64 {
        if self.len * 2 >= self.slots.len() {
            let slots = (4 * self.slots.len()).max(FIRST_SLOTS);
            let before = std::mem::replace(&mut self.slots, room::filled(Name { word: 0, key: NO_NAME }, slots));
            for name in before.into_iter().filter(|name| name.key != NO_NAME) {
                let mut at = seed.hash(name.word) as usize & (slots - 1);
                while self.slots[at].key != NO_NAME {
                    at = (at + 1) & (slots - 1);
                }
                self.slots[at] = name;
            }
        }
        let (own, mask) = (text(key), self.slots.len() - 1);
        let word = seed.word(own);
        let same = |name: &Name| {
            let other = StrWord(name.key);
            name.word == word && other.encoding() == key.encoding() && (Seed::is_whole(word) || text(other) == own)
        };
        let mut at = seed.hash(word) as usize & mask;
        loop {
            let name = &mut self.slots[at];
            if name.key == NO_NAME {
                *name = Name { word, key: key.0 };
                self.len += 1;
                return key.0;
            }
            if same(name) {
                return name.key;
            }
            at = (at + 1) & mask;
        }
    }
}

/// What one thread of a launch has grouped.
pub struct Emitter {
    /// Generated code adds to them.
    pub(in crate::backend) cells: Cells,
    how: Grouping,
    seed: &'static Seed,
    waiting: [Pair; BATCH],
    waits: usize,
    names: Names,
    /// The parts of the next pair's key so far.
    key: Key,
    /// `refused`: also where a key was too long.
    seen: Seen,
    tables: Tables,
    pairs: u64,
    /// Why it had to end, if it had to.
    panic: Option<Box<dyn Any + Send>>,
}

pub(super) enum Tables {
    Words(Own<i128>),
    Sums(Own<FixedSum>),
}

/// The tables of one thread.
pub(super) struct Own<T> {
    table: Table<T>,
    keyed: KeyTable<T>,
    /// By the upper bits of hashes.
    parts: Vec<Part<T>>,
    split: u64,
    /// How many pairs the full table knew, and how many it did not, since the last look.
    known: usize,
    unknown: usize,
    /// Whether it is not asked any more.
    given_up: bool,
}

impl<T: Total> Own<T> {
    fn new(how: Grouping) -> Self {
        Self {
            table: Table::with_slots(FIRST_SLOTS),
            keyed: KeyTable::default(),
            parts: Vec::new(),
            split: 0,
            known: 0,
            unknown: 0,
            given_up: how.private == 0,
        }
    }

    #[inline(always)]
    fn add(&mut self, seed: &Seed, pairs: &[Pair], how: Grouping, combine: impl Fn(&mut T, i64)) {
        let mut hashes = [0; BATCH];
        for (hash, pair) in hashes.iter_mut().zip(pairs) {
            *hash = seed.hash(pair.key);
        }
        let hashes = &hashes[..pairs.len()];
        // a small table is in the cache anyway
        if !self.given_up && self.table.slots.len() > FIRST_SLOTS {
            let mask = self.table.slots.len() - 1;
            hashes.iter().for_each(|hash| ahead::to_read(&raw const self.table.slots[*hash as usize & mask]));
        }
        for (hash, pair) in hashes.iter().copied().zip(pairs.iter().copied()) {
            if self.given_up {
                self.set_apart(seed, pair, hash, how.combine);
                continue;
            }
            let full = self.table.len >= how.private;
            let slot = self.table.slot(pair.key, hash);
            if slot.first != EMPTY {
                slot.first = slot.first.min(pair.order);
                combine(&mut slot.total, pair.value);
                self.known += usize::from(full);
            } else if full {
                self.unknown += 1;
                self.set_apart(seed, pair, hash, how.combine);
            } else {
                *slot = pair.into();
                self.table.len += 1;
                self.table.grow_if_full(seed);
            }
        }
        if self.known + self.unknown > STRETCH {
            self.given_up = self.unknown > self.known * (MIN_KNOWN - 1);
            (self.known, self.unknown) = (0, 0);
        }
    }

    fn set_apart(&mut self, seed: &Seed, pair: Pair, hash: u64, combine: Combine) {
        if self.parts.is_empty() {
            self.parts = room::collect((0..PARTS).map(|_| Part::default()));
        }
        self.split += 1;
        let part = &mut self.parts[part(hash, PARTS)];
        room::push(&mut part.waiting, pair);
        if part.waiting.len() == PART_BATCH {
            part.add_waiting(seed, combine);
        }
    }
}

impl Emitter {
    pub fn new(how: Grouping) -> Self {
        Self::with_seed(how, seed())
    }

    fn with_seed(how: Grouping, seed: &'static Seed) -> Self {
        Self {
            cells: Cells::new(how.cell()),
            how,
            seed,
            waiting: [Pair::default(); BATCH],
            waits: 0,
            names: Names::default(),
            key: Key::default(),
            seen: Seen::default(),
            tables: if how.has_sums() { Tables::Sums(Own::new(how)) } else { Tables::Words(Own::new(how)) },
            pairs: 0,
            panic: None,
        }
    }

    /// Adds a pair. It does not unwind: [`Emitted::take`] does.
    pub fn push(&mut self, key: u64, value: i64, order: u64) {
        if self.cells.add(key, value, order) {
            return;
        }
        self.waiting[self.waits] = Pair { key, value, order };
        self.waits += 1;
        if self.waits < BATCH {
            return;
        }
        if self.panic.is_none()
            && let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.add_waiting()))
        {
            self.panic = Some(panic);
        }
        self.waits = 0;
    }

    /// The same for a key that is a String. `text` gives the bytes of such Strings.
    pub fn push_text<'t>(&mut self, key: StrWord, value: i64, order: u64, text: impl Fn(StrWord) -> &'t [u8]) {
        if self.panic.is_some() {
            return;
        }
        match catch_unwind(AssertUnwindSafe(|| self.names.of(self.seed, key, &text))) {
            Ok(key) => self.push(key, value, order),
            Err(panic) => self.panic = Some(panic),
        }
    }

    /// Adds a part to the key of the next pair.
    pub fn push_part(&mut self, code: u64, word: u64) {
        self.key.add(code, word);
    }

    /// The same as [`Emitter::push`] for the key whose parts came before. `text` gives the bytes of Strings.
    pub fn push_parts<'t>(&mut self, value: i64, order: u64, text: impl Fn(StrWord) -> &'t [u8]) {
        let key = std::mem::take(&mut self.key);
        let value = if self.how.floats { self.seen.word(self.how.combine, value) } else { value };
        self.seen.refused |= key.is_too_long();
        if self.seen.refused || self.panic.is_some() {
            return;
        }
        self.pairs += 1;
        let (seed, combine, pair) = (self.seed, self.how.combine, Pair { key: 0, value, order });
        let text = |word| canonical(text(word), word);
        let add = || match &mut self.tables {
            Tables::Words(own) => own.keyed.add(seed, &key, pair.into(), combine, &text),
            Tables::Sums(own) => own.keyed.add(seed, &key, pair.into(), combine, &text),
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(add)) {
            self.panic = Some(panic);
        }
    }

    /// Adds what is in cells to the table.
    fn empty_cells(&mut self) {
        self.pairs += self.cells.pairs;
        if let Tables::Words(own) = &mut self.tables {
            for (key, cell) in self.cells.used() {
                own.table.merge(self.seed, Group { key, first: cell.first, total: cell.total.into() }, Combine::Sum);
            }
        }
    }

    fn add_waiting(&mut self) {
        let pairs = &mut self.waiting[..self.waits];
        if self.how.floats {
            pairs.iter_mut().for_each(|pair| pair.value = self.seen.word(self.how.combine, pair.value));
        }
        if self.seen.refused {
            return;
        }
        self.pairs += pairs.len() as u64;
        match &mut self.tables {
            Tables::Words(own) => Total::add_all(own, self.seed, pairs, self.how),
            Tables::Sums(own) => Total::add_all(own, self.seed, pairs, self.how),
        }
    }
}

/// What an emitter has grouped.
struct Grouped<T> {
    table: Table<T>,
    parts: Vec<Mutex<Part<T>>>,
}

impl<T> From<Own<T>> for Grouped<T> {
    fn from(Own { table, parts, .. }: Own<T>) -> Self {
        Self { table, parts: room::collect(parts.into_iter().map(Mutex::new)) }
    }
}

impl Emitted {
    pub fn new(how: Grouping) -> Self {
        let (keys, words, totals, sums) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self {
            how,
            keys,
            words,
            is_split: false,
            refused: false,
            totals,
            sums,
            pairs: None,
            split: 0,
            records: 0,
            has_parts: false,
        }
    }

    /// Makes the table on a device larger if its kernel needed more records than it has. Whether the kernel runs again.
    pub fn grow(&mut self, needed: u64) -> bool {
        let is_short = needed > self.records;
        if is_short {
            self.records *= GROWTH;
        }
        self.refused |= is_short && self.how.once;
        is_short && !self.how.once
    }

    /// Makes the groups of a table on a device.
    ///
    /// # Errors
    /// `Device` when the system cannot start threads.
    pub fn take_records(&mut self, on: Workers<'_>, records: &Records<'_>) -> Result<()> {
        if let Some(words) = records.words {
            (self.words, self.is_split) = (room::copied(words), true);
        }
        let &Records { highs, negative_zero, .. } = records;
        match records.tops {
            Some(tops) => self.take_totals(on, records, |at, low| FixedSum([low, highs[at], tops[at]]))?,
            None if self.how.combine == Combine::Sum => {
                self.take_totals(on, records, |at, low| i128::from(highs[at] as i64) << 64 | i128::from(low))?;
            }
            None => self.take_totals(on, records, |_, low| i128::from(low as i64))?,
        }
        self.look_for_zeros(negative_zero);
        Ok(())
    }

    fn take_totals<T: Total>(
        &mut self,
        on: Workers<'_>,
        records: &Records<'_>,
        total: impl Fn(usize, u64) -> T,
    ) -> Result<()> {
        let mut groups = room::with_capacity(records.rows.len() / Records::WORDS);
        let [rows, states] = [records.rows, records.states].map(|words| words.chunks_exact(Records::WORDS));
        for (at, (row, state)) in rows.zip(states).enumerate() {
            let (&[key, _head], &[first, low]) = (row, state) else { continue };
            // two threads inserted it at the same time
            if first != EMPTY {
                groups.push(Group { key, first, total: total(at, low) });
            }
        }
        self.set(on, vec![groups])
    }

    /// Refuses groups where tables do not know the sign of a zero.
    fn look_for_zeros(&mut self, negative_zero: bool) {
        let are_zero = self.totals.iter().map(|total| Total::is_zero(*total));
        self.refused |= negative_zero && are_zero.chain(self.sums.iter().map(|sum| sum.is_zero())).any(|is| is);
    }

    /// The totals of Floats, of which some may be refused.
    pub fn floats(&self) -> Vec<f64> {
        let float = |total: &i128| f64::from_bits(ordered(*total as i64) as u64);
        match self.how.has_sums() {
            true => room::collect(self.sums.iter().map(|sum| sum.rounded())),
            false => room::collect(self.totals.iter().map(float)),
        }
    }

    /// Sums of Floats that are not rounded ([`FixedSum::parts`]).
    pub fn float_parts(&self) -> impl ExactSizeIterator<Item = Vec<f64>> {
        self.sums.iter().map(|sum| sum.parts())
    }

    /// Makes one group of those whose keys are equal Strings, of which each thread may have one, and each encoding.
    ///
    /// # Errors
    /// `Device` when the system cannot start threads.
    pub fn merge_texts(&mut self, on: Workers<'_>, bytes: &[u8]) -> Result<()> {
        let (seed, text) = (seed(), text_of(bytes));
        let hash = |key| Some(keys::folded(seed.hash(seed.word(text(StrWord(key)).0))));
        self.merge_equal(on, hash, |one, other| text(StrWord(one)) == text(StrWord(other)))
    }

    /// Makes one group of those whose keys of several parts are equal.
    ///
    /// # Errors
    /// As [`Emitted::merge_texts`].
    pub fn merge_parts(&mut self, on: Workers<'_>, bytes: &[u8]) -> Result<()> {
        if !self.is_split {
            return Ok(());
        }
        let (seed, text, words) = (seed(), text_of(bytes), std::mem::take(&mut self.words));
        let own = |key: u64| &words[key as usize..];
        let hash = |key| (!keys::is_alone(own(key))).then(|| keys::hash_of(seed, own(key), &text));
        let merged = self.merge_equal(on, hash, |one, other| keys::same(own(one), own(other), &text));
        self.words = words;
        merged
    }

    /// Makes one group of those whose keys are equal. Where the launch is cancelled, groups mean nothing.
    fn merge_equal(
        &mut self,
        on: Workers<'_>,
        hash: impl Fn(u64) -> Option<u32> + Sync,
        same: impl Fn(u64, u64) -> bool + Sync,
    ) -> Result<()> {
        match self.how.has_sums() {
            true => self.merge_all::<FixedSum>(on, hash, same),
            false => self.merge_all::<i128>(on, hash, same),
        }
    }

    fn merge_all<T: Total>(
        &mut self,
        on: Workers<'_>,
        hash: impl Fn(u64) -> Option<u32> + Sync,
        same: impl Fn(u64, u64) -> bool + Sync,
    ) -> Result<()> {
        let (combine, groups) = (self.how.combine, (std::mem::take(&mut self.keys), std::mem::take(T::all(self))));
        if let Some(merged) = equal::merge(on, groups, hash, same, |one, other| one.merge(other, combine))? {
            (self.keys, *T::all(self)) = merged;
        }
        Ok(())
    }

    /// Whether all keys had cells.
    pub fn are_direct(&self) -> bool {
        let reached = |first: i64| self.keys.iter().all(|key| key.wrapping_sub(first as u64) < CELLS as u64);
        self.how.cell().is_some_and(reached)
    }

    /// The words of a key of several parts.
    pub fn parts(&self, key: u64) -> &[u64] {
        let words = &self.words[key as usize..];
        &words[..words_of(words[0])]
    }

    /// Stores the groups, in order. Nothing where the launch is cancelled.
    fn set<T: Total>(&mut self, on: Workers<'_>, lists: Vec<Vec<Group<T>>>) -> Result<()> {
        let Some(lists) = in_order(on, lists)? else { return Ok(()) };
        let count = lists.iter().map(Vec::len).sum();
        let (mut keys, mut totals) = (room::with_capacity(count), room::with_capacity(count));
        for group in lists.iter().flatten() {
            keys.push(group.key);
            totals.push(group.total);
        }
        (self.keys, *T::all(self)) = (keys, totals);
        Ok(())
    }

    /// Makes the groups of what all threads of a launch emitted. Nothing where the launch is cancelled.
    ///
    /// # Errors
    /// `Device` when the system cannot start threads.
    pub fn take(&mut self, on: Workers<'_>, mut emitters: Vec<Emitter>) -> Result<()> {
        let mut seen = Seen::default();
        for emitter in &mut emitters {
            if let Some(panic) = emitter.panic.take() {
                resume_unwind(panic);
            }
            emitter.add_waiting();
            emitter.waits = 0;
            emitter.empty_cells();
            self.pairs = Some(self.pairs.unwrap_or(0) + emitter.pairs);
            seen.merge(emitter.seen);
        }
        let Some(seed) = emitters.first().map(|emitter| emitter.seed) else { return Ok(()) };
        self.refused = seen.refused;
        match self.how.has_sums() {
            _ if self.refused => return Ok(()),
            true => self.take_tables::<FixedSum>(on, seed, emitters)?,
            false => self.take_tables::<i128>(on, seed, emitters)?,
        }
        self.look_for_zeros(seen.negative_zero);
        Ok(())
    }

    fn take_tables<T: Total>(&mut self, on: Workers<'_>, seed: &Seed, emitters: Vec<Emitter>) -> Result<()> {
        let tables: Vec<Own<T>> = emitters.into_iter().filter_map(|emitter| T::own(emitter.tables)).collect();
        self.split += tables.iter().map(|own| own.split).sum::<u64>();
        if tables.iter().any(|own| !own.keyed.groups.is_empty()) {
            return self.take_parts(on, tables);
        }
        // what is left of them can be shared
        let grouped: Vec<Grouped<T>> = tables.into_iter().map(Grouped::from).collect();
        let mut filled = grouped.iter().filter(|one| one.table.len > 0);
        let lists = match (filled.next(), filled.next()) {
            (Some(only), None) if self.split == 0 => vec![room::collect(only.table.groups().copied())],
            _ => match merged(on, seed, self.how.combine, &grouped)? {
                Some(lists) => lists,
                None => return Ok(()),
            },
        };
        drop(grouped);
        self.set(on, lists)
    }

    /// The same where keys have several parts.
    fn take_parts<T: Total>(&mut self, on: Workers<'_>, tables: Vec<Own<T>>) -> Result<()> {
        let mut lists = Vec::new();
        for Own { keyed: KeyTable { mut groups, words, .. }, .. } in tables {
            let first = self.words.len() as u64;
            if first == 0 {
                self.words = words;
            } else {
                self.is_split |= !groups.is_empty();
                words.iter().for_each(|word| room::push(&mut self.words, *word));
                groups.iter_mut().for_each(|group| group.key += first);
            }
            lists.push(groups);
        }
        self.set(on, lists)
    }
}

/// Gives what Strings are compared by.
fn text_of<'t>(bytes: &'t [u8]) -> impl Fn(StrWord) -> keys::Text<'t> {
    move |word| canonical(&bytes[word.offset() as usize..][..word.length()], word)
}

/// The groups of all emitters, part by part. None: cancelled.
fn merged<T: Total>(
    on: Workers<'_>,
    seed: &Seed,
    combine: Combine,
    all: &[Grouped<T>],
) -> Result<Option<Vec<Vec<Group<T>>>>> {
    let groups: usize = all.iter().map(|one| one.table.len).sum();
    let is_split = all.iter().any(|one| !one.parts.is_empty());
    let parts = if is_split { PARTS } else { (groups / MIN_MERGED).next_power_of_two().min(PARTS) };
    let split = |one: &Grouped<T>| {
        let mut split: Vec<Vec<Group<T>>> = room::filled(Vec::new(), parts);
        for group in one.table.groups() {
            room::push(&mut split[part(seed.hash(group.key), parts)], *group);
        }
        split
    };
    let tables = on.several(all.len(), |at| split(&all[at]))?;
    on.each(parts, |p| {
        let own = |one: &Grouped<T>| one.parts.get(p).map(|part| std::mem::take(&mut *part.lock()));
        let mut split: Vec<Part<T>> = all.iter().filter_map(own).collect();
        // the others go into the largest table
        split.sort_by_key(|part| part.table.len);
        let groups = tables.iter().map(|table| table[p].len()).max().unwrap_or(0);
        let largest = split.last_mut().map(|part| std::mem::take(&mut part.table));
        let mut table = largest.filter(|table| table.len > 0);
        let table = table.get_or_insert_with(|| Table::with_slots((2 * groups).max(BATCH)));
        for group in tables.iter().flat_map(|table| &table[p]) {
            table.merge(seed, *group, combine);
        }
        for Part { waiting, table: other } in split {
            other.groups().for_each(|group| table.merge(seed, *group, combine));
            waiting.into_iter().for_each(|pair| table.merge(seed, pair.into(), combine));
        }
        room::collect(table.groups().copied())
    })
}

/// The same groups in lists that follow each other, in the order of first pairs. None: cancelled.
fn in_order<T: Total>(on: Workers<'_>, lists: Vec<Vec<Group<T>>>) -> Result<Option<Vec<Vec<Group<T>>>>> {
    let count: usize = lists.iter().map(Vec::len).sum();
    let firsts = || lists.iter().flatten().map(|group| group.first);
    let (Some(least), Some(greatest)) = (firsts().min(), firsts().max()) else { return Ok(Some(Vec::new())) };
    let parts = (count / MIN_MERGED + 1).min(PARTS) as u128;
    let width = u128::from(greatest - least) + 1;
    let mut ordered: Vec<Vec<Group<T>>> = room::filled(Vec::new(), parts as usize);
    for group in lists.into_iter().flatten() {
        room::push(&mut ordered[(u128::from(group.first - least) * parts / width) as usize], group);
    }
    on.all(ordered, |mut list: Vec<Group<T>>| {
        list.sort_unstable_by_key(|group| group.first);
        list
    })
}

#[cfg(test)]
mod tests {
    use super::super::exact_sum::ExactSum;
    use super::super::testing::{Random, on_host};
    use super::*;
    use crate::types::Encoding;
    use std::collections::HashMap;

    const ALL: [Combine; 5] = [Combine::Sum, Combine::Min, Combine::Max, Combine::And, Combine::Or];

    /// Groups pairs one after the other.
    fn plain(pairs: &[(u64, i64)], combine: Combine) -> (Vec<u64>, Vec<i128>) {
        let (mut known, mut keys, mut totals) = (HashMap::new(), Vec::new(), Vec::new());
        for (key, value) in pairs {
            let group = *known.entry(*key).or_insert(keys.len());
            if group == keys.len() {
                keys.push(*key);
                totals.push(i128::from(*value));
            } else {
                Total::merge(&mut totals[group], i128::from(*value), combine);
            }
        }
        (keys, totals)
    }

    /// Groups pairs by several emitters, which take stretches of pairs in turn, the last stretches first.
    fn check(pairs: &[(u64, i64)], how: Grouping, seed: &'static Seed, told: &str) {
        let expected = plain(pairs, how.combine);
        for threads in [1, 3] {
            let mut emitters: Vec<Emitter> = (0..threads).map(|_| Emitter::with_seed(how, seed)).collect();
            let order: Vec<(u64, &(u64, i64))> = (0..).zip(pairs).collect();
            for (turn, stretch) in order.chunks(70).rev().enumerate() {
                let emitter = &mut emitters[turn % threads];
                stretch.iter().for_each(|(order, (key, value))| emitter.push(*key, *value, *order));
            }
            let mut found = Emitted::new(how);
            on_host(|on| found.take(on, emitters).map(Some));
            assert_eq!(found.pairs, Some(pairs.len() as u64));
            assert!((found.keys, found.totals) == expected, "{told}, {how:?}, {threads} threads");
        }
    }

    #[test]
    fn all_tables_find_the_same_groups() {
        for n in [0, 1, 2, 127, 128, 129, 767, 999, 1000, 1001, 50_000] {
            for kinds in [1, 2, 100, 3000, u64::MAX] {
                let mut random = Random(n ^ kinds);
                let hot = random.word().is_multiple_of(2);
                let key = |word: u64| if hot && word & 7 > 0 { 6 } else { word % kinds };
                let pairs: Vec<(u64, i64)> =
                    (0..n).map(|_| (key(random.word()), random.word() as i64 >> (random.word() & 63))).collect();
                for private in [0, 1, 7, MOST_OWN] {
                    for combine in if n > 1001 { &ALL[..1] } else { &ALL[..] } {
                        let first_cell = (private % 2 == 0).then_some(3);
                        let how = Grouping { private, first_cell, ..Grouping::new(*combine) };
                        check(&pairs, how, seed(), &format!("{n} of {kinds}"));
                    }
                }
            }
        }
    }

    #[test]
    fn keys_with_equal_hashes_are_told_apart() {
        let alike: &'static Seed = Box::leak(Box::new(Seed::alike()));
        assert_eq!(alike.hash(5), alike.hash(6));
        for private in [0, 1, 40, MOST_OWN] {
            let pairs: Vec<(u64, i64)> = (0..2000).map(|i| (i * i % 97, i as i64)).collect();
            check(&pairs, Grouping { private, ..Grouping::new(Combine::Sum) }, alike, "equal hashes");
        }
    }

    /// Bytes and encoding of a String, its first word, and its total.
    type Known<'a> = ((&'a [u8], u8), u64, i128);

    #[test]
    fn strings_are_told_apart_by_bytes_and_encoding() {
        let (mut bytes, mut keys) = (Vec::new(), Vec::new());
        let all = [Encoding::Utf8, Encoding::Ascii, Encoding::Binary, Encoding::UsAscii];
        let texts: [&[u8]; 9] =
            [b"", b"a", b"b", b"1234567", b"12345678", b"12345679", "\u{fc}".as_bytes(), b"a", b"12345678"];
        for (at, text) in texts.iter().cycle().take(400).enumerate() {
            keys.push(StrWord::new(bytes.len() as u32, text.len(), all[at % 4], true));
            bytes.extend_from_slice(text);
        }
        let mut emitters = [Emitter::new(Grouping::new(Combine::Sum)), Emitter::new(Grouping::new(Combine::Sum))];
        for (at, key) in keys.iter().enumerate() {
            emitters[at / 7 % 2]
                .push_text(*key, at as i64, at as u64, |key| &bytes[key.offset() as usize..][..key.length()]);
        }
        let mut found = Emitted::new(Grouping::new(Combine::Sum));
        on_host(|on| found.take(on, emitters.into()).map(Some));
        on_host(|on| found.merge_texts(on, &bytes).map(Some));
        let mut expected: Vec<Known<'_>> = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            let text = texts[at % texts.len()];
            let kind = if text.is_ascii() || at % 4 == 1 { 0 } else { at as u8 % 4 };
            match expected.iter_mut().find(|known| known.0 == (text, kind)) {
                Some(known) => known.2 += at as i128,
                None => expected.push(((text, kind), key.0, at as i128)),
            }
        }
        assert_eq!(found.keys, expected.iter().map(|known| known.1).collect::<Vec<_>>());
        assert_eq!(found.totals, expected.iter().map(|known| known.2).collect::<Vec<_>>());
    }

    /// The totals of Floats, which several emitters add in turn. None: they are refused.
    fn floats(pairs: &[(u64, f64)], combine: Combine, private: usize) -> Option<(Vec<u64>, Vec<u64>)> {
        let how = Grouping { floats: true, private, ..Grouping::new(combine) };
        let mut emitters: Vec<Emitter> = (0..3).map(|_| Emitter::new(how)).collect();
        for (order, (key, value)) in pairs.iter().enumerate() {
            emitters[order / 70 % 3].push(*key, value.to_bits() as i64, order as u64);
        }
        let mut found = Emitted::new(how);
        on_host(|on| found.take(on, emitters).map(Some));
        let totals = found.floats().into_iter().map(f64::to_bits).collect();
        (!found.refused).then_some((found.keys, totals))
    }

    #[test]
    fn floats_are_combined_as_one_after_the_other() {
        for n in [1, 127, 1000, 50_000] {
            for kinds in [1, 100, u64::MAX] {
                let mut random = Random(n ^ kinds);
                let value = |word: u64| (word as i64 >> 11) as f64 * 2f64.powi((word % 60) as i32 - 70);
                let pairs: Vec<(u64, f64)> = (0..n).map(|_| (random.word() % kinds, value(random.word()))).collect();
                let (mut known, mut keys, mut values) = (HashMap::new(), Vec::new(), Vec::<Vec<f64>>::new());
                for (key, value) in &pairs {
                    let group = *known.entry(*key).or_insert(keys.len());
                    if group == keys.len() {
                        keys.push(*key);
                        values.push(Vec::new());
                    }
                    values[group].push(*value);
                }
                let sum = |values: &Vec<f64>| {
                    let mut sum = ExactSum::default();
                    values.iter().for_each(|value| sum.add(*value));
                    sum.rounded()
                };
                let least = |values: &Vec<f64>| values.iter().copied().fold(f64::INFINITY, f64::min);
                let greatest = |values: &Vec<f64>| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let of = |total: &dyn Fn(&Vec<f64>) -> f64| {
                    Some((keys.clone(), values.iter().map(|values| total(values).to_bits()).collect()))
                };
                for private in [0, 7, MOST_OWN] {
                    assert!(floats(&pairs, Combine::Sum, private) == of(&sum), "sums, {n} of {kinds}");
                    assert!(floats(&pairs, Combine::Min, private) == of(&least), "least, {n} of {kinds}");
                    assert!(floats(&pairs, Combine::Max, private) == of(&greatest), "greatest, {n} of {kinds}");
                }
            }
        }
    }

    #[test]
    fn zeros_of_unknown_sign_are_refused() {
        for (values, known) in [
            ([0.0, 0.0], [true; 3]),
            ([-0.0, 0.0], [false; 3]),
            ([-0.0, 1.0], [true, false, true]),
            ([-1.0, -0.0], [true, true, false]),
            ([-0.0, f64::NAN], [false; 3]),
            ([5e-324, 1.0], [false, true, true]),
        ] {
            let pairs = values.map(|value| (1, value));
            let all = [Combine::Sum, Combine::Min, Combine::Max];
            assert_eq!(all.map(|combine| floats(&pairs, combine, MOST_OWN).is_some()), known, "{values:?}");
        }
        let apart = floats(&[(1, -0.0), (1, 2.0), (2, 3.0)], Combine::Sum, MOST_OWN);
        assert_eq!(apart, Some((vec![1, 2], vec![2f64.to_bits(), 3f64.to_bits()])));
    }

    #[test]
    fn sums_beyond_64_bits_are_kept() {
        let pairs: Vec<(u64, i64)> = (0..1000).map(|i| (i % 2, if i < 500 { i64::MAX } else { i64::MIN })).collect();
        check(&pairs, Grouping::new(Combine::Sum), seed(), "large");
    }
}
