//! If-conversion of conditions: a branch that only computes a truth value becomes the operations that compute it.
//!
//! `around == 3 || (around == 2 && @alive)` is lowered to branches, each of which leads to one assignment.
//! [`super::jump_threading`] handles values that are branched upon. If the value is stored or passed on instead, the
//! branches cost what their mispredictions cost, and a comparison is cheaper than a misprediction. So the pass computes
//! both sides and selects one value.
//!
//! Fires where both sides of a branch only assign truth values, and do little: they compare, combine, and load bytes.
//! The loaded rows must exist in any case, which holds for a register that only ever holds ids out of columns that
//! refer to their space. Loads of wider fields stay in their branch, since they would bring data from memory that the
//! program may not need.

use super::Pass;
use super::loops::{References, assigned_in, is_read};
use crate::ir::{Column, Func, Op, Operand, Program, Scalar, Stmt, Var, VarId, walk};
use std::collections::BTreeMap;

pub const PASS: Pass = Pass { name: "if_convert", description: "truth values are computed, not branched for", run };

/// Statements, at most, that both sides may compute, copies not counted.
const MAX_STATEMENTS: usize = 6;

fn run(mut program: Program) -> Program {
    for func in &mut program.funcs {
        let references = References::of(func, &program.columns);
        let mut reads = vec![0; func.vars.len()];
        count(&func.body, &mut reads, 1);
        let mut body = std::mem::take(&mut func.body);
        Truths { func, columns: &program.columns, references, reads }.list(&mut body);
        func.body = body;
    }
    program
}

fn count(body: &[Stmt], reads: &mut Vec<i64>, by: i64) {
    walk(body, &mut |stmt| {
        stmt.reads(|operand| {
            if let Operand::Var(v) = operand {
                reads.resize(reads.len().max(v.index() + 1), 0);
                reads[v.index()] += by;
            }
        });
    });
}

struct Truths<'a> {
    func: &'a mut Func,
    columns: &'a [Column],
    references: References,
    /// How often each register is read.
    reads: Vec<i64>,
}

impl Truths<'_> {
    fn list(&mut self, body: &mut Vec<Stmt>) {
        for mut stmt in std::mem::take(body) {
            stmt.bodies_mut().into_iter().flatten().for_each(|nested| self.list(nested));
            match self.computed(&stmt) {
                Some(computed) => {
                    count(std::slice::from_ref(&stmt), &mut self.reads, -1);
                    count(&computed, &mut self.reads, 1);
                    body.extend(computed);
                }
                None => body.push(stmt),
            }
        }
    }

    /// The statements that replace a branch.
    fn computed(&mut self, stmt: &Stmt) -> Option<Vec<Stmt>> {
        let Stmt::If { cond, then, otherwise } = stmt else { return None };
        let computes = |s: &&Stmt| !matches!(s, Stmt::Let { op: Op::Copy, .. });
        let little = then.iter().chain(otherwise).filter(computes).count() <= MAX_STATEMENTS;
        let assigned = assigned_in(std::slice::from_ref(stmt));
        // A register that is read before it is assigned may have its value from an earlier repetition.
        let looks_back = |side: &[Stmt]| {
            (0..side.len()).any(|at| {
                let own = assigned_in(&side[..at]);
                assigned.iter().any(|dst| !own.contains(dst) && is_read(&side[at..=at], *dst))
            })
        };
        let decides = assigned.iter().any(|dst| *cond == (*dst).into());
        let fits = little && !decides && !looks_back(then) && !looks_back(otherwise);
        if !fits || !then.iter().chain(otherwise).all(|s| self.is_truth(s)) {
            return None;
        }
        let before = self.func.vars.len();
        let mut out = Vec::new();
        let found = [then, otherwise].map(|side| self.side(side, &mut out));
        let chosen = self.chosen(stmt, *cond, &found);
        match chosen {
            Some(chosen) => out.extend(chosen),
            None => {
                self.func.vars.truncate(before);
                return None;
            }
        }
        Some(out)
    }

    fn is_truth(&self, stmt: &Stmt) -> bool {
        let is_bool = |dst: &VarId| self.func.vars[dst.index()].ty == Scalar::Bool;
        match stmt {
            Stmt::Let { dst, op, .. } => {
                let simple = matches!(
                    op,
                    Op::Copy
                        | Op::ICmp(_)
                        | Op::UCmp(_)
                        | Op::FCmp(_)
                        | Op::And
                        | Op::Or
                        | Op::Xor
                        | Op::Not
                        | Op::Select
                );
                simple && is_bool(dst)
            }
            Stmt::Load { dst, column, row } => {
                let column = &self.columns[column.index()];
                is_bool(dst) && column.storage.bytes() == 1 && self.references.is_in(*row, column.space)
            }
            _ => false,
        }
    }

    /// Computes a side in new registers. Returns the values that the side's own registers have at its end.
    fn side(&mut self, side: &[Stmt], out: &mut Vec<Stmt>) -> BTreeMap<VarId, Operand> {
        let mut found = BTreeMap::new();
        for stmt in side {
            let mut stmt = stmt.clone();
            stmt.reads_mut(|operand| {
                if let Operand::Var(v) = operand {
                    *operand = found.get(v).copied().unwrap_or(*operand);
                }
            });
            if let Stmt::Let { dst, op: Op::Copy, args } = &stmt {
                found.insert(*dst, args[0]);
                continue;
            }
            for dst in stmt.assigns_mut() {
                let own = VarId::new(self.func.vars.len());
                self.func.vars.push(Var { ty: Scalar::Bool, name: None });
                found.insert(*dst, own.into());
                *dst = own;
            }
            out.push(stmt);
        }
        found
    }

    /// Selects the value of each register that is read after the branch. None: one side does not assign it.
    fn chosen(&self, branch: &Stmt, cond: Operand, found: &[BTreeMap<VarId, Operand>; 2]) -> Option<Vec<Stmt>> {
        let mut within = Vec::new();
        count(std::slice::from_ref(branch), &mut within, 1);
        let is_left = |dst: &VarId| {
            let reads = |of: &[i64]| of.get(dst.index()).copied().unwrap_or(0);
            reads(&self.reads) > reads(&within)
        };
        let dsts: Vec<VarId> = found[0].keys().chain(found[1].keys()).copied().filter(is_left).collect();
        let mut chosen: Vec<Stmt> = Vec::new();
        for (at, dst) in dsts.iter().enumerate() {
            if dsts[..at].contains(dst) {
                continue;
            }
            let args = vec![cond, *found[0].get(dst)?, *found[1].get(dst)?];
            chosen.push(Stmt::Let { dst: *dst, op: Op::Select, args });
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, OUT, REFS, SPEED, TAGS, program};
    use crate::ir::{Cmp, Op, Operand, Program, Scalar, Space, Storage, VarId};
    use crate::passes::testing::after;

    /// `result = x == 3 || (x == 2 && flag)`, where the flag is at a row of `TAGS`, which are in `space`.
    fn rule(refers: Option<Space>, storage: Storage) -> Program {
        let mut program = program(|b, index| {
            let x = b.load(Scalar::I64, INPUT, index);
            let row = b.load(Scalar::I32, REFS, index);
            let (result, inner) = (b.temp(Scalar::Bool), b.temp(Scalar::Bool));
            let three = b.icmp(Cmp::Eq, x, Operand::I64(3));
            b.branch(
                three,
                |b| b.set(result, Operand::Bool(true)),
                |b| {
                    let two = b.icmp(Cmp::Eq, x, Operand::I64(2));
                    b.branch(
                        two,
                        |b| {
                            let flag = b.load(Scalar::Bool, TAGS, row);
                            b.set(inner, flag);
                        },
                        |b| b.set(inner, Operand::Bool(false)),
                    );
                    b.set(result, inner.into());
                },
            );
            b.store(OUT, index, result.into());
        });
        let space = Space::Class { hierarchy: 0, first: 0, last: 1 };
        for (column, storage) in [(TAGS, storage), (OUT, Storage::U8)] {
            program.columns[column.index()].storage = storage;
        }
        program.columns[TAGS.index()].space = space;
        program.columns[REFS.index()].refers = refers;
        program
    }

    const CARS: Space = Space::Class { hierarchy: 0, first: 1, last: 1 };

    #[test]
    fn a_rule_of_flags_is_computed_without_a_branch() {
        insta::assert_snapshot!(after(&[PASS], rule(Some(CARS), Storage::U8)), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load in[v3]
          v5: i32 = load refs[v3]
          v8: bool = icmp.eq v4, 3
          v12: bool = icmp.eq v4, 2
          v13: bool = load tags[v5]
          v14: bool = select v12, v13, false
          v6: bool = select v8, true, v14
          store out[v3] = v6
        }
        "#);
    }

    #[test]
    fn a_flag_of_a_row_that_may_not_be_there_is_loaded_where_it_is_asked_for() {
        let text = after(&[PASS], rule(None, Storage::U8));
        assert_eq!(text.matches("  if ").count(), 2, "{text}");
    }

    #[test]
    fn what_keeps_its_value_on_one_side_or_is_a_number_stays_a_branch() {
        let stays = |body: &dyn Fn(&mut Builder, Operand, VarId)| {
            let text = after(
                &[PASS],
                program(|b, index| {
                    let x = b.load(Scalar::I64, INPUT, index);
                    let odd = b.icmp(Cmp::Ne, x, Operand::I64(0));
                    let kept = b.temp(Scalar::Bool);
                    b.set(kept, Operand::Bool(true));
                    body(b, odd, kept);
                    let out = b.i64(Op::BoolToInt, &[kept.into()]);
                    b.store(INPUT, index, out);
                }),
            );
            assert!(text.contains("  if "), "{text}");
        };
        stays(&|b, odd, kept| b.when(odd, |b| b.set(kept, Operand::Bool(false))));
        stays(&|b, odd, kept| {
            let flip = |b: &mut Builder| {
                let flipped = b.bool(Op::Not, &[kept.into()]);
                b.set(kept, flipped);
            };
            b.branch(odd, flip, |b| b.set(kept, Operand::Bool(false)));
        });
        stays(&|b, odd, kept| {
            b.branch(
                odd,
                |b| {
                    let speed = b.load(Scalar::F64, SPEED, Operand::I32(0));
                    let fast = b.fcmp(Cmp::Gt, speed, Operand::float(1.0));
                    b.set(kept, fast);
                },
                |b| b.set(kept, Operand::Bool(false)),
            );
        });
    }
}
