//! The data of `Ikra.explain` for a section, collected while it is compiled, and only on request.
//!
//! Here: [`Explanation`], types in Ruby's words, counting of checks, the time of each stage. Not here: generated code
//! (backends have it) and how it is shown (the host does that).

use crate::diagnostic::Span;
use crate::error::Result;
use crate::id::{ArrayKind, ClassId, MethodId, ScopeId};
use crate::infer::{Analysis, Binding, SharedWrite, Spec, SpecId};
use crate::ir::{ColumnId, Jobs, Program, SiteId, Space, Stmt, Trap, walk};
use crate::layout::schema::Schema;
use crate::layout::{Address, Layout};
use crate::prelude;
use crate::regexp::RegexpSource;
use crate::syntax::ast::{Kind, LocalId, Name, NodeId, Origin, Params, Pattern, Target, Unit};
use crate::syntax::{given_at, visit, written};
use crate::types::combine::HashUpdate;
use crate::types::{Atom, Reach, Ty};
use crate::unicode::Unicode;
use crate::world::{
    ClassInfo, ConstId, Construction, Derivation, Facts, MethodFact, MethodSource, Opaque, Outside, Place, Receiver,
    Root, World,
};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// One compilation of a section.
#[derive(Clone, Debug, Default)]
pub struct Explanation {
    /// The time of each stage of the core, in their order. `syntax` is the parsing of the block, whenever that was, and
    /// of methods that were parsed now. `world` is the time of questions about live values, classes and methods.
    pub stages: Vec<(&'static str, Duration)>,
    /// The block, and every body that is in the program, in the order in which they were met.
    pub bodies: Vec<Body>,
    pub columns: Vec<ColumnFact>,
    /// In the order of their positions.
    pub checks: Vec<Check>,
    pub jobs: &'static str,
    /// Whether all ticks run in one launch.
    pub fused: bool,
    /// The reasons why ticks cannot be fused, if they cannot.
    pub apart: Vec<String>,
    /// Writes to slots that several elements may share, in the order of their positions.
    pub shared: Vec<SharedFact>,
    /// The program as lowering left it, as text.
    pub lowered: String,
}

/// A block or method, specialised for some types.
#[derive(Clone, Debug)]
pub struct Body {
    /// `block`, `Car#move`.
    pub label: String,
    pub path: String,
    pub line: u32,
    /// None: the block.
    pub receiver: Option<String>,
    /// Parameters by name, without those whose default runs.
    pub args: Vec<(String, String)>,
    pub result: String,
    /// Whether it is part of the body that calls it.
    pub inlined: bool,
    /// Whether it is one of Ruby's own methods, which Ikra has in Ruby.
    pub library: bool,
    /// Line, name and type, in the order of lines: the type of a variable after that line.
    pub variables: Vec<(u32, String, String)>,
}

#[derive(Clone, Debug)]
pub struct ColumnFact {
    pub name: String,
    /// `f64`, `i64`, `u32`, `u8`.
    pub storage: String,
    /// What its rows stand for: `Car, Bus`, `each element`.
    pub rows: String,
    pub layout: String,
    pub read: bool,
    pub written: bool,
}

/// A write that two elements of one tick may make to one slot. Which of them comes last is not defined.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedFact {
    pub path: String,
    pub line: u32,
    /// `@state of Person`, `the elements of Array of Integer`.
    pub what: String,
    /// The change to the program by which each element would write a slot of its own.
    pub apart: String,
}

/// A test for something that Ruby would raise, or for an assumption of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub kind: CheckKind,
    /// `ZeroDivisionError`, `Integer + beyond 64 bits`.
    pub what: String,
    pub path: String,
    pub line: u32,
    /// The number of its places after lowering, and after the passes, which may also copy it.
    pub before: usize,
    pub after: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckKind {
    /// What Ruby raises.
    Exception,
    /// A result beyond 64 bits, which Ruby's Integers can hold and those of kernels cannot.
    Overflow,
    /// An assumption of the compiler. If it fails, the section is compiled again without it.
    Speculation,
    /// Memory for new objects and arrays. If it is not enough, the section runs again with more.
    Room,
}

impl CheckKind {
    pub fn word(self) -> &'static str {
        match self {
            CheckKind::Exception => "exception",
            CheckKind::Overflow => "overflow",
            CheckKind::Speculation => "speculation",
            CheckKind::Room => "room",
        }
    }
}

impl Explanation {
    /// Adds what inference found. Called after lowering: bodies that the program does not contain are left out.
    pub(super) fn types(&mut self, an: &mut Analysis<'_>) {
        for i in 0..an.specs.len() {
            if an.specs[i].lowered {
                let body = Body::of(an, SpecId::new(i));
                self.bodies.push(body);
            }
        }
        let apart = crate::infer::Access::keeps_ticks_apart;
        let fields: Vec<(ClassId, Name)> =
            an.fields.iter().filter(|(_, a)| apart(a)).map(|((class, ivar), _)| (*class, ivar.clone())).collect();
        for (class, ivar) in fields {
            self.apart.push(format!("{ivar} of {}", an.class(class).name));
        }
        let kinds: Vec<ArrayKind> = an.arrays.iter().filter(|(_, a)| apart(a)).map(|(kind, _)| *kind).collect();
        for kind in kinds {
            let words = Words(an).of(&Ty::array(kind));
            self.apart.push(format!("the elements of {words}"));
        }
        self.shares(an);
    }

    /// Adds the writes that elements may share, each once.
    fn shares(&mut self, an: &mut Analysis<'_>) {
        let writes: Vec<SharedWrite> =
            an.shared_writes.iter().filter(|write| an.specs[write.spec.index()].lowered).cloned().collect();
        let mut found = BTreeSet::new();
        for SharedWrite { path, line, place, .. } in writes {
            let (what, apart) = match place {
                Place::Field(class, ivar) => {
                    let class = an.class(class).name;
                    let apart =
                        format!("reach the {class} through the element alone, or write what the element itself has");
                    (format!("{ivar} of {class}"), apart)
                }
                Place::Elements(kind) => {
                    let words = Words(an).of(&Ty::array(kind));
                    let apart = "write to an array that only the element has, or give the value as pmap's result";
                    (format!("the elements of {words}"), apart.to_owned())
                }
                Place::Root(_) => continue,
            };
            found.insert(SharedFact { path, line, what, apart });
        }
        self.shared = found.into_iter().collect();
    }

    pub(super) fn lowered(&mut self, program: &Program) {
        self.checks = checks(program).into_values().collect();
        self.lowered = program.to_string();
    }

    pub(super) fn improved(&mut self, an: &mut Analysis<'_>, program: &Program, schema: &Schema, layout: &Layout) {
        let mut left = checks(program);
        for check in &mut self.checks {
            check.after = left.remove(&key(check)).map_or(0, |c| c.before);
        }
        self.checks.extend(left.into_values().map(|c| Check { after: c.before, before: 0, ..c }));
        self.checks.sort_by_key(key);
        self.jobs = match program.jobs {
            Jobs::Identity => "one for each element, in their order",
            Jobs::Reordered => "one for each element, by class",
            Jobs::Grouped => "one for each object, which runs all its occurrences in their order",
        };
        self.fused = program.fused_ticks;
        if self.fused {
            self.apart.clear();
        }
        for (i, column) in program.columns.iter().enumerate() {
            let Address::Strided { stride, offset, .. } = layout.address(ColumnId::new(i));
            let place = if offset == 0 { String::new() } else { format!(" at {offset}") };
            self.columns.push(ColumnFact {
                name: column.name.clone(),
                storage: column.storage.to_string(),
                rows: rows(an, column.space, schema),
                layout: format!("array, {stride} {} a row{place}", if stride == 1 { "byte" } else { "bytes" }),
                read: column.read,
                written: column.written,
            });
        }
    }

    /// Subtracts the time of the World and of parsing from the time of inference.
    pub(super) fn subtract_questions(&mut self, asked: &Asked<'_>, block: &Unit) {
        if let Some((_, infer)) = self.stages.iter_mut().find(|(stage, _)| *stage == "infer") {
            *infer = infer.saturating_sub(asked.spent.get() + asked.parsed);
        }
        self.stages.insert(0, ("syntax", block.parsed_in + asked.parsed));
        self.stages.insert(1, ("world", asked.spent.get()));
    }
}

fn is_library(spec: &Spec) -> bool {
    spec.key.method.is_some_and(prelude::contains) || spec.called_at.is_some()
}

impl Body {
    fn of(an: &mut Analysis<'_>, id: SpecId) -> Self {
        let spec = an.spec(id);
        let (unit, key) = (spec.unit.clone(), spec.key.clone());
        let (label, inlined, library) = (spec.label.clone(), spec.host.is_some(), is_library(spec));
        let source = &unit.source;
        let ret = spec.ret.clone();
        let mut args = Vec::new();
        if inlined || key.method.is_none() {
            // an inlined body has no signature, so its parameters are variables
            for local in parameters(written(&unit).0).into_iter().flatten() {
                let ty = an.local(id, local).clone();
                if !ty.is_never() {
                    args.push((unit.locals[local.index()].name.to_string(), Words(an).of(&ty)));
                }
            }
        } else {
            for (local, binding) in parameters(&unit.params).into_iter().zip(&key.args) {
                let Binding::Given(ty) = binding else { continue };
                let name = local.map_or_else(|| "(…)".to_owned(), |l| unit.locals[l.index()].name.to_string());
                args.push((name, Words(an).of(ty)));
            }
        }
        Body {
            label,
            path: source.path.clone(),
            line: source.line_of(source.slice.start as u32),
            receiver: key.method.is_some().then(|| Words(an).of(&key.self_ty)),
            args,
            result: if ret.is_never() { "does not return".into() } else { Words(an).of(&ret) },
            inlined,
            library,
            variables: if library { Vec::new() } else { variables(an, id, &unit) },
        }
    }
}

/// The parameters' variables, in the order of [`crate::infer::SpecKey::args`]. None for a parameter that is a pattern.
fn parameters(params: &Params) -> Vec<Option<LocalId>> {
    let local = |pattern: &Pattern| match pattern {
        Pattern::Local(local) => Some(*local),
        Pattern::List { .. } => None,
    };
    let optional = params.optional.iter().map(|(l, _)| Some(*l));
    let keywords = params.keywords.iter().map(|k| Some(k.local));
    params.required.iter().map(local).chain(optional).chain(params.post.iter().map(local)).chain(keywords).collect()
}

/// The types of variables and ivars after each line that mentions them: of the last assignment there, else of the last
/// read.
fn variables(an: &mut Analysis<'_>, id: SpecId, unit: &Unit) -> Vec<(u32, String, String)> {
    let spec = an.spec(id);
    let mut found: BTreeMap<(u32, String), (bool, Ty)> = BTreeMap::new();
    let mut note = |span: Span, name: &str, assigned: bool, ty: &Ty| {
        if !ty.is_never() {
            let entry = found.entry((unit.source.line_of(span.start), name.to_owned())).or_default();
            if assigned || !entry.0 {
                *entry = (assigned, ty.clone());
            }
        }
    };
    let local_name = |local: LocalId| {
        let local = &unit.locals[local.index()];
        (local.origin != Origin::Temp && !local.name.is_empty() && given_at(&local.name).is_none())
            .then_some(&*local.name)
    };
    let whole = |local: LocalId| &spec.locals[local.index()];
    for local in parameters(written(unit).0).into_iter().flatten() {
        if let Some(name) = local_name(local) {
            note(unit.source.params_span(), name, true, whole(local));
        }
    }
    visit::unit(unit, &mut |node| {
        let ty = |id: NodeId| if spec.visited[id.index()] { spec.ty(id).clone() } else { Ty::never() };
        match &node.kind {
            Kind::Local(local) => {
                if let Some(name) = local_name(*local) {
                    note(node.span, name, false, &ty(node.id));
                }
            }
            Kind::Ivar(name) => note(node.span, name, false, &ty(node.id)),
            Kind::Assign { target, value } => match target {
                Target::Local(local, span) => {
                    if let Some(name) = local_name(*local) {
                        note(*span, name, true, &ty(value.id));
                    }
                }
                Target::Ivar(name, span) => note(*span, name, true, &ty(value.id)),
                _ => {}
            },
            // the node of an operator assignment whose value is not used has no type, so the variable's own type is
            // taken
            Kind::OpAssign { target: Target::Local(local, span), .. } if spec.visited[node.id.index()] => {
                if let Some(name) = local_name(*local) {
                    let whole = whole(*local);
                    let value = ty(node.id);
                    note(*span, name, true, if spec.void.contains(&node.id) { whole } else { &value });
                }
            }
            Kind::MultiAssign { before, rest, after, .. } if spec.visited[node.id.index()] => {
                for target in before.iter().chain(rest.iter().flatten().map(|t| &**t)).chain(after) {
                    if let Target::Local(local, span) = target
                        && let Some(name) = local_name(*local)
                    {
                        note(*span, name, true, whole(*local));
                    }
                }
            }
            Kind::For { target, .. } if spec.visited[node.id.index()] => {
                if let Target::Local(local, span) = &**target
                    && let Some(name) = local_name(*local)
                {
                    note(*span, name, true, whole(*local));
                }
            }
            Kind::Call(call) => {
                if let Some(block) = &call.block {
                    for local in parameters(&block.params).into_iter().flatten() {
                        if let Some(name) = local_name(local) {
                            note(block.span, name, true, whole(local));
                        }
                    }
                }
            }
            _ => {}
        }
    });
    let hashes = an.hash_updates.hashes.iter().filter(|_| id == Analysis::BLOCK);
    let hashes: BTreeMap<Name, HashUpdate> =
        hashes.map(|(local, update)| (unit.locals[local.index()].name.clone(), *update)).collect();
    let text = |((line, name), (_, ty)): ((u32, String), (bool, Ty))| {
        let text = match hashes.get(&*name) {
            Some(update) => format!("Hash (accumulates by {})", update.word()),
            None => Words(an).of(&ty),
        };
        (line, name, text)
    };
    found.into_iter().map(text).collect()
}

/// Types in words that Ruby programmers use.
struct Words<'a, 'w>(&'a mut Analysis<'w>);

impl Words<'_, '_> {
    fn of(&mut self, ty: &Ty) -> String {
        let text = self.kinds(ty, &mut Vec::new());
        let note = match ty.reach {
            _ if ty.objects.is_empty() && ty.array.is_none() => "",
            Reach::Owned => " (owned)",
            Reach::Same => " (the same for all)",
            Reach::Fresh => " (new)",
            Reach::Any | Reach::Mixed => "",
        };
        text + note
    }

    fn kinds(&mut self, ty: &Ty, within: &mut Vec<ArrayKind>) -> String {
        let ty = self.0.facts.resolve(ty);
        let mut words: Vec<String> = Vec::new();
        let mut last: Vec<&str> = Vec::new();
        for atom in ty.atoms() {
            match atom {
                Atom::Nil => last.push("nil"),
                Atom::False => last.insert(0, "false"),
                Atom::True => last.insert(0, "true"),
                Atom::Int => words.push("Integer".into()),
                Atom::Float => words.push("Float".into()),
                Atom::Sym => words.push("Symbol".into()),
                Atom::IntRange | Atom::FloatRange => words.push("Range".into()),
                Atom::Exception => words.push("Exception".into()),
                Atom::Str => words.push("String".into()),
                Atom::Module(class) => {
                    let ClassInfo { name, is_module, .. } = self.0.class(class);
                    words.push(format!("{} {name}", if is_module { "module" } else { "class" }));
                }
                Atom::Proc(_) => words.push("Proc".into()),
                Atom::Regexp(_) => words.push("Regexp".into()),
                Atom::Array(kind) => words.push(self.array(kind, within)),
                Atom::Object(class) => words.push(self.0.class(class).name),
            }
        }
        words.extend(last.into_iter().map(str::to_owned));
        words.dedup();
        if words.is_empty() { "nothing".into() } else { words.join(" | ") }
    }

    fn array(&mut self, kind: ArrayKind, within: &mut Vec<ArrayKind>) -> String {
        if within.contains(&kind) {
            return "Array of itself".into();
        }
        let elements = self.0.facts.get(&Place::Elements(kind)).unwrap_or_default();
        if elements.is_never() {
            return "Array".into();
        }
        within.push(kind);
        let text = self.kinds(&elements, within);
        within.pop();
        if text.contains(" | ") { format!("Array of ({text})") } else { format!("Array of {text}") }
    }
}

fn rows(an: &mut Analysis<'_>, space: Space, schema: &Schema) -> String {
    match space {
        Space::Class { hierarchy, first, last } => {
            let classes = &schema.hierarchies[hierarchy as usize].classes[first as usize..=last as usize];
            let names: Vec<String> = classes.iter().map(|class| an.class(*class).name).collect();
            names.join(", ")
        }
        Space::Array(kind) => format!("the elements of {}", Words(an).of(&Ty::array(kind))),
        Space::Element => "each element".into(),
        Space::Job => "each job".into(),
        Space::Single => "one".into(),
        Space::Slot => "each thread".into(),
        Space::Bytes => "the bytes of Strings".into(),
    }
}

type CheckKey = (String, u32, CheckKind, String);

fn key(check: &Check) -> CheckKey {
    (check.path.clone(), check.line, check.kind, check.what.clone())
}

/// How often each check occurs in a program, in the field `before`.
fn checks(program: &Program) -> BTreeMap<CheckKey, Check> {
    let mut found: BTreeMap<CheckKey, Check> = BTreeMap::new();
    let mut count = |id: SiteId| {
        let site = &program.sites[id.index()];
        let Some((kind, what)) = words_of(&site.trap) else { return };
        let (path, line) = (site.path.clone(), site.line);
        let check = Check { kind, what, path, line, before: 0, after: 0 };
        found.entry(key(&check)).or_insert(check).before += 1;
    };
    for func in &program.funcs {
        walk(&func.body, &mut |stmt| match stmt {
            Stmt::Checked { site, .. } | Stmt::Trap { site, .. } | Stmt::Alloc { site, .. } => count(*site),
            Stmt::Atomic { site: Some(site), .. } | Stmt::Call { depth: Some(site), .. } => count(*site),
            _ => {}
        });
    }
    found
}

/// None: the trap is not a check.
fn words_of(trap: &Trap) -> Option<(CheckKind, String)> {
    let exception = |text: String| Some((CheckKind::Exception, text));
    match trap {
        Trap::Break => None,
        Trap::ZeroDivision => exception("ZeroDivisionError".into()),
        Trap::IntegerOverflow(operation) => Some((CheckKind::Overflow, format!("Integer {operation} beyond 64 bits"))),
        Trap::NoMethod { name, bare: true, .. } => exception(format!("NameError: {name}")),
        Trap::NoMethod { name, .. } | Trap::NoSuper(name) => exception(format!("NoMethodError: {name}")),
        Trap::Race => exception("RaceError".into()),
        Trap::Missing => exception("NoMethodError".into()),
        Trap::IndexTooSmall => exception("IndexError".into()),
        Trap::KeyMissing => exception("KeyError".into()),
        Trap::Name { name, .. } => exception(format!("NameError: {name}")),
        Trap::Frozen => exception("FrozenError".into()),
        Trap::FloatDomain => exception("FloatDomainError".into()),
        Trap::OutOfRange => exception("RangeError".into()),
        Trap::Raise { class, .. }
        | Trap::Limit { class, .. }
        | Trap::Describe { class, .. }
        | Trap::Mention { class, .. } => exception((*class).to_owned()),
        Trap::StackOverflow => exception("SystemStackError".into()),
        Trap::Grow(_) => Some((CheckKind::Room, "room for what is made".into())),
        Trap::Refuted(_) => Some((CheckKind::Speculation, "the index is within the array".into())),
        Trap::New(new) => exception(new.name.clone()),
    }
}

/// Measures the times of consecutive stages.
pub(super) struct Stopwatch {
    began: Instant,
    pub laps: Vec<(&'static str, Duration)>,
}

impl Stopwatch {
    pub fn start() -> Self {
        Self { began: Instant::now(), laps: Vec::new() }
    }
    pub fn lap(&mut self, stage: &'static str) {
        self.laps.push((stage, self.began.elapsed()));
        self.skip();
    }
    /// Discards the time since the last lap.
    pub fn skip(&mut self) {
        self.began = Instant::now();
    }
}

/// A World that measures the time of the questions to it.
pub(super) struct Asked<'w> {
    world: &'w mut dyn World,
    spent: Cell<Duration>,
    parsed: Duration,
}

impl<'w> Asked<'w> {
    pub fn new(world: &'w mut dyn World) -> Self {
        Self { world, spent: Cell::default(), parsed: Duration::ZERO }
    }
    fn look<T>(&self, question: impl FnOnce(&dyn World) -> T) -> T {
        let began = Instant::now();
        let answer = question(&*self.world);
        self.spent.set(self.spent.get() + began.elapsed());
        answer
    }
    fn ask<T>(&mut self, question: impl FnOnce(&mut dyn World) -> T) -> T {
        let began = Instant::now();
        let answer = question(&mut *self.world);
        self.spent.set(self.spent.get() + began.elapsed());
        answer
    }
}

impl World for Asked<'_> {
    fn class(&self, class: ClassId) -> ClassInfo {
        self.look(|w| w.class(class))
    }
    fn is_a(&self, class: ClassId, module: ClassId) -> bool {
        self.look(|w| w.is_a(class, module))
    }
    fn module_is_a(&self, object: ClassId, module: ClassId) -> bool {
        self.look(|w| w.module_is_a(object, module))
    }
    fn is_ordinary(&self, class: ClassId) -> bool {
        self.look(|w| w.is_ordinary(class))
    }
    fn members(&self, class: ClassId) -> Option<Vec<Name>> {
        self.look(|w| w.members(class))
    }
    fn construction(&self, class: ClassId) -> Construction {
        self.look(|w| w.construction(class))
    }
    fn method(&mut self, receiver: Receiver, name: &str) -> MethodFact {
        self.ask(|w| w.method(receiver, name))
    }
    fn method_owner(&mut self, receiver: Receiver, name: &str) -> Option<ClassId> {
        self.ask(|w| w.method_owner(receiver, name))
    }
    fn super_method(&mut self, receiver: Receiver, method: MethodId) -> MethodFact {
        self.ask(|w| w.super_method(receiver, method))
    }
    fn source(&mut self, method: MethodId) -> Result<MethodSource> {
        let began = Instant::now();
        let source = self.world.source(method);
        let mut spent = began.elapsed();
        if let Ok(source) = &source
            && let Some(reading) = spent.checked_sub(source.unit.parsed_in)
        {
            // otherwise it was parsed for an earlier section
            self.parsed += source.unit.parsed_in;
            spent = reading;
        }
        self.spent.set(self.spent.get() + spent);
        source
    }
    fn constant(&mut self, scope: ScopeId, base: Option<ClassId>, name: &str) -> Option<ConstId> {
        self.ask(|w| w.constant(scope, base, name))
    }
    fn top_constant(&mut self, name: &str) -> Option<ConstId> {
        self.ask(|w| w.top_constant(name))
    }
    fn class_named(&mut self, name: &str) -> Option<ClassId> {
        self.ask(|w| w.class_named(name))
    }
    fn class_variables(&mut self, scope: ScopeId) -> Option<ClassId> {
        self.ask(|w| w.class_variables(scope))
    }
    fn scope_module(&mut self, scope: ScopeId) -> ClassId {
        self.ask(|w| w.scope_module(scope))
    }
    fn outside(&mut self, root: &Root) -> Option<Outside> {
        self.ask(|w| w.outside(root))
    }
    fn derived(&mut self, root: &Root) -> Option<Derivation> {
        self.ask(|w| w.derived(root))
    }
    fn unicode(&self) -> &'static dyn Unicode {
        self.world.unicode()
    }
    fn regexp(&mut self, root: &Root) -> Option<RegexpSource> {
        self.ask(|w| w.regexp(root))
    }
    fn number_of_proc(&mut self, root: &Root) -> Option<u32> {
        self.ask(|w| w.number_of_proc(root))
    }
    fn symbol_proc(&mut self, root: &Root) -> Option<Name> {
        self.ask(|w| w.symbol_proc(root))
    }
    fn live(&mut self, root: &Root) -> bool {
        self.ask(|w| w.live(root))
    }
    fn captures_hash(&mut self, local: &Name) -> bool {
        self.ask(|w| w.captures_hash(local))
    }
    fn captures_default(&mut self, hash: &Name) -> bool {
        self.ask(|w| w.captures_default(hash))
    }
    fn is_handling(&mut self) -> bool {
        self.ask(|w| w.is_handling())
    }

    fn scan_root(&mut self, root: &Root, facts: &mut Facts) -> std::result::Result<(), Opaque> {
        self.ask(|w| w.scan_root(root, facts))
    }
    fn scan_field(&mut self, class: ClassId, ivar: &Name, facts: &mut Facts) -> std::result::Result<(), Opaque> {
        self.ask(|w| w.scan_field(class, ivar, facts))
    }
    fn scan_array(&mut self, kind: ArrayKind, facts: &mut Facts) -> std::result::Result<(), Opaque> {
        self.ask(|w| w.scan_array(kind, facts))
    }
}
