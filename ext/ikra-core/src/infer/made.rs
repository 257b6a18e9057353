//! Objects and arrays that kernels make.
//!
//! Here: the target of `new`, which new things may be seen outside of their job ([`Analysis::stays`]), and which ivars
//! a new object is given before any code can read them. Not here: rows ([`crate::ir::Heap`]), and the Ruby objects that
//! the host makes of those that stay.
//!
//! The type of a new thing has [`Reach::Fresh`]: only its job can reach it. It *escapes* if it becomes the section's
//! result, the value of a captured local, or part of something that is not surely fresh itself. Everything that was put
//! into it then escapes as well. If a class or kind of array escapes anywhere, its new objects stay everywhere.

use super::append::is_new_list;
use super::blocks::ProcKind;
use super::builtins::Builtin;
use super::calls::{Args, Refusal};
use super::walk::{Env, Walker};
use super::{Access, Analysis, SpecId, builtins};
use crate::diagnostic::Span;
use crate::error::Result;
use crate::id::{ArrayKind, ClassId, MethodId};
use crate::source::Source;
use crate::syntax::ast::{Arg, AssignOp, Block, Call, Kind, Name, Node, Pattern, Target as Place, Unit};
use crate::types::{Atom, Prims, Reach, Ty};
use crate::world::{self, Assumption, MethodFact, Receiver, hashes, values, well_known};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A class or a kind of array, which has rows of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    Class(ClassId),
    Array(ArrayKind),
}

/// Facts about the objects and arrays that the section makes.
#[derive(Default)]
pub struct Made {
    /// By class: the ivars that every new object is given before any code can read them.
    births: BTreeMap<ClassId, Vec<Name>>,
    /// The kinds of the arrays that are made at positions of bodies.
    kinds: HashMap<(SpecId, Span), ArrayKind>,
    escaping: BTreeSet<Thing>,
    /// Fresh things, each with a thing that was put into it.
    holds: BTreeSet<(Thing, Thing)>,
    /// Classes whose objects are copied, each with the uses of their ivars.
    copied: BTreeMap<ClassId, Access>,
    /// Classes whose objects the section freezes.
    frozen: BTreeSet<ClassId>,
    frozen_arrays: bool,
    /// The places that make Hashes, in the order in which they were met.
    hashes: Vec<(SpecId, Span)>,
    /// The blocks with which Hashes are made, by their class, and the calls that give them.
    hash_blocks: BTreeMap<ClassId, (Ty, (Arc<Source>, Span))>,
}

impl Made {
    /// Forgets everything but what follows from the program's text.
    pub fn restart(&mut self) {
        self.kinds.clear();
        self.escaping.clear();
        self.holds.clear();
        self.copied.clear();
        self.frozen.clear();
        self.frozen_arrays = false;
        self.hashes.clear();
        self.hash_blocks.clear();
    }
}

fn things(ty: &Ty) -> impl Iterator<Item = Thing> {
    ty.objects.iter().map(|c| Thing::Class(*c)).chain(ty.array.map(Thing::Array))
}

/// So many Hashes that are made of each other, one after the other, have a class each.
const APART: usize = 3;

impl Analysis<'_> {
    /// Notes that code outside of the job that made the value may see it.
    pub(super) fn escapes(&mut self, ty: &Ty) {
        if ty.reach.may_be_fresh() {
            self.made.escaping.extend(things(ty));
        }
    }

    /// Notes that the value becomes part of something. Returns whether a read there may give something fresh.
    pub(super) fn put_into(&mut self, owner: Thing, reach: Reach, ty: &Ty) -> bool {
        if !ty.reach.may_be_fresh() {
            return false;
        }
        if reach == Reach::Fresh {
            self.made.holds.extend(things(ty).map(|thing| (owner, thing)));
        } else {
            self.escapes(ty);
        }
        things(ty).next().is_some()
    }

    /// Marks everything as escaping that an escaping thing contains.
    pub(super) fn follow_escapes(&mut self) {
        let named = |thing: Thing| match thing {
            Thing::Array(kind) => Thing::Array(self.facts.find(kind)),
            class => class,
        };
        let mut all: BTreeSet<Thing> = self.made.escaping.iter().map(|t| named(*t)).collect();
        let holds: BTreeSet<(Thing, Thing)> = self.made.holds.iter().map(|(a, b)| (named(*a), named(*b))).collect();
        loop {
            let more: Vec<Thing> =
                holds.iter().filter(|(a, b)| all.contains(a) && !all.contains(b)).map(|(_, b)| *b).collect();
            if more.is_empty() {
                break;
            }
            all.extend(more);
        }
        self.made.escaping = all;
    }

    /// Whether code outside of their job may see new things of this class or kind.
    pub fn stays(&self, thing: Thing) -> bool {
        let thing = match thing {
            Thing::Array(kind) => Thing::Array(self.facts.find(kind)),
            class => class,
        };
        self.made.escaping.contains(&thing)
    }

    /// The kind of the arrays made at a position of a body.
    pub fn made_kind(&mut self, spec: SpecId, span: Span) -> ArrayKind {
        let known = self.made.kinds.get(&(spec, span)).copied();
        let kind = known.unwrap_or_else(|| self.facts.fresh_kind());
        self.made.kinds.insert((spec, span), kind);
        // its elements are stored as Ruby's arrays are: beside a buffer of f32 they must not become narrower
        self.facts.saw_storage(kind, None);
        self.facts.find(kind)
    }

    /// The position of an ivar among those that a new object always has before any code can read them.
    pub fn given_at_birth(&self, class: ClassId, ivar: &Name) -> Option<u32> {
        let given = self.made.births.get(&class)?;
        given.iter().position(|name| name == ivar).and_then(|at| u32::try_from(at).ok())
    }

    /// The type of a new object of a class whose objects consist of their parts alone, with parts of these types.
    ///
    /// # Errors
    /// As [`Analysis::write_field`].
    pub fn make_value(&mut self, from: SpecId, class: ClassId, types: &[Ty]) -> std::result::Result<Ty, Refusal> {
        let names = || values::parts(class).iter().map(|part| Name::from(*part));
        if !self.frozen {
            self.made.births.insert(class, names().collect());
            for (part, ty) in names().zip(types) {
                self.write_field(from, Atom::Object(class), Reach::Fresh, &part, ty)?;
            }
        }
        Ok(Ty::object(class, Reach::Fresh))
    }

    /// The class of the Hashes that are made at a position of a body.
    pub fn made_hash(&mut self, spec: SpecId, span: Span) -> ClassId {
        let place = (spec, span);
        if let Some(at) = self.made.hashes.iter().position(|known| *known == place) {
            return well_known::made_hash(at);
        }
        self.made_again(spec, span).unwrap_or_else(|| {
            self.made.hashes.push(place);
            well_known::made_hash(self.made.hashes.len() - 1)
        })
    }

    /// The class of a Hash from the same position of the same method, of which that method now makes another one, step
    /// by step. With a class of its own for each, types would not reach a fixpoint where a loop does this, as
    /// `h = h.merge(…)`. The first ones have a class each, as their types differ where a program makes a few Hashes of
    /// each other.
    fn made_again(&self, spec: SpecId, span: Span) -> Option<ClassId> {
        let method = self.spec(spec).key.method?;
        let (mut of, mut before) = (spec, 0);
        // each step leads to a specialisation that was there before
        for _ in 0..self.specs.len() {
            let made = match self.spec(of).key.self_ty.objects[..] {
                [class] => well_known::made_hash_number(class).map(|number| (class, number)),
                _ => None,
            };
            let Some((class, number)) = made else {
                of = self.inlinings.iter().find(|(_, inlined)| **inlined == of)?.0.from;
                continue;
            };
            let (maker, made_at) = *self.made.hashes.get(number)?;
            if made_at == span && self.spec(maker).key.method == Some(method) {
                before += 1;
                if before >= APART {
                    return Some(class);
                }
            }
            of = maker;
        }
        None
    }

    /// The type of a new Hash of these parts.
    ///
    /// # Errors
    /// A block where places share a class, as the class tells the block; and as [`Analysis::write_field`].
    pub fn make_hash(
        &mut self,
        (spec, span): (SpecId, Span),
        parts: &[Ty],
        block: Option<(Ty, (Arc<Source>, Span))>,
    ) -> std::result::Result<Ty, Refusal> {
        let class = self.made_hash(spec, span);
        if let Some(block) = block {
            if class == well_known::made_hash(usize::MAX) {
                return Err(Refusal::new(format!(
                    "kernels know {} places that make Hashes, if one of them gives a block",
                    well_known::MADE_HASHES - 1
                ))
                .advise("give the Hash a default, or give the key its value where it is needed"));
            }
            self.made.hash_blocks.insert(class, block);
        }
        if !self.frozen {
            self.made.births.insert(class, hashes::MADE_PARTS.iter().map(|part| Name::from(*part)).collect());
            for (part, ty) in hashes::MADE_PARTS.iter().zip(parts) {
                self.write_field(spec, Atom::Object(class), Reach::Fresh, &(*part).into(), ty)?;
                // known before anything is stored, since nil would be no Integer
                if let ("hashes" | "index", Some(kind)) = (*part, ty.array) {
                    self.write_element(spec, (Atom::Array(kind), Reach::Fresh), &Ty::int())?;
                }
            }
        }
        Ok(Ty::object(class, Reach::Fresh))
    }

    /// The block with which the Hashes of a class are made, or nil.
    pub fn block_of_hash(&self, class: ClassId) -> Ty {
        self.made.hash_blocks.get(&class).map_or_else(Ty::nil, |(block, _)| block.clone())
    }

    /// Whether the block of a class of Hashes is `{ |hash, key| hash[key] = [] }`.
    pub fn stores_list(&self, class: ClassId) -> bool {
        let [id] = *self.block_of_hash(class).procs else { return false };
        let ProcKind::Block(block) = &self.proc_info(id).kind else { return false };
        let [Pattern::Local(hash), Pattern::Local(key)] = *block.params.required.as_slice() else { return false };
        let mut body = &block.body;
        while let Kind::Seq(items) = &body.kind
            && let [only] = items.as_slice()
        {
            body = only;
        }
        let is = |node: &Node, local| matches!(node.kind, Kind::Local(l) if l == local);
        match &body.kind {
            Kind::Assign { target: Place::Index { receiver, args, .. }, value } => {
                let place = is(receiver, hash) && matches!(args.as_slice(), [arg] if is(arg, key));
                place && block.params.plain() && is_new_list(value, true)
            }
            _ => false,
        }
    }

    /// Refuses Hashes with a block that the host would have to make.
    ///
    /// # Errors
    /// Such a Hash.
    pub(super) fn check_hash_blocks(&self) -> Result<()> {
        match self.made.hash_blocks.iter().find(|(class, _)| self.stays(Thing::Class(**class))) {
            Some((_, (_, (source, span)))) => Err(Refusal::new("kernels give no Hash with a block")
                .because("the block would have to run in Ruby, outside of the section")
                .advise("give the keys their values where they are added, or give h.to_h { |k, v| [k, v] }")
                .at(source, *span)),
            None => Ok(()),
        }
    }

    /// Registers Ranges that become objects. They are made like other objects, but without a call of `new`.
    pub(super) fn register_boxes(&mut self) -> Result<()> {
        if !self.facts.boxes() {
            return Ok(());
        }
        let made = self.make_value(Analysis::BLOCK, well_known::RANGE, &[Ty::never(), Ty::never(), Ty::never()]);
        let source = self.specs[0].unit.source.clone();
        made.map(drop).map_err(|refusal| refusal.at(&source, source.params_span()))
    }

    /// `frozen?` and `freeze`: for objects and arrays with a flag, and for values that are frozen from the start.
    ///
    /// # Errors
    /// Values whose flag kernels do not see, and arrays that contain values that kernels cannot hold: the flags stand
    /// beside the elements.
    pub(super) fn has_flag(&mut self, from: SpecId, atom: Atom, reach: Reach) -> std::result::Result<(), Refusal> {
        if let Atom::Array(kind) = atom {
            self.elements(from, kind, reach)?;
        }
        let has_flag = match atom {
            Atom::Object(class) => !well_known::is_hash(class) && class != well_known::RANGE,
            Atom::Array(kind) => self.facts.storage(kind).is_none(),
            Atom::IntRange | Atom::FloatRange | Atom::Module(_) => false,
            _ => true,
        };
        if has_flag {
            return Ok(());
        }
        let what = self.describe(atom);
        Err(Refusal::new(format!("kernels do not know frozen? of {what}"))
            .advise("ask in Ruby, before the call, and capture the answer"))
    }

    /// Notes that an object or an array is frozen.
    ///
    /// # Errors
    /// Objects that all elements share, and values without a flag.
    pub(super) fn freezes(&mut self, from: SpecId, atom: Atom, reach: Reach) -> std::result::Result<(), Refusal> {
        if builtins::is_immutable(atom) {
            return Ok(());
        }
        let what = self.describe(atom);
        let without_flag = Refusal::new(format!("kernels do not know freeze of {what}"))
            .advise("freeze it before or after the section");
        self.has_flag(from, atom, reach).map_err(|_| without_flag)?;
        if reach == Reach::Same {
            return Err(Refusal::new(format!("every element freezes the same {what} here"))
                .because("elements run at the same time, so which of their writes come before that is not known")
                .advise("freeze it before or after the section"));
        }
        if self.frozen {
            return Ok(());
        }
        match atom {
            Atom::Object(class) if !self.is_data(class) => {
                self.made.frozen.insert(class);
                self.facts.saw_frozen(class);
            }
            Atom::Array(_) => {
                self.made.frozen_arrays = true;
                self.facts.saw_frozen_array();
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the section freezes objects of a class.
    pub fn may_freeze(&self, class: ClassId) -> bool {
        self.made.frozen.contains(&class)
    }

    /// Whether the section freezes arrays.
    pub fn freezes_arrays(&self) -> bool {
        self.made.frozen_arrays
    }

    /// Whether the section copies objects of a class.
    pub fn copies(&self, class: ClassId) -> bool {
        self.made.copied.contains_key(&class)
    }

    /// The type of the result of `__copy`.
    ///
    /// # Errors
    /// Objects whose copies need more than their ivars and Ruby's own `initialize_copy`.
    pub(super) fn copy(&mut self, atom: Atom, reach: Reach) -> std::result::Result<Ty, Refusal> {
        let Atom::Object(class) = atom else {
            if atom == Atom::Str || builtins::is_immutable(atom) {
                return Ok(Ty::of(atom, Reach::Mixed));
            }
            let what = self.describe(atom);
            return Err(Refusal::new(format!("kernels do not copy {what}")).advise("copy it before the section"));
        };
        let advice = "make a new object with new, from what the other has";
        let real = self.real_class(class);
        let label = self.class(real).name;
        let refusal = Refusal::new(format!("kernels do not copy this {label}")).advise(advice);
        let members = self.struct_members(class).is_some();
        if real != class {
            return Err(refusal.because("it has methods of its own, or a module that it alone was extended with"));
        }
        if !self.world.is_ordinary(class) && !members || self.is_data(class) {
            return Err(Refusal::new(format!("kernels do not copy {label}"))
                .because("its objects are more than instance variables")
                .advise("copy it before the section"));
        }
        let own = ["initialize_copy", "initialize_dup", "initialize_clone"];
        let has_own = |s: &mut Self, name: &str| {
            matches!(s.method(Receiver::Instance(class), name), MethodFact::Ruby { .. } | MethodFact::Foreign { .. })
        };
        if members && let Some(name) = own.into_iter().find(|name| has_own(self, name)) {
            return Err(refusal.because(format!("it is a Struct with {name} of its own, which decides what is copied")));
        }
        if !self.frozen {
            let mut access = self.made.copied.get(&class).copied().unwrap_or_default();
            access.written_owned = true;
            access.read_owned |= reach.is_owned();
            access.read_shared |= !reach.is_owned();
            if self.made.copied.insert(class, access) != Some(access) {
                for ivar in self.fields_of(class) {
                    self.touch_copied(class, &ivar);
                }
            }
        }
        Ok(Ty::object(class, Reach::Fresh))
    }

    /// Copies read all ivars that kernels know. Afterwards two objects contain the values of these.
    pub(super) fn touch_copied(&mut self, class: ClassId, ivar: &Name) {
        let Some(copied) = self.made.copied.get(&class).copied() else { return };
        let access = self.fields.entry((class, ivar.clone())).or_default();
        let first = !access.written();
        *access = access.and(copied);
        if first {
            self.wake(&world::Place::Field(class, ivar.clone()));
        }
    }

    /// Classes of which the section makes objects.
    pub fn made_classes(&self) -> impl Iterator<Item = ClassId> {
        self.made.births.keys().copied()
    }

    /// The class whose objects `new` or `allocate` makes.
    ///
    /// # Errors
    /// Classes whose objects contain more than their ivars.
    pub fn makes(&mut self, class: ClassId, name: &str) -> std::result::Result<ClassId, Refusal> {
        if self.world.is_ordinary(class) || self.struct_members(class).is_some() {
            return Ok(class);
        }
        let label = self.class(class).name;
        Err(Refusal::new(format!("kernels do not know {label}.{name}"))
            .because(format!("objects of {label} are more than instance variables"))
            .advise("make it before the section, or define a class of your own"))
    }

    /// The members of a Struct's or a Data's class.
    fn struct_members(&self, class: ClassId) -> Option<Vec<Name>> {
        self.world.members(class)
    }

    /// Notes that the section makes objects of a class: by `new`, or by `allocate` with all ivars unset.
    fn born(&mut self, class: ClassId, allocated: bool) -> Result<()> {
        let given = if allocated { Vec::new() } else { self.given_by_initialize(class)? };
        let all: Vec<Name> = match self.made.births.get(&class) {
            Some(known) => known.iter().filter(|ivar| given.contains(ivar)).cloned().collect(),
            None => given,
        };
        if self.made.births.get(&class) == Some(&all) {
            return Ok(());
        }
        self.made.births.insert(class, all);
        let touched: Vec<Name> = self.fields_of(class);
        for ivar in touched {
            self.starts_as_nil(class, &ivar);
        }
        Ok(())
    }

    fn fields_of(&self, class: ClassId) -> Vec<Name> {
        let demanded = self.demanded.iter().filter_map(|place| match place {
            world::Place::Field(c, ivar) if *c == class => Some(ivar.clone()),
            _ => None,
        });
        demanded.collect()
    }

    /// Notes that an ivar that the program reads may be nil in new objects.
    pub(super) fn starts_as_nil(&mut self, class: ClassId, ivar: &Name) {
        let made = self.made.births.contains_key(&class);
        if !self.frozen && made && self.given_at_birth(class, ivar).is_none() {
            self.facts.saw(&world::Place::Field(class, ivar.clone()), &Ty::nil());
        }
    }

    fn given_by_initialize(&mut self, class: ClassId) -> Result<Vec<Name>> {
        let MethodFact::Ruby { method, .. } = self.method(Receiver::Instance(class), "initialize") else {
            // Struct's own `initialize` sets all members
            return Ok(self.struct_members(class).unwrap_or_default());
        };
        let mut birth = Birth { an: self, class, methods: Vec::new(), order: Vec::new(), now: Given::default() };
        birth.method(method)?;
        let Birth { order, now, .. } = birth;
        Ok(order.into_iter().filter(|ivar| now.ivars.contains(ivar)).collect())
    }
}

impl Walker<'_, '_> {
    /// `Class#new` and `Class#allocate`.
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub(super) fn new_object(
        &mut self,
        builtin: Builtin,
        atom: Atom,
        args: &Args,
        block: Option<&Ty>,
        span: Span,
        at: &Assumption,
        env: &mut Env,
    ) -> Result<Ty> {
        let Atom::Module(class) = atom else { return Ok(Ty::never()) };
        if class == well_known::ARRAY && builtin == Builtin::New {
            return self.new_array(args, block, span, env);
        }
        if class == well_known::HASH && builtin == Builtin::New {
            let asked = self.an.method(Receiver::Instance(class), "initialize");
            if matches!(asked, MethodFact::Ruby { .. } | MethodFact::Foreign { .. }) {
                return Err(self
                    .error(span, "kernels do not know Hash.new where the program redefines Hash#initialize")
                    .advise("write {}, which does not call it")
                    .into());
            }
            return self.inline(hash_maker(), Ty::module(class), args, block.cloned(), span, env);
        }
        if class == well_known::STRING && builtin == Builtin::New {
            return self.inline(string_maker(), Ty::module(class), args, block.cloned(), span, env);
        }
        let name = if builtin == Builtin::New { "new" } else { "allocate" };
        let answer = self.an.makes(class, name);
        let class = self.refused(answer, span)?;
        self.an.born(class, builtin == Builtin::Allocate)?;
        let object = Ty::object(class, Reach::Fresh);
        if builtin == Builtin::Allocate {
            return Ok(if args.positional.is_empty() && args.keywords.is_empty() { object } else { Ty::never() });
        }
        let mut args = Args { void: true, ..args.clone() };
        match self.an.data_members(class, args.positional.len(), !args.keywords.is_empty()) {
            Some(Ok(names)) => {
                args.literals.clear();
                args.keywords.splice(0..0, names.into_iter().zip(std::mem::take(&mut args.positional)));
            }
            Some(Err(_)) => return Ok(Ty::never()),
            None => {}
        }
        self.dispatch_with(&object, "initialize", &args, block, true, span, at, env)?;
        Ok(if env.dead { Ty::never() } else { object })
    }

    /// `Array.new`, `Array.new(n)`, `Array.new(n, x)`, `Array.new(n) { |i| … }`.
    fn new_array(&mut self, args: &Args, block: Option<&Ty>, span: Span, env: &mut Env) -> Result<Ty> {
        if (1..=2).contains(&args.positional.len())
            && args.keywords.is_empty()
            && let (Some(block), Some(method)) = (block, array_builder())
        {
            return self.inline(method, Ty::module(well_known::ARRAY), args, Some(block.clone()), span, env);
        }
        let ty = match args.positional.as_slice() {
            _ if !args.keywords.is_empty() => None,
            [] => Some(Ty::never()),
            [n] if n.only(Prims::INT) => Some(Ty::nil()),
            [n, x] if n.only(Prims::INT) => Some(x.clone()),
            [_] | [_, _] => None,
            _ => return Ok(Ty::never()),
        };
        let Some(element) = ty else {
            return Err(self
                .error(span, "kernels know Array.new with a length, and with a length and a value")
                .advise("write Array.new(n) or Array.new(n, value)")
                .into());
        };
        self.made_array(span, &element)
    }

    /// An array made at a position, with elements of this type.
    pub(super) fn made_array(&mut self, span: Span, element: &Ty) -> Result<Ty> {
        let kind = self.an.made_kind(self.here.id, span);
        let answer = self.an.write_element(self.here.id, (Atom::Array(kind), Reach::Fresh), element);
        self.refused(answer, span)?;
        let kind = self.an.facts.find(kind);
        Ok(Ty::array(kind).reached(Reach::Fresh))
    }

    /// `[a, b, c]`
    pub(super) fn array_literal(&mut self, node: &Node, items: &[Node], env: &mut Env) -> Result<Ty> {
        let mut types = Vec::new();
        for item in items {
            if matches!(item.kind, Kind::Splat(_)) {
                return Err(self
                    .error(item.span, "kernels do not know splats in arrays")
                    .advise("write the elements out")
                    .into());
            }
            let ty = self.eval(item, env)?;
            if env.dead {
                return Ok(Ty::never());
            }
            types.push(self.an.as_element(ty));
        }
        self.array_of(&types, node.span)
    }

    /// The array made at a position, with elements of these types.
    pub(super) fn array_of(&mut self, types: &[Ty], span: Span) -> Result<Ty> {
        let mut element = Ty::never();
        for ty in types {
            element = self.join(&element, ty);
        }
        self.made_array(span, &element)
    }
}

/// The prelude's method for `Hash.new`.
///
/// # Panics
/// If the prelude lacks it.
pub fn hash_maker() -> MethodId {
    crate::prelude::find("", "Kernel", "__new_hash").expect("the prelude has it")
}

/// The prelude's method for `String.new`.
///
/// # Panics
/// If the prelude lacks it.
pub fn string_maker() -> MethodId {
    crate::prelude::find("", "Kernel", "__new_string").expect("the prelude has it")
}

/// The prelude's method that gives a literal Hash a key and its value.
pub const STORE: &str = "%__store";

/// The prelude's method for `Array.new(n) { … }`.
pub fn array_builder() -> Option<MethodId> {
    crate::prelude::find("", "Kernel", "__new_array")
}

/// The ivars that the current object has been given on every path to here.
#[derive(Clone, Default)]
struct Given {
    ivars: BTreeSet<Name>,
    /// Ivars that were read before they were given.
    seen: BTreeSet<Name>,
    /// Any code may read any of its ivars from here on.
    open: bool,
    /// Control does not reach this point.
    dead: bool,
}

impl Given {
    fn give(&mut self, ivar: &Name) {
        if !self.open && !self.seen.contains(ivar) {
            self.ivars.insert(ivar.clone());
        }
    }
    fn look(&mut self, ivar: &Name) {
        if !self.ivars.contains(ivar) {
            self.seen.insert(ivar.clone());
        }
    }
    /// The facts where two paths meet.
    fn meet(self, other: Given) -> Given {
        let seen: BTreeSet<Name> = self.seen.union(&other.seen).cloned().collect();
        let open = self.open || other.open;
        let ivars = match (self.dead, other.dead) {
            (true, _) => other.ivars,
            (_, true) => self.ivars,
            _ => self.ivars.intersection(&other.ivars).cloned().collect(),
        };
        let ivars = ivars.difference(&seen).cloned().collect();
        Given { ivars, seen, open, dead: self.dead && other.dead }
    }
}

/// The depth of calls up to which a constructor is followed.
const MAX_CONSTRUCTOR_DEPTH: usize = 12;

/// Follows a constructor through the methods that it calls on `self`.
struct Birth<'a, 'w> {
    an: &'a mut Analysis<'w>,
    class: ClassId,
    /// Methods that are being followed, with the facts at their returns.
    methods: Vec<(MethodId, Arc<Unit>, Option<Given>)>,
    /// The ivars, in the order in which they are first given.
    order: Vec<Name>,
    now: Given,
}

impl Birth<'_, '_> {
    fn method(&mut self, method: MethodId) -> Result<()> {
        if self.methods.len() >= MAX_CONSTRUCTOR_DEPTH || self.methods.iter().any(|m| m.0 == method) {
            self.now.open = true;
            return Ok(());
        }
        let unit = self.an.source(method)?.unit;
        self.methods.push((method, unit.clone(), None));
        let params = &unit.params;
        for (_, default) in &params.optional {
            self.perhaps(|s| s.node(default))?;
        }
        for default in params.keywords.iter().filter_map(|k| k.default.as_ref()) {
            self.perhaps(|s| s.node(default))?;
        }
        self.node(&unit.body)?;
        let returned = self.methods.pop().and_then(|m| m.2);
        if let Some(returned) = returned {
            let now = std::mem::take(&mut self.now);
            self.now = now.meet(returned);
        }
        Ok(())
    }

    /// Follows code that may run, may not run, or may run many times.
    fn perhaps(&mut self, run: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let before = self.now.clone();
        run(self)?;
        let after = std::mem::replace(&mut self.now, before.clone());
        self.now = before.meet(Given { dead: false, ..after });
        Ok(())
    }

    fn all<'n>(&mut self, nodes: impl IntoIterator<Item = &'n Node>) -> Result<()> {
        nodes.into_iter().try_for_each(|n| self.node(n))
    }

    fn args(&mut self, args: &[Arg]) -> Result<()> {
        self.all(args.iter().map(|a| match a {
            Arg::Positional(n) | Arg::Keyword(_, n) | Arg::KeywordSplat(n) => n,
        }))
    }

    fn block(&mut self, block: Option<&Arc<Block>>) -> Result<()> {
        match block {
            Some(block) => self.perhaps(|s| s.node(&block.body)),
            None => Ok(()),
        }
    }

    fn ways(&mut self, ways: Vec<&Node>) -> Result<()> {
        let before = self.now.clone();
        let mut out: Option<Given> = None;
        for way in ways {
            self.now = before.clone();
            self.node(way)?;
            let end = std::mem::take(&mut self.now);
            out = Some(match out {
                Some(out) => out.meet(end),
                None => end,
            });
        }
        self.now = out.unwrap_or(before);
        Ok(())
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        if self.now.dead {
            return Ok(());
        }
        match &node.kind {
            // Code that receives `self` may read its ivars.
            Kind::SelfRef => self.now.open = true,
            Kind::Ivar(ivar) => self.now.look(ivar),
            Kind::Assign { target, value } => {
                self.owner(target)?;
                self.node(value)?;
                self.target(target)?;
            }
            Kind::OpAssign { target, op, value } => {
                self.owner(target)?;
                match target {
                    Place::Ivar(ivar, _) => self.now.look(ivar),
                    Place::Attr { receiver, name, .. } if matches!(receiver.kind, Kind::SelfRef) => self.own(name)?,
                    _ => {}
                }
                if matches!(op, AssignOp::Method(_)) {
                    self.node(value)?;
                    self.target(target)?;
                } else {
                    self.perhaps(|s| {
                        s.node(value)?;
                        s.target(target)
                    })?;
                }
            }
            Kind::MultiAssign { before, rest, after, value } => {
                let rest = rest.iter().flatten().map(|t| &**t);
                let targets: Vec<&Place> = before.iter().chain(rest).chain(after).collect();
                targets.iter().try_for_each(|t| self.owner(t))?;
                self.node(value)?;
                targets.iter().try_for_each(|t| self.target(t))?;
            }
            Kind::Call(call) => self.call(call)?,
            Kind::Super { args, block } => {
                self.args(args.as_deref().unwrap_or_default())?;
                self.block(block.as_ref())?;
                let Some((method, ..)) = self.methods.last() else { return Ok(()) };
                match self.an.world.super_method(Receiver::Instance(self.class), *method) {
                    MethodFact::Ruby { method, .. } => self.method(method)?,
                    MethodFact::Builtin { .. } => {
                        for member in self.an.struct_members(self.class).unwrap_or_default() {
                            self.give(&member);
                        }
                    }
                    _ => self.now.open = true,
                }
            }
            Kind::And(a, b) | Kind::Or(a, b) => {
                self.node(a)?;
                self.perhaps(|s| s.node(b))?;
            }
            Kind::If { cond, then, otherwise } => {
                self.node(cond)?;
                self.ways(vec![then, otherwise])?;
            }
            Kind::Case { subject, whens, otherwise } => {
                self.all(subject.as_deref())?;
                for test in whens.iter().flat_map(|w| &w.tests) {
                    self.perhaps(|s| s.node(test))?;
                }
                self.ways(whens.iter().map(|w| &w.body).chain([&**otherwise]).collect())?;
            }
            Kind::Spread { size, calls, .. } => {
                self.node(size)?;
                self.ways(calls.iter().collect())?;
            }
            Kind::While { cond, body, .. } => {
                self.perhaps(|s| {
                    s.node(cond)?;
                    s.node(body)
                })?;
            }
            Kind::For { target, over, body } => {
                self.node(over)?;
                self.perhaps(|s| {
                    s.target(target)?;
                    s.node(body)
                })?;
            }
            Kind::Return(value) => {
                self.all(value.as_deref())?;
                let end = std::mem::replace(&mut self.now, Given { dead: true, ..Given::default() });
                if let Some((_, _, returned)) = self.methods.last_mut() {
                    *returned = Some(match returned.take() {
                        Some(other) => other.meet(end),
                        None => end,
                    });
                }
            }
            Kind::Begin { body, rescues, otherwise, ensure } if rescues.is_empty() => {
                self.node(body)?;
                self.all(otherwise.as_deref())?;
                self.all(ensure.as_deref())?;
            }
            Kind::Begin { body, rescues, otherwise, ensure } => {
                self.perhaps(|s| {
                    s.node(body)?;
                    s.all(otherwise.as_deref())
                })?;
                for rescue in rescues {
                    self.perhaps(|s| {
                        s.all(&rescue.classes)?;
                        s.node(&rescue.body)
                    })?;
                }
                self.all(ensure.as_deref())?;
            }
            Kind::Lambda(block) => self.block(Some(block))?,
            Kind::Not(x) | Kind::Splat(x) => self.node(x)?,
            Kind::Array(items) | Kind::Seq(items) => self.all(items)?,
            Kind::DStr(text) => self.all(text.pieces())?,
            Kind::Hash(pairs) => self.all(pairs.iter().flat_map(|(k, v)| [k, v]))?,
            Kind::Range { from, to, .. } => self.all(from.as_deref().into_iter().chain(to.as_deref()))?,
            Kind::Yield(args) => self.args(args)?,
            Kind::Break(value) | Kind::Next(value) => self.all(value.as_deref())?,
            Kind::Nil
            | Kind::True
            | Kind::False
            | Kind::Int(_)
            | Kind::BigInt(_)
            | Kind::Float(_)
            | Kind::Sym(_)
            | Kind::Str(_)
            | Kind::Regexp(_)
            | Kind::Local(_)
            | Kind::Const(_) => {}
            Kind::Retry | Kind::Found => self.now.dead = true,
            Kind::Defined(_) | Kind::Unsupported { .. } => self.now.open = true,
        }
        Ok(())
    }

    /// Follows what a target evaluates before the value.
    fn owner(&mut self, target: &Place) -> Result<()> {
        match target {
            Place::Attr { receiver, .. } if matches!(receiver.kind, Kind::SelfRef) => Ok(()),
            Place::Attr { receiver, .. } => self.node(receiver),
            Place::Index { receiver, args, .. } => {
                self.node(receiver)?;
                self.all(args)
            }
            _ => Ok(()),
        }
    }

    fn target(&mut self, target: &Place) -> Result<()> {
        match target {
            Place::Ivar(ivar, _) => self.give(ivar),
            Place::Attr { receiver, name, .. } if matches!(receiver.kind, Kind::SelfRef) => {
                self.own(&format!("{name}="))?;
            }
            Place::List { before, rest, after } => {
                let rest = rest.iter().flatten().map(|t| &**t);
                before.iter().chain(rest).chain(after).try_for_each(|t| self.target(t))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<()> {
        let on_self = match &call.receiver {
            None => true,
            Some(Node { kind: Kind::SelfRef, .. }) => true,
            Some(receiver) => {
                self.node(receiver)?;
                false
            }
        };
        self.args(&call.args)?;
        self.all(&call.block_arg)?;
        self.block(call.block.as_ref())?;
        if on_self { self.own(&call.name) } else { Ok(()) }
    }

    fn give(&mut self, ivar: &Name) {
        if !self.order.contains(ivar) {
            self.order.push(ivar.clone());
        }
        self.now.give(ivar);
    }

    /// Follows a call on the object itself.
    fn own(&mut self, name: &str) -> Result<()> {
        match self.an.method(Receiver::Instance(self.class), name) {
            MethodFact::Ruby { method, .. } => return self.method(method),
            MethodFact::AttrReader { ivar, .. } => self.now.look(&ivar),
            MethodFact::AttrWriter { ivar, .. } => self.give(&ivar),
            MethodFact::Builtin { .. } => match name {
                "raise" | "fail" => self.now.dead = true,
                "rand" | "Integer" | "Float" | "loop" | "block_given?" | "lambda" | "proc" | "class" | "is_a?"
                | "kind_of?" | "instance_of?" | "nil?" | "respond_to?" | "==" | "!=" | "equal?" | "frozen?"
                | "freeze" | "!" => {}
                _ => self.now.open = true,
            },
            MethodFact::Foreign { .. } | MethodFact::Missing { .. } => self.now.open = true,
        }
        Ok(())
    }
}
