//! Where the time of a section goes, and of what else operations do.
//!
//! Here: [`Clock`], which measures a section, or a [`Step`] of an operation outside of sections; [`enter`] and
//! [`leave`], between which everything is one operation's. Also what is kept of a Fiber while `Ikra.profile` or
//! `Ikra.explain` runs there. Not here: how it is shown (lib/ikra/profile.rb, lib/ikra/explain.rb).
//!
//! An operation that the user calls is one [`Record`]. Ruby code that knows that it is one says so (`Ikra.__measured`):
//! what it does between its sections and steps is Ruby's phase then. A section or step outside of these is a record by
//! itself.
//!
//! A section whose caller goes on while its kernel runs is kept when its call ends ([`Clock::suspend`]). What it does
//! later is added then. Times in which a section or an operation waits for others do not count ([`waited`]), as these
//! others count them.

use crate::ruby::errors;
use crate::ruby::fiber::{self, Number};
use crate::ruby::identity::RawMap;
use magnus::prelude::*;
use magnus::{Error, RArray, Ruby};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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
#[derive(Clone)]
struct Record {
    begun: Instant,
    /// How long its Fiber had waited for other sections by then.
    waited: Duration,
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
    /// Whether its kernel ran while its caller went on.
    is_beside: bool,
    /// How much of the machine its kernel used.
    share: Option<f64>,
    /// The frames that only have its sums.
    left_out: Vec<u64>,
}

/// A record that may grow.
type Kept = Arc<Mutex<Record>>;

impl Record {
    /// `waited`: how long its Fiber has waited so far.
    fn begin(waited: Duration) -> Self {
        let (spans, steps) = Default::default();
        Self {
            begun: Instant::now(),
            waited,
            about: None,
            spans,
            took: Duration::ZERO,
            copied: 0,
            sections: 0,
            steps,
            kind: None,
            why: None,
            is_beside: false,
            share: None,
            left_out: Vec::new(),
        }
    }

    /// It ends now. `waited`: how long its Fiber has waited so far.
    fn stop(&mut self, waited: Duration) {
        self.took += self.begun.elapsed().saturating_sub(waited.saturating_sub(self.waited));
    }

    /// Takes what the section did later.
    fn continue_with(&mut self, later: Self) {
        self.took += later.took;
        self.copied += later.copied;
        self.is_beside |= later.is_beside;
        self.share = later.share.or(self.share);
        self.spans.extend(later.spans);
    }
}

/// An operation that runs.
struct Open {
    /// Operations within operations are theirs.
    depth: usize,
    record: Record,
    /// Up to when it is known where its time went.
    until: Instant,
    /// How long its Fiber had waited by then.
    waited: Duration,
}

impl Open {
    /// What passed since then was Ruby's, but for waiting.
    fn catch_up(&mut self, now: Instant, waited: Duration) {
        let idle = waited.saturating_sub(self.waited);
        let passed = now.saturating_duration_since(self.until).saturating_sub(idle);
        if !passed.is_zero() {
            self.record.spans.push((Phase::Ruby, self.until, passed));
        }
        self.until = self.until.max(now);
        self.waited = waited;
    }

    /// `waited`: how long its Fiber has waited so far.
    fn take(&mut self, part: Record, waited: Duration) {
        self.catch_up(part.begun, part.waited);
        self.until = self.until.max(part.begun + part.took + waited.saturating_sub(part.waited));
        self.waited = waited;
        let own = &mut self.record;
        own.is_beside |= part.is_beside;
        own.share = own.share.or(part.share);
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
    number: u64,
    started: Instant,
    sections: Vec<Kept>,
    left_out: usize,
    /// What sections took of which nothing else is kept.
    sums: Sums,
    /// The operation within which it began, which goes on when it ended.
    around: Option<Open>,
}

/// Time by phase.
type Sums = [Duration; NAMES.len()];

fn add(sums: &mut Sums, spans: &[(Phase, Instant, Duration)]) {
    spans.iter().for_each(|(phase, _, time)| sums[*phase as usize] += *time);
}

/// Those of a Fiber, and the operation that runs there.
#[derive(Default)]
struct Watch {
    frames: Vec<Frame>,
    open: Option<Open>,
    /// How long it waited for other sections.
    waited: Duration,
    waits: Vec<Wait>,
}

/// A Fiber waits for other sections, which it may also end, or run. They are no part of the operation around.
struct Wait {
    since: Instant,
    waited: Duration,
    around: Option<Open>,
}

impl Watch {
    fn keep(&mut self, record: Record) -> Kept {
        let kept = Arc::new(Mutex::new(record));
        self.keep_also(&kept);
        kept
    }

    fn keep_also(&mut self, kept: &Kept) {
        for frame in &mut self.frames {
            if frame.sections.len() < MAX_SECTIONS {
                frame.sections.push(kept.clone());
            } else {
                let mut record = kept.lock();
                frame.left_out += 1;
                add(&mut frame.sums, &record.spans);
                record.left_out.push(frame.number);
            }
        }
    }
}

/// The profiles that are being measured.
struct Profiles {
    /// How many there are, so that a section need not look for its Fiber where there are none.
    running: AtomicUsize,
    /// How many there were.
    frames: AtomicU64,
    by_fiber: Mutex<Option<RawMap<Watch>>>,
}

static PROFILES: Profiles =
    Profiles { running: AtomicUsize::new(0), frames: AtomicU64::new(0), by_fiber: Mutex::new(None) };

/// Whether anybody measures.
pub fn is_running() -> bool {
    PROFILES.running.load(Ordering::Relaxed) > 0
}

/// Looks at what is kept of a Fiber that is measured.
fn watching<T>(fiber: Number, look: impl FnOnce(&mut Watch) -> T) -> Option<T> {
    PROFILES.by_fiber.lock().as_mut()?.get_mut(&fiber).map(look)
}

/// The Fiber that runs, if it is measured, and how long it has waited for other sections.
fn measured(ruby: &Ruby) -> Option<(Number, Duration)> {
    let fiber = is_running().then(|| fiber::known(ruby)).flatten()?;
    watching(fiber, |watch| (fiber, watch.waited))
}

/// `Ikra.__measured?`: whether this Fiber is measured.
pub fn is_measured(ruby: &Ruby) -> bool {
    measured(ruby).is_some()
}

/// `Ikra.__profiled`: the number of this Fiber, if it is measured.
pub fn profiled(ruby: &Ruby) -> Option<Number> {
    measured(ruby).map(|(fiber, _)| fiber)
}

/// Whether an operation is measured of which a section would be a part.
pub fn is_within(ruby: &Ruby) -> bool {
    measured(ruby).is_some_and(|(fiber, _)| !is_alone(fiber))
}

/// `Ikra.__waits`: this Fiber waits for other sections, up to [`waited`]. False if it is not measured.
pub fn waits(ruby: &Ruby) -> bool {
    let Some((fiber, waited)) = measured(ruby) else { return false };
    let begin = |watch: &mut Watch| {
        let around = watch.open.take();
        watch.waits.push(Wait { since: Instant::now(), waited, around });
    };
    watching(fiber, begin).is_some()
}

/// `Ikra.__waited`: it waits no longer.
pub fn waited(ruby: &Ruby) {
    let Some((fiber, _)) = measured(ruby) else { return };
    watching(fiber, |watch| {
        let Some(Wait { since, waited, around }) = watch.waits.pop() else { return };
        (watch.waited, watch.open) = (waited + since.elapsed(), around);
    });
}

/// Measures the phases of one section or step.
pub struct Clock(Option<Running>);

struct Running {
    fiber: Number,
    record: Record,
    /// What it goes on with.
    earlier: Option<Kept>,
}

/// A section that was measured up to where its caller went on.
pub struct Suspended(Option<(Number, Kept)>);

impl Suspended {
    /// Measures what the section does from now on, in whatever Fiber.
    pub fn resume(self) -> Clock {
        let running = |(fiber, kept)| Running { fiber, record: Record::begin(Duration::ZERO), earlier: Some(kept) };
        Clock(self.0.map(running))
    }
}

impl Clock {
    pub fn start(ruby: &Ruby) -> Self {
        let running = |(fiber, waited)| Running { fiber, record: Record::begin(waited), earlier: None };
        Self(measured(ruby).map(running))
    }
    /// Measures nothing.
    pub fn stopped() -> Self {
        Self(None)
    }
    /// The caller goes on. What was measured is kept.
    pub fn suspend(&mut self) -> Suspended {
        let Some(mut running) = self.0.take() else { return Suspended(None) };
        let kept = watching(running.fiber, |watch| {
            running.record.stop(watch.waited);
            watch.keep(running.record)
        });
        Suspended(kept.map(|kept| (running.fiber, kept)))
    }
    /// The kernel ran beside the caller, from `began` to `ended`.
    pub fn ran_beside(&mut self, (began, ended): (Instant, Instant)) {
        if let Some(Running { record, .. }) = &mut self.0 {
            record.is_beside = true;
            record.took += ended.saturating_duration_since(began);
        }
    }
    /// How much of the machine the kernel used, from 0 to 1.
    pub fn shares(&mut self, share: Option<f64>) {
        if let Some(Running { record, .. }) = &mut self.0 {
            record.share = share;
        }
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
        let Some(Running { fiber, record, .. }) = &mut self.0 else { return Ok(()) };
        let mut about = about()?;
        // `&:name` has no place. On a thread of its own, a section has no caller either.
        let nowhere = about.path.is_empty() || errors::is_library(&about.path);
        if nowhere && is_alone(*fiber) {
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
        let Some(Running { fiber, record, .. }) = &mut self.0 else { return Ok(()) };
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
        if let Some(Running { record, .. }) = &mut self.0 {
            record.copied += bytes;
        }
    }
    pub fn add(&mut self, phase: Phase, start: Instant, time: Duration) {
        if let Some(Running { record, .. }) = &mut self.0 {
            record.spans.push((phase, start, time));
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let Some(Running { fiber, mut record, earlier }) = self.0.take() else { return };
        if let Some(kept) = earlier {
            return later(fiber, record, &kept);
        }
        watching(fiber, |watch| {
            record.stop(watch.waited);
            if let Some((_, took)) = record.steps.first_mut() {
                *took = record.took;
            }
            match &mut watch.open {
                Some(open) => open.take(record, watch.waited),
                None => drop(watch.keep(record)),
            }
        });
    }
}

/// Adds what a section did after its call.
fn later(fiber: Number, mut record: Record, kept: &Kept) {
    record.took += record.begun.elapsed();
    let left_out = kept.lock().left_out.clone();
    if !left_out.is_empty() {
        watching(fiber, |watch| {
            let frames = watch.frames.iter_mut().filter(|frame| left_out.contains(&frame.number));
            frames.for_each(|frame| add(&mut frame.sums, &record.spans));
        });
    }
    kept.lock().continue_with(record);
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
    let Some((fiber, waited)) = measured(ruby) else { return };
    let mut record = Record::begin(waited);
    record.about = Some(About { operation, path: path.into(), line, backend: RUBY, elements, ticks: 1 });
    (record.kind, record.why) = (kind, why);
    watching(fiber, |watch| match &mut watch.open {
        Some(open) => open.depth += 1,
        None => watch.open = Some(Open { depth: 1, until: record.begun, waited, record }),
    });
}

/// `Ikra.__leave(counts)`: the operation ended. `counts`: whether it is to be kept.
pub fn leave(ruby: &Ruby, counts: bool) {
    let now = Instant::now();
    let Some(fiber) = fiber::known(ruby) else { return };
    watching(fiber, |watch| {
        let Some(open) = &mut watch.open else { return };
        open.depth -= 1;
        if open.depth == 0
            && let Some(mut open) = watch.open.take()
        {
            let waited = watch.waited;
            open.catch_up(now, waited);
            let idle = waited.saturating_sub(open.record.waited);
            open.record.took = now.saturating_duration_since(open.record.begun).saturating_sub(idle);
            if counts {
                watch.keep(open.record);
            }
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
    let number = PROFILES.frames.fetch_add(1, Ordering::Relaxed);
    watch.frames.push(Frame { number, started: Instant::now(), sections, left_out: 0, sums, around });
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

/// `Ikra.__profile_give(fiber)`: what there was since the last start ran beside the Fiber with that number, which gets
/// it.
pub fn give(ruby: &Ruby, fiber: Number) {
    let Some(frame) = finished(ruby) else { return };
    watching(fiber, |watch| {
        for kept in &frame.sections {
            kept.lock().is_beside = true;
            watch.keep_also(kept);
        }
    });
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
/// being `[operation, path, line, backend, elements, ticks, start, seconds, [[phase, start, seconds]…], copied, beside,
/// share]`, all times in seconds since then. The first six are nil where a section ended before that was known.
///
/// # Errors
/// What Ruby raises when memory ends.
pub fn stop(ruby: &Ruby) -> Result<RArray, Error> {
    let Some(frame) = finished(ruby) else { return Ok(ruby.ary_new()) };
    let mut times = frame.sums;
    let sections = ruby.ary_new();
    for kept in &frame.sections {
        let record = kept.lock().clone();
        add(&mut times, &record.spans);
        sections.push(section(ruby, &record, frame.started)?)?;
    }
    let sums = ruby.hash_new();
    for (name, time) in NAMES.iter().zip(times) {
        sums.aset(ruby.to_symbol(*name), time.as_secs_f64())?;
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
    for kept in &frame.sections {
        let record = kept.lock().clone();
        if record.sections > 0 && record.steps.is_empty() {
            continue;
        }
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
    answer.push(record.is_beside)?;
    answer.push(record.share)?;
    Ok(answer)
}
