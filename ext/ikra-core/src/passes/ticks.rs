//! Loop unswitching for ticks: a branch that goes the same way in all ticks is taken once, before the loop over ticks.
//!
//! Fires for loops over ticks that run in one launch. If no tick changes a branch's condition (the element's class, a
//! captured local), the branch moves before the loop. Each of its sides gets a copy of the loop. What a side reads and
//! writes can then stay in registers for all ticks ([`super::register_promotion`]). The threads of a warp, whose
//! elements are of one class, run one loop with nothing else in it. [`super::licm`] has moved the conditions before the
//! loop.

use super::Pass;
use crate::ir::visit::{freshen_labels, size, walk_mut};
use crate::ir::{Func, Operand, Program, Stmt, VarId, walk};
use std::collections::HashMap;

pub const PASS: Pass = Pass { name: "ticks", description: "what is the same in all ticks is chosen once", run };

/// A function of this many statements gets no more copies of loops.
const MAX_STATEMENTS: usize = 800;

fn run(mut program: Program) -> Program {
    if program.fused_ticks {
        let func = &mut program.funcs[program.entry.index()];
        let body = std::mem::take(&mut func.body);
        let uses = Uses::of(&body, func.vars.len());
        let mut room = MAX_STATEMENTS.saturating_sub(size(&body));
        func.body = choices(body, func, &uses, &mut room);
    }
    program
}

/// How often each register is assigned and read.
pub struct Uses {
    assigned: Vec<u32>,
    read: Vec<u32>,
}

impl Uses {
    pub fn of(list: &[Stmt], vars: usize) -> Self {
        let mut uses = Self { assigned: vec![0; vars], read: vec![0; vars] };
        walk(list, &mut |s| {
            s.assigns().iter().for_each(|v| uses.assigned[v.index()] += 1);
            s.reads(|o| {
                if let Operand::Var(v) = o {
                    uses.read[v.index()] += 1;
                }
            });
        });
        uses
    }

    /// By register: whether nothing but the statement assigns or reads it, where these are the uses of all of a
    /// function.
    pub fn private(&self, stmt: &Stmt) -> Vec<bool> {
        let vars = self.read.len();
        let mut inside = Uses { assigned: vec![0; vars], read: vec![0; vars] };
        let count = |list: &mut Vec<u32>, v: VarId| list.get_mut(v.index()).into_iter().for_each(|n| *n += 1);
        walk(std::slice::from_ref(stmt), &mut |s| {
            s.assigns().iter().for_each(|v| count(&mut inside.assigned, *v));
            s.reads(|o| {
                if let Operand::Var(v) = o {
                    count(&mut inside.read, v);
                }
            });
        });
        (0..vars).map(|v| inside.assigned[v] == self.assigned[v] && inside.read[v] == self.read[v]).collect()
    }
}

/// Whether a loop is one over ticks.
fn is_over_ticks(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Loop { body, .. } if body.iter().any(|s| matches!(s, Stmt::Begin { .. })))
}

/// Moves invariant branches out of the loops over ticks in a list; `uses` are those of the whole function.
fn choices(list: Vec<Stmt>, func: &mut Func, uses: &Uses, room: &mut usize) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(list.len());
    for mut stmt in list {
        if !is_over_ticks(&stmt) {
            for nested in stmt.bodies_mut().into_iter().flatten() {
                *nested = choices(std::mem::take(nested), func, uses, room);
            }
            out.push(stmt);
            continue;
        }
        let inside = Uses::of(std::slice::from_ref(&stmt), uses.read.len());
        let mut private: Vec<bool> = (0..uses.read.len())
            .map(|v| inside.assigned[v] == uses.assigned[v] && inside.read[v] == uses.read[v])
            .collect();
        private.resize(func.vars.len(), false);
        let variant = assigned(&stmt, func.vars.len());
        out.push(split(stmt, func, &variant, &mut private, room));
    }
    out
}

/// The registers that a statement assigns, itself or inside.
fn assigned(stmt: &Stmt, vars: usize) -> Vec<bool> {
    Uses::of(std::slice::from_ref(stmt), vars).assigned.into_iter().map(|n| n > 0).collect()
}

/// Gives the loop, or branches whose sides are copies of it. `variant`: the registers that the whole loop assigns, of
/// which a side may have lost a part; registers with higher numbers belong to copies. `private`: the registers that are
/// neither assigned nor read outside the loop.
fn split(stmt: Stmt, func: &mut Func, variant: &[bool], private: &mut Vec<bool>, room: &mut usize) -> Stmt {
    let mut cond = None;
    walk(std::slice::from_ref(&stmt), &mut |s| {
        if let (None, Stmt::If { cond: Operand::Var(v), .. }) = (cond, s)
            && variant.get(v.index()) == Some(&false)
        {
            cond = Some(*v);
        }
    });
    let size = size(std::slice::from_ref(&stmt));
    let Some(cond) = cond.filter(|_| size <= *room) else { return stmt };
    *room -= size;
    let mut otherwise = copy(&stmt, func, private);
    let mut then = stmt;
    for (side, taken) in [(&mut then, true), (&mut otherwise, false)] {
        for body in side.bodies_mut().into_iter().flatten() {
            settle(body, cond, taken);
        }
    }
    let then = vec![split(then, func, variant, private, room)];
    let otherwise = vec![split(otherwise, func, variant, private, room)];
    Stmt::If { cond: cond.into(), then, otherwise }
}

/// A copy of a loop with labels and private registers of its own.
pub fn copy(stmt: &Stmt, func: &mut Func, private: &mut Vec<bool>) -> Stmt {
    let mut renamed: HashMap<VarId, VarId> = HashMap::new();
    for (v, assigned) in assigned(stmt, func.vars.len()).into_iter().enumerate() {
        if assigned && private[v] {
            renamed.insert(VarId::new(v), VarId::new(func.vars.len()));
            func.vars.push(func.vars[v].clone());
            private.push(true);
        }
    }
    let mut body = vec![stmt.clone()];
    freshen_labels(&mut body, func);
    let rename = |v: &mut VarId| *v = renamed.get(v).copied().unwrap_or(*v);
    walk_mut(&mut body, &mut |s| {
        s.assigns_mut().iter_mut().for_each(rename);
        s.reads_mut(|o| {
            if let Operand::Var(v) = o {
                rename(v);
            }
        });
    });
    body.pop().expect("it was put in")
}

/// Replaces the branches on `cond` in a list by the side that is taken.
fn settle(list: &mut Vec<Stmt>, cond: VarId, taken: bool) {
    let mut out = Vec::with_capacity(list.len());
    for mut stmt in std::mem::take(list) {
        for nested in stmt.bodies_mut().into_iter().flatten() {
            settle(nested, cond, taken);
        }
        match stmt {
            Stmt::If { cond: Operand::Var(v), then, otherwise } if v == cond => {
                out.extend(if taken { then } else { otherwise });
                if out.last().is_some_and(Stmt::ends_list) {
                    break;
                }
            }
            _ => out.push(stmt),
        }
    }
    *list = out;
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, SPEED, shell};
    use crate::ir::{Cmp, ColumnId, Op, Operand, ParamId, Scalar, Stmt};
    use crate::passes::licm;
    use crate::passes::testing::after;

    /// The functions after the pass; `body` gets the element's index, and `object`, an id.
    fn check(body: impl FnOnce(&mut Builder, Operand, Operand)) -> String {
        let mut b = Builder::new("entry".into(), Vec::new());
        let job = b.param(Scalar::I64, Some("job".into()));
        let [first, last] = ["first", "last"].map(|name| b.param(Scalar::I64, Some(name.into())));
        let object = b.load(Scalar::I32, ColumnId(4), job.into());
        let tick = b.var(Scalar::I64, Some("tick".into()));
        b.set(tick, first.into());
        b.repeat(|b, label| {
            let over = b.icmp(Cmp::Ge, tick.into(), last.into());
            b.when(over, |b| b.push(Stmt::Break(label)));
            b.push(Stmt::Begin { index: job.into(), tick: tick.into(), check: false });
            body(b, job.into(), object);
            b.push(Stmt::Let { dst: tick, op: Op::Add, args: vec![tick.into(), Operand::I64(1)] });
        });
        let mut program = shell(vec![b.finish()]);
        program.fused_ticks = true;
        let text = after(&[licm::PASS, PASS], program);
        // Only the text from the loop on; of the text before it, only what the pass put there.
        text.split_once("tick.4: i64 = copy first.1\n").expect("a loop over ticks").1.to_owned()
    }

    fn faster(b: &mut Builder, id: Operand, by: f64) {
        let speed = b.load(Scalar::F64, SPEED, id);
        let speed = b.f64(Op::FAdd, &[speed, Operand::float(by)]);
        b.store(SPEED, id, speed);
    }

    #[test]
    fn what_is_the_same_in_all_ticks_is_chosen_once() {
        insta::assert_snapshot!(check(|b, _, object| {
            let small = b.op(Scalar::I32, Op::Param(ParamId(3)), &[]);
            let first_class = b.bool(Op::UCmp(Cmp::Lt), &[object, small]);
            b.branch(first_class, |b| faster(b, object, 1.0), |b| faster(b, object, 2.0));
        }), @r#"
          v6: i32 = param p3 "small"
          v7: bool = ucmp.lt v3, v6
          if v7 {
            loop L0 {
              v5: bool = icmp.ge tick.4, last.2
              if v5 {
                break L0
              }
              begin job.0, tick.4
              v8: f64 = load Car@speed[v3]
              v9: f64 = fadd v8, 1.0
              store Car@speed[v3] = v9
              tick.4 = add tick.4, 1
            }
          } else {
            loop L1 {
              v12: bool = icmp.ge tick.4, last.2
              if v12 {
                break L1
              }
              begin job.0, tick.4
              v15: f64 = load Car@speed[v3]
              v16: f64 = fadd v15, 2.0
              store Car@speed[v3] = v16
              tick.4 = add tick.4, 1
            }
          }
        }
        "#);
    }

    #[test]
    fn a_condition_that_ticks_change_stays() {
        let text = check(|b, index, _| {
            let n = b.load(Scalar::I64, INPUT, index);
            let zero = b.icmp(Cmp::Eq, n, Operand::I64(0));
            b.when(zero, |b| b.store(INPUT, index, Operand::I64(7)));
        });
        assert_eq!(text.matches("loop").count(), 1, "{text}");
    }
}
