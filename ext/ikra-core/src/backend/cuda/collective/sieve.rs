//! Selections of what programs compute: see `sieve.cuh`.

use super::{Block, Board, LOOK_BACK};
use crate::backend::cuda::driver::{Device, Stream};
use crate::backend::cuda::storage::PageLockedBuffer;
use crate::error::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What programs whose jobs are sieved stand on, behind the common part.
pub const SIEVE: [&str; 2] = [LOOK_BACK, include_str!("sieve.cuh")];
/// Jobs that a block goes over together.
const SIEVE_TILE: u64 = 4096;
/// Words of `struct SieveArgs`.
pub const SIEVE_WORDS: usize = 8;
/// The bytes of the state of a tile: how many it has chosen.
const STATE: u64 = 8;

/// Tiles of so many jobs.
pub fn sieve_tiles(jobs: u64) -> u64 {
    jobs.div_ceil(SIEVE_TILE)
}

/// A board's cells without their memory, for who keeps that: the bytes, and where parts begin.
pub fn cells(tiles: u64) -> (usize, [u64; 4]) {
    Board::parts(tiles, STATE)
}

/// Where one sieve at a time tells its tiles' counts, and how many it chose in all: kept, so that a launch fills no memory first.
pub struct Tray {
    /// For so many tiles.
    tiles: u64,
    cells: Block,
    /// In the host's memory, to which the kernel writes.
    out: PageLockedBuffer,
    /// The last launch's mark.
    mark: AtomicU64,
}

impl Tray {
    /// With room for so many tiles. Waits for the stream.
    ///
    /// # Errors
    /// `Memory`, `Device`. The context must be current.
    pub fn new(device: &Arc<Device>, stream: &Stream, tiles: u64) -> Result<Self> {
        let out = PageLockedBuffer::new(device, 1)?;
        let (bytes, _) = cells(tiles);
        let cells = Block::new(device, stream, bytes)?;
        let filled = cells.on(stream).fill(0, bytes, 0);
        // whatever came of it: a block that is dropped may be used again at once
        stream.finish()?;
        filled?;
        Ok(Self { tiles, cells, out, mark: AtomicU64::new(0) })
    }
    pub fn has_room(&self, tiles: u64) -> bool {
        self.tiles >= tiles
    }
    /// `struct SieveArgs` of the next launch.
    pub fn words(&self, chosen: u64, jobs: u64) -> [u64; SIEVE_WORDS] {
        let mark = self.mark.fetch_add(1, Ordering::Relaxed) + 1;
        let [a, b, c, d] = cells(self.tiles).1.map(|offset| self.cells.address() + offset);
        [chosen, jobs, a, b, c, d, mark, self.out.address(0)]
    }
    /// How many the last launch chose, which the host has waited for.
    pub fn hits(&self) -> u64 {
        let slot = self.out.read(0);
        slot.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }
}
