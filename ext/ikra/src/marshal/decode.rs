//! Reads columns as Ruby's values.
//!
//! Here: [`Decoder`], which reads rows of columns and creates no object. Where a value needs an object that does not
//! exist yet, the decoder says which. So workers may read ([`crate::ruby::workers`]). Not here: creating those objects,
//! and assigning values ([`crate::marshal::unpack`]).

use crate::marshal::held_procs;
use crate::marshal::plan::{Plan, SlotPlan};
use crate::marshal::trace::Tables;
use crate::ruby::heap::{self, AHEAD, Raw, Seen};
use crate::ruby::registry::{classes, symbols};
use ikra_core::id::{ArrayKind, ClassId, ProcId};
use ikra_core::ir::{ColumnId, Storage};
use ikra_core::memory::ahead;
use ikra_core::memory::column::HostColumn;
use ikra_core::types::{Repr, StrWord, Tag, Unit};
use smallvec::SmallVec;

/// What a column or trap holds, before it is a Ruby value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decoded {
    /// A VALUE that exists already, or needs no object.
    Value(Raw),
    /// A Float that only an object can hold.
    Float(f64),
    /// An Integer that only a Bignum can hold.
    Int(i64),
    /// A symbol that the table does not have.
    Symbol(i64),
    /// A String that has yet to be created.
    Str(StrWord),
    /// Class index and row of an object that the kernel made.
    Object(usize, usize),
    /// Kind index, offset and length of an array that the kernel made.
    Array(usize, u32, u32),
}

/// Bits that no kernel should give back.
#[derive(Clone, Copy, Debug)]
pub struct Broken(pub &'static str);

/// Reads columns of one launch.
#[derive(Clone, Copy)]
pub struct Decoder<'a> {
    pub plan: &'a Plan,
    pub tables: &'a Tables,
    pub columns: &'a [HostColumn],
}

impl Decoder<'_> {
    fn word(&self, column: ColumnId, row: usize) -> u64 {
        let column = &self.columns[column.index()];
        match column.storage() {
            Storage::U8 => u64::from(column.view::<u8>()[row]),
            Storage::U32 => u64::from(column.view::<u32>()[row]),
            Storage::I32 => i64::from(column.view::<i32>()[row]) as u64,
            Storage::F32 => f64::from(column.view::<f32>()[row]).to_bits(),
            _ => column.view::<u64>()[row],
        }
    }

    /// What a register or slot holds.
    ///
    /// # Errors
    /// Bits that mean nothing.
    #[inline]
    pub fn decode(&self, repr: Repr, kind: Option<usize>, tag: i32, payload: u64) -> Result<Decoded, Broken> {
        Ok(Decoded::Value(match repr {
            Repr::Unit(Unit::Nil) => heap::NIL,
            Repr::Unit(Unit::True) => heap::TRUE,
            Repr::Unit(Unit::False) => heap::FALSE,
            Repr::Unit(Unit::Module(class)) => classes::get(class).raw,
            Repr::Unit(Unit::Proc(id)) => match id.held_number() {
                Some(number) => held_procs::get(number),
                None => return Err(Broken("a block that the program wrote as a value")),
            },
            Repr::Unit(Unit::Never) => return Err(Broken("a value where none can be")),
            Repr::Bool if payload & 1 == 1 => heap::TRUE,
            Repr::Bool => heap::FALSE,
            Repr::Int => match heap::fixnum_of(payload as i64) {
                Some(raw) => raw,
                None => return Ok(Decoded::Int(payload as i64)),
            },
            Repr::Float => match heap::flonum_of(f64::from_bits(payload)) {
                Some(raw) => raw,
                None => return Ok(Decoded::Float(f64::from_bits(payload))),
            },
            Repr::Sym => match symbols::symbol(payload as i64) {
                Some(raw) => raw,
                None => return Ok(Decoded::Symbol(payload as i64)),
            },
            Repr::Str => {
                let word = StrWord(payload);
                if word.is_made() || (word.offset() as usize) < self.plan.literals.len() {
                    return Ok(Decoded::Str(word));
                }
                self.tables.string(word.offset()).ok_or(Broken("an offset where no String begins"))?
            }
            Repr::Ref(hierarchy) => {
                let place = self.tables.place(self.plan, hierarchy as usize, payload as u32);
                let (class, row) = place.ok_or(Broken("an id that no object has"))?;
                match self.tables.classes[class].objects.get(row) {
                    Some(object) => *object,
                    None => return Ok(Decoded::Object(class, row)),
                }
            }
            Repr::Array(_) => {
                let kind = kind.ok_or(Broken("an array of no kind"))?;
                let (offset, len) = ((payload >> 32) as u32, payload as u32);
                match self.tables.array(kind, offset) {
                    Some(array) => array,
                    None => return Ok(Decoded::Array(kind, offset, len)),
                }
            }
            Repr::Union => {
                let repr = match tag {
                    Tag::NIL => Repr::Unit(Unit::Nil),
                    Tag::FALSE => Repr::Unit(Unit::False),
                    Tag::TRUE => Repr::Unit(Unit::True),
                    Tag::INT => Repr::Int,
                    Tag::FLOAT => Repr::Float,
                    Tag::SYM => Repr::Sym,
                    Tag::STR => Repr::Str,
                    Tag::PROC => Repr::Unit(Unit::Proc(ProcId(payload as u32))),
                    Tag::MODULE => Repr::Unit(Unit::Module(ClassId(payload as u32))),
                    Tag::ARRAY => Repr::Array(ArrayKind(0)),
                    object if object >= Tag::OBJECT => Repr::Ref((object - Tag::OBJECT) as u32),
                    _ => return Err(Broken("an unknown tag")),
                };
                return self.decode(repr, kind, 0, payload);
            }
        }))
    }

    /// The value of one row of a slot.
    ///
    /// # Errors
    /// Bits that mean nothing.
    #[inline]
    pub fn row(&self, slot: &SlotPlan, row: usize) -> Result<Decoded, Broken> {
        let payload = slot.value.map_or(0, |column| self.word(column, row));
        let tag = slot.tag.map_or(0, |column| self.word(column, row) as i32);
        self.decode(slot.repr, slot.kind, tag, payload)
    }

    /// The values of rows from `first` on. Those for which an object must be created are [`heap::UNDEF`].
    ///
    /// # Errors
    /// Bits that mean nothing.
    pub fn rows<'b>(&self, slot: &SlotPlan, first: usize, out: &'b mut [Raw]) -> Result<&'b [Raw], Broken> {
        match (slot.repr, slot.value.map(|column| &self.columns[column.index()])) {
            (Repr::Int, Some(column)) => {
                for (out, i) in out.iter_mut().zip(&column.view::<i64>()[first..]) {
                    *out = heap::fixnum_of(*i).unwrap_or(heap::UNDEF);
                }
            }
            (Repr::Float, Some(column)) if column.storage() == Storage::F32 => {
                for (out, f) in out.iter_mut().zip(&column.view::<f32>()[first..]) {
                    *out = heap::flonum_of(f64::from(*f)).unwrap_or(heap::UNDEF);
                }
            }
            (Repr::Float, Some(column)) => {
                for (out, f) in out.iter_mut().zip(&column.view::<f64>()[first..]) {
                    *out = heap::flonum_of(*f).unwrap_or(heap::UNDEF);
                }
            }
            (Repr::Ref(hierarchy), Some(column)) => {
                self.objects(hierarchy, &column.view::<u32>()[first..], out)?;
            }
            (Repr::Union, Some(column)) if column.storage() == Storage::U32 && slot.tag.is_some() => {
                self.objects_or_words(slot, first, out)?;
            }
            (Repr::Array(_), Some(column)) => {
                let rows = &self.tables.kinds[slot.kind.ok_or(Broken("an array of no kind"))?];
                // Arrays mostly follow each other.
                let mut next = 0;
                for (out, word) in out.iter_mut().zip(&column.view::<u64>()[first..]) {
                    let offset = (word >> 32) as u32;
                    let follows = rows.offsets.get(next) == Some(&offset);
                    let at = if follows { Some(next) } else { rows.offsets.binary_search(&offset).ok() };
                    next = at.map_or(next, |at| at + 1);
                    *out = at.map_or(heap::UNDEF, |at| rows.arrays[at]);
                }
            }
            (Repr::Str, Some(column)) => {
                let known = &self.tables.strings;
                // Strings mostly follow each other, too.
                let mut next = 0;
                for (out, word) in out.iter_mut().zip(&column.view::<u64>()[first..]) {
                    let offset = StrWord(*word).offset();
                    if StrWord(*word).is_made() || (offset as usize) < self.plan.literals.len() {
                        *out = heap::UNDEF;
                        continue;
                    }
                    let follows = known.words.get(next).is_some_and(|known| known.offset() == offset);
                    let at = if follows { Some(next) } else { known.find(offset) };
                    let at = at.ok_or(Broken("an offset where no String begins"))?;
                    (*out, next) = (known.strings[at], at + 1);
                }
            }
            _ => {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = match self.row(slot, first + i)? {
                        Decoded::Value(raw) => raw,
                        _ => heap::UNDEF,
                    };
                }
            }
        }
        Ok(out)
    }

    /// Which rows from `first` on the program may have stored.
    pub fn stored(&self, slot: &SlotPlan, first: usize) -> impl Fn(usize) -> bool + use<'_> {
        let marks = slot.marks.map(|column| &self.columns[column.index()].view::<u8>()[first..]);
        move |at| marks.is_none_or(|marks| marks[at] != 0)
    }

    /// The values of rows from `first` on. Each is an object, nil, true or false.
    fn objects_or_words(&self, slot: &SlotPlan, first: usize, out: &mut [Raw]) -> Result<(), Broken> {
        let column = |column: Option<ColumnId>| column.map(|column| &self.columns[column.index()]);
        let (Some(ids), Some(tags)) = (column(slot.value), column(slot.tag)) else {
            return Err(Broken("a union without columns"));
        };
        let (ids, tags) = (&ids.view::<u32>()[first..], &tags.view::<u8>()[first..]);
        if let Some(tag) = slot.sole_tag(self.plan)
            && tags[..out.len()].iter().all(|other| *other == tag)
        {
            return self.objects(u32::from(tag) - Tag::OBJECT as u32, ids, out);
        }
        // Positions and ids of consecutive objects of one hierarchy.
        let (mut at, mut some) = (SmallVec::<[usize; 2 * AHEAD]>::new(), SmallVec::<[u32; 2 * AHEAD]>::new());
        let mut last = 0;
        let find = |hierarchy: i32, at: &mut SmallVec<_>, some: &mut SmallVec<_>, out: &mut [Raw]| {
            let mut found = SmallVec::<[Raw; 2 * AHEAD]>::from_elem(heap::UNDEF, some.len());
            self.objects(hierarchy as u32, some, &mut found)?;
            at.drain(..).zip(&found).for_each(|(at, object): (usize, &Raw)| out[at] = *object);
            some.clear();
            Ok(())
        };
        for (i, (tag, id)) in tags.iter().zip(ids).enumerate().take(out.len()) {
            let tag = i32::from(*tag);
            if tag < Tag::OBJECT {
                out[i] = match self.decode(Repr::Union, slot.kind, tag, u64::from(*id))? {
                    Decoded::Value(raw) => raw,
                    _ => heap::UNDEF,
                };
                continue;
            }
            if last != tag - Tag::OBJECT || some.len() == 2 * AHEAD {
                find(last, &mut at, &mut some, out)?;
                last = tag - Tag::OBJECT;
            }
            at.push(i);
            some.push(*id);
        }
        find(last, &mut at, &mut some, out)
    }

    /// The objects of rows from `first` on. Those that the kernel made are [`heap::UNDEF`]. The objects may stand
    /// anywhere in the tables, so each is prefetched.
    fn objects(&self, hierarchy: u32, ids: &[u32], out: &mut [Raw]) -> Result<(), Broken> {
        const NONE: &Raw = &heap::UNDEF;
        // The last class and its first id: the next object is often of the same class.
        let (mut base, mut last): (u32, &[Raw]) = (0, &[]);
        for (ids, out) in ids.chunks(AHEAD).zip(out.chunks_mut(AHEAD)) {
            let mut slots = [NONE; AHEAD];
            for (slot, id) in slots.iter_mut().zip(ids) {
                *slot = match last.get(id.wrapping_sub(base) as usize) {
                    Some(object) => object,
                    None => {
                        let place = self.tables.place(self.plan, hierarchy as usize, *id);
                        let (class, row) = place.ok_or(Broken("an id that no object has"))?;
                        (base, last) = (self.tables.bases[class], &self.tables.classes[class].objects);
                        last.get(row).unwrap_or(NONE)
                    }
                };
                ahead::to_read(*slot);
            }
            for (out, slot) in out.iter_mut().zip(&slots) {
                *out = **slot;
            }
        }
        Ok(())
    }
}

/// Whether an ivar holds this value already. Floats are compared by their bits, so that -0.0 and NaN are preserved.
#[inline]
pub fn same(old: Raw, new: Decoded) -> bool {
    match new {
        Decoded::Value(raw) if raw == old => true,
        Decoded::Value(raw) if raw & 3 == 2 => {
            matches!(heap::see(old), Seen::Float(f) if f.to_bits() == heap::flonum(raw).to_bits())
        }
        Decoded::Float(f) => matches!(heap::see(old), Seen::Float(o) if o.to_bits() == f.to_bits()),
        Decoded::Int(i) => heap::see(old) == Seen::Int(i),
        _ => false,
    }
}
