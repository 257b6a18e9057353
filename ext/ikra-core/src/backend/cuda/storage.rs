//! Device memory, and copies between it and the host.
//!
//! Here:
//! - [`Arena`]: one stream-ordered allocation with all columns of a launch.
//! - [`Block`]: an allocation that outlives launches.
//! - [`Staging`]: page-locked host memory through which columns are copied in chunks. Several threads copy while
//!   earlier chunks are transferred.
//! - [`HostLocker`]: page-locks columns, which are then copied without staging; [`Held`]: such columns during a copy.
//!
//! Not here: what the bytes mean, and which columns are page-locked ([`crate::memory::pool`]).
//!
//! Invariant: the host accesses a staging slot only after the stream has passed the event behind its last queued copy.
#![allow(unsafe_code, reason = "device and page-locked memory, and copies between them")]

use super::driver::{Device, Event, Stream};
use crate::error::{Error, Result};
use crate::memory::column::HostColumn;
use crate::memory::pool::{Locked, Locker};
use cudarc::driver::sys::{self, CUresult};
use rayon::prelude::*;
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Offsets in an arena are multiples of this, so that each column is aligned as `cuMemAlloc` would align it.
pub const ALIGNMENT: usize = 256;

/// Bytes of a small staging slot. What fits one is copied to the device, and back, in a single copy.
pub const SMALL_SLOT_BYTES: usize = 256 << 10;
const LARGE_SLOT_BYTES: usize = 8 << 20;
const LARGE_SLOTS: usize = 3;
/// Bytes that a thread copies at a time.
const PIECE: usize = 512 << 10;

/// A range of device memory, and the stream that copies to and from it. Whoever makes one owns or borrows the memory.
#[derive(Clone, Copy)]
pub struct Region<'a> {
    pub address: u64,
    bytes: usize,
    stream: &'a Stream,
    device: &'a Device,
}

/// The memory of one launch. It is returned to the pool when dropped, in the order of its stream. That, and to allocate
/// it again, keeps other streams from running meanwhile. So small memory is kept for later launches, where all work on
/// it is done.
pub struct Arena<'a> {
    region: Region<'a>,
    /// Bytes that were allocated.
    room: usize,
    /// Whether an earlier launch had it, and all of its work on it is done.
    is_kept: bool,
    /// Whether all work on it is done.
    is_done: Cell<bool>,
}

/// Arenas up to this size are kept.
const MAX_KEPT_ARENA: usize = 1 << 20;

impl<'a> Deref for Arena<'a> {
    type Target = Region<'a>;
    fn deref(&self) -> &Region<'a> {
        &self.region
    }
}

/// Allocates in the order of a stream, after freeing dropped memory if there is much.
fn allocate(device: &Device, stream: &Stream, bytes: usize) -> Result<u64> {
    let limit = crate::config::memory_limit();
    device.ledger.reserve(bytes, limit).map_err(|left| Error::Memory {
        what: format!("allocating memory on {} within memory_limit: {limit}", device.facts.name),
        wanted: bytes as u64,
        free: left,
        advice: "free arrays, run fewer elements at a time, or raise memory_limit",
    })?;
    let allocated = allocate_reserved(device, stream, bytes, limit);
    if allocated.is_err() {
        device.ledger.remove(bytes);
    }
    allocated
}

fn allocate_reserved(device: &Device, stream: &Stream, bytes: usize, limit: u64) -> Result<u64> {
    let once = |all| {
        for address in device.ledger.take_dropped(all) {
            // SAFETY: this function allocated it, and its last owner waited for all work that used it before dropping
            // it.
            let _ = unsafe { sys::cuMemFreeAsync(address, stream.raw) };
        }
        let mut address = 0;
        // SAFETY: the stream is alive, and the out-pointer is to a live local.
        let status = unsafe { sys::cuMemAllocAsync(&raw mut address, bytes.max(1), stream.raw) };
        (status, address)
    };
    // memory that is held for reuse counts towards the limit, too
    let (mut status, mut address) = once(device.ledger.held() + device.ledger.kept() > limit);
    if status == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        (status, address) = once(true);
    }
    if status == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        stream.finish()?;
        device.trim()?;
        (status, address) = once(true);
    }
    if status == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        return Err(Error::Memory {
            what: format!("allocating memory on {}", device.facts.name),
            wanted: bytes as u64,
            free: device.free_memory(),
            advice: "run fewer elements at a time, or end what else uses the GPU",
        });
    }
    device.check("cuMemAllocAsync", status)?;
    Ok(address)
}

impl<'a> Arena<'a> {
    /// # Errors
    /// `Memory` when the device has too little memory even after its pool was emptied, or the limit of the process is
    /// reached; `Device`. The context must be current.
    pub fn new(device: &'a Device, stream: &'a Stream, bytes: usize) -> Result<Self> {
        let room = rounded(bytes);
        let kept = if room <= MAX_KEPT_ARENA { device.ledger.take(room) } else { None };
        let address = match kept {
            Some(address) => address,
            None => allocate(device, stream, room)?,
        };
        let (is_kept, is_done) = (kept.is_some(), Cell::new(false));
        Ok(Self { region: Region { address, bytes, stream, device }, room, is_kept, is_done })
    }

    /// Whether other streams may use it now. Memory that was allocated for this launch is there once the stream has
    /// passed this point.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// Says that the stream has passed all work on it, and that no other stream has any.
    pub fn is_done(&self) {
        self.is_done.set(true);
    }
}

impl Region<'_> {
    /// The first bytes of the region.
    pub fn first(self, bytes: usize) -> Self {
        assert!(bytes <= self.bytes, "a part is no longer than the whole");
        Self { bytes, ..self }
    }

    /// Queues that `length` bytes from `offset` are set to `byte`.
    ///
    /// # Errors
    /// `Device`.
    pub fn fill(&self, offset: usize, length: usize, byte: u8) -> Result<()> {
        assert!(offset + length <= self.bytes, "what is filled is within the memory");
        // SAFETY: the range is within a live allocation (just asserted). An arena is freed in the order of the stream.
        // The owner of a block waits for work on it before dropping it.
        unsafe { fill(self.device, self.stream, self.address + offset as u64, length, byte) }
    }

    /// Queues a copy of `length` bytes of page-locked memory to `offset`.
    fn copy_in(&self, offset: usize, from: &Pinned, length: usize) -> Result<()> {
        assert!(offset + length <= self.bytes && length <= from.bytes, "a copy stays within both memories");
        // SAFETY: both ranges are within live allocations (just asserted). The page-locked memory is not written or
        // freed before the stream has passed this copy, because its slot waits for the event behind it.
        let status = unsafe {
            sys::cuMemcpyHtoDAsync_v2(self.address + offset as u64, from.pointer.cast(), length, self.stream.raw)
        };
        self.device.check("cuMemcpyHtoDAsync", status)
    }

    /// Queues a copy of `length` bytes from `offset` to page-locked memory.
    fn copy_out(&self, offset: usize, to: &Pinned, at: usize, length: usize) -> Result<()> {
        assert!(offset + length <= self.bytes && at + length <= to.bytes, "a copy stays within both memories");
        // SAFETY: as in `copy_in`. The host reads the memory only after the event behind this copy.
        let status = unsafe {
            let pointer = to.pointer.add(at).cast();
            sys::cuMemcpyDtoHAsync_v2(pointer, self.address + offset as u64, length, self.stream.raw)
        };
        self.device.check("cuMemcpyDtoHAsync", status)
    }

    /// Copies bytes of the host to the start of the region, and blocks until they are there. Page-locked memory is
    /// copied directly; CUDA copies other memory through buffers of its own.
    ///
    /// # Errors
    /// `Device`.
    pub fn write(&self, from: &[u8]) -> Result<()> {
        assert!(from.len() <= self.bytes, "a copy stays within the memory");
        // SAFETY: the ranges are within a live allocation (just asserted) and a borrowed slice, which outlives the wait
        // below. If the wait fails, the context is lost, and so is the copy.
        let status =
            unsafe { sys::cuMemcpyHtoDAsync_v2(self.address, from.as_ptr().cast(), from.len(), self.stream.raw) };
        let queued = self.device.check("cuMemcpyHtoDAsync", status);
        let done = self.stream.finish();
        queued.and(done)
    }

    /// Copies the first bytes to the host, and blocks until they are there; as [`Region::write`].
    ///
    /// # Errors
    /// `Device`.
    pub fn read(&self, to: &mut [u8]) -> Result<()> {
        assert!(to.len() <= self.bytes, "a copy stays within the memory");
        // SAFETY: as in `write`. The slice is borrowed mutably until the wait ends.
        let status =
            unsafe { sys::cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), self.address, to.len(), self.stream.raw) };
        let queued = self.device.check("cuMemcpyDtoHAsync", status);
        let done = self.stream.finish();
        queued.and(done)
    }

    /// Queues a copy of another region of the same length.
    ///
    /// # Errors
    /// `Device`.
    pub fn copy_from(&self, other: &Region<'_>) -> Result<()> {
        assert!(self.bytes == other.bytes, "a copy is as long as what is copied");
        // SAFETY: both allocations are alive and have this length. The caller waits for the stream before either is
        // freed.
        let status = unsafe { sys::cuMemcpyDtoDAsync_v2(self.address, other.address, self.bytes, self.stream.raw) };
        self.device.check("cuMemcpyDtoDAsync", status)
    }
}

/// Queues that `length` bytes of device memory are set to `byte`.
///
/// # Errors
/// `Device`. The context must be current.
///
/// # Safety
/// The bytes are in one allocation of this device, which is not freed before the stream has passed this work.
pub unsafe fn fill(device: &Device, stream: &Stream, address: u64, length: usize, byte: u8) -> Result<()> {
    // SAFETY: the stream is alive, and so is the range, by this function's contract.
    let status = unsafe { sys::cuMemsetD8Async(address, byte, length, stream.raw) };
    device.check("cuMemsetD8Async", status)
}

impl Drop for Arena<'_> {
    fn drop(&mut self) {
        if !self.device.is_ours() {
            return;
        }
        if self.is_done.get() && self.room <= MAX_KEPT_ARENA {
            self.device.ledger.drop_later(self.address, self.room);
        } else {
            self.device.ledger.remove(self.room);
            // SAFETY: the memory is alive, and the stream frees it after all earlier work.
            let _ = unsafe { sys::cuMemFreeAsync(self.address, self.stream.raw) };
        }
    }
}

/// Rounds the size of a block. With few different sizes, memory is reused more often.
fn rounded(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(if bytes < 1 << 20 { 512 } else { 64 << 10 })
}

/// Memory that outlives launches. Dropping it, which the GC may do, calls no CUDA function.
pub struct Block {
    address: u64,
    bytes: usize,
    /// Bytes that were allocated.
    room: usize,
    device: Arc<Device>,
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes on {}", self.bytes, self.device.facts.name)
    }
}

impl Block {
    /// # Errors
    /// As [`Arena::new`]. The memory may be used after the stream has passed this point.
    pub fn new(device: &Arc<Device>, stream: &Stream, bytes: usize) -> Result<Self> {
        if let Some(block) = Self::again(device, bytes) {
            return Ok(block);
        }
        let room = rounded(bytes);
        Ok(Self { address: allocate(device, stream, room)?, bytes, room, device: device.clone() })
    }
    /// Reuses dropped memory, which can be used at once.
    pub fn again(device: &Arc<Device>, bytes: usize) -> Option<Self> {
        let room = rounded(bytes);
        Some(Self { address: device.ledger.take(room)?, bytes, room, device: device.clone() })
    }
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    pub fn address(&self) -> u64 {
        self.address
    }
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }
    /// The memory, for use on a stream.
    pub fn on<'a>(&'a self, stream: &'a Stream) -> Region<'a> {
        Region { address: self.address, bytes: self.bytes, stream, device: &self.device }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.device.is_ours() {
            self.device.ledger.drop_later(self.address, self.room);
        }
    }
}

/// Page-locked host memory.
struct Pinned {
    pointer: *mut u8,
    bytes: usize,
    device: Arc<Device>,
}

// SAFETY: the memory has one owner, and is plain bytes.
unsafe impl Send for Pinned {}

impl Pinned {
    fn new(device: &Arc<Device>, bytes: usize) -> Result<Self> {
        let mut pointer = std::ptr::null_mut();
        // SAFETY: a context is current, and the out-pointer is to a live local.
        let status = unsafe { sys::cuMemHostAlloc(&raw mut pointer, bytes, 0) };
        if status == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            let what = "allocating page-locked host memory".to_string();
            let advice = "end what else uses page-locked memory on this machine";
            return Err(Error::Memory { what, wanted: bytes as u64, free: 0, advice });
        }
        device.check("cuMemHostAlloc", status)?;
        let pointer = pointer.cast::<u8>();
        // SAFETY: the allocation has so many bytes. They are initialised here, because slices of them are made.
        unsafe { pointer.write_bytes(0, bytes) };
        Ok(Self { pointer, bytes, device: device.clone() })
    }

    /// The bytes. No queued copy may use them.
    fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is alive, initialised, and `bytes` long. The device does not write it meanwhile, by the
        // module's invariant: callers have waited for the event behind the last copy.
        unsafe { std::slice::from_raw_parts(self.pointer, self.bytes) }
    }

    /// A range of the bytes. No queued copy may use that range.
    fn part(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.bytes, "the range is within the memory");
        // SAFETY: as in `bytes`, for a range of them (just asserted).
        unsafe { std::slice::from_raw_parts(self.pointer.add(range.start), range.len()) }
    }

    /// As [`Pinned::bytes`], to write.
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.device.is_ours() {
            // SAFETY: the memory is alive and not used afterwards. CUDA waits for copies that still use it.
            let _ = unsafe { sys::cuMemFreeHost(self.pointer.cast()) };
        }
    }
}

/// Page-locks memory of other owners, once the device is in use.
pub struct HostLocker(pub Arc<Device>);

impl Locker for HostLocker {
    fn lock(&self, memory: NonNull<u8>, bytes: usize) -> bool {
        if !self.0.is_entered() || self.0.enter().is_err() {
            return false;
        }
        // SAFETY: the pool keeps the memory mapped until it is unlocked. CUDA does not change its contents.
        let status =
            unsafe { sys::cuMemHostRegister_v2(memory.as_ptr().cast(), bytes, sys::CU_MEMHOSTREGISTER_PORTABLE) };
        self.0.check("cuMemHostRegister", status).is_ok()
    }
    fn unlock(&self, memory: NonNull<u8>) -> bool {
        if self.0.enter().is_err() {
            return false;
        }
        // SAFETY: `lock` page-locked it. No copy uses it, because the pool holds the lock that copies hold.
        let status = unsafe { sys::cuMemHostUnregister(memory.as_ptr().cast()) };
        self.0.check("cuMemHostUnregister", status).is_ok()
    }
}

/// Page-locked columns that a stream copies directly. Dropping this waits for the copies.
pub struct Held<'a> {
    stream: &'a Stream,
    locks: Vec<Locked<'a>>,
}

impl<'a> Held<'a> {
    pub fn new(stream: &'a Stream) -> Self {
        Self { stream, locks: Vec::new() }
    }

    /// Queues a copy of a column to `offset`. False: the column is not page-locked.
    ///
    /// # Errors
    /// `Device`.
    pub fn copy_in(&mut self, region: &Region<'_>, offset: usize, column: &'a HostColumn) -> Result<bool> {
        let Some((lock, from)) = column.locked() else { return Ok(false) };
        assert!(offset + from.len() <= region.bytes, "a copy stays within the memory");
        self.locks.push(lock);
        // SAFETY: the ranges are within live allocations (just asserted). The column is borrowed, and its memory stays
        // locked, until the stream has passed the copy.
        let status = unsafe {
            let to = region.address + offset as u64;
            sys::cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), from.len(), self.stream.raw)
        };
        region.device.check("cuMemcpyHtoDAsync", status).map(|()| true)
    }

    /// Queues a copy from `offset` to all of a column. False: the column is not page-locked.
    ///
    /// # Errors
    /// `Device`.
    pub fn copy_out(&mut self, region: &Region<'_>, offset: usize, column: &'a mut HostColumn) -> Result<bool> {
        let Some((lock, to)) = column.locked_mut() else { return Ok(false) };
        assert!(offset + to.len() <= region.bytes, "a copy stays within the memory");
        self.locks.push(lock);
        // SAFETY: as in `copy_in`. The column is borrowed mutably.
        let status = unsafe {
            let from = region.address + offset as u64;
            sys::cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), from, to.len(), self.stream.raw)
        };
        region.device.check("cuMemcpyDtoHAsync", status).map(|()| true)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.locks.is_empty() {
            // if this fails, the context is lost, and so are the copies
            let _ = self.stream.finish();
        }
    }
}

/// Page-locked host memory, divided into slots of one cache line. The host reads the words while a kernel runs, or
/// copies them to the device while a kernel runs.
pub struct PageLockedBuffer {
    memory: Pinned,
}

// SAFETY: threads share only slots. A slot that the host writes, or reads while the device may write it, is one word
// with volatile access. Other slots are read after the stream has passed an event.
unsafe impl Sync for PageLockedBuffer {}

impl PageLockedBuffer {
    /// Bytes of one slot.
    pub const SLOT_BYTES: usize = 64;

    /// # Errors
    /// `Memory`, `Device`. The context must be current.
    pub fn new(device: &Arc<Device>, slots: usize) -> Result<Self> {
        Ok(Self { memory: Pinned::new(device, slots * Self::SLOT_BYTES)? })
    }

    /// The address of a slot for kernels. Page-locked memory has one address for the host and for all devices.
    pub fn address(&self, slot: usize) -> u64 {
        assert!((slot + 1) * Self::SLOT_BYTES <= self.memory.bytes, "there is such a slot");
        self.memory.pointer as u64 + (slot * Self::SLOT_BYTES) as u64
    }

    /// Holds the stream at this place until the returned gate is dropped. None: the device does not support that.
    /// `slot` must serve nothing else.
    pub fn hold(&self, slot: usize, stream: &Stream) -> Option<Gate<'_>> {
        let address = self.address(slot);
        // SAFETY: the slot is within the allocation, aligned, and nothing else writes it: the host's last hold of it
        // has ended.
        unsafe { (address as *mut u32).write_volatile(0) };
        fence(Ordering::SeqCst);
        let flags = sys::CUstreamWaitValue_flags_enum::CU_STREAM_WAIT_VALUE_GEQ as u32;
        // SAFETY: the stream is alive. The word is page-locked memory, which has one address for the host and for all
        // devices. It lives as long as the lane that owns the stream.
        let status = unsafe { sys::cuStreamWaitValue32_v2(stream.raw, address, 1, flags) };
        (status == CUresult::CUDA_SUCCESS).then_some(Gate { buffer: self, slot })
    }

    /// Queues a write of a number to a slot, after all earlier writes of the stream. Returns whether the device
    /// supports that. `slot` must serve nothing else.
    pub fn signal(&self, slot: usize, number: u32, stream: &Stream) -> bool {
        let flags = sys::CUstreamWriteValue_flags_enum::CU_STREAM_WRITE_VALUE_DEFAULT as u32;
        // SAFETY: the stream is alive, and the word is as in `hold`. CUDA waits for queued writes before the memory is
        // freed.
        let status = unsafe { sys::cuStreamWriteValue32_v2(stream.raw, self.address(slot), number, flags) };
        status == CUresult::CUDA_SUCCESS
    }

    /// Whether the stream has written this number to a slot, or a later one. Numbers wrap around after 2³², and fewer
    /// than half as many are pending at a time.
    pub fn has_come(&self, slot: usize, number: u32) -> bool {
        is_at(self.signalled(slot), number)
    }

    /// The number that the stream wrote last; 0: none yet.
    fn signalled(&self, slot: usize) -> u32 {
        // SAFETY: the slot is within the allocation, and aligned. Only the device writes it, a whole word at a time.
        let word = unsafe { (self.address(slot) as *const u32).read_volatile() };
        fence(Ordering::Acquire);
        word
    }

    /// Queues a copy of [`Self::SLOT_BYTES`] bytes of device memory to a slot.
    ///
    /// # Errors
    /// `Device`.
    pub fn fetch(&self, slot: usize, region: &Region<'_>, offset: usize) -> Result<()> {
        region.copy_out(offset, &self.memory, slot * Self::SLOT_BYTES, Self::SLOT_BYTES)
    }

    /// The contents of a slot after [`Self::fetch`]. The stream must have passed an event behind the copy.
    pub fn read(&self, slot: usize) -> [u8; Self::SLOT_BYTES] {
        let at = slot * Self::SLOT_BYTES;
        let mut copy = [0; Self::SLOT_BYTES];
        copy.copy_from_slice(self.memory.part(at..at + Self::SLOT_BYTES));
        copy
    }

    /// Queues a copy of 8 zero bytes to a word of the arena, on a stream of its own. The copy engine does that even
    /// while a kernel keeps all multiprocessors busy. `slot` must never be the target of a fetch.
    ///
    /// # Errors
    /// `Device`.
    pub fn send_zero(&self, slot: usize, region: &Region<'_>, offset: usize, stream: &Stream) -> Result<()> {
        assert!(
            offset + 8 <= region.bytes && (slot + 1) * Self::SLOT_BYTES <= self.memory.bytes,
            "the word is in both"
        );
        // SAFETY: both ranges are within live allocations (just asserted). The slot is zero from the start, and nothing
        // writes it. Kernels access the word by volatile reads and atomics only.
        let status = unsafe {
            let zero = self.memory.pointer.add(slot * Self::SLOT_BYTES).cast();
            sys::cuMemcpyHtoDAsync_v2(region.address + offset as u64, zero, 8, stream.raw)
        };
        region.device.check("cuMemcpyHtoDAsync", status)
    }
}

fn is_at(written: u32, number: u32) -> bool {
    (written.wrapping_sub(number) as i32) >= 0
}

/// A held stream. Dropping the gate lets it continue, also after an error.
pub struct Gate<'a> {
    buffer: &'a PageLockedBuffer,
    slot: usize,
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        fence(Ordering::SeqCst);
        // SAFETY: as in `PageLockedBuffer::hold`. The device only reads the word.
        unsafe { (self.buffer.address(self.slot) as *mut u32).write_volatile(1) };
    }
}

/// Page-locked memory through which data are copied to or from the device.
struct Slot {
    memory: Pinned,
    /// The event behind the last queued copy.
    behind: Event,
    /// Whether the event is recorded only where somebody waits for it. Then it is behind all work that was queued by
    /// that time, and most launches need none.
    late: bool,
    queued: bool,
}

impl Slot {
    fn new(device: &Arc<Device>, bytes: usize, late: bool) -> Result<Self> {
        let (memory, behind) = (Pinned::new(device, bytes)?, Event::without_time(device)?);
        Ok(Self { memory, behind, late, queued: false })
    }
    /// Waits until the host may access the memory. `stream`: that of the copies.
    fn settle(&mut self, stream: &Stream) -> Result<()> {
        if !std::mem::take(&mut self.queued) {
            return Ok(());
        }
        if self.late {
            self.behind.record(stream)?;
        }
        self.behind.wait()
    }
    fn queued(&mut self, stream: &Stream) -> Result<()> {
        self.queued = true;
        if self.late { Ok(()) } else { self.behind.record(stream) }
    }
}

/// The slots of one lane. Large ones are allocated when a launch first needs them.
pub struct Staging {
    device: Arc<Device>,
    small_slot: Slot,
    large_slots: Vec<Slot>,
    copiers: Arc<rayon::ThreadPool>,
}

/// A download that is under way.
#[must_use]
pub struct Download {
    left: Range<usize>,
    /// Slots, and the range that is being copied into each, oldest first.
    under_way: VecDeque<(usize, Range<usize>)>,
}

impl Staging {
    /// # Errors
    /// `Memory`, `Device`. The context must be current.
    pub fn new(device: &Arc<Device>, copiers: Arc<rayon::ThreadPool>) -> Result<Self> {
        Ok(Self {
            device: device.clone(),
            small_slot: Slot::new(device, SMALL_SLOT_BYTES, true)?,
            large_slots: Vec::new(),
            copiers,
        })
    }

    /// Frees the large slots. No copy may be under way.
    pub fn shrink(&mut self) {
        self.large_slots.clear();
    }

    /// Says that the stream has passed all copies of the small slot.
    pub fn is_passed(&mut self) {
        self.small_slot.queued = false;
    }

    /// Slots for a transfer of `bytes`.
    fn slots(&mut self, bytes: usize) -> Result<&mut [Slot]> {
        if bytes <= SMALL_SLOT_BYTES {
            return Ok(std::slice::from_mut(&mut self.small_slot));
        }
        while self.large_slots.len() < LARGE_SLOTS {
            self.large_slots.push(Slot::new(&self.device, LARGE_SLOT_BYTES, false)?);
        }
        Ok(&mut self.large_slots)
    }

    /// Queues copies of `parts`, at ascending offsets, to the device. Bytes between the parts are undefined there.
    ///
    /// # Errors
    /// `Memory`, `Device`.
    pub fn upload(&mut self, region: &Region<'_>, parts: &[(usize, &[u8])]) -> Result<()> {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(()) };
        let mut left = first.0..last.0 + last.1.len();
        let copiers = self.copiers.clone();
        let slots = self.slots(left.len())?;
        for turn in 0.. {
            if left.is_empty() {
                break;
            }
            let slot = &mut slots[turn % slots.len()];
            slot.settle(region.stream)?;
            let chunk = left.start..left.end.min(left.start + slot.memory.bytes);
            let mut copies = Vec::new();
            let mut memory = slot.memory.bytes_mut();
            let mut at = chunk.start;
            for (offset, bytes) in overlapping(parts.iter().map(|(o, b)| *o..o + b.len()), &chunk) {
                let source = &parts[offset].1[bytes.start - parts[offset].0..bytes.end - parts[offset].0];
                let (_, rest) = memory.split_at_mut(bytes.start - at);
                let (own, rest) = rest.split_at_mut(bytes.len());
                (memory, at) = (rest, bytes.end);
                copies.push((own, source));
            }
            copy_all(&copiers, copies);
            region.copy_in(chunk.start, &slot.memory, chunk.len())?;
            slot.queued(region.stream)?;
            left.start = chunk.end;
        }
        Ok(())
    }

    /// Queues copies of the first chunks of a range of the memory, as many as there are slots.
    ///
    /// # Errors
    /// `Memory`, `Device`.
    pub fn begin_download(&mut self, region: &Region<'_>, range: Range<usize>) -> Result<Download> {
        let mut download = Download { left: range, under_way: VecDeque::new() };
        let slots = self.slots(download.left.len())?;
        for slot in 0..slots.len() {
            download.queue(slots, slot, region)?;
        }
        Ok(download)
    }

    /// Waits for the copies, and distributes the bytes over `parts`, at ascending offsets.
    ///
    /// # Errors
    /// `Device`.
    pub fn finish_download(
        &mut self,
        region: &Region<'_>,
        mut download: Download,
        parts: &mut [(usize, &mut [u8])],
    ) -> Result<()> {
        let copiers = self.copiers.clone();
        let total = download.left.end - download.under_way.front().map_or(download.left.start, |(_, r)| r.start);
        let slots = self.slots(total)?;
        while let Some((slot, chunk)) = download.under_way.pop_front() {
            slots[slot].settle(region.stream)?;
            let memory = slots[slot].memory.bytes();
            let mut copies = Vec::new();
            for (offset, bytes) in parts.iter_mut() {
                let range = chunk.start.max(*offset)..chunk.end.min(*offset + bytes.len());
                if !range.is_empty() {
                    let own = &mut bytes[range.start - *offset..range.end - *offset];
                    copies.push((own, &memory[range.start - chunk.start..range.end - chunk.start]));
                }
            }
            copy_all(&copiers, copies);
            download.queue(slots, slot, region)?;
        }
        Ok(())
    }
}

impl Download {
    fn queue(&mut self, slots: &mut [Slot], slot: usize, region: &Region<'_>) -> Result<()> {
        if self.left.is_empty() {
            return Ok(());
        }
        let chunk = self.left.start..self.left.end.min(self.left.start + slots[slot].memory.bytes);
        self.left.start = chunk.end;
        region.copy_out(chunk.start, &slots[slot].memory, 0, chunk.len())?;
        slots[slot].queued(region.stream)?;
        self.under_way.push_back((slot, chunk));
        Ok(())
    }
}

/// The non-empty intersections of ascending ranges with `chunk`, each with the index of its range.
fn overlapping(
    ranges: impl Iterator<Item = Range<usize>>,
    chunk: &Range<usize>,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    ranges.enumerate().map(|(i, r)| (i, r.start.max(chunk.start)..r.end.min(chunk.end))).filter(|(_, r)| !r.is_empty())
}

fn copy_all(copiers: &rayon::ThreadPool, copies: Vec<(&mut [u8], &[u8])>) {
    if copies.iter().map(|(to, _)| to.len()).sum::<usize>() <= PIECE {
        copies.into_iter().for_each(|(to, from)| to.copy_from_slice(from));
        return;
    }
    let pieces: Vec<_> =
        copies.into_iter().flat_map(|(to, from)| to.chunks_mut(PIECE).zip(from.chunks(PIECE))).collect();
    copiers.install(|| pieces.into_par_iter().for_each(|(to, from)| to.copy_from_slice(from)));
}

#[cfg(test)]
mod tests {
    use super::is_at;

    #[test]
    fn a_number_comes_by_itself_and_by_those_after_it_also_around_the_end() {
        assert!(is_at(5, 5) && is_at(6, 5) && !is_at(4, 5) && !is_at(0, 1));
        assert!(is_at(0, u32::MAX) && is_at(3, u32::MAX - 1) && !is_at(u32::MAX, 2));
    }
}
