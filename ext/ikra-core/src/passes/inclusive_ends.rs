//! Inclusive ends: a loop that counts to a last number tests once whether it goes on.
//!
//! `1.upto(n)` must end at `n`, even if no Integer follows it. So lowering tests at the end of each repetition whether
//! the number was the last. Most often some Integer follows, and then the test at the head suffices:
//!
//! ```text
//! loop { break if i > n; body; break if i == n; i += 1 }      becomes
//! end = n + 1; loop { break if i >= end; body; i += 1 }
//! ```
//!
//! The result is the form that all passes over loops know. `a.step(n, by)` has a similar test, which asks whether the
//! distance to `n` is less than `by`. Fires where it is known that the sum of the last number and the step does not
//! overflow, and where nothing reads the counter after the loop.

use super::Pass;
use super::loops::{Counts, assigned_in};
use crate::ir::{Cmp, Column, Func, LabelId, Op, Operand, Param, Program, Scalar, Stmt, Var, VarId, walk};
use std::collections::HashMap;

pub const PASS: Pass = Pass { name: "inclusive_ends", description: "loops to a last number test once", run };

/// How many operations an interval is computed through.
const DEPTH: usize = 8;

fn run(mut program: Program) -> Program {
    for func in &mut program.funcs {
        let counts = Counts::of(func);
        let mut made: HashMap<VarId, Stmt> = HashMap::new();
        let mut reads = vec![0; func.vars.len()];
        walk(&func.body, &mut |stmt| {
            if let [dst] = stmt.assigns()[..]
                && counts.assigned(dst) == 1
            {
                made.insert(dst, shallow(stmt));
            }
            count_reads(stmt, &mut reads);
        });
        let bounds = Bounds { made, params: &program.params, columns: &program.columns };
        let mut body = std::mem::take(&mut func.body);
        list(&mut body, func, &bounds, &reads);
        func.body = body;
    }
    program
}

/// A statement that assigns a register, without the lists in it.
fn shallow(stmt: &Stmt) -> Stmt {
    match stmt {
        Stmt::Let { .. } | Stmt::Load { .. } => stmt.clone(),
        _ => Stmt::Poll,
    }
}

fn count_reads(stmt: &Stmt, reads: &mut [u32]) {
    stmt.reads(|operand| {
        // the pass itself reads the registers that it has made
        if let Operand::Var(v) = operand
            && let Some(count) = reads.get_mut(v.index())
        {
            *count += 1;
        }
    });
}

fn list(body: &mut Vec<Stmt>, func: &mut Func, bounds: &Bounds<'_>, reads: &[u32]) {
    let mut out = Vec::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        for nested in stmt.bodies_mut().into_iter().flatten() {
            list(nested, func, bounds, reads);
        }
        if let Stmt::Loop { label, body } = &mut stmt
            && let Some(end) = Inclusive::of(body, *label, bounds, reads)
        {
            end.settle(body, func, &mut out);
        }
        out.push(stmt);
    }
    *body = out;
}

/// A loop with a test that is not needed.
struct Inclusive {
    /// The place of the branch that leaves the loop at the last number.
    branch: usize,
    last: Operand,
    rising: bool,
}

impl Inclusive {
    fn of(body: &[Stmt], label: LabelId, bounds: &Bounds<'_>, reads: &[u32]) -> Option<Self> {
        let [Stmt::Let { dst: over, op: Op::ICmp(cmp), args }, Stmt::If { cond, then: leaves, otherwise }, rest @ ..] =
            body
        else {
            return None;
        };
        let [Operand::Var(i), last] = args[..] else { return None };
        let rising = match cmp {
            Cmp::Gt => true,
            Cmp::Lt => false,
            _ => return None,
        };
        let heads = *cond == (*over).into() && otherwise.is_empty() && leaves.last() == Some(&Stmt::Break(label));
        let polls = rest.iter().rev().take_while(|stmt| matches!(stmt, Stmt::Poll)).count();
        let counting = body.len().checked_sub(polls + 1)?;
        let Stmt::Let { dst, op: Op::Add, args } = &body[counting] else { return None };
        let step = args[1];
        let branch = counting - 1;
        let Stmt::If { cond: Operand::Var(ends), then, otherwise } = &body[branch] else { return None };
        let alike = heads && otherwise.is_empty() && then == leaves && *dst == i && args[0] == i.into() && branch > 2;
        let mut assigned = 0;
        let mut inside = vec![0; reads.len()];
        walk(body, &mut |stmt| {
            assigned += stmt.assigns().iter().filter(|v| **v == i).count();
            count_reads(stmt, &mut inside);
        });
        let changing = assigned_in(body);
        let same = |operand: Operand| !matches!(operand, Operand::Var(v) if changing.contains(&v));
        let mut by_leaving = vec![0; reads.len()];
        walk(leaves, &mut |stmt| count_reads(stmt, &mut by_leaving));
        // where the loop is left by the other branch, these differ
        let unseen = |v: VarId| inside[v.index()] == reads[v.index()] && by_leaving[v.index()] == 0;
        let private = assigned == 1 && unseen(i) && unseen(*over);
        if !(alike && private && same(last) && same(step)) {
            return None;
        }
        let (least, most) = bounds.of(last, DEPTH)?;
        let (by, most_by) = bounds.of(step, DEPTH)?;
        let tests = tests_last(&body[2..branch], *ends, i, last, step, rising);
        let follows = if rising {
            // a step of 0 never ends, either way
            by >= 0 && most + most_by.max(1) <= i64::MAX.into()
        } else {
            most_by <= -1 && least + by >= i64::MIN.into()
        };
        (tests && follows).then_some(Self { branch, last, rising })
    }

    fn settle(self, body: &mut Vec<Stmt>, func: &mut Func, before: &mut Vec<Stmt>) {
        body.remove(self.branch);
        if !self.rising {
            return;
        }
        let end = VarId::new(func.vars.len());
        func.vars.push(Var { ty: Scalar::I64, name: None });
        before.push(Stmt::Let { dst: end, op: Op::Add, args: vec![self.last, Operand::I64(1)] });
        if let Some(Stmt::Let { op, args, .. }) = body.first_mut() {
            *op = Op::ICmp(Cmp::Ge);
            args[1] = end.into();
        }
    }
}

/// Whether a register tells that no number follows before `last`.
fn tests_last(body: &[Stmt], ends: VarId, i: VarId, last: Operand, step: Operand, rising: bool) -> bool {
    let found = |v: VarId| {
        body.iter().rev().find_map(|stmt| match stmt {
            Stmt::Let { dst, op, args } if *dst == v => Some((*op, &args[..])),
            _ => None,
        })
    };
    match found(ends) {
        Some((Op::ICmp(Cmp::Eq), [a, b])) => {
            let both = (*a, *b) == (i.into(), last) || (*b, *a) == (i.into(), last);
            both && matches!(step, Operand::I64(1 | -1))
        }
        Some((Op::ICmp(Cmp::Lt) | Op::UCmp(Cmp::Lt), [Operand::Var(left), by])) if rising => {
            *by == step && matches!(found(*left), Some((Op::Sub, [a, b])) if (*a, *b) == (last, i.into()))
        }
        _ => false,
    }
}

/// Bounds of registers that are assigned once.
struct Bounds<'a> {
    made: HashMap<VarId, Stmt>,
    params: &'a [Param],
    columns: &'a [Column],
}

impl Bounds<'_> {
    /// The least and the greatest value. None: the whole range of 64 bits.
    fn of(&self, operand: Operand, depth: usize) -> Option<(i128, i128)> {
        let v = match operand {
            Operand::I64(n) => return Some((n.into(), n.into())),
            Operand::Var(v) => v,
            _ => return None,
        };
        let of = |operand: Operand| self.of(operand, depth.checked_sub(1)?);
        let found = match self.made.get(&v)? {
            Stmt::Let { op, args, .. } => match (op, &args[..]) {
                (Op::Param(id), _) => self.params[id.index()].range.map(|(a, b)| (a.into(), b.into())),
                (Op::Copy, [a]) => of(*a),
                (Op::Add, [a, b]) => of(*a).zip(of(*b)).map(|(a, b)| (a.0 + b.0, a.1 + b.1)),
                (Op::Sub, [a, b]) => of(*a).zip(of(*b)).map(|(a, b)| (a.0 - b.1, a.1 - b.0)),
                (Op::Mul, [a, b]) => of(*a).zip(of(*b)).map(|(a, b)| {
                    let all = [a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1];
                    (all.into_iter().min().unwrap_or(0), all.into_iter().max().unwrap_or(0))
                }),
                (Op::Shl, [a, Operand::I64(n @ 0..=62)]) => of(*a).map(|(a, b)| (a << n, b << n)),
                (Op::Select, [_, a, b]) => of(*a).zip(of(*b)).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))),
                (Op::And, [_, Operand::I64(mask @ 0..)]) => Some((0, (*mask).into())),
                (Op::UShr, [_, Operand::I64(n @ 1..=63)]) => Some((0, (u64::MAX >> n).into())),
                (Op::Widen, _) => Some((0, u32::MAX.into())),
                _ => None,
            },
            Stmt::Load { column, .. } => {
                self.columns[column.index()].ranged.map(|range| range.interval()).map(|(a, b)| (a.into(), b.into()))
            }
            _ => None,
        }?;
        // one that wraps may be anything
        (found.0 >= i64::MIN.into() && found.1 <= i64::MAX.into()).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INTS, program};
    use crate::ir::{Cmp, Op, Operand, ParamId, Program, Scalar, Stmt, VarId};
    use crate::passes::dce;
    use crate::passes::testing::after;

    /// `index.upto(n) { ints[i] = i }`, and what follows.
    fn upto(most: i64, then: impl FnOnce(&mut Builder, VarId)) -> Program {
        let mut program = program(|b, index| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let i = b.var(Scalar::I64, Some("i".into()));
            b.set(i, index);
            b.repeat(|b, done| {
                let over = b.icmp(Cmp::Gt, i.into(), n);
                b.when(over, |b| b.push(Stmt::Break(done)));
                b.store(INTS, i.into(), i.into());
                let last = b.icmp(Cmp::Eq, i.into(), n);
                b.when(last, |b| b.push(Stmt::Break(done)));
                b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
                b.push(Stmt::Poll);
            });
            then(b, i);
        });
        program.params[0].range = Some((0, most));
        program
    }

    #[test]
    fn the_head_tests_alone_where_an_integer_follows() {
        insta::assert_snapshot!(after(&[PASS, dce::PASS], upto(i64::MAX - 1, |_, _| {})), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          i.3: i64 = index
          v4: i64 = param p0 "n"
          v5: i64 = add v4, 1
          loop L0 {
            v6: bool = icmp.ge i.3, v5
            if v6 {
              break L0
            }
            store ints[i.3] = i.3
            i.3 = add i.3, 1
            poll
          }
        }
        "#);
    }

    #[test]
    fn both_tests_stay_where_they_differ() {
        // perhaps no Integer follows
        let endless = upto(i64::MAX, |_, _| {});
        // the counter is read afterwards
        let read = upto(100, |b, i| b.store(INTS, Operand::I64(0), i.into()));
        // the least Integer may follow the last one of a loop that goes down
        let down = stepping(i64::MIN, -1, 5);
        // a step that may pass the greatest Integer
        let far = stepping(i64::MAX - 5, 7, 0);
        // a test of another distance
        let other = stepping(100, 7, 5);
        for program in [endless, read, down, far, other] {
            assert_eq!(after(&[PASS], program.clone()), after(&[], program));
        }
    }

    /// `index.step(last, by) { ints[i] = i }`, whose last test is of the step `tested`.
    fn stepping(last: i64, by: i64, tested: i64) -> Program {
        program(|b, index| {
            let i = b.var(Scalar::I64, Some("i".into()));
            b.set(i, index);
            b.repeat(|b, done| {
                let over = b.icmp(if by > 0 { Cmp::Gt } else { Cmp::Lt }, i.into(), Operand::I64(last));
                b.when(over, |b| b.push(Stmt::Break(done)));
                b.store(INTS, i.into(), i.into());
                let left = b.i64(Op::Sub, &[Operand::I64(last), i.into()]);
                let ends = match by {
                    -1 => b.icmp(Cmp::Eq, i.into(), Operand::I64(last)),
                    _ => b.bool(Op::UCmp(Cmp::Lt), &[left, Operand::I64(tested)]),
                };
                b.when(ends, |b| b.push(Stmt::Break(done)));
                b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(by)] });
            });
        })
    }

    #[test]
    fn steps_and_loops_that_go_down_test_once() {
        for (program, head) in [
            (stepping(100, 7, 7), "icmp.ge i.3, v4"),
            (stepping(i64::MAX - 7, 7, 7), "icmp.ge i.3, v4"),
            (stepping(0, -1, 1), "icmp.lt i.3, 0"),
            (stepping(i64::MIN + 1, -1, 1), "icmp.lt i.3, -9223372036854775807"),
        ] {
            let after = after(&[PASS, dce::PASS], program);
            assert!(after.contains(head) && after.matches("break L0").count() == 1, "{after}");
        }
    }
}
