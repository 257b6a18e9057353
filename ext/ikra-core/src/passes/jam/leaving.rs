//! Loops that the jobs of a group leave after different numbers of repetitions.
//!
//! `while x.abs < 2.0` ends sooner for one element than for its neighbour. The group repeats such a loop until every
//! job has left it. A job that leaves keeps what code after the loop reads; from then on, the loop computes values for
//! it that nothing reads. So the loop must do nothing that such a job must not: it loads only rows that exist for all
//! jobs, and each operation is defined for all operands.
//!
//! Here: the form of a function in which a job that leaves copies its values ([`prepared`]), and what its loops may
//! contain. Not here: the group's code ([`super::weave`]).
//!
//! ```text
//! loop L { …; x = …; break L if done; … }; store x
//! →
//! x' = x; loop L { …; x' = …; if done { x = x'; break L }; … }; store x
//! ```
//!
//! In the new form, `x` is assigned where the job leaves. It differs between jobs even where `x'`, which may count
//! repetitions, is the same for all jobs in the loop. Invariant: a prepared loop is left by its *exits* alone, which
//! are branches in its own list.
//!
//! Source: J. R. Allen, K. Kennedy, C. Porterfield, J. Warren, Conversion of control dependence to data dependence,
//! 1983. Here values are saved where a job leaves, which is rare, instead of selected in every repetition.

use super::fresh;
use super::shapes::{Shape, Shapes};
use crate::ir::visit::{breaks_to, walk_mut};
use crate::ir::{CheckedOp, Cmp, Func, LabelId, Op, Operand, Scalar, Stmt, VarId, walk};
use crate::passes::loops::{Counts, assigned_in, is_movable, is_read, leaves_otherwise};
use std::collections::{HashMap, HashSet};

/// The labels of prepared loops.
pub type Leaving = HashSet<LabelId>;

/// A branch by which jobs leave a loop.
#[derive(Clone, Copy)]
pub struct Exit<'a> {
    pub cond: Operand,
    /// The condition's value in jobs that leave.
    pub on: bool,
    /// What a job does when it leaves.
    pub side: &'a [Stmt],
    /// The label that it leaves. None: it returns.
    pub to: Option<LabelId>,
}

/// The statement as an exit, if it is a branch that leaves something on one side and does nothing on the other.
pub fn exit(stmt: &Stmt) -> Option<Exit<'_>> {
    let Stmt::If { cond, then, otherwise } = stmt else { return None };
    let (on, list) = match (&then[..], &otherwise[..]) {
        (list, []) => (true, list),
        ([], list) => (false, list),
        _ => return None,
    };
    let (last, side) = list.split_last()?;
    let to = match last {
        Stmt::Break(to) => Some(*to),
        Stmt::Return(_) => None,
        _ => return None,
    };
    Some(Exit { cond: *cond, on, side, to })
}

/// The function in which every loop that jobs leave apart is prepared, and the shapes of its registers. `shapes_of`:
/// the shapes of a function whose prepared loops are known. None: a group cannot run the function.
pub fn prepared(func: &Func, shapes_of: impl Fn(&Func, Leaving) -> Option<Shapes>) -> Option<(Func, Shapes)> {
    let (mut func, mut leaving) = (func.clone(), Leaving::new());
    loop {
        let shapes = shapes_of(&func, leaving.clone())?;
        if unguarded(&mut func, &shapes) {
            continue;
        }
        let Some(label) = unprepared(&func.body, &shapes) else { return Some((func, shapes)) };
        let mut body = std::mem::take(&mut func.body);
        if unstripped(&mut body, label) {
            func.body = body;
            continue;
        }
        let renamed = renamed(&mut func, &mut body, label);
        let mut prepare = Prepare { func: &mut func, label, renamed, surely: HashSet::new(), maybe: HashSet::new() };
        prepare.surely.extend(prepare.func.params.iter().copied());
        prepare.list(&mut body, &[])?;
        func.body = body;
        leaving.insert(label);
    }
}

/// Takes a loop out of a branch that not all jobs take: `if c { loop { … } }` becomes `loop { break unless c; … }`. So
/// the jobs that would not begin it leave it at once. Such branches come from [`crate::passes::rotate`]. Returns
/// whether there was one.
fn unguarded(func: &mut Func, shapes: &Shapes) -> bool {
    let counts = Counts::of(func);
    let alone = |operand: &Operand| matches!(operand, Operand::Var(v) if counts.assigned(*v) == 1);
    let mut body = std::mem::take(&mut func.body);
    let mut done = false;
    walk_mut(&mut body, &mut |stmt| {
        if shapes.agrees(stmt) {
            return;
        }
        let Stmt::If { cond, then, otherwise } = stmt else { return };
        let [Stmt::Loop { label, body }] = &mut then[..] else { return };
        if done || !otherwise.is_empty() || shapes.operand(*cond) == Shape::Same || !alone(cond) {
            return;
        }
        body.insert(0, Stmt::If { cond: *cond, then: Vec::new(), otherwise: vec![Stmt::Break(*label)] });
        *stmt = then.remove(0);
        done = true;
    });
    func.body = body;
    done
}

/// The first loop that is not prepared and has an exit whose condition differs between jobs.
fn unprepared(body: &[Stmt], shapes: &Shapes) -> Option<LabelId> {
    let mut found = None;
    walk(body, &mut |stmt| {
        let Stmt::Loop { label, body } = stmt else { return };
        let differs = |stmt: &Stmt| exit(stmt).is_some_and(|exit| shapes.operand(exit.cond) != Shape::Same);
        if found.is_none() && !shapes.is_leaving(*label) && body.iter().any(differs) {
            found = Some(*label);
        }
    });
    found
}

/// Undoes strip mining ([`crate::passes::strip_mine`]) of a loop, in which an exit would leave two loops. The loop then
/// polls in each repetition, which a group does once for all jobs. Returns whether the loop was a strip.
fn unstripped(body: &mut [Stmt], strip: LabelId) -> bool {
    let mut done = false;
    walk_mut(body, &mut |stmt| {
        let Stmt::Loop { label, body } = stmt else { return };
        let [
            Stmt::Let { dst: ahead, op: Op::Add, args: counted },
            Stmt::Let { dst: more, op: Op::ICmp(Cmp::Gt), args: compared },
            Stmt::Let { dst: stop, op: Op::Select, args: selected },
            Stmt::Loop { label: inner, body: repeated },
            behind @ ..,
        ] = &body[..]
        else {
            return;
        };
        let [Stmt::Poll, Stmt::Let { op: Op::ICmp(Cmp::Ge), args: tested, .. }, last] = behind else { return };
        let [rest @ .., Stmt::Let { dst: over, op: Op::ICmp(Cmp::Ge), args: ended }, leave] = &repeated[..] else {
            return;
        };
        let (count, end) = (counted[0], compared[0]);
        let leaves = |stmt: &Stmt, label: LabelId| {
            exit(stmt).filter(|exit| exit.on && exit.side.is_empty() && exit.to == Some(label)).map(|exit| exit.cond)
        };
        let is_strip = *inner == strip
            && compared[1] == (*ahead).into()
            && selected[..] == [(*more).into(), (*ahead).into(), end]
            && ended[..] == [count, (*stop).into()]
            && leaves(leave, strip) == Some((*over).into())
            && tested[..] == [count, end]
            && leaves(last, *label).is_some()
            && !breaks_to(rest, strip);
        let computed = [*ahead, *more, *stop, *over];
        if is_strip && !computed.iter().any(|v| is_read(rest, *v) || is_read(behind, *v)) {
            *body = [rest, behind].concat();
            done = true;
        }
    });
    done
}

/// The registers that statements outside the loop read.
fn reads_outside(body: &[Stmt], own: LabelId) -> HashSet<VarId> {
    let mut read = HashSet::new();
    for stmt in body {
        if stmt.label() == Some(own) {
            continue;
        }
        stmt.reads(|operand| {
            if let Operand::Var(v) = operand {
                read.insert(v);
            }
        });
        stmt.bodies().into_iter().for_each(|body| read.extend(reads_outside(body, own)));
    }
    read
}

/// A register that a loop assigns and code outside it reads.
struct Renamed {
    outside: VarId,
    /// The register that the loop uses instead.
    within: VarId,
    /// Whether `within` was assigned wherever `outside` is, before the loop.
    is_set: bool,
}

/// New registers for those that the loop assigns, except in exits alone, and that code outside it reads. Where one
/// statement assigns such a register before the loop, it assigns the new one, which is copied. The new register may
/// then be alike in all jobs, which the other is not.
fn renamed(func: &mut Func, body: &mut Vec<Stmt>, label: LabelId) -> Vec<Renamed> {
    let outside = reads_outside(body, label);
    let mut within = HashSet::new();
    walk(body, &mut |stmt| {
        if let Stmt::Loop { label: own, body } = stmt
            && *own == label
        {
            let repeated = body.iter().filter(|stmt| exit(stmt).is_none());
            repeated.for_each(|stmt| within.extend(assigned_in(std::slice::from_ref(stmt))));
        }
    });
    let mut kept: Vec<VarId> = within.intersection(&outside).copied().collect();
    kept.sort();
    let rename = |outside: VarId| {
        func.vars.push(func.vars[outside.index()].clone());
        let within = VarId::new(func.vars.len() - 1);
        let is_set = matches!(set_before(body, label, outside, within), Some(Before::Set));
        Renamed { outside, within, is_set }
    };
    kept.into_iter().map(rename).collect()
}

/// What is before a loop.
enum Before {
    /// The loop is not in this list.
    NoLoop,
    /// Nothing in the list assigns the register before the loop.
    Unset,
    Set,
}

/// Lets the statement that assigns a register before the loop assign `within`, and copies that. None: not one statement
/// assigns it on every path to the loop.
fn set_before(list: &mut Vec<Stmt>, label: LabelId, v: VarId, within: VarId) -> Option<Before> {
    for at in 0..list.len() {
        let is_loop = matches!(list[at], Stmt::Loop { .. });
        let mut found = if list[at].label() == Some(label) { Before::Unset } else { Before::NoLoop };
        if let Before::NoLoop = found {
            for body in list[at].bodies_mut().into_iter().flatten() {
                found = set_before(body, label, v, within)?;
                match found {
                    Before::NoLoop => {}
                    // the loop may begin again with what it ended with
                    Before::Unset if is_loop => return None,
                    Before::Unset | Before::Set => break,
                }
            }
        }
        match found {
            Before::NoLoop => continue,
            Before::Set => return Some(found),
            Before::Unset => {}
        }
        let assigns = |stmt: &Stmt| assigned_in(std::slice::from_ref(stmt)).contains(&v);
        let Some(latest) = list[..at].iter().rposition(assigns) else { return Some(Before::Unset) };
        let [dst] = list[latest].assigns_mut() else { return None };
        *dst = within;
        list.insert(latest + 1, Stmt::Let { dst: v, op: Op::Copy, args: vec![within.into()] });
        return Some(Before::Set);
    }
    Some(Before::NoLoop)
}

/// Prepares one loop.
struct Prepare<'a> {
    func: &'a mut Func,
    label: LabelId,
    renamed: Vec<Renamed>,
    /// Registers that are assigned on every path to the current statement, and on some paths.
    surely: HashSet<VarId>,
    maybe: HashSet<VarId>,
}

impl Prepare<'_> {
    /// `blocks`: the labels of the blocks that jobs can leave at the loop, if it is in the list. Outer None: the loop
    /// cannot be prepared. Inner None: it is not in the list. Otherwise the blocks that jobs leave at it.
    #[expect(clippy::option_option, reason = "what is refused is not what is elsewhere")]
    fn list(&mut self, list: &mut Vec<Stmt>, blocks: &[LabelId]) -> Option<Option<Vec<Left>>> {
        for at in 0..list.len() {
            if list[at].label() == Some(self.label) {
                return Some(Some(self.prepare(list, at, blocks)?));
            }
            let inner = match &list[at] {
                Stmt::Loop { .. } => Vec::new(),
                Stmt::Block { label, .. } => blocks.iter().copied().chain([*label]).collect(),
                _ => blocks.to_vec(),
            };
            let (surely, maybe) = (self.surely.clone(), self.maybe.clone());
            let mut found = None;
            for body in list[at].bodies_mut().into_iter().flatten() {
                found = self.list(body, &inner)?;
                if found.is_some() {
                    break;
                }
                self.surely.clone_from(&surely);
                self.maybe.clone_from(&maybe);
            }
            if let Some(mut left) = found {
                if let Stmt::Block { label, body } = &mut list[at] {
                    let own = left.iter().position(|left| left.block == *label).map(|own| left.remove(own));
                    body.splice(0..0, own.map(|own| copy(own.flag, Operand::Bool(false))));
                }
                if !left.is_empty() {
                    let behind = list.split_off(at + 1);
                    list.extend(skipped(behind, &left));
                }
                return Some(Some(left));
            }
            self.surely.extend(surely_assigned(&list[at]));
            self.maybe.extend(assigned_in(std::slice::from_ref(&list[at])));
        }
        Some(None)
    }

    /// `blocks`: the labels of blocks that an exit may leave. Returns those that exits leave.
    fn prepare(&mut self, list: &mut Vec<Stmt>, at: usize, blocks: &[LabelId]) -> Option<Vec<Left>> {
        let (mut names, mut before, mut copies) = (HashMap::new(), Vec::new(), Vec::new());
        for Renamed { outside, within, is_set } in &self.renamed {
            names.insert(*outside, *within);
            copies.push(copy(*outside, (*within).into()));
            let value = match (is_set, self.surely.contains(outside), self.maybe.contains(outside)) {
                (true, _, _) => continue,
                (false, true, _) => (*outside).into(),
                // every path that reads it assigns it in the loop
                (false, false, false) => Operand::zero(self.func.ty((*outside).into())),
                (false, false, true) => return None,
            };
            before.push(copy(*within, value));
        }
        let Stmt::Loop { body, .. } = &mut list[at] else { return None };
        walk_mut(body, &mut |stmt| {
            stmt.reads_mut(|operand| {
                if let Operand::Var(v) = operand {
                    *v = names.get(v).copied().unwrap_or(*v);
                }
            });
            stmt.assigns_mut().iter_mut().for_each(|v| *v = names.get(v).copied().unwrap_or(*v));
        });

        let (mut left, mut inside) = (Vec::<Left>::new(), Vec::new());
        for mut stmt in std::mem::take(body) {
            let Some(to) = exit(&stmt).map(|exit| exit.to) else {
                inside.push(stmt);
                continue;
            };
            let to = to.filter(|to| *to == self.label || blocks.contains(to))?;
            let [then, otherwise] = stmt.bodies_mut();
            let side = then.filter(|side| !side.is_empty()).or(otherwise).expect("an exit leaves on one side");
            side.pop();
            if leaves_otherwise(side, self.label) {
                return None;
            }
            side.extend(copies.clone());
            if to != self.label {
                let known = left.iter().find(|left| left.block == to).map(|left| left.flag);
                let flag = known.unwrap_or_else(|| {
                    let flag = fresh(self.func, Scalar::Bool);
                    left.push(Left { block: to, flag });
                    flag
                });
                side.push(copy(flag, Operand::Bool(true)));
            }
            side.push(Stmt::Break(self.label));
            inside.push(stmt);
        }
        *body = inside;
        // A job that has not left yet has no value for what only exits assign. An assignment before the loop makes the
        // one of each job in its exit not the only one, which would hold for all repetitions.
        let sides: Vec<Stmt> = body.iter().filter(|stmt| exit(stmt).is_some()).cloned().collect();
        let mut late: Vec<VarId> = assigned_in(&sides).into_iter().collect();
        late.retain(|v| !self.surely.contains(v) && !self.maybe.contains(v) && left.iter().all(|left| left.flag != *v));
        late.sort();
        before.extend(late.into_iter().map(|v| copy(v, Operand::zero(self.func.ty(v.into())))));
        let others: Vec<Stmt> = body.iter().filter(|stmt| exit(stmt).is_none()).cloned().collect();
        if leaves_otherwise(&others, self.label) || breaks_to(&others, self.label) {
            return None;
        }
        let behind = list.split_off(at + 1);
        list.extend(skipped(behind, &left));
        list.splice(at..at, before);
        Some(left)
    }
}

/// A block around a loop that jobs leave at the loop, and the register in which a job notes that it did.
struct Left {
    block: LabelId,
    flag: VarId,
}

fn copy(dst: VarId, value: Operand) -> Stmt {
    Stmt::Let { dst, op: Op::Copy, args: vec![value] }
}

/// The statements, which jobs that have left one of the blocks skip.
fn skipped(list: Vec<Stmt>, left: &[Left]) -> Vec<Stmt> {
    if list.is_empty() {
        return list;
    }
    let skip = |otherwise, left: &Left| vec![Stmt::If { cond: left.flag.into(), then: Vec::new(), otherwise }];
    left.iter().fold(list, skip)
}

/// The registers that a statement assigns on every path that passes it.
fn surely_assigned(stmt: &Stmt) -> HashSet<VarId> {
    let list = |body: &[Stmt]| body.iter().flat_map(surely_assigned).collect::<HashSet<_>>();
    match stmt {
        Stmt::If { then, otherwise, .. } => {
            match [then, otherwise].map(|side| side.last().is_some_and(Stmt::ends_list)) {
                [true, _] => list(otherwise),
                [_, true] => list(then),
                _ => list(then).intersection(&list(otherwise)).copied().collect(),
            }
        }
        Stmt::Block { .. } | Stmt::Loop { .. } | Stmt::Try { .. } => HashSet::new(),
        _ => stmt.assigns().iter().copied().collect(),
    }
}

/// The most Floats, for all jobs, that a loop reads and does not compute anew in each repetition: two to a vector, they
/// take half of a processor's registers. Mandelbrot's loop is slower with groups of eight, which spill, than of four.
const MAX_KEPT: usize = 16;
/// The fewest operations on Floats in a loop that are worth a group.
const MIN_FLOATS: usize = 3;

/// Whether a group of so many jobs is faster than its jobs one after the other: each loop that they leave apart mostly
/// computes with Floats that differ between jobs, which vectors hold.
pub fn pays(func: &Func, shapes: &Shapes, width: usize) -> bool {
    let (mut all, counts) = (true, Counts::of(func));
    walk(&func.body, &mut |stmt| {
        let Stmt::Loop { label, body } = stmt else { return };
        if !shapes.is_leaving(*label) {
            return;
        }
        let (mut floats, mut others, mut kept) = (0, 0, HashSet::new());
        let assigned = assigned_in(body);
        for stmt in body.iter().filter(|stmt| exit(stmt).is_none()) {
            walk(std::slice::from_ref(stmt), &mut |stmt| {
                stmt.reads(|operand| {
                    if let Operand::Var(v) = operand
                        && func.ty(operand) == Scalar::F64
                        && shapes.operand(operand) == Shape::Differs
                        && (!assigned.contains(&v) || counts.assigned(v) > 1)
                    {
                        kept.insert(v);
                    }
                });
                let Some(dst) = stmt.assigns().first() else { return };
                if shapes.operand((*dst).into()) == Shape::Same {
                    return;
                }
                match stmt {
                    Stmt::Let { op: Op::FAdd | Op::FSub | Op::FMul | Op::FDiv | Op::FSqrt, .. } => floats += 1,
                    Stmt::Let { op: Op::Copy | Op::FNeg | Op::FAbs | Op::FCmp(_) | Op::FSingle | Op::Not, .. } => {}
                    Stmt::Let { op: Op::And | Op::Or | Op::Select, .. } => {}
                    _ => others += 1,
                }
            });
        }
        all &= floats >= MIN_FLOATS && floats >= 2 * others && kept.len() * width <= MAX_KEPT;
    });
    all
}

/// Whether a statement that the jobs run together is defined for every job, also for one that has left the loop.
pub fn is_defined_for_all(stmt: &Stmt, shapes: &Shapes) -> bool {
    let is_same = |operand: &Operand| shapes.operand(*operand) == Shape::Same;
    match stmt {
        // the divisor, or how far to shift, is what an operation may not be defined for
        Stmt::Let { op: Op::Shl | Op::Shr | Op::UShr, args, .. } => is_same(&args[1]),
        Stmt::Let { op: Op::Div | Op::Rem | Op::UDiv | Op::URem, args, .. } => {
            args.iter().all(is_same) || matches!(args[1], Operand::I64(1..) | Operand::I32(1..))
        }
        Stmt::Let { op, args, .. } => is_movable(*op) || args.iter().all(is_same),
        // A job that is still in the loop loads this row. A row of a job that has left may not exist: the exit may have
        // been the check.
        Stmt::Load { row, .. } => is_same(row),
        // if it overflows, the jobs run singly
        Stmt::Checked { op: CheckedOp::Add | CheckedOp::Sub, .. } => true,
        Stmt::Checked { .. } | Stmt::Begin { .. } => false,
        _ => true,
    }
}
