//! One section from Ruby to Ruby: observe, compile, pack, run, unpack.
//!
//! Here: [`section`], from a call to its value. Not here: the steps.
//!
//! * [`request`]: what the call asks for.
//! * [`cache`]: what is kept of each block between calls.
//! * [`fast_path`]: a call that looks as the one before.
//! * [`retry`]: the loop: select, launch, and begin again.
//! * [`select`]: chooses the variant for the values of this call, and packs its columns.
//! * [`compile`]: compiles a variant ([`variant`]).
//! * [`run`]: one launch.
//! * [`footprint`]: sections that run at once.
//! * [`submitted`]: sections that end later.
//! * [`curves`]: what kernels took.
//! * [`held`]: sections that wait for a plan.
//! * [`finish`]: the value of the section.
//! * [`resident`]: objects that stay on the device.
//!
//! Invariant: nothing of the user's changes before [`crate::marshal::unpack::Unpacker::write_back`], whatever happens.
//!
//! A block that was compiled is a [`variant::Variant`] of its [`Site`]. A later call checks the variant's guards and
//! packs by its schema. The first value that does not fit ends packing. Then another variant is tried, or one is
//! compiled for the values of this call.

mod cache;
mod compile;
pub mod curves;
pub mod fast_path;
mod finish;
pub mod footprint;
pub mod held;
mod request;
pub mod resident;
mod retry;
mod run;
mod select;
pub mod submitted;
mod variant;

use crate::device::backends;
use crate::marshal::held_procs;
use crate::options::Choice;
use crate::report::explain::{self, Account};
use crate::report::profile::{self, About, Clock, Phase};
use crate::ruby::errors;
use crate::ruby::gate;
use crate::ruby::heap;
use crate::ruby::registry::names;
use crate::section::random;
use crate::world::block::Captures;
use cache::{Site, find_site};
pub use cache::{adds, asks, counts, emits, forget_code, gives_element, word_wise};
use ikra_core::backend::Backend;
use ikra_core::error::Error as CoreError;
use ikra_core::sched::cost::History;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Ruby, Value};
use request::{Arguments, Request};
use resident::{Inside, Scope, State};
use std::cell::Cell;
use std::sync::Arc;
use variant::Variant;

/// `Ikra.__section`: one section. [`Arguments`] says what it is given, and what it gives.
///
/// # Errors
/// CompileError and its subclasses, whatever the block raises, and what interrupts raise.
pub fn section(ruby: &Ruby, arguments: Arguments) -> Result<Value, Error> {
    let (.., block, _) = arguments;
    if let Some(queued) = queued(ruby, &arguments)? {
        return Ok(queued);
    }
    let captures = Captures::new(block);
    let inside = Inside::enter(ruby, &captures)?;
    let _under_way = held_procs::UnderWay::begin();
    let ended = section_of(ruby, arguments, captures, inside.is_known());
    inside.leave(ruby, ended.as_ref().ok())?;
    ended
}

/// The `Ikra::Section` that a call gives where its Fiber queues sections. None where it runs now.
fn queued(ruby: &Ruby, arguments: &Arguments) -> Result<Option<Value>, Error> {
    let Some(gate) = gate::current(ruby).filter(|_| is_whole_call(arguments)) else { return Ok(None) };
    let (operation, _, base, ticks, options, block, _) = arguments;
    gate.funcall("queued", (*operation, *base, *ticks, *options, *block))
}

/// Whether a section is a whole call of `pmap` or `peach`.
fn is_whole_call((operation, .., within): &Arguments) -> bool {
    within.is_none() && (*operation == *names::PMAP || *operation == *names::PEACH)
}

/// The same, once it is known which objects are in the middle of their methods. `may_leave`: its caller may go on while
/// it runs.
fn section_of(ruby: &Ruby, arguments: Arguments, captures: Captures, may_leave: bool) -> Result<Value, Error> {
    let is_whole = is_whole_call(&arguments);
    let (request, within) = Request::parse(ruby, arguments, captures)?;
    let number = random::next_section();
    if let Some(value) = request.nothing(ruby) {
        return Ok(value);
    }
    let mut clock = Clock::start(ruby);
    let site = clock.measure(Phase::Source, || find_site(ruby, &request.captures, within));
    let site = site.map_err(|f| errors::source(ruby, f))?;
    if let Some(value) = site.repeated(ruby, &request, number)? {
        return Ok(value);
    }
    let scope = resident::scope(ruby);
    // Columns that stay need no transfer.
    let history = if scope.is_some() { History::default() } else { *site.history.lock() };
    let choice = match request.settings.code.races {
        // Only the interpreter looks for races.
        true => Choice::Reference,
        false => backends::choose(request.settings.backend, request.elements, request.ticks, &history),
    };
    let backend = backends::open(choice).map_err(|e| errors::core(ruby, e))?;
    clock.tell(ruby, || {
        let (path, line) = errors::place(ruby, &site.source.unit.source)?;
        let (operation, path) = (request.operation.name()?.into_owned(), path.into());
        let Request { elements, ticks, .. } = request;
        Ok(About { operation, path, line, backend: backend.name(), elements, ticks })
    })?;
    let explained = explain::wanted(ruby).then(Explained::default);
    let (request, counted, state, gate) = (&request, Cell::default(), None, gate::current(ruby));
    let is_resumable = match gate {
        Some(gate) if may_leave && explained.is_none() && is_whole && !profile::is_within(ruby) => {
            gate.funcall("resumes?", ())?
        }
        _ => false,
    };
    let (has_turn, leaves, is_left) = (false, Leaves::Never, false);
    Section {
        ruby,
        request,
        site,
        choice,
        backend,
        number,
        clock,
        counted,
        explained,
        scope,
        state,
        gate,
        has_turn,
        is_resumable,
        leaves,
        is_left,
    }
    .run()
}

/// Whether the caller of a section goes on while its kernel runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    Never,
    /// Where the kernel runs long enough.
    WhereLong,
    Always,
    /// Its launch waits for a plan.
    Held,
}

/// One section: a call of `pmap` or `peach`, or a part of another operation.
struct Section<'r> {
    ruby: &'r Ruby,
    request: &'r Request,
    site: Arc<Site>,
    choice: Choice,
    backend: Arc<dyn Backend>,
    /// Its number since the seed of `rand` was set.
    number: u32,
    clock: Clock,
    /// How many elements were packed, if the base is an Array. Other threads may add or remove some while a kernel
    /// runs.
    counted: Cell<Option<usize>>,
    /// Set where `Ikra.explain` wants an account. Then the section is compiled anew, only for that.
    explained: Option<Explained>,
    /// The scope that keeps columns where they are.
    scope: Option<Arc<Scope>>,
    /// The section's state in that scope.
    state: Option<Arc<State>>,
    /// What it reports to, where several sections run at once.
    gate: Option<Value>,
    /// Whether it waits before it writes back.
    has_turn: bool,
    /// Whether its gate takes a section that has to be ended ([`submitted::Submitted`]) in place of its value.
    is_resumable: bool,
    leaves: Leaves,
    /// Whether its caller has gone on, so that objects may change while it runs.
    is_left: bool,
}

/// A section that is being explained.
#[derive(Default)]
struct Explained {
    variant: Option<Arc<Variant>>,
    account: Option<Account>,
}

impl Section<'_> {
    /// How many elements there are.
    fn len(&self) -> usize {
        let now = || self.counted.get().unwrap_or_else(|| heap::elements(self.request.base.as_raw()).len());
        self.request.range.map_or_else(now, |(_, len)| len)
    }

    /// The most jobs that run at the same time.
    fn slots(&self) -> u64 {
        self.backend.slots(self.len() as u64)
    }

    fn failed(&self, error: CoreError) -> Error {
        errors::core(self.ruby, error)
    }
}
