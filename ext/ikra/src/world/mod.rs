//! What the compiler asks about the live program.
//!
//! Here: the block and what it captures, answers about classes, methods and constants, and facts about live values.
//! Not here: what the answers mean to a program ([`ikra_core::infer`]), and columns ([`crate::marshal`]).
//! Invariant: each answer is logged as a guard, or is a fact that packing checks. So a later call notices where an
//! answer would be another.

pub mod block;
pub mod class_variables;
pub mod hashes;
pub mod large_stack;
pub mod live_world;
pub mod observe;
