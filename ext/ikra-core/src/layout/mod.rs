//! Where a column's rows lie in memory.
//!
//! Here: [`Layout`], the only place that defines how an address is computed, and [`schema`], the meaning of columns.
//! Not here: code (a [`crate::backend`] emits the addresses that this defines) and bytes ([`crate::memory`]).
//!
//! Normally every column is an array of its own (structure of arrays). The other arrangement serves to measure what
//! that is worth. There, the fields of the same objects share a buffer, object by object (array of structures). A tiled
//! layout would be another variant of [`Address`].

pub mod schema;

use crate::config::Arrangement;
use crate::ir::{ColumnId, Program, Space};

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
    /// Bytes of a row of each buffer.
    strides: Vec<usize>,
}

impl Layout {
    /// The layout for an arrangement, which is an option.
    pub fn of(program: &Program, arrangement: Arrangement) -> Self {
        match arrangement {
            Arrangement::Columns => Self::structure_of_arrays(program),
            Arrangement::Structures => Self::array_of_structures(program),
        }
    }
    /// One buffer per column.
    pub fn structure_of_arrays(program: &Program) -> Self {
        let strides: Vec<usize> = program.columns.iter().map(|c| c.storage.bytes()).collect();
        let one = |(buffer, stride): (usize, &usize)| Address::Strided { buffer, stride: *stride, offset: 0 };
        Self { addresses: strides.iter().enumerate().map(one).collect(), strides }
    }
    /// One buffer for all fields of the same classes, widest fields first. Each object begins at a multiple of its
    /// widest field. All other columns have buffers of their own, also those in which the program takes new rows.
    pub fn array_of_structures(program: &Program) -> Self {
        let shares = |space: Space| {
            matches!(space, Space::Class { .. }) && !program.heaps.iter().any(|heap| space.covers(heap.space))
        };
        let mut addresses = vec![None; program.columns.len()];
        let mut strides = Vec::new();
        for first in 0..program.columns.len() {
            if addresses[first].is_some() {
                continue;
            }
            let space = program.columns[first].space;
            let mut fields: Vec<usize> = match shares(space) {
                true => (first..program.columns.len()).filter(|i| program.columns[*i].space == space).collect(),
                false => vec![first],
            };
            let bytes = |i: usize| program.columns[i].storage.bytes();
            fields.sort_by_key(|i| std::cmp::Reverse(bytes(*i)));
            let stride = fields.iter().map(|i| bytes(*i)).sum::<usize>().next_multiple_of(bytes(fields[0]));
            let mut offset = 0;
            for field in fields {
                addresses[field] = Some(Address::Strided { buffer: strides.len(), stride, offset });
                offset += bytes(field);
            }
            strides.push(stride);
        }
        Self { addresses: addresses.into_iter().flatten().collect(), strides }
    }
    pub fn address(&self, column: ColumnId) -> Address {
        self.addresses[column.index()]
    }
    /// The buffer of a column that shares it with no other, row after row.
    pub fn own_buffer(&self, program: &Program, column: ColumnId) -> Option<usize> {
        let Address::Strided { buffer, stride, offset } = self.address(column);
        (offset == 0 && stride == program.columns[column.index()].storage.bytes()).then_some(buffer)
    }
    /// How many buffers a launch passes.
    pub fn buffers(&self) -> usize {
        self.strides.len()
    }
    /// Whether any two columns share a buffer.
    pub fn is_shared(&self) -> bool {
        self.strides.len() < self.addresses.len()
    }
    /// The columns of a buffer: their numbers, and where each begins in a row.
    pub fn fields(&self, buffer: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.addresses.iter().enumerate().filter_map(move |(column, address)| {
            let Address::Strided { buffer: b, offset, .. } = *address;
            (b == buffer).then_some((column, offset))
        })
    }
    /// For each buffer, whether the program writes any of its columns.
    pub fn written(&self, program: &Program) -> Vec<bool> {
        let mut written = vec![false; self.buffers()];
        for (Address::Strided { buffer, .. }, column) in self.addresses.iter().zip(&program.columns) {
            written[*buffer] |= column.written;
        }
        written
    }
    /// Bytes of a buffer's row.
    pub fn stride(&self, buffer: usize) -> usize {
        self.strides[buffer]
    }
}
