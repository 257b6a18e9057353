//! Copies columns into the buffers that they share in a layout, and back.
//!
//! Here: the copying, which only a layout of arrays of structures needs. Not here: which columns share a buffer
//! ([`crate::layout`]). Invariant: the columns of one buffer have equally many rows, and the copies change no row.

use super::column::HostColumn;
use crate::ir::Storage;
use crate::layout::Layout;

/// The buffers of a layout, with the rows of the columns. A column that shares no buffer is moved into its buffer, and
/// is empty until [`scatter`].
pub fn gather(layout: &Layout, columns: &mut [HostColumn]) -> Vec<HostColumn> {
    let one = |buffer: usize| {
        let fields: Vec<_> = layout.fields(buffer).collect();
        if let [(column, 0)] = fields[..] {
            let empty = HostColumn::zeroed(columns[column].storage(), 0);
            return std::mem::replace(&mut columns[column], empty);
        }
        let stride = layout.stride(buffer);
        let rows = fields.iter().map(|(column, _)| columns[*column].len()).max().unwrap_or(0);
        let mut shared = HostColumn::zeroed(Storage::U8, rows * stride);
        for (column, offset) in fields {
            let width = columns[column].storage().bytes();
            let rows = shared.bytes_mut().chunks_exact_mut(stride).zip(columns[column].bytes().chunks_exact(width));
            rows.for_each(|(row, value)| row[offset..offset + width].copy_from_slice(value));
        }
        shared
    };
    (0..layout.buffers()).map(one).collect()
}

/// Copies the rows of the buffers back into the columns.
pub fn scatter(layout: &Layout, buffers: Vec<HostColumn>, columns: &mut [HostColumn]) {
    for (buffer, shared) in buffers.into_iter().enumerate() {
        let fields: Vec<_> = layout.fields(buffer).collect();
        if let [(column, 0)] = fields[..] {
            columns[column] = shared;
            continue;
        }
        for (column, offset) in fields {
            let width = columns[column].storage().bytes();
            let rows = shared
                .bytes()
                .chunks_exact(layout.stride(buffer))
                .zip(columns[column].bytes_mut().chunks_exact_mut(width));
            rows.for_each(|(row, value)| value.copy_from_slice(&row[offset..offset + width]));
        }
    }
}
