//! One section from Ruby to Ruby: observe, compile, pack, run, unpack.
//!
//! Here: [`section`], the order of the steps, and what is kept of each block between calls. Not here: the steps. The
//! first of them, which compiles the block for the values of this call, is in [`compile`].
//! Invariant: nothing of the user's changes before [`crate::marshal::unpack::Unpacker::write_back`], whatever happens.
//!
//! A block that was compiled is a [`Variant`] of its [`Site`]. A later call checks the variant's guards and packs by
//! its schema. The first value that does not fit ends packing. Then another variant is tried, or one is compiled for
//! the values of this call.
//!
//! A section of an operation runs the block within methods of the prelude ([`ikra_core::syntax::Wrapping`]). Some of
//! their arguments are values of the call. Each combination of a block and such methods is a site of its own.

mod compile;
pub mod fast_path;
pub mod resident;

use crate::buffers::buffer;
use crate::device::backends;
use crate::marshal::graph_cache;
use crate::marshal::held_procs;
use crate::marshal::made::{HeapCapacities, Made};
use crate::marshal::pack::{Elements, Lender, Packed, RootValue, pack};
use crate::marshal::plan::{Plan, SlotPlan};
use crate::marshal::trace::{GuardFailure, Tables};
use crate::marshal::unpack::Unpacker;
use crate::options::{Asked, Choice, Results, Settings};
use crate::report::explain::{self, Account};
use crate::report::profile::{About, Clock, Phase};
use crate::ruby::deferred_error::DeferredError;
use crate::ruby::dtype::Dtype;
use crate::ruby::errors;
use crate::ruby::gvl::{self, Patience};
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::holder::LazyHolder;
use crate::ruby::identity::WordMap;
use crate::ruby::iseq::Failure;
use crate::ruby::question;
use crate::ruby::range::Bounds;
use crate::ruby::reflect;
use crate::ruby::registry::{self, Kept, names, symbols};
use crate::ruby::workers;
use crate::section::collect;
use crate::section::over::Placement;
use crate::section::random;
use crate::world::block::{self, Captures, Given, Key as BlockKey};
use crate::world::live_world::{self, Guards};
use compile::is_dtype;
use fast_path::FastPath;
use ikra_core::backend::collective::reduce::{Reduced, Reduction};
use ikra_core::backend::epilogue::Compaction;
use ikra_core::backend::fold::Fold;
use ikra_core::backend::resident::{Resident, Write, send};
use ikra_core::backend::{Backend, CancelToken, Executable, Key, Launch, Outcome, Timings};
use ikra_core::config::CodeOptions;
use ikra_core::diagnostic::Diagnostic;
use ikra_core::engine::{Base, SectionOp};
use ikra_core::error::Error as CoreError;
use ikra_core::infer::BlockSource;
use ikra_core::ir::{Column, ColumnId, Lowered, Program, Site as Raise, Storage, Trap};
use ikra_core::layout::schema::Schema;
use ikra_core::memory::buffer::Buffer;
use ikra_core::memory::column::HostColumn;
use ikra_core::sched::cost::{History, Side, Taken};
use ikra_core::sched::stencil::Resources;
use ikra_core::syntax::{self, Wrapping};
use ikra_core::types::{Repr, Unit};
use ikra_core::world::{Assumption, Evenness, Root};
use magnus::block::Proc;
use magnus::prelude::*;
use magnus::rb_sys::{AsRawId, AsRawValue};
use magnus::value::{Id, IntoId};
use magnus::{Error, RArray, RHash, RModule, Ruby, Symbol, Value};
use once_cell::unsync::OnceCell;
use parking_lot::Mutex;
use rb_sys::ID;
use resident::{Inside, Scope, State};
use smallvec::{SmallVec, smallvec};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a variant was compiled for, in addition to types.
#[derive(Clone, PartialEq, Eq)]
struct Form {
    op: SectionOp,
    base: Base,
    code: CodeOptions,
    backend: Choice,
    process: u32,
    /// There are few elements.
    few: bool,
    /// One tick at a time, as a scope calls it that keeps columns where they are. A program without a loop over ticks
    /// always ends.
    single: bool,
    /// How results are stored, if not as Ruby's values.
    results: Option<Storage>,
    /// The reduction of the results, where the section needs nothing else.
    reduce: Option<Reduction>,
    /// Reduces only Integers.
    exact: bool,
    /// Reduces only where results may be computed again.
    again: bool,
    /// Elements that have no result are left out.
    compacts: bool,
    /// The section runs in a scope that keeps its columns. Nothing looks at their contents before each launch.
    stays: bool,
    /// The resources for which a strategy of stencils is chosen.
    resources: Resources,
}

/// A variant that fits the values of this call, and its columns.
type Fitting = (Arc<Variant>, Packed, Arc<Tables>);

/// A block compiled for some types.
pub struct Variant {
    form: Form,
    guards: Guards,
    lowered: Lowered,
    plan: Plan,
    capacities: HeapCapacities,
    executable: Arc<dyn Executable>,
    /// How results are reduced, where they are not stored.
    fold: Option<Fold>,
    /// How the kernel stores the elements that have results side by side, without the others.
    compaction: Option<Compaction>,
    /// The places where the program raises, if an exception can be deferred: the program only stores its results.
    sites: Option<Arc<[Raise]>>,
    /// A launch ends soon and without an error, whatever values it meets.
    surely_ends: bool,
    /// Elements may be processed in several sections. The program only stores results, or looks for an element, and
    /// neither depends on the index of an element.
    divisible: bool,
    /// The program only looks for an element, and would find the same one again.
    looks: bool,
    /// The program changes no objects of the caller, and would give the same result again.
    pure: bool,
    /// Owns the tables that calls leave to the next.
    graphs: graph_cache::Owner,
}

impl Variant {
    /// Whether its columns may stay where they are between calls.
    fn may_stay(&self) -> bool {
        let program = &self.lowered.program;
        let arrays_stay = !self.plan.kinds.iter().any(|kind| kind.written);
        let flags_stay = !self.plan.freezes() && !self.lowered.schema.asks_frozen;
        let variables_stay = !self.lowered.schema.roots.iter().any(|root| live_world::is_class_variable(&root.root));
        program.heaps.is_empty() && arrays_stay && flags_stay && variables_stay && !program.uses_slots()
    }
}

/// What is kept of one block.
struct Site {
    source: BlockSource,
    /// How long it took to find and parse the text of the block.
    read_in: Duration,
    /// Keeps the block's instruction sequence alive, so that no other one gets its address.
    _holds: Option<Kept>,
    state: Mutex<SiteState>,
    /// What earlier launches took.
    history: Mutex<History>,
    /// The fast paths of its calls, the newest first.
    fast_paths: Mutex<SmallVec<[Arc<FastPath>; 1]>>,
    /// When it was last used, by the clock of [`Sites`].
    last_used: AtomicU64,
}

#[derive(Default)]
struct SiteState {
    /// The most recently used first.
    variants: Vec<Arc<Variant>>,
    refuted: Vec<Assumption>,
    /// Roots whose value was once no small Integer.
    wide: BTreeSet<Root>,
    /// What once did not have a uniform stride.
    uneven: BTreeSet<Evenness>,
    /// A column once had Integers that are not small.
    large: bool,
    /// The elements of a list were once not exactly the objects of their classes.
    scattered: bool,
    /// Of a chain of operations: the forms for which a stencil reads values that another section has computed, and the
    /// index of that stencil.
    cuts: Vec<(Form, usize)>,
}

/// A block, and the methods that it is passed to.
#[derive(PartialEq, Eq, Hash)]
struct Use {
    block: BlockKey,
    within: Within,
}

/// The methods that a block is passed to, each with the number of its other arguments.
#[derive(PartialEq, Eq, Hash, Default)]
struct Within {
    methods: SmallVec<[(ID, usize); 4]>,
    finds: bool,
}

#[derive(Default)]
struct Sites {
    by_block: WordMap<Use, Arc<Site>>,
    clock: u64,
}

static SITES: Mutex<Option<Sites>> = Mutex::new(None);
/// The most blocks that are remembered.
const MOST_SITES: usize = 4_096;
/// The most variants of one block.
const MOST_VARIANTS: usize = 6;
/// How often a section is compiled for values that other threads change meanwhile.
const MOST_ATTEMPTS: usize = 50;
/// Milliseconds between attempts to allocate memory that other processes hold on the device.
const PAUSES: [u64; 5] = [10, 20, 40, 80, 160];

impl Site {
    /// Remembers what a launch of so many elements and ticks took, and the bytes that it read and wrote. `auto` chooses
    /// by these.
    fn note(&self, choice: Choice, (elements, ticks): (u64, u64), timings: &Timings, (up, down): (f64, f64)) {
        let side = match choice {
            Choice::Cpu => Side::Cpu,
            Choice::Cuda => Side::Gpu,
            _ => return,
        };
        // A launch that is not waited for has no time yet.
        if timings.kernel.is_zero() {
            return;
        }
        let (moved, kernel) = ((timings.upload + timings.download).as_secs_f64(), timings.kernel.as_secs_f64());
        self.history.lock().note(side, Taken { elements, ticks, kernel, moved, up, down });
    }
}

fn known_site(key: &Use) -> Option<Arc<Site>> {
    let mut sites = SITES.lock();
    let sites = sites.get_or_insert_default();
    sites.clock += 1;
    let site = sites.by_block.get(key)?.clone();
    site.last_used.store(sites.clock, Ordering::Relaxed);
    Some(site)
}

/// Drops all code that is not running, because there is no memory for more.
pub fn forget_code() {
    // Dropping may take long, and may take other locks.
    let sites = SITES.lock().as_mut().map(|sites| std::mem::take(&mut sites.by_block));
    drop(sites);
}

fn remember(key: Use, site: Site) -> Arc<Site> {
    let site = Arc::new(site);
    let mut sites = SITES.lock();
    let sites = sites.get_or_insert_default();
    if sites.by_block.len() >= MOST_SITES {
        let mut uses: Vec<u64> = sites.by_block.values().map(|s| s.last_used.load(Ordering::Relaxed)).collect();
        uses.sort_unstable();
        let middle = uses[uses.len() / 2];
        sites.by_block.retain(|_, s| s.last_used.load(Ordering::Relaxed) > middle);
    }
    sites.by_block.entry(key).or_insert(site).clone()
}

/// Why a section has to run again from the start.
enum Retry {
    /// It must be compiled for the values that are there now.
    Compile,
    /// An interrupt that did not raise stopped it.
    Beside,
    /// There were too few rows for the objects that it makes, or too little stack for its calls. Now there is more.
    Capacity,
    /// It must run up to the element that left it by `break`.
    Until(Key),
    /// It must run past the first element that it found.
    Past,
    /// Memory ran out, and now there may be more.
    Memory,
}

/// What became of one launch of a section.
enum RunOutcome {
    /// The section's value.
    Done(Value),
    Retry(Retry),
}

/// How a section launches. Each retry may change it.
#[derive(Clone, Copy)]
struct LaunchPolicy {
    /// Only elements before this key run.
    limit: Key,
    /// The launch runs on another thread, beside interrupts that do not raise.
    beside: bool,
    /// How often memory was given back because there was too little.
    evicted: usize,
}

/// One section: a call of `pmap` or `peach`, or a part of another operation.
struct Section<'r> {
    ruby: &'r Ruby,
    /// The name that messages and profiles show.
    operation: Symbol,
    op: SectionOp,
    base: Value,
    /// First element and number of elements, if the base is a Range.
    range: Option<(i64, usize)>,
    /// How many elements were packed, if the base is an Array. Other threads may add or remove some while a kernel
    /// runs.
    counted: Cell<Option<usize>>,
    ticks: u64,
    settings: Settings,
    choice: Choice,
    backend: Arc<dyn Backend>,
    captures: Captures,
    /// The block is passed to methods of the prelude.
    wrapped: bool,
    /// It looks for the second element for which these give true.
    another: bool,
    /// The error callback: called later with what it raised, if the call does not wait for it.
    error_callback: Option<Value>,
    /// An Array that receives the choice made for each stencil.
    told: Option<RArray>,
    site: Arc<Site>,
    number: u32,
    clock: Clock,
    /// Set where `Ikra.explain` wants an account. Then the section is compiled anew, only for that.
    explained: Option<Explained>,
    /// The scope that keeps columns where they are.
    scope: Option<Arc<Scope>>,
    /// The section's state in that scope.
    state: Option<Arc<State>>,
}

/// A section that is being explained.
#[derive(Default)]
struct Explained {
    variant: Option<Arc<Variant>>,
    account: Option<Account>,
}

/// `Ikra.__section(operation, op, base, ticks, options, block, within)`.
///
/// * `operation`: the method that the user called.
/// * `op`: `:map`, `:each`, `:find` or `:another`. `:find` runs for effect until the methods `within` give true.
///   `:another` does the same, but the first true value restarts the section, with the index of its element in place of
///   the first given value.
/// * `within`: nil, or a list of methods, each `[name, given…]`.
///
/// Gives the section's value. With `within` it gives an array: how the section ended, and its value. How it ended is
/// one of:
///
/// * nil: all elements ran.
/// * `:found`: with the index of the element.
/// * `:left`: by `break`, with its value, and then the results of the elements before.
/// * `:reduced`, `:refused`, `:apart`: see the options.
///
/// Results that are a buffer are given as they are. These options are Ikra's own:
///
/// * `__reduce:`: the value is the reduction of the results ([`collect::reduce_buffer`]), and the section ended as
///   `:reduced`. Where the results cannot be reduced so, they are the value.
/// * `__reduce:`, `__into: :numbers` and `__holes: true`: elements whose result is `Ikra::Hole` are left out, where the
///   other results are numbers of one kind.
/// * `__only: true`: a section whose results cannot be reduced so does not run. Nor does one that looks for an element
///   and may find another one when it runs again. It ended as `:refused`.
/// * `__piece: true`: a section whose elements cannot be processed in several sections ended as `:refused`.
/// * `__pure: true`: a section that changes more than its results, or draws random numbers, ended as `:refused`.
/// * `__apart: true`: a section does not run where a stencil had better read values that another section has computed.
///   It ended as `:apart`, with the number of the stencil among those that read computed values.
/// * `__error_callback:`: an exception may be raised later, when the results are read. This object's `deferred_error`
///   makes it ready.
/// * `__told:`: an Array that receives the choice made for each of these stencils, when the section is compiled.
/// * `__join: true`: where results are arrays of Integers, or of Floats, which the section made, the value is a buffer
///   of their elements, one array after the other.
///
/// # Errors
/// CompileError and its subclasses, whatever the block raises, and what interrupts raise.
#[allow(clippy::too_many_arguments, reason = "a section has this many parts")]
pub fn section(
    ruby: &Ruby,
    operation: Symbol,
    op: Symbol,
    base: Value,
    ticks: u64,
    options: Option<RHash>,
    block: Proc,
    within: Option<RArray>,
) -> Result<Value, Error> {
    let captures = Captures::new(block);
    let inside = if resident::is_open() { Inside::of(ruby, &captures)? } else { Inside::Nobody };
    let ask = |name: &str, args: &[Value]| {
        let ikra: RModule = ruby.class_object().const_get("Ikra")?;
        ikra.funcall::<_, _, Value>(name, args)
    };
    if let Inside::Unknown = inside {
        ask("__section_entered", &[block.as_value()])?;
    }
    let _under_way = held_procs::UnderWay::begin();
    let ended = section_of(ruby, operation, op, base, ticks, options, captures, within);
    if !inside.still_hold()? {
        ask("__section_left", &[])?;
    }
    ended
}

/// The same, once it is known which objects are in the middle of their methods.
#[allow(clippy::too_many_arguments, reason = "a section has this many parts")]
fn section_of(
    ruby: &Ruby,
    operation: Symbol,
    op: Symbol,
    base: Value,
    ticks: u64,
    options: Option<RHash>,
    captures: Captures,
    within: Option<RArray>,
) -> Result<Value, Error> {
    let another = op == names::ANOTHER;
    let finds = another || op == names::FIND;
    let op = if op == names::MAP { SectionOp::Map } else { SectionOp::Each };
    let (settings, Asked { error_callback, told }) = Settings::of_section(ruby, options)?;
    let range = match RArray::from_value(base) {
        Some(_) => None,
        None => Some(int_range(ruby, base)?),
    };
    let elements = range.map_or_else(|| heap::elements(base.as_raw()).len(), |(_, len)| len);
    let number = random::next_section();
    if elements == 0 || ticks == 0 {
        let value = match op {
            SectionOp::Map if let Some(into @ (Results::Natural | Results::As(_))) = settings.into => {
                let dtype = if let Results::As(dtype) = into { dtype } else { Dtype::F64 };
                return Ok(buffer::wrap(ruby, dtype, Arc::new(Buffer::zeroed(dtype.storage(), 0))).as_value());
            }
            SectionOp::Map => ruby.ary_new().as_value(),
            SectionOp::Each if another => ruby.into_value(-1),
            SectionOp::Each => base,
        };
        return Ok(if within.is_some() { ended(ruby, None, value, None) } else { value });
    }
    if elements as u64 > Key::MAX_ELEMENTS || ticks > Key::MAX_TICKS {
        let message = format!("a section has at most {} elements and {} ticks", Key::MAX_ELEMENTS, Key::MAX_TICKS);
        return Err(Error::new(ruby.exception_arg_error(), message));
    }
    let mut clock = Clock::start(ruby);
    let wrapped = within.is_some();
    let (mut within, given) = Within::of(within, finds)?;
    let captures = captures.with(given);
    if captures.is_lambda() && within.methods.is_empty() {
        within = Within { methods: smallvec![(names::LAMBDA.into_id_with(ruby).as_raw(), 0)], finds };
    }
    let site =
        clock.measure(Phase::Source, || find_site(ruby, &captures, within)).map_err(|f| errors::source(ruby, f))?;
    let scope = resident::scope(ruby);
    // Columns that stay need no transfer.
    let history = if scope.is_some() { History::default() } else { *site.history.lock() };
    let choice = match settings.code.races {
        // Only the interpreter looks for races.
        true => Choice::Reference,
        false => backends::choose(settings.backend, elements, ticks, &history),
    };
    let backend = backends::open(choice).map_err(|e| errors::core(ruby, e))?;
    clock.tell(ruby, || {
        let source = &site.source.unit.source;
        let (path, line) = errors::place(ruby, source)?;
        let operation = operation.name()?.into_owned();
        Ok(About { operation, path: path.into(), line, backend: backend.name(), elements, ticks })
    })?;
    let explained = explain::wanted(ruby).then(Explained::default);
    let section = Section {
        ruby,
        operation,
        op,
        base,
        range,
        counted: Cell::default(),
        ticks,
        settings,
        choice,
        backend,
        captures,
        wrapped,
        another,
        error_callback,
        told,
        site,
        number,
        clock,
        explained,
        scope,
        state: None,
    };
    section.run()
}

fn find_site(ruby: &Ruby, captures: &Captures, within: Within) -> Result<Arc<Site>, Failure> {
    let identified = block::identify(ruby, captures.block())?;
    let key = Use { block: identified.key, within };
    if let Some(site) = known_site(&key) {
        return Ok(site);
    }
    let began = Instant::now();
    let source = block::read(ruby, &key.block, captures, key.within.wrapping().as_ref())?;
    let site = Site {
        source,
        read_in: began.elapsed(),
        _holds: identified.holds.map(Kept::new),
        state: Mutex::default(),
        history: Mutex::default(),
        fast_paths: Mutex::default(),
        last_used: AtomicU64::default(),
    };
    Ok(remember(key, site))
}

/// `Ikra.__adds?(block)`: whether all that a block does is add its two parameters. False where its source is missing.
///
/// # Errors
/// What Ruby raises.
pub fn adds(ruby: &Ruby, block: Proc) -> Result<bool, Error> {
    match find_site(ruby, &Captures::new(block), Within::default()) {
        Ok(site) => Ok(site.source.unit.adds()),
        Err(Failure::Ruby(error)) => Err(error),
        Err(_) => Ok(false),
    }
}

impl Within {
    /// The methods that a block is passed to, and their other arguments, which the list keeps alive. A block that is
    /// passed to no method is the same site as without a list.
    fn of(list: Option<RArray>, finds: bool) -> Result<(Self, Given), Error> {
        let (mut within, mut given) = (Self::default(), Given::new());
        let methods = list.map(|list| heap::elements(list.as_raw())).unwrap_or_default();
        for method in methods {
            let method = RArray::try_convert(reflect::value(*method))?;
            let [name, values @ ..] = heap::elements(method.as_raw()) else { continue };
            let name = Symbol::try_convert(reflect::value(*name))?;
            within.methods.push((Id::from(name).as_raw(), values.len()));
            given.extend_from_slice(values);
        }
        within.finds = finds && !within.methods.is_empty();
        Ok((within, given))
    }

    /// The same for the compiler. None where the block is passed to no method.
    fn wrapping(&self) -> Option<Wrapping> {
        let methods = self.methods.iter().map(|(id, count)| (reflect::name_of(*id).into(), *count)).collect::<Vec<_>>();
        (!methods.is_empty()).then_some(Wrapping { methods, finds: self.finds })
    }
}

/// The value of a section with `within`.
fn ended(ruby: &Ruby, how: Option<&str>, value: Value, before: Option<RArray>) -> Value {
    let how = how.map_or_else(|| ruby.qnil().as_value(), |how| registry::symbol(ruby, how).as_value());
    let before = before.map_or_else(|| ruby.qnil().as_value(), |before| before.as_value());
    ruby.ary_new_from_values(&[how, value, before]).as_value()
}

/// Where results are after a launch.
enum ResultLocation {
    Column,
    Buffer(Dtype, Arc<Buffer>),
    /// In the first buffer. The second is the validity mask: which elements have a result.
    Masked(Dtype, Arc<Buffer>, Arc<Buffer>),
    /// Not stored; only their reduction is.
    Reduced(Reduced),
    /// In a column that the kernel makes, without the elements that have no result, if it ends well.
    Compacted,
}

impl ResultLocation {
    /// Whether the launch made this buffer.
    fn is_new(&self, buffer: &Arc<Buffer>) -> bool {
        match self {
            Self::Buffer(_, own) => Arc::ptr_eq(own, buffer),
            Self::Masked(_, own, marks) => Arc::ptr_eq(own, buffer) || Arc::ptr_eq(marks, buffer),
            _ => false,
        }
    }
}

/// How a section ended early.
#[derive(Clone, Copy)]
enum EarlyExit {
    /// By `break`, with its value and the index of the element.
    Break(Raw, u64),
    /// At the element that was looked for, with its index.
    Found(u64),
}

/// Bytes of columns that a program reads, and bytes that it writes.
fn bytes_to_move(program: &Program, columns: &[HostColumn]) -> (f64, f64) {
    let bytes = |wanted: fn(&Column) -> bool| {
        let moved = program.columns.iter().zip(columns).filter(|(column, _)| wanted(column));
        moved.map(|(_, rows)| rows.byte_len()).sum::<usize>() as f64
    };
    (bytes(|column| column.read), bytes(|column| column.written))
}

/// First element and number of elements of a Range of Integers.
fn int_range(ruby: &Ruby, range: Value) -> Result<(i64, usize), Error> {
    let bounds = Bounds::of(ruby, range.as_raw()).map(|bounds| (heap::see(bounds.from), heap::see(bounds.to), bounds));
    let Some((Seen::Int(from), Seen::Int(to), bounds)) = bounds else {
        let message = format!(
            "Ikra runs over Arrays and over Ranges of Integers with an end, not over {}: call to_a first, if it has an end",
            question::described(range, question::shown)?
        );
        return Err(Error::new(ruby.exception_arg_error(), message));
    };
    let len = (i128::from(to) - i128::from(from) + i128::from(!bounds.exclusive)).max(0);
    Ok((from, usize::try_from(len).unwrap_or(usize::MAX)))
}

impl Section<'_> {
    fn len(&self) -> usize {
        let now = || self.counted.get().unwrap_or_else(|| heap::elements(self.base.as_raw()).len());
        self.range.map_or_else(now, |(_, len)| len)
    }

    /// The most jobs that run at the same time.
    fn slots(&self) -> u64 {
        self.backend.slots(self.len() as u64)
    }

    fn run(mut self) -> Result<Value, Error> {
        let outcome = self.attempts();
        if let Some(account) = self.explained.and_then(|e| e.account) {
            explain::add(self.ruby, account);
        }
        outcome
    }

    fn attempts(&mut self) -> Result<Value, Error> {
        let mut policy = LaunchPolicy { limit: Key::NONE, beside: false, evicted: 0 };
        let mut attempts = 0;
        while attempts < MOST_ATTEMPTS {
            attempts += 1;
            let holder = LazyHolder::default();
            let Some((variant, packed, tables)) = self.packed(&holder)? else {
                random::give_back(self.number);
                let stencil = self.ruby.into_value(self.cut(&self.form()).unwrap_or(0));
                return Ok(ended(self.ruby, Some("apart"), stencil, None));
            };
            let fits = variant.fold.is_some() || variant.looks;
            let Settings { only, piece, pure, .. } = self.settings;
            if only && !fits || piece && !variant.divisible || pure && !variant.pure {
                random::give_back(self.number);
                if let Some(explained) = &mut self.explained {
                    explained.account = None;
                }
                return Ok(ended(self.ruby, Some("refused"), self.ruby.qnil().as_value(), None));
            }
            let outcome = self.launch(&variant, packed, &tables, &holder, policy);
            self.keep(&variant, tables, &holder);
            match outcome? {
                RunOutcome::Done(value) => {
                    if let Some(path) = FastPath::of(self, &variant).filter(|_| policy.limit == Key::NONE) {
                        self.site.remember(path);
                    }
                    return Ok(value);
                }
                // Each time some heap at least doubles, or the stack grows. So memory ends before the attempts do.
                RunOutcome::Retry(Retry::Capacity) => attempts -= 1,
                RunOutcome::Retry(Retry::Compile) => {
                    if let Some(explained) = &mut self.explained {
                        explained.variant = None;
                    }
                    self.forget_state()?;
                }
                RunOutcome::Retry(Retry::Beside) => policy.beside = true,
                RunOutcome::Retry(Retry::Memory) => policy.evicted += 1,
                RunOutcome::Retry(Retry::Until(key)) => policy.limit = key,
                RunOutcome::Retry(Retry::Past) => {}
            }
        }
        Err(Error::new(
            self.ruby.exception_runtime_error(),
            "the objects of a section kept changing their types while it was compiled for them",
        ))
    }

    /// The index of the stencil that must read values that another section has computed, if that is known.
    fn cut(&self, form: &Form) -> Option<usize> {
        self.site.state.lock().cuts.iter().find(|(cut, _)| cut == form).map(|(_, stencil)| *stencil)
    }

    /// A variant that fits the values of this call, and its columns. None where the section must be cut in two.
    fn packed(&mut self, holder: &LazyHolder) -> Result<Option<Fitting>, Error> {
        self.counted.set(None);
        let form = self.form();
        if self.explained.is_none() && self.cut(&form).is_some() {
            return Ok(None);
        }
        resident::read_others(self.ruby, self.scope.as_ref())?;
        if let Some(scope) = self.scope.clone() {
            self.state = None;
            if self.explained.is_none()
                && let Some((state, packed)) = self.kept_state(&scope)?
            {
                let (variant, tables) = (state.variant().clone(), state.tables().clone());
                self.state = Some(state);
                return Ok(Some((variant, packed, tables)));
            }
            scope.write_back(self.ruby)?;
            scope.tidy(self.ruby)?;
        }
        let patience = OnceCell::new();
        for _ in 0..MOST_ATTEMPTS {
            let mut nth = 0;
            while let Some(variant) = self.known(&form, nth) {
                if !variant.guards.hold(self.ruby)? {
                    if self.explained.is_some() {
                        break;
                    }
                    self.site.state.lock().variants.retain(|v| !Arc::ptr_eq(v, &variant));
                    continue;
                }
                if variant.guards.outside_hold(self.ruby, &self.captures)?
                    && let Some((mut packed, tables)) = self.pack(&variant, holder)?
                {
                    if let (Some(scope), None) = (self.scope.clone(), &self.explained) {
                        (self.state, packed) = self.make_state(&scope, &variant, packed, &tables, holder)?;
                    }
                    if nth > 0 {
                        let mut state = self.site.state.lock();
                        state.variants.retain(|v| !Arc::ptr_eq(v, &variant));
                        state.variants.insert(0, variant.clone());
                    }
                    return Ok(Some((variant, packed, tables)));
                }
                nth += 1;
            }
            let patience = patience.get_or_try_init(|| Patience::new(self.ruby, true))?;
            let Some(compiled) = patience.attempt(|| self.compile(&form)) else {
                patience.let_run(self.ruby)?;
                continue;
            };
            let Some(variant) = compiled? else { return Ok(None) };
            let variant = Arc::new(variant);
            if let Some(explained) = &mut self.explained {
                explained.variant = Some(variant);
                continue;
            }
            let mut state = self.site.state.lock();
            state.variants.truncate(MOST_VARIANTS - 1);
            state.variants.insert(0, variant);
        }
        Err(Error::new(
            self.ruby.exception_runtime_error(),
            "the objects of a section kept changing their types while it was compiled for them",
        ))
    }

    /// The variants for a form, the most recently used first.
    fn known(&self, form: &Form, nth: usize) -> Option<Arc<Variant>> {
        match &self.explained {
            Some(explained) => explained.variant.iter().nth(nth).cloned(),
            None => self.site.state.lock().variants.iter().filter(|v| v.form == *form).nth(nth).cloned(),
        }
    }

    fn root_value(&self, root: &Root) -> Result<Value, Error> {
        match root {
            Root::Element => Ok(self.base),
            root => live_world::captured(self.ruby, &self.captures, root),
        }
    }

    /// Gives the tables of a finished call to the graph cache.
    fn keep(&self, variant: &Arc<Variant>, tables: Arc<Tables>, holder: &LazyHolder) {
        if self.state.is_none() {
            let base = self.base_of_state().0;
            holder.let_tables_go();
            if let Ok(tables) = Arc::try_unwrap(tables)
                && tables.knows_numbers()
                && (self.scope.is_none() || graph_cache::wants(&variant.graphs, base, &tables))
            {
                graph_cache::put(&variant.graphs, base, tables);
            }
        }
    }

    /// Packs by a variant's schema. None where something does not fit it.
    fn pack(&mut self, variant: &Arc<Variant>, holder: &LazyHolder) -> Result<Option<(Packed, Arc<Tables>)>, Error> {
        let (ruby, plan, lowered) = (self.ruby, &variant.plan, &variant.lowered);
        let schema = &lowered.schema;
        let mut roots: SmallVec<[RootValue; 8]> = SmallVec::new();
        for root in &schema.roots {
            let value = self.root_value(&root.root)?;
            holder.add(ruby, value.as_raw());
            roots.push(RootValue::of(ruby, value));
        }
        let raws: SmallVec<[Raw; 8]> = roots.iter().map(|r| r.value).collect();
        if !plan.flat {
            holder.get(ruby);
        }
        let warp = self.backend.target().warp;
        let backend = self.backend.clone();
        let lender = Lender { store: backend.store(), keeps: self.scope.is_some() && variant.may_stay() };
        let capacity = variant.capacities.now(&lowered.program, self.slots());
        let mut hashes = heap::no_hashes();
        let key = self.base_of_state().0;
        let leads_on = plan.elements.as_ref().is_some_and(|slot| slot.leads_on());
        let elements = if leads_on { self.len() } else { 0 };
        let many = self.range.is_none() && workers::many(self.len());
        let patience = Patience::new(ruby, many || !plan.flat)?;
        let mut earlier = if plan.flat { None } else { graph_cache::take(&variant.graphs, key, elements) };
        loop {
            let mut unknown = Mutex::default();
            let base = self.range.is_none().then(|| heap::elements(self.base.as_raw()));
            self.counted.set(base.map(<[Raw]>::len));
            let elements = match (self.range, base) {
                (Some((first, len)), _) => Elements::Range(first, len),
                (None, base) => Elements::Values(base.unwrap_or(&[])),
            };
            // From here to the holder nothing allocates in Ruby's heap.
            let trace = || {
                if let Some(mut tables) = earlier.take() {
                    let begun = tables.revalidate(plan, &lowered.program, base, &raws, &capacity, lender, &unknown);
                    if begun.is_some() {
                        return Ok((tables, begun));
                    }
                    graph_cache::failed(&variant.graphs, key);
                    // Symbols that packing met without a number. It meets them again.
                    unknown.get_mut().clear();
                }
                let unknown = unknown.get_mut();
                Ok((Tables::trace(plan, base, &raws, &capacity, &hashes, unknown)?, None))
            };
            let traced = self.clock.measure(Phase::Trace, || patience.attempt(trace));
            let Some(traced) = traced else {
                patience.let_run(ruby)?;
                if self.still_holds(variant)? {
                    continue;
                }
                return Ok(None);
            };
            let (mut tables, begun) = match traced {
                Ok(traced) => traced,
                Err(GuardFailure::Hashes) => {
                    let unknown = unknown.into_inner();
                    unknown.iter().for_each(|hash| holder.add(ruby, *hash));
                    for hash in unknown {
                        let Ok(parts) = crate::world::hashes::parts(ruby, hash)? else { return Ok(None) };
                        parts.iter().for_each(|part| holder.add(ruby, *part));
                        Arc::make_mut(&mut hashes).insert(hash, parts);
                    }
                    continue;
                }
                Err(failure) => return self.guard_failed(failure).map(|()| None),
            };
            if self.ticks > 1 && schema.elements.is_some() && tables.writes_array(plan, self.base.as_raw()) {
                return Err(self.writes_its_base());
            }
            // Rows of results that a buffer will hold.
            let elsewhere: SmallVec<[ColumnId; 2]> = match (self.settings.into, &plan.result) {
                (Some(into), Some(slot)) if is_dtype(into, slot).is_some() => match variant.fold {
                    None => slot.value.into_iter().chain(schema.marks).collect(),
                    // The kernel of a device that reduces has no such column.
                    Some(fold) if variant.executable.runs_epilogue() && self.backend.store().is_some() => {
                        [fold.column].into_iter().chain(fold.mask).collect()
                    }
                    Some(_) => SmallVec::new(),
                },
                _ => SmallVec::new(),
            };
            let pack = || {
                let program = &lowered.program;
                pack(
                    plan,
                    program,
                    schema,
                    &mut tables,
                    elements,
                    &roots,
                    warp,
                    &capacity,
                    &elsewhere,
                    begun,
                    lender,
                    &unknown,
                )
            };
            let Some(packed) = self.clock.measure(Phase::Pack, || patience.attempt(pack)) else {
                patience.let_run(ruby)?;
                if self.still_holds(variant)? {
                    continue;
                }
                return Ok(None);
            };
            match packed {
                Ok(packed) => {
                    if self.scope.is_none() && !graph_cache::wants(&variant.graphs, key, &tables) {
                        tables.forget_numbers();
                    }
                    let tables = Arc::new(tables);
                    if !plan.flat {
                        holder.get(ruby).hold_tables(tables.clone());
                    }
                    return Ok(Some((packed, tables)));
                }
                Err(GuardFailure::Symbols) => {
                    let unknown = unknown.into_inner();
                    for symbol in &unknown {
                        holder.add(ruby, *symbol);
                    }
                    for symbol in unknown {
                        symbols::add(ruby, symbol)?;
                    }
                    earlier = hashes.is_empty().then_some(tables);
                }
                Err(failure) => {
                    // Another variant may fit now, and this one again later.
                    if graph_cache::wants(&variant.graphs, key, &tables) {
                        graph_cache::put(&variant.graphs, key, tables);
                    }
                    return self.guard_failed(failure).map(|()| None);
                }
            }
        }
    }

    /// Whether a variant still fits the program after Ruby code has run.
    fn still_holds(&self, variant: &Variant) -> Result<bool, Error> {
        Ok(variant.guards.hold(self.ruby)? && variant.guards.outside_hold(self.ruby, &self.captures)?)
    }

    /// Remembers what a launch took.
    fn note(&self, timings: &Timings, moved: (f64, f64)) {
        // A call that names its backend does not wait for this.
        if self.choice == Choice::Cuda && !timings.kernel.is_zero() && self.settings.backend == Choice::Auto {
            backends::measure_ways(&self.backend);
        }
        self.site.note(self.choice, (self.len() as u64, self.ticks), timings, moved);
    }

    /// The error for a block that writes the array that it runs over, through a variable. In later ticks Ruby would
    /// pass the new elements, but a section passes each element once.
    fn writes_its_base(&self) -> Error {
        let source = &self.site.source.unit.source;
        let message = "over several ticks this block writes the very array that it runs over";
        let diagnostic = Diagnostic::new(source, source.params_span(), message)
            .because("its parameter is the element as it was when the section began")
            .advise("read the element from the array, at Ikra.index, and give the block no parameter");
        errors::core(self.ruby, CoreError::Conflict(Box::new(diagnostic)))
    }

    fn guard_failed(&self, failure: GuardFailure) -> Result<(), Error> {
        match failure {
            GuardFailure::TooMany => {
                let message = "more objects or array elements than a kernel can number (2^31)";
                Err(Error::new(self.ruby.exception_range_error(), message))
            }
            GuardFailure::Lost(error) => Err(self.failed(error)),
            GuardFailure::Wide(root) => {
                self.site.state.lock().wide.insert(root);
                Ok(())
            }
            GuardFailure::Uneven(what) => {
                self.site.state.lock().uneven.insert(what);
                Ok(())
            }
            GuardFailure::Scattered => {
                self.site.state.lock().scattered = true;
                Ok(())
            }
            GuardFailure::Large => {
                self.site.state.lock().large = true;
                Ok(())
            }
            GuardFailure::Value | GuardFailure::Symbols | GuardFailure::Hashes => Ok(()),
        }
    }

    fn launch(
        &mut self,
        variant: &Variant,
        mut packed: Packed,
        tables: &Tables,
        holder: &LazyHolder,
        LaunchPolicy { limit, beside, evicted }: LaunchPolicy,
    ) -> Result<RunOutcome, Error> {
        let ruby = self.ruby;
        let cancel = CancelToken::default();
        let mut timings = Timings { exact: self.clock.is_running(), ..Timings::default() };
        let result = match (self.settings.into, &variant.plan.result) {
            (Some(_), Some(_)) if variant.compaction.is_some() => ResultLocation::Compacted,
            (Some(into), Some(slot)) if variant.fold.is_none() => {
                self.result_buffer(into, slot, &variant.lowered.schema, limit, &mut packed)?
            }
            _ => ResultLocation::Column,
        };
        let residents = std::mem::take(&mut packed.residents);
        // Nothing that it writes has to be undone, whatever becomes of its results, and it is not interrupted.
        let in_place = variant.surely_ends
            && variant.plan.accumulators.is_empty()
            && limit == Key::NONE
            && self.ticks == 1
            && self.backend.store().is_some()
            && residents.iter().any(|resident| resident.write == Write::Some);
        // The error callback, and the buffer of results, if nothing has to wait for the launch.
        let deferred = match (&variant.sites, self.error_callback, &result) {
            (Some(sites), Some(callback), ResultLocation::Buffer(_, buffer))
                if limit == Key::NONE && self.scope.is_none() && !self.another && self.ticks == 1 =>
            {
                Some((sites, callback, buffer.clone()))
            }
            _ => None,
        };
        let (mut completions, mut ending, may_wait) = (Vec::new(), None, deferred.is_some());
        let moved = bytes_to_move(&variant.lowered.program, &packed.columns);
        // The time is measured only for a profile, or where columns are transferred.
        let timed = self.clock.is_running() || self.backend.store().is_some();
        let began = timed.then(Instant::now);
        let (mut reduced, mut chosen, mut copied) = (None, None, 0);
        let first = self.state.as_ref().is_some_and(|state| state.is_level());
        let outcome = {
            let (backend, columns) = (&self.backend, &mut packed.columns);
            let (biases, params, fresh) = (&packed.biases, &packed.params, &packed.fresh);
            let (slots, jobs, ticks, block_size) = (self.slots(), packed.jobs, self.ticks, self.settings.block_size);
            let (section, cancel, timings, reduced) = (self.number, &cancel, &mut timings, &mut reduced);
            let (completions, ending, chosen, copied) = (&mut completions, &mut ending, &mut chosen, &mut copied);
            let work = || {
                let began = timed.then(Instant::now);
                if first {
                    send(&residents, &**backend);
                }
                for resident in &residents {
                    *copied += resident.enter(&**backend, columns, may_wait.then_some(&mut *completions), in_place)?;
                }
                timings.upload += began.map(|began| began.elapsed()).unwrap_or_default();
                let launch = Launch {
                    columns,
                    biases,
                    params,
                    jobs,
                    slots,
                    fresh,
                    ticks,
                    seed: random::seed(),
                    section,
                    limit,
                    cancel,
                    block_size,
                    timings,
                    deferred: may_wait.then_some(ending),
                };
                let outcome = match (variant.fold, variant.compaction) {
                    (Some(fold), _) => {
                        let (outcome, value) = backend.launch_fold(&*variant.executable, fold, launch)?;
                        *reduced = value;
                        outcome
                    }
                    (None, Some(compaction)) => {
                        let (outcome, rows) = backend.launch_compaction(&*variant.executable, compaction, launch)?;
                        *chosen = rows;
                        outcome
                    }
                    (None, None) => backend.launch(&*variant.executable, launch)?,
                };
                // The launch was waited for after all. Its exception may come from values that a failed earlier launch
                // never computed.
                if let Outcome::Trapped(_) = outcome {
                    completions.iter().try_for_each(|completion| completion.wait())?;
                }
                Ok(outcome)
            };
            match (in_place, beside) {
                (true, _) => Some(gvl::released(work)),
                (false, true) => gvl::run_beside(ruby, cancel, work).map(Some)?,
                (false, false) => gvl::run(ruby, cancel, work)?,
            }
        };
        // Only once it is sure that no interrupt makes it run again.
        let ended = match outcome {
            Some(Ok(Outcome::Done)) => true,
            Some(Ok(Outcome::Trapped(record))) => record.key == limit,
            _ => false,
        };
        // The columns of a scope change last.
        let stays = |resident: &Resident| self.state.as_ref().is_some_and(|state| state.keeps(resident.column));
        let (own, mut now): (Vec<Resident>, Vec<Resident>) = residents.into_iter().partition(stays);
        let all_can_be_undone =
            !in_place && now.iter().all(|resident| resident.write == Write::None || result.is_new(&resident.buffer));
        if ended {
            // Arrays that existed before change only when nothing can fail any more.
            let at_once = |resident: &Resident| deferred.is_some() || result.is_new(&resident.buffer);
            let new = now.iter().filter(|resident| at_once(resident));
            new.for_each(|resident| resident.keep(&mut packed.columns, &completions));
            now.retain(|resident| !at_once(resident));
        }
        self.clock.copied(copied);
        if let Some(mut at) = began {
            for (phase, time) in
                [(Phase::Upload, timings.upload), (Phase::Kernel, timings.kernel), (Phase::Download, timings.download)]
            {
                self.clock.add(phase, at, time);
                at += time;
            }
        }
        let outcome = match outcome {
            None | Some(Ok(Outcome::Cancelled)) => return Ok(RunOutcome::Retry(Retry::Beside)),
            // Other processes on the device may give memory back. A process with a limit of its own need not wait for
            // them.
            Some(Err(CoreError::Memory { wanted, .. }))
                if (1..=PAUSES.len()).contains(&evicted)
                    && ikra_core::config::memory_limit() == u64::MAX
                    && wanted <= self.backend.target().memory =>
            {
                let until = Instant::now() + Duration::from_millis(PAUSES[evicted - 1]);
                let cancel = CancelToken::default();
                gvl::run(ruby, &cancel, || {
                    while !cancel.is_cancelled() && Instant::now() < until {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                })?;
                return Ok(RunOutcome::Retry(Retry::Memory));
            }
            Some(Err(CoreError::Memory { .. })) if evicted == 0 => {
                let keep: Vec<Arc<Buffer>> = own.iter().chain(&now).map(|resident| resident.buffer.clone()).collect();
                gvl::released(|| buffer::evict(&keep)).map_err(|e| self.failed(e))?;
                ruby.gc_start();
                return Ok(RunOutcome::Retry(Retry::Memory));
            }
            Some(Err(CoreError::Poisoned(poison))) if let Some((.., results)) = &deferred => {
                results.poison(poison);
                Outcome::Done
            }
            Some(Err(error)) => return Err(self.failed(error)),
            Some(Ok(Outcome::Trapped(record))) if let Some((sites, callback, results)) = &deferred => {
                results.poison(DeferredError::new(sites, *callback).poison(record));
                Outcome::Done
            }
            Some(Ok(outcome)) => {
                if outcome == Outcome::Done {
                    self.note(&timings, moved);
                }
                outcome
            }
        };
        if let (Some((sites, callback, results)), Some(ending)) = (&deferred, ending) {
            results.depend(DeferredError::new(sites, *callback).completion(ending));
        }
        let lowered = &variant.lowered;
        let (plan, program, schema) = (&variant.plan, &lowered.program, &lowered.schema);
        if let Some(bytes) = schema.bytes
            && packed.columns[bytes.index()].device().is_some()
            && let Some(resident) = own.iter().chain(&now).find(|resident| resident.column == bytes)
        {
            // Results may be Strings of these bytes.
            packed.columns[bytes.index()] = resident.buffer.on_host().map_err(|e| errors::core(ruby, e))?;
        }
        let made = Made::default();
        let columns = &packed.columns;
        let trapped = matches!(outcome, Outcome::Trapped(record) if record.key != limit);
        let polls = if all_can_be_undone { gvl::Polls::new() } else { gvl::Polls::never() };
        let polls = &polls;
        let unpacker = Unpacker { ruby, plan, program, schema, tables, columns, holder, made: &made, trapped, polls };
        let mut exit = None;
        if let Outcome::Trapped(record) = outcome {
            let site = &program.sites[record.site.index()];
            if let Trap::Refuted(assumption) = &site.trap {
                let mut state = self.site.state.lock();
                if !state.refuted.contains(assumption) {
                    state.refuted.push(assumption.clone());
                }
                let form = &variant.form;
                state.variants.retain(|v| v.form != *form);
                return Ok(RunOutcome::Retry(Retry::Compile));
            }
            if site.trap == Trap::StackOverflow
                && gvl::released(|| variant.executable.deepen()).map_err(|e| self.failed(e))?
            {
                return Ok(RunOutcome::Retry(Retry::Capacity));
            }
            if let Trap::Grow(heap) = site.trap {
                let size = (self.len() as u64, self.ticks, self.slots());
                let memory = self.backend.target().memory;
                let grown = variant.capacities.grow(program, heap, record.words[0], record.key, size, memory, site);
                return grown.map(|()| RunOutcome::Retry(Retry::Capacity)).map_err(|e| self.failed(e));
            }
            if self.another && site.operands.is_empty() && self.captures.find_another(record.key.index()) {
                return Ok(RunOutcome::Retry(Retry::Past));
            }
            if site.trap == Trap::Break && limit != record.key {
                return Ok(RunOutcome::Retry(Retry::Until(record.key)));
            }
            if site.trap == Trap::Race {
                return Err(errors::race(ruby, program, &record));
            }
            let operands = unpacker.operands(&site.operands, &record.words)?;
            if site.trap != Trap::Break {
                // Messages show what the element has made. For an array of a union it is not sure which of two kinds it
                // has.
                if !site.operands.contains(&Repr::Union) {
                    unpacker.fill_new()?;
                }
                return Err(errors::trapped(ruby, site, &operands, record.key));
            }
            exit = Some(match operands.first() {
                Some(value) => EarlyExit::Break(*value, record.key.index()),
                None => EarlyExit::Found(record.key.index()),
            });
        }
        // The section ran without a state, so it wrote to the objects themselves.
        if let (Some(scope), None) = (&self.scope, &self.state) {
            scope.changed();
        }
        resident::changed_for_others(self.scope.as_ref());
        let stays = packed.stays;
        let len = self.len();
        let mut clock = std::mem::replace(&mut self.clock, Clock::stopped());
        let dtype = self.settings.into.zip(plan.result.as_ref()).and_then(|(into, slot)| is_dtype(into, slot));
        let result = match (reduced, chosen, dtype) {
            (Some(reduced), ..) => ResultLocation::Reduced(reduced),
            (None, Some(rows), Some(dtype)) => ResultLocation::Buffer(dtype, Arc::new(Buffer::from_column(rows))),
            _ => result,
        };
        let value = clock.measure(Phase::Unpack, || self.unpack(&unpacker, exit, len, result, stays))?;
        // A launch whose arrays were poisoned wrote nothing that stays.
        if ended {
            now.iter().for_each(|resident| resident.keep(&mut packed.columns, &completions));
        }
        // Other threads may have read objects before they were written.
        resident::changed_for_others(self.scope.as_ref());
        if let (Some(scope), None) = (&self.scope, &self.state) {
            scope.changed();
        }
        if let (Some(scope), Some(state)) = (&self.scope, &self.state) {
            own.iter().for_each(|resident| resident.keep(&mut packed.columns, &completions));
            scope.wrote(state);
        }
        Ok(RunOutcome::Done(value))
    }

    /// Writes back, and gives the section's value.
    fn unpack(
        &self,
        unpacker: &Unpacker<'_>,
        exit: Option<EarlyExit>,
        len: usize,
        result: ResultLocation,
        stays: bool,
    ) -> Result<Value, Error> {
        let mut before = None;
        let (how, value) = match (exit, &unpacker.plan.result) {
            (Some(EarlyExit::Break(raw, index)), slot) => {
                // A column that is reduced, or that a buffer holds, has no rows here.
                if let (true, Some(slot), ResultLocation::Column, None) =
                    (self.wrapped, slot, &result, self.settings.reduce)
                {
                    before = Some(unpacker.results(slot, index as usize)?);
                }
                (Some("left"), crate::ruby::reflect::value(raw))
            }
            (Some(EarlyExit::Found(index)), _) => (Some("found"), self.ruby.into_value(index)),
            (None, Some(_)) if let ResultLocation::Reduced(reduced) = result => {
                let reduction = self.settings.reduce.unwrap_or(Reduction::Count);
                (Some("reduced"), collect::reduced_value(self.ruby, reduction, reduced)?)
            }
            (None, Some(_)) if let ResultLocation::Buffer(dtype, buffer) = result => {
                (None, buffer::wrap(self.ruby, dtype, buffer).as_value())
            }
            (None, Some(_)) if let ResultLocation::Masked(dtype, buffer, marks) = result => {
                let place = Placement::as_left(self.ruby, &marks)?;
                let clock = &mut Clock::stopped();
                (None, place.chosen(self.ruby, clock, (dtype, &buffer), 0..len, &marks)?)
            }
            (None, Some(slot)) => {
                let joined = if self.settings.join { unpacker.joined(slot, len)? } else { None };
                let value = match joined {
                    Some((dtype, rows)) => {
                        buffer::wrap(self.ruby, dtype, Arc::new(Buffer::from_column(rows))).as_value()
                    }
                    None => unpacker.results(slot, len)?.as_value(),
                };
                (None, value)
            }
            (None, None) if self.another => (None, self.captures.get(self.ruby, &syntax::given(0))?),
            (None, None) => (None, self.base),
        };
        let mut locals = Vec::new();
        let path = &self.site.source.unit.source.path;
        for (accumulator, slot) in unpacker.schema.accumulators.iter().zip(&unpacker.plan.accumulators) {
            let start = self.captures.get(self.ruby, &accumulator.name)?;
            if let Some(value) = unpacker.combined(accumulator, slot, start, len, path)? {
                unpacker.holder.add(self.ruby, value.as_raw());
                locals.push((accumulator.name.clone(), value));
            }
        }
        if stays { unpacker.fill_new() } else { unpacker.write_back(unpacker.look()) }?;
        unpacker.schema.roots.iter().try_for_each(|root| live_world::write_class_variable(self.ruby, &root.root))?;
        for (name, value) in locals {
            self.captures.set(self.ruby, &name, value)?;
        }
        let bare = !self.wrapped || how.is_none() && heap::see(value.as_raw()) == Seen::Buffer;
        Ok(if bare { value } else { ended(self.ruby, how, value, before) })
    }

    /// Where results go: to a buffer, unless they must become an Array.
    fn result_buffer(
        &self,
        into: Results,
        slot: &SlotPlan,
        schema: &Schema,
        limit: Key,
        packed: &mut Packed,
    ) -> Result<ResultLocation, Error> {
        // A program that only raises has no results of another kind.
        let none = || schema.is_endless.then_some(if let Results::As(dtype) = into { dtype } else { Dtype::F64 });
        let Some(dtype) = is_dtype(into, slot).or_else(none) else {
            if into == Results::Numbers || self.settings.holes {
                return Ok(ResultLocation::Column);
            }
            let source = &self.site.source.unit.source;
            let message =
                "what this block gives is of several kinds, or of one that an array on the device cannot hold";
            let diagnostic = Diagnostic::new(source, self.site.source.unit.body.span, message)
                .because("an array on the device holds Integers, or Floats, or true and false")
                .advise("convert them in the block (to_f, to_i), have map give an array of objects (dtype: :object), or use an Array");
            return Err(errors::core(self.ruby, diagnostic.into()));
        };
        let len = self.len();
        // Elements behind a break are not run.
        let write = if limit == Key::NONE { Write::All } else { Write::Some };
        let buffer = Arc::new(Buffer::zeroed(dtype.storage(), len));
        match (slot.value, slot.repr) {
            (Some(column), _) => packed.residents.push(Resident { column, buffer: buffer.clone(), write }),
            // All results are one and the same value.
            (None, Repr::Unit(Unit::True)) => {
                let mut column = HostColumn::zeroed(dtype.storage(), len);
                column.view_mut::<u8>().fill(1);
                buffer.replace(column);
            }
            (None, _) => {}
        }
        let Some(column) = schema.marks else { return Ok(ResultLocation::Buffer(dtype, buffer)) };
        let marks = Arc::new(Buffer::zeroed(Dtype::Bool.storage(), len));
        packed.residents.push(Resident { column, buffer: marks.clone(), write });
        Ok(ResultLocation::Masked(dtype, buffer, marks))
    }

    fn failed(&self, error: CoreError) -> Error {
        errors::core(self.ruby, error)
    }
}
