//! Well-formed programs out of a sequence of choices, and a launch to run them on.
//!
//! The choices come from proptest, so that a program that fails shrinks: choice 0 is always the plainest, and after the
//! last choice all are 0. Every program ends (loops and recursion count down) and keeps the IR's preconditions, so
//! anything but the same outcome on two machines, or before and after a pass, is a fault.

use ikra_core::backend::{Backend, CancelToken, Launch, Outcome, Timings};
use ikra_core::config::CodeOptions;
use ikra_core::error::Result;
use ikra_core::id::ArrayKind;
use ikra_core::ir::build::Builder;
use ikra_core::ir::{
    AtomicOp, CheckedOp, Cmp, Column, ColumnId, Ctx, Func, FuncId, Heap, HeapId, Jobs, LabelId, MathFn, Op, Operand,
    Param, ParamId, Program, SLOT_STRIDE, Scalar, Site, SiteId, Space, Stmt, Storage, Trap, VarId,
};
use ikra_core::layout::Layout;
use ikra_core::memory::column::HostColumn;
use ikra_core::types::Repr;

/// Jobs of a launch, which is also how many rows columns have.
pub const ROWS: usize = 16;
/// The first object's id.
const FIRST_ID: i32 = 100;

/// Where programs store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Each element its own rows only, and it loads no others of columns that are stored: any order gives one answer.
    Own,
    /// Any rows: one id may be another, and elements see each other's stores. For one thread.
    Any,
}

// Columns: those that are only read, and those that are stored.
const IN: ColumnId = ColumnId(0);
const REFS: ColumnId = ColumnId(1);
const WEIGHT: ColumnId = ColumnId(2);
const STORED: [ColumnId; 7] =
    [ColumnId(3), ColumnId(4), ColumnId(5), ColumnId(6), ColumnId(7), ColumnId(8), ColumnId(9)];

// New objects, which belong to the job; objects and arrays that stay. Their ids depend on who was first, so nothing
// else may.
const SCRATCH: HeapId = HeapId(0);
const KEPT: HeapId = HeapId(1);
const LISTS: HeapId = HeapId(2);
const SCRATCH_X: ColumnId = ColumnId(13);
const SCRATCH_N: ColumnId = ColumnId(14);
const SCRATCH_FLAG: ColumnId = ColumnId(15);
const KEPT_N: ColumnId = ColumnId(16);
const ITEMS: ColumnId = ColumnId(17);
/// Where a job leaves objects of its own.
const HELD: ColumnId = ColumnId(18);
/// Columns before this one are what a run leaves.
const FIRST_OF_NEW: usize = 10;
/// Rows of each heap; scratch: of each slot.
const CAPACITY: usize = 4096;

const OVERFLOW: SiteId = SiteId(0);
const DOMAIN: SiteId = SiteId(1);
const STACK: SiteId = SiteId(2);
const ZERO: SiteId = SiteId(3);
const GROW_SCRATCH: SiteId = SiteId(4);
const GROW_KEPT: SiteId = SiteId(5);
const GROW_LISTS: SiteId = SiteId(6);

const INTS: [i64; 12] = [0, 1, -1, 2, 3, 7, 8, 255, 1_103_515_245, i64::MAX, i64::MIN, 1 << 40];
const FLOATS: [f64; 10] = [0.0, 1.0, -0.0, -1.0, 0.5, 2.5, 1e300, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
const TYPES: [Scalar; 4] = [Scalar::I64, Scalar::F64, Scalar::Bool, Scalar::I32];

pub fn program(choices: &[u16], rows: Rows) -> Program {
    generate(choices, rows, Shape::Any)
}

/// A program around a loop in which a reference changes on rare ways: few others have one.
pub fn wandering(choices: &[u16]) -> Program {
    generate(choices, Rows::Own, Shape::Wandering)
}

/// A program around a loop that makes objects, of which some leave behind it.
pub fn leaving(choices: &[u16]) -> Program {
    generate(choices, Rows::Own, Shape::Leaving)
}

/// What the bodies are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Any,
    /// Loops that wander, and nothing else.
    Wandering,
    /// Loops that make objects, some of which leave behind them.
    Leaving,
}

fn generate(choices: &[u16], rows: Rows, shape: Shape) -> Program {
    let mut g = Generator { choices, at: 0, rows, signatures: Vec::new(), uses_random: false, shape, size: 0 };
    let count = g.pick(3);
    // A function calls only those after it; the last calls itself.
    g.signatures = (0..count).map(|_| (g.types(3), g.types(2))).collect();
    let mut funcs: Vec<Func> = (0..count).rev().map(|i| g.function(i)).collect();
    funcs.push(g.recursive(1 + count));
    let entry_fused = g.pick(2) == 1;
    let entry = g.entry();
    let mut all = vec![entry];
    let recursive = funcs.pop();
    funcs.reverse();
    all.append(&mut funcs);
    all.extend(recursive);
    Program {
        name: "random".into(),
        funcs: all,
        entry: FuncId(0),
        columns: columns(),
        params: vec![
            Param::new("n", Scalar::I64),
            Param::new("x", Scalar::F64),
            Param::new("flag", Scalar::Bool),
            Param::new("small", Scalar::I32),
            Param::new("first", Scalar::I64),
            Param::new("capacity", Scalar::I64),
        ],
        heaps: [(SCRATCHES, true), (KEEPS, false), (Space::Array(ArrayKind(0)), false)]
            .into_iter()
            .zip(FIRST_OF_NEW..)
            .map(|((space, scratch), taken)| Heap {
                space,
                scratch,
                start: ParamId(4),
                capacity: ParamId(5),
                taken: ColumnId::new(taken),
            })
            .collect(),
        strides: Vec::new(),
        extents: Vec::new(),
        sites: [
            (Trap::IntegerOverflow("*"), vec![]),
            (Trap::FloatDomain, vec![Repr::Float, Repr::Int]),
            (Trap::StackOverflow, vec![]),
            (Trap::ZeroDivision, vec![]),
            (Trap::Grow(SCRATCH), vec![Repr::Int]),
            (Trap::Grow(KEPT), vec![Repr::Int]),
            (Trap::Grow(LISTS), vec![Repr::Int]),
        ]
        .into_iter()
        .map(|(trap, operands)| Site { trap, path: "random.rb".into(), line: 1, operands })
        .collect(),
        jobs: Jobs::Identity,
        few: true,
        fused_ticks: entry_fused && rows == Rows::Own,
        uses_random: g.uses_random,
        rescued: Default::default(),
    }
}

const SCRATCHES: Space = Space::Class { hierarchy: 1, first: 0, last: 0 };
const KEEPS: Space = Space::Class { hierarchy: 2, first: 0, last: 0 };

fn columns() -> Vec<Column> {
    let objects = Space::Class { hierarchy: 0, first: 0, last: 1 };
    let column = |name: &str, space, storage, written| Column {
        name: name.into(),
        space,
        storage,
        refers: None,
        ranged: None,
        roundable: false,
        marks: None,
        read: true,
        written,
    };
    vec![
        column("in", Space::Element, Storage::I64, false),
        Column { refers: Some(objects), ..column("refs", Space::Element, Storage::U32, false) },
        column("Thing@weight", objects, Storage::F64, false),
        column("ints", Space::Element, Storage::I64, true),
        column("floats", Space::Element, Storage::F64, true),
        column("tags", Space::Element, Storage::U8, true),
        column("Thing@count", objects, Storage::I64, true),
        column("Thing@speed", objects, Storage::F64, true),
        column("Thing@flag", objects, Storage::U8, true),
        Column { refers: Some(objects), ..column("Thing@other", objects, Storage::U32, true) },
        column("taken0", Space::Slot, Storage::I64, true),
        column("taken1", Space::Single, Storage::I64, true),
        column("taken2", Space::Single, Storage::I64, true),
        column("Scratch@x", SCRATCHES, Storage::F64, true),
        column("Scratch@n", SCRATCHES, Storage::I64, true),
        column("Scratch@flag", SCRATCHES, Storage::U8, true),
        column("Kept@n", KEEPS, Storage::I64, true),
        column("items", Space::Array(ArrayKind(0)), Storage::I64, true),
        column("held", Space::Element, Storage::U32, true),
    ]
}

/// What a run left: the outcome, and the columns where they mean something. The outcome is Cancelled where the rows for
/// new objects did not suffice. Floats that are no number are all one.
pub fn run(backend: &dyn Backend, program: &Program, ticks: u64) -> Result<(Outcome, Vec<Vec<u64>>)> {
    let slots = backend.slots(ROWS as u64);
    let rows = |space| match space {
        Space::Element | Space::Job => ROWS,
        Space::Single => 1,
        Space::Slot => slots as usize * SLOT_STRIDE as usize,
        Space::Class { hierarchy: 0, .. } => ROWS,
        Space::Class { hierarchy: 1, .. } => FIRST_ID as usize + CAPACITY * slots as usize,
        Space::Class { .. } | Space::Array(_) | Space::Bytes => FIRST_ID as usize + CAPACITY,
    };
    let mut columns: Vec<HostColumn> =
        program.columns.iter().map(|c| HostColumn::zeroed(c.storage, rows(c.space))).collect();
    for (i, column) in columns.iter_mut().enumerate().take(FIRST_OF_NEW) {
        let seed = i * 31;
        match column.storage() {
            Storage::I64 => fill(column.view_mut::<i64>(), |row| INTS[(row + seed) % INTS.len()]),
            Storage::F64 => fill(column.view_mut::<f64>(), |row| FLOATS[(row + seed) % FLOATS.len()]),
            Storage::U32 => fill(column.view_mut::<u32>(), |row| FIRST_ID as u32 + ((row * 7 + seed) % ROWS) as u32),
            Storage::U8 => fill(column.view_mut::<u8>(), |row| ((row + seed) % 2) as u8),
            Storage::I32 => fill(column.view_mut::<i32>(), |row| INTS[(row + seed) % INTS.len()] as i32),
            Storage::F32 => fill(column.view_mut::<f32>(), |row| FLOATS[(row + seed) % FLOATS.len()] as f32),
        }
    }
    let biases: Vec<u64> = program
        .columns
        .iter()
        .map(|c| if matches!(c.space, Space::Class { hierarchy: 0, .. }) { FIRST_ID as u64 } else { 0 })
        .collect();
    let executable = backend.prepare(program, &Layout::structure_of_arrays(program), &CodeOptions::default())?;
    let params = [5, 2.5f64.to_bits(), 1, -3i64 as u64, FIRST_ID as u64, CAPACITY as u64];
    let (cancel, mut timings) = (CancelToken::default(), Timings::default());
    let plain = Launch::of(ROWS as u64, &mut columns, &biases, &params, &cancel, &mut timings);
    let outcome = backend.launch(&*executable, Launch { slots, ticks, seed: 42, section: 7, ..plain })?;
    let contents = match outcome {
        Outcome::Done => columns.iter().take(FIRST_OF_NEW).map(words).collect(),
        _ => Vec::new(),
    };
    if let Outcome::Trapped(record) = &outcome
        && let Trap::Grow(_) = program.sites[record.site.index()].trap
    {
        // The host would give it more.
        return Ok((Outcome::Cancelled, contents));
    }
    Ok((canonical(outcome), contents))
}

/// A trap's words with one kind of no number.
fn canonical(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Trapped(mut record) if record.site == DOMAIN => {
            record.words[0] = number(record.words[0]);
            Outcome::Trapped(record)
        }
        other => other,
    }
}

fn number(bits: u64) -> u64 {
    if f64::from_bits(bits).is_nan() { f64::NAN.to_bits() } else { bits }
}

fn words(column: &HostColumn) -> Vec<u64> {
    match column.storage() {
        Storage::U8 => column.view::<u8>().iter().map(|w| u64::from(*w)).collect(),
        Storage::U32 | Storage::I32 | Storage::F32 => column.view::<u32>().iter().map(|w| u64::from(*w)).collect(),
        Storage::I64 => column.view::<u64>().to_vec(),
        Storage::F64 => column.view::<u64>().iter().map(|w| number(*w)).collect(),
    }
}

fn fill<T>(rows: &mut [T], value: impl Fn(usize) -> T) {
    rows.iter_mut().enumerate().for_each(|(row, slot)| *slot = value(row));
}

struct Generator<'a> {
    choices: &'a [u16],
    at: usize,
    rows: Rows,
    /// Parameters and results of the functions from 1 on.
    signatures: Vec<(Vec<Scalar>, Vec<Scalar>)>,
    uses_random: bool,
    shape: Shape,
    /// Statements made so far.
    size: usize,
}

/// What a statement may name: registers that are assigned here, labels that are open, functions that may be called.
struct Scope {
    vars: Vec<(Scalar, VarId)>,
    /// Registers that may be assigned again, assigned from the start.
    mutable: Vec<(Scalar, VarId)>,
    /// Ids of new objects whose fields were stored.
    objects: Vec<VarId>,
    /// Those that may be assigned again.
    places: Vec<VarId>,
    labels: Vec<LabelId>,
    /// Functions from here on may be called.
    callable: usize,
    results: Option<Vec<Scalar>>,
    /// The element's index and its own object.
    own: (Operand, Operand),
    depth: usize,
}

/// The most statements of a program.
const MAX_STATEMENTS: usize = 250;

impl Generator<'_> {
    /// A choice among so many; the first one when choices have run out.
    fn pick(&mut self, count: usize) -> usize {
        let choice = self.choices.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(choice) % count.max(1)
    }
    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.pick(all.len())]
    }
    fn types(&mut self, most: usize) -> Vec<Scalar> {
        (0..self.pick(most + 1)).map(|_| self.of(&TYPES)).collect()
    }

    fn entry(&mut self) -> Func {
        let mut b = Builder::new("entry".into(), vec![]);
        let job = b.param(Scalar::I64, Some("job".into()));
        let first = b.param(Scalar::I64, Some("first".into()));
        let last = b.param(Scalar::I64, Some("last".into()));
        b.push(Stmt::Begin { index: job.into(), tick: first.into(), check: true });
        let tick = b.var(Scalar::I64, Some("tick".into()));
        let id = self.own_id(&mut b, job.into());
        b.set(tick, first.into());
        b.repeat(|b, done| {
            let end = b.icmp(Cmp::Ge, tick.into(), last.into());
            b.when(end, |b| b.push(Stmt::Break(done)));
            b.push(Stmt::Begin { index: job.into(), tick: tick.into(), check: false });
            b.block(|b, next| {
                let own = (job.into(), id);
                self.body(b, vec![(Scalar::I64, job)], 1, vec![next], own, None);
            });
            b.push(Stmt::Let { dst: tick, op: Op::Add, args: vec![tick.into(), Operand::I64(1)] });
        });
        b.finish()
    }

    fn own_id(&mut self, b: &mut Builder, index: Operand) -> Operand {
        let low = b.op(Scalar::I32, Op::Narrow, &[index]);
        b.op(Scalar::I32, Op::Add, &[low, Operand::I32(FIRST_ID)])
    }

    fn function(&mut self, i: usize) -> Func {
        let (params, results) = self.signatures[i].clone();
        let mut b = Builder::new(format!("f{}", i + 1), results.clone());
        let vars = params.iter().map(|ty| (*ty, b.param(*ty, None))).collect();
        let index = b.i64(Op::Ctx(Ctx::Index), &[]);
        let id = self.own_id(&mut b, index);
        self.body(&mut b, vars, i + 2, vec![], (index, id), Some(results));
        b.finish()
    }

    /// `down(n)`: sums something while n counts down, now and then too deep for any stack.
    fn recursive(&mut self, me: usize) -> Func {
        let mut b = Builder::new("down".into(), vec![Scalar::I64]);
        let n = b.param(Scalar::I64, Some("n".into()));
        let end = b.icmp(Cmp::Le, n.into(), Operand::I64(0));
        b.when(end, |b| b.push(Stmt::Return(vec![Operand::I64(1)])));
        let less = b.i64(Op::Sub, &[n.into(), Operand::I64(1)]);
        let rest = b.call(FuncId::new(me), vec![less], &[Scalar::I64], Some(STACK));
        let sum = b.i64(Op::Add, &[rest[0], n.into()]);
        b.push(Stmt::Return(vec![sum]));
        let mut func = b.finish();
        func.recursive = true;
        func
    }

    fn body(
        &mut self,
        b: &mut Builder,
        vars: Vec<(Scalar, VarId)>,
        callable: usize,
        labels: Vec<LabelId>,
        own: (Operand, Operand),
        results: Option<Vec<Scalar>>,
    ) {
        let (objects, places) = (Vec::new(), Vec::new());
        let mut scope = Scope { vars, mutable: Vec::new(), objects, places, labels, callable, results, own, depth: 0 };
        for ty in TYPES {
            let var = b.var(ty, Some(format!("{ty}").into()));
            let value = self.constant(ty);
            b.set(var, value);
            scope.vars.push((ty, var));
            scope.mutable.push((ty, var));
        }
        if self.shape == Shape::Leaving || self.shape == Shape::Any && self.pick(3) == 1 {
            for name in ["a", "b"] {
                let place = b.var(Scalar::I32, Some(name.into()));
                let id = self.new_object(b, &scope);
                b.set(place, id);
                scope.objects.push(place);
                scope.places.push(place);
            }
        }
        match self.shape {
            Shape::Any => self.statements(b, &mut scope),
            Shape::Wandering => self.wander(b, &mut scope),
            Shape::Leaving => {
                self.counted(b, &mut scope);
                for _ in 0..=self.pick(3) {
                    let object = self.of(&scope.objects.clone());
                    self.leaves(b, &mut scope, object);
                }
            }
        }
        if let Some(results) = scope.results.clone() {
            let values = results.iter().map(|ty| self.operand(&scope, *ty)).collect();
            b.push(Stmt::Return(values));
        }
    }

    fn statements(&mut self, b: &mut Builder, scope: &mut Scope) {
        let (vars, labels, objects) = (scope.vars.len(), scope.labels.len(), scope.objects.len());
        scope.depth += 1;
        for _ in 0..self.pick(10) {
            if b.ended() || self.size > MAX_STATEMENTS {
                break;
            }
            self.statement(b, scope);
        }
        scope.depth -= 1;
        scope.vars.truncate(vars);
        scope.labels.truncate(labels);
        scope.objects.truncate(objects);
    }

    fn statement(&mut self, b: &mut Builder, scope: &mut Scope) {
        self.size += 1;
        let deep = scope.depth > 4;
        match self.pick(21) {
            0..=3 => {
                let ty = self.of(&TYPES);
                let value = self.operation(b, scope, ty);
                self.keep(b, scope, ty, value);
            }
            4 => {
                let op = self.of(&[CheckedOp::Add, CheckedOp::Sub, CheckedOp::Mul, CheckedOp::And]);
                let (x, y) = (self.operand(scope, Scalar::I64), self.operand(scope, Scalar::I64));
                let value = b.checked(op, x, y, OVERFLOW);
                self.keep(b, scope, Scalar::I64, value);
            }
            5 | 6 => self.load(b, scope),
            7 | 8 => self.store(b, scope),
            9 => {
                let (ty, var) = self.of(&scope.mutable.clone());
                let value = self.operand(scope, ty);
                b.set(var, value);
            }
            10 | 11 if !deep => {
                let cond = self.condition(b, scope);
                b.open();
                self.statements(b, scope);
                let then = b.close();
                b.open();
                if self.pick(2) == 1 {
                    self.statements(b, scope);
                }
                let otherwise = b.close();
                b.push(Stmt::If { cond, then, otherwise });
            }
            12 if !deep => self.counted(b, scope),
            13 if !deep => {
                let label = b.label();
                b.open();
                scope.labels.push(label);
                self.statements(b, scope);
                scope.labels.retain(|l| *l != label);
                let body = b.close();
                b.push(Stmt::Block { label, body });
            }
            14 => self.leave(b, scope),
            16..=18 => self.object(b, scope),
            19 => self.kept(b, scope),
            20 if !deep => self.wander(b, scope),
            _ => self.call(b, scope),
        }
    }

    fn new_object(&mut self, b: &mut Builder, scope: &Scope) -> Operand {
        let id = b.alloc(Scalar::I32, SCRATCH, Operand::I64(1), GROW_SCRATCH);
        for (column, ty) in [(SCRATCH_X, Scalar::F64), (SCRATCH_N, Scalar::I64), (SCRATCH_FLAG, Scalar::Bool)] {
            let value = self.operand(scope, ty);
            b.store(column, id, value);
        }
        id
    }

    /// Something with new objects of the job's own.
    fn object(&mut self, b: &mut Builder, scope: &mut Scope) {
        let choice = self.pick(8);
        if scope.objects.is_empty() || choice == 0 {
            let id = self.new_object(b, scope);
            if let Operand::Var(id) = id {
                scope.objects.push(id);
            }
            return;
        }
        let object = Operand::Var(self.of(&scope.objects.clone()));
        match choice {
            1 | 2 if !scope.places.is_empty() => {
                let place = self.of(&scope.places.clone());
                let value = if choice == 1 { object } else { self.new_object(b, scope) };
                b.set(place, value);
            }
            3 => {
                let (column, ty) =
                    self.of(&[(SCRATCH_X, Scalar::F64), (SCRATCH_N, Scalar::I64), (SCRATCH_FLAG, Scalar::Bool)]);
                let value = self.operand(scope, ty);
                b.store(column, object, value);
            }
            5 if self.pick(2) == 1 => {
                if let Operand::Var(object) = object {
                    self.leaves(b, scope, object);
                }
            }
            4 if self.pick(4) == 3 => {
                let other = Operand::Var(self.of(&scope.objects.clone()));
                let same = b.icmp(Cmp::Eq, object, other);
                self.keep(b, scope, Scalar::Bool, same);
            }
            _ => {
                let (column, ty) = self.of(&[
                    (SCRATCH_X, Scalar::F64),
                    (SCRATCH_N, Scalar::I64),
                    (SCRATCH_FLAG, Scalar::Bool),
                    (SCRATCH_FLAG, Scalar::I32),
                ]);
                let value = b.load(ty, column, object);
                self.keep(b, scope, ty, value);
            }
        }
    }

    /// Stores an object's id, and reads it back: the object has one name more.
    fn leaves(&mut self, b: &mut Builder, scope: &mut Scope, object: VarId) {
        b.store(HELD, scope.own.0, object.into());
        let id = b.load(Scalar::I32, HELD, scope.own.0);
        let value = b.load(Scalar::F64, SCRATCH_X, id);
        if self.pick(2) == 1
            && let Operand::Var(id) = id
        {
            scope.objects.push(id);
        }
        let (column, row) = if self.pick(3) == 0 { (SCRATCH_X, id) } else { (STORED[1], scope.own.0) };
        b.store(column, row, value);
    }

    /// An object or an array that stays.
    fn kept(&mut self, b: &mut Builder, scope: &mut Scope) {
        let (x, y) = (self.operand(scope, Scalar::I64), self.operand(scope, Scalar::I64));
        let value = if self.pick(2) == 0 {
            let id = b.alloc(Scalar::I32, KEPT, Operand::I64(1), GROW_KEPT);
            b.store(KEPT_N, id, x);
            b.load(Scalar::I64, KEPT_N, id)
        } else {
            let more = b.i64(Op::And, &[y, Operand::I64(3)]);
            let count = b.i64(Op::Add, &[more, Operand::I64(1)]);
            let first = b.alloc(Scalar::I64, LISTS, count, GROW_LISTS);
            let last = b.i64(Op::Add, &[first, more]);
            b.store(ITEMS, first, x);
            b.store(ITEMS, last, y);
            b.load(Scalar::I64, ITEMS, first)
        };
        self.keep(b, scope, Scalar::I64, value);
    }

    /// Makes a value known, sometimes as a variable.
    fn keep(&mut self, b: &mut Builder, scope: &mut Scope, ty: Scalar, value: Operand) {
        let mutable: Vec<VarId> = scope.mutable.iter().filter(|(t, _)| *t == ty).map(|(_, v)| *v).collect();
        if self.pick(3) == 2 && !mutable.is_empty() {
            let var = self.of(&mutable);
            b.set(var, value);
        } else if let Operand::Var(v) = value {
            scope.vars.push((ty, v));
        }
    }

    fn constant(&mut self, ty: Scalar) -> Operand {
        match ty {
            Scalar::I64 => Operand::I64(self.of(&INTS)),
            Scalar::F64 => Operand::float(self.of(&FLOATS)),
            Scalar::Bool => Operand::Bool(self.pick(2) == 1),
            Scalar::I32 => Operand::I32(self.of(&[0, 1, -1, 3, i32::MAX, i32::MIN])),
        }
    }

    fn operand(&mut self, scope: &Scope, ty: Scalar) -> Operand {
        let known: Vec<VarId> = scope.vars.iter().filter(|(t, _)| *t == ty).map(|(_, v)| *v).collect();
        match self.pick(4) {
            0 => self.constant(ty),
            _ if known.is_empty() => self.constant(ty),
            // The latest are the likeliest.
            1 | 2 => known[known.len() - 1 - self.pick(3).min(known.len() - 1)].into(),
            _ => self.of(&known).into(),
        }
    }

    fn condition(&mut self, b: &mut Builder, scope: &Scope) -> Operand {
        if self.pick(4) == 0 { self.operand(scope, Scalar::Bool) } else { self.comparison(b, scope) }
    }

    fn comparison(&mut self, b: &mut Builder, scope: &Scope) -> Operand {
        let cmp = self.of(&[Cmp::Lt, Cmp::Eq, Cmp::Ne, Cmp::Le, Cmp::Gt, Cmp::Ge]);
        let ty = self.of(&[Scalar::I64, Scalar::F64, Scalar::I32]);
        let op = match (ty, self.pick(4)) {
            (Scalar::F64, _) => Op::FCmp(cmp),
            (_, 3) => Op::UCmp(cmp),
            _ => Op::ICmp(cmp),
        };
        let x = self.operand(scope, ty);
        let y = match (ty, self.pick(3)) {
            // Around the bounds of loops and masks.
            (Scalar::I64, 2) => Operand::I64(self.pick(9) as i64 - 1),
            _ => self.operand(scope, ty),
        };
        b.bool(op, &[x, y])
    }

    fn operation(&mut self, b: &mut Builder, scope: &Scope, ty: Scalar) -> Operand {
        let x = self.operand(scope, ty);
        let y = self.operand(scope, ty);
        let i64_arg = |g: &mut Self| g.operand(scope, Scalar::I64);
        match ty {
            Scalar::Bool => match self.pick(8) {
                0 => b.bool(Op::Not, &[x]),
                1 => b.bool(Op::And, &[x, y]),
                2 => b.bool(Op::Or, &[x, y]),
                3 => b.bool(Op::Xor, &[x, y]),
                4 => b.icmp(Cmp::Eq, x, y),
                5 => b.bool(Op::Param(ParamId(2)), &[]),
                _ => self.comparison(b, scope),
            },
            Scalar::I32 => match self.pick(9) {
                0 => b.op(ty, Op::Add, &[x, y]),
                1 => b.op(ty, Op::Sub, &[x, y]),
                2 => b.op(ty, Op::Mul, &[x, y]),
                3 => b.op(ty, Op::And, &[x, y]),
                4 => {
                    let by = b.op(ty, Op::And, &[y, Operand::I32(31)]);
                    let op = self.of(&[Op::Shl, Op::Shr, Op::UShr]);
                    b.op(ty, op, &[x, by])
                }
                5 => {
                    let wide = i64_arg(self);
                    b.op(ty, Op::Narrow, &[wide])
                }
                6 => {
                    let flag = self.operand(scope, Scalar::Bool);
                    b.op(ty, Op::BoolToInt, &[flag])
                }
                7 => b.op(ty, Op::Param(ParamId(3)), &[]),
                _ => {
                    let flag = self.operand(scope, Scalar::Bool);
                    b.select(ty, flag, x, y)
                }
            },
            Scalar::I64 => self.integer(b, scope, x, y),
            Scalar::F64 => self.float(b, scope, x, y),
        }
    }

    fn integer(&mut self, b: &mut Builder, scope: &Scope, x: Operand, y: Operand) -> Operand {
        let plain = [Op::Add, Op::Sub, Op::Mul, Op::And, Op::Or, Op::Xor, Op::MulHi, Op::UMulHi];
        match self.pick(18) {
            n @ 0..=7 => b.i64(plain[n], &[x, y]),
            8 => {
                let mask = Operand::I64(self.of(&[7, 0x7fff_ffff, 255, -8, i64::MAX]));
                b.i64(Op::And, &[x, mask])
            }
            9 => {
                // A linear congruential generator, checked.
                let product = b.checked(CheckedOp::Mul, x, Operand::I64(1_103_515_245), OVERFLOW);
                let sum = b.checked(CheckedOp::Add, product, Operand::I64(12_345), OVERFLOW);
                let mask = Operand::I64(self.of(&[0x7fff_ffff, -8]));
                b.i64(Op::And, &[sum, mask])
            }
            10 => {
                let by = b.i64(Op::And, &[y, Operand::I64(63)]);
                let op = self.of(&[Op::Shl, Op::Shr, Op::UShr]);
                b.i64(op, &[x, by])
            }
            11 => self.modulo(b, x, y),
            12 => {
                let small = b.i64(Op::And, &[y, Operand::I64(0xffff)]);
                let divisor = b.i64(Op::Or, &[small, Operand::I64(1)]);
                let op = self.of(&[Op::Div, Op::Rem, Op::UDiv, Op::URem]);
                b.i64(op, &[x, divisor])
            }
            13 => {
                let small = b.i64(Op::And, &[y, Operand::I64(0xffff)]);
                let modulus = b.i64(Op::Add, &[small, Operand::I64(1)]);
                let other = self.operand(scope, Scalar::I64);
                let op = self.of(&[Op::MulMod, Op::AddMod]);
                b.i64(op, &[x, other, modulus])
            }
            14 => {
                let other = self.operand(scope, Scalar::I32);
                b.i64(Op::Widen, &[other])
            }
            15 => {
                let flag = self.operand(scope, Scalar::Bool);
                b.select(Scalar::I64, flag, x, y)
            }
            16 => match self.pick(5) {
                0 => b.i64(Op::Ctx(Ctx::Index), &[]),
                1 => b.i64(Op::Ctx(Ctx::Tick), &[]),
                2 => b.i64(Op::Param(ParamId(0)), &[]),
                3 => b.i64(Op::Clz, &[x]),
                _ => {
                    self.uses_random = true;
                    b.i64(Op::Random, &[])
                }
            },
            _ => {
                let value = self.operand(scope, Scalar::F64);
                let low = b.fcmp(Cmp::Ge, value, Operand::float(-9e18));
                let high = b.fcmp(Cmp::Le, value, Operand::float(9e18));
                let both = b.bool(Op::And, &[low, high]);
                let result = b.temp(Scalar::I64);
                b.branch(
                    both,
                    |b| {
                        let int = b.i64(Op::FloatToInt, &[value]);
                        b.set(result, int);
                    },
                    |b| b.set(result, Operand::I64(0)),
                );
                result.into()
            }
        }
    }

    /// `x % y` as Ruby rounds it.
    fn modulo(&mut self, b: &mut Builder, x: Operand, y: Operand) -> Operand {
        let zero = b.icmp(Cmp::Eq, y, Operand::I64(0));
        b.trap_if(zero, ZERO, vec![]);
        let inverts = b.icmp(Cmp::Eq, y, Operand::I64(-1));
        let divisor = b.select(Scalar::I64, inverts, Operand::I64(1), y);
        let rest = b.i64(Op::Rem, &[x, divisor]);
        let there = b.icmp(Cmp::Ne, rest, Operand::I64(0));
        let signs = b.i64(Op::Xor, &[rest, y]);
        let differ = b.icmp(Cmp::Lt, signs, Operand::I64(0));
        let off = b.bool(Op::And, &[there, differ]);
        let lift = b.select(Scalar::I64, off, y, Operand::I64(0));
        b.i64(Op::Add, &[rest, lift])
    }

    fn float(&mut self, b: &mut Builder, scope: &Scope, x: Operand, y: Operand) -> Operand {
        let binary = [Op::FAdd, Op::FSub, Op::FMul, Op::FDiv, Op::FRem, Op::FCopySign, Op::FNextAfter];
        let unary =
            [Op::FNeg, Op::FAbs, Op::FSqrt, Op::FFloor, Op::FCeil, Op::FTrunc, Op::FRint, Op::FRound, Op::FSingle];
        match self.pick(8) {
            0..=2 => {
                let op = self.of(&binary);
                b.f64(op, &[x, y])
            }
            3 => {
                let op = self.of(&unary);
                b.f64(op, &[x])
            }
            4 => {
                let int = self.operand(scope, Scalar::I64);
                b.f64(Op::IntToFloat, &[int])
            }
            5 => {
                let flag = self.operand(scope, Scalar::Bool);
                b.select(Scalar::F64, flag, x, y)
            }
            6 => {
                let bits = b.i64(Op::FloatBits, &[x]);
                b.f64(Op::FloatFromBits, &[bits])
            }
            _ => match self.pick(3) {
                0 => b.f64(Op::Param(ParamId(1)), &[]),
                1 => b.f64(Op::Math(MathFn::Sin), &[x]),
                _ => b.f64(Op::Math(MathFn::Pow), &[x, y]),
            },
        }
    }

    /// A column and a row of it that may be loaded, or stored.
    fn slot(&mut self, b: &mut Builder, scope: &Scope, store: bool) -> (ColumnId, Operand, Storage) {
        let column = if store || self.pick(3) > 0 { self.of(&STORED) } else { self.of(&[IN, REFS, WEIGHT]) };
        let description = &columns()[column.index()];
        let object = matches!(description.space, Space::Class { .. });
        let own = if object { scope.own.1 } else { scope.own.0 };
        let only_own = description.written && self.rows == Rows::Own;
        let row = match (only_own || self.pick(2) == 0, object) {
            (true, _) => own,
            (false, true) => {
                let from = if self.rows == Rows::Any { self.of(&[REFS, ColumnId(9)]) } else { REFS };
                let row = if from == REFS { self.element_row(b, scope) } else { scope.own.1 };
                b.load(Scalar::I32, from, row)
            }
            (false, false) => self.element_row(b, scope),
        };
        (column, row, description.storage)
    }

    fn element_row(&mut self, b: &mut Builder, scope: &Scope) -> Operand {
        match self.pick(3) {
            0 => scope.own.0,
            1 => Operand::I64(self.pick(ROWS) as i64),
            _ => {
                let any = self.operand(scope, Scalar::I64);
                b.i64(Op::And, &[any, Operand::I64(ROWS as i64 - 1)])
            }
        }
    }

    fn load(&mut self, b: &mut Builder, scope: &mut Scope) {
        let (column, row, storage) = self.slot(b, scope, false);
        let ty = match storage {
            Storage::I32 | Storage::I64 => Scalar::I64,
            Storage::F32 | Storage::F64 => Scalar::F64,
            Storage::U32 => Scalar::I32,
            Storage::U8 => self.of(&[Scalar::Bool, Scalar::I32]),
        };
        let value = b.load(ty, column, row);
        self.keep(b, scope, ty, value);
    }

    fn store(&mut self, b: &mut Builder, scope: &mut Scope) {
        let (column, row, storage) = self.slot(b, scope, true);
        let value = match storage {
            Storage::I64 if self.pick(4) == 3 && self.rows == Rows::Any => {
                let op = self.of(&[AtomicOp::Add, AtomicOp::Min, AtomicOp::Max, AtomicOp::Xor]);
                let site = (op == AtomicOp::Add && self.pick(2) == 0).then_some(OVERFLOW);
                let value = self.operand(scope, Scalar::I64);
                return b.push(Stmt::Atomic { op, column, row, value, site });
            }
            Storage::I32 => Operand::I64(self.pick(1 << 8) as i64),
            Storage::I64 => self.operand(scope, Scalar::I64),
            Storage::F32 | Storage::F64 => self.operand(scope, Scalar::F64),
            // An object's id is always one.
            Storage::U32 => scope.own.1,
            // 0 or 1, since loads may ask for a Bool.
            Storage::U8 => self.operand(scope, Scalar::Bool),
        };
        b.store(column, row, value);
    }

    /// `i = 0; loop { break if i >= bound; …; i += 1 }`
    fn counted(&mut self, b: &mut Builder, scope: &mut Scope) {
        let i = b.var(Scalar::I64, Some("i".into()));
        let step = self.of(&[1, 2]);
        b.set(i, Operand::I64(0));
        let bound = match self.pick(3) {
            0 => Operand::I64(self.of(&[3, 0, 1, 5])),
            1 => b.i64(Op::Param(ParamId(0)), &[]),
            _ => {
                let any = self.operand(scope, Scalar::I64);
                b.i64(Op::And, &[any, Operand::I64(3)])
            }
        };
        let done = b.label();
        b.open();
        let end = b.icmp(Cmp::Ge, i.into(), bound);
        b.when(end, |b| b.push(Stmt::Break(done)));
        b.push(Stmt::Poll);
        scope.vars.push((Scalar::I64, i));
        scope.labels.push(done);
        b.block(|b, next| {
            scope.labels.push(next);
            self.statements(b, scope);
            scope.labels.retain(|l| *l != next);
        });
        scope.labels.retain(|l| *l != done);
        scope.vars.retain(|(_, v)| *v != i);
        b.push(if self.pick(2) == 0 {
            Stmt::Checked { dst: i, op: CheckedOp::Add, args: [i.into(), Operand::I64(step)], site: OVERFLOW }
        } else {
            Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(step)] }
        });
        let body = b.close();
        b.push(Stmt::Loop { label: done, body });
        scope.vars.push((Scalar::I64, i));
    }

    /// A loop that computes with what a reference leads to, and with a number, both of which change on rare ways.
    fn wander(&mut self, b: &mut Builder, scope: &mut Scope) {
        let [at, i] = [(Scalar::I32, "at"), (Scalar::I64, "i")].map(|(ty, name)| b.var(ty, Some(name.into())));
        let factor = b.var(Scalar::F64, Some("factor".into()));
        b.push(Stmt::Load { dst: at, column: REFS, row: scope.own.0 });
        let value = self.operand(scope, Scalar::F64);
        b.set(factor, value);
        b.set(i, Operand::I64(0));
        let (vars, mutable) = (scope.vars.len(), scope.mutable.len());
        scope.vars.extend([(Scalar::I64, i), (Scalar::F64, factor)]);
        if self.pick(3) == 2 {
            scope.mutable.push((Scalar::F64, factor));
        }
        let many = self.of(&[3, 7]);
        b.repeat(|b, done| {
            self.look(b, scope, at);
            if self.shape != Shape::Wandering || self.pick(4) == 3 {
                self.statements(b, scope);
            }
            let row = b.i64(Op::And, &[i.into(), Operand::I64(ROWS as i64 - 1)]);
            let any = b.load(Scalar::I64, IN, row);
            let turns = b.icmp(self.of(&[Cmp::Gt, Cmp::Ge, Cmp::Ne]), any, Operand::I64(0));
            b.when(turns, |b| {
                let known = scope.vars.len();
                if self.pick(2) == 1 {
                    self.look(b, scope, at);
                }
                let also = b.icmp(self.of(&[Cmp::Ne, Cmp::Gt, Cmp::Lt]), any, Operand::I64(self.pick(4) as i64));
                b.when(also, |b| {
                    let row = self.element_row(b, scope);
                    b.push(Stmt::Load { dst: at, column: REFS, row });
                    if self.pick(2) == 1 {
                        let value = self.operand(scope, Scalar::F64);
                        b.set(factor, value);
                    }
                });
                scope.vars.truncate(known);
            });
            if self.pick(2) == 1 {
                self.look(b, scope, at);
            }
            b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
            let end = b.icmp(Cmp::Ge, i.into(), Operand::I64(many));
            b.when(end, |b| b.push(Stmt::Break(done)));
        });
        scope.vars.truncate(vars);
        scope.mutable.truncate(mutable);
    }

    /// Computes with what a reference leads to, and stores what comes of it.
    fn look(&mut self, b: &mut Builder, scope: &mut Scope, at: VarId) {
        let mut value = b.load(Scalar::F64, WEIGHT, at.into());
        for _ in 0..self.pick(4) {
            let other = self.operand(scope, Scalar::F64);
            value = match self.pick(5) {
                0 => b.f64(Op::FMul, &[value, other]),
                1 => b.f64(Op::FSub, &[other, value]),
                2 => {
                    let less = b.fcmp(Cmp::Lt, value, other);
                    b.select(Scalar::F64, less, value, other)
                }
                _ => self.float(b, scope, value, other),
            };
            if let Operand::Var(v) = value {
                scope.vars.push((Scalar::F64, v));
            }
        }
        let (column, row) = self.of(&[(ColumnId(4), scope.own.0), (ColumnId(7), scope.own.1)]);
        b.store(column, row, value);
    }

    /// Leaves the block, the function or the job, if a condition holds.
    fn leave(&mut self, b: &mut Builder, scope: &mut Scope) {
        let cond = self.condition(b, scope);
        let way = self.pick(4);
        let stmt = match (&scope.results.clone(), way) {
            (Some(results), 0) => Stmt::Return(results.iter().map(|ty| self.operand(scope, *ty)).collect()),
            (_, 1) if self.pick(3) == 2 => {
                let operands = vec![self.operand(scope, Scalar::F64), self.operand(scope, Scalar::I64)];
                Stmt::Trap { site: DOMAIN, operands }
            }
            _ if scope.labels.is_empty() => Stmt::Poll,
            _ => Stmt::Break(self.of(&scope.labels.clone())),
        };
        if self.pick(3) == 2 && stmt != Stmt::Poll {
            // At the end of its list, without condition.
            b.push(stmt);
        } else {
            b.when(cond, |b| b.push(stmt));
        }
    }

    fn call(&mut self, b: &mut Builder, scope: &mut Scope) {
        let last = self.signatures.len() + 1;
        let callees = last + 1 - scope.callable.min(last);
        let callee = scope.callable.min(last) + self.pick(callees);
        if callee == last {
            let n = Operand::I64(self.of(&[0, 1, 5, 20]));
            let results = b.call(FuncId::new(callee), vec![n], &[Scalar::I64], Some(STACK));
            return self.keep(b, scope, Scalar::I64, results[0]);
        }
        let (params, results) = self.signatures[callee - 1].clone();
        let args = params.iter().map(|ty| self.operand(scope, *ty)).collect();
        let values = b.call(FuncId::new(callee), args, &results, None);
        for (ty, value) in results.into_iter().zip(values) {
            self.keep(b, scope, ty, value);
        }
    }
}
