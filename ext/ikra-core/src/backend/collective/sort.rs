//! Sorting of numbers: stable, by the digits of their bits (a radix sort).
//!
//! Here: types of keys, and [`order`] on the host. Not here: GPUs; sorting with a block that compares, which is a merge
//! sort elsewhere.
//!
//! Integers are sorted by value. So are Floats: `-0.0` and `0.0` are equal and keep their order; all NaNs are equal and
//! come last. Descending is the reverse order, except that equal keys keep their order. When only keys are wanted,
//! their original order cannot be seen, and the *exact order* is faster on GPUs: `-0.0` comes before `0.0`, and NaNs
//! come last in the order of their bits.

use super::Workers;
use crate::error::Result;
use crate::memory::room;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A type of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    U8,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
}

impl Key {
    pub const ALL: [Key; 7] = [Key::U8, Key::U32, Key::I32, Key::F32, Key::U64, Key::I64, Key::F64];

    pub fn bytes(self) -> usize {
        match self {
            Key::U8 => 1,
            Key::U32 | Key::I32 | Key::F32 => 4,
            Key::U64 | Key::I64 | Key::F64 => 8,
        }
    }
}

/// Keys on the host.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a> {
    U8(&'a [u8]),
    U32(&'a [u32]),
    I32(&'a [i32]),
    F32(&'a [f32]),
    U64(&'a [u64]),
    I64(&'a [i64]),
    F64(&'a [f64]),
}

impl Keys<'_> {
    pub fn len(&self) -> usize {
        match self {
            Keys::U8(k) => k.len(),
            Keys::U32(k) => k.len(),
            Keys::I32(k) => k.len(),
            Keys::F32(k) => k.len(),
            Keys::U64(k) => k.len(),
            Keys::I64(k) => k.len(),
            Keys::F64(k) => k.len(),
        }
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The word by which a key is sorted: words compare as the keys do.
    fn code(&self, index: usize, exact: bool) -> u64 {
        let float = |x: f64| if exact { exact_code(x.to_bits()) } else { float_code(x) };
        match self {
            Keys::U8(k) => k[index].into(),
            Keys::U32(k) => k[index].into(),
            Keys::I32(k) => u64::from(k[index].cast_unsigned() ^ 1 << 31),
            // a conversion might change the bits of a NaN
            Keys::F32(k) if exact => u64::from(exact_code_32(k[index].to_bits())),
            Keys::F32(k) => float(k[index].into()),
            Keys::U64(k) => k[index],
            Keys::I64(k) => k[index].cast_unsigned() ^ 1 << 63,
            Keys::F64(k) => float(k[index]),
        }
    }
}

fn float_code(x: f64) -> u64 {
    if x.is_nan() {
        return u64::MAX;
    }
    // `+ 0.0` makes both zeroes one
    exact_code((x + 0.0).to_bits())
}

/// 0 for negative infinity, and upwards. Negative NaNs, which would be less, wrap around to the end.
fn exact_code(bits: u64) -> u64 {
    let code = if bits >> 63 == 1 { !bits } else { bits ^ 1 << 63 };
    code.wrapping_sub(!f64::NEG_INFINITY.to_bits())
}

fn exact_code_32(bits: u32) -> u32 {
    let code = if bits >> 31 == 1 { !bits } else { bits ^ 1 << 31 };
    code.wrapping_sub(!f32::NEG_INFINITY.to_bits())
}

/// Up to so many keys are sorted by comparing.
const MAX_COMPARISON_KEYS: usize = 2048;
/// How keys compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct By {
    pub descending: bool,
    /// Whether to sort in the exact order; see the module.
    pub exact: bool,
}

/// As [`order`], on this thread alone, without a cancel token.
pub fn order_alone(keys: Keys<'_>, by: By) -> Vec<u32> {
    let mut pairs: Vec<(u64, u32)> = (0..keys.len()).map(|i| (by.code(&keys, i), i as u32)).collect();
    pairs.sort_unstable();
    pairs.into_iter().map(|(_, place)| place).collect()
}

impl By {
    fn code(self, keys: &Keys<'_>, index: usize) -> u64 {
        let code = keys.code(index, self.exact);
        if self.descending { !code } else { code }
    }
}

/// How many keys a thread processes at a time, at least.
const PIECE: usize = 1 << 16;
/// How many keys are processed between two looks at the cancel token.
const LOOK: usize = 1 << 14;
const BINS: usize = 256;

/// Codes, and the indices of their elements.
struct Side {
    codes: Vec<AtomicU64>,
    places: Vec<AtomicU32>,
}

impl Side {
    fn new(len: usize) -> Self {
        let codes = room::collect((0..len).map(|_| AtomicU64::new(0)));
        Self { codes, places: room::collect((0..len).map(|_| AtomicU32::new(0))) }
    }
}

/// The indices of keys in ascending (or descending) order. Equal keys keep their order. None: cancelled.
///
/// Each pass sorts by one digit of 8 bits. It counts the digits in pieces. Then it moves the keys of each piece behind
/// those of lesser digits and those of earlier pieces. It skips a digit that all keys have in common. Places are
/// distinct, so threads write them without synchronisation.
///
/// # Errors
/// `Device` when the system cannot start threads.
///
/// # Panics
/// For more keys than 32 bits can count.
pub fn order(workers: Workers<'_>, keys: Keys<'_>, by: By) -> Result<Option<Vec<u32>>> {
    let n = keys.len();
    assert!(u32::try_from(n).is_ok(), "indices have 32 bits");
    if n <= MAX_COMPARISON_KEYS {
        return Ok(Some(order_alone(keys, by)));
    }
    let code = |i| by.code(&keys, i);
    let length = n.div_ceil(workers.threads.count() * 4).max(PIECE);
    let count = n.div_ceil(length);
    let piece = |p: usize| p * length..n.min((p + 1) * length);
    // the parts of a piece; a cancelled piece ends after the current part
    let parts = |rows: Range<usize>| {
        let end = rows.end;
        let part = move |from: usize| from..end.min(from + LOOK);
        rows.step_by(LOOK).map(part).take_while(|_| !workers.cancel.is_cancelled())
    };
    room::check(n * 2 * (size_of::<u64>() + size_of::<u32>()));
    let (mut from, mut to) = (Side::new(n), Side::new(n));
    let common = workers.each(count, |p| {
        parts(piece(p)).flatten().fold((u64::MAX, 0), |(all, any), i| {
            let code = code(i);
            from.codes[i].store(code, Relaxed);
            from.places[i].store(i as u32, Relaxed);
            (all & code, any | code)
        })
    })?;
    let Some(common) = common.filter(|_| !workers.cancel.is_cancelled()) else { return Ok(None) };
    let (all, any) = common.into_iter().fold((u64::MAX, 0), |(a, b), (c, d)| (a & c, b | d));

    for shift in (0..u64::BITS).step_by(8).filter(|shift| (all ^ any) >> shift & 0xff != 0) {
        let digit = |side: &Side, i: usize| (side.codes[i].load(Relaxed) >> shift & 0xff) as usize;
        let counts = workers.each(count, |p| {
            let mut bins = [0u32; BINS];
            for part in parts(piece(p)) {
                part.for_each(|i| bins[digit(&from, i)] += 1);
            }
            bins
        })?;
        let Some(mut starts) = counts.filter(|_| !workers.cancel.is_cancelled()) else { return Ok(None) };
        let mut next = 0;
        for bin in 0..BINS {
            for piece in &mut starts {
                (piece[bin], next) = (next, next + piece[bin]);
            }
        }
        let moved = workers.all(starts.into_iter().enumerate().collect(), |(p, mut next)| {
            for i in parts(piece(p)).flatten() {
                let place = &mut next[digit(&from, i)];
                to.codes[*place as usize].store(from.codes[i].load(Relaxed), Relaxed);
                to.places[*place as usize].store(from.places[i].load(Relaxed), Relaxed);
                *place += 1;
            }
        })?;
        if moved.is_none() || workers.cancel.is_cancelled() {
            return Ok(None);
        }
        std::mem::swap(&mut from, &mut to);
    }
    Ok(Some(room::collect(from.places.into_iter().map(AtomicU32::into_inner))))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, Random, on_host};
    use super::*;
    use std::cmp::Ordering;

    fn check<K: Copy>(keys: &[K], wrapped: Keys<'_>, compare: impl Fn(K, K) -> Ordering) {
        for descending in [false, true] {
            let mut expected: Vec<u32> = (0..keys.len() as u32).collect();
            expected.sort_by(|a, b| {
                let order = compare(keys[*a as usize], keys[*b as usize]);
                if descending { order.reverse() } else { order }
            });
            let by = By { descending, exact: false };
            assert_eq!(testing::on_host(|workers| order(workers, wrapped, by)), expected, "{} keys", keys.len());
        }
    }

    fn floats(a: f64, b: f64) -> Ordering {
        a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
    }

    #[test]
    fn keys_of_every_type_are_sorted_and_equal_ones_stay() {
        for n in [0, 1, 2, 33, MAX_COMPARISON_KEYS, MAX_COMPARISON_KEYS + 1, 3 * PIECE, 300_000] {
            for sample in testing::samples(&[n]) {
                match &sample {
                    testing::Owned::I64(x) => {
                        check(x, Keys::I64(x), |a, b| a.cmp(&b));
                        let x: Vec<u64> = x.iter().map(|x| x.cast_unsigned()).collect();
                        check(&x, Keys::U64(&x), |a, b| a.cmp(&b));
                    }
                    testing::Owned::I32(x) => {
                        check(x, Keys::I32(x), |a, b| a.cmp(&b));
                        let x: Vec<u32> = x.iter().map(|x| x.cast_unsigned()).collect();
                        check(&x, Keys::U32(&x), |a, b| a.cmp(&b));
                    }
                    testing::Owned::F64(x) => check(x, Keys::F64(x), floats),
                    testing::Owned::F32(x) => check(x, Keys::F32(x), |a, b| floats(a.into(), b.into())),
                    testing::Owned::U8(x) => check(x, Keys::U8(x), |a, b| a.cmp(&b)),
                }
            }
        }
    }

    #[test]
    fn nans_of_either_sign_are_equal_and_last() {
        let x = [f64::NAN, 1.0, -f64::NAN, f64::INFINITY, -0.0, 0.0, f64::NEG_INFINITY, f64::NAN];
        let order = |x: Keys<'_>, descending, exact| on_host(|workers| order(workers, x, By { descending, exact }));
        assert_eq!(order(Keys::F64(&x), false, false), [6, 4, 5, 1, 3, 0, 2, 7]);
        assert_eq!(order(Keys::F64(&x), true, false), [0, 2, 7, 3, 1, 4, 5, 6]);
        let x = [f64::NAN, 1.0, -f64::NAN, f64::INFINITY, 0.0, -0.0, f64::NEG_INFINITY, f64::NAN];
        assert_eq!(order(Keys::F64(&x), false, true), [6, 5, 4, 1, 3, 0, 7, 2], "by signs and bits where it is exact");
        let x = x.map(|x| x as f32);
        assert_eq!(order(Keys::F32(&x), false, true)[..5], [6, 5, 4, 1, 3]);
    }

    #[test]
    fn sorting_ends_when_it_is_cancelled() {
        let cancel = crate::backend::CancelToken::default();
        cancel.cancel();
        let mut r = Random(1);
        let keys: Vec<u64> = (0..200_000).map(|_| r.word()).collect();
        let workers = Workers { threads: &crate::backend::threads::Threads::new(2), cancel: &cancel };
        assert_eq!(order(workers, Keys::U64(&keys), By::default()).expect("there are threads"), None);
    }
}
