//! The loop of a section: select, launch, and begin again where that did not do.
//!
//! Here: [`Section::run`], the only loop over launches; [`RunOutcome`], over which it loops; and what must be done
//! before a launch is repeated. Not here: the launch ([`super::run`]).

use super::Section;
use super::fast_path::FastPath;
use super::finish::ended;
use super::request::Kind;
use super::run::{Begun, Settled};
use super::variant::Variant;
use crate::buffers::buffer;
use crate::marshal::pack::Packed;
use crate::options::Flag;
use crate::report::explain;
use crate::ruby::errors;
use crate::ruby::gvl;
use crate::ruby::holder::LazyHolder;
use crate::section::random;
use ikra_core::backend::collective::emitted::Combine;
use ikra_core::backend::resident::Resident;
use ikra_core::backend::{CancelToken, Key, Outcome, TrapRecord};
use ikra_core::error::{Error as CoreError, Result as CoreResult};
use ikra_core::ir::{Lowered, Trap};
use ikra_core::layout::schema::{GroupKeys, Schema};
use ikra_core::memory::buffer::Buffer;
use ikra_core::types::Repr;
use magnus::prelude::*;
use magnus::{Error, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why a section has to run again from the start.
pub(super) enum Retry {
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
    /// Tables do not take the pairs that it emitted.
    Refused,
}

/// What became of one launch of a section.
pub(super) enum RunOutcome {
    /// The section's value.
    Done(Value),
    Retry(Retry),
    /// It waits to be written back.
    Settled(Box<(Packed, Settled)>),
}

/// How a section launches. Each retry may change it.
#[derive(Clone, Copy)]
pub(super) struct LaunchPolicy {
    /// Elements with greater keys do not run.
    pub(super) limit: Key,
    /// The launch has a thread of its own, so that only interrupts that raise end it
    /// ([`crate::ruby::gvl::run_beside`]).
    pub(super) beside: bool,
    /// How often memory was given back because there was too little.
    pub(super) evicted: usize,
}

impl LaunchPolicy {
    /// Whether there was no launch before.
    pub(super) fn is_first(&self) -> bool {
        self.limit == Key::NONE && self.evicted == 0
    }
}

/// How often a section is compiled for values that other threads change meanwhile.
pub(super) const MAX_ATTEMPTS: usize = 50;

/// Milliseconds between attempts to allocate memory that other processes hold on the device.
const PAUSES: [u64; 5] = [10, 20, 40, 80, 160];

/// Whether a kernel groups by Strings.
fn has_texts(schema: &Schema) -> bool {
    schema.groups == Some(GroupKeys::Of(Repr::Str))
}

impl Section<'_> {
    pub(super) fn run(&mut self) -> Result<Value, Error> {
        let outcome = self.attempts();
        if let Some(account) = self.explained.take().and_then(|e| e.account) {
            explain::add(self.ruby, account);
        }
        outcome
    }

    /// Whether the caller wants no section whose program is like this.
    fn refuses(&self, variant: &Variant) -> bool {
        let (flags, properties) = (self.request.settings.flags, &variant.properties);
        flags.has(Flag::Only) && !(variant.fold.is_some() || properties.looks)
            || flags.has(Flag::Piece) && !properties.divisible
            || flags.has(Flag::Pure) && !properties.pure
            || flags.has(Flag::Tables) && self.has_other_pairs(&variant.lowered.schema)
            || flags.has(Flag::Texts) && variant.plan.result.as_ref().is_none_or(|slot| slot.repr != Repr::Str)
            || self.leaves_texts(&variant.lowered.schema)
    }

    /// Whether tables in kernels could take the keys, but the host groups such Strings faster where kernels leave them.
    fn leaves_texts(&self, schema: &Schema) -> bool {
        self.request.settings.flags.has(Flag::NoTexts) && self.backend.store().is_none() && has_texts(schema)
    }

    /// Whether a section emits pairs that are not for tables. Floats have no operators of bits.
    fn has_other_pairs(&self, schema: &Schema) -> bool {
        let are_bits = matches!(self.table_combine(schema), Some(Combine::And | Combine::Or));
        schema.groups == Some(GroupKeys::Other) || are_bits && schema.groups_floats == Some(true)
    }

    /// Whether tables cannot take the pairs with which a section updates a captured Hash. What comes behind an element
    /// that leaves the section is in no groups, but not all backends give them then.
    fn refuses_hash_table(&self, variant: &Variant) -> bool {
        let Lowered { program, schema, .. } = &variant.lowered;
        let leaves = || program.sites.iter().any(|site| site.trap == Trap::Break);
        schema.table.is_some() && (self.has_other_pairs(schema) || leaves())
    }

    /// Lets chains of pairs take the place of tables for captured Hashes.
    fn refuse_hash_tables(&mut self) {
        self.site.state.lock().refuses_hash_tables = true;
        if let Some(explained) = &mut self.explained {
            explained.variant = None;
        }
    }

    /// The value of a section that is not run.
    fn refused(&mut self) -> Value {
        random::give_back(self.number);
        if let Some(explained) = &mut self.explained {
            explained.account = None;
        }
        ended(self.ruby, Some("refused"), self.ruby.qnil().as_value(), None)
    }

    fn attempts(&mut self) -> Result<Value, Error> {
        let mut policy = LaunchPolicy { limit: Key::NONE, beside: false, evicted: 0 };
        let mut attempts = 0;
        // known before anything is packed
        let flags = self.request.settings.flags;
        if flags.has(Flag::Tables) {
            let refuses = {
                let state = self.site.state.lock();
                state.refuses_tables || flags.has(Flag::NoTexts) && state.leaves_texts
            };
            if refuses || !self.backend.groups() || self.asked_combine().is_none() {
                return Ok(self.refused());
            }
        }
        while attempts < MAX_ATTEMPTS {
            attempts += 1;
            let holder = LazyHolder::default();
            let fitting = match self.packed(&holder) {
                // what is wrong with the block is said of the form in which it has chains
                Err(error) if self.form().pairs.tables && errors::is_compile_error(self.ruby, &error)? => {
                    self.refuse_hash_tables();
                    continue;
                }
                fitting => fitting?,
            };
            let Some((variant, packed, tables)) = fitting else {
                random::give_back(self.number);
                let stencil = self.ruby.into_value(self.cut(&self.form()).unwrap_or(0));
                return Ok(ended(self.ruby, Some("apart"), stencil, None));
            };
            if self.request.settings.flags.has(Flag::Slab) && !variant.properties.independent {
                random::give_back(self.number);
                return Err(errors::needs_all(self.ruby));
            }
            if self.refuses(&variant) {
                let mut state = self.site.state.lock();
                match self.leaves_texts(&variant.lowered.schema) {
                    true => state.leaves_texts = true,
                    false => state.refuses_tables |= flags.has(Flag::Tables),
                }
                drop(state);
                return Ok(self.refused());
            }
            if flags.has(Flag::Tables) && !has_texts(&variant.lowered.schema) {
                // values of another kind follow each other, too
                self.site.state.lock().leaves_texts = false;
            }
            if self.refuses_hash_table(&variant) {
                self.refuse_hash_tables();
                continue;
            }
            if self.packed_at_gate(&variant, &tables, packed.jobs, &policy)? {
                attempts -= 1;
                continue;
            }
            let begun = self.begin(&variant, packed, policy)?;
            if self.is_worth_a_lane(&begun.flight) {
                let Begun { packed, flight, .. } = begun;
                return Ok(self.submit((variant, tables), (packed, flight), &holder));
            }
            if self.ends_at_once()? {
                (self.is_resumable, self.has_turn) = (false, false);
            }
            let outcome = match self.launch(&variant, begun, &tables, &holder, policy) {
                Ok(RunOutcome::Settled(settled)) => return Ok(self.leave((variant, tables), *settled, &holder)),
                outcome => outcome,
            };
            self.keep(&variant, tables, &holder);
            match outcome? {
                RunOutcome::Settled(_) => unreachable!("it was left"),
                RunOutcome::Done(value) => {
                    if let Some(path) = FastPath::of(self, &variant).filter(|path| path.may_follow(policy.limit)) {
                        self.site.remember(path);
                    }
                    return Ok(value);
                }
                // Its caller was told that this does not happen.
                RunOutcome::Retry(_) if self.is_left => return Err(self.has_to_run_again()),
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
                RunOutcome::Retry(Retry::Refused) if variant.lowered.schema.table.is_some() => {
                    self.refuse_hash_tables();
                }
                RunOutcome::Retry(Retry::Refused) => {
                    self.site.state.lock().refuses_tables = true;
                    return Ok(self.refused());
                }
            }
        }
        Err(Error::new(
            self.ruby.exception_runtime_error(),
            "the objects of a section kept changing their types while it was compiled for them",
        ))
    }

    /// The error where that is not possible.
    pub(super) fn has_to_run_again(&self) -> Error {
        let message = "a section has to run again, and objects may have changed since its call: \
                       ask for its value before they do";
        Error::new(self.ruby.exception_runtime_error(), message)
    }

    /// Whether a launch that ended like this is repeated, and not because of a trap. `needed` are its buffers. Memory
    /// was given back so often before: `evicted`.
    pub(super) fn retry_of_launch<'a>(
        &self,
        outcome: &CoreResult<Outcome>,
        evicted: usize,
        needed: impl Iterator<Item = &'a Resident>,
    ) -> Result<Option<Retry>, Error> {
        match outcome {
            Ok(Outcome::Cancelled) => Ok(Some(Retry::Beside)),
            // Other processes on the device may give memory back. A process with a limit of its own need not wait for
            // them.
            Err(CoreError::Memory { wanted, .. })
                if (1..=PAUSES.len()).contains(&evicted)
                    && ikra_core::config::memory_limit() == u64::MAX
                    && *wanted <= self.backend.target().memory =>
            {
                let until = Instant::now() + Duration::from_millis(PAUSES[evicted - 1]);
                let cancel = CancelToken::default();
                gvl::run(self.ruby, &cancel, || {
                    while !cancel.is_cancelled() && Instant::now() < until {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                })?;
                Ok(Some(Retry::Memory))
            }
            Err(CoreError::Memory { .. }) if evicted == 0 => {
                let keep: Vec<Arc<Buffer>> = needed.map(|resident| resident.buffer.clone()).collect();
                gvl::released(|| buffer::evict(&keep)).map_err(|e| self.failed(e))?;
                self.ruby.gc_start();
                Ok(Some(Retry::Memory))
            }
            _ => Ok(None),
        }
    }

    /// Whether a launch that trapped is repeated.
    pub(super) fn retry_of_trap(
        &self,
        variant: &Variant,
        record: &TrapRecord,
        limit: Key,
    ) -> Result<Option<Retry>, Error> {
        let program = &variant.lowered.program;
        let site = &program.sites[record.site.index()];
        if let Trap::Refuted(assumption) = &site.trap {
            let mut state = self.site.state.lock();
            if !state.refuted.contains(assumption) {
                state.refuted.push(assumption.clone());
            }
            state.variants.retain(|v| v.form != variant.form);
            return Ok(Some(Retry::Compile));
        }
        if site.trap == Trap::StackOverflow
            && gvl::released(|| variant.executable.deepen()).map_err(|e| self.failed(e))?
        {
            return Ok(Some(Retry::Capacity));
        }
        if let Trap::Grow(heap) = site.trap {
            let size = (self.len() as u64, self.request.ticks, self.slots());
            let memory = self.backend.target().memory;
            let grown = variant.capacities.grow(program, heap, record, size, memory);
            return grown.map(|()| Some(Retry::Capacity)).map_err(|e| self.failed(e));
        }
        if self.request.kind == Kind::Another
            && site.operands.is_empty()
            && self.request.captures.find_another(record.key.index())
        {
            return Ok(Some(Retry::Past));
        }
        Ok((site.trap == Trap::Break && limit != record.key).then_some(Retry::Until(record.key)))
    }
}
