//! Makes the most of ticks that run in one launch: what does not change from tick to tick is settled before them.
//!
//! Fires for loops over fused ticks, and does two things to each:
//!
//! * *Choices.* A branch whose condition is the same in all ticks (the element's class, a captured local) is taken once
//!   before the loop, of which each side gets a copy of its own.
//! * *Rows.* A column that the loop reads, at one row only, is loaded before the loop, kept in a register, and stored
//!   after it if it is written. That is sound because columns written in fused ticks are reached through owned paths
//!   alone, and because what an element leaves behind after a trap or a cancel means nothing. It means something where
//!   `break` can leave the section, so written columns of such programs stay in memory.
//!
//! A row is loaded early only where every tick would touch it, or another column of the same object.

use super::Pass;
use crate::ir::effects::Effects;
use crate::ir::visit::{freshen_labels, size, walk_mut};
use crate::ir::{ColumnId, Func, LabelId, Op, Operand, Program, Scalar, Space, Stmt, Trap, Var, VarId, walk};
use std::collections::{BTreeMap, HashMap};

pub const PASS: Pass = Pass { name: "ticks", description: "what ticks share is settled before them", run };

/// A function takes in no more copies of loops once it has so many statements.
const ENOUGH: usize = 800;

fn run(mut program: Program) -> Program {
    if !program.fused_ticks {
        return program;
    }
    let effects = program.effects();
    let entry = program.entry.index();
    let mut func = program.funcs[entry].clone();
    let body = std::mem::take(&mut func.body);
    let uses = Uses::of(&body, func.vars.len());
    let mut room = ENOUGH.saturating_sub(size(&body));
    let body = choices(body, &mut func, &uses, &mut room);
    func.body = Rows { effects: &effects, program: &program }.list(body, &mut func);
    program.funcs[entry] = func;
    program
}

/// How often each register is assigned and read.
struct Uses {
    assigned: Vec<u32>,
    read: Vec<u32>,
}

impl Uses {
    fn of(list: &[Stmt], vars: usize) -> Self {
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
}

/// Whether a loop is one over ticks.
fn is_over_ticks(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Loop { body, .. } if body.iter().any(|s| matches!(s, Stmt::Begin { .. })))
}

// Choices

/// Takes invariant branches of the loops over ticks in a list; `uses` are those of the whole function.
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
        hoist(&mut stmt, uses, &mut out);
        let inside = Uses::of(std::slice::from_ref(&stmt), uses.read.len());
        let mut private: Vec<bool> = (0..uses.read.len())
            .map(|v| inside.assigned[v] == uses.assigned[v] && inside.read[v] == uses.read[v])
            .collect();
        private.resize(func.vars.len(), false);
        out.push(split(stmt, func, &mut private, room));
    }
    out
}

/// The registers that a statement assigns, itself or inside.
fn assigned(stmt: &Stmt, vars: usize) -> Vec<bool> {
    Uses::of(std::slice::from_ref(stmt), vars).assigned.into_iter().map(|n| n > 0).collect()
}

/// Moves what is the same in all ticks, and may run anywhere, out of a loop.
fn hoist(stmt: &mut Stmt, uses: &Uses, out: &mut Vec<Stmt>) {
    loop {
        let variant = assigned(stmt, uses.read.len());
        let invariant = |o: &Operand| !matches!(o, Operand::Var(v) if variant[v.index()]);
        let mut found = Vec::new();
        walk(std::slice::from_ref(stmt), &mut |s| {
            if let Stmt::Let { dst, op, args } = s
                && uses.assigned[dst.index()] == 1
                && is_safe_anywhere(*op)
                && args.iter().all(invariant)
            {
                found.push(*dst);
            }
        });
        if found.is_empty() {
            return;
        }
        take(stmt, &found, out);
    }
}

/// Operations that may run where the program would not have come to: without preconditions, and without memory.
fn is_safe_anywhere(op: Op) -> bool {
    use Op::{
        Add, And, BoolToInt, Copy, FAbs, FAdd, FCmp, FMul, FNeg, FSub, ICmp, IntToFloat, Mul, Narrow, Not, Or, Param,
        Select, Sub, UCmp, Widen, Xor,
    };
    matches!(
        op,
        Copy | Add
            | Sub
            | Mul
            | And
            | Or
            | Xor
            | ICmp(_)
            | UCmp(_)
            | FCmp(_)
            | FAdd
            | FSub
            | FMul
            | FNeg
            | FAbs
            | IntToFloat
            | Widen
            | Narrow
            | BoolToInt
            | Not
            | Select
            | Param(_)
    )
}

/// Moves the assignments of some registers from a statement's lists to `out`.
fn take(stmt: &mut Stmt, dsts: &[VarId], out: &mut Vec<Stmt>) {
    for body in stmt.bodies_mut().into_iter().flatten() {
        let mut kept = Vec::with_capacity(body.len());
        for mut stmt in std::mem::take(body) {
            match &stmt {
                Stmt::Let { dst, .. } if dsts.contains(dst) => out.push(stmt),
                _ => {
                    take(&mut stmt, dsts, out);
                    kept.push(stmt);
                }
            }
        }
        *body = kept;
    }
}

/// A loop, or the branches whose sides are its copies. `private` registers are neither assigned nor read outside.
fn split(stmt: Stmt, func: &mut Func, private: &mut Vec<bool>, room: &mut usize) -> Stmt {
    let variant = assigned(&stmt, func.vars.len());
    let mut cond = None;
    walk(std::slice::from_ref(&stmt), &mut |s| {
        if let (None, Stmt::If { cond: Operand::Var(v), .. }) = (cond, s)
            && !variant[v.index()]
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
    let then = vec![split(then, func, private, room)];
    let otherwise = vec![split(otherwise, func, private, room)];
    Stmt::If { cond: cond.into(), then, otherwise }
}

/// A copy of a loop with labels and private registers of its own.
fn copy(stmt: &Stmt, func: &mut Func, private: &mut Vec<bool>) -> Stmt {
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

/// Takes the branches on `cond` in a list.
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

// Rows

struct Rows<'a> {
    effects: &'a [Effects],
    program: &'a Program,
}

/// How a loop touches a column.
#[derive(Clone, Default)]
struct Touch {
    rows: Vec<Operand>,
    /// Types of the registers that are loaded and stored.
    types: Vec<Scalar>,
    loaded: bool,
    stored: bool,
    /// By an atomic operation, or in a function that is called.
    otherwise: bool,
}

impl Rows<'_> {
    fn list(&self, list: Vec<Stmt>, func: &mut Func) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(list.len());
        for mut stmt in list {
            if is_over_ticks(&stmt) {
                self.keep_in_registers(stmt, func, &mut out);
                continue;
            }
            for nested in stmt.bodies_mut().into_iter().flatten() {
                *nested = self.list(std::mem::take(nested), func);
            }
            out.push(stmt);
        }
        out
    }

    fn keep_in_registers(&self, mut stmt: Stmt, func: &mut Func, out: &mut Vec<Stmt>) {
        let Stmt::Loop { label, body } = &stmt else { unreachable!("a loop over ticks is a loop") };
        let touches = self.touches(&stmt, func);
        let mut sure = Vec::new();
        surely_touched(after_test(body, *label), &mut sure);
        let variant = assigned(&stmt, func.vars.len());
        let stores_last = leaves_only_behind(body, *label) && !self.program.sites.iter().any(|s| s.trap == Trap::Break);

        let mut kept: BTreeMap<ColumnId, VarId> = BTreeMap::new();
        let mut stores = Vec::new();
        for (i, touch) in touches.iter().enumerate() {
            let column = ColumnId::new(i);
            let (&[row], &[ty]) = (&touch.rows[..], &touch.types[..]) else { continue };
            let moves = matches!(row, Operand::Var(v) if variant[v.index()]);
            let keeps = touch.loaded && !touch.otherwise && !moves && (stores_last || !touch.stored);
            if !keeps || !self.is_there(column, row, &sure) {
                continue;
            }
            let register = VarId::new(func.vars.len());
            func.vars.push(Var { ty, name: None });
            kept.insert(column, register);
            out.push(Stmt::Load { dst: register, column, row });
            if touch.stored {
                stores.push(Stmt::Store { column, row, value: register.into() });
            }
        }
        walk_mut(std::slice::from_mut(&mut stmt), &mut |s| {
            let copied = match s {
                Stmt::Load { dst, column, .. } => kept.get(column).map(|register| (*dst, (*register).into())),
                Stmt::Store { column, value, .. } => kept.get(column).map(|register| (*register, *value)),
                _ => None,
            };
            if let Some((dst, value)) = copied {
                *s = Stmt::Let { dst, op: Op::Copy, args: vec![value] };
            }
        });
        out.push(stmt);
        out.extend(stores);
    }

    fn touches(&self, stmt: &Stmt, func: &Func) -> Vec<Touch> {
        let mut touches = vec![Touch::default(); self.program.columns.len()];
        fn add<T: PartialEq>(to: &mut Vec<T>, what: T) {
            if !to.contains(&what) {
                to.push(what);
            }
        }
        walk(std::slice::from_ref(stmt), &mut |s| match s {
            Stmt::Load { dst, column, row } => {
                let touch = &mut touches[column.index()];
                add(&mut touch.rows, *row);
                add(&mut touch.types, func.vars[dst.index()].ty);
                touch.loaded = true;
            }
            Stmt::Store { column, row, value } => {
                let touch = &mut touches[column.index()];
                add(&mut touch.rows, *row);
                add(&mut touch.types, func.ty(*value));
                touch.stored = true;
            }
            Stmt::Atomic { column, .. } => touches[column.index()].otherwise = true,
            Stmt::Call { func, .. } => {
                let effects = &self.effects[func.index()];
                for (i, touch) in touches.iter_mut().enumerate() {
                    touch.otherwise |= effects.reads[i] || effects.writes[i];
                }
            }
            _ => {}
        });
        touches
    }

    /// Whether a column has the row, since some column at the same row is surely touched.
    fn is_there(&self, column: ColumnId, row: Operand, sure: &[(ColumnId, Operand)]) -> bool {
        let space = |column: ColumnId| self.program.columns[column.index()].space;
        sure.iter().filter(|(_, touched)| *touched == row).any(|(touched, _)| match (space(*touched), space(column)) {
            (Space::Class { hierarchy, first, last }, Space::Class { hierarchy: h, first: from, last: to }) => {
                hierarchy == h && from <= first && last <= to
            }
            (Space::Element, Space::Element) | (Space::Job, Space::Job) => true,
            _ => *touched == column,
        })
    }
}

/// What a loop does in every tick: not the test that ends it, which does not fail at once.
fn after_test(body: &[Stmt], label: LabelId) -> &[Stmt] {
    let test = body.iter().position(|s| !matches!(s, Stmt::Let { .. }));
    match test.map(|at| (at, &body[at])) {
        Some((at, Stmt::If { then, otherwise, .. })) if otherwise.is_empty() && *then == [Stmt::Break(label)] => {
            &body[at + 1..]
        }
        _ => body,
    }
}

/// The columns and rows that every run of a list touches, up to the first statement behind which it might not come;
/// whether it comes to the end.
fn surely_touched(list: &[Stmt], sure: &mut Vec<(ColumnId, Operand)>) -> bool {
    for stmt in list {
        match stmt {
            Stmt::Load { column, row, .. } | Stmt::Store { column, row, .. } => sure.push((*column, *row)),
            Stmt::Block { body, .. } => {
                // Who breaks the block goes on behind it.
                let comes_through = surely_touched(body, sure);
                if !comes_through && leaves(std::slice::from_ref(stmt)) {
                    return false;
                }
            }
            _ if leaves(std::slice::from_ref(stmt)) => return false,
            _ => {}
        }
    }
    true
}

/// Whether control may go from inside of a list to somewhere else than its end.
fn leaves(list: &[Stmt]) -> bool {
    let mut opened = Vec::new();
    walk(list, &mut |s| opened.extend(s.label()));
    let mut leaves = false;
    walk(list, &mut |s| {
        leaves |= match s {
            Stmt::Break(label) => !opened.contains(label),
            Stmt::Return(_) | Stmt::Trap { .. } | Stmt::Checked { .. } | Stmt::Call { .. } => true,
            _ => false,
        }
    });
    leaves
}

/// Whether a loop is left only by its own label, or for good.
fn leaves_only_behind(body: &[Stmt], label: LabelId) -> bool {
    let mut opened = vec![label];
    walk(body, &mut |s| opened.extend(s.label()));
    let mut behind = true;
    walk(body, &mut |s| {
        behind &= match s {
            Stmt::Break(label) => opened.contains(label),
            Stmt::Return(_) => false,
            _ => true,
        }
    });
    behind
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, INTS, OUT, SPEED, ZERO, shell};
    use crate::ir::{Cmp, ColumnId, Op, Operand, ParamId, Scalar, Stmt, Trap};
    use crate::passes::testing::after;

    /// The functions after the pass; `body` gets the element's index, and `object`, an id.
    fn check(breaks: bool, body: impl FnOnce(&mut Builder, Operand, Operand)) -> String {
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
        if breaks {
            program.sites[ZERO.index()].trap = Trap::Break;
        }
        let text = after(&[PASS], program);
        // From the loop on, and what is before it only as far as the pass put it there.
        text.split_once("tick.4: i64 = copy first.1\n").expect("a loop over ticks").1.to_owned()
    }

    fn faster(b: &mut Builder, id: Operand, by: f64) {
        let speed = b.load(Scalar::F64, SPEED, id);
        let speed = b.f64(Op::FAdd, &[speed, Operand::float(by)]);
        b.store(SPEED, id, speed);
    }

    #[test]
    fn what_is_the_same_in_all_ticks_is_chosen_once() {
        insta::assert_snapshot!(check(false, |b, _, object| {
            let small = b.op(Scalar::I32, Op::Param(ParamId(3)), &[]);
            let first_class = b.bool(Op::UCmp(Cmp::Lt), &[object, small]);
            b.branch(first_class, |b| faster(b, object, 1.0), |b| faster(b, object, 2.0));
        }), @r#"
          v6: i32 = param p3 "small"
          v7: bool = ucmp.lt v3, v6
          if v7 {
            v17: f64 = load Car@speed[v3]
            loop L0 {
              v5: bool = icmp.ge tick.4, last.2
              if v5 {
                break L0
              }
              begin job.0, tick.4
              v8: f64 = copy v17
              v9: f64 = fadd v8, 1.0
              v17 = copy v9
              tick.4 = add tick.4, 1
            }
            store Car@speed[v3] = v17
          } else {
            v18: f64 = load Car@speed[v3]
            loop L1 {
              v12: bool = icmp.ge tick.4, last.2
              if v12 {
                break L1
              }
              begin job.0, tick.4
              v15: f64 = copy v18
              v16: f64 = fadd v15, 2.0
              v18 = copy v16
              tick.4 = add tick.4, 1
            }
            store Car@speed[v3] = v18
          }
        }
        "#);
    }

    #[test]
    fn a_condition_that_ticks_change_stays() {
        let text = check(false, |b, index, _| {
            let n = b.load(Scalar::I64, INPUT, index);
            let zero = b.icmp(Cmp::Eq, n, Operand::I64(0));
            b.when(zero, |b| b.store(INPUT, index, Operand::I64(7)));
        });
        assert_eq!(text.matches("loop").count(), 1, "{text}");
    }

    #[test]
    fn a_row_that_may_not_be_there_is_not_loaded_early() {
        insta::assert_snapshot!(check(false, |b, index, object| {
            let n = b.load(Scalar::I64, INPUT, index);
            let zero = b.icmp(Cmp::Ne, n, Operand::I64(0));
            b.trap_if(zero, ZERO, vec![]);
            // The element's own rows are there; the object's may not be.
            let m = b.load(Scalar::I64, INTS, index);
            let m = b.i64(Op::Add, &[m, n]);
            b.store(INTS, index, m);
            faster(b, object, 1.0);
        }), @r#"
          v12: i64 = load in[job.0]
          v13: i64 = load ints[job.0]
          loop L0 {
            v5: bool = icmp.ge tick.4, last.2
            if v5 {
              break L0
            }
            begin job.0, tick.4
            v6: i64 = copy v12
            v7: bool = icmp.ne v6, 0
            if v7 {
              trap s3
            }
            v8: i64 = copy v13
            v9: i64 = add v8, v6
            v13 = copy v9
            v10: f64 = load Car@speed[v3]
            v11: f64 = fadd v10, 1.0
            store Car@speed[v3] = v11
            tick.4 = add tick.4, 1
          }
          store ints[job.0] = v13
        }
        "#);
    }

    #[test]
    fn rows_that_others_may_be_stay_in_memory() {
        let text = check(false, |b, index, _| {
            let n = b.load(Scalar::I64, INPUT, index);
            let x = b.load(Scalar::F64, OUT, n);
            b.store(OUT, index, x);
        });
        assert!(text.contains("  store out[job.0]"), "{text}");
    }

    #[test]
    fn where_break_leaves_the_section_columns_are_written_in_every_tick() {
        let body = |b: &mut Builder, index: Operand, object: Operand| {
            faster(b, object, 1.0);
            let n = b.load(Scalar::I64, INPUT, index);
            let zero = b.icmp(Cmp::Eq, n, Operand::I64(0));
            b.trap_if(zero, ZERO, vec![]);
        };
        let [with, without] = [true, false].map(|breaks| check(breaks, body));
        assert!(with.contains("    store Car@speed") && !without.contains("    store Car@speed"), "{with}\n{without}");
    }
}
