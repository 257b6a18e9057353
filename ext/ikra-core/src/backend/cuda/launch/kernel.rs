//! Compiled programs: code from the disk or from NVRTC, and how a launch is divided into blocks and threads.
//!
//! Here: [`CudaKernel`], and [`Maker`], which makes it. Not here: the launch ([`super`]), and the text of the code
//! ([`crate::backend::cuda::emit`]).

use super::joined::Joined;
use super::plan::Use;
use crate::backend::cuda::collective;
use crate::backend::cuda::driver::{Device, KernelFacts, Module};
use crate::backend::cuda::emit::{self, Emitted};
use crate::backend::cuda::nvrtc::{self, Code, How};
use crate::backend::cuda::privatization::Cells;
use crate::backend::epilogue::Epilogue;
use crate::backend::{Executable, FusedTicks, Key, Launch};
use crate::cache::disk::DiskCache;
use crate::cache::key::KeyBuilder;
use crate::config::CodeOptions;
use crate::error::{Error, Result};
use crate::ir::{Jobs, Program};
use crate::layout::Layout;
use crate::passes::jam::Jam;
use crate::passes::team::Team;
use crate::target::Target;
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::any::Any;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Threads of a block, unless the kernel or the caller says otherwise.
pub(super) const BLOCK: u32 = 256;
/// Threads of a block that has sums or groups of its own: as many as possible, because it adds these to memory at the
/// end.
const OWN_BLOCK: u32 = 512;
/// The most blocks of a grid.
const MAX_BLOCKS: u64 = i32::MAX as u64;
/// The depth of nested calls at which SystemStackError is raised. It is less if the stacks of all threads would take
/// too much memory, but at least [`MIN_CALL_DEPTH`].
pub(super) const CALL_DEPTH: u32 = 1_000;
const MIN_CALL_DEPTH: u32 = 16;
/// How long a launch without memory for stacks waits, in several attempts, for other processes to free memory.
const STACK_PAUSES: [Duration; 4] =
    [Duration::from_millis(10), Duration::from_millis(20), Duration::from_millis(40), Duration::from_millis(80)];
/// The depth of nested calls for which stacks are reserved at first. CUDA reserves stacks for all threads that the
/// device can run, in each process.
const FIRST_CALL_DEPTH: u32 = 32;
/// The factor by which that depth grows when a launch needs more.
const DEEPER: u32 = 4;
/// The most bytes of stack that a thread can have.
const MAX_STACK_BYTES: u64 = 500 << 10;
/// Threads get several jobs if there are so many threads per multiprocessor. That is half of what it holds. Half as
/// many threads with several jobs each have more loads under way than all threads with one job.
const MIN_THREADS_OF_SEVERAL: u64 = 1_024;

/// So many first launches of a kernel are timed.
const ALL_TIMED: u32 = 4;
/// Of later launches, one of so many is timed.
const TIMED_EVERY: u32 = 16;

/// Threads of a block of small teams.
const TEAM_BLOCK: u64 = 128;

/// Makes kernels from programs.
#[derive(Clone)]
pub(super) struct Maker {
    pub(super) device: Arc<Device>,
    pub(super) target: Target,
    pub(super) cache: Arc<DiskCache>,
}

/// A compiled program. Its code is loaded onto the device at the first launch, or earlier in the background.
pub struct CudaKernel {
    pub(super) emitted: Emitted,
    pub(super) artifact: Artifact,
    pub(super) compiled_in: Duration,
    pub(super) from_cache: bool,
    pub(super) fused_ticks: bool,
    /// Whether it reads the number of its thread.
    pub(super) slots: bool,
    /// Whether it surely ends soon, and raises nothing.
    pub(super) harmless: bool,
    /// Whether it draws random numbers, which differ in each section.
    pub(super) draws: bool,
    /// The kernel for several ticks at once, if launches of this one may become one launch.
    pub(super) joined: OnceCell<Joined>,
    /// Makes further kernels later.
    pub(super) maker: Maker,
    pub(super) options: CodeOptions,
    /// Whether it surely ends, and its errors can be deferred.
    pub(super) defers_errors: bool,
    /// Whether it surely ends soon, even if it raises, and needs nothing of the host meanwhile.
    pub(super) ends_alone: bool,
    /// The use of each buffer.
    pub(super) columns: Vec<Use>,
    pub(super) layout: Layout,
    pub(super) module: OnceCell<Arc<Module>>,
    /// How deep calls may nest, once stacks are reserved.
    pub(super) call_depth: Mutex<Option<u32>>,
    /// Nanoseconds that one tick of one job took in the last timed launch, as the bits of an f64; 0: not known.
    pub(super) pace: AtomicU64,
    /// How many launches the host has waited for.
    pub(super) launches: AtomicU32,
    /// How many ticks of jobs the last launch had that the host waited for, and how long that took.
    pub(super) waited: Mutex<Option<(u64, Duration)>>,
    /// The same program for several jobs at once.
    pub(super) jammed: Option<Jammed>,
    /// The same program with threads that loop over jobs.
    pub(super) looping: OnceCell<Arc<CudaKernel>>,
    /// The same program for teams of threads.
    pub(super) teamed: Option<Teamed>,
}

/// The kernel whose jobs are run by teams. It is compiled at the first launch that has too few jobs for the device.
pub(super) struct Teamed {
    pub(super) team: Team,
    pub(super) kernel: OnceCell<Arc<CudaKernel>>,
}

/// The kernel for several jobs at once. It is compiled while other code is compiled or runs.
pub(super) struct Jammed {
    pub(super) jam: Jam,
    pub(super) kernel: OnceCell<Arc<CudaKernel>>,
}

/// How a launch is divided.
pub(super) struct Shape {
    pub(super) grid: u32,
    /// Threads of a block.
    pub(super) block: u32,
    /// The words after the parameters.
    pub(super) cells: Vec<u64>,
}

/// An entry of the disk cache: code, and the largest stack frame of its functions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Artifact {
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

/// The largest stack frame in the assembler's log.
fn largest_frame(log: &str) -> Option<u32> {
    log.lines().filter_map(|l| l.split_once(" bytes stack frame")?.0.rsplit(' ').next()?.parse().ok()).max()
}

impl Maker {
    /// The code of the program, from the disk or from NVRTC.
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
        let how = How { verbose: emitted.recursive, quick: emitted.is_long };
        let compiled = nvrtc::compile(&source, self.device.facts.capability, options, how)?;
        // the log has no frames for PTX
        let frame = largest_frame(&compiled.log).unwrap_or(if emitted.recursive { 1024 } else { 0 });
        let artifact = Artifact { code: compiled.code, frame };
        self.cache.save(&key, &artifact.encode());
        Ok((artifact, false))
    }

    pub(super) fn compiled(
        &self,
        program: &Program,
        layout: &Layout,
        options: &CodeOptions,
        epilogue: Option<Epilogue>,
        emit: impl FnOnce() -> Emitted,
    ) -> Result<CudaKernel> {
        let start = Instant::now();
        emit::check(program)?;
        let emitted = emit();
        let (artifact, from_cache) = self.artifact(&emitted, options)?;
        let mut columns = Use::of_buffers(program, layout);
        epilogue.iter().flat_map(Epilogue::columns).for_each(|column| columns[column.index()] = Use::None);
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
            defers_errors: program.jobs == Jobs::Identity && program.can_defer_errors(),
            ends_alone: program.ends_alone(),
            columns,
            layout: layout.clone(),
            module: OnceCell::new(),
            call_depth: Mutex::default(),
            pace: AtomicU64::new(0),
            launches: AtomicU32::new(0),
            waited: Mutex::default(),
            jammed: None,
            looping: OnceCell::new(),
            teamed: None,
        })
    }
}

impl CudaKernel {
    /// The code, on the device. Loads it if necessary.
    pub(super) fn module(&self) -> Result<&Arc<Module>> {
        self.module.get_or_try_init(|| {
            self.maker.device.enter()?;
            Module::load(&self.maker.device, self.artifact.code.bytes(), &self.emitted.kernel).map(Arc::new)
        })
    }

    /// Registers, memory and so on. None before the code is on the device.
    pub fn facts(&self) -> Option<KernelFacts> {
        self.module.get().map(|m| m.facts)
    }

    /// The kernel for a launch with a share of the device. None: this one.
    pub(super) fn for_share(&self, launch: &Launch<'_>) -> Result<Option<&Arc<CudaKernel>>> {
        let warp = self.maker.device.facts.warp;
        if !self.emitted.takes_share() || launch.share.is_none_or(|share| share.threads(warp) >= launch.jobs) {
            return Ok(None);
        }
        let Some(emitted) = self.emitted.looping() else { return Ok(None) };
        let make = || {
            let start = Instant::now();
            let (artifact, from_cache) = self.maker.artifact(&emitted, &self.options)?;
            Ok(Arc::new(CudaKernel {
                emitted,
                artifact,
                compiled_in: start.elapsed(),
                from_cache,
                joined: OnceCell::new(),
                maker: self.maker.clone(),
                options: self.options,
                columns: self.columns.clone(),
                layout: self.layout.clone(),
                module: OnceCell::new(),
                call_depth: Mutex::default(),
                pace: AtomicU64::new(0),
                launches: AtomicU32::new(0),
                waited: Mutex::default(),
                jammed: None,
                looping: OnceCell::new(),
                teamed: None,
                ..*self
            }))
        };
        self.looping.get_or_try_init(make).map(Some)
    }

    /// How a launch is divided. Its columns are the layout's buffers.
    pub(super) fn shape(&self, module: &Module, launch: &Launch<'_>) -> Result<Shape> {
        let cells = Cells::of(&self.emitted.privatized, launch);
        let apart = Cells::none(self.emitted.privatized.len());
        if cells.rows > 0 {
            let (grid, block) = self.resident(module, launch)?;
            // privatization pays only if blocks add fewer sums to memory than there are jobs
            if u64::from(grid) * cells.rows <= launch.jobs {
                return Ok(Shape { grid, block, cells: cells.words });
            }
        }
        if self.emitted.few_blocks {
            let (grid, block) = self.resident(module, launch)?;
            return Ok(Shape { grid, block, cells: apart.words });
        }
        let (grid, block) = self.blocks(module, launch, BLOCK)?;
        Ok(Shape { grid, block, cells: apart.words })
    }

    /// The same for blocks that have something of their own, which each adds to memory at its end: no more of them than
    /// the device runs at once.
    fn resident(&self, module: &Module, launch: &Launch<'_>) -> Result<(u32, u32)> {
        let threads = |block| block * module.blocks_per_multiprocessor(block);
        // larger blocks merge less, but fewer threads may fit
        let wanted = if threads(BLOCK) > threads(OWN_BLOCK) { BLOCK } else { OWN_BLOCK };
        let (grid, block) = self.blocks(module, launch, wanted)?;
        let most = module.blocks_per_multiprocessor(block).max(1) * self.maker.device.facts.multiprocessors.max(1);
        Ok((grid.min(most), block))
    }

    /// The number of blocks, and of threads in each: `wanted` if there are many jobs.
    pub(super) fn blocks(&self, module: &Module, launch: &Launch<'_>, wanted: u32) -> Result<(u32, u32)> {
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
            None if self.emitted.team => {
                // a block has whole teams, and there are at least as many blocks as multiprocessors
                let lanes = launch.params.last().map_or(1, |bits| 1 << bits);
                let block = Team::block(lanes, TEAM_BLOCK);
                return Ok((jobs.div_ceil(block) as u32, block as u32));
            }
            None if self.emitted.tile > 0 => BLOCK.min(most),
            None => {
                // few jobs are divided among all multiprocessors
                let spread =
                    jobs.div_ceil(u64::from(facts.multiprocessors.max(1))).next_multiple_of(u64::from(facts.warp));
                let block = spread.clamp(u64::from(facts.warp), u64::from(wanted)) as u32;
                block.min(most)
            }
        };
        if let Some(epilogue) = self.emitted.epilogue {
            let resident = u64::from(module.blocks_per_multiprocessor(emit::EPILOGUE_THREADS).max(1));
            let most = resident * u64::from(facts.multiprocessors.max(1));
            let grid = match epilogue {
                Epilogue::Fold(_) => collective::blocks(collective::tiles(jobs), most),
                Epilogue::Compaction(_) => collective::compaction_tiles(jobs).clamp(1, most),
            };
            return Ok((grid as u32, emit::EPILOGUE_THREADS));
        }
        if let Some(share) = launch.share.filter(|_| self.emitted.takes_share()) {
            let warp = facts.warp.max(1);
            let block = (share.warps.saturating_mul(warp)).clamp(warp.min(most), most);
            let all = jobs.div_ceil(u64::from(block)).min(MAX_BLOCKS) as u32;
            // a kernel of one job a thread has a thread for each
            let grid = if self.emitted.once { all } else { share.blocks.clamp(1, all) };
            return Ok(self.within_slots(grid, block, slots));
        }
        let jobs = jobs.div_ceil(self.jobs_of_a_thread(launch));
        // a grid has a limited number of blocks, which must have a thread for each job
        let block = block.max(jobs.div_ceil(MAX_BLOCKS).try_into().unwrap_or(u32::MAX));
        // up to twice as many tiles as full ones are possible: blocks without a tile end at once
        let each = if self.emitted.tile > 0 { self.emitted.tile.div_ceil(2) } else { u64::from(block) };
        let grid = jobs.div_ceil(each).min(MAX_BLOCKS) as u32;
        Ok(self.within_slots(grid, block, slots))
    }

    /// No more threads than slots, where the kernel uses these.
    fn within_slots(&self, grid: u32, block: u32, slots: u64) -> (u32, u32) {
        if !self.slots {
            return (grid, block);
        }
        let block = u64::from(block).min(slots.max(1)) as u32;
        (grid.min((slots / u64::from(block)).max(1) as u32), block)
    }

    /// How many jobs each thread of a launch runs.
    fn jobs_of_a_thread(&self, launch: &Launch<'_>) -> u64 {
        let Some(several) = &self.emitted.several else { return 1 };
        let least = MIN_THREADS_OF_SEVERAL * u64::from(self.maker.device.facts.multiprocessors.max(1));
        // a block size that the user set counts jobs
        let one = launch.limit != Key::NONE
            || launch.block_size.is_some()
            || launch.share.is_some()
            || launch.jobs < least * several.jobs;
        if one || !several.are_there(launch) { 1 } else { several.jobs }
    }

    /// Counts a launch, and says whether the device tells its times. Events with a time cost their thread as much as
    /// the launch, and launches of other threads more. So the first launches have them, and after these one of
    /// [`TIMED_EVERY`].
    pub(super) fn is_next_timed(&self) -> bool {
        let count = self.launches.fetch_add(1, Ordering::Relaxed);
        count < ALL_TIMED || count.is_multiple_of(TIMED_EVERY)
    }

    /// How deep calls may nest. Reserves stacks for that.
    pub(super) fn call_depth(&self) -> Result<u32> {
        if !self.emitted.recursive {
            return Ok(CALL_DEPTH);
        }
        let mut known = self.call_depth.lock();
        if let Some(depth) = *known {
            return Ok(depth);
        }
        let depth = self.room_for(FIRST_CALL_DEPTH)?;
        *known = Some(depth);
        Ok(depth)
    }

    /// Reserves stacks for calls that nest `depth` deep, or less deep if memory does not suffice. Returns the depth.
    fn room_for(&self, depth: u32) -> Result<u32> {
        let frame = u64::from(self.artifact.frame.max(16).next_multiple_of(16));
        let beside = 2 * frame + 2048;
        let [least, most] = [MIN_CALL_DEPTH, depth].map(|depth| u64::from(depth) * frame + beside);
        let stack = self.maker.device.reserve_stack(most.min(MAX_STACK_BYTES).max(least), least)?;
        // other kernels may have reserved more
        Ok(u32::try_from((stack - beside) / frame).unwrap_or(u32::MAX).min(CALL_DEPTH))
    }
}

impl Executable for CudaKernel {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn deepen(&self) -> Result<bool> {
        let mut known = self.call_depth.lock();
        let Some(depth) = known.filter(|depth| self.emitted.recursive && *depth < CALL_DEPTH) else { return Ok(false) };
        self.maker.device.enter()?;
        let wanted = depth.saturating_mul(DEEPER).min(CALL_DEPTH);
        let mut deeper = self.room_for(wanted)?;
        // other processes may free the missing memory soon
        for pause in STACK_PAUSES {
            if deeper > depth {
                break;
            }
            std::thread::sleep(pause);
            deeper = self.room_for(wanted)?;
        }
        *known = Some(deeper.max(depth));
        Ok(deeper > depth)
    }
    /// As long as the last launch. A larger one takes longer.
    fn predicted(&self, jobs: u64, ticks: u64) -> Option<Duration> {
        let (work, took) = (*self.waited.lock())?;
        Some(took.mul_f64((jobs.saturating_mul(ticks) as f64 / work.max(1) as f64).max(1.0)))
    }
    fn join_ticks(&self, make: FusedTicks) {
        let Emitted { privatized, indirect, epilogue, .. } = &self.emitted;
        // both kernels of a launch must have the same words
        if self.harmless && privatized.is_empty() && !indirect && epilogue.is_none() {
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
        if let Some(Teamed { kernel, .. }) = &self.teamed {
            text += &Team::listing(kernel.get().map(|kernel| kernel.listing()).as_deref());
        }
        text
    }
    fn compiled_in(&self) -> Duration {
        self.compiled_in
    }
    fn from_cache(&self) -> bool {
        self.from_cache
    }
    fn runs_epilogue(&self) -> bool {
        self.emitted.epilogue.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{Artifact, Code, largest_frame};

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
}
