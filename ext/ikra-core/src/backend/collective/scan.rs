//! Scans: each element becomes the combination of itself and all elements before it.
//!
//! Here: [`Scan`] and [`scan`] on the host. Not here: GPUs.
//!
//! # Order
//!
//! A scan has a value for each element, so it first combines neighbours, not distant elements as a reduction does.
//! Elements are split into tiles of [`SCAN_TILE`]: 256 threads with 15 neighbours each.
//!
//! * A thread combines its elements in their order.
//! * Within each warp of 32 threads, thread `l` is combined with the state of thread `l - d` on its left, for `d` = 1,
//!   2, 4, 8, 16. Then the 8 warps of a tile are combined likewise, for `d` = 1, 2, 4.
//! * 32 tiles are a group, and 32 groups (1024 tiles) are a larger group. The prefix of a tile is the combination of
//!   three parts, in this order. The first is the prefix of its larger group. The second is a tree over the groups
//!   before its own in the larger group. The third is a tree over the tiles before it in its group. A tree has `d` =
//!   16, 8, 4, 2, 1 over 32 places, as in a reduction.
//! * The prefix of a larger group is that of the larger group before it, combined with a tree over the groups of that
//!   one.
//! * The prefix of a thread within its tile is computed separately: the warps before its own, then the threads before
//!   it in its warp. It is combined with the prefix of the tile, on the right.
//! * Last, the elements of the thread are added one by one.
//!
//! So the last value of a sum of Floats may differ from that of [`super::reduce`] in the last digit.

use super::reduce::Compensated;
use super::{Element, Number, Values, WARP, Workers};
use crate::error::Result;
use crate::memory::{column, room};

/// Threads of a tile.
pub const THREADS: usize = 256;
/// Warps of a tile.
const WARPS: usize = THREADS / WARP;
/// Elements of a thread.
const ITEMS: usize = 15;
/// Elements of a tile.
pub const SCAN_TILE: usize = THREADS * ITEMS;
/// Tiles of a group, and groups of a larger group.
const GROUP: usize = 32;

/// How a scan combines elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scan {
    /// The sum: of Integers modulo 2^64, with a flag for overflow; of Floats compensated.
    Sum,
    /// The product, treated as the sum.
    Product,
    /// The least element so far. A NaN is skipped and flagged.
    Min,
    Max,
}

impl Scan {
    pub const ALL: [Scan; 4] = [Scan::Sum, Scan::Product, Scan::Min, Scan::Max];

    /// The type of the values of a scan over elements of this type.
    pub fn total(self, element: Element) -> Element {
        match self {
            Scan::Min | Scan::Max => element,
            Scan::Sum | Scan::Product if element.is_float() => Element::F64,
            Scan::Sum | Scan::Product => Element::I64,
        }
    }
}

/// What a scan met, beside its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanFlags {
    /// A sum or product exceeded 64 bits: the values from there on are unspecified.
    pub overflow: bool,
    /// There was a NaN among compared elements. Values before the first number are NaN.
    pub nan: bool,
}

impl ScanFlags {
    /// Reads the word that a backend wrote.
    pub fn read(word: u64) -> Self {
        Self { overflow: word & 1 != 0, nan: word & 2 != 0 }
    }
    fn or(self, other: Self) -> Self {
        Self { overflow: self.overflow || other.overflow, nan: self.nan || other.nan }
    }
}

/// The values of a scan.
#[derive(Clone, Debug, PartialEq)]
pub enum Scanned {
    I64(Vec<i64>),
    I32(Vec<i32>),
    U8(Vec<u8>),
    F64(Vec<f64>),
    F32(Vec<f32>),
}

trait Fold<T: Copy> {
    type State: Copy + Send + Sync;
    type Out: column::Element;
    fn none() -> Self::State;
    /// `state` is the left operand.
    fn merge(state: &mut Self::State, other: Self::State);
    fn take(state: &mut Self::State, x: T);
    fn step(state: &mut Self::State, x: T) -> (Self::Out, ScanFlags);
}

const FINE: ScanFlags = ScanFlags { overflow: false, nan: false };

struct IntSum;
impl<T: Copy + Into<i64>> Fold<T> for IntSum {
    type State = i64;
    type Out = i64;
    fn none() -> i64 {
        0
    }
    fn merge(state: &mut i64, other: i64) {
        *state = state.wrapping_add(other);
    }
    fn take(state: &mut i64, x: T) {
        *state = state.wrapping_add(x.into());
    }
    // All sums before the first that exceeds 64 bits are exact, so that one is found.
    fn step(state: &mut i64, x: T) -> (i64, ScanFlags) {
        let overflow;
        (*state, overflow) = state.overflowing_add(x.into());
        (*state, ScanFlags { overflow, nan: false })
    }
}

struct FloatSum;
impl<T: Copy + Into<f64>> Fold<T> for FloatSum {
    type State = Compensated;
    type Out = f64;
    fn none() -> Compensated {
        Compensated::ZERO
    }
    fn merge(state: &mut Compensated, other: Compensated) {
        state.merge(other);
    }
    fn take(state: &mut Compensated, x: T) {
        state.add(x.into());
    }
    fn step(state: &mut Compensated, x: T) -> (f64, ScanFlags) {
        state.add(x.into());
        (state.value(), FINE)
    }
}

struct IntProduct;
impl<T: Copy + Into<i64>> Fold<T> for IntProduct {
    type State = Option<i64>;
    type Out = i64;
    fn none() -> Option<i64> {
        Some(1)
    }
    fn merge(state: &mut Option<i64>, other: Option<i64>) {
        *state = super::reduce::product(*state, other);
    }
    fn take(state: &mut Option<i64>, x: T) {
        *state = super::reduce::product(*state, Some(x.into()));
    }
    fn step(state: &mut Option<i64>, x: T) -> (i64, ScanFlags) {
        <Self as Fold<T>>::take(state, x);
        (state.unwrap_or(0), ScanFlags { overflow: state.is_none(), nan: false })
    }
}

struct FloatProduct;
impl<T: Copy + Into<f64>> Fold<T> for FloatProduct {
    type State = f64;
    type Out = f64;
    fn none() -> f64 {
        1.0
    }
    fn merge(state: &mut f64, other: f64) {
        *state *= other;
    }
    fn take(state: &mut f64, x: T) {
        *state *= x.into();
    }
    fn step(state: &mut f64, x: T) -> (f64, ScanFlags) {
        *state *= x.into();
        (super::reduce::canonical(*state), FINE)
    }
}

struct Extreme<const GREATEST: bool>;
impl<T: column::Element + PartialOrd, const GREATEST: bool> Fold<T> for Extreme<GREATEST> {
    type State = Option<T>;
    type Out = T;
    fn none() -> Option<T> {
        None
    }
    fn merge(state: &mut Option<T>, other: Option<T>) {
        if let Some(b) = other
            && state.is_none_or(|a| if GREATEST { b > a } else { b < a })
        {
            *state = other;
        }
    }
    fn take(state: &mut Option<T>, x: T) {
        #[allow(clippy::eq_op, reason = "only a NaN differs from itself")]
        if x == x {
            <Self as Fold<T>>::merge(state, Some(x));
        }
    }
    fn step(state: &mut Option<T>, x: T) -> (T, ScanFlags) {
        <Self as Fold<T>>::take(state, x);
        #[allow(clippy::eq_op, reason = "as above")]
        let nan = x != x;
        (state.unwrap_or(x), ScanFlags { overflow: false, nan })
    }
}

/// Combines each state with all before it.
fn row<T: Copy, F: Fold<T>>(states: &mut [F::State]) {
    let mut delta = 1;
    while delta < states.len() {
        for lane in (delta..states.len()).rev() {
            let mut left = states[lane - delta];
            F::merge(&mut left, states[lane]);
            states[lane] = left;
        }
        delta *= 2;
    }
}

/// For each thread of a tile, the state up to it within its warp; for each warp, the state up to it.
fn threads<T: Copy, F: Fold<T>>(tile: &[T]) -> ([F::State; THREADS], [F::State; WARPS]) {
    let mut states = [F::none(); THREADS];
    for (state, own) in states.iter_mut().zip(tile.chunks(ITEMS)) {
        own.iter().for_each(|x| F::take(state, *x));
    }
    let mut warps = [F::none(); WARPS];
    for (warp, out) in states.as_chunks_mut::<WARP>().0.iter_mut().zip(&mut warps) {
        row::<T, F>(warp);
        *out = warp[WARP - 1];
    }
    row::<T, F>(&mut warps);
    (states, warps)
}

fn tree<T: Copy, F: Fold<T>>(states: &[F::State]) -> F::State {
    let mut places = [F::none(); GROUP];
    places[..states.len()].copy_from_slice(states);
    let mut half = GROUP / 2;
    while half > 0 {
        let (low, high) = places.split_at_mut(half);
        low.iter_mut().zip(high).for_each(|(a, b)| F::merge(a, *b));
        half /= 2;
    }
    places[0]
}

/// The prefix of each tile.
fn before<T: Copy, F: Fold<T>>(tiles: &[F::State]) -> Vec<F::State> {
    // the state of a group is the prefix of its last tile within it, combined with that tile
    let whole = |states: &[F::State]| {
        let mut whole = tree::<T, F>(&states[..GROUP - 1]);
        F::merge(&mut whole, states[GROUP - 1]);
        whole
    };
    let groups: Vec<F::State> = room::collect(tiles.as_chunks::<GROUP>().0.iter().map(|g| whole(g)));
    let mut larger: Vec<F::State> = Vec::new();
    for all in groups.as_chunks::<GROUP>().0 {
        let mut prefix = larger.last().copied().unwrap_or(F::none());
        F::merge(&mut prefix, tree::<T, F>(&all[..GROUP - 1]));
        F::merge(&mut prefix, all[GROUP - 1]);
        larger.push(prefix);
    }
    (0..tiles.len())
        .map(|tile| {
            let (group, large) = (tile / GROUP, tile / GROUP / GROUP);
            let mut prefix = large.checked_sub(1).map_or(F::none(), |l| larger[l]);
            F::merge(&mut prefix, tree::<T, F>(&groups[large * GROUP..group]));
            F::merge(&mut prefix, tree::<T, F>(&tiles[group * GROUP..tile]));
            prefix
        })
        .collect()
}

fn run<T: Copy + Sync, F: Fold<T>>(workers: Workers<'_>, values: &[T]) -> Result<Option<(Vec<F::Out>, ScanFlags)>> {
    let tile = |t: usize| &values[t * SCAN_TILE..values.len().min((t + 1) * SCAN_TILE)];
    let count = values.len().div_ceil(SCAN_TILE);
    let Some(states) = workers.each(count, |t| threads::<T, F>(tile(t)).1[WARPS - 1])? else { return Ok(None) };
    let prefixes = before::<T, F>(&states);
    let mut out: Vec<F::Out> = room::zeroed(values.len());
    let pieces: Vec<_> = out.chunks_mut(SCAN_TILE).enumerate().collect();
    let flags = workers.all(pieces, |(t, out)| {
        let (states, warps) = threads::<T, F>(tile(t));
        let mut flags = FINE;
        for (thread, (out, own)) in out.chunks_mut(ITEMS).zip(tile(t).chunks(ITEMS)).enumerate() {
            let mut own_start = (thread / WARP).checked_sub(1).map_or(F::none(), |w| warps[w]);
            F::merge(&mut own_start, if thread % WARP == 0 { F::none() } else { states[thread - 1] });
            let mut running = prefixes[t];
            F::merge(&mut running, own_start);
            for (out, x) in out.iter_mut().zip(own) {
                let met;
                (*out, met) = F::step(&mut running, *x);
                flags = flags.or(met);
            }
        }
        flags
    })?;
    Ok(flags.map(|flags| (out, flags.into_iter().fold(FINE, ScanFlags::or))))
}

/// Scans elements on the host. None: cancelled.
///
/// # Errors
/// `Device` when the system cannot start threads.
pub fn scan(workers: Workers<'_>, scan: Scan, values: Values<'_>) -> Result<Option<(Scanned, ScanFlags)>> {
    macro_rules! of {
        ($x:expr, $sum:ty, $product:ty, $total:expr, $own:expr) => {
            Ok(match scan {
                Scan::Sum => run::<_, $sum>(workers, $x)?.map(|(v, flags)| ($total(v), flags)),
                Scan::Product => run::<_, $product>(workers, $x)?.map(|(v, flags)| ($total(v), flags)),
                Scan::Min => run::<_, Extreme<false>>(workers, $x)?.map(|(v, flags)| ($own(v), flags)),
                Scan::Max => run::<_, Extreme<true>>(workers, $x)?.map(|(v, flags)| ($own(v), flags)),
            })
        };
    }
    match values {
        Values::I64(x) => of!(x, IntSum, IntProduct, Scanned::I64, Scanned::I64),
        Values::I32(x) => of!(x, IntSum, IntProduct, Scanned::I64, Scanned::I32),
        Values::U8(x) => of!(x, IntSum, IntProduct, Scanned::I64, Scanned::U8),
        Values::F64(x) => of!(x, FloatSum, FloatProduct, Scanned::F64, Scanned::F64),
        Values::F32(x) => of!(x, FloatSum, FloatProduct, Scanned::F64, Scanned::F32),
    }
}

impl Scanned {
    pub fn values(&self) -> Values<'_> {
        match self {
            Scanned::I64(x) => Values::I64(x),
            Scanned::I32(x) => Values::I32(x),
            Scanned::U8(x) => Values::U8(x),
            Scanned::F64(x) => Values::F64(x),
            Scanned::F32(x) => Values::F32(x),
        }
    }
    /// The last value.
    pub fn last(&self) -> Option<Number> {
        match self {
            Scanned::I64(x) => x.last().map(|x| Number::Int(*x)),
            Scanned::I32(x) => x.last().map(|x| Number::Int((*x).into())),
            Scanned::U8(x) => x.last().map(|x| Number::Int((*x).into())),
            Scanned::F64(x) => x.last().map(|x| Number::Float(*x)),
            Scanned::F32(x) => x.last().map(|x| Number::Float((*x).into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reduce::{NAN, Reduced, Reduction, reduce};
    use super::super::testing::{self, Owned, on_host};
    use super::*;

    const LENGTHS: [usize; 8] = [0, 1, 2, 33, 1000, SCAN_TILE, SCAN_TILE + 1, 70 * SCAN_TILE + 5];

    #[test]
    fn integers_are_scanned_as_one_after_the_other() {
        for sample in testing::samples(&LENGTHS) {
            let Owned::I64(x) = &sample else { continue };
            let ((sums, flags), mut sum, mut exact) = (on_host(|c| scan(c, Scan::Sum, sample.view())), 0i64, 0i128);
            let mut overflow = false;
            let expected = x.iter().map(|x| {
                (sum, exact) = (sum.wrapping_add(*x), exact + i128::from(*x));
                overflow |= i64::try_from(exact).is_err();
                sum
            });
            assert_eq!(sums, Scanned::I64(expected.collect()), "{sample:?}");
            assert_eq!(flags, ScanFlags { overflow, nan: false }, "{sample:?}");
            let least = x.iter().scan(i64::MAX, |least, x| {
                *least = *x.min(least);
                Some(*least)
            });
            assert_eq!(on_host(|c| scan(c, Scan::Min, sample.view())).0, Scanned::I64(least.collect()), "{sample:?}");
        }
    }

    #[test]
    fn floats_are_scanned_with_next_to_no_loss() {
        for n in LENGTHS {
            let mut r = testing::Random(n as u64);
            let x: Vec<f64> = (0..n).map(|_| r.unit() - 0.25).collect();
            let (Scanned::F64(sums), _) = on_host(|c| scan(c, Scan::Sum, Values::F64(&x))) else { panic!("Floats") };
            let mut sum = Compensated::ZERO;
            for (i, (x, found)) in x.iter().zip(&sums).enumerate() {
                sum.add(*x);
                assert!((sum.value() - found).abs() <= sum.value().abs() * 1e-15, "{i} of {n}");
            }
            let total = on_host(|c| reduce(c, Reduction::Sum, Values::F64(&x)));
            let Reduced::Float(total) = total else { panic!("a Float") };
            assert!(sums.last().is_none_or(|last| (last - total).abs() <= total.abs() * 1e-15));
        }
    }

    #[test]
    fn what_cannot_be_is_told() {
        let ints = |how, x: &[i64]| on_host(|c| scan(c, how, Values::I64(x)));
        assert!(
            ints(Scan::Sum, &[i64::MAX, 1, -5]).1.overflow && ints(Scan::Product, &[1 << 40, 1 << 40, 0]).1.overflow
        );
        assert_eq!(ints(Scan::Product, &[2, -3, 0, 5]), (Scanned::I64(vec![2, -6, 0, 0]), FINE));
        let (Scanned::F64(x), flags) =
            on_host(|c| scan(c, Scan::Max, Values::F64(&[f64::NAN, -0.0, 0.0, f64::NAN, 2.0])))
        else {
            panic!("Floats")
        };
        assert!(flags.nan && x[0].is_nan());
        assert_eq!(
            x[1..].iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
            [-0.0f64, -0.0, -0.0, 2.0].map(f64::to_bits)
        );
        let (Scanned::F64(x), _) = on_host(|c| scan(c, Scan::Sum, Values::F64(&[1.0, f64::INFINITY, -f64::INFINITY])))
        else {
            panic!("Floats")
        };
        assert_eq!((x[1], x[2].to_bits()), (f64::INFINITY, NAN));
    }
}
