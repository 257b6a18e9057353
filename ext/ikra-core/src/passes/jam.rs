//! Unroll-and-jam of the loop over jobs: several jobs run as one, statement by statement.
//!
//! Neighbouring jobs often go the same way through the same loops. What all of them compute and load alike then runs
//! once for all. What each computes for itself becomes several independent chains, on which a processor works at the
//! same time. In a product of matrices, eight neighbouring elements share an element of the row, and the numbers that
//! they multiply it with lie in one cache line.
//!
//! [`shapes`] finds which registers are alike. Here: which jobs make one *group*, and the group's entry function:
//!
//! ```text
//! block done {
//!   block singly {
//!     …all jobs at once; leaves `singly` if they do not go the same way, or if one would raise…
//!     break done
//!   }
//!   loop { …one job after the other, as in the original program… }
//! }
//! ```
//!
//! A group that leaves `singly` has stored nothing by then, so its jobs can run from the beginning, and raise as in the
//! original program. An exception that all jobs of a group raise alike is raised by its first job, which has the least
//! key.
//!
//! On a host, jobs may change shared values, such as sums, or take numbers for new objects. They do so one after the
//! other, in their order. From the first such statement on, each job runs all remaining statements by itself, so that
//! an exception comes from the job whose turn it is. A loop over ticks would have such turns in the middle, and the
//! exception of the least tick must win. So where jobs take turns or may raise, groups are only for launches of one
//! tick.
//!
//! On a host, jobs of a group may also part in a loop and come together again ([`parting`]). The group computes the
//! conditions for all jobs, and then each job that needs the rest runs it, one after the other. On a GPU the jobs,
//! which are threads, part by themselves.
//!
//! On a host, a guard that rarely skips is a selection ([`guards`]).
//!
//! On a host, jobs of a group may leave a loop after different numbers of repetitions, too ([`leaving`]). The group
//! repeats the loop until all of them have left it.
//!
//! There are two groupings. On a host, a group is [`Grouping::Consecutive`] jobs, whose data are next to each other in
//! memory. On a GPU the threads of a warp run neighbouring jobs, and should go on to do so. There, a group is
//! [`Grouping::Strided`] jobs, which are below each other in a table. A division of the job's number by a width makes
//! the table; elements of a matrix are found so. Groups that follow each other also go down the table, in strips as
//! wide as a warp.
//!
//! On a host, groups go down the table if other rows load the same data that differs between the jobs of one row.
//! Columns in a product of matrices are such data. The groups go down in strips as wide as a group, so that they find
//! these data in a cache. They go down in *bands* of a few rows. The rows' own data is then still in a cache for the
//! next strip.
//!
//! Part of no pipeline: a backend has both programs, and chooses one of them at each launch.
//!
//! Source: S. Carr, K. Kennedy, Improving the ratio of memory operations to floating-point operations in loops, 1994;
//! on GPUs A. Magni, C. Dubach, M. O'Boyle, Automatic optimization of thread-coarsening for graphics processors, 2014.

mod guards;
mod leaving;
mod parting;
mod shapes;
mod weave;

use super::loops::{Counts, References};
use super::{dce, gvn};
use crate::ir::eval::{Value, eval};
use crate::ir::ticks::LoopOverTicks;
use crate::ir::visit::{freshen_labels, walk_mut};
use crate::ir::{Cmp, Func, Jobs, LabelId, Op, Operand, Param, ParamId, Program, Scalar, Stmt, Var, VarId, walk};
use leaving::Leaving;
use parting::{Facts, Together};
use shapes::Shapes;
use std::collections::HashMap;
use weave::Weaver;

/// Which jobs make a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Jobs with consecutive numbers.
    Consecutive,
    /// Jobs below each other in a table.
    Strided,
}

/// A program whose jobs are groups of another program's jobs.
#[derive(Debug)]
pub struct Jam {
    /// The parameters that [`Jam::groups`] adds come after those of the original program.
    pub program: Program,
    /// The number of jobs in a group.
    pub width: u64,
    pub registers: Registers,
    grouping: Grouping,
    division: Option<Division>,
    /// Whether groups go down bands of rows.
    bands: bool,
    /// Whether only launches of one tick may use groups.
    one_tick: bool,
}

/// Facts about an entry's registers.
#[derive(Debug, Default)]
pub struct Registers {
    /// Pairs of registers that hold the same Float or truth value for two neighbouring jobs of a group. The statement
    /// that assigns the second stands directly after the one that assigns the first, unless a pass has changed one of
    /// them.
    pub pairs: Vec<[VarId; 2]>,
    /// Registers that loops touch only where jobs of a group are apart, which is rare.
    pub apart: Vec<VarId>,
}

/// The most registers that a loop carries, for all jobs of a group: as many as a processor has for them.
const CARRIED: usize = 12;
/// The most registers that a loop in which jobs part reads and assigns while they are together, for all jobs of a
/// group; two to a vector.
const HELD: usize = 28;
/// The most statements that the code has once for each job of a group, counted for all jobs. It limits the time of
/// compilation.
const REPEATED: usize = 2048;
const WIDTHS: [usize; 3] = [8, 4, 2];
/// The number of neighbouring jobs in a strip.
const STRIP: u64 = 32;
/// The number of rows in a band, a power of two.
const BAND: u64 = 32;

impl Jam {
    /// Makes groups of a program that still loads its references. None: jobs do not go the same way, or share nothing
    /// that makes groups worthwhile. On a host jobs may part where they run no loop on their own, and may take turns at
    /// the end.
    pub fn of(program: &Program, grouping: Grouping) -> Option<Self> {
        Self::made(program, grouping, grouping == Grouping::Consecutive)
    }

    fn made(program: &Program, grouping: Grouping, on_host: bool) -> Option<Self> {
        let entry = &program.funcs[program.entry.index()];
        if program.jobs != Jobs::Identity || program.uses_random || program.emits() || !has_loop(&entry.body) {
            return None;
        }
        let ticking = begins_in_loops(&entry.body);
        // An exception in a late tick of one job must give way to one in an earlier tick of another job. Jobs of a
        // group that gives up run all their ticks one after the other.
        if !(ticking && may_raise(&entry.body))
            && let Some(jam) = Self::of_ticks(program.clone(), grouping, on_host, false)
        {
            return Some(jam);
        }
        let mut once = ticking.then(|| program.clone())?;
        if on_host {
            leave_one_tick(&mut once);
        }
        Self::of_ticks(once, grouping, on_host, true)
    }

    /// `one_tick`: groups are only for launches of one tick.
    fn of_ticks(mut program: Program, grouping: Grouping, on_host: bool, one_tick: bool) -> Option<Self> {
        if on_host && let Some(converted) = guards::converted(&program) {
            program.funcs[program.entry.index()] = converted;
        }
        let entry = &program.funcs[program.entry.index()];
        // found before references are computed: a loaded reference is valid wherever it is read
        let references = References::of(entry, &program.columns);
        let program = &if on_host { super::uniform_stride::references(program) } else { program };
        let entry = &program.funcs[program.entry.index()];
        let division = Division::of(entry);
        if grouping == Grouping::Strided && (division.is_none() || !program.few) {
            return None;
        }
        let widths = if grouping == Grouping::Consecutive { &WIDTHS[..] } else { &WIDTHS[1..2] };
        let (width, func, shapes) = widths.iter().find_map(|width| {
            let shapes_of =
                |func: &Func, leaving: Leaving| Shapes::of(func, leaving, grouping, *width, division.as_ref(), on_host);
            let (func, shapes) = match on_host.then(|| leaving::prepared(entry, shapes_of)).flatten() {
                Some(found) => found,
                None => (entry.clone(), shapes_of(entry, Leaving::new())?),
            };
            let facts = Facts::of(&func, &references, &program.columns);
            let pays = match Together::of(&func, &shapes, &facts) {
                Some(together) => {
                    let is_small = together.registers * width <= HELD
                        && parting::repeated(&func.body, &shapes) * width <= REPEATED;
                    on_host && together.worth && is_small
                }
                None if shapes.has_leaving() => leaving::pays(&func, &shapes, *width),
                None => shapes.is_worth_it(&func) && shapes.carried(&func) * width <= CARRIED,
            };
            pays.then_some((*width, func, shapes))
        })?;
        let entry = &func;
        let facts = Facts::of(entry, &references, &program.columns);

        let mut jammed = program.clone();
        let mut param = |name: &str, lo: i64| {
            jammed.params.push(Param { range: Some((lo, i64::MAX)), ..Param::new(name, Scalar::I64) });
            ParamId::new(jammed.params.len() - 1)
        };
        let jobs = param("jobs", 0);
        let below =
            || Shapes::of(entry, shapes.leaving().clone(), Grouping::Strided, width, division.as_ref(), on_host);
        let bands = grouping == Grouping::Consecutive
            && division.is_some()
            && below().is_some_and(|below| shapes.loads_again(&below, entry));
        let order = match grouping {
            Grouping::Strided => Order::Strips { across: param("across", 1), down: param("down", 1) },
            Grouping::Consecutive if bands => {
                Order::Bands { across: param("across", 1), strips: param("strips", 1), height: param("height", 0) }
            }
            Grouping::Consecutive => Order::Line,
        };
        let group = Group { jobs, order, width: width as i64 };
        let facts = on_host.then_some(&facts);
        let (entry, registers) = group.entry(entry, &shapes, facts, division.as_ref())?;
        jammed.funcs[program.entry.index()] = entry;
        let (improved, numbers) = dce::renumbered((gvn::PASS.run)(jammed));
        let number = |v: VarId| numbers[v.index()];
        let pairs = registers.pairs.into_iter().filter_map(|[one, other]| Some([number(one)?, number(other)?]));
        let apart = registers.apart.into_iter().filter_map(number);
        let registers = Registers { pairs: pairs.collect(), apart: apart.collect() };
        Some(Self { program: improved, width: width as u64, registers, grouping, division, bands, one_tick })
    }

    /// A note for listings of code.
    pub fn listing(&self, code: &str) -> String {
        let (comment, lie) = if self.grouping == Grouping::Consecutive {
            (";", "follow each other")
        } else {
            ("//", "lie below each other")
        };
        format!("\n{comment} {} jobs at once that {lie}\n{code}", self.width)
    }

    /// The number of groups for so many jobs, and the parameters of a launch of these groups. None: this launch cannot
    /// use groups.
    pub fn groups(&self, jobs: u64, ticks: u64, params: &[u64]) -> Option<(u64, Vec<u64>)> {
        if self.one_tick && ticks != 1 {
            return None;
        }
        let (groups, more) = self.more(jobs, params)?;
        Some((groups, [params, &more].concat()))
    }

    fn more(&self, jobs: u64, params: &[u64]) -> Option<(u64, Vec<u64>)> {
        let across = match &self.division {
            Some(division) => {
                Some(u64::try_from(division.divisor(params, &self.program.params)?).ok().filter(|n| *n > 0)?)
            }
            None => None,
        };
        match (self.grouping, across) {
            // all groups would begin in one row and end in another
            (Grouping::Consecutive, Some(across)) if across < self.width => None,
            (Grouping::Consecutive, Some(across)) if self.bands => {
                let strips = across.min(jobs).div_ceil(self.width);
                let rows = jobs.div_ceil(across).max(1);
                // a band must not be higher than there are rows, or it would have groups without jobs
                let height = rows.min(BAND).ilog2();
                let groups = strips * (rows.div_ceil(1 << height) << height);
                Some((groups, vec![jobs, across, strips, height.into()]))
            }
            (Grouping::Consecutive, _) => Some((jobs.div_ceil(self.width), vec![jobs])),
            (Grouping::Strided, Some(across)) if across >= STRIP && jobs >= across.saturating_mul(self.width) => {
                let down = jobs.div_ceil(across).div_ceil(self.width);
                Some((across.next_multiple_of(STRIP) * down, vec![jobs, across, down]))
            }
            (Grouping::Strided, _) => None,
        }
    }
}

/// Whether all jobs of a program go the same way through a loop, load something in common there, and compute different
/// values with it.
pub fn shares(program: &Program) -> bool {
    Jam::made(program, Grouping::Consecutive, false).is_some()
}

/// Replaces an entry's loop over ticks by one tick, unless the code after the loop reads the tick.
fn leave_one_tick(program: &mut Program) {
    let entry = &program.funcs[program.entry.index()];
    let once = entry.body.iter().enumerate().find_map(|(at, stmt)| {
        let Stmt::Loop { label, body } = stmt else { return None };
        let ticks = LoopOverTicks::of(program, entry, *label, body)?;
        let mut asked = false;
        walk(&entry.body[at + 1..], &mut |s| s.reads(|operand| asked |= operand == ticks.tick.into()));
        let [tick @ .., _, _, _] = &body[..] else { unreachable!("it counts and tests at its end") };
        (!asked).then(|| (at, Stmt::Block { label: *label, body: tick.to_vec() }))
    });
    if let Some((at, block)) = once {
        program.funcs[program.entry.index()].body[at] = block;
    }
}

/// Whether the list begins with a loop over ticks, or with several.
fn begins_in_loops(body: &[Stmt]) -> bool {
    let mut found = false;
    walk(body, &mut |stmt| {
        if let Stmt::Loop { body, .. } = stmt {
            walk(body, &mut |inner| found |= matches!(inner, Stmt::Begin { .. }));
        }
    });
    found
}

/// Whether a job may raise something.
fn may_raise(body: &[Stmt]) -> bool {
    let mut found = false;
    walk(body, &mut |s| {
        found |= matches!(s, Stmt::Trap { .. } | Stmt::Checked { .. } | Stmt::Atomic { site: Some(_), .. });
    });
    found
}

fn has_loop(body: &[Stmt]) -> bool {
    let mut found = false;
    walk(body, &mut |s| found |= matches!(s, Stmt::Loop { .. }));
    found
}

/// The first division of the job's number by a divisor that the launch's parameters determine.
#[derive(Debug)]
pub(super) struct Division {
    /// The statements that compute the divisor, in order.
    before: Vec<(VarId, Scalar, Op, Vec<Operand>)>,
    /// The quotient or remainder.
    dst: VarId,
    divisor: Operand,
}

impl Division {
    fn of(entry: &Func) -> Option<Self> {
        let mut jobs = vec![entry.params[0]];
        let counts = Counts::of(entry);
        let once = |operand: &Operand| !matches!(operand, Operand::Var(v) if counts.assigned(*v) != 1);
        let mut before = Vec::new();
        for stmt in &entry.body {
            let Stmt::Let { dst, op, args } = stmt else { continue };
            let of_job = matches!(args.first(), Some(Operand::Var(v)) if jobs.contains(v));
            match op {
                Op::Copy | Op::Narrow if of_job => jobs.push(*dst),
                Op::Div | Op::UDiv | Op::Rem | Op::URem if of_job && once(&args[1]) => {
                    return Some(Self { before, dst: *dst, divisor: args[1] });
                }
                _ => before.push((*dst, entry.ty((*dst).into()), *op, args.clone())),
            }
        }
        None
    }

    /// The divisor for a launch with these parameters, as far as straight-line code determines it. A group tests it at
    /// run time. None: it is not determined.
    fn divisor(&self, words: &[u64], params: &[Param]) -> Option<i64> {
        let mut known: HashMap<VarId, Value> = HashMap::new();
        let value = |known: &HashMap<VarId, Value>, operand: &Operand| match operand {
            Operand::Var(v) => known.get(v).copied(),
            constant => Value::of(*constant),
        };
        for (dst, ty, op, args) in &self.before {
            let found = match op {
                Op::Param(p) => Some(Value::from_word(params[p.index()].ty, words[p.index()])),
                Op::Math(_) | Op::Ctx(_) | Op::Random => None,
                _ => {
                    let args: Option<Vec<_>> = args.iter().map(|arg| value(&known, arg)).collect();
                    args.and_then(|args| eval(*op, *ty, &args).ok())
                }
            };
            match found {
                Some(found) => known.insert(*dst, found),
                None => known.remove(dst),
            };
        }
        match value(&known, &self.divisor)? {
            Value::I64(n) => Some(n),
            Value::I32(n) => Some(i64::from(n as u32)),
            _ => None,
        }
    }
}

/// How the entry of a group finds its jobs.
struct Group {
    /// The parameter that says how many jobs there are.
    jobs: ParamId,
    order: Order,
    width: i64,
}

/// The order of groups. The parameters say how many jobs a row has, and how groups are arranged.
#[derive(Clone, Copy)]
enum Order {
    /// In the order of their jobs.
    Line,
    /// The jobs of a group lie below each other. Groups go down strips of [`STRIP`] columns, each `down` groups high.
    Strips { across: ParamId, down: ParamId },
    /// The jobs of a group follow each other. Groups go down bands of `height` rows (a power of two), each of `strips`
    /// strips as wide as a group.
    Bands { across: ParamId, strips: ParamId, height: ParamId },
}

/// Where a group's jobs are: from `first` on, `step` apart, as far as there are jobs.
struct Place {
    first: Operand,
    step: Operand,
    /// The most jobs: a number, or a register where the last group of a row may have fewer.
    most: Operand,
}

/// Where a group continues.
pub(super) struct Exits {
    pub done: LabelId,
    pub singly: LabelId,
}

impl Group {
    /// The entry, and the facts about its registers.
    fn entry(
        &self,
        single: &Func,
        shapes: &Shapes,
        facts: Option<&Facts>,
        division: Option<&Division>,
    ) -> Option<(Func, Registers)> {
        let [single_job, ..] = single.params[..] else { return None };
        let mut func = single.clone();
        // the group's number takes the place of the job's number
        let number = fresh(&mut func, Scalar::I64);
        func.params[0] = number;
        func.body = Vec::new();
        let exits = Exits { done: label(&mut func), singly: label(&mut func) };
        let mut body = Vec::new();
        let jobs = self.given(&mut func, self.jobs, &mut body);
        let Place { first, step, most } = self.place(&mut func, number.into(), &mut body);

        let mut together = Vec::new();
        let mut all = vec![first];
        for _ in 1..self.width {
            let next = op(&mut func, Op::Add, [all[all.len() - 1], step], &mut together);
            all.push(next);
        }
        let ends = test(&mut func, Cmp::Ge, all[all.len() - 1], jobs, &mut together);
        together.push(leave(ends, exits.singly));
        if let Operand::Var(_) = most {
            let fewer = test(&mut func, Cmp::Lt, most, Operand::I64(self.width), &mut together);
            together.push(leave(fewer, exits.singly));
        }
        let across = matches!(self.order, Order::Strips { .. }).then_some(step);
        let mut weaver = Weaver::new(&mut func, single, shapes, &all, &exits, facts, division.zip(across));
        weaver.ahead(&mut together)?;
        together.extend(weaver.list(&single.body)?);
        let registers = weaver.registers();
        if !together.last().is_some_and(Stmt::ends_list) {
            together.push(Stmt::Break(exits.done));
        }

        let mut apart = vec![Stmt::Block { label: exits.singly, body: together }];
        self.singly(&mut func, single, single_job, (first, step, most, jobs), &mut apart);
        body.push(Stmt::Block { label: exits.done, body: apart });
        body.push(Stmt::Return(Vec::new()));
        func.body = body;
        Some((func, registers))
    }

    /// Finds where the jobs of a group are, by the group's number.
    fn place(&self, func: &mut Func, number: Operand, body: &mut Vec<Stmt>) -> Place {
        let width = Operand::I64(self.width);
        let one = Operand::I64(1);
        match self.order {
            Order::Line => Place { first: op(func, Op::Mul, [number, width], body), step: one, most: width },
            Order::Strips { across, down } => {
                let [across, down] = [across, down].map(|param| self.given(func, param, body));
                let mut op = |kind, args| op(func, kind, args, body);
                let strip = Operand::I64(STRIP as i64);
                let warp = op(Op::Div, [number, strip]);
                let lane = op(Op::Rem, [number, strip]);
                let (strips, row) = (op(Op::Div, [warp, down]), op(Op::Rem, [warp, down]));
                let left = op(Op::Mul, [strips, strip]);
                let column = op(Op::Add, [left, lane]);
                let many = op(Op::Mul, [across, width]);
                let start = op(Op::Mul, [row, many]);
                let first = op(Op::Add, [start, column]);
                // the last strip may be wider than the rest of the row
                let beyond = test(func, Cmp::Ge, column, across, body);
                body.push(Stmt::If { cond: beyond, then: vec![Stmt::Return(Vec::new())], otherwise: Vec::new() });
                Place { first, step: across, most: width }
            }
            Order::Bands { across, strips, height } => {
                let [across, strips, height] = [across, strips, height].map(|param| self.given(func, param, body));
                let mut op = |kind, args| op(func, kind, args, body);
                let groups = op(Op::Shl, [strips, height]);
                let band = op(Op::Div, [number, groups]);
                let before = op(Op::Mul, [band, groups]);
                let within = op(Op::Sub, [number, before]);
                let strip = op(Op::UShr, [within, height]);
                let above = op(Op::Shl, [strip, height]);
                let down = op(Op::Sub, [within, above]);
                let top = op(Op::Shl, [band, height]);
                let row = op(Op::Add, [top, down]);
                let start = op(Op::Mul, [row, across]);
                let column = op(Op::Mul, [strip, width]);
                let first = op(Op::Add, [start, column]);
                // the last strip may be wider than the rest of the row
                let left = op(Op::Sub, [across, column]);
                let fewer = test(func, Cmp::Lt, left, width, body);
                let most = fresh(func, Scalar::I64);
                body.push(Stmt::Let { dst: most, op: Op::Select, args: vec![fewer, left, width] });
                Place { first, step: one, most: most.into() }
            }
        }
    }

    fn given(&self, func: &mut Func, param: ParamId, out: &mut Vec<Stmt>) -> Operand {
        let dst = fresh(func, Scalar::I64);
        out.push(Stmt::Let { dst, op: Op::Param(param), args: Vec::new() });
        dst.into()
    }

    /// Runs the jobs one after the other, as in the original program.
    fn singly(
        &self,
        func: &mut Func,
        single: &Func,
        job: VarId,
        (first, step, most, jobs): (Operand, Operand, Operand, Operand),
        out: &mut Vec<Stmt>,
    ) {
        let mut body = single.body.clone();
        freshen_labels(&mut body, func);
        let (next, left) = (label(func), fresh(func, Scalar::I64));
        walk_mut(&mut body, &mut |stmt| {
            if matches!(stmt, Stmt::Return(_)) {
                *stmt = Stmt::Break(next);
            }
        });
        let copy = |dst: VarId, value: Operand| Stmt::Let { dst, op: Op::Copy, args: vec![value] };
        let at = fresh(func, Scalar::I64);
        out.extend([copy(at, first), copy(left, most)]);
        let (label, mut each) = (label(func), Vec::new());
        let none = test(func, Cmp::Le, left.into(), Operand::I64(0), &mut each);
        each.push(leave(none, label));
        let over = test(func, Cmp::Ge, at.into(), jobs, &mut each);
        each.push(leave(over, label));
        each.push(copy(job, at.into()));
        each.push(Stmt::Block { label: next, body });
        each.push(Stmt::Let { dst: at, op: Op::Add, args: vec![at.into(), step] });
        each.push(Stmt::Let { dst: left, op: Op::Sub, args: vec![left.into(), Operand::I64(1)] });
        out.push(Stmt::Loop { label, body: each });
    }
}

fn fresh(func: &mut Func, ty: Scalar) -> VarId {
    func.vars.push(Var { ty, name: None });
    VarId::new(func.vars.len() - 1)
}

fn label(func: &mut Func) -> LabelId {
    func.labels += 1;
    LabelId::new(func.labels - 1)
}

fn op(func: &mut Func, op: Op, args: [Operand; 2], out: &mut Vec<Stmt>) -> Operand {
    let dst = fresh(func, func.ty(args[0]));
    out.push(Stmt::Let { dst, op, args: args.to_vec() });
    dst.into()
}

fn test(func: &mut Func, cmp: Cmp, a: Operand, b: Operand, out: &mut Vec<Stmt>) -> Operand {
    let dst = fresh(func, Scalar::Bool);
    out.push(Stmt::Let { dst, op: Op::ICmp(cmp), args: vec![a, b] });
    dst.into()
}

fn leave(cond: Operand, label: LabelId) -> Stmt {
    Stmt::If { cond, then: vec![Stmt::Break(label)], otherwise: Vec::new() }
}
