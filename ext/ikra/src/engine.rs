//! One section from Ruby to Ruby: observe, compile, pack, run, unpack.
//!
//! Here: [`section`], the order of the steps, and what is kept of each block between calls. Not here: the steps, of which the first, what a block
//! becomes for the values that are there, is in [`compile`].
//! Invariant: until [`crate::unpack::Unpacker::write_back`] nothing of the user's has changed, whatever happens.
//!
//! A block that was compiled is a [`Variant`] of its [`Site`]. A later call checks the variant's guards and packs by its
//! schema; the first value that does not fit ends packing, and another variant is tried, or one is compiled for the
//! values that are there.
//!
//! A section of an operation runs the block within methods of the prelude ([`ikra_core::syntax::Wrapping`]), which are given
//! values; each such use of a block is a site of its own.

mod compile;
pub mod resident;
pub mod warm;

use crate::backends;
use crate::block::{self, Captures, Given, Key as BlockKey};
use crate::buffer::{self, Dtype};
use crate::collect;
use crate::config::{Asked, Choice, Results, Settings};
use crate::crew;
use crate::errors;
use crate::explain::{self, Account};
use crate::gvl::{self, Patience};
use crate::heap::{self, Raw, Seen};
use crate::held_procs;
use crate::holder::LazyHolder;
use crate::identity::WordMap;
use crate::iseq::Failure;
use crate::kept;
use crate::later::Later;
use crate::made::{Made, Rooms};
use crate::observe::Bounds;
use crate::over::Where;
use crate::pack::{Elements, Lender, Packed, RootValue, pack};
use crate::plan::{Plan, SlotPlan};
use crate::profile::{About, Clock, Phase};
use crate::question;
use crate::random;
use crate::reflect;
use crate::registry::{self, Kept, names, symbols};
use crate::trace::{Misfit, Tables};
use crate::unpack::Unpacker;
use crate::world::{self, Guards};
use compile::is_dtype;
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
use ikra_core::sched::stencil::Means;
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
use warm::Warm;

/// What a variant was compiled for, beside types.
#[derive(Clone, PartialEq, Eq)]
struct Form {
    op: SectionOp,
    base: Base,
    code: CodeOptions,
    backend: Choice,
    process: u32,
    /// There are few elements.
    few: bool,
    /// One tick at a time, as whoever keeps columns where they are calls it: what has no loop over ticks surely ends.
    single: bool,
    /// How results are stored, if that is not as Ruby's.
    results: Option<Storage>,
    /// What they are reduced to, where that is all that is wanted.
    reduce: Option<Reduction>,
    /// Only of Integers.
    exact: bool,
    /// Only where they may be computed again.
    again: bool,
    /// Elements that have no result are left out.
    sieved: bool,
    /// In a scope in which columns stay: what is in them nobody looks at before each launch.
    stays: bool,
    /// What stencils are chosen from.
    means: Means,
}

/// A variant that fits what is there, and its columns.
type Fitting = (Arc<Variant>, Packed, Arc<Tables>);

/// A block compiled for some types.
pub struct Variant {
    form: Form,
    guards: Guards,
    lowered: Lowered,
    plan: Plan,
    rooms: Rooms,
    executable: Arc<dyn Executable>,
    /// Results are reduced, not stored.
    fold: Option<Fold>,
    /// The kernel stores only those results that there are, side by side.
    sieve: Option<Compaction>,
    /// All that it does is store its results, and what it raises can be told later: what it raises where.
    sites: Option<Arc<[Raise]>>,
    /// A launch ends soon and well, whatever it meets.
    surely_ends: bool,
    /// Elements may be gone over in several sections: all that it does is store results, or look for an element, and these do not depend on where an
    /// element is.
    divisible: bool,
    /// All that it does is look for an element, and it would find the same again.
    looks: bool,
    /// It changes nothing that was there, and would give the same again.
    pure: bool,
}

impl Variant {
    /// Whether its columns may stay where they are between calls.
    fn may_stay(&self) -> bool {
        let program = &self.lowered.program;
        let arrays_stay = !self.plan.kinds.iter().any(|kind| kind.written);
        let flags_stay = !self.plan.freezes() && !self.lowered.schema.asks_frozen;
        let variables_stay = !self.lowered.schema.roots.iter().any(|root| world::is_class_variable(&root.root));
        program.heaps.is_empty() && arrays_stay && flags_stay && variables_stay && !program.uses_slots()
    }
}

/// What is known of one block.
struct Site {
    source: BlockSource,
    /// How long finding its text took, and parsing it.
    read_in: Duration,
    /// Keeps the block's instruction sequence, so that no other comes to its address.
    _holds: Option<Kept>,
    state: Mutex<SiteState>,
    /// What it has taken.
    history: Mutex<History>,
    /// How calls of it may go the short way, the last found out first.
    warm: Mutex<SmallVec<[Arc<Warm>; 1]>>,
    /// When it was last used, by the clock of [`Sites`].
    last_used: AtomicU64,
}

#[derive(Default)]
struct SiteState {
    /// The last used first.
    variants: Vec<Arc<Variant>>,
    refuted: Vec<Assumption>,
    /// Roots that were once no small Integers.
    wide: BTreeSet<Root>,
    /// What once did not lie evenly.
    uneven: BTreeSet<Evenness>,
    /// Integers of a column once were not small.
    large: bool,
    /// Elements once were not all objects of their classes.
    scattered: bool,
    /// Of chains: for which forms a stencil is to look at what another section has computed, and which it is.
    cuts: Vec<(Form, usize)>,
}

/// A block, and what it is given to.
#[derive(PartialEq, Eq, Hash)]
struct Use {
    block: BlockKey,
    within: Within,
}

/// The methods that a block is given to, each with the number of values that are given beside it.
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
/// Blocks that are remembered.
const MOST_SITES: usize = 4_096;
/// Variants of one block.
const MOST_VARIANTS: usize = 6;
/// How often a section is compiled for values that change while it is.
const MOST_ATTEMPTS: usize = 50;
/// Milliseconds between attempts to have memory that other processes hold on the device.
const PAUSES: [u64; 5] = [10, 20, 40, 80, 160];

impl Site {
    /// Remembers what a launch of so many elements and ticks took, and the bytes that it read and wrote, for those that `auto` comes after it.
    fn note(&self, choice: Choice, (elements, ticks): (u64, u64), timings: &Timings, (up, down): (f64, f64)) {
        let side = match choice {
            Choice::Cpu => Side::Cpu,
            Choice::Cuda => Side::Gpu,
            _ => return,
        };
        // a launch that is not waited for tells nothing
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

/// Drops all code that does not run: there is no room for more.
pub fn forget_code() {
    // what is dropped may be much, and its lock others'
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

/// Why a section has to be run again from the start.
enum Again {
    /// Compile for what is there now.
    Compile,
    /// An interrupt that did not raise stopped it.
    Beside,
    /// There were too few rows for what it makes, or too little stack for its calls, and now there is more.
    Room,
    /// Up to the element that left it by `break`.
    Until(Key),
    /// Past the first element that was looked for.
    Past,
    /// Memory ran out, and now there may be more.
    Memory,
}

/// One section: a call of `pmap` or `peach`, or a part of another operation.
struct Section<'r> {
    ruby: &'r Ruby,
    /// For people.
    operation: Symbol,
    op: SectionOp,
    base: Value,
    /// For a Range: first element and how many.
    range: Option<(i64, usize)>,
    /// Of an Array: how many elements were packed. Other threads may add some while a kernel runs, or take some away.
    counted: Cell<Option<usize>>,
    ticks: u64,
    settings: Settings,
    choice: Choice,
    backend: Arc<dyn Backend>,
    captures: Captures,
    /// It is within methods.
    wrapped: bool,
    /// It looks for the second element for which these are true.
    another: bool,
    /// Who tells later what it raised, where it need not be waited for.
    teller: Option<Value>,
    /// Hears what was chosen for each stencil, when that is done.
    told: Option<RArray>,
    site: Arc<Site>,
    number: u32,
    clock: Clock,
    /// Somebody asks what becomes of it: it is compiled anew, for that alone.
    explained: Option<Explained>,
    /// Columns stay where they are.
    scope: Option<Arc<Scope>>,
    /// What the scope has of it.
    state: Option<Arc<State>>,
}

/// A section that is being explained.
#[derive(Default)]
struct Explained {
    variant: Option<Arc<Variant>>,
    account: Option<Account>,
}

/// `Ikra.__section(operation, op, base, ticks, options, block, within)`. `operation`: the method that the user called. `op`:
/// `:map`, `:each`, `:find` (for effect, until what it is within is true), or `:another` (the same, but the first time it is
/// true the section begins anew, with the index in place of what is given first). `within`: nil, or a list of methods,
/// each `[name, given…]`.
///
/// Gives the section's value. Within methods it gives an array of how the section ended and its value: nil, `:found` (and the
/// index), or `:left` (by `break`, with its value), then also the results of the elements before; but results that are a buffer it gives as they are. With the option `__reduce:` the value
/// is what results are reduced to ([`collect::reduce_buffer`]), and within methods it ended as `:reduced`; where results are such as cannot be
/// reduced so, they are the value as ever. With `__reduce:`, `__into: :numbers`, or `__holes: true`, elements whose result is `Ikra::Hole` are left out where the others'
/// are numbers of one kind. With `__only: true` what cannot be reduced so is not run, nor what looks for an element and may not find the same once more: it
/// ended as `:refused`. So did,
/// with `__piece: true`, what cannot be gone over in several sections, and with `__pure: true` what changes more than its results, or draws. With `__apart: true` a section in which a stencil is better given what another
/// section has computed is not run: it ended as `:apart`, with the number of the stencil among those that look at computed values. What was chosen for
/// these is told to the Array `__told:` when the section is compiled. With `__join: true` and results that are arrays of Integers, or of Floats, which
/// the section made, the value is a buffer of their elements, one array's after the other's.
///
/// # Errors
/// CompileError and its kin, whatever the block itself raises, and interrupts.
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

/// The same, whoever watches.
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
    let (settings, Asked { teller, told }) = Settings::of_section(ruby, options)?;
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
    // columns that stay are where they are
    let history = if scope.is_some() { History::default() } else { *site.history.lock() };
    let choice = match settings.code.races {
        // only the interpreter looks for them
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
        teller,
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
        warm: Mutex::default(),
        last_used: AtomicU64::default(),
    };
    Ok(remember(key, site))
}

/// `Ikra.__adds?(block)`: whether all that a block does is add its two parameters. False where its source cannot be had.
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
    /// What a block is given to, and the values that are given beside it, which stay in the list. Within nothing it is the same block as without.
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

    /// The same for the compiler; None: it is given to nothing.
    fn wrapping(&self) -> Option<Wrapping> {
        let methods = self.methods.iter().map(|(id, count)| (reflect::name_of(*id).into(), *count)).collect::<Vec<_>>();
        (!methods.is_empty()).then_some(Wrapping { methods, finds: self.finds })
    }
}

/// What a section within methods gives.
fn ended(ruby: &Ruby, how: Option<&str>, value: Value, before: Option<RArray>) -> Value {
    let how = how.map_or_else(|| ruby.qnil().as_value(), |how| registry::symbol(ruby, how).as_value());
    let before = before.map_or_else(|| ruby.qnil().as_value(), |before| before.as_value());
    ruby.ary_new_from_values(&[how, value, before]).as_value()
}

/// Where results are after a launch.
enum Gave {
    Column,
    Buffer(Dtype, Arc<Buffer>),
    /// In the first, where the second does not say that there is none.
    Sieved(Dtype, Arc<Buffer>, Arc<Buffer>),
    /// Nowhere; this is left of them.
    Reduced(Reduced),
    /// To a kernel that keeps those that there are, if it ends well.
    Sieve,
}

impl Gave {
    /// Whether a buffer was made for this.
    fn is_new(&self, buffer: &Arc<Buffer>) -> bool {
        match self {
            Self::Buffer(_, own) => Arc::ptr_eq(own, buffer),
            Self::Sieved(_, own, marks) => Arc::ptr_eq(own, buffer) || Arc::ptr_eq(marks, buffer),
            _ => false,
        }
    }
}

/// How a section ended early.
#[derive(Clone, Copy)]
enum Left {
    /// By `break`, with a value, at an element.
    Break(Raw, u64),
    /// At the element that was looked for.
    Found(u64),
}

/// Bytes of columns that a program reads, and that it writes.
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

    /// Jobs that run at the same time, at most.
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
        let (mut limit, mut beside, mut evicted) = (Key::NONE, false, 0);
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
            let outcome = self.launch(&variant, packed, &tables, &holder, (limit, beside, evicted));
            self.keep(&variant, tables, &holder);
            match outcome? {
                Ok(value) => {
                    if let Some(warm) = Warm::of(self, &variant).filter(|_| limit == Key::NONE) {
                        self.site.remember(warm);
                    }
                    return Ok(value);
                }
                // each time some heap at least doubles, or the stack grows, so that memory ends first
                Err(Again::Room) => attempts -= 1,
                Err(Again::Compile) => {
                    if let Some(explained) = &mut self.explained {
                        explained.variant = None;
                    }
                    self.forget_state()?;
                }
                Err(Again::Beside) => beside = true,
                Err(Again::Memory) => evicted += 1,
                Err(Again::Until(key)) => limit = key,
                Err(Again::Past) => {}
            }
        }
        Err(Error::new(
            self.ruby.exception_runtime_error(),
            "the objects of a section kept changing their types while it was compiled for them",
        ))
    }

    /// The stencil that is known to look at what another section has computed.
    fn cut(&self, form: &Form) -> Option<usize> {
        self.site.state.lock().cuts.iter().find(|(cut, _)| cut == form).map(|(_, stencil)| *stencil)
    }

    /// A variant that fits what is there, and its columns; None: the section is to be cut in two.
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

    /// The variants for a form, the last used first.
    fn known(&self, form: &Form, nth: usize) -> Option<Arc<Variant>> {
        match &self.explained {
            Some(explained) => explained.variant.iter().nth(nth).cloned(),
            None => self.site.state.lock().variants.iter().filter(|v| v.form == *form).nth(nth).cloned(),
        }
    }

    fn root_value(&self, root: &Root) -> Result<Value, Error> {
        match root {
            Root::Element => Ok(self.base),
            root => world::captured(self.ruby, &self.captures, root),
        }
    }

    /// Lets the tables of a call that is over wait for the next.
    fn keep(&self, variant: &Arc<Variant>, tables: Arc<Tables>, holder: &LazyHolder) {
        if self.state.is_none() {
            let base = self.base_of_state().0;
            holder.let_tables_go();
            if let Ok(tables) = Arc::try_unwrap(tables)
                && tables.knows_numbers()
                && (self.scope.is_none() || kept::wants(variant, base, &tables))
            {
                kept::put(variant, base, tables);
            }
        }
    }

    /// Packs by a variant's schema; None where something does not fit it.
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
        let room = variant.rooms.now(&lowered.program, self.slots());
        let mut hashes = heap::no_hashes();
        let key = self.base_of_state().0;
        let leads_on = plan.elements.as_ref().is_some_and(|slot| slot.leads_on());
        let elements = if leads_on { self.len() } else { 0 };
        let many = self.range.is_none() && crew::many(self.len());
        let patience = Patience::new(ruby, many || !plan.flat)?;
        let mut earlier = if plan.flat { None } else { kept::take(variant, key, elements) };
        loop {
            let mut unknown = Mutex::default();
            let base = self.range.is_none().then(|| heap::elements(self.base.as_raw()));
            self.counted.set(base.map(<[Raw]>::len));
            let elements = match (self.range, base) {
                (Some((first, len)), _) => Elements::Range(first, len),
                (None, base) => Elements::Values(base.unwrap_or(&[])),
            };
            // from here to the holder nothing allocates in Ruby's heap
            let trace = || {
                if let Some(mut tables) = earlier.take() {
                    let begun = tables.again(plan, &lowered.program, base, &raws, &room, lender, &unknown);
                    if begun.is_some() {
                        return Ok((tables, begun));
                    }
                    kept::failed(variant, key);
                    // symbols that packing came by meanwhile: it comes by them again
                    unknown.get_mut().clear();
                }
                let unknown = unknown.get_mut();
                Ok((Tables::trace(plan, base, &raws, &room, &hashes, unknown)?, None))
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
                Err(Misfit::Hashes) => {
                    let unknown = unknown.into_inner();
                    unknown.iter().for_each(|hash| holder.add(ruby, *hash));
                    for hash in unknown {
                        let Ok(parts) = crate::hashes::parts(ruby, hash)? else { return Ok(None) };
                        parts.iter().for_each(|part| holder.add(ruby, *part));
                        Arc::make_mut(&mut hashes).insert(hash, parts);
                    }
                    continue;
                }
                Err(misfit) => return self.misfit(misfit).map(|()| None),
            };
            if self.ticks > 1 && schema.elements.is_some() && tables.writes_array(plan, self.base.as_raw()) {
                return Err(self.writes_its_base());
            }
            // rows of results that a buffer will have
            let elsewhere: SmallVec<[ColumnId; 2]> = match (self.settings.into, &plan.result) {
                (Some(into), Some(slot)) if is_dtype(into, slot).is_some() => match variant.fold {
                    None => slot.value.into_iter().chain(schema.marks).collect(),
                    // a device's kernel that reduces has no such column
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
                    &room,
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
                    if self.scope.is_none() && !kept::wants(variant, key, &tables) {
                        tables.forget_numbers();
                    }
                    let tables = Arc::new(tables);
                    if !plan.flat {
                        holder.get(ruby).hold_tables(&tables);
                    }
                    return Ok(Some((packed, tables)));
                }
                Err(Misfit::Symbols) => {
                    let unknown = unknown.into_inner();
                    for symbol in &unknown {
                        holder.add(ruby, *symbol);
                    }
                    for symbol in unknown {
                        symbols::add(ruby, symbol)?;
                    }
                    earlier = hashes.is_empty().then_some(tables);
                }
                Err(misfit) => {
                    // another variant may fit now, and this one again later
                    if kept::wants(variant, key, &tables) {
                        kept::put(variant, key, tables);
                    }
                    return self.misfit(misfit).map(|()| None);
                }
            }
        }
    }

    /// Whether a variant is for the program that there is, once Ruby code has run.
    fn still_holds(&self, variant: &Variant) -> Result<bool, Error> {
        Ok(variant.guards.hold(self.ruby)? && variant.guards.outside_hold(self.ruby, &self.captures)?)
    }

    /// Remembers what a launch took.
    fn note(&self, timings: &Timings, moved: (f64, f64)) {
        // who says where it is to run does not wait for that
        if self.choice == Choice::Cuda && !timings.kernel.is_zero() && self.settings.backend == Choice::Auto {
            backends::measure_ways(&self.backend);
        }
        self.site.note(self.choice, (self.len() as u64, self.ticks), timings, moved);
    }

    /// The block writes the array that it runs over, through a variable: in later ticks Ruby's elements would be the
    /// new ones, but an element is handed to the block once.
    fn writes_its_base(&self) -> Error {
        let source = &self.site.source.unit.source;
        let message = "over several ticks this block writes the very array that it runs over";
        let diagnostic = Diagnostic::new(source, source.params_span(), message)
            .because("its parameter is the element as it was when the section began")
            .advise("read the element from the array, at Ikra.index, and give the block no parameter");
        errors::core(self.ruby, CoreError::Conflict(Box::new(diagnostic)))
    }

    fn misfit(&self, misfit: Misfit) -> Result<(), Error> {
        match misfit {
            Misfit::TooMany => {
                let message = "more objects or array elements than a kernel can number (2^31)";
                Err(Error::new(self.ruby.exception_range_error(), message))
            }
            Misfit::Lost(error) => Err(self.failed(error)),
            Misfit::Wide(root) => {
                self.site.state.lock().wide.insert(root);
                Ok(())
            }
            Misfit::Uneven(what) => {
                self.site.state.lock().uneven.insert(what);
                Ok(())
            }
            Misfit::Scattered => {
                self.site.state.lock().scattered = true;
                Ok(())
            }
            Misfit::Large => {
                self.site.state.lock().large = true;
                Ok(())
            }
            Misfit::Value | Misfit::Symbols | Misfit::Hashes => Ok(()),
        }
    }

    fn launch(
        &mut self,
        variant: &Variant,
        mut packed: Packed,
        tables: &Tables,
        holder: &LazyHolder,
        (limit, beside, evicted): (Key, bool, usize),
    ) -> Result<Result<Value, Again>, Error> {
        let ruby = self.ruby;
        let cancel = CancelToken::default();
        let mut timings = Timings { exact: self.clock.is_running(), ..Timings::default() };
        let result = match (self.settings.into, &variant.plan.result) {
            (Some(_), Some(_)) if variant.sieve.is_some() => Gave::Sieve,
            (Some(into), Some(slot)) if variant.fold.is_none() => {
                self.result_buffer(into, slot, &variant.lowered.schema, limit, &mut packed)?
            }
            _ => Gave::Column,
        };
        let residents = std::mem::take(&mut packed.residents);
        // nothing of it is to be undone, whatever becomes of its results, and it is not interrupted
        let in_place = variant.surely_ends
            && variant.plan.accumulators.is_empty()
            && limit == Key::NONE
            && self.ticks == 1
            && self.backend.store().is_some()
            && residents.iter().any(|resident| resident.write == Write::Some);
        // who tells later of what becomes of the results, if nobody need wait for it
        let later = match (&variant.sites, self.teller, &result) {
            (Some(sites), Some(teller), Gave::Buffer(_, buffer))
                if limit == Key::NONE && self.scope.is_none() && !self.another && self.ticks == 1 =>
            {
                Some((sites, teller, buffer.clone()))
            }
            _ => None,
        };
        let (mut fates, mut ending, may_wait) = (Vec::new(), None, later.is_some());
        let moved = bytes_to_move(&variant.lowered.program, &packed.columns);
        // where nobody measures and nothing moves, nobody asks for the time
        let timed = self.clock.is_running() || self.backend.store().is_some();
        let began = timed.then(Instant::now);
        let (mut reduced, mut chosen, mut copied) = (None, None, 0);
        let first = self.state.as_ref().is_some_and(|state| state.is_level());
        let outcome = {
            let (backend, columns) = (&self.backend, &mut packed.columns);
            let (biases, params, fresh) = (&packed.biases, &packed.params, &packed.fresh);
            let (slots, jobs, ticks, block_size) = (self.slots(), packed.jobs, self.ticks, self.settings.block_size);
            let (section, cancel, timings, reduced) = (self.number, &cancel, &mut timings, &mut reduced);
            let (fates, ending, chosen, copied) = (&mut fates, &mut ending, &mut chosen, &mut copied);
            let work = || {
                let began = timed.then(Instant::now);
                if first {
                    send(&residents, &**backend);
                }
                for resident in &residents {
                    *copied += resident.enter(&**backend, columns, may_wait.then_some(&mut *fates), in_place)?;
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
                let outcome = match (variant.fold, variant.sieve) {
                    (Some(fold), _) => {
                        let (outcome, value) = backend.launch_fold(&*variant.executable, fold, launch)?;
                        *reduced = value;
                        outcome
                    }
                    (None, Some(sieve)) => {
                        let (outcome, rows) = backend.launch_compaction(&*variant.executable, sieve, launch)?;
                        *chosen = rows;
                        outcome
                    }
                    (None, None) => backend.launch(&*variant.executable, launch)?,
                };
                // it was waited for after all, and what it raised may come of what a launch before it never made
                if let Outcome::Trapped(_) = outcome {
                    fates.iter().try_for_each(|fate| fate.wait())?;
                }
                Ok(outcome)
            };
            match (in_place, beside) {
                (true, _) => Some(gvl::released(work)),
                (false, true) => gvl::run_beside(ruby, cancel, work).map(Some)?,
                (false, false) => gvl::run(ruby, cancel, work)?,
            }
        };
        // not before it is sure that no interrupt has it run again
        let ended = match outcome {
            Some(Ok(Outcome::Done)) => true,
            Some(Ok(Outcome::Trapped(record))) => record.key == limit,
            _ => false,
        };
        // what a scope has changes last of all
        let stays = |resident: &Resident| self.state.as_ref().is_some_and(|state| state.keeps(resident.column));
        let (own, mut now): (Vec<Resident>, Vec<Resident>) = residents.into_iter().partition(stays);
        let all_can_be_undone =
            !in_place && now.iter().all(|resident| resident.write == Write::None || result.is_new(&resident.buffer));
        if ended {
            // arrays that were there change when nothing can fail any more
            let at_once = |resident: &Resident| later.is_some() || result.is_new(&resident.buffer);
            let new = now.iter().filter(|resident| at_once(resident));
            new.for_each(|resident| resident.keep(&mut packed.columns, &fates));
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
            None | Some(Ok(Outcome::Cancelled)) => return Ok(Err(Again::Beside)),
            // Other processes on the device may give some back; who has a limit has been told what is its own.
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
                return Ok(Err(Again::Memory));
            }
            Some(Err(CoreError::Memory { .. })) if evicted == 0 => {
                let keep: Vec<Arc<Buffer>> = own.iter().chain(&now).map(|resident| resident.buffer.clone()).collect();
                gvl::released(|| buffer::evict(&keep)).map_err(|e| self.failed(e))?;
                ruby.gc_start();
                return Ok(Err(Again::Memory));
            }
            Some(Err(CoreError::Poisoned(poison))) if let Some((.., results)) = &later => {
                results.poison(poison);
                Outcome::Done
            }
            Some(Err(error)) => return Err(self.failed(error)),
            Some(Ok(Outcome::Trapped(record))) if let Some((sites, teller, results)) = &later => {
                results.poison(Later::new(sites, *teller).poison(record));
                Outcome::Done
            }
            Some(Ok(outcome)) => {
                if outcome == Outcome::Done {
                    self.note(&timings, moved);
                }
                outcome
            }
        };
        if let (Some((sites, teller, results)), Some(ending)) = (&later, ending) {
            results.depend(Later::new(sites, *teller).fate(ending));
        }
        let lowered = &variant.lowered;
        let (plan, program, schema) = (&variant.plan, &lowered.program, &lowered.schema);
        if let Some(bytes) = schema.bytes
            && packed.columns[bytes.index()].device().is_some()
            && let Some(resident) = own.iter().chain(&now).find(|resident| resident.column == bytes)
        {
            // results may be Strings of these
            packed.columns[bytes.index()] = resident.buffer.on_host().map_err(|e| errors::core(ruby, e))?;
        }
        let made = Made::default();
        let columns = &packed.columns;
        let trapped = matches!(outcome, Outcome::Trapped(record) if record.key != limit);
        let polls = if all_can_be_undone { gvl::Polls::new() } else { gvl::Polls::never() };
        let polls = &polls;
        let unpacker = Unpacker { ruby, plan, program, schema, tables, columns, holder, made: &made, trapped, polls };
        let mut left_with = None;
        if let Outcome::Trapped(record) = outcome {
            let site = &program.sites[record.site.index()];
            if let Trap::Refuted(assumption) = &site.trap {
                let mut state = self.site.state.lock();
                if !state.refuted.contains(assumption) {
                    state.refuted.push(assumption.clone());
                }
                let form = &variant.form;
                state.variants.retain(|v| v.form != *form);
                return Ok(Err(Again::Compile));
            }
            if site.trap == Trap::StackOverflow
                && gvl::released(|| variant.executable.deepen()).map_err(|e| self.failed(e))?
            {
                return Ok(Err(Again::Room));
            }
            if let Trap::Grow(heap) = site.trap {
                let size = (self.len() as u64, self.ticks, self.slots());
                let memory = self.backend.target().memory;
                let grown = variant.rooms.grow(program, heap, record.words[0], record.key, size, memory, site);
                return grown.map(|()| Err(Again::Room)).map_err(|e| self.failed(e));
            }
            if self.another && site.operands.is_empty() && self.captures.find_another(record.key.index()) {
                return Ok(Err(Again::Past));
            }
            if site.trap == Trap::Break && limit != record.key {
                return Ok(Err(Again::Until(record.key)));
            }
            if site.trap == Trap::Race {
                return Err(errors::race(ruby, program, &record));
            }
            let operands = unpacker.operands(&site.operands, &record.words)?;
            if site.trap != Trap::Break {
                // messages show what the element has made; which of two kinds an array of a union is, is not sure
                if !site.operands.contains(&Repr::Union) {
                    unpacker.fill_new()?;
                }
                return Err(errors::trapped(ruby, site, &operands, record.key));
            }
            left_with = Some(match operands.first() {
                Some(value) => Left::Break(*value, record.key.index()),
                None => Left::Found(record.key.index()),
            });
        }
        // whatever it wrote, it wrote to objects
        if let (Some(scope), None) = (&self.scope, &self.state) {
            scope.changed();
        }
        resident::changed_for_others(self.scope.as_ref());
        let stays = packed.stays;
        let len = self.len();
        let mut clock = std::mem::replace(&mut self.clock, Clock::stopped());
        let dtype = self.settings.into.zip(plan.result.as_ref()).and_then(|(into, slot)| is_dtype(into, slot));
        let result = match (reduced, chosen, dtype) {
            (Some(reduced), ..) => Gave::Reduced(reduced),
            (None, Some(rows), Some(dtype)) => Gave::Buffer(dtype, Arc::new(Buffer::from_column(rows))),
            _ => result,
        };
        let value = clock.measure(Phase::Unpack, || self.unpack(&unpacker, left_with, len, result, stays))?;
        // a launch whose arrays were poisoned wrote nothing that stays
        if ended {
            now.iter().for_each(|resident| resident.keep(&mut packed.columns, &fates));
        }
        // other threads may have looked at objects before they were written
        resident::changed_for_others(self.scope.as_ref());
        if let (Some(scope), None) = (&self.scope, &self.state) {
            scope.changed();
        }
        if let (Some(scope), Some(state)) = (&self.scope, &self.state) {
            own.iter().for_each(|resident| resident.keep(&mut packed.columns, &fates));
            scope.wrote(state);
        }
        Ok(Ok(value))
    }

    /// Writes back, and gives the section's value.
    fn unpack(
        &self,
        unpacker: &Unpacker<'_>,
        left_with: Option<Left>,
        len: usize,
        result: Gave,
        stays: bool,
    ) -> Result<Value, Error> {
        let mut before = None;
        let (how, value) = match (left_with, &unpacker.plan.result) {
            (Some(Left::Break(raw, index)), slot) => {
                // a column that is reduced, or a buffer's, has no rows
                if let (true, Some(slot), Gave::Column, None) = (self.wrapped, slot, &result, self.settings.reduce) {
                    before = Some(unpacker.results(slot, index as usize)?);
                }
                (Some("left"), crate::reflect::value(raw))
            }
            (Some(Left::Found(index)), _) => (Some("found"), self.ruby.into_value(index)),
            (None, Some(_)) if let Gave::Reduced(reduced) = result => {
                let reduction = self.settings.reduce.unwrap_or(Reduction::Count);
                (Some("reduced"), collect::reduced_value(self.ruby, reduction, reduced)?)
            }
            (None, Some(_)) if let Gave::Buffer(dtype, buffer) = result => {
                (None, buffer::wrap(self.ruby, dtype, buffer).as_value())
            }
            (None, Some(_)) if let Gave::Sieved(dtype, buffer, marks) = result => {
                let place = Where::as_left(self.ruby, &marks)?;
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
        unpacker.schema.roots.iter().try_for_each(|root| world::write_class_variable(self.ruby, &root.root))?;
        for (name, value) in locals {
            self.captures.set(self.ruby, &name, value)?;
        }
        let bare = !self.wrapped || how.is_none() && heap::see(value.as_raw()) == Seen::Buffer;
        Ok(if bare { value } else { ended(self.ruby, how, value, before) })
    }

    /// Where results go: to a buffer, but where they are to be an Array.
    fn result_buffer(
        &self,
        into: Results,
        slot: &SlotPlan,
        schema: &Schema,
        limit: Key,
        packed: &mut Packed,
    ) -> Result<Gave, Error> {
        // what only raises gives nothing of another kind
        let none = || schema.is_endless.then_some(if let Results::As(dtype) = into { dtype } else { Dtype::F64 });
        let Some(dtype) = is_dtype(into, slot).or_else(none) else {
            if into == Results::Numbers || self.settings.holes {
                return Ok(Gave::Column);
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
        // elements behind a break are not run
        let write = if limit == Key::NONE { Write::All } else { Write::Some };
        let buffer = Arc::new(Buffer::zeroed(dtype.storage(), len));
        match (slot.value, slot.repr) {
            (Some(column), _) => packed.residents.push(Resident { column, buffer: buffer.clone(), write }),
            // all of them are one and the same
            (None, Repr::Unit(Unit::True)) => {
                let mut column = HostColumn::zeroed(dtype.storage(), len);
                column.view_mut::<u8>().fill(1);
                buffer.replace(column);
            }
            (None, _) => {}
        }
        let Some(column) = schema.marks else { return Ok(Gave::Buffer(dtype, buffer)) };
        let marks = Arc::new(Buffer::zeroed(Dtype::Bool.storage(), len));
        packed.residents.push(Resident { column, buffer: marks.clone(), write });
        Ok(Gave::Sieved(dtype, buffer, marks))
    }

    fn failed(&self, error: CoreError) -> Error {
        errors::core(self.ruby, error)
    }
}
