//! What Ikra tells of the sections that ran.
//!
//! Here: the times of `Ikra.profile`, the accounts of `Ikra.explain`, and the texts of `IKRA_DUMP`. Not here: how the
//! first two are shown (`lib/ikra/profile.rb`, `lib/ikra/explain.rb`).
//! Invariant: a section gives the same answer whether anything is told of it or not.

pub mod dump;
pub mod explain;
pub mod profile;
