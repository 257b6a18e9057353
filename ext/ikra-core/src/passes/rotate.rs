//! Loop rotation (loop inversion): a loop tests its condition at its end.
//!
//! `loop { break if c; body }` becomes `if !c { loop { body; break if c } }`. Each repetition has one jump less. Within
//! the branch it is known that the body runs at least once, which [`super::register_promotion`] needs to move a load
//! before the loop. Fires where computing the condition takes a few statements without effect.
//!
//! A loop at the end of a block is left by its own label, not by the block's (`loop do … break if c … end`).

use super::Pass;
use super::loops::is_movable;
use crate::ir::visit::{breaks_to, walk_mut};
use crate::ir::{Func, LabelId, Op, Operand, Program, Scalar, Stmt, Var, VarId};

pub const PASS: Pass = Pass { name: "rotate", description: "loops test their condition at the end", run };

/// The most statements that compute the condition.
const CONDITION: usize = 4;

fn run(mut program: Program) -> Program {
    for func in &mut program.funcs {
        let mut body = std::mem::take(&mut func.body);
        rotate_in(func, &mut body);
        func.body = body;
    }
    program
}

fn rotate_in(func: &mut Func, body: &mut Vec<Stmt>) {
    let mut out = Vec::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        if let Stmt::Block { label, body } = &mut stmt {
            leave_last_loop(*label, body);
        }
        for nested in stmt.bodies_mut().into_iter().flatten() {
            rotate_in(func, nested);
        }
        match test_length(&stmt) {
            Some(length) => rotate(func, stmt, length, &mut out),
            None => out.push(stmt),
        }
    }
    *body = out;
}

/// Lets the loop at the end of a block be left by its own label.
fn leave_last_loop(block: LabelId, body: &mut [Stmt]) {
    let Some(Stmt::Loop { label, body }) = body.last_mut() else { return };
    walk_mut(body, &mut |stmt| {
        if let Stmt::Break(to) = stmt
            && *to == block
        {
            *to = *label;
        }
    });
}

/// How many statements at the start of the loop only decide whether to leave it.
fn test_length(stmt: &Stmt) -> Option<usize> {
    let Stmt::Loop { label, body } = stmt else { return None };
    let at = body.iter().position(|s| !is_computation(s))?;
    let leaves = matches!(&body[at], Stmt::If { then, otherwise, .. }
        if otherwise.is_empty() && then[..] == [Stmt::Break(*label)]);
    // The test is already at the end, or the body is empty.
    let rest = &body[at + 1..];
    (leaves && at <= CONDITION && !rest.is_empty() && !rest.last().is_some_and(Stmt::ends_list)).then_some(at)
}

fn is_computation(stmt: &Stmt) -> bool {
    match stmt {
        Stmt::Let { op, .. } => is_movable(*op),
        Stmt::Load { .. } => true,
        _ => false,
    }
}

fn rotate(func: &mut Func, stmt: Stmt, length: usize, out: &mut Vec<Stmt>) {
    let Stmt::Loop { label, mut body } = stmt else { return };
    let mut repeated = body.split_off(length + 1);
    let Some(Stmt::If { cond, .. }) = body.last() else { return };
    let enters = VarId::new(func.vars.len());
    func.vars.push(Var { ty: Scalar::Bool, name: None });
    out.extend_from_slice(&body[..length]);
    out.push(Stmt::Let { dst: enters, op: Op::Not, args: vec![*cond] });
    repeated.append(&mut body);
    debug_assert!(breaks_to(&repeated, label));
    let then = vec![Stmt::Loop { label, body: repeated }];
    out.push(Stmt::If { cond: Operand::Var(enters), then, otherwise: Vec::new() });
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::testing::{INTS, program};
    use crate::ir::{Cmp, Op, Operand, ParamId, Scalar, Stmt};
    use crate::passes::testing::after;
    use crate::passes::{dce, gvn};

    #[test]
    fn a_while_loop_is_entered_through_its_condition() {
        let program = program(|b, index| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let i = b.var(Scalar::I64, Some("i".into()));
            b.set(i, index);
            b.repeat(|b, done| {
                let end = b.icmp(Cmp::Ge, i.into(), n);
                b.when(end, |b| b.push(Stmt::Break(done)));
                b.store(INTS, index, i.into());
                b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
            });
        });
        insta::assert_snapshot!(after(&[PASS, gvn::PASS, dce::PASS], program.clone()), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = param p0 "n"
          i.4: i64 = copy job.0
          v5: bool = icmp.lt job.0, v3
          if v5 {
            loop L0 {
              store ints[job.0] = i.4
              i.4 = add i.4, 1
              v6: bool = icmp.ge i.4, v3
              if v6 {
                break L0
              }
            }
          }
        }
        "#);
        // A second run changes nothing.
        assert_eq!(after(&[PASS, PASS], program.clone()), after(&[PASS], program));
    }

    #[test]
    fn a_loop_at_the_end_of_a_block_is_left_by_its_own_label() {
        let program = |acts_behind: bool| {
            program(move |b, index| {
                let n = b.i64(Op::Param(ParamId(0)), &[]);
                let i = b.var(Scalar::I64, Some("i".into()));
                b.set(i, index);
                b.block(|b, done| {
                    b.repeat(|b, _| {
                        let end = b.icmp(Cmp::Ge, i.into(), n);
                        b.when(end, |b| b.push(Stmt::Break(done)));
                        b.store(INTS, index, i.into());
                        b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
                    });
                    if acts_behind {
                        b.store(INTS, index, n);
                    }
                });
            })
        };
        insta::assert_snapshot!(after(&[PASS, gvn::PASS, dce::PASS], program(false)), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = param p0 "n"
          i.4: i64 = copy job.0
          v5: bool = icmp.lt job.0, v3
          if v5 {
            loop L0 {
              store ints[job.0] = i.4
              i.4 = add i.4, 1
              v6: bool = icmp.ge i.4, v3
              if v6 {
                break L0
              }
            }
          }
        }
        "#);
        assert_eq!(after(&[PASS], program(true)), after(&[], program(true)));
    }

    #[test]
    fn a_loop_that_acts_before_it_tests_stays() {
        let program = program(|b, index| {
            b.repeat(|b, done| {
                let x = b.load(Scalar::I64, INTS, index);
                let next = b.i64(Op::Add, &[x, Operand::I64(1)]);
                b.store(INTS, index, next);
                let end = b.icmp(Cmp::Ge, next, Operand::I64(10));
                b.when(end, |b| b.push(Stmt::Break(done)));
                b.push(Stmt::Poll);
            });
        });
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          loop L0 {
            v4: i64 = load ints[v3]
            v5: i64 = add v4, 1
            store ints[v3] = v5
            v6: bool = icmp.ge v5, 10
            if v6 {
              break L0
            }
            poll
          }
        }
        "#);
    }
}
