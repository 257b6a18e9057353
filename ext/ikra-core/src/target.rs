//! Facts about the machine that code runs on, as plain data, so that no earlier stage imports a backend.

/// A device as code generation and job ordering need to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `cpu`, `sm_90`…: part of cache keys.
    pub architecture: String,
    /// Threads that run in lockstep: jobs of one class start at a multiple of it. 1 on a CPU.
    pub warp: usize,
    /// Depth of nested calls after which SystemStackError is raised.
    pub call_depth: u32,
    /// Bytes of memory that columns may take.
    pub memory: u64,
    /// Bytes that a block of threads may share; 0: there are no such blocks.
    pub shared_memory: u64,
}
