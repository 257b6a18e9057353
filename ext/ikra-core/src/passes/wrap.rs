//! Lets arithmetic wrap where only its low bits are asked for.
//!
//! `(x * 1_103_515_245 + 12_345) & 0x7fffffff` is exact in wrapping arithmetic whatever `x` is: the low bits of a sum,
//! difference or product depend on the low bits of its operands alone. So a checked operation whose result reaches
//! nothing but an `& constant` (not negative, so that the result has no high bits), directly or through further such
//! operations, needs no check. Ruby computes the same with a big integer in between.
//!
//! The one pass that changes what a program does: where others would raise IntegerOverflow, Ruby's answer results.

use super::Pass;
use crate::ir::visit::walk_mut;
use crate::ir::{CheckedOp, Func, Op, Operand, Program, Scalar, Stmt, VarId, walk};

pub const PASS: Pass = Pass { name: "wrap", description: "no overflow check where only low bits count", run };

fn run(mut program: Program) -> Program {
    for func in &mut program.funcs {
        let low_only = low_only(func);
        walk_mut(&mut func.body, &mut |stmt| {
            if let Stmt::Checked { dst, op, args, .. } = stmt
                && low_only[dst.index()]
            {
                *stmt = Stmt::Let { dst: *dst, op: wrapping(*op), args: args.to_vec() };
            }
        });
    }
    program
}

/// The operation that wraps instead of trapping.
pub fn wrapping(op: CheckedOp) -> Op {
    match op {
        CheckedOp::Add => Op::Add,
        CheckedOp::Sub => Op::Sub,
        CheckedOp::Mul => Op::Mul,
    }
}

/// For each register, whether everything that reads it depends on its low bits alone (and something does).
fn low_only(func: &Func) -> Vec<bool> {
    let mut low = vec![false; func.vars.len()];
    walk(&func.body, &mut |stmt| {
        stmt.reads(|operand| {
            if let Operand::Var(v) = operand {
                low[v.index()] = func.vars[v.index()].ty == Scalar::I64;
            }
        });
    });
    // Registers whose low bits go into the low bits of others.
    let mut flows: Vec<(VarId, VarId)> = Vec::new();
    walk(&func.body, &mut |stmt| {
        let through = match stmt {
            Stmt::Let { op: Op::And, args, .. } if args.iter().any(|a| matches!(a, Operand::I64(0..))) => return,
            Stmt::Let { dst, op: Op::Copy | Op::Add | Op::Sub | Op::Mul | Op::And | Op::Or | Op::Xor, .. }
            | Stmt::Checked { dst, .. } => Some(*dst),
            Stmt::Let { dst, op: Op::Shl, args } if matches!(args[1], Operand::I64(_)) => Some(*dst),
            _ => None,
        };
        stmt.reads(|operand| match (operand, through) {
            (Operand::Var(v), Some(dst)) => flows.push((v, dst)),
            (Operand::Var(v), None) => low[v.index()] = false,
            _ => {}
        });
    });
    loop {
        let mut changed = false;
        for (from, to) in &flows {
            changed |= low[from.index()] && !low[to.index()];
            low[from.index()] &= low[to.index()];
        }
        if !changed {
            return low;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, INTS, OVERFLOW, program};
    use crate::ir::{CheckedOp, Op, Operand, Scalar};
    use crate::passes::testing::after;

    fn check(body: impl FnOnce(&mut Builder, Operand)) -> String {
        after(&[PASS], program(body))
    }

    fn congruential(b: &mut Builder, index: Operand) -> Operand {
        let x = b.load(Scalar::I64, INPUT, index);
        let product = b.checked(CheckedOp::Mul, x, Operand::I64(1_103_515_245), OVERFLOW);
        b.checked(CheckedOp::Add, product, Operand::I64(12_345), OVERFLOW)
    }

    #[test]
    fn a_chain_that_ends_in_a_mask_wraps() {
        insta::assert_snapshot!(check(|b, index| {
            let sum = congruential(b, index);
            let mixed = b.i64(Op::Xor, &[sum, index]);
            let masked = b.i64(Op::And, &[Operand::I64(0x7fff_ffff), mixed]);
            b.store(INTS, index, masked);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load in[v3]
          v5: i64 = mul v4, 1103515245
          v6: i64 = add v5, 12345
          v7: i64 = xor v6, v3
          v8: i64 = and 2147483647, v7
          store ints[v3] = v8
        }
        "#);
    }

    #[test]
    fn another_reader_keeps_the_check() {
        insta::assert_snapshot!(check(|b, index| {
            let sum = congruential(b, index);
            let masked = b.i64(Op::And, &[sum, Operand::I64(0x7fff_ffff)]);
            b.store(INTS, index, masked);
            b.store(INPUT, index, sum);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load in[v3]
          v5: i64 = checked mul v4, 1103515245 else s0
          v6: i64 = checked add v5, 12345 else s0
          v7: i64 = and v6, 2147483647
          store ints[v3] = v7
          store in[v3] = v6
        }
        "#);
    }

    #[test]
    fn a_negative_mask_keeps_the_high_bits_and_so_the_check() {
        insta::assert_snapshot!(check(|b, index| {
            let sum = congruential(b, index);
            let masked = b.i64(Op::And, &[sum, Operand::I64(-8)]);
            let shifted = b.i64(Op::Shr, &[masked, Operand::I64(3)]);
            b.store(INTS, index, shifted);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load in[v3]
          v5: i64 = checked mul v4, 1103515245 else s0
          v6: i64 = checked add v5, 12345 else s0
          v7: i64 = and v6, -8
          v8: i64 = shr v7, 3
          store ints[v3] = v8
        }
        "#);
    }
}
