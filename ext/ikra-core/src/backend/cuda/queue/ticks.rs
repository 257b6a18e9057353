//! Joins consecutive calls of one tick into one launch of several ticks.
//!
//! Consider a loop of calls whose ticks can be fused ([`crate::backend::FusedTicks`]). It is mostly ahead of the
//! device, because a launch takes the device longer than a call takes the host. While the device runs the ticks that
//! were launched last, further calls are only counted. When it is done, they become one launch. The state of an element
//! then stays in registers from tick to tick, and the cost of a launch is paid once.
//!
//! Here: [`Tick`], a launch of one tick; [`Ticks`], which of them wait. Not here: when waiting ticks must be launched
//! ([`super`]): before any other work is queued, and when a thread waits for them.

use crate::backend::cuda::driver::{Device, Event, Module, Spread, Stream};
use crate::backend::cuda::emit::Header;
use crate::error::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A launch of one tick.
pub struct Tick {
    pub one: Spread,
    /// The code for several ticks, if that is ready.
    pub joined: Option<Spread>,
    /// The words of either kernel's parameter, for ticks from 0 to 1.
    pub args: Vec<u64>,
}

impl Tick {
    /// Whether it repeats the other tick: the same code over the same memory.
    fn repeats(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.one.module, &other.one.module)
            && (self.one.grid, self.one.block) == (other.one.grid, other.one.block)
            && self.args == other.args
    }
    /// The code that may run.
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

/// What a batch decides about one more tick.
#[derive(Debug, PartialEq, Eq)]
pub enum BatchDecision {
    /// It is launched, because it does not repeat the tick before it.
    First,
    /// It is launched at once: no tick waits, and the device is idle, or ticks are too long to wait.
    Launched,
    /// It waits as the first tick of a batch, after all work that was queued before.
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
    /// An event behind one of their launches.
    event: Option<Event>,
    /// The ticks whose end is being measured with `event`.
    under_way: Option<Measurement>,
    /// How many ticks were launched behind the event.
    behind: u64,
    /// The upper bound for the duration of a tick, if one was measured.
    pace: Option<Duration>,
}

/// The ticks that were launched before an event, and the time at which it was recorded on an idle device.
struct Measurement {
    since: Instant,
    ticks: u64,
}

/// Ticks wait only if they take less than this together. Longer ones would leave the device idle if the host did
/// something else meanwhile.
const MAX_BATCH_TIME: Duration = Duration::from_micros(500);

impl Ticks {
    /// Adds one more tick.
    ///
    /// # Errors
    /// `Device`. The context must be current.
    pub fn take(&mut self, tick: Tick, stream: &Stream, device: &Arc<Device>) -> Result<BatchDecision> {
        if !self.last.as_ref().is_some_and(|last| last.repeats(&tick)) {
            self.flush(stream)?;
            // a single repetition is not a loop yet
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
            self.under_way = Some(Measurement { since: Instant::now(), ticks: self.behind });
            self.behind = 0;
        }
        Ok(decision)
    }

    /// Whether the device is still running launched ticks, as far as the event tells.
    fn is_busy(&mut self) -> Result<bool> {
        let (Some(measured), Some(event)) = (&self.under_way, &self.event) else { return Ok(false) };
        if !event.is_past()? {
            return Ok(true);
        }
        // an upper bound, too high if the event passed long ago; the next measurement corrects it
        self.pace = Some(measured.since.elapsed() / u32::try_from(measured.ticks).unwrap_or(u32::MAX).max(1));
        self.under_way = None;
        Ok(false)
    }

    /// Launches the ticks that wait.
    ///
    /// # Errors
    /// `Device`. Then the ticks still wait.
    pub fn flush(&mut self, stream: &Stream) -> Result<()> {
        if let Some(last) = self.last.as_mut().filter(|_| self.waiting > 0) {
            last.launch(stream, self.waiting)?;
            self.behind += self.waiting;
            self.waiting = 0;
        }
        Ok(())
    }

    /// Launches the ticks that wait, and ends the sequence: the next tick follows other work.
    ///
    /// # Errors
    /// As [`Ticks::flush`].
    pub fn end(&mut self, stream: &Stream) -> Result<()> {
        self.flush(stream)?;
        self.last = None;
        Ok(())
    }
}
