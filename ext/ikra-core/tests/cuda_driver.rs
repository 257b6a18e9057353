//! The CUDA backend on a stand-in for the driver and NVRTC (`stand_in/`): transfers in chunks, batches of ticks, traps
//! and limits, cancelling, memory that runs out, machines that are broken, forks.
//!
//! The stand-in checks that an order is known of all that streams do to the same memory. It ends a scene that breaks
//! this rule.
//!
//! The libraries are found through `LD_LIBRARY_PATH`, which is read when a process starts. Each process sees one kind
//! of machine. So this is a program that runs itself once for each scene.

use ikra_core::backend::collective::reduce::{Place, Reduced, Reduction};
use ikra_core::backend::collective::rows::{Collective, Give, Stretch, column};
use ikra_core::backend::collective::scan::Scan;
use ikra_core::backend::collective::{Element, Number, Workers};
use ikra_core::backend::cuda::CudaBackend;
use ikra_core::backend::cuda::collective;
use ikra_core::backend::cuda::driver::Stream;
use ikra_core::backend::cuda::storage::{Arena, Staging};
use ikra_core::backend::epilogue::Epilogue;
use ikra_core::backend::fold::Fold;
use ikra_core::backend::threads::Threads;
use ikra_core::backend::{Backend, CancelToken, Ending, Executable, Key, Launch, Outcome, Timings};
use ikra_core::cache::disk::DiskCache;
use ikra_core::config::CodeOptions;
use ikra_core::error::{Error, Result};
use ikra_core::ir::build::Builder;
use ikra_core::ir::parse::parse;
use ikra_core::ir::{
    CheckedOp, Cmp, Column, ColumnId, Func, FuncId, Jobs, Op, Operand, Param, ParamId, Program, Scalar, Site, SiteId,
    Space, Stmt, Storage, Trap,
};
use ikra_core::layout::Layout;
use ikra_core::memory::buffer::{Buffer, DeviceMemory};
use ikra_core::memory::column::HostColumn;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Name, environment, what it does.
type Scene = (&'static str, &'static [(&'static str, &'static str)], fn());

const SCENES: &[Scene] = &[
    ("small_columns_and_large", &[], small_columns_and_large),
    ("columns_that_are_filled", &[], columns_that_are_filled),
    ("ticks_of_their_own", &[], ticks_of_their_own),
    ("ticks_in_graphs", &[], || ticks_in_graphs(true)),
    ("ticks_without_graphs", &[("STAND_IN", "without graphs")], || ticks_in_graphs(false)),
    ("fused_ticks", &[], fused_ticks),
    ("traps_and_limits", &[], traps_and_limits),
    ("cancelling", &[], cancelling),
    ("threads", &[], threads),
    ("small_launches_of_many_threads", &[], small_launches_of_many_threads),
    ("recursion", &[], || recursion(1000)),
    // A frame is 112 bytes. The driver grants what is asked, a quarter of what is free; what was needed before; the
    // least.
    ("recursion_on_a_small_device", &[("STAND_IN_MEMORY", "655360000")], || recursion(339)),
    ("recursion_on_a_busy_device", &[("STAND_IN_STACK", "100000")], || recursion(512)),
    ("recursion_on_a_full_device", &[("STAND_IN_STACK", "4500")], || recursion(16)),
    ("stacks_of_many_processes", &[("STAND_IN_MEMORY", "268435456")], stacks_of_many_processes),
    ("recursion_without_memory", &[("STAND_IN_STACK", "4000")], recursion_without_memory),
    ("block_sizes", &[], block_sizes),
    ("groups_of_jobs", &[], groups_of_jobs),
    ("threads_with_several_jobs", &[], threads_with_several_jobs),
    ("arguments_in_memory", &[], arguments_in_memory),
    ("the_disk_spares_the_compiler", &[], the_disk_spares_the_compiler),
    ("a_context_before_there_is_a_program", &[], a_context_before_there_is_a_program),
    ("reductions", &[], reductions),
    ("rows_where_they_are", &[], rows_where_they_are),
    ("large_columns_go_at_once", &[], large_columns_go_at_once),
    ("page_locking_that_fails", &[], page_locking_that_fails),
    ("rows_without_memory", &[("STAND_IN_MEMORY", "3000000")], rows_without_memory),
    ("what_is_reduced_while_it_is_computed", &[], what_is_reduced_while_it_is_computed),
    ("launches_one_after_the_other", &[], launches_one_after_the_other),
    ("launches_that_another_thread_makes", &[], launches_that_another_thread_makes),
    ("launches_that_fail_elsewhere", &[("STAND_IN", "faulty elsewhere")], launches_that_fail_elsewhere),
    ("kernels_that_nobody_has_any_more_while_they_run", &[], kernels_that_nobody_has_any_more_while_they_run),
    ("launches_under_way_at_the_end", &[], launches_under_way_at_the_end),
    ("ticks_that_follow_each_other", &[], ticks_that_follow_each_other),
    ("launches_that_raise_later", &[], launches_that_raise_later),
    ("launches_whose_end_is_told_at_once", &[], launches_whose_end_is_told_at_once),
    ("memory_that_runs_out", &[("STAND_IN_MEMORY", "50000000")], memory_that_runs_out),
    ("a_fault_is_remembered", &[("STAND_IN", "faulty")], a_fault_is_remembered),
    ("no_gpu", &[("STAND_IN", "absent")], || refuses("sees no GPU")),
    ("a_broken_driver", &[("STAND_IN", "broken")], || refuses("installed but does not work")),
    ("an_old_driver", &[("STAND_IN", "old")], || refuses("the driver is for CUDA 11.4; Ikra needs 12.0")),
    ("a_forked_child", &[], a_forked_child),
    ("waits_that_are_there", &[("STAND_IN_RACES", "count")], waits_that_are_there),
    ("no_wait_for_events", &[("STAND_IN_RACES", "count"), ("STAND_IN_FORGETS", "events")], a_missing_wait),
    ("no_wait_for_streams", &[("STAND_IN_RACES", "count"), ("STAND_IN_FORGETS", "streams")], a_missing_wait),
    ("no_look_at_words", &[("STAND_IN_RACES", "count"), ("STAND_IN_FORGETS", "words")], a_missing_wait),
    ("a_stop_before_the_launch_begins", &[], a_stop_before_the_launch_begins),
];

fn main() -> ExitCode {
    if let Ok(name) = std::env::var("STAND_IN_SCENE") {
        let scene = SCENES.iter().find(|s| s.0 == name).expect("the scene exists");
        scene.2();
        return ExitCode::SUCCESS;
    }
    let only = std::env::args().nth(1).filter(|a| !a.starts_with('-')).unwrap_or_default();
    let folder = Folder::new();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stand_in");
    for (source, library) in [("cuda.cpp", "libcuda.so.1"), ("nvrtc.cpp", "libnvrtc.so.13")] {
        let compiled = Command::new("g++")
            .args(["-std=gnu++17", "-O1", "-g", "-w", "-fPIC", "-shared", "-pthread"])
            .arg(tests.join(source))
            .arg("-o")
            .arg(folder.0.join(library))
            .status();
        assert!(compiled.expect("g++ is installed").success(), "{source} compiles");
    }
    // The names that are looked for first.
    for (library, name) in [("libcuda.so.1", "libcuda.so"), ("libnvrtc.so.13", "libnvrtc.so")] {
        std::os::unix::fs::symlink(folder.0.join(library), folder.0.join(name)).expect("the folder is ours");
    }
    let mut failed = 0;
    for (name, environment, _) in SCENES.iter().filter(|s| s.0.contains(&only)) {
        let run = Command::new(std::env::current_exe().expect("it runs"))
            .env("LD_LIBRARY_PATH", &folder.0)
            .env("RUST_BACKTRACE", "0")
            .env("STAND_IN_SCENE", name)
            .env("STAND_IN_SHIM", Path::new(env!("CARGO_MANIFEST_DIR")).join("src/backend/cuda/shim.hpp"))
            .env("STAND_IN_LOG", folder.0.join(format!("{name}.log")))
            .env("STAND_IN_CACHE", folder.0.join(format!("{name}.cache")))
            .envs(environment.iter().copied())
            .output()
            .expect("it runs");
        if !run.status.success() {
            failed += 1;
            println!(
                "── {name}: {}\n{}{}",
                run.status,
                String::from_utf8_lossy(&run.stdout),
                String::from_utf8_lossy(&run.stderr)
            );
        }
    }
    println!("cuda_driver: {} scenes, {failed} failed", SCENES.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A folder that goes with its owner.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("ikra-stand-in-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

// ---- Programs ----

const INPUT: ColumnId = ColumnId(0);
const OUTPUT: ColumnId = ColumnId(1);
const TAGS: ColumnId = ColumnId(2);
const OVERFLOW: SiteId = SiteId(0);
const STACK: SiteId = SiteId(1);

fn program(fused_ticks: bool, funcs: Vec<Func>) -> Program {
    let column = |name: &str, storage, read, written| Column {
        name: name.into(),
        space: Space::Element,
        storage,
        refers: None,
        ranged: None,
        roundable: false,
        marks: None,
        read,
        written,
    };
    let site = |trap| Site { trap, path: "test.rb".into(), line: 1, operands: Vec::new() };
    Program {
        name: "block at test.rb:1".into(),
        funcs,
        entry: FuncId(0),
        columns: vec![
            column("in", Storage::I64, true, false),
            column("out", Storage::I64, true, true),
            column("tags", Storage::U8, false, true),
            column("unused", Storage::F64, false, false),
        ],
        params: Vec::new(),
        heaps: Vec::new(),
        strides: Vec::new(),
        extents: Vec::new(),
        sites: vec![site(Trap::IntegerOverflow("+")), site(Trap::StackOverflow)],
        jobs: Jobs::Identity,
        few: false,
        fused_ticks,
        uses_random: false,
        rescued: Default::default(),
    }
}

/// An entry that runs `body` with index and tick, in every tick.
fn entry(body: impl FnOnce(&mut Builder, Operand, Operand)) -> Func {
    let mut b = Builder::new("entry".into(), Vec::new());
    let [job, begin, end] = [(); 3].map(|()| b.param(Scalar::I64, None));
    let tick = b.temp(Scalar::I64);
    b.set(tick, begin.into());
    b.repeat(|b, done| {
        let over = b.icmp(Cmp::Ge, tick.into(), end.into());
        b.when(over, |b| b.push(Stmt::Break(done)));
        b.push(Stmt::Begin { index: job.into(), tick: tick.into(), check: true });
        b.block(|b, _| body(b, job.into(), tick.into()));
        let next = b.i64(Op::Add, &[tick.into(), Operand::I64(1)]);
        b.set(tick, next);
    });
    b.finish()
}

/// `out += in` with a check, and a tag where the sum is odd.
fn sums(fused: bool) -> Program {
    program(
        fused,
        vec![entry(|b, index, _| {
            let (x, sum) = (b.load(Scalar::I64, INPUT, index), b.load(Scalar::I64, OUTPUT, index));
            let sum = b.checked(CheckedOp::Add, sum, x, OVERFLOW);
            b.store(OUTPUT, index, sum);
            let odd = b.i64(Op::And, &[sum, Operand::I64(1)]);
            let odd = b.icmp(Cmp::Eq, odd, Operand::I64(1));
            b.when(odd, |b| b.store(TAGS, index, Operand::I32(7)));
        })],
    )
}

struct Run {
    columns: Vec<HostColumn>,
    params: Vec<u64>,
    ticks: u64,
    limit: Key,
    block_size: Option<u32>,
    timings: Timings,
}

impl Run {
    fn new(input: impl Iterator<Item = i64>) -> Self {
        let input: Vec<i64> = input.collect();
        let column = |storage| HostColumn::zeroed(storage, input.len());
        let mut columns = vec![column(Storage::I64), column(Storage::I64), column(Storage::U8), column(Storage::F64)];
        columns[0].view_mut().copy_from_slice(&input);
        // What a kernel does not write stays.
        columns[2].view_mut::<u8>().fill(3);
        Self { columns, params: Vec::new(), ticks: 1, limit: Key::NONE, block_size: None, timings: Timings::default() }
    }
    fn ticks(self, ticks: u64) -> Self {
        Self { ticks, ..self }
    }
    fn launch<'a>(&'a mut self, cancel: &'a CancelToken) -> Launch<'a> {
        let Self { columns, params, ticks, limit, block_size, timings } = self;
        let plain = Launch::of(columns[0].len() as u64, columns, &[0; 4], params, cancel, timings);
        Launch { ticks: *ticks, limit: *limit, block_size: *block_size, ..plain }
    }
    fn try_on(&mut self, cuda: &CudaBackend, kernel: &dyn Executable, cancel: &CancelToken) -> Result<Outcome> {
        cuda.launch(kernel, self.launch(cancel))
    }
    fn on(&mut self, cuda: &CudaBackend, program: &Program) -> Outcome {
        self.try_on(cuda, &*prepare(cuda, program), &CancelToken::default()).unwrap_or_else(|e| panic!("{e}"))
    }
    fn out(&self) -> &[i64] {
        self.columns[1].view()
    }
}

fn open() -> CudaBackend {
    let cache = std::env::var_os("STAND_IN_CACHE").map(PathBuf::from);
    CudaBackend::open(Arc::new(DiskCache::open(cache.as_deref(), 1 << 28))).unwrap_or_else(|e| panic!("{e}"))
}

fn prepare(cuda: &CudaBackend, program: &Program) -> Arc<dyn Executable> {
    let layout = Layout::structure_of_arrays(program);
    cuda.prepare(program, &layout, &CodeOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

// ---- Scenes ----

fn small_columns_and_large() {
    let cuda = open();
    // One copy each way; some chunks; many, none of them a whole number of rows.
    for rows in [1, 1000, 40_000, 1_000_003, 3_000_001] {
        let mut run = Run::new(0..rows);
        assert_eq!(run.on(&cuda, &sums(false)), Outcome::Done);
        assert!(run.out().iter().copied().eq(0..rows), "{rows} rows");
        let tags = run.columns[2].view::<u8>().iter().enumerate();
        assert!(tags.into_iter().all(|(i, t)| *t == if i % 2 == 1 { 7 } else { 3 }), "{rows} rows");
        assert!(run.timings.kernel > Duration::ZERO);
    }
    assert_eq!(Run::new(0..0).on(&cuda, &sums(false)), Outcome::Done);
    assert_eq!(Run::new(0..5).ticks(0).on(&cuda, &sums(false)), Outcome::Done);
}

/// What every element stores does not go up; the stand-in's memory is full of other things.
fn columns_that_are_filled() {
    let mut filled = program(
        false,
        vec![entry(|b, index, _| {
            let x = b.load(Scalar::I64, INPUT, index);
            let twice = b.checked(CheckedOp::Add, x, x, OVERFLOW);
            b.store(OUTPUT, index, twice);
            b.store(TAGS, index, Operand::I32(1));
        })],
    );
    filled.columns[OUTPUT.index()].read = false;
    let cuda = open();
    for rows in [3, 1000, 200_000, 2_000_003] {
        let mut run = Run::new(0..rows);
        assert_eq!(run.on(&cuda, &filled), Outcome::Done);
        assert!(run.out().iter().copied().eq((0..rows).map(|i| i * 2)), "{rows} rows");
        assert!(run.columns[2].view::<u8>().iter().all(|t| *t == 1));
        // Up to a limit, the rest is as before.
        let mut run = Run { limit: Key::new(0, 1), ..Run::new(0..rows) };
        assert_eq!(run.on(&cuda, &filled), Outcome::Done);
        assert!(run.out()[..3] == [0, 2, 0] && run.columns[2].view::<u8>()[2..].iter().all(|t| *t == 3));
    }
}

fn ticks_of_their_own() {
    let cuda = open();
    for rows in [10, 100_000] {
        let mut run = Run::new(0..rows).ticks(700);
        assert_eq!(run.on(&cuda, &sums(false)), Outcome::Done);
        assert!(run.out().iter().copied().eq((0..rows).map(|i| i * 700)));
    }
    // Behind each batch its status is brought back: once it is known how little a tick takes, they are fewer.
    let kernel = prepare(&cuda, &sums(false));
    let moved = [(); 2].map(|()| {
        let before = stand_in("stand_in_copies");
        let mut run = Run::new(0..10).ticks(40);
        let outcome = run.try_on(&cuda, &*kernel, &CancelToken::default()).unwrap_or_else(|e| panic!("{e}"));
        assert!(outcome == Outcome::Done && run.out().iter().copied().eq((0..10).map(|i| i * 40)));
        stand_in("stand_in_copies") - before
    });
    assert!(moved[1] < moved[0], "{moved:?}");
}

/// Ticks that are a launch each become a few graphs, which are used again with other arguments and by other kernels.
fn ticks_in_graphs(there_are: bool) {
    let cuda = open();
    let kernels = [1, 2].map(|factor| {
        let digits = entry(|b, index, tick| {
            let out = b.load(Scalar::I64, OUTPUT, index);
            let out = b.i64(Op::Mul, &[out, Operand::I64(factor)]);
            let out = b.i64(Op::Add, &[out, tick]);
            b.store(OUTPUT, index, out);
        });
        (factor, prepare(&cuda, &program(false, vec![digits])))
    });
    let mut graphs = Vec::new();
    for (turn, ticks) in [200, 200, 50, 50, 31, 31, 3, 2, 1, 50, 200].into_iter().enumerate() {
        for (factor, kernel) in &kernels {
            let before = stand_in("stand_in_submissions");
            let mut run = Run::new(0..10 + turn as i64).ticks(ticks);
            let outcome = run.try_on(&cuda, &**kernel, &CancelToken::default()).unwrap_or_else(|e| panic!("{e}"));
            let expected = (0..ticks as i64).fold(0i64, |out, tick| out.wrapping_mul(*factor).wrapping_add(tick));
            assert_eq!((outcome, run.out()), (Outcome::Done, &*vec![expected; 10 + turn]), "{ticks} ticks");
            graphs.push(stand_in("stand_in_submissions") - before);
        }
    }
    // 200 = 3 × 64 + 8, 50 = 32 + 16 + 2: one submission each
    let expected = if there_are { [1, 0, 0, 3, 3, 4, 4] } else { [0; 7] };
    assert!(graphs.ends_with(&expected), "{graphs:?}");
    drop((kernels, cuda));
    assert_eq!(stand_in("stand_in_graphs"), 0);
}

fn fused_ticks() {
    let cuda = open();
    let kernel = prepare(&cuda, &sums(true));
    // The first time by guess, then by measure.
    for _ in 0..3 {
        let mut run = Run::new(0..1000).ticks(200_000);
        let outcome = run.try_on(&cuda, &*kernel, &CancelToken::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(outcome, Outcome::Done);
        assert!(run.out().iter().copied().eq((0..1000).map(|i| i * 200_000)));
    }
}

fn traps_and_limits() {
    let cuda = open();
    for (fused, rows) in [(false, 100), (true, 100), (false, 100_000), (true, 100_000)] {
        // Overflows in tick 37, first at index 55.
        let start = |i: i64| if i % 11 == 0 && i >= 55 { i64::MAX / 37 } else { i };
        let mut run = Run::new((0..rows).map(start)).ticks(2000);
        run.columns[1].view_mut::<i64>()[55..].iter_mut().step_by(11).for_each(|x| *x = i64::MAX % 37);
        let before = run.columns.clone();
        let Outcome::Trapped(record) = run.on(&cuda, &sums(fused)) else { panic!("it overflows") };
        assert_eq!((record.key, record.site), (Key::new(37, 55), OVERFLOW));
        // Again with that limit: smaller keys run to their end, and the columns are to be used.
        run.columns = before;
        run.limit = record.key;
        assert_eq!(run.on(&cuda, &sums(fused)), Outcome::Trapped(record));
        assert_eq!(run.out()[54], 54 * 38, "its key in tick 37 is less");
        assert_eq!(run.out()[55], i64::MAX, "its key in tick 37 is the limit");
        assert_eq!(run.out()[56], 56 * 37, "its key in tick 37 is greater");
    }
}

fn cancelling() {
    let cuda = open();
    let endless = program(false, vec![entry(|b, _, _| b.repeat(|b, _| b.push(Stmt::Poll)))]);
    let kernel = prepare(&cuda, &endless);
    for (rows, after) in [(10, 30), (10, 0), (200_000, 1)] {
        let cancel = CancelToken::default();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(after));
                cancel.cancel();
            });
            let outcome = Run::new(0..rows).ticks(10).try_on(&cuda, &*kernel, &cancel);
            assert_eq!(outcome.unwrap_or_else(|e| panic!("{e}")), Outcome::Cancelled);
        });
    }
    // Ticks that are short each, but many.
    for fused in [false, true] {
        let kernel = prepare(&cuda, &sums(fused));
        let cancel = CancelToken::default();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(50));
                cancel.cancel();
            });
            let start = Instant::now();
            let outcome = Run::new(0..10).ticks(1 << 31).try_on(&cuda, &*kernel, &cancel);
            assert_eq!(outcome.unwrap_or_else(|e| panic!("{e}")), Outcome::Cancelled);
            assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        });
    }
    assert_eq!(Run::new(0..10).on(&cuda, &sums(false)), Outcome::Done, "the next launch is not disturbed");
}

fn threads() {
    let cuda = open();
    let kernel = prepare(&cuda, &sums(false));
    std::thread::scope(|threads| {
        for thread in 0..6 {
            let (cuda, kernel) = (&cuda, &kernel);
            threads.spawn(move || {
                for turn in 0..20 {
                    let rows = 100 + thread * 20_000 + turn;
                    let mut run = Run::new(0..rows).ticks(3);
                    let outcome = run.try_on(cuda, &**kernel, &CancelToken::default());
                    assert_eq!(outcome.unwrap_or_else(|e| panic!("{e}")), Outcome::Done);
                    assert!(run.out().iter().copied().eq((0..rows).map(|i| i * 3)));
                }
            });
        }
    });
}

/// Small launches that run at once, each with its own end: results, an exception, or a stop.
fn small_launches_of_many_threads() {
    let cuda = open();
    let kernels = [false, true].map(|fused| prepare(&cuda, &sums(fused)));
    std::thread::scope(|threads| {
        for thread in 0..12 {
            let (cuda, kernels) = (&cuda, &kernels);
            threads.spawn(move || {
                for turn in 0..30 {
                    let (rows, ticks) = (10 + thread * 40 + turn, if turn % 5 == 4 { 7 } else { 20 });
                    let mut run = Run::new(0..rows).ticks(ticks);
                    let (cancel, stops, raises) = (CancelToken::default(), turn % 7 == 5, turn % 7 == 6);
                    if raises {
                        run.columns[1].view_mut()[rows as usize - 1] = i64::MAX;
                    }
                    let outcome = std::thread::scope(|beside| {
                        if stops {
                            beside.spawn(|| cancel.cancel());
                        }
                        run.try_on(cuda, &*kernels[turn as usize % 2], &cancel).unwrap_or_else(|e| panic!("{e}"))
                    });
                    match outcome {
                        Outcome::Done => {
                            assert!(!raises, "thread {thread}, turn {turn}");
                            assert!(run.out().iter().copied().eq((0..rows).map(|i| i * ticks as i64)));
                        }
                        Outcome::Trapped(record) => assert!(raises && record.site == OVERFLOW),
                        Outcome::Cancelled => assert!(stops, "thread {thread}, turn {turn}"),
                    }
                }
            });
        }
    });
}

/// `out = in`, by so many calls.
fn counts_down() -> Program {
    // depth(n) = n == 0 ? 0 : depth(n - 1) + 1
    let mut f = Builder::new("depth".into(), vec![Scalar::I64]);
    let n = f.param(Scalar::I64, None);
    let end = f.icmp(Cmp::Le, n.into(), Operand::I64(0));
    f.when(end, |f| f.push(Stmt::Return(vec![Operand::I64(0)])));
    let less = f.i64(Op::Sub, &[n.into(), Operand::I64(1)]);
    let below = f.call(FuncId(1), vec![less], &[Scalar::I64], Some(STACK));
    let sum = f.i64(Op::Add, &[below[0], Operand::I64(1)]);
    f.push(Stmt::Return(vec![sum]));
    let depth = Func { recursive: true, ..f.finish() };
    let main = entry(|b, index, _| {
        let x = b.load(Scalar::I64, INPUT, index);
        let d = b.call(FuncId(1), vec![x], &[Scalar::I64], Some(STACK));
        b.store(OUTPUT, index, d[0]);
    });
    program(false, vec![main, depth])
}

/// So many calls may nest, the first included, once launches have needed them.
fn recursion(depth: i64) {
    let cuda = open();
    let kernel = prepare(&cuda, &counts_down());
    let run = |n| {
        let mut run = Run::new([0, 3, n].into_iter());
        let outcome = run.try_on(&cuda, &*kernel, &CancelToken::default());
        (outcome.unwrap_or_else(|e| panic!("{e}")), run.out().to_vec())
    };
    assert_eq!(run(15), (Outcome::Done, vec![0, 3, 15]), "so many may always");
    let few = stand_in("stand_in_stacks");
    assert!(few <= 5_000 * 4096, "{few} bytes are reserved for few calls");
    let mut reserved = vec![few];
    while let Outcome::Trapped(record) = run(depth.max(32) * 2).0 {
        assert_eq!(record.site, STACK);
        if !kernel.deepen().unwrap_or_else(|e| panic!("{e}")) {
            break;
        }
        reserved.push(stand_in("stand_in_stacks"));
    }
    assert!(reserved.is_sorted(), "it only grows: {reserved:?}");
    for _ in 0..2 {
        assert_eq!(run(depth - 1), (Outcome::Done, vec![0, 3, depth - 1]));
        let Outcome::Trapped(record) = run(depth).0 else { panic!("{depth} calls in the first are too deep") };
        assert_eq!((record.key, record.site), (Key::new(0, 2), STACK));
    }
}

fn recursion_without_memory() {
    let cuda = open();
    let kernel = prepare(&cuda, &counts_down());
    for _ in 0..2 {
        let told = Run::new(0..3).try_on(&cuda, &*kernel, &CancelToken::default()).expect_err("there is no room");
        // 18 frames and 2 048 bytes for each of 4 096 threads.
        assert_eq!(
            told.to_string(),
            "reserving stacks on Stand-in for methods that call themselves: 16646144 bytes wanted, 4294967296 bytes \
             free\nInstead: end what else uses the GPU, write the method as a loop, or use backend: :cpu"
        );
    }
    assert_eq!(Run::new(0..10).on(&cuda, &sums(false)), Outcome::Done, "what does not recurse still runs");
}

/// Twelve processes whose calls nest a little have room beside each other on a device of 256 MiB. For as many nested
/// calls as it may make, one would take a quarter of the device.
fn stacks_of_many_processes() {
    let cuda = open();
    let kernel = prepare(&cuda, &counts_down());
    let mut run = Run::new([0, 3, 20].into_iter());
    let outcome = run.try_on(&cuda, &*kernel, &CancelToken::default());
    assert_eq!(outcome.unwrap_or_else(|e| panic!("{e}")), Outcome::Done);
    let each = stand_in("stand_in_stacks");
    assert!(each > 0 && 12 * each < 256 << 20, "twelve times {each} bytes");
}

fn block_sizes() {
    let cuda = open();
    let kernel = prepare(&cuda, &sums(false));
    for block_size in [1, 96, 512] {
        let mut run = Run { block_size: Some(block_size), ..Run::new(0..5000) };
        let outcome = run.try_on(&cuda, &*kernel, &CancelToken::default());
        assert_eq!(outcome.unwrap_or_else(|e| panic!("{e}")), Outcome::Done);
        assert!(run.out().iter().copied().eq(0..5000));
    }
    let mut run = Run { block_size: Some(2048), ..Run::new(0..5000) };
    let message = run.try_on(&cuda, &*kernel, &CancelToken::default()).expect_err("that is too large").to_string();
    assert!(message.contains("block_size: 2048") && message.contains("1 to 512 threads"), "{message}");
    assert!(kernel.listing().starts_with("// Stand-in: 32 registers"), "{}", kernel.listing());
}

/// Jobs run together where there are many, unless somebody sizes their blocks. What every job stores is not uploaded
/// for a group either.
fn groups_of_jobs() {
    let text = r#"program "product" jobs identity, few, ticks fused
column c0 "result" i64 in element, written
column c1 "left" i64 in array 0, read
column c2 "right" i64 in array 1, read
param p0 "across" i64 from 1 to 536870911
param p1 "inner" i64 from 0 to 536870911

entry func f0 "entry" (job.0: i64, tick_begin.1: i64, tick_end.2: i64) {
  begin check job.0, tick_begin.1
  v3: i64 = param p0 "across"
  v4: i64 = param p1 "inner"
  v5: i64 = div job.0, v3
  v6: i64 = rem job.0, v3
  v7: i64 = mul v5, v4
  sum.8: i64 = copy 0
  k.9: i64 = copy 0
  loop L0 {
    v10: bool = icmp.ge k.9, v4
    if v10 {
      break L0
    }
    v11: i64 = add v7, k.9
    v12: i64 = load left[v11]
    v13: i64 = mul k.9, v3
    v14: i64 = add v13, v6
    v15: i64 = load right[v14]
    v16: i64 = mul v12, v15
    sum.8 = add sum.8, v16
    k.9 = add k.9, 1
    poll
  }
  store result[job.0] = sum.8
  return
}
"#;
    let product = parse(text).unwrap_or_else(|e| panic!("{e}"));
    let (cuda, [rows, across, inner]) = (open(), [1500, 1600, 3]);
    let kernel = prepare(&cuda, &product);
    let element = |i: i64| (0..inner).map(|k| (i / across * inner + k) * (k * across + i % across)).sum::<i64>();
    let mut moved = Vec::new();
    for block_size in [None, None, Some(256)] {
        let column = |count: i64| HostColumn::zeroed(Storage::I64, count as usize);
        let mut columns = [column(rows * across), column(rows * inner), column(inner * across)];
        columns[1..].iter_mut().for_each(|c| c.view_mut::<i64>().iter_mut().zip(0..).for_each(|(x, i)| *x = i));
        let (params, cancel, mut timings) = ([across as u64, inner as u64], CancelToken::default(), Timings::default());
        let plain = Launch::of((rows * across) as u64, &mut columns, &[0; 3], &params, &cancel, &mut timings);
        let before = stand_in("stand_in_copies");
        let outcome = cuda.launch(&*kernel, Launch { block_size, ..plain }).unwrap_or_else(|e| panic!("{e}"));
        moved.push(stand_in("stand_in_copies") - before);
        assert_eq!(outcome, Outcome::Done);
        assert!(columns[0].view::<i64>().iter().copied().eq((0..rows * across).map(element)), "{block_size:?}");
        assert!(kernel.listing().contains("4 jobs at once that lie below each other"), "{}", kernel.listing());
    }
    assert_eq!(moved[1], moved[2], "copies of groups, and of jobs");
}

/// Threads have several jobs where these are many and their rows are all there. They have one where somebody sizes the
/// blocks, or the launch ends at a limit.
fn threads_with_several_jobs() {
    let text = r#"program "twice" jobs identity, few
column c0 "result" f32 in element, written
column c1 "numbers" f32 in array 0, read
param p0 "first" i64 from 0 to 536870911
site s0 overflow "+" at "test.rb":1 ()

entry func f0 "entry" (job.0: i64, tick_begin.1: i64, tick_end.2: i64) {
  begin check job.0, tick_begin.1
  v3: i64 = param p0 "first"
  v4: i64 = add v3, job.0
  v5: f64 = load numbers[v4]
  v6: bool = fcmp.lt v5, 0.0
  if v6 {
    trap s0
  }
  v7: f64 = fadd v5, v5
  store result[job.0] = v7
  return
}
"#;
    let twice = parse(text).unwrap_or_else(|e| panic!("{e}"));
    let cuda = open();
    let kernel = prepare(&cuda, &twice);
    let run = |jobs: usize, first: usize, rows: usize, negative: Option<usize>, limit, block_size| {
        let mut columns = [jobs, rows].map(|rows| HostColumn::zeroed(Storage::F32, rows));
        columns[1].view_mut::<f32>().iter_mut().enumerate().for_each(|(i, x)| *x = (i % 1000) as f32);
        if let Some(negative) = negative {
            columns[1].view_mut::<f32>()[negative] = -1.0;
        }
        let (params, cancel, mut timings) = ([first as u64], CancelToken::default(), Timings::default());
        let plain = Launch::of(jobs as u64, &mut columns, &[0; 2], &params, &cancel, &mut timings);
        let outcome = cuda.launch(&*kernel, Launch { limit, block_size, ..plain }).unwrap_or_else(|e| panic!("{e}"));
        let right = |(i, x): (usize, &f32)| *x == ((first + i) % 1000 * 2) as f32;
        let done = match outcome {
            Outcome::Done => jobs,
            Outcome::Trapped(record) if record.key == limit => record.key.index() as usize,
            _ => 0,
        };
        assert!(columns[0].view::<f32>()[..done].iter().enumerate().all(right), "{jobs} from {first}");
        (outcome, stand_in("stand_in_launched") as usize)
    };
    let (enough, threads) = (2 * 1024 * 4, |jobs: usize| jobs.next_multiple_of(256));
    for (jobs, first) in [(enough, 0), (enough + 1, 0), (20_002, 4), (20_003, 7)] {
        let (outcome, launched) = run(jobs, first, jobs + first, None, Key::NONE, None);
        assert_eq!((outcome, launched), (Outcome::Done, threads(jobs.div_ceil(4))), "{jobs} from {first}");
    }
    let few = run(enough - 1, 0, enough, None, Key::NONE, None);
    assert_eq!(few, (Outcome::Done, threads(enough - 1)));
    assert_eq!(run(20_000, 0, 20_000, None, Key::NONE, Some(64)), (Outcome::Done, 20_032));
    // in the middle of those of a thread
    let (Outcome::Trapped(record), launched) = run(20_000, 0, 20_000, Some(9_998), Key::NONE, None) else {
        panic!("it is negative")
    };
    assert_eq!((record.key, launched), (Key::new(0, 9_998), threads(5_000)));
    let (Outcome::Trapped(_), launched) = run(20_000, 0, 20_000, Some(9_998), record.key, None) else {
        panic!("it is negative")
    };
    assert_eq!(launched, threads(20_000));
}

/// More parameters than a launch takes lie in the arena: with small columns and large, for ticks in batches and fused.
fn arguments_in_memory() {
    let params: Vec<u64> = (1..=700).collect();
    let cuda = open();
    for (fused, rows, ticks) in [(false, 1, 1), (false, 1000, 40), (true, 1000, 40), (false, 300_000, 3)] {
        let mut program = program(
            fused,
            vec![entry(|b, index, _| {
                let start = b.load(Scalar::I64, OUTPUT, index);
                let sum = b.var(Scalar::I64, None);
                b.set(sum, start);
                for i in 0..params.len() {
                    let param = b.i64(Op::Param(ParamId::new(i)), &[]);
                    let more = b.checked(CheckedOp::Add, sum.into(), param, OVERFLOW);
                    b.set(sum, more);
                }
                let x = b.load(Scalar::I64, INPUT, index);
                let more = b.checked(CheckedOp::Add, sum.into(), x, OVERFLOW);
                b.store(OUTPUT, index, more);
            })],
        );
        program.params = (0..params.len()).map(|i| Param::new(format!("n{i}"), Scalar::I64)).collect();
        let mut run = Run { params: params.clone(), ..Run::new(0..rows) }.ticks(ticks);
        assert_eq!(run.on(&cuda, &program), Outcome::Done);
        assert!(run.out().iter().copied().eq((0..rows).map(|x| (x + 350 * 701) * ticks as i64)), "{rows} rows");
    }
}

fn a_context_before_there_is_a_program() {
    let cuda = open();
    assert!(!cuda.device().is_entered(), "opening makes none");
    (0..3).for_each(|_| cuda.get_ready());
    let began = Instant::now();
    while !cuda.device().is_entered() {
        assert!(began.elapsed() < Duration::from_secs(20), "somebody makes it");
        std::thread::yield_now();
    }
    let kernel = prepare(&cuda, &sums(false));
    let mut run = Run::new(0..10);
    let outcome = run.try_on(&cuda, &*kernel, &CancelToken::default());
    assert_eq!(outcome.unwrap_or_else(|e| panic!("{e}")), Outcome::Done);
}

fn the_disk_spares_the_compiler() {
    let compiled = || {
        let log = std::env::var_os("STAND_IN_LOG").expect("it is set");
        std::fs::read_to_string(log).unwrap_or_default().lines().count()
    };
    let cuda = open();
    let first = prepare(&cuda, &sums(false));
    assert!((!first.from_cache(), compiled()) == (true, 1));
    let mut moved = sums(false);
    moved.name = "block at test.rb:99".into();
    moved.sites[0].line = 99;
    let again = prepare(&open(), &moved);
    assert!((again.from_cache(), compiled()) == (true, 1), "the same code on other lines");
    let mut run = Run::new(0..10);
    let outcome = run.try_on(&cuda, &*again, &CancelToken::default());
    assert_eq!(outcome.unwrap_or_else(|e| panic!("{e}")), Outcome::Done);
    assert!(run.out().iter().copied().eq(0..10));
    let layout = Layout::structure_of_arrays(&moved);
    let fast = CodeOptions { fast_math: true, ..CodeOptions::default() };
    let other = cuda.prepare(&moved, &layout, &fast).unwrap_or_else(|e| panic!("{e}"));
    assert!((other.from_cache(), compiled()) == (false, 2), "other options are other code");
}

/// On a stream, from and to memory of the device; compiled once, and kept on the disk.
fn reductions() {
    let count = || {
        let log = std::env::var_os("STAND_IN_LOG").expect("it is set");
        std::fs::read_to_string(log).unwrap_or_default().lines().count()
    };
    for turn in 0..2 {
        let cuda = open();
        let device = cuda.device();
        device.enter().unwrap_or_else(|e| panic!("{e}"));
        let stream = Stream::new(device).unwrap_or_else(|e| panic!("{e}"));
        // SAFETY: it is given addresses of the arena below, which stays until its stream was waited for.
        let machine = unsafe { cuda.collectives().on(&stream) };
        let copiers = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads can be started"));
        let mut staging = Staging::new(device, copiers).unwrap_or_else(|e| panic!("{e}"));
        for rows in [0, 1, 100_000] {
            let values: Vec<i64> = (0..rows).collect();
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
            let arena = Arena::new(device, &stream, bytes.len() + 64).unwrap_or_else(|e| panic!("{e}"));
            staging.upload(&arena, &[(64, &bytes)]).unwrap_or_else(|e| panic!("{e}"));
            let (input, out) = (arena.address + 64, arena.address);
            for _ in 0..2 {
                collective::reduce(&machine, Reduction::Sum, Element::I64, input, rows as u64, out)
                    .unwrap_or_else(|e| panic!("{e}"));
            }
            let mut words = [0; 64];
            let download = staging.begin_download(&arena, 0..64).unwrap_or_else(|e| panic!("{e}"));
            staging.finish_download(&arena, download, &mut [(0, &mut words)]).unwrap_or_else(|e| panic!("{e}"));
            let words: Vec<u64> =
                words.chunks(8).map(|w| u64::from_ne_bytes(w.try_into().expect("whole words"))).collect();
            let reduced = Reduction::Sum.read(Element::I64, words.as_slice().try_into().expect("eight"));
            assert_eq!(reduced, Reduced::Integer((rows * (rows - 1) / 2).into()), "{rows} rows, turn {turn}");
        }
        assert_eq!(count(), 1, "the second time it comes from the disk");
    }
}

/// Over buffers of the device: what is made stays there, is the host's to the bit, and is the next one's input.
fn rows_where_they_are() {
    let cuda = open();
    let there = cuda.collective().expect("the device has memory of its own");
    let (threads, cancel) = (Threads::new(2), CancelToken::default());
    let here = Workers { threads: &threads, cancel: &cancel };
    let store = cuda.store().expect("as above");
    for n in [1usize, 33, 5000, 20_000] {
        let floats = column(
            Storage::F64,
            &(0..n).map(|i| [f64::NAN, -0.0, 0.0, 0.1, -3.5][i * 7 % 5] * i as f64).collect::<Vec<f64>>(),
        );
        let flags = column(Storage::U8, &(0..n).map(|i| u8::from(i % 3 == 1)).collect::<Vec<u8>>());
        let both = |host: &HostColumn| {
            let buffer = Buffer::from_column(host.clone());
            (buffer.on_device(store).unwrap_or_else(|e| panic!("{e}")), host.clone())
        };
        let (floats, flags) = (both(&floats), both(&flags));
        let part = n / 10..n;
        let same = |what: &str, there: HostColumn, here: HostColumn| {
            assert!(there.device().is_some(), "{what} stays on the device");
            let fetched = Buffer::from_column(there).on_host().unwrap_or_else(|e| panic!("{e}"));
            assert!(fetched == here, "{what} of {n}");
        };
        let on = |element, rows| Stretch { element, rows, range: part.clone() };
        let (a, b) = (on(Element::F64, &floats.0), on(Element::F64, &floats.1));
        let (f, g) = (on(Element::U8, &flags.0), on(Element::U8, &flags.1));
        for how in Scan::ALL {
            let (x, flags) = done(there.scan(how, a.clone()));
            let (y, expected) = done(here.scan(how, b.clone()));
            assert_eq!(flags, expected, "{how:?} of {n}");
            same("a scan", x, y);
        }
        let (chosen, expected) =
            (done(there.select(f.clone(), Some(a.clone()))), done(here.select(g.clone(), Some(b.clone()))));
        // nobody has waited for it yet
        let again = |rows| Stretch { element: Element::F64, rows, range: 0..expected.len() };
        same(
            "a sort of what was chosen",
            done(there.sort(again(&chosen), n, true, Give::Keys)),
            done(here.sort(again(&expected), n, true, Give::Keys)),
        );
        same("what is chosen", chosen, expected.clone());
        same("indices", done(there.select(f.clone(), None)), done(here.select(g.clone(), None)));
        for (row, give) in [(n, Give::Keys), (n, Give::Places), (7, Give::Keys), (7, Give::Places)] {
            same("a sort", done(there.sort(a.clone(), row, false, give)), done(here.sort(b.clone(), row, false, give)));
        }
        let (x, y) = (done(there.groups(a.clone())), done(here.groups(b.clone())));
        same("keys of groups", done(there.pick(a, &x.firsts)), done(here.pick(b, &y.firsts)));
        for (x, y) in [(x.group_of, y.group_of), (x.firsts, y.firsts), (x.counts, y.counts)] {
            same("groups", x, y);
        }
        let none = column(Storage::U8, &vec![0u8; n]);
        let none = both(&none).0;
        assert!(done(there.select(on(Element::U8, &none), None)).is_empty());
        let misplaced = there.scan(Scan::Sum, on(Element::F64, &floats.1)).expect_err("they are on the host");
        assert!(misplaced.to_string().contains("rows that are elsewhere"), "{misplaced}");
    }
}

fn done<T>(answer: ikra_core::error::Result<Option<T>>) -> T {
    answer.unwrap_or_else(|e| panic!("{e}")).expect("nobody cancels")
}

/// A sort needs as much again as it makes: where there is not so much, nothing is left behind.
fn rows_without_memory() {
    let cuda = open();
    let there = cuda.collective().expect("the device has memory of its own");
    let store = cuda.store().expect("as above");
    let values: Vec<i64> = (0..150_000).rev().collect();
    let rows = Buffer::from_column(column(Storage::I64, &values));
    let rows = rows.on_device(store).unwrap_or_else(|e| panic!("{e}"));
    let sorted = |n| there.sort(Stretch { element: Element::I64, rows: &rows, range: 0..n }, n, false, Give::Keys);
    for _ in 0..3 {
        assert!(matches!(sorted(150_000), Err(Error::Memory { .. })), "1.2 MB thrice are too much");
    }
    let few = Buffer::from_column(done(sorted(20_000))).on_host().unwrap_or_else(|e| panic!("{e}"));
    assert!(few.view::<i64>().iter().copied().eq(130_000..150_000));
}

/// What the stand-in counts.
fn stand_in(name: &str) -> i64 {
    // SAFETY: the library is the stand-in, whose functions of these names have no parameters and give a number.
    unsafe {
        let library = libloading::Library::new("libcuda.so.1").expect("it is on the path");
        let count = library.get::<unsafe extern "C" fn() -> i64>(name).expect("it has this");
        count()
    }
}

/// Elements of an array of 20 MiB.
const LARGE_ELEMENTS: usize = (20 << 20) / 8;

/// A large array that was made on the device, which gives its number of copies there and back.
fn there_and_back(cuda: &CudaBackend, first: i64) -> (i64, i64) {
    let store = cuda.store().expect("it has memory");
    let copies = || stand_in("stand_in_copies");
    let values: Vec<i64> = (first..first + LARGE_ELEMENTS as i64).collect();
    let mut column = HostColumn::to_fill(Storage::I64, LARGE_ELEMENTS, store.lend(LARGE_ELEMENTS));
    column.view_mut::<i64>().copy_from_slice(&values);
    let before = copies();
    let given = Buffer::from_column(column);
    let rows = given.on_device(store).unwrap_or_else(|e| panic!("{e}"));
    let between = copies();
    let fetched = Buffer::from_column(rows).on_host().unwrap_or_else(|e| panic!("{e}"));
    assert!(fetched.view::<i64>() == values, "from {first}");
    (between - before, copies() - between)
}

/// In chunks when the host's memory is new; used again, it is page-locked, and goes whole. Nothing is left behind.
fn large_columns_go_at_once() {
    let cuda = open();
    let store = cuda.store().expect("it has memory");
    let (page_locked, bytes) = (|| stand_in("stand_in_locked"), LARGE_ELEMENTS * 8);
    assert_eq!((there_and_back(&cuda, 0), page_locked()), ((3, 3), 0));
    assert_eq!(store.lent(), (0, 2 * bytes));
    assert_eq!(there_and_back(&cuda, 7), (1, 1));
    assert_eq!((page_locked(), store.lent()), (2 * bytes as i64, (2 * bytes, 2 * bytes)));
    // what others see is not written
    let mut lent = HostColumn::to_fill(Storage::I64, LARGE_ELEMENTS, store.lend(LARGE_ELEMENTS));
    lent.view_mut::<i64>().fill(4);
    let buffer = Buffer::from_column(lent);
    let copy = buffer.snapshot();
    buffer.write(0, &[9; 8]).unwrap_or_else(|e| panic!("{e}"));
    let column = copy.on_host().unwrap_or_else(|e| panic!("{e}"));
    assert!(column.locked().is_some() && column.view::<i64>().iter().all(|x| *x == 4));
    // a fork ends page-locking; what is lent stays as it is
    store.before_fork();
    assert!(column.locked().is_none() && column.view::<i64>()[LARGE_ELEMENTS - 1] == 4 && page_locked() == 0);
    assert_eq!(there_and_back(&cuda, 3), (1, 3), "one is locked anew, another is new");
    drop((buffer, copy, column));
    for threads in [1, 4] {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let cuda = &cuda;
                scope.spawn(move || (0..20).for_each(|i| _ = there_and_back(cuda, i * thread)));
            }
        });
    }
    // as when the device's memory runs out
    let none = store.allocate(8 << 30).expect_err("the stand-in has half of it");
    assert!(matches!(none, Error::Memory { .. }), "{none}");
    assert_eq!((page_locked(), store.lent()), (0, (0, 0)));
}

/// Columns go in chunks, then, and their contents are right; locking is tried again only for others.
fn page_locking_that_fails() {
    let cuda = open();
    // SAFETY: as in `stand_in`; its parameters are two numbers.
    let fail = |first: i64, count: i64| unsafe {
        let library = libloading::Library::new("libcuda.so.1").expect("it is on the path");
        let fail = library.get::<unsafe extern "C" fn(i64, i64)>("stand_in_fail").expect("it has this");
        fail(first, count);
    };
    there_and_back(&cuda, 0);
    fail(0, 2);
    there_and_back(&cuda, 5);
    assert_eq!((stand_in("stand_in_failed"), stand_in("stand_in_locked")), (2, 0));
    fail(-1, 0);
    there_and_back(&cuda, 6);
    assert_eq!(stand_in("stand_in_locked"), 0, "these are left as they are");
    let store = cuda.store().expect("it has memory");
    let more: Vec<_> = (0..2).map(|_| store.lend(2 * LARGE_ELEMENTS)).collect();
    drop(more);
    let again = store.lend(2 * LARGE_ELEMENTS).expect("there is room");
    assert!(again.locked().is_some() && stand_in("stand_in_locked") > 0);
}

/// `out = in + in`, checked or not, of which the sum is wanted; beside it a tag.
fn twice(checked: bool) -> Program {
    let mut b = Builder::new("entry".into(), Vec::new());
    let [job, begin, _] = [(); 3].map(|()| b.param(Scalar::I64, None));
    b.push(Stmt::Begin { index: job.into(), tick: begin.into(), check: true });
    let x = b.load(Scalar::I64, INPUT, job.into());
    let twice = match checked {
        true => b.checked(CheckedOp::Add, x, x, OVERFLOW),
        false => b.i64(Op::Add, &[x, x]),
    };
    b.store(OUTPUT, job.into(), twice);
    b.store(TAGS, job.into(), Operand::I32(1));
    let mut program = program(false, vec![b.finish()]);
    program.columns[OUTPUT.index()].read = false;
    program
}

fn what_is_reduced_while_it_is_computed() {
    let cuda = open();
    let program = |checked| {
        let program = twice(checked);
        let layout = Layout::structure_of_arrays(&program);
        let fold =
            Fold::of(&program, &layout, OUTPUT, None, Reduction::Sum, false, &[]).expect("each element stores its own");
        let kernel = cuda.prepare_with_epilogue(&program, &layout, Epilogue::Fold(fold), &CodeOptions::default());
        (fold, kernel.unwrap_or_else(|e| panic!("{e}")))
    };
    let run = |fold, kernel: &dyn Executable, run: &mut Run| {
        assert!(kernel.runs_epilogue());
        let cancel = CancelToken::default();
        cuda.launch_fold(kernel, fold, run.launch(&cancel)).unwrap_or_else(|e| panic!("{e}"))
    };
    let store = cuda.store().expect("it has memory");
    for (fold, kernel) in [program(true), program(false)] {
        for rows in [1, 33, 8192, 100_000, 1_000_003] {
            let sum = Some(Reduced::Integer(i128::from(rows * (rows - 1))));
            for _ in 0..3 {
                // from the host, and with what is on the device already, which nobody waits for
                let mut from_host = Run::new(0..rows);
                assert_eq!(run(fold, &*kernel, &mut from_host), (Outcome::Done, sum), "{rows} rows");
                assert!(from_host.columns[2].view::<u8>().iter().all(|tag| *tag == 1), "the other column comes back");
                let resident = |column: &HostColumn| {
                    let memory = store.upload(column.byte_len(), Some(column.bytes()));
                    HostColumn::on_device(column.storage(), column.len(), memory.unwrap_or_else(|e| panic!("{e}")))
                };
                let mut there = Run::new(0..rows);
                (there.columns[0], there.columns[2]) = (resident(&there.columns[0]), resident(&there.columns[2]));
                assert_eq!(run(fold, &*kernel, &mut there), (Outcome::Done, sum), "{rows} rows on the device");
                let columns = &there.columns;
                let mut tags = vec![0; rows as usize];
                columns[2].device().expect("there it is").read(0, &mut tags).unwrap_or_else(|e| panic!("{e}"));
                assert!(tags.iter().all(|tag| *tag == 1), "{rows} rows on the device");
                let reduced = cuda.reduce(Reduction::Max, Element::I64, &columns[0], 0..rows as usize);
                let greatest = Some(Place { index: rows as u64 - 1, value: Number::Int(rows - 1) });
                let expected = Reduced::Extremes { least: None, greatest, nan: false };
                assert_eq!(reduced.unwrap_or_else(|e| panic!("{e}")), expected);
            }
        }
    }
    sums_of_a_column_itself(&cuda);
    let (fold, kernel) = program(true);
    let run_of = |values: Vec<i64>| run(fold, &*kernel, &mut Run::new(values.into_iter()));
    let mut values = vec![1; 50_000];
    (values[20_000], values[40_000]) = (i64::MAX, i64::MAX);
    let (outcome, reduced) = run_of(values);
    assert!(matches!(outcome, Outcome::Trapped(trap) if trap.key == Key::new(0, 20_000)), "{outcome:?}");
    assert_eq!(reduced, None);
    assert_eq!(run_of(vec![1; 9000]), (Outcome::Done, Some(Reduced::Integer(18_000))), "nothing is left of it");
}

/// Of one that the host has, and of one that is on the device.
fn sums_of_a_column_itself(cuda: &CudaBackend) {
    let mut b = Builder::new("entry".into(), Vec::new());
    let [job, begin, _] = [(); 3].map(|()| b.param(Scalar::I64, None));
    b.push(Stmt::Begin { index: job.into(), tick: begin.into(), check: true });
    let x = b.load(Scalar::I64, INPUT, job.into());
    b.store(OUTPUT, job.into(), x);
    let mut program = program(false, vec![b.finish()]);
    program.columns[OUTPUT.index()].read = false;
    program.columns[TAGS.index()].written = false;
    let layout = Layout::structure_of_arrays(&program);
    let fold =
        Fold::of(&program, &layout, OUTPUT, None, Reduction::Sum, false, &[]).expect("each element stores its own");
    assert_eq!(fold.copied, Some(INPUT));
    let kernel = cuda.prepare_with_epilogue(&program, &layout, Epilogue::Fold(fold), &CodeOptions::default());
    let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
    let store = cuda.store().expect("it has memory");
    let cancel = CancelToken::default();
    for rows in [0, 1, 33, 8191, 8192, 8193, 3 * 8192, 100_000, 1_000_003] {
        let sum = Some(Reduced::Integer(i128::from(rows * (rows - 1) / 2)));
        let mut run = Run::new(0..rows);
        let answer =
            |run: &mut Run| cuda.launch_fold(&*kernel, fold, run.launch(&cancel)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(answer(&mut run), (Outcome::Done, sum), "{rows} rows");
        if rows > 0 {
            let input = &run.columns[INPUT.index()];
            let memory = store.upload(input.byte_len(), Some(input.bytes()));
            run.columns[INPUT.index()] =
                HostColumn::on_device(input.storage(), input.len(), memory.unwrap_or_else(|e| panic!("{e}")));
            assert_eq!(answer(&mut run), (Outcome::Done, sum), "{rows} rows on the device");
        }
    }
}

/// Launches whose ends can be read in any order. A launch whose end is never read still frees its completion slot for
/// others.
fn launches_that_raise_later() {
    let cuda = open();
    let store = cuda.store().expect("it has memory");
    let kernel = prepare(&cuda, &twice(true));
    let rows = 100;
    let launch = |first: i64| {
        let mut run = Run::new(first..first + rows);
        for column in &mut run.columns {
            let memory = store.upload(column.byte_len(), Some(column.bytes())).unwrap_or_else(|e| panic!("{e}"));
            *column = HostColumn::on_device(column.storage(), column.len(), memory);
        }
        let (cancel, mut deferred) = (CancelToken::default(), None);
        let outcome = cuda.launch(&*kernel, Launch { deferred: Some(&mut deferred), ..run.launch(&cancel) });
        (outcome.unwrap_or_else(|e| panic!("{e}")), deferred, run.columns)
    };
    // of 5, one overflows at its 50th element
    let first = |number: i64| if number % 5 == 3 { (1 << 62) - 50 } else { number };
    let asked = |(number, ending): (i64, &dyn Ending)| {
        let outcome = ending.outcome(true).unwrap_or_else(|e| panic!("{e}")).expect("it was waited for");
        assert_eq!(ending.outcome(false).unwrap_or_else(|e| panic!("{e}")), Some(outcome), "it is known now");
        match outcome {
            Outcome::Trapped(trap) => assert!(number % 5 == 3 && trap.key == Key::new(0, 50), "{number}: {trap:?}"),
            other => assert!(number % 5 != 3 && other == Outcome::Done, "{number}: {other:?}"),
        }
    };
    let mut endings = Vec::new();
    for number in 0..500 {
        let (outcome, ending, columns) = launch(first(number));
        match (outcome, ending) {
            // all places were taken: it was waited for
            (Outcome::Trapped(trap), None) => assert!(number % 5 == 3 && trap.key == Key::new(0, 50)),
            (Outcome::Done, None) => assert!(number % 5 != 3),
            (outcome, Some(ending)) => {
                assert_eq!(outcome, Outcome::Done, "for the time being");
                // others are dropped
                if number % 3 == 0 {
                    endings.push((number, ending, columns));
                }
            }
            (outcome, None) => panic!("{outcome:?}"),
        }
    }
    assert!(endings.len() > 60, "{} launches were not waited for", endings.len());
    for (number, ending, columns) in endings.iter().rev() {
        asked((*number, &**ending));
        if number % 5 != 3 {
            let mut bytes = vec![0; rows as usize * 8];
            columns[1].device().expect("there it is").read(0, &mut bytes).unwrap_or_else(|e| panic!("{e}"));
            let made: Vec<i64> =
                bytes.chunks_exact(8).map(|b| i64::from_ne_bytes(b.try_into().expect("8 bytes"))).collect();
            assert!(made.iter().enumerate().all(|(i, x)| *x == 2 * (number + i as i64)), "{number}");
        }
    }
}

/// All rows are on the device, and no caller asks for deferred errors. Such launches need no memory, no upload and no
/// download. They leave nothing behind that the next would see.
fn launches_whose_end_is_told_at_once() {
    let cuda = open();
    let store = cuda.store().expect("it has memory");
    let kernel = prepare(&cuda, &twice(true));
    let rows = 100;
    for number in 0..300 {
        let first = if number % 5 == 3 { (1 << 62) - 50 } else { number };
        let mut run = Run::new(first..first + rows);
        for column in &mut run.columns {
            let memory = store.upload(column.byte_len(), Some(column.bytes())).unwrap_or_else(|e| panic!("{e}"));
            *column = HostColumn::on_device(column.storage(), column.len(), memory);
        }
        let held = store.held();
        let cancel = CancelToken::default();
        match cuda.launch(&*kernel, run.launch(&cancel)).unwrap_or_else(|e| panic!("{e}")) {
            Outcome::Trapped(trap) => assert!(number % 5 == 3 && trap.key == Key::new(0, 50), "{number}: {trap:?}"),
            Outcome::Done => {
                assert!(number % 5 != 3, "{number}");
                let copy = store.copy(run.columns[1].device().expect("there it is")).unwrap_or_else(|e| panic!("{e}"));
                let mut last = [0; 8];
                copy.read((rows as usize - 1) * 8, &mut last).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(i64::from_ne_bytes(last), 2 * (first + rows - 1));
            }
            Outcome::Cancelled => panic!("nobody stopped {number}"),
        }
        assert!(number == 0 || store.held() <= held + 2 * rows as u64 * 8 + 1024, "the copy is all that was allocated");
        cancel.cancel();
        let stopped = cuda.launch(&*kernel, run.launch(&cancel)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(stopped, Outcome::Cancelled);
    }
}

/// The columns of a run, on the device.
fn there(cuda: &CudaBackend, run: &Run) -> Vec<HostColumn> {
    let store = cuda.store().expect("it has memory");
    let up = |rows: &HostColumn| {
        let memory = store.upload(rows.byte_len(), Some(rows.bytes())).unwrap_or_else(|e| panic!("{e}"));
        HostColumn::on_device(rows.storage(), rows.len(), memory)
    };
    run.columns.iter().map(up).collect()
}

fn rows_of(memory: &Arc<dyn DeviceMemory>) -> Vec<i64> {
    let mut bytes = vec![0; memory.bytes()];
    memory.read(0, &mut bytes).unwrap_or_else(|e| panic!("{e}"));
    bytes.chunks_exact(8).map(|b| i64::from_ne_bytes(b.try_into().expect("8 bytes"))).collect()
}

/// A loop that makes small arrays, which are let go a thousand at a time. The driver is asked for hardly more than the
/// launches.
fn launches_one_after_the_other() {
    let cuda = open();
    let store = cuda.store().expect("it has memory");
    let kernel = prepare(&cuda, &twice(false));
    let rows = 100;
    // all but what is made is there from the beginning
    let there = there(&cuda, &Run::new(0..rows));
    let round = || {
        let asked = || (stand_in("stand_in_questions"), stand_in("stand_in_allocations"));
        let before = asked();
        let made: Vec<Arc<dyn DeviceMemory>> = (0..1000)
            .map(|_| {
                let memory = store.allocate(rows as usize * 8).unwrap_or_else(|e| panic!("{e}"));
                let mut run = Run::new(0..rows);
                run.columns.clone_from(&there);
                run.columns[1] = HostColumn::on_device(Storage::I64, rows as usize, memory.clone());
                let cancel = CancelToken::default();
                let outcome = cuda.launch(&*kernel, run.launch(&cancel)).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(outcome, Outcome::Done);
                memory
            })
            .collect();
        let after = asked();
        let twice: Vec<i64> = (0..rows).map(|i| 2 * i).collect();
        assert!(made.iter().step_by(37).chain(made.last()).all(|memory| rows_of(memory) == twice));
        assert!(made.last().is_some_and(|last| last.settle().is_ok()));
        (after.0 - before.0, after.1 - before.1)
    };
    let (questions, allocations) = round();
    assert!(questions <= 2000 / 16 && allocations <= 1100, "{questions} questions, {allocations} allocations");
    let (questions, allocations) = round();
    assert!(questions <= 1000 / 16 && allocations <= 64, "{questions} questions, {allocations} allocations again");
}

/// Doubles again and again what is on the device, each time into new memory.
struct Doubling<'a> {
    cuda: &'a CudaBackend,
    kernel: Arc<dyn Executable>,
    columns: Vec<HostColumn>,
}

const DOUBLED: usize = 100;

impl<'a> Doubling<'a> {
    fn new(cuda: &'a CudaBackend) -> Self {
        let columns = there(cuda, &Run::new(1..1 + DOUBLED as i64));
        Self { cuda, kernel: prepare(cuda, &twice(false)), columns }
    }
    fn once(&mut self) -> Result<&Arc<dyn DeviceMemory>> {
        let store = self.cuda.store().expect("it has memory");
        let mut run = Run::new(0..DOUBLED as i64);
        run.columns.clone_from(&self.columns);
        let memory = store.allocate(DOUBLED * 8)?;
        run.columns[1] = HostColumn::on_device(Storage::I64, DOUBLED, memory);
        let outcome = run.try_on(self.cuda, &*self.kernel, &CancelToken::default())?;
        assert_eq!(outcome, Outcome::Done);
        self.columns[0] = run.columns[1].clone();
        Ok(self.columns[0].device().expect("it was made there"))
    }
}

/// Whether launches were made by another thread than this one since then.
fn elsewhere(before: i64) -> bool {
    stand_in("stand_in_elsewhere") > before
}

fn has_another_core() -> bool {
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
}

/// A thread of the queue's own makes launches that follow each other and that nobody waits for. Whoever looks finds
/// what was launched before, and what comes after is behind it.
fn launches_that_another_thread_makes() {
    let cuda = open();
    let store = cuda.store().expect("it has memory");
    let (mut one, mut other) = (Doubling::new(&cuda), Doubling::new(&cuda));
    let mut times = [0u32; 2];
    let holds = |memory: &Arc<dyn DeviceMemory>, times: u32| {
        let expected = (1..=DOUBLED as i64).map(|i| i.wrapping_shl(times % 64) * i64::from(times < 64));
        assert!(rows_of(memory).into_iter().eq(expected), "doubled {times} times");
    };
    let mut random = 1u32;
    let mut kept: Vec<(Arc<dyn DeviceMemory>, u32)> = Vec::new();
    for number in 0..20_000 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let which = usize::from(random >> 28 == 3);
        let doubling = if which == 0 { &mut one } else { &mut other };
        if times[which] > 60 {
            doubling.columns = there(&cuda, &Run::new(1..1 + DOUBLED as i64));
            times[which] = 0;
        }
        let memory = doubling.once().unwrap_or_else(|e| panic!("{e}")).clone();
        times[which] += 1;
        match random >> 8 & 0xfff {
            0..20 => holds(&memory, times[which]),
            20..30 => holds(&store.copy(&memory).unwrap_or_else(|e| panic!("{e}")), times[which]),
            30..40 => memory.settle().unwrap_or_else(|e| panic!("{e}")),
            40..60 => kept.push((memory, times[which])),
            // the thread falls asleep, and is woken again
            60..64 => std::thread::sleep(Duration::from_micros(300)),
            64..66 => assert_eq!(Run::new(0..10).on(&cuda, &sums(false)), Outcome::Done),
            _ => {}
        }
        if number % 5_000 == 0 {
            kept.drain(..).for_each(|(memory, times)| holds(&memory, times));
        }
    }
    kept.drain(..).for_each(|(memory, times)| holds(&memory, times));
    // calls of several threads, which take turns
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut doubling = Doubling::new(&cuda);
                for times in 1..=60 {
                    let memory = doubling.once().unwrap_or_else(|e| panic!("{e}"));
                    if times % 20 == 0 {
                        holds(memory, times);
                    }
                }
            });
        }
    });
    if has_another_core() {
        let began = Instant::now();
        let before = stand_in("stand_in_elsewhere");
        let mut doubling = Doubling::new(&cuda);
        while !elsewhere(before) {
            doubling.once().unwrap_or_else(|e| panic!("{e}"));
            assert!(began.elapsed() < Duration::from_secs(60), "each call made its launch itself");
        }
    }
}

/// A failure that no caller waits for is reported to each later caller.
fn launches_that_fail_elsewhere() {
    if !has_another_core() {
        return;
    }
    let cuda = open();
    let mut doubling = Doubling::new(&cuda);
    let began = Instant::now();
    let error = loop {
        match doubling.once() {
            Ok(_) => assert!(began.elapsed() < Duration::from_secs(60), "each call made its launch itself"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("CUDA_ERROR_SOMETHING") && error.contains("restart the process"), "{error}");
    let last = doubling.columns[0].device().expect("it was to be made there").clone();
    let read = last.read(0, &mut [0; 8]).expect_err("it was never made").to_string();
    assert!(read.contains("restart the process"), "{read}");
}

/// Code that is let go stays on the device until the launches of it are done.
fn kernels_that_nobody_has_any_more_while_they_run() {
    let cuda = open();
    for _ in 0..20 {
        let mut doubling = Doubling::new(&cuda);
        for _ in 0..50 {
            doubling.once().unwrap_or_else(|e| panic!("{e}"));
        }
        let memory = doubling.columns[0].device().expect("it was made there").clone();
        drop(doubling);
        let expected = (1..=DOUBLED as i64).map(|i| i << 50);
        assert!(rows_of(&memory).into_iter().eq(expected));
    }
}

/// A process may end whatever is under way.
fn launches_under_way_at_the_end() {
    let cuda = open();
    let mut doubling = Doubling::new(&cuda);
    for _ in 0..1_000 {
        doubling.once().unwrap_or_else(|e| panic!("{e}"));
    }
    std::mem::forget(doubling.columns);
    std::mem::forget(cuda);
}

/// `out = 3 * out + in`, as often as there are ticks if these are fused, else once.
fn grows(fused: bool) -> Program {
    let step = |b: &mut Builder, index: Operand| {
        let (x, old) = (b.load(Scalar::I64, INPUT, index), b.load(Scalar::I64, OUTPUT, index));
        let more = b.i64(Op::Mul, &[old, Operand::I64(3)]);
        let more = b.i64(Op::Add, &[more, x]);
        b.store(OUTPUT, index, more);
    };
    let func = if fused {
        entry(|b, index, _| step(b, index))
    } else {
        let mut b = Builder::new("entry".into(), Vec::new());
        let [job, begin, _end] = [(); 3].map(|()| b.param(Scalar::I64, None));
        b.push(Stmt::Begin { index: job.into(), tick: begin.into(), check: true });
        step(&mut b, job.into());
        b.finish()
    };
    let mut program = program(fused, vec![func]);
    program.columns[TAGS.index()].written = false;
    program
}

/// A loop of calls is ahead of the device. What it calls meanwhile is launched as one, and nobody sees anything of it
/// but that it is done sooner.
fn ticks_that_follow_each_other() {
    let cuda = open();
    let store = cuda.store().expect("it has memory");
    let kernel = prepare(&cuda, &grows(false));
    kernel.join_ticks(Box::new(|| Ok(Some(grows(true)))));
    let rows = 300;
    let lists = [there(&cuda, &Run::new(0..rows)), there(&cuda, &Run::new(5..5 + rows))];
    let mut expected = [vec![0i64; rows as usize], vec![0; rows as usize]];
    let mut call = |which: usize| {
        let mut run = Run::new(0..rows);
        run.columns.clone_from(&lists[which]);
        let outcome = cuda.launch(&*kernel, run.launch(&CancelToken::default())).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(outcome, Outcome::Done);
        for (row, old) in expected[which].iter_mut().enumerate() {
            *old = old.wrapping_mul(3).wrapping_add(row as i64 + 5 * which as i64);
        }
        expected[which].clone()
    };
    let holds = |which: usize, expected: &[i64]| {
        assert_eq!(rows_of(lists[which][1].device().expect("there it is")), expected);
    };
    let began = Instant::now();
    // the code for several is made meanwhile
    loop {
        let before = stand_in("stand_in_launches");
        let last = (0..500).map(|_| call(0)).last().expect("there are some");
        holds(0, &last);
        if stand_in("stand_in_launches") - before < 250 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "each call was launched for itself");
    }
    // whoever looks, or does something else, finds what was called before
    for number in 0..2_000 {
        let which = usize::from(number / 17 % 3 == 1);
        let now = call(which);
        match number % 97 {
            13 | 14 => holds(which, &now),
            50 => {
                let copy = store.copy(lists[which][1].device().expect("there it is")).unwrap_or_else(|e| panic!("{e}"));
                let mut first = [0; 8];
                copy.read(8, &mut first).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(i64::from_ne_bytes(first), now[1]);
            }
            _ => {}
        }
    }
    for which in [0, 1] {
        let now = call(which);
        holds(which, &now);
    }
}

fn memory_that_runs_out() {
    let cuda = open();
    let kernel = prepare(&cuda, &sums(false));
    // 17 bytes a row. What the first two leave in the pool must go for the third.
    for rows in [1_000_000, 1_100_000, 1_200_000] {
        let outcome = Run::new(0..rows).try_on(&cuda, &*kernel, &CancelToken::default());
        assert_eq!(outcome.unwrap_or_else(|e| panic!("{e}")), Outcome::Done);
    }
    match Run::new(0..10_000_000).try_on(&cuda, &*kernel, &CancelToken::default()) {
        Err(Error::Memory { what, wanted, free, .. }) => {
            assert!(what.contains("Stand-in") && wanted >= 170_000_000 && free == 50_000_000, "{what} {wanted} {free}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(Run::new(0..10).on(&cuda, &sums(false)), Outcome::Done, "smaller ones still fit");
}

fn a_fault_is_remembered() {
    let cuda = open();
    let kernel = prepare(&cuda, &sums(false));
    let try_it = || Run::new(0..10).try_on(&cuda, &*kernel, &CancelToken::default()).expect_err("it fails").to_string();
    let first = try_it();
    assert!(first.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{first}");
    let second = try_it();
    assert!(second.contains("CUDA_ERROR_ILLEGAL_ADDRESS") && second.contains("restart the process"), "{second}");
}

fn refuses(because: &str) {
    match CudaBackend::open(Arc::new(DiskCache::open(None, 0))) {
        Err(e @ Error::Device { .. }) => assert!(e.to_string().contains(because), "{e}"),
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("there is no GPU that works"),
    }
}

fn a_forked_child() {
    let cuda = open();
    let kernel = prepare(&cuda, &sums(false));
    let launch = |cuda: &CudaBackend| Run::new(0..10).try_on(cuda, &*kernel, &CancelToken::default());
    assert_eq!(launch(&cuda).unwrap_or_else(|e| panic!("{e}")), Outcome::Done);
    // what nobody has waited for when the host fetches it, and what it does not fetch
    let made = || {
        let ones = Buffer::from_column(column(Storage::I64, &[1i64; 20_000]));
        let rows = ones.on_device(cuda.store().expect("it has memory")).unwrap_or_else(|e| panic!("{e}"));
        let ones = Stretch { element: Element::I64, rows: &rows, range: 0..20_000 };
        Buffer::from_column(done(cuda.collective().expect("as above").scan(Scan::Sum, ones)).0)
    };
    let (fetched, there) = (made(), made());
    let store = cuda.store().expect("it has memory");
    drop(store.lend(LARGE_ELEMENTS));
    let mut locked = HostColumn::to_fill(Storage::I64, LARGE_ELEMENTS, store.lend(LARGE_ELEMENTS));
    locked.view_mut::<i64>().fill(5);
    assert!(locked.locked().is_some());
    fetched.on_host().unwrap_or_else(|e| panic!("{e}"));
    // SAFETY: the child only touches what is asserted here and then leaves by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let inherited = launch(&cuda).is_err_and(|e| e.to_string().contains("fork before the first use"));
        let new = CudaBackend::open(Arc::new(DiskCache::open(None, 0)));
        let refused = new.is_err_and(|e| e.to_string().contains("fork before the first use"));
        let mut last = [0; 8];
        let written = fetched.write(0, &[7; 8]).and_then(|()| fetched.read(19_999 * 8, &mut last));
        let kept = written.is_ok() && i64::from_ne_bytes(last) == 20_000;
        let lost = there.write(0, &[7; 8]).is_err_and(|e| e.to_string().contains("fork before the first use"));
        let found = locked.view::<i64>().iter().all(|x| *x == 5)
            && cuda.store().is_some_and(|s| s.lend(LARGE_ELEMENTS).is_none());
        locked.view_mut::<i64>().fill(6);
        drop((cuda, kernel, fetched, there, locked));
        let unlocked = stand_in("stand_in_locked") > 0;
        // SAFETY: ends this process, and runs nothing else.
        unsafe { libc::_exit(i32::from(!(inherited && refused && kept && lost && found && unlocked))) };
    }
    let mut status = 0;
    // SAFETY: the out-pointer is to a live local.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the child hears why, and frees nothing");
    assert!(locked.locked().is_some() && locked.view::<i64>().iter().all(|x| *x == 5), "a child writes its own");
    assert_eq!(launch(&cuda).unwrap_or_else(|e| panic!("{e}")), Outcome::Done, "the parent is not disturbed");
}

/// One round of a loop that waits for the stream of an upload, and for the queue by an event, later by the word that
/// the queue writes.
fn a_round(doubling: &mut Doubling<'_>) {
    doubling.columns = there(doubling.cuda, &Run::new(0..DOUBLED as i64));
    // the last upload is not followed by another one, which would wait for it, too
    let numbers: Vec<u8> = (1..=DOUBLED as i64).flat_map(i64::to_ne_bytes).collect();
    let store = doubling.cuda.store().expect("it has memory");
    let memory = store.upload(numbers.len(), Some(&numbers)).unwrap_or_else(|e| panic!("{e}"));
    doubling.columns[INPUT.index()] = HostColumn::on_device(Storage::I64, DOUBLED, memory);
    let memory = doubling.once().unwrap_or_else(|e| panic!("{e}"));
    assert!(rows_of(memory).into_iter().eq((1..=DOUBLED as i64).map(|i| 2 * i)));
}

fn waits_that_are_there() {
    let cuda = open();
    let mut doubling = Doubling::new(&cuda);
    (0..500).for_each(|_| a_round(&mut doubling));
    assert_eq!(stand_in("stand_in_races"), 0);
    assert!(stand_in("stand_in_words") > 0, "some waits were for the word");
}

/// The check itself: the stand-in takes no notice of one way to wait, as if it were not there.
fn a_missing_wait() {
    let cuda = open();
    let mut doubling = Doubling::new(&cuda);
    let began = Instant::now();
    while stand_in("stand_in_races") == 0 {
        a_round(&mut doubling);
        assert!(began.elapsed() < Duration::from_secs(60), "nothing was reported");
    }
}

/// The stop key goes to memory that another stream allocates.
fn a_stop_before_the_launch_begins() {
    let cuda = open();
    let kernel = prepare(&cuda, &program(false, vec![entry(|b, _, _| b.repeat(|b, _| b.push(Stmt::Poll)))]));
    for round in 0..50 {
        let cancel = CancelToken::default();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_micros(20 * round));
                cancel.cancel();
            });
            let outcome = Run::new(0..10 + 1000 * round as i64).ticks(10).try_on(&cuda, &*kernel, &cancel);
            assert_eq!(outcome.unwrap_or_else(|e| panic!("{e}")), Outcome::Cancelled);
        });
    }
}
