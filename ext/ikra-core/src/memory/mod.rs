//! Bytes of columns.
//!
//! Here: [`column::HostColumn`], the rows of a column of one launch; [`words::HostWords`], the host's memory that holds them, and [`pool::Pool`], which lends some that is used again and
//! page-locked; [`free_list`], which keeps smaller ones; [`table::Table`], in which such memory grows;
//! [`buffer::Buffer`], arrays that outlive launches and know where their contents are; [`completion::Completion`], what
//! those depend on; [`interleave`], for layouts in which columns share memory; [`even`], for arrays that lie evenly;
//! [`small`], for Integers that are small; [`pages`] and [`ahead`], advice about the host's; [`room`], whether there is
//! enough. Not here: how a device's memory is had (each backend owns its own) and what the bytes mean.

pub mod ahead;
pub mod buffer;
pub mod column;
pub mod completion;
pub mod even;
pub mod free_list;
pub mod interleave;
pub mod pages;
pub mod pool;
pub mod room;
pub mod small;
pub mod table;
pub mod words;
