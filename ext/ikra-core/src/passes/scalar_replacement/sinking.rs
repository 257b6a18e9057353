//! Which objects that leave a function may be made where they leave it, and not before.
//!
//! Until then an object is registers. `sum += v` of a Struct in a loop makes one object in each repetition, of which
//! only the last one leaves. (Partial escape analysis: Stadler, Würthinger and Mössenböck, *Partial Escape Analysis and
//! Scalar Replacement for Java*, CGO 2014.)
//!
//! An object *leaves* where its id is stored in a column, and only there. Nothing reads any of its names afterwards
//! ([`super::Aliases`]). So each object leaves once at most, it has its last fields there, and no more objects are made
//! than before. Nobody can compare its id before. Fires only where that saves something ([`Group::is_worth_sinking`]).

use super::Group;
use super::views::Views;
use crate::ir::{Func, HeapId, Op, Operand, Scalar, SiteId, Stmt, Var, VarId, walk};
use std::collections::BTreeSet;

/// A list of statements within others: the branches and loops around it, from the outermost. True: a loop.
type Place = Vec<(usize, bool)>;

/// Where a group's objects are made, and where they leave.
#[derive(Default)]
struct Places {
    made: Vec<Place>,
    left: Vec<Place>,
    /// The number of lists so far.
    lists: usize,
}

impl Places {
    fn find(&mut self, group: &Group, body: &[Stmt], here: &mut Place) {
        for stmt in body {
            match stmt {
                Stmt::Alloc { dst, .. } if group.vars.contains(dst) => self.made.push(here.clone()),
                Stmt::Store { value: Operand::Var(value), .. } if group.vars.contains(value) => {
                    self.left.push(here.clone());
                }
                Stmt::Block { body, .. } => self.find(group, body, here),
                other => {
                    for nested in other.bodies() {
                        self.lists += 1;
                        here.push((self.lists, matches!(other, Stmt::Loop { .. })));
                        self.find(group, nested, here);
                        here.pop();
                    }
                }
            }
        }
    }
}

impl Group {
    /// Whether objects are made where others than all that leave may be: in a loop that they leave behind it, or before
    /// a branch in which alone they leave.
    pub fn is_worth_sinking(&self, func: &Func) -> bool {
        let mut places = Places::default();
        places.find(self, &func.body, &mut Place::new());
        let leaves_as_often = |made: &Place, left: &Place| {
            made.strip_prefix(left.as_slice()).is_some_and(|between| between.iter().all(|(_, is_loop)| !is_loop))
        };
        places.made.iter().any(|made| !places.left.iter().any(|left| leaves_as_often(made, left)))
    }

    /// Whether each register surely holds an object of the group, in a form from which the id that leaves can be made.
    pub fn may_leave(&self, func: &Func, views: &Views) -> bool {
        let mut fits = true;
        walk(&func.body, &mut |stmt| match stmt {
            // it may be nil, or a number
            Stmt::Let { dst, args, op } if self.vars.contains(dst) => {
                let sources = if *op == Op::Select { &args[1..] } else { &args[..1] };
                fits &= sources.iter().all(|source| matches!(source, Operand::Var(_)));
            }
            Stmt::Alloc { dst, count, .. } if self.vars.contains(dst) => {
                fits &= views.has(*dst) || *count == Operand::I64(1);
            }
            Stmt::Store { row, value: Operand::Var(value), .. } if self.vars.contains(value) => {
                fits &= views.word(*value).is_some() || !views.has(*value);
                fits &= !matches!(row, Operand::Var(row) if self.vars.contains(row));
            }
            _ => {}
        });
        fits
    }
}

/// Makes objects that leave.
pub struct Maker {
    heap: HeapId,
    site: SiteId,
    /// The group's registers of 64 bits.
    of_64_bits: BTreeSet<VarId>,
    /// Registers behind those of the function.
    vars: Vec<Var>,
    first: usize,
}

impl Maker {
    pub fn new(func: &Func, group: &Group) -> Option<Self> {
        let mut found = None;
        walk(&func.body, &mut |stmt| {
            if let Stmt::Alloc { dst, heap, site, .. } = stmt
                && group.vars.contains(dst)
            {
                found = found.or(Some((*heap, *site)));
            }
        });
        let of_64_bits = group.vars.iter().copied().filter(|v| func.vars[v.index()].ty == Scalar::I64).collect();
        found.map(|(heap, site)| Self { heap, site, of_64_bits, vars: Vec::new(), first: func.vars.len() })
    }

    pub fn into_vars(self) -> Vec<Var> {
        self.vars
    }

    fn temp(&mut self, ty: Scalar) -> VarId {
        self.vars.push(Var { ty, name: None });
        VarId::new(self.first + self.vars.len() - 1)
    }

    fn op(&mut self, ty: Scalar, op: Op, args: &[Operand], out: &mut Vec<Stmt>) -> Operand {
        let dst = self.temp(ty);
        out.push(Stmt::Let { dst, op, args: args.to_vec() });
        dst.into()
    }

    /// A new row with these values of the group's fields, in the order of the fields. Returns the id that leaves, in
    /// the form that `name` holds. `array`: the length of an array, and the number of its rows.
    pub fn make(
        &mut self,
        group: &Group,
        name: VarId,
        array: Option<(i64, i64)>,
        values: &[Operand],
        out: &mut Vec<Stmt>,
    ) -> Operand {
        let (count, row_ty) = array.map_or((1, Scalar::I32), |(_, count)| (count, Scalar::I64));
        let row = self.temp(row_ty);
        out.push(Stmt::Alloc { dst: row, heap: self.heap, count: Operand::I64(count), site: self.site });
        for ((column, at), value) in group.fields.keys().zip(values) {
            if !group.stored.contains(&(*column, *at)) {
                continue;
            }
            let row = match at {
                0 => row.into(),
                at => self.op(row_ty, Op::Add, &[row.into(), Operand::I64(*at)], out),
            };
            out.push(Stmt::Store { column: *column, row, value: *value });
        }
        match array {
            Some((length, _)) => {
                let high = self.op(Scalar::I64, Op::Shl, &[row.into(), Operand::I64(32)], out);
                self.op(Scalar::I64, Op::Or, &[high, Operand::I64(length)], out)
            }
            None if self.of_64_bits.contains(&name) => self.op(Scalar::I64, Op::Widen, &[row.into()], out),
            None => row.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{OUT, REFS, SPEED, heaps, program};
    use crate::ir::{Cmp, HeapId, Op, Operand, Scalar, SiteId, Stmt, VarId};
    use crate::passes::testing::after;

    fn car(b: &mut Builder, speed: Operand) -> Operand {
        let id = b.alloc(Scalar::I32, HeapId(0), Operand::I64(1), SiteId(4));
        b.store(SPEED, id, speed);
        id
    }

    /// A car that is made anew in each repetition. `end` is given its name, and that of the car before.
    fn racing(end: impl FnOnce(&mut Builder, Operand, [VarId; 2])) -> String {
        let mut program = program(|b, index| {
            let (now, before, i) = (b.temp(Scalar::I32), b.temp(Scalar::I32), b.temp(Scalar::I64));
            let first = car(b, Operand::float(1.0));
            b.set(now, first);
            b.set(before, first);
            b.set(i, Operand::I64(0));
            b.repeat(|b, done| {
                let speed = b.load(Scalar::F64, SPEED, now.into());
                let twice = b.f64(Op::FMul, &[speed, Operand::float(2.0)]);
                let next = car(b, twice);
                b.set(before, now.into());
                b.set(now, next);
                b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
                let ends = b.icmp(Cmp::Ge, i.into(), index);
                b.when(ends, |b| b.push(Stmt::Break(done)));
            });
            end(b, index, [now, before]);
        });
        heaps(&mut program);
        after(&[PASS], program)
    }

    /// Whether the loop still makes cars.
    fn makes_many(end: impl FnOnce(&mut Builder, Operand, [VarId; 2])) -> bool {
        let text = racing(end);
        let body = text.split("loop").nth(1).and_then(|rest| rest.split("\n  }").next());
        body.unwrap_or_default().contains("alloc")
    }

    #[test]
    fn the_last_of_a_loop_is_made_behind_it() {
        insta::assert_snapshot!(racing(|b, index, [now, _]| b.store(REFS, index, now.into())), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: f64 = copy 1.0
          v4: i64 = copy 0
          loop L0 {
            v5: f64 = fmul v3, 2.0
            v3 = copy v5
            v4 = add v4, 1
            v6: bool = icmp.ge v4, job.0
            if v6 {
              break L0
            }
          }
          v7: i32 = alloc h0 1 else s4
          store Car@speed[v7] = v5
          store refs[job.0] = v7
        }
        "#);
    }

    #[test]
    fn two_objects_leave() {
        assert!(!makes_many(|b, index, [now, before]| {
            b.store(REFS, index, now.into());
            b.store(REFS, Operand::I64(0), before.into());
        }));
    }

    #[test]
    fn one_that_leaves_twice_is_one_row() {
        assert!(makes_many(|b, index, [now, _]| {
            b.store(REFS, index, now.into());
            b.store(REFS, Operand::I64(0), now.into());
        }));
    }

    #[test]
    fn one_that_is_used_after_it_left_is_a_row() {
        assert!(makes_many(|b, index, [now, _]| {
            b.store(REFS, index, now.into());
            b.store(SPEED, now.into(), Operand::float(7.0));
        }));
        assert!(makes_many(|b, index, [now, _]| {
            b.store(REFS, index, now.into());
            let speed = b.load(Scalar::F64, SPEED, now.into());
            b.store(OUT, index, speed);
        }));
    }

    #[test]
    fn one_that_changes_under_another_name_is_a_row() {
        assert!(makes_many(|b, index, [now, before]| {
            let there = b.icmp(Cmp::Gt, index, Operand::I64(3));
            b.when(there, |b| b.set(before, now.into()));
            b.store(SPEED, before.into(), Operand::float(7.0));
            b.store(REFS, index, now.into());
        }));
    }

    #[test]
    fn one_that_may_be_nil_or_is_compared_is_a_row() {
        assert!(makes_many(|b, index, [now, _]| {
            let there = b.icmp(Cmp::Gt, index, Operand::I64(3));
            b.when(there, |b| b.set(now, Operand::I32(-1)));
            b.store(REFS, index, now.into());
        }));
        assert!(makes_many(|b, index, [now, before]| {
            let same = b.icmp(Cmp::Eq, now.into(), before.into());
            b.when(same, |b| b.store(OUT, index, Operand::float(0.0)));
            b.store(REFS, index, now.into());
        }));
    }

    #[test]
    fn what_leaves_in_one_branch_is_made_there() {
        let mut program = program(|b, index| {
            let id = car(b, Operand::float(1.0));
            let there = b.icmp(Cmp::Gt, index, Operand::I64(3));
            b.when(there, |b| b.store(REFS, index, id));
        });
        heaps(&mut program);
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: bool = icmp.gt job.0, 3
          if v3 {
            v4: i32 = alloc h0 1 else s4
            store Car@speed[v4] = 1.0
            store refs[job.0] = v4
          }
        }
        "#);
    }
}
