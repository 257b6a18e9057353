//! Integer arithmetic: 64 bits, exact or trapping.
//!
//! Functions take and return I64 operands. Methods that need loops are functions of the program, made at first use.
//! These functions never trap, but also return whether the result left 64 bits, so that traps have the caller's line.

use super::Val;
use super::raise::{self, overflow_if, zero_division_if};
use crate::config::Overflow;
use crate::ir::build::Builder;
use crate::ir::{CheckedOp, Cmp, FuncId, Op, Operand, Scalar, SiteId, Stmt, Trap, VarId};
use crate::lower::Cx;
use crate::types::Repr;

const ZERO: Operand = Operand::I64(0);
const ONE: Operand = Operand::I64(1);
const MINUS_ONE: Operand = Operand::I64(-1);
const MIN: Operand = Operand::I64(i64::MIN);
/// The name of a literal in a message about overflow.
const LITERAL: &str = "this literal";

fn wraps(cx: &Cx<'_>) -> bool {
    cx.shared.options.overflow == Overflow::Wrap
}

/// The site of an overflow; none if arithmetic wraps.
fn overflow_site(cx: &mut Cx<'_>, name: &'static str) -> Option<SiteId> {
    if wraps(cx) { None } else { Some(cx.site(Trap::IntegerOverflow(name), vec![])) }
}

/// Ends the job if `cond` holds, unless arithmetic wraps.
fn leaves_if(cx: &mut Cx<'_>, cond: Operand, name: &'static str) {
    if !wraps(cx) {
        overflow_if(cx, cond, name);
    }
}

/// `+`, `-` or `*`, for the method `name`.
pub fn arithmetic(cx: &mut Cx<'_>, op: CheckedOp, name: &'static str, a: Operand, b: Operand) -> Operand {
    match overflow_site(cx, name) {
        Some(site) => cx.b.checked(op, a, b, site),
        None => {
            let plain = match op {
                CheckedOp::Add => Op::Add,
                CheckedOp::Sub => Op::Sub,
                CheckedOp::Mul => Op::Mul,
                CheckedOp::And => Op::And,
            };
            cx.b.i64(plain, &[a, b])
        }
    }
}

/// A literal that only fits into an unsigned 64-bit number. It raises where its highest bit matters.
pub fn unsigned(cx: &mut Cx<'_>, n: u64) -> Operand {
    arithmetic(cx, CheckedOp::And, LITERAL, Operand::I64(n.cast_signed()), MINUS_ONE)
}

pub fn negate(cx: &mut Cx<'_>, a: Operand) -> Operand {
    arithmetic(cx, CheckedOp::Sub, "-@", ZERO, a)
}

pub fn abs(cx: &mut Cx<'_>, a: Operand) -> Operand {
    let least = cx.b.icmp(Cmp::Eq, a, MIN);
    leaves_if(cx, least, "abs");
    magnitude(&mut cx.b, a)
}

/// The magnitude as an unsigned number.
fn magnitude(b: &mut Builder, a: Operand) -> Operand {
    let negative = b.icmp(Cmp::Lt, a, ZERO);
    let negated = b.i64(Op::Sub, &[ZERO, a]);
    b.select(Scalar::I64, negative, negated, a)
}

fn check_divisor(cx: &mut Cx<'_>, b: Operand) {
    if !matches!(b, Operand::I64(n) if n != 0) {
        let zero = cx.b.icmp(Cmp::Eq, b, ZERO);
        zero_division_if(cx, zero);
    }
}

/// The truncated quotient and its remainder, for the method `name`.
fn truncated(cx: &mut Cx<'_>, name: &'static str, a: Operand, b: Operand) -> (Operand, Operand) {
    check_divisor(cx, b);
    let quotient = if matches!(b, Operand::I64(n) if n != -1) {
        cx.b.i64(Op::Div, &[a, b])
    } else {
        let inverts = cx.b.icmp(Cmp::Eq, b, MINUS_ONE);
        let least = cx.b.icmp(Cmp::Eq, a, MIN);
        let leaves = cx.b.bool(Op::And, &[inverts, least]);
        if wraps(cx) {
            let divisor = cx.b.select(Scalar::I64, inverts, ONE, b);
            let quotient = cx.b.i64(Op::Div, &[a, divisor]);
            let negated = cx.b.i64(Op::Sub, &[ZERO, a]);
            cx.b.select(Scalar::I64, inverts, negated, quotient)
        } else {
            overflow_if(cx, leaves, name);
            cx.b.i64(Op::Div, &[a, b])
        }
    };
    let product = cx.b.i64(Op::Mul, &[quotient, b]);
    (quotient, cx.b.i64(Op::Sub, &[a, product]))
}

/// Whether a remainder is not 0 and has another sign than the divisor.
fn off_floor(b: &mut Builder, remainder: Operand, divisor: Operand) -> Operand {
    let there = b.icmp(Cmp::Ne, remainder, ZERO);
    let signs = b.i64(Op::Xor, &[remainder, divisor]);
    let differ = b.icmp(Cmp::Lt, signs, ZERO);
    b.bool(Op::And, &[there, differ])
}

/// The floored quotient, for the method `name`.
pub fn div(cx: &mut Cx<'_>, name: &'static str, a: Operand, b: Operand) -> Operand {
    if let Operand::I64(n) = b
        && n > 0
        && n & (n - 1) == 0
    {
        return cx.b.i64(Op::Shr, &[a, Operand::I64(n.trailing_zeros().into())]);
    }
    let (quotient, remainder) = truncated(cx, name, a, b);
    if matches!(b, Operand::I64(n) if n > 0) {
        let borrow = cx.b.i64(Op::Shr, &[remainder, Operand::I64(63)]);
        return cx.b.i64(Op::Add, &[quotient, borrow]);
    }
    let off = off_floor(&mut cx.b, remainder, b);
    let borrow = cx.b.i64(Op::BoolToInt, &[off]);
    cx.b.i64(Op::Sub, &[quotient, borrow])
}

/// The quotient rounded up.
pub fn ceil_div(cx: &mut Cx<'_>, a: Operand, b: Operand) -> Operand {
    let (quotient, remainder) = truncated(cx, "ceildiv", a, b);
    let there = cx.b.icmp(Cmp::Ne, remainder, ZERO);
    let signs = cx.b.i64(Op::Xor, &[remainder, b]);
    let same = cx.b.icmp(Cmp::Ge, signs, ZERO);
    let up = cx.b.bool(Op::And, &[there, same]);
    let carry = cx.b.i64(Op::BoolToInt, &[up]);
    cx.b.i64(Op::Add, &[quotient, carry])
}

/// The remainder with the dividend's sign.
pub fn remainder(cx: &mut Cx<'_>, a: Operand, b: Operand) -> Operand {
    check_divisor(cx, b);
    let divisor = if matches!(b, Operand::I64(n) if n != -1) {
        b
    } else {
        // The remainder of a division by 1 or -1 is 0.
        let inverts = cx.b.icmp(Cmp::Eq, b, MINUS_ONE);
        cx.b.select(Scalar::I64, inverts, ONE, b)
    };
    cx.b.i64(Op::Rem, &[a, divisor])
}

/// The remainder with the divisor's sign.
pub fn modulo(cx: &mut Cx<'_>, a: Operand, b: Operand) -> Operand {
    if let Operand::I64(n) = b
        && n > 0
    {
        if n & (n - 1) == 0 {
            return cx.b.i64(Op::And, &[a, Operand::I64(n - 1)]);
        }
        let remainder = cx.b.i64(Op::Rem, &[a, b]);
        let negative = cx.b.i64(Op::Shr, &[remainder, Operand::I64(63)]);
        let lift = cx.b.i64(Op::And, &[negative, b]);
        return cx.b.i64(Op::Add, &[remainder, lift]);
    }
    let remainder = remainder(cx, a, b);
    let off = off_floor(&mut cx.b, remainder, b);
    let lift = cx.b.select(Scalar::I64, off, b, ZERO);
    cx.b.i64(Op::Add, &[remainder, lift])
}

/// `a ** b`. A negative exponent gives a Rational, except for the bases 1 and -1.
pub fn power(cx: &mut Cx<'_>, a: Operand, b: Operand) -> Operand {
    let mul = |cx: &mut Cx<'_>, x, y| arithmetic(cx, CheckedOp::Mul, "**", x, y);
    match b {
        Operand::I64(0) => return ONE,
        Operand::I64(1) => return a,
        Operand::I64(2) => return mul(cx, a, a),
        Operand::I64(3) => {
            let square = mul(cx, a, a);
            return mul(cx, square, a);
        }
        Operand::I64(4) => {
            let square = mul(cx, a, a);
            return mul(cx, square, square);
        }
        _ => {}
    }
    let zero_division = cx.site(Trap::ZeroDivision, vec![]);
    let rational = cx.site(
        Trap::Limit {
            class: "RangeError",
            before: "Integer ** ".into(),
            after: " is a Rational; in kernels Integer ** gives Integers: write Rational(x) ** y".into(),
        },
        vec![Repr::Int],
    );
    let overflow = overflow_site(cx, "**");
    let power = power_function(cx);
    let result = cx.b.temp(Scalar::I64);
    let negative = cx.b.icmp(Cmp::Lt, b, ZERO);
    cx.b.branch(
        negative,
        |c| {
            let zero = c.icmp(Cmp::Eq, a, ZERO);
            c.trap_if(zero, zero_division, vec![]);
            let one = c.icmp(Cmp::Eq, a, ONE);
            let minus_one = c.icmp(Cmp::Eq, a, MINUS_ONE);
            let unit = c.bool(Op::Or, &[one, minus_one]);
            let other = c.bool(Op::Not, &[unit]);
            c.trap_if(other, rational, vec![b]);
            let low = c.i64(Op::And, &[b, ONE]);
            let even = c.icmp(Cmp::Eq, low, ZERO);
            let value = c.select(Scalar::I64, even, ONE, a);
            c.set(result, value);
        },
        |c| {
            let answers = c.call(power, vec![a, b], &[Scalar::I64, Scalar::Bool], None);
            if let Some(site) = overflow {
                c.trap_if(answers[1], site, vec![]);
            }
            c.set(result, answers[0]);
        },
    );
    result.into()
}

/// `(base, exponent ≥ 0) → (base ** exponent, wrapping; whether it left 64 bits)`
fn power_function(cx: &mut Cx<'_>) -> FuncId {
    cx.helper("Integer#**", || {
        let mut b = Builder::new("Integer#**".into(), vec![Scalar::I64, Scalar::Bool]);
        let base = b.param(Scalar::I64, Some("base".into()));
        let exponent = b.param(Scalar::I64, Some("exponent".into()));
        let value = b.var(Scalar::I64, Some("value".into()));
        let left = b.var(Scalar::Bool, Some("left".into()));
        b.set(value, ONE);
        b.set(left, Operand::Bool(false));
        // If the square of the base has left 64 bits and the rest of the exponent is not 0, the result leaves 64 bits,
        // too.
        let times = |b: &mut Builder, to: VarId, by: VarId| {
            let high = b.i64(Op::MulHi, &[to.into(), by.into()]);
            let low = b.i64(Op::Mul, &[to.into(), by.into()]);
            let sign = b.i64(Op::Shr, &[low, Operand::I64(63)]);
            let over = b.icmp(Cmp::Ne, high, sign);
            b.push(Stmt::Let { dst: left, op: Op::Or, args: vec![left.into(), over] });
            b.set(to, low);
        };
        b.repeat(|b, done| {
            let low = b.i64(Op::And, &[exponent.into(), ONE]);
            let odd = b.icmp(Cmp::Ne, low, ZERO);
            b.when(odd, |b| times(b, value, base));
            b.push(Stmt::Let { dst: exponent, op: Op::UShr, args: vec![exponent.into(), ONE] });
            let spent = b.icmp(Cmp::Eq, exponent.into(), ZERO);
            b.when(spent, |b| b.push(Stmt::Break(done)));
            times(b, base, base);
        });
        b.push(Stmt::Return(vec![value.into(), left.into()]));
        b.finish()
    })
}

/// `a.pow(b, m)`; `m` may be of any kind, since a negative `b` raises first.
pub fn power_modulo(cx: &mut Cx<'_>, a: Operand, b: Val, m: Val) -> Val {
    let Val::Int(b) = b else {
        return raise::raise(
            cx,
            "TypeError",
            "Integer#pow() 2nd argument not allowed unless a 1st argument is integer",
        );
    };
    let negative = cx.b.icmp(Cmp::Lt, b, ZERO);
    let message = "Integer#pow() 1st argument cannot be negative when 2nd argument specified";
    raise::raise_if(cx, negative, "RangeError", message);
    let Val::Int(m) = m else {
        let message = "Integer#pow() 2nd argument not allowed unless all arguments are integers";
        return raise::raise(cx, "TypeError", message);
    };
    check_divisor(cx, m);
    let by_least = power_function(cx);
    let power = power_modulo_function(cx);
    let result = cx.b.temp(Scalar::I64);
    let least = cx.b.icmp(Cmp::Eq, m, MIN);
    cx.b.branch(
        least,
        |c| {
            // Modulo 2 ** 63, whose magnitude does not fit into I64: the low bits of the wrapping power.
            let answers = c.call(by_least, vec![a, b], &[Scalar::I64, Scalar::Bool], None);
            let low = c.i64(Op::And, &[answers[0], Operand::I64(i64::MAX)]);
            // (For a multiple of that modulus Ruby gives the modulus itself, not 0.)
            let value = c.i64(Op::Or, &[low, MIN]);
            c.set(result, value);
        },
        |c| {
            let modulus = magnitude(c, m);
            let value = c.call(power, vec![a, b, modulus], &[Scalar::I64], None)[0];
            let off = off_floor(c, value, m);
            let lift = c.select(Scalar::I64, off, m, ZERO);
            let value = c.i64(Op::Add, &[value, lift]);
            c.set(result, value);
        },
    );
    Val::Int(result.into())
}

/// `(base, exponent ≥ 0, modulus > 0) → base ** exponent % modulus`
fn power_modulo_function(cx: &mut Cx<'_>) -> FuncId {
    cx.helper("Integer#pow", || {
        let mut b = Builder::new("Integer#pow".into(), vec![Scalar::I64]);
        let base = b.param(Scalar::I64, Some("base".into()));
        let exponent = b.param(Scalar::I64, Some("exponent".into()));
        let modulus = b.param(Scalar::I64, Some("modulus".into()));
        let value = b.var(Scalar::I64, Some("value".into()));
        // The first product with 1 also reduces the base, and 1 itself for the modulus 1.
        let times = |b: &mut Builder, to: VarId, x: Operand, y: Operand| {
            b.push(Stmt::Let { dst: to, op: Op::MulMod, args: vec![x, y, modulus.into()] });
        };
        times(&mut b, value, ONE, ONE);
        times(&mut b, base, base.into(), ONE);
        b.repeat(|b, done| {
            let low = b.i64(Op::And, &[exponent.into(), ONE]);
            let odd = b.icmp(Cmp::Ne, low, ZERO);
            b.when(odd, |b| times(b, value, value.into(), base.into()));
            b.push(Stmt::Let { dst: exponent, op: Op::UShr, args: vec![exponent.into(), ONE] });
            let spent = b.icmp(Cmp::Eq, exponent.into(), ZERO);
            b.when(spent, |b| b.push(Stmt::Break(done)));
            times(b, base, base.into(), base.into());
        });
        b.push(Stmt::Return(vec![value.into()]));
        b.finish()
    })
}

/// `a << n` for an unsigned `n`; traps at `site` where the result leaves 64 bits.
fn left_by(b: &mut Builder, a: Operand, n: Operand, site: Option<SiteId>) -> Operand {
    if let (Operand::I64(number), Some(site)) = (a, site) {
        if number == 0 {
            return ZERO;
        }
        // passes know the interval of `1 << n` by that of n
        let signs = if number < 0 { (!number).leading_zeros() } else { number.leading_zeros() };
        let loses = b.bool(Op::UCmp(Cmp::Gt), &[n, Operand::I64(i64::from(signs) - 1)]);
        b.trap_if(loses, site, vec![]);
        return b.i64(Op::Shl, &[a, n]);
    }
    let last = Operand::I64(63);
    let short = b.bool(Op::UCmp(Cmp::Le), &[n, last]);
    let amount = b.select(Scalar::I64, short, n, last);
    let shifted = b.i64(Op::Shl, &[a, amount]);
    match site {
        Some(site) => {
            let back = b.i64(Op::Shr, &[shifted, amount]);
            let lost = b.icmp(Cmp::Ne, back, a);
            let long = b.bool(Op::Not, &[short]);
            let there = b.icmp(Cmp::Ne, a, ZERO);
            let gone = b.bool(Op::And, &[long, there]);
            let leaves = b.bool(Op::Or, &[lost, gone]);
            b.trap_if(leaves, site, vec![]);
            shifted
        }
        None => b.select(Scalar::I64, short, shifted, ZERO),
    }
}

/// `a >> n` for an unsigned `n`.
fn right_by(b: &mut Builder, a: Operand, n: Operand) -> Operand {
    let last = Operand::I64(63);
    let short = b.bool(Op::UCmp(Cmp::Le), &[n, last]);
    let amount = b.select(Scalar::I64, short, n, last);
    b.i64(Op::Shr, &[a, amount])
}

/// `a << n`, or `a >> n` if not `left`, for any `n`.
pub fn shift(cx: &mut Cx<'_>, left: bool, a: Operand, n: Operand) -> Operand {
    let name = if left { "<<" } else { ">>" };
    let site = overflow_site(cx, name);
    if let Operand::I64(count) = n {
        let amount = Operand::I64(count.unsigned_abs().min(64) as i64);
        return match (left == (count >= 0), amount) {
            // as a product, which may wrap where only its low bits are used
            (true, Operand::I64(n @ 1..=62)) => arithmetic(cx, CheckedOp::Mul, name, a, Operand::I64(1 << n)),
            (true, Operand::I64(0..=63)) => {
                let shifted = cx.b.i64(Op::Shl, &[a, amount]);
                if let Some(site) = site {
                    let back = cx.b.i64(Op::Shr, &[shifted, amount]);
                    let lost = cx.b.icmp(Cmp::Ne, back, a);
                    cx.b.trap_if(lost, site, vec![]);
                }
                shifted
            }
            (true, _) => left_by(&mut cx.b, a, amount, site),
            (false, Operand::I64(0..=63)) => cx.b.i64(Op::Shr, &[a, amount]),
            (false, _) => cx.b.i64(Op::Shr, &[a, Operand::I64(63)]),
        };
    }
    let result = cx.b.temp(Scalar::I64);
    let forward = cx.b.icmp(Cmp::Ge, n, ZERO);
    let go = |b: &mut Builder, left: bool, n: Operand| {
        let value = if left { left_by(b, a, n, site) } else { right_by(b, a, n) };
        b.set(result, value);
    };
    cx.b.branch(
        forward,
        |b| go(b, left, n),
        |b| {
            let back = b.i64(Op::Sub, &[ZERO, n]);
            go(b, !left, back);
        },
    );
    result.into()
}

/// `a[i]`, `a[from, length]`, `a[from..to]`
pub fn bit_ref(cx: &mut Cx<'_>, a: Operand, args: &[Val]) -> Val {
    match *args {
        [Val::IntRange { from, to, exclusive }] => Val::Int(bits_of_range(cx, a, from, to, exclusive)),
        [index] => match raise::to_int(cx, index, "[]") {
            Some(index) => Val::Int(bit(&mut cx.b, a, index)),
            None => Val::NEVER,
        },
        [from, length] => {
            let Some(from) = raise::to_int(cx, from, "[]") else { return Val::NEVER };
            let shifted = shift(cx, false, a, from);
            let Some(length) = raise::to_int(cx, length, "[]") else { return Val::NEVER };
            Val::Int(low_bits(cx, shifted, length))
        }
        _ => unreachable!("`[]` takes one or two arguments"),
    }
}

fn bit(b: &mut Builder, a: Operand, index: Operand) -> Operand {
    let shifted = right_by(b, a, index);
    let bit = b.i64(Op::And, &[shifted, ONE]);
    let before = b.icmp(Cmp::Lt, index, ZERO);
    b.select(Scalar::I64, before, ZERO, bit)
}

/// `a & ((1 << length) - 1)`; with a negative length nothing is masked, as in Ruby.
fn low_bits(cx: &mut Cx<'_>, a: Operand, length: Operand) -> Operand {
    let least = cx.b.icmp(Cmp::Lt, a, ZERO);
    let long = cx.b.icmp(Cmp::Gt, length, Operand::I64(63));
    let leaves = cx.b.bool(Op::And, &[least, long]);
    leaves_if(cx, leaves, "[]");
    let all = cx.b.bool(Op::UCmp(Cmp::Gt), &[length, Operand::I64(63)]);
    let amount = cx.b.select(Scalar::I64, all, ZERO, length);
    let above = cx.b.i64(Op::Shl, &[MINUS_ONE, amount]);
    let mask = cx.b.i64(Op::Xor, &[above, MINUS_ONE]);
    let mask = cx.b.select(Scalar::I64, all, MINUS_ONE, mask);
    cx.b.i64(Op::And, &[a, mask])
}

fn bits_of_range(cx: &mut Cx<'_>, a: Operand, from: Operand, to: Operand, exclusive: Operand) -> Operand {
    let shifted = shift(cx, false, a, from);
    // The number of bits, if the Range is ascending; 64 stands for all greater numbers.
    let span = cx.b.i64(Op::Sub, &[to, from]);
    let wide = cx.b.bool(Op::UCmp(Cmp::Gt), &[span, Operand::I64(64)]);
    let span = cx.b.select(Scalar::I64, wide, Operand::I64(64), span);
    let inclusive = cx.b.bool(Op::Not, &[exclusive]);
    let last = cx.b.i64(Op::BoolToInt, &[inclusive]);
    let length = cx.b.i64(Op::Add, &[span, last]);
    let upwards = cx.b.icmp(Cmp::Lt, from, to);
    let length = cx.b.select(Scalar::I64, upwards, length, MINUS_ONE);
    let masked = low_bits(cx, shifted, length);
    let single = cx.b.icmp(Cmp::Eq, from, to);
    let one = bit(&mut cx.b, a, from);
    let one = cx.b.select(Scalar::I64, exclusive, ZERO, one);
    cx.b.select(Scalar::I64, single, one, masked)
}

pub fn bit_length(cx: &mut Cx<'_>, a: Operand) -> Operand {
    let sign = cx.b.i64(Op::Shr, &[a, Operand::I64(63)]);
    let bits = cx.b.i64(Op::Xor, &[a, sign]);
    let zeros = cx.b.i64(Op::Clz, &[bits]);
    cx.b.i64(Op::Sub, &[Operand::I64(64), zeros])
}

/// Euclid's algorithm on unsigned numbers.
fn gcd_loop(b: &mut Builder, x: Operand, y: Operand) -> Operand {
    let (m, n) = (b.temp(Scalar::I64), b.temp(Scalar::I64));
    b.set(m, x);
    b.set(n, y);
    b.repeat(|b, done| {
        let none = b.icmp(Cmp::Eq, n.into(), ZERO);
        b.when(none, |b| b.push(Stmt::Break(done)));
        let rest = b.i64(Op::URem, &[m.into(), n.into()]);
        b.set(m, n.into());
        b.set(n, rest);
    });
    m.into()
}

/// `(a, b) → their greatest common divisor`, unsigned, since 2 ** 63 is possible.
fn gcd_function(cx: &mut Cx<'_>) -> FuncId {
    cx.helper("Integer#gcd", || {
        let mut b = Builder::new("Integer#gcd".into(), vec![Scalar::I64]);
        let x = b.param(Scalar::I64, Some("a".into()));
        let y = b.param(Scalar::I64, Some("b".into()));
        let (x, y) = (magnitude(&mut b, x.into()), magnitude(&mut b, y.into()));
        let divisor = gcd_loop(&mut b, x, y);
        b.push(Stmt::Return(vec![divisor]));
        b.finish()
    })
}

pub fn gcd(cx: &mut Cx<'_>, a: Operand, b: Operand) -> Operand {
    let function = gcd_function(cx);
    let divisor = cx.b.call(function, vec![a, b], &[Scalar::I64], None)[0];
    let least = cx.b.icmp(Cmp::Lt, divisor, ZERO);
    leaves_if(cx, least, "gcd");
    divisor
}

pub fn lcm(cx: &mut Cx<'_>, a: Operand, b: Operand) -> Operand {
    let function = gcd_function(cx);
    let divisor = cx.b.call(function, vec![a, b], &[Scalar::I64], None)[0];
    // If the divisor is 0, both are 0, and dividing by any other number gives the right 0.
    let none = cx.b.icmp(Cmp::Eq, divisor, ZERO);
    let divisor = cx.b.select(Scalar::I64, none, ONE, divisor);
    let (a, b) = (magnitude(&mut cx.b, a), magnitude(&mut cx.b, b));
    let share = cx.b.i64(Op::UDiv, &[a, divisor]);
    let low = cx.b.i64(Op::Mul, &[share, b]);
    let high = cx.b.i64(Op::UMulHi, &[share, b]);
    let top = cx.b.i64(Op::UShr, &[low, Operand::I64(63)]);
    let beyond = cx.b.i64(Op::Or, &[high, top]);
    let leaves = cx.b.icmp(Cmp::Ne, beyond, ZERO);
    leaves_if(cx, leaves, "lcm");
    low
}

/// `allbits?`, `anybits?`, `nobits?`: compares `a & mask` with `with` (if none, with the mask itself).
pub fn bits_test(cx: &mut Cx<'_>, a: Operand, mask: Operand, cmp: Cmp, with: Option<Operand>) -> Operand {
    let common = cx.b.i64(Op::And, &[a, mask]);
    cx.b.icmp(cmp, common, with.unwrap_or(mask))
}

/// `a.fdiv(b)` for Integers. Up to 53 bits both are exact as doubles; for more bits, see [`wide_fdiv_function`].
pub fn fdiv(cx: &mut Cx<'_>, a: Operand, b: Operand) -> Operand {
    let wide = wide_fdiv_function(cx);
    let result = cx.b.temp(Scalar::F64);
    let (x, y) = (raise::as_float(cx, Val::Int(a)), raise::as_float(cx, Val::Int(b)));
    let exact = Operand::float(9_007_199_254_740_992.0);
    let narrow = |c: &mut Builder, v: Operand| {
        let size = c.f64(Op::FAbs, &[v]);
        c.fcmp(Cmp::Lt, size, exact)
    };
    let (narrow_x, narrow_y) = (narrow(&mut cx.b, x), narrow(&mut cx.b, y));
    let narrow = cx.b.bool(Op::And, &[narrow_x, narrow_y]);
    cx.b.branch(
        narrow,
        |c| {
            let quotient = c.f64(Op::FDiv, &[x, y]);
            c.set(result, quotient);
        },
        |c| {
            let quotient = c.call(wide, vec![a, b], &[Scalar::F64], None)[0];
            c.set(result, quotient);
        },
    );
    result.into()
}

/// `(a, b) → a.fdiv(b)`, as Ruby computes it beyond 53 bits. First, both are divided by their greatest common divisor.
/// If the divisor is still wide, long division gives 64 or 65 bits of the quotient; the rest is dropped, and these bits
/// are rounded. Otherwise two doubles are divided. A divisor is wide beyond 62 bits, where Ruby's Integers become
/// objects. Since Ruby 3.3 it is wide from 53 bits on, unless the dividend has more than 62.
fn wide_fdiv_function(cx: &mut Cx<'_>) -> FuncId {
    let wide = if cx.shared.options.ruby >= (3, 3) { 53 } else { 63 };
    cx.helper("Integer#fdiv", || {
        let mut b = Builder::new("Integer#fdiv".into(), vec![Scalar::F64]);
        let x = Operand::Var(b.param(Scalar::I64, Some("a".into())));
        let y = Operand::Var(b.param(Scalar::I64, Some("b".into())));
        let divide = |b: &mut Builder, x: Operand, y: Operand| {
            let x = b.f64(Op::IntToFloat, &[x]);
            let y = b.f64(Op::IntToFloat, &[y]);
            let quotient = b.f64(Op::FDiv, &[x, y]);
            b.push(Stmt::Return(vec![quotient]));
        };
        let zero = b.icmp(Cmp::Eq, y, ZERO);
        b.when(zero, |b| divide(b, x, y));

        let (negative_x, negative_y) = (b.icmp(Cmp::Lt, x, ZERO), b.icmp(Cmp::Lt, y, ZERO));
        let (size_x, size_y) = (magnitude(&mut b, x), magnitude(&mut b, y));
        let divisor = gcd_loop(&mut b, size_x, size_y);
        let size_x = b.i64(Op::UDiv, &[size_x, divisor]);
        let size_y = b.i64(Op::UDiv, &[size_y, divisor]);
        let signed = |b: &mut Builder, negative: Operand, size: Operand| {
            let negated = b.i64(Op::Sub, &[ZERO, size]);
            b.select(Scalar::I64, negative, negated, size)
        };
        let (x, y) = (signed(&mut b, negative_x, size_x), signed(&mut b, negative_y, size_y));
        let (big_x, big_y) = (beyond_fixnum(&mut b, x), beyond_fixnum(&mut b, y));
        let small_x = b.bool(Op::Not, &[big_x]);
        let inexact_y = b.bool(Op::UCmp(Cmp::Ge), &[size_y, Operand::I64(1 << (wide - 1) << 1)]);
        let both = b.bool(Op::And, &[small_x, inexact_y]);
        let long = b.bool(Op::Or, &[big_y, both]);
        let short = b.bool(Op::Not, &[long]);
        b.when(short, |b| divide(b, x, y));

        // Both are shifted to the top of 64 bits; the dividend has 64 more zeros below.
        let (zeros_x, zeros_y) = (b.i64(Op::Clz, &[size_x]), b.i64(Op::Clz, &[size_y]));
        let top_x = b.i64(Op::Shl, &[size_x, zeros_x]);
        let top_y = b.i64(Op::Shl, &[size_y, zeros_y]);
        let carry = b.bool(Op::UCmp(Cmp::Ge), &[top_x, top_y]);
        let taken = b.select(Scalar::I64, carry, top_y, ZERO);
        let first = b.i64(Op::Sub, &[top_x, taken]);
        let (rest, quotient, count) = (b.temp(Scalar::I64), b.temp(Scalar::I64), b.temp(Scalar::I64));
        b.set(rest, first);
        b.set(quotient, ZERO);
        b.set(count, Operand::I64(64));
        b.repeat(|b, done| {
            let out = b.icmp(Cmp::Lt, rest.into(), ZERO);
            let doubled = b.i64(Op::Shl, &[rest.into(), ONE]);
            let fits = b.bool(Op::UCmp(Cmp::Ge), &[doubled, top_y]);
            let one = b.bool(Op::Or, &[out, fits]);
            let taken = b.select(Scalar::I64, one, top_y, ZERO);
            b.push(Stmt::Let { dst: rest, op: Op::Sub, args: vec![doubled, taken] });
            let shifted = b.i64(Op::Shl, &[quotient.into(), ONE]);
            let bit = b.i64(Op::BoolToInt, &[one]);
            b.push(Stmt::Let { dst: quotient, op: Op::Or, args: vec![shifted, bit] });
            b.push(Stmt::Let { dst: count, op: Op::Sub, args: vec![count.into(), ONE] });
            let spent = b.icmp(Cmp::Eq, count.into(), ZERO);
            b.when(spent, |b| b.push(Stmt::Break(done)));
        });
        // The 65th bit, if any, is shifted in at the top. One more shift makes the number fit a signed conversion. Bits
        // that are shifted out are kept as one sticky bit.
        let halve = |b: &mut Builder, v: Operand| {
            let half = b.i64(Op::UShr, &[v, ONE]);
            let low = b.i64(Op::And, &[v, ONE]);
            b.i64(Op::Or, &[half, low])
        };
        let half = halve(&mut b, quotient.into());
        let with_carry = b.i64(Op::Or, &[half, MIN]);
        let digits = b.select(Scalar::I64, carry, with_carry, quotient.into());
        let digits = halve(&mut b, digits);
        let mantissa = b.f64(Op::IntToFloat, &[digits]);
        let carried = b.i64(Op::BoolToInt, &[carry]);
        let exponent = b.i64(Op::Sub, &[zeros_y, zeros_x]);
        let exponent = b.i64(Op::Add, &[exponent, carried]);
        let scale = power_of_two(&mut b, exponent, 1 - 64);
        let value = b.f64(Op::FMul, &[mantissa, scale]);
        let negative = b.icmp(Cmp::Ne, negative_x, negative_y);
        let negated = b.f64(Op::FNeg, &[value]);
        let value = b.select(Scalar::F64, negative, negated, value);
        b.push(Stmt::Return(vec![value]));
        b.finish()
    })
}

/// `2.0 ** (exponent + plus)`, if that is a normal number.
pub fn power_of_two(b: &mut Builder, exponent: Operand, plus: i64) -> Operand {
    let biased = b.i64(Op::Add, &[exponent, Operand::I64(1023 + plus)]);
    let bits = b.i64(Op::Shl, &[biased, Operand::I64(52)]);
    b.f64(Op::FloatFromBits, &[bits])
}

/// Whether the Integer is an object on Ruby's heap: beyond 62 bits and sign.
pub fn beyond_fixnum(b: &mut Builder, a: Operand) -> Operand {
    let twice = b.i64(Op::Shl, &[a, ONE]);
    let signs = b.i64(Op::Xor, &[a, twice]);
    b.icmp(Cmp::Lt, signs, ZERO)
}

/// `(n in 0..=18) → 10 ** n`
fn power_of_ten_function(cx: &mut Cx<'_>) -> FuncId {
    cx.helper("power of ten", || {
        let mut b = Builder::new("power of ten".into(), vec![Scalar::I64]);
        let n = b.param(Scalar::I64, Some("n".into()));
        let value = b.var(Scalar::I64, Some("value".into()));
        b.set(value, ONE);
        b.repeat(|b, done| {
            let none = b.icmp(Cmp::Eq, n.into(), ZERO);
            b.when(none, |b| b.push(Stmt::Break(done)));
            b.push(Stmt::Let { dst: value, op: Op::Mul, args: vec![value.into(), Operand::I64(10)] });
            b.push(Stmt::Let { dst: n, op: Op::Sub, args: vec![n.into(), ONE] });
        });
        b.push(Stmt::Return(vec![value.into()]));
        b.finish()
    })
}

/// `10 ** n` for n in 0..=18.
pub fn power_of_ten(cx: &mut Cx<'_>, n: Operand) -> Operand {
    if let Operand::I64(n) = n {
        return Operand::I64(10i64.pow(u32::try_from(n).expect("a power within 64 bits")));
    }
    let function = power_of_ten_function(cx);
    cx.b.call(function, vec![n], &[Scalar::I64], None)[0]
}

/// The square root of a number that is not negative, rounded down to an Integer.
pub fn square_root(cx: &mut Cx<'_>, a: Operand) -> Operand {
    // The square root of the double is off by at most one. As unsigned numbers, the squares fit.
    let x = cx.b.f64(Op::IntToFloat, &[a]);
    let root = cx.b.f64(Op::FSqrt, &[x]);
    let root = cx.b.i64(Op::FloatToInt, &[root]);
    let square = cx.b.i64(Op::Mul, &[root, root]);
    let above = cx.b.bool(Op::UCmp(Cmp::Gt), &[square, a]);
    let less = cx.b.i64(Op::BoolToInt, &[above]);
    let root = cx.b.i64(Op::Sub, &[root, less]);
    let next = cx.b.i64(Op::Add, &[root, ONE]);
    let square = cx.b.i64(Op::Mul, &[next, next]);
    let fits = cx.b.bool(Op::UCmp(Cmp::Le), &[square, a]);
    cx.b.select(Scalar::I64, fits, next, root)
}
