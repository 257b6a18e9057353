//! Chooses the variant for a call, and packs its columns.
//!
//! Here: [`Section::packed`], which tries the variants of the block, and compiles one where none fits. Not here: the
//! compilation ([`super::compile`]), and packing itself ([`crate::marshal::pack`]).

use super::Section;
use super::cache::MAX_VARIANTS;
use super::resident;
use super::retry::MAX_ATTEMPTS;
use super::variant::{Form, Variant, is_dtype};
use crate::marshal::graph_cache;
use crate::marshal::pack::{Elements, Lender, PackTarget, Packed, RootValue, pack};
use crate::marshal::trace::{GuardFailure, Tables};
use crate::report::profile::Phase;
use crate::ruby::errors;
use crate::ruby::gvl::Patience;
use crate::ruby::heap::{self, Hashes, Raw};
use crate::ruby::holder::LazyHolder;
use crate::ruby::registry::symbols;
use crate::ruby::workers;
use crate::world::hashes::{self, Unfit};
use crate::world::live_world;
use ikra_core::diagnostic::Diagnostic;
use ikra_core::error::Error as CoreError;
use ikra_core::ir::ColumnId;
use ikra_core::world::Root;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Ruby, Value};
use once_cell::unsync::OnceCell;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// A variant that fits the values of this call, and its columns.
type Fitting = (Arc<Variant>, Packed, Arc<Tables>);

/// Lays out Hashes that a trace met, for the next one. False where kernels cannot hold one of them.
fn lay_out(ruby: &Ruby, met: Vec<Raw>, holder: &LazyHolder, laid_out: &mut Hashes) -> Result<bool, Error> {
    met.iter().for_each(|hash| holder.add(ruby, *hash));
    for hash in met {
        let parts = match hashes::parts(ruby, hash) {
            Ok(parts) => parts,
            Err(Unfit::Refused(_)) => return Ok(false),
            Err(Unfit::Raised(error)) => return Err(error),
        };
        parts.iter().for_each(|part| holder.add(ruby, *part));
        laid_out.insert(hash, parts);
    }
    Ok(true)
}

/// Numbers symbols that packing met.
fn number(ruby: &Ruby, met: &[Raw], holder: &LazyHolder) -> Result<(), Error> {
    met.iter().for_each(|symbol| holder.add(ruby, *symbol));
    met.iter().try_for_each(|symbol| symbols::add(ruby, *symbol).map(drop))
}

impl Section<'_> {
    /// The index of the stencil that must read values that another section has computed, if that is known.
    pub(super) fn cut(&self, form: &Form) -> Option<usize> {
        self.site.state.lock().cuts.iter().find(|(cut, _)| cut == form).map(|(_, stencil)| *stencil)
    }

    /// A variant that fits the values of this call, and its columns. None where the section must be cut in two.
    pub(super) fn packed(&mut self, holder: &LazyHolder) -> Result<Option<Fitting>, Error> {
        self.counted.set(None);
        let form = self.form();
        if self.explained.is_none() && self.cut(&form).is_some() {
            return Ok(None);
        }
        if let Some(scope) = self.scope.clone() {
            self.state = None;
            if self.explained.is_none()
                && let Some((state, packed)) = self.kept_state(&scope)?
            {
                let (variant, tables) = (state.variant().clone(), state.tables().clone());
                self.state = Some(state);
                return Ok(Some((variant, packed, tables)));
            }
            // What sections under way write has no version yet.
            if let (Some(gate), None) = (self.gate, &self.explained) {
                gate.funcall::<_, _, Value>("finish_before", ())?;
            }
            scope.write_back(self.ruby)?;
            scope.tidy(self.ruby)?;
        }
        resident::read_others(self.ruby, self.scope.as_ref())?;
        let patience = OnceCell::new();
        for _ in 0..MAX_ATTEMPTS {
            let mut nth = 0;
            while let Some(variant) = self.known(&form, nth) {
                if !variant.guards.hold(self.ruby)? {
                    if self.explained.is_some() {
                        break;
                    }
                    self.site.state.lock().variants.retain(|v| !Arc::ptr_eq(v, &variant));
                    continue;
                }
                if variant.guards.outside_hold(self.ruby, &self.request.captures)?
                    && let Some((mut packed, tables)) = self.pack(&variant, holder)?
                {
                    if let (Some(scope), None) = (self.scope.clone(), &self.explained) {
                        (self.state, packed) = self.make_state(&scope, &variant, packed, &tables, holder)?;
                    }
                    if nth > 0 {
                        let mut state = self.site.state.lock();
                        state.variants.retain(|v| !Arc::ptr_eq(v, &variant));
                        state.variants.insert(0, variant.clone());
                    }
                    return Ok(Some((variant, packed, tables)));
                }
                nth += 1;
            }
            let patience = patience.get_or_try_init(|| Patience::new(self.ruby, true))?;
            let Some(compiled) = patience.attempt(|| self.compile(&form)) else {
                patience.let_run(self.ruby)?;
                continue;
            };
            let Some(variant) = compiled? else { return Ok(None) };
            let variant = Arc::new(variant);
            if let Some(explained) = &mut self.explained {
                explained.variant = Some(variant);
                continue;
            }
            let mut state = self.site.state.lock();
            state.variants.truncate(MAX_VARIANTS - 1);
            state.variants.insert(0, variant);
        }
        Err(Error::new(
            self.ruby.exception_runtime_error(),
            "the objects of a section kept changing their types while it was compiled for them",
        ))
    }

    /// The variants for a form, the most recently used first.
    pub(super) fn known(&self, form: &Form, nth: usize) -> Option<Arc<Variant>> {
        match &self.explained {
            Some(explained) => explained.variant.iter().nth(nth).cloned(),
            None => self.site.state.lock().variants.iter().filter(|v| v.form == *form).nth(nth).cloned(),
        }
    }

    pub(super) fn root_value(&self, root: &Root) -> Result<Value, Error> {
        match root {
            Root::Element => Ok(self.request.base),
            root => live_world::captured(self.ruby, &self.request.captures, root),
        }
    }

    /// Gives the tables of a finished call to the graph cache.
    pub(super) fn keep(&self, variant: &Arc<Variant>, tables: Arc<Tables>, holder: &LazyHolder) {
        if self.state.is_none() {
            let base = self.base_of_state().0;
            holder.let_tables_go();
            if let Ok(tables) = Arc::try_unwrap(tables)
                && tables.knows_numbers()
                && (self.scope.is_none() || graph_cache::wants(&variant.graphs, base, &tables))
            {
                graph_cache::put(&variant.graphs, base, tables);
            }
        }
    }

    /// Packs by a variant's schema. None where something does not fit it.
    fn pack(&mut self, variant: &Arc<Variant>, holder: &LazyHolder) -> Result<Option<(Packed, Arc<Tables>)>, Error> {
        let (ruby, plan, lowered) = (self.ruby, &variant.plan, &variant.lowered);
        let roots = self.roots(variant, holder)?;
        let raws: SmallVec<[Raw; 8]> = roots.iter().map(|r| r.value).collect();
        if !plan.flat {
            holder.get(ruby);
        }
        let backend = self.backend.clone();
        let target = PackTarget {
            plan,
            lowered,
            capacity: &variant.capacities.now(&lowered.program, self.slots()),
            elsewhere: &self.elsewhere(variant),
            lender: Lender { store: backend.store(), keeps: self.scope.is_some() && variant.may_stay() },
            warp: backend.target().warp,
        };
        let mut hashes = heap::no_hashes();
        let key = self.base_of_state().0;
        let leads_on = plan.elements.as_ref().is_some_and(|slot| slot.leads_on());
        let elements = if leads_on { self.len() } else { 0 };
        let many = self.request.range.is_none() && workers::many(self.len());
        let patience = Patience::new(ruby, many || !plan.flat)?;
        let mut earlier = if plan.flat { None } else { graph_cache::take(&variant.graphs, key, elements) };
        loop {
            let mut unknown = Mutex::default();
            let base = self.request.range.is_none().then(|| heap::elements(self.request.base.as_raw()));
            self.counted.set(base.map(<[Raw]>::len));
            let elements = match (self.request.range, base) {
                (Some((first, len)), _) => Elements::Range(first, len),
                (None, base) => Elements::Values(base.unwrap_or(&[])),
            };
            // From here to the holder nothing allocates in Ruby's heap.
            let trace = || {
                if let Some(mut tables) = earlier.take() {
                    let begun = tables.revalidate(&target, base, &raws, &unknown);
                    if begun.is_some() {
                        return Ok((tables, begun));
                    }
                    graph_cache::failed(&variant.graphs, key);
                    // Symbols that packing met without a number. It meets them again.
                    unknown.get_mut().clear();
                }
                let unknown = unknown.get_mut();
                Ok((Tables::trace(plan, base, &raws, target.capacity, &hashes, unknown)?, None))
            };
            let traced = self.clock.measure(Phase::Trace, || patience.attempt(trace));
            let Some(traced) = traced else {
                patience.let_run(ruby)?;
                if self.still_holds(variant)? {
                    continue;
                }
                return Ok(None);
            };
            let (mut tables, begun) = match traced {
                Ok(traced) => traced,
                Err(GuardFailure::Hashes) => {
                    if lay_out(ruby, unknown.into_inner(), holder, Arc::make_mut(&mut hashes))? {
                        continue;
                    }
                    return Ok(None);
                }
                Err(failure) => return self.guard_failed(failure).map(|()| None),
            };
            let writes = || tables.writes_array(plan, self.request.base.as_raw());
            if self.request.ticks > 1 && lowered.schema.elements.is_some() && writes() {
                return Err(self.writes_its_base());
            }
            let pack = || pack(&target, &mut tables, begun, elements, &roots, &unknown);
            let Some(packed) = self.clock.measure(Phase::Pack, || patience.attempt(pack)) else {
                patience.let_run(ruby)?;
                if self.still_holds(variant)? {
                    continue;
                }
                return Ok(None);
            };
            match packed {
                Ok(packed) => {
                    if self.scope.is_none() && !graph_cache::wants(&variant.graphs, key, &tables) {
                        tables.forget_numbers();
                    }
                    let tables = Arc::new(tables);
                    if !plan.flat {
                        holder.get(ruby).hold_tables(tables.clone());
                    }
                    return Ok(Some((packed, tables)));
                }
                Err(GuardFailure::Symbols) => {
                    number(ruby, &unknown.into_inner(), holder)?;
                    earlier = hashes.is_empty().then_some(tables);
                    Arc::make_mut(&mut hashes).retain(|hash, _| !symbols::holds_texts(*hash));
                }
                Err(failure) => {
                    // Another variant may fit now, and this one again later.
                    if graph_cache::wants(&variant.graphs, key, &tables) {
                        graph_cache::put(&variant.graphs, key, tables);
                    }
                    return self.guard_failed(failure).map(|()| None);
                }
            }
        }
    }

    /// The values of a variant's roots, which the holder keeps.
    fn roots(&self, variant: &Variant, holder: &LazyHolder) -> Result<SmallVec<[RootValue; 8]>, Error> {
        let mut roots = SmallVec::new();
        for root in &variant.lowered.schema.roots {
            let value = self.root_value(&root.root)?;
            holder.add(self.ruby, value.as_raw());
            roots.push(RootValue::of(self.ruby, value));
        }
        Ok(roots)
    }

    /// Columns of results that a buffer will hold.
    fn elsewhere(&self, variant: &Variant) -> SmallVec<[ColumnId; 2]> {
        match (self.request.settings.into, &variant.plan.result) {
            (Some(into), Some(slot)) if is_dtype(into, slot).is_some() => match variant.fold {
                None => slot.value.into_iter().chain(variant.lowered.schema.marks).collect(),
                // The kernel of a device that reduces has no such column.
                Some(fold) if variant.executable.runs_epilogue() && self.backend.store().is_some() => {
                    [fold.column].into_iter().chain(fold.mask).collect()
                }
                Some(_) => SmallVec::new(),
            },
            _ => SmallVec::new(),
        }
    }

    /// Whether a variant still fits the program after Ruby code has run.
    fn still_holds(&self, variant: &Variant) -> Result<bool, Error> {
        Ok(variant.guards.hold(self.ruby)? && variant.guards.outside_hold(self.ruby, &self.request.captures)?)
    }

    /// The error for a block that writes the array that it runs over, through a variable. In later ticks Ruby would
    /// pass the new elements, but a section passes each element once.
    fn writes_its_base(&self) -> Error {
        let source = &self.site.source.unit.source;
        let message = "over several ticks this block writes the very array that it runs over";
        let diagnostic = Diagnostic::new(source, source.params_span(), message)
            .because("its parameter is the element as it was when the section began")
            .advise("read the element from the array, at Ikra.index, and give the block no parameter");
        errors::core(self.ruby, CoreError::Conflict(Box::new(diagnostic)))
    }

    fn guard_failed(&self, failure: GuardFailure) -> Result<(), Error> {
        match failure {
            GuardFailure::TooMany => {
                let message = "more objects or array elements than a kernel can number (2^31)";
                Err(Error::new(self.ruby.exception_range_error(), message))
            }
            GuardFailure::Lost(error) => Err(self.failed(error)),
            GuardFailure::RootOutOfRange(root) => {
                self.site.state.lock().out_of_range.insert(root);
                Ok(())
            }
            GuardFailure::NoUniformStride(what) => {
                self.site.state.lock().refuted_strides.insert(what);
                Ok(())
            }
            GuardFailure::Scattered => {
                self.site.state.lock().scattered = true;
                Ok(())
            }
            GuardFailure::ColumnOutOfRange(what) => {
                let mut state = self.site.state.lock();
                state.column_out_of_range = state.column_out_of_range.max(Some(what));
                Ok(())
            }
            GuardFailure::Value | GuardFailure::Symbols | GuardFailure::Hashes => Ok(()),
        }
    }
}
