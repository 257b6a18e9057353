//! The interpreter of the IR: slow and simple, the oracle of the other backends.
//!
//! Here: jobs that run one after the other, in order, on one thread. The interpreter checks all that the IR's contract
//! forbids (a row outside its column, a division by zero). It reports a violation as an internal error, so that a
//! faulty lowering or pass shows here first.

use super::collective::Workers;
use super::collective::emitted::Emitter;
use super::libm::{self, Function};
use super::races::{Races, Seen, Touch};
use super::threads::Threads;
use super::{Backend, CancelToken, Executable, Key, Launch, Outcome, TrapRecord, own, philox};
use crate::config::CodeOptions;
use crate::error::{Error, Result};
use crate::ir::eval::{Value, eval};
use crate::ir::{
    AtomicOp, CheckedOp, ColumnId, Ctx, Func, FuncId, LabelId, MathFn, Op, Operand, Program, Scalar, SiteId, Stmt,
    Storage, TRAP_WORDS, VarId, verify,
};
use crate::layout::Layout;
use crate::memory::column::HostColumn;
use crate::memory::room::Lacking;
use crate::target::Target;
use crate::types::StrWord;
use std::any::Any;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The interpreter as a backend.
#[derive(Debug)]
pub struct ReferenceBackend {
    target: Target,
}

/// About as deep as Ruby nests calls with frames of ordinary size.
const CALL_DEPTH: u32 = 10_000;

/// How many slots jobs are distributed to.
const SLOTS: u64 = 3;

/// Stack for [`CALL_DEPTH`] calls, each of which takes some hundred frames of the interpreter. Only touched pages use
/// memory.
const STACK_BYTES: usize = 1 << 30;

impl Default for ReferenceBackend {
    fn default() -> Self {
        let target = Target {
            architecture: "reference".into(),
            warp: 1,
            call_depth: CALL_DEPTH,
            memory: isize::MAX as u64,
            shared_memory: 0,
        };
        Self { target }
    }
}

/// A program that the verifier has accepted.
struct Interpreted {
    program: Program,
    checked_in: Duration,
}

impl Executable for Interpreted {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn listing(&self) -> String {
        self.program.to_string()
    }
    fn compiled_in(&self) -> Duration {
        self.checked_in
    }
}

impl Backend for ReferenceBackend {
    fn name(&self) -> &'static str {
        "reference"
    }

    fn target(&self) -> &Target {
        &self.target
    }

    fn groups(&self) -> bool {
        true
    }

    fn slots(&self, jobs: u64) -> u64 {
        jobs.min(SLOTS)
    }

    fn prepare(&self, program: &Program, _: &Layout, _: &CodeOptions) -> Result<Arc<dyn Executable>> {
        let start = Instant::now();
        verify::verify(program)?;
        Ok(Arc::new(Interpreted { program: program.clone(), checked_in: start.elapsed() }))
    }

    fn launch(&self, executable: &dyn Executable, launch: Launch<'_>) -> Result<Outcome> {
        let program = &own::<Interpreted>(executable, "reference")?.program;
        let depth = self.target.call_depth;
        let answer = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("ikra reference".into()).stack_size(STACK_BYTES);
            let run = thread.spawn_scoped(scope, move || run(program, launch, depth)).map_err(|e| Error::Device {
                what: "starting the interpreter's thread".into(),
                cause: e.to_string(),
            })?;
            run.join().map_err(|panic| match panic.is::<Lacking>() {
                true => resume_unwind(panic),
                false => broken("the interpreter panicked"),
            })
        })?;
        answer.map_err(|detail| broken(&format!("{detail}\n\n{program}")))
    }
}

fn broken(detail: &str) -> Error {
    Error::Internal { stage: "reference", detail: detail.into() }
}

fn run(program: &Program, launch: Launch<'_>, depth_limit: u32) -> Run<Outcome> {
    let start = Instant::now();
    launch.cancel.stop_key().fetch_min(launch.limit.0, Ordering::SeqCst);
    let mut machine = Machine {
        program,
        columns: launch.columns,
        biases: launch.biases,
        params: launch.params,
        seed: launch.seed,
        section: launch.section,
        cancel: launch.cancel,
        depth_limit,
        depth: 0,
        tick: 0,
        index: 0,
        draw: 0,
        slot: 0,
        job: 0,
        place: SiteId::new(0),
        races: Races::of(program, launch.params, launch.slots.max(1)),
        groups: launch.groups.as_ref().map(|groups| Emitter::new(groups.how)),
        trapped: None,
    };
    // Each job runs all fused ticks itself. Otherwise all jobs end a tick before any begins the next.
    let slices = if program.fused_ticks { launch.ticks.min(1) } else { launch.ticks };
    for slice in 0..slices {
        let (begin, end) = if program.fused_ticks { (0, launch.ticks) } else { (slice, slice + 1) };
        if machine.stopped_before(Key::new(begin, 0)) {
            break;
        }
        for job in 0..launch.jobs {
            machine.depth = 0;
            machine.job = job;
            // Jobs could share one slot here, but other code relies on each running job having its own.
            machine.slot = job % launch.slots.max(1);
            machine.call(program.entry, &[job, begin, end].map(|i| Value::I64(i as i64)))?;
        }
    }
    if let (Some(groups), Some(emitter)) = (launch.groups, machine.groups) {
        let threads = Threads::new(1);
        let on = Workers { threads: &threads, cancel: launch.cancel };
        groups.take(on, vec![emitter]).map_err(|e| e.to_string())?;
    }
    launch.timings.kernel += start.elapsed();
    Ok(match machine.trapped {
        _ if launch.cancel.is_cancelled() => Outcome::Cancelled,
        Some(trap) => Outcome::Trapped(trap),
        None => Outcome::Done,
    })
}

/// A result, or the rule of the IR that was violated.
type Run<T> = std::result::Result<T, String>;

/// Where control goes after a statement.
enum Next {
    Statement,
    Break(LabelId),
    Return(Vec<Value>),
    /// To the end of the job.
    End,
}

struct Machine<'a> {
    program: &'a Program,
    columns: &'a mut [HostColumn],
    biases: &'a [u64],
    params: &'a [u64],
    seed: u64,
    section: u32,
    cancel: &'a CancelToken,
    depth_limit: u32,
    depth: u32,
    tick: u64,
    index: u64,
    draw: u32,
    slot: u64,
    job: u64,
    /// The last line that the program named.
    place: SiteId,
    races: Option<Races>,
    groups: Option<Emitter>,
    /// The trap with the least key so far.
    trapped: Option<TrapRecord>,
}

/// The registers of one call.
struct Frame<'a> {
    func: &'a Func,
    registers: Vec<Option<Value>>,
}

impl Frame<'_> {
    fn get(&self, operand: Operand) -> Run<Value> {
        match operand {
            Operand::Var(v) => self.registers[v.index()].ok_or_else(|| format!("{v} was not assigned")),
            constant => Value::of(constant).ok_or_else(|| "no constant".into()),
        }
    }
    fn int(&self, operand: Operand) -> Run<i64> {
        match self.get(operand)? {
            Value::I64(i) => Ok(i),
            other => Err(format!("{other:?} is no I64")),
        }
    }
    fn set(&mut self, var: VarId, value: Value) {
        self.registers[var.index()] = Some(value);
    }
}

impl<'a> Machine<'a> {
    /// Calls a function. None: the job ended in it.
    fn call(&mut self, func: FuncId, args: &[Value]) -> Run<Option<Vec<Value>>> {
        let func = &self.program.funcs[func.index()];
        let mut frame = Frame { func, registers: vec![None; func.vars.len()] };
        for (param, arg) in func.params.iter().zip(args) {
            frame.set(*param, *arg);
        }
        match self.list(&mut frame, &func.body)? {
            Next::Statement => Ok(Some(Vec::new())),
            Next::Return(values) => Ok(Some(values)),
            Next::End => Ok(None),
            Next::Break(label) => Err(format!("{label} is not open")),
        }
    }

    fn list(&mut self, frame: &mut Frame<'a>, body: &'a [Stmt]) -> Run<Next> {
        for stmt in body {
            match self.stmt(frame, stmt)? {
                Next::Statement => {}
                elsewhere => return Ok(elsewhere),
            }
        }
        Ok(Next::Statement)
    }

    fn stmt(&mut self, frame: &mut Frame<'a>, stmt: &'a Stmt) -> Run<Next> {
        match stmt {
            Stmt::Let { dst, op, args } => {
                let value = self.op(frame, *op, frame.func.vars[dst.index()].ty, args)?;
                frame.set(*dst, value);
            }
            Stmt::Checked { dst, op, args: [a, b], site } => {
                let (a, b) = (frame.int(*a)?, frame.int(*b)?);
                let result = match op {
                    CheckedOp::Add => a.checked_add(b),
                    CheckedOp::Sub => a.checked_sub(b),
                    CheckedOp::Mul => a.checked_mul(b),
                    CheckedOp::And => Some(a & b).filter(|bits| *bits >= 0),
                };
                match result {
                    Some(value) => frame.set(*dst, Value::I64(value)),
                    None => return Ok(self.trap(*site, &[])),
                }
            }
            Stmt::Place(site) => self.place = *site,
            Stmt::Load { dst, column, row } => {
                if let Some(next) = self.touch(*column, frame.get(*row)?, Touch::Read)? {
                    return Ok(next);
                }
                let value = self.load(*column, frame.get(*row)?, frame.func.vars[dst.index()].ty)?;
                frame.set(*dst, value);
            }
            Stmt::Store { column, row, value } => {
                if let Some(next) = self.touch(*column, frame.get(*row)?, Touch::Write)? {
                    return Ok(next);
                }
                self.store(*column, frame.get(*row)?, frame.get(*value)?)?;
            }
            Stmt::Atomic { column, row, .. }
                if let Some(next) = self.touch(*column, frame.get(*row)?, Touch::Add)? =>
            {
                return Ok(next);
            }
            Stmt::Atomic { op: AtomicOp::FAdd, column, row, value, .. } => {
                let (row, value) = (frame.get(*row)?, frame.get(*value)?);
                let (Value::F64(old), Value::F64(value)) = (self.load(*column, row, Scalar::F64)?, value) else {
                    return Err(format!("{column} is not of F64"));
                };
                self.store(*column, row, Value::F64(old + value))?;
            }
            Stmt::Atomic { op, column, row, value, site } => {
                let (row, value) = (frame.get(*row)?, frame.int(*value)?);
                let Value::I64(old) = self.load(*column, row, Scalar::I64)? else {
                    return Err(format!("{column} is not of I64"));
                };
                let new = match op {
                    AtomicOp::FAdd => return Err("matched above".into()),
                    AtomicOp::Add => match (old.checked_add(value), site) {
                        (None, Some(site)) => return Ok(self.trap(*site, &[])),
                        _ => old.wrapping_add(value),
                    },
                    AtomicOp::Min => old.min(value),
                    AtomicOp::Max => old.max(value),
                    AtomicOp::And => old & value,
                    AtomicOp::Or => old | value,
                    AtomicOp::Xor => old ^ value,
                };
                self.store(*column, row, Value::I64(new))?;
            }
            Stmt::FetchAdd { dst, column, row, value } => {
                let (row, value) = (frame.get(*row)?, frame.int(*value)?);
                let Value::I64(old) = self.load(*column, row, Scalar::I64)? else {
                    return Err(format!("{column} is not of I64"));
                };
                self.store(*column, row, Value::I64(old.wrapping_add(value)))?;
                frame.set(*dst, Value::I64(old));
            }
            Stmt::Emit { key, value, order, text } => {
                let (value, order) = (frame.int(*value)?, frame.int(*order)?);
                let key = key.map(|key| frame.int(key)).transpose()?;
                let groups = self.groups.as_mut().ok_or("a pair in a launch without groups")?;
                let bytes = text.map_or(&[][..], |column| self.columns[column.index()].view::<u8>());
                let of = |key: StrWord| &bytes[key.offset() as usize..][..key.length()];
                match (key, text) {
                    (None, _) => groups.push_parts(value, order as u64, of),
                    (Some(key), None) => groups.push(key as u64, value, order as u64),
                    (Some(key), Some(_)) => groups.push_text(StrWord(key as u64), value, order as u64, of),
                }
            }
            Stmt::KeyPart { code, word } => {
                let (code, word) = (frame.int(*code)?, frame.int(*word)?);
                let groups = self.groups.as_mut().ok_or("a key in a launch without groups")?;
                groups.push_part(code as u64, word as u64);
            }
            Stmt::Try { .. } => return Err("a rescue that no pass has made branches".into()),
            Stmt::Alloc { .. } => return Err("new rows that no pass has made arithmetic".into()),
            Stmt::If { cond, then, otherwise } => {
                return match frame.get(*cond)? {
                    Value::Bool(true) => self.list(frame, then),
                    _ => self.list(frame, otherwise),
                };
            }
            Stmt::Block { label, body } => {
                return Ok(match self.list(frame, body)? {
                    Next::Break(to) if to == *label => Next::Statement,
                    next => next,
                });
            }
            Stmt::Loop { label, body } => loop {
                // Fused ticks, of which there may be 2^31, contain no poll. Other backends run them in slices; this one
                // checks in each tick.
                if self.stopped_before(Key::new(0, 0)) {
                    return Ok(Next::End);
                }
                match self.list(frame, body)? {
                    Next::Statement => {}
                    Next::Break(to) if to == *label => break,
                    next => return Ok(next),
                }
            },
            Stmt::Break(label) => return Ok(Next::Break(*label)),
            Stmt::Call { func, args, dsts, depth } => {
                let args = args.iter().map(|a| frame.get(*a)).collect::<Run<Vec<_>>>()?;
                if let Some(site) = depth {
                    if self.stopped_before(self.key()) {
                        return Ok(Next::End);
                    }
                    if self.depth == self.depth_limit {
                        return Ok(self.trap(*site, &[]));
                    }
                }
                self.depth += u32::from(depth.is_some());
                let results = self.call(*func, &args)?;
                self.depth -= u32::from(depth.is_some());
                let Some(results) = results else { return Ok(Next::End) };
                for (dst, value) in dsts.iter().zip(results) {
                    frame.set(*dst, value);
                }
            }
            Stmt::Return(values) => {
                return Ok(Next::Return(values.iter().map(|v| frame.get(*v)).collect::<Run<Vec<_>>>()?));
            }
            Stmt::Trap { site, operands } => {
                let values = operands.iter().map(|o| frame.get(*o)).collect::<Run<Vec<_>>>()?;
                return Ok(self.trap(*site, &values));
            }
            Stmt::Meet { dst, value } => {
                let value = frame.get(*value)?;
                frame.set(*dst, value);
            }
            Stmt::Poll => {
                if self.stopped_before(self.key()) {
                    return Ok(Next::End);
                }
            }
            Stmt::Begin { index, tick, check } => {
                (self.index, self.tick, self.draw) = (frame.int(*index)? as u64, frame.int(*tick)? as u64, 0);
                if *check && self.stopped_before(self.key()) {
                    return Ok(Next::End);
                }
            }
        }
        Ok(Next::Statement)
    }

    fn op(&mut self, frame: &Frame<'_>, op: Op, ty: Scalar, args: &[Operand]) -> Run<Value> {
        let mut values = [Value::Bool(false); 3];
        for (value, arg) in values.iter_mut().zip(args) {
            *value = frame.get(*arg)?;
        }
        match op {
            Op::Ctx(Ctx::Tick) => Ok(Value::I64(self.tick as i64)),
            Op::Ctx(Ctx::Index) => Ok(Value::I64(self.index as i64)),
            Op::Ctx(Ctx::Stopped) => Ok(Value::Bool(self.stopped_before(self.key()))),
            Op::Ctx(Ctx::Slot) => Ok(Value::I64(self.slot as i64)),
            Op::Param(p) => Ok(Value::from_word(ty, self.params[p.index()])),
            Op::Random => {
                let bits = philox::draw(self.seed, self.section, self.tick as u32, self.index as u32, self.draw);
                self.draw = self.draw.wrapping_add(1);
                Ok(Value::I64(bits as i64))
            }
            Op::Math(f) => math(f, &values[..args.len()]).ok_or_else(|| format!("{op} of {values:?}")),
            _ => eval(op, ty, &values[..args.len()]).map_err(|e| format!("{op} {:?} {e}", &values[..args.len()])),
        }
    }

    fn key(&self) -> Key {
        Key::new(self.tick, self.index)
    }

    fn stopped_before(&self, key: Key) -> bool {
        self.cancel.stop_key().load(Ordering::Relaxed) < key.0
    }

    /// Lowers the stop key and records the trap, if its key is the least so far.
    fn trap(&mut self, site: SiteId, operands: &[Value]) -> Next {
        let key = self.key();
        let stop = self.cancel.stop_key().fetch_min(key.0, Ordering::SeqCst);
        if key.0 <= stop && self.trapped.is_none_or(|t| key < t.key) {
            let mut words = [0; TRAP_WORDS];
            for (word, value) in words.iter_mut().zip(operands) {
                *word = value.word();
            }
            self.trapped = Some(TrapRecord { key, site, words });
        }
        Next::End
    }

    /// Records an access to a slot. A race ends the job.
    fn touch(&mut self, column: ColumnId, row: Value, touch: Touch) -> Run<Option<Next>> {
        if self.races.is_none() {
            return Ok(None);
        }
        let row = match row {
            Value::I32(id) => u64::from(id as u32),
            other => other.word(),
        };
        let now = Seen { job: self.job, index: self.index, place: self.place };
        let (tick, Some(races)) = (self.tick, &mut self.races) else { return Ok(None) };
        let Some((first, how)) = races.touch(column, row, tick, touch, now) else { return Ok(None) };
        let words = [first.place.index() as i64, first.index as i64, column.index() as i64, how].map(Value::I64);
        Ok(Some(self.trap(self.place, &words)))
    }

    /// The position of a row in its column.
    fn row(&self, column: ColumnId, row: Value) -> Run<usize> {
        let bias = self.biases.get(column.index()).copied().unwrap_or(0);
        let position = match row {
            Value::I32(id) => u64::from(id as u32).checked_sub(bias),
            Value::I64(i) => u64::try_from(i).ok().and_then(|i| i.checked_sub(bias)),
            _ => None,
        };
        let len = self.columns[column.index()].len();
        position.and_then(|p| usize::try_from(p).ok()).filter(|p| *p < len).ok_or_else(|| {
            format!("row {row:?} of {}: it has {len} from {bias}", self.program.columns[column.index()].name)
        })
    }

    fn load(&self, column: ColumnId, row: Value, ty: Scalar) -> Run<Value> {
        let row = self.row(column, row)?;
        let rows = &self.columns[column.index()];
        Ok(match (rows.storage(), ty) {
            (Storage::U8, Scalar::Bool) => Value::Bool(rows.view::<u8>()[row] != 0),
            (Storage::U8, Scalar::I64) => Value::I64(rows.view::<u8>()[row].into()),
            (Storage::U8, _) => Value::I32(rows.view::<u8>()[row].into()),
            (Storage::U32, _) => Value::I32(rows.view::<u32>()[row] as i32),
            (Storage::I32, _) => Value::I64(rows.view::<i32>()[row].into()),
            (Storage::I64, _) => Value::I64(rows.view::<i64>()[row]),
            (Storage::F32, _) => Value::F64(rows.view::<f32>()[row].into()),
            (Storage::F64, _) => Value::F64(rows.view::<f64>()[row]),
        })
    }

    fn store(&mut self, column: ColumnId, row: Value, value: Value) -> Run<()> {
        let row = self.row(column, row)?;
        let rows = &mut self.columns[column.index()];
        match (rows.storage(), value) {
            (Storage::U8, Value::Bool(b)) => rows.view_mut::<u8>()[row] = b.into(),
            (Storage::U8, Value::I32(i)) => rows.view_mut::<u8>()[row] = i as u8,
            (Storage::U8, Value::I64(i)) => rows.view_mut::<u8>()[row] = i as u8,
            (Storage::U32, Value::I32(i)) => rows.view_mut::<u32>()[row] = i as u32,
            (Storage::I32, Value::I64(i)) => rows.view_mut::<i32>()[row] = i as i32,
            (Storage::I64, Value::I64(i)) => rows.view_mut::<i64>()[row] = i,
            (Storage::F32, Value::F64(x)) => rows.view_mut::<f32>()[row] = x as f32,
            (Storage::F64, Value::F64(x)) => rows.view_mut::<f64>()[row] = x,
            (storage, value) => return Err(format!("{value:?} does not fit a {storage} column")),
        }
        Ok(())
    }
}

fn math(f: MathFn, args: &[Value]) -> Option<Value> {
    Some(Value::F64(match (libm::function(f), args) {
        (Function::One(f), [Value::F64(a)]) => f(*a),
        (Function::Two(f), [Value::F64(a), Value::F64(b)]) => f(*a, *b),
        (Function::Exponent(f), [Value::F64(a), Value::I64(b)]) => f(*a, *b),
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::ReferenceBackend;
    use crate::backend::{Backend, CancelToken, Key, Launch, Outcome, Timings, TrapRecord, philox};
    use crate::config::CodeOptions;
    use crate::error::Result;
    use crate::ir::build::Builder;
    use crate::ir::testing::{DOMAIN, INPUT, INTS, OUT, OVERFLOW, REFS, SPEED, STACK, TAGS, program, with_functions};
    use crate::ir::{
        AtomicOp, CheckedOp, Cmp, Ctx, FuncId, Jobs, MathFn, Op, Operand, ParamId, Program, Scalar, SiteId, Stmt, VarId,
    };
    use crate::layout::Layout;
    use crate::memory::column::HostColumn;
    use std::sync::Arc;
    use std::time::Duration;

    const ROWS: usize = 8;

    /// A launch of [`ROWS`] jobs. `in` counts from 0, and object ids from 100.
    struct Bench {
        columns: Vec<HostColumn>,
        params: [u64; 4],
        ticks: u64,
        limit: Key,
        cancel: Arc<CancelToken>,
    }

    impl Bench {
        fn new(program: &Program) -> Self {
            let mut columns: Vec<_> = program.columns.iter().map(|c| HostColumn::zeroed(c.storage, ROWS)).collect();
            columns[INPUT.index()].view_mut::<i64>().iter_mut().zip(0..).for_each(|(row, i)| *row = i);
            let params = [5, 2.5f64.to_bits(), 1, -3i64 as u64];
            Self { columns, params, ticks: 1, limit: Key::NONE, cancel: Arc::default() }
        }
        fn run(&mut self, program: &Program) -> Result<Outcome> {
            let backend = ReferenceBackend::default();
            let executable =
                backend.prepare(program, &Layout::structure_of_arrays(program), &CodeOptions::default())?;
            let (biases, mut timings) = ([0, 0, 0, 0, 0, 100], Timings::default());
            let Self { columns, params, ticks, limit, cancel } = self;
            let plain = Launch::of(ROWS as u64, columns, &biases, params, cancel, &mut timings);
            let launch = Launch { ticks: *ticks, seed: 42, section: 7, limit: *limit, ..plain };
            backend.launch(&*executable, launch)
        }
        fn ints(&self) -> &[i64] {
            self.columns[INTS.index()].view()
        }
    }

    /// The contents of `ints` after a program that ran to its end.
    fn ints(body: impl FnOnce(&mut Builder, Operand)) -> Vec<i64> {
        let program = program(body);
        let mut bench = Bench::new(&program);
        assert_eq!(bench.run(&program).expect("the program keeps the rules"), Outcome::Done);
        bench.ints().to_vec()
    }

    fn trapped(key: Key, site: SiteId, words: [u64; 4]) -> Outcome {
        Outcome::Trapped(TrapRecord { key, site, words })
    }

    #[test]
    fn every_storage_is_loaded_and_stored() {
        let program = program(|b, index| {
            let small = b.op(Scalar::I32, Op::Narrow, &[index]);
            let odd = b.op(Scalar::I32, Op::And, &[small, Operand::I32(1)]);
            let is_odd = b.icmp(Cmp::Eq, odd, Operand::I32(1));
            b.store(TAGS, index, is_odd);
            let tag = b.load(Scalar::I32, TAGS, index);
            let id = b.op(Scalar::I32, Op::Sub, &[Operand::I32(-1), tag]);
            b.store(REFS, index, id);
            let id = b.load(Scalar::I32, REFS, index);
            let wide = b.i64(Op::Widen, &[id]);
            b.store(INTS, index, wide);
            let row = b.op(Scalar::I32, Op::Add, &[small, Operand::I32(100)]);
            let x = b.f64(Op::Param(ParamId(1)), &[]);
            b.store(SPEED, row, x);
            let back = b.load(Scalar::F64, SPEED, row);
            b.store(OUT, index, back);
        });
        let mut bench = Bench::new(&program);
        assert_eq!(bench.run(&program).expect("well formed"), Outcome::Done);
        assert_eq!(bench.ints()[..2], [0xffff_ffff, 0xffff_fffe]);
        assert_eq!(bench.columns[OUT.index()].view::<f64>(), [2.5; ROWS]);
    }

    #[test]
    fn loops_blocks_and_breaks() {
        let sums = ints(|b, index| {
            let (i, sum) = (b.temp(Scalar::I64), b.temp(Scalar::I64));
            b.set(i, Operand::I64(0));
            b.set(sum, Operand::I64(0));
            b.repeat(|b, done| {
                let end = b.icmp(Cmp::Ge, i.into(), index);
                b.when(end, |b| b.push(Stmt::Break(done)));
                b.block(|b, skip| {
                    let two = b.icmp(Cmp::Eq, i.into(), Operand::I64(2));
                    b.when(two, |b| b.push(Stmt::Break(skip)));
                    b.push(Stmt::Let { dst: sum, op: Op::Add, args: vec![sum.into(), i.into()] });
                });
                b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
            });
            b.store(INTS, index, sum.into());
        });
        assert_eq!(sums, [0, 0, 1, 1, 4, 8, 13, 19]);
    }

    #[test]
    fn checked_arithmetic_traps_at_its_site() {
        let edge = |op, a: i64, b: i64| {
            let program = program(|builder, index| {
                let value = builder.checked(op, Operand::I64(a), Operand::I64(b), OVERFLOW);
                builder.store(INTS, index, value);
            });
            let mut bench = Bench::new(&program);
            match bench.run(&program).expect("well formed") {
                Outcome::Done => Some(bench.ints()[0]),
                outcome => {
                    assert_eq!(outcome, trapped(Key::new(0, 0), OVERFLOW, [0; 4]));
                    None
                }
            }
        };
        assert_eq!(edge(CheckedOp::Add, i64::MAX, 1), None);
        assert_eq!(edge(CheckedOp::Add, i64::MAX, -1), Some(i64::MAX - 1));
        assert_eq!(edge(CheckedOp::Sub, i64::MIN, 1), None);
        assert_eq!(edge(CheckedOp::Sub, -1, i64::MIN), Some(i64::MAX));
        assert_eq!(edge(CheckedOp::Sub, 0, i64::MIN), None);
        assert_eq!(edge(CheckedOp::Mul, i64::MIN, -1), None);
        assert_eq!(edge(CheckedOp::Mul, 1 << 32, 1 << 31), None);
        assert_eq!(edge(CheckedOp::Mul, -(1 << 32), 1 << 31), Some(i64::MIN));
        assert_eq!(edge(CheckedOp::And, -1, i64::MAX), Some(i64::MAX));
        assert_eq!(edge(CheckedOp::And, -1, i64::MIN), None);
    }

    #[test]
    fn the_least_key_is_reported_and_smaller_ones_finish() {
        // Elements 5, 3 and 6 raise, in that order. All elements before 3 write.
        let order = [0, 5, 3, 1, 2, 6, 4, 7];
        let mut program = program(|b, _| {
            let job = VarId(0);
            let element = b.load(Scalar::I64, INPUT, job.into());
            b.push(Stmt::Begin { index: element, tick: Operand::I64(0), check: true });
            for bad in [3, 5, 6] {
                let hit = b.icmp(Cmp::Eq, element, Operand::I64(bad));
                b.trap_if(hit, DOMAIN, vec![element]);
            }
            b.store(INTS, element, Operand::I64(1));
        });
        program.jobs = Jobs::Reordered;
        // the program begins its elements itself
        program.funcs[0].body.drain(..2);
        let mut bench = Bench::new(&program);
        bench.columns[INPUT.index()].view_mut::<i64>().copy_from_slice(&order);
        assert_eq!(bench.run(&program).expect("well formed"), trapped(Key::new(0, 3), DOMAIN, [3, 0, 0, 0]));
        assert_eq!(bench.ints(), [1, 1, 1, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn later_ticks_do_not_start_after_a_trap() {
        for fused in [false, true] {
            let mut program = program(count_ticks);
            program.fused_ticks = fused;
            let mut bench = Bench::new(&program);
            bench.ticks = 5;
            assert_eq!(bench.run(&program).expect("well formed"), trapped(Key::new(2, 4), DOMAIN, [4, 0, 0, 0]));
            // with fused ticks, the elements before the fourth had run all ticks when it raised
            let expected = if fused { [5, 5, 5, 5, 2, 2, 2, 2] } else { [3, 3, 3, 3, 2, 2, 2, 2] };
            assert_eq!(bench.ints(), expected);
        }
    }

    /// Counts ticks in `ints`. Element 4 raises in tick 2.
    fn count_ticks(b: &mut Builder, index: Operand) {
        let (first, last) = (VarId(1), VarId(2));
        let tick = b.temp(Scalar::I64);
        b.set(tick, first.into());
        b.repeat(|b, done| {
            let end = b.icmp(Cmp::Ge, tick.into(), last.into());
            b.when(end, |b| b.push(Stmt::Break(done)));
            b.push(Stmt::Begin { index, tick: tick.into(), check: true });
            let third = b.icmp(Cmp::Eq, tick.into(), Operand::I64(2));
            let fourth = b.icmp(Cmp::Eq, index, Operand::I64(4));
            let both = b.bool(Op::And, &[third, fourth]);
            b.trap_if(both, DOMAIN, vec![index]);
            let count = b.load(Scalar::I64, INTS, index);
            let count = b.checked(CheckedOp::Add, count, Operand::I64(1), OVERFLOW);
            b.store(INTS, index, count);
            b.push(Stmt::Let { dst: tick, op: Op::Add, args: vec![tick.into(), Operand::I64(1)] });
        });
    }

    #[test]
    fn elements_beyond_the_limit_do_not_run_and_a_trap_at_it_is_reported() {
        let program = program(|b, index| {
            b.store(INTS, index, Operand::I64(1));
            let hit = b.icmp(Cmp::Ge, index, Operand::I64(4));
            b.trap_if(hit, DOMAIN, vec![index]);
        });
        let mut bench = Bench::new(&program);
        bench.limit = Key::new(0, 4);
        assert_eq!(bench.run(&program).expect("well formed"), trapped(Key::new(0, 4), DOMAIN, [4, 0, 0, 0]));
        assert_eq!(bench.ints(), [1, 1, 1, 1, 1, 0, 0, 0]);
        let mut bench = Bench::new(&program);
        bench.limit = Key::new(0, 2);
        assert_eq!(bench.run(&program).expect("well formed"), Outcome::Done);
    }

    #[test]
    fn cancelling_ends_an_endless_loop() {
        let program = program(|b, _| b.repeat(|b, _| b.push(Stmt::Poll)));
        let mut bench = Bench::new(&program);
        let cancel = Arc::clone(&bench.cancel);
        let canceller = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            cancel.cancel();
        });
        assert_eq!(bench.run(&program).expect("well formed"), Outcome::Cancelled);
        canceller.join().expect("it only cancels");
    }

    #[test]
    fn calls_return_values_and_too_deep_ones_trap() {
        // fact(n) = n < 2 ? 1 : n * fact(n - 1), wrapping
        let mut b = Builder::new("fact".into(), vec![Scalar::I64]);
        let n = b.param(Scalar::I64, Some("n".into()));
        let small = b.icmp(Cmp::Lt, n.into(), Operand::I64(2));
        b.when(small, |b| b.push(Stmt::Return(vec![Operand::I64(1)])));
        let less = b.i64(Op::Sub, &[n.into(), Operand::I64(1)]);
        let rest = b.call(FuncId(1), vec![less], &[Scalar::I64], Some(STACK));
        let product = b.i64(Op::Mul, &[n.into(), rest[0]]);
        b.push(Stmt::Return(vec![product]));
        let mut fact = b.finish();
        fact.recursive = true;
        let program = |n: Operand| {
            with_functions(vec![fact.clone()], |b, index| {
                let n = if let Operand::Bool(_) = n { index } else { n };
                let result = b.call(FuncId(1), vec![n], &[Scalar::I64], None);
                b.store(INTS, index, result[0]);
            })
        };
        let of_index = program(Operand::Bool(true));
        let mut bench = Bench::new(&of_index);
        assert_eq!(bench.run(&of_index).expect("well formed"), Outcome::Done);
        assert_eq!(bench.ints(), [1, 1, 2, 6, 24, 120, 720, 5040]);
        let deep = program(Operand::I64(10_001));
        assert_eq!(Bench::new(&deep).run(&deep).expect("well formed"), Outcome::Done);
        let too_deep = program(Operand::I64(10_002));
        let outcome = Bench::new(&too_deep).run(&too_deep).expect("well formed");
        assert_eq!(outcome, trapped(Key::new(0, 0), STACK, [0; 4]));
    }

    #[test]
    fn atomics_read_modify_and_write() {
        let after = |op, value: i64, site| {
            let program = program(|b, _| {
                b.push(Stmt::Atomic { op, column: INTS, row: Operand::I64(0), value: Operand::I64(value), site });
            });
            let mut bench = Bench::new(&program);
            bench.columns[INTS.index()].view_mut::<i64>()[0] = 12;
            (bench.run(&program).expect("well formed"), bench.ints()[0])
        };
        assert_eq!(after(AtomicOp::Add, 2, None), (Outcome::Done, 28));
        assert_eq!(after(AtomicOp::Min, -5, None), (Outcome::Done, -5));
        assert_eq!(after(AtomicOp::Max, -5, None), (Outcome::Done, 12));
        assert_eq!(after(AtomicOp::And, 10, None), (Outcome::Done, 8));
        assert_eq!(after(AtomicOp::Or, 3, None), (Outcome::Done, 15));
        assert_eq!(after(AtomicOp::Xor, 1, None), (Outcome::Done, 12));
        let overflow = trapped(Key::new(0, 1), OVERFLOW, [0; 4]);
        assert_eq!(after(AtomicOp::Add, i64::MAX / 2, Some(OVERFLOW)), (overflow, i64::MAX / 2 + 12));
    }

    #[test]
    fn parameters_context_and_libm() {
        let values = ints(|b, index| {
            let flag = b.bool(Op::Param(ParamId(2)), &[]);
            let small = b.op(Scalar::I32, Op::Param(ParamId(3)), &[]);
            let n = b.i64(Op::Param(ParamId(0)), &[]);
            let chosen = b.select(Scalar::I64, flag, n, Operand::I64(0));
            let x = b.f64(Op::Math(MathFn::Ldexp), &[Operand::float(1.5), chosen]);
            let x = b.f64(Op::Math(MathFn::Pow), &[x, Operand::float(2.0)]);
            let x = b.f64(Op::Math(MathFn::Cbrt), &[x]);
            let x = b.i64(Op::FloatToInt, &[x]);
            let small = b.i64(Op::Widen, &[small]);
            let sum = b.i64(Op::Add, &[x, small]);
            let tick = b.i64(Op::Ctx(Ctx::Tick), &[]);
            let sum = b.i64(Op::Add, &[sum, tick]);
            b.store(INTS, index, sum);
        });
        assert_eq!(values[0], 13 + 0xffff_fffd);
    }

    #[test]
    fn draws_count_within_a_tick() {
        let mut program = program(|b, index| {
            b.i64(Op::Random, &[]);
            let second = b.i64(Op::Random, &[]);
            b.store(INTS, index, second);
        });
        program.uses_random = true;
        let mut bench = Bench::new(&program);
        bench.ticks = 2;
        assert_eq!(bench.run(&program).expect("well formed"), Outcome::Done);
        assert_eq!(bench.ints()[3], philox::draw(42, 7, 1, 3, 1) as i64);
    }

    #[test]
    fn broken_rules_are_internal_errors() {
        let broken = |body: &dyn Fn(&mut Builder, Operand), because: &str| {
            let program = program(body);
            let text = Bench::new(&program).run(&program).expect_err("a rule is broken").to_string();
            assert!(text.contains(because), "{text}");
        };
        broken(&|b, _| b.store(INTS, Operand::I64(8), Operand::I64(0)), "row I64(8) of ints: it has 8 from 0");
        broken(&|b, _| b.store(INTS, Operand::I64(-1), Operand::I64(0)), "row I64(-1) of ints");
        broken(&|b, _| b.store(SPEED, Operand::I32(99), Operand::float(0.0)), "row I32(99) of Car@speed");
        broken(&|b, index| b.store(INTS, index, Operand::Bool(true)), "holds no bool");
        let divides = |b: &mut Builder, index| {
            b.i64(Op::Div, &[Operand::I64(1), index]);
        };
        broken(&divides, "divides by 0");
    }
}
