//! Stream compaction of the results of programs: see `compaction.cuh`.

use super::{Block, LOOK_BACK, TileStates};
use crate::backend::cuda::driver::{Device, Stream};
use crate::backend::cuda::storage::PageLockedBuffer;
use crate::error::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The templates of kernels that compact, which follow the common part.
pub const COMPACTION: [&str; 2] = [LOOK_BACK, include_str!("compaction.cuh")];
/// How many jobs a block processes together.
const COMPACTION_TILE: u64 = 4096;
/// Words of `struct CompactionArgs`.
pub const COMPACTION_WORDS: usize = 8;
/// Bytes of a tile's state: the number of rows that it selected.
const STATE: u64 = 8;

/// The number of tiles for so many jobs.
pub fn compaction_tiles(jobs: u64) -> u64 {
    jobs.div_ceil(COMPACTION_TILE)
}

/// The layout of [`TileStates`] for memory that is reused: its size, and the offsets of its parts.
pub fn cells(tiles: u64) -> (usize, [u64; 4]) {
    TileStates::parts(tiles, STATE)
}

/// Scratch memory of compactions, for one at a time: the counts of its tiles, and the number of selected rows. It is
/// reused, so that a launch need not clear memory first.
pub struct CompactionScratch {
    /// How many tiles it has room for.
    tiles: u64,
    cells: Block,
    /// Host memory to which the kernel writes.
    out: PageLockedBuffer,
    /// The mark of the last launch.
    mark: AtomicU64,
}

impl CompactionScratch {
    /// Makes room for so many tiles. Waits for the stream.
    ///
    /// # Errors
    /// `Memory`, `Device`. The context must be current.
    pub fn new(device: &Arc<Device>, stream: &Stream, tiles: u64) -> Result<Self> {
        let out = PageLockedBuffer::new(device, 1)?;
        let (bytes, _) = cells(tiles);
        let cells = Block::new(device, stream, bytes)?;
        let filled = cells.on(stream).fill(0, bytes, 0);
        // also after an error: a dropped block may be reused at once
        stream.finish()?;
        filled?;
        Ok(Self { tiles, cells, out, mark: AtomicU64::new(0) })
    }
    pub fn has_room(&self, tiles: u64) -> bool {
        self.tiles >= tiles
    }
    /// The words of `struct CompactionArgs` for the next launch.
    pub fn words(&self, chosen: u64, jobs: u64) -> [u64; COMPACTION_WORDS] {
        let mark = self.mark.fetch_add(1, Ordering::Relaxed) + 1;
        let [a, b, c, d] = cells(self.tiles).1.map(|offset| self.cells.address() + offset);
        [chosen, jobs, a, b, c, d, mark, self.out.address(0)]
    }
    /// How many rows the last launch selected. The host must have waited for that launch.
    pub fn hits(&self) -> u64 {
        let slot = self.out.read(0);
        slot.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }
}
