//! The backends of this process, opened when they are first asked for.
//!
//! Here: [`open`], and how `auto` chooses. Not here: what a backend is ([`ikra_core::backend`]).
//! Invariant: a child of `fork` opens its own device; the parent's handles are forgotten, never freed.

use crate::config::Choice;
use crate::gvl;
use ikra_core::backend::Backend;
use ikra_core::backend::cpu::CpuBackend;
use ikra_core::backend::cuda::{CudaBackend, CudaShim};
use ikra_core::backend::reference::ReferenceBackend;
use ikra_core::cache::disk::{DiskCache, default_directory};
use ikra_core::error::{Error, Result};
use ikra_core::memory::buffer::DeviceStore;
use magnus::{Ruby, Symbol};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::sync::Arc;

struct Opened {
    choice: Choice,
    process: u32,
    backend: std::result::Result<Arc<dyn Backend>, (String, String)>,
}

/// What compiled kernels may take on disk.
const CACHE_BYTES: u64 = 256 << 20;

static CACHE: OnceCell<Arc<DiskCache>> = OnceCell::new();
static OPENED: Mutex<Vec<Opened>> = Mutex::new(Vec::new());
/// Held, without the GVL, while one is opened.
static OPENING: Mutex<()> = Mutex::new(());

/// The backend of a name.
///
/// # Errors
/// `Device` where the machine or its software lacks what it needs.
pub fn open(choice: Choice) -> Result<Arc<dyn Backend>> {
    if let Some(known) = known(choice) {
        return known;
    }
    gvl::released(|| {
        let _turn = OPENING.lock();
        if let Some(known) = known(choice) {
            return known;
        }
        let made = make(choice);
        let mut opened = OPENED.lock();
        let process = std::process::id();
        for old in opened.extract_if(.., |o| o.choice == choice) {
            // of another process: its device handles are not ours to free
            std::mem::forget(old);
        }
        let backend = match &made {
            Ok(backend) => Ok(backend.clone()),
            Err(error) => Err(("backend".to_owned(), error.to_string())),
        };
        opened.push(Opened { choice, process, backend });
        made
    })
}

fn known(choice: Choice) -> Option<Result<Arc<dyn Backend>>> {
    let opened = OPENED.lock();
    let found =
        opened.iter().find(|o| o.choice == choice && (o.process == std::process::id() || choice != Choice::Cuda))?;
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

fn cache() -> &'static Arc<DiskCache> {
    CACHE.get_or_init(|| Arc::new(DiskCache::open(default_directory().as_deref(), CACHE_BYTES)))
}

/// Why kernels are not kept on disk, the first time that it is asked since that happened.
pub fn cache_note() -> Option<String> {
    CACHE.get()?.note()
}

/// `Ikra.__cache`: where compiled kernels are kept, and what is wrong with it.
pub fn describe_cache() -> (Option<String>, Option<String>) {
    let cache = cache();
    (cache.directory().map(|path| path.display().to_string()), cache.trouble())
}

/// Element runs from which a GPU may be worth its transfers and its launch, which take about as long as a CPU core needs
/// for some ten thousand of them; and elements below which it cannot be kept busy.
const WORTH_A_GPU: u64 = 2_000_000;
const BUSY_GPU: usize = 4_096;

/// What `auto` means for a section.
pub fn choose(choice: Choice, elements: usize, ticks: u64) -> Choice {
    match choice {
        Choice::Auto
            if elements >= BUSY_GPU && elements as u64 * ticks >= WORTH_A_GPU && open(Choice::Cuda).is_ok() =>
        {
            Choice::Cuda
        }
        Choice::Auto => Choice::Cpu,
        chosen => chosen,
    }
}

/// Why a section runs where it does.
pub fn reason(asked: Choice, elements: usize, ticks: u64) -> String {
    if asked != Choice::Auto {
        return "it was asked for".into();
    }
    let runs = elements as u64 * ticks;
    if elements < BUSY_GPU {
        return format!("too few elements to keep a GPU busy: {elements}, not {BUSY_GPU} or more");
    }
    if runs < WORTH_A_GPU {
        return format!("too little to be worth the way to a GPU: {runs} runs of the block, not {WORTH_A_GPU} or more");
    }
    match open(Choice::Cuda) {
        Ok(_) => format!("{runs} runs of the block are worth the way to the GPU"),
        Err(error) => format!("no GPU: {error}"),
    }
}

/// `Ikra.__memory`: bytes of arrays on the host and on the device, how many arrays there are, bytes of resident objects' columns,
/// bytes that this process has on the device, and how many it may have.
pub fn describe_memory() -> (usize, usize, usize, usize, u64, Option<u64>) {
    let (host, device, arrays) = crate::buffer::held();
    let cuda = match known(Choice::Cuda) {
        Some(Ok(backend)) => backend.store().map_or(0, DeviceStore::held),
        _ => 0,
    };
    let limit = ikra_core::config::memory_limit();
    (host, device, arrays, crate::engine::resident::held(), cuda, (limit != u64::MAX).then_some(limit))
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
        Err(error) => (None, Some(error.to_string())),
    })
}
