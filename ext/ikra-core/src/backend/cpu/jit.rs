//! Links generated code and calls it. With [`super::arena`], which owns its pages, this is the only file of the backend
//! with `unsafe` code.
//!
//! # Safety
//!
//! Generated code accesses the words of its [`State`], the columns and the stop key whose addresses the state has, and
//! its own stack. [`crate::ir`]'s contract and the packing of columns promise that these accesses are in bounds; a row
//! out of range is a bug of the compiler, as in any compiler. The other arguments are these:
//!
//! * Code is called only while the [`Code`] that owns its pages is borrowed, and the pages are freed when it is
//!   dropped.
//! * A [`State`] has addresses of memory that a launch borrows. [`super::split`] returns from the launch only after
//!   each thread to which it gave a `State` is done with it.
//! * Rows whose addresses are set by [`State::aim`] and [`State::aim_sums`] are borrowed by the caller as long as it
//!   runs that state.
//! * No call unwinds: generated code has no frames to unwind, and its helpers do not panic.
#![allow(unsafe_code, reason = "executable memory, and calls into it")]

use super::arena::Pages;
use super::helpers::{Helper, Word};
use super::split::Cost;
use super::state;
use crate::backend::collective::emitted::Emitter;
use crate::error::{Error, Result};
use crate::ir::{AtomicOp, ColumnId, ParamId, Program};
use crate::layout::{Address, Layout};
use crate::memory::column::HostColumn;
use crate::types::StrWord;
use cranelift_codegen::ir::{AbiParam, FuncRef, Function, Signature, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::{Context, control::ControlPlane};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError, default_libcall_names};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The entry of compiled code. Parameters: state, first job, end of jobs, first tick, end of ticks. Returns the job
/// with which to continue.
type Entry = extern "C" fn(*mut u64, u64, u64, u64, u64) -> u64;

/// Collects compiled functions and links them to each other and to the helpers.
pub struct Linker {
    module: JITModule,
    helpers: HashMap<Helper, FuncId>,
    /// The sum of the stack frames of all functions, in bytes.
    stack: u64,
}

impl Linker {
    /// `fresh`: put the code into a new region.
    pub fn new(isa: &OwnedTargetIsa, fresh: bool) -> Self {
        let mut builder = JITBuilder::with_isa(isa.clone(), default_libcall_names());
        builder.memory_provider(Box::new(Pages::new(fresh)));
        builder.symbol_lookup_fn(Box::new(|name| Helper::named(name).map(Helper::address)));
        Self { module: JITModule::new(builder), helpers: HashMap::new(), stack: 0 }
    }

    /// Declares a function of the program, which is defined later.
    pub fn declare(&mut self, signature: &Signature) -> Result<FuncId> {
        self.module.declare_anonymous_function(signature).map_err(internal)
    }

    /// Makes `id` callable from `function`.
    pub fn reference(&mut self, id: FuncId, function: &mut Function) -> FuncRef {
        self.module.declare_func_in_func(id, function)
    }

    /// Makes a helper callable from `function`.
    pub fn helper(&mut self, helper: Helper, function: &mut Function) -> Result<FuncRef> {
        let id = match self.helpers.get(&helper) {
            Some(id) => *id,
            None => {
                let signature = helper_signature(helper, self.module.isa().default_call_conv());
                let id = self.module.declare_function(&helper.name(), Linkage::Import, &signature).map_err(internal)?;
                self.helpers.insert(helper, id);
                id
            }
        };
        Ok(self.reference(id, function))
    }

    /// Compiles `context.func` as `id`.
    pub fn define(&mut self, id: FuncId, context: &mut Context) -> Result<()> {
        self.module.define_function_with_control_plane(id, context, &mut ControlPlane::default()).map_err(internal)?;
        let layout = context.compiled_code().and_then(|code| code.buffer.frame_layout());
        // the saved frame pointer and return address are above the frame
        self.stack += layout.map_or(0, |l| u64::from(l.frame_to_fp_offset)) + 16;
        Ok(())
    }

    /// Makes all functions executable.
    pub fn finish(mut self, entry: FuncId) -> Result<Code> {
        self.module.finalize_definitions().map_err(internal)?;
        let address = self.module.get_finalized_function(entry);
        // SAFETY: `entry` was lowered with the signature that `Entry` names (`lower::entry_signature`), in the host's C
        // calling convention.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(address) };
        Ok(Code { module: Mutex::new(Some(self.module)), entry, stack: self.stack, cost: Cost::default() })
    }
}

fn internal(error: ModuleError) -> Error {
    if let ModuleError::Allocation { .. } = error {
        return Error::CodeMemory;
    }
    Error::Internal { stage: "cpu", detail: format!("{error:?}") }
}

/// The executable code of one program. It is freed when dropped.
pub struct Code {
    module: Mutex<Option<JITModule>>,
    entry: Entry,
    stack: u64,
    cost: Cost,
}

impl Code {
    pub fn cost(&self) -> &Cost {
        &self.cost
    }
    /// Bytes of stack that one call of each function takes, in total.
    pub fn stack(&self) -> u64 {
        self.stack
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        if let Some(module) = self.module.get_mut().take() {
            // SAFETY: `entry` is the only pointer into the module's pages. It is called only through `State::run`,
            // which borrows `self`, and nothing borrows a value that is being dropped.
            unsafe { module.free_memory() };
        }
    }
}

/// What one thread passes to generated code.
#[derive(Clone)]
pub struct State {
    words: Vec<u64>,
    /// The index of the first word behind the parameters.
    away: usize,
    /// The columns of the counters, whose words are the last.
    counters: Arc<[ColumnId]>,
}

/// The inputs of generated code for a launch. `columns` and `biases` are those of the layout's buffers.
pub struct Inputs<'a> {
    pub columns: &'a mut [HostColumn],
    pub biases: &'a [u64],
    pub params: &'a [u64],
    pub seed: u64,
    pub section: u32,
    pub stop_key: &'a AtomicU64,
    /// How deep calls may nest.
    pub depth: u64,
    /// By counter: how many rows a thread takes at once.
    pub batches: &'a [u64],
}

impl State {
    /// Stores the addresses of a launch's memory. The caller drops the state, and all of its clones, before that memory
    /// is freed.
    pub fn new(program: &Columns, inputs: Inputs<'_>) -> Self {
        let count = state::COLUMNS + program.addresses.len() + inputs.params.len() + program.privatized;
        let count = count + inputs.batches.len() * state::COUNTER_WORDS;
        let mut words = Vec::with_capacity(count);
        words.resize(state::COLUMNS, 0);
        words[state::STOP_KEY] = inputs.stop_key.as_ptr().expose_provenance() as u64;
        words[state::DEPTH] = inputs.depth;
        words[state::SEED] = inputs.seed;
        words[state::SECTION] = inputs.section.into();
        words[state::POLLS] = state::POLL_INTERVAL as u64;
        words[state::ALONE] = 1;
        let buffers: Vec<u64> = inputs
            .columns
            .iter_mut()
            .zip(&program.written)
            .map(|(column, written)| column.as_kernel_ptr(*written).expose_provenance() as u64)
            .collect();
        words.extend(program.addresses.iter().map(|address| match *address {
            Address::Strided { buffer, stride, offset } => {
                let bias = inputs.biases[buffer].wrapping_mul(stride as u64);
                buffers[buffer].wrapping_add(offset as u64).wrapping_sub(bias)
            }
        }));
        words.extend_from_slice(inputs.params);
        let away = words.len();
        words.resize(away + program.privatized, 0);
        words.extend(inputs.batches.iter().flat_map(|batch| [0, 0, *batch]));
        Self { words, away, counters: program.counters.clone() }
    }

    /// Runs jobs `begin..end` for the given ticks, until the last one is done or one ends early. Returns the job after
    /// that one.
    pub fn run(&mut self, code: &Code, jobs: std::ops::Range<u64>, ticks: std::ops::Range<u64>) -> u64 {
        // The code's pages live as long as `code`, and the memory as long as the launch: see the module's chapter on
        // safety.
        (code.entry)(self.words.as_mut_ptr(), jobs.start, jobs.end, ticks.start, ticks.end)
    }

    pub fn word(&self, word: usize) -> u64 {
        self.words[word]
    }

    pub fn set_word(&mut self, word: usize, value: u64) {
        assert!((state::TICK..state::COLUMNS).contains(&word), "addresses are set once");
        self.words[word] = value;
    }

    /// Makes jobs from `first` on use `rows` for a column of elements that has a buffer of its own. The rows must stay
    /// in place as long as this state runs such jobs.
    pub fn aim(&mut self, column: ColumnId, rows: &mut HostColumn, first: u64) {
        let before = first.wrapping_mul(rows.storage().bytes() as u64);
        let address = rows.as_kernel_ptr(true).expose_provenance() as u64;
        self.words[state::COLUMNS + column.index()] = address.wrapping_sub(before);
    }

    /// Makes this state use `rows` for all rows of the column with number `at` among those that are privatized. The
    /// first one is row `first`. The rows must stay in place as long as this state runs.
    pub fn aim_sums(&mut self, at: usize, column: ColumnId, rows: &mut HostColumn, first: u64) {
        let program = self.words[state::COLUMNS + column.index()];
        self.aim(column, rows, first);
        self.words[self.away + at] = program.wrapping_sub(self.words[state::COLUMNS + column.index()]);
    }

    /// Combines a thread's sum with a row of a column of 64 bits, whose address this state has. Returns whether the
    /// addition exceeded 64 bits.
    pub fn combine(&self, column: ColumnId, row: u64, op: AtomicOp, sum: i64) -> bool {
        let address = self.words[state::COLUMNS + column.index()].wrapping_add(row.wrapping_mul(8));
        // SAFETY: it is a row of a column that the launch borrows mutably, with the column's alignment. Other threads
        // of the launch only access it with atomic operations.
        let slot = unsafe { AtomicI64::from_ptr(std::ptr::with_exposed_provenance_mut(address as usize)) };
        let order = Ordering::Relaxed;
        match op {
            AtomicOp::Add => return sum != 0 && slot.fetch_add(sum, order).checked_add(sum).is_none(),
            AtomicOp::FAdd => {
                let add = |bits: i64| f64::from_bits(bits as u64) + f64::from_bits(sum as u64);
                let _ = slot.fetch_update(order, order, |bits| Some(add(bits).to_bits() as i64));
            }
            AtomicOp::Min => drop(slot.fetch_min(sum, order)),
            AtomicOp::Max => drop(slot.fetch_max(sum, order)),
            AtomicOp::And => drop(slot.fetch_and(sum, order)),
            AtomicOp::Or => drop(slot.fetch_or(sum, order)),
            AtomicOp::Xor => drop(slot.fetch_xor(sum, order)),
        }
        false
    }

    /// Returns the rows that this thread has taken in advance and not used, if no other thread took rows since. Else it
    /// keeps them.
    pub fn return_rows(&mut self) {
        let first = self.words.len() - self.counters.len() * state::COUNTER_WORDS;
        for (at, column) in self.counters.iter().enumerate() {
            let word = first + at * state::COUNTER_WORDS;
            let (next, end) = (self.words[word], self.words[word + state::COUNTER_END]);
            if next == end {
                continue;
            }
            let address = self.words[state::COLUMNS + column.index()];
            // SAFETY: it is the one row of a column of 64 bits that the launch borrows mutably, with the column's
            // alignment. Other threads of the launch only access it with atomic operations.
            let taken = unsafe { AtomicU64::from_ptr(std::ptr::with_exposed_provenance_mut(address as usize)) };
            if taken.compare_exchange(end, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                self.words[word + state::COUNTER_END] = next;
            }
        }
    }

    /// The launch's stop key.
    pub fn stop_key(&self) -> &AtomicU64 {
        let address = std::ptr::with_exposed_provenance_mut(self.words[state::STOP_KEY] as usize);
        // SAFETY: the address is that of the AtomicU64 that was passed to `new`. The launch borrows it, and a State
        // does not outlive its launch.
        unsafe { AtomicU64::from_ptr(address) }
    }
}

/// Adds a pair whose key is a String, as the helper for other keys does. `bytes`: the column of all Strings' bytes.
pub extern "C" fn emit_text(emitter: &mut Emitter, key: u64, value: i64, order: u64, bytes: *const u8) -> u64 {
    let text = |key: StrWord| {
        // SAFETY: only generated code calls this, with the address of a column that outlives the launch. The bytes of a
        // String are within it, and were written before the kernel had its word. None of them changes afterwards.
        unsafe { std::slice::from_raw_parts(bytes.add(key.offset() as usize), key.length()) }
    };
    emitter.push_text(StrWord(key), value, order, text);
    0
}

/// Adds a pair whose key has several parts, as [`emit_text`] does.
pub extern "C" fn emit_parts(emitter: &mut Emitter, value: i64, order: u64, bytes: *const u8) -> u64 {
    let text = |key: StrWord| {
        // SAFETY: as in `emit_text`. Programs with Strings in keys give the address.
        unsafe { std::slice::from_raw_parts(bytes.add(key.offset() as usize), key.length()) }
    };
    emitter.push_parts(value, order, text);
    0
}

/// The positions of a program's columns in the layout's buffers.
pub struct Columns {
    addresses: Vec<Address>,
    written: Vec<bool>,
    /// The number of privatized columns.
    privatized: usize,
    counters: Arc<[ColumnId]>,
}

impl Columns {
    pub fn new(program: &Program, layout: &Layout, privatized: usize, counters: &[(ColumnId, ParamId)]) -> Self {
        let ids = (0..program.columns.len()).map(crate::ir::ColumnId::new);
        let addresses = ids.map(|column| layout.address(column)).collect();
        let counters = counters.iter().map(|(column, _)| *column).collect();
        Self { addresses, written: layout.written(program), privatized, counters }
    }
    pub fn len(&self) -> usize {
        self.addresses.len()
    }
}

fn helper_signature(helper: Helper, convention: CallConv) -> Signature {
    let (params, result) = helper.signature();
    let ty = |word: Word| match word {
        Word::Int => types::I64,
        Word::Float => types::F64,
    };
    let mut signature = Signature::new(convention);
    signature.params.extend(params.iter().map(|word| AbiParam::new(ty(*word))));
    signature.returns.push(AbiParam::new(ty(result)));
    signature
}

#[cfg(test)]
pub mod tests {
    /// Runs `check` in a forked child. It must return true there within ten seconds.
    pub fn in_a_child(check: impl FnOnce() -> bool) {
        // SAFETY: the child runs `check`, which takes no lock that another thread of this process may hold, and leaves
        // by `_exit`. An alarm ends it if it hangs.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: as above.
            unsafe {
                libc::alarm(10);
                libc::_exit(i32::from(!check()));
            }
        }
        let mut status = 0;
        // SAFETY: `child` is our child, and `status` is a live local.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!((waited, status), (child, 0), "the child answers yes");
    }
}
