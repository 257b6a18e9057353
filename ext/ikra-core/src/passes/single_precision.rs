//! Finds the Floats that need no more than 32 bits.
//!
//! A program of `precision: :f32` computes in 64 bits and rounds each result ([`Op::FSingle`]). Arithmetic in 32 bits
//! gives the same bits, and is faster on every machine. So a backend may hold the registers found here in 32 bits. Two
//! kinds of them are found:
//!
//! - Registers that are only assigned values of 32 bits: rounded ones, elements of columns of 32 bits, constants, and
//!   sums of such a value and zero.
//! - Results of `+ - * /` and of square roots of such values, if each reader rounds them.
//!
//! Here: [`single`], an analysis for backends. Not here: how they compute.

use super::ranges::{Interval, seen, within};
use crate::ir::{Func, Op, Operand, Program, Scalar, Stmt, Storage, VarId, walk};

/// All Integers that a Float of 32 bits holds exactly.
const EXACT: Interval = (-(1 << 24), 1 << 24);
/// The same for 64 bits: rounding such an Integer first to 64 and then to 32 bits is rounding it once.
const EXACT_IN_64: Interval = (-(1 << 53), 1 << 53);

/// The F64 registers of each function, by number, that a backend may hold in 32 bits.
///
/// Where such a register is assigned the result of arithmetic, all operands have 32 bits too ([`is_single`]), and the
/// backend computes it in 32 bits. A program that rounds nothing has none.
pub fn single(program: &Program) -> Vec<Vec<bool>> {
    let rounds = program.funcs.iter().any(|func| {
        let mut rounds = false;
        walk(&func.body, &mut |stmt| rounds |= matches!(stmt, Stmt::Let { op: Op::FSingle, .. }));
        rounds
    });
    if !rounds {
        return program.funcs.iter().map(|func| vec![false; func.vars.len()]).collect();
    }
    program.funcs.iter().zip(seen(program)).map(|(func, seen)| of_func(program, func, &seen)).collect()
}

/// Whether an operand of F64 has a value of 32 bits: a register of `single`, or a constant.
pub fn is_single(single: &[bool], operand: Operand) -> bool {
    match operand {
        Operand::Var(v) => single[v.index()],
        Operand::F64(bits) => {
            let x = f64::from_bits(bits);
            f64::from(x as f32).to_bits() == bits
        }
        _ => false,
    }
}

fn is_zero(operand: &Operand) -> bool {
    matches!(operand, Operand::F64(bits) if f64::from_bits(*bits) == 0.0)
}

fn of_func(program: &Program, func: &Func, seen: &[Option<Interval>]) -> Vec<bool> {
    let is_f32 = |column: crate::ir::ColumnId| program.columns[column.index()].storage == Storage::F32;
    let mut single: Vec<bool> = func.vars.iter().map(|var| var.ty == Scalar::F64).collect();
    let mut assigned = vec![false; func.vars.len()];
    // whether some reader sees more than the rounded value
    let mut read = vec![false; func.vars.len()];
    walk(&func.body, &mut |stmt| {
        stmt.assigns().iter().for_each(|dst| assigned[dst.index()] = true);
        let rounds = match stmt {
            Stmt::Let { op: Op::FSingle | Op::SingleBits, .. } => true,
            Stmt::Store { column, .. } => is_f32(*column),
            _ => false,
        };
        if !rounds {
            stmt.reads(|operand| {
                if let Operand::Var(v) = operand {
                    read[v.index()] = true;
                }
            });
        }
    });
    for (v, assigned) in assigned.into_iter().enumerate() {
        single[v] &= assigned;
    }
    func.params.iter().for_each(|param| single[param.index()] = false);
    // starts from all registers and drops those with an assignment of another kind, until no more are dropped
    loop {
        let mut dropped = Vec::new();
        let mut drop = |dst: &VarId| {
            if single[dst.index()] {
                dropped.push(*dst);
            }
        };
        walk(&func.body, &mut |stmt| match stmt {
            Stmt::Let { dst, op, args } => {
                let all = || args.iter().all(|arg| is_single(&single, *arg));
                let fits = |bounds| match args[0] {
                    Operand::Var(v) => seen[v.index()].is_some_and(|seen| within(seen, bounds)),
                    Operand::I64(i) => within((i, i), bounds),
                    _ => false,
                };
                let holds = match op {
                    Op::FSingle => true,
                    Op::Copy | Op::FNeg | Op::FAbs | Op::FFloor | Op::FCeil | Op::FTrunc | Op::FRint => all(),
                    // it changes -0.0 at most
                    Op::FAdd if args.iter().any(is_zero) => all(),
                    Op::FCopySign => all(),
                    Op::Select => args[1..].iter().all(|arg| is_single(&single, *arg)),
                    Op::FAdd | Op::FSub | Op::FMul | Op::FDiv | Op::FSqrt => all() && !read[dst.index()],
                    Op::IntToFloat => fits(EXACT) || fits(EXACT_IN_64) && !read[dst.index()],
                    _ => false,
                };
                if !holds {
                    drop(dst);
                }
            }
            Stmt::Load { dst, column, .. } if is_f32(*column) => {}
            other => other.assigns().iter().for_each(&mut drop),
        });
        if dropped.is_empty() {
            return single;
        }
        dropped.into_iter().for_each(|dst| single[dst.index()] = false);
    }
}

#[cfg(test)]
mod tests {
    use super::single;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, OUT, SPEED, program};
    use crate::ir::{Op, Operand, Scalar, Stmt};

    /// Which of the registers that `body` returns have 32 bits.
    fn widths(body: impl FnOnce(&mut Builder, Operand) -> Vec<Operand>) -> Vec<bool> {
        let mut registers = Vec::new();
        let program = program(|b, index| registers = body(b, index));
        let single = &single(&program)[0];
        registers.iter().map(|register| matches!(register, Operand::Var(v) if single[v.index()])).collect()
    }

    fn speed(b: &mut Builder, index: Operand) -> Operand {
        let car = b.op(Scalar::I32, Op::Narrow, &[index]);
        b.load(Scalar::F64, SPEED, car)
    }

    #[test]
    fn a_product_of_rounded_floats_that_is_rounded_has_32_bits() {
        let found = widths(|b, index| {
            let x = speed(b, index);
            let rounded = b.f64(Op::FSingle, &[x]);
            let product = b.f64(Op::FMul, &[rounded, Operand::F64(0.5f64.to_bits())]);
            let result = b.f64(Op::FSingle, &[product]);
            // as Math.sqrt computes
            let positive = b.f64(Op::FAdd, &[result, Operand::F64(0)]);
            let root = b.f64(Op::FSqrt, &[positive]);
            let negated = b.f64(Op::FNeg, &[result]);
            b.store(OUT, index, root);
            b.store(OUT, index, negated);
            vec![x, rounded, product, result, positive, root, negated]
        });
        // the root is stored with all its bits
        assert_eq!(found, [false, true, true, true, true, false, true]);
    }

    #[test]
    fn a_constant_with_more_bits_makes_a_product_of_64() {
        let found = widths(|b, index| {
            let x = speed(b, index);
            let rounded = b.f64(Op::FSingle, &[x]);
            let product = b.f64(Op::FMul, &[rounded, Operand::F64(0.1f64.to_bits())]);
            let result = b.f64(Op::FSingle, &[product]);
            b.store(OUT, index, result);
            vec![product, result]
        });
        assert_eq!(found, [false, true]);
    }

    #[test]
    fn a_register_has_32_bits_only_if_each_assignment_has() {
        let found = widths(|b, index| {
            let x = speed(b, index);
            let rounded = b.f64(Op::FSingle, &[x]);
            let [sum, mixed] = [0, 1].map(|_| b.temp(Scalar::F64));
            for register in [sum, mixed] {
                b.set(register, Operand::F64(0));
            }
            b.repeat(|b, done| {
                let more = b.f64(Op::FAdd, &[sum.into(), rounded]);
                let more = b.f64(Op::FSingle, &[more]);
                b.set(sum, more);
                b.set(mixed, x);
                b.push(Stmt::Break(done));
            });
            let from = b.f64(Op::FNeg, &[mixed.into()]);
            b.store(OUT, index, sum.into());
            b.store(OUT, index, from);
            vec![sum.into(), mixed.into(), from]
        });
        assert_eq!(found, [true, false, false]);
    }

    #[test]
    fn an_integer_becomes_a_float_of_32_bits_if_that_rounds_at_most_once() {
        let found = widths(|b, index| {
            let loaded = b.load(Scalar::I64, INPUT, index);
            let mut floats = Vec::new();
            for mask in [0xffff, 0xffff_ffff, i64::MAX] {
                let masked = b.i64(Op::And, &[loaded, Operand::I64(mask)]);
                let exact = b.f64(Op::IntToFloat, &[masked]);
                b.store(OUT, index, exact);
                let again = b.f64(Op::IntToFloat, &[masked]);
                let rounded = b.f64(Op::FSingle, &[again]);
                b.store(OUT, index, rounded);
                floats.extend([exact, again]);
            }
            floats
        });
        assert_eq!(found, [true, true, false, true, false, false]);
    }

    #[test]
    fn a_program_that_rounds_nothing_has_no_float_of_32_bits() {
        let found = widths(|b, index| {
            let half = b.temp(Scalar::F64);
            b.set(half, Operand::F64(0.5f64.to_bits()));
            b.store(OUT, index, half.into());
            vec![half.into()]
        });
        assert_eq!(found, [false]);
    }
}
