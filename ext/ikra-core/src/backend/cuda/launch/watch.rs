//! Waiting for a launch, while its section may be cancelled.
//!
//! Here: [`Watch`]. Not here: what the launch does.

use super::lanes::ZERO_SLOT;
use crate::backend::CancelToken;
use crate::backend::cuda::driver::{Event, Stream};
use crate::backend::cuda::storage::{PageLockedBuffer, Region};
use crate::error::Result;
use std::time::{Duration, Instant};

/// How often a thread that waits asks the driver whether the device failed.
const ASK_EVERY: Duration = Duration::from_millis(2);

/// Waits for the device, and watches the cancel token.
pub(super) struct Watch<'a> {
    cancel: &'a CancelToken,
    /// When the stop key was last sent to the device.
    stop_sent: Option<Instant>,
    page_locked: &'a PageLockedBuffer,
    memory: Region<'a>,
    allocated: Option<&'a Event>,
    status: usize,
    beside: &'a Stream,
}

impl<'a> Watch<'a> {
    /// `allocated`: the event behind the allocation of the memory, if the host has not waited for that. `status`: the
    /// offset of the status block. `beside`: a stream for the stop key.
    pub(super) fn new(
        cancel: &'a CancelToken,
        page_locked: &'a PageLockedBuffer,
        memory: Region<'a>,
        allocated: Option<&'a Event>,
        status: usize,
        beside: &'a Stream,
    ) -> Self {
        Self { cancel, stop_sent: None, page_locked, memory, allocated, status, beside }
    }

    /// Waits until the stream has written a number to a slot, or has passed an event behind that. Looks at the slot,
    /// because several threads that ask the driver delay each other, and every launch. Spins at first, because most
    /// kernels are short. Then sleeps, longer and longer. Without a slot, it asks for the event.
    pub(super) fn wait(&mut self, word: Option<(usize, u32)>, event: &Event) -> Result<()> {
        let start = Instant::now();
        let mut asked = start;
        loop {
            match word {
                Some((slot, number)) if self.page_locked.has_come(slot, number) => return Ok(()),
                // after a fault the number never comes
                Some(_) if asked.elapsed() < ASK_EVERY => {}
                _ if event.is_past()? => return Ok(()),
                _ => asked = Instant::now(),
            }
            // Sent repeatedly: the upload may still be under way and overwrite the stop key.
            if self.cancel.is_cancelled() && self.stop_sent.is_none_or(|t| t.elapsed() > Duration::from_millis(2)) {
                self.stop()?;
            }
            match start.elapsed() {
                t if t < Duration::from_micros(50) => (0..16).for_each(|_| std::hint::spin_loop()),
                // other sections may need the processor
                t if t < Duration::from_millis(2) => std::thread::yield_now(),
                t if t < Duration::from_millis(50) => std::thread::sleep(Duration::from_micros(20)),
                _ => std::thread::sleep(Duration::from_micros(200)),
            }
        }
    }

    /// Makes all jobs end at their next check. The other stream may not use the arena before this one has allocated it.
    pub(super) fn stop(&mut self) -> Result<()> {
        self.allocated.map_or(Ok(()), Event::wait)?;
        self.stop_sent = Some(Instant::now());
        self.page_locked.send_zero(ZERO_SLOT, &self.memory, self.status, self.beside)
    }

    /// Waits until the stop key has been sent: the arena is freed in the order of the other stream.
    pub(super) fn end(&self) -> Result<()> {
        self.stop_sent.map_or(Ok(()), |_| self.beside.finish())
    }
}
