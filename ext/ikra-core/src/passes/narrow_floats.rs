//! Narrows columns of Floats: where a program rounds all that it loads to 32 bits, the column need have no more.
//!
//! With `precision: :f32` each numeric method rounds its operands. A column of 64 bits is then converted at each load,
//! and in the inner loop of an n-body that is four times for each pair of bodies. So the host fills the column with
//! Floats of 32 bits, which are rounded once.
//!
//! Fires for columns that the host can fill so ([`Column::roundable`]), if each load is only rounded, or negated,
//! chosen and copied before it is. The program does not write the column, or it stores only Floats that have 32 bits.
//! Rows that it does not store must keep all their bits. So a written column gets *marks* ([`Column::marks`]), a byte
//! for each row. They pay only where loops load the column: no other written column is narrowed. Does not fire for
//! arrays that the program writes.
//!
//! Invariant: every register has the value that it had, but those that are only rounded, and these have rounded ones.

use super::{Pass, single_precision};
use crate::ir::visit::walk_mut;
use crate::ir::{Column, ColumnId, Func, Op, Operand, Program, Scalar, Space, Stmt, Storage, walk};

pub const PASS: Pass =
    Pass { name: "narrow_floats", description: "columns of Floats that are only rounded have 32 bits", run };

fn run(mut program: Program) -> Program {
    let narrowed = narrowed(&program);
    if narrowed.is_empty() {
        return program;
    }
    for id in narrowed {
        let column = &mut program.columns[id.index()];
        (column.storage, column.roundable) = (Storage::F32, false);
        if column.written {
            mark(&mut program, id);
        }
    }
    let exact = exact(&program);
    for (func, exact) in program.funcs.iter_mut().zip(exact) {
        walk_mut(&mut func.body, &mut |stmt| match stmt {
            Stmt::Let { op: op @ Op::FSingle, args, .. } if single_precision::is_single(&exact, args[0]) => {
                *op = Op::Copy
            }
            _ => {}
        });
    }
    program
}

/// The columns that may have 32 bits.
fn narrowed(program: &Program) -> Vec<ColumnId> {
    let candidate = |column: &Column| match column.space {
        _ if !column.roundable || !column.read => false,
        // no marks are kept of arrays
        Space::Array(_) => !column.written,
        _ => true,
    };
    let mut fits: Vec<bool> = program.columns.iter().map(candidate).collect();
    if !fits.contains(&true) {
        return Vec::new();
    }
    let single = single_precision::single(program);
    let mut in_loops = vec![false; program.columns.len()];
    for (at, (func, single)) in program.funcs.iter().zip(&single).enumerate() {
        let rounded = only_rounded(program, func);
        walk(&func.body, &mut |stmt| match stmt {
            Stmt::Load { dst, column, .. } => fits[column.index()] &= rounded[dst.index()],
            Stmt::Store { column, value, .. } => fits[column.index()] &= single_precision::is_single(single, *value),
            Stmt::Atomic { column, .. } | Stmt::FetchAdd { column, .. } => fits[column.index()] = false,
            _ => {}
        });
        // what is not inlined may be called in a loop
        loaded_in_loops(&func.body, at != program.entry.index(), &mut in_loops);
    }
    let pays = |at: usize| in_loops[at] || !program.columns[at].written;
    (0..fits.len()).filter(|at| fits[*at] && pays(*at)).map(ColumnId::new).collect()
}

/// The registers of which each reader sees only the rounded value.
fn only_rounded(program: &Program, func: &Func) -> Vec<bool> {
    let mut rounded: Vec<bool> = func.vars.iter().map(|var| var.ty == Scalar::F64).collect();
    loop {
        let mut dropped = Vec::new();
        walk(&func.body, &mut |stmt| {
            let rounds = match stmt {
                Stmt::Let { op: Op::FSingle, .. } => true,
                // of Floats, only the chosen values are read here
                Stmt::Let { dst, op: Op::Copy | Op::FNeg | Op::FAbs | Op::Select, .. } => rounded[dst.index()],
                Stmt::Store { column, .. } => program.columns[column.index()].storage == Storage::F32,
                _ => false,
            };
            stmt.reads(|operand| match operand {
                Operand::Var(v) if !rounds && rounded[v.index()] => dropped.push(v),
                _ => {}
            });
        });
        if dropped.is_empty() {
            return rounded;
        }
        dropped.into_iter().for_each(|v| rounded[v.index()] = false);
    }
}

/// Notes the columns that loops load, other than the loop over ticks.
fn loaded_in_loops(list: &[Stmt], within: bool, loaded: &mut [bool]) {
    for stmt in list {
        if let (true, Stmt::Load { column, .. }) = (within, stmt) {
            loaded[column.index()] = true;
        }
        let mut begins = false;
        if let Stmt::Loop { body, .. } = stmt {
            walk(body, &mut |stmt| begins |= matches!(stmt, Stmt::Begin { .. }));
        }
        let within = within || matches!(stmt, Stmt::Loop { .. }) && !begins;
        stmt.bodies().into_iter().for_each(|body| loaded_in_loops(body, within, loaded));
    }
}

/// Adds the marks of a column.
fn mark(program: &mut Program, id: ColumnId) {
    let marks = ColumnId::new(program.columns.len());
    let column = &mut program.columns[id.index()];
    column.marks = Some(marks);
    let (name, space) = (format!("{}.stored", column.name), column.space);
    let (storage, refers, ranged, roundable) = (Storage::U8, None, None, false);
    program.columns.push(Column {
        name,
        space,
        storage,
        refers,
        ranged,
        roundable,
        marks: None,
        read: true,
        written: true,
    });
    program.funcs.iter_mut().for_each(|func| mark_stores(&mut func.body, id, marks));
}

fn mark_stores(list: &mut Vec<Stmt>, id: ColumnId, marks: ColumnId) {
    for mut stmt in std::mem::take(list) {
        stmt.bodies_mut().into_iter().flatten().for_each(|body| mark_stores(body, id, marks));
        let row = match &stmt {
            Stmt::Store { column, row, .. } if *column == id => Some(*row),
            _ => None,
        };
        list.push(stmt);
        list.extend(row.map(|row| Stmt::Store { column: marks, row, value: Operand::Bool(true) }));
    }
}

/// The registers whose values have 32 bits, without those for which that holds only once they are rounded.
fn exact(program: &Program) -> Vec<Vec<bool>> {
    let mut exact = single_precision::single(program);
    for (func, exact) in program.funcs.iter().zip(&mut exact) {
        walk(&func.body, &mut |stmt| {
            if let Stmt::Let {
                dst, op: Op::FAdd | Op::FSub | Op::FMul | Op::FDiv | Op::FSqrt | Op::IntToFloat, ..
            } = stmt
            {
                exact[dst.index()] = false;
            }
        });
    }
    exact
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, OUT, SPEED, program};
    use crate::ir::{Cmp, Op, Operand, Program, Scalar, Stmt, Storage};
    use crate::passes::testing::after;

    const HALF: Operand = Operand::F64(0.5f64.to_bits());

    /// A program whose cars' speeds the host can round. `written`: whether it stores any.
    fn cars(written: bool, body: impl FnOnce(&mut Builder, Operand, Operand)) -> Program {
        let mut program = program(|b, index| {
            let car = b.op(Scalar::I32, Op::Narrow, &[index]);
            body(b, index, car);
        });
        let column = &mut program.columns[SPEED.index()];
        (column.roundable, column.written) = (true, written);
        program
    }

    fn narrows(program: Program) -> bool {
        (PASS.run)(program.clone()) != program
    }

    fn rounded(b: &mut Builder, op: Op, operands: &[Operand]) -> Operand {
        let operands: Vec<Operand> = operands.iter().map(|operand| b.f64(Op::FSingle, &[*operand])).collect();
        let result = b.f64(op, &operands);
        b.f64(Op::FSingle, &[result])
    }

    /// Repeats `body` as often as the input says.
    fn repeat(b: &mut Builder, index: Operand, body: impl FnOnce(&mut Builder)) {
        let left = b.temp(Scalar::I64);
        let count = b.load(Scalar::I64, INPUT, index);
        b.set(left, count);
        b.block(|b, done| {
            b.repeat(|b, _| {
                let ends = b.icmp(Cmp::Le, left.into(), Operand::I64(0));
                b.when(ends, |b| b.push(Stmt::Break(done)));
                let less = b.i64(Op::Sub, &[left.into(), Operand::I64(1)]);
                b.set(left, less);
                body(b);
            });
        });
    }

    #[test]
    fn a_column_that_is_only_rounded_has_32_bits() {
        let program = cars(false, |b, index, car| {
            let speed = b.load(Scalar::F64, SPEED, car);
            let negated = b.f64(Op::FNeg, &[speed]);
            let sum = rounded(b, Op::FAdd, &[negated, HALF]);
            b.store(OUT, index, sum);
        });
        let program = (PASS.run)(program);
        let column = &program.columns[SPEED.index()];
        assert_eq!((column.storage, column.marks), (Storage::F32, None));
        // of the operands and the result, only the result is still rounded
        assert_eq!(after(&[], program).matches("fsingle").count(), 1);
    }

    #[test]
    fn stores_of_a_written_column_are_marked() {
        let program = cars(true, |b, index, car| {
            repeat(b, index, |b| {
                let speed = b.load(Scalar::F64, SPEED, car);
                let faster = rounded(b, Op::FAdd, &[speed, HALF]);
                b.store(SPEED, car, faster);
            });
        });
        let text = after(&[PASS], program);
        let [stores, marks] = ["store Car@speed[", "store Car@speed.stored["].map(|part| text.matches(part).count());
        assert_eq!((stores, marks), (1, 1), "{text}");
    }

    #[test]
    fn a_value_with_all_bits_keeps_the_column_wide() {
        let result = |b: &mut Builder, index, car| {
            let speed = b.load(Scalar::F64, SPEED, car);
            b.store(OUT, index, speed);
        };
        assert!(!narrows(cars(false, result)));
        let compared = |b: &mut Builder, index, car| {
            let speed = b.load(Scalar::F64, SPEED, car);
            let is_fast = b.fcmp(Cmp::Gt, speed, HALF);
            let chosen = b.select(Scalar::F64, is_fast, HALF, Operand::F64(0));
            b.store(OUT, index, chosen);
        };
        assert!(!narrows(cars(false, compared)));
        let copied = |b: &mut Builder, index: Operand, car: Operand| {
            repeat(b, index, |b| {
                let speed = b.load(Scalar::F64, SPEED, car);
                b.store(SPEED, Operand::I32(0), speed);
            });
        };
        assert!(!narrows(cars(true, copied)));
        let precise = |b: &mut Builder, index: Operand, car: Operand| {
            repeat(b, index, |b| {
                let speed = b.load(Scalar::F64, SPEED, car);
                let faster = rounded(b, Op::FAdd, &[speed, HALF]);
                b.store(OUT, index, faster);
                b.store(SPEED, car, Operand::F64(0.1f64.to_bits()));
            });
        };
        assert!(!narrows(cars(true, precise)));
    }

    #[test]
    fn a_written_column_stays_wide_where_no_loop_loads_it() {
        let once = |b: &mut Builder, _, car| {
            let speed = b.load(Scalar::F64, SPEED, car);
            let faster = rounded(b, Op::FAdd, &[speed, HALF]);
            b.store(SPEED, car, faster);
        };
        assert!(!narrows(cars(true, once)));
    }

    #[test]
    fn what_the_host_cannot_round_stays_wide() {
        let mut program = cars(false, |b, index, car| {
            let speed = b.load(Scalar::F64, SPEED, car);
            let sum = rounded(b, Op::FAdd, &[speed, HALF]);
            b.store(OUT, index, sum);
        });
        program.columns[SPEED.index()].roundable = false;
        assert!(!narrows(program));
    }
}
