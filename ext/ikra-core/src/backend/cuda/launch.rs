//! The CUDA backend: programs become cubins, launches become uploads, kernels and downloads on one stream.
//!
//! Here: [`CudaBackend`]. A launch takes a *lane* (stream, page-locked memory, events) from a pool, puts all columns into
//! one arena, runs the ticks in batches that it waits for while it watches the cancel token, and brings back what was
//! written. Not here: raw calls ([`super::driver`], [`super::storage`]), where columns lie in an arena ([`plan`]), and memory that outlives
//! launches ([`memory`]).

mod joined;
mod memory;
mod over;
mod plan;

use super::blas::Blas;
use super::collective::{self, Collectives, Desk, Tray};
use super::driver::{Device, Event, Facts, KernelFacts, Module, Stream};
use super::emit::{self, Emitted, Header};
use super::gather::Cells;
use super::nvrtc::{self, Code};
use super::queue::{Length, Mark, Pending, Queue, Spread, Tick};
use super::status::{Board, Letter, STATUS_WORDS, Status, Told};
use super::storage::{ALIGNMENT, Arena, Block, Held, HostLocker, Mailbox, SMALL, Staging};
use crate::backend::collective::Element;
use crate::backend::collective::reduce::{Reduced, Reduction};
use crate::backend::collective::rows::Collective;
use crate::backend::fold::{self, Fold, Folded};
use crate::backend::sink::{Sieve, Sieved, Sink};
use crate::backend::threads::Threads;
use crate::backend::{Backend, CancelToken, Ending, Executable, FusedTicks, Key, Launch, Outcome, own};
use crate::cache::disk::DiskCache;
use crate::cache::key::KeyBuilder;
use crate::config::CodeOptions;
use crate::error::{Error, Result};
use crate::ir::{Jobs, Program};
use crate::layout::Layout;
use crate::memory::buffer::{DeviceMemory, DeviceStore};
use crate::memory::column::HostColumn;
use crate::memory::pool::Pool;
use crate::passes::jam::{Jam, Way};
use crate::target::Target;
use joined::Joined;
use memory::{CudaMemory, address_of, wait_for};
use once_cell::sync::{Lazy, OnceCell};
use parking_lot::Mutex;
use plan::{Plan, Use, runs};
use std::any::Any;
use std::collections::VecDeque;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Threads of a block, unless the kernel or the caller says otherwise.
const BLOCK: u32 = 256;
/// The same where blocks add up rows for themselves: as large as may be, for each adds its sums to memory in the end.
const GATHERING_BLOCK: u32 = 512;
/// The most blocks of a grid.
const MOST_BLOCKS: u64 = i32::MAX as u64;
/// Nested calls that raise SystemStackError; fewer where the stack of all threads would take too much memory, but not
/// fewer than these.
const CALL_DEPTH: u32 = 1_000;
const LEAST_CALL_DEPTH: u32 = 16;
/// Bytes of stack that a thread can have.
const MOST_STACK: u64 = 500 << 10;
/// Threads with scratch rows of their own, on each multiprocessor: enough to keep it busy.
const SLOTS_PER_MULTIPROCESSOR: u32 = 1_024;
/// Fused ticks run for about this long before the host looks at them.
const SLICE: Duration = Duration::from_millis(100);
/// Jobs of a launch that takes microseconds, where none repeats anything.
const LITTLE: u64 = 64 << 10;
/// Idle lanes, desks and trays that are kept.
const LANES: usize = 4;
/// Bytes of tiles' states that a desk has at least: enough for a sum of a hundred million elements (16 bytes a tile), or the least and
/// the greatest of forty million (48).
const LEAST_DESK: usize = 256 << 10;
/// Tiles that a tray has room for at least: those of sixteen million jobs, in 70 KB.
const LEAST_TRAY: u64 = 4096;
/// What a sieve chose stays in memory for all that there might have been, where that is no more than so many times as much.
const MOST_SLACK: usize = 3;
/// Launches of single ticks between two looks at the status, at most: fewer than CUDA queues before it blocks.
const MOST_LAUNCHES: u64 = 384;

/// See the module.
pub struct CudaBackend {
    device: Arc<Device>,
    maker: Maker,
    lanes: Arc<Lanes>,
    collectives: Collectives,
    queue: Arc<Queue>,
    /// Desks and trays at rest.
    desks: Mutex<Vec<Desk>>,
    trays: Mutex<Vec<Tray>>,
    /// The status block of launches that nothing stops.
    unstopped: OnceCell<Block>,
    /// Those of launches that raise later.
    board: OnceCell<Arc<Board>>,
    /// None: there is no cuBLAS.
    blas: OnceCell<Option<Blas>>,
    /// Some thread makes the context, or has made it.
    enters: AtomicBool,
}

/// Makes kernels of programs.
#[derive(Clone)]
struct Maker {
    device: Arc<Device>,
    target: Target,
    cache: Arc<DiskCache>,
}

/// Lanes at rest.
struct Lanes {
    device: Arc<Device>,
    idle: Mutex<Vec<Lane>>,
    copiers: Lazy<Arc<rayon::ThreadPool>>,
    /// Of the host's memory, for columns that come from the device or go there.
    pool: Arc<Pool>,
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("lanes")
    }
}

impl Lanes {
    /// Works on one, with the context current. One on which something failed is not used again.
    fn on_one<T>(&self, work: impl FnOnce(&mut Lane) -> Result<T>) -> Result<T> {
        self.device.enter()?;
        let idle = self.idle.lock().pop();
        let mut lane = match idle {
            Some(lane) => lane,
            None => self.make()?,
        };
        let outcome = work(&mut lane);
        if outcome.is_ok() {
            let mut idle = self.idle.lock();
            if idle.len() < LANES {
                idle.push(lane);
            }
        } else {
            // what it was to do uses memory that others hold only until they hear of the error
            let _ = lane.stream.finish();
            let _ = lane.beside.finish();
        }
        outcome
    }

    fn make(&self) -> Result<Lane> {
        let device = &self.device;
        let event = || Event::new(device);
        Ok(Lane {
            stream: Stream::new(device)?,
            beside: Stream::new(device)?,
            staging: Staging::new(device, self.copiers.clone())?,
            mailbox: Mailbox::new(device, LETTERS)?,
            batches: [event()?, event()?],
            marks: [event()?, event()?, event()?, event()?],
        })
    }
}

/// What one launch at a time uses.
struct Lane {
    stream: Stream,
    /// On which the stop key is overwritten while the other is busy.
    beside: Stream,
    staging: Staging,
    /// Two letters for the status of batches under way, one that stays zero, one that holds the stream.
    mailbox: Mailbox,
    /// Behind each batch under way.
    batches: [Event; 2],
    /// Start, behind the upload, behind the kernels, behind the download.
    marks: [Event; 4],
}

const ZERO_LETTER: usize = 2;
const GATE_LETTER: usize = 3;
const LETTERS: usize = 4;

/// A compiled program; its code reaches the device at the first launch, or earlier in the background.
pub struct CudaKernel {
    emitted: Emitted,
    artifact: Artifact,
    compiled_in: Duration,
    from_cache: bool,
    fused_ticks: bool,
    /// Asks for the number of its thread.
    slots: bool,
    /// It surely ends soon, and raises nothing.
    harmless: bool,
    /// It draws, which each section does anew.
    draws: bool,
    /// What does several ticks at once, where launches of it may become one.
    joined: OnceCell<Joined>,
    /// For what is made of it later.
    maker: Maker,
    options: CodeOptions,
    /// It surely ends, and what it raises can be told later.
    tells_later: bool,
    /// It surely ends soon, whatever it raises, and needs nothing on the way.
    ends_alone: bool,
    /// By buffer.
    columns: Vec<Use>,
    layout: Layout,
    module: OnceCell<Arc<Module>>,
    /// How deep calls may nest, once there is room for that.
    call_depth: OnceCell<u32>,
    /// Nanoseconds that one tick of one job took last time, as bits of an f64; 0 before.
    pace: AtomicU64,
    /// The same for several jobs at once.
    jammed: Option<Jammed>,
}

/// Code for several jobs at once, which is compiled while other code is, or runs.
struct Jammed {
    jam: Jam,
    kernel: OnceCell<Arc<CudaKernel>>,
}

/// Groups for each multiprocessor from which on jobs run together: with fewer, its threads would be too few to work while others wait.
const GROUPS: u64 = 256;

/// Threads for each multiprocessor from which on they have several jobs each: half of what it holds, which then ask for more than all of them would for one job each.
const SEVERAL: u64 = 1_024;

/// How a launch is spread.
struct Shape {
    grid: u32,
    /// Threads of a block.
    block: u32,
    /// The words behind the parameters.
    cells: Vec<u64>,
}

/// A launch that was queued.
struct Queued {
    /// Behind it.
    mark: Arc<Mark>,
    /// Says how it ended, where that is to be waited for.
    told: Option<Told>,
}

/// What the disk cache keeps: code, and the largest stack frame of its functions.
#[derive(Clone, Debug, PartialEq)]
struct Artifact {
    code: Code,
    frame: u32,
}

impl Artifact {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.code.kind()];
        bytes.extend(self.frame.to_le_bytes());
        bytes.extend(self.code.bytes());
        bytes
    }
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        let (frame, code) = rest.split_first_chunk()?;
        Some(Self { code: Code::of_kind(kind, code.to_vec())?, frame: u32::from_le_bytes(*frame) })
    }
}

/// The largest stack frame that the assembler's log speaks of.
fn largest_frame(log: &str) -> Option<u32> {
    log.lines().filter_map(|l| l.split_once(" bytes stack frame")?.0.rsplit(' ').next()?.parse().ok()).max()
}

impl CudaBackend {
    /// The first GPU. Its context is made when it is to get ready for a program.
    ///
    /// # Errors
    /// `Device` where there is no GPU that works, with what to do about it.
    pub fn open(cache: Arc<DiskCache>) -> Result<Self> {
        let device = Arc::new(Device::open()?);
        let facts = &device.facts;
        let target = Target {
            architecture: format!("sm_{}", facts.capability),
            warp: facts.warp as usize,
            call_depth: CALL_DEPTH,
            memory: facts.memory,
            shared_memory: emit::SHARED_MEMORY,
        };
        let copiers = Lazy::new(copying_threads as fn() -> _);
        let pool = Pool::new(Box::new(HostLocker(device.clone())));
        let lanes = Arc::new(Lanes { device: device.clone(), idle: Mutex::default(), copiers, pool });
        let collectives = Collectives::new(device.clone(), cache.clone());
        let queue = Arc::new(Queue::new(device.clone(), CudaMemory::pending));
        let maker = Maker { device: device.clone(), target, cache };
        Ok(Self {
            device,
            maker,
            lanes,
            collectives,
            queue,
            desks: Mutex::default(),
            trays: Mutex::default(),
            unstopped: OnceCell::new(),
            board: OnceCell::new(),
            blas: OnceCell::new(),
            enters: AtomicBool::new(false),
        })
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Reductions, scans and so on, over memory of the device.
    pub fn collectives(&self) -> &Collectives {
        &self.collectives
    }

    pub fn facts(&self) -> &Facts {
        &self.device.facts
    }

    /// The context takes longer than all else, so it is made meanwhile. Whoever needs it first waits for it, and hears of an error then.
    fn enter_early(&self) {
        if self.device.is_entered() || self.enters.swap(true, Ordering::Relaxed) {
            return;
        }
        let early = self.device.clone();
        let _ = std::thread::Builder::new().name("ikra cuda".into()).spawn(move || early.enter());
    }

    fn prepare_with(
        &self,
        program: &Program,
        layout: &Layout,
        options: &CodeOptions,
        sink: Option<Sink>,
    ) -> Result<Arc<dyn Executable>> {
        self.enter_early();
        let name = emit::kernel_name(program);
        let compiled =
            self.maker.compiled(program, layout, options, sink, || emit::emit_into(program, layout, &name, sink))?;
        let jam = if sink.is_none() { Jam::of(program, Way::Below) } else { None };
        let jammed = jam.map(|jam| Jammed { jam, kernel: OnceCell::new() });
        let kernel = Arc::new(CudaKernel { jammed, ..compiled });
        // The first launch finds the code on the device, and the caller may trace meanwhile.
        let early = kernel.clone();
        let _ = std::thread::Builder::new().name("ikra cuda load".into()).spawn(move || early.module().map(|_| ()));
        Ok(kernel)
    }

    /// The kernel for several jobs at once with how a launch runs on it, where that is worth it.
    fn together<'k>(
        &self,
        kernel: &'k CudaKernel,
        launch: &Launch<'_>,
    ) -> Result<Option<(&'k CudaKernel, u64, Vec<u64>)>> {
        let Some(Jammed { jam, kernel: together }) = &kernel.jammed else { return Ok(None) };
        let least = GROUPS * u64::from(self.device.facts.multiprocessors.max(1));
        // blocks that somebody sizes are of jobs
        if launch.limit != Key::NONE || launch.block_size.is_some() || launch.jobs < least * jam.width {
            return Ok(None);
        }
        let Some((groups, params)) = jam.groups(launch.jobs, launch.params) else { return Ok(None) };
        let make = || {
            let (program, layout) = (&jam.program, &kernel.layout);
            let emit = || emit::emit_groups(program, layout, &emit::kernel_name(program));
            let compiled = self.maker.compiled(program, layout, &kernel.options, None, emit)?;
            // together they do to columns what each does, which is seen less well
            Ok::<_, Error>(Arc::new(CudaKernel { columns: kernel.columns.clone(), ..compiled }))
        };
        Ok(Some((together.get_or_try_init(make)?, groups, params)))
    }

    /// Queues a launch that needs nothing of the host on the way, and gives what is behind it; None for others. `sink`: the words of a kernel's sink.
    fn queue_launch(
        &self,
        kernel: &CudaKernel,
        module: &Arc<Module>,
        launch: &mut Launch<'_>,
        sink: &[u64],
    ) -> Result<Option<Queued>> {
        let moves = |(column, used): (&HostColumn, &Use)| *used != Use::None && column.device().is_none();
        let tells = !kernel.harmless && kernel.tells_later && launch.later.is_some();
        // nobody asks later: it is waited for, by whom it is told
        let waits = !kernel.harmless && !tells && kernel.ends_alone && sink.is_empty();
        if !(kernel.harmless || tells || waits)
            || kernel.emitted.indirect
            || launch.columns.len() != kernel.columns.len()
            || launch.ticks != 1
            || launch.limit != Key::NONE
            || launch.columns.iter().zip(&kernel.columns).any(moves)
        {
            return Ok(None);
        }
        let letter = if tells || waits { self.letter()? } else { None };
        let status = match &letter {
            Some(letter) => letter.address(),
            // all places are taken
            None if tells || waits => return Ok(None),
            None => self.unstopped()?.address(),
        };
        let mut buffers = Vec::with_capacity(launch.columns.len());
        for (column, bias) in launch.columns.iter().zip(launch.biases) {
            let address = address_of(&self.device, column)?.unwrap_or(0);
            buffers.push(address.wrapping_sub(bias.wrapping_mul(column.storage().bytes() as u64)));
        }
        let Shape { grid, block, cells } = kernel.shape(module, launch)?;
        let header = Header {
            jobs: launch.jobs,
            limit: launch.limit.0,
            tick_end: 1,
            // who draws nothing does the same in every section
            seed: if kernel.draws { launch.seed } else { 0 },
            section: if kernel.draws { launch.section } else { 0 },
            call_depth: CALL_DEPTH,
            stop_key: status,
            trap: status + 8,
            ..Header::default()
        };
        let mut args = kernel.emitted.arguments(&header, &buffers, &[launch.params, &cells, sink], 0);
        let holds: Vec<Arc<dyn DeviceMemory>> = launch.columns.iter().filter_map(|c| c.device().cloned()).collect();
        let length = if launch.jobs <= LITTLE && sink.is_empty() { Length::Little } else { Length::Any };
        let mark = match &letter {
            Some(letter) => {
                self.queue.add_telling(holds, letter, |stream| module.launch(stream, grid, block, &mut args))?
            }
            None if let Some(joined) = kernel.joined.get() => {
                let one = Spread { module: module.clone(), grid, block };
                let tick = Tick { one, joined: joined.spread(launch)?, args };
                let (mark, repeats) = self.queue.add_tick(holds, length, tick)?;
                if repeats {
                    joined.repeats(kernel);
                }
                mark
            }
            None => self.queue.add(holds, length, |stream| module.launch(stream, grid, block, &mut args))?,
        };
        let told = match (letter, launch.later.as_deref_mut()) {
            (Some(letter), Some(later)) if tells => {
                *later = Some(Box::new(Told(letter)));
                None
            }
            (letter, _) => letter.map(Told),
        };
        for (column, used) in launch.columns.iter().zip(&kernel.columns) {
            if let (Some(memory), Use::Written | Use::Filled) = (column.device(), used)
                && let Some(memory) = memory.as_any().downcast_ref::<CudaMemory>()
            {
                memory.pending.set(mark.clone());
            }
        }
        Ok(Some(Queued { mark, told }))
    }

    /// How a launch ended that is waited for.
    fn ended(&self, mark: &Arc<Mark>, told: &Told, launch: Launch<'_>) -> Result<Outcome> {
        let began = Instant::now();
        self.queue.wait(mark)?;
        launch.timings.kernel += began.elapsed();
        if launch.cancel.is_cancelled() {
            return Ok(Outcome::Cancelled);
        }
        told.outcome(true)?.ok_or_else(|| internal("a launch that is over does not say how it ended"))
    }

    /// The status block of launches that nothing stops.
    fn unstopped(&self) -> Result<&Block> {
        self.unstopped.get_or_try_init(|| {
            self.block(STATUS_WORDS * 8, |lane, block| {
                lane.staging.upload(&block.on(&lane.stream), &[(0, &Status::initial(Key::NONE))])
            })
        })
    }

    /// Where a launch says how it ended; None: too many others do.
    fn letter(&self) -> Result<Option<Arc<Letter>>> {
        let board = self.board.get_or_try_init(|| {
            let statuses = self.block(Board::BYTES, |_, _| Ok(()))?;
            Board::new(&self.device, statuses).map(Arc::new)
        })?;
        if let Some(letter) = board.letter() {
            return Ok(Some(letter));
        }
        self.queue.sweep()?;
        Ok(board.letter())
    }

    /// After a launch for which memory ran out, what is under way holds no memory any more, which whoever tries again then has.
    fn making_room<T>(&self, outcome: Result<T>) -> Result<T> {
        if let Err(Error::Memory { .. }) = outcome {
            self.let_go()?;
        }
        outcome
    }

    /// Waits for what is under way, which holds memory, and gives back what is only kept.
    fn let_go(&self) -> Result<()> {
        self.queue.finish()?;
        let kept = self.blas.get().and_then(|blas| blas.as_ref()?.scratch.lock().take());
        drop(kept);
        self.lanes.pool.clear();
        Ok(())
    }

    /// Works with memory for so many bytes of tiles' states. Whoever fails has waited for its kernels; that they count from 0 again is not
    /// sure then, and the memory is dropped.
    fn on_desk<T>(&self, bytes: usize, work: impl FnOnce(&Desk) -> Result<T>) -> Result<T> {
        let room = bytes.next_power_of_two().max(LEAST_DESK);
        let make = |lane: &Lane| Desk::new(&self.device, &lane.stream, room);
        self.on_kept(&self.desks, |desk| desk.has_room(bytes), make, work)
    }

    /// The same for who sieves so many tiles. That no cell has a later launch's mark is not sure after a failure.
    fn on_tray<T>(&self, tiles: u64, work: impl FnOnce(&Tray) -> Result<T>) -> Result<T> {
        let make = |lane: &Lane| Tray::new(&self.device, &lane.stream, tiles.next_power_of_two().max(LEAST_TRAY));
        self.on_kept(&self.trays, |tray| tray.has_room(tiles), make, work)
    }

    /// Works with one of what is kept, or a new one.
    fn on_kept<K, T>(
        &self,
        kept: &Mutex<Vec<K>>,
        fits: impl FnOnce(&K) -> bool,
        make: impl Fn(&Lane) -> Result<K>,
        work: impl FnOnce(&K) -> Result<T>,
    ) -> Result<T> {
        let idle = kept.lock().pop().filter(fits);
        let one = match idle {
            Some(one) => one,
            None => self.lanes.on_one(|lane| self.with_room(|| make(lane)))?,
        };
        let outcome = work(&one);
        if outcome.is_ok() {
            let mut kept = kept.lock();
            if kept.len() < LANES {
                kept.push(one);
            }
        }
        outcome
    }

    /// Runs one tick of a kernel with a sink, whose words are these, and waits for it. `room`: memory that it writes to.
    fn launch_into(
        &self,
        kernel: &CudaKernel,
        sink: Sink,
        mut launch: Launch<'_>,
        words: &[u64],
        room: Option<&Arc<dyn DeviceMemory>>,
    ) -> Result<Outcome> {
        if kernel.emitted.sink != Some(sink) || launch.ticks != 1 {
            return Err(internal("a kernel with a sink was launched for several ticks, or another sink"));
        }
        // what becomes of the results is wanted at once
        launch.later = None;
        if launch.cancel.is_cancelled() {
            return Ok(Outcome::Cancelled);
        }
        self.device.enter()?;
        let module = kernel.module()?;
        match self.queue_launch(kernel, module, &mut launch, words)? {
            Some(queued) => self.queue.wait(&queued.mark).map(|()| Outcome::Done),
            None => {
                wait_for(launch.columns.iter().filter_map(HostColumn::device).chain(room))?;
                let jobs = launch.jobs;
                self.lanes.on_one(|lane| run(&self.device, kernel, module, lane, jobs, launch, words))
            }
        }
    }

    /// The first bytes of memory that is there, in memory of that size, unless little is lost where they are.
    fn shrunk(&self, memory: Arc<dyn DeviceMemory>, bytes: usize) -> Result<Arc<dyn DeviceMemory>> {
        if memory.bytes() <= (bytes * MOST_SLACK).max(SMALL) {
            return Ok(memory);
        }
        let less = self.allocate(bytes)?;
        let (from, to) = (over::cuda(&memory)?, over::cuda(&less)?);
        let mark = self.queue.add(vec![memory.clone(), less.clone()], Length::Any, |stream| {
            to.block.on(stream).copy_from(&from.block.on(stream).first(bytes))
        })?;
        to.pending.set(mark);
        Ok(less)
    }

    /// Allocates, once more when what is under way has ended: it holds memory.
    fn with_room<T>(&self, mut allocate: impl FnMut() -> Result<T>) -> Result<T> {
        allocate().or_else(|error| match error {
            Error::Memory { .. } => self.let_go().and_then(|()| allocate()),
            other => Err(other),
        })
    }

    /// Memory that outlives launches, filled on a stream that is waited for: launches use others.
    fn block(&self, bytes: usize, fill: impl FnOnce(&mut Lane, &Block) -> Result<()>) -> Result<Block> {
        self.lanes.on_one(|lane| {
            let block = self.with_room(|| Block::new(&self.device, &lane.stream, bytes))?;
            let filled = fill(lane, &block);
            // whatever came of it: a block that is dropped may be used again at once
            lane.stream.finish()?;
            filled?;
            Ok(block)
        })
    }

    fn memory(&self, block: Block) -> Arc<CudaMemory> {
        let pending = Pending::default();
        Arc::new(CudaMemory { block, lanes: self.lanes.clone(), queue: self.queue.clone(), pending })
    }
}

impl Maker {
    /// Code for this program, from the disk or from NVRTC.
    fn artifact(&self, emitted: &Emitted, options: &CodeOptions) -> Result<(Artifact, bool)> {
        let source = emitted.source();
        let key = KeyBuilder::new("cuda")
            .text(&self.target.architecture)
            .value(&self.device.facts.driver)
            .value(options)
            .text(&emit::without_comments(&source))
            .finish();
        if let Some(artifact) = self.cache.load(&key).and_then(|bytes| Artifact::decode(&bytes)) {
            return Ok((artifact, true));
        }
        let compiled = nvrtc::compile(&source, self.device.facts.capability, options, emitted.recursive)?;
        // PTX says nothing of its frames.
        let frame = largest_frame(&compiled.log).unwrap_or(if emitted.recursive { 1024 } else { 0 });
        let artifact = Artifact { code: compiled.code, frame };
        self.cache.save(&key, &artifact.encode());
        Ok((artifact, false))
    }

    fn compiled(
        &self,
        program: &Program,
        layout: &Layout,
        options: &CodeOptions,
        sink: Option<Sink>,
        emit: impl FnOnce() -> Emitted,
    ) -> Result<CudaKernel> {
        let start = Instant::now();
        emit::check(program)?;
        let emitted = emit();
        let (artifact, from_cache) = self.artifact(&emitted, options)?;
        let mut columns = Use::of_buffers(program, layout);
        sink.iter().flat_map(Sink::columns).for_each(|column| columns[column.index()] = Use::None);
        Ok(CudaKernel {
            emitted,
            artifact,
            compiled_in: start.elapsed(),
            from_cache,
            fused_ticks: program.fused_ticks,
            slots: program.uses_slots(),
            harmless: program.surely_ends(),
            draws: program.uses_random,
            joined: OnceCell::new(),
            maker: self.clone(),
            options: *options,
            tells_later: program.jobs == Jobs::Identity && program.can_tell_later(),
            ends_alone: program.ends_alone(),
            columns,
            layout: layout.clone(),
            module: OnceCell::new(),
            call_depth: OnceCell::new(),
            pace: AtomicU64::new(0),
            jammed: None,
        })
    }
}

impl CudaKernel {
    /// The code on the device.
    fn module(&self) -> Result<&Arc<Module>> {
        self.module.get_or_try_init(|| {
            self.maker.device.enter()?;
            Module::load(&self.maker.device, self.artifact.code.bytes(), &self.emitted.kernel).map(Arc::new)
        })
    }

    /// Registers, memory and so on; none before the code is on the device.
    pub fn facts(&self) -> Option<KernelFacts> {
        self.module.get().map(|m| m.facts)
    }

    /// How a launch is spread. Its columns are the layout's buffers.
    fn shape(&self, module: &Module, launch: &Launch<'_>) -> Result<Shape> {
        let cells = Cells::of(&self.emitted.gathers, launch);
        let apart = Cells::none(self.emitted.gathers.len());
        if cells.rows > 0 {
            let (grid, block) = self.blocks(module, launch, GATHERING_BLOCK)?;
            let grid = grid
                .min(module.blocks_per_multiprocessor(block).max(1) * self.maker.device.facts.multiprocessors.max(1));
            // What blocks add to memory in the end is to be less than what their jobs would.
            if u64::from(grid) * cells.rows <= launch.jobs {
                return Ok(Shape { grid, block, cells: cells.words });
            }
        }
        let (grid, block) = self.blocks(module, launch, BLOCK)?;
        Ok(Shape { grid, block, cells: apart.words })
    }

    /// Blocks and threads of each, `wanted` where there are many jobs.
    fn blocks(&self, module: &Module, launch: &Launch<'_>, wanted: u32) -> Result<(u32, u32)> {
        let (jobs, slots) = (launch.jobs, launch.slots);
        let facts = &self.maker.device.facts;
        let most = module.facts.max_threads.max(1);
        let block = match launch.block_size {
            Some(wanted) if wanted == 0 || wanted > most => {
                return Err(Error::Device {
                    what: format!("block_size: {wanted}"),
                    cause: format!(
                        "this kernel runs with 1 to {most} threads a block ({} registers each)",
                        module.facts.registers
                    ),
                });
            }
            Some(wanted) => wanted,
            None if self.emitted.tile > 0 => BLOCK.min(most),
            None => {
                // Few jobs are spread over all multiprocessors.
                let spread =
                    jobs.div_ceil(u64::from(facts.multiprocessors.max(1))).next_multiple_of(u64::from(facts.warp));
                let block = spread.clamp(u64::from(facts.warp), u64::from(wanted)) as u32;
                block.min(most)
            }
        };
        if let Some(sink) = self.emitted.sink {
            let resident = u64::from(module.blocks_per_multiprocessor(emit::SINK_THREADS).max(1));
            let most = resident * u64::from(facts.multiprocessors.max(1));
            let grid = match sink {
                Sink::Fold(_) => collective::blocks(collective::tiles(jobs), most),
                Sink::Sieve(_) => collective::sieve_tiles(jobs).clamp(1, most),
            };
            return Ok((grid as u32, emit::SINK_THREADS));
        }
        let jobs = jobs.div_ceil(self.jobs_of_a_thread(launch));
        // a grid has so many blocks at most, and these are to be threads for all jobs
        let block = block.max(jobs.div_ceil(MOST_BLOCKS).try_into().unwrap_or(u32::MAX));
        // there may be nearly twice as many tiles as are filled: blocks without one end at once
        let each = if self.emitted.tile > 0 { self.emitted.tile.div_ceil(2) } else { u64::from(block) };
        let grid = jobs.div_ceil(each).min(MOST_BLOCKS) as u32;
        if !self.slots {
            return Ok((grid, block));
        }
        // No more threads than there are slots.
        let block = u64::from(block).min(slots.max(1)) as u32;
        Ok((grid.min((slots / u64::from(block)).max(1) as u32), block))
    }

    /// How many jobs each thread of a launch is to have.
    fn jobs_of_a_thread(&self, launch: &Launch<'_>) -> u64 {
        let Some(several) = &self.emitted.several else { return 1 };
        let least = SEVERAL * u64::from(self.maker.device.facts.multiprocessors.max(1));
        // blocks that somebody sizes are of jobs
        let one = launch.limit != Key::NONE || launch.block_size.is_some() || launch.jobs < least * several.jobs;
        if one || !several.are_there(launch) { 1 } else { several.jobs }
    }

    /// How deep calls may nest, after making room for that.
    fn call_depth(&self) -> Result<u32> {
        if !self.emitted.recursive {
            return Ok(CALL_DEPTH);
        }
        self.call_depth
            .get_or_try_init(|| {
                let frame = u64::from(self.artifact.frame.max(16).next_multiple_of(16));
                let beside = 2 * frame + 2048;
                let [least, most] = [LEAST_CALL_DEPTH, CALL_DEPTH].map(|depth| u64::from(depth) * frame + beside);
                let stack = self.maker.device.reserve_stack(most.min(MOST_STACK).max(least), least)?;
                Ok(u32::try_from((stack - beside) / frame).unwrap_or(u32::MAX).min(CALL_DEPTH))
            })
            .copied()
    }
}

impl Executable for CudaKernel {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn join_ticks(&self, make: FusedTicks) {
        let Emitted { gathers, indirect, sink, .. } = &self.emitted;
        // the words of a launch are to be those of the other kernel
        if self.harmless && gathers.is_empty() && !indirect && sink.is_none() {
            let _ = self.joined.set(Joined::new(make));
        }
    }
    fn listing(&self) -> String {
        let mut text = String::new();
        if let Some(module) = self.module.get() {
            let KernelFacts { registers, local, shared, max_threads } = module.facts;
            let block = BLOCK.min(max_threads.max(1));
            let resident = module.blocks_per_multiprocessor(block) * block;
            let _ = writeln!(
                text,
                "// {}: {registers} registers, {local} bytes of local and {shared} of shared memory; \
                 {resident} of {} threads resident on each of {} multiprocessors",
                self.maker.device.facts.name,
                self.maker.device.facts.threads_per_multiprocessor,
                self.maker.device.facts.multiprocessors,
            );
        }
        text += &self.emitted.body;
        if let Some(Jammed { jam, kernel, .. }) = &self.jammed
            && let Some(kernel) = kernel.get()
        {
            text += &jam.listing(&kernel.listing());
        }
        text
    }
    fn compiled_in(&self) -> Duration {
        self.compiled_in
    }
    fn from_cache(&self) -> bool {
        self.from_cache
    }
    fn sinks_at_once(&self) -> bool {
        self.emitted.sink.is_some()
    }
}

impl Backend for CudaBackend {
    fn name(&self) -> &'static str {
        "cuda"
    }
    fn target(&self) -> &Target {
        &self.maker.target
    }
    fn get_ready(&self) {
        self.enter_early();
    }

    fn prepare(&self, program: &Program, layout: &Layout, options: &CodeOptions) -> Result<Arc<dyn Executable>> {
        self.prepare_with(program, layout, options, None)
    }

    fn slots(&self, jobs: u64) -> u64 {
        let facts = &self.device.facts;
        let resident = u64::from(facts.multiprocessors.max(1)) * u64::from(SLOTS_PER_MULTIPROCESSOR);
        resident.min(jobs.next_multiple_of(u64::from(facts.warp.max(1))))
    }

    fn launch(&self, executable: &dyn Executable, launch: Launch<'_>) -> Result<Outcome> {
        let kernel = own::<CudaKernel>(executable, "cuda")?;
        if launch.cancel.is_cancelled() {
            return Ok(Outcome::Cancelled);
        }
        if launch.jobs == 0 || launch.ticks == 0 {
            return Ok(Outcome::Done);
        }
        if kernel.emitted.sink.is_some() {
            return Err(internal("a kernel without a column of results was launched for these"));
        }
        self.device.enter()?;
        let jobs = launch.jobs;
        let together = self.together(kernel, &launch)?;
        let (kernel, mut launch) = match &together {
            Some((together, groups, params)) => (*together, Launch { jobs: *groups, params, ..launch }),
            None => (kernel, launch),
        };
        let module = kernel.module()?;
        // who measures waits for what is measured
        let queued = if launch.timings.exact { None } else { self.queue_launch(kernel, module, &mut launch, &[])? };
        if let Some(Queued { mark, told }) = queued {
            return told.map_or(Ok(Outcome::Done), |told| self.ended(&mark, &told, launch));
        }
        wait_for(launch.columns.iter().filter_map(HostColumn::device))?;
        self.making_room(launch.with_buffers(&kernel.layout, |launch| {
            self.lanes.on_one(|lane| run(&self.device, kernel, module, lane, jobs, launch, &[]))
        }))
    }

    fn prepare_sink(
        &self,
        program: &Program,
        layout: &Layout,
        sink: Sink,
        options: &CodeOptions,
    ) -> Result<Arc<dyn Executable>> {
        self.prepare_with(program, layout, options, collective::at_once(program, sink).then_some(sink))
    }
    fn launch_fold(&self, executable: &dyn Executable, fold: Fold, launch: Launch<'_>) -> Result<Folded> {
        let kernel = own::<CudaKernel>(executable, "cuda")?;
        if kernel.emitted.sink.is_none() || launch.jobs == 0 {
            return fold::apart(self, &Threads::new(1), executable, fold, launch);
        }
        let state = collective::state_bytes(fold.reduction, fold.element);
        let (jobs, bytes) = (launch.jobs, (collective::tiles(launch.jobs) * state) as usize);
        self.making_room(self.on_desk(bytes, |desk| {
            let outcome = self.launch_into(kernel, Sink::Fold(fold), launch, &desk.words(0, jobs), None)?;
            Ok((outcome, (outcome == Outcome::Done).then(|| desk.result(fold.reduction, fold.element))))
        }))
    }
    fn launch_sieve(&self, executable: &dyn Executable, sieve: Sieve, launch: Launch<'_>) -> Result<Sieved> {
        let kernel = own::<CudaKernel>(executable, "cuda")?;
        let (jobs, storage) = (launch.jobs, sieve.element.storage());
        if jobs == 0 {
            return Ok(sieve.of_nothing());
        }
        self.making_room(self.on_tray(collective::sieve_tiles(jobs), |tray| {
            let all = self.allocate(jobs as usize * storage.bytes())?;
            let words = tray.words(over::cuda(&all)?.block.address(), jobs);
            let outcome = self.launch_into(kernel, Sink::Sieve(sieve), launch, &words, Some(&all))?;
            if outcome != Outcome::Done {
                return Ok((outcome, None));
            }
            let hits = tray.hits() as usize;
            let rows = self.shrunk(all, hits * storage.bytes())?;
            Ok((outcome, Some(HostColumn::on_device(storage, hits, rows))))
        }))
    }
    fn reduce(
        &self,
        reduction: Reduction,
        element: Element,
        rows: &HostColumn,
        range: Range<usize>,
    ) -> Result<Reduced> {
        let held = rows.device().ok_or_else(|| internal("rows of the host"))?;
        let memory = held.as_any().downcast_ref::<CudaMemory>().ok_or_else(|| internal("rows of another device"))?;
        self.device.enter()?;
        let (from, count) = (range.start * element.bytes(), (range.end - range.start) as u64);
        let state = collective::state_bytes(reduction, element);
        let launch = self.collectives.reducing(reduction, element, count)?;
        self.making_room(self.on_desk((collective::tiles(count) * state) as usize, |desk| {
            let mut words = desk.words(memory.block.address() + from as u64, count);
            // behind what the queue still does to the memory, which is held here
            self.queue.run(|stream| launch(stream, &mut words))?;
            Ok(desk.result(reduction, element))
        }))
    }
    fn collective(&self) -> Option<&dyn Collective> {
        Some(self)
    }
    fn store(&self) -> Option<&dyn DeviceStore> {
        Some(self)
    }
}

/// Threads that fill and empty page-locked memory. A pool of its own: the global one hangs in forked processes.
fn copying_threads() -> Arc<rayon::ThreadPool> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("ikra copy {i}"));
    Arc::new(pool.build().expect("threads can be started"))
}

fn internal(detail: &str) -> Error {
    Error::Internal { stage: "cuda", detail: detail.to_string() }
}

/// Runs all ticks; the launch's columns are the layout's buffers.
/// `jobs`: of the program; those of the launch may be groups of them. `sink`: the words of a kernel's sink.
fn run(
    device: &Device,
    kernel: &CudaKernel,
    module: &Module,
    lane: &mut Lane,
    jobs: u64,
    launch: Launch<'_>,
    sink: &[u64],
) -> Result<Outcome> {
    // Columns that are on the device already take no part in what moves.
    let resident = launch.columns.iter().map(|c| address_of(device, c)).collect::<Result<Vec<_>>>()?;
    let moves = |(used, resident): (&Use, &Option<u64>)| if resident.is_some() { Use::None } else { *used };
    let uses: Vec<Use> = kernel.columns.iter().zip(&resident).map(moves).collect();
    let lengths: Vec<usize> = launch.columns.iter().map(HostColumn::byte_len).collect();
    let Shape { grid, block, cells } = kernel.shape(module, &launch)?;
    let params = [launch.params, &cells].concat();
    let in_memory = if kernel.emitted.indirect { (lengths.len() + params.len()) * 8 } else { 0 };
    let plan = Plan::new(&uses, &lengths, in_memory);
    let call_depth = kernel.call_depth()?;
    let Lane { stream, beside, staging, mailbox, batches, marks } = lane;
    let arena = Arena::new(device, stream, plan.end)?;

    let buffers: Vec<u64> = plan
        .offsets
        .iter()
        .enumerate()
        .map(|(i, offset)| {
            let bias = launch.biases[i].wrapping_mul(kernel.layout.stride(i) as u64);
            let address = offset.map(|o| arena.address + o as u64).or(resident[i]);
            address.map_or(0, |address| address.wrapping_sub(bias))
        })
        .collect();
    let memory: Vec<u8> = kernel.emitted.memory(&buffers, &params).into_iter().flat_map(u64::to_ne_bytes).collect();

    let header = Header {
        jobs: launch.jobs,
        limit: launch.limit.0,
        seed: launch.seed,
        section: launch.section,
        call_depth,
        stop_key: arena.address + plan.status as u64,
        trap: arena.address + plan.status as u64 + 8,
        ..Header::default()
    };
    let mut args = kernel.emitted.arguments(&header, &buffers, &[&params], arena.address + plan.arguments as u64);
    args.extend_from_slice(sink);
    let mut ticks =
        Ticks { kernel, module, stream, grid, block, args, total: launch.ticks, next: 0, batch: 0, jobs: launch.jobs };
    let mut watch = Watch { cancel: launch.cancel, told: None, mailbox, arena: &arena, status: plan.status, beside };

    marks[0].record(stream)?;
    let initial = Status::initial(launch.limit);
    // Rows that no element stores would be lost: whoever stops at a limit needs them all.
    let covered = |(i, c): (usize, &HostColumn)| uses[i] != Use::Filled || c.len() as u64 <= jobs;
    let whole = plan.end <= SMALL || launch.limit != Key::NONE || !launch.columns.iter().enumerate().all(covered);
    // What is page-locked is copied from where it is.
    let mut held = Held::new(stream);
    let mut direct = vec![false; launch.columns.len()];
    for (i, column) in launch.columns.iter().enumerate() {
        if let Some(offset) = plan.goes_up(i, launch.fresh, whole) {
            direct[i] = held.copy_in(&arena, offset, column)?;
        }
    }
    for run in runs(plan.parts_up(launch.columns, launch.fresh, &memory, &initial, whole, &direct)) {
        staging.upload(&arena, &run)?;
    }
    // What the host does before the kernel is queued would count as the kernel's time, wherever the device waits for it: after short uploads.
    let mut gate = None;
    if launch.timings.exact {
        // A mark behind a copy says when the copy engine was done, and what computes begins up to 7 µs later: the way from one to the other is the upload's. The word
        // is zero, and stays so.
        arena.fill(plan.status + 8, 8, 0)?;
        gate = mailbox.hold(GATE_LETTER, stream);
    }
    marks[1].record(stream)?;

    // Batches of ticks under way, and behind the last of them, if everything is small, the way back.
    let small = plan.end - plan.written <= SMALL;
    let mut under_way: VecDeque<(Range<u64>, usize, Instant)> = VecDeque::new();
    let mut download = None;
    let mut bytes = initial;
    let ended = (|| {
        let mut stopped = false;
        for turn in 0.. {
            let depth = if kernel.fused_ticks { 1 } else { batches.len() };
            if !stopped && under_way.len() < depth && !ticks.are_over() {
                let range = ticks.queue_batch()?;
                let letter = turn % batches.len();
                if ticks.are_over() {
                    marks[2].record(stream)?;
                }
                drop(gate.take());
                if ticks.are_over() && small {
                    download = Some(staging.begin_download(&arena, plan.written..plan.end)?);
                } else {
                    mailbox.fetch(letter, &arena, plan.status)?;
                }
                batches[letter].record(stream)?;
                under_way.push_back((range, letter, Instant::now()));
                if under_way.len() < depth && !ticks.are_over() {
                    continue;
                }
            }
            let Some((range, letter, queued)) = under_way.pop_front() else { break };
            watch.wait(&batches[letter])?;
            if download.is_none() || !under_way.is_empty() || !ticks.are_over() {
                bytes = mailbox.read(letter);
                // Later ticks do not start once something stopped the launch.
                stopped |= Status::read(&bytes).stop_key <= range.end << 32;
            }
            ticks.adapt(&range, queued.elapsed());
        }
        if !ticks.are_over() {
            marks[2].record(stream)?;
        }
        Ok::<_, Error>(())
    })();
    drop(gate);
    drop(held);
    if let Err(e) = ended.and_then(|()| watch.end()) {
        // Nothing may use the lane's memory after it is gone.
        let _ = watch.stop();
        let _ = watch.end();
        let _ = stream.finish();
        return Err(e);
    }

    let came_back = download.is_some();
    if let Some(download) = download {
        staging.finish_download(&arena, download, &mut plan.parts_back(launch.columns, &[], &mut bytes, &[]))?;
    }
    let outcome = Status::read(&bytes).outcome(launch.cancel);
    let meaningful = match outcome {
        Outcome::Done => true,
        Outcome::Trapped(record) => record.key == launch.limit,
        Outcome::Cancelled => false,
    };
    if !came_back && meaningful {
        // How many rows were taken says what is wanted of them.
        for counter in launch.fresh.iter().filter_map(|f| f.taken) {
            let Some(offset) = plan.offsets[counter.index()] else { continue };
            let column = &mut launch.columns[counter.index()];
            let download = staging.begin_download(&arena, offset..offset + column.byte_len())?;
            staging.finish_download(&arena, download, &mut [(offset, column.bytes_mut())])?;
        }
        let mut held = Held::new(stream);
        let mut direct = vec![false; launch.columns.len()];
        for (i, column) in launch.columns.iter_mut().enumerate() {
            if let Some(offset) = plan.comes_back(i, launch.fresh) {
                direct[i] = held.copy_out(&arena, offset, column)?;
            }
        }
        drop(held);
        for mut run in runs(plan.parts_back(launch.columns, launch.fresh, &mut bytes, &direct)) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let range = first.0..last.0 + last.1.len();
            let download = staging.begin_download(&arena, range)?;
            staging.finish_download(&arena, download, &mut run)?;
        }
    }
    marks[3].record(stream)?;
    marks[3].wait()?;
    launch.timings.upload += marks[1].since(&marks[0]);
    let kernel_time = marks[2].since(&marks[1]);
    launch.timings.kernel += kernel_time;
    launch.timings.download += marks[3].since(&marks[2]);
    if outcome == Outcome::Done {
        let pace = kernel_time.as_nanos() as f64 / (launch.jobs as f64 * launch.ticks as f64);
        kernel.pace.store(pace.to_bits(), Ordering::Relaxed);
    }
    Ok(outcome)
}

/// The ticks of a launch, in batches.
struct Ticks<'a> {
    kernel: &'a CudaKernel,
    module: &'a Module,
    stream: &'a Stream,
    grid: u32,
    block: u32,
    args: Vec<u64>,
    total: u64,
    next: u64,
    /// Ticks of the next batch; 0 before the first.
    batch: u64,
    jobs: u64,
}

impl Ticks<'_> {
    fn are_over(&self) -> bool {
        self.next == self.total
    }

    /// Queues the next batch: fused ticks are one launch, others one each.
    fn queue_batch(&mut self) -> Result<Range<u64>> {
        if self.batch == 0 {
            self.batch = self.first_batch();
        }
        let range = self.next..self.total.min(self.next + self.batch);
        let launches = if self.kernel.fused_ticks { range.end - range.start } else { 1 };
        let mut tick = range.start;
        while tick < range.end {
            (self.args[Header::TICK_BEGIN], self.args[Header::TICK_END]) = (tick, tick + launches);
            self.module.launch(self.stream, self.grid, self.block, &mut self.args)?;
            tick += launches;
        }
        self.next = range.end;
        Ok(range)
    }

    fn first_batch(&self) -> u64 {
        let pace = f64::from_bits(self.kernel.pace.load(Ordering::Relaxed));
        let slice = (SLICE.as_nanos() as f64 / (pace * self.jobs as f64)).max(1.0) as u64;
        match (self.kernel.fused_ticks, pace > 0.0) {
            // between two batches the status is brought back, and kernels wait for that
            (false, true) => slice.min(MOST_LAUNCHES),
            (false, false) => 16,
            (true, true) => slice,
            // a few milliseconds of a light block on a large device
            (true, false) => ((1 << 25) / self.jobs).clamp(1, 1 << 16),
        }
    }

    /// Sizes the next batch after one that took so long.
    fn adapt(&mut self, range: &Range<u64>, took: Duration) {
        let ticks = range.end - range.start;
        if self.kernel.fused_ticks {
            let wanted = ticks as f64 * SLICE.as_secs_f64() / took.as_secs_f64().max(1e-6);
            self.batch = (wanted as u64).clamp(1, ticks.saturating_mul(64));
        } else if took < SLICE / 10 {
            self.batch = (self.batch * 2).min(MOST_LAUNCHES);
        } else if took > SLICE {
            self.batch = (self.batch / 2).max(1);
        }
    }
}

/// Waits for the device with an eye on the cancel token.
struct Watch<'a> {
    cancel: &'a CancelToken,
    /// When the device was last told to stop.
    told: Option<Instant>,
    mailbox: &'a Mailbox,
    arena: &'a Arena<'a>,
    status: usize,
    beside: &'a Stream,
}

impl Watch<'_> {
    /// Spins at first, since most kernels are short; then sleeps, longer and longer.
    fn wait(&mut self, event: &Event) -> Result<()> {
        let start = Instant::now();
        loop {
            if event.is_past()? {
                return Ok(());
            }
            // Told again from time to time: the upload may be still under way, and bring the first stop key after it.
            if self.cancel.is_cancelled() && self.told.is_none_or(|t| t.elapsed() > Duration::from_millis(2)) {
                self.stop()?;
            }
            match start.elapsed() {
                t if t < Duration::from_millis(2) => std::hint::spin_loop(),
                t if t < Duration::from_millis(50) => std::thread::sleep(Duration::from_micros(20)),
                _ => std::thread::sleep(Duration::from_micros(200)),
            }
        }
    }

    /// Makes all jobs end as soon as they look.
    fn stop(&mut self) -> Result<()> {
        self.told = Some(Instant::now());
        self.mailbox.send_zero(ZERO_LETTER, self.arena, self.status, self.beside)
    }

    /// Waits until nothing of that is on its way: the arena is freed in the order of the other stream.
    fn end(&self) -> Result<()> {
        self.told.map_or(Ok(()), |_| self.beside.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_survive_the_disk() {
        for code in [Code::Cubin(vec![1, 2, 3]), Code::Ptx(vec![])] {
            let artifact = Artifact { code, frame: 104 };
            assert_eq!(Artifact::decode(&artifact.encode()), Some(artifact));
        }
        assert_eq!(Artifact::decode(&[]), None);
        assert_eq!(Artifact::decode(&[7, 0, 0, 0, 0]), None);
    }

    #[test]
    fn the_largest_frame_is_found_in_the_log() {
        let log = "ptxas info    : Function properties for k\n\
                   ptxas         .     48 bytes stack frame, 0 bytes spill stores\n\
                   ptxas         .     104 bytes stack frame, 68 bytes spill stores\n";
        assert_eq!(largest_frame(log), Some(104));
        assert_eq!(largest_frame(""), None);
    }

    #[test]
    fn a_machine_without_a_gpu_is_an_answer() {
        let cache = Arc::new(DiskCache::open(None, 0));
        match CudaBackend::open(cache) {
            Ok(backend) => assert!(backend.target().architecture.starts_with("sm_")),
            Err(Error::Device { what, cause }) => assert!(!what.is_empty() && !cause.is_empty()),
            Err(other) => panic!("{other}"),
        }
    }
}
