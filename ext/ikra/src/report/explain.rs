//! Accounts of sections, for `Ikra.explain`.
//!
//! Here: [`Account`], what a section notes of itself while its Fiber collects explanations; and [`Code`], which
//! generates code as text when Ruby asks for it. Not here: the contents of an explanation
//! ([`ikra_core::engine::explain()`]), and its presentation (lib/ikra/explain.rb).

use crate::device::backends;
use crate::options::{Choice, REDUCTIONS};
use crate::report::profile;
use crate::ruby::errors;
use crate::ruby::fiber::{self, Number};
use crate::ruby::gvl;
use crate::ruby::identity::RawMap;
use ikra_core::backend::Executable;
use ikra_core::backend::collective::reduce::Reduction;
use ikra_core::backend::cuda::{collective, emit};
use ikra_core::backend::epilogue::Epilogue;
use ikra_core::config::CodeOptions;
use ikra_core::engine::explain::Explanation;
use ikra_core::ir::Program;
use ikra_core::layout::Layout;
use ikra_core::source::Source;
use magnus::prelude::*;
use magnus::{DataTypeFunctions, Error, IntoValue, RArray, RHash, RModule, Ruby, Symbol, TypedData, Value, method};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A compiled section, with all that `Ikra.explain` shows of it.
pub struct Account {
    /// The method that was called.
    pub operation: String,
    pub elements: usize,
    pub ticks: u64,
    pub source: Arc<Source>,
    /// File and line of the block, or of the call in the program.
    pub place: (String, u32),
    pub backend: &'static str,
    /// Why the section runs on this backend.
    pub why: String,
    /// How long it took to find and read the block's text.
    pub reading: Duration,
    /// How long the backend compiled.
    pub preparing: Duration,
    pub explanation: Explanation,
    pub program: Program,
    pub layout: Layout,
    pub options: CodeOptions,
    pub executable: Arc<dyn Executable>,
    /// The epilogue of the kernel, if it has one, and whether the pass that computes the results runs it.
    pub sink: Option<(Epilogue, bool)>,
}

/// The accounts of one `Ikra.explain`.
type Accounts = Vec<Arc<Account>>;

/// The explanations that are being collected.
struct Explanations {
    /// How many there are, so that a section need not look for its Fiber where there are none.
    running: AtomicUsize,
    by_fiber: Mutex<Option<RawMap<Vec<Accounts>>>>,
}

static EXPLANATIONS: Explanations = Explanations { running: AtomicUsize::new(0), by_fiber: Mutex::new(None) };

/// Whether sections of some Fiber are to be explained.
pub fn is_running() -> bool {
    EXPLANATIONS.running.load(Ordering::Relaxed) > 0
}

/// Whether sections of this Fiber are to be explained.
pub fn wanted(ruby: &Ruby) -> bool {
    let fiber = is_running().then(|| fiber::known(ruby)).flatten();
    fiber.is_some_and(|fiber| EXPLANATIONS.by_fiber.lock().as_ref().is_some_and(|all| all.contains_key(&fiber)))
}

/// Adds an account to all explanations that this Fiber collects.
pub fn add(ruby: &Ruby, account: Account) {
    let Some(fiber) = fiber::known(ruby) else { return };
    let account = Arc::new(account);
    for list in EXPLANATIONS.by_fiber.lock().get_or_insert_default().entry(fiber).or_default() {
        list.push(account.clone());
    }
}

/// `Ikra.__explain_start`: from now on the sections of this Fiber are compiled anew and explained, and operations are
/// measured.
///
/// # Errors
/// As [`profile::start`].
pub fn start(ruby: &Ruby) -> Result<(), Error> {
    let fiber = fiber::current(ruby)?;
    profile::start(ruby)?;
    EXPLANATIONS.running.fetch_add(1, Ordering::Relaxed);
    EXPLANATIONS.by_fiber.lock().get_or_insert_default().entry(fiber).or_default().push(Vec::new());
    Ok(())
}

/// Drops the accounts of Fibers that cannot be resumed any more.
pub fn let_go(fibers: &[Number]) {
    let mut all = EXPLANATIONS.by_fiber.lock();
    let Some(all) = all.as_mut() else { return };
    for lists in fibers.iter().filter_map(|fiber| all.remove(fiber)) {
        EXPLANATIONS.running.fetch_sub(lists.len(), Ordering::Relaxed);
    }
}

/// `Ikra.__explain_stop`: a Hash for each section since the last start, and [`profile::operations`].
///
/// # Errors
/// NoMemoryError.
pub fn stop(ruby: &Ruby) -> Result<(RArray, RArray), Error> {
    let measured = profile::finished(ruby);
    let accounts = fiber::known(ruby).map_or_else(Vec::new, |fiber| {
        let mut all = EXPLANATIONS.by_fiber.lock();
        let all = all.get_or_insert_default();
        let Some(accounts) = all.get_mut(&fiber).and_then(Vec::pop) else { return Vec::new() };
        EXPLANATIONS.running.fetch_sub(1, Ordering::Relaxed);
        if all.get(&fiber).is_some_and(Vec::is_empty) {
            all.remove(&fiber);
        }
        accounts
    });
    let list = ruby.ary_new();
    for account in accounts {
        list.push(section(ruby, &account)?)?;
    }
    let operations = measured.map_or_else(|| Ok(ruby.ary_new()), |frame| profile::operations(ruby, &frame))?;
    Ok((list, operations))
}

/// A Hash with Symbols as keys.
struct Facts<'r>(&'r Ruby, RHash);

impl<'r> Facts<'r> {
    fn new(ruby: &'r Ruby) -> Self {
        Self(ruby, ruby.hash_new())
    }
    fn with(self, name: &str, value: impl IntoValue) -> Result<Self, Error> {
        self.1.aset(self.0.to_symbol(name), value)?;
        Ok(self)
    }
}

fn array<T>(ruby: &Ruby, items: &[T], make: impl Fn(&T) -> Result<RHash, Error>) -> Result<RArray, Error> {
    let list = ruby.ary_new();
    for item in items {
        list.push(make(item)?)?;
    }
    Ok(list)
}

fn section(ruby: &Ruby, account: &Arc<Account>) -> Result<RHash, Error> {
    let told = &account.explanation;
    let source = &account.source;
    let bodies = array(ruby, &told.bodies, |body| {
        let variables = ruby.ary_new();
        for (line, name, ty) in &body.variables {
            variables.push((*line, name.as_str(), ty.as_str()))?;
        }
        let args = ruby.hash_new();
        for (name, ty) in &body.args {
            args.aset(name.as_str(), ty.as_str())?;
        }
        let hash = Facts::new(ruby)
            .with("name", body.label.as_str())?
            .with("path", body.path.as_str())?
            .with("line", body.line)?
            .with("receiver", body.receiver.as_deref())?
            .with("arguments", args)?
            .with("result", body.result.as_str())?
            .with("inlined", body.inlined)?
            .with("library", body.library)?
            .with("variables", variables)?;
        Ok(hash.1)
    })?;
    let columns = array(ruby, &told.columns, |column| {
        let hash = Facts::new(ruby)
            .with("name", column.name.as_str())?
            .with("storage", column.storage.as_str())?
            .with("rows", column.rows.as_str())?
            .with("layout", column.layout.as_str())?
            .with("read", column.read)?
            .with("written", column.written)?;
        Ok(hash.1)
    })?;
    let (path, line) = (account.place.0.as_str(), account.place.1);
    let checks = array(ruby, &told.checks, |check| {
        let own = check.path == source.path && source.is_internal();
        let (path, line) = if own { (path, line) } else { (check.path.as_str(), check.line) };
        let hash = Facts::new(ruby)
            .with("kind", ruby.to_symbol(check.kind.word()))?
            .with("what", check.what.as_str())?
            .with("path", path)?
            .with("line", line)?
            .with("lowered", check.before)?
            .with("left", check.after)?;
        Ok(hash.1)
    })?;
    let shared = array(ruby, &told.shared, |write| {
        let own = write.path == source.path && source.is_internal();
        let (path, line) = if own { (path, line) } else { (write.path.as_str(), write.line) };
        let hash = Facts::new(ruby)
            .with("what", write.what.as_str())?
            .with("path", path)?
            .with("line", line)?
            .with("apart", write.apart.as_str())?;
        Ok(hash.1)
    })?;
    let stages = ruby.hash_new();
    let (first, last) = ([("source", account.reading)], [("prepare", account.preparing)]);
    for (stage, time) in first.iter().chain(&told.stages).chain(&last) {
        stages.aset(ruby.to_symbol(*stage), time.as_secs_f64())?;
    }
    let reduction = account.sink.and_then(|(sink, _)| sink.fold());
    let hash = Facts::new(ruby)
        .with("operation", ruby.to_symbol(&*account.operation))?
        .with("path", path)?
        .with("line", line)?
        .with("source", source.slice_text())?
        .with("elements", account.elements)?
        .with("ticks", account.ticks)?
        .with("bodies", bodies)?
        .with("columns", columns)?
        .with("checks", checks)?
        .with("jobs", told.jobs)?
        .with("fused", told.fused)?
        .with("reduction", reduction.and_then(|fold| name(fold.reduction)).map(|name| ruby.to_symbol(name)))?
        .with("kernels", if matches!(account.sink, Some((Epilogue::Fold(_), false))) { 2 } else { 1 })?
        .with("apart", ruby.ary_from_iter(told.apart.iter().map(String::as_str)))?
        .with("shared", shared)?
        .with("backend", ruby.to_symbol(account.backend))?
        .with("why", account.why.as_str())?
        .with("stages", stages)?
        .with("code", ruby.obj_wrap(Code(account.clone())))?;
    Ok(hash.1)
}

/// Ruby's name of a reduction.
fn name(wanted: Reduction) -> Option<&'static str> {
    REDUCTIONS.iter().find(|(_, reduction)| *reduction == wanted).map(|(name, _)| *name)
}

/// What code is generated from, when Ruby asks for it.
#[derive(TypedData)]
#[magnus(class = "Ikra::Code", free_immediately)]
pub struct Code(Arc<Account>);

impl DataTypeFunctions for Code {}

/// Defines `Ikra::Code`, which Ruby code cannot make.
///
/// # Errors
/// Where the name is taken.
pub fn init(ikra: RModule, ruby: &Ruby) -> Result<(), Error> {
    let class = ikra.define_class("Code", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("text", method!(Code::text, 1))?;
    ikra.funcall::<_, _, Value>("private_constant", (ruby.to_symbol("Code"),))?;
    // For the reason given in `Holder`.
    <Code as TypedData>::class(ruby);
    Ok(())
}

impl Code {
    /// The section's code in one of its forms.
    fn text(ruby: &Ruby, this: &Self, form: Symbol) -> Result<String, Error> {
        let form = form.name()?;
        match this.0.text(&form) {
            Ok(Some(text)) => Ok(text),
            Ok(None) => {
                let message = format!("{form} is not one of :ir, :lowered, :cpu, :cuda");
                Err(Error::new(ruby.exception_arg_error(), message))
            }
            Err(error) => Err(errors::core(ruby, error)),
        }
    }
}

impl Account {
    /// The code in one of its forms; None if there is no such form.
    ///
    /// # Errors
    /// What the CPU backend refuses.
    pub fn text(&self, form: &str) -> ikra_core::error::Result<Option<String>> {
        let Self { program, layout, options, .. } = self;
        Ok(Some(match form {
            "lowered" => self.explanation.lowered.clone(),
            "ir" => program.to_string(),
            "cpu" | "cuda" if form == self.backend => self.executable.listing(),
            "cuda" => {
                let sink = self.sink.map(|(sink, _)| sink).filter(|sink| collective::at_once(program, *sink));
                let name = emit::kernel_name(program);
                emit::emit_into(program, layout, &name, sink).body
            }
            "cpu" => {
                let cpu = backends::open(Choice::Cpu)?;
                gvl::released(|| cpu.prepare(program, layout, options))?.listing()
            }
            _ => return Ok(None),
        }))
    }
}
