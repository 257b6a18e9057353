//! Threads with several jobs each: which programs have them, and that results are the same.

use super::*;
use crate::ir::testing::over_elements;
use crate::types::Repr;

const IN: ColumnId = ColumnId(0);
const OUT: ColumnId = ColumnId(1);
const BESIDE: ColumnId = ColumnId(2);

fn register(storage: Storage) -> Scalar {
    match storage {
        Storage::F32 | Storage::F64 => Scalar::F64,
        Storage::U32 => Scalar::I32,
        Storage::U8 | Storage::I32 | Storage::I64 => Scalar::I64,
    }
}

/// A computation on an element; the result is an Integer that fits its storage.
fn computed(b: &mut Builder, x: Operand) -> Operand {
    let x = match b.ty(x) {
        Scalar::F64 => b.i64(Op::FloatToInt, &[x]),
        Scalar::I32 => b.i64(Op::Widen, &[x]),
        _ => x,
    };
    let more = b.i64(Op::Mul, &[x, Operand::I64(3)]);
    b.i64(Op::And, &[more, Operand::I64(0x7f)])
}

fn stored(b: &mut Builder, to: Storage, x: Operand) -> Operand {
    match register(to) {
        Scalar::F64 => b.f64(Op::IntToFloat, &[x]),
        Scalar::I32 => b.op(Scalar::I32, Op::Narrow, &[x]),
        _ => x,
    }
}

/// `out[i] = f(in[n + i])`
fn shifted(from: Storage, to: Storage) -> Program {
    over_elements(&[("in", from, true, false), ("out", to, false, true)], |b, job| {
        let n = b.i64(Op::Param(ParamId(0)), &[]);
        let row = b.i64(Op::Add, &[n, job]);
        let x = b.load(register(from), IN, row);
        let x = computed(b, x);
        let x = stored(b, to, x);
        b.store(OUT, job, x);
    })
}

/// `out[i] = in[i] + beside[i]`, which raises if it is more than 255, or if `in[i]` is 13.
fn checked() -> Program {
    let columns =
        [("in", Storage::U8, true, false), ("out", Storage::U8, false, true), ("beside", Storage::F32, true, false)];
    let mut program = over_elements(&columns, |b, job| {
        let x = b.load(Scalar::I64, IN, job);
        let wrong = b.icmp(Cmp::Eq, x, Operand::I64(13));
        b.trap_if(wrong, OVERFLOW, vec![x]);
        let y = b.load(Scalar::F64, BESIDE, job);
        let y = b.i64(Op::FloatToInt, &[y]);
        let sum = b.i64(Op::Add, &[x, y]);
        let much = b.icmp(Cmp::Gt, sum, Operand::I64(255));
        b.trap_if(much, OVERFLOW, vec![sum]);
        b.store(OUT, job, sum);
    });
    program.sites[0].operands = vec![Repr::Int];
    program
}

fn column(storage: Storage, rows: usize, value: impl Fn(usize) -> u8) -> HostColumn {
    let mut column = HostColumn::zeroed(storage, rows);
    for row in 0..rows {
        let value = value(row);
        match storage {
            Storage::U8 => column.view_mut::<u8>()[row] = value,
            Storage::U32 => column.view_mut::<u32>()[row] = value.into(),
            Storage::I32 => column.view_mut::<i32>()[row] = value.into(),
            Storage::F32 => column.view_mut::<f32>()[row] = value.into(),
            Storage::I64 => column.view_mut::<i64>()[row] = value.into(),
            Storage::F64 => column.view_mut::<f64>()[row] = value.into(),
        }
    }
    column
}

fn launched(machine: &dyn Backend, program: &Program, columns: &[HostColumn], jobs: u64, n: u64, limit: Key) -> Run {
    let layout = Layout::structure_of_arrays(program);
    let kernel = machine.prepare(program, &layout, &CodeOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let (mut columns, cancel, mut timings) = (columns.to_vec(), CancelToken::default(), Timings::default());
    let (biases, params) = (vec![0; columns.len()], [n]);
    let plain = Launch::of(jobs, &mut columns, &biases, &params, &cancel, &mut timings);
    let outcome = machine.launch(&*kernel, Launch { limit, ..plain });
    Run { outcome: outcome.unwrap_or_else(|e| panic!("{}: {e}", machine.name())), columns }
}

/// All machines must agree with the reference.
fn agree(program: &Program, columns: &[HostColumn], jobs: u64, n: u64, limit: Key) -> Run {
    let expected = launched(&ReferenceBackend::default(), program, columns, jobs, n, limit);
    for machine in MACHINES.iter() {
        let found = launched(&**machine, program, columns, jobs, n, limit);
        assert_eq!(found.outcome, expected.outcome, "{} of {jobs} from {n}", machine.name());
        let kept = match expected.outcome {
            Outcome::Done => true,
            Outcome::Trapped(record) => record.key == limit,
            Outcome::Cancelled => false,
        };
        assert!(!kept || found.columns == expected.columns, "{} of {jobs} from {n}", machine.name());
    }
    expected
}

fn jobs_of_a_thread(program: &Program) -> Option<u64> {
    let layout = Layout::structure_of_arrays(program);
    emit(program, &layout, "kernel").several.map(|several| several.jobs)
}

#[test]
fn the_text_has_both_ways() {
    insta::assert_snapshot!(text(&shifted(Storage::F32, Storage::U8)), @r#"
    // test

    struct Args {
      Launch launch;
      const float *c0_in;  // in, Element
      u8 *c1_out;  // out, Element
      alignas(8) i64 p0_n;  // n
    };

    static __device__ __forceinline__ void f0_entry(const Args &args, Ctx &ctx, i64 v0, i64 v1, i64 v2) {
      begin(ctx, v0, v1);
      const f64 v5 = f64(__ldg(&args.c0_in[add(args.p0_n, v0)]));
      args.c1_out[v0] = u8(i32(mul(i64(v5), 3) & 127));
    }

    static __device__ __forceinline__ void f0_entry_next(const Args &args, Ctx &ctx, i64 v0, i64 v1, i64 v2, float v5_next, u8 &c1_out_next) {
      begin(ctx, v0, v1);
      const f64 v5 = f64(v5_next);
      c1_out_next = u8(i32(mul(i64(v5), 3) & 127));
    }

    static __device__ __forceinline__ void f0_entry_rows(const Args &args, Ctx &ctx, i64 v0, i64 &result0) {
      result0 = add(args.p0_n, v0);
      return;
    }

    extern "C" __global__ void __launch_bounds__(512) ikra_test(__grid_constant__ const Args args) {
      const u64 jobs = u64(args.launch.jobs);
      u64 job = u64(blockIdx.x) * blockDim.x + threadIdx.x, end = job + 1;
      if (u64(gridDim.x) * blockDim.x < jobs) {
        job *= 4;
        end = job + 4;
        if (end <= jobs) {
          Ctx ctx = {args.launch, 0, 0, 0, 0, 0, NO_SITE};
          i64 row0;
          f0_entry_rows(args, ctx, i64(job), row0);
          Rows<float, 4> v5_next;
          v5_next.load(&args.c0_in[row0]);
          Rows<u8, 4> c1_out_next;
    #pragma unroll
          for (u32 next = 0; next < 4; next++) {
            f0_entry_next(args, ctx, i64(job + next), args.launch.tick_begin, args.launch.tick_end, v5_next.at[next], c1_out_next.at[next]);
          }
          c1_out_next.store(&args.c1_out[job]);
          return;
        }
      }
      if (end > jobs) end = jobs;
    #pragma unroll 1
      for (; job < end; job++) {
        Ctx ctx = {args.launch, 0, 0, 0, 0, 0, NO_SITE};
        f0_entry(args, ctx, i64(job), args.launch.tick_begin, args.launch.tick_end);
      }
    }
    "#);
}

#[test]
fn what_a_job_stores_that_may_raise_waits_for_the_others() {
    insta::assert_snapshot!(text(&checked()), @r#"
    // test

    struct Args {
      Launch launch;
      const u8 *c0_in;  // in, Element
      u8 *c1_out;  // out, Element
      const float *c2_beside;  // beside, Element
      alignas(8) i64 p0_n;  // n
    };

    static __device__ __forceinline__ bool f0_entry(const Args &args, Ctx &ctx, i64 v0, i64 v1, i64 v2) {
      if (begin_checked(ctx, v0, v1)) return true;
      const i32 v3 = i64(__ldg(&args.c0_in[v0]));
      if (v3 == 13) {
        trap(ctx, 0, word(v3));  // test.rb:1: overflow in *
        return true;
      }
      const f64 v5 = f64(__ldg(&args.c2_beside[v0]));
      const i64 v7 = add(v3, i64(v5));
      if (v7 > 255) {
        trap(ctx, 0, word(v7));  // test.rb:1: overflow in *
        return true;
      }
      args.c1_out[v0] = u8(v7);
      return false;
    }

    static __device__ __forceinline__ bool f0_entry_next(const Args &args, Ctx &ctx, i64 v0, i64 v1, i64 v2, u8 v3_next, float v5_next, u8 &c1_out_next) {
      begin(ctx, v0, v1);
      const i32 v3 = i64(v3_next);
      if (v3 == 13) {
        trap(ctx, 0, word(v3));  // test.rb:1: overflow in *
        return true;
      }
      const f64 v5 = f64(v5_next);
      const i64 v7 = add(v3, i64(v5));
      if (v7 > 255) {
        trap(ctx, 0, word(v7));  // test.rb:1: overflow in *
        return true;
      }
      c1_out_next = u8(v7);
      return false;
    }

    extern "C" __global__ void __launch_bounds__(512) ikra_test(__grid_constant__ const Args args) {
      const u64 jobs = u64(args.launch.jobs);
      u64 job = u64(blockIdx.x) * blockDim.x + threadIdx.x, end = job + 1;
      if (u64(gridDim.x) * blockDim.x < jobs) {
        job *= 4;
        end = job + 4;
        if (end <= jobs) {
          Ctx ctx = {args.launch, 0, 0, 0, 0, 0, NO_SITE};
          Rows<u8, 4> v3_next;
          v3_next.load(&args.c0_in[job]);
          Rows<float, 4> v5_next;
          v5_next.load(&args.c2_beside[job]);
          Rows<u8, 4> c1_out_next;
          bool over = false;
    #pragma unroll
          for (u32 next = 0; next < 4; next++) {
            over |= f0_entry_next(args, ctx, i64(job + next), args.launch.tick_begin, args.launch.tick_end, v3_next.at[next], v5_next.at[next], c1_out_next.at[next]);
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
        if (f0_entry(args, ctx, i64(job), args.launch.tick_begin, args.launch.tick_end)) ended(ctx);
      }
    }
    "#);
}

#[test]
fn nvrtc_loads_and_stores_16_bytes_at_once_and_keeps_them_in_registers() {
    for program in [shifted(Storage::F32, Storage::F32), shifted(Storage::U8, Storage::U8), checked()] {
        let emitted = emit(&program, &Layout::structure_of_arrays(&program), &kernel_name(&program));
        for compiled in nvrtc_accepts(&emitted.source()) {
            assert!(compiled.log.contains("0 bytes stack frame"), "{}", compiled.log);
        }
    }
}

#[test]
fn as_many_as_fit_into_16_bytes() {
    let of = |from, to| jobs_of_a_thread(&shifted(from, to));
    assert_eq!(of(Storage::U8, Storage::U8), Some(16));
    assert_eq!(of(Storage::F32, Storage::F32), Some(4));
    assert_eq!(of(Storage::U8, Storage::I32), Some(4));
    assert_eq!(of(Storage::F64, Storage::U8), Some(2));
    assert_eq!(of(Storage::F64, Storage::I64), Some(2));
    assert_eq!(jobs_of_a_thread(&checked()), Some(4));
    // fewer jobs per thread if a job has more statements, and one if it has many
    let long = |statements| {
        jobs_of_a_thread(&over_elements(
            &[("in", Storage::U8, true, false), ("out", Storage::U8, false, true)],
            |b, job| {
                let mut x = b.load(Scalar::I64, IN, job);
                for _ in 0..statements {
                    let more = b.i64(Op::Mul, &[x, x]);
                    x = b.i64(Op::Add, &[more, Operand::I64(1)]);
                }
                b.store(OUT, job, x);
            },
        ))
    };
    assert_eq!((long(5), long(12), long(20)), (Some(16), Some(8), None));
}

#[test]
fn a_thread_has_one_job_where_jobs_look_elsewhere_repeat_something_or_write_here_and_there() {
    let of = |written: bool, body: &dyn Fn(&mut Builder, Operand)| {
        let columns = [("in", Storage::F32, true, written), ("out", Storage::F32, false, true)];
        jobs_of_a_thread(&over_elements(&columns, |b, job| body(b, job)))
    };
    let copy = |b: &mut Builder, from: Operand, to: Operand| {
        let x = b.load(Scalar::F64, IN, from);
        b.store(OUT, to, x);
    };
    assert_eq!(of(false, &|b, job| copy(b, job, job)), Some(4));
    // the same row for all jobs
    assert_eq!(of(false, &|b, job| copy(b, Operand::I64(3), job)), Some(4));
    assert_eq!(of(true, &|b, job| copy(b, job, job)), None);
    let other = |op, b: &mut Builder, job: Operand| b.i64(op, &[job, Operand::I64(2)]);
    for op in [Op::Mul, Op::Xor, Op::Rem] {
        assert_eq!(
            of(false, &|b, job| {
                let row = other(op, b, job);
                copy(b, row, job)
            }),
            None
        );
        assert_eq!(
            of(false, &|b, job| {
                let row = other(op, b, job);
                copy(b, job, row)
            }),
            None
        );
    }
    assert_eq!(
        of(false, &|b, job| {
            let row = other(Op::Add, b, job);
            copy(b, job, row)
        }),
        None
    );
    let sometimes = |b: &mut Builder, job: Operand| {
        let big = b.icmp(Cmp::Gt, job, Operand::I64(3));
        b.when(big, |b| copy(b, job, job));
    };
    assert_eq!(of(false, &sometimes), None);
    let looping = |b: &mut Builder, job: Operand| {
        let i = named(b, Scalar::I64, "i", Operand::I64(0));
        turned(b, (i, 1, Operand::I64(9)), false, |_, _| {});
        copy(b, job, job);
    };
    assert_eq!(of(false, &looping), None);
    // one register that would need two values per job
    let twice = |b: &mut Builder, job: Operand| {
        let x = b.temp(Scalar::F64);
        let one = b.i64(Op::Add, &[job, Operand::I64(1)]);
        [job, one].into_iter().for_each(|row| b.push(Stmt::Load { dst: x, column: IN, row }));
        b.store(OUT, job, x.into());
    };
    assert_eq!(of(false, &twice), None);
    let sine = |b: &mut Builder, job: Operand| {
        let x = b.load(Scalar::F64, IN, job);
        let x = b.f64(Op::Math(crate::ir::MathFn::Sin), &[x]);
        b.store(OUT, job, x);
    };
    assert_eq!(of(false, &sine), None);
}

#[test]
fn all_widths_lengths_and_offsets_give_the_same() {
    let storages = [Storage::U8, Storage::U32, Storage::I32, Storage::F32, Storage::I64, Storage::F64];
    for from in storages {
        for to in storages {
            let program = shifted(from, to);
            for (jobs, n) in [(1, 0), (33, 0), (64, 16), (127, 1), (512, 2), (515, 0), (700, 7), (1029, 4)] {
                let columns = [column(from, jobs + n, |row| (row % 251) as u8), column(to, jobs, |_| 99)];
                assert_eq!(agree(&program, &columns, jobs as u64, n as u64, Key::NONE).outcome, Outcome::Done);
            }
        }
    }
}

#[test]
fn rows_are_found_by_the_elements_index_as_by_the_jobs_number() {
    let columns =
        [("in", Storage::F32, true, false), ("out", Storage::F32, false, true), ("beside", Storage::U8, true, false)];
    let program = over_elements(&columns, |b, _| {
        let n = b.i64(Op::Param(ParamId(0)), &[]);
        let index = b.i64(Op::Ctx(Ctx::Index), &[]);
        let row = b.i64(Op::Add, &[index, n]);
        let x = b.load(Scalar::F64, IN, row);
        let row = b.i64(Op::Sub, &[row, n]);
        let y = b.load(Scalar::I64, BESIDE, row);
        let again = b.load(Scalar::I64, BESIDE, index);
        let y = b.i64(Op::Add, &[y, again]);
        let y = b.f64(Op::IntToFloat, &[y]);
        let sum = b.f64(Op::FAdd, &[x, y]);
        b.store(OUT, index, sum);
    });
    assert_eq!(jobs_of_a_thread(&program), Some(4));
    for n in [0, 4, 5] {
        let columns = [
            column(Storage::F32, 200 + n, |row| (row % 251) as u8),
            column(Storage::F32, 200, |_| 9),
            column(Storage::U8, 200, |row| (row % 120) as u8),
        ];
        assert_eq!(agree(&program, &columns, 200, n as u64, Key::NONE).outcome, Outcome::Done);
    }
}

#[test]
fn what_one_of_them_raises_is_told_as_if_it_were_alone() {
    let program = checked();
    for wrong in [0, 1, 70, 95, 126, 199] {
        let columns = [
            column(Storage::U8, 200, |row| {
                if row == wrong {
                    200
                } else if row > wrong && row % 5 == 0 {
                    13
                } else {
                    1
                }
            }),
            column(Storage::U8, 200, |_| 7),
            column(Storage::F32, 200, |row| if row == wrong { 60 } else { 2 }),
        ];
        let outcome = agree(&program, &columns, 200, 0, Key::NONE).outcome;
        let Outcome::Trapped(record) = outcome else { panic!("260 is too much") };
        assert_eq!((record.key, record.words[0]), (Key::new(0, wrong as u64), 260));
        // a launch up to this element's limit does all that comes before it
        let Outcome::Trapped(record) = agree(&program, &columns, 200, 0, record.key).outcome else { panic!("it does") };
        assert_eq!(record.key, Key::new(0, wrong as u64));
    }
}

#[test]
fn rows_that_may_not_be_there_are_not_loaded_ahead() {
    let program = over_elements(&[("in", Storage::F32, true, false), ("out", Storage::F32, false, true)], |b, job| {
        let n = b.i64(Op::Param(ParamId(0)), &[]);
        let beyond = b.icmp(Cmp::Ge, job, n);
        b.trap_if(beyond, OVERFLOW, vec![]);
        let x = b.load(Scalar::F64, IN, job);
        b.store(OUT, job, x);
    });
    let several =
        emit(&program, &Layout::structure_of_arrays(&program), "kernel").several.expect("loads follow each other");
    let there = |rows: usize, jobs: u64, bias: u64| {
        let mut columns = [column(Storage::F32, rows, |_| 1), column(Storage::F32, 300, |_| 1)];
        let (cancel, mut timings) = (CancelToken::default(), Timings::default());
        several.are_there(&Launch::of(jobs, &mut columns, &[bias, 0], &[9], &cancel, &mut timings))
    };
    assert!(there(300, 300, 0) && there(200, 200, 0));
    assert!(!there(299, 300, 0) && !there(300, 301, 0) && !there(300, 300, 1));
    let columns = [column(Storage::F32, 150, |_| 1), column(Storage::F32, 300, |_| 1)];
    let Outcome::Trapped(record) = agree(&program, &columns, 300, 150, Key::NONE).outcome else {
        panic!("there are 150")
    };
    assert_eq!(record.key, Key::new(0, 150));
    // rows before the first do not exist either
    let shifted = shifted(Storage::F32, Storage::F32);
    let several =
        emit(&shifted, &Layout::structure_of_arrays(&shifted), "kernel").several.expect("loads follow each other");
    let mut columns = [column(Storage::F32, 300, |_| 1), column(Storage::F32, 100, |_| 1)];
    let mut there = |n: i64| {
        let (cancel, mut timings) = (CancelToken::default(), Timings::default());
        several.are_there(&Launch::of(100, &mut columns, &[0, 0], &[n as u64], &cancel, &mut timings))
    };
    assert!(there(0) && there(200) && !there(-1) && !there(201) && !there(i64::MAX));
}
