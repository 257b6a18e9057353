//! The walk over reachable objects.
//!
//! Nothing recurses: each table only grows at its end, and a cursor per table says how far its rows were followed. Objects are numbered in
//! the order of a breadth-first search, whoever reads them: from elements, and then from roots, but where a list is taken to have its objects in order
//! ([`Plan::roots_first`]).

use super::{ARRAY, ARRAY_CLASS, CHUNK, MOST_ROWS, Misfit, NO_CLASS, Result, STRING, Tables};
use crate::heap::{self, AHEAD, FieldReader, Raw, Seen};
use crate::identity::{Found, TOGETHER};
use crate::plan::{Plan, SlotPlan};
use ikra_core::memory::pages::large_pages;
use ikra_core::types::{Prims, StrWord};
use smallvec::SmallVec;

/// Objects, or Arrays, that are followed together.
const BATCH: usize = 2 * AHEAD;

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

impl Reached {
    const NOTHING: Self = Self { entry: 0, known: false };
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
        let (mut rows, mut classes) = (vec![0u32; base.len()], vec![0u16; base.len()]);
        large_pages(rows.as_ptr() as usize, size_of_val(&rows[..]));
        large_pages(classes.as_ptr() as usize, size_of_val(&classes[..]));
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
        let grouped = self.plan.grouped;
        let mut places = rows.iter_mut().zip(classes);
        self.follow_all(slot, values, true, |Reached { entry, known }| {
            if known && !grouped {
                return Err(Misfit::Value);
            }
            let (row, class) = places.next().expect("as many as values");
            *row = entry as u32;
            *class = match entry {
                0 => NO_CLASS,
                entry if entry & ARRAY != 0 => ARRAY_CLASS,
                entry => (entry >> 32) as u16 - 1,
            };
            Ok(())
        })?;
        // While they are in the cache; but an element that others lead to has to be known as one first.
        if self.plan.linked { Ok(()) } else { self.settle() }
    }

    #[inline]
    fn class_index(&mut self, class: Raw) -> Option<u32> {
        if self.last.0 != class {
            self.last = (class, *self.plan.class_index.get(&class)?);
        }
        Some(self.last.1)
    }

    /// Notes what a slot holds, where that is an object or array.
    pub(super) fn follow(&mut self, slot: &SlotPlan, value: Raw, element: bool) -> Result<Reached> {
        if heap::is_immediate(value) {
            return Ok(Reached::NOTHING);
        }
        let found = self.tables.map.look(value);
        // what is known is not read again
        if found.word != 0 { self.again(slot, found.word, element) } else { self.fresh(slot, (value, found), element) }
    }

    /// The same of many values that a slot holds; `each` hears of every one, in their order. What is known of all of them, and the memory of those of which nothing
    /// is, is asked for before the first is followed.
    #[inline]
    pub(super) fn follow_all(
        &mut self,
        slot: &SlotPlan,
        values: &[Raw],
        element: bool,
        mut each: impl FnMut(Reached) -> Result<()>,
    ) -> Result<()> {
        let mut found = [Found::NOTHING; TOGETHER];
        for values in values.chunks(TOGETHER) {
            self.tables.map.look_all(values, &mut found);
            let version = self.tables.map.version();
            for (value, found) in values.iter().zip(&found) {
                each(self.follow_found(slot, *value, *found, version, element)?)?;
            }
        }
        Ok(())
    }

    /// The same of as many as are looked up together, each with its slot.
    pub(super) fn follow_some<'s>(&mut self, values: &[Raw], slot: impl Fn(usize) -> &'s SlotPlan) -> Result<()> {
        let mut found = [Found::NOTHING; TOGETHER];
        self.tables.map.look_all(values, &mut found);
        let version = self.tables.map.version();
        for (i, (value, found)) in values.iter().zip(found).enumerate() {
            self.follow_found(slot(i), *value, found, version, false)?;
        }
        Ok(())
    }

    /// Notes what a slot holds, where that is an object or array, of which this was found when the map had this version.
    #[inline(always)]
    fn follow_found(
        &mut self,
        slot: &SlotPlan,
        value: Raw,
        found: Found,
        version: u32,
        element: bool,
    ) -> Result<Reached> {
        if found.word != 0 {
            return self.again(slot, found.word, element);
        }
        if heap::is_immediate(value) {
            return Ok(Reached::NOTHING);
        }
        let found = self.tables.map.look_again(value, found, version);
        if found.word != 0 { self.again(slot, found.word, element) } else { self.fresh(slot, (value, found), element) }
    }

    /// Notes an object or array of which nothing is known.
    #[inline(always)]
    fn fresh(&mut self, slot: &SlotPlan, (value, found): (Raw, Found), element: bool) -> Result<Reached> {
        if heap::is_object(value) {
            return self.object(slot, (value, found), element);
        }
        if heap::is_plain_array(value) {
            return self.array(slot, (value, found), heap::elements(value).len(), element);
        }
        self.unusual(slot, (value, found), element)
    }

    /// The same of what is neither an ordinary object nor a plain Array.
    #[cold]
    fn unusual(&mut self, slot: &SlotPlan, (value, found): (Raw, Found), element: bool) -> Result<Reached> {
        match heap::see(value) {
            Seen::Str => self.string(slot, (value, found)),
            Seen::Buffer => {
                let (_, buffer) = crate::buffer::of(value).ok_or(Misfit::Value)?;
                if let Some(kind) = slot.kind {
                    self.tables.kinds[kind].buffers = true;
                }
                self.array(slot, (value, found), buffer.len(), element)
            }
            Seen::Hash if self.class_index(heap::class_word(value)).is_some() => {
                if !self.tables.hashes.contains_key(&value) && !self.unknown.contains(&value) {
                    self.unknown.push(value);
                }
                self.object(slot, (value, found), element)
            }
            // a Range in a launch parameter has no row
            Seen::Struct if slot.prims.intersects(Prims::RANGE) => Ok(Reached::NOTHING),
            Seen::Struct | Seen::Number if self.class_index(heap::class_word(value)).is_some() => {
                self.object(slot, (value, found), element)
            }
            // other values are checked when they are packed
            _ => Ok(Reached::NOTHING),
        }
    }

    /// Sees to it that what is known may be in a slot, too.
    #[inline(always)]
    pub(super) fn again(&self, slot: &SlotPlan, entry: u64, element: bool) -> Result<Reached> {
        // arrays and Strings have bits that no class has
        let class = (entry >> 32) as usize - 1;
        if slot.takes(class) && !self.plan.classes[class].ownable {
            return Ok(Reached { entry, known: true });
        }
        self.again_slowly(slot, entry, element)
    }

    #[cold]
    fn again_slowly(&self, slot: &SlotPlan, entry: u64, element: bool) -> Result<Reached> {
        if entry & STRING != 0 {
            // nobody writes to Strings, so nobody owns one
            let fits = slot.prims.intersects(Prims::STR);
            return if fits { Ok(Reached::NOTHING) } else { Err(Misfit::Value) };
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
            return Ok(Reached::NOTHING);
        }
        if fits && !claimed && (element || !slot.owned) {
            Ok(Reached { entry, known: true })
        } else {
            Err(Misfit::Value)
        }
    }

    #[inline(always)]
    fn object(&mut self, slot: &SlotPlan, (object, found): (Raw, Found), element: bool) -> Result<Reached> {
        let class = self.class_index(heap::class_word(object)).map_or(usize::MAX, |class| class as usize);
        if !slot.takes(class) {
            return Err(Misfit::Value);
        }
        let rows = &mut self.tables.classes[class];
        let row = rows.objects.len();
        if row >= MOST_ROWS {
            return Err(Misfit::TooMany);
        }
        let entry = (class as u64 + 1) << 32 | row as u64;
        push(&mut rows.objects, object);
        let plan = &self.plan.classes[class];
        if plan.ownable {
            rows.claimed.push(slot.owned && !element);
        }
        self.tables.map.fill(object, found, entry);
        if plan.must_not_be_frozen && heap::is_frozen(object) {
            return Err(Misfit::Value);
        }
        Ok(Reached { entry, known: false })
    }

    fn string(&mut self, slot: &SlotPlan, (string, found): (Raw, Found)) -> Result<Reached> {
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
        self.tables.map.fill(string, found, entry);
        Ok(Reached::NOTHING)
    }

    #[inline(always)]
    fn array(&mut self, slot: &SlotPlan, (array, found): (Raw, Found), len: usize, element: bool) -> Result<Reached> {
        let kind = slot.kind.ok_or(Misfit::Value)?;
        let rows = &mut self.tables.kinds[kind];
        let len = len as u64;
        let at = rows.arrays.len();
        if at >= MOST_ROWS || rows.rows + len.max(1) > u64::from(u32::MAX) {
            return Err(Misfit::TooMany);
        }
        let entry = ARRAY | (kind as u64) << 32 | at as u64;
        push(&mut rows.arrays, array);
        push(&mut rows.offsets, rows.rows as u32);
        push(&mut rows.lengths, len as u32);
        rows.rows += len.max(1);
        let plan = &self.plan.kinds[kind];
        if plan.ownable {
            rows.claimed.push(slot.owned && !element);
        }
        self.tables.map.fill(array, found, entry);
        if plan.must_not_be_frozen && heap::is_frozen(array) {
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
    pub(super) fn objects(&mut self, at: usize, row: usize) -> Result<usize> {
        let class = &self.plan.classes[at];
        let mut some = [heap::NIL; BATCH];
        let some = batch(&self.tables.classes[at].objects[row..], &mut some);
        if let ([reader], [field]) = (&mut self.readers[at][..], &class.leads[..]) {
            let mut values = [heap::NIL; BATCH];
            let values = &mut values[..some.len()];
            reader.get_all(some, class.raw, values);
            self.follow_all(&class.fields[*field].slot, values, false, |_| Ok(()))?;
            return Ok(some.len());
        }
        let mut values = SmallVec::<[Raw; 4 * BATCH]>::from_elem(heap::NIL, some.len() * class.leads.len());
        let mut found = SmallVec::<[Found; 4 * BATCH]>::from_elem(Found::NOTHING, values.len());
        for (reader, values) in self.readers[at].iter_mut().zip(values.chunks_mut(some.len())) {
            reader.get_all(some, class.raw, values);
        }
        for (values, found) in values.chunks(TOGETHER).zip(found.chunks_mut(TOGETHER)) {
            self.tables.map.look_all(values, found);
        }
        let version = self.tables.map.version();
        // one object after the other, as a search that looks at one at a time
        for i in 0..some.len() {
            for (lead, field) in class.leads.iter().enumerate() {
                let at = lead * some.len() + i;
                self.follow_found(&class.fields[*field].slot, values[at], found[at], version, false)?;
            }
        }
        Ok(some.len())
    }

    /// The same of the elements of a kind's arrays.
    pub(super) fn arrays(&mut self, at: usize, row: usize, slot: &SlotPlan) -> Result<usize> {
        let mut some = [heap::NIL; BATCH];
        let some = batch(&self.tables.kinds[at].arrays[row..], &mut some);
        // several that lead to few, or parts of one
        let (mut values, mut count) = ([heap::NIL; TOGETHER], 0);
        for array in some {
            for element in self.elements_of(at, *array) {
                if count == TOGETHER {
                    self.follow_all(slot, &values, false, |_| Ok(()))?;
                    count = 0;
                }
                values[count] = *element;
                count += 1;
            }
        }
        self.follow_all(slot, &values[..count], false, |_| Ok(()))?;
        Ok(some.len())
    }

    /// What an array of a kind leads to: a buffer holds numbers, which lead nowhere.
    #[inline]
    fn elements_of<'b>(&self, kind: usize, array: Raw) -> &'b [Raw] {
        if self.tables.kinds[kind].buffers && heap::see(array) != Seen::Array { &[] } else { heap::elements(array) }
    }
}

/// Puts a row at the end of a table, of which nobody knows how long it gets.
#[inline]
fn push<T>(table: &mut Vec<T>, row: T) {
    if table.len() == table.capacity() {
        widen(table);
    }
    table.push(row);
}

#[cold]
fn widen<T>(table: &mut Vec<T>) {
    // what is never touched costs addresses alone
    table.reserve(table.len().max(BATCH));
    let spare = table.spare_capacity_mut();
    large_pages(spare.as_ptr() as usize, size_of_val(spare));
}

/// The first of these rows, a batch of them; asks for the memory of the next ones.
#[inline]
fn batch<'a>(rows: &[Raw], some: &'a mut [Raw; BATCH]) -> &'a [Raw] {
    let some = &mut some[..rows.len().min(BATCH)];
    some.copy_from_slice(&rows[..some.len()]);
    rows.iter().skip(2 * BATCH).take(BATCH).for_each(|row| heap::prefetch(*row));
    rows.iter().skip(BATCH).take(BATCH).for_each(|row| heap::prefetch_body(*row));
    some
}
