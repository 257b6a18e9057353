//! Chunks of jobs: which thread runs which, and in what order ticks follow each other.
//!
//! Here: the work of one launch, its chunks, the records of its traps. Not here: threads ([`super::pool`]) and the call
//! into generated code ([`super::jit`]).
//!
//! A *step* runs all jobs for all ticks if these are fused, else for one tick. Chunks are numbered through all
//! steps. A free thread takes the next chunk. A chunk of a later step waits until the earlier step is done. Only
//! running threads take chunks, so nobody waits for a thread that never started.

use super::emitters::Emitters;
use super::jit::{Code, State};
use super::privatization::PrivateRows;
use super::state;
use crate::backend::{Key, TrapRecord};
use crate::ir::{SiteId, TRAP_WORDS};
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A launch: code and data, and the number of jobs and ticks.
pub struct Work {
    pub code: Arc<Code>,
    pub state: State,
    pub jobs: u64,
    /// The number of elements, which is greater than that of jobs if a job is a group of elements.
    pub elements: u64,
    pub ticks: u64,
    pub fused_ticks: bool,
    /// Jobs per chunk, if the user set it.
    pub chunk: Option<u64>,
    /// Private rows for each of several threads.
    pub private_rows: Option<PrivateRows>,
    /// In a launch that groups pairs: what threads use for that.
    pub emitters: Option<Arc<Emitters>>,
}

/// The trap with the least key so far.
#[derive(Default)]
pub struct Record {
    least: Mutex<Option<TrapRecord>>,
    /// The trap that was found after all jobs. It counts only if no job trapped.
    behind: Mutex<Option<TrapRecord>>,
}

impl Record {
    fn keep(&self, trap: TrapRecord, stop_key: &AtomicU64) {
        let mut least = self.least.lock();
        // elements beyond the limit, or beyond an earlier trap, do not count
        if trap.key.0 <= stop_key.load(Ordering::SeqCst) && least.is_none_or(|least| trap.key < least.key) {
            stop_key.fetch_min(trap.key.0, Ordering::SeqCst);
            *least = Some(trap);
        }
    }

    pub fn get(&self) -> Option<TrapRecord> {
        self.least.lock().or(*self.behind.lock())
    }
}

impl Work {
    pub fn steps(&self) -> u64 {
        match (self.jobs, self.fused_ticks) {
            (0, _) => 0,
            (_, true) => self.ticks.min(1),
            (_, false) => self.ticks,
        }
    }

    /// The number of ticks of a step.
    fn length(&self) -> u64 {
        if self.fused_ticks { self.ticks } else { 1 }
    }

    fn ticks(&self, step: u64) -> Range<u64> {
        if self.fused_ticks { 0..self.ticks } else { step..step + 1 }
    }

    /// Whether the launch was stopped before a step began.
    fn is_over(&self, state: &State, step: u64) -> bool {
        state.stop_key().load(Ordering::Relaxed) < Key::new(self.ticks(step).start, 0).0
    }

    /// Notes what jobs took. Those of a launch that was cancelled have not ended, and say nothing.
    fn note(&self, state: &State, took: Duration, jobs: u64) {
        if state.stop_key().load(Ordering::Relaxed) != Key::CANCEL.0 {
            self.code.cost().set(took, jobs, self.length());
        }
    }

    /// Runs jobs of a step.
    pub fn run(&self, state: &mut State, step: u64, jobs: Range<u64>, record: &Record) {
        let ticks = self.ticks(step);
        let mut next = jobs.start;
        while next < jobs.end && !self.is_over(state, step) {
            next = state.run(&self.code, next..jobs.end, ticks.clone());
            let site = state.word(state::SITE);
            if site != 0 {
                state.set_word(state::SITE, 0);
                record.keep(trap(state, site - 1), state.stop_key());
            }
            // makes the next job of a stopped launch read the stop key at its first poll
            state.set_word(state::POLLS, 1);
        }
        // so that one thread alone leaves no gaps, and one that ends leaves few
        state.return_rows();
    }
}

fn trap(state: &State, site: u64) -> TrapRecord {
    let mut words = [0; TRAP_WORDS];
    for (i, word) in words.iter_mut().enumerate() {
        *word = state.word(state::WORDS + i);
    }
    TrapRecord {
        key: Key::new(state.word(state::TICK), state.word(state::INDEX)),
        site: SiteId::new(site as usize),
        words,
    }
}

/// How long the calling thread works alone before it wakes workers, if the speed of the code is not known.
const CALLER_ALONE: Duration = Duration::from_micros(30);
/// The least remaining work, in seconds, for which workers are woken.
const MIN_PARALLEL_SECONDS: f64 = 60e-6;
/// Seconds that a chunk takes. It is short enough to notice a cancel soon, and long enough that taking a chunk costs
/// nothing in comparison.
const CHUNK: Range<f64> = 10e-6..1e-3;

/// Chunks for each thread, so that all threads end at about the same time. The first number is for a single step. The
/// second is for one of many steps, after each of which all threads wait.
const SHARES: u64 = 32;
const SHARES_OF_STEP: u64 = 8;

/// Seconds that a job took for a tick in the last run of the code, if there was one.
#[derive(Default)]
pub struct Cost(AtomicU64);

impl Cost {
    fn get(&self) -> Option<f64> {
        Some(f64::from_bits(self.0.load(Ordering::Relaxed))).filter(|cost| *cost > 0.0)
    }
    /// How long one thread takes for so many jobs and ticks.
    pub fn of(&self, jobs: u64, ticks: u64) -> Option<Duration> {
        let seconds = self.get()? * jobs as f64 * ticks as f64;
        Duration::try_from_secs_f64(seconds).ok()
    }
    pub fn set(&self, took: Duration, jobs: u64, ticks: u64) {
        let cost = took.as_secs_f64() / (jobs as f64 * ticks as f64);
        self.0.store(cost.to_bits(), Ordering::Relaxed);
    }
}

/// How far the calling thread got alone.
pub struct Progress {
    pub step: u64,
    pub job: u64,
    /// Seconds that a job takes for one step.
    pub cost: f64,
}

/// Runs on this thread until all is done, or until others should help. That is at once if the code took long in its
/// last run.
pub fn alone(work: &Work, state: &mut State, record: &Record, threads: usize) -> Option<Progress> {
    let start = Instant::now();
    let steps = work.steps();
    let known = work.code.cost().get().map(|cost| cost * work.length() as f64);
    if let Some(cost) = known.filter(|_| threads > 1)
        && cost * work.jobs as f64 * steps as f64 > CALLER_ALONE.as_secs_f64() + MIN_PARALLEL_SECONDS
    {
        return Some(Progress { step: 0, job: 0, cost });
    }
    let mut size = 1;
    let mut done = 0;
    for step in 0..steps {
        let mut job = 0;
        while job < work.jobs {
            let end = work.jobs.min(job.saturating_add(size));
            work.run(state, step, job..end, record);
            done += end - job;
            job = end;
            let spent = start.elapsed();
            work.note(state, spent, done);
            if job == work.jobs && step + 1 == steps || work.is_over(state, step) {
                return None;
            }
            let cost = spent.as_secs_f64() / done as f64;
            let left = cost * ((work.jobs - job) as f64 + work.jobs as f64 * (steps - step - 1) as f64);
            if threads > 1 && spent > CALLER_ALONE && left > MIN_PARALLEL_SECONDS {
                return Some(Progress { step, job, cost });
            }
            // The next jobs should end when it will be clear whether others should help. If that is decided, they
            // should end before a cancel would be noticed too late.
            let room = if threads > 1 && spent < CALLER_ALONE && left > MIN_PARALLEL_SECONDS {
                (CALLER_ALONE - spent).as_secs_f64()
            } else {
                CHUNK.end
            };
            size = (size * 4).min((room / cost) as u64).max(1);
        }
    }
    None
}

/// Work that several threads share.
pub struct Shared {
    pub work: Work,
    pub record: Record,
    chunk: u64,
    chunks_per_step: u64,
    /// The step, and how many of its first jobs are done.
    first: (u64, u64),
    /// The number of threads that help.
    slots: AtomicU64,
    next: AtomicU64,
    done: AtomicU64,
    end: u64,
}

impl Shared {
    pub fn new(work: Work, record: Record, from: Progress, threads: usize) -> Self {
        let chunk = work.chunk.filter(|chunk| *chunk > 0).unwrap_or_else(|| chunk(&work, &from, threads));
        let chunks_per_step = work.jobs.div_ceil(chunk);
        let begin = from.step * chunks_per_step + from.job / chunk;
        Self {
            end: work.steps() * chunks_per_step,
            first: (from.step, from.job),
            slots: AtomicU64::new(0),
            next: AtomicU64::new(begin),
            done: AtomicU64::new(begin),
            work,
            record,
            chunk,
            chunks_per_step,
        }
    }

    /// Chunks that no thread has taken yet.
    pub fn left(&self) -> u64 {
        self.end.saturating_sub(self.next.load(Ordering::Relaxed))
    }

    /// Takes chunks until none is left. No more threads enter than the pool has.
    pub fn help(&self) {
        let mut state = self.work.state.clone();
        match &self.work.emitters {
            Some(emitters) => emitters.lend(&mut state, |state| self.help_in(state)),
            None => self.help_in(&mut state),
        }
    }

    fn help_in(&self, state: &mut State) {
        let slot = self.slots.fetch_add(1, Ordering::Relaxed);
        state.set_word(state::SLOT, slot);
        let Some(private_rows) = &self.work.private_rows else {
            state.set_word(state::ALONE, 0);
            self.take_chunks(state, slot == 0);
            return;
        };
        let own = private_rows.begin(state);
        if let Some(key) = self.take_chunks(state, slot == 0)
            && let Some(site) = own.merge(private_rows, &self.work.state)
        {
            *self.record.behind.lock() = Some(TrapRecord { key, site, words: [0; TRAP_WORDS] });
        }
    }

    /// Takes chunks. Returns the key of one of the jobs that it ran last. `notes`: may record how long the first chunk
    /// takes.
    fn take_chunks(&self, state: &mut State, notes: bool) -> Option<Key> {
        let mut last = None;
        loop {
            let chunk = self.next.fetch_add(1, Ordering::Relaxed);
            if chunk >= self.end {
                return last;
            }
            let step = chunk / self.chunks_per_step;
            if self.work.is_over(state, step) {
                // nothing from here on counts, but what still runs of earlier steps does
                self.next.fetch_max(self.end, Ordering::Relaxed);
                self.done.fetch_max(self.end, Ordering::Release);
                return last;
            }
            self.wait_for(step * self.chunks_per_step);
            let begin = chunk % self.chunks_per_step * self.chunk;
            let end = self.work.jobs.min(begin + self.chunk);
            let begin = if step == self.first.0 { begin.max(self.first.1) } else { begin };
            let began = (notes && last.is_none()).then(Instant::now);
            self.work.run(state, step, begin..end, &self.record);
            if let Some(began) = began {
                self.work.note(state, began.elapsed(), end - begin);
            }
            let element = begin * self.work.elements / self.work.jobs;
            last = Some(Key::new(self.work.ticks(step).end - 1, element));
            self.done.fetch_add(1, Ordering::Release);
        }
    }

    /// Waits until so many chunks are done, which other threads are running.
    fn wait_for(&self, chunks: u64) {
        let mut spins = 0u32;
        while self.done.load(Ordering::Acquire) < chunks {
            spins = spins.saturating_add(1);
            match spins {
                0..=200 => std::hint::spin_loop(),
                201..=2000 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(50)),
            }
        }
    }
}

/// Jobs per chunk.
fn chunk(work: &Work, from: &Progress, threads: usize) -> u64 {
    let shares = if work.steps() == 1 { SHARES } else { SHARES_OF_STEP };
    let fair = work.jobs as f64 / (threads as f64 * shares as f64);
    let size = (CHUNK.end / from.cost).min(fair).max(CHUNK.start / from.cost);
    let size = (size as u64).clamp(1, work.jobs.max(1));
    // If chunks have that many rows: whole cache lines even of one-byte rows, so that no two threads write one line.
    if size > 64 { size.next_multiple_of(64) } else { size }
}
