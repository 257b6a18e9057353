//! Sections that are computed, or on their way, while Ruby goes on.
//!
//! Here: [`Submitted`], an object of Ruby with all that a section needs to end: its launch, or the columns that it
//! left. Any thread may end it, which then writes back. Not here: in which order sections end (`lib/ikra/sections.rb`),
//! and the threads of launches ([`ikra_core::backend::lanes`]).
//!
//! A whole call of `pmap` or `peach` is submitted where its gate says so. A launch that nothing makes run again goes to
//! a lane, if it takes longer than that costs. Any other runs on the caller's thread, and only its write-back is left.

use super::cache::Site;
use super::finish::ResultLocation;
use super::held::Held;
use super::request::{Kind, Request};
use super::retry::LaunchPolicy;
use super::run::{self, Flight, Launched, Settled};
use super::variant::Variant;
use super::{Leaves, Scope, Section, State};
use crate::marshal::held_procs;
use crate::marshal::pack::Packed;
use crate::marshal::trace::Tables;
use crate::options::{Choice, Settings};
use crate::report::profile::Suspended;
use crate::ruby::gvl;
use crate::ruby::heap::Raw;
use crate::ruby::holder::LazyHolder;
use crate::ruby::reflect;
use crate::world::block::Captures;
use ikra_core::backend::lanes::{self, Job};
use ikra_core::backend::{Backend, CancelToken, Key};
use ikra_core::sched::makespan::Member;
use magnus::block::Proc;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{DataTypeFunctions, Error, RModule, Ruby, Symbol, TryConvert, TypedData, Value, gc, method};
use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Shorter launches run on the caller's thread: to hand one over, and to wait for it, takes about half as long.
const WORTH_A_LANE: Duration = Duration::from_micros(100);
/// Longer launches share their work with all processors, even where others wait. So none takes longer than it would
/// alone.
const MAX_UNSPLIT: Duration = Duration::from_millis(20);
/// How soon an interrupt is seen.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A section that has to be ended.
#[derive(TypedData)]
#[magnus(class = "Ikra::Submitted", mark)]
pub struct Submitted {
    /// What it keeps alive, and in its place: the operation, the base, the block, and the holder.
    kept: [Raw; 4],
    job: Option<Arc<Job<Launched>>>,
    /// Where its launch waits for a plan.
    held: Option<Held>,
    left: Mutex<Option<Left>>,
    /// When its launch began on a lane, and when it ended.
    span: Mutex<Option<(Instant, Instant)>>,
    /// What its launch is among others.
    member: Mutex<Option<Member>>,
}

/// What is left of a section on the caller's thread.
struct Left {
    kind: Kind,
    range: Option<(i64, usize)>,
    elements: usize,
    ticks: u64,
    settings: Settings,
    counted: Option<usize>,
    site: Arc<Site>,
    choice: Choice,
    backend: Arc<dyn Backend>,
    number: u32,
    scope: Option<Arc<Scope>>,
    state: Option<Arc<State>>,
    variant: Arc<Variant>,
    tables: Arc<Tables>,
    packed: Packed,
    /// None where a lane has the launch.
    settled: Option<Settled>,
    clock: Suspended,
    _under_way: held_procs::UnderWay,
}

impl DataTypeFunctions for Submitted {
    fn mark(&self, marker: &gc::Marker) {
        self.kept.iter().for_each(|raw| marker.mark(reflect::value(*raw)));
    }
}

impl Drop for Submitted {
    fn drop(&mut self) {
        // Its value cannot be asked for after this.
        self.job.iter().for_each(|job| job.cancel());
    }
}

/// Defines `Ikra::Submitted`, which Ruby code cannot make.
///
/// # Errors
/// Where the name is taken.
pub fn init(ikra: RModule, ruby: &Ruby) -> Result<(), Error> {
    let class = ikra.define_class("Submitted", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("finish", method!(Submitted::finish, 0))?;
    class.define_method("computed?", method!(Submitted::is_computed, 0))?;
    class.define_method("wait", method!(Submitted::wait, 1))?;
    class.define_method("span", method!(Submitted::span, 0))?;
    class.define_method("member", method!(Submitted::member, 0))?;
    class.define_method("cancel", method!(Submitted::cancel, 0))?;
    ikra.funcall::<_, _, Value>("private_constant", (ruby.to_symbol("Submitted"),))?;
    <Submitted as TypedData>::class(ruby);
    Ok(())
}

impl Submitted {
    /// Its launch, where that waits for a plan.
    pub(super) fn held(&self) -> Option<(&Held, &Arc<Job<Launched>>)> {
        self.held.as_ref().zip(self.job.as_ref())
    }

    /// Whether nothing is left to compute.
    fn is_computed(&self) -> bool {
        self.job.as_ref().is_none_or(|job| job.is_done() || job.is_lost())
    }

    /// Waits for so many seconds, or until nothing is left to compute. Whether that is so.
    fn wait(ruby: &Ruby, this: &Self, seconds: Option<f64>) -> Result<bool, Error> {
        let most = seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
        this.wait_for(ruby, most)
    }

    fn wait_for(&self, ruby: &Ruby, most: Option<Duration>) -> Result<bool, Error> {
        let Some(job) = &self.job else { return Ok(true) };
        let began = Instant::now();
        while !job.is_done() {
            if job.is_lost() {
                return Ok(true);
            }
            let left = most.map_or(LOOK_EVERY, |most| most.saturating_sub(began.elapsed()).min(LOOK_EVERY));
            if left.is_zero() {
                return Ok(false);
            }
            gvl::released(|| job.wait(left, true));
            ruby.thread_check_ints()?;
        }
        Ok(true)
    }

    /// Nothing of it is written, and it does not run any more.
    ///
    /// # Errors
    /// What interrupts raise.
    pub(super) fn stop(&self, ruby: &Ruby) -> Result<(), Error> {
        self.cancel();
        self.wait_for(ruby, None).map(drop)
    }

    /// Nothing of it is written.
    fn cancel(&self) {
        self.job.iter().for_each(|job| job.cancel());
        let _left = self.left.lock().take();
    }

    /// How many seconds ago its launch began on a lane, and ended. None before the section has ended.
    fn span(&self) -> Option<(f64, f64)> {
        let (began, ended) = (*self.span.lock())?;
        Some((began.elapsed().as_secs_f64(), ended.elapsed().as_secs_f64()))
    }

    /// How many seconds its launch takes alone, and how many it would take if it filled the machine. None where it has
    /// not ended, or was not measured.
    fn member(&self) -> Option<(f64, f64)> {
        let Member { alone, whole } = (*self.member.lock())?;
        Some((alone, whole))
    }

    /// Writes back, and gives the section's value.
    fn finish(ruby: &Ruby, this: &Self) -> Result<Value, Error> {
        this.wait_for(ruby, None)?;
        if this.job.as_ref().is_some_and(|job| job.is_lost()) {
            let message = "a section was under way when the process forked: ask for its value before";
            return Err(Error::new(ruby.exception_runtime_error(), message));
        }
        let Some(left) = this.left.lock().take() else { return Ok(ruby.qnil().as_value()) };
        let [operation, base, block, holder] = this.kept.map(reflect::value);
        let holder = LazyHolder::try_from(holder)?;
        let Left { kind, range, elements, ticks, settings, site, choice, backend, number, .. } = left;
        let (scope, state, variant, tables) = (left.scope, left.state, left.variant, left.tables);
        let clock = left.clock.resume();
        let (operation, captures) = (Symbol::try_convert(operation)?, Captures::new(Proc::try_convert(block)?));
        let (wrapped, error_callback, told) = (false, None, None);
        let request = &Request {
            operation,
            kind,
            base,
            range,
            elements,
            ticks,
            settings,
            captures,
            wrapped,
            error_callback,
            told,
        };
        let mut section = Section {
            ruby,
            request,
            site,
            choice,
            backend,
            number,
            clock,
            counted: Cell::new(left.counted),
            explained: None,
            scope,
            state,
            gate: None,
            has_turn: false,
            is_resumable: false,
            leaves: Leaves::Never,
            is_left: true,
        };
        let (mut packed, job) = (left.packed, this.job.as_ref());
        let settled = match (left.settled, job.and_then(|job| job.take())) {
            (None, Some(launched)) => section.landed(&variant, &mut packed, launched)?,
            (settled, _) => settled,
        };
        let Some(settled) = settled else { return Err(section.has_to_run_again()) };
        section.clock.shares(settled.share);
        *this.span.lock() = settled.span;
        *this.member.lock() = settled.member;
        let value = section.written_back(&variant, &mut packed, &tables, &holder, settled);
        section.keep(&variant, tables, &holder);
        value?.ok_or_else(|| section.has_to_run_again())
    }
}

impl Section<'_> {
    /// Whether a launch goes to a lane.
    pub(super) fn is_worth_a_lane(&self, flight: &Flight) -> bool {
        match self.leaves {
            Leaves::Never => false,
            Leaves::WhereLong => flight.predicted().is_none_or(|time| time >= WORTH_A_LANE),
            Leaves::Always | Leaves::Held => true,
        }
    }

    /// Whether nothing would be left to do behind a launch on the caller's thread: its columns stay, and no section
    /// before it may still raise.
    pub(super) fn ends_at_once(&self) -> Result<bool, Error> {
        match self.gate {
            Some(gate) if self.is_resumable && self.state.is_some() => gate.funcall("alone?", ()),
            _ => Ok(false),
        }
    }

    /// Hands a launch over to a lane.
    pub(super) fn submit(
        &mut self,
        (variant, tables): (Arc<Variant>, Arc<Tables>),
        (packed, flight): (Packed, Flight),
        holder: &LazyHolder,
    ) -> Value {
        let is_small = flight.predicted().is_some_and(|time| time <= MAX_UNSPLIT);
        let on_device = flight.is_on_device();
        let left = self.left((variant, tables), packed, None);
        if self.leaves == Leaves::Held {
            let (held, job) = Held::new(flight, &*self.backend, is_small);
            return self.object(Some(job), Some(held), left, holder);
        }
        let work = Box::new(move |cancel: &CancelToken, crowded| flight.run_on_lane(cancel, crowded && is_small, None));
        self.object(Some(lanes::submit(on_device, work)), None, left, holder)
    }

    /// Leaves only the write-back.
    pub(super) fn leave(
        &mut self,
        (variant, tables): (Arc<Variant>, Arc<Tables>),
        (packed, settled): (Packed, Settled),
        holder: &LazyHolder,
    ) -> Value {
        let left = self.left((variant, tables), packed, Some(settled));
        self.object(None, None, left, holder)
    }

    fn left(
        &mut self,
        (variant, tables): (Arc<Variant>, Arc<Tables>),
        packed: Packed,
        settled: Option<Settled>,
    ) -> Left {
        let Request { kind, range, elements, ticks, settings, .. } = *self.request;
        let (site, backend) = (self.site.clone(), self.backend.clone());
        Left {
            kind,
            range,
            elements,
            ticks,
            settings,
            counted: self.counted.get(),
            site,
            choice: self.choice,
            backend,
            number: self.number,
            scope: self.scope.clone(),
            state: self.state.clone(),
            variant,
            tables,
            packed,
            settled,
            clock: self.clock.suspend(),
            _under_way: held_procs::UnderWay::begin(),
        }
    }

    fn object(&self, job: Option<Arc<Job<Launched>>>, held: Option<Held>, left: Left, holder: &LazyHolder) -> Value {
        let request = self.request;
        let holder = holder.get(self.ruby);
        let block = request.captures.block();
        let kept = [request.operation.as_raw(), request.base.as_raw(), block.as_raw(), holder.as_raw()];
        self.ruby
            .obj_wrap(Submitted {
                kept,
                job,
                held,
                left: Mutex::new(Some(left)),
                span: Mutex::default(),
                member: Mutex::default(),
            })
            .as_value()
    }

    /// What a lane left. None: the section has to run again.
    fn landed(
        &mut self,
        variant: &Variant,
        packed: &mut Packed,
        mut launched: Launched,
    ) -> Result<Option<Settled>, Error> {
        launched.land(packed);
        self.measured(&launched);
        let policy = LaunchPolicy { limit: Key::NONE, beside: true, evicted: 0 };
        self.settle(variant, packed, (&run::beside(), ResultLocation::Column, launched), policy).map(Result::ok)
    }
}
