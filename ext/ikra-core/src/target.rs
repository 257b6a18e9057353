//! Facts about the machine that runs the code, as plain data, so that no earlier stage imports a backend.

/// A device, as far as code generation and job ordering need to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// `cpu`, `sm_90`…; a part of cache keys.
    pub architecture: String,
    /// The number of threads that run in lockstep. Jobs of one class start at a multiple of it. 1 on a CPU.
    pub warp: usize,
    /// Depth of nested calls after which SystemStackError is raised.
    pub call_depth: u32,
    /// Bytes of memory that columns may use.
    pub memory: u64,
    /// Bytes of memory that a block of threads may share. 0: there are no such blocks.
    pub shared_memory: u64,
}
