//! Columns that a launch writes completely: every element stores its own row on every path that does not raise.
//!
//! Here: [`filled`]. A backend with memory of its own need not copy such columns to the device before the launch. Not
//! here: jobs of several elements, and launches that stop at a limit; the answer does not hold for them.

use super::{Cmp, ColumnId, Ctx, Func, Jobs, LabelId, Op, Operand, Program, Space, Stmt, VarId, walk};
use std::collections::BTreeSet;

/// For each column, whether every row is stored, whatever the elements do.
pub fn filled(program: &Program) -> Vec<bool> {
    let mut whole = vec![false; program.columns.len()];
    if program.jobs == Jobs::Grouped {
        return whole;
    }
    let func = &program.funcs[program.entry.index()];
    let mut search = Search { func, program, index: own_rows(func), open: Vec::new(), at_exits: None };
    let end = search.list(&func.body, Some(State::default()));
    search.exit(end);
    for column in search.at_exits.unwrap_or_default() {
        whole[column.index()] = true;
    }
    whole
}

/// Registers that hold the element's index from their only assignment on. None if a job may run several elements.
fn own_rows(func: &Func) -> BTreeSet<VarId> {
    let mut elements = BTreeSet::new();
    let mut assigned = vec![0; func.vars.len()];
    for param in &func.params {
        assigned[param.index()] += 1;
    }
    let mut rows = BTreeSet::new();
    walk(&func.body, &mut |s| {
        match s {
            Stmt::Let { dst, .. } | Stmt::Load { dst, .. } | Stmt::Checked { dst, .. } => assigned[dst.index()] += 1,
            Stmt::Call { dsts, .. } => dsts.iter().for_each(|d| assigned[d.index()] += 1),
            _ => {}
        }
        match s {
            Stmt::Let { dst, op: Op::Ctx(Ctx::Index), .. } => drop(rows.insert(*dst)),
            Stmt::Begin { index, .. } => {
                elements.insert(format!("{index:?}"));
                if let Operand::Var(v) = index {
                    rows.insert(*v);
                }
            }
            _ => {}
        }
    });
    if elements.len() != 1 {
        return BTreeSet::new();
    }
    rows.retain(|v| assigned[v.index()] == 1);
    rows
}

/// The state at a reachable point.
#[derive(Clone, Default)]
struct State {
    /// Whether an element has begun.
    begun: bool,
    stored: BTreeSet<ColumnId>,
}

fn both(a: Option<State>, b: Option<State>) -> Option<State> {
    match (a, b) {
        (Some(a), Some(b)) => {
            // A path on which no element has begun misses no store.
            let stored = match (a.begun, b.begun) {
                (true, false) => a.stored,
                (false, true) => b.stored,
                _ => a.stored.intersection(&b.stored).copied().collect(),
            };
            Some(State { begun: a.begun || b.begun, stored })
        }
        (one, None) | (None, one) => one,
    }
}

struct Search<'a> {
    func: &'a Func,
    program: &'a Program,
    index: BTreeSet<VarId>,
    /// Blocks and loops around, with the state at their breaks.
    open: Vec<(LabelId, Option<State>)>,
    /// The columns that every element that ended has stored.
    at_exits: Option<BTreeSet<ColumnId>>,
}

impl Search<'_> {
    fn exit(&mut self, state: Option<State>) {
        // A job without an element (padding) has nothing to store.
        let Some(State { begun: true, stored }) = state else { return };
        self.at_exits = Some(match self.at_exits.take() {
            Some(others) => others.intersection(&stored).copied().collect(),
            None => stored,
        });
    }

    fn list(&mut self, body: &[Stmt], mut state: Option<State>) -> Option<State> {
        for (position, stmt) in body.iter().enumerate() {
            let Some(now) = &mut state else { break };
            match stmt {
                Stmt::Begin { .. } => now.begun = true,
                Stmt::Store { column, row: Operand::Var(row), .. } => {
                    let space = self.program.columns[column.index()].space;
                    if space == Space::Element && self.index.contains(row) {
                        now.stored.insert(*column);
                    }
                }
                Stmt::If { then, otherwise, .. } => {
                    let a = self.list(then, state.clone());
                    let b = self.list(otherwise, state.take());
                    state = both(a, b);
                }
                Stmt::Block { label, body } => {
                    self.open.push((*label, None));
                    let end = self.list(body, state.take());
                    let left = self.open.pop().and_then(|(_, left)| left);
                    state = both(end, left);
                }
                Stmt::Loop { label, body: inner } => {
                    self.open.push((*label, None));
                    // The test at the loop's head fails the first time, so the first repetition surely runs.
                    let first_turn = self.runs_at_least_once(&body[..position], *label, inner);
                    let before = state.take();
                    if let Some(rest) = first_turn {
                        let after_first = self.list(&inner[rest..], before);
                        // Later repetitions may end at the head.
                        self.leave(*label, after_first);
                    } else {
                        let _ = self.list(inner, before);
                    }
                    state = self.open.pop().and_then(|(_, left)| left);
                }
                Stmt::Break(label) => {
                    let now = state.take();
                    self.leave(*label, now);
                }
                Stmt::Return(_) => {
                    let now = state.take();
                    self.exit(now);
                }
                Stmt::Trap { .. } => state = None,
                _ => {}
            }
        }
        state
    }

    fn leave(&mut self, label: LabelId, state: Option<State>) {
        if let Some(open) = self.open.iter_mut().rev().find(|o| o.0 == label) {
            open.1 = both(open.1.take(), state);
        }
    }

    /// For the loop over the ticks of a launch, which has at least one tick: the number of statements of its head,
    /// `break if tick >= tick_end`, where `tick` was just set to `tick_begin`. None: it is another loop.
    fn runs_at_least_once(&self, before: &[Stmt], label: LabelId, body: &[Stmt]) -> Option<usize> {
        let [_, begin, end] = self.func.params[..] else { return None };
        let [Stmt::Let { dst: over, op: Op::ICmp(Cmp::Ge), args }, Stmt::If { cond, then, otherwise }, ..] = body
        else {
            return None;
        };
        let [Operand::Var(tick), limit] = args[..] else { return None };
        let starts = |s: &Stmt| matches!(s, Stmt::Let { dst, .. } if *dst == tick);
        let set = before.iter().rev().find(|s| starts(s))?;
        let from_begin = matches!(set, Stmt::Let { op: Op::Copy, args, .. } if args[..] == [Operand::Var(begin)]);
        let leaves = matches!(then[..], [Stmt::Break(l)] if l == label) && otherwise.is_empty();
        (from_begin && limit == Operand::Var(end) && *cond == Operand::Var(*over) && leaves).then_some(2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::build::Builder;
    use super::super::testing::{INTS, OUT, OVERFLOW, program};
    use super::super::{CheckedOp, Scalar};
    use super::*;

    fn of(body: impl FnOnce(&mut Builder, Operand)) -> [bool; 2] {
        let program = program(body);
        super::super::verify::verify(&program).unwrap_or_else(|e| panic!("{e}"));
        let whole = filled(&program);
        [OUT, INTS].map(|c| whole[c.index()])
    }

    #[test]
    fn a_store_on_every_path_fills() {
        let both_ways = of(|b, index| {
            let big = b.icmp(Cmp::Gt, index, Operand::I64(3));
            b.branch(big, |b| b.store(INTS, index, index), |b| b.store(INTS, index, Operand::I64(0)));
            b.when(big, |b| b.store(OUT, index, Operand::float(1.0)));
        });
        assert_eq!(both_ways, [false, true]);
    }

    #[test]
    fn raising_paths_do_not_count() {
        let checked = of(|b, index| {
            let twice = b.checked(CheckedOp::Add, index, index, OVERFLOW);
            b.store(INTS, index, twice);
        });
        assert_eq!(checked, [false, true]);
    }

    #[test]
    fn another_row_does_not_fill() {
        let shifted = of(|b, index| {
            let next = b.i64(Op::Xor, &[index, Operand::I64(1)]);
            b.store(INTS, next, index);
        });
        assert_eq!(shifted, [false, false]);
    }

    #[test]
    fn a_way_round_the_store_is_seen() {
        let skipped = of(|b, index| {
            b.block(|b, out| {
                let odd = b.icmp(Cmp::Eq, index, Operand::I64(1));
                b.when(odd, |b| b.push(Stmt::Break(out)));
                b.store(INTS, index, index);
            });
            b.store(OUT, index, Operand::float(2.0));
        });
        assert_eq!(skipped, [true, false]);
        let returned = of(|b, index| {
            b.store(OUT, index, Operand::float(2.0));
            let odd = b.icmp(Cmp::Eq, index, Operand::I64(1));
            b.when(odd, |b| b.push(Stmt::Return(vec![])));
            b.store(INTS, index, index);
        });
        assert_eq!(returned, [true, false]);
    }

    #[test]
    fn a_job_of_two_elements_fills_nothing() {
        let two = of(|b, index| {
            b.store(INTS, index, index);
            let next = b.i64(Op::Xor, &[index, Operand::I64(1)]);
            b.push(Stmt::Begin { index: next, tick: Operand::I64(0), check: false });
        });
        assert_eq!(two, [false, false]);
    }

    #[test]
    fn the_loop_over_ticks_runs_at_least_once_and_others_may_not() {
        let over = |from: VarId, to: VarId| {
            of(move |b, index| {
                let i = b.temp(Scalar::I64);
                b.set(i, from.into());
                b.repeat(|b, done| {
                    let end = b.icmp(Cmp::Ge, i.into(), to.into());
                    b.when(end, |b| b.push(Stmt::Break(done)));
                    b.store(INTS, index, i.into());
                    b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
                });
            })
        };
        // The entry's parameters are the job, the first tick and the end.
        assert_eq!(over(VarId(1), VarId(2)), [false, true]);
        assert_eq!(over(VarId(0), VarId(2)), [false, false]);
    }
}
