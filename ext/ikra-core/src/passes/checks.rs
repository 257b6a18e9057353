//! Moves checks before the loads and the arithmetic that they do not depend on.
//!
//! `a[i] * b[i + 1] + c[i - 1]` is lowered as check, load, check, load, multiply, check, load, …. No compiler may move
//! a load before a check, so each load ends before the next one begins. As a rule, the operands of the checks are known
//! at the start: indices and lengths. With all checks first, the loads stand together and overlap.
//!
//! Fires for runs of statements whose only effects are traps. Checks keep their order and stay behind what they read,
//! so the same exception is raised. Other statements only move behind checks, where their preconditions still hold. Not
//! here: which checks can fail at all ([`super::ranges`]).

use super::Pass;
use crate::ir::{Op, Operand, Program, Stmt, VarId};
use std::collections::HashSet;

pub const PASS: Pass = Pass { name: "checks", description: "checks come before the loads that they let through", run };

fn run(mut program: Program) -> Program {
    for func in &mut program.funcs {
        list(&mut func.body);
    }
    program
}

fn list(body: &mut Vec<Stmt>) {
    let mut out = Vec::with_capacity(body.len());
    let mut run = Vec::new();
    for mut stmt in std::mem::take(body) {
        if !is_check(&stmt) {
            stmt.bodies_mut().into_iter().flatten().for_each(list);
        }
        if is_check(&stmt) || is_silent(&stmt) {
            run.push(stmt);
        } else {
            reorder(std::mem::take(&mut run), &mut out);
            out.push(stmt);
        }
    }
    reorder(run, &mut out);
    *body = out;
}

/// Whether the statement only assigns, and raises where a check fails.
fn is_check(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Checked { .. } => true,
        Stmt::If { then, otherwise, .. } => {
            otherwise.is_empty()
                && matches!(then.last(), Some(Stmt::Trap { .. }))
                && then.iter().rev().skip(1).all(is_silent)
        }
        _ => false,
    }
}

/// Whether the statement assigns, and does nothing else.
fn is_silent(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Let { op, .. } => *op != Op::Random,
        Stmt::Load { .. } => true,
        _ => false,
    }
}

/// Appends the checks of a run with the statements that they depend on, then the rest.
fn reorder(run: Vec<Stmt>, out: &mut Vec<Stmt>) {
    let (mut read, mut assigned) = (HashSet::new(), HashSet::new());
    let mut early = vec![false; run.len()];
    for (stmt, early) in run.iter().zip(&mut early).rev() {
        let (reads, assigns) = (reads(stmt), assigns(stmt));
        // A statement stays before an early one if it assigns what that one reads or assigns, or reads what that one
        // assigns.
        *early = is_check(stmt)
            || assigns.iter().any(|v| read.contains(v) || assigned.contains(v))
            || reads.iter().any(|v| assigned.contains(v));
        if *early {
            read.extend(reads);
            assigned.extend(assigns);
        }
    }
    let mut late = Vec::new();
    for (stmt, early) in run.into_iter().zip(early) {
        if early { out.push(stmt) } else { late.push(stmt) }
    }
    out.append(&mut late);
}

fn reads(stmt: &Stmt) -> Vec<VarId> {
    let mut vars = Vec::new();
    let mut visit = |stmt: &Stmt| {
        stmt.reads(|operand| {
            if let Operand::Var(v) = operand {
                vars.push(v);
            }
        });
    };
    visit(stmt);
    stmt.bodies().into_iter().flatten().for_each(visit);
    vars
}

fn assigns(stmt: &Stmt) -> Vec<VarId> {
    let nested = stmt.bodies().into_iter().flatten().flat_map(|s| s.assigns());
    stmt.assigns().iter().chain(nested).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{DOMAIN, INTS, OVERFLOW, SPEED, ZERO, program};
    use crate::ir::{CheckedOp, Cmp, Op, Operand, Scalar, Stmt};
    use crate::passes::testing::after;

    /// `in[index + by]`, where that is less than 9.
    fn element(b: &mut Builder, index: Operand, by: i64) -> Operand {
        let row = b.checked(CheckedOp::Add, index, Operand::I64(by), OVERFLOW);
        let outside = b.icmp(Cmp::Ge, row, Operand::I64(9));
        b.trap_if(outside, DOMAIN, vec![row]);
        b.load(Scalar::I64, INTS, row)
    }

    #[test]
    fn loads_stand_together_behind_their_checks() {
        let program = program(|b, index| {
            let (x, y) = (element(b, index, 1), element(b, index, 2));
            let sum = b.i64(Op::Mul, &[x, y]);
            b.store(INTS, index, sum);
            let z = element(b, index, 3);
            b.store(INTS, index, z);
        });
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = checked add v3, 1 else s0
          v5: bool = icmp.ge v4, 9
          if v5 {
            trap s1 v4
          }
          v7: i64 = checked add v3, 2 else s0
          v8: bool = icmp.ge v7, 9
          if v8 {
            trap s1 v7
          }
          v6: i64 = load ints[v4]
          v9: i64 = load ints[v7]
          v10: i64 = mul v6, v9
          store ints[v3] = v10
          v11: i64 = checked add v3, 3 else s0
          v12: bool = icmp.ge v11, 9
          if v12 {
            trap s1 v11
          }
          v13: i64 = load ints[v11]
          store ints[v3] = v13
        }
        "#);
    }

    #[test]
    fn what_a_check_looks_at_stays_before_it() {
        let program = program(|b, index| {
            let x = element(b, index, 1);
            let y = element(b, x, 2);
            let zero = b.icmp(Cmp::Eq, y, Operand::I64(0));
            b.trap_if(zero, ZERO, Vec::new());
            let quotient = b.i64(Op::Div, &[x, y]);
            let z = element(b, quotient, 3);
            b.store(INTS, index, z);
        });
        let text = after(&[PASS], program.clone());
        assert_eq!(text, after(&[], program), "nothing can move");
    }

    #[test]
    fn a_register_that_a_check_assigns_again_is_read_before() {
        let program = program(|b, index| {
            let i = b.var(Scalar::I64, Some("i".into()));
            b.set(i, index);
            let before = b.i64(Op::Mul, &[i.into(), Operand::I64(3)]);
            let free = b.load(Scalar::F64, SPEED, Operand::I32(1));
            b.push(Stmt::Checked { dst: i, op: CheckedOp::Add, args: [i.into(), Operand::I64(1)], site: OVERFLOW });
            let after = b.i64(Op::Mul, &[i.into(), Operand::I64(5)]);
            let sum = b.i64(Op::Add, &[before, after]);
            b.store(INTS, index, sum);
            b.store(SPEED, Operand::I32(1), free);
        });
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          i.4: i64 = copy v3
          v5: i64 = mul i.4, 3
          i.4 = checked add i.4, 1 else s0
          v6: f64 = load Car@speed[1i32]
          v7: i64 = mul i.4, 5
          v8: i64 = add v5, v7
          store ints[v3] = v8
          store Car@speed[1i32] = v6
        }
        "#);
    }
}
