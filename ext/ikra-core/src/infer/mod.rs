//! Abstract interpretation of a block, and of every method that it reaches, to a fixpoint over union types.
//!
//! Here: [`Analysis`], the worklist and its results. `walk` interprets one body, `calls` decides what a call reaches,
//! `builtins` is the table of known methods that are not numeric, and `accumulate` finds captured locals that are
//! reduced. Not here: code. Lowering asks the finished analysis the same questions and gets the same answers.
//!
//! A *specialisation* is a body with the types of its `self` and arguments. Its node types only grow, so the worklist
//! ends: every type is a finite set over the classes that exist.

pub mod accumulate;
pub mod append;
pub mod blocks;
pub mod bound_procs;
pub mod builtins;
pub mod calls;
pub mod compare;
pub mod hash_updates;
pub mod keys;
mod library;
pub mod lifted;
mod locals;
pub mod made;
pub mod outside;
mod redefined;
pub mod regexps;
pub mod structs;
mod walk;

pub use walk::{
    Raise, Raised, Shape, asking_next, assumption, catch_tag, is_text, literal, longer_form, super_locals, takes_apart,
    thrown,
};

use crate::diagnostic::{Diagnostic, Span};
use crate::error::{Error, Result};
use crate::id::{ArrayKind, ClassId, MethodId, ProcId, ScopeId, define_id};
use crate::regexp::Regexp;
use crate::source::Source;
use crate::syntax::ast::{LocalId, Name, NodeId, Unit};
use crate::types::{Atom, Prims, Reach, Ty};
use crate::world::{
    ClassInfo, Facts, MethodFact, MethodSource, Opaque, Place, Receiver, Root, World, hashes, well_known,
};
use accumulate::{Accumulators, Valued};
use hash_updates::HashUpdates;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

define_id!(
    /// A specialisation.
    SpecId, "spec"
);

/// The most specialisations of one method that its calls of itself may lead to.
const MAX_RECURSIVE_SPECIALISATIONS: usize = 40;

/// The greatest depth to which nested arrays are compared, when a method calls itself with them.
const MAX_COMPARED_DEPTH: usize = 16;

/// The depth of recursion up to which a method's arrays have kinds of their own.
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

/// The identity of a specialisation. No method: the section's block.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpecKey {
    pub method: Option<MethodId>,
    pub self_ty: Ty,
    pub args: Vec<Binding>,
    /// The call's value is not used, so it returns nil.
    pub void: bool,
}

/// A body with its types.
#[derive(Debug)]
pub struct Spec {
    pub key: SpecKey,
    pub unit: Arc<Unit>,
    pub scope: ScopeId,
    /// `Car#move`, for messages.
    pub label: String,
    /// By [`NodeId`]; `never` for nodes that are not reached.
    pub types: Vec<Ty>,
    /// By [`LocalId`]: the join of all values that a local ever holds here.
    pub locals: Vec<Ty>,
    pub ret: Ty,
    /// Specialisations that run again when `ret` grows.
    callers: BTreeSet<SpecId>,
    /// The specialisation that it was first made for. None: the block, and inlined bodies.
    caller: Option<SpecId>,
    /// Specialisations that it calls; they tell what is recursive.
    pub callees: BTreeSet<SpecId>,
    /// Nodes whose value is not used; their type is nil.
    pub void: BTreeSet<NodeId>,
    /// By [`NodeId`]: whether any path reaches the node.
    pub visited: Vec<bool>,
    /// The type that an operator assignment reads, by its node.
    pub op_reads: BTreeMap<NodeId, Ty>,
    /// Assignments to parts of arrays (`a[1..2] = list`) that only one variable holds. The variable gets the array that
    /// results.
    pub parts: HashSet<Span>,
    /// The types that the subject of a `case` may still have at a test, by the test's node.
    pub subjects: BTreeMap<NodeId, Ty>,
    /// The reasons why some calls of a [`Kind::Spread`](crate::syntax::ast::Kind::Spread) cannot be compiled, by their
    /// nodes.
    pub unspread: BTreeMap<NodeId, String>,
    /// The types that a bare `super` passes on, by its node and the parameter.
    pub passed_on: BTreeMap<(NodeId, LocalId), Ty>,
    /// The specialisation into which it is inlined, and with which it is interpreted. None: it is a function of its
    /// own.
    pub host: Option<SpecId>,
    /// For a method of the library: the first call in the user's text that led here. Messages about any place in the
    /// method name this call.
    pub called_at: Option<(Arc<Unit>, Span)>,
    /// The call that it was first made for.
    made_at: Option<(Arc<Unit>, Span)>,
    /// For the code of a captured Proc: the root that holds the Proc.
    pub around: Option<Root>,
    /// Whether the finished program contains it. Specialisations for types that grew later are not lowered.
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

/// How the program uses a field, separately for objects of one element and for shared ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub read_owned: bool,
    pub read_shared: bool,
    pub written_owned: bool,
    pub written_shared: bool,
    /// `shared.x += n`, where the value is not used.
    pub accumulated: bool,
}

impl Access {
    /// The union of both uses.
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
    /// Whether its only uses are accumulations through shared paths: an atomic addition keeps every contribution.
    pub fn is_atomic(self) -> bool {
        self.accumulated && !self.read_shared && !self.written_shared && !self.read_owned && !self.written_owned
    }
    /// Whether an element may reach in a tick what another one wrote in the tick before.
    pub fn keeps_ticks_apart(&self) -> bool {
        self.written() && !self.is_owned() && !self.is_atomic()
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

/// The analysis of one section, finished or still growing.
pub struct Analysis<'w> {
    pub world: &'w mut dyn World,
    pub facts: &'w mut Facts,
    pub op: SectionOp,
    pub base: Base,
    pub specs: Vec<Spec>,
    index: HashMap<SpecKey, SpecId>,
    queue: VecDeque<SpecId>,
    queued: BTreeSet<SpecId>,
    /// By place: the specialisations that read it, which run again when it grows.
    readers: BTreeMap<Place, BTreeSet<SpecId>>,
    /// Roots that were scanned, with the value that kernels cannot hold, if there is one.
    roots: BTreeMap<Root, Option<Opaque>>,
    demanded: BTreeSet<Place>,
    /// Fields and elements that were scanned and contain values that kernels cannot hold.
    unheld: BTreeMap<Place, Opaque>,
    /// The number of `rescue` clauses and `ensure`s around the current node.
    clauses: usize,
    called_in_clauses: BTreeSet<SpecId>,
    /// Functions with a bare `raise`, which may raise what their caller has rescued, with the error for that case.
    bare_raises: BTreeMap<SpecId, Diagnostic>,
    /// Whether the program asks an exception for its message. Kernels then make messages with interpolation.
    asks_messages: bool,
    pub fields: BTreeMap<(ClassId, Name), Access>,
    pub arrays: BTreeMap<ArrayKind, Access>,
    /// Writes to slots that several elements may share, with their specialisations and positions.
    pub shared_writes: BTreeSet<SharedWrite>,
    methods: HashMap<(Receiver, Name), MethodFact>,
    sources: HashMap<MethodId, MethodSource>,
    /// Ruby's own methods that have bodies in the library, by their number there.
    routines: Vec<library::Routine>,
    /// The call in the user's text that is being interpreted.
    calling: Option<(Arc<Unit>, Span)>,
    classes: HashMap<ClassId, ClassInfo>,
    pub accumulators: Accumulators,
    /// Captured Hashes into which the block accumulates.
    pub hash_updates: HashUpdates,
    made: made::Made,
    /// Blocks and lambdas, by [`ProcId`].
    procs: Vec<blocks::ProcInfo>,
    /// Procs that objects and arrays hold.
    held_procs: BTreeMap<ProcId, blocks::ProcInfo>,
    regexps: Vec<(Arc<Regexp>, blocks::ProcInfo)>,
    proc_index: HashMap<(SpecId, Span), ProcId>,
    /// Procs and Method objects from outside.
    outside_index: HashMap<Root, ProcId>,
    /// Procs composed of two: by the first, the second, and the one that is the receiver.
    composed_index: HashMap<(ProcId, ProcId, ProcId), ProcId>,
    /// Procs made of another Proc, or of a receiver.
    derived: HashMap<bound_procs::Derived, ProcId>,
    /// The numbers of captured Procs that become elements of arrays. They are kept when analysis begins again.
    numbers: HashMap<Root, Option<u32>>,
    inlinings: HashMap<blocks::Inlining, SpecId>,
    /// For a method that is called on a Range object as on a Range in registers: why kernels cannot do that. The error
    /// is raised at run time.
    lacking: HashMap<(SpecId, Span, Prims), String>,
    /// Kinds of arrays that have room to grow.
    growing: BTreeSet<ArrayKind>,
    /// Classes of made Hashes to whose lists the section appends.
    growing_hashes: BTreeSet<ClassId>,
    /// Literal blocks whose value is known to be used.
    valued: Valued,
    /// Assignments to parts of arrays that more than one reference may hold.
    shared_parts: HashSet<(String, u32, Span)>,
    /// Lambdas that call themselves.
    lifted: lifted::Lifted,
    /// The analysis has found something that its earlier steps did not know, and must begin again.
    again: bool,
    /// Whether the section contains a `break`.
    pub has_break: bool,
    /// Specialisations that read elements of arrays of which no element was known yet.
    waiting: BTreeSet<SpecId>,
    /// Set once these know all elements that there are. Where there are none, an element is nil from then on.
    settled: bool,
    /// Set once the fixpoint is reached. From then on questions are answered, and nothing may grow.
    frozen: bool,
    /// Whether the section assigns class variables. Each is then an attribute of an object
    /// ([`crate::syntax::ast::cell`]).
    pub assigns_class_variables: bool,
    /// Comparisons remember which arrays and Structs they are comparing.
    remembers: bool,
}

/// Types a section's block and everything that it reaches.
///
/// # Errors
/// `Unsupported` and `Conflict`, at the first place in the block's order that kernels cannot do.
pub fn analyse<'w>(
    world: &'w mut dyn World,
    facts: &'w mut Facts,
    block: &BlockSource,
    op: SectionOp,
    base: Base,
    pairs: hash_updates::Pairs,
) -> Result<Analysis<'w>> {
    let (block, hash_updates) = hash_updates::rewrite(block, op, pairs, world)?;
    let block = &block;
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
        asks_messages: false,
        fields: BTreeMap::new(),
        arrays: BTreeMap::new(),
        shared_writes: BTreeSet::new(),
        methods: HashMap::new(),
        sources: HashMap::new(),
        routines: Vec::new(),
        calling: None,
        classes: HashMap::new(),
        accumulators: Accumulators::default(),
        hash_updates,
        made: made::Made::default(),
        procs: Vec::new(),
        held_procs: BTreeMap::new(),
        regexps: Vec::new(),
        proc_index: HashMap::new(),
        outside_index: HashMap::new(),
        composed_index: HashMap::new(),
        derived: HashMap::new(),
        numbers: HashMap::new(),
        inlinings: HashMap::new(),
        lacking: HashMap::new(),
        growing: BTreeSet::new(),
        growing_hashes: BTreeSet::new(),
        valued: Valued::default(),
        shared_parts: HashSet::new(),
        lifted: lifted::Lifted::default(),
        again: false,
        has_break: false,
        waiting: BTreeSet::new(),
        settled: false,
        frozen: false,
        assigns_class_variables: false,
        remembers: false,
    };
    unrefined(&block.unit.source)?;
    loop {
        analysis.start(block);
        let outcome = analysis.run();
        if !std::mem::take(&mut analysis.again) {
            outcome?;
            if analysis.must_remember() {
                continue;
            }
            analysis.check_bare_raises()?;
            break;
        }
    }
    analysis.finish();
    analysis.check_hash_blocks()?;
    Ok(analysis)
}

impl Analysis<'_> {
    /// The section's block.
    pub const BLOCK: SpecId = SpecId(0);

    pub fn spec(&self, id: SpecId) -> &Spec {
        &self.specs[id.index()]
    }

    /// Forgets its results, but not the demands to the World, and begins with the section's block.
    fn start(&mut self, block: &BlockSource) {
        self.specs.clear();
        self.index.clear();
        self.queue.clear();
        self.queued.clear();
        self.waiting.clear();
        self.settled = false;
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
        self.derived.clear();
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

    /// In two steps, as types only grow: an element of an array that has none so far is nothing in the first, and nil
    /// in the second. Otherwise nil would stay in the types of arrays whose elements are found later.
    fn run(&mut self) -> Result<()> {
        loop {
            while let Some(id) = self.queue.pop_front() {
                self.queued.remove(&id);
                let answer = walk::interpret(self, id);
                self.wake_readers();
                match answer {
                    // A type that it read has grown meanwhile. So the refusal may be of a kind of value that is one of
                    // several there, and the next run tells.
                    Err(Error::Unsupported(_)) if self.queued.contains(&self.host(id)) => {}
                    answer => answer.map_err(|error| self.called_from(error, id))?,
                }
            }
            self.demand_merged()?;
            self.register_boxes()?;
            self.wake_readers();
            if self.queue.is_empty() {
                self.settled = true;
                std::mem::take(&mut self.waiting).into_iter().for_each(|id| self.enqueue(id));
            }
            if self.queue.is_empty() {
                return Ok(());
            }
        }
    }

    /// Notes that the program asks an exception for its message, and interprets all bodies again: they may raise some.
    pub(crate) fn ask_messages(&mut self) {
        if !std::mem::replace(&mut self.asks_messages, true) {
            (0..self.specs.len()).for_each(|id| self.enqueue(SpecId::new(id)));
        }
    }

    /// Adds the calls that lead to a specialisation to an error in it.
    fn called_from(&self, mut error: Error, mut id: SpecId) -> Error {
        for _ in 0..self.specs.len() {
            let spec = self.spec(id);
            let (Some(caller), Some((unit, span))) = (spec.caller, &spec.made_at) else { break };
            error = error.called_from(&unit.source, *span, &spec.label);
            id = caller;
        }
        error
    }

    /// If one of two merged kinds was demanded, the merged kind is demanded. Existing arrays of the other kind then
    /// share a column with it, even if no code reads their elements.
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

    /// Runs the readers of a place again although its type did not grow, because the section now writes it.
    fn wake(&mut self, place: &Place) {
        for id in self.readers.get(place).cloned().unwrap_or_default() {
            self.enqueue(id);
        }
    }

    fn wake_readers(&mut self) {
        for place in self.facts.take_changes() {
            // a merge of kinds affects the readers of both kinds
            let ids: Vec<SpecId> = self.readers.get(&place).into_iter().flatten().copied().collect();
            for id in ids {
                self.enqueue(id);
            }
        }
    }

    /// Replaces merged array kinds in every stored type, and freezes the analysis.
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
            // if two have become equal by a merge, the later one has seen the merged type
            self.index.insert(spec.key.clone(), SpecId::new(i));
        }
        for proc in self.procs.iter_mut().chain(self.held_procs.values_mut()) {
            proc.result = self.facts.resolve(&proc.result);
            proc.kept.iter_mut().for_each(|ty| *ty = self.facts.resolve(ty));
        }
        self.lifted.resolve(self.facts);
        // as above, the later one wins
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

    /// The specialisation of a method for these types, found or made. `from` runs again when its result grows.
    ///
    /// # Errors
    /// If the method's source is not available.
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

    /// Refuses a bare `raise` in a method that a `rescue` clause calls: it would raise what that clause has rescued.
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

    /// Merges the kinds of arrays of a recursive method from some depth on. A method that divides and conquers calls
    /// itself twice or more with arrays that it makes. It would be specialised anew for the arrays of each depth. So,
    /// from some depth on, its arrays get the kind of those far above, if their elements have the same types. Then
    /// types reach a fixpoint.
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

    /// The active specialisations of a method through which it calls itself, the last first.
    fn callers(&self, from: SpecId, key: &SpecKey) -> impl Iterator<Item = SpecId> {
        let all = std::iter::successors(Some(self.host(from)), |id| self.specs[id.index()].caller);
        all.filter(|id| self.specs[id.index()].key.method == key.method)
    }

    /// Whether two have the same types, except for the kinds of arrays, whose elements are alike.
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

    /// Whether arrays of two kinds nest equally deep, as far as is known: their elements are arrays of alike kinds, or
    /// neither kind contains arrays.
    fn are_alike(&self, one: ArrayKind, other: ArrayKind) -> bool {
        let elements = |kind| self.facts.get(&Place::Elements(kind)).unwrap_or_default().array;
        let (mut one, mut other) = (Some(one), Some(other));
        for _ in 0..MAX_COMPARED_DEPTH {
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

    /// Whether a method calls itself, directly or not, with new types over and over: `grow([x])` in `grow(x)`.
    fn has_no_end(&self, from: SpecId, key: &SpecKey) -> bool {
        if self.index.contains_key(key) {
            return false;
        }
        match self.callers(from, key).count() {
            0 => false,
            MAX_RECURSIVE_SPECIALISATIONS.. => true,
            // a method that calls itself twice would soon have too many specialisations
            _ => {
                self.specs.iter().filter(|spec| spec.key.method == key.method).count()
                    >= MAX_RECURSIVE_SPECIALISATIONS * 10
            }
        }
    }

    /// # Errors
    /// If the method's source is not available.
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
        let mut info = self.world.class(class);
        if well_known::is_made_hash(class) {
            info.superclass = Some(well_known::HASH);
        }
        self.classes.insert(class, info.clone());
        info
    }

    /// The type of a place, which is scanned at its first use; `reader` runs again when it grows.
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

    /// A value at a place that kernels cannot hold, also if kinds of arrays were merged since it was found.
    fn unheld_at(&self, place: &Place) -> Option<Opaque> {
        let same = |at: &Place| match (at, place) {
            (Place::Elements(a), Place::Elements(b)) => self.facts.find(*a) == self.facts.find(*b),
            (a, b) => a == b,
        };
        self.unheld.iter().find(|(at, _)| same(at)).map(|(_, opaque)| opaque.clone())
    }

    /// Whether a refusal may become an error at run time. Not if an object or an array contains a value that kernels
    /// cannot hold: packing would find that at each call.
    pub fn may_wait(&self) -> bool {
        self.unheld.is_empty()
    }

    /// # Errors
    /// If kernels cannot hold the value.
    pub fn root(&mut self, reader: SpecId, root: &Root) -> std::result::Result<Ty, Opaque> {
        let ty = match self.place(reader, &Place::Root(root.clone())) {
            Ok(ty) => ty,
            Err(opaque) => return self.regexp_at(root, &opaque).unwrap_or_else(|| self.outside(root).ok_or(opaque)),
        };
        Ok(ty.reached(if *root == Root::Element { Reach::Owned } else { Reach::Same }))
    }

    /// The type of an ivar of one class.
    ///
    /// # Errors
    /// If some object has a value there that kernels cannot hold.
    pub fn field(
        &mut self,
        reader: SpecId,
        class: ClassId,
        ivar: &Name,
        reach: Reach,
    ) -> std::result::Result<Ty, Opaque> {
        let place = Place::Field(class, ivar.clone());
        let ty = self.place(reader, &place)?;
        // references that the section itself writes may become shared
        let written = self.fields.get(&(class, ivar.clone())).is_some_and(|a| a.written());
        Ok(ty.reached(match reach {
            // what a Hash has its parts in belongs to it alone
            Reach::Fresh if well_known::is_made_hash(class) && hashes::is_list(ivar) => Reach::Fresh,
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
    /// If some array holds a value that kernels cannot hold.
    pub fn elements(&mut self, reader: SpecId, kind: ArrayKind, reach: Reach) -> std::result::Result<Ty, Opaque> {
        let place = Place::Elements(kind);
        let ty = self.place(reader, &place)?;
        let written = self.arrays.get(&self.facts.find(kind)).is_some_and(|a| a.written());
        // elements of the section may read different elements of a shared array, so `Same` does not carry over
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

    /// Whether `is_a?` of a class or module may give this answer for values of the kind.
    pub fn may_answer(&mut self, atom: Atom, module: ClassId, answer: bool) -> bool {
        // only its site tells the class of an exception
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
        // several are now one if merges made their types the same
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

    /// Why kernels cannot call a method on a Range object as on a Range in registers.
    pub fn lacks(&self, spec: SpecId, span: Span, range: Prims) -> Option<&String> {
        self.lacking.get(&(spec, span, range))
    }

    /// The storage type of a local of a specialisation.
    pub fn local(&self, spec: SpecId, local: LocalId) -> &Ty {
        &self.spec(spec).locals[local.index()]
    }
}

/// Refuses a text in which refinements may be active.
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
