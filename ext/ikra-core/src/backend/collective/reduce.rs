//! Reductions: all elements become one state.
//!
//! Here: [`Reduction`], [`Reduced`], and [`reduce`] on the host, in the order that [`super`] describes. Not here: GPUs,
//! which write the words that [`Reduction::read`] reads.

use super::{Element, LANES, Number, TILE, Values, WARP, Workers};
use crate::backend::vectors::{Work, soon, widest};
use crate::error::Result;
use crate::ir::Storage;
use crate::memory::column::{self, HostColumn};
use parking_lot::Mutex;
use std::marker::PhantomData;
use std::ops::Range;

/// A kind of reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// The sum: exact for Integers, compensated for Floats.
    Sum,
    /// The product; of Integers only while it fits 64 bits.
    Product,
    /// The least element, and its first place.
    Min,
    Max,
    MinMax,
    /// How many elements are not 0. `any?` is true if there is one, `all?` if all are.
    Count,
}

impl Reduction {
    pub const ALL: [Reduction; 6] =
        [Reduction::Sum, Reduction::Product, Reduction::Min, Reduction::Max, Reduction::MinMax, Reduction::Count];
    /// Words in which each result fits.
    pub const WORDS: usize = 8;
}

/// A sum of Floats, and what its additions lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compensated {
    pub sum: f64,
    pub lost: f64,
}

/// The bits of the NaN in all results, because processors make NaNs of either sign.
pub const NAN: u64 = 0x7ff8_0000_0000_0000;

impl Compensated {
    pub const ZERO: Self = Self { sum: 0.0, lost: 0.0 };

    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        let total = self.sum + x;
        let swap = self.sum.abs() < x.abs();
        let (large, small) = if swap { (x, self.sum) } else { (self.sum, x) };
        self.lost += (large - total) + small;
        self.sum = total;
    }

    #[inline(always)]
    pub fn merge(&mut self, other: Self) {
        let lost = self.lost + other.lost;
        self.lost = 0.0;
        self.add(other.sum);
        self.lost += lost;
    }

    /// The sum itself. Infinite and NaN elements lose nothing.
    pub fn value(self) -> f64 {
        if self.sum.is_finite() { canonical(self.sum + self.lost) } else { canonical(self.sum) }
    }
}

/// Replaces each NaN by the same NaN.
pub(super) fn canonical(x: f64) -> f64 {
    if x.is_nan() { f64::from_bits(NAN) } else { x }
}

/// An element and its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    pub index: u64,
    pub value: Number,
}

/// The result of a reduction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reduced {
    Integer(i128),
    /// The product does not fit 64 bits.
    Overflow,
    Float(f64),
    /// `Min` has only a least element, `Max` only a greatest; both are None when there is nothing to compare. `nan`:
    /// there was a NaN, which was skipped.
    Extremes {
        least: Option<Place>,
        greatest: Option<Place>,
        nan: bool,
    },
    Count(u64),
}

impl Reduction {
    /// Reads the words that a backend wrote.
    pub fn read(self, element: Element, words: &[u64; Self::WORDS]) -> Reduced {
        let place = |at: usize| {
            let value = if element.is_float() {
                Number::Float(f64::from_bits(words[at + 1]))
            } else {
                Number::Int(words[at + 1] as i64)
            };
            (words[at] != NOWHERE).then_some(Place { index: words[at], value })
        };
        let nan = words[2] != 0;
        match self {
            Reduction::Sum | Reduction::Product if element.is_float() => Reduced::Float(f64::from_bits(words[0])),
            Reduction::Sum => Reduced::Integer((u128::from(words[1]) << 64 | u128::from(words[0])) as i128),
            Reduction::Product if words[1] != 0 => Reduced::Overflow,
            Reduction::Product => Reduced::Integer(i128::from(words[0] as i64)),
            Reduction::Min => Reduced::Extremes { least: place(0), greatest: None, nan },
            Reduction::Max => Reduced::Extremes { least: None, greatest: place(0), nan },
            Reduction::MinMax => Reduced::Extremes { least: place(0), greatest: place(3), nan },
            Reduction::Count => Reduced::Count(words[0]),
        }
    }
}

/// The place of an extreme before the first element.
const NOWHERE: u64 = u64::MAX;

/// How a reduction combines states and elements.
trait Fold<T: Copy>: Sized {
    type State: Copy + Send;
    fn none() -> Self::State;
    fn take(state: &mut Self::State, x: T, index: u64);
    fn merge(state: &mut Self::State, other: Self::State);
    fn reduced(state: Self::State) -> Reduced;
    /// The state of the tile that begins at element `first`.
    #[inline(always)]
    fn tile(tile: &[T], first: u64) -> Self::State {
        tree::<T, Self>(lanes_in_registers::<T, Self>(tile, first))
    }
}

trait Numeric: Copy + Sync {
    fn int(self) -> i64;
    fn float(self) -> f64;
    fn number(self) -> Number;
    fn is_nan(self) -> bool;
    fn is_zero(self) -> bool;
    fn before(self, other: Self) -> bool;
}

macro_rules! numeric {
    ($($t:ty: $number:expr),*) => { $(impl Numeric for $t {
        #[inline(always)]
        fn int(self) -> i64 { self as i64 }
        #[inline(always)]
        fn float(self) -> f64 { self as f64 }
        fn number(self) -> Number { $number(self.into()) }
        #[inline(always)]
        #[allow(clippy::eq_op, reason = "only a NaN differs from itself")]
        fn is_nan(self) -> bool { self != self }
        #[inline(always)]
        fn is_zero(self) -> bool { self == 0 as $t }
        #[inline(always)]
        fn before(self, other: Self) -> bool { self < other }
    })* };
}
numeric!(i64: Number::Int, i32: Number::Int, u8: Number::Int, f64: Number::Float, f32: Number::Float);

struct IntSum;
impl<T: Numeric> Fold<T> for IntSum {
    type State = i128;
    fn none() -> i128 {
        0
    }
    #[inline(always)]
    fn take(state: &mut i128, x: T, _: u64) {
        *state += i128::from(x.int());
    }
    fn merge(state: &mut i128, other: i128) {
        *state += other;
    }
    fn reduced(state: i128) -> Reduced {
        Reduced::Integer(state)
    }
}

struct FloatSum;
impl<T: Numeric> Fold<T> for FloatSum {
    type State = Compensated;
    fn none() -> Compensated {
        Compensated::ZERO
    }
    #[inline(always)]
    fn take(state: &mut Compensated, x: T, _: u64) {
        state.add(x.float());
    }
    #[inline(always)]
    fn tile(tile: &[T], _: u64) -> Compensated {
        let mut lanes = Lanes::NONE;
        lanes.take(tile);
        lanes.join()
    }
    #[inline(always)]
    fn merge(state: &mut Compensated, other: Compensated) {
        state.merge(other);
    }
    fn reduced(state: Compensated) -> Reduced {
        Reduced::Float(state.value())
    }
}

/// The lanes of a sum of Floats. Sums and losses are in separate arrays, so that they are computed as vectors, each in
/// one cache line.
struct Lanes {
    sums: Row,
    losses: Row,
}

#[repr(align(64))]
struct Row([f64; LANES]);

impl Lanes {
    const NONE: Self = Self { sums: Row([0.0; LANES]), losses: Row([0.0; LANES]) };

    /// Adds row after row, the order that memory is fastest in; adding to several rows at once would load from several
    /// places. Meanwhile it prefetches a row some rows ahead, maybe in the next tile: a processor looks ahead only a
    /// few lines, too few to keep memory busy.
    #[inline(always)]
    fn take<T: Numeric>(&mut self, tile: &[T]) {
        let (rows, rest) = tile.as_chunks::<LANES>();
        for row in rows {
            soon(row.as_ptr().wrapping_add(AHEAD * LANES), LANES);
            self.take_row(row);
        }
        self.take_row(rest);
    }

    #[inline(always)]
    fn take_row<T: Numeric>(&mut self, row: &[T]) {
        for (x, (sum, lost)) in row.iter().zip(self.sums.0.iter_mut().zip(&mut self.losses.0)) {
            let mut state = Compensated { sum: *sum, lost: *lost };
            state.add(x.float());
            (*sum, *lost) = (state.sum, state.lost);
        }
    }

    /// As [`tree`], with its first steps on vectors.
    #[inline(always)]
    fn join(mut self) -> Compensated {
        self.join_halves::<16>();
        self.join_halves::<8>();
        let mut warps: [Compensated; LANES / WARP] = std::array::from_fn(|w| {
            let mut few: [Compensated; VECTOR] = std::array::from_fn(|l| self.lane(w * WARP + l));
            halve::<f64, FloatSum>(&mut few);
            few[0]
        });
        halve::<f64, FloatSum>(&mut warps);
        warps[0]
    }

    /// Combines lane `l` of each warp with lane `l + HALF`.
    #[inline(always)]
    fn join_halves<const HALF: usize>(&mut self) {
        for w in 0..LANES / WARP {
            for at in w * WARP..w * WARP + HALF {
                let mut state = self.lane(at);
                state.merge(self.lane(at + HALF));
                (self.sums.0[at], self.losses.0[at]) = (state.sum, state.lost);
            }
        }
    }

    #[inline(always)]
    fn lane(&self, at: usize) -> Compensated {
        Compensated { sum: self.sums.0[at], lost: self.losses.0[at] }
    }
}

/// A product of Integers. None: it exceeded 64 bits. Only a factor of 0 makes it fit again, in whatever order.
struct IntProduct;
#[inline(always)]
pub(super) fn product(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(0), _) | (_, Some(0)) => Some(0),
        (Some(a), Some(b)) => a.checked_mul(b),
        _ => None,
    }
}
impl<T: Numeric> Fold<T> for IntProduct {
    type State = Option<i64>;
    fn none() -> Option<i64> {
        Some(1)
    }
    #[inline(always)]
    fn take(state: &mut Option<i64>, x: T, _: u64) {
        *state = product(*state, Some(x.int()));
    }
    fn merge(state: &mut Option<i64>, other: Option<i64>) {
        *state = product(*state, other);
    }
    fn reduced(state: Option<i64>) -> Reduced {
        state.map_or(Reduced::Overflow, |x| Reduced::Integer(x.into()))
    }
}

struct FloatProduct;
impl<T: Numeric> Fold<T> for FloatProduct {
    type State = f64;
    fn none() -> f64 {
        1.0
    }
    #[inline(always)]
    fn take(state: &mut f64, x: T, _: u64) {
        *state *= x.float();
    }
    fn merge(state: &mut f64, other: f64) {
        *state *= other;
    }
    fn reduced(state: f64) -> Reduced {
        Reduced::Float(canonical(state))
    }
}

#[derive(Clone, Copy)]
struct Best<T> {
    index: u64,
    value: Option<T>,
    nan: bool,
}

impl<T: Numeric> Best<T> {
    const NONE: Self = Self { index: NOWHERE, value: None, nan: false };

    #[inline(always)]
    fn take<const GREATEST: bool>(&mut self, x: T, index: u64) {
        if x.is_nan() {
            self.nan = true;
        } else if self.value.is_none_or(|v| if GREATEST { v.before(x) } else { x.before(v) }) {
            (self.index, self.value) = (index, Some(x));
        }
    }

    fn merge<const GREATEST: bool>(&mut self, other: Self) {
        let nan = self.nan || other.nan;
        let wins = match (self.value, other.value) {
            (_, None) => false,
            (None, _) => true,
            (Some(a), Some(b)) => {
                let (before, after) = if GREATEST { (a.before(b), b.before(a)) } else { (b.before(a), a.before(b)) };
                before || !after && other.index < self.index
            }
        };
        *self = Self { nan, ..if wins { other } else { *self } };
    }

    fn place(self) -> Option<Place> {
        self.value.map(|value| Place { index: self.index, value: value.number() })
    }
}

struct Extreme<const GREATEST: bool>;
impl<T: Numeric + Send, const GREATEST: bool> Fold<T> for Extreme<GREATEST> {
    type State = Best<T>;
    fn none() -> Best<T> {
        Best::NONE
    }
    #[inline(always)]
    fn take(state: &mut Best<T>, x: T, index: u64) {
        state.take::<GREATEST>(x, index);
    }
    fn merge(state: &mut Best<T>, other: Best<T>) {
        state.merge::<GREATEST>(other);
    }
    fn reduced(state: Best<T>) -> Reduced {
        let place = state.place();
        let (least, greatest) = if GREATEST { (None, place) } else { (place, None) };
        Reduced::Extremes { least, greatest, nan: state.nan }
    }
}

struct BothExtremes;
impl<T: Numeric + Send> Fold<T> for BothExtremes {
    type State = [Best<T>; 2];
    fn none() -> [Best<T>; 2] {
        [Best::NONE; 2]
    }
    #[inline(always)]
    fn take(state: &mut [Best<T>; 2], x: T, index: u64) {
        state[0].take::<false>(x, index);
        state[1].take::<true>(x, index);
    }
    fn merge(state: &mut [Best<T>; 2], other: [Best<T>; 2]) {
        state[0].merge::<false>(other[0]);
        state[1].merge::<true>(other[1]);
    }
    fn reduced(state: [Best<T>; 2]) -> Reduced {
        Reduced::Extremes { least: state[0].place(), greatest: state[1].place(), nan: state[0].nan }
    }
}

struct Counting;
impl<T: Numeric> Fold<T> for Counting {
    type State = u64;
    fn none() -> u64 {
        0
    }
    #[inline(always)]
    fn take(state: &mut u64, x: T, _: u64) {
        *state += u64::from(!x.is_zero());
    }
    fn merge(state: &mut u64, other: u64) {
        *state += other;
    }
    fn reduced(state: u64) -> Reduced {
        Reduced::Count(state)
    }
}

/// Lanes that are computed together.
const VECTOR: usize = 8;
/// How many rows ahead one is prefetched: 32 KiB of Floats.
const AHEAD: usize = 16;

/// The states of all lanes of a tile. A few lanes are computed at a time, so that their states stay in registers.
#[inline(always)]
fn lanes_in_registers<T: Copy, F: Fold<T>>(tile: &[T], first: u64) -> [F::State; LANES] {
    let mut lanes = [F::none(); LANES];
    if tile.len() == TILE {
        for (v, out) in lanes.as_chunks_mut::<VECTOR>().0.iter_mut().enumerate() {
            let mut states = [F::none(); VECTOR];
            // prefetches each line of the next tile once, in the order of memory, although these lanes read it in
            // another order
            soon(tile.as_ptr_range().end.wrapping_add(v * TILE / LANES * VECTOR), TILE / LANES * VECTOR);
            for (r, row) in tile.as_chunks::<LANES>().0.iter().enumerate() {
                for (l, state) in states.iter_mut().enumerate() {
                    let at = v * VECTOR + l;
                    F::take(state, row[at], first + (r * LANES + at) as u64);
                }
            }
            *out = states;
        }
    } else {
        for (i, x) in tile.iter().enumerate() {
            F::take(&mut lanes[i % LANES], *x, first + i as u64);
        }
    }
    lanes
}

/// Combines the lanes of a tile to one state, in the order of a block's threads.
#[inline(always)]
fn tree<T: Copy, F: Fold<T>>(mut lanes: [F::State; LANES]) -> F::State {
    for warp in lanes.as_chunks_mut::<WARP>().0 {
        halve::<T, F>(warp);
    }
    let mut warps: [F::State; LANES / WARP] = std::array::from_fn(|w| lanes[w * WARP]);
    halve::<T, F>(&mut warps);
    warps[0]
}

#[inline(always)]
fn halve<T: Copy, F: Fold<T>>(states: &mut [F::State]) {
    let mut half = states.len() / 2;
    while half > 0 {
        let (low, high) = states.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(a, b)| F::merge(a, *b));
        half /= 2;
    }
}

/// Combines the states of all tiles to one.
fn over_tiles<T: Copy, F: Fold<T>>(tiles: &[F::State]) -> F::State {
    let mut lanes = [F::none(); LANES];
    tiles.iter().enumerate().for_each(|(i, state)| F::merge(&mut lanes[i % LANES], *state));
    tree::<T, F>(lanes)
}

/// A source of elements for tiles.
trait Source<T>: Sync {
    fn len(&self) -> usize;
    /// Calls `take` with these elements.
    fn tile<R>(&self, elements: Range<usize>, take: impl FnOnce(&[T]) -> R) -> R;
}

impl<T: Sync> Source<T> for &[T] {
    fn len(&self) -> usize {
        <[T]>::len(self)
    }
    fn tile<R>(&self, elements: Range<usize>, take: impl FnOnce(&[T]) -> R) -> R {
        take(&self[elements])
    }
}

/// Elements that are computed when they are needed. A tile at a time is written to memory that stays in a core's cache.
struct Made<M> {
    count: usize,
    storage: Storage,
    make: M,
    /// Memory for tiles that no thread is using.
    rest: Mutex<Vec<HostColumn>>,
}

impl<T: column::Element, M: Fn(Range<u64>, &mut HostColumn) + Sync> Source<T> for &Made<M> {
    fn len(&self) -> usize {
        self.count
    }
    fn tile<R>(&self, elements: Range<usize>, take: impl FnOnce(&[T]) -> R) -> R {
        let rows = self.rest.lock().pop();
        let mut rows = rows.unwrap_or_else(|| HostColumn::zeroed(self.storage, TILE));
        (self.make)(elements.start as u64..elements.end as u64, &mut rows);
        let taken = take(&rows.view()[..elements.len()]);
        self.rest.lock().push(rows);
        taken
    }
}

/// The state of one tile.
struct Tile<'a, T, F> {
    tile: &'a [T],
    first: u64,
    fold: PhantomData<F>,
}

impl<T: Copy, F: Fold<T>> Work for Tile<'_, T, F> {
    type Result = F::State;
    #[inline(always)]
    fn run(self) -> F::State {
        F::tile(self.tile, self.first)
    }
}

fn run<T: Numeric, F: Fold<T>>(workers: Workers<'_>, values: impl Source<T>) -> Result<Option<Reduced>> {
    let tile = |t: usize| {
        let first = t * TILE;
        let elements = first..values.len().min(first + TILE);
        values.tile(elements, |tile| widest(Tile { tile, first: first as u64, fold: PhantomData::<F> }))
    };
    let tiles = workers.each(values.len().div_ceil(TILE), tile)?;
    Ok(tiles.map(|tiles| F::reduced(over_tiles::<T, F>(&tiles))))
}

fn integers<T: Numeric + Send>(
    workers: Workers<'_>,
    reduction: Reduction,
    values: impl Source<T>,
) -> Result<Option<Reduced>> {
    match reduction {
        Reduction::Sum => run::<T, IntSum>(workers, values),
        Reduction::Product => run::<T, IntProduct>(workers, values),
        _ => compared(workers, reduction, values),
    }
}

fn floats<T: Numeric + Send>(
    workers: Workers<'_>,
    reduction: Reduction,
    values: impl Source<T>,
) -> Result<Option<Reduced>> {
    match reduction {
        Reduction::Sum => run::<T, FloatSum>(workers, values),
        Reduction::Product => run::<T, FloatProduct>(workers, values),
        _ => compared(workers, reduction, values),
    }
}

fn compared<T: Numeric + Send>(
    workers: Workers<'_>,
    reduction: Reduction,
    values: impl Source<T>,
) -> Result<Option<Reduced>> {
    match reduction {
        Reduction::Min => run::<T, Extreme<false>>(workers, values),
        Reduction::Max => run::<T, Extreme<true>>(workers, values),
        Reduction::MinMax => run::<T, BothExtremes>(workers, values),
        _ => run::<T, Counting>(workers, values),
    }
}

/// Reduces elements on the host. None: cancelled.
///
/// # Errors
/// `Device` when the system cannot start threads.
pub fn reduce(workers: Workers<'_>, reduction: Reduction, values: Values<'_>) -> Result<Option<Reduced>> {
    match values {
        Values::I64(x) => integers(workers, reduction, x),
        Values::I32(x) => integers(workers, reduction, x),
        Values::U8(x) => integers(workers, reduction, x),
        Values::F64(x) => floats(workers, reduction, x),
        Values::F32(x) => floats(workers, reduction, x),
    }
}

/// Reduces `count` elements that are not stored. `make` writes the elements of a tile to the first rows of its
/// argument. None: cancelled.
///
/// # Errors
/// `Device` when the system cannot start threads.
pub fn reduce_made(
    workers: Workers<'_>,
    reduction: Reduction,
    element: Element,
    count: usize,
    make: impl Fn(Range<u64>, &mut HostColumn) + Sync,
) -> Result<Option<Reduced>> {
    let made = &Made { count, storage: element.storage(), make, rest: Mutex::default() };
    match element {
        Element::I64 => integers::<i64>(workers, reduction, made),
        Element::I32 => integers::<i32>(workers, reduction, made),
        Element::U8 => integers::<u8>(workers, reduction, made),
        Element::F64 => floats::<f64>(workers, reduction, made),
        Element::F32 => floats::<f32>(workers, reduction, made),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, Owned, Random};
    use super::*;
    use crate::backend::CancelToken;
    use crate::backend::threads::Threads;

    fn of(reduction: Reduction, values: Values<'_>) -> Reduced {
        let run = |threads: usize| {
            let workers = Workers { threads: &Threads::new(threads), cancel: &CancelToken::default() };
            reduce(workers, reduction, values).expect("there are threads").expect("nobody cancels")
        };
        let alone = run(1);
        assert_eq!(testing::bits(alone), testing::bits(run(3)), "the number of threads makes no difference");
        alone
    }

    fn extremes(values: Values<'_>) -> (Option<Place>, Option<Place>, bool) {
        match of(Reduction::MinMax, values) {
            Reduced::Extremes { least, greatest, nan } => (least, greatest, nan),
            other => panic!("{other:?}"),
        }
    }

    const LENGTHS: [usize; 9] = [0, 1, 2, 31, 33, 1000, TILE - 1, TILE, 3 * TILE + 5];

    #[test]
    fn sums_of_integers_are_exact_and_counts_count() {
        for sample in testing::samples(&LENGTHS) {
            let (sum, count) = match &sample {
                Owned::I64(x) => {
                    (x.iter().map(|x| i128::from(*x)).sum::<i128>(), x.iter().filter(|x| **x != 0).count())
                }
                Owned::U8(x) => (x.iter().map(|x| i128::from(*x)).sum(), x.iter().filter(|x| **x != 0).count()),
                _ => continue,
            };
            assert_eq!(of(Reduction::Sum, sample.view()), Reduced::Integer(sum), "{sample:?}");
            assert_eq!(of(Reduction::Count, sample.view()), Reduced::Count(count as u64), "{sample:?}");
        }
    }

    /// The order that the module describes, step by step.
    fn described(x: &[f64]) -> f64 {
        fn tree(mut states: Vec<Compensated>) -> Compensated {
            while states.len() > 1 {
                let half = states.len() / 2;
                for i in 0..half {
                    let other = states[i + half];
                    states[i].merge(other);
                }
                states.truncate(half);
            }
            states[0]
        }
        let lanes = |states: Vec<Compensated>| {
            let mut lanes = vec![Compensated::ZERO; LANES];
            states.into_iter().enumerate().for_each(|(i, s)| lanes[i % LANES].merge(s));
            tree(lanes.chunks(WARP).map(|warp| tree(warp.to_vec())).collect())
        };
        let tiles = x.chunks(TILE).map(|tile| lanes(tile.iter().map(|x| Compensated { sum: *x, lost: 0.0 }).collect()));
        lanes(tiles.collect()).value()
    }

    #[test]
    fn sums_of_floats_have_the_described_order_and_lose_next_to_nothing() {
        for n in LENGTHS {
            let mut r = Random(n as u64);
            // multiples of 2^-40, so that 128 bits hold their sum exactly
            let unit = (1u64 << 40) as f64;
            let x: Vec<f64> =
                (0..n).map(|_| ((r.unit() - 0.5) * 10f64.powi((r.word() % 20) as i32) * unit).round() / unit).collect();
            let Reduced::Float(sum) = of(Reduction::Sum, Values::F64(&x)) else { panic!("a Float") };
            assert_eq!(sum.to_bits(), described(&x).to_bits(), "{n} elements");
            let exact = x.iter().map(|x| (x * unit) as i128).sum::<i128>() as f64 / unit;
            assert!((sum - exact).abs() <= exact.abs() * 1e-15, "{sum} {exact}");
        }
    }

    #[test]
    fn what_is_not_finite_comes_through() {
        let sum = |x: &[f64]| match of(Reduction::Sum, Values::F64(x)) {
            Reduced::Float(x) => x,
            other => panic!("{other:?}"),
        };
        assert_eq!(sum(&[1.0, f64::INFINITY, 2.0]), f64::INFINITY);
        assert_eq!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).to_bits(), NAN);
        assert_eq!(sum(&[1.0, -f64::NAN]).to_bits(), NAN);
        assert_eq!(sum(&[-0.0]).to_bits(), 0, "as Ruby's, which begins with 0");
    }

    #[test]
    fn of_equal_extremes_the_first_is_found_and_nan_is_told() {
        let place = |index, value| Some(Place { index, value });
        let float = |i, x| place(i, Number::Float(x));
        let mut x = vec![0.0; TILE + 10];
        (x[TILE + 3], x[TILE + 5], x[77], x[600]) = (-2.5, -2.5, 9.0, 9.0);
        assert_eq!(extremes(Values::F64(&x)), (float(TILE as u64 + 3, -2.5), float(77, 9.0), false));
        x[500] = f64::NAN;
        assert_eq!(extremes(Values::F64(&x)), (float(TILE as u64 + 3, -2.5), float(77, 9.0), true));
        assert_eq!(extremes(Values::F64(&[f64::NAN])), (None, None, true));
        assert_eq!(extremes(Values::F64(&[])), (None, None, false));
        assert_eq!(extremes(Values::F64(&[-0.0, 0.0])), (float(0, -0.0), float(0, -0.0), false));
        let x = [i64::MAX, i64::MIN, i64::MAX];
        let int = |i, x| place(i, Number::Int(x));
        assert_eq!(extremes(Values::I64(&x)), (int(1, i64::MIN), int(0, i64::MAX), false));
    }

    #[test]
    fn a_product_that_leaves_64_bits_is_told_unless_an_element_is_0() {
        let product = |x: &[i64]| of(Reduction::Product, Values::I64(x));
        assert_eq!(product(&[]), Reduced::Integer(1));
        assert_eq!(product(&[3, -5, 7]), Reduced::Integer(-105));
        assert_eq!(product(&[i64::MAX, 2, -1]), Reduced::Overflow);
        assert_eq!(product(&[i64::MAX, 2, 0, i64::MAX, 5]), Reduced::Integer(0));
        let Reduced::Float(x) = of(Reduction::Product, Values::F64(&[1.5, -2.0])) else { panic!("a Float") };
        assert!((x + 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_cancelled_reduction_has_no_answer() {
        let cancel = CancelToken::default();
        cancel.cancel();
        let workers = Workers { threads: &Threads::new(2), cancel: &cancel };
        assert_eq!(reduce(workers, Reduction::Sum, Values::I64(&[1; 100_000])).expect("there are threads"), None);
    }
}
