//! [`CudaShim`] as a [`Machine`] for collective kernels, for tests. Its device memory is host memory, and it runs each
//! launch at once, one block after the other. Not here: the arguments of the kernels, which the tests provide.
#![allow(unsafe_code, reason = "addresses of the host's own memory")]

use super::{Blocks, Machine, Scratch, Text};
use crate::backend::cuda::CudaShim;
use crate::error::Result;
use std::sync::atomic::AtomicU64;

pub struct OnShim<'a> {
    shim: &'a CudaShim,
    counter: AtomicU64,
}

impl<'a> OnShim<'a> {
    /// `shim` must support barriers.
    pub fn new(shim: &'a CudaShim) -> Self {
        Self { shim, counter: AtomicU64::new(0) }
    }
}

/// The number of blocks that "run at once". It is small, so that some have several tiles.
const BLOCKS: u64 = 3;

struct HostScratch(Vec<AtomicU64>);

impl Scratch for HostScratch {
    fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }
}

impl Machine for OnShim<'_> {
    fn allocate(&self, bytes: usize) -> Result<Box<dyn Scratch + '_>> {
        // filled with a pattern, because kernels must not rely on the contents
        let words = (0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0xabab_abab_abab_abab));
        Ok(Box::new(HostScratch(words.collect())))
    }
    fn counter(&self) -> Result<u64> {
        Ok(self.counter.as_ptr() as u64)
    }
    fn fill(&self, address: u64, length: usize, byte: u8) -> Result<()> {
        // SAFETY: `address` is in scratch memory of this file, or in memory that a test keeps until it has read it.
        unsafe { CudaShim::fill(address, length, byte) };
        Ok(())
    }
    fn run(&self, text: &Text, blocks: Blocks, args: &mut [u64]) -> Result<()> {
        let grid = match blocks {
            Blocks::All(all) => all,
            Blocks::Resident(most) => most.min(BLOCKS),
            Blocks::Even(tiles) => super::blocks(tiles, BLOCKS),
        };
        // SAFETY: the functions of the parent module pass each kernel the words of its parameter. The memory to which
        // they point is alive, as in `fill`.
        // `fill`.
        unsafe { self.shim.run_text(&text.kernel, &text.body(), grid.max(1) as u32, text.threads, args) }
    }
}
