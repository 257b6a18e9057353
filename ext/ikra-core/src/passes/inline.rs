//! Inlining: copies small functions, and functions that are called from one place, to where they are called.
//!
//! Fires for functions that cannot reach themselves. A `Return` becomes assignments to the call's results. If
//! statements follow, it also becomes a `Break` to the end of a block. The functions themselves stay; [`super::dce`]
//! drops those that are no longer called.

use super::Pass;
use crate::ir::visit::{breaks_to, freshen_labels, size, walk_mut};
use crate::ir::{Func, FuncId, LabelId, Op, Operand, Program, Stmt, VarId, walk};

pub const PASS: Pass = Pass { name: "inline", description: "functions where they are called", run };

/// Functions of at most this many statements are copied to every call.
const MAX_INLINED_STATEMENTS: usize = 60;
/// Larger ones are copied to all of their calls if all copies together have at most this many statements.
const MAX_COPIED_STATEMENTS: usize = 320;
/// A caller with this many statements inlines no more calls.
const CALLER: usize = 3000;

fn run(mut program: Program) -> Program {
    let calls = call_counts(&program);
    let cyclic = cyclic(&program);
    for func in callees_first(&program) {
        let mut grown = std::mem::take(&mut program.funcs[func.index()].body);
        let mut room = CALLER.saturating_sub(size(&grown));
        let mut shell = Func { body: Vec::new(), ..program.funcs[func.index()].clone() };
        expand(&mut grown, &mut shell, &mut room, &|callee: FuncId| {
            let body = &program.funcs[callee.index()];
            let (calls, size) = (calls[callee.index()], size(&body.body));
            let small = calls == 1 || size <= MAX_INLINED_STATEMENTS || calls * size <= MAX_COPIED_STATEMENTS;
            // a stage, whose result elements share, stays a function
            (!cyclic[callee.index()] && small && body.stage.is_none()).then_some(body)
        });
        shell.body = grown;
        program.funcs[func.index()] = shell;
    }
    program
}

fn call_counts(program: &Program) -> Vec<usize> {
    let mut counts = vec![0; program.funcs.len()];
    for func in &program.funcs {
        walk(&func.body, &mut |s| {
            if let Stmt::Call { func, .. } = s {
                counts[func.index()] += 1;
            }
        });
    }
    counts
}

/// Functions, each after those that it calls. A cycle is broken at any of its calls.
fn callees_first(program: &Program) -> Vec<FuncId> {
    fn visit(program: &Program, func: FuncId, seen: &mut [bool], order: &mut Vec<FuncId>) {
        if std::mem::replace(&mut seen[func.index()], true) {
            return;
        }
        walk(&program.funcs[func.index()].body, &mut |s| {
            if let Stmt::Call { func, .. } = s {
                visit(program, *func, seen, order);
            }
        });
        order.push(func);
    }
    let mut order = Vec::new();
    visit(program, program.entry, &mut vec![false; program.funcs.len()], &mut order);
    order
}

/// For each function, whether it can reach itself.
fn cyclic(program: &Program) -> Vec<bool> {
    (0..program.funcs.len())
        .map(|start| {
            let mut seen = vec![false; program.funcs.len()];
            let mut next = vec![start];
            while let Some(at) = next.pop() {
                walk(&program.funcs[at].body, &mut |s| {
                    if let Stmt::Call { func, .. } = s
                        && !std::mem::replace(&mut seen[func.index()], true)
                    {
                        next.push(func.index());
                    }
                });
            }
            seen[start]
        })
        .collect()
}

fn expand<'a>(body: &mut Vec<Stmt>, caller: &mut Func, room: &mut usize, callee: &impl Fn(FuncId) -> Option<&'a Func>) {
    let mut out: Vec<Stmt> = Vec::with_capacity(body.len());
    for mut stmt in std::mem::take(body) {
        if out.last().is_some_and(Stmt::ends_list) {
            // a callee that never returns
            break;
        }
        for nested in stmt.bodies_mut().into_iter().flatten() {
            expand(nested, caller, room, callee);
        }
        let Stmt::Call { func, args, dsts, .. } = &stmt else {
            out.push(stmt);
            continue;
        };
        match callee(*func) {
            Some(callee) if size(&callee.body) <= *room => {
                *room -= size(&callee.body);
                splice(callee, args, dsts, caller, &mut out);
            }
            _ => out.push(stmt),
        }
        // A callee that never returns ends the list.
        if out.last().is_some_and(Stmt::ends_list) {
            break;
        }
    }
    *body = out;
}

/// Appends the callee's body, with registers and labels of its own.
fn splice(callee: &Func, args: &[Operand], dsts: &[VarId], caller: &mut Func, out: &mut Vec<Stmt>) {
    let first = caller.vars.len();
    caller.vars.extend(callee.vars.iter().cloned());
    let moved = |v: VarId| VarId::new(first + v.index());
    let copy = |dst: VarId, value: Operand| Stmt::Let { dst, op: Op::Copy, args: vec![value] };
    out.extend(callee.params.iter().zip(args).map(|(param, arg)| copy(moved(*param), *arg)));

    let mut body = callee.body.clone();
    freshen_labels(&mut body, caller);
    walk_mut(&mut body, &mut |stmt| {
        stmt.assigns_mut().iter_mut().for_each(|v| *v = moved(*v));
        stmt.reads_mut(|o| {
            if let Operand::Var(v) = o {
                *v = moved(*v);
            }
        });
    });
    let label = LabelId::new(caller.labels);
    caller.labels += 1;
    land_returns(&mut body, true, label, &|values: &[Operand]| {
        values.iter().zip(dsts).map(|(value, dst)| copy(*dst, *value)).collect()
    });
    if breaks_to(&body, label) {
        out.push(Stmt::Block { label, body });
    } else {
        out.append(&mut body);
    }
}

/// Replaces every `Return` by `results` and, where it is not the last thing that happens, a break.
fn land_returns(body: &mut Vec<Stmt>, last: bool, label: LabelId, results: &impl Fn(&[Operand]) -> Vec<Stmt>) {
    let count = body.len();
    for (i, stmt) in body.iter_mut().enumerate() {
        let last = last && i + 1 == count && !matches!(stmt, Stmt::Loop { .. });
        for nested in stmt.bodies_mut().into_iter().flatten() {
            land_returns(nested, last, label, results);
        }
    }
    if let Some(Stmt::Return(values)) = body.last() {
        let landed = results(values);
        body.pop();
        body.extend(landed);
        if !last {
            body.push(Stmt::Break(label));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INTS, STACK, with_functions};
    use crate::ir::{Cmp, Func, FuncId, Op, Operand, Scalar, Stmt};
    use crate::passes::testing::after;

    fn absolute() -> Func {
        let mut b = Builder::new("abs".into(), vec![Scalar::I64]);
        let x = b.param(Scalar::I64, Some("x".into()));
        let negative = b.icmp(Cmp::Lt, x.into(), Operand::I64(0));
        b.when(negative, |b| {
            let minus = b.i64(Op::Sub, &[Operand::I64(0), x.into()]);
            b.push(Stmt::Return(vec![minus]));
        });
        b.push(Stmt::Return(vec![x.into()]));
        b.finish()
    }

    #[test]
    fn a_return_in_the_middle_breaks_a_block() {
        let program = with_functions(vec![absolute()], |b, index| {
            let result = b.call(FuncId(1), vec![index], &[Scalar::I64], None);
            b.store(INTS, index, result[0]);
        });
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          x.5: i64 = copy v3
          block L0 {
            v6: bool = icmp.lt x.5, 0
            if v6 {
              v7: i64 = sub 0, x.5
              v4: i64 = copy v7
              break L0
            }
            v4 = copy x.5
          }
          store ints[v3] = v4
        }

        func f1 "abs" (x.0: i64) -> i64 {
          v1: bool = icmp.lt x.0, 0
          if v1 {
            v2: i64 = sub 0, x.0
            return v2
          }
          return x.0
        }
        "#);
    }

    #[test]
    fn recursive_functions_stay() {
        let mut b = Builder::new("down".into(), vec![]);
        let x = b.param(Scalar::I64, Some("x".into()));
        b.call(FuncId(1), vec![x.into()], &[], Some(STACK));
        let mut down = b.finish();
        down.recursive = true;
        let program = with_functions(vec![down], |b, index| {
            b.call(FuncId(1), vec![index], &[], None);
        });
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          call f1 "down" v3
        }

        func f1 "down" (x.0: i64) recursive {
          call f1 "down" x.0 depth s2
        }
        "#);
    }
}
