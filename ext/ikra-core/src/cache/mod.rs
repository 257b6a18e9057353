//! Compiled code kept between processes.
//!
//! Here: [`key`], what identifies code, and [`disk`], where it lies. Not here: what the bytes mean (the backend that
//! made them knows), and kernels kept in memory (each call site holds its own).

pub mod disk;
pub mod key;
