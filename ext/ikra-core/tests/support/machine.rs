//! Runs a lowered section on a backend over a fixture's heap: packs columns, launches, and writes back.
//!
//! What the bridge does for Ruby objects, done plainly for a few. Ids have gaps between classes, so that nothing can
//! rely on their being dense.

use ikra_core::backend::{Backend, CancelToken, Executable, Key, Launch, Outcome, Timings, TrapRecord};
use ikra_core::id::{ArrayKind, ClassId};
use ikra_core::ir::{Column, ColumnId, Jobs, Lowered, New, ParamId, Part, Piece, SLOT_STRIDE, Space, Storage, Trap};
use ikra_core::layout::schema::{Accumulator, Slot};
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::{uniform_stride, value_range};
use ikra_core::syntax::ast::Name;
use ikra_core::types::combine::{Combine, Equals};
use ikra_core::types::{Encoding, Repr, StrWord, Tag, Unit};
use ikra_core::world::fixture::{ArrayRef, ObjectRef, Raised, Section, Value, heap};
use ikra_core::world::values::is_value;
use ikra_core::world::{Facts, OutOfRange, StrideAssumption, symbol_hash, well_known};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// How a run ended. The section's world holds what it left behind.
#[derive(Debug, PartialEq)]
pub enum Answer {
    Gives(Value),
    Raises(Raised),
    /// A speculation was wrong: compile again without it, and run again.
    Refuted(ikra_core::world::Assumption),
    /// This has no uniform stride: compile again for any.
    NoUniformStride(StrideAssumption),
    /// A column does not meet its value-range assumption: compile again for any.
    ColumnOutOfRange(OutOfRange),
    /// Elements are not all objects of their classes.
    Scattered,
}

/// Words that a slot's value is made of.
#[derive(Clone, Copy, Debug, Default)]
struct Words {
    payload: u64,
    tag: i32,
}

struct Machine<'a> {
    section: &'a mut Section,
    lowered: &'a Lowered,
    columns: Vec<HostColumn>,
    biases: Vec<u64>,
    params: Vec<u64>,
    /// Hierarchy and id of each object.
    ids: HashMap<ObjectRef, (u32, u32)>,
    objects: HashMap<(u32, u32), ObjectRef>,
    /// First id of each class, and the end, by hierarchy.
    bases: Vec<Vec<u32>>,
    /// Where an array's elements begin.
    offsets: HashMap<ArrayRef, u64>,
    arrays: HashMap<(ArrayKind, u64), ArrayRef>,
    kinds: HashMap<ArrayRef, ArrayKind>,
    rows: BTreeMap<ArrayKind, u64>,
    symbols: HashMap<i64, Name>,
    /// The bytes of literals, and then of all Strings that were asked for.
    bytes: RefCell<Vec<u8>>,
    strings: RefCell<HashMap<Name, StrWord>>,
    jobs: u64,
    slots: u64,
    /// Rows of each heap; of scratch, each slot's.
    capacities: Vec<u64>,
    /// What the kernel made and something refers to.
    new_objects: Vec<ObjectRef>,
    new_arrays: Vec<ArrayRef>,
}

pub fn run(
    section: &mut Section,
    text: &str,
    facts: &Facts,
    lowered: &Lowered,
    backend: &dyn Backend,
    executable: &dyn Executable,
) -> Result<Answer, String> {
    let mut limit = Key::NONE;
    // So few that most runs have to grow.
    let mut capacities = vec![2; lowered.program.heaps.len()];
    loop {
        let slots = backend.slots(section.world.elements.len() as u64).max(1);
        let mut machine = Machine::new(section, text, facts, lowered, slots, capacities.clone());
        machine.fill(backend.target().warp);
        if let Err(what) =
            uniform_stride::find(&lowered.program, &machine.columns, &machine.biases, &mut machine.params)
        {
            return Ok(Answer::NoUniformStride(what));
        }
        if !machine.is_whole() {
            return Ok(Answer::Scattered);
        }
        if let Some(what) = value_range::any_outside(&lowered.program, &machine.columns) {
            return Ok(Answer::ColumnOutOfRange(what));
        }
        let (cancel, mut timings) = (CancelToken::default(), Timings::default());
        let Machine { columns, biases, params, jobs, section, .. } = &mut machine;
        let plain = Launch::of(*jobs, columns, biases, params, &cancel, &mut timings);
        let launch = Launch { slots, ticks: section.ticks, seed: SEED, limit, ..plain };
        let outcome = backend.launch(executable, launch).map_err(|e| e.to_string())?;
        if let Some(column) = lowered.schema.bytes {
            *machine.bytes.borrow_mut() = machine.columns[column.index()].view::<u8>().to_vec();
        }
        match outcome {
            Outcome::Cancelled => return Err("it was cancelled".to_owned()),
            Outcome::Done => {
                machine.discover();
                machine.write_back()?;
                let value = machine.result();
                return Ok(Answer::Gives(value));
            }
            Outcome::Trapped(record) => {
                let site = &lowered.program.sites[record.site.index()];
                if let Trap::Grow(heap) = site.trap {
                    let capacity = &mut capacities[heap.index()];
                    *capacity = (*capacity * 2).max(record.words[0]);
                    continue;
                }
                machine.discover_operands(&record);
                let operands = machine.operands(&record);
                if let Trap::Refuted(assumption) = &site.trap {
                    return Ok(Answer::Refuted(assumption.clone()));
                }
                if site.trap != Trap::Break {
                    return Ok(Answer::Raises(machine.raised(&record, &operands)));
                }
                if limit == record.key {
                    machine.discover();
                    machine.write_back()?;
                    let index = Value::Int(record.key.index() as i64);
                    return Ok(Answer::Gives(operands.into_iter().next().unwrap_or(index)));
                }
                // Elements after the one that left may have run: once more, up to it.
                limit = record.key;
            }
        }
    }
}

/// Puts the regions of a space's heaps behind its rows; answers how many rows they take.
fn place_heaps(
    lowered: &Lowered,
    params: &mut [u64],
    capacities: &[u64],
    slots: u64,
    space: Space,
    behind: u64,
) -> u64 {
    let mut rows = 0;
    for (heap, capacity) in lowered.program.heaps.iter().zip(capacities).filter(|(h, _)| h.space == space) {
        params[heap.start.index()] = behind + rows;
        params[heap.capacity.index()] = *capacity;
        rows += capacity * if heap.scratch { slots } else { 1 };
    }
    rows
}

/// The seed of every run.
pub const SEED: u64 = 42;

impl<'a> Machine<'a> {
    fn new(
        section: &'a mut Section,
        text: &str,
        facts: &Facts,
        lowered: &'a Lowered,
        slots: u64,
        capacities: Vec<u64>,
    ) -> Self {
        let mut machine = Machine {
            columns: Vec::new(),
            biases: Vec::new(),
            params: vec![0; lowered.program.params.len()],
            ids: HashMap::new(),
            objects: HashMap::new(),
            bases: Vec::new(),
            offsets: HashMap::new(),
            arrays: HashMap::new(),
            kinds: HashMap::new(),
            rows: BTreeMap::new(),
            symbols: HashMap::new(),
            bytes: RefCell::new(lowered.schema.literal_bytes()),
            strings: RefCell::new(HashMap::new()),
            jobs: 0,
            slots,
            capacities,
            new_objects: Vec::new(),
            new_arrays: Vec::new(),
            section,
            lowered,
        };
        machine.number_objects();
        machine.number_arrays(facts);
        let words = text.split(|c: char| !c.is_alphanumeric() && !"_?!=".contains(c));
        machine.symbols.extend(words.map(|w| (symbol_hash(w), Name::from(w))));
        machine
    }

    fn number_objects(&mut self) {
        let world = &self.section.world;
        for (h, hierarchy) in self.lowered.schema.hierarchies.iter().enumerate() {
            let mut next = 0;
            let mut bases = Vec::new();
            for (position, class) in hierarchy.classes.iter().enumerate() {
                bases.push(next);
                for object in world.found_objects().iter().filter(|o| world.heap.object(**o).class == *class) {
                    self.ids.insert(*object, (h as u32, next));
                    self.objects.insert((h as u32, next), *object);
                    next += 1;
                }
                let (h, p) = (h as u32, position as u32);
                let space = Space::Class { hierarchy: h, first: p, last: p };
                let room =
                    place_heaps(self.lowered, &mut self.params, &self.capacities, self.slots, space, next.into());
                // a row that nobody has, but where there is to be none
                next += room as u32 + u32::from(self.lowered.schema.whole.is_none());
            }
            bases.push(next);
            for (base, param) in bases.iter().zip(&hierarchy.bases) {
                if let Some(param) = param {
                    self.params[param.index()] = u64::from(*base);
                }
            }
            self.bases.push(bases);
        }
    }

    fn number_arrays(&mut self, facts: &Facts) {
        for (array, kind) in self.section.world.found_arrays() {
            let kind = facts.find(*kind);
            let rows = self.rows.entry(kind).or_default();
            self.offsets.insert(*array, *rows);
            self.arrays.insert((kind, *rows), *array);
            self.kinds.insert(*array, kind);
            // At least one, so that the offset is the identity.
            *rows += (self.section.world.heap.array(*array).values.len() as u64).max(1);
        }
        for heap in &self.lowered.program.heaps {
            if let Space::Array(kind) = heap.space {
                self.rows.entry(kind).or_default();
            }
        }
        for (kind, rows) in &mut self.rows {
            let space = Space::Array(*kind);
            *rows += place_heaps(self.lowered, &mut self.params, &self.capacities, self.slots, space, *rows);
        }
    }

    /// Makes and fills all columns and parameters.
    fn fill(&mut self, warp: usize) {
        let order = self.order(warp);
        for (i, column) in self.lowered.program.columns.iter().enumerate() {
            let column_id = ColumnId::new(i);
            let (rows, bias) = match column.space {
                Space::Class { hierarchy, first, last } => {
                    let bases = &self.bases[hierarchy as usize];
                    let (from, to) = (bases[first as usize], bases[last as usize + 1]);
                    (u64::from(to - from), u64::from(from))
                }
                Space::Array(kind) => (self.rows.get(&kind).copied().unwrap_or(0), 0),
                Space::Element => (self.section.world.elements.len() as u64, 0),
                Space::Job if self.lowered.schema.order == Some(column_id) => (order.0.len() as u64, 0),
                Space::Job => (self.jobs + 1, 0),
                Space::Single => (1, 0),
                Space::Bytes => (0, 0),
                Space::Slot => (self.slots * SLOT_STRIDE as u64, 0),
            };
            self.columns.push(HostColumn::zeroed(column.storage, rows as usize));
            self.biases.push(bias);
        }
        self.fill_order(order);
        self.fill_fields();
        self.fill_arrays();
        self.fill_elements();
        self.fill_roots();
        if let Some(column) = self.lowered.schema.bytes {
            let mut bytes = self.bytes.borrow_mut();
            let (own, space) = (bytes.len(), Space::Bytes);
            let made = place_heaps(self.lowered, &mut self.params, &self.capacities, self.slots, space, own as u64);
            bytes.resize(own + made as usize, 0);
            self.columns[column.index()].resize(bytes.len());
            self.columns[column.index()].view_mut::<u8>().copy_from_slice(&bytes);
        }
    }

    /// Whether elements are all rows of their classes, where the program takes that for granted; it is told the first.
    fn is_whole(&mut self) -> bool {
        let (schema, program) = (&self.lowered.schema, &self.lowered.program);
        let Some(param) = schema.whole else { return true };
        let column = schema.elements.as_ref().and_then(|slot| slot.value).expect("elements are objects");
        let Some(Space::Class { hierarchy, first, last }) = program.columns[column.index()].refers else {
            return false;
        };
        let bases = &self.bases[hierarchy as usize];
        let (from, to) = (bases[first as usize], bases[last as usize + 1]);
        self.params[param.index()] = u64::from(from);
        (to - from) as usize == self.section.world.elements.len()
    }

    /// Element indices in the order of jobs, and where each job's begin.
    fn order(&mut self, warp: usize) -> (Vec<u32>, Vec<u32>) {
        let elements = &self.section.world.elements;
        let count = elements.len();
        let key = |value: &Value| match value {
            Value::Object(object) => self.ids.get(object).copied(),
            _ => None,
        };
        match self.lowered.program.jobs {
            Jobs::Identity => {
                self.jobs = count as u64;
                ((0..count as u32).collect(), Vec::new())
            }
            Jobs::Reordered => {
                let class = |i: u32| match &elements[i as usize] {
                    Value::Object(o) => Some(self.section.world.heap.object(*o).class),
                    _ => None,
                };
                let mut sorted: Vec<u32> = (0..count as u32).collect();
                sorted.sort_by_key(|i| class(*i));
                let mut order = Vec::new();
                for (n, index) in sorted.iter().enumerate() {
                    if n > 0 && class(sorted[n - 1]) != class(*index) {
                        while order.len() % warp.max(2) != 0 {
                            order.push(u32::MAX);
                        }
                    }
                    order.push(*index);
                }
                self.jobs = order.len() as u64;
                (order, Vec::new())
            }
            Jobs::Grouped => {
                #[allow(clippy::type_complexity, reason = "an object, if any, and its occurrences")]
                let mut groups: Vec<(Option<(u32, u32)>, Vec<u32>)> = Vec::new();
                for (i, value) in elements.iter().enumerate() {
                    let key = key(value);
                    match groups.iter_mut().find(|(k, _)| k.is_some() && *k == key) {
                        Some((_, group)) => group.push(i as u32),
                        None => groups.push((key, vec![i as u32])),
                    }
                }
                let (mut order, mut starts) = (Vec::new(), Vec::new());
                for (_, group) in groups {
                    starts.push(order.len() as u32);
                    order.extend(group);
                }
                starts.push(order.len() as u32);
                self.jobs = starts.len() as u64 - 1;
                (order, starts)
            }
        }
    }

    fn fill_order(&mut self, (order, starts): (Vec<u32>, Vec<u32>)) {
        let schema = &self.lowered.schema;
        for (column, rows) in [(schema.order, order), (schema.starts, starts)] {
            if let Some(column) = column {
                let view = self.columns[column.index()].view_mut::<u32>();
                view[..rows.len()].copy_from_slice(&rows);
            }
        }
    }

    fn fill_fields(&mut self) {
        let schema = &self.lowered.schema;
        for field in &schema.fields {
            for (object, id) in self.objects_of(field.class) {
                let value = self.section.world.heap.ivar(object, &field.ivar);
                self.put(&field.slot, u64::from(id), &value);
            }
        }
        for hierarchy in &schema.hierarchies {
            if let Some(column) = hierarchy.frozen {
                for class in &hierarchy.classes {
                    for (object, id) in self.objects_of(*class) {
                        let frozen = u8::from(self.section.world.heap.object(object).frozen);
                        let row = u64::from(id) - self.biases[column.index()];
                        self.columns[column.index()].view_mut::<u8>()[row as usize] = frozen;
                    }
                }
            }
        }
    }

    fn objects_of(&self, class: ClassId) -> Vec<(ObjectRef, u32)> {
        let world = &self.section.world;
        let objects =
            world.found_objects().iter().chain(&self.new_objects).filter(|o| world.heap.object(**o).class == class);
        objects.filter_map(|o| self.ids.get(o).map(|(_, id)| (*o, *id))).collect()
    }

    fn arrays_of(&self, kind: ArrayKind) -> Vec<(ArrayRef, u64)> {
        let arrays = self.section.world.found_arrays().iter().map(|(a, _)| *a).chain(self.new_arrays.iter().copied());
        arrays.filter(|a| self.kinds[a] == kind).map(|a| (a, self.offsets[&a])).collect()
    }

    fn fill_arrays(&mut self) {
        for field in &self.lowered.schema.arrays {
            for (array, offset) in self.arrays_of(field.kind) {
                let items = self.section.world.heap.array(array).clone();
                for (i, value) in items.values.iter().enumerate() {
                    self.put(&field.slot, offset + i as u64, value);
                }
                if let Some(column) = field.frozen {
                    self.columns[column.index()].view_mut::<u8>()[offset as usize] = u8::from(items.frozen);
                }
            }
        }
    }

    fn fill_elements(&mut self) {
        let schema = &self.lowered.schema;
        let elements = self.section.world.elements.clone();
        if let Some(slot) = &schema.elements {
            for (i, value) in elements.iter().enumerate() {
                self.put(slot, i as u64, value);
            }
        }
        if let (Some(first), Some((from, _))) = (schema.range, self.section.range) {
            self.params[first.index()] = from as u64;
        }
        for accumulator in &schema.accumulators {
            self.columns[accumulator.written_tick.index()].view_mut::<i64>().fill(-1);
        }
    }

    fn fill_roots(&mut self) {
        for root in &self.lowered.schema.roots {
            let value = self.section.world.root(&root.root).unwrap_or(Value::Nil);
            let set = |params: &mut Vec<u64>, param: Option<ParamId>, word: u64| {
                if let Some(param) = param {
                    params[param.index()] = word;
                }
            };
            if let (Some(bounds), Some(_)) = (self.section.world.heap.bounds(&value), root.to) {
                let (from, to) = (self.words(&bounds.from), self.words(&bounds.to));
                set(&mut self.params, root.value, from.payload);
                set(&mut self.params, root.to, to.payload);
                set(&mut self.params, root.exclusive, u64::from(bounds.exclusive));
                continue;
            }
            let words = self.words(&value);
            set(&mut self.params, root.value, words.payload);
            set(&mut self.params, root.tag, words.tag as u64);
        }
    }

    fn words(&self, value: &Value) -> Words {
        let (payload, tag) = match value {
            Value::Nil => (0, Tag::NIL),
            Value::False => (0, Tag::FALSE),
            Value::True => (1, Tag::TRUE),
            Value::Int(i) => (*i as u64, Tag::INT),
            Value::Float(f) => (f.to_bits(), Tag::FLOAT),
            Value::Sym(name) => (symbol_hash(name) as u64, Tag::SYM),
            Value::Str(text) => (self.string(text).0, Tag::STR),
            Value::Module(class) => (u64::from(class.0), Tag::MODULE),
            Value::Array(array) => {
                let length = self.section.world.heap.array(*array).values.len() as u64;
                (self.offsets[array] << 32 | length, Tag::ARRAY)
            }
            Value::Object(object) => match self.ids.get(object) {
                Some((hierarchy, id)) => (u64::from(*id), Tag::OBJECT + *hierarchy as i32),
                None => panic!("an object of a class that the schema lacks"),
            },
            Value::Big(_) => panic!("{value:?} does not fit a slot"),
        };
        Words { payload, tag }
    }

    /// The word of a String, whose bytes are laid down at its first use.
    fn string(&self, text: &Name) -> StrWord {
        *self.strings.borrow_mut().entry(text.clone()).or_insert_with(|| {
            let mut bytes = self.bytes.borrow_mut();
            let offset = bytes.len() as u32;
            bytes.extend(text.as_bytes());
            bytes.resize(offset as usize + text.len().max(1), 0);
            StrWord::new(offset, text.len(), Encoding::of_utf8(text.as_bytes()), false)
        })
    }

    /// `kind`: of the arrays that it may be.
    fn value(&self, repr: Repr, kind: Option<ArrayKind>, words: Words) -> Value {
        let Words { payload, tag } = words;
        match repr {
            Repr::Unit(Unit::Nil) => Value::Nil,
            Repr::Unit(Unit::True) => Value::True,
            Repr::Unit(Unit::False) => Value::False,
            Repr::Unit(Unit::Module(class)) => Value::Module(class),
            Repr::Unit(Unit::Never | Unit::Proc(_)) => panic!("a value where none can be"),
            Repr::Bool => Value::bool(payload & 1 == 1),
            Repr::Int => Value::Int(payload as i64),
            Repr::Float => Value::Float(f64::from_bits(payload)),
            Repr::Sym => Value::Sym(self.symbols.get(&(payload as i64)).cloned().expect("a symbol of the case")),
            Repr::Str => {
                let word = StrWord(payload);
                let from = word.offset() as usize;
                let bytes = self.bytes.borrow()[from..from + word.length()].to_vec();
                Value::Str(String::from_utf8_lossy(&bytes).into())
            }
            Repr::Ref(hierarchy) => Value::Object(self.objects[&(hierarchy, payload as u32)]),
            Repr::Array(kind) => Value::Array(self.arrays[&(kind, payload >> 32)]),
            Repr::Union => match tag {
                Tag::NIL => Value::Nil,
                Tag::FALSE => Value::False,
                Tag::TRUE => Value::True,
                Tag::INT => self.value(Repr::Int, kind, words),
                Tag::FLOAT => self.value(Repr::Float, kind, words),
                Tag::SYM => self.value(Repr::Sym, kind, words),
                Tag::STR => self.value(Repr::Str, kind, words),
                Tag::MODULE => Value::Module(ClassId(payload as u32)),
                Tag::ARRAY if kind.is_some() => self.value(Repr::Array(kind.expect("just seen")), None, words),
                Tag::ARRAY => {
                    let offset = payload >> 32;
                    let found: Vec<_> = self.arrays.iter().filter(|((_, o), _)| *o == offset).collect();
                    assert_eq!(found.len(), 1, "arrays of two kinds in one union cannot be told apart here");
                    Value::Array(*found[0].1)
                }
                _ => Value::Object(self.objects[&((tag - Tag::OBJECT) as u32, payload as u32)]),
            },
        }
    }

    fn put(&mut self, slot: &Slot, row: u64, value: &Value) {
        let words = self.words(value);
        if let Some(column) = slot.value {
            self.put_word(column, row, words.payload);
        }
        if let Some(column) = slot.tag {
            self.put_word(column, row, words.tag as u64);
        }
    }

    fn put_word(&mut self, column: ColumnId, row: u64, word: u64) {
        let row = (row - self.biases[column.index()]) as usize;
        let column = &mut self.columns[column.index()];
        match column.storage() {
            Storage::U8 => column.view_mut::<u8>()[row] = word as u8,
            Storage::U32 => column.view_mut::<u32>()[row] = word as u32,
            Storage::I32 => column.view_mut::<i32>()[row] = word as i32,
            Storage::F32 => column.view_mut::<f32>()[row] = f64::from_bits(word) as f32,
            Storage::I64 => column.view_mut::<i64>()[row] = word as i64,
            Storage::F64 => column.view_mut::<f64>()[row] = f64::from_bits(word),
        }
    }

    fn get_word(&self, column: ColumnId, row: u64) -> u64 {
        let row = (row - self.biases[column.index()]) as usize;
        let column = &self.columns[column.index()];
        match column.storage() {
            Storage::U8 => u64::from(column.view::<u8>()[row]),
            Storage::U32 => u64::from(column.view::<u32>()[row]),
            Storage::I32 => i64::from(column.view::<i32>()[row]) as u64,
            Storage::F32 => f64::from(column.view::<f32>()[row]).to_bits(),
            Storage::I64 => column.view::<i64>()[row] as u64,
            Storage::F64 => column.view::<f64>()[row].to_bits(),
        }
    }

    fn get(&self, slot: &Slot, row: u64) -> Value {
        let payload = slot.value.map_or(0, |column| self.get_word(column, row));
        let tag = slot.tag.map_or(0, |column| self.get_word(column, row) as i32);
        self.value(slot.repr, slot.ty.array, Words { payload, tag })
    }

    /// Makes objects and arrays of all that the kernel made and that something which stays refers to.
    fn discover(&mut self) {
        let schema = &self.lowered.schema;
        let mut todo: Vec<(&Slot, u64)> = Vec::new();
        let elements = self.section.world.elements.len() as u64;
        todo.extend(schema.result.iter().flat_map(|slot| (0..elements).map(move |i| (slot, i))));
        for accumulator in &schema.accumulators {
            let written = (0..elements).filter(|i| self.get_word(accumulator.written_tick, *i) as i64 >= 0);
            todo.extend(written.map(|i| (&accumulator.slot, i)));
        }
        for field in schema.fields.iter().filter(|f| f.written) {
            todo.extend(self.objects_of(field.class).into_iter().map(|(_, id)| (&field.slot, u64::from(id))));
        }
        for field in schema.arrays.iter().filter(|f| f.written) {
            for (array, offset) in self.arrays_of(field.kind) {
                let len = self.section.world.heap.array(array).values.len() as u64;
                todo.extend((0..len).map(|i| (&field.slot, offset + i)));
            }
        }
        // In the order of the rows, so that objects are numbered as Ruby would make them.
        todo.reverse();
        while let Some((slot, row)) = todo.pop() {
            let payload = slot.value.map_or(0, |column| self.get_word(column, row));
            let tag = slot.tag.map_or(0, |column| self.get_word(column, row) as i32);
            let mut more = self.meet(slot.repr, slot.ty.array, Words { payload, tag });
            more.reverse();
            todo.extend(more);
        }
    }

    fn discover_operands(&mut self, record: &TrapRecord) {
        let mut words = record.words.iter().copied();
        let site = &self.lowered.program.sites[record.site.index()];
        for repr in &site.operands {
            let mut next = || words.next().unwrap_or(0);
            let words = match repr {
                Repr::Unit(_) => continue,
                Repr::Union => {
                    let tag = next() as i32;
                    Words { tag, payload: next() }
                }
                _ => Words { tag: 0, payload: next() },
            };
            self.meet(*repr, None, words);
        }
    }

    /// Makes an object or array of what a value refers to, where there is none yet; answers the slots in it.
    fn meet(&mut self, repr: Repr, kind: Option<ArrayKind>, words: Words) -> Vec<(&'a Slot, u64)> {
        let schema = &self.lowered.schema;
        let object = match repr {
            Repr::Ref(hierarchy) => Some(hierarchy),
            Repr::Union if words.tag >= Tag::OBJECT => Some((words.tag - Tag::OBJECT) as u32),
            _ => None,
        };
        if let Some(hierarchy) = object {
            let id = words.payload as u32;
            if self.objects.contains_key(&(hierarchy, id)) {
                return Vec::new();
            }
            let bases = &self.bases[hierarchy as usize];
            let position = bases.iter().rposition(|base| *base <= id).expect("an id of the hierarchy");
            let class = schema.hierarchies[hierarchy as usize].classes[position];
            let Value::Object(new) = self.section.world.heap.new_object(class, BTreeMap::new()) else {
                return Vec::new();
            };
            self.ids.insert(new, (hierarchy, id));
            self.objects.insert((hierarchy, id), new);
            self.new_objects.push(new);
            let fields = schema.fields.iter().filter(|f| f.class == class);
            return fields.map(|f| (&f.slot, u64::from(id))).collect();
        }
        let kind = match repr {
            Repr::Array(kind) => Some(kind),
            Repr::Union if words.tag == Tag::ARRAY => kind,
            _ => None,
        };
        let Some(kind) = kind else { return Vec::new() };
        let (offset, len) = (words.payload >> 32, words.payload & 0xffff_ffff);
        if self.arrays.contains_key(&(kind, offset)) {
            return Vec::new();
        }
        let Value::Array(new) = self.section.world.heap.new_array(vec![Value::Nil; len as usize]) else {
            return Vec::new();
        };
        self.offsets.insert(new, offset);
        self.arrays.insert((kind, offset), new);
        self.kinds.insert(new, kind);
        self.new_arrays.push(new);
        let fields = schema.arrays.iter().filter(|f| f.kind == kind);
        fields.flat_map(|f| (0..len).map(move |i| (&f.slot, offset + i))).collect()
    }

    /// What the columns say, into the heap; then the captured locals.
    fn write_back(&mut self) -> Result<(), String> {
        let schema = &self.lowered.schema;
        for field in schema.fields.iter().filter(|f| f.written) {
            for (object, id) in self.objects_of(field.class) {
                // The program did not store it, and the column may have rounded it.
                let column = field.slot.value.map(|column| &self.lowered.program.columns[column.index()]);
                let marks = column.and_then(|column| column.marks);
                let is_old = !self.new_objects.contains(&object);
                if column.is_some_and(Column::is_only_rounded)
                    || marks.is_some_and(|marks| is_old && self.get_word(marks, u64::from(id)) == 0)
                {
                    continue;
                }
                let value = self.get(&field.slot, u64::from(id));
                let object = &mut self.section.world.heap.objects[object.index()];
                // An ivar that is not there and still nil stays away.
                if value != Value::Nil || object.ivars.contains_key(&field.ivar) {
                    object.ivars.insert(field.ivar.clone(), value);
                }
            }
        }
        for field in schema.arrays.iter().filter(|f| f.written) {
            let column = field.slot.value.map(|column| &self.lowered.program.columns[column.index()]);
            if column.is_some_and(Column::is_only_rounded) {
                continue;
            }
            for (array, offset) in self.arrays_of(field.kind) {
                for i in 0..self.section.world.heap.array(array).values.len() {
                    let value = self.get(&field.slot, offset + i as u64);
                    self.section.world.heap.arrays[array.index()].values[i] = value;
                }
            }
        }
        for accumulator in &schema.accumulators {
            let old = self.section.world.locals.get(&accumulator.name).cloned().unwrap_or(Value::Nil);
            let new = self.combined(accumulator, old)?;
            self.section.world.locals.insert(accumulator.name.clone(), new);
        }
        Ok(())
    }

    /// The new value of a captured local. Floats are combined in a line: cases choose values for which that is exact.
    fn combined(&self, accumulator: &Accumulator, start: Value) -> Result<Value, String> {
        let mut value = start;
        // nothing is less than a NaN that was there first
        let stays = matches!(accumulator.combine, Combine::Min(_) | Combine::Max(_))
            && matches!(value, Value::Float(f) if f.is_nan());
        let mut latest = -1;
        for index in 0..self.section.world.elements.len() as u64 {
            let tick = self.get_word(accumulator.written_tick, index) as i64;
            if tick < 0 || stays {
                continue;
            }
            let part = self.get(&accumulator.slot, index);
            value = match accumulator.combine {
                Combine::Last if tick >= latest => {
                    latest = tick;
                    part
                }
                Combine::Last => value,
                combine => combine_two(combine, &value, &part)?,
            };
        }
        Ok(value)
    }

    fn result(&mut self) -> Value {
        match &self.lowered.schema.result {
            Some(slot) => {
                let values = (0..self.section.world.elements.len() as u64).map(|i| self.get(slot, i)).collect();
                self.section.world.heap.new_array(values)
            }
            None => self.section.base.clone(),
        }
    }

    fn operands(&self, record: &TrapRecord) -> Vec<Value> {
        let mut words = record.words.iter().copied();
        let mut next = || words.next().unwrap_or(0);
        let mut operands = Vec::new();
        for repr in &self.lowered.program.sites[record.site.index()].operands {
            let words = match repr {
                Repr::Unit(_) => Words::default(),
                Repr::Union => {
                    let tag = next() as i32;
                    Words { tag, payload: next() }
                }
                _ => Words { tag: 0, payload: next() },
            };
            operands.push(self.value(*repr, None, words));
        }
        operands
    }

    /// The exception in the words of Ruby 3.1.
    fn raised(&self, record: &TrapRecord, operands: &[Value]) -> Raised {
        let site = &self.lowered.program.sites[record.site.index()];
        let first = operands.first();
        let (class, message) = match &site.trap {
            Trap::Race => ("Ikra::RaceError", "a data race".to_owned()),
            Trap::ZeroDivision => ("ZeroDivisionError", "divided by 0".to_owned()),
            Trap::IntegerOverflow(name) => ("Ikra::IntegerOverflow", format!("{name} gives an Integer beyond 64 bits")),
            Trap::NoMethod { name, bare: true, .. } => {
                let receiver = first.map_or_else(String::new, |v| self.described(v));
                ("NameError", format!("undefined local variable or method `{name}' for {receiver}"))
            }
            Trap::NoMethod { name, private, bare: false } => {
                let (how, called) = if *private { ("private", " called for") } else { ("undefined", " for") };
                let receiver = first.map_or_else(String::new, |v| self.described(v));
                ("NoMethodError", format!("{how} method `{name}'{called} {receiver}"))
            }
            Trap::Missing => {
                let receiver = first.map_or_else(String::new, |v| self.described(v));
                let name = operands.get(1).map_or_else(String::new, |v| self.inspected(v));
                ("NoMethodError", format!("undefined method `{}' for {receiver}", name.trim_start_matches(':')))
            }
            Trap::NoSuper(name) => {
                let receiver = first.map_or_else(String::new, |v| self.described(v));
                ("NoMethodError", format!("super: no superclass method `{name}' for {receiver}"))
            }
            Trap::KeyMissing => {
                let key = operands.get(1).map_or_else(String::new, |v| self.inspected(v));
                ("KeyError", format!("key not found: {key}"))
            }
            Trap::IndexTooSmall => {
                let of = |i: usize| operands.get(i).map_or_else(String::new, |v| self.inspected(v));
                ("IndexError", format!("index {} too small for array; minimum: {}", of(0), of(1)))
            }
            Trap::Name { message, .. } => ("NameError", message.clone()),
            Trap::Frozen => {
                let (class, inspected) =
                    first.map_or_else(Default::default, |v| (self.class_name(v), self.inspected(v)));
                ("FrozenError", format!("can't modify frozen {class}: {inspected}"))
            }
            Trap::FloatDomain => {
                let text = match first {
                    Some(Value::Float(f)) => heap::float(*f),
                    other => format!("{other:?}"),
                };
                ("FloatDomainError", text)
            }
            Trap::OutOfRange => {
                let Some(Value::Float(f)) = first else { panic!("a trap about a Float has one: {first:?}") };
                ("RangeError", ikra_core::ir::out_of_range(*f))
            }
            Trap::Raise { class, message } => (*class, message.clone()),
            Trap::Describe { class, before, after } => {
                let what = match first {
                    Some(Value::Nil) => "nil".to_owned(),
                    Some(Value::True) => "true".to_owned(),
                    Some(Value::False) => "false".to_owned(),
                    Some(value) => self.class_name(value),
                    None => String::new(),
                };
                (*class, format!("{before}{what}{after}"))
            }
            Trap::Limit { class, before, after } | Trap::Mention { class, before, after } => {
                let what = match first {
                    Some(value @ (Value::Object(_) | Value::Array(_) | Value::Module(_) | Value::Str(_))) => {
                        self.class_name(value)
                    }
                    Some(value) => self.inspected(value),
                    None => String::new(),
                };
                (*class, format!("{before}{what}{after}"))
            }
            Trap::New(new) => (new.name.as_str(), self.message(new, operands)),
            Trap::StackOverflow => ("SystemStackError", "stack level too deep".to_owned()),
            Trap::Break | Trap::Refuted(_) | Trap::Grow(_) => unreachable!("not an exception"),
        };
        Raised { class: class.to_owned(), line: site.line, index: record.key.index(), tick: record.key.tick(), message }
    }

    /// The message of an exception whose `initialize` is Ruby's own.
    fn message(&self, new: &New, operands: &[Value]) -> String {
        let text = |value: &Value| match value {
            Value::Nil => String::new(),
            Value::Sym(name) => name.to_string(),
            other => self.inspected(other),
        };
        let piece = new.message.as_ref().or(new.args.as_ref().and_then(|args| args.first()));
        match piece {
            None => new.name.clone(),
            Some(Piece::Value(operand)) if operands[*operand] == Value::Nil => new.name.clone(),
            Some(Piece::Value(operand)) => text(&operands[*operand]),
            Some(Piece::Text(parts)) => parts
                .iter()
                .map(|part| match part {
                    Part::Text(text) => text.clone(),
                    Part::Value(operand) => text(&operands[*operand]),
                    Part::Inspect(operand) => self.inspected(&operands[*operand]),
                })
                .collect(),
        }
    }

    fn class_of(&self, value: &Value) -> ClassId {
        match value {
            Value::Nil => well_known::NIL,
            Value::False => well_known::FALSE,
            Value::True => well_known::TRUE,
            Value::Int(_) | Value::Big(_) => well_known::INTEGER,
            Value::Float(_) => well_known::FLOAT,
            Value::Sym(_) => well_known::SYMBOL,
            Value::Str(_) => well_known::STRING,
            Value::Array(_) => well_known::ARRAY,
            Value::Module(class) if self.section.world.classes.info(*class).is_module => well_known::MODULE,
            Value::Module(_) => well_known::CLASS,
            Value::Object(object) => self.section.world.heap.object(*object).class,
        }
    }

    fn class_name(&self, value: &Value) -> String {
        self.section.world.classes.info(self.class_of(value)).name
    }

    fn inspected(&self, value: &Value) -> String {
        match value {
            Value::Object(object) => match self.section.world.classes.members(self.class_of(value)) {
                Some(members) => {
                    let fields = members
                        .iter()
                        .map(|m| format!("{m}={}", self.inspected(&self.section.world.heap.ivar(*object, m))));
                    let fields: Vec<String> = fields.collect();
                    format!("#<struct {} {}>", self.class_name(value), fields.join(", "))
                }
                None if is_value(self.class_of(value)) => self.section.world.show(value),
                None => format!("#<{}>", self.class_name(value)),
            },
            other => self.section.world.show(other),
        }
    }

    /// As NoMethodError names a receiver.
    fn described(&self, value: &Value) -> String {
        match value {
            Value::Object(_) => self.inspected(value),
            other => format!("{}:{}", self.inspected(other), self.class_name(other)),
        }
    }
}

fn combine_two(combine: Combine, a: &Value, b: &Value) -> Result<Value, String> {
    let float = |v: &Value| match v {
        Value::Int(i) => *i as f64,
        Value::Float(f) => *f,
        other => panic!("{other:?} in a reduction"),
    };
    Ok(match (combine, a, b) {
        (Combine::Add, Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(*b).ok_or("overflow")?),
        (Combine::Mul, Value::Int(a), Value::Int(b)) => Value::Int(a.checked_mul(*b).ok_or("overflow")?),
        (Combine::And, Value::Int(a), Value::Int(b)) => Value::Int(a & b),
        (Combine::Or, Value::Int(a), Value::Int(b)) => Value::Int(a | b),
        (Combine::Xor, Value::Int(a), Value::Int(b)) => Value::Int(a ^ b),
        (Combine::Add, a, b) => Value::Float(float(a) + float(b)),
        (Combine::Mul, a, b) => Value::Float(float(a) * float(b)),
        // a contribution that is NaN is left out
        (Combine::Min(equals) | Combine::Max(equals), a, b) => {
            let (x, y) = if matches!(combine, Combine::Min(_)) { (float(a), float(b)) } else { (float(b), float(a)) };
            let takes_over = match equals {
                Equals::Earliest => y < x,
                Equals::Latest => y <= x,
            };
            if takes_over { b.clone() } else { a.clone() }
        }
        (combine, a, b) => return Err(format!("{combine:?} of {a:?} and {b:?}")),
    })
}
