//! Where the time of a section goes.
//!
//! Here: [`Clock`], which measures one section, and what is kept of the sections of a Ruby thread while `Ikra.profile` runs
//! there. Not here: how it is shown (lib/ikra/profile.rb).

use crate::heap::Raw;
use crate::identity::RawMap;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, Ruby};
use parking_lot::Mutex;
use std::sync::Arc;
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

/// Sections that a profile keeps one by one; of later ones only the sums.
const MOST_SECTIONS: usize = 100_000;

/// What a section is, for people.
#[derive(Clone, Debug)]
pub struct About {
    pub operation: String,
    pub path: Arc<str>,
    pub line: u32,
    pub backend: &'static str,
    pub elements: usize,
    pub ticks: u64,
}

/// One section's phases: each may have been entered several times.
struct Record {
    begun: Instant,
    about: Option<About>,
    spans: Vec<(Phase, Instant, Duration)>,
    took: Duration,
    /// Bytes of arrays.
    copied: usize,
}

/// What one `Ikra.profile` saw so far.
struct Frame {
    started: Instant,
    sums: [Duration; NAMES.len()],
    sections: Vec<Arc<Record>>,
    left_out: usize,
}

static RUNNING: AtomicUsize = AtomicUsize::new(0);
static BY_THREAD: Mutex<Option<RawMap<Vec<Frame>>>> = Mutex::new(None);

/// Whether anybody measures.
pub fn is_running() -> bool {
    RUNNING.load(Ordering::Relaxed) > 0
}

/// Measures one section's phases.
pub struct Clock(Option<(Raw, Record)>);

impl Clock {
    pub fn start(ruby: &Ruby) -> Self {
        Self(is_running().then(|| {
            let record =
                Record { begun: Instant::now(), about: None, spans: Vec::new(), took: Duration::ZERO, copied: 0 };
            (ruby.thread_current().as_raw(), record)
        }))
    }
    /// Measures nothing.
    pub fn stopped() -> Self {
        Self(None)
    }
    pub fn is_running(&self) -> bool {
        self.0.is_some()
    }
    /// Says which section it is.
    pub fn tell(&mut self, about: impl FnOnce() -> About) {
        if let Some((_, record)) = &mut self.0 {
            record.about = Some(about());
        }
    }
    /// Runs `work` as part of a phase.
    pub fn measure<T>(&mut self, phase: Phase, work: impl FnOnce() -> T) -> T {
        if self.0.is_none() {
            return work();
        }
        let start = Instant::now();
        let answer = work();
        self.add(phase, start, start.elapsed());
        answer
    }
    /// Bytes of arrays were copied, so that what is written to them can be undone.
    pub fn copied(&mut self, bytes: usize) {
        if let Some((_, record)) = &mut self.0 {
            record.copied += bytes;
        }
    }
    pub fn add(&mut self, phase: Phase, start: Instant, time: Duration) {
        if let Some((_, record)) = &mut self.0 {
            record.spans.push((phase, start, time));
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let Some((thread, mut record)) = self.0.take() else { return };
        record.took = record.begun.elapsed();
        let record = Arc::new(record);
        for frame in BY_THREAD.lock().get_or_insert_default().entry(thread).or_default() {
            for (phase, _, time) in &record.spans {
                frame.sums[*phase as usize] += *time;
            }
            if frame.sections.len() < MOST_SECTIONS {
                frame.sections.push(record.clone());
            } else {
                frame.left_out += 1;
            }
        }
    }
}

/// `Ikra.__profile_start`: from now on the sections of this thread are measured.
pub fn start(ruby: &Ruby) {
    RUNNING.fetch_add(1, Ordering::Relaxed);
    let thread = ruby.thread_current().as_raw();
    let frame = Frame { started: Instant::now(), sums: Default::default(), sections: Vec::new(), left_out: 0 };
    BY_THREAD.lock().get_or_insert_default().entry(thread).or_default().push(frame);
}

/// `Ikra.__profile_stop`: what there was since the last start. `[{phase: seconds}, sections, left_out]`, a section being
/// `[operation, path, line, backend, elements, ticks, start, seconds, [[phase, start, seconds]…], copied]`, all in seconds since
/// then; the first six are nil where a section ended before that was known.
///
/// # Errors
/// What Ruby raises when memory ends.
pub fn stop(ruby: &Ruby) -> Result<RArray, Error> {
    RUNNING.fetch_sub(1, Ordering::Relaxed);
    let thread = ruby.thread_current().as_raw();
    let frame = {
        let mut all = BY_THREAD.lock();
        let all = all.get_or_insert_default();
        let frame = all.get_mut(&thread).and_then(Vec::pop);
        if all.get(&thread).is_some_and(Vec::is_empty) {
            all.remove(&thread);
        }
        frame
    };
    let Some(frame) = frame else { return Ok(ruby.ary_new()) };
    let sums = ruby.hash_new();
    for (name, time) in NAMES.iter().zip(frame.sums) {
        sums.aset(ruby.to_symbol(*name), time.as_secs_f64())?;
    }
    let sections = ruby.ary_new();
    for record in &frame.sections {
        sections.push(section(ruby, record, frame.started)?)?;
    }
    let answer = ruby.ary_new();
    answer.push(sums)?;
    answer.push(sections)?;
    answer.push(frame.left_out)?;
    Ok(answer)
}

fn section(ruby: &Ruby, record: &Record, zero: Instant) -> Result<RArray, Error> {
    let since = |at: Instant| at.saturating_duration_since(zero).as_secs_f64();
    let answer = ruby.ary_new();
    match &record.about {
        Some(about) => {
            answer.push(ruby.to_symbol(&about.operation))?;
            answer.push(ruby.str_new(&about.path))?;
            answer.push(about.line)?;
            answer.push(ruby.to_symbol(about.backend))?;
            answer.push(about.elements)?;
            answer.push(about.ticks)?;
        }
        None => (0..6).try_for_each(|_| answer.push(ruby.qnil()))?,
    }
    answer.push(since(record.begun))?;
    answer.push(record.took.as_secs_f64())?;
    let spans = ruby.ary_new();
    for (phase, start, time) in &record.spans {
        spans.push((ruby.to_symbol(NAMES[*phase as usize]), since(*start), time.as_secs_f64()))?;
    }
    answer.push(spans)?;
    answer.push(record.copied)?;
    Ok(answer)
}
