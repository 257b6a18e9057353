//! Global value numbering (GVN): gives every value a number, and computes, loads and tests each value once.
//!
//! Two registers with one number hold the same value. One walk over the program uses the numbers as follows:
//!
//! * It folds constants and sees through copies ([`super::algebra`] has the arithmetic).
//! * It does not compute or load again what a register already holds.
//! * A load after a store of the same row takes the stored value.
//! * It does not test again a condition that an enclosing branch has settled.
//! * It removes branches that cannot be taken. A branch that only chooses a value becomes a `Select`.
//!
//! A store makes all other loads of its column unknown, whatever their rows: two ids may be equal. [`Effects`] lists
//! what calls write. [`super::dce`] removes the copies and values that are not read any more.
//!
//! Numbers hold for one repetition of a loop: what its body assigns or stores has a new number at its head.

use super::Pass;
use super::algebra::{Simpler, simplify};
use super::facts::{Fact, Facts};
use crate::ir::effects::Effects;
use crate::ir::visit::breaks_to;
use crate::ir::{
    CheckedOp, Cmp, Column, ColumnId, Ctx, Func, LabelId, Op, Operand, Program, Scalar, Stmt, Var, VarId, walk,
};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

pub const PASS: Pass = Pass { name: "gvn", description: "every value computed, loaded and tested once", run };

fn run(mut program: Program) -> Program {
    let effects = program.effects();
    let exact: Vec<bool> = program.columns.iter().map(Column::is_exact).collect();
    let entry = program.entry.index();
    for (i, func) in program.funcs.iter_mut().enumerate() {
        let body = std::mem::take(&mut func.body);
        let mut assigned = vec![0; func.vars.len()];
        walk(&body, &mut |s| s.assigns().iter().for_each(|v| assigned[v.index()] += 1));
        let mut walker = Walker::new(func, &exact, &effects, assigned);
        if i == entry {
            walker.some_ticks();
        }
        walker.func.body = walker.list(body);
    }
    program
}

/// Number of a value; 0 for a register that is not assigned on every path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Number(u32);

const UNASSIGNED: Number = Number(0);

impl Fact for Number {
    fn join(&self, other: &Self, fresh: &mut u32) -> Self {
        if self == other || *self == UNASSIGNED {
            *self
        } else if *other == UNASSIGNED {
            UNASSIGNED
        } else {
            *fresh += 1;
            Number(*fresh)
        }
    }
}

/// What gives a value its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Key {
    Constant(Operand),
    Op(Op, Scalar, Args),
    Checked(CheckedOp, [Number; 2]),
    /// The content of a column. The first number stands for all stores to the column so far; each store changes it.
    Load(ColumnId, Number, Number, Scalar),
}

/// Numbers of operands, and 0 where an operation has fewer.
type Args = [Number; 3];

/// A quick hash for keys. Keys are a few small numbers each, and none comes from an untrusted source.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64((*b).into()));
    }
    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }
}

/// What is known of the value with a number.
#[derive(Clone, Default)]
struct Known {
    constant: Option<Operand>,
    /// The operation that computes it.
    op: Option<(Op, Args)>,
    /// Registers that held it at some time; often there is only one.
    holder: Option<VarId>,
    others: Vec<VarId>,
    /// In the branch being walked, it equals the value with this other number.
    means: Option<Number>,
}

impl Known {
    fn held_by(&mut self, var: VarId) {
        if self.constant.is_some() || self.holder == Some(var) {
            return;
        }
        if self.holder.is_none() {
            self.holder = Some(var);
        } else if !self.others.contains(&var) {
            self.others.push(var);
        }
    }
}

struct Walker<'a> {
    func: &'a mut Func,
    effects: &'a [Effects],
    /// One slot for tick and index, one slot per column, then one slot per register.
    facts: Facts<Number>,
    columns: usize,
    /// By column: a load gives exactly the value that was stored, not a rounded one.
    exact: &'a [bool],
    numbers: HashMap<Key, Number, BuildHasherDefault<Mix>>,
    known: Vec<Known>,
    /// Numbers whose `means` is set, in order.
    assumed: Vec<Number>,
    /// How many statements assign each register.
    assigned: Vec<u32>,
    /// How deep statements nest, so that tidying up does not nest them much deeper.
    depth: usize,
}

const MAX_DEPTH: usize = 48;

/// The slot for tick and index.
const CONTEXT: usize = 0;

impl<'a> Walker<'a> {
    fn new(func: &'a mut Func, exact: &'a [bool], effects: &'a [Effects], assigned: Vec<u32>) -> Self {
        let columns = exact.len();
        // The context and the contents of columns have numbers from the start.
        let contents = 1 + columns as u32;
        let initial = (1..=contents).map(Number).chain(func.vars.iter().map(|_| UNASSIGNED)).collect();
        let mut facts = Facts::new(initial);
        facts.fresh = contents;
        let mut walker = Self {
            func,
            effects,
            facts,
            columns,
            exact,
            numbers: HashMap::default(),
            known: Vec::new(),
            assumed: Vec::new(),
            assigned,
            depth: 0,
        };
        for param in walker.func.params.clone() {
            let number = walker.fresh();
            walker.hold(param, number);
        }
        walker
    }

    /// The entry is called with at least one tick, so its last tick is not before its first.
    fn some_ticks(&mut self) {
        if let [_, begin, end] = self.func.params[..] {
            let (begin, end) = (self.number(begin.into()), self.number(end.into()));
            let holds = self.constant(Operand::Bool(true));
            for (cmp, args) in [(Cmp::Lt, [begin, end]), (Cmp::Gt, [end, begin])] {
                self.numbers.insert(Key::Op(Op::ICmp(cmp), Scalar::Bool, padded(&args)), holds);
            }
        }
    }

    fn content(column: usize) -> usize {
        1 + column
    }

    fn slot(&self, var: VarId) -> usize {
        1 + self.columns + var.index()
    }

    fn fresh(&mut self) -> Number {
        self.facts.fresh += 1;
        Number(self.facts.fresh)
    }

    fn known(&mut self, number: Number) -> &mut Known {
        let at = number.0 as usize;
        if at >= self.known.len() {
            self.known.resize_with(at + 1, Known::default);
        }
        &mut self.known[at]
    }

    /// The number, or what it is known to equal here.
    fn meaning(&self, mut number: Number) -> Number {
        while let Some(other) = self.known.get(number.0 as usize).and_then(|k| k.means) {
            number = other;
        }
        number
    }

    fn constant(&mut self, operand: Operand) -> Number {
        let number = self.keyed(Key::Constant(operand));
        self.known(number).constant = Some(operand);
        number
    }

    fn keyed(&mut self, key: Key) -> Number {
        if let Some(number) = self.numbers.get(&key) {
            return self.meaning(*number);
        }
        let number = self.fresh();
        self.numbers.insert(key, number);
        number
    }

    /// The number that a register or constant has here.
    fn number(&mut self, operand: Operand) -> Number {
        let Operand::Var(v) = operand else { return self.constant(operand) };
        let number = match self.facts.get(self.slot(v)) {
            // Control never reaches this point, so any number will do.
            &UNASSIGNED => self.fresh(),
            number => *number,
        };
        let known = self.known(number);
        known.held_by(v);
        self.meaning(number)
    }

    /// A constant or register that has the number here.
    fn holder(&self, number: Number) -> Option<Operand> {
        let known = self.known.get(number.0 as usize)?;
        known.constant.or_else(|| {
            let holds = |v: &&VarId| {
                let now = *self.facts.get(self.slot(**v));
                now != UNASSIGNED && (now == number || self.meaning(now) == number)
            };
            known.holder.iter().chain(&known.others).find(holds).map(|v| Operand::Var(*v))
        })
    }

    /// The best operand with the same value.
    fn best(&mut self, operand: Operand) -> Operand {
        let number = self.number(operand);
        self.holder(number).unwrap_or(operand)
    }

    fn hold(&mut self, var: VarId, number: Number) {
        self.facts.set(self.slot(var), number);
        self.known(number).held_by(var);
    }

    /// A new register.
    fn temp(&mut self, ty: Scalar) -> VarId {
        self.func.vars.push(Var { ty, name: None });
        self.facts.push(UNASSIGNED);
        VarId::new(self.func.vars.len() - 1)
    }

    fn list(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(body.len());
        self.depth += 1;
        self.append(body, &mut out);
        self.depth -= 1;
        out
    }

    fn append(&mut self, body: Vec<Stmt>, out: &mut Vec<Stmt>) {
        for stmt in body {
            if !self.facts.reached() {
                return;
            }
            self.stmt(stmt, out);
        }
    }

    fn stmt(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        if !matches!(stmt, Stmt::If { .. }) {
            let mut operands = Vec::new();
            stmt.reads(|o| operands.push(o));
            let mut best = operands.into_iter().map(|o| self.best(o)).collect::<Vec<_>>().into_iter();
            stmt.reads_mut(|o| *o = best.next().unwrap_or(*o));
        }
        match stmt {
            Stmt::Let { dst, op, args } => self.assign(dst, op, args, out),
            Stmt::Checked { dst, op, args, site } => self.checked(dst, op, args, site, out),
            Stmt::Load { dst, column, row } => {
                let ty = self.func.vars[dst.index()].ty;
                let content = *self.facts.get(Self::content(column.index()));
                let key = Key::Load(column, content, self.number(row), ty);
                let number = self.keyed(key);
                match self.holder(number) {
                    Some(held) => self.copy(dst, held, out),
                    None => {
                        self.hold(dst, number);
                        out.push(Stmt::Load { dst, column, row });
                    }
                }
            }
            Stmt::Store { column, row, value } => self.store(column, row, value, out),
            Stmt::If { cond, then, otherwise } => self.branch(cond, then, otherwise, out),
            Stmt::Block { label, body } => {
                let body = tidy_tail(body, label, MAX_DEPTH.saturating_sub(self.depth));
                let assumed = self.assumed.len();
                self.facts.open(label);
                let body = self.list(body);
                self.facts.close_block();
                self.retract(assumed);
                emit_block(label, body, out);
            }
            Stmt::Loop { label, body } => {
                let assumed = self.assumed.len();
                self.facts.open(label);
                self.forget(&body);
                let body = self.list(body);
                let repeats = self.facts.reached();
                self.facts.close_loop();
                self.retract(assumed);
                if repeats {
                    out.push(Stmt::Loop { label, body });
                } else {
                    emit_block(label, body, out);
                }
            }
            Stmt::Try { .. } => unreachable!("`unwind` comes first"),
            Stmt::Break(label) => {
                self.facts.break_to(label);
                out.push(stmt);
            }
            Stmt::Return(_) | Stmt::Trap { .. } => {
                self.facts.end();
                out.push(stmt);
            }
            Stmt::Call { func, ref dsts, .. } => {
                for dst in dsts {
                    let number = self.fresh();
                    self.hold(*dst, number);
                }
                for column in 0..self.columns {
                    if self.effects[func.index()].writes[column] {
                        self.change(Self::content(column));
                    }
                }
                out.push(stmt);
            }
            Stmt::FetchAdd { dst, column, .. } => {
                let number = self.fresh();
                self.hold(dst, number);
                self.change(Self::content(column.index()));
                out.push(stmt);
            }
            Stmt::Meet { dst, .. } => {
                let number = self.fresh();
                self.hold(dst, number);
                (0..self.columns).for_each(|column| self.change(Self::content(column)));
                out.push(stmt);
            }
            Stmt::Alloc { dst, .. } => {
                let number = self.fresh();
                self.hold(dst, number);
                out.push(stmt);
            }
            Stmt::Atomic { column, .. } => {
                self.change(Self::content(column.index()));
                out.push(stmt);
            }
            Stmt::Begin { index, tick, .. } => {
                self.change(CONTEXT);
                let context = *self.facts.get(CONTEXT);
                for (ctx, operand) in [(Ctx::Index, index), (Ctx::Tick, tick)] {
                    let number = self.number(operand);
                    self.numbers.insert(Key::Op(Op::Ctx(ctx), Scalar::I64, padded(&[context])), number);
                }
                out.push(stmt);
            }
            Stmt::Emit { .. } | Stmt::KeyPart { .. } | Stmt::Place(_) | Stmt::Poll => out.push(stmt),
        }
    }

    /// The slot has new, unknown content from here on.
    fn change(&mut self, slot: usize) {
        let number = self.fresh();
        self.facts.set(slot, number);
    }

    /// Everything that the body of a loop may change has an unknown value at its head.
    fn forget(&mut self, body: &[Stmt]) {
        let mut slots = Vec::new();
        walk(body, &mut |s| {
            slots.extend(s.assigns().iter().map(|v| self.slot(*v)));
            match s {
                Stmt::Store { column, .. } | Stmt::Atomic { column, .. } | Stmt::FetchAdd { column, .. } => {
                    slots.push(Self::content(column.index()))
                }
                Stmt::Begin { .. } => slots.push(CONTEXT),
                Stmt::Call { func, .. } => {
                    let writes = self.effects[func.index()].writes.iter().enumerate();
                    slots.extend(writes.filter(|(_, w)| **w).map(|(c, _)| Self::content(c)));
                }
                Stmt::Meet { .. } => slots.extend((0..self.columns).map(Self::content)),
                _ => {}
            }
        });
        slots.sort_unstable();
        slots.dedup();
        for slot in slots {
            // What was not assigned before the loop may not be at its head either.
            if *self.facts.get(slot) != UNASSIGNED {
                self.change(slot);
            }
        }
    }

    fn copy(&mut self, dst: VarId, value: Operand, out: &mut Vec<Stmt>) {
        let number = self.number(value);
        if value == Operand::Var(dst) {
            return;
        }
        self.hold(dst, number);
        // The temporary from which a variable was made takes the variable's name.
        if let Operand::Var(source) = value
            && self.func.vars[source.index()].name.is_none()
            && self.assigned.get(dst.index()) == Some(&1)
        {
            let name = self.func.vars[dst.index()].name.clone();
            self.func.vars[source.index()].name = name;
        }
        out.push(Stmt::Let { dst, op: Op::Copy, args: vec![value] });
    }

    fn assign(&mut self, dst: VarId, mut op: Op, mut args: Vec<Operand>, out: &mut Vec<Stmt>) {
        let ty = self.func.vars[dst.index()].ty;
        loop {
            match simplify(op, ty, &args).or_else(|| self.through_definitions(op, &args)) {
                Some(Simpler::Is(value)) => return self.copy(dst, value, out),
                Some(Simpler::Op(simpler, operands)) => (op, args) = (simpler, operands),
                None => break,
            }
        }
        if matches!(op, Op::Random | Op::Ctx(Ctx::Stopped)) {
            let number = self.fresh();
            self.hold(dst, number);
            return out.push(Stmt::Let { dst, op, args });
        }
        let mut numbers = [UNASSIGNED; 3];
        for (number, arg) in numbers.iter_mut().zip(&args) {
            *number = self.number(*arg);
        }
        if let Op::Ctx(Ctx::Tick | Ctx::Index) = op {
            numbers[0] = *self.facts.get(CONTEXT);
        }
        if let Some(settled) = self.opposite(op, numbers) {
            return self.copy(dst, Operand::Bool(settled), out);
        }
        let number = self.keyed(Key::Op(op, ty, numbers));
        match self.holder(number) {
            Some(held) => self.copy(dst, held, out),
            None => {
                self.known(number).op = Some((op, numbers));
                self.hold(dst, number);
                out.push(Stmt::Let { dst, op, args });
            }
        }
    }

    /// The result of a comparison whose opposite is settled.
    fn opposite(&self, op: Op, numbers: Args) -> Option<bool> {
        let opposite = match op {
            Op::ICmp(cmp) => Op::ICmp(cmp.negated()),
            Op::UCmp(cmp) => Op::UCmp(cmp.negated()),
            Op::FCmp(cmp @ (Cmp::Eq | Cmp::Ne)) => Op::FCmp(cmp.negated()),
            _ => return None,
        };
        let number = self.numbers.get(&Key::Op(opposite, Scalar::Bool, numbers))?;
        match self.holder(self.meaning(*number))? {
            Operand::Bool(holds) => Some(!holds),
            _ => None,
        }
    }

    /// A simpler form that follows from how the operands were computed.
    fn through_definitions(&mut self, op: Op, args: &[Operand]) -> Option<Simpler> {
        let number = self.number(*args.first()?);
        let (inner, numbers) = self.known(number).op?;
        let matters = matches!(
            op,
            Op::Not
                | Op::FNeg
                | Op::FSingle
                | Op::Narrow
                | Op::FloatBits
                | Op::FloatFromBits
                | Op::ICmp(_)
                | Op::UCmp(_)
        );
        if !matters {
            return None;
        }
        let held: Option<Vec<Operand>> =
            numbers.iter().filter(|n| **n != UNASSIGNED).map(|n| self.holder(*n)).collect();
        let held = held?;
        Some(match (op, inner) {
            (Op::Not, Op::Not)
            | (Op::FNeg, Op::FNeg)
            | (Op::Narrow, Op::Widen)
            | (Op::FloatBits, Op::FloatFromBits)
            | (Op::FloatFromBits, Op::FloatBits) => Simpler::Is(held[0]),
            (Op::FSingle, Op::FSingle) => Simpler::Is(args[0]),
            // The low half of a register without its high half.
            (Op::Narrow, Op::And) if matches!(held[1], Operand::I64(mask) if mask as u32 == u32::MAX) => {
                Simpler::Op(Op::Narrow, vec![held[0]])
            }
            (Op::Not, Op::ICmp(cmp)) => Simpler::Op(Op::ICmp(cmp.negated()), held),
            (Op::Not, Op::UCmp(cmp)) => Simpler::Op(Op::UCmp(cmp.negated()), held),
            (Op::Not, Op::FCmp(cmp @ (Cmp::Eq | Cmp::Ne))) => Simpler::Op(Op::FCmp(cmp.negated()), held),
            // A comparison of one of two constants with a third is the choice itself, or its opposite, or settled.
            (Op::ICmp(_) | Op::UCmp(_), Op::Select) => {
                let arm = |choice: Operand| match simplify(op, Scalar::Bool, &[choice, args[1]]) {
                    Some(Simpler::Is(constant @ Operand::Bool(_))) => Some(constant),
                    _ => None,
                };
                Simpler::Op(Op::Select, vec![held[0], arm(held[1])?, arm(held[2])?])
            }
            _ => return None,
        })
    }

    fn checked(&mut self, dst: VarId, op: CheckedOp, args: [Operand; 2], site: crate::ir::SiteId, out: &mut Vec<Stmt>) {
        use Operand::I64;
        let known = match (op, args) {
            (CheckedOp::Add, [I64(a), I64(b)]) => a.checked_add(b).map(I64),
            (CheckedOp::Sub, [I64(a), I64(b)]) => a.checked_sub(b).map(I64),
            (CheckedOp::Mul, [I64(a), I64(b)]) => a.checked_mul(b).map(I64),
            (CheckedOp::And, [I64(a), I64(b)]) => Some(I64(a & b)).filter(|_| a & b >= 0),
            (CheckedOp::And, [_, I64(0)] | [I64(0), _]) => Some(I64(0)),
            (CheckedOp::Add | CheckedOp::Sub, [a, I64(0)]) | (CheckedOp::Add, [I64(0), a]) => Some(a),
            (CheckedOp::Mul, [a, I64(1)] | [I64(1), a]) => Some(a),
            (CheckedOp::Mul, [_, I64(0)] | [I64(0), _]) => Some(I64(0)),
            (CheckedOp::Sub, [a, b]) if a == b => Some(I64(0)),
            _ => None,
        };
        if let Some(value) = known {
            return self.copy(dst, value, out);
        }
        let key = Key::Checked(op, args.map(|a| self.number(a)));
        let number = self.keyed(key);
        match self.holder(number) {
            Some(held) => self.copy(dst, held, out),
            None => {
                self.hold(dst, number);
                out.push(Stmt::Checked { dst, op, args, site });
            }
        }
    }

    fn store(&mut self, column: ColumnId, row: Operand, value: Operand, out: &mut Vec<Stmt>) {
        let slot = Self::content(column.index());
        let (row_number, number, ty) = (self.number(row), self.number(value), self.func.ty(value));
        let content = *self.facts.get(slot);
        let there = self.numbers.get(&Key::Load(column, content, row_number, ty));
        if there.is_some_and(|n| self.meaning(*n) == number) {
            return;
        }
        self.change(slot);
        if self.exact[column.index()] {
            let content = *self.facts.get(slot);
            self.numbers.insert(Key::Load(column, content, row_number, ty), number);
        }
        out.push(Stmt::Store { column, row, value });
    }

    fn branch(&mut self, cond: Operand, then: Vec<Stmt>, otherwise: Vec<Stmt>, out: &mut Vec<Stmt>) {
        let number = self.number(cond);
        let cond = match self.holder(number).unwrap_or(cond) {
            Operand::Bool(true) => return self.append(then, out),
            Operand::Bool(false) => return self.append(otherwise, out),
            cond => cond,
        };
        if let Some((Op::Not, inner)) = self.known(number).op
            && let Some(inner) = self.holder(inner[0])
        {
            return self.branch(inner, otherwise, then, out);
        }
        let (mark, assumed) = (self.facts.mark(), self.assumed.len());
        self.assume(number, true);
        let then = self.list(then);
        let after_then = self.facts.edge(mark);
        self.facts.undo(mark);
        let learnt_then = self.retract(assumed);
        self.assume(number, false);
        let otherwise = self.list(otherwise);
        let after_otherwise = self.facts.edge(mark);
        self.facts.undo(mark);
        let learnt_otherwise = self.retract(assumed);
        if let Some(selects) = self.as_selects(cond, &then, &otherwise) {
            // The walk over `selects` records what the registers hold.
            return self.append(selects, out);
        }
        self.emit_branch(cond, then, otherwise, out);
        match (&after_then, &after_otherwise) {
            (Some(_), None) => self.assume_all(&learnt_then),
            (None, Some(_)) => self.assume_all(&learnt_otherwise),
            _ => {}
        }
        let edges: Vec<_> = after_then.into_iter().chain(after_otherwise).collect();
        self.facts.merge(&edges);
    }

    /// Emits an `If` with a branch that ends early, followed by the rest unnested. The facts are those before the
    /// branch.
    fn emit_branch(&mut self, cond: Operand, then: Vec<Stmt>, otherwise: Vec<Stmt>, out: &mut Vec<Stmt>) {
        if then.is_empty() && otherwise.is_empty() {
            return;
        }
        if ends(&then) {
            out.push(Stmt::If { cond, then, otherwise: Vec::new() });
            out.extend(otherwise);
        } else if ends(&otherwise) {
            let negated = match self.through_definitions(Op::Not, &[cond]) {
                Some(Simpler::Is(operand)) => operand,
                simpler => {
                    let (op, args) = match simpler {
                        Some(Simpler::Op(op, args)) => (op, args),
                        _ => (Op::Not, vec![cond]),
                    };
                    let dst = self.temp(Scalar::Bool);
                    out.push(Stmt::Let { dst, op, args });
                    Operand::Var(dst)
                }
            };
            out.push(Stmt::If { cond: negated, then: otherwise, otherwise: Vec::new() });
            out.extend(then);
        } else {
            out.push(Stmt::If { cond, then, otherwise });
        }
    }

    /// Turns branches that only copy to a few registers into selects. The facts are those before the branch.
    fn as_selects(&self, cond: Operand, then: &[Stmt], otherwise: &[Stmt]) -> Option<Vec<Stmt>> {
        let copies = |body: &[Stmt]| -> Option<Vec<(VarId, Operand)>> {
            body.iter()
                .map(|s| match s {
                    Stmt::Let { dst, op: Op::Copy, args } => Some((*dst, args[0])),
                    _ => None,
                })
                .collect()
        };
        let (then, otherwise) = (copies(then)?, copies(otherwise)?);
        let targets = || then.iter().chain(&otherwise).map(|(dst, _)| *dst);
        let sources = || then.iter().chain(&otherwise).map(|(_, source)| *source);
        if then.len() + otherwise.len() > 6 || targets().any(|dst| sources().any(|s| s == Operand::Var(dst))) {
            return None;
        }
        if targets().any(|dst| cond == Operand::Var(dst)) {
            return None;
        }
        let mut selects = Vec::new();
        let mut done: Vec<VarId> = Vec::new();
        for dst in targets() {
            if done.contains(&dst) {
                continue;
            }
            done.push(dst);
            // The last copy counts; where a branch has none, the register keeps its value, if it surely has one.
            let in_branch = |copies: &[(VarId, Operand)]| copies.iter().rev().find(|(d, _)| *d == dst).map(|(_, s)| *s);
            let assigned = *self.facts.get(self.slot(dst)) != UNASSIGNED;
            let kept = || assigned.then_some(Operand::Var(dst));
            let args = vec![cond, in_branch(&then).or_else(kept)?, in_branch(&otherwise).or_else(kept)?];
            selects.push(Stmt::Let { dst, op: Op::Select, args });
        }
        Some(selects)
    }

    /// From here on the condition with this number has the value `holds`; so have the conditions that follow from it.
    fn assume(&mut self, number: Number, holds: bool) {
        let value = self.constant(Operand::Bool(holds));
        let known = self.known(number);
        if known.constant.is_some() || known.means.is_some() {
            return;
        }
        let op = known.op;
        self.equate(number, value);
        match (op, holds) {
            (Some((Op::Not, args)), _) => self.assume(args[0], !holds),
            (Some((Op::And, args)), true) | (Some((Op::Or, args)), false) => {
                args[..2].iter().for_each(|a| {
                    let meaning = self.meaning(*a);
                    self.assume(meaning, holds);
                });
            }
            (Some((Op::ICmp(Cmp::Eq), args)), true) | (Some((Op::ICmp(Cmp::Ne), args)), false) => {
                let (a, b) = (self.meaning(args[0]), self.meaning(args[1]));
                if self.known(b).constant.is_some() && self.known(a).constant.is_none() {
                    self.equate(a, b);
                }
            }
            _ => {}
        }
    }

    fn equate(&mut self, number: Number, value: Number) {
        if number != value {
            self.known(number).means = Some(value);
            self.assumed.push(number);
        }
    }

    fn assume_all(&mut self, learnt: &[(Number, Number)]) {
        for (number, value) in learnt {
            if self.known(*number).means.is_none() {
                self.equate(*number, *value);
            }
        }
    }

    /// Takes back all assumptions but the first `keep`; returns those taken back.
    fn retract(&mut self, keep: usize) -> Vec<(Number, Number)> {
        let mut learnt = Vec::new();
        for number in self.assumed.split_off(keep) {
            learnt.extend(self.known(number).means.take().map(|value| (number, value)));
        }
        learnt
    }
}

fn padded(numbers: &[Number]) -> Args {
    let mut args = [UNASSIGNED; 3];
    args[..numbers.len()].copy_from_slice(numbers);
    args
}

/// Whether control never reaches the end of the list, by its last statement.
fn ends(body: &[Stmt]) -> bool {
    match body.last() {
        Some(Stmt::If { then, otherwise, .. }) => ends(then) && ends(otherwise),
        Some(last) => last.ends_list(),
        None => false,
    }
}

/// In a block: `if c { A; break } B` to `if c { A } else { B }`, where that does not nest too deep.
fn tidy_tail(mut body: Vec<Stmt>, label: LabelId, room: usize) -> Vec<Stmt> {
    if room == 0 {
        return body;
    }
    let leaves = |s: &Stmt| {
        matches!(s, Stmt::If { then, otherwise, .. }
        if otherwise.is_empty() && matches!(then.last(), Some(Stmt::Break(to)) if *to == label))
    };
    if let Some(at) = body.iter().position(leaves) {
        let rest = tidy_tail(body.split_off(at + 1), label, room - 1);
        if let Some(Stmt::If { then, otherwise, .. }) = body.last_mut() {
            then.pop();
            *otherwise = rest;
        }
    }
    body
}

/// Emits the block, or only its content if no statement breaks out of it.
fn emit_block(label: LabelId, mut body: Vec<Stmt>, out: &mut Vec<Stmt>) {
    drop_tail_breaks(&mut body, label);
    if breaks_to(&body, label) {
        out.push(Stmt::Block { label, body });
    } else {
        out.append(&mut body);
    }
}

/// Drops breaks at the end of a block, where control leaves the block anyway.
fn drop_tail_breaks(body: &mut Vec<Stmt>, label: LabelId) {
    match body.last_mut() {
        Some(Stmt::Break(to)) if *to == label => {
            body.pop();
            drop_tail_breaks(body, label);
        }
        Some(Stmt::If { then, otherwise, .. }) => {
            drop_tail_breaks(then, label);
            drop_tail_breaks(otherwise, label);
        }
        Some(Stmt::Block { body, .. }) => drop_tail_breaks(body, label),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{DOMAIN, INPUT, INTS, OUT, OVERFLOW, TAGS, ZERO, program, with_functions};
    use crate::ir::{AtomicOp, CheckedOp, Cmp, Ctx, FuncId, Op, Operand, ParamId, Scalar, Stmt};
    use crate::passes::{dce, testing::after};

    fn check(body: impl FnOnce(&mut Builder, Operand)) -> String {
        after(&[PASS, dce::PASS], program(body))
    }

    #[test]
    fn constants_and_copies() {
        insta::assert_snapshot!(check(|b, index| {
            let x = b.var(Scalar::I64, Some("x".into()));
            b.set(x, Operand::I64(20));
            let y = b.i64(Op::Add, &[x.into(), Operand::I64(22)]);
            let sum = b.i64(Op::Add, &[y, index]);
            let total = b.var(Scalar::I64, Some("total".into()));
            b.set(total, sum);
            b.store(INTS, index, total.into());
            let never = b.icmp(Cmp::Gt, x.into(), Operand::I64(30));
            b.when(never, |b| b.trap(ZERO, vec![]));
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          total.3: i64 = add job.0, 42
          store ints[job.0] = total.3
        }
        "#);
    }

    #[test]
    fn what_is_rounded_to_32_bits_is_not_rounded_again() {
        let text = check(|b, index| {
            let x = b.f64(Op::IntToFloat, &[index]);
            let once = b.f64(Op::FSingle, &[x]);
            let twice = b.f64(Op::FSingle, &[once]);
            let bits = b.i64(Op::FloatBits, &[twice]);
            b.store(INTS, index, bits);
        });
        assert_eq!(text.matches("fsingle").count(), 1, "{text}");
    }

    #[test]
    fn loads_and_stores() {
        insta::assert_snapshot!(check(|b, index| {
            let a = b.load(Scalar::I64, INPUT, index);
            let again = b.load(Scalar::I64, INPUT, index);
            let sum = b.i64(Op::Add, &[a, again]);
            b.store(INTS, index, sum);
            let stored = b.load(Scalar::I64, INTS, index);
            b.store(INPUT, Operand::I64(0), stored);
            // The row may be the same one.
            let unknown = b.load(Scalar::I64, INPUT, index);
            b.store(INTS, index, unknown);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = load in[job.0]
          v4: i64 = add v3, v3
          store ints[job.0] = v4
          store in[0] = v4
          v5: i64 = load in[job.0]
          store ints[job.0] = v5
        }
        "#);
    }

    #[test]
    fn a_store_of_what_is_there_goes() {
        insta::assert_snapshot!(check(|b, index| {
            let a = b.load(Scalar::I64, INPUT, index);
            b.store(INPUT, index, a);
            b.store(INTS, index, Operand::I64(1));
            b.store(INTS, index, Operand::I64(1));
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          store ints[job.0] = 1
        }
        "#);
    }

    #[test]
    fn atomics_and_calls_that_write_make_loads_unknown() {
        let mut b = Builder::new("writes".into(), vec![]);
        b.store(INTS, Operand::I64(0), Operand::I64(1));
        let program = with_functions(vec![b.finish()], |b, index| {
            let mut sum = b.load(Scalar::I64, INTS, index);
            b.push(Stmt::Atomic { op: AtomicOp::Add, column: INTS, row: index, value: index, site: None });
            let x = b.load(Scalar::I64, INTS, index);
            sum = b.i64(Op::Add, &[sum, x]);
            let other = b.load(Scalar::I64, INPUT, index);
            b.call(FuncId(1), vec![], &[], None);
            for column in [INTS, INPUT] {
                let x = b.load(Scalar::I64, column, index);
                sum = b.i64(Op::Add, &[sum, x]);
            }
            let sum = b.i64(Op::Add, &[sum, other]);
            b.store(INTS, index, sum);
        });
        insta::assert_snapshot!(after(&[PASS, dce::PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = load ints[job.0]
          atomic add ints[job.0], job.0
          v4: i64 = load ints[job.0]
          v5: i64 = add v3, v4
          v6: i64 = load in[job.0]
          call f1 "writes"
          v7: i64 = load ints[job.0]
          v8: i64 = add v5, v7
          v9: i64 = add v8, v6
          v10: i64 = add v9, v6
          store ints[job.0] = v10
        }

        func f1 "writes" () {
          store ints[0] = 1
        }
        "#);
    }

    #[test]
    fn loops_forget_what_they_change() {
        insta::assert_snapshot!(check(|b, index| {
            let i = b.var(Scalar::I64, Some("i".into()));
            b.set(i, Operand::I64(0));
            let kept = b.load(Scalar::I64, INPUT, index);
            let changed = b.load(Scalar::I64, INTS, index);
            b.repeat(|b, done| {
                let end = b.icmp(Cmp::Ge, i.into(), Operand::I64(10));
                b.when(end, |b| b.push(Stmt::Break(done)));
                let a = b.load(Scalar::I64, INPUT, index);
                let c = b.load(Scalar::I64, INTS, index);
                let sum = b.i64(Op::Add, &[a, c]);
                let sum = b.i64(Op::Add, &[sum, kept]);
                let sum = b.i64(Op::Add, &[sum, changed]);
                b.store(INTS, index, sum);
                let next = b.i64(Op::Add, &[i.into(), Operand::I64(1)]);
                b.set(i, next);
            });
            // Not 0.
            b.store(INTS, index, i.into());
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          i.3: i64 = copy 0
          v4: i64 = load in[job.0]
          v5: i64 = load ints[job.0]
          loop L0 {
            v6: bool = icmp.ge i.3, 10
            if v6 {
              break L0
            }
            v7: i64 = load ints[job.0]
            v8: i64 = add v4, v7
            v9: i64 = add v8, v4
            v10: i64 = add v9, v5
            store ints[job.0] = v10
            i.3 = add i.3, 1
          }
          store ints[job.0] = i.3
        }
        "#);
    }

    #[test]
    fn settled_conditions() {
        insta::assert_snapshot!(check(|b, index| {
            let tag = b.load(Scalar::I32, TAGS, index);
            let nil = b.icmp(Cmp::Eq, tag, Operand::I32(0));
            b.trap_if(nil, ZERO, vec![]);
            // Known not to be nil here, so only the second can be.
            let still = b.icmp(Cmp::Eq, tag, Operand::I32(0));
            b.trap_if(still, ZERO, vec![]);
            let three = b.icmp(Cmp::Eq, tag, Operand::I32(3));
            b.branch(three, |b| {
                let wide = b.i64(Op::Widen, &[tag]);
                b.store(INTS, index, wide);
            }, |b| {
                let not = b.icmp(Cmp::Ne, tag, Operand::I32(3));
                b.trap_if(not, DOMAIN, vec![index]);
            });
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i32 = load tags[job.0]
          v4: bool = icmp.eq v3, 0i32
          if v4 {
            trap s3
          }
          v5: bool = icmp.ne v3, 3i32
          if v5 {
            trap s1 job.0
          }
          store ints[job.0] = 3
        }
        "#);
    }

    #[test]
    fn a_branch_that_chooses_is_a_select() {
        insta::assert_snapshot!(check(|b, index| {
            let limit = b.load(Scalar::F64, OUT, index);
            let x = b.f64(Op::Param(ParamId(1)), &[]);
            let velocity = b.var(Scalar::F64, Some("velocity".into()));
            let less = b.fcmp(Cmp::Lt, x, limit);
            b.branch(less, |b| b.set(velocity, x), |b| b.set(velocity, limit));
            b.store(OUT, index, velocity.into());
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: f64 = load out[job.0]
          v4: f64 = param p1 "x"
          v5: bool = fcmp.lt v4, v3
          velocity.6: f64 = select v5, v4, v3
          store out[job.0] = velocity.6
        }
        "#);
    }

    #[test]
    fn an_assignment_in_one_branch_of_a_variable_without_value_stays_a_branch() {
        insta::assert_snapshot!(check(|b, index| {
            let x = b.temp(Scalar::I64);
            let flag = b.bool(Op::Param(ParamId(2)), &[]);
            b.when(flag, |b| b.set(x, index));
            let again = b.bool(Op::Param(ParamId(2)), &[]);
            b.when(again, |b| {
                b.set(x, index);
                b.store(INTS, index, x.into());
            });
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: bool = param p2 "flag"
          if v3 {
            store ints[job.0] = job.0
          }
        }
        "#);
    }

    #[test]
    fn early_exits_become_branches() {
        insta::assert_snapshot!(check(|b, index| {
            let result = b.var(Scalar::I64, Some("result".into()));
            b.block(|b, out| {
                let small = b.icmp(Cmp::Lt, index, Operand::I64(3));
                b.when(small, |b| {
                    let double = b.checked(CheckedOp::Add, index, index, OVERFLOW);
                    b.set(result, double);
                    b.push(Stmt::Break(out));
                });
                let big = b.icmp(Cmp::Gt, index, Operand::I64(30));
                b.when(big, |b| {
                    b.set(result, index);
                    b.push(Stmt::Break(out));
                });
                b.set(result, Operand::I64(0));
            });
            b.store(INTS, index, result.into());
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: bool = icmp.lt job.0, 3
          if v3 {
            result.4: i64 = checked add job.0, job.0 else s0
          } else {
            v5: bool = icmp.gt job.0, 30
            result.4 = select v5, job.0, 0
          }
          store ints[job.0] = result.4
        }
        "#);
    }

    #[test]
    fn tick_and_index_are_what_was_begun() {
        insta::assert_snapshot!(check(|b, _| {
            for ctx in [Ctx::Tick, Ctx::Index] {
                let x = b.i64(Op::Ctx(ctx), &[]);
                b.store(INTS, x, x);
            }
            b.push(Stmt::Begin { index: Operand::I64(7), tick: Operand::I64(1), check: false });
            let x = b.i64(Op::Ctx(Ctx::Index), &[]);
            b.store(INTS, x, x);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          store ints[first.1] = first.1
          store ints[job.0] = job.0
          begin 7, 1
          store ints[7] = 7
        }
        "#);
    }

    #[test]
    fn a_loop_that_never_repeats_is_none() {
        insta::assert_snapshot!(check(|b, index| b.repeat(|b, done| {
            b.store(INTS, index, Operand::I64(1));
            b.push(Stmt::Break(done));
        })), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          store ints[job.0] = 1
        }
        "#);
    }

    #[test]
    fn a_negation_is_computed_before_the_branch() {
        insta::assert_snapshot!(check(|b, index| {
            let (i, k) = (b.temp(Scalar::I64), b.temp(Scalar::I64));
            b.set(i, index);
            b.set(k, Operand::I64(0));
            b.repeat(|b, done| {
                let small = b.icmp(Cmp::Lt, i.into(), Operand::I64(5));
                b.branch(small, |b| {
                    b.set(k, i.into());
                    let next = b.i64(Op::Add, &[i.into(), Operand::I64(1)]);
                    b.set(i, next);
                    b.store(INTS, index, k.into());
                }, |b| b.push(Stmt::Break(done)));
            });
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = copy job.0
          loop L0 {
            v4: bool = icmp.ge v3, 5
            if v4 {
              break L0
            }
            v5: i64 = copy v3
            v3 = add v3, 1
            store ints[job.0] = v5
          }
        }
        "#);
    }
}
