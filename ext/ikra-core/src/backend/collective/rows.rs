//! Collective operations over rows of columns, which run where the rows are.
//!
//! Here: [`Collective`], which a backend with memory of its own implements for rows in that memory; the host's
//! [`Workers`] implement it for all others. Both give the same bits. Results are columns in the same memory. Not here:
//! the operations themselves (beside this file, and in [`crate::backend::cuda::collective`]), and the choice of where
//! one runs (the bridge).

use super::groups::of_values;
use super::scan::{Scan, ScanFlags, Scanned};
use super::sort::{self, By, Key, Keys};
use super::{Element, Values, Workers, scan, select};
use crate::error::Result;
use crate::ir::Storage;
use crate::memory::column::HostColumn;
use crate::memory::room;
use std::ops::Range;

/// A range of rows of a column.
#[derive(Clone, Debug)]
pub struct Stretch<'a> {
    pub element: Element,
    pub rows: &'a HostColumn,
    pub range: Range<usize>,
}

/// The wanted result of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Give {
    /// The sorted keys.
    Keys,
    /// The places of the keys before the sort, as u32, counted from the start of the stretch.
    Places,
}

/// Groups as in [`super::groups::Grouped`], in columns of u32.
#[derive(Clone, Debug)]
pub struct GroupedRows {
    pub group_of: HostColumn,
    pub firsts: HostColumn,
    pub counts: HostColumn,
}

/// Runs collective operations. A result of None means cancelled.
pub trait Collective {
    /// For each element, the state of it and all before it, in rows of [`Scan::total`]'s type.
    ///
    /// # Errors
    /// `Memory`, `Device`; `Internal` for rows in other memory. The same goes for all operations.
    fn scan(&self, scan: Scan, from: Stretch<'_>) -> Result<Option<(HostColumn, ScanFlags)>>;

    /// The elements whose flags (of one byte) are not 0, in their order. Without elements, the indices of those flags,
    /// as u32.
    ///
    /// # Errors
    /// As [`Collective::scan`].
    fn select(&self, flags: Stretch<'_>, from: Option<Stretch<'_>>) -> Result<Option<HostColumn>>;

    /// Sorts each `row` neighbours separately. Places keep equal keys in their order; keys are sorted in the exact
    /// order.
    ///
    /// # Errors
    /// As [`Collective::scan`].
    fn sort(&self, keys: Stretch<'_>, row: usize, descending: bool, give: Give) -> Result<Option<HostColumn>>;

    /// Groups of equal keys, in the order in which they first appear.
    ///
    /// # Errors
    /// As [`Collective::scan`].
    fn groups(&self, keys: Stretch<'_>) -> Result<Option<GroupedRows>>;

    /// The elements at these places, which are u32 and count from the start of the stretch.
    ///
    /// # Errors
    /// As [`Collective::scan`].
    fn pick(&self, from: Stretch<'_>, places: &HostColumn) -> Result<Option<HostColumn>>;

    /// Products of matrices of Floats in row-major order, by a library of the machine, which has its own order of
    /// additions. None: there is no such library, or it cannot multiply these. For rows of the host, see
    /// [`super::product`].
    ///
    /// # Errors
    /// As [`Collective::scan`].
    fn product(&self, _: &Product<'_>) -> Result<Option<HostColumn>> {
        Ok(None)
    }
}

/// A matrix, or several, within rows of a column.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    pub rows: &'a HostColumn,
    /// The index of the first element.
    pub from: usize,
    /// Whether columns, not rows, are contiguous.
    pub turned: bool,
    /// The distance between two rows (columns if `turned`).
    pub lead: usize,
    /// The distance between two matrices; 0: all are the same.
    pub apart: usize,
}

/// `count` products of `rows` × `inner` by `inner` × `columns` matrices.
#[derive(Clone, Copy)]
pub struct Product<'a> {
    pub element: Element,
    pub left: Matrix<'a>,
    pub right: Matrix<'a>,
    pub rows: usize,
    pub inner: usize,
    pub columns: usize,
    pub count: usize,
}

impl Product<'_> {
    /// Whether both operands are in range, and of the same type.
    pub fn fits(&self) -> bool {
        let side = |matrix: &Matrix<'_>, rows: usize, columns: usize| {
            let (lines, length) = if matrix.turned { (columns, rows) } else { (rows, columns) };
            let last = |n: usize, apart: usize| n.checked_sub(1)?.checked_mul(apart);
            let end = || {
                let end = last(self.count, matrix.apart)?.checked_add(last(lines, matrix.lead)?)?;
                end.checked_add(length)?.checked_add(matrix.from)
            };
            let rows = matrix.rows;
            rows.storage() == self.element.storage()
                && matrix.lead >= length
                && end().is_some_and(|end| end <= rows.len())
        };
        side(&self.left, self.rows, self.inner) && side(&self.right, self.inner, self.columns)
    }
    /// How many elements the products have.
    pub fn len(&self) -> usize {
        self.count * self.rows * self.columns
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Element {
    /// The storage of such elements.
    pub fn storage(self) -> Storage {
        match self {
            Element::I64 => Storage::I64,
            Element::I32 => Storage::I32,
            Element::U8 => Storage::U8,
            Element::F64 => Storage::F64,
            Element::F32 => Storage::F32,
        }
    }
    /// The type of such elements as sort keys.
    pub fn key(self) -> Key {
        match self {
            Element::I64 => Key::I64,
            Element::I32 => Key::I32,
            Element::U8 => Key::U8,
            Element::F64 => Key::F64,
            Element::F32 => Key::F32,
        }
    }
}

impl<'a> Stretch<'a> {
    pub fn len(&self) -> usize {
        self.range.len()
    }
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }
    /// The elements; the rows must be on the host.
    pub fn values(&self) -> Values<'a> {
        let (rows, range) = (self.rows, self.range.clone());
        match self.element {
            Element::I64 => Values::I64(&rows.view()[range]),
            Element::I32 => Values::I32(&rows.view()[range]),
            Element::U8 => Values::U8(&rows.view()[range]),
            Element::F64 => Values::F64(&rows.view()[range]),
            Element::F32 => Values::F32(&rows.view()[range]),
        }
    }
    fn keys(&self) -> Keys<'a> {
        match self.values() {
            Values::I64(x) => Keys::I64(x),
            Values::I32(x) => Keys::I32(x),
            Values::U8(x) => Keys::U8(x),
            Values::F64(x) => Keys::F64(x),
            Values::F32(x) => Keys::F32(x),
        }
    }
    fn flags(&self) -> &'a [u8] {
        &self.rows.view()[self.range.clone()]
    }
}

/// A host column with these numbers.
pub fn column<T: crate::memory::column::Element>(storage: Storage, values: &[T]) -> HostColumn {
    let mut column = HostColumn::zeroed(storage, values.len());
    column.view_mut().copy_from_slice(values);
    column
}

fn of_scanned(scanned: &Scanned) -> HostColumn {
    match scanned {
        Scanned::I64(x) => column(Storage::I64, x),
        Scanned::I32(x) => column(Storage::I32, x),
        Scanned::U8(x) => column(Storage::U8, x),
        Scanned::F64(x) => column(Storage::F64, x),
        Scanned::F32(x) => column(Storage::F32, x),
    }
}

/// Longer rows are sorted by several threads.
const MAX_ROW_OF_ONE_THREAD: usize = 1 << 14;

/// The order within each row, for all rows in sequence, counted from the start of the first row.
fn order_of_rows(workers: Workers<'_>, keys: &Stretch<'_>, row: usize, by: By) -> Result<Option<Vec<u32>>> {
    let rows = keys.len().div_ceil(row.max(1));
    let own = |at: usize| {
        let start = keys.range.start + at * row;
        Stretch { range: start..keys.range.end.min(start + row), ..keys.clone() }
    };
    if row > MAX_ROW_OF_ONE_THREAD || rows < 2 {
        let mut all: Vec<u32> = room::with_capacity(keys.len());
        for at in 0..rows {
            let Some(order) = sort::order(workers, own(at).keys(), by)? else { return Ok(None) };
            all.extend(order.iter().map(|place| place + (at * row) as u32));
        }
        return Ok(Some(all));
    }
    let piece = (MAX_ROW_OF_ONE_THREAD / row.max(1)).max(1);
    let sorted = workers.each(rows.div_ceil(piece), |p| {
        let mut all: Vec<u32> = room::with_capacity(piece * row);
        for at in p * piece..rows.min((p + 1) * piece) {
            let order = sort::order_alone(own(at).keys(), by);
            all.extend(order.iter().map(|place| place + (at * row) as u32));
        }
        all
    })?;
    Ok(sorted.map(|pieces| room::concat(&pieces)))
}

/// The elements at these places.
fn picked(workers: Workers<'_>, from: &Stretch<'_>, places: &[u32]) -> Result<Option<HostColumn>> {
    fn all<T: crate::memory::column::Element>(
        workers: Workers<'_>,
        (storage, values): (Storage, &[T]),
        places: &[u32],
    ) -> Result<Option<HostColumn>> {
        let mut out = HostColumn::zeroed(storage, places.len());
        let pieces: Vec<_> =
            out.view_mut::<T>().chunks_mut(MAX_ROW_OF_ONE_THREAD).zip(places.chunks(MAX_ROW_OF_ONE_THREAD)).collect();
        let done = workers.all(pieces, |(out, places)| {
            out.iter_mut().zip(places).for_each(|(out, place)| *out = values[*place as usize]);
        })?;
        Ok(done.map(|_| out))
    }
    let storage = from.element.storage();
    match from.values() {
        Values::I64(x) => all(workers, (storage, x), places),
        Values::I32(x) => all(workers, (storage, x), places),
        Values::U8(x) => all(workers, (storage, x), places),
        Values::F64(x) => all(workers, (storage, x), places),
        Values::F32(x) => all(workers, (storage, x), places),
    }
}

impl Collective for Workers<'_> {
    fn scan(&self, how: Scan, from: Stretch<'_>) -> Result<Option<(HostColumn, ScanFlags)>> {
        let scanned = scan::scan(*self, how, from.values())?;
        Ok(scanned.map(|(values, flags)| (of_scanned(&values), flags)))
    }

    fn select(&self, flags: Stretch<'_>, from: Option<Stretch<'_>>) -> Result<Option<HostColumn>> {
        let flags = flags.flags();
        let Some(from) = from else {
            return Ok(select::indices(*self, flags)?.map(|places| column(Storage::U32, &places)));
        };
        let storage = from.element.storage();
        macro_rules! chosen {
            ($x:expr) => {
                select::chosen(*self, flags, $x)?.map(|chosen| column(storage, &chosen))
            };
        }
        Ok(match from.values() {
            Values::I64(x) => chosen!(x),
            Values::I32(x) => chosen!(x),
            Values::U8(x) => chosen!(x),
            Values::F64(x) => chosen!(x),
            Values::F32(x) => chosen!(x),
        })
    }

    fn sort(&self, keys: Stretch<'_>, row: usize, descending: bool, give: Give) -> Result<Option<HostColumn>> {
        let by = By { descending, exact: give == Give::Keys };
        let Some(order) = order_of_rows(*self, &keys, row, by)? else { return Ok(None) };
        match give {
            Give::Places => Ok(Some(column(Storage::U32, &order))),
            Give::Keys => picked(*self, &keys, &order),
        }
    }

    fn pick(&self, from: Stretch<'_>, places: &HostColumn) -> Result<Option<HostColumn>> {
        picked(*self, &from, places.view())
    }

    fn groups(&self, keys: Stretch<'_>) -> Result<Option<GroupedRows>> {
        let grouped = of_values(*self, keys.values())?;
        Ok(grouped.map(|grouped| GroupedRows {
            group_of: column(Storage::U32, &grouped.group_of),
            firsts: column(Storage::U32, &grouped.firsts),
            counts: column(Storage::U32, &grouped.counts),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, on_host};
    use super::*;

    fn floats(values: &[f64]) -> HostColumn {
        column(Storage::F64, values)
    }

    #[test]
    fn rows_are_sorted_each_by_itself_whatever_their_length() {
        let mut r = Random(3);
        for (row, rows) in [(1, 5), (3, 4), (100, 700), (MAX_ROW_OF_ONE_THREAD + 1, 3), (50_000, 1)] {
            let values: Vec<f64> = (0..row * rows).map(|_| (r.unit() * 50.0).floor() - 25.0).collect();
            let from = floats(&values);
            let keys = || Stretch { element: Element::F64, rows: &from, range: 0..values.len() };
            for descending in [false, true] {
                let mut expected: Vec<u32> = (0..values.len() as u32).collect();
                for own in expected.chunks_mut(row) {
                    own.sort_by(|a, b| {
                        let order = values[*a as usize].total_cmp(&values[*b as usize]);
                        if descending { order.reverse() } else { order }
                    });
                }
                let places = on_host(|workers| workers.sort(keys(), row, descending, Give::Places));
                assert_eq!(places.view::<u32>(), expected, "{rows} rows of {row}");
                let sorted = on_host(|workers| workers.sort(keys(), row, descending, Give::Keys));
                assert!(sorted.view::<f64>().iter().eq(expected.iter().map(|at| &values[*at as usize])));
            }
        }
    }

    #[test]
    fn only_the_stretch_is_looked_at() {
        let from = floats(&[9.0, 2.0, 1.0, 2.0, -9.0]);
        let flags = column(Storage::U8, &[1u8, 0, 1, 1, 1]);
        let part = || Stretch { element: Element::F64, rows: &from, range: 1..4 };
        let on = || Stretch { element: Element::U8, rows: &flags, range: 1..4 };
        assert_eq!(on_host(|workers| workers.scan(Scan::Sum, part())).0.view::<f64>(), [2.0, 3.0, 5.0]);
        assert_eq!(on_host(|workers| workers.select(on(), Some(part()))).view::<f64>(), [1.0, 2.0]);
        assert_eq!(on_host(|workers| workers.select(on(), None)).view::<u32>(), [1, 2]);
        assert_eq!(on_host(|workers| workers.sort(part(), 3, false, Give::Places)).view::<u32>(), [1, 0, 2]);
        let grouped = on_host(|workers| workers.groups(part()));
        assert_eq!((grouped.group_of.view::<u32>(), grouped.firsts.view::<u32>()), (&[0, 1, 0][..], &[0, 1][..]));
        assert_eq!(grouped.counts.view::<u32>(), [2, 1]);
        assert_eq!(on_host(|workers| workers.pick(part(), &grouped.firsts)).view::<f64>(), [2.0, 1.0]);
    }
}
