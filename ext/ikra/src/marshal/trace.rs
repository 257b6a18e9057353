//! Tables of reachable objects and arrays, and the row of each.
//!
//! Here: [`Tables`], filled by walking from the base array and the roots along the slots that a [`Plan`] names. Not
//! here: the values of the other slots ([`crate::marshal::pack`]).
//! Invariant: from the start of a trace to the end of packing nothing allocates in Ruby's heap and no Ruby code runs;
//! see [`crate::ruby::heap`].
//!
//! | module | what it does |
//! | --- | --- |
//! | `trace/walk.rs` | the walk |
//! | `trace/beside.rs`, `trace/reservations.rs` | what workers do of a walk over many objects |
//! | `trace/revalidate.rs` | revalidates the tables of an earlier call |

use crate::marshal::capacity::HeapCapacity;
use crate::marshal::plan::{ClassPlan, Plan, Rows};
use crate::ruby::dtype::Dtype;
use crate::ruby::heap::{FieldReader, Hashes, Raw};
use crate::ruby::holder::ObjectLists;
use crate::ruby::identity::IdentityMap;
use crate::ruby::workers::{self, Lists, PIECE, Span};
use ikra_core::ir::Space;
use ikra_core::memory::buffer::Buffer;
use ikra_core::memory::table::Table;
use ikra_core::memory::words::HostWords;
use ikra_core::types::StrWord;
use ikra_core::world::{OutOfRange, Root, StrideAssumption};
use once_cell::sync::OnceCell;
use order::Order;
use parking_lot::Mutex;
use std::sync::Arc;
use walk::{RECENT, Tracer};

mod beside;
mod order;
mod reservations;
mod revalidate;
mod walk;

impl ObjectLists for Tables {
    fn each_list(&self, give: &mut dyn FnMut(&[Raw])) {
        self.classes.iter().for_each(|rows| give(&rows.objects));
        self.kinds.iter().for_each(|rows| give(&rows.arrays));
        give(&self.strings.strings);
    }
}

/// A guard failure: why the compiled program does not fit the values of this call. The section is compiled again for
/// these values.
#[derive(Debug)]
pub enum GuardFailure {
    /// A value of a kind that its place is not compiled for.
    Value,
    /// A root that does not meet its value-range assumption.
    RootOutOfRange(Root),
    /// A column or list without the assumed uniform stride ([`ikra_core::ir::UniformStride`]).
    NoUniformStride(StrideAssumption),
    /// Integers of a column that does not meet its value-range assumption ([`ikra_core::ir::Column::ranged`]).
    ColumnOutOfRange(OutOfRange),
    /// Elements that are not exactly the objects of their classes ([`ikra_core::layout::schema::Schema::whole`]).
    Scattered,
    /// Symbols that are not in the table yet. Nothing need be compiled.
    Symbols,
    /// Hashes that were not laid out yet. Nothing need be compiled.
    Hashes,
    /// More objects or array elements than ids or offsets can count.
    TooMany,
    /// Elements that cannot be fetched.
    Lost(ikra_core::error::Error),
}

/// The bit that marks an array in the identity map. An array's word has this bit, its kind index in the upper half, and
/// its position in [`KindRows`] in the lower. An object's word has its class index + 1 in the upper half, and its row
/// in the lower.
const ARRAY: u64 = 1 << 63;
/// The bit that marks a String. The lower half is its position in [`Strings`].
const STRING: u64 = 1 << 62;
/// The most rows of one class, or arrays of one kind.
const MAX_ROWS: usize = u32::MAX as usize;
/// Rows that are processed together, so that an object is still in the cache when its ivars are read.
pub const CHUNK: usize = 256;

/// Rows of one class.
#[derive(Default)]
pub struct ClassRows {
    pub objects: Table<Raw>,
    /// Whether each row belongs to an owned slot. Empty where none may.
    claimed: Vec<bool>,
    cursor: usize,
}

/// Arrays of one kind. Their elements lie one after the other in the element column.
#[derive(Default)]
pub struct KindRows {
    pub arrays: Table<Raw>,
    /// The first row of each.
    pub offsets: Table<u32>,
    pub lengths: Table<u32>,
    /// The rows of all.
    pub rows: u64,
    /// Rows after them, for new arrays.
    pub room: u64,
    /// Whether some are buffers.
    buffers: bool,
    /// All of them, in pieces for workers. Made at the first request.
    pieces: OnceCell<Arc<[Lists]>>,
    claimed: Vec<bool>,
    cursor: usize,
}

/// Strings. Their bytes lie one after the other in the column of bytes, after the program's literals.
#[derive(Default)]
pub struct Strings {
    pub strings: Vec<Raw>,
    pub words: Vec<StrWord>,
    /// The rows of all, literals included.
    pub rows: u64,
    /// The rows behind these that the kernel takes for what it makes.
    pub room: u64,
}

/// All objects and arrays that were reached.
pub struct Tables {
    map: IdentityMap,
    pub classes: Vec<ClassRows>,
    pub kinds: Vec<KindRows>,
    pub strings: Strings,
    /// The Hashes and their layouts, which were made before.
    pub hashes: Arc<Hashes>,
    /// The class index of each element. `element_rows` has its row, which means nothing where it has no class. Empty
    /// where elements lead nowhere.
    element_classes: Table<u16>,
    element_rows: Table<u32>,
    /// The order of the elements when these tables were last revalidated.
    order: Option<Order>,
    /// The first id of each class, by class index.
    pub bases: Vec<u32>,
    /// The end of the ids of each hierarchy.
    pub ends: Vec<u32>,
    /// The first row of each heap.
    pub starts: Vec<u64>,
}

/// The class index of elements that are no objects.
pub const NO_CLASS: u16 = u16::MAX;
/// The class index of elements that are arrays. The row is the position in [`KindRows`].
const ARRAY_CLASS: u16 = u16::MAX - 1;
/// The class index of elements that are Strings. The row is the position in [`Strings`].
const TEXT_CLASS: u16 = u16::MAX - 2;

type Result<T> = std::result::Result<T, GuardFailure>;

impl Tables {
    /// Whether the program writes the kind of this array.
    pub fn writes_array(&self, plan: &Plan, array: Raw) -> bool {
        self.kinds.iter().zip(&plan.kinds).any(|(rows, kind)| kind.written && rows.arrays.contains(&array))
    }

    /// Whether some arrays of a kind are buffers.
    pub fn has_buffers(&self, kind: usize) -> bool {
        self.kinds[kind].buffers
    }

    /// The buffer that is the only array of a kind. The program makes no row of that kind.
    pub fn sole_buffer(&self, kind: usize) -> Option<(Dtype, Arc<Buffer>)> {
        let rows = &self.kinds[kind];
        match rows.arrays[..] {
            [array] if rows.room == 0 => crate::buffers::buffer::of(array),
            _ => None,
        }
    }

    /// Empty tables, for a plan in which no slot leads to other objects.
    pub fn empty(plan: &Plan) -> Self {
        Self {
            map: IdentityMap::default(),
            classes: plan.classes.iter().map(|_| ClassRows::default()).collect(),
            kinds: plan.kinds.iter().map(|_| KindRows::default()).collect(),
            hashes: Arc::default(),
            strings: Strings { rows: plan.literals.len() as u64, ..Strings::default() },
            element_classes: Table::default(),
            element_rows: Table::default(),
            order: None,
            bases: vec![0; plan.classes.len()],
            ends: vec![0; plan.hierarchies.len() - 1],
            starts: vec![0; plan.heaps.len()],
        }
    }

    /// Walks from the base array and the roots.
    ///
    /// # Errors
    /// A value that the plan's program was not compiled for.
    pub fn trace(
        plan: &Plan,
        base: Option<&[Raw]>,
        roots: &[Raw],
        capacity: &HeapCapacity,
        hashes: &Arc<Hashes>,
        unknown: &mut Vec<Raw>,
    ) -> Result<Self> {
        let mut tables = Self::empty(plan);
        tables.hashes = hashes.clone();
        if !plan.plain {
            let fields = |c: &ClassPlan| c.leads.iter().map(|f| FieldReader::new(c.fields[*f].field, hashes)).collect();
            let readers = plan.classes.iter().map(fields).collect();
            Tracer {
                plan,
                tables: &mut tables,
                readers,
                recent: [(0, 0); RECENT],
                expected: base.map_or(0, <[Raw]>::len),
                spare: Mutex::default(),
                unknown,
            }
            .walk(base, roots)?;
        }
        tables.number(plan, capacity)?;
        Ok(tables)
    }

    /// Gives ids to each class, and rows to each heap, after those of existing objects.
    fn number(&mut self, plan: &Plan, capacity: &HeapCapacity) -> Result<()> {
        self.kinds.iter_mut().for_each(|kind| kind.room = 0);
        self.strings.room = 0;
        for hierarchy in 0..self.ends.len() {
            let mut next = 0u64;
            for class in plan.hierarchy(hierarchy) {
                self.bases[class] = next as u32;
                next += self.classes[class].objects.len() as u64;
                for (heap, _) in plan.heaps.iter().enumerate().filter(|(_, rows)| **rows == Rows::Class(class)) {
                    self.starts[heap] = next;
                    next += capacity.rows[heap];
                }
            }
            self.ends[hierarchy] = u32::try_from(next).map_err(|_| GuardFailure::TooMany)?;
        }
        for (heap, rows) in plan.heaps.iter().enumerate() {
            let (rows, room) = match *rows {
                Rows::Kind(kind) => {
                    let kind = &mut self.kinds[kind];
                    (kind.rows, &mut kind.room)
                }
                Rows::Bytes => (self.strings.rows, &mut self.strings.room),
                Rows::Class(_) => continue,
            };
            self.starts[heap] = rows + *room;
            *room += capacity.rows[heap];
            u32::try_from(rows + *room).map_err(|_| GuardFailure::TooMany)?;
        }
        Ok(())
    }

    /// The word of an object or array in a register. None for one that was not reached.
    #[inline]
    pub fn word(&self, value: Raw) -> Option<u64> {
        match self.map.get(value) {
            0 => None,
            entry if entry & ARRAY != 0 => {
                let rows = &self.kinds[(entry & !ARRAY) as usize >> 32];
                Some(rows.word(entry as u32))
            }
            entry if entry & STRING != 0 => Some(self.strings.words[entry as u32 as usize].0),
            entry => Some(u64::from(self.bases[(entry as usize >> 32) - 1]) + (entry & 0xffff_ffff)),
        }
    }

    /// Class index and row of an object that was reached.
    pub fn row(&self, object: Raw) -> Option<(usize, usize)> {
        match self.map.get(object) {
            0 => None,
            entry if entry & (ARRAY | STRING) != 0 => None,
            entry => Some(((entry as usize >> 32) - 1, entry as u32 as usize)),
        }
    }

    /// The first row of a class in a column.
    pub fn first_row(&self, plan: &Plan, space: Space, class: usize) -> usize {
        let Space::Class { hierarchy, first, .. } = space else { return 0 };
        let first = plan.hierarchy(hierarchy as usize).start + first as usize;
        (self.bases[class] - self.bases[first]) as usize
    }

    /// The ids of many values, all of which must be objects.
    ///
    /// # Errors
    /// Where one is none, or was not reached.
    pub fn ids(&self, values: &[Raw], ids: &mut [u32]) -> Result<()> {
        self.each_object(values, |i, object| {
            (_, ids[i]) = object.ok_or(GuardFailure::Value)?;
            Ok(())
        })
    }

    /// Passes to `tell` class index and id of each of many values. Each must be an object, or not in the tables, for
    /// which it gets None.
    ///
    /// # Errors
    /// An array or a String, and the errors of `tell`.
    #[inline]
    pub fn each_object(
        &self,
        values: &[Raw],
        mut tell: impl FnMut(usize, Option<(usize, u32)>) -> Result<()>,
    ) -> Result<()> {
        self.map.each(values, |i, entry| {
            if entry == 0 {
                return tell(i, None);
            }
            // Arrays and Strings have bits that no class index has.
            let class = (entry as usize >> 32) - 1;
            let base = self.bases.get(class).ok_or(GuardFailure::Value)?;
            tell(i, Some((class, base.wrapping_add(entry as u32))))
        })
    }

    /// The words of many values, all of which must be arrays.
    ///
    /// # Errors
    /// Where one is none, or was not reached.
    pub fn arrays(&self, values: &[Raw], words: &mut [u64]) -> Result<()> {
        self.map.each(values, |i, entry| {
            if entry & ARRAY == 0 {
                return Err(GuardFailure::Value);
            }
            words[i] = self.kinds[(entry & !ARRAY) as usize >> 32].word(entry as u32);
            Ok(())
        })
    }

    /// The words of many values, all of which must be Strings.
    ///
    /// # Errors
    /// Where one is none, or was not reached.
    pub fn texts(&self, values: &[Raw], words: &mut [u64]) -> Result<()> {
        self.map.each(values, |i, entry| {
            if entry & STRING == 0 {
                return Err(GuardFailure::Value);
            }
            words[i] = self.strings.words[entry as u32 as usize].0;
            Ok(())
        })
    }

    /// The word of an element, by its index.
    #[inline]
    pub fn element_word(&self, plan: &Plan, index: usize) -> Option<u64> {
        let row = *self.element_rows.get(index)?;
        match self.element_classes[index] {
            NO_CLASS => None,
            ARRAY_CLASS => {
                let kind = plan.elements.as_ref()?.kind?;
                Some(self.kinds[kind].word(row))
            }
            TEXT_CLASS => Some(self.strings.words[row as usize].0),
            class => Some(u64::from(self.bases[class as usize]) + u64::from(row)),
        }
    }

    /// The identity of the object or array that is the element at an index. None for any other value.
    #[inline]
    pub fn element_identity(&self, index: usize) -> Option<(u16, u32)> {
        let class = *self.element_classes.get(index)?;
        (class != NO_CLASS && class != TEXT_CLASS).then(|| (class, self.element_rows[index]))
    }

    /// Whether some element is no object.
    pub fn has_other_elements(&self) -> bool {
        self.element_classes.iter().any(|class| *class >= TEXT_CLASS)
    }

    /// The class indices of all elements. An element that is no object has an index above all classes. Empty where
    /// elements lead nowhere.
    pub fn element_classes(&self) -> &[u16] {
        &self.element_classes
    }

    /// The class index of the element at an index. [`NO_CLASS`] for a value that is no object.
    #[inline]
    pub fn element_class(&self, index: usize) -> u16 {
        match self.element_classes.get(index) {
            Some(class) if *class < TEXT_CLASS => *class,
            _ => NO_CLASS,
        }
    }

    /// Class index and row of an id within a hierarchy.
    pub fn place(&self, plan: &Plan, hierarchy: usize, id: u32) -> Option<(usize, usize)> {
        let classes = plan.hierarchy(hierarchy);
        let at = classes.start + self.bases[classes.clone()].partition_point(|base| *base <= id).checked_sub(1)?;
        Some((at, (id - self.bases[at]) as usize))
    }

    /// The String whose bytes begin at an offset. It existed before the launch.
    pub fn string(&self, offset: u32) -> Option<Raw> {
        self.strings.find(offset).map(|at| self.strings.strings[at])
    }

    /// The array at an offset.
    pub fn array(&self, kind: usize, offset: u32) -> Option<Raw> {
        let rows = &self.kinds[kind];
        rows.offsets.binary_search(&offset).ok().map(|at| rows.arrays[at])
    }

    /// Whether there are arrays of a kind that existed before the launch.
    pub fn has_arrays(&self, kind: usize) -> bool {
        !self.kinds[kind].arrays.is_empty()
    }

    /// The number of objects, arrays and Strings.
    pub fn rows(&self) -> usize {
        let objects: usize = self.classes.iter().map(|rows| rows.objects.len()).sum();
        let arrays: usize = self.kinds.iter().map(|rows| rows.arrays.len()).sum();
        objects + arrays + self.strings.strings.len()
    }

    /// Whether the tables still have the numbers of objects.
    pub fn knows_numbers(&self) -> bool {
        !self.map.is_empty()
    }

    /// Frees what only the walk and packing need, except what revalidation in a later call begins with.
    pub fn forget_walk(&mut self) {
        self.forget_elements();
        self.classes.iter_mut().for_each(|rows| rows.claimed = Vec::new());
        self.kinds.iter_mut().for_each(|rows| rows.claimed = Vec::new());
    }

    /// Frees what only packing needs.
    pub fn forget_numbers(&mut self) {
        self.order = None;
        self.map = IdentityMap::default();
        self.forget_elements();
    }

    /// The ids of all elements, in the memory of their rows, which are gone then. None where some element is no object.
    pub fn take_element_ids(&mut self) -> Option<HostWords> {
        if self.element_classes.is_empty() || self.has_other_elements() {
            return None;
        }
        let mut ids = std::mem::take(&mut self.element_rows);
        let pieces: Vec<_> = ids.chunks_mut(PIECE).zip(self.element_classes.chunks(PIECE)).collect();
        let bases = &self.bases;
        workers::map(self.element_classes.len(), pieces, |(ids, classes)| {
            ids.iter_mut().zip(classes).for_each(|(id, class)| *id += bases[usize::from(*class)]);
        });
        Some(ids.into_words())
    }

    /// Frees what only the packing of elements needs.
    pub fn forget_elements(&mut self) {
        self.element_classes = Table::default();
        self.element_rows = Table::default();
    }
}

impl Strings {
    /// The position of the String whose bytes begin at an offset.
    pub fn find(&self, offset: u32) -> Option<usize> {
        self.words.binary_search_by_key(&offset, |word| word.offset()).ok()
    }
}

impl KindRows {
    /// All arrays, in pieces for workers. Called only once all are there.
    pub fn pieces(&self) -> Arc<[Lists]> {
        self.pieces.get_or_init(|| workers::lists(&self.lengths).into()).clone()
    }

    /// The row where a part of an array begins.
    pub fn start(&self, span: Span) -> usize {
        self.offsets[span.list] as usize + span.from
    }

    /// The number of rows from the first one of some arrays to their last.
    pub fn rows_of(&self, lists: &Lists) -> usize {
        match lists {
            Lists::Part(span) => span.len,
            Lists::Whole(lists) if lists.is_empty() => 0,
            Lists::Whole(lists) => {
                let last = lists.end - 1;
                (self.offsets[last] + self.lengths[last] - self.offsets[lists.start]) as usize
            }
            Lists::Some(spans) => {
                debug_assert!(spans.is_sorted_by_key(|span| (span.list, span.from)), "they are in their order");
                let last = spans[spans.len() - 1];
                self.start(last) + last.len - self.start(spans[0])
            }
        }
    }

    #[inline]
    fn word(&self, at: u32) -> u64 {
        u64::from(self.offsets[at as usize]) << 32 | u64::from(self.lengths[at as usize])
    }
}
