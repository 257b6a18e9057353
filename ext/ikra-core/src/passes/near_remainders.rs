//! Remainders of numbers that mostly lie between zero and the divisor, without a division.
//!
//! `(i + 1) % n` joins the ends of a row: only at its end there is anything to divide. A processor that predicts branches
//! compares in one cycle what it divides in ten or more.
//!
//! Fires for the remainder of a register to which a small constant was added, by a divisor that is no constant. For
//! `0 <= a < n`, `a` is the remainder, so the result is the same. Loops are unrolled by now: what was a constant array's
//! element is a constant.
//!
//! Only in [`super::CPU`]: on a GPU, the threads of a warp part where some of them divide.

use super::Pass;
use crate::ir::{CheckedOp, Cmp, Func, Op, Operand, Program, Scalar, Stmt, Var, VarId, walk};
use std::collections::HashSet;

pub const PASS: Pass =
    Pass { name: "near_remainders", description: "remainders of neighbours are compared, not divided", run };

/// Constants up to this one lead to neighbours.
const FAR: i64 = 64;

fn run(mut program: Program) -> Program {
    for func in &mut program.funcs {
        let mut near = HashSet::new();
        walk(&func.body, &mut |stmt| near.extend(neighbour(stmt)));
        if !near.is_empty() {
            let mut body = std::mem::take(&mut func.body);
            list(&mut body, func, &near);
            func.body = body;
        }
    }
    program
}

/// The register that a statement assigns, if it adds a small constant to another.
fn neighbour(stmt: &Stmt) -> Option<VarId> {
    let (dst, args) = match stmt {
        Stmt::Let { dst, op: Op::Add | Op::Sub, args } => (dst, args.as_slice()),
        Stmt::Checked { dst, op: CheckedOp::Add | CheckedOp::Sub, args, .. } => (dst, args.as_slice()),
        _ => return None,
    };
    let small = |operand: &Operand| match operand {
        Operand::I64(by) => by.unsigned_abs() <= FAR.unsigned_abs(),
        Operand::I32(by) => i64::from(*by).unsigned_abs() <= FAR.unsigned_abs(),
        _ => false,
    };
    args.iter().any(small).then_some(*dst)
}

fn list(body: &mut Vec<Stmt>, func: &mut Func, near: &HashSet<VarId>) {
    let mut out = Vec::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        stmt.bodies_mut().into_iter().flatten().for_each(|body| list(body, func, near));
        match stmt {
            Stmt::Let { dst, op: op @ (Op::Rem | Op::URem), args } if is_near(&args, near) => {
                compared(dst, op, args, func, &mut out);
            }
            stmt => out.push(stmt),
        }
    }
    *body = out;
}

fn is_near(args: &[Operand], near: &HashSet<VarId>) -> bool {
    matches!(args, [Operand::Var(a), Operand::Var(_)] if near.contains(a))
}

/// `if 0 <= a < n { dst = a } else { dst = a % n }`
fn compared(dst: VarId, op: Op, args: Vec<Operand>, func: &mut Func, out: &mut Vec<Stmt>) {
    let zero = if func.ty(args[0]) == Scalar::I32 { Operand::I32(0) } else { Operand::I64(0) };
    let mut flag = |op, args: &[Operand]| -> Operand {
        func.vars.push(Var { name: None, ty: Scalar::Bool });
        let dst = VarId::new(func.vars.len() - 1);
        out.push(Stmt::Let { dst, op, args: args.to_vec() });
        dst.into()
    };
    let cond = if op == Op::URem {
        flag(Op::UCmp(Cmp::Lt), &args)
    } else {
        // the divisor is positive where both hold
        let (above, below) = (flag(Op::ICmp(Cmp::Ge), &[args[0], zero]), flag(Op::ICmp(Cmp::Lt), &args));
        flag(Op::And, &[above, below])
    };
    let then = vec![Stmt::Let { dst, op: Op::Copy, args: vec![args[0]] }];
    out.push(Stmt::If { cond, then, otherwise: vec![Stmt::Let { dst, op, args }] });
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::testing::{INTS, program};
    use crate::ir::{Op, Operand, Scalar};
    use crate::passes::testing::after;

    #[test]
    fn the_remainder_of_a_neighbour_is_compared_first() {
        let program = program(|b, index| {
            let n = b.load(Scalar::I64, INTS, index);
            let right = b.i64(Op::Add, &[index, Operand::I64(1)]);
            let joined = b.i64(Op::Rem, &[right, n]);
            b.store(INTS, index, joined);
        });
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load ints[v3]
          v5: i64 = add v3, 1
          v7: bool = icmp.ge v5, 0
          v8: bool = icmp.lt v5, v4
          v9: bool = and v7, v8
          if v9 {
            v6: i64 = copy v5
          } else {
            v6 = rem v5, v4
          }
          store ints[v3] = v6
        }
        "#);
    }

    #[test]
    fn numbers_from_anywhere_and_constant_divisors_are_divided() {
        let program = program(|b, index| {
            let n = b.load(Scalar::I64, INTS, index);
            let right = b.i64(Op::Add, &[index, Operand::I64(1)]);
            let far = b.i64(Op::Add, &[index, Operand::I64(1000)]);
            for args in [[index, n], [far, n], [right, Operand::I64(8)]] {
                let joined = b.i64(Op::Rem, &args);
                b.store(INTS, index, joined);
            }
        });
        let before = after(&[], program.clone());
        assert_eq!(after(&[PASS], program), before);
    }
}
