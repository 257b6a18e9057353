//! The loop over the ticks of a launch, in the form in which passes leave it.
//!
//! Here: its parts. Not here: the code that backends make of it, and the loop as lowering makes it, with its test at
//! its head ([`crate::lower`]).

use super::{Cmp, Func, LabelId, Op, Operand, Program, Stmt, VarId, walk};

/// The parts of a loop over ticks. It runs at least once.
pub struct LoopOverTicks<'s> {
    pub index: Operand,
    pub tick: VarId,
    /// The statements of a tick.
    pub inner: &'s [Stmt],
    /// Adds one to the tick.
    pub next: &'s Stmt,
    pub end: Operand,
}

impl<'s> LoopOverTicks<'s> {
    /// The parts of a loop of the entry, if it tests at its end whether the tick has reached the function's last.
    pub fn of(program: &Program, entry: &Func, label: LabelId, body: &'s [Stmt]) -> Option<Self> {
        let [Stmt::Begin { index, tick: Operand::Var(tick), check: false }, inner @ .., next, test, leave] = body
        else {
            return None;
        };
        let (Stmt::Let { dst: over, op: Op::ICmp(Cmp::Ge), args }, Stmt::If { cond, then, otherwise }) = (test, leave)
        else {
            return None;
        };
        let [Operand::Var(tested), end @ Operand::Var(last)] = args[..] else { return None };
        let one_more = Stmt::Let { dst: *tick, op: Op::Add, args: vec![(*tick).into(), Operand::I64(1)] };
        let leaves = *cond == (*over).into() && then[..] == [Stmt::Break(label)] && otherwise.is_empty();
        if !(program.fused_ticks && *next == one_more && leaves && tested == *tick && entry.params.contains(&last)) {
            return None;
        }
        let (mut reads, mut assigned) = (0, false);
        walk(&entry.body, &mut |s| s.reads(|operand| reads += u32::from(operand == *cond)));
        walk(inner, &mut |s| assigned |= s.assigns().contains(tick));
        walk(&entry.body, &mut |s| assigned |= s.assigns().contains(&last));
        (reads == 1 && !assigned).then_some(Self { index: *index, tick: *tick, inner, next, end })
    }
}
