//! Turns the allocation of rows into arithmetic on counters. This is the last pass over a program.
//!
//! Here: the machine form of [`Stmt::Alloc`]. A permanent row is taken by an atomic addition to one counter of all
//! jobs. A scratch row is taken by adding to the counter of the thread's slot, which starts at 0 whenever a job begins
//! an element or tick. A job that finds too few rows traps, and the host runs the section again with more rows. Not
//! here: which rows are scratch (lowering decides), and where the regions lie (the host says, by parameters).
//!
//! Earlier passes only see that an `Alloc` gives rows that nothing else refers to.

use super::Pass;
use crate::ir::{
    Cmp, Func, Heap, HeapId, Op, Operand, Program, SLOT_STRIDE, Scalar, SiteId, Space, Stmt, Var, VarId, walk,
};

pub const PASS: Pass = Pass { name: "expand", description: "new rows are taken from counters", run };

/// More rows than one allocation can have, yet so few that no sum of counters leaves 64 bits.
const MAX_ROWS: i64 = 1 << 36;

fn run(mut program: Program) -> Program {
    let mut used = vec![false; program.heaps.len()];
    for func in &program.funcs {
        walk(&func.body, &mut |s| {
            if let Stmt::Alloc { heap, .. } = s {
                used[heap.index()] = true;
            }
        });
    }
    if !used.contains(&true) {
        return program;
    }
    let heaps = program.heaps.clone();
    for (heap, used) in heaps.iter().zip(&used) {
        let taken = &mut program.columns[heap.taken.index()];
        (taken.read, taken.written) = (*used, *used);
    }
    for func in &mut program.funcs {
        let mut body = std::mem::take(&mut func.body);
        Expander { func, heaps: &heaps, used: &used }.list(&mut body);
        func.body = body;
    }
    program
}

struct Expander<'a> {
    func: &'a mut Func,
    heaps: &'a [Heap],
    used: &'a [bool],
}

impl Expander<'_> {
    fn list(&mut self, body: &mut Vec<Stmt>) {
        let mut out = Vec::with_capacity(body.len());
        for mut stmt in std::mem::take(body) {
            for nested in stmt.bodies_mut().into_iter().flatten() {
                self.list(nested);
            }
            match stmt {
                Stmt::Alloc { dst, heap, count, site } => self.alloc(dst, heap, count, site, &mut out),
                Stmt::Begin { .. } => {
                    out.push(stmt);
                    for (heap, used) in self.heaps.iter().zip(self.used) {
                        if heap.scratch && *used {
                            let (_, row) = self.slot(&mut out);
                            out.push(Stmt::Store { column: heap.taken, row, value: Operand::I64(0) });
                        }
                    }
                }
                other => out.push(other),
            }
        }
        *body = out;
    }

    fn temp(&mut self, ty: Scalar) -> VarId {
        self.func.vars.push(Var { ty, name: None });
        VarId::new(self.func.vars.len() - 1)
    }

    fn op(&mut self, ty: Scalar, op: Op, args: &[Operand], out: &mut Vec<Stmt>) -> Operand {
        let dst = self.temp(ty);
        out.push(Stmt::Let { dst, op, args: args.to_vec() });
        dst.into()
    }

    /// The thread's number, and the row of its counters.
    fn slot(&mut self, out: &mut Vec<Stmt>) -> (Operand, Operand) {
        let slot = self.op(Scalar::I64, Op::Ctx(crate::ir::Ctx::Slot), &[], out);
        let row = self.op(Scalar::I64, Op::Mul, &[slot, Operand::I64(SLOT_STRIDE)], out);
        (slot, row)
    }

    fn alloc(&mut self, dst: VarId, id: HeapId, count: Operand, site: SiteId, out: &mut Vec<Stmt>) {
        let heap = self.heaps[id.index()].clone();
        let count = match count {
            Operand::I64(n) => Operand::I64(n.clamp(0, MAX_ROWS)),
            count => {
                let most = Operand::I64(MAX_ROWS);
                let many = self.op(Scalar::Bool, Op::ICmp(Cmp::Gt), &[count, most], out);
                self.op(Scalar::I64, Op::Select, &[many, most, count], out)
            }
        };
        let capacity = self.op(Scalar::I64, Op::Param(heap.capacity), &[], out);
        let start = self.op(Scalar::I64, Op::Param(heap.start), &[], out);
        let (taken, own) = if heap.scratch {
            let (slot, row) = self.slot(out);
            let taken = self.temp(Scalar::I64);
            out.push(Stmt::Load { dst: taken, column: heap.taken, row });
            let region = self.op(Scalar::I64, Op::Mul, &[slot, capacity], out);
            let region = self.op(Scalar::I64, Op::Add, &[start, region], out);
            (taken, Some((row, region)))
        } else {
            let (taken, row) = (self.temp(Scalar::I64), Operand::I64(0));
            out.push(Stmt::FetchAdd { dst: taken, column: heap.taken, row, value: count });
            (taken, None)
        };
        let needed = self.op(Scalar::I64, Op::Add, &[taken.into(), count], out);
        let over = self.op(Scalar::Bool, Op::ICmp(Cmp::Gt), &[needed, capacity], out);
        let then = vec![Stmt::Trap { site, operands: vec![needed] }];
        out.push(Stmt::If { cond: over, then, otherwise: Vec::new() });
        if let Some((row, _)) = own {
            out.push(Stmt::Store { column: heap.taken, row, value: needed });
        }
        let region = own.map_or(start, |(_, region)| region);
        let first = self.op(Scalar::I64, Op::Add, &[region, taken.into()], out);
        let op = if matches!(heap.space, Space::Class { .. }) { Op::Narrow } else { Op::Copy };
        out.push(Stmt::Let { dst, op, args: vec![first] });
    }
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::testing::{SPEED, heaps, program};
    use crate::ir::{HeapId, Op, Operand, Scalar};
    use crate::passes::testing::after;

    #[test]
    fn rows_for_good_come_from_one_counter_and_scratch_from_the_slots_own() {
        let mut program = program(|b, index| {
            let kept = b.alloc(Scalar::I32, HeapId(0), Operand::I64(1), crate::ir::SiteId(4));
            b.store(SPEED, kept, Operand::float(1.0));
            let passing = b.alloc(Scalar::I64, HeapId(1), index, crate::ir::SiteId(5));
            b.i64(Op::Add, &[passing, passing]);
        });
        heaps(&mut program);
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v7: i64 = slot
          v8: i64 = mul v7, 8
          store taken1[v8] = 0
          v3: i64 = index
          v9: i64 = param p5 "capacity0"
          v10: i64 = param p4 "start0"
          v11: i64 = fetch_add taken0[0], 1
          v12: i64 = add v11, 1
          v13: bool = icmp.gt v12, v9
          if v13 {
            trap s4 v12
          }
          v14: i64 = add v10, v11
          v4: i32 = narrow v14
          store Car@speed[v4] = 1.0
          v15: bool = icmp.gt v3, 68719476736
          v16: i64 = select v15, 68719476736, v3
          v17: i64 = param p7 "capacity1"
          v18: i64 = param p6 "start1"
          v19: i64 = slot
          v20: i64 = mul v19, 8
          v21: i64 = load taken1[v20]
          v22: i64 = mul v19, v17
          v23: i64 = add v18, v22
          v24: i64 = add v21, v16
          v25: bool = icmp.gt v24, v17
          if v25 {
            trap s5 v24
          }
          store taken1[v20] = v24
          v26: i64 = add v23, v21
          v5: i64 = copy v26
          v6: i64 = add v5, v5
        }
        "#);
    }

    #[test]
    fn without_new_rows_nothing_changes() {
        let mut program = program(|b, _| b.store(SPEED, Operand::I32(0), Operand::float(1.0)));
        heaps(&mut program);
        assert_eq!((PASS.run)(program.clone()), program);
    }
}
