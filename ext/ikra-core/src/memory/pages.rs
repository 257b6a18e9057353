//! Pages of the host's.
//!
//! Here: advice about them ([`large_pages`]), and that the system listens to it; fresh ones ([`zeroed`]). Not here: whose memory that is.
#![allow(unsafe_code, reason = "advice about pages, and memory that may not be had")]

use super::column::Element;
use std::alloc::{Layout, alloc_zeroed};

/// Zeroes of the allocator's, which touches none where there are many; None: it has no memory.
pub fn zeroed<T: Element>(count: usize) -> Option<Vec<T>> {
    if count == 0 {
        return Some(Vec::new());
    }
    let layout = Layout::array::<T>(count).ok()?;
    // SAFETY: the layout is of some bytes: `T` is a number, and there is one at least.
    let rows = unsafe { alloc_zeroed(layout) }.cast::<T>();
    // SAFETY: of the global allocator, with the layout of `count` elements, all of which are zero, which is a value of every number; nobody else has them.
    (!rows.is_null()).then(|| unsafe { Vec::from_raw_parts(rows, count, count) })
}

/// Bytes of a large page. Large pages begin at multiples of it.
pub const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Asks for large pages where whole ones lie in memory that nobody has touched yet: most of the time that it takes to fill it is its pages' first touch.
pub fn large_pages(address: usize, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        let (from, to) =
            (address.next_multiple_of(LARGE_PAGE_BYTES), (address + bytes) / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES);
        if to > from {
            once::heed_advice();
            // SAFETY: the range is one of whole pages, and this advice is about how they are backed: it frees, moves and changes nothing that a program
            // sees, whoever uses them. Where there are none, or the kernel knows no large pages, it is refused, and then nothing has happened.
            unsafe { libc::madvise(std::ptr::without_provenance_mut(from), to - from, libc::MADV_HUGEPAGE) };
        }
    }
}

#[cfg(target_os = "linux")]
mod once {
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Of `PR_SET_THP_DISABLE`, from Linux 6.18 on.
    const EXCEPT_ADVISED: libc::c_ulong = 1 << 1;

    /// Ruby ends large pages for its whole process when it starts, advised or not: a heap that gets them unasked is copied in large pieces after each fork. Memory
    /// that somebody asks for is none of that heap, so it may have them again: where the kernel can tell the two apart, or gives large pages to nobody who does not ask.
    pub fn heed_advice() {
        static DONE: AtomicBool = AtomicBool::new(false);
        if DONE.swap(true, Ordering::Relaxed) || !matches!(control(libc::PR_GET_THP_DISABLE, 0, 0), 1) {
            return;
        }
        if control(libc::PR_SET_THP_DISABLE, 1, EXCEPT_ADVISED) == 0 {
            return;
        }
        let given = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        if given.contains("[madvise]") {
            control(libc::PR_SET_THP_DISABLE, 0, 0);
        }
    }

    fn control(what: libc::c_int, value: libc::c_ulong, flags: libc::c_ulong) -> libc::c_int {
        let none: libc::c_ulong = 0;
        // SAFETY: both requests take numbers and touch no memory of the process; what a kernel does not know it refuses.
        unsafe { libc::prctl(what, value, flags, none, none) }
    }
}
