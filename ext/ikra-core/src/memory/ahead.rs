//! Asking the host's memory for what is wanted soon, so that nobody waits for it then.
//!
//! Here: the hints that processors take. Not here: what is wanted next, which its user knows.

#![allow(unsafe_code, reason = "hints to the processor")]

/// `_MM_HINT_T0`, into all caches, and `_MM_HINT_ET0`, the same where it is to be written; processors that do not know the latter do nothing.
const READ: i32 = 3;
const WRITE: i32 = 7;

/// Asks for the line of the cache in which this is, to be read. Any address will do.
#[inline]
pub fn to_read<T>(at: *const T) {
    ask::<READ, T>(at);
}

/// The same, to be written: another core that has the line gives it up already.
#[inline]
pub fn to_write<T>(at: *const T) {
    ask::<WRITE, T>(at);
}

#[inline]
fn ask<const HOW: i32, T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which reads nothing and raises nothing, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<HOW>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
