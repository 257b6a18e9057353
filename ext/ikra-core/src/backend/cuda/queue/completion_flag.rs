//! The completion flag: a word of page-locked host memory that the stream writes. Reading it takes no driver call. The
//! word arrives about a microsecond before the driver would report that an event has passed.
//!
//! Here: [`CompletionFlag`], and [`Signal`], one wait for it. Not here: which work is waited for, and what happens
//! after it ([`super`]). After a fault on the device the flag never changes. So a wait gives up after [`PATIENCE`], and
//! its caller asks the driver, which knows of the fault.

use super::Stream;
use crate::backend::cuda::driver::Device;
use crate::backend::cuda::storage::PageLockedBuffer;
use once_cell::sync::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The flag's memory is allocated after so many waits of a program: a program that rarely waits does not need it.
const WAITS_BEFORE_USE: u32 = 16;
/// Longer than a short launch takes behind a few others.
const PATIENCE: Duration = Duration::from_micros(50);

/// The flag of a queue; see the module.
#[derive(Default)]
pub struct CompletionFlag {
    waits: AtomicU32,
    /// The number of the newest signal. Signals are numbered in the stream's order.
    newest: AtomicU32,
    word: OnceCell<Option<PageLockedBuffer>>,
    /// The device's streams cannot write to host memory.
    unsupported: AtomicBool,
}

/// A place in the stream at which the stream writes the flag.
pub struct Signal<'a> {
    word: &'a PageLockedBuffer,
    number: u32,
}

impl CompletionFlag {
    /// Queues a write of the flag at this place of the stream. None: the caller must wait for an event. The caller must
    /// hold the lock under which work is added to the stream, so that signals are queued one at a time.
    pub fn signal(&self, stream: &Stream, device: &Arc<Device>) -> Option<Signal<'_>> {
        let seldom = self.word.get().is_none() && self.waits.fetch_add(1, Ordering::Relaxed) < WAITS_BEFORE_USE;
        if seldom || self.unsupported.load(Ordering::Relaxed) {
            return None;
        }
        let word = self.word.get_or_init(|| PageLockedBuffer::new(device, 1).ok()).as_ref()?;
        let number = self.newest.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if !word.signal(0, number, stream) {
            self.unsupported.store(true, Ordering::Relaxed);
            return None;
        }
        Some(Signal { word, number })
    }
}

impl Signal<'_> {
    /// Spins until the stream has written this signal, for [`PATIENCE`] at most. Returns whether it has.
    pub fn is_reached(&self) -> bool {
        let began = Instant::now();
        loop {
            for _ in 0..64 {
                if self.word.has_come(0, self.number) {
                    return true;
                }
                std::hint::spin_loop();
            }
            if began.elapsed() > PATIENCE {
                return false;
            }
        }
    }
}
