//! If-combining: a branch that holds little but another branch becomes one branch on both conditions.
//!
//! On GPUs, the threads of a warp part and meet again twice at a branch within a branch, and compilers move nothing
//! across it. If only a little arithmetic stands between the two, `if a { x = y * y; if x < z { … } }` becomes
//! `x = y * y; if a & x < z { … }`. The arithmetic then runs whatever `a` is. So it must have no effect and no
//! precondition, and only the inner branch may read its result.
//!
//! Runs after [`mod@super::load_pipelining`], which takes loads out of branches. Only in [`super::CUDA`]: processors
//! with branch prediction gain nothing.

use super::loops::{Counts, is_cheap, is_movable};
use super::{Pass, Versioned};
use crate::ir::{Func, Op, Operand, Program, Scalar, Stmt, Var, VarId, walk};

pub const PASS: Pass<Versioned> = Pass {
    name: "if_combine",
    description: "one branch in place of a branch in a branch",
    run: |state| Versioned { program: if_combine(state.program), ..state },
};

/// The most statements that are computed in vain where the outer branch is rarely taken: about what a branch costs.
const MAX_COMPUTED: usize = 8;

/// The program, for processors whose threads branch together.
pub fn if_combine(mut program: Program) -> Program {
    for func in &mut program.funcs {
        if loops(&func.body) {
            let mut counts = Counts::of(func);
            let mut body = std::mem::take(&mut func.body);
            list(func, &mut counts, &mut body, false);
            func.body = body;
        }
    }
    program
}

/// `repeats`: the list is in an innermost loop, where branches are expensive.
fn list(func: &mut Func, counts: &mut Counts, body: &mut Vec<Stmt>, repeats: bool) {
    for mut stmt in std::mem::take(body) {
        let inside = if let Stmt::Loop { body, .. } = &stmt { !loops(body) } else { repeats };
        stmt.bodies_mut().into_iter().flatten().for_each(|inner| list(func, counts, inner, inside));
        match One::of(&stmt).filter(|one| inside && one.may_be_computed(counts)) {
            Some(one) => one.push(func, counts, body),
            None => body.push(stmt),
        }
    }
}

fn loops(body: &[Stmt]) -> bool {
    let mut found = false;
    walk(body, &mut |s| found |= matches!(s, Stmt::Loop { .. }));
    found
}

/// A condition, and whether its branch is taken where the condition does not hold.
pub(super) type Condition = (Operand, bool);

struct One<'a> {
    outer: Condition,
    /// What stands between the branches.
    between: &'a [Stmt],
    inner: Condition,
    taken: &'a [Stmt],
}

/// The side of an `If` whose other side is empty.
pub(super) fn branch(stmt: &Stmt) -> Option<(Condition, &[Stmt])> {
    match stmt {
        Stmt::If { cond, then, otherwise } if otherwise.is_empty() => Some(((*cond, false), then)),
        Stmt::If { cond, then, otherwise } if then.is_empty() => Some(((*cond, true), otherwise)),
        _ => None,
    }
}

impl<'a> One<'a> {
    fn of(stmt: &'a Stmt) -> Option<Self> {
        let (outer, body) = branch(stmt)?;
        let (last, between) = body.split_last()?;
        let (inner, taken) = branch(last)?;
        Some(Self { outer, between, inner, taken })
    }

    fn may_be_computed(&self, counts: &Counts) -> bool {
        // a register that is assigned once is read only after that, so in the inner branch
        let once = |dst: VarId| counts.assigned(dst) == 1;
        let cheap =
            |stmt: &Stmt| matches!(stmt, Stmt::Let { dst, op, .. } if is_movable(*op) && is_cheap(*op) && once(*dst));
        self.between.len() <= MAX_COMPUTED && self.between.iter().all(cheap)
    }

    fn push(self, func: &mut Func, counts: &mut Counts, out: &mut Vec<Stmt>) {
        let mut new = |op, args: &[Operand], out: &mut Vec<Stmt>| -> Operand {
            func.vars.push(Var { ty: Scalar::Bool, name: None });
            counts.add(1);
            let dst = VarId::new(func.vars.len() - 1);
            out.push(Stmt::Let { dst, op, args: args.to_vec() });
            dst.into()
        };
        out.extend(self.between.iter().cloned());
        let (outer, inner) = (self.outer, self.inner);
        let taken = self.taken.to_vec();
        if outer.1 && inner.1 {
            let either = new(Op::Or, &[outer.0, inner.0], out);
            return out.push(Stmt::If { cond: either, then: Vec::new(), otherwise: taken });
        }
        let mut holds =
            |(cond, not): Condition, out: &mut Vec<Stmt>| if not { new(Op::Not, &[cond], out) } else { cond };
        let conditions = [holds(outer, out), holds(inner, out)];
        let both = new(Op::And, &conditions, out);
        out.push(Stmt::If { cond: both, then: taken, otherwise: Vec::new() });
    }
}

#[cfg(test)]
mod tests {
    use super::if_combine;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, OUT, program, turned};
    use crate::ir::{Cmp, Op, Operand, ParamId, Program, Scalar, Stmt, VarId, verify};

    /// `sum = 0.0; i = 0; begin body; i += 1 end while i < n; out[index] = sum`
    fn summed(body: impl Fn(&mut Builder, Operand, VarId)) -> Program {
        program(|b, index| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let (i, sum) = (b.var(Scalar::I64, Some("i".into())), b.var(Scalar::F64, Some("sum".into())));
            b.set(i, Operand::I64(0));
            b.set(sum, Operand::float(0.0));
            turned(b, (i, 1, n), false, |b, _| body(b, i.into(), sum));
            b.store(OUT, index, sum.into());
        })
    }

    /// `next if i == 3`, the value that `between` gives, `next if` that value `>= 36.0`, and a sum.
    fn skipping(between: impl Fn(&mut Builder, Operand) -> Operand) -> Program {
        summed(|b, i, sum| {
            let same = b.icmp(Cmp::Eq, i, Operand::I64(3));
            b.branch(
                same,
                |_| (),
                |b| {
                    let x = between(b, i);
                    let far = b.fcmp(Cmp::Ge, x, Operand::float(36.0));
                    b.branch(far, |_| (), |b| b.push(Stmt::Let { dst: sum, op: Op::FAdd, args: vec![sum.into(), x] }));
                },
            );
        })
    }

    fn square(b: &mut Builder, i: Operand) -> Operand {
        let x = b.f64(Op::IntToFloat, &[i]);
        b.f64(Op::FMul, &[x, x])
    }

    #[test]
    fn a_branch_that_holds_little_but_another_is_none() {
        let program = if_combine(skipping(square));
        verify::verify(&program).expect("a program in order");
        let text = program.to_string();
        insta::assert_snapshot!(&text[text.find("  loop").expect("the loop")..text.find("  store").expect("its end")], @r"
        loop L0 {
          v7: bool = icmp.eq i.5, 3
          v8: f64 = int_to_float i.5
          v9: f64 = fmul v8, v8
          v10: bool = fcmp.ge v9, 36.0
          v12: bool = or v7, v10
          if v12 {
          } else {
            sum.6 = fadd sum.6, v9
          }
          i.5 = add i.5, 1
          v11: bool = icmp.ge i.5, v4
          if v11 {
            break L0
          }
        }
        ");
        // one branch is taken if its condition holds, the other if its condition does not hold
        let mixed = if_combine(summed(|b, i, sum| {
            let some = b.icmp(Cmp::Lt, i, Operand::I64(3));
            b.when(some, |b| {
                let x = square(b, i);
                let far = b.fcmp(Cmp::Ge, x, Operand::float(36.0));
                b.branch(far, |_| (), |b| b.push(Stmt::Let { dst: sum, op: Op::FAdd, args: vec![sum.into(), x] }));
            });
        }));
        verify::verify(&mixed).expect("a program in order");
        let text = mixed.to_string();
        assert_eq!(
            (text.matches("if ").count(), text.matches("= not").count(), text.matches("= and").count()),
            (2, 1, 1),
            "{text}"
        );
    }

    #[test]
    fn what_is_dear_loads_or_has_a_precondition_stays_in_its_branch() {
        let is_left = |program: Program| if_combine(program.clone()) == program;
        assert!(is_left(skipping(|b, i| {
            let x = square(b, i);
            b.f64(Op::FSqrt, &[x])
        })));
        assert!(is_left(skipping(|b, i| {
            let x = b.load(Scalar::I64, INPUT, i);
            b.f64(Op::IntToFloat, &[x])
        })));
        assert!(is_left(skipping(|b, i| {
            let x = b.i64(Op::Div, &[Operand::I64(100), i]);
            b.f64(Op::IntToFloat, &[x])
        })));
        assert!(is_left(skipping(|b, i| (0..9).fold(square(b, i), |x, _| b.f64(Op::FMul, &[x, x])))));
    }
}
