//! Pages of host memory.
//!
//! Here: the request for large pages ([`large_pages`]), the switch that makes the system heed it, and fresh
//! zero pages ([`zeroed`]). Not here: who owns the memory.
#![allow(unsafe_code, reason = "advice about pages, and memory that may not be had")]

use super::column::Element;
use std::alloc::{Layout, alloc_zeroed};

/// Zeroes from the allocator, which touches no page of a large request; None: the allocator has no memory.
pub fn zeroed<T: Element>(count: usize) -> Option<Vec<T>> {
    if count == 0 {
        return Some(Vec::new());
    }
    let layout = Layout::array::<T>(count).ok()?;
    // SAFETY: the layout has a size above 0: `T` is a number, and `count` is at least 1.
    let rows = unsafe { alloc_zeroed(layout) }.cast::<T>();
    // SAFETY: the global allocator returned the memory for the layout of `count` elements. All elements are zero, which
    // is a value of every number type. The memory has no other owner.
    (!rows.is_null()).then(|| unsafe { Vec::from_raw_parts(rows, count, count) })
}

/// Bytes of a large page, which is aligned to its size.
pub const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Asks for large pages for the whole ones within untouched memory. The first touch of pages is most of the time that
/// filling memory takes.
pub fn large_pages(address: usize, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        let (from, to) =
            (address.next_multiple_of(LARGE_PAGE_BYTES), (address + bytes) / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES);
        if to > from {
            once::heed_advice();
            // SAFETY: the range is of whole pages, and this advice only concerns how they are backed. It frees, moves
            // and changes nothing that a program sees, whoever uses the pages. If the range is not mapped, or the
            // kernel has no large pages, the call fails without an effect.
            unsafe { libc::madvise(std::ptr::without_provenance_mut(from), to - from, libc::MADV_HUGEPAGE) };
        }
    }
}

#[cfg(target_os = "linux")]
mod once {
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Of `PR_SET_THP_DISABLE`, from Linux 6.18 on.
    const EXCEPT_ADVISED: libc::c_ulong = 1 << 1;

    /// Allows large pages where they are asked for. Ruby disables them for its process when it starts, advice included,
    /// because the kernel copies a heap of large pages in large pieces after a fork. Memory for which Ikra asks is not
    /// part of that heap. The call takes effect where the kernel can allow advised pages only, or gives large pages to
    /// advised memory only.
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
        // SAFETY: both requests take numbers and touch no memory of the process. A kernel refuses a request that it
        // does not know.
        unsafe { libc::prctl(what, value, flags, none, none) }
    }
}
