//! Order and equality.
//!
//! Integer and Float compare as the exact numbers they are: 2 ** 53 + 1 is greater than the Float 2.0 ** 53, although
//! it converts to it.

use super::raise::{not_compared, not_compared_if};
use super::slot::Slot;
use super::{Val, int, raise};
use crate::ir::build::Builder;
use crate::ir::{Cmp, FuncId, Op, Operand, Scalar, Stmt, Trap};
use crate::lower::Cx;
use crate::types::Ty;
use crate::types::numeric::Kind;

/// From here on every double is a whole number, and an Integer may lie between two doubles.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// The comparison with its sides exchanged.
fn flipped(cmp: Cmp) -> Cmp {
    match cmp {
        Cmp::Eq => Cmp::Eq,
        Cmp::Ne => Cmp::Ne,
        Cmp::Lt => Cmp::Gt,
        Cmp::Le => Cmp::Ge,
        Cmp::Gt => Cmp::Lt,
        Cmp::Ge => Cmp::Le,
    }
}

/// Compares two numbers. With NaN all but `Ne` are false.
pub fn test(cx: &mut Cx<'_>, cmp: Cmp, a: Val, b: Val) -> Operand {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => cx.b.icmp(cmp, a, b),
        (Val::Float(a), Val::Float(b)) => cx.b.fcmp(cmp, a, b),
        (Val::Int(i), Val::Float(f)) => int_with_float(cx, cmp, i, f),
        (Val::Float(f), Val::Int(i)) => int_with_float(cx, flipped(cmp), i, f),
        _ => unreachable!("{a:?} and {b:?} are not numbers"),
    }
}

/// Whether comparing as doubles is exact. An Integer below 2 ** 53 equals its double. Against a Float below that, the
/// rounding of no Integer matters.
fn exact_as_floats(i: Operand, f: Operand) -> bool {
    matches!(i, Operand::I64(n) if n.unsigned_abs() <= WHOLE as u64)
        || matches!(f, Operand::F64(bits) if { let f = f64::from_bits(bits); f.abs() < WHOLE || !f.is_finite() })
}

fn int_with_float(cx: &mut Cx<'_>, cmp: Cmp, i: Operand, f: Operand) -> Operand {
    let converted = raise::as_float(cx, Val::Int(i));
    if exact_as_floats(i, f) {
        return cx.b.fcmp(cmp, converted, f);
    }
    let function = order_function(cx);
    let result = cx.b.temp(Scalar::Bool);
    let size = cx.b.f64(Op::FAbs, &[f]);
    let small = cx.b.fcmp(Cmp::Lt, size, Operand::float(WHOLE));
    cx.b.branch(
        small,
        |b| {
            let value = b.fcmp(cmp, converted, f);
            b.set(result, value);
        },
        |b| {
            let order = b.call(function, vec![i, f], &[Scalar::Bool; 3], None);
            let value = of_order(b, cmp, [order[0], order[1], order[2]]);
            b.set(result, value);
        },
    );
    result.into()
}

/// The answer of a comparison from (less, equal, greater).
fn of_order(b: &mut Builder, cmp: Cmp, [less, equal, greater]: [Operand; 3]) -> Operand {
    match cmp {
        Cmp::Eq => equal,
        Cmp::Ne => b.bool(Op::Not, &[equal]),
        Cmp::Lt => less,
        Cmp::Le => b.bool(Op::Or, &[less, equal]),
        Cmp::Gt => greater,
        Cmp::Ge => b.bool(Op::Or, &[greater, equal]),
    }
}

/// `(Integer, Float that is whole, infinite or NaN) → (less, equal, greater)`; all are false for NaN.
fn order_function(cx: &mut Cx<'_>) -> FuncId {
    cx.helper("Integer <=> Float", || {
        let mut b = Builder::new("Integer <=> Float".into(), vec![Scalar::Bool; 3]);
        let i = Operand::Var(b.param(Scalar::I64, Some("integer".into())));
        let f = Operand::Var(b.param(Scalar::F64, Some("float".into())));
        let bound = 9_223_372_036_854_775_808.0;
        let low = b.fcmp(Cmp::Ge, f, Operand::float(-bound));
        let high = b.fcmp(Cmp::Lt, f, Operand::float(bound));
        let within = b.bool(Op::And, &[low, high]);
        b.branch(
            within,
            |b| {
                let f = b.i64(Op::FloatToInt, &[f]);
                let order = [Cmp::Lt, Cmp::Eq, Cmp::Gt].map(|cmp| b.icmp(cmp, i, f));
                b.push(Stmt::Return(order.to_vec()));
            },
            |b| {
                let less = b.fcmp(Cmp::Gt, f, Operand::float(0.0));
                let greater = b.fcmp(Cmp::Lt, f, Operand::float(0.0));
                b.push(Stmt::Return(vec![less, Operand::Bool(false), greater]));
            },
        );
        b.finish()
    })
}

/// (less, equal, greater) of two numbers.
fn order(cx: &mut Cx<'_>, a: Val, b: Val) -> [Operand; 3] {
    [Cmp::Lt, Cmp::Eq, Cmp::Gt].map(|cmp| test(cx, cmp, a, b))
}

/// Whether one of them is NaN, so that they have no order. None if both are Integers.
fn unordered(cx: &mut Cx<'_>, a: Val, b: Val) -> Option<Operand> {
    let nans: Vec<Operand> = [a, b]
        .into_iter()
        .filter_map(|v| match v {
            Val::Float(Operand::F64(bits)) if !f64::from_bits(bits).is_nan() => None,
            Val::Float(x) => Some(cx.b.fcmp(Cmp::Ne, x, x)),
            _ => None,
        })
        .collect();
    match nans[..] {
        [] => None,
        [one] => Some(one),
        _ => Some(cx.b.bool(Op::Or, &nans)),
    }
}

/// `<`, `<=`, `>`, `>=`
pub fn relation(cx: &mut Cx<'_>, cmp: Cmp, receiver: Val, arg: Val) -> Val {
    if Kind::of_val(arg).is_number() {
        return Val::Bool(test(cx, cmp, receiver, arg));
    }
    not_compared(cx, Kind::of_val(receiver), arg)
}

/// `==` and `!=`; a number equals only numbers.
pub fn equality(cx: &mut Cx<'_>, cmp: Cmp, receiver: Val, arg: Val) -> Val {
    if Kind::of_val(arg).is_number() {
        return Val::Bool(test(cx, cmp, receiver, arg));
    }
    Val::Bool(Operand::Bool(cmp == Cmp::Ne))
}

/// `eql?`: equal, and of one class.
pub fn eql(cx: &mut Cx<'_>, receiver: Val, arg: Val) -> Val {
    if Kind::of_val(receiver) == Kind::of_val(arg) {
        return equality(cx, Cmp::Eq, receiver, arg);
    }
    Val::Bool(Operand::Bool(false))
}

/// `equal?`: whether both are the same object. Small Integers and most Floats of Ruby are the same object if their bits
/// are the same. For other numbers every computation makes a new object, which kernels do not track, so equal ones
/// raise.
pub fn same(cx: &mut Cx<'_>, receiver: Val, arg: Val) -> Val {
    let (equal, heap) = match (receiver, arg) {
        (Val::Int(a), Val::Int(b)) => (cx.b.icmp(Cmp::Eq, a, b), int::beyond_fixnum(&mut cx.b, a)),
        (Val::Float(a), Val::Float(b)) => {
            let (a, b) = (cx.b.i64(Op::FloatBits, &[a]), cx.b.i64(Op::FloatBits, &[b]));
            (cx.b.icmp(Cmp::Eq, a, b), beyond_flonum(&mut cx.b, a))
        }
        _ => return Val::Bool(Operand::Bool(false)),
    };
    let unknown = cx.b.bool(Op::And, &[equal, heap]);
    let message = "kernels do not track the identity of Integers beyond 62 bits and of Floats beyond 1e-77..1e77";
    let site = cx.site(Trap::limit("RangeError", message), vec![]);
    cx.b.trap_if(unknown, site, vec![]);
    Val::Bool(equal)
}

/// Whether Ruby allocates a Float with these bits as an object: all except 0.0 and those whose exponent's top bits are
/// 011 or 100.
fn beyond_flonum(b: &mut Builder, bits: Operand) -> Operand {
    let top = b.i64(Op::UShr, &[bits, Operand::I64(60)]);
    let top = b.i64(Op::And, &[top, Operand::I64(7)]);
    let off = b.i64(Op::Sub, &[top, Operand::I64(3)]);
    let far = b.bool(Op::UCmp(Cmp::Gt), &[off, Operand::I64(1)]);
    let there = b.icmp(Cmp::Ne, bits, Operand::I64(0));
    b.bool(Op::And, &[far, there])
}

/// `<=>`
pub fn spaceship(cx: &mut Cx<'_>, receiver: Val, arg: Val, ty: &Ty) -> Val {
    if !Kind::of_val(arg).is_number() {
        return Val::NIL;
    }
    let sign = |b: &mut Builder, less: Operand, greater: Operand| {
        let (less, greater) = (b.i64(Op::BoolToInt, &[less]), b.i64(Op::BoolToInt, &[greater]));
        b.i64(Op::Sub, &[greater, less])
    };
    if let (Val::Int(_), Val::Int(_)) = (receiver, arg) {
        let [less, greater] = [Cmp::Lt, Cmp::Gt].map(|cmp| test(cx, cmp, receiver, arg));
        return Val::Int(sign(&mut cx.b, less, greater));
    }
    let [less, equal, greater] = order(cx, receiver, arg);
    let sign = sign(&mut cx.b, less, greater);
    let apart = cx.b.bool(Op::Or, &[less, greater]);
    let ordered = cx.b.bool(Op::Or, &[apart, equal]);
    let slot = Slot::new(&mut cx.b, ty);
    cx.b.branch(ordered, |b| slot.set(b, Val::Int(sign)), |b| slot.set(b, Val::NIL));
    slot.val()
}

pub fn clamp(cx: &mut Cx<'_>, receiver: Val, args: &[Val], ty: &Ty) -> Val {
    let (min, max) = match *args {
        [Val::IntRange { from, to, exclusive }] => {
            refuse_exclusive(cx, exclusive);
            (Val::Int(from), Val::Int(to))
        }
        [Val::FloatRange { from, to, exclusive }] => {
            refuse_exclusive(cx, exclusive);
            (Val::Float(from), Val::Float(to))
        }
        [min, max] => (min, max),
        [other] => {
            return raise::describe(cx, "TypeError", "wrong argument type ", other, " (expected Range)");
        }
        _ => unreachable!("`clamp` takes one or two arguments"),
    };
    let kinds = [receiver, min, max].map(Kind::of_val);
    let is_number = kinds.map(Kind::is_number);
    if min != Val::NIL && max != Val::NIL {
        if !is_number[1] {
            return raise::mention(cx, "ArgumentError", "comparison of Symbol with ", max, " failed");
        }
        if !is_number[2] {
            return not_compared(cx, kinds[1], max);
        }
        check_bounds(cx, min, max);
    }
    for (bound, is_number) in [(min, is_number[1]), (max, is_number[2])] {
        if bound != Val::NIL && !is_number {
            return not_compared(cx, kinds[0], bound);
        }
    }
    // A receiver beyond the lower bound is never beyond the upper one.
    let slot = Slot::new(&mut cx.b, ty);
    slot.set(&mut cx.b, receiver);
    let below = (min != Val::NIL).then(|| {
        if let Some(nan) = unordered(cx, receiver, min) {
            not_compared_if(cx, nan, kinds[0], min);
        }
        test(cx, Cmp::Lt, receiver, min)
    });
    if let Some(below) = below {
        cx.b.when(below, |b| slot.set(b, min));
    }
    if max != Val::NIL {
        // A receiver below the lower bound is not compared with the upper bound, which may be NaN.
        if min == Val::NIL
            && let Some(nan) = unordered(cx, receiver, max)
        {
            not_compared_if(cx, nan, kinds[0], max);
        }
        let above = test(cx, Cmp::Gt, receiver, max);
        cx.b.when(above, |b| slot.set(b, max));
    }
    slot.val()
}

fn refuse_exclusive(cx: &mut Cx<'_>, exclusive: Operand) {
    if exclusive != Operand::Bool(false) {
        raise::raise_if(cx, exclusive, "ArgumentError", "cannot clamp with an exclusive range");
    }
}

fn check_bounds(cx: &mut Cx<'_>, min: Val, max: Val) {
    match (min, max) {
        (Val::Int(Operand::I64(a)), Val::Int(Operand::I64(b))) if a <= b => return,
        (Val::Float(Operand::F64(a)), Val::Float(Operand::F64(b))) if f64::from_bits(a) <= f64::from_bits(b) => return,
        _ => {}
    }
    if let Some(nan) = unordered(cx, min, max) {
        not_compared_if(cx, nan, Kind::of_val(min), max);
    }
    let crossed = test(cx, Cmp::Gt, min, max);
    let message = clamp_message(cx);
    raise::raise_if(cx, crossed, "ArgumentError", message);
}

/// The message of `clamp` for bounds in the wrong order.
pub fn clamp_message(cx: &Cx<'_>) -> &'static str {
    if cx.shared.options.ruby >= (3, 3) {
        "min argument must be less than or equal to max argument"
    } else {
        "min argument must be smaller than max argument"
    }
}

pub fn between(cx: &mut Cx<'_>, receiver: Val, min: Val, max: Val) -> Val {
    let kind = Kind::of_val(receiver);
    if !Kind::of_val(min).is_number() {
        return not_compared(cx, kind, min);
    }
    if let Some(nan) = unordered(cx, receiver, min) {
        not_compared_if(cx, nan, kind, min);
    }
    let above = test(cx, Cmp::Ge, receiver, min);
    if !Kind::of_val(max).is_number() {
        not_compared_if(cx, above, kind, max);
        return Val::bool(false);
    }
    if let Some(nan) = unordered(cx, receiver, max) {
        let asked = cx.b.bool(Op::And, &[above, nan]);
        not_compared_if(cx, asked, kind, max);
    }
    let below = test(cx, Cmp::Le, receiver, max);
    Val::Bool(cx.b.bool(Op::And, &[above, below]))
}

/// Raises ArgumentError if one of two Floats is NaN, as Ruby does when it sorts by `x <=> y`.
pub fn ordered(cx: &mut Cx<'_>, x: Operand, y: Operand) {
    let (a, b) = (cx.b.fcmp(Cmp::Ne, x, x), cx.b.fcmp(Cmp::Ne, y, y));
    let unordered = cx.b.bool(Op::Or, &[a, b]);
    raise::not_compared_if(cx, unordered, Kind::Float, Val::Float(y));
}
