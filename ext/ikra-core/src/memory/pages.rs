//! Advice about the host's pages.
//!
//! Here: [`large_pages`]. Not here: whose memory that is.
#![allow(unsafe_code, reason = "advice about pages")]

/// Asks for large pages where memory is large that nobody has touched yet: most of the time that it takes to fill it is its pages' first touch.
pub fn large_pages(address: usize, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        const LARGE: usize = 4 << 20;
        let (from, to) = (address.next_multiple_of(PAGE), (address + bytes) / PAGE * PAGE);
        if to > from && to - from >= LARGE {
            // SAFETY: the range is one of whole pages, and this advice is about how they are backed: it frees, moves and changes nothing that a program
            // sees, whoever uses them. Where there are none, or the kernel knows no large pages, it is refused, and then nothing has happened.
            unsafe { libc::madvise(std::ptr::without_provenance_mut(from), to - from, libc::MADV_HUGEPAGE) };
        }
    }
}
