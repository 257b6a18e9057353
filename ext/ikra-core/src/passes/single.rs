//! Removes the loop over ticks where each tick is a launch of its own.
//!
//! Lowering makes the loop before it knows whether ticks can be fused. Where they cannot, the loop runs once. Without
//! this pass, later passes would move code before the loop and keep values in registers, which gains nothing with one
//! tick.

use super::Pass;
use super::loops::{assigned_in, is_read};
use crate::ir::{Cmp, Op, Operand, Program, Stmt, VarId};

pub const PASS: Pass = Pass { name: "single", description: "no loop over one tick", run };

fn run(mut program: Program) -> Program {
    if program.fused_ticks {
        return program;
    }
    let entry = &mut program.funcs[program.entry.index()];
    if let [_, first, last] = entry.params[..] {
        list(&mut entry.body, first, last);
    }
    program
}

fn list(body: &mut [Stmt], first: VarId, last: VarId) {
    for at in 1..body.len() {
        let (before, from) = body.split_at_mut(at);
        let [stmt, after @ ..] = from else { return };
        if let (Some(Stmt::Let { dst: tick, op: Op::Copy, args }), Stmt::Loop { label, body }) = (before.last(), &*stmt)
            && args[..] == [first.into()]
            && !is_read(after, *tick)
            && let Some(once) = once(body, *tick, last, *label)
        {
            *stmt = Stmt::Block { label: *label, body: once };
            return;
        }
    }
}

/// The body of one tick, if the loop goes over the ticks.
fn once(body: &[Stmt], tick: VarId, last: VarId, label: crate::ir::LabelId) -> Option<Vec<Stmt>> {
    let [
        Stmt::Let { dst: over, op: Op::ICmp(Cmp::Ge), args: compared },
        Stmt::If { cond, then, otherwise },
        inner @ ..,
        Stmt::Let { dst: next, op: Op::Add, args },
    ] = body
    else {
        return None;
    };
    let goes = *cond == Operand::Var(*over)
        && compared[..] == [tick.into(), last.into()]
        && then[..] == [Stmt::Break(label)]
        && otherwise.is_empty()
        && *next == tick
        && args[..] == [tick.into(), Operand::I64(1)];
    (goes && !assigned_in(inner).contains(&tick)).then(|| inner.to_vec())
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::testing::{INTS, program};
    use crate::ir::{Cmp, Op, Operand, Program, Scalar, Stmt, VarId};
    use crate::passes::testing::after;

    fn over_ticks() -> Program {
        program(|b, index| {
            let tick = b.var(Scalar::I64, Some("tick".into()));
            b.set(tick, VarId(1).into());
            b.repeat(|b, done| {
                let over = b.icmp(Cmp::Ge, tick.into(), VarId(2).into());
                b.when(over, |b| b.push(Stmt::Break(done)));
                b.push(Stmt::Begin { index, tick: tick.into(), check: false });
                b.store(INTS, index, tick.into());
                b.push(Stmt::Let { dst: tick, op: Op::Add, args: vec![tick.into(), Operand::I64(1)] });
            });
        })
    }

    #[test]
    fn a_tick_of_its_own_is_no_loop() {
        insta::assert_snapshot!(after(&[PASS], over_ticks()), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          tick.4: i64 = copy first.1
          block L0 {
            begin v3, tick.4
            store ints[v3] = tick.4
          }
        }
        "#);
    }

    #[test]
    fn ticks_in_one_launch_are_a_loop() {
        let program = Program { fused_ticks: true, ..over_ticks() };
        assert_eq!(after(&[PASS], program.clone()), after(&[], program));
    }
}
