//! The part of a walk that workers do.
//!
//! Here: numbering the elements of a long base array, and reading the slots of many objects and arrays. A worker
//! reports which values are not known yet. The Ruby thread follows these in the order in which it would have met them
//! itself. Where the slots of a class lead to different tables, it follows slot by slot. Where there are many new
//! values, workers enter them in the same order ([`super::reservations`]). So rows are the same with any number of
//! workers, and uniform strides are preserved. Not here: how a value is followed ([`super::walk`]).

use super::reservations::New;
use super::walk::Tracer;
use super::{CHUNK, GuardFailure, MAX_ROWS, NO_CLASS, Result, Tables};
use crate::marshal::plan::SlotPlan;
use crate::ruby::gvl;
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::identity::{Found, IdentityMap, TOGETHER, WordMap};
use crate::ruby::workers::{self, Lists, PIECE, Span};
use ikra_core::memory::room;
use smallvec::SmallVec;

/// Slots, or elements, that workers read between two turns of the Ruby thread. Several workers report the same unknown
/// values. With enough threads to enter new values themselves, there are four times as many, because workers wait for
/// each other four times.
fn window() -> usize {
    if several() { 64 * PIECE } else { 16 * PIECE }
}

/// Rows that the Ruby thread follows by itself at first, and as long as most of what they lead to is new. It must read
/// new objects again after workers have, and reading takes less time than a report. What it read is then in the
/// workers' caches.
///
/// With enough threads to enter new values, workers read first. They do so again after the Ruby thread has followed the
/// second number of rows, where they met values that only that thread can enter.
const FIRST_ALONE: usize = PIECE;
const ALONE: usize = 64 * PIECE;
/// The fewest threads with which it pays to go over elements twice, to count and to number them.
const ENOUGH: usize = 4;
/// The fewest threads that enter new values faster than the Ruby thread alone, where objects lie in order.
const SEVERAL: usize = 6;
/// Where less than one in so many values is new, the Ruby thread follows them.
const NEW: usize = 8;

fn several() -> bool {
    workers::THREADS.count() >= SEVERAL
}

/// The counts of the elements of one piece.
struct Counted {
    /// How many there are of each class.
    objects: Vec<usize>,
    /// How many are in each region of the heap.
    regions: WordMap<usize, usize>,
}

impl Counted {
    fn add(&mut self, (region, count): (usize, usize)) {
        if count > 0 {
            *self.regions.entry(region).or_default() += count;
        }
    }
}

impl Tracer<'_> {
    /// Gives rows to elements, none of which is known yet. False where there are few, or where some are no objects, or
    /// occur twice.
    pub fn elements_beside(
        &mut self,
        slot: &SlotPlan,
        values: &[Raw],
        rows: &mut [u32],
        classes: &mut [u16],
    ) -> Result<bool> {
        if self.plan.grouped || !workers::pays(values.len()) || workers::THREADS.count() < ENOUGH {
            return Ok(false);
        }
        let pieces = values.chunks(PIECE).zip(classes.chunks_mut(PIECE)).collect();
        let counted = workers::map(values.len(), pieces, |(values, classes)| self.count(slot, values, classes));
        let counted: Option<Vec<Counted>> = counted.into_iter().collect::<Result<_>>()?;
        let Some(counted) = counted else { return Ok(false) };
        let mut regions: WordMap<usize, usize> = WordMap::default();
        for (region, count) in counted.iter().flat_map(|piece| &piece.regions) {
            *regions.entry(*region).or_default() += count;
        }
        let counts = |class: usize| counted.iter().any(|piece| piece.objects[class] > 0);
        let some = (0..self.plan.classes.len()).filter(|class| counts(*class));
        self.tables.map.reserve(&regions, some.map(|class| class as u32 + 1));
        // By class, the row where the objects of each piece begin.
        let mut next: Vec<usize> = self.tables.classes.iter().map(|rows| rows.objects.len()).collect();
        let mut starts = Vec::with_capacity(counted.len());
        for piece in &counted {
            starts.push(next.clone());
            next.iter_mut().zip(&piece.objects).for_each(|(next, count)| *next += count);
        }
        if next.iter().any(|rows| *rows >= MAX_ROWS) {
            return Err(GuardFailure::TooMany);
        }
        let mut tails = Vec::with_capacity(next.len());
        for ((rows, class), len) in self.tables.classes.iter_mut().zip(&self.plan.classes).zip(&next) {
            if class.ownable {
                room::resize(&mut rows.claimed, *len, false);
            }
            // Workers are the first to touch this memory.
            tails.push(rows.objects.add(*len - rows.objects.len()));
        }
        let map = &self.tables.map;
        let places = values.chunks(PIECE).zip(classes.chunks(PIECE)).zip(rows.chunks_mut(PIECE));
        let mut pieces = Vec::with_capacity(counted.len());
        for ((place, piece), starts) in places.zip(&counted).zip(starts) {
            let mut objects = Vec::with_capacity(tails.len());
            for (tail, count) in tails.iter_mut().zip(&piece.objects) {
                let (own, rest) = std::mem::take(tail).split_at_mut(*count);
                objects.push((own, 0));
                *tail = rest;
            }
            pieces.push((place, objects, starts));
        }
        let alone = workers::map(values.len(), pieces, |(((values, classes), rows), mut objects, starts)| {
            let mut alone = true;
            let mut found = [Found::default(); TOGETHER];
            let rows = rows.chunks_mut(TOGETHER);
            for ((values, classes), rows) in values.chunks(TOGETHER).zip(classes.chunks(TOGETHER)).zip(rows) {
                map.look_all(values, &mut found);
                let places = values.iter().zip(&found).zip(classes).zip(rows);
                for (((value, found), class), row) in places.filter(|((_, class), _)| **class != NO_CLASS) {
                    let class = usize::from(*class);
                    let (objects, next) = &mut objects[class];
                    *row = (starts[class] + *next) as u32;
                    objects[*next] = *value;
                    *next += 1;
                    alone &= map.claim(*value, *found, (class as u64 + 1) << 32 | u64::from(*row));
                }
            }
            alone
        });
        // An element was known, or occurs twice.
        if alone.contains(&false) { Err(GuardFailure::Value) } else { Ok(true) }
    }

    /// Finds the classes of elements. None where some need a row but are no objects.
    fn count(&self, slot: &SlotPlan, values: &[Raw], classes: &mut [u16]) -> Result<Option<Counted>> {
        let mut counted = Counted { objects: vec![0; self.plan.classes.len()], regions: WordMap::default() };
        let (mut last, mut region) = ((0, 0), (0, 0));
        for (values, classes) in values.chunks(CHUNK).zip(classes.chunks_mut(CHUNK)) {
            classes.fill(NO_CLASS);
            values.iter().filter(|value| !heap::is_immediate(**value)).for_each(|value| heap::prefetch(*value));
            for (value, out) in values.iter().zip(classes) {
                if heap::is_immediate(*value) {
                    continue;
                }
                let is_hash = heap::is_hash(*value);
                if !is_hash && !heap::is_object(*value) {
                    return Ok(None);
                }
                let word = heap::class_word(*value);
                if last.0 != word {
                    last = (word, *self.plan.class_index.get(&word).ok_or(GuardFailure::Value)? as usize);
                }
                let class = last.1;
                if is_hash && self.plan.classes[class].laid_out {
                    return Ok(None);
                }
                let frozen = self.plan.classes[class].must_not_be_frozen && heap::is_frozen(*value);
                if !slot.takes(class) || frozen {
                    return Err(GuardFailure::Value);
                }
                *out = class as u16;
                counted.objects[class] += 1;
                let own = IdentityMap::region(*value);
                if region.0 != own {
                    counted.add(region);
                    region = (own, 0);
                }
                region.1 += 1;
            }
        }
        counted.add(region);
        Ok(Some(counted))
    }

    /// Follows the slots of a class's objects from `row` on, as long as there are many. Gives the next row.
    pub fn objects_beside(&mut self, at: usize, mut row: usize) -> Result<usize> {
        let plan = self.plan;
        let class = &plan.classes[at];
        // Rows that the Ruby thread follows before workers read. 0: workers read first.
        let mut alone = if several() { 0 } else { FIRST_ALONE };
        while workers::pays(self.tables.classes[at].objects.len() - row) {
            if alone > 0 {
                let (before, first) = (self.tables.rows(), row);
                row = self.objects_alone(at, row, row + alone)?;
                let is_new = (self.tables.rows() - before) * 2 > (row - first) * class.leads.len();
                alone = if is_new && !several() { ALONE } else { 0 };
                continue;
            }
            let objects = &self.tables.classes[at].objects[row..];
            let objects = &objects[..objects.len().min((window() / class.leads.len()).max(PIECE))];
            row += objects.len();
            let some = heap::sample(objects);
            self.readers[at].iter_mut().for_each(|reader| reader.learn(&some, class.raw));
            let (this, readers) = (&*self, &self.readers[at]);
            let slots: Vec<&SlotPlan> = class.leads.iter().map(|field| &class.fields[*field].slot).collect();
            let seen = workers::map(objects.len(), objects.chunks(PIECE).collect(), |objects: &[Raw]| {
                let mut unknown = this.spare();
                let mut values = [heap::NIL; CHUNK];
                for (chunk, objects) in objects.chunks(CHUNK).enumerate() {
                    let first = chunk * CHUNK;
                    heap::prefetch_all(objects.iter().copied());
                    let values = &mut values[..objects.len()];
                    let (before, mut unread) = (unknown.len(), false);
                    for (lead, (reader, slot)) in readers.iter().zip(&slots).enumerate() {
                        if !reader.peek_all(objects, class.raw, values) {
                            for (i, object) in objects.iter().enumerate() {
                                values[i] = reader.peek(*object, class.raw).unwrap_or_else(|| {
                                    unread = true;
                                    room::push(&mut unknown, New::unread(first + i, lead, *object));
                                    heap::NIL
                                });
                            }
                        }
                        this.unknown(slot, values, |i| {
                            room::push(&mut unknown, New::seen(first + i, lead, values[i]))
                        })?;
                    }
                    // Slots that lead to different tables have rows of their own. The values of one slot are in order.
                    if slots.len() > 1 || unread {
                        unknown[before..].sort_unstable_by_key(|new| {
                            let (at, lead) = (new.place, u32::from(new.lead));
                            if class.apart { (lead, at) } else { (at, lead) }
                        });
                    }
                }
                Ok(unknown)
            });
            let looked_at = objects.len() * slots.len();
            let mut seen: Vec<Vec<New>> = seen.into_iter().collect::<Result<_>>()?;
            let new: usize = seen.iter().map(Vec::len).sum();
            if several() && new * NEW > looked_at && self.enter_beside(&slots, &mut seen)? {
                self.keep(seen);
                continue;
            }
            for unknown in &seen {
                gvl::poll();
                let runs = unknown.chunk_by(|new, next| !class.apart || new.lead == next.lead);
                for unknown in runs.flat_map(|run| run.chunks(TOGETHER)) {
                    let mut values = [heap::NIL; TOGETHER];
                    for (new, value) in unknown.iter().zip(&mut values) {
                        let reader = &mut self.readers[at][usize::from(new.lead)];
                        *value = if new.is_unread() { reader.get(new.value, class.raw) } else { new.value };
                    }
                    let of: SmallVec<[&SlotPlan; TOGETHER]> =
                        unknown.iter().map(|new| slots[usize::from(new.lead)]).collect();
                    self.follow_all(&of, &values[..unknown.len()], false, |_| Ok(()))?;
                }
            }
            self.keep(seen);
            if new * 2 > looked_at {
                alone = ALONE;
            }
        }
        Ok(row)
    }

    /// The same for the elements of a kind's arrays.
    pub fn arrays_beside(&mut self, at: usize, mut row: usize, slot: &SlotPlan) -> Result<usize> {
        // As for objects.
        let mut alone = if several() { 0 } else { FIRST_ALONE as u64 };
        loop {
            let rows = &self.tables.kinds[at];
            let first = rows.offsets.get(row).map_or(rows.rows, |offset| u64::from(*offset));
            if !workers::pays((rows.rows - first) as usize) {
                return Ok(row);
            }
            if alone > 0 {
                let (before, last) = (self.tables.rows(), first + alone);
                let place =
                    |tables: &Tables, row: usize| tables.kinds[at].offsets.get(row).map(|offset| u64::from(*offset));
                while place(self.tables, row).is_some_and(|offset| offset < last) {
                    row += self.arrays(at, row, slot)?;
                }
                let end = place(self.tables, row).unwrap_or(self.tables.kinds[at].rows);
                let is_new = (self.tables.rows() - before) as u64 * 2 > end - first;
                alone = if is_new && !several() { ALONE as u64 } else { 0 };
                continue;
            }
            let end = rows.offsets.partition_point(|offset| u64::from(*offset) <= first + window() as u64).max(row + 1);
            let (begin, pieces) = (row, workers::lists(&rows.lengths[row..end]));
            row = end;
            // One array may have more elements than are read together.
            for pieces in pieces.chunks(window() / PIECE) {
                let (this, rows) = (&*self, &self.tables.kinds[at]);
                let (arrays, lengths) = (&rows.arrays[begin..end], &rows.lengths[begin..end]);
                let total = pieces.iter().flat_map(|lists| lists.spans(lengths)).map(|span| span.len).sum();
                let seen =
                    workers::map(total, pieces.iter().collect(), |lists| this.look(slot, arrays, lengths, lists));
                let mut seen: Vec<Vec<New>> = seen.into_iter().collect::<Result<_>>()?;
                let new: usize = seen.iter().map(Vec::len).sum();
                if several() && new * NEW > total && self.enter_beside(&[slot], &mut seen)? {
                    self.keep(seen);
                    continue;
                }
                for some in seen.iter().flat_map(|unknown| unknown.chunks(TOGETHER)) {
                    gvl::poll();
                    let mut values = [heap::NIL; TOGETHER];
                    values.iter_mut().zip(some).for_each(|(value, new)| *value = new.value);
                    self.follow_all(&[slot], &values[..some.len()], false, |_| Ok(()))?;
                }
                self.keep(seen);
                if new * 2 > total {
                    alone = ALONE as u64;
                }
            }
        }
    }

    /// The unknown values among the elements of some arrays.
    fn look(&self, slot: &SlotPlan, arrays: &[Raw], lengths: &[u32], lists: &Lists) -> Result<Vec<New>> {
        let mut unknown = self.spare();
        // Several short arrays, or parts of one.
        let (mut values, mut count) = ([heap::NIL; TOGETHER], 0);
        lists.spans(lengths).for_each(|span| heap::prefetch(arrays[span.list]));
        for Span { list, from, len } in lists.spans(lengths) {
            // A buffer holds numbers, which lead nowhere.
            if heap::see(arrays[list]) != Seen::Array {
                continue;
            }
            for value in &heap::elements(arrays[list])[from..from + len] {
                if count == TOGETHER {
                    self.unknown(slot, &values, |i| room::push(&mut unknown, New::seen(0, 0, values[i])))?;
                    count = 0;
                }
                values[count] = *value;
                count += 1;
            }
        }
        self.unknown(slot, &values[..count], |i| room::push(&mut unknown, New::seen(0, 0, values[i])))?;
        Ok(unknown)
    }

    /// An empty list. It reuses the memory of a kept one, if there is any.
    fn spare(&self) -> Vec<New> {
        self.spare.lock().pop().unwrap_or_default()
    }

    /// Keeps lists for later use: touching new pages takes longer than filling them.
    fn keep(&self, mut lists: Vec<Vec<New>>) {
        lists.iter_mut().for_each(Vec::clear);
        self.spare.lock().append(&mut lists);
    }

    /// Passes to `tell` the positions of a slot's values that are to be followed.
    #[inline]
    fn unknown(&self, slot: &SlotPlan, values: &[Raw], mut tell: impl FnMut(usize)) -> Result<()> {
        self.tables.map.each(values, |i, entry| {
            if entry != 0 {
                // Ownership is noted when an object is first met, and checked here.
                self.check_slot(slot, entry, false)?;
            } else if !heap::is_immediate(values[i]) {
                tell(i);
            }
            Ok(())
        })
    }
}
