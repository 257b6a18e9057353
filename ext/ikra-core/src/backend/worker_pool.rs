//! Worker pool: several threads that share one piece of work.
//!
//! Here: [`Threads::share`], which wakes workers for the caller's work, and [`Threads::map`], for pieces that each
//! return a value. Not here: which piece of the work each thread takes ([`super::cpu`], [`super::collective`]).
//!
//! The calling thread works, too, and waits only for workers that have begun. So a pool that is busy with other work
//! delays no caller.
#![allow(unsafe_code, reason = "helpers borrow what the calling thread has")]

use super::threads::Threads;
use crate::error::Result;
use crate::locks::{Condvar, Mutex};
use crate::memory::room;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long the caller spins for the last workers before it sleeps. Waking up takes longer than the rest of their work.
const CALLER_SPIN: Duration = Duration::from_micros(50);
/// How many workers one thread wakes before it works itself. Waking one takes the caller a few microseconds, and the
/// worker runs after ten times as long. So a tree of wakes is faster than one thread that wakes all, or a chain.
const MAX_WAKES: usize = 4;
/// How long a worker spins for more work before it sleeps. The parts of one call, and the calls of a program, follow
/// each other closely.
const WORKER_SPIN: Duration = Duration::from_micros(100);
/// A flag in [`Gate::inside`]: no more threads may enter.
const CLOSED: usize = 1 << (usize::BITS - 1);

impl Threads {
    /// Runs `work` on this thread, and at the same time on up to `helpers` others, once on each. `work` must take
    /// pieces until there are none. So all is done when this thread returns from `work` and the threads that entered
    /// have left.
    ///
    /// # Errors
    /// `Device` when the system cannot start threads. Then `work` did not run.
    ///
    /// # Panics
    /// When `work` panics, on whichever thread.
    pub fn share(&self, helpers: usize, work: &(dyn Fn() + Sync)) -> Result<()> {
        let helpers = helpers.min(self.count() - 1);
        if helpers == 0 {
            work();
            return Ok(());
        }
        let pool = self.pool()?;
        let gate = Arc::new(Gate::new(work));
        let closing = Closing(&gate);
        for (gate, helpers) in gate.parties(helpers) {
            pool.spawn(move || {
                gate.join(helpers);
                linger();
            });
        }
        work();
        drop(closing);
        let raised = gate.raised.lock().take();
        raised.map_or(Ok(()), |raised| resume_unwind(raised))
    }
}

impl Threads {
    /// The results of `piece` for all pieces, in their order. As many threads run it as are free; only this one does if
    /// the system cannot start others.
    ///
    /// # Panics
    /// When `piece` panics.
    pub fn map<I: Send, T: Send>(&self, pieces: Vec<I>, piece: impl Fn(I) -> T + Sync) -> Vec<T> {
        let mut made: Vec<Option<T>> = room::collect(pieces.iter().map(|_| None));
        // allocated before any work begins, because nothing may fail afterwards
        let mut all = room::with_capacity(pieces.len());
        let helpers = pieces.len().saturating_sub(1);
        let left = Mutex::new(pieces.into_iter().zip(&mut made));
        let work = || {
            loop {
                let next = left.lock().next();
                let Some((own, to)) = next else { return };
                *to = Some(piece(own));
            }
        };
        if self.share(helpers, &work).is_err() {
            work();
        }
        drop(left);
        all.extend(made.into_iter().flatten());
        all
    }
}

/// A piece of work, and how many threads are running it.
struct Gate {
    work: *const (dyn Fn() + Sync),
    inside: AtomicUsize,
    /// The payload of a panic in a helper.
    raised: Mutex<Option<Box<dyn Any + Send>>>,
    left: Condvar,
}

// SAFETY: `work` is `Sync`, and is only accessed as `join` says. All other fields may be used by several threads.
unsafe impl Send for Gate {}
// SAFETY: as above.
unsafe impl Sync for Gate {}

impl Gate {
    fn new<'a>(work: &'a (dyn Fn() + Sync + 'a)) -> Self {
        let work: *const (dyn Fn() + Sync + 'a) = work;
        // SAFETY: only the lifetime in the type of a pointer changes. `join` says why the pointer is not used for too
        // long.
        let work: *const (dyn Fn() + Sync + 'static) = unsafe { std::mem::transmute(work) };
        Self { work, inside: AtomicUsize::new(0), raised: Mutex::default(), left: Condvar::new() }
    }

    /// The threads that one thread wakes, each with the number of helpers that it has to provide, itself included.
    fn parties(self: &Arc<Self>, helpers: usize) -> impl Iterator<Item = (Arc<Self>, usize)> {
        (0..MAX_WAKES).map(move |at| (self.clone(), (helpers + at) / MAX_WAKES)).filter(|(_, helpers)| *helpers > 0)
    }

    /// Enters the gate, wakes more helpers, and works.
    fn join(self: Arc<Self>, helpers: usize) {
        let enter = |inside: usize| (inside & CLOSED == 0).then_some(inside + 1);
        if self.inside.fetch_update(Ordering::SeqCst, Ordering::SeqCst, enter).is_err() {
            return;
        }
        for (gate, helpers) in self.parties(helpers - 1) {
            rayon::spawn(move || {
                gate.join(helpers);
                linger();
            });
        }
        // SAFETY: `share` borrows the work until it has closed the gate and seen that nobody is inside. This thread
        // entered before the gate was closed, so `share` waits until it has left, below. A panic of the work is caught
        // here.
        let worked = catch_unwind(AssertUnwindSafe(|| unsafe { (*self.work)() }));
        if let Err(raised) = worked {
            *self.raised.lock() = Some(raised);
        }
        if self.inside.fetch_sub(1, Ordering::SeqCst) == CLOSED + 1 {
            // a caller that saw the gate occupied holds this lock until it sleeps
            drop(self.raised.lock());
            self.left.notify_one();
        }
    }
}

/// Keeps a worker awake for the next shared work, and runs that.
fn linger() {
    thread_local! {
        static LINGERS: Cell<bool> = const { Cell::new(false) };
    }
    // `yield_now` may run a job that calls this function again: the outer call already lingers, and nesting would need
    // more stack
    if LINGERS.replace(true) {
        return;
    }
    let mut since = Instant::now();
    while since.elapsed() < WORKER_SPIN {
        match rayon::yield_now() {
            Some(rayon::Yield::Executed) => since = Instant::now(),
            _ => (0..16).for_each(|_| std::hint::spin_loop()),
        }
    }
    LINGERS.set(false);
}

/// Closes the gate when dropped, and waits until all threads have left.
struct Closing<'a>(&'a Gate);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let Gate { inside, raised, left, .. } = self.0;
        inside.fetch_or(CLOSED, Ordering::SeqCst);
        let full = || inside.load(Ordering::SeqCst) != CLOSED;
        let began = Instant::now();
        while full() && began.elapsed() < CALLER_SPIN {
            std::hint::spin_loop();
        }
        let mut lock = raised.lock();
        while full() {
            lock = left.wait(lock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::threads::STACK;
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn what_is_shared_is_done_once_however_many_help() {
        for threads in 1..5 {
            let workers = Threads::new(threads);
            for pieces in [0, 1, 7, 10_000] {
                let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
                let work = || {
                    while let Some(piece) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|piece| *piece < pieces) {
                        sum.fetch_add(piece + 1, Ordering::Relaxed);
                    }
                };
                workers.share(threads, &work).expect("there are threads");
                assert_eq!(sum.into_inner(), pieces * (pieces + 1) / 2, "{threads} threads");
            }
        }
    }

    #[test]
    fn no_more_come_than_are_asked_and_all_of_them_at_once() {
        let workers = Threads::new(4);
        let (all, came) = (Barrier::new(3), AtomicUsize::new(0));
        let work = || {
            came.fetch_add(1, Ordering::Relaxed);
            all.wait();
        };
        workers.share(2, &work).expect("there are threads");
        assert_eq!(came.into_inner(), 3);
    }

    #[test]
    fn a_pool_that_is_busy_delays_nobody() {
        let workers = Threads::new(2);
        let (busy, on) = (Arc::new(Barrier::new(3)), Arc::new(Barrier::new(3)));
        for _ in 0..2 {
            let (busy, on) = (busy.clone(), on.clone());
            workers.pool().expect("there are threads").spawn(move || {
                busy.wait();
                on.wait();
            });
        }
        busy.wait();
        let done = AtomicUsize::new(0);
        workers
            .share(1, &|| {
                done.fetch_add(1, Ordering::Relaxed);
            })
            .expect("there are threads");
        assert_eq!(done.into_inner(), 1, "nobody else had time, and nobody waits for them");
        on.wait();
    }

    #[test]
    fn who_is_called_again_and_again_needs_no_more_stack() {
        let workers = Threads::new(3);
        let done = AtomicUsize::new(0);
        let work = || {
            done.fetch_add(1, Ordering::Relaxed);
        };
        let calls = STACK / 100;
        (0..calls).for_each(|_| workers.share(2, &work).expect("there are threads"));
        assert!(done.into_inner() >= calls);
    }

    #[test]
    fn pieces_are_given_back_in_their_order() {
        for threads in [1, 4] {
            let workers = Threads::new(threads);
            for count in [0, 1, 3, 1000] {
                let pieces: Vec<String> = (0..count).map(|i| i.to_string()).collect();
                let made = workers.map(pieces, |piece| piece + "!");
                assert_eq!(made, (0..count).map(|i| format!("{i}!")).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_panic_of_a_helper_is_told_when_all_have_left() {
        let workers = Threads::new(3);
        let (all, here) = (Barrier::new(3), std::thread::current().id());
        let work = || {
            all.wait();
            assert!(std::thread::current().id() == here, "a helper fails");
        };
        let raised = catch_unwind(AssertUnwindSafe(|| workers.share(2, &work)));
        assert!(raised.is_err());
        workers.share(2, &|| ()).expect("there are threads");
    }
}
