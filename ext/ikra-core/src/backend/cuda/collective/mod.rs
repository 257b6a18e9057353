//! Collective operations over device memory: reductions, scans, selections, sorting and grouping.
//!
//! Here: which kernels an operation runs, with how many blocks and how much scratch memory. The kernels are the
//! templates beside this file (`*.cuh`), which NVRTC compiles. A kernel is compiled when it first runs, and kept on the
//! disk. Not here: what operations mean, and their order ([`crate::backend::collective`]); the stream, and memory that
//! outlives a call, which the caller has.
//!
//! Each function queues work and returns. The results exist once the stream has passed that work. Addresses are device
//! addresses, aligned for their elements. Their memory stays allocated until then.

mod compaction;
mod gather;
mod groups;
#[cfg(test)]
mod on_shim;
mod reduce;
mod scan;
mod select;
mod sort;
#[cfg(test)]
mod tests;

use super::driver::{Device, Module, Stream};
use super::emit::with_prelude;
use super::nvrtc::{self, Code};
use super::storage::{self, ALIGNMENT, Arena, Block};
use crate::backend::collective::reduce::Reduction;
use crate::backend::collective::{Element, TILE};
use crate::cache::disk::DiskCache;
use crate::cache::key::KeyBuilder;
use crate::config::CodeOptions;
use crate::error::{Error, Result};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

pub use compaction::{COMPACTION, COMPACTION_WORDS, CompactionScratch, cells, compaction_tiles};
pub use gather::{Rows, gather, order_of_rows};
pub use groups::{Grouped, groups};
pub use reduce::{ReductionScratch, at_once, blocks, fewest_blocks, operation, reduce, state_bytes};
pub use scan::{ScanArgs, Tuning as ScanTuning, scan, scan_tuned};
pub use select::{Flagged, chosen, indices, split};
pub use sort::{Payload, Sorting, Tuning as SortTuning, sort, sort_tuned};

pub(super) const COMMON: &str = include_str!("common.cuh");
pub(super) const REDUCE: &str = include_str!("reduce.cuh");
const LOOK_BACK: &str = include_str!("lookback.cuh");

/// A kernel: templates, and the instance that is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The kernel's name, which identifies the instance.
    kernel: String,
    templates: &'static [&'static str],
    /// The text that defines the kernel.
    instance: String,
    threads: u32,
}

impl Text {
    /// A kernel with one parameter of type `args`, whose body calls a template. `blocks`: the fewest blocks that a
    /// multiprocessor must be able to run at once.
    fn new(
        kernel: String,
        templates: &'static [&'static str],
        (threads, blocks): (u32, u32),
        args: &str,
        body: &str,
    ) -> Self {
        let instance = format!(
            "GLOBAL __launch_bounds__({threads}, {blocks}) {kernel}(__grid_constant__ const {args} args) {{ {body}; }}\n"
        );
        Self { kernel, templates, instance, threads }
    }
    /// The complete source without the prelude.
    fn body(&self) -> String {
        [&[COMMON], self.templates, &[&*self.instance]].concat().join("\n")
    }
    fn source(&self) -> String {
        with_prelude(&self.body())
    }
}

/// The number of blocks of a launch.
#[derive(Clone, Copy, Debug)]
enum Blocks {
    /// Exactly so many.
    All(u64),
    /// As many as the device runs at once, but at most so many.
    Resident(u64),
    /// For so many tiles, divided equally among the blocks that the device runs at once.
    Even(u64),
}

/// The C++ name of a type of elements.
pub(super) fn name(element: Element) -> &'static str {
    match element {
        Element::I64 => "i64",
        Element::I32 => "i32",
        Element::U8 => "u8",
        Element::F64 => "f64",
        Element::F32 => "f32",
    }
}

/// Scratch memory, which is freed when dropped.
pub trait Scratch {
    fn address(&self) -> u64;
}

/// What kernels are queued on. Whoever has one has promised that the addresses are as the module demands
/// ([`Collectives::on`]).
pub trait Machine {
    /// # Errors
    /// `Memory`, `Device`.
    fn allocate(&self, bytes: usize) -> Result<Box<dyn Scratch + '_>>;
    /// The address of a counter that is 0 whenever no kernel runs: each kernel resets it.
    ///
    /// # Errors
    /// `Memory`, `Device`.
    fn counter(&self) -> Result<u64>;
    /// Queues that so many bytes are set to `byte`.
    ///
    /// # Errors
    /// `Device`.
    fn fill(&self, address: u64, length: usize, byte: u8) -> Result<()>;
    /// Queues a kernel.
    ///
    /// # Errors
    /// `Device`, `Internal`.
    #[allow(private_interfaces, reason = "implemented here only")]
    fn run(&self, text: &Text, blocks: Blocks, args: &mut [u64]) -> Result<()>;
}

/// The kernels of a device that have run.
pub struct Collectives {
    device: Arc<Device>,
    cache: Arc<DiskCache>,
    kernels: Mutex<HashMap<String, Kernel>>,
    /// Kernels of reductions, found without their text, because making the text takes as long as a small reduction.
    reductions: Mutex<HashMap<(Reduction, Element), Kernel>>,
    /// For each stream, by its handle: a counter that is 0 whenever no kernel runs on it.
    counters: Mutex<HashMap<usize, Block>>,
}

/// A kernel that is compiled when it is first needed.
type Kernel = Arc<OnceCell<Loaded>>;

struct Loaded {
    module: Module,
    /// How many blocks the whole device runs at once.
    resident: u64,
}

impl Collectives {
    pub fn new(device: Arc<Device>, cache: Arc<DiskCache>) -> Self {
        Self { device, cache, kernels: Mutex::default(), reductions: Mutex::default(), counters: Mutex::default() }
    }

    /// Queues operations on a stream of this device. Its context must be current.
    ///
    /// # Safety
    /// All addresses that are passed to its operations are of memory of this device. That memory has room for as many
    /// elements as the operations say, and is aligned for them. It is not dropped, nor written from elsewhere, before
    /// the stream has passed the queued work.
    #[allow(unsafe_code, reason = "operations are given addresses")]
    pub unsafe fn on<'a>(&'a self, stream: &'a Stream) -> OnStream<'a> {
        OnStream { collectives: self, stream }
    }

    /// The kernel and the blocks for a reduction of `count` elements, with the words of a [`ReductionScratch`].
    ///
    /// # Errors
    /// `Device`, `Internal`. The context must be current.
    pub fn reducing(
        &self,
        reduction: Reduction,
        element: Element,
        count: u64,
    ) -> Result<impl FnOnce(&Stream, &mut [u64]) -> Result<()>> {
        let known = self.reductions.lock().get(&(reduction, element)).cloned();
        let kernel = match known {
            Some(kernel) => kernel,
            None => {
                let kernel = self.kernel(&reduce::text(reduction, element))?;
                self.reductions.lock().insert((reduction, element), kernel.clone());
                kernel
            }
        };
        Ok(move |stream: &Stream, args: &mut [u64]| {
            launch(&kernel, reduce::THREADS, stream, Blocks::Even(tiles(count)), args)
        })
    }

    fn kernel(&self, text: &Text) -> Result<Kernel> {
        let slot = self.kernels.lock().entry(text.kernel.clone()).or_default().clone();
        slot.get_or_try_init(|| {
            let module = Module::load(&self.device, self.code(text)?.bytes(), &text.kernel)?;
            let per = module.blocks_per_multiprocessor(text.threads).max(1);
            let resident = u64::from(per) * u64::from(self.device.facts.multiprocessors.max(1));
            Ok::<_, Error>(Loaded { module, resident })
        })?;
        Ok(slot)
    }

    fn code(&self, text: &Text) -> Result<Code> {
        let facts = &self.device.facts;
        let options = CodeOptions::default();
        let source = text.source();
        let key = KeyBuilder::new("cuda collective")
            .value(&facts.capability)
            .value(&facts.driver)
            .value(&options)
            .text(&source)
            .finish();
        let known = self.cache.load(&key).and_then(|bytes| {
            let (kind, code) = bytes.split_first()?;
            Code::of_kind(*kind, code.to_vec())
        });
        if let Some(code) = known {
            return Ok(code);
        }
        let code = nvrtc::compile(&source, facts.capability, &options, nvrtc::How::default())?.code;
        self.cache.save(&key, &[&[code.kind()], code.bytes()].concat());
        Ok(code)
    }
}

/// A stream of a device, as a [`Machine`].
pub struct OnStream<'a> {
    collectives: &'a Collectives,
    stream: &'a Stream,
}

impl Scratch for Arena<'_> {
    fn address(&self) -> u64 {
        self.address
    }
}

impl Machine for OnStream<'_> {
    fn allocate(&self, bytes: usize) -> Result<Box<dyn Scratch + '_>> {
        Ok(Box::new(Arena::new(&self.collectives.device, self.stream, bytes)?))
    }
    fn counter(&self) -> Result<u64> {
        let mut counters = self.collectives.counters.lock();
        let stream = self.stream.raw as usize;
        if let Some(counter) = counters.get(&stream) {
            return Ok(counter.address());
        }
        let counter = Block::new(&self.collectives.device, self.stream, 8)?;
        let address = counter.address();
        // a dropped block may be reused at once
        counter.on(self.stream).fill(0, 8, 0).inspect_err(|_| drop(self.stream.finish()))?;
        counters.insert(stream, counter);
        Ok(address)
    }
    #[allow(unsafe_code, reason = "addresses are what this module is about")]
    fn fill(&self, address: u64, length: usize, byte: u8) -> Result<()> {
        // SAFETY: `address` is in scratch memory, which is freed in the order of the stream, or in memory that stays
        // until the stream has passed this work. The caller of `Collectives::on` has promised the latter.
        unsafe { storage::fill(&self.collectives.device, self.stream, address, length, byte) }
    }
    #[allow(private_interfaces, reason = "as in the trait")]
    fn run(&self, text: &Text, blocks: Blocks, args: &mut [u64]) -> Result<()> {
        launch(&*self.collectives.kernel(text)?, text.threads, self.stream, blocks, args)
    }
}

fn launch(kernel: &OnceCell<Loaded>, threads: u32, stream: &Stream, wanted: Blocks, args: &mut [u64]) -> Result<()> {
    let Some(Loaded { module, resident }) = kernel.get() else { unreachable!("it was just made") };
    let grid = match wanted {
        Blocks::All(all) => all,
        Blocks::Resident(most) => most.min(*resident),
        Blocks::Even(tiles) => blocks(tiles, *resident),
    };
    module.launch(stream, grid.clamp(1, i32::MAX as u64) as u32, threads, args)
}

/// The number of tiles of a reduction.
pub fn tiles(count: u64) -> u64 {
    count.div_ceil(TILE as u64)
}

/// Computes offsets of parts of scratch memory, each aligned for any state.
#[derive(Default)]
struct Parts {
    bytes: usize,
}

impl Parts {
    fn add(&mut self, bytes: u64) -> u64 {
        let at = self.bytes;
        self.bytes += (bytes as usize).next_multiple_of(ALIGNMENT);
        at as u64
    }
}

/// The memory in which the tiles of a scan publish their states: `struct TileStates` of `lookback.cuh`.
struct TileStates<'a> {
    _memory: Box<dyn Scratch + 'a>,
    words: [u64; 5],
}

impl<'a> TileStates<'a> {
    /// Allocates for so many tiles, with states of `state` bytes.
    fn new(machine: &'a impl Machine, tiles: u64, state: u64) -> Result<Self> {
        let (bytes, offsets) = TileStates::parts(tiles, state);
        let memory = machine.allocate(bytes)?;
        machine.fill(memory.address(), bytes, 0)?;
        let [a, b, c, d] = offsets.map(|offset| memory.address() + offset);
        Ok(Self { _memory: memory, words: [a, b, c, d, 1] })
    }

    /// The size of the memory, and the offsets of tiles, groups, larger groups and the next tile.
    fn parts(tiles: u64, state: u64) -> (usize, [u64; 4]) {
        /// Tiles of a group, and groups of a larger group.
        const GROUP: u64 = 32;
        // a cell of 16 bytes for each word
        let shown = |count: u64| count * state * 2;
        let groups = tiles.div_ceil(GROUP);
        let mut parts = Parts::default();
        let offsets = [shown(tiles), shown(groups), shown(groups.div_ceil(GROUP)), 4].map(|bytes| parts.add(bytes));
        (parts.bytes, offsets)
    }
}
