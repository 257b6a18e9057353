//! Kernels kept between calls and between processes.
