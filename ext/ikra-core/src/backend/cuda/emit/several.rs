//! Threads with several jobs each, whose rows are contiguous.
//!
//! A multiprocessor has a limited number of threads. The loads that each thread issues before it waits are all that
//! memory can work on. With narrow elements that is too little: with one element of 4 bytes per thread, a kernel
//! reaches two thirds of the speed of a copy, and with one byte less. So a thread runs as many jobs as fit 16 bytes,
//! and loads and stores their rows of a column at once:
//!
//! ```text
//! if (there are fewer threads than jobs) {
//!   Rows<float, 4> x, result;
//!   x.load(&c[job]);
//!   for (next = 0; next < 4; next++) over |= entry(job + next, x.at[next], result.at[next]);
//!   if (!over) { result.store(&r[job]); return; }
//! }
//! … the jobs one after the other, as they were …
//! ```
//!
//! If one of the jobs raises, none has stored anything. So all of them run again from the start, one after the other,
//! and that run reports the trap. The thread may load rows that a job would not have reached. The launch checks that
//! these exist ([`Several::are_there`]). Rows that are not aligned to their total size are loaded singly, but together.
//!
//! Here: which programs can run so, the text of their kernels, and which launches may. The jobs of such a program have
//! no loops and load only columns that nothing writes. Their loads are of rows that follow each other from job to job,
//! or that are the same for all. Each job stores its own rows. Not here: how many jobs are needed for that, which the
//! launch decides.

use super::{Function, Shared, scalar, storage};
use crate::backend::Launch;
use crate::ir::eval::{Value, eval};
use crate::ir::filled::filled;
use crate::ir::{ColumnId, Ctx, Func, Jobs, Op, Operand, Scalar, Stmt, VarId, walk};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Bytes that are loaded or stored at once.
const AT_ONCE: usize = 16;
/// Fewer bytes do not pay.
const MIN_AT_ONCE: usize = 8;
/// The most statements of all jobs of a thread together, because they need registers.
const MAX_STATEMENTS_OF_THREAD: usize = 256;
/// If a job has a row of 8 bytes, a thread gets a second job only if a job loads, and has at most so many statements.
/// With one job, a map of 64 Mi Floats takes a tenth longer than a copy on an H200. With two, it takes as long.
const MAX_STATEMENTS_OF_WIDE_JOB: usize = 16;
/// How many statements a quotient or a square root counts for.
const STATEMENTS_OF_DIVISION: usize = 8;

/// How threads of a kernel may run several jobs each.
#[derive(Clone, Debug, PartialEq)]
pub struct Several {
    /// The jobs of a thread.
    pub jobs: u64,
    loads: Vec<Ahead>,
    stores: Vec<Stored>,
    /// The computations of the loaded rows, in order: a register, its type, and its value.
    before: Vec<(VarId, Scalar, Op, Vec<Operand>)>,
    job: VarId,
}

/// A load whose row is one more for the next job.
#[derive(Clone, Debug, PartialEq)]
struct Ahead {
    dst: VarId,
    column: ColumnId,
    buffer: usize,
    row: VarId,
    /// Whether the row is the job's own.
    own: bool,
}

/// A column of which each job stores its own row.
#[derive(Clone, Debug, PartialEq)]
struct Stored {
    column: ColumnId,
    buffer: usize,
}

/// How the value of a register changes from job to job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// It does not.
    Same,
    /// It is the number of the job.
    Job,
    /// It is one more for the next job.
    Next,
}

impl Several {
    /// None: the threads of the program run one job each.
    pub(super) fn of(shared: &Shared<'_>) -> Option<Self> {
        let program = shared.program;
        if !shared.once
            || shared.groups
            || !program.is_straight()
            || program.jobs != Jobs::Identity
            || shared.listens
            || shared.indirect()
        {
            return None;
        }
        let entry = &program.funcs[program.entry.index()];
        let [job, ..] = entry.params[..] else { return None };
        let steps = steps(entry, job)?;
        let step = |operand: &Operand| match operand {
            Operand::Var(v) => steps.get(v).copied(),
            _ => Some(Step::Same),
        };
        let (mut loads, mut stores, mut size, mut fits) = (Vec::<Ahead>::new(), Vec::<Stored>::new(), 0, true);
        walk(&entry.body, &mut |stmt| {
            size += weight(stmt);
            fits &= match stmt {
                Stmt::Let { op, .. } => !matches!(op, Op::Math(_) | Op::FRem | Op::Ctx(Ctx::Slot)),
                Stmt::Load { dst, column, row } => match (step(row), row, shared.buffer(*column)) {
                    _ if shared.written[column.index()] => false,
                    (Some(Step::Same), ..) => true,
                    (Some(step), Operand::Var(row), Some(buffer)) if entry.ty((*row).into()) == Scalar::I64 => {
                        let alone = loads.iter().all(|load| load.dst != *dst);
                        loads.push(Ahead { dst: *dst, column: *column, buffer, row: *row, own: step == Step::Job });
                        alone
                    }
                    _ => false,
                },
                Stmt::Store { column, row, .. } => match (step(row), shared.buffer(*column)) {
                    (Some(Step::Job), Some(buffer)) => {
                        if stores.iter().all(|stored| stored.column != *column) {
                            stores.push(Stored { column: *column, buffer });
                        }
                        true
                    }
                    _ => false,
                },
                Stmt::Checked { .. }
                | Stmt::If { .. }
                | Stmt::Block { .. }
                | Stmt::Break(_)
                | Stmt::Return(_)
                | Stmt::Trap { .. }
                | Stmt::Place(_)
                | Stmt::Begin { .. } => true,
                _ => false,
            };
        });
        let whole = filled(program);
        if !fits || stores.is_empty() || !stores.iter().all(|stored| whole[stored.column.index()]) {
            return None;
        }
        let columns = || loads.iter().map(|load| load.column).chain(stores.iter().map(|stored| stored.column));
        let widths = || columns().map(|column| program.columns[column.index()].storage.bytes());
        let widest = widths().max()?;
        let mut jobs = AT_ONCE / widest;
        while jobs * size > MAX_STATEMENTS_OF_THREAD {
            jobs /= 2;
        }
        let enough = widest == AT_ONCE / 2 && (loads.is_empty() || size > MAX_STATEMENTS_OF_WIDE_JOB);
        if enough || jobs < 2 || jobs * widest < MIN_AT_ONCE {
            return None;
        }
        let before = before(entry, job, loads.iter().filter(|load| !load.own).map(|load| load.row));
        Some(Self { jobs: jobs as u64, loads, stores, before, job })
    }

    /// Whether the rows of all jobs exist, in each column of which a thread loads or stores several. The columns are
    /// the layout's buffers.
    pub fn are_there(&self, launch: &Launch<'_>) -> bool {
        let mut known = HashMap::from([(self.job, Value::I64(0))]);
        for (dst, ty, op, args) in &self.before {
            let value = |operand: &Operand| match operand {
                Operand::Var(v) => known.get(v).copied(),
                constant => Value::of(*constant),
            };
            let found = match op {
                Op::Param(param) => launch.params.get(param.index()).map(|word| Value::from_word(*ty, *word)),
                _ => {
                    let args: Option<Vec<Value>> = args.iter().map(value).collect();
                    args.and_then(|args| eval(*op, *ty, &args).ok())
                }
            };
            let Some(found) = found else { return false };
            known.insert(*dst, found);
        }
        let loads = self.loads.iter().map(|load| {
            let first = if load.own { Some(Value::I64(0)) } else { known.get(&load.row).copied() };
            (load.buffer, first)
        });
        let stores = self.stores.iter().map(|stored| (stored.buffer, Some(Value::I64(0))));
        loads.chain(stores).all(|(buffer, first)| {
            let (Some(Value::I64(first)), Some(column)) = (first, launch.columns.get(buffer)) else { return false };
            let first = u64::try_from(first).ok().and_then(|first| first.checked_sub(launch.biases[buffer]));
            first.and_then(|first| first.checked_add(launch.jobs)).is_some_and(|end| end <= column.len() as u64)
        })
    }
}

/// How registers change from job to job, if it is in one of these ways. None: a job runs several elements, or one that
/// is not its own.
fn steps(entry: &Func, job: VarId) -> Option<HashMap<VarId, Step>> {
    let (mut assigned, mut begins) = (HashMap::new(), Vec::new());
    walk(&entry.body, &mut |stmt| {
        stmt.assigns().iter().for_each(|dst| *assigned.entry(*dst).or_insert(0) += 1);
        if let Stmt::Begin { index, .. } = stmt {
            begins.push(*index);
        }
    });
    if begins != [job.into()] || assigned.contains_key(&job) {
        return None;
    }
    let mut steps = HashMap::from([(job, Step::Job)]);
    walk(&entry.body, &mut |stmt| {
        let Stmt::Let { dst, op, args } = stmt else { return };
        let of = |operand: &Operand| match operand {
            Operand::Var(v) => steps.get(v).copied(),
            _ => Some(Step::Same),
        };
        let args_of: Option<Vec<Step>> = args.iter().map(of).collect();
        let (Some(of), 1) = (args_of, assigned[dst]) else { return };
        let step = match (op, &of[..]) {
            (Op::Ctx(Ctx::Index), _) => Step::Job,
            (Op::Ctx(_) | Op::Random | Op::Math(_), _) => return,
            (Op::Copy, [step]) => *step,
            (_, of) if of.iter().all(|step| *step == Step::Same) => Step::Same,
            (Op::Add, [Step::Same, _] | [_, Step::Same]) | (Op::Sub, [_, Step::Same]) => Step::Next,
            // a mask that only clears the sign, which no row has
            (Op::And, [_, Step::Same]) if args[1] == Operand::I64(i64::MAX) => Step::Next,
            _ => return,
        };
        steps.insert(*dst, step);
    });
    Some(steps)
}

/// The computations of registers from the number of the job.
fn before(entry: &Func, job: VarId, wanted: impl Iterator<Item = VarId>) -> Vec<(VarId, Scalar, Op, Vec<Operand>)> {
    let mut all = Vec::new();
    walk(&entry.body, &mut |stmt| {
        if let Stmt::Let { dst, op, args } = stmt {
            let (op, args) = match op {
                Op::Ctx(Ctx::Index) => (Op::Copy, vec![job.into()]),
                _ => (*op, args.clone()),
            };
            all.push((*dst, entry.ty((*dst).into()), op, args));
        }
    });
    let mut wanted: HashSet<VarId> = wanted.collect();
    let mut needed = Vec::new();
    for (dst, ty, op, args) in all.into_iter().rev() {
        if wanted.contains(&dst) {
            wanted.extend(args.iter().filter_map(|arg| if let Operand::Var(v) = arg { Some(*v) } else { None }));
            needed.push((dst, ty, op, args));
        }
    }
    needed.reverse();
    needed
}

fn weight(stmt: &Stmt) -> usize {
    match stmt {
        Stmt::Let { op, .. } => match op {
            Op::Div | Op::Rem | Op::UDiv | Op::URem | Op::MulMod | Op::AddMod | Op::FDiv | Op::FSqrt | Op::Random => {
                STATEMENTS_OF_DIVISION
            }
            Op::Copy | Op::Param(_) => 0,
            _ => 1,
        },
        Stmt::Begin { .. } | Stmt::Block { .. } | Stmt::Break(_) | Stmt::Return(_) | Stmt::Place(_) => 0,
        _ => 1,
    }
}

impl Shared<'_> {
    /// The buffer of the column's rows, if they are a plain array.
    fn buffer(&self, column: ColumnId) -> Option<usize> {
        self.layout.own_buffer(self.program, column)
    }

    fn rows(&self, column: ColumnId, jobs: u64) -> String {
        format!("Rows<{}, {jobs}>", storage(self.program.columns[column.index()].storage))
    }

    /// Writes the entry for a thread with several jobs, and the function that computes where their rows begin.
    pub(super) fn several_functions(&self, out: &mut String, several: &Several) {
        let id = self.program.entry;
        let entry = &self.program.funcs[id.index()];
        let name = self.func_name(id);
        let mut function = Function::new(self, id);
        function.nexts = several.loads.iter().map(|load| load.dst).collect();
        function.taken = several.stores.iter().map(|stored| stored.column).collect();
        let mut head = self.signature(id, true).replacen(&format!("{name}("), &format!("{name}_next("), 1);
        head.truncate(head.len() - 1);
        for load in &several.loads {
            let ty = storage(self.program.columns[load.column.index()].storage);
            let _ = write!(head, ", {ty} {}", function.next_name(load.dst));
        }
        for stored in &several.stores {
            let ty = storage(self.program.columns[stored.column.index()].storage);
            let _ = write!(head, ", {ty} &{}", self.taken_name(stored.column));
        }
        let _ = writeln!(out, "{head}) {{\n{}}}\n", function.emit());
        let elsewhere: Vec<&Ahead> = several.loads.iter().filter(|load| !load.own).collect();
        if elsewhere.is_empty() {
            return;
        }
        let before = several.before.iter();
        let mut body: Vec<Stmt> =
            before.map(|(dst, _, op, args)| Stmt::Let { dst: *dst, op: *op, args: args.clone() }).collect();
        body.push(Stmt::Return(elsewhere.iter().map(|load| load.row.into()).collect()));
        let rows = Func { body, ..entry.clone() };
        let mut function = Function::of(self, id, &rows);
        (function.stops, function.by_reference) = (false, true);
        let job = function.name(several.job).to_owned();
        let mut head = format!(
            "static __device__ __forceinline__ void {name}_rows(const Args &args, Ctx &ctx, {} {job}",
            self.register(id, several.job)
        );
        for i in 0..elsewhere.len() {
            let _ = write!(head, ", {} &result{i}", scalar(Scalar::I64));
        }
        let _ = writeln!(out, "{head}) {{\n{}}}\n", function.emit());
    }

    /// The name of the value that one of several jobs of a thread stores.
    pub(super) fn taken_name(&self, column: ColumnId) -> String {
        format!("{}_next", self.column_name(column))
    }

    /// The kernel whose threads run several jobs if there are fewer threads than jobs.
    pub(super) fn several_kernel(&self, kernel: &str, bounds: &str, several: &Several) -> String {
        let id = self.program.entry;
        let (name, n) = (self.func_name(id), several.jobs);
        let few = self.short[id.index()][several.job.index()];
        let number = if few { "u32" } else { "u64" };
        let stops = self.may_stop[id.index()];
        let function = Function::new(self, id);
        let (mut loads, mut stores, mut at) = (String::new(), Vec::new(), String::new());
        let elsewhere = several.loads.iter().filter(|load| !load.own).count();
        if elsewhere > 0 {
            let rows: Vec<String> = (0..elsewhere).map(|i| format!("row{i}")).collect();
            let rows = rows.join(", ");
            let _ = writeln!(loads, "      i64 {rows};\n      {name}_rows(args, ctx, i64(job), {rows});");
        }
        let mut found = 0;
        for load in &several.loads {
            let row = if load.own {
                "job".to_owned()
            } else {
                found += 1;
                format!("row{}", found - 1)
            };
            let (rows, next) = (self.rows(load.column, n), function.next_name(load.dst));
            let _ = writeln!(loads, "      {rows} {next};\n      {next}.load(&{});", self.slot(load.column, &row));
            let _ = write!(at, ", {next}.at[next]");
        }
        for stored in &several.stores {
            let (rows, next) = (self.rows(stored.column, n), self.taken_name(stored.column));
            let _ = writeln!(loads, "      {rows} {next};");
            stores.push(format!("{next}.store(&{});", self.slot(stored.column, "job")));
            let _ = write!(at, ", {next}.at[next]");
        }
        let given = |job: &str| format!("args, ctx, i64({job}), args.launch.tick_begin, args.launch.tick_end");
        let call = format!("{name}_next({}{at})", given("job + next"));
        let call = if stops { format!("over |= {call};") } else { format!("{call};") };
        let over = if stops { "      bool over = false;\n" } else { "" };
        stores.push("return;".to_owned());
        let stores = match stops {
            true => format!("      if (!over) {{\n        {}\n      }}", stores.join("\n        ")),
            false => format!("      {}", stores.join("\n      ")),
        };
        let single = format!("{name}({})", given("job"));
        let single = if stops { format!("if ({single}) ended(ctx);") } else { format!("{single};") };
        let ctx = "Ctx ctx = {args.launch, 0, 0, 0, 0, 0, NO_SITE};";
        format!(
            "extern \"C\" __global__ void __launch_bounds__({bounds}) {kernel}(__grid_constant__ const Args args) {{
  const {number} jobs = {number}(args.launch.jobs);
  {number} job = {number}(blockIdx.x) * blockDim.x + threadIdx.x, end = job + 1;
  if ({number}(gridDim.x) * blockDim.x < jobs) {{
    job *= {n};
    end = job + {n};
    if (end <= jobs) {{
      {ctx}
{loads}{over}#pragma unroll
      for (u32 next = 0; next < {n}; next++) {{
        {call}
      }}
{stores}
    }}
  }}
  if (end > jobs) end = jobs;
#pragma unroll 1
  for (; job < end; job++) {{
    {ctx}
    {single}
  }}
}}
"
        )
    }
}
