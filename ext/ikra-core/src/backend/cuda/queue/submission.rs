//! How work gets to the stream: by the caller, by the launcher's thread, or as ticks that wait to become one launch.
//!
//! Here: [`Submission`]. Not here: how far the stream is ([`super::completion`]), and what is held until it is there
//! ([`super::retention`]).
//!
//! Invariant: while ticks wait, the launcher has nothing to do. So one of the two holds all work that is not on the
//! stream yet, in order.

use super::launcher::{Launcher, Step};
use super::ticks::{BatchDecision, Tick, Ticks};
use crate::backend::cuda::driver::{Device, Stream};
use crate::error::Result;
use std::sync::Arc;

pub(super) struct Submission {
    /// The newest work, if it is ticks that later ones may join.
    ticks: Ticks,
    /// Passes launches to the driver.
    launcher: Launcher,
}

impl Submission {
    pub fn new(launcher: Launcher) -> Self {
        Self { ticks: Ticks::default(), launcher }
    }
    /// Puts on the stream what the launcher has left.
    pub fn drain(&mut self) -> Result<()> {
        self.launcher.drain()
    }
    /// Puts on the stream the ticks that wait.
    pub fn flush_ticks(&mut self, stream: &Stream) -> Result<()> {
        self.ticks.flush(stream)
    }
    /// Puts all queued work on the stream, except allocations, whose order does not matter.
    pub fn flush(&mut self, stream: &Stream) -> Result<()> {
        self.launcher.drain()?;
        self.ticks.flush(stream)
    }
    /// Ends the batch of ticks: what is queued next is other work.
    pub fn end_ticks(&mut self, stream: &Stream) -> Result<()> {
        self.ticks.end(stream)
    }
    /// Runs a step: on the launcher's thread if that is awake, else here. `row`: whether it counts towards waking it.
    pub fn launch(&mut self, step: Step, row: bool, stream: &Stream) -> Result<()> {
        self.launcher.leave(step, row).map_or(Ok(()), |step| step.run(stream))
    }
    /// Queues a tick, which may wait for others.
    pub fn take(&mut self, tick: Tick, stream: &Stream, device: &Arc<Device>) -> Result<BatchDecision> {
        self.launcher.drain()?;
        self.ticks.take(tick, stream, device)
    }
}
