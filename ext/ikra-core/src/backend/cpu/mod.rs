//! The CPU backend: Cranelift and rayon run programs on the cores of the host.
//!
//! Here: [`CpuBackend`], which compiles a program's functions ([`lower`]), puts them into executable memory ([`jit`])
//! and runs them over chunks of jobs ([`split`]). [`state`] describes the words that generated code and its caller
//! share. Not here: any rule of Ruby.

mod arena;
mod emitters;
mod helpers;
mod jit;
mod lower;
mod pairs;
mod pool;
mod privatization;
mod reservation;
mod split;
mod state;
#[cfg(test)]
mod tests;

use crate::backend::collective;
use crate::backend::collective::reduce::reduce_made;
use crate::backend::epilogue::Epilogue;
use crate::backend::fold::{self, Fold, Folded};
use crate::backend::threads::Threads;
use crate::backend::{Backend, Executable, Key, Launch, Outcome, TrapRecord, own};
use crate::config::CodeOptions;
use crate::error::{Error, Result};
use crate::ir::privatized::Privatized;
use crate::ir::{ColumnId, FuncId, ParamId, Program};
use crate::layout::Layout;
use crate::memory::room;
use crate::passes::{
    self,
    jam::{Grouping, Jam, Registers},
};
use crate::target::Target;
use cranelift_codegen::Context;
use cranelift_codegen::ir::Function;
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use jit::{Code, Columns, Inputs, Linker, State};
use parking_lot::Mutex;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The depth of nested calls at which SystemStackError is raised. Ruby itself gets about as deep.
const CALL_DEPTH: u32 = 10_000;

/// Bytes of stack that each thread has left.
const SMALL_STACK: u64 = 32 << 10;
/// Whether Cranelift has vectors for this processor.
const HAS_VECTORS: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The cores of this machine.
pub struct CpuBackend {
    target: Target,
    isa: OwnedTargetIsa,
    /// Whether the processor has fused multiply-add instructions.
    fma: bool,
    workers: pool::WorkerPool,
    /// Compilers that are not in use: their buffers are reused.
    compilers: Mutex<Vec<Compiler>>,
}

struct Compiler {
    context: Context,
    builder: FunctionBuilderContext,
}

impl Default for Compiler {
    fn default() -> Self {
        Self { context: Context::new(), builder: FunctionBuilderContext::new() }
    }
}

/// A compiled program.
struct CpuExecutable {
    code: Arc<Code>,
    columns: Columns,
    layout: Layout,
    params: usize,
    fused_ticks: bool,
    /// Whether the code reads the number of its thread.
    slots: bool,
    /// Whether it must run on threads with a known stack.
    needs_stack: bool,
    /// Whether it groups pairs.
    emits: bool,
    /// How deep calls may nest.
    depth: u64,
    /// All functions after Cranelift's own passes.
    functions: Vec<(String, Function)>,
    compiled_in: Duration,
    /// Whether a mask column says which elements are reduced.
    mask: bool,
    /// Columns of which threads may have private rows.
    privatized: Vec<Privatized>,
    /// Counters of which threads take many rows at once.
    counters: Vec<(ColumnId, ParamId)>,
    /// The same program for several jobs at once.
    jammed: Option<(Jam, Box<CpuExecutable>)>,
}

/// Jobs run together if each thread gets at least so many groups of them: fewer could not be shared equally.
const GROUPS: u64 = 4;

impl CpuBackend {
    /// Uses as many threads as `IKRA_THREADS` or `RAYON_NUM_THREADS` says, else as many as the process may run at once.
    ///
    /// # Errors
    /// `Device` if Cranelift does not support the host.
    pub fn new() -> Result<Self> {
        Self::on(Threads::of_host())
    }

    /// # Errors
    /// As [`CpuBackend::new`].
    pub fn with_threads(threads: usize) -> Result<Self> {
        Self::on(Threads::new(threads))
    }

    fn on(threads: Threads) -> Result<Self> {
        let mut flags = settings::builder();
        let verify = if cfg!(debug_assertions) { "true" } else { "false" };
        for (name, value) in [
            ("opt_level", "speed"),
            ("enable_verifier", verify),
            ("is_pic", "false"),
            ("use_colocated_libcalls", "false"),
            ("unwind_info", "false"),
            // the depth of calls is bounded so that their frames fit the stack
            ("enable_probestack", "false"),
            ("enable_multi_ret_implicit_sret", "true"),
        ] {
            flags.set(name, value).map_err(|error| unsupported(error.to_string()))?;
        }
        let isa = cranelift_native::builder()
            .map_err(|error| unsupported(error.to_owned()))?
            .finish(settings::Flags::new(flags))
            .map_err(|error| unsupported(error.to_string()))?;
        let target = Target {
            architecture: "cpu".to_owned(),
            warp: 1,
            call_depth: CALL_DEPTH,
            memory: memory(),
            shared_memory: 0,
        };
        let fma = cfg!(target_arch = "aarch64")
            || isa.isa_flags().iter().any(|flag| flag.name == "has_fma" && flag.as_bool() == Some(true));
        Ok(Self { target, isa, fma, workers: pool::WorkerPool::new(threads), compilers: Mutex::new(Vec::new()) })
    }

    fn compile(
        &self,
        program: &Program,
        layout: &Layout,
        registers: &Registers,
        compiler: &mut Compiler,
        fresh: bool,
    ) -> Result<CpuExecutable> {
        let start = Instant::now();
        let Compiler { context, builder } = compiler;
        let privatized = privatization::columns(program, layout);
        let counters = reservation::counters(program);
        let facts = lower::Facts::new(
            program,
            privatized.clone(),
            self.fma,
            if HAS_VECTORS { &registers.pairs } else { &[] },
            &registers.apart,
        );
        let mut linker = Linker::new(&self.isa, fresh);
        let host = self.isa.default_call_conv();
        let all = || (0..program.funcs.len()).map(FuncId::new);
        let ids =
            all().map(|id| linker.declare(&lower::signature(program, &facts, id, host))).collect::<Result<Vec<_>>>()?;
        let mut functions = Vec::with_capacity(ids.len());
        for id in all() {
            context.clear();
            let signature = lower::signature(program, &facts, id, host);
            let config = self.isa.frontend_config();
            let function = &mut context.func;
            lower::lower(program, layout, &facts, &ids, id, signature, config, &mut linker, builder, function)?;
            linker.define(ids[id.index()], context)?;
            functions
                .push((program.funcs[id.index()].name.clone(), std::mem::replace(&mut context.func, Function::new())));
        }
        let code = linker.finish(ids[program.entry.index()])?;
        Ok(CpuExecutable {
            columns: Columns::new(program, layout, privatized.len(), &counters),
            layout: layout.clone(),
            params: program.params.len(),
            fused_ticks: program.fused_ticks,
            slots: program.uses_slots(),
            emits: program.emits(),
            needs_stack: program.funcs.iter().any(|func| func.recursive) || code.stack() > SMALL_STACK,
            depth: u64::from(CALL_DEPTH).min(pool::USABLE_STACK / code.stack().max(1)),
            code: Arc::new(code),
            functions,
            compiled_in: start.elapsed(),
            mask: false,
            privatized,
            counters,
            jammed: None,
        })
    }

    fn prepared(&self, program: &Program, layout: &Layout, registers: &Registers) -> Result<CpuExecutable> {
        // never waits: in a forked child, the thread that held the lock may not exist
        let mut compiler = self.compilers.try_lock().and_then(|mut rest| rest.pop()).unwrap_or_default();
        let compiled = match self.compile(program, layout, registers, &mut compiler, false) {
            // the region of its first pages is full, mostly with other programs: it gets a new region
            Err(Error::CodeMemory) => self.compile(program, layout, registers, &mut compiler, true),
            compiled => compiled,
        };
        let executable = compiled.inspect_err(|error| {
            if matches!(error, Error::CodeMemory) {
                room::note_refused_code();
            }
        })?;
        if let Some(mut rest) = self.compilers.try_lock() {
            rest.push(compiler);
        }
        Ok(executable)
    }
}

fn unsupported(cause: String) -> Error {
    Error::Device { what: "compiling for this processor".to_owned(), cause }
}

/// Bytes of memory of this machine, if known.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB"));
    total.and_then(|kilobytes| kilobytes.trim().parse::<u64>().ok()).map_or(u64::MAX, |kilobytes| kilobytes * 1024)
}

impl Executable for CpuExecutable {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn listing(&self) -> String {
        let texts = self.functions.iter().map(|(name, f)| format!("; {name}\n{}", f.display()));
        let together = self.jammed.iter().map(|(jam, code)| jam.listing(&code.listing()));
        texts.chain(together).collect::<Vec<_>>().join("\n")
    }

    fn compiled_in(&self) -> Duration {
        self.compiled_in + self.jammed.as_ref().map_or(Duration::ZERO, |(_, together)| together.compiled_in)
    }

    fn predicted(&self, jobs: u64, ticks: u64) -> Option<Duration> {
        let alone = self.code.cost().of(jobs, ticks);
        let together =
            self.jammed.as_ref().and_then(|(jam, code)| code.code.cost().of(jobs.div_ceil(jam.width), ticks));
        alone.into_iter().chain(together).min()
    }

    fn runs_epilogue(&self) -> bool {
        !self.slots && !self.needs_stack && !self.mask && self.privatized.is_empty() && self.counters.is_empty()
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn target(&self) -> &Target {
        &self.target
    }

    fn prepare(&self, program: &Program, layout: &Layout, _options: &CodeOptions) -> Result<Arc<dyn Executable>> {
        let executable =
            self.prepared(&passes::run_given(passes::CPU, program.clone())?, layout, &Registers::default())?;
        let jammed = match Jam::of(program, Grouping::Consecutive) {
            Some(jam) => {
                let together = self.prepared(&jam.program, layout, &jam.registers)?;
                Some((jam, Box::new(together)))
            }
            None => None,
        };
        Ok(Arc::new(CpuExecutable { jammed, ..executable }))
    }

    fn prepare_with_epilogue(
        &self,
        program: &Program,
        layout: &Layout,
        epilogue: Epilogue,
        _options: &CodeOptions,
    ) -> Result<Arc<dyn Executable>> {
        let executable =
            self.prepared(&passes::run_given(passes::CPU, program.clone())?, layout, &Registers::default())?;
        Ok(Arc::new(CpuExecutable { mask: epilogue.mask().is_some(), ..executable }))
    }

    fn groups(&self) -> bool {
        true
    }

    fn slots(&self, _jobs: u64) -> u64 {
        self.workers.threads() as u64
    }

    fn launch(&self, executable: &dyn Executable, launch: Launch<'_>) -> Result<Outcome> {
        let executable = own::<CpuExecutable>(executable, "cpu")?;
        let elements = launch.jobs;
        let worth =
            |jam: &Jam| launch.limit == Key::NONE && launch.jobs >= jam.width * GROUPS * self.workers.threads() as u64;
        if let Some((jam, together)) = executable.jammed.as_ref().filter(|(jam, _)| worth(jam))
            && let Some((groups, params)) = jam.groups(launch.jobs, launch.ticks, launch.params)
        {
            let block_size = launch.block_size.map(|jobs| jobs.div_ceil(jam.width as u32));
            let grouped = Launch { jobs: groups, params: &params, block_size, ..launch };
            return self.run_jobs(together, grouped, elements);
        }
        self.run_jobs(executable, launch, elements)
    }

    fn launch_fold(&self, executable: &dyn Executable, fold: Fold, launch: Launch<'_>) -> Result<Folded> {
        // The pieces are tiles. If there are few, they cannot be shared equally, and the column stays in the caches
        // anyway.
        let few = launch.jobs < (collective::TILE * PIECES * self.workers.threads()) as u64;
        if few || fold.copied.is_some() || launch.ticks != 1 || !executable.runs_epilogue() {
            return fold::apart(self, self.workers.pool(), executable, fold, launch);
        }
        let executable = own::<CpuExecutable>(executable, "cpu")?;
        if !begins(executable, &launch)? {
            return Ok((Outcome::Cancelled, None));
        }
        self.run_tiles(executable, fold, launch)
    }
}

/// Jobs run tile by tile if each thread gets at least so many tiles.
const PIECES: usize = 4;

impl CpuBackend {
    fn run_jobs(&self, executable: &CpuExecutable, launch: Launch<'_>, elements: u64) -> Result<Outcome> {
        let (layout, workers) = (&executable.layout, &self.workers);
        let unsplit = launch.unsplit;
        let run = |work: split::Work| match executable.needs_stack {
            true => workers.run_away(work),
            false => Ok(workers.run(work, unsplit)),
        };
        if !begins(executable, &launch)? {
            return Ok(Outcome::Cancelled);
        }
        launch.with_buffers(layout, |launch| {
            timed(executable, launch, elements, (workers.pool(), workers.threads()), run)
        })
    }

    /// Runs jobs tile by tile, and reduces each tile's elements while they are in the cache.
    fn run_tiles(&self, executable: &CpuExecutable, fold: Fold, launch: Launch<'_>) -> Result<Folded> {
        let (cancel, jobs) = (launch.cancel, launch.jobs as usize);
        let workers = collective::Workers { threads: self.workers.pool(), cancel };
        let mut reduced = None;
        let elements = launch.jobs;
        let outcome = timed(executable, launch, elements, (self.workers.pool(), 1), |work| {
            let record = split::Record::default();
            reduced = reduce_made(workers, fold.reduction, fold.element, jobs, |range, rows| {
                // results behind a trap are not needed
                if work.state.stop_key().load(Ordering::Relaxed) >= Key::new(0, range.start).0 {
                    let mut state = work.state.clone();
                    state.aim(fold.column, rows, range.start);
                    work.run(&mut state, 0, range, &record);
                }
            })?;
            Ok(record.get())
        })?;
        Ok((outcome, reduced.filter(|_| outcome == Outcome::Done)))
    }
}

/// Sets up a launch; false if it was cancelled before it began. An error if it does not fit the program.
fn begins(executable: &CpuExecutable, launch: &Launch<'_>) -> Result<bool> {
    let counts = [launch.columns.len(), launch.biases.len(), launch.params.len()];
    if counts != [executable.columns.len(), executable.columns.len(), executable.params] {
        return Err(internal("launched with other columns or parameters than it was compiled for"));
    }
    if executable.emits && launch.groups.is_none() {
        return Err(internal("pairs are emitted in a launch without groups"));
    }
    Ok(arm(launch.cancel.stop_key(), launch.limit))
}

/// Runs a launch over the layout's buffers, on so many threads.
fn timed(
    executable: &CpuExecutable,
    launch: Launch<'_>,
    elements: u64,
    (pool, threads): (&Threads, usize),
    run: impl FnOnce(split::Work) -> Result<Option<TrapRecord>>,
) -> Result<Outcome> {
    let start = Instant::now();
    let emitters = launch.groups.as_ref().map(|groups| Arc::new(emitters::Emitters::new(groups.how)));
    let private_rows = privatization::PrivateRows::of(&executable.privatized, &launch, elements, threads);
    let batch = |&(_, capacity): &(_, ParamId)| reservation::batch(launch.params[capacity.index()], threads);
    let batches: Vec<u64> = executable.counters.iter().map(batch).collect();
    let inputs = Inputs {
        columns: launch.columns,
        biases: launch.biases,
        params: launch.params,
        seed: launch.seed,
        section: launch.section,
        stop_key: launch.cancel.stop_key(),
        depth: executable.depth,
        batches: &batches,
    };
    let trap = run(split::Work {
        code: executable.code.clone(),
        state: State::new(&executable.columns, inputs),
        jobs: launch.jobs,
        elements,
        ticks: launch.ticks,
        fused_ticks: executable.fused_ticks,
        chunk: launch.block_size.map(u64::from),
        private_rows,
        emitters: emitters.clone(),
    })?;
    if let (Some(emitters), Some(groups)) = (emitters, launch.groups) {
        let on = collective::Workers { threads: pool, cancel: launch.cancel };
        groups.take(on, emitters.all())?;
    }
    launch.timings.kernel += start.elapsed();
    Ok(match trap {
        _ if launch.cancel.is_cancelled() => Outcome::Cancelled,
        Some(record) => Outcome::Trapped(record),
        None => Outcome::Done,
    })
}

/// Sets the stop key to the launch's limit; false if the launch was cancelled before it began.
fn arm(stop_key: &std::sync::atomic::AtomicU64, limit: Key) -> bool {
    let set = |now| (now != Key::CANCEL.0).then_some(limit.0);
    stop_key.fetch_update(Ordering::SeqCst, Ordering::SeqCst, set).is_ok()
}

fn internal(detail: &str) -> Error {
    Error::Internal { stage: "cpu", detail: detail.to_owned() }
}
