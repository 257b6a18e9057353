//! Check merging: checks that follow each other become one branch.
//!
//! A check is three instructions on a GPU: a comparison, the number of the site that fails, and a branch. If checks
//! only compare lengths and indices, with no load between them, one condition says whether any of them fails. That
//! condition takes one instruction for each check:
//!
//! ```text
//! if a { trap s0 }         x = i + 1
//! x = i + 1                b = x >= n
//! b = x >= n         →     any = b | a
//! if b { trap s1 }         if any { if a { trap s0 }; trap s1 }
//! ```
//!
//! The statements between the checks have neither effect nor precondition, so they may come first. The inner tests keep
//! the order of the checks, so the same exception is raised. The merged condition combines the checks from the last to
//! the first. In the opposite order, compilers would keep the partial results for the first two, the first three and so
//! on in registers, for the inner tests. Himeno's kernel has 17 checks in a row. They took 51 instructions and now take
//! 18; code written by hand has none.
//!
//! Runs after [`super::checks`], which brings checks together. Loops are left as they are. As a rule, checks in loops
//! are made before the loop, and the size of the remaining body decides how far compilers unroll it. Only in
//! [`super::CUDA`]: processors with branch prediction gain nothing.

use super::loops::is_movable;
use super::widths::short;
use super::{Pass, Versioned};
use crate::ir::{Func, Op, Operand, Program, Scalar, Stmt, Var, VarId, walk};
use std::collections::HashSet;

pub const PASS: Pass<Versioned> = Pass {
    name: "merge_checks",
    description: "one branch for checks that follow each other",
    run: |state| Versioned { program: merge_checks(state.program), ..state },
};

/// How often merging is tried.
const MAX_ATTEMPTS: usize = 3;

/// The program, for processors whose threads branch together.
pub fn merge_checks(program: Program) -> Program {
    let mut fixed = vec![HashSet::new(); program.funcs.len()];
    let mut before = None;
    // A statement that fits into 32 bits only because a check has held stays behind that check.
    for _ in 0..MAX_ATTEMPTS {
        let joined = joined(&program, &fixed);
        if joined == program {
            return program;
        }
        let (before, after) = (before.get_or_insert_with(|| short(&program)), short(&joined));
        let mut lost = false;
        for (fixed, (before, after)) in fixed.iter_mut().zip(before.iter().zip(&after)) {
            let wider = (0..before.len()).filter(|v| before[*v] && !after[*v]).map(VarId::new);
            wider.for_each(|v| lost |= fixed.insert(v));
        }
        if !lost {
            return joined;
        }
    }
    program
}

/// `fixed`: the registers of each function whose computation must not move.
fn joined(program: &Program, fixed: &[HashSet<VarId>]) -> Program {
    let mut program = program.clone();
    for (func, fixed) in program.funcs.iter_mut().zip(fixed) {
        let mut body = std::mem::take(&mut func.body);
        list(func, fixed, &mut body);
        func.body = body;
    }
    program
}

fn list(func: &mut Func, fixed: &HashSet<VarId>, body: &mut Vec<Stmt>) {
    let mut group = Group::default();
    for mut stmt in std::mem::take(body) {
        if let Some(cond) = condition(&stmt) {
            group.checks(cond, stmt);
            continue;
        }
        if group.takes(&stmt, fixed) {
            group.since.push(stmt);
            continue;
        }
        group.end(func, body);
        if !matches!(stmt, Stmt::Loop { .. }) {
            stmt.bodies_mut().into_iter().flatten().for_each(|inner| list(func, fixed, inner));
        }
        body.push(stmt);
    }
    group.end(func, body);
}

/// The condition of a statement that only raises where that condition holds.
fn condition(stmt: &Stmt) -> Option<Operand> {
    let Stmt::If { cond: cond @ Operand::Var(_), then, otherwise } = stmt else { return None };
    let [before @ .., Stmt::Trap { .. }] = &then[..] else { return None };
    let silent = |stmt: &Stmt| match stmt {
        Stmt::Let { op, .. } => *op != Op::Random,
        Stmt::Load { .. } => true,
        _ => false,
    };
    (otherwise.is_empty() && before.iter().all(silent)).then_some(*cond)
}

/// Whether a check's raising side is `what`; always true if `what` is empty.
fn does(check: &Stmt, what: &[Stmt]) -> bool {
    matches!(check, Stmt::If { then, .. } if what.is_empty() || then == what)
}

/// Checks, and the statements that may come before them.
#[derive(Default)]
struct Group {
    first: Vec<Stmt>,
    checks: Vec<(Operand, Stmt)>,
    /// What the checks read or assign.
    touched: HashSet<VarId>,
    /// The statements after the last check.
    since: Vec<Stmt>,
}

impl Group {
    fn checks(&mut self, cond: Operand, check: Stmt) {
        self.first.append(&mut self.since);
        walk(std::slice::from_ref(&check), &mut |stmt| {
            self.touched.extend(stmt.assigns());
            stmt.reads(|operand| {
                if let Operand::Var(v) = operand {
                    self.touched.insert(v);
                }
            });
        });
        self.checks.push((cond, check));
    }

    /// Whether a statement behind the checks may stand before them.
    fn takes(&self, stmt: &Stmt, fixed: &HashSet<VarId>) -> bool {
        let Stmt::Let { dst, op, .. } = stmt else { return false };
        !self.checks.is_empty() && is_movable(*op) && !self.touched.contains(dst) && !fixed.contains(dst)
    }

    fn end(&mut self, func: &mut Func, out: &mut Vec<Stmt>) {
        let Self { first, mut checks, since, .. } = std::mem::take(self);
        out.extend(first);
        if checks.len() < 2 {
            out.extend(checks.into_iter().map(|(_, check)| check));
            out.extend(since);
            return;
        }
        let mut any = checks[checks.len() - 1].0;
        for (cond, _) in checks.iter().rev().skip(1) {
            func.vars.push(Var { ty: Scalar::Bool, name: None });
            let dst = VarId::new(func.vars.len() - 1);
            out.push(Stmt::Let { dst, op: Op::Or, args: vec![any, *cond] });
            any = dst.into();
        }
        // The last check needs no test, nor do those before it that raise the same.
        let mut last = Vec::new();
        while let Some((_, Stmt::If { then, .. })) = checks.pop_if(|(_, check)| does(check, &last)) {
            last = then;
        }
        let mut then: Vec<Stmt> = checks.into_iter().map(|(_, check)| check).collect();
        then.append(&mut last);
        out.push(Stmt::If { cond: any, then, otherwise: Vec::new() });
        out.extend(since);
    }
}

#[cfg(test)]
mod tests {
    use super::merge_checks;
    use crate::ir::build::Builder;
    use crate::ir::testing::{DOMAIN, INTS, OVERFLOW, ZERO, program, turned};
    use crate::ir::{Cmp, Op, Operand, ParamId, Program, Scalar, SiteId, Stmt, verify};
    use crate::passes::widths::short;

    /// `raise if row >= n`
    fn check(b: &mut Builder, row: Operand, site: SiteId) {
        let n = b.i64(Op::Param(ParamId(0)), &[]);
        let outside = b.icmp(Cmp::Ge, row, n);
        b.trap_if(outside, site, if site == DOMAIN { vec![row] } else { Vec::new() });
    }

    fn after(program: Program) -> String {
        let joined = merge_checks(program);
        verify::verify(&joined).expect("a program in order");
        let text = joined.to_string();
        text[text.find("  v3:").expect("a body")..].to_string()
    }

    fn is_left(program: &Program) -> bool {
        merge_checks(program.clone()) == *program
    }

    #[test]
    fn checks_with_arithmetic_between_are_one_branch_that_asks_them_in_their_order() {
        let program = program(|b, index| {
            check(b, index, DOMAIN);
            let next = b.i64(Op::Xor, &[index, Operand::I64(1)]);
            check(b, next, ZERO);
            let last = b.i64(Op::Xor, &[index, Operand::I64(2)]);
            check(b, last, OVERFLOW);
            let x = b.load(Scalar::I64, INTS, next);
            b.store(INTS, last, x);
        });
        insta::assert_snapshot!(after(program), @r#"
          v3: i64 = index
          v4: i64 = param p0 "n"
          v5: bool = icmp.ge v3, v4
          v6: i64 = xor v3, 1
          v7: i64 = param p0 "n"
          v8: bool = icmp.ge v6, v7
          v9: i64 = xor v3, 2
          v10: i64 = param p0 "n"
          v11: bool = icmp.ge v9, v10
          v13: bool = or v11, v8
          v14: bool = or v13, v5
          if v14 {
            if v5 {
              trap s1 v3
            }
            if v8 {
              trap s3
            }
            trap s0
          }
          v12: i64 = load ints[v6]
          store ints[v9] = v12
        }
        "#);
    }

    #[test]
    fn what_raises_the_same_is_not_asked_apart() {
        let program = program(|b, index| {
            check(b, index, DOMAIN);
            (0..3).for_each(|row| check(b, Operand::I64(row), ZERO));
        });
        let after = after(program);
        assert_eq!((after.matches("if ").count(), after.matches("trap ").count()), (2, 2), "{after}");
    }

    #[test]
    fn what_has_an_effect_or_a_precondition_parts_them() {
        let with = |between: fn(&mut Builder, Operand)| {
            program(|b, index| {
                check(b, index, DOMAIN);
                between(b, index);
                check(b, Operand::I64(7), ZERO);
            })
        };
        assert!(!is_left(&with(|_, _| ())), "nothing parts them");
        let store = |b: &mut Builder, index: Operand| b.store(INTS, index, Operand::I64(1));
        assert!(is_left(&with(store)), "a store");
        let load = |b: &mut Builder, index: Operand| {
            b.load(Scalar::I64, INTS, index);
        };
        assert!(is_left(&with(load)), "a load");
        let divide = |b: &mut Builder, index: Operand| {
            b.i64(Op::UDiv, &[Operand::I64(100), index]);
        };
        assert!(is_left(&with(divide)), "a division, before which is checked by what");
    }

    #[test]
    fn what_a_check_has_read_is_not_changed_before_it() {
        let changes = |changed: bool| {
            program(|b, index| {
                let row = b.var(Scalar::I64, Some("row".into()));
                let other = b.var(Scalar::I64, Some("other".into()));
                b.set(row, index);
                check(b, row.into(), DOMAIN);
                b.set(if changed { row } else { other }, Operand::I64(7));
                check(b, index, ZERO);
                b.store(INTS, row.into(), other.into());
            })
        };
        assert!(!is_left(&changes(false)));
        assert!(is_left(&changes(true)));
    }

    #[test]
    fn what_fits_into_32_bits_behind_a_check_alone_stays_there() {
        let checked = |times: i64| {
            program(|b, index| {
                let row = b.load(Scalar::I64, INTS, index);
                let below = b.icmp(Cmp::Lt, row, Operand::I64(0));
                b.trap_if(below, OVERFLOW, Vec::new());
                let above = b.icmp(Cmp::Gt, row, Operand::I64(1000));
                b.trap_if(above, ZERO, Vec::new());
                let place = b.i64(Op::Mul, &[row, Operand::I64(times)]);
                let outside = b.icmp(Cmp::Ge, place, Operand::I64(5000));
                b.trap_if(outside, DOMAIN, vec![place]);
                b.store(INTS, place, row);
            })
        };
        let before = checked(8);
        let joined = merge_checks(before.clone());
        assert_ne!(joined, before, "the first two");
        let (was, is) = (short(&before), short(&joined));
        assert_eq!(was[0][..], is[0][..was[0].len()]);
        assert!(was[0].contains(&true));
        assert_eq!(joined.to_string().matches("trap s1 ").count(), 1);
    }

    #[test]
    fn checks_in_loops_stay_apart() {
        let looped = program(|b, index| {
            let i = b.var(Scalar::I64, Some("i".into()));
            b.set(i, Operand::I64(0));
            turned(b, (i, 1, Operand::I64(9)), false, |b, _| {
                check(b, index, DOMAIN);
                check(b, i.into(), ZERO);
            });
        });
        assert!(is_left(&looped));
        let nested = program(|b, index| {
            let odd = b.icmp(Cmp::Eq, index, Operand::I64(1));
            b.when(odd, |b| {
                check(b, index, DOMAIN);
                check(b, Operand::I64(7), ZERO);
                b.push(Stmt::Return(Vec::new()));
            });
        });
        assert!(!is_left(&nested), "those of a branch do not");
    }
}
