//! Algebraic simplification: constants, neutral elements, inverses.
//!
//! Here: rules that are exact for every operand, Floats included (so no `x + 0.0` → `x`, which is wrong for -0.0). Not
//! here: rules that depend on control flow ([`super::gvn`]) or on ranges ([`super::ranges`]).

use crate::ir::eval::{Value, eval};
use crate::ir::{Cmp, Op, Operand, Scalar};

/// What to compute instead.
#[derive(Clone, Debug, PartialEq)]
pub enum Simpler {
    /// No operation is needed: this is the result.
    Is(Operand),
    /// Another operation.
    Op(Op, Vec<Operand>),
}

/// A simpler form of `op` on these operands. A register stands for the same value wherever it occurs in `args`.
pub fn simplify(op: Op, result: Scalar, args: &[Operand]) -> Option<Simpler> {
    use Simpler::Is;
    let constants: Option<Vec<Value>> = args.iter().map(|a| Value::of(*a)).collect();
    if let Some(constants) = constants.filter(|c| !c.is_empty()) {
        return eval(op, result, &constants).ok().map(|value| Is(value.into()));
    }
    // Constants stand on the right.
    if let [a, b] = args
        && Value::of(*a).is_some()
    {
        let swapped = match op {
            Op::Add | Op::Mul | Op::MulHi | Op::UMulHi | Op::And | Op::Or | Op::Xor | Op::FAdd | Op::FMul => Some(op),
            Op::ICmp(cmp) => Some(Op::ICmp(cmp.swapped())),
            Op::UCmp(cmp) => Some(Op::UCmp(cmp.swapped())),
            Op::FCmp(cmp) => Some(Op::FCmp(cmp.swapped())),
            _ => None,
        };
        if let Some(op) = swapped {
            let args = [*b, *a];
            return Some(simplify(op, result, &args).unwrap_or(Simpler::Op(op, args.to_vec())));
        }
    }
    let int = |value: i64| if result == Scalar::I32 { Operand::I32(value as i32) } else { Operand::I64(value) };
    Some(match (op, args) {
        (Op::Copy, [a]) => Is(*a),
        (
            Op::Add | Op::Sub | Op::Or | Op::Xor | Op::Shl | Op::Shr | Op::UShr,
            [a, Operand::I64(0) | Operand::I32(0)],
        ) => Is(*a),
        (Op::Mul | Op::Div | Op::UDiv, [a, Operand::I64(1) | Operand::I32(1)]) => Is(*a),
        (Op::Mul | Op::And, [_, Operand::I64(0) | Operand::I32(0)]) => Is(int(0)),
        (Op::Rem | Op::URem, [_, Operand::I64(1) | Operand::I32(1)]) => Is(int(0)),
        (Op::And, [a, Operand::I64(-1) | Operand::I32(-1)]) => Is(*a),
        (Op::Or, [_, Operand::I64(-1) | Operand::I32(-1)]) => Is(int(-1)),
        (Op::Mul, [a, Operand::I64(n)]) if n.count_ones() == 1 => {
            Simpler::Op(Op::Shl, vec![*a, int(n.trailing_zeros().into())])
        }
        (Op::UDiv, [a, Operand::I64(n)]) if n.count_ones() == 1 => {
            Simpler::Op(Op::UShr, vec![*a, int(n.trailing_zeros().into())])
        }
        (Op::URem, [a, Operand::I64(n)]) if n.count_ones() == 1 => {
            Simpler::Op(Op::And, vec![*a, int(n.wrapping_sub(1))])
        }
        (Op::Sub | Op::Xor, [a, b]) if a == b && result != Scalar::Bool => Is(int(0)),
        (Op::Xor, [a, b]) if a == b => Is(Operand::Bool(false)),
        (Op::And | Op::Or, [a, b]) if a == b => Is(*a),
        (Op::And, [a, Operand::Bool(true)]) => Is(*a),
        (Op::And, [_, Operand::Bool(false)]) => Is(Operand::Bool(false)),
        (Op::Or | Op::Xor, [a, Operand::Bool(false)]) => Is(*a),
        (Op::Or, [_, Operand::Bool(true)]) => Is(Operand::Bool(true)),
        (Op::Xor, [a, Operand::Bool(true)]) => Simpler::Op(Op::Not, vec![*a]),
        (Op::ICmp(Cmp::Eq), [a, Operand::Bool(b)]) | (Op::ICmp(Cmp::Ne), [a, Operand::Bool(b)]) => {
            if *b == (op == Op::ICmp(Cmp::Eq)) { Is(*a) } else { Simpler::Op(Op::Not, vec![*a]) }
        }
        (Op::ICmp(cmp) | Op::UCmp(cmp), [a, b]) if a == b => {
            Is(Operand::Bool(matches!(cmp, Cmp::Eq | Cmp::Le | Cmp::Ge)))
        }
        (Op::ICmp(cmp), [_, Operand::I64(i64::MIN)] | [_, Operand::I32(i32::MIN)])
            if matches!(cmp, Cmp::Lt | Cmp::Ge) =>
        {
            Is(Operand::Bool(cmp == Cmp::Ge))
        }
        (Op::ICmp(cmp), [_, Operand::I64(i64::MAX)] | [_, Operand::I32(i32::MAX)])
            if matches!(cmp, Cmp::Gt | Cmp::Le) =>
        {
            Is(Operand::Bool(cmp == Cmp::Le))
        }
        (Op::UCmp(cmp), [_, Operand::I64(0)] | [_, Operand::I32(0)]) if matches!(cmp, Cmp::Lt | Cmp::Ge) => {
            Is(Operand::Bool(cmp == Cmp::Ge))
        }
        (Op::Shl | Op::Shr | Op::UShr, [Operand::I64(0) | Operand::I32(0), _]) => Is(int(0)),
        // Exact for every Float: these operations neither round nor change the sign of a zero.
        (Op::FMul | Op::FDiv, [a, Operand::F64(ONE)]) => Is(*a),
        (Op::FSub, [a, Operand::F64(PLUS_ZERO)]) => Is(*a),
        (Op::FAdd, [a, Operand::F64(MINUS_ZERO)]) => Is(*a),
        // A power of two has an exact reciprocal, so quotient and product are the same real number and round alike.
        (Op::FDiv, [a, Operand::F64(bits)]) if is_power_of_two(*bits) => {
            Simpler::Op(Op::FMul, vec![*a, Operand::float(1.0 / f64::from_bits(*bits))])
        }
        (Op::Select, [Operand::Bool(c), a, b]) => Is(if *c { *a } else { *b }),
        (Op::Select, [_, a, b]) if a == b => Is(*a),
        (Op::Select, [c, Operand::Bool(true), Operand::Bool(false)]) => Is(*c),
        (Op::Select, [c, Operand::Bool(false), Operand::Bool(true)]) => Simpler::Op(Op::Not, vec![*c]),
        (Op::Select, [c, a, Operand::Bool(false)]) => Simpler::Op(Op::And, vec![*c, *a]),
        (Op::Select, [c, Operand::Bool(true), b]) => Simpler::Op(Op::Or, vec![*c, *b]),
        _ => return None,
    })
}

fn is_power_of_two(bits: u64) -> bool {
    let x = f64::from_bits(bits);
    bits << 12 == 0 && x.is_normal() && (1.0 / x).is_normal()
}

const ONE: u64 = 0x3ff0_0000_0000_0000;
const PLUS_ZERO: u64 = 0;
const MINUS_ZERO: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::Simpler::{self, Is};
    use super::simplify;
    use crate::ir::eval::{Value, eval};
    use crate::ir::print::PLAIN_OPS;
    use crate::ir::{Cmp, Op, Operand, Scalar, VarId};

    const X: Operand = Operand::Var(VarId(0));

    #[test]
    fn floats_are_simplified_only_where_exact() {
        let f = Operand::float;
        for (op, b) in [(Op::FAdd, 0.0), (Op::FSub, -0.0), (Op::FMul, 0.0), (Op::FMul, 2.0), (Op::FDiv, 3.0)] {
            assert_eq!(simplify(op, Scalar::F64, &[X, f(b)]), None, "{op} {b}");
        }
        assert_eq!(simplify(Op::FSub, Scalar::F64, &[X, X]), None);
        assert_eq!(simplify(Op::FCmp(Cmp::Eq), Scalar::Bool, &[X, X]), None);
        assert_eq!(simplify(Op::FMul, Scalar::F64, &[X, f(1.0)]), Some(Is(X)));
        assert_eq!(simplify(Op::FSub, Scalar::F64, &[X, f(0.0)]), Some(Is(X)));
        assert_eq!(simplify(Op::FDiv, Scalar::F64, &[X, f(-8.0)]), Some(Simpler::Op(Op::FMul, vec![X, f(-0.125)])));
        for c in [0.0, f64::INFINITY, f64::NAN, f64::MAX, 5e-324, f64::MIN_POSITIVE / 2.0] {
            assert_eq!(simplify(Op::FDiv, Scalar::F64, &[X, f(c)]), None, "{c}");
        }
        for x in [1.0, 3.7, 5e-324, 1.5e-308, f64::MAX, f64::INFINITY, -0.0] {
            for c in [8.0, -0.25, 2f64.powi(1000), 2f64.powi(-1000)] {
                assert_eq!((x / c).to_bits(), (x * (1.0 / c)).to_bits());
            }
        }
        assert_eq!(simplify(Op::FAdd, Scalar::F64, &[f(0.1), f(0.2)]), Some(Is(f(0.1 + 0.2))));
    }

    #[test]
    fn broken_preconditions_are_left_alone() {
        assert_eq!(simplify(Op::Div, Scalar::I64, &[Operand::I64(1), Operand::I64(0)]), None);
    }

    /// Checks every rule against evaluation: each operation on each pair of these, with either or both unknown.
    #[test]
    fn every_simpler_form_is_equal() {
        let ints = [0, 1, -1, 2, 7, 8, i64::MIN, i64::MAX];
        let int64: Vec<Value> = ints.iter().map(|i| Value::I64(*i)).collect();
        let int32: Vec<Value> = [0, 1, -1, 2, i32::MIN, i32::MAX].iter().map(|i| Value::I32(*i)).collect();
        let floats: Vec<Value> =
            [0.0, -0.0, 1.0, -1.0, 2.5, f64::INFINITY, f64::NAN].iter().map(|x| Value::F64(*x)).collect();
        let bools = vec![Value::Bool(false), Value::Bool(true)];
        let all_cmps = Cmp::WORDS.iter().flat_map(|(_, c)| [Op::ICmp(*c), Op::UCmp(*c), Op::FCmp(*c)]);
        let ops: Vec<Op> = PLAIN_OPS.iter().map(|(_, op)| *op).chain(all_cmps).collect();
        let mut fired = 0;
        for values in [int64, int32, floats, bools] {
            for op in &ops {
                for a in &values {
                    for b in &values {
                        fired += usize::from(check(*op, &[*a, *b]));
                        for c in [Value::Bool(true), Value::Bool(false)] {
                            if *op == Op::Select {
                                fired += usize::from(check(*op, &[c, *a, *b]));
                            }
                        }
                    }
                }
            }
        }
        assert!(fired > 1000, "{fired}");
    }

    fn check(op: Op, values: &[Value]) -> bool {
        let result = match op {
            Op::ICmp(_) | Op::UCmp(_) | Op::FCmp(_) => Scalar::Bool,
            _ => values[values.len() - 1].ty(),
        };
        let Ok(expected) = eval(op, result, values) else { return false };
        let mut fired = false;
        for unknown in 0..1 << values.len() {
            // Equal unknown values are one register.
            let register = |i: usize| {
                let first = (0..values.len()).position(|j| {
                    unknown >> j & 1 == 1 && values[j].word() == values[i].word() && values[j].ty() == values[i].ty()
                });
                Operand::Var(VarId::new(first.unwrap_or(i)))
            };
            let args: Vec<Operand> =
                (0..values.len()).map(|i| if unknown >> i & 1 == 1 { register(i) } else { values[i].into() }).collect();
            let value = |o: Operand| match o {
                Operand::Var(v) => values[v.index()],
                constant => Value::of(constant).expect("a constant"),
            };
            let got = match simplify(op, result, &args) {
                None => continue,
                Some(Is(operand)) => value(operand),
                Some(Simpler::Op(op, args)) => {
                    let args: Vec<Value> = args.iter().map(|a| value(*a)).collect();
                    eval(op, result, &args).unwrap_or_else(|e| panic!("{op} {args:?} {e}"))
                }
            };
            fired = true;
            let same = got.word() == expected.word()
                || matches!((got, expected), (Value::F64(a), Value::F64(b)) if a.is_nan() && b.is_nan());
            assert!(same, "{op} {args:?}: {got:?} for {expected:?}");
        }
        fired
    }
}
