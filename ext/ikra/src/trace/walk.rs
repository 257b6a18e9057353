//! The walk over reachable objects.
//!
//! Nothing recurses: each table only grows at its end, and a cursor per table says how far its rows were followed. Objects are numbered in
//! the order of a breadth-first search, whoever reads them: from elements, and then from roots, but where a list is taken to have its objects in order
//! ([`Plan::roots_first`]).

use super::{ARRAY, ARRAY_CLASS, CHUNK, MOST_ROWS, Misfit, NO_CLASS, Result, STRING, Tables};
use crate::heap::{self, AHEAD, FieldReader, Raw, Seen};
use crate::identity::Vacancy;
use crate::plan::{Plan, SlotPlan};
use ikra_core::types::{Prims, StrWord};
use smallvec::SmallVec;
use std::convert::Infallible;

/// Values that are looked up before the first is followed, at most, but for objects with many slots.
const MOST: usize = 4 * AHEAD;

pub(super) struct Tracer<'a> {
    pub plan: &'a Plan,
    pub tables: &'a mut Tables,
    /// By class, for each slot that leads on.
    pub readers: Vec<Vec<FieldReader>>,
    /// Hashes that were not laid out yet.
    pub unknown: &'a mut Vec<Raw>,
    /// The class that was looked up last, and its index.
    pub last: (Raw, u32),
}

/// What a slot was found to hold.
pub(super) struct Reached {
    /// As in the identity map; 0 for what is neither object nor array.
    entry: u64,
    known: bool,
}

impl Tracer<'_> {
    /// Walks from the base array and the roots.
    ///
    /// # Errors
    /// As [`Tables::trace`].
    pub fn walk(&mut self, base: Option<&[Raw]>, roots: &[Raw]) -> Result<()> {
        let plan = self.plan;
        if plan.roots_first {
            // elements that refer to a list's objects, in whatever order, have no say in it
            self.roots(roots)?;
            self.settle()?;
        }
        if let (Some(slot), Some(base)) = (&plan.elements, base)
            && slot.leads_on()
        {
            self.elements(slot, base)?;
        }
        if !plan.roots_first {
            self.roots(roots)?;
        }
        self.settle()?;
        if self.unknown.is_empty() { Ok(()) } else { Err(Misfit::Hashes) }
    }

    fn roots(&mut self, roots: &[Raw]) -> Result<()> {
        let mut roots = self.plan.roots.iter().zip(roots);
        roots.try_for_each(|(slot, root)| self.follow(slot, *root, false).map(drop))
    }

    fn elements(&mut self, slot: &SlotPlan, base: &[Raw]) -> Result<()> {
        let (mut rows, mut classes) = (vec![0; base.len()], vec![0; base.len()]);
        // What the first element leads to is numbered from there outwards: neighbours get near rows. From many elements at
        // once, the wavefronts would interleave, and each step to a neighbour go to another cache line.
        let (first, rest) = base.split_at(base.len().min(1));
        let (first_row, rest_rows) = rows.split_at_mut(first.len());
        let (first_class, rest_classes) = classes.split_at_mut(first.len());
        self.chunk(slot, first, first_row, first_class)?;
        if !self.elements_beside(slot, rest, rest_rows, rest_classes)? {
            let chunks = rest.chunks(CHUNK).zip(rest_rows.chunks_mut(CHUNK)).zip(rest_classes.chunks_mut(CHUNK));
            for ((values, rows), classes) in chunks {
                self.chunk(slot, values, rows, classes)?;
            }
        }
        self.tables.element_rows = rows;
        self.tables.element_classes = classes;
        Ok(())
    }

    fn chunk(&mut self, slot: &SlotPlan, values: &[Raw], rows: &mut [u32], classes: &mut [u16]) -> Result<()> {
        values.iter().for_each(|value| self.ask_for(*value));
        for ((value, row), class) in values.iter().zip(rows).zip(classes) {
            let Reached { entry, known } = self.follow(slot, *value, true)?;
            if known && !self.plan.grouped {
                return Err(Misfit::Value);
            }
            *row = entry as u32;
            *class = match entry {
                0 => NO_CLASS,
                entry if entry & ARRAY != 0 => ARRAY_CLASS,
                entry => (entry >> 32) as u16 - 1,
            };
        }
        // While they are in the cache; but an element that others lead to has to be known as one first.
        if self.plan.linked { Ok(()) } else { self.settle() }
    }

    fn class_index(&mut self, class: Raw) -> Option<u32> {
        if self.last.0 != class {
            self.last = (class, *self.plan.class_index.get(&class)?);
        }
        Some(self.last.1)
    }

    /// Notes what a slot holds, where that is an object or array.
    #[inline]
    pub(super) fn follow(&mut self, slot: &SlotPlan, value: Raw, element: bool) -> Result<Reached> {
        if heap::is_immediate(value) {
            return Ok(Reached { entry: 0, known: false });
        }
        // what is known is not read again
        let vacancy = match self.tables.map.look(value) {
            Ok(entry) => return self.again(slot, entry, element),
            Err(vacancy) => vacancy,
        };
        if heap::is_object(value) {
            return self.object(slot, (value, vacancy), element);
        }
        match heap::see(value) {
            Seen::Str => self.string(slot, (value, vacancy)),
            Seen::Array if heap::is_of_array(value) => {
                self.array(slot, (value, vacancy), heap::elements(value).len(), element)
            }
            Seen::Buffer => {
                let (_, buffer) = crate::buffer::of(value).ok_or(Misfit::Value)?;
                if let Some(kind) = slot.kind {
                    self.tables.kinds[kind].buffers = true;
                }
                self.array(slot, (value, vacancy), buffer.len(), element)
            }
            Seen::Hash if self.class_index(heap::class_word(value)).is_some() => {
                if !self.tables.hashes.contains_key(&value) && !self.unknown.contains(&value) {
                    self.unknown.push(value);
                }
                self.object(slot, (value, vacancy), element)
            }
            // a Range in a launch parameter has no row
            Seen::Struct if slot.prims.intersects(Prims::RANGE) => Ok(Reached { entry: 0, known: false }),
            Seen::Struct | Seen::Number if self.class_index(heap::class_word(value)).is_some() => {
                self.object(slot, (value, vacancy), element)
            }
            // other values are checked when they are packed
            _ => Ok(Reached { entry: 0, known: false }),
        }
    }

    #[inline]
    pub(super) fn again(&self, slot: &SlotPlan, entry: u64, element: bool) -> Result<Reached> {
        if entry & STRING != 0 {
            // nobody writes to Strings, so nobody owns one
            let fits = slot.prims.intersects(Prims::STR);
            return if fits { Ok(Reached { entry: 0, known: false }) } else { Err(Misfit::Value) };
        }
        let tables = &*self.tables;
        let (upper, row) = ((entry & !ARRAY) as usize >> 32, entry as u32 as usize);
        let (fits, claimed) = if entry & ARRAY != 0 {
            (slot.kind == Some(upper), &tables.kinds[upper].claimed)
        } else {
            (slot.takes(upper - 1), &tables.classes[upper - 1].claimed)
        };
        let claimed = claimed.get(row).copied().unwrap_or(false);
        let is_range = || slot.prims.intersects(Prims::RANGE) && entry & ARRAY == 0;
        if !fits && is_range() && heap::see(tables.classes[upper - 1].objects[row]) == Seen::Struct {
            // in a launch parameter it has no row, though it may have one as what something else refers to
            return Ok(Reached { entry: 0, known: false });
        }
        if fits && !claimed && (element || !slot.owned) {
            Ok(Reached { entry, known: true })
        } else {
            Err(Misfit::Value)
        }
    }

    #[inline]
    fn object(&mut self, slot: &SlotPlan, (object, vacancy): (Raw, Vacancy), element: bool) -> Result<Reached> {
        let class = self.class_index(heap::class_word(object)).ok_or(Misfit::Value)? as usize;
        if !slot.takes(class) {
            return Err(Misfit::Value);
        }
        let rows = &mut self.tables.classes[class];
        let row = rows.objects.len();
        if row >= MOST_ROWS {
            return Err(Misfit::TooMany);
        }
        let entry = (class as u64 + 1) << 32 | row as u64;
        rows.objects.push(object);
        if self.plan.any_owned {
            rows.claimed.push(slot.owned && !element);
        }
        self.tables.map.fill(object, vacancy, entry);
        if self.plan.classes[class].must_not_be_frozen && heap::is_frozen(object) {
            return Err(Misfit::Value);
        }
        Ok(Reached { entry, known: false })
    }

    fn string(&mut self, slot: &SlotPlan, (string, vacancy): (Raw, Vacancy)) -> Result<Reached> {
        if !slot.prims.intersects(Prims::STR) || heap::class_word(string) != self.plan.string_class {
            return Err(Misfit::Value);
        }
        let bytes = heap::bytes(string);
        let encoding = heap::encoding(string).filter(|_| bytes.len() <= StrWord::MOST_BYTES).ok_or(Misfit::Value)?;
        let strings = &mut self.tables.strings;
        let len = bytes.len().max(1) as u64;
        if strings.strings.len() >= MOST_ROWS || strings.rows + len > u64::from(u32::MAX) {
            return Err(Misfit::TooMany);
        }
        let entry = STRING | strings.strings.len() as u64;
        strings.words.push(StrWord::new(strings.rows as u32, bytes.len(), encoding, false));
        strings.strings.push(string);
        strings.rows += len;
        self.tables.map.fill(string, vacancy, entry);
        Ok(Reached { entry: 0, known: false })
    }

    fn array(
        &mut self,
        slot: &SlotPlan,
        (array, vacancy): (Raw, Vacancy),
        len: usize,
        element: bool,
    ) -> Result<Reached> {
        let kind = slot.kind.ok_or(Misfit::Value)?;
        let rows = &mut self.tables.kinds[kind];
        let len = len as u64;
        let at = rows.arrays.len();
        if at >= MOST_ROWS || rows.rows + len.max(1) > u64::from(u32::MAX) {
            return Err(Misfit::TooMany);
        }
        let entry = ARRAY | (kind as u64) << 32 | at as u64;
        rows.arrays.push(array);
        rows.offsets.push(rows.rows as u32);
        rows.lengths.push(len as u32);
        rows.rows += len.max(1);
        if self.plan.any_owned {
            rows.claimed.push(slot.owned && !element);
        }
        self.tables.map.fill(array, vacancy, entry);
        if self.plan.kinds[kind].must_not_be_frozen && heap::is_frozen(array) {
            return Err(Misfit::Value);
        }
        Ok(Reached { entry, known: false })
    }

    /// Follows every slot that leads on, until nothing new turns up.
    fn settle(&mut self) -> Result<()> {
        let plan = self.plan;
        loop {
            let mut progress = false;
            for (at, class) in plan.classes.iter().enumerate() {
                let mut row = self.tables.classes[at].cursor;
                if !class.leads.is_empty() {
                    let followed = self.objects_beside(at, row)?;
                    // what workers came to may be of a class that was passed
                    progress |= followed > row;
                    row = followed;
                }
                while !class.leads.is_empty() && row < self.tables.classes[at].objects.len() {
                    row += self.objects(at, row)?;
                    progress = true;
                }
                self.tables.classes[at].cursor = row;
            }
            for (at, kind) in plan.kinds.iter().enumerate() {
                let Some(slot) = kind.slot.as_ref().filter(|s| s.leads_on()) else { continue };
                let first = self.tables.kinds[at].cursor;
                let mut row = self.arrays_beside(at, first, slot)?;
                progress |= row > first;
                while row < self.tables.kinds[at].arrays.len() {
                    row += self.arrays(at, row, slot)?;
                    progress = true;
                }
                self.tables.kinds[at].cursor = row;
            }
            if !progress {
                return Ok(());
            }
        }
    }

    /// Follows the slots of some of a class's objects, from a row on: of how many.
    fn objects(&mut self, at: usize, row: usize) -> Result<usize> {
        let class = &self.plan.classes[at];
        let mut some = [heap::NIL; AHEAD];
        let some = batch(&self.tables.classes[at].objects[row..], &mut some);
        let mut values = SmallVec::<[Raw; MOST]>::from_elem(heap::NIL, some.len() * class.leads.len());
        for (reader, values) in self.readers[at].iter_mut().zip(values.chunks_mut(some.len())) {
            reader.get_all(some, class.raw, values);
        }
        let mut entries = SmallVec::<[u64; MOST]>::from_elem(0, values.len());
        self.look(&values, &mut entries);
        for i in 0..some.len() {
            let values = values.chunks(some.len()).zip(entries.chunks(some.len()));
            for (field, (values, entries)) in class.leads.iter().zip(values) {
                self.follow_known(&class.fields[*field].slot, values[i], entries[i])?;
            }
        }
        Ok(some.len())
    }

    /// The same of the elements of a kind's arrays.
    fn arrays(&mut self, at: usize, row: usize, slot: &SlotPlan) -> Result<usize> {
        let mut some = [heap::NIL; AHEAD];
        let some = batch(&self.tables.kinds[at].arrays[row..], &mut some);
        // several that lead to few, or parts of one
        let (mut values, mut count) = ([heap::NIL; MOST], 0);
        for array in some {
            for elements in self.elements_of(at, *array).chunks(AHEAD) {
                if count + elements.len() > MOST {
                    self.follow_all(slot, &values[..count])?;
                    count = 0;
                }
                values[count..count + elements.len()].copy_from_slice(elements);
                count += elements.len();
            }
        }
        self.follow_all(slot, &values[..count])?;
        Ok(some.len())
    }

    fn follow_all(&mut self, slot: &SlotPlan, values: &[Raw]) -> Result<()> {
        let mut entries = [0; MOST];
        self.look(values, &mut entries);
        values.iter().zip(entries).try_for_each(|(value, entry)| self.follow_known(slot, *value, entry))
    }

    /// Tells what is known of each of some values, and asks for the memory of those that are not.
    #[inline]
    fn look(&self, values: &[Raw], entries: &mut [u64]) {
        let known = self.tables.map.each(values, |i, entry| {
            if entry == 0 && !heap::is_immediate(values[i]) {
                heap::prefetch(values[i]);
            }
            entries[i] = entry;
            Ok::<_, Infallible>(())
        });
        let Ok(()) = known;
    }

    /// Notes what a slot holds, where that is an object or array that was not known when `entry` was read.
    #[inline]
    fn follow_known(&mut self, slot: &SlotPlan, value: Raw, entry: u64) -> Result<()> {
        if entry != 0 { self.again(slot, entry, false) } else { self.follow(slot, value, false) }.map(drop)
    }

    /// What an array of a kind leads to: a buffer holds numbers, which lead nowhere.
    #[inline]
    fn elements_of<'b>(&self, kind: usize, array: Raw) -> &'b [Raw] {
        if self.tables.kinds[kind].buffers && heap::see(array) != Seen::Array { &[] } else { heap::elements(array) }
    }

    /// Asks for an object, and for what is known of it.
    #[inline]
    fn ask_for(&self, value: Raw) {
        if !heap::is_immediate(value) {
            heap::prefetch(value);
            self.tables.map.prefetch(value);
        }
    }
}

/// The first of these rows, a batch of them; asks for the memory of the next ones.
#[inline]
fn batch<'a>(rows: &[Raw], some: &'a mut [Raw; AHEAD]) -> &'a [Raw] {
    let some = &mut some[..rows.len().min(AHEAD)];
    some.copy_from_slice(&rows[..some.len()]);
    rows.iter().skip(2 * AHEAD).take(AHEAD).for_each(|row| heap::prefetch(*row));
    rows.iter().skip(AHEAD).take(AHEAD).for_each(|row| heap::prefetch_body(*row));
    some
}
