//! The table of known methods that are not arithmetic: methods of all objects, nil, Symbols, Ranges, Arrays, modules.
//!
//! Here: names to [`Builtin`]s, and the table of [`Primitive`]s. Not here: the types of the others ([`super::calls`],
//! and `walk` for those that take a block) and their code ([`crate::lower`]). Numeric methods have a table of their
//! own, [`crate::types::numeric`].

use crate::regexp::Table;
use crate::types::numeric::{self, Function, Kind, Method};
use crate::types::{Atom, Prims, Ty};
use crate::unicode::Change;
use crate::world::{hashes, values, well_known};

/// A method of Ruby's own that kernels know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// A method of Integer or Float without a block.
    Numeric(Method),
    /// A function of `Math`, or `Integer.sqrt`.
    Math(Function),
    /// A primitive of the prelude whose result is of one type, whatever its arguments are.
    Primitive(Primitive),
    // every object
    IsNil,
    Not,
    Equal,
    NotEqual,
    Identical,
    /// `===` of an object that does not define it: the same object, or `==`.
    CaseEqual,
    /// `<=>` of Kernel: 0 for equal objects, else nil.
    Compare,
    /// `<`, `<=`, `>`, `>=`, `==`, `between?`, `clamp` of Comparable, through the object's `<=>`.
    Ordered(Ordered),
    /// Whether both are the same object or array; false for other values. For the library.
    SameReference,
    /// Whether both are of one class. For the library.
    Kin,
    /// A number that tells an object or an array from others of its kind. For the library.
    Identity,
    /// A number for the kinds of two values. For the library.
    Kinds,
    IsA,
    InstanceOf,
    RespondTo,
    /// Whether a call by this literal name, with a receiver, would find a method, for `defined?`.
    Answers,
    ClassOf,
    Itself,
    IsFrozen,
    /// `freeze` of an object or an array.
    Freeze,
    /// `__copy`: a new object of the same class, with the same ivars and members, and not frozen. For a String: another
    /// String.
    Copy,
    /// `__copied?`: whether `dup` returns another object than the receiver.
    IsCopied,
    // nil, true, false
    NilToInt,
    NilToFloat,
    BoolAnd,
    BoolOr,
    BoolXor,
    // modules
    ModuleCase,
    /// `Class#new`
    New,
    Allocate,
    /// `initialize` of classes that do not define it.
    Initialize,
    /// `Ikra.tick`
    Tick,
    /// `Ikra.index`
    Index,
    /// `Ikra.__single(x)`: the nearest Float of 32 bits.
    Single,
    /// `Ikra.__staged(producer, position, offsets…, sizes…)`: the result of a captured lambda for a position
    /// ([`crate::ir::stages`]).
    Staged,
    // Kernel and Random
    Rand(numeric::Rand),
    Loop,
    ToFloat,
    ToInteger,
    // blocks
    /// `lambda`, `proc`, `Proc.new`
    MakeProc,
    ProcCall,
    /// `f >> g` and `f << g` of Procs that are known at compile time.
    Compose {
        /// Whether the receiver is called first.
        receiver_first: bool,
    },
    BlockGiven,
    IsLambda,
    /// `f.curry`, `f.curry(n)`
    Curry,
    /// `arity` of a Proc or Method object.
    ProcArity,
    /// `to_proc` of a Method object.
    MethodToProc,
    /// `name` of a Method object.
    MethodName,
    /// `owner` of a Method object.
    MethodOwner,
    /// `receiver` of a Method object.
    MethodReceiver,
    /// `send` with a literal Symbol (`public`: `public_send`).
    Send {
        public: bool,
    },
    /// `instance_variable_get(:@x)`
    IvarGet,
    /// `instance_variable_set(:@x, value)`
    IvarSet,
    // primitives of patterns
    /// Whether a pattern destructures it like an Array.
    IsList,
    /// Whether it has `deconstruct_keys`, or (with an argument) that key.
    HasKeys,
    /// The value of a key that it has.
    Member,
    /// How many keys it has.
    KeyCount,
    NoMatch,
    /// `super` in `method_missing`.
    MethodMissing,
    // primitives of the prelude
    /// An element at an index that is known to be in range.
    ArrayAt,
    /// `__put(i, x)`: writes an element at an index that is known to be in range.
    ArrayPut,
    /// `__buffer(n)`: an array of n elements that are not written yet.
    Buffer,
    /// `list.__alike(n)`: the same, of the list's own kind.
    Alike,
    /// `__make_hash(…)`: a Hash of these parts ([`crate::world::hashes::MADE_PARTS`]).
    MakeHash,
    /// The block that a Hash was made with, or nil.
    HashBlock,
    /// `__lend`: others may hold lists that are in a Hash.
    HashLend,
    /// `__lent?`
    HashLent,
    /// `__stores_list?`: whether a Hash's block does nothing but give a key a new list.
    HashStoresList,
    /// `__grown(x)`: an Array that only a Hash holds, with one more element.
    Grown,
    /// `__take(n)`: an array of the first n elements of a buffer.
    TakeOf,
    /// `__needs_array(x)`: raises what an array method raises for an argument that is not an Array.
    NeedsArray,
    /// `__one_level(x)`: refused where x may be an array.
    OneLevel,
    /// `__no_list(x)`, `__no_text(x)`, `__no_order(x)`: refused where x responds to the conversion that Ruby would
    /// call.
    Unconverted(&'static str),
    /// Whether all elements are known to be of these kinds; decided at compile time.
    ElementsAre(crate::types::Prims),
    /// Whether no element of such an array is ever assigned. Known when all types are.
    Unwritten,
    /// Refused where it may be an object that defines a method of the first name and none of the second.
    Lacks(&'static str, &'static str),
    /// Refused where the receiver is an object that Ruby takes for a Range.
    NoRange,
    /// `x.__uncomparable(y)`: raises what a comparison of the two raises.
    Uncomparable,
    /// TypeError: the argument is not a number.
    Uncoercible,
    /// `__doubt(condition)`: assumed false until that is refuted at the user's call.
    Doubt,
    /// `raise`, `fail`
    Raise,
    // Integer iterators
    Times,
    Upto,
    Downto,
    Step,
    // Ranges
    RangeEach,
    RangeReverseEach,
    RangeEachWithIndex,
    RangeStep,
    RangeFirst,
    RangeLast,
    RangeMin,
    RangeMax,
    RangeSize,
    RangeCover,
    RangeExcludesEnd,
    // Arrays
    ArrayGet,
    ArraySet,
    ArraySize,
    ArrayIsEmpty,
    ArrayFirst,
    ArrayLast,
    ArrayEach,
    ArrayEachWithIndex,
    ArrayEachIndex,
    ArrayReverseEach,
    ArrayEqual,
    ArrayEql,
    ArrayCompare,
    // Strings
    StrEqual,
    StrCompare,
    StrBytes,
    /// A table of a Regexp, as a String of its bytes.
    RegexpTable(Table),
    /// Whether a Regexp has groups; decided at compile time.
    RegexpHasGroups,
    /// Whether a Regexp is for text in ASCII only; decided at compile time.
    RegexpIsAscii,
    /// `__own?(:name)`: whether a method is Ruby's own; decided at compile time.
    IsOwn,
    RegexpGroups,
    /// Whether the parts of its groups are known; decided at compile time.
    RegexpIsOnePass,
    /// Whether its groups have no names; decided at compile time.
    RegexpIsNumbered,
    /// The number of the group that a Symbol names, or -1.
    RegexpGroupNamed,
    /// The name of a group, by its number.
    RegexpGroupName,
    // primitives of Strings
    /// The table of a change of case ([`crate::unicode`]), as a String of its bytes.
    CaseTable(Change),
    /// `freeze` of a literal: the same String each time.
    StrInterned,
    /// The argument, if it is a String; else TypeError.
    AsText,
    /// The argument, if it is an Integer; else TypeError.
    AsInt,
    /// The same, where Ruby's C code takes an `int`: RangeError beyond 32 bits.
    AsCInt,
    /// CompileError: an operation on Strings that kernels do not support.
    StrRefuse(&'static str),
    /// `message` of an exception.
    Message,
    /// Refused at its call, with this message and advice.
    Refuse(&'static str, &'static str),
    // Hashes
    /// The hash of a key that is not a String.
    KeyHash,
    // Structs
    StructGet,
    StructSet,
    /// An object of a class whose objects consist of their parts alone.
    MakeValue,
    /// A method of a Range object: it is called on a Range in registers with the same ends.
    OfRange,
    /// `initialize` of a Struct's class, in the library.
    StructInitialize,
    /// `with` of a Data, in the library.
    DataWith,
    StructSize,
    StructEqual,
    StructEql,
}

macro_rules! primitives {
    ($($(#[$doc:meta])* $primitive:ident: ($receiver:pat, $name:literal), $arity:expr, $result:expr;)*) => {
        /// A primitive of the prelude whose result is of one type, whatever its arguments are.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Primitive { $($(#[$doc])* $primitive,)* }

        impl Primitive {
            /// The primitive of that name, which begins with two underscores.
            pub fn find(receiver: Atom, name: &str) -> Option<Self> {
                match (receiver, name) {
                    $(($receiver, $name) => Some(Self::$primitive),)*
                    _ => None,
                }
            }
            /// The number of arguments.
            pub fn arity(self) -> std::ops::RangeInclusive<usize> {
                match self { $(Self::$primitive => $arity,)* }
            }
            /// The type of the result; never if it always raises.
            pub fn result(self) -> Ty {
                match self { $(Self::$primitive => $result,)* }
            }
        }
    };
}

// The receiver and the name, the number of arguments, and the type of the result.
primitives! {
    /// A byte, at an index in range.
    Byte: (Atom::Str, "__byte"), 1..=1, Ty::int();
    /// A number of bytes from an index on, in range.
    View: (Atom::Str, "__view"), 2..=2, Ty::str();
    /// The place of its first byte among all bytes. That of a part of a text is not before that of the text.
    FirstByte: (Atom::Str, "__first_byte"), 0..=0, Ty::int();
    /// Whether every character is one byte.
    IsSingle: (Atom::Str, "__single?"), 0..=0, Ty::bool();
    /// 0: UTF-8, 2: binary, 3: US-ASCII.
    Encoding: (Atom::Str, "__encoding"), 0..=0, Ty::int();
    /// A new String of so many bytes, which are undefined.
    NewText: (_, "__string"), 1..=1, Ty::str();
    /// `__set(i, byte)`: writes a byte of a String that nothing else knows yet.
    SetByte: (Atom::Str, "__set"), 2..=2, Ty::prim(Prims::NIL);
    /// `__coded(n, code)`: a new String of the first n bytes, with an encoding ([`crate::types::Encoding`]).
    Coded: (Atom::Str, "__coded"), 2..=2, Ty::str();
    /// The encoding as in [`crate::types::Encoding`].
    Code: (Atom::Str, "__code"), 0..=0, Ty::int();
    /// A String that the kernel has just made, frozen.
    AsFrozen: (Atom::Str, "__as_frozen"), 0..=0, Ty::str();
    /// ArgumentError with a message.
    ArgumentError: (Atom::Str, "__argument_error"), 1..=1, Ty::never();
    /// ArgumentError: a String that the named function cannot parse as a number.
    NoNumber: (Atom::Str, "__no_number"), 1..=1, Ty::never();
    /// Whether this Ruby differs: [`crate::config::CodeOptions::exact_eighths`].
    KnowsEighths: (_, "__ruby_knows_eighths"), 0..=0, Ty::bool();
    /// Whether in a String a point without digits after it is part of a number, as from Ruby 3.4 on.
    ReadsPoints: (_, "__ruby_reads_points"), 0..=0, Ty::bool();
    /// Whether a Range without ends has all numbers, as from Ruby 3.3 on.
    AsksBounds: (_, "__ruby_asks_bounds"), 0..=0, Ty::bool();
    /// Whether this Ruby differs: [`crate::config::CodeOptions::negative_poles`].
    NegatesPoles: (_, "__ruby_negates_poles"), 0..=0, Ty::bool();
    /// Whether this Ruby differs: [`crate::config::CodeOptions::single_lost`].
    LosesSingle: (_, "__ruby_loses_single"), 0..=0, Ty::bool();
    /// Whether this Ruby differs: [`crate::config::CodeOptions::even_by_parts`].
    RoundsParts: (_, "__ruby_rounds_parts"), 0..=0, Ty::bool();
    /// The bits of a Float.
    Bits: (Atom::Float, "__bits"), 0..=0, Ty::int();
    /// The Float with these bits.
    OfBits: (Atom::Int, "__as_bits"), 0..=0, Ty::float();
    /// The high 64 bits of a product.
    TimesHigh: (Atom::Int, "__times_high"), 1..=1, Ty::int();
    /// The low 64 bits of a product.
    TimesLow: (Atom::Int, "__times_low"), 1..=1, Ty::int();
    /// [`crate::prelude::powers_of_ten`], as a String.
    Powers: (Atom::Float, "__powers"), 0..=0, Ty::str();
    /// log |Γ(x)| of a Float.
    LogGamma: (Atom::Float, "__log_gamma"), 0..=0, Ty::float();
    /// `Ikra.index` within Ikra's own methods.
    Position: (_, "__position"), 0..=0, Ty::int();
    /// `__emit_pair(key, value, number)`: adds a pair of an element, which has that number, to the groups that the
    /// section gives ([`crate::ir::Stmt::Emit`]).
    Add: (_, "__emit_pair"), 3..=3, Ty::prim(Prims::NIL);
    /// `__emit_parts(value, number)`: the same, whose key has the parts that were added since the last pair.
    AddParts: (_, "__emit_parts"), 2..=2, Ty::prim(Prims::NIL);
    /// `__key_part(value)`: adds a part to the next pair's key.
    KeyPart: (_, "__key_part"), 1..=1, Ty::prim(Prims::NIL);
    /// The same for an array, whose elements are further parts. Its length.
    KeyList: (Atom::Array(_), "__key_list"), 0..=0, Ty::int();
    /// The tick.
    Tick: (_, "__tick"), 0..=0, Ty::int();
    /// KeyError for a missing key.
    KeyError: (Atom::Object(_), "__key_error"), 1..=1, Ty::never();
    /// The index of the member that a Symbol names, or -1.
    Place: (Atom::Object(_), "__place"), 1..=1, Ty::int();
    /// The name of the member at an index in range, a Symbol.
    MemberName: (Atom::Object(_), "__member_name"), 1..=1, Ty::sym();
}

impl Builtin {
    /// The arguments that Ruby converts to Integers, or compares with numbers.
    pub fn whole_numbers(self, args: &[Atom]) -> &[Atom] {
        use Builtin::*;
        match self {
            Rand(_) | ArrayGet | ArrayAt | ArrayFirst | ArrayLast | Buffer | Alike | TakeOf | RangeFirst
            | RangeLast | RangeMin | RangeMax | RangeCover | RangeStep | AsInt | AsCInt | StructGet | ToFloat
            | ToInteger => args,
            Primitive(
                self::Primitive::Byte
                | self::Primitive::View
                | self::Primitive::NewText
                | self::Primitive::SetByte
                | self::Primitive::Coded,
            ) => args,
            ArraySet | ArrayPut | StructSet => &args[..args.len().saturating_sub(1)],
            _ => &[],
        }
    }
}

/// A method of Comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ordered {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Between,
    Clamp,
}

impl Builtin {
    /// The method for this number of arguments.
    pub fn with_arguments(self, count: usize) -> Self {
        match self {
            Self::Numeric(Method::PowMod) if count == 1 => Self::Numeric(Method::Pow),
            other => other,
        }
    }
    /// Whether it runs a block repeatedly.
    pub fn iterates(self) -> bool {
        use Builtin::*;
        matches!(
            self,
            Loop | Times
                | Upto
                | Downto
                | Step
                | RangeEach
                | RangeReverseEach
                | RangeEachWithIndex
                | RangeStep
                | ArrayEach
                | ArrayEachWithIndex
                | ArrayEachIndex
                | ArrayReverseEach
        )
    }

    /// The number of positional arguments of a method, by the name that it is called by.
    pub fn arity_by_name(self, name: &str) -> std::ops::RangeInclusive<usize> {
        match (self, name) {
            (Self::RangeStep, "%") => 1..=1,
            _ => self.arity(),
        }
    }

    /// The number of positional arguments.
    pub fn arity(self) -> std::ops::RangeInclusive<usize> {
        use Builtin::*;
        match self {
            Numeric(m) => m.arity(),
            Math(m) => m.arity(),
            Primitive(p) => p.arity(),
            Equal
            | NotEqual
            | Identical
            | CaseEqual
            | Compare
            | SameReference
            | Kin
            | Kinds
            | ArrayEqual
            | ArrayEql
            | ArrayCompare
            | StructEqual
            | StructEql
            | StructGet
            | IsA
            | InstanceOf
            | BoolAnd
            | BoolOr
            | BoolXor
            | ModuleCase
            | Compose { .. }
            | Upto
            | Downto
            | RangeCover
            | ArrayGet
            | ToFloat
            | ToInteger => 1..=1,
            RespondTo => 1..=2,
            Answers | IsOwn | RegexpGroupNamed | RegexpGroupName => 1..=1,
            RangeStep => 0..=1,
            ArraySet | StructSet | Ordered(self::Ordered::Between) => 2..=2,
            Ordered(self::Ordered::Clamp) => 1..=2,
            Ordered(_) => 1..=1,
            ProcCall
            | Send { .. }
            | MethodMissing
            | MakeProc
            | Curry
            | Refuse(..)
            | New
            | StructInitialize
            | DataWith
            | MakeValue
            | Staged
            | OfRange => 0..=usize::MAX,
            ArrayAt | Uncomparable | Uncoercible | Doubt | IvarGet | StrEqual | StrCompare | AsText | AsInt
            | AsCInt => 1..=1,
            ArrayPut => 2..=2,
            Grown | Buffer | Alike | TakeOf | OneLevel | Unconverted(_) | NeedsArray => 1..=1,
            MakeHash => hashes::MADE_PARTS.len()..=hashes::MADE_PARTS.len(),
            IvarSet => 2..=2,
            HasKeys => 0..=1,
            Member => 1..=1,
            Rand(_) => 0..=1,
            Single => 1..=1,
            Step => 0..=2,
            Raise => 0..=3,
            _ => 0..=0,
        }
    }
}

/// The builtin for a method name of a receiver, where `owner` is the class or module that defines the method (not
/// redefined).
pub fn find(atom: Atom, owner: &str, name: &str) -> Option<Builtin> {
    use Builtin::*;
    if owner == "Hash" {
        // its other methods are in the prelude; those of every object would compare identities
        return None;
    }
    let own = match atom {
        Atom::Int | Atom::Float => {
            let iterator = match (atom, name) {
                (Atom::Int, "times") => Some(Times),
                (Atom::Int, "upto") => Some(Upto),
                (Atom::Int, "downto") => Some(Downto),
                (_, "step") => Some(Step),
                _ => None,
            };
            iterator.or_else(|| Method::find(Kind::of(atom), name).map(Numeric))
        }
        Atom::Nil => match name {
            "to_i" => Some(NilToInt),
            "to_f" => Some(NilToFloat),
            "&" => Some(BoolAnd),
            "|" => Some(BoolOr),
            "^" => Some(BoolXor),
            _ => None,
        },
        Atom::True | Atom::False => match name {
            "&" => Some(BoolAnd),
            "|" => Some(BoolOr),
            "^" => Some(BoolXor),
            _ => None,
        },
        Atom::Sym => (name == "to_sym").then_some(Itself),
        Atom::Str => match (owner, name) {
            (_, "==" | "===" | "eql?") => Some(StrEqual),
            (_, "<=>") => Some(StrCompare),
            (_, "bytesize") => Some(StrBytes),
            (_, "to_s" | "to_str") => Some(Itself),
            ("Comparable", name) => comparable(name),
            _ => None,
        },
        Atom::IntRange | Atom::FloatRange => match name {
            "each" => Some(RangeEach),
            "reverse_each" => Some(RangeReverseEach),
            "each_with_index" => Some(RangeEachWithIndex),
            "step" | "%" => Some(RangeStep),
            "first" | "begin" => Some(RangeFirst),
            "end" | "last" => Some(RangeLast),
            "min" => Some(RangeMin),
            "max" => Some(RangeMax),
            "size" => Some(RangeSize),
            "include?" | "member?" | "cover?" | "===" => Some(RangeCover),
            "exclude_end?" => Some(RangeExcludesEnd),
            _ => None,
        },
        Atom::Array(_) => match name {
            "[]" | "at" => Some(ArrayGet),
            "[]=" => Some(ArraySet),
            "size" | "length" => Some(ArraySize),
            "empty?" => Some(ArrayIsEmpty),
            "first" => Some(ArrayFirst),
            "last" => Some(ArrayLast),
            "each" => Some(ArrayEach),
            "each_with_index" => Some(ArrayEachWithIndex),
            "each_index" => Some(ArrayEachIndex),
            "reverse_each" => Some(ArrayReverseEach),
            "==" | "===" => Some(ArrayEqual),
            "eql?" => Some(ArrayEql),
            "<=>" => Some(ArrayCompare),
            _ => None,
        },
        Atom::Module(_) => match (owner, name) {
            ("Math" | "Integer", _) if Function::find(owner, name).is_some() => Function::find(owner, name).map(Math),
            ("Ikra", "tick") => Some(Tick),
            ("Ikra", "index") => Some(Index),
            ("Ikra", "__single") => Some(Single),
            ("Ikra", "__staged") => Some(Staged),
            ("Kernel", "rand") => Some(Rand(numeric::Rand::Kernel)),
            ("Random" | "Random::Formatter", "rand") => Some(Rand(numeric::Rand::Random)),
            (_, "===") => Some(ModuleCase),
            ("Class" | "Array" | "String", "new") | ("Struct" | "Data", "new" | "[]") => Some(New),
            ("Class", "allocate") => Some(Allocate),
            _ => None,
        },
        Atom::Regexp(_) => match name {
            "nil?" | "!" | "is_a?" | "kind_of?" | "instance_of?" | "class" | "itself" => None,
            "freeze" => Some(Itself),
            _ => return None,
        },
        Atom::Proc(_) => match name {
            "call" | "()" | "yield" | "===" | "[]" => Some(ProcCall),
            ">>" => Some(Compose { receiver_first: true }),
            "<<" => Some(Compose { receiver_first: false }),
            "to_proc" => Some(Itself),
            "lambda?" => Some(IsLambda),
            "curry" => Some(Curry),
            "arity" => Some(ProcArity),
            "nil?" | "!" | "method" | "is_a?" | "kind_of?" | "instance_of?" | "class" | "itself" => None,
            // a Proc's identity is not a value in kernels
            _ => return None,
        },
        Atom::Object(_) => match (owner, name) {
            ("Struct", "[]") => Some(StructGet),
            ("Struct", "[]=") => Some(StructSet),
            ("Struct" | "Data", "initialize") => Some(StructInitialize),
            ("Data", "with") => Some(DataWith),
            ("Struct", "size" | "length") => Some(StructSize),
            ("Struct" | "Data", "==") => Some(StructEqual),
            ("Struct" | "Data", "eql?") => Some(StructEql),
            ("Comparable", name) => comparable(name),
            ("Kernel", "===") => Some(CaseEqual),
            ("BasicObject" | "Object", "initialize") => Some(Initialize),
            _ => None,
        },
        Atom::Exception => match name {
            "message" | "to_s" => Some(Message),
            "nil?" | "!" | "==" | "!=" | "is_a?" | "kind_of?" | "instance_of?" | "itself" => None,
            _ => return None,
        },
    };
    own.or(match name {
        "nil?" => Some(IsNil),
        "!" => Some(Not),
        "==" | "===" | "eql?" => Some(Equal),
        "!=" => Some(NotEqual),
        "<=>" if owner == "Kernel" => Some(Compare),
        "equal?" => Some(Identical),
        "is_a?" | "kind_of?" => Some(IsA),
        "instance_of?" => Some(InstanceOf),
        "respond_to?" => Some(RespondTo),
        "class" => Some(ClassOf),
        "itself" => Some(Itself),
        "frozen?" => Some(IsFrozen),
        // frozen from the start, and never copied
        "freeze" | "dup" if is_immutable(atom) => Some(Itself),
        "freeze" if matches!(atom, Atom::IntRange | Atom::FloatRange | Atom::Object(well_known::RANGE)) => Some(Itself),
        "freeze" if matches!(atom, Atom::Object(_) | Atom::Array(_)) => Some(Freeze),
        "rand" => Some(Rand(numeric::Rand::Kernel)),
        "loop" => Some(Loop),
        "lambda" | "proc" | "method" => Some(MakeProc),
        "block_given?" => Some(BlockGiven),
        "method_missing" => Some(MethodMissing),
        "instance_variable_get" => Some(IvarGet),
        "instance_variable_set" => Some(IvarSet),
        "send" | "__send__" => Some(Send { public: false }),
        "public_send" => Some(Send { public: true }),
        "Float" => Some(ToFloat),
        "Integer" => Some(ToInteger),
        "raise" | "fail" => Some(Raise),
        _ => None,
    })
}

/// Whether such a value is frozen from the start, and `dup` and `clone` return the value itself.
pub fn is_immutable(atom: Atom) -> bool {
    match atom {
        Atom::Object(class) => matches!(class, well_known::COMPLEX | well_known::RATIONAL),
        atom => matches!(atom, Atom::Nil | Atom::True | Atom::False | Atom::Int | Atom::Float | Atom::Sym),
    }
}

/// A method of Comparable, for a class with its own `<=>`.
fn comparable(name: &str) -> Option<Builtin> {
    Some(Builtin::Ordered(match name {
        "==" => Ordered::Equal,
        "<" => Ordered::Less,
        "<=" => Ordered::LessOrEqual,
        ">" => Ordered::Greater,
        ">=" => Ordered::GreaterOrEqual,
        "between?" => Ordered::Between,
        "clamp" => Ordered::Clamp,
        _ => return None,
    }))
}

/// Primitives of the prelude and of patterns. No user program can have such names.
pub fn primitive(atom: Atom, name: &str) -> Option<Builtin> {
    match (atom, name) {
        (Atom::Array(_), "__at") => Some(Builtin::ArrayAt),
        (Atom::Array(_), "__size") => Some(Builtin::ArraySize),
        (Atom::Str, "__text") => Some(Builtin::AsText),
        (Atom::Str, "__to_text" | "__piece" | "__joinable") => Some(Builtin::Itself),
        (_, "__piece") => {
            Some(Builtin::Refuse("kernels interpolate what to_s gives as a String only", "let to_s return a String"))
        }
        (_, "__copy") => Some(Builtin::Copy),
        (_, "__copied?") => Some(Builtin::IsCopied),
        (Atom::Object(_) | Atom::Array(_), "__freeze") => Some(Builtin::Freeze),
        (_, "__frozen?") => Some(Builtin::IsFrozen),
        (_, "__freeze_form") => {
            Some(Builtin::Refuse("kernels know clone with freeze: true, false and nil only", "give one of these"))
        }
        (Atom::Str, "__freezes_text") => Some(Builtin::StrRefuse(
            "kernels do not freeze a String that others may hold: write clone(freeze: true), or freeze it before",
        )),
        (_, "__int") => Some(Builtin::AsInt),
        (_, "__c_int") => Some(Builtin::AsCInt),
        (_, "__draw") => Some(Builtin::Rand(numeric::Rand::Random)),
        (_, "__many_places") => {
            Some(Builtin::StrRefuse("kernels round Floats to 14 digits at most, as more take Rationals beyond 64 bits"))
        }
        (_, "__rounding_mode") => Some(Builtin::StrRefuse("kernels know half: :up, :even, :down and nil only")),
        (_, "__complex_power") => {
            Some(Builtin::StrRefuse("kernels make no Complex of Rationals, which this power of one of Integers is"))
        }
        (_, "__separator") => {
            Some(Builtin::StrRefuse("kernels know chunk by keys that are no Symbols: some of these are no keys"))
        }
        (_, "__hexadecimal") => Some(Builtin::StrRefuse("kernels read no Floats with hexadecimal digits")),
        (Atom::Str, "__disagree") => Some(Builtin::StrRefuse(
            "kernels do not mix Strings of different encodings that have more than ASCII in them",
        )),
        (Atom::Str, "__broken") => Some(Builtin::StrRefuse("kernels do not do this with parts of characters")),
        (Atom::Str, "__upper_table") => Some(Builtin::CaseTable(Change::Upper)),
        (Atom::Str, "__lower_table") => Some(Builtin::CaseTable(Change::Lower)),
        (Atom::Str, "__title_table") => Some(Builtin::CaseTable(Change::Title)),
        (Atom::Str, "__swap_table") => Some(Builtin::CaseTable(Change::Swap)),
        (Atom::Str, "__fold_table") => Some(Builtin::CaseTable(Change::Fold)),
        (Atom::Str, "__case_form") => {
            Some(Builtin::Refuse("kernels do not know this option of a change of case", "leave it out"))
        }
        (Atom::Str, "__backwards_form") => Some(Builtin::Refuse(
            "kernels look for a regular expression from the beginning only",
            "take the last of text.scan(/…/), or look for a String",
        )),
        (Atom::Str, "__codepoint_form") => {
            Some(Builtin::StrRefuse("kernels append characters of ASCII by their numbers only"))
        }
        (Atom::Str, "__set_form") => Some(Builtin::StrRefuse(
            "kernels know one or two sets of characters here, in the text's encoding, whose ranges ascend; a text in ASCII \
             takes tr(\"^…\", other) with characters of ASCII only",
        )),
        (Atom::Int, "__chr_form") => {
            Some(Builtin::Refuse("kernels know chr of bytes only, without an encoding", "choose between literals"))
        }
        (Atom::Str, "__line_form") => {
            Some(Builtin::Refuse("kernels know lines that end with a newline only", "write split with this separator"))
        }
        (Atom::Str, "__block_form_of_split") => {
            Some(Builtin::Refuse("kernels do not know split with a block", "write split(…).each { |part| … }"))
        }
        (_, "__own?") => Some(Builtin::IsOwn),
        (Atom::Sym, "__symbol_form") => Some(Builtin::StrRefuse("kernels do not know the text of this Symbol")),
        (_, "__format_form") => Some(Builtin::StrRefuse(
            "kernels format numbers, Strings, nil, true and false by a literal with %d %x %o %b %f %s %c, and no negative \
             numbers by %x",
        )),
        (Atom::Str, "__substitution_form") => Some(Builtin::StrRefuse(
            "kernels replace what matches by a String, or by what a block gives: they know no Hashes here",
        )),
        (_, "__reference_form") => Some(Builtin::StrRefuse(
            "kernels know \\0 to \\9, \\&, \\` and \\' in a replacement, and groups of a regular expression that is one-pass",
        )),
        (Atom::Array(_), "__joinable") => Some(Builtin::Refuse(
            "kernels join no Arrays of Arrays",
            "write list.map { |inner| inner.join(…) }.join(…)",
        )),
        (Atom::Str, "__many_digits") => Some(Builtin::StrRefuse("kernels read Floats of up to 50 digits")),
        (Atom::Regexp(_), "__table") => Some(Builtin::RegexpTable(Table::Forward)),
        (Atom::Regexp(_), "__anchored_table") => Some(Builtin::RegexpTable(Table::Anchored)),
        (Atom::Regexp(_), "__reverse_table") => Some(Builtin::RegexpTable(Table::Reverse)),
        (Atom::Regexp(_), "__captures_table") => Some(Builtin::RegexpTable(Table::Captures)),
        (Atom::Regexp(_), "__groups?") => Some(Builtin::RegexpHasGroups),
        (Atom::Regexp(_), "__ascii?") => Some(Builtin::RegexpIsAscii),
        (Atom::Regexp(_), "__one_pass?") => Some(Builtin::RegexpIsOnePass),
        (Atom::Regexp(_), "__numbered?") => Some(Builtin::RegexpIsNumbered),
        (Atom::Regexp(_), "__group_named") => Some(Builtin::RegexpGroupNamed),
        (Atom::Regexp(_), "__group_name") => Some(Builtin::RegexpGroupName),
        (Atom::Object(well_known::MATCH_DATA), "__compared_match") => {
            Some(Builtin::Refuse("kernels compare no MatchData", "compare their groups, captures or to_a"))
        }
        (_, "__no_group") => {
            Some(Builtin::StrRefuse("kernels know no group of this name, for which Ruby raises IndexError"))
        }
        (Atom::Regexp(_), "__groups") => Some(Builtin::RegexpGroups),
        (_, "__pattern_form") => {
            Some(Builtin::Refuse("kernels match with a Regexp only", "write a literal: text.match?(/…/)"))
        }
        (_, "__group_form") => Some(Builtin::Refuse(
            "kernels know groups by their numbers and by Symbols only",
            "count its parenthesis, as in text[/…/, 1], or write text[/…/, :name]",
        )),
        (_, "__no_match_form") => Some(Builtin::Refuse(
            "kernels do not know which match this variable means",
            "read it right after text =~ /…/, or write text[/…/, 1]",
        )),
        (_, "__pattern_text") => {
            Some(Builtin::Refuse("kernels match Strings only", "write text.to_s, or choose Symbols with case … when"))
        }
        (Atom::Str, "__ascii_form") => Some(Builtin::StrRefuse(
            "kernels match this regular expression with text in ASCII only, as some of its letters may be one where case is \
             ignored, as in ß for ss",
        )),
        (Atom::Str, "__binary_form") => {
            Some(Builtin::StrRefuse("kernels match regular expressions with text in UTF-8 or ASCII only"))
        }
        (Atom::Module(class), "__make") if values::is_value(class) => Some(Builtin::MakeValue),
        (Atom::Int | Atom::Float, "__part") => Some(Builtin::Itself),
        (Atom::Int | Atom::Object(well_known::RATIONAL), "__exact") => Some(Builtin::Itself),
        (Atom::Object(well_known::RATIONAL), "__rational_exponent") => {
            Some(Builtin::Refuse("kernels know ** of a Rational with Integers and Floats only", "write to_f"))
        }
        (_, "__sum_form") => {
            Some(Builtin::Refuse("kernels do not know sum of Rationals from a Float on", "write .to_f in sum's block"))
        }
        (_, "__clamp_form") => {
            Some(Builtin::Refuse("kernels know clamp of Rationals with two arguments only", "write clamp(min, max)"))
        }
        (_, "__no_tag") => Some(Builtin::Refuse(
            "kernels do not know catch without a tag",
            "give it a Symbol: catch(:done) { … throw :done }",
        )),
        (_, "__uncoercible") => Some(Builtin::Uncoercible),
        (Atom::Array(_), "__put") => Some(Builtin::ArrayPut),
        (Atom::Array(_), "__take") => Some(Builtin::TakeOf),
        (_, "__buffer") => Some(Builtin::Buffer),
        (Atom::Array(_), "__alike") => Some(Builtin::Alike),
        (_, "__make_hash") => Some(Builtin::MakeHash),
        (_, "__pair_form") => Some(Builtin::StrRefuse("kernels know to_h of Arrays of a key and a value only")),
        (_, "__needs_hash") => Some(Builtin::StrRefuse("kernels merge and compare Hashes with Hashes only")),
        (_, "__dup_form") => Some(Builtin::StrRefuse("kernels do not copy a Hash that has a block")),
        (_, "__default_form") => Some(Builtin::StrRefuse("kernels give no other default to a Hash that has a block")),
        (_, "__shift_form") => Some(Builtin::StrRefuse("kernels do not know shift of a Hash that is gone over")),
        (Atom::Object(class), "__block") if well_known::is_made_hash(class) => Some(Builtin::HashBlock),
        (Atom::Object(class), "__lend") if well_known::is_made_hash(class) => Some(Builtin::HashLend),
        (Atom::Object(class), "__lent?") if well_known::is_made_hash(class) => Some(Builtin::HashLent),
        (Atom::Object(class), "__stores_list?") if well_known::is_made_hash(class) => Some(Builtin::HashStoresList),
        (Atom::Array(_), "__grown") => Some(Builtin::Grown),
        (_, "__lent_form") => Some(Builtin::StrRefuse(
            "kernels append to lists in a Hash only before they are read: others may hold these",
        )),
        (_, "__moved_form") => {
            Some(Builtin::StrRefuse("kernels do not append to a list in a Hash what changes this Hash or the list"))
        }
        (_, "__or_form") => {
            Some(Builtin::StrRefuse("kernels do not know (h[k] ||= []) << x of a Hash that has a default or a block"))
        }
        (_, "__needs_array") => Some(Builtin::NeedsArray),
        (_, "__one_level") => Some(Builtin::OneLevel),
        (_, "__no_list") => Some(Builtin::Unconverted("to_ary")),
        (_, "__no_text") => Some(Builtin::Unconverted("to_str")),
        (_, "__no_order") => Some(Builtin::Unconverted("<=>")),
        (_, "__sum_of_object") => Some(Builtin::Refuse(
            "kernels do not know sum of numbers from such a start on",
            "write inject(start) { |a, b| a + b }",
        )),
        (Atom::Array(_), "__resized") => Some(Builtin::StrRefuse(
            "this assignment to a part changes the length of an array that others may hold, which kernels do not",
        )),
        (_, "__cover_form") => {
            Some(Builtin::Refuse("kernels do not know whether a Range has a Complex", "compare its real part"))
        }
        (_, "__cons_form") => Some(Builtin::Refuse(
            "kernels do not know each_cons of a Range that begins with a Float",
            "a Range of Floats has no elements",
        )),
        (_, "__block_form") => Some(Builtin::Refuse(
            "this method without a block gives an Enumerator, which kernels do not know",
            "give it a block",
        )),
        (_, "__member_parts") => {
            Some(Builtin::Refuse("kernels do not know values_at of a Struct with a Range", "write to_a.values_at(…)"))
        }
        (_, "__no_member_text") => {
            Some(Builtin::Refuse("kernels do not know members of Structs by a String", "write the name as a Symbol"))
        }
        (_, "__no_range") => Some(Builtin::NoRange),
        (_, "__keyed") => Some(Builtin::Lacks("eql?", "hash")),
        (_, "__fill_form") => {
            Some(Builtin::Refuse("kernels do not know this form of fill", "write the elements in a loop"))
        }
        (_, "__base_form") => Some(Builtin::Refuse("kernels know a base for Strings only", "leave the base out")),
        (_, "__no_limit") => Some(Builtin::Refuse("kernels do not know step without a limit", "use loop")),
        (_, "__nth") if !matches!(atom, Atom::Array(_) | Atom::IntRange) => Some(Builtin::Refuse(
            "kernels know zip with Arrays and Ranges of Integers only",
            "write .to_a where there is one",
        )),
        (_, "__hash") if !matches!(atom, Atom::Str | Atom::Array(_)) => Some(Builtin::KeyHash),
        // those of a Hash are in the prelude
        (Atom::Object(class), "__keys?" | "__member" | "__key_count") if well_known::is_hash(class) => None,
        (Atom::Object(_), "__member") => Some(Builtin::Member),
        (Atom::Object(_), "__key_count") => Some(Builtin::KeyCount),
        (Atom::Object(_), "__size") => Some(Builtin::StructSize),
        (Atom::Array(_), "__unwritten?") => Some(Builtin::Unwritten),
        (Atom::Array(_), "__floats?") => Some(Builtin::ElementsAre(Prims::FLOAT)),
        (Atom::Array(_), "__ints?") => Some(Builtin::ElementsAre(Prims::INT)),
        (Atom::Object(_), "__at") => Some(Builtin::StructGet),
        (_, "__answers?") => Some(Builtin::Answers),
        (_, "__list?") => Some(Builtin::IsList),
        (Atom::Nil, "__patterns") | (_, "__nil?") => Some(Builtin::IsNil),
        (_, "__keys?") => Some(Builtin::HasKeys),
        (_, "__no_match") => Some(Builtin::NoMatch),
        (_, "__uncomparable") => Some(Builtin::Uncomparable),
        (_, "__doubt") => Some(Builtin::Doubt),
        _ => Primitive::find(atom, name).map(Builtin::Primitive),
    }
}

/// The advice for a method of Ruby's own that kernels do not know.
pub fn instead(owner: &str, name: &str) -> &'static str {
    match (owner, name) {
        ("Kernel", "puts" | "p" | "print" | "pp" | "printf" | "putc" | "warn") => {
            "give the value as pmap's result, and print it afterwards"
        }
        ("Exception", _) => {
            "ask an exception for its class (is_a?, kind_of?, instance_of?, case … when) and its message, or raise it again"
        }
        ("Kernel", "sleep" | "gets" | "open" | "system" | "require" | "exit" | "abort" | "trap" | "fork") => {
            "do it before or after the section"
        }
        ("Time" | "Process", "now" | "clock_gettime") => "read the clock before the section, into a local variable",
        ("Kernel", "eval" | "binding" | "caller") | ("BasicObject" | "Kernel", "instance_eval" | "instance_exec") => {
            "write out what is to run: kernels are compiled before they run"
        }
        ("Kernel", "object_id" | "hash") => "compare objects with equal? or ==, or give each a number of its own",
        ("Kernel", "Array") => "write to_a, or [x]",
        ("Kernel" | "Numeric", "dup" | "clone") => "make a new object with new, from what the other has",
        ("Kernel" | "String", "freeze") => "freeze it before or after the section",
        ("Kernel", "singleton_class" | "extend" | "define_singleton_method") => {
            "define methods and include modules before the section"
        }
        ("Kernel", "instance_variables" | "methods") => "name what you want: the block can read and call it by name",
        ("Thread", _) => "leave it out: the elements of a section run at the same time by themselves",
        (
            "Array",
            "select!" | "filter!" | "reject!" | "keep_if" | "delete_if" | "compact!" | "uniq!" | "flatten!" | "slice!"
            | "delete" | "delete_at" | "replace" | "prepend" | "unshift" | "insert",
        ) => "assign a new array, which the method without ! or + makes: list = list.reject { … }",
        ("Array" | "Enumerable", "chunk" | "chunk_while" | "slice_when" | "slice_before" | "slice_after") => {
            "kernels make no Enumerators: call to_a, map, each or another method of Enumerable on it at once"
        }
        ("Array", "pack") => "give the array as pmap's result, and pack it afterwards",
        ("Symbol" | "String", "to_proc") => "write a block: { |x| x.name }",
        ("Symbol", "upcase" | "downcase" | "capitalize" | "swapcase" | "succ" | "next")
        | ("String", "to_sym" | "intern") => {
            "keep the String: kernels make no new Symbols; make them of the results, after the section"
        }
        ("Symbol", _) => "ask its to_s",
        ("Array" | "Enumerable", "to_set" | "lazy") => {
            "kernels make no lazy chains: give the values as pmap's result, and do it afterwards"
        }
        ("ObjectSpace" | "GC", _) => "ask before or after the section",
        ("Module", "define_method" | "class_eval" | "module_eval" | "const_set" | "include" | "attr_accessor") => {
            "define methods, constants and classes before the section"
        }
        ("Module", _) => "ask the class before the section, into a local variable",
        ("Array", "<<" | "push" | "append" | "pop" | "shift" | "concat" | "clear") => {
            "take pmap's result (pselect, pfilter_map or pflat_map, where it has fewer or more elements), or give the array \
             its length before the section, and write its elements by index"
        }
        ("Array" | "Enumerable" | "Range", "map" | "select" | "reject") => "write the loop with each and a variable",
        ("String", "<<" | "concat" | "prepend" | "replace" | "insert" | "setbyte" | "clear" | "[]=") => {
            "kernels change no String, which others may hold: make a new one with + or interpolation"
        }
        ("String", name) if name.ends_with('!') => {
            "kernels change no String, which others may hold: assign what the method without ! gives"
        }
        ("String", "%") | (_, "format" | "sprintf") => {
            "write a literal format with %d %x %o %b %f %s %p %c, %<name>d or %{name}, the flags - 0 + and space, a width, \
             places for %f and %s, and a value for each of them"
        }
        ("String", _) => "do it before or after the section",
        ("Hash", "[]=" | "store") => {
            "kernels look Hashes up; a section's own block may accumulate into one that a local variable around it holds, \
             as by counts[key] += 1"
        }
        ("Hash", _) => "write it out with each { |key, value| … }, select, merge or what docs/language.md lists",
        ("Struct" | "Data", _) => "read the members by name",
        ("Complex", _) => "compute with its parts",
        ("Rational", _) => "compute with numerator and denominator, or with to_f",
        (_, "to_s" | "inspect" | "name") => "give the value itself, and make the String afterwards",
        (_, "to_a" | "digits" | "to_r" | "to_c" | "rationalize") => "keep to Integers and Floats",
        _ => "write out what it does, with what docs/language.md lists",
    }
}
