//! Lanes: a lane is a stream with page-locked memory and events, for one launch at a time.
//!
//! Here: [`Lanes`], the pool of unused ones, and [`Lane`]. Not here: the work on them.

use crate::backend::cuda::driver::{Device, Event, Stream};
use crate::backend::cuda::graph::Chains;
use crate::backend::cuda::storage::{HostLocker, PageLockedBuffer, Staging};
use crate::error::Result;
use crate::memory::pool::Pool;
use once_cell::sync::Lazy;
use parking_lot::Mutex;
use std::sync::Arc;

/// How many scratch memories, and lanes with all their page-locked memory, are kept at most while nobody uses them.
pub(super) const LANES: usize = 4;
/// How many unused lanes are kept at most. Making one allocates page-locked memory, which takes longer than a launch.
const IDLE: usize = 32;

/// The pool of unused lanes.
pub(super) struct Lanes {
    pub(super) device: Arc<Device>,
    pub(super) idle: Mutex<Vec<Lane>>,
    pub(super) copiers: Lazy<Arc<rayon::ThreadPool>>,
    /// Host memory for columns that are copied to or from the device.
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

    /// Runs `work` with a lane, and the context current. A lane on which something failed is not reused.
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
            if idle.len() >= LANES {
                lane.staging.shrink();
            }
            if idle.len() < IDLE {
                idle.push(lane);
            }
        } else {
            // queued work may use memory that its owners drop once they get the error
            let _ = lane.stream.finish();
            let _ = lane.beside.finish();
        }
        outcome
    }

    fn make(&self) -> Result<Lane> {
        let device = &self.device;
        let event = || Event::new(device);
        let behind = || Event::without_time(device);
        Ok(Lane {
            stream: Stream::new(device)?,
            beside: Stream::new(device)?,
            staging: Staging::new(device, self.copiers.clone())?,
            page_locked: PageLockedBuffer::new(device, SLOTS)?,
            batch: 0,
            batches: [behind()?, behind()?],
            marks: [event()?, event()?, event()?, event()?],
            chains: Chains::default(),
        })
    }
}

/// What one launch at a time uses.
pub(super) struct Lane {
    pub(super) stream: Stream,
    /// A stream for overwriting the stop key while the other one is busy.
    pub(super) beside: Stream,
    pub(super) staging: Staging,
    /// Two slots for the status of batches under way, one that stays zero ([`ZERO_SLOT`]), one that holds the stream
    /// ([`GATE_SLOT`]), and one in which the stream counts batches ([`FLAG_SLOT`]).
    pub(super) page_locked: PageLockedBuffer,
    /// How many batches there were.
    pub(super) batch: u32,
    /// The events behind the batches under way.
    pub(super) batches: [Event; 2],
    /// Events with a time: at the start, and behind the upload, the kernels and the download.
    pub(super) marks: [Event; 4],
    /// Submits ticks that are a launch each.
    pub(super) chains: Chains,
}

pub(super) const ZERO_SLOT: usize = 2;
pub(super) const GATE_SLOT: usize = 3;
pub(super) const FLAG_SLOT: usize = 4;
pub(super) const SLOTS: usize = 5;

/// Threads that copy to and from page-locked memory. They are a pool of their own, because the global one hangs in
/// forked processes.
fn copying_threads() -> Arc<rayon::ThreadPool> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("ikra copy {i}"));
    Arc::new(pool.build().expect("threads can be started"))
}
