//! Captured Hashes into which a section's block accumulates.
//!
//! Here: the pairs that elements left behind for each Hash, grouped and handed to the library. It prepares the new
//! values ([`prepare`]), and later writes them ([`Prepared::write`]). Tables in the kernel may have grouped the pairs
//! of one Hash, so that only a total for each key is left ([`tabled`]). Not here: how a block's updates are found
//! (`infer/hash_updates.rs` of the core), what Ruby's methods do with the groups (lib/ikra/captured_hash.rb), and the
//! sums of groups ([`super::sums`]).
//!
//! Invariant: where anything fails, no Hash is changed.

use crate::marshal::plan::SlotPlan;
use crate::marshal::unpack::Unpacker;
use crate::options;
use crate::ruby::errors;
use crate::ruby::heap::{self, Raw, Seen};
use crate::section::collect::{Given, at};
use crate::section::combining;
use crate::section::grouping::{self, Grouper};
use ikra_core::backend::collective::emitted::{self, Emitted};
use ikra_core::diagnostic::{Diagnostic, Span};
use ikra_core::layout::schema::{Accumulator, TabledHash};
use ikra_core::memory::room;
use ikra_core::source::Source;
use ikra_core::types::combine::{Combine, HashUpdate, Missing, Seed};
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, IntoValue, RArray, RString, Ruby, Value};
use std::sync::Arc;

/// The new values of captured Hashes, which are not written yet.
pub struct Prepared {
    /// One object of the library's for each Hash.
    hashes: RArray,
}

/// The new values of the Hash whose pairs the kernel has grouped.
pub struct Tabled(Option<Value>);

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

/// What tables in kernels combine the values of a Hash's pairs to.
pub fn total(hash: &TabledHash) -> Option<emitted::Combine> {
    Some(match hash.update.0.total()? {
        Combine::Add => emitted::Combine::Sum,
        Combine::Min(_) => emitted::Combine::Min,
        Combine::Max(_) => emitted::Combine::Max,
        Combine::And => emitted::Combine::And,
        Combine::Or => emitted::Combine::Or,
        Combine::Mul | Combine::Xor | Combine::Last => return None,
    })
}

/// Prepares the new values of the captured Hash whose pairs a kernel on a backend has grouped. None where its totals do
/// not tell them.
///
/// # Errors
/// IntegerOverflow; what blocks for defaults raise; FrozenError; what interrupts raise.
pub fn tabled(
    unpacker: &Unpacker<'_>,
    section: &Updated<'_>,
    (table, hash): (&TabledHash, Value),
    mut groups: Emitted,
    backend: &'static str,
) -> Result<Option<Tabled>, Error> {
    if groups.keys.is_empty() {
        return Ok(Some(Tabled(None)));
    }
    if !is_plain(unpacker.ruby, hash) {
        return Ok(None);
    }
    // sums are not rounded before they are added to what is there
    let how = (groups.how.combine == emitted::Combine::Sum).then_some(options::Combine::Total);
    combining::merge_equal(unpacker, &mut groups)?;
    let pairs = combining::emitted(unpacker, &groups, how)?;
    room::note_change();
    let update = Update { name: &table.name, update: table.update.0, line: table.line, hash };
    let made = update.prepared(unpacker, section, pairs, "totals")?;
    if made.is_nil() || RString::from_value(made).is_some() {
        return Ok(None);
    }
    combining::tell_of_emitted(unpacker, &groups, backend)?;
    Ok(Some(Tabled(Some(made))))
}

/// Prepares the new values of all captured Hashes, of which one may be prepared already.
///
/// # Errors
/// CompileError for a Hash that cannot be accumulated into; what Ruby's methods raise for its values; IntegerOverflow;
/// what grouping raises.
pub fn prepare(
    unpacker: &Unpacker<'_>,
    section: &Updated<'_>,
    tabled: Option<Tabled>,
    all: &[Captured<'_>],
) -> Result<Prepared, Error> {
    let ruby = unpacker.ruby;
    let hashes = ruby.ary_new();
    let add = |prepared: Value, (name, span): (&str, Span)| {
        let touched: RArray = prepared.funcall("touched", ())?;
        if heap::elements(touched.as_raw()).iter().any(|object| is_used(unpacker, *object, section.base)) {
            return Err(section.refused(ruby, (name, span), "is also used in another way in this section"));
        }
        hashes.push(prepared)?;
        let apart: bool = library(ruby)?.funcall("apart?", (hashes,))?;
        if apart {
            Ok(())
        } else {
            Err(section.refused(ruby, (name, span), "shares what is changed with another Hash"))
        }
    };
    if let (Some(Tabled(Some(prepared))), Some(table)) = (tabled, &unpacker.schema.table) {
        add(prepared, (&table.name, table.update.1))?;
    }
    if !all.is_empty() {
        // Methods of keys and values run, and blocks for defaults. Nothing of it is done twice.
        room::note_change();
    }
    for one in all {
        if let Some(prepared) = prepared(unpacker, section, one)? {
            add(prepared, (&one.accumulator.name, one.update.1))?;
        }
    }
    Ok(Prepared { hashes })
}

impl Updated<'_> {
    /// The error for a Hash that cannot be accumulated into.
    fn refused(&self, ruby: &Ruby, (name, span): (&str, Span), why: &str) -> Error {
        let told = Diagnostic::new(self.source, span, format!("{name} {why}"))
            .because(format!("{name} is accumulated in this block"))
            .advise("accumulate into a new Hash, such as Hash.new(0), and bring the two together after the call");
        errors::core(ruby, told.into())
    }
}

fn is_plain(ruby: &Ruby, hash: Value) -> bool {
    heap::see(hash.as_raw()) == Seen::Hash && heap::class_word(hash.as_raw()) == ruby.class_hash().as_raw()
}

/// The updates of one Hash.
struct Update<'a> {
    name: &'a str,
    update: HashUpdate,
    line: u32,
    hash: Value,
}

impl Update<'_> {
    /// What the library prepares. `given` says what it is given: `groups`, `order` or `totals`.
    fn prepared(
        &self,
        unpacker: &Unpacker<'_>,
        section: &Updated<'_>,
        pairs: RArray,
        given: &str,
    ) -> Result<Value, Error> {
        let (ruby, schema) = (unpacker.ruby, unpacker.schema);
        let objects = schema.fields.iter().any(|field| field.overwritten) || section.stays;
        let arrays = schema.arrays.iter().any(|array| array.overwritten) || section.stays;
        let changes = ruby.ary_new_from_values(&[objects, arrays, section.stays].map(|flag| ruby.into_value(flag)));
        let way = (self.update.word(), self.update.missing.map(|missing| seed(ruby, missing)));
        let pairs = (given, at(pairs, 0), at(pairs, 1), at(pairs, 2));
        let made: Result<Value, Error> =
            library(ruby)?.funcall("prepared", (self.hash, self.name, way, pairs, changes));
        let place = (section.source.path.as_str(), self.line);
        made.map_err(|error| errors::of_update(ruby, error, place))
    }
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
fn prepared(unpacker: &Unpacker<'_>, section: &Updated<'_>, one: &Captured<'_>) -> Result<Option<Value>, Error> {
    let (ruby, name, len) = (unpacker.ruby, &one.accumulator.name, section.len);
    let pairs = grouping::pairs(unpacker, one.slot, len, Some(Grouper::default()))?;
    if count(at(pairs, 0))? == 0 {
        return Ok(None);
    }
    if !is_plain(ruby, one.hash) {
        let why = format!("is a {}, and kernels accumulate into plain Hashes", errors::class_name(one.hash));
        return Err(section.refused(ruby, (name, one.update.1), &why));
    }
    let update = Update { name, update: one.update.0, line: one.accumulator.line, hash: one.hash };
    let pairs = match heap::see(at(pairs, 2).as_raw()) {
        Seen::Nil => grouping::by_hash(ruby, at(pairs, 0), at(pairs, 1))?,
        _ => pairs,
    };
    let mut made = update.prepared(unpacker, section, pairs, "groups")?;
    if made.is_nil() {
        made = update.prepared(unpacker, section, grouping::pairs(unpacker, one.slot, len, None)?, "order")?;
    }
    match RString::from_value(made) {
        Some(why) => Err(section.refused(ruby, (name, one.update.1), &why.to_string()?)),
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
