//! Abstract interpretation of a block, and of every method that it reaches, to a fixpoint over union types.
//!
//! Here: [`Analysis`], the worklist and its results; `walk` interprets one body, `calls` decides what a call reaches,
//! `builtins` is the table of known methods that are not numeric, `accumulate` finds captured locals that are reduced.
//! Not here: code. Lowering asks the finished analysis the same questions and gets the same answers.
//!
//! A *specialisation* is a body with the types of its `self` and arguments. Its node types only grow, so the worklist
//! ends: every type is a finite set over the classes that exist.

pub mod accumulate;
pub mod append;
pub mod blocks;
pub mod builtins;
pub mod calls;
pub mod compare;
mod library;
pub mod lifted;
mod locals;
pub mod made;
pub mod outside;
mod redefined;
pub mod structs;
mod walk;

pub use walk::{
    Raise, Raised, Shape, asking_next, assumption, catch_tag, is_text, literal, longer_form, super_locals, takes_apart,
    thrown,
};

use crate::diagnostic::{Diagnostic, Span};
use crate::error::{Error, Result};
use crate::id::{ArrayKind, ClassId, MethodId, ProcId, ScopeId, define_id};
use crate::source::Source;
use crate::syntax::ast::{LocalId, Name, NodeId, Unit};
use crate::types::{Atom, Prims, Reach, Ty};
use crate::world::{ClassInfo, Facts, MethodFact, MethodSource, Opaque, Place, Receiver, Root, World};
use accumulate::{Accumulators, Valued};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

define_id!(
    /// A specialisation.
    SpecId, "spec"
);

/// Of one method so many specialisations may have come to be by its calls of itself.
const MOST_TYPES: usize = 40;

/// So deep, arrays are looked into that a method which calls itself is given.
const MOST_NESTED: usize = 16;

/// So deep, the arrays of a method that calls itself are told apart.
const APART: usize = 2;

/// What a section does with its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SectionOp {
    /// `pmap`: the block's values are the result.
    Map,
    /// `peach`: the block runs for its effects.
    Each,
}

/// What a section runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    Array,
    /// A Range of Integers: the element is computed from its index.
    Range,
}

/// The block of a section and where it stands.
#[derive(Clone, Debug)]
pub struct BlockSource {
    pub unit: Arc<Unit>,
    pub scope: ScopeId,
}

/// How one parameter is bound, in the order required, optional, post, keywords.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Binding {
    Given(Ty),
    /// The default expression runs.
    Default,
}

fn given(args: &[Binding]) -> impl Iterator<Item = &Ty> {
    args.iter().filter_map(|arg| match arg {
        Binding::Given(ty) => Some(ty),
        Binding::Default => None,
    })
}

/// Identity of a specialisation. None: the section's block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpecKey {
    pub method: Option<MethodId>,
    pub self_ty: Ty,
    pub args: Vec<Binding>,
    /// Nobody uses what it returns; it returns nil.
    pub void: bool,
}

/// A body with its types.
#[derive(Debug)]
pub struct Spec {
    pub key: SpecKey,
    pub unit: Arc<Unit>,
    pub scope: ScopeId,
    /// `Car#move`, for people.
    pub label: String,
    /// By [`NodeId`]; `never` for what is not reached.
    pub types: Vec<Ty>,
    /// Everything that a local ever holds here, by [`LocalId`].
    pub locals: Vec<Ty>,
    pub ret: Ty,
    /// Re-run when `ret` grows.
    callers: BTreeSet<SpecId>,
    /// What it was first made for; None: the block, and what is inlined.
    caller: Option<SpecId>,
    /// Specialisations that it calls; for recursion.
    pub callees: BTreeSet<SpecId>,
    /// Nodes whose value nobody uses; their type is nil.
    pub void: BTreeSet<NodeId>,
    /// By [`NodeId`]: whether any path comes there.
    pub visited: Vec<bool>,
    /// What an operator assignment reads, by its node.
    pub op_reads: BTreeMap<NodeId, Ty>,
    /// Assignments to parts of arrays (`a[1..2] = list`) that one variable alone holds: it gets what becomes of them.
    pub parts: HashSet<Span>,
    /// What the subject of a `case` may still be at a test, by the test's node.
    pub subjects: BTreeMap<NodeId, Ty>,
    /// Why some of the calls of a [`Kind::Spread`](crate::syntax::ast::Kind::Spread) cannot be compiled, by their nodes.
    pub unspread: BTreeMap<NodeId, String>,
    /// What a bare `super` passes on, by its node and the parameter.
    pub passed_on: BTreeMap<(NodeId, LocalId), Ty>,
    /// What it is inlined into, and interpreted with. None: it is a function of its own.
    pub host: Option<SpecId>,
    /// Of a method of the library: the first call in the user's text that led here, which stands for every place in it.
    pub called_at: Option<(Arc<Unit>, Span)>,
    /// The call that it was first made for.
    made_at: Option<(Arc<Unit>, Span)>,
    /// For the code of a captured Proc: the Proc.
    pub around: Option<Root>,
    /// The finished program has it: what is specialised on the way, for types that grew since, it does without.
    pub lowered: bool,
}

impl Spec {
    fn new(source: &MethodSource, key: SpecKey, host: Option<SpecId>, valued: &Valued) -> Self {
        let MethodSource { unit, scope, label, around } = source.clone();
        Spec {
            void: accumulate::void_nodes(&unit, !key.void, valued),
            visited: vec![false; unit.nodes],
            types: vec![Ty::never(); unit.nodes],
            locals: vec![Ty::never(); unit.locals.len()],
            op_reads: BTreeMap::new(),
            parts: HashSet::new(),
            subjects: BTreeMap::new(),
            unspread: BTreeMap::new(),
            passed_on: BTreeMap::new(),
            called_at: None,
            made_at: None,
            lowered: false,
            key,
            unit,
            scope,
            label,
            around,
            ret: Ty::never(),
            callers: BTreeSet::new(),
            caller: None,
            callees: BTreeSet::new(),
            host,
        }
    }
    pub fn ty(&self, node: NodeId) -> &Ty {
        &self.types[node.index()]
    }
}

/// How a field is used by the program, by provenance of the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub read_owned: bool,
    pub read_shared: bool,
    pub written_owned: bool,
    pub written_shared: bool,
    /// `shared.x += n`, the value unused.
    pub accumulated: bool,
}

impl Access {
    /// Both uses.
    fn and(self, other: Access) -> Access {
        Access {
            read_owned: self.read_owned || other.read_owned,
            read_shared: self.read_shared || other.read_shared,
            written_owned: self.written_owned || other.written_owned,
            written_shared: self.written_shared || other.written_shared,
            accumulated: self.accumulated || other.accumulated,
        }
    }
    /// Whether all uses go through owned paths.
    pub fn is_owned(self) -> bool {
        !self.read_shared && !self.written_shared && !self.accumulated
    }
    pub fn written(self) -> bool {
        self.written_owned || self.written_shared || self.accumulated
    }
    /// Only ever accumulated through shared paths: an atomic addition keeps every contribution.
    pub fn is_atomic(self) -> bool {
        self.accumulated && !self.read_shared && !self.written_shared && !self.read_owned && !self.written_owned
    }
}

/// A write that two elements of one tick may make to one slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedWrite {
    pub spec: SpecId,
    pub path: String,
    pub line: u32,
    pub place: Place,
}

/// The finished (or growing) analysis of one section.
pub struct Analysis<'w> {
    pub world: &'w mut dyn World,
    pub facts: &'w mut Facts,
    pub op: SectionOp,
    pub base: Base,
    pub specs: Vec<Spec>,
    index: HashMap<SpecKey, SpecId>,
    queue: VecDeque<SpecId>,
    queued: BTreeSet<SpecId>,
    /// Who reads a place, to be run again when it grows.
    readers: BTreeMap<Place, BTreeSet<SpecId>>,
    /// Roots that were scanned, with what kernels cannot hold.
    roots: BTreeMap<Root, Option<Opaque>>,
    demanded: BTreeSet<Place>,
    /// Fields and elements that were scanned, and hold what kernels cannot.
    unheld: BTreeMap<Place, Opaque>,
    /// How many `rescue` clauses and `ensure`s are around the place at hand.
    clauses: usize,
    called_in_clauses: BTreeSet<SpecId>,
    /// Functions that raise what their caller may have rescued, with the error that says so.
    bare_raises: BTreeMap<SpecId, Diagnostic>,
    pub fields: BTreeMap<(ClassId, Name), Access>,
    pub arrays: BTreeMap<ArrayKind, Access>,
    /// Writes to what several elements may have, with who writes, and where.
    pub shared_writes: BTreeSet<SharedWrite>,
    methods: HashMap<(Receiver, Name), MethodFact>,
    sources: HashMap<MethodId, MethodSource>,
    /// Those of Ruby's own methods that have bodies here, by their number in the library.
    routines: Vec<library::Routine>,
    /// The call in the user's text that is being looked at.
    calling: Option<(Arc<Unit>, Span)>,
    classes: HashMap<ClassId, ClassInfo>,
    pub accumulators: Accumulators,
    made: made::Made,
    /// Blocks and lambdas, by [`ProcId`].
    procs: Vec<blocks::ProcInfo>,
    /// Those that objects and arrays hold.
    held_procs: BTreeMap<ProcId, blocks::ProcInfo>,
    proc_index: HashMap<(SpecId, Span), ProcId>,
    /// Procs and Method objects from outside.
    outside_index: HashMap<Root, ProcId>,
    /// Procs that are composed of two: the first, the second, and which of these was asked.
    composed_index: HashMap<(ProcId, ProcId, ProcId), ProcId>,
    inlinings: HashMap<blocks::Inlining, SpecId>,
    /// What kernels lack of a Range that is an object, for one way to call a method on it: told when Ruby gets there.
    lacking: HashMap<(SpecId, Span, Prims), String>,
    /// Kinds of arrays that are made to grow.
    growing: BTreeSet<ArrayKind>,
    /// Blocks that are known to be looked at.
    valued: Valued,
    /// Assignments to parts of arrays that others may hold at some time.
    shared_parts: HashSet<(String, u32, Span)>,
    /// Lambdas that call themselves.
    lifted: lifted::Lifted,
    /// More is known of them than when this began: it must begin again.
    again: bool,
    /// What the section's `break` gives.
    pub has_break: bool,
    /// Set once the fixpoint is reached: questions are answered, nothing may grow.
    frozen: bool,
    /// The section assigns class variables: each is an attribute of an object then ([`crate::syntax::ast::cell`]).
    pub assigns_class_variables: bool,
}

/// Types a section's block and everything it reaches.
///
/// # Errors
/// `Unsupported` and `Conflict`, at the first place in the block's order that kernels cannot do.
pub fn analyse<'w>(
    world: &'w mut dyn World,
    facts: &'w mut Facts,
    block: &BlockSource,
    op: SectionOp,
    base: Base,
) -> Result<Analysis<'w>> {
    let mut analysis = Analysis {
        world,
        facts,
        op,
        base,
        specs: Vec::new(),
        index: HashMap::new(),
        queue: VecDeque::new(),
        queued: BTreeSet::new(),
        readers: BTreeMap::new(),
        roots: BTreeMap::new(),
        demanded: BTreeSet::new(),
        unheld: BTreeMap::new(),
        clauses: 0,
        called_in_clauses: BTreeSet::new(),
        bare_raises: BTreeMap::new(),
        fields: BTreeMap::new(),
        arrays: BTreeMap::new(),
        shared_writes: BTreeSet::new(),
        methods: HashMap::new(),
        sources: HashMap::new(),
        routines: Vec::new(),
        calling: None,
        classes: HashMap::new(),
        accumulators: Accumulators::default(),
        made: made::Made::default(),
        procs: Vec::new(),
        held_procs: BTreeMap::new(),
        proc_index: HashMap::new(),
        outside_index: HashMap::new(),
        composed_index: HashMap::new(),
        inlinings: HashMap::new(),
        lacking: HashMap::new(),
        growing: BTreeSet::new(),
        valued: Valued::default(),
        shared_parts: HashSet::new(),
        lifted: lifted::Lifted::default(),
        again: false,
        has_break: false,
        frozen: false,
        assigns_class_variables: false,
    };
    unrefined(&block.unit.source)?;
    loop {
        analysis.start(block);
        let outcome = analysis.run();
        if !std::mem::take(&mut analysis.again) {
            outcome?;
            analysis.check_bare_raises()?;
            break;
        }
    }
    analysis.finish();
    Ok(analysis)
}

impl Analysis<'_> {
    /// The section's block.
    pub const BLOCK: SpecId = SpecId(0);

    pub fn spec(&self, id: SpecId) -> &Spec {
        &self.specs[id.index()]
    }

    /// Forgets what was found, but not what was asked of the World, and begins with the section's block.
    fn start(&mut self, block: &BlockSource) {
        self.specs.clear();
        self.index.clear();
        self.queue.clear();
        self.queued.clear();
        self.readers.clear();
        self.fields.clear();
        self.arrays.clear();
        self.shared_writes.clear();
        self.made.restart();
        self.procs.clear();
        self.held_procs.values_mut().for_each(|info| info.result = Ty::never());
        self.proc_index.clear();
        self.outside_index.clear();
        self.composed_index.clear();
        self.inlinings.clear();
        self.lifted.restart();
        self.lacking.clear();
        self.clauses = 0;
        self.called_in_clauses.clear();
        self.bare_raises.clear();
        self.has_break = false;
        self.accumulators = accumulate::find(&block.unit, self.op, &self.valued);
        let void = self.op == SectionOp::Each;
        let key = SpecKey { method: None, self_ty: Ty::never(), args: Vec::new(), void };
        let source = MethodSource { unit: block.unit.clone(), scope: block.scope, label: "block".into(), around: None };
        self.add_spec(key, &source);
    }

    fn add_spec(&mut self, key: SpecKey, source: &MethodSource) -> SpecId {
        let id = SpecId::new(self.specs.len());
        self.index.insert(key.clone(), id);
        self.specs.push(Spec::new(source, key, None, &self.valued));
        self.enqueue(id);
        id
    }

    fn enqueue(&mut self, id: SpecId) {
        let id = self.host(id);
        if self.queued.insert(id) {
            self.queue.push_back(id);
        }
    }

    fn run(&mut self) -> Result<()> {
        loop {
            while let Some(id) = self.queue.pop_front() {
                self.queued.remove(&id);
                walk::interpret(self, id).map_err(|error| self.called_from(error, id))?;
                self.wake_readers();
            }
            self.demand_merged()?;
            self.register_boxes()?;
            self.wake_readers();
            if self.queue.is_empty() {
                return Ok(());
            }
        }
    }

    /// Adds the calls that lead to a specialisation to what is wrong in it.
    fn called_from(&self, mut error: Error, mut id: SpecId) -> Error {
        for _ in 0..self.specs.len() {
            let spec = self.spec(id);
            let (Some(caller), Some((unit, span))) = (spec.caller, &spec.made_at) else { break };
            error = error.called_from(&unit.source, *span, &spec.label);
            id = caller;
        }
        error
    }

    /// Of two kinds of arrays that became one, what was asked of either is asked of all: arrays that are there share a column
    /// with those that are made, though nobody reads their elements.
    fn demand_merged(&mut self) -> Result<()> {
        let merges = self.facts.take_merges();
        let asked = |kind: ArrayKind| self.demanded.contains(&Place::Elements(kind));
        let kinds: BTreeSet<ArrayKind> = merges
            .into_iter()
            .filter(|(gone, keep)| asked(*gone) || asked(*keep))
            .map(|(_, keep)| self.facts.find(keep))
            .collect();
        for kind in kinds {
            self.demanded.insert(Place::Elements(kind));
            if let Err(opaque) = self.world.scan_array(kind, self.facts) {
                let source = &self.specs[0].unit.source;
                return Err(calls::Refusal::from(opaque).at(source, source.params_span()));
            }
        }
        Ok(())
    }

    /// Runs the readers of a place again although its type did not grow: it is written from now on.
    fn wake(&mut self, place: &Place) {
        for id in self.readers.get(place).cloned().unwrap_or_default() {
            self.enqueue(id);
        }
    }

    fn wake_readers(&mut self) {
        for place in self.facts.take_changes() {
            // a merge of kinds concerns whoever reads either
            let ids: Vec<SpecId> = self.readers.get(&place).into_iter().flatten().copied().collect();
            for id in ids {
                self.enqueue(id);
            }
        }
    }

    /// Writes the surviving array kinds into every stored type, and freezes.
    fn finish(&mut self) {
        let facts = &*self.facts;
        for spec in &mut self.specs {
            let maps = spec.op_reads.values_mut().chain(spec.subjects.values_mut()).chain(spec.passed_on.values_mut());
            let vectors = spec.types.iter_mut().chain(&mut spec.locals).chain([&mut spec.ret, &mut spec.key.self_ty]);
            for ty in vectors.chain(maps) {
                *ty = facts.resolve(ty);
            }
            for arg in &mut spec.key.args {
                if let Binding::Given(ty) = arg {
                    *ty = facts.resolve(ty);
                }
            }
        }
        self.index.clear();
        for (i, spec) in self.specs.iter().enumerate().filter(|(_, s)| s.host.is_none()) {
            // of two that became one by a merge the later one saw the merged type
            self.index.insert(spec.key.clone(), SpecId::new(i));
        }
        for proc in self.procs.iter_mut().chain(self.held_procs.values_mut()) {
            proc.result = self.facts.resolve(&proc.result);
        }
        self.lifted.resolve(&self.facts);
        // as above, the later one
        let mut inlinings: Vec<_> = std::mem::take(&mut self.inlinings).into_iter().collect();
        inlinings.sort_by_key(|(_, id)| *id);
        for (mut at, id) in inlinings {
            at.self_ty = self.facts.resolve(&at.self_ty);
            self.inlinings.insert(at, id);
        }
        let arrays = std::mem::take(&mut self.arrays);
        for (kind, access) in arrays {
            let all = self.arrays.entry(self.facts.find(kind)).or_default();
            *all = all.and(access);
        }
        for ty in self.accumulators.types.values_mut() {
            *ty = self.facts.resolve(ty);
        }
        self.follow_escapes();
        self.frozen = true;
    }

    /// The specialisation of a method for these types, found or made; `from` is run again when its result grows.
    ///
    /// # Errors
    /// When the method's source cannot be had.
    pub fn specialise(&mut self, from: SpecId, key: SpecKey) -> Result<SpecId> {
        let id = match self.index.get(&key) {
            Some(id) => *id,
            None if self.frozen => {
                return Err(Error::Internal { stage: "infer", detail: format!("{key:?} was not met before lowering") });
            }
            None => {
                let method = key
                    .method
                    .ok_or_else(|| Error::Internal { stage: "infer", detail: "a call of the block".into() })?;
                let source = self.source(method)?;
                let id = self.add_spec(key, &source);
                self.specs[id.index()].caller = Some(self.host(from));
                self.specs[id.index()].made_at = self.calling.clone();
                self.note_call(id);
                id
            }
        };
        let from = self.host(from);
        self.specs[id.index()].callers.insert(from);
        self.specs[from.index()].callees.insert(id);
        if self.clauses > 0 {
            self.called_in_clauses.insert(id);
        }
        Ok(id)
    }

    /// Refuses `raise` without arguments where a `rescue` clause calls the method that it is in: it would raise what
    /// that clause rescued.
    fn check_bare_raises(&mut self) -> Result<()> {
        let (mut seen, mut open) = (BTreeSet::new(), Vec::from_iter(self.called_in_clauses.iter().copied()));
        while let Some(id) = open.pop() {
            if let Some(error) = self.bare_raises.remove(&id) {
                return Err(error.into());
            }
            if seen.insert(id) {
                open.extend(&self.spec(id).callees);
            }
        }
        Ok(())
    }

    /// A method that calls itself with arrays that it makes, as one that divides and conquers does, would be specialised for those of each depth, and in each of these twice or more: from
    /// some depth on its arrays are of the kind of those far above, where these have the same elements. So types reach a fixpoint.
    fn rejoined(&mut self, from: SpecId, key: SpecKey) -> SpecKey {
        if self.index.contains_key(&key) || key.method.is_none_or(crate::prelude::contains) {
            return key;
        }
        let alike = self.callers(from, &key).filter(|id| self.differs_in_kinds(&self.specs[id.index()].key, &key));
        let alike: Vec<SpecId> = alike.collect();
        let Some(first) = alike.last().filter(|_| alike.len() >= APART) else { return key };
        let SpecKey { self_ty, args, .. } = self.specs[first.index()].key.clone();
        for (old, new) in std::iter::once((&self_ty, &key.self_ty)).chain(given(&args).zip(given(&key.args))) {
            if let (Some(old), Some(new)) = (old.array, new.array) {
                self.facts.merge(old, new);
            }
        }
        let args = key.args.iter().map(|arg| match arg {
            Binding::Given(ty) => Binding::Given(self.facts.resolve(ty)),
            Binding::Default => Binding::Default,
        });
        SpecKey { self_ty: self.facts.resolve(&key.self_ty), args: args.collect(), ..key }
    }

    /// Specialisations of a method by which it comes to call itself, the last first.
    fn callers(&self, from: SpecId, key: &SpecKey) -> impl Iterator<Item = SpecId> {
        let all = std::iter::successors(Some(self.host(from)), |id| self.specs[id.index()].caller);
        all.filter(|id| self.specs[id.index()].key.method == key.method)
    }

    /// Whether two have the same types, but for which kinds of arrays of the same elements these are.
    fn differs_in_kinds(&self, a: &SpecKey, b: &SpecKey) -> bool {
        let alike = |(a, b): (&Ty, &Ty)| match (a.array, b.array) {
            (Some(x), Some(y)) => Ty { array: a.array, ..b.clone() } == *a && self.are_alike(x, y),
            _ => a == b,
        };
        a.void == b.void
            && a.args.len() == b.args.len()
            && given(&a.args).count() == given(&b.args).count()
            && std::iter::once((&a.self_ty, &b.self_ty)).chain(given(&a.args).zip(given(&b.args))).all(alike)
    }

    /// Whether arrays of two kinds nest equally deep, as far as is known: their elements are arrays of kinds that are alike,
    /// or both have none among them.
    fn are_alike(&self, one: ArrayKind, other: ArrayKind) -> bool {
        let elements = |kind| self.facts.get(&Place::Elements(kind)).unwrap_or_default().array;
        let (mut one, mut other) = (Some(one), Some(other));
        for _ in 0..MOST_NESTED {
            match (one, other) {
                (None, None) => return true,
                (Some(x), Some(y)) => {
                    let (x, y) = (self.facts.find(x), self.facts.find(y));
                    if x == y {
                        return true;
                    }
                    (one, other) = (elements(x), elements(y));
                }
                _ => return false,
            }
        }
        false
    }

    /// Whether a method that is to be specialised anew calls itself, directly or not, with types that it never met, over and over: `grow([x])` in `grow(x)`.
    fn has_no_end(&self, from: SpecId, key: &SpecKey) -> bool {
        if self.index.contains_key(key) {
            return false;
        }
        match self.callers(from, key).count() {
            0 => false,
            MOST_TYPES.. => true,
            // where it calls itself twice, they are soon more than anybody could wait for
            _ => self.specs.iter().filter(|spec| spec.key.method == key.method).count() >= MOST_TYPES * 10,
        }
    }

    /// # Errors
    /// When the method's source cannot be had.
    pub fn source(&mut self, method: MethodId) -> Result<MethodSource> {
        if let Some(source) = self.sources.get(&method) {
            return Ok(source.clone());
        }
        if let Some(source) = crate::prelude::source(method) {
            self.sources.insert(method, source.clone());
            return Ok(source);
        }
        let source = self.world.source(method)?;
        unrefined(&source.unit.source)?;
        self.sources.insert(method, source.clone());
        Ok(source)
    }

    pub fn method(&mut self, receiver: Receiver, name: &str) -> MethodFact {
        let key = (receiver, Name::from(name));
        if let Some(fact) = self.methods.get(&key) {
            return fact.clone();
        }
        let fact = self.world.method(receiver, name);
        self.methods.insert(key, fact.clone());
        fact
    }

    pub fn class(&mut self, class: ClassId) -> ClassInfo {
        if let Some(info) = self.classes.get(&class) {
            return info.clone();
        }
        let info = self.world.class(class);
        self.classes.insert(class, info.clone());
        info
    }

    /// The type of a place, scanned at its first use; `reader` runs again when it grows.
    fn place(&mut self, reader: SpecId, place: &Place) -> std::result::Result<Ty, Opaque> {
        let place = match place {
            Place::Elements(kind) => Place::Elements(self.facts.find(*kind)),
            other => other.clone(),
        };
        if !self.frozen {
            self.readers.entry(place.clone()).or_default().insert(reader);
            if self.demanded.insert(place.clone()) {
                match &place {
                    Place::Root(root) => {
                        let answer = self.world.scan_root(root, self.facts);
                        self.roots.insert(root.clone(), answer.err());
                    }
                    Place::Field(class, ivar) => match self.world.scan_field(*class, ivar, self.facts) {
                        Ok(()) => {
                            self.starts_as_nil(*class, ivar);
                            self.touch_copied(*class, ivar);
                        }
                        Err(opaque) => _ = self.unheld.insert(place.clone(), opaque),
                    },
                    Place::Elements(kind) => {
                        if let Err(opaque) = self.world.scan_array(*kind, self.facts) {
                            self.unheld.insert(place.clone(), opaque);
                        }
                    }
                }
            }
        }
        if let Some(opaque) = self.unheld_at(&place) {
            return Err(opaque);
        }
        if let Place::Root(root) = &place
            && let Some(Some(opaque)) = self.roots.get(root)
        {
            return Err(opaque.clone());
        }
        let ty = self.facts.get(&place).unwrap_or_default();
        for id in &ty.procs {
            self.meet_held_proc(*id)?;
        }
        Ok(ty)
    }

    /// What a field or an element holds that kernels cannot; also where kinds of arrays became one since.
    fn unheld_at(&self, place: &Place) -> Option<Opaque> {
        let same = |at: &Place| match (at, place) {
            (Place::Elements(a), Place::Elements(b)) => self.facts.find(*a) == self.facts.find(*b),
            (a, b) => a == b,
        };
        self.unheld.iter().find(|(at, _)| same(at)).map(|(_, opaque)| opaque.clone())
    }

    /// Whether a refusal may wait until Ruby gets there. Not where an object or an array holds what kernels cannot:
    /// packing would find that at each call.
    pub fn may_wait(&self) -> bool {
        self.unheld.is_empty()
    }

    /// # Errors
    /// When the value is none that kernels can hold.
    pub fn root(&mut self, reader: SpecId, root: &Root) -> std::result::Result<Ty, Opaque> {
        let ty = match self.place(reader, &Place::Root(root.clone())) {
            Ok(ty) => ty,
            Err(opaque) => return self.outside(root).ok_or(opaque),
        };
        Ok(ty.reached(if *root == Root::Element { Reach::Owned } else { Reach::Same }))
    }

    /// The type of an ivar of one class.
    ///
    /// # Errors
    /// When some object has a value there that kernels cannot hold.
    pub fn field(
        &mut self,
        reader: SpecId,
        class: ClassId,
        ivar: &Name,
        reach: Reach,
    ) -> std::result::Result<Ty, Opaque> {
        let place = Place::Field(class, ivar.clone());
        let ty = self.place(reader, &place)?;
        // references that the section itself writes may come to be shared
        let written = self.fields.get(&(class, ivar.clone())).is_some_and(|a| a.written());
        Ok(ty.reached(match reach {
            _ if self.facts.may_hold_fresh(&place) => Reach::Mixed,
            Reach::Owned if !written && self.facts.is_owned(&place) => {
                self.facts.rely_on_owned(&place);
                Reach::Owned
            }
            Reach::Same if !written => Reach::Same,
            _ => Reach::Any,
        }))
    }

    /// The type of the elements of a kind of array, without the nil of an index out of range.
    ///
    /// # Errors
    /// When some array holds a value that kernels cannot.
    pub fn elements(&mut self, reader: SpecId, kind: ArrayKind, reach: Reach) -> std::result::Result<Ty, Opaque> {
        let place = Place::Elements(kind);
        let ty = self.place(reader, &place)?;
        let written = self.arrays.get(&self.facts.find(kind)).is_some_and(|a| a.written());
        // which element of a common array it is differs from element to element
        let owned = reach == Reach::Owned && !written && self.facts.is_owned(&place);
        let fresh = self.facts.may_hold_fresh(&place);
        Ok(ty.reached(if fresh {
            Reach::Mixed
        } else if owned {
            self.facts.rely_on_owned(&place);
            Reach::Owned
        } else {
            Reach::Any
        }))
    }

    /// Whether values of the kind may answer so when asked whether they are instances of a class or module.
    pub fn may_answer(&mut self, atom: Atom, module: ClassId, answer: bool) -> bool {
        // of which class an exception is only its site says
        atom == Atom::Exception || self.atom_is_a(atom, module) == answer
    }

    /// Whether instances of the kind are instances of a class or module.
    pub fn atom_is_a(&mut self, atom: Atom, module: ClassId) -> bool {
        match atom {
            Atom::Module(object) => self.world.module_is_a(object, module),
            other => {
                let class = calls::class_of(other);
                class == module || self.world.is_a(class, module)
            }
        }
    }

    /// All roots that the program reads, in a fixed order.
    pub fn read_roots(&self) -> Vec<Root> {
        self.roots.iter().filter(|(_, opaque)| opaque.is_none()).map(|(root, _)| root.clone()).collect()
    }

    /// Specialisations that may call themselves, directly or not.
    pub fn recursive(&self) -> BTreeSet<SpecId> {
        // several became one where merges made their types the same
        let now = |id: SpecId| self.index.get(&self.spec(id).key).copied().unwrap_or(id);
        let mut calls: BTreeMap<SpecId, BTreeSet<SpecId>> = BTreeMap::new();
        for id in (0..self.specs.len()).map(SpecId::new) {
            calls.entry(now(id)).or_default().extend(self.spec(id).callees.iter().map(|callee| now(*callee)));
        }
        let mut found = BTreeSet::new();
        for start in calls.keys() {
            let (mut seen, mut open) = (BTreeSet::new(), vec![*start]);
            while let Some(id) = open.pop() {
                for callee in calls.get(&id).into_iter().flatten() {
                    if callee == start {
                        found.insert(*start);
                    }
                    if seen.insert(*callee) {
                        open.push(*callee);
                    }
                }
            }
        }
        found
    }

    /// Why a method of a Range that is an object cannot be called on it as one in registers.
    pub fn lacks(&self, spec: SpecId, span: Span, range: Prims) -> Option<&String> {
        self.lacking.get(&(spec, span, range))
    }

    /// The storage type of a local of a specialisation.
    pub fn local(&self, spec: SpecId, local: LocalId) -> &Ty {
        &self.spec(spec).locals[local.index()]
    }
}

/// Refuses a text in which refinements may be in force.
fn unrefined(source: &Arc<Source>) -> Result<()> {
    if !source.refined {
        return Ok(());
    }
    let start = source.slice.start;
    Err(unsupported(
        source,
        Span::new(start, start + 1),
        "kernels do not know refinements, and some are in force here that may change this",
    )
    .because("they have methods of names that are called here, or that Ruby calls by itself (to_s, each, ===)")
    .advise("keep what runs in kernels in a file without using, or before it")
    .into())
}

/// An `Unsupported` error at a place.
pub(crate) fn unsupported(source: &Arc<Source>, span: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(source, span, message)
}
