//! What a launch leaves of how it ended.
//!
//! Here: [`Status`], the block of memory that its jobs stop by and trap into; [`Board`], where launches that nobody waits for have theirs, and
//! [`Letter`], the copy that comes back of one. Not here: launches ([`super::launch`]), and the queue that knows when one is done
//! ([`super::queue`]).

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

/// The status block, as the device leaves it.
pub struct Status {
    pub stop_key: u64,
    pub key: u64,
    site: u64,
    words: [u64; TRAP_WORDS],
}

impl Status {
    /// Before the first tick: nothing trapped, and what is after `limit` does not run.
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

/// Launches that raise later, and whose end the host has not seen: no more are under way at a time.
const PLACES: usize = 64;

/// Status blocks of launches that nobody waits for, and page-locked memory that each is copied to behind its launch.
pub struct Board {
    statuses: Block,
    letters: Mutex<PageLockedBuffer>,
    free: Mutex<Vec<Place>>,
}

/// One status block, and its letter.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    /// It is as before a launch.
    clean: bool,
}

impl Board {
    /// Bytes of all status blocks.
    pub const BYTES: usize = PLACES * ALIGNMENT;

    /// `statuses`: memory of so many bytes.
    ///
    /// # Errors
    /// `Memory`, `Device`. The context must be current.
    pub fn new(device: &Arc<Device>, statuses: Block) -> Result<Self> {
        assert!(
            statuses.bytes() >= Self::BYTES && STATUS_WORDS * 8 == PageLockedBuffer::SLOT_BYTES,
            "there is room for all"
        );
        let free = (0..PLACES).map(|at| Place { at, clean: false }).collect();
        Ok(Self { statuses, letters: Mutex::new(PageLockedBuffer::new(device, PLACES)?), free: Mutex::new(free) })
    }

    /// A place for a launch; None: all are taken.
    pub fn letter(self: &Arc<Self>) -> Option<Arc<Letter>> {
        let place = self.free.lock().pop()?;
        Some(Arc::new(Letter { board: self.clone(), place, behind: OnceCell::new(), outcome: OnceCell::new() }))
    }
}

/// How one launch ended, once it has. The queue takes note when it finds the launch done, so the place is free then, whether anybody asks or not.
pub struct Letter {
    board: Arc<Board>,
    place: Place,
    behind: OnceCell<Arc<Event>>,
    outcome: OnceCell<Outcome>,
}

impl Letter {
    fn offset(&self) -> usize {
        self.place.at * ALIGNMENT
    }
    /// Of the status block.
    pub fn address(&self) -> u64 {
        self.board.statuses.address() + self.offset() as u64
    }
    /// Queues what makes the status block that of a launch that has not begun.
    ///
    /// # Errors
    /// `Device`.
    pub fn begin(&self, stream: &Stream) -> Result<()> {
        if self.place.clean {
            return Ok(());
        }
        let (region, at) = (self.board.statuses.on(stream), self.offset());
        region.fill(at, STATUS_WORDS * 8, 0)?;
        // nothing stops, and nothing has trapped: all bits of both keys
        region.fill(at, 8, 0xff)?;
        region.fill(at + 16, 8, 0xff)
    }
    /// Queues the copy of what the launch left.
    ///
    /// # Errors
    /// `Device`.
    pub fn send(&self, stream: &Stream) -> Result<()> {
        self.board.letters.lock().fetch(self.place.at, &self.board.statuses.on(stream), self.offset())
    }
    /// `event` is behind the copy.
    pub fn sent(&self, event: Arc<Event>) {
        let _ = self.behind.set(event);
    }
    /// Takes note of how the launch ended; the event behind the copy has passed.
    pub fn note(&self) -> Outcome {
        *self.outcome.get_or_init(|| {
            let letter = self.board.letters.lock().read(self.place.at);
            let outcome = Status::read(&letter).outcome(&CancelToken::default());
            self.board.free.lock().push(Place { clean: outcome == Outcome::Done, ..self.place });
            outcome
        })
    }
}

impl Drop for Letter {
    fn drop(&mut self) {
        // of a launch that never was; the queue holds the others until they are done
        if self.outcome.get().is_none() {
            self.board.free.lock().push(Place { clean: false, ..self.place });
        }
    }
}

/// Whoever asks how a launch ended.
pub struct Told(pub Arc<Letter>);

impl Ending for Told {
    fn outcome(&self, wait: bool) -> Result<Option<Outcome>> {
        let Told(letter) = self;
        if let Some(outcome) = letter.outcome.get() {
            return Ok(Some(*outcome));
        }
        let Some(event) = letter.behind.get() else { return Ok(None) };
        if wait {
            event.wait()?;
        } else if !event.is_past()? {
            return Ok(None);
        }
        Ok(Some(letter.note()))
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
