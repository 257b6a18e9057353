//! Captured Hashes into which a section's block accumulates.
//!
//! Here: the pairs that elements left behind for each Hash, grouped and handed to the library. It prepares the new
//! values ([`prepare`]), and later writes them ([`Prepared::write`]). Also here: the sums of groups, with what a Hash
//! had before. Not here: how a block's updates are found (`infer/hash_updates.rs` of the core), and what Ruby's
//! methods do with the groups (lib/ikra/captured_hash.rb).
//!
//! Invariant: where anything fails, no Hash is changed.

use crate::marshal::plan::SlotPlan;
use crate::marshal::unpack::Unpacker;
use crate::report::profile::Clock;
use crate::ruby::dtype::Dtype;
use crate::ruby::errors;
use crate::ruby::gvl::Polls;
use crate::ruby::heap::{self, Raw, Seen};
use crate::section::collect::{Given, at, on_host};
use crate::section::grouping::{self, Grouper};
use ikra_core::backend::collective::exact_sum::ExactSum;
use ikra_core::diagnostic::{Diagnostic, Span};
use ikra_core::layout::schema::Accumulator;
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::room;
use ikra_core::source::Source;
use ikra_core::types::combine::HashUpdate;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RString, Ruby, Value};
use std::ops::Range;
use std::sync::Arc;

/// The new values of captured Hashes, which are not written yet.
pub struct Prepared {
    /// One object of the library's for each Hash.
    hashes: RArray,
}

/// The section whose elements updated the Hashes.
pub struct Updated<'a> {
    pub source: &'a Arc<Source>,
    /// The number of its elements, and what it goes over.
    pub len: usize,
    pub base: Value,
    /// Whether objects stay on the device. Then Ruby's may be old.
    pub stays: bool,
}

/// A captured Hash, and how the block updates it.
pub struct Captured<'a> {
    pub accumulator: &'a Accumulator,
    pub update: (HashUpdate, Span),
    pub slot: &'a SlotPlan,
    pub hash: Value,
}

/// Prepares the new values of all captured Hashes.
///
/// # Errors
/// CompileError for a Hash that cannot be accumulated into; what Ruby's methods raise for its values; IntegerOverflow;
/// what grouping raises.
pub fn prepare(unpacker: &Unpacker<'_>, section: &Updated<'_>, all: &[Captured<'_>]) -> Result<Prepared, Error> {
    let ruby = unpacker.ruby;
    let hashes = ruby.ary_new();
    if !all.is_empty() {
        // Methods of keys and values run, and blocks for defaults. Nothing of it is done twice.
        room::note_change();
    }
    for one in all {
        let refused = |message: String| {
            let told = Diagnostic::new(section.source, one.update.1, message)
                .because(format!("{} is accumulated in this block", one.accumulator.name))
                .advise("accumulate into a new Hash, such as Hash.new(0), and bring the two together after the call");
            errors::core(ruby, told.into())
        };
        if let Some(prepared) = prepared(unpacker, section, one, &refused)? {
            let touched: RArray = prepared.funcall("touched", ())?;
            if heap::elements(touched.as_raw()).iter().any(|object| is_used(unpacker, *object, section.base)) {
                return Err(refused(format!("{} is also used in another way in this section", one.accumulator.name)));
            }
            hashes.push(prepared)?;
            let apart: bool = library(ruby)?.funcall("apart?", (hashes,))?;
            if !apart {
                return Err(refused(format!("{} shares what is changed with another Hash", one.accumulator.name)));
            }
        }
    }
    Ok(Prepared { hashes })
}

impl Prepared {
    /// Writes the new values.
    ///
    /// # Errors
    /// What Ruby raises for new keys while a program goes over the Hash.
    pub fn write(self) -> Result<(), Error> {
        for hash in self.hashes {
            hash.funcall::<_, _, Value>("write", ())?;
        }
        Ok(())
    }
}

fn library(ruby: &Ruby) -> Result<Value, Error> {
    errors::ikra(ruby)?.funcall("__captured_hash", ())
}

/// Whether the kernel had an object or an array, or goes over it.
fn is_used(unpacker: &Unpacker<'_>, object: Raw, base: Value) -> bool {
    let tables = unpacker.tables;
    object == base.as_raw()
        || tables.classes.iter().any(|rows| rows.objects.contains(&object))
        || tables.kinds.iter().any(|rows| rows.arrays.contains(&object))
}

/// The library's object for a Hash. None where no element updates it.
fn prepared(
    unpacker: &Unpacker<'_>,
    section: &Updated<'_>,
    one: &Captured<'_>,
    refused: &impl Fn(String) -> Error,
) -> Result<Option<Value>, Error> {
    let (ruby, name, len) = (unpacker.ruby, &one.accumulator.name, section.len);
    let schema = unpacker.schema;
    let objects = schema.fields.iter().any(|field| field.overwritten) || section.stays;
    let arrays = schema.arrays.iter().any(|array| array.overwritten) || section.stays;
    let pairs = grouping::pairs(unpacker, one.slot, len, Some(Grouper::default()))?;
    if count(at(pairs, 0))? == 0 {
        return Ok(None);
    }
    let is_plain =
        heap::see(one.hash.as_raw()) == Seen::Hash && heap::class_word(one.hash.as_raw()) == ruby.class_hash().as_raw();
    if !is_plain {
        let class = errors::class_name(one.hash);
        return Err(refused(format!("{name} is a {class}, and kernels accumulate into plain Hashes")));
    }
    let word = one.update.0.word();
    let updated = |pairs: RArray, in_order: bool| -> Result<Value, Error> {
        let (keys, values, starts) = (at(pairs, 0), at(pairs, 1), at(pairs, 2));
        let changes = ruby.ary_new_from_values(&[objects, arrays, section.stays].map(|flag| ruby.into_value(flag)));
        let given = (one.hash, &**name, word.as_str(), keys, values, starts, in_order, changes);
        let made: Result<Value, Error> = library(ruby)?.funcall("prepared", given);
        let place = (section.source.path.as_str(), one.accumulator.line);
        made.map_err(|error| errors::of_update(ruby, error, operator(one.update.0), place))
    };
    let pairs = match heap::see(at(pairs, 2).as_raw()) {
        Seen::Nil => grouping::by_hash(ruby, at(pairs, 0), at(pairs, 1))?,
        _ => pairs,
    };
    let mut made = updated(pairs, false)?;
    if made.is_nil() {
        made = updated(grouping::pairs(unpacker, one.slot, len, None)?, true)?;
    }
    match RString::from_value(made) {
        Some(message) => Err(refused(message.to_string()?)),
        None => Ok(Some(made)),
    }
}

fn count(list: Value) -> Result<usize, Error> {
    Ok(match Given::of(list)? {
        Given::List(list) => list.len(),
        Given::Numbers(_, buffer) => buffer.len(),
    })
}

/// The method that an update calls on what a Hash has.
fn operator(update: HashUpdate) -> &'static str {
    match update {
        HashUpdate::Operator(name) | HashUpdate::IfThere(name) => name,
        _ => "<<",
    }
}

/// `Ikra.__hash_sums(before, values, starts, negates)`: what a Hash had for each key, and the values of its group added
/// to that, or subtracted (`negates`). Groups lie as [`grouping::pairs`] gives them. Sums with Floats are exact, but
/// for one rounding at the end. nil for a key where not all are Integers of 64 bits or Floats.
///
/// # Errors
/// IntegerOverflow for a sum beyond 64 bits; ArgumentError for groups that are not in order; what interrupts raise.
pub fn sums(ruby: &Ruby, before: RArray, values: Value, starts: Value, negates: bool) -> Result<RArray, Error> {
    let mut clock = Clock::stopped();
    let Given::Numbers(Dtype::I64, starts) = Given::of(starts)? else {
        return Err(Error::new(ruby.exception_arg_error(), "groups without places"));
    };
    let starts = on_host(ruby, &mut clock, &starts)?;
    let (terms, all) = match Given::of(values)? {
        Given::Numbers(dtype, buffer) => (Terms::Columns(dtype, on_host(ruby, &mut clock, &buffer)?), buffer.len()),
        Given::List(list) => (Terms::List(list), list.len()),
    };
    let starts = starts.view::<i64>();
    let in_order = starts.windows(2).all(|group| (0..=group[1]).contains(&group[0]));
    if !in_order || starts.last().is_some_and(|last| *last as usize > all) {
        return Err(Error::new(ruby.exception_arg_error(), "groups are not in order"));
    }
    let (sums, polls) = (ruby.ary_new_capa(before.len()), Polls::new());
    for (group, bounds) in starts.windows(2).enumerate() {
        polls.look(ruby)?;
        let mut sum = Sum::new(negates);
        let known = sum.begin(heap::see(at(before, group).as_raw()))
            && terms.add(&mut sum, bounds[0] as usize..bounds[1] as usize);
        sums.push(match known {
            false => ruby.qnil().as_value(),
            true => match sum.value() {
                Ok(sum) => ruby.into_value(sum),
                Err(sum) => ruby.into_value(i64::try_from(sum).map_err(|_| errors::group_overflow(ruby))?),
            },
        })?;
    }
    Ok(sums)
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

    /// Begins with what was there. False: that is no number of 64 bits.
    fn begin(&mut self, before: Seen) -> bool {
        match before {
            Seen::Int(before) => (self.whole, self.counts) = (before.into(), true),
            Seen::Float(before) => self.floats.get_or_insert_default().add(before),
            _ => return false,
        }
        true
    }

    fn add_int(&mut self, term: i64) {
        self.whole += if self.negates { -i128::from(term) } else { i128::from(term) };
        self.counts |= !self.negates || term != 0;
    }

    fn add_float(&mut self, term: f64) {
        self.floats.get_or_insert_default().add(if self.negates { -term } else { term });
    }

    /// A Float, or else an Integer.
    fn value(self) -> Result<f64, i128> {
        let Some(mut floats) = self.floats else { return Err(self.whole) };
        if self.counts {
            floats.add_int(self.whole);
        }
        Ok(floats.rounded())
    }
}

/// What the groups add.
enum Terms {
    Columns(Dtype, HostColumn),
    List(RArray),
}

impl Terms {
    /// Adds the terms of a group. False: one is no number of 64 bits.
    fn add(&self, sum: &mut Sum, range: Range<usize>) -> bool {
        match self {
            Terms::Columns(Dtype::I64, column) => {
                column.view::<i64>()[range].iter().for_each(|term| sum.add_int(*term));
                true
            }
            Terms::Columns(Dtype::F64, column) => {
                column.view::<f64>()[range].iter().for_each(|term| sum.add_float(*term));
                true
            }
            Terms::Columns(..) => false,
            Terms::List(list) => heap::elements(list.as_raw())[range].iter().all(|term| match heap::see(*term) {
                Seen::Int(term) => {
                    sum.add_int(term);
                    true
                }
                Seen::Float(term) => {
                    sum.add_float(term);
                    true
                }
                _ => false,
            }),
        }
    }
}
