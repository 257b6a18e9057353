//! A block compiled for some types: a [`Variant`].
//!
//! Here: what a variant was compiled for ([`Form`]), and where its results may go. [`Properties`] says whether it may
//! run in parts, raise later, or not be waited for. Not here: the compilation ([`super::compile`]), and which variant
//! fits a call ([`super::select`]).

use super::curves::Measured;
use crate::marshal::capacity::HeapCapacities;
use crate::marshal::graph_cache;
use crate::marshal::plan::{Plan, SlotPlan};
use crate::options::{Choice, Results};
use crate::ruby::dtype::Dtype;
use crate::world::live_world::{self, Guards};
use ikra_core::backend::Executable;
use ikra_core::backend::collective::reduce::Reduction;
use ikra_core::backend::doubled::Doubling;
use ikra_core::backend::epilogue::Compaction;
use ikra_core::backend::fold::Fold;
use ikra_core::config::CodeOptions;
use ikra_core::engine::{Base, SectionOp};
use ikra_core::infer::hash_updates::Pairs;
use ikra_core::ir::{ColumnId, Jobs, Lowered, Program, Site as Raise, Storage, Trap};
use ikra_core::layout::schema::Slot;
use ikra_core::sched::stencil::Resources;
use ikra_core::types::{Repr, Unit};
use std::sync::Arc;

/// What a variant was compiled for, in addition to types.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) op: SectionOp,
    pub(super) base: Base,
    pub(super) code: CodeOptions,
    pub(super) backend: Choice,
    /// The process on whose device the kernel is. None: its code is in memory, of which a forked child has a copy.
    pub(super) process: Option<u32>,
    /// There are few elements.
    pub(super) few: bool,
    /// How it accumulates into captured Hashes.
    pub(super) pairs: Pairs,
    /// One tick at a time, as a scope calls it that keeps columns where they are. A program without a loop over ticks
    /// always ends.
    pub(super) single: bool,
    /// How results are stored, if not as Ruby's values.
    pub(super) results: Option<Storage>,
    /// The reduction of the results, where the section needs nothing else.
    pub(super) reduce: Option<Reduction>,
    /// Reduces only Integers.
    pub(super) exact: bool,
    /// Reduces only where results may be computed again.
    pub(super) again: bool,
    /// Elements that have no result are left out.
    pub(super) compacts: bool,
    /// The section runs in a scope that keeps its columns. Nothing looks at their contents before each launch.
    pub(super) stays: bool,
    /// Columns of Floats have all bits, because programs of other precisions read them.
    pub(super) all_bits: bool,
    /// The resources for which a strategy of stencils is chosen.
    pub(super) resources: Resources,
}

/// A block compiled for some types.
pub struct Variant {
    pub(super) form: Form,
    pub(super) guards: Guards,
    pub(super) lowered: Lowered,
    pub(super) plan: Plan,
    pub(super) capacities: HeapCapacities,
    pub(super) executable: Arc<dyn Executable>,
    /// The same for a loop of launches of which each would copy what it writes.
    pub(super) doubling: Doubling,
    /// How results are reduced, where they are not stored.
    pub(super) fold: Option<Fold>,
    /// How the kernel stores the elements that have results side by side, without the others.
    pub(super) compaction: Option<Compaction>,
    pub(super) properties: Properties,
    /// Owns the tables that calls leave to the next.
    pub(super) graphs: graph_cache::Owner,
    /// What launches beside others took.
    pub(super) measured: Measured,
}

impl Variant {
    /// Whether its columns may stay where they are between calls.
    pub(super) fn may_stay(&self) -> bool {
        let program = &self.lowered.program;
        let arrays_stay = !self.plan.kinds.iter().any(|kind| kind.written);
        let flags_stay = !self.plan.freezes() && !self.lowered.schema.asks_frozen;
        let variables_stay = !self.lowered.schema.roots.iter().any(|root| live_world::is_class_variable(&root.root));
        !program.takes_rows() && arrays_stay && flags_stay && variables_stay && !program.uses_slots()
    }
}

/// What holds of a program, whatever values it meets.
pub(super) struct Properties {
    /// The places where the program raises, if an exception can be deferred: the program only stores its results.
    pub(super) sites: Option<Arc<[Raise]>>,
    /// A launch ends soon and without an error.
    pub(super) surely_ends: bool,
    /// Elements may be processed in several sections. The program only stores results, or looks for an element, and
    /// neither depends on the index of an element.
    pub(super) divisible: bool,
    /// The program only looks for an element, and would find the same one again.
    pub(super) looks: bool,
    /// The program changes no objects of the caller, and would give the same result again.
    pub(super) pure: bool,
    /// The same, but the program may give groups of pairs, and does not ask for the index of an element. So some
    /// elements can be processed without the others.
    pub(super) independent: bool,
    /// The program may give groups of pairs. Apart from that it would do the same if it ran again over its columns.
    pub(super) repeatable: bool,
}

impl Properties {
    /// `sinks`: results are reduced or compacted. `overwritten`: columns of what existed before, where the program
    /// changes it.
    pub(super) fn of(lowered: &Lowered, plan: &Plan, sinks: bool, overwritten: &[ColumnId]) -> Self {
        let (program, schema) = (&lowered.program, &lowered.schema);
        let results: Vec<ColumnId> = schema.result.iter().flat_map(Slot::columns).chain(schema.marks).collect();
        Self {
            sites: deferrable_sites(program, plan, sinks),
            surely_ends: !sinks && program.surely_ends(),
            divisible: is_divisible(lowered, plan),
            looks: plan.result.is_none() && !program.uses_random && looks(program, plan),
            pure: program.changes_only(&results, overwritten),
            independent: !lowered.asks_index
                && schema.table.is_none()
                && program.emits_or_changes_only(&results, overwritten),
            repeatable: program.emits_or_changes_only(&results, overwritten),
        }
    }
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
    let alone = written.all(|(at, _)| at == results.index()) && plan.accumulators.is_empty() && !program.emits();
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
    plan.accumulators.is_empty() && !program.emits() && !program.columns.iter().any(|column| column.written)
}

/// The places where a program raises, if its exceptions can be deferred and it only stores results that are numbers.
fn deferrable_sites(program: &Program, plan: &Plan, sinks: bool) -> Option<Arc<[Raise]>> {
    only_results(program, plan)?;
    let deferrable = !sinks && program.jobs == Jobs::Identity && program.can_defer_errors();
    deferrable.then(|| program.sites.as_slice().into())
}
