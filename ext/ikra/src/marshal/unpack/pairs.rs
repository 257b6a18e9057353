//! The pairs that the block of a `map_reduce` emitted.
//!
//! Here: [`Pairs`], which reads them from the columns. In a kernel, the pairs of an element are a chain of new objects
//! (`Ikra::Pair`), whose last one is the element's result. No Ruby object is made of a pair. Not here: grouping
//! (`section/grouping.rs`).
//! Invariant: pairs come in the order in which sequential Ruby would have emitted them.

use super::Unpacker;
use crate::marshal::decode::Broken;
use crate::marshal::made::{self, BATCH};
use crate::marshal::plan::SlotPlan;
use crate::ruby::dtype::Dtype;
use crate::ruby::heap;
use crate::ruby::workers::{self, PIECE};
use ikra_core::ir::ColumnId;
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::room;
use ikra_core::types::{Repr, Storage, StrWord, Tag, Unit};
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray};

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
    /// The bytes of Strings. Where the kernel reads none, those of its literals.
    pub fn bytes(&self) -> &[u8] {
        let Unpacker { schema, plan, columns, .. } = self;
        schema.bytes.map_or(&plan.literals[..], |column| columns[column.index()].view())
    }

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
        let columns = [key, value, previous].map(|field| {
            let start = self.start(class, &field.slot);
            field.slot.value.map(|column| self.columns[column.index()].len() - start)
        });
        let all = columns.into_iter().flatten().min().unwrap_or(u32::MAX as usize) as u64;
        let last = self.links(slot, class, 0, all).ok_or_else(|| self.broken("a last pair in no known form"))?;
        let before = self.links(&previous.slot, class, self.start(class, &previous.slot), all);
        let before = before.ok_or_else(|| self.broken("a pair before in no known form"))?;
        let read = workers::map(len, (0..len).step_by(PIECE).collect(), |first: usize| {
            // most elements emit one pair
            let mut rows: Vec<u32> = room::with_capacity(PIECE.min(len - first));
            for element in first..len.min(first + PIECE) {
                let first = rows.len();
                let mut next = last.at(element)?;
                while let Some(row) = next {
                    room::push(&mut rows, row);
                    next = before.at(row as usize)?;
                }
                rows[first..].reverse();
            }
            Ok(rows)
        });
        self.polls.look_now(self.ruby)?;
        let read: Vec<Vec<u32>> = room::collect_results(read).map_err(|broken: Broken| self.broken(broken.0))?;
        let mut rows = room::filled(0, read.iter().map(Vec::len).sum());
        let (mut rest, mut pieces) = (&mut rows[..], room::with_capacity(read.len()));
        for piece in &read {
            let (own, others) = rest.split_at_mut(piece.len());
            pieces.push((own, piece));
            rest = others;
        }
        workers::map(len, pieces, |(own, piece): (&mut [u32], &Vec<u32>)| own.copy_from_slice(piece));
        let mut pairs = Pairs { unpacker: self, key: &key.slot, value: &value.slot, class, rows };
        if let Some(tick) = field("@tick") {
            pairs.order(&tick.slot).ok_or_else(|| self.broken("a tick that is no number"))?;
        }
        Ok(Some(pairs))
    }

    /// The results of all elements as the keys of pairs, which have no other value.
    pub fn results_as_keys<'a>(&'a self, slot: &'a SlotPlan, len: usize) -> Pairs<'a> {
        Pairs { unpacker: self, key: slot, value: slot, class: 0, rows: room::collect(0..len as u32) }
    }

    /// A slot of references to the pairs that the kernel made, of which there are at most `rows`. None where it may
    /// hold others.
    fn links(&self, slot: &SlotPlan, class: usize, start: usize, rows: u64) -> Option<Links<'_>> {
        let column = |column: ColumnId| &self.columns[column.index()];
        let tags = match (slot.tag.map(column), slot.repr) {
            (Some(tags), _) if tags.storage() == Storage::U8 => Some(tags.view::<u8>()),
            (None, Repr::Ref(_) | Repr::Unit(Unit::Nil)) => None,
            _ => return None,
        };
        let ids = match slot.value.map(column) {
            None => Ids::None,
            Some(ids) if ids.storage() == Storage::U32 => Ids::Narrow(ids.view()),
            Some(ids) => Ids::Wide(ids.view()),
        };
        let made = self.tables.classes[class].objects.is_empty();
        made.then(|| Links { ids, tags, start, base: u64::from(self.tables.bases[class]), rows })
    }
}

/// A column of references to pairs.
struct Links<'a> {
    ids: Ids<'a>,
    /// None where none is nil.
    tags: Option<&'a [u8]>,
    /// The first row of the class in the column.
    start: usize,
    /// The id of its first row, and the number of rows.
    base: u64,
    rows: u64,
}

enum Ids<'a> {
    /// All are nil.
    None,
    Narrow(&'a [u32]),
    Wide(&'a [u64]),
}

impl Links<'_> {
    /// The pair that a row refers to.
    fn at(&self, row: usize) -> Result<Option<u32>, Broken> {
        let row = self.start + row;
        if self.tags.is_some_and(|tags| i32::from(tags[row]) < Tag::OBJECT) {
            return Ok(None);
        }
        let id = match self.ids {
            Ids::None => return Ok(None),
            Ids::Narrow(ids) => u64::from(ids[row]),
            Ids::Wide(ids) => ids[row],
        };
        match id.checked_sub(self.base).filter(|row| *row < self.rows) {
            Some(row) => Ok(Some(row as u32)),
            None => Err(Broken("a pair that is none")),
        }
    }
}

/// What keys are compared by. Words and numbers are those of rows.
pub enum KeyWords<'a> {
    Integers(&'a [u64]),
    /// Symbols.
    Words(&'a [u64]),
    Floats(&'a [u64]),
    /// Strings, and the bytes that they are parts of.
    Texts(&'a [u64], &'a [u8]),
    /// Strings of the program whose bytes no kernel has: the number of each pair's, and all of them.
    Strings(Vec<u32>, &'a [heap::Raw]),
}

impl Pairs<'_> {
    /// What keys are compared by. None where that is not known of them.
    pub fn key_words(&self) -> Option<KeyWords<'_>> {
        let words = self.column(self.key)?;
        Some(match self.repr(self.key) {
            Repr::Int => KeyWords::Integers(words),
            Repr::Sym => KeyWords::Words(words),
            Repr::Float => KeyWords::Floats(words),
            Repr::Str if self.unpacker.schema.bytes.is_some() => KeyWords::Texts(words, self.bytes()),
            Repr::Str => {
                let literals = self.bytes().len();
                let is_literal = |row: &u32| (StrWord(words[*row as usize]).offset() as usize) < literals;
                if self.rows.iter().all(is_literal) {
                    return Some(KeyWords::Texts(words, self.bytes()));
                }
                KeyWords::Strings(self.strings(words)?, &self.unpacker.tables.strings.strings)
            }
            _ => return None,
        })
    }

    /// The number of each pair's String. None where a kernel made one, or the program's text has it.
    fn strings(&self, words: &[u64]) -> Option<Vec<u32>> {
        let known = &self.unpacker.tables.strings;
        let mut numbers = room::filled(0, self.rows.len());
        let pieces = numbers.chunks_mut(PIECE).zip(self.rows.chunks(PIECE)).collect();
        let found = workers::map(self.rows.len(), pieces, |(numbers, rows): (&mut [u32], &[u32])| {
            // Strings mostly follow each other.
            let mut next = 0;
            for (number, row) in numbers.iter_mut().zip(rows) {
                let word = StrWord(words[*row as usize]);
                let follows = known.words.get(next).is_some_and(|known| known.offset() == word.offset());
                match if follows { Some(next) } else { known.find(word.offset()) } {
                    Some(at) if !word.is_made() => (*number, next) = (at as u32, at + 1),
                    _ => return false,
                }
            }
            true
        });
        found.into_iter().all(|found| found).then_some(numbers)
    }

    /// The values, where all are Integers.
    pub fn integers(&self, slot: &SlotPlan) -> Option<&[u64]> {
        if self.repr(slot) == Repr::Int { self.column(slot) } else { None }
    }

    /// The same for Floats.
    pub fn floats(&self, slot: &SlotPlan) -> Option<&[u64]> {
        if self.repr(slot) == Repr::Float { self.column(slot) } else { None }
    }

    /// What a slot holds in all pairs. Where several kinds of values may be there, only one may have been stored.
    fn repr(&self, slot: &SlotPlan) -> Repr {
        let tags = slot.tag.filter(|_| slot.repr == Repr::Union).map(|tags| &self.unpacker.columns[tags.index()]);
        let Some(tags) = tags.filter(|tags| tags.storage() == Storage::U8) else { return slot.repr };
        let (tags, start) = (tags.view::<u8>(), self.unpacker.start(self.class, slot));
        let tag = |row: &u32| tags[start + *row as usize];
        let Some(first) = self.rows.first().map(tag) else { return slot.repr };
        let all = |rows: &[u32]| rows.iter().all(|row| tag(row) == first);
        if !workers::map(self.rows.len(), self.rows.chunks(PIECE).collect(), all).into_iter().all(|all| all) {
            return slot.repr;
        }
        match i32::from(first) {
            Tag::INT => Repr::Int,
            Tag::FLOAT => Repr::Float,
            Tag::SYM => Repr::Sym,
            Tag::STR => Repr::Str,
            _ => slot.repr,
        }
    }

    /// The rows of a slot, if they have 64 bits.
    fn column(&self, slot: &SlotPlan) -> Option<&[u64]> {
        // Floats of a column may have 32 bits.
        let column =
            Some(&self.unpacker.columns[slot.value?.index()]).filter(|column| column.storage().bytes() == 8)?;
        column.view::<u64>().get(self.unpacker.start(self.class, slot)..)
    }

    /// Whether a slot holds only numbers of one kind, as [`Pairs::numbers`] gives them.
    pub fn are_numbers(&self, slot: &SlotPlan) -> bool {
        matches!(slot.repr, Repr::Int | Repr::Float) && self.column(slot).is_some()
    }

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

    /// Orders the pairs by their ticks. They are in the order of elements before.
    fn order(&mut self, tick: &SlotPlan) -> Option<()> {
        let mut ticks = room::filled(0, self.rows.len());
        self.read(tick, &self.rows, &mut ticks)?;
        if ticks.iter().any(|tick| *tick != ticks[0]) {
            let mut order: Vec<(u64, u32)> = room::collect(ticks.into_iter().zip(std::mem::take(&mut self.rows)));
            order.sort_by_key(|(tick, _)| *tick);
            self.rows = room::collect(order.into_iter().map(|(_, row)| row));
        }
        Some(())
    }

    fn read(&self, slot: &SlotPlan, rows: &[u32], out: &mut [u64]) -> Option<()> {
        let from = self.column(slot)?;
        let pieces = out.chunks_mut(PIECE).zip(rows.chunks(PIECE)).collect();
        workers::map(rows.len(), pieces, |(out, rows): (&mut [u64], &[u32])| {
            out.iter_mut().zip(rows).for_each(|(out, row)| *out = from[*row as usize]);
        });
        Some(())
    }

    /// The bytes of Strings. Where the kernel reads none, those of its literals.
    pub fn bytes(&self) -> &[u8] {
        self.unpacker.bytes()
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
