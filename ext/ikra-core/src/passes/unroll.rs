//! Full unrolling: a loop that surely repeats a few times becomes its repetitions, one after the other.
//!
//! Here: which loops. The program assigns constants to what the loop counts, right before it. The pass follows the
//! constants through the repetitions, up to the one that leaves the loop. What depends on the count is then constant,
//! so later passes drop branches, tests and divisions.
//!
//! Fires only where that pays: where a branch, a division or an element of an array that the program made depends on
//! the count. Other loops stay, since backends run several repetitions, or several jobs, at once.

use super::polls;
use super::{Pass, dce, gvn};
use crate::ir::eval::{Value, eval};
use crate::ir::visit::{freshen_labels, size, walk_mut};
use crate::ir::{
    CheckedOp, Column, ColumnId, Func, LabelId, Op, Operand, Param, Program, Scalar, Space, Stmt, UniformStride, Var,
    VarId, walk,
};
use std::collections::{HashMap, HashSet};

pub const PASS: Pass =
    Pass { name: "unroll", description: "short loops with constant counts are their repetitions", run };

/// The most repetitions, and the most statements of all repetitions.
const REPETITIONS: usize = 16;
const STATEMENTS: usize = 1600;
/// A function with this many statements gets no longer.
const FUNCTION: usize = 4000;
/// Cleaning up shortens functions, so that loops may be unrolled for which there was no room before. So often at most.
const ROUNDS: usize = 4;

fn run(mut program: Program) -> Program {
    for _ in 0..ROUNDS {
        let Round { improved, short } = round(&mut program);
        if improved {
            program = (dce::PASS.run)((gvn::PASS.run)(program));
        }
        if !improved || !short {
            break;
        }
    }
    program
}

/// What one walk over the program has done.
#[derive(Default)]
struct Round {
    improved: bool,
    /// For some loop a function had no room.
    short: bool,
}

fn round(program: &mut Program) -> Round {
    let mut done = Round::default();
    for func in &mut program.funcs {
        let mut body = std::mem::take(&mut func.body);
        let mut has_loop = false;
        walk(&body, &mut |stmt| has_loop |= matches!(stmt, Stmt::Loop { .. }));
        if has_loop {
            let mut uses = Uses::default();
            uses.count(&body, 1);
            let room = FUNCTION.saturating_sub(size(&body));
            let (columns, params, strides) = (&program.columns, &program.params, &program.strides);
            let mut unroll = Unroll { func, columns, params, strides, uses, room, done: &mut done };
            unroll.list(&mut body, &mut Known::new());
        }
        func.body = body;
    }
    done
}

/// The number of statements without constants, which later passes drop.
fn cost(body: &[Stmt]) -> usize {
    let mut constants = 0;
    walk(body, &mut |stmt| {
        constants += usize::from(matches!(stmt, Stmt::Let { op: Op::Copy, args, .. } if Value::of(args[0]).is_some()));
    });
    size(body) - constants
}

/// Registers that hold constants.
type Known = HashMap<VarId, Operand>;

/// How often each register is assigned and read.
#[derive(Default)]
struct Uses {
    assigned: HashMap<VarId, i64>,
    read: HashMap<VarId, i64>,
}

impl Uses {
    fn count(&mut self, body: &[Stmt], by: i64) {
        walk(body, &mut |stmt| {
            stmt.assigns().iter().for_each(|var| *self.assigned.entry(*var).or_default() += by);
            stmt.reads(|operand| {
                if let Operand::Var(var) = operand {
                    *self.read.entry(var).or_default() += by;
                }
            });
        });
    }

    /// The registers that each run of a body assigns anew, and that nothing else knows.
    fn temporaries(&self, body: &[Stmt], params: &[VarId]) -> HashSet<VarId> {
        let mut here = Self::default();
        here.count(body, 1);
        let alone = |(var, times): (&VarId, &i64)| {
            // the only definition comes before each use
            let all_here = self.read.get(var) == here.read.get(var);
            (*times == 1 && self.assigned[var] == 1 && all_here && !params.contains(var)).then_some(*var)
        };
        here.assigned.iter().filter_map(alone).collect()
    }
}

/// How a repetition surely ends.
enum After {
    Leaves,
    Repeats,
    /// By an exception. Then its count is not what ends the loop: an index beyond an array is known, and no more.
    Raises,
}

struct Unroll<'a> {
    func: &'a mut Func,
    columns: &'a [Column],
    params: &'a [Param],
    strides: &'a [UniformStride],
    uses: Uses,
    /// The statements that the function may still gain.
    room: usize,
    done: &'a mut Round,
}

impl Unroll<'_> {
    /// `known` are the constants before the list, then those after it.
    fn list(&mut self, body: &mut Vec<Stmt>, known: &mut Known) {
        let mut out = Vec::with_capacity(body.len());
        for mut stmt in std::mem::take(body) {
            if let Some(value) = self.value(&stmt, known) {
                let dst = stmt.assigns()[0];
                known.insert(dst, value);
                if matches!(stmt, Stmt::Load { .. }) {
                    self.done.improved = true;
                    stmt = Stmt::Let { dst, op: Op::Copy, args: vec![value] };
                }
                out.push(stmt);
                continue;
            }
            let assigned = assigned(&stmt);
            if matches!(stmt, Stmt::Loop { .. } | Stmt::Try { .. }) {
                let before = known.clone();
                known.retain(|var, _| !assigned.contains(var));
                self.nested(&mut stmt, known);
                if let Stmt::Loop { label, body } = &stmt
                    && let Some(repetitions) = self.repetitions(body, &before)
                {
                    self.uses.count(body, -1);
                    self.uses.count(&repetitions, 1);
                    self.room = self.room.saturating_sub(cost(&repetitions));
                    self.done.improved = true;
                    stmt = Stmt::Block { label: *label, body: repetitions };
                }
            } else {
                self.nested(&mut stmt, known);
            }
            known.retain(|var, _| !assigned.contains(var));
            out.push(stmt);
        }
        *body = out;
    }

    fn nested(&mut self, stmt: &mut Stmt, known: &Known) {
        stmt.bodies_mut().into_iter().flatten().for_each(|body| self.list(body, &mut known.clone()));
    }

    /// The constant that a statement assigns.
    fn value(&self, stmt: &Stmt, known: &Known) -> Option<Operand> {
        let constant = |operand: &Operand| match operand {
            Operand::Var(var) => known.get(var).copied().and_then(Value::of),
            constant => Value::of(*constant),
        };
        match stmt {
            Stmt::Let { op: Op::Param(param), .. } => match self.params[param.index()].range {
                Some((only, last)) if only == last => Some(Operand::I64(only)),
                _ => None,
            },
            Stmt::Let { dst, op, args } if !matches!(op, Op::Random | Op::Ctx(_) | Op::Math(_)) => {
                let ty = self.func.vars[dst.index()].ty;
                let args: Option<Vec<Value>> = args.iter().map(constant).collect();
                eval(*op, ty, &args?).ok().map(Operand::from).filter(|_| ty != Scalar::F64)
            }
            Stmt::Load { column, row, .. } => match (self.rows(*column)?, constant(row)?) {
                (rows, Value::I64(row)) => Some(Operand::I64(*rows.get(usize::try_from(row).ok()?)?)),
                _ => None,
            },
            Stmt::Checked { op, args, .. } => match (op, constant(&args[0])?, constant(&args[1])?) {
                (CheckedOp::Add, Value::I64(a), Value::I64(b)) => a.checked_add(b).map(Operand::I64),
                (CheckedOp::Sub, Value::I64(a), Value::I64(b)) => a.checked_sub(b).map(Operand::I64),
                _ => None,
            },
            _ => None,
        }
    }

    /// The rows of a column that is constant.
    fn rows(&self, column: ColumnId) -> Option<&[i64]> {
        self.strides.iter().find_map(|stride| match stride {
            UniformStride::Constants { column: of, rows } if *of == column => Some(&**rows),
            _ => None,
        })
    }

    /// The repetitions of a loop, if it surely ends soon and this pays.
    fn repetitions(&mut self, body: &[Stmt], known: &Known) -> Option<Vec<Stmt>> {
        let mut begins = false;
        walk(body, &mut |stmt| begins |= matches!(stmt, Stmt::Begin { .. }));
        if begins || !self.pays(body) {
            return None;
        }
        let mut once = body.to_vec();
        polls::remove(&mut once);
        let temporaries = self.uses.temporaries(body, &self.func.params);
        let (mut known, mut all, vars) = (known.clone(), Vec::new(), self.func.vars.len());
        for repetition in 0..=REPETITIONS {
            let mut copy = once.clone();
            if repetition > 0 {
                self.rename(&mut copy, &temporaries);
            }
            let after = self.follow(&mut copy, &mut known);
            all.append(&mut copy);
            match after {
                After::Leaves => return Some(all),
                After::Raises => break,
                After::Repeats => {}
            }
            let cost = cost(&all);
            self.done.short |= cost <= STATEMENTS && cost > self.room;
            if cost > STATEMENTS.min(self.room) {
                break;
            }
        }
        self.func.vars.truncate(vars);
        None
    }

    /// Gives a repetition its own temporaries and labels.
    fn rename(&mut self, body: &mut [Stmt], temporaries: &HashSet<VarId>) {
        freshen_labels(body, self.func);
        let mut renamed: HashMap<VarId, VarId> = HashMap::new();
        let func = &mut *self.func;
        walk_mut(body, &mut |stmt| {
            for var in stmt.assigns_mut() {
                if temporaries.contains(var) {
                    let copy = Var { name: func.vars[var.index()].name.clone(), ty: func.vars[var.index()].ty };
                    func.vars.push(copy);
                    let new = VarId::new(func.vars.len() - 1);
                    renamed.insert(*var, new);
                    *var = new;
                }
            }
        });
        walk_mut(body, &mut |stmt| {
            stmt.reads_mut(|operand| {
                if let Operand::Var(var) = operand {
                    *var = renamed.get(var).copied().unwrap_or(*var);
                }
            });
        });
    }

    /// Takes the branches of a repetition's list that are known.
    fn follow(&self, body: &mut Vec<Stmt>, known: &mut Known) -> After {
        let mut left: Vec<Stmt> = std::mem::take(body);
        left.reverse();
        while let Some(stmt) = left.pop() {
            if let Some(value) = self.value(&stmt, known) {
                known.insert(stmt.assigns()[0], value);
                let dst = stmt.assigns()[0];
                body.push(Stmt::Let { dst, op: Op::Copy, args: vec![value] });
                continue;
            }
            match stmt {
                Stmt::If { cond, then, otherwise } if constant(cond, known).is_some() => {
                    let taken = if constant(cond, known) == Some(Operand::Bool(true)) { then } else { otherwise };
                    if taken.last().is_some_and(Stmt::ends_list) {
                        left.clear();
                    }
                    left.extend(taken.into_iter().rev());
                }
                Stmt::Break(to) => {
                    body.push(Stmt::Break(to));
                    return After::Leaves;
                }
                stmt => {
                    let (ends, raises) = (stmt.ends_list(), matches!(stmt, Stmt::Trap { .. }));
                    let assigned = assigned(&stmt);
                    known.retain(|var, _| !assigned.contains(var));
                    body.push(stmt);
                    if ends {
                        return if raises { After::Raises } else { After::Leaves };
                    }
                }
            }
        }
        After::Repeats
    }

    /// Whether something in a loop is cheaper if the count is constant.
    fn pays(&self, body: &[Stmt]) -> bool {
        let mut depends: HashSet<VarId> = body.iter().filter_map(counts).collect();
        if depends.is_empty() {
            return false;
        }
        let mut inside = HashSet::new();
        walk(body, &mut |stmt| {
            if let Stmt::Block { label, .. } | Stmt::Loop { label, .. } = stmt {
                inside.insert(*label);
            }
        });
        let mut pays = false;
        self.follow_counts(&inside, body, &mut depends, &mut pays);
        pays
    }

    /// `inside` are the labels of the loop's body. A branch that only leaves the loop is what each loop has.
    fn follow_counts(&self, inside: &HashSet<LabelId>, body: &[Stmt], depends: &mut HashSet<VarId>, pays: &mut bool) {
        let on =
            |operand: &Operand, depends: &HashSet<VarId>| matches!(operand, Operand::Var(var) if depends.contains(var));
        for stmt in body {
            match stmt {
                Stmt::Let { dst, op, args } if args.iter().any(|arg| on(arg, depends)) => {
                    *pays |= matches!(op, Op::Div | Op::Rem | Op::UDiv | Op::URem | Op::MulMod | Op::AddMod);
                    depends.insert(*dst);
                }
                Stmt::Checked { dst, args, .. } if args.iter().any(|arg| on(arg, depends)) => {
                    depends.insert(*dst);
                }
                Stmt::Load { column, row, .. } | Stmt::Store { column, row, .. } if on(row, depends) => {
                    let of = &self.columns[column.index()];
                    *pays |= self.rows(*column).is_some() || matches!(of.space, Space::Array(_)) && of.written;
                }
                Stmt::If { cond, then, otherwise } => {
                    let leaves = |side: &[Stmt]| matches!(side, [Stmt::Break(to)] if !inside.contains(to));
                    *pays |= on(cond, depends) && !leaves(then) && !leaves(otherwise);
                }
                _ => {}
            }
            for nested in stmt.bodies() {
                self.follow_counts(inside, nested, depends, pays);
            }
        }
    }
}

/// The register that a statement of a loop's body counts with.
fn counts(stmt: &Stmt) -> Option<VarId> {
    let (dst, args) = match stmt {
        Stmt::Let { dst, op: Op::Add | Op::Sub, args } => (*dst, [args[0], args[1]]),
        Stmt::Checked { dst, op: CheckedOp::Add | CheckedOp::Sub, args, .. } => (*dst, *args),
        _ => return None,
    };
    matches!(args, [Operand::Var(from), Operand::I64(_)] if from == dst).then_some(dst)
}

fn constant(operand: Operand, known: &Known) -> Option<Operand> {
    match operand {
        Operand::Var(var) => known.get(&var).copied(),
        constant => Some(constant),
    }
}

/// What a statement assigns, nested ones included.
fn assigned(stmt: &Stmt) -> HashSet<VarId> {
    let mut all: HashSet<VarId> = stmt.assigns().iter().copied().collect();
    stmt.bodies().iter().for_each(|body| walk(body, &mut |inner| all.extend(inner.assigns())));
    all
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INTS, program};
    use crate::ir::{Cmp, Op, Operand, Scalar, SiteId, Stmt, VarId};
    use crate::passes::testing::after;

    /// The program after the pass: a loop from -1 that ends after `last`.
    fn counting(last: i64, body: impl FnOnce(&mut Builder, Operand, VarId)) -> String {
        let program = program(|b, index| {
            let i = b.var(Scalar::I64, Some("i".into()));
            b.set(i, Operand::I64(-1));
            b.repeat(|b, done| {
                let beyond = b.icmp(Cmp::Gt, i.into(), Operand::I64(last));
                b.when(beyond, |b| b.push(Stmt::Break(done)));
                body(b, index, i);
                b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
                b.push(Stmt::Poll);
            });
        });
        after(&[PASS], program)
    }

    fn skip_zero(b: &mut Builder, index: Operand, i: VarId) {
        let there = b.icmp(Cmp::Ne, i.into(), Operand::I64(0));
        b.when(there, |b| {
            let sum = b.i64(Op::Add, &[index, i.into()]);
            b.store(INTS, index, sum);
        });
    }

    #[test]
    fn a_count_that_decides_a_branch_is_constant() {
        let text = counting(1, skip_zero);
        let found = ["loop", "if ", "store ints", "poll"].map(|word| text.matches(word).count());
        assert_eq!(found, [0, 0, 2, 0], "{text}");
    }

    #[test]
    fn long_loops_and_those_that_gain_nothing_stay() {
        assert!(counting(20, skip_zero).contains("loop"));
        let adds = |b: &mut Builder, index: Operand, i: VarId| {
            let sum = b.i64(Op::Add, &[index, i.into()]);
            b.store(INTS, index, sum);
        };
        assert!(counting(1, adds).contains("loop"));
    }

    #[test]
    fn a_loop_that_only_an_exception_is_known_to_end_stays() {
        let program = program(|b, index| {
            let i = b.var(Scalar::I64, Some("i".into()));
            b.set(i, Operand::I64(0));
            b.repeat(|b, done| {
                let beyond = b.icmp(Cmp::Ge, i.into(), index);
                b.when(beyond, |b| b.push(Stmt::Break(done)));
                let outside = b.icmp(Cmp::Ge, i.into(), Operand::I64(3));
                b.when(outside, |b| b.push(Stmt::Trap { site: SiteId::new(0), operands: Vec::new() }));
                b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
            });
        });
        assert!(after(&[PASS], program).contains("loop"));
    }

    #[test]
    fn a_repetition_that_may_leave_leaves_all() {
        let text = counting(1, |b, index, i| {
            skip_zero(b, index, i);
            let left = b.icmp(Cmp::Gt, index, Operand::I64(7));
            b.when(left, |b| b.push(Stmt::Return(Vec::new())));
        });
        assert!(!text.contains("loop") && text.contains("return"), "{text}");
    }
}
