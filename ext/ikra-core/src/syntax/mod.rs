//! Ruby text to our tree.
//!
//! Here: [`ast`], the tree, and `lower`, the only importer of lib-ruby-parser. Not here: types and meaning.

pub mod ast;
