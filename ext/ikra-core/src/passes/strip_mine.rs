//! Strip mining: a counting loop runs in strips, and polls between them whether the launch was stopped.
//!
//! A poll in each repetition costs as much as a short body, and compilers do not unroll a loop with two exits. So
//! `loop { body; i += 1; poll; break if i >= n }` becomes a loop over strips. A strip has at most [`STRIP`]
//! repetitions, none of which polls:
//!
//! ```text
//! loop { stop = min(i + STRIP, n); loop { body; i += 1; break if i >= stop }; poll; break if i >= n }
//! ```
//!
//! The repetitions are the same whatever `i` and `n` are, since `stop` is never beyond `n`. Where `i + STRIP` wraps,
//! strips are shorter.
//!
//! A body may begin with checks of `i` against values that do not change. The pass makes these checks at the head of a
//! strip, for all of its repetitions. A strip ends before the first repetition that would fail them. The next strip
//! then raises what that repetition would have raised, before the repetition does anything.
//!
//! ```text
//! loop {
//!   trap if i >= m; stop = min(i + STRIP, n, m)
//!   loop { body; i += 1; break if i >= stop }
//!   poll; break if i >= n
//! }
//! ```
//!
//! Fires for innermost loops with the test at the end ([`super::rotate`]), where a strip is short. Not here: loops that
//! end soon ([`super::ranges`]), which do not poll at all.

use super::Pass;
use super::loops::{Counting, Counts, assigned_in, is_movable};
use crate::ir::visit::size;
use crate::ir::{Cmp, Func, LabelId, Op, Operand, Program, Scalar, Stmt, Var, VarId};

pub const PASS: Pass = Pass { name: "strip_mine", description: "loops that count ask from time to time", run };

/// Repetitions of a strip. Only about every 1024th poll asks the launch, so the launch is asked about every 2¹⁷
/// repetitions.
const STRIP: i64 = 128;
/// The most statements of a body.
const BODY: usize = 100;

fn run(mut program: Program) -> Program {
    for func in &mut program.funcs {
        let counts = Counts::of(func);
        let mut body = std::mem::take(&mut func.body);
        list(func, &counts, &mut body);
        func.body = body;
    }
    program
}

fn list(func: &mut Func, counts: &Counts, body: &mut [Stmt]) {
    for stmt in body {
        let short = |(count, repeated): (Counting, &[Stmt])| (size(repeated) <= BODY).then_some(count);
        match Counting::of(stmt, true).and_then(short) {
            Some(count) => strip(func, counts, stmt, count),
            None => stmt.bodies_mut().into_iter().flatten().for_each(|body| list(func, counts, body)),
        }
    }
}

fn strip(func: &mut Func, counts: &Counts, stmt: &mut Stmt, Counting { i, step, end }: Counting) {
    let Stmt::Loop { body, .. } = stmt else { return };
    // The last four statements: counting, polling, the test and the exit.
    let mut tail = body.split_off(body.len() - 4);
    let Checks { head, limits } = checks(counts, body, i);
    let mut new = |ty| {
        func.vars.push(Var { ty, name: None });
        VarId::new(func.vars.len() - 1)
    };
    let (ahead, beyond, first, over) = (new(Scalar::I64), new(Scalar::Bool), new(Scalar::I64), new(Scalar::Bool));
    let (mut shorter, mut stops) = (Vec::new(), vec![first]);
    for _ in &limits {
        shorter.push(new(Scalar::Bool));
        stops.push(new(Scalar::I64));
    }
    let stop = stops[limits.len()];
    let inner = LabelId::new(func.labels);
    func.labels += 1;
    let counting = tail.remove(0);
    let mut repeated = std::mem::take(body);
    repeated.extend([
        counting,
        Stmt::Let { dst: over, op: Op::ICmp(Cmp::Ge), args: vec![i.into(), stop.into()] },
        Stmt::If { cond: over.into(), then: vec![Stmt::Break(inner)], otherwise: Vec::new() },
    ]);
    *body = head;
    body.extend([
        Stmt::Let { dst: ahead, op: Op::Add, args: vec![i.into(), Operand::I64(STRIP * step)] },
        Stmt::Let { dst: beyond, op: Op::ICmp(Cmp::Gt), args: vec![end, ahead.into()] },
        Stmt::Let { dst: first, op: Op::Select, args: vec![beyond.into(), ahead.into(), end] },
    ]);
    for ((limit, less), stop) in limits.into_iter().zip(shorter).zip(stops.windows(2)) {
        body.extend([
            Stmt::Let { dst: less, op: Op::ICmp(Cmp::Lt), args: vec![limit, stop[0].into()] },
            Stmt::Let { dst: stop[1], op: Op::Select, args: vec![less.into(), limit, stop[0].into()] },
        ]);
    }
    body.push(Stmt::Loop { label: inner, body: repeated });
    body.append(&mut tail);
}

/// The checks at the head of a strip, and the limits below which the count must stay for them to hold in all of it.
#[derive(Default)]
struct Checks {
    head: Vec<Stmt>,
    limits: Vec<Operand>,
}

/// Takes the checks at the start of a body out of it. `counts`: those of the function that contains the body.
fn checks(counts: &Counts, body: &mut Vec<Stmt>, i: VarId) -> Checks {
    let mut varies = assigned_in(body);
    let mut checks = Checks::default();
    // comparisons of the count with operands that do not change
    let mut asked: Vec<(VarId, Operand)> = Vec::new();
    let mut rest = Vec::with_capacity(body.len());
    let mut left = std::mem::take(body).into_iter();
    for stmt in left.by_ref() {
        let same = |o: &Operand| !matches!(o, Operand::Var(v) if *v == i || varies.contains(v));
        match &stmt {
            Stmt::Let { dst, op, args } if is_movable(*op) && counts.assigned(*dst) == 1 => match (op, &args[..]) {
                _ if args.iter().all(same) => {
                    varies.remove(dst);
                    checks.head.push(stmt);
                }
                (Op::ICmp(Cmp::Ge), [Operand::Var(count), limit]) if *count == i && same(limit) => {
                    asked.push((*dst, *limit));
                    rest.push(stmt);
                }
                _ => rest.push(stmt),
            },
            Stmt::Let { .. } | Stmt::Load { .. } => rest.push(stmt),
            Stmt::If { cond, then, otherwise } if is_check(then, otherwise, |o| same(o) || *o == i.into()) => {
                match asked.iter().find(|(answer, _)| *cond == (*answer).into()) {
                    Some((answer, limit)) => {
                        let at = rest.iter().position(|s| s.assigns() == [*answer]);
                        checks.head.extend(at.map(|at| rest.remove(at)));
                        checks.limits.push(*limit);
                        checks.head.push(stmt);
                    }
                    None if same(cond) => checks.head.push(stmt),
                    None => {
                        rest.push(stmt);
                        break;
                    }
                }
            }
            _ => {
                rest.push(stmt);
                break;
            }
        }
    }
    rest.extend(left);
    *body = rest;
    checks
}

/// Whether a branch only raises, on a condition that is known at the head of a strip.
fn is_check(then: &[Stmt], otherwise: &[Stmt], known: impl Fn(&Operand) -> bool) -> bool {
    matches!(then, [Stmt::Trap { operands, .. }] if operands.iter().all(known)) && otherwise.is_empty()
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::testing::{DOMAIN, INTS, OUT, ZERO, program, turned};
    use crate::ir::{Cmp, Op, Operand, ParamId, Program, Scalar, Stmt};
    use crate::passes::testing::after;

    /// `begin; ints[index] = i; break if i == 7; i += step; end while i < n`
    fn counting(step: i64, changes_end: bool) -> Program {
        program(|b, index| {
            let end = b.i64(Op::Param(ParamId(0)), &[]);
            let n = b.var(Scalar::I64, Some("n".into()));
            b.set(n, end);
            let i = b.var(Scalar::I64, Some("i".into()));
            b.set(i, index);
            turned(b, (i, step, n.into()), true, |b, done| {
                b.store(INTS, index, i.into());
                let found = b.icmp(Cmp::Eq, i.into(), Operand::I64(7));
                b.when(found, |b| b.push(Stmt::Break(done)));
                if changes_end {
                    b.set(n, i.into());
                }
            });
        })
    }

    #[test]
    fn a_loop_that_counts_polls_between_strips() {
        insta::assert_snapshot!(after(&[PASS], counting(1, false)), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = param p0 "n"
          n.5: i64 = copy v4
          i.6: i64 = copy v3
          loop L0 {
            v9: i64 = add i.6, 128
            v10: bool = icmp.gt n.5, v9
            v11: i64 = select v10, v9, n.5
            loop L1 {
              store ints[v3] = i.6
              v7: bool = icmp.eq i.6, 7
              if v7 {
                break L0
              }
              i.6 = add i.6, 1
              v12: bool = icmp.ge i.6, v11
              if v12 {
                break L1
              }
            }
            poll
            v8: bool = icmp.ge i.6, n.5
            if v8 {
              break L0
            }
          }
        }
        "#);
    }

    #[test]
    fn checks_of_the_count_are_made_once_for_a_strip() {
        let program = program(|b, index| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let i = b.var(Scalar::I64, Some("i".into()));
            b.set(i, Operand::I64(0));
            turned(b, (i, 1, n), true, |b, _| {
                let outside = b.icmp(Cmp::Ge, i.into(), index);
                b.trap_if(outside, DOMAIN, vec![i.into()]);
                let x = b.load(Scalar::F64, OUT, i.into());
                // a check of operands that do not change
                let wrong = b.icmp(Cmp::Lt, n, index);
                b.trap_if(wrong, ZERO, Vec::new());
                // a check after a store stays after it
                b.store(OUT, index, x);
                let late = b.icmp(Cmp::Ge, i.into(), Operand::I64(1000));
                b.trap_if(late, ZERO, Vec::new());
            });
        });
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = param p0 "n"
          i.5: i64 = copy 0
          loop L0 {
            v6: bool = icmp.ge i.5, v3
            if v6 {
              trap s1 i.5
            }
            v8: bool = icmp.lt v4, v3
            if v8 {
              trap s3
            }
            v11: i64 = add i.5, 128
            v12: bool = icmp.gt v4, v11
            v13: i64 = select v12, v11, v4
            v15: bool = icmp.lt v3, v13
            v16: i64 = select v15, v3, v13
            loop L1 {
              v7: f64 = load out[i.5]
              store out[v3] = v7
              v9: bool = icmp.ge i.5, 1000
              if v9 {
                trap s3
              }
              i.5 = add i.5, 1
              v14: bool = icmp.ge i.5, v16
              if v14 {
                break L1
              }
            }
            poll
            v10: bool = icmp.ge i.5, v4
            if v10 {
              break L0
            }
          }
        }
        "#);
    }

    #[test]
    fn an_end_that_moves_is_looked_at_each_time() {
        for program in [counting(1, true), counting(-1, false)] {
            assert_eq!(after(&[PASS], program.clone()), after(&[], program));
        }
    }
}
