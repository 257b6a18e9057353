//! What a section gives to Ruby after its launch.
//!
//! Here: where results are ([`ResultLocation`]), and the section's value, once everything is written back. Not here:
//! the write-back itself ([`crate::marshal::unpack`]).

use super::Section;
use super::request::Kind;
use super::variant::{Variant, is_dtype};
use crate::buffers::buffer;
use crate::marshal::pack::Packed;
use crate::marshal::plan::SlotPlan;
use crate::marshal::unpack::Unpacker;
use crate::options::{Flag, Results, Settings};
use crate::report::profile::Clock;
use crate::ruby::dtype::Dtype;
use crate::ruby::errors;
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::registry;
use crate::section::collect;
use crate::section::columns;
use crate::section::combining;
use crate::section::grouping::{self, Grouper, Wanted};
use crate::section::hash_updates::{self, Captured, Tabled, Updated};
use crate::section::over::Placement;
use crate::world::live_world;
use ikra_core::backend::collective::emitted::Emitted;
use ikra_core::backend::collective::reduce::{Reduced, Reduction};
use ikra_core::backend::resident::{Resident, Write};
use ikra_core::backend::{Key, TrapRecord};
use ikra_core::diagnostic::Diagnostic;
use ikra_core::ir::Trap;
use ikra_core::layout::schema::Schema;
use ikra_core::memory::buffer::Buffer;
use ikra_core::memory::column::HostColumn;
use ikra_core::syntax;
use ikra_core::types::{Repr, Unit};
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, Ruby, Value};
use std::sync::Arc;

/// Where results are after a launch.
pub(super) enum ResultLocation {
    Column,
    Buffer(Dtype, Arc<Buffer>),
    /// In the first buffer. The second is the validity mask: which elements have a result.
    Masked(Dtype, Arc<Buffer>, Arc<Buffer>),
    /// Not stored; only their reduction is.
    Reduced(Reduced),
    /// The groups of the pairs that elements emitted.
    Grouped(Box<Emitted>),
    /// In a column that the kernel makes, without the elements that have no result, if it ends well.
    Compacted,
}

impl ResultLocation {
    /// Whether the launch made this buffer.
    pub(super) fn is_new(&self, buffer: &Arc<Buffer>) -> bool {
        match self {
            Self::Buffer(_, own) => Arc::ptr_eq(own, buffer),
            Self::Masked(_, own, marks) => Arc::ptr_eq(own, buffer) || Arc::ptr_eq(marks, buffer),
            _ => false,
        }
    }
}

/// How a section ended early.
#[derive(Clone, Copy)]
pub(super) enum EarlyExit {
    /// By `break`, with its value and the index of the element.
    Break(Raw, u64),
    /// At the element that was looked for, with its index.
    Found(u64),
}

/// The value of a section with `within`.
pub(super) fn ended(ruby: &Ruby, how: Option<&str>, value: Value, before: Option<RArray>) -> Value {
    let how = how.map_or_else(|| ruby.qnil().as_value(), |how| registry::symbol(ruby, how).as_value());
    let before = before.map_or_else(|| ruby.qnil().as_value(), |before| before.as_value());
    ruby.ary_new_from_values(&[how, value, before]).as_value()
}

impl Section<'_> {
    /// How a launch that trapped ends the section, if it does not raise.
    ///
    /// # Errors
    /// The exception of the trap.
    pub(super) fn early_exit(&self, unpacker: &Unpacker<'_>, record: &TrapRecord) -> Result<EarlyExit, Error> {
        let site = &unpacker.program.sites[record.site.index()];
        if site.trap == Trap::Race {
            return Err(errors::race(self.ruby, unpacker.program, record));
        }
        let operands = unpacker.operands(&site.operands, &record.words)?;
        if site.trap != Trap::Break {
            // Messages show what the element has made. For an array of a union it is not sure which of two kinds it
            // has.
            if !site.operands.contains(&Repr::Union) {
                unpacker.fill_new()?;
            }
            return Err(errors::trapped(self.ruby, site, &operands, record.key));
        }
        Ok(match operands.first() {
            Some(value) => EarlyExit::Break(*value, record.key.index()),
            None => EarlyExit::Found(record.key.index()),
        })
    }

    /// Writes back, and gives the section's value.
    pub(super) fn unpack(
        &self,
        unpacker: &Unpacker<'_>,
        exit: Option<EarlyExit>,
        len: usize,
        result: ResultLocation,
        (tabled, stays): (Option<Tabled>, bool),
    ) -> Result<Value, Error> {
        let mut before = None;
        let (how, value) = match (exit, &unpacker.plan.result) {
            (Some(EarlyExit::Break(raw, index)), slot) => {
                // A column that is reduced, or that a buffer holds, has no rows here.
                if let (true, Some(slot), ResultLocation::Column, None) =
                    (self.request.wrapped, slot, &result, self.request.settings.reduce)
                {
                    before = Some(unpacker.results(slot, index as usize)?);
                }
                (Some("left"), crate::ruby::reflect::value(raw))
            }
            (Some(EarlyExit::Found(index)), _) => (Some("found"), self.ruby.into_value(index)),
            (None, Some(_)) if let ResultLocation::Reduced(reduced) = result => {
                let reduction = self.request.settings.reduce.unwrap_or(Reduction::Count);
                (Some("reduced"), collect::reduced_value(self.ruby, reduction, reduced)?)
            }
            (None, Some(_)) if let ResultLocation::Buffer(dtype, buffer) = result => {
                (None, buffer::wrap(self.ruby, dtype, buffer).as_value())
            }
            (None, Some(_)) if let ResultLocation::Masked(dtype, buffer, marks) = result => {
                let place = Placement::as_left(self.ruby, &marks)?;
                let clock = &mut Clock::stopped();
                (None, place.chosen(self.ruby, clock, (dtype, &buffer), 0..len, &marks)?)
            }
            (None, Some(_)) if let ResultLocation::Grouped(mut groups) = result => {
                let Settings { combine, flags, .. } = self.request.settings;
                combining::merge_equal(unpacker, &mut groups)?;
                let columns = if flags.has(Flag::Columns) { columns::columns(unpacker, &groups)? } else { None };
                let found = match columns {
                    Some(columns) => columns,
                    None => combining::emitted(unpacker, &groups, combine)?,
                };
                combining::tell_of_emitted(unpacker, &groups, self.backend.name())?;
                (None, found.as_value())
            }
            (None, Some(slot)) => match self.grouped(unpacker, slot, len)? {
                Some(groups) => (Some("grouped"), groups),
                None => (None, self.results(unpacker, slot, len)?),
            },
            (None, None) if self.request.kind == Kind::Another => {
                (None, self.request.captures.get(self.ruby, &syntax::given(0))?)
            }
            (None, None) => (None, self.request.base),
        };
        let (mut locals, mut hashes) = (Vec::new(), Vec::new());
        let path = &self.site.source.unit.source.path;
        for (accumulator, slot) in unpacker.schema.accumulators.iter().zip(&unpacker.plan.accumulators) {
            let start = self.request.captures.get(self.ruby, &accumulator.name)?;
            if let Some(update) = accumulator.update {
                unpacker.holder.add(self.ruby, start.as_raw());
                hashes.push(Captured { accumulator, update, slot, hash: start });
                continue;
            }
            if let Some(value) = unpacker.combined(accumulator, slot, start, len, path)? {
                unpacker.holder.add(self.ruby, value.as_raw());
                locals.push((accumulator.name.clone(), value));
            }
        }
        let hashes = hash_updates::prepare(unpacker, &self.updated(len, stays), tabled, &hashes)?;
        if stays { unpacker.fill_new() } else { unpacker.write_back(unpacker.look()) }?;
        unpacker.schema.roots.iter().try_for_each(|root| live_world::write_class_variable(self.ruby, &root.root))?;
        for (name, value) in locals {
            self.request.captures.set(self.ruby, &name, value)?;
        }
        hashes.write()?;
        let bare = !self.request.wrapped || how.is_none() && heap::see(value.as_raw()) == Seen::Buffer;
        Ok(if bare { value } else { ended(self.ruby, how, value, before) })
    }

    fn updated(&self, len: usize, stays: bool) -> Updated<'_> {
        Updated { source: &self.site.source.unit.source, len, base: self.request.base, stays }
    }

    /// The new values of the captured Hash whose pairs a kernel has grouped. None where groups do not tell them.
    pub(super) fn tabled(&self, unpacker: &Unpacker<'_>, groups: Emitted, len: usize) -> Result<Option<Tabled>, Error> {
        let Some(table) = &unpacker.schema.table else { return Ok(None) };
        let hash = self.request.captures.get(self.ruby, &table.name)?;
        unpacker.holder.add(self.ruby, hash.as_raw());
        hash_updates::tabled(unpacker, &self.updated(len, false), (table, hash), groups, self.backend.name())
    }

    /// The groups of elements that have the same result, where the caller asked for them and the results tell them.
    fn grouped(&self, unpacker: &Unpacker<'_>, slot: &SlotPlan, len: usize) -> Result<Option<Value>, Error> {
        let wanted = [
            (Flag::Keys, Wanted::Members),
            (Flag::Firsts, Wanted::Firsts),
            (Flag::Each, Wanted::Keys),
            (Flag::Counts, Wanted::Counts),
        ];
        let flags = self.request.settings.flags;
        let Some((_, wanted)) = wanted.into_iter().find(|(flag, _)| flags.has(*flag)) else { return Ok(None) };
        Ok(grouping::by_results(unpacker, slot, len, wanted)?.map(|groups| groups.as_value()))
    }

    /// The block's values, in the form that the caller asked for.
    fn results(&self, unpacker: &Unpacker<'_>, slot: &SlotPlan, len: usize) -> Result<Value, Error> {
        let flags = self.request.settings.flags;
        if flags.has(Flag::Pairs) || flags.has(Flag::Groups) {
            let Settings { combine, engine, .. } = self.request.settings;
            let grouper = flags.has(Flag::Groups).then_some(Grouper { combine, engine });
            return Ok(grouping::pairs(unpacker, slot, len, grouper)?.as_value());
        }
        let joined = if flags.has(Flag::Join) { unpacker.joined(slot, len)? } else { None };
        match joined {
            Some((dtype, rows)) => Ok(buffer::wrap(self.ruby, dtype, Arc::new(Buffer::from_column(rows))).as_value()),
            None => Ok(unpacker.results(slot, len)?.as_value()),
        }
    }

    /// Where the results of a launch go. Buffers of results are added to its buffers.
    pub(super) fn result_location(
        &self,
        variant: &Variant,
        limit: Key,
        packed: &mut Packed,
    ) -> Result<ResultLocation, Error> {
        match (self.request.settings.into, &variant.plan.result) {
            (Some(_), Some(_)) if variant.compaction.is_some() => Ok(ResultLocation::Compacted),
            (Some(into), Some(slot)) if variant.fold.is_none() => {
                self.result_buffer(into, slot, &variant.lowered.schema, limit, packed)
            }
            _ => Ok(ResultLocation::Column),
        }
    }

    /// To a buffer, unless they must become an Array.
    fn result_buffer(
        &self,
        into: Results,
        slot: &SlotPlan,
        schema: &Schema,
        limit: Key,
        packed: &mut Packed,
    ) -> Result<ResultLocation, Error> {
        // A program that only raises has no results of another kind.
        let none = || schema.is_endless.then_some(if let Results::As(dtype) = into { dtype } else { Dtype::F64 });
        let Some(dtype) = is_dtype(into, slot).or_else(none) else {
            if into == Results::Numbers || self.request.settings.flags.has(Flag::Holes) {
                return Ok(ResultLocation::Column);
            }
            let source = &self.site.source.unit.source;
            let message =
                "what this block gives is of several kinds, or of one that an array on the device cannot hold";
            let diagnostic = Diagnostic::new(source, self.site.source.unit.body.span, message)
                .because("an array on the device holds Integers, or Floats, or true and false")
                .advise("convert them in the block (to_f, to_i), have map give an array of objects (dtype: :object), or use an Array");
            return Err(errors::core(self.ruby, diagnostic.into()));
        };
        let len = self.len();
        // Elements behind a break are not run.
        let write = if limit == Key::NONE { Write::All } else { Write::Some };
        let buffer = Arc::new(Buffer::zeroed(dtype.storage(), len));
        match (slot.value, slot.repr) {
            (Some(column), _) => packed.residents.push(Resident { column, buffer: buffer.clone(), write }),
            // All results are one and the same value.
            (None, Repr::Unit(Unit::True)) => {
                let mut column = HostColumn::zeroed(dtype.storage(), len);
                column.view_mut::<u8>().fill(1);
                buffer.replace(column);
            }
            (None, _) => {}
        }
        let Some(column) = schema.marks else { return Ok(ResultLocation::Buffer(dtype, buffer)) };
        let marks = Arc::new(Buffer::zeroed(Dtype::Bool.storage(), len));
        packed.residents.push(Resident { column, buffer: marks.clone(), write });
        Ok(ResultLocation::Masked(dtype, buffer, marks))
    }
}
