//! The queue of asynchronous launches: kernels that surely end, with deferred errors or none, over memory that is on
//! the device.
//!
//! Here: [`Queue`], one stream for all such launches, so that each launch sees the results of those before it. The
//! queue holds the memory of launches that are under way, and [`Pending`] says when other streams may access it. Not
//! here: which kernels are queued ([`super::launch`]), which ticks wait to become one launch ([`ticks`]), and the
//! thread that passes short launches to the driver ([`launcher`]).

use super::driver::{Device, Event, Module, Stream};
use super::status::CompletionSlot;
use super::storage::Block;
use crate::error::{Error, Result};
use crate::memory::buffer::DeviceMemory;
use completion_flag::CompletionFlag;
use launcher::{Launcher, Step};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use ticks::{BatchDecision, Ticks};
pub use ticks::{Spread, Tick};

mod completion_flag;
mod launcher;
mod ticks;

/// A mark: a place in the stream behind some work. Behind short work it gets an event only when a thread waits for it,
/// or when it is behind many launches. Until then, launches that are queued later move it back.
pub struct Mark {
    /// Marks that are later in the stream have higher numbers.
    number: u64,
    event: OnceCell<Arc<Event>>,
    /// Whether the completion flag says that the stream has passed the mark, so that it needs no event.
    reached: AtomicBool,
}

impl Mark {
    /// Whether the stream is known to have passed the mark.
    ///
    /// # Errors
    /// `Device`, also for failures of earlier work.
    fn is_past(&self) -> Result<bool> {
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

/// The queue; see the module.
pub struct Queue {
    device: Arc<Device>,
    line: OnceCell<Line>,
    /// Returns the pending work of memory, if it is of this backend.
    pending: fn(&dyn DeviceMemory) -> Option<&Pending>,
}

struct Line {
    stream: Arc<Stream>,
    flag: CompletionFlag,
    state: Mutex<State>,
}

/// Memory into which queued work will write.
pub struct Room {
    pub memory: Arc<dyn DeviceMemory>,
    /// The mark for which users outside the queue must wait.
    pub behind: Option<Arc<Mark>>,
}

/// The code that a launch may run.
type Modules = SmallVec<[Arc<Module>; 2]>;

/// A launch that is under way.
struct Work {
    behind: Arc<Mark>,
    /// Memory that is held until the launch is done.
    holds: Vec<Arc<dyn DeviceMemory>>,
    /// Whether it uses no earlier memory, such as work that only allocates. A later launch is then never taken for a
    /// repetition of it.
    makes: bool,
    /// Code that is held until the launch is done, because all other owners may drop it.
    _code: Modules,
    /// Where the launch reports how it ended, if it may raise.
    slot: Option<Arc<CompletionSlot>>,
}

impl Drop for Work {
    /// Runs when the launch is done, or the device is lost.
    fn drop(&mut self) {
        if let Some(slot) = &self.slot
            && self.behind.is_past().unwrap_or(false)
        {
            slot.complete();
        }
    }
}

struct State {
    /// The launches under way, in the order of the stream.
    under_way: VecDeque<Work>,
    /// How many launches were queued and released before those.
    gone: u64,
    /// Bytes of memory that they hold.
    held: usize,
    /// The mark behind the last launches, and how many share it, if it has no event yet.
    open: Option<(Arc<Mark>, usize)>,
    /// Marks at which the stream writes the completion flag. A thread that waits for one must not wait for long work
    /// behind it.
    signalled: SmallVec<[Arc<Mark>; 1]>,
    /// How many launches there may be before the driver is asked which ones are done.
    patience: usize,
    /// How many marks were made.
    marks: u64,
    /// Events that are not in use.
    idle: Vec<Arc<Event>>,
    /// The newest work, if it is ticks that later ones may join.
    ticks: Ticks,
    /// Passes launches to the driver. It has nothing to do while ticks wait.
    launcher: Launcher,
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
/// How many of the newest launches are searched for memory that only they hold.
const RECENT_LAUNCHES: usize = 8;
/// At least so many launches are queued before the driver is asked again which ones are done.
const MIN_LAUNCHES_BETWEEN_SWEEPS: usize = 32;
/// With fewer launches under way, the queue is short. With many more, the driver blocks its caller.
const MAX_SHORT_QUEUE: usize = 256;
/// From how many earlier launches a new launch takes over held memory. Two, for loops of two alternating calls.
const MAX_TAKEN_OVER_LAUNCHES: usize = 2;
/// If launches hold more bytes, the driver is asked which ones are done.
const MAX_FINISHED_BYTES: usize = 16 << 20;

impl State {
    fn new(launcher: Launcher) -> Self {
        Self {
            under_way: VecDeque::new(),
            gone: 0,
            held: 0,
            open: None,
            signalled: SmallVec::new(),
            patience: 0,
            marks: 0,
            idle: Vec::new(),
            ticks: Ticks::default(),
            launcher,
        }
    }
    /// Whether a mark is behind all queued work.
    fn is_last(&self, mark: &Arc<Mark>) -> bool {
        self.open.as_ref().is_some_and(|(open, _)| Arc::ptr_eq(open, mark))
    }
    /// How many launches were queued so far.
    fn total(&self) -> u64 {
        self.gone + self.under_way.len() as u64
    }
    /// The newest launches.
    fn last(&self) -> impl DoubleEndedIterator<Item = &Work> {
        self.under_way.range(self.under_way.len().saturating_sub(RECENT_LAUNCHES)..)
    }
    /// Whether the memory has no owners but `holders` and the newest launches.
    fn has_alone(&self, memory: &Arc<dyn DeviceMemory>, holders: usize) -> bool {
        let held = |work: &Work| work.holds.iter().filter(|other| Arc::ptr_eq(other, memory)).count();
        Arc::strong_count(memory) == holders + self.last().map(held).sum::<usize>()
    }
    /// The mark behind the last of the newest launches that uses the memory. Only that launch holds it from now on.
    fn last_use(&mut self, memory: &Arc<dyn DeviceMemory>) -> Option<Arc<Mark>> {
        let mut behind = None;
        for work in self.under_way.iter_mut().rev().take(RECENT_LAUNCHES) {
            if behind.is_some() {
                let before = work.holds.len();
                work.holds.retain(|other| !Arc::ptr_eq(other, memory));
                self.held -= (before - work.holds.len()) * memory.bytes();
            } else if work.holds.iter().any(|other| Arc::ptr_eq(other, memory)) {
                behind = Some(work.behind.clone());
            }
        }
        behind
    }
    /// Whether a launch that uses this memory repeats the last one's work, as in a loop of calls. If so, a thread that
    /// waits for the last one may wait for both.
    fn repeats(&self, holds: &[Arc<dyn DeviceMemory>]) -> bool {
        let is_held = |memory: &Arc<dyn DeviceMemory>| holds.iter().any(|other| Arc::ptr_eq(other, memory));
        self.under_way.back().is_some_and(|last| !last.makes && last.holds.iter().all(is_held))
    }
    fn add(&mut self, work: Work) {
        // the new launch runs after those before it, so it can hold for them the memory that it uses, too
        let mut gone = 0;
        for before in self.under_way.iter_mut().rev().take(MAX_TAKEN_OVER_LAUNCHES) {
            before.holds.retain(|memory| {
                let is_held = work.holds.iter().any(|other| Arc::ptr_eq(other, memory));
                gone += if is_held { memory.bytes() } else { 0 };
                !is_held
            });
        }
        self.held -= gone;
        self.held += bytes(&work.holds);
        self.under_way.push_back(work);
    }
    /// How many launches are before the mark that is behind launch `at`.
    fn before(&self, at: usize) -> usize {
        let mark = &self.under_way[at].behind;
        at + self.under_way.range(at..).take_while(|work| Arc::ptr_eq(&work.behind, mark)).count()
    }
    /// Releases the first launches, which are done and all before one mark. Records in their memory that the stream has
    /// passed their marks, and keeps their events for reuse.
    fn let_go(&mut self, count: usize, pending: fn(&dyn DeviceMemory) -> Option<&Pending>) {
        let mut last: Option<Arc<Mark>> = None;
        for mut work in self.under_way.drain(..count) {
            if let Some(slot) = work.slot.take() {
                slot.complete();
            }
            for memory in &work.holds {
                self.held -= memory.bytes();
                if let Some(pending) = pending(&**memory) {
                    pending.passed(&work.behind);
                }
            }
            if last.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &work.behind)) {
                let event = work.behind.event.get().filter(|_| self.idle.len() < MAX_IDLE_EVENTS);
                self.idle.extend(event.cloned());
                last = Some(work.behind.clone());
            }
            // dropping device memory only records that it is free
        }
        self.gone += count as u64;
        self.patience = self.under_way.len() + MIN_LAUNCHES_BETWEEN_SWEEPS;
    }
    /// Releases those of the first `total` launches, ever queued, that are still held.
    fn let_go_before(&mut self, total: u64, pending: fn(&dyn DeviceMemory) -> Option<&Pending>) {
        let known = total.saturating_sub(self.gone) as usize;
        self.let_go(known, pending);
    }
    /// Puts all queued work on the stream, except allocations, whose order does not matter.
    fn flush(&mut self, stream: &Stream) -> Result<()> {
        self.launcher.drain()?;
        self.ticks.flush(stream)
    }
    /// An event for a mark, reused or new.
    fn event(&mut self, device: &Arc<Device>) -> Result<Arc<Event>> {
        let free = self.idle.iter().position(|event| Arc::strong_count(event) == 1);
        match free {
            Some(at) => Ok(self.idle.swap_remove(at)),
            None => Ok(Arc::new(Event::without_time(device)?)),
        }
    }
    /// Records an event for a mark behind all queued work, unless it has one.
    fn close(&mut self, mark: &Arc<Mark>, stream: &Stream, device: &Arc<Device>) -> Result<Arc<Event>> {
        // the launcher may be about to set the event
        self.flush(stream)?;
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
    fn close_open(&mut self, stream: &Stream, device: &Arc<Device>) -> Result<()> {
        for mark in std::mem::take(&mut self.signalled) {
            self.close(&mark, stream, device)?;
        }
        let Some((open, _)) = self.open.take() else { return Ok(()) };
        if Arc::strong_count(&open) == 1 {
            // no thread can wait for this mark: the launches before it are released
            return Ok(());
        }
        self.close(&open, stream, device).map(drop)
    }
    /// The mark behind the work that was just queued.
    fn mark(&mut self, length: Length, stream: &Stream, device: &Arc<Device>) -> Result<Arc<Mark>> {
        let (mark, count) = self.open.take().unwrap_or_else(|| {
            self.marks += 1;
            (Arc::new(Mark { number: self.marks, event: OnceCell::new(), reached: AtomicBool::new(false) }), 0)
        });
        self.open = Some((mark.clone(), count + 1));
        if length == Length::Any {
            self.close(&mark, stream, device)?;
        } else if count + 1 == MAX_WORK_PER_EVENT {
            self.open = None;
            self.ticks.flush(stream)?;
            let event = self.event(device)?;
            self.launch(Step::Record(mark.clone(), event), false, stream)?;
        }
        Ok(mark)
    }
    /// Runs a step: on the launcher's thread if that is awake, else here.
    fn launch(&mut self, step: Step, row: bool, stream: &Stream) -> Result<()> {
        self.launcher.leave(step, row).map_or(Ok(()), |step| step.run(stream))
    }
    /// Releases launches that are done. If the last one is, all are, and the driver is asked only once.
    fn sweep(&mut self, pending: fn(&dyn DeviceMemory) -> Option<&Pending>) -> Result<()> {
        let Some(last) = self.under_way.back() else { return Ok(()) };
        let mut done = if last.behind.is_past()? { self.under_way.len() } else { 0 };
        while let Some(work) = self.under_way.get(done)
            && work.behind.is_past()?
        {
            done = self.before(done);
        }
        self.let_go(done, pending);
        Ok(())
    }
    /// Releases launches that are done, before more are queued. Asking the driver takes half as long as a launch. So it
    /// is asked once for many launches, and only whether the first half is done. Those may hold memory for longer than
    /// necessary, if it is not much.
    fn sweep_many(&mut self, pending: fn(&dyn DeviceMemory) -> Option<&Pending>) -> Result<()> {
        // the last launch has probably not ended
        if self.held > MAX_FINISHED_BYTES
            && self.held - self.under_way.back().map_or(0, |last| bytes(&last.holds)) > MAX_FINISHED_BYTES
        {
            return self.sweep(pending);
        }
        let many = self.under_way.len();
        if many < self.patience.max(MIN_LAUNCHES_BETWEEN_SWEEPS) {
            return Ok(());
        }
        let half = many / 2;
        let done = if self.under_way[half].behind.is_past()? { self.before(half) } else { 0 };
        self.let_go(done, pending);
        Ok(())
    }
}

fn bytes(memories: &[Arc<dyn DeviceMemory>]) -> usize {
    memories.iter().map(|memory| memory.bytes()).sum()
}

impl Queue {
    /// `pending`: returns the pending work of memory.
    pub fn new(device: Arc<Device>, pending: fn(&dyn DeviceMemory) -> Option<&Pending>) -> Self {
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
        state.is_some_and(|state| state.under_way.len() < MAX_SHORT_QUEUE)
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
            state.launcher.drain()?;
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
                state.launcher.drain()?;
            }
            state.launch(Step::Launch(code, args), little, stream)
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
            state.ticks.end(&line.stream)?;
            (work(&line.stream), state.total())
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
                if state.is_last(mark) {
                    state.flush(&line.stream)?;
                    if let Some(signal) = line.flag.signal(&line.stream, &self.device) {
                        // Later work gets another mark. The stream has passed this one when the signal is reached.
                        state.open = None;
                        state.signalled.push(mark.clone());
                        let before = state.total();
                        drop(state);
                        let reached = signal.is_reached();
                        // other threads that wait for this mark read it before they take the lock
                        mark.reached.store(reached, Ordering::Release);
                        state = line.state.lock();
                        state.signalled.retain(|other| !Arc::ptr_eq(other, mark));
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
        if let Some(at) = state.under_way.iter().position(|work| Arc::ptr_eq(&work.behind, mark)) {
            let done = state.before(at);
            state.let_go(done, self.pending);
        }
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
            state.launcher.drain()?;
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
        let length = if slot.is_none() && state.repeats(&holds) { Length::Little } else { length };
        if length == Length::Any {
            // threads that wait for earlier short launches must not wait for this one
            state.close_open(stream, &self.device)?;
        }
        state.ticks.end(stream)?;
        let makes = holds.is_empty();
        let queued = work(&mut state, stream, &mut holds).and_then(|()| state.mark(length, stream, &self.device));
        match &queued {
            Ok(mark) => state.add(Work { behind: mark.clone(), holds, makes, _code: code, slot }),
            Err(_) => {
                // the part that was queued before the error still uses the memory and the code
                if state.launcher.drain().and_then(|()| stream.finish()).is_ok() {
                    let all = state.under_way.len();
                    state.let_go(all, self.pending);
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
        let length = if state.repeats(&holds) { Length::Little } else { length };
        if length == Length::Any {
            state.close_open(stream, &self.device)?;
        }
        state.launcher.drain()?;
        let code = tick.modules().cloned().collect();
        let queued = state.ticks.take(tick, stream, &self.device).and_then(|decision| match state.under_way.back() {
            // the waiting batch is the last work, and holds the same memory
            Some(last) if decision == BatchDecision::Joined => Ok((last.behind.clone(), decision)),
            _ => Ok((state.mark(length, stream, &self.device)?, decision)),
        });
        match queued {
            Ok((mark, decision)) => {
                if decision != BatchDecision::Joined {
                    let makes = holds.is_empty();
                    state.add(Work { behind: mark.clone(), holds, makes, _code: code, slot: None });
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
    pub fn allocate<T: DeviceMemory>(&self, bytes: usize, own: impl FnOnce(Block) -> Arc<T>) -> Result<Room> {
        if let Some(block) = Block::again(&self.device, bytes) {
            return Ok(Room { memory: own(block), behind: None });
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
        Ok(Room { memory: made.expect("the work was done"), behind: Some(mark) })
    }

    /// Memory of so many bytes that only the newest launches hold. Later work on the queue may use it, because it runs
    /// after those. So a loop that writes an array again and again needs little memory, however far it is ahead of the
    /// device.
    fn held_alone(&self, bytes: usize) -> Result<Option<Room>> {
        let Some(line) = self.line.get() else { return Ok(None) };
        let mut state = line.state.lock();
        state.sweep_many(self.pending)?;
        let fits = |memory: &&Arc<dyn DeviceMemory>| memory.bytes() == bytes && state.has_alone(memory, 0);
        let found = state.last().rev().find_map(|work| work.holds.iter().find(fits)).cloned();
        Ok(found.map(|memory| {
            let behind = state.last_use(&memory);
            Room { memory, behind }
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
        if !state.has_alone(memory, holders) && state.under_way.len() > RECENT_LAUNCHES {
            // launches before those may be done
            state.sweep(self.pending)?;
        }
        if !state.has_alone(memory, holders) {
            return Ok(false);
        }
        if let Some(behind) = state.last_use(memory) {
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
            state.total()
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
