//! Selections: the elements whose flags are not 0, in their order, and the other elements in theirs.
//!
//! Here: [`chosen`], [`split`] and [`indices`] on the host. Not here: GPUs.

use super::Workers;
use crate::error::Result;
use crate::memory::column::Element;
use crate::memory::room;

/// How many flags a thread processes at a time.
const PIECE: usize = 1 << 16;

/// Two lists; None: cancelled.
type Two<T> = Result<Option<(Vec<T>, Vec<T>)>>;

/// Counts the set flags of each piece, then writes the elements of those flags. `others`: also writes the elements of
/// the other flags.
fn run<T: Element>(workers: Workers<'_>, flags: &[u8], others: bool, element: impl Fn(usize) -> T + Sync) -> Two<T> {
    let piece = |p: usize| p * PIECE..flags.len().min((p + 1) * PIECE);
    let hits = |p| flags[piece(p)].iter().filter(|f| **f != 0).count();
    let Some(hits) = workers.each(flags.len().div_ceil(PIECE), hits)? else { return Ok(None) };
    let all: usize = hits.iter().sum();
    let mut chosen: Vec<T> = room::zeroed(all);
    let mut left: Vec<T> = room::zeroed(if others { flags.len() - all } else { 0 });
    let (mut rest, mut rest_left) = (&mut chosen[..], &mut left[..]);
    let mut pieces = Vec::new();
    for (p, hits) in hits.iter().enumerate() {
        let misses = if others { piece(p).len() - hits } else { 0 };
        let (own, tail) = rest.split_at_mut(*hits);
        let (own_left, tail_left) = rest_left.split_at_mut(misses);
        (rest, rest_left) = (tail, tail_left);
        pieces.push((p, own, own_left));
    }
    let done = workers.all(pieces, |(p, own, left)| {
        let (mut own, mut left) = (own.iter_mut(), left.iter_mut());
        for i in piece(p) {
            let to = if flags[i] != 0 { own.next() } else { left.next() };
            if let Some(to) = to {
                *to = element(i);
            }
        }
    })?;
    Ok(done.map(|_| (chosen, left)))
}

/// The elements whose flags are not 0. None: cancelled.
///
/// # Errors
/// `Device` when the system cannot start threads.
pub fn chosen<T: Element>(workers: Workers<'_>, flags: &[u8], values: &[T]) -> Result<Option<Vec<T>>> {
    Ok(run(workers, flags, false, |i| values[i])?.map(|(chosen, _)| chosen))
}

/// The elements whose flags are not 0, and the others. None: cancelled.
///
/// # Errors
/// As [`chosen`].
pub fn split<T: Element>(workers: Workers<'_>, flags: &[u8], values: &[T]) -> Two<T> {
    run(workers, flags, true, |i| values[i])
}

/// The indices of flags that are not 0. None: cancelled.
///
/// # Errors
/// As [`chosen`].
pub fn indices(workers: Workers<'_>, flags: &[u8]) -> Result<Option<Vec<u32>>> {
    Ok(run(workers, flags, false, |i| i as u32)?.map(|(chosen, _)| chosen))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{self, Random};
    use super::*;

    #[test]
    fn what_is_chosen_keeps_its_order_and_so_does_the_rest() {
        for n in [0, 1, 33, 1000, PIECE - 1, PIECE, 5 * PIECE + 3] {
            for share in [0.0, 0.01, 0.5, 1.0] {
                let mut r = Random(n as u64);
                let flags: Vec<u8> = (0..n).map(|i| if r.unit() < share { 1 + (i % 255) as u8 } else { 0 }).collect();
                let values: Vec<i64> = (0..n).map(|_| r.word() as i64).collect();
                let (yes, no): (Vec<usize>, Vec<usize>) = (0..n).partition(|i| flags[*i] != 0);
                let at = |places: &[usize]| places.iter().map(|i| values[*i]).collect::<Vec<i64>>();
                assert_eq!(testing::on_host(|workers| chosen(workers, &flags, &values)), at(&yes));
                assert_eq!(testing::on_host(|workers| split(workers, &flags, &values)), (at(&yes), at(&no)));
                let places: Vec<u32> = yes.iter().map(|i| *i as u32).collect();
                assert_eq!(testing::on_host(|workers| indices(workers, &flags)), places);
            }
        }
    }
}
