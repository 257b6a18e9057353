//! Bytes of columns, on the host.
//!
//! Here: [`column::HostColumn`]. Not here: device buffers (each backend owns its own) and what the bytes mean.

pub mod column;
