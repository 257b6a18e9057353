//! Helpers for passes over loops: how loops count, how often registers are assigned, and what may move out of a loop.

use crate::ir::effects::Effects;
use crate::ir::visit::is_plain;
use crate::ir::{Cmp, Column, Ctx, Func, LabelId, Op, Operand, Space, Stmt, VarId, walk};
use std::collections::{BTreeMap, HashSet};

/// How often each register of a function is assigned. A parameter counts once more, for the entry.
pub struct Counts(Vec<u32>);

impl Counts {
    pub fn of(func: &Func) -> Self {
        let mut counts = vec![0; func.vars.len()];
        func.params.iter().for_each(|p| counts[p.index()] += 1);
        walk(&func.body, &mut |s| s.assigns().iter().for_each(|v| counts[v.index()] += 1));
        Self(counts)
    }
    /// Adds a new register, which is assigned so often.
    pub fn add(&mut self, assigned: u32) {
        self.0.push(assigned);
    }
    pub fn assigned(&self, var: VarId) -> u32 {
        self.0[var.index()]
    }
}

/// The registers that a list assigns.
pub fn assigned_in(body: &[Stmt]) -> HashSet<VarId> {
    let mut vars = HashSet::new();
    walk(body, &mut |s| vars.extend(s.assigns()));
    vars
}

/// A statement nested in so many branches more than another one runs more rarely.
pub const RARER: usize = 2;

/// The least depth in branches at which a loop's body assigns each register. An assignment in an inner loop is at depth
/// 0: it may run often, however deep it is nested.
pub fn assignment_depths(body: &[Stmt]) -> BTreeMap<VarId, usize> {
    fn collect(body: &[Stmt], depth: usize, all: &mut BTreeMap<VarId, usize>) {
        for stmt in body {
            let inner = if let Stmt::Loop { body, .. } = stmt { assigned_in(body) } else { HashSet::new() };
            for (v, depth) in stmt.assigns().iter().map(|v| (*v, depth)).chain(inner.into_iter().map(|v| (v, 0))) {
                let least = all.entry(v).or_insert(depth);
                *least = (*least).min(depth);
            }
            let depth = depth + usize::from(matches!(stmt, Stmt::If { .. }));
            stmt.bodies().into_iter().for_each(|body| collect(body, depth, all));
        }
    }
    let mut all = BTreeMap::new();
    collect(body, 0, &mut all);
    all
}

/// How an innermost loop counts that [`super::rotate`] has turned. Its body ends with
/// `i += step; over = i >= end; break if over`, and changes none of these registers before.
pub struct Counting {
    pub i: VarId,
    pub step: i64,
    pub end: Operand,
}

impl Counting {
    /// The counting, and the statements that the loop repeats before it counts. `polls`: it polls between counting and
    /// the test.
    pub fn of(stmt: &Stmt, polls: bool) -> Option<(Self, &[Stmt])> {
        let Stmt::Loop { label, body } = stmt else { return None };
        Self::of_body(*label, body, polls)
    }

    /// The same for the body of a loop.
    pub fn of_body(label: LabelId, body: &[Stmt], polls: bool) -> Option<(Self, &[Stmt])> {
        let [
            before @ ..,
            Stmt::Let { dst: over, op: Op::ICmp(Cmp::Ge), args: compared },
            Stmt::If { cond, then, otherwise },
        ] = body
        else {
            return None;
        };
        let counted = if polls { before.strip_suffix(&[Stmt::Poll])? } else { before };
        let [repeated @ .., Stmt::Let { dst: i, op: Op::Add, args }] = counted else { return None };
        let [Operand::Var(from), Operand::I64(step @ 1..=1024)] = args[..] else { return None };
        let [Operand::Var(tested), end] = compared[..] else { return None };
        let counts = from == *i && tested == *i && *cond == (*over).into();
        let leaves = then[..] == [Stmt::Break(label)] && otherwise.is_empty();
        let assigned = assigned_in(repeated);
        let changes = assigned.contains(i)
            || assigned.contains(over)
            || matches!(end, Operand::Var(v) if assigned.contains(&v) || v == *i || v == *over);
        // a body that reads the last repetition's answer needs the test as it is
        let looks_back = is_read(repeated, *over);
        let fits = counts && leaves && !changes && !looks_back && is_plain(repeated);
        fits.then_some((Self { i: *i, step, end }, repeated))
    }
}

/// Whether the operation takes only an instruction or two.
pub fn is_cheap(op: Op) -> bool {
    !matches!(op, Op::FDiv | Op::FSqrt | Op::FRem | Op::FNextAfter | Op::Math(_))
}

/// Whether the operation may run where the program would not run it. It has no effect and no precondition, and depends
/// on its operands alone.
pub fn is_movable(op: Op) -> bool {
    !matches!(
        op,
        Op::Div
            | Op::Rem
            | Op::UDiv
            | Op::URem
            | Op::MulMod
            | Op::AddMod
            | Op::Shl
            | Op::Shr
            | Op::UShr
            | Op::FloatToInt
            | Op::Random
            | Op::Ctx(Ctx::Tick | Ctx::Index)
    )
}

/// Whether something in the body of a loop leaves it other than by a break to its own label: a `Return`, or a break to
/// a label around it.
pub fn leaves_otherwise(body: &[Stmt], own: LabelId) -> bool {
    let mut inner = HashSet::from([own]);
    walk(body, &mut |s| inner.extend(s.label()));
    let mut leaves = false;
    walk(body, &mut |s| match s {
        Stmt::Return(_) => leaves = true,
        Stmt::Break(to) => leaves |= !inner.contains(to),
        _ => {}
    });
    leaves
}

/// Whether a statement in a body reads a register.
pub fn is_read(body: &[Stmt], var: VarId) -> bool {
    let mut read = false;
    walk(body, &mut |s| s.reads(|operand| read |= operand == var.into()));
    read
}

/// Whether control surely does not reach what follows the statement in its list.
pub fn never_passed(stmt: &Stmt) -> bool {
    !may_pass(stmt, &mut Vec::new())
}

/// Whether control may reach what follows a statement. `left`: the labels of reachable breaks.
fn may_pass(stmt: &Stmt, left: &mut Vec<LabelId>) -> bool {
    let list = |body: &[Stmt], left: &mut Vec<LabelId>| body.iter().all(|stmt| may_pass(stmt, left));
    match stmt {
        Stmt::If { then, otherwise, .. } => list(then, left) | list(otherwise, left),
        Stmt::Block { label, body } => list(body, left) | left.contains(label),
        Stmt::Loop { label, body } => {
            list(body, left);
            left.contains(label)
        }
        // its handlers follow it
        Stmt::Try { .. } => {
            for body in stmt.bodies() {
                list(body, left);
            }
            true
        }
        Stmt::Break(label) => {
            left.push(*label);
            false
        }
        _ => !stmt.ends_list(),
    }
}

/// Whether the statement surely completes, unless the launch is stopped from outside. Nothing that the element computes
/// can make it leave its list or run for ever.
pub fn completes(stmt: &Stmt, effects: &[Effects]) -> bool {
    match stmt {
        Stmt::Let { .. }
        | Stmt::Load { .. }
        | Stmt::Store { .. }
        | Stmt::Place(_)
        | Stmt::Poll
        | Stmt::Begin { .. } => true,
        Stmt::FetchAdd { .. } => true,
        Stmt::Atomic { site, .. } => site.is_none(),
        Stmt::Call { func, depth, .. } => {
            let callee = &effects[func.index()];
            depth.is_none() && !callee.stops && !callee.loops
        }
        Stmt::If { .. } | Stmt::Block { .. } => stmt.bodies().iter().all(|b| b.iter().all(|s| completes(s, effects))),
        Stmt::Alloc { .. }
        | Stmt::Try { .. }
        | Stmt::Checked { .. }
        | Stmt::Loop { .. }
        | Stmt::Break(_)
        | Stmt::Return(_)
        | Stmt::Trap { .. } => false,
    }
}

/// For each register, the space to which its ids refer, if it only ever holds ids out of columns that refer to that
/// space.
pub struct References(Vec<Reference>);

#[derive(Clone, Copy, PartialEq)]
enum Reference {
    /// No assignment was seen.
    Unassigned,
    To(Space),
    Unknown,
}

impl References {
    pub fn of(func: &Func, columns: &[Column]) -> Self {
        let mut all = vec![Reference::Unassigned; func.vars.len()];
        func.params.iter().for_each(|p| all[p.index()] = Reference::Unknown);
        loop {
            let before = all.clone();
            walk(&func.body, &mut |s| {
                let given = match s {
                    Stmt::Load { column, .. } => {
                        columns[column.index()].refers.map_or(Reference::Unknown, Reference::To)
                    }
                    Stmt::Let { op: Op::Copy, args, .. } => reference(&all, args[0]),
                    Stmt::Let { op: Op::Select, args, .. } => reference(&all, args[1]).and(reference(&all, args[2])),
                    _ => Reference::Unknown,
                };
                for dst in s.assigns() {
                    all[dst.index()] = all[dst.index()].and(given);
                }
            });
            if all == before {
                return Self(all);
            }
        }
    }
    /// Whether the register, once assigned, is a row of the space.
    pub fn is_in(&self, row: Operand, space: Space) -> bool {
        matches!(reference(&self.0, row), Reference::To(inner) if space.covers(inner))
    }
}

fn reference(all: &[Reference], operand: Operand) -> Reference {
    match operand {
        Operand::Var(v) => all.get(v.index()).copied().unwrap_or(Reference::Unknown),
        _ => Reference::Unknown,
    }
}

impl Reference {
    /// The join of two facts.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Reference::Unassigned, known) | (known, Reference::Unassigned) => known,
            (Reference::To(a), Reference::To(b)) if a.covers(b) => self,
            (Reference::To(a), Reference::To(b)) if b.covers(a) => other,
            _ => Reference::Unknown,
        }
    }
}
