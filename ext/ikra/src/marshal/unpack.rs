//! Columns to objects: the write-back, results, and captured locals.
//!
//! Here: [`Unpacker`], which makes results, new values of captured locals, and objects that kernels made. Not here: the
//! launch. `unpack/write_back.rs` writes to objects and Arrays.
//! Invariant: where anything fails, nothing is changed. No Ruby code runs between the first change and the last.

use crate::marshal::decode::{Broken, Decoded, Decoder};
use crate::marshal::made::{self, Made, Waiting};
use crate::marshal::plan::{self, ClassPlan, KindPlan, Plan, SlotPlan};
use crate::marshal::trace::Tables;
use crate::ruby::dtype::Dtype;
use crate::ruby::gvl::Polls;
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::holder::LazyHolder;
use crate::ruby::list;
use crate::ruby::reflect::{self, value};
use crate::ruby::registry::symbols;
use crate::ruby::workers::{self, PIECE};
use ikra_core::ir::{ColumnId, Program};
use ikra_core::layout::schema::{Accumulator, NO_ORIGIN, Schema};
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::room;
use ikra_core::sched::combine::{Number, combine};
use ikra_core::types::combine::Wording;
use ikra_core::types::{Encoding, Repr, StrWord};
use magnus::rb_sys::{AsRawValue, protect};
use magnus::value::ReprValue;
use magnus::{Error, RArray, Ruby, Value};

mod write_back;

/// Makes Ruby's values from the columns of one launch.
pub struct Unpacker<'a> {
    pub ruby: &'a Ruby,
    pub plan: &'a Plan,
    pub program: &'a Program,
    pub schema: &'a Schema,
    pub tables: &'a Tables,
    pub columns: &'a [HostColumn],
    /// Keeps new objects alive.
    pub holder: &'a LazyHolder,
    pub made: &'a Made,
    /// Whether a trap ended the launch. Then the columns are undefined.
    pub trapped: bool,
    /// Checks for interrupts, which end unpacking as long as nothing was written.
    pub polls: &'a Polls,
}

impl Unpacker<'_> {
    fn broken(&self, what: &str) -> Error {
        crate::ruby::errors::internal(self.ruby, &format!("{what} came back from a kernel"))
    }

    /// The reader of the columns.
    fn decoder(&self) -> Decoder<'_> {
        Decoder { plan: self.plan, tables: self.tables, columns: self.columns }
    }

    /// The value of one row of a slot. It may have to be made.
    fn value(&self, slot: &SlotPlan, row: usize) -> Result<Raw, Error> {
        self.make(self.row(slot, row)?)
    }

    fn row(&self, slot: &SlotPlan, row: usize) -> Result<Decoded, Error> {
        self.decoder().row(slot, row).map_err(|broken| self.broken(broken.0))
    }

    /// The object of a row that the kernel allocated.
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

    /// Whether a row was allocated for good. A trap may also refer to a row that only its job had.
    fn stays(&self, rows: plan::Rows, row: u64) -> bool {
        let heaps = self.program.heaps.iter().zip(&self.plan.heaps).zip(&self.tables.starts);
        heaps.filter(|((_, r), _)| **r == rows).any(|((heap, _), start)| {
            let taken = if heap.scratch { 0 } else { self.columns[heap.taken.index()].view::<u64>()[0] };
            self.trapped || (*start..start.saturating_add(taken)).contains(&row)
        })
    }

    /// The array at an offset that the kernel allocated.
    fn array(&self, kind: usize, offset: u32, len: u32) -> Result<Raw, Error> {
        if !self.stays(plan::Rows::Kind(kind), offset.into()) {
            return Err(self.broken("an offset where no array begins"));
        }
        self.made.array(kind, offset as usize, len as usize, |raw| self.holder.add(self.ruby, raw))
    }

    /// Fills all new objects, which may make more.
    ///
    /// # Errors
    /// NoMemoryError, rows that mean nothing, and what interrupts raise.
    pub fn fill_new(&self) -> Result<(), Error> {
        let mut orders: Vec<Option<(Vec<usize>, bool)>> = vec![None; self.plan.classes.len()];
        let mut ivars = Vec::new();
        while let Some(next) = self.made.next() {
            self.polls.look(self.ruby)?;
            match next {
                Waiting::Object(object, class, row) => {
                    let ClassPlan { fields, raw, freezes, origin, .. } = &self.plan.classes[class];
                    let (order, data) = orders[class].get_or_insert_with(|| {
                        let mut order: Vec<usize> = (0..fields.len()).collect();
                        order.sort_by_key(|i| fields[*i].given.unwrap_or(u32::MAX));
                        (order, reflect::is_data(*raw))
                    });
                    let origin = origin.map(|column| self.origin(column, class, row)).transpose()?.flatten();
                    ivars.clear();
                    for number in order.iter() {
                        let field = &fields[*number];
                        let value = self.value(&field.slot, self.start(class, &field.slot) + row)?;
                        // An ivar that is nil and was not given was never set. For a copy, the origin says which ivars
                        // are set.
                        if origin.is_some() || field.given.is_some() || value != heap::NIL {
                            ivars.push((field.field, value));
                        }
                    }
                    let frozen = *data || freezes.is_some_and(|column| self.is_frozen(column, class, row));
                    made::fill_object(object, origin, &ivars, frozen)?;
                }
                Waiting::Array(array, kind, offset, len) => {
                    let KindPlan { slot, frozen, freezes, .. } = &self.plan.kinds[kind];
                    let Some(slot) = slot else { continue };
                    let value = |row| self.polls.look(self.ruby).and_then(|()| self.value(slot, row));
                    let elements = (offset..offset + len).map(value);
                    let elements = room::collect_results(elements)?;
                    let flag = frozen.filter(|_| *freezes).map(|column| &self.columns[column.index()]);
                    made::fill_array(array, &elements, flag.is_some_and(|flags| flags.view::<u8>()[offset] != 0))?;
                }
            }
        }
        Ok(())
    }

    /// The object of the host that a new object is a copy of, if it is one.
    fn origin(&self, column: ColumnId, class: usize, row: usize) -> Result<Option<Raw>, Error> {
        let start = self.tables.first_row(self.plan, self.program.columns[column.index()].space, class);
        let id = self.columns[column.index()].view::<u32>()[start + row];
        let hierarchy = self.plan.classes[class].hierarchy as u32;
        match self.decoder().decode(Repr::Ref(hierarchy), None, 0, id.into()) {
            _ if id == NO_ORIGIN => Ok(None),
            Ok(Decoded::Value(origin)) => Ok(Some(origin)),
            _ if self.trapped => Ok(None),
            _ => Err(self.broken("a copy of no object")),
        }
    }

    /// Whether the program has frozen an object.
    fn is_frozen(&self, column: ColumnId, class: usize, row: usize) -> bool {
        let start = self.tables.first_row(self.plan, self.program.columns[column.index()].space, class);
        self.columns[column.index()].view::<u8>()[start + row] != 0
    }

    /// Makes the object that a value needs, and keeps it.
    fn make(&self, decoded: Decoded) -> Result<Raw, Error> {
        let raw = match decoded {
            Decoded::Value(raw) => return Ok(raw),
            Decoded::Object(class, row) => return self.object(class, row),
            Decoded::Array(kind, offset, len) => return self.array(kind, offset, len),
            // SAFETY: constructors of plain numbers. `protect` catches NoMemoryError.
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

    /// A String of bytes that a kernel chose. A literal that the program's text has frozen is the interned String.
    fn string(&self, word: StrWord) -> Result<Raw, Error> {
        let (from, to) = (word.offset() as usize, word.offset() as usize + word.length());
        let bytes = match self.schema.bytes {
            Some(column) => self.columns[column.index()].view::<u8>().get(from..to),
            None => self.plan.literals.get(from..to),
        };
        let bytes = bytes.ok_or_else(|| self.broken("a String beyond all bytes"))?;
        // SAFETY: constructors that copy `bytes`, with one of Ruby's own encodings. `protect` catches NoMemoryError.
        #[allow(unsafe_code)]
        unsafe {
            let encoding = match word.encoding() {
                Encoding::Utf8 | Encoding::Ascii => rb_sys::rb_utf8_encoding(),
                Encoding::Binary => rb_sys::rb_ascii8bit_encoding(),
                Encoding::UsAscii => rb_sys::rb_usascii_encoding(),
            };
            let (at, len) = (bytes.as_ptr().cast(), bytes.len() as _);
            if word.is_made() {
                protect(|| {
                    let string = rb_sys::rb_enc_str_new(at, len, encoding);
                    if word.is_frozen() { rb_sys::rb_obj_freeze(string) } else { string }
                })
            } else {
                protect(|| rb_sys::rb_enc_interned_str(at, len, encoding))
            }
        }
    }

    /// The values of a trap's words, which the site says how to read.
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
            // A union's array may be of any kind. Offsets of two kinds may be equal, but this is only for messages.
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
    /// Rows that mean nothing; NoMemoryError.
    pub fn results(&self, slot: &SlotPlan, len: usize) -> Result<RArray, Error> {
        let decoder = self.decoder();
        if matches!(slot.repr, Repr::Int | Repr::Float) && slot.value.is_some() {
            let filled = list::filled(self.ruby, len, |first, out| decoder.rows(slot, first, out).map(drop));
            let (array, rest) = filled.map_err(|failed| failed.or(|broken: Broken| self.broken(broken.0)))?;
            return self.finished(slot, array, rest);
        }
        let pieces = (0..len).step_by(PIECE).collect();
        // Each piece has memory of its own, so that workers are the first to touch it.
        let read = workers::map(len, pieces, |first: usize| {
            let mut values = room::filled(heap::NIL, PIECE.min(len - first));
            decoder.rows(slot, first, &mut values).map(drop)?;
            Ok((first, values))
        });
        let array = self.ruby.ary_new_capa(len);
        let mut rest = Vec::new();
        for piece in read {
            self.polls.look_now(self.ruby)?;
            let (first, mut values) = piece.map_err(|broken: Broken| self.broken(broken.0))?;
            for (i, value) in values.iter_mut().enumerate().filter(|(_, value)| **value == heap::UNDEF) {
                room::push(&mut rest, first + i);
                *value = heap::NIL;
            }
            // SAFETY: the values are immediate or held by the tables' holder, and Ruby copies them. The array is on the
            // machine stack.
            #[allow(unsafe_code)]
            protect(|| unsafe { rb_sys::rb_ary_cat(array.as_raw(), values.as_ptr(), values.len() as _) })?;
        }
        self.finished(slot, array, rest)
    }

    /// The elements of the arrays that are the block's values, one array after the other. None where they are not
    /// numbers of one kind. None also where the kernel did not make all arrays of the kind, because it may not have the
    /// elements of others.
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
            // An array without elements may have any offset.
            if length > 0 {
                let rows = from.get(offset..offset + length);
                here.copy_from_slice(rows.ok_or_else(|| self.broken("an array beyond all elements"))?);
            }
            to = rest;
        }
        Ok(Some((dtype, joined)))
    }

    /// The block's values, including those that only Ruby can make.
    fn finished(&self, slot: &SlotPlan, array: RArray, rest: Vec<usize>) -> Result<RArray, Error> {
        for index in rest {
            self.polls.look(self.ruby)?;
            array.store(index as isize, value(self.value(slot, index)?))?;
        }
        Ok(array)
    }

    /// The first row of a class in the columns of a slot.
    fn start(&self, at: usize, slot: &SlotPlan) -> usize {
        let space = slot.value.or(slot.tag).map(|column| self.program.columns[column.index()].space);
        space.map_or(0, |space| self.tables.first_row(self.plan, space, at))
    }

    /// The new value of a captured local. None where the block did not write it. `path`: the block's file.
    ///
    /// # Errors
    /// IntegerOverflow; what Ruby raises for a start that is no number.
    pub fn combined(
        &self,
        accumulator: &Accumulator,
        slot: &SlotPlan,
        start: Value,
        len: usize,
        path: &str,
    ) -> Result<Option<Value>, Error> {
        let written = &self.columns[accumulator.written_tick.index()].view::<i64>()[..len];
        let Some(wording) = accumulator.wording else {
            let last = (0..len).filter(|i| written[*i] >= 0).max_by_key(|i| (written[*i], *i));
            return match last {
                Some(row) => Ok(Some(value(self.value(slot, row)?))),
                None => Ok(None),
            };
        };
        if written.iter().all(|tick| *tick < 0) {
            return Ok(None);
        }
        let number = |raw: Raw| match heap::see(raw) {
            Seen::Int(i) => Ok(Number::Int(i.into())),
            Seen::Float(f) => Ok(Number::Float(f)),
            _ => Err(self.broken("a contribution that is no number")),
        };
        let start = match heap::see(start.as_raw()) {
            Seen::Int(i) => Number::Int(i.into()),
            // Ruby raises for bit operations on Floats, and for a `max` with NaN.
            Seen::Float(f) if !(accumulator.combine.is_bitwise() || wording.is_list() && f.is_nan()) => {
                Number::Float(f)
            }
            _ => return self.contributed(accumulator, wording, slot, start, (written, path)).map(Some),
        };
        // Ruby's -0.0 - 0 is -0.0. Adding a 0 here instead would make it 0.0.
        let mut all_zero = wording.operator == "-";
        let mut failed = None;
        let mut contribution = |i: usize| {
            if written[i] < 0 {
                return None;
            }
            let decoded = self.row(slot, i);
            let found = match decoded {
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
            };
            all_zero &= found == Some(Number::Int(0));
            found
        };
        let combined = combine(accumulator.combine, start, len, &mut contribution);
        if let Some(error) = failed {
            return Err(error);
        }
        let decoded = match combined {
            Ok(_) if all_zero && matches!(start, Number::Float(_)) => return Ok(None),
            Ok(Number::Float(f)) => heap::flonum_of(f).map_or(Decoded::Float(f), Decoded::Value),
            Ok(Number::Int(i)) => match i64::try_from(i) {
                Ok(i) => heap::fixnum_of(i).map_or(Decoded::Int(i), Decoded::Value),
                Err(_) => return Err(crate::ruby::errors::accumulated_overflow(self.ruby, &accumulator.name)),
            },
            Err(_) => return Err(crate::ruby::errors::accumulated_overflow(self.ruby, &accumulator.name)),
        };
        Ok(Some(value(self.make(decoded)?)))
    }

    /// As [`Unpacker::combined`], by Ruby's own methods. It goes element by element, because nothing is known of a
    /// start that is no number.
    ///
    /// # Errors
    /// What the methods raise.
    fn contributed(
        &self,
        accumulator: &Accumulator,
        wording: Wording,
        slot: &SlotPlan,
        start: Value,
        (written, path): (&[i64], &str),
    ) -> Result<Value, Error> {
        let mut local = start;
        for index in (0..written.len()).filter(|index| written[*index] >= 0) {
            let mut part = value(self.value(slot, index)?);
            if wording.operator == "-" {
                // Kernels negate what is subtracted.
                part = part.funcall("-@", ())?;
            }
            let (left, right) = if wording.local_first { (local, part) } else { (part, local) };
            // the program may change something in its own method, which must not be done twice
            room::note_change();
            local = crate::ruby::errors::ikra(self.ruby)?
                .funcall("__contributed", (wording.operator, left, right, local, part))
                .map_err(|error| {
                    let line = (path, accumulator.line);
                    crate::ruby::errors::of_contribution(self.ruby, error, (left, wording.operator), line, index)
                })?;
        }
        Ok(local)
    }
}
