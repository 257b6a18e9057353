//! Typed indices: one newtype per kind of thing, so that a column cannot be indexed with a function's number.
//!
//! Here: the [`define_id!`] macro and the ids that several stages share. Not here: ids that only one stage uses.

/// Declares a `u32` newtype with `new`, `index` and `Debug` in the form `prefix12`.
macro_rules! define_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The id of the `index`-th thing of its kind.
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("fewer than 2^32 of anything are made"))
            }
            /// Position in the vector that holds these things.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}
pub(crate) use define_id;

define_id!(
    /// A Ruby class or module, numbered by the [`World`](crate::world::World) for the life of the process.
    ClassId, "class"
);
define_id!(
    /// A Ruby method with source, numbered by the World; a reopened method gets a new number.
    MethodId, "method"
);
define_id!(
    /// A lexical scope (Ruby's cref) in which constants are looked up, numbered by the World.
    ScopeId, "scope"
);
define_id!(
    /// A family of arrays that share one element column. Kinds only ever merge; see [`crate::world::Facts`].
    ArrayKind, "array"
);
define_id!(
    /// A block, lambda, Method object or Regexp. One analysis numbers those that the program contains or captures. The
    /// [`World`](crate::world::World) numbers those that objects and arrays hold ([`ProcId::held`]).
    ProcId, "proc"
);

impl ProcId {
    /// Ids from here on are for Procs that objects and arrays hold.
    const FIRST_HELD: u32 = 1 << 24;
    /// Ids from here on are for regular expressions. They, too, are nothing but the choice of one.
    const FIRST_REGEXP: u32 = 1 << 28;

    /// The id of a Proc or Method object that objects and arrays hold, by the World's number.
    pub fn held(number: u32) -> Self {
        debug_assert!(number < Self::FIRST_HELD);
        Self(Self::FIRST_HELD + number)
    }

    /// The World's number, if the Proc is one that objects and arrays hold.
    pub fn held_number(self) -> Option<u32> {
        if self.0 < Self::FIRST_REGEXP { self.0.checked_sub(Self::FIRST_HELD) } else { None }
    }

    /// The id of one of an analysis's regular expressions, by its number.
    pub fn regexp(number: usize) -> Self {
        Self(Self::FIRST_REGEXP + number as u32)
    }

    /// The number, if it is a regular expression.
    pub fn regexp_number(self) -> Option<usize> {
        self.0.checked_sub(Self::FIRST_REGEXP).map(|number| number as usize)
    }
}
