//! How wide Integers are where widths cost something: what fits into 32 bits, and rows that loops count, which are as wide as addresses.
//!
//! Addresses have 64 bits. A compiler counts an address in place of a row, and spares all arithmetic beside it, where the row is computed in as many; what is computed in fewer may wrap, so it
//! computes the address anew in each repetition: thirteen instructions of a GPU in place of none for a row of objects that lie one after the other. All else is computed in 32 bits where it fits.
//!
//! Here: [`short`] and [`addresses`], for backends whose compiler is such. Not here: intervals ([`super::ranges`]).

use super::loops::{Counts, assigned_in};
use super::ranges::{INT32_RANGE, Interval, seen, within};
use crate::ir::visit::{is_plain, walk_mut};
use crate::ir::{Func, Op, Operand, Program, Scalar, Stmt, Var, VarId, walk};
use std::collections::{HashMap, HashSet};

/// What rows of objects are.
const ROWS: Interval = (0, u32::MAX as i64);

/// The registers of each function, by number, that are I64 and whose values fit into 32 bits and a sign wherever they are assigned;
/// none is the least number of 32 bits, whose quotient by -1 would not fit. Left out are counters by which short loops find rows.
pub fn short(program: &Program) -> Vec<Vec<bool>> {
    let of_func = |(func, seen): (&Func, Vec<Option<Interval>>)| {
        let fits = |(seen, var): (Option<Interval>, &Var)| {
            var.ty == Scalar::I64 && seen.is_some_and(|seen| within(seen, INT32_RANGE))
        };
        let mut short: Vec<bool> = seen.into_iter().zip(&func.vars).map(fits).collect();
        counted_rows(&func.body).into_iter().for_each(|v| short[v.index()] = false);
        short
    };
    program.funcs.iter().zip(seen(program)).map(of_func).collect()
}

/// The same program, where short loops find rows of objects by what they count itself, in place of its lower half: of class spaces, too, these rows are I64.
///
/// So the program is one for [`crate::ir::verify`] no more, and this is the last that is done to it.
pub fn addresses(mut program: Program) -> Program {
    let mut found: Vec<HashMap<VarId, VarId>> = program.funcs.iter().map(sums).collect();
    if found.iter().all(HashMap::is_empty) {
        return program;
    }
    for ((func, rows), seen) in program.funcs.iter().zip(&mut found).zip(seen(&program)) {
        let counts = Counts::of(func);
        rows.retain(|row, sum| {
            [row, sum].iter().all(|v| counts.assigned(**v) == 1)
                && seen[sum.index()].is_some_and(|seen| within(seen, ROWS))
        });
    }
    for (func, rows) in program.funcs.iter_mut().zip(&found) {
        walk_mut(&mut func.body, &mut |stmt| {
            if let Stmt::Loop { body, .. } = stmt
                && is_plain(body)
            {
                walk_mut(body, &mut |stmt| widen(stmt, rows));
            }
        });
    }
    program
}

/// The lower halves of sums of what short loops count: of what.
fn sums(func: &Func) -> HashMap<VarId, VarId> {
    let mut rows = HashMap::new();
    walk(&func.body, &mut |stmt| {
        let Stmt::Loop { body, .. } = stmt else { return };
        if !is_plain(body) {
            return;
        }
        let (counters, mut sums) = (counters(body), HashSet::new());
        let is_counted = |arg: &Operand| matches!(arg, Operand::Var(v) if counters.contains(v));
        walk(body, &mut |stmt| match stmt {
            Stmt::Let { dst, op: Op::Add, args } if args.iter().any(is_counted) => _ = sums.insert(*dst),
            Stmt::Let { dst, op: Op::Narrow, args } => {
                if let [Operand::Var(sum)] = args[..]
                    && sums.contains(&sum)
                {
                    rows.insert(*dst, sum);
                }
            }
            _ => {}
        });
    });
    rows
}

/// Loads or stores by the sum itself.
fn widen(stmt: &mut Stmt, rows: &HashMap<VarId, VarId>) {
    if let Stmt::Load { row, .. } | Stmt::Store { row, .. } = stmt
        && let Operand::Var(narrow) = row
        && let Some(sum) = rows.get(narrow)
    {
        *row = (*sum).into();
    }
}

/// What a loop counts by a constant.
fn counters(body: &[Stmt]) -> HashSet<VarId> {
    let mut found = HashSet::new();
    walk(body, &mut |stmt| {
        if let Stmt::Let { dst, op: Op::Add, args } = stmt
            && matches!(args[..], [Operand::Var(from), Operand::I64(_)] if from == *dst)
        {
            found.insert(*dst);
        }
    });
    found
}

/// What innermost loops count, and compute of it, to load and store by it.
fn counted_rows(body: &[Stmt]) -> HashSet<VarId> {
    let mut rows = HashSet::new();
    walk(body, &mut |stmt| {
        let Stmt::Loop { body, .. } = stmt else { return };
        if !is_plain(body) {
            return;
        }
        let mut steps: Vec<(VarId, Vec<Operand>)> = Vec::new();
        let mut found: HashSet<VarId> = HashSet::new();
        walk(body, &mut |stmt| match stmt {
            Stmt::Let { dst, op: Op::Add | Op::Sub | Op::Mul | Op::Shl | Op::Copy, args } => {
                steps.push((*dst, args.clone()))
            }
            Stmt::Load { row: Operand::Var(row), .. } | Stmt::Store { row: Operand::Var(row), .. } => {
                found.insert(*row);
            }
            _ => {}
        });
        // what is computed stands before what is computed of it
        for (dst, args) in steps.iter().rev() {
            if found.contains(dst) {
                found.extend(args.iter().filter_map(|arg| if let Operand::Var(v) = arg { Some(*v) } else { None }));
            }
        }
        if counters(body).iter().any(|counter| found.contains(counter)) {
            rows.extend(found.intersection(&assigned_in(body)));
        }
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::addresses;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, INTS, OUT, OVERFLOW, SPEED, program};
    use crate::ir::{CheckedOp, Cmp, Op, Operand, ParamId, Program, Scalar, Stmt, VarId};

    fn store(b: &mut Builder, value: Operand) {
        b.store(INTS, Operand::Var(VarId(0)), value);
    }

    /// Cars one after the other from a first one on, which the host says something of.
    fn cars(first: Option<(i64, i64)>) -> Program {
        let mut program = program(|b, index| {
            let first = b.i64(Op::Param(ParamId(0)), &[]);
            let i = b.var(Scalar::I64, Some("i".into()));
            b.set(i, Operand::I64(0));
            b.repeat(|b, done| {
                let end = b.icmp(Cmp::Ge, i.into(), Operand::I64(9));
                b.when(end, |b| b.push(Stmt::Break(done)));
                let row = b.i64(Op::Add, &[first, i.into()]);
                let car = b.op(Scalar::I32, Op::Narrow, &[row]);
                let speed = b.load(Scalar::F64, SPEED, car);
                b.store(OUT, index, speed);
                b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
            });
            let row = b.i64(Op::Add, &[first, index]);
            let car = b.op(Scalar::I32, Op::Narrow, &[row]);
            let speed = b.load(Scalar::F64, SPEED, car);
            b.store(OUT, index, speed);
        });
        program.params[0].range = first;
        program
    }

    #[test]
    fn a_loop_finds_objects_that_follow_each_other_by_all_of_what_it_counts() {
        let (before, after) = (cars(Some((0, i32::MAX.into()))), addresses(cars(Some((0, i32::MAX.into())))));
        let rows = |program: &Program| {
            let mut rows = Vec::new();
            crate::ir::walk(&program.funcs[0].body, &mut |stmt| {
                if let Stmt::Load { row, .. } = stmt {
                    rows.push(program.funcs[0].ty(*row));
                }
            });
            rows
        };
        assert_eq!(rows(&before), [Scalar::I32; 2]);
        assert_eq!(rows(&after), [Scalar::I64, Scalar::I32], "{after}");
        // what it counts is then as wide
        let counter = before.funcs[0].vars.iter().position(|var| var.name.as_deref() == Some("i")).expect("it counts");
        assert_eq!([&before, &after].map(|program| super::short(program)[0][counter]), [true, false]);
    }

    #[test]
    fn what_its_lower_half_may_be_another_row_than_stays_one() {
        let before = cars(None);
        assert_eq!(addresses(before.clone()), before);
    }

    #[test]
    fn short_registers_hold_32_bits_wherever_they_are_assigned_and_never_what_may_overflow() {
        let mut registers = Vec::new();
        let program = program(|b, index| {
            let loaded = b.load(Scalar::I64, INPUT, index);
            let masked = b.i64(Op::And, &[loaded, Operand::I64(0xffff)]);
            let double = b.i64(Op::Mul, &[masked, Operand::I64(2)]);
            let wide = b.i64(Op::Mul, &[double, double]);
            let least = b.i64(Op::Sub, &[Operand::I64(i32::MIN.into()), Operand::I64(0)]);
            // its overflow is told where control is never
            let told = b.temp(Scalar::I64);
            b.set(told, Operand::I64(1));
            let never = b.icmp(Cmp::Lt, masked, Operand::I64(0));
            b.when(never, |b| {
                b.push(Stmt::Checked { dst: told, op: CheckedOp::Add, args: [loaded, loaded], site: OVERFLOW });
            });
            let twice = b.temp(Scalar::I64);
            b.set(twice, masked);
            b.set(twice, loaded);
            registers.extend([loaded, masked, double, wide, least, told.into(), twice.into()]);
            store(b, wide);
        });
        let short = &super::short(&program)[0];
        let is = |operand: &Operand| matches!(operand, Operand::Var(v) if short[v.index()]);
        assert_eq!(registers.iter().map(is).collect::<Vec<_>>(), [false, true, true, false, false, false, false]);
    }
}
