//! What registers hold in the repetitions of a loop: a value that is the same in all of them, or one that changes by
//! the same amount from each to the next.
//!
//! Here: [`Values`], which follows the pure statements of a body. Not here: what the loop does with them.

use crate::ir::{CheckedOp, Cmp, Func, Op, Operand, Scalar, Stmt, VarId};
use crate::passes::loops::is_movable;
use std::collections::HashMap;

/// A value that follows from registers in front of the loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A constant, or a register that the loop does not assign.
    Given(Operand),
    /// The result of an operation.
    Made(usize),
}

/// An operation on such values.
struct Made {
    op: Op,
    args: Vec<Value>,
    ty: Scalar,
    /// How much the result grows from one repetition to the next.
    step: i64,
    /// Its value in the first repetition, once code computes it.
    first: Option<Operand>,
}

/// The values of registers at one place of a loop's body.
#[derive(Default)]
pub struct Values {
    made: Vec<Made>,
    /// The registers that the body assigns. None: the value is not known.
    known: HashMap<VarId, Option<Value>>,
    /// Registers that say whether a value is negative.
    negative: HashMap<VarId, Value>,
    /// Values that change and are assumed never to be negative: indices of arrays, which would count from the end.
    pub assumed: Vec<Value>,
}

impl Values {
    /// At the begin of a body that assigns each of the registers.
    pub fn new(assigned: impl IntoIterator<Item = VarId>) -> Self {
        Self { known: assigned.into_iter().map(|v| (v, None)).collect(), ..Self::default() }
    }

    /// The register grows by `step` in each repetition, at one place of it.
    pub fn counts(&mut self, v: VarId, step: i64) {
        let made =
            Made { op: Op::Copy, args: vec![Value::Given(v.into())], ty: Scalar::I64, step, first: Some(v.into()) };
        self.made.push(made);
        self.known.insert(v, Some(Value::Made(self.made.len() - 1)));
    }

    pub fn of(&self, operand: Operand) -> Option<Value> {
        match operand {
            Operand::Var(v) => self.known.get(&v).copied().unwrap_or(Some(Value::Given(operand))),
            _ => Some(Value::Given(operand)),
        }
    }

    /// Follows an assignment.
    pub fn assign(&mut self, func: &Func, dst: VarId, op: Op, args: &[Operand]) {
        let ty = func.ty(dst.into());
        match (op, args) {
            (Op::ICmp(Cmp::Lt), [index, Operand::I64(0)]) => {
                if let Some(index) = self.of(*index).filter(|index| self.step(*index) != 0) {
                    self.negative.insert(dst, index);
                }
            }
            (Op::Select, [Operand::Var(cond), _, index]) => {
                let index = self.of(*index);
                if let Some(index) = index.filter(|_| self.negative.get(cond).copied() == index) {
                    if !self.assumed.contains(&index) {
                        self.assumed.push(index);
                    }
                    self.known.insert(dst, Some(index));
                    return;
                }
            }
            _ => {}
        }
        let args: Option<Vec<Value>> = args.iter().map(|arg| self.of(*arg)).collect();
        let found = args.and_then(|args| Some((self.step_of(op, ty, &args)?, args)));
        let value = found.map(|(step, args)| {
            self.made.push(Made { op, args, ty, step, first: None });
            Value::Made(self.made.len() - 1)
        });
        self.known.insert(dst, value);
    }

    /// How much a value grows from one repetition to the next.
    pub fn step(&self, value: Value) -> i64 {
        match value {
            Value::Given(_) => 0,
            Value::Made(number) => self.made[number].step,
        }
    }

    fn step_of(&self, op: Op, ty: Scalar, args: &[Value]) -> Option<i64> {
        let steps: Vec<i64> = args.iter().map(|arg| self.step(*arg)).collect();
        if steps.iter().all(|step| *step == 0) {
            return (holds_anywhere(op, args) && !matches!(op, Op::Ctx(_))).then_some(0);
        }
        if ty != Scalar::I64 {
            return None;
        }
        match (op, args) {
            (Op::Copy, _) => Some(steps[0]),
            (Op::Add, _) => steps[0].checked_add(steps[1]),
            (Op::Sub, _) => steps[0].checked_sub(steps[1]),
            (Op::Mul, [_, Value::Given(Operand::I64(by))]) => steps[0].checked_mul(*by),
            (Op::Mul, [Value::Given(Operand::I64(by)), _]) => steps[1].checked_mul(*by),
            (Op::Shl, [_, Value::Given(Operand::I64(by @ 0..=31))]) => steps[0].checked_mul(1 << by),
            _ => None,
        }
    }

    /// The values and the constant of which the value is the sum.
    pub fn sum(&self, value: Value) -> (Vec<Value>, i64) {
        let Value::Made(number) = value else {
            return match value {
                Value::Given(Operand::I64(constant)) => (Vec::new(), constant),
                other => (vec![other], 0),
            };
        };
        let Made { op, args, step, .. } = &self.made[number];
        match (op, &args[..]) {
            (Op::Add, [a, b]) => {
                let ((mut all, one), (more, other)) = (self.sum(*a), self.sum(*b));
                all.extend(more);
                (all, one.wrapping_add(other))
            }
            (Op::Sub, [a, Value::Given(Operand::I64(by))]) => {
                let (all, constant) = self.sum(*a);
                (all, constant.wrapping_sub(*by))
            }
            // a counter stands for itself
            (Op::Copy, [inner]) if *step == self.step(*inner) => self.sum(*inner),
            _ => (vec![value], 0),
        }
    }

    /// How much more the second value always is. None: that is not known.
    pub fn distance(&self, from: Value, to: Value) -> Option<i64> {
        let ((mut one, first), (other, second)) = (self.sum(from), self.sum(to));
        for value in &other {
            let at = one.iter().position(|known| known == value)?;
            one.swap_remove(at);
        }
        one.is_empty().then(|| second.wrapping_sub(first))
    }

    /// The value in the first repetition. Writes what computes it, for a place in front of the loop.
    pub fn first(&mut self, value: Value, func: &mut Func, out: &mut Vec<Stmt>) -> Operand {
        let number = match value {
            Value::Given(operand) => return operand,
            Value::Made(number) => number,
        };
        if let Some(first) = self.made[number].first {
            return first;
        }
        let (op, ty, args) = (self.made[number].op, self.made[number].ty, self.made[number].args.clone());
        let args = args.into_iter().map(|arg| self.first(arg, func, out)).collect();
        func.vars.push(crate::ir::Var { ty, name: None });
        let dst = VarId::new(func.vars.len() - 1);
        out.push(Stmt::Let { dst, op, args });
        self.made[number].first = Some(dst.into());
        dst.into()
    }
}

/// Whether the operation may run in front of the loop, even if the loop would not run it.
fn holds_anywhere(op: Op, args: &[Value]) -> bool {
    is_movable(op)
        || match (op, args) {
            (Op::Shl | Op::Shr | Op::UShr, [_, Value::Given(Operand::I64(by))]) => (0..=63).contains(by),
            (Op::Div | Op::Rem | Op::UDiv | Op::URem, [_, Value::Given(Operand::I64(by))]) => *by > 0,
            _ => false,
        }
}

/// The operation whose result a checked one has, if it does not overflow.
pub fn unchecked(op: CheckedOp) -> Op {
    match op {
        CheckedOp::Add => Op::Add,
        CheckedOp::Sub => Op::Sub,
        CheckedOp::Mul => Op::Mul,
        CheckedOp::And => Op::And,
    }
}
