//! Checks of indices in a strip: made for its first and its last repetition, instead of in each.
//!
//! A check in a loop keeps compilers for GPUs from overlapping the loads of several repetitions. [`super::strip_mine`]
//! takes checks of the count itself out of a strip. In a flat matrix, indices are linear in the count: `row * n + k`,
//! `k * n + column`. So they lie between those of a strip's first and last repetition.
//!
//! ```text
//!                                     x = a * i + b; trap if x >= m
//! loop {                              y = a * (stop - 1) + b; stop = i + 1 if y >= m
//!   x = a * i + b; trap if x >= m     loop {
//!   c[x] …                        →     x = a * i + b
//!   i += 1; break if i >= stop          c[x] …
//! }                                     i += 1; break if i >= stop
//!                                     }
//! ```
//!
//! A strip in which a check may fail has one repetition only, before which all checks are made. So the exception is
//! raised where the loop would have raised it, and the strips before it are as long as ever.
//!
//! A register to which each repetition adds the same is linear in the count, too: `index += n`. Where its check has
//! passed, it is far from the greatest Integer, so the strip adds without a check for overflow.
//!
//! Intervals ([`super::ranges`]) have to show that no index wraps around. Only in [`super::CUDA`]: on a host, groups of
//! jobs want strips of one length, and processors predict branches.
//!
//! Source: R. Gupta, Optimizing array bound checks using flow analysis, 1993, on checks of monotonic subscripts.

use super::loops::{Counting, Counts, assigned_in, is_movable, is_read};
use super::ranges::{self, Interval};
use super::{Pass, Versioned, dce};
use crate::ir::{CheckedOp, Cmp, Func, LabelId, Op, Operand, Program, Scalar, Stmt, Var, VarId};
use std::collections::{HashMap, HashSet};

pub const PASS: Pass<Versioned> = Pass {
    name: "strip_checks",
    description: "indices are checked for the first and the last repetition of a strip",
    run: |state| Versioned { program: strip_checks(state.program), ..state },
};

fn strip_checks(mut program: Program) -> Program {
    let seen = ranges::seen(&program);
    let mut changed = false;
    for (func, seen) in program.funcs.iter_mut().zip(seen) {
        let counts = Counts::of(func);
        let mut body = std::mem::take(&mut func.body);
        changed |= list(&mut body, &mut Facts { func, counts, seen });
        func.body = body;
    }
    if changed { (dce::PASS.run)(program) } else { program }
}

/// What is known of a function's registers.
struct Facts<'a> {
    func: &'a mut Func,
    counts: Counts,
    /// All values that each has.
    seen: Vec<Option<Interval>>,
}

impl Facts<'_> {
    fn fresh(&mut self, ty: Scalar) -> VarId {
        self.func.vars.push(Var { ty, name: None });
        VarId::new(self.func.vars.len() - 1)
    }

    fn assign(&mut self, op: Op, args: Vec<Operand>, ty: Scalar, out: &mut Vec<Stmt>) -> Operand {
        let dst = self.fresh(ty);
        out.push(Stmt::Let { dst, op, args });
        dst.into()
    }

    fn interval(&self, operand: Operand) -> Option<Interval> {
        match operand {
            Operand::I64(n) => Some((n, n)),
            Operand::Var(v) if self.func.vars[v.index()].ty == Scalar::I64 => *self.seen.get(v.index())?,
            _ => None,
        }
    }
}

fn list(body: &mut [Stmt], facts: &mut Facts<'_>) -> bool {
    let mut changed = false;
    for stmt in body {
        if let Stmt::Loop { label, body } = stmt
            && let Some(at) = strip_in(*label, body)
        {
            changed |= strip(body, at, facts);
        }
        stmt.bodies_mut().into_iter().flatten().for_each(|body| changed |= list(body, facts));
    }
    changed
}

/// The place of the strip in a loop over strips. What it repeats does not depend on where strips begin, and they go on
/// until the count ends them.
fn strip_in(label: LabelId, body: &[Stmt]) -> Option<usize> {
    let [
        before @ ..,
        strip,
        Stmt::Poll,
        Stmt::Let { dst: over, op: Op::ICmp(Cmp::Ge), args },
        Stmt::If { cond, then, otherwise },
    ] = body
    else {
        return None;
    };
    let (Counting { i, .. }, repeated) = Counting::of(strip, false)?;
    let leaves = *cond == (*over).into() && then[..] == [Stmt::Break(label)] && otherwise.is_empty();
    let mut varies = assigned_in(std::slice::from_ref(strip));
    for stmt in before {
        match stmt {
            // the strip would begin again with it where it is cut
            Stmt::Let { dst, .. } if varies.contains(dst) => return None,
            Stmt::Let { dst, op, args } if is_movable(*op) => {
                if args.iter().any(|arg| matches!(arg, Operand::Var(v) if varies.contains(v))) {
                    if is_read(repeated, *dst) {
                        return None;
                    }
                    varies.insert(*dst);
                }
            }
            Stmt::If { then, otherwise, .. } if matches!(then[..], [Stmt::Trap { .. }]) && otherwise.is_empty() => {}
            _ => return None,
        }
    }
    (leaves && args[0] == i.into()).then_some(before.len())
}

/// The most repetitions of a strip that ends at `end`: the least of the count and so many, and of other numbers.
fn most_repetitions(before: &[Stmt], i: VarId, end: Operand) -> Option<i64> {
    let assigned = |operand: Operand| {
        before.iter().find_map(|stmt| match stmt {
            Stmt::Let { dst, op, args } if operand == (*dst).into() => Some((*op, &args[..])),
            _ => None,
        })
    };
    let mut end = end;
    // as long a chain as there are statements, at most
    for _ in before {
        match assigned(end)? {
            (Op::Add, [from, Operand::I64(most)]) if *from == i.into() => return Some(*most),
            // the lesser of two
            (Op::Select, [cond, one, other]) => {
                let (op, compared) = assigned(*cond)?;
                let is_least = match op {
                    Op::ICmp(Cmp::Lt) => *compared == [*one, *other],
                    Op::ICmp(Cmp::Gt) => *compared == [*other, *one],
                    _ => false,
                };
                end = [*one, *other].into_iter().find(|least| is_least && assigned(*least).is_some())?;
            }
            _ => return None,
        }
    }
    None
}

/// The checks of a strip that are linear in its count.
struct Found {
    count: VarId,
    /// The most repetitions of a strip.
    most: i64,
    /// Registers that are linear in the count, in the order in which a repetition computes them.
    computed: Vec<(VarId, Op, Vec<Operand>)>,
    /// All values of these, and of the count.
    intervals: HashMap<VarId, Interval>,
    /// Registers to which each repetition adds the same: what, and in which statement.
    added: HashMap<VarId, (Operand, usize)>,
    /// Those that were added to.
    passed: HashSet<VarId>,
    /// Comparisons of all these with what does not change.
    conditions: HashMap<VarId, (Op, Vec<Operand>)>,
    /// The places of checks, and their conditions.
    checks: Vec<(usize, VarId)>,
    /// What these compare.
    taken: HashMap<VarId, (Op, Vec<Operand>)>,
    /// The added registers that are checked, and so far from the greatest Integer.
    bounded: HashSet<VarId>,
    /// The places of checked sums that do not overflow.
    sums: Vec<usize>,
}

/// Takes such checks out of a strip. Returns whether there were some.
fn strip(outer: &mut Vec<Stmt>, at: usize, facts: &mut Facts<'_>) -> bool {
    let Some((counting, repeated)) = Counting::of(&outer[at], false) else { return false };
    let Some(most) = most_repetitions(&outer[..at], counting.i, counting.end) else { return false };
    let Some(found) = Found::of(repeated, &counting, most, facts) else { return false };
    let (i, end) = (Operand::from(counting.i), counting.end);
    let mut head = Vec::new();
    let now = found.at(i, None, facts, &mut head);
    for (place, condition) in &found.checks {
        let cond = found.condition(*condition, &now, facts, &mut head);
        let mut check = repeated[*place].clone();
        check.reads_mut(|operand| *operand = cond);
        check.bodies_mut().into_iter().flatten().flatten().for_each(|trap| {
            trap.reads_mut(|operand| *operand = renamed(*operand, &now));
        });
        head.push(check);
    }
    let last = facts.assign(Op::Sub, vec![end, Operand::I64(1)], Scalar::I64, &mut head);
    let beyond = facts.assign(Op::Sub, vec![last, i], Scalar::I64, &mut head);
    let then = found.at(last, Some(beyond), facts, &mut head);
    let mut fails = None;
    for (_, condition) in &found.checks {
        let cond = found.condition(*condition, &then, facts, &mut head);
        fails = Some(match fails {
            Some(other) => facts.assign(Op::Or, vec![other, cond], Scalar::Bool, &mut head),
            None => cond,
        });
    }
    let Some(fails) = fails else { return false };
    let next = facts.assign(Op::Add, vec![i, Operand::I64(1)], Scalar::I64, &mut head);
    let stop = facts.assign(Op::Select, vec![fails, next, end], Scalar::I64, &mut head);

    let Stmt::Loop { body, .. } = &mut outer[at] else { return false };
    for place in &found.sums {
        if let Stmt::Checked { dst, args, .. } = &body[*place] {
            body[*place] = Stmt::Let { dst: *dst, op: Op::Add, args: args.to_vec() };
        }
    }
    let test = body.len() - 2;
    if let Stmt::Let { args, .. } = &mut body[test] {
        args[1] = stop;
    }
    for (place, _) in found.checks.iter().rev() {
        body.remove(*place);
    }
    outer.splice(at..at, head);
    true
}

/// An operand in a repetition whose registers have these names.
fn renamed(operand: Operand, names: &HashMap<VarId, Operand>) -> Operand {
    match operand {
        Operand::Var(v) => names.get(&v).copied().unwrap_or(operand),
        _ => operand,
    }
}

impl Found {
    /// What a strip repeats up to the first statement that may raise otherwise, or that others can see. None: there is
    /// no such check.
    fn of(repeated: &[Stmt], counting: &Counting, most: i64, facts: &Facts<'_>) -> Option<Self> {
        let varies: HashSet<VarId> = assigned_in(repeated).into_iter().chain([counting.i]).collect();
        let same = |operand: &Operand| !matches!(operand, Operand::Var(v) if varies.contains(v));
        let ((low, high), end) = (facts.interval(counting.i.into())?, facts.interval(counting.end)?);
        let mut found = Self {
            count: counting.i,
            most,
            computed: Vec::new(),
            intervals: HashMap::from([(counting.i, (low, high.max(end.1)))]),
            added: if counting.step == 1 { added(repeated, facts, same) } else { HashMap::new() },
            passed: HashSet::new(),
            conditions: HashMap::new(),
            checks: Vec::new(),
            taken: HashMap::new(),
            bounded: HashSet::new(),
            sums: Vec::new(),
        };
        for (at, stmt) in repeated.iter().enumerate() {
            match stmt {
                Stmt::Let { dst, op, args } if is_movable(*op) && facts.counts.assigned(*dst) == 1 => {
                    found.compute(*dst, *op, args, facts, same);
                }
                Stmt::Let { .. } | Stmt::Load { .. } => stmt.assigns().iter().for_each(|dst| found.passes(*dst)),
                Stmt::Checked { dst, .. } if found.bounded.contains(dst) && found.added[dst].1 == at => {
                    found.sums.push(at);
                    found.passes(*dst);
                }
                Stmt::If { cond: Operand::Var(cond), then, otherwise } if otherwise.is_empty() => {
                    let [Stmt::Trap { operands, .. }] = &then[..] else { break };
                    let known = |operand: &Operand| same(operand) || found.is_linear(operand);
                    if !operands.iter().all(known) || !found.takes(at, *cond, facts) {
                        break;
                    }
                }
                _ => break,
            }
        }
        (!found.checks.is_empty()).then_some(found)
    }

    /// From here on, a register that is added to has the value of the next repetition.
    fn passes(&mut self, v: VarId) {
        self.passed.insert(v);
        self.conditions.retain(|_, (_, args)| !args.contains(&v.into()));
    }

    fn is_linear(&self, operand: &Operand) -> bool {
        matches!(operand, Operand::Var(v) if self.intervals.contains_key(v))
    }

    /// Notes what a register is, if it is linear in the count or compares something that is.
    fn compute(&mut self, dst: VarId, op: Op, args: &[Operand], facts: &Facts<'_>, same: impl Fn(&Operand) -> bool) {
        let changing = args.iter().filter(|arg| !same(arg)).count();
        let linear = args.iter().all(|arg| same(arg) || self.is_linear(arg));
        let is_added =
            |arg: &Operand| matches!(arg, Operand::Var(v) if self.added.contains_key(v) && !self.passed.contains(v));
        match op {
            Op::Copy | Op::Add | Op::Sub | Op::Mul if linear && (op != Op::Mul || changing <= 1) => {
                if let Some(interval) = self.exact(op, args, facts) {
                    self.intervals.insert(dst, interval);
                    self.computed.push((dst, op, args.to_vec()));
                }
            }
            Op::ICmp(Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge) if linear && changing == 1 => {
                self.conditions.insert(dst, (op, args.to_vec()));
            }
            Op::ICmp(Cmp::Ge) if is_added(&args[0]) && same(&args[1]) => {
                self.conditions.insert(dst, (op, args.to_vec()));
            }
            _ => {}
        }
    }

    /// The interval of a result that does not wrap around. None: it may, or is none of 64 bits.
    fn exact(&self, op: Op, args: &[Operand], facts: &Facts<'_>) -> Option<Interval> {
        let interval = |arg: &Operand| match arg {
            Operand::Var(v) if self.intervals.contains_key(v) => Some(self.intervals[v]),
            _ => facts.interval(*arg),
        };
        let all: Vec<Interval> = args.iter().map(interval).collect::<Option<_>>()?;
        match (op, &all[..]) {
            (Op::Copy, [one]) => Some(*one),
            (_, [(a, b), (c, d)]) => {
                let ends = [(a, c), (a, d), (b, c), (b, d)].map(|(x, y)| {
                    let (x, y) = (i128::from(*x), i128::from(*y));
                    match op {
                        Op::Add => x + y,
                        Op::Sub => x - y,
                        _ => x * y,
                    }
                });
                let (low, high) = (ends.iter().min()?, ends.iter().max()?);
                Some((i64::try_from(*low).ok()?, i64::try_from(*high).ok()?))
            }
            _ => None,
        }
    }

    /// Takes a check with this condition, if it is made for all of the strip by its first and last repetition.
    fn takes(&mut self, at: usize, condition: VarId, facts: &Facts<'_>) -> bool {
        let Some(compared) = self.conditions.get(&condition).cloned() else { return false };
        let args = &compared.1;
        if let Operand::Var(v) = args[0]
            && let Some((each, _)) = self.added.get(&v)
        {
            let bounds = (facts.interval(v.into()), facts.interval(args[1]), facts.interval(*each));
            let (Some((low, _)), Some((_, limit)), Some((least, most))) = bounds else { return false };
            // below the limit, so far from the ends of 64 bits that no repetition of a strip gets there
            let repetitions = i128::from(self.most);
            let lowest = i128::from(low) + (repetitions * i128::from(least)).min(0);
            let highest = i128::from(limit) + (repetitions * i128::from(most)).max(0);
            if lowest < i64::MIN.into() || highest > i64::MAX.into() {
                return false;
            }
            self.bounded.insert(v);
        }
        self.checks.push((at, condition));
        self.taken.insert(condition, compared);
        true
    }

    /// Computes the linear registers of the repetition with this count. `beyond`: how many repetitions it is after the
    /// strip's first. None: it is that one.
    fn at(
        &self,
        count: Operand,
        beyond: Option<Operand>,
        facts: &mut Facts<'_>,
        out: &mut Vec<Stmt>,
    ) -> HashMap<VarId, Operand> {
        let mut names = HashMap::from([(self.count, count)]);
        for (v, op, args) in &self.computed {
            let args = args.iter().map(|arg| renamed(*arg, &names)).collect();
            let value = facts.assign(*op, args, Scalar::I64, out);
            names.insert(*v, value);
        }
        let mut bounded: Vec<VarId> = self.bounded.iter().copied().collect();
        bounded.sort();
        for v in bounded {
            let Some(beyond) = beyond else { continue };
            let more = facts.assign(Op::Mul, vec![beyond, self.added[&v].0], Scalar::I64, out);
            let value = facts.assign(Op::Add, vec![v.into(), more], Scalar::I64, out);
            names.insert(v, value);
        }
        names
    }

    fn condition(
        &self,
        condition: VarId,
        names: &HashMap<VarId, Operand>,
        facts: &mut Facts<'_>,
        out: &mut Vec<Stmt>,
    ) -> Operand {
        let (op, args) = &self.taken[&condition];
        let args = args.iter().map(|arg| renamed(*arg, names)).collect();
        facts.assign(*op, args, Scalar::Bool, out)
    }
}

/// The registers to which each repetition adds a value that does not change, in one statement that always runs.
fn added(repeated: &[Stmt], facts: &Facts<'_>, same: impl Fn(&Operand) -> bool) -> HashMap<VarId, (Operand, usize)> {
    let mut found = HashMap::new();
    for (at, stmt) in repeated.iter().enumerate() {
        let (dst, args) = match stmt {
            Stmt::Let { dst, op: Op::Add, args } => (dst, [args[0], args[1]]),
            Stmt::Checked { dst, op: CheckedOp::Add, args, .. } => (dst, *args),
            _ => continue,
        };
        let own = Operand::from(*dst);
        // once before the loop, and here
        let alone = facts.counts.assigned(*dst) == 2;
        let each = if args[0] == own { args[1] } else { args[0] };
        if alone && args.contains(&own) && same(&each) {
            found.insert(*dst, (each, at));
        }
    }
    found
}
