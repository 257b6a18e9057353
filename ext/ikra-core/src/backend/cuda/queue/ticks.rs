//! Calls of one tick that follow each other, as one launch of several ticks.
//!
//! A loop of calls whose ticks can be fused ([`crate::backend::FusedTicks`]) is mostly ahead of the device: a launch takes the device longer than a call takes the host. While
//! the device computes the tick that was launched last, the calls that follow are counted, and launched as one once it is done. What an element keeps from tick to tick then
//! stays in registers, and a launch's own time is paid once.
//!
//! Here: [`Tick`], what is launched; [`Ticks`], which of them wait. Not here: who has to launch them first ([`super`]): whoever queues anything else, or wants to know when they are done.

use crate::backend::cuda::driver::{Device, Event, Module, Stream};
use crate::backend::cuda::emit::Header;
use crate::error::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Code, and how many blocks of how many threads run it.
pub struct Spread {
    pub module: Arc<Module>,
    pub grid: u32,
    pub block: u32,
}

impl Spread {
    /// Puts a run on the stream.
    ///
    /// # Errors
    /// `Device`. The context must be current.
    pub fn launch(&self, stream: &Stream, args: &mut [u64]) -> Result<()> {
        self.module.launch(stream, self.grid, self.block, args)
    }
}

/// A launch of one tick.
pub struct Tick {
    pub one: Spread,
    /// What does several, if that is there yet.
    pub joined: Option<Spread>,
    /// The words of either kernel's parameter, of ticks from 0 to 1.
    pub args: Vec<u64>,
}

impl Tick {
    /// Whether it is the same work once more: the same code, over the same memory.
    fn repeats(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.one.module, &other.one.module)
            && (self.one.grid, self.one.block) == (other.one.grid, other.one.block)
            && self.args == other.args
    }
    /// What may run.
    pub fn modules(&self) -> impl Iterator<Item = &Arc<Module>> {
        [&self.one].into_iter().chain(&self.joined).map(|code| &code.module)
    }
    fn launch(&mut self, stream: &Stream, ticks: u64) -> Result<()> {
        let code = self.joined.as_ref().filter(|_| ticks > 1).unwrap_or(&self.one);
        self.args[Header::TICK_END] = ticks;
        let launched = code.launch(stream, &mut self.args);
        self.args[Header::TICK_END] = 1;
        launched
    }
}

/// What the batch decides about one more tick.
#[derive(Debug, PartialEq, Eq)]
pub enum BatchDecision {
    /// It is launched: it is not a repetition of the tick before it.
    First,
    /// It is launched at once: no tick waits before it, and the device is idle, or ticks are too long to wait.
    Launched,
    /// It waits as the first of a batch: it is behind all that was queued before.
    Waits,
    /// It joins a batch that waits, and shares that batch's mark.
    Joined,
}

/// The ticks that were queued last.
#[derive(Default)]
pub struct Ticks {
    last: Option<Tick>,
    /// How many of those wait.
    waiting: u64,
    /// Behind one of their launches.
    event: Option<Event>,
    /// What is known to be on the way to it.
    under_way: Option<Way>,
    /// Ticks that were launched behind it.
    behind: u64,
    /// What a tick took at most, as far as that was looked at.
    pace: Option<Duration>,
}

/// From what the stream was seen to have done to an event.
struct Way {
    since: Instant,
    ticks: u64,
}

/// Ticks wait for each other while together they take less: longer ones would leave the device idle if the host did
/// something else meanwhile.
const MAX_BATCH_TIME: Duration = Duration::from_micros(500);

impl Ticks {
    /// Takes one more.
    ///
    /// # Errors
    /// `Device`. The context must be current.
    pub fn take(&mut self, tick: Tick, stream: &Stream, device: &Arc<Device>) -> Result<BatchDecision> {
        if !self.last.as_ref().is_some_and(|last| last.repeats(&tick)) {
            self.flush(stream)?;
            // once means little
            self.last.insert(tick).launch(stream, 1)?;
            (self.under_way, self.behind, self.pace) = (None, 1, None);
            return Ok(BatchDecision::First);
        }
        if tick.joined.is_none() {
            self.flush(stream)?;
            self.last.insert(tick).launch(stream, 1)?;
            self.behind += 1;
            return Ok(BatchDecision::Launched);
        }
        if self.waiting == 0 {
            self.last = Some(tick);
        }
        let busy = self.is_busy()?;
        let more = u32::try_from(self.waiting + 1).unwrap_or(u32::MAX);
        if busy && self.pace.is_some_and(|pace| pace.saturating_mul(more) < MAX_BATCH_TIME) {
            self.waiting += 1;
            return Ok(if self.waiting == 1 { BatchDecision::Waits } else { BatchDecision::Joined });
        }
        let decision = if self.waiting == 0 { BatchDecision::Launched } else { BatchDecision::Joined };
        self.waiting += 1;
        self.flush(stream)?;
        if !busy {
            let event = match &self.event {
                Some(event) => event,
                None => self.event.insert(Event::without_time(device)?),
            };
            event.record(stream)?;
            self.under_way = Some(Way { since: Instant::now(), ticks: self.behind });
            self.behind = 0;
        }
        Ok(decision)
    }

    /// Whether the device computes what was launched, as far as that is looked at.
    fn is_busy(&mut self) -> Result<bool> {
        let (Some(way), Some(event)) = (&self.under_way, &self.event) else { return Ok(false) };
        if !event.is_past()? {
            return Ok(true);
        }
        // more, if it was past long since: then the next look tells
        self.pace = Some(way.since.elapsed() / u32::try_from(way.ticks).unwrap_or(u32::MAX).max(1));
        self.under_way = None;
        Ok(false)
    }

    /// Launches what waits.
    ///
    /// # Errors
    /// `Device`: then it waits still.
    pub fn flush(&mut self, stream: &Stream) -> Result<()> {
        if let Some(last) = self.last.as_mut().filter(|_| self.waiting > 0) {
            last.launch(stream, self.waiting)?;
            self.behind += self.waiting;
            self.waiting = 0;
        }
        Ok(())
    }

    /// Launches what waits; what comes next comes behind something else.
    ///
    /// # Errors
    /// As [`Ticks::flush`].
    pub fn end(&mut self, stream: &Stream) -> Result<()> {
        self.flush(stream)?;
        self.last = None;
        Ok(())
    }
}
