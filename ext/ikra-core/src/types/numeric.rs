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
            Atom::Str | Atom::Module(_) | Atom::Proc(_) | Atom::Array(_) | Atom::Object(_) | Atom::Exception => {
                Kind::Other
            }
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
    ($($(#[$doc:meta])* $method:ident: $($name:literal)|+, $on:ident, $arity:expr;)*) => {
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
        }
    };
}

methods! {
    Add: "+", Both, 1..=1;
    Sub: "-", Both, 1..=1;
    Mul: "*", Both, 1..=1;
    Div: "/", Both, 1..=1;
    Modulo: "%" | "modulo", Both, 1..=1;
    Pow: "**", Both, 1..=1;
    /// `pow` with one argument is `**`, with two it is modular.
    PowMod: "pow", Int, 1..=2;
    Neg: "-@", Both, 0..=0;
    Plus: "+@", Both, 0..=0;
    Not: "~", Int, 0..=0;
    BitAnd: "&", Int, 1..=1;
    BitOr: "|", Int, 1..=1;
    BitXor: "^", Int, 1..=1;
    Shl: "<<", Int, 1..=1;
    Shr: ">>", Int, 1..=1;
    BitRef: "[]", Int, 1..=2;
    Eq: "==" | "===", Both, 1..=1;
    NotEq: "!=", Both, 1..=1;
    Eql: "eql?", Both, 1..=1;
    Same: "equal?", Both, 1..=1;
    Lt: "<", Both, 1..=1;
    Le: "<=", Both, 1..=1;
    Gt: ">", Both, 1..=1;
    Ge: ">=", Both, 1..=1;
    Compare: "<=>", Both, 1..=1;
    Clamp: "clamp", Both, 1..=2;
    Between: "between?", Both, 2..=2;
    Abs: "abs" | "magnitude", Both, 0..=0;
    Abs2: "abs2", Both, 0..=0;
    Floor: "floor", Both, 0..=1;
    Ceil: "ceil", Both, 0..=1;
    Round: "round", Both, 0..=1;
    Truncate: "truncate", Both, 0..=1;
    ToI: "to_i" | "to_int", Both, 0..=0;
    ToF: "to_f", Both, 0..=0;
    Zero: "zero?", Both, 0..=0;
    NonZero: "nonzero?", Both, 0..=0;
    Positive: "positive?", Both, 0..=0;
    Negative: "negative?", Both, 0..=0;
    Even: "even?", Int, 0..=0;
    Odd: "odd?", Int, 0..=0;
    Succ: "succ" | "next", Int, 0..=0;
    Pred: "pred", Int, 0..=0;
    Ord: "ord", Int, 0..=0;
    IntDiv: "div", Both, 1..=1;
    Remainder: "remainder", Both, 1..=1;
    Fdiv: "fdiv", Both, 1..=1;
    Quo: "quo", Both, 1..=1;
    CeilDiv: "ceildiv", Int, 1..=1;
    Gcd: "gcd", Int, 1..=1;
    Lcm: "lcm", Int, 1..=1;
    BitLength: "bit_length", Int, 0..=0;
    Size: "size", Int, 0..=0;
    AllBits: "allbits?", Int, 1..=1;
    AnyBits: "anybits?", Int, 1..=1;
    NoBits: "nobits?", Int, 1..=1;
    Numerator: "numerator", Int, 0..=0;
    Denominator: "denominator", Int, 0..=0;
    IsInteger: "integer?", Both, 0..=0;
    Finite: "finite?", Both, 0..=0;
    Infinite: "infinite?", Both, 0..=0;
    Nan: "nan?", Float, 0..=0;
    NextFloat: "next_float", Float, 0..=0;
    PrevFloat: "prev_float", Float, 0..=0;
    Arg: "arg" | "angle" | "phase", Both, 0..=0;
    Real: "real", Both, 0..=0;
    IsReal: "real?", Both, 0..=0;
    Imaginary: "imaginary" | "imag", Both, 0..=0;
    Conjugate: "conjugate" | "conj", Both, 0..=0;
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
        use Method::*;
        let int = receiver == Kind::Int;
        let first = args.first().copied();
        let number = || Ty::prim(Prims(Prims::INT.0 | Prims::FLOAT.0));
        let int_or_nil = || Ty::prim(Prims(Prims::INT.0 | Prims::NIL.0));
        let same = || if int { Ty::int() } else { Ty::float() };
        // Two Integers give an Integer, a Float on either side gives a Float, all else raises.
        let mixed = || match first {
            Some(Kind::Int) => same(),
            Some(Kind::Float) => Ty::float(),
            _ => Ty::never(),
        };
        let if_number = |ty: Ty| if first.is_some_and(Kind::is_number) { ty } else { Ty::never() };
        let if_int = |ty: Ty| if first == Some(Kind::Int) { ty } else { Ty::never() };
        Ok(match self {
            // `-5.remainder(Float::INFINITY)` is -5.
            Remainder if int && first == Some(Kind::Float) => number(),
            Add | Sub | Mul | Div | Modulo | Pow | Remainder => mixed(),
            PowMod => match args {
                [_] => return Pow.result(receiver, args, literal),
                [Kind::Int, Kind::Int] => Ty::int(),
                _ => Ty::never(),
            },
            Neg | Plus | Abs | Abs2 | Real | Conjugate => same(),
            Not | Succ | Pred | Ord | BitLength | Size | Numerator | Denominator => Ty::int(),
            BitAnd | BitOr | BitXor | Gcd | Lcm => if_int(Ty::int()),
            Shl | Shr => if_number(Ty::int()),
            BitRef => bit_ref_type(args)?,
            Eq | NotEq | Eql | Same => Ty::bool(),
            Lt | Le | Gt | Ge => if_number(Ty::bool()),
            Compare => match first {
                Some(Kind::Int) if int => Ty::int(),
                Some(Kind::Int | Kind::Float) => int_or_nil(),
                _ => Ty::nil(),
            },
            Clamp => clamp_type(receiver, args)?,
            Between => between_type(args),
            Floor | Ceil | Round | Truncate => round_type(receiver, args, literal)?,
            ToI => Ty::int(),
            ToF | NextFloat | PrevFloat => Ty::float(),
            Zero | Positive | Negative | Even | Odd | Nan => Ty::bool(),
            NonZero => Ty::prim(Prims(same().prims.0 | Prims::NIL.0)),
            IntDiv => if_number(Ty::int()),
            Fdiv => if_number(Ty::float()),
            Quo if int && first != Some(Kind::Float) => {
                return Err(Unsupported {
                    why: "the quotient of two Integers is a Rational",
                    advice: "use `/` for the floored quotient, `fdiv` for a Float, or Rational(a, b)",
                });
            }
            Quo => if_number(Ty::float()),
            CeilDiv => if_number(Ty::int()),
            AllBits | AnyBits | NoBits => if_number(Ty::bool()),
            IsInteger => Ty::prim(if int { Prims::TRUE } else { Prims::FALSE }),
            Finite if int => Ty::prim(Prims::TRUE),
            Finite => Ty::bool(),
            Infinite if int => Ty::nil(),
            Infinite => int_or_nil(),
            // 0 or Math::PI; for NaN the angle is NaN.
            Arg => number(),
            IsReal => Ty::prim(Prims::TRUE),
            Imaginary => Ty::int(),
        })
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

fn prim(kind: Kind) -> u16 {
    match kind {
        Kind::Int => Prims::INT.0,
        Kind::Float => Prims::FLOAT.0,
        _ => 0,
    }
}

/// The type of `clamp`: that of the receiver or of a bound.
pub fn clamp_type(receiver: Kind, args: &[Kind]) -> Result<Ty, Unsupported> {
    let bound = |k: Kind| k.is_number() || k == Kind::Nil;
    Ok(match *args {
        [Kind::IntRange] => Ty::prim(Prims(prim(receiver) | Prims::INT.0)),
        [Kind::FloatRange] => Ty::prim(Prims(prim(receiver) | Prims::FLOAT.0)),
        [min, max] if bound(min) && bound(max) => Ty::prim(Prims(prim(receiver) | prim(min) | prim(max))),
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

/// The type of `between?`, which compares with the upper bound only if the lower one holds.
pub fn between_type(args: &[Kind]) -> Ty {
    match args {
        [min, max] if min.is_number() && max.is_number() => Ty::bool(),
        [min, _] if min.is_number() => Ty::prim(Prims::FALSE),
        _ => Ty::never(),
    }
}

/// The most digits after the point to which a kernel rounds. For more, Ruby computes with Rationals.
pub const MAX_ROUND_DIGITS: i64 = 14;
pub const TOO_MANY_DIGITS: &str = "rounding to more than 14 digits takes Rationals beyond 64 bits, which kernels lack";

/// The type of `floor`, `ceil`, `round` and `truncate`.
pub fn round_type(receiver: Kind, args: &[Kind], literal: Option<i64>) -> Result<Ty, Unsupported> {
    Ok(match (receiver, args, literal) {
        (_, [], _) => Ty::int(),
        (_, [k], _) if !k.is_number() => Ty::never(),
        (Kind::Int, ..) => Ty::int(),
        (_, _, Some(digits)) if i32::try_from(digits).is_err() => Ty::never(),
        (_, _, Some(digits)) if digits > MAX_ROUND_DIGITS => {
            return Err(Unsupported { why: TOO_MANY_DIGITS, advice: "round to 14 digits or fewer" });
        }
        (_, _, Some(digits)) if digits > 0 => Ty::float(),
        (_, _, Some(_)) => Ty::int(),
        _ => Ty::prim(Prims(Prims::INT.0 | Prims::FLOAT.0)),
    })
}

/// The type of `[]`.
pub fn bit_ref_type(args: &[Kind]) -> Result<Ty, Unsupported> {
    match args {
        [Kind::FloatRange] => {
            Err(Unsupported { why: "bits are counted in Integers", advice: "give the Range Integer bounds" })
        }
        [Kind::IntRange] => Ok(Ty::int()),
        args if args.iter().all(|k| k.is_number()) => Ok(Ty::int()),
        _ => Ok(Ty::never()),
    }
}

/// The types of quotient and remainder of `a.divmod(b)`; both are never if it always raises.
pub fn divmod_types(a: Kind, b: Kind) -> (Ty, Ty) {
    match (a, b) {
        (Kind::Int, Kind::Int) => (Ty::int(), Ty::int()),
        (Kind::Int | Kind::Float, Kind::Int | Kind::Float) => (Ty::int(), Ty::float()),
        _ => (Ty::never(), Ty::never()),
    }
}
