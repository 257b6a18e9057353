//! Chooses widths of Integers where widths have a cost: 32 bits for values that fit, and 64 bits for rows that loops
//! count.
//!
//! Addresses have 64 bits. If a loop counts a row in 64 bits, a compiler counts an address instead, and needs no other
//! arithmetic for it. If it counts a row in 32 bits, which may wrap, the compiler computes the address anew in each
//! repetition. For consecutive rows of objects that is thirteen instructions of a GPU instead of none. All other values
//! are computed in 32 bits where they fit.
//!
//! Here: [`short`] and [`PASS`], for backends with such a compiler. Not here: intervals ([`super::ranges`]).

use super::loops::{Counts, assigned_in};
use super::ranges::{INT32_RANGE, Interval, seen, within};
use super::{Pass, Versioned};
use crate::ir::visit::{is_plain, walk_mut};
use crate::ir::{ColumnId, Func, Op, Operand, Program, Scalar, Space, Stmt, Var, VarId, walk};
use std::collections::{HashMap, HashSet};

/// [`crate::ir::verify`] does not accept the result, so this must be the last pass.
pub const PASS: Pass<Versioned> = Pass {
    name: "widths",
    description: "loops count consecutive rows in as many bits as addresses have",
    run: |state| Versioned { program: addresses(state.program), ..state },
};

/// The interval of rows of objects.
const ROWS: Interval = (0, u32::MAX as i64);

/// The I64 registers of each function, by number, whose values fit into 32 bits with sign wherever they are assigned.
/// The least number of 32 bits does not count as fitting, since its quotient by -1 would not fit. Counters by which
/// short loops find rows are left out.
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

/// The I64 registers of each function, by number, of which only the lower half matters, without those of `short`. They
/// are rows of arrays, which are less than 2^32, and what such rows are computed from. Left out are rows that short
/// loops count, and those without a product. A backend may hold the registers in 32 bits, in which they wrap.
pub fn low(program: &Program, short: &[Vec<bool>]) -> Vec<Vec<bool>> {
    program.funcs.iter().zip(short).map(|(func, short)| low_of(program, func, short)).collect()
}

fn low_of(program: &Program, func: &Func, short: &[bool]) -> Vec<bool> {
    let mut low: Vec<bool> = vec![false; func.vars.len()];
    let mut other: HashSet<VarId> = func.params.iter().copied().chain(counted_rows(&func.body)).collect();
    walk(&func.body, &mut |stmt| match stmt {
        Stmt::Let { dst, op, args } if func.vars[dst.index()].ty == Scalar::I64 && is_of_lower_halves(*op, args) => {
            low[dst.index()] = !short[dst.index()];
        }
        _ => other.extend(stmt.assigns().iter().copied()),
    });
    let is_array = |column: ColumnId| matches!(program.columns[column.index()].space, Space::Array(_));
    loop {
        other.iter().for_each(|v| low[v.index()] = false);
        let before = other.len();
        walk(&func.body, &mut |stmt| {
            let mut whole = |operand: &Operand| {
                if let Operand::Var(v) = operand
                    && low[v.index()]
                {
                    other.insert(*v);
                }
            };
            match stmt {
                Stmt::Load { column, .. } if is_array(*column) => {}
                Stmt::Store { column, value, .. } if is_array(*column) => whole(value),
                Stmt::Let { op: Op::Narrow, .. } => {}
                Stmt::Let { dst, .. } if low[dst.index()] => {}
                _ => stmt.reads(|operand| whole(&operand)),
            }
        });
        if other.len() == before {
            break;
        }
    }
    // A product of 64 bits takes four instructions in place of one. A sum takes two, but compilers make a constant that
    // is added to a whole row a part of the address.
    let mut pays: Vec<bool> = vec![false; func.vars.len()];
    loop {
        let mut more = false;
        walk(&func.body, &mut |stmt| {
            let Stmt::Let { dst, op, args } = stmt else { return };
            let is_found = |arg: &Operand| matches!(arg, Operand::Var(v) if pays[v.index()]);
            let is_product = *op == Op::Mul && args.iter().all(|arg| matches!(arg, Operand::Var(_)));
            if low[dst.index()] && !pays[dst.index()] && (is_product || args.iter().any(is_found)) {
                (pays[dst.index()], more) = (true, true);
            }
        });
        if !more {
            return pays;
        }
    }
}

/// Whether the lower half of the result depends on the lower halves of the operands alone.
fn is_of_lower_halves(op: Op, args: &[Operand]) -> bool {
    matches!(op, Op::Copy | Op::Add | Op::Sub | Op::Mul | Op::And | Op::Or | Op::Xor | Op::Widen | Op::Select)
        || op == Op::Shl && matches!(args[1], Operand::I64(0..32))
}

/// The same program, where short loops use their 64-bit counter itself as a row of objects, instead of its lower half.
/// Rows of class spaces become I64, too.
fn addresses(mut program: Program) -> Program {
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

/// By register that holds the lower half of a sum that a short loop counts: that sum.
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

/// The registers to which a loop only adds a constant.
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

/// The registers of innermost loops that count, and those computed from them, that are used as rows.
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
        // a value is computed before the values that use it, so the walk goes backwards
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
    use crate::id::ArrayKind;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, INTS, OUT, OVERFLOW, SPEED, program};
    use crate::ir::{CheckedOp, Cmp, Op, Operand, ParamId, Program, Scalar, Space, Stmt, VarId};

    fn store(b: &mut Builder, value: Operand) {
        b.store(INTS, Operand::Var(VarId(0)), value);
    }

    /// Consecutive cars from a first one on; `first`: the interval in which the host promises it to be.
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
        // the counter is then as wide as the row
        let counter = before.funcs[0].vars.iter().position(|var| var.name.as_deref() == Some("i")).expect("it counts");
        assert_eq!([&before, &after].map(|program| super::short(program)[0][counter]), [true, false]);
    }

    #[test]
    fn what_its_lower_half_may_be_another_row_than_stays_one() {
        let before = cars(None);
        assert_eq!(addresses(before.clone()), before);
    }

    #[test]
    fn only_the_lower_half_of_a_row_matters_if_nothing_else_reads_it() {
        let low = |also_stored: bool| {
            let mut registers = Vec::new();
            let mut program = program(|b, index| {
                let size = b.i64(Op::Param(ParamId(0)), &[]);
                let line = b.i64(Op::Mul, &[index, size]);
                let place = b.i64(Op::Mul, &[line, size]);
                let row = b.i64(Op::And, &[place, Operand::I64(i64::MAX)]);
                let quotient = b.i64(Op::UDiv, &[line, Operand::I64(3)]);
                let value = b.load(Scalar::F64, OUT, row);
                b.store(OUT, index, value);
                if also_stored {
                    store(b, place);
                }
                registers.extend([line, place, row, quotient]);
            });
            program.columns[OUT.index()].space = Space::Array(ArrayKind(0));
            let low = &super::low(&program, &super::short(&program))[0];
            let is = |operand: &Operand| matches!(operand, Operand::Var(v) if low[v.index()]);
            registers.iter().map(is).collect::<Vec<_>>()
        };
        assert_eq!(low(false), [false, true, true, false], "the quotient needs all of the line");
        assert_eq!(low(true), [false; 4]);
    }

    #[test]
    fn rows_that_short_loops_count_keep_the_width_of_addresses() {
        let counted = |loops: bool| {
            let mut row = VarId(0);
            let mut program = program(|b, index| {
                let i = b.var(Scalar::I64, Some("i".into()));
                b.set(i, Operand::I64(0));
                let line = b.i64(Op::Mul, &[index, index]);
                let step = |b: &mut Builder| {
                    let at = b.i64(Op::Add, &[line, i.into()]);
                    let value = b.load(Scalar::F64, OUT, at);
                    b.store(OUT, index, value);
                    at
                };
                let mut found = None;
                if loops {
                    b.repeat(|b, done| {
                        let end = b.icmp(Cmp::Ge, i.into(), Operand::I64(9));
                        b.when(end, |b| b.push(Stmt::Break(done)));
                        found = Some(step(b));
                        b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
                    });
                } else {
                    found = Some(step(b));
                }
                let Some(Operand::Var(found)) = found else { panic!("it has a row") };
                row = found;
            });
            program.columns[OUT.index()].space = Space::Array(ArrayKind(0));
            let none = vec![vec![false; program.funcs[0].vars.len()]];
            super::low(&program, &none)[0][row.index()]
        };
        assert_eq!([false, true].map(counted), [true, false]);
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
            // an addition that would overflow, where control never comes
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
