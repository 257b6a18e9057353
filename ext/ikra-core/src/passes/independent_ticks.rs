//! Whether all ticks of a section can run in one launch although it writes to arrays that all elements share.
//!
//! Inference fuses ticks if elements write nothing that another one may reach. Of an array that they share it only
//! knows that each may reach all of it. In an improved program it shows whether the elements of a section keep to rows
//! of their own, as with `x[i] += v[i]` where `i` is the element's number. Then a job may run all of its ticks, one
//! after the other, before another job begins.
//!
//! Part of no pipeline: if it is so, the engine improves the lowered program once more, with its ticks fused.

use super::loops::Counts;
use crate::ir::{ColumnId, Ctx, Func, Op, Operand, ParamId, Program, Stmt, VarId, walk};
use std::collections::{HashMap, HashSet};

/// Whether each job reads and writes one row of each of these columns, which no other job does.
pub fn are_independent(program: &Program, columns: &[ColumnId]) -> bool {
    let entry = &program.funcs[program.entry.index()];
    let others = program.funcs.iter().filter(|func| !std::ptr::eq(*func, entry));
    let is_elsewhere = others.flat_map(|func| rows(func, columns)).next().is_some();
    let Some(numbers) = Numbers::of(entry).filter(|_| !is_elsewhere) else { return false };
    let mut own: HashMap<ColumnId, Distance> = HashMap::new();
    rows(entry, columns).into_iter().all(|(column, row)| {
        numbers.distance(row).is_some_and(|distance| *own.entry(column).or_insert(distance) == distance)
    })
}

/// The rows of the columns that a function reads or writes.
fn rows(func: &Func, columns: &[ColumnId]) -> Vec<(ColumnId, Operand)> {
    let mut rows = Vec::new();
    walk(&func.body, &mut |stmt| match stmt {
        Stmt::Load { column, row, .. }
        | Stmt::Store { column, row, .. }
        | Stmt::Atomic { column, row, .. }
        | Stmt::FetchAdd { column, row, .. }
            if columns.contains(column) =>
        {
            rows.push((*column, *row));
        }
        _ => {}
    });
    rows
}

/// How far a row is from the number of the job's element: as far for all jobs.
#[derive(Clone, Copy, PartialEq)]
enum Distance {
    Constant(i64),
    Param(ParamId),
}

/// The registers of the entry that are assigned once, as far as they are sums or parameters.
struct Numbers {
    /// They hold the number of the job's element.
    index: HashSet<VarId>,
    sums: HashMap<VarId, [Operand; 2]>,
    params: HashMap<VarId, ParamId>,
}

impl Numbers {
    /// None: elements do not have one number each.
    fn of(entry: &Func) -> Option<Self> {
        let counts = Counts::of(entry);
        let (mut sums, mut params, mut begun, mut index) = (HashMap::new(), HashMap::new(), Vec::new(), HashSet::new());
        walk(&entry.body, &mut |stmt| match stmt {
            Stmt::Begin { index, .. } => begun.push(*index),
            Stmt::Let { dst, op, args } if counts.assigned(*dst) == 1 => match (op, &args[..]) {
                (Op::Add, [a, b]) => _ = sums.insert(*dst, [*a, *b]),
                (Op::Param(param), _) => _ = params.insert(*dst, *param),
                (Op::Ctx(Ctx::Index), _) => _ = index.insert(*dst),
                _ => {}
            },
            _ => {}
        });
        let Some(Operand::Var(first)) = begun.first().copied() else { return None };
        index.insert(first);
        let is_one = begun.iter().all(|other| *other == Operand::Var(first)) && counts.assigned(first) == 1;
        is_one.then_some(Self { index, sums, params })
    }

    fn distance(&self, row: Operand) -> Option<Distance> {
        let Operand::Var(row) = row else { return None };
        if self.index.contains(&row) {
            return Some(Distance::Constant(0));
        }
        let away = match *self.sums.get(&row)? {
            [Operand::Var(index), away] | [away, Operand::Var(index)] if self.index.contains(&index) => away,
            _ => return None,
        };
        match away {
            Operand::I64(away) => Some(Distance::Constant(away)),
            Operand::Var(away) => self.params.get(&away).copied().map(Distance::Param),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::are_independent;
    use crate::ir::testing::{INTS, OUT, program};
    use crate::ir::{Op, Operand, ParamId, Scalar};

    #[test]
    fn jobs_that_keep_to_their_own_rows_are_independent() {
        let program = program(|b, index| {
            let first = b.i64(Op::Param(ParamId(0)), &[]);
            let own = b.i64(Op::Add, &[first, index]);
            let x = b.load(Scalar::I64, INTS, own);
            b.store(INTS, own, x);
            let y = b.load(Scalar::F64, OUT, index);
            b.store(OUT, index, y);
        });
        assert!(are_independent(&program, &[INTS, OUT]));
    }

    #[test]
    fn jobs_that_reach_rows_of_others_are_not() {
        let neighbours = |away: Option<i64>| {
            program(|b, index| {
                let there = match away {
                    Some(away) => b.i64(Op::Add, &[index, Operand::I64(away)]),
                    None => b.load(Scalar::I64, INTS, index),
                };
                let x = b.load(Scalar::F64, OUT, there);
                b.store(OUT, index, x);
            })
        };
        assert!(are_independent(&neighbours(Some(0)), &[INTS]));
        assert!(!are_independent(&neighbours(Some(1)), &[OUT]));
        assert!(!are_independent(&neighbours(None), &[OUT]));
    }
}
