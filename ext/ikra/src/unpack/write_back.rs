//! Columns to objects and Arrays.
//!
//! Here: [`Unpacker::write_back`]. Not here: results and captured locals ([`super`]), and what columns hold ([`crate::decode`]).
//! Invariant: where it fails, everything is as it was, and no Ruby code has run since the first change.
//!
//! Objects are gone over once: whoever compares what one holds with its row writes what differs at once, while both are in the cache, and notes what was there, in
//! memory that was used before. So what can fail need not be looked for first; where something does fail behind that (a frozen object, memory that ends), what was
//! there is put back.

use super::Unpacker;
use crate::crew;
use crate::decode::{Broken, Decoded, Decoder, same};
use crate::heap::{self, FieldReader, Raw, Seen};
use crate::plan::{FieldPlan, SlotPlan};
use crate::reflect::value;
use crate::trace::CHUNK;
use ikra_core::ir::Storage;
use ikra_core::memory::column::HostColumn;
use magnus::Error;
use magnus::rb_sys::protect;
use std::ops::Range;

/// Why nothing is written back.
enum Failed {
    Frozen(Raw),
    Broken(Broken),
    Raised(Error),
}

type Result<T> = std::result::Result<T, Failed>;

impl From<Broken> for Failed {
    fn from(broken: Broken) -> Self {
        Failed::Broken(broken)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Raised(error)
    }
}

/// Objects of a class, and their fields that the program writes.
struct Class<'a> {
    raw: Raw,
    objects: &'a [Raw],
    fields: Vec<Field<'a>>,
}

struct Field<'a> {
    plan: &'a FieldPlan,
    /// Where the class's rows begin in the columns.
    start: usize,
    /// Knows where objects keep it.
    reader: FieldReader,
}

/// A field of an object.
#[derive(Clone, Copy)]
struct Place {
    class: usize,
    field: usize,
    row: usize,
}

/// A field of at most [`CHUNK`] objects, from that of a place on, some of which were written.
struct Several {
    first: Place,
    bits: [u64; CHUNK / 64],
    /// Where in the piece's part of the log begins what all of them held before.
    log: usize,
}

/// What a worker gives back.
#[derive(Default)]
struct Written<'l> {
    fields: Vec<Several>,
    log: &'l mut [u64],
    /// So many of its words are used.
    logged: usize,
    /// Objects that were assigned one that the GC has to know of.
    assigned: Vec<(Raw, Raw)>,
    /// Fields that objects do not have yet.
    absent: Vec<Place>,
    /// Classes and rows that are the Ruby thread's: for a value that is to be made, or an object of a form that is not known, or to raise something.
    left: Vec<(usize, Range<usize>)>,
}

/// What only the Ruby thread writes.
#[derive(Default)]
struct Rest {
    fields: Vec<(Place, Raw)>,
    /// Array, index, value.
    elements: Vec<(Raw, usize, Raw)>,
}

impl Unpacker<'_> {
    /// Writes to objects and Arrays what differs from what they hold, and fills all that was made.
    ///
    /// # Errors
    /// FrozenError for an object that was frozen meanwhile, and the like. Then nothing was changed, unless memory ended while an object was given an ivar that it
    /// never had.
    pub fn write_back(&self) -> std::result::Result<(), Error> {
        let mut classes = self.written_classes();
        let arrays = self.plan.kinds.iter().any(|kind| kind.written);
        if classes.is_empty() && !arrays {
            return self.fill_new();
        }
        // before the first change, as it may allocate
        let holder = (!classes.is_empty()).then(|| self.holder.get(self.ruby));
        let marking = heap::is_marking();
        classes.iter_mut().for_each(Class::learn);
        let cells = |class: &Class<'_>| class.objects.len() * class.fields.len();
        let mut log = HostColumn::to_fill(Storage::I64, classes.iter().map(cells).sum(), None);
        let written = self.write_beside(&classes, marking, log.view_mut());
        // all of them before anything allocates
        for Written { assigned, .. } in &written {
            for (at, (object, new)) in assigned.iter().enumerate() {
                if let Some((object, new)) = assigned.get(at + heap::AHEAD) {
                    heap::prefetch(*object);
                    heap::prefetch(*new);
                }
                heap::barrier(*object, *new);
            }
        }
        let is_all = !arrays && self.made.is_empty() && written.iter().all(|written| written.left.is_empty());
        if let (Some(holder), false) = (holder, is_all) {
            // what may have to be put back, for nothing else may hold it
            let before = written.iter().flat_map(Written::before).map(|(_, before)| before);
            holder.hold(before.filter(|before| !heap::is_immediate(*before)).collect());
        }
        let rest = self.rest(&mut classes, &written).and_then(|rest| {
            self.fill_new()?;
            Ok(rest)
        });
        let rest = match rest {
            Ok(rest) => rest,
            Err(failed) => {
                put_back(&classes, &written);
                return Err(match failed {
                    Failed::Frozen(object) => crate::errors::frozen(self.ruby, value(object)),
                    Failed::Broken(broken) => self.broken(broken.0),
                    Failed::Raised(error) => error,
                });
            }
        };
        let absent = written.into_iter().flat_map(|written| written.absent);
        for place in absent {
            let field = &classes[place.class].fields[place.field];
            let new = self.value(&field.plan.slot, field.start + place.row)?;
            classes[place.class].set(place, new)?;
        }
        for (place, new) in rest.fields {
            classes[place.class].set(place, new)?;
        }
        // SAFETY: live Arrays that are not frozen and whose bodies are their own, at indices that they have.
        #[allow(unsafe_code)]
        protect(|| unsafe {
            for (array, index, new) in &rest.elements {
                rb_sys::rb_ary_store(*array, *index as _, *new);
            }
            heap::NIL
        })?;
        Ok(())
    }

    fn written_classes(&self) -> Vec<Class<'_>> {
        let classes = self.plan.classes.iter().enumerate().map(|(at, class)| {
            let fields = class.fields.iter().filter(|field| field.written).map(|plan| Field {
                plan,
                start: self.start(at, &plan.slot),
                reader: FieldReader::new(plan.field, &self.tables.hashes),
            });
            Class { raw: class.raw, objects: &self.tables.classes[at].objects, fields: fields.collect() }
        });
        classes.filter(|class| !class.fields.is_empty() && !class.objects.is_empty()).collect()
    }

    /// By workers, of all classes side by side.
    fn write_beside<'l>(&self, classes: &[Class<'_>], marking: bool, mut log: &'l mut [u64]) -> Vec<Written<'l>> {
        let lengths: Vec<usize> = classes.iter().map(|class| class.objects.len()).collect();
        let decoder = self.decoder();
        let most = classes.iter().map(|class| class.fields.len()).max().unwrap_or(0);
        let with_log = |piece: Vec<Range<usize>>| {
            let cells = classes.iter().zip(&piece).map(|(class, rows)| rows.len() * class.fields.len()).sum();
            (piece, log.split_off_mut(..cells).unwrap_or_default())
        };
        let pieces = crew::side_by_side(&lengths).into_iter().map(with_log).collect();
        crew::map(lengths.iter().sum(), pieces, |(piece, log): (Vec<Range<usize>>, _)| {
            let mut written = Written { log, ..Written::default() };
            let mut values = vec![[heap::NIL; CHUNK]; 2 * most];
            for (at, (class, rows)) in classes.iter().zip(piece).enumerate() {
                for first in rows.clone().step_by(CHUNK) {
                    let chunk = first..rows.end.min(first + CHUNK);
                    if !class.write(at, chunk, &decoder, marking, &mut values, &mut written) {
                        written.left.push((at, first..rows.end));
                        break;
                    }
                }
            }
            written
        })
    }

    /// Finds out what else is to be written, and makes sure that it can be.
    fn rest(&self, classes: &mut [Class<'_>], written: &[Written<'_>]) -> Result<Rest> {
        let mut rest = Rest::default();
        for (at, rows) in written.iter().flat_map(|written| &written.left) {
            let class = &mut classes[*at];
            for first in rows.clone().step_by(CHUNK) {
                let objects = &class.objects[first..rows.end.min(first + CHUNK)];
                heap::prefetch_all(objects.iter().copied());
                for (number, field) in class.fields.iter_mut().enumerate() {
                    let places = Place { class: *at, field: number, row: first };
                    self.compare(class.raw, field, places, objects, &mut rest.fields)?;
                }
            }
        }
        for (at, kind) in self.plan.kinds.iter().enumerate() {
            if let (true, Some(slot)) = (kind.written, &kind.slot) {
                self.arrays(at, slot, &mut rest.elements)?;
            }
        }
        Ok(rest)
    }

    /// What one field of at most [`CHUNK`] objects is to hold that it does not, made where it has to be.
    fn compare(
        &self,
        class: Raw,
        field: &mut Field<'_>,
        places: Place,
        objects: &[Raw],
        fields: &mut Vec<(Place, Raw)>,
    ) -> Result<()> {
        let (slot, first) = (&field.plan.slot, field.start + places.row);
        let mut values = [heap::NIL; CHUNK];
        let values = self.decoder().rows(slot, first, &mut values[..objects.len()])?;
        for (i, (object, new)) in objects.iter().zip(values).enumerate() {
            let old = field.reader.get(*object, class);
            if *new == old {
                continue;
            }
            let new = if *new == heap::UNDEF { self.row(slot, first + i)? } else { Decoded::Value(*new) };
            if same(old, new) {
                continue;
            }
            if heap::is_frozen(*object) {
                return Err(Failed::Frozen(*object));
            }
            fields.push((Place { row: places.row + i, ..places }, self.make(new)?));
        }
        Ok(())
    }

    fn arrays(&self, at: usize, slot: &SlotPlan, elements: &mut Vec<(Raw, usize, Raw)>) -> Result<()> {
        let rows = &self.tables.kinds[at];
        for (i, array) in rows.arrays.iter().enumerate() {
            // its new version is not known to anybody yet
            if heap::see(*array) == Seen::Buffer {
                continue;
            }
            let offset = rows.offsets[i] as usize;
            let end = rows.offsets.get(i + 1).map_or(rows.rows as usize, |o| *o as usize);
            let packed = rows.lengths[i] as usize;
            debug_assert!(offset + packed <= end);
            let mut touched = false;
            for start in (0..packed).step_by(CHUNK) {
                let mut values = [heap::NIL; CHUNK];
                let values = &mut values[..CHUNK.min(packed - start)];
                let values = self.decoder().rows(slot, offset + start, values)?;
                for (index, new) in (start..).zip(values) {
                    let old = heap::elements(*array).get(index).copied();
                    if old == Some(*new) {
                        continue;
                    }
                    let new = if *new == heap::UNDEF { self.row(slot, offset + index)? } else { Decoded::Value(*new) };
                    if old.is_some_and(|old| same(old, new)) {
                        continue;
                    }
                    if heap::is_frozen(*array) {
                        return Err(Failed::Frozen(*array));
                    }
                    if old.is_none() {
                        let message = "an Array that a section writes was made shorter while the section ran";
                        return Err(Error::new(self.ruby.exception_runtime_error(), message).into());
                    }
                    elements.push((*array, index, self.make(new)?));
                    touched = true;
                }
            }
            if touched {
                // SAFETY: a live Array; after this its body is its own, so that storing cannot fail.
                #[allow(unsafe_code)]
                protect(|| unsafe {
                    rb_sys::rb_ary_modify(*array);
                    heap::NIL
                })?;
            }
        }
        Ok(())
    }
}

impl Class<'_> {
    fn learn(&mut self) {
        let some = heap::sample(self.objects);
        self.fields.iter_mut().for_each(|field| field.reader.learn(&some, self.raw));
    }

    /// Writes what differs of at most [`CHUNK`] objects; false: nothing of it was, for the Ruby thread has to. `values`: room for what is there and what is to be,
    /// of each field.
    fn write(
        &self,
        at: usize,
        rows: Range<usize>,
        decoder: &Decoder<'_>,
        marking: bool,
        values: &mut [[Raw; CHUNK]],
        written: &mut Written<'_>,
    ) -> bool {
        let objects = &self.objects[rows.clone()];
        heap::prefetch_all(objects.iter().copied());
        for (field, values) in self.fields.iter().zip(values.chunks_mut(2)) {
            let [held, new] = values else { return false };
            if !field.differs(self.raw, rows.start, objects, decoder, held, new) {
                return false;
            }
        }
        for (number, (field, values)) in self.fields.iter().zip(values.chunks(2)).enumerate() {
            let [held, new] = values else { return false };
            let first = Place { class: at, field: number, row: rows.start };
            let mut some = Several { first, bits: [0; CHUNK / 64], log: written.logged };
            written.log[written.logged..][..objects.len()].copy_from_slice(&held[..objects.len()]);
            written.logged += objects.len();
            for (i, ((object, old), new)) in objects.iter().zip(held).zip(new).enumerate() {
                if old == new {
                    continue;
                }
                if !field.reader.put(*object, self.raw, *new) {
                    written.absent.push(Place { row: rows.start + i, ..some.first });
                    continue;
                }
                some.bits[i / 64] |= 1 << (i % 64);
                if marking || !heap::needs_no_barrier(*new) {
                    written.assigned.push((*object, *new));
                }
            }
            written.fields.push(some);
        }
        true
    }

    /// Assigns a field, for the Ruby thread.
    fn set(&mut self, place: Place, new: Raw) -> std::result::Result<(), Error> {
        let (object, field) = (self.objects[place.row], &mut self.fields[place.field]);
        // the first of its form: from here the reader knows where the ivar is
        field.reader.get(object, self.raw);
        if field.reader.set(object, self.raw, new) { Ok(()) } else { heap::set_field(object, field.plan.field, new) }
    }
}

impl Field<'_> {
    /// Reads what objects hold and what they are to hold, the same bits where that is the same; false: where only the Ruby thread can tell, or may write.
    #[inline]
    fn differs(
        &self,
        class: Raw,
        first: usize,
        objects: &[Raw],
        decoder: &Decoder<'_>,
        held: &mut [Raw; CHUNK],
        new: &mut [Raw; CHUNK],
    ) -> bool {
        let (held, new) = (&mut held[..objects.len()], &mut new[..objects.len()]);
        let (slot, from) = (&self.plan.slot, self.start + first);
        if !self.reader.peek_all(objects, class, held) || decoder.rows(slot, from, new).is_err() {
            return false;
        }
        for (i, ((object, old), new)) in objects.iter().zip(held).zip(new).enumerate() {
            if new == old {
                continue;
            }
            if *new == heap::UNDEF {
                // it holds what would have to be made
                if !decoder.row(slot, from + i).is_ok_and(|row| same(*old, row)) {
                    return false;
                }
                *new = *old;
            } else if heap::is_frozen(*object) {
                return false;
            }
        }
        true
    }
}

impl Written<'_> {
    /// What was written, and what was there before.
    fn before(&self) -> impl Iterator<Item = (Place, Raw)> {
        self.fields.iter().flat_map(move |Several { first, bits, log }| {
            let written = (0..CHUNK).filter(|i| bits[i / 64] >> (i % 64) & 1 == 1);
            written.map(move |i| (Place { row: first.row + i, ..*first }, self.log[log + i]))
        })
    }
}

/// Puts back what was there.
fn put_back(classes: &[Class<'_>], written: &[Written<'_>]) {
    for (place, before) in written.iter().flat_map(Written::before) {
        let class = &classes[place.class];
        let object = class.objects[place.row];
        // it was written in the same way
        class.fields[place.field].reader.put(object, class.raw, before);
        heap::barrier(object, before);
    }
}
