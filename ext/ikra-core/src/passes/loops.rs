//! Helpers for passes over loops: how loops count, how often registers are assigned, and what may move out of a loop.

use crate::ir::effects::Effects;
use crate::ir::visit::is_plain;
use crate::ir::{Cmp, Column, Ctx, Func, LabelId, Op, Operand, Space, Stmt, VarId, walk};
use std::collections::{BTreeMap, HashMap, HashSet};

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

/// How often a loop is assumed to repeat, where nothing says how often.
const TRIPS: f64 = 8.0;

/// The same for an inner loop that leaves by a condition other than a count. It goes on as often as not.
const CONDITION_TRIPS: f64 = 2.0;

/// Visits the statements of a loop's body, each with how often it runs in a repetition. A branch takes either side
/// equally often, but hardly ever one that raises. A side that leaves the loop around it is taken once in a run of it.
pub fn frequencies<'a>(body: &'a [Stmt], visit: &mut impl FnMut(&'a Stmt, f64)) {
    Frequencies { left: HashMap::new(), trips: TRIPS, within: HashSet::new(), visit }.list(body, 1.0);
}

struct Frequencies<'v, V> {
    /// How often each label is broken to.
    left: HashMap<LabelId, f64>,
    /// How often the loop around repeats.
    trips: f64,
    /// The labels of blocks in the loop around.
    within: HashSet<LabelId>,
    visit: &'v mut V,
}

impl<'a, V: FnMut(&'a Stmt, f64)> Frequencies<'_, V> {
    /// How often control reaches the end of a list that begins so often.
    fn list(&mut self, body: &'a [Stmt], mut often: f64) -> f64 {
        for stmt in body {
            (self.visit)(stmt, often);
            often = match stmt {
                Stmt::If { then, otherwise, .. } => {
                    let taken = self.taken(then, otherwise);
                    self.list(then, often * taken) + self.list(otherwise, often * (1.0 - taken))
                }
                Stmt::Block { label, body } => {
                    self.within.insert(*label);
                    let passed = self.list(body, often);
                    passed + self.left.remove(label).unwrap_or(0.0)
                }
                Stmt::Loop { label, body } => {
                    let trips = if Counting::of(stmt, true).or(Counting::of(stmt, false)).is_some() {
                        TRIPS
                    } else {
                        CONDITION_TRIPS
                    };
                    let around = (self.trips, std::mem::take(&mut self.within));
                    self.trips = trips;
                    self.list(body, often * trips);
                    (self.trips, self.within) = around;
                    self.left.remove(label);
                    often
                }
                Stmt::Try { .. } => {
                    stmt.bodies().into_iter().for_each(|body| _ = self.list(body, often));
                    often
                }
                Stmt::Break(label) => {
                    *self.left.entry(*label).or_default() += often;
                    0.0
                }
                Stmt::Return(_) | Stmt::Trap { .. } => 0.0,
                _ => often,
            };
        }
        often
    }

    /// The share of a branch's first side.
    fn taken(&self, then: &[Stmt], otherwise: &[Stmt]) -> f64 {
        let share = |side: &[Stmt]| match side.last() {
            Some(Stmt::Trap { .. }) => 0.0,
            Some(Stmt::Break(label)) if !self.within.contains(label) => 1.0 / self.trips,
            Some(Stmt::Return(_)) => 1.0 / self.trips,
            _ => 0.5,
        };
        let (then, otherwise) = (share(then), share(otherwise));
        if then < otherwise {
            then
        } else if otherwise < then {
            1.0 - otherwise
        } else {
            0.5
        }
    }
}

/// How often a repetition of a loop's body changes each register.
pub fn assignment_frequencies(body: &[Stmt]) -> BTreeMap<VarId, f64> {
    let mut all = BTreeMap::new();
    frequencies(body, &mut |stmt, often| {
        stmt.assigns().iter().for_each(|v| *all.entry(*v).or_insert(0.0) += often);
    });
    all
}

/// The registers that a list assigns on each path through it.
pub fn surely_assigned(body: &[Stmt]) -> HashSet<VarId> {
    let mut vars = HashSet::new();
    for stmt in body {
        vars.extend(stmt.assigns());
        if let Stmt::If { then, otherwise, .. } = stmt {
            let (then, otherwise) = (sides(then), sides(otherwise));
            vars.extend(match (then, otherwise) {
                (Some(then), Some(otherwise)) => then.intersection(&otherwise).copied().collect(),
                (Some(side), None) | (None, Some(side)) => side,
                (None, None) => HashSet::new(),
            });
        }
        if stmt.ends_list() {
            break;
        }
    }
    vars
}

/// What a side of a branch assigns on each path. None: what follows the branch does not follow this side.
fn sides(body: &[Stmt]) -> Option<HashSet<VarId>> {
    (!body.last().is_some_and(Stmt::ends_list)).then(|| surely_assigned(body))
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
            | Op::Ctx(Ctx::Tick | Ctx::Index | Ctx::Stopped)
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
        Stmt::FetchAdd { .. } | Stmt::Emit { .. } | Stmt::KeyPart { .. } => true,
        Stmt::Atomic { site, .. } => site.is_none(),
        Stmt::Call { func, depth, .. } => {
            let callee = &effects[func.index()];
            depth.is_none() && !callee.stops && !callee.loops
        }
        Stmt::If { .. } | Stmt::Block { .. } => stmt.bodies().iter().all(|b| b.iter().all(|s| completes(s, effects))),
        Stmt::Alloc { .. }
        | Stmt::Try { .. }
        | Stmt::Meet { .. }
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
    /// Whether the register, once assigned, is a row of some space.
    pub fn is_reference(&self, row: VarId) -> bool {
        matches!(reference(&self.0, row.into()), Reference::To(_))
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
