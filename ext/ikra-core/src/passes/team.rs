//! Teams: several threads run one job, where its loops have repetitions that do not depend on each other.
//!
//! A program may have fewer jobs than a GPU has threads, each with a loop over a row. Then a launch gives several
//! threads, the *lanes* of a *team*, to each job. All lanes run the code around such loops alike. A loop goes
//!
//! ```text
//! i = first + lane; loop { …; i += lanes }
//! ```
//!
//! so that neighbouring lanes touch neighbouring elements. Stores and atomic operations outside of these loops are done
//! by the first lane alone. Lanes meet ([`Stmt::Meet`]) where one may read or overwrite what another has stored.
//!
//! [`shared_loop`] proves which loops may be shared. What only the launch knows, such as how far apart two rows are, is
//! tested in front of the loop. If the test fails, the first lane runs all repetitions.
//!
//! Exceptions: a lane that would raise in a shared loop notes it and leaves the loop. Then all lanes meet. The
//! exception of the least repetition is raised, and the other lanes end. An exception outside of these loops is raised
//! by all lanes alike.
//!
//! Part of no pipeline: a backend has both programs, and chooses one of them at each launch.
//!
//! Source: Y. Yang, H. Zhou, CUDA-NP: realizing nested thread-level parallelism in GPGPU applications, 2014.

mod shared_loop;
mod values;

use crate::ir::effects::Effects;
use crate::ir::{
    Cmp, ColumnId, Func, Jobs, LabelId, Op, Operand, Param, ParamId, Program, Scalar, Stmt, Var, VarId, walk,
};
use std::collections::BTreeSet;

/// A program whose jobs are run by teams.
#[derive(Debug)]
pub struct Team {
    /// Its last parameter is [`Team::bits`]. Its jobs are the lanes of all teams; a team's lanes follow each other.
    pub program: Program,
    /// The columns to which shared loops store.
    stores: BTreeSet<ColumnId>,
}

/// The fewest lanes: as many as run in lockstep.
pub const MIN_LANES: u64 = 32;
/// The most lanes, which are a block of threads.
pub const MAX_LANES: u64 = 512;
/// The fewest repetitions, on average, for which a team pays.
const MIN_REPETITIONS: u64 = 16;
/// The fewest repetitions of all jobs together. With fewer, one thread for each job has soon done all, and no second
/// kernel has to be compiled.
const MIN_ROWS: u64 = 4096;
/// Teams of the fewest lanes pay as long as they are no more threads than the device runs at a time, times this.
/// Neighbouring lanes load neighbouring elements, which is worth some turns.
const TURNS: u64 = 4;

impl Team {
    /// None: no loop can be shared.
    pub fn of(program: &Program) -> Option<Self> {
        let entry = &program.funcs[program.entry.index()];
        if program.jobs == Jobs::Grouped || program.uses_slots() || looks_between_ticks(&entry.body) {
            return None;
        }
        let mut made = program.clone();
        made.params.push(Param { range: Some((0, 9)), ..Param::new("team.bits", Scalar::I64) });
        let bits = Self::bits(&made);
        let mut maker = Maker {
            effects: program.effects(),
            func: Func { body: Vec::new(), ..entry.clone() },
            reads: reads(entry),
            meets: columns_to_meet_for(program),
            first: Operand::Bool(true),
            lane: Operand::I64(0),
            lanes: Operand::I64(1),
            around: 0,
            stores: BTreeSet::new(),
        };
        let mut body = Vec::new();
        maker.begin(bits, &mut body);
        body.extend(maker.list(&entry.body)?);
        if maker.stores.is_empty() {
            return None;
        }
        made.funcs[program.entry.index()] = Func { body, ..maker.func };
        Some(Self { program: made, stores: maker.stores })
    }

    /// The parameter with the binary logarithm of a team's number of lanes.
    pub fn bits(program: &Program) -> ParamId {
        ParamId::new(program.params.len() - 1)
    }

    /// How many lanes teams have in a launch on a device that runs so many threads at a time. `rows` has the number of
    /// rows of each column. None: one thread for each job keeps the device busy, or its loops are short.
    pub fn lanes(&self, jobs: u64, threads: u64, rows: impl Fn(ColumnId) -> usize) -> Option<u64> {
        // repetitions of all jobs store to different rows
        let rows = self.stores.iter().map(|column| rows(*column) as u64).max()?;
        let repetitions = rows / jobs.max(1);
        if repetitions < MIN_REPETITIONS || rows < MIN_ROWS {
            return None;
        }
        let wanted = threads / jobs.max(1);
        if wanted >= MIN_LANES {
            return Some((1 << wanted.ilog2()).min(repetitions.next_power_of_two()).clamp(MIN_LANES, MAX_LANES));
        }
        (jobs.saturating_mul(MIN_LANES) <= threads.saturating_mul(TURNS)).then_some(MIN_LANES)
    }

    /// The number of threads, and the parameters, of a launch in teams. `lanes`: how many a team has, a power of two.
    pub fn launch(jobs: u64, lanes: u64, params: &[u64]) -> (u64, Vec<u64>) {
        (jobs * lanes, [params, &[lanes.ilog2().into()]].concat())
    }

    /// How many threads a block has: at least `least`, unless a team is larger than a warp. Such a team has a block of
    /// its own, because its lanes meet at the barrier of the block.
    pub fn block(lanes: u64, least: u64) -> u64 {
        if lanes > MIN_LANES { lanes } else { least.max(lanes) }
    }

    /// A note for listings of code. None: no launch has needed the code yet.
    pub fn listing(code: Option<&str>) -> String {
        match code {
            Some(code) => format!("\n// a team of threads for each job\n{code}"),
            None => "\n// a launch of few jobs runs each by a team of threads, which share its loops\n".to_owned(),
        }
    }
}

/// Whether a job looks between two ticks if it was stopped. Some lanes of a team could see that later than others.
fn looks_between_ticks(body: &[Stmt]) -> bool {
    let mut found = false;
    walk(body, &mut |stmt| {
        if let Stmt::Loop { body, .. } = stmt {
            walk(body, &mut |inner| found |= matches!(inner, Stmt::Begin { check: true, .. }));
        }
    });
    found
}

/// How often each register is read.
fn reads(func: &Func) -> Vec<u32> {
    let mut reads = vec![0; func.vars.len()];
    count_reads(&func.body, &mut reads);
    reads
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

/// For each column, whether lanes must meet around a store to it: one lane may read or overwrite what another stores.
/// They need not for a column that one statement accesses once.
fn columns_to_meet_for(program: &Program) -> Vec<bool> {
    let (mut accesses, mut loops) = (vec![0; program.columns.len()], vec![false; program.columns.len()]);
    for (number, func) in program.funcs.iter().enumerate() {
        let mut note = |stmt: &Stmt, in_loop: bool| {
            if let Stmt::Load { column, .. } | Stmt::Store { column, .. } | Stmt::Atomic { column, .. } = stmt {
                accesses[column.index()] += 1;
                loops[column.index()] |= in_loop || number != program.entry.index();
            }
        };
        for_each(&func.body, 0, &mut |stmt, depth| note(stmt, depth > 1));
    }
    accesses.into_iter().zip(loops).map(|(accesses, in_loop)| accesses > 1 || in_loop).collect()
}

/// Visits all statements, each with the number of loops around it.
fn for_each(body: &[Stmt], depth: usize, visit: &mut impl FnMut(&Stmt, usize)) {
    for stmt in body {
        visit(stmt, depth);
        let depth = depth + usize::from(matches!(stmt, Stmt::Loop { .. }));
        stmt.bodies().into_iter().for_each(|body| for_each(body, depth, visit));
    }
}

/// Makes the entry of a team's lanes.
struct Maker {
    effects: Vec<Effects>,
    func: Func,
    /// How often the original entry reads each register.
    reads: Vec<u32>,
    /// The columns around whose stores lanes meet.
    meets: Vec<bool>,
    /// Whether this is the first lane.
    first: Operand,
    lane: Operand,
    lanes: Operand,
    /// How many loops are around the statements at hand.
    around: u32,
    /// The columns to which shared loops store.
    stores: BTreeSet<ColumnId>,
}

impl Maker {
    fn fresh(&mut self, ty: Scalar) -> VarId {
        self.func.vars.push(Var { ty, name: None });
        VarId::new(self.func.vars.len() - 1)
    }

    fn label(&mut self) -> LabelId {
        self.func.labels += 1;
        LabelId::new(self.func.labels - 1)
    }

    fn op(&mut self, ty: Scalar, op: Op, args: &[Operand], out: &mut Vec<Stmt>) -> Operand {
        let dst = self.fresh(ty);
        out.push(Stmt::Let { dst, op, args: args.to_vec() });
        dst.into()
    }

    fn int(&mut self, op: Op, args: &[Operand], out: &mut Vec<Stmt>) -> Operand {
        self.op(Scalar::I64, op, args, out)
    }

    /// A product with a constant, without an operation if that is 1.
    fn times_constant(&mut self, x: Operand, by: i64, out: &mut Vec<Stmt>) -> Operand {
        if by == 1 { x } else { self.int(Op::Mul, &[x, Operand::I64(by)], out) }
    }

    /// A sum with a constant, without an operation if that is 0.
    fn plus_constant(&mut self, x: Operand, more: i64, out: &mut Vec<Stmt>) -> Operand {
        if more == 0 { x } else { self.int(Op::Add, &[x, Operand::I64(more)], out) }
    }

    fn test(&mut self, cmp: Cmp, a: Operand, b: Operand, out: &mut Vec<Stmt>) -> Operand {
        self.op(Scalar::Bool, Op::ICmp(cmp), &[a, b], out)
    }

    /// Finds the job and the lane of a thread.
    fn begin(&mut self, bits: ParamId, out: &mut Vec<Stmt>) {
        let job = self.func.params[0];
        let number = self.fresh(Scalar::I64);
        self.func.params[0] = number;
        let bits = self.int(Op::Param(bits), &[], out);
        out.push(Stmt::Let { dst: job, op: Op::UShr, args: vec![number.into(), bits] });
        self.lanes = self.int(Op::Shl, &[Operand::I64(1), bits], out);
        let mask = self.int(Op::Sub, &[self.lanes, Operand::I64(1)], out);
        self.lane = self.int(Op::And, &[number.into(), mask], out);
        self.first = self.test(Cmp::Eq, self.lane, Operand::I64(0), out);
    }

    /// Lets all lanes meet.
    fn meet(&mut self, out: &mut Vec<Stmt>) {
        let dst = self.fresh(Scalar::I64);
        out.push(Stmt::Meet { dst, value: Operand::I64(0) });
    }

    /// Statements that all lanes run alike.
    fn list(&mut self, body: &[Stmt]) -> Option<Vec<Stmt>> {
        let mut out = Vec::with_capacity(body.len());
        for stmt in body {
            match stmt {
                Stmt::Store { column, .. } | Stmt::Atomic { column, site: None, .. } => {
                    let meets = self.meets[column.index()];
                    if meets {
                        self.meet(&mut out);
                    }
                    out.push(Stmt::If { cond: self.first, then: vec![stmt.clone()], otherwise: Vec::new() });
                    if meets {
                        self.meet(&mut out);
                    }
                }
                Stmt::FetchAdd { dst, column, row, value } => {
                    let own = self.fresh(Scalar::I64);
                    out.push(Stmt::Let { dst: own, op: Op::Copy, args: vec![Operand::I64(i64::MAX)] });
                    let fetch = Stmt::FetchAdd { dst: own, column: *column, row: *row, value: *value };
                    out.push(Stmt::If { cond: self.first, then: vec![fetch], otherwise: Vec::new() });
                    out.push(Stmt::Meet { dst: *dst, value: own.into() });
                }
                Stmt::Call { func, depth: None, .. } => {
                    let callee = &self.effects[func.index()];
                    if callee.loops || callee.writes.contains(&true) || callee.allocates.contains(&true) {
                        return None;
                    }
                    out.push(stmt.clone());
                }
                Stmt::If { cond, then, otherwise } => {
                    let (then, otherwise) = (self.list(then)?, self.list(otherwise)?);
                    out.push(Stmt::If { cond: *cond, then, otherwise });
                }
                Stmt::Block { label, body } => out.push(Stmt::Block { label: *label, body: self.list(body)? }),
                Stmt::Loop { label, body } => match self.shared_loop(*label, body) {
                    Some(shared) => out.extend(shared),
                    None => {
                        self.around += 1;
                        let list = self.list(body);
                        self.around -= 1;
                        out.push(Stmt::Loop { label: *label, body: list? });
                    }
                },
                Stmt::Let { .. }
                | Stmt::Checked { .. }
                | Stmt::Load { .. }
                | Stmt::Break(_)
                | Stmt::Return(_)
                | Stmt::Trap { .. }
                | Stmt::Poll
                | Stmt::Begin { .. } => out.push(stmt.clone()),
                Stmt::Atomic { .. }
                | Stmt::Emit { .. }
                | Stmt::KeyPart { .. }
                | Stmt::Alloc { .. }
                | Stmt::Try { .. }
                | Stmt::Call { .. }
                | Stmt::Meet { .. }
                | Stmt::Place(_) => return None,
            }
        }
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::Team;
    use crate::ir::ColumnId;
    use crate::ir::testing::{INTS, program};
    use std::collections::BTreeSet;

    #[test]
    fn teams_are_as_large_as_the_device_and_the_loops_allow() {
        let team = Team { program: program(|_, _| {}), stores: BTreeSet::from([INTS]) };
        // the device runs 270 336 threads at a time
        let lanes = |jobs: u64, repetitions: u64| {
            team.lanes(jobs, 270_336, |column: ColumnId| if column == INTS { (jobs * repetitions) as usize } else { 0 })
        };
        assert_eq!(lanes(2_000, 2_000), Some(128));
        assert_eq!(lanes(1, 1_000_000), Some(512));
        assert_eq!(lanes(16_384, 256), Some(32));
        assert_eq!(lanes(2_000, 20), Some(32), "loops are short");
        assert_eq!(lanes(2_000, 9), None, "loops are shorter");
        assert_eq!(lanes(3, 40), None, "there is little to do");
        assert_eq!(lanes(1_000_000, 100), None, "there are jobs enough");
        assert_eq!(lanes(0, 0), None);
    }

    #[test]
    fn a_block_has_one_team_or_teams_that_are_warps() {
        for lanes in [1, 4, 32, 64, 128, 256, 512] {
            let block = Team::block(lanes, 128);
            assert!(block.is_multiple_of(lanes) && (lanes <= 32 || block == lanes), "{lanes} lanes, blocks of {block}");
        }
    }

    #[test]
    fn a_program_without_a_loop_has_no_team() {
        assert!(Team::of(&program(|b, index| b.store(INTS, index, index))).is_none());
    }
}
