//! Translates the IR to Cranelift's IR: registers to variables, structured statements to blocks.
//!
//! Here: the translation of all statements and operations. Not here: any rule of Ruby (the IR spells them out), what
//! the shared words mean ([`super::state`]), and executable memory ([`super::jit`]).
//!
//! The entry function becomes a loop over jobs, so that a job costs no call. It returns the job with which to continue:
//! the end, or the job after one that ended early. All other functions take the state as first parameter. One that can
//! end the job early returns a status as first result: 1 when the job is over.
//!
//! Traps are data: the site and its words are stored in the state, and the function returns. A trap calls nothing, so a
//! hot loop with traps keeps its values in registers.

mod pairs;

use super::helpers::Helper;
use super::jit::Linker;
use super::pairs::{Lane, Lanes, Pairs};
use super::reservation;
use super::state::{self, offset};
use crate::backend::Key;
use crate::backend::collective::cells::{Cell, Cells};
use crate::backend::collective::emitted::Emitter;
use crate::error::{Error, Result};
use crate::ir::privatized::Privatized;
use crate::ir::ticks::LoopOverTicks;
use crate::ir::{
    self, AtomicOp, CheckedOp, Cmp, Column, ColumnId, FuncId, LabelId, MathFn, Op, Operand, Program, Scalar, SiteId,
    Stmt, Storage, VarId,
};
use crate::layout::{Address, Layout};
use crate::passes;
use cranelift_codegen::ir::condcodes::{CondCode, FloatCC, IntCC};
use cranelift_codegen::ir::{
    AbiParam, AliasRegionData, AtomicRmwOp, Block, FuncRef, Function, InstBuilder, MemFlagsData, Signature, StackSlot,
    StackSlotData, StackSlotKind, Type, UserFuncName, Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem::offset_of;

/// Facts about a whole program, which are found before its functions are translated.
pub struct Facts {
    /// For each function, whether its calls return a status.
    stops: Vec<bool>,
    /// For each function, whether its calls poll.
    polls: Vec<bool>,
    /// Whether functions other than the entry read the running element's tick and index.
    shares_position: bool,
    /// Whether functions other than the entry draw random bits.
    shares_draws: bool,
    /// Columns of which each thread may have private rows.
    pub(super) privatized: Vec<Privatized>,
    /// Counters of which each thread takes many rows at once.
    counters: Vec<ColumnId>,
    /// Whether the machine has fused multiply-add instructions.
    fma: bool,
    /// For each function, which registers hold Floats of 32 bits.
    single: Vec<Vec<bool>>,
    /// Registers of the entry that are lanes of vectors.
    pairs: Pairs,
    /// Registers of the entry that are kept in memory: loops rarely access them, and need the processor's registers for
    /// others.
    in_memory: HashSet<VarId>,
}

impl Facts {
    /// `candidates`: pairs of registers of the entry that may become vectors.
    pub fn new(
        program: &Program,
        privatized: Vec<Privatized>,
        fma: bool,
        candidates: &[[VarId; 2]],
        in_memory: &[VarId],
    ) -> Self {
        let (single, entry) = (passes::single(program), program.entry.index());
        let mut facts = Self {
            fma,
            privatized,
            counters: reservation::counters(program).into_iter().map(|(column, _)| column).collect(),
            pairs: Pairs::of(&program.funcs[entry], candidates, &single[entry]),
            single,
            in_memory: in_memory.iter().copied().collect(),
            stops: program.may_stop(),
            polls: vec![false; program.funcs.len()],
            shares_position: false,
            shares_draws: false,
        };
        for (id, func) in program.funcs.iter().enumerate() {
            let inner = id != program.entry.index();
            ir::walk(&func.body, &mut |stmt| match stmt {
                Stmt::Poll | Stmt::Call { depth: Some(_), .. } => {
                    facts.polls[id] = true;
                    facts.shares_position |= inner;
                }
                Stmt::Let { op: Op::Ctx(ir::Ctx::Tick | ir::Ctx::Index), .. } => facts.shares_position |= inner,
                Stmt::Let { op: Op::Random, .. } => {
                    facts.shares_position |= inner;
                    facts.shares_draws |= inner;
                }
                _ => {}
            });
        }
        loop {
            let before = facts.polls.clone();
            for (id, func) in program.funcs.iter().enumerate() {
                ir::walk(&func.body, &mut |stmt| {
                    if let Stmt::Call { func, .. } = stmt {
                        facts.polls[id] |= before[func.index()];
                    }
                });
            }
            if facts.polls == before {
                return facts;
            }
        }
    }
}

/// The signature of a function. The entry has `(state, job, jobs, tick, ticks) -> job`. Others have the state before
/// their parameters and the status before their results.
pub fn signature(program: &Program, facts: &Facts, id: FuncId, host: CallConv) -> Signature {
    if id == program.entry {
        let mut signature = Signature::new(host);
        signature.params = vec![AbiParam::new(types::I64); 5];
        signature.returns = vec![AbiParam::new(types::I64)];
        return signature;
    }
    let func = &program.funcs[id.index()];
    // the convention `Tail` returns up to eight words of each kind in registers
    let mut signature = Signature::new(CallConv::Tail);
    signature.params.push(AbiParam::new(types::I64));
    signature.params.extend(func.params.iter().map(|v| AbiParam::new(ty(func.vars[v.index()].ty))));
    if facts.stops[id.index()] {
        signature.returns.push(AbiParam::new(types::I8));
    }
    signature.returns.extend(func.results.iter().map(|scalar| AbiParam::new(ty(*scalar))));
    signature
}

/// Translates one function.
#[expect(clippy::too_many_arguments, reason = "the parts of one compilation, each owned elsewhere")]
pub fn lower(
    program: &Program,
    layout: &Layout,
    facts: &Facts,
    ids: &[cranelift_module::FuncId],
    id: FuncId,
    signature: Signature,
    config: TargetFrontendConfig,
    linker: &mut Linker,
    scratch: &mut FunctionBuilderContext,
    out: &mut Function,
) -> Result<()> {
    out.name = UserFuncName::user(0, id.0);
    out.signature = signature;
    let func = &program.funcs[id.index()];
    let mut b = FunctionBuilder::new(out, scratch);
    let start = b.create_block();
    b.append_block_params_for_function_params(start);
    b.switch_to_block(start);
    b.seal_block(start);
    let state = b.block_params(start)[0];

    let single = &facts.single[id.index()];
    let (registers, vectors) = registers(func, single, (id == program.entry).then_some(facts), &mut b);
    let mut lowering = Lowering {
        registers,
        vectors,
        labels: vec![None; func.labels],
        bases: vec![None; program.columns.len()],
        flags: vec![None; program.columns.len()],
        sums: HashMap::new(),
        loops: 0,
        job: None,
        tick: None,
        index: None,
        draw: None,
        polls: None,
        ended: b.create_block(),
        traps: BTreeMap::new(),
        entry: id == program.entry,
        stops: facts.stops[id.index()],
        program,
        layout,
        facts,
        func,
        single,
        ids,
        linker,
        callees: vec![None; program.funcs.len()],
        helpers: HashMap::new(),
        fma: facts.fma,
        state,
        b,
    };
    lowering.function(start, facts.polls[id.index()])?;
    let Lowering { b, .. } = lowering;
    b.finalize(config);
    Ok(())
}

/// Where the value of a register is.
#[derive(Clone, Copy)]
enum Register {
    /// It is assigned in one place, which dominates all uses.
    Once(Option<Value>),
    Many(Variable),
    /// It is on the stack: [`Facts::in_memory`].
    InMemory(StackSlot),
    /// It is a lane of a pair whose two registers are assigned together.
    Lane(Lane),
}

impl Register {
    fn set(&mut self, value: Value, b: &mut FunctionBuilder<'_>) {
        match self {
            Register::Once(slot) => *slot = Some(value),
            Register::Many(variable) => b.def_var(*variable, value),
            Register::InMemory(slot) => {
                b.ins().stack_store(types::I64, value, *slot, 0);
            }
            Register::Lane(_) => unreachable!("a register of a pair is never assigned alone"),
        }
    }
}

/// The registers of a function, and the vectors of its pairs.
fn registers(
    func: &ir::Func,
    single: &[bool],
    facts: Option<&Facts>,
    b: &mut FunctionBuilder<'_>,
) -> (Vec<Register>, Vec<Register>) {
    let mut assignments = vec![0u32; func.vars.len()];
    for v in &func.params {
        assignments[v.index()] += 1;
    }
    ir::walk(&func.body, &mut |stmt| stmt.assigns().iter().for_each(|dst| assignments[dst.index()] += 1));
    let several = |n: u32, ty, b: &mut FunctionBuilder<'_>| {
        if n > 1 { Register::Many(b.declare_var(ty)) } else { Register::Once(None) }
    };
    let pairs = facts.map(|facts| &facts.pairs);
    let mut vectors = vec![Register::Once(None); pairs.map_or(0, Pairs::len)];
    let mut registers = Vec::with_capacity(func.vars.len());
    for (id, (var, n)) in func.vars.iter().zip(assignments).enumerate() {
        let v = VarId::new(id);
        registers.push(match pairs.and_then(|pairs| pairs.lane(v)) {
            Some(lane) => {
                if lane.lane == 0 {
                    let lanes = pairs.map_or(Lanes::F64, |pairs| pairs.lanes(lane.pair));
                    vectors[lane.pair] = several(n, pairs::vector_type(lanes), b);
                }
                Register::Lane(lane)
            }
            None if facts.is_some_and(|facts| facts.in_memory.contains(&v)) => {
                let word = StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3);
                Register::InMemory(b.create_sized_stack_slot(word))
            }
            None if single[id] => several(n, types::F32, b),
            None => several(n, ty(var.ty), b),
        });
    }
    (registers, vectors)
}

/// The machine type of a register. An I32 is zero-extended to 64 bits: most are ids, which are loaded and added to
/// addresses in that form.
fn ty(scalar: Scalar) -> Type {
    match scalar {
        Scalar::Bool => types::I8,
        Scalar::I32 | Scalar::I64 => types::I64,
        Scalar::F64 => types::F64,
    }
}

/// How many base addresses a loop keeps in registers.
const MAX_BASES: usize = 7;
/// Regions of memory, for alias analysis.
const STATE_REGION: u32 = 0;
const BASES_REGION: u32 = 1;
const FIRST_COLUMN_REGION: u32 = 2;

fn unexpanded() -> Error {
    Error::Internal { stage: "cpu", detail: "new rows that no pass has made arithmetic".to_owned() }
}

fn has_loop(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Loop { .. }) || stmt.bodies().into_iter().flatten().any(has_loop)
}

/// Adds to the weight of each column a rough estimate of how often a list accesses it.
fn weigh(list: &[Stmt], times: u32, weights: &mut [u32]) {
    for stmt in list {
        if let Stmt::Load { column, .. }
        | Stmt::Store { column, .. }
        | Stmt::Atomic { column, .. }
        | Stmt::FetchAdd { column, .. } = stmt
        {
            weights[column.index()] = weights[column.index()].saturating_add(times);
        }
        let times = if matches!(stmt, Stmt::Loop { .. }) { times.saturating_mul(8) } else { times };
        stmt.bodies().into_iter().for_each(|body| weigh(body, times, weights));
    }
}

struct Lowering<'a, 'b> {
    program: &'a Program,
    layout: &'a Layout,
    facts: &'a Facts,
    func: &'a ir::Func,
    /// The function's registers that hold Floats of 32 bits.
    single: &'a [bool],
    ids: &'a [cranelift_module::FuncId],
    linker: &'a mut Linker,
    /// The references of this function to other functions and helpers.
    callees: Vec<Option<FuncRef>>,
    helpers: HashMap<Helper, FuncRef>,
    /// Whether the machine has fused multiply-add instructions.
    fma: bool,
    b: FunctionBuilder<'b>,
    state: Value,
    registers: Vec<Register>,
    vectors: Vec<Register>,
    /// The target block of breaks of each label, which is made when its block or loop opens. The flag says whether a
    /// break goes there.
    labels: Vec<Option<(Block, bool)>>,
    /// Base addresses of columns that are loaded.
    bases: Vec<Option<Value>>,
    /// Flags of accesses to each column, where they are known.
    flags: Vec<Option<MemFlagsData>>,
    /// Values that are the sum of another value and a constant: an address includes the constant at no cost.
    sums: HashMap<Value, (Value, i64)>,
    /// How many loops are open, without the loop over jobs.
    loops: usize,
    /// In the entry: the running job and its element.
    job: Option<Variable>,
    tick: Option<Variable>,
    index: Option<Variable>,
    /// In the entry, if no other function draws: the number of draws.
    draw: Option<Variable>,
    /// The polls that are left until the stop key is read.
    polls: Option<Variable>,
    /// The block that leaves the function early; the site is in the state.
    ended: Block,
    /// Blocks that trap at a site without words.
    traps: BTreeMap<SiteId, Block>,
    entry: bool,
    stops: bool,
}

/// Whether control continues after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Ended,
}

impl Lowering<'_, '_> {
    fn function(&mut self, start: Block, polls: bool) -> Result<()> {
        if polls {
            let variable = self.b.declare_var(types::I64);
            self.polls = Some(variable);
            self.reload_polls();
        }
        if self.entry {
            self.entry(start)?
        } else {
            self.callee(start)?
        }
        self.early_end();
        for (site, block) in std::mem::take(&mut self.traps) {
            self.b.switch_to_block(block);
            self.b.set_cold_block(block);
            self.b.seal_block(block);
            self.trap_here(site);
        }
        // traps jump to it, so it is complete only now
        self.b.seal_block(self.ended);
        Ok(())
    }

    /// The loop over jobs, around the function's body.
    fn entry(&mut self, start: Block) -> Result<()> {
        let params = self.b.block_params(start).to_vec();
        let [job, end] = [params[1], params[2]];
        let variable = self.b.declare_var(types::I64);
        self.job = Some(variable);
        self.b.def_var(variable, job);
        self.tick = Some(self.b.declare_var(types::I64));
        self.index = Some(self.b.declare_var(types::I64));
        self.draw = (self.program.uses_random && !self.facts.shares_draws).then(|| self.b.declare_var(types::I64));

        // if jobs contain no loops, this one is the hottest
        if !self.func.body.iter().any(has_loop) {
            self.open_columns(&self.func.body);
        }
        // there is at least one job
        let [body, done] = [self.b.create_block(), self.b.create_block()];
        self.b.ins().jump(body, &[]);
        self.b.switch_to_block(body);
        let job = self.b.use_var(variable);
        for (v, value) in self.func.params.clone().into_iter().zip([job, params[3], params[4]]) {
            self.set(v, value);
        }
        // a return from the body is a break to this block
        let next = self.b.create_block();
        self.labels.push(Some((next, false)));
        let flow = self.list(&self.func.body)?;
        if flow == Flow::On {
            self.b.ins().jump(next, &[]);
        }
        self.b.seal_block(next);
        self.b.switch_to_block(next);
        let job = self.b.use_var(variable);
        let job = self.b.ins().iadd_imm_s(job, 1);
        self.b.def_var(variable, job);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, job, end);
        self.b.ins().brif(more, body, &[], done, &[]);
        self.b.seal_block(body);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        self.save_polls();
        self.b.ins().return_(&[end]);
        Ok(())
    }

    fn callee(&mut self, start: Block) -> Result<()> {
        let params = self.b.block_params(start).to_vec();
        for (v, value) in self.func.params.clone().into_iter().zip(params.into_iter().skip(1)) {
            self.set(v, value);
        }
        if self.list(&self.func.body)? == Flow::On {
            self.finish(Vec::new());
        }
        Ok(())
    }

    /// Returns from a function other than the entry.
    fn finish(&mut self, results: Vec<Value>) {
        self.save_polls();
        let mut values = Vec::with_capacity(results.len() + 1);
        if self.stops {
            values.push(self.b.ins().iconst(types::I8, 0));
        }
        values.extend(results);
        self.b.ins().return_(&values);
    }

    /// The block that ends the job early.
    fn early_end(&mut self) {
        self.b.switch_to_block(self.ended);
        self.b.set_cold_block(self.ended);
        if self.entry {
            for (variable, word) in [(self.tick, state::TICK), (self.index, state::INDEX)] {
                if let Some(variable) = variable {
                    let value = self.b.use_var(variable);
                    self.store_word(word, value);
                }
            }
            let job = self.job.map(|job| self.b.use_var(job)).expect("the entry has a job");
            let job = self.b.ins().iadd_imm_s(job, 1);
            self.b.ins().return_(&[job]);
        } else {
            let mut values = Vec::new();
            if self.stops {
                values.push(self.b.ins().iconst(types::I8, 1));
            }
            for scalar in self.func.results.clone() {
                values.push(self.zero(scalar));
            }
            self.b.ins().return_(&values);
        }
    }

    fn zero(&mut self, scalar: Scalar) -> Value {
        match scalar {
            Scalar::F64 => self.b.ins().f64const(0.0),
            other => self.b.ins().iconst(ty(other), 0),
        }
    }

    // The state

    /// Flags of accesses to the state's words, a region of memory that no column overlaps.
    fn word_flags(&mut self) -> MemFlagsData {
        let region = self
            .b
            .func
            .dfg
            .alias_regions
            .insert(AliasRegionData { user_id: STATE_REGION, description: "state".into() });
        MemFlagsData::trusted().with_alias_region(Some(region))
    }

    fn load_word(&mut self, word: usize) -> Value {
        let flags = self.word_flags();
        self.b.ins().load(types::I64, flags, self.state, offset(word))
    }

    fn store_word(&mut self, word: usize, value: Value) {
        let flags = self.word_flags();
        self.b.ins().store(flags, value, self.state, offset(word));
    }

    /// A word that does not change during the launch. It is computed at its use, and moved out of all loops around.
    fn constant_word(&mut self, word: usize, ty: Type) -> Value {
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        self.b.ins().load(ty, flags, self.state, offset(word))
    }

    /// As [`Self::constant_word`], where only the low half matters.
    fn constant_half(&mut self, word: usize) -> Value {
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        self.b.ins().uload32(flags, self.state, offset(word))
    }

    /// Flags of accesses to a column: a region of memory of its own, because columns do not overlap.
    fn column_flags(&mut self, column: ColumnId) -> MemFlagsData {
        if let Some(flags) = self.flags[column.index()] {
            return flags;
        }
        let Column { name, written, .. } = &self.program.columns[column.index()];
        let data = AliasRegionData { user_id: column.0 + FIRST_COLUMN_REGION, description: name.clone().into() };
        let region = self.b.func.dfg.alias_regions.insert(data);
        let flags = MemFlagsData::trusted().with_alias_region(Some(region));
        let flags = if *written { flags } else { flags.with_readonly() };
        self.flags[column.index()] = Some(flags);
        flags
    }

    /// The base address of a column.
    fn column_base(&mut self, column: ColumnId) -> Value {
        match self.bases[column.index()] {
            Some(base) => base,
            None => self.load_base(column),
        }
    }

    /// Loads a base address at this point. The optimiser must not move it out of loops. All loops of a function
    /// together may need more of them than there are registers, and then even the hottest loop would spill.
    fn load_base(&mut self, column: ColumnId) -> Value {
        let data = AliasRegionData { user_id: BASES_REGION, description: "bases".into() };
        let region = self.b.func.dfg.alias_regions.insert(data);
        let flags = MemFlagsData::trusted().with_readonly().with_alias_region(Some(region));
        self.b.ins().load(types::I64, flags, self.state, offset(state::COLUMNS + column.index()))
    }

    /// Loads the base addresses that a list uses; only the most used ones if there are many. Returns the earlier state,
    /// to be restored behind the list.
    fn open_columns(&mut self, list: &[Stmt]) -> Vec<Option<Value>> {
        let before = self.bases.clone();
        let mut weights = vec![0u32; self.program.columns.len()];
        weigh(list, 1, &mut weights);
        let mut used: Vec<usize> = (0..weights.len()).filter(|column| weights[*column] > 0).collect();
        used.sort_by_key(|column| std::cmp::Reverse(weights[*column]));
        for column in used.into_iter().take(MAX_BASES) {
            if self.bases[column].is_none() {
                self.bases[column] = Some(self.load_base(ColumnId::new(column)));
            }
        }
        before
    }

    fn save_polls(&mut self) {
        if let Some(polls) = self.polls {
            let value = self.b.use_var(polls);
            self.store_word(state::POLLS, value);
        }
    }

    fn reload_polls(&mut self) {
        if let Some(polls) = self.polls {
            let value = self.load_word(state::POLLS);
            self.b.def_var(polls, value);
        }
    }

    /// Counts down. At 0, ends the job if the launch was stopped.
    fn poll(&mut self) {
        let Some(polls) = self.polls else { return };
        let left = self.b.use_var(polls);
        let left = self.b.ins().iadd_imm_s(left, -1);
        self.b.def_var(polls, left);
        let [look, on] = [self.b.create_block(), self.b.create_block()];
        self.b.ins().brif(left, on, &[], look, &[]);
        self.b.seal_block(look);
        self.b.set_cold_block(look);
        self.b.switch_to_block(look);
        let interval = self.b.ins().iconst(types::I64, state::POLL_INTERVAL);
        self.b.def_var(polls, interval);
        self.look(on);
    }

    /// As [`Self::poll`], with a number that is counted anyway.
    fn poll_by(&mut self, count: Value) {
        let low = self.b.ins().band_imm_s(count, state::POLL_INTERVAL - 1);
        let [due, look, on] = [self.b.create_block(), self.b.create_block(), self.b.create_block()];
        self.b.ins().brif(low, on, &[], due, &[]);
        for block in [due, look] {
            self.b.set_cold_block(block);
        }
        self.b.seal_block(due);
        self.b.switch_to_block(due);
        // the first repetition does not look: often there is only one
        self.b.ins().brif(count, look, &[], on, &[]);
        self.b.seal_block(look);
        self.b.switch_to_block(look);
        self.look(on);
    }

    /// Ends the job if the launch was stopped, else goes on to `on`.
    fn look(&mut self, on: Block) {
        let stopped = self.is_stopped();
        self.b.ins().brif(stopped, self.ended, &[], on, &[]);
        self.b.seal_block(on);
        self.b.switch_to_block(on);
    }

    /// Whether the running element's key is greater than the stop key.
    fn is_stopped(&mut self) -> Value {
        let tick = self.position(self.tick, state::TICK);
        let index = self.position(self.index, state::INDEX);
        // see `Key::new`
        let high = self.b.ins().ishl_imm_u(tick, 32);
        let key = self.b.ins().bor(high, index);
        let key = self.b.ins().iadd_imm_s(key, 1);
        // Without this store, the optimiser would reuse an earlier load of the word, which other threads change.
        self.store_word(state::SCRATCH, key);
        let address = self.constant_word(state::STOP_KEY, types::I64);
        let flags = self.word_flags();
        let stop = self.b.ins().load(types::I64, flags, address, 0);
        self.b.ins().icmp(IntCC::UnsignedGreaterThan, key, stop)
    }

    fn position(&mut self, variable: Option<Variable>, word: usize) -> Value {
        match variable {
            Some(variable) => self.b.use_var(variable),
            None => self.load_word(word),
        }
    }

    // Registers

    fn set(&mut self, v: VarId, value: Value) {
        self.registers[v.index()].set(value, &mut self.b);
    }

    /// The value of an operand. A Float of 32 bits becomes one of 64.
    fn get(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Var(v) if self.single[v.index()] => {
                let single = self.held(v);
                self.b.ins().fpromote(types::F64, single)
            }
            Operand::Var(v) => self.held(v),
            Operand::Bool(value) => self.b.ins().iconst(types::I8, i64::from(value)),
            Operand::I32(value) => self.b.ins().iconst(types::I64, i64::from(value as u32)),
            Operand::I64(value) => self.b.ins().iconst(types::I64, value),
            Operand::F64(bits) => self.b.ins().f64const(f64::from_bits(bits)),
        }
    }

    /// The value of a register, in its own type.
    fn held(&mut self, v: VarId) -> Value {
        match self.registers[v.index()] {
            Register::Once(Some(value)) => value,
            // never assigned, so never reached
            Register::Once(None) if self.single[v.index()] => self.b.ins().f32const(0.0),
            Register::Once(None) => self.zero(self.func.vars[v.index()].ty),
            Register::Many(variable) => self.b.use_var(variable),
            Register::InMemory(slot) => {
                let ty = if self.single[v.index()] { types::F32 } else { ty(self.func.vars[v.index()].ty) };
                self.b.ins().stack_load(types::I64, ty, slot, 0)
            }
            Register::Lane(Lane { pair, lane }) => self.lane(pair, lane),
        }
    }

    /// The value of an operand as a Float of 32 bits. One of 64 is rounded.
    fn as_single(&mut self, operand: Operand) -> Value {
        match operand {
            Operand::Var(v) if self.single[v.index()] => self.held(v),
            Operand::F64(bits) => self.b.ins().f32const(f64::from_bits(bits) as f32),
            _ => {
                let value = self.get(operand);
                self.b.ins().fdemote(types::F32, value)
            }
        }
    }

    fn are_single(&self, operands: &[Operand]) -> bool {
        operands.iter().all(|operand| passes::is_single(self.single, *operand))
    }

    // Control

    fn list(&mut self, stmts: &[Stmt]) -> Result<Flow> {
        let mut rest = stmts;
        while let [stmt, behind @ ..] = rest {
            if self.entry
                && let [second, after @ ..] = behind
                && let Some(pair) = self.facts.pairs.assigned(rest)
            {
                self.both(pair, stmt, second)?;
                rest = after;
                continue;
            }
            if self.stmt(stmt)? == Flow::Ended {
                return Ok(Flow::Ended);
            }
            rest = behind;
        }
        Ok(Flow::On)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<Flow> {
        match stmt {
            Stmt::Let { dst, op, args } => match self.facts.pairs.folded(stmt).filter(|_| self.entry) {
                Some(pair) => {
                    let value = self.folded(pair, *op);
                    self.set(*dst, value);
                }
                None => self.operation(*dst, *op, args)?,
            },
            Stmt::Checked { dst, op, args, site } => self.checked(*dst, *op, *args, *site),
            Stmt::Load { dst, column, row } => {
                let value = self.loaded(*dst, *column, *row);
                self.set(*dst, value);
            }
            Stmt::Store { column, row, value } => self.store(*column, *row, *value),
            Stmt::Atomic { op, column, row, value, site } => self.atomic(*op, *column, *row, *value, *site),
            Stmt::FetchAdd { dst, column, row, value } => {
                let old = self.fetch_add(*column, *row, *value);
                self.set(*dst, old);
            }
            Stmt::Emit { key, value, order, text } => {
                let groups = self.constant_word(state::GROUPS, types::I64);
                let [value, order] = [value, order].map(|operand| self.get(*operand));
                let key = key.map(|key| self.get(key));
                match (key, text) {
                    (Some(key), None) => return self.emit([groups, key, value, order]),
                    (Some(key), Some(column)) => {
                        let (bytes, _) = self.place(*column, Operand::I64(0));
                        self.help(Helper::EmitText, &[groups, key, value, order, bytes])?
                    }
                    (None, None) => {
                        let none = self.get(Operand::I64(0));
                        self.help(Helper::EmitParts, &[groups, value, order, none])?
                    }
                    (None, Some(column)) => {
                        let (bytes, _) = self.place(*column, Operand::I64(0));
                        self.help(Helper::EmitParts, &[groups, value, order, bytes])?
                    }
                };
            }
            Stmt::KeyPart { code, word } => {
                let groups = self.constant_word(state::GROUPS, types::I64);
                let [code, word] = [code, word].map(|operand| self.get(*operand));
                self.help(Helper::KeyPart, &[groups, code, word])?;
            }
            Stmt::Alloc { .. } | Stmt::Try { .. } => return Err(unexpanded()),
            Stmt::If { cond, then, otherwise } => return self.branch(*cond, then, otherwise),
            Stmt::Block { label, body } => return self.block(*label, body),
            Stmt::Loop { label, body } => return self.repeat(*label, body),
            Stmt::Break(label) => {
                self.go(label.index());
                return Ok(Flow::Ended);
            }
            Stmt::Call { func, args, dsts, depth } => self.call(*func, args, dsts, *depth),
            Stmt::Return(values) => {
                if self.entry {
                    self.go(self.func.labels);
                } else {
                    let values = values.iter().map(|value| self.get(*value)).collect();
                    self.finish(values);
                }
                return Ok(Flow::Ended);
            }
            Stmt::Trap { site, operands } => {
                self.trap(*site, operands);
                return Ok(Flow::Ended);
            }
            Stmt::Place(_) => {}
            Stmt::Meet { dst, value } => {
                let value = self.get(*value);
                self.set(*dst, value);
            }
            Stmt::Poll => self.poll(),
            Stmt::Begin { index, tick, check } => self.begin(*index, *tick, *check),
        }
        Ok(Flow::On)
    }

    /// Jumps to the end of the block or loop with this label.
    fn go(&mut self, label: usize) {
        let (block, used) = self.labels[label].as_mut().expect("a break is inside of what it leaves");
        *used = true;
        let block = *block;
        self.b.ins().jump(block, &[]);
    }

    /// Goes to the end of the block or loop with this label if `cond` holds, else on, with one branch. So what both
    /// ways compute is computed once, before it.
    fn leave_if(&mut self, cond: Value, label: usize) {
        let on = self.b.create_block();
        let (out, used) = self.labels[label].as_mut().expect("a break is inside of what it leaves");
        *used = true;
        let out = *out;
        self.b.ins().brif(cond, out, &[], on, &[]);
        self.b.seal_block(on);
        self.b.switch_to_block(on);
    }

    fn branch(&mut self, cond: Operand, then: &[Stmt], otherwise: &[Stmt]) -> Result<Flow> {
        if let Operand::Bool(cond) = cond {
            return self.list(if cond { then } else { otherwise });
        }
        let cond = self.get(cond);
        if let [Stmt::Break(label)] = then
            && otherwise.is_empty()
        {
            self.leave_if(cond, label.index());
            return Ok(Flow::On);
        }
        let after = self.b.create_block();
        let mut sides = [(then, after), (otherwise, after)];
        for (list, block) in &mut sides {
            if !list.is_empty() {
                *block = self.b.create_block();
                if matches!(list.last(), Some(Stmt::Trap { .. })) {
                    self.b.set_cold_block(*block);
                }
            }
        }
        self.b.ins().brif(cond, sides[0].1, &[], sides[1].1, &[]);
        let mut flow = if sides.iter().any(|(list, _)| list.is_empty()) { Flow::On } else { Flow::Ended };
        for (list, block) in sides {
            if list.is_empty() {
                continue;
            }
            self.b.seal_block(block);
            self.b.switch_to_block(block);
            if self.list(list)? == Flow::On {
                flow = Flow::On;
                self.b.ins().jump(after, &[]);
            }
        }
        self.b.seal_block(after);
        if flow == Flow::On {
            self.b.switch_to_block(after);
        }
        Ok(flow)
    }

    fn block(&mut self, label: LabelId, body: &[Stmt]) -> Result<Flow> {
        let after = self.b.create_block();
        self.labels[label.index()] = Some((after, false));
        if self.list(body)? == Flow::On {
            self.go(label.index());
        }
        Ok(self.close(label))
    }

    fn repeat(&mut self, label: LabelId, body: &[Stmt]) -> Result<Flow> {
        if let Some(ticks) = LoopOverTicks::of(self.program, self.func, label, body) {
            return self.strides(label, ticks);
        }
        let [head, after] = [self.b.create_block(), self.b.create_block()];
        let before = if self.loops == 0 { self.open_columns(body) } else { self.bases.clone() };
        self.loops += 1;
        self.labels[label.index()] = Some((after, false));
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        if self.list(body)? == Flow::On {
            self.b.ins().jump(head, &[]);
        }
        self.b.seal_block(head);
        self.loops -= 1;
        self.bases = before;
        Ok(self.close(label))
    }

    /// A loop over ticks in strides of [`state::POLL_INTERVAL`]. Only between strides does it check whether the launch
    /// was stopped. So each other tick needs one comparison only.
    fn strides(&mut self, label: LabelId, ticks: LoopOverTicks<'_>) -> Result<Flow> {
        let [head, after, pause, look, on] = [(); 5].map(|()| self.b.create_block());
        let before = if self.loops == 0 { self.open_columns(ticks.inner) } else { self.bases.clone() };
        let bound = self.b.declare_var(types::I64);
        self.loops += 1;
        self.labels[label.index()] = Some((after, false));
        self.stride(bound, &ticks);
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        let tick = self.get(ticks.tick.into());
        self.start(ticks.index, tick);
        if self.list(ticks.inner)? == Flow::On {
            self.stmt(ticks.next)?;
            let tick = self.get(ticks.tick.into());
            let stride = self.b.use_var(bound);
            let more = self.b.ins().icmp(IntCC::SignedLessThan, tick, stride);
            self.b.ins().brif(more, head, &[], pause, &[]);
            self.b.seal_block(pause);
            self.b.switch_to_block(pause);
            let end = self.get(ticks.end);
            let over = self.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, tick, end);
            self.labels[label.index()] = Some((after, true));
            self.b.ins().brif(over, after, &[], look, &[]);
            self.b.set_cold_block(look);
            self.b.seal_block(look);
            self.b.switch_to_block(look);
            self.start(ticks.index, tick);
            self.look(on);
            self.b.set_cold_block(on);
            self.stride(bound, &ticks);
            self.b.ins().jump(head, &[]);
        } else {
            for unreached in [pause, look, on] {
                self.b.seal_block(unreached);
            }
        }
        self.b.seal_block(head);
        self.loops -= 1;
        self.bases = before;
        Ok(self.close(label))
    }

    /// Computes the end of the next stride.
    fn stride(&mut self, bound: Variable, ticks: &LoopOverTicks<'_>) {
        let [tick, end] = [ticks.tick.into(), ticks.end].map(|operand| self.get(operand));
        let last = self.b.ins().iconst(types::I64, state::POLL_INTERVAL - 1);
        let last = self.b.ins().bor(tick, last);
        let stride = self.b.ins().iadd_imm_s(last, 1);
        let stride = self.b.ins().smin(stride, end);
        self.b.def_var(bound, stride);
    }

    /// Continues after a block or loop, if anything leaves it.
    fn close(&mut self, label: LabelId) -> Flow {
        let (after, used) = self.labels[label.index()].take().expect("it was opened");
        self.b.seal_block(after);
        if !used {
            return Flow::Ended;
        }
        self.b.switch_to_block(after);
        Flow::On
    }

    fn call(&mut self, func: FuncId, args: &[Operand], dsts: &[VarId], depth: Option<SiteId>) {
        let polls = self.facts.polls[func.index()];
        let left = depth.map(|site| {
            self.poll();
            let left = self.load_word(state::DEPTH);
            let exhausted = self.b.ins().icmp_imm_s(IntCC::Equal, left, 0);
            self.trap_if(exhausted, site);
            let fewer = self.b.ins().iadd_imm_s(left, -1);
            self.store_word(state::DEPTH, fewer);
            left
        });
        if polls {
            self.save_polls();
        }
        let mut values = vec![self.state];
        values.extend(args.iter().map(|arg| self.get(*arg)));
        let callee = match self.callees[func.index()] {
            Some(callee) => callee,
            None => self.linker.reference(self.ids[func.index()], self.b.func),
        };
        self.callees[func.index()] = Some(callee);
        let call = self.b.ins().call(callee, &values);
        let mut results = self.b.inst_results(call).to_vec();
        if let Some(left) = left {
            self.store_word(state::DEPTH, left);
        }
        if self.facts.stops[func.index()] {
            let status = results.remove(0);
            let on = self.b.create_block();
            self.b.ins().brif(status, self.ended, &[], on, &[]);
            self.b.seal_block(on);
            self.b.switch_to_block(on);
        }
        if polls {
            self.reload_polls();
        }
        for (dst, value) in dsts.iter().zip(results) {
            self.set(*dst, value);
        }
    }

    /// Begins a tick of an element.
    fn start(&mut self, index: Operand, tick: Value) {
        let index = self.get(index);
        for (variable, value) in [(self.tick, tick), (self.index, index)] {
            self.b.def_var(variable.expect("only the entry begins"), value);
        }
        if self.facts.shares_position {
            self.store_word(state::TICK, tick);
            self.store_word(state::INDEX, index);
        }
        if self.program.uses_random {
            let zero = self.b.ins().iconst(types::I64, 0);
            match self.draw {
                Some(draw) => self.b.def_var(draw, zero),
                None => self.store_word(state::DRAW, zero),
            }
        }
    }

    fn begin(&mut self, index: Operand, tick: Operand, check: bool) {
        let tick = self.get(tick);
        self.start(index, tick);
        if check {
            // nearly always nothing has stopped, and one comparison shows that
            let address = self.constant_word(state::STOP_KEY, types::I64);
            let flags = self.word_flags();
            let stop = self.b.ins().load(types::I64, flags, address, 0);
            let something = self.b.ins().icmp_imm_s(IntCC::NotEqual, stop, Key::NONE.0 as i64);
            let [look, on] = [(); 2].map(|()| self.b.create_block());
            self.b.ins().brif(something, look, &[], on, &[]);
            self.b.seal_block(look);
            self.b.set_cold_block(look);
            self.b.switch_to_block(look);
            self.look(on);
        } else if self.program.fused_ticks {
            // a long loop over ticks must notice a cancel even if its body never polls
            self.poll_by(tick);
        }
    }

    // Traps

    fn trap(&mut self, site: SiteId, operands: &[Operand]) {
        for (i, operand) in operands.iter().enumerate() {
            let value = self.get(*operand);
            let value = match self.func.ty(*operand) {
                Scalar::Bool => self.b.ins().uextend(types::I64, value),
                Scalar::I32 => {
                    let value = self.b.ins().ireduce(types::I32, value);
                    self.b.ins().sextend(types::I64, value)
                }
                Scalar::I64 | Scalar::F64 => value,
            };
            self.store_word(state::WORDS + i, value);
        }
        if operands.is_empty() {
            let block = self.trap_block(site);
            self.b.ins().jump(block, &[]);
        } else {
            self.trap_here(site);
        }
    }

    fn trap_here(&mut self, site: SiteId) {
        let site = self.b.ins().iconst(types::I64, i64::from(site.0) + 1);
        self.store_word(state::SITE, site);
        self.b.ins().jump(self.ended, &[]);
    }

    fn trap_block(&mut self, site: SiteId) -> Block {
        match self.traps.get(&site) {
            Some(block) => *block,
            None => {
                let block = self.b.create_block();
                self.traps.insert(site, block);
                block
            }
        }
    }

    fn trap_if(&mut self, cond: Value, site: SiteId) {
        let trap = self.trap_block(site);
        let on = self.b.create_block();
        self.b.ins().brif(cond, trap, &[], on, &[]);
        self.b.seal_block(on);
        self.b.switch_to_block(on);
    }

    fn checked(&mut self, dst: VarId, op: CheckedOp, args: [Operand; 2], site: SiteId) {
        let [a, b] = args.map(|arg| self.get(arg));
        let (value, overflow) = match (op, args) {
            // with a constant on one side the result overflows in one direction only, which a comparison detects
            (CheckedOp::Add, [_, Operand::I64(c)]) => {
                let sum = self.b.ins().iadd(a, b);
                (sum, self.b.ins().icmp(wrong_way(c), sum, a))
            }
            (CheckedOp::Add, [Operand::I64(c), _]) => {
                let sum = self.b.ins().iadd(a, b);
                (sum, self.b.ins().icmp(wrong_way(c), sum, b))
            }
            (CheckedOp::Sub, [_, Operand::I64(c)]) => {
                let difference = self.b.ins().isub(a, b);
                (difference, self.b.ins().icmp(wrong_way(c).swap_args(), difference, a))
            }
            (CheckedOp::Add, _) => self.b.ins().sadd_overflow(a, b),
            (CheckedOp::Sub, _) => self.b.ins().ssub_overflow(a, b),
            (CheckedOp::Mul, _) => self.b.ins().smul_overflow(a, b),
            (CheckedOp::And, _) => {
                let bits = self.b.ins().band(a, b);
                (bits, self.b.ins().icmp_imm_s(IntCC::SignedLessThan, bits, 0))
            }
        };
        self.trap_if(overflow, site);
        self.set(dst, value);
    }

    // Columns

    /// The address, offset and flags of a slot.
    fn slot(&mut self, column: ColumnId, row: Operand) -> (Value, i32, MemFlagsData) {
        let (base, flags) = (self.column_base(column), self.column_flags(column));
        let row = self.get(row);
        match self.layout.address(column) {
            // the column's word includes the offset
            Address::Strided { stride, .. } => {
                let bytes = |more: i64| more.checked_mul(stride as i64).and_then(|bytes| i32::try_from(bytes).ok());
                let sum = self.sums.get(&row).and_then(|(from, more)| Some((*from, bytes(*more)?)));
                let (row, more) = sum.unwrap_or((row, 0));
                let distance = match stride {
                    1 => row,
                    s if s.is_power_of_two() => self.b.ins().ishl_imm_u(row, i64::from(s.trailing_zeros())),
                    s => self.b.ins().imul_imm_s(row, s as i64),
                };
                (self.b.ins().iadd(base, distance), more, flags)
            }
        }
    }

    /// The address and flags of a slot, for instructions without an offset.
    fn place(&mut self, column: ColumnId, row: Operand) -> (Value, MemFlagsData) {
        let (address, at, flags) = self.slot(column, row);
        (if at == 0 { address } else { self.b.ins().iadd_imm_s(address, i64::from(at)) }, flags)
    }

    fn loaded(&mut self, dst: VarId, column: ColumnId, row: Operand) -> Value {
        let (address, at, flags) = self.slot(column, row);
        let wanted = self.func.vars[dst.index()].ty;
        match (self.program.columns[column.index()].storage, wanted) {
            (Storage::U8, Scalar::I32 | Scalar::I64) => self.b.ins().uload8(types::I64, flags, address, at),
            (Storage::U32, _) => self.b.ins().uload32(flags, address, at),
            (Storage::I32, _) => self.b.ins().sload32(flags, address, at),
            (Storage::F32, _) => {
                let single = self.b.ins().load(types::F32, flags, address, at);
                if self.single[dst.index()] { single } else { self.b.ins().fpromote(types::F64, single) }
            }
            _ => self.b.ins().load(ty(wanted), flags, address, at),
        }
    }

    fn store(&mut self, column: ColumnId, row: Operand, value: Operand) {
        let (address, at, flags) = self.slot(column, row);
        let given = self.func.ty(value);
        let storage = self.program.columns[column.index()].storage;
        let value = if storage == Storage::F32 { self.as_single(value) } else { self.get(value) };
        match (storage, given) {
            (Storage::U8, Scalar::I32 | Scalar::I64) => self.b.ins().istore8(flags, value, address, at),
            (Storage::U32 | Storage::I32, _) => self.b.ins().istore32(flags, value, address, at),
            _ => self.b.ins().store(flags, value, address, at),
        };
    }

    fn atomic(&mut self, op: AtomicOp, column: ColumnId, row: Operand, value: Operand, site: Option<SiteId>) {
        let (address, flags) = self.place(column, row);
        let value = self.get(value);
        let Some(at) = self.facts.privatized.iter().position(|privatized| privatized.column == column) else {
            return self.update(op, address, flags, value, site);
        };
        let [own, shared, done] = [(); 3].map(|()| self.b.create_block());
        let place = self.b.append_block_param(shared, types::I64);
        let alone = self.constant_word(state::ALONE, types::I64);
        self.b.ins().brif(alone, own, &[], shared, &[address.into()]);
        self.b.seal_block(own);
        self.b.switch_to_block(own);
        let ty = if op == AtomicOp::FAdd { types::F64 } else { types::I64 };
        let old = self.b.ins().load(ty, flags, address, 0);
        let new = match op {
            AtomicOp::FAdd => self.b.ins().fadd(old, value),
            AtomicOp::Add if site.is_some() => {
                let (sum, overflow) = self.b.ins().sadd_overflow(old, value);
                let keep = self.b.create_block();
                // the private sum would overflow, so the number is added to the program's row, which decides whether
                // that overflows
                let away = state::COLUMNS + self.program.columns.len() + self.program.params.len() + at;
                let away = self.constant_word(away, types::I64);
                let program = self.b.ins().iadd(address, away);
                self.b.ins().brif(overflow, shared, &[program.into()], keep, &[]);
                self.b.seal_block(keep);
                self.b.switch_to_block(keep);
                sum
            }
            AtomicOp::Add => self.b.ins().iadd(old, value),
            AtomicOp::Min => self.b.ins().smin(old, value),
            AtomicOp::Max => self.b.ins().smax(old, value),
            AtomicOp::And => self.b.ins().band(old, value),
            AtomicOp::Or => self.b.ins().bor(old, value),
            AtomicOp::Xor => self.b.ins().bxor(old, value),
        };
        self.b.ins().store(flags, new, address, 0);
        self.b.ins().jump(done, &[]);
        self.b.seal_block(shared);
        self.b.switch_to_block(shared);
        self.update(op, place, flags, value, site);
        self.b.ins().jump(done, &[]);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
    }

    /// Reads a slot and adds to it. Where it counts the rows that were taken from a heap, the rows are those that the
    /// thread has taken in advance.
    fn fetch_add(&mut self, column: ColumnId, row: Operand, value: Operand) -> Value {
        let (address, flags) = self.place(column, row);
        let value = self.get(value);
        let Some(at) = self.facts.counters.iter().position(|counter| *counter == column) else {
            return self.b.ins().atomic_rmw(types::I64, flags, AtomicRmwOp::Add, address, value);
        };
        let word = reservation::word(self.program, self.facts, at);
        let [own, none, many, few, done] = [(); 5].map(|()| self.b.create_block());
        let old = self.b.append_block_param(done, types::I64);
        let next = self.load_word(word);
        let end = self.load_word(word + state::COUNTER_END);
        let after = self.b.ins().iadd(next, value);
        let fits = self.b.ins().icmp(IntCC::SignedLessThanOrEqual, after, end);
        self.b.ins().brif(fits, own, &[], none, &[]);
        self.b.seal_block(own);
        self.b.switch_to_block(own);
        self.store_word(word, after);
        self.b.ins().jump(done, &[next.into()]);
        self.b.set_cold_block(none);
        self.b.seal_block(none);
        self.b.switch_to_block(none);
        let batch = self.constant_word(word + state::COUNTER_BATCH, types::I64);
        let several = self.b.ins().imul_imm_s(value, reservation::LEAST_IN_BATCH);
        let is_small = self.b.ins().icmp(IntCC::SignedLessThanOrEqual, several, batch);
        self.b.ins().brif(is_small, many, &[], few, &[]);
        for block in [many, few] {
            self.b.set_cold_block(block);
            self.b.seal_block(block);
            self.b.switch_to_block(block);
            let count = if block == many { batch } else { value };
            let first = self.b.ins().atomic_rmw(types::I64, flags, AtomicRmwOp::Add, address, count);
            if block == many {
                let next = self.b.ins().iadd(first, value);
                self.store_word(word, next);
                let end = self.b.ins().iadd(first, batch);
                self.store_word(word + state::COUNTER_END, end);
            }
            self.b.ins().jump(done, &[first.into()]);
        }
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        old
    }

    /// An atomic update of the value at an address.
    fn update(&mut self, op: AtomicOp, address: Value, flags: MemFlagsData, value: Value, site: Option<SiteId>) {
        let rmw = match op {
            AtomicOp::FAdd => return self.atomic_float_add(address, flags, value),
            AtomicOp::Add => AtomicRmwOp::Add,
            AtomicOp::Min => AtomicRmwOp::Smin,
            AtomicOp::Max => AtomicRmwOp::Smax,
            AtomicOp::And => AtomicRmwOp::And,
            AtomicOp::Or => AtomicRmwOp::Or,
            AtomicOp::Xor => AtomicRmwOp::Xor,
        };
        if let AtomicOp::Min | AtomicOp::Max = op {
            // most updates change nothing, and a load does not disturb other cores
            let beyond = if op == AtomicOp::Min { IntCC::SignedLessThan } else { IntCC::SignedGreaterThan };
            let now = self.b.ins().atomic_load(types::I64, flags, address);
            let changes = self.b.ins().icmp(beyond, value, now);
            let [change, on] = [(); 2].map(|()| self.b.create_block());
            self.b.ins().brif(changes, change, &[], on, &[]);
            self.b.seal_block(change);
            self.b.switch_to_block(change);
            self.b.ins().atomic_rmw(types::I64, flags, rmw, address, value);
            self.b.ins().jump(on, &[]);
            self.b.seal_block(on);
            self.b.switch_to_block(on);
            return;
        }
        let old = self.b.ins().atomic_rmw(types::I64, flags, rmw, address, value);
        if let (AtomicOp::Add, Some(site)) = (op, site) {
            // the slot has wrapped, but after a trap nobody reads it
            let (_, overflow) = self.b.ins().sadd_overflow(old, value);
            self.trap_if(overflow, site);
        }
    }

    /// Adds a Float atomically. No machine has an instruction for that, so it repeats a compare-and-swap until it
    /// succeeds.
    fn atomic_float_add(&mut self, address: Value, flags: MemFlagsData, value: Value) {
        let (retry, done) = (self.b.create_block(), self.b.create_block());
        let seen = self.b.append_block_param(retry, types::I64);
        let first = self.b.ins().load(types::I64, flags, address, 0);
        self.b.ins().jump(retry, &[first.into()]);
        self.b.switch_to_block(retry);
        let float = self.b.ins().bitcast(types::F64, MemFlagsData::new(), seen);
        let sum = self.b.ins().fadd(float, value);
        let bits = self.b.ins().bitcast(types::I64, MemFlagsData::new(), sum);
        let found = self.b.ins().atomic_cas(flags, address, seen, bits);
        let swapped = self.b.ins().icmp(IntCC::Equal, found, seen);
        self.b.ins().brif(swapped, done, &[], retry, &[found.into()]);
        self.b.seal_block(retry);
        self.b.switch_to_block(done);
        self.b.seal_block(done);
    }

    // Operations

    fn operation(&mut self, dst: VarId, op: Op, args: &[Operand]) -> Result<()> {
        let wanted = self.func.vars[dst.index()].ty;
        let value = if self.single[dst.index()] {
            self.single_operation(op, args)?
        } else if matches!(op, Op::FCmp(_)) && self.are_single(args) {
            let values: Vec<Value> = args.iter().map(|arg| self.as_single(*arg)).collect();
            self.compute(wanted, op, args, &values)?
        } else if args.iter().any(|arg| self.func.ty(*arg) == Scalar::I32) {
            self.narrow(wanted, op, args)?
        } else {
            let values: Vec<Value> = args.iter().map(|arg| self.get(*arg)).collect();
            let value = self.compute(wanted, op, args, &values)?;
            if let (Op::Add, [Operand::Var(_), Operand::I64(more)]) = (op, args) {
                let (from, before) = self.sums.get(&values[0]).copied().unwrap_or((values[0], 0));
                self.sums.insert(value, (from, before.wrapping_add(*more)));
            }
            value
        };
        self.set(dst, value);
        Ok(())
    }

    /// An operation whose result is a Float of 32 bits.
    fn single_operation(&mut self, op: Op, args: &[Operand]) -> Result<Value> {
        match op {
            Op::Copy | Op::FSingle => Ok(self.as_single(args[0])),
            Op::IntToFloat => {
                let value = self.get(args[0]);
                Ok(self.b.ins().fcvt_from_sint(types::F32, value))
            }
            _ => {
                let value = |arg: &Operand| match self.func.ty(*arg) {
                    Scalar::F64 => self.as_single(*arg),
                    _ => self.get(*arg),
                };
                let values: Vec<Value> = args.iter().map(value).collect();
                self.compute(Scalar::F64, op, args, &values)
            }
        }
    }

    /// An operation on I32 operands.
    fn narrow(&mut self, wanted: Scalar, op: Op, args: &[Operand]) -> Result<Value> {
        let mut values: Vec<Value> = args.iter().map(|arg| self.get(*arg)).collect();
        // the upper half is zero, so operations that ignore the sign may use all 64 bits
        if matches!(op, Op::Copy | Op::Widen | Op::Select | Op::And | Op::Or | Op::Xor | Op::UCmp(_))
            || matches!(op, Op::ICmp(Cmp::Eq | Cmp::Ne))
        {
            return self.compute(wanted, op, args, &values);
        }
        for value in &mut values {
            *value = self.b.ins().ireduce(types::I32, *value);
        }
        let value = self.compute(wanted, op, args, &values)?;
        Ok(if wanted == Scalar::I32 { self.b.ins().uextend(types::I64, value) } else { value })
    }

    fn compute(&mut self, wanted: Scalar, op: Op, args: &[Operand], values: &[Value]) -> Result<Value> {
        let v = |i: usize| values[i];
        let ins = self.b.ins();
        Ok(match op {
            Op::Copy | Op::Widen => v(0),
            Op::Add => ins.iadd(v(0), v(1)),
            Op::Sub => ins.isub(v(0), v(1)),
            Op::Mul => ins.imul(v(0), v(1)),
            Op::MulHi => ins.smulhi(v(0), v(1)),
            Op::UMulHi => ins.umulhi(v(0), v(1)),
            Op::Div => ins.sdiv(v(0), v(1)),
            // computed from the quotient, which a floored division needs as well: so both share one division
            Op::Rem => {
                let quotient = ins.sdiv(v(0), v(1));
                let product = self.b.ins().imul(quotient, v(1));
                self.b.ins().isub(v(0), product)
            }
            Op::UDiv => ins.udiv(v(0), v(1)),
            Op::URem => ins.urem(v(0), v(1)),
            Op::MulMod => self.modulo(Helper::MulMod, values)?,
            Op::AddMod => self.modulo(Helper::AddMod, values)?,
            // one instruction without a constant
            Op::And if args[1] == Operand::I64(0xffff_ffff) => self.low_half(v(0)),
            Op::And => ins.band(v(0), v(1)),
            Op::Or => ins.bor(v(0), v(1)),
            Op::Xor => ins.bxor(v(0), v(1)),
            Op::Shl => ins.ishl(v(0), v(1)),
            Op::Shr => ins.sshr(v(0), v(1)),
            Op::UShr => ins.ushr(v(0), v(1)),
            Op::Clz => ins.clz(v(0)),
            Op::ICmp(cmp) => ins.icmp(signed(cmp), v(0), v(1)),
            Op::UCmp(cmp) => ins.icmp(signed(cmp).unsigned(), v(0), v(1)),
            Op::FCmp(cmp) => ins.fcmp(float(cmp), v(0), v(1)),
            Op::FAdd => ins.fadd(v(0), v(1)),
            Op::FSub => ins.fsub(v(0), v(1)),
            Op::FMul => ins.fmul(v(0), v(1)),
            Op::FDiv => ins.fdiv(v(0), v(1)),
            Op::FNeg => ins.fneg(v(0)),
            Op::FAbs => ins.fabs(v(0)),
            Op::FSqrt => ins.sqrt(v(0)),
            Op::FFloor => ins.floor(v(0)),
            Op::FCeil => ins.ceil(v(0)),
            Op::FTrunc => ins.trunc(v(0)),
            Op::FRint => ins.nearest(v(0)),
            Op::FRound => {
                // the greatest number below one half: one half itself would round this very number up to 1
                let half = ins.f64const(0.499_999_999_999_999_94);
                let half = self.b.ins().fcopysign(half, v(0));
                let sum = self.b.ins().fadd(v(0), half);
                self.b.ins().trunc(sum)
            }
            Op::FSingle => {
                let single = ins.fdemote(types::F32, v(0));
                self.b.ins().fpromote(types::F64, single)
            }
            Op::FRem => self.remainder(v(0), v(1))?,
            Op::FNextAfter => self.help(Helper::NextAfter, values)?,
            Op::FCopySign => ins.fcopysign(v(0), v(1)),
            Op::Math(f) => self.math(f, values)?,
            Op::IntToFloat => ins.fcvt_from_sint(types::F64, v(0)),
            Op::FloatToInt => ins.fcvt_to_sint_sat(types::I64, v(0)),
            Op::FloatBits => ins.bitcast(types::I64, MemFlagsData::new(), v(0)),
            Op::SingleBits => {
                let single = ins.fdemote(types::F32, v(0));
                let bits = self.b.ins().bitcast(types::I32, MemFlagsData::new(), single);
                self.b.ins().uextend(types::I64, bits)
            }
            Op::FloatFromBits => ins.bitcast(types::F64, MemFlagsData::new(), v(0)),
            Op::Narrow => self.low_half(v(0)),
            Op::BoolToInt => ins.uextend(types::I64, v(0)),
            Op::Not => ins.icmp_imm_s(IntCC::Equal, v(0), 0),
            Op::Select => ins.select(v(0), v(1), v(2)),
            Op::Ctx(ir::Ctx::Tick) => self.position(self.tick, state::TICK),
            Op::Ctx(ir::Ctx::Stopped) => self.is_stopped(),
            Op::Ctx(ir::Ctx::Slot) => self.constant_word(state::SLOT, types::I64),
            Op::Ctx(ir::Ctx::Index) => self.position(self.index, state::INDEX),
            Op::Random => self.random()?,
            Op::Param(param) => {
                let word = state::COLUMNS + self.program.columns.len() + param.index();
                if wanted == Scalar::I32 { self.constant_half(word) } else { self.constant_word(word, ty(wanted)) }
            }
        })
    }

    /// The low 32 bits.
    fn low_half(&mut self, value: Value) -> Value {
        let half = self.b.ins().ireduce(types::I32, value);
        self.b.ins().uextend(types::I64, half)
    }

    /// Emits a pair: adds to the cell of its key ([`Cells::add`]), if it has one.
    fn emit(&mut self, [groups, key, value, order]: [Value; 4]) -> Result<Flow> {
        let flags = MemFlagsData::trusted();
        let at = |field: usize| (offset_of!(Emitter, cells) + field) as i32;
        let [pairs, total, first] =
            [offset_of!(Cells, pairs), offset_of!(Cells, rows), offset_of!(Cells, rows) + offset_of!(Cell, first)]
                .map(at);
        let [cell, fits, call, done] = [(); 4].map(|()| self.b.create_block());
        self.b.set_cold_block(call);
        let base = self.b.ins().load(types::I64, flags, groups, at(offset_of!(Cells, base)));
        let count = self.b.ins().load(types::I64, flags, groups, at(offset_of!(Cells, count)));
        let place = self.b.ins().isub(key, base);
        let has_cell = self.b.ins().icmp(IntCC::UnsignedLessThan, place, count);
        self.b.ins().brif(has_cell, cell, &[], call, &[]);
        self.b.seal_block(cell);
        self.b.switch_to_block(cell);
        let bytes = self.b.ins().imul_imm_s(place, size_of::<Cell>() as i64);
        let row = self.b.ins().iadd(groups, bytes);
        let before = self.b.ins().load(types::I64, flags, row, total);
        let (sum, overflows) = self.b.ins().sadd_overflow(before, value);
        self.b.ins().brif(overflows, call, &[], fits, &[]);
        for block in [fits, call] {
            self.b.seal_block(block);
        }
        self.b.switch_to_block(fits);
        self.b.ins().store(flags, sum, row, total);
        let earlier = self.b.ins().load(types::I64, flags, row, first);
        let least = self.b.ins().umin(earlier, order);
        self.b.ins().store(flags, least, row, first);
        let taken = self.b.ins().load(types::I64, flags, groups, pairs);
        let taken = self.b.ins().iadd_imm_s(taken, 1);
        self.b.ins().store(flags, taken, groups, pairs);
        self.b.ins().jump(done, &[]);
        self.b.switch_to_block(call);
        self.help(Helper::Emit, &[groups, key, value, order])?;
        self.b.ins().jump(done, &[]);
        self.b.seal_block(done);
        self.b.switch_to_block(done);
        Ok(Flow::On)
    }

    fn help(&mut self, helper: Helper, args: &[Value]) -> Result<Value> {
        let callee = match self.helpers.get(&helper) {
            Some(callee) => *callee,
            None => {
                let callee = self.linker.helper(helper, self.b.func)?;
                self.helpers.insert(helper, callee);
                callee
            }
        };
        let call = self.b.ins().call(callee, args);
        Ok(self.b.inst_results(call)[0])
    }

    fn math(&mut self, function: MathFn, args: &[Value]) -> Result<Value> {
        self.help(Helper::Math(function), args)
    }

    /// C's `fmod`. Exact, and without a call where the quotient has at most 53 bits.
    ///
    /// For positive a ≥ b, let n be the integer part of the exact quotient. The rounded quotient lies between n and
    /// n + 1, because both of these are Floats. So the truncated one, q, is either of them. Then a - q * b is the
    /// remainder, or the remainder less b, respectively. Both are multiples of the last place of a or b, and no greater
    /// than b in size. So both are Floats, and a fused multiply-add computes them exactly.
    fn remainder(&mut self, a: Value, b: Value) -> Result<Value> {
        if !self.fma {
            return self.help(Helper::Remainder, &[a, b]);
        }
        let [divides, fits, wide, after] = [(); 4].map(|()| self.b.create_block());
        let result = self.b.append_block_param(after, types::F64);
        let [size, by] = [a, b].map(|x| self.b.ins().fabs(x));
        // an infinite b ends here
        let less = self.b.ins().fcmp(FloatCC::LessThan, size, by);
        self.b.ins().brif(less, after, &[a.into()], divides, &[]);
        self.b.seal_block(divides);

        self.b.switch_to_block(divides);
        let quotient = self.b.ins().fdiv(size, by);
        let limit = self.b.ins().f64const((1u64 << 53) as f64);
        let exact = self.b.ins().fcmp(FloatCC::LessThan, quotient, limit);
        self.b.ins().brif(exact, fits, &[], wide, &[]);
        self.b.seal_block(fits);
        self.b.seal_block(wide);

        self.b.switch_to_block(fits);
        let quotient = self.b.ins().trunc(quotient);
        let negated = self.b.ins().fneg(quotient);
        let rest = self.b.ins().fma(negated, by, size);
        let zero = self.b.ins().f64const(0.0);
        let below = self.b.ins().fcmp(FloatCC::LessThan, rest, zero);
        let more = self.b.ins().fadd(rest, by);
        let rest = self.b.ins().select(below, more, rest);
        let rest = self.b.ins().fcopysign(rest, a);
        self.b.ins().jump(after, &[rest.into()]);

        self.b.switch_to_block(wide);
        self.b.set_cold_block(wide);
        let rest = self.help(Helper::Remainder, &[a, b])?;
        self.b.ins().jump(after, &[rest.into()]);

        self.b.seal_block(after);
        self.b.switch_to_block(after);
        Ok(result)
    }

    /// A sum or product modulo a number. It uses 128 bits only where 64 do not suffice.
    fn modulo(&mut self, helper: Helper, args: &[Value]) -> Result<Value> {
        let [a, b, m] = [args[0], args[1], args[2]];
        let (value, overflow) = match helper {
            Helper::MulMod => self.b.ins().smul_overflow(a, b),
            _ => self.b.ins().sadd_overflow(a, b),
        };
        let [narrow, wide, after] = [self.b.create_block(), self.b.create_block(), self.b.create_block()];
        let result = self.b.append_block_param(after, types::I64);
        self.b.ins().brif(overflow, wide, &[], narrow, &[]);
        self.b.seal_block(narrow);
        self.b.seal_block(wide);

        self.b.switch_to_block(narrow);
        let quotient = self.b.ins().sdiv(value, m);
        let product = self.b.ins().imul(quotient, m);
        let remainder = self.b.ins().isub(value, product);
        let floored = self.b.ins().iadd(remainder, m);
        let zero = self.b.ins().iconst(types::I64, 0);
        let negative = self.b.ins().icmp(IntCC::SignedLessThan, remainder, zero);
        let remainder = self.b.ins().select(negative, floored, remainder);
        self.b.ins().jump(after, &[remainder.into()]);

        self.b.switch_to_block(wide);
        let remainder = self.help(helper, args)?;
        self.b.ins().jump(after, &[remainder.into()]);

        self.b.seal_block(after);
        self.b.switch_to_block(after);
        Ok(result)
    }

    fn random(&mut self) -> Result<Value> {
        let draw = match self.draw {
            Some(draw) => self.b.use_var(draw),
            None => self.load_word(state::DRAW),
        };
        let seed = self.constant_word(state::SEED, types::I64);
        let section = self.constant_word(state::SECTION, types::I64);
        let tick = self.position(self.tick, state::TICK);
        let index = self.position(self.index, state::INDEX);
        let bits = self.help(Helper::Random, &[seed, section, tick, index, draw])?;
        let next = self.b.ins().iadd_imm_s(draw, 1);
        match self.draw {
            Some(draw) => self.b.def_var(draw, next),
            None => self.store_word(state::DRAW, next),
        }
        Ok(bits)
    }
}

/// How `x + c` compares to `x` after an overflow.
fn wrong_way(c: i64) -> IntCC {
    if c >= 0 { IntCC::SignedLessThan } else { IntCC::SignedGreaterThan }
}

fn signed(cmp: Cmp) -> IntCC {
    match cmp {
        Cmp::Eq => IntCC::Equal,
        Cmp::Ne => IntCC::NotEqual,
        Cmp::Lt => IntCC::SignedLessThan,
        Cmp::Le => IntCC::SignedLessThanOrEqual,
        Cmp::Gt => IntCC::SignedGreaterThan,
        Cmp::Ge => IntCC::SignedGreaterThanOrEqual,
    }
}

fn float(cmp: Cmp) -> FloatCC {
    match cmp {
        Cmp::Eq => FloatCC::Equal,
        Cmp::Ne => FloatCC::NotEqual,
        Cmp::Lt => FloatCC::LessThan,
        Cmp::Le => FloatCC::LessThanOrEqual,
        Cmp::Gt => FloatCC::GreaterThan,
        Cmp::Ge => FloatCC::GreaterThanOrEqual,
    }
}
