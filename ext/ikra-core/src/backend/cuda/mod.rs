//! NVIDIA GPUs: generates CUDA C++ from the IR, compiles it with NVRTC and runs it with the driver.
//!
//! Files, and what they need:
//! - [`emit`], `prelude.cuh`: the IR as CUDA C++. Need nothing.
//! - [`privatization`], `privatization.cuh`: privatized reductions of blocks of threads. Need nothing.
//! - [`groups`], `groups.cuh`: groups of the pairs that kernels emit. Need nothing.
//! - [`nvrtc`]: CUDA C++ to machine code. Needs libnvrtc.
//! - [`driver`], [`storage`]: handles and memory of the device. Need libcuda.
//! - [`background`]: background work, for which the end of the process waits. Needs nothing.
//! - [`queue`], [`status`]: asynchronous launches, and how launches ended. Need libcuda.
//! - [`collective`], `collective/*.cuh`: collective operations. Need a GPU to run; their texts build anywhere.
//! - [`blas`]: products of matrices by cuBLAS. Needs libcublas, if it is there.
//! - [`launch`]: [`CudaBackend`], which puts these together. Needs a GPU.
//! - [`shim`], `shim.hpp`: the same text run on the host, for tests. Need a C++ compiler.
//!
//! Not here: any rule of Ruby. Libraries are opened when they are first needed. A missing one is an error, never a
//! panic.

pub mod background;
pub mod blas;
pub mod collective;
pub mod driver;
pub mod emit;
pub mod graph;
pub mod groups;
pub mod launch;
pub mod nvrtc;
pub mod privatization;
pub mod queue;
pub mod shim;
pub mod status;
pub mod storage;

pub use launch::CudaBackend;
pub use shim::CudaShim;

#[cfg(test)]
mod tests;
