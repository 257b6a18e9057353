//! Where a column's rows lie in memory.
//!
//! Here: [`Layout`], the only place that says how an address is computed, and [`schema`], what the columns mean. Not
//! here: code ([`crate::backend`] asks, and emits what it is told) and bytes ([`crate::memory`]).
//!
//! Today every column is an array of its own (structure of arrays). An array of structures is the same answer with a
//! greater stride and an offset; a tiled one is another variant of [`Address`].

pub mod schema;

use crate::ir::{ColumnId, Program};

/// How the address of a row is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `base of buffer + row * stride + offset`, in bytes.
    Strided { buffer: usize, stride: usize, offset: usize },
}

/// The placement of all columns of one program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    addresses: Vec<Address>,
    buffers: usize,
}

impl Layout {
    /// One buffer per column.
    pub fn structure_of_arrays(program: &Program) -> Self {
        let addresses = program
            .columns
            .iter()
            .enumerate()
            .map(|(buffer, c)| Address::Strided { buffer, stride: c.storage.bytes(), offset: 0 })
            .collect::<Vec<_>>();
        Self { buffers: addresses.len(), addresses }
    }
    pub fn address(&self, column: ColumnId) -> Address {
        self.addresses[column.index()]
    }
    /// How many buffers a launch passes.
    pub fn buffers(&self) -> usize {
        self.buffers
    }
}
