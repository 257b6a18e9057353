//! Background work: work on threads of its own, for which only the end of the process waits.
//!
//! Here: [`run`], and [`end`], which waits for such work before NVIDIA's libraries shut down. The work may be inside
//! their code. These libraries register functions with `exit` while they compile, so a function that this crate
//! registers would run too late. Not here: the thread of launches ([`super::queue`]), which ends at once.

use crate::process;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The process, and how many pieces of work it is running. A child of `fork` does not run the work that its parent
/// began.
static RUNNING: Mutex<(u32, usize)> = Mutex::new((0, 0));
/// Whether no more work may begin.
static ENDS: AtomicBool = AtomicBool::new(false);
static ENDED: Condvar = Condvar::new();
/// How long the end of the process waits for such work. Compiling takes less; work that hangs is abandoned.
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

/// Runs work on a thread of its own. Does nothing if the system cannot start a thread, or the process is ending.
pub fn run(name: &str, work: impl FnOnce() + Send + 'static) {
    // begins before the thread does, so that an end of the process in between waits for the work
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

/// Called before the process ends: allows no more work to begin, and waits for the work that is running.
pub fn end() {
    ENDS.store(true, Ordering::Relaxed);
    wait();
}

/// Waits until no work is running.
fn wait() {
    // in a child of `fork` the lock may be held for ever
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
        // nor for work that panics
        super::run("a panic", || panic!("meant"));
        super::wait();
    }
}
