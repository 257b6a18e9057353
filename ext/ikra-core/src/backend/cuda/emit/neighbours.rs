//! Loops of a thread over neighbours: several of them at a time.
//!
//! A load of a warp takes a cycle for each line of the cache that it touches, which are 32 where each thread goes over elements of its own,
//! one after the other, however little each takes of its line. So neighbours are loaded 16 bytes at once, which is half as many loads, and
//! several such loads are under way together, before the first repetition needs what they bring:
//!
//! ```text
//! while (true) { x = c[i]; …; i += 1; if (i >= end) break; }
//!
//! while (true) {
//!   if (… left from i to end, and &c[i] is even) { load c[i], c[i + 1], …; for (…) { x = …; …; i += 1; } }
//!   else { x = c[i]; …; i += 1; }
//!   if (i >= end) break;
//! }
//! ```
//!
//! Here: which loops these are, and their text. They load what nothing writes, and their only way out is the test at the end, but for results that leave
//! 64 bits. What else raises may be what says that a row is there, and before it nothing is loaded that is behind it in Ruby's order.

use super::{Function, Open, UNROLL_PLAIN, scalar};
use crate::ir::{ColumnId, LabelId, Op, Operand, Scalar, Stmt, Storage, VarId, walk};
use crate::passes::loops::Counting;
use std::fmt::Write;

/// Repetitions whose neighbours are loaded at once, and the same where there is one load and little else: 32 registers then hold what is under way.
const AT_ONCE: usize = 8;
const MOST_AT_ONCE: usize = 16;
const LITTLE: usize = 4;

/// A loop over neighbours.
pub(super) struct Neighbours {
    loads: Vec<Next>,
    /// It counts from here to there.
    count: VarId,
    end: Operand,
    at_once: usize,
}

/// A load whose row is the next one each time round.
struct Next {
    dst: VarId,
    column: ColumnId,
    row: VarId,
}

impl Function<'_> {
    /// What a loop loads, if it is one over neighbours.
    pub(super) fn neighbours(&self, stmt: &Stmt) -> Option<Neighbours> {
        let (Counting { i: count, step: 1, end }, repeated) = Counting::of(stmt, false)? else { return None };
        let (mut assigned, mut straight) = (vec![0u32; self.func.vars.len()], true);
        walk(repeated, &mut |stmt| {
            stmt.assigns().iter().for_each(|dst| assigned[dst.index()] += 1);
            straight &= !matches!(stmt, Stmt::Break(_) | Stmt::Block { .. } | Stmt::Return(_) | Stmt::Trap { .. });
        });
        let scale = self.scale(stmt.label()?)?;
        if !straight || self.size(repeated) > scale * UNROLL_PLAIN {
            return None;
        }
        let once = |v: VarId| assigned[v.index()] == 1;
        // Whether a register becomes one more behind a statement, and changes nowhere else.
        let steps = |v: VarId, behind: usize| {
            let step = |stmt: &Stmt| matches!(stmt, Stmt::Let { dst, op: Op::Add, args } if *dst == v && args[..] == [v.into(), Operand::I64(1)]);
            v == count || once(v) && repeated[behind..].iter().any(step)
        };
        let next = |(at, stmt): (usize, &Stmt)| match stmt {
            Stmt::Load { dst, column, row: Operand::Var(row) }
                if once(*dst) && steps(*row, at) && self.is_of_pairs(*column, *dst) =>
            {
                Some(Next { dst: *dst, column: *column, row: *row })
            }
            _ => None,
        };
        let loads: Vec<Next> = repeated.iter().enumerate().filter_map(next).collect();
        let at_once = if loads.len() == 1 && repeated.len() <= scale * LITTLE { MOST_AT_ONCE } else { AT_ONCE };
        (!loads.is_empty()).then_some(Neighbours { loads, count, end, at_once })
    }

    /// Whether two rows of a column, which the register holds one of, may be loaded at once.
    fn is_of_pairs(&self, column: ColumnId, dst: VarId) -> bool {
        let shared = self.shared;
        let storage = shared.program.columns[column.index()].storage;
        let whole = matches!(
            (storage, self.func.vars[dst.index()].ty),
            (Storage::I64, Scalar::I64) | (Storage::F64, Scalar::F64)
        );
        whole && !shared.written[column.index()] && shared.own_buffer(column)
    }

    /// What a load gives that this loop has made before.
    pub(super) fn next_name(&self, dst: VarId) -> String {
        format!("{}_next", self.name(dst))
    }

    /// The text of the loop.
    pub(super) fn over_neighbours(&mut self, loop_: &Neighbours, label: LabelId, body: &[Stmt]) {
        self.nexts = loop_.loads.iter().map(|next| next.dst).collect();
        let open = Open { label, is_loop: true, list: self.next_list, length: body.len(), last: false, left: false };
        self.open.push(open);
        let start = self.out.len();
        self.nest(body);
        let body = self.out.split_off(start);
        self.open.pop();
        self.nexts.clear();
        // the way out is the last line
        let (repetition, exit) = body.trim_end().rsplit_once('\n').unwrap_or(("", &body));
        let column = |next: &Next| self.shared.slot(next.column, self.name(next.row));
        let ty = |next: &Next| scalar(self.func.vars[next.dst.index()].ty);
        let n = loop_.at_once;
        let end = match loop_.end {
            Operand::Var(end) => self.name(end).to_owned(),
            Operand::I64(end) => end.to_string(),
            _ => unreachable!("Integers are compared"),
        };
        let mut cond = format!("are_left({}, {end}, {n})", self.name(loop_.count));
        let (mut several, mut taken, mut one) = (Vec::new(), Vec::new(), Vec::new());
        for next in &loop_.loads {
            let (slot, ty, name) = (column(next), ty(next), self.next_name(next.dst));
            let _ = write!(cond, " && is_even(&{slot})");
            several.push(format!("const Neighbours<{ty}, {n}> {name}s(&{slot});"));
            taken.push(format!("const {ty} {name} = {name}s.at[next];"));
            one.push(format!("const {ty} {name} = __ldg(&{slot});"));
        }
        self.line("#pragma unroll 1");
        self.line("while (true) {");
        self.indent += 1;
        self.line(&format!("if ({cond}) {{"));
        self.indent += 1;
        several.iter().for_each(|line| self.line(line));
        self.line("#pragma unroll");
        self.line(&format!("for (u32 next = 0; next < {n}; next++) {{"));
        self.repetition(&taken, repetition, 2);
        self.line("}");
        self.indent -= 1;
        self.line("} else {");
        self.repetition(&one, repetition, 1);
        self.line("}");
        self.indent -= 1;
        self.out.push_str(exit);
        self.out.push('\n');
        self.line("}");
    }

    /// What a repetition is given, and its lines, which were written before, so much deeper.
    fn repetition(&mut self, given: &[String], lines: &str, deeper: usize) {
        self.indent += 1;
        given.iter().for_each(|line| self.line(line));
        self.indent -= 1;
        for line in lines.lines() {
            self.out.push_str(&"  ".repeat(deeper));
            self.out.push_str(line);
            self.out.push('\n');
        }
    }
}
