//! Hand-built programs: their text, and their results on the shim and, if there is one, on a GPU.

mod several;

use super::emit::{emit, kernel_name};
use super::{CudaBackend, CudaShim, nvrtc};
use crate::backend::reference::ReferenceBackend;
use crate::backend::resources::Share;
use crate::backend::{Backend, CancelToken, Executable, Key, Launch, Outcome, Timings};
use crate::cache::disk::DiskCache;
use crate::config::CodeOptions;
use crate::ir::build::Builder;
use crate::ir::random;
use crate::ir::testing::turned;
use crate::ir::visit::walk_mut;
use crate::ir::{
    CheckedOp, Cmp, Column, ColumnId, Ctx, Func, FuncId, Jobs, Op, Operand, Param, ParamId, Program, Scalar, Site,
    SiteId, Space, Stmt, Storage, Trap,
};
use crate::layout::Layout;
use crate::memory::column::HostColumn;
use crate::passes;
use once_cell::sync::Lazy;
use std::process::Command;
use std::sync::Arc;

const INPUT: ColumnId = ColumnId(0);
const OUTPUT: ColumnId = ColumnId(1);
const SPEED: ColumnId = ColumnId(2);
const OVERFLOW: SiteId = SiteId(0);
const ZERO: SiteId = SiteId(1);
const STACK: SiteId = SiteId(2);

/// I64 columns `in` and `out`, an F64 column of objects, an I64 parameter.
fn program(funcs: Vec<Func>) -> Program {
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
    let site = |trap, line| Site { trap, path: "/home/me/test.rb".into(), line, operands: Vec::new() };
    Program {
        name: "block in main at test.rb:12".into(),
        funcs,
        entry: FuncId(0),
        columns: vec![
            column("in", Space::Element, Storage::I64, false),
            column("out", Space::Element, Storage::I64, true),
            column("Car@speed", Space::Class { hierarchy: 0, first: 0, last: 0 }, Storage::F64, true),
        ],
        params: vec![Param::new("n", Scalar::I64)],
        heaps: Vec::new(),
        strides: Vec::new(),
        extents: Vec::new(),
        sites: vec![site(Trap::IntegerOverflow("+"), 12), site(Trap::ZeroDivision, 13), site(Trap::StackOverflow, 14)],
        jobs: Jobs::Identity,
        few: false,
        fused_ticks: false,
        uses_random: true,
        rescued: Default::default(),
    }
}

/// An entry that runs `body` with the element's index.
fn entry(body: impl FnOnce(&mut Builder, Operand)) -> Func {
    let mut b = Builder::new("block".into(), Vec::new());
    let job = b.param(Scalar::I64, Some("job".into()));
    let tick = b.param(Scalar::I64, Some("tick".into()));
    b.param(Scalar::I64, Some("tick_end".into()));
    b.push(Stmt::Begin { index: job.into(), tick: tick.into(), check: true });
    let index = b.i64(Op::Ctx(Ctx::Index), &[]);
    body(&mut b, index);
    b.finish()
}

fn named(b: &mut Builder, ty: Scalar, name: &str, value: Operand) -> crate::ir::VarId {
    let var = b.var(ty, Some(Arc::from(name)));
    b.set(var, value);
    var
}

struct Run {
    outcome: Outcome,
    columns: Vec<HostColumn>,
}

impl Run {
    fn out(&self) -> &[i64] {
        self.columns[1].view()
    }
}

/// All machines that are available. The shim always is.
static MACHINES: Lazy<Vec<Box<dyn Backend>>> = Lazy::new(|| {
    let mut machines: Vec<Box<dyn Backend>> = vec![Box::new(shim())];
    match CudaBackend::open(Arc::new(DiskCache::open(None, 0))) {
        Ok(cuda) => machines.push(Box::new(cuda)),
        Err(e) if std::env::var_os("IKRA_REQUIRE_GPU").is_some() => panic!("{e}"),
        Err(_) => {}
    }
    machines
});

fn shim() -> CudaShim {
    CudaShim::new().expect("a C++ compiler is installed").sanitized()
}

/// A program, compiled for each machine.
struct Kernel(Vec<Arc<dyn Executable>>);

fn prepare(program: &Program) -> Kernel {
    let layout = Layout::structure_of_arrays(program);
    let options = CodeOptions::default();
    let prepare = |m: &dyn Backend| m.prepare(program, &layout, &options).unwrap_or_else(|e| panic!("{e}"));
    Kernel(MACHINES.iter().map(|m| prepare(&**m)).collect())
}

fn columns(input: &[i64]) -> Vec<HostColumn> {
    let mut columns = vec![
        HostColumn::zeroed(Storage::I64, input.len()),
        HostColumn::zeroed(Storage::I64, input.len()),
        HostColumn::zeroed(Storage::F64, input.len()),
    ];
    columns[0].view_mut::<i64>().copy_from_slice(input);
    columns
}

/// Runs the kernel on each machine. All must agree; `columns` are those of the last one.
fn launch(kernel: &Kernel, columns: &mut [HostColumn], n: i64, limit: Key, cancel: &CancelToken) -> Outcome {
    let before = columns.to_vec();
    let mut agreed: Option<(Outcome, Vec<HostColumn>)> = None;
    for (machine, kernel) in MACHINES.iter().zip(&kernel.0) {
        columns.clone_from_slice(&before);
        let outcome = launch_on(&**machine, &**kernel, columns, n, limit, cancel);
        if let Some((first, columns_there)) = &agreed {
            assert_eq!(*first, outcome, "{}", machine.name());
            assert!(outcome != Outcome::Done || columns_there == columns, "{}", machine.name());
        }
        agreed = Some((outcome, columns.to_vec()));
    }
    agreed.expect("there is the shim").0
}

fn launch_on(
    machine: &dyn Backend,
    kernel: &dyn Executable,
    columns: &mut [HostColumn],
    n: i64,
    limit: Key,
    cancel: &CancelToken,
) -> Outcome {
    let jobs = columns[0].len() as u64;
    let (params, mut timings) = ([n as u64], Timings::default());
    let plain = Launch::of(jobs, columns, &[0, 0, 5], &params, cancel, &mut timings);
    let launch = Launch { seed: 0x0123_4567_89ab_cdef, section: 3, limit, ..plain };
    machine.launch(kernel, launch).unwrap_or_else(|e| panic!("{}: {e}", machine.name()))
}

/// Runs `program` over `input` with the parameter `n`.
fn run(program: &Program, input: &[i64], n: i64) -> Run {
    let mut columns = columns(input);
    let outcome = launch(&prepare(program), &mut columns, n, Key::NONE, &CancelToken::default());
    Run { outcome, columns }
}

fn text(program: &Program) -> String {
    emit(program, &Layout::structure_of_arrays(program), &kernel_name(program)).body
}

/// `out = in + n`, checked.
fn plus() -> Program {
    program(vec![entry(|b, index| {
        let x = b.load(Scalar::I64, INPUT, index);
        let n = b.i64(Op::Param(ParamId(0)), &[]);
        let sum = b.checked(CheckedOp::Add, x, n, OVERFLOW);
        b.store(OUTPUT, index, sum);
    })])
}

/// The largest power of 3 up to `in`, found in a loop that is left from inside a conditional.
fn power() -> Program {
    program(vec![entry(|b, index| {
        let x = b.load(Scalar::I64, INPUT, index);
        let power = named(b, Scalar::I64, "power", Operand::I64(1));
        b.block(|b, done| {
            b.repeat(|b, _| {
                b.push(Stmt::Poll);
                let next = b.i64(Op::Mul, &[power.into(), Operand::I64(3)]);
                let above = b.icmp(Cmp::Gt, next, x);
                b.when(above, |b| b.push(Stmt::Break(done)));
                b.set(power, next);
            });
        });
        b.store(OUTPUT, index, power.into());
    })])
}

/// More parameters than a launch takes.
const PARAM_COUNT: i64 = 520;

/// `out = in`, with each of very many parameters in turn subtracted from twice that, in a function of its own.
fn many_params() -> Program {
    let mut f = Builder::new("fold".into(), vec![Scalar::I64]);
    let x = f.param(Scalar::I64, None);
    let sum = f.var(Scalar::I64, None);
    f.set(sum, x.into());
    for i in 0..PARAM_COUNT as usize {
        let twice = f.i64(Op::Add, &[sum.into(), sum.into()]);
        let param = f.i64(Op::Param(ParamId::new(i)), &[]);
        let less = f.i64(Op::Sub, &[twice, param]);
        f.set(sum, less);
    }
    f.push(Stmt::Return(vec![sum.into()]));
    let main = entry(|b, index| {
        let x = b.load(Scalar::I64, INPUT, index);
        let folded = b.call(FuncId(1), vec![x], &[Scalar::I64], None);
        b.store(OUTPUT, index, folded[0]);
    });
    let params = (0..PARAM_COUNT).map(|i| Param::new(format!("n{i}"), Scalar::I64)).collect();
    Program { params, ..program(vec![main, f.finish()]) }
}

#[test]
fn more_arguments_than_a_launch_takes_lie_in_memory() {
    let program = many_params();
    let text = text(&program);
    assert!(text.starts_with("// block in main at test.rb:12\n\nstruct Args {\n  const i64 *c0_in;"), "{text}");
    assert!(text.contains("struct Given {\n  Launch launch;\n  const Args *args;\n};"), "{text}");
    let params: Vec<u64> = (0..PARAM_COUNT as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let columns = columns(&[0, -1, i64::MAX, i64::MIN, 12_345]);
    let generated = random::Generated { program, columns, biases: vec![0; 3], params, jobs: 5, ticks: 1 };
    let (program, options) = (&generated.program, CodeOptions::default());
    let layout = Layout::structure_of_arrays(program);
    let on = |machine: &dyn Backend| {
        let kernel = machine.prepare(program, &layout, &options).unwrap_or_else(|e| panic!("{e}"));
        run_generated(machine, &*kernel, &generated)
    };
    let expected = on(&ReferenceBackend::default());
    assert_eq!(expected.0, Outcome::Done);
    for machine in &*MACHINES {
        assert_eq!(on(&**machine), expected, "{}", machine.name());
    }
}

#[test]
fn a_share_of_the_device_changes_no_bit() {
    let input: Vec<i64> = (0..1000).map(|i| i * 7_919 % 5_003).collect();
    for (program, n) in [(plus(), 5), (plus(), i64::MAX - 4_990), (power(), 0)] {
        let kernel = prepare(&program);
        let mut expected = columns(&input);
        let outcome = launch(&kernel, &mut expected, n, Key::NONE, &CancelToken::default());
        let shares = [(1, 1), (3, 2), (40, 16)].map(|(blocks, warps)| Share { blocks, warps });
        for ((machine, kernel), share) in
            MACHINES.iter().zip(&kernel.0).flat_map(|one| shares.map(|share| (one, share)))
        {
            let (mut found, mut timings, cancel) = (columns(&input), Timings::default(), CancelToken::default());
            let params = [n as u64];
            let plain = Launch::of(1000, &mut found, &[0, 0, 5], &params, &cancel, &mut timings);
            let launch = Launch { seed: 0x0123_4567_89ab_cdef, section: 3, share: Some(share), ..plain };
            let ended = machine.launch(&**kernel, launch).unwrap_or_else(|e| panic!("{}: {e}", machine.name()));
            assert_eq!(ended, outcome, "{share:?} on {}", machine.name());
            assert!(outcome != Outcome::Done || found == expected, "{share:?} on {}", machine.name());
        }
    }
}

#[test]
fn what_tells_where_blocks_run_compiles() {
    if nvrtc::load().is_ok() {
        nvrtc::check(super::launch::SPREAD, 90, &CodeOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn text_reads_like_a_program() {
    insta::assert_snapshot!(text(&power()), @r#"
    // block in main at test.rb:12

    struct Args {
      Launch launch;
      const i64 *c0_in;  // in, Element
      i64 *c1_out;  // out, Element
      f64 *c2_Car_speed;  // Car@speed, Class { hierarchy: 0, first: 0, last: 0 }
      alignas(8) i64 p0_n;  // n
    };

    static __device__ __forceinline__ bool f0_block(const Args &args, Ctx &ctx, i64 job_0, i64 tick_1, i64 tick_end_2) {
      if (begin_checked(ctx, job_0, tick_1)) return true;
      const i64 v3 = i64(ctx.index);
      const i64 v4 = __ldg(&args.c0_in[v3]);
      i64 power_5 = 1;
      {
        while (true) {
          if (poll(ctx)) return true;
          const i64 v6 = mul(power_5, 3);
          if (v6 > v4) break;
          power_5 = v6;
        }
      }
      args.c1_out[v3] = power_5;
      return false;
    }

    extern "C" __global__ void __launch_bounds__(512) ikra_block_in_main_at_test_rb(__grid_constant__ const Args args) {
      const u64 job = u64(blockIdx.x) * blockDim.x + threadIdx.x;
      if ((job >= args.launch.jobs) | launch_is_over(args.launch)) return;
      Ctx ctx = {args.launch, 0, 0, 0, 0, 0, NO_SITE};
      if (f0_block(args, ctx, i64(job), args.launch.tick_begin, args.launch.tick_end)) ended(ctx);
    }
    "#);
}

#[test]
fn a_thread_runs_one_job_but_where_threads_are_fewer() {
    let repeats = |program: &Program| {
        let emitted = emit(program, &Layout::structure_of_arrays(program), "kernel");
        assert_ne!(emitted.once, emitted.body.contains("job += step"), "{}", emitted.body);
        !emitted.once
    };
    assert!(!repeats(&plus()));
    let slots = program(vec![entry(|b, index| {
        let slot = b.i64(Op::Ctx(Ctx::Slot), &[]);
        b.store(OUTPUT, index, slot);
    })]);
    assert!(repeats(&slots), "its slots are so many as the host said");
}

#[test]
fn text_of_checked_arithmetic() {
    insta::assert_snapshot!(text(&plus()), @r#"
    // block in main at test.rb:12

    struct Args {
      Launch launch;
      const i64 *c0_in;  // in, Element
      i64 *c1_out;  // out, Element
      f64 *c2_Car_speed;  // Car@speed, Class { hierarchy: 0, first: 0, last: 0 }
      alignas(8) i64 p0_n;  // n
    };

    static __device__ __forceinline__ bool f0_block(const Args &args, Ctx &ctx, i64 job_0, i64 tick_1, i64 tick_end_2) {
      if (begin_checked(ctx, job_0, tick_1)) return true;
      const i64 v3 = i64(ctx.index);
      const i64 v4 = __ldg(&args.c0_in[v3]);
      i64 v6;
      if (add_overflows(v4, args.p0_n, v6)) {
        trap(ctx, 0);  // test.rb:12: overflow in +
        return true;
      }
      args.c1_out[v3] = v6;
      return false;
    }

    static __device__ __forceinline__ bool f0_block_next(const Args &args, Ctx &ctx, i64 job_0, i64 tick_1, i64 tick_end_2, i64 v4_next, i64 &c1_out_next) {
      begin(ctx, job_0, tick_1);
      const i64 v3 = i64(ctx.index);
      const i64 v4 = v4_next;
      i64 v6;
      if (add_overflows(v4, args.p0_n, v6)) {
        trap(ctx, 0);  // test.rb:12: overflow in +
        return true;
      }
      c1_out_next = v6;
      return false;
    }

    extern "C" __global__ void __launch_bounds__(512) ikra_block_in_main_at_test_rb(__grid_constant__ const Args args) {
      const u64 jobs = u64(args.launch.jobs);
      u64 job = u64(blockIdx.x) * blockDim.x + threadIdx.x, end = job + 1;
      if (u64(gridDim.x) * blockDim.x < jobs) {
        job *= 2;
        end = job + 2;
        if (end <= jobs) {
          Ctx ctx = {args.launch, 0, 0, 0, 0, 0, NO_SITE};
          Rows<i64, 2> v4_next;
          v4_next.load(&args.c0_in[job]);
          Rows<i64, 2> c1_out_next;
          bool over = false;
    #pragma unroll
          for (u32 next = 0; next < 2; next++) {
            over |= f0_block_next(args, ctx, i64(job + next), args.launch.tick_begin, args.launch.tick_end, v4_next.at[next], c1_out_next.at[next]);
          }
          if (!over) {
            c1_out_next.store(&args.c1_out[job]);
            return;
          }
        }
      }
      if (end > jobs) end = jobs;
    #pragma unroll 1
      for (; job < end; job++) {
        Ctx ctx = {args.launch, 0, 0, 0, 0, 0, NO_SITE};
        if (f0_block(args, ctx, i64(job), args.launch.tick_begin, args.launch.tick_end)) ended(ctx);
      }
    }
    "#);
}

#[test]
fn elements_are_computed_and_all_jobs_run() {
    let input: Vec<i64> = (0..1000).collect();
    let done = run(&plus(), &input, 5);
    assert_eq!(done.outcome, Outcome::Done);
    assert_eq!(done.out(), (5..1005).collect::<Vec<i64>>());
}

#[test]
fn a_loop_is_left_to_the_block_around_it() {
    let done = run(&power(), &[1, 2, 3, 8, 9, 80, 81, 6561], 0);
    assert_eq!(done.out(), [1, 1, 3, 3, 9, 27, 81, 6561]);
}

#[test]
fn the_least_key_that_traps_is_recorded() {
    let mut input = vec![1; 300];
    for i in [299, 77, 76, 120] {
        input[i] = i64::MAX;
    }
    let Outcome::Trapped(record) = run(&plus(), &input, 1).outcome else { panic!("an overflow traps") };
    assert_eq!((record.key, record.site), (Key::new(0, 76), OVERFLOW));
}

#[test]
fn an_endless_empty_loop_is_cancelled_from_another_thread() {
    let endless = program(vec![entry(|b, _| {
        b.repeat(|b, _| b.push(Stmt::Poll));
    })]);
    let kernel = prepare(&endless);
    for (machine, kernel) in MACHINES.iter().zip(&kernel.0) {
        let cancel = CancelToken::default();
        let run = || launch_on(&**machine, &**kernel, &mut columns(&[0; 40]), 0, Key::NONE, &cancel);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                cancel.cancel();
            });
            assert_eq!(run(), Outcome::Cancelled);
        });
        assert_eq!(run(), Outcome::Cancelled, "at once");
    }
}

#[test]
fn elements_after_the_limit_do_not_run() {
    let mut data = columns(&[1; 100]);
    let outcome = launch(&prepare(&plus()), &mut data, 1, Key::new(0, 41), &CancelToken::default());
    assert_eq!(outcome, Outcome::Done);
    assert_eq!(data[1].view::<i64>().iter().rposition(|x| *x != 0), Some(41));
}

/// `fib(in)`, where the function has two results: the number and how often it was called.
fn fibonacci() -> Program {
    let mut f = Builder::new("fib".into(), vec![Scalar::I64, Scalar::I64]);
    let n = f.param(Scalar::I64, Some("n".into()));
    let small = f.icmp(Cmp::Lt, n.into(), Operand::I64(2));
    f.when(small, |f| f.push(Stmt::Return(vec![n.into(), Operand::I64(1)])));
    let one = f.i64(Op::Sub, &[n.into(), Operand::I64(1)]);
    let two = f.i64(Op::Sub, &[n.into(), Operand::I64(2)]);
    let results = [Scalar::I64, Scalar::I64];
    let a = f.call(FuncId(1), vec![one], &results, Some(STACK));
    let b = f.call(FuncId(1), vec![two], &results, Some(STACK));
    let sum = f.checked(CheckedOp::Add, a[0], b[0], OVERFLOW);
    let calls = f.i64(Op::Add, &[a[1], b[1]]);
    f.push(Stmt::Return(vec![sum, calls]));
    let fib = Func { recursive: true, ..f.finish() };
    program(vec![
        entry(|b, index| {
            let x = b.load(Scalar::I64, INPUT, index);
            let results = b.call(FuncId(1), vec![x], &results, Some(STACK));
            let both = b.i64(Op::Mul, &[results[1], Operand::I64(1000)]);
            let both = b.i64(Op::Add, &[both, results[0]]);
            b.store(OUTPUT, index, both);
        }),
        fib,
    ])
}

/// `out = in + n + n + …`, checked, by so many functions that are called once, each of 50 additions.
fn sums(functions: u32) -> Program {
    let sum = |number| {
        let mut f = Builder::new(format!("sum{number}"), vec![Scalar::I64]);
        let mut x: Operand = f.param(Scalar::I64, Some("x".into())).into();
        for _ in 0..50 {
            let n = f.i64(Op::Param(ParamId(0)), &[]);
            x = f.checked(CheckedOp::Add, x, n, OVERFLOW);
        }
        f.push(Stmt::Return(vec![x]));
        f.finish()
    };
    let all = entry(|b, index| {
        let mut x = b.load(Scalar::I64, INPUT, index);
        for f in 1..=functions {
            x = b.call(FuncId(f), vec![x], &[Scalar::I64], None)[0];
        }
        b.store(OUTPUT, index, x);
    });
    program(std::iter::once(all).chain((1..=functions).map(sum)).collect())
}

#[test]
fn nvrtc_optimises_less_where_that_is_asked_for() {
    if nvrtc::load().is_ok() {
        let how = nvrtc::How { verbose: false, quick: true };
        let source = emit(&sums(2), &Layout::structure_of_arrays(&sums(2)), "k").source();
        for capability in super::shim::CHECKED_ARCHITECTURES {
            let compiled = nvrtc::compile(&source, capability, &CodeOptions::default(), how);
            assert!(matches!(compiled.unwrap_or_else(|e| panic!("{e}")).code, nvrtc::Code::Cubin(_)));
        }
    }
}

#[test]
fn functions_of_long_programs_are_not_inlined() {
    let emitted = |functions| {
        let program = sums(functions);
        let emitted = emit(&program, &Layout::structure_of_arrays(&program), &kernel_name(&program));
        (emitted.is_long, emitted.body.contains("__noinline__"))
    };
    assert_eq!((emitted(3), emitted(60)), ((false, false), (true, true)));
    assert_eq!(run(&sums(60), &[0, 7], 2).out(), [6000, 6007]);
    let Outcome::Trapped(record) = run(&sums(60), &[0, i64::MAX - 1], 1).outcome else {
        panic!("the sum is too large")
    };
    assert_eq!((record.key, record.site), (Key::new(0, 1), OVERFLOW));
}

#[test]
fn recursion_has_results_and_a_depth() {
    assert_eq!(run(&fibonacci(), &[0, 1, 2, 3, 10], 0).out(), [1000, 1001, 2001, 3002, 89055]);
    let Outcome::Trapped(record) = run(&fibonacci(), &[1, 5000], 0).outcome else { panic!("5 000 deep is too deep") };
    assert_eq!((record.key, record.site), (Key::new(0, 1), STACK));
    insta::assert_snapshot!(text(&fibonacci()), @r#"
    // block in main at test.rb:12

    struct Args {
      Launch launch;
      const i64 *c0_in;  // in, Element
      i64 *c1_out;  // out, Element
      f64 *c2_Car_speed;  // Car@speed, Class { hierarchy: 0, first: 0, last: 0 }
      alignas(8) i64 p0_n;  // n
    };

    static __device__ __noinline__ bool f1_fib(const Args &args, Ctx &ctx, i64 n_0, i64 &result0, i64 &result1);

    static __device__ __noinline__ bool f1_fib(const Args &args, Ctx &ctx, i64 n_0, i64 &result0, i64 &result1) {
      if (n_0 < 2) {
        result0 = n_0;
        result1 = 1;
        return false;
      }
      i64 v4;
      i64 v5;
      if (enter(ctx, 2)) return true;  // test.rb:14: stack level too deep
      if (f1_fib(args, ctx, sub(n_0, 1), v4, v5)) return true;
      leave(ctx);
      i64 v6;
      i64 v7;
      if (enter(ctx, 2)) return true;  // test.rb:14: stack level too deep
      if (f1_fib(args, ctx, sub(n_0, 2), v6, v7)) return true;
      leave(ctx);
      i64 v8;
      if (add_overflows(v4, v6, v8)) {
        trap(ctx, 0);  // test.rb:12: overflow in +
        stop_others(ctx);
        return true;
      }
      result0 = v8;
      result1 = add(v5, v7);
      return false;
    }

    static __device__ __forceinline__ bool f0_block(const Args &args, Ctx &ctx, i64 job_0, i64 tick_1, i64 tick_end_2) {
      if (begin_checked(ctx, job_0, tick_1)) return true;
      const i64 v3 = i64(ctx.index);
      const i64 v4 = __ldg(&args.c0_in[v3]);
      i64 v5;
      i64 v6;
      if (enter(ctx, 2)) return true;  // test.rb:14: stack level too deep
      if (f1_fib(args, ctx, v4, v5, v6)) return true;
      leave(ctx);
      args.c1_out[v3] = add(mul(v6, 1000), v5);
      return false;
    }

    extern "C" __global__ void __launch_bounds__(512) ikra_block_in_main_at_test_rb(__grid_constant__ const Args args) {
      const u64 job = u64(blockIdx.x) * blockDim.x + threadIdx.x;
      if ((job >= args.launch.jobs) | launch_is_over(args.launch)) return;
      Ctx ctx = {args.launch, 0, 0, 0, 0, 0, NO_SITE};
      if (f0_block(args, ctx, i64(job), args.launch.tick_begin, args.launch.tick_end)) ended(ctx);
    }
    "#);
}

#[test]
fn an_object_is_found_at_its_id_less_the_first() {
    // ids of the class begin at 5; see `launch`
    let objects = program(vec![entry(|b, index| {
        let id = b.load(Scalar::I64, INPUT, index);
        let id = b.op(Scalar::I32, Op::Narrow, &[id]);
        let speed = b.load(Scalar::F64, SPEED, id);
        let own = b.f64(Op::IntToFloat, &[index]);
        let faster = b.f64(Op::FAdd, &[speed, own]);
        b.store(SPEED, id, faster);
    })]);
    let done = run(&objects, &[6, 7, 5], 0);
    assert_eq!(done.columns[2].view::<f64>(), [2.0, 0.0, 1.0]);
}

#[test]
fn objects_that_follow_each_other_are_found_by_what_a_loop_counts() {
    // sums over a number of cars, which are the same for all jobs, or begin at the job's own car
    let sums = |written: bool, own: bool| {
        let mut sums = program(vec![entry(|b, index| {
            let sum = named(b, Scalar::F64, "sum", Operand::float(0.0));
            let first = b.i64(Op::Param(ParamId(0)), &[]);
            let some = b.i64(Op::And, &[index, Operand::I64(0xff)]);
            let first = if own { b.i64(Op::Add, &[first, some]) } else { first };
            let count = b.load(Scalar::I64, INPUT, index);
            let count = b.i64(Op::And, &[count, Operand::I64(0xff)]);
            let i = named(b, Scalar::I64, "i", Operand::I64(0));
            turned(b, (i, 1, count), false, |b, _| {
                let row = b.i64(Op::Add, &[first, i.into()]);
                let car = b.op(Scalar::I32, Op::Narrow, &[row]);
                let speed = b.load(Scalar::F64, SPEED, car);
                let more = b.f64(Op::FAdd, &[sum.into(), speed]);
                b.set(sum, more);
            });
            let sum = b.i64(Op::FloatToInt, &[sum.into()]);
            b.store(OUTPUT, index, sum);
        })]);
        sums.params[0].range = Some((0, 100));
        sums.columns[2].written = written;
        sums
    };
    for (own, counts, expected) in [(false, [4, 2, 1, 3], [15, 3, 1, 7]), (true, [4, 2, 1, 1], [15, 6, 4, 8])] {
        for written in [false, true] {
            let sums = sums(written, own);
            let mut columns = columns(&counts);
            columns[2].view_mut::<f64>().copy_from_slice(&[1.0, 2.0, 4.0, 8.0]);
            let outcome = launch(&prepare(&sums), &mut columns, 5, Key::NONE, &CancelToken::default());
            assert_eq!((outcome, columns[1].view::<i64>()), (Outcome::Done, &expected[..]));
            let text = text(&sums);
            assert!(!text.contains("Car_speed[u32("), "{text}");
            // rows that differ between threads are loaded several at a time, if nothing writes them
            assert_eq!(text.contains("Neighbours"), own && !written, "{text}");
        }
    }
}

#[test]
fn random_words_are_those_of_philox() {
    let random = program(vec![entry(|b, index| {
        b.op(Scalar::I64, Op::Random, &[]);
        let second = b.op(Scalar::I64, Op::Random, &[]);
        b.store(OUTPUT, index, second);
    })]);
    let expected = |index| philox([3, 0, index, 1], [0x89ab_cdef, 0x0123_4567]);
    assert_eq!(run(&random, &[0; 3], 0).out(), [expected(0), expected(1), expected(2)]);
}

fn philox(mut c: [u32; 4], mut k: [u32; 2]) -> i64 {
    for _ in 0..10 {
        let (p, q) = (0xD251_1F53_u64 * u64::from(c[0]), 0xCD9E_8D57_u64 * u64::from(c[2]));
        c = [(q >> 32) as u32 ^ c[1] ^ k[0], q as u32, (p >> 32) as u32 ^ c[3] ^ k[1], p as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    (u64::from(c[1]) << 32 | u64::from(c[0])) as i64
}

#[test]
fn philox_is_the_published_one() {
    // Random123's known answers
    assert_eq!(philox([0; 4], [0; 2]) as u64, 0xe169_c58d_6627_e8d5);
}

/// `out = op(in, n)` for every op given, one program each.
fn binary(op: Op, a: Operand, b: Operand) -> impl FnOnce(&mut Builder, Operand) {
    move |builder, index| {
        let value = builder.i64(op, &[a, b]);
        builder.store(OUTPUT, index, value);
    }
}

#[test]
fn constants_are_64_bits_wide() {
    let checks: [(Op, i64, i64, i64); 6] = [
        (Op::Shl, 1, 40, 1 << 40),
        (Op::Shr, i64::MIN, 62, -2),
        (Op::Mul, 1 << 20, 1 << 20, 1 << 40),
        (Op::Add, i64::MAX, 1, i64::MIN),
        (Op::UDiv, -1, 2, i64::MAX),
        (Op::Div, -7, 2, -3),
    ];
    for (op, a, b, expected) in checks {
        let constant = program(vec![entry(binary(op, Operand::I64(a), Operand::I64(b)))]);
        assert_eq!(run(&constant, &[0], 0).out(), [expected], "{op:?} {a} {b}");
    }
}

#[test]
fn remainders_of_128_bits() {
    let modulus = |op| {
        program(vec![entry(move |b, index| {
            let x = b.load(Scalar::I64, INPUT, index);
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let y = b.i64(op, &[x, n, Operand::I64(1_000_000_007)]);
            b.store(OUTPUT, index, y);
        })])
    };
    let input = [i64::MIN, i64::MAX, -1, 0, 1 << 40];
    for n in [i64::MIN, -3, 5, i64::MAX] {
        let expect =
            |f: fn(i128, i128) -> i128| input.map(|x| f(i128::from(x), i128::from(n)).rem_euclid(1_000_000_007) as i64);
        assert_eq!(run(&modulus(Op::MulMod), &input, n).out(), expect(|a, b| a * b));
        assert_eq!(run(&modulus(Op::AddMod), &input, n).out(), expect(|a, b| a + b));
    }
}

#[test]
fn checked_operations_at_the_limits() {
    let limits = [i64::MIN, i64::MIN + 1, -3_037_000_500, -2, -1, 0, 1, 2, 3_037_000_500, i64::MAX - 1, i64::MAX];
    type Exact = fn(i64, i64) -> Option<i64>;
    let ops: [(CheckedOp, Exact); 4] = [
        (CheckedOp::Add, i64::checked_add),
        (CheckedOp::Sub, i64::checked_sub),
        (CheckedOp::Mul, i64::checked_mul),
        (CheckedOp::And, |a, b| Some(a & b).filter(|bits| *bits >= 0)),
    ];
    for (op, exact) in ops {
        let checked = program(vec![entry(|b, index| {
            let x = b.load(Scalar::I64, INPUT, index);
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let y = b.checked(op, x, n, OVERFLOW);
            b.store(OUTPUT, index, y);
        })]);
        let kernel = prepare(&checked);
        for a in limits {
            for n in limits {
                let mut data = columns(&[a]);
                let outcome = launch(&kernel, &mut data, n, Key::NONE, &CancelToken::default());
                let result = (outcome == Outcome::Done).then(|| data[1].view::<i64>()[0]);
                assert_eq!(result, exact(a, n), "{op:?} {a} {n}");
            }
        }
    }
}

#[test]
fn several_programs_share_a_compiler_call() {
    let programs = [plus(), power(), plus()];
    let layouts: Vec<Layout> = programs.iter().map(Layout::structure_of_arrays).collect();
    let pairs: Vec<_> = programs.iter().zip(&layouts).collect();
    let kernels = shim().prepare_many(&pairs).unwrap_or_else(|e| panic!("{e}"));
    let mut data = columns(&[80]);
    assert_eq!(
        launch(&Kernel(kernels[1..2].to_vec()), &mut data, 0, Key::NONE, &CancelToken::default()),
        Outcome::Done
    );
    assert_eq!(data[1].view::<i64>(), [27]);
}

#[test]
fn a_jump_over_several_scopes() {
    // leaves the outer block from the inner loop for 1, the inner block for 2, and no block otherwise
    let jumps = program(vec![entry(|b, index| {
        let x = b.load(Scalar::I64, INPUT, index);
        let seen = named(b, Scalar::I64, "seen", Operand::I64(0));
        b.block(|b, outer| {
            b.block(|b, inner| {
                b.repeat(|b, around| {
                    b.push(Stmt::Poll);
                    let next = b.i64(Op::Add, &[seen.into(), Operand::I64(1)]);
                    b.set(seen, next);
                    for (value, label) in [(1, outer), (2, inner)] {
                        let same = b.icmp(Cmp::Eq, x, Operand::I64(value));
                        b.when(same, |b| b.push(Stmt::Break(label)));
                    }
                    let enough = b.icmp(Cmp::Ge, seen.into(), Operand::I64(5));
                    b.when(enough, |b| b.push(Stmt::Break(around)));
                });
                let more = b.i64(Op::Add, &[seen.into(), Operand::I64(100)]);
                b.set(seen, more);
            });
            let more = b.i64(Op::Add, &[seen.into(), Operand::I64(1000)]);
            b.set(seen, more);
        });
        b.store(OUTPUT, index, seen.into());
    })]);
    assert_eq!(run(&jumps, &[1, 2, 3], 0).out(), [1, 1001, 1105]);
}

#[test]
fn a_temporary_keeps_the_value_it_was_given() {
    // the sum is computed before `x` changes, and used after
    let order = program(vec![entry(|b, index| {
        let first = b.load(Scalar::I64, INPUT, index);
        let x = named(b, Scalar::I64, "x", first);
        let before = b.i64(Op::Add, &[x.into(), Operand::I64(1)]);
        b.set(x, Operand::I64(50));
        let both = b.i64(Op::Mul, &[before, x.into()]);
        b.store(OUTPUT, index, both);
    })]);
    assert_eq!(run(&order, &[3], 0).out(), [200]);
}

#[test]
fn a_trap_carries_its_words() {
    let words = program(vec![entry(|b, index| {
        let x = b.load(Scalar::I64, INPUT, index);
        let zero = b.icmp(Cmp::Eq, x, Operand::I64(0));
        b.trap_if(zero, ZERO, vec![Operand::float(1.5), Operand::I32(-2), Operand::Bool(true), Operand::I64(1 << 40)]);
    })]);
    let Outcome::Trapped(record) = run(&words, &[1, 0], 0).outcome else { panic!("0 traps") };
    assert_eq!(record.words, [1.5f64.to_bits(), -2i64 as u64, 1, 1 << 40]);
    assert_eq!(record.site, ZERO);
}

/// Compiles for the oldest and the newest supported architecture. Prints a warning if that is impossible.
fn nvrtc_accepts(source: &str) -> Vec<super::nvrtc::Compiled> {
    if let Err(e) = super::nvrtc::load() {
        eprintln!("SKIPPED: generated CUDA C++ is not checked by NVRTC: {e}");
        return Vec::new();
    }
    let how = nvrtc::How { verbose: true, quick: false };
    let compile = |capability| super::nvrtc::compile(source, capability, &CodeOptions::default(), how);
    super::shim::CHECKED_ARCHITECTURES.map(|c| compile(c).unwrap_or_else(|e| panic!("{e}"))).into()
}

#[test]
fn nvrtc_compiles_what_is_emitted() {
    for program in [plus(), power(), fibonacci(), many_params()] {
        let emitted = emit(&program, &Layout::structure_of_arrays(&program), &kernel_name(&program));
        for compiled in nvrtc_accepts(&emitted.source()) {
            assert_eq!(&compiled.code.bytes()[..4], b"\x7fELF");
            if !emitted.recursive {
                assert!(compiled.log.contains("0 bytes stack frame"), "everything is in registers: {}", compiled.log);
            }
        }
    }
}

#[test]
fn nvrtc_says_what_it_refuses() {
    if super::nvrtc::load().is_ok() {
        let refused =
            super::nvrtc::compile("__global__ void k() { oops; }", 90, &CodeOptions::default(), nvrtc::How::default());
        let message = refused.expect_err("that is no program").to_string();
        assert!(message.contains("\"oops\" is undefined") && message.contains("   1 __global__"), "{message}");
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
/// Runs in a process of its own: tests beside it would take what a compilation freed.
#[test]
fn a_compilation_takes_the_memory_that_the_one_before_freed() {
    const ALONE: &str = "IKRA_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let path = concat!(module_path!(), "::a_compilation_takes_the_memory_that_the_one_before_freed");
        let (_, name) = path.split_once("::").expect("the crate's name is in front");
        let run = Command::new(std::env::current_exe().expect("it runs"))
            .args(["--exact", name, "--nocapture"])
            .env(ALONE, "1")
            .output()
            .expect("this program starts once more");
        let said = [&run.stdout, &run.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(run.status.success() && said[0].contains(" 1 passed"), "{}{}", said[0], said[1]);
        return;
    }
    let emitted = emit(&plus(), &Layout::structure_of_arrays(&plus()), &kernel_name(&plus()));
    // the pages that this thread touched for the first time
    let touched = || {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("Linux tells");
        stat.rsplit(") ").next().and_then(|s| s.split(' ').nth(7)?.parse::<u64>().ok()).expect("a number of pages")
    };
    let pages: Vec<u64> = (0..4)
        .map(|_| {
            let before = touched();
            nvrtc_accepts(&emitted.source());
            touched() - before
        })
        .collect();
    assert!(pages[3] < 500, "{pages:?}, and 3000 where all is given back");
}

/// Random programs: `IKRA_FUZZ` is their number, `IKRA_FUZZ_SEED` the seed.
#[test]
fn random_programs_do_what_the_reference_does() {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok()).unwrap_or(default);
    let (first, count) = (number("IKRA_FUZZ_SEED", 0), number("IKRA_FUZZ", 100));
    let seeds: Vec<u64> = (first..first + count).collect();
    for seeds in seeds.chunks(100) {
        let programs: Vec<random::Generated> = seeds.iter().map(|s| random::generate(*s)).collect();
        let layouts: Vec<Layout> = programs.iter().map(|g| Layout::structure_of_arrays(&g.program)).collect();
        let pairs: Vec<_> = programs.iter().map(|g| &g.program).zip(&layouts).collect();
        let compiled = shim().prepare_many(&pairs).unwrap_or_else(|e| panic!("{e}"));
        let reference = ReferenceBackend::default();
        for (generated, (layout, kernel)) in programs.iter().zip(layouts.iter().zip(&compiled)) {
            let program = &generated.program;
            let options = CodeOptions::default();
            let prepare = |m: &dyn Backend| m.prepare(program, layout, &options).unwrap_or_else(|e| panic!("{e}"));
            let expected = run_generated(&reference, &*prepare(&reference), generated);
            for (i, machine) in MACHINES.iter().enumerate() {
                let kernel = if i == 0 { kernel.clone() } else { prepare(&**machine) };
                let found = run_generated(&**machine, &*kernel, generated);
                let same =
                    expected.0 == found.0 && (expected.0 != Outcome::Done || random::same(&expected.1, &found.1));
                assert!(
                    same,
                    "{} differs from the reference on {}: {:?}\n{:?}\n{program}\n{}",
                    machine.name(),
                    program.name,
                    expected,
                    found,
                    kernel.listing()
                );
            }
        }
    }
}

fn run_generated(
    machine: &dyn Backend,
    kernel: &dyn Executable,
    generated: &random::Generated,
) -> (Outcome, Vec<HostColumn>) {
    let mut columns = generated.columns.clone();
    let (cancel, mut timings) = (CancelToken::default(), Timings::default());
    let random::Generated { biases, params, jobs, ticks, .. } = generated;
    let plain = Launch::of(*jobs, &mut columns, biases, params, &cancel, &mut timings);
    let launch = Launch { ticks: *ticks, seed: 77, section: 5, ..plain };
    let outcome =
        machine.launch(kernel, launch).unwrap_or_else(|e| panic!("{}: {e}\n{}", machine.name(), kernel.listing()));
    (outcome, columns)
}

#[test]
fn long_loops_and_those_that_poll_are_not_unrolled() {
    let long = |turns: usize, polls: bool| {
        program(vec![entry(|b, index| {
            let sum = named(b, Scalar::I64, "sum", Operand::I64(0));
            b.repeat(|b, done| {
                for turn in 0..turns {
                    let more = b.checked(CheckedOp::Add, sum.into(), Operand::I64(turn as i64), OVERFLOW);
                    b.set(sum, more);
                }
                if polls {
                    b.push(Stmt::Poll);
                }
                let enough = b.icmp(Cmp::Gt, sum.into(), index);
                b.when(enough, |b| b.push(Stmt::Break(done)));
            });
            b.store(OUTPUT, index, sum.into());
        })])
    };
    assert!(text(&long(9, false)).contains("  #pragma unroll 4\n  while (true) {"));
    assert!(text(&long(30, false)).contains("  #pragma unroll 1\n  while (true) {"));
    assert!(!text(&long(2, true)).contains("#pragma unroll"));
    assert!(text(&long(9, true)).contains("  #pragma unroll 1\n  while (true) {"));
}

/// `sum = in[0]; n times { sum = op(sum, in[i]) }`, or with a constant in place of `in[i]`.
fn accumulated(op: CheckedOp, by: Option<i64>) -> Program {
    repeated(|b, sum, x| b.checked(op, sum, by.map_or(x, Operand::I64), OVERFLOW))
}

/// Applies `next` to the first number and each number in turn, within an outer loop, in which an assumption may have
/// failed before.
fn repeated(next: impl Fn(&mut Builder, Operand, Operand) -> Operand) -> Program {
    program(vec![entry(|b, index| {
        let first = b.load(Scalar::I64, INPUT, Operand::I64(0));
        let sum = named(b, Scalar::I64, "sum", first);
        let n = b.i64(Op::Param(ParamId(0)), &[]);
        let times = named(b, Scalar::I64, "times", Operand::I64(0));
        turned(b, (times, 1, Operand::I64(2)), false, |b, _| {
            let i = named(b, Scalar::I64, "i", Operand::I64(0));
            turned(b, (i, 1, n), false, |b, _| {
                let x = b.load(Scalar::I64, INPUT, i.into());
                let next = next(b, sum.into(), x);
                b.set(sum, next);
            });
        });
        b.store(OUTPUT, index, sum.into());
    })])
}

#[test]
fn loops_that_speculate_answer_and_raise_as_the_program_says() {
    let small = [0, 1, 2, 3, 1000, (1 << 31) - 1, 1 << 31, (1 << 31) + 1, 1 << 32, 3_037_000_499, 3_037_000_500];
    let large = [1 << 62, i64::MAX / 3, i64::MAX / 2, i64::MAX - 1, i64::MAX, i64::MIN];
    let numbers: Vec<i64> = small.into_iter().chain(large).flat_map(|x| [x, x.wrapping_neg()]).collect();
    let reference = ReferenceBackend::default();
    let answer = |program: &Program, input: [i64; 2]| {
        let executable = reference
            .prepare(program, &Layout::structure_of_arrays(program), &CodeOptions::default())
            .unwrap_or_else(|e| panic!("{e}"));
        let mut columns = columns(&input);
        let outcome = launch_on(&reference, &*executable, &mut columns, 2, Key::NONE, &CancelToken::default());
        (outcome, columns)
    };
    for op in [CheckedOp::Add, CheckedOp::Sub, CheckedOp::Mul, CheckedOp::And] {
        for by in std::iter::once(None).chain(numbers.iter().copied().map(Some)) {
            let program = accumulated(op, by);
            let (speculating, versions) = passes::speculate_overflow(program.clone());
            assert_eq!(versions.len(), 1);
            for a in &numbers {
                // with constants one number suffices
                for b in if by.is_none() { &numbers[..] } else { &[5] } {
                    let (expected, found) = (answer(&program, [*a, *b]), answer(&speculating, [*a, *b]));
                    assert_eq!(found.0, expected.0, "{op:?} of {a} and {b}, by {by:?}\n{speculating}");
                    let raised = !matches!(expected.0, Outcome::Done);
                    assert!(
                        raised || random::same(&found.1, &expected.1),
                        "{op:?} of {a} and {b}, by {by:?}\n{speculating}"
                    );
                }
            }
        }
    }
    // each number by a constant, and -1 by the least Integer among them
    for by in numbers.iter().copied() {
        let program = repeated(|b, sum, x| {
            let by = b.checked(CheckedOp::Mul, x, Operand::I64(by), OVERFLOW);
            b.i64(Op::Xor, &[sum, by])
        });
        let (speculating, _) = passes::speculate_overflow(program.clone());
        for x in &numbers {
            let (expected, found) = (answer(&program, [*x, 1]), answer(&speculating, [*x, 1]));
            assert_eq!(found.0, expected.0, "{x} by {by}\n{speculating}");
            assert!(expected.0 != Outcome::Done || random::same(&found.1, &expected.1), "{x} by {by}");
        }
    }
    // and as C++
    let squares = accumulated(CheckedOp::Mul, None);
    let checks = |text: String| text.matches("mul_overflows").count();
    assert_eq!(checks(text(&squares)), 1, "{}", text(&squares));
    assert_eq!(run(&squares, &[-3, 7], 2).out(), [-3 * -3 * 7 * -3 * 7; 2]);
    let wide = 1 << 40;
    assert_eq!(run(&squares, &[1, wide], 1).out()[0], 1);
    let Outcome::Trapped(record) = run(&squares, &[1, wide], 2).outcome else { panic!("a square of 2⁸⁰") };
    assert_eq!((record.key, record.site), (Key::new(0, 0), OVERFLOW));
}

#[test]
fn quick_quotients_and_roots_are_looked_at_behind_the_loop() {
    let program = |op: Op, args: fn(Operand) -> Vec<Operand>| {
        program(vec![entry(|b, index| {
            let last = named(b, Scalar::F64, "last", Operand::float(0.0));
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let i = named(b, Scalar::I64, "i", Operand::I64(0));
            turned(b, (i, 1, n), false, |b, _| {
                let bits = b.load(Scalar::I64, INPUT, i.into());
                let x = b.f64(Op::FloatFromBits, &[bits]);
                let value = b.f64(op, &args(x));
                b.set(last, value);
            });
            let bits = b.i64(Op::FloatBits, &[last.into()]);
            b.store(OUTPUT, index, bits);
        })])
    };
    let reference = ReferenceBackend::default();
    let answer = |program: &Program, x: f64| {
        let layout = Layout::structure_of_arrays(program);
        let executable = reference.prepare(program, &layout, &CodeOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let mut columns = columns(&[x.to_bits() as i64]);
        launch_on(&reference, &*executable, &mut columns, 1, Key::NONE, &CancelToken::default());
        columns[1].view::<i64>()[0]
    };
    let (least, beyond) = (2.0_f64.powi(-255), 2.0_f64.powi(257));
    let ordinary = [1.0, 2.5, 1e-70, 1e70, least, beyond.next_down()];
    let others = [0.0, least.next_down(), beyond, 1e-300, 5e-324, f64::MAX, f64::INFINITY, f64::NAN];
    for (exact, is_root) in [
        (program(Op::FDiv, |x| vec![x, Operand::float(3.0)]), false),
        (program(Op::FDiv, |x| vec![Operand::float(3.0), x]), false),
        (program(Op::FSqrt, |x| vec![x]), true),
    ] {
        assert!(text(&exact).contains(if is_root { "quick_sqrt(" } else { "quick_div(" }), "{}", text(&exact));
        // if the quick way is replaced, the result is that of the other loop, or wrong
        let (mut wrong, versions) = passes::speculate_overflow(exact.clone());
        assert!(matches!(versions[..], [pair] if pair.floats));
        walk_mut(&mut wrong.funcs[0].body, &mut |stmt| {
            let Stmt::Loop { label, body } = stmt else { return };
            for stmt in body.iter_mut().filter(|_| *label == versions[0].fast) {
                if let Stmt::Let { op, args, .. } = stmt
                    && passes::is_quick(*op, args)
                {
                    (*op, *args) = (Op::Copy, vec![Operand::float(77.0)]);
                }
            }
        });
        for x in ordinary {
            assert_eq!(f64::from_bits(answer(&wrong, x) as u64), 77.0, "{x}");
            assert!(!is_root || answer(&wrong, -x) == answer(&exact, -x), "{x}");
            assert!(is_root || f64::from_bits(answer(&wrong, -x) as u64) == 77.0, "{x}");
        }
        for x in others.iter().flat_map(|x| [*x, -x]) {
            assert_eq!(answer(&wrong, x), answer(&exact, x), "{x}");
        }
    }
    // by a power of two, or with a precondition, there is no quick way
    let plain = |program: &Program| !text(program).contains("quick_");
    assert!(plain(&program(Op::FDiv, |x| vec![x, Operand::float(4.0)])));
    assert!(plain(&program(Op::FDiv, |x| vec![x, Operand::float(1e100)])));
    let rounded = |op: Op| {
        let mut rounded = program(Op::FDiv, |x| vec![x, Operand::float(3.0)]);
        let func = &mut rounded.funcs[0];
        walk_mut(&mut func.body, &mut |stmt| {
            if let Stmt::Loop { body, .. } = stmt {
                let at = body.iter().position(|s| matches!(s, Stmt::Let { op: Op::FDiv, .. })).expect("it divides");
                let Stmt::Let { dst, .. } = body[at] else { return };
                let ty = if op == Op::FSingle { Scalar::F64 } else { Scalar::I64 };
                func.vars.push(crate::ir::Var { ty, name: None });
                let to = crate::ir::VarId::new(func.vars.len() - 1);
                body.insert(at + 1, Stmt::Let { dst: to, op, args: vec![dst.into()] });
            }
        });
        rounded
    };
    assert!(plain(&rounded(Op::FloatToInt)) && !plain(&rounded(Op::FloatBits)));
    // the operand has 64 bits
    assert!(!text(&rounded(Op::FSingle)).contains("quick_div32("));
}

#[test]
fn quick_quotients_and_roots_of_32_bits_are_looked_at_behind_the_loop() {
    let program = |op: Op, args: fn(Operand) -> Vec<Operand>| {
        program(vec![entry(|b, index| {
            let last = named(b, Scalar::F64, "last", Operand::float(0.0));
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let i = named(b, Scalar::I64, "i", Operand::I64(0));
            turned(b, (i, 1, n), false, |b, _| {
                let bits = b.load(Scalar::I64, INPUT, i.into());
                let x = b.f64(Op::FloatFromBits, &[bits]);
                let x = b.f64(Op::FSingle, &[x]);
                let value = b.f64(op, &args(x));
                let value = b.f64(Op::FSingle, &[value]);
                b.set(last, value);
            });
            let bits = b.i64(Op::FloatBits, &[last.into()]);
            b.store(OUTPUT, index, bits);
        })])
    };
    let reference = ReferenceBackend::default();
    let answer = |program: &Program, x: f64| {
        let layout = Layout::structure_of_arrays(program);
        let executable = reference.prepare(program, &layout, &CodeOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let mut columns = columns(&[x.to_bits() as i64]);
        launch_on(&reference, &*executable, &mut columns, 1, Key::NONE, &CancelToken::default());
        f64::from_bits(columns[1].view::<i64>()[0] as u64)
    };
    let below = |x: f64| f64::from((x as f32).next_down());
    let two = |exponent: i32| 2.0_f64.powi(exponent);
    for (exact, name, from, to) in [
        (program(Op::FDiv, |x| vec![x, Operand::float(3.0)]), "quick_div32(", two(-31), two(33)),
        (program(Op::FDiv, |x| vec![Operand::float(3.0), x]), "quick_div32(", two(-63), two(65)),
        (program(Op::FSqrt, |x| vec![x]), "quick_sqrt32(", two(-63), two(65)),
    ] {
        assert!(text(&exact).contains(name), "{}", text(&exact));
        // if the quick way is replaced, the result is that of the other loop, or wrong
        let (mut wrong, versions) = passes::speculate_overflow(exact.clone());
        assert!(matches!(versions[..], [pair] if pair.floats));
        walk_mut(&mut wrong.funcs[0].body, &mut |stmt| {
            let Stmt::Loop { label, body } = stmt else { return };
            for stmt in body.iter_mut().filter(|_| *label == versions[0].fast) {
                if let Stmt::Let { op, args, .. } = stmt
                    && passes::is_quick(*op, args)
                {
                    (*op, *args) = (Op::Copy, vec![Operand::float(77.0)]);
                }
            }
        });
        let is_root = name.contains("sqrt");
        for x in [1.0, 2.5, 1e-7, 1e7, from, below(to)] {
            assert_eq!(answer(&wrong, x), 77.0, "{x}");
            let other = if is_root { answer(&exact, -x) } else { 77.0 };
            assert_eq!(answer(&wrong, -x).to_bits(), other.to_bits(), "{x}");
        }
        let others = [0.0, below(from), to, 1e-40, 1e-45, f64::from(f32::MAX), f64::INFINITY, f64::NAN];
        for x in others.iter().flat_map(|x| [*x, -x]) {
            assert_eq!(answer(&wrong, x).to_bits(), answer(&exact, x).to_bits(), "{x}");
        }
    }
    // constants beyond the ends
    for by in [1e20, 3e-20] {
        let far = if by > 1.0 {
            program(Op::FDiv, |x| vec![x, Operand::float(1e20_f32.into())])
        } else {
            program(Op::FDiv, |x| vec![Operand::float(3e-20_f32.into()), x])
        };
        assert!(!text(&far).contains("quick_"), "{by}");
    }
}

#[test]
fn neighbours_are_loaded_several_at_a_time() {
    // sums from each element to the last, half of which begin between two pairs; a check in the loop raises
    let sums = program(vec![entry(|b, index| {
        let (sum, i) = (named(b, Scalar::I64, "sum", Operand::I64(0)), named(b, Scalar::I64, "i", index));
        let n = b.i64(Op::Param(ParamId(0)), &[]);
        turned(b, (i, 1, n), false, |b, _| {
            let x = b.load(Scalar::I64, INPUT, i.into());
            let more = b.checked(CheckedOp::Add, sum.into(), x, OVERFLOW);
            b.set(sum, more);
        });
        b.store(OUTPUT, index, sum.into());
    })]);
    assert!(text(&sums).contains("const Neighbours<i64, 16> v"), "{}", text(&sums));
    for n in [1, 2, 15, 16, 17, 18, 31, 33, 100] {
        let input: Vec<i64> = (0..n).map(|i| i * i - 40).collect();
        let expected: Vec<i64> = (0..n as usize).map(|from| input[from..].iter().sum()).collect();
        assert_eq!(run(&sums, &input, n).out(), expected, "{n}");
    }
    let mut input = vec![0; 40];
    (input[3], input[21]) = (i64::MAX, 1);
    let Outcome::Trapped(record) = run(&sums, &input, 40).outcome else { panic!("the first four overflow") };
    assert_eq!((record.key, record.site), (Key::new(0, 0), OVERFLOW));
    // rows that are written, and rows that do not follow each other, are loaded singly
    let other = |column, step| {
        text(&program(vec![entry(|b, index| {
            let i = named(b, Scalar::I64, "i", index);
            turned(b, (i, step, Operand::I64(100)), false, |b, _| {
                let x = b.load(Scalar::I64, column, i.into());
                b.store(OUTPUT, index, x);
            });
        })]))
    };
    assert!(other(INPUT, 1).contains("Neighbours"));
    assert!(!other(OUTPUT, 1).contains("Neighbours") && !other(INPUT, 2).contains("Neighbours"));
}

#[test]
fn short_rows_are_loaded_at_once_where_they_begin_evenly_and_one_by_one_elsewhere() {
    // the sum of rows from `index % 8 * by` on, of Integers or references
    let sums = |by: i64, refs: bool, turns: i64| {
        let mut sums = program(vec![entry(|b, index| {
            let (sum, i) = (named(b, Scalar::I64, "sum", Operand::I64(0)), named(b, Scalar::I64, "i", Operand::I64(0)));
            let place = b.i64(Op::And, &[index, Operand::I64(7)]);
            let from = b.i64(Op::Mul, &[place, Operand::I64(by)]);
            turned(b, (i, 1, Operand::I64(turns)), false, |b, _| {
                let row = b.i64(Op::Add, &[from, i.into()]);
                let x = if refs {
                    let id = b.load(Scalar::I32, INPUT, row);
                    b.i64(Op::Widen, &[id])
                } else {
                    b.load(Scalar::I64, INPUT, row)
                };
                let more = b.i64(Op::Add, &[sum.into(), x]);
                b.set(sum, more);
            });
            b.store(OUTPUT, index, sum.into());
        })]);
        sums.columns[INPUT.index()].storage = if refs { Storage::U32 } else { Storage::I64 };
        sums
    };
    let input: Vec<i64> = (0..100).map(|i| i * i + 3).collect();
    for (by, refs) in [(8, false), (7, false), (8, true), (7, true), (6, true)] {
        let sums = sums(by, refs, 8);
        let ty = if refs { "i32" } else { "i64" };
        assert!(text(&sums).contains(&format!("const Neighbours<{ty}, 8> v")), "{}", text(&sums));
        let mut columns = columns(&input);
        if refs {
            columns[0] = HostColumn::zeroed(Storage::U32, input.len());
            let rows = columns[0].view_mut::<u32>();
            rows.iter_mut().zip(&input).for_each(|(row, x)| *row = *x as u32);
        }
        launch(&prepare(&sums), &mut columns, 0, Key::NONE, &CancelToken::default());
        let expected: Vec<i64> = (0..100).map(|at| input[at % 8 * by as usize..][..8].iter().sum()).collect();
        assert_eq!(columns[1].view::<i64>(), expected, "{by} {refs}");
    }
    // all neighbours are loaded together, or the loop is unrolled
    assert!(
        text(&sums(6, true, 6)).contains("#pragma unroll 6") && text(&sums(3, false, 3)).contains("#pragma unroll 3")
    );
    assert!(!text(&sums(100, true, 100)).contains("Neighbours"));
}

#[test]
fn no_neighbour_is_loaded_before_it_is_known_to_be_there() {
    // the count ends behind the last row, which a check before each load detects
    let checked = program(vec![entry(|b, index| {
        let (sum, i) = (named(b, Scalar::I64, "sum", Operand::I64(0)), named(b, Scalar::I64, "i", Operand::I64(0)));
        let n = b.i64(Op::Param(ParamId(0)), &[]);
        turned(b, (i, 1, Operand::I64(1000)), false, |b, _| {
            let beyond = b.icmp(Cmp::Ge, i.into(), n);
            b.trap_if(beyond, ZERO, vec![]);
            let x = b.load(Scalar::I64, INPUT, i.into());
            let more = b.i64(Op::Add, &[sum.into(), x]);
            b.set(sum, more);
        });
        b.store(OUTPUT, index, sum.into());
    })]);
    assert!(!text(&checked).contains("Neighbours"), "{}", text(&checked));
    let Outcome::Trapped(record) = run(&checked, &[1; 9], 9).outcome else { panic!("there are 9 rows") };
    assert_eq!(record.site, ZERO);
}
