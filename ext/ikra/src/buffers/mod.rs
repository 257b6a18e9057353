//! Typed arrays: `Ikra::Buffer`, and the view of an MDArray's elements for C code of other libraries.
//!
//! Here: the Ruby object around an array, its elements in and out. Not here: where the bytes are and when they move
//! ([`ikra_core::memory::buffer`]), and operations over all elements ([`crate::section`]).
//! Invariant: a buffer holds numbers, true and false, and never a Ruby object. So the GC need not mark it.

pub mod buffer;
pub mod memory_view;
pub mod text;
