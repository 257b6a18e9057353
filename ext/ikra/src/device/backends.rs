//! The backends of this process. Each is opened at its first use.
//!
//! Here: [`open`], and how `auto` chooses. Not here: what a backend is ([`ikra_core::backend`]).
//! Invariant: a child of `fork` opens its own device. The parent's handles are forgotten, never freed.

use crate::options::Choice;
use crate::ruby::gvl;
use crate::ruby::workers;
use ikra_core::backend::Backend;
use ikra_core::backend::cpu::CpuBackend;
use ikra_core::backend::cuda::{CudaBackend, CudaShim};
use ikra_core::backend::reference::ReferenceBackend;
use ikra_core::cache::disk::{DiskCache, default_directory};
use ikra_core::cache::key::KeyBuilder;
use ikra_core::error::{Error, Result};
use ikra_core::memory::buffer::DeviceStore;
use ikra_core::memory::free_list;
use ikra_core::memory::pool;
use ikra_core::memory::words::HostWords;
use ikra_core::process;
use ikra_core::sched::cost::{self, Estimate, History, Side, Ways};
use magnus::{Ruby, Symbol};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Instant;

struct Opened {
    choice: Choice,
    process: u32,
    backend: std::result::Result<Arc<dyn Backend>, (String, String)>,
}

/// The most bytes of compiled kernels that the disk cache holds.
const CACHE_BYTES: u64 = 256 << 20;

/// The backends of this process.
struct Backends {
    /// Compiled kernels on disk.
    cache: OnceCell<Arc<DiskCache>>,
    opened: Mutex<Vec<Opened>>,
    /// What [`measure_ways`] measured. None as long as no GPU was used.
    ways: Mutex<Option<Ways>>,
    /// The lock that is held while a backend is opened, and the process that it belongs to. A child of `fork` may find
    /// that a thread which does not exist in the child holds its parent's lock. The outer lock is held only with the
    /// GVL, so it is free while another thread forks.
    opening: Mutex<Option<(u32, &'static Mutex<()>)>>,
}

static BACKENDS: Backends = Backends {
    cache: OnceCell::new(),
    opened: Mutex::new(Vec::new()),
    ways: Mutex::new(None),
    opening: Mutex::new(None),
};

/// The backend of a name.
///
/// # Errors
/// `Device` where the machine or its software lacks what the backend needs.
pub fn open(choice: Choice) -> Result<Arc<dyn Backend>> {
    if let Some(known) = known(choice) {
        return known;
    }
    let turn = opening();
    gvl::released(|| {
        let _turn = turn.lock();
        if let Some(known) = known(choice) {
            return known;
        }
        let made = make(choice);
        let mut opened = BACKENDS.opened.lock();
        let now = process::id();
        for old in opened.extract_if(.., |o| o.choice == choice) {
            // The old one belongs to another process: its device handles are not ours to free.
            std::mem::forget(old);
        }
        let backend = match &made {
            Ok(backend) => Ok(backend.clone()),
            Err(Error::Device { what, cause }) => Err((what.clone(), cause.clone())),
            Err(error) => Err(("backend".to_owned(), error.to_string())),
        };
        opened.push(Opened { choice, process: now, backend });
        made
    })
}

fn opening() -> &'static Mutex<()> {
    let mut opening = BACKENDS.opening.lock();
    match *opening {
        Some((process, turn)) if process == process::id() => turn,
        _ => {
            let turn: &Mutex<()> = Box::leak(Box::default());
            *opening = Some((process::id(), turn));
            turn
        }
    }
}

fn known(choice: Choice) -> Option<Result<Arc<dyn Backend>>> {
    let opened = BACKENDS.opened.lock();
    let found = opened.iter().find(|o| o.choice == choice && (o.process == process::id() || choice != Choice::Cuda))?;
    Some(match &found.backend {
        Ok(backend) => Ok(backend.clone()),
        Err((what, cause)) => Err(Error::Device { what: what.clone(), cause: cause.clone() }),
    })
}

fn make(choice: Choice) -> Result<Arc<dyn Backend>> {
    Ok(match choice {
        Choice::Auto | Choice::Cpu => Arc::new(CpuBackend::new()?),
        Choice::Reference => Arc::new(ReferenceBackend::default()),
        Choice::Cuda => Arc::new(CudaBackend::open(cache().clone())?),
        Choice::CudaShim => Arc::new(CudaShim::new()?),
    })
}

/// Compiled kernels on disk, and what goes with them.
pub fn cache() -> &'static Arc<DiskCache> {
    BACKENDS.cache.get_or_init(|| Arc::new(DiskCache::open(default_directory().as_deref(), CACHE_BYTES)))
}

/// Why kernels are not kept on disk. Gives the reason once after each time that it happened.
pub fn cache_note() -> Option<String> {
    BACKENDS.cache.get()?.note()
}

/// `Ikra.__cache`: where compiled kernels are kept, and what is wrong with it.
pub fn describe_cache() -> (Option<String>, Option<String>) {
    let cache = cache();
    (cache.directory().map(|path| path.display().to_string()), cache.trouble())
}

/// The backend that `auto` chooses for a section over so many elements, given what earlier calls of its block took.
pub fn choose(choice: Choice, elements: usize, ticks: u64, history: &History) -> Choice {
    if choice != Choice::Auto {
        return choice;
    }
    match history.choose(elements as u64, ticks, workers::THREADS.count(), &ways()) {
        Side::Gpu if open(Choice::Cuda).is_ok() => Choice::Cuda,
        _ => Choice::Cpu,
    }
}

/// How many seconds a kernel is expected to take there, with its copies, by what earlier calls of its block took.
pub fn expected(choice: Choice, (elements, ticks): (usize, u64), history: &History) -> Option<f64> {
    let expected = history.estimate(elements as u64, ticks, workers::THREADS.count(), &ways());
    match choice {
        Choice::Cuda => expected.gpu,
        Choice::Cpu => expected.cpu,
        _ => None,
    }
}

/// `Ikra.__spread`: over how many of the GPU's multiprocessors blocks spread. nil where there is none.
pub fn spread() -> Option<(u32, u32)> {
    let backend = open(Choice::Cuda).ok()?;
    gvl::released(|| backend.spread()).ok().flatten()
}

/// Why a section runs where it does.
pub fn reason(asked: Choice, elements: usize, ticks: u64, history: &History) -> String {
    if asked != Choice::Auto {
        return "it was asked for".into();
    }
    if let Err(error) = open(Choice::Cuda) {
        return trouble(&error);
    }
    let (elements, runs) = (elements as u64, elements as u64 * ticks);
    let expected = history.estimate(elements, ticks, workers::THREADS.count(), &ways());
    if let Estimate { cpu: Some(cpu), gpu: Some(gpu) } = expected {
        let time = |seconds: f64| format!("{:.3} ms", seconds * 1e3);
        let more = history.reservation(expected).map_or_else(String::new, |more| format!("; {more}"));
        return format!("going by calls before, about {} on the CPU and {} on the GPU{more}", time(cpu), time(gpu));
    }
    if elements < cost::MIN_GPU_ELEMENTS {
        return format!("too few elements to keep a GPU busy: {elements}, not {} or more", cost::MIN_GPU_ELEMENTS);
    }
    if runs < cost::MIN_GPU_RUNS {
        let many = cost::MIN_GPU_RUNS;
        return format!("too little to be worth the way to a GPU: {runs} runs of the block, not {many} or more");
    }
    format!("{runs} runs of the block are worth the way to the GPU")
}

/// The message of the error with which a backend cannot be opened.
fn trouble(error: &Error) -> String {
    match error {
        Error::Device { cause, .. } => format!("no GPU: {cause}"),
        other => other.to_string(),
    }
}

/// How long transfers between this machine and its GPU take.
fn ways() -> Ways {
    BACKENDS.ways.lock().unwrap_or_default()
}

/// Measures the ways to a GPU that is in use, unless any process has done so on this machine before.
pub fn measure_ways(backend: &Arc<dyn Backend>) {
    if BACKENDS.ways.lock().is_some() {
        return;
    }
    let target = backend.target();
    let key = KeyBuilder::new("ways to the GPU")
        .text(&target.architecture)
        .value(&target.memory)
        .value(&workers::THREADS.count())
        .finish();
    let known = cache().load(&key).and_then(|bytes| Ways::from_bytes(&bytes));
    let ways = known.or_else(|| {
        let measured = gvl::released(|| measured(backend.store()?).ok());
        measured.inspect(|ways| cache().save(&key, &ways.to_bytes()))
    });
    // A device that cannot be measured is asked only once.
    *BACKENDS.ways.lock() = Some(ways.unwrap_or_default());
}

fn measured(store: &dyn DeviceStore) -> Result<Ways> {
    /// Bytes of the transfers whose rate is measured.
    const MEASURED_BYTES: usize = 16 << 20;
    let mut bytes = vec![1u8; MEASURED_BYTES];
    let mut best = [f64::INFINITY; 3];
    let mut time = |at: usize, began: Instant| best[at] = best[at].min(began.elapsed().as_secs_f64());
    for _ in 0..4 {
        let began = Instant::now();
        store.upload(64, Some(&bytes[..64]))?.read(0, &mut [0; 64])?;
        time(0, began);
        let began = Instant::now();
        let there = store.upload(MEASURED_BYTES, Some(&bytes))?;
        time(1, began);
        let began = Instant::now();
        there.read(0, &mut bytes)?;
        time(2, began);
    }
    let rate = |seconds: f64| MEASURED_BYTES as f64 / seconds.max(1e-9);
    Ok(Ways { launch: best[0], up: rate(best[1]), down: rate(best[2]) })
}

/// Asks the GPU's memory, if one is in use in this process.
fn on_gpu<T>(ask: impl FnOnce(&dyn DeviceStore) -> T) -> Option<T> {
    known(Choice::Cuda)?.ok()?.store().map(ask)
}

/// Host memory for words that go to a device, where the backend has some that is faster to copy from than the
/// allocator's.
pub fn lend(words: usize) -> Option<HostWords> {
    on_gpu(|store| store.lend(words))?
}

/// `Ikra.__before_exit`: called when the process ends.
pub fn before_exit() {
    gvl::released(ikra_core::backend::cuda::background::end);
}

/// Called before the process is forked.
pub fn before_fork() {
    // The child would inherit the memory on the free lists, and copy it at its next use.
    pool::host().clear();
    free_list::clear();
    on_gpu(|store| store.before_fork());
}

/// Memory of this process outside of arrays, in bytes.
#[derive(Default)]
pub struct Memory {
    /// On the device.
    pub device: u64,
    /// The limit of it, if there is one.
    pub limit: Option<u64>,
    /// Page-locked memory of the host.
    pub locked: usize,
    /// On free lists.
    pub free: usize,
}

pub fn memory() -> Memory {
    let (device, (locked, lent)) = on_gpu(|store| (store.held(), store.lent())).unwrap_or_default();
    let free = lent + pool::host().held().1 + free_list::held();
    let limit = ikra_core::config::memory_limit();
    Memory { device, limit: (limit != u64::MAX).then_some(limit), locked, free }
}

/// `Ikra.__backend(name)`: architecture, and what is wrong with it.
///
/// # Errors
/// ArgumentError for an unknown name.
pub fn describe(ruby: &Ruby, name: Symbol) -> std::result::Result<(Option<String>, Option<String>), magnus::Error> {
    let name = name.name()?;
    let Some((_, choice)) = Choice::ALL.iter().find(|(known, _)| *known == name) else {
        return Err(magnus::Error::new(ruby.exception_arg_error(), format!("{name} is no backend")));
    };
    Ok(match open(*choice) {
        Ok(backend) => (Some(backend.target().architecture.clone()), None),
        Err(error) if *choice == Choice::Cuda => (None, Some(trouble(&error))),
        Err(error) => (None, Some(error.to_string())),
    })
}
