//! Dead code elimination (DCE): drops assignments that are never read, empty branches, calls without effect, and
//! functions that are never called.
//!
//! It keeps every statement that can stop the job, writes a column or draws a random number. It keeps every loop, since
//! a loop may never end. It numbers registers, labels and functions anew. Columns, parameters and sites keep their
//! numbers, because the host knows them by these. A column that is no longer loaded is no longer marked `read`.

use super::Pass;
use crate::ir::effects::Effects;
use crate::ir::visit::{breaks_to, walk_mut};
use crate::ir::{Func, FuncId, LabelId, Op, Operand, Program, Stmt, VarId, walk};

pub const PASS: Pass = Pass { name: "dce", description: "nothing that nobody reads", run };

fn run(program: Program) -> Program {
    renumbered(program).0
}

/// The program after DCE, and the new numbers of the entry's registers.
pub fn renumbered(mut program: Program) -> (Program, Vec<Option<VarId>>) {
    drop_functions(&mut program);
    let effects = program.effects();
    let mut numbers = Vec::new();
    for (id, func) in program.funcs.iter_mut().enumerate() {
        let mut body = std::mem::take(&mut func.body);
        coalesce(func, &mut body);
        let none = vec![false; func.vars.len()];
        Liveness { effects: &effects, remove: true, at_end: vec![None; func.labels], heads: vec![None; func.labels] }
            .list(&mut body, none);
        func.body = body;
        let registers = renumber(func);
        if id == program.entry.index() {
            numbers = registers;
        }
    }
    let left = program.effects();
    for (i, column) in program.columns.iter_mut().enumerate() {
        column.read &= left.iter().any(|e| e.reads[i]);
        // A row that was only marked holds the rounded value that it had.
        let marked = column.marks.is_some_and(|marks| left.iter().any(|e| e.writes[marks.index()]));
        column.written &= marked || left.iter().any(|e| e.writes[i]);
    }
    program.uses_random &= left.iter().any(|e| e.draws);
    (program, numbers)
}

/// Drops functions that the entry does not reach.
fn drop_functions(program: &mut Program) {
    let mut seen = vec![false; program.funcs.len()];
    let mut next = vec![program.entry];
    while let Some(func) = next.pop() {
        if !std::mem::replace(&mut seen[func.index()], true) {
            walk(&program.funcs[func.index()].body, &mut |s| {
                if let Stmt::Call { func, .. } = s {
                    next.push(*func);
                }
            });
        }
    }
    let mut kept = 0;
    let numbers: Vec<FuncId> = seen
        .iter()
        .map(|seen| {
            kept += usize::from(*seen);
            FuncId::new(kept.saturating_sub(1))
        })
        .collect();
    let mut seen = seen.iter();
    program.funcs.retain(|_| seen.next() == Some(&true));
    for func in &mut program.funcs {
        walk_mut(&mut func.body, &mut |s| {
            if let Stmt::Call { func, .. } = s {
                *func = numbers[func.index()];
            }
        });
    }
    program.entry = numbers[program.entry.index()];
}

/// Assigns a register directly where a temporary was assigned and then copied to it: `t = …; x = t`, with no other use
/// of `t`.
fn coalesce(func: &mut Func, body: &mut Vec<Stmt>) {
    let (mut assigned, mut read) = (vec![0u32; func.vars.len()], vec![0u32; func.vars.len()]);
    func.params.iter().for_each(|p| assigned[p.index()] += 1);
    walk(body, &mut |s| {
        s.assigns().iter().for_each(|v| assigned[v.index()] += 1);
        s.reads(|o| {
            if let Operand::Var(v) = o {
                read[v.index()] += 1;
            }
        });
    });
    let temporary = |v: VarId| assigned[v.index()] == 1 && read[v.index()] == 1;
    coalesce_list(body, &temporary);
}

fn coalesce_list(body: &mut Vec<Stmt>, temporary: &impl Fn(VarId) -> bool) {
    let mut at = 0;
    while at < body.len() {
        for nested in body[at].bodies_mut().into_iter().flatten() {
            coalesce_list(nested, temporary);
        }
        if let Stmt::Let { dst, op: Op::Copy, args } = &body[at]
            && let [Operand::Var(source)] = args[..]
            && temporary(source)
        {
            let dst = *dst;
            let touches = |s: &Stmt| {
                let mut reads = false;
                s.reads(|o| reads |= o == Operand::Var(dst));
                reads || s.assigns().contains(&dst) || s.bodies() != [&[][..], &[][..]] || s.ends_list()
            };
            let from = (0..at)
                .rev()
                .take_while(|i| body[*i].assigns().contains(&source) || !touches(&body[*i]))
                .find(|i| body[*i].assigns().contains(&source))
                .filter(|i| !matches!(body[*i], Stmt::Call { .. }) || !body[*i].assigns().contains(&dst));
            if let Some(from) = from {
                body[from].assigns_mut().iter_mut().filter(|v| **v == source).for_each(|v| *v = dst);
                body.remove(at);
                continue;
            }
        }
        at += 1;
    }
}

/// A set of registers, as flags.
type Live = Vec<bool>;

/// Walks backwards with the registers that are live, which means: read later.
struct Liveness<'a> {
    effects: &'a [Effects],
    /// Whether the walk removes statements, or only finds out what is live.
    remove: bool,
    /// The registers that are live after each open `Block` and `Loop`.
    at_end: Vec<Option<Live>>,
    /// The registers that are live at the head of each loop, as far as known. Each walk over an outer loop begins with
    /// the result of the walk before, which only grows. Otherwise the time would grow exponentially with the depth of
    /// nested loops.
    heads: Vec<Option<Live>>,
}

impl Liveness<'_> {
    /// The registers that are live before a list, given those that are live after it.
    fn list(&mut self, body: &mut Vec<Stmt>, mut live: Live) -> Live {
        let mut kept = Vec::new();
        for mut stmt in std::mem::take(body).into_iter().rev() {
            let keep = self.stmt(&mut stmt, &mut live);
            if !self.remove || keep {
                kept.push(stmt);
            }
        }
        kept.reverse();
        if self.remove {
            // A block without a break is replaced by its content.
            for stmt in kept {
                match stmt {
                    Stmt::Block { label, body: nested } if !breaks_to(&nested, label) => {
                        let ended = nested.last().is_some_and(Stmt::ends_list);
                        body.extend(nested);
                        if ended {
                            break;
                        }
                    }
                    other => body.push(other),
                }
            }
        } else {
            *body = kept;
        }
        live
    }

    /// Whether the statement is needed; `live` becomes what is live before it.
    fn stmt(&mut self, stmt: &mut Stmt, live: &mut Live) -> bool {
        match stmt {
            Stmt::Let { dst, op, .. } if !live[dst.index()] && *op != Op::Random => {
                return false;
            }
            Stmt::Load { dst, .. } | Stmt::Alloc { dst, .. } if !live[dst.index()] => return false,
            Stmt::Call { func, dsts, .. }
                if self.effects[func.index()].is_pure() && !dsts.iter().any(|d| live[d.index()]) =>
            {
                return false;
            }
            Stmt::If { then, otherwise, .. } => {
                let after = live.clone();
                *live = self.list(then, after.clone());
                let other = self.list(otherwise, after);
                live.iter_mut().zip(other).for_each(|(a, b)| *a |= b);
                if then.is_empty() && otherwise.is_empty() {
                    return false;
                }
            }
            Stmt::Block { label, body } => {
                self.at_end[label.index()] = Some(live.clone());
                *live = self.list(body, live.clone());
                self.at_end[label.index()] = None;
                return !body.is_empty();
            }
            Stmt::Loop { label, body } => {
                self.at_end[label.index()] = Some(live.clone());
                // What is live at the head is live at the end of the body. The first round starts with nothing live
                // there.
                let removing = std::mem::replace(&mut self.remove, false);
                if removing {
                    self.heads.fill(None);
                }
                let mut head = self.heads[label.index()].take().unwrap_or_else(|| vec![false; live.len()]);
                loop {
                    let wanted = self.list(body, head.clone());
                    if wanted == head {
                        break;
                    }
                    head = wanted;
                }
                self.remove = removing;
                if removing {
                    *live = self.list(body, head);
                } else {
                    live.clone_from(&head);
                    self.heads[label.index()] = Some(head);
                }
                self.at_end[label.index()] = None;
                return true;
            }
            Stmt::Break(label) => {
                if let Some(end) = &self.at_end[label.index()] {
                    live.clone_from(end);
                }
            }
            Stmt::Return(_) | Stmt::Trap { .. } => live.fill(false),
            _ => {}
        }
        stmt.assigns().iter().for_each(|v| live[v.index()] = false);
        stmt.reads(|o| {
            if let Operand::Var(v) = o {
                live[v.index()] = true;
            }
        });
        true
    }
}

/// Renumbers the remaining registers and labels in the order in which they stand. Returns the registers' new numbers.
fn renumber(func: &mut Func) -> Vec<Option<VarId>> {
    let mut vars: Vec<Option<VarId>> = vec![None; func.vars.len()];
    let mut order = Vec::new();
    let mut number = |v: VarId| {
        *vars[v.index()].get_or_insert_with(|| {
            order.push(v);
            VarId::new(order.len() - 1)
        })
    };
    func.params.iter_mut().for_each(|p| *p = number(*p));
    let mut labels: Vec<Option<LabelId>> = vec![None; func.labels];
    let mut count = 0;
    walk_mut(&mut func.body, &mut |stmt| {
        stmt.reads_mut(|o| {
            if let Operand::Var(v) = o {
                *v = number(*v);
            }
        });
        stmt.assigns_mut().iter_mut().for_each(|v| *v = number(*v));
        if let Stmt::Block { label, .. } | Stmt::Loop { label, .. } | Stmt::Break(label) = stmt {
            *label = *labels[label.index()].get_or_insert_with(|| {
                count += 1;
                LabelId::new(count - 1)
            });
        }
    });
    func.vars = order.iter().map(|v| func.vars[v.index()].clone()).collect();
    func.labels = count;
    vars
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{DOMAIN, INPUT, INTS, OVERFLOW, program, with_functions};
    use crate::ir::{CheckedOp, Cmp, FuncId, Op, Operand, Scalar, Stmt};
    use crate::passes::testing::after;

    #[test]
    fn unread_values_and_what_leads_to_them_go() {
        let program = program(|b, index| {
            let x = b.load(Scalar::I64, INPUT, index);
            let y = b.i64(Op::Add, &[x, Operand::I64(1)]);
            let odd = b.icmp(Cmp::Lt, y, Operand::I64(3));
            b.when(odd, |b| {
                b.i64(Op::Mul, &[y, y]);
            });
            b.block(|b, _| b.store(INTS, index, Operand::I64(1)));
        });
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          store ints[v3] = 1
        }
        "#);
    }

    #[test]
    fn a_counter_that_only_counts_itself_goes_but_its_loop_stays() {
        let program = program(|b, index| {
            let (i, j) = (b.temp(Scalar::I64), b.temp(Scalar::I64));
            b.set(i, Operand::I64(0));
            b.set(j, Operand::I64(0));
            b.repeat(|b, done| {
                let next = b.i64(Op::Add, &[i.into(), Operand::I64(1)]);
                b.set(i, next);
                let next = b.i64(Op::Add, &[j.into(), Operand::I64(1)]);
                b.set(j, next);
                let end = b.icmp(Cmp::Gt, j.into(), index);
                b.when(end, |b| b.push(Stmt::Break(done)));
            });
        });
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = copy 0
          loop L0 {
            v4 = add v4, 1
            v5: bool = icmp.gt v4, v3
            if v5 {
              break L0
            }
          }
        }
        "#);
    }

    #[test]
    fn what_can_stop_or_draw_stays() {
        let mut program = program(|b, index| {
            b.checked(CheckedOp::Add, index, index, OVERFLOW);
            b.i64(Op::Random, &[]);
            let bad = b.icmp(Cmp::Eq, index, Operand::I64(3));
            b.trap_if(bad, DOMAIN, vec![index]);
        });
        program.uses_random = true;
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = checked add v3, v3 else s0
          v5: i64 = random
          v6: bool = icmp.eq v3, 3
          if v6 {
            trap s1 v3
          }
        }
        "#);
    }

    #[test]
    fn a_copy_is_not_moved_over_a_way_out() {
        let program = program(|b, index| {
            let x = b.temp(Scalar::I64);
            b.set(x, Operand::I64(0));
            b.block(|b, out| {
                let y = b.i64(Op::Add, &[index, Operand::I64(1)]);
                let big = b.icmp(Cmp::Gt, index, Operand::I64(3));
                b.when(big, |b| b.push(Stmt::Break(out)));
                b.set(x, y);
            });
            b.store(INTS, index, x.into());
        });
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = copy 0
          block L0 {
            v5: i64 = add v3, 1
            v6: bool = icmp.gt v3, 3
            if v6 {
              break L0
            }
            v4 = copy v5
          }
          store ints[v3] = v4
        }
        "#);
    }

    #[test]
    fn pure_calls_and_their_functions_go() {
        let mut b = Builder::new("pure".into(), vec![Scalar::I64]);
        b.push(Stmt::Return(vec![Operand::I64(1)]));
        let pure = b.finish();
        let mut b = Builder::new("writes".into(), vec![]);
        b.store(INTS, Operand::I64(0), Operand::I64(1));
        let program = with_functions(vec![pure, b.finish()], |b, _| {
            b.call(FuncId(1), vec![], &[Scalar::I64], None);
            b.call(FuncId(2), vec![], &[], None);
        });
        insta::assert_snapshot!(after(&[PASS, PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          call f1 "writes"
        }

        func f1 "writes" () {
          store ints[0] = 1
        }
        "#);
    }
}
