//! The part of a walk that workers do where most values are new.
//!
//! Here: giving rows to new objects and arrays, by all workers at once, through deterministic reservations
//! ([`crate::ruby::identity`]'s `reservations`). Each worker reserves what it meets with its place in the order of a
//! walk by one thread. The least place wins. The number of winners before it, of the same class or kind, is its row. So
//! rows are those of a walk by one thread. Not here: how new values are found ([`super::beside`]). A window with
//! Strings, Hashes that are laid out, buffers or values that fail a guard is left to the Ruby thread.

use super::walk::{Tracer, make_room};
use super::{ARRAY, GuardFailure, Result, Tables};
use crate::marshal::plan::SlotPlan;
use crate::ruby::heap::{self, Raw};
use crate::ruby::identity::{Found, IdentityMap, MAX_PLACES, RawMap, TOGETHER, WordMap};
use crate::ruby::workers;
use ikra_core::memory::room;
use ikra_core::types::Prims;

/// A slot's value that is not known yet.
pub(super) struct New {
    /// The value, or the object whose slot a worker could not read.
    pub value: Raw,
    /// First the index of its object in a piece, then its index among all new values.
    pub place: u32,
    found: Found,
    /// The length of an array.
    len: u32,
    /// The table that it belongs to: that of a class, or, after those, of a kind.
    table: u16,
    /// The index of the slot.
    pub lead: u16,
}

/// The table of a slot that a worker could not read.
const UNREAD: u16 = u16::MAX;

impl New {
    pub fn seen(at: usize, lead: usize, value: Raw) -> Self {
        Self { value, place: at as u32, found: Found::default(), len: 0, table: 0, lead: lead as u16 }
    }
    /// A slot of an object that is to be read.
    pub fn unread(at: usize, lead: usize, object: Raw) -> Self {
        Self { table: UNREAD, ..Self::seen(at, lead, object) }
    }
    pub fn is_unread(&self) -> bool {
        self.table == UNREAD
    }
}

/// Numbers of rows of one table.
#[derive(Clone, Copy, Default)]
struct Count {
    rows: usize,
    /// Numbers of elements of arrays.
    elements: u64,
}

impl Count {
    fn add(&mut self, new: &New) {
        self.rows += 1;
        self.elements += u64::from(new.len).max(1);
    }
}

/// The new values of one worker, in order.
struct Piece<'a> {
    new: &'a mut Vec<New>,
    /// By table.
    counts: Vec<Count>,
    /// How many values are in each region that is not full.
    coming: WordMap<usize, usize>,
    /// The indices of these values among the new ones.
    apart: Vec<usize>,
    /// Values for which another reservation won, with the index of their slot.
    late: Vec<(u16, Raw)>,
}

/// The rows of one table that a piece writes.
#[derive(Default)]
struct Part<'a> {
    values: &'a mut [Raw],
    /// Empty where no slot owns any.
    claimed: &'a mut [bool],
    /// The offsets of arrays.
    offsets: &'a mut [u32],
    lengths: &'a mut [u32],
    /// The number of rows that are written.
    count: usize,
    /// The word of the first row, and the first element of the next array.
    first: u64,
    element: u64,
}

impl<'a> Part<'a> {
    /// Splits off the first rows.
    fn split(&mut self, count: Count) -> Self {
        fn cut<'a, T>(rows: &mut &'a mut [T], count: usize) -> &'a mut [T] {
            let count = count.min(rows.len());
            let (own, rest) = std::mem::take(rows).split_at_mut(count);
            *rows = rest;
            own
        }
        let part = Self {
            values: cut(&mut self.values, count.rows),
            claimed: cut(&mut self.claimed, count.rows),
            offsets: cut(&mut self.offsets, count.rows),
            lengths: cut(&mut self.lengths, count.rows),
            ..*self
        };
        self.first += count.rows as u64;
        self.element += count.elements;
        part
    }
    /// Writes the next row. Gives its word.
    #[inline]
    fn write(&mut self, new: &New, owned: bool) -> u64 {
        let at = self.count;
        self.count += 1;
        self.values[at] = new.value;
        if let Some(claimed) = self.claimed.get_mut(at) {
            *claimed = owned;
        }
        if let (Some(offset), Some(length)) = (self.offsets.get_mut(at), self.lengths.get_mut(at)) {
            (*offset, *length) = (self.element as u32, new.len);
            self.element += u64::from(new.len).max(1);
        }
        self.first + at as u64
    }
}

impl Tracer<'_> {
    /// Gives rows to the values that workers met in these slots, `seen`. False where workers cannot enter them. Then
    /// nothing has rows, though regions and codes for their words may have been made.
    pub(super) fn enter_beside(&mut self, slots: &[&SlotPlan], seen: &mut [Vec<New>]) -> Result<bool> {
        let total = seen.iter().map(Vec::len).sum();
        if !workers::pays(total) || total > MAX_PLACES {
            return Ok(false);
        }
        let this = &*self;
        let placed = seen.iter_mut().scan(0, |next, unknown| {
            let place = *next;
            *next += unknown.len();
            Some((unknown, place))
        });
        let told = workers::map(total, placed.collect(), |(new, place)| this.tell_apart(slots, new, place as u32));
        let Some(mut pieces) = told.into_iter().collect::<Option<Vec<Piece>>>() else {
            return Ok(false);
        };
        if self.prepare(&pieces).is_none_or(|others| others * 4 > total) {
            return Ok(false);
        }
        self.reserve(slots, total, &mut pieces);
        let apart = self.give_rows(slots, total, &pieces)?;
        let full = pieces.iter().map(|piece| piece.new.len() - piece.apart.len()).sum();
        self.tables.map.gave(full);
        apart.into_iter().for_each(|(value, word)| _ = self.tables.map.enter(value, word));
        // Such an object may be owned, or be of another kind.
        for (lead, value) in pieces.iter().flat_map(|piece| &piece.late) {
            self.check_slot(slots[usize::from(*lead)], self.tables.map.get(*value), false)?;
        }
        Ok(true)
    }

    /// Classifies the new values, in pieces. None where workers cannot enter some of them.
    fn tell_apart<'b>(&self, slots: &[&SlotPlan], all: &'b mut Vec<New>, place: u32) -> Option<Piece<'b>> {
        let plan = self.plan;
        let mut counts = vec![Count::default(); plan.classes.len() + plan.kinds.len()];
        let mut coming = WordMap::default();
        let (mut last, mut region) = ((0, 0), (0, 0));
        let mut places = place..;
        for some in all.chunks_mut(TOGETHER) {
            some.iter().for_each(|new| heap::prefetch(new.value));
            for new in some {
                let (slot, value) = (slots[usize::from(new.lead)], new.value);
                if new.is_unread() {
                    return None;
                }
                let is_object = heap::is_object(value)
                    || heap::is_hash(value)
                    || !slot.prims.intersects(Prims::RANGE) && heap::is_struct(value);
                let (table, len, must_not_be_frozen) = if is_object {
                    let word = heap::class_word(value);
                    if last.0 != word {
                        last = (word, *plan.class_index.get(&word)? as usize);
                    }
                    let class = plan.classes.get(last.1).filter(|class| slot.takes(last.1) && !class.laid_out)?;
                    (last.1, 0, class.must_not_be_frozen)
                } else {
                    let kind = slot.kind.filter(|_| heap::is_plain_array(value))?;
                    (plan.classes.len() + kind, heap::elements(value).len(), plan.kinds[kind].must_not_be_frozen)
                };
                if must_not_be_frozen && heap::is_frozen(value) {
                    return None;
                }
                (new.len, new.table) = (u32::try_from(len).ok()?, table as u16);
                new.place = places.next()?;
                counts[table].add(new);
                let own = IdentityMap::region(value);
                if region.0 != own {
                    self.come(&mut coming, region);
                    region = (own, 0);
                }
                region.1 += 1;
            }
        }
        self.come(&mut coming, region);
        Some(Piece { new: all, counts, coming, apart: Vec::new(), late: Vec::new() })
    }

    fn come(&self, coming: &mut WordMap<usize, usize>, (region, count): (usize, usize)) {
        if count > 0 && !self.tables.map.is_full(region) {
            *coming.entry(region).or_default() += count;
        }
    }

    /// Makes room for their words. Gives how many are in regions that are not full. None where there are more rows than
    /// short words can hold.
    fn prepare(&mut self, pieces: &[Piece]) -> Option<usize> {
        let mut coming: WordMap<usize, usize> = WordMap::default();
        for (region, count) in pieces.iter().flat_map(|piece| &piece.coming) {
            *coming.entry(*region).or_default() += count;
        }
        let Tables { map, classes, kinds, .. } = &mut *self.tables;
        let before = classes.iter().map(|rows| rows.objects.len()).chain(kinds.iter().map(|rows| rows.arrays.len()));
        let more = |table: usize| pieces.iter().map(|piece| piece.counts[table].rows).sum::<usize>();
        let some: Vec<_> =
            before.enumerate().map(|(table, rows)| (table, rows, more(table))).filter(|some| some.2 > 0).collect();
        if some.iter().any(|(_, rows, more)| rows + more > MAX_PLACES) {
            return None;
        }
        map.prepare(&coming, some.iter().map(|(table, ..)| (first_word(classes.len(), *table) >> 32) as u32))
    }

    /// Makes reservations for all of them, and keeps the winners.
    fn reserve(&self, slots: &[&SlotPlan], total: usize, pieces: &mut [Piece]) {
        let map = &self.tables.map;
        let alone = workers::map(total, pieces.iter_mut().collect(), |piece: &mut Piece| {
            let (mut values, mut found) = ([heap::NIL; TOGETHER], [Found::default(); TOGETHER]);
            let (mut at, mut alone) = (0, true);
            for new in piece.new.chunks_mut(TOGETHER) {
                values.iter_mut().zip(&*new).for_each(|(value, new)| *value = new.value);
                map.look_all(&values[..new.len()], &mut found);
                for (new, found) in new.iter_mut().zip(&found) {
                    new.found = *found;
                    if found.is_full() {
                        alone &= map.place_reservation(*found, new.place);
                    } else {
                        room::push(&mut piece.apart, at);
                    }
                    at += 1;
                }
            }
            alone
        });
        let mut others: RawMap<u32> = RawMap::default();
        let mut all_alone = !alone.contains(&false);
        for new in pieces.iter().flat_map(|piece| piece.apart.iter().map(|at| &piece.new[*at])) {
            room::reserve_entry(&mut others);
            all_alone &= *others.entry(new.value).or_insert(new.place) == new.place;
        }
        if all_alone {
            return;
        }
        let plan = self.plan;
        // An array is of the kind of its first slot, which other slots may not take.
        let mut kinds = slots.iter().filter_map(|slot| slot.kind);
        let several = kinds.next().is_some_and(|first| kinds.any(|kind| kind != first));
        let matters = |table: usize| match table.checked_sub(plan.classes.len()) {
            Some(kind) => several || plan.kinds[kind].ownable,
            None => plan.classes[table].ownable,
        };
        workers::map(total, pieces.iter_mut().collect(), |piece: &mut Piece| {
            let Piece { new, counts, apart, late, .. } = piece;
            counts.fill(Count::default());
            apart.clear();
            let mut kept = 0;
            new.retain(|new| {
                let stands = if new.found.is_full() {
                    map.stands(new.found, new.place)
                } else {
                    others[&new.value] == new.place
                };
                if stands {
                    counts[usize::from(new.table)].add(new);
                    if !new.found.is_full() {
                        room::push(apart, kept);
                    }
                    kept += 1;
                } else if matters(usize::from(new.table)) {
                    room::push(late, (new.lead, new.value));
                }
                stands
            });
        });
    }

    /// Adds the winners to the tables, and gives them words. Gives the words that are yet to be entered in regions that
    /// are not full.
    fn give_rows(&mut self, slots: &[&SlotPlan], total: usize, pieces: &[Piece]) -> Result<Vec<(Raw, u64)>> {
        let (plan, expected) = (self.plan, self.expected);
        let counts = |table: usize| pieces.iter().map(move |piece| piece.counts[table]);
        let sum = |table| {
            counts(table)
                .fold(Count::default(), |a, b| Count { rows: a.rows + b.rows, elements: a.elements + b.elements })
        };
        let mut parts = Vec::with_capacity(plan.classes.len() + plan.kinds.len());
        for (at, (rows, class)) in self.tables.classes.iter_mut().zip(&plan.classes).enumerate() {
            let (more, before) = (sum(at).rows, rows.objects.len());
            make_room(&mut rows.objects, more, expected);
            if class.ownable {
                room::resize(&mut rows.claimed, before + more, false);
            }
            let claimed = rows.claimed.get_mut(before..).unwrap_or_default();
            let first = first_word(plan.classes.len(), at) + before as u64;
            parts.push(Part { values: rows.objects.add(more), claimed, first, ..Part::default() });
        }
        for (kind, (rows, plans)) in self.tables.kinds.iter_mut().zip(&plan.kinds).enumerate() {
            let at = plan.classes.len() + kind;
            let (more, before, element) = (sum(at), rows.arrays.len(), rows.rows);
            rows.rows += more.elements;
            if more.rows > 0 && rows.rows > u64::from(u32::MAX) {
                return Err(GuardFailure::TooMany);
            }
            make_room(&mut rows.arrays, more.rows, expected);
            make_room(&mut rows.offsets, more.rows, expected);
            make_room(&mut rows.lengths, more.rows, expected);
            if plans.ownable {
                room::resize(&mut rows.claimed, before + more.rows, false);
            }
            let claimed = rows.claimed.get_mut(before..).unwrap_or_default();
            let first = first_word(plan.classes.len(), at) + before as u64;
            let (offsets, lengths) = (rows.offsets.add(more.rows), rows.lengths.add(more.rows));
            parts.push(Part {
                values: rows.arrays.add(more.rows),
                claimed,
                offsets,
                lengths,
                first,
                element,
                count: 0,
            });
        }
        let map = &self.tables.map;
        let own = pieces.iter().map(|piece| {
            let parts: Vec<Part> =
                parts.iter_mut().zip(&piece.counts).map(|(rest, count)| rest.split(*count)).collect();
            (piece, parts)
        });
        let apart = workers::map(total, own.collect(), |(piece, mut parts): (&Piece, Vec<Part>)| {
            let mut apart = room::with_capacity(piece.apart.len());
            for new in &*piece.new {
                let word = parts[usize::from(new.table)].write(new, slots[usize::from(new.lead)].owned);
                if new.found.is_full() {
                    map.give(new.found, word);
                } else {
                    apart.push((new.value, word));
                }
            }
            apart
        });
        Ok(room::concat(&apart))
    }
}

/// The word of a table's first row. There are so many classes.
fn first_word(classes: usize, table: usize) -> u64 {
    match table.checked_sub(classes) {
        Some(kind) => ARRAY | (kind as u64) << 32,
        None => (table as u64 + 1) << 32,
    }
}
