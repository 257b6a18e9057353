//! Ruby's own objects and rules, as the rest of the bridge needs them.
//!
//! Here: reading Ruby's heap, also with several threads; keeping objects alive, and remembering their addresses;
//! questions to classes, methods and instruction sequences; the GVL; exceptions; the allocator. Not here: anything that
//! knows a section, a schema or a backend.
//! Invariant: this folder uses no other folder of the bridge, so each of the others may use it.

pub mod addresses;
pub mod constants;
pub mod deferred_error;
pub mod derivation;
pub mod dtype;
pub mod encode;
pub mod environment;
pub mod errors;
pub mod fiber;
pub mod gate;
pub mod gvl;
pub mod hash_table;
pub mod heap;
pub mod holder;
pub mod identity;
pub mod iseq;
pub mod lines;
pub mod list;
pub mod question;
pub mod range;
pub mod reflect;
pub mod registry;
pub mod reserve;
pub mod unicode;
pub mod workers;
