//! `rand` over [`Op::Random`]: its arguments, and the conversion of 64 random bits to a number.
//!
//! Of one draw's two words, `w0` (low) and `w1` (high):
//!
//! * A Float below 1.0 is `((w0 >> 5) * 2 ** 26 + (w1 >> 6)) / 2 ** 53`, as in Ruby.
//! * A Float up to and with 1.0 (inclusive Ranges of Floats) is `((w0 << 32 | w1) * (2 ** 53 + 1) >> 64) / 2 ** 53`,
//!   as in Ruby.
//! * An Integer below n is the high half of the product of `w1 << 32 | w0` and n, which has 128 bits. If the low half
//!   is less than 2 ** 64 % n, another draw is made: so all Integers are equally likely. (Ruby masks bits and draws
//!   again.)

use super::raise::{self, raise_if};
use super::slot::Slot;
use super::{Val, float};
use crate::ir::build::Builder;
use crate::ir::{Cmp, Op, Operand, Scalar, Stmt};
use crate::lower::Cx;
use crate::types::numeric::{Kind, Rand};
use crate::types::{Ty, Unit};

const ZERO: Operand = Operand::I64(0);

impl Rand {
    /// Emits the draw at the cursor; the value's form is that of [`Rand::result`].
    pub fn lower(self, cx: &mut Cx<'_>, args: &[Val], literal: Option<i64>) -> Val {
        let kinds: Vec<Kind> = args.iter().map(|a| Kind::of_val(*a)).collect();
        let ty = self.result(&kinds, literal).expect("the caller asked for the type first");
        match (self, args) {
            (_, []) | (Rand::Kernel, [Val::Unit(Unit::Nil)]) => Val::Float(unit(&mut cx.b)),
            (Rand::Kernel, [arg @ (Val::Int(_) | Val::Float(_))]) => {
                let n = raise::to_int(cx, *arg, "rand").expect("a number converts");
                match literal {
                    Some(0) => Val::Float(unit(&mut cx.b)),
                    Some(n) => Val::Int(below(&mut cx.b, Operand::I64(n.unsigned_abs() as i64))),
                    _ => {
                        let slot = Slot::new(&mut cx.b, &ty);
                        let zero = cx.b.icmp(Cmp::Eq, n, ZERO);
                        cx.b.branch(
                            zero,
                            |b| {
                                let value = Val::Float(unit(b));
                                slot.set(b, value);
                            },
                            |b| {
                                // The magnitude, unsigned, since 2 ** 63 is possible.
                                let negative = b.icmp(Cmp::Lt, n, ZERO);
                                let negated = b.i64(Op::Sub, &[ZERO, n]);
                                let n = b.select(Scalar::I64, negative, negated, n);
                                let value = Val::Int(below(b, n));
                                slot.set(b, value);
                            },
                        );
                        slot.val()
                    }
                }
            }
            (Rand::Random, [Val::Int(n)]) => {
                if ty.is_never() {
                    return raise::mention(cx, "ArgumentError", "invalid argument - ", args[0], "");
                }
                let invalid = cx.b.icmp(Cmp::Le, *n, ZERO);
                raise::mention_if(cx, invalid, "ArgumentError", "invalid argument - ", args[0], "");
                Val::Int(below(&mut cx.b, *n))
            }
            (Rand::Random, [Val::Float(max)]) => {
                refuse_infinite(cx, *max);
                let negative = cx.b.fcmp(Cmp::Lt, *max, Operand::float(0.0));
                raise::mention_if(cx, negative, "ArgumentError", "invalid argument - ", args[0], "");
                let value = unit(&mut cx.b);
                let scaled = cx.b.f64(Op::FMul, &[value, *max]);
                // Random.rand(0.0) is the same as Random.rand.
                let zero = cx.b.fcmp(Cmp::Eq, *max, Operand::float(0.0));
                Val::Float(cx.b.select(Scalar::F64, zero, value, scaled))
            }
            (_, &[Val::IntRange { from, to, exclusive }]) => self.int_range(cx, from, to, exclusive, &ty),
            (_, &[Val::FloatRange { from, to, exclusive }]) => self.float_range(cx, from, to, exclusive, &ty),
            (Rand::Random, [Val::Unit(Unit::Nil)]) => raise::raise(cx, "ArgumentError", "invalid argument - "),
            (_, [other]) => raise::describe(cx, "TypeError", "no implicit conversion of ", *other, " into Integer"),
            _ => unreachable!("`rand` takes at most one argument"),
        }
    }

    /// The result for an empty Range: nil, or for Random an ArgumentError. (Ruby names the Range after the dash.)
    fn draw_if(self, cx: &mut Cx<'_>, there: Operand, ty: &Ty, draw: impl FnOnce(&mut Builder) -> Val) -> Val {
        if self == Rand::Random {
            let empty = cx.b.bool(Op::Not, &[there]);
            raise_if(cx, empty, "ArgumentError", "invalid argument - an empty Range");
            return draw(&mut cx.b);
        }
        let slot = Slot::new(&mut cx.b, ty);
        cx.b.branch(
            there,
            |b| {
                let value = draw(b);
                slot.set(b, value);
            },
            |b| slot.set(b, Val::NIL),
        );
        slot.val()
    }

    fn int_range(self, cx: &mut Cx<'_>, from: Operand, to: Operand, exclusive: Operand, ty: &Ty) -> Val {
        let cmp = |cx: &mut Cx<'_>, cmp| cx.b.icmp(cmp, from, to);
        let there = match exclusive {
            Operand::Bool(true) => cmp(cx, Cmp::Lt),
            Operand::Bool(false) => cmp(cx, Cmp::Le),
            _ => {
                let (less, equal) = (cmp(cx, Cmp::Lt), cmp(cx, Cmp::Eq));
                let inclusive = cx.b.bool(Op::Not, &[exclusive]);
                let last = cx.b.bool(Op::And, &[equal, inclusive]);
                cx.b.bool(Op::Or, &[less, last])
            }
        };
        self.draw_if(cx, there, ty, |b| {
            // The number of Integers in the Range, unsigned; 0 stands for 2 ** 64.
            let count = match (from, to, exclusive) {
                (Operand::I64(from), Operand::I64(to), Operand::Bool(exclusive)) => {
                    Operand::I64(to.wrapping_sub(from).wrapping_add(i64::from(!exclusive)))
                }
                _ => {
                    let span = b.i64(Op::Sub, &[to, from]);
                    let inclusive = b.bool(Op::Not, &[exclusive]);
                    let last = b.i64(Op::BoolToInt, &[inclusive]);
                    b.i64(Op::Add, &[span, last])
                }
            };
            let offset = below(b, count);
            Val::Int(b.i64(Op::Add, &[from, offset]))
        })
    }

    /// As Ruby: the draw times the width, plus the lower bound. If the width is beyond Float, both are halved and
    /// centred.
    fn float_range(self, cx: &mut Cx<'_>, from: Operand, to: Operand, exclusive: Operand, ty: &Ty) -> Val {
        refuse_infinite(cx, from);
        refuse_infinite(cx, to);
        let width = cx.b.f64(Op::FSub, &[to, from]);
        let positive = cx.b.fcmp(Cmp::Gt, width, Operand::float(0.0));
        let single = cx.b.fcmp(Cmp::Eq, width, Operand::float(0.0));
        let inclusive = cx.b.bool(Op::Not, &[exclusive]);
        let single = cx.b.bool(Op::And, &[single, inclusive]);
        let there = cx.b.bool(Op::Or, &[positive, single]);
        let wide = float::infinite(cx, width);
        self.draw_if(cx, there, ty, |b| {
            let result = b.temp(Scalar::F64);
            let draw = |b: &mut Builder| {
                let value = match exclusive {
                    Operand::Bool(true) => unit(b),
                    Operand::Bool(false) => closed_unit(b),
                    _ => {
                        let bits = b.i64(Op::Random, &[]);
                        let (open, closed) = (unit_of(b, bits), closed_unit_of(b, bits));
                        b.select(Scalar::F64, exclusive, open, closed)
                    }
                };
                let half = Operand::float(0.5);
                b.branch(
                    wide,
                    |b| {
                        let two = Operand::float(2.0);
                        let (low, high) = (b.f64(Op::FDiv, &[from, two]), b.f64(Op::FDiv, &[to, two]));
                        let middle = b.f64(Op::FAdd, &[high, low]);
                        let width = b.f64(Op::FSub, &[high, low]);
                        let value = b.f64(Op::FSub, &[value, half]);
                        let value = b.f64(Op::FMul, &[value, width]);
                        let value = b.f64(Op::FMul, &[value, two]);
                        let value = b.f64(Op::FAdd, &[value, middle]);
                        b.set(result, value);
                    },
                    |b| {
                        let value = b.f64(Op::FMul, &[value, width]);
                        let value = b.f64(Op::FAdd, &[value, from]);
                        b.set(result, value);
                    },
                );
            };
            // A Range of a single Float takes no draw.
            b.branch(positive, draw, |b| {
                let value = b.f64(Op::FAdd, &[Operand::float(0.0), from]);
                b.set(result, value);
            });
            Val::Float(result.into())
        })
    }
}

/// Ruby's Errno::EDOM, whose message is the system's own.
fn refuse_infinite(cx: &mut Cx<'_>, x: Operand) {
    if matches!(x, Operand::F64(bits) if f64::from_bits(bits).is_finite()) {
        return;
    }
    let finite = float::finite(cx, x);
    let special = cx.b.bool(Op::Not, &[finite]);
    raise_if(cx, special, "Errno::EDOM", "Numerical argument out of domain");
}

/// A Float in 0.0...1.0.
fn unit(b: &mut Builder) -> Operand {
    let bits = b.i64(Op::Random, &[]);
    unit_of(b, bits)
}

fn unit_of(b: &mut Builder, bits: Operand) -> Operand {
    let low = b.i64(Op::And, &[bits, Operand::I64(0xffff_ffe0)]);
    let low = b.i64(Op::Shl, &[low, Operand::I64(21)]);
    let high = b.i64(Op::UShr, &[bits, Operand::I64(38)]);
    let bits = b.i64(Op::Or, &[low, high]);
    to_unit(b, bits)
}

/// A Float in 0.0..1.0.
fn closed_unit(b: &mut Builder) -> Operand {
    let bits = b.i64(Op::Random, &[]);
    closed_unit_of(b, bits)
}

fn closed_unit_of(b: &mut Builder, bits: Operand) -> Operand {
    let low = b.i64(Op::Shl, &[bits, Operand::I64(32)]);
    let high = b.i64(Op::UShr, &[bits, Operand::I64(32)]);
    let turned = b.i64(Op::Or, &[low, high]);
    let scaled = b.i64(Op::UMulHi, &[turned, Operand::I64((1 << 53) + 1)]);
    to_unit(b, scaled)
}

/// A number of at most 2 ** 53, divided by that; exact.
fn to_unit(b: &mut Builder, bits: Operand) -> Operand {
    let value = b.f64(Op::IntToFloat, &[bits]);
    b.f64(Op::FMul, &[value, Operand::float(1.0 / 9_007_199_254_740_992.0)])
}

/// An Integer in 0...n, for an unsigned n where 0 stands for 2 ** 64.
fn below(b: &mut Builder, n: Operand) -> Operand {
    let draw = |b: &mut Builder| b.i64(Op::Random, &[]);
    if let Operand::I64(n) = n {
        let n = n as u64;
        // For powers of two nothing is rejected: 2 ** 64 is a multiple of n.
        if n == 0 {
            return draw(b);
        }
        if n.is_power_of_two() {
            let bits = draw(b);
            return b.i64(Op::UMulHi, &[bits, Operand::I64(n as i64)]);
        }
    }
    let (high, low) = (b.temp(Scalar::I64), b.temp(Scalar::I64));
    let product = |b: &mut Builder| {
        let bits = draw(b);
        b.push(Stmt::Let { dst: high, op: Op::UMulHi, args: vec![bits, n] });
        b.push(Stmt::Let { dst: low, op: Op::Mul, args: vec![bits, n] });
        bits
    };
    let reject = |b: &mut Builder, least: Operand| {
        b.repeat(|b, done| {
            let good = b.bool(Op::UCmp(Cmp::Ge), &[low.into(), least]);
            b.when(good, |b| b.push(Stmt::Break(done)));
            product(b);
        });
    };
    let bits = product(b);
    if let Operand::I64(n) = n {
        let n = n as u64;
        reject(b, Operand::I64((n.wrapping_neg() % n) as i64));
        return high.into();
    }
    // The remainder is less than n, so most draws need not compute it.
    let doubtful = b.bool(Op::UCmp(Cmp::Lt), &[low.into(), n]);
    b.when(doubtful, |b| {
        let negated = b.i64(Op::Sub, &[ZERO, n]);
        let least = b.i64(Op::URem, &[negated, n]);
        reject(b, least);
    });
    let all = b.icmp(Cmp::Eq, n, ZERO);
    b.select(Scalar::I64, all, bits, high.into())
}
