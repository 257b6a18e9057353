//! What kernels take of a multiprocessor, and what it has.
//!
//! Here: the figures, and the multiprocessors of some GPUs. Not here: what follows from them ([`crate::sched`]).

/// What a compiled kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resources {
    /// Registers of a thread.
    pub registers: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
    /// The most threads of a block.
    pub threads: u32,
}

impl Resources {
    /// Those of a kernel of which nothing is known: of common size.
    pub const MODEL: Self = Self { registers: 64, shared: 0, threads: 512 };
}

/// A device, as far as it says how many blocks run at once. All but the first two fields are of one multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Machine {
    pub multiprocessors: u32,
    /// Threads of a warp.
    pub warp: u32,
    pub threads: u32,
    pub blocks: u32,
    pub registers: u32,
    /// Bytes of shared memory.
    pub shared: u32,
    /// What one block may have.
    pub block_threads: u32,
    pub block_registers: u32,
    pub block_shared: u32,
    /// Bytes of shared memory that each block takes beside its own.
    pub reserved: u32,
    /// Registers are given to a warp in such units, and shared memory to a block.
    pub register_unit: u32,
    pub shared_unit: u32,
    /// Parts that have registers of their own. A warp belongs to one.
    pub partitions: u32,
}

/// The most registers that a thread may have.
pub const MAX_REGISTERS: u32 = 255;
/// Bytes of shared memory of a block, unless a kernel asks for more, which Ikra's do not.
const BLOCK_SHARED: u32 = 48 << 10;

impl Machine {
    /// A GPU of this compute capability, such as 90, with so many multiprocessors. The figures are those of the CUDA
    /// C++ Programming Guide (Technical Specifications per Compute Capability).
    pub const fn of_capability(capability: u32, multiprocessors: u32) -> Self {
        let (threads, blocks, shared) = match capability {
            ..=74 => (2048, 32, 96 << 10),
            75..=79 => (1024, 16, 64 << 10),
            80 => (2048, 32, 164 << 10),
            81..=88 => (1536, 16, 100 << 10),
            89 => (1536, 24, 100 << 10),
            120.. => (1536, 24, 100 << 10),
            _ => (2048, 32, 228 << 10),
        };
        let recent = capability >= 80;
        Self {
            multiprocessors,
            warp: 32,
            threads,
            blocks,
            registers: 64 << 10,
            shared,
            block_threads: 1024,
            block_registers: 64 << 10,
            block_shared: BLOCK_SHARED,
            reserved: if recent { 1 << 10 } else { 0 },
            register_unit: 256,
            shared_unit: if recent { 128 } else { 256 },
            partitions: 4,
        }
    }

    /// The GPU that plans are made for where there is none: an H200.
    pub const MODEL: Self = Self::of_capability(90, 132);

    /// The most warps of a multiprocessor.
    pub const fn warps(&self) -> u32 {
        self.threads / self.warp
    }
}

/// How many blocks of how many warps a kernel gets. Its threads loop over its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Share {
    /// Blocks of the whole grid.
    pub blocks: u32,
    /// Warps of a block.
    pub warps: u32,
}

impl Share {
    /// All threads, with so many in a warp.
    pub fn threads(self, warp: u32) -> u64 {
        u64::from(self.blocks) * u64::from(self.warps) * u64::from(warp)
    }
}
