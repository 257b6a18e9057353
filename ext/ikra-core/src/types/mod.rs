//! The lattice of types. A type is the set of kinds of value that may occur at a place.
//!
//! Here: [`Ty`], its join, and [`Repr`], the representation of a type's values in registers and columns. Not here: how
//! types are found ([`crate::infer`]). Bottom is the empty set. There is no top, since every value that exists has a
//! kind.

pub mod combine;
pub mod keys;
pub mod numeric;

use crate::id::{ArrayKind, ClassId, ProcId};
use std::fmt;

/// The number of 64-bit words that a trap can carry to the host.
pub const TRAP_WORDS: usize = 4;

/// The kinds that carry no further detail, as bits of [`Ty::prims`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Prims(pub u16);

impl Prims {
    pub const NIL: Prims = Prims(1);
    pub const FALSE: Prims = Prims(1 << 1);
    pub const TRUE: Prims = Prims(1 << 2);
    pub const INT: Prims = Prims(1 << 3);
    pub const FLOAT: Prims = Prims(1 << 4);
    pub const SYM: Prims = Prims(1 << 5);
    /// A Range of Integers.
    pub const INT_RANGE: Prims = Prims(1 << 6);
    /// A Range of Floats.
    pub const FLOAT_RANGE: Prims = Prims(1 << 7);
    /// A Range of numbers, in registers.
    pub const RANGE: Prims = Prims(Self::INT_RANGE.0 | Self::FLOAT_RANGE.0);
    /// An exception that was rescued.
    pub const EXCEPTION: Prims = Prims(1 << 8);
    /// A String, which kernels only read.
    pub const STR: Prims = Prims(1 << 9);
    pub const BOOL: Prims = Prims(Self::TRUE.0 | Self::FALSE.0);

    pub fn contains(self, other: Prims) -> bool {
        self.0 & other.0 == other.0
    }
    pub fn intersects(self, other: Prims) -> bool {
        self.0 & other.0 != 0
    }
}

/// A set of kinds of value.
///
/// Objects are named by exact class; modules and classes as values are singletons; an array is of one
/// [`ArrayKind`], because kinds that meet are merged.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Ty {
    pub prims: Prims,
    /// Exact classes of ordinary objects, ascending.
    pub objects: Vec<ClassId>,
    /// Classes and modules that are themselves the value, ascending.
    pub modules: Vec<ClassId>,
    /// Blocks, lambdas and Regexps as values, ascending. Such a value is nothing but the choice of one.
    pub procs: Vec<ProcId>,
    pub array: Option<ArrayKind>,
    /// How every object and array in the set was reached.
    pub reach: Reach,
}

/// How the program got a reference, as far as the independence of elements is concerned. A join of two that differ is
/// `Any`, or `Mixed`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Reach {
    /// The element itself, or reached from it through references that no other element shares.
    Owned,
    /// Nothing is known.
    #[default]
    Any,
    /// A captured variable, a constant or the caller's `self`, or reached from these through ivars: the same object for
    /// all elements.
    Same,
    /// Surely made by the element itself, in this tick.
    Fresh,
    /// As `Any`, but perhaps made by the element itself.
    Mixed,
}

impl Reach {
    /// Whether no other element can reach the object.
    pub fn is_owned(self) -> bool {
        matches!(self, Reach::Owned | Reach::Fresh)
    }
    /// Whether the element may have made the object itself.
    pub fn may_be_fresh(self) -> bool {
        matches!(self, Reach::Fresh | Reach::Mixed)
    }
    fn join(self, other: Reach) -> Reach {
        match (self, other) {
            (a, b) if a == b => a,
            (a, b) if a.may_be_fresh() || b.may_be_fresh() => Reach::Mixed,
            _ => Reach::Any,
        }
    }
}

/// One kind out of a [`Ty`], for dispatch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Atom {
    Nil,
    False,
    True,
    Int,
    Float,
    Sym,
    IntRange,
    FloatRange,
    Exception,
    Str,
    Module(ClassId),
    Proc(ProcId),
    Regexp(ProcId),
    Array(ArrayKind),
    Object(ClassId),
}

impl Ty {
    /// Whether the type has objects, and besides them only nil, true and false.
    pub fn is_of_references(&self) -> bool {
        let units = Prims(Prims::NIL.0 | Prims::BOOL.0);
        let others = !self.modules.is_empty() || !self.procs.is_empty() || self.array.is_some();
        !self.objects.is_empty() && units.contains(self.prims) && !others
    }
    /// The type without values: that of an expression that does not return, or whose type is not known yet.
    pub fn never() -> Self {
        Self::default()
    }
    pub fn prim(prims: Prims) -> Self {
        Self { prims, ..Self::default() }
    }
    pub fn nil() -> Self {
        Self::prim(Prims::NIL)
    }
    pub fn int() -> Self {
        Self::prim(Prims::INT)
    }
    pub fn float() -> Self {
        Self::prim(Prims::FLOAT)
    }
    pub fn sym() -> Self {
        Self::prim(Prims::SYM)
    }
    pub fn str() -> Self {
        Self::prim(Prims::STR)
    }
    pub fn bool() -> Self {
        Self::prim(Prims::BOOL)
    }
    pub fn object(class: ClassId, reach: Reach) -> Self {
        Self { objects: vec![class], reach, ..Self::default() }
    }
    pub fn module(class: ClassId) -> Self {
        Self { modules: vec![class], ..Self::default() }
    }
    pub fn proc(id: ProcId) -> Self {
        Self { procs: vec![id], ..Self::default() }
    }
    pub fn array(kind: ArrayKind) -> Self {
        Self { array: Some(kind), ..Self::default() }
    }
    /// Whether it has a kind to which `reach` applies.
    fn has_references(&self) -> bool {
        !self.objects.is_empty() || self.array.is_some()
    }
    /// The same kinds with another `reach`. Types without references stay as they are.
    pub fn reached(mut self, reach: Reach) -> Self {
        self.reach = if self.has_references() { reach } else { Reach::Any };
        self
    }
    pub fn is_never(&self) -> bool {
        self.prims.0 == 0
            && self.objects.is_empty()
            && self.modules.is_empty()
            && self.procs.is_empty()
            && self.array.is_none()
    }
    /// Whether every value of the type is one of `prims`.
    pub fn only(&self, prims: Prims) -> bool {
        !self.is_never()
            && self.prims.0 & !prims.0 == 0
            && self.objects.is_empty()
            && self.modules.is_empty()
            && self.procs.is_empty()
            && self.array.is_none()
    }
    pub fn may_be(&self, prims: Prims) -> bool {
        self.prims.intersects(prims)
    }
    pub fn may_be_falsy(&self) -> bool {
        self.may_be(Prims(Prims::NIL.0 | Prims::FALSE.0))
    }
    pub fn may_be_truthy(&self) -> bool {
        self.prims.0 & !(Prims::NIL.0 | Prims::FALSE.0) != 0
            || !self.objects.is_empty()
            || !self.modules.is_empty()
            || !self.procs.is_empty()
            || self.array.is_some()
    }
    /// The kinds of the type, in a fixed order: primitives, modules, procs, array, objects.
    pub fn atoms(&self) -> Vec<Atom> {
        let table = [
            (Prims::NIL, Atom::Nil),
            (Prims::FALSE, Atom::False),
            (Prims::TRUE, Atom::True),
            (Prims::INT, Atom::Int),
            (Prims::FLOAT, Atom::Float),
            (Prims::SYM, Atom::Sym),
            (Prims::INT_RANGE, Atom::IntRange),
            (Prims::FLOAT_RANGE, Atom::FloatRange),
            (Prims::EXCEPTION, Atom::Exception),
            (Prims::STR, Atom::Str),
        ];
        let mut atoms: Vec<Atom> = table.iter().filter(|(p, _)| self.prims.contains(*p)).map(|(_, a)| *a).collect();
        atoms.extend(self.modules.iter().map(|m| Atom::Module(*m)));
        let of_proc = |id: &ProcId| if id.regexp_number().is_some() { Atom::Regexp(*id) } else { Atom::Proc(*id) };
        atoms.extend(self.procs.iter().map(of_proc));
        atoms.extend(self.array.map(Atom::Array));
        atoms.extend(self.objects.iter().map(|c| Atom::Object(*c)));
        atoms
    }
    /// The type of one kind; `reach` says how objects of it were reached.
    pub fn of(atom: Atom, reach: Reach) -> Self {
        match atom {
            Atom::Nil => Self::nil(),
            Atom::False => Self::prim(Prims::FALSE),
            Atom::True => Self::prim(Prims::TRUE),
            Atom::Int => Self::int(),
            Atom::Float => Self::float(),
            Atom::Sym => Self::sym(),
            Atom::IntRange => Self::prim(Prims::INT_RANGE),
            Atom::FloatRange => Self::prim(Prims::FLOAT_RANGE),
            Atom::Exception => Self::prim(Prims::EXCEPTION),
            Atom::Str => Self::str(),
            Atom::Module(c) => Self::module(c),
            Atom::Proc(p) | Atom::Regexp(p) => Self::proc(p),
            Atom::Array(k) => Self { reach, ..Self::array(k) },
            Atom::Object(c) => Self::object(c, reach),
        }
    }
    /// The kinds for which `keep` holds.
    pub fn filter(&self, mut keep: impl FnMut(Atom) -> bool) -> Self {
        let mut out = Self::never();
        for atom in self.atoms().into_iter().filter(|a| keep(*a)) {
            out = out.union_same_arrays(&Self::of(atom, self.reach));
        }
        out
    }
    /// Union of two types. Where both have an array kind, the kinds must be the same. [`crate::world::Facts::join`]
    /// merges the kinds first; all other code calls that.
    pub(crate) fn union_same_arrays(&self, other: &Self) -> Self {
        fn merge<T: Copy + Ord>(a: &[T], b: &[T]) -> Vec<T> {
            let mut all: Vec<T> = a.iter().chain(b).copied().collect();
            all.sort_unstable();
            all.dedup();
            all
        }
        let reach = match (self.has_references(), other.has_references()) {
            (true, true) => self.reach.join(other.reach),
            (false, false) => Reach::Any,
            (true, false) => self.reach,
            (false, true) => other.reach,
        };
        Self {
            prims: Prims(self.prims.0 | other.prims.0),
            objects: merge(&self.objects, &other.objects),
            modules: merge(&self.modules, &other.modules),
            procs: merge(&self.procs, &other.procs),
            array: self.array.or(other.array),
            reach,
        }
    }
}

impl fmt::Debug for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_never() {
            return f.write_str("never");
        }
        let parts: Vec<String> = self.atoms().iter().map(|a| format!("{a:?}")).collect();
        f.write_str(&parts.join("|"))?;
        match self.reach {
            Reach::Owned => f.write_str(" owned"),
            Reach::Any => Ok(()),
            Reach::Same => f.write_str(" same"),
            Reach::Fresh => f.write_str(" fresh"),
            Reach::Mixed => f.write_str(" mixed"),
        }
    }
}

/// A hierarchy of classes that share one id space: all descendants of one child of Object.
pub type HierarchyIndex = u32;

/// The representation of a type's values: one scalar, or tag and payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Repr {
    /// No bits: the type has one value.
    Unit(Unit),
    Bool,
    Int,
    Float,
    /// Stable 64-bit hash of the symbol's name.
    Sym,
    /// An object's id (u32) within its hierarchy.
    Ref(HierarchyIndex),
    /// `offset << 32 | length` into the element column of a kind.
    Array(ArrayKind),
    /// A [`StrWord`].
    Str,
    /// A tag ([`Tag`]) and 64 bits of payload.
    Union,
}

/// The representation of a String: where its bytes begin in the column of all bytes, how many there are, and their
/// encoding. Also whether a kernel made it or the host, and whether it is frozen.
///
/// Offset (32 bits), made (1), encoding (2), frozen (1), length in bytes (28), from the top. Each String of the host
/// has an offset of its own. So where no kernel made a String, equal words mean the same String.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StrWord(pub u64);

/// The encoding of a String's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    Utf8 = 0,
    /// UTF-8 where all bytes are ASCII: a character is a byte.
    Ascii = 1,
    Binary = 2,
    UsAscii = 3,
}

impl StrWord {
    pub const LENGTH_BITS: u32 = 28;
    pub const FROZEN: u64 = 1 << Self::LENGTH_BITS;
    pub const ENCODING_SHIFT: u32 = 29;
    pub const MADE: u64 = 1 << 31;
    /// The greatest length of a String, in bytes.
    pub const MAX_BYTES: usize = (1 << Self::LENGTH_BITS) - 1;

    pub fn new(offset: u32, length: usize, encoding: Encoding, made: bool) -> Self {
        let made = if made { Self::MADE } else { 0 };
        Self(u64::from(offset) << 32 | made | (encoding as u64) << Self::ENCODING_SHIFT | length as u64)
    }
    pub fn offset(self) -> u32 {
        (self.0 >> 32) as u32
    }
    pub fn length(self) -> usize {
        self.0 as usize & Self::MAX_BYTES
    }
    pub fn encoding(self) -> Encoding {
        match self.0 >> Self::ENCODING_SHIFT & 3 {
            0 => Encoding::Utf8,
            1 => Encoding::Ascii,
            2 => Encoding::Binary,
            _ => Encoding::UsAscii,
        }
    }
    /// The word of a String that is frozen, or not.
    pub fn with_frozen(self, frozen: bool) -> Self {
        Self(if frozen { self.0 | Self::FROZEN } else { self.0 & !Self::FROZEN })
    }
    pub fn is_frozen(self) -> bool {
        self.0 & Self::FROZEN != 0
    }
    pub fn is_made(self) -> bool {
        self.0 & Self::MADE != 0
    }
}

impl Encoding {
    /// The encoding of bytes that are UTF-8, or are marked as such.
    pub fn of_utf8(bytes: &[u8]) -> Self {
        if bytes.is_ascii() { Encoding::Ascii } else { Encoding::Utf8 }
    }
}

/// The value of a one-valued type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Unit {
    Nil,
    True,
    False,
    Module(ClassId),
    Proc(ProcId),
    /// No value: an ivar column of a class without objects.
    Never,
}

/// Tags of union values. Falsy kinds come first, so that truth is `tag >= TRUE`.
///
/// Payloads: Int, Float (bits), Sym (hash), Module (class number), Proc (its number), Array (offset and length),
/// object (id).
pub struct Tag;

impl Tag {
    pub const NIL: i32 = 0;
    pub const FALSE: i32 = 1;
    pub const TRUE: i32 = 2;
    pub const INT: i32 = 3;
    pub const FLOAT: i32 = 4;
    pub const SYM: i32 = 5;
    pub const MODULE: i32 = 6;
    pub const ARRAY: i32 = 7;
    pub const STR: i32 = 8;
    pub const PROC: i32 = 15;
    /// An object of hierarchy `h` has tag `OBJECT + h`.
    pub const OBJECT: i32 = 16;
}

/// The type of a column's slots in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Storage {
    /// Bool (0 or 1), a tag or a small number; loads into Bool or, zero-extended, I32 or I64, as the register's type
    /// says.
    U8,
    /// An object id; loads into I32.
    U32,
    /// A number; loads, sign-extended, into I64. Every stored value fits.
    I32,
    I64,
    /// A number; loads into F64, and is rounded when it is stored.
    F32,
    F64,
}

impl Storage {
    pub fn bytes(self) -> usize {
        match self {
            Storage::U8 => 1,
            Storage::U32 | Storage::I32 | Storage::F32 => 4,
            Storage::I64 | Storage::F64 => 8,
        }
    }
    /// Whether a load gives exactly the bits that were stored.
    pub fn is_exact(self) -> bool {
        self != Storage::F32
    }
}
