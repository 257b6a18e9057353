//! Elements for tests of all backends.

use super::reduce::Reduced;
use super::{Number, Values, Workers};
use crate::backend::CancelToken;
use crate::backend::threads::Threads;
use crate::error::Result;

/// Elements that a test owns.
#[derive(Clone, PartialEq)]
pub enum Owned {
    I64(Vec<i64>),
    I32(Vec<i32>),
    U8(Vec<u8>),
    F64(Vec<f64>),
    F32(Vec<f32>),
}

impl std::fmt::Debug for Owned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let few = |n: usize| n.min(8);
        let v = self.view();
        write!(f, "{} of {:?}: ", v.len(), v.element())?;
        match self {
            Owned::I64(x) => write!(f, "{:?}", &x[..few(x.len())]),
            Owned::I32(x) => write!(f, "{:?}", &x[..few(x.len())]),
            Owned::U8(x) => write!(f, "{:?}", &x[..few(x.len())]),
            Owned::F64(x) => write!(f, "{:?}", &x[..few(x.len())]),
            Owned::F32(x) => write!(f, "{:?}", &x[..few(x.len())]),
        }
    }
}

impl Owned {
    pub fn view(&self) -> Values<'_> {
        match self {
            Owned::I64(x) => Values::I64(x),
            Owned::I32(x) => Values::I32(x),
            Owned::U8(x) => Values::U8(x),
            Owned::F64(x) => Values::F64(x),
            Owned::F32(x) => Values::F32(x),
        }
    }
    pub fn address(&self) -> u64 {
        match self {
            Owned::I64(x) => x.as_ptr() as u64,
            Owned::I32(x) => x.as_ptr() as u64,
            Owned::U8(x) => x.as_ptr() as u64,
            Owned::F64(x) => x.as_ptr() as u64,
            Owned::F32(x) => x.as_ptr() as u64,
        }
    }
}

/// Pseudo-random numbers, the same in each run.
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    /// A number from 0 to below 1.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Elements of all types, in these lengths: random, all equal, sorted, reversed, with extremes, NaN and both zeroes.
pub fn samples(lengths: &[usize]) -> Vec<Owned> {
    let mut samples = Vec::new();
    for &n in lengths {
        let mut r = Random(n as u64);
        let floats = |f: &mut dyn FnMut(usize) -> f64| (0..n).map(f).collect::<Vec<f64>>();
        let wide = floats(&mut |_| (r.unit() - 0.5) * 10f64.powi((r.word() % 40) as i32 - 20));
        let unit = floats(&mut |_| r.unit());
        let special = [f64::NAN, -0.0, 0.0, f64::MAX, f64::MIN_POSITIVE, 5e-324, -1.5, f64::INFINITY, 1e300];
        let specials = floats(&mut |_| special[(r.word() % special.len() as u64) as usize]);
        let zeroes = floats(&mut |i| if i % 3 == 1 { 0.0 } else { -0.0 });
        let sorted = floats(&mut |i| i as f64 / 3.0);
        for x in [wide, unit, specials, zeroes, sorted] {
            samples.push(Owned::F32(x.iter().map(|x| *x as f32).collect()));
            samples.push(Owned::F64(x));
        }
        let ints = |f: &mut dyn FnMut(usize) -> i64| (0..n).map(f).collect::<Vec<i64>>();
        let any = ints(&mut |_| r.word() as i64);
        let small = ints(&mut |_| (r.word() % 5) as i64 - 2);
        let extremes = ints(&mut |_| [i64::MAX, i64::MIN, 0, -1][(r.word() % 4) as usize]);
        let equal = ints(&mut |_| 7);
        let ones = ints(&mut |i| if i % 2 == 0 { 1 } else { -1 });
        let reversed = ints(&mut |i| (n - i) as i64);
        for x in [any, small, extremes, equal, ones, reversed] {
            samples.push(Owned::I32(x.iter().map(|x| *x as i32).collect()));
            samples.push(Owned::U8(x.iter().map(|x| *x as u8).collect()));
            samples.push(Owned::I64(x));
        }
    }
    samples
}

/// The exact bits of a result, as text.
pub fn bits(reduced: Reduced) -> String {
    let number = |n: Number| match n {
        Number::Int(i) => i.to_string(),
        Number::Float(f) => format!("{f:?} ({:016x})", f.to_bits()),
    };
    match reduced {
        Reduced::Float(f) => number(Number::Float(f)),
        Reduced::Extremes { least, greatest, nan } => {
            let places = [least, greatest].map(|p| p.map(|p| (p.index, number(p.value))));
            format!("{places:?} {nan}")
        }
        other => format!("{other:?}"),
    }
}

/// The result on the host, with two threads.
pub fn on_host<T>(work: impl FnOnce(Workers<'_>) -> Result<Option<T>>) -> T {
    let workers = Workers { threads: &Threads::new(2), cancel: &CancelToken::default() };
    work(workers).expect("there are threads").expect("nobody cancels")
}
