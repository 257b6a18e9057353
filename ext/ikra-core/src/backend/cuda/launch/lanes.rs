//! Lanes: a stream with page-locked memory and events, for one launch at a time.
//!
//! Here: [`Lanes`] at rest, and what one consists of. Not here: what is done on them.

use crate::backend::cuda::driver::{Device, Event, Stream};
use crate::backend::cuda::storage::{HostLocker, PageLockedBuffer, Staging};
use crate::error::Result;
use crate::memory::pool::Pool;
use once_cell::sync::Lazy;
use parking_lot::Mutex;
use std::sync::Arc;

/// Idle lanes, and so on, that are kept.
pub(super) const LANES: usize = 4;

/// Lanes at rest.
pub(super) struct Lanes {
    pub(super) device: Arc<Device>,
    pub(super) idle: Mutex<Vec<Lane>>,
    pub(super) copiers: Lazy<Arc<rayon::ThreadPool>>,
    /// Of the host's memory, for columns that come from the device or go there.
    pub(super) pool: Arc<Pool>,
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("lanes")
    }
}

impl Lanes {
    pub(super) fn new(device: Arc<Device>) -> Self {
        let pool = Pool::new(Box::new(HostLocker(device.clone())));
        Self { device, idle: Mutex::default(), copiers: Lazy::new(copying_threads as fn() -> _), pool }
    }

    /// Works on one, with the context current. One on which something failed is not used again.
    pub(super) fn on_one<T>(&self, work: impl FnOnce(&mut Lane) -> Result<T>) -> Result<T> {
        self.device.enter()?;
        let idle = self.idle.lock().pop();
        let mut lane = match idle {
            Some(lane) => lane,
            None => self.make()?,
        };
        let outcome = work(&mut lane);
        if outcome.is_ok() {
            let mut idle = self.idle.lock();
            if idle.len() < LANES {
                idle.push(lane);
            }
        } else {
            // what it was to do uses memory that others hold only until they hear of the error
            let _ = lane.stream.finish();
            let _ = lane.beside.finish();
        }
        outcome
    }

    fn make(&self) -> Result<Lane> {
        let device = &self.device;
        let event = || Event::new(device);
        Ok(Lane {
            stream: Stream::new(device)?,
            beside: Stream::new(device)?,
            staging: Staging::new(device, self.copiers.clone())?,
            page_locked: PageLockedBuffer::new(device, SLOTS)?,
            batches: [event()?, event()?],
            marks: [event()?, event()?, event()?, event()?],
        })
    }
}

/// What one launch at a time uses.
pub(super) struct Lane {
    pub(super) stream: Stream,
    /// On which the stop key is overwritten while the other is busy.
    pub(super) beside: Stream,
    pub(super) staging: Staging,
    /// Two slots for the status of batches under way, one that stays zero ([`ZERO_SLOT`]), one that holds the stream
    /// ([`GATE_SLOT`]).
    pub(super) page_locked: PageLockedBuffer,
    /// Behind each batch under way.
    pub(super) batches: [Event; 2],
    /// Start, behind the upload, behind the kernels, behind the download.
    pub(super) marks: [Event; 4],
}

pub(super) const ZERO_SLOT: usize = 2;
pub(super) const GATE_SLOT: usize = 3;
pub(super) const SLOTS: usize = 4;

/// Threads that fill and empty page-locked memory. A pool of its own: the global one hangs in forked processes.
fn copying_threads() -> Arc<rayon::ThreadPool> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("ikra copy {i}"));
    Arc::new(pool.build().expect("threads can be started"))
}
