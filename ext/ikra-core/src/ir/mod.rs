//! The intermediate representation: a typed, structured program over scalars and columns in which every rule of Ruby
//! is already explicit.
//!
//! Here: the data types. `build` makes programs, `print` and `parse` are their text form, `verify` checks the contract
//! below, `effects` summarises reads and writes. Not here: Ruby's types (a union is two registers by now), and how a
//! column's address is computed ([`crate::layout`]).
//!
//! # Contract
//!
//! * Registers ([`Var`]) are mutable, typed, and read only after they were assigned on every path.
//! * A statement does one thing; its operands are registers and constants. No operation but [`Stmt::Checked`],
//!   [`Stmt::Trap`], [`Stmt::Poll`], [`Stmt::Begin`], [`Stmt::Alloc`], [`Stmt::Atomic`] with a site, and a call of a
//!   function that has one of these can end a job early.
//! * Rows that [`Stmt::Alloc`] takes hold anything until they are stored. Backends know no `Alloc`: the last pass
//!   (`passes::expand`) makes it arithmetic on counters.
//! * `Break(label)` leaves the enclosing `Block` or `Loop` of that label; a `Loop` repeats when its body's end is
//!   reached. Nothing follows a `Break`, `Return` or `Trap` in the same list.
//! * Integer division, remainder, shifts and float-to-integer conversion have preconditions (stated at [`Op`]); the
//!   program itself tests them first.
//! * The entry function takes `(job: I64, tick_begin: I64, tick_end: I64)` and returns nothing. A backend calls it once
//!   for every job of a launch, in any order, with `tick_begin < tick_end`.

pub mod build;
pub mod effects;
pub mod eval;
pub mod filled;
pub mod lower;
pub mod parse;
pub mod print;
pub mod privatized;
#[cfg(test)]
pub(crate) mod random;
pub mod stages;
#[cfg(test)]
pub(crate) mod testing;
pub mod ticks;
pub mod verify;
pub mod visit;

use crate::id::{ArrayKind, define_id};
use crate::layout::schema::Schema;
pub use crate::types::Storage;
pub use crate::world::{SMALL_INT_LIMIT, SMALL_ROWS};
use std::sync::Arc;

define_id!(
    /// A register of a function.
    VarId, "v"
);
define_id!(
    /// A function of a program.
    FuncId, "f"
);
define_id!(
    /// A `Block` or `Loop` of a function.
    LabelId, "L"
);
define_id!(
    /// A column of a program.
    ColumnId, "c"
);
define_id!(
    /// A launch parameter of a program.
    ParamId, "p"
);
define_id!(
    /// A place from which a program takes new rows.
    HeapId, "h"
);
define_id!(
    /// A place that can raise, with what it raises.
    SiteId, "s"
);

/// Type of a register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scalar {
    Bool,
    /// Tags (signed compare) and object ids (unsigned compare).
    I32,
    I64,
    F64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    Var(VarId),
    Bool(bool),
    I32(i32),
    I64(i64),
    /// The bits of a Float.
    F64(u64),
}

impl Operand {
    pub fn float(value: f64) -> Self {
        Operand::F64(value.to_bits())
    }
}

impl Operand {
    /// Zero, or false.
    pub fn zero(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Bool => Operand::Bool(false),
            Scalar::I32 => Operand::I32(0),
            Scalar::I64 => Operand::I64(0),
            Scalar::F64 => Operand::F64(0),
        }
    }
}

impl From<VarId> for Operand {
    fn from(v: VarId) -> Self {
        Operand::Var(v)
    }
}

/// Comparison; on floats all but `Ne` are false when a side is NaN.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Functions of libm. On the CPU they are the same libm that Ruby calls.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MathFn {
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Atan2,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Exp,
    Log,
    Log2,
    Log10,
    Cbrt,
    Hypot,
    Erf,
    Erfc,
    Pow,
    Tgamma,
    Lgamma,
    Ldexp,
}

impl MathFn {
    /// How many F64 arguments it takes (`Ldexp`: F64 and I64).
    pub fn arity(self) -> usize {
        match self {
            MathFn::Atan2 | MathFn::Hypot | MathFn::Pow | MathFn::Ldexp => 2,
            _ => 1,
        }
    }
}

/// What the running element knows of itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ctx {
    /// Number of the tick, from 0. I64.
    Tick,
    /// Index in the user's array. I64.
    Index,
    /// Number of the thread, among those that run jobs at the same time: less than the launch's `slots`. I64.
    Slot,
}

/// A pure operation, except `Random`, which advances the element's draw counter. Argument and result types in
/// parentheses; integer operations work on I64 and on I32 alike, both operands and result of one type, wrapping.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// (any) → same
    Copy,
    Add,
    Sub,
    Mul,
    /// High 64 bits of the signed 128-bit product. (I64, I64) → I64
    MulHi,
    /// High 64 bits of the unsigned 128-bit product. (I64, I64) → I64
    UMulHi,
    /// Truncating; the divisor is not 0, and not -1 where the dividend is the least integer.
    Div,
    /// Sign of the dividend; precondition as `Div`.
    Rem,
    /// Unsigned, divisor not 0.
    UDiv,
    URem,
    /// Signed 128-bit product modulo: `(a * b) floored-mod m` for m > 0. (I64, I64, I64) → I64
    MulMod,
    /// `(a + b) floored-mod m` in 128 bits for m > 0. (I64, I64, I64) → I64
    AddMod,
    /// Bitwise, also on Bool.
    And,
    Or,
    Xor,
    /// Shift amount in 0..=63 (I64) or 0..=31 (I32), of the same type.
    Shl,
    Shr,
    /// Logical shift right.
    UShr,
    /// Number of leading zero bits. I64 → I64
    Clz,
    /// Signed comparison of I64, I32; `Eq` and `Ne` also of Bool. → Bool
    ICmp(Cmp),
    /// Unsigned comparison. → Bool
    UCmp(Cmp),
    FCmp(Cmp),
    FAdd,
    FSub,
    FMul,
    FDiv,
    FNeg,
    FAbs,
    FSqrt,
    FFloor,
    FCeil,
    FTrunc,
    /// To nearest, ties to even (`rint` in the default mode).
    FRint,
    /// To nearest, ties away from zero (C's `round`).
    FRound,
    /// To nearest among Floats of 32 bits, ties to even. What `+ - * /` and the square root of such Floats give, rounded by it,
    /// is what arithmetic of 32 bits gives: 53 bits are at least twice 24 and two more, so rounding twice does no harm
    /// (Figueroa, When is double rounding innocuous?, 1995).
    FSingle,
    /// C's `fmod`, exact.
    FRem,
    /// C's `nextafter` towards the second argument.
    FNextAfter,
    /// Magnitude of the first, sign of the second.
    FCopySign,
    Math(MathFn),
    /// Rounds to nearest. I64 → F64
    IntToFloat,
    /// Truncates; the value is within I64. F64 → I64
    FloatToInt,
    /// F64 → I64, the bits
    FloatBits,
    /// I64 → F64, the bits
    FloatFromBits,
    /// I32 → I64, zero-extended
    Widen,
    /// I64 → I32, low bits
    Narrow,
    /// Bool → I64 or I32 by the destination
    BoolToInt,
    /// Bool → Bool
    Not,
    /// (Bool, any, same) → same
    Select,
    Ctx(Ctx),
    /// 64 random bits: words 0 (low) and 1 (high) of Philox4x32-10 with key = seed and counter (section, tick, index,
    /// draw), where draw counts the element's draws within the tick. → I64
    Random,
    /// A launch parameter, of its declared type.
    Param(ParamId),
}

/// Arithmetic that traps when the result leaves I64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CheckedOp {
    Add,
    Sub,
    Mul,
    /// Bits that both have, read as an unsigned number: beyond I64 where the highest is set.
    And,
}

/// Read-modify-write of a slot that several elements may touch, I64 but for `FAdd`, whose slot is F64. `Add` traps at its
/// site when it overflows. The order of `FAdd`s is not fixed, and so not their rounding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AtomicOp {
    Add,
    FAdd,
    Min,
    Max,
    And,
    Or,
    Xor,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    Let {
        dst: VarId,
        op: Op,
        args: Vec<Operand>,
    },
    Checked {
        dst: VarId,
        op: CheckedOp,
        args: [Operand; 2],
        site: SiteId,
    },
    /// `row` is an object id (I32) in a class space, an index (I64) in every other.
    Load {
        dst: VarId,
        column: ColumnId,
        row: Operand,
    },
    Store {
        column: ColumnId,
        row: Operand,
        value: Operand,
    },
    Atomic {
        op: AtomicOp,
        column: ColumnId,
        row: Operand,
        value: Operand,
        site: Option<SiteId>,
    },
    /// What an I64 slot that all jobs share held; adds `value` to it, wrapping.
    FetchAdd {
        dst: VarId,
        column: ColumnId,
        row: Operand,
        value: Operand,
    },
    /// The first of `count` (I64, not negative) new rows in a row, which are nobody else's: an id (I32) in a class
    /// space, an index (I64) in a space of arrays. Traps at `site`, a [`Trap::Grow`], with the number of rows that
    /// would have been enough so far.
    Alloc {
        dst: VarId,
        heap: HeapId,
        count: Operand,
        site: SiteId,
    },
    If {
        cond: Operand,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    Block {
        label: LabelId,
        body: Vec<Stmt>,
    },
    Loop {
        label: LabelId,
        body: Vec<Stmt>,
    },
    /// A `Block` that also ends when something is raised in it, or in a function that it calls, which can be
    /// [caught](Trap::is_caught); then `raised` says what: the number of its site plus 1 (I32), and the trap's words
    /// (I64). The pass `unwind` makes branches of it; backends know none.
    Try {
        label: LabelId,
        body: Vec<Stmt>,
        raised: Raised,
    },
    Break(LabelId),
    /// When the callee ends early, so does the caller. `depth`: the callee may recurse; SystemStackError is raised
    /// there when the calls nest deeper than the backend's limit, and the call polls as [`Stmt::Poll`] does.
    Call {
        func: FuncId,
        args: Vec<Operand>,
        dsts: Vec<VarId>,
        depth: Option<SiteId>,
    },
    Return(Vec<Operand>),
    /// Raises what the site says, with the values of `operands` for its message (registers, at most
    /// [`TRAP_WORDS`] of them), and ends the job.
    Trap {
        site: SiteId,
        operands: Vec<Operand>,
    },
    /// What follows stands at the site's line. Only where races are looked for; passes never see it.
    Place(SiteId),
    /// In loops that may run long: about every 1 024th time, ends the job early if the launch was stopped.
    Poll,
    /// Only in the entry function: from here on the job runs element `index` (I64) in tick `tick` (I64); the draw
    /// counter starts at 0. Where `check`, ends the job if the launch was stopped before this (tick, index).
    Begin {
        index: Operand,
        tick: Operand,
        check: bool,
    },
}

/// How many 64-bit words a trap can carry to the host.
pub const TRAP_WORDS: usize = 4;

/// Registers that hold a rescued exception: its code and its words.
pub type Raised = [VarId; TRAP_WORDS + 1];

#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    pub ty: Scalar,
    /// The Ruby variable it holds, if any.
    pub name: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Func {
    pub name: String,
    /// These registers hold the arguments on entry.
    pub params: Vec<VarId>,
    pub results: Vec<Scalar>,
    pub vars: Vec<Var>,
    /// How many labels it uses.
    pub labels: usize,
    pub body: Vec<Stmt>,
    /// May call itself, directly or not.
    pub recursive: bool,
    /// Neighbouring elements call it for the same positions.
    pub stage: Option<stages::Stage>,
}

/// What the rows of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Objects of the classes at preorder positions `first..=last` of a hierarchy. The row operand is the object's id;
    /// the host hands the kernel an address from which the first class's base is already subtracted.
    Class { hierarchy: u32, first: u32, last: u32 },
    /// Elements of all arrays of a kind.
    Array(ArrayKind),
    /// Bytes of all Strings, one after the other.
    Bytes,
    /// One row for each element of the base array, at its index.
    Element,
    /// One row for each job, plus one at the end.
    Job,
    /// One row.
    Single,
    /// [`SLOT_STRIDE`] rows for each slot of the launch, of which the first is used: threads share no cache line.
    Slot,
}

impl Space {
    /// Whether every row of `inner` is one of this space.
    pub fn covers(self, inner: Space) -> bool {
        match (self, inner) {
            (
                Space::Class { hierarchy, first, last },
                Space::Class { hierarchy: inner_hierarchy, first: inner_first, last: inner_last },
            ) => hierarchy == inner_hierarchy && first <= inner_first && inner_last <= last,
            _ => self == inner,
        }
    }
}

/// Rows of a [`Space::Slot`] column that belong to one slot.
pub const SLOT_STRIDE: i64 = 8;

/// Where a program takes new rows of a space: of exactly one class, or of one kind of arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct Heap {
    pub space: Space,
    /// Its rows belong to the running job, which takes all of them anew when it begins its next element or tick. Else
    /// rows stay what they are, and the host makes objects or arrays of those that can be reached.
    pub scratch: bool,
    /// I64: the first row of the heap's region; for scratch, of slot 0's.
    pub start: ParamId,
    /// I64: how many rows it has; for scratch, each slot. The slots' regions follow each other.
    pub capacity: ParamId,
    /// I64 column, rows taken so far: row 0 of a `Single`; for scratch, each slot's row of a `Slot`.
    pub taken: ColumnId,
}

/// What lies evenly, of a column that the program only reads. The host launches the program only where that is so, and says by parameters, I64,
/// how it lies ([`crate::memory::even`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Even {
    /// The array at row `r` begins at `start + r * step`, and all are equally long.
    Arrays { column: ColumnId, start: ParamId, step: ParamId, length: ParamId },
    /// The reference at row `r` is to row `start + r`.
    References { column: ColumnId, start: ParamId },
}

impl Even {
    pub fn column(self) -> ColumnId {
        match self {
            Self::Arrays { column, .. } | Self::References { column, .. } => column,
        }
    }
    pub fn is_of_references(self) -> bool {
        matches!(self, Self::References { .. })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// For people: `Actor@progress`.
    pub name: String,
    pub space: Space,
    pub storage: Storage,
    /// Of a column of ids: all that it ever holds are rows of this space. None: some may be ids of nothing.
    pub refers: Option<Space>,
    /// Of a column of I64 that the program only reads: all rows are within [`SMALL_ROWS`]. The host launches the program only where they are.
    pub small: bool,
    pub read: bool,
    pub written: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: String,
    pub ty: Scalar,
    /// Of an I64: the host launches the program only where it lies between these.
    pub range: Option<(i64, i64)>,
}

impl Param {
    pub fn new(name: impl Into<String>, ty: Scalar) -> Self {
        Self { name: name.into(), ty, range: None }
    }

    /// Whether the host may launch the program with this word.
    pub fn takes(&self, word: u64) -> bool {
        self.range.is_none_or(|(lo, hi)| (lo..=hi).contains(&(word as i64)))
    }
}

/// What a trap raises, where, and what its words mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    pub trap: Trap,
    pub path: String,
    pub line: u32,
    /// How to read the trap's words back as Ruby values, in order. A union takes two words: tag, payload.
    pub operands: Vec<crate::types::Repr>,
}

impl Site {
    /// Whether it raises, and what it raises needs no tables: no object, Array, String or Symbol.
    fn can_defer_errors(&self) -> bool {
        use crate::types::{Repr, Unit};
        let raises = !matches!(self.trap, Trap::Race | Trap::Break | Trap::Grow(_) | Trap::Refuted(_));
        raises
            && self.operands.iter().all(|repr| match repr {
                Repr::Int | Repr::Float | Repr::Bool => true,
                Repr::Unit(unit) => matches!(unit, Unit::Nil | Unit::True | Unit::False),
                _ => false,
            })
    }
}

/// What the host does when a job ends at a site.
#[derive(Clone, Debug, PartialEq)]
pub enum Trap {
    /// ZeroDivisionError, `divided by 0`.
    ZeroDivision,
    /// Ikra::IntegerOverflow; the name of the operation.
    IntegerOverflow(&'static str),
    /// NoMethodError of `name` on operand 0, with Ruby's own message; `bare`: a name alone, which might have been a
    /// variable (NameError).
    NoMethod { name: Arc<str>, private: bool, bare: bool },
    /// NoMethodError of `super` in the method of that name, for operand 0.
    NoSuper(Arc<str>),
    /// NoMethodError of the name that operand 1 (a Symbol) is, on operand 0: `super` in `method_missing`.
    Missing,
    /// IndexError for a write to an array at operand 0, below operand 1, the least index it has (Integers).
    IndexTooSmall,
    /// KeyError of the Hash at operand 0 for the key at operand 1.
    KeyMissing,
    /// NameError for a bare identifier or constant.
    Name { message: String, name: Arc<str> },
    /// FrozenError for operand 0.
    Frozen,
    /// FloatDomainError with operand 0 (a Float): `NaN`, `Infinity`, `-Infinity`.
    FloatDomain,
    /// RangeError for operand 0 (a Float), which Ruby's C converts to a `long`.
    OutOfRange,
    /// Another exception of Ruby's own with a fixed message.
    Raise { class: &'static str, message: String },
    /// What kernels cannot do and Ruby can: `before`, operand 0 as in `Mention` if there is one, `after`. Ruby raises
    /// nothing there, so no `rescue` catches it.
    Limit { class: &'static str, before: String, after: String },
    /// TypeError or ArgumentError about operand 0 in Ruby's words: `before`, the operand as Ruby describes it there
    /// (`nil`, `true`, `false`, else its class name), `after`. So speaks Ruby of conversions.
    Describe { class: &'static str, before: String, after: String },
    /// As `Describe`, but numbers and Symbols are inspected too. So speaks Ruby of comparison and of arithmetic.
    Mention { class: &'static str, before: String, after: String },
    /// An exception that the program makes.
    New(Arc<New>),
    /// RaceError: here, and at the site of word 0 in the run of the element of word 1, one slot of the column of word 2 was
    /// touched in one tick; word 3 says how ([`crate::backend::races`]).
    Race,
    /// SystemStackError.
    StackOverflow,
    /// `break` out of the section with operand 0; not an error.
    Break,
    /// The heap has too few rows; operand 0 says how many would have done so far. The host gives it more and runs the
    /// section afresh. Not an error, and nothing that Ruby code could rescue.
    Grow(HeapId),
    /// A speculation was wrong: the host drops it, compiles again and runs the section afresh. Not an error.
    Refuted(crate::world::Assumption),
}

/// `class.new(*args, **keywords)`, or the class itself where there are no `args`; then `.exception(message)` of that.
/// The host calls these, so that a user's own `initialize` and `message` are what they are in Ruby.
#[derive(Clone, Debug, PartialEq)]
pub struct New {
    pub class: crate::id::ClassId,
    /// The class's, for people.
    pub name: String,
    pub args: Option<Vec<Piece>>,
    pub keywords: Vec<(Arc<str>, Piece)>,
    pub message: Option<Piece>,
}

/// An argument that the host puts together.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// The site's operand of that number.
    Value(usize),
    /// A String of these.
    Text(Vec<Part>),
}

/// A part of a String.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Text(String),
    /// `to_s` of the site's operand of that number.
    Value(usize),
    /// `inspect` of it.
    Inspect(usize),
}

/// Says where lowering knows that control never comes.
pub const UNREACHABLE: &str = "Ikra: unreachable code was reached";

/// The message of [`Trap::OutOfRange`]: with the ten digits of `%.10g`, as Ruby's C writes it.
pub fn out_of_range(value: f64) -> String {
    let text = if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Inf".to_owned() } else { "-Inf".to_owned() }
    } else {
        // beyond 64 bits: always with an exponent
        let scientific = format!("{value:.9e}");
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        format!("{mantissa}e+{exponent:0>2}")
    };
    format!("float {text} out of range of integer")
}

impl Trap {
    /// [`Trap::Limit`] with a fixed message.
    pub fn limit(class: &'static str, message: impl Into<String>) -> Self {
        Trap::Limit { class, before: message.into(), after: String::new() }
    }

    /// What turned out to be refused while the kernel ran.
    pub fn refusal(message: impl Into<String>) -> Self {
        Trap::limit("Ikra::CompileError", message)
    }

    /// Whether `rescue` may catch it: only what Ruby raises, too. What Ikra alone raises leaves the section, whatever
    /// rescues, so that no clause runs that would not run in Ruby. A stack overflow is detected by a backend alone.
    pub fn is_caught(&self) -> bool {
        match self {
            Trap::IntegerOverflow(_)
            | Trap::Limit { .. }
            | Trap::Race
            | Trap::StackOverflow
            | Trap::Break
            | Trap::Grow(_)
            | Trap::Refuted(_) => false,
            Trap::ZeroDivision
            | Trap::NoMethod { .. }
            | Trap::NoSuper(_)
            | Trap::Missing
            | Trap::IndexTooSmall
            | Trap::KeyMissing
            | Trap::Name { .. }
            | Trap::Frozen
            | Trap::FloatDomain
            | Trap::OutOfRange
            | Trap::Raise { .. }
            | Trap::Describe { .. }
            | Trap::Mention { .. }
            | Trap::New(_) => true,
        }
    }

    /// What it raises; None: no exception.
    pub fn class(&self) -> Option<Class> {
        Some(Class::Named(match self {
            Trap::ZeroDivision => "ZeroDivisionError",
            Trap::IntegerOverflow(_) => "Ikra::IntegerOverflow",
            Trap::NoMethod { bare: false, .. } | Trap::NoSuper(_) | Trap::Missing => "NoMethodError",
            Trap::NoMethod { bare: true, .. } | Trap::Name { .. } => "NameError",
            Trap::IndexTooSmall => "IndexError",
            Trap::KeyMissing => "KeyError",
            Trap::Frozen => "FrozenError",
            Trap::FloatDomain => "FloatDomainError",
            Trap::OutOfRange => "RangeError",
            Trap::Raise { class, .. }
            | Trap::Limit { class, .. }
            | Trap::Describe { class, .. }
            | Trap::Mention { class, .. } => class,
            Trap::StackOverflow => "SystemStackError",
            Trap::New(new) => return Some(Class::Made(new.class)),
            Trap::Break | Trap::Race | Trap::Refuted(_) | Trap::Grow(_) => return None,
        }))
    }
}

/// How jobs (threads) map to elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Jobs {
    /// Job j is element j.
    Identity,
    /// Job j is element `order[j]`; `u32::MAX` is padding.
    Reordered,
    /// Job j is the elements `order[starts[j]] .. order[starts[j + 1]]`, one after the other: occurrences of one object.
    Grouped,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// For people, and for the kernel's name: `block in main at traffic.rb:12`.
    pub name: String,
    pub funcs: Vec<Func>,
    pub entry: FuncId,
    pub columns: Vec<Column>,
    pub params: Vec<Param>,
    pub heaps: Vec<Heap>,
    pub even: Vec<Even>,
    pub sites: Vec<Site>,
    pub jobs: Jobs,
    /// The host launches it for fewer than [`SMALL_INT_LIMIT`] elements.
    pub few: bool,
    /// All ticks run in one launch (`tick_begin..tick_end` spans several); else the host launches tick by tick.
    pub fused_ticks: bool,
    pub uses_random: bool,
    pub rescued: Rescued,
}

/// Functions that the pass `unwind` makes, which knows what is rescued.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rescued {
    pub tests: Vec<ClassTest>,
    /// `(code: I32, words: I64…)`: raises that exception.
    pub again: Option<FuncId>,
    pub messages: Option<Messages>,
}

/// `(code: I32, words: I64…) -> (I64, Bool)`: the String that is an exception's message, and whether it is known here.
#[derive(Clone, Debug, PartialEq)]
pub struct Messages {
    pub func: FuncId,
    pub known: Vec<(SiteId, Message)>,
}

/// Where the message of a site's exceptions is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message {
    /// A String of the program's text.
    Text(i64),
    /// The exception's word of that number.
    Word(usize),
}

/// `(code: I32) -> Bool`: whether an exception is of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassTest {
    pub func: FuncId,
    pub name: String,
    /// The classes that the program can raise, those of them for which it holds.
    pub hits: Vec<Class>,
}

/// A class of exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Ruby's or Ikra's own.
    Named(&'static str),
    Made(crate::id::ClassId),
}

/// A program with what its columns and parameters mean to the host.
#[derive(Clone, Debug)]
pub struct Lowered {
    pub program: Program,
    pub schema: Schema,
    /// The program asks where an element is, beside whose it is.
    pub asks_index: bool,
    /// What each element does over many ticks does not depend on what others do meanwhile: they could run in one launch, also where this program is for one.
    pub fuses: bool,
}

impl Func {
    pub fn ty(&self, operand: Operand) -> Scalar {
        match operand {
            Operand::Var(v) => self.vars[v.index()].ty,
            Operand::Bool(_) => Scalar::Bool,
            Operand::I32(_) => Scalar::I32,
            Operand::I64(_) => Scalar::I64,
            Operand::F64(_) => Scalar::F64,
        }
    }
}

impl Program {
    /// Whether the program, as it is now, takes rows from the heap: passes may have made it do without.
    pub fn takes_from(&self, heap: HeapId) -> bool {
        self.columns[self.heaps[heap.index()].taken.index()].written
    }

    /// Whether it asks for the number of its thread.
    pub fn uses_slots(&self) -> bool {
        let mut found = false;
        for func in &self.funcs {
            walk(&func.body, &mut |s| found |= matches!(s, Stmt::Let { op: Op::Ctx(Ctx::Slot), .. }));
        }
        found
    }

    /// Whether all jobs end soon, as they should: nothing repeats, raises, or takes rows. Launches of such a program need
    /// no look at what became of them, and no job looks whether it is still wanted.
    pub fn surely_ends(&self) -> bool {
        self.ends(|_| false)
    }

    /// The same of each tick. A loop over ticks, which begins them, is no reason why it might not: there are as many as are launched.
    pub fn each_tick_surely_ends(&self) -> bool {
        self.ends(|body| self.jobs != Jobs::Grouped && body.iter().any(|stmt| matches!(stmt, Stmt::Begin { .. })))
    }

    fn ends(&self, surely: impl Fn(&[Stmt]) -> bool) -> bool {
        let mut ends = !self.funcs.iter().any(|func| func.recursive);
        for func in &self.funcs {
            walk(&func.body, &mut |stmt| {
                ends &= match stmt {
                    Stmt::Checked { .. } | Stmt::Trap { .. } | Stmt::Poll | Stmt::Alloc { .. } => false,
                    Stmt::Loop { body, .. } => surely(body),
                    Stmt::Atomic { site, .. } => site.is_none(),
                    Stmt::Call { depth, .. } => depth.is_none(),
                    _ => true,
                };
            });
        }
        ends
    }

    /// Whether something in it depends on which tick runs. To be asked before passes find that number in registers.
    pub fn asks_tick(&self) -> bool {
        let mut asks = self.uses_random;
        for func in &self.funcs {
            walk(&func.body, &mut |stmt| asks |= matches!(stmt, Stmt::Let { op: Op::Ctx(Ctx::Tick), .. }));
        }
        asks
    }

    /// Whether each job comes to its end without repeating anything: it may raise.
    pub fn is_straight(&self) -> bool {
        let mut straight = !self.funcs.iter().any(|func| func.recursive);
        for func in &self.funcs {
            walk(&func.body, &mut |stmt| {
                straight &= !matches!(stmt, Stmt::Loop { .. } | Stmt::Poll | Stmt::Call { depth: Some(_), .. });
            });
        }
        straight
    }

    /// Whether a launch surely ends soon, and needs nothing of the host on the way: no rows, and no look whether it is still wanted. It may raise.
    pub fn ends_alone(&self) -> bool {
        let mut alone = self.heaps.is_empty() && !self.funcs.iter().any(|func| func.recursive);
        for func in &self.funcs {
            walk(&func.body, &mut |stmt| {
                alone &= !matches!(stmt, Stmt::Poll | Stmt::Alloc { .. } | Stmt::Call { depth: Some(_), .. });
            });
        }
        alone
    }

    /// Whether a launch ends alone, and raises only what the words of its trap describe: no other code is to run in its
    /// place. So its errors can be deferred until a result is looked at.
    pub fn can_defer_errors(&self) -> bool {
        let defers = |site: SiteId| self.sites[site.index()].can_defer_errors();
        let mut all = self.ends_alone();
        for func in &self.funcs {
            walk(&func.body, &mut |stmt| {
                all &= match stmt {
                    Stmt::Checked { site, .. } | Stmt::Trap { site, .. } | Stmt::Atomic { site: Some(site), .. } => {
                        defers(*site)
                    }
                    _ => true,
                };
            });
        }
        all
    }

    /// For each function, whether a call of it can end the job early; such calls return a status.
    pub fn may_stop(&self) -> Vec<bool> {
        let mut stops = vec![false; self.funcs.len()];
        loop {
            let before = stops.clone();
            for (i, func) in self.funcs.iter().enumerate() {
                let mut found = false;
                walk(&func.body, &mut |s| {
                    found |= match s {
                        Stmt::Checked { .. }
                        | Stmt::Trap { .. }
                        | Stmt::Poll
                        | Stmt::Begin { check: true, .. }
                        | Stmt::Alloc { .. } => true,
                        Stmt::Atomic { site, .. } => site.is_some(),
                        Stmt::Call { func, depth, .. } => depth.is_some() || before[func.index()],
                        _ => false,
                    }
                });
                stops[i] |= found;
            }
            if stops == before {
                return stops;
            }
        }
    }
}

/// Calls `visit` on every statement, outer ones first.
pub fn walk(body: &[Stmt], visit: &mut impl FnMut(&Stmt)) {
    for stmt in body {
        visit(stmt);
        match stmt {
            Stmt::If { then, otherwise, .. } => {
                walk(then, visit);
                walk(otherwise, visit);
            }
            Stmt::Block { body, .. } | Stmt::Loop { body, .. } | Stmt::Try { body, .. } => walk(body, visit),
            _ => {}
        }
    }
}
