//! Steps of induction variables: how far one repetition of a loop moves a register to which it only adds constants.
//!
//! Here: the least and the greatest sum that one repetition may add. [`super::polls`] knows how often a loop repeats.
//! [`super::ranges`] asks both modules. It then bounds what a loop counts beside its counter: `count += 1 if …` needs
//! no check for overflow.

use super::loops::assigned_in;
use crate::ir::{CheckedOp, Op, Operand, Stmt, VarId};

/// The most that one repetition takes away from the register, and the most that it adds. None: the loop assigns the
/// register otherwise, or in an inner loop.
pub fn of(body: &[Stmt], var: VarId) -> Option<(i128, i128)> {
    let mut tally = Tally { var, moved: Vec::new(), down: 0, up: 0 };
    tally.list(body)?;
    Some((tally.down, tally.up))
}

struct Tally {
    var: VarId,
    /// Registers that hold what the register held earlier in this repetition plus a constant, with that constant.
    moved: Vec<(VarId, i64)>,
    down: i128,
    up: i128,
}

impl Tally {
    fn list(&mut self, body: &[Stmt]) -> Option<()> {
        body.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<()> {
        let step = |op, args: [Operand; 2]| match (op, args) {
            (Op::Add, [Operand::Var(from), Operand::I64(by)]) if from == self.var => Some(by),
            (Op::Sub, [Operand::Var(from), Operand::I64(by)]) if from == self.var => by.checked_neg(),
            _ => None,
        };
        let by = match stmt {
            Stmt::Let { op: Op::Copy, args, .. } => {
                self.moved.iter().find(|(v, _)| args[0] == (*v).into()).map(|m| m.1)
            }
            Stmt::Let { op: op @ (Op::Add | Op::Sub), args, .. } => step(*op, [args[0], args[1]]),
            Stmt::Checked { op: CheckedOp::Add, args, .. } => step(Op::Add, *args),
            Stmt::Checked { op: CheckedOp::Sub, args, .. } => step(Op::Sub, *args),
            Stmt::If { .. } | Stmt::Block { .. } => {
                // what one side of a branch computed is unknown on other paths
                let moved = self.moved.clone();
                for body in stmt.bodies() {
                    self.list(body)?;
                    self.moved.clone_from(&moved);
                }
                self.forget(&stmt.bodies().concat());
                return Some(());
            }
            Stmt::Loop { body, .. } | Stmt::Try { body, .. } => {
                self.forget(body);
                return (!assigned_in(body).contains(&self.var)).then_some(());
            }
            _ => None,
        };
        for dst in stmt.assigns() {
            self.moved.retain(|(v, _)| v != dst);
            match by {
                Some(by) if *dst == self.var => {
                    self.down += i128::from(by.min(0));
                    self.up += i128::from(by.max(0));
                }
                Some(by) => self.moved.push((*dst, by)),
                None if *dst == self.var => return None,
                None => {}
            }
        }
        Some(())
    }

    fn forget(&mut self, body: &[Stmt]) {
        let assigned = assigned_in(body);
        self.moved.retain(|(v, _)| !assigned.contains(v));
    }
}
