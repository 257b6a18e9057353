//! The pairs that the block of a `map_reduce` emitted.
//!
//! Here: [`Pairs`], which reads them from the columns. In a kernel, the pairs of an element are a chain of new objects
//! (`Ikra::Pair`), whose last one is the element's result. No Ruby object is made of a pair. Not here: grouping
//! (`section/grouping.rs`).
//! Invariant: pairs come in the order in which sequential Ruby would have emitted them.

use super::Unpacker;
use crate::marshal::decode::Decoded;
use crate::marshal::made::{self, BATCH};
use crate::marshal::plan::SlotPlan;
use crate::ruby::dtype::Dtype;
use crate::ruby::heap;
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::room;
use ikra_core::types::{Encoding, Repr, StrWord};
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray};

/// How many elements are read between two looks at interrupts.
const STRETCH: usize = 1 << 14;

/// The pairs of all elements.
pub struct Pairs<'a> {
    unpacker: &'a Unpacker<'a>,
    /// Where their keys are, and their values.
    pub key: &'a SlotPlan,
    pub value: &'a SlotPlan,
    class: usize,
    /// Their rows, in the order in which the pairs were emitted.
    pub rows: Vec<u32>,
}

impl Unpacker<'_> {
    /// The pairs of all elements, of which `slot` holds the last ones. None where the program emits none.
    ///
    /// # Errors
    /// Rows that mean nothing, and what interrupts raise.
    pub fn pairs(&self, slot: &SlotPlan, len: usize) -> Result<Option<Pairs<'_>>, Error> {
        let Some(class) = slot.sole_class else { return Ok(None) };
        let field = |name| self.plan.classes[class].fields.iter().find(|field| field.name == name);
        let (Some(key), Some(value), Some(previous)) = (field("@key"), field("@value"), field("@previous")) else {
            return Err(self.broken("a pair without its parts"));
        };
        let before = self.start(class, &previous.slot);
        let mut rows: Vec<u32> = Vec::new();
        for element in 0..len {
            if element % STRETCH == 0 {
                self.polls.look_now(self.ruby)?;
            }
            let first = rows.len();
            let mut next = self.row(slot, element)?;
            while let Decoded::Object(of, row) = next {
                if of != class || u32::try_from(row).is_err() {
                    return Err(self.broken("a pair of another class"));
                }
                room::push(&mut rows, row as u32);
                next = self.row(&previous.slot, before + row)?;
            }
            if next != Decoded::Value(heap::NIL) {
                return Err(self.broken("a pair that no kernel made"));
            }
            rows[first..].reverse();
        }
        Ok(Some(Pairs { unpacker: self, key: &key.slot, value: &value.slot, class, rows }))
    }
}

impl Pairs<'_> {
    /// What a slot holds in these rows of pairs, where all are numbers of one kind.
    pub fn numbers(&self, slot: &SlotPlan, rows: &[u32]) -> Option<(Dtype, HostColumn)> {
        let dtype = match slot.repr {
            Repr::Int => Dtype::I64,
            Repr::Float => Dtype::F64,
            _ => return None,
        };
        let mut column = HostColumn::zeroed(dtype.storage(), rows.len());
        self.read(slot, rows, column.view_mut::<u64>())?;
        Some((dtype, column))
    }

    /// The keys, where all are Strings in UTF-8 whose bytes were copied. Such Strings are `eql?` if their bytes are equal.
    pub fn words(&self) -> Option<Vec<StrWord>> {
        if self.key.repr != Repr::Str {
            return None;
        }
        let mut words = room::filled(0, self.rows.len());
        self.read(self.key, &self.rows, &mut words)?;
        let words: Vec<StrWord> = room::collect(words.into_iter().map(StrWord));
        let end = self.bytes().len();
        let known = |word: &StrWord| {
            let utf8 = matches!(word.encoding(), Encoding::Utf8 | Encoding::Ascii);
            utf8 && word.offset() as usize + word.length() <= end
        };
        words.iter().all(known).then_some(words)
    }

    fn read(&self, slot: &SlotPlan, rows: &[u32], out: &mut [u64]) -> Option<()> {
        let from = self.unpacker.columns[slot.value?.index()].view::<u64>();
        let start = self.unpacker.start(self.class, slot);
        out.iter_mut().zip(rows).for_each(|(out, row)| *out = from[start + *row as usize]);
        Some(())
    }

    /// The bytes of Strings. Where the kernel reads none, those of its literals.
    pub fn bytes(&self) -> &[u8] {
        let Unpacker { schema, plan, columns, .. } = self.unpacker;
        schema.bytes.map_or(&plan.literals[..], |column| columns[column.index()].view())
    }

    /// What a slot holds in these rows of pairs, as Ruby's values.
    ///
    /// # Errors
    /// Rows that mean nothing; NoMemoryError; what interrupts raise.
    pub fn values(&self, slot: &SlotPlan, rows: &[u32]) -> Result<RArray, Error> {
        let Unpacker { ruby, polls, .. } = self.unpacker;
        let start = self.unpacker.start(self.class, slot);
        let array = ruby.ary_new_capa(rows.len());
        let mut values = [heap::UNDEF; BATCH];
        for (batch, rows) in rows.chunks(BATCH).enumerate() {
            polls.look_now(ruby)?;
            let mut at = [0; BATCH];
            at.iter_mut().zip(rows).for_each(|(at, row)| *at = start + *row as usize);
            let mut places = [0; BATCH];
            places.iter_mut().zip(batch * BATCH..).for_each(|(place, index)| *place = index);
            let values = &mut values[..rows.len()];
            self.unpacker.values(slot, &at[..rows.len()], values)?;
            made::store(array.as_raw(), &places[..rows.len()], values)?;
            self.unpacker.fill_new()?;
        }
        Ok(array)
    }
}
