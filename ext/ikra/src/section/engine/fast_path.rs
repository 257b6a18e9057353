//! The fast path: the same block once more, over buffers of the same kinds, in one step.
//!
//! Here: [`FastPath`], what a section leaves for later calls of the same block. Two ways lead to it:
//! [`Site::repeated`] for a section that was parsed, and [`run`] for a block within `stored`. Not here: any other call.
//! Where something is not as it was, a fast path says so and leaves no trace. Then the section runs
//! ([`super::section`]), which checks everything.
//!
//! The fast path is open to a section over a Range whose program reads only buffers and launch parameters. The program
//! stores its results in a buffer, reduces them, or looks for an element. It does nothing else. What a section checks
//! is checked here, too:
//!
//! * The code, and the methods around it, are those of the [`Site`].
//! * The options, the defaults among them, are those of the call that left it.
//! * `auto` chooses the backend anew. The form of a variant says whose device its kernel is on.
//! * The variant's guards check methods, constants and captured Procs.
//! * Captured variables and ivars of `self` are read anew, and encoded as packing does.
//! * Buffers are of the same kinds. There are few elements, or not, as before.
//! * No scope, profile or explanation is open, on any thread, and the Fiber has no gate.
//!
//! A launch that does not end well leaves nothing, and the section runs again. A program whose exception may be
//! deferred on a device needs an error callback. It takes the normal path.

use super::Section;
use super::cache::{Site, Use, Within, known_site};
use super::finish::ended;
use super::request::{Kind, Request};
use super::variant::{Variant, is_dtype};
use crate::buffers::buffer;
use crate::device::backends;
use crate::marshal::pack::{self, RootValue};
use crate::marshal::trace::Tables;
use crate::options::{Choice, Results, Settings};
use crate::report::explain;
use crate::report::profile;
use crate::ruby::dtype::Dtype;
use crate::ruby::environment::InForce;
use crate::ruby::gate;
use crate::ruby::gvl;
use crate::ruby::heap::{self, Raw};
use crate::ruby::reflect;
use crate::ruby::registry::names;
use crate::section::{collect, random};
use crate::world::block::{self, Captures, Key as BlockKey};
use crate::world::live_world;
use ikra_core::backend::collective::reduce::{Reduced, Reduction};
use ikra_core::backend::fold::Fold;
use ikra_core::backend::resident::{Resident, Write};
use ikra_core::backend::{Backend, CancelToken, Key, Launch, Outcome, Timings};
use ikra_core::error::Result as CoreResult;
use ikra_core::ir::{ColumnId, Jobs, Trap};
use ikra_core::memory::buffer::{Buffer, Residence};
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::room;
use ikra_core::types::Prims;
use magnus::block::Proc;
use magnus::prelude::*;
use magnus::rb_sys::{AsRawId, AsRawValue};
use magnus::value::{IntoId, LazyId};
use magnus::{Error, RClass, Ruby, TryConvert, Value};
use rb_sys::ID;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// The most elements that run with the GVL. Leaving the GVL and taking it again would take as long.
const MAX_ELEMENTS_WITH_GVL: usize = 2048;

/// The Integer 1. A layout stores it once it was asked whether its elements are all of a list from the first on, row
/// after row, and they are.
const PACKED: Raw = 3;

/// The most fast paths of one block.
const MAX_FAST_PATHS: usize = 4;

/// Where the block's values go.
#[derive(Clone, Copy)]
enum Destination {
    Buffer(ColumnId, Dtype),
    Reduced(Fold),
    /// The section looks for an element.
    Nothing,
}

/// What a fast path leaves.
enum Ends {
    Values(Dtype, Arc<Buffer>),
    Reduced(Reduced),
    Found(u64),
    /// There is no such element.
    Nothing,
}

/// A root whose value is a buffer.
struct Given {
    root: usize,
    dtype: Dtype,
    /// None where the program reads only its length.
    column: Option<ColumnId>,
}

/// A fast path of a block's section.
pub(super) struct FastPath {
    variant: Arc<Variant>,
    backend: Arc<dyn Backend>,
    settings: Settings,
    kind: Kind,
    lambda: bool,
    given: SmallVec<[Given; 2]>,
    destination: Destination,
    /// Empty tables.
    tables: Tables,
    /// No job takes long, and none waits.
    straight: bool,
}

/// A call that may take a fast path.
struct Call<'a> {
    settings: Settings,
    kind: Kind,
    captures: &'a Captures,
    /// The first element and the number of elements of its Range.
    range: (i64, usize),
    number: u32,
}

/// The parameters of a launch, and the buffers that it reads.
type Arguments = (SmallVec<[u64; 16]>, SmallVec<[Resident; 2]>);

impl FastPath {
    /// The fast path that a section leaves, if it ended well and later calls may take it.
    pub(super) fn of(section: &Section<'_>, variant: &Arc<Variant>) -> Option<Self> {
        let request = &section.request;
        let plain = matches!(request.kind, Kind::Map | Kind::Find)
            && request.ticks == 1
            && section.scope.is_none()
            && section.explained.is_none()
            && request.told.is_none()
            && matches!(request.range, Some((_, len)) if len > 0);
        if !plain || variant.compaction.is_some() {
            return None;
        }
        let (plan, lowered) = (&variant.plan, &variant.lowered);
        let (program, schema) = (&lowered.program, &lowered.schema);
        let destination = match (request.kind, variant.fold, request.settings.into, &plan.result) {
            (Kind::Map, Some(fold), ..) => Destination::Reduced(fold),
            (Kind::Map, None, Some(into), Some(result)) => Destination::Buffer(result.value?, is_dtype(into, result)?),
            (Kind::Find, None, _, None) => Destination::Nothing,
            _ => return None,
        };
        // A launch that nothing waits for must end well, or have an error callback.
        let waits = section.backend.store().is_none() || !matches!(destination, Destination::Buffer(..));
        if !(waits || variant.properties.surely_ends) {
            return None;
        }
        let (mut given, mut buffers) = (SmallVec::<[Given; 2]>::new(), SmallVec::<[Arc<Buffer>; 2]>::new());
        for (root, slot) in plan.roots.iter().enumerate().filter(|(_, slot)| slot.leads_on()) {
            let kind = &plan.kinds[slot.kind?];
            let (dtype, buffer) = buffer::of(section.root_value(&schema.roots[root].root).ok()?.as_raw())?;
            let column = kind.slot.as_ref().and_then(|slot| slot.value);
            let as_it_is = column.is_none_or(|column| program.columns[column.index()].storage == buffer.storage());
            let only_this = !slot.classes.iter().any(|taken| *taken) && !slot.prims.intersects(Prims::STR);
            // Several arrays of one kind would lie in one column.
            let mut others = given.iter().zip(&buffers).filter(|(other, _)| column.is_some() && other.column == column);
            let alone = others.all(|(_, other)| Arc::ptr_eq(other, &buffer));
            if !as_it_is || !only_this || !alone || kind.written || kind.frozen.is_some() {
                return None;
            }
            given.push(Given { root, dtype, column });
            buffers.push(buffer);
        }
        let is_filled = |at: usize| {
            let is = |column: Option<ColumnId>| column.is_some_and(|column| column.index() == at);
            let is_destination = match destination {
                Destination::Buffer(column, _) => is(Some(column)),
                Destination::Reduced(fold) => is(Some(fold.column)) || is(fold.mask),
                Destination::Nothing => false,
            };
            let column = &program.columns[at];
            let is_unused = !column.read && !column.written;
            is_unused || is_destination || given.iter().any(|given| is(given.column))
        };
        let nothing_else = plan.classes.is_empty()
            && plan.elements.is_none()
            && plan.accumulators.is_empty()
            && schema.table.is_none()
            && program.jobs == Jobs::Identity
            && !program.takes_rows()
            && program.strides.is_empty()
            && !program.columns.iter().any(|column| column.ranged.is_some())
            && (schema.marks.is_none() || matches!(destination, Destination::Reduced(_)))
            && schema.bytes.is_none()
            && schema.order.is_none()
            && schema.starts.is_none()
            && schema.whole.is_none()
            && (0..program.columns.len()).all(is_filled);
        nothing_else.then(|| Self {
            variant: variant.clone(),
            backend: section.backend.clone(),
            settings: request.settings,
            kind: request.kind,
            lambda: request.captures.is_lambda(),
            given,
            destination,
            tables: Tables::empty(plan),
            straight: program.is_straight(),
        })
    }

    /// Whether a launch with such a limit may leave it. One that found an element runs again up to there.
    pub(super) fn may_follow(&self, limit: Key) -> bool {
        limit == Key::NONE || self.kind == Kind::Find
    }

    /// Whether it fits a call, apart from what the values of its roots decide.
    fn fits(&self, kind: Kind, lambda: bool, few: bool, settings: &Settings) -> bool {
        let form = &self.variant.form;
        (self.kind, self.lambda, form.few) == (kind, lambda, few)
            && self.settings == *settings
            && form.process == super::compile::owner(form.backend)
    }

    /// Whether a newer one takes its place.
    fn is_replaced_by(&self, new: &Self) -> bool {
        let form = &new.variant.form;
        let dtypes = |path: &Self| path.given.iter().map(|given| given.dtype).collect::<SmallVec<[Dtype; 4]>>();
        self.fits(new.kind, new.lambda, form.few, &new.settings) && dtypes(self) == dtypes(new)
    }

    /// The arguments of the launch. None where something does not fit.
    fn arguments(&self, ruby: &Ruby, call: &Call<'_>) -> Result<Option<Arguments>, Error> {
        let (plan, lowered) = (&self.variant.plan, &self.variant.lowered);
        let mut params: SmallVec<[u64; 16]> = smallvec![0; lowered.program.params.len()];
        let (mut read, mut next) = (SmallVec::<[Resident; 2]>::new(), self.given.iter().peekable());
        if let Some(first) = lowered.schema.range {
            params[first.index()] = call.range.0 as u64;
        }
        for (at, root) in lowered.schema.roots.iter().enumerate() {
            let value = live_world::captured(ruby, call.captures, &root.root)?;
            let packed = match next.next_if(|given| given.root == at) {
                Some(given) => {
                    let Some((dtype, buffer)) = buffer::of(value.as_raw()) else { return Ok(None) };
                    if dtype != given.dtype {
                        return Ok(None);
                    }
                    let packed = pack::sole_array(lowered, at, buffer.len(), &mut params);
                    match (given.column, read.iter().find(|other| Some(other.column) == given.column)) {
                        (Some(_), Some(other)) if !Arc::ptr_eq(&other.buffer, &buffer) => return Ok(None),
                        (Some(column), None) => read.push(Resident { column, buffer, write: Write::None }),
                        _ => {}
                    }
                    packed
                }
                None => pack::root(plan, lowered, &self.tables, at, RootValue::of(ruby, value), &mut params),
            };
            if packed.is_err() {
                return Ok(None);
            }
        }
        Ok(pack::in_range(lowered, &params).then_some((params, read)))
    }

    /// Whether the launch ends, or is queued, at once, so that there is nothing to wait for.
    fn is_quick(&self, read: &[Resident], count: usize) -> bool {
        let there = |from: &Buffer| match (self.backend.store(), from.residence()) {
            (Some(store), Residence::Device | Residence::Both) => {
                self.variant.properties.surely_ends
                    && matches!(self.destination, Destination::Buffer(..))
                    && store.is_at_leisure()
            }
            (None, Residence::Nowhere | Residence::Host | Residence::Both) => true,
            _ => false,
        };
        let some = self.backend.store().is_none() || !read.is_empty();
        self.straight
            && some
            && count <= MAX_ELEMENTS_WITH_GVL
            && read.iter().all(|r| r.buffer.is_sure() && there(&r.buffer))
    }

    /// Launches the kernel. None where it does not end well.
    fn launch(
        &self,
        call: &Call<'_>,
        (params, read): &Arguments,
        cancel: &CancelToken,
        timings: &mut Timings,
    ) -> CoreResult<Option<Ends>> {
        let (backend, count) = (&*self.backend, call.range.1);
        let program = &self.variant.lowered.program;
        let mut columns: SmallVec<[HostColumn; 4]> =
            program.columns.iter().map(|column| HostColumn::zeroed(column.storage, 0)).collect();
        let mut completions = Vec::new();
        let made = match self.destination {
            Destination::Buffer(column, dtype) => {
                let buffer = Arc::new(Buffer::zeroed(dtype.storage(), count));
                Some((dtype, Resident { column, buffer, write: Write::All }))
            }
            Destination::Reduced(fold) if backend.store().is_none() => {
                for column in [Some(fold.column), fold.mask].into_iter().flatten() {
                    let storage = program.columns[column.index()].storage;
                    columns[column.index()] = room::caught(|| HostColumn::zeroed(storage, count))?;
                }
                None
            }
            _ => None,
        };
        for resident in read.iter().chain(made.iter().map(|(_, made)| made)) {
            // Only results may fail later.
            let later = made.is_some().then_some(&mut completions);
            resident.enter(backend, &mut columns, later, false)?;
        }
        let biases: SmallVec<[u64; 4]> = smallvec![0; columns.len()];
        let launch = Launch::of(count as u64, &mut columns, &biases, params, cancel, timings);
        let (slots, block_size) = (backend.slots(count as u64), self.settings.block_size);
        let launch = Launch { seed: random::seed(), section: call.number, slots, block_size, ..launch };
        let (outcome, reduced) = match self.destination {
            Destination::Reduced(fold) => backend.launch_fold(&*self.variant.executable, fold, launch)?,
            _ => (backend.launch(&*self.variant.executable, launch)?, None),
        };
        Ok(match (outcome, made, reduced) {
            (Outcome::Done, Some((dtype, made)), _) => {
                made.keep(&mut columns, &completions);
                Some(Ends::Values(dtype, made.buffer))
            }
            (Outcome::Done, None, Some(reduced)) => Some(Ends::Reduced(reduced)),
            (Outcome::Done, None, None) if self.kind == Kind::Find => Some(Ends::Nothing),
            (Outcome::Trapped(record), None, None) if self.kind == Kind::Find => {
                let site = &program.sites[record.site.index()];
                let found = site.trap == Trap::Break && site.operands.is_empty();
                found.then(|| Ends::Found(record.key.index()))
            }
            _ => None,
        })
    }
}

/// Whether sections look at nothing but their calls.
fn is_open(ruby: &Ruby) -> bool {
    !(super::resident::is_open() || gate::current(ruby).is_some() || profile::is_running() || explain::is_running())
}

impl Site {
    /// Remembers a fast path for later calls.
    pub(super) fn remember(&self, new: FastPath) {
        let mut paths = self.fast_paths.lock();
        paths.retain(|old| !old.is_replaced_by(&new));
        paths.truncate(MAX_FAST_PATHS - 1);
        paths.insert(0, Arc::new(new));
    }

    /// What the fast path of a call leaves. None where none can be taken.
    ///
    /// # Errors
    /// What Ruby raises meanwhile, and what interrupts raise.
    fn take(&self, ruby: &Ruby, call: &Call<'_>) -> Result<Option<Ends>, Error> {
        let ((_, count), lambda) = (call.range, call.captures.is_lambda());
        let few = count < ikra_core::ir::ASSUMED_LIMIT as usize;
        let paths: SmallVec<[Arc<FastPath>; MAX_FAST_PATHS]> = {
            let paths = self.fast_paths.lock();
            paths.iter().filter(|path| path.fits(call.kind, lambda, few, &call.settings)).cloned().collect()
        };
        if paths.is_empty() {
            return Ok(None);
        }
        let history = *self.history.lock();
        let backend = backends::choose(call.settings.backend, count, 1, &history);
        for path in paths.iter().filter(|path| path.variant.form.backend == backend) {
            let guards = &path.variant.guards;
            if !guards.hold(ruby)? || !guards.outside_hold(ruby, call.captures)? {
                continue;
            }
            let Some(arguments) = path.arguments(ruby, call)? else { continue };
            let (cancel, mut timings) = (CancelToken::default(), Timings::default());
            let mut work = || path.launch(call, &arguments, &cancel, &mut timings);
            let left = if path.is_quick(&arguments.1, count) { Some(work()) } else { gvl::run(ruby, &cancel, work)? };
            // On any other outcome the section runs, and reports it.
            let Some(Ok(Some(left))) = left else { return Ok(None) };
            if call.settings.backend == Choice::Auto {
                self.note(backend, (count as u64, 1), &timings, (0.0, 0.0));
            }
            return Ok(Some(left));
        }
        Ok(None)
    }

    /// The value of a section by a fast path. None where it must run.
    ///
    /// # Errors
    /// As [`Site::take`].
    pub(super) fn repeated(&self, ruby: &Ruby, request: &Request, number: u32) -> Result<Option<Value>, Error> {
        let Some(range) = request.range.filter(|_| request.ticks == 1 && request.told.is_none() && is_open(ruby))
        else {
            return Ok(None);
        };
        let Request { settings, kind, ref captures, .. } = *request;
        let Some(left) = self.take(ruby, &Call { settings, kind, captures, range, number })? else { return Ok(None) };
        let (how, value) = match left {
            Ends::Values(dtype, values) => return Ok(Some(buffer::wrap(ruby, dtype, values).as_value())),
            Ends::Reduced(reduced) => {
                let reduction = settings.reduce.unwrap_or(Reduction::Count);
                (Some("reduced"), collect::reduced_value(ruby, reduction, reduced)?)
            }
            Ends::Found(index) => (Some("found"), ruby.into_value(index)),
            Ends::Nothing => (None, request.base),
        };
        Ok(Some(if request.wrapped { ended(ruby, how, value, None) } else { value }))
    }
}

/// `Ikra.__fast_path(block, storage, layout, class)`: the value of a section over an array's elements, of a block
/// within `stored`, as an array of `class` in the same layout. Where `class` is nil, it gives the buffer of the values,
/// in which a method makes elements of the same kind. Gives nil where a section must run, if only to say why it cannot.
///
/// # Errors
/// What Ruby raises meanwhile, and what interrupts raise.
pub fn run(ruby: &Ruby, block: Proc, storage: Value, layout: Value, class: Value) -> Result<Option<Value>, Error> {
    if !is_open(ruby) {
        return Ok(None);
    }
    let Some(iseq) = reflect::iseq_of(block.as_value())? else { return Ok(None) };
    let id = |name: &LazyId| name.into_id_with(ruby).as_raw();
    // Elements that are not computed yet, objects, views and freed arrays take the normal path.
    if storage.is_nil() {
        return Ok(None);
    }
    let is_packed = match heap::ivar(layout.as_raw(), id(&names::PACKED)) {
        // An object that is no layout has no such method.
        heap::NIL => {
            layout.check_funcall::<_, _, Value>(*names::IS_PACKED, ()).transpose()?.is_some_and(Value::to_bool)
        }
        known => known == PACKED,
    };
    if !is_packed {
        return Ok(None);
    }
    let from = heap::ivar(storage.as_raw(), id(&names::BUFFER));
    let Some((given, buffer)) = buffer::of(from) else { return Ok(None) };
    let count = heap::fixnum(heap::ivar(layout.as_raw(), id(&names::SIZE))) as usize;
    let same = class.is_nil();
    if !same {
        RClass::try_convert(class)?;
    }
    let mut methods: SmallVec<[(ID, usize); 4]> = SmallVec::new();
    methods.extend(same.then(|| (id(&names::AS[given as usize]), 0)));
    methods.push((id(&names::STORED), 1));
    let in_force = InForce::of(ruby, block.as_value())?.fingerprint();
    let key = Use { block: BlockKey::Iseq(iseq.as_raw(), in_force), within: Within { methods, finds: false } };
    let Some(site) = known_site(&key) else { return Ok(None) };
    if count == 0 || count > buffer.len() {
        return Ok(None);
    }
    let captures = &Captures::new(block).with(block::Given::from_slice(&[from]));
    let into = if same { Results::As(given) } else { Results::Natural };
    let (settings, number) = (Settings::defaults_into(into), random::next_section());
    let left = site.take(ruby, &Call { settings, kind: Kind::Map, captures, range: (0, count), number });
    let Ok(Some(Ends::Values(dtype, results))) = left else {
        random::give_back(number);
        return left.map(|_| None);
    };
    let values = buffer::wrap(ruby, dtype, results).as_value();
    if same {
        return Ok(Some(values));
    }
    let none: Value = ruby.integer_from_i64(0).as_value();
    let storage = reflect::made(storage.class().as_value(), [(&names::BUFFER, values), (&names::RETAINED, none)])?;
    reflect::made(class, [(&names::LAYOUT, layout), (&names::STORAGE, storage)]).map(Some)
}
