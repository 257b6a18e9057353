//! This library's allocator: the system's, with a reserve for when that has nothing.
//!
//! Here: [`Reserving`], and [`check`]. Not here: memory that grows with the data, which is asked for so that it may be refused ([`ikra_core::memory::room`]).
//!
//! Rust ends the process where an allocation fails that was not expected to. Libraries expect none to fail, and neither does the compiler. So what cannot be had of the system comes from a stretch
//! of addresses that was had when the library was loaded: enough to end what runs, or to come to a place that can refuse. Nothing new begins while much of the reserve is in use.
#![allow(unsafe_code, reason = "an allocator")]

use ikra_core::memory::room;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bytes of the reserve. Only those that were ever used have memory.
const BYTES: usize = 32 << 20;
/// What is had begins at multiples of so many bytes.
const UNIT: usize = 16;

/// Where the reserve begins; 0: there is none.
static START: AtomicUsize = AtomicUsize::new(0);
/// How many allocations have some of it, and, in the lower half, how many units of it were given. What is given back is free when all is.
static USE: AtomicU64 = AtomicU64::new(0);

/// The allocator.
pub struct Reserving;

/// Gets the reserve. Without one allocations fail as they would.
pub fn init() {
    // SAFETY: new private pages wherever there is room; nothing that exists is touched.
    let start = unsafe {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE);
        libc::mmap(null_mut(), BYTES, access, kind, -1, 0)
    };
    if start != libc::MAP_FAILED {
        START.store(start as usize, Relaxed);
    }
}

/// Unwinds as for want of memory if much of the reserve is in use.
pub fn check() {
    if given(USE.load(Relaxed)) > BYTES / 4 {
        room::give_back();
        if given(USE.load(Relaxed)) > BYTES / 4 {
            room::refuse_all();
        }
    }
}

fn given(state: u64) -> usize {
    state as u32 as usize * UNIT
}

fn has(address: usize) -> bool {
    address.wrapping_sub(START.load(Relaxed)) < BYTES && START.load(Relaxed) != 0
}

/// Some of the reserve; null: it has too little, or what is allocated may fail.
#[cold]
fn take(layout: Layout) -> *mut u8 {
    let start = START.load(Relaxed);
    let units = layout.size().div_ceil(UNIT).max(1);
    if start == 0 || units > BYTES / UNIT || layout.align() > UNIT || room::is_tried() {
        return null_mut();
    }
    let more = |state: u64| {
        let next = given(state) / UNIT + units;
        (next <= BYTES / UNIT).then_some(((state >> 32) + 1) << 32 | next as u64)
    };
    match USE.fetch_update(Relaxed, Relaxed, more) {
        Ok(before) => std::ptr::with_exposed_provenance_mut(start + given(before)),
        Err(_) => null_mut(),
    }
}

#[cold]
fn give() {
    let less = |state: u64| Some(if state >> 32 == 1 { 0 } else { state - (1 << 32) });
    let _ = USE.fetch_update(Relaxed, Relaxed, less);
}

// SAFETY: what the system gives is the system's to take back, and to make larger. A part of the reserve is given to one at a time: it begins behind all that were given since nobody had any, ends
// within the reserve, and begins at a multiple of 16 bytes, for a page does. Nothing unwinds.
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
            // SAFETY: the system gave it; as the caller says.
            let found = unsafe { System.realloc(address, layout, size) };
            if !found.is_null() {
                return found;
            }
        }
        // SAFETY: the caller's size is not too large for the alignment, which is that of a layout.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // what is had of the reserve goes back to the system where it can
        // SAFETY: as the caller says.
        let moved = unsafe { self.alloc(wanted) };
        if !moved.is_null() {
            // SAFETY: both have so many bytes, and are apart; what was had is the caller's to give back.
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
        assert!(take(layout(BYTES)).is_null() && take(Layout::from_size_align(8, 64).expect("a layout")).is_null());
        // SAFETY: these parts are had, and given back once.
        unsafe {
            a.write_bytes(7, 100);
            let moved = Reserving.realloc(a, layout(100), 200);
            assert!(!has(moved as usize) && std::slice::from_raw_parts(moved, 100) == [7; 100]);
            Reserving.dealloc(moved, layout(200));
            assert!(given(USE.load(Relaxed)) > 5000);
            Reserving.dealloc(b, layout(5000));
        }
        assert_eq!(USE.load(Relaxed), 0);
    }
}
