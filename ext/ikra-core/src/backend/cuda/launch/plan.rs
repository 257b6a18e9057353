//! The layout of a launch's arena, and which bytes of columns are copied.
//!
//! Here: the use of each column ([`Use`]), their places in the launch's arena ([`Plan`]), and which parts share a copy
//! ([`runs`]). Not here: the copies.
//!
//! The arena of a launch has these parts, in this order:
//! 1. Columns that are only read.
//! 2. Arguments that exceed those of a launch.
//! 3. Columns that are partly written.
//! 4. The status block, which is the stop key and the trap record of the prelude.
//! 5. Columns that are completely written, which need not be uploaded.
//!
//! Small parts share one copy in each direction.

use super::{ALIGNMENT, SMALL_SLOT_BYTES, STATUS_WORDS};
use crate::backend::Fresh;
use crate::ir::{Column, Program, filled};
use crate::layout::Layout;
use crate::memory::column::HostColumn;
use std::ops::Range;

/// The use of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It is not copied.
    None,
    Read,
    /// Partly written: the other rows keep their values.
    Written,
    /// Completely written: each row by its own element.
    Filled,
}

impl Use {
    /// The use of a layout's buffers. A buffer of several columns counts as partly written, because no column writes
    /// all of it.
    pub(super) fn of_buffers(program: &Program, layout: &Layout) -> Vec<Self> {
        let columns = Self::of_columns(program);
        let one = |buffer| {
            let fields: Vec<Use> = layout.fields(buffer).map(|(column, _)| columns[column]).collect();
            match fields[..] {
                [alone] => alone,
                _ if fields.iter().any(|u| matches!(u, Use::Written | Use::Filled)) => Use::Written,
                _ if fields.contains(&Use::Read) => Use::Read,
                _ => Use::None,
            }
        };
        (0..layout.buffers()).map(one).collect()
    }

    fn of_columns(program: &Program) -> Vec<Self> {
        let one = |(column, filled): (&Column, bool)| match (column.read, column.written) {
            (false, false) => Use::None,
            (true, false) => Use::Read,
            (false, true) if filled => Use::Filled,
            _ => Use::Written,
        };
        program.columns.iter().zip(filled::filled(program)).map(one).collect()
    }
}

/// The places of a launch's columns in its arena.
pub(super) struct Plan {
    /// The offset of each column. None: it is not copied.
    pub(super) offsets: Vec<Option<usize>>,
    /// The offset of the arguments in memory.
    pub(super) arguments: usize,
    /// The offset of the first written column.
    pub(super) written: usize,
    pub(super) status: usize,
    /// The offset of the first column that is completely written.
    pub(super) filled: usize,
    pub(super) end: usize,
}

impl Plan {
    pub(super) fn new(columns: &[Use], lengths: &[usize], arguments: usize) -> Self {
        let mut offsets = vec![None; columns.len()];
        let mut place = |mut end: usize, wanted: Use| {
            for (i, column) in columns.iter().enumerate() {
                if *column == wanted {
                    offsets[i] = Some(end);
                    end += lengths[i].next_multiple_of(ALIGNMENT);
                }
            }
            end
        };
        let read = place(0, Use::Read);
        let written = read + arguments.next_multiple_of(ALIGNMENT);
        let status = place(written, Use::Written);
        let filled = (status + STATUS_WORDS * 8).next_multiple_of(ALIGNMENT);
        let end = place(filled, Use::Filled);
        Self { offsets, arguments: read, written, status, filled, end }
    }

    /// The offset of a column, if all of it is uploaded. `whole`: completely written columns are uploaded, too.
    pub(super) fn goes_up(&self, column: usize, fresh: &[Fresh], whole: bool) -> Option<usize> {
        let offset = self.offsets[column].filter(|offset| whole || *offset < self.filled);
        offset.filter(|_| fresh.iter().all(|fresh| fresh.column.index() != column))
    }

    /// The offset of a column, if all of it is downloaded.
    pub(super) fn comes_back(&self, column: usize, fresh: &[Fresh]) -> Option<usize> {
        self.goes_up(column, fresh, true).filter(|offset| *offset >= self.written)
    }

    /// The parts to upload, at ascending offsets, without columns that are `there` already. `whole`: completely written
    /// columns are uploaded, too.
    pub(super) fn parts_up<'a>(
        &self,
        columns: &'a [HostColumn],
        fresh: &[Fresh],
        arguments: &'a [u8],
        status: &'a [u8],
        whole: bool,
        there: &[bool],
    ) -> Vec<(usize, &'a [u8])> {
        let mut parts = Vec::new();
        for (i, (column, offset)) in columns.iter().zip(&self.offsets).enumerate() {
            let Some(offset) = offset.filter(|_| !is_there(there, i)) else { continue };
            for range in meaningful(column, fresh.iter().filter(|f| f.column.index() == i), |_| 0) {
                parts.push((offset + range.start, &column.bytes()[range]));
            }
        }
        parts.retain(|(offset, _)| whole || *offset < self.filled);
        parts.extend([(self.arguments, arguments), (self.status, status)].into_iter().filter(|p| !p.1.is_empty()));
        parts.sort_by_key(|(offset, bytes)| (*offset, bytes.len()));
        parts
    }

    /// The parts to download, at ascending offsets, without columns that are `there` already.
    pub(super) fn parts_back<'a>(
        &self,
        columns: &'a mut [HostColumn],
        fresh: &[Fresh],
        status: &'a mut [u8],
        there: &[bool],
    ) -> Vec<(usize, &'a mut [u8])> {
        // so many rows of each range of fresh rows were allocated
        let taken = |f: &Fresh| f.taken.map_or(0, |c| columns[c.index()].view::<u64>()[0]);
        let taken: Vec<u64> = fresh.iter().map(taken).collect();
        let mut parts = Vec::new();
        for (i, (column, offset)) in columns.iter_mut().zip(&self.offsets).enumerate() {
            let Some(offset) = offset.filter(|_| !is_there(there, i)) else { continue };
            let here = || fresh.iter().enumerate().filter(|(_, f)| f.column.index() == i);
            let count = |f: &Fresh| here().find(|(_, other)| *other == f).map_or(0, |(at, _)| taken[at]);
            let ranges = meaningful(column, here().map(|(_, f)| f), count);
            let (mut rest, mut at) = (column.bytes_mut(), 0);
            for range in ranges {
                let (_, tail) = rest.split_at_mut(range.start - at);
                let (part, tail) = tail.split_at_mut(range.len());
                parts.push((offset + range.start, part));
                (rest, at) = (tail, range.end);
            }
        }
        parts.retain(|(offset, _)| *offset >= self.written);
        parts.push((self.status, status));
        parts.sort_by_key(|(offset, bytes)| (*offset, bytes.len()));
        parts
    }
}

fn is_there(there: &[bool], column: usize) -> bool {
    there.get(column).copied().unwrap_or(false)
}

/// The bytes of a column without unspecified rows: of each range of fresh rows, only the first `taken` count.
pub(super) fn meaningful<'a>(
    column: &HostColumn,
    fresh: impl Iterator<Item = &'a Fresh>,
    taken: impl Fn(&Fresh) -> u64,
) -> Vec<Range<usize>> {
    let width = column.storage().bytes();
    let mut left: Vec<Range<usize>> = fresh
        .map(|f| {
            let begin = f.rows.end.min(f.rows.start.saturating_add(taken(f)));
            begin as usize * width..f.rows.end as usize * width
        })
        .filter(|r| !r.is_empty())
        .collect();
    left.sort_by_key(|r| r.start);
    let mut ranges = Vec::new();
    let mut at = 0;
    for gap in left {
        ranges.push(at..gap.start);
        at = gap.end;
    }
    ranges.push(at..column.byte_len());
    ranges.retain(|r| !r.is_empty());
    ranges
}

/// Groups parts that are close enough to each other to share one copy. Parts with many other bytes between them are
/// copied separately.
pub(super) fn runs<T: AsRef<[u8]>>(parts: Vec<(usize, T)>) -> Vec<Vec<(usize, T)>> {
    let mut runs: Vec<Vec<(usize, T)>> = Vec::new();
    let mut end = 0;
    for (offset, part) in parts {
        let length = part.as_ref().len();
        match runs.last_mut() {
            Some(run) if offset <= end + SMALL_SLOT_BYTES => run.push((offset, part)),
            _ => runs.push(vec![(offset, part)]),
        }
        end = offset + length;
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{ColumnId, Storage};

    #[test]
    fn an_arena_holds_what_is_read_then_what_is_written_then_the_status() {
        let uses = [Use::Written, Use::None, Use::Filled, Use::Read, Use::Written];
        let plan = Plan::new(&uses, &[10, 99, 1000, 300, 256], 0);
        assert_eq!(plan.offsets, [Some(512), None, Some(1280), Some(0), Some(768)]);
        assert_eq!((plan.written, plan.status, plan.filled, plan.end), (512, 1024, 1280, 2304));
        let mut columns = [10, 99, 1000, 300, 256].map(|n| HostColumn::zeroed(Storage::U8, n));
        let offsets = |parts: Vec<(usize, &[u8])>| parts.iter().map(|p| p.0).collect::<Vec<_>>();
        assert_eq!(offsets(plan.parts_up(&columns, &[], &[], &[0; 64], false, &[])), [0, 512, 768, 1024]);
        assert_eq!(offsets(plan.parts_up(&columns, &[], &[], &[0; 64], true, &[])), [0, 512, 768, 1024, 1280]);
        let mut status = [0; 64];
        let back = plan.parts_back(&mut columns, &[], &mut status, &[]);
        assert_eq!(back.iter().map(|p| p.0).collect::<Vec<_>>(), [512, 768, 1024, 1280]);
        // arguments are uploaded with the columns that are read, and not downloaded
        let plan = Plan::new(&uses, &[10, 99, 1000, 300, 256], 5000);
        assert_eq!((plan.arguments, plan.written, plan.end), (512, 5632, 7424));
        assert_eq!(offsets(plan.parts_up(&columns, &[], &[0; 5000], &[0; 64], false, &[])), [0, 512, 5632, 5888, 6144]);
        assert_eq!(plan.parts_back(&mut columns, &[], &mut status, &[])[0].0, 5632);
        // a column that was copied already is omitted; one with unspecified rows is not copied completely
        let there = [false, false, true, true, false];
        assert_eq!(offsets(plan.parts_up(&columns, &[], &[], &[0; 64], true, &there)), [5632, 5888, 6144]);
        assert_eq!([0, 1, 2, 3].map(|i| plan.goes_up(i, &[], false)), [Some(5632), None, None, Some(0)]);
        assert_eq!([0, 1, 2, 3].map(|i| plan.comes_back(i, &[])), [Some(5632), None, Some(6400), None]);
        let fresh = Fresh { column: ColumnId::new(0), rows: 4..10, taken: None };
        let fresh = std::slice::from_ref(&fresh);
        assert_eq!((plan.goes_up(0, fresh, true), plan.comes_back(0, fresh)), (None, None));
    }
}
