//! Sections that run at once: what a section tells its gate, and which sections must come before it.
//!
//! Here: [`Footprint`], what a section writes of what existed before; and the two moments at which a section asks its
//! gate ([`crate::ruby::gate`]). Not here: the order of sections, and their threads (`lib/ikra/sections.rb`).
//!
//! A section that has packed its columns does not look at objects again until it writes back. So another section may
//! run meanwhile, unless it reads what the first one is going to write.

use super::request::Kind;
use super::retry::LaunchPolicy;
use super::variant::Variant;
use super::{Leaves, Section, State};
use crate::marshal::plan::Plan;
use crate::marshal::trace::Tables;
use crate::ruby::addresses::Addresses;
use crate::ruby::heap::Raw;
use crate::ruby::identity::RawMap;
use crate::ruby::question;
use crate::ruby::reflect;
use crate::section::random;
use ikra_core::ir::Trap;
use ikra_core::layout::schema::Schema;
use ikra_core::world::Root;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{DataTypeFunctions, Error, RArray, RModule, Ruby, Symbol, TryConvert, TypedData, Value, method};
use std::collections::{HashMap, HashSet};

/// What a section may write, of what existed before it.
///
/// Objects are there by their addresses. The section keeps them alive until it has ended, and its footprint is dropped
/// then.
#[derive(TypedData, Default)]
#[magnus(class = "Ikra::Footprint", free_immediately)]
pub struct Footprint {
    /// Classes, and the names of ivars.
    fields: HashSet<(Raw, String)>,
    /// The objects of these classes that the section reached.
    objects: HashMap<Raw, Addresses>,
    arrays: Addresses,
    /// Of columns that stay: by class, the group of states, and whether the section writes them.
    columns: RawMap<(u64, bool)>,
    /// Captured variables.
    locals: HashSet<String>,
    /// Anything: it freezes objects, assigns class variables, or changes what a captured Hash holds.
    anything: bool,
}

impl DataTypeFunctions for Footprint {}

/// Defines `Ikra::Footprint`, which Ruby code cannot make.
///
/// # Errors
/// Where the name is taken.
pub fn init(ikra: RModule, ruby: &Ruby) -> Result<(), Error> {
    let class = ikra.define_class("Footprint", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("written", method!(Footprint::written, 1))?;
    ikra.funcall::<_, _, Value>("private_constant", (ruby.to_symbol("Footprint"),))?;
    <Footprint as TypedData>::class(ruby);
    Ok(())
}

impl Footprint {
    /// That of a section. None where it writes nothing that existed before. One whose columns stay reads them until it
    /// has ended.
    fn of(plan: &Plan, schema: &Schema, tables: &Tables, state: Option<&State>) -> Option<Self> {
        let mut all = Self { anything: plan.classes.iter().any(|c| c.freezes.is_some()), ..Self::default() };
        for (class, rows) in plan.classes.iter().zip(&tables.classes) {
            let written = class.fields.iter().filter(|field| field.overwritten);
            let before = all.fields.len();
            all.fields.extend(written.map(|field| (class.raw, field.name.clone())));
            if all.fields.len() > before {
                all.objects.entry(class.raw).or_default().extend(&rows.objects);
            }
        }
        all.anything |= all.fields.iter().any(|(_, name)| name.starts_with("@@"));
        all.anything |= schema.table.is_some();
        all.anything |= schema.accumulators.iter().any(|accumulator| accumulator.update.is_some());
        for (kind, rows) in plan.kinds.iter().zip(&tables.kinds) {
            all.anything |= kind.freezes;
            if kind.overwritten {
                all.arrays.extend(&rows.arrays);
            }
        }
        all.locals.extend(schema.accumulators.iter().map(|accumulator| accumulator.name.to_string()));
        all.columns.extend(state.into_iter().flat_map(State::groups));
        let is_empty = all.columns.is_empty()
            && all.fields.is_empty()
            && all.arrays.is_empty()
            && all.locals.is_empty()
            && !all.anything;
        (!is_empty).then_some(all)
    }

    /// What a section writes of an object: the names of ivars. All that an Array holds has no name. nil: nothing.
    fn written(ruby: &Ruby, this: &Self, object: Value) -> Value {
        let raw = object.as_raw();
        if this.arrays.contains(raw) {
            return ruby.ary_new().as_value();
        }
        let Some((class, _)) = this.objects.iter().find(|(_, objects)| objects.contains(raw)) else {
            return ruby.qnil().as_value();
        };
        let fields = this.fields.iter().filter(|(of, _)| of == class).map(|(_, name)| ruby.to_symbol(name));
        ruby.ary_from_iter(fields).as_value()
    }

    /// What a section with these tables, over `base`, may read of it, or may write while this one reads it.
    fn met(
        &self,
        (plan, schema): (&Plan, &Schema),
        tables: &Tables,
        base: Raw,
        state: Option<&State>,
    ) -> Option<Met<'_>> {
        if self.anything {
            return Some(Met::Anything);
        }
        if self.arrays.contains_any(&[base]) {
            return Some(Met::Array);
        }
        let named = |root: &Root| match root {
            Root::Capture(name) | Root::Within(_, name) => self.locals.get(&**name),
            _ => None,
        };
        let local = |root: &Root| named(root).or_else(|| root.enclosing().find_map(named));
        if let Some(name) = schema.roots.iter().find_map(|root| local(&root.root)) {
            return Some(Met::Local(name));
        }
        let own = state.into_iter().flat_map(State::groups);
        let mut shared = own.filter_map(|(class, (group, writes))| {
            let (other, written) = self.columns.get(&class)?;
            (*other == group && (writes || *written)).then_some(class)
        });
        if let Some(class) = shared.next() {
            return Some(Met::Columns(class));
        }
        let mut classes = plan.classes.iter().zip(&tables.classes);
        let ivar = classes.find_map(|(class, rows)| {
            let objects = self.objects.get(&class.raw)?;
            let field = class.fields.iter().find_map(|field| self.fields.get(&(class.raw, field.name.clone())))?;
            objects.contains_any(&rows.objects).then_some(Met::Ivar(field.0, &field.1))
        });
        let array = || tables.kinds.iter().any(|rows| self.arrays.contains_any(&rows.arrays)).then_some(Met::Array);
        ivar.or_else(array)
    }
}

/// What one section writes and another one reads.
enum Met<'f> {
    Anything,
    Array,
    Local(&'f str),
    /// What stays of a class where kernels run.
    Columns(Raw),
    /// The class, and the name.
    Ivar(Raw, &'f str),
}

impl Met<'_> {
    fn shown(&self) -> Result<String, Error> {
        Ok(match self {
            Self::Anything => "more than Ikra tells apart".into(),
            Self::Array => "an Array".into(),
            Self::Local(name) => format!("the variable {name}"),
            Self::Columns(class) => {
                format!("columns of {}", question::described(reflect::value(*class), question::shown)?)
            }
            Self::Ivar(class, name) => {
                format!("{name} of {}", question::described(reflect::value(*class), question::shown)?)
            }
        })
    }
}

impl Section<'_> {
    /// Tells the gate that columns are packed. True: sections before this one were waited for, which have changed what
    /// was packed.
    ///
    /// # Errors
    /// `Ikra::Cancelled`, and what interrupts raise.
    pub(super) fn packed_at_gate(
        &mut self,
        variant: &Variant,
        tables: &Tables,
        jobs: u64,
        policy: &LaunchPolicy,
    ) -> Result<bool, Error> {
        let Some(gate) = self.gate else { return Ok(false) };
        let (plan, schema) = (&variant.plan, &variant.lowered.schema);
        let base = self.request.base.as_raw();
        let writers: RArray = gate.funcall("writers", ())?;
        let (mut meets, traces) = (false, !writers.is_empty() && gate.funcall("traces?", ())?);
        for writer in writers {
            let footprint = <&Footprint>::try_convert(writer)?;
            let Some(met) = footprint.met((plan, schema), tables, base, self.state.as_deref()) else { continue };
            meets = true;
            if !traces {
                break;
            }
            gate.funcall::<_, _, Value>("met", (writer, met.shown()?))?;
        }
        if meets {
            gate.funcall::<_, _, Value>("finish_before", ())?;
            return Ok(true);
        }
        let footprint = Footprint::of(plan, schema, tables, self.state.as_deref());
        self.has_turn = footprint.is_some();
        let writes_buffer = plan.kinds.iter().enumerate().any(|(at, kind)| kind.overwritten && tables.has_buffers(at));
        let footprint = footprint.map(|footprint| self.ruby.obj_wrap(footprint).as_value());
        let runs_once = self.runs_once(variant, policy);
        let ticks = self.request.ticks;
        let time = variant.executable.predicted(jobs, ticks).or_else(|| variant.measured.expected(jobs, ticks));
        let time = time.map(|time| time.as_secs_f64());
        let asked = (footprint, runs_once && !writes_buffer, writes_buffer, time, self.is_resumable);
        let leaves: Value = gate.funcall("packed", asked).inspect_err(|_| {
            random::give_back(self.number);
            // mostly it begins anew on another thread
            self.clock.forget();
        })?;
        if self.is_resumable {
            self.leaves = match Symbol::from_value(leaves) {
                Some(symbol) if symbol.name()? == "held" => Leaves::Held,
                Some(_) => Leaves::Always,
                None if leaves.to_bool() => Leaves::WhereLong,
                None => Leaves::Never,
            };
        } else {
            self.is_left = leaves.to_bool();
        }
        Ok(false)
    }

    /// Whether nothing makes the section run a second time, so that objects may change from now on.
    fn runs_once(&self, variant: &Variant, policy: &LaunchPolicy) -> bool {
        let repeats =
            |trap: &Trap| matches!(trap, Trap::Refuted(_) | Trap::Grow(_) | Trap::StackOverflow | Trap::Break);
        policy.is_first()
            && matches!(self.request.kind, Kind::Map | Kind::Each)
            && !variant.lowered.program.sites.iter().any(|site| repeats(&site.trap))
    }

    /// Waits until this section may write back.
    ///
    /// # Errors
    /// `Ikra::Cancelled`, and what interrupts raise. Then nothing may be written.
    pub(super) fn wait_for_turn(&self) -> Result<(), Error> {
        match self.gate {
            Some(gate) if self.has_turn => gate.funcall::<_, _, Value>("turn", ()).map(|_| ()),
            _ => Ok(()),
        }
    }
}
