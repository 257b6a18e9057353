//! Finds arrays that lie evenly by arithmetic, without a look at where they are.
//!
//! A column of arrays whose rows are evenly apart ([`crate::ir::Even`]) need not be loaded: the array at a row begins at
//! `start + row * step`, and all are of one length, so that checks of an index into one hold for all. Fires after calls were inlined,
//! where a word that was loaded is taken apart: what else looks at it gets the word put together.

use super::Pass;
use super::loops::Counts;
use crate::ir::visit::walk_mut;
use crate::ir::{Even, Func, Op, Operand, Program, Scalar, Stmt, Var, VarId};
use std::collections::HashMap;

pub const PASS: Pass = Pass { name: "even", description: "arrays that lie evenly are found by arithmetic", run };

/// The low half of an array's word is its length, the other where it begins.
const LENGTH: i64 = 0xffff_ffff;
const HALF: i64 = 32;

fn run(mut program: Program) -> Program {
    if program.even.is_empty() {
        return program;
    }
    for func in &mut program.funcs {
        let counts = Counts::of(func);
        let mut body = std::mem::take(&mut func.body);
        let mut parts = HashMap::new();
        list(&program.even, func, &mut body, &mut parts);
        // what was assigned once has one place and one length wherever it is read
        parts.retain(|word, _| counts.assigned(*word) == 1);
        walk_mut(&mut body, &mut |stmt| take_apart(stmt, &parts));
        func.body = body;
    }
    program
}

/// Where an array begins, and how long it is, by the register that holds its word.
type Parts = HashMap<VarId, (Operand, Operand)>;

fn list(even: &[Even], func: &mut Func, body: &mut Vec<Stmt>, parts: &mut Parts) {
    let mut out = Vec::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        stmt.bodies_mut().into_iter().flatten().for_each(|body| list(even, func, body, parts));
        match stmt {
            Stmt::Load { dst, column, row } if let Some(even) = even.iter().find(|even| even.column == column) => {
                let is_id = func.ty(row) == Scalar::I32;
                let mut at = |op, args: &[Operand]| -> Operand {
                    func.vars.push(Var { ty: Scalar::I64, name: None });
                    let part = VarId::new(func.vars.len() - 1);
                    out.push(Stmt::Let { dst: part, op, args: args.to_vec() });
                    part.into()
                };
                let [start, step, length] = [even.start, even.step, even.length].map(|p| at(Op::Param(p), &[]));
                let row = if is_id { at(Op::Widen, &[row]) } else { row };
                let away = at(Op::Mul, &[row, step]);
                let offset = at(Op::Add, &[start, away]);
                let shifted = at(Op::Shl, &[offset, Operand::I64(HALF)]);
                out.push(Stmt::Let { dst, op: Op::Or, args: vec![shifted, length] });
                parts.insert(dst, (offset, length));
            }
            stmt => out.push(stmt),
        }
    }
    *body = out;
}

/// Where a word that was loaded is taken apart, its parts are known.
fn take_apart(stmt: &mut Stmt, parts: &Parts) {
    let Stmt::Let { op, args, .. } = stmt else { return };
    let Some(Operand::Var(word)) = args.first() else { return };
    let Some((offset, length)) = parts.get(word) else { return };
    let part = match (*op, args.get(1)) {
        (Op::UShr, Some(Operand::I64(HALF))) => *offset,
        (Op::And, Some(Operand::I64(LENGTH))) => *length,
        _ => return,
    };
    (*op, *args) = (Op::Copy, vec![part]);
}

#[cfg(test)]
mod tests {
    use super::{HALF, LENGTH, PASS};
    use crate::ir::testing::{INPUT, INTS, OUT, program};
    use crate::ir::{Even, Op, Operand, Param, ParamId, Scalar, Stmt, VarId};
    use crate::passes::testing::after;
    use crate::passes::{dead, values};

    #[test]
    fn arrays_that_lie_evenly_are_not_looked_up() {
        let mut program = program(|b, index| {
            let word = b.load(Scalar::I64, INPUT, index);
            let offset = b.i64(Op::UShr, &[word, Operand::I64(HALF)]);
            let length = b.i64(Op::And, &[word, Operand::I64(LENGTH)]);
            let last = b.i64(Op::Sub, &[length, Operand::I64(1)]);
            let row = b.i64(Op::Add, &[offset, last]);
            let value = b.load(Scalar::F64, OUT, row);
            b.store(OUT, index, value);
        });
        let params = ["start", "step", "length"].map(|name| {
            program.params.push(Param::new(name, Scalar::I64));
            ParamId::new(program.params.len() - 1)
        });
        let [start, step, length] = params;
        program.even.push(Even { column: INPUT, start, step, length });
        program.columns[INPUT.index()].written = false;
        let text = |program| after(&[PASS, values::PASS, dead::PASS], program);
        let found = text(program.clone());
        assert!(!found.contains("load in[") && !found.contains("shl"), "{found}");
        assert!(found.contains("= sub") && found.contains("= mul job.0"), "{found}");
        // whoever wants the word has it
        let whole = Stmt::Store { column: INTS, row: Operand::I64(0), value: VarId(4).into() };
        program.funcs[0].body.push(whole);
        let found = text(program);
        assert!(!found.contains("load in[") && found.contains("shl"), "{found}");
    }
}
