//! The backends of this process.
//!
//! Here: opening a backend at its first use, and the choice that `auto` makes. Not here: what a backend is
//! ([`ikra_core::backend`]), and launches ([`crate::section`]).
//! Invariant: nothing here holds a Ruby object.

pub mod backends;
