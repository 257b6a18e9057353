//! The launcher: a thread that passes launches to the driver.
//!
//! A launch takes two to four microseconds of the thread that calls the driver, more than all other steps of a warm
//! call. When short launches follow each other and no thread waits for one, the launcher's thread makes these calls, in
//! order. The caller goes on meanwhile. Launches that came during one call are submitted by the next as one chain.
//!
//! Here: [`Launcher`], which decides when that thread is awake, and [`Step`], what it does. Not here: which steps it
//! gets ([`super`]). While it has steps left, no other thread may put work on the stream, but has to wait for it first
//! ([`Launcher::drain`]).
//!
//! Its behaviour in each situation:
//! - No step came for a while ([`PATIENCE`]): it sleeps, and callers launch themselves.
//! - Callers wait for each launch, or for each few: it sleeps. One thread is faster than two that hand launches over.
//! - A launch fails: since that code had run before, the device is lost, and all later calls report the fault.
//! - A fork: the child has no such thread, and does not use its parent's device.
//! - The process ends: before the driver's own end, it finishes its current call, and makes no other.

use super::{Mark, Stream};
use crate::backend::cuda::driver::{Device, Event, Spread, before_the_end};
use crate::backend::cuda::graph::Chains;
use crate::error::Result;
use parking_lot::{Condvar, Mutex};
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// So many short launches in a row wake the thread, if they follow each other fast enough to keep it awake.
const WAKING_LAUNCHES: u32 = 8;
/// How many steps may wait. A caller with one more waits until there are fewer.
const MAX_WAITING_STEPS: u64 = 256;
/// How long it looks for more steps before it sleeps. That is longer than the host takes from one call to the next, and
/// too short to matter.
const PATIENCE: Duration = Duration::from_micros(50);
/// How long a process that ends waits for the last call.
const LAST_CALL: Duration = Duration::from_secs(1);

/// An action on the stream.
pub enum Step {
    /// One run of a kernel, with the words of its parameter.
    Launch(Spread, Vec<u64>),
    /// Records an event, which becomes the mark's.
    Record(Arc<Mark>, Arc<Event>),
}

impl Step {
    /// # Errors
    /// `Device`. The context must be current.
    pub fn run(self, stream: &Stream) -> Result<()> {
        match self {
            Step::Launch(code, mut args) => code.launch(stream, &mut args),
            Step::Record(mark, event) => {
                event.record(stream)?;
                // a thread that waits for the mark records no other event before this is done
                let _ = mark.event.set(event);
                Ok(())
            }
        }
    }
}

/// The launcher of a queue; see the module.
pub struct Launcher {
    shared: Arc<Shared>,
    row: Row,
    /// How many steps were given before the last drain.
    drained: u64,
    thread: Option<JoinHandle<()>>,
}

/// Launches that followed each other while the thread was asleep.
struct Row {
    launches: u32,
    since: Instant,
}

struct Shared {
    device: Arc<Device>,
    stream: Arc<Stream>,
    todo: Mutex<Todo>,
    wakes: Condvar,
    /// How many steps were ever given, and how many are done.
    given: AtomicU64,
    done: AtomicU64,
}

#[derive(Default)]
struct Todo {
    steps: Vec<Step>,
    awake: bool,
    ends: bool,
}

/// The launchers of this process, for its end.
static ALL: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

impl Launcher {
    pub fn new(device: &Arc<Device>, stream: &Arc<Stream>) -> Self {
        let (todo, wakes) = (Mutex::default(), Condvar::new());
        let (given, done) = (AtomicU64::new(0), AtomicU64::new(0));
        let shared = Shared { device: device.clone(), stream: stream.clone(), todo, wakes, given, done };
        Self { shared: Arc::new(shared), row: Row { launches: 0, since: Instant::now() }, drained: 0, thread: None }
    }

    /// Gives a step to the thread, if it is awake. Otherwise returns the step; then all earlier steps are on the
    /// stream. `row`: whether the step counts towards waking the thread.
    pub fn leave(&mut self, step: Step, row: bool) -> Option<Step> {
        let Self { shared, row: before, thread, .. } = self;
        if shared.waiting() >= MAX_WAITING_STEPS {
            shared.until(|| shared.waiting() < MAX_WAITING_STEPS);
        }
        let mut todo = shared.todo.lock();
        if !todo.awake || todo.ends {
            if todo.ends || !row || !before.is_full_with_another() {
                return Some(step);
            }
            if thread.is_none() {
                *thread = begin(shared);
            }
            if thread.is_none() {
                return Some(step);
            }
            todo.awake = true;
            shared.wakes.notify_one();
        }
        todo.steps.push(step);
        shared.given.fetch_add(1, Ordering::Release);
        None
    }

    /// Waits until the thread has done all its steps. A caller that waits ends the row of launches.
    ///
    /// # Errors
    /// `Device`, after a fork or if the device was lost.
    pub fn drain(&mut self) -> Result<()> {
        self.row.launches = 0;
        let shared = &*self.shared;
        let given = shared.given.load(Ordering::Acquire);
        let since = given - std::mem::replace(&mut self.drained, given);
        if since == 0 && shared.waiting() == 0 {
            return Ok(());
        }
        // a child of `fork` has no such thread
        shared.device.enter()?;
        shared.until(|| shared.waiting() == 0);
        if since < u64::from(WAKING_LAUNCHES) {
            // it may be looking for more steps, which does no harm
            shared.todo.lock().awake = false;
        }
        shared.device.enter()
    }
}

impl Row {
    fn is_full_with_another(&mut self) -> bool {
        if self.launches == 0 {
            self.since = Instant::now();
        }
        self.launches += 1;
        if self.launches < WAKING_LAUNCHES {
            return false;
        }
        self.launches = 0;
        self.since.elapsed() < PATIENCE * WAKING_LAUNCHES
    }
}

/// Starts the thread. None: the system cannot start one, or it would not help.
fn begin(shared: &Arc<Shared>) -> Option<JoinHandle<()>> {
    // with one core the thread would only delay the others
    if std::thread::available_parallelism().map_or(1, NonZero::get) < 2 {
        return None;
    }
    end_with_the_process(shared);
    let own = shared.clone();
    std::thread::Builder::new().name("ikra launch".into()).spawn(move || own.work()).ok()
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // a child of `fork` has no such thread
        if let Some(thread) = self.thread.take().filter(|_| self.shared.device.is_ours()) {
            self.shared.end();
            // takes microseconds: what the thread holds must not be dropped while the process ends
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn waiting(&self) -> u64 {
        let done = self.done.load(Ordering::Acquire);
        self.given.load(Ordering::Acquire) - done
    }

    /// Waits for the thread, which takes microseconds.
    fn until(&self, done: impl Fn() -> bool) {
        for turn in 0u32.. {
            if done() {
                return;
            }
            if turn < 1_000 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }

    /// The thread's main loop.
    fn work(&self) {
        let mut steps = Vec::new();
        let mut row = Vec::new();
        let mut chains = Chains::default();
        loop {
            {
                let mut todo = self.todo.lock();
                while todo.steps.is_empty() {
                    if todo.ends {
                        return;
                    }
                    if !todo.awake {
                        self.wakes.wait(&mut todo);
                        continue;
                    }
                    drop(todo);
                    let more = self.comes_soon();
                    todo = self.todo.lock();
                    todo.awake = more || !todo.steps.is_empty();
                }
                std::mem::swap(&mut steps, &mut todo.steps);
            }
            // after a fault this is an error, and nothing is launched
            let entered = self.device.enter();
            let mut steps = steps.drain(..).peekable();
            while let Some(step) = steps.next() {
                let (count, run) = match step {
                    Step::Launch(code, args) => {
                        row.push((code, args));
                        if matches!(steps.peek(), Some(Step::Launch(..))) {
                            continue;
                        }
                        let run = match entered {
                            Ok(()) => chains.submit(&self.device, &self.stream, row.as_mut_slice()),
                            Err(_) => Ok(()),
                        };
                        (row.drain(..).len(), run)
                    }
                    record => (1, if entered.is_ok() { record.run(&self.stream) } else { Ok(()) }),
                };
                if let Err(error) = run {
                    self.device.lose(&error.to_string());
                }
                self.done.fetch_add(count as u64, Ordering::Release);
            }
        }
    }

    /// Looks for more steps for a while. Returns whether there are some.
    fn comes_soon(&self) -> bool {
        let began = Instant::now();
        loop {
            for _ in 0..32 {
                if self.waiting() > 0 {
                    return true;
                }
                std::hint::spin_loop();
            }
            if began.elapsed() > PATIENCE {
                return false;
            }
        }
    }

    /// Makes the thread end as soon as it has no steps.
    fn end(&self) {
        self.todo.lock().ends = true;
        self.wakes.notify_one();
    }
}

fn end_with_the_process(shared: &Arc<Shared>) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| before_the_end(end_all));
    let mut all = ALL.lock();
    all.retain(|other| other.strong_count() > 0);
    all.push(Arc::downgrade(shared));
}

/// Called when the process ends: makes sure that no thread calls the driver any more.
extern "C" fn end_all() {
    let all: Vec<Arc<Shared>> = ALL.lock().iter().filter_map(Weak::upgrade).collect();
    for shared in all.iter().filter(|shared| shared.device.is_ours()) {
        let dropped = {
            let mut todo = shared.todo.lock();
            todo.ends = true;
            std::mem::take(&mut todo.steps)
        };
        shared.done.fetch_add(dropped.len() as u64, Ordering::Release);
        let began = Instant::now();
        shared.until(|| shared.waiting() == 0 || began.elapsed() > LAST_CALL);
        // not dropped, because the driver may be unloaded
        std::mem::forget(dropped);
    }
    std::mem::forget(all);
}
