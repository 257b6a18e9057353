//! Tables to columns and parameters.
//!
//! Here: [`pack`], which fills the columns that a [`Schema`] names. Not here: which objects are in the tables
//! ([`crate::marshal::trace`]), and the way back ([`crate::marshal::unpack`]). `pack/along.rs` packs while other code
//! goes over the objects, and `pack/rows.rs` cuts columns for threads. Invariant: the first value outside its slot's
//! type stops packing. Nothing has changed by then.

use crate::marshal::capacity::{HeapCapacity, fresh};
use crate::marshal::held_procs;
use crate::marshal::plan::{Plan, SlotPlan};
use crate::marshal::trace::{CHUNK, GuardFailure, KindRows, NO_CLASS, Tables};
use crate::ruby::dtype::Dtype;
use crate::ruby::gvl;
use crate::ruby::heap::{self, AHEAD, FieldReader, Raw, Seen, sample};
use crate::ruby::lines;
use crate::ruby::range::Bounds;
use crate::ruby::registry::{classes, symbols};
use crate::ruby::workers::{self, Lists, PIECE, Span};
use ikra_core::backend::Fresh;
use ikra_core::backend::doubled::Doubled;
use ikra_core::backend::resident::{Resident, Write};
use ikra_core::id::ClassId;
use ikra_core::ir::{Column, ColumnId, Jobs, Lowered, ParamId, Program, SLOT_STRIDE, Scalar, Space, Storage, filled};
use ikra_core::layout::schema::{RootParam, Schema};
use ikra_core::memory::buffer::{Buffer, DeviceMemory, DeviceStore};
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::room;
use ikra_core::memory::{uniform_stride, value_range};
use ikra_core::sched::reorder::by_class;
use ikra_core::types::{Prims, Repr, Tag};
use ikra_core::world::{OutOfRange, Root};
use magnus::rb_sys::AsRawValue;
use magnus::{Ruby, Value};
use parking_lot::Mutex;
use rows::{Cells, Rows, rows};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

mod along;
mod rows;

pub use along::{ArraySheet, ArraysAlong, NO_ID, ObjectSheet, ObjectsAlong, TableColumns};

type Result<T> = std::result::Result<T, GuardFailure>;

/// The bytes of a long String that one thread copies at a time.
const STRETCH: usize = 1 << 20;

/// The elements that a section runs over.
#[derive(Clone, Copy)]
pub enum Elements<'a> {
    Values(&'a [Raw]),
    /// First element, and how many.
    Range(i64, usize),
}

impl Elements<'_> {
    pub fn len(&self) -> usize {
        match self {
            Elements::Values(values) => values.len(),
            Elements::Range(_, len) => *len,
        }
    }
}

/// A root's value: one word, or the ends of a Range.
#[derive(Clone, Copy)]
pub struct RootValue {
    pub value: Raw,
    /// Begin, end, and whether the end is excluded.
    pub range: Option<(Raw, Raw, bool)>,
}

/// All arguments of a launch.
pub struct Packed {
    pub columns: Vec<HostColumn>,
    pub biases: Vec<u64>,
    pub params: Vec<u64>,
    pub fresh: Vec<Fresh>,
    pub jobs: u64,
    /// Columns that are buffers.
    pub residents: Vec<Resident>,
    /// Whether written columns stay in buffers, and are not written to objects.
    pub stays: bool,
    /// By column: its rows on the device, if they are there already. Empty where no column has any.
    pub sent: Vec<Option<Arc<dyn DeviceMemory>>>,
    /// The kernel that runs in place of the plain one. It has more columns and parameters.
    pub doubled: Option<Arc<Doubled>>,
}

impl RootValue {
    pub fn of(ruby: &Ruby, value: Value) -> Self {
        let range = Bounds::of(ruby, value.as_raw()).map(|b| (b.from, b.to, b.exclusive));
        Self { value: value.as_raw(), range }
    }
}

/// The parameters of a launch over existing tables.
///
/// # Errors
/// A value outside its slot's type, an object that is not in the tables, and new symbols.
pub fn params(
    plan: &Plan,
    lowered: &Lowered,
    tables: &Tables,
    elements: Elements<'_>,
    roots: &[RootValue],
) -> Result<Vec<u64>> {
    debug_assert!(
        !lowered.program.columns.iter().any(|column| column.ranged.is_some()),
        "columns that stay are not looked at again"
    );
    let unknown = Mutex::default();
    let packer = Packer { plan, tables, unknown: &unknown };
    let params = packer.params(&lowered.program, &lowered.schema, elements, roots)?;
    if unknown.into_inner().is_empty() { Ok(params) } else { Err(GuardFailure::Symbols) }
}

/// Sets the parameters of one root. The tables are empty.
///
/// # Errors
/// A value outside its slot's type, and a new symbol.
pub fn root(
    plan: &Plan,
    lowered: &Lowered,
    tables: &Tables,
    at: usize,
    value: RootValue,
    params: &mut [u64],
) -> Result<()> {
    let unknown = Mutex::default();
    let packer = Packer { plan, tables, unknown: &unknown };
    packer.root(&lowered.program, &lowered.schema.roots[at], &plan.roots[at], value, params)?;
    if unknown.into_inner().is_empty() { Ok(()) } else { Err(GuardFailure::Symbols) }
}

/// Sets the parameters of a root that is the only array.
///
/// # Errors
/// An array that is too long.
pub fn sole_array(lowered: &Lowered, at: usize, len: usize, params: &mut [u64]) -> Result<()> {
    let length = u32::try_from(len).map_err(|_| GuardFailure::TooMany)?;
    store(&lowered.program, &lowered.schema.roots[at], (Tag::ARRAY, length.into()), params);
    Ok(())
}

/// Whether all parameters meet the assumptions about their values.
pub fn in_range(lowered: &Lowered, params: &[u64]) -> bool {
    root_out_of_range(&lowered.program, &lowered.schema, params).is_none() && are_alike(&lowered.program, params)
}

/// What is packed for: a program, and the backend that runs it.
pub struct PackTarget<'a> {
    pub plan: &'a Plan,
    pub lowered: &'a Lowered,
    pub capacity: &'a HeapCapacity,
    /// Columns of the program that get no rows.
    pub elsewhere: &'a [ColumnId],
    pub lender: Lender<'a>,
    /// How many lanes the backend has side by side.
    pub warp: usize,
}

/// Fills columns and parameters. `begun` has the columns of tables that were partly filled before.
///
/// # Errors
/// A value outside its slot's type, and new symbols (which are left in `unknown`).
pub fn pack(
    target: &PackTarget<'_>,
    tables: &mut Tables,
    begun: Option<TableColumns>,
    elements: Elements<'_>,
    roots: &[RootValue],
    unknown: &Mutex<Vec<Raw>>,
) -> Result<Packed> {
    let PackTarget { plan, capacity, lender, .. } = *target;
    let Lowered { program, schema, .. } = target.lowered;
    let packer = Packer { plan, tables, unknown };
    let (order, starts, jobs) = packer.jobs(program.jobs, elements.len(), target.warp);
    // Columns by element come first. Then what the tables know of elements is dropped, and the other columns can use
    // its memory.
    let mut columns = target.element_columns(elements);
    for (column, numbers) in [(schema.order, order), (schema.starts, starts)] {
        if let (Some(column), Some(numbers)) = (column, numbers) {
            columns[column.index()] = numbers;
        }
    }
    if let (Some(slot), Elements::Values(values), false) = (&plan.elements, elements, plan.whole) {
        // A device has memory of its own for columns.
        let ids = if lender.store.is_none() && slot.are_ids() { tables.take_element_ids() } else { None };
        match (ids, slot.value) {
            (Some(ids), Some(column)) => {
                columns[column.index()] = HostColumn::to_fill(Storage::U32, values.len(), Some(ids));
            }
            _ => Packer { plan, tables, unknown }.elements(slot, &mut columns, values)?,
        }
    }
    if plan.whole && tables.has_other_elements() {
        return Err(GuardFailure::Scattered);
    }
    tables.forget_elements();
    let packer = Packer { plan, tables, unknown };
    let residents = packer.residents(program)?;
    let mut begun = begun.unwrap_or_else(|| TableColumns::new(plan, program, packer.tables, lender));
    packer.other_columns(target, &residents, &mut begun, &mut columns);
    let TableColumns { biases, objects, arrays, sent, .. } = begun;
    packer.fields(program, objects, &mut columns)?;
    packer.arrays(&mut columns, &residents, arrays)?;
    packer.frozen(schema, program, &mut columns);
    if let Some(column) = schema.bytes {
        packer.bytes(columns[column.index()].view_mut::<u8>());
    }
    for accumulator in &schema.accumulators {
        columns[accumulator.written_tick.index()].view_mut::<i64>().fill(-1);
    }
    let mut params = packer.params(program, schema, elements, roots)?;
    for (i, heap) in program.heaps.iter().enumerate() {
        params[heap.start.index()] = packer.tables.starts[i];
        params[heap.capacity.index()] = capacity.capacities[i];
    }
    uniform_stride::find(program, &columns, &biases, &mut params).map_err(GuardFailure::NoUniformStride)?;
    if let Some(what) = packer.outside(program, &columns, &residents) {
        return Err(GuardFailure::ColumnOutOfRange(what));
    }
    let flags: Vec<usize> = schema.flags().map(|c| c.index()).collect();
    let fresh = fresh(program, capacity, &biases, &params, &flags);
    if !packer.unknown.lock().is_empty() {
        return Err(GuardFailure::Symbols);
    }
    Ok(Packed { columns, biases, params, fresh, jobs, residents, stays: false, sent, doubled: None })
}

impl PackTarget<'_> {
    /// All columns of the program. Those by element have their rows, the others none yet.
    fn element_columns(&self, elements: Elements<'_>) -> Vec<HostColumn> {
        let (plan, program) = (self.plan, &self.lowered.program);
        let filled = filled::filled(program);
        let given: Vec<ColumnId> = match elements {
            Elements::Values(_) if !plan.whole => {
                plan.elements.iter().flat_map(|slot| [slot.value, slot.tag]).flatten().collect()
            }
            _ => Vec::new(),
        };
        let by_element = |(at, column): (usize, &Column)| {
            let here = column.space == Space::Element
                && (column.read || column.written || !plan.whole)
                && !self.elsewhere.iter().any(|column| column.index() == at);
            let rows = if here { elements.len() } else { 0 };
            // The launch writes every row. Rows of elements that it does not reach are never read. Other columns are
            // filled later.
            let is_written = !column.read && column.written && filled[at];
            if is_written || given.iter().any(|column| column.index() == at) {
                self.lender.to_fill(column.storage, rows)
            } else {
                HostColumn::zeroed(column.storage, rows)
            }
        };
        program.columns.iter().enumerate().map(by_element).collect()
    }
}

/// Allocates the memory of columns. A device's store has memory that it can copy faster than the allocator's.
#[derive(Clone, Copy)]
pub struct Lender<'a> {
    pub store: Option<&'a dyn DeviceStore>,
    /// Whether columns stay on the device, each in memory of its own. Then a filled column may be sent while others are
    /// being filled.
    pub keeps: bool,
}

impl Lender<'_> {
    fn to_fill(self, storage: Storage, rows: usize) -> HostColumn {
        let lent = self.store.and_then(|store| store.lend(HostColumn::words_for(storage, rows)));
        HostColumn::to_fill(storage, rows, lent)
    }
    /// A column of `rows` rows, of which the first `filled` will be filled.
    fn packed(self, storage: Storage, rows: usize, filled: usize) -> HostColumn {
        if rows > 0 && filled == rows { self.to_fill(storage, rows) } else { HostColumn::zeroed(storage, rows) }
    }
}

/// Packs what is in tables. Symbols without a number are left in `unknown`.
#[derive(Clone, Copy)]
pub struct Packer<'a> {
    plan: &'a Plan,
    tables: &'a Tables,
    unknown: &'a Mutex<Vec<Raw>>,
}

impl<'a> Packer<'a> {
    pub fn new(plan: &'a Plan, tables: &'a Tables, unknown: &'a Mutex<Vec<Raw>>) -> Self {
        Self { plan, tables, unknown }
    }

    /// Gives rows to the columns that are not by element, and takes over those of the tables.
    fn other_columns(
        &self,
        target: &PackTarget<'_>,
        residents: &[Resident],
        begun: &mut TableColumns,
        columns: &mut [HostColumn],
    ) {
        let (plan, program) = (self.plan, &target.lowered.program);
        let packed_rows = self.packed_rows(program);
        for (at, (column, of_tables)) in program.columns.iter().zip(std::mem::take(&mut begun.columns)).enumerate() {
            let rows = match column.space {
                Space::Array(_) if residents.iter().any(|r| r.column.index() == at) => 0,
                Space::Array(kind) => match plan.kinds.iter().position(|k| k.kind == kind) {
                    Some(kind) if self.tables.has_buffers(kind) => {
                        (self.tables.kinds[kind].rows + self.tables.kinds[kind].room) as usize
                    }
                    _ => {
                        columns[at] = of_tables;
                        continue;
                    }
                },
                Space::Class { .. } => {
                    columns[at] = of_tables;
                    continue;
                }
                Space::Element | Space::Job => continue,
                Space::Bytes => (self.tables.strings.rows + self.tables.strings.room) as usize,
                Space::Single => 1,
                Space::Slot => target.capacity.slots as usize * SLOT_STRIDE as usize,
            };
            columns[at] = target.lender.packed(column.storage, rows, packed_rows[at]);
        }
    }

    /// The first id of the class at one preorder position, and the end of the ids of the class at another.
    fn ids(&self, hierarchy: usize, first: usize, last: usize) -> (u32, u32) {
        let classes = self.plan.hierarchy(hierarchy);
        let from = self.tables.bases[classes.start + first];
        let to = if classes.start + last + 1 < classes.end {
            self.tables.bases[classes.start + last + 1]
        } else {
            self.tables.ends[hierarchy]
        };
        (from, to)
    }

    /// Tag and payload of a value in a slot. `word`: what the tracer already knows of it.
    #[inline]
    fn encode(&self, slot: &SlotPlan, value: Raw, word: Option<u64>) -> Result<(i32, u64)> {
        let (prim, tag, payload) = match heap::see(value) {
            Seen::Int(i) => (Prims::INT, Tag::INT, i as u64),
            Seen::Float(f) => (Prims::FLOAT, Tag::FLOAT, f.to_bits()),
            Seen::Nil => (Prims::NIL, Tag::NIL, 0),
            Seen::False => (Prims::FALSE, Tag::FALSE, 0),
            Seen::True => (Prims::TRUE, Tag::TRUE, 1),
            Seen::Symbol => (Prims::SYM, Tag::SYM, self.symbol(value) as u64),
            // The tracer has checked that a slot takes the class of its object. But it follows only slots that may hold
            // objects.
            Seen::Object | Seen::Struct | Seen::Number | Seen::Hash if slot.classes.is_empty() => {
                return Err(GuardFailure::Value);
            }
            Seen::Object | Seen::Struct | Seen::Number | Seen::Hash => {
                let word = word.or_else(|| self.tables.word(value)).ok_or(GuardFailure::Value)?;
                let tag = match slot.repr {
                    Repr::Union => {
                        let class = self.plan.class_index.get(&heap::class_word(value)).ok_or(GuardFailure::Value)?;
                        Tag::OBJECT + self.plan.classes[*class as usize].hierarchy as i32
                    }
                    _ => 0,
                };
                return Ok((tag, word));
            }
            Seen::Array | Seen::Buffer if slot.kind.is_some() => {
                let word = word.or_else(|| self.tables.word(value)).ok_or(GuardFailure::Value)?;
                return Ok((Tag::ARRAY, word));
            }
            Seen::Str if slot.prims.intersects(Prims::STR) => {
                let word = word.or_else(|| self.tables.word(value)).ok_or(GuardFailure::Value)?;
                return Ok((Tag::STR, word));
            }
            Seen::Module => {
                let id = classes::find(value).filter(|id| slot.modules.contains(id)).ok_or(GuardFailure::Value)?;
                return Ok((Tag::MODULE, module_word(id)));
            }
            Seen::Other if !slot.procs.is_empty() => {
                let id = held_procs::find(value).filter(|id| slot.procs.contains(id)).ok_or(GuardFailure::Value)?;
                return Ok((Tag::PROC, u64::from(id.0)));
            }
            _ => return Err(GuardFailure::Value),
        };
        if slot.prims.intersects(prim) { Ok((tag, payload)) } else { Err(GuardFailure::Value) }
    }

    fn symbol(&self, symbol: Raw) -> i64 {
        symbols::hash(symbol).unwrap_or_else(|| {
            let mut unknown = self.unknown.lock();
            if !unknown.contains(&symbol) {
                unknown.push(symbol);
            }
            0
        })
    }

    /// Fills rows with values. `word` gives what is known of a value, so that it need not be looked up in the tables.
    fn fill(
        &self,
        slot: &SlotPlan,
        rows: &mut Rows<'_>,
        values: &[Raw],
        word: impl Fn(usize) -> Option<u64>,
    ) -> Result<()> {
        match (slot.repr, &mut rows.values) {
            (Repr::Float, Cells::Words(out)) => {
                let other = |value| match heap::see(value) {
                    Seen::Float(f) => Some(f.to_bits()),
                    _ => None,
                };
                if lines::floats(values, out, f64::to_bits, other).is_some() {
                    return Err(GuardFailure::Value);
                }
            }
            // The program rounds each Float that it loads.
            (Repr::Float, Cells::Halves(out)) => {
                let round = |f: f64| (f as f32).to_bits();
                let other = |value| match heap::see(value) {
                    Seen::Float(f) => Some(round(f)),
                    _ => None,
                };
                if lines::floats(values, out, round, other).is_some() {
                    return Err(GuardFailure::Value);
                }
            }
            (Repr::Int, Cells::Words(out)) => {
                let other = |value| match heap::see(value) {
                    Seen::Int(i) => Some(i as u64),
                    _ => None,
                };
                if lines::ints(values, out, |i| i as u64, other).is_some() {
                    return Err(GuardFailure::Value);
                }
            }
            // The tracer knows that the value is an object of a class that the slot takes. So the object is not read.
            (Repr::Ref(_), Cells::Halves(out)) => {
                let known = (0..out.len()).all(|i| word(i).map(|id| out[i] = id as u32).is_some());
                if !known {
                    self.tables.ids(values, out)?;
                }
            }
            // The array is of a kind that the slot takes, as the tracer has checked.
            (Repr::Array(_), Cells::Words(out)) => {
                let known = (0..out.len()).all(|i| word(i).map(|word| out[i] = word).is_some());
                if !known {
                    self.tables.arrays(values, out)?;
                }
            }
            // The same for Strings.
            (Repr::Str, Cells::Words(out)) => {
                let known = (0..out.len()).all(|i| word(i).map(|word| out[i] = word).is_some());
                if !known {
                    self.tables.texts(values, out)?;
                }
            }
            // Objects, nil, true and false. Other values need more bits than an id has.
            (Repr::Union, Cells::Halves(out)) => {
                let tags = &mut rows.tags;
                self.tables.each_object(values, |i, object| {
                    let (prim, tag, payload) = match (object, values[i]) {
                        (Some((class, id)), _) => {
                            let hierarchy = self.plan.classes[class].hierarchy as i32;
                            (slot.prims, Tag::OBJECT + hierarchy, id)
                        }
                        (None, heap::NIL) => (Prims::NIL, Tag::NIL, 0),
                        (None, heap::FALSE) => (Prims::FALSE, Tag::FALSE, 0),
                        (None, heap::TRUE) => (Prims::TRUE, Tag::TRUE, 1),
                        _ => return Err(GuardFailure::Value),
                    };
                    if !slot.prims.contains(prim) {
                        return Err(GuardFailure::Value);
                    }
                    out[i] = payload;
                    tags.iter_mut().skip(i).take(1).for_each(|out| *out = tag as u8);
                    Ok(())
                })?;
            }
            // A unit has no cells. A union of kinds without payload has only tags.
            (_, cells) => {
                for (i, value) in values.iter().enumerate() {
                    let (tag, payload) = self.encode(slot, *value, word(i))?;
                    match cells {
                        Cells::None => {}
                        Cells::Bytes(out) => out[i] = payload as u8,
                        Cells::Halves(out) => out[i] = payload as u32,
                        Cells::Words(out) => out[i] = payload,
                    }
                    if let Some(out) = rows.tags.get_mut(i) {
                        *out = tag as u8;
                    }
                }
            }
        }
        Ok(())
    }

    /// Fills the columns of the elements themselves.
    fn elements(&self, slot: &SlotPlan, columns: &mut [HostColumn], values: &[Raw]) -> Result<()> {
        let Some(mut rows) = rows(columns, &[(slot, 0, values.len())]).pop() else { return Ok(()) };
        let pieces: Vec<_> = values.chunks(PIECE).map(|values| (values, rows.take(values.len()))).enumerate().collect();
        let filled = workers::map(values.len(), pieces, |(piece, (values, mut rows))| {
            let word = |i: usize| self.tables.element_word(self.plan, piece * PIECE + i);
            self.fill(slot, &mut rows, values, word)
        });
        filled.into_iter().collect()
    }

    /// Fills the columns of fields, for objects that are not packed yet. The objects of all classes are read side by
    /// side.
    fn fields(&self, program: &Program, left: Vec<Option<Vec<u32>>>, columns: &mut [HostColumn]) -> Result<()> {
        for (class, left) in left.iter().enumerate() {
            let some = left.iter().filter(|rows| !rows.is_empty());
            some.into_iter().try_for_each(|rows| self.few_fields(program, class, rows, columns))?;
        }
        let all: Vec<usize> = (0..left.len()).filter(|class| left[*class].is_none()).collect();
        let mut fields = self.fields_of(&all);
        fields.retain(|class| !class.slots.is_empty());
        let lengths: Vec<usize> = fields.iter().map(|class| class.objects.len()).collect();
        let all = lengths.iter().sum();
        let beside = workers::pays(all);
        if beside {
            fields.iter_mut().for_each(|class| class.learn(&sample(class.objects)));
        }
        let pieces = self.parts(program, &fields, workers::side_by_side(&lengths), columns);
        let filled = workers::map(all, pieces, |parts| {
            let mut left = Vec::new();
            for (class, mut part) in fields.iter().zip(parts) {
                // The Ruby thread, too, uses only the forms that it knows.
                let peek = |field: usize, objects: &[Raw], values: &mut [Raw]| {
                    class.readers[field].peek_all(objects, class.class, values)
                };
                if !beside || !self.piece(&class.slots, &mut part, peek)? {
                    left.push(part);
                }
            }
            Ok(left)
        });
        for left in filled {
            gvl::poll();
            for mut part in left? {
                let Fields { class: raw, slots, readers, .. } = &mut fields[part.class];
                self.piece(slots, &mut part, |field, objects, values| {
                    readers[field].get_all(objects, *raw, values);
                    true
                })?;
            }
        }
        Ok(())
    }

    /// The same for a few objects of one class, in the order of their rows.
    fn few_fields(&self, program: &Program, class: usize, some: &[u32], columns: &mut [HostColumn]) -> Result<()> {
        let mut fields = self.fields_of(&[class]);
        let objects = fields[0].objects;
        let learned: SmallVec<[Raw; 8]> = some.iter().take(8).map(|row| objects[*row as usize]).collect();
        fields[0].learn(&learned);
        // Each group has all rows up to the first row of the next one.
        let mut ends: Vec<usize> = some.chunks(workers::GROUP).skip(1).map(|group| group[0] as usize).collect();
        ends.push(objects.len());
        let pieces = ends
            .iter()
            .scan(0, |from, to| Some(std::iter::once(std::mem::replace(from, *to)..*to).collect()))
            .collect();
        let parts = self.parts(program, &fields, pieces, columns).into_iter().flatten();
        let froms = std::iter::once(0).chain(ends);
        let groups = parts.zip(froms).zip(some.chunks(workers::GROUP)).collect();
        let Fields { class, slots, readers, .. } = &mut fields[0];
        let filled = workers::scattered(groups, |((mut part, from), group): ((Part, usize), &[u32])| {
            let rows: SmallVec<[usize; workers::GROUP]> = group.iter().map(|row| *row as usize - from).collect();
            heap::prefetch_all(rows.iter().map(|row| part.objects[*row]));
            let peek = |field: usize, object| readers[field].peek(object, *class);
            Ok((!self.some_rows(slots, &mut part, &rows, peek)?).then_some((part, rows)))
        });
        for left in filled {
            if let Some((mut part, rows)) = left? {
                self.some_rows(slots, &mut part, &rows, |field, object| Some(readers[field].get(object, *class)))?;
            }
        }
        Ok(())
    }

    /// Fills some rows of several slots. False where a value cannot be read.
    fn some_rows(
        &self,
        slots: &[&SlotPlan],
        part: &mut Part<'_>,
        some: &[usize],
        mut read: impl FnMut(usize, Raw) -> Option<Raw>,
    ) -> Result<bool> {
        for (field, (slot, rows)) in slots.iter().zip(&mut part.rows).enumerate() {
            for row in some {
                let Some(value) = read(field, part.objects[*row]) else { return Ok(false) };
                self.fill(slot, &mut rows.part(*row..row + 1), &[value], |_| None)?;
            }
        }
        Ok(true)
    }

    /// The fields to be read, of the objects of some classes.
    fn fields_of(self, classes: &[usize]) -> Vec<Fields<'a>> {
        let one = |at: &usize| {
            let class = &self.plan.classes[*at];
            let read = || class.fields.iter().enumerate().filter(|(_, field)| field.read);
            Fields {
                at: *at,
                class: class.raw,
                objects: &self.tables.classes[*at].objects,
                slots: read().map(|(_, field)| &field.slot).collect(),
                readers: read().map(|(_, field)| FieldReader::new(field.field, &self.tables.hashes)).collect(),
                leads: read().map(|(number, _)| class.leads.iter().position(|lead| *lead == number)).collect(),
            }
        };
        classes.iter().map(one).collect()
    }

    /// Pieces of these objects, with the rows that each of their fields is stored in.
    fn parts<'c>(
        &self,
        program: &Program,
        classes: &[Fields<'c>],
        pieces: Vec<Vec<Range<usize>>>,
        columns: &'c mut [HostColumn],
    ) -> Vec<Vec<Part<'c>>> {
        let mut wanted: Vec<(&SlotPlan, usize, usize)> = Vec::new();
        for class in classes {
            wanted.extend(class.slots.iter().map(|slot| {
                let start = slot.value.or(slot.tag).map_or(0, |column| self.row(program, column, class.at));
                (*slot, start, class.objects.len())
            }));
        }
        let mut rest = rows(columns, &wanted);
        let mut parts = |piece: Vec<Range<usize>>| {
            let mut rest = rest.iter_mut();
            let part = |(class, rows): (usize, Range<usize>)| {
                let Fields { objects, slots, .. } = &classes[class];
                let fields = rest.by_ref().take(slots.len()).map(|slot| slot.take(rows.len())).collect();
                Part { class, objects: &objects[rows], rows: fields }
            };
            piece.into_iter().enumerate().map(part).collect()
        };
        pieces.into_iter().map(&mut parts).collect()
    }

    /// Fills rows of several slots. False where a value cannot be read.
    fn piece(
        &self,
        slots: &[&SlotPlan],
        part: &mut Part<'_>,
        mut read: impl FnMut(usize, &[Raw], &mut [Raw]) -> bool,
    ) -> Result<bool> {
        let mut values = [heap::NIL; CHUNK];
        for (chunk, objects) in part.objects.chunks(CHUNK).enumerate() {
            heap::prefetch_all(objects.iter().copied());
            let first = chunk * CHUNK;
            for (field, (slot, rows)) in slots.iter().zip(&mut part.rows).enumerate() {
                let values = &mut values[..objects.len()];
                if !read(field, objects, values) {
                    return Ok(false);
                }
                self.fill(slot, &mut rows.part(first..first + objects.len()), values, |_| None)?;
            }
        }
        Ok(true)
    }

    /// The first row of a class in a column.
    fn row(&self, program: &Program, column: ColumnId, class: usize) -> usize {
        self.tables.first_row(self.plan, program.columns[column.index()].space, class)
    }

    /// By column: how many of its rows objects and arrays fill.
    fn packed_rows(&self, program: &Program) -> Vec<usize> {
        let mut filled = vec![0; program.columns.len()];
        let mut fill = |slot: &SlotPlan, rows: usize| {
            slot.value.into_iter().chain(slot.tag).for_each(|column| filled[column.index()] += rows);
        };
        for (class, rows) in self.plan.classes.iter().zip(&self.tables.classes) {
            class.fields.iter().filter(|f| f.read).for_each(|field| fill(&field.slot, rows.objects.len()));
        }
        for (kind, rows) in self.plan.kinds.iter().zip(&self.tables.kinds) {
            let rows = rows.lengths.iter().map(|len| *len as usize).sum();
            kind.slot.iter().for_each(|slot| fill(slot, rows));
        }
        filled
    }

    /// What is outside the range that a column is assumed to be in. A buffer's Integers are not looked at, and may be
    /// anything.
    fn outside(&self, program: &Program, columns: &[HostColumn], residents: &[Resident]) -> Option<OutOfRange> {
        if residents.iter().any(|resident| program.columns[resident.column.index()].ranged.is_some()) {
            return Some(OutOfRange::Far);
        }
        let look = |(column, rows): (&Column, &HostColumn)| {
            let (assumed, rows) = (column.ranged?, rows.view::<i64>());
            let pieces = rows.chunks(PIECE).collect();
            workers::map(rows.len(), pieces, |rows: &[i64]| value_range::outside(rows, assumed)).into_iter().max()?
        };
        program.columns.iter().zip(columns).filter_map(look).max()
    }

    /// Columns that need not be filled, because each is the contents of one buffer.
    fn residents(&self, program: &Program) -> Result<Vec<Resident>> {
        let mut residents: Vec<Resident> = Vec::new();
        for (at, kind) in self.plan.kinds.iter().enumerate() {
            let Some(slot) = kind.slot.as_ref().filter(|_| self.tables.has_buffers(at)) else { continue };
            let Some(column) = slot.value else { continue };
            let storage = program.columns[column.index()].storage;
            let write = if kind.written { Write::Some } else { Write::None };
            // The bytes may be Integers, or true and false. A buffer has no tags for elements of several kinds.
            let as_it_is = |dtype: Dtype, buffer: &Buffer| {
                slot.tag.is_none() && buffer.storage() == storage && slot.prims.contains(dtype.prims())
            };
            match self.tables.sole_buffer(at).filter(|(dtype, buffer)| as_it_is(*dtype, buffer)) {
                Some((_, buffer)) => residents.push(Resident { column, buffer, write }),
                // With other arrays in the column, the buffer would be copied, and copies are not written back.
                None if kind.overwritten => return Err(GuardFailure::Value),
                None => {}
            }
        }
        Ok(residents)
    }

    fn buffer(&self, columns: &mut [HostColumn], slot: &SlotPlan, start: usize, array: Raw) -> Result<()> {
        let (dtype, buffer) = crate::buffers::buffer::of(array).ok_or(GuardFailure::Value)?;
        // A column that was made for narrower elements cannot hold all values.
        let storage = slot.value.map_or(Storage::I64, |column| columns[column.index()].storage());
        if !slot.prims.contains(dtype.prims()) || !dtype.fits(storage) {
            return Err(GuardFailure::Value);
        }
        let rows = buffer.on_host().map_err(GuardFailure::Lost)?;
        for at in 0..rows.len() {
            let (tag, payload) = match dtype {
                Dtype::I64 => (Tag::INT, rows.view::<i64>()[at] as u64),
                Dtype::I32 => (Tag::INT, i64::from(rows.view::<i32>()[at]) as u64),
                Dtype::U8 => (Tag::INT, u64::from(rows.view::<u8>()[at])),
                Dtype::F64 => (Tag::FLOAT, rows.view::<u64>()[at]),
                Dtype::F32 => (Tag::FLOAT, f64::from(rows.view::<f32>()[at]).to_bits()),
                Dtype::Bool => {
                    let byte = rows.view::<u8>()[at];
                    (if byte != 0 { Tag::TRUE } else { Tag::FALSE }, u64::from(byte))
                }
            };
            if let Some(column) = slot.value {
                let column = &mut columns[column.index()];
                match column.storage() {
                    Storage::U8 => column.view_mut::<u8>()[start + at] = payload as u8,
                    Storage::I32 => column.view_mut::<i32>()[start + at] = payload as i32,
                    Storage::F32 => column.view_mut::<f32>()[start + at] = f64::from_bits(payload) as f32,
                    _ => column.view_mut::<u64>()[start + at] = payload,
                }
            }
            if let Some(tags) = slot.tag {
                columns[tags.index()].view_mut::<u8>()[start + at] = tag as u8;
            }
        }
        Ok(())
    }

    /// Fills the columns of elements, for arrays that are not packed yet, by kind.
    fn arrays(&self, columns: &mut [HostColumn], residents: &[Resident], left: Vec<Option<Vec<Span>>>) -> Result<()> {
        for ((at, kind), left) in self.plan.kinds.iter().enumerate().zip(left) {
            let rows = &self.tables.kinds[at];
            let resident = |slot: &&SlotPlan| residents.iter().any(|r| Some(r.column) == slot.value);
            if let Some(slot) = kind.slot.as_ref().filter(|slot| !resident(slot)) {
                let pieces = match left {
                    Some(left) => left.chunks(workers::GROUP).map(|some| Lists::Some(room::copied(some))).collect(),
                    None => room::copied(&rows.pieces()),
                };
                self.kind(rows, slot, columns, pieces)?;
            }
            if let Some(column) = kind.frozen {
                let flags = columns[column.index()].view_mut::<u8>();
                for (array, offset) in rows.arrays.iter().zip(&rows.offsets[..]) {
                    flags[*offset as usize] = u8::from(heap::is_frozen(*array));
                }
            }
        }
        Ok(())
    }

    /// Fills the columns of some arrays of one kind.
    fn kind(&self, kind: &KindRows, slot: &SlotPlan, columns: &mut [HostColumn], pieces: Vec<Lists>) -> Result<()> {
        let buffers = {
            let wanted: Vec<(&SlotPlan, usize, usize)> =
                pieces.iter().map(|lists| (slot, kind.start(lists.first()), kind.rows_of(lists))).collect();
            let are_few = matches!(pieces.first(), Some(Lists::Some(_)));
            let len = wanted.iter().map(|(.., len)| len).sum();
            let pieces = pieces.into_iter().zip(rows(columns, &wanted)).collect();
            let fill = |(lists, mut rows): (Lists, Rows)| {
                let from = kind.start(lists.first());
                let mut buffers = Vec::new();
                // Short arrays are read together, because a call for a few values takes longer for each.
                let (mut values, mut first) = (Vec::with_capacity(2 * CHUNK), 0);
                let mut fill = |at: usize, values: &[Raw]| {
                    self.fill(slot, &mut rows.part(at..at + values.len()), values, |_| None)
                };
                let mut spans = lists.spans(&kind.lengths);
                loop {
                    let chunk: SmallVec<[Span; CHUNK]> = spans.by_ref().take(CHUNK).collect();
                    if chunk.is_empty() {
                        break;
                    }
                    heap::prefetch_all(chunk.iter().map(|span| kind.arrays[span.list]));
                    for span in chunk {
                        let array = kind.arrays[span.list];
                        if heap::see(array) == Seen::Buffer {
                            buffers.extend((span.from == 0).then_some(span.list));
                            continue;
                        }
                        let elements = &heap::elements(array)[span.from..span.from + span.len];
                        let at = kind.start(span) - from;
                        if span.len > CHUNK {
                            fill(at, elements)?;
                            continue;
                        }
                        // An array without elements has a row.
                        if at != first + values.len() || values.len() > CHUNK {
                            fill(first, &values)?;
                            values.clear();
                            first = at;
                        }
                        values.extend(elements);
                    }
                }
                fill(first, &values)?;
                Ok(buffers)
            };
            let filled = if are_few { workers::scattered(pieces, fill) } else { workers::map(len, pieces, fill) };
            filled.into_iter().collect::<Result<Vec<_>>>()?
        };
        for list in buffers.into_iter().flatten() {
            self.buffer(columns, slot, kind.offsets[list] as usize, kind.arrays[list])?;
        }
        Ok(())
    }

    /// Fills the column of bytes: those of literals, and of all Strings. Several threads copy long Strings.
    fn bytes(&self, out: &mut [u8]) {
        let (literals, mut rest) = out.split_at_mut(self.plan.literals.len());
        literals.copy_from_slice(&self.plan.literals);
        let strings = &self.tables.strings;
        let (mut pieces, mut stretches) = (Vec::new(), Vec::new());
        let mut from = literals.len();
        for (strings, words) in strings.strings.chunks(PIECE).zip(strings.words.chunks(PIECE)) {
            let end = words.last().map_or(from, |word| word.offset() as usize + word.length());
            let (own, others) = rest.split_at_mut(end - from);
            if own.len() / strings.len() > STRETCH {
                let (mut own, mut at) = (own, from);
                for (string, word) in strings.iter().zip(words) {
                    let (before, len) = (word.offset() as usize - at, word.length());
                    let (out, more) = own.split_at_mut(before + len);
                    stretches
                        .extend(out[before..].chunks_mut(STRETCH).zip(heap::bytes(*string)[..len].chunks(STRETCH)));
                    (own, at) = (more, at + before + len);
                }
            } else {
                pieces.push((own, strings, words, from));
            }
            (rest, from) = (others, end);
        }
        workers::map(strings.strings.len(), pieces, |(out, strings, words, start)| {
            for (strings, words) in strings.chunks(AHEAD).zip(words.chunks(AHEAD)) {
                heap::prefetch_all(strings.iter().copied());
                for (string, word) in strings.iter().zip(words) {
                    let from = word.offset() as usize - start;
                    out[from..from + word.length()].copy_from_slice(heap::bytes(*string));
                }
            }
        });
        workers::scattered(stretches, |(out, bytes)| out.copy_from_slice(bytes));
    }

    /// Fills the columns of origins and of frozen flags. An object that existed before is its own origin.
    fn frozen(&self, schema: &Schema, program: &Program, columns: &mut [HostColumn]) {
        for (h, hierarchy) in schema.hierarchies.iter().enumerate() {
            for (class, column) in
                self.plan.hierarchy(h).flat_map(|class| hierarchy.origin.map(|column| (class, column)))
            {
                let (start, first) = (self.row(program, column, class), self.tables.bases[class]);
                let objects = self.tables.classes[class].objects.len();
                let origins = &mut columns[column.index()].view_mut::<u32>()[start..start + objects];
                origins.iter_mut().zip(first..).for_each(|(origin, id)| *origin = id);
            }
            let Some(column) = hierarchy.frozen else { continue };
            for class in self.plan.hierarchy(h) {
                let start = self.row(program, column, class);
                let objects = &self.tables.classes[class].objects[..];
                let flags = &mut columns[column.index()].view_mut::<u8>()[start..start + objects.len()];
                for (flag, object) in flags.iter_mut().zip(objects) {
                    *flag = u8::from(heap::is_frozen(*object));
                }
            }
        }
    }

    /// Order and starts of jobs, if they have any, and the number of jobs.
    fn jobs(&self, jobs: Jobs, elements: usize, warp: usize) -> (Option<HostColumn>, Option<HostColumn>, u64) {
        if jobs == Jobs::Identity {
            return (None, None, elements as u64);
        }
        // Elements by class, others last.
        let groups = self.plan.classes.len() + 1;
        let group = |i: usize| match self.tables.element_class(i) {
            NO_CLASS => groups - 1,
            class => class as usize,
        };
        if jobs == Jobs::Reordered {
            let order = match self.tables.element_classes() {
                // A value that is no object has no class.
                [] => by_class(&room::filled(NO_CLASS, elements), groups, warp, &workers::THREADS),
                classes => by_class(classes, groups, warp, &workers::THREADS),
            };
            let jobs = order.len() as u64 - 1;
            return (Some(order), None, jobs);
        }
        // One job per object, which runs for its occurrences in their order.
        let mut job_of: std::collections::HashMap<(u16, u32), usize> = std::collections::HashMap::new();
        let mut list: Vec<(usize, Vec<u32>)> = Vec::new();
        for i in 0..elements {
            if i.is_multiple_of(CHUNK) {
                gvl::poll();
            }
            let identity = self.tables.element_identity(i);
            match identity.and_then(|id| job_of.get(&id)) {
                Some(job) => room::push(&mut list[*job].1, i as u32),
                None => {
                    if let Some(identity) = identity {
                        room::reserve_entry(&mut job_of);
                        job_of.insert(identity, list.len());
                    }
                    room::push(&mut list, (group(i), vec![i as u32]));
                }
            }
        }
        list.sort_by_key(|(group, _)| *group);
        let (mut order, mut starts) = (room::with_capacity(elements), room::with_capacity(list.len() + 1));
        let mut last = None;
        for (group, occurrences) in list {
            if last.is_some_and(|l| l != group) {
                // A new class starts at a multiple of the warp size. Jobs without occurrences fill the gap.
                while starts.len() % warp != 0 {
                    room::push(&mut starts, order.len() as u32);
                }
            }
            last = Some(group);
            room::push(&mut starts, order.len() as u32);
            order.extend(occurrences);
        }
        let jobs = starts.len() as u64;
        room::push(&mut starts, order.len() as u32);
        let column = |numbers: Vec<u32>| {
            let mut column = HostColumn::to_fill(Storage::U32, numbers.len(), None);
            column.view_mut::<u32>().copy_from_slice(&numbers);
            column
        };
        (Some(column(order)), Some(column(starts)), jobs)
    }

    fn params(
        &self,
        program: &Program,
        schema: &Schema,
        elements: Elements<'_>,
        roots: &[RootValue],
    ) -> Result<Vec<u64>> {
        let mut params = vec![0u64; program.params.len()];
        for (h, hierarchy) in schema.hierarchies.iter().enumerate() {
            let classes = self.plan.hierarchy(h);
            for (i, param) in hierarchy.bases.iter().enumerate() {
                let Some(param) = param else { continue };
                let base = if classes.start + i < classes.end {
                    self.tables.bases[classes.start + i]
                } else {
                    self.tables.ends[h]
                };
                params[param.index()] = i64::from(base as i32) as u64;
            }
        }
        if let (Some(first), Elements::Range(from, _)) = (schema.range, elements) {
            params[first.index()] = from as u64;
        }
        if let Some(first) = schema.whole {
            params[first.index()] = self.first_row(program, schema, elements.len())?;
        }
        for ((root, slot), value) in schema.roots.iter().zip(&self.plan.roots).zip(roots) {
            self.root(program, root, slot, *value, &mut params)?;
        }
        match root_out_of_range(program, schema, &params) {
            Some(root) => Err(GuardFailure::RootOutOfRange(root.clone())),
            None if !are_alike(program, &params) => Err(GuardFailure::Value),
            None => Ok(params),
        }
    }

    /// The first row of the elements, if their rows follow each other.
    fn first_row(&self, program: &Program, schema: &Schema, elements: usize) -> Result<u64> {
        let column = schema.elements.as_ref().and_then(|slot| slot.value);
        let Some(Space::Class { hierarchy, first, last }) = column.and_then(|c| program.columns[c.index()].refers)
        else {
            return Err(GuardFailure::Scattered);
        };
        let (from, to) = self.ids(hierarchy as usize, first as usize, last as usize);
        // No object may be an element twice, unless the program groups them.
        if (to - from) as usize == elements { Ok(from.into()) } else { Err(GuardFailure::Scattered) }
    }

    fn root(
        &self,
        program: &Program,
        root: &RootParam,
        slot: &SlotPlan,
        value: RootValue,
        params: &mut [u64],
    ) -> Result<()> {
        if let Some((from, to, exclusive)) = value.range.filter(|_| root.to.is_some()) {
            let float = |v: Raw| match heap::see(v) {
                Seen::Int(i) => Ok((i as f64).to_bits()),
                Seen::Float(f) => Ok(f.to_bits()),
                _ => Err(GuardFailure::Value),
            };
            let kind = Bounds { from, to, exclusive }.in_registers();
            if kind.is_none_or(|kind| !slot.prims.intersects(kind)) {
                return Err(GuardFailure::Value);
            }
            for (param, end) in [(root.value, from), (root.to, to)] {
                let Some(param) = param else { continue };
                params[param.index()] = match (program.params[param.index()].ty, heap::see(end)) {
                    (Scalar::F64, _) => float(end)?,
                    (_, Seen::Int(i)) => i as u64,
                    _ => return Err(GuardFailure::Value),
                };
            }
            if let Some(param) = root.exclusive {
                params[param.index()] = u64::from(exclusive);
            }
            return Ok(());
        }
        let (tag, payload) = self.encode(slot, value.value, None)?;
        store(program, root, (tag, payload), params);
        Ok(())
    }
}

/// Sets the parameters of a root that is no Range.
fn store(program: &Program, root: &RootParam, (tag, payload): (i32, u64), params: &mut [u64]) {
    if let Some(param) = root.value {
        params[param.index()] = match program.params[param.index()].ty {
            Scalar::I32 => i64::from(payload as u32 as i32) as u64,
            _ => payload,
        };
    }
    if let Some(param) = root.tag {
        params[param.index()] = i64::from(tag) as u64;
    }
}

/// The root whose value does not meet its value-range assumption.
fn root_out_of_range<'a>(program: &Program, schema: &'a Schema, params: &[u64]) -> Option<&'a Root> {
    let fits = |param: ParamId| program.params[param.index()].takes(params[param.index()]);
    let roots = schema.roots.iter().map(|root| (&root.root, root.value));
    let range = schema.range.map(|first| (&Root::Element, Some(first)));
    roots.chain(range).find(|(_, param)| !param.is_none_or(fits)).map(|(root, _)| root)
}

/// Whether parameters that are assumed to have the same value have.
fn are_alike(program: &Program, params: &[u64]) -> bool {
    let is_alike = |(i, same): (usize, ParamId)| params[i] == params[same.index()];
    program.params.iter().enumerate().filter_map(|(i, param)| Some((i, param.same?))).all(is_alike)
}

/// The fields to be read, of the objects of one class.
struct Fields<'a> {
    /// The index of each field in the plan.
    at: usize,
    /// The class word of the objects.
    class: Raw,
    objects: &'a [Raw],
    slots: Vec<&'a SlotPlan>,
    readers: Vec<FieldReader>,
    /// The index of each field among those that the tracer follows, if it is one.
    leads: Vec<Option<usize>>,
}

impl Fields<'_> {
    /// Learns the forms of these objects.
    fn learn(&mut self, objects: &[Raw]) {
        self.readers.iter_mut().for_each(|reader| reader.learn(objects, self.class));
    }
}

/// Some objects of one of several classes, and the rows of each of their fields.
struct Part<'a> {
    /// The index of the class.
    class: usize,
    objects: &'a [Raw],
    rows: Vec<Rows<'a>>,
}

/// The word of a class or module in a register.
pub fn module_word(id: ClassId) -> u64 {
    u64::from(id.0)
}
