//! Ruby text to our tree.
//!
//! Here: [`ast`], the tree; `lower`, the only importer of lib-ruby-parser; [`mod@print`], the tree as text for tests;
//! [`visit`], going through it; [`wrap()`], a block within what an operation does. Not here: types and meaning.

pub mod ast;
mod lower;
pub mod print;
pub mod visit;
mod wrap;

pub use lower::{Form, Item, Members, outline, parse_block, parse_expression, parse_method, symbol_block};
/// The name of the captured local that holds the block of the method around a block. No program can name it.
pub const OUTER_BLOCK: &str = "&";

pub use wrap::{Wrapping, given, given_at, wrap, written};
