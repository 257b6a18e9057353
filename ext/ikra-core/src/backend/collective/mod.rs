//! Collective operations, which work on all elements at once: reductions, scans, selections, sorting, grouping.
//!
//! Here: the operations as data, the order in which they combine elements, and their implementation on the cores of the
//! host. Not here: the same for GPUs ([`super::cuda::collective`]), and any rule of Ruby. The caller decides what a
//! NaN, an overflow or an empty list means; results only report them.
//!
//! # Order
//!
//! Sums and products of Floats depend on the order of their elements. The order is a property of the operation, not of
//! the machine, so that all backends give the same bits:
//!
//! * Elements are split into *tiles* of [`TILE`] neighbours. The last one may be shorter.
//! * A tile has [`LANES`] *lanes*. Lane `l` starts with the operation's neutral state and combines the elements at `l`,
//!   `l + LANES`, `l + 2 * LANES`, … in this order. (So neighbouring threads of a GPU read neighbours, and a processor
//!   computes neighbouring lanes in one vector.)
//! * A tree makes one state of the lanes of a tile. Within each warp of 32, lane `l` is combined with lane `l + d` for
//!   `d` = 16, 8, 4, 2, 1. Then the states of the 8 warps are combined likewise, for `d` = 4, 2, 1.
//! * The states of all tiles are combined as if they were the elements of one more tile, however many there are.
//!
//! Sums of Floats are compensated like those of `Array#sum`: each state is a sum and what its additions lost
//! (Neumaier's variant of Kahan's summation). Two states are added in the same way. Integers are added in 128 bits,
//! which no sum of 2^64 of them exceeds, so their order does not matter. It does not matter for comparing and counting
//! either: of equal elements the first counts.
//!
//! Scans are split differently: see [`scan`]. Sorting is stable, and groups are numbered in the order in which they
//! appear, so those results are deterministic, too.

pub mod cells;
pub mod emitted;
mod equal;
pub mod exact_sum;
pub mod float_totals;
pub mod groups;
pub mod keys;
pub mod monitor;
#[cfg(feature = "cpu")]
pub mod product;
pub mod reduce;
pub mod rows;
pub mod scan;
pub mod select;
pub mod sketch;
pub mod sort;
pub mod table;
#[cfg(test)]
pub mod testing;
pub mod words;

use crate::backend::CancelToken;
use crate::backend::threads::Threads;
use crate::error::Result;
use crate::ir::Storage;
use parking_lot::Mutex;

/// Elements of a tile of a reduction.
pub const TILE: usize = 8192;
/// Lanes of a tile, which are the threads of a block.
pub const LANES: usize = 256;
/// Lanes of a warp.
pub const WARP: usize = 32;

/// A type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    I64,
    I32,
    U8,
    F64,
    F32,
}

impl Element {
    pub const ALL: [Element; 5] = [Element::I64, Element::I32, Element::U8, Element::F64, Element::F32];

    pub fn bytes(self) -> usize {
        match self {
            Element::I64 | Element::F64 => 8,
            Element::I32 | Element::F32 => 4,
            Element::U8 => 1,
        }
    }
    pub fn is_float(self) -> bool {
        matches!(self, Element::F64 | Element::F32)
    }
    /// The type of a column's elements; None for references.
    pub fn stored(storage: Storage) -> Option<Self> {
        Self::ALL.into_iter().find(|element| element.storage() == storage)
    }
}

/// Elements on the host.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    I64(&'a [i64]),
    I32(&'a [i32]),
    U8(&'a [u8]),
    F64(&'a [f64]),
    F32(&'a [f32]),
}

impl Values<'_> {
    pub fn element(&self) -> Element {
        match self {
            Values::I64(_) => Element::I64,
            Values::I32(_) => Element::I32,
            Values::U8(_) => Element::U8,
            Values::F64(_) => Element::F64,
            Values::F32(_) => Element::F32,
        }
    }
    pub fn len(&self) -> usize {
        match self {
            Values::I64(x) => x.len(),
            Values::I32(x) => x.len(),
            Values::U8(x) => x.len(),
            Values::F64(x) => x.len(),
            Values::F32(x) => x.len(),
        }
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One element: an Integer, or a Float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i64),
    Float(f64),
}

/// The threads that work on a collective operation, and the token that cancels it.
#[derive(Clone, Copy)]
pub struct Workers<'a> {
    pub threads: &'a Threads,
    pub cancel: &'a CancelToken,
}

/// From so many pieces on, workers are woken.
const MIN_PARALLEL_PIECES: usize = 4;
/// A thread takes one part in so many, times the number of threads, of the pieces that are left.
const MIN_SHARES: usize = 2;

impl Workers<'_> {
    /// The results of `piece` for `0..count`, in order. None: cancelled.
    ///
    /// # Errors
    /// `Device` when the system cannot start threads.
    pub fn each<T: Send>(&self, count: usize, piece: impl Fn(usize) -> T + Sync) -> Result<Option<Vec<T>>> {
        self.all((0..count).collect(), piece)
    }

    /// As [`Workers::each`], for few large pieces, which check the token themselves.
    ///
    /// # Errors
    /// `Device` when the system cannot start threads.
    pub fn several<T: Send>(&self, count: usize, piece: impl Fn(usize) -> T + Sync) -> Result<Vec<T>> {
        if count < 2 {
            return Ok((0..count).map(piece).collect());
        }
        Ok(self.threads.map((0..count).collect(), piece))
    }

    /// The results of `piece` for all pieces, in order. None: cancelled.
    ///
    /// # Errors
    /// `Device` when the system cannot start threads.
    pub fn all<I: Send, T: Send>(&self, pieces: Vec<I>, piece: impl Fn(I) -> T + Sync) -> Result<Option<Vec<T>>> {
        let one = |i| (!self.cancel.is_cancelled()).then(|| piece(i));
        let threads = self.threads.count();
        if pieces.len() < MIN_PARALLEL_PIECES || threads == 1 {
            return Ok(pieces.into_iter().map(one).collect());
        }
        let helpers = pieces.len() - 1;
        let mut pieces: Vec<Option<I>> = pieces.into_iter().map(Some).collect();
        let mut made: Vec<Option<T>> = pieces.iter().map(|_| None).collect();
        let left = Mutex::new((&mut pieces[..], &mut made[..]));
        // A thread takes neighbours, for the caches. It takes fewer near the end, so that all threads end at about the
        // same time.
        let take = || {
            let mut left = left.lock();
            let (pieces, made) = std::mem::take(&mut *left);
            let some = pieces.len().div_ceil(MIN_SHARES * threads);
            let ((own, others), (to, rest)) = (pieces.split_at_mut(some), made.split_at_mut(some));
            *left = (others, rest);
            (own, to)
        };
        let work = || {
            loop {
                let (own, to) = take();
                if own.is_empty() {
                    return;
                }
                for (piece, to) in own.iter_mut().zip(to) {
                    *to = piece.take().and_then(one);
                }
            }
        };
        self.threads.share(helpers, &work)?;
        Ok(made.into_iter().collect())
    }
}
