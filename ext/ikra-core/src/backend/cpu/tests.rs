//! Programs built by hand, run on this backend, and compared with what the IR's documentation promises.

use super::{CpuBackend, CpuExecutable};
use crate::backend::collective::emitted::{Combine, Emitted, Grouping};
use crate::backend::reference::ReferenceBackend;
use crate::backend::{Backend, CancelToken, Key, Launch, Outcome, Timings, own, philox};
use crate::config::CodeOptions;
use crate::ir::build::Builder;
use crate::ir::testing::over_elements;
use crate::ir::{
    AtomicOp, CheckedOp, Cmp, Column, ColumnId, Ctx, Func, FuncId, Jobs, MathFn, Op, Operand, Param, ParamId, Program,
    Scalar, Site, SiteId, Space, Stmt, Storage, Trap, Var, VarId,
};
use crate::ir::{random, verify};
use crate::layout::Layout;
use crate::memory::column::HostColumn;
use crate::passes;
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

static BACKEND: LazyLock<CpuBackend> = LazyLock::new(|| CpuBackend::with_threads(4).expect("this host is supported"));

fn column(storage: Storage) -> Column {
    Column {
        name: format!("{storage:?}"),
        space: Space::Element,
        storage,
        refers: None,
        ranged: None,
        roundable: false,
        marks: None,
        read: true,
        written: true,
    }
}

fn site() -> Site {
    Site { trap: Trap::ZeroDivision, path: "test.rb".to_owned(), line: 1, operands: Vec::new() }
}

fn program(funcs: Vec<Func>, columns: &[Storage], fused_ticks: bool) -> Program {
    Program {
        name: "test".to_owned(),
        funcs,
        entry: FuncId(0),
        columns: columns.iter().map(|storage| column(*storage)).collect(),
        params: Vec::new(),
        heaps: Vec::new(),
        strides: Vec::new(),
        extents: Vec::new(),
        sites: (0..8).map(|_| site()).collect(),
        jobs: Jobs::Identity,
        few: false,
        fused_ticks,
        uses_random: false,
        rescued: Default::default(),
    }
}

/// An entry that runs all ticks of a job. `body` gets the index and the tick.
fn entry(check: bool, body: impl FnOnce(&mut Builder, Operand, Operand)) -> Func {
    let mut b = Builder::new("entry".to_owned(), Vec::new());
    let [job, begin, end] = [(); 3].map(|()| b.param(Scalar::I64, None));
    let tick = b.temp(Scalar::I64);
    b.set(tick, begin.into());
    b.repeat(|b, done| {
        let over = b.icmp(Cmp::Ge, tick.into(), end.into());
        b.when(over, |b| b.push(Stmt::Break(done)));
        b.push(Stmt::Begin { index: job.into(), tick: tick.into(), check });
        // `next` in the Ruby block leaves this block
        b.block(|b, _| body(b, job.into(), tick.into()));
        let next = b.i64(Op::Add, &[tick.into(), Operand::I64(1)]);
        b.set(tick, next);
    });
    b.finish()
}

/// As [`entry`], with the test at the end of the loop, as passes produce it.
fn rotated_entry(body: impl FnOnce(&mut Builder, Operand, Operand)) -> Func {
    let mut b = Builder::new("entry".to_owned(), Vec::new());
    let [job, begin, end] = [(); 3].map(|()| b.param(Scalar::I64, None));
    let tick = b.temp(Scalar::I64);
    b.set(tick, begin.into());
    let some = b.icmp(Cmp::Lt, begin.into(), end.into());
    b.when(some, |b| {
        b.repeat(|b, done| {
            b.push(Stmt::Begin { index: job.into(), tick: tick.into(), check: false });
            b.block(|b, _| body(b, job.into(), tick.into()));
            b.push(Stmt::Let { dst: tick, op: Op::Add, args: vec![tick.into(), Operand::I64(1)] });
            let over = b.icmp(Cmp::Ge, tick.into(), end.into());
            b.when(over, |b| b.push(Stmt::Break(done)));
        });
    });
    b.finish()
}

struct Run<'a> {
    program: &'a Program,
    columns: Vec<HostColumn>,
    params: Vec<u64>,
    biases: Vec<u64>,
    jobs: u64,
    ticks: u64,
    limit: Key,
    cancel: Arc<CancelToken>,
    block_size: Option<u32>,
    /// What a job takes for a tick, as known from earlier launches.
    cost: Option<Duration>,
}

impl<'a> Run<'a> {
    fn new(program: &'a Program, columns: Vec<HostColumn>, jobs: u64) -> Self {
        Self {
            program,
            biases: vec![0; columns.len()],
            columns,
            params: Vec::new(),
            jobs,
            ticks: 1,
            limit: Key::NONE,
            cancel: Arc::default(),
            block_size: None,
            cost: None,
        }
    }
    fn on(mut self, backend: &CpuBackend) -> (Outcome, Vec<HostColumn>) {
        let layout = Layout::structure_of_arrays(self.program);
        let executable = backend.prepare(self.program, &layout, &CodeOptions::default()).expect("it compiles");
        if let Some(cost) = self.cost {
            let own = own::<CpuExecutable>(&*executable, "cpu").expect("it is of this backend");
            own.code.cost().set(cost, 1, 1);
        }
        let mut timings = Timings::default();
        let plain = Launch::of(self.jobs, &mut self.columns, &self.biases, &self.params, &self.cancel, &mut timings);
        let (seed, section) = (0x1234_5678_9abc_def0, 7);
        let Self { ticks, limit, block_size, .. } = self;
        let launch = Launch { ticks, seed, section, limit, block_size, ..plain };
        let outcome = backend.launch(&*executable, launch).expect("the machine works");
        (outcome, self.columns)
    }
    fn run(self) -> (Outcome, Vec<HostColumn>) {
        self.on(&BACKEND)
    }
}

fn i64s(values: &[i64]) -> HostColumn {
    let mut column = HostColumn::zeroed(Storage::I64, values.len());
    column.view_mut::<i64>().copy_from_slice(values);
    column
}

fn f64s(values: &[f64]) -> HostColumn {
    let mut column = HostColumn::zeroed(Storage::F64, values.len());
    column.view_mut::<f64>().copy_from_slice(values);
    column
}

fn storage(scalar: Scalar) -> Storage {
    match scalar {
        Scalar::Bool => Storage::U8,
        Scalar::I32 => Storage::U32,
        Scalar::I64 => Storage::I64,
        Scalar::F64 => Storage::F64,
    }
}

/// A column with these low bits in its rows.
fn rows(scalar: Scalar, bits: &[u64]) -> HostColumn {
    let mut column = HostColumn::zeroed(storage(scalar), bits.len());
    match scalar {
        Scalar::Bool => column.view_mut::<u8>().iter_mut().zip(bits).for_each(|(row, bits)| *row = *bits as u8 & 1),
        Scalar::I32 => column.view_mut::<u32>().iter_mut().zip(bits).for_each(|(row, bits)| *row = *bits as u32),
        Scalar::I64 | Scalar::F64 => column.view_mut::<u64>().copy_from_slice(bits),
    }
    column
}

fn bits(column: &HostColumn) -> Vec<u64> {
    match column.storage() {
        Storage::U8 => column.view::<u8>().iter().map(|row| u64::from(*row)).collect(),
        Storage::U32 | Storage::I32 | Storage::F32 => column.view::<u32>().iter().map(|row| u64::from(*row)).collect(),
        Storage::I64 | Storage::F64 => column.view::<u64>().to_vec(),
    }
}

/// The bits of each result of `op` over rows of arguments. Runs once with arguments from columns, and once with
/// constants.
fn apply(op: Op, types: &[Scalar], result: Scalar, args: &[Vec<u64>]) -> Vec<u64> {
    let results = apply_to_columns(op, types, result, args);
    let constant = |ty: Scalar, bits: u64| match ty {
        Scalar::Bool => Operand::Bool(bits & 1 == 1),
        Scalar::I32 => Operand::I32(bits as i32),
        Scalar::I64 => Operand::I64(bits as i64),
        Scalar::F64 => Operand::F64(bits),
    };
    let body = |b: &mut Builder, _, _| {
        for (i, args) in args.iter().enumerate() {
            let args: Vec<Operand> = types.iter().zip(args).map(|(ty, bits)| constant(*ty, *bits)).collect();
            let value = b.op(result, op, &args);
            b.store(ColumnId(0), Operand::I64(i as i64), value);
        }
    };
    let program = program(vec![entry(false, body)], &[storage(result)], false);
    let (_, columns) = Run::new(&program, vec![HostColumn::zeroed(storage(result), args.len())], 1).run();
    assert_eq!(bits(&columns[0]), results, "{op:?} over constants");
    results
}

fn apply_to_columns(op: Op, types: &[Scalar], result: Scalar, args: &[Vec<u64>]) -> Vec<u64> {
    let mut storages: Vec<Storage> = types.iter().map(|ty| storage(*ty)).collect();
    storages.push(storage(result));
    let body = |b: &mut Builder, index: Operand, _| {
        let args: Vec<Operand> = types.iter().enumerate().map(|(i, ty)| b.load(*ty, ColumnId::new(i), index)).collect();
        let value = b.op(result, op, &args);
        b.store(ColumnId::new(types.len()), index, value);
    };
    let program = program(vec![entry(false, body)], &storages, false);
    let n = args.len();
    let mut columns: Vec<HostColumn> =
        types.iter().enumerate().map(|(i, ty)| rows(*ty, &args.iter().map(|a| a[i]).collect::<Vec<_>>())).collect();
    columns.push(HostColumn::zeroed(storage(result), n));
    let (outcome, columns) = Run::new(&program, columns, n as u64).run();
    assert_eq!(outcome, Outcome::Done);
    bits(&columns[types.len()])
}

const INTS: [i64; 17] =
    [0, 1, -1, 2, -2, 3, 7, -7, 10, 63, 255, 1 << 32, -(1 << 33), 1 << 62, i64::MAX, i64::MIN, i64::MIN + 1];

fn floats() -> Vec<f64> {
    let mut floats = vec![
        0.0,
        0.5,
        0.499_999_999_999_999_94,
        1.0,
        1.5,
        2.5,
        3.7,
        1e-300,
        5e-324,
        1e15,
        4_503_599_627_370_495.5,
        4_503_599_627_370_497.0,
        9e15,
        1e300,
        f64::MAX,
        f64::INFINITY,
    ];
    floats.extend(floats.clone().iter().map(|x| -x));
    floats.push(f64::NAN);
    floats
}

fn pairs<T: Copy>(values: &[T], bits: impl Fn(T) -> u64) -> Vec<Vec<u64>> {
    values.iter().flat_map(|a| values.iter().map(|b| vec![bits(*a), bits(*b)]).collect::<Vec<_>>()).collect()
}

fn int2(op: Op, keep: impl Fn(i64, i64) -> bool, expected: impl Fn(i64, i64) -> i64) {
    let args: Vec<Vec<u64>> =
        pairs(&INTS, |x| x as u64).into_iter().filter(|a| keep(a[0] as i64, a[1] as i64)).collect();
    let results = apply(op, &[Scalar::I64, Scalar::I64], Scalar::I64, &args);
    for (a, r) in args.iter().zip(results) {
        assert_eq!(r as i64, expected(a[0] as i64, a[1] as i64), "{op:?} of {} and {}", a[0] as i64, a[1] as i64);
    }
}

fn int2_narrow(op: Op, keep: impl Fn(i32, i32) -> bool, expected: impl Fn(i32, i32) -> i32) {
    let values = [0, 1, -1, 2, -3, 7, 31, 1 << 16, i32::MAX, i32::MIN];
    let args: Vec<Vec<u64>> =
        pairs(&values, |x| u64::from(x as u32)).into_iter().filter(|a| keep(a[0] as i32, a[1] as i32)).collect();
    let results = apply(op, &[Scalar::I32, Scalar::I32], Scalar::I32, &args);
    for (a, r) in args.iter().zip(results) {
        assert_eq!(r as i32, expected(a[0] as i32, a[1] as i32), "{op:?} of {} and {}", a[0] as i32, a[1] as i32);
    }
}

fn float1(op: Op, expected: impl Fn(f64) -> f64) {
    let args: Vec<Vec<u64>> = floats().iter().map(|x| vec![x.to_bits()]).collect();
    let results = apply(op, &[Scalar::F64], Scalar::F64, &args);
    for (a, r) in args.iter().zip(results) {
        let x = f64::from_bits(a[0]);
        same(op, &[x], f64::from_bits(r), expected(x));
    }
}

fn float2(op: Op, expected: impl Fn(f64, f64) -> f64) {
    let args = pairs(&floats(), f64::to_bits);
    let results = apply(op, &[Scalar::F64, Scalar::F64], Scalar::F64, &args);
    for (a, r) in args.iter().zip(results) {
        let [x, y] = [a[0], a[1]].map(f64::from_bits);
        same(op, &[x, y], f64::from_bits(r), expected(x, y));
    }
}

/// Equal to the bit, except for the sign and payload of NaNs.
fn same(op: Op, args: &[f64], result: f64, expected: f64) {
    assert!(
        result.to_bits() == expected.to_bits() || result.is_nan() && expected.is_nan(),
        "{op:?} of {args:?} is {result:?}, not {expected:?}"
    );
}

#[test]
fn integer_arithmetic_wraps() {
    let any = |_, _| true;
    int2(Op::Add, any, i64::wrapping_add);
    int2(Op::Sub, any, i64::wrapping_sub);
    int2(Op::Mul, any, i64::wrapping_mul);
    int2(Op::MulHi, any, |a, b| ((i128::from(a) * i128::from(b)) >> 64) as i64);
    int2(Op::UMulHi, any, |a, b| ((u128::from(a as u64) * u128::from(b as u64)) >> 64) as i64);
    let divides = |a, b| b != 0 && !(a == i64::MIN && b == -1);
    int2(Op::Div, divides, |a, b| a / b);
    int2(Op::Rem, divides, |a, b| a % b);
    int2(Op::UDiv, |_, b| b != 0, |a, b| (a as u64 / b as u64) as i64);
    int2(Op::URem, |_, b| b != 0, |a, b| (a as u64 % b as u64) as i64);
    int2(Op::And, any, |a, b| a & b);
    int2(Op::Or, any, |a, b| a | b);
    int2(Op::Xor, any, |a, b| a ^ b);
    let shifts = |_, b| (0..64).contains(&b);
    int2(Op::Shl, shifts, |a, b| a << b);
    int2(Op::Shr, shifts, |a, b| a >> b);
    int2(Op::UShr, shifts, |a, b| (a as u64 >> b) as i64);

    let any = |_, _| true;
    int2_narrow(Op::Add, any, i32::wrapping_add);
    int2_narrow(Op::Sub, any, i32::wrapping_sub);
    int2_narrow(Op::Mul, any, i32::wrapping_mul);
    int2_narrow(Op::Div, |a, b| b != 0 && !(a == i32::MIN && b == -1), |a, b| a / b);
    int2_narrow(Op::Rem, |a, b| b != 0 && !(a == i32::MIN && b == -1), |a, b| a % b);
    int2_narrow(Op::UDiv, |_, b| b != 0, |a, b| (a as u32 / b as u32) as i32);
    int2_narrow(Op::URem, |_, b| b != 0, |a, b| (a as u32 % b as u32) as i32);
    int2_narrow(Op::Xor, any, |a, b| a ^ b);
    let shifts = |_, b| (0..32).contains(&b);
    int2_narrow(Op::Shl, shifts, |a, b| a << b);
    int2_narrow(Op::Shr, shifts, |a, b| a >> b);
    int2_narrow(Op::UShr, shifts, |a, b| (a as u32 >> b) as i32);

    let args: Vec<Vec<u64>> = INTS.iter().map(|x| vec![*x as u64]).collect();
    let results = apply(Op::Clz, &[Scalar::I64], Scalar::I64, &args);
    assert_eq!(results, INTS.map(|x| u64::from(x.leading_zeros())));
}

#[test]
fn modular_arithmetic_is_exact() {
    let mut args = Vec::new();
    for pair in pairs(&INTS, |x| x as u64) {
        for m in INTS.into_iter().filter(|m| *m > 0) {
            args.push(vec![pair[0], pair[1], m as u64]);
        }
    }
    type Modular = fn(i128, i128, i128) -> i128;
    let types = [Scalar::I64; 3];
    for (op, expected) in
        [(Op::MulMod, (|a, b, m| (a * b).rem_euclid(m)) as Modular), (Op::AddMod, |a, b, m| (a + b).rem_euclid(m))]
    {
        for (a, r) in args.iter().zip(apply(op, &types, Scalar::I64, &args)) {
            let [x, y, m] = [a[0], a[1], a[2]].map(|x| x as i64);
            assert_eq!(i128::from(r as i64), expected(x.into(), y.into(), m.into()), "{op:?} of {x}, {y}, {m}");
        }
    }
}

#[test]
fn comparisons() {
    type Holds = fn(std::cmp::Ordering) -> bool;
    let cmps: [(Cmp, Holds); 6] = [
        (Cmp::Eq, |o| o.is_eq()),
        (Cmp::Ne, |o| o.is_ne()),
        (Cmp::Lt, |o| o.is_lt()),
        (Cmp::Le, |o| o.is_le()),
        (Cmp::Gt, |o| o.is_gt()),
        (Cmp::Ge, |o| o.is_ge()),
    ];
    for (cmp, expected) in cmps {
        let args = pairs(&INTS, |x| x as u64);
        let results = apply(Op::ICmp(cmp), &[Scalar::I64; 2], Scalar::Bool, &args);
        for (a, r) in args.iter().zip(results) {
            assert_eq!(r == 1, expected((a[0] as i64).cmp(&(a[1] as i64))));
        }
        let results = apply(Op::UCmp(cmp), &[Scalar::I64; 2], Scalar::Bool, &args);
        for (a, r) in args.iter().zip(results) {
            assert_eq!(r == 1, expected(a[0].cmp(&a[1])));
        }
        let ids = pairs(&[0u32, 1, 5, 1 << 31, u32::MAX], u64::from);
        let results = apply(Op::UCmp(cmp), &[Scalar::I32; 2], Scalar::Bool, &ids);
        for (a, r) in ids.iter().zip(results) {
            assert_eq!(r == 1, expected((a[0] as u32).cmp(&(a[1] as u32))));
        }
        let args = pairs(&floats(), f64::to_bits);
        let results = apply(Op::FCmp(cmp), &[Scalar::F64; 2], Scalar::Bool, &args);
        for (a, r) in args.iter().zip(results) {
            let [x, y] = [a[0], a[1]].map(f64::from_bits);
            assert_eq!(r == 1, x.partial_cmp(&y).map_or(cmp == Cmp::Ne, expected), "{cmp:?} of {x} and {y}");
        }
    }
}

#[test]
fn float_arithmetic_is_that_of_c() {
    float2(Op::FAdd, |a, b| a + b);
    float2(Op::FSub, |a, b| a - b);
    float2(Op::FMul, |a, b| a * b);
    float2(Op::FDiv, |a, b| a / b);
    float2(Op::FRem, |a, b| a % b);
    float2(Op::FCopySign, f64::copysign);
    float2(Op::FNextAfter, |a, b| match a.partial_cmp(&b) {
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        Some(std::cmp::Ordering::Less) => a.next_up(),
        Some(std::cmp::Ordering::Greater) => a.next_down(),
        _ => b,
    });
    float2(Op::Math(MathFn::Pow), |a, b| crate::backend::libm::pow(a, b));
    float2(Op::Math(MathFn::Atan2), f64::atan2);
    float2(Op::Math(MathFn::Hypot), f64::hypot);
    float1(Op::FNeg, |a| -a);
    float1(Op::FAbs, f64::abs);
    float1(Op::FSqrt, f64::sqrt);
    float1(Op::FFloor, f64::floor);
    float1(Op::FCeil, f64::ceil);
    float1(Op::FTrunc, f64::trunc);
    float1(Op::FRint, f64::round_ties_even);
    float1(Op::FRound, f64::round);
    float1(Op::FSingle, |a| f64::from(a as f32));
    for f in crate::backend::libm::ALL {
        if let crate::backend::libm::Function::One(function) = crate::backend::libm::function(f) {
            float1(Op::Math(f), |x| function(x));
        }
    }
    let args: Vec<Vec<u64>> = vec![vec![1.5f64.to_bits(), 3], vec![1.0f64.to_bits(), (-5i64) as u64]];
    let results = apply(Op::Math(MathFn::Ldexp), &[Scalar::F64, Scalar::I64], Scalar::F64, &args);
    assert_eq!(results, [12.0f64.to_bits(), 0.03125f64.to_bits()]);
}

proptest! {
    #[test]
    fn fmod_and_round_are_exact_everywhere(values in prop::collection::vec(any::<(u64, u64)>(), 200)) {
        let args: Vec<Vec<u64>> = values.iter().map(|(a, b)| vec![*a, *b]).collect();
        for (a, r) in args.iter().zip(apply_to_columns(Op::FRem, &[Scalar::F64; 2], Scalar::F64, &args)) {
            let [x, y] = [a[0], a[1]].map(f64::from_bits);
            same(Op::FRem, &[x, y], f64::from_bits(r), x % y);
        }
        // quotients of up to 53 bits, close to integers, where the rounded one may be too large
        let close = |(a, b): &(u64, u64)| {
            let y = f64::from_bits(b >> 12 | (1000 + b % 50) << 52);
            let x = (y * (a >> (11 + a % 53)) as f64).to_bits();
            [x, x.wrapping_sub(1), x + 1].map(|x| vec![x, (y * if b % 2 == 0 { 1.0 } else { -1.0 }).to_bits()])
        };
        let args: Vec<Vec<u64>> = values.iter().flat_map(close).collect();
        for (a, r) in args.iter().zip(apply_to_columns(Op::FRem, &[Scalar::F64; 2], Scalar::F64, &args)) {
            let [x, y] = [a[0], a[1]].map(f64::from_bits);
            same(Op::FRem, &[x, y], f64::from_bits(r), crate::backend::libm::fmod(x, y));
        }
        let args: Vec<Vec<u64>> = values.iter().map(|(a, b)| vec![(*a as i32 as f64 / 2.0 + (*b % 3) as f64 * 1e-16).to_bits()]).collect();
        for (a, r) in args.iter().zip(apply_to_columns(Op::FRound, &[Scalar::F64], Scalar::F64, &args)) {
            let x = f64::from_bits(a[0]);
            same(Op::FRound, &[x], f64::from_bits(r), x.round());
        }
    }

    #[test]
    fn checked_arithmetic_traps_exactly_when_it_overflows(a in wide(), b in wide()) {
        for (op, expected) in [
            (CheckedOp::Add, a.checked_add(b)),
            (CheckedOp::Sub, a.checked_sub(b)),
            (CheckedOp::Mul, a.checked_mul(b)),
            (CheckedOp::And, Some(a & b).filter(|bits| *bits >= 0)),
        ] {
            // each side once from a column and once as a constant
            for (left, right) in [(true, true), (true, false), (false, true), (false, false)] {
                let body = |block: &mut Builder, index: Operand, _| {
                    let x = if left { Operand::I64(a) } else { block.load(Scalar::I64, ColumnId(0), index) };
                    let y = if right { Operand::I64(b) } else { block.load(Scalar::I64, ColumnId(1), index) };
                    let value = block.checked(op, x, y, SiteId(3));
                    block.store(ColumnId(2), index, value);
                };
                let program = program(vec![entry(false, body)], &[Storage::I64; 3], false);
                let (outcome, columns) = Run::new(&program, vec![i64s(&[a]), i64s(&[b]), i64s(&[0])], 1).run();
                match expected {
                    Some(value) => {
                        prop_assert_eq!(outcome, Outcome::Done);
                        prop_assert_eq!(columns[2].view::<i64>()[0], value, "{:?} {} {}", op, a, b);
                    }
                    None => {
                        let Outcome::Trapped(trap) = outcome else { panic!("{op:?} of {a} and {b} overflows") };
                        prop_assert_eq!((trap.key, trap.site), (Key::new(0, 0), SiteId(3)));
                    }
                }
            }
        }
    }
}

fn answer(program: &Program, over: &random::Generated, backend: &dyn Backend) -> (Outcome, Vec<HostColumn>) {
    let layout = Layout::structure_of_arrays(program);
    let executable = backend.prepare(program, &layout, &CodeOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let mut columns = over.columns.clone();
    let (cancel, mut timings) = (CancelToken::default(), Timings::default());
    let plain = Launch::of(over.jobs, &mut columns, &over.biases, &over.params, &cancel, &mut timings);
    let launch = Launch { ticks: over.ticks, seed: 1, section: 1, ..plain };
    let outcome = backend.launch(&*executable, launch).unwrap_or_else(|e| panic!("{e}\n{program}"));
    (outcome, columns)
}

proptest! {
    #[test]
    fn random_programs_do_as_the_interpreter_does(seed in any::<u64>()) {
        let generated = random::generate(seed);
        let expected = answer(&generated.program, &generated, &ReferenceBackend::default());
        let (outcome, columns) = answer(&generated.program, &generated, &*BACKEND);
        prop_assert_eq!(outcome, expected.0, "{}", generated.program);
        prop_assert!(outcome != Outcome::Done || random::same(&columns, &expected.1), "{}", generated.program);
    }
}

/// Rounds what a random program loads from its columns of 64-bit Floats and stores there, as with `precision: :f32`.
fn with_rounded_columns(program: &mut Program) {
    fn list(func: &mut Func, body: &mut Vec<Stmt>, rounds: &dyn Fn(ColumnId) -> bool) {
        for mut stmt in std::mem::take(body) {
            stmt.bodies_mut().into_iter().flatten().for_each(|inner| list(func, inner, rounds));
            let mut exact = || {
                func.vars.push(Var { ty: Scalar::F64, name: None });
                VarId::new(func.vars.len() - 1)
            };
            match stmt {
                Stmt::Load { dst, column, row } if rounds(column) => {
                    let loaded = exact();
                    body.push(Stmt::Load { dst: loaded, column, row });
                    body.push(Stmt::Let { dst, op: Op::FSingle, args: vec![loaded.into()] });
                }
                Stmt::Store { column, row, value } if rounds(column) => {
                    let rounded = exact();
                    body.push(Stmt::Let { dst: rounded, op: Op::FSingle, args: vec![value] });
                    body.push(Stmt::Store { column, row, value: rounded.into() });
                }
                other => body.push(other),
            }
        }
    }
    program.columns.iter_mut().for_each(|column| column.roundable = column.storage == Storage::F64);
    let roundable: Vec<bool> = program.columns.iter().map(|column| column.roundable).collect();
    for func in &mut program.funcs {
        let mut body = std::mem::take(&mut func.body);
        list(func, &mut body, &|column| roundable[column.index()]);
        func.body = body;
    }
}

proptest! {
    /// The host fills and reads narrowed columns as the bridge does. More programs with `PROPTEST_CASES=50000`.
    #[test]
    fn random_programs_with_narrowed_columns_do_the_same(seed in any::<u64>()) {
        let mut generated = random::generate(seed);
        with_rounded_columns(&mut generated.program);
        let expected = answer(&generated.program, &generated, &ReferenceBackend::default());
        let pass = passes::COMMON.iter().find(|pass| pass.name == "narrow_floats").expect("a common pass");
        let program = (pass.run)(generated.program.clone());
        let mut narrow = random::Generated { program, ..random::generate(seed) };
        let program = &narrow.program;
        verify::verify(program).unwrap_or_else(|e| panic!("{e}"));
        for (at, column) in program.columns.iter().enumerate() {
            if at >= narrow.columns.len() {
                narrow.columns.push(HostColumn::zeroed(column.storage, generated.columns[0].len()));
                let owner = program.columns.iter().position(|other| other.marks == Some(ColumnId::new(at)));
                narrow.biases.push(narrow.biases[owner.expect("all new columns are marks")]);
            } else if column.storage != narrow.columns[at].storage() {
                let rows: Vec<f32> = narrow.columns[at].view::<f64>().iter().map(|x| *x as f32).collect();
                narrow.columns[at] = HostColumn::zeroed(Storage::F32, rows.len());
                narrow.columns[at].view_mut::<f32>().copy_from_slice(&rows);
            }
        }
        for backend in [&ReferenceBackend::default() as &dyn Backend, &*BACKEND] {
            let (outcome, mut columns) = answer(&narrow.program, &narrow, backend);
            for (at, before) in generated.columns.iter().enumerate() {
                if columns[at].storage() == before.storage() {
                    continue;
                }
                let mut wide = before.clone();
                if let Some(marks) = program.columns[at].marks {
                    let rows = columns[at].view::<f32>().iter().zip(columns[marks.index()].view::<u8>());
                    for (wide, (row, _)) in wide.view_mut::<f64>().iter_mut().zip(rows).filter(|(_, (_, mark))| **mark != 0) {
                        *wide = f64::from(*row);
                    }
                }
                columns[at] = wide;
            }
            prop_assert_eq!(&outcome, &expected.0, "{}", program);
            prop_assert!(outcome != Outcome::Done || random::same(&columns, &expected.1), "{}", program);
        }
    }
}

fn wide() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -4i64..4, Just(i64::MAX), Just(i64::MIN), any::<i32>().prop_map(i64::from)]
}

#[test]
fn conversions_and_choices() {
    let ints: Vec<Vec<u64>> = INTS.iter().map(|x| vec![*x as u64]).collect();
    for (x, r) in INTS.iter().zip(apply(Op::IntToFloat, &[Scalar::I64], Scalar::F64, &ints)) {
        assert_eq!(f64::from_bits(r), *x as f64);
    }
    for (x, r) in INTS.iter().zip(apply(Op::Narrow, &[Scalar::I64], Scalar::I32, &ints)) {
        assert_eq!(r as u32, *x as u32);
    }
    let floats: Vec<f64> = floats().into_iter().filter(|x| x.abs() < 9e18).chain([i64::MIN as f64]).collect();
    let args: Vec<Vec<u64>> = floats.iter().map(|x| vec![x.to_bits()]).collect();
    for (x, r) in floats.iter().zip(apply(Op::FloatToInt, &[Scalar::F64], Scalar::I64, &args)) {
        assert_eq!(r as i64, *x as i64);
    }
    assert_eq!(apply(Op::FloatBits, &[Scalar::F64], Scalar::I64, &args), args.concat());
    assert_eq!(apply(Op::FloatFromBits, &[Scalar::I64], Scalar::F64, &args), args.concat());
    let ids: Vec<Vec<u64>> = [0u64, 5, 1 << 31, u64::from(u32::MAX)].iter().map(|x| vec![*x]).collect();
    assert_eq!(apply(Op::Widen, &[Scalar::I32], Scalar::I64, &ids), ids.concat());
    let bools = vec![vec![0], vec![1]];
    assert_eq!(apply(Op::BoolToInt, &[Scalar::Bool], Scalar::I64, &bools), [0, 1]);
    assert_eq!(apply(Op::BoolToInt, &[Scalar::Bool], Scalar::I32, &bools), [0, 1]);
    assert_eq!(apply(Op::Not, &[Scalar::Bool], Scalar::Bool, &bools), [1, 0]);
    let both = pairs(&[0u64, 1], |x| x);
    assert_eq!(apply(Op::And, &[Scalar::Bool; 2], Scalar::Bool, &both), [0, 0, 0, 1]);
    assert_eq!(apply(Op::Or, &[Scalar::Bool; 2], Scalar::Bool, &both), [0, 1, 1, 1]);
    assert_eq!(apply(Op::Xor, &[Scalar::Bool; 2], Scalar::Bool, &both), [0, 1, 1, 0]);
    assert_eq!(apply(Op::ICmp(Cmp::Eq), &[Scalar::Bool; 2], Scalar::Bool, &both), [1, 0, 0, 1]);
    for ty in [Scalar::Bool, Scalar::I32, Scalar::I64, Scalar::F64] {
        let args = vec![vec![1, 1, 0], vec![0, 1, 0]];
        assert_eq!(apply(Op::Select, &[Scalar::Bool, ty, ty], ty, &args), [1, 0]);
        assert_eq!(apply(Op::Copy, &[ty], ty, &[vec![1]]), [1]);
    }
}

#[test]
fn tags_and_flags_are_bytes() {
    let body = |b: &mut Builder, index: Operand, _| {
        let tag = b.load(Scalar::I32, ColumnId(0), index);
        let flag = b.load(Scalar::Bool, ColumnId(1), index);
        let tag = b.op(Scalar::I32, Op::Add, &[tag, Operand::I32(-1)]);
        let flag = b.bool(Op::Not, &[flag]);
        b.store(ColumnId(0), index, tag);
        b.store(ColumnId(1), index, flag);
    };
    let program = program(vec![entry(false, body)], &[Storage::U8; 2], false);
    let mut columns = vec![HostColumn::zeroed(Storage::U8, 3), HostColumn::zeroed(Storage::U8, 3)];
    columns[0].view_mut::<u8>().copy_from_slice(&[1, 255, 128]);
    columns[1].view_mut::<u8>().copy_from_slice(&[0, 1, 0]);
    let (_, columns) = Run::new(&program, columns, 3).run();
    assert_eq!(columns[0].view::<u8>(), [0, 254, 127]);
    assert_eq!(columns[1].view::<u8>(), [1, 0, 1]);
}

#[test]
fn rows_count_from_the_bias() {
    let body = |b: &mut Builder, index: Operand, _| {
        let id = b.op(Scalar::I32, Op::Narrow, &[index]);
        let id = b.op(Scalar::I32, Op::Add, &[id, Operand::I32(-5)]);
        let value = b.load(Scalar::F64, ColumnId(0), id);
        let value = b.f64(Op::FMul, &[value, Operand::float(2.0)]);
        b.store(ColumnId(0), id, value);
    };
    let program = program(vec![entry(false, body)], &[Storage::F64], false);
    let mut run = Run::new(&program, vec![f64s(&[1.0, 2.0, 3.0])], 3);
    // ids are unsigned: -5 is close to 2^32
    run.biases[0] = u64::from(u32::MAX - 4);
    assert_eq!(run.run().1[0].view::<f64>(), [2.0, 4.0, 6.0]);
}

#[test]
fn parameters_of_every_type() {
    let types = [Scalar::Bool, Scalar::I32, Scalar::I64, Scalar::F64];
    let body = |b: &mut Builder, index: Operand, _| {
        for (i, ty) in types.into_iter().enumerate() {
            let value = b.op(ty, Op::Param(ParamId::new(i)), &[]);
            b.store(ColumnId::new(i), index, value);
        }
    };
    let mut program = program(vec![entry(false, body)], &types.map(storage), false);
    program.params = types.map(|ty| Param::new("p", ty)).to_vec();
    let mut run = Run::new(&program, types.map(|ty| HostColumn::zeroed(storage(ty), 2)).to_vec(), 2);
    run.params = vec![1, -7i64 as u64, i64::MIN as u64, 0.1f64.to_bits()];
    let (_, columns) = run.run();
    let rows: Vec<u64> = columns.iter().map(|column| bits(column)[1]).collect();
    assert_eq!(rows, [1, u64::from(-7i32 as u32), i64::MIN as u64, 0.1f64.to_bits()]);
}

#[test]
fn structured_control() {
    // Sums the odd numbers below the index. Leaves an inner loop through two labels.
    let body = |b: &mut Builder, index: Operand, _| {
        let sum = b.temp(Scalar::I64);
        let i = b.temp(Scalar::I64);
        b.set(sum, Operand::I64(0));
        b.set(i, Operand::I64(0));
        b.block(|b, out| {
            b.repeat(|b, _| {
                b.repeat(|b, inner| {
                    let over = b.icmp(Cmp::Ge, i.into(), index);
                    b.when(over, |b| b.push(Stmt::Break(out)));
                    let odd = b.i64(Op::And, &[i.into(), Operand::I64(1)]);
                    let odd = b.icmp(Cmp::Ne, odd, Operand::I64(0));
                    b.when(odd, |b| b.push(Stmt::Break(inner)));
                    let next = b.i64(Op::Add, &[i.into(), Operand::I64(1)]);
                    b.set(i, next);
                });
                let more = b.i64(Op::Add, &[sum.into(), i.into()]);
                b.set(sum, more);
                let next = b.i64(Op::Add, &[i.into(), Operand::I64(1)]);
                b.set(i, next);
            });
        });
        b.branch(Operand::Bool(true), |b| b.store(ColumnId(0), index, sum.into()), |b| b.trap(SiteId(0), vec![]));
    };
    let program = program(vec![entry(false, body)], &[Storage::I64], false);
    let (outcome, columns) = Run::new(&program, vec![i64s(&[0; 8])], 8).run();
    assert_eq!(outcome, Outcome::Done);
    assert_eq!(columns[0].view::<i64>(), [0, 0, 1, 1, 4, 4, 9, 9]);
}

#[test]
fn a_job_that_returns_is_over() {
    let mut b = Builder::new("entry".to_owned(), Vec::new());
    let [job, tick, _] = [(); 3].map(|()| b.param(Scalar::I64, None));
    b.push(Stmt::Begin { index: job.into(), tick: tick.into(), check: false });
    let small = b.icmp(Cmp::Lt, job.into(), Operand::I64(2));
    b.when(small, |b| b.push(Stmt::Return(vec![])));
    b.store(ColumnId(0), job.into(), Operand::I64(1));
    let program = program(vec![b.finish()], &[Storage::I64], false);
    let (_, columns) = Run::new(&program, vec![i64s(&[0; 4])], 4).run();
    assert_eq!(columns[0].view::<i64>(), [0, 0, 1, 1]);
}

/// `divide(a, b)`: the quotient, and whether it is exact. Traps if b is 0, with both as words.
fn divide() -> Func {
    let mut b = Builder::new("divide".to_owned(), vec![Scalar::I64, Scalar::Bool]);
    let [x, y] = [(); 2].map(|()| b.param(Scalar::I64, None));
    let zero = b.icmp(Cmp::Eq, y.into(), Operand::I64(0));
    b.trap_if(zero, SiteId(1), vec![x.into(), y.into(), Operand::I32(-3), Operand::float(0.5)]);
    let quotient = b.i64(Op::Div, &[x.into(), y.into()]);
    let rest = b.i64(Op::Rem, &[x.into(), y.into()]);
    let exact = b.icmp(Cmp::Eq, rest, Operand::I64(0));
    b.push(Stmt::Return(vec![quotient, exact]));
    b.finish()
}

/// Divides column 0 by column 1 into columns 2 and 3.
fn division(fused: bool) -> Program {
    let body = |b: &mut Builder, index: Operand, _| {
        let x = b.load(Scalar::I64, ColumnId(0), index);
        let y = b.load(Scalar::I64, ColumnId(1), index);
        let results = b.call(FuncId(1), vec![x, y], &[Scalar::I64, Scalar::Bool], None);
        b.store(ColumnId(2), index, results[0]);
        b.store(ColumnId(3), index, results[1]);
    };
    let columns = [Storage::I64, Storage::I64, Storage::I64, Storage::U8];
    program(vec![entry(false, body), divide()], &columns, fused)
}

#[test]
fn calls_give_results_or_end_the_job() {
    let program = division(false);
    let columns = || vec![i64s(&[7, 8, 9]), i64s(&[2, 4, 3]), i64s(&[0; 3]), HostColumn::zeroed(Storage::U8, 3)];
    let (outcome, done) = Run::new(&program, columns(), 3).run();
    assert_eq!(outcome, Outcome::Done);
    assert_eq!(done[2].view::<i64>(), [3, 2, 3]);
    assert_eq!(done[3].view::<u8>(), [0, 1, 1]);

    let mut columns = columns();
    columns[1].view_mut::<i64>().copy_from_slice(&[2, 0, 0]);
    let (outcome, _) = Run::new(&program, columns, 3).run();
    let Outcome::Trapped(trap) = outcome else { panic!("a division by zero") };
    assert_eq!((trap.key, trap.site), (Key::new(0, 1), SiteId(1)));
    assert_eq!(trap.words, [8, 0, -3i64 as u64, 0.5f64.to_bits()]);
}

#[test]
fn the_trap_with_the_least_key_wins() {
    // Element i traps in tick 100 - i: later elements trap in earlier ticks. With fused ticks and without.
    for fused in [true, false] {
        for jobs in [1, 50, 3000] {
            let body = |b: &mut Builder, index: Operand, tick: Operand| {
                let sum = b.i64(Op::Add, &[index, tick]);
                let now = b.icmp(Cmp::Ge, sum, Operand::I64(100));
                b.trap_if(now, SiteId(2), vec![index]);
            };
            let program = program(vec![entry(false, body)], &[], fused);
            let mut run = Run::new(&program, vec![], jobs);
            (run.ticks, run.block_size) = (200, Some(7));
            let Outcome::Trapped(trap) = run.run().0 else { panic!("all trap") };
            let last = (jobs - 1).min(100);
            assert_eq!(trap.key, Key::new(100 - last, last));
            assert_eq!(trap.words[0], last);
        }
    }
}

#[test]
fn numbers_of_jobs_and_ticks() {
    let body = |b: &mut Builder, index: Operand, _: Operand| {
        let count = b.load(Scalar::I64, ColumnId(0), index);
        let count = b.i64(Op::Add, &[count, Operand::I64(1)]);
        b.store(ColumnId(0), index, count);
    };
    for (entry, fused) in [(entry(false, body), true), (entry(false, body), false), (rotated_entry(body), true)] {
        let program = program(vec![entry], &[Storage::I64], fused);
        for (jobs, ticks, block_size) in [
            (0, 1 << 31, None),
            (1, 0, None),
            (1, 1, None),
            (3, 4, None),
            (100_003, 3, None),
            (1000, 300, Some(1)),
            (7, 10_000, None),
            // around the tick in which a loop over ticks checks for a stop
            (2, 1023, None),
            (2, 1024, None),
            (2, 1025, None),
            (2, 2048, None),
        ] {
            // other threads help later, or at once
            for cost in [None, Some(Duration::from_millis(1))] {
                let mut run = Run::new(&program, vec![i64s(&vec![0; jobs])], jobs as u64);
                (run.ticks, run.block_size, run.cost) = (ticks, block_size, cost);
                let (outcome, columns) = run.run();
                assert_eq!(outcome, Outcome::Done);
                let right = columns[0].view::<i64>().iter().all(|n| *n == ticks as i64);
                assert!(right, "{jobs} jobs, {ticks} ticks, {cost:?}");
            }
        }
    }
}

#[test]
fn a_trap_far_into_a_loop_over_ticks_says_which_tick_it_was() {
    let body = |b: &mut Builder, index: Operand, tick: Operand| {
        let key = b.i64(Op::Sub, &[tick, index]);
        let late = b.icmp(Cmp::Ge, key, Operand::I64(5000));
        b.trap_if(late, SiteId(3), vec![]);
    };
    let program = program(vec![rotated_entry(body)], &[], true);
    let mut run = Run::new(&program, vec![], 100);
    run.ticks = 100_000;
    let (outcome, _) = run.run();
    let Outcome::Trapped(record) = outcome else { panic!("{outcome:?}") };
    assert_eq!((record.key, record.site), (Key::new(5000, 0), SiteId(3)));
}

/// Each element reads its neighbour's value of the tick before.
#[test]
fn ticks_wait_for_each_other() {
    let n = 20_000;
    let body = |b: &mut Builder, index: Operand, tick: Operand| {
        let parity = b.i64(Op::And, &[tick, Operand::I64(1)]);
        let from = b.i64(Op::Mul, &[parity, Operand::I64(n)]);
        let to = b.i64(Op::Sub, &[Operand::I64(n), from]);
        let next = b.i64(Op::Add, &[index, Operand::I64(1)]);
        let wraps = b.icmp(Cmp::Eq, next, Operand::I64(n));
        let next = b.select(Scalar::I64, wraps, Operand::I64(0), next);
        let source = b.i64(Op::Add, &[from, next]);
        let value = b.load(Scalar::I64, ColumnId(0), source);
        let target = b.i64(Op::Add, &[to, index]);
        b.store(ColumnId(0), target, value);
    };
    let program = program(vec![entry(false, body)], &[Storage::I64], false);
    let values: Vec<i64> = (0..n).chain((0..n).map(|_| -1)).collect();
    let mut run = Run::new(&program, vec![i64s(&values)], n as u64);
    run.ticks = 1000;
    let (_, columns) = run.run();
    let expected: Vec<i64> = (0..n).map(|i| (i + 1000) % n).collect();
    assert_eq!(columns[0].view::<i64>()[..n as usize], expected);
}

#[test]
fn who_took_long_before_is_helped_at_once() {
    // the first job ends once a second thread has begun another one
    let body = |b: &mut Builder, index: Operand, _: Operand| {
        b.store(ColumnId(0), index, Operand::I64(1));
        let first = b.icmp(Cmp::Eq, index, Operand::I64(0));
        b.when(first, |b| {
            b.repeat(|b, met| {
                let other = b.load(Scalar::I64, ColumnId(0), Operand::I64(1));
                let came = b.icmp(Cmp::Ne, other, Operand::I64(0));
                b.when(came, |b| b.push(Stmt::Break(met)));
                b.push(Stmt::Poll);
            });
        });
    };
    let program = program(vec![entry(true, body)], &[Storage::I64], false);
    let mut run = Run::new(&program, vec![i64s(&[0, 0])], 2);
    (run.block_size, run.cost) = (Some(1), Some(Duration::from_secs(1)));
    // so that a failing test ends
    let cancel = run.cancel.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(20));
        cancel.cancel();
    });
    let (outcome, columns) = run.run();
    assert_eq!((outcome, columns[0].view::<i64>()), (Outcome::Done, &[1, 1][..]));
}

#[test]
fn elements_beyond_the_limit_do_not_run() {
    let body = |b: &mut Builder, index: Operand, _| {
        let count = b.load(Scalar::I64, ColumnId(0), index);
        let count = b.i64(Op::Add, &[count, Operand::I64(1)]);
        b.store(ColumnId(0), index, count);
        let last = b.icmp(Cmp::Eq, count, Operand::I64(3));
        let fourth = b.icmp(Cmp::Eq, index, Operand::I64(4));
        let breaks = b.bool(Op::And, &[last, fourth]);
        b.trap_if(breaks, SiteId(5), vec![]);
    };
    for fused in [true, false] {
        let program = program(vec![entry(true, body)], &[Storage::I64], fused);
        let mut run = Run::new(&program, vec![i64s(&[0; 10])], 10);
        (run.ticks, run.limit) = (9, Key::new(2, 4));
        let (outcome, columns) = run.run();
        let Outcome::Trapped(trap) = outcome else { panic!("the limit traps again") };
        assert_eq!((trap.key, trap.site), (Key::new(2, 4), SiteId(5)));
        assert_eq!(columns[0].view::<i64>(), [3, 3, 3, 3, 3, 2, 2, 2, 2, 2]);
    }
}

#[test]
fn elements_behind_a_trap_do_not_run() {
    // The second element traps; a thousand more repetitions of others would show.
    let body = |b: &mut Builder, index: Operand, _| {
        b.push(Stmt::Atomic {
            op: AtomicOp::Add,
            column: ColumnId(0),
            row: Operand::I64(0),
            value: Operand::I64(1),
            site: None,
        });
        let second = b.icmp(Cmp::Eq, index, Operand::I64(1));
        b.trap_if(second, SiteId(5), vec![]);
    };
    let program = program(vec![entry(true, body)], &[Storage::I64], true);
    let (outcome, columns) = Run::new(&program, vec![i64s(&[0])], 1_000_000).run();
    assert!(matches!(outcome, Outcome::Trapped(trap) if trap.key == Key::new(0, 1)));
    assert_eq!(columns[0].view::<i64>(), [2]);
}

/// An endless loop in every element.
fn endless() -> Program {
    let body = |b: &mut Builder, _, _| {
        b.repeat(|b, _| b.push(Stmt::Poll));
    };
    program(vec![entry(false, body)], &[], false)
}

fn cancelled_after(program: &Program, jobs: u64, ticks: u64, delay: Duration) -> Duration {
    let mut run = Run::new(program, vec![], jobs);
    run.ticks = ticks;
    let token = run.cancel.clone();
    let cancelling = std::thread::spawn(move || {
        std::thread::sleep(delay);
        token.cancel();
        Instant::now()
    });
    assert_eq!(run.run().0, Outcome::Cancelled);
    cancelling.join().expect("it only sleeps").elapsed()
}

#[test]
fn cancelling_stops_endless_loops() {
    for jobs in [1, 1000, 100_000] {
        let late = cancelled_after(&endless(), jobs, 1, Duration::from_millis(20));
        assert!(late < Duration::from_millis(500), "{late:?}");
    }
}

#[test]
fn cancelling_stops_ticks_that_never_poll() {
    let nothing = |_: &mut Builder, _, _| {};
    for (entry, fused) in
        [(entry(false, nothing), true), (entry(false, nothing), false), (rotated_entry(nothing), true)]
    {
        let program = program(vec![entry], &[], fused);
        for jobs in [1, 100_000] {
            let late = cancelled_after(&program, jobs, 1 << 31, Duration::from_millis(20));
            assert!(late < Duration::from_millis(500), "{late:?}");
        }
    }
}

#[test]
fn a_cancel_before_the_start_is_not_lost() {
    let program = endless();
    let run = Run::new(&program, vec![], 5);
    run.cancel.cancel();
    assert_eq!(run.run().0, Outcome::Cancelled);
}

/// Who takes an endless loop for a short one runs it where nothing else can go on.
#[test]
fn a_cancelled_launch_says_nothing_about_the_next() {
    let (program, backend) = (endless(), &*BACKEND);
    let layout = Layout::structure_of_arrays(&program);
    let executable = backend.prepare(&program, &layout, &CodeOptions::default()).expect("it compiles");
    for (jobs, delay) in [(1, 1), (5, 20), (100_000, 20)] {
        let (cancel, mut timings) = (CancelToken::default(), Timings::default());
        let outcome = std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(delay));
                cancel.cancel();
            });
            backend.launch(&*executable, Launch::of(jobs, &mut [], &[], &[], &cancel, &mut timings))
        });
        assert_eq!(outcome.expect("the machine works"), Outcome::Cancelled);
        assert_eq!(executable.predicted(jobs, 1), None);
    }
}

/// `down(n)`: n calls deep, then back with n.
fn down() -> Func {
    let mut b = Builder::new("down".to_owned(), vec![Scalar::I64]);
    let n = b.param(Scalar::I64, None);
    let zero = b.icmp(Cmp::Eq, n.into(), Operand::I64(0));
    b.when(zero, |b| b.push(Stmt::Return(vec![Operand::I64(0)])));
    let fewer = b.i64(Op::Sub, &[n.into(), Operand::I64(1)]);
    let results = b.call(FuncId(1), vec![fewer], &[Scalar::I64], Some(SiteId(6)));
    let more = b.checked(CheckedOp::Add, results[0], Operand::I64(1), SiteId(7));
    b.push(Stmt::Return(vec![more]));
    let mut func = b.finish();
    func.recursive = true;
    func
}

fn recursion() -> Program {
    let body = |b: &mut Builder, index: Operand, _| {
        let depth = b.load(Scalar::I64, ColumnId(0), index);
        let results = b.call(FuncId(1), vec![depth], &[Scalar::I64], Some(SiteId(6)));
        b.store(ColumnId(0), index, results[0]);
    };
    program(vec![entry(false, body), down()], &[Storage::I64], false)
}

#[test]
fn recursion_ends_in_a_trap_not_in_a_crash() {
    let program = recursion();
    let (outcome, columns) = Run::new(&program, vec![i64s(&[5, 9_998, 0])], 3).run();
    assert_eq!(outcome, Outcome::Done);
    assert_eq!(columns[0].view::<i64>(), [5, 9_998, 0]);
    let (outcome, _) = Run::new(&program, vec![i64s(&[5, 1 << 40, 7, -1])], 4).run();
    let Outcome::Trapped(trap) = outcome else { panic!("the stack is finite") };
    assert_eq!((trap.key, trap.site), (Key::new(0, 1), SiteId(6)));
}

#[test]
fn atomics_from_many_threads() {
    let n: i64 = 100_000;
    let ops = [AtomicOp::Add, AtomicOp::Min, AtomicOp::Max, AtomicOp::And, AtomicOp::Or, AtomicOp::Xor];
    let body = |b: &mut Builder, index: Operand, _| {
        for (row, op) in ops.into_iter().enumerate() {
            let site = (op == AtomicOp::Add).then_some(SiteId(4));
            b.push(Stmt::Atomic { op, column: ColumnId(0), row: Operand::I64(row as i64), value: index, site });
        }
    };
    let program = program(vec![entry(false, body)], &[Storage::I64], false);
    let start = [5, 3, -3, !0, 0, 0];
    let mut run = Run::new(&program, vec![i64s(&start)], n as u64);
    run.block_size = Some(100);
    let (outcome, columns) = run.run();
    assert_eq!(outcome, Outcome::Done);
    let fold = |start: i64, f: fn(i64, i64) -> i64| (0..n).fold(start, f);
    let expected = [
        fold(5, |a, b| a + b),
        fold(3, i64::min),
        fold(-3, i64::max),
        fold(!0, |a, b| a & b),
        fold(0, |a, b| a | b),
        fold(0, |a, b| a ^ b),
    ];
    assert_eq!(columns[0].view::<i64>(), expected);

    let (outcome, _) = Run::new(&program, vec![i64s(&[i64::MAX - 2, 0, 0, 0, 0, 0])], 3).run();
    let Outcome::Trapped(trap) = outcome else { panic!("the sum overflows") };
    assert_eq!((trap.key, trap.site), (Key::new(0, 2), SiteId(4)));
}

#[test]
fn draws_are_counted_per_element_and_tick() {
    // two draws in the entry, then one of them in another function
    for inner in [false, true] {
        let body = |b: &mut Builder, index: Operand, tick: Operand| {
            let first = b.i64(Op::Random, &[]);
            let second =
                if inner { b.call(FuncId(1), vec![], &[Scalar::I64], None)[0] } else { b.i64(Op::Random, &[]) };
            let bits = b.i64(Op::Xor, &[first, second]);
            let row = b.i64(Op::Mul, &[tick, Operand::I64(3)]);
            let row = b.i64(Op::Add, &[row, index]);
            b.store(ColumnId(0), row, bits);
        };
        let mut funcs = vec![entry(false, body)];
        let mut b = Builder::new("draw".to_owned(), vec![Scalar::I64]);
        let drawn = b.i64(Op::Random, &[]);
        b.push(Stmt::Return(vec![drawn]));
        funcs.push(b.finish());
        funcs.truncate(1 + usize::from(inner));
        let mut program = program(funcs, &[Storage::I64], true);
        program.uses_random = true;
        let mut run = Run::new(&program, vec![i64s(&[0; 6])], 3);
        run.ticks = 2;
        let (_, columns) = run.run();
        let draw = |tick, index, n| philox::draw(0x1234_5678_9abc_def0, 7, tick, index, n);
        let expected: Vec<u64> = (0..6).map(|row| draw(row / 3, row % 3, 0) ^ draw(row / 3, row % 3, 1)).collect();
        assert_eq!(bits(&columns[0]), expected);
    }
}

#[test]
fn functions_know_their_element() {
    let body = |b: &mut Builder, index: Operand, _| {
        let mine = b.i64(Op::Ctx(Ctx::Index), &[]);
        let results = b.call(FuncId(1), vec![], &[Scalar::I64], None);
        let sum = b.i64(Op::Add, &[mine, results[0]]);
        b.store(ColumnId(0), index, sum);
    };
    let mut b = Builder::new("position".to_owned(), vec![Scalar::I64]);
    let [tick, index] = [Ctx::Tick, Ctx::Index].map(|what| b.i64(Op::Ctx(what), &[]));
    let thousands = b.i64(Op::Mul, &[tick, Operand::I64(1000)]);
    let sum = b.i64(Op::Add, &[thousands, index]);
    b.push(Stmt::Return(vec![sum]));
    let program = program(vec![entry(false, body), b.finish()], &[Storage::I64], true);
    let mut run = Run::new(&program, vec![i64s(&[0; 3])], 3);
    run.ticks = 3;
    assert_eq!(run.run().1[0].view::<i64>(), [2000, 2002, 2004]);
}

#[test]
fn a_forked_child_has_threads_of_its_own() {
    let backend = CpuBackend::with_threads(2).expect("this host is supported");
    let program = recursion();
    let run = |backend: &CpuBackend| Run::new(&program, vec![i64s(&[5; 1000])], 1000).on(backend).0;
    assert_eq!(run(&backend), Outcome::Done);
    super::jit::tests::in_a_child(|| run(&backend) == Outcome::Done);
    assert_eq!(run(&backend), Outcome::Done);
}

#[test]
fn launches_from_many_threads_share_a_pool() {
    let program = division(false);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let n = 20_000;
                    let columns = vec![
                        i64s(&vec![7; n]),
                        i64s(&vec![2; n]),
                        i64s(&vec![0; n]),
                        HostColumn::zeroed(Storage::U8, n),
                    ];
                    let mut run = Run::new(&program, columns, n as u64);
                    run.block_size = Some(64);
                    let (outcome, columns) = run.run();
                    assert_eq!(outcome, Outcome::Done);
                    assert!(columns[2].view::<i64>().iter().all(|q| *q == 3));
                }
            });
        }
    });
}

#[test]
fn a_launch_that_does_not_fit_is_refused() {
    let program = division(false);
    let layout = Layout::structure_of_arrays(&program);
    let executable = BACKEND.prepare(&program, &layout, &CodeOptions::default()).expect("it compiles");
    let (cancel, mut timings) = (CancelToken::default(), Timings::default());
    let launch = Launch::of(1, &mut [], &[], &[], &cancel, &mut timings);
    assert!(BACKEND.launch(&*executable, launch).is_err());
    let listing = executable.listing();
    assert!(listing.contains("; divide") && listing.contains("sdiv"), "{listing}");
}

#[test]
fn pairs_are_grouped_as_by_the_interpreter() {
    // each element emits two pairs
    let program = over_elements(&[("in", Storage::I64, true, false)], |b, job| {
        let x = b.load(Scalar::I64, ColumnId(0), job);
        let order = b.i64(Op::Shl, &[job, Operand::I64(1)]);
        b.push(Stmt::Emit { key: Some(x), value: job, order, text: None });
        let (half, next) = (b.i64(Op::Shr, &[x, Operand::I64(1)]), b.i64(Op::Or, &[order, Operand::I64(1)]));
        b.push(Stmt::Emit { key: Some(half), value: x, order: next, text: None });
    });
    let reference = ReferenceBackend::default();
    let cpu = CpuBackend::with_threads(3).expect("this host is supported");
    let on = |backend: &dyn Backend, input: &[i64], groups: Option<&mut Emitted>| {
        let layout = Layout::structure_of_arrays(&program);
        let executable = backend.prepare(&program, &layout, &CodeOptions::default()).expect("it compiles");
        let (mut columns, cancel, mut timings) = ([i64s(input)], CancelToken::default(), Timings::default());
        let launch = Launch::of(input.len() as u64, &mut columns, &[0], &[0], &cancel, &mut timings);
        backend.launch(&*executable, Launch { groups, ..launch })
    };
    for kinds in [1, 7, 5000, i64::MAX] {
        let input: Vec<i64> =
            (0..20_000).map(|i: i64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) % kinds).collect();
        for combine in [Combine::Sum, Combine::Min] {
            for private in [3, 1 << 15] {
                let how = Grouping { private, ..Grouping::new(combine) };
                let grouped = |backend: &dyn Backend| {
                    let mut groups = Emitted::new(how);
                    let outcome = on(backend, &input, Some(&mut groups)).expect("the machine works");
                    assert_eq!((outcome, groups.pairs), (Outcome::Done, Some(40_000)));
                    (groups.keys, groups.totals)
                };
                assert!(grouped(&cpu) == grouped(&reference), "{kinds} {how:?}");
            }
        }
    }
    assert!(on(&cpu, &[1], None).is_err(), "pairs need groups");
    assert!(on(&reference, &[1], None).is_err(), "pairs need groups");
}
