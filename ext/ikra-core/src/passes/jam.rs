//! Runs several jobs as one, statement by statement: unroll-and-jam of the loop over jobs.
//!
//! Where neighbouring jobs go the same way through the same loops, what all of them compute and load alike is done once for all of them, and what each
//! computes for itself is several chains that a processor works on at the same time, in place of one in which each step waits for the one before. In a product
//! of matrices, eight elements beside each other share an element of the row, and what they multiply it with lies in one line of a cache.
//!
//! Which registers are alike is the business of [`shapes`]. Here: which jobs are one *group*, and what its entry is:
//!
//! ```text
//! block done {
//!   block singly { …all of them at once; leaves `singly` where they turn out not to go the same way, or one would raise…; break done }
//!   loop { …one after the other, as they were… }
//! }
//! ```
//!
//! A group that leaves `singly` has stored nothing by then, so that its jobs can run from the beginning; what raises is told by them. What raises in all of a group
//! alike is raised by its first job, which has the least key.
//!
//! On a host, what jobs change in common, as sums, they change one after the other, in their order: from the first such statement on, each does all that is left by itself, so that
//! what is raised there is raised by the job whose turn it is. A loop over ticks has such ends in the middle, and who raises in the least tick raises first: where jobs take turns or
//! may raise, groups are of launches of one tick.
//!
//! On a host, jobs of a group may also part in a loop and come together again ([`parting`]): what tells whether they do is computed for all of them, and the rest by each that
//! does, one after the other. Jobs of a GPU do so by themselves.
//!
//! There are two ways to make groups. On a host, a group is [next](Way::Next) jobs: what they load lies beside each other. On a GPU the threads of a warp run
//! jobs that lie beside each other, and should go on to; there a group is jobs [below](Way::Below) each other in the table that a division of the job's number
//! by a width makes of the jobs, as elements of a matrix are found. Groups that follow each other go down such a table, too, in strips as wide as a warp: what the threads of a
//! block load is that of a square, not of a row.
//!
//! On a host, groups go down such a table where other rows load what differs between jobs of one row, as columns in a product of matrices: in strips as wide as a group, which
//! find it in a cache, and in *bands* of so many rows that what these load, each for itself, is still in one for the next strip.
//!
//! Not one of [`super::PASSES`]: a backend has both programs, and says at each launch which of them runs.
//!
//! Source: S. Carr, K. Kennedy, Improving the ratio of memory operations to floating-point operations in loops, 1994; on GPUs
//! A. Magni, C. Dubach, M. O'Boyle, Automatic optimization of thread-coarsening for graphics processors, 2014.

mod parting;
mod shapes;
mod weave;

use super::loops::{Counts, References};
use super::{dce, gvn};
use crate::ir::eval::{Value, eval};
use crate::ir::ticks::LoopOverTicks;
use crate::ir::visit::{freshen_labels, walk_mut};
use crate::ir::{Cmp, Func, Jobs, LabelId, Op, Operand, Param, ParamId, Program, Scalar, Stmt, Var, VarId, walk};
use parting::{Facts, Together};
use shapes::Shapes;
use std::collections::HashMap;
use weave::Weaver;

/// Which jobs are a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// So many that follow each other.
    Next,
    /// So many that lie below each other.
    Below,
}

/// A program whose jobs are groups of another's.
#[derive(Debug)]
pub struct Jam {
    /// Behind its parameters are those that [`Jam::groups`] adds.
    pub program: Program,
    /// Jobs of a group.
    pub width: u64,
    pub registers: Registers,
    way: Way,
    division: Option<Division>,
    /// Groups go down bands of rows.
    bands: bool,
    /// A launch of several ticks is no groups.
    one_tick: bool,
}

/// What is known of an entry's registers.
#[derive(Debug, Default)]
pub struct Registers {
    /// Those in which two jobs of a group beside each other hold the same Float or truth value of theirs. What assigns the second stands directly behind what assigns the first,
    /// but where a pass made something else of one of them.
    pub pairs: Vec<[VarId; 2]>,
    /// Those that loops touch only where jobs of a group are apart, which is rare.
    pub apart: Vec<VarId>,
}

/// The most registers that a loop carries, of all jobs of a group: what a processor has for them.
const CARRIED: usize = 12;
/// The most that a loop in which jobs part reads and assigns where they are together, of all jobs of a group: two to a vector.
const HELD: usize = 28;
/// The most statements that stand once for each job of a group, of all jobs: what compiling them takes.
const REPEATED: usize = 2048;
const WIDTHS: [usize; 3] = [8, 4, 2];
/// Jobs beside each other in a strip.
const STRIP: u64 = 32;
/// Rows of a band, a power of two.
const BAND: u64 = 32;

impl Jam {
    /// Of a program whose references are loaded, as far as it has any. None: jobs do not go the same way, or have nothing in common that is worth it. On a host they may part
    /// where what they do apart needs no loop, and take turns at the end.
    pub fn of(program: &Program, way: Way) -> Option<Self> {
        Self::made(program, way, way == Way::Next)
    }

    fn made(program: &Program, way: Way, on_host: bool) -> Option<Self> {
        let entry = &program.funcs[program.entry.index()];
        if program.jobs != Jobs::Identity || program.uses_random || !has_loop(&entry.body) {
            return None;
        }
        let ticking = begins_in_loops(&entry.body);
        // what a job raises in a late tick, another one may raise before, and jobs of a group that gives up do all their ticks one after the other
        if !(ticking && may_raise(&entry.body))
            && let Some(jam) = Self::of_ticks(program.clone(), way, on_host, false)
        {
            return Some(jam);
        }
        let mut once = ticking.then(|| program.clone())?;
        if on_host {
            leave_one_tick(&mut once);
        }
        Self::of_ticks(once, way, on_host, true)
    }

    /// `one_tick`: of launches of one alone.
    fn of_ticks(program: Program, way: Way, on_host: bool, one_tick: bool) -> Option<Self> {
        let entry = &program.funcs[program.entry.index()];
        // a reference that was loaded is one wherever it is read: that is known before it is computed
        let references = References::of(entry, &program.columns);
        let program = &if on_host { super::references(program) } else { program };
        let entry = &program.funcs[program.entry.index()];
        let division = Division::of(entry);
        if way == Way::Below && (division.is_none() || !program.few) {
            return None;
        }
        let widths = if way == Way::Next { &WIDTHS[..] } else { &WIDTHS[1..2] };
        let facts = Facts::of(entry, &references, &program.columns);
        let (width, shapes) = widths.iter().find_map(|width| {
            let shapes = Shapes::of(entry, way, *width, division.as_ref(), on_host)?;
            let pays = match Together::of(entry, &shapes, &facts) {
                Some(together) => {
                    let is_small = together.registers * width <= HELD
                        && parting::repeated(&entry.body, &shapes) * width <= REPEATED;
                    on_host && together.worth && is_small
                }
                None => shapes.is_worth_it(entry) && shapes.carried(entry) * width <= CARRIED,
            };
            pays.then_some((*width, shapes))
        })?;

        let mut jammed = program.clone();
        let mut param = |name: &str, lo: i64| {
            jammed.params.push(Param { name: name.to_owned(), ty: Scalar::I64, range: Some((lo, i64::MAX)) });
            ParamId::new(jammed.params.len() - 1)
        };
        let jobs = param("jobs", 0);
        let below = || Shapes::of(entry, Way::Below, width, division.as_ref(), on_host);
        let bands =
            way == Way::Next && division.is_some() && below().is_some_and(|below| shapes.loads_again(&below, entry));
        let order = match way {
            Way::Below => Order::Strips { across: param("across", 1), down: param("down", 1) },
            Way::Next if bands => {
                Order::Bands { across: param("across", 1), strips: param("strips", 1), height: param("height", 0) }
            }
            Way::Next => Order::Line,
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
        Some(Self { program: improved, width: width as u64, registers, way, division, bands, one_tick })
    }

    /// What code for people says of itself.
    pub fn listing(&self, code: &str) -> String {
        let (comment, lie) =
            if self.way == Way::Next { (";", "follow each other") } else { ("//", "lie below each other") };
        format!("\n{comment} {} jobs at once that {lie}\n{code}", self.width)
    }

    /// How many groups so many jobs are, and the parameters of a launch of them. None: they are no groups.
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
        match (self.way, across) {
            // all groups would begin in one row and end in another
            (Way::Next, Some(across)) if across < self.width => None,
            (Way::Next, Some(across)) if self.bands => {
                let strips = across.min(jobs).div_ceil(self.width);
                let rows = jobs.div_ceil(across).max(1);
                // bands higher than there are rows would be groups of nothing
                let height = rows.min(BAND).ilog2();
                let groups = strips * (rows.div_ceil(1 << height) << height);
                Some((groups, vec![jobs, across, strips, height.into()]))
            }
            (Way::Next, _) => Some((jobs.div_ceil(self.width), vec![jobs])),
            (Way::Below, Some(across)) if across >= STRIP && jobs >= across.saturating_mul(self.width) => {
                let down = jobs.div_ceil(across).div_ceil(self.width);
                Some((across.next_multiple_of(STRIP) * down, vec![jobs, across, down]))
            }
            (Way::Below, _) => None,
        }
    }
}

/// Whether all jobs of a program go the same way through a loop, and load something in common there, with which each computes something else.
pub fn shares(program: &Program) -> bool {
    Jam::made(program, Way::Next, false).is_some()
}

/// Makes of an entry's loop over ticks what it does in a launch of one, but where the tick is asked for behind it.
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

/// Whether there is a loop over ticks, or several.
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

/// The first division of the job's number, by something that the launch's parameters tell.
#[derive(Debug)]
pub(super) struct Division {
    /// What is computed before, in order.
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

    /// What a launch with these words for parameters divides by, as far as straight-line code tells: a group tests that it does. None: it does not tell.
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

/// Which group follows which. The parameters say how many jobs lie beside each other, and how groups do.
#[derive(Clone, Copy)]
enum Order {
    /// As jobs do.
    Line,
    /// Jobs lie below each other; groups in strips of [`STRIP`], `down` of them below each other.
    Strips { across: ParamId, down: ParamId },
    /// Jobs follow each other; groups in bands of a power of two, `height`, of rows, each of so many strips as wide as a group.
    Bands { across: ParamId, strips: ParamId, height: ParamId },
}

/// Where a group's jobs are: one after the other from the first, as far as there are any.
struct Place {
    first: Operand,
    step: Operand,
    /// A number or, where the last of a row may be fewer than a group, a register.
    most: Operand,
}

/// Where a group goes on.
pub(super) struct Exits {
    pub done: LabelId,
    pub singly: LabelId,
}

impl Group {
    /// The entry, and what is known of its registers.
    fn entry(
        &self,
        single: &Func,
        shapes: &Shapes,
        facts: Option<&Facts>,
        division: Option<&Division>,
    ) -> Option<(Func, Registers)> {
        let [single_job, ..] = single.params[..] else { return None };
        let mut func = single.clone();
        // the group's number takes the place of the job's
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

    /// Where the jobs of a group are, by its number.
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
                // the last strip may be broader than what is left
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
                // the last strip may be broader than what is left
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

    /// The jobs one after the other, as they were.
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
