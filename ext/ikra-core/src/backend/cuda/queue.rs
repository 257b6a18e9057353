//! The queue of asynchronous launches: kernels that surely end, with deferred errors or none, over memory that is on
//! the device.
//!
//! Here: [`Queue`], one stream for all such launches, so that each launch sees the results of those before it. Its
//! parts are [`submission`] (how work gets to the stream), [`completion`] (how far the stream is) and [`retention`]
//! (what work holds until it is done). `docs/dev/queue.md` draws the states of a launch. Not here: which kernels are
//! queued ([`super::launch`]).

mod completion;
mod completion_flag;
mod launcher;
mod retention;
mod submission;
mod ticks;

pub use completion::{Length, Mark, Pending};
pub use ticks::Tick;

use super::driver::{Device, Event, Spread, Stream};
use super::status::CompletionSlot;
use super::storage::Block;
use crate::error::Result;
use crate::memory::buffer::DeviceMemory;
use completion::Completion;
use completion_flag::CompletionFlag;
use launcher::{Launcher, Step};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use retention::{Modules, PendingOf, RECENT_LAUNCHES, Retention, Work};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use submission::Submission;
use ticks::BatchDecision;

/// The queue; see the module.
pub struct Queue {
    device: Arc<Device>,
    line: OnceCell<Line>,
    /// Returns the pending work of memory, if it is of this backend.
    pending: PendingOf,
}

struct Line {
    stream: Arc<Stream>,
    flag: CompletionFlag,
    state: Mutex<State>,
}

/// Memory into which queued work will write.
pub struct Allocation {
    pub memory: Arc<dyn DeviceMemory>,
    /// The mark for which users outside the queue must wait.
    pub behind: Option<Arc<Mark>>,
}

/// The parts of a queue. One lock guards all three, because a launch changes them together: it is submitted, gets a
/// mark, and is held until the stream has passed that.
struct State {
    submission: Submission,
    completion: Completion,
    retention: Retention,
}

/// With fewer launches under way, the queue is short. With many more, the driver blocks its caller.
const MAX_SHORT_QUEUE: usize = 256;

impl State {
    fn new(launcher: Launcher) -> Self {
        Self {
            submission: Submission::new(launcher),
            completion: Completion::default(),
            retention: Retention::default(),
        }
    }
    fn flush(&mut self, stream: &Stream) -> Result<()> {
        self.submission.flush(stream)
    }
    fn close(&mut self, mark: &Arc<Mark>, stream: &Stream, device: &Arc<Device>) -> Result<Arc<Event>> {
        self.completion.close(mark, &mut self.submission, stream, device)
    }
    fn close_open(&mut self, stream: &Stream, device: &Arc<Device>) -> Result<()> {
        self.completion.close_open(&mut self.submission, stream, device)
    }
    fn mark(&mut self, length: Length, stream: &Stream, device: &Arc<Device>) -> Result<Arc<Mark>> {
        self.completion.mark(length, &mut self.submission, stream, device)
    }
    fn let_go_before(&mut self, total: u64, pending: PendingOf) {
        self.retention.let_go_before(total, &mut self.completion, pending);
    }
    fn sweep(&mut self, pending: PendingOf) -> Result<()> {
        self.retention.sweep(&mut self.completion, pending)
    }
    fn sweep_many(&mut self, pending: PendingOf) -> Result<()> {
        self.retention.sweep_many(&mut self.completion, pending)
    }
}

impl Queue {
    /// `pending`: returns the pending work of memory.
    pub fn new(device: Arc<Device>, pending: PendingOf) -> Self {
        Self { device, line: OnceCell::new(), pending }
    }

    fn line(&self) -> Result<&Line> {
        self.line.get_or_try_init(|| {
            let stream = Arc::new(Stream::new(&self.device)?);
            let state = Mutex::new(State::new(Launcher::new(&self.device, &stream)));
            Ok(Line { stream, flag: CompletionFlag::default(), state })
        })
    }

    /// Whether another launch could be queued without waiting for earlier ones. False if that is not known, because
    /// another thread is adding a launch.
    pub fn is_short(&self) -> bool {
        let state = self.line.get().and_then(|line| line.state.try_lock());
        state.is_some_and(|state| state.retention.len() < MAX_SHORT_QUEUE)
    }

    /// Queues work on the stream, and returns the mark behind it. `holds`: memory that the work uses, which is held
    /// until it is done. After an error, none of the work is under way.
    ///
    /// # Errors
    /// The error of `work`, or `Device`. The context must be current.
    pub fn add(
        &self,
        holds: Vec<Arc<dyn DeviceMemory>>,
        length: Length,
        work: impl FnOnce(&Stream) -> Result<()>,
    ) -> Result<Arc<Mark>> {
        self.add_making(holds, Modules::new(), length, None, |state, stream, _| {
            state.submission.drain()?;
            work(stream)
        })
    }

    /// As [`Queue::add`], for one run of a kernel.
    ///
    /// # Errors
    /// As [`Queue::add`].
    pub fn add_launch(
        &self,
        holds: Vec<Arc<dyn DeviceMemory>>,
        length: Length,
        code: Spread,
        args: Vec<u64>,
    ) -> Result<Arc<Mark>> {
        let little = length == Length::Little;
        let runs = Modules::from_iter([code.module.clone()]);
        self.add_making(holds, runs, length, None, |state, stream, _| {
            if !little {
                state.submission.drain()?;
            }
            state.submission.launch(Step::Launch(code, args), little, stream)
        })
    }

    /// Runs work on the stream and waits until it is done. So the caller itself holds the memory, and the work needs no
    /// event.
    ///
    /// # Errors
    /// As [`Queue::add`].
    pub fn run(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<()> {
        let line = self.line()?;
        let (queued, before) = {
            // the lock makes sure that launches are added one at a time
            let mut state = line.state.lock();
            state.close_open(&line.stream, &self.device)?;
            state.flush(&line.stream)?;
            state.submission.end_ticks(&line.stream)?;
            (work(&line.stream), state.retention.total())
        };
        // also after an error: part of the work may be under way
        let done = self.finish_line(line, before);
        queued.and(done)
    }

    /// Waits until the stream has passed a mark. Releases the launches before it.
    ///
    /// # Errors
    /// `Device`, also for earlier failures on the device.
    pub fn wait(&self, mark: &Arc<Mark>) -> Result<()> {
        if mark.reached.load(Ordering::Acquire) {
            return Ok(());
        }
        let event = match mark.event.get() {
            Some(event) => event.clone(),
            None => {
                // in a child of `fork`, a thread that does not exist there may hold the lock
                self.device.enter()?;
                let line = self.line()?;
                let mut state = line.state.lock();
                if state.completion.is_last(mark) {
                    state.flush(&line.stream)?;
                    if let Some(signal) = line.flag.signal(&line.stream, &self.device) {
                        // the stream has passed the mark when the signal is reached
                        state.completion.await_signal(mark);
                        let before = state.retention.total();
                        drop(state);
                        let reached = signal.is_reached();
                        // other threads that wait for this mark read it before they take the lock
                        mark.reached.store(reached, Ordering::Release);
                        state = line.state.lock();
                        state.completion.end_signal(mark);
                        if reached {
                            state.let_go_before(before, self.pending);
                            return Ok(());
                        }
                    }
                }
                state.close(mark, &line.stream, &self.device)?
            }
        };
        event.wait()?;
        let Some(line) = self.line.get() else { return Ok(()) };
        let mut state = line.state.lock();
        let State { completion, retention, .. } = &mut *state;
        retention.let_go_to(mark, completion, self.pending);
        Ok(())
    }

    /// As [`Queue::add`], for a kernel that may raise. The completion slot reports how it ended.
    ///
    /// # Errors
    /// As [`Queue::add`].
    pub fn add_with_slot(
        &self,
        holds: Vec<Arc<dyn DeviceMemory>>,
        slot: &Arc<CompletionSlot>,
        code: Spread,
        mut args: Vec<u64>,
    ) -> Result<Arc<Mark>> {
        let runs = Modules::from_iter([code.module.clone()]);
        let mark = self.add_making(holds, runs, Length::Any, Some(slot.clone()), |state, stream, _| {
            state.submission.drain()?;
            slot.reset(stream)?;
            code.launch(stream, &mut args)?;
            slot.copy_back(stream)
        })?;
        mark.event.get().into_iter().for_each(|event| slot.set_event(event.clone()));
        Ok(mark)
    }

    /// As [`Queue::add`], for work that may allocate memory, which it adds to its third argument to be held. If the
    /// work puts something on the stream, it must drain the launcher first.
    fn add_making(
        &self,
        mut holds: Vec<Arc<dyn DeviceMemory>>,
        code: Modules,
        length: Length,
        slot: Option<Arc<CompletionSlot>>,
        work: impl FnOnce(&mut State, &Stream, &mut Vec<Arc<dyn DeviceMemory>>) -> Result<()>,
    ) -> Result<Arc<Mark>> {
        let Line { stream, state, .. } = self.line()?;
        let mut state = state.lock();
        state.sweep_many(self.pending)?;
        let length = if slot.is_none() && state.retention.repeats(&holds) { Length::Little } else { length };
        if length == Length::Any {
            // threads that wait for earlier short launches must not wait for this one
            state.close_open(stream, &self.device)?;
        }
        state.submission.end_ticks(stream)?;
        let makes = holds.is_empty();
        let queued = work(&mut state, stream, &mut holds).and_then(|()| state.mark(length, stream, &self.device));
        match &queued {
            Ok(mark) => state.retention.add(Work { behind: mark.clone(), holds, makes, _code: code, slot }),
            Err(_) => {
                // the part that was queued before the error still uses the memory and the code
                if state.submission.drain().and_then(|()| stream.finish()).is_ok() {
                    let State { completion, retention, .. } = &mut *state;
                    retention.let_go_all(completion, self.pending);
                }
                drop((holds, code));
            }
        }
        queued
    }

    /// As [`Queue::add`], for a tick that may become one launch with those before it. Also returns whether it repeats
    /// the tick before it.
    ///
    /// # Errors
    /// As [`Queue::add`].
    pub fn add_tick(&self, holds: Vec<Arc<dyn DeviceMemory>>, length: Length, tick: Tick) -> Result<(Arc<Mark>, bool)> {
        let Line { stream, state, .. } = self.line()?;
        let mut state = state.lock();
        state.sweep_many(self.pending)?;
        let length = if state.retention.repeats(&holds) { Length::Little } else { length };
        if length == Length::Any {
            state.close_open(stream, &self.device)?;
        }
        let code = tick.modules().cloned().collect();
        let taken = state.submission.take(tick, stream, &self.device);
        let queued = taken.and_then(|decision| match state.retention.last_mark() {
            // the waiting batch is the last work, and holds the same memory
            Some(last) if decision == BatchDecision::Joined => Ok((last.clone(), decision)),
            _ => Ok((state.mark(length, stream, &self.device)?, decision)),
        });
        match queued {
            Ok((mark, decision)) => {
                if decision != BatchDecision::Joined {
                    let makes = holds.is_empty();
                    state.retention.add(Work { behind: mark.clone(), holds, makes, _code: code, slot: None });
                }
                Ok((mark, decision != BatchDecision::First))
            }
            Err(error) => {
                // the part that was queued before the error still uses the memory and the code
                let _ = stream.finish();
                drop((holds, code));
                Err(error)
            }
        }
    }

    /// Releases launches that are done.
    ///
    /// # Errors
    /// `Device`.
    pub fn sweep(&self) -> Result<()> {
        let Some(line) = self.line.get() else { return Ok(()) };
        let mut state = line.state.lock();
        state.close_open(&line.stream, &self.device)?;
        state.sweep(self.pending)
    }

    /// Allocates memory into which queued work will write. The queue holds new memory until it is safe to use
    /// elsewhere, because dropped memory may be reused at once.
    ///
    /// # Errors
    /// `Memory`, `Device`. The context must be current.
    pub fn allocate<T: DeviceMemory>(&self, bytes: usize, own: impl FnOnce(Block) -> Arc<T>) -> Result<Allocation> {
        if let Some(block) = Block::again(&self.device, bytes) {
            return Ok(Allocation { memory: own(block), behind: None });
        }
        if let Some(room) = self.held_alone(bytes)? {
            return Ok(room);
        }
        let mut made: Option<Arc<dyn DeviceMemory>> = None;
        let mark = self.add_making(Vec::new(), Modules::new(), Length::Little, None, |_, stream, holds| {
            // The allocation is ordered by the stream, so other users of the memory wait for its mark.
            let memory = made.insert(own(Block::new(&self.device, stream, bytes)?));
            holds.push(memory.clone());
            Ok(())
        })?;
        Ok(Allocation { memory: made.expect("the work was done"), behind: Some(mark) })
    }

    /// Memory of so many bytes that only the newest launches hold. Later work on the queue may use it, because it runs
    /// after those. So a loop that writes an array again and again needs little memory, however far it is ahead of the
    /// device.
    fn held_alone(&self, bytes: usize) -> Result<Option<Allocation>> {
        let Some(line) = self.line.get() else { return Ok(None) };
        let mut state = line.state.lock();
        state.sweep_many(self.pending)?;
        let fits = |memory: &&Arc<dyn DeviceMemory>| memory.bytes() == bytes && state.retention.has_alone(memory, 0);
        let found = state.retention.last().rev().find_map(|work| work.holds.iter().find(fits)).cloned();
        Ok(found.map(|memory| {
            let behind = state.retention.last_use(&memory);
            Allocation { memory, behind }
        }))
    }

    /// Whether the memory has no owners but `holders` and the newest launches. If so, later users outside the queue
    /// will also wait for the launches that read it.
    ///
    /// # Errors
    /// `Device`.
    pub fn has_alone(&self, memory: &Arc<dyn DeviceMemory>, holders: usize, pending: &Pending) -> Result<bool> {
        let Some(line) = self.line.get() else { return Ok(Arc::strong_count(memory) == holders) };
        let mut state = line.state.lock();
        state.sweep_many(self.pending)?;
        if !state.retention.has_alone(memory, holders) && state.retention.len() > RECENT_LAUNCHES {
            // launches before those may be done
            state.sweep(self.pending)?;
        }
        if !state.retention.has_alone(memory, holders) {
            return Ok(false);
        }
        if let Some(behind) = state.retention.last_use(memory) {
            pending.set(behind);
        }
        Ok(true)
    }

    /// Waits for all launches under way, and releases them.
    ///
    /// # Errors
    /// `Device`.
    pub fn finish(&self) -> Result<()> {
        let Some(line) = self.line.get() else { return Ok(()) };
        // launches that are queued from now on are not released
        let before = {
            let mut state = line.state.lock();
            state.close_open(&line.stream, &self.device)?;
            state.flush(&line.stream)?;
            state.retention.total()
        };
        self.finish_line(line, before)
    }

    /// Waits for all work on the stream. Releases the first `before` launches; those that are queued meanwhile stay.
    fn finish_line(&self, line: &Line, before: u64) -> Result<()> {
        line.stream.finish()?;
        line.state.lock().let_go_before(before, self.pending);
        Ok(())
    }
}
