//! Stores Ruby's numbers, true and false as elements of arrays.
//!
//! Here: [`fill`]; and [`kind`], the kind of a list's elements. Not here: what the columns of a block hold
//! ([`crate::marshal::pack`]), and the way back ([`crate::buffers::buffer`]).
//!
//! Nothing here runs Ruby code. So the list does not change meanwhile, and workers may read it
//! ([`crate::ruby::workers`]).

use crate::ruby::dtype::Dtype;
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::lines;
use crate::ruby::workers::{self, PIECE};

/// Stores values, converted as `to_i` and `to_f` convert numbers. Gives the index of the first that does not fit, if
/// there is one. The elements after that one are undefined.
pub fn fill(dtype: Dtype, values: &[Raw], out: &mut [u8]) -> Option<usize> {
    let pieces: Vec<_> =
        values.chunks(PIECE).zip(out.chunks_mut(PIECE * dtype.storage().bytes())).enumerate().collect();
    let unfit = workers::map(values.len(), pieces, |(piece, (values, out))| {
        let at = match dtype {
            Dtype::F64 => floats(values, out, f64::to_ne_bytes),
            Dtype::F32 => floats(values, out, |x| (x as f32).to_ne_bytes()),
            Dtype::I64 => {
                let other = |value| int(dtype, value).map(i64::to_ne_bytes);
                lines::ints(values, out.as_chunks_mut().0, i64::to_ne_bytes, other)
            }
            Dtype::I32 => each(values, out, |value| int(dtype, value).map(|x| (x as i32).to_ne_bytes())),
            Dtype::U8 => each(values, out, |value| int(dtype, value).map(|x| [x as u8])),
            Dtype::Bool => each(values, out, |value| match value {
                heap::TRUE => Some([1]),
                heap::FALSE => Some([0]),
                _ => None,
            }),
        };
        at.map(|at| piece * PIECE + at)
    });
    unfit.into_iter().flatten().next()
}

fn floats<const N: usize>(values: &[Raw], out: &mut [u8], store: impl Fn(f64) -> [u8; N] + Copy) -> Option<usize> {
    lines::floats(values, out.as_chunks_mut().0, store, |value| float(value).map(store))
}

fn each<const N: usize>(values: &[Raw], out: &mut [u8], encode: impl Fn(Raw) -> Option<[u8; N]>) -> Option<usize> {
    for (at, (value, out)) in values.iter().zip(out.as_chunks_mut::<N>().0).enumerate() {
        match encode(*value) {
            Some(bytes) => *out = bytes,
            None => return Some(at),
        }
    }
    None
}

#[inline]
fn float(value: Raw) -> Option<f64> {
    match heap::see(value) {
        Seen::Float(f) => Some(f),
        Seen::Int(i) => Some(i as f64),
        _ => None,
    }
}

#[inline]
fn int(dtype: Dtype, value: Raw) -> Option<i64> {
    let i = match heap::see(value) {
        Seen::Int(i) => i,
        Seen::Float(f) if f.is_finite() => {
            let whole = f.trunc();
            if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&whole) {
                return None;
            }
            whole as i64
        }
        _ => return None,
    };
    let (least, greatest) = dtype.bounds();
    (least..=greatest).contains(&i).then_some(i)
}

/// The kind of all values, if they are all Integers, all Floats, or all true or false.
pub fn kind(values: &[Raw]) -> Option<Dtype> {
    let of = |value: Raw| match heap::see(value) {
        Seen::Int(_) | Seen::BigInt => Some(Dtype::I64),
        Seen::Float(_) => Some(Dtype::F64),
        Seen::True | Seen::False => Some(Dtype::Bool),
        _ => None,
    };
    let first = of(*values.first()?)?;
    let pieces: Vec<_> = values.chunks(PIECE).collect();
    let same = workers::map(values.len(), pieces, |values| values.iter().all(|value| of(*value) == Some(first)));
    same.into_iter().all(|same| same).then_some(first)
}
