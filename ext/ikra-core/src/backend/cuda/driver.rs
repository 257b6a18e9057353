//! The CUDA driver: opens it, one device and its context, and has the handles that launches use.
//!
//! Here: each raw handle has an owner type, and each call's error names the CUDA function that failed. Not here: memory
//! ([`super::storage`]) and launches ([`super::launch`]).
//!
//! This module opens the library itself before cudarc does. So a missing or broken library is an error, where cudarc
//! would panic.
//!
//! **After a fork** no inherited handle is used or freed: each owner remembers the process that made its handle.
//!
//! **After a fault** (an illegal address, for example) CUDA refuses all calls for the rest of the process. The first
//! such error is kept, and all later errors name it.
#![allow(unsafe_code, reason = "calls into libcuda")]

use crate::backend::resources::Machine;
use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUresult};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The oldest driver (by its CUDA version) that has all functions that are called here.
const OLDEST_DRIVER: i32 = 12_000;

/// All functions that are called here, in [`super::graph`] and in [`super::storage`]. At the first call of a missing
/// one, cudarc panics.
const NEEDED: &str = "cuInit cuDriverGetVersion cuGetErrorName cuGetErrorString cuDeviceGet cuDeviceGetCount \
    cuDeviceGetName cuDeviceGetAttribute cuDeviceTotalMem_v2 cuDevicePrimaryCtxRetain cuCtxSetCurrent cuCtxGetLimit \
    cuCtxSetLimit cuDeviceGetDefaultMemPool cuMemPoolSetAttribute cuMemPoolTrimTo cuMemGetInfo_v2 cuMemAllocAsync \
    cuMemFreeAsync cuMemHostAlloc cuMemFreeHost cuMemHostRegister_v2 cuMemHostUnregister cuMemcpyHtoDAsync_v2 \
    cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemsetD8Async cuStreamCreate \
    cuStreamSynchronize cuStreamWaitValue32_v2 cuStreamWriteValue32_v2 cuStreamDestroy_v2 cuEventCreate cuEventRecord cuEventQuery cuEventSynchronize \
    cuEventDestroy_v2 cuModuleLoadDataEx cuModuleGetFunction cuModuleUnload cuFuncGetAttribute \
    cuOccupancyMaxActiveBlocksPerMultiprocessor cuLaunchKernel \
    cuGraphCreate cuGraphAddKernelNode_v2 cuGraphInstantiateWithFlags cuGraphExecKernelNodeSetParams_v2 cuGraphLaunch \
    cuGraphExecDestroy cuGraphDestroy";

/// Facts about the device that need no context.
#[derive(Clone, Debug)]
pub struct Facts {
    pub name: String,
    /// The compute capability, such as 90.
    pub capability: u32,
    pub warp: u32,
    pub multiprocessors: u32,
    pub threads_per_multiprocessor: u32,
    pub memory: u64,
    /// The CUDA version of the driver, such as 13000.
    pub driver: i32,
    /// What a multiprocessor has.
    pub machine: Machine,
}

impl Facts {
    /// How many threads the device can run at once.
    pub fn threads(&self) -> u64 {
        u64::from(self.multiprocessors.max(1)) * u64::from(self.threads_per_multiprocessor.max(1))
    }
}

/// One device, and its context, which is made when it is first needed.
pub struct Device {
    pub facts: Facts,
    handle: sys::CUdevice,
    context: OnceCell<Context>,
    process: u32,
    fault: OnceCell<String>,
    /// Guards reading and raising the stack size.
    stack: Mutex<()>,
    pub ledger: Ledger,
}

/// Accounts for the device memory of this process: what is in use, and what was dropped and waits for reuse.
#[derive(Default)]
pub struct Ledger {
    held: AtomicU64,
    dropped: Mutex<Dropped>,
}

/// Memory that is not used any more. Dropping it, which the GC may do, only records it here. The next allocation of the
/// same size takes it. When there is much of it, the next allocation frees it all.
#[derive(Default)]
struct Dropped {
    /// Addresses by length.
    blocks: BTreeMap<usize, Vec<u64>>,
    count: usize,
    bytes: usize,
}

/// How many dropped blocks, and bytes, are kept at most. The GC drops thousands of small blocks at a time, which the
/// loop that made them soon allocates again.
const MAX_DROPPED: usize = 65_536;
const MAX_DROPPED_BYTES: usize = 4 << 30;

impl Ledger {
    /// Bytes that are allocated and were not dropped.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }
    /// Counts an allocation before it is made.
    ///
    /// # Errors
    /// How many bytes are left within the limit, if that is less than `bytes`.
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
    /// Takes dropped memory of exactly this length, for reuse.
    pub fn take(&self, bytes: usize) -> Option<u64> {
        let mut dropped = self.dropped.lock();
        let address = dropped.blocks.get_mut(&bytes)?.pop()?;
        dropped.count -= 1;
        dropped.bytes -= bytes;
        self.held.fetch_add(bytes as u64, Ordering::Relaxed);
        Some(address)
    }
    /// Takes all dropped memory, to be freed, if there is much of it or `all` is true.
    pub fn take_dropped(&self, all: bool) -> Vec<u64> {
        let mut dropped = self.dropped.lock();
        if !all && dropped.count < MAX_DROPPED && dropped.bytes < MAX_DROPPED_BYTES {
            return Vec::new();
        }
        std::mem::take(&mut *dropped).blocks.into_values().flatten().collect()
    }
    /// Bytes of dropped memory.
    pub fn kept(&self) -> u64 {
        self.dropped.lock().bytes as u64
    }
}

struct Context(sys::CUcontext);

// SAFETY: any thread may use a context handle, and it is made current before each use. The primary context lives as
// long as the process.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// Turns a CUDA status into a result whose error names the call.
fn answer(what: &str, status: CUresult) -> Result<()> {
    if status == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let (mut name, mut text) = (std::ptr::null(), std::ptr::null());
    // SAFETY: the library is open, because a status came from it. Both functions accept any status, and set a static
    // string or null.
    let words = unsafe {
        sys::cuGetErrorName(status, &raw mut name);
        sys::cuGetErrorString(status, &raw mut text);
        [name, text].map(|p| if p.is_null() { String::new() } else { CStr::from_ptr(p).to_string_lossy().into_owned() })
    };
    let [name, text] = words;
    Err(Error::Device { what: what.to_string(), cause: format!("{text} ({name})") })
}

/// Milliseconds between attempts to get memory that other processes use.
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

/// Opens libcuda, once per process.
fn load() -> Result<()> {
    static LOADED: OnceCell<()> = OnceCell::new();
    LOADED
        .get_or_try_init(|| {
            let names = ["cuda", "nvcuda"].iter().flat_map(|n| cudarc::get_lib_name_candidates(n));
            // SAFETY: libcuda's initialisers have no preconditions. The handle is never closed.
            let found = names.into_iter().any(|n| unsafe { libloading::Library::new(n) }.map(std::mem::forget).is_ok());
            // SAFETY: the call only tries to open the library by the same names.
            if !found || !unsafe { sys::is_culib_present() } {
                return Err(no_device("libcuda, which comes with NVIDIA's driver, is not installed"));
            }
            // SAFETY: the library is open, and the symbols are only looked up.
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
    /// Opens the first device, without its context.
    ///
    /// # Errors
    /// `Device`: there is no driver or no GPU, or the driver is too old or does not work.
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
        // SAFETY: as above. The buffer has the length that is passed, and the call terminates the string with a zero.
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
            machine: Machine::MODEL,
        };
        let facts = Facts { machine: Machine::of_capability(facts.capability, facts.multiprocessors), ..facts };
        let process = crate::process::id();
        let known = facts.machine;
        // where the driver does not say, the documented figures hold
        let or = |which, known| attribute(which).unwrap_or(known);
        let machine = Machine {
            warp: facts.warp.max(1),
            threads: facts.threads_per_multiprocessor,
            blocks: or(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, known.blocks),
            registers: or(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, known.registers),
            shared: or(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, known.shared),
            block_threads: or(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, known.block_threads),
            block_registers: or(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, known.block_registers),
            block_shared: or(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, known.block_shared),
            reserved: or(Attribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, known.reserved),
            ..known
        };
        let facts = Facts { machine, ..facts };
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

    /// The device, for plans.
    pub fn machine(&self) -> Machine {
        self.facts.machine
    }

    /// Whether this process opened the device.
    pub fn is_ours(&self) -> bool {
        self.process == crate::process::id()
    }

    /// Whether the context exists.
    pub fn is_entered(&self) -> bool {
        self.context.get().is_some()
    }

    /// # Errors
    /// `Device` in a process that did not open the device.
    fn ours(&self) -> Result<()> {
        if self.is_ours() {
            return Ok(());
        }
        let cause = "CUDA was already in use when the process was forked; fork before the first use, or exec";
        Err(Error::Device { what: "using the GPU in a forked process".into(), cause: cause.into() })
    }

    /// Makes the context current on this thread. The first call makes the context, which takes a third of a second.
    ///
    /// # Errors
    /// `Device` after a fork, after a fault, or when CUDA fails.
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
            // SAFETY: `handle` is a device of this process, and the out-pointer is to a live local. The process keeps
            // the context until its end.
            let mut retain = || unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, self.handle) };
            let mut made = retain();
            // other processes may free memory soon
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

    /// As [`answer`], and records a fault.
    pub fn check(&self, what: &str, status: CUresult) -> Result<()> {
        let result = answer(what, status);
        if let Err(e) = &result
            && is_fault(status)
        {
            let _ = self.fault.set(e.to_string());
        }
        result
    }

    /// Records a failure of work whose caller does not get the error. All later calls fail with it.
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

    /// Keeps freed device memory in the process, for the next launch.
    fn keep_freed_memory(&self) -> Result<()> {
        let pool = self.pool()?;
        let mut threshold = u64::MAX;
        let attribute = sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool is the device's own, and this attribute is a 64-bit number.
        let set = unsafe { sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut threshold).cast()) };
        self.check("cuMemPoolSetAttribute", set)
    }

    /// Returns freed device memory to the system.
    ///
    /// # Errors
    /// `Device`. The context must be current.
    pub fn trim(&self) -> Result<()> {
        let pool = self.pool()?;
        // SAFETY: the pool is the device's own.
        self.check("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(pool, 0) })
    }

    /// Bytes that are free for new allocations. The context must be current.
    pub fn free_memory(&self) -> u64 {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the out-pointers are to live locals.
        let got = unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) };
        if got == CUresult::CUDA_SUCCESS { free as u64 } else { 0 }
    }

    /// Reserves stack for kernels that recurse. Returns the bytes per thread: `wanted`, or as much as memory allows,
    /// but at least `least`. The size is raised when needed and never lowered. CUDA reserves it for all threads that
    /// the device can run at once.
    ///
    /// # Errors
    /// `Memory` when memory does not suffice for `least`; `Device`. The context must be current.
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
        // releases the freed memory of earlier launches, for the stacks and for other processes
        self.trim()?;
        let facts = &self.facts;
        let threads = facts.threads();
        // a quarter of the free memory, in which stacks that are reserved already count as free
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

/// Registers a function for the end of the process. It runs before those that the driver registered when it was opened.
pub fn before_the_end(what: extern "C" fn()) {
    // SAFETY: the function has no arguments, and its library is never closed.
    let _ = unsafe { libc::atexit(what) };
}

/// A CUDA stream.
pub struct Stream {
    pub raw: sys::CUstream,
    device: Arc<Device>,
}

// SAFETY: any thread may use stream handles.
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

    /// Waits until all queued work is done.
    ///
    /// # Errors
    /// `Device`, also for earlier failures on the device.
    pub fn finish(&self) -> Result<()> {
        // SAFETY: the stream is alive.
        self.device.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.raw) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.device.is_ours() {
            // SAFETY: the stream is alive and not used afterwards. CUDA finishes the queued work first.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// A CUDA event: a point in a stream.
pub struct Event {
    raw: sys::CUevent,
    device: Arc<Device>,
}

// SAFETY: any thread may use event handles.
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

    /// An event that is only waited for, which is cheaper than one with a time.
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

    /// Whether the stream has passed the event.
    ///
    /// # Errors
    /// `Device`, also for earlier failures on the device.
    pub fn is_past(&self) -> Result<bool> {
        self.device.ours()?;
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(self.raw) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            status => self.device.check("running a kernel", status).map(|()| true),
        }
    }

    /// Blocks until the stream has passed the event.
    ///
    /// # Errors
    /// As [`Event::is_past`].
    pub fn wait(&self) -> Result<()> {
        self.device.ours()?;
        // SAFETY: the event is alive.
        self.device.check("running a kernel", unsafe { sys::cuEventSynchronize(self.raw) })
    }

    /// The time on the device between two events that have passed.
    pub fn since(&self, earlier: &Event) -> Duration {
        type Elapsed = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> CUresult;
        static ELAPSED: OnceCell<Option<Elapsed>> = OnceCell::new();
        // All drivers have the name without a version; cudarc knows only the newest name. SAFETY: libcuda is open, and
        // this is the function's prototype in cuda.h.
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
            // SAFETY: the event is alive and not used afterwards. CUDA keeps an event that a stream has not passed yet.
            let _ = unsafe { sys::cuEventDestroy_v2(self.raw) };
        }
    }
}

/// Facts that the driver reports about a loaded kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelFacts {
    pub registers: u32,
    /// Bytes of local memory per thread: spilled registers and stack.
    pub local: u32,
    pub shared: u32,
    pub max_threads: u32,
}

/// Code on the device, and its kernel.
pub struct Module {
    raw: sys::CUmodule,
    kernel: sys::CUfunction,
    pub facts: KernelFacts,
    device: Arc<Device>,
}

// SAFETY: any thread may use module and function handles.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads a cubin, or PTX that ends with a zero.
    ///
    /// # Errors
    /// `Device`. The context must be current.
    pub fn load(device: &Arc<Device>, code: &[u8], kernel: &str) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        let (none, no_values) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: a context is current. `code` is a complete image made by NVRTC, and is read only during the call. The
        // out-pointer is to a live local.
        let loaded = unsafe { sys::cuModuleLoadDataEx(&raw mut raw, code.as_ptr().cast(), 0, none, no_values) };
        device.check("cuModuleLoadDataEx", loaded)?;
        let mut module =
            Self { raw, kernel: std::ptr::null_mut(), facts: KernelFacts::default(), device: device.clone() };
        let name = CString::new(kernel).unwrap_or_default();
        // SAFETY: the module is alive, the name ends with a zero, and the out-pointer is to a live field.
        let found = unsafe { sys::cuModuleGetFunction(&raw mut module.kernel, raw, name.as_ptr()) };
        device.check("cuModuleGetFunction", found)?;
        use sys::CUfunction_attribute_enum as Attribute;
        let attribute = |which| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the function lives as long as its module, and the out-pointer is to a live local.
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

    /// How many blocks of this size one multiprocessor runs at once.
    pub fn blocks_per_multiprocessor(&self, block: u32) -> u32 {
        let mut blocks = 0;
        // SAFETY: the function is alive, and the out-pointer is to a live local.
        let got = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut blocks, self.kernel, block.cast_signed(), 0)
        };
        if got == CUresult::CUDA_SUCCESS { blocks.unsigned_abs() } else { 0 }
    }

    /// Queues one run of the kernel. `args` are the words of its only parameter.
    ///
    /// # Errors
    /// `Memory` when the driver has no memory for spilled registers; `Device`. The context must be current.
    pub fn launch(&self, stream: &Stream, grid: u32, block: u32, args: &mut [u64]) -> Result<()> {
        let mut params = [args.as_mut_ptr().cast::<c_void>()];
        // SAFETY: the function and the stream are alive. The kernel has one parameter, whose words CUDA copies before
        // the call returns. The caller keeps the memory to which they point until the stream has passed this launch.
        let status = unsafe {
            let none = std::ptr::null_mut();
            sys::cuLaunchKernel(self.kernel, grid, 1, 1, block, 1, 1, 0, stream.raw, params.as_mut_ptr(), none)
        };
        self.launched("cuLaunchKernel", status)
    }

    /// How a launch was answered, which runs this kernel.
    ///
    /// # Errors
    /// As [`Module::launch`].
    pub fn launched(&self, what: &str, status: CUresult) -> Result<()> {
        if status == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            let facts = &self.device.facts;
            return Err(Error::Memory {
                what: format!("making room on {} for what threads spill", facts.name),
                wanted: u64::from(self.facts.local) * facts.threads(),
                free: self.device.free_memory(),
                advice: "end what else uses the GPU, or use backend: :cpu",
            });
        }
        self.device.check(what, status)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // a kernel may be dropped on a thread where no context is current
        if self.device.is_ours() && self.device.enter().is_ok() {
            // SAFETY: the module is alive and not used afterwards. Launches hold it until they are done.
            let _ = unsafe { sys::cuModuleUnload(self.raw) };
        }
    }
}

/// Code, and the numbers of blocks and threads that run it.
pub struct Spread {
    pub module: Arc<Module>,
    pub grid: u32,
    pub block: u32,
}

impl Spread {
    /// Queues a run on the stream. `args` are the words of the kernel's only parameter.
    ///
    /// # Errors
    /// As [`Module::launch`]. The context must be current.
    pub fn launch(&self, stream: &Stream, args: &mut [u64]) -> Result<()> {
        self.module.launch(stream, self.grid, self.block, args)
    }

    /// A run as a node of a graph. `params` has the address of the kernel's parameter.
    pub fn node(&self, params: &mut [*mut c_void; 1]) -> sys::CUDA_KERNEL_NODE_PARAMS {
        sys::CUDA_KERNEL_NODE_PARAMS {
            func: self.module.kernel,
            gridDimX: self.grid,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: self.block,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: 0,
            kernelParams: params.as_mut_ptr(),
            extra: std::ptr::null_mut(),
            kern: std::ptr::null_mut(),
            ctx: std::ptr::null_mut(),
        }
    }
}
