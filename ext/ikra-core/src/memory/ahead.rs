//! Asking the host's memory for what is wanted soon, so that nobody waits for it then.
//!
//! Here: the hints that processors take. Not here: what is wanted next, which its user knows.

#![allow(unsafe_code, reason = "hints to the processor")]

/// Asks for the line of the cache in which this is, to be read. Any address will do.
#[inline]
pub fn to_read<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which reads nothing and raises nothing, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// The same, to be written: another core that has the line gives it up already.
#[inline]
pub fn to_write<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above; a processor that does not know this hint does nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_ET0>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}
