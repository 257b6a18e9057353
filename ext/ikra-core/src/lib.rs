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
//! | modules | what they hold |
//! | --- | --- |
//! | [`id`], [`diagnostic`], [`error`], [`config`], [`target`], [`process`] | indices, messages, options, device facts, which process it is |
//! | [`source`], [`syntax`], [`world`] | Ruby text, its tree, facts about live values |
//! | [`prelude`] | methods of Ruby's core classes, written in Ruby |
//! | [`types`], [`infer`] | the lattice, and the fixpoint that types a block |
//! | [`ir`], [`passes`] | the program with Ruby's rules made explicit, and what improves it |
//! | [`layout`] | where columns' rows lie, and what they mean |
//! | [`memory`] | their bytes |
//! | [`cache`] | compiled code kept on disk |
//! | [`backend`] | reference interpreter, CPU, CUDA |
//! | [`engine`] | the only module that sees all others |
//!
//! `unsafe` is open in [`process`], [`memory::column`], [`memory::pages`], [`memory::pool`], [`cache::disk`], [`backend::libm`],
//! [`backend::collective`]'s `vectors`, the CPU backend's `jit` and the CUDA backend's driver-facing files; nowhere else.
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
pub mod memory;
pub mod passes;
pub mod prelude;
pub mod process;
pub mod sched;
pub mod source;
pub mod syntax;
pub mod target;
pub mod types;
pub mod world;
