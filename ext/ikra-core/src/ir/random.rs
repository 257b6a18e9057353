//! Random programs for tests: well formed, free of races, and with the same result on every machine.
//!
//! Here: [`Generated`], a program with columns to run it over. Not here: functions of libm (a GPU's are not the
//! host's), and bits of NaNs (which are not specified).
//!
//! Elements read any row of the first columns and write only their own row of the others. The last two columns are for
//! atomics, whose order does not matter.

use super::build::Builder;
use super::{
    AtomicOp, CheckedOp, Cmp, Column, ColumnId, Ctx, Func, FuncId, Jobs, Op, Operand, Param, ParamId, Program, Scalar,
    Site, SiteId, Space, Stmt, Storage, Trap, VarId, walk,
};
use crate::memory::column::HostColumn;
use crate::types::Repr;

/// A program and what to launch it with.
pub struct Generated {
    pub program: Program,
    pub columns: Vec<HostColumn>,
    pub biases: Vec<u64>,
    pub params: Vec<u64>,
    pub jobs: u64,
    pub ticks: u64,
}

const ROWS: usize = 37;
/// Ids of objects begin here.
const FIRST_ID: u64 = 11;

const READ: [(Storage, ColumnId); 6] = [
    (Storage::I64, ColumnId(0)),
    (Storage::F64, ColumnId(1)),
    (Storage::U8, ColumnId(2)),
    (Storage::U32, ColumnId(3)),
    (Storage::I32, ColumnId(4)),
    (Storage::F32, ColumnId(5)),
];
const SPEED: ColumnId = ColumnId(6);
const WRITTEN: [(Storage, ColumnId); 6] = [
    (Storage::I64, ColumnId(7)),
    (Storage::F64, ColumnId(8)),
    (Storage::U8, ColumnId(9)),
    (Storage::U32, ColumnId(10)),
    (Storage::I32, ColumnId(11)),
    (Storage::F32, ColumnId(12)),
];
const SUM: ColumnId = ColumnId(13);
const MAXIMUM: ColumnId = ColumnId(14);

const OVERFLOW: SiteId = SiteId(0);
const TRAPS: SiteId = SiteId(1);
const STACK: SiteId = SiteId(2);

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
    /// A small Integer, one at a limit, or any.
    fn integer(&mut self) -> i64 {
        match self.below(8) {
            0 => self.pick(&[i64::MIN, i64::MAX, i64::MIN + 1, 1 << 32, -(1 << 31), 1 << 62]),
            1 => self.next() as i64,
            2 => self.next() as i32 as i64,
            _ => self.next() as i64 % 20,
        }
    }
    fn float(&mut self) -> f64 {
        match self.below(6) {
            0 => self.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 5e-324, f64::MAX]),
            1 => f64::from_bits(self.next()),
            2 => self.integer() as f64 + 0.5,
            _ => (self.next() as i64 % 1000) as f64 / 8.0,
        }
    }
}

/// The `seed`-th program.
pub fn generate(seed: u64) -> Generated {
    let mut dice = Dice(seed);
    let functions = dice.below(4);
    let signatures: Vec<Signature> = (0..functions).map(|_| Signature::new(&mut dice)).collect();
    let mut funcs = vec![entry(&mut dice, &signatures)];
    for index in 0..functions {
        funcs.push(function(&mut dice, &signatures, index));
    }
    let column = |(i, (storage, space)): (usize, (Storage, Space))| {
        let written = i > SPEED.index();
        Column {
            name: format!("column{i}"),
            space,
            storage,
            refers: None,
            ranged: None,
            roundable: false,
            marks: None,
            read: true,
            written,
        }
    };
    let objects = Space::Class { hierarchy: 0, first: 0, last: 0 };
    let spaces = READ.iter().map(|c| (c.0, Space::Element)).chain([(Storage::F64, objects)]);
    let spaces = spaces.chain(WRITTEN.iter().map(|c| (c.0, Space::Element)));
    let spaces = spaces.chain([(Storage::I64, Space::Element); 2]);
    let mut uses_random = false;
    for func in &funcs {
        walk(&func.body, &mut |s| uses_random |= matches!(s, Stmt::Let { op: Op::Random, .. }));
    }
    let site = |trap, operands| Site { trap, path: "random.rb".into(), line: 1, operands };
    let program = Program {
        name: format!("random {seed}"),
        funcs,
        entry: FuncId(0),
        columns: spaces.enumerate().map(column).collect(),
        params: [Scalar::I64, Scalar::F64, Scalar::Bool, Scalar::I32]
            .map(|ty| Param::new(format!("{ty:?}"), ty))
            .into(),
        heaps: Vec::new(),
        strides: Vec::new(),
        extents: Vec::new(),
        sites: vec![
            site(Trap::IntegerOverflow("+"), vec![]),
            site(Trap::FloatDomain, vec![Repr::Int, Repr::Bool]),
            site(Trap::StackOverflow, vec![]),
        ],
        jobs: Jobs::Identity,
        few: dice.one_in(2),
        fused_ticks: dice.one_in(2),
        uses_random,
        rescued: Default::default(),
    };
    let mut columns: Vec<HostColumn> = program.columns.iter().map(|c| HostColumn::zeroed(c.storage, ROWS)).collect();
    for column in &mut columns {
        match column.storage() {
            Storage::I64 => column.view_mut::<i64>().fill_with(|| dice.integer()),
            Storage::F64 => column.view_mut::<f64>().fill_with(|| dice.float()),
            Storage::U8 => column.view_mut::<u8>().fill_with(|| dice.below(2) as u8),
            Storage::U32 => column.view_mut::<u32>().fill_with(|| dice.next() as u32),
            Storage::I32 => column.view_mut::<i32>().fill_with(|| dice.next() as i32),
            Storage::F32 => column.view_mut::<f32>().fill_with(|| dice.float() as f32),
        }
    }
    let mut biases = vec![0; columns.len()];
    biases[SPEED.index()] = FIRST_ID;
    let params =
        vec![dice.integer() as u64, dice.float().to_bits(), dice.next() & 1, i64::from(dice.next() as i32) as u64];
    let ticks = 1 + dice.below(3) as u64;
    Generated { program, columns, biases, params, jobs: ROWS as u64, ticks }
}

struct Signature {
    params: Vec<Scalar>,
    results: Vec<Scalar>,
    /// The function calls itself; its first parameter, an I64, says how often.
    recursive: bool,
}

impl Signature {
    fn new(dice: &mut Dice) -> Self {
        let mut types = |most: usize| (0..dice.below(most + 1)).map(|_| ty(dice)).collect::<Vec<_>>();
        let (mut params, results) = (types(3), types(2));
        let recursive = dice.one_in(3);
        if recursive {
            params.insert(0, Scalar::I64);
        }
        Self { params, results, recursive }
    }
}

fn ty(dice: &mut Dice) -> Scalar {
    dice.pick(&[Scalar::I64, Scalar::I64, Scalar::F64, Scalar::F64, Scalar::Bool, Scalar::I32])
}

fn entry(dice: &mut Dice, signatures: &[Signature]) -> Func {
    let mut b = Builder::new("entry".into(), Vec::new());
    let [job, begin, end] = ["job", "begin", "end"].map(|n| b.param(Scalar::I64, Some(n.into())));
    let tick = b.var(Scalar::I64, Some("tick".into()));
    b.set(tick, begin.into());
    b.repeat(|b, done| {
        let over = b.icmp(Cmp::Ge, tick.into(), end.into());
        b.when(over, |b| b.push(Stmt::Break(done)));
        b.push(Stmt::Begin { index: job.into(), tick: tick.into(), check: true });
        b.block(|b, next| {
            let mut writer =
                Writer { dice, signatures, first_callee: 0, left: 40, vars: Vec::new(), around: vec![next] };
            writer.list(b, 12);
            // All computed values are stored, so that all count.
            for (storage, column) in WRITTEN {
                let value = writer.stored(b, storage);
                let index = b.i64(Op::Ctx(Ctx::Index), &[]);
                b.store(column, index, value);
            }
        });
        let next = b.i64(Op::Add, &[tick.into(), Operand::I64(1)]);
        b.set(tick, next);
    });
    b.finish()
}

fn function(dice: &mut Dice, signatures: &[Signature], index: usize) -> Func {
    let signature = &signatures[index];
    let mut b = Builder::new(format!("callee{index}"), signature.results.clone());
    let params: Vec<VarId> =
        signature.params.iter().enumerate().map(|(i, ty)| b.param(*ty, Some(format!("p{i}").into()))).collect();
    let mut writer =
        Writer { dice, signatures, first_callee: index + 1, left: 12, vars: params.clone(), around: Vec::new() };
    if signature.recursive {
        writer.vars.remove(0);
        let left = b.icmp(Cmp::Gt, params[0].into(), Operand::I64(0));
        b.open();
        let less = b.i64(Op::Sub, &[params[0].into(), Operand::I64(1)]);
        let mut args = vec![less];
        args.extend(signature.params[1..].iter().map(|ty| writer.operand(&b, *ty)));
        let results = b.call(FuncId::new(index + 1), args, &signature.results, Some(STACK));
        b.push(Stmt::Return(results));
        let then = b.close();
        b.push(Stmt::If { cond: left, then, otherwise: Vec::new() });
    }
    writer.list(&mut b, 5);
    let values = signature.results.iter().map(|ty| writer.operand(&b, *ty)).collect();
    b.push(Stmt::Return(values));
    let mut func = b.finish();
    func.recursive = signature.recursive;
    func
}

struct Writer<'a> {
    dice: &'a mut Dice,
    signatures: &'a [Signature],
    /// Calls only reach functions from this one on, so that only the recursive ones recurse.
    first_callee: usize,
    /// The number of statements that may still be generated.
    left: usize,
    /// Registers that are assigned at this point.
    vars: Vec<VarId>,
    /// Blocks and loops around, which may be left.
    around: Vec<super::LabelId>,
}

impl Writer<'_> {
    fn list(&mut self, b: &mut Builder, most: usize) {
        let known = self.vars.len();
        for _ in 0..=self.dice.below(most) {
            if self.left == 0 || b.ended() {
                break;
            }
            self.left -= 1;
            self.statement(b);
        }
        if most < 8 {
            // Registers that an inner list assigned are not known to be assigned after it.
            self.vars.truncate(known);
        }
    }

    fn statement(&mut self, b: &mut Builder) {
        match self.dice.below(20) {
            0..7 => {
                let ty = ty(self.dice);
                let value = self.compute(b, ty);
                self.keep(b, ty, value);
            }
            7 | 8 => {
                let op = self.dice.pick(&[CheckedOp::Add, CheckedOp::Sub, CheckedOp::Mul, CheckedOp::And]);
                let (x, y) = (self.operand(b, Scalar::I64), Operand::I64(self.dice.next() as i64 % 5));
                let value = b.checked(op, x, y, OVERFLOW);
                self.keep(b, Scalar::I64, value);
            }
            9 | 10 => {
                let (storage, column) = self.dice.pick(&READ);
                let ty = loaded(storage);
                let row = self.row(b);
                let value = b.load(ty, column, row);
                self.keep(b, ty, value);
            }
            11 => {
                let row = self.row(b);
                let id = b.i64(Op::Add, &[row, Operand::I64(FIRST_ID as i64)]);
                let id = b.op(Scalar::I32, Op::Narrow, &[id]);
                let value = b.load(Scalar::F64, SPEED, id);
                self.keep(b, Scalar::F64, value);
            }
            12 => {
                let (storage, column) = self.dice.pick(&WRITTEN);
                let index = b.i64(Op::Ctx(Ctx::Index), &[]);
                if self.dice.one_in(2) {
                    let value = self.stored(b, storage);
                    b.store(column, index, value);
                } else {
                    let ty = loaded(storage);
                    let value = b.load(ty, column, index);
                    self.keep(b, ty, value);
                }
            }
            13 => {
                let (op, column) = self.dice.pick(&[(AtomicOp::Add, SUM), (AtomicOp::Max, MAXIMUM)]);
                let (row, value) = (self.row(b), self.operand(b, Scalar::I64));
                b.push(Stmt::Atomic { op, column, row, value, site: None });
            }
            14 | 15 => {
                let cond = self.operand(b, Scalar::Bool);
                b.open();
                self.list(b, 4);
                let then = b.close();
                b.open();
                if self.dice.one_in(2) {
                    self.list(b, 4);
                }
                let otherwise = b.close();
                b.push(Stmt::If { cond, then, otherwise });
            }
            16 => {
                let label = b.label();
                self.around.push(label);
                b.open();
                self.list(b, 5);
                let body = b.close();
                self.around.pop();
                b.push(Stmt::Block { label, body });
            }
            17 => self.counted_loop(b),
            18 => {
                if let Some(label) = self.around.last().copied()
                    && self.dice.one_in(2)
                {
                    let label = if self.dice.one_in(2) { label } else { self.dice.pick(&self.around.clone()) };
                    let cond = self.operand(b, Scalar::Bool);
                    b.when(cond, |b| b.push(Stmt::Break(label)));
                } else if self.dice.one_in(4) {
                    let (x, y) = (self.operand(b, Scalar::I64), self.operand(b, Scalar::I64));
                    let rare = b.i64(Op::And, &[x, Operand::I64(15)]);
                    let rare = b.icmp(Cmp::Eq, rare, Operand::I64(9));
                    let flag = self.operand(b, Scalar::Bool);
                    b.trap_if(rare, TRAPS, vec![y, flag]);
                }
            }
            _ => self.call(b),
        }
    }

    fn counted_loop(&mut self, b: &mut Builder) {
        let count = b.var(Scalar::I64, Some("count".into()));
        b.set(count, Operand::I64(0));
        let turns = self.dice.below(6) as i64;
        let label = b.label();
        b.open();
        b.push(Stmt::Poll);
        let over = b.icmp(Cmp::Ge, count.into(), Operand::I64(turns));
        b.when(over, |b| b.push(Stmt::Break(label)));
        let next = b.i64(Op::Add, &[count.into(), Operand::I64(1)]);
        b.set(count, next);
        self.around.push(label);
        self.list(b, 6);
        self.around.pop();
        let body = b.close();
        b.push(Stmt::Loop { label, body });
    }

    fn call(&mut self, b: &mut Builder) {
        if self.first_callee >= self.signatures.len() {
            return;
        }
        let callee = self.first_callee + self.dice.below(self.signatures.len() - self.first_callee);
        let signature = &self.signatures[callee];
        let mut args: Vec<Operand> = signature.params.iter().map(|ty| self.operand(b, *ty)).collect();
        if signature.recursive {
            args[0] = Operand::I64(self.dice.below(9) as i64);
        }
        let depth = signature.recursive.then_some(STACK);
        for value in b.call(FuncId::new(callee + 1), args, &signature.results.clone(), depth) {
            if let Operand::Var(v) = value {
                self.vars.push(v);
            }
        }
    }

    /// Assigns a value to a new register, or to an old one.
    fn keep(&mut self, b: &mut Builder, ty: Scalar, value: Operand) {
        let old = self.known(b, ty);
        if !old.is_empty() && self.dice.one_in(3) {
            b.set(self.dice.pick(&old), value);
        } else if self.dice.one_in(2) {
            let var = b.var(ty, Some(["x", "größe", "_y", "z?"][self.dice.below(4)].into()));
            b.set(var, value);
            self.vars.push(var);
        } else if let Operand::Var(v) = value {
            self.vars.push(v);
        }
    }

    fn known(&self, b: &Builder, ty: Scalar) -> Vec<VarId> {
        self.vars.iter().copied().filter(|v| b.ty(Operand::Var(*v)) == ty).collect()
    }

    fn operand(&mut self, b: &Builder, ty: Scalar) -> Operand {
        let known = self.known(b, ty);
        if !known.is_empty() && !self.dice.one_in(5) {
            // The newest registers are used most often, so that values flow on.
            let at = if self.dice.one_in(2) { known.len() - 1 } else { self.dice.below(known.len()) };
            return Operand::Var(known[at]);
        }
        match ty {
            Scalar::Bool => Operand::Bool(self.dice.one_in(2)),
            Scalar::I32 => Operand::I32(self.dice.integer() as i32),
            Scalar::I64 => Operand::I64(self.dice.integer()),
            Scalar::F64 => Operand::float(self.dice.float()),
        }
    }

    /// A row of an element column.
    fn row(&mut self, b: &mut Builder) -> Operand {
        let x = self.operand(b, Scalar::I64);
        b.i64(Op::URem, &[x, Operand::I64(ROWS as i64)])
    }

    fn stored(&mut self, b: &mut Builder, storage: Storage) -> Operand {
        match storage {
            Storage::U8 if self.dice.one_in(2) => {
                let tag = self.operand(b, Scalar::I32);
                b.op(Scalar::I32, Op::And, &[tag, Operand::I32(1)])
            }
            Storage::I32 => {
                let number = self.operand(b, Scalar::I64);
                b.i64(Op::And, &[number, Operand::I64(i32::MAX.into())])
            }
            storage => self.operand(b, loaded(storage)),
        }
    }

    /// The result of a random operation.
    fn compute(&mut self, b: &mut Builder, ty: Scalar) -> Operand {
        match ty {
            Scalar::I64 => self.compute_i64(b),
            Scalar::F64 => self.compute_f64(b),
            Scalar::I32 => self.compute_i32(b),
            Scalar::Bool => self.compute_bool(b),
        }
    }

    fn compute_i64(&mut self, b: &mut Builder) -> Operand {
        use Op::*;
        let (x, y) = (self.operand(b, Scalar::I64), self.operand(b, Scalar::I64));
        match self.dice.below(16) {
            0..4 => {
                let op = self.dice.pick(&[Add, Sub, Mul, MulHi, UMulHi, And, Or, Xor]);
                b.i64(op, &[x, y])
            }
            4 => {
                let amount = b.i64(And, &[y, Operand::I64(63)]);
                let op = self.dice.pick(&[Shl, Shr, UShr]);
                b.i64(op, &[x, amount])
            }
            5 => {
                let by = b.i64(And, &[y, Operand::I64(i64::MAX >> self.dice.below(63))]);
                let by = b.i64(Or, &[by, Operand::I64(2)]);
                let op = self.dice.pick(&[Div, Rem, UDiv, URem]);
                b.i64(op, &[x, by])
            }
            6 => {
                let by = self.dice.pick(&[-7, 2, 10, 1 << 40, -2, i64::MIN, 3]);
                let op = self.dice.pick(&[Div, Rem, UDiv, URem]);
                b.i64(op, &[x, Operand::I64(by)])
            }
            7 => {
                let m = self.dice.pick(&[1, 7, 1_000_000_007, i64::MAX, 1 << 32]);
                let op = self.dice.pick(&[MulMod, AddMod]);
                b.i64(op, &[x, y, Operand::I64(m)])
            }
            8 => b.i64(Clz, &[x]),
            9 => {
                let x = self.finite(b, 9e18);
                b.i64(FloatToInt, &[x])
            }
            10 => {
                let x = self.no_nan(b);
                b.i64(FloatBits, &[x])
            }
            11 => {
                let x = match self.dice.pick(&[true, false]) {
                    true => self.operand(b, Scalar::I32),
                    false => {
                        let x = self.no_nan(b);
                        b.op(Scalar::I32, SingleBits, &[x])
                    }
                };
                b.i64(Widen, &[x])
            }
            12 => {
                let x = self.operand(b, Scalar::Bool);
                b.i64(BoolToInt, &[x])
            }
            13 => {
                let cond = self.operand(b, Scalar::Bool);
                b.select(Scalar::I64, cond, x, y)
            }
            14 => {
                b.i64(self.dice.pick(&[Op::Ctx(super::Ctx::Tick), Op::Ctx(super::Ctx::Index), Param(ParamId(0))]), &[])
            }
            _ => b.i64(Random, &[]),
        }
    }

    fn compute_f64(&mut self, b: &mut Builder) -> Operand {
        use Op::*;
        let (x, y) = (self.operand(b, Scalar::F64), self.operand(b, Scalar::F64));
        match self.dice.below(12) {
            0..4 => {
                let op = self.dice.pick(&[FAdd, FSub, FMul, FDiv, FRem]);
                b.f64(op, &[x, y])
            }
            // as `precision: :f32` computes
            10 | 11 => {
                let [x, y] = [x, y].map(|operand| b.f64(FSingle, &[operand]));
                let result = match self.dice.below(5) {
                    4 => b.f64(FSqrt, &[x]),
                    _ => {
                        let op = self.dice.pick(&[FAdd, FSub, FMul, FDiv]);
                        b.f64(op, &[x, y])
                    }
                };
                b.f64(FSingle, &[result])
            }
            4 | 5 => {
                let op = self.dice.pick(&[FNeg, FAbs, FSqrt, FFloor, FCeil, FTrunc, FRint, FRound, FSingle]);
                b.f64(op, &[x])
            }
            6 => {
                let y = self.no_nan(b);
                let op = self.dice.pick(&[FNextAfter, FCopySign]);
                b.f64(op, &[x, y])
            }
            7 => {
                let i = self.operand(b, Scalar::I64);
                b.f64(IntToFloat, &[i])
            }
            8 => {
                let cond = self.operand(b, Scalar::Bool);
                b.select(Scalar::F64, cond, x, y)
            }
            _ => b.f64(Param(ParamId(1)), &[]),
        }
    }

    fn compute_i32(&mut self, b: &mut Builder) -> Operand {
        use Op::*;
        let (x, y) = (self.operand(b, Scalar::I32), self.operand(b, Scalar::I32));
        let op = self.dice.pick(&[
            Add,
            Sub,
            Mul,
            And,
            Or,
            Xor,
            Shl,
            Shr,
            UShr,
            Div,
            URem,
            Narrow,
            BoolToInt,
            Param(ParamId(3)),
        ]);
        let args = match op {
            Shl | Shr | UShr => vec![x, b.op(Scalar::I32, And, &[y, Operand::I32(31)])],
            Div | URem => vec![x, Operand::I32(self.dice.pick(&[3, -5, 1 << 20]))],
            Narrow => vec![self.operand(b, Scalar::I64)],
            BoolToInt => vec![self.operand(b, Scalar::Bool)],
            Param(_) => vec![],
            _ => vec![x, y],
        };
        b.op(Scalar::I32, op, &args)
    }

    fn compute_bool(&mut self, b: &mut Builder) -> Operand {
        use Op::*;
        let cmp = self.dice.pick(&[Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge]);
        let (ty, op) = self.dice.pick(&[
            (Scalar::I64, ICmp(cmp)),
            (Scalar::I64, UCmp(cmp)),
            (Scalar::I32, ICmp(cmp)),
            (Scalar::I32, UCmp(cmp)),
            (Scalar::F64, FCmp(cmp)),
            (Scalar::F64, FCmp(cmp)),
            (Scalar::Bool, And),
            (Scalar::Bool, Or),
            (Scalar::Bool, Xor),
            (Scalar::Bool, ICmp(Cmp::Eq)),
            (Scalar::Bool, Not),
            (Scalar::Bool, Param(ParamId(2))),
        ]);
        let count = match op {
            Not => 1,
            Param(_) => 0,
            _ => 2,
        };
        let args: Vec<Operand> = (0..count).map(|_| self.operand(b, ty)).collect();
        b.bool(op, &args)
    }

    /// A Float that is not NaN.
    fn no_nan(&mut self, b: &mut Builder) -> Operand {
        let x = self.operand(b, Scalar::F64);
        let number = b.fcmp(Cmp::Eq, x, x);
        b.select(Scalar::F64, number, x, Operand::float(-1.5))
    }

    /// A Float with a magnitude below `limit`.
    fn finite(&mut self, b: &mut Builder, limit: f64) -> Operand {
        let x = self.operand(b, Scalar::F64);
        let magnitude = b.f64(Op::FAbs, &[x]);
        let fits = b.fcmp(Cmp::Lt, magnitude, Operand::float(limit));
        b.select(Scalar::F64, fits, x, Operand::float(0.0))
    }
}

fn loaded(storage: Storage) -> Scalar {
    match storage {
        Storage::U8 => Scalar::Bool,
        Storage::U32 => Scalar::I32,
        Storage::I32 | Storage::I64 => Scalar::I64,
        Storage::F32 | Storage::F64 => Scalar::F64,
    }
}

/// Whether columns hold the same values; all NaNs count as equal.
pub fn same(a: &[HostColumn], b: &[HostColumn]) -> bool {
    a.iter().zip(b).all(|(a, b)| match a.storage() {
        Storage::F64 => {
            let pairs = a.view::<f64>().iter().zip(b.view::<f64>());
            pairs.into_iter().all(|(x, y)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan())
        }
        Storage::F32 => {
            let pairs = a.view::<f32>().iter().zip(b.view::<f32>());
            pairs.into_iter().all(|(x, y)| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan())
        }
        _ => a == b,
    })
}

#[test]
fn random_programs_are_well_formed() {
    for seed in 0..2_000 {
        super::verify::verify(&generate(seed).program).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    }
}
