//! Copies into a register only where they change it, for [`super::partial_redundancy`].
//!
//! `@street = leaves ? other : @street` assigns the street in each repetition, and changes it in some. So does a local
//! variable that begins as the street, is assigned in a branch, and becomes the street. The copy moves into the branch.
//! The other path has no assignment any more.

use super::loops::{assigned_in, is_read};
use crate::ir::{Op, Operand, Stmt, VarId};

/// Moves copies into registers that `wanted` accepts, in a list and all lists within.
pub fn narrow(body: &mut Vec<Stmt>, wanted: &impl Fn(VarId) -> bool) {
    let mut out: Vec<Stmt> = Vec::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        for nested in stmt.bodies_mut().into_iter().flatten() {
            narrow(nested, wanted);
        }
        match copied(&stmt).filter(|(to, _)| wanted(*to)) {
            Some((to, from)) => out = sunk(out.clone(), to, from, false).unwrap_or_else(|| and(out, stmt)),
            None => out.push(stmt),
        }
    }
    *body = out;
}

fn copied(stmt: &Stmt) -> Option<(VarId, VarId)> {
    match stmt {
        Stmt::Let { dst, op: Op::Copy, args } => match args[0] {
            Operand::Var(from) => Some((*dst, from)),
            _ => None,
        },
        _ => None,
    }
}

fn and(mut body: Vec<Stmt>, stmt: Stmt) -> Vec<Stmt> {
    body.push(stmt);
    body
}

/// The list with a copy at its end that some path does without. `equal`: the registers are equal where it begins. None:
/// each path needs the copy.
fn sunk(mut body: Vec<Stmt>, to: VarId, from: VarId, equal: bool) -> Option<Vec<Stmt>> {
    if body.last().is_some_and(Stmt::ends_list) {
        return None;
    }
    let changes = |stmt: &Stmt| {
        let assigned = assigned_in(std::slice::from_ref(stmt));
        assigned.contains(&to) || assigned.contains(&from)
    };
    let Some(last) = body.iter().rposition(changes) else { return equal.then_some(body) };
    if is_same(&body[last], to, from) {
        return Some(body);
    }
    // what follows the branch must not see the register's new value too early
    let passed = &body[last + 1..];
    let plain = |s: &Stmt| matches!(s, Stmt::Let { .. } | Stmt::Load { .. } | Stmt::Store { .. });
    if !passed.iter().all(plain) || is_read(passed, to) {
        return None;
    }
    let equal = body[..last].iter().fold(equal, |equal, s| is_same(s, to, from) || equal && !changes(s));
    let Stmt::If { then, otherwise, .. } = &mut body[last] else { return None };
    let sides = [&mut *then, &mut *otherwise].map(|side| sunk(side.clone(), to, from, equal));
    if sides.iter().all(Option::is_none) {
        return None;
    }
    let copy = Stmt::Let { dst: to, op: Op::Copy, args: vec![from.into()] };
    for (side, sunk) in [then, otherwise].into_iter().zip(sides) {
        match sunk {
            Some(sunk) => *side = sunk,
            None if side.last().is_some_and(Stmt::ends_list) => {}
            None => side.push(copy.clone()),
        }
    }
    Some(body)
}

/// Whether the statement makes the registers equal.
fn is_same(stmt: &Stmt, to: VarId, from: VarId) -> bool {
    copied(stmt).is_some_and(|pair| pair == (to, from) || pair == (from, to))
}

#[cfg(test)]
mod tests {
    use super::narrow;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INTS, REFS, program};
    use crate::ir::{Cmp, Op, Operand, Program, Scalar, Stmt, VarId};

    fn copy(b: &mut Builder, dst: VarId, from: VarId) {
        b.push(Stmt::Let { dst, op: Op::Copy, args: vec![from.into()] });
    }

    /// The registers `car` and `next`, and a condition.
    fn narrowed(build: impl Fn(&mut Builder, VarId, VarId, Operand)) -> String {
        let mut program: Program = program(|b, index| {
            let (car, next) = (b.var(Scalar::I32, Some("car".into())), b.var(Scalar::I32, Some("next".into())));
            b.push(Stmt::Load { dst: car, column: REFS, row: index });
            let number = b.load(Scalar::I64, INTS, index);
            let cond = b.icmp(Cmp::Gt, number, Operand::I64(0));
            build(b, car, next, cond);
            let id = b.i64(Op::Widen, &[car.into()]);
            b.store(INTS, index, id);
        });
        narrow(&mut program.funcs[0].body, &|_| true);
        let text = program.to_string();
        let (_, body) = text.split_once("icmp.gt v6, 0\n").unwrap_or_else(|| panic!("{text}"));
        body.to_string()
    }

    fn load(dst: VarId) -> Stmt {
        Stmt::Load { dst, column: REFS, row: Operand::I64(3) }
    }

    #[test]
    fn a_local_that_a_branch_changes() {
        let text = narrowed(|b, car, next, cond| {
            copy(b, next, car);
            b.when(cond, |b| b.push(load(next)));
            copy(b, car, next);
        });
        insta::assert_snapshot!(text, @r#"
          next.5: i32 = copy car.4
          if v7 {
            next.5 = load refs[3]
            car.4 = copy next.5
          }
          v8: i64 = widen car.4
          store ints[v3] = v8
        }
        "#);
    }

    #[test]
    fn a_choice_between_itself_and_another() {
        let text = narrowed(|b, car, next, cond| {
            let otherwise = vec![Stmt::Let { dst: next, op: Op::Copy, args: vec![car.into()] }];
            b.push(Stmt::If { cond, then: vec![load(next)], otherwise });
            copy(b, car, next);
        });
        insta::assert_snapshot!(text, @r#"
          if v7 {
            next.5: i32 = load refs[3]
            car.4 = copy next.5
          } else {
            next.5 = copy car.4
          }
          v8: i64 = widen car.4
          store ints[v3] = v8
        }
        "#);
    }

    #[test]
    fn not_where_the_old_value_is_read_or_each_path_changes_it() {
        let between = narrowed(|b, car, next, cond| {
            copy(b, next, car);
            b.when(cond, |b| b.push(load(next)));
            let old = b.i64(Op::Widen, &[car.into()]);
            b.store(INTS, Operand::I64(0), old);
            copy(b, car, next);
        });
        assert!(between.contains("\n  car.4 = copy next.5"), "{between}");
        let both = narrowed(|b, car, next, cond| {
            b.push(Stmt::If { cond, then: vec![load(next)], otherwise: vec![load(next)] });
            copy(b, car, next);
        });
        assert!(both.contains("\n  car.4 = copy next.5"), "{both}");
        let unequal = narrowed(|b, car, next, cond| {
            copy(b, next, car);
            b.push(load(car));
            b.when(cond, |b| b.push(load(next)));
            copy(b, car, next);
        });
        assert!(unequal.contains("\n  car.4 = copy next.5"), "{unequal}");
    }
}
