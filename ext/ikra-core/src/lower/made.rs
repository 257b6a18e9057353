//! `new`, and arrays that kernels make: rows and their first contents.
//!
//! Here: the heap of a row, the ivars that start as nil, the elements of literals. Not here: `initialize` (a call like
//! any other), and which things outlive their job ([`crate::infer::made`]).

use super::body::Body;
use super::calls::{Arg, How, Keyword};
use super::tables::Form;
use super::value::Val;
use crate::diagnostic::Span;
use crate::error::Result;
use crate::id::{ArrayKind, ClassId};
use crate::infer::append::{STORE_LIST, is_new_list};
use crate::infer::builtins::Builtin;
use crate::infer::calls::{Args, Target};
use crate::infer::made::{STORE, Thing, array_builder, hash_maker, string_maker};
use crate::ir::{Cmp, HeapId, Op, Operand, Scalar, SiteId, Space, Stmt, Trap};
use crate::layout::schema::{NO_ORIGIN, Slot};
use crate::syntax::ast::Node;
use crate::types::{Atom, Prims, Reach, Repr, Ty, Unit};
use crate::world::{hashes, values, well_known};

impl Body<'_, '_> {
    /// The result of `new` or `allocate`.
    ///
    /// # Errors
    /// As inference.
    pub fn new_outcome(
        &mut self,
        builtin: Builtin,
        atom: Atom,
        types: &Args,
        block: Option<&(Val, Ty)>,
        how: How,
    ) -> Result<Ty> {
        let Atom::Module(class) = atom else { return Ok(Ty::never()) };
        if class == well_known::ARRAY
            && builtin == Builtin::New
            && block.is_some()
            && (1..=2).contains(&types.positional.len())
            && let Some(method) = array_builder()
        {
            return self.outcome(&Target::Ruby(method), (atom, Reach::Any), "new", types, block, how);
        }
        if class == well_known::ARRAY && builtin == Builtin::New {
            let gives = types.positional.len() <= 2;
            let kind = self.an.made_kind(self.here.spec, how.span);
            return Ok(if gives { Ty::array(kind).reached(Reach::Fresh) } else { Ty::never() });
        }
        if class == well_known::HASH && builtin == Builtin::New {
            return self.outcome(&Target::Ruby(hash_maker()), (atom, Reach::Any), "new", types, block, how);
        }
        if class == well_known::STRING && builtin == Builtin::New {
            return self.outcome(&Target::Ruby(string_maker()), (atom, Reach::Any), "new", types, block, how);
        }
        let class = self.an.makes(class, "new").map_err(|r| self.refused(r, how.span))?;
        let object = Ty::object(class, Reach::Fresh);
        if builtin == Builtin::Allocate {
            return Ok(if types.positional.is_empty() { object } else { Ty::never() });
        }
        let (target, how) = self.initialize(Atom::Object(class), how)?;
        let mut types = Args { void: true, ..types.clone() };
        match self.an.data_members(class, types.positional.len(), !types.keywords.is_empty()) {
            Some(Ok(names)) => {
                types.literals.clear();
                types.keywords.splice(0..0, names.into_iter().zip(std::mem::take(&mut types.positional)));
            }
            Some(Err(_)) => return Ok(Ty::never()),
            None => {}
        }
        let ty = self.outcome(&target, (Atom::Object(class), Reach::Fresh), "initialize", &types, block, how)?;
        Ok(if ty.is_never() { ty } else { object })
    }

    fn initialize(&mut self, atom: Atom, how: How) -> Result<(Target, How)> {
        let target = self.an.target(self.here.spec, atom, "initialize", true).map_err(|r| self.refused(r, how.span))?;
        Ok((target, How { on_self: true, void: true, bare: false, ..how }))
    }

    /// `Class#new` and `Class#allocate`.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn new_object(
        &mut self,
        builtin: Builtin,
        atom: Atom,
        args: &[Arg],
        keywords: &[Keyword],
        block: Option<(Val, Ty)>,
        how: How,
    ) -> Result<Option<Val>> {
        let Atom::Module(class) = atom else { return Ok(None) };
        if class == well_known::ARRAY
            && builtin == Builtin::New
            && block.is_some()
            && (1..=2).contains(&args.len())
            && let Some(method) = array_builder()
        {
            let (receiver, types) =
                (Val::Unit(Unit::Module(class)), Args { void: how.void, ..Args::of_values(args, keywords) });
            return self.inline(method, (atom, Reach::Any), receiver, args, keywords, &types, block, how.span);
        }
        if class == well_known::ARRAY && builtin == Builtin::New {
            return self.new_array(args, how);
        }
        if class == well_known::HASH && builtin == Builtin::New {
            let receiver = Val::Unit(Unit::Module(class));
            let types = Args { void: how.void, ..Args::of_values(args, keywords) };
            return self.inline(hash_maker(), (atom, Reach::Any), receiver, args, keywords, &types, block, how.span);
        }
        if class == well_known::STRING && builtin == Builtin::New {
            let receiver = Val::Unit(Unit::Module(class));
            let types = Args { void: how.void, ..Args::of_values(args, keywords) };
            return self.inline(string_maker(), (atom, Reach::Any), receiver, args, keywords, &types, block, how.span);
        }
        let given = args.len() + usize::from(!keywords.is_empty());
        if builtin == Builtin::Allocate && given > 0 {
            let message = format!("wrong number of arguments (given {given}, expected 0)");
            self.trap(Trap::Raise { class: "ArgumentError", message }, None);
            return Ok(None);
        }
        let (mut args, mut keywords) = (args.to_vec(), keywords.to_vec());
        match self.an.data_members(class, args.len(), !keywords.is_empty()) {
            Some(Ok(names)) if builtin == Builtin::New => {
                keywords
                    .splice(0..0, names.into_iter().zip(args.drain(..)).map(|(name, (val, ty, _))| (name, val, ty)));
            }
            Some(Err(message)) if builtin == Builtin::New => {
                self.trap(Trap::Raise { class: "ArgumentError", message }, None);
                return Ok(None);
            }
            _ => {}
        }
        let (hierarchy, position) = self.t.position(class);
        let space = Space::Class { hierarchy, first: position, last: position };
        let (heap, site) = self.heap(space, Thing::Class(class));
        let id = self.cx.b.alloc(Scalar::I32, heap, Operand::I64(1), site);
        if self.an.copies(class) {
            self.put_origin(hierarchy, id, Operand::I32(NO_ORIGIN as i32));
        }
        self.begin_unfrozen(class, hierarchy, id);
        let unset: Vec<Slot> = self
            .t
            .fields_of(class)
            .filter(|(ivar, _)| self.an.given_at_birth(class, ivar).is_none())
            .map(|(_, slot)| slot)
            .collect();
        for slot in unset {
            self.store_slot(&slot, id, Val::NIL);
        }
        self.t.makes(class, |ivar| self.an.given_at_birth(class, ivar));
        let object = Val::Ref(hierarchy, id);
        if builtin == Builtin::Allocate {
            return Ok(Some(object));
        }
        let ty = Ty::object(class, Reach::Fresh);
        let (_, how) = self.initialize(Atom::Object(class), how)?;
        let (_, given) = self.call_target((object, &ty), "initialize", &args, &keywords, block, how)?;
        Ok((!given.is_never()).then_some(object))
    }

    /// A new object of the same class, with the same contents.
    pub fn copy_of(&mut self, class: ClassId, object: Operand) -> Val {
        let (hierarchy, position) = self.t.position(class);
        let slots: Vec<Slot> = self.t.fields_of(class).map(|(_, slot)| slot).collect();
        let vals: Vec<Val> = slots.iter().map(|slot| self.load_slot(slot, object)).collect();
        let space = Space::Class { hierarchy, first: position, last: position };
        let (heap, site) = self.heap(space, Thing::Class(class));
        let id = self.cx.b.alloc(Scalar::I32, heap, Operand::I64(1), site);
        let column = self.t.origin(hierarchy);
        self.t.columns[column.index()].read = true;
        let origin = self.cx.b.load(Scalar::I32, column, object);
        self.put_origin(hierarchy, id, origin);
        self.begin_unfrozen(class, hierarchy, id);
        for (slot, val) in slots.iter().zip(vals) {
            self.store_slot(slot, id, val);
        }
        self.t.reads(class);
        self.t.makes(class, |ivar| self.an.given_at_birth(class, ivar));
        Val::Ref(hierarchy, id)
    }

    fn put_origin(&mut self, hierarchy: u32, id: Operand, origin: Operand) {
        let column = self.t.origin(hierarchy);
        self.t.columns[column.index()].written = true;
        self.cx.b.store(column, id, origin);
    }

    /// Clears the frozen flag of a new object, since rows are used again.
    fn begin_unfrozen(&mut self, class: ClassId, hierarchy: u32, id: Operand) {
        if self.an.may_freeze(class) {
            let column = self.t.frozen(hierarchy);
            self.put_flag(column, id, false);
        }
    }

    /// An object of a class whose objects consist of their parts alone.
    pub fn new_value(&mut self, class: ClassId, parts: &[Val]) -> Val {
        self.new_of_parts(class, values::parts(class), parts)
    }

    /// A Hash of these parts, made at a position.
    pub fn new_hash(&mut self, parts: &[Val], span: Span) -> Val {
        let class = self.an.made_hash(self.here.spec, span);
        self.new_of_parts(class, &hashes::MADE_PARTS, parts)
    }

    /// `{ key => value }`
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn hash_literal(&mut self, node: &Node, pairs: &[(Node, Node)]) -> Result<Val> {
        let ty = self.ty(node);
        let atom = Atom::Module(well_known::HASH);
        let receiver = Val::Unit(Unit::Module(well_known::HASH));
        let types = Args::default();
        let span = node.span;
        let made = self.inline(hash_maker(), (atom, Reach::Any), receiver, &[], &[], &types, None, span)?;
        let Some(made) = made else { return Ok(Val::NEVER) };
        for (key, value) in pairs {
            let mut pair = Vec::new();
            for item in [key, value] {
                let val = self.held(item)?;
                if self.is_never(item) || self.cx.b.ended() {
                    return Ok(Val::NEVER);
                }
                pair.push((val, self.ty(item), None));
            }
            let store = if is_new_list(value, false) { STORE_LIST } else { STORE };
            self.call_values((made, &ty), store, &pair, &[], true, key.span, key.span)?;
        }
        Ok(made)
    }

    fn new_of_parts(&mut self, class: ClassId, names: &[&str], parts: &[Val]) -> Val {
        let (hierarchy, position) = self.t.position(class);
        let space = Space::Class { hierarchy, first: position, last: position };
        let (heap, site) = self.heap(space, Thing::Class(class));
        let id = self.cx.b.alloc(Scalar::I32, heap, Operand::I64(1), site);
        self.t.makes(class, |ivar| self.an.given_at_birth(class, ivar));
        for (part, val) in names.iter().zip(parts) {
            let Some(slot) = self.t.field(class, &(*part).into()).map(|f| f.slot.clone()) else { continue };
            self.store_slot(&slot, id, *val);
        }
        Val::Ref(hierarchy, id)
    }

    /// A Range in registers from a Range object whose ends are of the form's kind.
    pub fn unboxed(&mut self, object: Val, form: Form) -> Val {
        let atom = Atom::Object(well_known::RANGE);
        let part = |s: &mut Self, at: usize| s.read_field(atom, object, &values::parts(well_known::RANGE)[at].into());
        let (from, to, exclusive) = (part(self, 0), part(self, 1), part(self, 2));
        let exclusive = self.truth(exclusive);
        let range = if form == Form::IntRange { Prims::INT_RANGE } else { Prims::FLOAT_RANGE };
        self.range_of(range, from, to, exclusive)
    }

    fn heap(&mut self, space: Space, thing: Thing) -> (HeapId, SiteId) {
        let heap = self.t.heap(space, !self.an.stays(thing));
        (heap, self.cx.site(Trap::Grow(heap), vec![Repr::Int]))
    }

    /// Takes rows for an array of this length. Returns the slot, the offset and the array.
    pub fn rows(&mut self, kind: ArrayKind, length: Operand) -> Result<(Slot, Operand, Val)> {
        let field = self.t.array(self.an, kind)?;
        field.written = true;
        let (kind, slot) = (field.kind, field.slot.clone());
        let (heap, site) = self.heap(Space::Array(kind), Thing::Array(kind));
        // An array's offset is its identity, so an empty array has a row, too.
        let count = if self.an.has_room(kind) { self.room(length) } else { length };
        let count = match count {
            Operand::I64(n) => Operand::I64(n.max(1)),
            length => {
                let none = self.cx.b.icmp(Cmp::Eq, length, Operand::I64(0));
                self.cx.b.select(Scalar::I64, none, Operand::I64(1), length)
            }
        };
        let offset = self.cx.b.alloc(Scalar::I64, heap, count, site);
        if self.an.freezes_arrays() {
            let column = self.t.frozen_arrays(self.an, kind)?;
            self.put_flag(column, offset, false);
        }
        let high = self.cx.b.i64(Op::Shl, &[offset, Operand::I64(32)]);
        let packed = self.cx.b.i64(Op::Or, &[high, length]);
        Ok((slot, offset, Val::Array(kind, packed)))
    }

    /// `[a, b, c]`
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn array_literal(&mut self, node: &Node, items: &[Node]) -> Result<Val> {
        let mut vals = Vec::new();
        for item in items {
            let val = self.held(item)?;
            let ty = self.ty(item);
            let element = self.an.as_element(ty.clone());
            vals.push(match *element.procs {
                [id] if element != ty => Val::Unit(Unit::Proc(id)),
                _ => val,
            });
            if self.is_never(item) || self.cx.b.ended() {
                return Ok(Val::NEVER);
            }
        }
        self.at(node.span);
        self.array_of(&vals, node.span)
    }

    /// An array of values, made at a position.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn array_of(&mut self, vals: &[Val], span: Span) -> Result<Val> {
        let kind = self.an.made_kind(self.here.spec, span);
        let (slot, offset, array) = self.rows(kind, Operand::I64(vals.len() as i64))?;
        for (i, val) in vals.iter().enumerate() {
            let row = self.cx.b.i64(Op::Add, &[offset, Operand::I64(i as i64)]);
            self.store_slot(&slot, row, *val);
        }
        Ok(array)
    }

    /// `Array.new`, `Array.new(n)`, `Array.new(n, x)`.
    fn new_array(&mut self, args: &[Arg], how: How) -> Result<Option<Val>> {
        let kind = self.an.made_kind(self.here.spec, how.span);
        if args.len() > 2 {
            let message = format!("wrong number of arguments (given {}, expected 0..2)", args.len());
            self.trap(Trap::Raise { class: "ArgumentError", message }, None);
            return Ok(None);
        }
        let Some((length, ..)) = args.first() else {
            let (_, _, array) = self.rows(kind, Operand::I64(0))?;
            return Ok(Some(array));
        };
        let Val::Int(length) = *length else { return Ok(None) };
        let raise = |message: &str| Trap::Raise { class: "ArgumentError", message: message.into() };
        let negative = self.cx.b.icmp(Cmp::Lt, length, Operand::I64(0));
        let site = self.cx.site(raise("negative array size"), vec![]);
        self.cx.b.trap_if(negative, site, vec![]);
        let large = self.cx.b.icmp(Cmp::Gt, length, Operand::I64(i64::MAX / 8));
        let site = self.cx.site(raise("array size too big"), vec![]);
        self.cx.b.trap_if(large, site, vec![]);
        let (slot, offset, array) = self.rows(kind, length)?;
        if slot.value.is_some() || slot.tag.is_some() {
            let val = args.get(1).map_or(Val::NIL, |a| a.0);
            let i = self.cx.b.temp(Scalar::I64);
            self.cx.b.set(i, Operand::I64(0));
            let done = self.cx.b.label();
            self.cx.b.open();
            let end = self.cx.b.icmp(Cmp::Ge, i.into(), length);
            self.cx.b.when(end, |b| b.push(Stmt::Break(done)));
            self.cx.b.push(Stmt::Poll);
            let row = self.cx.b.i64(Op::Add, &[offset, i.into()]);
            self.store_slot(&slot, row, val);
            self.cx.b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
            let body = self.cx.b.close();
            self.cx.b.push(Stmt::Loop { label: done, body });
        }
        Ok(Some(array))
    }
}
