//! One launch of a section.
//!
//! Here: [`Section::launch`], from packed columns to the section's value, or to the reason why it has to run again. Not
//! here: the loop ([`super::retry`]), and how a launch runs ([`ikra_core::backend`]).

use super::Section;
use super::finish::{EarlyExit, ResultLocation};
use super::request::Kind;
use super::resident;
use super::retry::{LaunchPolicy, Retry, RunOutcome};
use super::variant::{Variant, is_dtype};
use crate::buffers::buffer;
use crate::device::backends;
use crate::marshal::made::Made;
use crate::marshal::pack::Packed;
use crate::marshal::trace::Tables;
use crate::marshal::unpack::Unpacker;
use crate::options::Choice;
use crate::report::profile::{Clock, Phase};
use crate::ruby::deferred_error::DeferredError;
use crate::ruby::errors;
use crate::ruby::gvl;
use crate::ruby::holder::LazyHolder;
use crate::section::random;
use ikra_core::backend::resident::{Resident, Write, send};
use ikra_core::backend::{CancelToken, Key, Launch, Outcome, Timings};
use ikra_core::error::Error as CoreError;
use ikra_core::ir::{Column, Program, Trap};
use ikra_core::memory::buffer::Buffer;
use ikra_core::memory::column::HostColumn;
use ikra_core::types::Repr;
use magnus::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Milliseconds between attempts to allocate memory that other processes hold on the device.
const PAUSES: [u64; 5] = [10, 20, 40, 80, 160];

/// Bytes of columns that a program reads, and bytes that it writes.
fn bytes_to_move(program: &Program, columns: &[HostColumn]) -> (f64, f64) {
    let bytes = |wanted: fn(&Column) -> bool| {
        let moved = program.columns.iter().zip(columns).filter(|(column, _)| wanted(column));
        moved.map(|(_, rows)| rows.byte_len()).sum::<usize>() as f64
    };
    (bytes(|column| column.read), bytes(|column| column.written))
}

impl Section<'_> {
    pub(super) fn launch(
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
        let result = match (self.request.settings.into, &variant.plan.result) {
            (Some(_), Some(_)) if variant.compaction.is_some() => ResultLocation::Compacted,
            (Some(into), Some(slot)) if variant.fold.is_none() => {
                self.result_buffer(into, slot, &variant.lowered.schema, limit, &mut packed)?
            }
            _ => ResultLocation::Column,
        };
        let residents = std::mem::take(&mut packed.residents);
        // Nothing that it writes has to be undone, whatever becomes of its results, and it is not interrupted.
        let in_place = variant.properties.surely_ends
            && variant.plan.accumulators.is_empty()
            && limit == Key::NONE
            && self.request.ticks == 1
            && self.backend.store().is_some()
            && residents.iter().any(|resident| resident.write == Write::Some);
        // The error callback, and the buffer of results, if nothing has to wait for the launch.
        let deferred = match (&variant.properties.sites, self.request.error_callback, &result) {
            (Some(sites), Some(callback), ResultLocation::Buffer(_, buffer))
                if limit == Key::NONE
                    && self.scope.is_none()
                    && self.request.kind != Kind::Another
                    && self.request.ticks == 1 =>
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
            let (slots, jobs, ticks, block_size) =
                (self.slots(), packed.jobs, self.request.ticks, self.request.settings.block_size);
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
                let size = (self.len() as u64, self.request.ticks, self.slots());
                let memory = self.backend.target().memory;
                let grown = variant.capacities.grow(program, heap, record.words[0], record.key, size, memory, site);
                return grown.map(|()| RunOutcome::Retry(Retry::Capacity)).map_err(|e| self.failed(e));
            }
            if self.request.kind == Kind::Another
                && site.operands.is_empty()
                && self.request.captures.find_another(record.key.index())
            {
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
        let dtype = self.request.settings.into.zip(plan.result.as_ref()).and_then(|(into, slot)| is_dtype(into, slot));
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

    /// Remembers what a launch took.
    fn note(&self, timings: &Timings, moved: (f64, f64)) {
        // A call that names its backend does not wait for this.
        if self.choice == Choice::Cuda && !timings.kernel.is_zero() && self.request.settings.backend == Choice::Auto {
            backends::measure_ways(&self.backend);
        }
        self.site.note(self.choice, (self.len() as u64, self.request.ticks), timings, moved);
    }
}
