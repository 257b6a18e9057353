//! What runs on a backend for a Ruby call.
//!
//! Here: one section, from the call to its value ([`engine`]); operations over whole arrays ([`over`], [`collect`],
//! [`grouping`], [`combining`], [`columns`], [`sums`]); words that are only counted ([`words`]); captured Hashes
//! ([`hash_updates`]); array expressions that are not computed yet ([`pending`], [`form`]); the seed of `rand`
//! ([`random`]). Not here: each single step, which the other folders have.
//! Invariant: only this folder launches kernels.

pub mod collect;
mod columns;
pub mod combining;
pub mod engine;
pub mod form;
pub mod grouping;
pub mod hash_updates;
mod listed;
pub mod over;
pub mod pending;
pub mod random;
pub mod sums;
pub mod words;
