//! The results of pure operations on constants.
//!
//! Here: one function, which the reference interpreter and constant folding both use, so that they cannot disagree. Not
//! here: operations that need more than their operands (`Math`, `Ctx`, `Random`, `Param`), and statements.

use super::{Cmp, Op, Operand, Scalar};

/// The content of a register.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    Bool(bool),
    I32(i32),
    I64(i64),
    F64(f64),
}

impl Value {
    pub fn ty(self) -> Scalar {
        match self {
            Value::Bool(_) => Scalar::Bool,
            Value::I32(_) => Scalar::I32,
            Value::I64(_) => Scalar::I64,
            Value::F64(_) => Scalar::F64,
        }
    }
    /// The value of a constant operand.
    pub fn of(operand: Operand) -> Option<Self> {
        match operand {
            Operand::Var(_) => None,
            Operand::Bool(b) => Some(Value::Bool(b)),
            Operand::I32(i) => Some(Value::I32(i)),
            Operand::I64(i) => Some(Value::I64(i)),
            Operand::F64(bits) => Some(Value::F64(f64::from_bits(bits))),
        }
    }
    /// As a launch parameter or a trap's word: Bool as 0 or 1, I32 sign-extended, the bits of a Float.
    pub fn word(self) -> u64 {
        match self {
            Value::Bool(b) => b.into(),
            Value::I32(i) => i64::from(i) as u64,
            Value::I64(i) => i as u64,
            Value::F64(x) => x.to_bits(),
        }
    }
    /// The reverse of [`Value::word`].
    pub fn from_word(ty: Scalar, word: u64) -> Self {
        match ty {
            Scalar::Bool => Value::Bool(word != 0),
            Scalar::I32 => Value::I32(word as i32),
            Scalar::I64 => Value::I64(word as i64),
            Scalar::F64 => Value::F64(f64::from_bits(word)),
        }
    }
}

impl From<Value> for Operand {
    fn from(value: Value) -> Self {
        match value {
            Value::Bool(b) => Operand::Bool(b),
            Value::I32(i) => Operand::I32(i),
            Value::I64(i) => Operand::I64(i),
            Value::F64(x) => Operand::float(x),
        }
    }
}

/// The result of an operation, or the name of a precondition that does not hold.
pub fn eval(op: Op, result: Scalar, args: &[Value]) -> Result<Value, &'static str> {
    use Value::{Bool, F64, I32, I64};
    Ok(match (op, args) {
        (Op::Copy, [a]) => *a,
        (Op::Add, [I64(a), I64(b)]) => I64(a.wrapping_add(*b)),
        (Op::Add, [I32(a), I32(b)]) => I32(a.wrapping_add(*b)),
        (Op::Sub, [I64(a), I64(b)]) => I64(a.wrapping_sub(*b)),
        (Op::Sub, [I32(a), I32(b)]) => I32(a.wrapping_sub(*b)),
        (Op::Mul, [I64(a), I64(b)]) => I64(a.wrapping_mul(*b)),
        (Op::Mul, [I32(a), I32(b)]) => I32(a.wrapping_mul(*b)),
        (Op::MulHi, [I64(a), I64(b)]) => I64(((i128::from(*a) * i128::from(*b)) >> 64) as i64),
        (Op::UMulHi, [I64(a), I64(b)]) => I64(((u128::from(*a as u64) * u128::from(*b as u64)) >> 64) as i64),
        (Op::Div | Op::Rem | Op::UDiv | Op::URem, [I64(_), I64(0)] | [I32(_), I32(0)]) => return Err("divides by 0"),
        (Op::Div, [I64(a), I64(b)]) => I64(a.checked_div(*b).ok_or("divides the least integer by -1")?),
        (Op::Div, [I32(a), I32(b)]) => I32(a.checked_div(*b).ok_or("divides the least integer by -1")?),
        (Op::Rem, [I64(a), I64(b)]) => I64(a.checked_rem(*b).ok_or("divides the least integer by -1")?),
        (Op::Rem, [I32(a), I32(b)]) => I32(a.checked_rem(*b).ok_or("divides the least integer by -1")?),
        (Op::UDiv, [I64(a), I64(b)]) => I64((*a as u64 / *b as u64) as i64),
        (Op::UDiv, [I32(a), I32(b)]) => I32((*a as u32 / *b as u32) as i32),
        (Op::URem, [I64(a), I64(b)]) => I64((*a as u64 % *b as u64) as i64),
        (Op::URem, [I32(a), I32(b)]) => I32((*a as u32 % *b as u32) as i32),
        (Op::MulMod | Op::AddMod, [_, _, I64(i64::MIN..=0)]) => return Err("takes a remainder by 0 or less"),
        (Op::MulMod, [I64(a), I64(b), I64(m)]) => I64((i128::from(*a) * i128::from(*b)).rem_euclid((*m).into()) as i64),
        (Op::AddMod, [I64(a), I64(b), I64(m)]) => I64((i128::from(*a) + i128::from(*b)).rem_euclid((*m).into()) as i64),
        (Op::And, [I64(a), I64(b)]) => I64(a & b),
        (Op::And, [I32(a), I32(b)]) => I32(a & b),
        (Op::And, [Bool(a), Bool(b)]) => Bool(a & b),
        (Op::Or, [I64(a), I64(b)]) => I64(a | b),
        (Op::Or, [I32(a), I32(b)]) => I32(a | b),
        (Op::Or, [Bool(a), Bool(b)]) => Bool(a | b),
        (Op::Xor, [I64(a), I64(b)]) => I64(a ^ b),
        (Op::Xor, [I32(a), I32(b)]) => I32(a ^ b),
        (Op::Xor, [Bool(a), Bool(b)]) => Bool(a ^ b),
        (Op::Shl | Op::Shr | Op::UShr, [I64(_), I64(i64::MIN..=-1 | 64..)] | [I32(_), I32(i32::MIN..=-1 | 32..)]) => {
            return Err("shifts by less than 0 or by more than all bits");
        }
        (Op::Shl, [I64(a), I64(b)]) => I64(a << b),
        (Op::Shl, [I32(a), I32(b)]) => I32(a << b),
        (Op::Shr, [I64(a), I64(b)]) => I64(a >> b),
        (Op::Shr, [I32(a), I32(b)]) => I32(a >> b),
        (Op::UShr, [I64(a), I64(b)]) => I64((*a as u64 >> b) as i64),
        (Op::UShr, [I32(a), I32(b)]) => I32((*a as u32 >> b) as i32),
        (Op::Clz, [I64(a)]) => I64(a.leading_zeros().into()),
        (Op::ICmp(cmp), [I64(a), I64(b)]) => Bool(cmp.holds(a, b)),
        (Op::ICmp(cmp), [I32(a), I32(b)]) => Bool(cmp.holds(a, b)),
        (Op::ICmp(cmp), [Bool(a), Bool(b)]) => Bool(cmp.holds(a, b)),
        (Op::UCmp(cmp), [I64(a), I64(b)]) => Bool(cmp.holds(&(*a as u64), &(*b as u64))),
        (Op::UCmp(cmp), [I32(a), I32(b)]) => Bool(cmp.holds(&(*a as u32), &(*b as u32))),
        (Op::FCmp(cmp), [F64(a), F64(b)]) => Bool(cmp.holds(a, b)),
        (Op::FAdd, [F64(a), F64(b)]) => F64(a + b),
        (Op::FSub, [F64(a), F64(b)]) => F64(a - b),
        (Op::FMul, [F64(a), F64(b)]) => F64(a * b),
        (Op::FDiv, [F64(a), F64(b)]) => F64(a / b),
        (Op::FNeg, [F64(a)]) => F64(-a),
        (Op::FAbs, [F64(a)]) => F64(a.abs()),
        (Op::FSqrt, [F64(a)]) => F64(a.sqrt()),
        (Op::FFloor, [F64(a)]) => F64(a.floor()),
        (Op::FCeil, [F64(a)]) => F64(a.ceil()),
        (Op::FTrunc, [F64(a)]) => F64(a.trunc()),
        (Op::FRint, [F64(a)]) => F64(a.round_ties_even()),
        (Op::FSingle, [F64(a)]) => F64(f64::from(*a as f32)),
        (Op::FRound, [F64(a)]) => F64(a.round()),
        (Op::FRem, [F64(a), F64(b)]) => F64(a % b),
        (Op::FNextAfter, [F64(a), F64(b)]) => F64(next_after(*a, *b)),
        (Op::FCopySign, [F64(a), F64(b)]) => F64(a.copysign(*b)),
        (Op::IntToFloat, [I64(a)]) => F64(*a as f64),
        (Op::FloatToInt, [F64(a)]) => match *a {
            -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0 => I64(*a as i64),
            _ => return Err("turns a Float beyond 64 bits into an Integer"),
        },
        (Op::FloatBits, [F64(a)]) => I64(a.to_bits() as i64),
        (Op::SingleBits, [F64(a)]) => I32((*a as f32).to_bits() as i32),
        (Op::FloatFromBits, [I64(a)]) => F64(f64::from_bits(*a as u64)),
        (Op::Widen, [I32(a)]) => I64((*a as u32).into()),
        (Op::Narrow, [I64(a)]) => I32(*a as i32),
        (Op::BoolToInt, [Bool(a)]) if result == Scalar::I32 => I32((*a).into()),
        (Op::BoolToInt, [Bool(a)]) => I64((*a).into()),
        (Op::Not, [Bool(a)]) => Bool(!a),
        (Op::Select, [Bool(c), a, b]) => *if *c { a } else { b },
        _ => return Err("is not an operation on these constants"),
    })
}

/// C's `nextafter`.
fn next_after(from: f64, to: f64) -> f64 {
    if from.is_nan() || to.is_nan() {
        from + to
    } else if from == to {
        to
    } else if to > from {
        from.next_up()
    } else {
        from.next_down()
    }
}

impl Cmp {
    pub fn holds<T: PartialOrd>(self, a: &T, b: &T) -> bool {
        match self {
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
        }
    }
    /// The comparison that holds with the sides exchanged.
    pub fn swapped(self) -> Self {
        match self {
            Cmp::Lt => Cmp::Gt,
            Cmp::Le => Cmp::Ge,
            Cmp::Gt => Cmp::Lt,
            Cmp::Ge => Cmp::Le,
            same => same,
        }
    }
    /// The comparison that holds exactly when this one does not (for Integers; for Floats only `Eq` and `Ne`).
    pub fn negated(self) -> Self {
        match self {
            Cmp::Eq => Cmp::Ne,
            Cmp::Ne => Cmp::Eq,
            Cmp::Lt => Cmp::Ge,
            Cmp::Le => Cmp::Gt,
            Cmp::Gt => Cmp::Le,
            Cmp::Ge => Cmp::Lt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Value::{self, Bool, F64, I32, I64};
    use super::eval;
    use crate::ir::{Cmp, Op, Scalar};

    const MIN: i64 = i64::MIN;
    const MAX: i64 = i64::MAX;

    fn check(op: Op, cases: &[(&[Value], Value)]) {
        for (args, expected) in cases {
            let got = eval(op, expected.ty(), args).unwrap_or_else(|e| panic!("{op} {args:?} {e}"));
            assert_eq!((got.ty(), got.word()), (expected.ty(), expected.word()), "{op} {args:?} gave {got:?}");
        }
    }

    #[test]
    fn integers_wrap() {
        check(Op::Add, &[(&[I64(MAX), I64(1)], I64(MIN)), (&[I32(i32::MAX), I32(1)], I32(i32::MIN))]);
        check(Op::Sub, &[(&[I64(MIN), I64(1)], I64(MAX)), (&[I32(0), I32(i32::MIN)], I32(i32::MIN))]);
        check(Op::Mul, &[(&[I64(MIN), I64(-1)], I64(MIN)), (&[I64(1 << 32), I64(1 << 32)], I64(0))]);
        check(
            Op::MulHi,
            &[(&[I64(MIN), I64(MIN)], I64(1 << 62)), (&[I64(-1), I64(1)], I64(-1)), (&[I64(-1), I64(-1)], I64(0))],
        );
        check(Op::UMulHi, &[(&[I64(-1), I64(-1)], I64(-2)), (&[I64(MIN), I64(2)], I64(1))]);
    }

    #[test]
    fn division_truncates() {
        check(
            Op::Div,
            &[(&[I64(-7), I64(2)], I64(-3)), (&[I64(7), I64(-2)], I64(-3)), (&[I64(MIN), I64(1)], I64(MIN))],
        );
        check(Op::Rem, &[(&[I64(-7), I64(2)], I64(-1)), (&[I64(7), I64(-2)], I64(1)), (&[I32(-7), I32(7)], I32(0))]);
        check(Op::UDiv, &[(&[I64(-1), I64(2)], I64(MAX)), (&[I32(-1), I32(2)], I32(i32::MAX))]);
        check(Op::URem, &[(&[I64(-1), I64(10)], I64(5))]);
        check(Op::MulMod, &[(&[I64(MIN), I64(MIN), I64(MAX)], I64(1)), (&[I64(-7), I64(3), I64(5)], I64(4))]);
        check(Op::AddMod, &[(&[I64(MAX), I64(MAX), I64(10)], I64(4)), (&[I64(MIN), I64(-1), I64(7)], I64(5))]);
    }

    #[test]
    fn bits() {
        check(Op::And, &[(&[I64(-1), I64(6)], I64(6)), (&[Bool(true), Bool(false)], Bool(false))]);
        check(Op::Or, &[(&[I32(8), I32(6)], I32(14)), (&[Bool(true), Bool(false)], Bool(true))]);
        check(Op::Xor, &[(&[I64(-1), I64(0)], I64(-1)), (&[Bool(true), Bool(true)], Bool(false))]);
        check(
            Op::Shl,
            &[(&[I64(1), I64(63)], I64(MIN)), (&[I32(1), I32(31)], I32(i32::MIN)), (&[I64(5), I64(0)], I64(5))],
        );
        check(Op::Shr, &[(&[I64(MIN), I64(63)], I64(-1)), (&[I32(-2), I32(1)], I32(-1))]);
        check(Op::UShr, &[(&[I64(MIN), I64(63)], I64(1)), (&[I32(-2), I32(1)], I32(i32::MAX))]);
        check(Op::Clz, &[(&[I64(0)], I64(64)), (&[I64(-1)], I64(0)), (&[I64(1)], I64(63))]);
        check(Op::Not, &[(&[Bool(false)], Bool(true))]);
    }

    #[test]
    fn comparisons() {
        check(Op::ICmp(Cmp::Lt), &[(&[I64(-1), I64(0)], Bool(true)), (&[I32(0), I32(-1)], Bool(false))]);
        check(Op::UCmp(Cmp::Lt), &[(&[I64(-1), I64(0)], Bool(false)), (&[I32(0), I32(-1)], Bool(true))]);
        check(Op::ICmp(Cmp::Ne), &[(&[Bool(true), Bool(false)], Bool(true))]);
        let nan = F64(f64::NAN);
        for (cmp, expected) in [(Cmp::Eq, false), (Cmp::Ne, true), (Cmp::Lt, false), (Cmp::Ge, false)] {
            check(Op::FCmp(cmp), &[(&[nan, nan], Bool(expected)), (&[F64(1.0), nan], Bool(expected))]);
        }
        check(Op::FCmp(Cmp::Eq), &[(&[F64(0.0), F64(-0.0)], Bool(true))]);
    }

    #[test]
    fn floats() {
        check(Op::FAdd, &[(&[F64(-0.0), F64(0.0)], F64(0.0)), (&[F64(-0.0), F64(-0.0)], F64(-0.0))]);
        check(Op::FSub, &[(&[F64(0.0), F64(0.0)], F64(0.0))]);
        check(Op::FMul, &[(&[F64(-1.0), F64(0.0)], F64(-0.0))]);
        check(Op::FDiv, &[(&[F64(1.0), F64(-0.0)], F64(f64::NEG_INFINITY))]);
        check(Op::FNeg, &[(&[F64(0.0)], F64(-0.0))]);
        check(Op::FAbs, &[(&[F64(-0.0)], F64(0.0))]);
        check(Op::FSqrt, &[(&[F64(-0.0)], F64(-0.0)), (&[F64(2.0)], F64(std::f64::consts::SQRT_2))]);
        check(Op::FFloor, &[(&[F64(-0.5)], F64(-1.0))]);
        check(Op::FCeil, &[(&[F64(-0.5)], F64(-0.0))]);
        check(Op::FTrunc, &[(&[F64(-1.9)], F64(-1.0))]);
        // halves of a unit round to even; the others are beyond the greatest and below the least Float of 32 bits
        let (even, odd) = (1.0 + f64::from(f32::EPSILON) / 2.0, 1.0 + f64::from(f32::EPSILON) * 1.5);
        check(Op::FSingle, &[(&[F64(even)], F64(1.0)), (&[F64(odd)], F64(1.0 + f64::from(f32::EPSILON) * 2.0))]);
        check(Op::FSingle, &[(&[F64(-1e39)], F64(f64::NEG_INFINITY)), (&[F64(-1e-60)], F64(-0.0))]);
        check(Op::FRint, &[(&[F64(2.5)], F64(2.0)), (&[F64(-0.5)], F64(-0.0)), (&[F64(3.5)], F64(4.0))]);
        check(
            Op::FRound,
            &[(&[F64(2.5)], F64(3.0)), (&[F64(-2.5)], F64(-3.0)), (&[F64(0.499_999_999_999_999_94)], F64(0.0))],
        );
        check(Op::FRem, &[(&[F64(-7.0), F64(2.0)], F64(-1.0)), (&[F64(1e300), F64(3.0)], F64(1e300 % 3.0))]);
        check(Op::FRem, &[(&[F64(1.0), F64(f64::INFINITY)], F64(1.0)), (&[F64(-0.0), F64(1.0)], F64(-0.0))]);
        check(Op::FCopySign, &[(&[F64(2.0), F64(-0.0)], F64(-2.0))]);
        let least = F64(f64::from_bits(1));
        check(Op::FNextAfter, &[(&[F64(0.0), F64(1.0)], least), (&[F64(0.0), F64(-0.0)], F64(-0.0))]);
        check(Op::FNextAfter, &[(&[F64(1.0), F64(f64::NEG_INFINITY)], F64(1.0 - f64::EPSILON / 2.0))]);
    }

    #[test]
    fn conversions() {
        check(
            Op::IntToFloat,
            &[(&[I64(MAX)], F64(9_223_372_036_854_775_808.0)), (&[I64((1 << 53) + 1)], F64(9_007_199_254_740_992.0))],
        );
        check(
            Op::FloatToInt,
            &[(&[F64(-1.9)], I64(-1)), (&[F64(-9_223_372_036_854_775_808.0)], I64(MIN)), (&[F64(-0.0)], I64(0))],
        );
        check(Op::FloatBits, &[(&[F64(-0.0)], I64(MIN))]);
        check(Op::SingleBits, &[(&[F64(-0.0)], I32(i32::MIN)), (&[F64(1.0 + 1e-12)], I32(0x3f80_0000))]);
        check(Op::FloatFromBits, &[(&[I64(MIN)], F64(-0.0))]);
        check(Op::Widen, &[(&[I32(-1)], I64(0xffff_ffff))]);
        check(Op::Narrow, &[(&[I64(0x1_8000_0000)], I32(i32::MIN))]);
        check(Op::BoolToInt, &[(&[Bool(true)], I64(1)), (&[Bool(true)], I32(1))]);
        check(Op::Select, &[(&[Bool(false), I64(1), I64(2)], I64(2)), (&[Bool(true), F64(1.0), F64(2.0)], F64(1.0))]);
    }

    #[test]
    fn broken_preconditions_are_refused() {
        let refused = |op, args: &[Value]| assert!(eval(op, Scalar::I64, args).is_err(), "{op} {args:?}");
        for op in [Op::Div, Op::Rem, Op::UDiv, Op::URem] {
            refused(op, &[I64(1), I64(0)]);
            refused(op, &[I32(1), I32(0)]);
        }
        refused(Op::Div, &[I64(MIN), I64(-1)]);
        refused(Op::Rem, &[I32(i32::MIN), I32(-1)]);
        refused(Op::MulMod, &[I64(1), I64(1), I64(0)]);
        refused(Op::AddMod, &[I64(1), I64(1), I64(-5)]);
        for op in [Op::Shl, Op::Shr, Op::UShr] {
            refused(op, &[I64(1), I64(64)]);
            refused(op, &[I64(1), I64(-1)]);
            refused(op, &[I32(1), I32(32)]);
        }
        for x in [f64::NAN, f64::INFINITY, 9_223_372_036_854_775_808.0, -9_223_372_036_854_777_856.0] {
            refused(Op::FloatToInt, &[F64(x)]);
        }
    }
}
