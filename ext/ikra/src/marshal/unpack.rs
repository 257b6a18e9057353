//! Columns to objects: the write-back, results, and captured locals.
//!
//! Here: [`Unpacker`], which makes results, new values of captured locals, and objects that kernels made. Not here: the
//! launch. `unpack/write_back.rs` writes to objects and Arrays.
//! Invariant: where anything fails, nothing is changed. No Ruby code runs between the first change and the last.

use crate::marshal::decode::{Broken, Decoded, Decoder};
use crate::marshal::made::{
    self, BATCH, Batch, Filled, Key, Kind, Knowledge, Made, New, NewHash, OWN_PARTS, Run, Shape, Waiting, Window,
};
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
use ikra_core::id::ClassId;
use ikra_core::ir::{ColumnId, Heap, Program};
use ikra_core::layout::schema::{Accumulator, NO_ORIGIN, Schema};
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::room;
use ikra_core::sched::combine::{Number, combine, combine_floats};
use ikra_core::types::combine::Wording;
use ikra_core::types::{Encoding, Repr, Storage, StrWord};
use ikra_core::world::{hashes, well_known};
use magnus::rb_sys::AsRawValue;
use magnus::value::ReprValue;
use magnus::{Error, RArray, Ruby, Value};
use smallvec::SmallVec;
use std::rc::Rc;

mod pairs;
mod write_back;

pub use pairs::{KeyWords, Pairs};

/// The most elements of new Arrays that are read together.
const ELEMENTS: usize = 1024;
/// The number of elements of short arrays that are read together.
const WINDOW: usize = 512;

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

    /// The values of rows of a slot. Those that do not exist are made. `out` is as long as `rows`.
    fn values(&self, slot: &SlotPlan, rows: &[usize], out: &mut [Raw]) -> Result<(), Error> {
        let decoder = self.decoder();
        let column = slot.value.map(|column| &self.columns[column.index()]);
        let exist = match (slot.repr, slot.kind) {
            (Repr::Ref(hierarchy), _) => {
                let classes = &self.tables.classes[self.plan.hierarchy(hierarchy as usize)];
                classes.iter().any(|class| !class.objects.is_empty())
            }
            (Repr::Array(_), Some(kind)) => self.tables.has_arrays(kind),
            (Repr::Str, _) => !self.tables.strings.strings.is_empty(),
            (Repr::Int | Repr::Float, _) => column.is_some_and(|column| column.storage().bytes() == 8),
            _ => false,
        };
        match rows.first() {
            Some(first) if exist && rows.iter().zip(*first..).all(|(row, next)| *row == next) => {
                decoder.rows(slot, *first, out).map_err(|broken| self.broken(broken.0))?;
            }
            _ => out.fill(heap::UNDEF),
        }
        let batch = &mut Batch::new(rows.len());
        match (slot.repr, slot.kind, column) {
            (Repr::Array(_), Some(kind), Some(column)) if !exist => {
                let words = column.view::<u64>();
                for (place, row) in rows.iter().enumerate() {
                    let word = words[*row];
                    self.add(batch, Decoded::Array(kind, (word >> 32) as u32, word as u32), place, out)?;
                }
            }
            (Repr::Ref(hierarchy), _, Some(column)) if !exist && column.storage().bytes() == 4 => {
                let ids = column.view::<u32>();
                // The last class and its ids.
                let (mut last, mut range) = (0, 0..0);
                for (place, row) in rows.iter().enumerate() {
                    let id = ids[*row];
                    if !range.contains(&id) {
                        let found = self.tables.place(self.plan, hierarchy as usize, id);
                        last = found.ok_or_else(|| self.broken("an id that no object has"))?.0;
                        let classes = self.plan.hierarchy(hierarchy as usize);
                        let end = if last + 1 < classes.end { self.tables.bases[last + 1] } else { u32::MAX };
                        range = self.tables.bases[last]..end;
                    }
                    self.add(batch, Decoded::Object(last, (id - self.tables.bases[last]) as usize), place, out)?;
                }
            }
            _ => {
                for (place, row) in rows.iter().enumerate() {
                    if out[place] == heap::UNDEF {
                        self.add(batch, self.row(slot, *row)?, place, out)?;
                    }
                }
            }
        }
        self.make_all(batch, out)
    }

    /// Stores a value, or adds the object that it needs to a batch.
    fn add(&self, batch: &mut Batch, decoded: Decoded, place: usize, out: &mut [Raw]) -> Result<(), Error> {
        match decoded {
            Decoded::Value(raw) => out[place] = raw,
            Decoded::Object(class, row) => {
                let base = u64::from(self.tables.bases[class]);
                if !self.stays(plan::Rows::Class(class), base + row as u64) {
                    return Err(self.broken("an id that no object has"));
                }
                let key = Key::object(class, row);
                match self.made.known(key) {
                    Knowledge::Object(raw) => out[place] = raw,
                    Knowledge::Planned(number) => batch.refer(place, number),
                    Knowledge::Nothing => {
                        let shape = self.shape(class);
                        if let Some(own) = shape.own {
                            return self.add_own(batch, own, class, row, place, out);
                        }
                        let waiting = Waiting::Object(heap::NIL, class, row);
                        self.made.plan(batch, place, key, New::Object(shape.raw), Some(waiting));
                    }
                }
            }
            Decoded::Array(kind, offset, len) => {
                if !self.stays(plan::Rows::Kind(kind), offset.into()) {
                    return Err(self.broken("an offset where no array begins"));
                }
                let (offset, len) = (offset as usize, len as usize);
                let key = Key::array(kind, offset);
                match self.made.known(key) {
                    Knowledge::Object(raw) => out[place] = raw,
                    Knowledge::Planned(number) => batch.refer(place, number),
                    Knowledge::Nothing => {
                        let full = self.elements(batch, kind, offset, len)?;
                        let new =
                            if full { New::Full(len, self.is_frozen_array(kind, offset)) } else { New::Array(len) };
                        let waiting = (!full).then_some(Waiting::Array(heap::NIL, kind, offset, len));
                        self.made.plan(batch, place, key, new, waiting);
                    }
                }
            }
            Decoded::Float(f) => batch.add(place, New::Float(f)),
            Decoded::Int(i) => batch.add(place, New::Int(i)),
            Decoded::Symbol(hash) => {
                let raw = symbols::search(self.ruby, hash)?.ok_or_else(|| self.broken("an unknown symbol"))?;
                self.holder.add(self.ruby, raw);
                out[place] = raw;
            }
            Decoded::Str(word) if word.is_made() => batch.add(place, self.string(word)?),
            Decoded::Str(word) => {
                let new = self.string(word)?;
                self.made.literal(batch, place, word.0, out, || new);
            }
        }
        if batch.is_full() { self.make_all(batch, out) } else { Ok(()) }
    }

    fn make_all(&self, batch: &mut Batch, out: &mut [Raw]) -> Result<(), Error> {
        self.made.make(batch, out, |fresh| self.holder.add_all(self.ruby, fresh))
    }

    /// Adds the elements of a short array to the contents of a batch, where none of them must be made.
    fn elements(&self, batch: &mut Batch, kind: usize, offset: usize, len: usize) -> Result<bool, Error> {
        let Some(slot) = &self.plan.kinds[kind].slot else { return Ok(false) };
        if len > BATCH || slot.leads_on() {
            return Ok(false);
        }
        let mut window = self.made.window.borrow_mut();
        let Window { kind: known, first, elements } = &mut *window;
        let has = |first: usize, count: usize| *known == kind && offset >= first && offset + len <= first + count;
        if !has(*first, elements.len()) {
            // Where arrays follow each other, the next ones are read too.
            // Rows between arrays are undefined. So only reprs of which each bit pattern means something are read
            // ahead.
            let follows = *known == kind
                && matches!(slot.repr, Repr::Int | Repr::Float | Repr::Bool | Repr::Sym)
                && (*first..=*first + elements.len()).contains(&offset);
            let rows = slot.value.or(slot.tag).map_or(0, |column| self.columns[column.index()].len());
            let count = if follows { len.max(WINDOW.min(rows.saturating_sub(offset))) } else { len };
            elements.clear();
            room::resize(elements, count, heap::UNDEF);
            (*known, *first) = (kind, offset);
            let decoder = self.decoder();
            let words = slot.value.map_or(8, |column| self.columns[column.index()].storage().bytes());
            if words == 8 || !matches!(slot.repr, Repr::Int | Repr::Float) {
                decoder.rows(slot, offset, elements).map_err(|broken| self.broken(broken.0))?;
            }
        }
        let own = &elements[offset - *first..][..len];
        if own.contains(&heap::UNDEF) {
            return Ok(false);
        }
        room::extend(&mut batch.contents, own.iter().copied());
        Ok(true)
    }

    /// What all objects of a class have in common.
    fn shape(&self, class: usize) -> Rc<Shape> {
        self.made.shape(class, || {
            let ClassPlan { fields, raw, .. } = &self.plan.classes[class];
            let mut order: Vec<usize> = (0..fields.len()).collect();
            order.sort_by_key(|i| fields[*i].given.unwrap_or(u32::MAX));
            let fields = order.iter().map(|i| fields[*i].field).collect();
            let is_hash = well_known::is_made_hash(self.plan.classes[class].class);
            Shape { raw: *raw, own: reflect::own_class(*raw), order, fields, is_data: reflect::is_data(*raw), is_hash }
        })
    }

    /// Adds an object that consists only of its parts to a batch, if these need not be made. Else it is made at once.
    fn add_own(
        &self,
        batch: &mut Batch,
        of: ClassId,
        class: usize,
        row: usize,
        place: usize,
        out: &mut [Raw],
    ) -> Result<(), Error> {
        let key = Key::object(class, row);
        let exist = self.existing_parts(class, row)?;
        if !exist.contains(&heap::UNDEF) {
            room::extend(&mut batch.contents, exist);
            self.made.plan(batch, place, key, New::Own(of), None);
            return if batch.is_full() { self.make_all(batch, out) } else { Ok(()) };
        }
        // The parts may be objects of the batch.
        self.make_all(batch, out)?;
        let mut parts = [heap::NIL; OWN_PARTS];
        for field in &self.plan.classes[class].fields {
            if let heap::Field::Own(part) = field.field {
                parts[part] = self.value(&field.slot, self.start(class, &field.slot) + row)?;
            }
        }
        let raw = made::own(of, parts)?;
        self.holder.add(self.ruby, raw);
        self.made.know(key, raw);
        out[place] = raw;
        Ok(())
    }

    /// The parts of an object that consists only of them: UNDEF for each that must be made. Others are no objects on
    /// the heap, so the GC need not know of them.
    fn existing_parts(&self, class: usize, row: usize) -> Result<[Raw; OWN_PARTS], Error> {
        let mut window = self.made.own_window.borrow_mut();
        let follows = window.class == class && row == window.first + window.parts.len();
        if window.class == class
            && let Some(parts) = row.checked_sub(window.first).and_then(|at| window.parts.get(at))
        {
            return Ok(*parts);
        }
        let fields = self.plan.classes[class].fields.iter();
        let fields =
            fields.filter_map(
                |field| if let heap::Field::Own(part) = field.field { Some((part, &field.slot)) } else { None },
            );
        let mut count = if follows { WINDOW } else { 1 };
        for (_, slot) in fields.clone() {
            count = count.min(self.readable(slot, self.start(class, slot) + row));
        }
        window.parts.clear();
        room::resize(&mut window.parts, count.max(1), [heap::NIL; OWN_PARTS]);
        (window.class, window.first) = (class, row);
        let mut values = [heap::UNDEF; WINDOW];
        for (part, slot) in fields {
            let first = self.start(class, slot) + row;
            match count {
                0 => values[0] = if let Decoded::Value(raw) = self.row(slot, first)? { raw } else { heap::UNDEF },
                _ => {
                    _ = self
                        .decoder()
                        .rows(slot, first, &mut values[..count])
                        .map_err(|broken| self.broken(broken.0))?
                }
            }
            window.parts.iter_mut().zip(&values).for_each(|(parts, value)| parts[part] = *value);
        }
        Ok(window.parts[0])
    }

    /// How many rows of a slot, at most, may be read together from one on, also where what they contain is undefined.
    fn readable(&self, slot: &SlotPlan, first: usize) -> usize {
        let column = slot.value.or(slot.tag).map(|column| &self.columns[column.index()]);
        match (slot.repr, column) {
            (Repr::Unit(_), None) => usize::MAX,
            (Repr::Int | Repr::Float, Some(column)) if column.storage().bytes() == 8 => {
                column.len().saturating_sub(first)
            }
            (Repr::Bool, Some(column)) => column.len().saturating_sub(first),
            _ => 0,
        }
    }

    /// Whether a row was allocated for good. A trap may also refer to a row that only its job had.
    fn stays(&self, rows: plan::Rows, row: u64) -> bool {
        let taken = self.made.taken.get_or_init(|| {
            let heaps = self.program.heaps.iter().zip(&self.plan.heaps).zip(&self.tables.starts);
            let range = |((heap, rows), start): ((&Heap, &plan::Rows), &u64)| {
                let taken = if heap.scratch { 0 } else { self.columns[heap.taken.index()].view::<u64>()[0] };
                (*rows, if self.trapped { 0..u64::MAX } else { *start..start.saturating_add(taken) })
            };
            heaps.map(range).collect()
        });
        taken.iter().any(|(own, taken)| *own == rows && taken.contains(&row))
    }

    /// Fills all new objects, which may make more.
    ///
    /// # Errors
    /// NoMemoryError, rows that mean nothing, and what interrupts raise.
    pub fn fill_new(&self) -> Result<(), Error> {
        let (mut rows, mut values) = (Vec::new(), Vec::new());
        while let Some(run) = self.made.next() {
            self.polls.look_now(self.ruby)?;
            match run {
                Run::Objects(class, run) => self.fill_objects(class, &run, &mut rows, &mut values)?,
                Run::Arrays(kind, run) => self.fill_arrays(kind, &run, &mut rows, &mut values)?,
            }
        }
        // Only now all keys have their contents, of which Ruby makes their hashes.
        for hash in self.made.hashes.take() {
            self.polls.look_now(self.ruby)?;
            made::fill_hash(&hash)?;
        }
        Ok(())
    }

    /// Reads the keys and values of a new Hash. They may have to be made.
    fn read_hash(&self, class: usize, raw: Raw, row: usize, rows: &mut Vec<usize>) -> Result<(), Error> {
        let mut arrays = [None; 3];
        let (mut used, mut default) = (0, heap::NIL);
        for field in &self.plan.classes[class].fields {
            let heap::Field::Own(part) = field.field else { continue };
            let at = self.start(class, &field.slot) + row;
            match hashes::MADE_PARTS[part] {
                "keys" | "values" | "hashes" => {
                    if let Decoded::Array(kind, offset, _) = self.row(&field.slot, at)? {
                        arrays[part] = Some((kind, offset as usize));
                    }
                }
                "used" => used = heap::fixnum(self.value(&field.slot, at)?) as usize,
                "default" => default = self.value(&field.slot, at)?,
                _ => {}
            }
        }
        let [Some(keys), Some(values), Some(hashes)] = arrays else {
            return Err(self.broken("a Hash without keys or values"));
        };
        let mut read = |(kind, offset): (usize, usize), places: &[usize]| -> Result<Vec<Raw>, Error> {
            let mut out = Vec::new();
            room::resize(&mut out, places.len(), heap::NIL);
            if let Some(slot) = &self.plan.kinds[kind].slot {
                rows.clear();
                room::extend(rows, places.iter().map(|place| offset + place));
                self.values(slot, rows, &mut out)?;
            }
            Ok(out)
        };
        let all: Vec<usize> = room::collect(0..used);
        let stored = read(hashes, &all)?;
        // A hash below 0 is that of a key that was deleted.
        let there = |place: &usize| heap::fixnum(stored[*place]) >= 0;
        let places: Vec<usize> = room::collect(all.iter().copied().filter(there));
        let hash = NewHash { raw, default, keys: read(keys, &places)?, values: read(values, &places)? };
        room::push(&mut self.made.hashes.borrow_mut(), hash);
        Ok(())
    }

    fn fill_objects(
        &self,
        class: usize,
        run: &[(Raw, usize)],
        rows: &mut Vec<usize>,
        values: &mut Vec<Raw>,
    ) -> Result<(), Error> {
        let ClassPlan { fields, freezes, origin, .. } = &self.plan.classes[class];
        let shape = self.shape(class);
        if shape.is_hash {
            for (object, row) in run {
                self.read_hash(class, *object, *row, rows)?;
            }
            return Ok(());
        }
        let mut objects = SmallVec::<[Filled; BATCH]>::new();
        for (object, row) in run {
            let origin = origin.map(|column| self.origin(column, class, *row)).transpose()?.flatten();
            let frozen = shape.is_data || freezes.is_some_and(|column| self.is_frozen(column, class, *row));
            objects.push(Filled { object: *object, origin, frozen });
        }
        room::resize(values, run.len() * shape.order.len(), heap::UNDEF);
        for (number, values) in shape.order.iter().zip(values.chunks_mut(run.len())) {
            let field = &fields[*number];
            let start = self.start(class, &field.slot);
            rows.clear();
            room::extend(rows, run.iter().map(|(_, row)| start + row));
            self.values(&field.slot, rows, values)?;
            // An ivar that is nil and was not given was never set. For a copy, the origin says which ivars are set.
            if field.given.is_none() {
                let unset = |(value, object): &(&mut Raw, &Filled)| **value == heap::NIL && object.origin.is_none();
                values.iter_mut().zip(&objects).filter(unset).for_each(|(value, _)| *value = heap::UNDEF);
            }
        }
        made::fill_objects(&objects, &shape.fields, &values[..run.len() * shape.order.len()])
    }

    fn fill_arrays(
        &self,
        kind: usize,
        run: &[(Raw, usize, usize)],
        rows: &mut Vec<usize>,
        values: &mut Vec<Raw>,
    ) -> Result<(), Error> {
        let Some(slot) = &self.plan.kinds[kind].slot else { return Ok(()) };
        let mut parts = SmallVec::<[(Raw, usize, bool); BATCH]>::new();
        rows.clear();
        let mut fill = |rows: &mut Vec<usize>, parts: &mut SmallVec<[_; BATCH]>| {
            room::resize(values, rows.len(), heap::UNDEF);
            self.values(slot, rows, &mut values[..])?;
            made::fill_arrays(parts, values)?;
            rows.clear();
            parts.clear();
            self.polls.look_now(self.ruby)
        };
        for (array, offset, len) in run {
            let frozen = self.is_frozen_array(kind, *offset);
            let (mut at, end) = (*offset, offset + len);
            loop {
                let part = (end - at).min(ELEMENTS - rows.len());
                room::extend(rows, at..at + part);
                at += part;
                parts.push((*array, part, frozen && at == end));
                if rows.len() == ELEMENTS {
                    fill(rows, &mut parts)?;
                }
                if at == end {
                    break;
                }
            }
        }
        if parts.is_empty() { Ok(()) } else { fill(rows, &mut parts) }
    }

    /// Whether the program has frozen an array.
    fn is_frozen_array(&self, kind: usize, offset: usize) -> bool {
        let KindPlan { frozen, freezes, .. } = &self.plan.kinds[kind];
        let flag = frozen.filter(|_| *freezes).map(|column| &self.columns[column.index()]);
        flag.is_some_and(|flags| flags.view::<u8>()[offset] != 0)
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
        if let Decoded::Value(raw) = decoded {
            return Ok(raw);
        }
        let (mut batch, mut out) = (Batch::new(1), [heap::UNDEF]);
        self.add(&mut batch, decoded, 0, &mut out)?;
        self.make_all(&mut batch, &mut out)?;
        Ok(out[0])
    }

    /// A String of bytes that a kernel chose. A literal that the program's text has frozen is the interned String.
    fn string(&self, word: StrWord) -> Result<New, Error> {
        let (from, to) = (word.offset() as usize, word.offset() as usize + word.length());
        let bytes = match self.schema.bytes {
            Some(column) => self.columns[column.index()].view::<u8>().get(from..to),
            None => self.plan.literals.get(from..to),
        };
        let bytes = bytes.ok_or_else(|| self.broken("a String beyond all bytes"))?;
        // SAFETY: Ruby's own encodings, which exist from the start.
        #[allow(unsafe_code)]
        let encoding = unsafe {
            match word.encoding() {
                Encoding::Utf8 | Encoding::Ascii => rb_sys::rb_utf8_encoding(),
                Encoding::Binary => rb_sys::rb_ascii8bit_encoding(),
                Encoding::UsAscii => rb_sys::rb_usascii_encoding(),
            }
        };
        let kind = match (word.is_made(), word.is_frozen()) {
            (true, false) => Kind::Made,
            (true, true) => Kind::MadeFrozen,
            (false, _) => Kind::Literal,
        };
        Ok(New::Str(bytes.as_ptr(), bytes.len(), encoding, kind))
    }

    /// The value of a register that is no array and no union.
    ///
    /// # Errors
    /// A word that means nothing.
    pub fn value_of(&self, repr: Repr, word: u64) -> Result<Value, Error> {
        let decoded = self.decoder().decode(repr, None, 0, word).map_err(|broken| self.broken(broken.0))?;
        self.make(decoded).map(value)
    }

    /// The values of many such registers.
    ///
    /// # Errors
    /// Words that mean nothing; NoMemoryError; what interrupts raise.
    pub fn values_of(&self, repr: Repr, words: &[u64]) -> Result<RArray, Error> {
        let (array, decoder) = (self.ruby.ary_new_capa(words.len()), self.decoder());
        let mut values = [heap::UNDEF; BATCH];
        for words in words.chunks(BATCH) {
            self.polls.look_now(self.ruby)?;
            let (values, batch) = (&mut values[..words.len()], &mut Batch::new(words.len()));
            for (place, word) in words.iter().enumerate() {
                let decoded = decoder.decode(repr, None, 0, *word).map_err(|broken| self.broken(broken.0))?;
                self.add(batch, decoded, place, values)?;
            }
            self.make_all(batch, values)?;
            made::append(array.as_raw(), values)?;
        }
        Ok(array)
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
                            plan::Rows::Class(_) | plan::Rows::Bytes => None,
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
            // they are immediate, or the tables' holder has them
            made::append(array.as_raw(), &values)?;
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
        let mut values = [heap::UNDEF; BATCH];
        for indices in rest.chunks(BATCH) {
            self.polls.look_now(self.ruby)?;
            let values = &mut values[..indices.len()];
            self.values(slot, indices, values)?;
            made::store(array.as_raw(), indices, values)?;
            // Early, while their words and rows are in the cache.
            self.fill_new()?;
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
        let column = slot.value.map(|column| &self.columns[column.index()]);
        let combined = match (slot.repr, column) {
            (Repr::Float, Some(column)) if column.storage() == Storage::F64 => {
                combine_floats(accumulator.combine, start, written, column.view::<f64>())
            }
            _ => combine(accumulator.combine, start, len, &mut contribution),
        };
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
