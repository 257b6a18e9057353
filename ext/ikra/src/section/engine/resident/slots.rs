//! One slot of one object, for Ruby's own readers and writers of attributes.
//!
//! Here: what a reader gives where an object lacks what a kernel wrote. It fetches only that slot, or everything once
//! many slots were fetched. A writer stores the value in the object and in the column that the next kernel reads, so
//! that nothing has to be packed anew. Not here: which methods are readers and writers (lib/ikra/resident.rb), and
//! writing back ([`super::State::write_back`]).

use super::{Key, Kind, Scope, State, Variant, is_plain};
use crate::marshal::decode::{Decoded, Decoder};
use crate::marshal::plan::SlotPlan;
use crate::ruby::errors;
use crate::ruby::gvl;
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::reflect;
use ikra_core::ir::{ColumnId, Storage};
use ikra_core::memory::buffer::Buffer;
use ikra_core::types::Repr;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RObject, RStruct, Ruby, Symbol, Value};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The most slots that are fetched one by one. After these all is written back that objects lack.
const MAX_SINGLE_SLOTS: u32 = 4;

/// The number of the last launch, and how many slots were fetched since.
#[derive(Default)]
pub(super) struct Fetched(Mutex<(u64, u32)>);

impl Fetched {
    /// Whether one more slot is fetched by itself.
    fn one_more(&self, launches: u64) -> bool {
        let mut fetched = self.0.lock();
        if fetched.0 != launches {
            *fetched = (launches, 0);
        }
        fetched.1 += 1;
        fetched.1 <= MAX_SINGLE_SLOTS
    }
}

/// The column and row for a value that Ruby assigns.
struct Target<'a> {
    state: &'a Arc<State>,
    buffer: &'a Buffer,
    key: &'a Key,
    row: usize,
    bytes: [u8; 8],
}

/// An ivar of an object in a state: the index of its class, and its row there.
struct Found<'a> {
    written: bool,
    slot: &'a SlotPlan,
    class: usize,
    row: usize,
}

/// Where the current value of an object's ivar is.
enum Known {
    /// In the object. `plain`: it is a number or the like, from which no other object can be reached.
    There { plain: bool },
    /// In a row of a column of a state, or in the object if this row has no mark in the second column.
    In(Arc<State>, ColumnId, Option<ColumnId>, usize, Repr),
    /// Not known: everything must be written back.
    Unknown,
}

/// The open scope, where threads have no others.
fn only_scope() -> Option<Arc<Scope>> {
    let scopes = super::SCOPES.open.lock();
    let first = scopes.first()?;
    scopes.iter().all(|scope| Arc::ptr_eq(scope, first)).then(|| first.clone())
}

/// `Ikra.__resident_slot(object, ivar)`: called before a reader of an ivar, or of a Struct's member. Gives the value
/// for the reader, or nil where the object has it by now.
///
/// # Errors
/// As [`super::read`].
pub fn slot(ruby: &Ruby, object: Value, ivar: Symbol) -> Result<Option<Value>, Error> {
    super::before_ruby(ruby)?;
    let Some(scope) = only_scope() else {
        super::read(ruby)?;
        return Ok(None);
    };
    match scope.known(object.as_raw(), &ivar.name()?) {
        Known::There { plain } => {
            if !plain {
                // The value may be an Array, which the program may change.
                scope.inner.lock().touched = true;
            }
            Ok(None)
        }
        Known::In(state, column, marks, row, repr)
            if state.fetched.one_more(state.launches.load(Ordering::Relaxed)) =>
        {
            if let Some(marks) = marks
                && state.word(ruby, marks, row)? == Some(0)
            {
                return Ok(None);
            }
            match state.fetch(ruby, column, row, repr)? {
                Some(value) => Ok(Some(value)),
                None => super::read(ruby).map(|()| None),
            }
        }
        Known::In(..) | Known::Unknown => {
            super::read(ruby)?;
            Ok(None)
        }
    }
}

/// `Ikra.__resident_store(object, ivar, value)`: does what a writer of an ivar, or of a Struct's member, does. No
/// interrupt comes between its steps: it stores the value in columns and in the object. False where nothing was done.
/// Then everything must be written back, and all states are void, as before and after any method.
///
/// # Errors
/// `Device`, where the column cannot be fetched.
pub fn store(ruby: &Ruby, object: Value, ivar: Symbol, value: Value) -> Result<bool, Error> {
    super::before_ruby(ruby)?;
    let name = ivar.name()?;
    let Some(scope) = only_scope().filter(|_| !heap::is_frozen(object.as_raw())) else { return Ok(false) };
    let (plain, members) = (RObject::from_value(object), RStruct::from_value(object));
    if plain.is_none() && members.is_none() {
        return Ok(false);
    }
    let stored = scope.store(object.as_raw(), &name, heap::see(value.as_raw()));
    if !stored.map_err(|error| errors::core(ruby, error))? {
        return Ok(false);
    }
    match (plain, members) {
        (Some(object), _) => object.ivar_set(&*name, value)?,
        (None, Some(object)) if name.starts_with('@') => object.ivar_set(&*name, value)?,
        (None, Some(object)) => object.aset(ivar, value)?,
        (None, None) => {}
    }
    Ok(true)
}

impl Scope {
    fn store(&self, object: Raw, ivar: &str, value: Seen) -> ikra_core::error::Result<bool> {
        let (states, changes) = {
            let inner = self.inner.lock();
            (inner.states.clone(), inner.changes)
        };
        let newest = |key: &Key| self.inner.lock().versions.of(key);
        // Writes where the column is the newest. States with an older one take this over.
        let mut into: Option<Target<'_>> = None;
        for state in &states {
            let Some(Found { slot, class, row, .. }) = state.find(object, ivar) else { continue };
            let (Some(column), None, true) = (slot.value, slot.tag, state.seen == changes) else { return Ok(false) };
            let Some(Kind { buffer, key: Some(key) }) = &state.kept[column.index()] else { return Ok(false) };
            let Some(bytes) = bytes_of(value, slot.repr, buffer.storage()) else { return Ok(false) };
            let (version, lacking) = state.versions.lock().get(key).copied().unwrap_or_default();
            let writes = state.variant.lowered.program.columns[column.index()].written;
            // Writing back takes what objects lack from the state whose kernel wrote it.
            if version == newest(key) && (writes || !lacking) {
                let row = row + state.first_row(column, class);
                if into.as_ref().is_some_and(|other| other.key != key) {
                    return Ok(false);
                }
                into = Some(Target { state, buffer, key, row, bytes });
            }
        }
        let Some(Target { state, buffer, key, row, bytes }) = into else {
            // A kernel of the scope that reads the ivar would take over an older version. So nothing was done, unless
            // no kernel reads it.
            let looks = |state: &Arc<State>| {
                state.variant.plan.classes.iter().flat_map(|class| &class.fields).any(|field| field.name == ivar)
            };
            return Ok(!states.iter().any(looks));
        };
        let size = buffer.storage().bytes();
        buffer.write(row * size, &bytes[..size])?;
        let mut inner = self.inner.lock();
        let version = inner.versions.next(key);
        let lacking = state.versions.lock().get(key).is_some_and(|(_, lacking)| *lacking);
        state.versions.lock().insert(key.clone(), (version, lacking));
        let others = inner.states.iter().filter(|other| !Arc::ptr_eq(other, state) && other.has_group_of(state));
        others.for_each(|other| other.is_last.store(false, Ordering::Relaxed));
        Ok(true)
    }

    fn known(&self, object: Raw, ivar: &str) -> Known {
        let (states, changes) = {
            let inner = self.inner.lock();
            (inner.states.clone(), inner.changes)
        };
        let mut is_plain_there = false;
        // The newest version of a column in which values are rounded, and that does not tell which of them are new.
        let mut rounded = 0;
        let mut found: Option<(Key, u64, Known)> = None;
        for state in states.iter().filter(|state| state.ahead.load(Ordering::Relaxed)) {
            let Some(Found { written, slot, class, row }) = state.find(object, ivar) else { continue };
            let versions = state.versions.lock();
            let known = |column: Option<ColumnId>| {
                let key = state.kept[column?.index()].as_ref()?.key.as_ref()?;
                versions.get(key).map(|(version, lacking)| (key, *version, *lacking))
            };
            let of_value = known(slot.value);
            if known(slot.tag).is_some_and(|(_, _, lacking)| lacking) || state.seen != changes {
                return Known::Unknown;
            }
            let is_rounded = |column: ColumnId| {
                let kind = state.kept[column.index()].as_ref();
                slot.marks.is_none() && kind.is_some_and(|kind| kind.buffer.storage() == Storage::F32)
            };
            match (slot.value, of_value) {
                (Some(column), Some((_, version, true))) if is_rounded(column) => rounded = rounded.max(version),
                (Some(column), Some((key, version, true))) if is_plain(slot) => {
                    let row = row + state.first_row(column, class);
                    match &found {
                        Some((other, ..)) if other != key => return Known::Unknown,
                        Some((_, later, _)) if *later >= version => {}
                        _ => {
                            let known = Known::In(state.clone(), column, slot.marks, row, slot.repr);
                            found = Some((key.clone(), version, known));
                        }
                    }
                }
                (_, Some((_, _, false))) => is_plain_there |= is_plain(slot),
                (_, None) if !written => is_plain_there |= is_plain(slot),
                // No number, or a value that is always the same and has no column.
                _ => return Known::Unknown,
            }
        }
        match found {
            Some((_, version, known)) if version >= rounded => known,
            None if rounded == 0 => Known::There { plain: is_plain_there },
            _ => Known::Unknown,
        }
    }
}

/// A value as a column stores it. None where the column cannot hold it, or has another form for it.
fn bytes_of(value: Seen, repr: Repr, storage: Storage) -> Option<[u8; 8]> {
    Some(match (value, repr, storage) {
        (Seen::Int(i), Repr::Int, Storage::I64) => i.to_le_bytes(),
        (Seen::Float(f), Repr::Float, Storage::F64) => f.to_bits().to_le_bytes(),
        (Seen::Float(f), Repr::Float, Storage::F32) if f64::from(f as f32).to_bits() == f.to_bits() => {
            u64::from((f as f32).to_bits()).to_le_bytes()
        }
        (Seen::True, Repr::Bool, Storage::U8) => [1; 8],
        (Seen::False, Repr::Bool, Storage::U8) => [0; 8],
        _ => return None,
    })
}

impl State {
    fn find(&self, object: Raw, ivar: &str) -> Option<Found<'_>> {
        let (class, row) = self.tables.row(object)?;
        let field = self.variant.plan.classes[class].fields.iter().find(|field| field.name == ivar)?;
        Some(Found { written: field.written, slot: &field.slot, class, row })
    }

    /// The first row of a class in a column.
    fn first_row(&self, column: ColumnId, class: usize) -> usize {
        let Variant { plan, lowered, .. } = &*self.variant;
        self.tables.first_row(plan, lowered.program.columns[column.index()].space, class)
    }

    /// One row of a column as a Ruby value. None where an object for it does not exist yet.
    fn fetch(&self, ruby: &Ruby, column: ColumnId, row: usize, repr: Repr) -> Result<Option<Value>, Error> {
        let Some(payload) = self.word(ruby, column, row)? else { return Ok(None) };
        let decoder = Decoder { plan: &self.variant.plan, tables: &self.tables, columns: &[] };
        let decoded = decoder.decode(repr, None, 0, payload).map_err(|b| errors::internal(ruby, b.0))?;
        Ok(match decoded {
            Decoded::Float(f) => Some(ruby.float_from_f64(f).as_value()),
            Decoded::Int(i) => Some(ruby.integer_from_i64(i).as_value()),
            Decoded::Value(raw) => Some(reflect::value(raw)),
            _ => None,
        })
    }

    /// One row of a column, if the state keeps the column.
    fn word(&self, ruby: &Ruby, column: ColumnId, row: usize) -> Result<Option<u64>, Error> {
        let Some(kind) = &self.kept[column.index()] else { return Ok(None) };
        let storage = kind.buffer.storage();
        let mut bytes = [0u8; 8];
        let size = storage.bytes();
        let read = gvl::released(|| kind.buffer.read(row * size, &mut bytes[..size]));
        read.map_err(|error| errors::core(ruby, error))?;
        Ok(Some(match storage {
            Storage::I32 => i64::from(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])) as u64,
            Storage::F32 => f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).to_bits(),
            _ => u64::from_le_bytes(bytes),
        }))
    }
}
