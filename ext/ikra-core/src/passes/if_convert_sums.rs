//! If-conversion of sums: a branch that only adds becomes an addition of a value that may be 0.
//!
//! `cells.count { |cell| cell.alive? }` adds one or does not, depending on data that no processor can predict. A
//! misprediction costs as much as ten or twenty additions. So `if c { n = n + 1 }` becomes `t = c ? 1 : 0; n = n + t`.
//!
//! Fires where each side of a branch only adds to registers, subtracts from them, or sets or flips bits in them. The
//! operands must be known before the branch, and must be Integers: their additions take one cycle and have a neutral
//! operand. An addition that may overflow stays a branch. So does one of Floats: adding takes four times as long, and
//! each repetition would wait for it. Invariant: every register has the value that it had.

use super::Pass;
use crate::ir::{Func, Op, Operand, Program, Scalar, Stmt, Var, VarId};

pub const PASS: Pass = Pass { name: "if_convert_sums", description: "branches that only add are additions", run };

/// Registers, at most, that a branch may add to.
const MAX_REGISTERS: usize = 2;

fn run(mut program: Program) -> Program {
    for func in &mut program.funcs {
        let mut body = std::mem::take(&mut func.body);
        list(func, &mut body);
        func.body = body;
    }
    program
}

fn list(func: &mut Func, body: &mut Vec<Stmt>) {
    for mut stmt in std::mem::take(body) {
        stmt.bodies_mut().into_iter().flatten().for_each(|nested| list(func, nested));
        match &stmt {
            Stmt::If { cond, then, otherwise } => match additions(func, *cond, then, otherwise) {
                Some(additions) => additions.iter().for_each(|one| one.always(func, *cond, body)),
                None => body.push(stmt),
            },
            _ => body.push(stmt),
        }
    }
}

/// What a branch does to one register.
struct Addition {
    dst: VarId,
    op: Op,
    /// The operand that is added where the condition holds, and where it does not.
    by: [Operand; 2],
}

/// What both sides do, if they only add.
fn additions(func: &Func, cond: Operand, then: &[Stmt], otherwise: &[Stmt]) -> Option<Vec<Addition>> {
    let mut found: Vec<Addition> = Vec::new();
    for (side, body) in [then, otherwise].into_iter().enumerate() {
        for stmt in body {
            let Stmt::Let { dst, op: op @ (Op::Add | Op::Sub | Op::Or | Op::Xor), args } = stmt else { return None };
            let by = match args[..] {
                [Operand::Var(from), by] if from == *dst => by,
                [by, Operand::Var(from)] if from == *dst && *op != Op::Sub => by,
                _ => return None,
            };
            let none = match func.vars[dst.index()].ty {
                Scalar::I64 => Operand::I64(0),
                Scalar::I32 => Operand::I32(0),
                Scalar::Bool | Scalar::F64 => return None,
            };
            let at = match found.iter().position(|one| one.dst == *dst && one.op == *op && one.by[side] == none) {
                Some(at) => at,
                None => {
                    found.push(Addition { dst: *dst, op: *op, by: [none; 2] });
                    found.len() - 1
                }
            };
            found[at].by[side] = by;
        }
    }
    // Each register occurs once, so that the order makes no difference. None of them may be an operand of another
    // addition or the condition.
    let changes = |operand: Operand| found.iter().any(|one| operand == one.dst.into());
    let once = (1..found.len()).all(|at| found[..at].iter().all(|one| one.dst != found[at].dst));
    let fits = (1..=MAX_REGISTERS).contains(&found.len()) && once && !changes(cond);
    (fits && !found.iter().any(|one| one.by.into_iter().any(changes))).then_some(found)
}

impl Addition {
    fn always(&self, func: &mut Func, cond: Operand, out: &mut Vec<Stmt>) {
        let by = VarId::new(func.vars.len());
        func.vars.push(Var { ty: func.vars[self.dst.index()].ty, name: None });
        let is_one = matches!(self.by, [Operand::I64(1), Operand::I64(0)] | [Operand::I32(1), Operand::I32(0)]);
        let (op, args) =
            if is_one { (Op::BoolToInt, vec![cond]) } else { (Op::Select, vec![cond, self.by[0], self.by[1]]) };
        out.push(Stmt::Let { dst: by, op, args });
        out.push(Stmt::Let { dst: self.dst, op: self.op, args: vec![self.dst.into(), by.into()] });
    }
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, INTS, OVERFLOW, program};
    use crate::ir::{CheckedOp, Cmp, Op, Operand, Scalar, Stmt, VarId};
    use crate::passes::testing::after;

    /// A branch on loaded values, around a register that is 5 before it.
    fn check(branch: impl FnOnce(&mut Builder, Operand, Operand, VarId)) -> String {
        after(
            &[PASS],
            program(|b, index| {
                let x = b.load(Scalar::I64, INPUT, index);
                let is_odd = b.icmp(Cmp::Ne, x, Operand::I64(0));
                let n = b.var(Scalar::I64, Some("n".into()));
                b.set(n, Operand::I64(5));
                branch(b, is_odd, x, n);
                b.store(INTS, index, n.into());
            }),
        )
    }

    fn to(b: &mut Builder, dst: VarId, op: Op, by: Operand) {
        b.push(Stmt::Let { dst, op, args: vec![dst.into(), by] });
    }

    #[test]
    fn what_is_counted_where_something_holds_is_its_truth() {
        insta::assert_snapshot!(check(|b, odd, _, n| b.when(odd, |b| to(b, n, Op::Add, Operand::I64(1)))), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load in[v3]
          v5: bool = icmp.ne v4, 0
          n.6: i64 = copy 5
          v7: i64 = bool_to_int v5
          n.6 = add n.6, v7
          store ints[v3] = n.6
        }
        "#);
    }

    #[test]
    fn both_sides_are_one_addition_of_either() {
        insta::assert_snapshot!(check(|b, odd, x, n| {
            b.branch(odd, |b| to(b, n, Op::Sub, x), |b| to(b, n, Op::Sub, Operand::I64(7)));
        }), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          v4: i64 = load in[v3]
          v5: bool = icmp.ne v4, 0
          n.6: i64 = copy 5
          v7: i64 = select v5, v4, 7
          n.6 = sub n.6, v7
          store ints[v3] = n.6
        }
        "#);
    }

    #[test]
    fn what_may_overflow_is_computed_first_or_decides_stays_a_branch() {
        let stays = |branch: &dyn Fn(&mut Builder, Operand, Operand, VarId)| {
            assert!(check(|b, odd, x, n| branch(b, odd, x, n)).contains("  if "));
        };
        stays(&|b, odd, x, n| {
            b.when(odd, |b| {
                let args = [n.into(), x];
                b.push(Stmt::Checked { dst: n, op: CheckedOp::Add, args, site: OVERFLOW });
            });
        });
        stays(&|b, odd, x, n| {
            b.when(odd, |b| {
                let more = b.i64(Op::Mul, &[x, x]);
                to(b, n, Op::Add, more);
            });
        });
        stays(&|b, odd, _, n| b.when(odd, |b| to(b, n, Op::Add, n.into())));
        stays(&|b, odd, x, n| {
            let m = b.var(Scalar::I64, None);
            b.set(m, x);
            b.when(odd, |b| {
                to(b, n, Op::Add, m.into());
                to(b, m, Op::Add, n.into());
            });
        });
        stays(&|b, odd, x, n| {
            b.when(odd, |b| {
                to(b, n, Op::Add, x);
                to(b, n, Op::Xor, Operand::I64(1));
            });
        });
    }
}
