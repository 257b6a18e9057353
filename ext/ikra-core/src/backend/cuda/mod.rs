//! NVIDIA GPUs: CUDA C++ from the IR, compiled by NVRTC, run through the driver.
//!
//! Here: [`emit`] (text, needs no device), [`shim`] (the same text run on the host, for tests). Not here: any rule of
//! Ruby.

pub mod emit;
pub mod nvrtc;
pub mod shim;

#[cfg(test)]
mod tests;
