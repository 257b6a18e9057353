//! One launch of a section.
//!
//! Here: [`Section::launch`], from packed columns to the section's value, or to the reason why it has to run again. Not
//! here: which reasons these are, and the loop ([`super::retry`]); the value ([`super::finish`]); how a launch runs
//! ([`ikra_core::backend`]).

use super::Section;
use super::curves::{self, Took};
use super::finish::ResultLocation;
use super::held::Known;
use super::request::Kind;
use super::resident;
use super::retry::{LaunchPolicy, Retry, RunOutcome};
use super::variant::{Variant, is_dtype};
use crate::device::backends;
use crate::marshal::made::Made;
use crate::marshal::pack::Packed;
use crate::marshal::trace::Tables;
use crate::marshal::unpack::Unpacker;
use crate::options::{Choice, Flag};
use crate::report::profile::{Clock, Phase};
use crate::ruby::deferred_error::DeferredError;
use crate::ruby::gvl;
use crate::ruby::holder::LazyHolder;
use crate::section::hash_updates;
use crate::section::random;
use ikra_core::backend::collective::emitted::{Combine, Emitted, Grouping};
use ikra_core::backend::collective::reduce::Reduced;
use ikra_core::backend::epilogue::Compaction;
use ikra_core::backend::fold::Fold;
use ikra_core::backend::resident::{Resident, Write, send};
use ikra_core::backend::resources::Share;
use ikra_core::backend::{Backend, CancelToken, Ending, Executable, Fresh, Key, Launch, Outcome, Timings};
use ikra_core::error::{Error as CoreError, Result as CoreResult};
use ikra_core::ir::{Column, Program, Site as Raise};
use ikra_core::layout::schema::{GroupKeys, Schema};
use ikra_core::memory::buffer::Buffer;
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::completion::Completion;
use ikra_core::sched::makespan::Member;
use ikra_core::types::Repr;
use magnus::prelude::*;
use magnus::{Error, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a kernel is launched.
pub(super) struct Way<'v> {
    limit: Key,
    /// As [`LaunchPolicy::beside`].
    beside: bool,
    /// Nothing that it writes has to be undone, whatever becomes of its results, and it is not interrupted.
    in_place: bool,
    /// Set if nothing has to wait for the launch.
    deferral: Option<Deferral<'v>>,
}

/// Results that may turn out to be an exception when they are read.
struct Deferral<'v> {
    sites: &'v Arc<[Raise]>,
    callback: Value,
    results: Arc<Buffer>,
}

/// A launch, without anything of Ruby's.
pub(super) struct Flight {
    backend: Arc<dyn Backend>,
    executable: Arc<dyn Executable>,
    /// The kernel that has an epilogue.
    plain: Arc<dyn Executable>,
    fold: Option<Fold>,
    compaction: Option<Compaction>,
    /// How pairs are grouped, if the section gives groups.
    grouping: Option<Grouping>,
    columns: Vec<HostColumn>,
    biases: Vec<u64>,
    params: Vec<u64>,
    fresh: Vec<Fresh>,
    residents: Vec<Resident>,
    /// Bytes of columns that it reads, and bytes that it writes.
    moved: (f64, f64),
    jobs: u64,
    slots: u64,
    ticks: u64,
    seed: u64,
    section: u32,
    block_size: Option<u32>,
    /// It is the first launch over columns of a scope.
    first: bool,
    limit: Key,
    in_place: bool,
    may_wait: bool,
    /// Whether times will be read.
    exact: bool,
    /// Whether times are measured.
    timed: bool,
}

/// A launch that is set up.
pub(super) struct Begun<'v> {
    pub(super) packed: Packed,
    pub(super) flight: Flight,
    pub(super) result: ResultLocation,
    pub(super) way: Way<'v>,
}

/// What a backend left of a launch.
pub(super) struct Launched {
    /// `Cancelled` also where an interrupt that did not raise ended it.
    outcome: CoreResult<Outcome>,
    timings: Timings,
    columns: Vec<HostColumn>,
    biases: Vec<u64>,
    params: Vec<u64>,
    residents: Vec<Resident>,
    moved: (f64, f64),
    copied: usize,
    jobs: u64,
    unsplit: bool,
    share: Option<Share>,
    /// When it began on a lane, and when it ended.
    span: Option<(Instant, Instant)>,
    /// Launches before this one, whose values it reads.
    completions: Vec<Arc<Completion>>,
    /// Knows how the launch ends, if it was not waited for.
    ending: Option<Box<dyn Ending>>,
    /// The reduction of the results, if the kernel stored only that.
    reduced: Option<Reduced>,
    /// The results without the elements that have none, if the kernel left these out.
    chosen: Option<HostColumn>,
    /// The groups of the pairs that elements emitted.
    groups: Option<Emitted>,
}

/// A launch that is not repeated.
pub(super) struct Settled {
    outcome: Outcome,
    limit: Key,
    /// All elements ran, up to the limit.
    ended: bool,
    result: ResultLocation,
    /// The groups of the pairs with which elements update a captured Hash.
    updates: Option<Box<Emitted>>,
    /// Buffers that a scope keeps.
    kept: Vec<Resident>,
    /// Other buffers that existed before.
    old: Vec<Resident>,
    completions: Vec<Arc<Completion>>,
    /// An interrupt may still end the section.
    can_be_undone: bool,
    /// When the launch began on a lane, and when it ended.
    pub(super) span: Option<(Instant, Instant)>,
    /// How much of the machine it used, if it ran beside others.
    pub(super) share: Option<f64>,
    /// What it is among launches that run at once.
    pub(super) member: Option<Member>,
}

/// That of a launch on another thread than its section.
pub(super) fn beside() -> Way<'static> {
    Way { limit: Key::NONE, beside: true, in_place: false, deferral: None }
}

impl Flight {
    /// How long one thread of the host takes, as far as earlier launches have shown.
    pub(super) fn predicted(&self) -> Option<Duration> {
        self.executable.predicted(self.jobs, self.ticks)
    }

    /// Whether it mostly waits for a device.
    pub(super) fn is_on_device(&self) -> bool {
        self.backend.store().is_some()
    }

    pub(super) fn jobs(&self) -> u64 {
        self.jobs
    }

    pub(super) fn executable(&self) -> &dyn Executable {
        &*self.executable
    }

    /// Runs it on a lane. `unsplit`: others have work for all processors. `share`: what it gets of the device.
    pub(super) fn run_on_lane(self, cancel: &CancelToken, unsplit: bool, share: Option<Share>) -> Launched {
        let began = Instant::now();
        let launched = self.run(cancel, unsplit, share);
        Launched { span: Some((began, Instant::now())), ..launched }
    }

    /// Runs it. `unsplit`: others have work for all processors.
    fn run(self, cancel: &CancelToken, unsplit: bool, share: Option<Share>) -> Launched {
        let Self { backend, mut columns, biases, params, fresh, residents, moved, limit, in_place, .. } = self;
        let mut timings = Timings { exact: self.exact, ..Timings::default() };
        let (mut completions, mut ending) = (Vec::new(), None);
        let (mut reduced, mut chosen, mut copied) = (None, None, 0);
        let mut groups = self.grouping.map(Emitted::new);
        let mut work = || {
            let began = self.timed.then(Instant::now);
            if self.first {
                send(&residents, &*backend);
            }
            for resident in &residents {
                let later = self.may_wait.then_some(&mut completions);
                copied += resident.enter(&*backend, &mut columns, later, in_place)?;
            }
            timings.upload += began.map(|began| began.elapsed()).unwrap_or_default();
            let launch = Launch {
                columns: &mut columns,
                biases: &biases,
                params: &params,
                jobs: self.jobs,
                slots: self.slots,
                fresh: &fresh,
                ticks: self.ticks,
                seed: self.seed,
                section: self.section,
                limit,
                cancel,
                block_size: self.block_size,
                unsplit,
                share,
                timings: &mut timings,
                groups: groups.as_mut(),
                deferred: self.may_wait.then_some(&mut ending),
            };
            let outcome = match (self.fold, self.compaction) {
                (Some(fold), _) => {
                    let (outcome, value) = backend.launch_fold(&*self.plain, fold, launch)?;
                    reduced = value;
                    outcome
                }
                (None, Some(compaction)) => {
                    let (outcome, rows) = backend.launch_compaction(&*self.plain, compaction, launch)?;
                    chosen = rows;
                    outcome
                }
                (None, None) => backend.launch(&*self.executable, launch)?,
            };
            // The launch was waited for after all. Its exception may come from values that a failed earlier launch
            // never computed.
            if let Outcome::Trapped(_) = outcome {
                completions.iter().try_for_each(|completion: &Arc<Completion>| completion.wait())?;
            }
            Ok(outcome)
        };
        let outcome = work();
        Launched {
            outcome,
            timings,
            columns,
            biases,
            params,
            residents,
            moved,
            copied,
            jobs: self.jobs,
            unsplit,
            share,
            span: None,
            completions,
            ending,
            reduced,
            chosen,
            groups,
        }
    }
}

impl Launched {
    /// An interrupt that does not raise ended it.
    fn cancelled() -> Self {
        Self {
            outcome: Ok(Outcome::Cancelled),
            timings: Timings::default(),
            columns: Vec::new(),
            biases: Vec::new(),
            params: Vec::new(),
            residents: Vec::new(),
            moved: (0.0, 0.0),
            copied: 0,
            jobs: 0,
            unsplit: false,
            share: None,
            span: None,
            completions: Vec::new(),
            ending: None,
            reduced: None,
            chosen: None,
            groups: None,
        }
    }

    /// Gives the columns back.
    pub(super) fn land(&mut self, packed: &mut Packed) {
        packed.columns = std::mem::take(&mut self.columns);
        packed.biases = std::mem::take(&mut self.biases);
        packed.params = std::mem::take(&mut self.params);
    }
}

impl Deferral<'_> {
    fn error(&self) -> DeferredError {
        DeferredError::new(self.sites, self.callback)
    }

    /// Leaves a failure to the results. `ending` knows of one that is to come.
    fn settled(&self, outcome: CoreResult<Outcome>, ending: Option<Box<dyn Ending>>) -> CoreResult<Outcome> {
        let outcome = match outcome {
            Err(CoreError::Poisoned(poison)) => {
                self.results.poison(poison);
                Outcome::Done
            }
            Ok(Outcome::Trapped(record)) => {
                self.results.poison(self.error().poison(record));
                Outcome::Done
            }
            outcome => outcome?,
        };
        if let Some(ending) = ending {
            self.results.depend(self.error().completion(ending));
        }
        Ok(outcome)
    }
}

/// Bytes of columns that a program reads, and bytes that it writes.
fn bytes_to_move(program: &Program, columns: &[HostColumn]) -> (f64, f64) {
    let bytes = |wanted: fn(&Column) -> bool| {
        let moved = program.columns.iter().zip(columns).filter(|(column, _)| wanted(column));
        moved.map(|(_, rows)| rows.byte_len()).sum::<usize>() as f64
    };
    (bytes(|column| column.read), bytes(|column| column.written))
}

/// Whether keys of pairs are words that may have cells: Integers, Symbols, true and false.
fn has_word_keys(schema: &Schema) -> bool {
    matches!(schema.groups, Some(GroupKeys::Of(Repr::Int | Repr::Sym | Repr::Bool)))
}

impl Section<'_> {
    pub(super) fn launch(
        &mut self,
        variant: &Variant,
        begun: Begun<'_>,
        tables: &Tables,
        holder: &LazyHolder,
        policy: LaunchPolicy,
    ) -> Result<RunOutcome, Error> {
        let Begun { mut packed, flight, result, way } = begun;
        let explained = self.gate.filter(|_| self.explained.is_some());
        let told = explained.map(|gate| {
            let size = (self.len(), self.request.ticks);
            let expected = backends::expected(self.choice, size, &self.site.history.lock());
            (gate, Known::new(packed.jobs, flight.executable(), &*self.backend), expected)
        });
        let began = Instant::now();
        let launched = self.on_backend(flight, &way, &mut packed)?;
        if let Some((gate, known, expected)) = told {
            let took = began.elapsed().as_secs_f64();
            gate.funcall::<_, _, Value>("ran", (self.ruby.obj_wrap(known), took, expected))?;
        }
        let settled = match self.settle(variant, &mut packed, (&way, result, launched), policy)? {
            Ok(settled) => settled,
            Err(retry) => return Ok(RunOutcome::Retry(retry)),
        };
        self.clock.shares(settled.share);
        if self.is_resumable {
            return Ok(RunOutcome::Settled(Box::new((packed, settled))));
        }
        self.wait_for_turn()?;
        let value = self.written_back(variant, &mut packed, tables, holder, settled)?;
        Ok(value.map_or(RunOutcome::Retry(Retry::Refused), RunOutcome::Done))
    }

    /// Sets a launch up.
    pub(super) fn begin<'v>(
        &mut self,
        variant: &'v Variant,
        mut packed: Packed,
        policy: LaunchPolicy,
    ) -> Result<Begun<'v>, Error> {
        let result = self.result_location(variant, policy.limit, &mut packed)?;
        let residents = std::mem::take(&mut packed.residents);
        let way = self.way(variant, policy, &result, &residents);
        let executable = packed.doubled.as_ref().map_or(&variant.executable, |doubled| &doubled.executable).clone();
        let flight = Flight {
            backend: self.backend.clone(),
            executable,
            plain: variant.executable.clone(),
            fold: variant.fold,
            compaction: variant.compaction,
            grouping: self.grouping(variant),
            moved: bytes_to_move(&variant.lowered.program, &packed.columns),
            columns: std::mem::take(&mut packed.columns),
            biases: std::mem::take(&mut packed.biases),
            params: std::mem::take(&mut packed.params),
            fresh: std::mem::take(&mut packed.fresh),
            residents,
            jobs: packed.jobs,
            slots: self.slots(),
            ticks: self.request.ticks,
            seed: random::seed(),
            section: self.number,
            block_size: self.request.settings.block_size,
            first: self.state.as_ref().is_some_and(|state| state.is_level()),
            limit: way.limit,
            in_place: way.in_place,
            may_wait: way.deferral.is_some(),
            exact: self.clock.is_running(),
            // The time is measured only for a profile, or where columns are transferred.
            timed: self.clock.is_running() || self.backend.store().is_some(),
        };
        Ok(Begun { packed, flight, result, way })
    }

    /// How kernels group pairs, where they do.
    fn grouping(&self, variant: &Variant) -> Option<Grouping> {
        let schema = &variant.lowered.schema;
        let (floats, once) = (schema.groups_floats == Some(true), !variant.properties.repeatable);
        let first_cell = if has_word_keys(schema) { self.site.state.lock().first_cell.get() } else { None };
        self.table_combine(schema).map(|combine| Grouping { floats, once, first_cell, ..Grouping::new(combine) })
    }

    /// What tables in kernels combine values to, where they do.
    pub(super) fn table_combine(&self, schema: &Schema) -> Option<Combine> {
        match &schema.table {
            Some(hash) => hash_updates::total(hash),
            None => self.asked_combine(),
        }
    }

    /// What the caller wants tables in kernels to combine values to.
    pub(super) fn asked_combine(&self) -> Option<Combine> {
        let settings = &self.request.settings;
        settings.combine.filter(|_| settings.flags.has(Flag::Tables))?.in_kernels()
    }

    /// What is left to do after a launch, or why the section runs again.
    pub(super) fn settle(
        &self,
        variant: &Variant,
        packed: &mut Packed,
        (way, result, launched): (&Way<'_>, ResultLocation, Launched),
        policy: LaunchPolicy,
    ) -> Result<Result<Settled, Retry>, Error> {
        let limit = policy.limit;
        let Launched { outcome, timings, completions, ending, reduced, chosen, residents, moved, span, .. } = launched;
        let Launched { jobs, unsplit, share, mut groups, .. } = launched;
        if groups.as_ref().is_some_and(|groups| groups.refused) {
            return Ok(Err(Retry::Refused));
        }
        let (mut member, mut part) = (None, None);
        // Only once it is sure that no interrupt makes it run again.
        let ended = match outcome {
            Ok(Outcome::Done) => true,
            Ok(Outcome::Trapped(record)) => record.key == limit,
            _ => false,
        };
        // The columns of a scope change last.
        let stays = |resident: &Resident| self.state.as_ref().is_some_and(|state| state.keeps(resident));
        let (kept, mut old): (Vec<Resident>, Vec<Resident>) = residents.into_iter().partition(stays);
        let can_be_undone = !way.in_place
            && old.iter().all(|resident| resident.write == Write::None || result.is_new(&resident.buffer));
        if ended {
            // Arrays that existed before change only when nothing can fail any more.
            let at_once = |resident: &Resident| way.deferral.is_some() || result.is_new(&resident.buffer);
            let new = old.iter().filter(|resident| at_once(resident));
            new.for_each(|resident| resident.keep(&mut packed.columns, &completions));
            old.retain(|resident| !at_once(resident));
        }
        if let Some(retry) = self.retry_of_launch(&outcome, policy.evicted, kept.iter().chain(&old))? {
            return Ok(Err(retry));
        }
        if let Ok(Outcome::Done) = outcome {
            self.note(&timings, moved);
            if self.is_resumable || self.is_left {
                let (ticks, time) = (self.request.ticks, timings.kernel);
                let took = Took { jobs, ticks, unsplit, share, time };
                member = variant.measured.note(&variant.lowered.program, &*self.backend, &took);
                part = Some(curves::part(&*self.backend, &took));
            }
        }
        let outcome = match &way.deferral {
            Some(deferral) => deferral.settled(outcome, ending),
            None => outcome,
        };
        let outcome = outcome.map_err(|e| self.failed(e))?;
        if let Outcome::Trapped(record) = outcome
            && let Some(retry) = self.retry_of_trap(variant, &record, limit)?
        {
            return Ok(Err(retry));
        }
        if let Some(groups) = groups.as_ref().filter(|_| has_word_keys(&variant.lowered.schema)) {
            let first = &mut self.site.state.lock().first_cell;
            *first = first.after(&groups.keys);
        }
        let into = self.request.settings.into.zip(variant.plan.result.as_ref());
        let result = match (reduced, chosen, into.and_then(|(into, slot)| is_dtype(into, slot))) {
            (Some(reduced), ..) => ResultLocation::Reduced(reduced),
            (None, Some(rows), Some(dtype)) => ResultLocation::Buffer(dtype, Arc::new(Buffer::from_column(rows))),
            _ if variant.lowered.schema.table.is_some() => result,
            _ => match groups.take() {
                Some(groups) => ResultLocation::Grouped(Box::new(groups)),
                None => result,
            },
        };
        let updates = groups.filter(|_| variant.lowered.schema.table.is_some()).map(Box::new);
        Ok(Ok(Settled {
            outcome,
            limit,
            ended,
            result,
            updates,
            kept,
            old,
            completions,
            can_be_undone,
            span,
            share: part,
            member,
        }))
    }

    pub(super) fn way<'v>(
        &self,
        variant: &'v Variant,
        LaunchPolicy { limit, beside, .. }: LaunchPolicy,
        result: &ResultLocation,
        residents: &[Resident],
    ) -> Way<'v> {
        let in_place = variant.properties.surely_ends
            && variant.plan.accumulators.is_empty()
            && variant.lowered.schema.table.is_none()
            && limit == Key::NONE
            && self.request.ticks == 1
            && self.gate.is_none()
            && self.backend.store().is_some()
            && residents.iter().any(|resident| resident.write == Write::Some);
        let needs_no_wait =
            limit == Key::NONE && self.scope.is_none() && self.request.kind != Kind::Another && self.request.ticks == 1;
        let deferral = match (&variant.properties.sites, self.request.error_callback, result) {
            (Some(sites), Some(callback), ResultLocation::Buffer(_, results)) if needs_no_wait => {
                Some(Deferral { sites, callback, results: results.clone() })
            }
            _ => None,
        };
        Way { limit, beside: beside || self.is_left, in_place, deferral }
    }

    /// The launch itself, without the GVL.
    fn on_backend(&mut self, flight: Flight, way: &Way<'_>, packed: &mut Packed) -> Result<Launched, Error> {
        let cancel = CancelToken::default();
        let began = flight.timed.then(Instant::now);
        let work = || flight.run(&cancel, false, None);
        let mut launched = match (way.in_place, way.beside) {
            (true, _) => gvl::released(work),
            (false, true) => gvl::run_beside(self.ruby, &cancel, work)?,
            (false, false) => gvl::run(self.ruby, &cancel, work)?.unwrap_or_else(Launched::cancelled),
        };
        launched.land(packed);
        self.clock.copied(launched.copied);
        if let Some(began) = began {
            self.phases(began, &launched.timings);
        }
        Ok(launched)
    }

    /// The phases of a launch that began then.
    fn phases(&mut self, mut at: Instant, timings: &Timings) {
        let Timings { upload, kernel, download, .. } = *timings;
        for (phase, time) in [(Phase::Upload, upload), (Phase::Kernel, kernel), (Phase::Download, download)] {
            self.clock.add(phase, at, time);
            at += time;
        }
    }

    /// Tells the profile about a launch on a lane.
    pub(super) fn measured(&mut self, launched: &Launched) {
        self.clock.copied(launched.copied);
        if let Some(span) = launched.span {
            self.clock.ran_beside(span);
            self.phases(span.0, &launched.timings);
        }
    }

    /// Writes back what a launch left, and gives the section's value. None where groups of pairs do not tell what a
    /// captured Hash becomes: nothing is written then.
    #[inline(always)] // called once in a launch, with much to pass
    pub(super) fn written_back(
        &mut self,
        variant: &Variant,
        packed: &mut Packed,
        tables: &Tables,
        holder: &LazyHolder,
        settled: Settled,
    ) -> Result<Option<Value>, Error> {
        let Settled { outcome, limit, ended, result, updates, kept, old, completions, can_be_undone, .. } = settled;
        let (ruby, plan) = (self.ruby, &variant.plan);
        let (program, schema) = (&variant.lowered.program, &variant.lowered.schema);
        if let Some(bytes) = schema.bytes
            && packed.columns[bytes.index()].device().is_some()
            && let Some(resident) = kept.iter().chain(&old).find(|resident| resident.column == bytes)
        {
            // Results may be Strings of these bytes.
            packed.columns[bytes.index()] = resident.buffer.on_host().map_err(|e| self.failed(e))?;
        }
        let (made, columns) = (&Made::default(), &packed.columns);
        let trapped = matches!(outcome, Outcome::Trapped(record) if record.key != limit);
        let polls = &if can_be_undone { gvl::Polls::new() } else { gvl::Polls::never() };
        let unpacker = Unpacker { ruby, plan, program, schema, tables, columns, holder, made, trapped, polls };
        let exit = match outcome {
            Outcome::Trapped(record) => Some(self.early_exit(&unpacker, &record)?),
            _ => None,
        };
        self.changed_objects();
        resident::changed_for_others(self.scope.as_ref(), self.state.as_ref());
        let len = self.len();
        let mut clock = std::mem::replace(&mut self.clock, Clock::stopped());
        let value = clock.measure(Phase::Unpack, || {
            let tabled = match updates {
                Some(groups) => self.tabled(&unpacker, *groups, len)?.map(Some),
                None => Some(None),
            };
            let Some(tabled) = tabled else { return Ok(None) };
            self.unpack(&unpacker, exit, len, result, (tabled, packed.stays)).map(Some)
        })?;
        if value.is_none() {
            self.clock = clock;
            return Ok(None);
        }
        // A launch whose arrays were poisoned wrote nothing that stays.
        if ended {
            old.iter().for_each(|resident| resident.keep(&mut packed.columns, &completions));
        }
        // Other threads may have read objects before they were written.
        resident::changed_for_others(self.scope.as_ref(), self.state.as_ref());
        self.changed_objects();
        if let (Some(scope), Some(state)) = (&self.scope, &self.state) {
            kept.iter().for_each(|resident| resident.keep(&mut packed.columns, &completions));
            scope.wrote(state);
        }
        Ok(value)
    }

    /// Where the section ran without a state, it wrote to the objects themselves.
    fn changed_objects(&self) {
        if let (Some(scope), None) = (&self.scope, &self.state) {
            scope.changed();
        }
    }

    /// Remembers what a launch took.
    fn note(&self, timings: &Timings, moved: (f64, f64)) {
        // A call that names its backend does not wait for this.
        if self.choice == Choice::Cuda && !timings.kernel.is_zero() && self.request.settings.backend == Choice::Auto {
            backends::measure_ways(&self.backend);
        }
        self.site.note(self.choice, (self.len() as u64, self.request.ticks), timings, moved);
    }
}
