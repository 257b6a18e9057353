//! Loops whose repetitions may run at the same time.
//!
//! A loop is shared if all of this holds:
//!
//! * It counts: its exits compare a register that grows by a constant with one that stays, or what is left with the
//!   step (`step` does, where the count could overflow). Nothing but counting stands behind the first of them. Then the
//!   number of repetitions is known in front of it.
//! * No repetition reads a register that another one assigned. Registers that grow by constants are computed.
//! * No repetition reads or writes what another one writes. The row of each store grows by a constant. Another access
//!   to the column grows by the same constant or stays, and is proved or tested to be apart.
//! * A repetition has no other effects than stores, exceptions, and loops that surely end where it may raise.

use super::values::{Value, Values, unchecked};
use super::{Maker, count_reads};
use crate::ir::{CheckedOp, Cmp, ColumnId, Ctx, LabelId, Op, Operand, Scalar, SiteId, Stmt, VarId, walk};
use crate::passes::loops::{assigned_in, is_read};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Repetitions with a lower distance than this depend on each other nearly always.
const NEAR: i64 = 32;
/// The most tests in front of a loop.
const MAX_TESTS: usize = 16;
/// The number of repetitions of a loop that never ends by one of its exits.
const ENDLESS: i64 = 1 << 62;

/// An access to a column.
struct Access {
    column: ColumnId,
    stores: bool,
    /// None: the row is not known.
    row: Option<Value>,
    /// The sides of branches around it whose conditions all repetitions share.
    sides: Vec<(Operand, bool)>,
}

/// A test of an exit: the loop ends if it holds.
#[derive(Clone, Copy)]
struct Exit {
    cmp: Cmp,
    /// It grows.
    count: Value,
    step: i64,
    end: Value,
    /// Whether a negative count is beyond all positive ones: it is what is left, as an unsigned number.
    unsigned: bool,
}

/// Accesses of which no repetition may touch what another one stores.
struct Test {
    stored: Value,
    step: i64,
    /// The row of the other access. A test may be for several rows, from `low` to `high` beyond it.
    other: Value,
    low: i64,
    high: i64,
    /// Whether the other row is the same in all repetitions.
    stays: bool,
}

/// A register that grows by a constant.
struct Counter {
    v: VarId,
    step: i64,
    /// Its value at each exit in the first repetition, if code around the loop, or the next run of the loop, may read
    /// it.
    last: Option<Vec<Value>>,
    /// Whether the body reads it after it has grown.
    read_late: bool,
}

/// A loop that can be shared.
struct Found {
    values: Values,
    exits: Vec<Exit>,
    counters: Vec<Counter>,
    /// What each repetition does, apart from counting.
    body: Vec<Stmt>,
    tests: Vec<Test>,
    /// Whether repetitions may raise, or look whether the launch was stopped.
    notes: bool,
    stores: BTreeSet<ColumnId>,
}

impl Maker {
    /// A loop that the lanes share. None: it cannot be shared.
    pub(super) fn shared_loop(&mut self, label: LabelId, body: &[Stmt]) -> Option<Vec<Stmt>> {
        let Found { mut values, exits, counters, body, tests, notes, stores } = self.find(label, body)?;
        let mut out = Vec::new();
        let (times, sooner) = self.times(&mut values, &exits, &mut out);
        let (start, by) = self.shares_of(&mut values, &tests, times, &mut out);
        // what registers hold behind the loop follows from what they hold in front of it
        let more = self.int(Op::Sub, &[times, Operand::I64(1)], &mut out);
        let mut behind = Vec::new();
        for counter in &counters {
            let Some(last) = &counter.last else { continue };
            let first = self.at_exit(&mut values, last, &sooner, &mut out);
            let grown = self.times_constant(more, counter.step, &mut out);
            let last = self.int(Op::Add, &[first, grown], &mut out);
            behind.push(Stmt::Let { dst: counter.v, op: Op::Copy, args: vec![last] });
        }
        let meets = stores.iter().any(|column| self.meets[column.index()]);
        if meets {
            self.meet(&mut out);
        }
        let (mut begin, mut end) = (Vec::new(), Vec::new());
        for Counter { v, step, read_late, .. } in &counters {
            let grows = if *read_late { self.fresh(Scalar::I64) } else { *v };
            let [ahead, stride] = [start, by].map(|times| self.times_constant(times, *step, &mut out));
            out.push(Stmt::Let { dst: grows, op: Op::Add, args: vec![(*v).into(), ahead] });
            if *read_late {
                begin.push(Stmt::Let { dst: *v, op: Op::Copy, args: vec![grows.into()] });
            }
            end.push(Stmt::Let { dst: grows, op: Op::Add, args: vec![grows.into(), stride] });
        }
        let turn = self.fresh(Scalar::I64);
        out.push(Stmt::Let { dst: turn, op: Op::Copy, args: vec![start] });
        let mut raised = Raised { leave: self.label(), which: self.fresh(Scalar::I64), sites: Vec::new() };
        let mut each = Vec::new();
        let over = self.test(Cmp::Ge, turn.into(), times, &mut each);
        each.push(Stmt::If { cond: over, then: vec![Stmt::Break(label)], otherwise: Vec::new() });
        each.extend(begin);
        each.extend(self.noting(&body, &mut raised));
        each.extend(end);
        each.push(Stmt::Let { dst: turn, op: Op::Add, args: vec![turn.into(), by] });
        let shared = Stmt::Loop { label, body: each };
        if !notes {
            out.push(shared);
            if meets {
                self.meet(&mut out);
            }
        } else {
            out.push(Stmt::Let { dst: raised.which, op: Op::Copy, args: vec![Operand::I64(0)] });
            for (_, words) in &raised.sites {
                out.extend(words.iter().map(|v| Stmt::Let {
                    dst: *v,
                    op: Op::Copy,
                    args: vec![Operand::zero(self.func.vars[v.index()].ty)],
                }));
            }
            out.push(Stmt::Block { label: raised.leave, body: vec![shared] });
            self.raise(&raised, turn.into(), &mut out);
        }
        out.extend(behind);
        self.stores.extend(stores);
        Some(out)
    }

    /// Raises the exception of the least repetition, if there is one.
    fn raise(&mut self, raised: &Raised, turn: Operand, out: &mut Vec<Stmt>) {
        let which = raised.which.into();
        let went = self.test(Cmp::Eq, which, Operand::I64(0), out);
        let stopped = self.test(Cmp::Eq, which, Operand::I64(STOPPED), out);
        let turn = self.int(Op::Select, &[stopped, Operand::I64(STOPPED), turn], out);
        let mine = self.int(Op::Select, &[went, Operand::I64(i64::MAX), turn], out);
        let least = self.fresh(Scalar::I64);
        out.push(Stmt::Meet { dst: least, value: mine });
        let ends = self.test(Cmp::Ne, least.into(), Operand::I64(i64::MAX), out);
        let mut then = Vec::new();
        let first = self.test(Cmp::Eq, mine, least.into(), &mut then);
        let mut raise = Vec::new();
        for (number, (site, words)) in raised.sites.iter().enumerate() {
            let this = self.test(Cmp::Eq, which, Operand::I64(number as i64 + 1), &mut raise);
            let trap = Stmt::Trap { site: *site, operands: words.iter().map(|v| (*v).into()).collect() };
            raise.push(Stmt::If { cond: this, then: vec![trap], otherwise: Vec::new() });
        }
        then.push(Stmt::If { cond: first, then: raise, otherwise: Vec::new() });
        then.push(Stmt::Return(Vec::new()));
        out.push(Stmt::If { cond: ends, then, otherwise: Vec::new() });
    }

    /// The statements of a repetition, which note what they would raise and leave the loop.
    fn noting(&mut self, body: &[Stmt], raised: &mut Raised) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(body.len());
        for stmt in body {
            match stmt {
                Stmt::Trap { site, operands } => out.extend(self.note(*site, operands, raised)),
                Stmt::Checked { dst, op, args, site } => {
                    let overflows = self.overflow(*dst, *op, *args, &mut out);
                    let then = self.note(*site, &[], raised);
                    out.push(Stmt::If { cond: overflows, then, otherwise: Vec::new() });
                }
                Stmt::Poll => {
                    let stopped = self.op(Scalar::Bool, Op::Ctx(Ctx::Stopped), &[], &mut out);
                    let note = Stmt::Let { dst: raised.which, op: Op::Copy, args: vec![Operand::I64(STOPPED)] };
                    let then = vec![note, Stmt::Break(raised.leave)];
                    out.push(Stmt::If { cond: stopped, then, otherwise: Vec::new() });
                }
                Stmt::If { cond, then, otherwise } => {
                    let (then, otherwise) = (self.noting(then, raised), self.noting(otherwise, raised));
                    out.push(Stmt::If { cond: *cond, then, otherwise });
                }
                Stmt::Block { label, body } => {
                    out.push(Stmt::Block { label: *label, body: self.noting(body, raised) });
                }
                Stmt::Loop { label, body } => {
                    out.push(Stmt::Loop { label: *label, body: self.noting(body, raised) });
                }
                _ => out.push(stmt.clone()),
            }
        }
        out
    }

    fn note(&mut self, site: SiteId, operands: &[Operand], raised: &mut Raised) -> Vec<Stmt> {
        let words: Vec<VarId> = operands.iter().map(|operand| self.fresh(self.func.ty(*operand))).collect();
        let mut out: Vec<Stmt> = words
            .iter()
            .zip(operands)
            .map(|(dst, operand)| Stmt::Let { dst: *dst, op: Op::Copy, args: vec![*operand] })
            .collect();
        raised.sites.push((site, words));
        let number = Operand::I64(raised.sites.len() as i64);
        out.push(Stmt::Let { dst: raised.which, op: Op::Copy, args: vec![number] });
        out.push(Stmt::Break(raised.leave));
        out
    }

    /// Computes what a checked operation does. Returns whether it overflows.
    fn overflow(&mut self, dst: VarId, op: CheckedOp, [a, b]: [Operand; 2], out: &mut Vec<Stmt>) -> Operand {
        // the result may be one of the operands
        let result = self.int(unchecked(op), &[a, b], out);
        let overflows = match op {
            CheckedOp::Mul => {
                let high = self.int(Op::MulHi, &[a, b], out);
                let sign = self.int(Op::Shr, &[result, Operand::I64(63)], out);
                self.test(Cmp::Ne, high, sign, out)
            }
            CheckedOp::And => self.test(Cmp::Lt, result, Operand::I64(0), out),
            CheckedOp::Add | CheckedOp::Sub => {
                let one = self.int(Op::Xor, &[a, result], out);
                let other = if op == CheckedOp::Add { result } else { a };
                let other = self.int(Op::Xor, &[b, other], out);
                let both = self.int(Op::And, &[one, other], out);
                self.test(Cmp::Lt, both, Operand::I64(0), out)
            }
        };
        out.push(Stmt::Let { dst, op: Op::Copy, args: vec![result] });
        overflows
    }

    /// The value that the loop leaves by one of its exits: the last one that ends it sooner than all before it.
    fn at_exit(&mut self, values: &mut Values, last: &[Value], sooner: &[Operand], out: &mut Vec<Stmt>) -> Operand {
        let mut left = values.first(last[0], &mut self.func, out);
        if last.iter().all(|value| *value == last[0]) {
            return left;
        }
        for (value, sooner) in last[1..].iter().zip(sooner) {
            let value = values.first(*value, &mut self.func, out);
            left = self.int(Op::Select, &[*sooner, value, left], out);
        }
        left
    }

    /// The number of repetitions, at least 1. For each exit but the first, also whether it ends the loop sooner than
    /// those before it.
    fn times(&mut self, values: &mut Values, exits: &[Exit], out: &mut Vec<Stmt>) -> (Operand, Vec<Operand>) {
        let (mut least, mut sooner) = (None, Vec::new());
        for Exit { cmp, count, step, end, unsigned } in exits {
            let first = values.first(*count, &mut self.func, out);
            let end = values.first(*end, &mut self.func, out);
            let (low, high) = if *step > 0 { (first, end) } else { (end, first) };
            let distance = self.int(Op::Sub, &[high, low], out);
            // a distance beyond 64 bits takes for ever
            let wraps = self.test(Cmp::Lt, distance, Operand::I64(0), out);
            let distance = self.int(Op::Select, &[wraps, Operand::I64(ENDLESS), distance], out);
            let one = Operand::I64(1);
            let (ahead, repeats, otherwise) = match cmp {
                // it ends in the first repetition in which the count has gone the distance
                Cmp::Ge | Cmp::Le => {
                    let ahead = self.test(Cmp::Lt, low, high, out);
                    let more = match step.abs() {
                        1 => distance,
                        by => {
                            let less = self.int(Op::Sub, &[distance, one], out);
                            let whole = self.int(Op::Div, &[less, Operand::I64(by)], out);
                            self.int(Op::Add, &[whole, one], out)
                        }
                    };
                    (ahead, self.int(Op::Add, &[more, one], out), 1)
                }
                // more than the distance
                Cmp::Gt | Cmp::Lt => {
                    let ahead = self.test(Cmp::Le, low, high, out);
                    let whole = match step.abs() {
                        1 => distance,
                        by => self.int(Op::Div, &[distance, Operand::I64(by)], out),
                    };
                    (ahead, self.int(Op::Add, &[whole, Operand::I64(2)], out), 1)
                }
                // exactly the distance
                Cmp::Eq | Cmp::Ne => {
                    let ahead = self.test(Cmp::Le, low, high, out);
                    (ahead, self.int(Op::Add, &[distance, one], out), ENDLESS)
                }
            };
            let mut times = self.int(Op::Select, &[ahead, repeats, Operand::I64(otherwise)], out);
            if *unsigned {
                let far = self.test(Cmp::Lt, first, Operand::I64(0), out);
                times = self.int(Op::Select, &[far, Operand::I64(ENDLESS), times], out);
            }
            least = Some(match least {
                None => times,
                Some(least) => {
                    let fewer = self.test(Cmp::Lt, times, least, out);
                    sooner.push(fewer);
                    self.int(Op::Select, &[fewer, times, least], out)
                }
            });
        }
        (least.unwrap_or(Operand::I64(ENDLESS)), sooner)
    }

    /// The first repetition of a lane, and the distance to its next one.
    fn shares_of(
        &mut self,
        values: &mut Values,
        tests: &[Test],
        times: Operand,
        out: &mut Vec<Stmt>,
    ) -> (Operand, Operand) {
        let (lane, lanes, first) = (self.lane, self.lanes, self.first);
        let assumed = values.assumed.clone();
        if tests.is_empty() && assumed.is_empty() {
            return (lane, lanes);
        }
        // fewer repetitions than rows, so that products do not wrap
        let mut all = self.test(Cmp::Lt, times, Operand::I64(1 << 32), out);
        let more = self.int(Op::Sub, &[times, Operand::I64(1)], out);
        for index in assumed {
            let first = values.first(index, &mut self.func, out);
            let grown = self.times_constant(more, values.step(index), out);
            let last = self.int(Op::Add, &[first, grown], out);
            for end in [first, last] {
                let is_index = self.test(Cmp::Ge, end, Operand::I64(0), out);
                all = self.op(Scalar::Bool, Op::And, &[all, is_index], out);
            }
        }
        for Test { stored, step, other, low, high, stays } in tests {
            let [stored, other] = [*stored, *other].map(|value| values.first(value, &mut self.func, out));
            let apart = self.int(Op::Sub, &[other, stored], out);
            let range = self.times_constant(times, step.abs(), out);
            let ahead = self.plus_constant(apart, *low, out);
            let farthest = self.plus_constant(apart, *high, out);
            let back = self.int(Op::Sub, &[Operand::I64(0), farthest], out);
            let (ahead, back) = if *step > 0 { (ahead, back) } else { (back, ahead) };
            let beyond = self.test(Cmp::Ge, ahead, range, out);
            let before = self.test(Cmp::Ge, back, if *stays { Operand::I64(1) } else { range }, out);
            let mut passes = self.op(Scalar::Bool, Op::Or, &[beyond, before], out);
            // several rows are never all of them the stored one
            if !stays && low == high {
                let same = self.test(Cmp::Eq, apart, Operand::I64(0), out);
                passes = self.op(Scalar::Bool, Op::Or, &[passes, same], out);
            }
            if step.abs() > 1 {
                let rest = self.int(Op::Rem, &[apart, Operand::I64(step.abs())], out);
                let between = self.test(Cmp::Ne, rest, Operand::I64(0), out);
                passes = self.op(Scalar::Bool, Op::Or, &[passes, between], out);
            }
            all = self.op(Scalar::Bool, Op::And, &[all, passes], out);
        }
        let alone = self.int(Op::Select, &[first, Operand::I64(0), times], out);
        let start = self.int(Op::Select, &[all, lane, alone], out);
        let by = self.int(Op::Select, &[all, lanes, Operand::I64(1)], out);
        (start, by)
    }

    /// What is known of a loop that can be shared.
    fn find(&mut self, label: LabelId, body: &[Stmt]) -> Option<Found> {
        let mut assigned = HashMap::<VarId, u32>::new();
        walk(body, &mut |stmt| stmt.assigns().iter().for_each(|v| *assigned.entry(*v).or_default() += 1));
        let steps = steps_of(body, &assigned);
        let counted = |stmt: &Stmt| match stmt {
            Stmt::Let { dst, .. } | Stmt::Checked { dst, .. } if steps.contains_key(dst) => Some(*dst),
            _ => None,
        };
        let mut values = Values::new(assigned.keys().copied());
        steps.iter().for_each(|(v, step)| values.counts(*v, *step));
        let mut looked = Looked {
            values,
            assigned: &assigned,
            accesses: Vec::new(),
            sides: Vec::new(),
            labels: HashSet::new(),
            raises: false,
            polls: false,
            endless: false,
        };
        let (mut exits, mut conditions, mut own, mut ends) = (Vec::new(), HashMap::new(), Vec::new(), Vec::new());
        let mut tested = HashSet::new();
        for stmt in body {
            match stmt {
                Stmt::If { cond: Operand::Var(cond), then, otherwise }
                    if then[..] == [Stmt::Break(label)] && otherwise.is_empty() =>
                {
                    exits.push(*conditions.get(cond)?);
                    tested.insert(*cond);
                    ends.push(steps.keys().map(|v| looked.values.of((*v).into())).collect::<Vec<_>>());
                    continue;
                }
                Stmt::Let { dst, op: op @ (Op::ICmp(_) | Op::UCmp(_)), args } => {
                    looked.stmt(&self.func, stmt)?;
                    if let Some(exit) = looked.exit(*op, args) {
                        conditions.insert(*dst, exit);
                    }
                }
                Stmt::Let { .. } | Stmt::Poll => looked.stmt(&self.func, stmt)?,
                _ if exits.is_empty() => looked.stmt(&self.func, stmt)?,
                _ => return None,
            }
            if exits.is_empty() || *stmt == Stmt::Poll {
                own.push(stmt);
            }
        }
        if exits.is_empty() || looked.raises && looked.endless || !looked.accesses.iter().any(|access| access.stores) {
            return None;
        }
        let Looked { values, accesses, raises, polls, .. } = looked;
        let tests = tests(&values, &accesses)?;
        // what only exits read is left out, and so is counting
        tested.retain(|v| self.reads[v.index()] == 1);
        let own: Vec<Stmt> = own
            .into_iter()
            .filter(|stmt| !matches!(stmt, Stmt::Let { dst, .. } if tested.contains(dst)))
            .cloned()
            .collect();
        let (mut repeated, mut late) = (Vec::new(), BTreeSet::new());
        for (at, stmt) in own.iter().enumerate() {
            match counted(stmt) {
                // one that may raise stays
                Some(v) if matches!(stmt, Stmt::Let { .. }) && !is_read(&own[at + 1..], v) => {}
                Some(v) => {
                    late.insert(v);
                    repeated.push(stmt.clone());
                }
                None => repeated.push(stmt.clone()),
            }
        }
        let assigned: HashSet<VarId> = assigned_in(body).into_iter().filter(|v| !steps.contains_key(v)).collect();
        if is_carried(&repeated, &assigned) {
            return None;
        }
        let mut inside = vec![0; self.reads.len()];
        count_reads(body, &mut inside);
        let outside = |v: VarId| self.reads[v.index()] > inside[v.index()];
        if assigned.iter().any(|v| outside(*v)) {
            return None;
        }
        let counter = |(at, (v, step)): (usize, (&VarId, &i64))| {
            // where a loop is around this one, this one may begin with what it left
            let last = match outside(*v) || self.around > 0 {
                true => Some(ends.iter().map(|end| end[at]).collect::<Option<_>>()?),
                false => None,
            };
            Some(Counter { v: *v, step: *step, last, read_late: late.contains(v) })
        };
        let counters: Vec<Counter> = steps.iter().enumerate().map(counter).collect::<Option<_>>()?;
        let stores = accesses.iter().filter(|access| access.stores).map(|access| access.column).collect();
        Some(Found { values, exits, counters, body: repeated, tests, notes: raises || polls, stores })
    }
}

/// The number of a stop from outside among what a lane notes, and its repetition, which is less than all others.
const STOPPED: i64 = -1;

/// What lanes note in a loop.
struct Raised {
    /// The block around the loop.
    leave: LabelId,
    /// The number of the site, from 1; 0: none.
    which: VarId,
    /// The sites, each with the registers of its operands.
    sites: Vec<(SiteId, Vec<VarId>)>,
}

/// Follows the statements of a body.
struct Looked<'a> {
    values: Values,
    /// How often the body assigns each register.
    assigned: &'a HashMap<VarId, u32>,
    accesses: Vec<Access>,
    sides: Vec<(Operand, bool)>,
    /// The labels that are open.
    labels: HashSet<LabelId>,
    raises: bool,
    polls: bool,
    /// Whether an inner loop may run for ever.
    endless: bool,
}

impl Looked<'_> {
    fn list(&mut self, func: &crate::ir::Func, body: &[Stmt]) -> Option<()> {
        body.iter().try_for_each(|stmt| self.stmt(func, stmt))
    }

    /// None: the statement does what repetitions must not do at the same time.
    fn stmt(&mut self, func: &crate::ir::Func, stmt: &Stmt) -> Option<()> {
        match stmt {
            Stmt::Let { op: Op::Random | Op::Ctx(Ctx::Slot | Ctx::Stopped), .. } => return None,
            Stmt::Let { dst, op, args } => self.assign(func, *dst, *op, args),
            Stmt::Checked { dst, op, args, .. } => {
                self.raises = true;
                self.assign(func, *dst, unchecked(*op), args);
            }
            Stmt::Load { column, row, .. } => self.access(*column, *row, false),
            Stmt::Store { column, row, .. } => self.access(*column, *row, true),
            Stmt::If { cond, then, otherwise } => {
                let shared = !matches!(cond, Operand::Var(v) if self.assigned.contains_key(v));
                for (side, body) in [(true, then), (false, otherwise)] {
                    if shared {
                        self.sides.push((*cond, side));
                    }
                    self.list(func, body)?;
                    if shared {
                        self.sides.pop();
                    }
                }
            }
            Stmt::Block { label, body } | Stmt::Loop { label, body } => {
                self.endless |= matches!(stmt, Stmt::Loop { .. }) && !surely_ends(*label, body);
                self.labels.insert(*label);
                self.list(func, body)?;
                self.labels.remove(label);
            }
            Stmt::Break(label) => return self.labels.contains(label).then_some(()),
            Stmt::Trap { .. } => self.raises = true,
            Stmt::Poll => self.polls = true,
            Stmt::Atomic { .. }
            | Stmt::Emit { .. }
            | Stmt::KeyPart { .. }
            | Stmt::FetchAdd { .. }
            | Stmt::Alloc { .. }
            | Stmt::Try { .. }
            | Stmt::Call { .. }
            | Stmt::Return(_)
            | Stmt::Place(_)
            | Stmt::Meet { .. }
            | Stmt::Begin { .. } => return None,
        }
        Some(())
    }

    fn assign(&mut self, func: &crate::ir::Func, dst: VarId, op: Op, args: &[Operand]) {
        if self.assigned[&dst] == 1 {
            self.values.assign(func, dst, op, args);
        }
    }

    fn access(&mut self, column: ColumnId, row: Operand, stores: bool) {
        self.accesses.push(Access { column, stores, row: self.values.of(row), sides: self.sides.clone() });
    }

    /// The exit that a comparison tests.
    fn exit(&self, op: Op, args: &[Operand]) -> Option<Exit> {
        let [a, b] = [self.values.of(args[0])?, self.values.of(args[1])?];
        let cmp = match op {
            Op::ICmp(cmp) => cmp,
            // less than a step is left
            Op::UCmp(Cmp::Lt) => {
                let step = self.values.step(a);
                let fits = step < 0 && args[1] == Operand::I64(-step);
                return fits.then_some(Exit { cmp: Cmp::Lt, count: a, step, end: b, unsigned: true });
            }
            _ => return None,
        };
        let (cmp, count, end) = if self.values.step(b) == 0 { (cmp, a, b) } else { (turned(cmp), b, a) };
        let (step, rests) = (self.values.step(count), self.values.step(end) == 0);
        let fits = match cmp {
            Cmp::Ge | Cmp::Gt => step > 0,
            Cmp::Le | Cmp::Lt => step < 0,
            Cmp::Eq => step.abs() == 1,
            Cmp::Ne => false,
        };
        (rests && fits).then_some(Exit { cmp, count, step, end, unsigned: false })
    }
}

fn turned(cmp: Cmp) -> Cmp {
    match cmp {
        Cmp::Lt => Cmp::Gt,
        Cmp::Le => Cmp::Ge,
        Cmp::Gt => Cmp::Lt,
        Cmp::Ge => Cmp::Le,
        same => same,
    }
}

/// Whether an inner loop surely ends: each repetition that goes on has counted towards an exit.
fn surely_ends(label: LabelId, body: &[Stmt]) -> bool {
    let assigned = assigned_in(body);
    let once = |v: VarId| {
        let mut times = 0;
        walk(body, &mut |stmt| times += stmt.assigns().iter().filter(|dst| **dst == v).count());
        times == 1
    };
    let step = |v: VarId| step_of(body, v).filter(|_| once(v));
    let stays = |operand: Operand| !matches!(operand, Operand::Var(v) if assigned.contains(&v));
    body.iter().enumerate().any(|(at, stmt)| {
        let Stmt::If { cond: Operand::Var(cond), then, otherwise } = stmt else { return false };
        if then[..] != [Stmt::Break(label)] || !otherwise.is_empty() {
            return false;
        }
        body[..at].iter().rev().any(|test| match test {
            Stmt::Let { dst, op: Op::ICmp(cmp), args } if dst == cond => match (args[0], cmp) {
                (Operand::Var(v), Cmp::Ge | Cmp::Gt) => step(v).is_some_and(|step| step > 0) && stays(args[1]),
                (Operand::Var(v), Cmp::Le | Cmp::Lt) => step(v).is_some_and(|step| step < 0) && stays(args[1]),
                _ => false,
            },
            _ => false,
        })
    })
}

/// By how much a list increases a register before it may leave, in each run of it.
fn step_of(body: &[Stmt], v: VarId) -> Option<i64> {
    for stmt in body {
        match stmt {
            Stmt::Let { dst, op: Op::Add, args } if *dst == v => {
                return match args[..] {
                    [Operand::Var(from), Operand::I64(step)] | [Operand::I64(step), Operand::Var(from)]
                        if from == v =>
                    {
                        Some(step)
                    }
                    _ => None,
                };
            }
            // it repeats at least once
            Stmt::Loop { body, .. } => {
                if let Some(step) = step_of(body, v) {
                    return Some(step);
                }
            }
            Stmt::If { then, otherwise, .. } => {
                let raises = |side: &[Stmt]| matches!(side, [.., Stmt::Trap { .. }]);
                let mut leaves = false;
                for side in [then, otherwise].into_iter().filter(|side| !raises(side)) {
                    walk(side, &mut |stmt| leaves |= matches!(stmt, Stmt::Break(_)));
                }
                if leaves {
                    return None;
                }
            }
            Stmt::Block { .. } | Stmt::Break(_) => return None,
            _ => {}
        }
    }
    None
}

/// The registers that a body counts, each with its step. Each repetition assigns it once, from its former value.
fn steps_of(body: &[Stmt], assigned: &HashMap<VarId, u32>) -> BTreeMap<VarId, i64> {
    let (mut steps, mut grown) = (BTreeMap::<VarId, i64>::new(), HashMap::<VarId, (VarId, i64)>::new());
    for stmt in body {
        let (dst, from, step) = match stmt {
            Stmt::Let { dst, op, args } => match (op, &args[..]) {
                (Op::Add, [Operand::Var(v), Operand::I64(step)] | [Operand::I64(step), Operand::Var(v)]) => {
                    (dst, *v, *step)
                }
                (Op::Sub, [Operand::Var(v), Operand::I64(by)]) => (dst, *v, by.wrapping_neg()),
                // the register's next value was computed before
                (Op::Copy, [Operand::Var(next)]) if let Some((v, step)) = grown.get(next) => (dst, *v, *step),
                _ => continue,
            },
            Stmt::Checked { dst, op: CheckedOp::Add, args: [Operand::Var(v), Operand::I64(step)], .. } => {
                (dst, *v, *step)
            }
            Stmt::Checked { dst, op: CheckedOp::Sub, args: [Operand::Var(v), Operand::I64(by)], .. } => {
                (dst, *v, by.wrapping_neg())
            }
            _ => continue,
        };
        if assigned[dst] != 1 {
            continue;
        }
        if from != *dst {
            grown.insert(*dst, (from, step));
        } else if step != 0 && step.unsigned_abs() < 1 << 31 {
            steps.insert(from, step);
        }
    }
    steps
}

/// What must be tested so that no repetition touches what another one stores. None: one may.
fn tests(values: &Values, accesses: &[Access]) -> Option<Vec<Test>> {
    let mut tests: Vec<Test> = Vec::new();
    for (at, store) in accesses.iter().enumerate().filter(|(_, access)| access.stores) {
        let stored = store.row?;
        let step = values.step(stored);
        if step == 0 || step.unsigned_abs() >= 1 << 31 {
            return None;
        }
        for (number, other) in accesses.iter().enumerate() {
            // each pair of stores once
            let done = other.stores && number <= at;
            let excluded = store.sides.iter().any(|(cond, side)| other.sides.contains(&(*cond, !side)));
            if other.column != store.column || done || excluded {
                continue;
            }
            let row = other.row?;
            let (stays, same) = (values.step(row) == 0, values.step(row) == step);
            if !(stays || same) {
                return None;
            }
            if same && let Some(apart) = values.distance(stored, row) {
                if apart == 0 || apart % step != 0 {
                    continue;
                }
                if (apart / step).abs() < NEAR {
                    return None;
                }
            }
            // neighbouring rows are tested together
            let known = tests.iter_mut().filter(|test| test.stored == stored && test.stays == stays);
            let near = known.filter_map(|test| Some((values.distance(test.other, row)?, test)));
            match near.into_iter().find(|(apart, _)| *apart == 0 || step.abs() == 1 && apart.abs() < NEAR) {
                Some((apart, test)) => (test.low, test.high) = (test.low.min(apart), test.high.max(apart)),
                None => tests.push(Test { stored, step, other: row, low: 0, high: 0, stays }),
            }
        }
    }
    (tests.len() <= MAX_TESTS).then_some(tests)
}

/// Whether a repetition may read one of the registers before it assigns it.
fn is_carried(body: &[Stmt], assigned: &HashSet<VarId>) -> bool {
    let mut carried = Carried { assigned, left: HashMap::new(), found: false };
    carried.list(body, Some(HashSet::new()));
    carried.found
}

struct Carried<'a> {
    assigned: &'a HashSet<VarId>,
    /// The registers that are assigned at each break to a label.
    left: HashMap<LabelId, Option<HashSet<VarId>>>,
    found: bool,
}

impl Carried<'_> {
    /// The registers that are assigned behind a list. None: control does not get there.
    fn list(&mut self, body: &[Stmt], mut set: Option<HashSet<VarId>>) -> Option<HashSet<VarId>> {
        for stmt in body {
            let mut known = set?;
            stmt.reads(|operand| {
                self.found |= matches!(operand, Operand::Var(v) if self.assigned.contains(&v) && !known.contains(&v));
            });
            known.extend(stmt.assigns());
            set = match stmt {
                Stmt::If { then, otherwise, .. } => {
                    let (then, otherwise) = (self.list(then, Some(known.clone())), self.list(otherwise, Some(known)));
                    both(then, otherwise)
                }
                Stmt::Block { label, body } => {
                    let passed = self.list(body, Some(known));
                    both(passed, self.left.remove(label).flatten())
                }
                Stmt::Loop { label, body } => {
                    self.list(body, Some(known));
                    self.left.remove(label).flatten()
                }
                Stmt::Break(label) => {
                    let before = self.left.remove(label).flatten();
                    self.left.insert(*label, both(before, Some(known)));
                    None
                }
                Stmt::Return(_) | Stmt::Trap { .. } => None,
                _ => Some(known),
            };
        }
        set
    }
}

/// What is assigned behind two paths.
fn both(one: Option<HashSet<VarId>>, other: Option<HashSet<VarId>>) -> Option<HashSet<VarId>> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.intersection(&other).copied().collect()),
        (one, None) => one,
        (None, other) => other,
    }
}
