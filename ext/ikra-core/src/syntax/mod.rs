//! Parses Ruby text into our tree.
//!
//! Here: [`ast`], the tree; `lower`, the only importer of lib-ruby-parser; [`mod@print`], which prints a tree for
//! tests; [`visit`], which walks a tree. [`words`] finds blocks that look at one word after the other. [`wrap()`] puts
//! a section's block into the operation's block. Not here: types and meaning.

pub mod ast;
mod lower;
pub mod print;
pub mod visit;
pub mod words;
mod wrap;

pub use lower::{
    Form, Item, Members, native_block, outline, parse_block, parse_expression, parse_method, symbol_block,
};
/// The name of the captured local that holds the block of the method around a block. No program can name it.
pub const OUTER_BLOCK: &str = "&";
/// The name of the captured local that holds a section's block itself, which has no text.
pub const OWN_BLOCK: &str = "&&";

pub use wrap::{Wrapping, default_of, given, given_at, has_default, wrap, written};
