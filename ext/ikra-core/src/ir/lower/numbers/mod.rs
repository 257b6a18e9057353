//! What the methods of Integer and Float do, made explicit in the IR: the table of methods, their result types, and
//! the way to the code of each.
//!
//! `int`: Integer arithmetic; `float`: Float arithmetic; `compare`: order and equality; `convert`: rounding and
//! conversions; `math`: Ruby's Math; `random`: `rand`. Not here: dispatch over unions (a caller comes with one kind
//! per operand), keyword arguments, the check that a user's program has not redefined a method.
//!
//! Invariant: [`Method::lower`] answers a value whose form is that of [`Method::result`] for the same kinds.

mod compare;
mod convert;
mod float;
mod int;
pub mod math;
mod raise;
pub mod random;

use super::Cx;
use super::value::Val;
use crate::types::{Atom, Prims, Ty, Unit};
use std::ops::RangeInclusive;

pub use float::{divmod, divmod_types};

/// One kind of receiver or argument: what is left of an [`Atom`] once methods of numbers look at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    Int,
    Float,
    IntRange,
    FloatRange,
    Nil,
    /// True, false, or one of them at run time.
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
            Atom::Module(_) | Atom::Array(_) | Atom::Object(_) => Kind::Other,
        }
    }
    /// # Panics
    /// For unions and values that are never there: dispatch comes first.
    pub fn of_val(val: Val) -> Kind {
        match val {
            Val::Int(_) => Kind::Int,
            Val::Float(_) => Kind::Float,
            Val::IntRange { .. } => Kind::IntRange,
            Val::FloatRange { .. } => Kind::FloatRange,
            Val::Unit(Unit::Nil) => Kind::Nil,
            Val::Bool(_) | Val::Unit(Unit::True | Unit::False) => Kind::Bool,
            Val::Sym(_) => Kind::Sym,
            Val::Ref(..) | Val::Array(..) | Val::Unit(Unit::Module(_)) => Kind::Other,
            Val::Union { .. } | Val::Unit(Unit::Never) => unreachable!("unions are split before a number's method"),
        }
    }
    pub fn is_number(self) -> bool {
        matches!(self, Kind::Int | Kind::Float)
    }
}

/// Ruby could do it and Ikra cannot: why, and what to write instead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unsupported {
    pub why: &'static str,
    pub advice: &'static str,
}

/// Who has a method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Int,
    Float,
    Both,
}

macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident: $($name:literal)|+, $on:ident, $arity:expr;)*) => {
        /// A method of Integer or Float that takes no block and answers no Array or String.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Method { $($(#[$doc])* $method,)* }

        impl Method {
            /// Every method.
            pub const ALL: &'static [Method] = &[$(Method::$method,)*];

            /// The names Ruby has for it, the usual one first.
            pub fn names(self) -> &'static [&'static str] {
                match self { $(Method::$method => &[$($name),+],)* }
            }
            /// How many positional arguments it takes; with others Ruby raises ArgumentError.
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
    Cmp: "<=>", Both, 1..=1;
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
    /// The method of that name on an Integer or a Float. Whether the running Ruby has it is for the caller to ask
    /// (`ceildiv` came with 3.2). `divmod` is not among them: see [`divmod`].
    pub fn find(receiver: Kind, name: &str) -> Option<Method> {
        let has = |m: &Method| match m.on() {
            On::Int => receiver == Kind::Int,
            On::Float => receiver == Kind::Float,
            On::Both => receiver.is_number(),
        };
        Self::ALL.iter().copied().find(|m| m.names().contains(&name) && has(m))
    }

    /// What Ruby calls on an argument that is an ordinary object, before it gives up as [`Method::lower`] does. Where
    /// such an object answers to that name the caller refuses to compile the call (for `==`: unless the answer is
    /// BasicObject's own).
    pub fn asks_argument(self) -> Option<&'static str> {
        use Method::*;
        match self {
            Eq | NotEq => Some("=="),
            Add | Sub | Mul | Div | Modulo | Pow | BitAnd | BitOr | BitXor | Lt | Le | Gt | Ge | Cmp | Clamp
            | Between | IntDiv | Remainder | Fdiv | Quo => Some("coerce"),
            Shl | Shr | BitRef | AllBits | AnyBits | NoBits | Floor | Ceil | Round | Truncate => Some("to_int"),
            CeilDiv => Some("-@"),
            _ => None,
        }
    }

    /// The type of the result, [`Ty::never`] where it always raises. `literal` is the first argument's value where the
    /// source has an Integer literal there: the digits of `floor`, `ceil`, `round` and `truncate`, whose sign decides
    /// between Integer and Float.
    ///
    /// # Errors
    /// Ruby could do it and Ikra cannot.
    pub fn result(self, receiver: Kind, args: &[Kind], literal: Option<i64>) -> Result<Ty, Unsupported> {
        use Method::*;
        let int = receiver == Kind::Int;
        let first = args.first().copied();
        let int_or_nil = || Ty::prim(Prims(Prims::INT.0 | Prims::NIL.0));
        let same = || if int { Ty::int() } else { Ty::float() };
        // Integer with Integer is Integer, Float in either place makes Float, all else raises.
        let mixed = || match first {
            Some(Kind::Int) => same(),
            Some(Kind::Float) => Ty::float(),
            _ => Ty::never(),
        };
        let if_number = |ty: Ty| if first.is_some_and(Kind::is_number) { ty } else { Ty::never() };
        let if_int = |ty: Ty| if first == Some(Kind::Int) { ty } else { Ty::never() };
        Ok(match self {
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
            Cmp => match first {
                Some(Kind::Int) if int => Ty::int(),
                Some(Kind::Int | Kind::Float) => int_or_nil(),
                _ => Ty::nil(),
            },
            Clamp => compare::clamp_type(receiver, args),
            Between => compare::between_type(args),
            Floor | Ceil | Round | Truncate => convert::round_type(receiver, args, literal),
            ToI => Ty::int(),
            ToF | NextFloat | PrevFloat => Ty::float(),
            Zero | Positive | Negative | Even | Odd | Nan => Ty::bool(),
            NonZero => Ty::prim(Prims(same().prims.0 | Prims::NIL.0)),
            IntDiv => if_number(Ty::int()),
            Fdiv => if_number(Ty::float()),
            Quo if int && first != Some(Kind::Float) => {
                return Err(Unsupported {
                    why: "the quotient of two Integers is a Rational, which kernels lack",
                    advice: "use `/` for the floored quotient, or `fdiv` for a Float",
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
            // 0 or Math::PI; NaN is its own angle.
            Arg => Ty::prim(Prims(Prims::INT.0 | Prims::FLOAT.0)),
            IsReal => Ty::prim(Prims::TRUE),
            Imaginary => Ty::int(),
        })
    }

    /// Emits the call at the cursor. `literal` is what [`Method::result`] was given. Where the result's type is
    /// [`Ty::never`], the value is [`Val::NEVER`] and the cursor cannot be reached.
    pub fn lower(self, cx: &mut Cx<'_>, receiver: Val, args: &[Val], literal: Option<i64>) -> Val {
        todo!("{self:?} {receiver:?} {args:?} {literal:?} {}", cx.line)
    }
}
