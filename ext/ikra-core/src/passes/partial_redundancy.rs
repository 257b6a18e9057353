//! Partial redundancy elimination of loads: the fields of the object that a register refers to stay in registers until
//! the register refers to another object.
//!
//! An example: an actor reads its street's length in every second, and changes streets now and then. The loop over
//! ticks then loads the length once before the loop, and again whenever the register that holds the street is assigned.
//! The usual path through a tick has one gather from memory less.
//!
//! Fires for a column that the loop does not write and loads at a register that it assigns. The register must be
//! assigned before the loop, and must only ever hold ids out of columns that refer to the loaded column's space. Then
//! the row exists, whether or not the program loads it.
//!
//! # Where it pays
//!
//! A load after each assignment takes the place of all others. This costs nothing where the loop surely loads the
//! column between two assignments of the register, whatever decides whether it is assigned. Elsewhere the branches must
//! not make assignments more frequent than loads ([`super::loops::frequencies`]). It saves nothing where each
//! repetition assigns the register.
//!
//! So the pass also carries what is loaded at such a register only where it is assigned. An example is the list of ways
//! on from a street, which an actor reads when it leaves. It is loaded as often as before. But it is loaded together
//! with the length, many ticks before it is needed, so no thread waits for it.

use super::Pass;
use super::loops::{References, assigned_in, assignment_frequencies, frequencies, surely_assigned};
use crate::ir::effects::Effects;
use crate::ir::{Column, ColumnId, Func, Op, Operand, Program, Scalar, Stmt, Var, VarId, walk};
use std::collections::{BTreeMap, BTreeSet, HashSet};

pub const PASS: Pass =
    Pass { name: "partial_redundancy", description: "fields of a referred object until the reference changes", run };

fn run(mut program: Program) -> Program {
    let effects = program.effects();
    loop {
        let mut carries_references = false;
        for func in &mut program.funcs {
            let references = References::of(func, &program.columns);
            let mut body = std::mem::take(&mut func.body);
            let assigned = HashSet::new();
            let mut carrier =
                Carrier { func, references, columns: &program.columns, effects: &effects, assigned, carries: false };
            carrier.list(&mut body);
            carries_references |= carrier.carries;
            func.body = body;
        }
        if !carries_references {
            return program;
        }
        // so that what a carried reference refers to is loaded at the register that carries it
        program = (super::gvn::PASS.run)(program);
    }
}

struct Carrier<'a> {
    func: &'a mut Func,
    references: References,
    columns: &'a [Column],
    effects: &'a [Effects],
    /// The registers that are assigned by now, on whatever path.
    assigned: HashSet<VarId>,
    /// It has carried references.
    carries: bool,
}

/// A column at a register's row.
type Place = (ColumnId, VarId);

/// How a loop uses registers and columns, as far as this pass needs to know.
#[derive(Default)]
struct Uses {
    /// How often a repetition loads the column there.
    loads: BTreeMap<Place, (f64, Scalar)>,
    /// For each register, the columns that were loaded there before each assignment of it.
    left: BTreeMap<VarId, BTreeSet<ColumnId>>,
}

impl Carrier<'_> {
    fn list(&mut self, body: &mut Vec<Stmt>) {
        let mut out: Vec<Stmt> = Vec::with_capacity(body.len());
        let mut known: Vec<VarId> = Vec::new();
        for mut stmt in std::mem::take(body) {
            if let Stmt::Loop { body, .. } = &mut stmt {
                super::copies::narrow(body, &|v| self.references.is_reference(v));
                out.extend(self.carry(body));
            }
            for nested in stmt.bodies_mut().into_iter().flatten() {
                self.list(nested);
            }
            known.extend(surely_assigned(std::slice::from_ref(&stmt)).into_iter().filter(|v| self.assigned.insert(*v)));
            out.push(stmt);
        }
        known.iter().for_each(|v| _ = self.assigned.remove(v));
        *body = out;
    }

    /// The loads to put before a loop. Changes the loop's body to use their registers.
    fn carry(&mut self, body: &mut Vec<Stmt>) -> Vec<Stmt> {
        let changes = assignment_frequencies(body);
        if changes.keys().all(|v| !self.assigned.contains(v)) {
            return Vec::new();
        }
        let mut uses = Uses::default();
        collect(body, &mut Vec::new(), &mut uses);
        frequencies(body, &mut |stmt, often| {
            if let Stmt::Load { dst, column, row: Operand::Var(row) } = stmt {
                uses.loads.entry((*column, *row)).or_insert((0.0, self.func.vars[dst.index()].ty)).0 += often;
            }
        });
        let written = self.written(body);
        uses.loads.retain(|(column, row), _| {
            let space = self.columns[column.index()].space;
            !written[column.index()] && self.assigned.contains(row) && self.references.is_in(Operand::Var(*row), space)
        });
        let rows: BTreeSet<VarId> = uses
            .loads
            .iter()
            .filter(|((_, row), (loaded, _))| changes.get(row).is_some_and(|changed| changed < loaded))
            .map(|((_, row), _)| *row)
            .collect();
        let mut carried: Vec<(Place, VarId)> = Vec::new();
        for (place @ (column, row), (loaded, ty)) in uses.loads {
            let surely = uses.left.get(&row).is_some_and(|left| left.contains(&column));
            if rows.contains(&row) && (surely || changes[&row] <= loaded) {
                let known = &self.columns[column.index()];
                let name = known.name.split_once('@').map(|(_, ivar)| ivar.into());
                self.carries |= known.refers.is_some();
                self.func.vars.push(Var { ty, name });
                carried.push((place, VarId::new(self.func.vars.len() - 1)));
            }
        }
        if !carried.is_empty() {
            replace(body, &carried);
        }
        carried.into_iter().map(load).collect()
    }

    fn written(&self, body: &[Stmt]) -> Vec<bool> {
        let mut written = vec![false; self.columns.len()];
        walk(body, &mut |s| match s {
            Stmt::Store { column, .. } | Stmt::Atomic { column, .. } | Stmt::FetchAdd { column, .. } => {
                written[column.index()] = true;
            }
            Stmt::Call { func, .. } => {
                let callee = &self.effects[func.index()].writes;
                written.iter_mut().zip(callee).for_each(|(written, writes)| *written |= writes);
            }
            _ => {}
        });
        written
    }
}

fn load(((column, row), dst): (Place, VarId)) -> Stmt {
    Stmt::Load { dst, column, row: row.into() }
}

/// `loaded`: what was loaded on this path since the register of its row was assigned.
fn collect(body: &[Stmt], loaded: &mut Vec<Place>, uses: &mut Uses) {
    for stmt in body {
        if let Stmt::Load { column, row: Operand::Var(row), .. } = stmt {
            loaded.push((*column, *row));
        }
        for v in stmt.assigns() {
            let before: BTreeSet<ColumnId> = loaded.iter().filter(|(_, row)| row == v).map(|(c, _)| *c).collect();
            uses.left.entry(*v).and_modify(|left| left.retain(|c| before.contains(c))).or_insert(before);
            loaded.retain(|(_, row)| row != v);
        }
        if let Stmt::Loop { body, .. } = stmt {
            // what was loaded before the loop was loaded before its first repetition only
            let assigned = assigned_in(body);
            loaded.retain(|(_, row)| !assigned.contains(row));
        }
        for body in stmt.bodies() {
            collect(body, &mut loaded.clone(), uses);
            let assigned = assigned_in(body);
            loaded.retain(|(_, row)| !assigned.contains(row));
        }
    }
}

/// Puts loads after each assignment of a row's register, and copies where the loop loaded.
fn replace(body: &mut Vec<Stmt>, carried: &[(Place, VarId)]) {
    let mut out = Vec::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        for nested in stmt.bodies_mut().into_iter().flatten() {
            replace(nested, carried);
        }
        if let Stmt::Load { dst, column, row: Operand::Var(row) } = &stmt
            && let Some((_, register)) = carried.iter().find(|(place, _)| *place == (*column, *row))
        {
            stmt = Stmt::Let { dst: *dst, op: Op::Copy, args: vec![(*register).into()] };
        }
        let again: Vec<Stmt> =
            carried.iter().filter(|((_, row), _)| stmt.assigns().contains(row)).map(|c| load(*c)).collect();
        out.push(stmt);
        out.extend(again);
    }
    *body = out;
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::testing::{INTS, OUT, REFS, SPEED, program};
    use crate::ir::{Cmp, Column, ColumnId, Op, Operand, Program, Scalar, Space, Stmt, Var, VarId};
    use crate::passes::testing::after;

    /// Reads the speed of a car in each round, and changes cars in some rounds.
    fn changing(branches: usize) -> Program {
        program(|b, index| {
            let car = b.var(Scalar::I32, Some("car".into()));
            b.push(Stmt::Load { dst: car, column: REFS, row: index });
            b.repeat(|b, done| {
                let speed = b.load(Scalar::F64, SPEED, car.into());
                b.store(OUT, index, speed);
                let next = b.load(Scalar::I32, REFS, Operand::I64(3));
                let rare = b.load(Scalar::I64, INTS, index);
                let mut bodies = vec![Stmt::Let { dst: car, op: Op::Copy, args: vec![next] }];
                for i in 0..branches {
                    let cond = b.icmp(Cmp::Gt, rare, Operand::I64(i as i64));
                    bodies = vec![Stmt::If { cond, then: bodies, otherwise: vec![] }];
                }
                bodies.into_iter().for_each(|s| b.push(s));
                let end = b.icmp(Cmp::Lt, rare, Operand::I64(0));
                b.when(end, |b| b.push(Stmt::Break(done)));
            });
        })
    }

    fn referring(mut program: Program, last: u32) -> Program {
        program.columns[REFS.index()].refers = Some(Space::Class { hierarchy: 0, first: 1, last });
        program
    }

    #[test]
    fn a_field_is_loaded_when_the_reference_changes() {
        insta::assert_snapshot!(after(&[PASS], referring(changing(2), 2)), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          car.4: i32 = load refs[v3]
          speed.11: f64 = load Car@speed[car.4]
          loop L0 {
            v5: f64 = copy speed.11
            store out[v3] = v5
            v6: i32 = load refs[3]
            v7: i64 = load ints[v3]
            v8: bool = icmp.gt v7, 0
            v9: bool = icmp.gt v7, 1
            if v9 {
              if v8 {
                car.4 = copy v6
                speed.11 = load Car@speed[car.4]
              }
            }
            v10: bool = icmp.lt v7, 0
            if v10 {
              break L0
            }
          }
        }
        "#);
    }

    /// As [`changing`], and reads the weight before it changes cars, or elsewhere and more seldom.
    fn leaving(looks_when_leaving: bool) -> Program {
        let mut program = referring(changing(if looks_when_leaving { 2 } else { 1 }), 2);
        let weight = ColumnId::new(program.columns.len());
        program.columns.push(Column { name: "Car@weight".into(), ..program.columns[SPEED.index()].clone() });
        let func = &mut program.funcs[0];
        let value = VarId::new(func.vars.len());
        func.vars.push(Var { ty: Scalar::F64, name: None });
        let car = func.vars.iter().position(|v| v.name.as_deref() == Some("car")).map(VarId::new).expect("a car");
        let Some(Stmt::Loop { body, .. }) = func.body.last_mut() else { panic!("ends with the loop") };
        let look = [
            Stmt::Load { dst: value, column: weight, row: car.into() },
            Stmt::Store { column: OUT, row: Operand::I64(0), value: value.into() },
        ];
        let outer = body.iter_mut().find_map(|s| match s {
            Stmt::If { cond, then, otherwise } => Some((*cond, then, otherwise)),
            _ => None,
        });
        let Some((cond, then, otherwise)) = outer else { panic!("a branch") };
        if looks_when_leaving {
            then.splice(0..0, look);
        } else {
            otherwise.push(Stmt::If { cond, then: look.to_vec(), otherwise: vec![] });
        }
        program
    }

    #[test]
    fn what_is_loaded_when_the_reference_changes_is_loaded_with_the_rest() {
        insta::assert_snapshot!(after(&[PASS], leaving(true)), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          car.4: i32 = load refs[v3]
          speed.12: f64 = load Car@speed[car.4]
          weight.13: f64 = load Car@weight[car.4]
          loop L0 {
            v5: f64 = copy speed.12
            store out[v3] = v5
            v6: i32 = load refs[3]
            v7: i64 = load ints[v3]
            v8: bool = icmp.gt v7, 0
            v9: bool = icmp.gt v7, 1
            if v9 {
              v11: f64 = copy weight.13
              store out[0] = v11
              if v8 {
                car.4 = copy v6
                speed.12 = load Car@speed[car.4]
                weight.13 = load Car@weight[car.4]
              }
            }
            v10: bool = icmp.lt v7, 0
            if v10 {
              break L0
            }
          }
        }
        "#);
    }

    #[test]
    fn not_where_the_reference_changes_more_often_than_it_is_used() {
        let text = after(&[PASS], leaving(false));
        assert_eq!(text.matches("load Car@weight").count(), 1, "{text}");
    }

    #[test]
    fn one_branch_is_enough() {
        let text = after(&[PASS], referring(changing(1), 2));
        assert_eq!(text.matches("      speed.10 = load Car@speed[car.4]\n").count(), 1, "{text}");
        assert_eq!(text.matches("load Car@speed").count(), 2, "{text}");
    }

    #[test]
    fn not_where_the_reference_changes_as_often() {
        let program = referring(changing(0), 2);
        assert_eq!(after(&[PASS], program.clone()), after(&[], program));
    }

    #[test]
    fn not_where_the_reference_may_be_to_something_without_the_field() {
        for program in [changing(2), referring(changing(2), 3)] {
            assert_eq!(after(&[PASS], program.clone()), after(&[], program));
        }
    }

    #[test]
    fn not_where_the_field_is_written() {
        let mut program = referring(changing(2), 2);
        let Some(Stmt::Loop { body, .. }) = program.funcs[0].body.last_mut() else { panic!("ends with the loop") };
        body.insert(0, Stmt::Store { column: ColumnId(5), row: Operand::I32(1), value: Operand::float(0.0) });
        assert_eq!(after(&[PASS], program.clone()), after(&[], program));
    }
}
