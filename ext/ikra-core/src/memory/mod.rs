//! Bytes of columns.
//!
//! Here: [`column::HostColumn`], the rows of a column of one launch; [`buffer::Buffer`], arrays that outlive launches and know
//! where their contents are; [`fate::Fate`], what those depend on; [`interleave`], for layouts in which columns share memory; [`even`], for arrays that lie evenly. Not here: how a device's memory is
//! had (each backend owns its own) and what the bytes mean.

#![allow(unsafe_code, reason = "advice about pages")]

pub mod buffer;
pub mod column;
pub mod even;
pub mod fate;
pub mod interleave;

/// Asks for large pages where memory is large that nobody has touched yet: most of the time that it takes to fill it is its pages' first touch.
pub fn large_pages(address: usize, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        const LARGE: usize = 4 << 20;
        let (from, to) = (address.next_multiple_of(PAGE), (address + bytes) / PAGE * PAGE);
        if to > from && to - from >= LARGE {
            // SAFETY: whatever is there, or if there is nothing: the advice changes no contents, and where it is refused nothing.
            unsafe { libc::madvise(std::ptr::without_provenance_mut(from), to - from, libc::MADV_HUGEPAGE) };
        }
    }
}
