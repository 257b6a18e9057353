//! The id of this process, which tells what a forked child has inherited from what is its own.
//!
//! Here: [`id`], which asks the system once, and once more after a fork. Each call needs the id several times. In a
//! sandbox, one system call can take as long as the rest of a launch. Not here: what a child discards.
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
    // if two threads do this twice, that does no harm
    if !TOLD.load(Ordering::Acquire) {
        // SAFETY: the function only stores to an atomic, which is allowed in a forked child. It stays loaded as long as
        // the process, since Ruby does not unload libraries of extensions.
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
        // SAFETY: the child only reads its id, and then exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let right = super::id() == std::process::id() && super::id() == std::process::id();
            // SAFETY: `_exit` runs no handlers of the parent.
            unsafe { libc::_exit(if right { 7 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: the child was made by this test, and the status is a live local.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 7));
        assert_eq!(super::id(), std::process::id());
    }
}
