//! Columns to objects: the write-back, results, and captured locals.
//!
//! Here: [`Unpacker`], which first works out all that is to change ([`Unpacker::prepare`]) and then changes it
//! ([`Changes::apply`]). Not here: what a launch did.
//! Invariant: everything that can fail happens before the first change, and no Ruby code runs between the first change
//! and the last.

use crate::buffer::Dtype;
use crate::crew::{self, PIECE};
use crate::decode::{Broken, Decoded, Decoder, same};
use crate::heap::{self, FieldReader, Raw, Seen};
use crate::holder::LazyHolder;
use crate::list;
use crate::made::{self, Made, Waiting};
use crate::plan::{self, ClassPlan, FieldPlan, Plan, SlotPlan};
use crate::reflect::{self, value};
use crate::registry::symbols;
use crate::trace::{CHUNK, Tables};
use ikra_core::ir::{Program, Space};
use ikra_core::layout::schema::{Accumulator, Combine, Schema};
use ikra_core::memory::column::HostColumn;
use ikra_core::sched::combine::{Number, combine};
use ikra_core::types::{Encoding, Repr, StrWord};
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, RArray, Ruby, Value};
use std::ops::Range;

/// Makes Ruby's values of the columns of one launch.
pub struct Unpacker<'a> {
    pub ruby: &'a Ruby,
    pub plan: &'a Plan,
    pub program: &'a Program,
    pub schema: &'a Schema,
    pub tables: &'a Tables,
    pub columns: &'a [HostColumn],
    /// Keeps what is made on the way.
    pub holder: &'a LazyHolder,
    pub made: &'a Made,
    /// The launch was ended by a trap, and the columns mean nothing.
    pub trapped: bool,
}

/// Rows of one field that are to change.
struct FieldChange {
    class: usize,
    field: usize,
    /// Knows where the objects keep it.
    reader: FieldReader,
    /// Where the class's rows begin in the columns.
    start: usize,
    rows: Rows,
    /// Values of rows that needed an object, in the order of rows.
    made: Vec<(u32, Raw)>,
}

/// Some rows of one class, and for each field the bits of those that are to change.
struct Part<'a> {
    class: usize,
    rows: Range<usize>,
    bits: Vec<&'a mut [u64]>,
}

/// A set of rows.
struct Rows(Vec<u64>);

impl Rows {
    fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }
    fn is_empty(&self) -> bool {
        self.0.iter().all(|bits| *bits == 0)
    }
    fn insert(&mut self, row: usize) {
        self.0[row / 64] |= 1 << (row % 64);
    }
    fn contains(&self, row: usize) -> bool {
        self.0[row / 64] >> (row % 64) & 1 == 1
    }
}

/// Everything that is to change.
pub struct Changes {
    /// By class: of one class's fields.
    classes: Vec<Vec<FieldChange>>,
    /// Array, index, value.
    slots: Vec<(Raw, usize, Raw)>,
}

impl Unpacker<'_> {
    fn broken(&self, what: &str) -> Error {
        crate::errors::internal(self.ruby, &format!("{what} came back from a kernel"))
    }

    /// What reads the columns.
    fn decoder(&self) -> Decoder<'_> {
        Decoder { plan: self.plan, tables: self.tables, columns: self.columns }
    }

    /// The value of one row of a slot, which may have to be made.
    fn value(&self, slot: &SlotPlan, row: usize) -> Result<Raw, Error> {
        self.make(self.row(slot, row)?)
    }

    fn row(&self, slot: &SlotPlan, row: usize) -> Result<Decoded, Error> {
        self.decoder().row(slot, row).map_err(|broken| self.broken(broken.0))
    }

    /// The object of a row that the kernel took.
    fn object(&self, class: usize, row: usize) -> Result<Raw, Error> {
        let base = u64::from(self.tables.bases[class]);
        if !self.stays(plan::Rows::Class(class), base + row as u64) {
            return Err(self.broken("an id that no object has"));
        }
        let plan = &self.plan.classes[class];
        if reflect::own_class(plan.raw).is_none() {
            return self.made.object(self.plan, class, row, |raw| self.holder.add(self.ruby, raw));
        }
        let mut parts = [heap::NIL; 3];
        for field in &plan.fields {
            if let heap::Field::Own(part) = field.field {
                parts[part] = self.value(&field.slot, self.start(class, &field.slot) + row)?;
            }
        }
        self.made.own(plan.raw, class, row, parts, |raw| self.holder.add(self.ruby, raw))
    }

    /// Whether a row was taken for good. What a trap tells of may also be a row that was its job's alone.
    fn stays(&self, rows: plan::Rows, row: u64) -> bool {
        let heaps = self.program.heaps.iter().zip(&self.plan.heaps).zip(&self.tables.starts);
        heaps.filter(|((_, r), _)| **r == rows).any(|((heap, _), start)| {
            let taken = if heap.scratch { 0 } else { self.columns[heap.taken.index()].view::<u64>()[0] };
            self.trapped || (*start..start.saturating_add(taken)).contains(&row)
        })
    }

    /// The array at an offset that the kernel took.
    fn array(&self, kind: usize, offset: u32, len: u32) -> Result<Raw, Error> {
        if !self.stays(plan::Rows::Kind(kind), offset.into()) {
            return Err(self.broken("an offset where no array begins"));
        }
        self.made.array(kind, offset as usize, len as usize, |raw| self.holder.add(self.ruby, raw))
    }

    /// Fills all that was made, which may make more.
    ///
    /// # Errors
    /// When memory ends, or rows that mean nothing.
    pub fn fill_new(&self) -> Result<(), Error> {
        let mut orders: Vec<Option<(Vec<usize>, bool)>> = vec![None; self.plan.classes.len()];
        let mut ivars = Vec::new();
        while let Some(next) = self.made.next() {
            match next {
                Waiting::Object(object, class, row) => {
                    let fields = &self.plan.classes[class].fields;
                    let (order, frozen) = orders[class].get_or_insert_with(|| {
                        let mut order: Vec<usize> = (0..fields.len()).collect();
                        order.sort_by_key(|i| fields[*i].given.unwrap_or(u32::MAX));
                        (order, reflect::is_data(self.ruby, self.plan.classes[class].raw))
                    });
                    ivars.clear();
                    for number in order.iter() {
                        let field = &fields[*number];
                        let value = self.value(&field.slot, self.start(class, &field.slot) + row)?;
                        // an ivar that is nil without having been given is one that was never set
                        if field.given.is_some() || value != heap::NIL {
                            ivars.push((field.field, value));
                        }
                    }
                    made::fill_object(object, &ivars, *frozen)?;
                }
                Waiting::Array(array, kind, offset, len) => {
                    let Some(slot) = &self.plan.kinds[kind].slot else { continue };
                    let elements = (offset..offset + len).map(|row| self.value(slot, row));
                    let elements = elements.collect::<Result<Vec<Raw>, Error>>()?;
                    made::fill_array(array, &elements)?;
                }
            }
        }
        Ok(())
    }

    /// Makes the object that a value needs, and keeps it.
    fn make(&self, decoded: Decoded) -> Result<Raw, Error> {
        let raw = match decoded {
            Decoded::Value(raw) => return Ok(raw),
            Decoded::Object(class, row) => return self.object(class, row),
            Decoded::Array(kind, offset, len) => return self.array(kind, offset, len),
            // SAFETY: constructors of plain numbers; `protect` catches NoMemoryError.
            #[allow(unsafe_code)]
            Decoded::Float(f) => protect(|| unsafe { rb_sys::rb_float_new(f) })?,
            // SAFETY: as above.
            #[allow(unsafe_code)]
            Decoded::Int(i) => protect(|| unsafe { rb_sys::rb_ll2inum(i) })?,
            Decoded::Symbol(hash) => {
                symbols::search(self.ruby, hash)?.ok_or_else(|| self.broken("an unknown symbol"))?
            }
            Decoded::Str(word) => self.string(word)?,
        };
        self.holder.add(self.ruby, raw);
        Ok(raw)
    }

    /// A String of bytes that a kernel chose; one that the program's text has frozen is the interned one.
    fn string(&self, word: StrWord) -> Result<Raw, Error> {
        let (from, to) = (word.offset() as usize, word.offset() as usize + word.length());
        let bytes = match self.schema.bytes {
            Some(column) => self.columns[column.index()].view::<u8>().get(from..to),
            None => self.plan.literals.get(from..to),
        };
        let bytes = bytes.ok_or_else(|| self.broken("a String beyond all bytes"))?;
        // SAFETY: constructors that copy `bytes`, with one of Ruby's own encodings; `protect` catches NoMemoryError.
        #[allow(unsafe_code)]
        unsafe {
            let encoding = match word.encoding() {
                Encoding::Utf8 | Encoding::Ascii => rb_sys::rb_utf8_encoding(),
                Encoding::Binary => rb_sys::rb_ascii8bit_encoding(),
                Encoding::UsAscii => rb_sys::rb_usascii_encoding(),
            };
            let (at, len) = (bytes.as_ptr().cast(), bytes.len() as _);
            if word.is_made() {
                protect(|| rb_sys::rb_enc_str_new(at, len, encoding))
            } else {
                protect(|| rb_sys::rb_enc_interned_str(at, len, encoding))
            }
        }
    }

    /// The values of trap words, as the site says how to read them.
    ///
    /// # Errors
    /// Words that mean nothing.
    pub fn operands(&self, reprs: &[Repr], words: &[u64]) -> Result<Vec<Raw>, Error> {
        let mut words = words.iter().copied();
        let mut next = || words.next().unwrap_or(0);
        let mut values = Vec::with_capacity(reprs.len());
        for repr in reprs {
            let (tag, payload) = match repr {
                Repr::Unit(_) => (0, 0),
                Repr::Union => {
                    let tag = next() as i32;
                    (tag, next())
                }
                _ => (0, next()),
            };
            // a union's array may be of any kind: offsets of two kinds may be equal, and this is for messages only
            let kind = match repr {
                Repr::Array(kind) => self.plan.kinds.iter().position(|k| k.kind == *kind),
                _ => (0..self.plan.kinds.len())
                    .find(|k| self.tables.array(*k, (payload >> 32) as u32).is_some())
                    .or_else(|| {
                        self.plan.heaps.iter().find_map(|rows| match rows {
                            plan::Rows::Kind(kind) => Some(*kind),
                            plan::Rows::Class(_) => None,
                        })
                    }),
            };
            let decoded = self.decoder().decode(*repr, kind, tag, payload).map_err(|broken| self.broken(broken.0))?;
            values.push(self.make(decoded)?);
        }
        Ok(values)
    }

    /// The block's values as an Array.
    ///
    /// # Errors
    /// Rows that mean nothing, or what Ruby raises when memory ends.
    pub fn results(&self, slot: &SlotPlan, len: usize) -> Result<RArray, Error> {
        let decoder = self.decoder();
        if matches!(slot.repr, Repr::Int | Repr::Float) && slot.value.is_some() {
            let filled = list::filled(self.ruby, len, |first, out| decoder.rows(slot, first, out).map(drop))?;
            let (array, rest) = filled.map_err(|broken: Broken| self.broken(broken.0))?;
            return self.finished(slot, array, rest);
        }
        let pieces = (0..len).step_by(PIECE).collect();
        // each in memory of its own, so that workers are the first to touch it
        let read = crew::map(len, pieces, |first: usize| {
            let mut values = vec![heap::NIL; PIECE.min(len - first)];
            decoder.rows(slot, first, &mut values).map(drop)?;
            Ok((first, values))
        });
        let array = self.ruby.ary_new_capa(len);
        let mut rest = Vec::new();
        for piece in read {
            let (first, mut values) = piece.map_err(|broken: Broken| self.broken(broken.0))?;
            for (i, value) in values.iter_mut().enumerate().filter(|(_, value)| **value == heap::UNDEF) {
                rest.push(first + i);
                *value = heap::NIL;
            }
            // SAFETY: the values are immediate or held by the tables' holder; Ruby copies them. The array is on the machine stack.
            #[allow(unsafe_code)]
            protect(|| unsafe { rb_sys::rb_ary_cat(array.as_raw(), values.as_ptr(), values.len() as _) })?;
        }
        self.finished(slot, array, rest)
    }

    /// The elements of the arrays that are the block's values, one array's after the other's; None where they are no numbers of one kind, or the kernel did
    /// not make all arrays of that kind: of others it may not know the elements.
    ///
    /// # Errors
    /// Rows that mean nothing.
    pub fn joined(&self, slot: &SlotPlan, len: usize) -> Result<Option<(Dtype, HostColumn)>, Error> {
        let (Repr::Array(_), Some(kind), Some(arrays)) = (slot.repr, slot.kind, slot.value) else { return Ok(None) };
        let Some(elements) = self.plan.kinds[kind].slot.as_ref().filter(|_| !self.tables.has_arrays(kind)) else {
            return Ok(None);
        };
        let (dtype, column) = match (elements.repr, elements.value) {
            (Repr::Int, Some(column)) => (Dtype::I64, column),
            (Repr::Float, Some(column)) => (Dtype::F64, column),
            _ => return Ok(None),
        };
        let arrays = &self.columns[arrays.index()].view::<u64>()[..len];
        let from = self.columns[column.index()].view::<u64>();
        let mut joined = HostColumn::zeroed(dtype.storage(), arrays.iter().map(|word| *word as u32 as usize).sum());
        let mut to = joined.view_mut::<u64>();
        for word in arrays {
            let (offset, length) = ((word >> 32) as usize, *word as u32 as usize);
            let (here, rest) = to.split_at_mut(length);
            // an array of none may be anywhere
            if length > 0 {
                let rows = from.get(offset..offset + length);
                here.copy_from_slice(rows.ok_or_else(|| self.broken("an array beyond all elements"))?);
            }
            to = rest;
        }
        Ok(Some((dtype, joined)))
    }

    /// The block's values, with those that only Ruby makes.
    fn finished(&self, slot: &SlotPlan, array: RArray, rest: Vec<usize>) -> Result<RArray, Error> {
        for index in rest {
            array.store(index as isize, value(self.value(slot, index)?))?;
        }
        Ok(array)
    }

    /// Works out what is to change in objects and arrays, and makes sure that it can.
    ///
    /// # Errors
    /// FrozenError for an object that another thread froze meanwhile, and the like.
    pub fn prepare(&self) -> Result<Changes, Error> {
        let written = |(at, class): (usize, &ClassPlan)| {
            let fields = class.fields.iter().enumerate().filter(|(_, f)| f.written);
            fields.map(|(number, _)| self.change(at, number)).collect()
        };
        let mut changes =
            Changes { classes: self.plan.classes.iter().enumerate().map(written).collect(), slots: Vec::new() };
        changes.classes.retain(|fields| !fields.is_empty());
        self.compare(&mut changes.classes)?;
        for fields in &mut changes.classes {
            fields.retain(|change| !change.rows.is_empty());
        }
        changes.classes.retain(|fields| !fields.is_empty());
        for (at, kind) in self.plan.kinds.iter().enumerate() {
            if let (true, Some(slot)) = (kind.written, &kind.slot) {
                self.arrays(at, slot, &mut changes.slots)?;
            }
        }
        Ok(changes)
    }

    fn change(&self, at: usize, number: usize) -> FieldChange {
        let field = &self.plan.classes[at].fields[number];
        FieldChange {
            class: at,
            field: number,
            reader: FieldReader::new(field.field, &self.tables.hashes),
            start: self.start(at, &field.slot),
            rows: Rows::new(self.tables.classes[at].objects.len()),
            made: Vec::new(),
        }
    }

    /// Where the rows of a class begin in the columns of a slot.
    fn start(&self, at: usize, slot: &SlotPlan) -> usize {
        match slot.value.or(slot.tag).map(|c| self.program.columns[c.index()].space) {
            Some(Space::Class { hierarchy, first, .. }) => {
                let first = self.plan.hierarchy(hierarchy as usize).start + first as usize;
                (self.tables.bases[at] - self.tables.bases[first]) as usize
            }
            _ => 0,
        }
    }

    /// The objects that fields of one class are of.
    fn objects(&self, fields: &[FieldChange]) -> &[Raw] {
        fields.first().map_or(&[], |field| &self.tables.classes[field.class].objects)
    }

    /// Finds the rows whose objects hold another value.
    fn compare(&self, classes: &mut [Vec<FieldChange>]) -> Result<(), Error> {
        let lengths: Vec<usize> = classes.iter().map(|fields| self.objects(fields).len()).collect();
        let mut left: Vec<(usize, Range<usize>)> = lengths.iter().map(|len| 0..*len).enumerate().collect();
        if crew::pays(lengths.iter().sum()) {
            left = self.compare_beside(classes, &lengths)?;
        }
        for (class, rows) in left {
            let objects = self.objects(&classes[class]);
            for first in rows.clone().step_by(CHUNK) {
                let objects = &objects[first..rows.end.min(first + CHUNK)];
                heap::prefetch_all(objects.iter().copied());
                for change in &mut classes[class] {
                    self.compare_chunk(change, first, objects)?;
                }
            }
        }
        Ok(())
    }

    /// The same by workers, of all classes side by side; what they could not compare, of each class in the order of rows.
    fn compare_beside(
        &self,
        classes: &mut [Vec<FieldChange>],
        lengths: &[usize],
    ) -> Result<Vec<(usize, Range<usize>)>, Error> {
        let mut fields = Vec::new();
        let mut bits = Vec::new();
        for changes in classes {
            let class = &self.plan.classes[changes[0].class];
            let objects = &self.tables.classes[changes[0].class].objects[..];
            let mut of_class = Vec::new();
            for FieldChange { field, reader, start, rows, .. } in changes {
                reader.learn(objects, class.raw);
                of_class.push((&class.fields[*field].slot, &*reader, *start));
                bits.push(&mut rows.0[..]);
            }
            fields.push((class.raw, objects, of_class));
        }
        // of each field in turn, the bits of a piece's rows
        let mut parts = |piece: Vec<Range<usize>>| {
            let mut bits = bits.iter_mut();
            let part = |(class, rows): (usize, Range<usize>)| {
                let words = rows.len().div_ceil(64);
                let fields = bits.by_ref().take(fields[class].2.len());
                let bits = fields.map(|bits| bits.split_off_mut(..words).unwrap_or_default()).collect();
                Part { class, rows, bits }
            };
            piece.into_iter().enumerate().map(part).collect()
        };
        let pieces: Vec<Vec<Part<'_>>> = crew::side_by_side(lengths).into_iter().map(&mut parts).collect();
        let decoder = self.decoder();
        let compare = |Part { class, rows, bits }: &mut Part<'_>| {
            let (raw, objects, fields) = &fields[*class];
            let mut held = [heap::NIL; CHUNK];
            for (chunk, objects) in objects[rows.clone()].chunks(CHUNK).enumerate() {
                heap::prefetch_all(objects.iter().copied());
                for ((slot, reader, start), bits) in fields.iter().zip(&mut *bits) {
                    let first = start + rows.start + chunk * CHUNK;
                    let bits = &mut bits[chunk * CHUNK / 64..];
                    let held = &mut held[..objects.len()];
                    let known = reader.peek_all(objects, *raw, held);
                    if !known || !differing(&decoder, slot, first, objects, held, bits)? {
                        return Ok(false);
                    }
                }
            }
            Ok(true)
        };
        let compared = crew::map(lengths.iter().sum(), pieces, |parts| {
            let mut left = Vec::new();
            for mut part in parts {
                if !compare(&mut part)? {
                    left.push((part.class, part.rows));
                }
            }
            Ok(left)
        });
        let mut left = Vec::new();
        for piece in compared {
            left.extend(piece.map_err(|broken: Broken| self.broken(broken.0))?);
        }
        Ok(left)
    }

    /// Finds the rows from `first` on whose objects hold another value.
    fn compare_chunk(&self, change: &mut FieldChange, first: usize, objects: &[Raw]) -> Result<(), Error> {
        let class = &self.plan.classes[change.class];
        let slot = &class.fields[change.field].slot;
        let mut values = [heap::NIL; CHUNK];
        let values = self.decoder().rows(slot, change.start + first, &mut values[..objects.len()]);
        for (i, (object, new)) in objects.iter().zip(values.map_err(|broken| self.broken(broken.0))?).enumerate() {
            let row = first + i;
            let old = change.reader.get(*object, class.raw);
            if *new == old {
                continue;
            }
            if *new == heap::UNDEF {
                let new = self.row(slot, change.start + row)?;
                if same(old, new) {
                    continue;
                }
                change.made.push((row as u32, self.make(new)?));
            }
            if heap::is_frozen(*object) {
                return Err(crate::errors::frozen(self.ruby, value(*object)));
            }
            change.rows.insert(row);
        }
        Ok(())
    }

    fn arrays(&self, at: usize, slot: &SlotPlan, slots: &mut Vec<(Raw, usize, Raw)>) -> Result<(), Error> {
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
                let values = self.decoder().rows(slot, offset + start, values).map_err(|e| self.broken(e.0))?;
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
                        return Err(crate::errors::frozen(self.ruby, value(*array)));
                    }
                    if old.is_none() {
                        let message = "an Array that a section writes was made shorter while the section ran";
                        return Err(Error::new(self.ruby.exception_runtime_error(), message));
                    }
                    slots.push((*array, index, self.make(new)?));
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

    /// The new value of a captured local; None where nobody wrote it.
    ///
    /// # Errors
    /// IntegerOverflow.
    pub fn combined(
        &self,
        accumulator: &Accumulator,
        slot: &SlotPlan,
        start: Value,
        len: usize,
    ) -> Result<Option<Value>, Error> {
        let written = &self.columns[accumulator.written_tick.index()].view::<i64>()[..len];
        if accumulator.combine == Combine::Last {
            let last = (0..len).filter(|i| written[*i] >= 0).max_by_key(|i| (written[*i], *i));
            return match last {
                Some(row) => Ok(Some(value(self.value(slot, row)?))),
                None => Ok(None),
            };
        }
        if written.iter().all(|tick| *tick < 0) {
            return Ok(None);
        }
        let number = |raw: Raw| match heap::see(raw) {
            Seen::Int(i) => Ok(Number::Int(i.into())),
            Seen::Float(f) => Ok(Number::Float(f)),
            _ => Err(self.broken("a contribution that is no number")),
        };
        let start = number(start.as_raw())?;
        let mut failed = None;
        let mut contribution = |i: usize| {
            if written[i] < 0 {
                return None;
            }
            let decoded = self.row(slot, i);
            match decoded {
                Ok(Decoded::Value(raw)) => match number(raw) {
                    Ok(number) => Some(number),
                    Err(error) => {
                        failed = Some(error);
                        None
                    }
                },
                Ok(Decoded::Float(f)) => Some(Number::Float(f)),
                Ok(Decoded::Int(i)) => Some(Number::Int(i.into())),
                Ok(_) => None,
                Err(error) => {
                    failed = Some(error);
                    None
                }
            }
        };
        let combined = combine(accumulator.combine, start, len, &mut contribution);
        if let Some(error) = failed {
            return Err(error);
        }
        let decoded = match combined {
            Ok(Number::Float(f)) => heap::flonum_of(f).map_or(Decoded::Float(f), Decoded::Value),
            Ok(Number::Int(i)) => match i64::try_from(i) {
                Ok(i) => heap::fixnum_of(i).map_or(Decoded::Int(i), Decoded::Value),
                Err(_) => return Err(crate::errors::accumulated_overflow(self.ruby, &accumulator.name)),
            },
            Err(_) => return Err(crate::errors::accumulated_overflow(self.ruby, &accumulator.name)),
        };
        Ok(Some(value(self.make(decoded)?)))
    }
}

/// Notes which of at most [`CHUNK`] objects hold another value than rows from `first` on, bit by bit; `held` is what they hold. False
/// where that needs the Ruby thread: because the value is to be made, or there is an error to be raised.
fn differing(
    decoder: &Decoder<'_>,
    slot: &SlotPlan,
    first: usize,
    objects: &[Raw],
    held: &[Raw],
    bits: &mut [u64],
) -> Result<bool, Broken> {
    let mut values = [heap::NIL; CHUNK];
    let values = decoder.rows(slot, first, &mut values[..objects.len()])?;
    for (i, ((object, old), new)) in objects.iter().zip(held).zip(values).enumerate() {
        if new == old || *new == heap::UNDEF && same(*old, decoder.row(slot, first + i)?) {
            continue;
        }
        if *new == heap::UNDEF || heap::is_frozen(*object) {
            return Ok(false);
        }
        bits[i / 64] |= 1 << (i % 64);
    }
    Ok(true)
}

/// Writes one field.
struct Writer<'a> {
    class: Raw,
    field: &'a FieldPlan,
    objects: &'a [Raw],
    change: FieldChange,
    /// The GC has to hear of every object that is assigned.
    marking: bool,
}

/// What a worker leaves to the Ruby thread.
#[derive(Default)]
struct Left {
    /// Objects that were assigned one that the GC has to know of.
    assigned: Vec<(Raw, Raw)>,
    /// Rows that are not written yet.
    rows: Vec<usize>,
}

impl<'a> Writer<'a> {
    fn new(unpacker: &Unpacker<'a>, change: FieldChange, marking: bool) -> Self {
        let class = &unpacker.plan.classes[change.class];
        let objects = &unpacker.tables.classes[change.class].objects;
        Self { class: class.raw, field: &class.fields[change.field], objects, change, marking }
    }

    /// Writes those of at most [`CHUNK`] rows that are to change, as far as a worker can.
    fn write(&self, decoder: &Decoder<'_>, rows: Range<usize>, left: &mut Left) -> Result<(), Broken> {
        let mut values = [heap::NIL; CHUNK];
        let values = decoder.rows(&self.field.slot, self.change.start + rows.start, &mut values[..rows.len()])?;
        for (row, new) in rows.zip(values).filter(|(row, _)| self.change.rows.contains(*row)) {
            let object = self.objects[row];
            if *new == heap::UNDEF || !self.change.reader.put(object, self.class, *new) {
                left.rows.push(row);
            } else if self.marking || !heap::needs_no_barrier(*new) {
                left.assigned.push((object, *new));
            }
        }
        Ok(())
    }

    /// Writes a row that no worker could.
    fn write_slowly(&mut self, unpacker: &Unpacker<'_>, row: usize) -> Result<(), Error> {
        let object = self.objects[row];
        let made = self.change.made.binary_search_by_key(&row, |(row, _)| *row as usize);
        let new = match made {
            Ok(at) => self.change.made[at].1,
            Err(_) => unpacker.value(&self.field.slot, self.change.start + row)?,
        };
        // the first of its form: from here the reader knows where the ivar is
        self.change.reader.get(object, self.class);
        if !self.change.reader.set(object, self.class, new) {
            heap::set_field(object, self.field.field, new)?;
        }
        Ok(())
    }
}

impl Changes {
    /// Changes objects and arrays. Nothing in it can be interrupted.
    ///
    /// # Errors
    /// Only when memory ends while an object gets an ivar that it never had.
    pub fn apply(self, unpacker: &Unpacker<'_>) -> Result<(), Error> {
        let decoder = unpacker.decoder();
        let marking = heap::is_marking();
        let writer = |change| Writer::new(unpacker, change, marking);
        let mut classes: Vec<Vec<Writer<'_>>> =
            self.classes.into_iter().map(|fields| fields.into_iter().map(writer).collect()).collect();
        let lengths: Vec<usize> = classes.iter().map(|fields| fields[0].objects.len()).collect();
        let write = |piece: Vec<Range<usize>>| {
            let mut left: Vec<Vec<Left>> = Vec::with_capacity(classes.len());
            for (fields, rows) in classes.iter().zip(piece) {
                let mut of_class: Vec<Left> = fields.iter().map(|_| Left::default()).collect();
                for start in rows.clone().step_by(CHUNK) {
                    let rows = start..rows.end.min(start + CHUNK);
                    heap::prefetch_all(fields[0].objects[rows.clone()].iter().copied());
                    for (field, left) in fields.iter().zip(&mut of_class) {
                        field.write(&decoder, rows.clone(), left)?;
                    }
                }
                left.push(of_class);
            }
            Ok::<_, Broken>(left)
        };
        let left = crew::map(lengths.iter().sum(), crew::side_by_side(&lengths), write);
        let left = left.into_iter().collect::<Result<Vec<_>, _>>().map_err(|broken| unpacker.broken(broken.0))?;
        // all of them before anything allocates
        for Left { assigned, .. } in left.iter().flatten().flatten() {
            for (at, (object, new)) in assigned.iter().enumerate() {
                if let Some((object, new)) = assigned.get(at + heap::AHEAD) {
                    heap::prefetch(*object);
                    heap::prefetch(*new);
                }
                heap::barrier(*object, *new);
            }
        }
        for left in left {
            for (field, left) in classes.iter_mut().flatten().zip(left.into_iter().flatten()) {
                left.rows.into_iter().try_for_each(|row| field.write_slowly(unpacker, row))?;
            }
        }
        // SAFETY: live Arrays that are not frozen and whose bodies are their own, at indices that they have.
        #[allow(unsafe_code)]
        protect(|| unsafe {
            for (array, index, new) in &self.slots {
                rb_sys::rb_ary_store(*array, *index as _, *new);
            }
            heap::NIL
        })?;
        Ok(())
    }
}
