//! Lowers a whole section: the entry function around the block, and the methods that it reaches.
//!
//! Here: the mapping of jobs to elements, ticks, results and contributions to captured locals. Not here: the block's
//! own code.

use super::body::{Body, Contributions, Frame};
use super::tables::{Form, Tables};
use super::value::Val;
use super::{Lowered, Shared};
use crate::config::{CodeOptions, Precision};
use crate::error::Result;
use crate::id::ArrayKind;
use crate::infer::hash_updates::Pairs;
use crate::infer::{Analysis, Base, Binding, SectionOp, SpecId};
use crate::ir::stages::Stage;
use crate::ir::{Cmp, ColumnId, Func, FuncId, Jobs, Op, Operand, Program, Scalar, Space, Stmt, Storage, VarId};
use crate::layout::schema::{Accumulator, GroupKeys, Slot, TabledHash};
use crate::syntax::ast::{LocalId, Pattern};
use crate::types::combine::Combine;
use crate::types::{Atom, Prims, Repr, Tag, Ty};
use crate::world::Root;
use std::collections::BTreeSet;

/// The properties of a section that the host has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SectionShape {
    pub op: SectionOp,
    pub base: Base,
    /// Whether some object occurs more than once among the elements.
    pub grouped: bool,
    /// Whether elements are visited by class, not in their own order.
    pub reordered: bool,
    /// Whether there are fewer than [`crate::ir::ASSUMED_LIMIT`] elements.
    pub few: bool,
    /// Only blocks that accumulate into captured Hashes ask.
    pub pairs: Pairs,
    /// Whether it is launched tick by tick, whatever its blocks do. Then the program has no loop over ticks.
    pub single: bool,
    /// Whether consecutive launches of single ticks may become one launch of another program. Then lowering makes the
    /// loop over ticks, and passes remove it from the program for single ticks.
    pub joined: bool,
    /// Whether the host makes sure that the elements are all objects of their classes, each once, if the program can
    /// use that ([`crate::passes::whole()`]).
    pub whole: bool,
    /// How numeric results are stored, if not as Ruby's.
    pub results: Option<Storage>,
    /// What is stored for elements whose result is [`HOLE`], if the results of the others are numbers of one kind.
    /// None: a hole is a result like any other.
    pub holes: Option<Holes>,
}

/// The module that is the result of an element without a result. User programs do not use it; the prelude's methods for
/// operations return it.
pub const HOLE: &str = "Ikra::Hole";

/// What is stored for an element without a result, so that the column of results contains plain numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holes {
    /// A number that is neutral in the reduction that follows: an Integer, or the bits of a Float.
    Filled { int: i64, float: u64 },
    /// Anything. A validity mask ([`crate::layout::schema::Schema::marks`]) says which elements have a result.
    Marked,
}

/// Lowers a finished analysis.
///
/// # Errors
/// Types that mix exceptions with other kinds. Other errors are bugs of Ikra.
pub fn lower(an: &mut Analysis<'_>, shape: &SectionShape, options: &CodeOptions, name: &str) -> Result<Lowered> {
    let mut t = Tables::new(an)?;
    let mut shared = Shared { options: *options, ..Shared::default() };
    let entry = shared.reserve();
    let jobs = match (shape.grouped, shape.reordered) {
        (true, _) => Jobs::Grouped,
        (false, true) => Jobs::Reordered,
        (false, false) => Jobs::Identity,
    };
    let fuses = !an.fields.values().chain(an.arrays.values()).any(crate::infer::Access::keeps_ticks_apart);
    let loops = !shape.single || shape.joined && fuses;
    shared.funcs[entry.index()] = entry_function(an, &mut t, &mut shared, jobs, shape, loops)?;
    an.specs[Analysis::BLOCK.index()].lowered = true;
    while let Some(spec) = t.pending.pop() {
        an.specs[spec.index()].lowered = true;
        let func = method_function(an, &mut t, &mut shared, spec)?;
        shared.funcs[t.functions[&spec].index()] = func;
    }
    super::rescue::finish(&mut shared, an, &mut t)?;
    let changed: BTreeSet<ArrayKind> = t.changed_arrays.iter().map(|kind| an.facts.find(*kind)).collect();
    if t.key_arrays.iter().any(|kind| changed.contains(&an.facts.find(*kind))) {
        t.schema.groups = Some(GroupKeys::Other);
    }
    complete_keys(&t, &mut shared.funcs);
    t.all_told_apart(an.spec(Analysis::BLOCK).unit.body.span)?;
    // New rows contain arbitrary ids until they are stored.
    for column in t.columns.iter_mut().filter(|c| t.heaps.iter().any(|h| c.space.covers(h.space))) {
        column.refers = None;
    }
    // a search for races must see all accesses of the user's code
    let strides = if options.races { Vec::new() } else { t.uniform_strides(an.facts) };
    if !options.races {
        t.mark_ranged(an.facts);
    }
    if options.precision == Precision::Single && !options.races && !an.facts.keeps_all_bits() {
        t.mark_roundable(an.facts);
    }
    let extents = t.extents();
    let program = Program {
        name: name.into(),
        funcs: shared.funcs,
        entry,
        columns: t.columns,
        params: t.params,
        heaps: t.heaps,
        strides,
        extents,
        sites: shared.sites,
        jobs,
        few: shape.few,
        fused_ticks: !shape.single && fuses,
        uses_random: t.uses_random,
        rescued: shared.rescued,
    };
    Ok(Lowered { program, schema: t.schema, asks_index: t.asks_index, fuses })
}

/// Makes keys that are all one part of one kind words. Others get the column of their Strings' bytes. A program that
/// must not run has no keys.
fn complete_keys(t: &Tables, funcs: &mut [Func]) {
    let bytes = t.schema.bytes.filter(|_| t.has_text_keys);
    let keys = t.schema.groups.unwrap_or(GroupKeys::Other);
    funcs.iter_mut().for_each(|func| complete_keys_in(&mut func.body, keys, bytes));
}

fn complete_keys_in(body: &mut Vec<Stmt>, keys: GroupKeys, bytes: Option<ColumnId>) {
    let mut part = None;
    body.retain_mut(|stmt| match stmt {
        Stmt::KeyPart { word, .. } => {
            part = Some(*word).filter(|_| keys != GroupKeys::Parts);
            keys == GroupKeys::Parts
        }
        Stmt::Emit { key, text, .. } => {
            (*key, *text) = (part.take(), bytes);
            keys != GroupKeys::Other
        }
        _ => true,
    });
    for stmt in body {
        stmt.bodies_mut().into_iter().flatten().for_each(|body| complete_keys_in(body, keys, bytes));
    }
}

/// Lowers one specialisation of a method.
fn method_function(an: &mut Analysis<'_>, t: &mut Tables, shared: &mut Shared, spec: SpecId) -> Result<Func> {
    let (self_ty, ret, label, bindings) = {
        let s = an.spec(spec);
        (s.key.self_ty.clone(), s.ret.clone(), s.label.clone(), s.key.args.clone())
    };
    let recursive = t.recursive.contains(&spec);
    let results = t.form(&ret).map(Form::scalars).unwrap_or_default();
    let mut body = Body::new(label, results, an, t, shared, spec);
    let unit = body.here.unit.clone();
    let span = unit.body.span;
    let take = |body: &mut Body<'_, '_>, ty: &Ty, name: &str| -> Result<Val> {
        let form = body.form(ty, span)?;
        let vars: Vec<Operand> =
            form.scalars().into_iter().map(|s| Operand::Var(body.cx.b.param(s, Some(name.into())))).collect();
        Ok(super::body::from_operands(form, &vars))
    };
    body.here.self_val = Some(take(&mut body, &self_ty, "self")?);
    let params = &unit.params;
    let names = params
        .required
        .iter()
        .map(pattern_local)
        .chain(params.optional.iter().map(|(l, _)| Some(*l)))
        .chain(params.post.iter().map(pattern_local))
        .chain(params.keywords.iter().map(|k| Some(k.local)));
    let mut values = Vec::new();
    for (local, binding) in names.zip(&bindings) {
        values.push(match binding {
            Binding::Given(ty) => {
                let name = local.map_or("", |l| &*unit.locals[l.index()].name);
                take(&mut body, ty, name)?
            }
            Binding::Default => Val::NIL,
        });
    }
    let stage = body.t.stages.get(&spec).cloned();
    for _ in 0..stage.as_ref().map_or(0, |(distances, _)| *distances) {
        body.cx.b.param(Scalar::I64, Some("away".into()));
    }
    body.declare_kept()?;
    body.declare_locals()?;
    body.bind_params(params, &bindings, &values)?;
    let val = body.eval(&unit.body)?;
    body.give_back(val)?;
    let first = body.t.schema.range;
    let mut func = body.cx.b.finish();
    func.recursive = recursive;
    func.stage = stage.map(|(_, stage)| Stage { first, ..stage });
    Ok(func)
}

fn pattern_local(pattern: &Pattern) -> Option<LocalId> {
    match pattern {
        Pattern::Local(local) => Some(*local),
        Pattern::List { .. } => None,
    }
}

/// The slots that the entry function uses.
struct Entry {
    element: Option<(Slot, Ty)>,
    result: Option<Slot>,
    /// Set if some elements have no result.
    holes: Option<Holes>,
}

fn entry_function(
    an: &mut Analysis<'_>,
    t: &mut Tables,
    shared: &mut Shared,
    jobs: Jobs,
    shape: &SectionShape,
    loops: bool,
) -> Result<Func> {
    let has_break = an.has_break;
    let mut body = Body::new("entry".into(), vec![], an, t, shared, Analysis::BLOCK);
    let job = Operand::Var(body.cx.b.param(Scalar::I64, Some("job".into())));
    let first_tick = Operand::Var(body.cx.b.param(Scalar::I64, Some("tick_begin".into())));
    let last_tick = Operand::Var(body.cx.b.param(Scalar::I64, Some("tick_end".into())));
    let entry = set_up(&mut body, shape)?;
    let tick = body.cx.b.var(Scalar::I64, Some("tick".into()));

    match jobs {
        Jobs::Identity | Jobs::Reordered => {
            let index = if jobs == Jobs::Identity {
                job
            } else {
                let order = body.t.column("order", Space::Job, Storage::U32);
                body.t.schema.order = Some(order);
                body.t.columns[order.index()].read = true;
                let index = body.cx.b.load(Scalar::I32, order, job);
                let padding = body.cx.b.icmp(Cmp::Eq, index, Operand::I32(-1));
                body.cx.b.when(padding, |b| b.push(Stmt::Return(vec![])));
                body.cx.b.i64(Op::Widen, &[index])
            };
            body.cx.b.push(Stmt::Begin { index, tick: first_tick, check: true });
            load_contributions(&mut body, index);
            let element = load_element(&mut body, &entry, index)?;
            if shape.op == SectionOp::Map {
                // A map has only one tick.
                run_block(&mut body, &entry, &element, index)?;
            } else {
                ticks(&mut body, loops, tick, first_tick, last_tick, |body| {
                    body.cx.b.push(Stmt::Begin { index, tick: Operand::Var(tick), check: has_break });
                    run_block(body, &entry, &element, index)?;
                    if has_break {
                        // a `break` of another element may stop the job before its next tick
                        body.store_contributions(index);
                    }
                    Ok(())
                })?;
            }
            body.store_contributions(index);
        }
        Jobs::Grouped => {
            let order = body.t.column("order", Space::Job, Storage::U32);
            let starts = body.t.column("starts", Space::Job, Storage::U32);
            body.t.schema.order = Some(order);
            body.t.schema.starts = Some(starts);
            for column in [order, starts] {
                body.t.columns[column.index()].read = true;
            }
            let from = body.cx.b.load(Scalar::I32, starts, job);
            let next_job = body.cx.b.i64(Op::Add, &[job, Operand::I64(1)]);
            let to = body.cx.b.load(Scalar::I32, starts, next_job);
            let (from, to) = (body.cx.b.i64(Op::Widen, &[from]), body.cx.b.i64(Op::Widen, &[to]));
            let at = body.cx.b.temp(Scalar::I64);
            ticks(&mut body, loops, tick, first_tick, last_tick, |body| {
                body.cx.b.set(at, from);
                let label = body.cx.b.label();
                body.cx.b.open();
                let done = body.cx.b.icmp(Cmp::Ge, Operand::Var(at), to);
                body.cx.b.when(done, |b| b.push(Stmt::Break(label)));
                let index = body.cx.b.load(Scalar::I32, order, Operand::Var(at));
                let index = body.cx.b.i64(Op::Widen, &[index]);
                body.cx.b.push(Stmt::Begin { index, tick: Operand::Var(tick), check: true });
                load_contributions(body, index);
                let element = load_element(body, &entry, index)?;
                let result = run_block(body, &entry, &element, index);
                body.store_contributions(index);
                body.cx.b.push(Stmt::Let { dst: at, op: Op::Add, args: vec![Operand::Var(at), Operand::I64(1)] });
                let stmts = body.cx.b.close();
                body.cx.b.push(Stmt::Loop { label, body: stmts });
                result
            })?;
        }
    }
    body.cx.b.push(Stmt::Return(vec![]));
    Ok(body.cx.b.finish())
}

fn set_up(body: &mut Body<'_, '_>, shape: &SectionShape) -> Result<Entry> {
    let unit = body.here.unit.clone();
    let mut entry = Entry { element: None, result: None, holes: None };
    let wants_element = unit.params.take_any();
    match shape.base {
        Base::Range if wants_element => {
            let first = body.t.param("first", Scalar::I64);
            body.t.params[first.index()].range = body.an.facts.word(&Root::Element);
            body.t.schema.range = Some(first);
        }
        Base::Array if wants_element => {
            let ty = body.an.root(Analysis::BLOCK, &Root::Element).unwrap_or_default();
            let slot = body.t.slot("element", Space::Element, &ty, unit.source.params_span())?;
            body.t.schema.elements = Some(slot.clone());
            entry.element = Some((slot, ty));
        }
        _ => {}
    }
    if shape.op == SectionOp::Map {
        let ty = body.an.spec(Analysis::BLOCK).ret.clone();
        let numbers = shape.holes.and_then(|_| beside_holes(body, &ty));
        let slot = body.t.slot("result", Space::Element, numbers.as_ref().unwrap_or(&ty), unit.body.span)?;
        body.t.narrow(&slot, shape.results);
        body.t.schema.is_endless = ty.is_never();
        entry.holes = shape.holes.filter(|_| numbers.is_some());
        body.t.schema.has_holes = entry.holes.is_some();
        if entry.holes == Some(Holes::Marked) {
            body.t.schema.marks = Some(body.t.column("result.there", Space::Element, Storage::U8));
        }
        body.t.schema.result = Some(slot.clone());
        entry.result = Some(slot);
    }
    let acc = body.an.accumulators.clone();
    let all = acc
        .reduced
        .iter()
        .map(|(l, (combine, wording, span))| (*l, *combine, Some(*wording), *span))
        .chain(acc.last.iter().map(|(l, span)| (*l, Combine::Last, None, *span)));
    for (local, combine, wording, span) in all {
        let update = body.an.hash_updates.hashes.get(&local).copied();
        let (name, line) = (unit.locals[local.index()].name.clone(), unit.source.line_of(span.start));
        if let Some(update) = update.filter(|_| body.an.hash_updates.tabled == Some(local)) {
            body.t.schema.table = Some(TabledHash { name: name.clone(), update: (update, span), line });
            let place = body.place(Form::One(Repr::Int), Some(&name));
            body.here.locals[local.index()] = Some(place.clone());
            body.counted = Some(place);
            continue;
        }
        let mut ty = acc.types.get(&local).cloned().unwrap_or_default();
        if update.is_some() {
            ty = body.an.facts.join(&ty, &Ty::nil());
        }
        let slot = body.t.slot(&name, Space::Element, &ty, span)?;
        let written_tick = body.t.column(&format!("{name}.tick"), Space::Element, Storage::I64);
        body.t.schema.accumulators.push(Accumulator {
            name: name.clone(),
            combine,
            wording,
            slot: slot.clone(),
            written_tick,
            update: update.map(|update| (update, span)),
            line,
        });
        let form = Form::One(slot.repr);
        let place = body.place(form, Some(&name));
        let written: VarId = body.cx.b.var(Scalar::I64, Some(format!("{name}_tick").into()));
        if combine == Combine::Last {
            body.here.locals[local.index()] = Some(place.clone());
        }
        body.contributions.push(Contributions { local, place, written, slot, column: written_tick });
    }
    Ok(entry)
}

fn load_contributions(body: &mut Body<'_, '_>, index: Operand) {
    if let Some(place) = body.counted.clone() {
        body.store(&place, Val::Int(Operand::I64(0)));
    }
    for Contributions { place, written, slot, column, .. } in body.contributions.clone() {
        let val = body.load_slot(&slot, index);
        body.store(&place, val);
        body.t.columns[column.index()].read = true;
        let tick = body.cx.b.load(Scalar::I64, column, index);
        body.cx.b.set(written, tick);
    }
}

impl Body<'_, '_> {
    /// Stores the running element's contributions to captured locals in its row.
    pub fn store_contributions(&mut self, index: Operand) {
        for Contributions { place, written, slot, column, .. } in self.contributions.clone() {
            let val = self.load(&place);
            self.store_slot(&slot, index, val);
            self.t.columns[column.index()].written = true;
            self.cx.b.store(column, index, Operand::Var(written));
        }
    }
}

fn load_element(body: &mut Body<'_, '_>, entry: &Entry, index: Operand) -> Result<Vec<(Val, Ty)>> {
    if let Some((slot, ty)) = &entry.element {
        if ty.is_never() {
            return Ok(vec![]);
        }
        let val = body.load_slot(slot, index);
        return Ok(vec![(val, ty.clone())]);
    }
    if let Some(first) = body.t.schema.range {
        let first = body.cx.b.i64(Op::Param(first), &[]);
        let val = Val::Int(body.cx.b.i64(Op::Add, &[first, index]));
        return Ok(vec![(val, Ty::int())]);
    }
    Ok(vec![])
}

/// Runs all ticks of a launch, one after the other. Without `loops`, there is one tick.
fn ticks(
    body: &mut Body<'_, '_>,
    loops: bool,
    tick: VarId,
    first: Operand,
    last: Operand,
    once: impl FnOnce(&mut Body<'_, '_>) -> Result<()>,
) -> Result<()> {
    body.cx.b.set(tick, first);
    if !loops {
        return once(body);
    }
    let label = body.cx.b.label();
    body.cx.b.open();
    let done = body.cx.b.icmp(Cmp::Ge, Operand::Var(tick), last);
    body.cx.b.when(done, |b| b.push(Stmt::Break(label)));
    let result = once(body);
    body.cx.b.push(Stmt::Let { dst: tick, op: Op::Add, args: vec![Operand::Var(tick), Operand::I64(1)] });
    let stmts = body.cx.b.close();
    body.cx.b.push(Stmt::Loop { label, body: stmts });
    result
}

fn run_block(body: &mut Body<'_, '_>, entry: &Entry, element: &[(Val, Ty)], index: Operand) -> Result<()> {
    let unit = body.here.unit.clone();
    body.declare_kept()?;
    body.declare_block_locals()?;
    let held = |slot: &Slot| if entry.holes.is_some() { Repr::Union } else { slot.repr };
    let place = entry.result.as_ref().map(|slot| body.place(Form::One(held(slot)), None));
    let next = body.cx.b.label();
    body.cx.b.open();
    if unit.lambda {
        // `return` ends the lambda's run for this element, as `next` does
        let result = match &place {
            Some(place) => place.clone(),
            None => body.result_place(&Ty::nil(), unit.body.span)?,
        };
        body.here.ret = Some((next, result));
    }
    body.frames.push(Frame { next, next_place: place.clone(), brk: None });
    let wants_element = unit.params.take_any();
    let result = (|| -> Result<()> {
        if wants_element && element.is_empty() {
            body.unreachable();
            return Ok(());
        }
        body.bind(&unit.params, element, unit.source.params_span())?;
        let val = body.eval(&unit.body)?;
        if let Some(place) = &place {
            body.store(place, val);
        }
        Ok(())
    })();
    body.frames.pop();
    let stmts = body.cx.b.close();
    result?;
    body.cx.b.push(Stmt::Block { label: next, body: stmts });
    if let (Some(slot), Some(place)) = (&entry.result, &place) {
        let mut val = body.load(place);
        if let Some(holes) = entry.holes {
            val = without_hole(body, holes, slot, index, val);
        }
        body.store_slot(slot, index, val);
    }
    Ok(())
}

/// The numeric type of the results that are not [`HOLE`]. None: they are of several kinds or no numbers, or no result
/// is a hole.
fn beside_holes(body: &mut Body<'_, '_>, ty: &Ty) -> Option<Ty> {
    let [hole] = ty.modules[..] else { return None };
    let numbers = ty.filter(|atom| atom != Atom::Module(hole));
    let one_kind = numbers.only(Prims::INT) || numbers.only(Prims::FLOAT);
    (one_kind && body.an.world.class_named(HOLE) == Some(hole)).then_some(numbers)
}

/// The number to store for a result that may be a hole.
fn without_hole(body: &mut Body<'_, '_>, holes: Holes, slot: &Slot, index: Operand, val: Val) -> Val {
    let Val::Union { tag, .. } = val else { unreachable!("one that may be a hole is of several kinds") };
    let there = body.cx.b.icmp(Cmp::Ne, tag, Operand::I32(Tag::MODULE));
    match (holes, body.cast(val, Form::One(slot.repr))) {
        (Holes::Filled { int, .. }, Val::Int(x)) => {
            Val::Int(body.cx.b.select(Scalar::I64, there, x, Operand::I64(int)))
        }
        (Holes::Filled { float, .. }, Val::Float(x)) => {
            let filled = Operand::float(f64::from_bits(float));
            Val::Float(body.cx.b.select(Scalar::F64, there, x, filled))
        }
        (_, number) => {
            if let Some(marks) = body.t.schema.marks {
                body.t.columns[marks.index()].written = true;
                body.cx.b.store(marks, index, there);
            }
            number
        }
    }
}

impl Shared {
    /// Reserves the number of a function that is made later.
    pub fn reserve(&mut self) -> FuncId {
        let id = FuncId::new(self.funcs.len());
        self.funcs.push(Func {
            name: String::new(),
            params: vec![],
            results: vec![],
            vars: vec![],
            labels: 0,
            body: vec![],
            recursive: false,
            stage: None,
        });
        id
    }
}
