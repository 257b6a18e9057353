//! Work that threads do beside the calls that asked for it: nobody has to wait for it but the end of the process.
//!
//! Here: [`run`], and [`end`], which waits for such work before NVIDIA's libraries are run down, whose code it may be in: these have that registered while they compile,
//! so that no function of ours that `exit` calls would be early enough. Not here: launches' own thread ([`super::queue`]), which ends at once.

use crate::process;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How much is being done, and by which process: what a parent began, no child of `fork` does.
static RUNNING: Mutex<(u32, usize)> = Mutex::new((0, 0));
/// Nothing more is begun.
static ENDS: AtomicBool = AtomicBool::new(false);
static ENDED: Condvar = Condvar::new();
/// How long the end of the process waits for such work: compiling takes less, and stuck work is left.
const MAX_WAIT: Duration = Duration::from_secs(10);

struct Part;

impl Part {
    fn begin() -> Self {
        let mut running = RUNNING.lock();
        let process = process::id();
        if running.0 != process {
            *running = (process, 0);
        }
        running.1 += 1;
        Self
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        RUNNING.lock().1 -= 1;
        ENDED.notify_all();
    }
}

/// Does something on a thread of its own, if there is one to be had, and the process does not end.
pub fn run(name: &str, work: impl FnOnce() + Send + 'static) {
    // first, so that whoever ends the process later waits for it
    let part = Part::begin();
    if ENDS.load(Ordering::Relaxed) {
        return;
    }
    let work = move || {
        let _part = part;
        work();
    };
    let _ = std::thread::Builder::new().name(name.into()).spawn(work);
}

/// Before the process ends: nothing is begun any more, and what is being done is waited for.
pub fn end() {
    ENDS.store(true, Ordering::Relaxed);
    wait();
}

/// Waits until nothing is being done.
fn wait() {
    // a child of fork may never get it
    let Some(mut running) = RUNNING.try_lock_for(MAX_WAIT) else { return };
    while running.0 == process::id() && running.1 > 0 {
        if ENDED.wait_for(&mut running, MAX_WAIT).timed_out() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    #[test]
    fn the_end_waits_for_what_is_being_done() {
        let done = Arc::new(AtomicBool::new(false));
        let inside = done.clone();
        super::run("a while", move || {
            std::thread::sleep(Duration::from_millis(60));
            inside.store(true, Ordering::Relaxed);
        });
        super::wait();
        assert!(done.load(Ordering::Relaxed));
        // and not for what panics
        super::run("a panic", || panic!("meant"));
        super::wait();
    }
}
