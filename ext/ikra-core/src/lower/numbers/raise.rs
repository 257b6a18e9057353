//! The exceptions of numeric methods, in Ruby's own words, and the conversions that raise them.
//!
//! A function that returns [`Val`] always raises: the value is [`Val::NEVER`], and the cursor cannot be reached.

use super::{Kind, Val};
use crate::id::ClassId;
use crate::ir::{Cmp, Op, Operand, SiteId, Trap};
use crate::lower::Cx;
use crate::types::{Repr, Unit};
use crate::world::well_known;

/// The name of a number's class.
pub fn class_of(kind: Kind) -> &'static str {
    if kind == Kind::Int { "Integer" } else { "Float" }
}

/// A value in the form in which a trap carries it. Err: its class and the description of it, since a message shows no
/// more of such a value.
pub fn carried(val: Val) -> Result<(Repr, Vec<Operand>), (ClassId, &'static str)> {
    Ok(match val {
        Val::Unit(Unit::Proc(id)) if id.regexp_number().is_some() => return Err((well_known::REGEXP, "Regexp")),
        Val::Unit(Unit::Proc(_)) => return Err((well_known::PROC, "Proc")),
        Val::IntRange { .. } | Val::FloatRange { .. } => return Err((well_known::RANGE, "Range")),
        Val::Unit(unit) => (Repr::Unit(unit), vec![]),
        Val::Bool(v) => (Repr::Bool, vec![v]),
        Val::Int(v) => (Repr::Int, vec![v]),
        Val::Float(v) => (Repr::Float, vec![v]),
        Val::Sym(v) => (Repr::Sym, vec![v]),
        Val::Str(v) => (Repr::Str, vec![v]),
        Val::Ref(hierarchy, v) => (Repr::Ref(hierarchy), vec![v]),
        Val::Array(kind, v) => (Repr::Array(kind), vec![v]),
        Val::Union { tag, payload } => (Repr::Union, vec![tag, payload]),
        // inference refuses messages about exceptions
        Val::Exception { .. } => (Repr::Unit(Unit::Nil), vec![]),
    })
}

pub fn raise(cx: &mut Cx<'_>, class: &'static str, message: impl Into<String>) -> Val {
    let site = cx.site(Trap::Raise { class, message: message.into() }, vec![]);
    cx.b.trap(site, vec![]);
    Val::NEVER
}

pub fn raise_if(cx: &mut Cx<'_>, cond: Operand, class: &'static str, message: impl Into<String>) {
    let site = cx.site(Trap::Raise { class, message: message.into() }, vec![]);
    cx.b.trap_if(cond, site, vec![]);
}

/// A message about a value: `before`, the value ([`Trap::Mention`]), `after`.
fn mention_site(cx: &mut Cx<'_>, class: &'static str, before: &str, val: Val, after: &str) -> (SiteId, Vec<Operand>) {
    match carried(val) {
        Ok((repr, words)) => {
            (cx.site(Trap::Mention { class, before: before.into(), after: after.into() }, vec![repr]), words)
        }
        Err((_, name)) => (cx.site(Trap::Raise { class, message: format!("{before}{name}{after}") }, vec![]), vec![]),
    }
}

pub fn mention(cx: &mut Cx<'_>, class: &'static str, before: &str, val: Val, after: &str) -> Val {
    let (site, words) = mention_site(cx, class, before, val, after);
    cx.b.trap(site, words);
    Val::NEVER
}

pub fn mention_if(cx: &mut Cx<'_>, cond: Operand, class: &'static str, before: &str, val: Val, after: &str) {
    let (site, words) = mention_site(cx, class, before, val, after);
    cx.b.trap_if(cond, site, words);
}

/// A message about a conversion of a value, which Ruby names by its class unless it is nil, true or false.
pub fn describe(cx: &mut Cx<'_>, class: &'static str, before: &str, val: Val, after: &str) -> Val {
    match carried(val) {
        Ok((repr, words)) => {
            let trap = Trap::Describe { class, before: before.into(), after: after.into() };
            let site = cx.site(trap, vec![repr]);
            cx.b.trap(site, words);
            Val::NEVER
        }
        Err((_, name)) => raise(cx, class, format!("{before}{name}{after}")),
    }
}

/// `nil can't be coerced into Integer`
pub fn not_coerced(cx: &mut Cx<'_>, receiver: Kind, arg: Val) -> Val {
    mention(cx, "TypeError", "", arg, &format!(" can't be coerced into {}", class_of(receiver)))
}

/// `comparison of Integer with nil failed`
pub fn not_compared(cx: &mut Cx<'_>, receiver: Kind, arg: Val) -> Val {
    mention(cx, "ArgumentError", &format!("comparison of {} with ", class_of(receiver)), arg, " failed")
}

pub fn not_compared_if(cx: &mut Cx<'_>, cond: Operand, receiver: Kind, arg: Val) {
    let before = format!("comparison of {} with ", class_of(receiver));
    mention_if(cx, cond, "ArgumentError", &before, arg, " failed");
}

pub fn zero_division_if(cx: &mut Cx<'_>, cond: Operand) {
    let site = cx.site(Trap::ZeroDivision, vec![]);
    cx.b.trap_if(cond, site, vec![]);
}

/// Raises if `cond` holds: the result of the method `name` leaves 64 bits.
pub fn overflow_if(cx: &mut Cx<'_>, cond: Operand, name: &'static str) {
    let site = cx.site(Trap::IntegerOverflow(name), vec![]);
    cx.b.trap_if(cond, site, vec![]);
}

/// A Float without a fraction as an Integer. Raises FloatDomainError for NaN and infinities, and IntegerOverflow of
/// `name` beyond 64 bits.
pub fn to_integer(cx: &mut Cx<'_>, x: Operand, name: &'static str) -> Operand {
    let domain = cx.site(Trap::FloatDomain, vec![Repr::Float]);
    let overflow = cx.site(Trap::IntegerOverflow(name), vec![]);
    let within = within_i64(cx, x);
    let outside = cx.b.bool(Op::Not, &[within]);
    cx.b.when(outside, |b| {
        // NaN - NaN and Infinity - Infinity are NaN.
        let zero = b.f64(Op::FSub, &[x, x]);
        let special = b.fcmp(Cmp::Ne, zero, zero);
        b.trap_if(special, domain, vec![x]);
        b.trap(overflow, vec![]);
    });
    cx.b.i64(Op::FloatToInt, &[x])
}

/// Whether a Float is in the range of 64-bit Integers; false for NaN.
pub fn within_i64(cx: &mut Cx<'_>, x: Operand) -> Operand {
    let bound = 9_223_372_036_854_775_808.0;
    let low = cx.b.fcmp(Cmp::Ge, x, Operand::float(-bound));
    let high = cx.b.fcmp(Cmp::Lt, x, Operand::float(bound));
    cx.b.bool(Op::And, &[low, high])
}

/// An argument that Ruby converts by `to_int`; none if that always raises. `name` is the method that converts it.
pub fn to_int(cx: &mut Cx<'_>, arg: Val, name: &'static str) -> Option<Operand> {
    match arg {
        Val::Int(v) => Some(v),
        Val::Float(v) => {
            let whole = cx.b.f64(Op::FTrunc, &[v]);
            Some(to_integer(cx, whole, name))
        }
        _ => {
            describe(cx, "TypeError", "no implicit conversion of ", arg, " into Integer");
            None
        }
    }
}

/// A Float that Ruby's C code converts to a `long`.
pub fn to_long(cx: &mut Cx<'_>, v: Operand) -> Operand {
    let whole = cx.b.f64(Op::FTrunc, &[v]);
    let within = within_i64(cx, whole);
    let outside = cx.b.bool(Op::Not, &[within]);
    let site = cx.site(Trap::OutOfRange, vec![Repr::Float]);
    cx.b.trap_if(outside, site, vec![v]);
    cx.b.i64(Op::FloatToInt, &[whole])
}

/// An argument that Ruby's C code converts to an `int`: an I64 within 32 bits; none if that always raises.
pub fn to_c_int(cx: &mut Cx<'_>, arg: Val) -> Option<Operand> {
    let value = match arg {
        Val::Int(v) => v,
        Val::Float(v) => to_long(cx, v),
        Val::Unit(Unit::Nil) => {
            raise(cx, "TypeError", "no implicit conversion from nil to integer");
            return None;
        }
        _ => {
            describe(cx, "TypeError", "no implicit conversion of ", arg, " into Integer");
            return None;
        }
    };
    if !matches!(value, Operand::I64(n) if i32::try_from(n).is_ok()) {
        let int = cx.shared.options.quoted("int");
        let big = cx.b.icmp(Cmp::Gt, value, Operand::I64(i32::MAX.into()));
        mention_if(cx, big, "RangeError", "integer ", Val::Int(value), &format!(" too big to convert to {int}"));
        let small = cx.b.icmp(Cmp::Lt, value, Operand::I64(i32::MIN.into()));
        mention_if(cx, small, "RangeError", "integer ", Val::Int(value), &format!(" too small to convert to {int}"));
    }
    Some(value)
}

/// A number as a double; none if the argument is not a number, and TypeError was raised.
pub fn to_float(cx: &mut Cx<'_>, arg: Val) -> Option<Operand> {
    if Kind::of_val(arg).is_number() {
        return Some(as_float(cx, arg));
    }
    describe(cx, "TypeError", "can't convert ", arg, " into Float");
    None
}

/// An Integer or Float as a double.
///
/// # Panics
/// For anything else.
pub fn as_float(cx: &mut Cx<'_>, number: Val) -> Operand {
    match number {
        Val::Int(Operand::I64(n)) => Operand::float(n as f64),
        Val::Int(v) => cx.b.f64(Op::IntToFloat, &[v]),
        Val::Float(v) => v,
        other => unreachable!("{other:?} is not a number"),
    }
}
