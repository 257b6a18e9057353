//! How a launch ended, as the device records it.
//!
//! Here: [`Status`], the block of memory through which jobs stop each other and record traps; [`SlotPool`], the status
//! blocks of asynchronous launches; [`CompletionSlot`], one of those, with its copy on the host. Not here: launches
//! ([`super::launch`]), and the queue, which knows when one is done ([`super::queue`]).

use super::driver::{Device, Event, Stream};
use super::storage::{ALIGNMENT, Block, PageLockedBuffer};
use crate::backend::{CancelToken, Ending, Key, Outcome};
use crate::error::Result;
use crate::ir::TRAP_WORDS;
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::sync::Arc;

/// Words of the status block: the stop key, then `struct TrapRecord`.
pub const STATUS_WORDS: usize = 4 + TRAP_WORDS;

/// The status block as the device wrote it.
pub struct Status {
    pub stop_key: u64,
    pub key: u64,
    site: u64,
    words: [u64; TRAP_WORDS],
}

impl Status {
    /// The status block before the first tick: no trap, and keys after `limit` do not run.
    pub fn initial(limit: Key) -> [u8; STATUS_WORDS * 8] {
        let mut bytes = [0; STATUS_WORDS * 8];
        bytes[..8].copy_from_slice(&limit.0.to_ne_bytes());
        bytes[16..24].copy_from_slice(&Key::NONE.0.to_ne_bytes());
        bytes
    }
    pub fn read(bytes: &[u8; STATUS_WORDS * 8]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |i: usize| u64::from_ne_bytes(words[i]);
        Self { stop_key: word(0), key: word(2), site: word(3), words: std::array::from_fn(|i| word(4 + i)) }
    }
    pub fn outcome(&self, cancel: &CancelToken) -> Outcome {
        if cancel.is_cancelled() || self.stop_key == Key::CANCEL.0 {
            return Outcome::Cancelled;
        }
        Outcome::recorded(self.key, self.site, self.words)
    }
}

/// The number of slots of a pool. It bounds how many launches with deferred errors are under way, or have an end that
/// the host has not seen.
const SLOTS: usize = 64;

/// The status blocks of asynchronous launches, and the page-locked buffer to which each is copied after its launch.
pub struct SlotPool {
    statuses: Block,
    copies: Mutex<PageLockedBuffer>,
    free: Mutex<Vec<Slot>>,
}

/// The number of a status block, and of its copy.
#[derive(Clone, Copy)]
struct Slot {
    at: usize,
    /// Whether the status block is as before a launch.
    clean: bool,
}

impl SlotPool {
    /// Bytes of all status blocks.
    pub const BYTES: usize = SLOTS * ALIGNMENT;

    /// `statuses`: device memory of so many bytes.
    ///
    /// # Errors
    /// `Memory`, `Device`. The context must be current.
    pub fn new(device: &Arc<Device>, statuses: Block) -> Result<Self> {
        assert!(
            statuses.bytes() >= Self::BYTES && STATUS_WORDS * 8 == PageLockedBuffer::SLOT_BYTES,
            "there is room for all"
        );
        let free = (0..SLOTS).map(|at| Slot { at, clean: false }).collect();
        Ok(Self { statuses, copies: Mutex::new(PageLockedBuffer::new(device, SLOTS)?), free: Mutex::new(free) })
    }

    /// Takes a slot for a launch; None: all are taken.
    pub fn take(self: &Arc<Self>) -> Option<Arc<CompletionSlot>> {
        let slot = self.free.lock().pop()?;
        Some(Arc::new(CompletionSlot { pool: self.clone(), slot, behind: OnceCell::new(), outcome: OnceCell::new() }))
    }
}

/// The completion slot of one launch, which reports how the launch ended. The queue calls [`Self::complete`] when it
/// finds the launch done. That frees the slot, whether the outcome is asked for or not.
pub struct CompletionSlot {
    pool: Arc<SlotPool>,
    slot: Slot,
    behind: OnceCell<Arc<Event>>,
    outcome: OnceCell<Outcome>,
}

impl CompletionSlot {
    fn offset(&self) -> usize {
        self.slot.at * ALIGNMENT
    }
    /// The address of the status block.
    pub fn address(&self) -> u64 {
        self.pool.statuses.address() + self.offset() as u64
    }
    /// Queues a reset of the status block, to that of a launch that has not begun.
    ///
    /// # Errors
    /// `Device`.
    pub fn reset(&self, stream: &Stream) -> Result<()> {
        if self.slot.clean {
            return Ok(());
        }
        let (region, at) = (self.pool.statuses.on(stream), self.offset());
        region.fill(at, STATUS_WORDS * 8, 0)?;
        // all bits of both keys are set: nothing stops, and there is no trap
        region.fill(at, 8, 0xff)?;
        region.fill(at + 16, 8, 0xff)
    }
    /// Queues the copy of the status block to the host.
    ///
    /// # Errors
    /// `Device`.
    pub fn copy_back(&self, stream: &Stream) -> Result<()> {
        self.pool.copies.lock().fetch(self.slot.at, &self.pool.statuses.on(stream), self.offset())
    }
    /// Sets the event behind the copy.
    pub fn set_event(&self, event: Arc<Event>) {
        let _ = self.behind.set(event);
    }
    /// Reads how the launch ended, and frees the slot. The stream must have passed the event behind the copy.
    pub fn complete(&self) -> Outcome {
        *self.outcome.get_or_init(|| {
            let copy = self.pool.copies.lock().read(self.slot.at);
            let outcome = Status::read(&copy).outcome(&CancelToken::default());
            self.pool.free.lock().push(Slot { clean: outcome == Outcome::Done, ..self.slot });
            outcome
        })
    }
}

impl Drop for CompletionSlot {
    fn drop(&mut self) {
        // the launch was never queued, because the queue holds slots until their launches are done
        if self.outcome.get().is_none() {
            self.pool.free.lock().push(Slot { clean: false, ..self.slot });
        }
    }
}

/// How a launch ended, for its caller.
pub struct SlotEnding(pub Arc<CompletionSlot>);

impl Ending for SlotEnding {
    fn outcome(&self, wait: bool) -> Result<Option<Outcome>> {
        let SlotEnding(slot) = self;
        if let Some(outcome) = slot.outcome.get() {
            return Ok(Some(*outcome));
        }
        let Some(event) = slot.behind.get() else { return Ok(None) };
        if wait {
            event.wait()?;
        } else if !event.is_past()? {
            return Ok(None);
        }
        Ok(Some(slot.complete()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::TrapRecord;
    use crate::ir::SiteId;

    #[test]
    fn the_status_block_is_read_as_the_device_writes_it() {
        let mut bytes = Status::initial(Key::NONE);
        assert_eq!(Status::read(&bytes).outcome(&CancelToken::default()), Outcome::Done);
        bytes[16..24].copy_from_slice(&Key::new(2, 3).0.to_ne_bytes());
        bytes[24] = 5;
        bytes[32] = 7;
        let trapped = TrapRecord { key: Key::new(2, 3), site: SiteId(5), words: [7, 0, 0, 0] };
        assert_eq!(Status::read(&bytes).outcome(&CancelToken::default()), Outcome::Trapped(trapped));
        bytes[..8].fill(0);
        assert_eq!(Status::read(&bytes).outcome(&CancelToken::default()), Outcome::Cancelled);
    }
}
