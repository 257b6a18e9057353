//! The code of the methods of Integer and Float in the IR. Names and result types are in [`crate::types::numeric`].
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
mod math;
#[cfg(test)]
mod questions;
mod raise;
mod random;
mod slot;
#[cfg(test)]
mod tests;

use self::slot::Slot;
use super::Cx;
use super::value::Val;
use crate::ir::{CheckedOp, Cmp, Op, Operand};
use crate::types::numeric::{Kind, Method};
use crate::types::{Ty, Unit};

pub use compare::{clamp_message, ordered};
pub use float::divmod;
pub use int::unsigned;
pub use math::single;
pub use raise::{carried, describe, mention, to_c_int, to_long};

impl Kind {
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
}

impl Method {
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
