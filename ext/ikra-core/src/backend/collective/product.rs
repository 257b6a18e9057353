//! Products of matrices of Floats on the cores of the host, by the crate `gemm`.
//!
//! Here: how a product is split into tiles for the threads, and the library's calls. Not here: whether to use it
//! (the bridge). The library has its own order of additions, multiplies and adds in one rounding, and multiplies Floats
//! of 32 bits in 32 bits. So its results have other bits than those of Ikra's own kernel.
//!
//! Invariant: the bits depend on the matrices, the library's version and the processor, not on the number of threads.
//! The library splits only the inner dimension, by its length and the processor's caches. A thread computes whole tiles
//! of the result, each of which covers the inner dimension. The library chooses another order for tiles of at most
//! [`SMALL`] rows and columns, so a larger product is not split into such tiles.
#![allow(unsafe_code, reason = "calls of the library with addresses of rows that are held here")]

use super::rows::{Matrix, Product};
use super::{Element, Workers};
use crate::error::{Error, Result};
use crate::memory::column::HostColumn;
use gemm_common::Parallelism;

/// The library has an order of its own for products of at most so many rows and columns.
const SMALL: usize = 64;
/// Sides of tiles to choose from. Smaller tiles are read too often, larger ones delay a cancellation.
const SIDES: [usize; 6] = [96, 128, 192, 256, 384, 512];
/// Floats of 64 bits in the widest vector.
const VECTOR: usize = 8;
const _: () = assert!(SIDES[0] > SMALL + VECTOR, "parts begin up to a vector earlier");
/// The time to prepare one row or column of a tile, as so many multiplications of each step of the inner dimension.
/// Measured: tiles of 256² take 10 % longer than the whole matrix, those of 64² 40 %.
const PER_LINE: f64 = 13.0;
/// Threads seldom begin and end together. They lose this part of a tile's time.
const UNEVEN: f64 = 0.25;

/// The distances of two rows and of two columns.
#[derive(Clone, Copy)]
struct Strides {
    down: isize,
    right: isize,
}

impl Matrix<'_> {
    fn strides(&self) -> Strides {
        let lead = self.lead as isize;
        if self.turned { Strides { down: 1, right: lead } } else { Strides { down: lead, right: 1 } }
    }
}

/// In how many parts to split so many rows or columns, so that a part has about `most`, but not much less than the
/// smallest side.
fn parts(length: usize, most: usize) -> usize {
    length.div_ceil(most).min(length / SIDES[0]).max(1)
}

/// The beginning of a part. Parts begin at multiples of a vector.
fn begin(length: usize, parts: usize, part: usize) -> usize {
    if part == parts { length } else { part * length / parts / VECTOR * VECTOR }
}

/// In how many parts to split the rows and the columns for so many threads: where they end first.
fn tiles(threads: usize, product: &Product<'_>) -> (usize, usize) {
    let (rows, columns) = (product.rows, product.columns);
    let ways = SIDES.iter().flat_map(|high| SIDES.iter().map(|wide| (parts(rows, *high), parts(columns, *wide))));
    let time = |(down, across): (usize, usize)| {
        let rounds = (down * across * product.count).div_ceil(threads.max(1)) as f64;
        let (high, wide) = (rows as f64 / down as f64, columns as f64 / across as f64);
        (rounds + UNEVEN) * (high * wide + PER_LINE * (high + wide))
    };
    ways.min_by(|a, b| time(*a).total_cmp(&time(*b))).unwrap_or((1, 1))
}

/// The products, side by side. None: cancelled.
///
/// # Errors
/// `Internal` for matrices beyond their rows, or that have no Floats; `Device` when the system cannot start threads.
pub fn product(workers: Workers<'_>, product: &Product<'_>) -> Result<Option<HostColumn>> {
    if product.inner == 0 || !product.fits() || !product.element.is_float() {
        let detail = "matrices without Floats, or beyond their rows".to_owned();
        return Err(Error::Internal { stage: "product", detail });
    }
    let mut out = HostColumn::zeroed(product.element.storage(), product.len());
    let done = match product.element {
        Element::F64 => of_kind(workers, product, &mut out, gemm_f64::gemm::f64::get_gemm_fn(), 0.0, 1.0)?,
        _ => of_kind(workers, product, &mut out, gemm_f32::gemm::f32::get_gemm_fn(), 0.0, 1.0)?,
    };
    Ok(done.then_some(out))
}

/// The library's function for one type of Floats. See [`of_kind`] for what its parameters are.
type Gemm<T> = unsafe fn(
    usize,
    usize,
    usize,
    *mut T,
    isize,
    isize,
    bool,
    *const T,
    isize,
    isize,
    *const T,
    isize,
    isize,
    T,
    T,
    bool,
    bool,
    bool,
    Parallelism,
);

/// An address of the result, of which each thread writes a part of its own.
#[derive(Clone, Copy)]
struct Out<T>(*mut T);

// SAFETY: threads write to disjoint tiles only, and nobody reads before all have ended.
unsafe impl<T: Send> Send for Out<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Out<T> {}

impl<T> Out<T> {
    fn address(&self) -> *mut T {
        self.0
    }
}

fn of_kind<T: crate::memory::column::Element>(
    workers: Workers<'_>,
    product: &Product<'_>,
    out: &mut HostColumn,
    multiply: Gemm<T>,
    zero: T,
    one: T,
) -> Result<bool> {
    let Product { left, right, rows, inner, columns, count, .. } = *product;
    let (down, across) = tiles(workers.threads.count(), product);
    let (of_left, of_right) = (left.strides(), right.strides());
    let (lefts, rights): (&[T], &[T]) = (left.rows.view(), right.rows.view());
    let to = Out(out.view_mut::<T>().as_mut_ptr());
    let tile = |piece: usize| {
        let (which, tile) = (piece / (down * across), piece % (down * across));
        let (row, column) = (begin(rows, down, tile / across), begin(columns, across, tile % across));
        let high = begin(rows, down, tile / across + 1) - row;
        let wide = begin(columns, across, tile % across + 1) - column;
        let from = lefts[left.from + which * left.apart..].as_ptr().wrapping_offset(row as isize * of_left.down);
        let other = rights[right.from + which * right.apart..].as_ptr();
        let other = other.wrapping_offset(column as isize * of_right.right);
        // The library is quickest with results whose columns are contiguous. Ours have contiguous rows. So it computes
        // their transposes: the right matrix is its left one.
        // SAFETY: `Product::fits` has checked that all elements of both matrices exist, for all products. `row` and
        // `column` are within them, and the tile ends at their ends. The result has room for `count` products of
        // `rows` × `columns`; no other thread writes to this tile, and the column outlives the threads.
        unsafe {
            multiply(
                wide,
                high,
                inner,
                to.address().add(which * rows * columns + row * columns + column),
                columns as isize,
                1,
                false,
                other,
                of_right.down,
                of_right.right,
                from,
                of_left.down,
                of_left.right,
                zero,
                one,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    };
    Ok(workers.each(count * down * across, tile)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::super::rows::column;
    use super::super::testing::Random;
    use super::*;
    use crate::backend::CancelToken;
    use crate::backend::threads::Threads;

    /// What an operand looks like: turned, the elements before it and between its lines, whether all products share it.
    type Form = (bool, usize, usize, bool);

    fn elements(
        lines: usize,
        length: usize,
        (_, before, between, shared): Form,
        count: usize,
    ) -> (usize, usize, usize) {
        let lead = length + between;
        let apart = if shared { 0 } else { lead * lines };
        (lead, apart, before + lead * lines * if shared { 1 } else { count })
    }

    /// The products by the library, with so many threads, and by a loop.
    fn both(
        (rows, inner, columns, count): (usize, usize, usize, usize),
        [left, right]: [Form; 2],
        threads: usize,
        value: &mut dyn FnMut() -> f64,
    ) -> (Vec<f64>, Vec<f64>) {
        let mut operand = |high: usize, wide: usize, form: Form| {
            let (lines, length) = if form.0 { (wide, high) } else { (high, wide) };
            let (lead, apart, all) = elements(lines, length, form, count);
            (column(crate::ir::Storage::F64, &(0..all).map(|_| value()).collect::<Vec<f64>>()), lead, apart)
        };
        let (one, two) = (operand(rows, inner, left), operand(inner, columns, right));
        let element = |of: &(HostColumn, usize, usize), form: Form, which: usize, i: usize, j: usize| {
            let (lead, apart) = (of.1, of.2);
            let at = if form.0 { j * lead + i } else { i * lead + j };
            of.0.view::<f64>()[form.1 + which * apart + at]
        };
        let given = Product {
            element: Element::F64,
            left: Matrix { rows: &one.0, from: left.1, turned: left.0, lead: one.1, apart: one.2 },
            right: Matrix { rows: &two.0, from: right.1, turned: right.0, lead: two.1, apart: two.2 },
            rows,
            inner,
            columns,
            count,
        };
        let workers = Workers { threads: &Threads::new(threads), cancel: &CancelToken::default() };
        let made = product(workers, &given).expect("it fits").expect("nobody cancels");
        let mut expected = Vec::new();
        for at in 0..count * rows * columns {
            let (which, i, j) = (at / (rows * columns), at / columns % rows, at % columns);
            let products = (0..inner).map(|k| element(&one, left, which, i, k) * element(&two, right, which, k, j));
            expected.push(products.sum());
        }
        (made.view().to_vec(), expected)
    }

    const PLAIN: Form = (false, 0, 0, false);

    #[test]
    fn whole_numbers_are_exact_in_all_forms() {
        let mut r = Random(1);
        let mut whole = || (r.word() % 17) as f64 - 8.0;
        let forms = [PLAIN, (true, 0, 0, false), (false, 5, 3, false), (true, 2, 7, false), (false, 1, 0, true)];
        for left in forms {
            for right in forms {
                for sizes in [(1, 1, 1, 1), (3, 4, 5, 2), (130, 20, 97, 1), (33, 9, 300, 3), (1, 50, 200, 2)] {
                    let (made, expected) = both(sizes, [left, right], 2, &mut whole);
                    assert_eq!(made, expected, "{sizes:?} {left:?} {right:?}");
                }
            }
        }
    }

    #[test]
    fn the_bits_are_the_same_for_any_number_of_threads() {
        for sizes in [(200, 600, 200, 1), (65, 1100, 64, 1), (500, 40, 70, 1), (97, 20, 97, 3)] {
            for form in [PLAIN, (true, 0, 0, false)] {
                let of = |threads| {
                    let mut r = Random(7);
                    both(sizes, [form, form], threads, &mut || r.unit() - 0.5).0
                };
                let one = of(1);
                for threads in [2, 3, 16] {
                    assert!(of(threads) == one, "{sizes:?} with {threads} threads");
                }
            }
        }
    }

    #[test]
    fn nan_and_infinity_stay_where_ruby_has_them() {
        let mut r = Random(3);
        let mut special = || match r.word() % 400 {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            n => (n % 5) as f64 - 2.0,
        };
        for sizes in [(5, 7, 9, 1), (70, 33, 90, 1), (129, 31, 131, 1)] {
            let (made, expected) = both(sizes, [PLAIN, PLAIN], 2, &mut special);
            let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
            assert!(made.iter().zip(&expected).all(same), "{sizes:?}");
            assert!(made.iter().any(|x| x.is_nan()) || sizes.0 == 5);
        }
    }

    #[test]
    fn tiles_of_a_large_product_are_not_small() {
        let none = column(crate::ir::Storage::F64, &[0.0f64; 0]);
        let matrix = Matrix { rows: &none, from: 0, turned: false, lead: 0, apart: 0 };
        for length in [65, 97, 129, 193, 500, 1000, 2000, 4097] {
            for threads in [1, 2, 7, 16, 200] {
                let (rows, columns) = (length, length);
                let given =
                    Product { element: Element::F64, left: matrix, right: matrix, rows, inner: 1, columns, count: 1 };
                let (down, across) = tiles(threads, &given);
                for parts in [down, across] {
                    let least = (0..parts).map(|at| begin(length, parts, at + 1) - begin(length, parts, at)).min();
                    assert!(least > Some(SMALL), "{length} for {threads}: {least:?}");
                }
            }
        }
    }

    #[test]
    fn a_cancelled_product_has_no_value() {
        let ones = column(crate::ir::Storage::F64, &[1.0f64; 4]);
        let matrix = Matrix { rows: &ones, from: 0, turned: false, lead: 2, apart: 0 };
        let given =
            Product { element: Element::F64, left: matrix, right: matrix, rows: 2, inner: 2, columns: 2, count: 1 };
        let cancel = CancelToken::default();
        cancel.cancel();
        let workers = Workers { threads: &Threads::new(1), cancel: &cancel };
        assert!(product(workers, &given).expect("it fits").is_none());
    }
}
