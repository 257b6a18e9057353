//! Reachable objects and arrays to tables: who is there, and which row is whose.
//!
//! Here: [`Tables`], filled by walking from the base array and the roots along the slots that a [`Plan`] names. Not
//! here: what is in the other slots ([`crate::pack`]).
//! Invariant: from the start of a trace to the end of packing nothing allocates in Ruby's heap and no Ruby code runs;
//! see [`crate::heap`].
//!
//! Nothing recurses: each table only grows at its end, and a cursor per table says how far its rows were followed.

use crate::buffer::Dtype;
use crate::heap::{self, FieldReader, Hashes, Raw, Seen};
use crate::identity::IdentityMap;
use crate::made::Room;
use crate::plan::{ClassPlan, Plan, Rows, SlotPlan};
use ikra_core::memory::buffer::Buffer;
use ikra_core::types::{Prims, StrWord};
use std::sync::Arc;

/// Why what was compiled does not fit what is there. The section is compiled again for what is there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// A value of a kind that its place is not compiled for.
    Value,
    /// Symbols that are not in the table yet; nothing need be compiled.
    Symbols,
    /// Hashes that were not laid out yet; nothing need be compiled.
    Hashes,
    /// More objects or array elements than ids or offsets can tell apart.
    TooMany,
}

/// What the identity map has of an object: class index + 1 in the upper half, row in the lower; of an array: this bit,
/// kind index in the upper half, position in [`KindRows`] in the lower.
const ARRAY: u64 = 1 << 63;
/// Of a String: this bit, and its position in [`Strings`] in the lower half.
const STRING: u64 = 1 << 62;
/// Rows of one class, or arrays of one kind.
const MOST_ROWS: usize = u32::MAX as usize;
/// Rows that are worked on together, so that an object is still in the cache when its ivars are read.
pub const CHUNK: usize = 256;
/// How many objects ahead the memory is asked for.
const AHEAD: usize = 16;

/// Rows of one class.
#[derive(Default)]
pub struct ClassRows {
    pub objects: Vec<Raw>,
    /// Those that belong to one owned slot; empty where no slot is owned.
    claimed: Vec<bool>,
    cursor: usize,
}

/// Arrays of one kind, one after the other in the element column.
#[derive(Default)]
pub struct KindRows {
    pub arrays: Vec<Raw>,
    /// First row of each.
    pub offsets: Vec<u32>,
    pub lengths: Vec<u32>,
    /// Rows of all.
    pub rows: u64,
    /// Rows behind them, for new ones.
    pub room: u64,
    claimed: Vec<bool>,
    cursor: usize,
}

/// Strings, one after the other in the column of bytes, after the program's literals.
#[derive(Default)]
pub struct Strings {
    pub strings: Vec<Raw>,
    pub words: Vec<StrWord>,
    /// Rows of all, literals included.
    pub rows: u64,
}

/// All that was reached.
pub struct Tables {
    map: IdentityMap,
    pub classes: Vec<ClassRows>,
    pub kinds: Vec<KindRows>,
    pub strings: Strings,
    /// Hashes, as they were laid out before.
    pub hashes: Arc<Hashes>,
    /// Class index and row of each element. Empty where elements lead nowhere.
    element_classes: Vec<u16>,
    element_rows: Vec<u32>,
    /// First id of each class, by class index.
    pub bases: Vec<u32>,
    /// End of the ids of each hierarchy.
    pub ends: Vec<u32>,
    /// First row of each heap.
    pub starts: Vec<u64>,
}

/// Of elements that are no objects.
pub const NO_CLASS: u16 = u16::MAX;
/// Of elements that are arrays; the row is the position in [`KindRows`].
const ARRAY_CLASS: u16 = u16::MAX - 1;

type Result<T> = std::result::Result<T, Misfit>;

impl Tables {
    /// Whether an array is among those that the program writes.
    pub fn writes_array(&self, plan: &Plan, array: Raw) -> bool {
        self.kinds.iter().zip(&plan.kinds).any(|(rows, kind)| kind.written && rows.arrays.contains(&array))
    }

    /// The buffer that is the only array of a kind, none of whose rows the program makes.
    pub fn sole_buffer(&self, kind: usize) -> Option<(Dtype, Arc<Buffer>)> {
        let rows = &self.kinds[kind];
        match rows.arrays[..] {
            [array] if rows.room == 0 => crate::buffer::of(array),
            _ => None,
        }
    }

    /// Empty ones, for a plan where nothing leads on.
    pub fn empty(plan: &Plan) -> Self {
        Self {
            map: IdentityMap::default(),
            classes: plan.classes.iter().map(|_| ClassRows::default()).collect(),
            kinds: plan.kinds.iter().map(|_| KindRows::default()).collect(),
            hashes: Arc::default(),
            strings: Strings { rows: plan.literals.len() as u64, ..Strings::default() },
            element_classes: Vec::new(),
            element_rows: Vec::new(),
            bases: vec![0; plan.classes.len()],
            ends: vec![0; plan.hierarchies.len() - 1],
            starts: vec![0; plan.heaps.len()],
        }
    }

    /// Walks from the base array and the roots.
    ///
    /// # Errors
    /// Something that the plan's program was not compiled for.
    pub fn trace(
        plan: &Plan,
        base: Option<&[Raw]>,
        roots: &[Raw],
        room: &Room,
        hashes: &Arc<Hashes>,
        unknown: &mut Vec<Raw>,
    ) -> Result<Self> {
        let mut tables = Self::empty(plan);
        tables.hashes = hashes.clone();
        if plan.plain {
            tables.number(plan, room)?;
            return Ok(tables);
        }
        let readers = |c: &ClassPlan| c.leads.iter().map(|f| FieldReader::new(c.fields[*f].field, hashes)).collect();
        let readers = plan.classes.iter().map(readers).collect();
        let mut tracer = Tracer { plan, tables: &mut tables, readers, last: (0, 0), unknown };
        if let (Some(slot), Some(base)) = (&plan.elements, base)
            && slot.leads_on()
        {
            tracer.elements(slot, base)?;
        }
        for (slot, root) in plan.roots.iter().zip(roots) {
            tracer.follow(slot, *root, false)?;
        }
        tracer.settle()?;
        if !tracer.unknown.is_empty() {
            return Err(Misfit::Hashes);
        }
        tables.number(plan, room)?;
        Ok(tables)
    }

    /// Gives each class its ids, and each heap its rows: behind those of what is there.
    fn number(&mut self, plan: &Plan, room: &Room) -> Result<()> {
        for hierarchy in 0..self.ends.len() {
            let mut next = 0u64;
            for class in plan.hierarchy(hierarchy) {
                self.bases[class] = next as u32;
                next += self.classes[class].objects.len() as u64;
                for (heap, _) in plan.heaps.iter().enumerate().filter(|(_, rows)| **rows == Rows::Class(class)) {
                    self.starts[heap] = next;
                    next += room.rows[heap];
                }
            }
            self.ends[hierarchy] = u32::try_from(next).map_err(|_| Misfit::TooMany)?;
        }
        for (heap, rows) in plan.heaps.iter().enumerate() {
            let Rows::Kind(kind) = *rows else { continue };
            let kind = &mut self.kinds[kind];
            self.starts[heap] = kind.rows + kind.room;
            kind.room += room.rows[heap];
            u32::try_from(kind.rows + kind.room).map_err(|_| Misfit::TooMany)?;
        }
        Ok(())
    }

    /// How an object or array is held in a register; None for one that was not reached.
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

    /// The same of an element, by its index.
    #[inline]
    pub fn element_word(&self, plan: &Plan, index: usize) -> Option<u64> {
        let row = *self.element_rows.get(index)?;
        match self.element_classes[index] {
            NO_CLASS => None,
            ARRAY_CLASS => {
                let kind = plan.elements.as_ref()?.kind?;
                Some(self.kinds[kind].word(row))
            }
            class => Some(u64::from(self.bases[class as usize]) + u64::from(row)),
        }
    }

    /// Which object or array the element at an index is: equal for the same one, None for any other value.
    #[inline]
    pub fn element_identity(&self, index: usize) -> Option<(u16, u32)> {
        let class = *self.element_classes.get(index)?;
        (class != NO_CLASS).then(|| (class, self.element_rows[index]))
    }

    /// Class index of the element at an index; [`NO_CLASS`] for what is no object.
    #[inline]
    pub fn element_class(&self, index: usize) -> u16 {
        match self.element_classes.get(index) {
            Some(class) if *class != ARRAY_CLASS => *class,
            _ => NO_CLASS,
        }
    }

    /// Class index and row of an id within a hierarchy.
    pub fn place(&self, plan: &Plan, hierarchy: usize, id: u32) -> Option<(usize, usize)> {
        let classes = plan.hierarchy(hierarchy);
        let at = classes.start + self.bases[classes.clone()].partition_point(|base| *base <= id).checked_sub(1)?;
        Some((at, (id - self.bases[at]) as usize))
    }

    /// The String whose bytes begin at an offset, one that no kernel made.
    pub fn string(&self, offset: u32) -> Option<Raw> {
        let at = self.strings.words.binary_search_by_key(&offset, |word| word.offset()).ok()?;
        Some(self.strings.strings[at])
    }

    /// The array at an offset.
    pub fn array(&self, kind: usize, offset: u32) -> Option<Raw> {
        let rows = &self.kinds[kind];
        rows.offsets.binary_search(&offset).ok().map(|at| rows.arrays[at])
    }

    /// Frees what only packing needs.
    pub fn forget_numbers(&mut self) {
        self.map = IdentityMap::default();
        self.forget_elements();
    }

    /// Frees what only the packing of elements needs.
    pub fn forget_elements(&mut self) {
        self.element_classes = Vec::new();
        self.element_rows = Vec::new();
    }
}

struct Tracer<'a> {
    plan: &'a Plan,
    tables: &'a mut Tables,
    /// By class, for each slot that leads on.
    readers: Vec<Vec<FieldReader>>,
    /// Hashes that were not laid out yet.
    unknown: &'a mut Vec<Raw>,
    /// The class that was looked up last, and its index.
    last: (Raw, u32),
}

impl KindRows {
    #[inline]
    fn word(&self, at: u32) -> u64 {
        u64::from(self.offsets[at as usize]) << 32 | u64::from(self.lengths[at as usize])
    }
}

/// What a slot was found to hold.
struct Reached {
    /// As in the identity map; 0 for what is neither object nor array.
    entry: u64,
    known: bool,
}

impl Tracer<'_> {
    fn elements(&mut self, slot: &SlotPlan, base: &[Raw]) -> Result<()> {
        let mut rows = Vec::with_capacity(base.len());
        let mut classes = Vec::with_capacity(base.len());
        // What the first element leads to is numbered from there outwards: neighbours get near rows. From many elements at
        // once, the wavefronts would interleave, and each step to a neighbour go to another cache line.
        let (first, rest) = base.split_at(base.len().min(1));
        for values in std::iter::once(first).chain(rest.chunks(CHUNK)) {
            for value in values {
                if !heap::is_immediate(*value) {
                    heap::prefetch(*value);
                    self.tables.map.prefetch(*value);
                }
            }
            for value in values {
                let Reached { entry, known } = self.follow(slot, *value, true)?;
                if known && !self.plan.grouped {
                    return Err(Misfit::Value);
                }
                rows.push(entry as u32);
                classes.push(match entry {
                    0 => NO_CLASS,
                    entry if entry & ARRAY != 0 => ARRAY_CLASS,
                    entry => (entry >> 32) as u16 - 1,
                });
            }
            // While they are in the cache; but an element that others lead to has to be known as one first.
            if !self.plan.linked {
                self.settle()?;
            }
        }
        self.tables.element_rows = rows;
        self.tables.element_classes = classes;
        Ok(())
    }

    fn class_index(&mut self, class: Raw) -> Option<u32> {
        if self.last.0 != class {
            self.last = (class, *self.plan.class_index.get(&class)?);
        }
        Some(self.last.1)
    }

    /// Notes what a slot holds, where that is an object or array.
    #[inline]
    fn follow(&mut self, slot: &SlotPlan, value: Raw, element: bool) -> Result<Reached> {
        if heap::is_immediate(value) {
            return Ok(Reached { entry: 0, known: false });
        }
        // what is known is not read again
        let entry = *self.tables.map.entry(value);
        if entry != 0 {
            return self.again(slot, entry, element);
        }
        if heap::is_object(value) {
            return self.object(slot, value, element);
        }
        match heap::see(value) {
            Seen::Str => self.string(slot, value),
            Seen::Array => self.array(slot, value, heap::elements(value).len(), element),
            Seen::Buffer => {
                let (_, buffer) = crate::buffer::of(value).ok_or(Misfit::Value)?;
                self.array(slot, value, buffer.len(), element)
            }
            Seen::Hash if self.class_index(heap::class_word(value)).is_some() => {
                if !self.tables.hashes.contains_key(&value) && !self.unknown.contains(&value) {
                    self.unknown.push(value);
                }
                self.object(slot, value, element)
            }
            // a Range in a launch parameter has no row
            Seen::Struct if slot.prims.intersects(Prims::RANGE) => Ok(Reached { entry: 0, known: false }),
            Seen::Struct | Seen::Number if self.class_index(heap::class_word(value)).is_some() => {
                self.object(slot, value, element)
            }
            // other values are checked when they are packed
            _ => Ok(Reached { entry: 0, known: false }),
        }
    }

    #[inline]
    fn again(&self, slot: &SlotPlan, entry: u64, element: bool) -> Result<Reached> {
        if entry & STRING != 0 {
            // nobody writes to Strings, so nobody owns one
            let fits = slot.prims.intersects(Prims::STR);
            return if fits { Ok(Reached { entry: 0, known: false }) } else { Err(Misfit::Value) };
        }
        let tables = &*self.tables;
        let (upper, row) = ((entry & !ARRAY) as usize >> 32, entry as u32 as usize);
        let (fits, claimed) = if entry & ARRAY != 0 {
            (slot.kind == Some(upper), &tables.kinds[upper].claimed)
        } else {
            (slot.takes(upper - 1), &tables.classes[upper - 1].claimed)
        };
        let claimed = claimed.get(row).copied().unwrap_or(false);
        if fits && !claimed && (element || !slot.owned) {
            Ok(Reached { entry, known: true })
        } else {
            Err(Misfit::Value)
        }
    }

    #[inline]
    fn object(&mut self, slot: &SlotPlan, object: Raw, element: bool) -> Result<Reached> {
        let class = self.class_index(heap::class_word(object)).ok_or(Misfit::Value)? as usize;
        if !slot.takes(class) {
            return Err(Misfit::Value);
        }
        let rows = &mut self.tables.classes[class];
        let row = rows.objects.len();
        if row >= MOST_ROWS {
            return Err(Misfit::TooMany);
        }
        let entry = (class as u64 + 1) << 32 | row as u64;
        rows.objects.push(object);
        if self.plan.any_owned {
            rows.claimed.push(slot.owned && !element);
        }
        *self.tables.map.entry(object) = entry;
        if self.plan.classes[class].must_not_be_frozen && heap::is_frozen(object) {
            return Err(Misfit::Value);
        }
        Ok(Reached { entry, known: false })
    }

    fn string(&mut self, slot: &SlotPlan, string: Raw) -> Result<Reached> {
        if !slot.prims.intersects(Prims::STR) || heap::class_word(string) != self.plan.string_class {
            return Err(Misfit::Value);
        }
        let bytes = heap::bytes(string);
        let encoding = heap::encoding(string).filter(|_| bytes.len() <= StrWord::MOST_BYTES).ok_or(Misfit::Value)?;
        let strings = &mut self.tables.strings;
        let len = bytes.len().max(1) as u64;
        if strings.strings.len() >= MOST_ROWS || strings.rows + len > u64::from(u32::MAX) {
            return Err(Misfit::TooMany);
        }
        let entry = STRING | strings.strings.len() as u64;
        strings.words.push(StrWord::new(strings.rows as u32, bytes.len(), encoding, false));
        strings.strings.push(string);
        strings.rows += len;
        *self.tables.map.entry(string) = entry;
        Ok(Reached { entry: 0, known: false })
    }

    fn array(&mut self, slot: &SlotPlan, array: Raw, len: usize, element: bool) -> Result<Reached> {
        let kind = slot.kind.ok_or(Misfit::Value)?;
        let rows = &mut self.tables.kinds[kind];
        let len = len as u64;
        let at = rows.arrays.len();
        if at >= MOST_ROWS || rows.rows + len.max(1) > u64::from(u32::MAX) {
            return Err(Misfit::TooMany);
        }
        let entry = ARRAY | (kind as u64) << 32 | at as u64;
        rows.arrays.push(array);
        rows.offsets.push(rows.rows as u32);
        rows.lengths.push(len as u32);
        rows.rows += len.max(1);
        if self.plan.any_owned {
            rows.claimed.push(slot.owned && !element);
        }
        *self.tables.map.entry(array) = entry;
        if self.plan.kinds[kind].must_not_be_frozen && heap::is_frozen(array) {
            return Err(Misfit::Value);
        }
        Ok(Reached { entry, known: false })
    }

    /// Follows every slot that leads on, until nothing new turns up.
    fn settle(&mut self) -> Result<()> {
        let plan = self.plan;
        loop {
            let mut progress = false;
            for (at, class) in plan.classes.iter().enumerate() {
                let mut row = self.tables.classes[at].cursor;
                while !class.leads.is_empty()
                    && let Some(object) = self.tables.classes[at].objects.get(row).copied()
                {
                    if let Some(later) = self.tables.classes[at].objects.get(row + AHEAD) {
                        heap::prefetch(*later);
                    }
                    for (i, field) in class.leads.iter().enumerate() {
                        let value = self.readers[at][i].get(object, class.raw);
                        self.follow(&class.fields[*field].slot, value, false)?;
                    }
                    row += 1;
                    progress = true;
                }
                self.tables.classes[at].cursor = row;
            }
            for (at, kind) in plan.kinds.iter().enumerate() {
                let Some(slot) = kind.slot.as_ref().filter(|s| s.leads_on()) else { continue };
                let mut row = self.tables.kinds[at].cursor;
                while let Some(array) = self.tables.kinds[at].arrays.get(row).copied() {
                    // a buffer holds numbers, which lead nowhere
                    let elements = if heap::see(array) == Seen::Array { heap::elements(array) } else { &[] };
                    for value in elements {
                        self.follow(slot, *value, false)?;
                    }
                    row += 1;
                    progress = true;
                }
                self.tables.kinds[at].cursor = row;
            }
            if !progress {
                return Ok(());
            }
        }
    }
}
