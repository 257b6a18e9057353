//! The number of this process, by which what a fork inherits is told from what is its own.
//!
//! Here: [`id`], which asks the system once, and once more after a fork: it is asked several times in each call, and where processes are
//! fenced in, a question to the system takes as long as all else on the way to a kernel. Not here: what is forgotten in a child.
#![allow(unsafe_code, reason = "libc is told what to call in a child; see SAFETY")]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// 0: not known.
static KNOWN: AtomicU32 = AtomicU32::new(0);
static TOLD: AtomicBool = AtomicBool::new(false);

extern "C" fn forget() {
    KNOWN.store(0, Ordering::Relaxed);
}

/// As [`std::process::id`].
#[inline]
pub fn id() -> u32 {
    match KNOWN.load(Ordering::Relaxed) {
        0 => ask(),
        known => known,
    }
}

#[cold]
fn ask() -> u32 {
    let id = std::process::id();
    // twice by two threads does no harm
    if !TOLD.load(Ordering::Acquire) {
        // SAFETY: the function touches an atomic alone, which a child may do at once, and it is there as long as the process: nobody
        // unloads a library of Ruby's.
        if unsafe { libc::pthread_atfork(None, None, Some(forget)) } != 0 {
            return id;
        }
        TOLD.store(true, Ordering::Release);
    }
    KNOWN.store(id, Ordering::Relaxed);
    id
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_child_has_a_number_of_its_own() {
        assert_eq!([super::id(), super::id()], [std::process::id(); 2]);
        // SAFETY: the child asks, and is gone.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let right = super::id() == std::process::id() && super::id() == std::process::id();
            // SAFETY: nothing of the parent's is run down.
            unsafe { libc::_exit(if right { 7 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: the child is this test's, and the status a live local.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 7));
        assert_eq!(super::id(), std::process::id());
    }
}
