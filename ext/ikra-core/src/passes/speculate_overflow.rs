//! Speculation on overflow: a loop computes as if no Integer left 64 bits. A test after the loop finds out whether one
//! did.
//!
//! A check is a branch. A branch keeps compilers for GPUs from overlapping the loads of several repetitions, so each
//! repetition waits for each of its loads. So `loop { x = load c[i]; y = x * x or raise; …; i += 1; break if i >= n }`
//! becomes
//!
//! ```text
//! was = what changes from one repetition to the next; exceeds = 0
//! loop { x = load c[i]; y = low(x) * low(x); exceeds |= x does not fit into 32 bits; …; i += 1; break if i >= n }
//! if exceeds != 0 { what changes = was; loop { as it was } }
//! ```
//!
//! The second loop is the original one and starts from the same state as the first. It raises where the program raises.
//! It also computes what the first loop could not: the first loop assumes that factors fit into 32 bits, which costs a
//! fifth of a checked product of 64 bits. Within an outer loop, a loop whose assumption about Integers failed once does
//! not speculate again. Floats that are 0 or otherwise not ordinary are rare.
//!
//! A quotient and a root of Floats are branches, too. Compilers compute both by a dozen instructions that are right for
//! nearly all numbers, and call a function for the others. The first loop computes all of them without a branch
//! (`quick_div` and `quick_sqrt` of the prelude, and the same for 32 bits). It notes whether each operand lies between
//! 2⁻²⁵⁵ and 2²⁵⁷, where that gives the same bits as Ruby's division; with 32 bits, these ends are nearer. So the GPU
//! computes several repetitions at once, instead of waiting for each root.
//!
//! In the first loop registers may hold values that are not numbers of Ruby. Therefore the first loop uses no such
//! value
//!
//! * as a value to store, or as a row,
//! * as an operand of an operation that has a precondition,
//! * as the condition of a branch that contains a load.
//!
//! The loop ends by its count alone.
//!
//! Only in [`super::CUDA`]: processors with branch prediction gain nothing.

use super::loops::{Counting, is_movable};
use super::{Pass, Versioned, single};
use crate::ir::verify::assigned_before_loops;
use crate::ir::visit::{size, walk_mut};
use crate::ir::{CheckedOp, Cmp, Func, FuncId, LabelId, Op, Operand, Program, Scalar, Stmt, Var, VarId, walk};
use std::collections::{HashMap, HashSet};

pub const PASS: Pass<Versioned> = Pass {
    name: "speculate_overflow",
    description: "loops compute as if nothing overflowed, and run again if something did",
    run: |state| {
        let (program, versions) = speculate_overflow(state.program);
        Versioned { program, versions }
    },
};

/// The most statements of a loop, since the code has its body twice.
const BODY: usize = 60;
/// Half of the bits of an Integer, and the number of bits after the sign in each half.
const HALF: i64 = 32;
const SIGN: i32 = 31;
/// Added to the upper half of a Float, it leaves both of the bits of [`IS_ORDINARY`] set exactly if the exponent is
/// ordinary (from -255 to 256). Quotients of two such Floats are far from denormal or infinite.
const ORDINARY: i32 = 768 << 20;
const IS_ORDINARY: i32 = 3 << 29;
/// The same for a Float of 32 bits: the exponent is from -31 to 32. That is asked of dividends.
const ORDINARY_SINGLE: i32 = ORDINARY;
/// Added to a Float of 32 bits, it leaves the upper of these bits set exactly if the exponent is from -63 to 64. That
/// is asked of divisors and of what a root is taken of. Quotients and what divisions leave are then far from denormal.
const WIDE_SINGLE: i32 = 1 << 29;
/// The lower of these bits.
const LOWER: i32 = 1 << 29;

/// A loop that is there twice: a fast version that speculates, and an exact one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoopVersions {
    pub func: FuncId,
    pub fast: LabelId,
    /// Runs where an assumption of the fast version failed, which is rare.
    pub exact: LabelId,
    /// The fast version assumes that the operands of Float quotients and roots are ordinary.
    pub floats: bool,
}

/// Whether an operation on Floats has a fast version. A loop may use it on the assumption that the operands are
/// ordinary.
pub fn is_quick(op: Op, args: &[Operand]) -> bool {
    match (op, args) {
        // compilers turn a division by a power of two into a product
        (Op::FDiv, [_, Operand::F64(by)]) => by & ((1 << 52) - 1) != 0,
        (Op::FDiv | Op::FSqrt, _) => true,
        _ => false,
    }
}

/// The program, for processors that wait at loads and branches, and the loops that it now has in two versions.
pub fn speculate_overflow(mut program: Program) -> (Program, Vec<LoopVersions>) {
    let mut versions = Vec::new();
    let singles = single(&program);
    let known: Vec<_> = program.funcs.iter().map(|func| assigned_before_loops(&program, func)).collect();
    for (((i, func), single), known) in program.funcs.iter_mut().enumerate().zip(singles).zip(known) {
        let (reads, id) = (reads(&func.body, func.vars.len()), FuncId::new(i));
        let mut body = std::mem::take(&mut func.body);
        let mut walker = Walker { func, id, known, reads, single, wrong: Vec::new(), versions: &mut versions };
        walker.list(&mut body, false);
        func.body = body;
    }
    only_with_marks(&program, &mut versions);
    (program, versions)
}

/// Takes back that a loop uses the fast versions for Floats, if one of 32 bits has no mark for these. Backends find out
/// anew which registers have 32 bits.
fn only_with_marks(program: &Program, versions: &mut [LoopVersions]) {
    if versions.iter().all(|pair| !pair.floats) {
        return;
    }
    let singles = single(program);
    for pair in versions.iter_mut().filter(|pair| pair.floats) {
        let (single, mut marked, mut wanted) = (&singles[pair.func.index()], HashSet::new(), Vec::new());
        walk(&program.funcs[pair.func.index()].body, &mut |stmt| {
            let Stmt::Loop { label, body } = stmt else { return };
            if *label != pair.fast {
                return;
            }
            walk(body, &mut |stmt| match stmt {
                Stmt::Let { op: Op::SingleBits, args, .. } => marked.extend(args.iter().copied()),
                Stmt::Let { dst, op, args } if single[dst.index()] && is_quick(*op, args) => {
                    wanted.extend(args.iter().copied().filter(|arg| matches!(arg, Operand::Var(_))));
                }
                _ => {}
            });
        });
        pair.floats = wanted.iter().all(|arg| marked.contains(arg));
    }
}

struct Walker<'a> {
    func: &'a mut Func,
    id: FuncId,
    /// For each loop of the original function: the registers that have a value before it on every path.
    known: HashMap<LabelId, Option<Vec<bool>>>,
    /// How often each register is read in the original function.
    reads: Vec<u32>,
    /// Which registers have Floats of 32 bits.
    single: Vec<bool>,
    /// One flag for each speculating loop in the outermost loop around: whether its assumption failed before.
    wrong: Vec<VarId>,
    versions: &'a mut Vec<LoopVersions>,
}

impl Walker<'_> {
    fn list(&mut self, body: &mut Vec<Stmt>, nested: bool) {
        for mut stmt in std::mem::take(body) {
            if let Some(floats) = is_assumable(&stmt, &self.single) {
                self.twice(stmt, floats, nested, body);
                continue;
            }
            let inside = nested || matches!(stmt, Stmt::Loop { .. });
            stmt.bodies_mut().into_iter().flatten().for_each(|inner| self.list(inner, inside));
            if !nested {
                let none = |wrong: VarId| Stmt::Let { dst: wrong, op: Op::Copy, args: vec![Operand::Bool(false)] };
                body.extend(self.wrong.drain(..).map(none));
            }
            body.push(stmt);
        }
    }

    fn twice(&mut self, exact: Stmt, floats: bool, nested: bool, out: &mut Vec<Stmt>) {
        let Stmt::Loop { label, body } = &exact else { return };
        let fast = self.label();
        self.versions.push(LoopVersions { func: self.id, fast, exact: *label, floats });
        let copy = |(dst, from): (VarId, VarId)| Stmt::Let { dst, op: Op::Copy, args: vec![from.into()] };
        let (changed, own) = self.assigned(*label, body);
        let kept: Vec<(VarId, VarId)> = changed.into_iter().map(|v| (self.like(v), v)).collect();
        let mut first: Vec<Stmt> = kept.iter().copied().map(copy).collect();

        let mut repeated = body.clone();
        let own: HashMap<VarId, VarId> = own.into_iter().map(|v| (v, self.like(v))).collect();
        rename(&mut repeated, &own);
        let mut assumed = Assumptions { floats, signs: None, exceeds: None, ordinary: None };
        self.assume(&mut repeated, &mut assumed);
        walk_mut(&mut repeated, &mut |stmt| {
            if let Stmt::Break(to) = stmt {
                *to = fast;
            }
        });
        let set = |mark, bits| Stmt::Let { dst: mark, op: Op::Copy, args: vec![Operand::I32(bits)] };
        let words = [(assumed.signs, 0), (assumed.exceeds, 0), (assumed.ordinary, IS_ORDINARY)];
        first.extend(words.iter().filter_map(|(mark, bits)| Some(set((*mark)?, *bits))));
        first.push(Stmt::Loop { label: fast, body: repeated });
        let mut failed = Operand::Bool(false);
        for ((mark, bits), cmp) in words.into_iter().zip([Cmp::Lt, Cmp::Ne, Cmp::Ne]) {
            let Some(mark) = mark else { continue };
            let one = self.push(&mut first, Scalar::Bool, Op::ICmp(cmp), &[mark.into(), Operand::I32(bits)]);
            failed = match failed {
                Operand::Bool(false) => one,
                other => self.push(&mut first, Scalar::Bool, Op::Or, &[other, one]),
            };
        }
        let mut again: Vec<Stmt> = kept.into_iter().map(|(was, v)| copy((v, was))).collect();
        let done = self.label();
        let wrong = (nested && !floats).then(|| self.var(Scalar::Bool));
        again.extend(wrong.map(|wrong| Stmt::Let { dst: wrong, op: Op::Copy, args: vec![Operand::Bool(true)] }));
        first.push(Stmt::If { cond: failed, then: again, otherwise: vec![Stmt::Break(done)] });
        if let Some(wrong) = wrong {
            self.wrong.push(wrong);
            first = vec![Stmt::If { cond: wrong.into(), then: Vec::new(), otherwise: first }];
        }
        first.push(exact);
        out.push(Stmt::Block { label: done, body: first });
    }

    /// The registers that a loop assigns and that had a value before it; and others that only the loop reads. Nothing
    /// reads a register that had none before the loop assigns it.
    fn assigned(&self, label: LabelId, body: &[Stmt]) -> (Vec<VarId>, Vec<VarId>) {
        let (mut assigned, read) = (vec![0; self.func.vars.len()], reads(body, self.func.vars.len()));
        walk(body, &mut |s| s.assigns().iter().for_each(|v| assigned[v.index()] += 1));
        let within = (0..assigned.len()).filter(|v| assigned[*v] > 0).map(VarId::new);
        let known = self.known.get(&label).and_then(Option::as_ref);
        let (changed, new): (Vec<VarId>, Vec<VarId>) =
            within.partition(|v| known.is_some_and(|known| known.get(v.index()) == Some(&true)));
        (changed, new.into_iter().filter(|v| self.reads[v.index()] == read[v.index()]).collect())
    }

    /// A register of the same type.
    fn like(&mut self, v: VarId) -> VarId {
        let new = self.var(self.func.vars[v.index()].ty);
        self.single[new.index()] = self.single[v.index()];
        new
    }

    fn label(&mut self) -> LabelId {
        self.func.labels += 1;
        LabelId::new(self.func.labels - 1)
    }

    fn var(&mut self, ty: Scalar) -> VarId {
        self.func.vars.push(Var { ty, name: None });
        self.single.push(false);
        VarId::new(self.func.vars.len() - 1)
    }

    fn push(&mut self, out: &mut Vec<Stmt>, ty: Scalar, op: Op, args: &[Operand]) -> Operand {
        let dst = self.var(ty);
        out.push(Stmt::Let { dst, op, args: args.to_vec() });
        dst.into()
    }

    /// Turns the checks of a body into flags that the loop collects.
    fn assume(&mut self, body: &mut Vec<Stmt>, marks: &mut Assumptions) {
        for mut stmt in std::mem::take(body) {
            if let Stmt::Checked { dst, op, args: [a, b], .. } = stmt {
                // the code after the operation still reads its operands
                let result = if [a, b].contains(&dst.into()) { self.var(Scalar::I64) } else { dst };
                self.checked(body, (result, op, a, b), marks);
                if result != dst {
                    body.push(Stmt::Let { dst, op: Op::Copy, args: vec![result.into()] });
                }
                continue;
            }
            if let Stmt::Let { dst, op, args } = &stmt
                && marks.floats
                && is_quick(*op, args)
                && self.single[dst.index()]
            {
                let (dividend, other) = operands(*op, args);
                dividend.into_iter().for_each(|x| self.ordinary_single(body, x, false, marks));
                self.ordinary_single(body, other, true, marks);
                if let (Op::FSqrt, Operand::Var(_)) = (op, other) {
                    let bits = self.push(body, Scalar::I32, Op::SingleBits, &[other]);
                    self.mark(body, &mut marks.signs, bits);
                }
            } else if let Stmt::Let { op, args, .. } = &stmt
                && marks.floats
                && is_quick(*op, args)
            {
                for x in args {
                    self.ordinary(body, *x, marks);
                }
                if let (Op::FSqrt, [x @ Operand::Var(_)]) = (op, &args[..]) {
                    let high = self.high_of_float(body, *x);
                    self.mark(body, &mut marks.signs, high);
                }
            }
            stmt.bodies_mut().into_iter().flatten().for_each(|inner| self.assume(inner, marks));
            body.push(stmt);
        }
    }

    /// Notes in `marks` whether a Float is not ordinary.
    fn ordinary(&mut self, out: &mut Vec<Stmt>, x: Operand, marks: &mut Assumptions) {
        if let Operand::F64(_) = x {
            return;
        }
        let high = self.high_of_float(out, x);
        let moved = self.push(out, Scalar::I32, Op::Add, &[high, Operand::I32(ORDINARY)]);
        let mark = *marks.ordinary.get_or_insert_with(|| self.var(Scalar::I32));
        out.push(Stmt::Let { dst: mark, op: Op::And, args: vec![mark.into(), moved] });
    }

    /// The same for a Float of 32 bits.
    fn ordinary_single(&mut self, out: &mut Vec<Stmt>, x: Operand, wide: bool, marks: &mut Assumptions) {
        if let Operand::F64(_) = x {
            return;
        }
        let by = if wide { WIDE_SINGLE } else { ORDINARY_SINGLE };
        let bits = self.push(out, Scalar::I32, Op::SingleBits, &[x]);
        let mut moved = self.push(out, Scalar::I32, Op::Add, &[bits, Operand::I32(by)]);
        if wide {
            moved = self.push(out, Scalar::I32, Op::Or, &[moved, Operand::I32(LOWER)]);
        }
        let mark = *marks.ordinary.get_or_insert_with(|| self.var(Scalar::I32));
        out.push(Stmt::Let { dst: mark, op: Op::And, args: vec![mark.into(), moved] });
    }

    fn high_of_float(&mut self, out: &mut Vec<Stmt>, x: Operand) -> Operand {
        let bits = self.push(out, Scalar::I64, Op::FloatBits, &[x]);
        self.high(out, bits)
    }

    fn checked(
        &mut self,
        out: &mut Vec<Stmt>,
        (dst, op, a, b): (VarId, CheckedOp, Operand, Operand),
        marks: &mut Assumptions,
    ) {
        let result = |op, args: [Operand; 2]| Stmt::Let { dst, op, args: args.to_vec() };
        let sum = |op| if op == CheckedOp::Add { Op::Add } else { Op::Sub };
        match (op, a, b) {
            (CheckedOp::Add | CheckedOp::Sub, ..) => {
                out.push(result(sum(op), [a, b]));
                let [first, second, high] = [a, b, dst.into()].map(|x| self.high(out, x));
                // Without overflow, a sum has the sign of one operand; a difference has the sign of the first or not
                // that of the second.
                let one = self.push(out, Scalar::I32, Op::Xor, &[first, high]);
                let from = if op == CheckedOp::Add { high } else { first };
                let other = self.push(out, Scalar::I32, Op::Xor, &[second, from]);
                let both = self.push(out, Scalar::I32, Op::And, &[one, other]);
                self.mark(out, &mut marks.signs, both);
            }
            (CheckedOp::And, ..) => {
                out.push(result(Op::And, [a, b]));
                let high = self.high(out, dst.into());
                self.mark(out, &mut marks.signs, high);
            }
            (CheckedOp::Mul, x, Operand::I64(by)) | (CheckedOp::Mul, Operand::I64(by), x)
                if !(-1..=1).contains(&by) =>
            {
                out.push(result(Op::Mul, [a, b]));
                // a factor from -most to most fits; if `by` is the least Integer, which has no negative, only the
                // factor 0 does
                let most = by.checked_abs().map_or(0, |by| i64::MAX / by);
                let up = self.push(out, Scalar::I64, Op::Add, &[x, Operand::I64(most)]);
                let beyond = self.push(out, Scalar::Bool, Op::UCmp(Cmp::Gt), &[up, Operand::I64(2 * most)]);
                let beyond = self.push(out, Scalar::I32, Op::BoolToInt, &[beyond]);
                self.mark(out, &mut marks.exceeds, beyond);
            }
            (CheckedOp::Mul, ..) => {
                let first = self.low(out, a, marks);
                let second = if a == b { first } else { self.low(out, b, marks) };
                out.push(result(Op::Mul, [first, second]));
            }
        }
    }

    fn high(&mut self, out: &mut Vec<Stmt>, x: Operand) -> Operand {
        if let Operand::I64(x) = x {
            return Operand::I32((x >> HALF) as i32);
        }
        let high = self.push(out, Scalar::I64, Op::UShr, &[x, Operand::I64(HALF)]);
        self.push(out, Scalar::I32, Op::Narrow, &[high])
    }

    /// The Integer as a number of 32 bits with sign. If it does not fit, `marks` records it.
    fn low(&mut self, out: &mut Vec<Stmt>, x: Operand, marks: &mut Assumptions) -> Operand {
        let high = self.high(out, x);
        let narrow = self.push(out, Scalar::I32, Op::Narrow, &[x]);
        let sign = self.push(out, Scalar::I32, Op::Shr, &[narrow, Operand::I32(SIGN)]);
        let differs = self.push(out, Scalar::I32, Op::Xor, &[high, sign]);
        self.mark(out, &mut marks.exceeds, differs);
        let up = self.push(out, Scalar::I64, Op::Shl, &[x, Operand::I64(HALF)]);
        self.push(out, Scalar::I64, Op::Shr, &[up, Operand::I64(HALF)])
    }

    fn mark(&mut self, out: &mut Vec<Stmt>, mark: &mut Option<VarId>, bits: Operand) {
        let mark = *mark.get_or_insert_with(|| self.var(Scalar::I32));
        out.push(Stmt::Let { dst: mark, op: Op::Or, args: vec![mark.into(), bits] });
    }
}

fn reads(body: &[Stmt], vars: usize) -> Vec<u32> {
    let mut reads = vec![0; vars];
    walk(body, &mut |stmt| {
        stmt.reads(|operand| {
            if let Operand::Var(v) = operand {
                reads[v.index()] += 1;
            }
        });
    });
    reads
}

fn rename(body: &mut [Stmt], names: &HashMap<VarId, VarId>) {
    walk_mut(body, &mut |stmt| {
        stmt.reads_mut(|operand| {
            if let Operand::Var(v) = operand {
                *v = names.get(v).copied().unwrap_or(*v);
            }
        });
        stmt.assigns_mut().iter_mut().for_each(|v| *v = names.get(v).copied().unwrap_or(*v));
    });
}

/// The flags in which a loop collects failed assumptions: words of 32 bits.
struct Assumptions {
    /// Whether the loop uses the fast versions of Float operations.
    floats: bool,
    /// Negative: a sum left 64 bits.
    signs: Option<VarId>,
    /// Not 0: a factor did not fit into 32 bits, or was too large.
    exceeds: Option<VarId>,
    /// Not [`IS_ORDINARY`]: a Float was not ordinary. Only these bits can be set.
    ordinary: Option<VarId>,
}

/// Whether a loop can speculate: it counts, has checks or Float operations with a fast version, and wrong values do no
/// harm in it. The answer says whether the loop may use the fast versions for Floats. None: it cannot speculate.
fn is_assumable(stmt: &Stmt, single: &[bool]) -> Option<bool> {
    let (_, repeated) = Counting::of(stmt, false)?;
    let (mut checks, mut quick, mut floats, mut simple, mut rounded) = (false, false, true, true, 0);
    walk(repeated, &mut |s| {
        checks |= matches!(s, Stmt::Checked { .. });
        simple &= matches!(s, Stmt::Let { .. } | Stmt::Load { .. } | Stmt::Checked { .. } | Stmt::If { .. });
        if let Stmt::Let { dst, op, args } = s {
            quick |= is_quick(*op, args);
            // no instruction for registers of 32 bits
            rounded += usize::from(*op == Op::FSingle && single[dst.index()]);
            let is_given = |x: Operand, wide: bool| match x {
                Operand::F64(bits) if single[dst.index()] => is_ordinary_single(bits, wide),
                Operand::F64(bits) => is_ordinary(bits),
                _ => true,
            };
            let given = || {
                let (dividend, other) = operands(*op, args);
                dividend.is_none_or(|x| is_given(x, false)) && is_given(other, true)
            };
            floats &= !is_quick(*op, args) || given();
            // functions of `Math` branch in any case
            floats &= !matches!(op, Op::Math(_));
        }
    });
    if !simple || size(repeated) - rounded > BODY {
        return None;
    }
    let tried = [(quick && floats).then_some(true), checks.then_some(false)];
    tried.into_iter().flatten().find(|floats| is_harmless(repeated, *floats))
}

fn is_ordinary(bits: u64) -> bool {
    ((bits >> HALF) as i32).wrapping_add(ORDINARY) & IS_ORDINARY == IS_ORDINARY
}

fn is_ordinary_single(bits: u64, wide: bool) -> bool {
    let bits = (f64::from_bits(bits) as f32).to_bits() as i32;
    if wide {
        bits.wrapping_add(WIDE_SINGLE) & IS_ORDINARY & !LOWER != 0
    } else {
        bits.wrapping_add(ORDINARY_SINGLE) & IS_ORDINARY == IS_ORDINARY
    }
}

/// The operands of a quotient or a root: the dividend if there is one, and the other.
fn operands(op: Op, args: &[Operand]) -> (Option<Operand>, Operand) {
    match (op, args) {
        (Op::FDiv, [dividend, divisor]) => (Some(*dividend), *divisor),
        _ => (None, args[0]),
    }
}

/// Whether wrong values in registers do no harm in a loop's body.
fn is_harmless(body: &[Stmt], floats: bool) -> bool {
    let mut doubtful = Doubtful { floats, registers: HashSet::new() };
    // repeated until no more registers that carry wrong values from one repetition to the next are found
    loop {
        let before = doubtful.registers.len();
        let harmless = doubtful.spreads(body, false);
        if !harmless || doubtful.registers.len() == before {
            return harmless;
        }
    }
}

/// Registers that may hold values that are not numbers of Ruby.
struct Doubtful {
    /// Quotients and roots may be wrong, too.
    floats: bool,
    registers: HashSet<VarId>,
}

impl Doubtful {
    fn has(&self, operand: &Operand) -> bool {
        matches!(operand, Operand::Var(v) if self.registers.contains(v))
    }

    /// Adds the registers to which a list passes wrong values. False: a wrong value may do harm. `doubted`: the list is
    /// in a branch whose condition may be wrong.
    fn spreads(&mut self, body: &[Stmt], doubted: bool) -> bool {
        body.iter().all(|stmt| match stmt {
            Stmt::Checked { dst, .. } => {
                self.registers.insert(*dst);
                true
            }
            Stmt::Let { dst, op, args } => {
                let anything = doubted || args.iter().any(|arg| self.has(arg));
                if anything || self.floats && is_quick(*op, args) {
                    self.registers.insert(*dst);
                }
                *op != Op::Random && (!anything || is_safe(*op, args))
            }
            Stmt::Load { row, .. } => !doubted && !self.has(row),
            Stmt::If { cond, then, otherwise } => {
                let doubted = doubted || self.has(cond);
                self.spreads(then, doubted) && self.spreads(otherwise, doubted)
            }
            _ => false,
        })
    }
}

/// Whether the operation is defined for all operands.
fn is_safe(op: Op, args: &[Operand]) -> bool {
    match (op, args) {
        (Op::Shl | Op::Shr | Op::UShr, [_, Operand::I64(_) | Operand::I32(_)]) => true,
        (Op::Div | Op::Rem | Op::UDiv | Op::URem, [_, Operand::I64(by)]) => ![0, -1].contains(by),
        (Op::MulMod | Op::AddMod, [_, _, Operand::I64(by)]) => *by > 0,
        _ => is_movable(op),
    }
}

#[cfg(test)]
mod tests {
    use super::speculate_overflow;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, INTS, OVERFLOW, program, turned};
    use crate::ir::{CheckedOp, Cmp, Op, Operand, ParamId, Program, Scalar, Stmt, VarId, verify};

    /// `sum = 0; i = 0; begin body; i += 1 end while i < n; ints[index] = sum`
    fn summed(body: impl Fn(&mut Builder, Operand, VarId)) -> Program {
        program(|b, index| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let (i, sum) = (b.var(Scalar::I64, Some("i".into())), b.var(Scalar::I64, Some("sum".into())));
            b.set(i, Operand::I64(0));
            b.set(sum, Operand::I64(0));
            turned(b, (i, 1, n), false, |b, _| body(b, i.into(), sum));
            b.store(INTS, index, sum.into());
        })
    }

    fn add(b: &mut Builder, sum: VarId, x: Operand) {
        b.push(Stmt::Checked { dst: sum, op: CheckedOp::Add, args: [sum.into(), x], site: OVERFLOW });
    }

    fn is_left(body: impl Fn(&mut Builder, Operand, VarId)) -> bool {
        let program = summed(body);
        let (after, versions) = speculate_overflow(program.clone());
        assert_eq!(after == program, versions.is_empty());
        versions.is_empty()
    }

    #[test]
    fn checks_of_a_loop_are_one_behind_it() {
        let (program, _) = speculate_overflow(summed(|b, i, sum| {
            let x = b.load(Scalar::I64, INPUT, i);
            let square = b.checked(CheckedOp::Mul, x, x, OVERFLOW);
            add(b, sum, square);
        }));
        verify::verify(&program).expect("a program in order");
        let text = program.to_string();
        insta::assert_snapshot!(&text[text.find("  v3").expect("its begin")..], @r#"
          v3: i64 = index
          v4: i64 = param p0 "n"
          i.5: i64 = copy 0
          sum.6: i64 = copy 0
          block L2 {
            v10: i64 = copy i.5
            v11: i64 = copy sum.6
            v33: i32 = copy 0i32
            v20: i32 = copy 0i32
            loop L1 {
              v12: i64 = load in[i.5]
              v15: i64 = ushr v12, 32
              v16: i32 = narrow v15
              v17: i32 = narrow v12
              v18: i32 = shr v17, 31i32
              v19: i32 = xor v16, v18
              v20 = or v20, v19
              v21: i64 = shl v12, 32
              v22: i64 = shr v21, 32
              v13: i64 = mul v22, v22
              v23: i64 = add sum.6, v13
              v24: i64 = ushr sum.6, 32
              v25: i32 = narrow v24
              v26: i64 = ushr v13, 32
              v27: i32 = narrow v26
              v28: i64 = ushr v23, 32
              v29: i32 = narrow v28
              v30: i32 = xor v25, v29
              v31: i32 = xor v27, v29
              v32: i32 = and v30, v31
              v33 = or v33, v32
              sum.6 = copy v23
              i.5 = add i.5, 1
              v14: bool = icmp.ge i.5, v4
              if v14 {
                break L1
              }
            }
            v34: bool = icmp.lt v33, 0i32
            v35: bool = icmp.ne v20, 0i32
            v36: bool = or v34, v35
            if v36 {
              i.5 = copy v10
              sum.6 = copy v11
            } else {
              break L2
            }
            loop L0 {
              v7: i64 = load in[i.5]
              v8: i64 = checked mul v7, v7 else s0
              sum.6 = checked add sum.6, v8 else s0
              i.5 = add i.5, 1
              v9: bool = icmp.ge i.5, v4
              if v9 {
                break L0
              }
            }
          }
          store ints[v3] = sum.6
        }
        "#);
    }

    #[test]
    fn a_register_that_two_branches_assign_has_no_value_before_their_loops() {
        let program = program(|b, index| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let (i, sum) = (b.var(Scalar::I64, Some("i".into())), b.var(Scalar::I64, Some("sum".into())));
            let shared = b.temp(Scalar::I64);
            b.set(i, Operand::I64(0));
            b.set(sum, Operand::I64(0));
            let first = b.icmp(Cmp::Lt, index, Operand::I64(3));
            let sums = |b: &mut Builder, column| {
                turned(b, (i, 1, n), false, |b, _| {
                    let x = b.load(Scalar::I64, column, i.into());
                    b.set(shared, x);
                    add(b, sum, shared.into());
                });
            };
            b.branch(first, |b| sums(b, INPUT), |b| sums(b, INTS));
            b.store(INTS, index, sum.into());
        });
        verify::verify(&program).expect("a program in order");
        let (after, versions) = speculate_overflow(program);
        verify::verify(&after).expect("a program in order");
        assert_eq!(versions.len(), 2);
    }

    #[test]
    fn numbers_that_are_none_do_no_harm() {
        let sums = |b: &mut Builder, i: Operand, sum: VarId| {
            let x = b.load(Scalar::I64, INPUT, i);
            add(b, sum, x);
            x
        };
        assert!(!is_left(|b, i, sum| {
            sums(b, i, sum);
        }));
        assert!(is_left(|b, i, sum| {
            sums(b, i, sum);
            b.store(INTS, i, sum.into());
        }));
        assert!(is_left(|b, i, sum| {
            sums(b, i, sum);
            let x = b.load(Scalar::I64, INPUT, sum.into());
            add(b, sum, x);
        }));
        // one repetition computes a value that the next one uses as a row
        assert!(is_left(|b, i, sum| {
            let x = b.load(Scalar::I64, INPUT, sum.into());
            b.set(sum, i);
            add(b, sum, x);
        }));
        assert!(is_left(|b, i, sum| {
            let x = sums(b, i, sum);
            let quotient = b.i64(Op::Div, &[x, sum.into()]);
            b.set(sum, quotient);
        }));
        assert!(!is_left(|b, i, sum| {
            let x = sums(b, i, sum);
            let quotient = b.i64(Op::Div, &[x, Operand::I64(7)]);
            b.set(sum, quotient);
        }));
        assert!(is_left(|b, i, sum| {
            sums(b, i, sum);
            let positive = b.icmp(Cmp::Gt, sum.into(), Operand::I64(0));
            b.when(positive, |b| {
                sums(b, i, sum);
            });
        }));
        assert!(is_left(|b, i, sum| {
            sums(b, i, sum);
            let bits = b.i64(Op::Random, &[]);
            b.set(sum, bits);
        }));
        assert!(is_left(|b, i, sum| {
            let x = sums(b, i, sum);
            let negative = b.icmp(Cmp::Lt, x, Operand::I64(0));
            b.trap_if(negative, OVERFLOW, vec![]);
        }));
    }
}
