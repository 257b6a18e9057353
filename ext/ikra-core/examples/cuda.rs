//! What the CUDA backend costs on the GPU at hand: opening, compiling, launching, moving bytes, stopping.
//!
//!     cargo run --release --package ikra-core --example cuda
//!
//! Times are of the host's clock, from call to return, unless it says "on the device". Results are checked; nothing is
//! compared with anything else here (see `benchmark/`). A fresh process pays for the driver and NVRTC once: that is
//! measured first.

use ikra_core::backend::cuda::{CudaBackend, nvrtc};
use ikra_core::backend::{Backend, CancelToken, Executable, Key, Launch, Outcome, Timings};
use ikra_core::cache::disk::DiskCache;
use ikra_core::config::CodeOptions;
use ikra_core::ir::build::Builder;
use ikra_core::ir::{
    CheckedOp, Cmp, Column, ColumnId, Func, FuncId, Jobs, Op, Operand, Program, Scalar, Site, SiteId, Space, Stmt,
    Storage, Trap,
};
use ikra_core::layout::Layout;
use ikra_core::memory::column::HostColumn;
use std::sync::Arc;
use std::time::{Duration, Instant};

const INPUT: ColumnId = ColumnId(0);
const OUTPUT: ColumnId = ColumnId(1);

fn main() {
    let folder = std::env::temp_dir().join(format!("ikra-cuda-example-{}", std::process::id()));
    let cache = || Arc::new(DiskCache::open(Some(&folder), 1 << 28));
    let start = Instant::now();
    let cuda = match CudaBackend::open(cache()) {
        Ok(cuda) => cuda,
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1);
        }
    };
    println!("{:?}", cuda.facts());
    say("opening, before the context is there", start.elapsed());
    let kernel = prepare(&cuda, &sums("first", false));
    say("preparing the first kernel, NVRTC's loading in it", start.elapsed());
    if let Ok(nvrtc) = nvrtc::load() {
        println!("NVRTC {:?} from {}", nvrtc.version, nvrtc.found);
    }
    let mut run = Run::new(1000, 1);
    run.on(&cuda, &*kernel);
    say("until the first results, all in all", start.elapsed());

    let start = Instant::now();
    prepare(&cuda, &sums("second", false));
    say("preparing another kernel", start.elapsed());
    let other = CudaBackend::open(cache()).unwrap_or_else(|e| panic!("{e}"));
    let start = Instant::now();
    let cached = prepare(&other, &sums("second", false));
    assert!(cached.from_cache());
    say("preparing it from the disk", start.elapsed());

    println!();
    for rows in [1, 1000, 10_000, 100_000] {
        let mut run = Run::new(rows, 1);
        let mut times: Vec<Duration> = (0..500).map(|_| run.on(&cuda, &*kernel)).collect();
        times.sort();
        say(&format!("a launch over {rows} rows, there and back (median of 500)"), times[250]);
        println!("{:>60} best {:?}", "", times[0]);
    }
    for rows in [1 << 24, 1 << 26] {
        let mut run = Run::new(rows, 1);
        for turn in 0..3 {
            run.timings = Timings { exact: true, ..Timings::default() };
            let time = run.on(&cuda, &*kernel);
            let Timings { upload, kernel, download, .. } = run.timings;
            let rate = |bytes: usize, t: Duration| bytes as f64 / t.as_secs_f64() / 1e9;
            let bytes = rows * 8;
            println!(
                "{} MiB columns, turn {turn}: {time:?}; on the device: up {upload:?} ({:.1} GB/s), kernel {kernel:?} \
                 ({:.0} GB/s), down {download:?} ({:.1} GB/s)",
                bytes >> 20,
                rate(2 * bytes, upload),
                rate(3 * bytes, kernel),
                rate(bytes, download),
            );
        }
    }

    println!();
    for (fused, name) in [(false, "a launch each"), (true, "fused")] {
        let kernel = prepare(&cuda, &sums("ticks", fused));
        for rows in [1000, 1 << 20] {
            let ticks = 10_000;
            let mut run = Run::new(rows, ticks);
            run.on(&cuda, &*kernel);
            run.timings = Timings { exact: true, ..Timings::default() };
            let time = run.on(&cuda, &*kernel);
            let per_tick = run.timings.kernel / ticks as u32;
            println!("{ticks} ticks over {rows} rows, {name}: {time:?}; on the device {per_tick:?} a tick");
        }
    }

    println!();
    let endless = prepare(&cuda, &program("endless", false, vec![entry(|b, _| b.repeat(|b, _| b.push(Stmt::Poll)))]));
    for rows in [32, 1 << 22] {
        let cancel = CancelToken::default();
        let mut cancelled = Instant::now();
        std::thread::scope(|threads| {
            let canceller = threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                cancel.cancel();
                Instant::now()
            });
            assert_eq!(Run::new(rows, 1).launch(&cuda, &*endless, &cancel), Outcome::Cancelled);
            let done = Instant::now();
            cancelled = canceller.join().expect("it only cancels");
            say(&format!("stopping an endless loop of {rows} jobs"), done - cancelled);
        });
    }
    for rows in [1000, 1 << 22] {
        let mut run = Run::new(rows, 1);
        run.columns[0].view_mut::<i64>().fill(i64::MAX);
        run.columns[1].view_mut::<i64>().fill(1);
        let start = Instant::now();
        let outcome = run.launch(&cuda, &*kernel, &CancelToken::default());
        assert!(matches!(outcome, Outcome::Trapped(t) if t.key == Key::new(0, 0)), "{outcome:?}");
        say(&format!("{rows} jobs that all trap"), start.elapsed());
    }
    let deep = prepare(&cuda, &program("deep", false, recursion()));
    let mut run = Run::new(1 << 16, 1);
    run.columns[0].view_mut::<i64>().fill(400);
    let start = Instant::now();
    assert_eq!(run.launch(&cuda, &*deep, &CancelToken::default()), Outcome::Done);
    assert!(run.columns[1].view::<i64>().iter().all(|x| *x == 400));
    say("65536 jobs, 400 calls deep, with room for the stacks", start.elapsed());
    run.columns[0].view_mut::<i64>()[7] = 1 << 40;
    let outcome = run.launch(&cuda, &*deep, &CancelToken::default());
    assert!(matches!(outcome, Outcome::Trapped(t) if t.key == Key::new(0, 7)), "{outcome:?}");
    println!("{}", deep.listing().lines().next().unwrap_or_default());
    println!("{}", kernel.listing().lines().next().unwrap_or_default());
    let _ = std::fs::remove_dir_all(&folder);
    println!("\nAll results were right.");
}

fn say(what: &str, time: Duration) {
    println!("{what:>60} {time:?}");
}

fn prepare(cuda: &CudaBackend, program: &Program) -> Arc<dyn Executable> {
    let layout = Layout::structure_of_arrays(program);
    cuda.prepare(program, &layout, &CodeOptions::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn program(name: &str, fused_ticks: bool, funcs: Vec<Func>) -> Program {
    let column = |name: &str, written| Column {
        name: name.into(),

        space: Space::Element,
        storage: Storage::I64,
        refers: None,
        small: false,
        read: true,
        written,
    };
    let site = |trap| Site { trap, path: "cuda.rs".into(), line: 1, operands: Vec::new() };
    Program {
        name: name.into(),
        funcs,
        entry: FuncId(0),
        columns: vec![column("in", false), column("out", true)],
        params: Vec::new(),
        heaps: Vec::new(),
        even: Vec::new(),
        sites: vec![site(Trap::IntegerOverflow("+")), site(Trap::StackOverflow)],
        jobs: Jobs::Identity,
        few: false,
        fused_ticks,
        uses_random: false,
        rescued: Default::default(),
    }
}

fn entry(body: impl FnOnce(&mut Builder, Operand)) -> Func {
    let mut b = Builder::new("entry".into(), Vec::new());
    let [job, begin, end] = [(); 3].map(|()| b.param(Scalar::I64, None));
    let tick = b.temp(Scalar::I64);
    b.set(tick, begin.into());
    b.repeat(|b, done| {
        let over = b.icmp(Cmp::Ge, tick.into(), end.into());
        b.when(over, |b| b.push(Stmt::Break(done)));
        b.push(Stmt::Begin { index: job.into(), tick: tick.into(), check: true });
        b.block(|b, _| body(b, job.into()));
        let next = b.i64(Op::Add, &[tick.into(), Operand::I64(1)]);
        b.set(tick, next);
    });
    b.finish()
}

/// `out += in`, checked.
fn sums(name: &str, fused: bool) -> Program {
    let body = |b: &mut Builder, index| {
        let (x, sum) = (b.load(Scalar::I64, INPUT, index), b.load(Scalar::I64, OUTPUT, index));
        let sum = b.checked(CheckedOp::Add, sum, x, SiteId(0));
        b.store(OUTPUT, index, sum);
    };
    program(name, fused, vec![entry(body)])
}

/// `out = depth(in)`, where `depth(n) = n == 0 ? 0 : depth(n - 1) + 1`.
fn recursion() -> Vec<Func> {
    let mut f = Builder::new("depth".into(), vec![Scalar::I64]);
    let n = f.param(Scalar::I64, None);
    let end = f.icmp(Cmp::Le, n.into(), Operand::I64(0));
    f.when(end, |f| f.push(Stmt::Return(vec![Operand::I64(0)])));
    let less = f.i64(Op::Sub, &[n.into(), Operand::I64(1)]);
    let below = f.call(FuncId(1), vec![less], &[Scalar::I64], Some(SiteId(1)));
    let sum = f.i64(Op::Add, &[below[0], Operand::I64(1)]);
    f.push(Stmt::Return(vec![sum]));
    let main = entry(|b, index| {
        let x = b.load(Scalar::I64, INPUT, index);
        let d = b.call(FuncId(1), vec![x], &[Scalar::I64], Some(SiteId(1)));
        b.store(OUTPUT, index, d[0]);
    });
    vec![main, Func { recursive: true, ..f.finish() }]
}

struct Run {
    columns: Vec<HostColumn>,
    ticks: u64,
    timings: Timings,
}

impl Run {
    fn new(rows: usize, ticks: u64) -> Self {
        let mut columns = vec![HostColumn::zeroed(Storage::I64, rows), HostColumn::zeroed(Storage::I64, rows)];
        columns[0].view_mut::<i64>().iter_mut().zip(0..).for_each(|(x, i)| *x = i);
        Self { columns, ticks, timings: Timings::default() }
    }
    fn launch(&mut self, cuda: &CudaBackend, kernel: &dyn Executable, cancel: &CancelToken) -> Outcome {
        let jobs = self.columns[0].len() as u64;
        let plain = Launch::of(jobs, &mut self.columns, &[0, 0], &[], cancel, &mut self.timings);
        let launch = Launch { ticks: self.ticks, ..plain };
        cuda.launch(kernel, launch).unwrap_or_else(|e| panic!("{e}"))
    }
    /// Runs from zeroes, checks, and answers how long it took.
    fn on(&mut self, cuda: &CudaBackend, kernel: &dyn Executable) -> Duration {
        self.columns[1].view_mut::<i64>().fill(0);
        let start = Instant::now();
        assert_eq!(self.launch(cuda, kernel, &CancelToken::default()), Outcome::Done);
        let time = start.elapsed();
        let ticks = self.ticks as i64;
        assert!(self.columns[1].view::<i64>().iter().zip(0..).all(|(x, i)| *x == i * ticks));
        time
    }
}
