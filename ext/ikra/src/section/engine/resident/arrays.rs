//! Detects whether Arrays changed. Nothing notices a write to an Array.
//!
//! Here: [`Arrays`], which compares Arrays with what was packed of them. Of the list that a block runs over, not all is
//! packed. So it is compared with a copy, whose elements Ruby shares with the list until one of the two is written:
//! then the address of the elements changes. Not here: when Arrays are compared ([`super`]).

use crate::marshal::decode::{Decoded, Decoder, same};
use crate::marshal::plan::SlotPlan;
use crate::marshal::trace::{KindRows, Tables};
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::holder::LazyHolder;
use crate::ruby::reflect;
use crate::ruby::workers::{self, GROUP, Lists};
use ikra_core::types::{Repr, Storage};
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, Ruby, Value};
use once_cell::sync::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct Arrays {
    base: Option<Copied>,
    kinds: Vec<Kind>,
}

/// All arrays of a kind.
struct Kind {
    pieces: Arc<[Lists]>,
    /// What was packed of each piece, as Ruby's values, decoded at the first comparison. A value that only an object
    /// can hold is [`heap::UNDEF`]. None where the bits mean nothing.
    packed: Box<[OnceCell<Option<Vec<Raw>>>]>,
}

struct Copied {
    array: Raw,
    copy: Raw,
    /// The address of the copy's elements. The list has the same while both share them.
    elements: usize,
    len: usize,
}

impl Arrays {
    /// The arrays of the tables, and the list that a block runs over. All are alive for as long as these are, and so is
    /// what `holder` has.
    ///
    /// # Errors
    /// NoMemoryError.
    pub fn now(ruby: &Ruby, holder: &LazyHolder, base: Option<Raw>, tables: &Tables) -> Result<Self, Error> {
        let base = base.map(|base| Copied::now(ruby, holder, base)).transpose()?;
        let kind = |rows: &KindRows| {
            let pieces = rows.pieces();
            Kind { packed: pieces.iter().map(|_| OnceCell::new()).collect(), pieces }
        };
        Ok(Self { base, kinds: tables.kinds.iter().map(kind).collect() })
    }

    /// Whether no Array changed since it was packed.
    pub fn hold(&self, packed: &Decoder<'_>) -> bool {
        if !self.base.iter().all(Copied::holds) {
            return false;
        }
        let changed = AtomicBool::new(false);
        for ((kind, rows), own) in packed.plan.kinds.iter().zip(&packed.tables.kinds).zip(&self.kinds) {
            workers::map(rows.rows as usize, own.pieces.iter().zip(&own.packed).collect(), |(lists, known)| {
                if !changed.load(Ordering::Relaxed) && !holds(packed, kind.slot.as_ref(), rows, lists, known) {
                    changed.store(true, Ordering::Relaxed);
                }
            });
        }
        !changed.into_inner()
    }
}

/// Whether some arrays of a kind still hold what was packed of them.
fn holds(
    packed: &Decoder<'_>,
    slot: Option<&SlotPlan>,
    rows: &KindRows,
    lists: &Lists,
    known: &OnceCell<Option<Vec<Raw>>>,
) -> bool {
    let first = rows.start(lists.first());
    let decode = || {
        // Without a slot the program reads only lengths.
        let Some(slot) = slot else { return Some(Vec::new()) };
        let mut values = vec![heap::NIL; rows.rows_of(lists)];
        packed.rows(slot, first, &mut values).is_ok().then_some(values)
    };
    let Some(values) = known.get_or_init(decode) else { return false };
    // Compares a part of an array, from some element on.
    let is_same = |array: Raw, list: usize, from: usize, len: usize| {
        let elements = heap::elements(array);
        if elements.len() != rows.lengths[list] as usize || !heap::is_of_array(array) {
            return false;
        }
        let Some(slot) = slot else { return true };
        let start = rows.offsets[list] as usize + from;
        let column = slot.value.map(|column| &packed.columns[column.index()]);
        let rounds = slot.repr == Repr::Float && column.is_some_and(|column| column.storage() == Storage::F32);
        let (now, then) = (&elements[from..from + len], &values[start - first..][..len]);
        let of_each = |(i, (now, then)): (usize, (&Raw, &Raw))| {
            // The column may have rounded the Float.
            let now = match heap::see(*now) {
                Seen::Float(f) if rounds => {
                    return packed.row(slot, start + i).is_ok_and(|then| is_float(then, f as f32));
                }
                _ => *now,
            };
            now == *then || packed.row(slot, start + i).is_ok_and(|then| same(now, then))
        };
        now == then || now.iter().zip(then).enumerate().all(of_each)
    };
    match lists {
        Lists::Whole(all) => {
            rows.arrays[all.clone()].chunks(GROUP).zip(all.clone().step_by(GROUP)).all(|(some, list)| {
                heap::prefetch_all(some.iter().copied());
                some.iter().zip(list..).all(|(array, list)| is_same(*array, list, 0, rows.lengths[list] as usize))
            })
        }
        _ => lists.spans(&rows.lengths).all(|span| is_same(rows.arrays[span.list], span.list, span.from, span.len)),
    }
}

/// Whether a row holds this Float.
fn is_float(decoded: Decoded, float: f32) -> bool {
    let held = match decoded {
        Decoded::Float(f) => f,
        Decoded::Value(raw) => match heap::see(raw) {
            Seen::Float(f) => f,
            _ => return false,
        },
        _ => return false,
    };
    held.to_bits() == f64::from(float).to_bits()
}

impl Copied {
    fn now(ruby: &Ruby, holder: &LazyHolder, array: Raw) -> Result<Self, Error> {
        let copy: Value = RArray::from_value(reflect::value(array)).expect("an array").as_value().funcall("dup", ())?;
        holder.add(ruby, copy.as_raw());
        let elements = heap::elements(copy.as_raw());
        Ok(Self { array, copy: copy.as_raw(), elements: elements.as_ptr() as usize, len: elements.len() })
    }
    fn holds(&self) -> bool {
        let now = heap::elements(self.array);
        now.len() == self.len && (now.as_ptr() as usize == self.elements || now == heap::elements(self.copy))
    }
}
