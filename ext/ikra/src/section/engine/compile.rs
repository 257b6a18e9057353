//! Compiles a block for the values of one call, to a [`Variant`].
//!
//! Here: what it is compiled for ([`Form`]), the compilation, and what is known of the resulting program. That is where
//! results may go, and whether it may run in parts, raise later, or not be waited for. Not here: which variant fits
//! ([`super`]), and any stage of the compiler ([`ikra_core::engine`]).

use super::cache::MOST_VARIANTS;
use super::{Form, Section, Variant};
use crate::device::backends;
use crate::marshal::graph_cache;
use crate::marshal::made::HeapCapacities;
use crate::marshal::plan::{Plan, SlotPlan};
use crate::options::Results;
use crate::report::dump;
use crate::report::explain::Account;
use crate::report::profile::Phase;
use crate::ruby::dtype::Dtype;
use crate::ruby::errors;
use crate::ruby::gvl;
use crate::world::large_stack;
use crate::world::live_world::LiveWorld;
use crate::world::observe::Observer;
use ikra_core::backend::collective::reduce::Reduction;
use ikra_core::backend::epilogue::{Compaction, Epilogue};
use ikra_core::backend::fold::{self, Fold};
use ikra_core::engine::{self, Base, Holes, SectionShape, compile};
use ikra_core::ir::{ColumnId, Jobs, Lowered, Program, Site as Raise, Trap};
use ikra_core::layout::schema::Slot;
use ikra_core::process;
use ikra_core::sched::stencil::{Resources, Strategy};
use ikra_core::types::{Repr, Unit};
use ikra_core::world::{Evenness, Facts, Place, Root, World};
use magnus::Error;
use std::sync::Arc;
use std::time::Instant;

/// The outcome of compiling a block for a form.
enum Attempt {
    Ready(Box<Variant>),
    /// Elements without a value must get a neutral value of the reduction, which has none.
    Unfilled,
    /// A stencil must read values that another section has computed.
    Cut,
}

/// The dtype of an array on the device that holds the results. None where no array can hold them.
pub(super) fn is_dtype(into: Results, slot: &SlotPlan) -> Option<Dtype> {
    let natural = match slot.repr {
        Repr::Int => Dtype::I64,
        Repr::Float => Dtype::F64,
        Repr::Bool | Repr::Unit(Unit::True | Unit::False) => Dtype::Bool,
        _ => return None,
    };
    match into {
        Results::As(dtype) => Some(dtype).filter(|dtype| natural.prims() == dtype.prims()),
        Results::Natural | Results::Numbers => Some(natural),
    }
}

/// The column of results, if the program only stores results, and these are numbers.
fn only_results(program: &Program, plan: &Plan) -> Option<ColumnId> {
    let results = plan.result.as_ref()?.value?;
    let mut written = program.columns.iter().enumerate().filter(|(_, column)| column.written);
    let alone = written.all(|(at, _)| at == results.index()) && plan.accumulators.is_empty();
    alone.then_some(results)
}

/// Whether a program's elements may be processed in several sections.
fn is_divisible(lowered: &Lowered, plan: &Plan) -> bool {
    let program = &lowered.program;
    // A search ends a section without a value.
    let leaves = program.sites.iter().any(|site| site.trap == Trap::Break && !site.operands.is_empty());
    let only = if plan.result.is_some() { only_results(program, plan).is_some() } else { looks(program, plan) };
    only && !program.uses_random && !lowered.asks_index && !leaves
}

/// Whether a program only looks at elements.
fn looks(program: &Program, plan: &Plan) -> bool {
    plan.accumulators.is_empty() && !program.columns.iter().any(|column| column.written)
}

/// The places where a program raises, if its exceptions can be deferred and it only stores results that are numbers.
fn deferrable_sites(program: &Program, plan: &Plan, sinks: bool) -> Option<Arc<[Raise]>> {
    only_results(program, plan)?;
    let deferrable = !sinks && program.jobs == Jobs::Identity && program.can_defer_errors();
    deferrable.then(|| program.sites.as_slice().into())
}

impl Section<'_> {
    /// The form that a variant must be compiled for.
    pub(super) fn form(&self) -> Form {
        let base = if self.range.is_some() { Base::Range } else { Base::Array };
        Form {
            op: self.op,
            base,
            code: self.settings.code,
            backend: self.choice,
            process: process::id(),
            few: self.len() < ikra_core::ir::SMALL_INT_LIMIT as usize,
            single: self.scope.is_some() && self.ticks == 1,
            results: match self.settings.into {
                Some(Results::As(dtype)) => Some(dtype.storage()),
                _ => None,
            },
            reduce: self.settings.reduce,
            exact: self.settings.exact,
            again: self.settings.again,
            compacts: self.settings.holes || self.settings.into == Some(Results::Numbers),
            stays: self.scope.is_some(),
            resources: Resources {
                shared_memory: self.backend.target().shared_memory,
                apart: self.settings.apart,
                wanted: self.settings.stencils,
            },
        }
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
        let elements = self.len();
        let Section {
            ruby,
            captures,
            clock,
            site,
            base,
            range,
            ticks,
            settings,
            backend,
            explained,
            operation,
            told,
            ..
        } = self;
        // Observing a million objects takes as long as making a device's context.
        backend.get_ready();
        let mut facts = Facts::default();
        let whole;
        {
            let state = site.state.lock();
            whole = form.single && !state.scattered;
            state.refuted.iter().for_each(|assumption| facts.refute(assumption));
            facts.widen(&state.wide);
            let uneven = |what: &Evenness| form.stays || state.uneven.contains(what);
            Evenness::ALL.into_iter().filter(uneven).for_each(|what| facts.saw_uneven(what));
            if state.large || form.stays {
                facts.saw_large_rows();
            }
        }
        if let Some((first, _)) = range {
            facts.saw_integer(&Root::Element, *first);
        }
        let mut world = LiveWorld::new(ruby, captures, range.is_none().then_some(*base), super::resident::is_open);
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
                single: form.single,
                // The host waits for each launch.
                joined: form.single && backend.store().is_some(),
                whole,
                results: form.results,
                holes,
            };
            if explained.is_some() || dump::is_wanted() {
                let answer = large_stack::asking(&mut world, |world| {
                    engine::explain(world, &mut facts, &site.source, &shape, &form.code, form.resources)
                });
                return answer.map(|(compiled, explanation)| (compiled, Some(explanation)));
            }
            let compiled = large_stack::asking(&mut world, |world| {
                compile(world, &mut facts, &site.source, &shape, &form.code, form.resources)
            });
            compiled.map(|compiled| (compiled, None))
        });
        if let Some(error) = world.raised.take() {
            return Err(error);
        }
        let (compiled, explanation) = compiled.map_err(|e| errors::core(ruby, e))?;
        site.state.lock().wide.extend(facts.wide().iter().cloned());
        if let Some(told) = told {
            told.clear()?;
            compiled.stencils.iter().try_for_each(|choice| told.push(choice.to_string()))?;
        }
        if let Some(cut) = compiled.stencils.iter().position(|choice| choice.strategy == Strategy::Separate) {
            let mut state = site.state.lock();
            state.cuts.retain(|(known, _)| known != form);
            state.cuts.truncate(MOST_VARIANTS - 1);
            state.cuts.insert(0, (form.clone(), cut));
            return Ok(Attempt::Cut);
        }
        let (program, layout) = (&compiled.lowered.program, &compiled.layout);
        let plan = Plan::new(ruby, program, &compiled.lowered.schema, &facts).map_err(|e| errors::core(ruby, e))?;
        let overwritten = compiled.lowered.schema.overwritten();
        let fold = form.reduce.and_then(|reduction| {
            let slot = plan.result.as_ref()?;
            // Only true and false are counted. There are no other Integers, as results show.
            let dtype = is_dtype(settings.into.unwrap_or(Results::Numbers), slot)?;
            if dtype == Dtype::Bool && reduction != Reduction::Count || form.exact && dtype != Dtype::I64 {
                return None;
            }
            Fold::of(program, layout, slot.value?, compiled.lowered.schema.marks, reduction, form.again, &overwritten)
        });
        if fold.is_none() && compiled.lowered.schema.has_holes && holes != Some(Holes::Marked) {
            return Ok(Attempt::Unfilled);
        }
        let began = Instant::now();
        let compaction = match (settings.into, &plan.result, compiled.lowered.schema.marks) {
            (Some(into), Some(slot), Some(marks)) if fold.is_none() && is_dtype(into, slot).is_some() => {
                slot.value.and_then(|column| Compaction::of(program, layout, column, marks))
            }
            _ => None,
        };
        let sink = fold.map(Epilogue::Fold).or(compaction.map(Epilogue::Compaction));
        let prepare = || match sink {
            Some(sink) => backend.prepare_with_epilogue(program, layout, sink, &form.code),
            None => backend.prepare(program, layout, &form.code),
        };
        let executable = clock
            .measure(Phase::Compile, || gvl::released(|| large_stack::alone(prepare)))
            .map_err(|e| errors::core(ruby, e))?;
        if let Some(ticks) = compiled.ticks {
            executable.join_ticks(ticks);
        }
        let at_once = executable.runs_epilogue();
        let compaction = compaction.filter(|_| at_once);
        let preparing = began.elapsed();
        if let Some(explanation) = explanation {
            let unit = &site.source.unit;
            let history = *site.history.lock();
            let account = Account {
                operation: operation.name()?.into_owned(),
                elements,
                ticks: *ticks,
                source: unit.source.clone(),
                place: errors::place(ruby, &unit.source)?,
                backend: backend.name(),
                why: backends::reason(settings.backend, elements, *ticks, &history),
                reading: site.read_in.saturating_sub(unit.parsed_in),
                preparing,
                explanation,
                program: program.clone(),
                layout: compiled.layout.clone(),
                options: form.code,
                executable: executable.clone(),
                sink: sink.map(|sink| (sink, at_once)),
            };
            if dump::is_wanted() {
                dump::write(ruby, &account)?;
            }
            if let Some(explained) = explained {
                explained.account = Some(account);
            }
        }
        if let Some(note) = backends::cache_note() {
            errors::warn(ruby, &format!("Ikra: {note}"))?;
        }
        let capacities = HeapCapacities::new(program, elements);
        let sinks = fold.is_some() || compaction.is_some();
        let surely_ends = !sinks && program.surely_ends();
        let (sites, divisible) = (deferrable_sites(program, &plan, sinks), is_divisible(&compiled.lowered, &plan));
        let looks = plan.result.is_none() && !program.uses_random && looks(program, &plan);
        let pure = {
            let marks = compiled.lowered.schema.marks;
            let results: Vec<ColumnId> =
                compiled.lowered.schema.result.iter().flat_map(Slot::columns).chain(marks).collect();
            program.changes_only(&results, &overwritten)
        };
        let (form, guards, lowered) = (form.clone(), world.guards, compiled.lowered);
        let variant = Variant {
            form,
            guards,
            lowered,
            plan,
            capacities,
            executable,
            fold,
            compaction,
            sites,
            surely_ends,
            divisible,
            looks,
            pure,
            graphs: graph_cache::Owner::default(),
        };
        Ok(Attempt::Ready(Box::new(variant)))
    }
}
