//! Where the time of a section goes, and of what else operations do.
//!
//! Here: [`Clock`], which measures a section, or a [`Step`] of an operation outside of sections; [`enter`] and
//! [`leave`], between which everything is one operation's. Also what is kept of a Fiber while `Ikra.profile` or
//! `Ikra.explain` runs there. Not here: how it is shown (lib/ikra/profile.rb, lib/ikra/explain.rb).
//!
//! An operation that the user calls is one [`Record`]. Ruby code that knows that it is one says so (`Ikra.__measured`):
//! what it does between its sections and steps is Ruby's phase then. A section or step outside of these is a record by
//! itself.

use crate::ruby::errors;
use crate::ruby::fiber::{self, Number};
use crate::ruby::identity::RawMap;
use magnus::prelude::*;
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
    Ruby,
}

const NAMES: [&str; 10] =
    ["source", "infer", "compile", "trace", "pack", "upload", "kernel", "download", "unpack", "ruby"];

/// The most sections that a profile keeps one by one. Of later ones it keeps only the sums.
const MAX_SECTIONS: usize = 100_000;

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

/// What goes over all elements at once, outside of programs, for people.
#[derive(Clone, Debug)]
pub struct Step {
    /// "sum", "sort".
    pub what: &'static str,
    pub elements: usize,
    /// What elements are.
    pub kind: &'static str,
    pub backend: &'static str,
    /// Why this backend; nothing where nobody asks ([`crate::report::explain::wanted`]).
    pub why: String,
}

/// A section, a step, or an operation of several of them. Each phase may have been entered several times.
struct Record {
    begun: Instant,
    about: Option<About>,
    spans: Vec<(Phase, Instant, Duration)>,
    took: Duration,
    /// Bytes of arrays.
    copied: usize,
    sections: usize,
    steps: Vec<(Step, Duration)>,
    /// What elements are, and why it runs where it does, of an operation: where somebody asks.
    kind: Option<String>,
    why: Option<String>,
}

impl Record {
    fn begin() -> Self {
        let (spans, steps) = Default::default();
        Self {
            begun: Instant::now(),
            about: None,
            spans,
            took: Duration::ZERO,
            copied: 0,
            sections: 0,
            steps,
            kind: None,
            why: None,
        }
    }
}

/// An operation that runs.
struct Open {
    /// Operations within operations are theirs.
    depth: usize,
    record: Record,
    /// Up to when it is known where its time went.
    until: Instant,
}

impl Open {
    /// What passed since then was Ruby's.
    fn catch_up(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.until);
        if !passed.is_zero() {
            self.record.spans.push((Phase::Ruby, self.until, passed));
            self.until = now;
        }
    }

    fn take(&mut self, part: Record) {
        self.catch_up(part.begun);
        self.until = self.until.max(part.begun + part.took);
        let own = &mut self.record;
        own.spans.extend(part.spans);
        own.copied += part.copied;
        own.sections += part.sections;
        let step = part.steps.first().map(|(step, _)| step.backend);
        own.steps.extend(part.steps);
        let Some(about) = &mut own.about else { return };
        match (part.about, step) {
            // the first section says where it runs
            (Some(section), None) if own.sections == part.sections => {
                (about.backend, about.ticks) = (section.backend, section.ticks);
            }
            (_, Some(backend)) if about.backend == RUBY => about.backend = backend,
            _ => {}
        }
    }
}

/// The backend of what no section or step does.
const RUBY: &str = "ruby";

/// What one `Ikra.profile` or `Ikra.explain` saw so far.
pub struct Frame {
    started: Instant,
    sums: [Duration; NAMES.len()],
    sections: Vec<Arc<Record>>,
    left_out: usize,
    /// The operation within which it began, which goes on when it ended.
    around: Option<Open>,
}

/// Those of a Fiber, and the operation that runs there.
#[derive(Default)]
struct Watch {
    frames: Vec<Frame>,
    open: Option<Open>,
}

impl Watch {
    fn keep(&mut self, record: Record) {
        let record = Arc::new(record);
        for frame in &mut self.frames {
            for (phase, _, time) in &record.spans {
                frame.sums[*phase as usize] += *time;
            }
            if frame.sections.len() < MAX_SECTIONS {
                frame.sections.push(record.clone());
            } else {
                frame.left_out += 1;
            }
        }
    }
}

/// The profiles that are being measured.
struct Profiles {
    /// How many there are, so that a section need not look for its Fiber where there are none.
    running: AtomicUsize,
    by_fiber: Mutex<Option<RawMap<Watch>>>,
}

static PROFILES: Profiles = Profiles { running: AtomicUsize::new(0), by_fiber: Mutex::new(None) };

/// Whether anybody measures.
pub fn is_running() -> bool {
    PROFILES.running.load(Ordering::Relaxed) > 0
}

/// Looks at what is kept of a Fiber that is measured.
fn watching<T>(fiber: Number, look: impl FnOnce(&mut Watch) -> T) -> Option<T> {
    PROFILES.by_fiber.lock().as_mut()?.get_mut(&fiber).map(look)
}

/// The Fiber that runs, if it is measured.
fn measured(ruby: &Ruby) -> Option<Number> {
    let fiber = is_running().then(|| fiber::known(ruby)).flatten()?;
    watching(fiber, |_| fiber)
}

/// `Ikra.__measured?`: whether this Fiber is measured.
pub fn is_measured(ruby: &Ruby) -> bool {
    measured(ruby).is_some()
}

/// Measures the phases of one section or step.
pub struct Clock(Option<(Number, Record)>);

impl Clock {
    pub fn start(ruby: &Ruby) -> Self {
        Self(measured(ruby).map(|fiber| (fiber, Record::begin())))
    }
    /// Measures nothing.
    pub fn stopped() -> Self {
        Self(None)
    }
    pub fn is_running(&self) -> bool {
        self.0.is_some()
    }
    /// It was nothing.
    pub fn forget(&mut self) {
        self.0 = None;
    }
    /// Says which section it is. That of a block of Ikra's own is the method's that the user called.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn tell(&mut self, ruby: &Ruby, about: impl FnOnce() -> Result<About, Error>) -> Result<(), Error> {
        let Some((fiber, record)) = &mut self.0 else { return Ok(()) };
        let mut about = about()?;
        if errors::is_library(&about.path) && is_alone(*fiber) {
            let (operation, path, line) = caller(ruby)?;
            (about.operation, about.path, about.line) = (operation, path.into(), line);
        }
        record.sections = 1;
        record.about = Some(about);
        Ok(())
    }
    /// Says which step it is.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn step(&mut self, ruby: &Ruby, step: impl FnOnce() -> Step) -> Result<(), Error> {
        let Some((fiber, record)) = &mut self.0 else { return Ok(()) };
        let asked = Instant::now();
        let step = step();
        if is_alone(*fiber) {
            let (operation, path, line) = caller(ruby)?;
            let Step { backend, elements, .. } = step;
            record.about = Some(About { operation, path: path.into(), line, backend, elements, ticks: 1 });
        }
        record.steps.push((step, Duration::ZERO));
        // finding that out is no part of it
        record.begun += asked.elapsed();
        Ok(())
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
        let Some((fiber, mut record)) = self.0.take() else { return };
        record.took = record.begun.elapsed();
        if let Some((_, took)) = record.steps.first_mut() {
            *took = record.took;
        }
        watching(fiber, |watch| match &mut watch.open {
            Some(open) => open.take(record),
            None => watch.keep(record),
        });
    }
}

/// Whether no operation runs that it would be a part of.
fn is_alone(fiber: Number) -> bool {
    watching(fiber, |watch| watch.open.is_none()).unwrap_or(false)
}

/// The method of Ikra's that the user called, and where.
fn caller(ruby: &Ruby) -> Result<(String, String, u32), Error> {
    errors::ikra(ruby)?.funcall("__caller", ())
}

/// `Ikra.__enter(operation, path, line, elements, kind, why)`: from now on, up to [`leave`], everything in this Fiber
/// is an operation's.
pub fn enter(
    ruby: &Ruby,
    operation: String,
    path: String,
    line: u32,
    elements: usize,
    kind: Option<String>,
    why: Option<String>,
) {
    let mut record = Record::begin();
    record.about = Some(About { operation, path: path.into(), line, backend: RUBY, elements, ticks: 1 });
    (record.kind, record.why) = (kind, why);
    let Some(fiber) = fiber::known(ruby) else { return };
    watching(fiber, |watch| match &mut watch.open {
        Some(open) => open.depth += 1,
        None => watch.open = Some(Open { depth: 1, until: record.begun, record }),
    });
}

/// `Ikra.__leave`: the operation ended.
pub fn leave(ruby: &Ruby) {
    let now = Instant::now();
    let Some(fiber) = fiber::known(ruby) else { return };
    watching(fiber, |watch| {
        let Some(open) = &mut watch.open else { return };
        open.depth -= 1;
        if open.depth == 0
            && let Some(mut open) = watch.open.take()
        {
            open.catch_up(now);
            open.record.took = now.saturating_duration_since(open.record.begun);
            watch.keep(open.record);
        }
    });
}

/// `Ikra.__profile_start`: from now on the sections of this Fiber are measured.
///
/// # Errors
/// As [`fiber::current`].
pub fn start(ruby: &Ruby) -> Result<(), Error> {
    let fiber = fiber::current(ruby)?;
    PROFILES.running.fetch_add(1, Ordering::Relaxed);
    let mut all = PROFILES.by_fiber.lock();
    let watch = all.get_or_insert_default().entry(fiber).or_default();
    let around = watch.open.take();
    let (sums, sections) = Default::default();
    watch.frames.push(Frame { started: Instant::now(), sums, sections, left_out: 0, around });
    Ok(())
}

/// What there was since the last start.
pub fn finished(ruby: &Ruby) -> Option<Frame> {
    let fiber = fiber::known(ruby)?;
    let mut all = PROFILES.by_fiber.lock();
    let all = all.get_or_insert_default();
    let watch = all.get_mut(&fiber)?;
    let mut frame = watch.frames.pop()?;
    PROFILES.running.fetch_sub(1, Ordering::Relaxed);
    watch.open = frame.around.take();
    if watch.frames.is_empty() {
        all.remove(&fiber);
    }
    Some(frame)
}

/// Of Fibers that left theirs open, and are gone.
pub fn let_go(fibers: &[Number]) {
    let mut all = PROFILES.by_fiber.lock();
    let Some(all) = all.as_mut() else { return };
    for watch in fibers.iter().filter_map(|fiber| all.remove(fiber)) {
        PROFILES.running.fetch_sub(watch.frames.len(), Ordering::Relaxed);
    }
}

/// `Ikra.__profile_stop`: what there was since the last start. `[{phase: seconds}, sections, left_out]`, a section
/// being `[operation, path, line, backend, elements, ticks, start, seconds, [[phase, start, seconds]…], copied]`, all
/// in seconds since then; the first six are nil where a section ended before that was known.
///
/// # Errors
/// What Ruby raises when memory ends.
pub fn stop(ruby: &Ruby) -> Result<RArray, Error> {
    let Some(frame) = finished(ruby) else { return Ok(ruby.ary_new()) };
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

/// Operations of which more is to tell than their sections: `[operation, path, line, elements, backend, kind, why,
/// seconds, {phase: seconds}, sections, steps]`, a step being `[what, elements, kind, backend, why, seconds]`.
///
/// # Errors
/// What Ruby raises when memory ends.
pub fn operations(ruby: &Ruby, frame: &Frame) -> Result<RArray, Error> {
    let answer = ruby.ary_new();
    let told = |record: &&Arc<Record>| record.sections == 0 || !record.steps.is_empty();
    for record in frame.sections.iter().filter(told) {
        let Some(about) = &record.about else { continue };
        let phases = ruby.hash_new();
        for (phase, name) in NAMES.iter().enumerate() {
            let spans = record.spans.iter().filter(|(other, ..)| *other as usize == phase);
            let time = spans.map(|(.., time)| *time).sum::<Duration>();
            if !time.is_zero() {
                phases.aset(ruby.to_symbol(*name), time.as_secs_f64())?;
            }
        }
        let steps = ruby.ary_new();
        for (step, time) in &record.steps {
            let Step { what, elements, kind, backend, why } = step;
            let (backend, seconds) = (ruby.to_symbol(*backend), time.as_secs_f64());
            steps.push((*what, *elements, *kind, backend, why.as_str(), seconds))?;
        }
        let of = ruby.ary_new();
        of.push(ruby.to_symbol(&about.operation))?;
        of.push(ruby.str_new(&about.path))?;
        of.push(about.line)?;
        of.push(about.elements)?;
        of.push(ruby.to_symbol(about.backend))?;
        of.push(record.kind.as_deref())?;
        of.push(record.why.as_deref())?;
        of.push(record.took.as_secs_f64())?;
        of.push(phases)?;
        of.push(record.sections)?;
        of.push(steps)?;
        answer.push(of)?;
    }
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
