//! The meaning of a program's columns and parameters for the host: which ivar of which class fills which column.
//!
//! Here: the description that lowering writes and that packing and write-back follow. Not here: addresses
//! ([`super::Layout`]) and live values. The host decides nothing of it. A value that does not fit its slot's type is a
//! reason to compile again with a wider type.

use crate::diagnostic::Span;
use crate::id::{ArrayKind, ClassId};
use crate::ir::{ColumnId, ParamId};
use crate::syntax::ast::Name;
use crate::types::combine::{Combine, HashUpdate, Wording};
use crate::types::{Repr, Ty};
use crate::world::Root;

/// The columns that store one Ruby value per row.
#[derive(Clone, Debug, PartialEq)]
pub struct Slot {
    /// The kinds of value that may be stored.
    pub ty: Ty,
    pub repr: Repr,
    /// The payload; none for a unit representation.
    pub value: Option<ColumnId>,
    /// The tag (storage U8); only for `Repr::Union`.
    pub tag: Option<ColumnId>,
}

impl Slot {
    pub fn columns(&self) -> impl Iterator<Item = ColumnId> {
        self.value.into_iter().chain(self.tag)
    }
}

/// Classes that share one id space, in preorder; the class at position `i` owns ids `base[i] .. base[i + 1]`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Hierarchy {
    pub classes: Vec<ClassId>,
    /// I32 parameters with the first id of each class, and one more with the end of the last class. None where the
    /// program never reads it.
    pub bases: Vec<Option<ParamId>>,
    /// U8 column over the whole hierarchy: 1 where the object is frozen. None: the program writes no object of it, and
    /// does not read the flag.
    pub frozen: Option<ColumnId>,
    /// U32 column over the whole hierarchy: the id of the host's object that the object is, or of which it is a copy,
    /// directly or through other copies. [`NO_ORIGIN`]: `new` made it. None: nothing is copied.
    pub origin: Option<ColumnId>,
}

/// The origin of an object that `new` made.
pub const NO_ORIGIN: u32 = u32::MAX;

/// An ivar that the program touches, of one exact class. Classes that share a column name the same ids.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub class: ClassId,
    pub ivar: Name,
    pub slot: Slot,
    pub read: bool,
    pub written: bool,
    /// Whether the program also writes it in objects that it may not have made itself.
    pub overwritten: bool,
    /// Whether every new object has it, even where its value is nil; new objects get such ivars in this order.
    pub given: Option<u32>,
}

/// A family of arrays that the program reads or writes.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayField {
    pub kind: ArrayKind,
    pub slot: Slot,
    pub read: bool,
    pub written: bool,
    /// Whether the program also writes arrays that it may not have made itself.
    pub overwritten: bool,
    /// U8 column beside the elements, 1 at the offset of a frozen array. None: the program writes no array of the kind,
    /// and does not read the flag.
    pub frozen: Option<ColumnId>,
}

/// A value that the program takes from outside; the host reads it anew at every call.
#[derive(Clone, Debug, PartialEq)]
pub struct RootParam {
    pub root: Root,
    pub ty: Ty,
    pub repr: Repr,
    /// None for a representation without bits.
    pub value: Option<ParamId>,
    /// I32, for unions.
    pub tag: Option<ParamId>,
    /// For a Range: `value` is its begin, this its end, and `exclusive` (Bool) tells whether the end is excluded.
    pub to: Option<ParamId>,
    pub exclusive: Option<ParamId>,
}

/// A captured local that the block assigns.
#[derive(Clone, Debug, PartialEq)]
pub struct Accumulator {
    pub name: Name,
    pub combine: Combine,
    /// None for [`Combine::Last`]. If the block has several: one that raises for NaN, or one whose operator is not `-`.
    pub wording: Option<Wording>,
    /// Per-element contribution, in `Space::Element` columns.
    pub slot: Slot,
    /// I64 column, one row per element: the last tick that wrote it, -1 for none. For `Add` and the like: -1 where the
    /// element contributed nothing. The host fills it with -1 before the launch.
    pub written_tick: ColumnId,
    /// The local holds a Hash, and what elements leave behind are chains of the pairs with which they update it.
    pub update: Option<(HashUpdate, Span)>,
    /// Source line of the first assignment, for errors that are found when combining.
    pub line: u32,
}

/// A captured Hash whose pairs the program adds to groups.
#[derive(Clone, Debug, PartialEq)]
pub struct TabledHash {
    pub name: Name,
    /// How the block updates it, and where.
    pub update: (HashUpdate, Span),
    /// As that of an [`Accumulator`].
    pub line: u32,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Schema {
    pub hierarchies: Vec<Hierarchy>,
    pub fields: Vec<Field>,
    pub arrays: Vec<ArrayField>,
    pub roots: Vec<RootParam>,
    /// The base array's elements. None: the block does not read them, or the base is a Range.
    pub elements: Option<Slot>,
    /// For a Range as base array: I64 parameter with its first element.
    pub range: Option<ParamId>,
    /// I64 parameter with the row of job 0, for programs whose jobs are all rows of the elements' classes. The host
    /// launches such a program only where the elements are all objects of these classes.
    pub whole: Option<ParamId>,
    /// U32 column, space Job: element index of each job (`Jobs::Reordered`) or occurrence (`Jobs::Grouped`, as many
    /// rows as elements).
    pub order: Option<ColumnId>,
    /// U32 column, space Job: first occurrence of each job, and the end (`Jobs::Grouped`).
    pub starts: Option<ColumnId>,
    /// `pmap`: the block's values, in `Space::Element` columns.
    pub result: Option<Slot>,
    /// No element has a value: the block never comes to its end.
    pub is_endless: bool,
    /// Whether some elements may have no value, while the values of the others are numbers of one kind.
    pub has_holes: bool,
    /// U8 column, space Element: which elements have a value.
    pub marks: Option<ColumnId>,
    pub accumulators: Vec<Accumulator>,
    /// The captured Hash that its groups are for. None: they are the section's value, if it has groups.
    pub table: Option<TabledHash>,
    /// U8 column, space Bytes: first the bytes of the literals, then those of the host's Strings, each String with at
    /// least one row. None: the program reads no bytes.
    pub bytes: Option<ColumnId>,
    /// Whether the program reads what is frozen, whose changes Ikra cannot observe.
    pub asks_frozen: bool,
    /// The keys of the pairs that the program adds to groups. None: it adds none.
    pub groups: Option<GroupKeys>,
    /// Whether their values are Floats. If not, they are Integers.
    pub groups_floats: Option<bool>,
    /// String literals of the program's text, in the order of their bytes.
    pub literals: Vec<StringLiteral>,
}

/// The keys of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKeys {
    /// All are of this kind.
    Of(Repr),
    /// They have parts ([`crate::types::keys`]).
    Parts,
    /// Some pairs are others. The program must not run.
    Other,
}

/// A String in the program's text, in UTF-8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StringLiteral {
    pub bytes: Vec<u8>,
    /// It is under `# frozen_string_literal: true`: always the same object, interned.
    pub frozen: bool,
}

impl Schema {
    /// Columns of frozen flags.
    pub fn flags(&self) -> impl Iterator<Item = ColumnId> {
        let of_objects = self.hierarchies.iter().filter_map(|h| h.frozen);
        of_objects.chain(self.arrays.iter().filter_map(|a| a.frozen))
    }
    /// The bytes of all literals, with which the column of bytes begins.
    pub fn literal_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for literal in &self.literals {
            out.extend(&literal.bytes);
            out.resize(out.len() + usize::from(literal.bytes.is_empty()), 0);
        }
        out
    }
    /// Columns in which the program changes values that it did not store itself.
    pub fn overwritten(&self) -> Vec<ColumnId> {
        let fields = self.fields.iter().filter(|field| field.overwritten).map(|field| &field.slot);
        let arrays = self.arrays.iter().filter(|array| array.overwritten).map(|array| &array.slot);
        fields.chain(arrays).flat_map(Slot::columns).collect()
    }
    /// Hierarchy and preorder position of a class.
    pub fn position(&self, class: ClassId) -> Option<(usize, usize)> {
        self.hierarchies
            .iter()
            .enumerate()
            .find_map(|(h, hierarchy)| hierarchy.classes.iter().position(|c| *c == class).map(|p| (h, p)))
    }
}
