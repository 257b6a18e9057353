//! Ruby's Math: its own formulae and domain checks on top of libm, and `Integer.sqrt`.

use super::raise::{raise_if, to_c_int, to_float, to_int};
use super::{Val, float, int};
use crate::ir::build::Builder;
use crate::ir::{Cmp, MathFn, Op, Operand, Scalar, Stmt};
use crate::lower::Cx;
use crate::types::numeric::Function;

impl Function {
    /// Emits the call at the cursor; the value's form is that of [`Function::result`]. Ruby calls `to_f` on an object
    /// whose class is below Numeric. `Integer.sqrt` calls `to_int`, and so does ldexp for its exponent. In these cases
    /// the caller refuses.
    pub fn lower(self, cx: &mut Cx<'_>, args: &[Val]) -> Val {
        match self {
            Function::IntegerSqrt => integer_sqrt(cx, args[0]),
            Function::Ldexp => ldexp(cx, args[0], args[1]),
            Function::Log => log(cx, args),
            // Ruby converts the second argument first.
            Function::Atan2 | Function::Hypot => {
                let Some(y) = to_float(cx, args[1]) else { return Val::NEVER };
                let Some(x) = to_float(cx, args[0]) else { return Val::NEVER };
                let function = if self == Function::Atan2 { MathFn::Atan2 } else { MathFn::Hypot };
                Val::Float(cx.b.f64(Op::Math(function), &[x, y]))
            }
            _ => match to_float(cx, args[0]) {
                Some(x) => Val::Float(self.of_float(cx, x)),
                None => Val::NEVER,
            },
        }
    }

    /// A function of one double.
    fn of_float(self, cx: &mut Cx<'_>, x: Operand) -> Operand {
        let libm = |cx: &mut Cx<'_>, function: MathFn| cx.b.f64(Op::Math(function), &[x]);
        match self {
            Function::Sin => libm(cx, MathFn::Sin),
            Function::Cos => libm(cx, MathFn::Cos),
            Function::Tan => libm(cx, MathFn::Tan),
            Function::Atan => libm(cx, MathFn::Atan),
            Function::Sinh => libm(cx, MathFn::Sinh),
            Function::Cosh => libm(cx, MathFn::Cosh),
            Function::Tanh => libm(cx, MathFn::Tanh),
            Function::Asinh => libm(cx, MathFn::Asinh),
            Function::Exp => libm(cx, MathFn::Exp),
            Function::Erf => libm(cx, MathFn::Erf),
            Function::Erfc => libm(cx, MathFn::Erfc),
            Function::Asin | Function::Acos | Function::Atanh => {
                let below = cx.b.fcmp(Cmp::Lt, x, Operand::float(-1.0));
                let above = cx.b.fcmp(Cmp::Gt, x, Operand::float(1.0));
                let outside = cx.b.bool(Op::Or, &[below, above]);
                out_of_domain_if(cx, outside, self.name());
                // libm's atanh is infinite for 1 and -1, as Ruby's is.
                libm(
                    cx,
                    match self {
                        Function::Asin => MathFn::Asin,
                        Function::Acos => MathFn::Acos,
                        _ => MathFn::Atanh,
                    },
                )
            }
            Function::Acosh => {
                at_least(cx, x, 1.0, self.name());
                libm(cx, MathFn::Acosh)
            }
            // libm's logarithms are -Infinity for 0.0 and -0.0, as Ruby's are.
            Function::Log | Function::Log2 | Function::Log10 => {
                at_least(cx, x, 0.0, self.name());
                libm(
                    cx,
                    match self {
                        Function::Log => MathFn::Log,
                        Function::Log2 => MathFn::Log2,
                        _ => MathFn::Log10,
                    },
                )
            }
            Function::Sqrt => {
                at_least(cx, x, 0.0, self.name());
                // Ruby's root of -0.0 is 0.0, as is the root of this sum.
                let sum = cx.b.f64(Op::FAdd, &[x, Operand::float(0.0)]);
                cx.b.f64(Op::FSqrt, &[sum])
            }
            Function::Cbrt => {
                let root = libm(cx, MathFn::Cbrt);
                if cfg!(target_env = "gnu") { newton(cx, x, root) } else { root }
            }
            Function::Gamma => gamma(cx, x),
            Function::Atan2 | Function::Hypot | Function::Ldexp | Function::IntegerSqrt => {
                unreachable!("{self:?} is not of one double")
            }
        }
    }
}

/// The nearest Float of 32 bits.
pub fn single(cx: &mut Cx<'_>, x: Val) -> Val {
    match to_float(cx, x) {
        Some(x) => Val::Float(cx.b.f64(Op::FSingle, &[x])),
        None => Val::NEVER,
    }
}

fn out_of_domain_if(cx: &mut Cx<'_>, cond: Operand, name: &str) {
    raise_if(cx, cond, "Math::DomainError", format!("Numerical argument is out of domain - {name}"));
}

fn at_least(cx: &mut Cx<'_>, x: Operand, least: f64, name: &str) {
    let below = cx.b.fcmp(Cmp::Lt, x, Operand::float(least));
    out_of_domain_if(cx, below, name);
}

/// Ruby's step of Newton's method after glibc's cbrt.
fn newton(cx: &mut Cx<'_>, x: Operand, root: Operand) -> Operand {
    let twice = cx.b.f64(Op::FMul, &[Operand::float(2.0), root]);
    let quotient = cx.b.f64(Op::FDiv, &[x, root]);
    let quotient = cx.b.f64(Op::FDiv, &[quotient, root]);
    let sum = cx.b.f64(Op::FAdd, &[twice, quotient]);
    let better = cx.b.f64(Op::FDiv, &[sum, Operand::float(3.0)]);
    let finite = float::finite(cx, root);
    let there = cx.b.fcmp(Cmp::Ne, root, Operand::float(0.0));
    let steps = cx.b.bool(Op::And, &[finite, there]);
    cx.b.select(Scalar::F64, steps, better, root)
}

/// `log(x)`, `log(x, base)`. Before Ruby 3.3 the latter divides natural logarithms.
fn log(cx: &mut Cx<'_>, args: &[Val]) -> Val {
    if args.len() == 2 && cx.shared.options.ruby >= (3, 3) {
        return log_to_base(cx, args[0], args[1]);
    }
    let mut logs = Vec::new();
    for arg in args {
        let Some(x) = to_float(cx, *arg) else { return Val::NEVER };
        logs.push(Function::Log.of_float(cx, x));
    }
    Val::Float(if logs.len() == 1 { logs[0] } else { cx.b.f64(Op::FDiv, &logs) })
}

/// Since Ruby 3.3: uses binary logarithms, with separate results for 0.
fn log_to_base(cx: &mut Cx<'_>, x: Val, base: Val) -> Val {
    let Some(x) = to_float(cx, x) else { return Val::NEVER };
    at_least(cx, x, 0.0, "log");
    let Some(base) = to_float(cx, base) else { return Val::NEVER };
    at_least(cx, base, 0.0, "log");
    let b = &mut cx.b;
    let zero = Operand::float(0.0);
    let (log_x, log_base) = (b.f64(Op::Math(MathFn::Log2), &[x]), b.f64(Op::Math(MathFn::Log2), &[base]));
    let quotient = b.f64(Op::FDiv, &[log_x, log_base]);
    // The contribution of a Bignum's lower bits. It makes the result NaN for the base 1.
    let rest = b.f64(Op::FDiv, &[zero, log_base]);
    let sum = b.f64(Op::FAdd, &[quotient, rest]);
    let (no_x, no_base) = (b.fcmp(Cmp::Eq, x, zero), b.fcmp(Cmp::Eq, base, zero));
    let of_none = b.select(Scalar::F64, no_base, Operand::float(f64::NAN), Operand::float(f64::NEG_INFINITY));
    let of_some = b.select(Scalar::F64, no_base, Operand::float(-0.0), sum);
    Val::Float(b.select(Scalar::F64, no_x, of_none, of_some))
}

fn ldexp(cx: &mut Cx<'_>, x: Val, exponent: Val) -> Val {
    let Some(exponent) = to_c_int(cx, exponent) else { return Val::NEVER };
    let Some(x) = to_float(cx, x) else { return Val::NEVER };
    Val::Float(cx.b.f64(Op::Math(MathFn::Ldexp), &[x, exponent]))
}

/// Factorials up to 22! are exact; libm's tgamma computes all other values.
fn gamma(cx: &mut Cx<'_>, x: Operand) -> Operand {
    let factorial = cx.helper("factorial", || {
        let mut b = Builder::new("factorial".into(), vec![Scalar::F64]);
        let n = b.param(Scalar::F64, Some("n".into()));
        let value = b.var(Scalar::F64, Some("value".into()));
        b.set(value, Operand::float(1.0));
        b.repeat(|b, done| {
            let spent = b.fcmp(Cmp::Le, n.into(), Operand::float(1.0));
            b.when(spent, |b| b.push(Stmt::Break(done)));
            b.push(Stmt::Let { dst: value, op: Op::FMul, args: vec![value.into(), n.into()] });
            b.push(Stmt::Let { dst: n, op: Op::FSub, args: vec![n.into(), Operand::float(1.0)] });
        });
        b.push(Stmt::Return(vec![value.into()]));
        b.finish()
    });
    // All negative whole numbers, and -Infinity.
    let floor = cx.b.f64(Op::FFloor, &[x]);
    let whole = cx.b.fcmp(Cmp::Eq, x, floor);
    let negative = cx.b.fcmp(Cmp::Lt, x, Operand::float(0.0));
    let outside = cx.b.bool(Op::And, &[whole, negative]);
    out_of_domain_if(cx, outside, "gamma");
    let above = cx.b.fcmp(Cmp::Ge, x, Operand::float(1.0));
    let below = cx.b.fcmp(Cmp::Le, x, Operand::float(23.0));
    let known = cx.b.bool(Op::And, &[above, below]);
    let known = cx.b.bool(Op::And, &[known, whole]);
    let result = cx.b.temp(Scalar::F64);
    cx.b.branch(
        known,
        |b| {
            let n = b.f64(Op::FSub, &[x, Operand::float(1.0)]);
            let value = b.call(factorial, vec![n], &[Scalar::F64], None)[0];
            b.set(result, value);
        },
        |b| {
            let value = b.f64(Op::Math(MathFn::Tgamma), &[x]);
            b.set(result, value);
        },
    );
    result.into()
}

fn integer_sqrt(cx: &mut Cx<'_>, arg: Val) -> Val {
    let Some(n) = to_int(cx, arg, "sqrt") else { return Val::NEVER };
    let negative = cx.b.icmp(Cmp::Lt, n, Operand::I64(0));
    out_of_domain_if(cx, negative, "\"isqrt\"");
    Val::Int(int::square_root(cx, n))
}
