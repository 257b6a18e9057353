//! Memory of columns.
//!
//! Here:
//! - [`column::HostColumn`]: the rows of a column of one launch.
//! - [`words::HostWords`]: the host memory that holds them.
//! - [`pool::Pool`]: large host memory that is reused and page-locked; [`free_list`]: smaller host memory that is
//!   reused.
//! - [`table::Table`]: a growing table in such memory.
//! - [`buffer::Buffer`]: arrays that outlive launches and know where their contents are.
//! - [`completion::Completion`]: the completion of a launch, on which contents depend.
//! - [`interleave`]: the copying for layouts in which columns share memory.
//! - [`uniform_stride`]: the check for a uniform stride; [`value_range`]: that of value-range assumptions.
//! - [`pages`] and [`ahead`]: hints about pages and cache lines.
//! - [`room`]: whether host memory suffices.
//!
//! Not here: device memory, which each backend allocates itself, and what the bytes mean.

pub mod ahead;
pub mod buffer;
pub mod column;
pub mod completion;
pub mod free_list;
pub mod interleave;
pub mod pages;
pub mod pool;
pub mod room;
pub mod table;
pub mod uniform_stride;
pub mod value_range;
pub mod words;
