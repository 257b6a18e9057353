//! Reads numbers out of Arrays, one cache line at a time.
//!
//! Here: [`floats`] and [`ints`]. Not here: what else may be converted to a number ([`crate::ruby::encode`]), and what
//! else a slot of a column holds ([`crate::marshal::pack`]). The caller converts values that are no immediate numbers,
//! which are rare.
//!
//! A line is first tested as a whole. Where all of it are immediate numbers, the rest is arithmetic without branches,
//! which the compiler vectorizes. Stores that bypass the cache are no faster, because the column is read soon.

use crate::ruby::heap::{self, Raw};
use ikra_core::backend::vectors::{Work, soon, widest};

/// Words of a cache line.
const LINE: usize = 8;
/// The distance, in words, at which lines are prefetched. Lines of the column are prefetched, too, because a store
/// reads them first. The processor's own prefetch is only a few lines ahead, so memory would wait.
const AHEAD: usize = 1024;

/// Stores the numbers of immediate Floats, and what `other` makes of any other value. Gives the index of the first
/// value for which `other` gives nothing.
pub fn floats<T: Copy>(
    values: &[Raw],
    out: &mut [T],
    store: impl Fn(f64) -> T,
    other: impl Fn(Raw) -> Option<T>,
) -> Option<usize> {
    fill(values, out, heap::is_flonum, |value| store(heap::flonum(value)), other)
}

/// The same for Integers.
pub fn ints<T: Copy>(
    values: &[Raw],
    out: &mut [T],
    store: impl Fn(i64) -> T,
    other: impl Fn(Raw) -> Option<T>,
) -> Option<usize> {
    fill(values, out, heap::is_fixnum, |value| store(heap::fixnum(value)), other)
}

fn fill<T: Copy>(
    values: &[Raw],
    out: &mut [T],
    is_own: impl Fn(Raw) -> bool,
    own: impl Fn(Raw) -> T,
    other: impl Fn(Raw) -> Option<T>,
) -> Option<usize> {
    widest(Fill { values, out, is_own, own, other })
}

struct Fill<'a, T, I, O, E> {
    values: &'a [Raw],
    out: &'a mut [T],
    is_own: I,
    own: O,
    other: E,
}

impl<T: Copy, I: Fn(Raw) -> bool, O: Fn(Raw) -> T, E: Fn(Raw) -> Option<T>> Work for Fill<'_, T, I, O, E> {
    /// The index of the first value that does not fit.
    type Result = Option<usize>;

    #[inline(always)]
    fn run(self) -> Option<usize> {
        let Self { values, out, is_own, own, other } = self;
        let one = |value| if is_own(value) { Some(own(value)) } else { other(value) };
        // Both slices are cut into lines at the same indices.
        let (lines, rest) = out[..values.len()].as_chunks_mut::<LINE>();
        let (of_lines, of_rest) = values.as_chunks::<LINE>();
        for (number, (line, values)) in lines.iter_mut().zip(of_lines).enumerate() {
            soon(values.as_ptr().wrapping_add(AHEAD), LINE);
            soon(line.as_ptr().wrapping_add(AHEAD), LINE);
            if values.iter().fold(true, |all, value| all & is_own(*value)) {
                line.iter_mut().zip(values).for_each(|(out, value)| *out = own(*value));
            } else if let Some(at) = each(values, line, one) {
                return Some(number * LINE + at);
            }
        }
        let done = values.len() - of_rest.len();
        each(of_rest, rest, one).map(|at| done + at)
    }
}

#[inline(always)]
fn each<T>(values: &[Raw], out: &mut [T], one: impl Fn(Raw) -> Option<T>) -> Option<usize> {
    out.iter_mut().zip(values).position(|(out, value)| match one(*value) {
        Some(stored) => {
            *out = stored;
            false
        }
        None => true,
    })
}

#[cfg(test)]
mod tests {
    use super::{LINE, Raw, floats, ints};
    use crate::ruby::heap::{fixnum_of, flonum_of};

    fn other(value: Raw) -> Option<u64> {
        (value == 4).then_some(7)
    }

    /// Puts another value at each index in turn, in lists of all lengths near that of a line.
    #[test]
    fn every_number_is_stored_where_it_belongs_and_the_first_that_is_none_is_told() {
        for len in 0..3 * LINE {
            let given: Vec<f64> = (1..=len).map(|i| i as f64 * -1.25).collect();
            let values: Vec<Raw> = given.iter().map(|x| flonum_of(*x).expect("small")).collect();
            let expected: Vec<u64> = given.iter().map(|x| x.to_bits()).collect();
            let mut longer = vec![1; len + LINE];
            assert_eq!(floats(&values, &mut longer, f64::to_bits, other), None);
            assert_eq!(longer, [&expected[..], &[1; LINE]].concat());
            let mut out = vec![1; len];
            for at in 0..len {
                let (mut values, mut expected) = (values.clone(), expected.clone());
                (values[at], expected[at]) = (4, 7);
                assert_eq!(floats(&values, &mut out, f64::to_bits, other), None);
                assert_eq!(out, expected);
                values[at] = 8;
                assert_eq!(floats(&values, &mut out, f64::to_bits, other), Some(at));
            }
        }
    }

    #[test]
    fn integers_are_stored_with_their_signs() {
        let given: Vec<i64> = (-10..10).chain([-(1 << 62), (1 << 62) - 1]).collect();
        let values: Vec<Raw> = given.iter().map(|i| fixnum_of(*i).expect("62 bits")).collect();
        let mut out = vec![0; given.len()];
        assert_eq!(ints(&values, &mut out, |i| i as u64, other), None);
        assert_eq!(out, given.iter().map(|i| *i as u64).collect::<Vec<_>>());
    }
}
