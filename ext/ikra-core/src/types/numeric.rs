//! The methods of Integer and Float, `Math` and `rand`: their names, arities and result types.
//!
//! Here: what inference asks. Not here: their code in the IR (`lower::numbers`), dispatch over unions (a caller passes
//! one kind per operand), keyword arguments, the check that a user's program has not redefined a method.
//!
//! Invariant: a result type is never only if Ruby raises for these kinds whatever the values are.

use super::{Atom, Prims, Ty};
use std::ops::RangeInclusive;

/// One kind of receiver or argument: the part of an [`Atom`] that numeric methods distinguish.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    Int,
    Float,
    IntRange,
    FloatRange,
    Nil,
    /// True or false, known at compile time or only at run time.
    Bool,
    Sym,
    /// An object, an array, a class or a module.
    Other,
}

impl Kind {
    pub fn of(atom: Atom) -> Kind {
        match atom {
            Atom::Nil => Kind::Nil,
            Atom::False | Atom::True => Kind::Bool,
            Atom::Int => Kind::Int,
            Atom::Float => Kind::Float,
            Atom::Sym => Kind::Sym,
            Atom::IntRange => Kind::IntRange,
            Atom::FloatRange => Kind::FloatRange,
            Atom::Str
            | Atom::Module(_)
            | Atom::Proc(_)
            | Atom::Regexp(_)
            | Atom::Array(_)
            | Atom::Object(_)
            | Atom::Exception => Kind::Other,
        }
    }
    pub fn is_number(self) -> bool {
        matches!(self, Kind::Int | Kind::Float)
    }
}

/// Something that Ruby can do and Ikra cannot: why, and what to write instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unsupported {
    pub why: &'static str,
    pub advice: &'static str,
}

/// The classes that have a method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Int,
    Float,
    Both,
}

macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident: $($name:literal)|+, $on:ident, $arity:expr, $result:ident;)*) => {
        /// A method of Integer or Float that takes no block and returns no Array or String.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Method { $($(#[$doc])* $method,)* }

        impl Method {
            /// Every method.
            pub const ALL: &'static [Method] = &[$(Method::$method,)*];

            /// Ruby's names for it, the usual one first.
            pub fn names(self) -> &'static [&'static str] {
                match self { $(Method::$method => &[$($name),+],)* }
            }
            /// The number of positional arguments; with others Ruby raises ArgumentError.
            pub fn arity(self) -> RangeInclusive<usize> {
                match self { $(Method::$method => $arity,)* }
            }
            fn on(self) -> On {
                match self { $(Method::$method => On::$on,)* }
            }
            fn result_of(self, call: Call<'_>) -> Result<Ty, Unsupported> {
                match self { $(Method::$method => results::$result(call),)* }
            }
        }
    };
}

// The names, the classes that have the method, the number of arguments, and the result: a function of `results`.
methods! {
    Add: "+", Both, 1..=1, mixed;
    Sub: "-", Both, 1..=1, mixed;
    Mul: "*", Both, 1..=1, mixed;
    Div: "/", Both, 1..=1, mixed;
    Modulo: "%" | "modulo", Both, 1..=1, mixed;
    Pow: "**", Both, 1..=1, mixed;
    /// `pow` with one argument is `**`, with two it is modular.
    PowMod: "pow", Int, 1..=2, pow;
    Neg: "-@", Both, 0..=0, same;
    Plus: "+@", Both, 0..=0, same;
    Not: "~", Int, 0..=0, int;
    BitAnd: "&", Int, 1..=1, int_for_int;
    BitOr: "|", Int, 1..=1, int_for_int;
    BitXor: "^", Int, 1..=1, int_for_int;
    Shl: "<<", Int, 1..=1, int_for_number;
    Shr: ">>", Int, 1..=1, int_for_number;
    BitRef: "[]", Int, 1..=2, bit_ref;
    Eq: "==" | "===", Both, 1..=1, bool;
    NotEq: "!=", Both, 1..=1, bool;
    Eql: "eql?", Both, 1..=1, bool;
    Same: "equal?", Both, 1..=1, bool;
    Lt: "<", Both, 1..=1, bool_for_number;
    Le: "<=", Both, 1..=1, bool_for_number;
    Gt: ">", Both, 1..=1, bool_for_number;
    Ge: ">=", Both, 1..=1, bool_for_number;
    Compare: "<=>", Both, 1..=1, compare;
    Clamp: "clamp", Both, 1..=2, clamp;
    Between: "between?", Both, 2..=2, between;
    Abs: "abs" | "magnitude", Both, 0..=0, same;
    Abs2: "abs2", Both, 0..=0, same;
    Floor: "floor", Both, 0..=1, round;
    Ceil: "ceil", Both, 0..=1, round;
    Round: "round", Both, 0..=1, round;
    Truncate: "truncate", Both, 0..=1, round;
    ToI: "to_i" | "to_int", Both, 0..=0, int;
    ToF: "to_f", Both, 0..=0, float;
    Zero: "zero?", Both, 0..=0, bool;
    NonZero: "nonzero?", Both, 0..=0, same_or_nil;
    Positive: "positive?", Both, 0..=0, bool;
    Negative: "negative?", Both, 0..=0, bool;
    Even: "even?", Int, 0..=0, bool;
    Odd: "odd?", Int, 0..=0, bool;
    Succ: "succ" | "next", Int, 0..=0, int;
    Pred: "pred", Int, 0..=0, int;
    Ord: "ord", Int, 0..=0, int;
    IntDiv: "div", Both, 1..=1, int_for_number;
    Remainder: "remainder", Both, 1..=1, remainder;
    Fdiv: "fdiv", Both, 1..=1, float_for_number;
    Quo: "quo", Both, 1..=1, quotient;
    CeilDiv: "ceildiv", Int, 1..=1, int_for_number;
    Gcd: "gcd", Int, 1..=1, int_for_int;
    Lcm: "lcm", Int, 1..=1, int_for_int;
    BitLength: "bit_length", Int, 0..=0, int;
    Size: "size", Int, 0..=0, int;
    AllBits: "allbits?", Int, 1..=1, bool_for_number;
    AnyBits: "anybits?", Int, 1..=1, bool_for_number;
    NoBits: "nobits?", Int, 1..=1, bool_for_number;
    Numerator: "numerator", Int, 0..=0, int;
    Denominator: "denominator", Int, 0..=0, int;
    IsInteger: "integer?", Both, 0..=0, is_int;
    Finite: "finite?", Both, 0..=0, finite;
    Infinite: "infinite?", Both, 0..=0, infinite;
    Nan: "nan?", Float, 0..=0, bool;
    NextFloat: "next_float", Float, 0..=0, float;
    PrevFloat: "prev_float", Float, 0..=0, float;
    Arg: "arg" | "angle" | "phase", Both, 0..=0, number;
    Real: "real", Both, 0..=0, same;
    IsReal: "real?", Both, 0..=0, yes;
    Imaginary: "imaginary" | "imag", Both, 0..=0, int;
    Conjugate: "conjugate" | "conj", Both, 0..=0, same;
}

impl Method {
    /// The method of that name on an Integer or a Float. The caller checks that the running Ruby has it (`ceildiv` came
    /// with 3.2). `divmod` is not among them: see [`divmod_types`].
    pub fn find(receiver: Kind, name: &str) -> Option<Method> {
        let has = |m: &Method| match m.on() {
            On::Int => receiver == Kind::Int,
            On::Float => receiver == Kind::Float,
            On::Both => receiver.is_number(),
        };
        Self::ALL.iter().copied().find(|m| m.names().contains(&name) && has(m))
    }

    /// The method that Ruby calls on an argument that is an ordinary object, before it fails as [`Method::lower`] does.
    /// If such an object responds to that name, the caller refuses to compile the call (for `==`: unless the method is
    /// BasicObject's own).
    pub fn asks_argument(self) -> Option<&'static str> {
        use Method::*;
        match self {
            Eq | NotEq => Some("=="),
            Add | Sub | Mul | Div | Modulo | Pow | BitAnd | BitOr | BitXor | Lt | Le | Gt | Ge | Compare | Clamp
            | Between | IntDiv | Remainder | Fdiv | Quo => Some("coerce"),
            Shl | Shr | BitRef | AllBits | AnyBits | NoBits | Floor | Ceil | Round | Truncate => Some("to_int"),
            CeilDiv => Some("-@"),
            _ => None,
        }
    }

    /// The type of the result; [`Ty::never`] if it always raises. `literal` is the value of the first argument, if that
    /// is an Integer literal. The sign of the digits of `floor`, `ceil`, `round` and `truncate` decides between Integer
    /// and Float.
    ///
    /// # Errors
    /// Ruby can do it and Ikra cannot.
    pub fn result(self, receiver: Kind, args: &[Kind], literal: Option<i64>) -> Result<Ty, Unsupported> {
        self.result_of(Call { receiver, args, literal })
    }
}

/// What the result of a method depends on.
#[derive(Clone, Copy)]
struct Call<'a> {
    receiver: Kind,
    args: &'a [Kind],
    literal: Option<i64>,
}

impl Call<'_> {
    fn is_of_int(self) -> bool {
        self.receiver == Kind::Int
    }
    fn first(self) -> Option<Kind> {
        self.args.first().copied()
    }
    /// Ruby raises for a first argument that is no number.
    fn for_number(self, ty: Ty) -> Result<Ty, Unsupported> {
        Ok(if self.first().is_some_and(Kind::is_number) { ty } else { Ty::never() })
    }
}

/// The results of methods, which several rows of the table share.
mod results {
    use super::{Call, Kind, MAX_ROUND_DIGITS, Prims, TOO_MANY_DIGITS, Ty, Unsupported};

    type Answer = Result<Ty, Unsupported>;

    pub fn int(_: Call<'_>) -> Answer {
        Ok(Ty::int())
    }
    pub fn float(_: Call<'_>) -> Answer {
        Ok(Ty::float())
    }
    pub fn bool(_: Call<'_>) -> Answer {
        Ok(Ty::bool())
    }
    pub fn yes(_: Call<'_>) -> Answer {
        Ok(Ty::prim(Prims::TRUE))
    }
    /// The receiver's type.
    pub fn same(call: Call<'_>) -> Answer {
        Ok(if call.is_of_int() { Ty::int() } else { Ty::float() })
    }
    pub fn same_or_nil(call: Call<'_>) -> Answer {
        Ok(Ty::prim(Prims(same(call)?.prims.0 | Prims::NIL.0)))
    }
    pub fn int_for_int(call: Call<'_>) -> Answer {
        Ok(if call.first() == Some(Kind::Int) { Ty::int() } else { Ty::never() })
    }
    pub fn int_for_number(call: Call<'_>) -> Answer {
        call.for_number(Ty::int())
    }
    pub fn float_for_number(call: Call<'_>) -> Answer {
        call.for_number(Ty::float())
    }
    pub fn bool_for_number(call: Call<'_>) -> Answer {
        call.for_number(Ty::bool())
    }
    /// Two Integers give an Integer, a Float on either side gives a Float, all else raises.
    pub fn mixed(call: Call<'_>) -> Answer {
        match call.first() {
            Some(Kind::Int) => same(call),
            Some(Kind::Float) => float(call),
            _ => Ok(Ty::never()),
        }
    }
    pub fn remainder(call: Call<'_>) -> Answer {
        match call.first() {
            // `-5.remainder(Float::INFINITY)` is -5.
            Some(Kind::Float) if call.is_of_int() => number(call),
            _ => mixed(call),
        }
    }
    pub fn pow(call: Call<'_>) -> Answer {
        match call.args {
            [_] => mixed(call),
            [Kind::Int, Kind::Int] => int(call),
            _ => Ok(Ty::never()),
        }
    }
    pub fn quotient(call: Call<'_>) -> Answer {
        if call.is_of_int() && call.first() != Some(Kind::Float) {
            return Err(Unsupported {
                why: "the quotient of two Integers is a Rational",
                advice: "use `/` for the floored quotient, `fdiv` for a Float, or Rational(a, b)",
            });
        }
        float_for_number(call)
    }
    pub fn compare(call: Call<'_>) -> Answer {
        Ok(match call.first() {
            Some(Kind::Int) if call.is_of_int() => Ty::int(),
            Some(Kind::Int | Kind::Float) => Ty::prim(Prims(Prims::INT.0 | Prims::NIL.0)),
            _ => Ty::nil(),
        })
    }
    pub fn bit_ref(call: Call<'_>) -> Answer {
        match call.args {
            [Kind::FloatRange] => {
                Err(Unsupported { why: "bits are counted in Integers", advice: "give the Range Integer bounds" })
            }
            [Kind::IntRange] => int(call),
            args if args.iter().all(|k| k.is_number()) => int(call),
            _ => Ok(Ty::never()),
        }
    }
    /// The type of the receiver or of a bound.
    pub fn clamp(call: Call<'_>) -> Answer {
        let bound = |k: Kind| k.is_number() || k == Kind::Nil;
        let prim = |kind: Kind| match kind {
            Kind::Int | Kind::IntRange => Prims::INT.0,
            Kind::Float | Kind::FloatRange => Prims::FLOAT.0,
            _ => 0,
        };
        let receiver = prim(call.receiver);
        Ok(match *call.args {
            [range @ (Kind::IntRange | Kind::FloatRange)] => Ty::prim(Prims(receiver | prim(range))),
            [min, max] if bound(min) && bound(max) => Ty::prim(Prims(receiver | prim(min) | prim(max))),
            // Ruby first compares the bounds with one another, and these are not numbers.
            [min, max] if !bound(min) && max != Kind::Nil && (min != Kind::Sym || max == Kind::Sym) => {
                return Err(Unsupported {
                    why: "a number is clamped between numbers",
                    advice: "give `clamp` Integers, Floats or nil",
                });
            }
            _ => Ty::never(),
        })
    }
    /// The upper bound is compared only if the lower one holds.
    pub fn between(call: Call<'_>) -> Answer {
        Ok(match call.args {
            [min, max] if min.is_number() && max.is_number() => Ty::bool(),
            [min, _] if min.is_number() => Ty::prim(Prims::FALSE),
            _ => Ty::never(),
        })
    }
    pub fn round(call: Call<'_>) -> Answer {
        Ok(match (call.receiver, call.args, call.literal) {
            (_, [], _) => Ty::int(),
            (_, [k], _) if !k.is_number() => Ty::never(),
            (Kind::Int, ..) => Ty::int(),
            (_, _, Some(digits)) if i32::try_from(digits).is_err() => Ty::never(),
            (_, _, Some(digits)) if digits > MAX_ROUND_DIGITS => {
                return Err(Unsupported { why: TOO_MANY_DIGITS, advice: "round to 14 digits or fewer" });
            }
            (_, _, Some(digits)) if digits > 0 => Ty::float(),
            (_, _, Some(_)) => Ty::int(),
            _ => return number(call),
        })
    }
    pub fn is_int(call: Call<'_>) -> Answer {
        Ok(Ty::prim(if call.is_of_int() { Prims::TRUE } else { Prims::FALSE }))
    }
    pub fn finite(call: Call<'_>) -> Answer {
        if call.is_of_int() { yes(call) } else { bool(call) }
    }
    /// 1 or -1 for infinite Floats.
    pub fn infinite(call: Call<'_>) -> Answer {
        Ok(if call.is_of_int() { Ty::nil() } else { Ty::prim(Prims(Prims::INT.0 | Prims::NIL.0)) })
    }
    /// An Integer or a Float. As an angle: 0 or Math::PI, and NaN for NaN.
    pub fn number(_: Call<'_>) -> Answer {
        Ok(Ty::prim(Prims(Prims::INT.0 | Prims::FLOAT.0)))
    }
}

/// `Integer(x)` or `Float(x)` of Kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Conversion {
    Integer,
    Float,
}

impl Conversion {
    /// The type of the result; never if it always raises.
    pub fn result(self, arg: Kind) -> Ty {
        match self {
            _ if !arg.is_number() => Ty::never(),
            Conversion::Integer => Ty::int(),
            Conversion::Float => Ty::float(),
        }
    }
}

macro_rules! functions {
    ($($function:ident: $name:literal, $arity:expr;)*) => {
        /// A function of Math that returns one number, or `Integer.sqrt`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Function { $($function,)* IntegerSqrt }

        impl Function {
            /// Every function.
            pub const ALL: &'static [Function] = &[$(Function::$function,)* Function::IntegerSqrt];

            pub fn name(self) -> &'static str {
                match self { $(Function::$function => $name,)* Function::IntegerSqrt => "sqrt" }
            }
            /// The number of its arguments.
            pub fn arity(self) -> RangeInclusive<usize> {
                match self { $(Function::$function => $arity,)* Function::IntegerSqrt => 1..=1 }
            }
        }
    };
}

functions! {
    Sqrt: "sqrt", 1..=1;
    Cbrt: "cbrt", 1..=1;
    Sin: "sin", 1..=1;
    Cos: "cos", 1..=1;
    Tan: "tan", 1..=1;
    Asin: "asin", 1..=1;
    Acos: "acos", 1..=1;
    Atan: "atan", 1..=1;
    Atan2: "atan2", 2..=2;
    Sinh: "sinh", 1..=1;
    Cosh: "cosh", 1..=1;
    Tanh: "tanh", 1..=1;
    Asinh: "asinh", 1..=1;
    Acosh: "acosh", 1..=1;
    Atanh: "atanh", 1..=1;
    Exp: "exp", 1..=1;
    Log: "log", 1..=2;
    Log2: "log2", 1..=1;
    Log10: "log10", 1..=1;
    Hypot: "hypot", 2..=2;
    Erf: "erf", 1..=1;
    Erfc: "erfc", 1..=1;
    Gamma: "gamma", 1..=1;
    Ldexp: "ldexp", 2..=2;
}

impl Function {
    /// The function of that name in a module: `Math`, or `Integer` for its `sqrt`.
    pub fn find(module: &str, name: &str) -> Option<Function> {
        match module {
            "Math" => Self::ALL.iter().copied().find(|f| *f != Function::IntegerSqrt && f.name() == name),
            "Integer" if name == "sqrt" => Some(Function::IntegerSqrt),
            _ => None,
        }
    }
    /// The type of the result; never if it always raises.
    pub fn result(self, args: &[Kind]) -> Ty {
        match self {
            _ if !args.iter().all(|k| k.is_number()) => Ty::never(),
            Function::IntegerSqrt => Ty::int(),
            _ => Ty::float(),
        }
    }
}

/// The owner of `rand`: owners differ in the arguments that they accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rand {
    /// `rand`, `Kernel.rand`
    Kernel,
    /// `Random.rand`
    Random,
}

impl Rand {
    /// The type of `rand` with at most one argument; never if it always raises. `literal` is the argument's value, if
    /// it is an Integer literal: `rand(6)` is an Integer, but `rand(n)` is a Float if n is 0.
    ///
    /// # Errors
    /// Ruby can do it and Ikra cannot.
    pub fn result(self, args: &[Kind], literal: Option<i64>) -> Result<Ty, Unsupported> {
        let number = Prims(Prims::INT.0 | Prims::FLOAT.0);
        let or_nil = |p: Prims| Ty::prim(if self == Rand::Kernel { Prims(p.0 | Prims::NIL.0) } else { p });
        Ok(match (self, args) {
            (_, []) | (Rand::Kernel, [Kind::Nil]) | (Rand::Random, [Kind::Float]) => Ty::float(),
            (Rand::Kernel, [Kind::Int]) => match literal {
                Some(0) => Ty::float(),
                Some(_) => Ty::int(),
                _ => Ty::prim(number),
            },
            (Rand::Kernel, [Kind::Float]) => Ty::prim(number),
            (Rand::Random, [Kind::Int]) => match literal {
                Some(..=0) => Ty::never(),
                _ => Ty::int(),
            },
            (_, [Kind::IntRange]) => or_nil(Prims::INT),
            (_, [Kind::FloatRange]) => or_nil(Prims::FLOAT),
            _ => Ty::never(),
        })
    }
}

/// The most digits after the point to which a kernel rounds. For more, Ruby computes with Rationals.
pub const MAX_ROUND_DIGITS: i64 = 14;
pub const TOO_MANY_DIGITS: &str = "rounding to more than 14 digits takes Rationals beyond 64 bits, which kernels lack";

/// The types of quotient and remainder of `a.divmod(b)`; both are never if it always raises.
pub fn divmod_types(a: Kind, b: Kind) -> (Ty, Ty) {
    match (a, b) {
        (Kind::Int, Kind::Int) => (Ty::int(), Ty::int()),
        (Kind::Int | Kind::Float, Kind::Int | Kind::Float) => (Ty::int(), Ty::float()),
        _ => (Ty::never(), Ty::never()),
    }
}
