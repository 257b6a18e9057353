//! Reachable objects and arrays to tables: who is there, and which row is whose.
//!
//! Here: [`Tables`], filled by walking from the base array and the roots along the slots that a [`Plan`] names. Not
//! here: what is in the other slots ([`crate::pack`]).
//! Invariant: from the start of a trace to the end of packing nothing allocates in Ruby's heap and no Ruby code runs;
//! see [`crate::heap`].
//!
//! Nothing recurses: each table only grows at its end, and a cursor per table says how far its rows were followed.

use crate::heap::{self, IvarReader, Raw, Seen};
use crate::identity::IdentityMap;
use crate::plan::{Plan, SlotPlan};

/// Why what was compiled does not fit what is there. The section is compiled again for what is there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// A value of a kind that its place is not compiled for.
    Value,
    /// Symbols that are not in the table yet; nothing need be compiled.
    Symbols,
    /// More objects or array elements than ids or offsets can tell apart.
    TooMany,
}

const ARRAY: u32 = 1 << 31;

/// Rows of one class.
#[derive(Default)]
pub struct ClassRows {
    pub objects: Vec<Raw>,
    /// Index of each in [`Tables::words`].
    numbers: Vec<u32>,
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
    cursor: usize,
}

/// All that was reached.
pub struct Tables {
    map: IdentityMap,
    /// How each object or array is held in a register: `class << 32 | row` while tracing and the id afterwards, or
    /// `offset << 32 | length`.
    words: Vec<u64>,
    /// Class index of each, where jobs are ordered by it.
    class_of: Vec<u32>,
    /// Objects that belong to one owned slot, by index into `words`.
    claimed: Vec<bool>,
    pub classes: Vec<ClassRows>,
    pub kinds: Vec<KindRows>,
    /// For each element, its index in `words` plus 1; 0 for other values. Empty where elements lead nowhere.
    element_numbers: Vec<u32>,
    /// First id of each class, and of what would follow, by class index.
    pub bases: Vec<u32>,
    /// End of the ids of each hierarchy.
    pub ends: Vec<u32>,
}

type Result<T> = std::result::Result<T, Misfit>;

impl Tables {
    /// Whether an array is among those that the program writes.
    pub fn writes_array(&self, plan: &Plan, array: Raw) -> bool {
        self.kinds.iter().zip(&plan.kinds).any(|(rows, kind)| kind.written && rows.arrays.contains(&array))
    }

    /// Empty ones, for a plan where nothing leads on.
    pub fn empty(plan: &Plan) -> Self {
        Self {
            map: IdentityMap::default(),
            words: Vec::new(),
            class_of: Vec::new(),
            claimed: Vec::new(),
            classes: plan.classes.iter().map(|_| ClassRows::default()).collect(),
            kinds: plan.kinds.iter().map(|_| KindRows::default()).collect(),
            element_numbers: Vec::new(),
            bases: vec![0; plan.classes.len()],
            ends: vec![0; plan.hierarchies.len() - 1],
        }
    }

    /// Walks from the base array and the roots.
    ///
    /// # Errors
    /// Something that the plan's program was not compiled for.
    pub fn trace(plan: &Plan, base: Option<&[Raw]>, roots: &[Raw]) -> Result<Self> {
        let mut tables = Self::empty(plan);
        if plan.plain {
            return Ok(tables);
        }
        let mut tracer = Tracer { plan, tables: &mut tables, last: (0, 0) };
        if let (Some(slot), Some(base)) = (&plan.elements, base)
            && slot.leads_on()
        {
            tracer.elements(slot, base)?;
        }
        for (slot, root) in plan.roots.iter().zip(roots) {
            tracer.follow(slot, *root, false)?;
        }
        tracer.settle()?;
        tracer.number()?;
        Ok(tables)
    }

    /// How an object or array is held in a register; None for one that was not reached.
    #[inline]
    pub fn word(&self, value: Raw) -> Option<u64> {
        let number = self.map.get(value) & !ARRAY;
        (number != 0).then(|| self.words[number as usize - 1])
    }

    /// The same of an element, by its index.
    #[inline]
    pub fn element_word(&self, index: usize) -> Option<u64> {
        let number = *self.element_numbers.get(index)? & !ARRAY;
        (number != 0).then(|| self.words[number as usize - 1])
    }

    /// Which object or array the element at an index is; the same number for the same one, 0 for any other value.
    #[inline]
    pub fn element_number(&self, index: usize) -> u32 {
        self.element_numbers.get(index).copied().unwrap_or(0)
    }

    /// Class index of the element at an index, which is an object.
    pub fn element_class(&self, index: usize) -> usize {
        let number = self.element_numbers[index] as usize - 1;
        self.class_of[number] as usize
    }

    /// The object of an id within a hierarchy.
    pub fn object(&self, plan: &Plan, hierarchy: usize, id: u32) -> Option<Raw> {
        let classes = plan.hierarchy(hierarchy);
        let at = classes.start + self.bases[classes.clone()].partition_point(|base| *base <= id) - 1;
        self.classes[at].objects.get((id - self.bases[at]) as usize).copied()
    }

    /// The array at an offset.
    pub fn array(&self, kind: usize, offset: u32) -> Option<Raw> {
        let rows = &self.kinds[kind];
        rows.offsets.binary_search(&offset).ok().map(|at| rows.arrays[at])
    }

    /// Frees what only packing needs.
    pub fn forget_numbers(&mut self) {
        self.map = IdentityMap::default();
        self.words = Vec::new();
        self.class_of = Vec::new();
        self.claimed = Vec::new();
        self.element_numbers = Vec::new();
        for class in &mut self.classes {
            class.numbers = Vec::new();
        }
    }
}

struct Tracer<'a> {
    plan: &'a Plan,
    tables: &'a mut Tables,
    /// The class that was looked up last, and its index.
    last: (Raw, u32),
}

impl Tracer<'_> {
    fn elements(&mut self, slot: &SlotPlan, base: &[Raw]) -> Result<()> {
        let mut numbers = Vec::with_capacity(base.len());
        for value in base {
            let (number, known) = self.follow(slot, *value, true)?;
            if known && number != 0 && !self.plan.grouped {
                return Err(Misfit::Value);
            }
            numbers.push(number);
        }
        self.tables.element_numbers = numbers;
        Ok(())
    }

    fn class_index(&mut self, class: Raw) -> Option<u32> {
        if self.last.0 != class {
            self.last = (class, *self.plan.class_index.get(&class)?);
        }
        Some(self.last.1)
    }

    /// Notes what a slot holds; gives its number (0 for what is neither object nor array) and whether it was known.
    #[inline]
    fn follow(&mut self, slot: &SlotPlan, value: Raw, element: bool) -> Result<(u32, bool)> {
        if heap::is_object(value) {
            return self.object(slot, value, element);
        }
        match heap::see(value) {
            Seen::Array => self.array(slot, value, element),
            // other values are checked when they are packed
            _ => Ok((0, false)),
        }
    }

    #[inline]
    fn object(&mut self, slot: &SlotPlan, object: Raw, element: bool) -> Result<(u32, bool)> {
        let class = self.class_index(heap::class_word(object)).ok_or(Misfit::Value)?;
        if !slot.classes.get(class as usize).copied().unwrap_or(false) {
            return Err(Misfit::Value);
        }
        let tables = &mut *self.tables;
        let entry = tables.map.entry(object);
        let owned = slot.owned && !element;
        if *entry != 0 {
            let number = *entry;
            if owned || (self.plan.any_owned && tables.claimed[number as usize - 1]) {
                return Err(Misfit::Value);
            }
            return Ok((number, true));
        }
        let rows = &mut tables.classes[class as usize];
        let row = rows.objects.len() as u64;
        let number = tables.words.len() as u32 + 1;
        if number >= ARRAY {
            return Err(Misfit::TooMany);
        }
        *entry = number;
        tables.words.push(u64::from(class) << 32 | row);
        if element && self.plan.ordered {
            // elements come first, so the numbers of this vector are theirs
            tables.class_of.resize(number as usize, 0);
            tables.class_of[number as usize - 1] = class;
        }
        if self.plan.any_owned {
            tables.claimed.push(owned);
        }
        rows.objects.push(object);
        rows.numbers.push(number - 1);
        if self.plan.classes[class as usize].must_not_be_frozen && heap::is_frozen(object) {
            return Err(Misfit::Value);
        }
        Ok((number, false))
    }

    fn array(&mut self, slot: &SlotPlan, array: Raw, element: bool) -> Result<(u32, bool)> {
        let kind = slot.kind.ok_or(Misfit::Value)?;
        let tables = &mut *self.tables;
        let owned = slot.owned && !element;
        let entry = tables.map.entry(array);
        if *entry != 0 {
            let number = *entry;
            if owned || (self.plan.any_owned && tables.claimed[(number & !ARRAY) as usize - 1]) {
                return Err(Misfit::Value);
            }
            // known as an array of another kind: two kinds have met
            let offset = (tables.words[(number & !ARRAY) as usize - 1] >> 32) as u32;
            let rows = &tables.kinds[kind];
            let same = rows.offsets.binary_search(&offset).is_ok_and(|at| rows.arrays[at] == array);
            return if same { Ok((number, true)) } else { Err(Misfit::Value) };
        }
        let rows = &mut tables.kinds[kind];
        let len = heap::elements(array).len() as u64;
        let number = tables.words.len() as u32 + 1;
        if number >= ARRAY || rows.rows + len.max(1) > u64::from(u32::MAX) {
            return Err(Misfit::TooMany);
        }
        *entry = number | ARRAY;
        tables.words.push(rows.rows << 32 | len);
        if self.plan.any_owned {
            tables.claimed.push(owned);
        }
        rows.arrays.push(array);
        rows.offsets.push(rows.rows as u32);
        rows.lengths.push(len as u32);
        rows.rows += len.max(1);
        if self.plan.kinds[kind].must_not_be_frozen && heap::is_frozen(array) {
            return Err(Misfit::Value);
        }
        Ok((number | ARRAY, false))
    }

    /// Follows every slot that leads on, until nothing new turns up.
    fn settle(&mut self) -> Result<()> {
        let plan = self.plan;
        let mut readers: Vec<Vec<IvarReader>> =
            plan.classes.iter().map(|c| c.leads.iter().map(|f| IvarReader::new(c.fields[*f].ivar)).collect()).collect();
        loop {
            let mut progress = false;
            for (at, class) in plan.classes.iter().enumerate() {
                if class.leads.is_empty() {
                    continue;
                }
                let mut row = self.tables.classes[at].cursor;
                while let Some(object) = self.tables.classes[at].objects.get(row).copied() {
                    for (field, reader) in class.leads.iter().zip(&mut readers[at]) {
                        let value = reader.get(object, class.raw);
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
                    for value in heap::elements(array) {
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

    /// Turns rows into ids, one linear pass.
    fn number(&mut self) -> Result<()> {
        let tables = &mut *self.tables;
        for hierarchy in 0..tables.ends.len() {
            let mut next = 0u64;
            for class in self.plan.hierarchy(hierarchy) {
                tables.bases[class] = next as u32;
                next += tables.classes[class].objects.len() as u64;
            }
            tables.ends[hierarchy] = u32::try_from(next).map_err(|_| Misfit::TooMany)?;
        }
        for (class, rows) in tables.classes.iter().enumerate() {
            let base = u64::from(tables.bases[class]);
            for (row, number) in rows.numbers.iter().enumerate() {
                tables.words[*number as usize] = base + row as u64;
            }
        }
        Ok(())
    }
}
