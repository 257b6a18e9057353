//! The part of a scan that workers do.
//!
//! Here: scanning a field of many objects, and the elements of lists where these are many. A worker summarizes its
//! piece: the kinds of values, the classes, and the known objects that were found there first. New objects, and values
//! that it cannot classify, it leaves to the Ruby thread. That thread processes them in the order in which it would
//! have met them itself, so the inferred types are the same with any number of workers. Not here: how new objects are
//! noted ([`super`]).

use super::{ClassTable, Entry, Observer, Result, Scan};
use crate::marshal::trace::CHUNK;
use crate::ruby::gvl;
use crate::ruby::hash_table::{self, Fit};
use crate::ruby::heap::{self, AHEAD, Raw, Seen};
use crate::ruby::identity::{IdentityMap, RawMap};
use crate::ruby::workers::{self, PIECE, Span};
use ikra_core::id::ArrayKind;
use ikra_core::memory::room;
use ikra_core::types::{Prims, StrWord};
use ikra_core::world::{Facts, OutOfRange};
use magnus::rb_sys::AsRawValue;
use std::sync::Arc;

/// The fewest pieces that workers scan between two turns of the Ruby thread: where much is left to that thread. Several
/// workers leave it the same new objects, and these should still be in the cache.
const MIN_PIECES_BETWEEN_TURNS: usize = 16;
/// The most such pieces: where little is left to the Ruby thread.
const MAX_PIECES_BETWEEN_TURNS: usize = 256;

/// What a worker saw in a piece.
pub(super) struct Found {
    prims: u16,
    /// Some Integer is outside the assumed ranges.
    outside: Option<OutOfRange>,
    /// By table: whether some object is in it.
    tables: Vec<bool>,
    /// By place: whether a known object was found there first.
    met: Vec<bool>,
    left: Vec<Left>,
    /// Objects that are classified once they are in the cache.
    next: Vec<Raw>,
}

impl Found {
    /// The objects that must stay alive until the Ruby thread has processed them.
    pub fn left(&self) -> impl Iterator<Item = Raw> {
        self.left.iter().map(|left| left.raw)
    }
}

/// A value that is left to the Ruby thread.
#[derive(Clone, Copy)]
struct Left {
    raw: Raw,
    is: Is,
}

#[derive(Clone, Copy)]
enum Is {
    /// A new object for a table, which needs nothing else.
    Object(u32),
    /// The same for an Array.
    Array,
    /// Any value.
    Value,
    /// An object whose field must be read.
    Owner,
}

/// What workers know.
struct Look<'a> {
    map: &'a IdentityMap,
    class_index: &'a RawMap<usize>,
    tables: &'a [ClassTable],
    /// The number of places.
    places: usize,
    facts: &'a Facts,
    /// The kind of the arrays at the place.
    kind: Option<ArrayKind>,
    string: Raw,
    range: Raw,
    /// Whether no parts of Hashes are demanded.
    keys_alone: bool,
}

impl Observer {
    /// Notes a field of a table's objects from `row` on, as long as there are many. Gives the next row.
    pub(super) fn objects_beside(
        &mut self,
        scan: &mut Scan,
        at: usize,
        demand: usize,
        mut row: usize,
    ) -> Result<usize> {
        let class = self.tables[at].raw;
        // The first objects nearly always show what most of them are.
        let mut window = 1;
        while workers::many(self.tables[at].objects.len() - row) {
            let table = &self.tables[at];
            let len = table.objects.len();
            // So that no small rest is left over.
            let end = if workers::many(len.saturating_sub(row + window * PIECE)) { row + window * PIECE } else { len };
            let some = heap::sample(&table.objects[row..end]);
            self.reader(at, demand).learn(&some, class);
            let (objects, reader) = (&self.tables[at].objects[row..end], &self.tables[at].demands[demand].reader);
            let look = self.look(scan);
            let found = workers::map(objects.len(), objects.chunks(PIECE).collect(), |objects| {
                let mut found = look.nothing();
                for objects in objects.chunks(CHUNK) {
                    heap::prefetch_all(objects.iter().copied());
                    for object in objects {
                        match reader.peek(*object, class) {
                            Some(value) => look.at(value, &mut found),
                            None => {
                                look.at_next(&mut found);
                                room::push(&mut found.left, Left { raw: *object, is: Is::Owner });
                            }
                        }
                    }
                }
                look.at_next(&mut found);
                found
            });
            row = end;
            window = self.go_on(scan, found.into(), Some((at, demand)))?;
        }
        Ok(row)
    }

    /// Notes the elements of lists of such lengths.
    pub(super) fn lists_beside(&mut self, scan: &mut Scan, lists: &[Raw], lengths: &[u32]) -> Result<()> {
        let pieces = workers::lists(lengths);
        let (mut rest, mut window) = (&pieces[..], 1);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(window));
            let look = self.look(scan);
            let found = workers::map(now.len() * PIECE, room::copied(now), |piece| {
                let mut found = look.nothing();
                for (at, Span { list, from, len }) in piece.spans(lengths).enumerate() {
                    if at.is_multiple_of(CHUNK) {
                        heap::prefetch_all(lists[list..].iter().copied().take(CHUNK));
                    }
                    // Buffers are known. Ruby may have been called since the others were measured.
                    let values = if len > 0 { heap::elements(lists[list]) } else { &[] };
                    look.list(&values[values.len().min(from)..values.len().min(from + len)], &mut found);
                }
                look.at_next(&mut found);
                found
            });
            rest = later;
            window = self.go_on(scan, found.into(), None)?;
        }
        Ok(())
    }

    fn look<'a>(&'a self, scan: &'a Scan) -> Look<'a> {
        Look {
            map: &self.map,
            class_index: &self.class_index,
            tables: &self.tables,
            places: self.places.len(),
            facts: scan.facts,
            kind: self.place_kinds[scan.place as usize],
            string: scan.ruby.class_string().as_raw(),
            range: scan.ruby.class_range().as_raw(),
            keys_alone: hash_table::is_known() && !self.lays_out,
        }
    }

    /// Processes what workers found, for the field of a demand. Gives how many pieces to scan next.
    fn go_on(&mut self, scan: &mut Scan, found: Arc<[Found]>, demand: Option<(usize, usize)>) -> Result<usize> {
        self.found = Some(found.clone());
        let done = found.iter().try_for_each(|piece| self.go_on_with(scan, piece, demand));
        self.found = None;
        let left: usize = found.iter().map(|piece| piece.left.len()).sum();
        done.map(|()| {
            if left < found.len() * PIECE / 8 {
                MAX_PIECES_BETWEEN_TURNS.min(4 * found.len())
            } else {
                MIN_PIECES_BETWEEN_TURNS
            }
        })
    }

    /// The same for one piece.
    fn go_on_with(&mut self, scan: &mut Scan, piece: &Found, demand: Option<(usize, usize)>) -> Result<()> {
        gvl::poll();
        scan.summary.prims |= piece.prims;
        scan.summary.outside = scan.summary.outside.max(piece.outside);
        for (table, _) in self.tables.iter().zip(&piece.tables).filter(|(_, there)| **there) {
            scan.summary.class(table.class);
        }
        for first in (0..).zip(&piece.met).filter_map(|(place, met)| met.then_some(place)) {
            self.met_again(scan.place, first, scan.facts);
        }
        for (i, Left { raw, is }) in piece.left.iter().enumerate() {
            if let Some(later) = piece.left.get(i + AHEAD) {
                self.map.prefetch(later.raw);
            }
            match (is, demand, self.place_kinds[scan.place as usize]) {
                (Is::Object(table), ..) => _ = self.enter_object(scan, *raw, *table as usize),
                (Is::Array, _, Some(kind)) => _ = self.enter_array(scan, *raw, kind),
                (Is::Owner, Some((at, demand)), _) => {
                    let class = self.tables[at].raw;
                    let value = self.reader(at, demand).get(*raw, class);
                    self.value(scan, value)?;
                }
                _ => self.value(scan, *raw)?,
            }
        }
        Ok(())
    }
}

impl Look<'_> {
    fn nothing(&self) -> Found {
        Found {
            prims: 0,
            outside: None,
            tables: vec![false; self.tables.len()],
            met: vec![false; self.places],
            left: Vec::new(),
            next: Vec::with_capacity(CHUNK),
        }
    }

    fn list(&self, values: &[Raw], found: &mut Found) {
        for values in values.chunks(CHUNK) {
            // Nearly all Floats are flonums, and a list mostly holds values of one kind.
            if values.iter().all(|value| heap::is_flonum(*value)) {
                found.prims |= Prims::FLOAT.0;
            } else {
                values.iter().for_each(|value| self.at(*value, found));
            }
        }
    }

    /// Classifies a value: now, or together with others.
    #[inline]
    fn at(&self, value: Raw, found: &mut Found) {
        if heap::is_immediate(value) && self.left(value, found).is_none() {
            return;
        }
        self.map.prefetch(value);
        found.next.push(value);
        if found.next.len() == CHUNK {
            self.at_next(found);
        }
    }

    /// Classifies the values that wait.
    fn at_next(&self, found: &mut Found) {
        let mut next = std::mem::take(&mut found.next);
        next.retain(|value| {
            let known = !heap::is_immediate(*value) && self.knows(Entry(self.map.get(*value)), found);
            if !known {
                heap::prefetch(*value);
            }
            !known
        });
        for value in next.drain(..) {
            if let Some(is) = self.left(value, found) {
                room::push(&mut found.left, Left { raw: value, is });
            }
        }
        found.next = next;
    }

    /// Notes a value that is known already. False where it is not, or where there is more to note. The value itself is
    /// not read.
    #[inline]
    fn knows(&self, entry: Entry, found: &mut Found) -> bool {
        match entry.kind() {
            _ if entry.0 == 0 => return false,
            None => found.tables[entry.table()] = true,
            Some(kind) => {
                if self.kind.is_none_or(|own| own != kind && self.facts.find(own) != self.facts.find(kind)) {
                    return false;
                }
            }
        }
        found.met[entry.first() as usize] = true;
        true
    }

    /// Notes an unknown value. Gives what is left to the Ruby thread, if anything is.
    #[inline]
    fn left(&self, value: Raw, found: &mut Found) -> Option<Is> {
        let class = || heap::class_word(value);
        let prim = match heap::see(value) {
            Seen::Int(i) => {
                found.outside = found.outside.max(OutOfRange::of(i));
                Prims::INT
            }
            Seen::Float(_) => Prims::FLOAT,
            Seen::Nil => Prims::NIL,
            Seen::False => Prims::FALSE,
            Seen::True => Prims::TRUE,
            Seen::Symbol => Prims::SYM,
            Seen::Str if class() == self.string && bytes_fit(value) && heap::encoding(value).is_some() => Prims::STR,
            Seen::Array
                if self.kind.is_some()
                    && heap::is_of_array(value)
                    && !heap::is_frozen(value)
                    && self.map.get(value) == 0 =>
            {
                return Some(Is::Array);
            }
            Seen::Object | Seen::Number => return Some(self.object(value, found)),
            // Its table has been tested, and there is nothing to lay out.
            Seen::Hash if self.keys_alone && matches!(hash_table::fit(value), Fit::Default(_)) => {
                return Some(self.object(value, found));
            }
            Seen::Struct if class() != self.range => return Some(self.object(value, found)),
            _ => return Some(Is::Value),
        };
        found.prims |= prim.0;
        None
    }

    #[inline]
    fn object(&self, object: Raw, found: &mut Found) -> Is {
        let Some(at) = self.class_index.get(&heap::class_word(object)).copied() else { return Is::Value };
        let table = &self.tables[at];
        if table.live || !table.frozen && heap::is_frozen(object) {
            return Is::Value;
        }
        found.tables[at] = true;
        Is::Object(at as u32)
    }
}

fn bytes_fit(string: Raw) -> bool {
    heap::bytes(string).len() <= StrWord::MAX_BYTES
}
