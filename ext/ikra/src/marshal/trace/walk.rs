//! The walk over reachable objects.
//!
//! Nothing recurses: each table only grows at its end, and a cursor per table says how far its rows were followed.
//! Objects are numbered in the order of a breadth-first search, whichever thread reads them. The search starts from
//! elements, and then from roots. Where a list is assumed to have its objects in order, roots come first
//! ([`Plan::roots_first`]).

use super::reservations::New;
use super::{ARRAY, ARRAY_CLASS, CHUNK, GuardFailure, MAX_ROWS, NO_CLASS, Result, STRING, Strings, TEXT_CLASS, Tables};
use crate::marshal::plan::{Plan, Rows, SlotPlan};
use crate::ruby::gvl;
use crate::ruby::heap::{self, AHEAD, FieldReader, Raw, Seen};
use crate::ruby::identity::{Found, Known, TOGETHER};
use crate::ruby::workers;
use ikra_core::memory::room;
use ikra_core::memory::table::{Row, Table};
use ikra_core::types::{Prims, StrWord};
use parking_lot::Mutex;
use smallvec::SmallVec;

/// Entries of the cache of class words.
pub(super) const RECENT: usize = 16;

/// The entry of a class word in the cache.
#[inline]
fn recent(class: Raw) -> usize {
    class.wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (usize::BITS - RECENT.trailing_zeros())
}

/// Objects, or Arrays, that are followed together.
const BATCH: usize = 2 * AHEAD;

pub(super) struct Tracer<'a> {
    pub plan: &'a Plan,
    pub tables: &'a mut Tables,
    /// By class, for each slot that leads to other objects.
    pub readers: Vec<Vec<FieldReader>>,
    /// Hashes that were not laid out yet.
    pub unknown: &'a mut Vec<Raw>,
    /// A cache of class words and their indices.
    pub recent: [(Raw, usize); RECENT],
    /// The expected rows of a table that is not short: as many as there are elements.
    pub expected: usize,
    /// Lists that workers used before.
    pub spare: Mutex<Vec<Vec<New>>>,
}

/// The value that was found in a slot.
pub(super) struct Reached {
    /// As in the identity map. 0 for a value that is neither object nor array nor String.
    entry: u64,
    /// Whether it is an object or array that was reached before.
    known: bool,
}

impl Reached {
    const NOTHING: Self = Self { entry: 0, known: false };
}

/// The values that a slot usually holds.
struct Usual {
    rows: Rows,
    /// Whether known values may be in the slot, too.
    shared: bool,
    /// The entry of the next new value.
    first: u64,
    what: heap::What,
}

impl Tracer<'_> {
    /// Walks from the base array and the roots.
    ///
    /// # Errors
    /// As [`Tables::trace`].
    pub fn walk(&mut self, base: Option<&[Raw]>, roots: &[Raw]) -> Result<()> {
        let plan = self.plan;
        if plan.roots_first {
            // The order of a list's objects must not depend on elements that refer to them.
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
        if self.unknown.is_empty() { Ok(()) } else { Err(GuardFailure::Hashes) }
    }

    fn roots(&mut self, roots: &[Raw]) -> Result<()> {
        let mut roots = self.plan.roots.iter().zip(roots);
        roots.try_for_each(|(slot, root)| self.follow(slot, *root, false).map(drop))
    }

    fn elements(&mut self, slot: &SlotPlan, base: &[Raw]) -> Result<()> {
        let (mut rows, mut classes) = (Table::unset(base.len()), Table::unset(base.len()));
        // What the first element leads to is numbered from there outwards, so that neighbours get near rows. From many
        // elements at once, the wavefronts would interleave, and each step to a neighbour would go to another cache
        // line.
        let (first, rest) = base.split_at(base.len().min(1));
        let (first_row, rest_rows) = rows.split_at_mut(first.len());
        let (first_class, rest_classes) = classes.split_at_mut(first.len());
        self.chunk(slot, first, first_row, first_class)?;
        if !self.elements_beside(slot, rest, rest_rows, rest_classes)? {
            let chunks = rest.chunks(CHUNK).zip(rest_rows.chunks_mut(CHUNK)).zip(rest_classes.chunks_mut(CHUNK));
            for ((values, rows), classes) in chunks {
                gvl::poll();
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
        self.follow_all(&[slot], values, true, |Reached { entry, known }| {
            if known && !grouped {
                return Err(GuardFailure::Value);
            }
            let (row, class) = places.next().expect("as many as values");
            *row = entry as u32;
            *class = match entry {
                0 => NO_CLASS,
                entry if entry & ARRAY != 0 => ARRAY_CLASS,
                entry if entry & STRING != 0 => TEXT_CLASS,
                entry => (entry >> 32) as u16 - 1,
            };
            Ok(())
        })?;
        // Follows them while they are in the cache. But an element that others lead to must first be known as an
        // element.
        if self.plan.linked { Ok(()) } else { self.settle() }
    }

    /// The index of a class word.
    #[inline]
    fn class_index(&mut self, class: Raw) -> Option<usize> {
        let recent = &mut self.recent[recent(class)];
        if recent.0 != class {
            *recent = (class, *self.plan.class_index.get(&class)? as usize);
        }
        Some(recent.1)
    }

    /// Notes the value of a slot, where that is an object or array.
    fn follow(&mut self, slot: &SlotPlan, value: Raw, element: bool) -> Result<Reached> {
        if heap::is_immediate(value) {
            return Ok(Reached::NOTHING);
        }
        let (word, place) = self.tables.map.look(value);
        if word != 0 {
            // Known objects are not read again.
            return self.check_slot(slot, word, element);
        }
        let entry = self.fresh(slot, value, element)?;
        if entry != 0 {
            self.tables.map.fill(value, place, entry);
        }
        Ok(Reached { entry, known: false })
    }

    /// The same for many values, which are in these slots in turn. `each` gets every result, in order. All words, and
    /// all objects without one, are prefetched before the first value is followed.
    #[inline]
    pub(super) fn follow_all(
        &mut self,
        slots: &[&SlotPlan],
        values: &[Raw],
        element: bool,
        mut each: impl FnMut(Reached) -> Result<()>,
    ) -> Result<()> {
        let [slot, others @ ..] = slots else { return Ok(()) };
        let alike = others.iter().all(|other| slot.is_like(other));
        let mut turns = slots.iter().cycle();
        let mut found = [Found::default(); TOGETHER];
        for values in values.chunks(TOGETHER) {
            let near = if alike { self.follow_near(slot, values, element, &mut each)? } else { 0 };
            let values = &values[near..];
            if values.is_empty() {
                continue;
            }
            self.tables.map.look_all(values, &mut found);
            self.tables.map.ask_for_unknown(values, &found);
            let mut at = 0;
            while at < values.len() {
                if alike {
                    at += self.follow_usual(slot, (&values[at..], &found[at..]), element, &mut each)?;
                }
                let Some(value) = values.get(at) else { break };
                let slot = if alike { slot } else { turns.next().expect("they go round") };
                each(self.follow(slot, *value, element)?)?;
                at += 1;
            }
        }
        Ok(())
    }

    /// Follows values of one slot that lie near each other, as long as they are usual: known ones first, and then new
    /// ones. Gives how many.
    #[inline]
    fn follow_near(
        &mut self,
        slot: &SlotPlan,
        values: &[Raw],
        element: bool,
        each: &mut impl FnMut(Reached) -> Result<()>,
    ) -> Result<usize> {
        let Some(Usual { rows, shared, first, what }) = self.usual(slot) else { return Ok(0) };
        let Some(near) = self.tables.map.near(values) else { return Ok(0) };
        let mut known = 0;
        if shared {
            for entry in near.known((first >> 32) as u32) {
                each(Reached { entry, known: true })?;
                known += 1;
            }
        }
        values[known..].iter().for_each(|value| heap::prefetch(*value));
        let count = near.fill(known, first, |at| what.is(values[at]));
        (first..).take(count).try_for_each(|entry| each(Reached { entry, known: false }))?;
        self.add(slot, rows, &values[known..known + count], element)?;
        Ok(known + count)
    }

    /// Follows values of one slot as long as they are usual: new ones, and known ones. Gives how many.
    #[inline]
    fn follow_usual(
        &mut self,
        slot: &SlotPlan,
        (values, found): (&[Raw], &[Found]),
        element: bool,
        each: &mut impl FnMut(Reached) -> Result<()>,
    ) -> Result<usize> {
        let Some(Usual { rows, shared, first, what }) = self.usual(slot) else {
            return Ok(self.follow_mixed(slot, (values, found), element, each));
        };
        let (mut fresh, mut count) = ([heap::NIL; TOGETHER], 0);
        let followed = self.tables.map.fill_while(values, found, |value, known| {
            let reached = match known {
                Known::Immediate => Reached::NOTHING,
                Known::Word(entry) if entry >> 32 == first >> 32 && shared => Reached { entry, known: true },
                Known::Nothing if what.is(value) => {
                    *fresh.get_mut(count)? = value;
                    count += 1;
                    Reached { entry: first + count as u64 - 1, known: false }
                }
                _ => return None,
            };
            let entry = reached.entry;
            each(reached).ok().map(|()| entry)
        });
        self.add(slot, rows, &fresh[..count], element)?;
        Ok(followed)
    }

    /// Gives rows to new usual values of a slot.
    #[inline]
    fn add(&mut self, slot: &SlotPlan, rows: Rows, fresh: &[Raw], element: bool) -> Result<()> {
        let claimed = slot.owned && !element;
        match rows {
            Rows::Class(class) => self.add_objects(class, fresh, claimed),
            Rows::Kind(kind) => self.add_arrays(kind, fresh, claimed, |array| heap::elements(array).len()),
            // The values of a slot are objects or arrays.
            Rows::Bytes => Ok(()),
        }
    }

    /// The usual values of a slot that holds only objects of one class, or Arrays.
    #[inline]
    fn usual(&self, slot: &SlotPlan) -> Option<Usual> {
        let (rows, first, shared, what) = match (slot.kind, slot.sole_class) {
            (None, Some(class)) if !slot.prims.intersects(Prims::RANGE) => {
                let (plan, objects) = (&self.plan.classes[class], &self.tables.classes[class].objects);
                if plan.laid_out {
                    return None;
                }
                let what = heap::What::like(*objects.first()?, plan.must_not_be_frozen)?;
                (Rows::Class(class), (class as u64 + 1) << 32 | objects.len() as u64, !plan.ownable, what)
            }
            (Some(kind), None) if slot.classes.is_empty() => {
                let plan = &self.plan.kinds[kind];
                let what = heap::What::plain_array(plan.must_not_be_frozen);
                let rows = self.tables.kinds[kind].arrays.len();
                (Rows::Kind(kind), ARRAY | (kind as u64) << 32 | rows as u64, !plan.ownable, what)
            }
            _ => return None,
        };
        // With fewer rows left they are added one by one, until adding fails.
        ((first as u32 as usize) < MAX_ROWS - TOGETHER).then_some(Usual { rows, shared, first, what })
    }

    /// As [`Tracer::follow_usual`], for objects of several classes.
    #[inline]
    fn follow_mixed(
        &mut self,
        slot: &SlotPlan,
        (values, found): (&[Raw], &[Found]),
        element: bool,
        each: &mut impl FnMut(Reached) -> Result<()>,
    ) -> usize {
        let (plans, known_classes, expected) = (&self.plan.classes[..], &self.recent, self.expected);
        // A Range in a launch parameter has no row.
        let structs = !slot.prims.intersects(Prims::RANGE);
        let (texts, text_class) = (slot.prims.intersects(Prims::STR), self.plan.string_class);
        let Tables { map, classes, strings, .. } = &mut *self.tables;
        map.fill_while(values, found, |value, known| {
            let reached = match known {
                Known::Immediate => Reached::NOTHING,
                Known::Word(entry) if texts && entry & STRING != 0 => Reached { entry, known: false },
                Known::Nothing if texts && heap::is_string(value, text_class) => {
                    Reached { entry: strings.add(value).ok()?, known: false }
                }
                Known::Word(entry) => {
                    // Arrays and Strings have bits that no class index has.
                    let class = (entry >> 32) as usize - 1;
                    (slot.takes(class) && !plans[class].ownable).then_some(Reached { entry, known: true })?
                }
                Known::Nothing => {
                    let word = heap::class_word(value);
                    let (known, class) = known_classes[recent(word)];
                    let has_fields = heap::is_object(value)
                        || structs && heap::is_struct(value)
                        || heap::is_hash(value) && plans.get(class).is_some_and(|plan| !plan.laid_out);
                    if known != word || !slot.takes(class) || !has_fields {
                        return None;
                    }
                    let (plan, rows) = (&plans[class], &mut classes[class]);
                    let row = rows.objects.len();
                    if row >= MAX_ROWS || plan.must_not_be_frozen && heap::is_frozen(value) {
                        return None;
                    }
                    add(&mut rows.objects, &[value], expected);
                    if plan.ownable {
                        room::push(&mut rows.claimed, slot.owned && !element);
                    }
                    Reached { entry: (class as u64 + 1) << 32 | row as u64, known: false }
                }
            };
            let entry = reached.entry;
            each(reached).ok().map(|()| entry)
        })
    }

    /// Notes an unknown object or array, and gives its entry.
    #[inline]
    fn fresh(&mut self, slot: &SlotPlan, value: Raw, element: bool) -> Result<u64> {
        if heap::is_object(value) {
            return self.object(slot, value, element);
        }
        if heap::is_plain_array(value) {
            return self.array(slot, value, heap::elements(value).len(), element);
        }
        match heap::see(value) {
            Seen::Str => self.string(slot, value),
            Seen::Buffer => {
                let (_, buffer) = crate::buffers::buffer::of(value).ok_or(GuardFailure::Value)?;
                if let Some(kind) = slot.kind {
                    self.tables.kinds[kind].buffers = true;
                }
                self.array(slot, value, buffer.len(), element)
            }
            Seen::Hash if let Some(class) = self.class_index(heap::class_word(value)) => {
                if self.plan.classes[class].laid_out && !self.tables.hashes.contains_key(&value) {
                    room::push(self.unknown, value);
                }
                self.object(slot, value, element)
            }
            // A Range in a launch parameter has no row.
            Seen::Struct if slot.prims.intersects(Prims::RANGE) => Ok(0),
            Seen::Struct | Seen::Number if self.class_index(heap::class_word(value)).is_some() => {
                self.object(slot, value, element)
            }
            // Other values are checked when they are packed.
            _ => Ok(0),
        }
    }

    /// Checks that a known value may be in this slot, too.
    #[inline(always)]
    pub(super) fn check_slot(&self, slot: &SlotPlan, entry: u64, element: bool) -> Result<Reached> {
        // Arrays and Strings have bits that no class index has.
        let class = (entry >> 32) as usize - 1;
        if slot.takes(class) && !self.plan.classes[class].ownable {
            return Ok(Reached { entry, known: true });
        }
        self.check_slot_slowly(slot, entry, element)
    }

    #[cold]
    fn check_slot_slowly(&self, slot: &SlotPlan, entry: u64, element: bool) -> Result<Reached> {
        if entry & STRING != 0 {
            // Programs do not write Strings, so no slot owns one.
            let fits = slot.prims.intersects(Prims::STR);
            return if fits { Ok(Reached { entry, known: false }) } else { Err(GuardFailure::Value) };
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
            // A Range in a launch parameter has no row, even where it has one because something else refers to it.
            return Ok(Reached::NOTHING);
        }
        if fits && !claimed && (element || !slot.owned) {
            Ok(Reached { entry, known: true })
        } else {
            Err(GuardFailure::Value)
        }
    }

    fn object(&mut self, slot: &SlotPlan, object: Raw, element: bool) -> Result<u64> {
        let class = self.class_index(heap::class_word(object)).ok_or(GuardFailure::Value)?;
        if !slot.takes(class) || self.plan.classes[class].must_not_be_frozen && heap::is_frozen(object) {
            return Err(GuardFailure::Value);
        }
        let row = self.tables.classes[class].objects.len();
        self.add_objects(class, &[object], slot.owned && !element)?;
        Ok((class as u64 + 1) << 32 | row as u64)
    }

    /// Gives rows to objects of a class.
    #[inline]
    fn add_objects(&mut self, class: usize, objects: &[Raw], claimed: bool) -> Result<()> {
        let rows = &mut self.tables.classes[class];
        let len = rows.objects.len() + objects.len();
        if len > MAX_ROWS {
            return Err(GuardFailure::TooMany);
        }
        if self.plan.classes[class].ownable {
            room::resize(&mut rows.claimed, len, claimed);
        }
        add(&mut rows.objects, objects, self.expected);
        Ok(())
    }

    fn string(&mut self, slot: &SlotPlan, string: Raw) -> Result<u64> {
        if !slot.prims.intersects(Prims::STR) || heap::class_word(string) != self.plan.string_class {
            return Err(GuardFailure::Value);
        }
        self.tables.strings.add(string)
    }

    fn array(&mut self, slot: &SlotPlan, array: Raw, len: usize, element: bool) -> Result<u64> {
        let kind = slot.kind.ok_or(GuardFailure::Value)?;
        if self.plan.kinds[kind].must_not_be_frozen && heap::is_frozen(array) {
            return Err(GuardFailure::Value);
        }
        let at = self.tables.kinds[kind].arrays.len();
        self.add_arrays(kind, &[array], slot.owned && !element, |_| len)?;
        Ok(ARRAY | (kind as u64) << 32 | at as u64)
    }

    /// Gives rows to arrays of a kind.
    #[inline]
    fn add_arrays(&mut self, kind: usize, arrays: &[Raw], claimed: bool, len: impl Fn(Raw) -> usize) -> Result<()> {
        let rows = &mut self.tables.kinds[kind];
        let at = rows.arrays.len();
        add(&mut rows.arrays, arrays, self.expected);
        make_room(&mut rows.offsets, arrays.len(), self.expected);
        make_room(&mut rows.lengths, arrays.len(), self.expected);
        // The union of the bits of all lengths, which is at least as large as the greatest.
        let mut bits = 0;
        let lengths = rows.lengths.add(arrays.len());
        for (length, array) in lengths.iter_mut().zip(arrays) {
            let len = len(*array);
            bits |= len;
            *length = len as u32;
        }
        let mut next = rows.rows;
        for (offset, len) in rows.offsets.add(arrays.len()).iter_mut().zip(lengths) {
            *offset = next as u32;
            next += u64::from(*len).max(1);
        }
        rows.rows = next;
        if self.plan.kinds[kind].ownable {
            room::resize(&mut rows.claimed, at + arrays.len(), claimed);
        }
        let many = rows.arrays.len() > MAX_ROWS || next > u64::from(u32::MAX) || bits > u32::MAX as usize;
        if many { Err(GuardFailure::TooMany) } else { Ok(()) }
    }

    /// Follows every slot that leads to other objects, until nothing new is found.
    fn settle(&mut self) -> Result<()> {
        let plan = self.plan;
        loop {
            let mut progress = false;
            for (at, class) in plan.classes.iter().enumerate() {
                let mut row = self.tables.classes[at].cursor;
                if !class.leads.is_empty() {
                    let followed = self.objects_beside(at, row)?;
                    // Workers may have met objects of a class that was passed already.
                    progress |= followed > row;
                    row = followed;
                }
                if !class.leads.is_empty() {
                    let followed = self.objects_alone(at, row, usize::MAX)?;
                    progress |= followed > row;
                    row = followed;
                }
                self.tables.classes[at].cursor = row;
            }
            for (at, kind) in plan.kinds.iter().enumerate() {
                let Some(slot) = kind.slot.as_ref().filter(|s| s.leads_on()) else { continue };
                let first = self.tables.kinds[at].cursor;
                let mut row = self.arrays_beside(at, first, slot)?;
                progress |= row > first;
                while row < self.tables.kinds[at].arrays.len() {
                    gvl::poll();
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

    /// Follows the slots of a class's objects from one row on, to another or the last, and passes known Arrays that
    /// these lead to. Gives the next row.
    pub(super) fn objects_alone(&mut self, at: usize, mut row: usize, end: usize) -> Result<usize> {
        let mut lead_to_known = true;
        while row < end.min(self.tables.classes[at].objects.len()) {
            gvl::poll();
            row += self.objects(at, row)?;
            lead_to_known = lead_to_known && self.known_arrays();
        }
        Ok(row)
    }

    /// Follows the slots of some of a class's objects, from a row on. Gives how many.
    fn objects(&mut self, at: usize, row: usize) -> Result<usize> {
        let class = &self.plan.classes[at];
        let mut some = [heap::NIL; BATCH];
        let some = batch(&self.tables.classes[at].objects[row..], &mut some);
        if class.apart {
            let mut values = [heap::NIL; BATCH];
            let values = &mut values[..some.len()];
            for (lead, field) in class.leads.iter().enumerate() {
                self.readers[at][lead].get_all(some, class.raw, values);
                self.follow_all(&[&class.fields[*field].slot], values, false, |_| Ok(()))?;
            }
            return Ok(some.len());
        }
        let mut values = SmallVec::<[Raw; 4 * BATCH]>::from_elem(heap::NIL, some.len() * class.leads.len());
        for (reader, values) in self.readers[at].iter_mut().zip(values.chunks_mut(some.len())) {
            reader.get_all(some, class.raw, values);
        }
        // One object after the other, as in a search that reads one at a time.
        let ordered: SmallVec<[Raw; 4 * BATCH]> =
            (0..some.len()).flat_map(|i| values[i..].iter().step_by(some.len())).copied().collect();
        let slots: SmallVec<[&SlotPlan; 8]> = class.leads.iter().map(|field| &class.fields[*field].slot).collect();
        self.follow_all(&slots, &ordered, false, |_| Ok(()))?;
        Ok(some.len())
    }

    /// The same for the elements of a kind's arrays.
    pub(super) fn arrays(&mut self, at: usize, row: usize, slot: &SlotPlan) -> Result<usize> {
        let mut some = [heap::NIL; BATCH];
        let some = batch(&self.tables.kinds[at].arrays[row..], &mut some);
        // No later row turns these arrays into buffers.
        let buffers = self.tables.kinds[at].buffers;
        // Several short arrays, or parts of one.
        let (mut values, mut count) = ([heap::NIL; TOGETHER], 0);
        for array in some {
            for element in elements_of(*array, buffers) {
                if count == TOGETHER {
                    self.follow_elements(slot, &values)?;
                    count = 0;
                }
                values[count] = *element;
                count += 1;
            }
        }
        self.follow_elements(slot, &values[..count])?;
        Ok(some.len())
    }

    /// Passes the next short arrays of each kind that lead only to known values, unless they have so many elements that
    /// workers read them. They are in the cache now, and numbers are the same as if they were followed later. Gives
    /// whether these were all arrays.
    fn known_arrays(&mut self) -> bool {
        let plan = self.plan;
        let slots = plan.kinds.iter().map(|kind| kind.slot.as_ref().filter(|slot| slot.leads_on()));
        slots.enumerate().filter_map(|(at, slot)| Some((at, slot?))).all(|(at, slot)| {
            let rows = &self.tables.kinds[at];
            let (mut passed, all) = (rows.cursor, rows.arrays.len());
            let Some(first) = rows.offsets.get(passed) else { return true };
            if workers::pays((rows.rows - u64::from(*first)) as usize) {
                return false;
            }
            rows.arrays[passed..].iter().take(BATCH).for_each(|array| heap::prefetch_body(*array));
            while passed < all {
                let count = self.lead_to_known(at, passed, slot);
                passed += count;
                if count == 0 {
                    break;
                }
            }
            self.tables.kinds[at].cursor = passed;
            passed == all
        })
    }

    /// The number of arrays from a row on, among those that are read together, that lead only to known values. A long
    /// array does not count, because it would be read in vain each time.
    fn lead_to_known(&self, at: usize, row: usize, slot: &SlotPlan) -> usize {
        let rows = &self.tables.kinds[at];
        let (mut values, mut count, mut arrays) = ([heap::NIL; TOGETHER], 0, 0);
        for array in &rows.arrays[row..] {
            let elements = elements_of(*array, rows.buffers);
            let Some(free) = values[count..].get_mut(..elements.len()) else { break };
            free.iter_mut().zip(elements).for_each(|(value, element)| *value = *element);
            count += elements.len();
            arrays += 1;
        }
        if self.are_known(slot, &values[..count]) { arrays } else { 0 }
    }

    /// Whether all of these are known and fit the slot, or lead nowhere.
    fn are_known(&self, slot: &SlotPlan, values: &[Raw]) -> bool {
        if let Some(Usual { shared: true, first, .. }) = self.usual(slot)
            && let Some(near) = self.tables.map.near(values)
        {
            return near.known((first >> 32) as u32).count() == values.len();
        }
        let is_known =
            |value, word| heap::is_immediate(value) || word != 0 && self.check_slot(slot, word, false).is_ok();
        let each_is = |i: usize, word| if is_known(values[i], word) { Ok(()) } else { Err(()) };
        self.tables.map.each(values, each_is).is_ok()
    }

    /// A separate function keeps the loop short that collects the elements.
    #[inline(never)]
    fn follow_elements(&mut self, slot: &SlotPlan, values: &[Raw]) -> Result<()> {
        self.follow_all(&[slot], values, false, |_| Ok(()))
    }
}

impl Strings {
    /// Adds a String, and gives its entry.
    #[inline]
    fn add(&mut self, string: Raw) -> Result<u64> {
        let length = heap::bytes(string).len();
        let encoding = heap::encoding(string).filter(|_| length <= StrWord::MAX_BYTES).ok_or(GuardFailure::Value)?;
        let rows = length.max(1) as u64;
        if self.strings.len() >= MAX_ROWS || self.rows + rows > u64::from(u32::MAX) {
            return Err(GuardFailure::TooMany);
        }
        let entry = STRING | self.strings.len() as u64;
        let word = StrWord::new(self.rows as u32, length, encoding, false).with_frozen(heap::is_frozen(string));
        room::push(&mut self.words, word);
        room::push(&mut self.strings, string);
        self.rows += rows;
        Ok(entry)
    }
}

/// The elements of an array that may lead to objects. A buffer, which may be among `buffers`, holds numbers, which lead
/// nowhere.
#[inline]
fn elements_of<'a>(array: Raw, buffers: bool) -> &'a [Raw] {
    if buffers && heap::see(array) != Seen::Array { &[] } else { heap::elements(array) }
}

/// Adds rows to a table whose final length is not known.
#[inline]
fn add(table: &mut Table<Raw>, rows: &[Raw], expected: usize) {
    make_room(table, rows.len(), expected);
    table.add(rows.len()).copy_from_slice(rows);
}

#[inline]
pub(super) fn make_room<T: Row>(table: &mut Table<T>, rows: usize, expected: usize) {
    if table.capacity() - table.len() < rows {
        widen(table, rows, expected);
    }
}

#[cold]
fn widen<T: Row>(table: &mut Table<T>, rows: usize, expected: usize) {
    // Pages that are never touched take only addresses.
    let more = if table.len() + rows < 1024 { BATCH } else { expected };
    table.reserve(more.max(rows));
}

/// A batch of the first of these rows. Prefetches the next ones.
#[inline]
fn batch<'a>(rows: &[Raw], some: &'a mut [Raw; BATCH]) -> &'a [Raw] {
    let batch = |from: usize| &rows[rows.len().min(from)..rows.len().min(from + BATCH)];
    let some = &mut some[..rows.len().min(BATCH)];
    some.copy_from_slice(batch(0));
    batch(2 * BATCH).iter().for_each(|row| heap::prefetch(*row));
    // The others are mostly like the first and the last.
    if let [first, .., last] = batch(BATCH)
        && [first, last].iter().any(|row| heap::has_body(**row))
    {
        batch(BATCH).iter().for_each(|row| heap::prefetch_body(*row));
    }
    some
}
