//! Guards in loops that rarely skip: `next if other.equal?(self)`.
//!
//! Neighbouring jobs skip in different repetitions, so they would part in each. Instead, all of them run what the guard
//! skips, and a job that skips it keeps its earlier values:
//!
//! ```text
//! if other == self { } else { …; sum = sum + x }
//! →
//! …; sum' = sum + x; sum = select(other == self, sum, sum')
//! ```
//!
//! Here: the function in which such guards are selections ([`converted`]). A guard is converted if it compares for
//! equality, and if what it skips changes registers alone and may run for every job. Not here: guards that mostly skip,
//! at which jobs part ([`super::parting`]).

use super::fresh;
use super::parting::Facts;
use crate::ir::visit::walk_mut;
use crate::ir::{Func, Op, Operand, Program, Stmt, VarId};
use crate::passes::loops::References;
use std::collections::HashMap;

/// The entry without such guards. None: it has none.
pub fn converted(program: &Program) -> Option<Func> {
    let entry = &program.funcs[program.entry.index()];
    let references = References::of(entry, &program.columns);
    let facts = &Facts::of(entry, &references, &program.columns);
    let mut func = entry.clone();
    let mut body = std::mem::take(&mut func.body);
    let mut found = false;
    walk_mut(&mut body, &mut |stmt| {
        let Stmt::Loop { body, .. } = stmt else { return };
        for stmt in std::mem::take(body) {
            match facts.rare_guard(&stmt) {
                Some((cond, on, rest)) => {
                    selected(&mut func, facts, (cond, on), rest, body);
                    found = true;
                }
                None => body.push(stmt),
            }
        }
    });
    func.body = body;
    found.then_some(func)
}

/// Emits what a guard skips, for all jobs. `skips`: the condition, and its value in jobs that keep their values.
fn selected(func: &mut Func, facts: &Facts, skips: (Operand, bool), rest: &[Stmt], out: &mut Vec<Stmt>) {
    let mut latest: HashMap<VarId, VarId> = HashMap::new();
    let mut kept = Vec::new();
    for stmt in rest {
        let mut stmt = stmt.clone();
        stmt.reads_mut(|operand| {
            if let Operand::Var(v) = operand {
                *v = latest.get(v).copied().unwrap_or(*v);
            }
        });
        for dst in stmt.assigns_mut() {
            if facts.is_assigned_again(*dst) {
                let own = *dst;
                *dst = fresh(func, func.ty(own.into()));
                if latest.insert(own, *dst).is_none() {
                    kept.push(own);
                }
            }
        }
        out.push(stmt);
    }
    let (cond, on) = skips;
    for own in kept {
        let new = latest[&own];
        let [one, other] = if on { [own, new] } else { [new, own] };
        out.push(Stmt::Let { dst: own, op: Op::Select, args: vec![cond, one.into(), other.into()] });
    }
}
