//! What the compiler knows of the live Ruby program.
//!
//! Here: [`World`], the questions of inference, which the bridge answers by reflection (tests answer from a fixture).
//! And [`Facts`], the growing record of which types were seen where. Not here: Ruby VALUEs, and any conclusion.
//!
//! # How scanning and inference meet
//!
//! Types of ivars and of array elements are *assumptions* kept in [`Facts`]. When inference first needs one, it asks
//! the World to scan that place in every object found so far. Scanning may find new objects. The World then scans every
//! demanded place in those too, until nothing new turns up. [`Facts::take_changes`] lists the places that grew, and
//! inference runs their readers again. The kernel's own writes widen the same assumptions through [`Facts::saw`].
//! Everything only grows, so the two reach a fixpoint together.

mod facts;
pub mod fixture;
pub mod hashes;
pub mod values;

pub use facts::{ASSUMED_LIMIT, Apart, AssumedRows, Assumption, Facts, OutOfRange, Place, StrideAssumption};

use crate::error::Result;
use crate::id::{ClassId, MethodId, ScopeId, define_id};
use crate::regexp::RegexpSource;
use crate::syntax::ast::{Name, Params, Unit};
use crate::unicode::Unicode;
use std::sync::Arc;

define_id!(
    /// A constant as seen from one scope, numbered by the World.
    ConstId, "const"
);

/// Core classes that every World numbers alike, in this order from 0.
pub mod well_known {
    use crate::id::ClassId;
    macro_rules! well_known {
        ($($id:ident = $n:literal $name:literal),* $(,)?) => {
            $(pub const $id: ClassId = ClassId($n);)*
            /// Names, by number; all are constants of Object.
            pub const NAMES: &[&str] = &[$($name),*];
        };
    }
    well_known! {
        INTEGER = 0 "Integer", FLOAT = 1 "Float", NIL = 2 "NilClass", TRUE = 3 "TrueClass", FALSE = 4 "FalseClass",
        SYMBOL = 5 "Symbol", ARRAY = 6 "Array", RANGE = 7 "Range", STRING = 8 "String", MODULE = 9 "Module",
        CLASS = 10 "Class", OBJECT = 11 "Object", KERNEL = 12 "Kernel", BASIC_OBJECT = 13 "BasicObject",
        COMPARABLE = 14 "Comparable", ENUMERABLE = 15 "Enumerable", NUMERIC = 16 "Numeric", MATH = 17 "Math",
        PROC = 18 "Proc", STRUCT = 19 "Struct", HASH = 20 "Hash", IKRA = 21 "Ikra",
        EXCEPTION = 22 "Exception", COMPLEX = 23 "Complex", RATIONAL = 24 "Rational",
        REGEXP = 25 "Regexp", MATCH_DATA = 26 "MatchData", ENUMERATOR = 27 "Enumerator",
    }

    /// Each place of a program that makes Hashes has a class of its own, as its keys and values have types of their
    /// own. To the program, and to every World, all of them are [`HASH`].
    pub const MADE_HASHES: u32 = 256;

    /// The class of the Hashes that the n-th place makes. The last one is that of all other places, too.
    pub fn made_hash(n: usize) -> ClassId {
        let n = u32::try_from(n).unwrap_or(u32::MAX).min(MADE_HASHES - 1);
        ClassId(FIRST_MADE_HASH + n)
    }

    /// No World numbers so many classes.
    const FIRST_MADE_HASH: u32 = 0xf000_0000;

    /// Whether kernels make the objects of this class, which are Hashes.
    pub const fn is_made_hash(class: ClassId) -> bool {
        class.0 >= FIRST_MADE_HASH && class.0 - FIRST_MADE_HASH < MADE_HASHES
    }

    /// Which place makes the objects of this class.
    pub fn made_hash_number(class: ClassId) -> Option<usize> {
        is_made_hash(class).then(|| (class.0 - FIRST_MADE_HASH) as usize)
    }

    /// The class that the program knows: Hash for one whose objects kernels make.
    pub const fn known(class: ClassId) -> ClassId {
        if is_made_hash(class) { HASH } else { class }
    }

    /// Whether the objects of this class are Hashes.
    pub const fn is_hash(class: ClassId) -> bool {
        class.0 == HASH.0 || is_made_hash(class)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassInfo {
    /// The name that `Module#name` gives, or its `inspect` if it has none.
    pub name: String,
    pub superclass: Option<ClassId>,
    /// The ancestor just below Object (itself, if its superclass is Object): the root of its id space.
    pub hierarchy: ClassId,
    /// A module, or a class.
    pub is_module: bool,
}

/// The object whose method is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Receiver {
    /// An instance of exactly this class (singleton classes of objects are classes of their own).
    Instance(ClassId),
    /// This class or module itself.
    Module(ClassId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    Public,
    Protected,
    Private,
}

/// The result of a method look-up.
#[derive(Clone, Debug, PartialEq)]
pub enum MethodFact {
    /// A method written in Ruby, outside Ruby's own library.
    Ruby {
        method: MethodId,
        visibility: Visibility,
    },
    /// `attr_reader`: the ivar with its `@`. Or the member of a Struct, without `@`.
    AttrReader {
        ivar: Name,
        visibility: Visibility,
    },
    AttrWriter {
        ivar: Name,
        visibility: Visibility,
    },
    /// Ruby's own definition, not redefined. `owner` is the class or module that defines it (`Integer`, `Kernel`).
    /// `name` is the name that it has there, even if the program calls it by an alias.
    Builtin {
        owner: Name,
        name: Name,
        visibility: Visibility,
    },
    /// A method that Ikra cannot read (C code of a gem, …), described for an error message.
    Foreign {
        what: String,
    },
    /// No such method; `handler` is a user-defined `method_missing`.
    Missing {
        handler: Option<MethodId>,
    },
}

/// The source of a method, and its lexical scope.
#[derive(Clone, Debug)]
pub struct MethodSource {
    pub unit: Arc<Unit>,
    pub scope: ScopeId,
    /// `Car#move`, for messages.
    pub label: String,
    /// For the code of a captured Proc: the root that holds the Proc, whose binding has the locals around it.
    pub around: Option<Root>,
}

/// How `new` sets the members of a Struct or a Data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Construction {
    /// A Struct, by position.
    Positional,
    /// A Struct with `keyword_init: true`.
    Keywords,
    /// A Struct, from Ruby 3.2 on: by position, or all by name.
    Either,
    /// A Data: by position or by name; all members are required.
    Data,
}

/// A value that a program takes from outside.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Root {
    /// An element of the base array.
    Element,
    /// `self` of the block.
    SelfObject,
    /// A captured local variable.
    Capture(Name),
    /// A constant.
    Const(ConstId),
    /// A local variable around a Proc.
    Within(Box<Root>, Name),
    /// `self` of a Proc, or the receiver of a Method object.
    SelfOf(Box<Root>),
    /// An ivar of an object that is a root.
    Ivar(Box<Root>, Name),
    /// The lambda that a *live* object ([`World::live`]) returns for one of its methods.
    Member(Box<Root>, Name),
    /// A Proc or another value of which Ruby's own code has made a Proc, by its position ([`Derivation`]).
    Part(Box<Root>, usize),
    /// A Proc or Method object that objects and arrays hold, by its number ([`crate::id::ProcId::held`]).
    Held(u32),
}

impl Root {
    /// Whether it is a variable around the lambda of a *live* object's method, such as the size of an `MDArray`.
    pub fn is_of_live_object(&self) -> bool {
        matches!(self, Root::Within(lambda, _) if matches!(**lambda, Root::Member(..)))
    }

    /// The roots through which this one is reached, the nearest first.
    pub fn enclosing(&self) -> impl Iterator<Item = &Root> {
        fn inner(root: &Root) -> Option<&Root> {
            match root {
                Root::Within(inner, _)
                | Root::Ivar(inner, _)
                | Root::Member(inner, _)
                | Root::Part(inner, _)
                | Root::SelfOf(inner) => Some(inner),
                Root::Element | Root::SelfObject | Root::Capture(_) | Root::Const(_) | Root::Held(_) => None,
            }
        }
        std::iter::successors(inner(self), |root| inner(root))
    }
}

/// The code of a Proc or Method object that a program takes from outside.
#[derive(Clone, Debug)]
pub struct Outside {
    pub method: MethodId,
    /// For a Proc that is not a lambda: which arguments it takes, since it accepts any number.
    pub lenient: Option<Lenient>,
    /// Another root on the path to this one that holds the same Proc. A lambda that calls itself through a variable
    /// around it is an example.
    pub same_as: Option<Root>,
    /// Whether it is a Method object.
    pub is_method: bool,
}

/// How Ruby's own code has made a Proc or Method object, which has no source. Its parts are [`Root::Part`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Derivation {
    /// `f >> g`: the part that is called first, then the other.
    Composed { lambda: bool },
    /// `f.curry`: the code, then a number of arguments. It calls the code when it has as many as it needs.
    Curried { given: usize, needs: usize, lambda: bool },
    /// `to_proc` of a Method object, which is the part.
    Converted,
    /// A Method object of Ruby's own method, with its name.
    Method(Name),
}

/// The most different Procs at one place. A call of the place chooses among the code of all of them.
pub const MAX_HELD_PROCS: usize = 16;
impl Outside {
    /// The arguments that the code receives. A Proc that is not a lambda drops extra arguments, and takes nil for
    /// missing ones.
    pub fn taken<T: Clone>(&self, args: &[T], nil: impl Fn() -> T) -> Vec<T> {
        let (least, most) = self.lenient.map_or((0, None), |lenient| (lenient.least, lenient.most));
        let missing = std::iter::repeat_with(nil).take(least.saturating_sub(args.len()));
        args.iter().take(most.unwrap_or(args.len())).cloned().chain(missing).collect()
    }
}

/// The arguments with which a Proc that is not a lambda behaves like a lambda.
#[derive(Clone, Copy, Debug)]
pub struct Lenient {
    /// The least number of arguments for which no parameter is filled with nil.
    pub least: usize,
    /// The greatest number of arguments of which none is dropped.
    pub most: Option<usize>,
    /// Whether a single argument that is an array is spread over the parameters.
    pub spreads: bool,
}

impl Lenient {
    pub fn of(params: &Params) -> Self {
        let least = params.required.len() + params.post.len();
        let named = least + params.optional.len();
        let most = params.rest.is_none().then_some(named);
        Self { least, most, spreads: named > 1 || (named == 1 && most.is_none()) }
    }
}

/// The live program, as inference sees it.
pub trait World {
    fn class(&self, class: ClassId) -> ClassInfo;
    /// Whether objects of the class consist only of their class and their ivars, and are not exceptions. The kernel's
    /// `new` may make such objects.
    fn is_ordinary(&self, class: ClassId) -> bool;
    /// Whether instances of `class` are also instances of `module` (`class <= module`).
    fn is_a(&self, class: ClassId, module: ClassId) -> bool;
    /// The class of a class or module object (`Class`, `Module`, or a metaclass): what `is_a?` on it asks.
    fn module_is_a(&self, object: ClassId, module: ClassId) -> bool;
    /// The members, in their order, of a class that `Struct.new` or `Data.define` made, or of a subclass of it. Each
    /// member is a field of the objects, like an ivar, under its name (without `@`).
    fn members(&self, class: ClassId) -> Option<Vec<Name>>;
    /// How `new` sets the members.
    fn construction(&self, class: ClassId) -> Construction;
    fn method(&mut self, receiver: Receiver, name: &str) -> MethodFact;
    /// The class or module that defines the protected method of that name.
    fn method_owner(&mut self, receiver: Receiver, name: &str) -> Option<ClassId>;
    /// The method that `super` in `method`, running for `receiver`, reaches.
    fn super_method(&mut self, receiver: Receiver, method: MethodId) -> MethodFact;
    /// # Errors
    /// `Unsupported` when the source is not available (changed since it was loaded, `eval` without `script_lines`).
    fn source(&mut self, method: MethodId) -> Result<MethodSource>;
    /// Looks up a constant from a scope, or (`base`) in a module. None: it is not defined.
    fn constant(&mut self, scope: ScopeId, base: Option<ClassId>, name: &str) -> Option<ConstId>;
    /// The same from the top level (`::Name`).
    fn top_constant(&mut self, name: &str) -> Option<ConstId>;
    /// A class by its full name from the top level, as Ruby itself finds it (`Ikra::IntegerOverflow`).
    fn class_named(&mut self, name: &str) -> Option<ClassId>;
    /// The class or module whose constants a scope sees first; Object at the top level.
    fn scope_module(&mut self, scope: ScopeId) -> ClassId;
    /// The class or module whose class variables a scope sees; none at the top level. Singleton classes do not count.
    fn class_variables(&mut self, scope: ScopeId) -> Option<ClassId>;
    /// The code of a root that is a Proc or a Method object. None: it is neither, or has no source.
    fn outside(&mut self, root: &Root) -> Option<Outside>;
    /// For a root that is a Proc or Method object without source: how Ruby has made it.
    fn derived(&mut self, _root: &Root) -> Option<Derivation> {
        None
    }
    /// The pattern of a root that is a Regexp. None: it is none, or has an encoding that kernels do not know.
    fn regexp(&mut self, _root: &Root) -> Option<RegexpSource> {
        None
    }
    /// What Ruby knows of characters beyond ASCII.
    fn unicode(&self) -> &'static dyn Unicode;
    /// The number of a root that is a Proc or Method object with source, as of one that objects and arrays hold.
    fn number_of_proc(&mut self, _root: &Root) -> Option<u32> {
        None
    }
    /// Tells the world that the program has a Symbol of this name, so that kernels can find its text.
    fn names_symbol(&mut self, _name: &str) {}
    /// For a root that is a Proc made from a Symbol (`&:name`): the method that it calls.
    fn symbol_proc(&mut self, root: &Root) -> Option<Name>;
    /// Whether a root is a *live* object. Kernels cannot hold it, but for each method that they may call, it returns a
    /// lambda to call instead ([`Root::Member`]). An `Ikra::MDArray` is one.
    fn live(&mut self, root: &Root) -> bool;
    /// Whether a captured local holds a Hash.
    fn captures_hash(&mut self, _local: &Name) -> bool {
        false
    }
    /// Whether that Hash gives the same Integer or Float for each key that it lacks.
    fn captures_default(&mut self, _hash: &Name) -> bool {
        false
    }
    /// Whether the values of Hashes at constant keys are fields ([`hashes::KeyField`]).
    fn has_key_fields(&self) -> bool {
        true
    }
    /// Whether the section runs while the program handles an exception, which `raise` without arguments would raise
    /// again.
    fn is_handling(&mut self) -> bool {
        false
    }
    /// Reports the type of a root through [`Facts::saw`] at [`Place::Root`].
    ///
    /// # Errors
    /// `Err(Opaque)`, with the value's class, if kernels cannot hold the value. Inference makes an `Unsupported` of it,
    /// since it knows the position in the source.
    fn scan_root(&mut self, root: &Root, facts: &mut Facts) -> std::result::Result<(), Opaque>;
    /// Reports the types of an ivar over all objects of exactly this class, now and for objects found later.
    fn scan_field(&mut self, class: ClassId, ivar: &Name, facts: &mut Facts) -> std::result::Result<(), Opaque>;
    /// Reports the types of the elements of all arrays of a kind, now and for arrays found later.
    fn scan_array(&mut self, kind: crate::id::ArrayKind, facts: &mut Facts) -> std::result::Result<(), Opaque>;
}

/// A live value that kernels cannot hold: a String, a Hash, an Integer beyond 64 bits…
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opaque {
    /// `a String`, `an Integer beyond 64 bits`.
    pub what: String,
    /// The place where it was found: `@name of Car`.
    pub place: String,
}

/// Stable 64-bit hash of a symbol's name (FNV-1a, finished by a multiply-xor so that short names spread). Kernels
/// represent symbols by it. The bridge has the table back to names and refuses two names with the same hash.
pub fn symbol_hash(name: &str) -> i64 {
    let mut h: u64 = 0xcbf2_9ce4_8422_2325;
    for b in name.bytes() {
        h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    h ^= h >> 32;
    h = h.wrapping_mul(0xd6e8_feb8_6659_fd93);
    (h ^ (h >> 32)) as i64
}
