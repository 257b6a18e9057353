//! Columns to objects and Arrays.
//!
//! Here: [`Unpacker::write_back`]. Not here: results and captured locals ([`super`]), and what columns hold
//! ([`crate::marshal::decode`]).
//! Invariant: everything that can fail happens before the first change, and no Ruby code runs between the first change
//! and the last.
//!
//! For most objects only two things can go wrong. The object was frozen meanwhile, which its first word shows; or a
//! number needs an object, which the columns show. Workers check these first. All other cases they leave to the Ruby
//! thread, which computes and makes the values. Then workers compare each object with its row, and write what differs
//! at once.

use super::Unpacker;
use crate::marshal::decode::{Broken, Decoded, Decoder, same};
use crate::marshal::plan::{FieldPlan, SlotPlan};
use crate::marshal::trace::CHUNK;
use crate::ruby::heap::{self, FieldReader, Raw, Seen};
use crate::ruby::reflect::value;
use crate::ruby::workers;
use ikra_core::memory::room;
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
    /// The first row of the class in the columns.
    start: usize,
    /// Finds the field in objects.
    reader: FieldReader,
}

/// A field of an object.
#[derive(Clone, Copy)]
struct Place {
    class: usize,
    field: usize,
    row: usize,
}

/// A worker's results.
#[derive(Default)]
struct Written {
    /// Pairs of an object and a value that was assigned to it, which the GC must know of.
    assigned: Vec<(Raw, Raw)>,
    /// Fields that objects do not have yet.
    absent: Vec<Place>,
}

/// Objects of some classes that one worker writes, and those that it does not write, in chunks of each class.
struct Piece {
    rows: Vec<Range<usize>>,
    left: Vec<(usize, Range<usize>)>,
}

/// What only the Ruby thread writes.
#[derive(Default)]
struct Rest {
    fields: Vec<(Place, Raw)>,
    /// Array, index, value.
    elements: Vec<(Raw, usize, Raw)>,
}

/// What the objects to be written show by themselves.
pub struct Looked<'a> {
    classes: Vec<Class<'a>>,
    pieces: Vec<Piece>,
}

impl<'a> Unpacker<'a> {
    /// Checks the objects to be written, before the columns are there. The result is void as soon as Ruby code may have
    /// run.
    pub fn look(&self) -> Looked<'a> {
        let classes = self.written_classes();
        let lengths: Vec<usize> = classes.iter().map(|class| class.objects.len()).collect();
        let pieces = workers::side_by_side(&lengths).into_iter().map(|rows| Piece { rows, left: Vec::new() });
        let pieces = leave(&classes, pieces.collect(), |class, chunk| class.is_plain(chunk));
        Looked { classes, pieces }
    }

    /// Writes to objects and Arrays what differs from the columns, and fills all new objects. `looked` has the checks
    /// of the objects.
    ///
    /// # Errors
    /// FrozenError for an object that was frozen meanwhile, and the like. Then nothing was changed, unless memory ended
    /// while an object was given an ivar that it never had.
    pub fn write_back(&self, mut looked: Looked<'a>) -> std::result::Result<(), Error> {
        let arrays = self.plan.kinds.iter().any(|kind| kind.written);
        if looked.classes.is_empty() && !arrays && !self.plan.freezes() {
            return self.fill_new();
        }
        let decoder = self.decoder();
        self.polls.ran();
        let (mut classes, pieces, rest) = loop {
            let Looked { mut classes, pieces } = looked;
            let pieces = leave(&classes, pieces, |class, chunk| class.has_values(chunk, &decoder));
            let rest = match self.rest(&mut classes, &pieces) {
                Ok(rest) => rest,
                Err(Failed::Frozen(object)) => return Err(crate::ruby::errors::frozen(self.ruby, value(object))),
                Err(Failed::Broken(broken)) => return Err(self.broken(broken.0)),
                Err(Failed::Raised(error)) => return Err(error),
            };
            self.fill_new()?;
            if !self.polls.ran() {
                break (classes, pieces, rest);
            }
            // New objects exist by now, so only the checks must be repeated.
            looked = self.look();
        };
        // From here on something has changed, and must not be done twice.
        room::note_change();
        // Not earlier: making objects may have started a marking phase of the GC.
        let marking = heap::is_marking();
        let written = self.write_beside(&classes, pieces, marking);
        // All of these come before anything allocates.
        for Written { assigned, .. } in &written {
            for (at, (object, new)) in assigned.iter().enumerate() {
                if let Some((object, new)) = assigned.get(at + heap::AHEAD) {
                    heap::prefetch(*object);
                    heap::prefetch(*new);
                }
                heap::barrier(*object, *new);
            }
        }
        let absent = written.into_iter().flat_map(|written| written.absent);
        for place in absent {
            let field = &classes[place.class].fields[place.field];
            let new = self.value(&field.plan.slot, field.start + place.row)?;
            classes[place.class].set(place, new)?;
        }
        for (place, new) in rest.fields {
            classes[place.class].set(place, new)?;
        }
        // SAFETY: live Arrays that are not frozen and own their bodies, at existing indices.
        #[allow(unsafe_code)]
        protect(|| unsafe {
            for (array, index, new) in &rest.elements {
                rb_sys::rb_ary_store(*array, *index as _, *new);
            }
            heap::NIL
        })?;
        self.freeze()
    }

    /// Freezes existing objects that the program has frozen.
    fn freeze(&self) -> std::result::Result<(), Error> {
        let mut frozen = Vec::new();
        for (at, class) in self.plan.classes.iter().enumerate() {
            let Some(column) = class.freezes else { continue };
            let objects = self.tables.classes[at].objects.iter().enumerate();
            let of_class = objects.filter(|(row, _)| self.is_frozen(column, at, *row)).map(|(_, object)| *object);
            of_class.for_each(|object| room::push(&mut frozen, object));
        }
        for (kind, rows) in self.plan.kinds.iter().zip(&self.tables.kinds) {
            let Some(column) = kind.frozen.filter(|_| kind.freezes) else { continue };
            let flags = self.columns[column.index()].view::<u8>();
            let arrays = rows.arrays.iter().zip(&rows.offsets[..]);
            let of_kind = arrays.filter(|(_, offset)| flags[**offset as usize] != 0).map(|(array, _)| *array);
            of_kind.filter(|array| heap::see(*array) != Seen::Buffer).for_each(|array| room::push(&mut frozen, array));
        }
        // SAFETY: live objects and Arrays. `protect` catches NoMemoryError.
        #[allow(unsafe_code)]
        protect(|| unsafe {
            for object in &frozen {
                rb_sys::rb_obj_freeze(*object);
            }
            heap::NIL
        })
        .map(drop)
    }

    fn written_classes(&self) -> Vec<Class<'a>> {
        let classes = self.plan.classes.iter().enumerate().map(|(at, class)| {
            let fields = class.fields.iter().filter(|field| field.written).map(|plan| Field {
                plan,
                start: self.start(at, &plan.slot),
                reader: FieldReader::new(plan.field, &self.tables.hashes),
            });
            Class { raw: class.raw, objects: &self.tables.classes[at].objects, fields: fields.collect() }
        });
        let classes = classes.filter(|class| !class.fields.is_empty() && !class.objects.is_empty());
        let mut classes: Vec<Class<'a>> = classes.collect();
        classes.iter_mut().for_each(Class::learn);
        classes
    }

    /// Workers write all objects that do not need the Ruby thread.
    fn write_beside(&self, classes: &[Class<'_>], pieces: Vec<Piece>, marking: bool) -> Vec<Written> {
        let rows = classes.iter().map(|class| class.objects.len()).sum();
        let decoder = self.decoder();
        workers::map(rows, pieces, |Piece { rows, left }| {
            let (mut written, mut left) = (Written::default(), left.into_iter().peekable());
            for (at, (class, rows)) in classes.iter().zip(&rows).enumerate() {
                for chunk in chunks(rows) {
                    if left.next_if(|left| *left == (at, chunk.clone())).is_none() {
                        class.write(at, chunk, &decoder, marking, &mut written);
                    }
                }
            }
            written
        })
    }

    /// Finds out what else is to be written, and makes sure that it can be.
    fn rest(&self, classes: &mut [Class<'_>], pieces: &[Piece]) -> Result<Rest> {
        let mut rest = Rest::default();
        for (at, rows) in pieces.iter().flat_map(|piece| &piece.left) {
            let class = &mut classes[*at];
            let objects = &class.objects[rows.clone()];
            heap::prefetch_all(objects.iter().copied());
            for (number, field) in class.fields.iter_mut().enumerate() {
                let places = Place { class: *at, field: number, row: rows.start };
                self.compare(class.raw, field, places, objects, &mut rest.fields)?;
            }
        }
        for (at, kind) in self.plan.kinds.iter().enumerate() {
            if let (true, Some(slot)) = (kind.written, &kind.slot) {
                self.arrays(at, slot, &mut rest.elements)?;
            }
        }
        Ok(rest)
    }

    /// The new values of one field of at most [`CHUNK`] objects, where they differ. Objects are made where a value
    /// needs one.
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
        let decoder = self.decoder();
        let (stored, values) = (decoder.stored(slot, first), decoder.rows(slot, first, &mut values[..objects.len()])?);
        for (i, (object, new)) in objects.iter().zip(values).enumerate() {
            let old = field.reader.get(*object, class);
            if *new == old || !stored(i) {
                continue;
            }
            let new = if *new == heap::UNDEF { self.row(slot, first + i)? } else { Decoded::Value(*new) };
            if same(old, new) {
                continue;
            }
            if heap::is_frozen(*object) {
                return Err(Failed::Frozen(*object));
            }
            room::push(fields, (Place { row: places.row + i, ..places }, self.make(new)?));
        }
        Ok(())
    }

    fn arrays(&self, at: usize, slot: &SlotPlan, elements: &mut Vec<(Raw, usize, Raw)>) -> Result<()> {
        let rows = &self.tables.kinds[at];
        for (i, array) in rows.arrays.iter().enumerate() {
            // No other code knows its new version yet.
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
                    room::push(elements, (*array, index, self.make(new)?));
                    touched = true;
                }
            }
            if touched {
                // SAFETY: a live Array. After this it owns its body, so that storing cannot fail.
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

    /// Whether a worker can assign any values to at most [`CHUNK`] objects.
    fn is_plain(&self, rows: &Range<usize>) -> bool {
        let objects = &self.objects[rows.clone()];
        objects.iter().for_each(|object| heap::prefetch(*object));
        !objects.iter().any(|object| heap::is_frozen(*object))
            && self.fields.iter().all(|field| field.reader.knows_all(objects, self.raw))
    }

    /// Whether no new value of these objects needs an object to be made.
    fn has_values(&self, rows: &Range<usize>, decoder: &Decoder<'_>) -> bool {
        let mut new = [heap::NIL; CHUNK];
        let has_values = |field: &Field<'_>| {
            let (slot, first) = (&field.plan.slot, field.start + rows.start);
            let stored = decoder.stored(slot, first);
            let rows = decoder.rows(slot, first, &mut new[..rows.len()]);
            rows.is_ok_and(|new| !new.iter().enumerate().any(|(i, new)| *new == heap::UNDEF && stored(i)))
        };
        self.fields.iter().all(has_values)
    }

    /// Writes what differs in at most [`CHUNK`] plain objects.
    fn write(&self, at: usize, rows: Range<usize>, decoder: &Decoder<'_>, marking: bool, written: &mut Written) {
        let objects = &self.objects[rows.clone()];
        heap::prefetch_all(objects.iter().copied());
        let (mut held, mut new) = ([heap::NIL; CHUNK], [heap::NIL; CHUNK]);
        let (held, new) = (&mut held[..objects.len()], &mut new[..objects.len()]);
        for (number, field) in self.fields.iter().enumerate() {
            let (slot, first) = (&field.plan.slot, field.start + rows.start);
            let is_read = field.reader.peek_all(objects, self.raw, held) && decoder.rows(slot, first, new).is_ok();
            debug_assert!(is_read, "somebody looked at these");
            let stored = decoder.stored(slot, first);
            for (i, ((object, old), new)) in objects.iter().zip(&*held).zip(&*new).enumerate() {
                if old == new || !stored(i) {
                    continue;
                }
                if !field.reader.put(*object, self.raw, *new) {
                    written.absent.push(Place { class: at, field: number, row: rows.start + i });
                } else if marking || !heap::needs_no_barrier(*new) {
                    written.assigned.push((*object, *new));
                }
            }
        }
    }

    /// Assigns a field, on the Ruby thread.
    fn set(&mut self, place: Place, new: Raw) -> std::result::Result<(), Error> {
        let (object, field) = (self.objects[place.row], &mut self.fields[place.field]);
        // The first object of its form: from here on the reader knows where the ivar is.
        field.reader.get(object, self.raw);
        if field.reader.set(object, self.raw, new) { Ok(()) } else { heap::set_field(object, field.plan.field, new) }
    }
}

/// Workers check objects of all classes side by side. They leave to the Ruby thread those that are left to it already,
/// and those that are not plain. For these something must be made or raised, or their form is not known.
fn leave(
    classes: &[Class<'_>],
    pieces: Vec<Piece>,
    is_plain: impl Fn(&Class<'_>, &Range<usize>) -> bool + Sync,
) -> Vec<Piece> {
    let rows = classes.iter().map(|class| class.objects.len()).sum();
    workers::map(rows, pieces, |Piece { rows, left }| {
        let (mut before, mut left) = (left.into_iter().peekable(), Vec::new());
        for (at, (class, rows)) in classes.iter().zip(&rows).enumerate() {
            for chunk in chunks(rows).map(|chunk| (at, chunk)) {
                if before.next_if_eq(&chunk).is_some() || !is_plain(class, &chunk.1) {
                    left.push(chunk);
                }
            }
        }
        Piece { rows, left }
    })
}

/// Ranges of rows, at most [`CHUNK`] each.
fn chunks(rows: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = rows.end;
    rows.clone().step_by(CHUNK).map(move |first| first..end.min(first + CHUNK))
}
