//! How a register's values differ between the jobs of a group.
//!
//! Here: one [`Shape`] for each register, the same wherever it is read. A fixpoint finds the smallest shape that holds
//! for all of its assignments. Not here: code.
//!
//! A division of a value that steps from job to job has a known shape only under a condition ([`Guard`]), which the
//! group tests at run time. An example: neighbours are in one row, but for those at its end.

use super::leaving::{Leaving, exit};
use super::parting::parts;
use super::{Division, Grouping};
use crate::ir::{CheckedOp, Cmp, Ctx, Func, LabelId, Op, Operand, Scalar, Stmt, VarId, walk};
use crate::passes::loops::Counts;
use std::collections::{HashMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// All jobs have the same value.
    Same,
    /// Each job has `by` more than the job before. `exact`: of 32 bits, and only the first value may wrap around when
    /// read as an unsigned number.
    Step {
        by: i64,
        exact: bool,
    },
    /// The job's number, where the jobs lie below each other in a table: each has more than the one before by the
    /// table's width.
    Row,
    Differs,
}

impl Shape {
    fn step(by: i64) -> Self {
        if by == 0 { Shape::Same } else { Shape::Step { by, exact: false } }
    }

    fn join(self, other: Shape) -> Shape {
        match (self, other) {
            (Shape::Step { by, exact }, Shape::Step { by: other, exact: too }) if by == other => {
                Shape::Step { by, exact: exact && too }
            }
            (a, b) if a == b => a,
            _ => Shape::Differs,
        }
    }
}

/// A condition under which an assignment has its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The last job's result equals the first one's.
    Equal,
    /// The last job's result exceeds the first one's by as much as its operand does.
    Stepping,
}

/// A comparison of a value that steps from job to job.
pub struct ComparedStep {
    /// How numbers are ordered.
    pub order: fn(Cmp) -> Op,
    pub value: Operand,
    pub by: i64,
}

/// Values with larger steps are not neighbours.
const MAX_STEP: u64 = 1 << 10;

pub struct Shapes {
    grouping: Grouping,
    width: i64,
    divided: Option<(VarId, Operand)>,
    /// None: the register is never assigned.
    of: Vec<Option<Shape>>,
    /// Whether only some jobs of the group may run the statement that is looked at.
    parted: bool,
    /// Whether a job that leaves a prepared loop runs it.
    exiting: bool,
    leaving: Leaving,
    /// Whether jobs may take turns.
    turns: bool,
    counts: Counts,
    /// Comparisons in registers that nothing else assigns.
    comparisons: HashMap<VarId, (Op, Vec<Operand>)>,
}

impl Shapes {
    /// None: the function does something that a group cannot do together, nor, if `turns`, in turn.
    pub fn of(
        func: &Func,
        leaving: Leaving,
        grouping: Grouping,
        width: usize,
        division: Option<&Division>,
        turns: bool,
    ) -> Option<Self> {
        let mut of = vec![None; func.vars.len()];
        let [job, rest @ ..] = &func.params[..] else { return None };
        of[job.index()] = Some(if grouping == Grouping::Consecutive { Shape::step(1) } else { Shape::Row });
        rest.iter().for_each(|v| of[v.index()] = Some(Shape::Same));
        let divided = division.map(|division| (division.dst, division.divisor));
        let mut shapes = Self {
            grouping,
            width: width as i64,
            divided,
            of,
            parted: false,
            exiting: false,
            leaving,
            turns,
            counts: Counts::of(func),
            comparisons: HashMap::new(),
        };
        walk(&func.body, &mut |stmt| {
            if let Stmt::Let { dst, op: op @ (Op::ICmp(_) | Op::UCmp(_)), args } = stmt
                && shapes.counts.assigned(*dst) == 1
            {
                shapes.comparisons.insert(*dst, (*op, args.to_vec()));
            }
        });
        loop {
            let before = shapes.of.clone();
            shapes.list(&func.body, false)?;
            if shapes.of == before {
                return Some(shapes);
            }
        }
    }

    pub fn operand(&self, operand: Operand) -> Shape {
        match operand {
            Operand::Var(v) => self.of[v.index()].unwrap_or(Shape::Same),
            _ => Shape::Same,
        }
    }

    /// What was compared, if this is the answer to whether a value that steps from job to job is beyond one that all
    /// have in common. Where the value does not wrap around, the first and the last job decide for all.
    pub fn compared_step(&self, answer: VarId) -> Option<ComparedStep> {
        let (op, args) = self.comparisons.get(&answer)?;
        let (order, cmp): (fn(Cmp) -> Op, Cmp) = match op {
            Op::ICmp(cmp) => (Op::ICmp, *cmp),
            Op::UCmp(cmp) => (Op::UCmp, *cmp),
            _ => return None,
        };
        let (value, by) = match [self.operand(args[0]), self.operand(args[1])] {
            [Shape::Step { by, .. }, Shape::Same] => (args[0], by),
            [Shape::Same, Shape::Step { by, .. }] => (args[1], by),
            _ => return None,
        };
        (!matches!(cmp, Cmp::Eq | Cmp::Ne)).then_some(ComparedStep { order, value, by })
    }

    /// Whether jobs of a group nearly always take the same side of a branch, as where their numbers are below a limit.
    /// A loop in it is worth a test for that.
    pub fn agrees(&self, stmt: &Stmt) -> bool {
        let Stmt::If { cond: Operand::Var(cond), then, otherwise } = stmt else { return false };
        let mut loops = false;
        [then, otherwise].into_iter().for_each(|side| walk(side, &mut |s| loops |= matches!(s, Stmt::Loop { .. })));
        self.grouping == Grouping::Consecutive && loops && self.compared_step(*cond).is_some()
    }

    /// Whether a loop computes something that differs between jobs from something that all of them load in the loop.
    pub fn is_worth_it(&self, func: &Func) -> bool {
        let mut worth = false;
        walk(&func.body, &mut |stmt| {
            let Stmt::Loop { body, .. } = stmt else { return };
            if body.iter().any(|s| matches!(s, Stmt::Loop { .. })) {
                return;
            }
            let (mut shares, mut differs) = (false, false);
            walk(body, &mut |s| {
                shares |= matches!(s, Stmt::Load { row, .. } if self.operand(*row) == Shape::Same);
                differs |= s.assigns().iter().any(|v| self.operand((*v).into()) == Shape::Differs);
            });
            worth |= shares && differs;
        });
        worth
    }

    /// Whether a loop loads what differs between these jobs but not between the jobs whose shapes are `others`.
    pub fn loads_again(&self, others: &Shapes, func: &Func) -> bool {
        let mut again = false;
        walk(&func.body, &mut |stmt| {
            let Stmt::Loop { body, .. } = stmt else { return };
            walk(body, &mut |s| {
                again |= matches!(s, Stmt::Load { row, .. } if self.operand(*row) != Shape::Same && others.operand(*row) == Shape::Same);
            });
        });
        again
    }

    /// How many registers that differ between jobs carry values from one repetition of a loop to the next.
    pub fn carried(&self, func: &Func) -> usize {
        let mut found: HashSet<VarId> = HashSet::new();
        walk(&func.body, &mut |stmt| {
            if let Stmt::Loop { body, .. } = stmt {
                walk(body, &mut |s| {
                    let carried =
                        |v: &&VarId| self.counts.assigned(**v) > 1 && self.operand((**v).into()) == Shape::Differs;
                    found.extend(s.assigns().iter().filter(carried).copied());
                });
            }
        });
        found.len()
    }

    fn list(&mut self, body: &[Stmt], in_loop: bool) -> Option<()> {
        for stmt in body {
            match stmt {
                Stmt::Let { dst, op, args } => {
                    if let Some((shape, _)) = self.assigned(*op, args, in_loop)? {
                        self.set(*dst, shape);
                    }
                }
                Stmt::Load { dst, row, .. } => {
                    if let Some([row]) = self.known([*row]) {
                        self.set(*dst, if row == Shape::Same { Shape::Same } else { Shape::Differs });
                    }
                }
                Stmt::Checked { dst, op, args, .. } => {
                    if let Some(args) = self.known(*args) {
                        self.set(*dst, checked(*op, args));
                    }
                }
                Stmt::If { then, otherwise, .. } => {
                    let around = (self.parted, self.exiting);
                    self.parted |= parts(stmt, self);
                    self.exiting |= self.is_exit(stmt);
                    self.list(then, in_loop)?;
                    self.list(otherwise, in_loop)?;
                    (self.parted, self.exiting) = around;
                }
                Stmt::Block { body, .. } => self.list(body, in_loop)?,
                Stmt::Loop { body, .. } => self.list(body, true)?,
                Stmt::Store { .. }
                | Stmt::Break(_)
                | Stmt::Return(_)
                | Stmt::Trap { .. }
                | Stmt::Poll
                | Stmt::Begin { .. } => {}
                Stmt::Atomic { .. } if self.turns => {}
                Stmt::FetchAdd { dst, .. } if self.turns => self.set(*dst, Shape::Differs),
                Stmt::Atomic { .. }
                | Stmt::FetchAdd { .. }
                | Stmt::Alloc { .. }
                | Stmt::Try { .. }
                | Stmt::Meet { .. }
                | Stmt::Call { .. }
                | Stmt::Emit { .. }
                | Stmt::KeyPart { .. }
                | Stmt::Place(_) => return None,
            }
        }
        Some(())
    }

    fn set(&mut self, v: VarId, shape: Shape) {
        // some jobs may still hold an earlier value, or leave a loop later with another one
        let is_older = self.parted && self.counts.assigned(v) > 1;
        let shape = if is_older || self.exiting { Shape::Differs } else { shape };
        let known = &mut self.of[v.index()];
        *known = Some(known.map_or(shape, |known| known.join(shape)));
    }

    /// The shapes of operands, once all of them have one.
    fn known<const N: usize>(&self, operands: [Operand; N]) -> Option<[Shape; N]> {
        let all = operands.iter().all(|o| !matches!(o, Operand::Var(v) if self.of[v.index()].is_none()));
        all.then(|| operands.map(|o| self.operand(o)))
    }

    /// The shape of an assignment's result, and the condition for it. Outer None: a group cannot run it. Inner None:
    /// the shapes of its operands are not known yet.
    #[expect(clippy::option_option, reason = "what is refused is not what waits")]
    pub fn assigned(&self, op: Op, args: &[Operand], in_loop: bool) -> Option<Option<(Shape, Option<Guard>)>> {
        use Shape::{Differs, Row, Same, Step};
        if matches!(op, Op::Random | Op::Ctx(Ctx::Slot | Ctx::Index)) {
            return None;
        }
        if args.iter().any(|o| matches!(o, Operand::Var(v) if self.of[v.index()].is_none())) {
            return Some(None);
        }
        let shapes: Vec<Shape> = args.iter().map(|o| self.operand(*o)).collect();
        let free = |shape| (shape, None);
        let stepping = |by: i64| by.unsigned_abs() <= MAX_STEP;
        let divides = |divisor: &Operand| self.divided.is_some_and(|(_, found)| found == *divisor);
        Some(Some(match (op, &shapes[..]) {
            (_, all) if all.iter().all(|shape| *shape == Same) => free(Same),
            (Op::Copy, [shape]) => free(*shape),
            (Op::Add, [Step { by, .. }, Same] | [Same, Step { by, .. }]) => free(Shape::step(*by)),
            (Op::Add, [Step { by, .. }, Step { by: other, .. }]) if stepping(by + other) => {
                free(Shape::step(by + other))
            }
            (Op::Sub, [Step { by, .. }, Same]) => free(Shape::step(*by)),
            (Op::Sub, [Same, Step { by, .. }]) => free(Shape::step(-by)),
            (Op::Sub, [Step { by, .. }, Step { by: other, .. }]) if stepping(by - other) => {
                free(Shape::step(by - other))
            }
            (Op::Mul, [Step { by, .. }, Same]) => match constant(args[1]) {
                Some(n) if stepping(by.saturating_mul(n)) => free(Shape::step(by * n)),
                _ => free(Differs),
            },
            (Op::Widen, [Step { by, exact: true }]) => free(Step { by: *by, exact: true }),
            (Op::Narrow, [Step { by, .. }]) => free(Shape::step(*by)),
            (Op::Narrow, [Row]) => free(Row),
            (Op::Div | Op::UDiv, [Row, Same]) if divides(&args[1]) => free(Step { by: 1, exact: true }),
            (Op::Rem | Op::URem, [Row, Same]) if divides(&args[1]) => free(Same),
            (Op::Div | Op::UDiv, [Step { by: 1.., .. }, Same]) if !in_loop => (Same, Some(Guard::Equal)),
            (Op::Rem | Op::URem, [Step { by: by @ 1.., .. }, Same]) if !in_loop => {
                (Step { by: *by, exact: true }, Some(Guard::Stepping))
            }
            (Op::And, [Step { by: by @ 1.., .. }, Same]) if !in_loop && self.steps_below(args[1], *by) => {
                (Step { by: *by, exact: true }, Some(Guard::Stepping))
            }
            _ => free(Differs),
        }))
    }

    /// Whether a mask keeps so many low bits that the steps of one group can stay below them.
    fn steps_below(&self, mask: Operand, by: i64) -> bool {
        let Operand::I64(mask) = mask else { return false };
        mask > 0 && mask & mask.wrapping_add(1) == 0 && by * self.width <= mask
    }

    /// The divisor, if the assignment is the division whose quotients are the rows in which jobs lie below each other.
    pub fn divides(&self, dst: VarId) -> Option<Operand> {
        self.divided
            .filter(|(divided, _)| self.grouping == Grouping::Strided && *divided == dst)
            .map(|(_, divisor)| divisor)
    }

    /// Whether more than one statement assigns it.
    pub fn is_assigned_again(&self, v: VarId) -> bool {
        self.counts.assigned(v) > 1
    }

    /// Whether the jobs may leave the loop apart, which is prepared for that.
    pub fn is_leaving(&self, label: LabelId) -> bool {
        self.leaving.contains(&label)
    }

    pub fn has_leaving(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// The loops that are prepared so.
    pub fn leaving(&self) -> &Leaving {
        &self.leaving
    }

    /// Whether jobs leave such a loop at the statement.
    pub fn is_exit(&self, stmt: &Stmt) -> bool {
        exit(stmt).and_then(|exit| exit.to).is_some_and(|to| self.is_leaving(to))
    }

    pub fn width(&self) -> i64 {
        self.width
    }
}

/// The shape of a checked result. The group tests that none of its jobs overflows.
fn checked(op: CheckedOp, args: [Shape; 2]) -> Shape {
    match (op, args) {
        (_, [Shape::Same, Shape::Same]) => Shape::Same,
        (CheckedOp::Add | CheckedOp::Sub, [Shape::Step { by, .. }, Shape::Same])
        | (CheckedOp::Add, [Shape::Same, Shape::Step { by, .. }]) => Shape::step(by),
        _ => Shape::Differs,
    }
}

fn constant(operand: Operand) -> Option<i64> {
    match operand {
        Operand::I64(n) => Some(n),
        Operand::I32(n) => Some(n.into()),
        _ => None,
    }
}

/// A constant of a type.
pub fn number(ty: Scalar, n: i64) -> Operand {
    if ty == Scalar::I32 { Operand::I32(n as i32) } else { Operand::I64(n) }
}
