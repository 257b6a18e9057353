//! Captured Hashes into which a section's block accumulates.
//!
//! Here: the pairs that elements left behind for each Hash, grouped and handed to the library. It prepares the new
//! values ([`prepare`]), and later writes them ([`Prepared::write`]). Not here: how a block's updates are found
//! (`infer/hash_updates.rs` of the core), what Ruby's methods do with the groups (lib/ikra/captured_hash.rb), and the
//! sums of groups ([`super::sums`]).
//!
//! Invariant: where anything fails, no Hash is changed.

use crate::marshal::plan::SlotPlan;
use crate::marshal::unpack::Unpacker;
use crate::ruby::errors;
use crate::ruby::heap::{self, Raw, Seen};
use crate::section::collect::{Given, at};
use crate::section::grouping::{self, Grouper};
use ikra_core::diagnostic::{Diagnostic, Span};
use ikra_core::layout::schema::Accumulator;
use ikra_core::memory::room;
use ikra_core::source::Source;
use ikra_core::types::combine::{HashStep, HashUpdate, Missing, Seed};
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, IntoValue, RArray, RString, Ruby, Value};
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
        let missing = one.update.0.missing.map(|missing| seed(ruby, missing));
        let given = (one.hash, &**name, (word.as_str(), missing), keys, values, starts, in_order, changes);
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

/// Whether what stands for a missing value does so for nil and false, too; and that.
fn seed(ruby: &Ruby, missing: Missing) -> (bool, Value) {
    let (Missing::Falsy(seed) | Missing::Absent(seed)) = missing;
    let value = match seed {
        Seed::Int(value) => value.into_value_with(ruby),
        Seed::Float(bits) => f64::from_bits(bits).into_value_with(ruby),
        Seed::Text => ruby.str_new("").as_value(),
    };
    (matches!(missing, Missing::Falsy(_)), value)
}

/// The method that an update calls on what a Hash has.
fn operator(update: HashUpdate) -> &'static str {
    match update.step {
        HashStep::Operator(name) | HashStep::IfThere(name) => name,
        _ => "<<",
    }
}
