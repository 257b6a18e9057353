//! Branches at which the jobs of a group part, and come together again.
//!
//! `next if far; …` mostly holds for all jobs of a group, or for all but one: birds that look at another are mostly far
//! from it. So the group computes the condition for all jobs together, like all that the jobs do together. Then each
//! job that needs the rest runs it, one job after the other. Here: which part of a branch is which ([`Parting`]), and
//! where jobs part ([`parts`]). Not here: code ([`super::weave`]).

use super::shapes::{Shape, Shapes};
use crate::ir::visit::size;
use crate::ir::{Cmp, Column, ColumnId, Func, Op, Operand, Scalar, Stmt, VarId, walk};
use crate::passes::if_combine::{Condition, branch};
use crate::passes::loops::{Counts, References, is_cheap, is_movable};
use std::collections::HashSet;

/// The most statements that run for jobs that may not need them.
const MAX_AHEAD: usize = 16;

/// The fewest statements in the rest that make this worthwhile. A shorter rest is as fast with a branch for each job,
/// however often it is taken.
const MIN_APART: usize = 4;

/// What is known of a function whose jobs may part.
pub struct Facts<'a> {
    counts: Counts,
    references: &'a References,
    columns: &'a [Column],
    /// Comparisons for equality, which mostly do not hold, and for inequality.
    equalities: HashSet<VarId>,
    inequalities: HashSet<VarId>,
    /// Comparisons of Floats, and what is computed from them: vectors support them.
    of_floats: HashSet<VarId>,
}

impl<'a> Facts<'a> {
    pub fn of(func: &Func, references: &'a References, columns: &'a [Column]) -> Self {
        let counts = Counts::of(func);
        let [mut equalities, mut inequalities, mut of_floats] = [HashSet::new(), HashSet::new(), HashSet::new()];
        walk(&func.body, &mut |stmt| {
            let Stmt::Let { dst, op, args } = stmt else { return };
            if counts.assigned(*dst) != 1 {
                return;
            }
            if let Op::ICmp(Cmp::Eq) | Op::FCmp(Cmp::Eq) = op {
                equalities.insert(*dst);
            }
            if let Op::ICmp(Cmp::Ne) | Op::FCmp(Cmp::Ne) = op {
                inequalities.insert(*dst);
            }
            let made = matches!(op, Op::And | Op::Or | Op::Not) && args.iter().all(|arg| is_one_of(&of_floats, *arg));
            if made || matches!(op, Op::FCmp(_)) {
                of_floats.insert(*dst);
            }
        });
        Self { counts, references, columns, equalities, inequalities, of_floats }
    }

    /// Whether more than one statement assigns it.
    pub fn is_assigned_again(&self, v: VarId) -> bool {
        self.counts.assigned(v) > 1
    }

    /// Whether the condition rarely has this value.
    fn is_rare(&self, (cond, on): &Condition) -> bool {
        is_one_of(if *on { &self.equalities } else { &self.inequalities }, *cond)
    }

    /// The condition by which a guard skips, its value then, and what it skips. None: the statement is no guard that
    /// rarely skips, or not all jobs may run what it skips.
    pub fn rare_guard<'b>(&self, stmt: &'b Stmt) -> Option<(Operand, bool, &'b [Stmt])> {
        let (skip, rest) = one_sided(stmt).filter(|(skip, _)| self.is_rare(skip))?;
        let mut ahead = HashSet::new();
        for stmt in rest {
            let may_run = match stmt {
                Stmt::Let { op, .. } => is_movable(*op),
                Stmt::Load { column, row, .. } => self.is_there(*column, *row, &ahead),
                _ => false,
            };
            if !may_run {
                return None;
            }
            ahead.extend(stmt.assigns());
        }
        Some((skip.0, skip.1, rest))
    }

    /// Whether a job that does not need the row may load it. A row that was computed ahead may not exist for it.
    fn is_there(&self, column: ColumnId, row: Operand, ahead: &HashSet<VarId>) -> bool {
        let is_old = !matches!(row, Operand::Var(v) if ahead.contains(&v));
        is_old && self.references.is_in(row, self.columns[column.index()].space)
    }

    /// Whether a statement may run for jobs that do not need it: it changes only what no other code reads, and loads
    /// rows that exist. `ahead`: the statements that ran for all jobs before it.
    fn is_free(&self, stmt: &Stmt, ahead: &HashSet<VarId>) -> bool {
        match stmt {
            Stmt::Let { dst, op, .. } => is_movable(*op) && is_cheap(*op) && self.counts.assigned(*dst) == 1,
            Stmt::Load { dst, column, row } => self.is_there(*column, *row, ahead) && self.counts.assigned(*dst) == 1,
            _ => false,
        }
    }
}

/// A branch one side of which is empty, together with such branches nested in its other side.
pub struct Parting<'a> {
    /// Statements that may run for all jobs, in order, with the conditions among them.
    pub ahead: Vec<&'a Stmt>,
    /// A job skips the rest if one of these conditions holds.
    pub skips: Vec<Condition>,
    /// The statements of a job that skips nothing.
    pub rest: &'a [Stmt],
}

impl<'a> Parting<'a> {
    /// None: neither side is empty.
    pub fn of(stmt: &'a Stmt, facts: &Facts) -> Option<Self> {
        let (skip, rest) = one_sided(stmt)?;
        let (mut parting, mut own) = (Self { ahead: Vec::new(), skips: vec![skip], rest }, HashSet::new());
        loop {
            let (mut free, mut behind) = (Vec::new(), parting.rest);
            while let [first, others @ ..] = behind
                && parting.ahead.len() + free.len() < MAX_AHEAD
                && facts.is_free(first, &own)
            {
                own.extend(first.assigns());
                free.push(first);
                behind = others;
            }
            // statements that lead to no condition are left to the jobs that need them
            let [only] = behind else { return Some(parting) };
            let Some((skip, rest)) = one_sided(only) else { return Some(parting) };
            parting.ahead.extend(free);
            parting.skips.push(skip);
            parting.rest = rest;
        }
    }

    /// The conditions that decide whether any job runs the rest: those that often hold, if there are any.
    pub fn tests(&self, facts: &Facts) -> Vec<Condition> {
        let often: Vec<Condition> = self.skips.iter().copied().filter(|skip| !facts.is_rare(skip)).collect();
        if often.is_empty() { self.skips.clone() } else { often }
    }
}

/// The statement's branch, if its other side is empty and it is not.
fn one_sided(stmt: &Stmt) -> Option<(Condition, &[Stmt])> {
    branch(stmt).filter(|(_, rest)| !rest.is_empty())
}

fn is_one_of(known: &HashSet<VarId>, operand: Operand) -> bool {
    matches!(operand, Operand::Var(v) if known.contains(&v))
}

pub fn raises(list: &[Stmt]) -> bool {
    matches!(list.last(), Some(Stmt::Trap { .. }))
}

/// Whether the list changes something that other jobs change too.
pub fn changes_together(list: &[Stmt]) -> bool {
    let mut found = false;
    walk(list, &mut |stmt| found |= matches!(stmt, Stmt::Atomic { .. } | Stmt::FetchAdd { .. }));
    found
}

/// Whether jobs part at a statement. A side that raises is no parting: either no job takes it, or the group gives up.
/// Nor is an exit of a loop that jobs leave apart: the others repeat the loop together. Where jobs nearly always take
/// the same side, the group gives up if they do not.
pub fn parts(stmt: &Stmt, shapes: &Shapes) -> bool {
    matches!(stmt, Stmt::If { cond, then, otherwise } if shapes.operand(*cond) != Shape::Same && !raises(then) && !raises(otherwise))
        && !shapes.is_exit(stmt)
        && !shapes.agrees(stmt)
}

/// How many statements stand in branches at which jobs part. The code has them once for each job.
pub fn repeated(list: &[Stmt], shapes: &Shapes) -> usize {
    let inside = |stmt: &Stmt| {
        let count = |body: &[Stmt]| if parts(stmt, shapes) { size(body) } else { repeated(body, shapes) };
        stmt.bodies().into_iter().map(count).sum::<usize>()
    };
    list.iter().map(inside).sum()
}

/// What jobs do together in innermost loops in which they part.
pub struct Together {
    /// The number of Floats that differ between jobs and that the jobs read or assign together, in the loop that has
    /// most.
    pub registers: usize,
    /// Whether, in all of these loops, jobs load something in common, compute with Floats that differ, and part by
    /// comparing Floats alone. Other comparisons run once for each job, where a branch for each job takes no longer.
    pub worth: bool,
}

impl Together {
    /// None: jobs part in no loop.
    pub fn of(func: &Func, shapes: &Shapes, facts: &Facts) -> Option<Self> {
        let mut found: Option<Self> = None;
        walk(&func.body, &mut |stmt| {
            let Stmt::Loop { body, .. } = stmt else { return };
            if body.iter().any(|s| matches!(s, Stmt::Loop { .. })) {
                return;
            }
            let mut walk = Walk {
                func,
                shapes,
                facts,
                parted: false,
                differing: HashSet::new(),
                shares: false,
                floats: false,
                vectors: true,
            };
            walk.list(body);
            if walk.parted {
                let known = found.get_or_insert(Self { registers: 0, worth: true });
                known.registers = known.registers.max(walk.differing.len());
                known.worth &= walk.shares && walk.floats && walk.vectors;
            }
        });
        found
    }
}

struct Walk<'a> {
    func: &'a Func,
    shapes: &'a Shapes,
    facts: &'a Facts<'a>,
    parted: bool,
    differing: HashSet<VarId>,
    shares: bool,
    floats: bool,
    vectors: bool,
}

impl Walk<'_> {
    fn list(&mut self, list: &[Stmt]) {
        for stmt in list {
            if !parts(stmt, self.shapes) {
                self.stmt(stmt);
                stmt.bodies().into_iter().for_each(|body| self.list(body));
                continue;
            }
            self.parted = true;
            let parting = Parting::of(stmt, self.facts).filter(|parting| size(parting.rest) >= MIN_APART);
            let tests = parting.iter().flat_map(|parting| parting.tests(self.facts));
            self.vectors &=
                parting.is_some() && tests.map(|(cond, _)| cond).all(|c| is_one_of(&self.facts.of_floats, c));
            parting.into_iter().flat_map(|parting| parting.ahead).for_each(|stmt| self.stmt(stmt));
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let differs = |v: &VarId| self.shapes.operand((*v).into()) == Shape::Differs;
        self.shares |= matches!(stmt, Stmt::Load { row, .. } if self.shapes.operand(*row) == Shape::Same);
        let is_float = matches!(stmt, Stmt::Let { op: Op::FAdd | Op::FSub | Op::FMul, .. });
        self.floats |= is_float && stmt.assigns().iter().any(differs);
        self.differing
            .extend(touches(stmt).into_iter().filter(|v| differs(v) && self.func.ty((*v).into()) == Scalar::F64));
    }
}

/// Registers that carry values from one repetition to the next, and that loops touch only where jobs are apart.
pub fn apart(func: &Func, shapes: &Shapes, facts: &Facts) -> Vec<VarId> {
    let mut touched = Touched { shapes, facts, together: HashSet::new(), apart: HashSet::new() };
    touched.outside(&func.body);
    let Touched { together, apart, .. } = touched;
    let mut found: Vec<_> = apart.difference(&together).copied().filter(|v| facts.counts.assigned(*v) > 1).collect();
    found.sort();
    found
}

struct Touched<'a> {
    shapes: &'a Shapes,
    facts: &'a Facts<'a>,
    together: HashSet<VarId>,
    apart: HashSet<VarId>,
}

impl Touched<'_> {
    fn outside(&mut self, list: &[Stmt]) {
        for stmt in list {
            if let Stmt::Loop { body, .. } = stmt {
                self.inside(body);
            } else {
                stmt.bodies().into_iter().for_each(|body| self.outside(body));
            }
        }
    }

    fn inside(&mut self, list: &[Stmt]) {
        for stmt in list {
            if !parts(stmt, self.shapes) {
                self.together.extend(touches(stmt));
                stmt.bodies().into_iter().for_each(|body| self.inside(body));
                continue;
            }
            let (ahead, rest) = match Parting::of(stmt, self.facts) {
                Some(parting) => (parting.ahead, parting.rest),
                None => (Vec::new(), std::slice::from_ref(stmt)),
            };
            self.together.extend(ahead.into_iter().flat_map(touches));
            walk(rest, &mut |stmt| self.apart.extend(touches(stmt)));
        }
    }
}

/// The registers that a statement reads and assigns itself, without statements inside it.
fn touches(stmt: &Stmt) -> Vec<VarId> {
    let mut met = stmt.assigns().to_vec();
    stmt.reads(|operand| {
        if let Operand::Var(v) = operand {
            met.push(v);
        }
    });
    met
}
