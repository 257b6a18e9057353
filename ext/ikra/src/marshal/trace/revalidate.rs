//! Revalidates the tables of an earlier call for the objects of this one.
//!
//! Here: [`Tables::revalidate`], which checks whether a walk from the base array and the roots would reach exactly the
//! objects of these tables. All cores work where there are many. Not here: the graph cache
//! ([`crate::marshal::graph_cache`]), and numbers and other values that lead nowhere, which packing checks at every
//! call. Objects are packed while they are checked and in the cache ([`TableColumns`]).
//!
//! # What is checked
//!
//! Cached tables hold no objects: an address in them may be free, or belong to another object. So an object of the
//! tables is read only once a live object was seen to refer to it. The elements and roots come first, then what these
//! refer to, and so on. For each object that is reached, these conditions are checked:
//!
//! * Its address is in the tables, its class is that of the tables (a singleton class is another), and the slot takes
//!   that class.
//! * An array has the length of the tables, and a String the length and encoding.
//! * Objects that programs write are not frozen.
//! * An owned object is reached only through its owning slot, and no element occurs twice.
//!
//! In the end every object of the tables must have been reached. Then the tables are those of a walk now, except for
//! the order of rows. Nothing depends on that order: neither which error is raised, nor the order of jobs or of writes.
//! References between objects may have changed. Where a condition fails, the walk is done anew.

use super::order::{Guess, Order, PieceOrder};
use super::{ARRAY, ARRAY_CLASS, CHUNK, NO_CLASS, STRING, TEXT_CLASS, Tables};
use crate::marshal::pack::{
    ArraySheet, ArraysAlong, Lender, NO_ID, ObjectSheet, ObjectsAlong, PackTarget, Packer, TableColumns,
};
use crate::marshal::plan::{Plan, SlotPlan};
use crate::ruby::gvl;
use crate::ruby::heap::{self, FieldReader, Raw, Seen};
use crate::ruby::workers::{self, Lists, PIECE, Span};
use ikra_core::ir::Program;
use ikra_core::memory::room;
use ikra_core::memory::table::Table;
use ikra_core::types::{Prims, StrWord};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The objects differ from those of the tables.
pub(super) struct Differs;

type Result<T> = std::result::Result<T, Differs>;

/// The fewest waiting objects for which workers are woken.
const MIN_PARALLEL_OBJECTS: usize = 256;
/// The number of waiting objects that a worker takes at a time.
const OBJECTS_AT_ONCE: usize = workers::GROUP;

/// Reached, from anywhere.
const SHARED: u8 = 1;
/// Reached through the slot that owns it.
const OWNED: u8 = 2;
/// Checked.
const DONE: u8 = 4;

/// The state of each row. It changes once from 0 to reached, by an atomic exchange. The thread that checks the row then
/// sets done.
struct States {
    rows: Table<AtomicU8>,
    /// Only one thread exchanges states. Then exchanges need not be atomic, which saves a ninth of a check.
    alone: bool,
}

impl States {
    fn new(rows: usize) -> Self {
        let mut states = Table::unset(rows);
        states.iter_mut().for_each(|state| *state = AtomicU8::default());
        Self { rows: states, alone: workers::THREADS.count() == 1 }
    }
    /// Whether it was reached already, and may be reached from several places.
    #[inline]
    fn is_shared(&self, row: usize) -> bool {
        self.rows[row].load(Relaxed) & SHARED != 0
    }
    /// Notes that a row is reached. True for the first reference.
    #[inline]
    fn reach(&self, row: usize, owned: bool) -> Result<bool> {
        let state = &self.rows[row];
        let seen = match state.load(Relaxed) {
            0 => {
                let reached = if owned { OWNED } else { SHARED };
                if self.alone {
                    state.store(reached, Relaxed);
                    None
                } else {
                    state.compare_exchange(0, reached, Relaxed, Relaxed).err()
                }
            }
            seen => Some(seen),
        };
        match seen {
            None => Ok(true),
            Some(seen) if owned || seen & OWNED != 0 => Err(Differs),
            Some(_) => Ok(false),
        }
    }
    #[inline]
    fn is_new(&self, row: usize) -> bool {
        self.rows[row].load(Relaxed) == 0
    }
    #[inline]
    fn waits(&self, row: usize) -> bool {
        let state = self.rows[row].load(Relaxed);
        state != 0 && state & DONE == 0
    }
    /// Notes that a row is checked. Only the thread that checks it calls this, after it was reached.
    #[inline]
    fn done(&self, row: usize) {
        self.rows[row].store(self.rows[row].load(Relaxed) | DONE, Relaxed);
    }
    fn count(&mut self, bits: u8) -> usize {
        let count_few = |states: &mut [AtomicU8]| -> u8 {
            states.iter_mut().map(|state| u8::from(*state.get_mut() & bits != 0)).sum()
        };
        // As many at a time as a byte can count, so that only bytes are added.
        self.rows.chunks_mut(u8::MAX.into()).map(|states| usize::from(count_few(states))).sum()
    }
}

struct Checker<'a> {
    plan: &'a Plan,
    tables: &'a Tables,
    /// By class, for each slot that leads to other objects.
    readers: Vec<Vec<FieldReader>>,
    classes: Vec<States>,
    kinds: Vec<States>,
    strings: States,
}

/// Whether the current round checks an entry in any case.
type Comes<'a> = dyn Fn(u64) -> bool + Sync + 'a;

/// What the check found out about the elements.
#[derive(Default)]
struct Checked {
    /// Their rows and classes, if they are needed.
    rows: Table<u32>,
    classes: Table<u16>,
    /// Their order, if it is another than before.
    order: Option<Order>,
    stand: bool,
}

/// Elements that were found.
#[derive(Default)]
struct Elements {
    /// Entries of elements to check, where these are few.
    reached: Vec<u64>,
    /// The number of elements that have a row. Strings are not counted.
    count: usize,
    order: PieceOrder,
}

/// A worker's results for a piece.
#[derive(Default)]
struct Piece {
    /// Entries of objects that were reached for the first time.
    reached: Vec<u64>,
    /// Entries that the Ruby thread must check.
    left: Vec<u64>,
    /// By class, rows that are not packed.
    objects_left: Vec<(usize, Vec<u32>)>,
    /// Arrays that are not packed.
    arrays_left: Vec<Span>,
}

impl Tables {
    /// Revalidates tables of an earlier call. They keep their numbers, and objects are packed on the way. None where
    /// the tables do not fit, and are void.
    pub fn revalidate(
        &mut self,
        target: &PackTarget<'_>,
        base: Option<&[Raw]>,
        roots: &[Raw],
        unknown: &Mutex<Vec<Raw>>,
    ) -> Option<TableColumns> {
        let PackTarget { plan, capacity, lender, .. } = *target;
        let program = &target.lowered.program;
        self.number(plan, capacity).ok()?;
        let mut columns = TableColumns::new(plan, program, self, lender);
        let packing = Packing { program, columns: &mut columns, unknown, lender };
        let Checked { rows, classes, order, stand } = Checker::new(plan, self).check(base, roots, packing).ok()?;
        self.element_rows = rows;
        if !stand {
            self.order = order;
        }
        self.element_classes = classes;
        Some(columns)
    }
}

/// Expands lists over some rows to lists over all rows. The other rows get the entries of one of these.
fn spread(all: &Range<usize>, rows: &[usize], objects: &mut Vec<Raw>, ids: &mut [[u32; CHUNK]]) {
    let mut before = rows.len();
    objects.resize(all.len(), heap::NIL);
    if before == all.len() {
        return;
    }
    // From the last row on, so that nothing is overwritten that is still to be read: no entry moves to the front.
    for (at, row) in all.clone().enumerate().rev() {
        while before > 1 && rows[before - 1] > row {
            before -= 1;
        }
        objects[at] = objects[before - 1];
        ids.iter_mut().for_each(|ids| ids[at] = ids[before - 1]);
    }
}

/// Where checked objects are packed to.
struct Packing<'a> {
    program: &'a Program,
    columns: &'a mut TableColumns,
    unknown: &'a Mutex<Vec<Raw>>,
    lender: Lender<'a>,
}

impl<'a> Checker<'a> {
    fn new(plan: &'a Plan, tables: &'a Tables) -> Self {
        let readers = |class: &crate::marshal::plan::ClassPlan| {
            class.leads.iter().map(|field| FieldReader::new(class.fields[*field].field, &tables.hashes)).collect()
        };
        Self {
            plan,
            tables,
            readers: plan.classes.iter().map(readers).collect(),
            classes: tables.classes.iter().map(|rows| States::new(rows.objects.len())).collect(),
            kinds: tables.kinds.iter().map(|rows| States::new(rows.arrays.len())).collect(),
            strings: States::new(tables.strings.strings.len()),
        }
    }

    fn check(mut self, base: Option<&[Raw]>, roots: &[Raw], packing: Packing<'_>) -> Result<Checked> {
        let plan = self.plan;
        let mut checked = Checked::default();
        let (mut reached, mut many) = (Vec::new(), false);
        if let (Some(slot), Some(base)) = (&plan.elements, base)
            && slot.leads_on()
        {
            if !plan.whole {
                (checked.rows, checked.classes) = (Table::unset(base.len()), Table::unset(base.len()));
            }
            let found = self.elements(slot, base, &mut checked)?;
            let different: usize =
                self.classes.iter_mut().chain(&mut self.kinds).map(|states| states.count(SHARED)).sum();
            // A program that goes over all rows has no place for elements without a row.
            if !plan.grouped && different != found.count || plan.whole && found.count != base.len() {
                return Err(Differs);
            }
            reached = found.reached;
            // An element that occurs twice is checked once.
            if plan.grouped {
                reached.sort_unstable();
                reached.dedup();
            }
            many = workers::many(base.len());
        }
        for (slot, root) in plan.roots.iter().zip(roots) {
            self.look(slot, &[*root], |entry| room::push(&mut reached, entry), |_, _| ())?;
        }
        self.settle(reached, Some(packing).filter(|_| many))?;
        let all = |states: &mut States| states.count(DONE) == states.rows.len();
        let whole = self.classes.iter_mut().chain(&mut self.kinds).chain([&mut self.strings]).all(all);
        if whole { Ok(checked) } else { Err(Differs) }
    }

    /// Finds the rows of the elements, if they are needed, and their order.
    fn elements(&self, slot: &SlotPlan, base: &[Raw], checked: &mut Checked) -> Result<Elements> {
        let Checked { rows, classes, .. } = checked;
        let few = !workers::many(base.len());
        let mut places = rows.chunks_mut(PIECE).zip(classes.chunks_mut(PIECE));
        let pieces = base.chunks(PIECE).enumerate().map(|(piece, values)| (piece, values, places.next()));
        let found = workers::map(base.len(), pieces.collect(), |(piece, values, places)| {
            let (rows, classes) = places.unwrap_or_default();
            match &self.tables.order {
                Some(order) if !few && self.stand(order, piece, values, rows, classes) => {
                    Ok(Elements { count: values.len(), ..Elements::default() })
                }
                _ => self.some_elements(slot, values, rows, classes, few),
            }
        });
        let (mut all, mut orders) = (Elements::default(), Vec::with_capacity(found.len()));
        for piece in found {
            let Elements { reached, count, order } = piece?;
            room::extend(&mut all.reached, reached);
            all.count += count;
            orders.push(order);
        }
        checked.stand = orders.iter().all(PieceOrder::is_none);
        checked.order = Order::of(&orders, base.len());
        Ok(all)
    }

    /// Whether the elements of a piece are in the same order as before.
    fn stand(&self, order: &Order, piece: usize, values: &[Raw], rows: &mut [u32], classes: &mut [u16]) -> bool {
        let states: SmallVec<[&[AtomicU8]; 8]> = self.classes.iter().map(|states| &states.rows[..]).collect();
        order.holds(self.tables, piece, piece * PIECE, values, |i, class, row| {
            states[class][row].store(SHARED, Relaxed);
            if let (Some(place), Some(of)) = (rows.get_mut(i), classes.get_mut(i)) {
                (*place, *of) = (row as u32, class as u16);
            }
        })
    }

    fn some_elements(
        &self,
        slot: &SlotPlan,
        values: &[Raw],
        rows: &mut [u32],
        classes: &mut [u16],
        few: bool,
    ) -> Result<Elements> {
        classes.fill(NO_CLASS);
        let mut found = Elements::default();
        let texts = slot.prims.intersects(Prims::STR);
        found.order = PieceOrder::of(if few { 0 } else { values.len() });
        let mut place = |i: usize, entry: u64| {
            if entry & STRING != 0 {
                if let (Some(row), Some(class)) = (rows.get_mut(i), classes.get_mut(i)) {
                    (*row, *class) = (entry as u32, TEXT_CLASS);
                }
                return;
            }
            found.count += 1;
            room::extend(&mut found.reached, Some(entry).filter(|_| few));
            found.order.add(i, entry);
            let (states, row) = self.states(entry);
            // No other thread checks yet. Elements that occur twice are found by counting.
            states.rows[row].store(SHARED, Relaxed);
            if let (Some(row), Some(class)) = (rows.get_mut(i), classes.get_mut(i)) {
                *row = entry as u32;
                *class = if entry & ARRAY != 0 { ARRAY_CLASS } else { (entry >> 32) as u16 - 1 };
            }
        };
        let mut guess = Guess::of(self.tables);
        let (mut missed, mut at) = (Vec::with_capacity(CHUNK), Vec::with_capacity(CHUNK));
        let mut strings = Vec::with_capacity(if texts { CHUNK } else { 0 });
        for (chunk, some) in values.chunks(CHUNK).enumerate() {
            missed.clear();
            at.clear();
            for (i, value) in (chunk * CHUNK..).zip(some) {
                if texts && let Some(entry) = guess.text(*value) {
                    heap::prefetch(*value);
                    strings.push((i, entry));
                } else if let Some(entry) = guess.entry(*value) {
                    place(i, entry);
                } else {
                    missed.push(*value);
                    at.push(i);
                }
            }
            self.tables.map.each(&missed, |i, entry| {
                let Some(entry) = self.entry(slot, missed[i], entry)? else { return Ok(()) };
                if self.named(entry) != missed[i] {
                    return Err(Differs);
                }
                match entry & STRING {
                    0 => place(at[i], entry),
                    _ => strings.push((at[i], entry)),
                }
                guess.learn(entry);
                Ok(())
            })?;
            for (i, entry) in strings.drain(..) {
                self.text(entry as u32 as usize)?;
                place(i, entry);
            }
        }
        Ok(found)
    }

    /// Checks a String of the tables that something refers to, unless that was done before.
    #[inline]
    fn text(&self, row: usize) -> Result<()> {
        if self.strings.is_shared(row) {
            return Ok(());
        }
        self.is_same_text(row)?;
        // Several threads may have checked it. All do the same.
        self.strings.rows[row].store(SHARED | DONE, Relaxed);
        Ok(())
    }

    /// Whether a live String has the length and encoding of the tables.
    #[inline]
    fn is_same_text(&self, row: usize) -> Result<()> {
        let (string, word) = (self.tables.strings.strings[row], self.tables.strings.words[row]);
        if !heap::is_string(string, self.plan.string_class) {
            return Err(Differs);
        }
        let (bytes, encoding) = (heap::bytes(string), heap::encoding(string).ok_or(Differs)?);
        let now = StrWord::new(word.offset(), bytes.len(), encoding, false).with_frozen(heap::is_frozen(string));
        if bytes.len() <= StrWord::MAX_BYTES && now == word { Ok(()) } else { Err(Differs) }
    }

    /// The entry of a slot's value in the map. None for a value that leads nowhere.
    #[inline(always)]
    fn entry(&self, slot: &SlotPlan, value: Raw, entry: u64) -> Result<Option<u64>> {
        if entry == 0 {
            return Self::leads_nowhere(slot, value).map(|()| None);
        }
        let upper = (entry & !ARRAY) as usize >> 32;
        let fits = if entry & ARRAY != 0 {
            slot.kind == Some(upper)
        } else if entry & STRING != 0 {
            slot.prims.intersects(Prims::STR)
        } else {
            slot.takes(upper - 1)
        };
        // A Range in a launch parameter may have a row, because something else refers to it.
        if fits { Ok(Some(entry)) } else { Self::leads_nowhere(slot, value).map(|()| None) }
    }

    /// Checks that a value without an entry needs none.
    fn leads_nowhere(slot: &SlotPlan, value: Raw) -> Result<()> {
        match heap::see(value) {
            Seen::Object | Seen::Array | Seen::Buffer | Seen::Str | Seen::Hash | Seen::Number => Err(Differs),
            // A Range in a launch parameter has no row.
            Seen::Struct if !slot.prims.intersects(Prims::RANGE) => Err(Differs),
            // As in the walk, other values are checked when they are packed.
            _ => Ok(()),
        }
    }

    /// The state of an entry's row.
    #[inline(always)]
    fn states(&self, entry: u64) -> (&States, usize) {
        let (upper, row) = ((entry & !ARRAY) as usize >> 32, entry as u32 as usize);
        if entry & ARRAY != 0 {
            (&self.kinds[upper], row)
        } else if entry & STRING != 0 {
            (&self.strings, row)
        } else {
            (&self.classes[upper - 1], row)
        }
    }

    /// The object of an entry.
    #[inline(always)]
    fn named(&self, entry: u64) -> Raw {
        let (upper, row) = ((entry & !ARRAY) as usize >> 32, entry as u32 as usize);
        if entry & ARRAY != 0 {
            self.tables.kinds[upper].arrays[row]
        } else if entry & STRING != 0 {
            self.tables.strings.strings[row]
        } else {
            self.tables.classes[upper - 1].objects[row]
        }
    }

    /// Whether a value is reached for the first time.
    #[inline(always)]
    fn reach(&self, slot: &SlotPlan, value: Raw, entry: u64) -> Result<bool> {
        let (states, row) = self.states(entry);
        if !slot.owned && states.is_shared(row) {
            return Ok(false);
        }
        // The map distinguishes objects that are alive together. Once this one is known to be alive, no other object
        // has its entry. Before that, no worker may learn that it was reached, and read it.
        if states.is_new(row) && self.named(entry) != value {
            return Err(Differs);
        }
        // Programs do not write Strings, so no slot owns one.
        states.reach(row, slot.owned && entry & STRING == 0)
    }

    /// Reaches the values of a slot. `new` gets the entries that were not reached before. `each` gets the entry of
    /// every value, 0 where it has none.
    #[inline]
    fn look(
        &self,
        slot: &SlotPlan,
        values: &[Raw],
        mut new: impl FnMut(u64),
        mut each: impl FnMut(usize, u64),
    ) -> Result<()> {
        self.tables.map.each(values, |i, entry| {
            each(i, entry);
            if let Some(entry) = self.entry(slot, values[i], entry)?
                && self.reach(slot, values[i], entry)?
            {
                new(entry);
            }
            Ok(())
        })
    }

    /// Checks everything that was reached, and what that leads to. With `packing` there are more objects than these,
    /// which are packed.
    fn settle(&mut self, mut reached: Vec<u64>, packing: Option<Packing<'_>>) -> Result<()> {
        if let Some(packing) = packing {
            self.all_that_wait(&mut reached, packing)?;
            // Some were checked meanwhile.
            reached.retain(|entry| self.waits(*entry));
        }
        loop {
            if reached.len() >= MIN_PARALLEL_OBJECTS {
                reached = self.round(&reached)?;
                continue;
            }
            let Some(entry) = reached.pop() else { return Ok(()) };
            gvl::poll();
            let (states, row) = self.states(entry);
            states.done(row);
            self.expand(entry, &mut reached)?;
        }
    }

    fn waits(&self, entry: u64) -> bool {
        let (states, row) = self.states(entry);
        states.waits(row)
    }

    /// Workers check all of these. Gives what they reached.
    fn round(&mut self, waiting: &[u64]) -> Result<Vec<u64>> {
        let this = &*self;
        let found = workers::share(waiting.chunks(OBJECTS_AT_ONCE).collect(), |waiting: &[u64]| {
            let mut piece = Piece::default();
            heap::prefetch_all(waiting.iter().map(|entry| this.named(*entry)));
            for entry in waiting {
                let (states, row) = this.states(*entry);
                states.done(row);
                this.expand_beside(*entry, &mut piece)?;
            }
            Ok(piece)
        });
        let mut reached = Vec::new();
        for piece in found {
            self.keep(piece?, &mut reached)?;
        }
        Ok(reached)
    }

    /// Takes a worker's results. The Ruby thread checks what was left to it.
    fn keep(&mut self, Piece { reached: more, left, .. }: Piece, reached: &mut Vec<u64>) -> Result<()> {
        room::extend(reached, more);
        left.into_iter().try_for_each(|entry| self.expand(entry, reached))
    }

    /// Workers check everything that waits, by class and by kind. Adds to `reached` what was reached, except what this
    /// round checks anyway.
    fn all_that_wait(&mut self, reached: &mut Vec<u64>, mut packing: Packing<'_>) -> Result<()> {
        // Elements of all classes are mixed in memory, so they are checked together. The others follow class by class,
        // so that a class comes after those whose objects lead to it.
        let is_first = |at: usize| self.classes[at].rows.first().is_some_and(|state| state.load(Relaxed) == SHARED);
        let (first, others): (Vec<usize>, Vec<usize>) = (0..self.classes.len()).partition(|at| is_first(*at));
        let comes = |entry: u64, from: usize| {
            let class = (entry >> 32) as usize;
            entry & ARRAY != 0 || entry & STRING == 0 && class > from && !first.contains(&(class - 1))
        };
        self.objects(&first, &|entry| comes(entry, 0), reached, &mut packing)?;
        let Packing { program, columns, unknown, lender } = packing;
        let (plan, tables) = (self.plan, self.tables);
        columns.while_sending(plan, tables, program, lender, |columns| {
            let mut packing = Packing { program, columns, unknown, lender };
            for at in others {
                self.objects(&[at], &|entry| comes(entry, at + 1), reached, &mut packing)?;
            }
            for at in 0..self.kinds.len() {
                let comes = |entry: u64| entry & ARRAY != 0 && (entry & !ARRAY) as usize >> 32 > at;
                self.arrays(at, &comes, reached, &mut packing)?;
            }
            Ok(())
        })
    }

    /// Checks the waiting objects of some classes in the order of rows, which is about their order in memory. `comes`:
    /// whether this round checks an entry.
    fn objects(
        &mut self,
        some: &[usize],
        comes: &Comes<'_>,
        reached: &mut Vec<u64>,
        packing: &mut Packing<'_>,
    ) -> Result<()> {
        // Readers learn the forms of some live objects.
        let mut alive: Vec<Vec<Raw>> = Vec::with_capacity(some.len());
        for at in some {
            let (class, objects) = (&self.plan.classes[*at], &self.tables.classes[*at].objects[..]);
            let first = |from: usize| (from..objects.len().min(from + PIECE)).find(|row| self.classes[*at].waits(*row));
            let few: Vec<Raw> = (0..objects.len()).step_by(PIECE).filter_map(first).map(|row| objects[row]).collect();
            if few.iter().any(|object| heap::class_word(*object) != class.raw) {
                return Err(Differs);
            }
            self.readers[*at].iter_mut().for_each(|reader| reader.learn(&few, class.raw));
            alive.push(few);
        }
        let this = &*self;
        let lengths: Vec<usize> = some.iter().map(|at| this.tables.classes[*at].objects.len()).collect();
        let pieces = workers::side_by_side(&lengths);
        let Packing { program, columns, unknown, .. } = packing;
        let (along, sheets) = columns.objects_along(
            Packer::new(this.plan, this.tables, unknown),
            program,
            (some, &alive),
            pieces.clone(),
        );
        let found = workers::map(lengths.iter().sum(), pieces.into_iter().zip(sheets).collect(), |(piece, sheets)| {
            let mut found = Piece::default();
            for ((at, rows), mut sheet) in some.iter().zip(piece).zip(sheets) {
                this.some_objects(*at, comes, rows, (&along, &mut sheet), &mut found)?;
                room::push(&mut found.objects_left, (*at, sheet.left()));
            }
            Ok(found)
        });
        let mut found = found.into_iter().collect::<Result<Vec<Piece>>>()?;
        for at in some {
            let left = found.iter_mut().flat_map(|piece| &mut piece.objects_left);
            let left = left.filter(|(class, _)| class == at).flat_map(|(_, left)| std::mem::take(left));
            columns.objects_left(*at, this.tables.classes[*at].objects.len(), left.collect());
        }
        found.into_iter().try_for_each(|piece| self.keep(piece, reached))
    }

    fn some_objects(
        &self,
        at: usize,
        comes: &Comes<'_>,
        rows: Range<usize>,
        (along, sheet): (&ObjectsAlong<'_>, &mut ObjectSheet<'_>),
        piece: &mut Piece,
    ) -> Result<()> {
        let (class, objects, states) = (&self.plan.classes[at], &self.tables.classes[at].objects, &self.classes[at]);
        let readers = &self.readers[at];
        let (mut waiting, mut some) = (Vec::with_capacity(CHUNK), Vec::with_capacity(CHUNK));
        let mut values = vec![heap::NIL; CHUNK * readers.len()];
        let mut ids = vec![[NO_ID; CHUNK]; readers.len()];
        // Strings that are reached for the first time.
        let mut texts = Vec::new();
        for from in rows.clone().step_by(CHUNK) {
            let all = from..rows.end.min(from + CHUNK);
            waiting.clear();
            waiting.extend(all.clone().filter(|row| states.waits(*row)));
            some.clear();
            some.extend(waiting.iter().map(|row| objects[*row]));
            heap::prefetch_all(some.iter().copied());
            for (row, object) in waiting.iter().zip(&some) {
                self.is_as_known(at, *object)?;
                states.done(*row);
            }
            let mut read = |some: &[Raw]| {
                let mut fields = readers.iter().zip(values.chunks_mut(CHUNK));
                fields.all(|(reader, values)| reader.peek_all(some, class.raw, values))
            };
            if !read(&some) {
                // All but those of unknown forms.
                let known = |object| readers.iter().all(|reader| reader.peek(object, class.raw).is_some());
                let left = waiting.iter().filter(|row| !known(objects[**row]));
                room::extend(&mut piece.left, left.map(|row| (at as u64 + 1) << 32 | *row as u64));
                waiting.retain(|row| known(objects[*row]));
                some.retain(|object| known(*object));
                let all = read(&some);
                debug_assert!(all, "each was peeked at");
            }
            for ((lead, values), ids) in class.leads.iter().zip(values.chunks(CHUNK)).zip(&mut ids) {
                let new = |entry| match entry & STRING {
                    0 => room::extend(&mut piece.reached, Some(entry).filter(|entry| !comes(*entry))),
                    _ => {
                        heap::prefetch(self.named(entry));
                        texts.push(entry as u32 as usize);
                    }
                };
                self.look(&class.fields[*lead].slot, &values[..some.len()], new, |i, entry| ids[i] = self.id(entry))?;
                for row in texts.drain(..) {
                    self.is_same_text(row)?;
                    self.strings.done(row);
                }
            }
            if some.is_empty() {
                sheet.leave(all.len());
                continue;
            }
            spread(&all, &waiting, &mut some, &mut ids);
            along.pack(sheet, &some, &ids);
        }
        Ok(())
    }

    /// The id of an object by its entry. [`NO_ID`] for anything else.
    #[inline]
    fn id(&self, entry: u64) -> u32 {
        // Arrays and Strings have bits that no class index has.
        let class = (entry as usize >> 32).checked_sub(1);
        let base = class.and_then(|class| self.tables.bases.get(class));
        base.map_or(NO_ID, |base| base.wrapping_add(entry as u32))
    }

    /// Checks the waiting arrays of a kind. Long arrays are checked in parts.
    fn arrays(
        &mut self,
        at: usize,
        comes: &Comes<'_>,
        reached: &mut Vec<u64>,
        packing: &mut Packing<'_>,
    ) -> Result<()> {
        let (rows, states) = (&self.tables.kinds[at], &self.kinds[at]);
        let pieces = rows.pieces();
        let parts = pieces.iter().filter(|piece| matches!(piece, Lists::Part(span) if span.from == 0));
        let long: Vec<usize> = parts.map(|piece| piece.first().list).filter(|row| states.waits(*row)).collect();
        let this = &*self;
        let Packing { columns, unknown, .. } = packing;
        let (along, sheets) = match columns.arrays_along(Packer::new(this.plan, this.tables, unknown), at, &pieces) {
            Some((along, sheets)) => (Some(along), sheets),
            None => (None, Vec::new()),
        };
        let mut sheets = sheets.into_iter();
        let pieces = pieces.iter().map(|lists| (lists, sheets.next())).collect();
        let found = workers::map(rows.rows as usize + rows.arrays.len(), pieces, |(lists, sheet)| {
            this.some_arrays(at, comes, lists, along.as_ref().zip(sheet))
        });
        let is_packed = along.is_some();
        // A worker that checks a part of an array does not know whether the other parts are done.
        long.into_iter().for_each(|row| states.done(row));
        let mut found = found.into_iter().collect::<Result<Vec<Piece>>>()?;
        if is_packed {
            let left = found.iter_mut().flat_map(|piece| std::mem::take(&mut piece.arrays_left));
            columns.arrays_left(at, rows.arrays.len(), left.collect());
        }
        found.into_iter().try_for_each(|piece| self.keep(piece, reached))
    }

    fn some_arrays(
        &self,
        at: usize,
        comes: &Comes<'_>,
        lists: &Lists,
        mut sheet: Option<(&ArraysAlong<'_>, ArraySheet<'_>)>,
    ) -> Result<Piece> {
        let (kind, rows, states) = (&self.plan.kinds[at], &self.tables.kinds[at], &self.kinds[at]);
        let mut piece = Piece::default();
        let whole = matches!(lists, Lists::Whole(_));
        let slot = kind.slot.as_ref().filter(|slot| slot.leads_on());
        let wanted = slot.is_some() || sheet.is_some();
        let (mut chunk, mut values, mut ids) = (Vec::with_capacity(CHUNK), Vec::new(), Vec::new());
        let mut packed: Vec<Span> = Vec::with_capacity(CHUNK);
        let mut spans = lists.spans(&rows.lengths);
        loop {
            chunk.clear();
            values.clear();
            ids.clear();
            chunk.extend(spans.by_ref().take(CHUNK));
            if chunk.is_empty() {
                return Ok(piece);
            }
            let waiting = chunk.iter().filter(|span| states.waits(span.list));
            heap::prefetch_all(waiting.map(|span| rows.arrays[span.list]));
            packed.clear();
            for span in &chunk {
                let Span { list: row, from, len } = *span;
                if !states.waits(row) {
                    room::push(&mut piece.arrays_left, *span);
                    continue;
                }
                if whole {
                    states.done(row);
                }
                let Some(elements) = self.elements_of(at, row)? else {
                    room::extend(&mut piece.left, (from == 0).then_some(ARRAY | (at as u64) << 32 | row as u64));
                    continue;
                };
                packed.push(*span);
                if wanted {
                    values.extend(&elements[from..from + len]);
                }
            }
            if let Some(slot) = slot {
                ids.resize(values.len(), NO_ID);
                let new = |entry| room::extend(&mut piece.reached, Some(entry).filter(|entry| !comes(*entry)));
                self.look(slot, &values, new, |i, entry| ids[i] = self.id(entry))?;
            }
            if let Some((along, sheet)) = &mut sheet
                && !along.pack(sheet, &packed, &values, &ids)
            {
                room::extend(&mut piece.arrays_left, packed.iter().copied());
            }
        }
    }

    /// Whether a live object is still of a class of the plan.
    #[inline]
    fn is_as_known(&self, at: usize, object: Raw) -> Result<()> {
        let class = &self.plan.classes[at];
        let as_known = heap::class_word(object) == class.raw;
        if as_known && !(class.must_not_be_frozen && heap::is_frozen(object)) { Ok(()) } else { Err(Differs) }
    }

    /// The elements of a live array. None for a buffer.
    #[inline]
    fn elements_of(&self, at: usize, row: usize) -> Result<Option<&[Raw]>> {
        let rows = &self.tables.kinds[at];
        let array = rows.arrays[row];
        if !heap::is_plain_array(array) {
            return if heap::see(array) == Seen::Buffer { Ok(None) } else { Err(Differs) };
        }
        let elements = heap::elements(array);
        let frozen = self.plan.kinds[at].must_not_be_frozen && heap::is_frozen(array);
        if elements.len() == rows.lengths[row] as usize && !frozen { Ok(Some(elements)) } else { Err(Differs) }
    }

    /// Checks a live object or array, or leaves it.
    fn expand_beside(&self, entry: u64, piece: &mut Piece) -> Result<()> {
        let (at, row) = ((entry & !ARRAY) as usize >> 32, entry as u32 as usize);
        let Piece { reached, left, .. } = piece;
        if entry & ARRAY != 0 {
            match (self.elements_of(at, row)?, &self.plan.kinds[at].slot) {
                (None, _) => room::push(left, entry),
                (Some(elements), Some(slot)) if slot.leads_on() => {
                    self.look(slot, elements, |entry| room::push(reached, entry), |_, _| ())?;
                }
                _ => {}
            }
        } else if entry & STRING != 0 {
            self.is_same_text(row)?;
        } else {
            let (at, object) = (at - 1, self.tables.classes[at - 1].objects[row]);
            self.is_as_known(at, object)?;
            let (class, readers) = (&self.plan.classes[at], &self.readers[at]);
            // What is left is checked as a whole.
            let values: Option<SmallVec<[Raw; 8]>> =
                readers.iter().map(|reader| reader.peek(object, class.raw)).collect();
            let Some(values) = values else {
                room::push(left, entry);
                return Ok(());
            };
            for (field, value) in class.leads.iter().zip(values) {
                self.look(&class.fields[*field].slot, &[value], |entry| room::push(reached, entry), |_, _| ())?;
            }
        }
        Ok(())
    }

    /// Checks a live object or array, on the Ruby thread.
    fn expand(&mut self, entry: u64, reached: &mut Vec<u64>) -> Result<()> {
        let (plan, tables) = (self.plan, self.tables);
        let (at, row) = ((entry & !ARRAY) as usize >> 32, entry as u32 as usize);
        if entry & ARRAY != 0 {
            let Some(elements) = self.elements_of(at, row)? else {
                let rows = &tables.kinds[at];
                let (_, buffer) = crate::buffers::buffer::of(rows.arrays[row]).ok_or(Differs)?;
                let fits = rows.buffers && buffer.len() == rows.lengths[row] as usize;
                return if fits { Ok(()) } else { Err(Differs) };
            };
            let Some(slot) = plan.kinds[at].slot.as_ref().filter(|slot| slot.leads_on()) else { return Ok(()) };
            return self.look(slot, elements, |entry| room::push(reached, entry), |_, _| ());
        }
        if entry & STRING != 0 {
            return self.is_same_text(row);
        }
        let at = at - 1;
        let object = tables.classes[at].objects[row];
        self.is_as_known(at, object)?;
        let class = &plan.classes[at];
        for (lead, field) in class.leads.iter().enumerate() {
            let value = self.readers[at][lead].get(object, class.raw);
            self.look(&class.fields[*field].slot, &[value], |entry| room::push(reached, entry), |_, _| ())?;
        }
        Ok(())
    }
}
