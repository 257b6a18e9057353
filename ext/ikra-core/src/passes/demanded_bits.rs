//! Demanded bits: arithmetic may wrap where only its low bits are used.
//!
//! `(x * 1_103_515_245 + 12_345) & 0x7fffffff` is exact in wrapping arithmetic whatever `x` is: the low bits of a sum,
//! difference or product depend on the low bits of its operands alone. So a checked operation needs no check if its
//! result reaches only `& constant`, directly or through further such operations. The constant must not be negative, so
//! that the result has no high bits. Ruby computes the same with a big integer in between.
//!
//! A mask may have all 64 bits. `z = (z * C) & 0xffff_ffff_ffff_ffff` is the number that a register's bits represent as
//! an unsigned number. If the highest bit is set, no Integer of a kernel can hold that number, so such a mask is
//! checked. Some readers need no check: those that mask the value again, shift it to the right, combine it with such
//! values, or use its low bits alone. If there are no other readers, the check goes, and right shifts fill with zeros.
//!
//! Here: both rules, over all functions at once, since a hash is often a method. A register stands for all values that
//! are ever assigned to it. Not here: which operations a method of Integer consists of.
//!
//! This is the only pass that changes what a program does: it gives Ruby's answer where the program would have raised
//! IntegerOverflow.

use super::{Pass, unwind};
use crate::ir::visit::walk_mut;
use crate::ir::{CheckedOp, Func, Op, Operand, Program, Scalar, Site, SiteId, Stmt, Trap, VarId, walk};

pub const PASS: Pass = Pass { name: "demanded_bits", description: "no overflow check where only low bits count", run };
/// The same, only where the program rescues exceptions.
pub const BEFORE_HANDLERS: Pass = Pass {
    name: "demanded_bits_before_handlers",
    description: "no overflow check where only low bits count, if a handler might see one",
    run: |program| if unwind::rescues(&program) { run(program) } else { program },
};

fn run(mut program: Program) -> Program {
    let Program { funcs, sites, .. } = &mut program;
    funcs.iter_mut().for_each(|func| mask_by_literals(func, sites));
    let flow = Flow::of(funcs);
    let (low, unsigned) = flow.settle();
    for (func, first) in funcs.iter_mut().zip(&flow.firsts) {
        let of = |v: VarId| first + v.index();
        walk_mut(&mut func.body, &mut |stmt| match stmt {
            Stmt::Checked { dst, op, args, .. } if low[of(*dst)] || unsigned[of(*dst)] => {
                *stmt = Stmt::Let { dst: *dst, op: wrapping(*op), args: args.to_vec() };
            }
            Stmt::Let { op: op @ Op::Shr, args, .. } if matches!(args[0], Operand::Var(v) if unsigned[of(v)]) => {
                *op = Op::UShr;
            }
            _ => {}
        });
    }
    program
}

/// The operation that wraps instead of trapping.
pub fn wrapping(op: CheckedOp) -> Op {
    match op {
        CheckedOp::Add => Op::Add,
        CheckedOp::Sub => Op::Sub,
        CheckedOp::Mul => Op::Mul,
        CheckedOp::And => Op::And,
    }
}

/// Handles `x & literal` for a literal beyond I64: not the literal has to fit, but the result.
fn mask_by_literals(func: &mut Func, sites: &mut Vec<Site>) {
    let mut literals: Vec<Option<(i64, SiteId)>> = vec![None; func.vars.len()];
    walk(&func.body, &mut |stmt| {
        if let Stmt::Checked { dst, op: CheckedOp::And, args: [Operand::I64(bits), Operand::I64(-1)], site } = stmt {
            literals[dst.index()] = Some((*bits, *site));
        }
    });
    if literals.iter().all(Option::is_none) {
        return;
    }
    walk_mut(&mut func.body, &mut |stmt| {
        let Stmt::Let { dst, op: Op::And, args } = stmt else { return };
        let literal = |operand: Operand| match operand {
            Operand::Var(v) => literals[v.index()],
            _ => None,
        };
        let (x, (bits, site)) = match (literal(args[0]), literal(args[1])) {
            (_, Some(found)) => (args[0], found),
            (Some(found), _) => (args[1], found),
            _ => return,
        };
        let site = Site { trap: Trap::IntegerOverflow("&"), ..sites[site.index()].clone() };
        let known = sites.iter().position(|s| *s == site);
        let site = SiteId::new(known.unwrap_or_else(|| {
            sites.push(site);
            sites.len() - 1
        }));
        *stmt = Stmt::Checked { dst: *dst, op: CheckedOp::And, args: [x, Operand::I64(bits)], site };
    });
}

/// How a result depends on the bits of its operands.
#[derive(Clone, Copy)]
enum How {
    /// The low bits of the result depend on the low bits of the operands alone.
    Arithmetic,
    /// As `Arithmetic`, and the result is unsigned if all operands are.
    All,
    /// As `Arithmetic`, and the result is unsigned if one of the operands is.
    Any,
    /// The result has low bits of the operands, and no others.
    Mask,
    /// The result loses low bits of the operands, so their highest bit moves.
    Right,
    Otherwise,
}

struct Step {
    how: How,
    to: Vec<usize>,
    from: Vec<usize>,
    /// One of the operands is a negative constant.
    negative: bool,
}

/// How values flow from register to register.
struct Flow {
    /// The number of each function's first register.
    firsts: Vec<usize>,
    steps: Vec<Step>,
    integer: Vec<bool>,
    has_masks: bool,
}

impl Flow {
    fn of(funcs: &[Func]) -> Self {
        let mut flow = Flow { firsts: vec![], steps: vec![], integer: vec![], has_masks: false };
        for func in funcs {
            flow.firsts.push(flow.integer.len());
            flow.integer.extend(func.vars.iter().map(|v| v.ty == Scalar::I64));
        }
        let mut called = vec![false; funcs.len()];
        let mut returns: Vec<Vec<(usize, Operand)>> = vec![vec![]; funcs.len()];
        for (f, func) in funcs.iter().enumerate() {
            walk(&func.body, &mut |stmt| match stmt {
                Stmt::Return(values) => returns[f].extend(values.iter().copied().enumerate()),
                Stmt::Call { func, .. } => called[func.index()] = true,
                _ => {}
            });
        }
        for (f, func) in funcs.iter().enumerate() {
            if !called[f] {
                // the parameters of the entry, which the host passes
                flow.step(How::Otherwise, f, &[], (f, &func.params));
            }
            walk(&func.body, &mut |stmt| match stmt {
                Stmt::Call { func: callee, args, dsts, .. } => {
                    let callee = callee.index();
                    for (arg, param) in args.iter().zip(&funcs[callee].params) {
                        flow.step(How::All, f, &[*arg], (callee, &[*param]));
                    }
                    for (i, value) in &returns[callee] {
                        flow.step(How::All, callee, &[*value], (f, &dsts[*i..=*i]));
                    }
                }
                Stmt::Return(_) if called[f] => {}
                _ => {
                    let mut from = Vec::new();
                    stmt.reads(|operand| from.push(operand));
                    flow.step(how(stmt), f, &from, (f, stmt.assigns()));
                    flow.has_masks |= matches!(stmt, Stmt::Checked { op: CheckedOp::And, .. });
                }
            });
        }
        flow
    }

    fn step(&mut self, how: How, from_func: usize, from: &[Operand], (to_func, to): (usize, &[VarId])) {
        let number = |operand: &Operand| match operand {
            Operand::Var(v) => Some(self.firsts[from_func] + v.index()),
            _ => None,
        };
        let negative = from.iter().any(|o| matches!(o, Operand::I64(..0)));
        let from = from.iter().filter_map(number).collect();
        let to = to.iter().map(|v| self.firsts[to_func] + v.index()).collect();
        self.steps.push(Step { how, to, from, negative });
    }

    /// For each register, two answers. The first: something reads it, and every reader depends on its low bits alone.
    /// The second: it holds unsigned numbers, and every reader expects that.
    fn settle(&self) -> (Vec<bool>, Vec<bool>) {
        let mut low = vec![false; self.integer.len()];
        for v in self.steps.iter().flat_map(|s| &s.from) {
            low[*v] = self.integer[*v];
        }
        let mut unsigned: Vec<bool> = self.integer.iter().map(|i| *i && self.has_masks).collect();
        loop {
            let mut changed = false;
            let mut keep = |what: &mut bool, keep: bool| {
                changed |= *what && !keep;
                *what &= keep;
            };
            for Step { how, to, from, negative } in &self.steps {
                let low_to = to.iter().all(|v| low[*v]) && !to.is_empty();
                let made = match how {
                    How::Mask => true,
                    How::All => !negative && from.iter().all(|v| unsigned[*v]),
                    How::Any => from.iter().any(|v| unsigned[*v]),
                    How::Right => !negative && from.iter().all(|v| unsigned[*v]),
                    How::Arithmetic | How::Otherwise => false,
                };
                to.iter().for_each(|v| keep(&mut unsigned[*v], made));
                let unsigned_to = made && to.iter().all(|v| unsigned[*v]);
                let (low_from, unsigned_from) = match how {
                    How::Mask => (true, true),
                    How::Arithmetic => (low_to, low_to),
                    How::All | How::Any => (low_to, low_to || unsigned_to),
                    How::Right => (false, true),
                    How::Otherwise => (false, false),
                };
                for v in from {
                    keep(&mut low[*v], low_from);
                    keep(&mut unsigned[*v], unsigned_from);
                }
            }
            if !changed {
                return (low, unsigned);
            }
        }
    }
}

fn how(stmt: &Stmt) -> How {
    match stmt {
        Stmt::Checked { op: CheckedOp::And, .. } => How::Mask,
        Stmt::Let { op: Op::And, args, .. } if args.iter().any(|a| matches!(a, Operand::I64(0..))) => How::Mask,
        Stmt::Let { op: Op::And, .. } => How::Any,
        Stmt::Let { op: Op::Copy | Op::Or | Op::Xor, .. } => How::All,
        Stmt::Checked { .. } | Stmt::Let { op: Op::Add | Op::Sub | Op::Mul, .. } => How::Arithmetic,
        Stmt::Let { op: Op::Shl, args, .. } if matches!(args[1], Operand::I64(_)) => How::Arithmetic,
        Stmt::Let { op: Op::Shr, args, .. } if matches!(args[1], Operand::I64(1..)) => How::Right,
        _ => How::Otherwise,
    }
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, INTS, OVERFLOW, program};
    use crate::ir::{CheckedOp, Op, Operand, Scalar};
    use crate::passes::testing::after;

    fn check(body: impl FnOnce(&mut Builder, Operand)) -> String {
        after(&[PASS], program(body))
    }

    fn congruential(b: &mut Builder, index: Operand) -> Operand {
        let x = b.load(Scalar::I64, INPUT, index);
        let product = b.checked(CheckedOp::Mul, x, Operand::I64(1_103_515_245), OVERFLOW);
        b.checked(CheckedOp::Add, product, Operand::I64(12_345), OVERFLOW)
    }

    #[test]
    fn a_chain_that_ends_in_a_mask_wraps() {
        insta::assert_snapshot!(check(|b, index| {
            let sum = congruential(b, index);
            let mixed = b.i64(Op::Xor, &[sum, index]);
            let masked = b.i64(Op::And, &[Operand::I64(0x7fff_ffff), mixed]);
            b.store(INTS, index, masked);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load in[v3]
          v5: i64 = mul v4, 1103515245
          v6: i64 = add v5, 12345
          v7: i64 = xor v6, v3
          v8: i64 = and 2147483647, v7
          store ints[v3] = v8
        }
        "#);
    }

    #[test]
    fn another_reader_keeps_the_check() {
        insta::assert_snapshot!(check(|b, index| {
            let sum = congruential(b, index);
            let masked = b.i64(Op::And, &[sum, Operand::I64(0x7fff_ffff)]);
            b.store(INTS, index, masked);
            b.store(INPUT, index, sum);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load in[v3]
          v5: i64 = checked mul v4, 1103515245 else s0
          v6: i64 = checked add v5, 12345 else s0
          v7: i64 = and v6, 2147483647
          store ints[v3] = v7
          store in[v3] = v6
        }
        "#);
    }

    #[test]
    fn a_negative_mask_keeps_the_high_bits_and_so_the_check() {
        insta::assert_snapshot!(check(|b, index| {
            let sum = congruential(b, index);
            let masked = b.i64(Op::And, &[sum, Operand::I64(-8)]);
            let shifted = b.i64(Op::Shr, &[masked, Operand::I64(3)]);
            b.store(INTS, index, shifted);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load in[v3]
          v5: i64 = checked mul v4, 1103515245 else s0
          v6: i64 = checked add v5, 12345 else s0
          v7: i64 = and v6, -8
          v8: i64 = shr v7, 3
          store ints[v3] = v8
        }
        "#);
    }

    /// `z = x * 3 & 2**64-1; z ^ z >> 31`
    fn mixed(b: &mut Builder, index: Operand) -> Operand {
        let x = b.load(Scalar::I64, INPUT, index);
        let product = b.checked(CheckedOp::Mul, x, Operand::I64(3), OVERFLOW);
        let z = b.checked(CheckedOp::And, product, Operand::I64(-1), OVERFLOW);
        let shifted = b.i64(Op::Shr, &[z, Operand::I64(31)]);
        b.i64(Op::Xor, &[z, shifted])
    }

    #[test]
    fn a_whole_mask_whose_readers_cut_it_off_is_unsigned() {
        insta::assert_snapshot!(check(|b, index| {
            let hash = mixed(b, index);
            let high = b.i64(Op::Shr, &[hash, Operand::I64(1)]);
            b.store(INTS, index, high);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load in[v3]
          v5: i64 = mul v4, 3
          v6: i64 = and v5, -1
          v7: i64 = ushr v6, 31
          v8: i64 = xor v6, v7
          v9: i64 = ushr v8, 1
          store ints[v3] = v9
        }
        "#);
    }

    #[test]
    fn a_whole_mask_that_escapes_is_checked() {
        insta::assert_snapshot!(check(|b, index| {
            let hash = mixed(b, index);
            b.store(INTS, index, hash);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load in[v3]
          v5: i64 = mul v4, 3
          v6: i64 = checked and v5, -1 else s0
          v7: i64 = shr v6, 31
          v8: i64 = xor v6, v7
          store ints[v3] = v8
        }
        "#);
    }

    #[test]
    fn a_literal_beyond_64_bits_is_a_mask_that_need_not_fit() {
        insta::assert_snapshot!(check(|b, index| {
            let x = b.load(Scalar::I64, INPUT, index);
            let literal = b.checked(CheckedOp::And, Operand::I64(-2), Operand::I64(-1), OVERFLOW);
            let masked = b.i64(Op::And, &[literal, x]);
            b.store(INTS, index, masked);
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load in[v3]
          v5: i64 = and -2, -1
          v6: i64 = checked and v4, -2 else s4
          store ints[v3] = v6
        }
        "#);
    }
}
