//! Compiles a block for the values of one call, to a [`Variant`].
//!
//! Here: what it is compiled for ([`Section::form`]), and the compilation. Not here: which variant fits
//! ([`super::select`]), what is known of it ([`super::variant`]), and any stage of the compiler
//! ([`ikra_core::engine`]).

use super::Section;
use super::cache::MAX_VARIANTS;
use super::curves::Measured;
use super::variant::{Form, Properties, Variant, is_dtype};
use crate::device::backends;
use crate::marshal::capacity::HeapCapacities;
use crate::marshal::graph_cache;
use crate::marshal::plan::Plan;
use crate::options::{Choice, Flag, Results};
use crate::report::dump;
use crate::report::explain::Account;
use crate::report::profile::Phase;
use crate::ruby::dtype::Dtype;
use crate::ruby::errors;
use crate::ruby::gvl;
use crate::world::large_stack;
use crate::world::live_world::{Guards, LiveWorld};
use crate::world::observe::Observer;
use ikra_core::backend::Executable;
use ikra_core::backend::collective::reduce::Reduction;
use ikra_core::backend::doubled::Doubling;
use ikra_core::backend::epilogue::{Compaction, Epilogue};
use ikra_core::backend::fold::{self, Fold};
use ikra_core::engine::explain::Explanation;
use ikra_core::engine::{self, Base, Compiled, Holes, SectionShape, compile};
use ikra_core::infer::hash_updates::Pairs;
use ikra_core::ir::{ColumnId, Lowered};
use ikra_core::process;
use ikra_core::sched::stencil::{Resources, Strategy};
use ikra_core::world::{Facts, Place, Root, StrideAssumption, World};
use magnus::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The outcome of compiling a block for a form.
enum Attempt {
    Ready(Box<Variant>),
    /// Elements without a value must get a neutral value of the reduction, which has none.
    Unfilled,
    /// A stencil must read values that another section has computed.
    Cut,
}

/// A program, and what was seen on the way to it.
struct Inferred {
    compiled: Compiled,
    /// Where somebody wants it.
    explanation: Option<Explanation>,
    guards: Guards,
    facts: Facts,
}

/// A kernel.
struct Prepared {
    executable: Arc<dyn Executable>,
    /// How the kernel itself compacts the results.
    compaction: Option<Compaction>,
    /// Its epilogue, if it has one, and whether the pass that computes the results runs it.
    sink: Option<(Epilogue, bool)>,
    /// How long the backend compiled.
    took: Duration,
}

/// The process that a kernel belongs to, where its children cannot run it.
pub(super) fn owner(choice: Choice) -> Option<u32> {
    (!matches!(choice, Choice::Cpu | Choice::Reference)).then(process::id)
}

impl Section<'_> {
    /// The form that a variant must be compiled for.
    pub(super) fn form(&self) -> Form {
        let base = if self.request.range.is_some() { Base::Range } else { Base::Array };
        let flags = self.request.settings.flags;
        Form {
            op: self.request.kind.op(),
            base,
            code: self.request.settings.code,
            backend: self.choice,
            process: owner(self.choice),
            few: self.len() < ikra_core::ir::ASSUMED_LIMIT as usize,
            pairs: self.pairs(),
            single: self.scope.is_some() && self.request.ticks == 1,
            results: match self.request.settings.into {
                Some(Results::As(dtype)) => Some(dtype.storage()),
                _ => None,
            },
            reduce: self.request.settings.reduce,
            exact: flags.has(Flag::Exact),
            again: flags.has(Flag::Again),
            compacts: flags.has(Flag::Holes) || self.request.settings.into == Some(Results::Numbers),
            stays: self.scope.is_some(),
            all_bits: self.scope.as_ref().is_some_and(|scope| scope.all_bits()),
            resources: Resources {
                shared_memory: self.backend.target().shared_memory,
                apart: flags.has(Flag::Apart),
                wanted: self.request.settings.stencils,
            },
        }
    }

    /// How the block accumulates into captured Hashes. Tables in the kernel take the pairs of one of them, where
    /// nothing else needs tables and the section may run once more.
    fn pairs(&self) -> Pairs {
        if !self.site.updates_hashes {
            return Pairs { ticks: false, tables: false };
        }
        let ticks = self.request.ticks > 1;
        let apart = !self.request.settings.flags.has(Flag::Tables) && !self.request.settings.code.races;
        let runs_again = self.scope.is_none() && self.gate.is_none() && !self.request.kind.finds();
        let tables = !ticks && apart && runs_again && self.backend.groups();
        Pairs { ticks, tables: tables && !self.site.state.lock().refuses_hash_tables }
    }

    /// Compiles a variant. None where the section must be cut in two.
    pub(super) fn compile(&mut self, form: &Form) -> Result<Option<Variant>, Error> {
        let marked = form.compacts.then_some(Holes::Marked);
        let filled = form.reduce.filter(|_| form.compacts).and_then(fold::neutral);
        for holes in filled.map(Some).into_iter().chain([marked]) {
            match self.compile_with(form, holes)? {
                Attempt::Ready(variant) => return Ok(Some(*variant)),
                Attempt::Cut => return Ok(None),
                Attempt::Unfilled => {}
            }
        }
        Err(errors::internal(self.ruby, "elements without a value in a column that is kept"))
    }

    fn compile_with(&mut self, form: &Form, holes: Option<Holes>) -> Result<Attempt, Error> {
        // Observing a million objects takes as long as making a device's context.
        self.backend.get_ready();
        let Inferred { mut compiled, explanation, guards, facts } = self.infer(form, holes)?;
        {
            let mut state = self.site.state.lock();
            state.out_of_range.extend(facts.out_of_range().iter().cloned());
            state.apart = facts.apart();
        }
        if let Some(told) = &self.request.told {
            told.clear()?;
            compiled.stencils.iter().try_for_each(|choice| told.push(choice.to_string()))?;
        }
        if let Some(cut) = compiled.stencils.iter().position(|choice| choice.strategy == Strategy::Separate) {
            let mut state = self.site.state.lock();
            state.cuts.retain(|(known, _)| known != form);
            state.cuts.truncate(MAX_VARIANTS - 1);
            state.cuts.insert(0, (form.clone(), cut));
            return Ok(Attempt::Cut);
        }
        let Lowered { program, schema, .. } = &compiled.lowered;
        let plan = Plan::new(self.ruby, program, schema, &facts).map_err(|e| self.failed(e))?;
        let overwritten = schema.overwritten();
        let fold = self.fold(form, &compiled, &plan, &overwritten);
        if fold.is_none() && schema.has_holes && holes != Some(Holes::Marked) {
            return Ok(Attempt::Unfilled);
        }
        let prepared = self.prepare(form, &mut compiled, &plan, fold)?;
        if let Some(explanation) = explanation {
            self.account(form, &compiled, explanation, &prepared)?;
        }
        if let Some(note) = backends::cache_note() {
            errors::warn(self.ruby, &format!("Ikra: {note}"))?;
        }
        let Prepared { executable, compaction, .. } = prepared;
        let sinks = fold.is_some() || compaction.is_some();
        let variant = Variant {
            form: form.clone(),
            guards,
            capacities: HeapCapacities::new(&compiled.lowered.program, self.len()),
            properties: Properties::of(&compiled.lowered, &plan, sinks, &overwritten),
            lowered: compiled.lowered,
            plan,
            executable,
            doubling: Doubling::default(),
            fold,
            compaction,
            graphs: graph_cache::Owner::default(),
            measured: Measured::default(),
        };
        Ok(Attempt::Ready(Box::new(variant)))
    }

    /// What earlier calls saw of the block's values, and whether the elements of a list may be exactly the objects of
    /// their classes.
    fn known_facts(&self, form: &Form) -> (Facts, bool) {
        let mut facts = Facts::default();
        let state = self.site.state.lock();
        state.refuted.iter().for_each(|assumption| facts.refute(assumption));
        facts.drop_ranges(&state.out_of_range);
        facts.know_apart(state.apart.clone());
        state.refuted_strides.iter().for_each(|what| facts.refute_stride(*what));
        if let Some(what) = state.column_out_of_range {
            facts.saw_column_out_of_range(what);
        }
        if form.stays {
            facts.let_columns_stay();
            facts.refute_stride(StrideAssumption::Constants);
        }
        if form.all_bits {
            facts.keep_all_bits();
        }
        (facts, form.single && !state.scattered)
    }

    /// The stages up to the program: they observe the values of this call.
    fn infer(&mut self, form: &Form, holes: Option<Holes>) -> Result<Inferred, Error> {
        let (mut facts, whole) = self.known_facts(form);
        if let Some((first, _)) = self.request.range {
            facts.saw_integer(&Root::Element, first);
        }
        let explains = self.explained.is_some() || dump::is_wanted();
        let Section { ruby, request, clock, site, backend, .. } = self;
        let base = request.range.is_none().then_some(request.base);
        let mut world = LiveWorld::new(ruby, &request.captures, base, super::resident::is_open);
        let compiled = clock.measure(Phase::Infer, || {
            // An error of an element is reported where the block reads it.
            let _ = world.scan_root(&Root::Element, &mut facts);
            let elements = facts.get(&Place::Root(Root::Element)).unwrap_or_default();
            let shape = SectionShape {
                op: form.op,
                base: form.base,
                grouped: world.observer.grouped,
                reordered: form.code.reorder && Observer::mixed(&elements),
                few: form.few,
                pairs: form.pairs,
                single: form.single,
                // The host waits for each launch.
                joined: form.single && backend.store().is_some(),
                whole,
                results: form.results,
                holes,
            };
            large_stack::asking(&mut world, |world| {
                let source = &site.source;
                if explains {
                    let answer = engine::explain(world, &mut facts, source, &shape, &form.code, form.resources);
                    return answer.map(|(compiled, explanation)| (compiled, Some(explanation)));
                }
                let answer = compile(world, &mut facts, source, &shape, &form.code, form.resources);
                answer.map(|compiled| (compiled, None))
            })
        });
        if let Some(error) = world.raised.take() {
            return Err(error);
        }
        let (compiled, explanation) = compiled.map_err(|e| errors::core(ruby, e))?;
        Ok(Inferred { compiled, explanation, guards: world.guards, facts })
    }

    /// How the kernel reduces the results, where the section needs nothing else and the kernel can.
    fn fold(&self, form: &Form, compiled: &Compiled, plan: &Plan, overwritten: &[ColumnId]) -> Option<Fold> {
        let (reduction, slot) = (form.reduce?, plan.result.as_ref()?);
        if compiled.lowered.schema.table.is_some() {
            // a kernel that reduces makes no groups
            return None;
        }
        // Only true and false are counted. There are no other Integers, as results show.
        let dtype = is_dtype(self.request.settings.into.unwrap_or(Results::Numbers), slot)?;
        if dtype == Dtype::Bool && reduction != Reduction::Count || form.exact && dtype != Dtype::I64 {
            return None;
        }
        let Lowered { program, schema, .. } = &compiled.lowered;
        Fold::of(program, &compiled.layout, slot.value?, schema.marks, reduction, form.again, overwritten)
    }

    /// The kernel.
    fn prepare(
        &mut self,
        form: &Form,
        compiled: &mut Compiled,
        plan: &Plan,
        fold: Option<Fold>,
    ) -> Result<Prepared, Error> {
        let began = Instant::now();
        let (program, layout) = (&compiled.lowered.program, &compiled.layout);
        let compaction = match (self.request.settings.into, &plan.result, compiled.lowered.schema.marks) {
            (Some(into), Some(slot), Some(marks)) if fold.is_none() && is_dtype(into, slot).is_some() => {
                slot.value.and_then(|column| Compaction::of(program, layout, column, marks))
            }
            _ => None,
        };
        let sink = fold.map(Epilogue::Fold).or(compaction.map(Epilogue::Compaction));
        let backend = &self.backend;
        let prepare = || match sink {
            Some(sink) => backend.prepare_with_epilogue(program, layout, sink, &form.code),
            None => backend.prepare(program, layout, &form.code),
        };
        let executable = self.clock.measure(Phase::Compile, || gvl::released(|| large_stack::alone(prepare)));
        let executable = executable.map_err(|e| errors::core(self.ruby, e))?;
        if let Some(ticks) = compiled.ticks.take() {
            executable.join_ticks(ticks);
        }
        let at_once = executable.runs_epilogue();
        let (compaction, sink) = (compaction.filter(|_| at_once), sink.map(|sink| (sink, at_once)));
        Ok(Prepared { executable, compaction, sink, took: began.elapsed() })
    }

    /// The account for `Ikra.explain`, and for IKRA_DUMP.
    fn account(
        &mut self,
        form: &Form,
        compiled: &Compiled,
        explanation: Explanation,
        prepared: &Prepared,
    ) -> Result<(), Error> {
        let (ruby, elements, unit) = (self.ruby, self.len(), &self.site.source.unit);
        let history = *self.site.history.lock();
        let account = Account {
            operation: self.request.operation.name()?.into_owned(),
            elements,
            ticks: self.request.ticks,
            source: unit.source.clone(),
            place: errors::place(ruby, &unit.source)?,
            backend: self.backend.name(),
            why: backends::reason(self.request.settings.backend, elements, self.request.ticks, &history),
            reading: self.site.read_in.saturating_sub(unit.parsed_in),
            preparing: prepared.took,
            explanation,
            program: compiled.lowered.program.clone(),
            layout: compiled.layout.clone(),
            options: form.code,
            executable: prepared.executable.clone(),
            sink: prepared.sink,
        };
        if dump::is_wanted() {
            dump::write(ruby, &account)?;
        }
        if let Some(explained) = &mut self.explained {
            explained.account = Some(account);
        }
        Ok(())
    }
}
