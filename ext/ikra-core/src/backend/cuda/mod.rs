//! NVIDIA GPUs: CUDA C++ from the IR, compiled by NVRTC, run through the driver.
//!
//! | file | what it holds | needs |
//! | --- | --- | --- |
//! | [`emit`], `prelude.cuh` | the IR as CUDA C++ | nothing |
//! | [`privatization`], `privatization.cuh` | privatized reductions of blocks of threads | nothing |
//! | [`nvrtc`] | CUDA C++ to machine code | libnvrtc |
//! | [`driver`], [`storage`] | handles and memory of the device | libcuda |
//! | [`background`] | what nobody waits for but the end of the process | nothing |
//! | [`queue`], [`status`] | launches that nobody waits for, and how launches ended | libcuda |
//! | [`collective`], `collective/*.cuh` | what goes over all elements at once | a GPU; texts build anywhere |
//! | [`blas`] | products of matrices by cuBLAS | libcublas, where it is |
//! | [`launch`] | [`CudaBackend`], which puts them together | a GPU |
//! | [`shim`], `shim.hpp` | the same text run on the host, for tests | a C++ compiler |
//!
//! Not here: any rule of Ruby. Both libraries are opened when they are first needed, and that one is missing is an
//! answer, never a panic.

pub mod background;
pub mod blas;
pub mod collective;
pub mod driver;
pub mod emit;
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
