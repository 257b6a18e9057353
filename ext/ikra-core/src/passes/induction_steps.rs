//! Steps of induction variables: how far one repetition of a loop moves a register to which it only adds constants.
//!
//! Here: the least and the greatest sum that one repetition may add. [`super::polls`] knows how often a loop repeats.
//! [`super::ranges`] asks both modules. It then bounds what a loop counts beside its counter: `count += 1 if …` needs
//! no check for overflow. Neither does `count += … ? 1 : 0`, which adds one of several constants.

use super::loops::assigned_in;
use crate::ir::{CheckedOp, Op, Operand, Stmt, VarId};

/// The most that one repetition takes away from the register, and the most that it adds. None: the loop assigns the
/// register otherwise, or in an inner loop.
pub fn of(body: &[Stmt], var: VarId) -> Option<(i128, i128)> {
    let mut tally = Tally { var, moved: Vec::new(), chosen: Vec::new(), down: 0, up: 0 };
    tally.list(body)?;
    Some((tally.down, tally.up))
}

/// The least and the greatest of some constants.
type Steps = (i64, i64);

struct Tally {
    var: VarId,
    /// Registers that hold what the register held earlier in this repetition plus a constant, with that constant.
    moved: Vec<(VarId, Steps)>,
    /// Registers to which this repetition assigned one of several constants.
    chosen: Vec<(VarId, Steps)>,
    down: i128,
    up: i128,
}

impl Tally {
    fn list(&mut self, body: &[Stmt]) -> Option<()> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn constant(&self, operand: Operand) -> Option<Steps> {
        match operand {
            Operand::I64(value) => Some((value, value)),
            Operand::Var(var) => self.chosen.iter().find(|(v, _)| *v == var).map(|(_, steps)| *steps),
            _ => None,
        }
    }

    /// The constants that a statement chooses from.
    fn choice(&self, stmt: &Stmt) -> Option<Steps> {
        match stmt {
            Stmt::Let { op: Op::Copy, args, .. } => self.constant(args[0]),
            Stmt::Let { op: Op::Select, args, .. } => {
                let (a, b) = (self.constant(args[1])?, self.constant(args[2])?);
                Some((a.0.min(b.0), a.1.max(b.1)))
            }
            Stmt::Let { op: Op::BoolToInt, .. } => Some((0, 1)),
            _ => None,
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<()> {
        let step = |op, args: [Operand; 2]| {
            let (low, high) = self.constant(args[1]).filter(|_| args[0] == self.var.into())?;
            match op {
                Op::Add => Some((low, high)),
                Op::Sub => Some((high.checked_neg()?, low.checked_neg()?)),
                _ => None,
            }
        };
        let by = match stmt {
            Stmt::Let { op: Op::Copy, args, .. } => {
                self.moved.iter().find(|(v, _)| args[0] == (*v).into()).map(|m| m.1)
            }
            Stmt::Let { op: op @ (Op::Add | Op::Sub), args, .. } => step(*op, [args[0], args[1]]),
            Stmt::Checked { op: CheckedOp::Add, args, .. } => step(Op::Add, *args),
            Stmt::Checked { op: CheckedOp::Sub, args, .. } => step(Op::Sub, *args),
            Stmt::If { then, otherwise, .. } => {
                let (moved, chosen) = (self.moved.clone(), self.chosen.clone());
                self.list(then)?;
                let after = std::mem::replace(&mut self.chosen, chosen);
                self.moved.clone_from(&moved);
                self.list(otherwise)?;
                self.moved = moved;
                let leaves = |side: &[Stmt]| side.last().is_some_and(Stmt::ends_list);
                match (leaves(then), leaves(otherwise)) {
                    (true, _) => {}
                    (_, true) => self.chosen = after,
                    (false, false) => {
                        self.chosen.retain_mut(|(v, steps)| {
                            let other = after.iter().find(|(w, _)| v == w).map(|(_, steps)| *steps);
                            let Some((low, high)) = other else { return false };
                            *steps = (steps.0.min(low), steps.1.max(high));
                            true
                        });
                    }
                }
                // what one side of a branch computed of the register is unknown on other paths
                let assigned = assigned_in(&stmt.bodies().concat());
                self.moved.retain(|(v, _)| !assigned.contains(v));
                return Some(());
            }
            Stmt::Block { body, .. } => {
                let moved = self.moved.clone();
                self.list(body)?;
                self.moved = moved;
                self.forget(body);
                return Some(());
            }
            Stmt::Loop { body, .. } | Stmt::Try { body, .. } => {
                self.forget(body);
                return (!assigned_in(body).contains(&self.var)).then_some(());
            }
            _ => None,
        };
        let choice = self.choice(stmt);
        for dst in stmt.assigns() {
            self.moved.retain(|(v, _)| v != dst);
            self.chosen.retain(|(v, _)| v != dst);
            match by {
                Some((low, high)) if *dst == self.var => {
                    self.down += i128::from(low.min(0));
                    self.up += i128::from(high.max(0));
                }
                Some(by) => self.moved.push((*dst, by)),
                None if *dst == self.var => return None,
                None => self.chosen.extend(choice.map(|choice| (*dst, choice))),
            }
        }
        Some(())
    }

    fn forget(&mut self, body: &[Stmt]) {
        let assigned = assigned_in(body);
        self.moved.retain(|(v, _)| !assigned.contains(v));
        self.chosen.retain(|(v, _)| !assigned.contains(v));
    }
}
