//! Register promotion: what a loop loads and stores stays in registers while the loop runs.
//!
//! Consider a column that a loop touches at one row only, the same in each repetition. The pass loads it once before
//! the loop, if it may be read there, and stores it once after the loop, if the loop stores it. If the loop does not
//! store the column, the pass loads each such row once before the loop. An element's own fields thus live in registers
//! for all ticks of a launch.
//!
//! # Why a load may stand before the loop
//!
//! The program must not load a row that does not exist. A row exists if a load or store of it surely runs whenever the
//! loop runs (see [`super::rotate`]), in the same space or a smaller one. Such an access stands before the loop, or in
//! the body before anything that can end the job because of what the element computes. A row also exists if its id came
//! from a column that refers to the space. Of a captured array the host says how many rows it has. Then a loop is there
//! twice: with the row in a register, and as it was, for rows of which that does not tell.
//!
//! # Why a store may wait until the loop ends
//!
//! Nothing else touches the row meanwhile. Within the element, the loop touches the column nowhere else and calls
//! nothing that does. Among elements there are two cases. Either ticks run in one launch, which they do only where
//! every written column is each element's own. Or the loop stores the row in any case. Where the job ends early, its
//! columns are not read, except in a section that is left by `break`. In such programs stores stay where they are.

use super::loops::{Counts, References, assigned_in, completes, leaves_otherwise};
use super::ticks::{self, Uses};
use super::{Pass, owned_sums};
use crate::ir::effects::Effects;
use crate::ir::visit::walk_mut;
use crate::ir::{
    Cmp, Column, ColumnId, Extent, Func, Op, Operand, ParamId, Program, Scalar, Space, Stmt, Trap, Var, VarId, walk,
};
use std::collections::BTreeMap;

pub const PASS: Pass = Pass { name: "register_promotion", description: "fields in registers while a loop runs", run };

fn run(mut program: Program) -> Program {
    let effects = program.effects();
    let mut atomic = vec![false; program.columns.len()];
    for func in &program.funcs {
        walk(&func.body, &mut |s| {
            if let Stmt::Atomic { column, .. } | Stmt::FetchAdd { column, .. } = s {
                atomic[column.index()] = true;
            }
        });
    }
    let owned = if program.fused_ticks { vec![true; program.columns.len()] } else { owned_sums::columns(&program) };
    let has_break = program.sites.iter().any(|s| s.trap == Trap::Break);
    for func in &mut program.funcs {
        let counts = Counts::of(func);
        let references = References::of(func, &program.columns);
        let mut body = std::mem::take(&mut func.body);
        let uses = Uses::of(&body, func.vars.len());
        let mut pass = Promoter {
            func,
            counts,
            references,
            columns: &program.columns,
            effects: &effects,
            atomic: &atomic,
            may_store: !has_break,
            owned: &owned,
            uses,
            extents: &program.extents,
            there: Vec::new(),
        };
        pass.list(&mut body);
        func.body = body;
    }
    program
}

struct Promoter<'a> {
    func: &'a mut Func,
    counts: Counts,
    references: References,
    columns: &'a [Column],
    effects: &'a [Effects],
    /// Columns that some atomic names.
    atomic: &'a [bool],
    may_store: bool,
    /// By column: whether each row that is stored is stored only by the element that owns it.
    owned: &'a [bool],
    uses: Uses,
    extents: &'a [Extent],
    /// Rows that are known to exist: the space, and a register that is assigned once, or a constant.
    there: Vec<(Space, Operand)>,
}

/// What becomes of a loop.
struct Promoted {
    /// Computes `exist`.
    tests: Vec<Stmt>,
    /// Whether all the rows exist. None: they do. Otherwise the loop stays as it was, and mostly ends the job.
    exist: Option<Operand>,
    /// The loads to put before the loop.
    before: Vec<Stmt>,
    /// The stores to put after the loop.
    after: Vec<Stmt>,
}

/// How a loop uses a column.
#[derive(Default)]
struct Use {
    rows: Vec<Operand>,
    types: Vec<Scalar>,
    stored: bool,
}

impl Promoter<'_> {
    fn list(&mut self, body: &mut Vec<Stmt>) {
        let known = self.there.len();
        let mut out = Vec::with_capacity(body.len());
        for mut stmt in std::mem::take(body) {
            self.learn(&stmt);
            if let Stmt::Loop { label, body } = &mut stmt {
                let leaves = leaves_otherwise(body, *label);
                let original = (!self.extents.is_empty()).then(|| Stmt::Loop { label: *label, body: body.clone() });
                let Promoted { tests, exist, before, after } = self.promote(body, leaves);
                self.list(body);
                let mut promoted = before;
                promoted.push(stmt);
                promoted.extend(after);
                match (exist, original) {
                    (Some(exist), Some(original)) => {
                        out.extend(tests);
                        let otherwise = vec![self.copy(&original)];
                        out.push(Stmt::If { cond: exist, then: promoted, otherwise });
                    }
                    _ => out.extend(promoted),
                }
            } else {
                for nested in stmt.bodies_mut().into_iter().flatten() {
                    self.list(nested);
                }
                out.push(stmt);
            }
        }
        *body = out;
        self.there.truncate(known);
    }

    /// Notes the row that a statement proves to exist.
    fn learn(&mut self, stmt: &Stmt) {
        let (space, row) = match stmt {
            Stmt::Load { column, row, .. }
            | Stmt::Store { column, row, .. }
            | Stmt::Atomic { column, row, .. }
            | Stmt::FetchAdd { column, row, .. } => (self.columns[column.index()].space, *row),
            Stmt::Begin { index, .. } => (Space::Element, *index),
            _ => return,
        };
        if !matches!(row, Operand::Var(v) if self.counts.assigned(v) != 1) {
            self.there.push((space, row));
        }
    }

    fn is_there(&self, space: Space, row: Operand) -> bool {
        self.references.is_in(row, space) || self.there.iter().any(|(proven, r)| *r == row && space.covers(*proven))
    }

    /// A copy of a loop, with labels and private registers of its own.
    fn copy(&mut self, stmt: &Stmt) -> Stmt {
        let known = self.func.vars.len();
        let mut private = self.uses.private(stmt);
        private.resize(known, false);
        let copy = ticks::copy(stmt, self.func, &mut private);
        // Nothing is learned from these.
        (known..self.func.vars.len()).for_each(|_| self.counts.add(2));
        copy
    }

    /// Changes a loop's body to use registers.
    fn promote(&mut self, body: &mut [Stmt], leaves: bool) -> Promoted {
        let varies = assigned_in(body);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let (mut tests, mut exist) = (Vec::new(), None);
        // The rows that exist because the first repetition surely accesses them before anything else.
        let known = self.there.len();
        let mut first: BTreeMap<ColumnId, bool> = BTreeMap::new();
        for stmt in body.iter() {
            match stmt {
                Stmt::Load { column, .. } => {
                    first.entry(*column).or_insert(false);
                }
                Stmt::Store { column, .. } => {
                    first.entry(*column).or_insert(true);
                }
                _ if !completes(stmt, self.effects) => break,
                // An inner statement counts as a load, since a load in it may run before any store.
                _ => {
                    let mut touched = BTreeMap::new();
                    self.uses(std::slice::from_ref(stmt), &mut touched);
                    touched.into_keys().for_each(|column| {
                        first.entry(column).or_insert(false);
                    });
                    continue;
                }
            }
            self.learn(stmt);
        }
        let mut stored_anyway = Vec::new();
        for stmt in body.iter().take_while(|s| completes(s, self.effects)) {
            if let Stmt::Store { column, .. } = stmt {
                stored_anyway.push(*column);
            }
        }
        let mut uses = BTreeMap::new();
        self.uses(body, &mut uses);
        let mut registers = Vec::new();
        for (id, used) in uses {
            let column = &self.columns[id.index()];
            let [ty] = used.types[..] else { continue };
            if !used.stored && !self.atomic[id.index()] && column.read {
                // Nothing changes the row meanwhile, whatever other rows are loaded.
                let same = |row: &Operand| !matches!(row, Operand::Var(v) if varies.contains(v));
                for row in used.rows.into_iter().filter(same) {
                    if self.is_there(column.space, row) {
                        let register = self.register(column, ty, 1);
                        registers.push((id, row, register));
                        before.push(Stmt::Load { dst: register, column: id, row });
                    }
                }
                continue;
            }
            let [row] = used.rows[..] else { continue };
            // A register would not round the value as the column does.
            let rounds = used.stored && !column.is_exact();
            if rounds || self.atomic[id.index()] || matches!(row, Operand::Var(v) if varies.contains(&v)) {
                continue;
            }
            let stored_anyway = stored_anyway.contains(&id);
            let fits = !used.stored || (self.may_store && !leaves && (self.owned[id.index()] || stored_anyway));
            let loads = first.get(&id) != Some(&true);
            let there = self.is_there(column.space, row);
            let loadable = !loads || (column.read && there);
            // A store after the loop needs a row that exists, too.
            let storable = !used.stored || stored_anyway || there;
            if !fits || loads && !column.read {
                continue;
            }
            if !(loadable && storable) {
                let Some(extent) = self.extents.iter().find(|extent| extent.column == id) else { continue };
                exist = Some(self.exists(row, extent.rows, exist, &mut tests));
            }
            let register = self.register(column, ty, if used.stored { 2 } else { 1 });
            registers.push((id, row, register));
            if loads {
                before.push(Stmt::Load { dst: register, column: id, row });
            }
            if used.stored {
                after.push(Stmt::Store { column: id, row, value: register.into() });
            }
        }
        self.there.truncate(known);
        replace(body, &registers);
        Promoted { tests, exist, before, after }
    }

    fn register(&mut self, column: &Column, ty: Scalar, assigned: u32) -> VarId {
        let name = column.name.split_once('@').map(|(_, ivar)| ivar.into());
        self.func.vars.push(Var { ty, name });
        let register = VarId::new(self.func.vars.len() - 1);
        self.counts.add(assigned);
        register
    }

    /// Whether a row is one of a captured array, and `others` holds.
    fn exists(&mut self, row: Operand, rows: ParamId, others: Option<Operand>, tests: &mut Vec<Stmt>) -> Operand {
        let mut register = |ty| {
            self.func.vars.push(Var { ty, name: None });
            self.counts.add(1);
            VarId::new(self.func.vars.len() - 1)
        };
        let (count, exists) = (register(Scalar::I64), register(Scalar::Bool));
        tests.push(Stmt::Let { dst: count, op: Op::Param(rows), args: vec![] });
        tests.push(Stmt::Let { dst: exists, op: Op::UCmp(Cmp::Lt), args: vec![row, count.into()] });
        let Some(others) = others else { return exists.into() };
        let all = register(Scalar::Bool);
        tests.push(Stmt::Let { dst: all, op: Op::And, args: vec![exists.into(), others] });
        all.into()
    }

    /// Columns that the list uses by loads and stores alone.
    fn uses(&self, body: &[Stmt], uses: &mut BTreeMap<ColumnId, Use>) {
        let mut otherwise = Vec::new();
        walk(body, &mut |s| {
            let (column, row, ty, stored) = match s {
                Stmt::Load { dst, column, row } => (*column, *row, self.func.vars[dst.index()].ty, false),
                Stmt::Store { column, row, value } => (*column, *row, self.func.ty(*value), true),
                Stmt::Atomic { column, .. } | Stmt::FetchAdd { column, .. } | Stmt::Emit { text: Some(column), .. } => {
                    return otherwise.push(*column);
                }
                Stmt::Call { func, .. } => {
                    let effects = &self.effects[func.index()];
                    let touched = |c: &usize| effects.writes[*c] || effects.reads[*c];
                    return otherwise.extend((0..self.columns.len()).filter(touched).map(ColumnId::new));
                }
                _ => return,
            };
            let used = uses.entry(column).or_default();
            if !used.rows.contains(&row) {
                used.rows.push(row);
            }
            if !used.types.contains(&ty) {
                used.types.push(ty);
            }
            used.stored |= stored;
        });
        otherwise.iter().for_each(|column| {
            uses.remove(column);
        });
    }
}

/// Replaces rows of columns by registers.
fn replace(body: &mut [Stmt], registers: &[(ColumnId, Operand, VarId)]) {
    let of = |column: ColumnId, row: Operand| registers.iter().find(|r| (r.0, r.1) == (column, row)).map(|r| r.2);
    walk_mut(body, &mut |s| {
        *s = match s {
            Stmt::Load { dst, column, row } => match of(*column, *row) {
                Some(register) => Stmt::Let { dst: *dst, op: Op::Copy, args: vec![register.into()] },
                None => return,
            },
            Stmt::Store { column, row, value } => match of(*column, *row) {
                Some(register) => Stmt::Let { dst: register, op: Op::Copy, args: vec![*value] },
                None => return,
            },
            _ => return,
        };
    });
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::id::ArrayKind;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, INTS, OUT, SPEED, ZERO, program};
    use crate::ir::{Cmp, Extent, Op, Operand, ParamId, Program, Scalar, Space, Stmt, Trap};
    use crate::passes::testing::after;
    use crate::passes::{dce, gvn, rotate};

    fn check(program: Program) -> String {
        after(&[gvn::PASS, rotate::PASS, PASS, gvn::PASS, dce::PASS], program)
    }

    /// `i = 0; while i < n { body; i += 1 }`
    fn counted(b: &mut Builder, body: impl FnOnce(&mut Builder, Operand)) {
        let n = b.i64(Op::Param(ParamId(0)), &[]);
        let i = b.var(Scalar::I64, Some("i".into()));
        b.set(i, Operand::I64(0));
        b.repeat(|b, done| {
            let end = b.icmp(Cmp::Ge, i.into(), n);
            b.when(end, |b| b.push(Stmt::Break(done)));
            body(b, i.into());
            b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
        });
    }

    fn add(b: &mut Builder, column: crate::ir::ColumnId, row: Operand, more: Operand) {
        let x = b.load(Scalar::I64, column, row);
        let sum = b.i64(Op::Add, &[x, more]);
        b.store(column, row, sum);
    }

    #[test]
    fn a_row_that_is_loaded_and_stored_stays_in_a_register() {
        insta::assert_snapshot!(check(program(|b, index| counted(b, |b, i| add(b, INTS, index, i)))), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = param p0 "n"
          i.4: i64 = copy 0
          v5: bool = icmp.gt v3, 0
          if v5 {
            v6: i64 = load ints[job.0]
            loop L0 {
              v7: i64 = add v6, i.4
              v6 = copy v7
              i.4 = add i.4, 1
              v8: bool = icmp.ge i.4, v3
              if v8 {
                break L0
              }
            }
            store ints[job.0] = v7
          }
        }
        "#);
    }

    #[test]
    fn rows_of_what_the_loop_does_not_store_are_loaded_before() {
        insta::assert_snapshot!(check(program(|b, index| {
            // The row exists, since the other column's does.
            b.store(OUT, Operand::I64(3), Operand::float(0.0));
            counted(b, |b, i| {
                let mine = b.load(Scalar::I64, INTS, index);
                let third = b.load(Scalar::I64, INTS, Operand::I64(3));
                let other = b.load(Scalar::I64, INTS, i);
                let (sum, more) = (b.i64(Op::Add, &[mine, other]), b.i64(Op::Mul, &[third, other]));
                add(b, INPUT, index, sum);
                add(b, INPUT, Operand::I64(0), more);
            });
        })), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          store out[3] = 0.0
          v3: i64 = param p0 "n"
          i.4: i64 = copy 0
          v5: bool = icmp.gt v3, 0
          if v5 {
            v6: i64 = load ints[job.0]
            v7: i64 = load ints[3]
            loop L0 {
              v8: i64 = load ints[i.4]
              v9: i64 = add v6, v8
              v10: i64 = mul v7, v8
              v11: i64 = load in[job.0]
              v12: i64 = add v11, v9
              store in[job.0] = v12
              v13: i64 = load in[0]
              v14: i64 = add v13, v10
              store in[0] = v14
              i.4 = add i.4, 1
              v15: bool = icmp.ge i.4, v3
              if v15 {
                break L0
              }
            }
          }
        }
        "#);
    }

    #[test]
    fn two_rows_may_be_one() {
        insta::assert_snapshot!(check(program(|b, index| counted(b, |b, i| {
            add(b, INTS, index, i);
            add(b, INTS, Operand::I64(0), i);
        }))), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = param p0 "n"
          i.4: i64 = copy 0
          v5: bool = icmp.gt v3, 0
          if v5 {
            loop L0 {
              v6: i64 = load ints[job.0]
              v7: i64 = add v6, i.4
              store ints[job.0] = v7
              v8: i64 = load ints[0]
              v9: i64 = add v8, i.4
              store ints[0] = v9
              i.4 = add i.4, 1
              v10: bool = icmp.ge i.4, v3
              if v10 {
                break L0
              }
            }
          }
        }
        "#);
    }

    /// A store in a branch: other elements may store the same row, unless every element owns what it stores.
    fn stored_sometimes(row: impl FnOnce(&mut Builder, Operand) -> Operand) -> Program {
        program(|b, index| {
            let row = row(b, index);
            counted(b, |b, i| {
                let big = b.icmp(Cmp::Gt, i, Operand::I64(100));
                b.when(big, |b| add(b, INTS, row, i));
            })
        })
    }

    #[test]
    fn a_store_that_may_not_happen_is_not_made_up() {
        let program = stored_sometimes(|b, index| b.i64(Op::Shr, &[index, Operand::I64(1)]));
        assert_eq!(check(program.clone()), after(&[gvn::PASS, rotate::PASS, gvn::PASS, dce::PASS], program));
    }

    #[test]
    fn an_owned_row_is_stored_in_any_case() {
        let own = stored_sometimes(|_, index| index);
        let mut fused = own.clone();
        fused.fused_ticks = true;
        assert_eq!(check(fused), check(own.clone()));
        insta::assert_snapshot!(check(own), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = param p0 "n"
          i.4: i64 = copy 0
          v5: bool = icmp.gt v3, 0
          if v5 {
            v6: i64 = load ints[job.0]
            loop L0 {
              v7: bool = icmp.gt i.4, 100
              if v7 {
                v6 = add v6, i.4
              }
              i.4 = add i.4, 1
              v8: bool = icmp.ge i.4, v3
              if v8 {
                break L0
              }
            }
            store ints[job.0] = v6
          }
        }
        "#);
    }

    #[test]
    fn a_section_that_may_be_left_stores_at_once() {
        let mut program = program(|b, index| counted(b, |b, i| add(b, INTS, index, i)));
        program.sites[ZERO.index()].trap = Trap::Break;
        insta::assert_snapshot!(check(program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = param p0 "n"
          i.4: i64 = copy 0
          v5: bool = icmp.gt v3, 0
          if v5 {
            loop L0 {
              v6: i64 = load ints[job.0]
              v7: i64 = add v6, i.4
              store ints[job.0] = v7
              i.4 = add i.4, 1
              v8: bool = icmp.ge i.4, v3
              if v8 {
                break L0
              }
            }
          }
        }
        "#);
    }

    #[test]
    fn a_load_that_a_check_guards_is_not_moved_before_it() {
        insta::assert_snapshot!(check(program(|b, index| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let id = b.op(Scalar::I32, Op::Narrow, &[n]);
            counted(b, |b, _| {
                let nil = b.icmp(Cmp::Eq, id, Operand::I32(0));
                b.trap_if(nil, ZERO, vec![]);
                let speed = b.load(Scalar::F64, SPEED, id);
                b.store(OUT, index, speed);
            });
        })), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = param p0 "n"
          v4: i32 = narrow v3
          i.5: i64 = copy 0
          v6: bool = icmp.gt v3, 0
          if v6 {
            loop L0 {
              v7: bool = icmp.eq v4, 0i32
              if v7 {
                trap s3
              }
              v8: f64 = load Car@speed[v4]
              i.5 = add i.5, 1
              v9: bool = icmp.ge i.5, v3
              if v9 {
                break L0
              }
            }
            store out[job.0] = v8
          }
        }
        "#);
    }

    #[test]
    fn a_load_in_a_branch_moves_where_the_row_is_known_to_be_there() {
        insta::assert_snapshot!(check(program(|b, index| counted(b, |b, i| {
            let odd = b.icmp(Cmp::Gt, i, Operand::I64(4));
            b.when(odd, |b| {
                let x = b.load(Scalar::I64, INPUT, index);
                b.store(INTS, i, x);
            });
        }))), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = param p0 "n"
          i.4: i64 = copy 0
          v5: bool = icmp.gt v3, 0
          if v5 {
            v6: i64 = load in[job.0]
            loop L0 {
              v7: bool = icmp.gt i.4, 4
              if v7 {
                store ints[i.4] = v6
              }
              i.4 = add i.4, 1
              v8: bool = icmp.ge i.4, v3
              if v8 {
                break L0
              }
            }
          }
        }
        "#);
    }

    #[test]
    fn a_row_that_may_not_exist_is_touched_only_if_it_does() {
        let mut program = program(|b, index| {
            counted(b, |b, i| {
                let bad = b.icmp(Cmp::Gt, i, Operand::I64(100));
                b.trap_if(bad, ZERO, vec![]);
                add(b, INTS, index, i);
            })
        });
        program.columns[INTS.index()].space = Space::Array(ArrayKind(0));
        program.extents.push(Extent { column: INTS, rows: ParamId(0) });
        insta::assert_snapshot!(check(program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = param p0 "n"
          i.4: i64 = copy 0
          v5: bool = icmp.gt v3, 0
          if v5 {
            v6: bool = ucmp.lt job.0, v3
            if v6 {
              v7: i64 = load ints[job.0]
              loop L0 {
                v8: bool = icmp.gt i.4, 100
                if v8 {
                  trap s3
                }
                v9: i64 = add v7, i.4
                v7 = copy v9
                i.4 = add i.4, 1
                v10: bool = icmp.ge i.4, v3
                if v10 {
                  break L0
                }
              }
              store ints[job.0] = v9
            } else {
              loop L1 {
                v11: bool = icmp.gt i.4, 100
                if v11 {
                  trap s3
                }
                v12: i64 = load ints[job.0]
                v13: i64 = add v12, i.4
                store ints[job.0] = v13
                i.4 = add i.4, 1
                v10 = icmp.ge i.4, v3
                if v10 {
                  break L1
                }
              }
            }
          }
        }
        "#);
    }
}
