//! Where the time of a section goes.
//!
//! Here: [`Phases`], added up per Ruby thread while `Ikra.profile` runs there. Not here: how it is shown
//! (lib/ikra/profile.rb).

use crate::heap::Raw;
use crate::identity::RawMap;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RHash, Ruby};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A phase of a section, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Source,
    Infer,
    Compile,
    Trace,
    Pack,
    Upload,
    Kernel,
    Download,
    Unpack,
}

const NAMES: [&str; 9] = ["source", "infer", "compile", "trace", "pack", "upload", "kernel", "download", "unpack"];

type Phases = [Duration; NAMES.len()];

static RUNNING: AtomicUsize = AtomicUsize::new(0);
static BY_THREAD: Mutex<Option<RawMap<Vec<Phases>>>> = Mutex::new(None);

/// Measures one section's phases.
pub struct Clock {
    thread: Option<Raw>,
    phases: Phases,
}

impl Clock {
    pub fn start(ruby: &Ruby) -> Self {
        let thread = (RUNNING.load(Ordering::Relaxed) > 0).then(|| ruby.thread_current().as_raw());
        Self { thread, phases: Phases::default() }
    }
    /// Runs `work` as part of a phase.
    pub fn measure<T>(&mut self, phase: Phase, work: impl FnOnce() -> T) -> T {
        if self.thread.is_none() {
            return work();
        }
        let start = Instant::now();
        let answer = work();
        self.add(phase, start.elapsed());
        answer
    }
    pub fn add(&mut self, phase: Phase, time: Duration) {
        self.phases[phase as usize] += time;
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let Some(thread) = self.thread else { return };
        for profile in BY_THREAD.lock().get_or_insert_default().entry(thread).or_default() {
            for (sum, time) in profile.iter_mut().zip(self.phases) {
                *sum += time;
            }
        }
    }
}

/// `Ikra.__profile_start`: from now on the sections of this thread are measured.
pub fn start(ruby: &Ruby) {
    RUNNING.fetch_add(1, Ordering::Relaxed);
    let thread = ruby.thread_current().as_raw();
    BY_THREAD.lock().get_or_insert_default().entry(thread).or_default().push(Phases::default());
}

/// `Ikra.__profile_stop`: seconds by phase since the last start.
///
/// # Errors
/// What Ruby raises when memory ends.
pub fn stop(ruby: &Ruby) -> Result<RHash, Error> {
    RUNNING.fetch_sub(1, Ordering::Relaxed);
    let thread = ruby.thread_current().as_raw();
    let phases = {
        let mut all = BY_THREAD.lock();
        let all = all.get_or_insert_default();
        let phases = all.get_mut(&thread).and_then(Vec::pop).unwrap_or_default();
        if all.get(&thread).is_some_and(Vec::is_empty) {
            all.remove(&thread);
        }
        phases
    };
    let hash = ruby.hash_new();
    for (name, time) in NAMES.iter().zip(phases) {
        hash.aset(ruby.to_symbol(*name), time.as_secs_f64())?;
    }
    Ok(hash)
}
