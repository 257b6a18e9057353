//! Loop exit unification: the two exits of a counting loop that computes in registers alone become one branch at its
//! end.
//!
//! On a GPU, threads of a warp leave such a loop at different repetitions. Then each exit branch takes two or three
//! instructions, and each of several nested loops that a thread leaves at once needs its own.
//! `loop { a; break out if escaped; b; i += 1; break if i >= end }` becomes
//!
//! ```text
//! a; break out if escaped
//! loop { b; i += 1; over = i >= end; a; break if over || escaped }
//! break out unless over
//! ```
//!
//! The loop may be a strip that an outer loop repeats. Then `a` is computed once before all strips, and not again at
//! the beginning of each. The end of the strip before tells whether the thread escaped.
//!
//! ```text
//!                                                    a
//! loop strips {                                      unless escaped: loop strips {
//!   end = …                                            end = …
//!   loop { a; break strips if escaped; b; … }    →     loop { b; i += 1; over = i >= end; a;
//!                                                             break if over || escaped }
//!   poll                                               break strips if escaped
//!   break strips if …                                  poll
//! }                                                    break strips if …
//!                                                    }
//! ```
//!
//! The new loop computes all that the old one computed, and `a` once more where the count ends the loop. So `a` must
//! have no effect, must not raise, and nothing after the loop may read what it assigns. Mandelbrot's steps are such a
//! loop: 12 instructions instead of 14.
//!
//! Only in [`super::CUDA`]: processors with branch prediction gain nothing.

use super::loops::{Counting, assigned_in, is_movable, is_read};
use super::{Pass, Versioned};
use crate::ir::visit::size;
use crate::ir::{Func, LabelId, Op, Operand, Program, Scalar, Stmt, Var, VarId, walk};

pub const PASS: Pass<Versioned> = Pass {
    name: "unify_loop_exits",
    description: "one of the two ways out of a counting loop",
    run: |state| Versioned { program: unify_loop_exits(state.program), ..state },
};

/// The most statements of a body, and of the part that decides the second exit.
const BODY: usize = 40;
const BEFORE: usize = 10;

/// The program, for processors whose threads branch together.
pub fn unify_loop_exits(mut program: Program) -> Program {
    for func in &mut program.funcs {
        let mut reads = vec![0; func.vars.len()];
        count_reads(&func.body, &mut reads);
        let mut body = std::mem::take(&mut func.body);
        list(func, &reads, &mut body);
        func.body = body;
    }
    program
}

fn count_reads(body: &[Stmt], reads: &mut [u32]) {
    walk(body, &mut |stmt| {
        stmt.reads(|operand| {
            if let Operand::Var(v) = operand {
                reads[v.index()] += 1;
            }
        });
    });
}

fn list(func: &mut Func, reads: &[u32], body: &mut Vec<Stmt>) {
    for mut stmt in std::mem::take(body) {
        if let Some(strips) = Strips::of(&stmt, reads) {
            strips.turn(func, body);
            continue;
        }
        match Escape::of(&stmt, reads) {
            Some(escape) => escape.turn(func, body),
            None => {
                stmt.bodies_mut().into_iter().flatten().for_each(|inner| list(func, reads, inner));
                body.push(stmt);
            }
        }
    }
}

/// A loop that counts and has a second exit near its head.
struct Escape {
    label: LabelId,
    before: Vec<Stmt>,
    escaped: Operand,
    out: LabelId,
    /// The statements after the second exit, counting included.
    behind: Vec<Stmt>,
    over: VarId,
    ends: Stmt,
}

impl Escape {
    /// `reads`: how often the function reads each register.
    fn of(stmt: &Stmt, reads: &[u32]) -> Option<Self> {
        let (_, repeated) = Counting::of(stmt, false)?;
        let Stmt::Loop { label, body } = stmt else { return None };
        let at = repeated.iter().position(|stmt| !matches!(stmt, Stmt::Let { .. }))?;
        let Stmt::If { cond: escaped, then, otherwise } = &repeated[at] else { return None };
        let ([Stmt::Break(out)], []) = (&then[..], &otherwise[..]) else { return None };
        let (before, [.., ends, Stmt::If { .. }]) = (&repeated[..at], &body[..]) else { return None };
        let Stmt::Let { dst: over, .. } = ends else { return None };
        let behind = &body[at + 1..body.len() - 2];
        let mut computes = true;
        walk(behind, &mut |stmt| computes &= matches!(stmt, Stmt::Let { .. } | Stmt::If { .. }));
        let movable = |stmt: &Stmt| matches!(stmt, Stmt::Let { op, .. } if is_movable(*op));
        let fits = computes && before.iter().all(movable) && before.len() <= BEFORE && size(body) <= BODY;
        if !fits {
            return None;
        }
        let mut within = vec![0; reads.len()];
        count_reads(body, &mut within);
        let changed = assigned_in(behind);
        let again = |(at, stmt): (usize, &Stmt)| {
            stmt.assigns().iter().all(|dst| {
                let once = !assigned_in(&before[at + 1..]).contains(dst) && !changed.contains(dst) && dst != over;
                once && !is_read(&before[..=at], *dst) && within[dst.index()] == reads[dst.index()]
            })
        };
        before.iter().enumerate().all(again).then(|| Self {
            label: *label,
            before: before.to_vec(),
            escaped: *escaped,
            out: *out,
            behind: behind.to_vec(),
            over: *over,
            ends: ends.clone(),
        })
    }

    fn turn(self, func: &mut Func, out: &mut Vec<Stmt>) {
        let (before, escaped, over, label, to) = (self.before.clone(), self.escaped, self.over, self.label, self.out);
        let turned = self.turned(func);
        out.extend(before);
        if to == label {
            return out.push(Stmt::If { cond: escaped, then: Vec::new(), otherwise: vec![turned] });
        }
        let leave = || vec![Stmt::Break(to)];
        out.extend([
            Stmt::If { cond: escaped, then: leave(), otherwise: Vec::new() },
            turned,
            Stmt::If { cond: over.into(), then: Vec::new(), otherwise: leave() },
        ]);
    }

    /// The loop with one exit, which starts after `before`.
    fn turned(self, func: &mut Func) -> Stmt {
        let either = VarId::new(func.vars.len());
        func.vars.push(Var { ty: Scalar::Bool, name: None });
        let mut body = self.behind;
        body.push(self.ends);
        body.extend(self.before);
        body.extend([
            Stmt::Let { dst: either, op: Op::Or, args: vec![self.over.into(), self.escaped] },
            Stmt::If { cond: either.into(), then: vec![Stmt::Break(self.label)], otherwise: Vec::new() },
        ]);
        Stmt::Loop { label: self.label, body }
    }
}

/// A loop of strips. Each strip is a loop whose second exit leaves all strips.
struct Strips {
    label: LabelId,
    /// Finds where a strip ends.
    before: Vec<Stmt>,
    strip: Escape,
    /// Decides whether there is another strip.
    behind: Vec<Stmt>,
}

impl Strips {
    fn of(stmt: &Stmt, reads: &[u32]) -> Option<Self> {
        let Stmt::Loop { label, body } = stmt else { return None };
        let at = body.iter().position(|stmt| matches!(stmt, Stmt::Loop { .. }))?;
        let (before, [inner, behind @ ..]) = body.split_at(at) else { return None };
        let strip = Escape::of(inner, reads).filter(|strip| strip.out == *label)?;
        let computes = |stmt: &Stmt| matches!(stmt, Stmt::Let { op, .. } if is_movable(*op));
        let ends = |stmt: &Stmt| match stmt {
            Stmt::Poll => true,
            Stmt::If { then, otherwise, .. } => then[..] == [Stmt::Break(*label)] && otherwise.is_empty(),
            stmt => computes(stmt),
        };
        if !before.iter().all(computes) || !behind.iter().all(ends) {
            return None;
        }
        // A thread that escapes no longer runs these statements, and they must not change what decides the escape.
        let mut within = vec![0; reads.len()];
        count_reads(body, &mut within);
        let own = |list: &[Stmt]| {
            assigned_in(list)
                .iter()
                .all(|dst| within[dst.index()] == reads[dst.index()] && !is_read(&strip.before, *dst))
        };
        let (own, touched) = (own(before) && own(behind), assigned_in(&strip.before));
        let apart = touched.iter().all(|dst| !is_read(before, *dst) && !is_read(behind, *dst));
        let outside = |dst: &VarId| !touched.contains(dst) && strip.escaped != Operand::Var(*dst);
        let kept = assigned_in(before).union(&assigned_in(behind)).all(outside);
        (own && apart && kept).then(|| Self { label: *label, before: before.to_vec(), strip, behind: behind.to_vec() })
    }

    fn turn(self, func: &mut Func, out: &mut Vec<Stmt>) {
        let (escaped, leave) = (self.strip.escaped, vec![Stmt::Break(self.label)]);
        out.extend(self.strip.before.iter().cloned());
        let mut body = self.before;
        body.push(self.strip.turned(func));
        body.push(Stmt::If { cond: escaped, then: leave, otherwise: Vec::new() });
        body.extend(self.behind);
        let strips = Stmt::Loop { label: self.label, body };
        out.push(Stmt::If { cond: escaped, then: Vec::new(), otherwise: vec![strips] });
    }
}

/// Whether this pass has unified the two exits of the loop.
pub fn is_turned(label: LabelId, body: &[Stmt]) -> bool {
    let [.., Stmt::Let { dst, op: Op::Or, .. }, Stmt::If { cond, then, otherwise }] = body else { return false };
    *cond == (*dst).into() && then[..] == [Stmt::Break(label)] && otherwise.is_empty()
}

#[cfg(test)]
mod tests {
    use super::{is_turned, unify_loop_exits};
    use crate::ir::build::Builder;
    use crate::ir::testing::{INPUT, INTS, OUT, program, turned};
    use crate::ir::visit::size;
    use crate::ir::{Cmp, LabelId, Op, Operand, ParamId, Program, Scalar, Stmt, VarId, verify, walk};

    /// `x = 0.5; i = 0; begin test; x *= 3.0; i += 1 end while i < n; out[index] = result`, where the test may leave
    /// the block around the loop.
    fn stepping(
        test: impl Fn(&mut Builder, VarId, Operand, LabelId),
        result: impl Fn(VarId, Operand) -> Operand,
    ) -> Program {
        program(|b, index| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let (i, x) = (b.var(Scalar::I64, Some("i".into())), b.var(Scalar::F64, Some("x".into())));
            b.set(i, Operand::I64(0));
            b.set(x, Operand::float(0.5));
            b.block(|b, out| {
                turned(b, (i, 1, n), false, |b, _| {
                    test(b, x, index, out);
                    b.push(Stmt::Let { dst: x, op: Op::FMul, args: vec![x.into(), Operand::float(3.0)] });
                });
            });
            b.store(OUT, index, result(x, i.into()));
        })
    }

    fn leaves_if_large(b: &mut Builder, x: VarId, out: LabelId) {
        let square = b.f64(Op::FMul, &[x.into(), x.into()]);
        let large = b.fcmp(Cmp::Gt, square, Operand::float(4.0));
        b.when(large, |b| b.push(Stmt::Break(out)));
    }

    fn is_left(program: &Program) -> bool {
        unify_loop_exits(program.clone()) == *program
    }

    #[test]
    fn the_ways_out_of_a_loop_that_computes_are_one_branch_at_its_end() {
        let before = stepping(|b, x, _, out| leaves_if_large(b, x, out), |x, _| x.into());
        let after = unify_loop_exits(before.clone());
        verify::verify(&after).expect("a program in order");
        let mut loops = Vec::new();
        walk(&after.funcs[0].body, &mut |stmt| {
            if let Stmt::Loop { label, body } = stmt {
                let mut breaks = 0;
                walk(body, &mut |stmt| breaks += usize::from(matches!(stmt, Stmt::Break(_))));
                loops.push((is_turned(*label, body), breaks, size(body)));
            }
        });
        assert!(matches!(loops[..], [(true, 1, _)]), "{after}");
        assert!(is_left(&after), "once");
    }

    /// The same in strips of a loop that polls; `last` gives the statements after its poll.
    fn in_strips(last: impl Fn(&mut Builder, VarId, Operand)) -> Program {
        program(|b, index| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let (i, x) = (b.var(Scalar::I64, Some("i".into())), b.var(Scalar::F64, Some("x".into())));
            b.set(i, Operand::I64(0));
            b.set(x, Operand::float(0.5));
            b.repeat(|b, strips| {
                let ahead = b.i64(Op::Add, &[i.into(), Operand::I64(128)]);
                let beyond = b.icmp(Cmp::Gt, n, ahead);
                let stop = b.select(Scalar::I64, beyond, ahead, n);
                turned(b, (i, 1, stop), false, |b, _| {
                    leaves_if_large(b, x, strips);
                    b.push(Stmt::Let { dst: x, op: Op::FMul, args: vec![x.into(), Operand::float(3.0)] });
                });
                b.push(Stmt::Poll);
                last(b, x, index);
                let over = b.icmp(Cmp::Ge, i.into(), n);
                b.when(over, |b| b.push(Stmt::Break(strips)));
            });
            b.store(INTS, index, i.into());
        })
    }

    #[test]
    fn strips_that_find_out_who_escapes_where_they_begin_stay() {
        let before = program(|b, index| {
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let i = b.var(Scalar::I64, Some("i".into()));
            b.set(i, Operand::I64(0));
            b.repeat(|b, strips| {
                let ahead = b.i64(Op::Add, &[i.into(), Operand::I64(128)]);
                let escaped = b.icmp(Cmp::Gt, index, Operand::I64(7));
                turned(b, (i, 1, ahead), false, |b, _| b.when(escaped, |b| b.push(Stmt::Break(strips))));
                b.push(Stmt::Poll);
                let over = b.icmp(Cmp::Ge, i.into(), n);
                b.when(over, |b| b.push(Stmt::Break(strips)));
            });
            b.store(INTS, index, i.into());
        });
        verify::verify(&before).expect("a program in order");
        let after = unify_loop_exits(before);
        verify::verify(&after).unwrap_or_else(|e| panic!("{e}\n{after}"));
    }

    #[test]
    fn who_escapes_from_strips_is_found_out_once_before_them() {
        let after = unify_loop_exits(in_strips(|_, _, _| ()));
        verify::verify(&after).expect("a program in order");
        let text = after.to_string();
        insta::assert_snapshot!(text[text.find("  v3:").expect("a body")..].to_string(), @r#"
          v3: i64 = index
          v4: i64 = param p0 "n"
          i.5: i64 = copy 0
          x.6: f64 = copy 0.5
          v10: f64 = fmul x.6, x.6
          v11: bool = fcmp.gt v10, 4.0
          if v11 {
          } else {
            loop L0 {
              v7: i64 = add i.5, 128
              v8: bool = icmp.gt v4, v7
              v9: i64 = select v8, v7, v4
              loop L1 {
                x.6 = fmul x.6, 3.0
                i.5 = add i.5, 1
                v12: bool = icmp.ge i.5, v9
                v10 = fmul x.6, x.6
                v11 = fcmp.gt v10, 4.0
                v14: bool = or v12, v11
                if v14 {
                  break L1
                }
              }
              if v11 {
                break L0
              }
              poll
              v13: bool = icmp.ge i.5, v4
              if v13 {
                break L0
              }
            }
          }
          store ints[v3] = i.5
        }
        "#);
        assert!(is_left(&after), "once");
    }

    #[test]
    fn strips_that_change_what_is_tested_or_store_find_it_out_anew() {
        let heads = |last: fn(&mut Builder, VarId, Operand)| {
            let after = unify_loop_exits(in_strips(last));
            verify::verify(&after).expect("a program in order");
            let mut first = 0;
            walk(&after.funcs[0].body, &mut |stmt| {
                if let Stmt::Loop { body, .. } = stmt {
                    first += usize::from(
                        body.contains(&Stmt::Poll)
                            && body.iter().any(|stmt| matches!(stmt, Stmt::Let { op: Op::FMul, .. })),
                    );
                }
            });
            first
        };
        assert_eq!(heads(|_, _, _| ()), 0);
        let halves = |b: &mut Builder, x: VarId, _: Operand| {
            b.push(Stmt::Let { dst: x, op: Op::FSub, args: vec![x.into(), Operand::float(0.5)] });
        };
        assert_eq!(heads(halves), 1);
        assert_eq!(heads(|b, x, index| b.store(OUT, index, x.into())), 1);
    }

    #[test]
    fn what_reads_memory_or_is_looked_at_behind_stays_as_it_is() {
        let loads = |b: &mut Builder, x: VarId, index: Operand, out: LabelId| {
            let limit = b.load(Scalar::I64, INPUT, index);
            let limit = b.f64(Op::IntToFloat, &[limit]);
            let large = b.fcmp(Cmp::Gt, x.into(), limit);
            b.when(large, |b| b.push(Stmt::Break(out)));
        };
        assert!(is_left(&stepping(loads, |x, _| x.into())), "it loads");
        let steps = |b: &mut Builder, x: VarId, _: Operand, out: LabelId| {
            b.push(Stmt::Let { dst: x, op: Op::FAdd, args: vec![x.into(), Operand::float(1.0)] });
            leaves_if_large(b, x, out);
        };
        assert!(is_left(&stepping(steps, |x, _| x.into())), "once more would be a step more");
        let never = |_: &mut Builder, _: VarId, _: Operand, _: LabelId| {};
        assert!(is_left(&stepping(never, |x, _| x.into())), "it has one way out");
    }
}
