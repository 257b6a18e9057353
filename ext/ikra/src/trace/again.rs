//! The tables of an earlier call, for what is there now.
//!
//! Here: [`Tables::again`], which finds out whether a walk from the base array and the roots would reach just what these tables
//! have, by all cores where there is much. Not here: who keeps tables between calls ([`crate::kept`]), and numbers and other values that
//! lead nowhere, which packing checks at every call. What is looked at is packed on the way, as long as it is in the cache ([`TableColumns`]).
//!
//! # What is checked
//!
//! Tables that wait hold nothing: what they name may be gone, or something else may be in its place. So nothing in them is looked at
//! before something that is alive was seen to refer to it: the elements and roots first, then what these refer to, and so on. Of whatever is reached,
//!
//! * its address is in the tables, its class is the one that the tables say (a singleton class is another), and the slot takes that class;
//! * an array has the length, and a String the length and encoding, that the tables have room for;
//! * what programs write is not frozen;
//! * what a slot owns is reached through that slot alone, and no element is there twice.
//!
//! In the end everything in the tables was reached. Then they are what a walk would make of it now, but for the order of rows, which
//! nothing depends on: not which error is told, nor the order of jobs or of what is written. What refers to what may have changed. Where anything is not so, the walk
//! is done anew.

use super::order::{Guess, Order, PieceOrder};
use super::{ARRAY, ARRAY_CLASS, CHUNK, NO_CLASS, STRING, Tables};
use crate::crew::{self, Lists, PIECE, Span};
use crate::gvl;
use crate::heap::{self, FieldReader, Raw, Seen};
use crate::made::Room;
use crate::pack::{ArraySheet, ArraysAlong, Lender, NO_ID, ObjectSheet, ObjectsAlong, TableColumns};
use crate::plan::{Plan, SlotPlan};
use ikra_core::ir::Program;
use ikra_core::memory::room;
use ikra_core::memory::table::Table;
use ikra_core::types::{Prims, StrWord};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// What there is differs from what the tables have.
pub(super) struct Differs;

type Result<T> = std::result::Result<T, Differs>;

/// So many that wait are worth waking workers for.
const SEVERAL: usize = 256;
/// How many of them are a worker's at a time.
const FEW: usize = crew::GROUP;

/// Reached, from anywhere.
const SHARED: u8 = 1;
/// Reached through the slot that owns it.
const OWNED: u8 = 2;
/// It was looked at.
const DONE: u8 = 4;

/// By row: what is known of it. Goes from 0 to reached by one exchange, and on to done by whoever looks at it.
struct States {
    rows: Table<AtomicU8>,
    /// Nobody else exchanges anything: then none need be locked, which would be a ninth of a check.
    alone: bool,
}

impl States {
    fn new(rows: usize) -> Self {
        let mut states = Table::unset(rows);
        states.iter_mut().for_each(|state| *state = AtomicU8::default());
        Self { rows: states, alone: crew::THREADS.count() == 1 }
    }
    /// Whether it was reached already, and others may reach it, too.
    #[inline]
    fn is_shared(&self, row: usize) -> bool {
        self.rows[row].load(Relaxed) & SHARED != 0
    }
    /// True for the first who reaches it.
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
    /// By the only one who looks at the row, after it was reached.
    #[inline]
    fn done(&self, row: usize) {
        self.rows[row].store(self.rows[row].load(Relaxed) | DONE, Relaxed);
    }
    fn count(&mut self, bits: u8) -> usize {
        let count_few = |states: &mut [AtomicU8]| -> u8 {
            states.iter_mut().map(|state| u8::from(*state.get_mut() & bits != 0)).sum()
        };
        // as many at a time as a byte can count, so that bytes are all that is added
        self.rows.chunks_mut(u8::MAX.into()).map(|states| usize::from(count_few(states))).sum()
    }
}

struct Checker<'a> {
    plan: &'a Plan,
    tables: &'a Tables,
    /// By class, for each slot that leads on.
    readers: Vec<Vec<FieldReader>>,
    classes: Vec<States>,
    kinds: Vec<States>,
    strings: States,
}

/// Whether what an entry is about is looked at in any case.
type Comes<'a> = dyn Fn(u64) -> bool + Sync + 'a;

/// What a check found out about the elements.
#[derive(Default)]
struct Checked {
    /// Their rows and classes, if anybody asks for them.
    rows: Table<u32>,
    classes: Table<u16>,
    /// How they stand, if they do not stand as they did.
    order: Option<Order>,
    stand: bool,
}

/// Elements that were found.
#[derive(Default)]
struct Elements {
    /// Entries of those to look at, where they are not many, and of Strings.
    reached: Vec<u64>,
    /// How many have a row.
    count: usize,
    order: PieceOrder,
}

/// What workers give back of a piece.
#[derive(Default)]
struct Piece {
    /// Entries of what was reached for the first time.
    reached: Vec<u64>,
    /// Entries of what the Ruby thread is to look at.
    left: Vec<u64>,
    /// By class, rows that are not packed.
    objects_left: Vec<(usize, Vec<u32>)>,
    /// Arrays that are not.
    arrays_left: Vec<Span>,
}

impl Tables {
    /// Makes tables of an earlier call those of what is there now, numbered as they are, and packs what it comes by; None where that cannot be, and they are
    /// void.
    #[allow(clippy::too_many_arguments, reason = "what is traced, and what is packed meanwhile")]
    pub fn again(
        &mut self,
        plan: &Plan,
        program: &Program,
        base: Option<&[Raw]>,
        roots: &[Raw],
        room: &Room,
        lender: Lender<'_>,
        unknown: &Mutex<Vec<Raw>>,
    ) -> Option<TableColumns> {
        self.number(plan, room).ok()?;
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

/// Makes lists of what belongs to some rows such of all rows: others have what one of these has.
fn spread(all: &Range<usize>, rows: &[usize], objects: &mut Vec<Raw>, ids: &mut [[u32; CHUNK]]) {
    let mut before = rows.len();
    objects.resize(all.len(), heap::NIL);
    if before == all.len() {
        return;
    }
    // from the last on, so that nothing is written over that is to be read: no list gets shorter in front of a row
    for (at, row) in all.clone().enumerate().rev() {
        while before > 1 && rows[before - 1] > row {
            before -= 1;
        }
        objects[at] = objects[before - 1];
        ids.iter_mut().for_each(|ids| ids[at] = ids[before - 1]);
    }
}

/// Where what is looked at is packed to.
struct Packing<'a> {
    program: &'a Program,
    columns: &'a mut TableColumns,
    unknown: &'a Mutex<Vec<Raw>>,
    lender: Lender<'a>,
}

impl<'a> Checker<'a> {
    fn new(plan: &'a Plan, tables: &'a Tables) -> Self {
        let readers = |class: &crate::plan::ClassPlan| {
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
            // a program that goes over all rows has no place for what has none
            if !plan.grouped && different != found.count || plan.whole && found.count != base.len() {
                return Err(Differs);
            }
            reached = found.reached;
            // an element that is there twice is looked at once
            if plan.grouped {
                reached.sort_unstable();
                reached.dedup();
            }
            many = crew::many(base.len());
        }
        for (slot, root) in plan.roots.iter().zip(roots) {
            self.look(slot, &[*root], |entry| room::push(&mut reached, entry), |_, _| ())?;
        }
        self.settle(reached, Some(packing).filter(|_| many))?;
        let all = |states: &mut States| states.count(DONE) == states.rows.len();
        let whole = self.classes.iter_mut().chain(&mut self.kinds).chain([&mut self.strings]).all(all);
        if whole { Ok(checked) } else { Err(Differs) }
    }

    /// Finds the rows of the elements, if anybody asks for them, and how they stand.
    fn elements(&self, slot: &SlotPlan, base: &[Raw], checked: &mut Checked) -> Result<Elements> {
        let Checked { rows, classes, .. } = checked;
        let few = !crew::many(base.len());
        let mut places = rows.chunks_mut(PIECE).zip(classes.chunks_mut(PIECE));
        let pieces = base.chunks(PIECE).enumerate().map(|(piece, values)| (piece, values, places.next()));
        let found = crew::map(base.len(), pieces.collect(), |(piece, values, places)| {
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

    /// Whether the elements of a piece stand as they did.
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
        let (mut found, mut strings) = (Elements::default(), Vec::new());
        found.order = PieceOrder::of(if few { 0 } else { values.len() });
        let mut place = |i: usize, entry: u64| {
            found.count += 1;
            room::extend(&mut found.reached, Some(entry).filter(|_| few));
            found.order.add(i, entry);
            let (states, row) = self.states(entry);
            // nobody else is looking yet; who is there twice is found by counting
            states.rows[row].store(SHARED, Relaxed);
            if let (Some(row), Some(class)) = (rows.get_mut(i), classes.get_mut(i)) {
                *row = entry as u32;
                *class = if entry & ARRAY != 0 { ARRAY_CLASS } else { (entry >> 32) as u16 - 1 };
            }
        };
        let mut guess = Guess::of(self.tables);
        let (mut missed, mut at) = (Vec::with_capacity(CHUNK), Vec::with_capacity(CHUNK));
        for (chunk, some) in values.chunks(CHUNK).enumerate() {
            missed.clear();
            at.clear();
            for (i, value) in (chunk * CHUNK..).zip(some) {
                match guess.entry(*value) {
                    Some(entry) => place(i, entry),
                    None => (missed.push(*value), at.push(i)).1,
                }
            }
            self.tables.map.each(&missed, |i, entry| {
                let Some(entry) = self.entry(slot, missed[i], entry)? else { return Ok(()) };
                if entry & STRING != 0 {
                    room::push(&mut strings, entry);
                    return self.reach(slot, missed[i], entry).map(drop);
                }
                if self.named(entry) != missed[i] {
                    return Err(Differs);
                }
                place(at[i], entry);
                guess.learn(entry);
                Ok(())
            })?;
        }
        room::extend(&mut found.reached, strings);
        Ok(found)
    }

    /// The entry of what a slot holds, as the map has it; None for what leads nowhere.
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
        // a Range in a launch parameter may have a row as what something else refers to
        if fits { Ok(Some(entry)) } else { Self::leads_nowhere(slot, value).map(|()| None) }
    }

    /// Makes sure that what is not in the map need not be there.
    fn leads_nowhere(slot: &SlotPlan, value: Raw) -> Result<()> {
        match heap::see(value) {
            Seen::Object | Seen::Array | Seen::Buffer | Seen::Str | Seen::Hash | Seen::Number => Err(Differs),
            // one in a launch parameter has no row
            Seen::Struct if !slot.prims.intersects(Prims::RANGE) => Err(Differs),
            // as the walk: what else there is is checked when it is packed
            _ => Ok(()),
        }
    }

    /// The state of what an entry is about.
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

    /// What an entry is about.
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
        // The map tells objects apart that are alive together. Once it is known that this one is alive, nobody else has its entry; and before
        // that, no worker may hear that it was reached and look at it.
        if states.is_new(row) && self.named(entry) != value {
            return Err(Differs);
        }
        // nobody writes to Strings, so nobody owns one
        states.reach(row, slot.owned && entry & STRING == 0)
    }

    /// Reaches values that a slot holds. `new` hears of those that were not reached before, `each` of the entry of every one, 0 where there is none.
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

    /// Looks at everything that was reached, and at what that leads to. `packing`: there are more than these, which are packed.
    fn settle(&mut self, mut reached: Vec<u64>, packing: Option<Packing<'_>>) -> Result<()> {
        if let Some(packing) = packing {
            self.all_that_wait(&mut reached, packing)?;
            // to some it came already
            reached.retain(|entry| self.waits(*entry));
        }
        loop {
            if reached.len() >= SEVERAL {
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

    /// Workers look at all of these; what they reached.
    fn round(&mut self, waiting: &[u64]) -> Result<Vec<u64>> {
        let this = &*self;
        let found = crew::share(waiting.chunks(FEW).collect(), |waiting: &[u64]| {
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

    /// What a worker gives back: the Ruby thread looks at what was left to it.
    fn keep(&mut self, Piece { reached: more, left, .. }: Piece, reached: &mut Vec<u64>) -> Result<()> {
        room::extend(reached, more);
        left.into_iter().try_for_each(|entry| self.expand(entry, reached))
    }

    /// Workers look at everything that waits, class after class and kind after kind. Added to `reached` is what that reached, but for what they come to
    /// anyway.
    fn all_that_wait(&mut self, reached: &mut Vec<u64>, mut packing: Packing<'_>) -> Result<()> {
        // Elements of all classes lie among each other. Whoever else waits is looked for class by class, so that those are found to whom classes before lead.
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

    /// The objects of some classes that wait, in the order of rows, which is about the order in which they lie in memory. `comes`: the round comes to it.
    fn objects(
        &mut self,
        some: &[usize],
        comes: &Comes<'_>,
        reached: &mut Vec<u64>,
        packing: &mut Packing<'_>,
    ) -> Result<()> {
        // readers learn the forms of some that are alive
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
        let pieces = crew::side_by_side(&lengths);
        let Packing { program, columns, unknown, .. } = packing;
        let (along, sheets) =
            columns.objects_along(this.plan, program, this.tables, unknown, (some, &alive), pieces.clone());
        let found = crew::map(lengths.iter().sum(), pieces.into_iter().zip(sheets).collect(), |(piece, sheets)| {
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
                // all but those of forms that are not known
                let known = |object| readers.iter().all(|reader| reader.peek(object, class.raw).is_some());
                let left = waiting.iter().filter(|row| !known(objects[**row]));
                room::extend(&mut piece.left, left.map(|row| (at as u64 + 1) << 32 | *row as u64));
                waiting.retain(|row| known(objects[*row]));
                some.retain(|object| known(*object));
                let all = read(&some);
                debug_assert!(all, "each was peeked at");
            }
            for ((lead, values), ids) in class.leads.iter().zip(values.chunks(CHUNK)).zip(&mut ids) {
                let new = |entry| room::extend(&mut piece.reached, Some(entry).filter(|entry| !comes(*entry)));
                self.look(&class.fields[*lead].slot, &values[..some.len()], new, |i, entry| ids[i] = self.id(entry))?;
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

    /// The id of an object by its entry; of anything else [`NO_ID`].
    #[inline]
    fn id(&self, entry: u64) -> u32 {
        // arrays and Strings have bits that no class has
        let class = (entry as usize >> 32).checked_sub(1);
        let base = class.and_then(|class| self.tables.bases.get(class));
        base.map_or(NO_ID, |base| base.wrapping_add(entry as u32))
    }

    /// The arrays of a kind that wait; long ones in parts.
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
        let (along, sheets) = match columns.arrays_along(this.plan, this.tables, unknown, at, &pieces) {
            Some((along, sheets)) => (Some(along), sheets),
            None => (None, Vec::new()),
        };
        let mut sheets = sheets.into_iter();
        let pieces = pieces.iter().map(|lists| (lists, sheets.next())).collect();
        let found = crew::map(rows.rows as usize + rows.arrays.len(), pieces, |(lists, sheet)| {
            this.some_arrays(at, comes, lists, along.as_ref().zip(sheet))
        });
        let is_packed = along.is_some();
        // who looks at a part of an array does not know whether others have looked at theirs
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

    /// Whether an object that is alive is one of a class of the plan still.
    #[inline]
    fn is_as_known(&self, at: usize, object: Raw) -> Result<()> {
        let class = &self.plan.classes[at];
        let as_known = heap::class_word(object) == class.raw;
        if as_known && !(class.must_not_be_frozen && heap::is_frozen(object)) { Ok(()) } else { Err(Differs) }
    }

    /// The elements of an array that is alive; None for a buffer.
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

    /// Looks at one that is alive, or leaves it.
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
            room::push(left, entry);
        } else {
            let (at, object) = (at - 1, self.tables.classes[at - 1].objects[row]);
            self.is_as_known(at, object)?;
            let (class, readers) = (&self.plan.classes[at], &self.readers[at]);
            // what is left is looked at as a whole
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

    /// Looks at one that is alive; for the Ruby thread.
    fn expand(&mut self, entry: u64, reached: &mut Vec<u64>) -> Result<()> {
        let (plan, tables) = (self.plan, self.tables);
        let (at, row) = ((entry & !ARRAY) as usize >> 32, entry as u32 as usize);
        if entry & ARRAY != 0 {
            let Some(elements) = self.elements_of(at, row)? else {
                let rows = &tables.kinds[at];
                let (_, buffer) = crate::buffer::of(rows.arrays[row]).ok_or(Differs)?;
                let fits = rows.buffers && buffer.len() == rows.lengths[row] as usize;
                return if fits { Ok(()) } else { Err(Differs) };
            };
            let Some(slot) = plan.kinds[at].slot.as_ref().filter(|slot| slot.leads_on()) else { return Ok(()) };
            return self.look(slot, elements, |entry| room::push(reached, entry), |_, _| ());
        }
        if entry & STRING != 0 {
            let (string, word) = (tables.strings.strings[row], tables.strings.words[row]);
            if heap::class_word(string) != plan.string_class {
                return Err(Differs);
            }
            let (bytes, encoding) = (heap::bytes(string), heap::encoding(string).ok_or(Differs)?);
            let fits =
                bytes.len() <= StrWord::MOST_BYTES && StrWord::new(word.offset(), bytes.len(), encoding, false) == word;
            return if fits { Ok(()) } else { Err(Differs) };
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
