//! The intermediate representation: a typed, structured program over scalars and columns, in which every rule of Ruby
//! is explicit.
//!
//! Here: the data types. `build` makes programs, `print` and `parse` are their text form, `verify` checks the contract
//! below, `effects` summarises reads and writes. Not here: Ruby's types (a union is two registers by now), and how a
//! column's address is computed ([`crate::layout`]).
//!
//! # Contract
//!
//! * Registers ([`Var`]) are mutable and typed. They are read only after they were assigned on every path.
//! * A statement does one thing; its operands are registers and constants. Only these can end a job early:
//!   [`Stmt::Checked`], [`Stmt::Trap`], [`Stmt::Poll`], [`Stmt::Begin`], [`Stmt::Alloc`], [`Stmt::Atomic`] with a site,
//!   and a call of a function that contains one of these.
//! * Rows from [`Stmt::Alloc`] have arbitrary content until they are stored. Backends do not know `Alloc`: the last
//!   pass (`passes::expand`) turns it into arithmetic on counters.
//! * `Break(label)` leaves the enclosing `Block` or `Loop` of that label. A `Loop` repeats when its body's end is
//!   reached. Nothing follows a `Break`, `Return` or `Trap` in the same list.
//! * Integer division, remainder, shifts and float-to-integer conversion have preconditions (stated at [`Op`]); the
//!   program itself tests them first.
//! * The entry function takes `(job: I64, tick_begin: I64, tick_end: I64)` and returns nothing. A backend calls it once
//!   for every job of a launch, in any order, with `tick_begin < tick_end`.

pub mod build;
pub mod effects;
pub mod eval;
pub mod filled;
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
pub use crate::types::{Storage, TRAP_WORDS};
pub use crate::world::{ASSUMED_LIMIT, AssumedRows};
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
    /// A region from which a program takes new rows.
    HeapId, "h"
);
define_id!(
    /// A position that can raise, with what it raises.
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

/// Functions of libm. On the CPU they come from the same libm that Ruby calls.
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
    /// The number of F64 arguments (`Ldexp`: F64 and I64).
    pub fn arity(self) -> usize {
        match self {
            MathFn::Atan2 | MathFn::Hypot | MathFn::Pow | MathFn::Ldexp => 2,
            _ => 1,
        }
    }
}

/// A property of the running element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ctx {
    /// Number of the tick, from 0. I64.
    Tick,
    /// Index in the user's array. I64.
    Index,
    /// Number of the thread among those that run jobs at the same time; less than the launch's `slots`. I64.
    Slot,
    /// Whether the launch was stopped before this (tick, index). About every 1 024th execution looks. Bool.
    Stopped,
}

/// A pure operation, except `Random`, which advances the element's draw counter. Argument and result types are in
/// parentheses. Integer operations work on I64 and on I32. Their operands and result have one type, and they wrap.
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
    /// To nearest among Floats of 32 bits, ties to even. The result of `+ - * /` or a square root in 64 bits, rounded
    /// by this, equals that of arithmetic in 32 bits. Rounding twice does no harm, because 53 bits are at least twice
    /// 24 and two more (Figueroa, When is double rounding innocuous?, 1995).
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
    /// F64 → I32, the bits of what [`Op::FSingle`] gives, as a Float of 32 bits
    SingleBits,
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
    /// Bits that both have, read as an unsigned number; beyond I64 if the highest bit is set.
    And,
}

/// Read-modify-write of a slot that several elements may touch: an I64, except for `FAdd`, whose slot is F64. `Add`
/// traps at its site if it overflows. The order of `FAdd`s is not fixed, so neither is their rounding.
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
    /// Reads an I64 slot that all jobs share, and adds `value` to it, wrapping.
    FetchAdd {
        dst: VarId,
        column: ColumnId,
        row: Operand,
        value: Operand,
    },
    /// The first of `count` (I64, not negative) consecutive new rows, to which nothing else refers: an id (I32) in a
    /// class space, an index (I64) in a space of arrays. Traps at `site`, a [`Trap::Grow`], with the number of rows
    /// that would have been enough so far.
    Alloc {
        dst: VarId,
        heap: HeapId,
        count: Operand,
        site: SiteId,
    },
    /// Adds a part to the key of the element's next pair: a code of
    /// [`crate::types::keys::KeyCode`] and a word, both I64.
    KeyPart {
        code: Operand,
        word: Operand,
    },
    /// Adds a value (I64, an Integer or the bits of a Float) to the group of a key (I64), as the launch says
    /// ([`crate::backend::Launch::groups`]). `order` (I64, read as unsigned) tells the pair from all others. A group is
    /// where its first pair is.
    ///
    /// `text`: keys are Strings ([`crate::types::StrWord`]), whose bytes this column has. Without a key, it has the
    /// parts that came since the last pair, and `text` has the bytes of the Strings among them.
    Emit {
        key: Option<Operand>,
        value: Operand,
        order: Operand,
        text: Option<ColumnId>,
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
    /// A `Block` that also ends when a [catchable](Trap::is_caught) exception is raised in it, or in a function that it
    /// calls. Then `raised` holds the exception: the number of its site plus 1 (I32), and the trap's words (I64). The
    /// pass `unwind` turns it into branches; backends do not know it.
    Try {
        label: LabelId,
        body: Vec<Stmt>,
        raised: Raised,
    },
    Break(LabelId),
    /// If the callee ends early, so does the caller. `depth`: the callee may recurse. Then SystemStackError is raised
    /// at that site when calls nest deeper than the backend's limit, and the call polls as [`Stmt::Poll`] does.
    Call {
        func: FuncId,
        args: Vec<Operand>,
        dsts: Vec<VarId>,
        depth: Option<SiteId>,
    },
    Return(Vec<Operand>),
    /// Raises what the site says and ends the job. The site's message takes the values of `operands` (registers, at
    /// most [`TRAP_WORDS`] of them).
    Trap {
        site: SiteId,
        operands: Vec<Operand>,
    },
    /// The statements that follow belong to the site's line. Only in programs that look for races; passes never see it.
    Place(SiteId),
    /// In loops that may run long: about every 1 024th execution ends the job early if the launch was stopped.
    Poll,
    /// The threads of a team meet ([`crate::passes::team`]): each waits for the others, and then sees all that they
    /// have stored. `dst`: the least of their values. Where a job has one thread, that is its own. All I64.
    Meet {
        dst: VarId,
        value: Operand,
    },
    /// Only in the entry function: from here on the job runs element `index` (I64) in tick `tick` (I64). The draw
    /// counter starts at 0. With `check`, ends the job if the launch was stopped before this (tick, index).
    Begin {
        index: Operand,
        tick: Operand,
        check: bool,
    },
}

/// Registers that hold a rescued exception: its code and its words.
pub type Raised = [VarId; TRAP_WORDS + 1];

#[derive(Clone, Debug, PartialEq)]
pub struct Var {
    pub ty: Scalar,
    /// The Ruby variable that it holds, if any.
    pub name: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Func {
    pub name: String,
    /// These registers hold the arguments on entry.
    pub params: Vec<VarId>,
    pub results: Vec<Scalar>,
    pub vars: Vec<Var>,
    /// The number of its labels.
    pub labels: usize,
    pub body: Vec<Stmt>,
    /// Whether it may call itself, directly or not.
    pub recursive: bool,
    /// Set if neighbouring elements call it for the same positions.
    pub stage: Option<stages::Stage>,
}

/// What the rows of a column stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Objects of the classes at preorder positions `first..=last` of a hierarchy. The row operand is the object's id;
    /// the host hands the kernel an address from which the first class's base is already subtracted.
    Class { hierarchy: u32, first: u32, last: u32 },
    /// Elements of all arrays of a kind. All rows are less than 2^32: the word of an array has 32 bits for its place.
    Array(ArrayKind),
    /// Bytes of all Strings, one after the other.
    Bytes,
    /// One row for each element of the base array, at its index.
    Element,
    /// One row for each job, plus one at the end.
    Job,
    /// One row.
    Single,
    /// [`SLOT_STRIDE`] rows for each slot of the launch, of which only the first is used, so that threads share no
    /// cache line.
    Slot,
}

impl Space {
    /// Whether every row of `inner` is a row of this space.
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

/// A region from which a program takes new rows: objects of exactly one class, or arrays of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Heap {
    pub space: Space,
    /// If set, rows belong to the running job, which reuses all of them when it begins its next element or tick.
    /// Otherwise rows are permanent, and the host makes objects or arrays of those that are reachable.
    pub scratch: bool,
    /// I64: the first row of the heap's region; for scratch, that of slot 0's region.
    pub start: ParamId,
    /// I64: the number of rows; for scratch, of each slot. The slots' regions follow each other.
    pub capacity: ParamId,
    /// I64 column with the number of rows taken so far: row 0 of a `Single`; for scratch, each slot's row of a `Slot`.
    pub taken: ColumnId,
}

/// A column that the program only reads and that has a uniform stride. The host launches the program only if it has,
/// and passes the stride in I64 parameters ([`crate::memory::uniform_stride`]).
#[derive(Clone, Debug, PartialEq)]
pub enum UniformStride {
    /// The array at row `r` begins at `start + r * step`, and all arrays are equally long.
    Arrays { column: ColumnId, start: ParamId, step: ParamId, length: ParamId },
    /// The reference at row `r` is to row `start + r`.
    References { column: ColumnId, start: ParamId },
    /// The column has exactly these rows.
    Constants { column: ColumnId, rows: Arc<[i64]> },
}

impl UniformStride {
    pub fn column(&self) -> ColumnId {
        match self {
            Self::Arrays { column, .. } | Self::References { column, .. } | Self::Constants { column, .. } => *column,
        }
    }
    pub fn is_of_references(&self) -> bool {
        matches!(self, Self::References { .. })
    }
    /// The parameters that packing sets.
    pub fn params(&self) -> impl Iterator<Item = ParamId> {
        let (first, others) = match *self {
            Self::Arrays { start, step, length, .. } => (Some(start), Some([step, length])),
            Self::References { start, .. } => (Some(start), None),
            Self::Constants { .. } => (None, None),
        };
        first.into_iter().chain(others.into_iter().flatten())
    }
}

/// What the host promises of a column of arrays' elements: the rows below the parameter, an I64, exist. A captured
/// array of so many elements is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    pub column: ColumnId,
    pub rows: ParamId,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// For listings: `Actor@progress`.
    pub name: String,
    pub space: Space,
    pub storage: Storage,
    /// For a column of ids: every id in it is a row of this space. None: some ids may be no rows.
    pub refers: Option<Space>,
    /// For a column of I64 that the program only reads: all rows are in this range. The host launches the program only
    /// if they are.
    pub ranged: Option<AssumedRows>,
    /// For a column of F64: the host could as well fill it with Floats of 32 bits. A pass that does not need the others
    /// makes it a column of F32.
    pub roundable: bool,
    /// For such a column that the program writes: the column of U8 that has a 1 for each row that the program has
    /// stored. All other values stay as the host has them, with all their bits.
    pub marks: Option<ColumnId>,
    pub read: bool,
    pub written: bool,
}

impl Column {
    /// Whether it holds rounded values of the host, and nothing else.
    pub fn is_only_rounded(&self) -> bool {
        self.storage == Storage::F32 && !self.written
    }
    /// Whether a load gives exactly the bits that were stored.
    pub fn is_exact(&self) -> bool {
        // where stores are marked, each value has 32 bits
        self.storage.is_exact() || self.marks.is_some()
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: String,
    pub ty: Scalar,
    /// For an I64: the host launches the program only if the value is in this interval.
    pub range: Option<(i64, i64)>,
    /// For an I64: an earlier parameter, which the program reads instead. The host launches the program only if both
    /// have the same value.
    pub same: Option<ParamId>,
}

impl Param {
    pub fn new(name: impl Into<String>, ty: Scalar) -> Self {
        Self { name: name.into(), ty, range: None, same: None }
    }

    /// Whether the host may launch the program with this word for the parameter, as far as that does not depend on
    /// others.
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
    /// The representations of the Ruby values in the trap's words, in order. A union takes two words: tag, payload.
    pub operands: Vec<crate::types::Repr>,
}

impl Site {
    /// Whether it raises something that needs no tables to build: no object, Array, String or Symbol.
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

/// The effect of a trap on the host when a job ends at its site.
#[derive(Clone, Debug, PartialEq)]
pub enum Trap {
    /// ZeroDivisionError, `divided by 0`.
    ZeroDivision,
    /// Ikra::IntegerOverflow; the name of the operation.
    IntegerOverflow(&'static str),
    /// NoMethodError of `name` on operand 0, with Ruby's own message. `bare`: the call is a name alone, which might
    /// have been a variable (NameError).
    NoMethod { name: Arc<str>, private: bool, bare: bool },
    /// NoMethodError of `super` in the method of that name, with operand 0 as the receiver.
    NoSuper(Arc<str>),
    /// NoMethodError of the method that operand 1 (a Symbol) names, on operand 0: `super` in `method_missing`.
    Missing,
    /// IndexError for a write to an array at index operand 0, which is less than operand 1, the least index of the
    /// array (Integers).
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
    /// Something that Ruby can do and kernels cannot. The message is `before`, operand 0 as in `Mention` if there is
    /// one, `after`. Ruby raises nothing there, so no `rescue` catches it.
    Limit { class: &'static str, before: String, after: String },
    /// TypeError or ArgumentError about operand 0, in Ruby's words for conversions. The message is `before`, the
    /// operand as Ruby describes it there (`nil`, `true`, `false`, else its class name), `after`.
    Describe { class: &'static str, before: String, after: String },
    /// As `Describe`, but numbers and Symbols are inspected too: Ruby's words for comparison and arithmetic.
    Mention { class: &'static str, before: String, after: String },
    /// An exception that the program makes.
    New(Arc<New>),
    /// RaceError: two elements touched one slot in one tick. The first access is here. Word 0 is the site of the other
    /// access, word 1 its element, word 2 the slot's column. Word 3 tells the kinds of access
    /// ([`crate::backend::races`]).
    Race,
    /// SystemStackError.
    StackOverflow,
    /// `break` out of the section with operand 0; not an error.
    Break,
    /// The heap has too few rows; operand 0 is the number that would have been enough so far. The host provides more
    /// and runs the section again. Not an error, and no `rescue` catches it.
    Grow(HeapId),
    /// A speculation failed: the host drops it, compiles again and runs the section again. Not an error.
    Refuted(crate::world::Assumption),
}

/// `class.new(*args, **keywords)`, or the class itself if there are no `args`; then `.exception(message)` of that. The
/// host calls these, so a user's own `initialize` and `message` work as in Ruby.
#[derive(Clone, Debug, PartialEq)]
pub struct New {
    pub class: crate::id::ClassId,
    /// The name of the class, for messages.
    pub name: String,
    pub args: Option<Vec<Piece>>,
    pub keywords: Vec<(Arc<str>, Piece)>,
    pub message: Option<Piece>,
}

/// An argument that the host builds.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// The site's operand of that number.
    Value(usize),
    /// A String of these parts.
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

/// The message of a trap where lowering knows that control never comes.
pub const UNREACHABLE: &str = "Ikra: unreachable code was reached";

/// The message of [`Trap::OutOfRange`]: with the ten digits of `%.10g`, as Ruby's C writes it.
pub fn out_of_range(value: f64) -> String {
    let text = if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Inf".to_owned() } else { "-Inf".to_owned() }
    } else {
        // beyond 64 bits, the exponent is always there
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

    /// A refusal at run time.
    pub fn refusal(message: impl Into<String>) -> Self {
        Trap::limit("Ikra::CompileError", message)
    }

    /// Whether `rescue` may catch it: only what Ruby itself raises, too. Exceptions that only Ikra raises leave the
    /// section in any case, so that no clause runs that would not run in Ruby. Only a backend detects a stack overflow.
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

    /// The class of its exception. None: it raises no exception.
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

/// The mapping of jobs (threads) to elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Jobs {
    /// Job j is element j.
    Identity,
    /// Job j is element `order[j]`; `u32::MAX` is padding.
    Reordered,
    /// Job j is the elements `order[starts[j]] .. order[starts[j + 1]]`, one after the other. All are the same object.
    Grouped,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// For messages, and for the kernel's name: `block in main at traffic.rb:12`.
    pub name: String,
    pub funcs: Vec<Func>,
    pub entry: FuncId,
    pub columns: Vec<Column>,
    pub params: Vec<Param>,
    pub heaps: Vec<Heap>,
    pub strides: Vec<UniformStride>,
    pub extents: Vec<Extent>,
    pub sites: Vec<Site>,
    pub jobs: Jobs,
    /// Whether the host launches it only for fewer than [`ASSUMED_LIMIT`] elements.
    pub few: bool,
    /// Whether all ticks run in one launch (`tick_begin..tick_end` spans several). Otherwise the host launches tick by
    /// tick.
    pub fused_ticks: bool,
    pub uses_random: bool,
    pub rescued: Rescued,
}

/// Functions about exceptions. The pass `unwind` completes them, since it knows what is rescued.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rescued {
    pub tests: Vec<ClassTest>,
    /// `(code: I32, words: I64…)`: raises that exception.
    pub again: Option<FuncId>,
    pub messages: Option<Messages>,
}

/// `(code: I32, words: I64…) -> (I64, Bool)`: the String that is an exception's message, and whether the program knows
/// it.
#[derive(Clone, Debug, PartialEq)]
pub struct Messages {
    pub func: FuncId,
    pub known: Vec<(SiteId, Message)>,
}

/// The source of the message of a site's exceptions.
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
    /// The classes, among those that the program can raise, for which the answer is yes.
    pub hits: Vec<Class>,
}

/// A class of exceptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Ruby's or Ikra's own.
    Named(&'static str),
    Made(crate::id::ClassId),
}

/// A program, with the meaning of its columns and parameters for the host.
#[derive(Clone, Debug)]
pub struct Lowered {
    pub program: Program,
    pub schema: Schema,
    /// Whether the program reads the index of an element, not only its fields.
    pub asks_index: bool,
    /// Whether each element's ticks are independent of other elements' ticks. Then several ticks could run in one
    /// launch, even if this program is for single ticks.
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
    /// Whether the program still takes rows from the heap: passes may have removed all allocations.
    pub fn takes_from(&self, heap: HeapId) -> bool {
        self.columns[self.heaps[heap.index()].taken.index()].written
    }

    /// Whether the program still makes rows. Passes may have turned all objects into registers.
    pub fn takes_rows(&self) -> bool {
        (0..self.heaps.len()).any(|heap| self.takes_from(HeapId::new(heap)))
    }

    /// Whether it reads the number of its thread.
    pub fn uses_slots(&self) -> bool {
        let mut found = false;
        for func in &self.funcs {
            walk(&func.body, &mut |s| found |= matches!(s, Stmt::Let { op: Op::Ctx(Ctx::Slot), .. }));
        }
        found
    }

    /// Whether it adds pairs to groups. Then its launches make groups.
    pub fn emits(&self) -> bool {
        let mut found = false;
        for func in &self.funcs {
            walk(&func.body, &mut |s| found |= matches!(s, Stmt::Emit { .. }));
        }
        found
    }

    /// Whether keys of its pairs have parts.
    pub fn has_key_parts(&self) -> bool {
        let mut found = false;
        for func in &self.funcs {
            walk(&func.body, &mut |s| found |= matches!(s, Stmt::Emit { key: None, .. }));
        }
        found
    }

    /// Whether all jobs surely end soon and normally: nothing repeats, raises, or takes rows. The host need not check
    /// how launches of such a program ended, and jobs need not poll.
    pub fn surely_ends(&self) -> bool {
        self.ends(|_| false)
    }

    /// The same for each tick. The loop over ticks, which begins them, does not count, since its length is the number
    /// of launched ticks.
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

    /// Whether it depends on the number of the tick. Ask before passes, which may move that number into registers.
    pub fn asks_tick(&self) -> bool {
        let mut asks = self.uses_random;
        for func in &self.funcs {
            walk(&func.body, &mut |stmt| asks |= matches!(stmt, Stmt::Let { op: Op::Ctx(Ctx::Tick), .. }));
        }
        asks
    }

    /// Whether each job ends without repeating anything. It may raise.
    pub fn is_straight(&self) -> bool {
        let mut straight = !self.funcs.iter().any(|func| func.recursive);
        for func in &self.funcs {
            walk(&func.body, &mut |stmt| {
                straight &= !matches!(stmt, Stmt::Loop { .. } | Stmt::Poll | Stmt::Call { depth: Some(_), .. });
            });
        }
        straight
    }

    /// Whether a launch surely ends soon and needs nothing of the host on the way: no rows, and no poll. It may raise.
    pub fn ends_alone(&self) -> bool {
        let mut alone = !self.takes_rows() && !self.funcs.iter().any(|func| func.recursive);
        for func in &self.funcs {
            walk(&func.body, &mut |stmt| {
                alone &= !matches!(stmt, Stmt::Poll | Stmt::Alloc { .. } | Stmt::Call { depth: Some(_), .. });
            });
        }
        alone
    }

    /// Whether a launch ends alone, and every exception can be built from the words of its trap alone. Then its errors
    /// can be deferred until a result is read.
    pub fn can_defer_errors(&self) -> bool {
        let defers = |site: SiteId| self.sites[site.index()].can_defer_errors();
        let mut all = self.ends_alone() && !self.emits();
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

    /// For each function, whether a call of it can end the job early. Such calls return a status.
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
