//! Software pipelining of loads: a loop loads what its next repetition needs while this repetition computes.
//!
//! A thread of a GPU waits where it needs the result of a load. For straight bodies, the GPU's compiler unrolls loops
//! and overlaps the loads of several repetitions. Roots, divisions and branches keep it from doing so. For such bodies,
//! `loop { x = load c[i]; …; i += 1; break if i >= n }` becomes
//!
//! ```text
//! next = load c[i]; loop { x = next; next = load c[min(i + 1, n - 1)]; …; i += 1; break if i >= n }
//! ```
//!
//! If one load gives the row of another, the first runs one more repetition ahead, so that neither waits for the other.
//! The new loop loads all that the old one loaded, once more at its end, and nothing else. This holds because each
//! repetition begins unless the one before left the loop. So the test at the end must be the only exit, and nothing in
//! the body may raise.
//!
//! A load in a branch moves along if its row surely exists in the column, whatever the branch's condition says. Columns
//! that the loop writes stay where they are. From here on, references with a uniform stride are computed instead of
//! loaded. Only in [`super::CUDA`]: other processors overlap loads by themselves.

use super::loops::{Counting, Counts, References, assigned_in, completes, is_movable};
use super::uniform_stride;
use super::{LoopVersions, Pass, Versioned};
use crate::ir::visit::walk_mut;
use crate::ir::{Cmp, Column, ColumnId, Func, FuncId, LabelId, Op, Operand, Program, Scalar, Stmt, Var, VarId, walk};
use std::collections::{HashMap, HashSet};

pub const PASS: Pass<Versioned> = Pass {
    name: "load_pipelining",
    description: "loops load for the next repetition",
    run: |state| Versioned { program: load_pipelining(state.program, &state.versions), versions: state.versions },
};

/// The most registers that hold values loaded ahead. Each is live through the whole loop.
const MAX_LOADS: usize = 8;
/// The most statements that compute rows to load ahead.
const MAX_STATEMENTS: usize = 24;

/// Compilers turn a branch with at most this many assignments into selects.
const MAX_SELECTED: usize = 4;

/// The program, for processors that wait at loads. `versions`: the loops that exist twice. Compilers optimise the
/// versions without branches themselves, and the versions that rarely run stay as they are.
pub fn load_pipelining(program: Program, versions: &[LoopVersions]) -> Program {
    // found before references are computed: the registers into which references are loaded, whose rows surely exist
    let known: Vec<_> = program
        .funcs
        .iter()
        .map(|func| (References::of(func, &program.columns), uniform_stride::loaded(&program, func)))
        .collect();
    let mut program = uniform_stride::references(program);
    for ((i, func), (references, computed)) in program.funcs.iter_mut().enumerate().zip(known) {
        let mut body = std::mem::take(&mut func.body);
        let mut loops = false;
        walk(&body, &mut |s| loops |= matches!(s, Stmt::Loop { .. }));
        if loops {
            func.body = body;
            let counts = Counts::of(func);
            let versions = versions.iter().filter(|pair| pair.func == FuncId::new(i));
            let left =
                versions.flat_map(|pair| [pair.floats.then_some(pair.fast), Some(pair.exact)]).flatten().collect();
            body = std::mem::take(&mut func.body);
            let looked = Looked {
                counts,
                reads: reads(&body, func.vars.len()),
                references,
                computed,
                columns: &program.columns,
                left,
            };
            list(&looked, func, &mut body);
        }
        func.body = body;
    }
    program
}

/// What is known of a function before the pass changes it.
struct Looked<'a> {
    counts: Counts,
    /// How often each register is read.
    reads: Vec<u32>,
    references: References,
    /// References that are computed instead of loaded.
    computed: HashSet<VarId>,
    columns: &'a [Column],
    /// Loops that stay as they are.
    left: HashSet<LabelId>,
}

fn reads(body: &[Stmt], vars: usize) -> Vec<u32> {
    let mut reads = vec![0; vars];
    walk(body, &mut |stmt| {
        stmt.reads(|operand| {
            if let Operand::Var(v) = operand {
                reads[v.index()] += 1
            }
        })
    });
    reads
}

fn list(looked: &Looked<'_>, func: &mut Func, body: &mut Vec<Stmt>) {
    let mut out = Vec::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        if stmt.label().is_some_and(|label| looked.left.contains(&label)) {
            out.push(stmt);
            continue;
        }
        let found = Counting::of(&stmt, false).filter(|(_, repeated)| repeated.iter().all(|s| completes(s, &[])));
        match found.and_then(|(counting, repeated)| Some((slice(looked, repeated, counting.i)?, counting))) {
            Some((slice, counting)) => load_ahead(looked, func, &mut stmt, slice, counting, &mut out),
            None => stmt.bodies_mut().into_iter().flatten().for_each(|body| list(looked, func, body)),
        }
        out.push(stmt);
    }
    *body = out;
}

impl Counting {
    /// The count in the repetition after the one in which it is `from`. After the last repetition, the same count
    /// again.
    fn after(&self, func: &mut Func, from: VarId, out: &mut Vec<Stmt>) -> VarId {
        let mut new = |ty| {
            func.vars.push(Var { ty, name: None });
            VarId::new(func.vars.len() - 1)
        };
        let (next, more, at) = (new(Scalar::I64), new(Scalar::Bool), new(Scalar::I64));
        out.extend([
            Stmt::Let { dst: next, op: Op::Add, args: vec![from.into(), Operand::I64(self.step)] },
            Stmt::Let { dst: more, op: Op::ICmp(Cmp::Lt), args: vec![next.into(), self.end] },
            Stmt::Let { dst: at, op: Op::Select, args: vec![more.into(), next.into(), from.into()] },
        ]);
        at
    }
}

/// What a loop loads at rows that its count determines, and the computation of these rows, in order. None: it is not
/// worth it.
fn slice(looked: &Looked<'_>, inner: &[Stmt], i: VarId) -> Option<Vec<Stmt>> {
    let mut written = HashSet::new();
    walk(inner, &mut |s| {
        if let Stmt::Store { column, .. } | Stmt::Atomic { column, .. } | Stmt::FetchAdd { column, .. } = s {
            written.insert(*column);
        }
    });
    let mut finder =
        Finder { looked, written, varies: assigned_in(inner), told: HashSet::from([i]), found: Vec::new() };
    finder.list(inner, false);
    // a computation whose row no load uses stays where it is
    let mut needed: HashSet<VarId> = HashSet::new();
    let mut slice: Vec<Stmt> = Vec::new();
    for stmt in finder.found.into_iter().rev() {
        if matches!(stmt, Stmt::Load { .. }) || stmt.assigns().iter().any(|v| needed.contains(v)) {
            stmt.reads(|operand| {
                if let Operand::Var(v) = operand {
                    needed.extend([v])
                }
            });
            slice.push(stmt);
        }
    }
    slice.reverse();
    let loads = slice.iter().filter(|s| matches!(s, Stmt::Load { .. })).count();
    let rest = inner.iter().filter(|s| !slice.contains(s));
    let waits = rest.clone().any(holds_up);
    ((1..=MAX_LOADS).contains(&loads) && slice.len() <= MAX_STATEMENTS && waits).then_some(slice)
}

/// Whether compilers do not move loads across the statement: it branches, or an operation in it does.
fn holds_up(stmt: &Stmt) -> bool {
    match stmt {
        // compilers make a few assignments without a branch
        Stmt::If { then, otherwise, .. } => {
            let assigns = |s: &Stmt| matches!(s, Stmt::Let { .. }) && !holds_up(s);
            then.len() + otherwise.len() > MAX_SELECTED || !then.iter().chain(otherwise).all(assigns)
        }
        Stmt::Block { .. } => true,
        Stmt::Let { op, .. } => matches!(
            op,
            Op::FDiv
                | Op::FSqrt
                | Op::FRem
                | Op::Math(_)
                | Op::Div
                | Op::Rem
                | Op::UDiv
                | Op::URem
                | Op::MulMod
                | Op::AddMod
        ),
        _ => false,
    }
}

struct Finder<'a> {
    looked: &'a Looked<'a>,
    written: HashSet<ColumnId>,
    /// The registers that the body assigns.
    varies: HashSet<VarId>,
    /// The registers that the count determines.
    told: HashSet<VarId>,
    found: Vec<Stmt>,
}

impl Finder<'_> {
    /// `guarded`: the list is in a branch whose condition may decide whether a row exists.
    fn list(&mut self, body: &[Stmt], guarded: bool) {
        for stmt in body {
            match stmt {
                // in a branch, a computed reference may not be a row
                Stmt::Let { dst, .. } if guarded && self.looked.computed.contains(dst) => {}
                Stmt::Let { dst, op, args } if is_safe(*op, args) && self.follows(*dst, args) => self.take(*dst, stmt),
                Stmt::Load { dst, column, row } if !self.written.contains(column) && self.follows(*dst, &[*row]) => {
                    let space = self.looked.columns[column.index()].space;
                    if !guarded || self.looked.references.is_in(*row, space) {
                        self.take(*dst, stmt);
                    }
                }
                // branches nested deeper run too rarely to be worth it
                Stmt::If { then, otherwise, .. } if !guarded => {
                    self.list(then, true);
                    self.list(otherwise, true);
                }
                _ => {}
            }
        }
    }

    fn take(&mut self, dst: VarId, stmt: &Stmt) {
        self.told.insert(dst);
        self.found.push(stmt.clone());
    }

    /// Whether the register has one value in a repetition, which the count determines.
    fn follows(&self, dst: VarId, operands: &[Operand]) -> bool {
        let told = |o: &Operand| matches!(o, Operand::Var(v) if self.told.contains(v));
        let known = |o: &Operand| told(o) || !matches!(o, Operand::Var(v) if self.varies.contains(v));
        self.looked.counts.assigned(dst) == 1 && operands.iter().all(known) && operands.iter().any(told)
    }
}

/// Whether the operation may run where the program would not run it.
fn is_safe(op: Op, args: &[Operand]) -> bool {
    let shifts = matches!(op, Op::Shl | Op::Shr | Op::UShr) && matches!(args[1], Operand::I64(0..=63));
    shifts || is_movable(op)
}

fn load_ahead(
    looked: &Looked<'_>,
    func: &mut Func,
    stmt: &mut Stmt,
    slice: Vec<Stmt>,
    counting: Counting,
    out: &mut Vec<Stmt>,
) {
    let Stmt::Loop { body, .. } = stmt else { return };
    let i = counting.i;
    let own: Vec<VarId> = slice.iter().flat_map(|s| s.assigns().to_vec()).collect();
    // the other loads only give rows
    let within = reads(&slice, looked.reads.len());
    let wanted: Vec<VarId> = own.iter().copied().filter(|v| looked.reads[v.index()] > within[v.index()]).collect();
    let (rows, fields) = stages(slice);
    let mut next = Names::new(func, &own);
    let copies = |to: &[VarId], names: &Names| -> Vec<Stmt> {
        let copy = |v: &VarId| Stmt::Let { dst: *v, op: Op::Copy, args: vec![names.of(*v).into()] };
        to.iter().map(copy).collect()
    };
    out.extend(next.renamed(&rows));
    out.extend(next.renamed(&fields));
    let mut repeated: Vec<Stmt> = copies(&wanted, &next);
    if fields.is_empty() {
        let at = counting.after(func, i, &mut repeated);
        next.0.insert(i, at);
        repeated.extend(next.renamed(&rows));
    } else {
        // the loads of the second stage use what the repetition before has loaded
        let first = counting.after(func, i, out);
        let told: Vec<VarId> = rows.iter().flat_map(|s| s.assigns().to_vec()).collect();
        let at = counting.after(func, i, &mut repeated);
        let behind = counting.after(func, at, &mut repeated);
        let mut second = Names::new(func, &told);
        second.0.insert(i, first);
        out.extend(second.renamed(&rows));
        let moved = told.iter().map(|v| (*v, next.of(*v)));
        repeated.extend(moved.map(|(v, to)| Stmt::Let { dst: to, op: Op::Copy, args: vec![second.of(v).into()] }));
        next.0.insert(i, at);
        repeated.extend(next.renamed(&fields));
        second.0.insert(i, behind);
        repeated.extend(second.renamed(&rows));
    }
    let mut rest = std::mem::take(body);
    remove(&mut rest, &own);
    repeated.append(&mut rest);
    *body = repeated;
}

/// Splits a slice: statements that depend on no load, with the loads they lead to; and statements that depend on these
/// loads.
fn stages(slice: Vec<Stmt>) -> (Vec<Stmt>, Vec<Stmt>) {
    let mut loaded: HashSet<VarId> = HashSet::new();
    slice.into_iter().partition(|stmt| {
        let mut first = true;
        stmt.reads(|operand| first &= !matches!(operand, Operand::Var(v) if loaded.contains(&v)));
        if !first || matches!(stmt, Stmt::Load { .. }) {
            loaded.extend(stmt.assigns());
        }
        first
    })
}

/// Registers that stand for others in a repetition ahead.
struct Names(HashMap<VarId, VarId>);

impl Names {
    fn new(func: &mut Func, of: &[VarId]) -> Self {
        let mut names = HashMap::new();
        for v in of {
            func.vars.push(Var { ty: func.vars[v.index()].ty, name: None });
            names.insert(*v, VarId::new(func.vars.len() - 1));
        }
        Self(names)
    }
    fn of(&self, v: VarId) -> VarId {
        self.0.get(&v).copied().unwrap_or(v)
    }
    fn renamed(&self, stmts: &[Stmt]) -> Vec<Stmt> {
        let mut stmts = stmts.to_vec();
        for stmt in &mut stmts {
            stmt.reads_mut(|operand| {
                if let Operand::Var(v) = operand {
                    *v = self.of(*v);
                }
            });
            stmt.assigns_mut().iter_mut().for_each(|v| *v = self.of(*v));
        }
        stmts
    }
}

/// Removes the statements that assign these registers.
fn remove(body: &mut Vec<Stmt>, assigned: &[VarId]) {
    let taken = |s: &Stmt| s.assigns().iter().any(|v| assigned.contains(v));
    body.retain(|s| !taken(s));
    walk_mut(body, &mut |s| s.bodies_mut().into_iter().flatten().for_each(|body| body.retain(|s| !taken(s))));
}

#[cfg(test)]
mod tests {
    use super::load_pipelining;
    use crate::ir::build::Builder;
    use crate::ir::testing::{DOMAIN, INPUT, OUT, REFS, SPEED, program, turned};
    use crate::ir::{Cmp, Op, Operand, ParamId, Program, Scalar, Space, Stmt, verify};

    /// `sum = 0.0; i = 0; begin sum += body; i += 1 end while i < n; out[index] = sum`
    fn summed(body: impl Fn(&mut Builder, Operand) -> Operand) -> Program {
        let mut program = program(|b, index| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let (i, sum) = (b.var(Scalar::I64, Some("i".into())), b.var(Scalar::F64, Some("sum".into())));
            b.set(i, Operand::I64(0));
            b.set(sum, Operand::float(0.0));
            turned(b, (i, 1, n), false, |b, _| {
                let x = body(b, i.into());
                b.push(Stmt::Let { dst: sum, op: Op::FAdd, args: vec![sum.into(), x] });
            });
            b.store(OUT, index, sum.into());
        });
        program.columns[REFS.index()].refers = Some(Space::Class { hierarchy: 0, first: 0, last: 1 });
        program
    }

    fn speed(b: &mut Builder, i: Operand) -> Operand {
        let id = b.load(Scalar::I32, REFS, i);
        b.load(Scalar::F64, SPEED, id)
    }

    fn is_left(program: Program) -> bool {
        load_pipelining(program.clone(), &[]) == program
    }

    #[test]
    fn what_a_root_is_computed_of_is_loaded_one_repetition_before() {
        let program = load_pipelining(
            summed(|b, i| {
                let speed = speed(b, i);
                b.f64(Op::FSqrt, &[speed])
            }),
            &[],
        );
        verify::verify(&program).expect("a program in order");
        let text = program.to_string();
        insta::assert_snapshot!(&text[text.find("entry func").expect("an entry")..], @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = param p0 "n"
          i.5: i64 = copy 0
          sum.6: f64 = copy 0.0
          v11: i32 = load refs[i.5]
          v12: f64 = load Car@speed[v11]
          v13: i64 = add i.5, 1
          v14: bool = icmp.lt v13, v4
          v15: i64 = select v14, v13, i.5
          v22: i32 = load refs[v15]
          loop L0 {
            v8: f64 = copy v12
            v16: i64 = add i.5, 1
            v17: bool = icmp.lt v16, v4
            v18: i64 = select v17, v16, i.5
            v19: i64 = add v18, 1
            v20: bool = icmp.lt v19, v4
            v21: i64 = select v20, v19, v18
            v11 = copy v22
            v12 = load Car@speed[v11]
            v22 = load refs[v21]
            v9: f64 = fsqrt v8
            sum.6 = fadd sum.6, v9
            i.5 = add i.5, 1
            v10: bool = icmp.ge i.5, v4
            if v10 {
              break L0
            }
          }
          store out[v3] = sum.6
        }
        "#);
    }

    #[test]
    fn straight_bodies_are_left_to_the_compiler() {
        assert!(is_left(summed(speed)));
    }

    #[test]
    fn nothing_is_loaded_ahead_of_what_may_raise_or_of_what_is_written() {
        assert!(is_left(summed(|b, i| {
            let speed = speed(b, i);
            let wrong = b.fcmp(Cmp::Lt, speed, Operand::float(0.0));
            b.trap_if(wrong, DOMAIN, vec![i]);
            b.f64(Op::FSqrt, &[speed])
        })));
        assert!(is_left(summed(|b, i| {
            let bits = b.load(Scalar::I64, INPUT, i);
            let x = b.f64(Op::FloatFromBits, &[bits]);
            let root = b.f64(Op::FSqrt, &[x]);
            b.store(INPUT, i, bits);
            root
        })));
    }

    /// `x = sqrt(2.0); if bits(i) > 0 { x = body(i) }; x`
    fn in_a_branch(body: impl Fn(&mut Builder, Operand) -> Operand) -> Program {
        summed(|b, i| {
            let x = b.temp(Scalar::F64);
            b.set(x, Operand::float(2.0));
            let bits = b.load(Scalar::I64, INPUT, i);
            let some = b.icmp(Cmp::Gt, bits, Operand::I64(0));
            let id = b.load(Scalar::I32, REFS, i);
            b.when(some, |b| {
                let value = body(b, id);
                b.set(x, value);
            });
            x.into()
        })
    }

    #[test]
    fn in_a_branch_only_rows_that_are_there_for_certain_are_loaded_ahead() {
        let loads_in_loop = |program: Program| {
            let text = load_pipelining(program, &[]).to_string();
            let (_, behind) = text.split_once("loop").expect("a loop");
            let (ahead, rest) = behind.split_once("if ").expect("the branch");
            (ahead.matches("= load").count(), rest.matches("= load").count())
        };
        // the id is one of an object, so its speed exists
        assert_eq!(loads_in_loop(in_a_branch(|b, id| b.load(Scalar::F64, SPEED, id))), (3, 0));
        // the condition may have decided whether such a row exists
        let by_row = in_a_branch(|b, id| {
            let row = b.i64(Op::Widen, &[id]);
            b.load(Scalar::F64, OUT, row)
        });
        assert_eq!(loads_in_loop(by_row), (2, 1));
    }
}
