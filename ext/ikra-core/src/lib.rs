//! Ikra's compiler and runtime, without Ruby: text, facts and columns go in; kernels, columns and diagnostics come out.
//!
//! # The pipeline
//!
//! ```text
//! source → syntax → infer ⇄ world → ir → passes → layout → backend.prepare → (pack) → backend.launch → (unpack)
//! ```
//!
//! # The layers, from the bottom; a module uses only those before it
//!
//! * [`id`], [`diagnostic`], [`error`], [`config`], [`target`], [`process`]: indices, messages, options, facts about
//!   devices, the id of the process
//! * [`regexp`]: Ruby's regular expressions as tables
//! * [`source`], [`syntax`], [`world`]: Ruby text, its tree, facts about live values
//! * [`prelude`]: methods of Ruby's core classes, written in Ruby
//! * [`types`], [`infer`]: the lattice of types, and the fixpoint that types a block
//! * [`ir`]: the program with Ruby's rules made explicit
//! * [`lower`]: typed trees to the IR
//! * [`passes`]: the passes that improve it
//! * [`layout`]: where the rows of columns lie in memory, and the meaning of columns
//! * [`memory`]: the bytes of columns
//! * [`cache`]: compiled code on disk
//! * [`backend`]: reference interpreter, CPU, CUDA
//! * [`engine`]: the only module that sees all others
//!
//! The crate denies `unsafe`. The modules that need it allow it at their beginning, with the reason:
//!
//! * [`process`], [`cache::disk`], and in [`memory`]: `ahead`, `column`, `pages`, `pool`, `table`
//! * in [`backend`]: `libm`, `worker_pool`, `arena` and `jit` of the CPU backend, and the files of the CUDA backend
//!   that call the driver or its shim
#![deny(unsafe_code)]

pub mod backend;
pub mod cache;
pub mod config;
pub mod diagnostic;
pub mod engine;
pub mod error;
pub mod id;
pub mod infer;
pub mod ir;
pub mod layout;
pub mod locks;
pub mod lower;
pub mod memory;
pub mod passes;
pub mod prelude;
pub mod process;
pub mod regexp;
pub mod sched;
pub mod source;
pub mod syntax;
pub mod target;
pub mod types;
pub mod unicode;
pub mod world;
