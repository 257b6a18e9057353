//! Ruby objects to columns, and columns to Ruby objects.
//!
//! ```text
//! schema ─► plan;  objects ─► trace ─► pack ─► (launch) ─► decode ─► unpack ─► objects
//! ```
//!
//! Here: the tables of reachable objects, the graph cache, which has them between calls, the columns, the objects that
//! a kernel made, and the write-back. Not here: what is compiled, and what is launched ([`crate::section`]); which
//! types the values have ([`crate::world`]). Invariant: the schema of a program says all that this folder knows of the
//! program. Nothing of the user's changes before the write-back, which checks everything first.

pub mod capacity;
pub mod decode;
pub mod graph_cache;
pub mod held_procs;
pub mod made;
pub mod pack;
pub mod plan;
pub mod trace;
pub mod unpack;
