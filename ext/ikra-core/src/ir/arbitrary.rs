//! Random well-formed programs, and columns for them: what backends and passes are compared over.
//!
//! Here: [`program`] and [`columns`], each a function of a seed. A program keeps every rule of [`super::verify`] and
//! every precondition of an operation, ends, and gives the same whatever the order of its jobs: elements write only
//! rows of their own, and touch shared rows only by atomic operations that nobody reads.
//!
//! NaNs are equal whatever their bits, so none is ever looked at bit by bit.

use super::build::Builder;
use super::{
    AtomicOp, CheckedOp, Cmp, Column, ColumnId, Ctx, Func, FuncId, Jobs, LabelId, MathFn, Op, Operand, Param, ParamId,
    Program, Scalar, Site, SiteId, Space, Stmt, Storage, Trap, VarId,
};
use crate::memory::column::HostColumn;
use crate::types::Repr;

/// Rows of every column but those of atomics.
pub const ROWS: usize = 40;

/// Columns that elements own, then one that all read, then one for each atomic operation.
const OWN: [(Storage, Scalar); 6] = [
    (Storage::I64, Scalar::I64),
    (Storage::F64, Scalar::F64),
    (Storage::U8, Scalar::Bool),
    (Storage::U8, Scalar::I32),
    (Storage::U32, Scalar::I32),
    (Storage::I64, Scalar::I64),
];
const SHARED: [(Storage, Scalar); 3] =
    [(Storage::I64, Scalar::I64), (Storage::F64, Scalar::F64), (Storage::U32, Scalar::I32)];
const ATOMICS: [AtomicOp; 6] =
    [AtomicOp::Add, AtomicOp::Min, AtomicOp::Max, AtomicOp::And, AtomicOp::Or, AtomicOp::Xor];
/// Column of objects with ids from 100.
const OBJECTS: ColumnId = ColumnId((OWN.len() + SHARED.len() + ATOMICS.len()) as u32);
/// First id of the objects.
pub const FIRST_OBJECT: u64 = 100;

const SCALARS: [Scalar; 4] = [Scalar::Bool, Scalar::I32, Scalar::I64, Scalar::F64];
const CMPS: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge];
/// Sites without operands; one with an Integer and a Float; one for calls.
const PLAIN: [SiteId; 3] = [SiteId(0), SiteId(1), SiteId(2)];
const DESCRIBED: SiteId = SiteId(3);
const STACK: SiteId = SiteId(4);

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
    fn int(&mut self) -> i64 {
        match self.below(6) {
            0 => self.pick(&[0, 1, -1, i64::MAX, i64::MIN, 1 << 32, -(1 << 31)]),
            1 => self.next() as i64,
            2 => self.next() as i32 as i64,
            _ => self.below(40) as i64 - 10,
        }
    }
    fn float(&mut self) -> f64 {
        match self.below(6) {
            0 => self.pick(&[0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, 5e-324, 0.5, 2.5]),
            1 => f64::from_bits(self.next()),
            _ => (self.below(4000) as f64 - 1000.0) / 8.0,
        }
    }
}

/// Content for a program's columns.
pub fn columns(program: &Program, seed: u64) -> Vec<HostColumn> {
    let mut random = Random(seed);
    let mut fill = |column: &Column| {
        let mut rows = HostColumn::zeroed(column.storage, ROWS);
        match column.storage {
            Storage::U8 => rows.view_mut::<u8>().iter_mut().for_each(|r| *r = random.below(2) as u8),
            Storage::U32 => rows.view_mut::<u32>().iter_mut().for_each(|r| *r = random.next() as u32 >> 3),
            Storage::I64 => rows.view_mut::<i64>().iter_mut().for_each(|r| *r = random.int()),
            Storage::F64 => rows.view_mut::<f64>().iter_mut().for_each(|r| *r = random.float()),
        }
        rows
    };
    program.columns.iter().map(&mut fill).collect()
}

/// What the rows of each column count from.
pub fn biases(program: &Program) -> Vec<u64> {
    let bias = |column: &Column| if matches!(column.space, Space::Class { .. }) { FIRST_OBJECT } else { 0 };
    program.columns.iter().map(bias).collect()
}

/// Words for a program's parameters.
pub fn params(seed: u64) -> Vec<u64> {
    let mut random = Random(seed ^ 1);
    vec![random.next() & 1, i64::from(random.next() as i32) as u64, random.int() as u64, random.float().to_bits()]
}

/// A program of about `size` statements.
pub fn program(seed: u64, size: usize) -> Program {
    let mut random = Random(seed);
    let callees = random.below(4);
    let fused_ticks = random.one_in(2);
    let funcs = functions(&mut random, callees, size);
    let own = OWN.iter().map(|(storage, _)| (*storage, Space::Element, true, true));
    let shared = SHARED.iter().map(|(storage, _)| (*storage, Space::Element, true, false));
    let atomics = ATOMICS.iter().map(|_| (Storage::I64, Space::Element, true, true));
    let objects = [(Storage::F64, Space::Class { hierarchy: 0, first: 0, last: 0 }, true, true)];
    let all = own.chain(shared).chain(atomics).chain(objects);
    Program {
        name: format!("program {seed}"),
        funcs,
        entry: FuncId(0),
        columns: all
            .enumerate()
            .map(|(i, (storage, space, read, written))| Column { name: format!("c{i}"), space, storage, read, written })
            .collect(),
        params: SCALARS.iter().map(|ty| Param { name: format!("{ty:?}").to_lowercase(), ty: *ty }).collect(),
        sites: [vec![], vec![], vec![], vec![Repr::Int, Repr::Float], vec![]]
            .into_iter()
            .map(|operands| Site { trap: Trap::FloatDomain, path: "random.rb".into(), line: 1, operands })
            .collect(),
        jobs: Jobs::Identity,
        fused_ticks,
        uses_random: true,
    }
}

/// Parameters and results of a function that may be called.
#[derive(Clone)]
struct Signature {
    id: FuncId,
    params: Vec<Scalar>,
    results: Vec<Scalar>,
    recursive: bool,
}

fn functions(random: &mut Random, callees: usize, size: usize) -> Vec<Func> {
    let scalars = |random: &mut Random, n: usize| (0..n).map(|_| random.pick(&SCALARS)).collect::<Vec<_>>();
    // A function calls only those after it, and perhaps itself.
    let signatures: Vec<Signature> = (1..=callees)
        .map(|id| {
            let (params, results) = (random.below(4), random.below(4));
            let recursive = random.one_in(3);
            let mut params = scalars(random, params);
            if recursive {
                params.insert(0, Scalar::I64);
            }
            Signature { id: FuncId::new(id), params, results: scalars(random, results), recursive }
        })
        .collect();
    let mut funcs = vec![entry(random, &signatures, size)];
    for (i, signature) in signatures.iter().enumerate() {
        funcs.push(callee(random, signature, &signatures[i + 1..], size / 2));
    }
    funcs
}

fn entry(random: &mut Random, callees: &[Signature], size: usize) -> Func {
    let mut b = Builder::new("entry".into(), Vec::new());
    let [job, begin, end] = ["job", "begin", "end"].map(|name| b.param(Scalar::I64, Some(name.into())));
    let tick = b.var(Scalar::I64, Some("tick".into()));
    b.set(tick, begin.into());
    b.repeat(|b, done| {
        let over = b.icmp(Cmp::Ge, tick.into(), end.into());
        b.when(over, |b| b.push(Stmt::Break(done)));
        b.push(Stmt::Begin { index: job.into(), tick: tick.into(), check: random.one_in(2) });
        b.block(|b, label| {
            let mut maker = Maker::new(random, callees, Operand::Var(job), size);
            maker.labels.push(label);
            maker.list(b, 0);
        });
        let next = b.i64(Op::Add, &[tick.into(), Operand::I64(1)]);
        b.set(tick, next);
    });
    b.finish()
}

fn callee(random: &mut Random, signature: &Signature, callees: &[Signature], size: usize) -> Func {
    let mut b = Builder::new(format!("{}", signature.id), signature.results.clone());
    let params: Vec<VarId> = signature.params.iter().map(|ty| b.param(*ty, None)).collect();
    let index = b.i64(Op::Ctx(Ctx::Index), &[]);
    let mut maker = Maker::new(random, callees, index, size);
    maker.results = Some(signature.results.clone());
    for (v, ty) in params.iter().zip(&signature.params) {
        maker.scope.push((*v, *ty));
    }
    maker.list(&mut b, 0);
    if signature.recursive {
        let fewer = b.i64(Op::Sub, &[params[0].into(), Operand::I64(1)]);
        let more = b.icmp(Cmp::Gt, fewer, Operand::I64(0));
        let small = b.icmp(Cmp::Lt, fewer, Operand::I64(50));
        let again = b.bool(Op::And, &[more, small]);
        b.when(again, |b| {
            let mut args = vec![fewer];
            args.extend(signature.params[1..].iter().map(|ty| maker.operand(*ty)));
            b.call(signature.id, args, &signature.results, Some(STACK));
        });
    }
    let results = signature.results.iter().map(|ty| maker.operand(*ty)).collect();
    b.push(Stmt::Return(results));
    let mut func = b.finish();
    func.recursive = signature.recursive;
    func
}

/// Appends random statements.
struct Maker<'a> {
    random: &'a mut Random,
    callees: &'a [Signature],
    /// The element's index.
    index: Operand,
    /// Registers that are surely assigned.
    scope: Vec<(VarId, Scalar)>,
    /// Blocks that may be left.
    labels: Vec<LabelId>,
    /// What a function returns; none in the entry.
    results: Option<Vec<Scalar>>,
    left: usize,
}

impl<'a> Maker<'a> {
    fn new(random: &'a mut Random, callees: &'a [Signature], index: Operand, size: usize) -> Self {
        Self { random, callees, index, scope: Vec::new(), labels: Vec::new(), results: None, left: size }
    }

    fn operand(&mut self, ty: Scalar) -> Operand {
        let known: Vec<VarId> = self.scope.iter().filter(|(_, t)| *t == ty).map(|(v, _)| *v).collect();
        if !known.is_empty() && !self.random.one_in(4) {
            // Rather one of the last.
            let back = self.random.below(known.len()).min(self.random.below(known.len()));
            return known[known.len() - 1 - back].into();
        }
        match ty {
            Scalar::Bool => Operand::Bool(self.random.one_in(2)),
            Scalar::I32 => Operand::I32(self.random.int() as i32),
            Scalar::I64 => Operand::I64(self.random.int()),
            Scalar::F64 => Operand::float(self.random.float()),
        }
    }

    fn list(&mut self, b: &mut Builder, depth: usize) {
        let known = self.scope.len();
        for _ in 0..1 + self.random.below(8) {
            if self.left == 0 || b.ended() {
                break;
            }
            self.left -= 1;
            self.statement(b, depth);
        }
        if depth > 0 {
            self.scope.truncate(known);
        }
    }

    fn keep(&mut self, value: Operand, ty: Scalar) {
        if let Operand::Var(v) = value {
            self.scope.push((v, ty));
        }
    }

    fn statement(&mut self, b: &mut Builder, depth: usize) {
        match self.random.below(24) {
            0 | 1 if depth < 4 => {
                let cond = self.operand(Scalar::Bool);
                b.open();
                self.list(b, depth + 1);
                let then = b.close();
                b.open();
                if self.random.one_in(2) {
                    self.list(b, depth + 1);
                }
                let otherwise = b.close();
                let over =
                    |list: &[Stmt]| matches!(list.last(), Some(Stmt::Break(_) | Stmt::Return(_) | Stmt::Trap { .. }));
                // Where neither side goes on, nothing may follow.
                let otherwise = if over(&then) && over(&otherwise) { Vec::new() } else { otherwise };
                b.push(Stmt::If { cond, then, otherwise });
            }
            2 if depth < 4 => b.block(|b, label| {
                self.labels.push(label);
                self.list(b, depth + 1);
                self.labels.pop();
            }),
            3 if depth < 3 => self.counted(b, depth),
            4 if !self.labels.is_empty() && depth > 0 => {
                let label = self.random.pick(&self.labels.clone());
                b.push(Stmt::Break(label));
            }
            5 if depth > 0 && self.random.one_in(3) => {
                if let Some(results) = self.results.clone() {
                    let values = results.iter().map(|ty| self.operand(*ty)).collect();
                    b.push(Stmt::Return(values));
                }
            }
            6 if self.random.one_in(3) => {
                let cond = self.operand(Scalar::Bool);
                let operands = vec![self.operand(Scalar::I64), self.operand(Scalar::F64)];
                let described = self.random.one_in(2);
                let site = if described { DESCRIBED } else { self.random.pick(&PLAIN) };
                b.trap_if(cond, site, if described { operands } else { Vec::new() });
            }
            7 if !self.callees.is_empty() => {
                let callee = &self.callees[self.random.below(self.callees.len())];
                let args = callee.params.iter().map(|ty| self.operand(*ty)).collect();
                let depth = callee.recursive.then_some(STACK);
                let results = b.call(callee.id, args, &callee.results, depth);
                for (value, ty) in results.into_iter().zip(&callee.results) {
                    self.keep(value, *ty);
                }
            }
            8 | 9 => {
                let (a, c) = (self.operand(Scalar::I64), self.operand(Scalar::I64));
                let op = self.random.pick(&[CheckedOp::Add, CheckedOp::Sub, CheckedOp::Mul]);
                // Small operands: that most sums fit.
                let small = |b: &mut Builder, x| b.i64(Op::Shr, &[x, Operand::I64(20)]);
                let (a, c) = if self.random.one_in(8) { (a, c) } else { (small(b, a), c) };
                let c = if self.random.one_in(4) { c } else { small(b, c) };
                let site = self.random.pick(&PLAIN);
                let value = b.checked(op, a, c, site);
                self.keep(value, Scalar::I64);
            }
            10 | 11 => {
                let column = self.random.below(OWN.len());
                let value = self.operand(OWN[column].1);
                b.store(ColumnId::new(column), self.index, value);
            }
            12 | 13 => {
                let column = self.random.below(OWN.len() + SHARED.len());
                let ty = OWN.iter().chain(&SHARED).nth(column).expect("a column").1;
                let row = if column < OWN.len() { self.index } else { self.row(b) };
                let value = b.load(ty, ColumnId::new(column), row);
                self.keep(value, ty);
            }
            14 => {
                let op = self.random.below(ATOMICS.len());
                let value = self.operand(Scalar::I64);
                let value = b.i64(Op::And, &[value, Operand::I64(0xffff)]);
                let row = self.row(b);
                let column = ColumnId::new(OWN.len() + SHARED.len() + op);
                b.push(Stmt::Atomic { op: ATOMICS[op], column, row, value, site: None });
            }
            15 => {
                let id = b.op(Scalar::I32, Op::Narrow, &[self.index]);
                let id = b.op(Scalar::I32, Op::Add, &[id, Operand::I32(FIRST_OBJECT as i32)]);
                if self.random.one_in(2) {
                    let value = b.load(Scalar::F64, OBJECTS, id);
                    self.keep(value, Scalar::F64);
                } else {
                    let value = self.operand(Scalar::F64);
                    b.store(OBJECTS, id, value);
                }
            }
            16 | 17 if !self.scope.is_empty() => {
                // Assigned a second time.
                let (v, ty) = self.random.pick(&self.scope.clone());
                let value = self.operand(ty);
                b.set(v, value);
            }
            _ => {
                let ty = self.random.pick(&SCALARS);
                let value = self.operation(b, ty);
                self.keep(value, ty);
            }
        }
    }

    /// A row of a shared column.
    fn row(&mut self, b: &mut Builder) -> Operand {
        let row = self.operand(Scalar::I64);
        b.i64(Op::URem, &[row, Operand::I64(ROWS as i64)])
    }

    /// A loop of a few rounds.
    fn counted(&mut self, b: &mut Builder, depth: usize) {
        let i = b.temp(Scalar::I64);
        b.set(i, Operand::I64(0));
        let rounds = Operand::I64(self.random.below(6) as i64);
        b.repeat(|b, label| {
            let over = b.icmp(Cmp::Ge, i.into(), rounds);
            b.when(over, |b| b.push(Stmt::Break(label)));
            if self.random.one_in(2) {
                b.push(Stmt::Poll);
            }
            let next = b.i64(Op::Add, &[i.into(), Operand::I64(1)]);
            b.set(i, next);
            let seen = b.op(Scalar::I64, Op::Copy, &[i.into()]);
            self.keep(seen, Scalar::I64);
            self.labels.push(label);
            self.list(b, depth + 1);
            self.labels.pop();
            self.scope.pop();
        });
    }

    /// A value of a type, by an operation whose preconditions are seen to.
    fn operation(&mut self, b: &mut Builder, ty: Scalar) -> Operand {
        let cmp = self.random.pick(&CMPS);
        match ty {
            Scalar::Bool => match self.random.below(6) {
                0 => {
                    let args = [self.operand(Scalar::F64), self.operand(Scalar::F64)];
                    b.fcmp(cmp, args[0], args[1])
                }
                1 => {
                    let op = self.random.pick(&[Op::And, Op::Or, Op::Xor, Op::ICmp(Cmp::Eq), Op::ICmp(Cmp::Ne)]);
                    let args = [self.operand(ty), self.operand(ty)];
                    b.bool(op, &args)
                }
                2 => {
                    let arg = self.operand(ty);
                    b.bool(Op::Not, &[arg])
                }
                3 => self.select(b, ty),
                _ => {
                    let of = self.random.pick(&[Scalar::I32, Scalar::I64]);
                    let op = self.random.pick(&[Op::ICmp(cmp), Op::UCmp(cmp)]);
                    let args = [self.operand(of), self.operand(of)];
                    b.bool(op, &args)
                }
            },
            Scalar::I32 => match self.random.below(6) {
                0 => {
                    let arg = self.operand(Scalar::I64);
                    b.op(ty, Op::Narrow, &[arg])
                }
                1 => {
                    let arg = self.operand(Scalar::Bool);
                    b.op(ty, Op::BoolToInt, &[arg])
                }
                2 => self.select(b, ty),
                3 => b.op(ty, Op::Param(ParamId(1)), &[]),
                _ => self.integer(b, ty),
            },
            Scalar::I64 => match self.random.below(12) {
                0 => {
                    let arg = self.operand(Scalar::I32);
                    b.i64(Op::Widen, &[arg])
                }
                1 => {
                    let arg = self.operand(Scalar::Bool);
                    b.i64(Op::BoolToInt, &[arg])
                }
                2 => self.select(b, ty),
                3 => {
                    let arg = self.number(b);
                    b.i64(Op::FloatBits, &[arg])
                }
                4 => {
                    let arg = self.number(b);
                    let size = b.f64(Op::FAbs, &[arg]);
                    let fits = b.fcmp(Cmp::Lt, size, Operand::float(9e18));
                    let arg = b.select(Scalar::F64, fits, arg, Operand::float(-1.5));
                    b.i64(Op::FloatToInt, &[arg])
                }
                5 => b.i64(Op::Random, &[]),
                6 => {
                    let what = self.random.pick(&[Op::Ctx(Ctx::Tick), Op::Ctx(Ctx::Index), Op::Param(ParamId(2))]);
                    b.i64(what, &[])
                }
                7 => {
                    let m = self.operand(ty);
                    let m = b.i64(Op::And, &[m, Operand::I64(i64::MAX)]);
                    let m = b.i64(Op::Or, &[m, Operand::I64(1)]);
                    let op = self.random.pick(&[Op::MulMod, Op::AddMod]);
                    let args = [self.operand(ty), self.operand(ty), m];
                    b.i64(op, &args)
                }
                8 => {
                    let op = self.random.pick(&[Op::MulHi, Op::UMulHi]);
                    let args = [self.operand(ty), self.operand(ty)];
                    b.i64(op, &args)
                }
                9 => {
                    let arg = self.operand(ty);
                    b.i64(Op::Clz, &[arg])
                }
                _ => self.integer(b, ty),
            },
            Scalar::F64 => match self.random.below(8) {
                0 => {
                    let arg = self.operand(Scalar::I64);
                    b.f64(Op::IntToFloat, &[arg])
                }
                1 => {
                    let arg = self.operand(Scalar::I64);
                    b.f64(Op::FloatFromBits, &[arg])
                }
                2 => self.select(b, ty),
                3 => b.f64(Op::Param(ParamId(3)), &[]),
                4 => {
                    let op = self.random.pick(&[
                        Op::FNeg,
                        Op::FAbs,
                        Op::FSqrt,
                        Op::FFloor,
                        Op::FCeil,
                        Op::FTrunc,
                        Op::FRint,
                        Op::FRound,
                        Op::Math(MathFn::Sin),
                        Op::Math(MathFn::Exp),
                    ]);
                    let arg = self.operand(ty);
                    b.f64(op, &[arg])
                }
                5 => {
                    let (size, sign) = (self.operand(ty), self.number(b));
                    b.f64(Op::FCopySign, &[size, sign])
                }
                _ => {
                    let op = self.random.pick(&[
                        Op::FAdd,
                        Op::FSub,
                        Op::FMul,
                        Op::FDiv,
                        Op::FRem,
                        Op::FNextAfter,
                        Op::Math(MathFn::Pow),
                    ]);
                    let args = [self.operand(ty), self.operand(ty)];
                    b.f64(op, &args)
                }
            },
        }
    }

    fn select(&mut self, b: &mut Builder, ty: Scalar) -> Operand {
        let cond = self.operand(Scalar::Bool);
        let args = [self.operand(ty), self.operand(ty)];
        b.select(ty, cond, args[0], args[1])
    }

    /// A Float that is not NaN.
    fn number(&mut self, b: &mut Builder) -> Operand {
        let x = self.operand(Scalar::F64);
        let ordered = b.fcmp(Cmp::Eq, x, x);
        b.select(Scalar::F64, ordered, x, Operand::float(1.25))
    }

    fn integer(&mut self, b: &mut Builder, ty: Scalar) -> Operand {
        let constant = |i: i64| if ty == Scalar::I32 { Operand::I32(i as i32) } else { Operand::I64(i) };
        let bits = if ty == Scalar::I32 { 31 } else { 63 };
        let (x, mut y) = (self.operand(ty), self.operand(ty));
        let op = self.random.pick(&[
            Op::Add,
            Op::Sub,
            Op::Mul,
            Op::And,
            Op::Or,
            Op::Xor,
            Op::Shl,
            Op::Shr,
            Op::UShr,
            Op::Div,
            Op::Rem,
            Op::UDiv,
            Op::URem,
        ]);
        match op {
            Op::Shl | Op::Shr | Op::UShr => y = b.op(ty, Op::And, &[y, constant(bits)]),
            Op::Div | Op::Rem | Op::UDiv | Op::URem => {
                // Neither 0 nor -1.
                y = match self.random.below(3) {
                    0 => constant(self.random.pick(&[1, 2, 3, 7, 10, 64, -2, -8, 1000])),
                    1 => {
                        let even = b.op(ty, Op::And, &[y, constant(-2)]);
                        b.op(ty, Op::Or, &[even, constant(2)])
                    }
                    _ => {
                        let small = b.op(ty, Op::And, &[y, constant(0xff)]);
                        b.op(ty, Op::Or, &[small, constant(1)])
                    }
                };
            }
            _ => {}
        }
        b.op(ty, op, &[x, y])
    }
}
