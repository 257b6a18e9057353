//! Ruby text to our tree.
//!
//! Here: [`ast`], the tree; `lower`, the only importer of lib-ruby-parser; [`mod@print`], the tree as text for tests;
//! [`visit`], going through it. Not here: types and meaning.

pub mod ast;
mod lower;
pub mod print;
pub mod visit;

pub use lower::{Form, Item, Members, outline, parse_block, parse_expression, parse_method, symbol_block};
