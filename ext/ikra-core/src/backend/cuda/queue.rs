//! Launches that nobody waits for: kernels that surely end, and raise nothing or later, over memory that is on the device already.
//!
//! Here: [`Queue`], one stream for all of them, so that each finds what those before it made; who holds the memory of what is under
//! way, and when others may look at it ([`Pending`]). Not here: which kernels these are ([`super::launch`]), which of them wait to become one launch ([`ticks`]), and
//! the thread that gives little ones to the driver ([`launcher`]).

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

/// A place in the stream, behind some work. Where that is little, there is no event before somebody asks, or the place is behind many: then it is behind what was queued meanwhile, too.
pub struct Mark {
    /// Those that are behind more have a higher one.
    number: u64,
    event: OnceCell<Arc<Event>>,
    /// The completion flag says that the stream has passed it, so that it needs no event.
    reached: AtomicBool,
}

impl Mark {
    /// Whether it is known that the stream has passed it.
    ///
    /// # Errors
    /// `Device`, also for what failed on the device before it.
    fn is_past(&self) -> Result<bool> {
        if self.reached.load(Ordering::Acquire) {
            return Ok(true);
        }
        self.event.get().map_or(Ok(false), |event| event.is_past())
    }
}

/// What is behind the last work of the queue on some memory. It is passed, or will be.
#[derive(Default)]
pub struct Pending(Mutex<Option<Arc<Mark>>>);

impl Pending {
    /// Blocks until the memory holds what it is to hold. What the queue did before that is let go.
    ///
    /// # Errors
    /// `Device`, also for what failed on the device since.
    pub fn wait(&self, queue: &Queue) -> Result<()> {
        let mark = self.0.lock().clone();
        let Some(mark) = mark else { return Ok(()) };
        queue.wait(&mark)?;
        self.passed(&mark);
        Ok(())
    }
    /// That is passed, and so is all before it.
    pub fn passed(&self, mark: &Mark) {
        self.0.lock().take_if(|other| other.number <= mark.number);
    }
    pub fn set(&self, mark: Arc<Mark>) {
        *self.0.lock() = Some(mark);
    }
}

/// See the module.
pub struct Queue {
    device: Arc<Device>,
    line: OnceCell<Line>,
    /// What memory waits for.
    pending: fn(&dyn DeviceMemory) -> Option<&Pending>,
}

struct Line {
    stream: Arc<Stream>,
    flag: CompletionFlag,
    state: Mutex<State>,
}

/// Memory for what the queue is to make.
pub struct Room {
    pub memory: Arc<dyn DeviceMemory>,
    /// What others than the queue have to wait for.
    pub behind: Option<Arc<Mark>>,
}

/// Code that a launch may run.
type Modules = SmallVec<[Arc<Module>; 2]>;

/// A launch that is under way.
struct Work {
    behind: Arc<Mark>,
    /// Until the launch is done.
    holds: Vec<Arc<dyn DeviceMemory>>,
    /// It uses nothing that was there before, as where memory is only made: no other does the same work once more.
    makes: bool,
    /// The same of the code that runs: nobody else may have it any more.
    _code: Modules,
    /// Says how it ended, if it may raise.
    slot: Option<Arc<CompletionSlot>>,
}

impl Drop for Work {
    /// When it is done, or the device is lost.
    fn drop(&mut self) {
        if let Some(slot) = &self.slot
            && self.behind.is_past().unwrap_or(false)
        {
            slot.complete();
        }
    }
}

struct State {
    /// In the stream's order: behind each launch, and the memory that it uses.
    under_way: VecDeque<Work>,
    /// How many were before those.
    gone: u64,
    /// Bytes that they hold.
    held: usize,
    /// Behind the last of them, which are so many, if it has no event yet.
    open: Option<(Arc<Mark>, usize)>,
    /// Marks at which the stream writes the completion flag. A wait for one of them must not wait for long work behind it.
    signalled: SmallVec<[Arc<Mark>; 1]>,
    /// How many there may be before the driver is asked which are done.
    patience: usize,
    /// How many marks there were.
    marks: u64,
    /// Events that nobody waits for any more.
    idle: Vec<Arc<Event>>,
    /// The last work, where it is ticks that others may join.
    ticks: Ticks,
    /// Has nothing to do while ticks wait.
    launcher: Launcher,
}

/// How long work is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Microseconds: who waits for it may as well wait for a few more such.
    Little,
    Any,
}

/// Launches of little work, at most, behind which one event is recorded.
const MAX_WORK_PER_EVENT: usize = 16;
/// Events, at most, that are kept for reuse.
const MAX_IDLE_EVENTS: usize = 256;
/// How many of the newest launches are searched for memory that they alone hold.
const RECENT_LAUNCHES: usize = 8;
/// Launches, at least, that are queued between two questions to the driver which are done.
const MIN_LAUNCHES_BETWEEN_SWEEPS: usize = 32;
/// Launches under way up to which the queue is short: a driver with many more blocks its caller.
const MAX_SHORT_QUEUE: usize = 256;
/// Launches, at most, whose memory a new launch takes over: two, for loops of two calls that take turns.
const MAX_TAKEN_OVER_LAUNCHES: usize = 2;
/// Bytes, at most, that launches hold before the driver is asked which of them are done.
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
    /// Whether a mark is behind all that is queued.
    fn is_last(&self, mark: &Arc<Mark>) -> bool {
        self.open.as_ref().is_some_and(|(open, _)| Arc::ptr_eq(open, mark))
    }
    /// How many were queued so far.
    fn total(&self) -> u64 {
        self.gone + self.under_way.len() as u64
    }
    /// The launches queued last.
    fn last(&self) -> impl DoubleEndedIterator<Item = &Work> {
        self.under_way.range(self.under_way.len().saturating_sub(RECENT_LAUNCHES)..)
    }
    /// Whether nobody has memory but so many holders and the launches queued last.
    fn has_alone(&self, memory: &Arc<dyn DeviceMemory>, holders: usize) -> bool {
        let held = |work: &Work| work.holds.iter().filter(|other| Arc::ptr_eq(other, memory)).count();
        Arc::strong_count(memory) == holders + self.last().map(held).sum::<usize>()
    }
    /// What is behind the last of these launches that uses memory. That one holds it for those before from now on.
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
    /// Whether a launch that uses such memory does the last one's work once more, as a loop of calls does: whoever waits for the one waits for the other.
    fn repeats(&self, holds: &[Arc<dyn DeviceMemory>]) -> bool {
        let is_held = |memory: &Arc<dyn DeviceMemory>| holds.iter().any(|other| Arc::ptr_eq(other, memory));
        self.under_way.back().is_some_and(|last| !last.makes && last.holds.iter().all(is_held))
    }
    fn add(&mut self, work: Work) {
        // it comes behind those before it, and holds for them what it uses, too
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
    /// How many are before the mark that is behind one of them.
    fn before(&self, at: usize) -> usize {
        let mark = &self.under_way[at].behind;
        at + self.under_way.range(at..).take_while(|work| Arc::ptr_eq(&work.behind, mark)).count()
    }
    /// Lets go the first so many, which are done: all that are before a mark. Memory that outlives its launch waits for nothing any more, and events are free.
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
            // dropping memory only notes that it is free
        }
        self.gone += count as u64;
        self.patience = self.under_way.len() + MIN_LAUNCHES_BETWEEN_SWEEPS;
    }
    /// The same of those of the first so many, since ever, that are left.
    fn let_go_before(&mut self, total: u64, pending: fn(&dyn DeviceMemory) -> Option<&Pending>) {
        let known = total.saturating_sub(self.gone) as usize;
        self.let_go(known, pending);
    }
    /// All that was queued is on the stream, but for memory, which has no order.
    fn flush(&mut self, stream: &Stream) -> Result<()> {
        self.launcher.drain()?;
        self.ticks.flush(stream)
    }
    /// An event for a mark.
    fn event(&mut self, device: &Arc<Device>) -> Result<Arc<Event>> {
        let free = self.idle.iter().position(|event| Arc::strong_count(event) == 1);
        match free {
            Some(at) => Ok(self.idle.swap_remove(at)),
            None => Ok(Arc::new(Event::without_time(device)?)),
        }
    }
    /// Gives a mark its event behind all that is queued, if it has none.
    fn close(&mut self, mark: &Arc<Mark>, stream: &Stream, device: &Arc<Device>) -> Result<Arc<Event>> {
        // which may be what the launcher is about to do
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
    /// The same of those that are open, or whose signal is not reached yet: what is queued from now on is behind them.
    fn close_open(&mut self, stream: &Stream, device: &Arc<Device>) -> Result<()> {
        for mark in std::mem::take(&mut self.signalled) {
            self.close(&mark, stream, device)?;
        }
        let Some((open, _)) = self.open.take() else { return Ok(()) };
        if Arc::strong_count(&open) == 1 {
            // nobody can ask for it: what was before it is gone
            return Ok(());
        }
        self.close(&open, stream, device).map(drop)
    }
    /// What is behind the work that was just queued.
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
    /// Has the launcher do it, where it is awake.
    fn launch(&mut self, step: Step, row: bool, stream: &Stream) -> Result<()> {
        self.launcher.leave(step, row).map_or(Ok(()), |step| step.run(stream))
    }
    /// Lets go what is done. Where the last is, all are: the driver is asked once.
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
    /// The same before more is queued. A question to the driver takes half of the time that a launch does, so it is asked once for many launches, whether the first half of them
    /// is done: these may hold memory for longer than they need it, where it is little.
    fn sweep_many(&mut self, pending: fn(&dyn DeviceMemory) -> Option<&Pending>) -> Result<()> {
        // the last may well not be done
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
    /// `pending`: what memory waits for.
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

    /// Whether another launch would not have to wait until one is done. Of a queue that somebody adds to right now that is not known.
    pub fn is_short(&self) -> bool {
        let state = self.line.get().and_then(|line| line.state.try_lock());
        state.is_some_and(|state| state.under_way.len() < MAX_SHORT_QUEUE)
    }

    /// Queues work on the stream. `holds`: memory that it uses, kept until it is done. What is behind it. Where that fails, nothing
    /// of it is under way any more.
    ///
    /// # Errors
    /// What `work` says, and `Device`. The context must be current.
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

    /// As [`Queue::add`], of one run of a kernel.
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

    /// Works on the stream, and waits until that is done: whoever is waited for holds its own memory, and needs no event.
    ///
    /// # Errors
    /// As [`Queue::add`].
    pub fn run(&self, work: impl FnOnce(&Stream) -> Result<()>) -> Result<()> {
        let line = self.line()?;
        let (queued, before) = {
            // one launch at a time is added
            let mut state = line.state.lock();
            state.close_open(&line.stream, &self.device)?;
            state.flush(&line.stream)?;
            state.ticks.end(&line.stream)?;
            (work(&line.stream), state.total())
        };
        // also where that failed: part of it may be under way
        let done = self.finish_line(line, before);
        queued.and(done)
    }

    /// Waits until the stream has passed a mark. What is before it is let go.
    ///
    /// # Errors
    /// `Device`, also for what failed on the device since.
    pub fn wait(&self, mark: &Arc<Mark>) -> Result<()> {
        if mark.reached.load(Ordering::Acquire) {
            return Ok(());
        }
        let event = match mark.event.get() {
            Some(event) => event.clone(),
            None => {
                // in a child of the process the lock may be another's
                self.device.enter()?;
                let line = self.line()?;
                let mut state = line.state.lock();
                if state.is_last(mark) {
                    state.flush(&line.stream)?;
                    if let Some(signal) = line.flag.signal(&line.stream, &self.device) {
                        // work that is queued from now on has another mark: this one is passed when the signal is reached
                        state.open = None;
                        state.signalled.push(mark.clone());
                        let before = state.total();
                        drop(state);
                        let reached = signal.is_reached();
                        // other threads that wait for this mark look at it before they take the lock
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

    /// As [`Queue::add`], for a kernel that may raise. The completion slot says how it ended.
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

    /// As [`Queue::add`], of work that also uses memory that it makes, and adds to what is held. What it puts on the stream must not come before what the launcher has to do.
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
            // nobody who waits for what is little waits for this
            state.close_open(stream, &self.device)?;
        }
        state.ticks.end(stream)?;
        let makes = holds.is_empty();
        let queued = work(&mut state, stream, &mut holds).and_then(|()| state.mark(length, stream, &self.device));
        match &queued {
            Ok(mark) => state.add(Work { behind: mark.clone(), holds, makes, _code: code, slot }),
            Err(_) => {
                // what was queued before it failed uses the memory and the code still
                if state.launcher.drain().and_then(|()| stream.finish()).is_ok() {
                    let all = state.under_way.len();
                    state.let_go(all, self.pending);
                }
                drop((holds, code));
            }
        }
        queued
    }

    /// As [`Queue::add`], of a tick that those before it may be one launch with. Also says whether it does the same as the one before.
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
            // the work that waits is the last, and holds the same memory
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
                // what was queued before it failed uses the memory and the code still
                let _ = stream.finish();
                drop((holds, code));
                Err(error)
            }
        }
    }

    /// Lets go the memory of what is done.
    ///
    /// # Errors
    /// `Device`.
    pub fn sweep(&self) -> Result<()> {
        let Some(line) = self.line.get() else { return Ok(()) };
        let mut state = line.state.lock();
        state.close_open(&line.stream, &self.device)?;
        state.sweep(self.pending)
    }

    /// Memory for what the queue is to make. Until others may have it the queue holds it, too: it may be used again as soon as it is dropped.
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
            // it comes from a pool that knows nothing of launches: who uses it does so behind this
            let memory = made.insert(own(Block::new(&self.device, stream, bytes)?));
            holds.push(memory.clone());
            Ok(())
        })?;
        Ok(Room { memory: made.expect("the work was done"), behind: Some(mark) })
    }

    /// Memory of so many bytes that nobody holds but what was queued last: what is queued from now on comes behind that. So a loop that writes an
    /// array again and again needs memory for few of them, however far it is ahead of the device.
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

    /// Whether nobody has memory but so many holders and what was queued last. If so, who uses it elsewhere waits for those who read it here, too.
    ///
    /// # Errors
    /// `Device`.
    pub fn has_alone(&self, memory: &Arc<dyn DeviceMemory>, holders: usize, pending: &Pending) -> Result<bool> {
        let Some(line) = self.line.get() else { return Ok(Arc::strong_count(memory) == holders) };
        let mut state = line.state.lock();
        state.sweep_many(self.pending)?;
        if !state.has_alone(memory, holders) && state.under_way.len() > RECENT_LAUNCHES {
            // what was queued before those may be done
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

    /// Waits for all that is under way, and lets its memory go.
    ///
    /// # Errors
    /// `Device`.
    pub fn finish(&self) -> Result<()> {
        let Some(line) = self.line.get() else { return Ok(()) };
        // what is queued from now on keeps what it holds
        let before = {
            let mut state = line.state.lock();
            state.close_open(&line.stream, &self.device)?;
            state.flush(&line.stream)?;
            state.total()
        };
        self.finish_line(line, before)
    }

    /// Waits for all that is on the stream. What was among the first so many is let go: what is queued meanwhile keeps what it holds.
    fn finish_line(&self, line: &Line, before: u64) -> Result<()> {
        line.stream.finish()?;
        line.state.lock().let_go_before(before, self.pending);
        Ok(())
    }
}
