//! Parts of columns that are filled at the same time.
//!
//! Here: [`Rows`], some rows of a slot's columns, cut so that each thread has its own. Not here: what is put there.

use crate::marshal::plan::SlotPlan;
use ikra_core::ir::ColumnId;
use ikra_core::memory::column::HostColumn;
use std::ops::Range;

/// Rows of a slot's columns.
#[derive(Default)]
pub(super) struct Rows<'a> {
    len: usize,
    pub values: Cells<'a>,
    /// Empty where the slot has no tags.
    pub tags: &'a mut [u8],
}

/// The column of a slot's values, by the width of a row.
#[derive(Default)]
pub(super) enum Cells<'a> {
    #[default]
    None,
    Bytes(&'a mut [u8]),
    Halves(&'a mut [u32]),
    Words(&'a mut [u64]),
}

impl<'a> Cells<'a> {
    fn of(column: &'a mut HostColumn) -> Self {
        match column.storage().bytes() {
            1 => Cells::Bytes(column.view_mut::<u8>()),
            4 => Cells::Halves(column.view_mut::<u32>()),
            _ => Cells::Words(column.view_mut::<u64>()),
        }
    }

    fn split_at(self, at: usize) -> (Cells<'a>, Cells<'a>) {
        match self {
            Cells::None => (Cells::None, Cells::None),
            Cells::Bytes(cells) => {
                let (a, b) = cells.split_at_mut(at);
                (Cells::Bytes(a), Cells::Bytes(b))
            }
            Cells::Halves(cells) => {
                let (a, b) = cells.split_at_mut(at);
                (Cells::Halves(a), Cells::Halves(b))
            }
            Cells::Words(cells) => {
                let (a, b) = cells.split_at_mut(at);
                (Cells::Words(a), Cells::Words(b))
            }
        }
    }
}

/// For each wanted slot, so many rows from some row on. Slots may have a column in common, but no rows.
pub(super) fn rows<'a>(columns: &'a mut [HostColumn], wanted: &[(&SlotPlan, usize, usize)]) -> Vec<Rows<'a>> {
    let mut taken: Vec<Rows<'a>> = wanted.iter().map(|(_, _, len)| Rows { len: *len, ..Rows::default() }).collect();
    let parts = wanted.iter().enumerate().flat_map(|(i, (slot, start, len))| {
        let part = move |column: ColumnId, is_tag| (column.index(), *start, *len, i, is_tag);
        // A slot without rows needs no column, which may be elsewhere.
        let columns = (*len > 0).then_some([(slot.value, false), (slot.tag, true)]).into_iter().flatten();
        columns.filter_map(move |(column, is_tag)| column.map(|column| part(column, is_tag)))
    });
    let mut parts: Vec<_> = parts.collect();
    parts.sort_unstable();
    let mut columns = columns.iter_mut().enumerate();
    for parts in parts.chunk_by(|(one, ..), (other, ..)| one == other) {
        let column = columns.find(|(at, _)| *at == parts[0].0).expect("columns come in their order, each once").1;
        let (mut rest, mut next) = (Cells::of(column), 0);
        for (_, start, len, i, is_tag) in parts {
            let (cells, after) = rest.split_at(start - next).1.split_at(*len);
            (rest, next) = (after, start + len);
            match cells {
                Cells::Bytes(tags) if *is_tag => taken[*i].tags = tags,
                cells => taken[*i].values = cells,
            }
        }
    }
    taken
}

impl<'a> Rows<'a> {
    pub fn part(&mut self, rows: Range<usize>) -> Rows<'_> {
        let values = match &mut self.values {
            Cells::None => Cells::None,
            Cells::Bytes(cells) => Cells::Bytes(&mut cells[rows.clone()]),
            Cells::Halves(cells) => Cells::Halves(&mut cells[rows.clone()]),
            Cells::Words(cells) => Cells::Words(&mut cells[rows.clone()]),
        };
        let tags = if self.tags.is_empty() { &mut [] } else { &mut self.tags[rows.clone()] };
        Rows { len: rows.len(), values, tags }
    }

    /// Splits off the next so many rows.
    pub fn take(&mut self, len: usize) -> Rows<'a> {
        let Rows { len: all, values, tags } = std::mem::take(self);
        let (values, others) = values.split_at(len);
        let (tags, behind) = tags.split_at_mut(if tags.is_empty() { 0 } else { len });
        *self = Rows { len: all - len, values: others, tags: behind };
        Rows { len, values, tags }
    }
}
