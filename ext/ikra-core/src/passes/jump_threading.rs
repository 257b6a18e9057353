//! Jump threading: `a && b` and `a || b` branch where they are decided. They no longer make a truth value and test it
//! again.
//!
//! Fires where both sides of a branch end by assigning the same register, one of them a constant, and the next
//! statement branches on that register (or on its negation). Nothing else may read the register. The side with the
//! constant goes straight to where the second branch would lead. Code that both sides reach is copied if it is only a
//! jump. Otherwise it stands after a block that contains the other side. The pass saves time and knowledge: in
//! `while i < n && x` the second branch alone says nothing of `i`.

use super::Pass;
use crate::ir::visit::size;
use crate::ir::{Func, LabelId, Op, Operand, Program, Stmt, VarId, walk};

pub const PASS: Pass = Pass { name: "jump_threading", description: "branches on what branches decide become one", run };

/// Statements, at most, that are copied rather than jumped to.
const MAX_COPIED_STATEMENTS: usize = 1;

fn run(mut program: Program) -> Program {
    for func in &mut program.funcs {
        let mut body = std::mem::take(&mut func.body);
        let mut reads = vec![0u32; func.vars.len()];
        walk(&body, &mut |s| {
            s.reads(|o| {
                if let Operand::Var(v) = o {
                    reads[v.index()] += 1;
                }
            });
        });
        list(&mut body, func, &reads);
        func.body = body;
    }
    program
}

fn list(body: &mut Vec<Stmt>, func: &mut Func, reads: &[u32]) {
    for stmt in body.iter_mut() {
        stmt.bodies_mut().into_iter().flatten().for_each(|nested| list(nested, func, reads));
    }
    // From the end: of `a && b && c` the last branch first.
    let mut at = body.len();
    while at > 0 {
        at -= 1;
        let Some((decided, constant, end)) = pair(body, at, reads) else { continue };
        let rest = body.split_off(end);
        let (Some(second), Some(first)) = (body.pop(), body.drain(at..).next()) else { unreachable!("two branches") };
        body.extend(join(first, second, decided, constant, func));
        body.extend(rest);
    }
}

/// For a branch at `at` that decides the next branch: the register between them, the constant that one side assigns,
/// and the index where the second branch ends. Makes the second branch's condition that register itself.
fn pair(body: &mut [Stmt], at: usize, reads: &[u32]) -> Option<(VarId, bool, usize)> {
    let Stmt::If { then, otherwise, .. } = &body[at] else { return None };
    let (decided, constant) = outcome(then, otherwise)?;
    if reads[decided.index()] != 1 {
        return None;
    }
    match &mut body[at + 1..] {
        [Stmt::If { cond: Operand::Var(v), .. }, ..] if *v == decided => Some((decided, constant, at + 2)),
        [Stmt::Let { dst, op: Op::Not, args }, Stmt::If { cond, then, otherwise }, ..]
            if args[0] == Operand::Var(decided) && *cond == Operand::Var(*dst) && reads[dst.index()] == 1 =>
        {
            std::mem::swap(then, otherwise);
            *cond = decided.into();
            Some((decided, constant, at + 3))
        }
        _ => None,
    }
}

/// The register that both sides assign at their ends, and the constant that one of them assigns.
fn outcome(then: &[Stmt], otherwise: &[Stmt]) -> Option<(VarId, bool)> {
    let (a, b) = (then.last()?, otherwise.last()?);
    let constant = |stmt: &Stmt| match stmt {
        Stmt::Let { op: Op::Copy, args, .. } => match args[..] {
            [Operand::Bool(value)] => Some(value),
            _ => None,
        },
        _ => None,
    };
    match (a.assigns(), b.assigns()) {
        ([v], [w]) if v == w => Some((*v, constant(a).or_else(|| constant(b))?)),
        _ => None,
    }
}

/// The statements that replace a branch and the one that it decides.
fn join(first: Stmt, second: Stmt, decided: VarId, constant: bool, func: &mut Func) -> Vec<Stmt> {
    let (Stmt::If { cond, mut then, mut otherwise }, Stmt::If { then: taken, otherwise: not_taken, .. }) =
        (first, second)
    else {
        unreachable!("two branches")
    };
    let settled = Stmt::Let { dst: decided, op: Op::Copy, args: vec![Operand::Bool(constant)] };
    let then_settles = then.last() == Some(&settled);
    let (settles, decides) = if then_settles { (&mut then, &mut otherwise) } else { (&mut otherwise, &mut then) };
    settles.pop();
    let shared = if constant { &taken } else { &not_taken };
    if size(shared) <= MAX_COPIED_STATEMENTS {
        settles.extend(shared.iter().cloned());
        decides.push(Stmt::If { cond: decided.into(), then: taken, otherwise: not_taken });
        return vec![Stmt::If { cond, then, otherwise }];
    }
    let label = LabelId::new(func.labels);
    func.labels += 1;
    let leave = |mut list: Vec<Stmt>| {
        if !list.last().is_some_and(Stmt::ends_list) {
            list.push(Stmt::Break(label));
        }
        list
    };
    let shared = if constant {
        decides.push(Stmt::If { cond: decided.into(), then: Vec::new(), otherwise: leave(not_taken) });
        taken
    } else {
        decides.push(Stmt::If { cond: decided.into(), then: leave(taken), otherwise: Vec::new() });
        not_taken
    };
    let mut body = vec![Stmt::If { cond, then, otherwise }];
    body.extend(shared);
    vec![Stmt::Block { label, body }]
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, INTS, program};
    use crate::ir::{Cmp, Op, Operand, Scalar, Stmt, VarId};
    use crate::passes::testing::after;

    fn check(body: impl FnOnce(&mut Builder, Operand)) -> String {
        after(&[PASS], program(body))
    }

    fn test(b: &mut Builder, row: i64) -> Operand {
        let x = b.load(Scalar::I64, INPUT, Operand::I64(row));
        b.icmp(Cmp::Eq, x, Operand::I64(0))
    }

    /// `test(row) && test(row + 1)`
    fn both(b: &mut Builder, row: i64) -> VarId {
        let v = b.temp(Scalar::Bool);
        let first = test(b, row);
        b.branch(
            first,
            |b| {
                let second = test(b, row + 1);
                b.set(v, second);
            },
            |b| b.set(v, Operand::Bool(false)),
        );
        v
    }

    #[test]
    fn a_loop_leaves_where_it_is_decided() {
        insta::assert_snapshot!(check(|b, index| {
            b.repeat(|b, label| {
                let v = both(b, 0);
                let over = b.bool(Op::Not, &[v.into()]);
                b.when(over, |b| b.push(Stmt::Break(label)));
                b.store(INTS, index, Operand::I64(1));
            });
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          loop L0 {
            v5: i64 = load in[0]
            v6: bool = icmp.eq v5, 0
            if v6 {
              v7: i64 = load in[1]
              v8: bool = icmp.eq v7, 0
              v4: bool = copy v8
              if v4 {
              } else {
                break L0
              }
            } else {
              break L0
            }
            store ints[v3] = 1
          }
        }
        "#);
    }

    #[test]
    fn what_both_reach_is_not_copied() {
        insta::assert_snapshot!(check(|b, index| {
            let v = both(b, 0);
            b.branch(
                v.into(),
                |b| b.store(INTS, index, Operand::I64(1)),
                |b| {
                    b.store(INTS, index, Operand::I64(2));
                    b.store(INTS, index, Operand::I64(3));
                },
            );
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v5: i64 = load in[0]
          v6: bool = icmp.eq v5, 0
          block L0 {
            if v6 {
              v7: i64 = load in[1]
              v8: bool = icmp.eq v7, 0
              v4: bool = copy v8
              if v4 {
                store ints[v3] = 1
                break L0
              }
            }
            store ints[v3] = 2
            store ints[v3] = 3
          }
        }
        "#);
    }

    #[test]
    fn either_of_two() {
        insta::assert_snapshot!(check(|b, index| {
            let v = b.temp(Scalar::Bool);
            let first = test(b, 0);
            b.branch(
                first,
                |b| b.set(v, Operand::Bool(true)),
                |b| {
                    let second = test(b, 1);
                    b.set(v, second);
                },
            );
            b.when(v.into(), |b| {
                b.store(INTS, index, Operand::I64(1));
                b.store(INTS, index, Operand::I64(2));
            });
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v5: i64 = load in[0]
          v6: bool = icmp.eq v5, 0
          block L0 {
            if v6 {
            } else {
              v7: i64 = load in[1]
              v8: bool = icmp.eq v7, 0
              v4: bool = copy v8
              if v4 {
              } else {
                break L0
              }
            }
            store ints[v3] = 1
            store ints[v3] = 2
          }
        }
        "#);
    }

    #[test]
    fn a_value_that_is_read_again_stays() {
        let text = check(|b, index| {
            let v = both(b, 0);
            b.when(v.into(), |b| b.store(INTS, index, Operand::I64(1)));
            let n = b.i64(Op::BoolToInt, &[v.into()]);
            b.store(INTS, index, n);
        });
        assert!(text.contains("copy false"), "{text}");
    }
}
