//! How far the stream is: marks behind queued work, and the events and signals by which they are found passed.
//!
//! Here: [`Mark`], [`Pending`], [`Completion`]. Not here: what is queued ([`super::submission`]), and what is held
//! until a mark is passed ([`super::retention`]).
//!
//! Invariant: a mark that a thread can wait for is open (no work is behind it that the thread must not wait for), has a
//! signal, or has an event.

use super::Queue;
use super::launcher::Step;
use super::submission::Submission;

use crate::backend::cuda::driver::{Device, Event, Stream};
use crate::error::{Error, Result};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A mark: a place in the stream behind some work. Behind short work it gets an event only when a thread waits for it,
/// or when it is behind many launches. Until then, launches that are queued later move it back.
pub struct Mark {
    /// Marks that are later in the stream have higher numbers.
    number: u64,
    pub(super) event: OnceCell<Arc<Event>>,
    /// Whether the completion flag says that the stream has passed the mark, so that it needs no event.
    pub(super) reached: AtomicBool,
}

impl Mark {
    /// Whether the stream is known to have passed the mark.
    ///
    /// # Errors
    /// `Device`, also for failures of earlier work.
    pub(super) fn is_past(&self) -> Result<bool> {
        if self.reached.load(Ordering::Acquire) {
            return Ok(true);
        }
        self.event.get().map_or(Ok(false), |event| event.is_past())
    }
}

/// The mark behind the last queued work that uses some memory. None: the stream has passed it.
#[derive(Default)]
pub struct Pending(Mutex<Option<Arc<Mark>>>);

impl Pending {
    /// Blocks until all queued work on the memory is done. Releases what that work and earlier work hold.
    ///
    /// # Errors
    /// `Device`, also for earlier failures on the device.
    pub fn wait(&self, queue: &Queue) -> Result<()> {
        let mark = self.0.lock().clone();
        let Some(mark) = mark else { return Ok(()) };
        queue.wait(&mark)?;
        self.passed(&mark);
        Ok(())
    }
    /// Records that the stream has passed a mark, and so all marks before it.
    pub fn passed(&self, mark: &Mark) {
        self.0.lock().take_if(|other| other.number <= mark.number);
    }
    pub fn set(&self, mark: Arc<Mark>) {
        *self.0.lock() = Some(mark);
    }
}

/// The expected duration of work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Microseconds: a thread that waits for it may also wait for a few more such launches.
    Little,
    Any,
}

/// At most so many short launches share one event.
const MAX_WORK_PER_EVENT: usize = 16;
/// How many unused events are kept at most.
const MAX_IDLE_EVENTS: usize = 256;

/// The marks of a stream that are not passed yet.
#[derive(Default)]
pub(super) struct Completion {
    /// The mark behind the last launches, and how many share it, if it has no event yet.
    open: Option<(Arc<Mark>, usize)>,
    /// Marks at which the stream writes the completion flag. A thread that waits for one must not wait for long work
    /// behind it.
    signalled: SmallVec<[Arc<Mark>; 1]>,
    /// How many marks were made.
    marks: u64,
    /// Events that are not in use.
    idle: Vec<Arc<Event>>,
}

impl Completion {
    /// Whether a mark is behind all queued work.
    pub fn is_last(&self, mark: &Arc<Mark>) -> bool {
        self.open.as_ref().is_some_and(|(open, _)| Arc::ptr_eq(open, mark))
    }
    /// Notes that the stream signals when it passes this mark, which was the last. Later work gets another mark.
    pub fn await_signal(&mut self, mark: &Arc<Mark>) {
        self.open = None;
        self.signalled.push(mark.clone());
    }
    /// Notes that nobody waits for the mark's signal any more.
    pub fn end_signal(&mut self, mark: &Arc<Mark>) {
        self.signalled.retain(|other| !Arc::ptr_eq(other, mark));
    }
    /// An event for a mark, reused or new.
    fn event(&mut self, device: &Arc<Device>) -> Result<Arc<Event>> {
        let free = self.idle.iter().position(|event| Arc::strong_count(event) == 1);
        match free {
            Some(at) => Ok(self.idle.swap_remove(at)),
            None => Ok(Arc::new(Event::without_time(device)?)),
        }
    }
    /// Keeps the event of a mark that the stream has passed.
    pub fn reuse(&mut self, mark: &Mark) {
        let event = mark.event.get().filter(|_| self.idle.len() < MAX_IDLE_EVENTS);
        self.idle.extend(event.cloned());
    }
    /// Records an event for a mark behind all queued work, unless it has one.
    pub fn close(
        &mut self,
        mark: &Arc<Mark>,
        submission: &mut Submission,
        stream: &Stream,
        device: &Arc<Device>,
    ) -> Result<Arc<Event>> {
        // the launcher may be about to set the event
        submission.flush(stream)?;
        let event = mark.event.get_or_try_init(|| {
            let event = self.event(device)?;
            event.record(stream)?;
            Ok::<_, Error>(event)
        });
        let event = event?.clone();
        if self.is_last(mark) {
            self.open = None;
        }
        Ok(event)
    }
    /// Closes the mark that has no event yet, and those whose signal is not reached, so that later work is not before
    /// them.
    pub fn close_open(&mut self, submission: &mut Submission, stream: &Stream, device: &Arc<Device>) -> Result<()> {
        for mark in std::mem::take(&mut self.signalled) {
            self.close(&mark, submission, stream, device)?;
        }
        let Some((open, _)) = self.open.take() else { return Ok(()) };
        if Arc::strong_count(&open) == 1 {
            // no thread can wait for this mark: the launches before it are released
            return Ok(());
        }
        self.close(&open, submission, stream, device).map(drop)
    }
    /// The mark behind the work that was just queued.
    pub fn mark(
        &mut self,
        length: Length,
        submission: &mut Submission,
        stream: &Stream,
        device: &Arc<Device>,
    ) -> Result<Arc<Mark>> {
        let (mark, count) = self.open.take().unwrap_or_else(|| {
            self.marks += 1;
            (Arc::new(Mark { number: self.marks, event: OnceCell::new(), reached: AtomicBool::new(false) }), 0)
        });
        self.open = Some((mark.clone(), count + 1));
        if length == Length::Any {
            self.close(&mark, submission, stream, device)?;
        } else if count + 1 == MAX_WORK_PER_EVENT {
            self.open = None;
            submission.flush_ticks(stream)?;
            let event = self.event(device)?;
            submission.launch(Step::Record(mark.clone(), event), false, stream)?;
        }
        Ok(mark)
    }
}
