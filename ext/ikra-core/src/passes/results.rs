//! Partial redundancy elimination of arithmetic: a result stays in a register until an operand of it is assigned.
//!
//! An example: an actor's speed is its street's limit times a factor for the weather, and the actor stays on the street
//! for many seconds. So the distance is computed once before the loop over ticks, and again whenever the street's limit
//! is loaded ([`super::partial_redundancy`]), instead of in every tick.
//!
//! Fires for operations that may run anywhere. Their operands are registers that the loop does not assign, or assigns
//! at most half as often as it computes the result ([`super::loops::frequencies`]). A result that takes one more
//! register must save more than one operation. Conditions stay: a comparison costs no more than reading a register.

use super::Pass;
use super::loops::{Counts, assignment_frequencies, frequencies, is_movable};
use crate::ir::{Func, Op, Operand, Program, Scalar, Stmt, Var, VarId, walk};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

pub const PASS: Pass = Pass { name: "results", description: "results until an operand is assigned", run };

/// The most results that one loop keeps. Each needs a register for the whole loop.
const MAX_RESULTS: usize = 4;

/// How often an operand may be assigned for each time that the result is computed. Threads that diverge all wait for
/// one that computes a result again.
const SELDOM: f64 = 0.5;

fn run(mut program: Program) -> Program {
    for func in &mut program.funcs {
        let counts = Counts::of(func);
        let mut reads = vec![0; func.vars.len()];
        walk(&func.body, &mut |s| s.reads(|operand| count(operand, &mut reads)));
        let mut body = std::mem::take(&mut func.body);
        Keeper { func, counts, reads }.list(&mut body);
        func.body = body;
    }
    program
}

fn count(operand: Operand, reads: &mut [u32]) {
    if let Operand::Var(v) = operand {
        reads[v.index()] += 1;
    }
}

struct Keeper<'a> {
    func: &'a mut Func,
    counts: Counts,
    /// How often each register that existed before the pass is read.
    reads: Vec<u32>,
}

/// An operation of a loop whose operands are seldom assigned.
struct Candidate {
    dst: VarId,
    op: Op,
    args: Vec<Operand>,
    /// The registers that the loop assigns and on which the result depends, directly or through other candidates.
    on: BTreeSet<VarId>,
    /// Candidates that it is computed from, itself included.
    parts: BTreeSet<usize>,
}

/// The results that a loop keeps.
#[derive(Default)]
struct Kept {
    /// New registers for the candidates' values, since a candidate's own register must not change after a use.
    parts: Vec<(VarId, Candidate)>,
    /// By the candidate's own register: the register to copy instead of computing the result.
    results: HashMap<VarId, VarId>,
}

impl Keeper<'_> {
    fn list(&mut self, body: &mut Vec<Stmt>) {
        let mut out: Vec<Stmt> = Vec::with_capacity(body.len());
        for mut stmt in std::mem::take(body) {
            if let Stmt::Loop { body, .. } = &mut stmt {
                let kept = self.choose(body, &out);
                if !kept.parts.is_empty() {
                    kept.replace(body);
                    out.extend((0..kept.parts.len()).map(|part| kept.compute(part)));
                }
            }
            for nested in stmt.bodies_mut().into_iter().flatten() {
                self.list(nested);
            }
            out.push(stmt);
        }
        *body = out;
    }

    fn choose(&mut self, body: &[Stmt], before: &[Stmt]) -> Kept {
        let mut finder = Finder {
            counts: &self.counts,
            assignments: assignment_frequencies(body),
            computed: BTreeMap::new(),
            before: before.iter().flat_map(Stmt::assigns).copied().collect(),
            assigned: HashSet::new(),
            candidates: Vec::new(),
            by_register: HashMap::new(),
        };
        frequencies(body, &mut |stmt, often| {
            if let Stmt::Let { dst, .. } = stmt {
                finder.computed.insert(*dst, often);
            }
        });
        finder.list(body);
        let candidates = finder.candidates;
        let results = self.results(&candidates);
        let parts: BTreeSet<usize> = results.iter().flat_map(|result| candidates[*result].parts.clone()).collect();
        let mut kept = Kept::default();
        let mut registers = HashMap::new();
        for (i, mut candidate) in candidates.into_iter().enumerate().filter(|(i, _)| parts.contains(i)) {
            let Var { ty, name } = self.func.vars[candidate.dst.index()].clone();
            self.func.vars.push(Var { ty, name });
            let register = VarId::new(self.func.vars.len() - 1);
            self.counts.add(candidate.on.len() as u32 + 1);
            // An inner loop must not treat it as a candidate.
            self.reads.push(u32::MAX);
            registers.insert(candidate.dst, register);
            for arg in &mut candidate.args {
                if let Operand::Var(v) = arg {
                    *v = registers.get(v).copied().unwrap_or(*v);
                }
            }
            if results.contains(&i) {
                kept.results.insert(candidate.dst, register);
            }
            kept.parts.push((register, candidate));
        }
        kept
    }

    /// The candidates that statements other than candidates read, where keeping them pays.
    fn results(&self, candidates: &[Candidate]) -> Vec<usize> {
        let mut within = vec![0; self.reads.len()];
        candidates.iter().flat_map(|c| &c.args).for_each(|arg| count(*arg, &mut within));
        let is_free = |op| matches!(op, Op::Copy | Op::Widen | Op::Narrow);
        let mut results = Vec::new();
        for (i, candidate) in candidates.iter().enumerate().rev() {
            let dst = candidate.dst.index();
            if within[dst] == self.reads[dst] {
                continue;
            }
            let is_condition = self.func.vars[dst].ty == Scalar::Bool;
            let frees = || candidate.on.iter().any(|v| within[v.index()] == self.reads[v.index()]);
            let saves = candidate.parts.iter().filter(|part| !is_free(candidates[**part].op)).count();
            if !is_condition
                && !is_free(candidate.op)
                && results.len() < MAX_RESULTS
                && (saves > 1 || saves == 1 && frees())
            {
                results.push(i);
                continue;
            }
            // The operation stays, and so its operands are read.
            for arg in &candidate.args {
                if let Operand::Var(v) = arg {
                    within[v.index()] -= 1;
                }
            }
        }
        results
    }
}

struct Finder<'a> {
    counts: &'a Counts,
    /// How often a repetition assigns each register.
    assignments: BTreeMap<VarId, f64>,
    /// The same for operations, by a register that no other statement assigns.
    computed: BTreeMap<VarId, f64>,
    /// Registers that were assigned before the loop on every path to it.
    before: HashSet<VarId>,
    /// Registers that the loop has assigned so far.
    assigned: HashSet<VarId>,
    candidates: Vec<Candidate>,
    by_register: HashMap<VarId, usize>,
}

impl Finder<'_> {
    fn list(&mut self, body: &[Stmt]) {
        for stmt in body {
            if let Stmt::Let { dst, op, args } = stmt {
                self.candidate(*dst, *op, args);
            }
            self.assigned.extend(stmt.assigns());
            stmt.bodies().into_iter().for_each(|body| self.list(body));
        }
    }

    fn candidate(&mut self, dst: VarId, op: Op, args: &[Operand]) {
        if !is_movable(op) || self.counts.assigned(dst) != 1 {
            return;
        }
        let computed = self.computed.get(&dst).copied().unwrap_or_default();
        let (mut on, mut parts) = (BTreeSet::new(), BTreeSet::from([self.candidates.len()]));
        for arg in args {
            let Operand::Var(v) = arg else { continue };
            let Some(assigned) = self.assignments.get(v) else { continue };
            if let Some(part) = self.by_register.get(v).map(|part| &self.candidates[*part]) {
                // The operands of `part` have the same values here as where it was computed.
                if part.on.iter().all(|v| !self.assigned.contains(v)) {
                    on.extend(&part.on);
                    parts.extend(&part.parts);
                    continue;
                }
            }
            if *assigned > SELDOM * computed || !self.before.contains(v) {
                return;
            }
            on.insert(*v);
        }
        let rare = |v: &VarId| self.assignments.get(v).is_some_and(|assigned| *assigned <= SELDOM * computed);
        if !on.is_empty() && on.iter().all(rare) {
            self.by_register.insert(dst, self.candidates.len());
            self.candidates.push(Candidate { dst, op, args: args.to_vec(), on, parts });
        }
    }
}

impl Kept {
    fn compute(&self, part: usize) -> Stmt {
        let (register, Candidate { op, args, .. }) = &self.parts[part];
        Stmt::Let { dst: *register, op: *op, args: args.clone() }
    }

    /// Replaces computed results by copies, and computes them after each assignment of a register on which they depend.
    fn replace(&self, body: &mut Vec<Stmt>) {
        let mut out = Vec::with_capacity(body.len());
        let mut due: BTreeSet<usize> = BTreeSet::new();
        for mut stmt in std::mem::take(body) {
            // Several operands are often loaded in a row, so the computation waits until after these loads.
            if !matches!(&stmt, Stmt::Load { row, .. } if !self.parts.iter().any(|(part, _)| *row == (*part).into())) {
                out.extend(std::mem::take(&mut due).into_iter().map(|part| self.compute(part)));
            }
            for nested in stmt.bodies_mut().into_iter().flatten() {
                self.replace(nested);
            }
            if let Stmt::Let { dst, op, args } = &mut stmt
                && let Some(register) = self.results.get(dst)
            {
                (*op, *args) = (Op::Copy, vec![(*register).into()]);
            }
            let parts = self.parts.iter().enumerate();
            due.extend(parts.filter(|(_, (_, c))| stmt.assigns().iter().any(|v| c.on.contains(v))).map(|(i, _)| i));
            out.push(stmt);
        }
        out.extend(due.into_iter().map(|part| self.compute(part)));
        *body = out;
    }
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INTS, OUT, SPEED, program};
    use crate::ir::{Cmp, Op, Operand, ParamId, Program, Scalar, Stmt, VarId};
    use crate::passes::testing::after;
    use crate::passes::{dce, gvn};

    /// Computes with a limit in each round; some rounds load the limit again.
    fn limited(branches: usize, look: impl FnOnce(&mut Builder, Operand, Operand)) -> Program {
        program(|b, index| {
            let own = b.f64(Op::Param(ParamId(1)), &[]);
            let limit = b.var(Scalar::F64, Some("limit".into()));
            b.push(Stmt::Load { dst: limit, column: SPEED, row: Operand::I32(1) });
            b.repeat(|b, done| {
                look(b, own, limit.into());
                let rare = b.load(Scalar::I64, INTS, index);
                let mut bodies = vec![Stmt::Load { dst: limit, column: SPEED, row: Operand::I32(2) }];
                for i in 0..branches {
                    let cond = b.icmp(Cmp::Gt, rare, Operand::I64(i as i64));
                    bodies = vec![Stmt::If { cond, then: bodies, otherwise: vec![] }];
                }
                bodies.into_iter().for_each(|s| b.push(s));
                let end = b.icmp(Cmp::Lt, rare, Operand::I64(0));
                b.when(end, |b| b.push(Stmt::Break(done)));
            });
        })
    }

    fn least(b: &mut Builder, x: Operand, y: Operand) -> Operand {
        let less = b.fcmp(Cmp::Lt, x, y);
        b.select(Scalar::F64, less, x, y)
    }

    fn stays(program: Program) {
        assert_eq!(after(&[PASS], program.clone()), after(&[], program));
    }

    #[test]
    fn a_result_is_computed_when_an_operand_changes() {
        let program = limited(2, |b, own, limit| {
            let velocity = least(b, own, limit);
            let distance = b.f64(Op::FMul, &[velocity, Operand::float(0.5)]);
            b.store(OUT, Operand::I64(0), distance);
        });
        insta::assert_snapshot!(after(&[PASS, gvn::PASS, dce::PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: f64 = param p1 "x"
          limit.4: f64 = load Car@speed[1i32]
          v5: bool = fcmp.lt v3, limit.4
          v6: f64 = select v5, v3, limit.4
          v7: f64 = fmul v6, 0.5
          loop L0 {
            store out[0] = v7
            v8: i64 = load ints[job.0]
            v9: bool = icmp.gt v8, 0
            v10: bool = icmp.gt v8, 1
            if v10 {
              if v9 {
                limit.4 = load Car@speed[2i32]
                v5 = fcmp.lt v3, limit.4
                v6 = select v5, v3, limit.4
                v7 = fmul v6, 0.5
              }
            }
            v11: bool = icmp.lt v8, 0
            if v11 {
              break L0
            }
          }
        }
        "#);
    }

    #[test]
    fn what_is_computed_from_a_result_is_one_register_with_it() {
        // Both results are used, and the second is computed from the first.
        let program = limited(2, |b, own, limit| {
            let velocity = least(b, own, limit);
            b.store(OUT, Operand::I64(0), velocity);
            let half = b.f64(Op::FMul, &[velocity, Operand::float(0.5)]);
            b.store(OUT, Operand::I64(1), half);
        });
        insta::assert_snapshot!(after(&[PASS, gvn::PASS, dce::PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: f64 = param p1 "x"
          limit.4: f64 = load Car@speed[1i32]
          v5: bool = fcmp.lt v3, limit.4
          v6: f64 = select v5, v3, limit.4
          v7: f64 = fmul v6, 0.5
          loop L0 {
            store out[0] = v6
            store out[1] = v7
            v8: i64 = load ints[job.0]
            v9: bool = icmp.gt v8, 0
            v10: bool = icmp.gt v8, 1
            if v10 {
              if v9 {
                limit.4 = load Car@speed[2i32]
                v5 = fcmp.lt v3, limit.4
                v6 = select v5, v3, limit.4
                v7 = fmul v6, 0.5
              }
            }
            v11: bool = icmp.lt v8, 0
            if v11 {
              break L0
            }
          }
        }
        "#);
    }

    #[test]
    fn one_operation_is_kept_only_in_the_place_of_its_operand() {
        insta::assert_snapshot!(after(&[PASS, gvn::PASS, dce::PASS], limited(2, |b, _, limit| {
            let half = b.f64(Op::FMul, &[limit, Operand::float(0.5)]);
            b.store(OUT, Operand::I64(0), half);
        })), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          limit.3: f64 = load Car@speed[1i32]
          v4: f64 = fmul limit.3, 0.5
          loop L0 {
            store out[0] = v4
            v5: i64 = load ints[job.0]
            v6: bool = icmp.gt v5, 0
            v7: bool = icmp.gt v5, 1
            if v7 {
              if v6 {
                limit.3 = load Car@speed[2i32]
                v4 = fmul limit.3, 0.5
              }
            }
            v8: bool = icmp.lt v5, 0
            if v8 {
              break L0
            }
          }
        }
        "#);
        stays(limited(2, |b, _, limit| {
            let half = b.f64(Op::FMul, &[limit, Operand::float(0.5)]);
            b.store(OUT, Operand::I64(0), half);
            b.store(OUT, Operand::I64(1), limit);
        }));
    }

    #[test]
    fn not_where_the_operand_changes_as_often() {
        stays(limited(0, |b, own, limit| {
            let velocity = least(b, own, limit);
            b.store(OUT, Operand::I64(0), velocity);
        }));
    }

    #[test]
    fn conditions_stay() {
        stays(limited(2, |b, own, limit| {
            let less = b.fcmp(Cmp::Lt, own, limit);
            b.when(less, |b| b.store(OUT, Operand::I64(0), own));
        }));
    }

    #[test]
    fn a_result_of_before_the_change_stays_what_it_was() {
        // Where the velocity is doubled, it is computed from the old limit.
        let program = program(|b, index| {
            let limit = b.var(Scalar::F64, Some("limit".into()));
            b.push(Stmt::Load { dst: limit, column: SPEED, row: Operand::I32(1) });
            b.repeat(|b, done| {
                let velocity = b.f64(Op::FSqrt, &[limit.into()]);
                let rare = b.load(Scalar::I64, INTS, index);
                let [some, few] = [0, 1].map(|i| b.icmp(Cmp::Gt, rare, Operand::I64(i)));
                b.when(some, |b| {
                    b.when(few, |b| b.push(Stmt::Load { dst: limit, column: SPEED, row: Operand::I32(2) }));
                });
                let double = b.f64(Op::FAdd, &[velocity, velocity]);
                b.store(OUT, index, double);
                let end = b.icmp(Cmp::Lt, rare, Operand::I64(0));
                b.when(end, |b| b.push(Stmt::Break(done)));
            });
        });
        insta::assert_snapshot!(after(&[PASS, dce::PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          limit.4: f64 = load Car@speed[1i32]
          v5: f64 = fsqrt limit.4
          loop L0 {
            v6: f64 = copy v5
            v7: i64 = load ints[v3]
            v8: bool = icmp.gt v7, 0
            v9: bool = icmp.gt v7, 1
            if v8 {
              if v9 {
                limit.4 = load Car@speed[2i32]
                v5 = fsqrt limit.4
              }
            }
            v10: f64 = fadd v6, v6
            store out[v3] = v10
            v11: bool = icmp.lt v7, 0
            if v11 {
              break L0
            }
          }
        }
        "#);
    }

    #[test]
    fn not_where_the_operand_was_assigned_on_branches_alone() {
        let mut program = limited(2, |b, own, limit| {
            let velocity = least(b, own, limit);
            b.store(OUT, Operand::I64(0), velocity);
        });
        // The load before the loop becomes one in two branches.
        let body = &mut program.funcs[0].body;
        let at = body.iter().position(|s| matches!(s, Stmt::Load { .. })).expect("a load");
        let load = body.remove(at);
        let Stmt::Load { dst, .. } = load else { panic!("a load") };
        let zero = Stmt::Let { dst, op: Op::Copy, args: vec![Operand::float(0.0)] };
        let job = Operand::Var(VarId(0));
        let cond = VarId::new(program.funcs[0].vars.len());
        program.funcs[0].vars.push(crate::ir::Var { ty: Scalar::Bool, name: None });
        let body = &mut program.funcs[0].body;
        let compare = Stmt::Let { dst: cond, op: Op::ICmp(Cmp::Eq), args: vec![job, Operand::I64(0)] };
        let either = Stmt::If { cond: cond.into(), then: vec![load], otherwise: vec![zero] };
        body.splice(at..at, [compare, either]);
        stays(program);
    }
}
