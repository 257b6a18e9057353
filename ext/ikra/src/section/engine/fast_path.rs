//! The fast path: the same block once more, over the elements of a buffer as they lie, in one step.
//!
//! Here: [`FastPath`], what a section leaves for later calls of the same block, and [`run`], the fast path itself. Not
//! here: any other call. Where something is not as it was, [`run`] says so and leaves no trace. Its caller then runs
//! a section ([`super::section`]), which checks everything.
//!
//! The fast path is open to a block within `stored`, perhaps within a method that makes elements of its values. Its
//! program reads that buffer and launch parameters, and writes its results, and nothing else. What a section checks is
//! checked here, too:
//!
//! * The code, and the methods around it, are those of the [`Site`].
//! * The call has no options. The defaults are those that it was compiled for ([`Settings::changes`]).
//! * `auto` chooses the backend anew. The form of a variant says whose device its kernel is on.
//! * The variant's guards check methods, constants and captured Procs.
//! * Captured variables and ivars of `self` are read anew, and encoded as packing does.
//! * Elements are of the same kind. There are few of them, or not, as before.
//! * No scope, profile or explanation is open, on any thread.
//!
//! A program whose exception may be deferred on a device needs an error callback. It takes the normal path.

use super::Section;
use super::cache::{Site, Use, Within, known_site};
use super::request::Kind;
use super::variant::{Variant, is_dtype};
use crate::buffers::buffer;
use crate::device::backends;
use crate::marshal::pack::{self, RootValue};
use crate::marshal::trace::Tables;
use crate::options::{Choice, Settings};
use crate::report::explain;
use crate::report::profile;
use crate::ruby::dtype::Dtype;
use crate::ruby::environment::InForce;
use crate::ruby::gvl;
use crate::ruby::heap::{self, Raw};
use crate::ruby::reflect;
use crate::ruby::registry::names;
use crate::section::random;
use crate::world::block::{Captures, Given, Key as BlockKey};
use crate::world::live_world;
use ikra_core::backend::resident::{Resident, Write};
use ikra_core::backend::{Backend, CancelToken, Launch, Outcome, Timings};
use ikra_core::error::Result as CoreResult;
use ikra_core::ir::ColumnId;
use ikra_core::memory::buffer::{Buffer, Residence};
use ikra_core::memory::column::HostColumn;
use ikra_core::syntax;
use ikra_core::world::Root;
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

/// The fast path of a block's section.
pub(super) struct FastPath {
    variant: Arc<Variant>,
    backend: Arc<dyn Backend>,
    /// The backend that the call asked for.
    asked: Choice,
    /// How often the defaults had been changed.
    defaults: u64,
    lambda: bool,
    /// The dtypes of the elements that it is given, and of those that it makes.
    given: Dtype,
    made: Dtype,
    /// The column of the given elements, and the root that refers to it, where the program reads them.
    from: Option<(ColumnId, usize)>,
    to: ColumnId,
    /// Empty tables.
    tables: Tables,
    /// No job takes long, and none waits.
    straight: bool,
}

impl FastPath {
    /// The fast path that a section leaves, if it ended well and later calls may take it.
    pub(super) fn of(section: &Section<'_>, variant: &Arc<Variant>) -> Option<Self> {
        let request = &section.request;
        let plain = request.wrapped
            && request.kind != Kind::Another
            && request.ticks == 1
            && section.scope.is_none()
            && section.explained.is_none()
            && request.told.is_none()
            && matches!(request.range, Some((0, len)) if len > 0);
        let properties = &variant.properties;
        let sure = properties.surely_ends || properties.sites.is_some() && section.backend.store().is_none();
        if !plain || !sure || variant.fold.is_some() || variant.compaction.is_some() {
            return None;
        }
        let defaults = request.settings.are_defaults()?;
        let (plan, lowered) = (&variant.plan, &variant.lowered);
        let (program, schema) = (&lowered.program, &lowered.schema);
        let result = plan.result.as_ref()?;
        let (into, to) = (request.settings.into?, result.value?);
        let made = is_dtype(into, result)?;
        let [given] = request.captures.given()[..] else { return None };
        let (dtype, buffer) = buffer::of(given)?;
        let mut leading = plan.roots.iter().enumerate().filter(|(_, slot)| slot.leads_on());
        let from = match (leading.next(), leading.next(), &plan.kinds[..]) {
            (None, _, []) => None,
            (Some((at, root)), None, [kind]) => {
                let column = kind.slot.as_ref()?.value?;
                let is_given = matches!(&schema.roots[at].root, Root::Capture(name) if *name == syntax::given(0));
                let as_it_is = program.columns[column.index()].storage == buffer.storage();
                if !is_given || !as_it_is || kind.written || kind.frozen.is_some() || root.kind != Some(0) {
                    return None;
                }
                Some((column, at))
            }
            _ => return None,
        };
        let nothing_else = plan.classes.is_empty()
            && plan.elements.is_none()
            && plan.accumulators.is_empty()
            && program.heaps.is_empty()
            && program.strides.is_empty()
            && schema.marks.is_none()
            && schema.bytes.is_none()
            && schema.order.is_none()
            && schema.starts.is_none()
            && program.columns.len() == 1 + usize::from(from.is_some());
        nothing_else.then(|| Self {
            variant: variant.clone(),
            backend: section.backend.clone(),
            asked: request.settings.backend,
            defaults,
            lambda: request.captures.is_lambda(),
            given: dtype,
            made,
            from,
            to,
            tables: Tables::empty(plan),
            straight: program.is_straight(),
        })
    }

    /// Whether it fits a call, apart from what the block itself decides.
    fn fits(&self, lambda: bool, given: Dtype, few: bool, defaults: u64) -> bool {
        let form = &self.variant.form;
        (self.lambda, self.given, self.defaults) == (lambda, given, defaults)
            && (form.few, form.process) == (few, super::compile::owner(form.backend))
    }

    /// The parameters of the launch. None where something does not fit.
    fn params(&self, ruby: &Ruby, captures: &Captures, buffer: &Buffer) -> Result<Option<SmallVec<[u64; 16]>>, Error> {
        let (plan, lowered) = (&self.variant.plan, &self.variant.lowered);
        let mut params: SmallVec<[u64; 16]> = smallvec![0; lowered.program.params.len()];
        for (at, root) in lowered.schema.roots.iter().enumerate() {
            let packed = match self.from {
                Some((_, from)) if from == at => pack::sole_array(lowered, at, buffer.len(), &mut params),
                _ => {
                    let value = RootValue::of(ruby, live_world::captured(ruby, captures, &root.root)?);
                    pack::root(plan, lowered, &self.tables, at, value, &mut params)
                }
            };
            if packed.is_err() {
                return Ok(None);
            }
        }
        Ok(pack::in_range(lowered, &params).then_some(params))
    }

    /// Whether the launch ends, or is queued, at once, so that there is nothing to wait for.
    fn is_quick(&self, from: &Buffer, count: usize) -> bool {
        let there = || match (self.backend.store(), from.residence()) {
            (Some(store), Residence::Device | Residence::Both) => {
                self.variant.properties.surely_ends && store.is_at_leisure()
            }
            (None, Residence::Nowhere | Residence::Host | Residence::Both) => true,
            _ => false,
        };
        self.straight && count <= MAX_ELEMENTS_WITH_GVL && from.is_sure() && there()
    }

    /// Launches the kernel. If it ends well, `results` has the elements that it makes.
    fn launch(
        &self,
        number: u32,
        (from, results, count): (&Arc<Buffer>, &Arc<Buffer>, usize),
        params: &[u64],
        cancel: &CancelToken,
        timings: &mut Timings,
    ) -> CoreResult<Outcome> {
        let backend = &*self.backend;
        let read = self.from.map(|(column, _)| Resident { column, buffer: from.clone(), write: Write::None });
        let made = Resident { column: self.to, buffer: results.clone(), write: Write::All };
        let nothing = || HostColumn::zeroed(results.storage(), 0);
        let (mut columns, mut completions) = ([nothing(), nothing()], Vec::new());
        let columns = &mut columns[..1 + usize::from(read.is_some())];
        for resident in read.iter().chain([&made]) {
            resident.enter(backend, columns, Some(&mut completions), false)?;
        }
        let biases = &[0, 0][..columns.len()];
        let launch = Launch::of(count as u64, columns, biases, params, cancel, timings);
        let launch = Launch { seed: random::seed(), section: number, ..launch };
        let outcome = backend.launch(&*self.variant.executable, launch)?;
        if outcome == Outcome::Done {
            made.keep(columns, &completions);
        }
        Ok(outcome)
    }
}

impl Site {
    /// Remembers a fast path for later calls.
    pub(super) fn remember(&self, new: FastPath) {
        let mut paths = self.fast_paths.lock();
        let now = Settings::changes();
        paths.retain(|old| old.defaults == now && !old.fits(new.lambda, new.given, new.variant.form.few, now));
        paths.truncate(MAX_FAST_PATHS - 1);
        paths.insert(0, Arc::new(new));
    }

    /// The fast path that a call may take, if one is known.
    fn fast_path(&self, lambda: bool, given: Dtype, count: usize) -> Option<Arc<FastPath>> {
        let (few, now) = (count < ikra_core::ir::ASSUMED_LIMIT as usize, Settings::changes());
        let path = self.fast_paths.lock().iter().find(|path| path.fits(lambda, given, few, now)).cloned()?;
        let history = *self.history.lock();
        (backends::choose(path.asked, count, 1, &history) == path.variant.form.backend).then_some(path)
    }
}

/// `Ikra.__fast_path(block, storage, layout, class)`: the value of a section over an array's elements, of a block
/// within `stored`, as an array of `class` in the same layout. Where `class` is nil, it gives the buffer of the values,
/// in which a method makes elements of the same kind. Gives nil where a section must run, if only to say why it cannot.
///
/// # Errors
/// What Ruby raises meanwhile, and what interrupts raise.
pub fn run(ruby: &Ruby, block: Proc, storage: Value, layout: Value, class: Value) -> Result<Option<Value>, Error> {
    if super::resident::is_open() || profile::is_running() || explain::is_running() {
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
    let Some(path) = site.fast_path(block.is_lambda(), given, count) else { return Ok(None) };
    if count == 0 || count > buffer.len() {
        return Ok(None);
    }
    let captures = Captures::new(block).with(Given::from_slice(&[from]));
    let guards = &path.variant.guards;
    if !guards.hold(ruby)? || !guards.outside_hold(ruby, &captures)? {
        return Ok(None);
    }
    let Some(params) = path.params(ruby, &captures, &buffer)? else { return Ok(None) };
    let number = random::next_section();
    let results = Arc::new(Buffer::zeroed(path.made.storage(), count));
    let (cancel, mut timings) = (CancelToken::default(), Timings::default());
    let mut work = || path.launch(number, (&buffer, &results, count), &params, &cancel, &mut timings);
    let outcome = if path.is_quick(&buffer, count) { Some(work()) } else { gvl::run(ruby, &cancel, work)? };
    // On any other outcome the normal path runs everything again, and reports it.
    if !matches!(outcome, Some(Ok(Outcome::Done))) {
        random::give_back(number);
        return Ok(None);
    }
    if path.asked == Choice::Auto {
        site.note(path.variant.form.backend, (count as u64, 1), &timings, (0.0, 0.0));
    }
    let values = buffer::wrap(ruby, path.made, results).as_value();
    if same {
        return Ok(Some(values));
    }
    let none: Value = ruby.integer_from_i64(0).as_value();
    let storage = reflect::made(storage.class().as_value(), [(&names::BUFFER, values), (&names::RETAINED, none)])?;
    reflect::made(class, [(&names::LAYOUT, layout), (&names::STORAGE, storage)]).map(Some)
}
