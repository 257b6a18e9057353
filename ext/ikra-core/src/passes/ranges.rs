//! Range analysis: bounds every Integer, and drops the checks that then cannot fail.
//!
//! Each register has an interval at every point. Intervals come from constants, masks, remainders, lengths and the
//! conditions of the branches around. Intervals of Floats ([`super::floats`]) come from arithmetic alone; they show,
//! for example, that no sum of squares is negative. The pass uses intervals as follows:
//!
//! * Checked arithmetic that stays inside 64 bits becomes plain arithmetic.
//! * A comparison whose answer is known becomes a constant. Then [`super::gvn`] drops the tests for a zero divisor or a
//!   negative index.
//! * A division of numbers that are not negative becomes unsigned, and one of 32 bits where both operands fit.
//! * A loop that ends soon loses its poll ([`super::polls`]).
//!
//! At the head of a loop, an interval must be one that the body preserves. The pass starts with the interval at the
//! entry. If the body leaves it, the pass widens it to 32 bits, then to a bound of the type. Then it narrows the
//! interval once, if the body preserves the narrower one as well. The number of repetitions bounds registers that the
//! loop only counts ([`super::induction_steps`]).

use super::Pass;
use super::demanded_bits::wrapping;
use super::facts::{Fact, Facts};
use super::floats;
use super::induction_steps;
use super::polls;
use super::relations::{Form, Relations};
use crate::ir::effects::Effects;
use crate::ir::{
    ASSUMED_LIMIT, AssumedRows, Cmp, Ctx, Func, Jobs, Op, Operand, Program, Scalar, Stmt, Storage, Var, VarId, walk,
};

pub const PASS: Pass = Pass { name: "ranges", description: "no check that cannot fail", run };

fn run(mut program: Program) -> Program {
    let given = Given::of(&program);
    for (i, func) in program.funcs.iter_mut().enumerate() {
        let mut body = std::mem::take(&mut func.body);
        let mut walker = Walker::new(func, &given, program.entry.index() == i);
        walker.list(&mut body);
        func.body = body;
    }
    program
}

/// For each register of each function, by number: the interval of all values that it is ever assigned. None: it is
/// never assigned.
pub(super) fn seen(program: &Program) -> Vec<Vec<Option<Interval>>> {
    let mut program = program.clone();
    let given = Given::of(&program);
    let entry = program.entry.index();
    let survey = |(i, func): (usize, &mut Func)| {
        let mut body = std::mem::take(&mut func.body);
        let mut seen = vec![None; func.vars.len()];
        // statements other than these assign registers of 64 bits, also where control never comes
        walk(&body, &mut |stmt| match stmt {
            Stmt::Let { .. } | Stmt::Load { .. } => {}
            other => other.assigns().iter().for_each(|dst| seen[dst.index()] = Some(bounds(Scalar::I64))),
        });
        let mut walker = Walker::new(func, &given, i == entry);
        for param in &walker.func.params {
            seen[param.index()] = Some(walker.range(Operand::Var(*param)));
        }
        walker.seen = Some(seen);
        walker.list(&mut body);
        walker.seen.unwrap_or_default()
    };
    program.funcs.iter_mut().enumerate().map(survey).collect()
}

/// Facts that hold for all functions of a program.
struct Given {
    effects: Vec<Effects>,
    storages: Vec<Storage>,
    /// Columns with a value-range assumption.
    ranged: Vec<Option<Interval>>,
    /// The intervals of parameters, where the host gives some.
    params: Vec<Option<Interval>>,
    /// The greatest index of an element, and the greatest number of a job.
    elements: i64,
    jobs: i64,
}

impl Given {
    fn of(program: &Program) -> Self {
        let elements = if program.few { ASSUMED_LIMIT - 1 } else { MAX_ELEMENTS };
        let jobs = match (program.jobs, program.few) {
            (Jobs::Identity, _) => elements,
            // each class begins with a new warp
            (_, true) => 2 * ASSUMED_LIMIT,
            (_, false) => MAX_JOBS,
        };
        Self {
            effects: program.effects(),
            storages: program.columns.iter().map(|c| c.storage).collect(),
            ranged: program.columns.iter().map(|c| c.ranged.map(AssumedRows::interval)).collect(),
            params: program.params.iter().map(|p| p.range).collect(),
            elements,
            jobs,
        }
    }
}

/// A register's interval (of a Bool: 0 and 1), the number of the assignment that gave it its value, and how that value
/// was computed. The last is an index into the walker's definitions (0: not known).
#[derive(Clone, Copy, Debug)]
struct Range {
    lo: i64,
    hi: i64,
    stamp: u32,
    definition: u32,
}

impl Fact for Range {
    fn join(&self, other: &Self, fresh: &mut u32) -> Self {
        let mut joined = Range { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi), ..*self };
        if self.stamp != other.stamp {
            *fresh += 1;
            joined.stamp = *fresh;
        }
        if self.definition != other.definition {
            joined.definition = 0;
        }
        joined
    }
}

/// How a register was computed, with the numbers of the assignments that gave the operands their values.
#[derive(Clone)]
struct Definition {
    op: Op,
    args: Vec<(Operand, u32)>,
}

pub(super) type Interval = (i64, i64);

struct Walker<'a> {
    func: &'a mut Func,
    given: &'a Given,
    /// The union of all values assigned to each register, if the caller asks for it.
    seen: Option<Vec<Option<Interval>>>,
    facts: Facts<Range>,
    definitions: Vec<Definition>,
    relations: Relations,
    /// The number of loops around that are walked on trial. Statements are changed only where it is 0.
    trials: usize,
    /// The greatest product of the repetitions of nested loops since the last reset. None: not known.
    nested: Option<u64>,
}

/// How often a loop's intervals are widened before the pass gives up on them.
const ROUNDS: usize = 6;
/// Within this many loops on trial, the registers that an inner loop assigns are unknown. Trying the inner loop as well
/// would take time exponential in the depth.
const MAX_TRIALS: usize = 2;

impl<'a> Walker<'a> {
    fn new(func: &'a mut Func, given: &'a Given, is_entry: bool) -> Self {
        let initial = func
            .vars
            .iter()
            .enumerate()
            .map(|(i, var)| {
                let (lo, hi) = bounds(var.ty);
                Range { lo, hi, stamp: i as u32 + 1, definition: 0 }
            })
            .collect();
        let mut facts = Facts::new(initial);
        facts.fresh = func.vars.len() as u32 + 1;
        let none = Definition { op: Op::Copy, args: Vec::new() };
        let mut walker = Self {
            func,
            given,
            seen: None,
            facts,
            definitions: vec![none],
            relations: Relations::default(),
            trials: 0,
            nested: Some(1),
        };
        if is_entry {
            walker.entry();
        }
        walker
    }

    /// The entry function is given the job, the first tick and the end.
    fn entry(&mut self) {
        for (param, hi) in self.func.params.clone().into_iter().zip([self.given.jobs, MAX_TICKS, MAX_TICKS]) {
            self.narrow(Operand::Var(param), (0, hi));
            self.relations.is_natural(self.stamp(Operand::Var(param)));
        }
    }

    fn rewrites(&self) -> bool {
        self.trials == 0
    }

    fn range(&self, operand: Operand) -> Interval {
        match operand {
            Operand::Var(v) => {
                let range = self.facts.get(v.index());
                (range.lo, range.hi)
            }
            Operand::Bool(b) => (b.into(), b.into()),
            Operand::I32(i) => (i.into(), i.into()),
            Operand::I64(i) => (i, i),
            Operand::F64(bits) => floats::constant(bits),
        }
    }

    fn stamp(&self, operand: Operand) -> u32 {
        match operand {
            Operand::Var(v) => self.facts.get(v.index()).stamp,
            _ => 0,
        }
    }

    fn assign(&mut self, dst: VarId, (lo, hi): Interval, definition: u32) {
        if self.rewrites()
            && let Some(Some(seen)) = self.seen.as_mut().map(|seen| seen.get_mut(dst.index()))
        {
            *seen = Some(seen.map_or((lo, hi), |(least, most)| (lo.min(least), hi.max(most))));
        }
        self.set(dst, (lo, hi), definition);
    }

    /// Sets the register's interval from here on, after an assignment.
    fn set(&mut self, dst: VarId, (lo, hi): Interval, definition: u32) {
        self.facts.fresh += 1;
        let stamp = self.facts.fresh;
        if lo >= 0 {
            self.relations.is_natural(stamp);
        }
        self.facts.set(dst.index(), Range { lo, hi, stamp, definition });
    }

    /// Intersects the register's interval with this one. An empty intersection is ignored, since control does not come
    /// here then.
    fn narrow(&mut self, operand: Operand, (lo, hi): Interval) {
        if let Operand::Var(v) = operand {
            let range = *self.facts.get(v.index());
            let met = Range { lo: range.lo.max(lo), hi: range.hi.min(hi), ..range };
            if met.lo <= met.hi && (met.lo, met.hi) != (range.lo, range.hi) {
                self.facts.set(v.index(), met);
                if met.lo > range.lo && self.func.vars[v.index()].ty == Scalar::I64 {
                    self.relations.at_least(range.stamp, met.lo);
                }
            }
        }
    }

    fn list(&mut self, body: &mut Vec<Stmt>) {
        let mut at = 0;
        while at < body.len() && self.facts.reached() {
            if let Some(several) = self.stmt(&mut body[at]) {
                let count = several.len();
                body.splice(at..=at, several);
                at += count;
            } else {
                at += 1;
            }
        }
    }

    /// Learns from a statement and changes it. Returns the statements to replace it, if one is not enough.
    fn stmt(&mut self, stmt: &mut Stmt) -> Option<Vec<Stmt>> {
        match stmt {
            Stmt::Let { dst, op, args } => return self.let_(*dst, op, args),
            Stmt::Checked { dst, op, args, .. } => {
                let (dst, op, args) = (*dst, wrapping(*op), *args);
                let (a, b) = (self.range(args[0]), self.range(args[1]));
                // If one of two numbers is not negative, their common bits are no more than that number.
                let least_high = [a, b].iter().filter(|r| r.0 >= 0).map(|r| r.1).min();
                let (exact, fits) = match op {
                    Op::And => ((0, least_high.unwrap_or(i64::MAX)), least_high.is_some()),
                    _ => exact(op, a, b),
                };
                if fits && self.rewrites() {
                    *stmt = Stmt::Let { dst, op, args: args.to_vec() };
                }
                // The operation traps if the result is beyond 64 bits, so a result that is used did not wrap.
                let moves = matches!(op, Op::Add | Op::Sub) && matches!(args[1], Operand::I64(_));
                let definition = if moves { self.define(op, &args) } else { 0 };
                let form = self.sum(op, args);
                let exact = self.not_negative(exact, form.as_ref());
                self.assign(dst, exact, definition);
                self.has_form(dst, form);
            }
            Stmt::Load { dst, column, .. } => {
                let range = match (self.given.storages[column.index()], self.func.vars[dst.index()].ty) {
                    (Storage::U8, Scalar::I32 | Scalar::I64) => (0, 255),
                    (Storage::I32, _) => (i32::MIN.into(), i32::MAX.into()),
                    (_, ty) => self.given.ranged[column.index()].unwrap_or(bounds(ty)),
                };
                self.assign(*dst, range, 0);
            }
            Stmt::FetchAdd { dst, .. } => self.assign(*dst, bounds(Scalar::I64), 0),
            Stmt::Alloc { dst, .. } => {
                let range = match self.func.vars[dst.index()].ty {
                    Scalar::I64 => (0, u32::MAX.into()),
                    ty => bounds(ty),
                };
                self.assign(*dst, range, 0);
            }
            Stmt::If { cond, then, otherwise } => self.branch(cond, then, otherwise),
            Stmt::Block { label, body } => {
                let known = self.relations.mark();
                self.facts.open(*label);
                self.list(body);
                self.facts.close_block();
                // a break may have left the block before some of these facts were learnt
                self.relations.forget(known);
            }
            Stmt::Loop { label, body } => {
                let slots = assigned(body);
                let heads = self.head(*label, body, &slots);
                self.facts.open(*label);
                heads.iter().for_each(|(v, range)| self.set(*v, *range, 0));
                let around = self.nested.replace(1);
                let known = self.relations.mark();
                self.list(body);
                self.relations.forget(known);
                self.facts.close_loop();
                let head = |v: VarId| heads.iter().find(|(slot, _)| *slot == v).map(|(_, range)| *range);
                let repeats = polls::repetitions(body, head)
                    .and_then(|n| self.nested.map(|nested| n.saturating_mul(nested)))
                    .filter(|n| *n <= polls::MAX_REPETITIONS_UNPOLLED);
                if repeats.is_some() && self.rewrites() {
                    polls::remove(body);
                }
                self.nested = around.and_then(|around| repeats.map(|n| around.max(n)));
            }
            Stmt::Try { .. } => unreachable!("`unwind` comes first"),
            Stmt::Break(label) => self.facts.break_to(*label),
            Stmt::Return(_) | Stmt::Trap { .. } => self.facts.end(),
            Stmt::Call { func, dsts, .. } => {
                if self.given.effects[func.index()].loops {
                    self.nested = None;
                }
                for dst in dsts {
                    self.assign(*dst, bounds(self.func.vars[dst.index()].ty), 0);
                }
            }
            Stmt::Meet { dst, .. } => self.assign(*dst, bounds(Scalar::I64), 0),
            Stmt::Store { .. }
            | Stmt::Atomic { .. }
            | Stmt::Emit { .. }
            | Stmt::KeyPart { .. }
            | Stmt::Place(_)
            | Stmt::Poll => {}
            Stmt::Begin { index, .. } => self.narrow(*index, (0, self.given.elements)),
        }
        None
    }

    fn branch(&mut self, cond: &mut Operand, then: &mut Vec<Stmt>, otherwise: &mut Vec<Stmt>) {
        let range = self.range(*cond);
        if range.0 == range.1 {
            if self.rewrites() {
                *cond = Operand::Bool(range.0 == 1);
            }
            return self.list(if range.0 == 1 { then } else { otherwise });
        }
        let (mark, known) = (self.facts.mark(), self.relations.mark());
        self.assume(*cond, true);
        self.list(then);
        let after_then = self.facts.edge(mark);
        let known_then = self.relations.since(known);
        self.facts.undo(mark);
        self.assume(*cond, false);
        self.list(otherwise);
        let after_otherwise = self.facts.edge(mark);
        let known_otherwise = self.relations.since(known);
        self.facts.undo(mark);
        // where both sides continue, the facts of one side alone do not hold
        match (&after_then, &after_otherwise) {
            (Some(_), None) => self.relations.extend(known_then),
            (None, Some(_)) => self.relations.extend(known_otherwise),
            _ => {}
        }
        let edges: Vec<_> = after_then.into_iter().chain(after_otherwise).collect();
        self.facts.merge(&edges);
    }

    /// The intervals at the head of a loop, for the registers that its body assigns.
    fn head(&mut self, label: crate::ir::LabelId, body: &mut Vec<Stmt>, slots: &[VarId]) -> Vec<(VarId, Interval)> {
        let unknown = |func: &Func, v: &VarId| bounds(func.vars[v.index()].ty);
        if self.trials >= MAX_TRIALS {
            return slots.iter().map(|v| (*v, unknown(self.func, v))).collect();
        }
        let entry: Vec<Interval> = slots.iter().map(|v| self.range(Operand::Var(*v))).collect();
        self.trials += 1;
        let nested = self.nested;
        let mut head = entry.clone();
        let mut kept = false;
        for _ in 0..ROUNDS {
            let Some(next) = self.around(label, body, slots, &head, &entry) else {
                kept = true;
                break;
            };
            if next.iter().zip(&head).all(|(next, head)| within(*next, *head)) {
                kept = true;
                // A narrower one is as good if the body preserves it, too.
                if next != head
                    && let Some(again) = self.around(label, body, slots, &next, &entry)
                    && again.iter().zip(&next).all(|(again, next)| within(*again, *next))
                {
                    head = next;
                }
                break;
            }
            for ((head, next), v) in head.iter_mut().zip(next).zip(slots) {
                *head = widen(*head, next, unknown(self.func, v));
            }
        }
        self.trials -= 1;
        self.nested = nested;
        if !kept {
            return slots.iter().map(|v| (*v, unknown(self.func, v))).collect();
        }
        let mut heads: Vec<(VarId, Interval)> = slots.iter().copied().zip(head).collect();
        let head = |v: VarId| heads.iter().find(|(slot, _)| *slot == v).map(|(_, range)| *range);
        let Some(repeats) = polls::repetitions(body, head).map(i128::from) else { return heads };
        for ((v, head), entry) in heads.iter_mut().zip(entry) {
            if self.func.vars[v.index()].ty == Scalar::I64
                && let Some((down, up)) = induction_steps::of(body, *v)
            {
                // if every bound fits into 64 bits, nothing wraps on the way
                let least = i128::from(entry.0).checked_add(repeats.saturating_mul(down));
                let most = i128::from(entry.1).checked_add(repeats.saturating_mul(up));
                if let (Some(Ok(least)), Some(Ok(most))) = (least.map(i64::try_from), most.map(i64::try_from)) {
                    *head = (head.0.max(least), head.1.min(most));
                }
            }
        }
        heads
    }

    /// The intervals with which the next repetition begins if this one begins with `head`, joined with those of the
    /// entry. None: there is no next repetition.
    fn around(
        &mut self,
        label: crate::ir::LabelId,
        body: &mut Vec<Stmt>,
        slots: &[VarId],
        head: &[Interval],
        entry: &[Interval],
    ) -> Option<Vec<Interval>> {
        let (mark, edges) = (self.facts.mark(), self.facts.begin_trial());
        let known = self.relations.mark();
        self.facts.open(label);
        slots.iter().zip(head).for_each(|(v, range)| self.set(*v, *range, 0));
        self.list(body);
        let next = self.facts.reached().then(|| {
            let back = slots.iter().map(|v| self.range(Operand::Var(*v)));
            back.zip(entry).map(|(back, entry)| (back.0.min(entry.0), back.1.max(entry.1))).collect()
        });
        self.facts.end_trial(edges);
        self.facts.undo(mark);
        self.relations.forget(known);
        next
    }

    fn let_(&mut self, dst: VarId, op: &mut Op, args: &mut Vec<Operand>) -> Option<Vec<Stmt>> {
        let ty = self.func.vars[dst.index()].ty;
        if ty == Scalar::F64 {
            let range = self.float(*op, args);
            // Adding a zero changes -0.0 alone.
            let is_zero = |o: &Operand| *o == Operand::float(0.0);
            if *op == Op::FAdd
                && is_zero(&args[1])
                && !floats::may_be_minus_zero(self.range(args[0]))
                && self.rewrites()
            {
                (*op, *args) = (Op::Copy, vec![args[0]]);
            }
            self.assign(dst, range, 0);
            return None;
        }
        if let Some(unshifted) = self.unshifted(*op, args) {
            let range = self.range(unshifted);
            self.assign(dst, range, 0);
            if self.rewrites() {
                (*op, *args) = (Op::Copy, vec![unshifted]);
            }
            return None;
        }
        if let Some((dividend, divisor)) = self.floored(*op, args) {
            let (above, by) = (exact(Op::Add, self.range(dividend), self.range(divisor)).0, self.range(divisor));
            self.assign(dst, (0, by.1 - 1), 0);
            if !self.rewrites() {
                return None;
            }
            let sum = self.temp(Scalar::I64);
            let first = Stmt::Let { dst: sum, op: Op::Add, args: vec![dividend, divisor] };
            let rest = self.unsigned(dst, Op::URem, [sum.into(), divisor], above, by);
            return Some(std::iter::once(first).chain(rest).collect());
        }
        let (lo, hi) = self.result(*op, ty, args);
        let same = self.same_as(*op, args);
        let definition = match (same, *op) {
            (Some(same), _) => self.define(Op::Copy, &[same]),
            (
                None,
                Op::ICmp(_)
                | Op::UCmp(_)
                | Op::And
                | Op::Or
                | Op::Xor
                | Op::Not
                | Op::Shl
                | Op::Select
                | Op::Mul
                | Op::Div
                | Op::UDiv
                | Op::Rem
                | Op::URem
                | Op::Widen,
            ) => self.define(*op, args),
            (None, Op::Add | Op::Sub) if self.moves_exactly(*op, args) => self.define(*op, args),
            (None, Op::Add | Op::Sub)
                if ty == Scalar::I64 && exact(*op, self.range(args[0]), self.range(args[1])).1 =>
            {
                self.define(*op, args)
            }
            _ => 0,
        };
        let operands: Vec<Interval> = args.iter().map(|a| self.range(*a)).collect();
        let form = match (same, *op) {
            (Some(same), _) => self.form(same),
            (None, sum @ (Op::Add | Op::Sub)) if ty == Scalar::I64 && exact(sum, operands[0], operands[1]).1 => {
                self.sum(sum, [args[0], args[1]])
            }
            _ => None,
        };
        let (lo, hi) = self.not_negative((lo, hi), form.as_ref());
        let division = self.division(*op, args, &operands);
        self.assign(dst, (lo, hi), definition);
        self.has_form(dst, form);
        let stamp = self.stamp(dst.into());
        match division {
            Some((Op::Div, dividend, divisor)) => self.relations.divides(stamp, dividend, divisor),
            Some((_, dividend, divisor)) => {
                self.relations.leaves(stamp, dividend, divisor.clone());
                // a remainder is less than the divisor
                let rest = self.relations.of(stamp);
                if let Some(form) = divisor.plus(&rest, -1).and_then(|form| form.plus(&Form::constant(1), -1)) {
                    self.relations.learn(form);
                }
            }
            None => {}
        }
        if !self.rewrites() {
            return None;
        }
        let constant = match ty {
            Scalar::Bool => Operand::Bool(lo == 1),
            Scalar::I32 => Operand::I32(lo as i32),
            _ => Operand::I64(lo),
        };
        if lo == hi && !matches!(op, Op::Random) {
            (*op, *args) = (Op::Copy, vec![constant]);
            return None;
        }
        if let Some(same) = same {
            (*op, *args) = (Op::Copy, vec![same]);
            return None;
        }
        let positive = operands.iter().all(|(lo, _)| *lo >= 0);
        match *op {
            // As a signed comparison it may equal one that a loop or a branch around has made.
            Op::UCmp(cmp) if positive => *op = Op::ICmp(cmp),
            Op::Div if positive => *op = Op::UDiv,
            Op::Rem if positive => *op = Op::URem,
            Op::MulMod | Op::AddMod if positive => {
                let plain = if *op == Op::MulMod { Op::Mul } else { Op::Add };
                if exact(plain, operands[0], operands[1]).1 {
                    let sum = self.temp(Scalar::I64);
                    let first = Stmt::Let { dst: sum, op: plain, args: args[..2].to_vec() };
                    let range = exact(plain, operands[0], operands[1]).0;
                    let rest = self.unsigned(dst, Op::URem, [sum.into(), args[2]], range, operands[2]);
                    return Some(std::iter::once(first).chain(rest).collect());
                }
            }
            _ => {}
        }
        if matches!(op, Op::UDiv | Op::URem) && ty == Scalar::I64 {
            return Some(self.unsigned(dst, *op, [args[0], args[1]], operands[0], operands[1]));
        }
        None
    }

    /// An unsigned division: a shift or a mask where the divisor is `1 << n`, of 32 bits where both sides fit.
    fn unsigned(&mut self, dst: VarId, op: Op, args: [Operand; 2], a: Interval, b: Interval) -> Vec<Stmt> {
        if let Some(amount) = self.power_of_two(args[1]) {
            if op == Op::UDiv {
                return vec![Stmt::Let { dst, op: Op::UShr, args: vec![args[0], amount] }];
            }
            let mask = self.temp(Scalar::I64);
            return vec![
                Stmt::Let { dst: mask, op: Op::Sub, args: vec![args[1], Operand::I64(1)] },
                Stmt::Let { dst, op: Op::And, args: vec![args[0], mask.into()] },
            ];
        }
        let fits = |(lo, hi): Interval| lo >= 0 && hi <= u32::MAX.into();
        let constant = |o: Operand| !matches!(o, Operand::Var(_));
        // Division by a constant is a multiplication anyway.
        if !fits(a) || !fits(b) || constant(args[1]) {
            return vec![Stmt::Let { dst, op, args: args.to_vec() }];
        }
        let mut out = Vec::new();
        let narrow = args.map(|arg| match arg {
            Operand::I64(i) => Operand::I32(i as i32),
            arg => {
                let narrow = self.temp(Scalar::I32);
                out.push(Stmt::Let { dst: narrow, op: Op::Narrow, args: vec![arg] });
                narrow.into()
            }
        });
        let result = self.temp(Scalar::I32);
        out.push(Stmt::Let { dst: result, op, args: narrow.to_vec() });
        out.push(Stmt::Let { dst, op: Op::Widen, args: vec![result.into()] });
        out
    }

    fn temp(&mut self, ty: Scalar) -> VarId {
        self.func.vars.push(Var { ty, name: None });
        let (lo, hi) = bounds(ty);
        self.facts.push(Range { lo, hi, stamp: 0, definition: 0 });
        VarId::new(self.func.vars.len() - 1)
    }

    fn define(&mut self, op: Op, args: &[Operand]) -> u32 {
        let args = args.iter().map(|a| (*a, self.stamp(*a))).collect();
        self.definitions.push(Definition { op, args });
        self.definitions.len() as u32 - 1
    }

    /// How a register was computed, if the operands are still what they were.
    fn definition(&self, operand: Operand) -> Option<&Definition> {
        let Operand::Var(v) = operand else { return None };
        let definition = &self.definitions[self.facts.get(v.index()).definition as usize];
        let holds = definition.args.iter().all(|(operand, stamp)| self.stamp(*operand) == *stamp);
        (holds && !definition.args.is_empty()).then_some(definition)
    }

    /// The operand that the result of the operation surely equals.
    fn same_as(&self, op: Op, args: &[Operand]) -> Option<Operand> {
        let is = |i: usize, value: i64| self.range(args[i]) == (value, value);
        match op {
            Op::Copy => Some(args[0]),
            Op::Select if is(0, 1) => Some(args[1]),
            Op::Select if is(0, 0) => Some(args[2]),
            // a mask that covers all bits of the value
            Op::And if matches!((args[1], self.range(args[0])), (Operand::I64(mask), (0.., hi)) if mask & mask.wrapping_add(1) == 0 && hi <= mask) => {
                Some(args[0])
            }
            Op::Add | Op::Sub | Op::Or | Op::Xor if is(1, 0) => Some(args[0]),
            Op::Add | Op::Or | Op::Xor if is(0, 0) => Some(args[1]),
            _ => None,
        }
    }

    /// The first register with the same value, as far as copies tell.
    fn origin(&self, mut operand: Operand) -> Operand {
        while let Some(Definition { op: Op::Copy, args }) = self.definition(operand) {
            operand = args[0].0;
        }
        operand
    }

    /// Whether the operation adds or subtracts a constant, and does not wrap.
    fn moves_exactly(&self, op: Op, args: &[Operand]) -> bool {
        matches!(args[1], Operand::I64(_)) && exact(op, self.range(args[0]), self.range(args[1])).1
    }

    /// Whether the operand is `(a ^ sum) & (b ^ sum)`, whose sign says that `sum = a + b` wraps, or
    /// `(a ^ difference) & (a ^ b)` for `difference = a - b`, and it does not.
    fn is_of_exact_sum(&self, operand: Operand) -> bool {
        let parts = |operand: Operand, op: Op| match self.definition(operand)? {
            Definition { op: found, args } if *found == op => match args[..] {
                [(a, _), (b, _)] => Some([self.origin(a), self.origin(b)]),
                _ => None,
            },
            _ => None,
        };
        let Some([[a, b], [c, d]]) =
            parts(operand, Op::And).and_then(|[left, right]| Some([parts(left, Op::Xor)?, parts(right, Op::Xor)?]))
        else {
            return false;
        };
        // additions and subtractions are only noted if they do not wrap
        let is_sum = |sum: Operand, of: [Operand; 2]| {
            parts(sum, Op::Add).is_some_and(|found| found == of || found == [of[1], of[0]])
        };
        let is_difference = |[from, x, y]: [Operand; 3]| {
            parts(x, Op::Sub).is_some_and(|found| found == [from, y])
                || parts(y, Op::Sub).is_some_and(|found| found == [from, x])
        };
        let same = [(a == c, [a, b, d]), (a == d, [a, b, c]), (b == c, [b, a, d]), (b == d, [b, a, c])];
        same.into_iter().any(|(same, of)| same && (is_sum(of[0], [of[1], of[2]]) || is_difference(of)))
    }

    /// The register from which an operand has a constant distance, and that distance.
    fn distance(&self, operand: Operand) -> (Operand, i128) {
        let (mut from, mut distance) = (self.origin(operand), 0);
        while let Some(Definition { op: op @ (Op::Add | Op::Sub), args }) = self.definition(from)
            && let Operand::I64(by) = args[1].0
        {
            distance += if *op == Op::Add { i128::from(by) } else { -i128::from(by) };
            from = self.origin(args[0].0);
        }
        (from, distance)
    }

    /// The answer of a signed comparison: by intervals, or by distances from the same register.
    fn compare(&self, cmp: Cmp, a: Operand, b: Operand) -> Interval {
        let by_interval = compare(cmp, self.range(a), self.range(b));
        if by_interval.0 == by_interval.1 {
            return by_interval;
        }
        let ((from, x), (other, y)) = (self.distance(a), self.distance(b));
        if from == other && matches!(from, Operand::Var(_)) {
            let holds = cmp.holds(&x, &y).into();
            return (holds, holds);
        }
        self.related(cmp, a, b).map_or(by_interval, |holds| (holds.into(), holds.into()))
    }

    /// The answer of a signed comparison, as far as inequalities tell.
    fn related(&self, cmp: Cmp, a: Operand, b: Operand) -> Option<bool> {
        let (a, b) = (self.form(a)?, self.form(b)?);
        let at_least = |x: &Form, y: &Form, by: i64| {
            let difference = x.plus(y, -1).and_then(|form| form.plus(&Form::constant(by), -1));
            difference.is_some_and(|form| self.relations.holds(&form))
        };
        let (yes, no) = match cmp {
            Cmp::Lt => (at_least(&b, &a, 1), at_least(&a, &b, 0)),
            Cmp::Le => (at_least(&b, &a, 0), at_least(&a, &b, 1)),
            Cmp::Gt => (at_least(&a, &b, 1), at_least(&b, &a, 0)),
            Cmp::Ge => (at_least(&a, &b, 0), at_least(&b, &a, 1)),
            Cmp::Eq => (false, at_least(&a, &b, 1) || at_least(&b, &a, 1)),
            Cmp::Ne => (at_least(&a, &b, 1) || at_least(&b, &a, 1), false),
        };
        (yes || no).then_some(yes)
    }

    /// The linear form of an Integer.
    fn form(&self, operand: Operand) -> Option<Form> {
        match operand {
            Operand::I64(i) => Some(Form::constant(i)),
            Operand::Var(v) if self.func.vars[v.index()].ty == Scalar::I64 => {
                let stamp = self.stamp(operand);
                (stamp != 0).then(|| self.relations.of(stamp))
            }
            _ => None,
        }
    }

    /// The form of a sum or difference that does not wrap.
    fn sum(&self, op: Op, args: [Operand; 2]) -> Option<Form> {
        let sign = match op {
            Op::Add => 1,
            Op::Sub => -1,
            _ => return None,
        };
        self.form(args[0])?.plus(&self.form(args[1])?, sign)
    }

    fn has_form(&mut self, dst: VarId, form: Option<Form>) {
        if let Some(form) = form {
            self.relations.define(self.stamp(dst.into()), form);
        }
    }

    /// The interval, without negative numbers if inequalities show that there are none.
    fn not_negative(&self, (lo, hi): Interval, form: Option<&Form>) -> Interval {
        let is = lo < 0 && hi >= 0 && form.is_some_and(|form| self.relations.holds(form));
        (if is { 0 } else { lo }, hi)
    }

    /// For a division of numbers that are not negative: whether the operation gives the quotient (`Div`) or the
    /// remainder, the dividend and the divisor.
    fn division(&self, op: Op, args: &[Operand], operands: &[Interval]) -> Option<(Op, Form, Form)> {
        let natural = || operands[0].0 >= 0 && operands[1].0 >= 0;
        match op {
            Op::Div | Op::UDiv if natural() => Some((Op::Div, self.form(args[0])?, self.form(args[1])?)),
            Op::Rem | Op::URem if natural() => Some((Op::Rem, self.form(args[0])?, self.form(args[1])?)),
            Op::Sub => {
                let (dividend, divisor) = self.divided(args)?;
                Some((Op::Rem, self.form(dividend)?, self.form(divisor)?))
            }
            _ => None,
        }
    }

    /// The interval of `a - a / b * b`, which is that of `a % b`.
    fn what_division_leaves(&self, args: &[Operand]) -> Option<Interval> {
        let (dividend, divisor) = self.divided(args)?;
        Some((0, self.range(dividend).1.min(self.range(divisor).1 - 1)))
    }

    /// The operands of `a - b`, where that is `x - x / y * y` with x and y not negative: x and y.
    fn divided(&self, args: &[Operand]) -> Option<(Operand, Operand)> {
        let Some(Definition { op: Op::Mul, args: factors }) = self.definition(args[1]) else { return None };
        let [(x, _), (y, _)] = factors[..] else { return None };
        [(x, y), (y, x)].into_iter().find_map(|(quotient, divisor)| {
            let definition = self.definition(self.origin(quotient))?;
            let (Op::Div | Op::UDiv, [(dividend, _), (by, _)]) = (definition.op, &definition.args[..]) else {
                return None;
            };
            let same = self.origin(*dividend) == self.origin(args[0]) && self.origin(*by) == self.origin(divisor);
            (same && self.range(args[0]).0 >= 0 && self.range(divisor).0 >= 1).then_some((args[0], divisor))
        })
    }

    /// The operands of Ruby's `a % b`, where it is computed as C's `(a + b) % b`: b is positive, and a is less than one
    /// b below zero.
    fn floored(&self, op: Op, args: &[Operand]) -> Option<(Operand, Operand)> {
        let (Op::Add, [rest, lift]) = (op, args) else { return None };
        let parts = |operand: Operand, op: Op| {
            let definition = self.definition(operand).filter(|definition| definition.op == op)?;
            Some(definition.args.iter().map(|(operand, _)| *operand).collect::<Vec<_>>())
        };
        let [off, divisor, Operand::I64(0)] = parts(*lift, Op::Select)?[..] else { return None };
        let [there, differ] = parts(off, Op::And)?[..] else { return None };
        let [signs, Operand::I64(0)] = parts(differ, Op::ICmp(Cmp::Lt))?[..] else { return None };
        let [dividend, by] = parts(*rest, Op::Rem)?[..] else { return None };
        let same = |a: Operand, b: Operand| self.origin(a) == self.origin(b);
        let is_pattern = same(by, divisor)
            && parts(there, Op::ICmp(Cmp::Ne)).is_some_and(|of| of[..] == [*rest, Operand::I64(0)])
            && parts(signs, Op::Xor).is_some_and(|of| of[0] == *rest && same(of[1], divisor));
        let (a, b) = (self.range(dividend), self.range(divisor));
        (is_pattern && b.0 >= 1 && a.0 >= -b.0 && exact(Op::Add, a, b).1).then_some((dividend, divisor))
    }

    /// Whether `a` is a remainder of division by `b`, both not negative, and so less than `b`.
    fn is_remainder(&self, a: Operand, b: Operand) -> bool {
        let rest = self.origin(a);
        match self.definition(rest) {
            Some(Definition { op: Op::Rem, args }) => {
                self.range(rest).0 >= 0 && self.range(b).0 >= 0 && self.origin(args[1].0) == self.origin(b)
            }
            Some(Definition { op: Op::URem, args }) => self.range(b).0 >= 0 && self.origin(args[1].0) == self.origin(b),
            _ => false,
        }
    }

    /// The operand of a shift to the left that lost no bits, if the operation shifts it back to the right.
    fn unshifted(&self, op: Op, args: &[Operand]) -> Option<Operand> {
        let (Op::Shr, [shifted, by]) = (op, args) else { return None };
        let Some(Definition { op: Op::Shl, args }) = self.definition(*shifted) else { return None };
        let [(value, _), (amount, _)] = args[..] else { return None };
        let Operand::I64(bits @ 0..=62) = *by else { return None };
        let whole = exact(Op::Mul, self.range(value), (1 << bits, 1 << bits)).1;
        (amount == *by && whole).then_some(value)
    }

    /// The n of a register that surely holds `1 << n`.
    fn power_of_two(&self, operand: Operand) -> Option<Operand> {
        match self.definition(self.origin(operand)) {
            Some(Definition { op: Op::Shl, args }) if args[0].0 == Operand::I64(1) => Some(args[1].0),
            _ => None,
        }
    }

    /// The interval of an operation's result, which is a Float.
    fn float(&mut self, op: Op, args: &[Operand]) -> Interval {
        let at = |i: usize| self.range(args[i]);
        match (op, args) {
            (Op::Copy, _) => at(0),
            (Op::Select, _) => self.select(args),
            (Op::IntToFloat, _) => floats::of_integers(at(0)),
            (_, [a, b]) => floats::result(op, at(0), at(1), a == b),
            (_, [_]) => floats::result(op, at(0), floats::FULL, false),
            _ => floats::FULL,
        }
    }

    /// The interval of an operation's result.
    fn result(&mut self, op: Op, ty: Scalar, args: &[Operand]) -> Interval {
        let full = bounds(ty);
        let at = |i: usize| self.range(args[i]);
        if op == Op::Sub
            && let Some(rest) = self.what_division_leaves(args)
        {
            return rest;
        }
        match op {
            Op::Copy | Op::BoolToInt => at(0),
            Op::Add | Op::Sub | Op::Mul => {
                let (range, _) = exact(op, at(0), at(1));
                let (wide_lo, wide_hi) = wide(op, at(0), at(1));
                if wide_lo >= full.0.into() && wide_hi <= full.1.into() { range } else { full }
            }
            Op::Shl => match at(1) {
                (least @ 0..=62, most @ 0..=62) => {
                    let (lo, hi) = wide(Op::Mul, at(0), (1 << least, 1 << most));
                    if lo >= full.0.into() && hi <= full.1.into() { (lo as i64, hi as i64) } else { full }
                }
                _ => full,
            },
            Op::Shr => match (at(0), at(1)) {
                ((lo, hi), (least, most)) if least >= 0 && most <= 63 => {
                    ((lo >> least).min(lo >> most), (hi >> least).max(hi >> most))
                }
                _ => full,
            },
            Op::UShr => match (at(0), at(1)) {
                ((lo, hi), (least, most)) if lo >= 0 && least >= 0 && most <= 63 => (lo >> most, hi >> least),
                (_, (least @ 1..=63, _)) if ty == Scalar::I64 => (0, (u64::MAX >> least) as i64),
                _ => full,
            },
            Op::And => match (at(0), at(1)) {
                ((a @ 0.., a_hi), (0.., b_hi)) => (if ty == Scalar::Bool { a & at(1).0 } else { 0 }, a_hi.min(b_hi)),
                ((0.., hi), _) | (_, (0.., hi)) => (0, hi),
                _ => full,
            },
            Op::Or | Op::Xor => match (at(0), at(1)) {
                ((a @ 0.., a_hi), (b @ 0.., b_hi)) => {
                    let bits = i64::MAX.checked_shr((a_hi | b_hi).leading_zeros().saturating_sub(1)).unwrap_or(0);
                    (if op == Op::Or { a.max(b) } else { 0 }, bits)
                }
                ((_, i64::MIN..=-1), (0.., _)) | ((0.., _), (_, i64::MIN..=-1)) => (full.0, -1),
                ((_, i64::MIN..=-1), _) | (_, (_, i64::MIN..=-1)) if op == Op::Or => (full.0, -1),
                ((_, i64::MIN..=-1), (_, i64::MIN..=-1)) => (0, full.1),
                _ => full,
            },
            Op::Div => match (at(0), at(1)) {
                ((lo, hi), (least @ 1.., most)) => ((lo / least).min(lo / most), (hi / least).max(hi / most)),
                _ => full,
            },
            Op::Rem => match (at(0), at(1)) {
                ((lo, hi), (least, most)) if least > 0 || most < 0 => {
                    let rest = (least.unsigned_abs().max(most.unsigned_abs()) - 1).min(i64::MAX as u64) as i64;
                    (lo.clamp(-rest, 0), hi.clamp(0, rest))
                }
                _ => full,
            },
            Op::UDiv => match (at(0), at(1)) {
                ((lo @ 0.., hi), (least @ 1.., most)) => (lo / most, hi / least),
                (_, (2.., _)) if ty == Scalar::I64 => (0, i64::MAX),
                _ => full,
            },
            Op::URem => match (at(0), at(1)) {
                ((0.., hi), (1.., most)) => (0, hi.min(most - 1)),
                (_, (1.., most)) => (0, most - 1),
                _ => full,
            },
            Op::MulHi => {
                let (lo, hi) = wide(Op::Mul, at(0), at(1));
                ((lo >> 64) as i64, (hi >> 64) as i64)
            }
            // The high word of n times anything unsigned is less than n.
            Op::UMulHi => match (at(0), at(1)) {
                ((0.., a), (0.., b)) => (0, ((i128::from(a) * i128::from(b)) >> 64) as i64),
                ((0.., hi), _) | (_, (0.., hi)) => (0, (hi - 1).max(0)),
                _ => full,
            },
            Op::MulMod | Op::AddMod => match at(2) {
                (_, most @ 1..) => (0, most - 1),
                _ => full,
            },
            Op::Clz => (0, 64),
            Op::ICmp(Cmp::Lt) | Op::UCmp(Cmp::Lt) if self.is_remainder(args[0], args[1]) => (1, 1),
            Op::ICmp(Cmp::Ge) | Op::UCmp(Cmp::Ge) if self.is_remainder(args[0], args[1]) => (0, 0),
            Op::ICmp(Cmp::Lt) if args[1] == Operand::I64(0) && self.is_of_exact_sum(args[0]) => (0, 0),
            Op::ICmp(cmp) => self.compare(cmp, args[0], args[1]),
            Op::FCmp(cmp) => floats::compare(cmp, at(0), at(1)).map_or(full, |holds| (holds.into(), holds.into())),
            Op::UCmp(cmp) => match (at(0), at(1)) {
                ((0.., _), (0.., _)) => self.compare(cmp, args[0], args[1]),
                // As unsigned numbers, negative ones are greater than all others.
                ((_, i64::MIN..=-1), (0.., _)) => compare(cmp, (1, 1), (0, 0)),
                ((0.., _), (_, i64::MIN..=-1)) => compare(cmp, (0, 0), (1, 1)),
                _ => full,
            },
            Op::Widen => match at(0) {
                (lo @ 0.., hi) => (lo, hi),
                (lo, hi @ ..=-1) => (lo + (1 << 32), hi + (1 << 32)),
                _ => (0, u32::MAX.into()),
            },
            Op::Narrow => {
                if within(at(0), full) {
                    at(0)
                } else {
                    full
                }
            }
            Op::Not => (1 - at(0).1, 1 - at(0).0),
            Op::Select => self.select(args),
            Op::Ctx(Ctx::Tick) => (0, MAX_TICKS),
            Op::Ctx(Ctx::Index) => (0, self.given.elements),
            Op::Ctx(Ctx::Stopped) => (0, 1),
            Op::Ctx(Ctx::Slot) => (0, u32::MAX.into()),
            Op::Param(param) => self.given.params[param.index()].unwrap_or(full),
            _ => full,
        }
    }

    /// Joins the intervals of both arms, each narrowed by the condition under which it is chosen.
    fn select(&mut self, args: &[Operand]) -> Interval {
        let (mark, known) = (self.facts.mark(), self.relations.mark());
        let mut arms = [(0, 0); 2];
        for (arm, (operand, holds)) in arms.iter_mut().zip([(args[1], true), (args[2], false)]) {
            self.assume(args[0], holds);
            *arm = self.range(operand);
            self.facts.undo(mark);
            self.relations.forget(known);
        }
        match self.range(args[0]) {
            (1, 1) => arms[0],
            (0, 0) => arms[1],
            _ => (arms[0].0.min(arms[1].0), arms[0].1.max(arms[1].1)),
        }
    }

    /// Notes that the condition has this value from here on, and what follows from it.
    fn assume(&mut self, cond: Operand, holds: bool) {
        let known = i64::from(holds);
        self.narrow(cond, (known, known));
        let Some(definition) = self.definition(cond).cloned() else { return };
        let args: Vec<Operand> = definition.args.iter().map(|(operand, _)| *operand).collect();
        match (definition.op, holds) {
            (Op::Not, _) => self.assume(args[0], !holds),
            (Op::Copy, _) => self.assume(args[0], holds),
            (Op::And, true) | (Op::Or, false) if self.func.ty(cond) == Scalar::Bool => {
                args.iter().for_each(|a| self.assume(*a, holds));
            }
            (Op::ICmp(cmp), _) => self.compared(if holds { cmp } else { cmp.negated() }, args[0], args[1]),
            (Op::UCmp(cmp), _) => {
                let cmp = if holds { cmp } else { cmp.negated() };
                let (a, b) = (self.range(args[0]), self.range(args[1]));
                match cmp {
                    _ if a.0 >= 0 && b.0 >= 0 => self.compared(cmp, args[0], args[1]),
                    // Less, unsigned, than a number that is not negative: so it is not negative itself.
                    Cmp::Lt | Cmp::Le if b.0 >= 0 => {
                        self.narrow(args[0], (0, i64::MAX));
                        self.compared(cmp, args[0], args[1]);
                    }
                    Cmp::Gt | Cmp::Ge if a.0 >= 0 => {
                        self.narrow(args[1], (0, i64::MAX));
                        self.compared(cmp, args[0], args[1]);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Notes that `a cmp b` holds.
    fn compared(&mut self, cmp: Cmp, a: Operand, b: Operand) {
        let below = match cmp {
            Cmp::Lt => Some(1),
            Cmp::Le => Some(0),
            _ => None,
        };
        if let (Some(by), Some(x), Some(y)) = (below, self.form(a), self.form(b))
            && let Some(form) = y.plus(&x, -1).and_then(|form| form.plus(&Form::constant(by), -1))
        {
            self.relations.learn(form);
        }
        let ((a_lo, a_hi), (b_lo, b_hi)) = (self.range(a), self.range(b));
        match cmp {
            Cmp::Lt => {
                self.narrow(a, (i64::MIN, b_hi.saturating_sub(1)));
                self.narrow(b, (a_lo.saturating_add(1), i64::MAX));
            }
            Cmp::Le => {
                self.narrow(a, (i64::MIN, b_hi));
                self.narrow(b, (a_lo, i64::MAX));
            }
            Cmp::Gt | Cmp::Ge => self.compared(cmp.swapped(), b, a),
            Cmp::Eq => {
                self.narrow(a, (b_lo, b_hi));
                self.narrow(b, (a_lo, a_hi));
            }
            Cmp::Ne => {
                if let (Some(x), Some(y)) = (self.form(a), self.form(b))
                    && let Some(form) = x.plus(&y, -1)
                {
                    self.relations.is_not_zero(form);
                }
                let mut trim = |operand: Operand, (lo, hi): Interval, (other_lo, other_hi): Interval| {
                    if other_lo == other_hi && lo < hi {
                        let lo = if lo == other_lo { lo + 1 } else { lo };
                        let hi = if hi == other_lo { hi - 1 } else { hi };
                        self.narrow(operand, (lo, hi));
                    }
                };
                trim(a, (a_lo, a_hi), (b_lo, b_hi));
                trim(b, (b_lo, b_hi), (a_lo, a_hi));
            }
        }
    }
}

/// The most jobs that are elements: as many as a launch may have ([`crate::backend::Key`]).
const MAX_ELEMENTS: i64 = u32::MAX as i64;
/// Greater than the number of any job or tick.
const MAX_JOBS: i64 = 1 << 40;
const MAX_TICKS: i64 = 1 << 31;
/// The Integers with which a GPU computes in one instruction: 32 bits without the least value.
pub(super) const INT32_RANGE: Interval = (-(i32::MAX as i64), i32::MAX as i64);

fn bounds(ty: Scalar) -> Interval {
    match ty {
        Scalar::Bool => (0, 1),
        Scalar::I32 => (i32::MIN.into(), i32::MAX.into()),
        Scalar::I64 | Scalar::F64 => (i64::MIN, i64::MAX),
    }
}

pub(super) fn within(inner: Interval, outer: Interval) -> bool {
    inner.0 >= outer.0 && inner.1 <= outer.1
}

/// Widens an interval that the body of a loop has left. A lower bound becomes 0 and an upper bound 32 bits if that is
/// enough; else it becomes a bound of the type.
fn widen(head: Interval, next: Interval, bounds: Interval) -> Interval {
    let lo = if next.0 >= head.0 {
        head.0
    } else if next.0 >= 0 {
        0
    } else {
        bounds.0
    };
    let hi = match next.1 {
        hi if hi <= head.1 => head.1,
        hi if hi <= INT32_RANGE.1 => INT32_RANGE.1.min(bounds.1),
        _ => bounds.1,
    };
    (lo, hi)
}

/// The interval of the exact result of `+`, `-` or `*`, which may be beyond 64 bits.
fn wide(op: Op, a: Interval, b: Interval) -> (i128, i128) {
    let (a, b) = ([i128::from(a.0), i128::from(a.1)], [i128::from(b.0), i128::from(b.1)]);
    match op {
        Op::Add => (a[0] + b[0], a[1] + b[1]),
        Op::Sub => (a[0] - b[1], a[1] - b[0]),
        _ => {
            let corners = [a[0] * b[0], a[0] * b[1], a[1] * b[0], a[1] * b[1]];
            corners.iter().fold((i128::MAX, i128::MIN), |(lo, hi), c| (lo.min(*c), hi.max(*c)))
        }
    }
}

/// As [`wide`], cut to 64 bits, and whether nothing was cut off.
fn exact(op: Op, a: Interval, b: Interval) -> (Interval, bool) {
    let (lo, hi) = wide(op, a, b);
    let cut = |x: i128| x.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    ((cut(lo), cut(hi)), i128::from(cut(lo)) == lo && i128::from(cut(hi)) == hi)
}

/// The interval of a comparison's answer.
fn compare(cmp: Cmp, a: Interval, b: Interval) -> Interval {
    let (always, never) = match cmp {
        Cmp::Lt => (a.1 < b.0, a.0 >= b.1),
        Cmp::Le => (a.1 <= b.0, a.0 > b.1),
        Cmp::Gt | Cmp::Ge => return compare(cmp.swapped(), b, a),
        Cmp::Eq => (a.0 == a.1 && a == b, a.1 < b.0 || a.0 > b.1),
        Cmp::Ne => (a.1 < b.0 || a.0 > b.1, a.0 == a.1 && a == b),
    };
    (always.into(), (!never).into())
}

fn assigned(body: &[Stmt]) -> Vec<VarId> {
    let mut vars = Vec::new();
    walk(body, &mut |s| vars.extend_from_slice(s.assigns()));
    vars.sort_unstable();
    vars.dedup();
    vars
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{DOMAIN, INPUT, INTS, OUT, OVERFLOW, TAGS, ZERO, program};
    use crate::ir::{AssumedRows, CheckedOp, Cmp, Op, Operand, ParamId, Scalar, Stmt, VarId};
    use crate::passes::testing::after;
    use crate::passes::{dce, gvn};

    fn check(body: impl FnOnce(&mut Builder, Operand)) -> String {
        after(&[PASS, gvn::PASS, dce::PASS], program(body))
    }

    fn store(b: &mut Builder, value: Operand) {
        b.store(INTS, Operand::Var(VarId(0)), value);
    }

    /// `i = from; while i < to { body; i += 1 }`, checked and polled.
    fn counted(b: &mut Builder, from: Operand, to: Operand, body: impl FnOnce(&mut Builder, Operand)) {
        let i = b.var(Scalar::I64, Some("i".into()));
        b.set(i, from);
        b.repeat(|b, done| {
            let end = b.icmp(Cmp::Ge, i.into(), to);
            b.when(end, |b| b.push(Stmt::Break(done)));
            b.push(Stmt::Poll);
            body(b, i.into());
            b.push(Stmt::Checked { dst: i, op: CheckedOp::Add, args: [i.into(), Operand::I64(1)], site: OVERFLOW });
        });
    }

    #[test]
    fn what_the_host_says_of_a_parameter_is_known() {
        let mut program = program(|b, index| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let product = b.checked(CheckedOp::Mul, index, n, OVERFLOW);
            let negative = b.icmp(Cmp::Lt, product, Operand::I64(0));
            b.trap_if(negative, ZERO, Vec::new());
            b.store(INTS, index, product);
        });
        assert!(after(&[PASS, gvn::PASS, dce::PASS], program.clone()).contains("checked mul"));
        program.params[0].range = Some((0, i32::MAX.into()));
        insta::assert_snapshot!(after(&[PASS, gvn::PASS, dce::PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = param p0 "n"
          v4: i64 = mul job.0, v3
          store ints[job.0] = v4
        }
        "#);
    }

    #[test]
    fn what_is_counted_in_a_loop_is_no_more_than_its_repetitions() {
        let counting = |by: Operand, resets: bool| {
            let mut program = program(|b, index| {
                let n = b.i64(Op::Param(ParamId(0)), &[]);
                let count = b.var(Scalar::I64, Some("count".into()));
                b.set(count, Operand::I64(0));
                counted(b, Operand::I64(0), n, |b, i| {
                    let x = b.load(Scalar::I64, INPUT, i);
                    let some = b.icmp(Cmp::Gt, x, Operand::I64(7));
                    b.when(some, |b| {
                        let more = b.checked(CheckedOp::Add, count.into(), by, OVERFLOW);
                        b.set(count, more);
                    });
                    if resets {
                        b.set(count, x);
                    }
                });
                b.store(INTS, index, count.into());
            });
            program.params[0].range = Some((0, 1 << 29));
            after(&[PASS, gvn::PASS, dce::PASS], program)
        };
        assert!(!counting(Operand::I64(1), false).contains("checked"));
        assert!(!counting(Operand::I64(-3), false).contains("checked"));
        assert!(counting(Operand::I64(1), true).contains("checked"));
        assert!(counting(Operand::I64(1 << 40), false).contains("checked"));
        assert!(counting(Operand::Var(VarId(0)), false).contains("checked"));
    }

    #[test]
    fn one_of_several_constants_is_counted_as_if_it_were_the_greatest() {
        let counting = |other: Option<i64>| {
            let mut program = program(|b, index| {
                let n = b.i64(Op::Param(ParamId(0)), &[]);
                let count = b.var(Scalar::I64, Some("count".into()));
                b.set(count, Operand::I64(0));
                counted(b, Operand::I64(0), n, |b, i| {
                    let x = b.load(Scalar::I64, INPUT, i);
                    let some = b.icmp(Cmp::Gt, x, Operand::I64(7));
                    let by = b.temp(Scalar::I64);
                    let (then, other) = (Operand::I64(1), other.map_or(x, Operand::I64));
                    let set = |value| vec![Stmt::Let { dst: by, op: Op::Copy, args: vec![value] }];
                    b.push(Stmt::If { cond: some, then: set(then), otherwise: set(other) });
                    let more = b.checked(CheckedOp::Add, count.into(), by.into(), OVERFLOW);
                    b.set(count, more);
                });
                b.store(INTS, index, count.into());
            });
            program.params[0].range = Some((0, 1 << 29));
            after(&[PASS, gvn::PASS, dce::PASS], program)
        };
        assert!(!counting(Some(0)).contains("checked"));
        assert!(counting(Some(1 << 40)).contains("checked"));
        assert!(counting(None).contains("checked"), "it may be anything");
    }

    #[test]
    fn a_sum_that_stays_within_64_bits_is_not_tested() {
        let tested = |mask: i64| {
            check(|b, index| {
                let x = b.load(Scalar::I64, INPUT, index);
                let x = b.i64(Op::And, &[x, Operand::I64(mask)]);
                let sum = b.i64(Op::Add, &[x, index]);
                let (left, right) = (b.i64(Op::Xor, &[x, sum]), b.i64(Op::Xor, &[index, sum]));
                let signs = b.i64(Op::And, &[left, right]);
                let wraps = b.icmp(Cmp::Lt, signs, Operand::I64(0));
                b.trap_if(wraps, ZERO, Vec::new());
                store(b, sum);
            })
        };
        assert!(!tested(0xffff).contains("trap"));
        assert!(tested(i64::MAX).contains("trap"));
    }

    #[test]
    fn differences_of_a_ranged_column_have_squares_that_can_be_added() {
        let distance = |ranged: Option<AssumedRows>| {
            let mut program = program(|b, index| {
                let squares = [1, 2].map(|apart| {
                    let there = b.i64(Op::Add, &[index, Operand::I64(apart)]);
                    let (x, y) = (b.load(Scalar::I64, INPUT, index), b.load(Scalar::I64, INPUT, there));
                    let by = b.checked(CheckedOp::Sub, x, y, OVERFLOW);
                    b.checked(CheckedOp::Mul, by, by, OVERFLOW)
                });
                let sum = b.checked(CheckedOp::Add, squares[0], squares[1], OVERFLOW);
                b.store(INTS, index, sum);
            });
            program.columns[INPUT.index()].ranged = ranged;
            program.columns[INPUT.index()].written = false;
            after(&[PASS], program).matches("checked").count()
        };
        let all = [Some(AssumedRows::Natural), Some(AssumedRows::Signed), None];
        assert_eq!(all.map(distance), [0, 0, 5]);
    }

    #[test]
    fn a_sum_of_squares_is_not_negative() {
        let program = program(|b, index| {
            let (x, y) = (b.f64(Op::Param(ParamId(1)), &[]), b.load(Scalar::F64, OUT, index));
            let (xx, yy) = (b.f64(Op::FMul, &[x, x]), b.f64(Op::FMul, &[y, y]));
            let square = b.f64(Op::FAdd, &[xx, yy]);
            let negative = b.fcmp(Cmp::Lt, square, Operand::float(0.0));
            b.trap_if(negative, DOMAIN, vec![index]);
            let same = b.f64(Op::FAdd, &[square, Operand::float(0.0)]);
            b.store(OUT, index, same);
            // the product may be negative
            let product = b.f64(Op::FMul, &[x, y]);
            let below = b.fcmp(Cmp::Lt, product, Operand::float(0.0));
            b.trap_if(below, DOMAIN, vec![index]);
            let kept = b.f64(Op::FAdd, &[product, Operand::float(0.0)]);
            b.store(OUT, index, kept);
        });
        insta::assert_snapshot!(after(&[PASS, gvn::PASS, dce::PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: f64 = param p1 "x"
          v4: f64 = load out[job.0]
          v5: f64 = fmul v3, v3
          v6: f64 = fmul v4, v4
          v7: f64 = fadd v5, v6
          store out[job.0] = v7
          v8: f64 = fmul v3, v4
          v9: bool = fcmp.lt v8, 0.0
          if v9 {
            trap s1 job.0
          }
          v10: f64 = fadd v8, 0.0
          store out[job.0] = v10
        }
        "#);
    }

    #[test]
    fn a_short_loop_needs_neither_check_nor_poll() {
        insta::assert_snapshot!(check(|b, _| counted(b, Operand::I64(0), Operand::I64(1000), |b, i| {
            let square = b.checked(CheckedOp::Mul, i, i, OVERFLOW);
            store(b, square);
        })), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          i.3: i64 = copy 0
          loop L0 {
            v4: bool = icmp.ge i.3, 1000
            if v4 {
              break L0
            }
            v5: i64 = mul i.3, i.3
            store ints[job.0] = v5
            i.3 = add i.3, 1
          }
        }
        "#);
    }

    #[test]
    fn a_counter_below_an_unknown_bound_does_not_overflow_but_polls() {
        insta::assert_snapshot!(check(|b, _| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            counted(b, Operand::I64(0), n, |b, i| {
                let negative = b.icmp(Cmp::Lt, i, Operand::I64(0));
                b.trap_if(negative, ZERO, vec![]);
                let square = b.checked(CheckedOp::Mul, i, i, OVERFLOW);
                store(b, square);
            });
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = param p0 "n"
          i.4: i64 = copy 0
          loop L0 {
            v5: bool = icmp.ge i.4, v3
            if v5 {
              break L0
            }
            poll
            v6: i64 = checked mul i.4, i.4 else s0
            store ints[job.0] = v6
            i.4 = add i.4, 1
          }
        }
        "#);
    }

    #[test]
    fn short_loops_in_a_long_one_keep_the_outer_poll() {
        insta::assert_snapshot!(check(|b, _| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            counted(b, Operand::I64(0), n, |b, _| counted(b, Operand::I64(0), Operand::I64(9), store));
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = param p0 "n"
          i.4: i64 = copy 0
          loop L0 {
            v5: bool = icmp.ge i.4, v3
            if v5 {
              break L0
            }
            poll
            i.6: i64 = copy 0
            loop L1 {
              v7: bool = icmp.ge i.6, 9
              if v7 {
                break L1
              }
              store ints[job.0] = i.6
              i.6 = add i.6, 1
            }
            i.4 = add i.4, 1
          }
        }
        "#);
    }

    #[test]
    fn a_sum_over_a_loop_keeps_its_check() {
        insta::assert_snapshot!(check(|b, _| {
            let sum = b.var(Scalar::I64, Some("sum".into()));
            b.set(sum, Operand::I64(0));
            counted(b, Operand::I64(0), Operand::I64(10), |b, i| {
                b.push(Stmt::Checked { dst: sum, op: CheckedOp::Add, args: [sum.into(), i], site: OVERFLOW });
            });
            store(b, sum.into());
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          sum.3: i64 = copy 0
          i.4: i64 = copy 0
          loop L0 {
            v5: bool = icmp.ge i.4, 10
            if v5 {
              break L0
            }
            sum.3 = checked add sum.3, i.4 else s0
            i.4 = add i.4, 1
          }
          store ints[job.0] = sum.3
        }
        "#);
    }

    /// `a % b` and `a / b` as Ruby rounds them, with the tests that Ruby makes.
    fn modulo(b: &mut Builder, a: Operand, m: Operand) -> Operand {
        let zero = b.icmp(Cmp::Eq, m, Operand::I64(0));
        b.trap_if(zero, ZERO, vec![]);
        let inverts = b.icmp(Cmp::Eq, m, Operand::I64(-1));
        let divisor = b.select(Scalar::I64, inverts, Operand::I64(1), m);
        let rest = b.i64(Op::Rem, &[a, divisor]);
        let there = b.icmp(Cmp::Ne, rest, Operand::I64(0));
        let signs = b.i64(Op::Xor, &[rest, m]);
        let differ = b.icmp(Cmp::Lt, signs, Operand::I64(0));
        let off = b.bool(Op::And, &[there, differ]);
        let lift = b.select(Scalar::I64, off, m, Operand::I64(0));
        b.i64(Op::Add, &[rest, lift])
    }

    #[test]
    fn a_remainder_of_small_numbers_is_one_narrow_instruction() {
        insta::assert_snapshot!(check(|b, index| {
            let x = b.load(Scalar::I64, INPUT, index);
            let dice = b.i64(Op::And, &[x, Operand::I64(0x7fff_ffff)]);
            let high = b.i64(Op::Shr, &[dice, Operand::I64(16)]);
            let packed = b.i64(Op::Param(ParamId(0)), &[]);
            let size = b.i64(Op::And, &[packed, Operand::I64(0xffff_ffff)]);
            let way = modulo(b, high, size);
            store(b, way);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = load in[job.0]
          v4: i64 = and v3, 2147483647
          v5: i64 = shr v4, 16
          v6: i64 = param p0 "n"
          v7: i64 = and v6, 4294967295
          v8: bool = icmp.eq v7, 0
          if v8 {
            trap s3
          }
          v9: i32 = narrow v5
          v10: i32 = narrow v6
          v11: i32 = urem v9, v10
          v12: i64 = widen v11
          store ints[job.0] = v12
        }
        "#);
    }

    #[test]
    fn a_remainder_of_what_is_hardly_negative_is_one_of_what_is_not() {
        let text = |least: i64| {
            check(|b, index| {
                let x = b.load(Scalar::I64, INPUT, index);
                let natural = b.i64(Op::And, &[x, Operand::I64(0xffff)]);
                let before = b.i64(Op::Sub, &[natural, Operand::I64(1)]);
                let packed = b.i64(Op::Param(ParamId(0)), &[]);
                let size = b.i64(Op::And, &[packed, Operand::I64(0xffff)]);
                let none = b.icmp(Cmp::Lt, size, Operand::I64(least));
                b.trap_if(none, OVERFLOW, vec![]);
                let way = modulo(b, before, size);
                let negative = b.icmp(Cmp::Lt, way, Operand::I64(0));
                b.trap_if(negative, OVERFLOW, vec![]);
                let far = b.i64(Op::Sub, &[natural, Operand::I64(3)]);
                let way_back = modulo(b, far, size);
                store(b, way);
                store(b, way_back);
            })
        };
        assert_eq!(text(1).matches("trap s").count(), 1, "{}", text(1));
        assert_eq!((text(1).matches("urem").count(), text(1).matches("= rem").count()), (1, 1), "{}", text(1));
        assert_eq!((text(3).matches("urem").count(), text(3).matches("= rem").count()), (2, 0), "{}", text(3));
    }

    #[test]
    fn a_remainder_of_unknown_numbers_keeps_its_tests() {
        insta::assert_snapshot!(check(|b, index| {
            let x = b.load(Scalar::I64, INPUT, index);
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let way = modulo(b, x, n);
            store(b, way);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = load in[job.0]
          v4: i64 = param p0 "n"
          v5: bool = icmp.eq v4, 0
          if v5 {
            trap s3
          }
          v6: bool = icmp.eq v4, -1
          v7: i64 = select v6, 1, v4
          v8: i64 = rem v3, v7
          v9: bool = icmp.ne v8, 0
          v10: i64 = xor v8, v4
          v11: bool = icmp.lt v10, 0
          v12: bool = and v9, v11
          v13: i64 = select v12, v4, 0
          v14: i64 = add v8, v13
          store ints[job.0] = v14
        }
        "#);
    }

    #[test]
    fn branches_bound_and_tags_are_bytes() {
        insta::assert_snapshot!(check(|b, index| {
            let x = b.load(Scalar::I64, INPUT, index);
            let low = b.icmp(Cmp::Ge, x, Operand::I64(0));
            let high = b.icmp(Cmp::Lt, x, Operand::I64(100));
            let both = b.bool(Op::And, &[low, high]);
            b.branch(both, |b| {
                let product = b.checked(CheckedOp::Mul, x, Operand::I64(1 << 40), OVERFLOW);
                store(b, product);
            }, |b| {
                let product = b.checked(CheckedOp::Mul, x, Operand::I64(2), OVERFLOW);
                store(b, product);
            });
            let tag = b.load(Scalar::I32, TAGS, index);
            let odd = b.icmp(Cmp::Lt, tag, Operand::I32(0));
            b.trap_if(odd, ZERO, vec![]);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = load in[job.0]
          v4: bool = icmp.ge v3, 0
          v5: bool = icmp.lt v3, 100
          v6: bool = and v4, v5
          if v6 {
            v7: i64 = shl v3, 40
            store ints[job.0] = v7
          } else {
            v8: i64 = checked mul v3, 2 else s0
            store ints[job.0] = v8
          }
        }
        "#);
    }

    #[test]
    fn what_is_not_at_an_edge_has_a_neighbour_on_each_side() {
        let text = |both: bool| {
            check(|b, index| {
                let packed = b.i64(Op::Param(ParamId(0)), &[]);
                let row = b.i64(Op::And, &[packed, Operand::I64(0xffff)]);
                let none = b.icmp(Cmp::Eq, row, Operand::I64(0));
                b.trap_if(none, ZERO, vec![]);
                let x = b.i64(Op::Rem, &[index, row]);
                let last = b.i64(Op::Sub, &[row, Operand::I64(1)]);
                for edge in [Operand::I64(0), last].into_iter().take(if both { 2 } else { 1 }) {
                    let at_edge = b.icmp(Cmp::Eq, x, edge);
                    b.when(at_edge, |b| b.push(Stmt::Return(vec![])));
                }
                for (op, beyond) in [(Op::Sub, Cmp::Lt), (Op::Add, Cmp::Ge)] {
                    let neighbour = b.i64(op, &[x, Operand::I64(1)]);
                    let end = if beyond == Cmp::Lt { Operand::I64(0) } else { row };
                    let outside = b.icmp(beyond, neighbour, end);
                    b.trap_if(outside, OVERFLOW, vec![]);
                    store(b, neighbour);
                }
            })
        };
        assert_eq!(text(true).matches("trap s0").count(), 0, "{}", text(true));
        assert_eq!(text(false).matches("trap s0").count(), 1, "{}", text(false));
    }

    #[test]
    fn a_neighbour_within_a_row_is_no_negative_index() {
        let text = check(|b, index| {
            let packed = b.i64(Op::Param(ParamId(0)), &[]);
            let row = b.i64(Op::And, &[packed, Operand::I64(0xffff)]);
            let none = b.icmp(Cmp::Eq, row, Operand::I64(0));
            b.trap_if(none, ZERO, vec![]);
            let quotient = b.i64(Op::Div, &[index, row]);
            let product = b.i64(Op::Mul, &[quotient, row]);
            let rest = b.i64(Op::Sub, &[index, product]);
            let again = b.i64(Op::Rem, &[index, row]);
            for edge in [quotient, again] {
                let at_edge = b.icmp(Cmp::Eq, edge, Operand::I64(0));
                b.when(at_edge, |b| b.push(Stmt::Return(vec![])));
            }
            let above = b.i64(Op::Sub, &[index, row]);
            let before = b.i64(Op::Sub, &[above, Operand::I64(1)]);
            for neighbour in [above, before, rest] {
                let negative = b.icmp(Cmp::Lt, neighbour, Operand::I64(0));
                b.trap_if(negative, ZERO, vec![]);
            }
            let beyond = b.i64(Op::Sub, &[before, Operand::I64(1)]);
            let negative = b.icmp(Cmp::Lt, beyond, Operand::I64(0));
            b.trap_if(negative, ZERO, vec![]);
            store(b, before);
        });
        assert_eq!(text.matches("trap").count(), 2, "of a row of 0, and of what is two before: {text}");
    }

    #[test]
    fn division_by_a_power_of_two_is_a_shift_or_a_mask() {
        let text = check(|b, index| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let outside = b.bool(Op::UCmp(Cmp::Gt), &[n, Operand::I64(60)]);
            b.trap_if(outside, OVERFLOW, vec![]);
            let power = b.i64(Op::Shl, &[Operand::I64(1), n]);
            let not_positive = b.icmp(Cmp::Le, power, Operand::I64(0));
            b.trap_if(not_positive, ZERO, vec![]);
            let quotient = b.i64(Op::Div, &[index, power]);
            store(b, quotient);
            let rest = b.i64(Op::Rem, &[index, power]);
            store(b, rest);
            // of what may be negative, the quotient is rounded towards zero
            let x = b.load(Scalar::I64, INPUT, index);
            let quotient = b.i64(Op::Div, &[x, power]);
            store(b, quotient);
            let triple = b.i64(Op::Shl, &[Operand::I64(3), n]);
            let quotient = b.i64(Op::Div, &[index, triple]);
            store(b, quotient);
        });
        let count = |op: &str| text.matches(op).count();
        let counts = ["= ushr ", "= and ", "= div ", "= udiv ", "rem ", "trap s3"].map(count);
        assert_eq!(counts, [1, 1, 1, 1, 0, 0], "{text}");
    }

    #[test]
    fn a_shift_that_loses_nothing_is_not_tested() {
        insta::assert_snapshot!(check(|b, index| {
            for by in [8, 40] {
                let shifted = b.i64(Op::Shl, &[index, Operand::I64(by)]);
                let back = b.i64(Op::Shr, &[shifted, Operand::I64(by)]);
                let lost = b.icmp(Cmp::Ne, back, index);
                b.trap_if(lost, OVERFLOW, vec![]);
                store(b, shifted);
            }
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = shl job.0, 8
          store ints[job.0] = v3
          v4: i64 = shl job.0, 40
          v5: i64 = shr v4, 40
          v6: bool = icmp.ne v5, job.0
          if v6 {
            trap s0
          }
          store ints[job.0] = v4
        }
        "#);
    }

    #[test]
    fn what_is_before_something_is_less() {
        insta::assert_snapshot!(check(|b, index| {
            let packed = b.i64(Op::Param(ParamId(0)), &[]);
            let size = b.i64(Op::And, &[packed, Operand::I64(0xffff_ffff)]);
            let empty = b.icmp(Cmp::Eq, size, Operand::I64(0));
            b.trap_if(empty, ZERO, vec![]);
            let last = b.i64(Op::Sub, &[size, Operand::I64(1)]);
            let outside = b.bool(Op::UCmp(Cmp::Ge), &[last, size]);
            b.trap_if(outside, ZERO, vec![]);
            store(b, last);
            // This one may wrap.
            let x = b.load(Scalar::I64, INPUT, index);
            let less = b.i64(Op::Sub, &[x, Operand::I64(1)]);
            let wrapped = b.icmp(Cmp::Gt, less, x);
            b.trap_if(wrapped, ZERO, vec![]);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = param p0 "n"
          v4: i64 = and v3, 4294967295
          v5: bool = icmp.eq v4, 0
          if v5 {
            trap s3
          }
          v6: i64 = sub v4, 1
          store ints[job.0] = v6
          v7: i64 = load in[job.0]
          v8: i64 = sub v7, 1
          v9: bool = icmp.gt v8, v7
          if v9 {
            trap s3
          }
        }
        "#);
    }

    #[test]
    fn the_lesser_of_two_is_bounded_by_both() {
        insta::assert_snapshot!(check(|b, index| {
            let x = b.load(Scalar::I64, INPUT, index);
            let less = b.icmp(Cmp::Lt, x, Operand::I64(1000));
            let least = b.select(Scalar::I64, less, x, Operand::I64(1000));
            let next = b.checked(CheckedOp::Add, least, Operand::I64(1), OVERFLOW);
            let before = b.checked(CheckedOp::Sub, least, Operand::I64(1), OVERFLOW);
            store(b, next);
            store(b, before);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = load in[job.0]
          v4: bool = icmp.lt v3, 1000
          v5: i64 = select v4, v3, 1000
          v6: i64 = add v5, 1
          v7: i64 = checked sub v5, 1 else s0
          store ints[job.0] = v6
          store ints[job.0] = v7
        }
        "#);
    }
}
