//! Loops of a thread over neighbouring rows, which load several of them at a time.
//!
//! A load of a warp takes a cycle for each cache line that it touches. If each thread goes over elements of its own,
//! one after the other, that is 32 lines, however little each thread uses of its line. So these loops load neighbours
//! with loads of 16 bytes, which halves the number of loads. Several such loads overlap before the first repetition
//! needs a value:
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
//! A loop of few repetitions is emitted as two: one for all of them at once, and the plain one. Here: which loops these
//! are, and their text. The columns that they load are never written. Their only exit is the test at the end, except
//! for results that exceed 64 bits. Other traps may be checks that a row exists, and rows after such a check in Ruby's
//! order must not be loaded before it.

use super::function::{Function, Open, UNROLL_PLAIN, few_turns};
use super::scalar;
use crate::ir::{ColumnId, LabelId, Op, Operand, Scalar, Space, Stmt, Storage, VarId, walk};
use crate::passes::loops::Counting;
use std::fmt::Write;

/// The repetitions whose neighbours are loaded at once; and the same for loops with one load and few other statements.
/// The loaded values then take 32 registers.
const AT_ONCE: usize = 8;
/// How many rows of 8 bytes one load reads.
const PAIR: usize = 2;
const MAX_AT_ONCE: usize = 16;
const MAX_STATEMENTS_FOR_MOST: usize = 4;
/// With fewer, the test for alignment does not pay.
const MIN_AT_ONCE: usize = 4;

/// A loop over neighbours.
pub(super) struct Neighbours {
    loads: Vec<Next>,
    /// The register that counts, and the bound.
    count: VarId,
    end: Operand,
    at_once: usize,
    /// Whether these are all repetitions, and the loop counts from 0.
    all: bool,
}

/// A load whose row is one more in each repetition.
struct Next {
    dst: VarId,
    column: ColumnId,
    row: Row,
}

/// The row of a load, which is one more in each repetition.
#[derive(Clone, Copy)]
enum Row {
    Counted(VarId),
    /// A constant row plus the count.
    From(Operand),
}

impl Function<'_> {
    /// The loads of a loop, if it is a loop over neighbours.
    pub(super) fn neighbours(&self, stmt: &Stmt) -> Option<Neighbours> {
        let (Counting { i: count, step: 1, end }, repeated) = Counting::of(stmt, false)? else { return None };
        let (mut assigned, mut straight) = (vec![0u32; self.func.vars.len()], true);
        walk(repeated, &mut |stmt| {
            stmt.assigns().iter().for_each(|dst| assigned[dst.index()] += 1);
            straight &= !matches!(stmt, Stmt::Break(_) | Stmt::Block { .. } | Stmt::Return(_) | Stmt::Trap { .. });
        });
        let Stmt::Loop { label, body } = stmt else { return None };
        let scale = self.scale(*label)?;
        if !straight || self.size(repeated) > scale * UNROLL_PLAIN {
            return None;
        }
        let turns = few_turns(*label, body, self.size(body));
        let once = |v: VarId| assigned[v.index()] == 1;
        // whether a register is increased by one after a statement, and changes nowhere else
        let steps = |v: VarId, behind: usize| {
            let step = |stmt: &Stmt| matches!(stmt, Stmt::Let { dst, op: Op::Add, args } if *dst == v && args[..] == [v.into(), Operand::I64(1)]);
            v == count || once(v) && repeated[behind..].iter().any(step)
        };
        // A list of objects that begins at a parameter is usually the same for all threads. A warp then loads the same
        // row, which is one line.
        let is_shared = |from: Operand| {
            let mut is_param = false;
            walk(&self.func.body, &mut |stmt| {
                is_param |= matches!(stmt, Stmt::Let { dst, op: Op::Param(_), .. } if from == (*dst).into());
            });
            is_param
        };
        let stays = |operand: Operand| !matches!(operand, Operand::Var(v) if v == count || assigned[v.index()] > 0);
        // whether a register is the sum of the count and a value that does not change
        let counted_from = |v: VarId, before: usize| {
            repeated[..before].iter().find_map(|stmt| match stmt {
                Stmt::Let { dst, op: Op::Add, args } if *dst == v && once(v) => match args[..] {
                    [from, Operand::Var(by)] | [Operand::Var(by), from] if by == count && stays(from) => Some(from),
                    _ => None,
                },
                _ => None,
            })
        };
        let row = |v: VarId, at: usize| match steps(v, at) {
            true => Some(Row::Counted(v)),
            false => counted_from(v, at).map(Row::From),
        };
        let next = |(at, stmt): (usize, &Stmt)| match stmt {
            Stmt::Load { dst, column, row: Operand::Var(v) } if once(*dst) => {
                let row = row(*v, at)?;
                let of_objects = matches!(self.shared.program.columns[column.index()].space, Space::Class { .. });
                let pays = !(of_objects && matches!(row, Row::From(from) if is_shared(from)));
                pays.then_some((Next { dst: *dst, column: *column, row }, self.at_once(*column, *dst)?))
            }
            _ => None,
        };
        let mut loads: Vec<(Next, usize)> = repeated.iter().enumerate().filter_map(next).collect();
        // References are loaded together only if all repetitions are loaded at once: most lists of them are shorter
        // than a block of loads.
        loads.retain(|(_, at_once)| turns.map_or(*at_once == PAIR, |turns| turns.is_multiple_of(*at_once)));
        let at_once = match turns {
            Some(turns) => turns,
            None if loads.len() == 1 && repeated.len() <= scale * MAX_STATEMENTS_FOR_MOST => MAX_AT_ONCE,
            None => AT_ONCE,
        };
        let loads: Vec<Next> = loads.into_iter().map(|(next, _)| next).collect();
        let fits = (MIN_AT_ONCE..=MAX_AT_ONCE).contains(&at_once) && !loads.is_empty();
        fits.then_some(Neighbours { loads, count, end, at_once, all: turns.is_some() })
    }

    /// How many rows of a column are loaded at once, if the register holds one of them.
    fn at_once(&self, column: ColumnId, dst: VarId) -> Option<usize> {
        let shared = self.shared;
        let storage = shared.program.columns[column.index()].storage;
        let rows = match (storage, self.func.vars[dst.index()].ty) {
            (Storage::I64, Scalar::I64) | (Storage::F64, Scalar::F64) => PAIR,
            (Storage::U32, Scalar::I32) => 2 * PAIR,
            _ => return None,
        };
        (!shared.written[column.index()] && shared.own_buffer(column)).then_some(rows)
    }

    /// The name of a value that the loop has loaded in advance.
    pub(super) fn next_name(&self, dst: VarId) -> String {
        format!("{}_next", self.name(dst))
    }

    /// Writes the loop.
    pub(super) fn over_neighbours(&mut self, loop_: &Neighbours, label: LabelId, body: &[Stmt]) {
        self.nexts = loop_.loads.iter().map(|next| next.dst).collect();
        let open = Open { label, is_loop: true, list: self.next_list, length: body.len(), last: false, left: false };
        self.open.push(open);
        let start = self.out.len();
        self.nest(body);
        let body = self.out.split_off(start);
        self.open.pop();
        self.nexts.clear();
        // written at the depth of a loop body; the exit is the last line
        let depth = self.indent + 1;
        let (repetition, exit) = body.trim_end().rsplit_once('\n').unwrap_or(("", &body));
        let column = |next: &Next| {
            let row = match next.row {
                Row::Counted(row) => self.name(row).to_owned(),
                Row::From(from) => format!("add({}, {})", self.number(from), self.name(loop_.count)),
            };
            self.shared.slot(next.column, &row)
        };
        let ty = |next: &Next| scalar(self.func.vars[next.dst.index()].ty);
        let n = loop_.at_once;
        let end = self.number(loop_.end);
        let count = self.name(loop_.count);
        let mut cond = if loop_.all { format!("{count} == 0") } else { format!("are_left({count}, {end}, {n})") };
        let (mut several, mut taken, mut one) = (Vec::new(), Vec::new(), Vec::new());
        for next in &loop_.loads {
            let (slot, ty, name) = (column(next), ty(next), self.next_name(next.dst));
            let _ = write!(cond, " && is_even(&{slot})");
            several.push(format!("const Neighbours<{ty}, {n}> {name}s(&{slot});"));
            taken.push(format!("const {ty} {name} = {name}s.at[next];"));
            one.push(format!("const {ty} {name} = __ldg(&{slot});"));
        }
        if !loop_.all {
            self.open_loop();
        }
        self.open(&format!("if ({cond}) {{"));
        several.iter().for_each(|line| self.line(line));
        self.line("#pragma unroll");
        self.open(&format!("for (u32 next = 0; next < {n}; next++) {{"));
        taken.iter().for_each(|line| self.line(line));
        self.again(repetition, depth);
        self.close();
        self.indent -= 1;
        self.open("} else {");
        if loop_.all {
            self.open_loop();
        }
        one.iter().for_each(|line| self.line(line));
        self.again(repetition, depth);
        if loop_.all {
            self.again(exit, depth);
            self.close();
        }
        self.close();
        if !loop_.all {
            self.again(exit, depth);
            self.close();
        }
    }

    fn open_loop(&mut self) {
        self.line("#pragma unroll 1");
        self.open("while (true) {");
    }

    fn open(&mut self, head: &str) {
        self.line(head);
        self.indent += 1;
    }

    fn close(&mut self) {
        self.indent -= 1;
        self.line("}");
    }

    fn number(&self, operand: Operand) -> String {
        match operand {
            Operand::Var(v) => self.name(v).to_owned(),
            Operand::I64(n) => n.to_string(),
            _ => unreachable!("Integers are counted"),
        }
    }

    /// Writes lines again that were written at another depth.
    fn again(&mut self, lines: &str, depth: usize) {
        for line in lines.lines() {
            let _ = writeln!(self.out, "{}{line}", "  ".repeat(self.indent - depth));
        }
    }
}
