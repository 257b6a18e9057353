//! Columns to objects: the write-back, results, and captured locals.
//!
//! Here: [`Unpacker`], which first works out all that is to change ([`Unpacker::prepare`]) and then changes it
//! ([`Changes::apply`]). Not here: what a launch did.
//! Invariant: everything that can fail happens before the first change, and no Ruby code runs between the first change
//! and the last.

use crate::heap::{self, FieldReader, Raw, Seen};
use crate::holder::LazyHolder;
use crate::made::{self, Made, Waiting};
use crate::plan::{self, FieldPlan, Plan, SlotPlan};
use crate::reflect::{self, value};
use crate::registry::{classes, symbols};
use crate::trace::{CHUNK, Tables};
use ikra_core::id::ClassId;
use ikra_core::ir::{ColumnId, Program, Space};
use ikra_core::layout::schema::{Accumulator, Combine, Schema};
use ikra_core::memory::column::HostColumn;
use ikra_core::sched::combine::{Number, combine};
use ikra_core::types::{Encoding, Repr, StrWord, Tag, Unit};
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, RArray, Ruby, Value};

/// What a column or trap holds, before it is a Ruby value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Decoded {
    /// A VALUE that is there already, or needs no object.
    Value(Raw),
    /// A Float that only an object can hold.
    Float(f64),
    /// An Integer that only a Bignum can hold.
    Int(i64),
    /// A symbol that the table does not have.
    Symbol(i64),
    /// A String that is to be made.
    Str(StrWord),
}

/// Reads columns of one launch.
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

/// A row of one field that is to change.
struct FieldChange {
    class: usize,
    field: usize,
    /// Where the class's rows begin in the columns.
    start: usize,
    rows: Rows,
    /// Values of rows that needed an object, in the order of rows.
    made: Vec<(u32, Raw)>,
}

/// A set of rows.
struct Rows {
    bits: Vec<u64>,
    any: bool,
}

impl Rows {
    fn new(len: usize) -> Self {
        Self { bits: vec![0; len.div_ceil(64)], any: false }
    }
    fn insert(&mut self, row: usize) {
        self.bits[row / 64] |= 1 << (row % 64);
        self.any = true;
    }
    fn contains(&self, row: usize) -> bool {
        self.bits[row / 64] >> (row % 64) & 1 == 1
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

    fn word(&self, column: ColumnId, row: usize) -> u64 {
        let column = &self.columns[column.index()];
        match column.storage() {
            ikra_core::ir::Storage::U8 => u64::from(column.view::<u8>()[row]),
            ikra_core::ir::Storage::U32 => u64::from(column.view::<u32>()[row]),
            ikra_core::ir::Storage::I32 => i64::from(column.view::<i32>()[row]) as u64,
            ikra_core::ir::Storage::F32 => f64::from(column.view::<f32>()[row]).to_bits(),
            _ => column.view::<u64>()[row],
        }
    }

    /// What a register or slot holds.
    #[inline]
    fn decode(&self, repr: Repr, kind: Option<usize>, tag: i32, payload: u64) -> Result<Decoded, Error> {
        Ok(Decoded::Value(match repr {
            Repr::Unit(Unit::Nil) => heap::NIL,
            Repr::Unit(Unit::True) => heap::TRUE,
            Repr::Unit(Unit::False) => heap::FALSE,
            Repr::Unit(Unit::Module(class)) => classes::get(class).raw,
            Repr::Unit(Unit::Never | Unit::Proc(_)) => return Err(self.broken("a value where none can be")),
            Repr::Bool => {
                if payload & 1 == 1 {
                    heap::TRUE
                } else {
                    heap::FALSE
                }
            }
            Repr::Int => match heap::fixnum_of(payload as i64) {
                Some(raw) => raw,
                None => return Ok(Decoded::Int(payload as i64)),
            },
            Repr::Float => match heap::flonum_of(f64::from_bits(payload)) {
                Some(raw) => raw,
                None => return Ok(Decoded::Float(f64::from_bits(payload))),
            },
            Repr::Sym => match symbols::symbol(payload as i64) {
                Some(raw) => raw,
                None => return Ok(Decoded::Symbol(payload as i64)),
            },
            Repr::Str => {
                let word = StrWord(payload);
                if word.is_made() || (word.offset() as usize) < self.plan.literals.len() {
                    return Ok(Decoded::Str(word));
                }
                let string = self.tables.string(word.offset());
                string.ok_or_else(|| self.broken("an offset where no String begins"))?
            }
            Repr::Ref(hierarchy) => self.object(hierarchy as usize, payload as u32)?,
            Repr::Array(_) => {
                let kind = kind.ok_or_else(|| self.broken("an array of no kind"))?;
                self.array(kind, (payload >> 32) as u32, payload as u32)?
            }
            Repr::Union => {
                let repr = match tag {
                    Tag::NIL => Repr::Unit(Unit::Nil),
                    Tag::FALSE => Repr::Unit(Unit::False),
                    Tag::TRUE => Repr::Unit(Unit::True),
                    Tag::INT => Repr::Int,
                    Tag::FLOAT => Repr::Float,
                    Tag::SYM => Repr::Sym,
                    Tag::STR => Repr::Str,
                    Tag::MODULE => Repr::Unit(Unit::Module(ClassId(payload as u32))),
                    Tag::ARRAY => Repr::Array(ikra_core::id::ArrayKind(0)),
                    object if object >= Tag::OBJECT => Repr::Ref((object - Tag::OBJECT) as u32),
                    _ => return Err(self.broken("an unknown tag")),
                };
                return self.decode(repr, kind, 0, payload);
            }
        }))
    }

    /// The object of an id, made where the kernel made it.
    #[inline]
    fn object(&self, hierarchy: usize, id: u32) -> Result<Raw, Error> {
        let unknown = || self.broken("an id that no object has");
        let (class, row) = self.tables.place(self.plan, hierarchy, id).ok_or_else(unknown)?;
        if let Some(object) = self.tables.classes[class].objects.get(row) {
            return Ok(*object);
        }
        let base = u64::from(self.tables.bases[class]);
        if !self.stays(plan::Rows::Class(class), base + row as u64) {
            return Err(unknown());
        }
        let plan = &self.plan.classes[class];
        if reflect::own_class(plan.raw).is_none() {
            return self.made.object(self.plan, class, row, |raw| self.holder.add(self.ruby, raw));
        }
        let mut parts = [heap::NIL; 3];
        for field in &plan.fields {
            if let heap::Field::Own(part) = field.field {
                parts[part] = self.make(self.row(&field.slot, self.start(class, &field.slot) + row)?)?;
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

    /// The array at an offset, made where the kernel made it.
    fn array(&self, kind: usize, offset: u32, len: u32) -> Result<Raw, Error> {
        if let Some(array) = self.tables.array(kind, offset) {
            return Ok(array);
        }
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
                        let value = self.make(self.row(&field.slot, self.start(class, &field.slot) + row)?)?;
                        // an ivar that is nil without having been given is one that was never set
                        if field.given.is_some() || value != heap::NIL {
                            ivars.push((field.field, value));
                        }
                    }
                    made::fill_object(object, &ivars, *frozen)?;
                }
                Waiting::Array(array, kind, offset, len) => {
                    let Some(slot) = &self.plan.kinds[kind].slot else { continue };
                    let elements = (offset..offset + len).map(|row| self.make(self.row(slot, row)?));
                    let elements = elements.collect::<Result<Vec<Raw>, Error>>()?;
                    made::fill_array(array, &elements)?;
                }
            }
        }
        Ok(())
    }

    /// The value of one row of a slot.
    #[inline]
    fn row(&self, slot: &SlotPlan, row: usize) -> Result<Decoded, Error> {
        let payload = slot.value.map_or(0, |column| self.word(column, row));
        let tag = slot.tag.map_or(0, |column| self.word(column, row) as i32);
        self.decode(slot.repr, slot.kind, tag, payload)
    }

    /// The values of rows from `first` on, [`heap::UNDEF`] for those that an object must be made for.
    fn chunk<'b>(&self, slot: &SlotPlan, first: usize, out: &'b mut [Raw]) -> Result<&'b [Raw], Error> {
        match (slot.repr, slot.value.map(|column| &self.columns[column.index()])) {
            (Repr::Int, Some(column)) => {
                for (out, i) in out.iter_mut().zip(&column.view::<i64>()[first..]) {
                    *out = heap::fixnum_of(*i).unwrap_or(heap::UNDEF);
                }
            }
            (Repr::Float, Some(column)) => {
                for (out, f) in out.iter_mut().zip(&column.view::<f64>()[first..]) {
                    *out = heap::flonum_of(*f).unwrap_or(heap::UNDEF);
                }
            }
            _ => {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = match self.row(slot, first + i)? {
                        Decoded::Value(raw) => raw,
                        _ => heap::UNDEF,
                    };
                }
            }
        }
        Ok(out)
    }

    /// Makes the object that a value needs, and keeps it.
    fn make(&self, decoded: Decoded) -> Result<Raw, Error> {
        let raw = match decoded {
            Decoded::Value(raw) => return Ok(raw),
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
            values.push(self.make(self.decode(*repr, kind, tag, payload)?)?);
        }
        Ok(values)
    }

    /// The block's values as an Array.
    ///
    /// # Errors
    /// Rows that mean nothing, or what Ruby raises when memory ends.
    pub fn results(&self, slot: &SlotPlan, len: usize) -> Result<RArray, Error> {
        let mut values = vec![heap::NIL; len];
        self.chunk(slot, 0, &mut values)?;
        let rest: Vec<usize> = (0..len).filter(|i| values[*i] == heap::UNDEF).collect();
        rest.iter().for_each(|i| values[*i] = heap::NIL);
        // SAFETY: the values are immediate or held by the tables' holder; Ruby copies them.
        #[allow(unsafe_code)]
        let array = protect(|| unsafe { rb_sys::rb_ary_new_from_values(values.len() as _, values.as_ptr()) })?;
        let array = RArray::from_value(value(array)).expect("just made");
        for index in rest {
            let made = value(self.make(self.row(slot, index)?)?);
            array.store(index as isize, made)?;
        }
        Ok(array)
    }

    /// Works out what is to change in objects and arrays, and makes sure that it can.
    ///
    /// # Errors
    /// FrozenError for an object that another thread froze meanwhile, and the like.
    pub fn prepare(&self) -> Result<Changes, Error> {
        let mut changes = Changes { classes: Vec::new(), slots: Vec::new() };
        for (at, class) in self.plan.classes.iter().enumerate() {
            let fields = class.fields.iter().enumerate().filter(|(_, f)| f.written);
            let mut fields: Vec<(FieldChange, FieldReader)> = fields
                .map(|(number, f)| (self.change(at, number), FieldReader::new(f.field, &self.tables.hashes)))
                .collect();
            if fields.is_empty() {
                continue;
            }
            let objects = &self.tables.classes[at].objects;
            for (chunk, rows) in objects.chunks(CHUNK).enumerate() {
                rows.iter().for_each(|object| heap::prefetch(*object));
                for (change, reader) in &mut fields {
                    self.compare(change, reader, chunk * CHUNK, rows)?;
                }
            }
            let changed = fields.into_iter().map(|(change, _)| change).filter(|c| c.rows.any);
            let changed: Vec<FieldChange> = changed.collect();
            if !changed.is_empty() {
                changes.classes.push(changed);
            }
        }
        for (at, kind) in self.plan.kinds.iter().enumerate() {
            if let (true, Some(slot)) = (kind.written, &kind.slot) {
                self.arrays(at, slot, &mut changes.slots)?;
            }
        }
        Ok(changes)
    }

    fn change(&self, at: usize, number: usize) -> FieldChange {
        let start = self.start(at, &self.plan.classes[at].fields[number].slot);
        FieldChange {
            class: at,
            field: number,
            start,
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

    /// Finds the rows from `first` on whose objects hold another value.
    fn compare(
        &self,
        change: &mut FieldChange,
        reader: &mut FieldReader,
        first: usize,
        objects: &[Raw],
    ) -> Result<(), Error> {
        let class = &self.plan.classes[change.class];
        let slot = &class.fields[change.field].slot;
        let mut values = [heap::NIL; CHUNK];
        let values = self.chunk(slot, change.start + first, &mut values[..objects.len()])?;
        for (i, (object, new)) in objects.iter().zip(values).enumerate() {
            let row = first + i;
            let old = reader.get(*object, class.raw);
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
            for index in 0..packed {
                let new = self.row(slot, offset + index)?;
                let old = heap::elements(*array).get(index).copied();
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
                Some(row) => Ok(Some(value(self.make(self.row(slot, row)?)?))),
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
                Ok(Decoded::Symbol(_) | Decoded::Str(_)) => None,
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

/// Whether an ivar holds this already. Floats are compared by their bits, so that -0.0 and NaN come through.
#[inline]
fn same(old: Raw, new: Decoded) -> bool {
    match new {
        Decoded::Value(raw) if raw == old => true,
        Decoded::Value(raw) if raw & 3 == 2 => {
            matches!(heap::see(old), Seen::Float(f) if f.to_bits() == heap::flonum(raw).to_bits())
        }
        Decoded::Value(_) | Decoded::Symbol(_) | Decoded::Str(_) => false,
        Decoded::Float(f) => matches!(heap::see(old), Seen::Float(o) if o.to_bits() == f.to_bits()),
        Decoded::Int(i) => heap::see(old) == Seen::Int(i),
    }
}

/// Writes one field, row by row.
struct Writer<'a> {
    class: Raw,
    field: &'a FieldPlan,
    objects: &'a [Raw],
    reader: FieldReader,
    start: usize,
    rows: Rows,
    made: std::iter::Peekable<std::vec::IntoIter<(u32, Raw)>>,
}

impl<'a> Writer<'a> {
    fn new(unpacker: &Unpacker<'a>, change: FieldChange) -> Self {
        let class = &unpacker.plan.classes[change.class];
        let field = &class.fields[change.field];
        Self {
            class: class.raw,
            field,
            objects: &unpacker.tables.classes[change.class].objects,
            reader: FieldReader::new(field.field, &unpacker.tables.hashes),
            start: change.start,
            rows: change.rows,
            made: change.made.into_iter().peekable(),
        }
    }

    fn write(&mut self, unpacker: &Unpacker<'_>, rows: std::ops::Range<usize>) -> Result<(), Error> {
        let mut values = [heap::NIL; CHUNK];
        let values = &mut values[..rows.len()];
        unpacker.chunk(&self.field.slot, self.start + rows.start, values)?;
        if matches!(self.field.slot.repr, Repr::Ref(_) | Repr::Array(_) | Repr::Union) {
            // the write barrier looks at what is assigned
            values.iter().for_each(|new| heap::prefetch(*new));
        }
        for (row, new) in rows.zip(values) {
            if !self.rows.contains(row) {
                continue;
            }
            let object = self.objects[row];
            let new = match self.made.next_if(|(r, _)| *r as usize == row) {
                Some((_, raw)) => raw,
                None => *new,
            };
            if !self.reader.set(object, self.class, new) {
                // the first of its form: from here the reader knows where the ivar is
                self.reader.get(object, self.class);
                if !self.reader.set(object, self.class, new) {
                    heap::set_field(object, self.field.field, new)?;
                }
            }
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
        for fields in self.classes {
            let mut fields: Vec<Writer<'_>> = fields.into_iter().map(|change| Writer::new(unpacker, change)).collect();
            let objects = fields.first().map_or(0, |f| f.objects.len());
            for start in (0..objects).step_by(CHUNK) {
                let rows = start..objects.min(start + CHUNK);
                fields[0].objects[rows.clone()].iter().for_each(|object| heap::prefetch(*object));
                for field in &mut fields {
                    field.write(unpacker, rows.clone())?;
                }
            }
        }
        for (array, index, new) in self.slots {
            // SAFETY: a live Array that is not frozen and whose body is its own, at an index that it has.
            #[allow(unsafe_code)]
            protect(|| unsafe {
                rb_sys::rb_ary_store(array, index as _, new);
                heap::NIL
            })?;
        }
        Ok(())
    }
}
