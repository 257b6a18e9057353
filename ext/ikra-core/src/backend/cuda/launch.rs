//! The CUDA backend: programs become cubins, launches become uploads, kernels and downloads.
//!
//! Here: [`CudaBackend`]. A synchronous launch ([`waited`]) takes a *lane* from a pool ([`lanes`]). A launch that
//! surely ends, over device memory, is queued. Not here: the code ([`kernel`]), raw calls ([`super::driver`],
//! [`super::storage`]), the queue ([`super::queue`]), and memory that outlives launches ([`memory`]).

mod joined;
mod kernel;
mod lanes;
mod memory;
mod over;
mod plan;
mod prepared;
mod waited;
mod watch;

pub use kernel::CudaKernel;

use super::background;
use super::blas::Blas;
use super::collective::{self, Collectives, CompactionScratch, ReductionScratch};
use super::driver::{Device, Facts, KernelFacts, Module, Spread};
use super::emit::{self, Header};
use super::groups::first_records;
use super::nvrtc;
use super::queue::{Length, Mark, Pending, Queue, Tick};
use super::status::{CompletionSlot, STATUS_WORDS, SlotEnding, SlotPool, Status};
use super::storage::{ALIGNMENT, Block, SMALL_SLOT_BYTES};
use crate::backend::collective::Element;
use crate::backend::collective::reduce::{Reduced, Reduction};
use crate::backend::collective::rows::Collective;
use crate::backend::epilogue::{Compacted, Compaction, Epilogue};
use crate::backend::fold::{self, Fold, Folded};
use crate::backend::resources::{Machine, Resources};
use crate::backend::threads::Threads;
use crate::backend::{Backend, Ending, Executable, Key, Launch, Outcome, own};
use crate::cache::disk::DiskCache;
use crate::config::CodeOptions;
use crate::error::{Error, Result};
use crate::ir::{ColumnId, Program};
use crate::layout::Layout;
use crate::memory::buffer::{DeviceMemory, DeviceStore};
use crate::memory::column::HostColumn;
use crate::passes::jam::{Grouping, Jam};
use crate::passes::team::Team;
use crate::target::Target;
use kernel::{CALL_DEPTH, Jammed, Maker, Shape, Teamed};
use lanes::{LANES, Lane, Lanes};
use memory::{CudaMemory, address_of, wait_for};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use plan::Use;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use waited::{Beside, run};

/// How many threads per multiprocessor have scratch rows of their own: enough to keep it busy.
const SLOTS_PER_MULTIPROCESSOR: u32 = 1_024;
/// A launch with at most so many jobs, none of which has a loop, takes microseconds.
const MAX_LITTLE_JOBS: u64 = 64 << 10;
/// The least size of a reduction's scratch memory, for the states of tiles. It suffices for a sum of a hundred million
/// elements (16 bytes a tile), or for the least and the greatest of forty million (48 bytes a tile).
const MIN_SCRATCH_BYTES: usize = 256 << 10;
/// A compaction's scratch memory has room for at least so many tiles: those of sixteen million jobs, in 70 KB.
const MIN_SCRATCH_TILES: u64 = 4096;
/// The rows that a compaction selected stay in the memory for all possible rows, if that is at most so many times
/// larger.
const MAX_SLACK: usize = 3;

/// Each block notes its multiprocessor, and keeps it busy until all have begun.
pub(super) const SPREAD: &str = "struct Args { unsigned *seen; };
extern \"C\" __global__ void __launch_bounds__(32) ikra_spread(__grid_constant__ const Args args) {
  unsigned multiprocessor;
  asm volatile(\"mov.u32 %0, %%smid;\" : \"=r\"(multiprocessor));
  const long long begin = clock64();
  while (clock64() - begin < 200000) {
  }
  if (threadIdx.x == 0) args.seen[blockIdx.x] = multiprocessor;
}
";

/// The CUDA backend; see the module.
pub struct CudaBackend {
    device: Arc<Device>,
    maker: Maker,
    lanes: Arc<Lanes>,
    collectives: Collectives,
    queue: Arc<Queue>,
    /// Scratch memory of reductions and compactions that is not in use.
    reduction_scratch: Mutex<Vec<ReductionScratch>>,
    compaction_scratch: Mutex<Vec<CompactionScratch>>,
    /// The status block of launches that nothing stops.
    unstopped: OnceCell<Block>,
    /// The status blocks of launches with deferred errors.
    slots: OnceCell<Arc<SlotPool>>,
    /// cuBLAS; None if there is none.
    blas: OnceCell<Option<Blas>>,
    /// Whether a thread is making the context, or has made it.
    enters: AtomicBool,
}

/// Jobs run together in groups if there are at least so many groups per multiprocessor. With fewer, it has too few
/// threads to work while others wait.
const GROUPS: u64 = 256;

/// A launch that was queued.
struct Queued {
    /// The mark behind the launch.
    mark: Arc<Mark>,
    /// Tells how the launch ended, if the caller waits for that.
    ending: Option<SlotEnding>,
}

impl CudaBackend {
    /// Opens the first GPU. Its context is made in [`Backend::get_ready`], or at the first use.
    ///
    /// # Errors
    /// `Device` if no GPU works; the error says what to do.
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
        let lanes = Arc::new(Lanes::new(device.clone()));
        let collectives = Collectives::new(device.clone(), cache.clone());
        let queue = Arc::new(Queue::new(device.clone(), CudaMemory::pending));
        let maker = Maker { device: device.clone(), target, cache };
        Ok(Self {
            device,
            maker,
            lanes,
            collectives,
            queue,
            reduction_scratch: Mutex::default(),
            compaction_scratch: Mutex::default(),
            unstopped: OnceCell::new(),
            slots: OnceCell::new(),
            blas: OnceCell::new(),
            enters: AtomicBool::new(false),
        })
    }

    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Collective operations over device memory.
    pub fn collectives(&self) -> &Collectives {
        &self.collectives
    }

    pub fn facts(&self) -> &Facts {
        &self.device.facts
    }

    /// Makes the context on another thread, because that takes longer than all else. The first user waits for it, and
    /// gets the error if there is one.
    fn enter_early(&self) {
        if self.device.is_entered() || self.enters.swap(true, Ordering::Relaxed) {
            return;
        }
        let early = self.device.clone();
        background::run("ikra cuda", move || drop(early.enter()));
    }

    fn prepare_with(
        &self,
        program: &Program,
        layout: &Layout,
        options: &CodeOptions,
        epilogue: Option<Epilogue>,
    ) -> Result<Arc<dyn Executable>> {
        self.enter_early();
        let name = emit::kernel_name(program);
        let compiled = self
            .maker
            .compiled(program, layout, options, epilogue, || emit::emit_into(program, layout, &name, epilogue))?;
        let jam = if epilogue.is_none() { Jam::of(program, Grouping::Strided) } else { None };
        let jammed = jam.map(|jam| Jammed { jam, kernel: OnceCell::new() });
        let team = if epilogue.is_none() { Team::of(program) } else { None };
        let teamed = team.map(|team| Teamed { team, kernel: OnceCell::new() });
        let kernel = Arc::new(CudaKernel { jammed, teamed, ..compiled });
        // Loads the code in the background, so that the first launch finds it on the device. The caller may trace
        // meanwhile.
        let early = kernel.clone();
        background::run("ikra cuda load", move || drop(early.module().map(|_| ())));
        Ok(kernel)
    }

    /// The kernel for teams, with the threads and parameters of a launch on it, if jobs are too few for the device.
    fn by_teams<'k>(
        &self,
        kernel: &'k CudaKernel,
        launch: &Launch<'_>,
    ) -> Result<Option<(&'k CudaKernel, u64, Vec<u64>)>> {
        let Some(Teamed { team, kernel: teamed }) = &kernel.teamed else { return Ok(None) };
        // a block size that the user set counts jobs
        if launch.limit != Key::NONE || launch.block_size.is_some() || launch.share.is_some() {
            return Ok(None);
        }
        let rows = |column: ColumnId| launch.columns.get(column.index()).map_or(0, HostColumn::len);
        let Some(lanes) = team.lanes(launch.jobs, self.device.facts.threads(), rows) else { return Ok(None) };
        let make = || {
            let (program, layout) = (&team.program, &kernel.layout);
            let emit = || emit::emit_team(program, layout, &emit::kernel_name(program));
            let compiled = self.maker.compiled(program, layout, &kernel.options, None, emit)?;
            // its columns are used as those of the plain kernel, for which the analysis is more exact
            Ok::<_, Error>(Arc::new(CudaKernel { columns: kernel.columns.clone(), ..compiled }))
        };
        let (lanes, params) = Team::launch(launch.jobs, lanes, launch.params);
        Ok(Some((teamed.get_or_try_init(make)?, lanes, params)))
    }

    /// The kernel for several jobs at once, with the groups and parameters of a launch on it, if that pays.
    fn together<'k>(
        &self,
        kernel: &'k CudaKernel,
        launch: &Launch<'_>,
    ) -> Result<Option<(&'k CudaKernel, u64, Vec<u64>)>> {
        if let Some(found) = self.by_teams(kernel, launch)? {
            return Ok(Some(found));
        }
        let Some(Jammed { jam, kernel: together }) = &kernel.jammed else { return Ok(None) };
        let least = GROUPS * u64::from(self.device.facts.multiprocessors.max(1));
        // a block size that the user set counts jobs, and so does a share
        if launch.limit != Key::NONE
            || launch.block_size.is_some()
            || launch.share.is_some()
            || launch.jobs < least * jam.width
        {
            return Ok(None);
        }
        let Some((groups, params)) = jam.groups(launch.jobs, launch.ticks, launch.params) else { return Ok(None) };
        let make = || {
            let (program, layout) = (&jam.program, &kernel.layout);
            let emit = || emit::emit_groups(program, layout, &emit::kernel_name(program));
            let compiled = self.maker.compiled(program, layout, &kernel.options, None, emit)?;
            // its columns are used as those of the plain kernel, for which the analysis is more exact
            Ok::<_, Error>(Arc::new(CudaKernel { columns: kernel.columns.clone(), ..compiled }))
        };
        Ok(Some((together.get_or_try_init(make)?, groups, params)))
    }

    /// Queues a launch that needs nothing of the host while it runs. None for other launches. `epilogue`: the words of
    /// a kernel's epilogue.
    fn queue_launch(
        &self,
        kernel: &CudaKernel,
        module: &Arc<Module>,
        launch: &mut Launch<'_>,
        epilogue: &[u64],
    ) -> Result<Option<Queued>> {
        let moves = |(column, used): (&HostColumn, &Use)| *used != Use::None && column.device().is_none();
        let defers = !kernel.harmless && kernel.defers_errors && launch.deferred.is_some();
        // the caller does not defer errors, so it waits for the launch
        let waits = !kernel.harmless && !defers && kernel.ends_alone && epilogue.is_empty();
        if !(kernel.harmless || defers || waits)
            || kernel.emitted.indirect
            || launch.columns.len() != kernel.columns.len()
            || launch.ticks != 1
            || launch.limit != Key::NONE
            || launch.columns.iter().zip(&kernel.columns).any(moves)
        {
            return Ok(None);
        }
        let slot = if defers || waits { self.completion_slot()? } else { None };
        let status = match &slot {
            Some(slot) => slot.address(),
            // all slots are taken
            None if defers || waits => return Ok(None),
            None => self.unstopped()?.address(),
        };
        let mut buffers: SmallVec<[u64; 16]> = SmallVec::new();
        for (column, bias) in launch.columns.iter().zip(launch.biases) {
            let address = address_of(&self.device, column)?.unwrap_or(0);
            buffers.push(address.wrapping_sub(bias.wrapping_mul(column.storage().bytes() as u64)));
        }
        let Shape { grid, block, cells } = kernel.shape(module, launch)?;
        let header = Header {
            jobs: launch.jobs,
            limit: launch.limit.0,
            tick_end: 1,
            // a kernel that draws nothing gets the same arguments in each section
            seed: if kernel.draws { launch.seed } else { 0 },
            section: if kernel.draws { launch.section } else { 0 },
            call_depth: CALL_DEPTH,
            stop_key: status,
            trap: status + 8,
            ..Header::default()
        };
        let args = kernel.emitted.arguments(&header, &buffers, &[launch.params, &cells, epilogue], 0);
        let holds: Vec<Arc<dyn DeviceMemory>> = launch.columns.iter().filter_map(|c| c.device().cloned()).collect();
        let length = if launch.jobs <= MAX_LITTLE_JOBS && epilogue.is_empty() { Length::Little } else { Length::Any };
        let one = Spread { module: module.clone(), grid, block };
        let mark = match &slot {
            Some(slot) => self.queue.add_with_slot(holds, slot, one, args)?,
            None if let Some(joined) = kernel.joined.get() => {
                let tick = Tick { one, joined: joined.spread(launch)?, args };
                let (mark, repeats) = self.queue.add_tick(holds, length, tick)?;
                if repeats {
                    joined.repeats(kernel);
                }
                mark
            }
            None => self.queue.add_launch(holds, length, one, args)?,
        };
        let ending = match (slot, launch.deferred.as_deref_mut()) {
            (Some(slot), Some(deferred)) if defers => {
                *deferred = Some(Box::new(SlotEnding(slot)));
                None
            }
            (slot, _) => slot.map(SlotEnding),
        };
        for (column, used) in launch.columns.iter().zip(&kernel.columns) {
            if let (Some(memory), Use::Written | Use::Filled) = (column.device(), used)
                && let Some(memory) = memory.as_any().downcast_ref::<CudaMemory>()
            {
                memory.pending.set(mark.clone());
            }
        }
        Ok(Some(Queued { mark, ending }))
    }

    /// Waits for a queued launch. Returns how it ended.
    fn ended(&self, mark: &Arc<Mark>, ending: &SlotEnding, launch: Launch<'_>) -> Result<Outcome> {
        let began = Instant::now();
        self.queue.wait(mark)?;
        launch.timings.kernel += began.elapsed();
        if launch.cancel.is_cancelled() {
            return Ok(Outcome::Cancelled);
        }
        ending.outcome(true)?.ok_or_else(|| internal("a launch that is over does not say how it ended"))
    }

    /// The status block of launches that nothing stops.
    fn unstopped(&self) -> Result<&Block> {
        self.unstopped.get_or_try_init(|| {
            self.block(STATUS_WORDS * 8, |lane, block| {
                lane.staging.upload(&block.on(&lane.stream), &[(0, &Status::initial(Key::NONE))])
            })
        })
    }

    /// A completion slot for a launch; None: queued launches use all of them.
    fn completion_slot(&self) -> Result<Option<Arc<CompletionSlot>>> {
        let slots = self.slots.get_or_try_init(|| {
            let statuses = self.block(SlotPool::BYTES, |_, _| Ok(()))?;
            SlotPool::new(&self.device, statuses).map(Arc::new)
        })?;
        if let Some(slot) = slots.take() {
            return Ok(Some(slot));
        }
        self.queue.sweep()?;
        Ok(slots.take())
    }

    /// If memory ran out, waits for queued launches and releases their memory, so that another attempt can use it.
    fn making_room<T>(&self, outcome: Result<T>) -> Result<T> {
        if let Err(Error::Memory { .. }) = outcome {
            self.let_go()?;
        }
        outcome
    }

    /// Waits for queued launches, which hold memory, and frees memory that is held for reuse.
    fn let_go(&self) -> Result<()> {
        self.queue.finish()?;
        let kept = self.blas.get().and_then(|blas| blas.as_ref()?.scratch.lock().take());
        drop(kept);
        self.lanes.pool.clear();
        Ok(())
    }

    /// Runs `work` with scratch memory of so many bytes for the states of tiles. If it fails, `work` has waited for its
    /// kernels. The counter in the memory may then differ from 0, so the memory is dropped.
    fn on_reduction_scratch<T>(&self, bytes: usize, work: impl FnOnce(&ReductionScratch) -> Result<T>) -> Result<T> {
        let room = bytes.next_power_of_two().max(MIN_SCRATCH_BYTES);
        let make = |lane: &Lane| ReductionScratch::new(&self.device, &lane.stream, room);
        self.on_kept(&self.reduction_scratch, |scratch| scratch.has_room(bytes), make, work)
    }

    /// As above, for a compaction of so many tiles. After a failure, cells may have the mark of a later launch, so the
    /// memory is dropped.
    fn on_compaction_scratch<T>(&self, tiles: u64, work: impl FnOnce(&CompactionScratch) -> Result<T>) -> Result<T> {
        let make = |lane: &Lane| {
            CompactionScratch::new(&self.device, &lane.stream, tiles.next_power_of_two().max(MIN_SCRATCH_TILES))
        };
        self.on_kept(&self.compaction_scratch, |scratch| scratch.has_room(tiles), make, work)
    }

    /// Runs `work` with a scratch memory that is not in use, or a new one.
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

    /// Runs one tick of a kernel with an epilogue, which has these words, and waits for it. `room`: memory to which it
    /// writes.
    fn launch_into(
        &self,
        kernel: &CudaKernel,
        epilogue: Epilogue,
        mut launch: Launch<'_>,
        words: &[u64],
        room: Option<&Arc<dyn DeviceMemory>>,
    ) -> Result<Outcome> {
        if kernel.emitted.epilogue != Some(epilogue) || launch.ticks != 1 {
            return Err(internal("a kernel with an epilogue was launched for several ticks, or with another epilogue"));
        }
        // the caller needs the results at once
        launch.deferred = None;
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
                self.lanes.on_one(|lane| run(&self.device, kernel, module, lane, jobs, launch, Beside::Epilogue(words)))
            }
        }
    }

    /// Runs a kernel that groups pairs, until its table has room for all groups.
    fn launch_groups(&self, kernel: &CudaKernel, mut launch: Launch<'_>) -> Result<Outcome> {
        let Some(groups) = launch.groups.take() else {
            return Err(internal("pairs are emitted in a launch without groups"));
        };
        let module = kernel.module()?;
        wait_for(launch.columns.iter().filter_map(HostColumn::device))?;
        (groups.records, groups.has_parts) = (first_records(launch.jobs), kernel.emitted.key_parts);
        loop {
            let (again, mut asked) = (launch.again(), 0);
            let jobs = again.jobs;
            let outcome = self.making_room(again.with_buffers(&kernel.layout, |launch| {
                let beside = Beside::Groups(&mut *groups, &mut asked);
                self.lanes.on_one(|lane| run(&self.device, kernel, module, lane, jobs, launch, beside))
            }))?;
            if outcome != Outcome::Done || groups.refused || !groups.grow(asked) {
                return Ok(outcome);
            }
        }
    }

    /// Copies the first bytes of memory to smaller memory, unless that would save little.
    fn shrunk(&self, memory: Arc<dyn DeviceMemory>, bytes: usize) -> Result<Arc<dyn DeviceMemory>> {
        if memory.bytes() <= (bytes * MAX_SLACK).max(SMALL_SLOT_BYTES) {
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

    /// Allocates. If memory does not suffice, tries once more after queued launches have ended and released theirs.
    fn with_room<T>(&self, mut allocate: impl FnMut() -> Result<T>) -> Result<T> {
        allocate().or_else(|error| match error {
            Error::Memory { .. } => self.let_go().and_then(|()| allocate()),
            other => Err(other),
        })
    }

    /// Memory that outlives launches. It waits for `fill`, because launches use other streams.
    fn block(&self, bytes: usize, fill: impl FnOnce(&mut Lane, &Block) -> Result<()>) -> Result<Block> {
        self.lanes.on_one(|lane| {
            let block = self.with_room(|| Block::new(&self.device, &lane.stream, bytes))?;
            let filled = fill(lane, &block);
            // also after an error: a dropped block may be reused at once
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

impl Drop for CudaBackend {
    /// queued work uses what is dropped with the backend
    fn drop(&mut self) {
        if self.device.is_ours() && self.device.is_entered() && self.device.enter().is_ok() {
            let _ = self.queue.finish();
        }
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

    fn groups(&self) -> bool {
        true
    }

    fn slots(&self, jobs: u64) -> u64 {
        let facts = &self.device.facts;
        let resident = u64::from(facts.multiprocessors.max(1)) * u64::from(SLOTS_PER_MULTIPROCESSOR);
        resident.min(jobs.next_multiple_of(u64::from(facts.warp.max(1))))
    }

    fn machine(&self) -> Machine {
        self.device.machine()
    }

    fn blocks(&self, executable: &dyn Executable, threads: u32) -> Option<u32> {
        Some(own::<CudaKernel>(executable, "cuda").ok()?.module().ok()?.blocks_per_multiprocessor(threads))
    }

    fn spread(&self) -> Result<Option<(u32, u32)>> {
        self.device.enter()?;
        let all = self.device.facts.multiprocessors.max(1);
        let compiled =
            nvrtc::compile(SPREAD, self.device.facts.capability, &CodeOptions::default(), nvrtc::How::default())?;
        let module = Module::load(&self.device, compiled.code.bytes(), "ikra_spread")?;
        let memory = self.upload(all as usize * size_of::<u32>(), None)?;
        let address = over::cuda(&memory)?.block.address();
        self.queue.run(|stream| module.launch(stream, all, self.device.facts.warp.max(1), &mut [address]))?;
        let mut bytes = vec![0; memory.bytes()];
        memory.read(0, &mut bytes)?;
        let mut seen: Vec<&[u8; 4]> = bytes.as_chunks::<4>().0.iter().collect();
        seen.sort_unstable();
        seen.dedup();
        Ok(Some((seen.len() as u32, all)))
    }

    fn resources(&self, executable: &dyn Executable) -> Result<Option<Resources>> {
        let kernel = own::<CudaKernel>(executable, "cuda")?;
        let KernelFacts { registers, shared, max_threads: threads, .. } = kernel.module()?.facts;
        Ok(Some(Resources { registers, shared, threads }))
    }

    fn launch(&self, executable: &dyn Executable, launch: Launch<'_>) -> Result<Outcome> {
        let kernel = own::<CudaKernel>(executable, "cuda")?;
        if launch.cancel.is_cancelled() {
            return Ok(Outcome::Cancelled);
        }
        if launch.jobs == 0 || launch.ticks == 0 {
            return Ok(Outcome::Done);
        }
        if kernel.emitted.epilogue.is_some() {
            return Err(internal("a kernel without a column of results was launched for these"));
        }
        self.device.enter()?;
        if kernel.emitted.groups {
            return self.launch_groups(kernel, launch);
        }
        let (jobs, work, waited) = (launch.jobs, launch.jobs.saturating_mul(launch.ticks), &kernel.waited);
        let kernel = kernel.for_share(&launch)?.map_or(kernel, |looping| &**looping);
        let together = self.together(kernel, &launch)?;
        let (kernel, mut launch) = match &together {
            Some((together, groups, params)) => (*together, Launch { jobs: *groups, params, ..launch }),
            None => (kernel, launch),
        };
        let module = kernel.module()?;
        // a caller that measures waits for the launch
        let queued = if launch.timings.exact { None } else { self.queue_launch(kernel, module, &mut launch, &[])? };
        if let Some(Queued { mark, ending }) = queued {
            return ending.map_or(Ok(Outcome::Done), |ending| self.ended(&mark, &ending, launch));
        }
        wait_for(launch.columns.iter().filter_map(HostColumn::device))?;
        let began = Instant::now();
        let outcome = self.making_room(launch.with_buffers(&kernel.layout, |launch| {
            self.lanes.on_one(|lane| run(&self.device, kernel, module, lane, jobs, launch, Beside::Epilogue(&[])))
        }));
        if let Ok(Outcome::Done) = outcome {
            *waited.lock() = Some((work, began.elapsed()));
        }
        outcome
    }

    fn prepare_with_epilogue(
        &self,
        program: &Program,
        layout: &Layout,
        epilogue: Epilogue,
        options: &CodeOptions,
    ) -> Result<Arc<dyn Executable>> {
        self.prepare_with(program, layout, options, collective::at_once(program, epilogue).then_some(epilogue))
    }
    fn launch_fold(&self, executable: &dyn Executable, fold: Fold, launch: Launch<'_>) -> Result<Folded> {
        let kernel = own::<CudaKernel>(executable, "cuda")?;
        if kernel.emitted.epilogue.is_none() || launch.jobs == 0 {
            return fold::apart(self, &Threads::new(1), executable, fold, launch);
        }
        let state = collective::state_bytes(fold.reduction, fold.element);
        let (jobs, bytes) = (launch.jobs, (collective::tiles(launch.jobs) * state) as usize);
        self.making_room(self.on_reduction_scratch(bytes, |scratch| {
            let outcome = self.launch_into(kernel, Epilogue::Fold(fold), launch, &scratch.words(0, jobs), None)?;
            Ok((outcome, (outcome == Outcome::Done).then(|| scratch.result(fold.reduction, fold.element))))
        }))
    }
    fn launch_compaction(
        &self,
        executable: &dyn Executable,
        compaction: Compaction,
        launch: Launch<'_>,
    ) -> Result<Compacted> {
        let kernel = own::<CudaKernel>(executable, "cuda")?;
        let (jobs, storage) = (launch.jobs, compaction.element.storage());
        if jobs == 0 {
            return Ok(compaction.of_nothing());
        }
        self.making_room(self.on_compaction_scratch(collective::compaction_tiles(jobs), |scratch| {
            let all = self.allocate(jobs as usize * storage.bytes())?;
            let words = scratch.words(over::cuda(&all)?.block.address(), jobs);
            let outcome = self.launch_into(kernel, Epilogue::Compaction(compaction), launch, &words, Some(&all))?;
            if outcome != Outcome::Done {
                return Ok((outcome, None));
            }
            let hits = scratch.hits() as usize;
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
        self.making_room(self.on_reduction_scratch((collective::tiles(count) * state) as usize, |scratch| {
            let mut words = scratch.words(memory.block.address() + from as u64, count);
            // runs after queued work on the memory, which is held here
            self.queue.run(|stream| launch(stream, &mut words))?;
            Ok(scratch.result(reduction, element))
        }))
    }
    fn collective(&self) -> Option<&dyn Collective> {
        Some(self)
    }
    fn store(&self) -> Option<&dyn DeviceStore> {
        Some(self)
    }
}

fn internal(detail: &str) -> Error {
    Error::Internal { stage: "cuda", detail: detail.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

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
