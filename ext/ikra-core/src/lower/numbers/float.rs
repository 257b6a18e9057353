//! Float arithmetic, and the arithmetic of numbers of which one is a Float.

use super::raise::{self, as_float, zero_division_if};
use super::slot::Slot;
use super::{Val, int};
use crate::ir::{Cmp, MathFn, Op, Operand, Scalar, Trap};
use crate::lower::Cx;
use crate::types::numeric::Kind;
use crate::types::{Repr, Ty};

const ZERO: Operand = Operand::F64(0);

/// `a.divmod(b)` of a number `a`: quotient and remainder, in the forms of [`crate::types::numeric::divmod_types`].
pub fn divmod(cx: &mut Cx<'_>, a: Val, b: Val) -> (Val, Val) {
    if let (Val::Int(x), Val::Int(y)) = (a, b) {
        let quotient = int::div(cx, "divmod", x, y);
        let remainder = int::modulo(cx, x, y);
        return (Val::Int(quotient), Val::Int(remainder));
    }
    if !Kind::of_val(b).is_number() {
        raise::not_coerced(cx, Kind::of_val(a), b);
        return (Val::NEVER, Val::NEVER);
    }
    let (x, y) = (as_float(cx, a), as_float(cx, b));
    check_divisor(cx, y);
    let fraction = cx.b.f64(Op::FRem, &[x, y]);
    // (x - fraction) / y, except for an infinite x, whose quotient is x itself (and whose remainder is NaN).
    let whole = cx.b.f64(Op::FSub, &[x, fraction]);
    let quotient = cx.b.f64(Op::FDiv, &[whole, y]);
    let quotient = cx.b.f64(Op::FRound, &[quotient]);
    let infinite_x = infinite(cx, x);
    let infinite_y = infinite(cx, y);
    let finite_y = cx.b.bool(Op::Not, &[infinite_y]);
    let same = cx.b.bool(Op::And, &[infinite_x, finite_y]);
    let quotient = cx.b.select(Scalar::F64, same, x, quotient);
    let (off, lifted) = floored(cx, fraction, y);
    let less = cx.b.f64(Op::FSub, &[quotient, Operand::float(1.0)]);
    let quotient = cx.b.select(Scalar::F64, off, less, quotient);
    // The quotient by NaN is NaN, even for an infinite x.
    let nan = cx.b.fcmp(Cmp::Ne, y, y);
    let quotient = cx.b.select(Scalar::F64, nan, y, quotient);
    let quotient = raise::to_integer(cx, quotient, "divmod");
    (Val::Int(quotient), Val::Float(lifted))
}

fn check_divisor(cx: &mut Cx<'_>, y: Operand) {
    if !matches!(y, Operand::F64(bits) if f64::from_bits(bits) != 0.0) {
        let zero = cx.b.fcmp(Cmp::Eq, y, ZERO);
        zero_division_if(cx, zero);
    }
}

/// Whether C's remainder and the divisor have different signs, and the remainder with the divisor's sign.
fn floored(cx: &mut Cx<'_>, fraction: Operand, y: Operand) -> (Operand, Operand) {
    let product = cx.b.f64(Op::FMul, &[y, fraction]);
    let off = cx.b.fcmp(Cmp::Lt, product, ZERO);
    let lifted = cx.b.f64(Op::FAdd, &[fraction, y]);
    (off, cx.b.select(Scalar::F64, off, lifted, fraction))
}

pub fn infinite(cx: &mut Cx<'_>, x: Operand) -> Operand {
    let size = cx.b.f64(Op::FAbs, &[x]);
    cx.b.fcmp(Cmp::Eq, size, Operand::float(f64::INFINITY))
}

pub fn finite(cx: &mut Cx<'_>, x: Operand) -> Operand {
    let size = cx.b.f64(Op::FAbs, &[x]);
    cx.b.fcmp(Cmp::Lt, size, Operand::float(f64::INFINITY))
}

/// `%`. A divisor of 0.0 raises ZeroDivisionError, as 0 does.
pub fn modulo(cx: &mut Cx<'_>, x: Operand, y: Operand) -> Operand {
    check_divisor(cx, y);
    let fraction = cx.b.f64(Op::FRem, &[x, y]);
    floored(cx, fraction, y).1
}

/// `div`: the quotient as an Integer.
pub fn int_div(cx: &mut Cx<'_>, receiver: Val, y: Operand) -> Operand {
    let quotient = whole_quotient(cx, receiver, y);
    raise::to_integer(cx, quotient, "div")
}

/// `ceildiv`, which is `-receiver.div(-y)`.
pub fn ceil_div(cx: &mut Cx<'_>, receiver: Val, y: Operand) -> Operand {
    let y = cx.b.f64(Op::FSub, &[ZERO, y]);
    let quotient = whole_quotient(cx, receiver, y);
    // NaN and infinities raise before the sign is changed.
    let site = cx.site(Trap::FloatDomain, vec![Repr::Float]);
    let finite = finite(cx, quotient);
    let special = cx.b.bool(Op::Not, &[finite]);
    cx.b.trap_if(special, site, vec![quotient]);
    let negated = cx.b.f64(Op::FNeg, &[quotient]);
    raise::to_integer(cx, negated, "ceildiv")
}

/// The quotient rounded down; for an Integer that is an object on Ruby's heap, rounded towards 0.
fn whole_quotient(cx: &mut Cx<'_>, receiver: Val, y: Operand) -> Operand {
    check_divisor(cx, y);
    let x = as_float(cx, receiver);
    let quotient = cx.b.f64(Op::FDiv, &[x, y]);
    let floor = cx.b.f64(Op::FFloor, &[quotient]);
    let Val::Int(n) = receiver else { return floor };
    let heap = int::beyond_fixnum(&mut cx.b, n);
    let cut = cx.b.f64(Op::FTrunc, &[quotient]);
    cx.b.select(Scalar::F64, heap, cut, floor)
}

/// `remainder` if one of both is a Float. For an infinite divisor of the other sign, the remainder is the receiver
/// itself. An Integer stays an Integer, unless it is an object on Ruby's heap.
pub fn remainder(cx: &mut Cx<'_>, receiver: Val, arg: Val, ty: &Ty) -> Val {
    let (x, y) = (as_float(cx, receiver), as_float(cx, arg));
    let rest = modulo(cx, x, y);
    let there = cx.b.fcmp(Cmp::Ne, rest, ZERO);
    let sides = |cx: &mut Cx<'_>, cmp_x, cmp_y| {
        let (a, b) = (cx.b.fcmp(cmp_x, x, ZERO), cx.b.fcmp(cmp_y, y, ZERO));
        cx.b.bool(Op::And, &[a, b])
    };
    let (down, up) = (sides(cx, Cmp::Lt, Cmp::Gt), sides(cx, Cmp::Gt, Cmp::Lt));
    let across = cx.b.bool(Op::Or, &[down, up]);
    let off = cx.b.bool(Op::And, &[there, across]);
    let lowered = cx.b.f64(Op::FSub, &[rest, y]);
    let value = cx.b.select(Scalar::F64, off, lowered, rest);
    if !matches!(arg, Val::Float(_)) {
        return Val::Float(value);
    }
    let infinite = infinite(cx, y);
    let itself = cx.b.bool(Op::And, &[off, infinite]);
    let value = cx.b.select(Scalar::F64, itself, x, value);
    let Val::Int(n) = receiver else { return Val::Float(value) };
    let heap = int::beyond_fixnum(&mut cx.b, n);
    let small = cx.b.bool(Op::Not, &[heap]);
    let integer = cx.b.bool(Op::And, &[itself, small]);
    let slot = Slot::new(&mut cx.b, ty);
    cx.b.branch(integer, |b| slot.set(b, Val::Int(n)), |b| slot.set(b, Val::Float(value)));
    slot.val()
}

/// `**` if one of both is a Float. A negative base with a fractional exponent gives a Complex.
pub fn power(cx: &mut Cx<'_>, base: Val, exponent: Val) -> Operand {
    let (x, y) = (as_float(cx, base), as_float(cx, exponent));
    if let Val::Int(exponent) = exponent {
        // Ruby squares by multiplication, whose last digit may differ from that of `pow`.
        let square = cx.b.f64(Op::FMul, &[x, x]);
        if exponent == Operand::I64(2) {
            return square;
        }
        let power = cx.b.f64(Op::Math(MathFn::Pow), &[x, y]);
        if matches!(exponent, Operand::I64(_)) {
            return power;
        }
        let two = cx.b.icmp(Cmp::Eq, exponent, Operand::I64(2));
        return cx.b.select(Scalar::F64, two, square, power);
    }
    let site = cx.site(
        Trap::Limit {
            class: "RangeError",
            before: "a negative number ** ".into(),
            after: " is a Complex; in kernels Float ** gives Floats".into(),
        },
        vec![Repr::Float],
    );
    let whole = |y: u64| f64::from_bits(y).round() == f64::from_bits(y);
    if !matches!(y, Operand::F64(bits) if whole(bits)) {
        let negative = cx.b.fcmp(Cmp::Lt, x, ZERO);
        let round = cx.b.f64(Op::FRound, &[y]);
        let fraction = cx.b.fcmp(Cmp::Ne, y, round);
        let complex = cx.b.bool(Op::And, &[negative, fraction]);
        cx.b.trap_if(complex, site, vec![y]);
    }
    let power = cx.b.f64(Op::Math(MathFn::Pow), &[x, y]);
    if !matches!(base, Val::Int(_)) {
        return power;
    }
    // 0 ** NaN is 0.0 for an Integer 0; in all other cases Ruby's rules are those of `pow`.
    let zero = cx.b.fcmp(Cmp::Eq, x, ZERO);
    let nan = cx.b.fcmp(Cmp::Ne, y, y);
    let special = cx.b.bool(Op::And, &[zero, nan]);
    cx.b.select(Scalar::F64, special, ZERO, power)
}

/// `infinite?`: 1, -1 or nil.
pub fn infinite_sign(cx: &mut Cx<'_>, x: Operand, ty: &Ty) -> Val {
    let infinite = infinite(cx, x);
    let negative = cx.b.fcmp(Cmp::Lt, x, ZERO);
    let sign = cx.b.select(Scalar::I64, negative, Operand::I64(-1), Operand::I64(1));
    let slot = Slot::new(&mut cx.b, ty);
    cx.b.branch(infinite, |b| slot.set(b, Val::Int(sign)), |b| slot.set(b, Val::NIL));
    slot.val()
}

/// `arg`: 0, or π if the sign is set; for NaN it is NaN.
pub fn angle(cx: &mut Cx<'_>, x: Val, ty: &Ty) -> Val {
    let slot = Slot::new(&mut cx.b, ty);
    let pi = Val::Float(Operand::float(std::f64::consts::PI));
    match x {
        Val::Int(v) => {
            let negative = cx.b.icmp(Cmp::Lt, v, Operand::I64(0));
            cx.b.branch(negative, |b| slot.set(b, pi), |b| slot.set(b, Val::int(0)));
        }
        _ => {
            let v = as_float(cx, x);
            let nan = cx.b.fcmp(Cmp::Ne, v, v);
            cx.b.branch(
                nan,
                |b| slot.set(b, Val::Float(v)),
                |b| {
                    let bits = b.i64(Op::FloatBits, &[v]);
                    let negative = b.icmp(Cmp::Lt, bits, Operand::I64(0));
                    b.branch(negative, |b| slot.set(b, pi), |b| slot.set(b, Val::int(0)));
                },
            );
        }
    }
    slot.val()
}
