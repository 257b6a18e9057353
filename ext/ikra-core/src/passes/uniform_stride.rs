//! Computes references whose columns have a uniform stride, instead of loading them.
//!
//! A column of arrays has a uniform stride ([`crate::ir::UniformStride`]) if its arrays are equally long and equally
//! far apart. Its words need not be loaded. The array at a row begins at `start + row * step`. All arrays have one
//! length, so a check of an index into one holds for all. The pass fires after calls were inlined, where a loaded word
//! is taken apart. Other uses of the word get a word that is put together again.
//!
//! References to rows that follow each other need not be loaded either. But passes rely on loaded references: a loaded
//! reference is surely valid wherever its use is moved to, and a computed one may not be. So [`ELEMENTS`] is the last
//! pass to compute them. References in arrays are left to each backend ([`REFERENCES`]), once it moves no loads, or if
//! it notes beforehand which registers were loaded ([`loaded`]).

use super::Pass;
use super::loops::Counts;
use crate::ir::visit::walk_mut;
use crate::ir::{
    Column, ColumnId, Func, Op, Operand, ParamId, Program, Scalar, Space, Stmt, UniformStride, Var, VarId, walk,
};
use std::collections::{HashMap, HashSet};

pub const PASS: Pass =
    Pass { name: "uniform_stride", description: "arrays with a uniform stride are found by arithmetic", run: arrays };
pub const ELEMENTS: Pass =
    Pass { name: "elements", description: "elements that follow each other are found by arithmetic", run: elements };
/// For backends that move no loads.
pub const REFERENCES: Pass =
    Pass { name: "references", description: "references that follow each other are computed", run: references };

/// The low half of an array's word is its length, the high half is where it begins.
const LENGTH: i64 = 0xffff_ffff;
const HALF: i64 = 32;

fn arrays(mut program: Program) -> Program {
    for func in &mut program.funcs {
        let counts = Counts::of(func);
        let mut body = std::mem::take(&mut func.body);
        let mut parts = HashMap::new();
        for_loads(&mut body, &mut |dst, column, row, out| {
            let found = program.strides.iter().find_map(|stride| match *stride {
                UniformStride::Arrays { column: of, start, step, length } if of == column => {
                    Some([start, step, length])
                }
                _ => None,
            });
            let Some(params) = found else { return false };
            let is_id = func.ty(row) == Scalar::I32;
            let mut at = |op, args: &[Operand]| -> Operand { number(func, out, op, args).into() };
            let [start, step, length] = params.map(|param| match program.params[param.index()].range {
                Some((only, last)) if only == last => Operand::I64(only),
                _ => at(Op::Param(param), &[]),
            });
            let row = if is_id { at(Op::Widen, &[row]) } else { row };
            let away = at(Op::Mul, &[row, step]);
            let offset = at(Op::Add, &[start, away]);
            let shifted = at(Op::Shl, &[offset, Operand::I64(HALF)]);
            out.push(Stmt::Let { dst, op: Op::Or, args: vec![shifted, length] });
            parts.insert(dst, (offset, length));
            true
        });
        // a register that is assigned once has one place and one length wherever it is read
        parts.retain(|word, _| counts.assigned(*word) == 1);
        walk_mut(&mut body, &mut |stmt| take_apart(stmt, &parts));
        func.body = body;
    }
    program
}

fn elements(mut program: Program) -> Program {
    let of_elements = |column: &Column| column.space == Space::Element;
    compute(&mut program, of_elements);
    let columns: Vec<ColumnId> =
        program.strides.iter().filter(|stride| stride.is_of_references()).map(|stride| stride.column()).collect();
    for column in columns {
        let column = &mut program.columns[column.index()];
        column.read &= !of_elements(column);
    }
    program
}

/// The program with all references of uniform stride computed instead of loaded.
pub fn references(mut program: Program) -> Program {
    compute(&mut program, |_| true);
    program
}

/// The registers into which a function loads references with a uniform stride.
pub fn loaded(program: &Program, func: &Func) -> HashSet<VarId> {
    let mut found = HashSet::new();
    walk(&func.body, &mut |stmt| {
        if let Stmt::Load { dst, column, .. } = stmt
            && first(program, *column).is_some()
        {
            found.insert(*dst);
        }
    });
    found
}

/// Computes the references of some columns.
fn compute(program: &mut Program, of: impl Fn(&Column) -> bool) {
    let mut funcs = std::mem::take(&mut program.funcs);
    for func in &mut funcs {
        let mut body = std::mem::take(&mut func.body);
        let mut head = Vec::new();
        let mut starts: HashMap<ColumnId, Operand> = HashMap::new();
        for_loads(&mut body, &mut |dst, column, row, out| {
            let Some(start) = first(program, column).filter(|_| of(&program.columns[column.index()])) else {
                return false;
            };
            // the start is read before all loops
            let start = *starts.entry(column).or_insert_with(|| number(func, &mut head, Op::Param(start), &[]).into());
            let reference = number(func, out, Op::Add, &[start, row]);
            out.push(Stmt::Let { dst, op: Op::Narrow, args: vec![reference.into()] });
            true
        });
        head.append(&mut body);
        func.body = head;
    }
    program.funcs = funcs;
}

/// For a column of references with a uniform stride, the parameter that holds the first reference.
fn first(program: &Program, column: ColumnId) -> Option<ParamId> {
    program.strides.iter().find_map(|stride| match *stride {
        UniformStride::References { column: of, start } if of == column => Some(start),
        _ => None,
    })
}

/// A new register, for an I64.
fn number(func: &mut Func, out: &mut Vec<Stmt>, op: Op, args: &[Operand]) -> VarId {
    func.vars.push(Var { ty: Scalar::I64, name: None });
    let dst = VarId::new(func.vars.len() - 1);
    out.push(Stmt::Let { dst, op, args: args.to_vec() });
    dst
}

/// Replaces loads. `found` returns false for a load that stays.
fn for_loads(body: &mut Vec<Stmt>, found: &mut impl FnMut(VarId, ColumnId, Operand, &mut Vec<Stmt>) -> bool) {
    let mut out = Vec::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        stmt.bodies_mut().into_iter().flatten().for_each(|body| for_loads(body, found));
        let done = matches!(stmt, Stmt::Load { dst, column, row } if found(dst, column, row, &mut out));
        if !done {
            out.push(stmt);
        }
    }
    *body = out;
}

/// By the register that holds an array's word: where the array begins, and how long it is.
type Parts = HashMap<VarId, (Operand, Operand)>;

/// Replaces an operation that takes a loaded word apart by the known part.
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
    use super::{ELEMENTS, HALF, LENGTH, PASS, loaded, references};
    use crate::id::ArrayKind;
    use crate::ir::testing::{INPUT, INTS, OUT, REFS, SPEED, program};
    use crate::ir::{Op, Operand, Param, ParamId, Program, Scalar, Space, Stmt, UniformStride, VarId};
    use crate::passes::testing::after;
    use crate::passes::{dce, gvn};

    #[test]
    fn arrays_with_a_uniform_stride_are_not_looked_up() {
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
        program.strides.push(UniformStride::Arrays { column: INPUT, start, step, length });
        program.columns[INPUT.index()].written = false;
        let text = |program| after(&[PASS, gvn::PASS, dce::PASS], program);
        let found = text(program.clone());
        assert!(!found.contains("load in[") && !found.contains("shl"), "{found}");
        assert!(found.contains("= sub") && found.contains("= mul job.0"), "{found}");
        // a use of the whole word gets the word
        let whole = Stmt::Store { column: INTS, row: Operand::I64(0), value: VarId(4).into() };
        program.funcs[0].body.push(whole);
        let found = text(program);
        assert!(!found.contains("load in[") && found.contains("shl"), "{found}");
    }
    #[test]
    fn references_to_rows_that_follow_each_other_are_counted() {
        let mut program = program(|b, index| {
            let at = b.i64(Op::And, &[index, Operand::I64(3)]);
            let car = b.load(Scalar::I32, REFS, at);
            let speed = b.load(Scalar::F64, SPEED, car);
            b.store(OUT, index, speed);
        });
        program.params.push(Param::new("first", Scalar::I64));
        let start = ParamId::new(program.params.len() - 1);
        program.strides.push(UniformStride::References { column: REFS, start });
        let refs = &mut program.columns[REFS.index()];
        (refs.written, refs.refers) = (false, Some(Space::Class { hierarchy: 0, first: 0, last: 2 }));
        let computed = |program: &Program| program.to_string();
        assert_eq!(loaded(&program, &program.funcs[0]).len(), 1);
        let text = computed(&references(program.clone()));
        assert!(
            !text.contains("load refs[") && text.contains("= narrow") && text.contains("load Car@speed["),
            "{text}"
        );
        // elements are determined by their space, and are not read any more
        let elements = (ELEMENTS.run)(program.clone());
        assert!(!computed(&elements).contains("load refs[") && !elements.columns[REFS.index()].read);
        program.columns[REFS.index()].space = Space::Array(ArrayKind(0));
        let arrays = (ELEMENTS.run)(program);
        assert!(computed(&arrays).contains("load refs[") && arrays.columns[REFS.index()].read);
    }
}
