//! Makes the statements of a group of jobs from those of one job.
//!
//! Here: a statement that is alike for all jobs runs once. A statement that differs runs once for each job, one
//! directly after the other. The group tests where it must give up, which means that its jobs run singly. Not here:
//! which registers are alike ([`super::shapes`]).

use super::leaving::{Exit, exit, is_defined_for_all};
use super::parting::{self, Facts, Parting, raises};
use super::shapes::{ComparedStep, Guard, Shape, Shapes, number};
use super::{Division, Exits, REPEATED, Registers, fresh, leave, op};
use crate::ir::visit::size;
use crate::ir::{CheckedOp, Cmp, Func, LabelId, Op, Operand, Scalar, Stmt, Var, VarId, walk};
use crate::passes::if_combine::Condition;
use crate::passes::loops::{Counts, is_movable};
use std::collections::{HashMap, HashSet};

pub struct Weaver<'a> {
    func: &'a mut Func,
    single: &'a Func,
    shapes: &'a Shapes,
    exits: &'a Exits,
    /// Facts for jobs that may part. None: they may not.
    facts: Option<&'a Facts<'a>>,
    /// The division that gives a job's row, and the operand with the number of jobs in a row, which is a parameter of
    /// the launch.
    across: Option<(&'a Division, Operand)>,
    /// The registers that hold each job's value, or the first job's alone.
    lanes: Vec<Vec<VarId>>,
    /// Pairs of registers that belong to no job by themselves.
    made: Vec<[VarId; 2]>,
    labels: HashMap<LabelId, LabelId>,
    in_loop: bool,
    /// For each job, a register that says whether it is still in the innermost loop that the jobs leave apart. None: in
    /// no such loop.
    staying: Option<Vec<VarId>>,
    /// Registers that were computed before all else ([`Weaver::ahead`]).
    ahead: HashSet<VarId>,
    /// Of conditions that two jobs decide: whether the value wraps around in between ([`Weaver::edges`]). Then the
    /// group gives up.
    edges: HashMap<VarId, Operand>,
    /// Conditions that have this value in no job of the group.
    never: HashSet<(VarId, bool)>,
    /// Whether something was stored. From then on the group must not give up.
    stored: bool,
    /// The index and the tick of the latest `Begin`.
    begun: Option<[Operand; 2]>,
    turn: Turn,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// No job has had its turn.
    None,
    /// One job after the other runs the remaining statements.
    Now,
    /// All jobs have had their turns.
    Over,
}

/// The operation without its check.
fn wrapping(op: CheckedOp) -> Op {
    match op {
        CheckedOp::Add => Op::Add,
        CheckedOp::Sub => Op::Sub,
        CheckedOp::Mul => Op::Mul,
        CheckedOp::And => Op::And,
    }
}

impl<'a> Weaver<'a> {
    /// `jobs`: the numbers of all jobs of the group.
    pub fn new(
        func: &'a mut Func,
        single: &'a Func,
        shapes: &'a Shapes,
        jobs: &[Operand],
        exits: &'a Exits,
        facts: Option<&'a Facts<'a>>,
        across: Option<(&'a Division, Operand)>,
    ) -> Self {
        let mut lanes = Vec::with_capacity(single.vars.len());
        for (index, var) in single.vars.iter().enumerate() {
            let several = matches!(shapes.operand(VarId::new(index).into()), Shape::Differs | Shape::Row);
            let count = if several { jobs.len() } else { 1 };
            let new = |func: &mut Func| {
                func.vars.push(Var { ty: var.ty, name: var.name.clone() });
                VarId::new(func.vars.len() - 1)
            };
            lanes.push((0..count).map(|_| new(func)).collect::<Vec<_>>());
        }
        // parameters other than the job are the same registers; the shapes were computed for these jobs
        let [job, rest @ ..] = &single.params[..] else { unreachable!("an entry is given its job") };
        rest.iter().for_each(|v| lanes[v.index()] = vec![*v]);
        let register = |job: &Operand| if let Operand::Var(v) = job { *v } else { unreachable!("it was computed") };
        let count = lanes[job.index()].len();
        lanes[job.index()] = jobs[..count].iter().map(register).collect();
        Self {
            func,
            single,
            shapes,
            exits,
            facts,
            across,
            lanes,
            made: Vec::new(),
            labels: HashMap::new(),
            in_loop: false,
            staying: None,
            ahead: HashSet::new(),
            edges: HashMap::new(),
            never: HashSet::new(),
            stored: false,
            begun: None,
            turn: Turn::None,
        }
    }

    /// Tests, before all else, the checks that the launch's parameters and the job's number decide alone. If one of the
    /// jobs may raise, the group gives up. Otherwise it needs no such check, and may have stored something before it.
    pub fn ahead(&mut self, out: &mut Vec<Stmt>) -> Option<()> {
        let counts = Counts::of(self.single);
        let mut given: HashMap<VarId, Stmt> = HashMap::new();
        let mut checks = Vec::new();
        let job = Operand::Var(self.single.params[0]);
        walk(&self.single.body, &mut |stmt| match stmt {
            Stmt::Let { dst, op, args } => {
                let is_given = |arg: &Operand| *arg == job || !matches!(arg, Operand::Var(v) if !given.contains_key(v));
                if counts.assigned(*dst) == 1 && is_movable(*op) && args.iter().all(is_given) {
                    given.insert(*dst, stmt.clone());
                }
            }
            Stmt::If { cond: Operand::Var(cond), then, otherwise } if given.contains_key(cond) => {
                if raises(then) {
                    checks.push((*cond, true));
                } else if raises(otherwise) {
                    checks.push((*cond, false));
                }
            }
            _ => {}
        });
        for (cond, on) in checks {
            if !self.never.insert((cond, on)) {
                continue;
            }
            self.given(cond, &mut given, out)?;
            let lanes = if self.shapes.operand(cond.into()) == Shape::Same { 1 } else { self.width() };
            let conds: Vec<Operand> = (0..lanes).map(|lane| self.lane(cond.into(), lane, out)).collect();
            let all = self.folded(if on { Op::Or } else { Op::And }, conds, out);
            let (singly, on_way) = (vec![Stmt::Break(self.exits.singly)], Vec::new());
            let (then, otherwise) = if on { (singly, on_way) } else { (on_way, singly) };
            out.push(Stmt::If { cond: all, then, otherwise });
        }
        Some(())
    }

    /// What a check runs if it does not raise, where it is known that it does not.
    fn past_check<'s>(&self, stmt: &'s Stmt) -> Option<&'s [Stmt]> {
        let Stmt::If { cond: Operand::Var(cond), then, otherwise } = stmt else { return None };
        let passes = |raising: &[Stmt], on| raises(raising) && self.never.contains(&(*cond, on));
        match (passes(then, true), passes(otherwise, false)) {
            (true, _) => Some(otherwise),
            (_, true) => Some(then),
            _ => None,
        }
    }

    /// Emits the statements that compute a register, if they were not emitted.
    fn given(&mut self, v: VarId, given: &mut HashMap<VarId, Stmt>, out: &mut Vec<Stmt>) -> Option<()> {
        let Some(stmt) = given.remove(&v) else { return Some(()) };
        let mut operands = Vec::new();
        stmt.reads(|operand| operands.push(operand));
        for operand in operands {
            if let Operand::Var(v) = operand {
                self.given(v, given, out)?;
            }
        }
        self.stmt(&stmt, out)?;
        self.ahead.insert(v);
        Some(())
    }

    /// Notes whether two jobs decide a condition for all: whether the value that it compares wraps around in between.
    fn edges(&mut self, dst: VarId, out: &mut Vec<Stmt>) {
        if let Some(ComparedStep { order, value, by }) = self.shapes.compared_step(dst) {
            let wraps = self.wraps(value, by, self.width() - 1, order, out);
            self.edges.insert(dst, wraps);
        }
    }

    /// A branch whose side the group's first and last job choose. The group gives up if they do not choose the same.
    fn agreed(&mut self, cond: Operand, out: &mut Vec<Stmt>) -> Option<Operand> {
        self.may_end()?;
        // what a job compares that has left a loop is no matter of the group
        let Operand::Var(v) = cond else { return None };
        let wraps = self.edges.get(&v).copied().filter(|_| self.staying.is_none())?;
        let [first, last] = [0, self.width() - 1].map(|job| self.lane(cond, job, out));
        let differ = self.truth(Op::Xor, vec![first, last], out);
        let gives_up = self.truth(Op::Or, vec![differ, wraps], out);
        out.push(leave(gives_up, self.exits.singly));
        Some(first)
    }

    /// None: a group cannot run this list.
    pub fn list(&mut self, body: &[Stmt]) -> Option<Vec<Stmt>> {
        let mut out = Vec::new();
        for (at, stmt) in body.iter().enumerate() {
            if self.begins_turns(stmt) {
                self.take_turns(&body[at..], &mut out)?;
                break;
            }
            self.stmt(stmt, &mut out)?;
            if out.last().is_some_and(Stmt::ends_list) {
                break;
            }
        }
        Some(out)
    }

    /// What is known of the registers.
    pub fn registers(self) -> Registers {
        let is_lane = |lanes: &&Vec<VarId>| matches!(self.func.vars[lanes[0].index()].ty, Scalar::F64 | Scalar::Bool);
        let mut pairs = self.made;
        pairs.extend(self.lanes.iter().filter(is_lane).flat_map(|lanes| lanes.as_chunks().0.to_vec()));
        let apart = self.facts.map_or_else(Vec::new, |facts| parting::apart(self.single, self.shapes, facts));
        let apart = apart.into_iter().flat_map(|v| self.lanes[v.index()].clone()).collect();
        Registers { pairs, apart }
    }

    fn width(&self) -> usize {
        self.shapes.width() as usize
    }

    fn stmt(&mut self, stmt: &Stmt, out: &mut Vec<Stmt>) -> Option<()> {
        self.is_allowed(stmt)?;
        if let Some(rest) = self.past_check(stmt) {
            return self.statements(rest, out);
        }
        match stmt {
            Stmt::Let { dst, .. } if self.ahead.contains(dst) => {}
            Stmt::Let { dst, op, args } => self.assign(*dst, *op, args, out)?,
            Stmt::Load { dst, column, row } => {
                let dsts = self.lanes[dst.index()].clone();
                if dsts.len() > 1 && self.shapes.operand(*row) == Shape::Same {
                    let once = fresh(self.func, self.single.ty((*dst).into()));
                    let row = self.lane(*row, 0, out);
                    out.push(Stmt::Load { dst: once, column: *column, row });
                    self.share(once, &dsts, out);
                    return Some(());
                }
                let rows: Vec<Operand> = (0..dsts.len()).map(|lane| self.lane(*row, lane, out)).collect();
                let loads = dsts.into_iter().zip(rows);
                out.extend(loads.map(|(dst, row)| Stmt::Load { dst, column: *column, row }));
            }
            Stmt::Checked { dst, op, args, site } => {
                self.may_end()?;
                let shapes = args.map(|arg| self.shapes.operand(arg));
                let steps = matches!(self.shapes.operand((*dst).into()), Shape::Step { .. });
                if self.staying.is_some() || (steps && shapes != [Shape::Same; 2]) {
                    return self.sum_or_singly(*dst, *op, *args, out);
                }
                if shapes != [Shape::Same; 2] {
                    return None;
                }
                let args = args.map(|arg| self.lane(arg, 0, out));
                for lane in self.lanes[dst.index()].clone() {
                    out.push(Stmt::Checked { dst: lane, op: *op, args, site: *site });
                }
            }
            Stmt::Store { column, row, value } => {
                // if all jobs store to one place, the last would win; a store in a loop may be followed by a test that
                // gives up
                if self.in_loop || self.shapes.operand(*row) == Shape::Same {
                    return None;
                }
                self.stored = true;
                for lane in 0..self.width() {
                    let (row, value) = (self.lane(*row, lane, out), self.lane(*value, lane, out));
                    out.push(Stmt::Store { column: *column, row, value });
                }
            }
            Stmt::If { .. } if self.shapes.is_exit(stmt) => self.exit(exit(stmt)?, out)?,
            Stmt::If { cond, then, otherwise }
                if self.shapes.operand(*cond) == Shape::Same || self.shapes.agrees(stmt) =>
            {
                let cond = match self.shapes.operand(*cond) {
                    Shape::Same => self.lane(*cond, 0, out),
                    _ => self.agreed(*cond, out)?,
                };
                // each side by itself
                let before = (self.stored, self.turn);
                let then = self.list(then)?;
                let (stored, turn) = (self.stored, self.turn);
                (self.stored, self.turn) = before;
                let otherwise = self.list(otherwise)?;
                self.stored |= stored;
                if self.turn == Turn::None {
                    self.turn = turn;
                }
                out.push(Stmt::If { cond, then, otherwise });
            }
            Stmt::If { cond, then, otherwise } => self.part(*cond, then, otherwise, out)?,
            Stmt::Block { label, body } => {
                let label = self.label(*label);
                let body = self.list(body)?;
                out.push(Stmt::Block { label, body });
            }
            Stmt::Loop { label, body } => {
                self.may_end()?;
                let staying = self.staying.clone();
                if self.shapes.is_leaving(*label) {
                    self.stay(out);
                }
                let label = self.label(*label);
                let around = std::mem::replace(&mut self.in_loop, true);
                let body = self.list(body)?;
                self.in_loop = around;
                self.staying = staying;
                out.push(Stmt::Loop { label, body });
            }
            Stmt::Break(label) => out.push(Stmt::Break(self.label(*label))),
            Stmt::Return(_) => out.push(Stmt::Break(self.exits.done)),
            // it may not be the first job's exception
            Stmt::Trap { .. } if self.staying.is_some() => {
                self.may_end()?;
                out.push(Stmt::Break(self.exits.singly));
            }
            Stmt::Trap { site, operands } => {
                self.may_end()?;
                let operands = operands.iter().map(|o| self.lane(*o, 0, out)).collect();
                out.push(Stmt::Trap { site: *site, operands });
            }
            Stmt::Poll => {
                self.may_end()?;
                out.push(Stmt::Poll);
            }
            Stmt::Begin { index, tick, check } => {
                self.may_end()?;
                self.begun = Some([*index, *tick]);
                self.begin(0, *check, out)?;
            }
            // statements that shapes refuse
            _ => return None,
        }
        Some(())
    }

    /// Whether from this statement on each job runs the remaining statements by itself: it changes what other jobs
    /// change too, or may do so.
    fn begins_turns(&self, stmt: &Stmt) -> bool {
        let alone = match stmt {
            Stmt::Atomic { .. } | Stmt::FetchAdd { .. } => true,
            Stmt::If { cond, .. } => self.shapes.operand(*cond) != Shape::Same,
            _ => false,
        };
        alone && parting::changes_together(std::slice::from_ref(stmt))
    }

    /// Emits the remaining statements of a list for one job after the other.
    fn take_turns(&mut self, rest: &[Stmt], out: &mut Vec<Stmt>) -> Option<()> {
        let (rest, leaves) = match rest {
            [rest @ .., leaves @ (Stmt::Return(_) | Stmt::Break(_))] => (rest, Some(leaves)),
            rest => (rest, None),
        };
        // a job whose turn is over would reach the code that follows before the jobs whose turn is still to come
        if self.turn != Turn::None || self.in_loop || size(rest) * self.width() > REPEATED {
            return None;
        }
        // if jobs share a register, the first job's turn would change its value for the others
        let mut assigned: Vec<VarId> = Vec::new();
        walk(rest, &mut |stmt| assigned.extend(stmt.assigns()));
        if assigned.into_iter().any(|v| self.lanes[v.index()].len() == 1 && self.shapes.is_assigned_again(v)) {
            return None;
        }
        self.turn = Turn::Now;
        for lane in 0..self.width() {
            self.begin(lane, false, out)?;
            self.alone(rest, lane, out)?;
            // if the first job's turn always raises, the others are not reached
            if out.last().is_some_and(Stmt::ends_list) {
                break;
            }
        }
        self.turn = Turn::Over;
        leaves.map_or(Some(()), |leaves| self.stmt(leaves, out))
    }

    /// One job of the group begins the index and tick that the group has begun.
    fn begin(&mut self, lane: usize, check: bool, out: &mut Vec<Stmt>) -> Option<()> {
        let [index, tick] = self.begun?.map(|operand| self.lane(operand, lane, out));
        out.push(Stmt::Begin { index, tick, check });
        Some(())
    }

    fn label(&mut self, label: LabelId) -> LabelId {
        let func = &mut *self.func;
        *self.labels.entry(label).or_insert_with(|| super::label(func))
    }

    /// Refuses to give up after a store, since the jobs would store again.
    fn may_end(&self) -> Option<()> {
        (!self.stored).then_some(())
    }

    /// The operand's value in one job of the group.
    fn lane(&mut self, operand: Operand, lane: usize, out: &mut Vec<Stmt>) -> Operand {
        let Operand::Var(v) = operand else { return operand };
        let first = self.lanes[v.index()][0].into();
        match self.shapes.operand(operand) {
            Shape::Same => first,
            Shape::Step { .. } if lane == 0 => first,
            Shape::Step { by, .. } => {
                let more = number(self.single.ty(operand), by * lane as i64);
                op(self.func, Op::Add, [first, more], out)
            }
            Shape::Row | Shape::Differs => self.lanes[v.index()][lane].into(),
        }
    }

    fn assign(&mut self, dst: VarId, op: Op, args: &[Operand], out: &mut Vec<Stmt>) -> Option<()> {
        if let Some(divisor) = self.shapes.divides(dst) {
            self.test_across(divisor, out)?;
        }
        if let (_, Some(guard)) = self.shapes.assigned(op, args, self.in_loop)?? {
            self.guard(guard, dst, op, args, out)?;
        }
        let dsts = self.lanes[dst.index()].clone();
        if dsts.len() > 1 && op != Op::Copy && args.iter().all(|arg| self.shapes.operand(*arg) == Shape::Same) {
            let once = fresh(self.func, self.single.ty(dst.into()));
            let args = args.iter().map(|arg| self.lane(*arg, 0, out)).collect();
            out.push(Stmt::Let { dst: once, op, args });
            self.share(once, &dsts, out);
            return Some(());
        }
        let args: Vec<_> =
            (0..dsts.len()).map(|lane| args.iter().map(|arg| self.lane(*arg, lane, out)).collect()).collect();
        out.extend(dsts.into_iter().zip(args).map(|(dst, args)| Stmt::Let { dst, op, args }));
        self.edges(dst, out);
        Some(())
    }

    /// A checked sum or difference. If it overflows for any job, the group gives up: the first job, whose exception the
    /// check would raise, may have left the loop, or not overflow.
    fn sum_or_singly(&mut self, dst: VarId, op: CheckedOp, args: [Operand; 2], out: &mut Vec<Stmt>) -> Option<()> {
        let (ty, lanes) = (self.single.ty(dst.into()), self.lanes[dst.index()].clone());
        let steps = args.into_iter().find_map(|arg| Some((arg, self.step(arg)?)));
        let jobs: Vec<usize> = match steps {
            None if args.iter().all(|arg| self.shapes.operand(*arg) == Shape::Same) => vec![0],
            // where the operand wraps around between no two jobs, and the result neither in the first nor in the last,
            // it does so in none
            Some(_) if lanes.len() == 1 => vec![0, self.width() - 1],
            _ => (0..self.width()).collect(),
        };
        let (mut results, mut signs) = (Vec::new(), None);
        for job in &jobs {
            let [one, other] = args.map(|arg| self.lane(arg, *job, out));
            let result = super::op(self.func, wrapping(op), [one, other], out);
            // both signs differ from the result's; of a difference, the signs of its operands differ, and those of the
            // first operand and the result
            let with = if op == CheckedOp::Add { result } else { one };
            let own =
                [super::op(self.func, Op::Xor, [one, result], out), super::op(self.func, Op::Xor, [with, other], out)];
            let own = super::op(self.func, Op::And, own, out);
            signs = Some(signs.map_or(own, |all| super::op(self.func, Op::Or, [all, own], out)));
            results.push(result);
        }
        let overflows = super::test(self.func, Cmp::Lt, signs?, number(ty, 0), out);
        out.push(leave(overflows, self.exits.singly));
        if let (Some((arg, by)), [_, last]) = (steps, &jobs[..]) {
            let wraps = self.wraps(arg, by, *last, Op::ICmp, out);
            out.push(leave(wraps, self.exits.singly));
        }
        let result = |lane: usize| results[if jobs.len() == lanes.len() { lane } else { 0 }];
        let copies = lanes.iter().enumerate();
        out.extend(copies.map(|(lane, dst)| Stmt::Let { dst: *dst, op: Op::Copy, args: vec![result(lane)] }));
        Some(())
    }

    /// By how much a value steps from job to job.
    fn step(&self, operand: Operand) -> Option<i64> {
        match self.shapes.operand(operand) {
            Shape::Step { by, .. } => Some(by),
            _ => None,
        }
    }

    /// Whether a value that steps by so much wraps around between the first job and this one, in the order of such
    /// comparisons.
    fn wraps(&mut self, operand: Operand, by: i64, last: usize, order: fn(Cmp) -> Op, out: &mut Vec<Stmt>) -> Operand {
        let [first, last] = [0, last].map(|job| self.lane(operand, job, out));
        self.truth(order(if by < 0 { Cmp::Gt } else { Cmp::Lt }), vec![last, first], out)
    }

    /// Copies a value that all jobs have in common to each job's register, where later assignments will differ. Each
    /// job has a register of its own, so that no job's assignment changes another's value.
    fn share(&self, once: VarId, dsts: &[VarId], out: &mut Vec<Stmt>) {
        out.extend(dsts.iter().map(|dst| Stmt::Let { dst: *dst, op: Op::Copy, args: vec![once.into()] }));
    }

    /// Gives up if the number of jobs in a row is not what the launch says.
    fn test_across(&mut self, divisor: Operand, out: &mut Vec<Stmt>) -> Option<()> {
        let (_, across) = self.across?;
        self.may_end()?;
        let divisor = self.lane(divisor, 0, out);
        let wide = match self.func.ty(divisor) {
            Scalar::I32 => {
                let dst = fresh(self.func, Scalar::I64);
                out.push(Stmt::Let { dst, op: Op::Widen, args: vec![divisor] });
                dst.into()
            }
            _ => divisor,
        };
        let other = super::test(self.func, Cmp::Ne, wide, across, out);
        out.push(leave(other, self.exits.singly));
        Some(())
    }

    /// Gives up if the guard does not hold for the last job's result.
    fn guard(&mut self, guard: Guard, dst: VarId, op: Op, args: &[Operand], out: &mut Vec<Stmt>) -> Option<()> {
        self.may_end()?;
        let last = self.width() - 1;
        let ends = [0, last].map(|lane| args.iter().map(|arg| self.lane(*arg, lane, out)).collect::<Vec<_>>());
        // no value between the first and the last wraps around
        let unsigned = matches!(op, Op::UDiv | Op::URem);
        let wraps = fresh(self.func, Scalar::Bool);
        let less = if unsigned { Op::UCmp(Cmp::Lt) } else { Op::ICmp(Cmp::Lt) };
        out.push(Stmt::Let { dst: wraps, op: less, args: vec![ends[1][0], ends[0][0]] });
        out.push(leave(wraps.into(), self.exits.singly));
        let ty = self.single.ty(dst.into());
        let [first, other] = ends.map(|args| {
            let dst = fresh(self.func, ty);
            out.push(Stmt::Let { dst, op, args });
            Operand::from(dst)
        });
        let expected = match (guard, self.shapes.operand(args[0])) {
            (Guard::Stepping, Shape::Step { by, .. }) => {
                super::op(self.func, Op::Add, [first, number(ty, by * last as i64)], out)
            }
            _ => first,
        };
        let apart = super::test(self.func, Cmp::Ne, other, expected, out);
        out.push(leave(apart, self.exits.singly));
        Some(())
    }

    /// A branch in which jobs may part. If one of them raises, the group gives up; otherwise each job takes its own
    /// side.
    fn part(&mut self, cond: Operand, then: &[Stmt], otherwise: &[Stmt], out: &mut Vec<Stmt>) -> Option<()> {
        let (all, rest) = match (raises(then), raises(otherwise)) {
            (true, _) => (Op::Or, otherwise),
            (_, true) => (Op::And, then),
            _ => return self.part_ways(cond, then, otherwise, out),
        };
        self.may_end()?;
        let wraps = match cond {
            Operand::Var(v) => self.edges.get(&v).copied(),
            _ => None,
        };
        let last = self.width() - 1;
        let mut cond_of_all = self.lane(cond, 0, out);
        for lane in if wraps.is_some() { last..last + 1 } else { 1..last + 1 } {
            let next = self.lane(cond, lane, out);
            cond_of_all = op(self.func, all, [cond_of_all, next], out);
        }
        if let Some(wraps) = wraps {
            let gives_up = if all == Op::Or { wraps } else { self.truth(Op::Not, vec![wraps], out) };
            cond_of_all = op(self.func, all, [cond_of_all, gives_up], out);
        }
        let (then, otherwise) = match all {
            Op::Or => (vec![Stmt::Break(self.exits.singly)], Vec::new()),
            _ => (Vec::new(), vec![Stmt::Break(self.exits.singly)]),
        };
        out.push(Stmt::If { cond: cond_of_all, then, otherwise });
        self.statements(rest, out)
    }

    fn statements(&mut self, list: &[Stmt], out: &mut Vec<Stmt>) -> Option<()> {
        for stmt in list {
            self.stmt(stmt, out)?;
            if out.last().is_some_and(Stmt::ends_list) {
                break;
            }
        }
        Some(())
    }

    /// Whether a job that has left a loop may run the statement. None: it may not.
    fn is_allowed(&self, stmt: &Stmt) -> Option<()> {
        (self.staying.is_none() || is_defined_for_all(stmt, self.shapes)).then_some(())
    }

    /// Before a loop that jobs leave apart: every job stays that is still in the loop around it.
    fn stay(&mut self, out: &mut Vec<Stmt>) {
        let around = self.staying.take();
        let mut staying = Vec::new();
        for lane in 0..self.width() {
            let value = around.as_ref().map_or(Operand::Bool(true), |around| around[lane].into());
            let Operand::Var(dst) = self.truth(Op::Copy, vec![value], out) else { unreachable!("it is a register") };
            staying.push(dst);
        }
        self.made.extend(staying.as_chunks().0);
        self.staying = Some(staying);
    }

    /// Emits the exit of a loop that jobs leave apart:
    ///
    /// ```text
    /// leaves = cond and staying, of each job
    /// if any leaves {
    ///   if leaves(0) { …its values… }; if leaves(1) { … }; …
    ///   staying = staying and not leaves, of each job
    ///   break unless any stays
    /// }
    /// ```
    fn exit(&mut self, exit: Exit, out: &mut Vec<Stmt>) -> Option<()> {
        self.may_end()?;
        let staying = self.staying.clone()?;
        let last = Stmt::Break(self.label(exit.to?));
        let mut leaving = Vec::new();
        if self.shapes.operand(exit.cond) == Shape::Same {
            for (lane, stays) in staying.into_iter().enumerate() {
                let mut side = Vec::new();
                self.alone(exit.side, lane, &mut side)?;
                leaving.push(Stmt::If { cond: stays.into(), then: side, otherwise: Vec::new() });
            }
            leaving.push(last);
            let cond = self.lane(exit.cond, 0, out);
            let (then, otherwise) = if exit.on { (leaving, Vec::new()) } else { (Vec::new(), leaving) };
            out.push(Stmt::If { cond, then, otherwise });
            return Some(());
        }
        let mut conds: Vec<_> = (0..self.width()).map(|lane| self.lane(exit.cond, lane, out)).collect();
        if !exit.on {
            conds = self.each_truth(Op::Not, &[&conds], out);
        }
        let staying: Vec<Operand> = staying.into_iter().map(Operand::from).collect();
        let leaves = self.each_truth(Op::And, &[&conds, &staying], out);
        let any = self.folded(Op::Or, leaves.clone(), out);
        for (lane, leaves) in leaves.iter().enumerate() {
            let mut side = Vec::new();
            self.alone(exit.side, lane, &mut side)?;
            leaving.push(Stmt::If { cond: *leaves, then: side, otherwise: Vec::new() });
        }
        let others = self.each_truth(Op::Not, &[&leaves], &mut leaving);
        for (lane, other) in staying.iter().zip(others) {
            let Operand::Var(dst) = *lane else { unreachable!("it is a register") };
            leaving.push(Stmt::Let { dst, op: Op::And, args: vec![*lane, other] });
        }
        let some = self.folded(Op::Or, staying, &mut leaving);
        leaving.push(Stmt::If { cond: some, then: Vec::new(), otherwise: vec![last] });
        out.push(Stmt::If { cond: any, then: leaving, otherwise: Vec::new() });
        Some(())
    }

    /// Emits the statements that all jobs may run, then one branch for the case that all jobs skip the rest, then the
    /// rest for each job that does not:
    ///
    /// ```text
    /// all = skips(0) and skips(1) and …; if !all { if !skips(0) { … }; if !skips(1) { … }; … }
    /// ```
    fn part_ways(&mut self, cond: Operand, then: &[Stmt], otherwise: &[Stmt], out: &mut Vec<Stmt>) -> Option<()> {
        let facts = self.facts?;
        let branch = Stmt::If { cond, then: then.to_vec(), otherwise: otherwise.to_vec() };
        let parting = Parting::of(&branch, facts).filter(|_| self.in_loop);
        let Some(parting) = parting else {
            return (0..self.width()).try_for_each(|lane| self.alone(std::slice::from_ref(&branch), lane, out));
        };
        for stmt in &parting.ahead {
            self.stmt(stmt, out)?;
        }
        let all = self.all_skip(&parting.tests(facts), out);
        let mut each = Vec::new();
        for lane in 0..self.width() {
            let mut body = Vec::new();
            self.alone(parting.rest, lane, &mut body)?;
            for (cond, on) in parting.skips.iter().rev() {
                let cond = self.lane(*cond, lane, &mut each);
                let (then, otherwise) = if *on { (Vec::new(), body) } else { (body, Vec::new()) };
                body = vec![Stmt::If { cond, then, otherwise }];
            }
            each.extend(body);
        }
        out.push(Stmt::If { cond: all, then: Vec::new(), otherwise: each });
        Some(())
    }

    /// Whether every job skips what follows, by one of these conditions. Values of neighbouring jobs are computed
    /// directly one after the other.
    fn all_skip(&mut self, tests: &[Condition], out: &mut Vec<Stmt>) -> Operand {
        let mut all: Option<Vec<Operand>> = None;
        for (cond, on) in tests {
            let mut skips: Vec<_> = (0..self.width()).map(|lane| self.lane(*cond, lane, out)).collect();
            if !on {
                skips = self.each_truth(Op::Not, &[&skips], out);
            }
            all = Some(match all {
                None => skips,
                Some(before) => self.each_truth(Op::Or, &[&before, &skips], out),
            });
        }
        self.folded(Op::And, all.expect("a branch has a condition"), out)
    }

    /// An operation on the truth values of each job.
    fn each_truth(&mut self, op: Op, args: &[&[Operand]], out: &mut Vec<Stmt>) -> Vec<Operand> {
        let each = |lane: usize| args.iter().map(|arg| arg[lane]).collect();
        let found: Vec<_> = (0..args[0].len()).map(|lane| self.truth(op, each(lane), out)).collect();
        self.note_pairs(&found);
        found
    }

    /// The truth values of all jobs as one, by `and` or `or`.
    fn folded(&mut self, op: Op, mut all: Vec<Operand>, out: &mut Vec<Stmt>) -> Operand {
        while all.len() > 1 {
            // of four, the first with the third, then the second with the fourth: that makes two vectors
            let (one, other) = all.split_at(all.len() / 2);
            all = self.each_truth(op, &[one, other], out);
        }
        all[0]
    }

    fn truth(&mut self, op: Op, args: Vec<Operand>, out: &mut Vec<Stmt>) -> Operand {
        let dst = fresh(self.func, Scalar::Bool);
        out.push(Stmt::Let { dst, op, args });
        dst.into()
    }

    /// Notes registers that this code made. Two that are next to each other may become a vector.
    fn note_pairs(&mut self, registers: &[Operand]) {
        let registers: Vec<VarId> =
            registers.iter().filter_map(|o| if let Operand::Var(v) = o { Some(*v) } else { None }).collect();
        self.made.extend(registers.as_chunks().0);
    }

    /// Emits statements for one job alone, which assign its own registers. A value that is alike in all jobs is alike
    /// even if only some jobs compute it. None: the statements are not of this kind.
    fn alone(&mut self, list: &[Stmt], lane: usize, out: &mut Vec<Stmt>) -> Option<()> {
        for stmt in list {
            self.is_allowed(stmt)?;
            match stmt {
                Stmt::Let { dst, op, args } => {
                    if self.shapes.divides(*dst).is_some() {
                        return None;
                    }
                    let (_, None) = self.shapes.assigned(*op, args, self.in_loop)?? else { return None };
                    let (dst, lane) = self.own(*dst, lane);
                    let args = args.iter().map(|arg| self.lane(*arg, lane, out)).collect();
                    out.push(Stmt::Let { dst, op: *op, args });
                }
                // a job that has left a loop may come to this branch, which no job that is in the loop may have taken
                Stmt::Load { .. } if self.staying.is_some() => return None,
                Stmt::Load { dst, column, row } => {
                    let (dst, lane) = self.own(*dst, lane);
                    let row = self.lane(*row, lane, out);
                    out.push(Stmt::Load { dst, column: *column, row });
                }
                Stmt::Store { column, row, value } => {
                    if self.in_loop || self.shapes.operand(*row) == Shape::Same {
                        return None;
                    }
                    self.stored = true;
                    let (row, value) = (self.lane(*row, lane, out), self.lane(*value, lane, out));
                    out.push(Stmt::Store { column: *column, row, value });
                }
                Stmt::Atomic { op, column, row, value, site } if self.turn == Turn::Now => {
                    self.stored = true;
                    let (row, value) = (self.lane(*row, lane, out), self.lane(*value, lane, out));
                    out.push(Stmt::Atomic { op: *op, column: *column, row, value, site: *site });
                }
                Stmt::FetchAdd { dst, column, row, value } if self.turn == Turn::Now => {
                    self.stored = true;
                    let (dst, lane) = self.own(*dst, lane);
                    let (row, value) = (self.lane(*row, lane, out), self.lane(*value, lane, out));
                    out.push(Stmt::FetchAdd { dst, column: *column, row, value });
                }
                Stmt::Checked { dst, op, args, site } if self.turn == Turn::Now => {
                    let own = args.map(|arg| self.lane(arg, lane, out));
                    let steps = self.step((*dst).into()).is_some();
                    let checked =
                        if steps { fresh(self.func, self.single.ty((*dst).into())) } else { self.own(*dst, lane).0 };
                    out.push(Stmt::Checked { dst: checked, op: *op, args: own, site: *site });
                    if steps {
                        // the register has the first job's value
                        let args = args.map(|arg| self.lane(arg, 0, out)).to_vec();
                        out.push(Stmt::Let { dst: self.lanes[dst.index()][0], op: wrapping(*op), args });
                    }
                }
                Stmt::Trap { site, operands } if self.turn == Turn::Now => {
                    let operands = operands.iter().map(|o| self.lane(*o, lane, out)).collect();
                    out.push(Stmt::Trap { site: *site, operands });
                }
                Stmt::If { cond, then, otherwise } => {
                    let cond = self.lane(*cond, lane, out);
                    let mut sides = [Vec::new(), Vec::new()];
                    self.alone(then, lane, &mut sides[0])?;
                    self.alone(otherwise, lane, &mut sides[1])?;
                    let [then, otherwise] = sides;
                    out.push(Stmt::If { cond, then, otherwise });
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// The job's own register; if all jobs share one, the first job's register.
    fn own(&self, v: VarId, lane: usize) -> (VarId, usize) {
        let lanes = &self.lanes[v.index()];
        if lanes.len() > 1 { (lanes[lane], lane) } else { (lanes[0], 0) }
    }
}
