//! Rounding, and conversions between Integer and Float.

use super::raise::{self, overflow_if, to_integer};
use super::slot::Slot;
use super::{Val, int};
use crate::ir::build::Builder;
use crate::ir::{Cmp, Op, Operand, Scalar, SiteId, Stmt, Trap, VarId};
use crate::lower::Cx;
use crate::types::Ty;
use crate::types::numeric::{Conversion, Kind, MAX_ROUND_DIGITS, TOO_MANY_DIGITS};

/// The direction of rounding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    Floor,
    Ceil,
    /// To nearest, ties away from zero.
    Nearest,
    Zero,
    /// Towards 0, for the whole part of a Float: `floor` above 0, and `ceil` below.
    ZeroOfFloat,
}

impl To {
    /// The Ruby method.
    fn name(self) -> &'static str {
        match self {
            To::Floor => "floor",
            To::Ceil => "ceil",
            To::Nearest => "round",
            To::Zero | To::ZeroOfFloat => "truncate",
        }
    }
    fn op(self) -> Op {
        match self {
            To::Floor => Op::FFloor,
            To::Ceil => Op::FCeil,
            To::Nearest => Op::FRound,
            To::Zero | To::ZeroOfFloat => Op::FTrunc,
        }
    }
}

pub fn round(cx: &mut Cx<'_>, to: To, receiver: Val, args: &[Val], literal: Option<i64>, ty: &Ty) -> Val {
    let digits = match (args, literal) {
        ([], _) => Operand::I64(0),
        ([_], Some(n)) if i32::try_from(n).is_ok() => Operand::I64(n),
        (&[digits, ..], _) => match raise::to_c_int(cx, digits) {
            Some(digits) => digits,
            None => return Val::NEVER,
        },
    };
    match receiver {
        Val::Int(a) => Val::Int(integer(cx, to, a, digits)),
        Val::Float(x) => match digits {
            // The literal does not fit into a C int, so the check above always raises.
            _ if ty.is_never() => raise::raise(cx, "RangeError", "digits out of range"),
            Operand::I64(n) if n > 0 && literal.is_some() => Val::Float(behind_point(cx, to, x, digits)),
            Operand::I64(n) if n <= 0 && (literal.is_some() || args.is_empty()) => {
                Val::Int(before_point(cx, to, x, digits))
            }
            _ => float(cx, to, x, digits, ty),
        },
        other => unreachable!("{other:?} is not a number"),
    }
}

/// Rounds a Float to a number of digits that is known only at run time.
fn float(cx: &mut Cx<'_>, to: To, x: Operand, digits: Operand, ty: &Ty) -> Val {
    let slot = Slot::new(&mut cx.b, ty);
    let behind = cx.b.icmp(Cmp::Gt, digits, Operand::I64(0));
    cx.b.open();
    let value = any_behind_point(cx, to, x, digits);
    slot.set(&mut cx.b, Val::Float(value));
    let then = cx.b.close();
    cx.b.open();
    let value = before_point(cx, to, x, digits);
    slot.set(&mut cx.b, Val::Int(value));
    let otherwise = cx.b.close();
    cx.b.push(Stmt::If { cond: behind, then, otherwise });
    slot.val()
}

/// Rounds a Float to an Integer with `-digits` zeros, for digits ≤ 0.
fn before_point(cx: &mut Cx<'_>, to: To, x: Operand, digits: Operand) -> Operand {
    // For zeros, Ruby's `round` drops the fraction first.
    let op = match (to, digits) {
        (To::Nearest, Operand::I64(0)) => Op::FRound,
        (To::Nearest, Operand::I64(_)) => Op::FTrunc,
        (To::Nearest, _) => {
            let units = cx.b.icmp(Cmp::Eq, digits, Operand::I64(0));
            let (nearest, whole) = (cx.b.f64(Op::FRound, &[x]), cx.b.f64(Op::FTrunc, &[x]));
            let whole = cx.b.select(Scalar::F64, units, nearest, whole);
            let whole = to_integer(cx, whole, to.name());
            return integer(cx, to, whole, digits);
        }
        _ => to.op(),
    };
    let whole = cx.b.f64(op, &[x]);
    let whole = to_integer(cx, whole, to.name());
    integer(cx, if to == To::Zero { To::ZeroOfFloat } else { to }, whole, digits)
}

/// Rounds an Integer to a number of digits; digits after the point change nothing.
fn integer(cx: &mut Cx<'_>, to: To, a: Operand, digits: Operand) -> Operand {
    match digits {
        Operand::I64(0..) => a,
        Operand::I64(digits @ -18..) => to_multiple(cx, to, a, Operand::I64(10i64.pow(digits.unsigned_abs() as u32))),
        Operand::I64(digits) => to_far_multiple(cx, to, a, Operand::I64(digits)),
        _ => {
            let result = cx.b.temp(Scalar::I64);
            cx.b.set(result, a);
            let before = cx.b.icmp(Cmp::Lt, digits, Operand::I64(0));
            cx.b.open();
            let near = cx.b.icmp(Cmp::Ge, digits, Operand::I64(-18));
            cx.b.open();
            let zeros = cx.b.i64(Op::Sub, &[Operand::I64(0), digits]);
            let unit = int::power_of_ten(cx, zeros);
            let value = to_multiple(cx, to, a, unit);
            cx.b.set(result, value);
            let then = cx.b.close();
            cx.b.open();
            let value = to_far_multiple(cx, to, a, digits);
            cx.b.set(result, value);
            let otherwise = cx.b.close();
            cx.b.push(Stmt::If { cond: near, then, otherwise });
            let then = cx.b.close();
            cx.b.push(Stmt::If { cond: before, then, otherwise: vec![] });
            result.into()
        }
    }
}

/// Rounds an Integer to a multiple of `unit`, which is even and positive.
fn to_multiple(cx: &mut Cx<'_>, to: To, a: Operand, unit: Operand) -> Operand {
    use crate::ir::CheckedOp::{Add, Sub};
    let rest = cx.b.i64(Op::Rem, &[a, unit]);
    let base = cx.b.i64(Op::Sub, &[a, rest]);
    if let Some(off) = off_by_one_unit(cx, to, a, rest) {
        let step = cx.b.select(Scalar::I64, off, unit, Operand::I64(0));
        let base = int::arithmetic(cx, Add, to.name(), base, step);
        if matches!(to, To::Zero | To::ZeroOfFloat) {
            return base;
        }
        let up = cx.b.icmp(Cmp::Gt, rest, Operand::I64(0));
        let step = cx.b.select(Scalar::I64, up, unit, Operand::I64(0));
        return int::arithmetic(cx, Add, to.name(), base, step);
    }
    let edge = match (to, unit) {
        (To::Nearest, Operand::I64(unit)) => Operand::I64(unit / 2),
        (To::Nearest, _) => cx.b.i64(Op::Shr, &[unit, Operand::I64(1)]),
        _ => Operand::I64(1),
    };
    let zero = Operand::I64(0);
    let mut step = zero;
    if to != To::Floor {
        let up = cx.b.icmp(Cmp::Ge, rest, edge);
        step = cx.b.select(Scalar::I64, up, unit, zero);
    }
    let mut value = int::arithmetic(cx, Add, to.name(), base, step);
    if to != To::Ceil {
        let edge = cx.b.i64(Op::Sub, &[zero, edge]);
        let down = cx.b.icmp(Cmp::Le, rest, edge);
        let step = cx.b.select(Scalar::I64, down, unit, zero);
        value = int::arithmetic(cx, Sub, to.name(), value, step);
    }
    value
}

/// Whether Ruby's answer is one unit too large. For multiples that are objects on Ruby's heap, `truncate` is so below
/// 0, and `ceil` was so before the fix of bug 20654. None: it never is.
fn off_by_one_unit(cx: &mut Cx<'_>, to: To, a: Operand, rest: Operand) -> Option<Operand> {
    let wrong = match to {
        To::Ceil if before_fix(cx) => Operand::Bool(true),
        To::ZeroOfFloat if !before_fix(cx) => Operand::Bool(false),
        To::Zero | To::ZeroOfFloat => cx.b.icmp(Cmp::Lt, a, Operand::I64(0)),
        _ => return None,
    };
    let heap = int::beyond_fixnum(&mut cx.b, a);
    let multiple = cx.b.icmp(Cmp::Eq, rest, Operand::I64(0));
    let off = cx.b.bool(Op::And, &[heap, multiple]);
    Some(cx.b.bool(Op::And, &[off, wrong]))
}

/// Whether the running Ruby has bug 20654, which patch releases of 3.2 and 3.3 fix, and none of 3.1.
fn before_fix(cx: &Cx<'_>) -> bool {
    cx.shared.options.ruby < (3, 2)
}

/// Rounds an Integer to a multiple of 10 ** 19 or more, for digits < -18: 0, or a number beyond 64 bits. Before the fix
/// of bug 20654, Ruby's `floor` and `ceil` give 0 from 10 ** 20 on, and `ceil` rounds 0 to 10 ** 19.
fn to_far_multiple(cx: &mut Cx<'_>, to: To, a: Operand, digits: Operand) -> Operand {
    let zero = Operand::I64(0);
    let old = before_fix(cx);
    let away = match to {
        To::Zero | To::ZeroOfFloat => return zero,
        To::Floor => cx.b.icmp(Cmp::Lt, a, zero),
        To::Ceil if old => cx.b.icmp(Cmp::Ge, a, zero),
        To::Ceil => cx.b.icmp(Cmp::Gt, a, zero),
        To::Nearest => {
            let half = 5_000_000_000_000_000_000;
            let above = cx.b.icmp(Cmp::Ge, a, Operand::I64(half));
            let below = cx.b.icmp(Cmp::Le, a, Operand::I64(-half));
            cx.b.bool(Op::Or, &[above, below])
        }
    };
    let leaves = if to == To::Nearest || old {
        let near = cx.b.icmp(Cmp::Eq, digits, Operand::I64(-19));
        cx.b.bool(Op::And, &[away, near])
    } else {
        away
    };
    overflow_if(cx, leaves, to.name());
    zero
}

/// Rounds a Float to digits after the point, for digits > 0 that are known only at run time.
fn any_behind_point(cx: &mut Cx<'_>, to: To, x: Operand, digits: Operand) -> Operand {
    let result = cx.b.temp(Scalar::F64);
    let few = cx.b.icmp(Cmp::Le, digits, Operand::I64(MAX_ROUND_DIGITS));
    cx.b.open();
    let value = behind_point(cx, to, x, digits);
    cx.b.set(result, value);
    let then = cx.b.close();
    let site = cx.site(Trap::limit("RangeError", TOO_MANY_DIGITS), vec![]);
    cx.b.open();
    far_behind_point(&mut cx.b, to, x, digits, result, site);
    let otherwise = cx.b.close();
    cx.b.push(Stmt::If { cond: few, then, otherwise });
    result.into()
}

/// Rounds a Float to more than 14 digits. The result is the Float itself if it has no more digits, by Ruby's estimate
/// from its exponent. It is 0.0 if the Float is too small, by the same estimate. Otherwise it raises.
fn far_behind_point(b: &mut Builder, to: To, x: Operand, digits: Operand, result: VarId, site: SiteId) {
    let zero = Operand::float(0.0);
    let bits = b.i64(Op::FloatBits, &[x]);
    let exponent = b.i64(Op::UShr, &[bits, Operand::I64(52)]);
    let exponent = b.i64(Op::And, &[exponent, Operand::I64(0x7ff)]);
    // C's frexp, whose mantissa is less than 1. Subnormals count as the least normal numbers.
    let exponent = b.i64(Op::Sub, &[exponent, Operand::I64(1022)]);
    let quarter = b.i64(Op::Div, &[exponent, Operand::I64(4)]);
    let third = b.i64(Op::Div, &[exponent, Operand::I64(3)]);
    let third = b.i64(Op::Sub, &[third, Operand::I64(1)]);
    let great = b.icmp(Cmp::Gt, exponent, Operand::I64(0));
    let shift = b.select(Scalar::I64, great, quarter, third);
    let least = b.i64(Op::Sub, &[Operand::I64(17), shift]);
    let more = b.icmp(Cmp::Ge, digits, least);
    let none = b.fcmp(Cmp::Eq, x, zero);
    let own = b.bool(Op::Or, &[more, none]);
    let most = b.i64(Op::Sub, &[Operand::I64(0), quarter]);
    let tiny = b.icmp(Cmp::Lt, digits, most);
    let vanishes = vanishing(b, to, x, tiny);
    let known = b.bool(Op::Or, &[own, vanishes]);
    let unknown = b.bool(Op::Not, &[known]);
    b.trap_if(unknown, site, vec![]);
    let value = b.select(Scalar::F64, own, x, zero);
    b.set(result, value);
}

/// Whether a tiny Float rounds to 0.0, and not to the nearest unit away from it.
fn vanishing(b: &mut Builder, to: To, x: Operand, tiny: Operand) -> Operand {
    let inwards = match to {
        To::Nearest | To::Zero | To::ZeroOfFloat => return tiny,
        To::Floor => Cmp::Gt,
        To::Ceil => Cmp::Lt,
    };
    let inwards = b.fcmp(inwards, x, Operand::float(0.0));
    b.bool(Op::And, &[tiny, inwards])
}

/// Rounds a Float to 1 to 14 digits after the point.
fn behind_point(cx: &mut Cx<'_>, to: To, x: Operand, digits: Operand) -> Operand {
    let scale = match digits {
        Operand::I64(n) => Operand::float(10f64.powi(n as i32)),
        _ => {
            let scale = int::power_of_ten(cx, digits);
            cx.b.f64(Op::IntToFloat, &[scale])
        }
    };
    // From 2 ** (4 * (17 - digits) - 1) on it has no digit to drop; below 2 ** (-4 * (digits + 1)) it has none to keep.
    let power = |cx: &mut Cx<'_>, plus: i64| match digits {
        Operand::I64(n) => Operand::float(2f64.powi((plus - 4 * n) as i32)),
        _ => {
            let scaled = cx.b.i64(Op::Mul, &[digits, Operand::I64(-4)]);
            int::power_of_two(&mut cx.b, scaled, plus)
        }
    };
    let (great, small) = (power(cx, 67), power(cx, -4));
    let b = &mut cx.b;
    let size = b.f64(Op::FAbs, &[x]);
    let zero = Operand::float(0.0);
    let positive = b.fcmp(Cmp::Gt, x, zero);
    let tiny = b.fcmp(Cmp::Lt, size, small);
    let vanishes = vanishing(b, to, x, tiny);
    let value = match to {
        To::Nearest => nearest(b, x, scale, positive),
        To::Floor => floor(b, x, scale),
        To::Ceil => ceil(b, x, scale),
        To::Zero | To::ZeroOfFloat => {
            let (floor, ceil) = (floor(b, x, scale), ceil(b, x, scale));
            b.select(Scalar::F64, positive, floor, ceil)
        }
    };
    let value = b.select(Scalar::F64, vanishes, zero, value);
    // -0.0 and infinities stay as they are.
    let whole = b.fcmp(Cmp::Ge, size, great);
    let none = b.fcmp(Cmp::Eq, x, zero);
    let own = b.bool(Op::Or, &[whole, none]);
    b.select(Scalar::F64, own, x, value)
}

/// `x` in units of 1 / scale, rounded half up. Ruby corrects products that were rounded down to below a half.
fn nearest(b: &mut Builder, x: Operand, scale: Operand, positive: Operand) -> Operand {
    let product = b.f64(Op::FMul, &[x, scale]);
    let units = b.f64(Op::FRound, &[product]);
    let side = |b: &mut Builder, op: Op, cmp: Cmp| {
        let half = b.f64(op, &[units, Operand::float(0.5)]);
        let half = b.f64(Op::FDiv, &[half, scale]);
        let more = b.fcmp(cmp, half, x);
        let next = b.f64(op, &[units, Operand::float(1.0)]);
        b.select(Scalar::F64, more, next, units)
    };
    let above = side(b, Op::FAdd, Cmp::Le);
    let below = side(b, Op::FSub, Cmp::Ge);
    let units = b.select(Scalar::F64, positive, above, below);
    b.f64(Op::FDiv, &[units, scale])
}

/// `x` in units of 1 / scale, rounded down, unless the next unit is not above it either.
fn floor(b: &mut Builder, x: Operand, scale: Operand) -> Operand {
    let product = b.f64(Op::FMul, &[x, scale]);
    let units = b.f64(Op::FFloor, &[product]);
    let next = b.f64(Op::FAdd, &[units, Operand::float(1.0)]);
    let next = b.f64(Op::FDiv, &[next, scale]);
    let above = b.fcmp(Cmp::Gt, next, x);
    let here = b.f64(Op::FDiv, &[units, scale]);
    b.select(Scalar::F64, above, here, next)
}

/// `x` in units of 1 / scale, rounded up. If rounding of the product has raised it, the raised value counts, as in
/// Ruby.
fn ceil(b: &mut Builder, x: Operand, scale: Operand) -> Operand {
    let product = b.f64(Op::FMul, &[x, scale]);
    let units = b.f64(Op::FCeil, &[product]);
    b.f64(Op::FDiv, &[units, scale])
}

/// `to_i`
pub fn to_i(cx: &mut Cx<'_>, receiver: Val) -> Val {
    match receiver {
        Val::Float(x) => {
            let whole = cx.b.f64(Op::FTrunc, &[x]);
            Val::Int(to_integer(cx, whole, "to_i"))
        }
        other => other,
    }
}

impl Conversion {
    /// Emits the conversion; the value's form is that of [`Conversion::result`]. Ruby calls `to_int`, `to_i` or `to_f`
    /// on an ordinary object; if the object has them, the caller refuses.
    pub fn lower(self, cx: &mut Cx<'_>, arg: Val) -> Val {
        match self {
            _ if Kind::of_val(arg).is_number() => match self {
                Conversion::Integer => to_i(cx, arg),
                Conversion::Float => Val::Float(raise::as_float(cx, arg)),
            },
            Conversion::Integer => raise::describe(cx, "TypeError", "can't convert ", arg, " into Integer"),
            Conversion::Float => raise::describe(cx, "TypeError", "can't convert ", arg, " into Float"),
        }
    }
}
