//! This library's allocator: the system's, with a reserve for when the system has no memory.
//!
//! Here: [`Reserving`], and [`check`]. Not here: memory that grows with the data, whose allocation may fail
//! ([`ikra_core::memory::room`]).
//!
//! Rust ends the process where an allocation fails that was not expected to. Libraries expect no failure, and neither
//! does the compiler. So where the system fails, memory comes from a range of addresses that was reserved when the
//! library was loaded. The reserve is enough to finish running work, or to reach a point that can refuse. Nothing new
//! begins while much of the reserve is in use.
#![allow(unsafe_code, reason = "an allocator")]

use ikra_core::memory::room;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bytes of the reserve. Only pages that were ever used take memory.
const BYTES: usize = 32 << 20;
/// The least alignment of allocations from the reserve, in bytes.
const UNIT: usize = 16;
/// The largest alignment, a page. Vectors and cache lines need more than [`UNIT`].
const MAX_ALIGNMENT: usize = 4096;

/// The reserve of this process.
struct Reserve {
    /// Its address. 0: there is none.
    start: AtomicUsize,
    /// How many allocations it has, in the upper half, and how many units were given, in the lower half. Memory that is
    /// given back is free once all is given back.
    used: AtomicU64,
}

static RESERVE: Reserve = Reserve { start: AtomicUsize::new(0), used: AtomicU64::new(0) };

/// The allocator.
pub struct Reserving;

/// Reserves the addresses. Without them allocations fail as they would without a reserve.
pub fn init() {
    // SAFETY: new private pages wherever there is room. Nothing that exists is touched.
    let start = unsafe {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
        libc::mmap(null_mut(), BYTES, access, kind, -1, 0)
    };
    if start != libc::MAP_FAILED {
        RESERVE.start.store(start as usize, Relaxed);
    }
}

/// Unwinds as where memory ran out, if much of the reserve is in use.
pub fn check() {
    if given(RESERVE.used.load(Relaxed)) > BYTES / 4 {
        room::give_back();
        if given(RESERVE.used.load(Relaxed)) > BYTES / 4 {
            room::refuse_all();
        }
    }
}

fn given(state: u64) -> usize {
    state as u32 as usize * UNIT
}

fn has(address: usize) -> bool {
    address.wrapping_sub(RESERVE.start.load(Relaxed)) < BYTES && RESERVE.start.load(Relaxed) != 0
}

/// Memory of the reserve. Null where it has too little, or where the allocation may fail.
#[cold]
fn take(layout: Layout) -> *mut u8 {
    let start = RESERVE.start.load(Relaxed);
    // the next free unit may lie up to so many bytes before an aligned address
    let before_aligned = layout.align().saturating_sub(UNIT);
    let units = layout.size().saturating_add(before_aligned).div_ceil(UNIT).max(1);
    if start == 0 || units > BYTES / UNIT || layout.align() > MAX_ALIGNMENT || room::is_tried() {
        return null_mut();
    }
    let more = |state: u64| {
        let next = given(state) / UNIT + units;
        (next <= BYTES / UNIT).then_some(((state >> 32) + 1) << 32 | next as u64)
    };
    match RESERVE.used.fetch_update(Relaxed, Relaxed, more) {
        Ok(before) => {
            let address = (start + given(before)).next_multiple_of(layout.align());
            std::ptr::with_exposed_provenance_mut(address)
        }
        Err(_) => null_mut(),
    }
}

#[cold]
fn give() {
    let less = |state: u64| Some(if state >> 32 == 1 { 0 } else { state - (1 << 32) });
    let _ = RESERVE.used.fetch_update(Relaxed, Relaxed, less);
}

// SAFETY: the system frees and resizes what the system gave. A part of the reserve belongs to one allocation at a time.
// It begins after all parts that were given since the reserve was last empty, and ends within the reserve. It begins at
// a multiple of its alignment, which is at most a page: for that, it was given more units. Nothing unwinds.
unsafe impl GlobalAlloc for Reserving {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        let found = unsafe { System.alloc(layout) };
        if found.is_null() { take(layout) } else { found }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller says.
        let mut found = unsafe { System.alloc_zeroed(layout) };
        if found.is_null() {
            found = take(layout);
            if !found.is_null() {
                // SAFETY: so many bytes were just given.
                unsafe { found.write_bytes(0, layout.size()) };
            }
        }
        found
    }

    #[inline]
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        if has(address as usize) {
            return give();
        }
        // SAFETY: the system gave it, with this layout.
        unsafe { System.dealloc(address, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, address: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !has(address as usize) {
            // SAFETY: the system gave it. The rest is as the caller says.
            let found = unsafe { System.realloc(address, layout, size) };
            if !found.is_null() {
                return found;
            }
        }
        // SAFETY: the caller's size is not too large for the alignment, which is that of a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // Memory of the reserve moves to the system where that is possible.
        // SAFETY: as the caller says.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both have so many bytes, and do not overlap. The old part is the caller's to give back.
            unsafe {
                moved.copy_from_nonoverlapping(address, layout.size().min(size));
                self.dealloc(address, layout);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_reserve_are_apart_and_all_is_free_when_none_is_had() {
        init();
        let layout = |bytes| Layout::from_size_align(bytes, 8).expect("a layout");
        let (a, b) = (take(layout(100)), take(layout(5000)));
        assert!(
            has(a as usize) && has(b as usize) && (b as usize - a as usize) == 112 && (a as usize).is_multiple_of(UNIT)
        );
        let aligned = |bytes, to| Layout::from_size_align(bytes, to).expect("a layout");
        assert!(take(layout(BYTES)).is_null() && take(aligned(8, 2 * MAX_ALIGNMENT)).is_null());
        let (c, d) = (take(aligned(100, 64)), take(aligned(5000, MAX_ALIGNMENT)));
        assert!((c as usize).is_multiple_of(64) && (d as usize).is_multiple_of(MAX_ALIGNMENT));
        assert!(c as usize >= b as usize + 5000 && d as usize >= c as usize + 100 && has(d as usize + 4999));
        // SAFETY: these parts are allocated, and given back once.
        unsafe {
            a.write_bytes(7, 100);
            let moved = Reserving.realloc(a, layout(100), 200);
            assert!(!has(moved as usize) && std::slice::from_raw_parts(moved, 100) == [7; 100]);
            Reserving.dealloc(moved, layout(200));
            assert!(given(RESERVE.used.load(Relaxed)) > 5000);
            Reserving.dealloc(b, layout(5000));
            Reserving.dealloc(c, aligned(100, 64));
            Reserving.dealloc(d, aligned(5000, MAX_ALIGNMENT));
        }
        assert_eq!(RESERVE.used.load(Relaxed), 0);
    }
}
