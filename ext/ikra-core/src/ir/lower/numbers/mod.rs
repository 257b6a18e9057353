//! The methods of Integer and Float: the table of methods, their result types, and the code of each in the IR.
//!
//! `int`: Integer arithmetic; `float`: Float arithmetic; `compare`: order and equality; `convert`: rounding and
//! conversions; `math`: Ruby's Math; `random`: `rand`. Not here: dispatch over unions (a caller passes one kind per
//! operand), keyword arguments, the check that a user's program has not redefined a method.
//!
//! Invariant: [`Method::lower`] returns a value whose form is that of [`Method::result`] for the same kinds.

mod compare;
mod convert;
mod float;
mod int;
pub mod math;
#[cfg(test)]
mod questions;
mod raise;
pub mod random;
mod slot;
#[cfg(test)]
mod tests;

use self::slot::Slot;
use super::Cx;
use super::value::Val;
use crate::ir::{CheckedOp, Cmp, Op, Operand};
use crate::types::{Atom, Prims, Ty, Unit};
use std::ops::RangeInclusive;

pub use compare::{clamp_message, ordered};
pub use convert::Conversion;
pub use float::{divmod, divmod_types};
pub use int::unsigned;
pub use raise::{carried, describe, mention, to_long};

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
    /// # Panics
    /// For unions and for values that cannot exist: the caller dispatches first.
    pub fn of_val(val: Val) -> Kind {
        match val {
            Val::Int(_) => Kind::Int,
            Val::Float(_) => Kind::Float,
            Val::IntRange { .. } => Kind::IntRange,
            Val::FloatRange { .. } => Kind::FloatRange,
            Val::Unit(Unit::Nil) => Kind::Nil,
            Val::Bool(_) | Val::Unit(Unit::True | Unit::False) => Kind::Bool,
            Val::Sym(_) => Kind::Sym,
            Val::Str(_)
            | Val::Ref(..)
            | Val::Array(..)
            | Val::Unit(Unit::Module(_) | Unit::Proc(_))
            | Val::Exception { .. } => Kind::Other,
            Val::Union { .. } | Val::Unit(Unit::Never) => unreachable!("unions are split before a number's method"),
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
    /// with 3.2). `divmod` is not among them: see [`divmod`].
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
            BitRef => int::bit_ref_type(args)?,
            Eq | NotEq | Eql | Same => Ty::bool(),
            Lt | Le | Gt | Ge => if_number(Ty::bool()),
            Compare => match first {
                Some(Kind::Int) if int => Ty::int(),
                Some(Kind::Int | Kind::Float) => int_or_nil(),
                _ => Ty::nil(),
            },
            Clamp => compare::clamp_type(receiver, args)?,
            Between => compare::between_type(args),
            Floor | Ceil | Round | Truncate => convert::round_type(receiver, args, literal)?,
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

    /// Emits the call at the cursor. `literal` is as for [`Method::result`]. If the result's type is [`Ty::never`], the
    /// value is [`Val::NEVER`] and the cursor cannot be reached.
    ///
    /// # Panics
    /// If [`Method::result`] refuses these kinds, or the number of arguments is wrong.
    pub fn lower(self, cx: &mut Cx<'_>, receiver: Val, args: &[Val], literal: Option<i64>) -> Val {
        use Method::*;
        let kinds: Vec<Kind> = args.iter().map(|a| Kind::of_val(*a)).collect();
        let ty = self.result(Kind::of_val(receiver), &kinds, literal).expect("the caller asked for the type first");
        match (self, receiver) {
            (Add | Sub | Mul | Div | Modulo | Remainder | IntDiv | Fdiv | Quo | CeilDiv | Pow, _) => {
                self.arithmetic(cx, receiver, args[0], &ty)
            }
            (PowMod, Val::Int(_)) if args.len() == 1 => Pow.arithmetic(cx, receiver, args[0], &ty),
            (PowMod, Val::Int(a)) => int::power_modulo(cx, a, args[0], args[1]),
            (BitAnd | BitOr | BitXor, Val::Int(a)) => match args[0] {
                Val::Int(b) => {
                    let op = match self {
                        BitAnd => Op::And,
                        BitOr => Op::Or,
                        _ => Op::Xor,
                    };
                    Val::Int(cx.b.i64(op, &[a, b]))
                }
                other => raise::not_coerced(cx, Kind::Int, other),
            },
            (Gcd | Lcm, Val::Int(a)) => match args[0] {
                Val::Int(b) if self == Gcd => Val::Int(int::gcd(cx, a, b)),
                Val::Int(b) => Val::Int(int::lcm(cx, a, b)),
                _ => raise::raise(cx, "TypeError", "not an integer"),
            },
            (Shl | Shr | AllBits | AnyBits | NoBits, Val::Int(a)) => {
                let Some(b) = raise::to_int(cx, args[0], self.names()[0]) else { return Val::NEVER };
                match self {
                    Shl | Shr => Val::Int(int::shift(cx, self == Shl, a, b)),
                    AllBits => Val::Bool(int::bits_test(cx, a, b, Cmp::Eq, None)),
                    AnyBits => Val::Bool(int::bits_test(cx, a, b, Cmp::Ne, Some(Operand::I64(0)))),
                    _ => Val::Bool(int::bits_test(cx, a, b, Cmp::Eq, Some(Operand::I64(0)))),
                }
            }
            (BitRef, Val::Int(a)) => int::bit_ref(cx, a, args),

            (Eq, _) => compare::equality(cx, Cmp::Eq, receiver, args[0]),
            (NotEq, _) => compare::equality(cx, Cmp::Ne, receiver, args[0]),
            (Eql, _) => compare::eql(cx, receiver, args[0]),
            (Same, _) => compare::same(cx, receiver, args[0]),
            (Lt, _) => compare::relation(cx, Cmp::Lt, receiver, args[0]),
            (Le, _) => compare::relation(cx, Cmp::Le, receiver, args[0]),
            (Gt, _) => compare::relation(cx, Cmp::Gt, receiver, args[0]),
            (Ge, _) => compare::relation(cx, Cmp::Ge, receiver, args[0]),
            (Compare, _) => compare::spaceship(cx, receiver, args[0], &ty),
            (Clamp, _) => compare::clamp(cx, receiver, args, &ty),
            (Between, _) => compare::between(cx, receiver, args[0], args[1]),

            (Floor, _) => convert::round(cx, convert::To::Floor, receiver, args, literal, &ty),
            (Ceil, _) => convert::round(cx, convert::To::Ceil, receiver, args, literal, &ty),
            (Round, _) => convert::round(cx, convert::To::Nearest, receiver, args, literal, &ty),
            (Truncate, _) => convert::round(cx, convert::To::Zero, receiver, args, literal, &ty),
            (ToI, _) => convert::to_i(cx, receiver),
            (ToF, _) => Val::Float(raise::as_float(cx, receiver)),

            (Zero, _) => compare::equality(cx, Cmp::Eq, receiver, Val::int(0)),
            (Positive, _) => compare::relation(cx, Cmp::Gt, receiver, Val::int(0)),
            (Negative, _) => compare::relation(cx, Cmp::Lt, receiver, Val::int(0)),
            (NonZero, _) => {
                let there = compare::test(cx, Cmp::Ne, receiver, Val::int(0));
                let slot = Slot::new(&mut cx.b, &ty);
                cx.b.branch(there, |b| slot.set(b, receiver), |b| slot.set(b, Val::NIL));
                slot.val()
            }
            (Plus | Real | Conjugate, _) => receiver,
            (Ord | Numerator, Val::Int(_)) => receiver,
            (IsInteger, _) => Val::bool(matches!(receiver, Val::Int(_))),
            (IsReal, _) => Val::bool(true),
            (Imaginary, _) => Val::int(0),
            (Denominator, Val::Int(_)) => Val::int(1),
            (Size, Val::Int(_)) => Val::int(8),
            (Arg, _) => float::angle(cx, receiver, &ty),
            (Abs2, _) => self.arithmetic(cx, receiver, receiver, &ty),

            (Neg, Val::Int(a)) => Val::Int(int::negate(cx, a)),
            (Abs, Val::Int(a)) => Val::Int(int::abs(cx, a)),
            (Not, Val::Int(a)) => Val::Int(cx.b.i64(Op::Xor, &[a, Operand::I64(-1)])),
            (Succ, Val::Int(a)) => Val::Int(int::arithmetic(cx, CheckedOp::Add, "succ", a, Operand::I64(1))),
            (Pred, Val::Int(a)) => Val::Int(int::arithmetic(cx, CheckedOp::Sub, "pred", a, Operand::I64(1))),
            (BitLength, Val::Int(a)) => Val::Int(int::bit_length(cx, a)),
            (Even, Val::Int(a)) => Val::Bool(int::bits_test(cx, a, Operand::I64(1), Cmp::Eq, Some(Operand::I64(0)))),
            (Odd, Val::Int(a)) => Val::Bool(int::bits_test(cx, a, Operand::I64(1), Cmp::Ne, Some(Operand::I64(0)))),
            (Finite, Val::Int(_)) => Val::bool(true),
            (Infinite, Val::Int(_)) => Val::NIL,

            (Neg, Val::Float(x)) => Val::Float(cx.b.f64(Op::FNeg, &[x])),
            (Abs, Val::Float(x)) => Val::Float(cx.b.f64(Op::FAbs, &[x])),
            (Finite, Val::Float(x)) => Val::Bool(float::finite(cx, x)),
            (Infinite, Val::Float(x)) => float::infinite_sign(cx, x, &ty),
            (Nan, Val::Float(x)) => Val::Bool(cx.b.fcmp(Cmp::Ne, x, x)),
            (NextFloat, Val::Float(x)) => Val::Float(cx.b.f64(Op::FNextAfter, &[x, Operand::float(f64::INFINITY)])),
            (PrevFloat, Val::Float(x)) => Val::Float(cx.b.f64(Op::FNextAfter, &[x, Operand::float(f64::NEG_INFINITY)])),
            _ => unreachable!("{self:?} is not a method of {receiver:?}"),
        }
    }

    /// Arithmetic with one argument: of two Integers, or of a Float and any number as doubles.
    fn arithmetic(self, cx: &mut Cx<'_>, receiver: Val, arg: Val, ty: &Ty) -> Val {
        use Method::*;
        if let (Val::Int(a), Val::Int(b)) = (receiver, arg) {
            return match self {
                Add => Val::Int(int::arithmetic(cx, CheckedOp::Add, "+", a, b)),
                Sub => Val::Int(int::arithmetic(cx, CheckedOp::Sub, "-", a, b)),
                Mul | Abs2 => Val::Int(int::arithmetic(cx, CheckedOp::Mul, "*", a, b)),
                Div => Val::Int(int::div(cx, "/", a, b)),
                IntDiv => Val::Int(int::div(cx, "div", a, b)),
                CeilDiv => Val::Int(int::ceil_div(cx, a, b)),
                Modulo => Val::Int(int::modulo(cx, a, b)),
                Remainder => Val::Int(int::remainder(cx, a, b)),
                Pow => Val::Int(int::power(cx, a, b)),
                Fdiv => Val::Float(int::fdiv(cx, a, b)),
                _ => unreachable!("{self:?} is not arithmetic of Integers"),
            };
        }
        if !Kind::of_val(arg).is_number() {
            return raise::not_coerced(cx, Kind::of_val(receiver), arg);
        }
        let (x, y) = (raise::as_float(cx, receiver), raise::as_float(cx, arg));
        match self {
            Add => Val::Float(cx.b.f64(Op::FAdd, &[x, y])),
            Sub => Val::Float(cx.b.f64(Op::FSub, &[x, y])),
            Mul | Abs2 => Val::Float(cx.b.f64(Op::FMul, &[x, y])),
            Div | Fdiv | Quo => Val::Float(cx.b.f64(Op::FDiv, &[x, y])),
            Modulo => Val::Float(float::modulo(cx, x, y)),
            IntDiv => Val::Int(float::int_div(cx, receiver, y)),
            CeilDiv => Val::Int(float::ceil_div(cx, receiver, y)),
            Remainder => float::remainder(cx, receiver, arg, ty),
            Pow => Val::Float(float::power(cx, receiver, arg)),
            _ => unreachable!("{self:?} is not arithmetic of Floats"),
        }
    }
}
