//! Sums in rows of the element's own: an atomic operation on a row that no other element touches is a plain one.
//!
//! `counts[x] += 1` may add to a row to which other elements add, too, so lowering makes it an atomic operation. In
//! `result[i] += x` with `i` from `(0...n).peach { |i| … }`, each element has a row of its own. The pass then makes it
//! a load, an addition and a store, which [`super::register_promotion`] keeps in a register while a loop runs.
//!
//! Fires for a column whose every access has one row: the element's index plus what is the same in all elements
//! ([`rows`]). Two elements then never touch the same row. Their ticks may still be fused, for the same reason. Where
//! the references to elements follow each other ([`UniformStride::References`]), an object is such a row, too.

use super::Pass;
use super::loops::Counts;
use crate::ir::{
    AtomicOp, CheckedOp, ColumnId, Ctx, Func, Op, Operand, Program, Scalar, Stmt, UniformStride, Var, VarId, walk,
};
use std::collections::HashMap;

pub const PASS: Pass = Pass { name: "owned_sums", description: "sums that only one element adds to are plain", run };

fn run(mut program: Program) -> Program {
    let mut atomic = false;
    walk(&program.funcs[program.entry.index()].body, &mut |s| atomic |= matches!(s, Stmt::Atomic { .. }));
    if !atomic {
        return program;
    }
    let owned = columns(&program);
    let entry = program.entry.index();
    let func = &mut program.funcs[entry];
    let mut body = std::mem::take(&mut func.body);
    list(&mut body, func, &owned);
    func.body = body;
    program
}

/// By column: whether each element has a row of its own, which is the only one that it touches.
pub fn columns(program: &Program) -> Vec<bool> {
    /// The accesses of a column seen so far.
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        None,
        Only(Operand),
        Other,
    }
    let entry = &program.funcs[program.entry.index()];
    let rows = rows(entry, &program.strides);
    let mut seen = vec![Seen::None; program.columns.len()];
    for (at, func) in program.funcs.iter().enumerate() {
        walk(&func.body, &mut |s| {
            let (column, row) = match s {
                Stmt::Load { column, row, .. } | Stmt::Store { column, row, .. } | Stmt::Atomic { column, row, .. } => {
                    (*column, *row)
                }
                Stmt::FetchAdd { column, .. } => (*column, Operand::Bool(false)),
                _ => return,
            };
            let own = at == program.entry.index() && matches!(row, Operand::Var(v) if rows[v.index()]);
            let seen = &mut seen[column.index()];
            *seen = match *seen {
                Seen::None if own => Seen::Only(row),
                Seen::Only(only) if only == row => *seen,
                _ => Seen::Other,
            };
        });
    }
    // the program moves these along by `Alloc`
    let taken = program.heaps.iter().map(|heap| heap.taken);
    taken.for_each(|column| seen[column.index()] = Seen::Other);
    seen.into_iter().map(|seen| matches!(seen, Seen::Only(_))).collect()
}

/// By register of the entry: whether it is the element's index plus something that is the same in all elements.
fn rows(func: &Func, strides: &[UniformStride]) -> Vec<bool> {
    // the row of such a reference, plus what is the same for all
    let follows = |column: &ColumnId| strides.iter().any(|s| s.is_of_references() && s.column() == *column);
    let counts = Counts::of(func);
    let once = |v: VarId| counts.assigned(v) == 1;
    let mut index = Vec::new();
    let mut lets: HashMap<VarId, (Op, Vec<Operand>)> = HashMap::new();
    walk(&func.body, &mut |s| match s {
        Stmt::Begin { index: Operand::Var(v), .. } if !index.contains(v) => index.push(*v),
        Stmt::Let { dst, op, args } if once(*dst) => drop(lets.insert(*dst, (*op, args.clone()))),
        Stmt::Load { dst, column, row } if once(*dst) && follows(column) => {
            lets.insert(*dst, (Op::Copy, vec![*row]));
        }
        _ => {}
    });
    // a job may be several elements, and then the register is another index in turn
    let mut own = vec![false; func.vars.len()];
    if let [index] = index[..]
        && once(index)
    {
        own[index.index()] = true;
    }
    let uniform = |operand: &Operand| match operand {
        Operand::Var(v) => matches!(lets.get(v), Some((Op::Param(_), _))),
        _ => true,
    };
    // a register is assigned after what it is made of, but its number may be smaller
    let mut grows = true;
    while grows {
        grows = false;
        for (dst, (op, args)) in &lets {
            let of = |operand: &Operand| matches!(operand, Operand::Var(v) if own[v.index()]);
            let is = match (op, &args[..]) {
                (Op::Ctx(Ctx::Index), _) => true,
                (Op::Copy, [a]) => of(a),
                (Op::Add, [a, b]) => of(a) && uniform(b) || of(b) && uniform(a),
                (Op::Sub, [a, b]) => of(a) && uniform(b),
                _ => false,
            };
            if is && !own[dst.index()] {
                own[dst.index()] = true;
                grows = true;
            }
        }
    }
    own
}

fn list(body: &mut Vec<Stmt>, func: &mut Func, owned: &[bool]) {
    let mut out = Vec::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        for nested in stmt.bodies_mut().into_iter().flatten() {
            list(nested, func, owned);
        }
        match stmt {
            Stmt::Atomic { op, column, row, value, site } if owned[column.index()] => {
                plain(&mut out, func, (op, column, row), value, site);
            }
            _ => out.push(stmt),
        }
    }
    *body = out;
}

/// An atomic operation in single steps.
fn plain(
    out: &mut Vec<Stmt>,
    func: &mut Func,
    (op, column, row): (AtomicOp, ColumnId, Operand),
    value: Operand,
    site: Option<crate::ir::SiteId>,
) {
    let ty = if op == AtomicOp::FAdd { Scalar::F64 } else { Scalar::I64 };
    let mut register = |ty| {
        func.vars.push(Var { ty, name: None });
        VarId::new(func.vars.len() - 1)
    };
    let (old, new) = (register(ty), register(ty));
    out.push(Stmt::Load { dst: old, column, row });
    let args = vec![old.into(), value];
    let mut extreme = |cmp| {
        let keeps = register(Scalar::Bool);
        out.push(Stmt::Let { dst: keeps, op: Op::ICmp(cmp), args: args.clone() });
        Stmt::Let { dst: new, op: Op::Select, args: vec![keeps.into(), old.into(), value] }
    };
    let step = match (op, site) {
        (AtomicOp::Add, Some(site)) => Stmt::Checked { dst: new, op: CheckedOp::Add, args: [old.into(), value], site },
        (AtomicOp::Min, _) => extreme(crate::ir::Cmp::Le),
        (AtomicOp::Max, _) => extreme(crate::ir::Cmp::Ge),
        (AtomicOp::Add, None) => Stmt::Let { dst: new, op: Op::Add, args },
        (AtomicOp::FAdd, _) => Stmt::Let { dst: new, op: Op::FAdd, args },
        (AtomicOp::And, _) => Stmt::Let { dst: new, op: Op::And, args },
        (AtomicOp::Or, _) => Stmt::Let { dst: new, op: Op::Or, args },
        (AtomicOp::Xor, _) => Stmt::Let { dst: new, op: Op::Xor, args },
    };
    out.push(step);
    out.push(Stmt::Store { column, row, value: new.into() });
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, INTS, OUT, OVERFLOW, heaps, program};
    use crate::ir::{AtomicOp, ColumnId, Op, Operand, ParamId, Program, Scalar, SiteId, Stmt};
    use crate::passes::testing::after;

    fn add(b: &mut Builder, op: AtomicOp, (column, row): (ColumnId, Operand), site: Option<SiteId>) {
        let value = if op == AtomicOp::FAdd { Operand::float(0.5) } else { Operand::I64(1) };
        b.push(Stmt::Atomic { op, column, row, value, site });
    }

    fn check(program: Program) -> String {
        after(&[PASS], program)
    }

    #[test]
    fn a_row_of_the_elements_own_is_added_to_plainly() {
        insta::assert_snapshot!(check(program(|b, index| {
            add(b, AtomicOp::FAdd, (OUT, index), None);
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let row = b.i64(Op::Add, &[index, n]);
            add(b, AtomicOp::Add, (INTS, row), Some(OVERFLOW));
            add(b, AtomicOp::Max, (INPUT, index), None);
        })), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v6: f64 = load out[v3]
          v7: f64 = fadd v6, 0.5
          store out[v3] = v7
          v4: i64 = param p0 "n"
          v5: i64 = add v3, v4
          v8: i64 = load ints[v5]
          v9: i64 = checked add v8, 1 else s0
          store ints[v5] = v9
          v10: i64 = load in[v3]
          v12: bool = icmp.ge v10, 1
          v11: i64 = select v12, v10, 1
          store in[v3] = v11
        }
        "#);
    }

    #[test]
    fn what_others_may_touch_stays_atomic() {
        let stays = |program: Program| assert_eq!(check(program.clone()), after(&[], program));
        stays(program(|b, index| {
            add(b, AtomicOp::Add, (INTS, index), None);
            let next = b.i64(Op::Add, &[index, Operand::I64(1)]);
            b.load(Scalar::I64, INTS, next);
        }));
        stays(program(|b, index| {
            let row = b.load(Scalar::I64, INPUT, index);
            add(b, AtomicOp::Add, (INTS, row), None);
        }));
        stays(program(|b, index| {
            let row = b.i64(Op::Shr, &[index, Operand::I64(1)]);
            add(b, AtomicOp::Add, (INTS, row), None);
        }));
    }

    #[test]
    fn counters_of_heaps_are_no_rows_of_elements() {
        let mut program = program(|b, index| add(b, AtomicOp::Add, (ColumnId(6), index), None));
        heaps(&mut program);
        assert!(check(program).contains("atomic add"));
    }
}
