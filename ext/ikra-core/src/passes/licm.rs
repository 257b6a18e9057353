//! Loop-invariant code motion (LICM): moves out of a loop what each repetition computes to the same result.
//!
//! Fires for operations without effect and precondition on operands that the loop does not assign. In branches it moves
//! cheap operations only, since they may be computed in vain. It moves no loads ([`super::register_promotion`] knows
//! when a load may move). It moves a check if each repetition begins with it and its operands do not change. The first
//! repetition raises as before, and the later ones cannot fail. It moves a whole branch that chooses between such
//! values, as in `from, to = even ? [p, q] : [q, p]`.

use super::Pass;
use super::loops::{Counts, assigned_in, is_cheap, is_movable, never_passed};
use crate::ir::{Op, Operand, Program, Stmt, VarId};
use std::collections::{HashMap, HashSet};

pub const PASS: Pass = Pass { name: "licm", description: "what does not change is computed before the loop", run };

fn run(mut program: Program) -> Program {
    for func in &mut program.funcs {
        let counts = Counts::of(func);
        list(&mut func.body, &counts);
    }
    program
}

fn list(body: &mut Vec<Stmt>, counts: &Counts) {
    if !body.iter().any(|s| s.bodies() != [&[][..], &[][..]]) {
        return;
    }
    let mut out = Vec::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        if let Stmt::Loop { body, .. } = &mut stmt {
            let mut varies = assigned_in(body);
            while take(body, true, counts, &mut varies, &mut out) | checks(body, counts, &mut varies, &mut out) {}
        }
        for nested in stmt.bodies_mut().into_iter().flatten() {
            list(nested, counts);
        }
        out.push(stmt);
    }
    *body = out;
}

/// Moves statements that can leave the loop from a list to `out`. Returns whether it moved any.
fn take(body: &mut Vec<Stmt>, always: bool, counts: &Counts, varies: &mut HashSet<VarId>, out: &mut Vec<Stmt>) -> bool {
    let before = out.len();
    let mut statements = std::mem::take(body).into_iter();
    while let Some(mut stmt) = statements.next() {
        let last = never_passed(&stmt);
        match &stmt {
            Stmt::Let { dst, op, args }
                if is_movable(*op)
                    && (always || is_cheap(*op))
                    && counts.assigned(*dst) == 1
                    && args.iter().all(|a| !matches!(a, Operand::Var(v) if varies.contains(v))) =>
            {
                varies.remove(dst);
                out.push(stmt);
            }
            Stmt::If { .. } if chooses(&stmt, always, counts, varies) => {
                let chosen = assigned_in(std::slice::from_ref(&stmt));
                varies.retain(|v| !chosen.contains(v));
                out.push(stmt);
            }
            _ => {
                let always = always && matches!(stmt, Stmt::Block { .. });
                for nested in stmt.bodies_mut().into_iter().flatten() {
                    take(nested, always, counts, varies, out);
                }
                body.push(stmt);
            }
        }
        if last {
            // the rest is unreachable, and may read registers that are never assigned
            body.extend(statements);
            break;
        }
    }
    out.len() > before
}

/// Whether a branch chooses between values that do not change, and nothing else assigns the registers that it assigns.
/// What the program reads of them is then assigned by the branch that ran last, and always to the same.
fn chooses(stmt: &Stmt, always: bool, counts: &Counts, varies: &HashSet<VarId>) -> bool {
    let Stmt::If { cond, then, otherwise } = stmt else { return false };
    let mut here = HashMap::<VarId, u32>::new();
    for side in [then, otherwise] {
        // what a side assigns first, and then reads
        let mut known = HashSet::new();
        for stmt in side {
            let Stmt::Let { dst, op, args } = stmt else { return false };
            let varying = |a: &Operand| matches!(a, Operand::Var(v) if varies.contains(v) && !known.contains(v));
            if !is_movable(*op) || !(always || is_cheap(*op)) || args.iter().any(varying) || !known.insert(*dst) {
                return false;
            }
            *here.entry(*dst).or_default() += 1;
        }
    }
    let varying = matches!(cond, Operand::Var(v) if varies.contains(v));
    !varying && !then.is_empty() && here.iter().all(|(dst, times)| counts.assigned(*dst) == *times)
}

/// Moves invariant checks at the start of a body to `out`. Returns whether there was one.
fn checks(body: &mut Vec<Stmt>, counts: &Counts, varies: &mut HashSet<VarId>, out: &mut Vec<Stmt>) -> bool {
    let before = out.len();
    let mut at = 0;
    while let Some(stmt) = body.get(at) {
        let same = |operand: &Operand| !matches!(operand, Operand::Var(v) if varies.contains(v));
        match stmt {
            Stmt::Let { op, .. } if *op != Op::Random => at += 1,
            Stmt::Load { .. } => at += 1,
            Stmt::Checked { dst, args, .. } if args.iter().all(same) && counts.assigned(*dst) == 1 => {
                varies.remove(dst);
                out.push(body.remove(at));
            }
            Stmt::If { cond, then, otherwise } if same(cond) && otherwise.is_empty() => match &then[..] {
                [Stmt::Trap { operands, .. }] if operands.iter().all(same) => out.push(body.remove(at)),
                _ => break,
            },
            _ => break,
        }
    }
    out.len() > before
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::testing::{DOMAIN, INTS, OUT, OVERFLOW, program};
    use crate::ir::{CheckedOp, Cmp, Op, Operand, ParamId, Scalar, Stmt};
    use crate::passes::testing::after;

    #[test]
    fn a_loop_that_begins_with_checks_begins_behind_them() {
        let checked = |acts_before: bool| {
            program(move |b, index| {
                let n = b.i64(Op::Param(ParamId(0)), &[]);
                b.repeat(|b, done| {
                    let i = b.load(Scalar::I64, INTS, index);
                    if acts_before {
                        b.store(INTS, index, n);
                    }
                    let twice = b.checked(CheckedOp::Add, n, n, OVERFLOW);
                    let zero = b.icmp(Cmp::Eq, twice, Operand::I64(0));
                    b.trap_if(zero, DOMAIN, vec![twice]);
                    let over = b.icmp(Cmp::Gt, i, twice);
                    b.trap_if(over, DOMAIN, vec![i]);
                    b.store(INTS, index, twice);
                    b.push(Stmt::Break(done));
                });
            })
        };
        insta::assert_snapshot!(after(&[PASS], checked(false)), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = param p0 "n"
          v6: i64 = checked add v4, v4 else s0
          v7: bool = icmp.eq v6, 0
          if v7 {
            trap s1 v6
          }
          loop L0 {
            v5: i64 = load ints[v3]
            v8: bool = icmp.gt v5, v6
            if v8 {
              trap s1 v5
            }
            store ints[v3] = v6
            break L0
          }
        }
        "#);
        assert_eq!(after(&[PASS], checked(true)), after(&[], checked(true)));
    }

    #[test]
    fn what_stays_the_same_moves_out_of_all_loops() {
        let program = program(|b, index| {
            let i = b.var(Scalar::I64, Some("i".into()));
            b.set(i, Operand::I64(0));
            b.repeat(|b, outer| {
                b.repeat(|b, inner| {
                    let limit = b.i64(Op::Param(ParamId(0)), &[]);
                    let twice = b.i64(Op::Add, &[limit, limit]);
                    let next = b.i64(Op::Add, &[i.into(), Operand::I64(1)]);
                    b.set(i, next);
                    let end = b.icmp(Cmp::Gt, next, twice);
                    b.when(end, |b| {
                        let x = b.f64(Op::Param(ParamId(1)), &[]);
                        let root = b.f64(Op::FSqrt, &[x]);
                        b.store(OUT, index, root);
                        b.push(Stmt::Break(inner));
                    });
                });
                // May trap, and so stays after the statement that may end the loop.
                let quotient = b.i64(Op::Div, &[index, index]);
                b.store(INTS, index, quotient);
                b.push(Stmt::Break(outer));
            });
        });
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          i.4: i64 = copy 0
          v5: i64 = param p0 "n"
          v6: i64 = add v5, v5
          v9: f64 = param p1 "x"
          loop L0 {
            loop L1 {
              v7: i64 = add i.4, 1
              i.4 = copy v7
              v8: bool = icmp.gt v7, v6
              if v8 {
                v10: f64 = fsqrt v9
                store out[v3] = v10
                break L1
              }
            }
            v11: i64 = div v3, v3
            store ints[v3] = v11
            break L0
          }
        }
        "#);
    }

    #[test]
    fn a_branch_that_chooses_what_stays_the_same_moves_out() {
        let program = |changes: bool| {
            program(move |b, index| {
                let n = b.i64(Op::Param(ParamId(0)), &[]);
                let first = b.icmp(Cmp::Lt, index, n);
                let i = b.var(Scalar::I64, Some("i".into()));
                b.set(i, index);
                let (from, to) = (b.var(Scalar::I64, None), b.var(Scalar::I64, None));
                b.repeat(|b, done| {
                    let other = if changes { i.into() } else { index };
                    let sides = [(n, other), (other, n)].map(|(one, two)| {
                        [(from, one), (to, two)].map(|(dst, x)| Stmt::Let { dst, op: Op::Copy, args: vec![x] }).to_vec()
                    });
                    let [then, otherwise] = sides;
                    b.push(Stmt::If { cond: first, then, otherwise });
                    b.store(INTS, from.into(), to.into());
                    b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
                    let end = b.icmp(Cmp::Gt, i.into(), n);
                    b.when(end, |b| b.push(Stmt::Break(done)));
                });
            })
        };
        insta::assert_snapshot!(after(&[PASS], program(false)), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = param p0 "n"
          v5: bool = icmp.lt v3, v4
          i.6: i64 = copy v3
          if v5 {
            v7: i64 = copy v4
            v8: i64 = copy v3
          } else {
            v7 = copy v3
            v8 = copy v4
          }
          loop L0 {
            store ints[v7] = v8
            i.6 = add i.6, 1
            v9: bool = icmp.gt i.6, v4
            if v9 {
              break L0
            }
          }
        }
        "#);
        assert_eq!(after(&[PASS], program(true)), after(&[], program(true)));
    }

    #[test]
    fn what_no_path_reaches_stays_in_its_loop() {
        // the innermost block has no break, so the middle block has none either; what stands after the middle block
        // reads registers that an earlier pass has found never to be assigned
        let program = program(|b, index| {
            let never = b.var(Scalar::I64, Some("never".into()));
            b.repeat(|b, done| {
                b.block(|b, outer| {
                    b.block(|b, middle| {
                        b.block(|b, _| {
                            b.store(INTS, index, Operand::I64(1));
                            b.push(Stmt::Break(outer));
                        });
                        b.push(Stmt::Break(middle));
                    });
                    let twice = b.i64(Op::Add, &[never.into(), never.into()]);
                    b.store(INTS, index, twice);
                });
                b.push(Stmt::Break(done));
            });
        });
        assert_eq!(after(&[PASS], program.clone()), after(&[], program));
    }
}
