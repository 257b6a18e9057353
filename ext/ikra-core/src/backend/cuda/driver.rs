//! The CUDA driver: opening it, one device and its context, and the handles that launches use.
//!
//! Here: every raw handle has an owner with a name, and every call answers with the name of the CUDA function that
//! failed. Not here: memory ([`super::storage`]) and launches ([`super::launch`]).
//!
//! The library is opened by hand first: that it is missing or broken is an answer, where cudarc would panic.
//!
//! **After a fork** no inherited handle is used or freed: whoever owns one remembers the process that made it.
//!
//! **After a fault** (an illegal address, say) CUDA refuses everything for the rest of the process. The first such
//! error is kept, and named by every later one.
#![allow(unsafe_code, reason = "calls into libcuda")]

use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUresult};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Oldest driver (its CUDA version) that has all functions that are called here.
const OLDEST_DRIVER: i32 = 12_000;

/// Every function that is called here and in [`super::storage`]; cudarc panics at the first call of one that is missing.
const NEEDED: &str = "cuInit cuDriverGetVersion cuGetErrorName cuGetErrorString cuDeviceGet cuDeviceGetCount \
    cuDeviceGetName cuDeviceGetAttribute cuDeviceTotalMem_v2 cuDevicePrimaryCtxRetain cuCtxSetCurrent cuCtxGetLimit \
    cuCtxSetLimit cuDeviceGetDefaultMemPool cuMemPoolSetAttribute cuMemPoolTrimTo cuMemGetInfo_v2 cuMemAllocAsync \
    cuMemFreeAsync cuMemHostAlloc cuMemFreeHost cuMemHostRegister_v2 cuMemHostUnregister cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 \
    cuMemsetD8Async cuStreamCreate \
    cuStreamSynchronize cuStreamWaitValue32_v2 cuStreamWriteValue32_v2 cuStreamDestroy_v2 cuEventCreate cuEventRecord cuEventQuery cuEventSynchronize \
    cuEventDestroy_v2 cuModuleLoadDataEx cuModuleGetFunction cuModuleUnload cuFuncGetAttribute \
    cuOccupancyMaxActiveBlocksPerMultiprocessor cuLaunchKernel";

/// What is known of the device without a context.
#[derive(Clone, Debug)]
pub struct Facts {
    pub name: String,
    /// Compute capability, as in 90.
    pub capability: u32,
    pub warp: u32,
    pub multiprocessors: u32,
    pub threads_per_multiprocessor: u32,
    pub memory: u64,
    /// CUDA version of the driver, as in 13000.
    pub driver: i32,
}

impl Facts {
    /// Threads that it can run at once.
    pub fn threads(&self) -> u64 {
        u64::from(self.multiprocessors.max(1)) * u64::from(self.threads_per_multiprocessor.max(1))
    }
}

/// One device, and its context from the first time that it is needed.
pub struct Device {
    pub facts: Facts,
    handle: sys::CUdevice,
    context: OnceCell<Context>,
    process: u32,
    fault: OnceCell<String>,
    /// One at a time looks at the stacks' size and raises it.
    stack: Mutex<()>,
    pub ledger: Ledger,
}

/// Device memory that this process holds, and what waits to be used again or given back.
#[derive(Default)]
pub struct Ledger {
    held: AtomicU64,
    dropped: Mutex<Dropped>,
}

/// Memory that nobody uses any more. Whoever drops it, be it the GC, only notes it here; the next allocation of the same
/// size takes it, or gives everything back once it has become much.
#[derive(Default)]
struct Dropped {
    /// Addresses by length.
    blocks: BTreeMap<usize, Vec<u64>>,
    count: usize,
    bytes: usize,
}

/// Dropped blocks that are kept at most, and their bytes. The GC drops thousands of small ones at a time, which the loop that made them wants again.
const MAX_DROPPED: usize = 65_536;
const MAX_DROPPED_BYTES: usize = 4 << 30;

impl Ledger {
    /// Bytes that are allocated and were not dropped.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
    /// Counts what is about to be allocated.
    ///
    /// # Errors
    /// The bytes that are left within the limit, where they are fewer.
    pub fn reserve(&self, bytes: usize, limit: u64) -> std::result::Result<(), u64> {
        let within = |held: u64| held.checked_add(bytes as u64).filter(|sum| *sum <= limit);
        let reserved = self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within);
        reserved.map(|_| ()).map_err(|held| limit.saturating_sub(held))
    }
    pub fn remove(&self, bytes: usize) {
        self.held.fetch_sub(bytes as u64, Ordering::Relaxed);
    }
    pub fn drop_later(&self, address: u64, bytes: usize) {
        self.remove(bytes);
        let mut dropped = self.dropped.lock();
        dropped.blocks.entry(bytes).or_default().push(address);
        dropped.count += 1;
        dropped.bytes += bytes;
    }
    /// Dropped memory of exactly this length, to be used again.
    pub fn take(&self, bytes: usize) -> Option<u64> {
        let mut dropped = self.dropped.lock();
        let address = dropped.blocks.get_mut(&bytes)?.pop()?;
        dropped.count -= 1;
        dropped.bytes -= bytes;
        self.held.fetch_add(bytes as u64, Ordering::Relaxed);
        Some(address)
    }
    /// What is to be given back: all of it, where it is much or `all` is said.
    pub fn take_dropped(&self, all: bool) -> Vec<u64> {
        let mut dropped = self.dropped.lock();
        if !all && dropped.count < MAX_DROPPED && dropped.bytes < MAX_DROPPED_BYTES {
            return Vec::new();
        }
        std::mem::take(&mut *dropped).blocks.into_values().flatten().collect()
    }
    /// Bytes that are kept to be used again.
    pub fn kept(&self) -> u64 {
        self.dropped.lock().bytes as u64
    }
}

struct Context(sys::CUcontext);

// SAFETY: a context handle may be used by any thread; it is made current before each use. The primary context lives as
// long as the process.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Turns a CUDA status into an answer that names the call.
fn answer(what: &str, status: CUresult) -> Result<()> {
    if status == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let (mut name, mut text) = (std::ptr::null(), std::ptr::null());
    // SAFETY: the library is open (a status came from it); both functions take any status and leave a static string or
    // null.
    let words = unsafe {
        sys::cuGetErrorName(status, &raw mut name);
        sys::cuGetErrorString(status, &raw mut text);
        [name, text].map(|p| if p.is_null() { String::new() } else { CStr::from_ptr(p).to_string_lossy().into_owned() })
    };
    let [name, text] = words;
    Err(Error::Device { what: what.to_string(), cause: format!("{text} ({name})") })
}

/// Milliseconds between attempts to have memory that other processes hold.
const PAUSES: [u64; 5] = [10, 20, 40, 80, 160];

/// Whether the status means that the context is lost.
fn is_fault(status: CUresult) -> bool {
    matches!(
        status,
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
    )
}

fn no_device(cause: impl Into<String>) -> Error {
    Error::Device { what: "looking for an NVIDIA GPU".to_string(), cause: cause.into() }
}

/// Opens libcuda, once for the process.
fn load() -> Result<()> {
    static LOADED: OnceCell<()> = OnceCell::new();
    LOADED
        .get_or_try_init(|| {
            let names = ["cuda", "nvcuda"].iter().flat_map(|n| cudarc::get_lib_name_candidates(n));
            // SAFETY: libcuda's initialisers have no preconditions. The handle is never closed.
            let found = names.into_iter().any(|n| unsafe { libloading::Library::new(n) }.map(std::mem::forget).is_ok());
            // SAFETY: it only tries to open the library by the same names.
            if !found || !unsafe { sys::is_culib_present() } {
                return Err(no_device("libcuda, which comes with NVIDIA's driver, is not installed"));
            }
            // SAFETY: the library is open; the symbols are only looked for.
            let has = |name: &&str| unsafe { sys::culib().get::<*const c_void>(name.as_bytes()) }.is_ok();
            match NEEDED.split_whitespace().find(|name| !has(name)) {
                Some(missing) => {
                    Err(no_device(format!("the installed libcuda is incomplete or too old: it lacks {missing}")))
                }
                None => Ok(()),
            }
        })
        .copied()
}

impl Device {
    /// The first device, with what is known of it; its context is not made yet.
    ///
    /// # Errors
    /// `Device`: no driver, one too old, one that does not work, or no GPU.
    pub fn open() -> Result<Self> {
        load()?;
        let mut driver = 0;
        // SAFETY: the library is open, and the out-pointer is to a live local.
        answer("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut driver) })?;
        if driver < OLDEST_DRIVER {
            let version = |v: i32| format!("{}.{}", v / 1000, v % 1000 / 10);
            return Err(no_device(format!(
                "the driver is for CUDA {}; Ikra needs {} or newer",
                version(driver),
                version(OLDEST_DRIVER)
            )));
        }
        // SAFETY: the library is open.
        match unsafe { sys::cuInit(0) } {
            CUresult::CUDA_ERROR_NO_DEVICE => return Err(no_device("NVIDIA's driver is installed, but sees no GPU")),
            CUresult::CUDA_ERROR_NOT_INITIALIZED => {
                return Err(no_device(
                    "CUDA was already used by the process that this one was forked from, and does not work in its \
                     children; fork before the first use, or exec",
                ));
            }
            status => answer("cuInit", status).map_err(|e| match e {
                Error::Device { what, cause } => Error::Device {
                    what,
                    cause: format!("{cause}; NVIDIA's driver is installed but does not work: see `nvidia-smi`"),
                },
                other => other,
            })?,
        }
        let mut count = 0;
        // SAFETY: as above; so are the calls below, whose out-pointers are to live locals.
        answer("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&raw mut count) })?;
        if count == 0 {
            return Err(no_device("NVIDIA's driver is installed, but sees no GPU"));
        }
        let mut handle = 0;
        // SAFETY: as above.
        answer("cuDeviceGet", unsafe { sys::cuDeviceGet(&raw mut handle, 0) })?;
        let attribute = |which| -> Result<u32> {
            let mut value = 0;
            // SAFETY: as above, and `handle` is a device of this process.
            answer("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&raw mut value, which, handle) })?;
            Ok(value.unsigned_abs())
        };
        use sys::CUdevice_attribute_enum as Attribute;
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let mut name = [0u8; 128];
        // SAFETY: as above; the buffer has the length that is passed, and is zero-terminated by the call.
        let named = unsafe { sys::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as c_int, handle) };
        answer("cuDeviceGetName", named)?;
        let mut memory = 0;
        // SAFETY: as above.
        answer("cuDeviceTotalMem", unsafe { sys::cuDeviceTotalMem_v2(&raw mut memory, handle) })?;
        if attribute(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? == 0 {
            return Err(no_device("the GPU's driver does not support memory pools (cuMemAllocAsync)"));
        }
        let facts = Facts {
            name: CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy().into_owned(),
            capability: major * 10 + minor,
            warp: attribute(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            threads_per_multiprocessor: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            memory: memory as u64,
            driver,
        };
        let process = crate::process::id();
        Ok(Self {
            facts,
            handle,
            context: OnceCell::new(),
            process,
            fault: OnceCell::new(),
            stack: Mutex::default(),
            ledger: Ledger::default(),
        })
    }

    /// Whether this process made the device's handles.
    pub fn is_ours(&self) -> bool {
        self.process == crate::process::id()
    }

    /// Whether the context is there.
    pub fn is_entered(&self) -> bool {
        self.context.get().is_some()
    }

    /// # Errors
    /// `Device` in a process that did not make the device's handles.
    fn ours(&self) -> Result<()> {
        if self.is_ours() {
            return Ok(());
        }
        let cause = "CUDA was already in use when the process was forked; fork before the first use, or exec";
        Err(Error::Device { what: "using the GPU in a forked process".into(), cause: cause.into() })
    }

    /// Makes the context current on this thread, creating it the first time (a third of a second).
    ///
    /// # Errors
    /// `Device` after a fork, after a fault, or when CUDA refuses.
    pub fn enter(&self) -> Result<()> {
        self.ours()?;
        if let Some(fault) = self.fault.get() {
            return Err(Error::Device {
                what: "using the GPU".to_string(),
                cause: format!(
                    "an earlier call failed in a way that CUDA does not recover from ({fault}); restart the process"
                ),
            });
        }
        let context = self.context.get_or_try_init(|| {
            let mut context = std::ptr::null_mut();
            // SAFETY: `handle` is a device of this process, and the out-pointer is to a live local. The context is kept for
            // the process's life.
            let mut retain = || unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, self.handle) };
            let mut made = retain();
            // other processes may be about to give some back
            for pause in PAUSES {
                if made == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
                    std::thread::sleep(Duration::from_millis(pause));
                    made = retain();
                }
            }
            answer("cuDevicePrimaryCtxRetain", made)?;
            let context = Context(context);
            // SAFETY: the context was just made.
            answer("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(context.0) })?;
            self.keep_freed_memory()?;
            Ok::<_, Error>(context)
        })?;
        // SAFETY: the context lives as long as the process.
        self.check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(context.0) })
    }

    /// As [`answer`], and remembers a fault.
    pub fn check(&self, what: &str, status: CUresult) -> Result<()> {
        let result = answer(what, status);
        if let Err(e) = &result
            && is_fault(status)
        {
            let _ = self.fault.set(e.to_string());
        }
        result
    }

    /// What nobody was told of that asked for it failed: everything that is asked from now on does.
    pub fn lose(&self, because: &str) {
        let _ = self.fault.set(because.into());
    }

    fn pool(&self) -> Result<sys::CUmemoryPool> {
        let mut pool = std::ptr::null_mut();
        // SAFETY: `handle` is a device of this process, and the out-pointer is to a live local.
        let got = unsafe { sys::cuDeviceGetDefaultMemPool(&raw mut pool, self.handle) };
        self.check("cuDeviceGetDefaultMemPool", got)?;
        Ok(pool)
    }

    /// Freed device memory stays with the process, for the next launch.
    fn keep_freed_memory(&self) -> Result<()> {
        let pool = self.pool()?;
        let mut threshold = u64::MAX;
        let attribute = sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool is the device's own, and this attribute is a 64-bit number.
        let set = unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut threshold).cast()) };
        self.check("cuMemPoolSetAttribute", set)
    }

    /// Gives freed device memory back.
    ///
    /// # Errors
    /// `Device`. The context must be current.
    pub fn trim(&self) -> Result<()> {
        let pool = self.pool()?;
        // SAFETY: the pool is the device's own.
        self.check("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(pool, 0) })
    }

    /// Bytes free for new allocations; the context must be current.
    pub fn free_memory(&self) -> u64 {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the out-pointers are to live locals.
        let got = unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) };
        if got == CUresult::CUDA_SUCCESS { free as u64 } else { 0 }
    }

    /// Bytes of stack for each thread, for kernels that recurse: `wanted`, or as much as there is room for, but no less than
    /// `least`. Raised when needed, never lowered: CUDA reserves it for all threads that the device can run at once.
    ///
    /// # Errors
    /// `Memory` when there is not even room for the least; `Device`. The context must be current.
    pub fn reserve_stack(&self, wanted: u64, least: u64) -> Result<u64> {
        let _alone = self.stack.lock();
        let limit = sys::CUlimit_enum::CU_LIMIT_STACK_SIZE;
        let mut now = 0;
        // SAFETY: the out-pointer is to a live local, and a context is current.
        self.check("cuCtxGetLimit", unsafe { sys::cuCtxGetLimit(&raw mut now, limit) })?;
        let now = now as u64;
        if now >= wanted {
            return Ok(now);
        }
        // Freed memory of earlier launches is in nobody's way, and other processes are to find some, too.
        self.trim()?;
        let facts = &self.facts;
        let threads = facts.threads();
        // a quarter of what is free, of which stacks that are reserved already are a part
        let mut bytes = wanted.min(now.max((now + self.free_memory() / threads) / 4)).max(least);
        while bytes > now {
            // SAFETY: a context is current.
            let status = unsafe { sys::cuCtxSetLimit(limit, usize::try_from(bytes).unwrap_or(usize::MAX)) };
            if status != CUresult::CUDA_ERROR_OUT_OF_MEMORY {
                return self.check("cuCtxSetLimit", status).map(|()| bytes);
            }
            if bytes == least {
                return Err(Error::Memory {
                    what: format!("reserving stacks on {} for methods that call themselves", facts.name),
                    wanted: least * threads,
                    free: self.free_memory(),
                    advice: "end what else uses the GPU, write the method as a loop, or use backend: :cpu",
                });
            }
            bytes = (bytes / 2).max(least);
        }
        Ok(now)
    }
}

/// Has something done when the process ends, before the driver does what it registered when it was opened.
pub fn before_the_end(what: extern "C" fn()) {
    // SAFETY: a function without arguments, of a library that is never closed.
    let _ = unsafe { libc::atexit(what) };
}

/// An order of work on the device.
pub struct Stream {
    pub raw: sys::CUstream,
    device: Arc<Device>,
}

// SAFETY: stream handles may be used by any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// # Errors
    /// `Device`. The context must be current.
    pub fn new(device: &Arc<Device>) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a context is current, and the out-pointer is to a live local.
        device.check("cuStreamCreate", unsafe { sys::cuStreamCreate(&raw mut raw, flags) })?;
        Ok(Self { raw, device: device.clone() })
    }

    /// Waits until everything queued is done.
    ///
    /// # Errors
    /// `Device`, also for what failed on the device since.
    pub fn finish(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        self.device.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.device.is_ours() {
            // SAFETY: the stream is alive and not used afterwards; CUDA finishes what is queued first.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// A point in a stream.
pub struct Event {
    raw: sys::CUevent,
    device: Arc<Device>,
}

// SAFETY: event handles may be used by any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// # Errors
    /// `Device`. The context must be current.
    pub fn new(device: &Arc<Device>) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: a context is current, and the out-pointer is to a live local.
        device.check("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut raw, 0) })?;
        Ok(Self { raw, device: device.clone() })
    }

    /// A point that is only waited for, which costs less.
    ///
    /// # Errors
    /// `Device`. The context must be current.
    pub fn without_time(device: &Arc<Device>) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        let flags = sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: as in `new`.
        device.check("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut raw, flags) })?;
        Ok(Self { raw, device: device.clone() })
    }

    /// # Errors
    /// `Device`.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both are alive.
        self.device.check("cuEventRecord", unsafe { sys::cuEventRecord(self.raw, stream.raw) })
    }

    /// Whether the stream has passed it.
    ///
    /// # Errors
    /// `Device`, also for what failed on the device before it.
    pub fn is_past(&self) -> Result<bool> {
        self.device.ours()?;
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => self.device.check("running a kernel", status).map(|()| true),
        }
    }

    /// Blocks until the stream has passed it.
    ///
    /// # Errors
    /// As [`Event::is_past`].
    pub fn wait(&self) -> Result<()> {
        self.device.ours()?;
        // SAFETY: the event is alive.
        self.device.check("running a kernel", unsafe { sys::cuEventSynchronize(self.raw) })
    }

    /// Time on the device between two points that were passed.
    pub fn since(&self, earlier: &Event) -> Duration {
        type Elapsed = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> CUresult;
        static ELAPSED: OnceCell<Option<Elapsed>> = OnceCell::new();
        // The name without a version is the one that every driver has; cudarc knows only the newest.
        // SAFETY: libcuda is open, and this is the function's prototype in cuda.h.
        let elapsed =
            ELAPSED.get_or_init(|| unsafe { sys::culib().get::<Elapsed>(b"cuEventElapsedTime\0") }.ok().map(|f| *f));
        let mut milliseconds = 0.0;
        if let Some(elapsed) = elapsed {
            // SAFETY: both events are alive, and the out-pointer is to a live local.
            let _ = unsafe { elapsed(&raw mut milliseconds, earlier.raw, self.raw) };
        }
        Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.device.is_ours() {
            // SAFETY: the event is alive and not used afterwards; CUDA keeps what a stream has yet to pass.
            let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}

/// What the device says of a loaded kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFacts {
    pub registers: u32,
    /// Bytes of each thread's local memory: spilled registers and stack.
    pub local: u32,
    pub shared: u32,
    pub max_threads: u32,
}

/// Code on the device, with its kernel.
pub struct Module {
    raw: sys::CUmodule,
    kernel: sys::CUfunction,
    pub facts: KernelFacts,
    device: Arc<Device>,
}

// SAFETY: module and function handles may be used by any thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads a cubin, or zero-terminated PTX.
    ///
    /// # Errors
    /// `Device`. The context must be current.
    pub fn load(device: &Arc<Device>, code: &[u8], kernel: &str) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        let (none, no_values) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: a context is current; `code` is a whole image made by NVRTC, read during the call only; the
        // out-pointer is to a live local.
        let loaded = unsafe { sys::cuModuleLoadDataEx(&raw mut raw, code.as_ptr().cast(), 0, none, no_values) };
        device.check("cuModuleLoadDataEx", loaded)?;
        let mut module =
            Self { raw, kernel: std::ptr::null_mut(), facts: KernelFacts::default(), device: device.clone() };
        let name = CString::new(kernel).unwrap_or_default();
        // SAFETY: the module is alive, the name is zero-terminated, and the out-pointer is to a live field.
        let found = unsafe { sys::cuModuleGetFunction(&raw mut module.kernel, raw, name.as_ptr()) };
        device.check("cuModuleGetFunction", found)?;
        use sys::CUfunction_attribute_enum as Attribute;
        let attribute = |which| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the function is alive with its module, and the out-pointer is to a live local.
            device.check("cuFuncGetAttribute", unsafe {
                sys::cuFuncGetAttribute(&raw mut value, which, module.kernel)
            })?;
            Ok(value.unsigned_abs())
        };
        module.facts = KernelFacts {
            registers: attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local: attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            shared: attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            max_threads: attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        };
        Ok(module)
    }

    /// Blocks of this size that one multiprocessor runs at once.
    pub fn blocks_per_multiprocessor(&self, block: u32) -> u32 {
        let mut blocks = 0;
        // SAFETY: the function is alive, and the out-pointer is to a live local.
        let got = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, self.kernel, block.cast_signed(), 0)
        };
        if got == CUresult::CUDA_SUCCESS { blocks.unsigned_abs() } else { 0 }
    }

    /// Queues one run of the kernel; `args` are the words of its only parameter.
    ///
    /// # Errors
    /// `Memory` where the driver finds none for what threads spill; `Device`. The context must be current.
    pub fn launch(&self, stream: &Stream, grid: u32, block: u32, args: &mut [u64]) -> Result<()> {
        let mut params = [args.as_mut_ptr().cast::<c_void>()];
        // SAFETY: function and stream are alive. The kernel has one parameter, whose words CUDA copies before the call
        // returns. What the words point to is the caller's to keep until the stream has passed this launch.
        let status = unsafe {
            let none = std::ptr::null_mut();
            sys::cuLaunchKernel(self.kernel, grid, 1, 1, block, 1, 1, 0, stream.raw, params.as_mut_ptr(), none)
        };
        if status == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            let facts = &self.device.facts;
            return Err(Error::Memory {
                what: format!("making room on {} for what threads spill", facts.name),
                wanted: u64::from(self.facts.local) * facts.threads(),
                free: self.device.free_memory(),
                advice: "end what else uses the GPU, or use backend: :cpu",
            });
        }
        self.device.check("cuLaunchKernel", status)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // Anybody may drop a kernel, on a thread where no context is current.
        if self.device.is_ours() && self.device.enter().is_ok() {
            // SAFETY: the module is alive and not used afterwards; launches keep it until they are done.
            let _ = unsafe { sys::cuModuleUnload(self.raw) };
        }
    }
}
