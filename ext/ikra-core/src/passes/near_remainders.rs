//! Remainders of numbers that mostly lie between zero and the divisor, without a division.
//!
//! `(i + 1) % n` joins the ends of a row: only at its end there is anything to divide. A processor that predicts
//! branches compares in one cycle what it divides in ten or more.
//!
//! Fires for the remainder of a register to which a small constant was added, by a divisor that is no constant. For
//! `0 <= a < n`, `a` is the remainder, so the result is the same. Loops are unrolled by now, so elements of constant
//! arrays are constants.
//!
//! Only in [`super::CPU`]: on a GPU, the threads of a warp part where some of them divide.

use super::Pass;
use super::loops::Counts;
use super::ranges::{self, Interval};
use crate::ir::{CheckedOp, Cmp, Func, Op, Operand, Program, Scalar, Stmt, Var, VarId, walk};
use std::collections::HashMap;

pub const PASS: Pass =
    Pass { name: "near_remainders", description: "remainders of neighbours are compared, not divided", run };

/// Constants up to this one lead to neighbours.
const FAR: u64 = 64;

fn run(mut program: Program) -> Program {
    let mut divides = false;
    for func in &program.funcs {
        walk(&func.body, &mut |stmt| divides |= matches!(stmt, Stmt::Let { op: Op::Rem | Op::URem, .. }));
    }
    if !divides {
        return program;
    }
    let seen = ranges::seen(&program);
    for (func, seen) in program.funcs.iter_mut().zip(seen) {
        let definitions = Definitions::of(func, seen);
        let mut body = std::mem::take(&mut func.body);
        list(&mut body, func, &definitions);
        func.body = body;
    }
    program
}

/// What is known of the registers of a function.
struct Definitions {
    /// The sums, differences and halves in registers that are assigned once.
    found: HashMap<VarId, (Op, Vec<Operand>)>,
    /// All values that each has.
    seen: Vec<Option<Interval>>,
}

impl Definitions {
    fn of(func: &Func, seen: Vec<Option<Interval>>) -> Self {
        let (counts, mut found) = (Counts::of(func), HashMap::new());
        walk(&func.body, &mut |stmt| {
            let (dst, op, args) = match stmt {
                Stmt::Let { dst, op: op @ (Op::Add | Op::Sub | Op::Narrow), args } => (dst, *op, args.to_vec()),
                Stmt::Checked { dst, op: CheckedOp::Add, args, .. } => (dst, Op::Add, args.to_vec()),
                Stmt::Checked { dst, op: CheckedOp::Sub, args, .. } => (dst, Op::Sub, args.to_vec()),
                _ => return,
            };
            if counts.assigned(*dst) == 1 {
                found.insert(*dst, (op, args));
            }
        });
        Self { found, seen }
    }

    fn get(&self, operand: Operand) -> Option<(Op, &[Operand])> {
        let Operand::Var(var) = operand else { return None };
        self.found.get(&var).map(|(op, args)| (*op, args.as_slice()))
    }

    /// What a register had before it was cut to 32 bits.
    fn whole(&self, operand: Operand) -> Operand {
        match self.get(operand) {
            Some((Op::Narrow, [whole])) => *whole,
            _ => operand,
        }
    }

    /// Whether it is a number to which a small constant was added.
    fn is_neighbour(&self, operand: Operand) -> bool {
        let small = |operand: &Operand| match operand {
            Operand::I64(by) => by.unsigned_abs() <= FAR,
            Operand::I32(by) => u64::from(by.unsigned_abs()) <= FAR,
            _ => false,
        };
        matches!(self.get(operand), Some((Op::Add | Op::Sub, args)) if args.iter().any(small))
    }

    /// The neighbour whose remainder a division gives, and the divisor. Where the dividend is that of Ruby's floored
    /// remainder, to which the divisor was added, it is the number before.
    fn near(&self, args: &[Operand]) -> Option<[Operand; 2]> {
        let [dividend, divisor @ Operand::Var(_)] = *args else { return None };
        if self.is_neighbour(dividend) {
            return Some([dividend, divisor]);
        }
        let (whole, divisor) = (self.whole(dividend), self.whole(divisor));
        match self.get(whole)? {
            (Op::Add, [near, added] | [added, near])
                if *added == divisor && self.is_neighbour(*near) && self.is_short(divisor) =>
            {
                Some([*near, divisor])
            }
            _ => None,
        }
    }

    /// Whether the sum of two such numbers has 32 bits.
    fn is_short(&self, operand: Operand) -> bool {
        let Operand::Var(var) = operand else { return false };
        self.seen[var.index()].is_some_and(|(from, to)| from >= 0 && to <= i32::MAX.into())
    }
}

fn list(body: &mut Vec<Stmt>, func: &mut Func, definitions: &Definitions) {
    let mut out = Vec::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        stmt.bodies_mut().into_iter().flatten().for_each(|body| list(body, func, definitions));
        let near = match &stmt {
            Stmt::Let { op: Op::Rem | Op::URem, args, .. } => definitions.near(args),
            _ => None,
        };
        match (stmt, near) {
            (Stmt::Let { dst, op, args }, Some(near)) => compared(dst, op, args, near, func, &mut out),
            (stmt, _) => out.push(stmt),
        }
    }
    *body = out;
}

/// `if 0 <= near < n { dst = near } else { dst = args.0 % n }`
fn compared(dst: VarId, op: Op, args: Vec<Operand>, near: [Operand; 2], func: &mut Func, out: &mut Vec<Stmt>) {
    let ty = func.ty(near[0]);
    let mut temp = |ty, op, args: &[Operand], out: &mut Vec<Stmt>| -> Operand {
        func.vars.push(Var { name: None, ty });
        let dst = VarId::new(func.vars.len() - 1);
        out.push(Stmt::Let { dst, op, args: args.to_vec() });
        dst.into()
    };
    let cond = if op == Op::URem {
        temp(Scalar::Bool, Op::UCmp(Cmp::Lt), &near, out)
    } else {
        // the divisor is positive where both hold
        let zero = if ty == Scalar::I32 { Operand::I32(0) } else { Operand::I64(0) };
        let above = temp(Scalar::Bool, Op::ICmp(Cmp::Ge), &[near[0], zero], out);
        let below = temp(Scalar::Bool, Op::ICmp(Cmp::Lt), &near, out);
        temp(Scalar::Bool, Op::And, &[above, below], out)
    };
    let is_cut = ty != func.vars[dst.index()].ty;
    let then = Stmt::Let { dst, op: if is_cut { Op::Narrow } else { Op::Copy }, args: vec![near[0]] };
    out.push(Stmt::If { cond, then: vec![then], otherwise: vec![Stmt::Let { dst, op, args }] });
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
    fn a_floored_remainder_is_that_of_the_number_before_the_divisor_was_added() {
        let program = program(|b, index| {
            let n = b.load(Scalar::I64, INTS, index);
            let n = b.i64(Op::And, &[n, Operand::I64(0xff)]);
            let left = b.i64(Op::Sub, &[index, Operand::I64(1)]);
            let lifted = b.i64(Op::Add, &[left, n]);
            let [lifted, n] = [lifted, n].map(|whole| b.op(Scalar::I32, Op::Narrow, &[whole]));
            let joined = b.op(Scalar::I32, Op::URem, &[lifted, n]);
            let joined = b.i64(Op::Widen, &[joined]);
            b.store(INTS, index, joined);
        });
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load ints[v3]
          v5: i64 = and v4, 255
          v6: i64 = sub v3, 1
          v7: i64 = add v6, v5
          v8: i32 = narrow v7
          v9: i32 = narrow v5
          v12: bool = ucmp.lt v6, v5
          if v12 {
            v10: i32 = narrow v6
          } else {
            v10 = urem v8, v9
          }
          v11: i64 = widen v10
          store ints[v3] = v11
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
