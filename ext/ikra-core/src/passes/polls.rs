//! Decides which loops end soon, and so need not poll whether the launch was stopped.
//!
//! Here: how often a loop can repeat, from the range of a counter in it. [`super::ranges`], which knows the ranges,
//! calls this. And [`STOP_CHECKS`], which removes the same question where jobs begin.

use super::{Pass, Versioned};
use crate::ir::visit::walk_mut;
use crate::ir::{CheckedOp, Op, Operand, Program, Stmt, VarId};

pub const STOP_CHECKS: Pass<Versioned> = Pass {
    name: "stop_checks",
    description: "jobs of a program that surely ends do not ask whether to stop",
    run: |state| Versioned { program: unwatched(state.program), ..state },
};

/// The most repetitions of a loop that does not poll, inner loops included.
pub const MAX_REPETITIONS_UNPOLLED: u64 = 1 << 16;

/// The greatest number of times that a loop with this body repeats, if one of its registers counts. Such a register is
/// assigned once in the loop, on every repetition, to a constant more (or less) than before. `range` bounds it at the
/// head of the loop.
pub fn repetitions(body: &[Stmt], range: impl Fn(VarId) -> Option<(i64, i64)>) -> Option<u64> {
    let counts = |stmt: &Stmt| {
        let (dst, step) = match stmt {
            Stmt::Let { dst, op: Op::Add | Op::Sub, args } => (*dst, step(*dst, [args[0], args[1]])?),
            Stmt::Checked { dst, op: CheckedOp::Add | CheckedOp::Sub, args, .. } => (*dst, step(*dst, *args)?),
            _ => return None,
        };
        let (lo, hi) = range(dst)?;
        let once = assignments(body, dst) == 1;
        once.then_some((hi.abs_diff(lo) / step).saturating_add(1))
    };
    body.iter().filter_map(counts).min()
}

fn step(dst: VarId, args: [Operand; 2]) -> Option<u64> {
    match args {
        [Operand::Var(v), Operand::I64(step)] if v == dst && step != 0 => Some(step.unsigned_abs()),
        _ => None,
    }
}

fn assignments(body: &[Stmt], var: VarId) -> usize {
    body.iter()
        .map(|s| {
            let here = usize::from(s.assigns().contains(&var));
            here + s.bodies().iter().map(|b| assignments(b, var)).sum::<usize>()
        })
        .sum()
}

/// Removes the checks of jobs whether they are still needed, if the program surely ends: nothing stops its launches,
/// and none has a limit. Each check is a branch before an element's loads, so the loads of several elements could not
/// overlap. The host splits fused ticks into short launches.
fn unwatched(mut program: Program) -> Program {
    if program.each_tick_surely_ends() {
        for func in &mut program.funcs {
            walk_mut(&mut func.body, &mut |stmt| {
                if let Stmt::Begin { check, .. } = stmt {
                    *check = false;
                }
            });
        }
    }
    program
}

/// Removes the polls of a loop; those of loops inside it stay, if they have any.
pub fn remove(body: &mut Vec<Stmt>) {
    body.retain(|s| *s != Stmt::Poll);
    for stmt in body.iter_mut().filter(|s| !matches!(s, Stmt::Loop { .. })) {
        stmt.bodies_mut().into_iter().flatten().for_each(remove);
    }
}
