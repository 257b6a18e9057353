//! Makes a program read what it changes from other columns than those to which it writes.
//!
//! A launch that may raise must leave everything unchanged. So it writes to a copy of each column, which replaces the
//! column once the launch ended well. A loop of such launches would copy whole columns each time. The program of this
//! module needs no copy: it loads a row from the column `before`, and stores it to the other one. A job that stores
//! nothing to its row copies the row. Rows of no job are the same in both columns from the second launch on, when the
//! two have changed their places.
//!
//! Here: [`double_buffer`], for columns of the elements' own fields. Not here: who swaps the columns
//! ([`crate::memory::buffer`]).
//!
//! Part of no pipeline: only the callers of many launches over the same objects have two columns.

use crate::ir::{
    Cmp, Column, ColumnId, Func, Jobs, Op, Operand, Param, ParamId, Program, Scalar, Space, Stmt, Trap, Var, VarId,
    walk,
};
use crate::layout::schema::{Schema, Slot};

/// A program that reads and writes different columns.
#[derive(Clone, Debug)]
pub struct DoubleBuffered {
    pub program: Program,
    /// Columns that are written, and those, after all others, from which their rows are read.
    pub pairs: Vec<(ColumnId, ColumnId)>,
    /// I32 parameters, after all others: an end of the ids of the rows of a column.
    pub bounds: Vec<(ParamId, ColumnId, Bound)>,
}

/// An end of the ids of a column's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    First,
    /// The id behind the last.
    End,
}

/// The program, where some column can be read and written apart. None: there is none.
pub fn double_buffer(program: &Program, schema: &Schema) -> Option<DoubleBuffered> {
    let Slot { value: Some(elements), tag: None, .. } = *schema.elements.as_ref()? else { return None };
    let Some(Space::Class { hierarchy, first, last }) = program.columns[elements.index()].refers else { return None };
    // A launch that is left by `break` runs again up to a limit. The jobs behind it copy nothing.
    let breaks = program.sites.iter().any(|site| site.trap == Trap::Break);
    // jobs of several elements may have one element twice
    if breaks || program.fused_ticks || program.takes_rows() || program.jobs == Jobs::Grouped {
        return None;
    }
    let entry = &program.funcs[program.entry.index()];
    let row = row_of(entry, elements)?;
    let columns: Vec<Doubled> = (0..program.columns.len())
        .map(ColumnId::new)
        .filter_map(|column| {
            let Space::Class { hierarchy: own, first: from, last: to } = program.columns[column.index()].space else {
                return None;
            };
            let ty = stored(program, column, row).filter(|_| own == hierarchy)?;
            Some(Doubled { column, before: column, ty, classes: (from, to + 1) })
        })
        .collect();
    if columns.is_empty() {
        return None;
    }
    let mut out = program.clone();
    let mut body = std::mem::take(&mut out.funcs[program.entry.index()].body);
    let mut bases = vec![None; last as usize + 2];
    for (at, base) in schema.hierarchies.get(hierarchy as usize)?.bases.iter().take(bases.len()).enumerate() {
        bases[at] = *base;
    }
    let mut apart = Apart { out, columns, row, bases, tests: Vec::new(), open: Vec::new(), bounds: Vec::new() };
    for at in 0..apart.columns.len() {
        let written = apart.columns[at].column;
        let column = &program.columns[written.index()];
        apart.columns[at].before = ColumnId::new(apart.out.columns.len());
        let name = format!("{} before", column.name);
        apart.out.columns.push(Column { name, read: true, written: false, ..column.clone() });
    }
    apart.tests(&body);
    let begins = body.iter().position(|stmt| stmt.assigns().contains(&row))? + 1;
    let mut rest = body.split_off(begins);
    let classes = (first, last + 1);
    if let Some(state) = apart.list(&mut rest, vec![false; apart.columns.len()], classes) {
        apart.copy_rest(&mut rest, &state, classes, |_| true);
    }
    body.append(&mut rest);
    let Apart { mut out, columns, bounds, .. } = apart;
    out.funcs[program.entry.index()].body = body;
    let pairs: Vec<(ColumnId, ColumnId)> = columns.iter().map(|one| (one.column, one.before)).collect();
    let effects = out.effects();
    for (written, _) in &pairs {
        out.columns[written.index()].read = effects.iter().any(|effects| effects.reads[written.index()]);
    }
    Some(DoubleBuffered { program: out, pairs, bounds })
}

/// The register with the element's row. None: there are several, or it is found late.
fn row_of(entry: &Func, elements: ColumnId) -> Option<VarId> {
    let mut loads = 0;
    walk(&entry.body, &mut |stmt| {
        loads += usize::from(matches!(stmt, Stmt::Load { column, .. } if *column == elements));
    });
    let row = entry.body.iter().find_map(|stmt| match stmt {
        Stmt::Load { dst, column, .. } if *column == elements => Some(*dst),
        _ => None,
    })?;
    (loads == 1 && assignments(entry, row) == 1).then_some(row)
}

fn assignments(func: &Func, register: VarId) -> usize {
    let mut assigned = func.params.iter().filter(|param| **param == register).count();
    walk(&func.body, &mut |stmt| assigned += stmt.assigns().iter().filter(|v| **v == register).count());
    assigned
}

/// The type of what is stored to a column, if the program stores to it, and uses no other row of it than the element's.
fn stored(program: &Program, column: ColumnId, row: VarId) -> Option<Scalar> {
    let (mut own, mut ty) = (true, None);
    for (at, func) in program.funcs.iter().enumerate() {
        walk(&func.body, &mut |stmt| match stmt {
            Stmt::Load { column: other, row: at_row, .. } if *other == column => {
                own &= at == program.entry.index() && *at_row == row.into();
            }
            Stmt::Store { column: other, row: at_row, value } if *other == column => {
                own &= at == program.entry.index() && *at_row == row.into();
                let of = (at == program.entry.index()).then(|| func.ty(*value));
                own &= ty.is_none() || ty == of;
                ty = ty.or(of);
            }
            Stmt::Atomic { column: other, .. } | Stmt::FetchAdd { column: other, .. } => own &= *other != column,
            _ => {}
        });
    }
    ty.filter(|_| own)
}

/// A column in two places.
struct Doubled {
    column: ColumnId,
    before: ColumnId,
    ty: Scalar,
    /// The positions of the classes that have it: from, to.
    classes: (u32, u32),
}

/// For each column, whether the job has stored to its row.
type State = Vec<bool>;

/// The positions of the classes of which the element may be: from, to.
type Classes = (u32, u32);

struct Apart {
    out: Program,
    columns: Vec<Doubled>,
    row: VarId,
    /// The first id of each class, where the program has it.
    bases: Vec<Option<ParamId>>,
    /// Registers that say whether the row lies before (true) or from the class at a position on.
    tests: Vec<(VarId, bool, u32)>,
    /// The blocks and loops around, and the columns to which every path to their ends has stored.
    open: Vec<(crate::ir::LabelId, State)>,
    bounds: Vec<(ParamId, ColumnId, Bound)>,
}

impl Apart {
    /// Finds the tests of the element's class.
    fn tests(&mut self, body: &[Stmt]) {
        let entry = Func { body: body.to_vec(), ..self.out.funcs[self.out.entry.index()].clone() };
        let mut params = Vec::new();
        walk(body, &mut |stmt| {
            if let Stmt::Let { dst, op: Op::Param(param), .. } = stmt
                && let Some(at) = self.bases.iter().position(|base| *base == Some(*param))
            {
                params.push((*dst, at as u32));
            }
        });
        params.retain(|(register, _)| assignments(&entry, *register) == 1);
        walk(body, &mut |stmt| {
            let Stmt::Let { dst, op: Op::UCmp(cmp @ (Cmp::Lt | Cmp::Ge)), args } = stmt else { return };
            let base = params.iter().find(|(register, _)| args[1] == (*register).into());
            if let (Some((_, at)), true) = (base, args[0] == self.row.into()) {
                self.tests.push((*dst, *cmp == Cmp::Lt, *at));
            }
        });
        self.tests.retain(|(register, ..)| assignments(&entry, *register) == 1);
    }

    /// The classes of which the element may be where a test is true, and where it is false.
    fn narrowed(&self, cond: Operand, (from, to): Classes) -> [Classes; 2] {
        let Some((_, before, at)) = self.tests.iter().find(|(register, ..)| cond == (*register).into()) else {
            return [(from, to); 2];
        };
        let (below, above) = ((from, to.min(*at)), (from.max(*at), to));
        if *before { [below, above] } else { [above, below] }
    }

    /// Goes over a list, from the state before it to that behind it. None: control does not get there.
    fn list(&mut self, body: &mut Vec<Stmt>, mut state: State, classes: Classes) -> Option<State> {
        for mut stmt in std::mem::take(body) {
            match &mut stmt {
                Stmt::Load { column, .. } => {
                    let at = self.columns.iter().position(|one| one.column == *column);
                    if let Some(at) = at.filter(|at| !state[*at]) {
                        *column = self.columns[at].before;
                    }
                }
                Stmt::Store { column, .. } => {
                    if let Some(at) = self.columns.iter().position(|one| one.column == *column) {
                        state[at] = true;
                    }
                }
                Stmt::If { cond, then, otherwise } => {
                    let [yes, no] = self.narrowed(*cond, classes);
                    let a = self.list(then, state.clone(), yes);
                    let b = self.list(otherwise, state, no);
                    state = match (a, b) {
                        (Some(a), Some(b)) => {
                            self.copy_rest(then, &a, yes, |at| b[at]);
                            self.copy_rest(otherwise, &b, no, |at| a[at]);
                            a.iter().zip(&b).map(|(a, b)| *a || *b).collect()
                        }
                        (Some(one), None) | (None, Some(one)) => one,
                        (None, None) => {
                            body.push(stmt);
                            return None;
                        }
                    };
                }
                Stmt::Block { label, body: inner } => {
                    let after = self.after(inner, &state);
                    self.open.push((*label, after.clone()));
                    if let Some(end) = self.list(inner, state, classes) {
                        self.copy_rest(inner, &end, classes, |at| after[at]);
                    }
                    self.open.pop();
                    state = after;
                }
                Stmt::Loop { label, body: inner } => {
                    // a repetition does not know whether another one has stored
                    let after = self.after(inner, &state);
                    self.copy_rest(body, &state, classes, |at| after[at]);
                    self.open.push((*label, after.clone()));
                    let _ = self.list(inner, after.clone(), classes);
                    self.open.pop();
                    state = after;
                }
                Stmt::Break(label) => {
                    let after = self.open.iter().find(|(open, _)| open == label).map(|(_, after)| after.clone());
                    self.copy_rest(body, &state, classes, |at| after.as_ref().is_some_and(|after| after[at]));
                    body.push(stmt);
                    return None;
                }
                Stmt::Return(_) => {
                    self.copy_rest(body, &state, classes, |_| true);
                    body.push(stmt);
                    return None;
                }
                Stmt::Trap { .. } => {
                    body.push(stmt);
                    return None;
                }
                _ => {}
            }
            body.push(stmt);
        }
        Some(state)
    }

    /// The state behind a list, if all paths through it store what some path does.
    fn after(&self, body: &[Stmt], state: &State) -> State {
        let mut after = state.clone();
        walk(body, &mut |stmt| {
            if let Stmt::Store { column, .. } = stmt
                && let Some(at) = self.columns.iter().position(|one| one.column == *column)
            {
                after[at] = true;
            }
        });
        after
    }

    /// Appends copies of the rows that are `wanted` and not stored yet.
    fn copy_rest(&mut self, body: &mut Vec<Stmt>, state: &State, classes: Classes, wanted: impl Fn(usize) -> bool) {
        for at in (0..state.len()).filter(|at| wanted(*at) && !state[*at]) {
            self.copy(body, at, classes);
        }
    }

    fn copy(&mut self, body: &mut Vec<Stmt>, at: usize, (from, to): Classes) {
        let Doubled { column, before, ty, classes: (first, end) } = self.columns[at];
        if from >= end || to <= first {
            return;
        }
        let value = self.register(ty);
        let row = Operand::from(self.row);
        let mut copy =
            vec![Stmt::Load { dst: value, column: before, row }, Stmt::Store { column, row, value: value.into() }];
        let ends = [(from < first, first, Cmp::Ge, Bound::First), (to > end, end, Cmp::Lt, Bound::End)];
        for (_, class, cmp, bound) in ends.into_iter().filter(|(tested, ..)| *tested) {
            let param = self.base(class, column, bound);
            let (base, test) = (self.register(Scalar::I32), self.register(Scalar::Bool));
            copy = vec![
                Stmt::Let { dst: base, op: Op::Param(param), args: vec![] },
                Stmt::Let { dst: test, op: Op::UCmp(cmp), args: vec![row, base.into()] },
                Stmt::If { cond: test.into(), then: copy, otherwise: vec![] },
            ];
        }
        body.append(&mut copy);
    }

    fn register(&mut self, ty: Scalar) -> VarId {
        let func = &mut self.out.funcs[self.out.entry.index()];
        func.vars.push(Var { ty, name: None });
        VarId::new(func.vars.len() - 1)
    }

    /// The parameter with the first id of a class, which is an end of a column's rows.
    fn base(&mut self, class: u32, column: ColumnId, bound: Bound) -> ParamId {
        if let Some(Some(known)) = self.bases.get(class as usize) {
            return *known;
        }
        let param = ParamId::new(self.out.params.len());
        self.out.params.push(Param::new(format!("base_of_{class}"), Scalar::I32));
        self.bounds.push((param, column, bound));
        if let Some(base) = self.bases.get_mut(class as usize) {
            *base = Some(param);
        }
        param
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INTS, OVERFLOW, REFS, SPEED, program};
    use crate::ir::{CheckedOp, verify};
    use crate::layout::schema::Hierarchy;
    use crate::types::{Repr, Ty};

    /// A column of the class at position 1 alone.
    const LOAD: ColumnId = ColumnId(6);

    /// The entry after the pass, if it applies. `body` is given the element's row.
    fn doubled(body: impl FnOnce(&mut Builder, Operand)) -> Option<String> {
        let mut program = program(|b, index| {
            let row = b.load(Scalar::I32, REFS, index);
            body(b, row);
        });
        program.columns[REFS.index()].refers = Some(Space::Class { hierarchy: 0, first: 0, last: 2 });
        let space = Space::Class { hierarchy: 0, first: 1, last: 1 };
        program.columns.push(Column { name: "Bus@load".into(), space, ..program.columns[INTS.index()].clone() });
        let slot = Slot { ty: Ty::default(), repr: Repr::Int, value: Some(REFS), tag: None };
        // the parameter `small` is the first id of the class at position 1
        let bases = vec![None, Some(ParamId(3)), None, None];
        let hierarchies = vec![Hierarchy { bases, ..Hierarchy::default() }];
        let schema = Schema { elements: Some(slot), hierarchies, ..Schema::default() };
        let DoubleBuffered { program, .. } = double_buffer(&program, &schema)?;
        verify::verify(&program).unwrap_or_else(|error| panic!("{error}"));
        let text = program.to_string();
        let begin = text.find("load refs").and_then(|at| Some(at + text[at..].find('\n')? + 1));
        Some(text[begin.unwrap_or(0)..].to_string())
    }

    fn is_heavy(b: &mut Builder, row: Operand) -> Operand {
        let speed = b.load(Scalar::F64, SPEED, row);
        b.fcmp(Cmp::Gt, speed, Operand::float(9.0))
    }

    #[test]
    fn what_every_job_stores_is_read_before_from_the_other_column() {
        let text = doubled(|b, row| {
            let speed = b.load(Scalar::F64, SPEED, row);
            b.store(SPEED, row, speed);
            let again = b.load(Scalar::F64, SPEED, row);
            b.store(SPEED, row, again);
        });
        insta::assert_snapshot!(text.unwrap_or_default(), @r"
          v5: f64 = load c7[v4]
          store Car@speed[v4] = v5
          v6: f64 = load Car@speed[v4]
          store Car@speed[v4] = v6
        }
        ");
    }

    #[test]
    fn a_job_that_stores_nothing_copies_its_row() {
        let text = doubled(|b, row| {
            let heavy = is_heavy(b, row);
            b.when(heavy, |b| b.push(Stmt::Return(vec![])));
            b.store(SPEED, row, Operand::float(1.0));
            let load = b.load(Scalar::I64, INTS, Operand::I64(0));
            let more = b.checked(CheckedOp::Add, load, Operand::I64(1), OVERFLOW);
            b.store(INTS, more, more);
        });
        insta::assert_snapshot!(text.unwrap_or_default(), @r"
          v5: f64 = load c7[v4]
          v6: bool = fcmp.gt v5, 9.0
          if v6 {
            v9: f64 = load c7[v4]
            store Car@speed[v4] = v9
            return
          }
          store Car@speed[v4] = 1.0
          v7: i64 = load ints[0]
          v8: i64 = checked add v7, 1 else s0
          store ints[v8] = v8
        }
        ");
    }

    #[test]
    fn only_rows_that_a_column_has_are_copied() {
        let text = doubled(|b, row| {
            let base = b.op(Scalar::I32, Op::Param(ParamId(3)), &[]);
            let first = b.bool(Op::UCmp(Cmp::Lt), &[row, base]);
            b.branch(first, |b| b.store(SPEED, row, Operand::float(2.0)), |b| b.store(LOAD, row, Operand::I64(3)));
        });
        insta::assert_snapshot!(text.unwrap_or_default(), @r#"
          v5: i32 = param p3 "small"
          v6: bool = ucmp.lt v4, v5
          if v6 {
            store Car@speed[v4] = 2.0
          } else {
            store Bus@load[v4] = 3
            v7: f64 = load c7[v4]
            store Car@speed[v4] = v7
          }
        }
        "#);
    }

    #[test]
    fn a_loop_stores_to_rows_that_are_there() {
        let text = doubled(|b, row| {
            b.repeat(|b, done| {
                let heavy = is_heavy(b, row);
                b.when(heavy, |b| b.push(Stmt::Break(done)));
                b.store(SPEED, row, Operand::float(10.0));
            });
        });
        insta::assert_snapshot!(text.unwrap_or_default(), @r"
          v7: f64 = load c7[v4]
          store Car@speed[v4] = v7
          loop L0 {
            v5: f64 = load Car@speed[v4]
            v6: bool = fcmp.gt v5, 9.0
            if v6 {
              break L0
            }
            store Car@speed[v4] = 10.0
          }
        }
        ");
    }

    #[test]
    fn a_program_with_rows_of_others_has_no_second_column_for_them() {
        let others = doubled(|b, row| {
            let speed = b.load(Scalar::F64, SPEED, Operand::I32(0));
            b.store(SPEED, row, speed);
        });
        assert_eq!(others, None);
        let reads = doubled(|b, row| _ = is_heavy(b, row));
        assert_eq!(reads, None);
    }
}
