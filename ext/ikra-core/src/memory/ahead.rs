//! Prefetching: hints that ask the processor to load a cache line before it is needed.
//!
//! Here: the instructions. Not here: which lines are needed next; the caller knows that.

#![allow(unsafe_code, reason = "hints to the processor")]

/// `_MM_HINT_T0` loads a line into all caches to be read. `_MM_HINT_ET0` does the same for a line to be written; a
/// processor without it ignores the hint.
const READ: i32 = 3;
const WRITE: i32 = 7;

/// Prefetches the cache line of an address, to be read. Any address is allowed.
#[inline]
pub fn to_read<T>(at: *const T) {
    ask::<READ, T>(at);
}

/// Prefetches the cache line of an address, to be written: another core that holds the line gives it up early.
#[inline]
pub fn to_write<T>(at: *const T) {
    ask::<WRITE, T>(at);
}

#[inline]
fn ask<const HOW: i32, T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program sees and faults at no address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<HOW>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
