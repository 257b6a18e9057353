//! One section from Ruby to Ruby: observe, compile, pack, run, unpack.
//!
//! Here: [`section`], which reads the arguments of a call. Not here: the steps.
//!
//! * [`cache`]: what is kept of each block between calls.
//! * [`fast_path`]: a call that looks as the one before.
//! * [`retry`]: the loop: select, launch, and begin again.
//! * [`select`]: chooses the variant for the values of this call, and packs its columns.
//! * [`compile`]: compiles a variant ([`variant`]).
//! * [`run`]: one launch.
//! * [`finish`]: the value of the section.
//! * [`resident`]: objects that stay on the device.
//!
//! Invariant: nothing of the user's changes before [`crate::marshal::unpack::Unpacker::write_back`], whatever happens.
//!
//! A block that was compiled is a [`variant::Variant`] of its [`Site`]. A later call checks the variant's guards and packs by
//! its schema. The first value that does not fit ends packing. Then another variant is tried, or one is compiled for
//! the values of this call.

mod cache;
mod compile;
pub mod fast_path;
mod finish;
pub mod resident;
mod retry;
mod run;
mod select;
mod variant;

use crate::buffers::buffer;
use crate::device::backends;
use crate::marshal::held_procs;
use crate::options::{Asked, Choice, Results, Settings};
use crate::report::explain::{self, Account};
use crate::report::profile::{About, Clock, Phase};
use crate::ruby::dtype::Dtype;
use crate::ruby::errors;
use crate::ruby::heap::{self, Seen};
use crate::ruby::question;
use crate::ruby::range::Bounds;
use crate::ruby::registry::names;
use crate::section::random;
use crate::world::block::Captures;
pub use cache::{adds, forget_code};
use cache::{Site, Within, find_site};
use finish::ended;
use ikra_core::backend::{Backend, Key};
use ikra_core::engine::SectionOp;
use ikra_core::error::Error as CoreError;
use ikra_core::memory::buffer::Buffer;
use ikra_core::sched::cost::History;
use magnus::block::Proc;
use magnus::prelude::*;
use magnus::rb_sys::{AsRawId, AsRawValue};
use magnus::value::IntoId;
use magnus::{Error, RArray, RHash, RModule, Ruby, Symbol, Value};
use resident::{Inside, Scope, State};
use smallvec::smallvec;
use std::cell::Cell;
use std::sync::Arc;
use variant::Variant;

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
/// * `__reduce:`: the value is the reduction of the results ([`crate::section::collect::reduce_buffer`]), and the
///   section ended as `:reduced`. Where the results cannot be reduced so, they are the value.
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
    if within.methods.is_empty() && (captures.is_lambda() || captures.is_native()?) {
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

    fn failed(&self, error: CoreError) -> Error {
        errors::core(self.ruby, error)
    }
}
