//! Sums of groups.
//!
//! Here: natives that add the values of each group ([`group_sums`]), also to what a Hash had before ([`hash_sums`]).
//! Not here: which values are in a group ([`super::grouping`]), and exact sums (the core's `collective/exact_sum.rs`).
//!
//! Invariant: sums with Floats are exact, but for one rounding at the end. Integers are added in 128 bits, so only a
//! total can be too large.

use crate::report::profile::Clock;
use crate::ruby::dtype::Dtype;
use crate::ruby::errors;
use crate::ruby::gvl::Polls;
use crate::ruby::heap::{self, Seen};
use crate::section::collect::{Filling, Given, at, on_host};
use ikra_core::backend::collective::exact_sum::ExactSum;
use ikra_core::memory::column::HostColumn;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, IntoValue, RArray, Ruby, TryConvert, Value};

/// `Ikra.__group_sums(values, starts, is_partial)`: the sum of the values of each group, which lie as
/// [`super::grouping::pairs`] gives them. Mixed sums are Floats, as in Ruby. Partial sums are Integers of any size, and
/// Floats that are not rounded ([`unrounded`]). nil where not all values are Integers of 64 bits or Floats.
///
/// # Errors
/// IntegerOverflow for a sum beyond 64 bits, if it is not partial; ArgumentError for groups beyond all values; what
/// interrupts raise.
pub fn group_sums(ruby: &Ruby, values: Value, starts: Value, is_partial: bool) -> Result<Option<RArray>, Error> {
    let groups = Groups::of(ruby, &mut Clock::start(ruby), values, starts)?;
    let (sums, polls) = (ruby.ary_new(), Polls::new());
    for group in 0..groups.len() {
        polls.look(ruby)?;
        let Some(sum) = groups.added(Sum::new(false), group) else { return Ok(None) };
        sums.push(if is_partial { sum.partial(ruby)? } else { sum.value(ruby)? })?;
    }
    Ok(Some(sums))
}

/// `Ikra.__hash_sums(before, values, starts, negates)`: what a Hash had for each key, and the values of its group added
/// to that, or subtracted (`negates`). nil for a key where not all are Integers of 64 bits or Floats.
///
/// # Errors
/// As [`group_sums`].
pub fn hash_sums(ruby: &Ruby, before: RArray, values: Value, starts: Value, negates: bool) -> Result<RArray, Error> {
    let groups = Groups::of(ruby, &mut Clock::stopped(), values, starts)?;
    let (sums, polls) = (ruby.ary_new_capa(before.len()), Polls::new());
    for group in 0..groups.len() {
        polls.look(ruby)?;
        let begun = Sum::beginning(negates, heap::see(at(before, group).as_raw()));
        match begun.and_then(|sum| groups.added(sum, group)) {
            Some(sum) => sums.push(sum.value(ruby)?)?,
            None => sums.push(ruby.qnil())?,
        }
    }
    Ok(sums)
}

/// `Ikra.__hash_totals(before, totals, negates)`: the same with one total for each key, which is not rounded. nil also
/// where zero is subtracted from -0.0.
///
/// # Errors
/// As [`group_sums`].
pub fn hash_totals(ruby: &Ruby, before: RArray, totals: RArray, negates: bool) -> Result<RArray, Error> {
    let (mut sums, polls) = (Filling::new(ruby, before.len()), Polls::new());
    for group in 0..before.len() {
        polls.look(ruby)?;
        let mut sum = Sum::beginning(negates, heap::see(at(before, group).as_raw()));
        if let Some(begun) = &mut sum
            && !begun.add_total(at(totals, group))?
        {
            sum = None;
        }
        sums.push(match sum {
            Some(sum) => sum.value(ruby)?,
            None => ruby.qnil().as_value(),
        })?;
    }
    sums.done()
}

/// A sum that is not rounded: an Array of Floats whose sum it is, or the Float if one is enough.
///
/// # Errors
/// NoMemoryError.
pub(super) fn unrounded(ruby: &Ruby, parts: &[f64]) -> Result<Value, Error> {
    if let [one] = parts {
        return Ok(one.into_value_with(ruby));
    }
    let list = ruby.ary_new_capa(parts.len());
    parts.iter().try_for_each(|part| list.push(*part))?;
    Ok(list.as_value())
}

/// The sum of what was there and the terms.
struct Sum {
    negates: bool,
    whole: i128,
    /// Set once there is a Float.
    floats: Option<Box<ExactSum>>,
    /// Whether an Integer was added. Subtracting 0 changes no Float, not even -0.0.
    counts: bool,
}

impl Sum {
    fn new(negates: bool) -> Self {
        Self { negates, whole: 0, floats: None, counts: false }
    }

    /// A sum that begins with what was there. None: that is no number of 64 bits.
    fn beginning(negates: bool, before: Seen) -> Option<Self> {
        let mut sum = Self::new(negates);
        match before {
            Seen::Int(before) => (sum.whole, sum.counts) = (before.into(), true),
            Seen::Float(before) => sum.floats.get_or_insert_default().add(before),
            _ => return None,
        }
        Some(sum)
    }

    fn add_int(&mut self, term: i64) {
        self.whole += if self.negates { -i128::from(term) } else { i128::from(term) };
        self.counts |= !self.negates || term != 0;
    }

    /// Adds a sum that is not rounded. False: its terms decide the sign of a zero.
    fn add_total(&mut self, total: Value) -> Result<bool, Error> {
        let total_is = heap::see(total.as_raw());
        if self.negates && matches!(total_is, Seen::Int(0) | Seen::Float(0.0)) && self.is_negative_zero() {
            return Ok(false);
        }
        match total_is {
            Seen::Int(term) => self.add_int(term),
            Seen::Float(term) => self.add_float(term),
            _ => match RArray::from_value(total) {
                Some(parts) => {
                    for part in parts {
                        self.add_float(f64::try_convert(part)?);
                    }
                }
                None => {
                    let term = i128::try_convert(total)?;
                    self.whole += if self.negates { -term } else { term };
                    self.counts = true;
                }
            },
        }
        Ok(true)
    }

    fn add_float(&mut self, term: f64) {
        self.floats.get_or_insert_default().add(if self.negates { -term } else { term });
    }

    fn is_negative_zero(&self) -> bool {
        let floats = self.floats.as_ref().filter(|_| !self.counts);
        floats.is_some_and(|sum| ExactSum::clone(sum).rounded().to_bits() == (-0.0_f64).to_bits())
    }

    /// A Float, or else an Integer.
    ///
    /// # Errors
    /// IntegerOverflow beyond 64 bits.
    fn value(self, ruby: &Ruby) -> Result<Value, Error> {
        match self.all() {
            Ok(floats) => Ok(floats.rounded().into_value_with(ruby)),
            Err(whole) => {
                let whole = i64::try_from(whole).map_err(|_| errors::group_overflow(ruby))?;
                Ok(whole.into_value_with(ruby))
            }
        }
    }

    /// An Integer of any size, or an unrounded sum of Floats.
    fn partial(self, ruby: &Ruby) -> Result<Value, Error> {
        match self.all() {
            Ok(floats) => unrounded(ruby, &floats.parts()),
            Err(whole) => Ok(whole.into_value_with(ruby)),
        }
    }

    /// The sum of Floats and Integers, or else of Integers alone.
    fn all(self) -> Result<Box<ExactSum>, i128> {
        let Some(mut floats) = self.floats else { return Err(self.whole) };
        if self.counts {
            floats.add_int(self.whole);
        }
        Ok(floats)
    }
}

/// The values of all groups, group by group.
struct Groups {
    /// The place of each group's first value, and at the end the number of values: of I64.
    starts: HostColumn,
    terms: Terms,
}

enum Terms {
    Columns(Dtype, HostColumn),
    List(RArray),
}

impl Groups {
    fn of(ruby: &Ruby, clock: &mut Clock, values: Value, starts: Value) -> Result<Self, Error> {
        let refused = |why| Error::new(ruby.exception_arg_error(), why);
        let Given::Numbers(Dtype::I64, starts) = Given::of(starts)? else {
            return Err(refused("groups without places"));
        };
        let starts = on_host(ruby, clock, &starts)?;
        let (terms, all) = match Given::of(values)? {
            Given::Numbers(dtype, buffer) => (Terms::Columns(dtype, on_host(ruby, clock, &buffer)?), buffer.len()),
            Given::List(list) => (Terms::List(list), list.len()),
        };
        let places = starts.view::<i64>();
        let in_order = places.windows(2).all(|group| (0..=group[1]).contains(&group[0]));
        if !in_order || places.last().is_some_and(|last| *last as usize > all) {
            return Err(refused("groups are not in order"));
        }
        Ok(Self { starts, terms })
    }

    fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// A sum, and the values of a group added to it. None: one is no number of 64 bits.
    fn added(&self, mut sum: Sum, group: usize) -> Option<Sum> {
        let starts = self.starts.view::<i64>();
        let range = starts[group] as usize..starts[group + 1] as usize;
        match &self.terms {
            Terms::Columns(Dtype::I64, column) => {
                column.view::<i64>()[range].iter().for_each(|term| sum.add_int(*term));
            }
            Terms::Columns(Dtype::F64, column) => {
                column.view::<f64>()[range].iter().for_each(|term| sum.add_float(*term));
            }
            Terms::Columns(..) => return None,
            Terms::List(list) => {
                for term in &heap::elements(list.as_raw())[range] {
                    match heap::see(*term) {
                        Seen::Int(term) => sum.add_int(term),
                        Seen::Float(term) => sum.add_float(term),
                        _ => return None,
                    }
                }
            }
        }
        Some(sum)
    }
}
