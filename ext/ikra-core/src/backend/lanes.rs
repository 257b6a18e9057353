//! Launch lanes: threads that run launches for which their callers do not wait at once. (The lanes of a vector are
//! something else.)
//!
//! Here: [`submit`], which gives a [`Job`]. Not here: what a job does.
//!
//! There are as many lanes as the host has processors, or more for a device, where a lane mostly waits. A job waits for
//! a free lane. Where somebody waits for the job itself, it gets a further one ([`Job::wait`]), so that endless jobs
//! delay no other.
//!
//! A forked child has none of its parent's threads, and makes lanes of its own. It never looks at a job that its parent
//! had not done, because its lock may be taken for ever ([`Job::is_lost`]).

use super::CancelToken;
use super::threads::Threads;
use crate::locks::{Condvar, Mutex};
use crate::memory::room;
use crate::process;
use once_cell::race::OnceBox;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The stack of a lane. What recurses has other threads.
const STACK: usize = 2 << 20;
/// Lanes of a device.
const DEVICE_LANES: usize = 64;

/// The lanes of one process. Those of its forked children follow in a list, as in [`super::threads`].
struct Lanes {
    process: u32,
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
    next: OnceBox<Lanes>,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Arc<dyn Run>>,
    threads: usize,
    idle: usize,
    /// Jobs that have not ended.
    open: usize,
}

trait Run: Send + Sync {
    /// Runs it, where it has not begun.
    fn run(&self);
}

/// What a job does. It is given its token, and whether others have work for all processors.
type Work<T> = Box<dyn FnOnce(&CancelToken, bool) -> T + Send>;

enum Stage<T> {
    Waits(Work<T>),
    Runs,
    Done(std::thread::Result<T>),
    Gone,
}

/// Work for a lane, and its outcome.
pub struct Job<T> {
    process: u32,
    lanes: &'static Lanes,
    cancel: CancelToken,
    stage: Mutex<Stage<T>>,
    /// Set once a lane has left the stage for good.
    is_done: AtomicBool,
    ended: Condvar,
}

static HOST: OnceBox<Lanes> = OnceBox::new();
static DEVICE: OnceBox<Lanes> = OnceBox::new();

impl Lanes {
    fn of(first: &'static OnceBox<Lanes>, most: fn() -> usize) -> &'static Self {
        let process = process::id();
        let new = || {
            let (state, changed) = (Mutex::default(), Condvar::new());
            Box::new(Self { process, most: most(), state, changed, next: OnceBox::new() })
        };
        let mut lanes = first.get_or_init(new);
        while lanes.process != process {
            lanes = lanes.next.get_or_init(new);
        }
        lanes
    }

    /// Starts a lane, whose first job may be given.
    fn start(&'static self, first: Option<Arc<dyn Run>>) {
        // The C library ends a process whose new thread has no memory for its own data.
        let started = room::is_there(2 * STACK) && {
            let builder = std::thread::Builder::new().name("ikra lane".into()).stack_size(STACK);
            let first = first.clone();
            builder.spawn(move || self.work(first)).is_ok()
        };
        match first {
            _ if started => {}
            Some(first) => first.run(),
            // The next job tries again.
            None => self.state.lock().threads -= 1,
        }
    }

    fn work(&self, first: Option<Arc<dyn Run>>) {
        if let Some(job) = first {
            return job.run();
        }
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                job.run();
                drop(job);
                state = self.state.lock();
                continue;
            }
            state.idle += 1;
            state = self.changed.wait(state);
            state.idle -= 1;
        }
    }

    fn push(&'static self, job: Arc<dyn Run>) {
        let more = {
            let mut state = self.state.lock();
            state.queue.push_back(job);
            let more = state.idle < state.queue.len() && state.threads < self.most;
            state.threads += usize::from(more);
            more
        };
        if more {
            self.start(None);
        } else {
            self.changed.notify_one();
        }
    }
}

/// Submits work to a lane. `device`: it mostly waits for one.
pub fn submit<T: Send + 'static>(device: bool, work: Work<T>) -> Arc<Job<T>> {
    let job = held(device, work);
    job.lanes.push(job.clone());
    job
}

/// Work that begins when it is released, or waited for.
pub fn held<T: Send + 'static>(device: bool, work: Work<T>) -> Arc<Job<T>> {
    let lanes = match device {
        true => Lanes::of(&DEVICE, || DEVICE_LANES),
        false => Lanes::of(&HOST, || Threads::of_host().count()),
    };
    Arc::new(Job::new(lanes, work))
}

impl<T: Send + 'static> Run for Job<T> {
    fn run(&self) {
        let work = {
            let mut stage = self.stage.lock();
            match std::mem::replace(&mut *stage, Stage::Runs) {
                Stage::Waits(work) => work,
                other => {
                    *stage = other;
                    return;
                }
            }
        };
        let crowded = self.lanes.state.lock().open >= Threads::of_host().count().max(2);
        let done = catch_unwind(AssertUnwindSafe(|| work(&self.cancel, crowded)));
        self.lanes.state.lock().open -= 1;
        *self.stage.lock() = Stage::Done(done);
        self.is_done.store(true, Ordering::Release);
        self.ended.notify_all();
    }
}

impl<T: Send + 'static> Job<T> {
    fn new(lanes: &'static Lanes, work: Work<T>) -> Self {
        lanes.state.lock().open += 1;
        let (cancel, stage, ended) = (CancelToken::default(), Mutex::new(Stage::Waits(work)), Condvar::new());
        Self { process: lanes.process, lanes, cancel, stage, is_done: AtomicBool::new(false), ended }
    }

    /// Hands held work to a lane, if it has not begun.
    pub fn release(self: &Arc<Self>) {
        if !self.is_lost() && matches!(&*self.stage.lock(), Stage::Waits(_)) {
            self.lanes.push(self.clone());
        }
    }

    /// Whether a process that has forked this one had not done it by then. It never ends.
    pub fn is_lost(&self) -> bool {
        self.process != process::id() && !self.is_done()
    }

    /// Whether it has ended, or was cancelled before it began.
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Waits for its end, for so long at most. `now`: it has to begin if it has not.
    pub fn wait(self: &Arc<Self>, most: Duration, now: bool) {
        if self.is_done() || self.is_lost() {
            return;
        }
        let mut stage = self.stage.lock();
        if matches!(&*stage, Stage::Waits(_) | Stage::Runs) {
            (stage, _) = self.ended.wait_for(stage, most);
        }
        let late = now && matches!(&*stage, Stage::Waits(_));
        drop(stage);
        if late {
            self.lanes.start(Some(self.clone()));
        }
    }

    /// What it gave. None before its end, and after it was taken.
    ///
    /// # Panics
    /// If the work did.
    pub fn take(&self) -> Option<T> {
        if self.is_lost() {
            return None;
        }
        let mut stage = self.stage.lock();
        match std::mem::replace(&mut *stage, Stage::Gone) {
            Stage::Done(done) => Some(done.unwrap_or_else(|panic| resume_unwind(panic))),
            other => {
                *stage = other;
                None
            }
        }
    }

    /// Ends it, and gives its memory back once it has ended.
    pub fn cancel(&self) {
        if self.is_lost() {
            return;
        }
        self.cancel.cancel();
        let mut stage = self.stage.lock();
        if let Stage::Waits(_) = &*stage {
            let work = std::mem::replace(&mut *stage, Stage::Gone);
            drop(stage);
            drop(work);
            self.lanes.state.lock().open -= 1;
            self.is_done.store(true, Ordering::Release);
            self.ended.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn value<T: Send + 'static>(job: &Arc<Job<T>>) -> T {
        while !job.is_done() {
            job.wait(Duration::from_millis(5), true);
        }
        job.take().expect("it has ended, and was not cancelled")
    }

    #[test]
    fn jobs_give_what_their_work_gives_once() {
        let jobs: Vec<_> = (0..100).map(|i| submit(false, Box::new(move |_, _| i * 2))).collect();
        assert_eq!(jobs.iter().map(value).collect::<Vec<_>>(), (0..100).map(|i| i * 2).collect::<Vec<_>>());
        assert!(jobs.iter().all(|job| job.take().is_none()));
    }

    #[test]
    fn endless_jobs_delay_none_that_is_waited_for() {
        let endless = |cancel: &CancelToken, _| {
            while !cancel.is_cancelled() {
                std::thread::yield_now();
            }
        };
        let endless: Vec<_> = (0..Threads::of_host().count() + 1).map(|_| submit(false, Box::new(endless))).collect();
        assert_eq!(value(&submit(false, Box::new(|_, _| 5))), 5);
        endless.iter().for_each(|job| job.cancel());
        // The last one had not begun perhaps. Then it never does.
        assert!(endless.iter().all(|job| {
            while !job.is_done() {
                job.wait(Duration::from_millis(5), false);
            }
            true
        }));
    }

    #[test]
    fn a_job_that_is_cancelled_before_it_begins_never_does() {
        static BEGUN: AtomicUsize = AtomicUsize::new(0);
        let lanes: &'static Lanes = Box::leak(Box::new(Lanes {
            process: process::id(),
            most: 0,
            state: Mutex::default(),
            changed: Condvar::new(),
            next: OnceBox::new(),
        }));
        let work: Work<usize> = Box::new(|_, _| BEGUN.fetch_add(1, Ordering::SeqCst));
        let job = Arc::new(Job::new(lanes, work));
        lanes.push(job.clone());
        job.cancel();
        job.wait(Duration::ZERO, true);
        assert!(job.is_done() && job.take().is_none());
        assert_eq!((BEGUN.load(Ordering::SeqCst), lanes.state.lock().open), (0, 0));
    }

    #[test]
    fn held_jobs_begin_once_they_are_released_or_waited_for() {
        static BEGUN: AtomicUsize = AtomicUsize::new(0);
        let jobs: [_; 3] = std::array::from_fn(|_| {
            let work: Work<usize> = Box::new(|_, _| BEGUN.fetch_add(1, Ordering::SeqCst));
            held(false, work)
        });
        assert_eq!(value(&submit(false, Box::new(|_, _| 5))), 5);
        assert_eq!(BEGUN.load(Ordering::SeqCst), 0);
        jobs[0].release();
        value(&jobs[0]);
        value(&jobs[1]);
        jobs[1].release();
        jobs[2].cancel();
        jobs[2].release();
        assert!(jobs[2].is_done() && jobs[2].take().is_none());
        assert_eq!(BEGUN.load(Ordering::SeqCst), 2);
    }

    #[test]
    #[should_panic(expected = "the work fails")]
    fn a_panic_comes_out_where_the_outcome_is_taken() {
        value::<()>(&submit(false, Box::new(|_, _| panic!("the work fails"))));
    }
}
