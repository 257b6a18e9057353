//! Lowers one body: its variables, its control flow, and the conversion of values between forms.
//!
//! Here: every node of the tree except calls ([`super::calls`]) and slots ([`super::slots`]). Not here: types. Lowering
//! reads them from the finished analysis, node by node. Invariant: [`Body::eval`] returns a value in the form of the
//! node's type, or ends the cursor's list.

use super::blocks::Here;
use super::numbers;
use super::rescue::Exit;
use super::tables::{Form, Tables};
use super::value::Val;
use super::{Cx, Shared};
use crate::diagnostic::{Diagnostic, Span};
use crate::error::{Error, Result};
use crate::id::ProcId;
use crate::infer::append::{READY_OR_NEW, STORE_LIST, op_makes_list, storing};
use crate::infer::blocks::ProcKind;
use crate::infer::calls::{divided, makes_no_array};
use crate::infer::{Analysis, Shape, SpecId, takes_apart};
use crate::ir::build::Builder;
use crate::ir::{Cmp, ColumnId, LabelId, Op, Operand, Scalar, Stmt, Trap, VarId};
use crate::layout::schema::{RootParam, Slot};
use crate::syntax::ast::{self, AssignOp, Kind, LocalId, Name, Node, Origin, Params, Pattern};
use crate::types::{Atom, Prims, Repr, Tag, Ty, Unit};
use crate::world::{Root, well_known};
use std::collections::HashMap;

/// The receiver of an assignment's target, and the arguments of its index.
type Owner = ((Val, Ty), Vec<super::calls::Arg>);

/// Registers that hold a value of one form.
#[derive(Clone, Debug)]
pub struct Place {
    pub form: Form,
    pub vars: Vec<VarId>,
}

/// A loop, a block in a loop, or the section's block.
pub struct Frame {
    pub next: LabelId,
    /// The place for the value of `next`. None: the value is not used.
    pub next_place: Option<Place>,
    /// The target of `break`. None: the section itself, where `break` is a trap.
    pub brk: Option<(LabelId, Place)>,
}

/// A captured local to which the section's block contributes, in registers.
#[derive(Clone)]
pub struct Contributions {
    pub local: LocalId,
    pub place: Place,
    /// I64: the tick of the last contribution, -1 before the first.
    pub written: VarId,
    /// The columns for both.
    pub slot: Slot,
    pub column: ColumnId,
}

pub struct Body<'p, 'w> {
    pub cx: Cx<'p>,
    pub an: &'p mut Analysis<'w>,
    pub t: &'p mut Tables,
    pub here: Here,
    /// The callers of the current body, which is inlined, as in inference.
    pub others: Vec<Here>,
    /// The target of `break` in each literal block.
    pub block_exits: HashMap<ProcId, (LabelId, Place)>,
    /// The places of the values that Procs keep, which the function makes.
    pub kept: HashMap<ProcId, Vec<Place>>,
    pub frames: Vec<Frame>,
    pub contributions: Vec<Contributions>,
    /// The number of pairs that the element has added to the section's tables for a captured Hash.
    pub counted: Option<Place>,
    pub rescue: super::rescue::Pending,
}

impl<'p, 'w> Body<'p, 'w> {
    pub fn new(
        name: String,
        results: Vec<Scalar>,
        an: &'p mut Analysis<'w>,
        t: &'p mut Tables,
        shared: &'p mut Shared,
        spec: SpecId,
    ) -> Self {
        let unit = an.spec(spec).unit.clone();
        let site = an.spec(spec).called_at.clone();
        let (path, line) = match &site {
            Some((user, span)) => (user.source.path.clone(), user.source.line_of(span.start)),
            None => (unit.source.path.clone(), unit.source.first_line),
        };
        let section = an.spec(spec).key.method.is_none();
        Self {
            cx: Cx { b: Builder::new(name, results), shared, path, line },
            an,
            t,
            here: Here { site, ..Here::new(spec, unit, section) },
            others: Vec::new(),
            block_exits: HashMap::new(),
            kept: HashMap::new(),
            frames: Vec::new(),
            contributions: Vec::new(),
            counted: None,
            rescue: super::rescue::Pending::default(),
        }
    }

    // ---- types and forms ----

    pub fn ty(&self, node: &Node) -> Ty {
        self.an.spec(self.here.spec).ty(node.id).clone()
    }

    pub fn is_never(&self, node: &Node) -> bool {
        self.an.spec(self.here.spec).ty(node.id).is_never()
    }

    pub fn error(&self, span: Span, message: impl Into<String>) -> Error {
        let (source, span) = self.place_in_source(span);
        Diagnostic::new(&source, span, message).into()
    }

    /// # Errors
    /// A type that mixes exceptions with other kinds.
    pub fn form(&self, ty: &Ty, span: Span) -> Result<Form> {
        self.t.form(ty).ok_or_else(|| {
            debug_assert!(ty.may_be(Prims::EXCEPTION), "all else has a form");
            self.error(span, "kernels cannot hold an exception where something else may be")
        })
    }

    /// New registers for a form.
    pub fn place(&mut self, form: Form, name: Option<&Name>) -> Place {
        let scalars = form.scalars();
        let vars = scalars.iter().map(|s| self.cx.b.var(*s, name.cloned())).collect();
        Place { form, vars }
    }

    /// Sets registers to zero, which is nil for a union. That is a variable's value before its first assignment.
    pub fn clear(&mut self, place: &Place) {
        for (var, scalar) in place.vars.iter().zip(place.form.scalars()) {
            self.cx.b.set(*var, Operand::zero(scalar));
        }
    }

    pub fn store(&mut self, place: &Place, val: Val) {
        if self.cx.b.ended() {
            return;
        }
        let val = self.cast(val, place.form);
        for (var, operand) in place.vars.iter().zip(operands(val)) {
            self.cx.b.set(*var, operand);
        }
    }

    pub fn load(&self, place: &Place) -> Val {
        from_operands(place.form, &place.vars.iter().map(|v| Operand::Var(*v)).collect::<Vec<_>>())
    }

    /// The value in another form: converted to a union, or extracted from a union whose kind is known.
    pub fn cast(&mut self, val: Val, form: Form) -> Val {
        let val = match (val, form) {
            (Val::IntRange { from, to, exclusive }, Form::One(Repr::Union | Repr::Ref(_))) => {
                self.new_value(well_known::RANGE, &[Val::Int(from), Val::Int(to), Val::Bool(exclusive)])
            }
            (Val::FloatRange { from, to, exclusive }, Form::One(Repr::Union | Repr::Ref(_))) => {
                self.new_value(well_known::RANGE, &[Val::Float(from), Val::Float(to), Val::Bool(exclusive)])
            }
            (Val::Ref(..), Form::IntRange | Form::FloatRange) => return self.unboxed(val, form),
            (Val::Union { .. }, Form::IntRange | Form::FloatRange) => {
                let (hierarchy, _) = self.t.position(well_known::RANGE);
                let object = self.cast(val, Form::One(Repr::Ref(hierarchy)));
                return self.unboxed(object, form);
            }
            _ => val,
        };
        let b = &mut self.cx.b;
        match (val, form) {
            (Val::Unit(Unit::Never), _) => {
                let zeroes: Vec<Operand> = form.scalars().into_iter().map(Operand::zero).collect();
                from_operands(form, &zeroes)
            }
            (_, Form::One(Repr::Unit(unit))) => Val::Unit(unit),
            (Val::Unit(_), Form::Exception) => from_operands(form, &super::rescue::NO_EXCEPTION),
            (Val::Union { .. }, Form::One(Repr::Union)) => val,
            (_, Form::One(Repr::Union)) => {
                let (tag, payload) = val.tagged(b);
                Val::Union { tag, payload }
            }
            (Val::Union { tag, payload }, Form::One(repr)) => match repr {
                Repr::Bool => Val::Bool(b.icmp(crate::ir::Cmp::Eq, tag, Operand::I32(Tag::TRUE))),
                Repr::Int => Val::Int(payload),
                Repr::Float => Val::Float(b.f64(Op::FloatFromBits, &[payload])),
                Repr::Sym => Val::Sym(payload),
                Repr::Str => Val::Str(payload),
                Repr::Ref(h) => Val::Ref(h, b.op(Scalar::I32, Op::Narrow, &[payload])),
                Repr::Array(kind) => Val::Array(kind, payload),
                Repr::Unit(_) | Repr::Union => unreachable!("matched above"),
            },
            (Val::Unit(Unit::True), Form::One(Repr::Bool)) => Val::Bool(Operand::Bool(true)),
            (Val::Unit(Unit::False), Form::One(Repr::Bool)) => Val::Bool(Operand::Bool(false)),
            _ => val,
        }
    }

    /// The value in the form of a type.
    ///
    /// # Errors
    /// A type that mixes exceptions with other kinds.
    pub fn cast_to(&mut self, val: Val, ty: &Ty, span: Span) -> Result<Val> {
        let form = self.form(ty, span)?;
        Ok(self.cast(val, form))
    }

    /// The representation and the words of a value in a trap.
    pub fn trap_operand(&mut self, val: Val) -> (Repr, Vec<Operand>) {
        numbers::carried(val).unwrap_or_else(|(class, _)| (Repr::Unit(Unit::Module(class)), vec![]))
    }

    /// Raises at the current line, which ends the cursor's list.
    pub fn trap(&mut self, trap: Trap, operand: Option<Val>) {
        let (reprs, words) = match operand {
            Some(val) => {
                let (repr, words) = self.trap_operand(val);
                (vec![repr], words)
            }
            None => (vec![], vec![]),
        };
        let site = self.cx.site(trap, reprs);
        self.cx.b.trap(site, words);
    }

    /// Ends the cursor's list after an operation that does not return, where control never comes.
    pub fn unreachable(&mut self) {
        if !self.cx.b.ended() {
            self.trap(Trap::limit("RuntimeError", crate::ir::UNREACHABLE), None);
        }
    }

    pub fn at(&mut self, span: Span) {
        if self.here.site.is_some() {
            // within the prelude, the line stays that of the user's call
            return;
        }
        self.mark(span);
        self.cx.line = self.here.unit.source.line_of(span.start);
    }

    /// Records the position in the program, for backends that look for races.
    fn mark(&mut self, span: Span) {
        if self.cx.shared.options.races {
            self.cx.line = self.here.unit.source.line_of(span.start);
            let site = self.cx.site(Trap::Race, vec![]);
            self.cx.b.push(Stmt::Place(site));
        }
    }

    /// Whether a value is neither nil nor false.
    pub fn truth(&mut self, val: Val) -> Operand {
        match val {
            Val::Unit(Unit::Nil | Unit::False | Unit::Never) => Operand::Bool(false),
            Val::Bool(v) => v,
            Val::Union { tag, .. } => self.cx.b.icmp(crate::ir::Cmp::Ge, tag, Operand::I32(Tag::TRUE)),
            Val::Exception { code, .. } => self.cx.b.icmp(crate::ir::Cmp::Ne, code, Operand::I32(0)),
            _ => Operand::Bool(true),
        }
    }

    // ---- variables ----

    /// The registers of a local, made at its first use; they start as nil.
    pub fn local(&mut self, local: LocalId) -> Result<Place> {
        if let Some(place) = &self.here.locals[local.index()] {
            return Ok(place.clone());
        }
        let ty = self.an.local(self.here.spec, local).clone();
        let form = self.form(&ty, self.here.unit.body.span)?;
        let name = self.here.unit.locals[local.index()].name.clone();
        let place = self.place(form, Some(&name));
        self.here.locals[local.index()] = Some(place.clone());
        Ok(place)
    }

    /// Makes the registers of all locals and clears them, before any other code.
    ///
    /// # Errors
    /// A type that mixes exceptions with other kinds.
    pub fn declare_locals(&mut self) -> Result<()> {
        for i in 0..self.here.unit.locals.len() {
            let local = LocalId::new(i);
            if self.an.local(self.here.spec, local).is_never() || self.capture(local).is_some() {
                continue;
            }
            let place = self.local(local)?;
            self.clear(&place);
        }
        Ok(())
    }

    /// Clears the section block's own variables, before each element and tick.
    ///
    /// # Errors
    /// A type that mixes exceptions with other kinds.
    pub fn declare_block_locals(&mut self) -> Result<()> {
        for i in 0..self.here.unit.locals.len() {
            let local = LocalId::new(i);
            let captured = self.here.unit.locals[i].origin == Origin::Captured;
            if self.an.local(self.here.spec, local).is_never() || captured {
                continue;
            }
            let place = self.local(local)?;
            self.clear(&place);
        }
        Ok(())
    }

    /// The root for a captured local that is only read, and so is a launch parameter.
    fn capture(&self, local: LocalId) -> Option<Root> {
        let acc = &self.an.accumulators;
        if !self.here.section {
            return self.an.around(self.here.spec, local);
        }
        let here = &self.here.unit.locals[local.index()];
        let read =
            here.origin == Origin::Captured && !acc.reduced.contains_key(&local) && !acc.last.contains_key(&local);
        read.then(|| Root::Capture(here.name.clone()))
    }

    pub fn read_local(&mut self, local: LocalId, ty: &Ty, span: Span) -> Result<Val> {
        if let Some(root) = self.capture(local) {
            let name = self.here.unit.locals[local.index()].name.clone();
            let whole = self.an.local(self.here.spec, local).clone();
            let val = self.root(&root, &whole, &name)?;
            return self.cast_to(val, ty, span);
        }
        let place = self.local(local)?;
        let val = self.load(&place);
        self.cast_to(val, ty, span)
    }

    pub fn write_local(&mut self, local: LocalId, val: Val) -> Result<()> {
        let place = self.local(local)?;
        self.store(&place, val);
        // only a local of the section itself, not one of an inlined method
        if let Some(c) = self.contributions.iter().find(|c| self.here.section && c.local == local) {
            // the tick of the last write decides which element's value wins
            let written = c.written;
            let tick = self.cx.b.i64(Op::Ctx(crate::ir::Ctx::Tick), &[]);
            self.cx.b.set(written, tick);
        }
        Ok(())
    }

    /// The value of a root, read from the launch parameters.
    ///
    /// # Errors
    /// A type that mixes exceptions with other kinds.
    pub fn root(&mut self, root: &Root, ty: &Ty, name: &str) -> Result<Val> {
        if let [one] = ty.procs.as_slice() {
            return Ok(Val::Unit(Unit::Proc(*one)));
        }
        let assumed = (self.an.facts.word(root), &*self.an.facts.alike(root).unwrap_or_default());
        let RootParam { repr, value, tag, to, exclusive, .. } = self.t.root(root, ty, name, assumed)?;
        let value = value.map(|param| self.t.params[param.index()].same.unwrap_or(param));
        let mut load =
            |param: Option<crate::ir::ParamId>, ty: Scalar| param.map(|p| self.cx.b.op(ty, Op::Param(p), &[]));
        if let (Some(from), Some(to), Some(exclusive)) = (value, to, exclusive) {
            let scalar = if repr == Repr::Int { Scalar::I64 } else { Scalar::F64 };
            let operands = [load(Some(from), scalar), load(Some(to), scalar), load(Some(exclusive), Scalar::Bool)];
            let operands: Vec<Operand> = operands.into_iter().flatten().collect();
            let form = if repr == Repr::Int { Form::IntRange } else { Form::FloatRange };
            return Ok(from_operands(form, &operands));
        }
        let form = Form::One(repr);
        let mut operands = Vec::new();
        if repr == Repr::Union {
            operands.extend(load(tag, Scalar::I32));
        }
        if let Some(scalar) = form.scalars().last() {
            operands.extend(load(value, *scalar));
        }
        Ok(from_operands(form, &operands))
    }

    pub fn self_value(&mut self) -> Result<Val> {
        if let Some(val) = self.here.self_val {
            return Ok(val);
        }
        let ty = self.self_ty();
        self.root(&Root::SelfObject, &ty, "self")
    }

    pub fn self_ty(&mut self) -> Ty {
        if !self.here.section {
            return self.an.spec(self.here.spec).key.self_ty.clone();
        }
        self.an.root(self.here.spec, &Root::SelfObject).unwrap_or_else(|_| Ty::module(crate::world::well_known::KERNEL))
    }

    // ---- expressions ----

    /// Lowers a node and returns its value.
    ///
    /// # Errors
    /// A type that mixes exceptions with other kinds, which inference does not check.
    pub fn eval(&mut self, node: &Node) -> Result<Val> {
        if self.cx.b.ended() {
            return Ok(Val::NEVER);
        }
        if !self.visited(node) {
            self.unreachable();
            return Ok(Val::NEVER);
        }
        self.at(node.span);
        let val = self.eval_kind(node)?;
        let ty = self.ty(node);
        if ty.is_never() {
            self.unreachable();
            return Ok(Val::NEVER);
        }
        self.cast_to(val, &ty, node.span)
    }

    fn eval_kind(&mut self, node: &Node) -> Result<Val> {
        if self.here.section && self.an.accumulators.nodes.contains(&node.id) {
            return self.contribute(node);
        }
        let ty = self.ty(node);
        Ok(match &node.kind {
            Kind::Nil => Val::NIL,
            Kind::True => Val::bool(true),
            Kind::False => Val::bool(false),
            Kind::Int(n) => Val::int(*n),
            Kind::BigInt(digits) => match digits.parse::<u64>() {
                Ok(n) => Val::Int(super::numbers::unsigned(&mut self.cx, n)),
                Err(_) => return Err(self.error(node.span, "this Integer is beyond 64 bits")),
            },
            Kind::Float(x) => Val::Float(Operand::float(*x)),
            Kind::Sym(name) => Val::Sym(Operand::I64(crate::world::symbol_hash(name))),
            Kind::Str(bytes) => {
                let frozen = self.here.unit.source.frozen_strings;
                Val::Str(Operand::I64(self.t.string_literal(bytes, frozen).0 as i64))
            }
            Kind::DStr(text) => self.eval(text)?,
            Kind::Regexp(_) => match ty.atoms()[..] {
                [Atom::Regexp(id)] => Val::Unit(Unit::Proc(id)),
                _ => Val::NEVER,
            },
            Kind::SelfRef => self.self_value()?,
            Kind::Local(local) => self.read_local(*local, &ty, node.span)?,
            Kind::Ivar(_) if let [Atom::Proc(id) | Atom::Regexp(id)] = ty.atoms()[..] => Val::Unit(Unit::Proc(id)),
            Kind::Ivar(ivar) => {
                let receiver = self.self_value()?;
                let receiver_ty = self.self_ty();
                self.read_ivar(receiver, &receiver_ty, ivar, &ty, node.span)?
            }
            Kind::Const(_) => self.constant(node, &ty)?,
            Kind::Range { from, to, exclusive } => {
                // the Range stays as it is, even if a block that it iterates assigns these variables
                let end =
                    |s: &mut Self, end: &Option<Box<Node>>| end.as_ref().map_or(Ok(Val::NIL), |node| s.held(node));
                let mut first = end(self, from)?;
                if to.as_ref().is_some_and(|to| self.may_assign(to)) {
                    first = self.copied(first);
                }
                let (from, to) = (first, end(self, to)?);
                self.range(&ty, from, to, *exclusive)
            }
            Kind::Assign { target, value } => {
                let owner = self.owner(target)?;
                if self.cx.b.ended() {
                    return Ok(Val::NEVER);
                }
                if let (ast::Target::Attr { safe: true, .. }, Some((object, _))) = (target, &owner) {
                    let place = self.result_place(&ty, node.span)?;
                    let there = self.is_not_nil(object.0);
                    self.branch(
                        there,
                        |s| {
                            let val = s.eval(value)?;
                            let value_ty = s.ty(value);
                            if !value_ty.is_never() {
                                s.assign_to(target, owner, val, &value_ty)?;
                                s.store(&place, val);
                            }
                            Ok(())
                        },
                        |s| {
                            s.store(&place, Val::NIL);
                            Ok(())
                        },
                    )?;
                    return Ok(self.load(&place));
                }
                let val = self.eval(value)?;
                if self.is_never(value) {
                    return Ok(Val::NEVER);
                }
                let value_ty = self.ty(value);
                let void = self.an.spec(self.here.spec).void.contains(&node.id);
                match (target, owner) {
                    (ast::Target::Index { span, .. }, Some(((object, receiver), mut args)))
                        if storing(&receiver, value, void) == STORE_LIST && args.len() == 1 =>
                    {
                        args.push((val, value_ty, None));
                        self.call_values((object, &receiver), STORE_LIST, &args, &[], true, *span, *span)?;
                    }
                    (_, owner) => self.assign_to(target, owner, val, &value_ty)?,
                }
                val
            }
            Kind::OpAssign { target, op, value } => self.op_assign(node, target, op, value)?,
            Kind::MultiAssign { before, rest, after, value } => {
                let targets: Vec<&ast::Target> = before.iter().chain(after).collect();
                let shape = Shape::of_list(before.len(), rest.is_some(), after.len());
                self.multi_assign(node, &targets, shape, value)?
            }
            Kind::Call(call) => self.call(node, call)?,
            Kind::Super { args, block } => self.super_call(node, args.as_deref(), block.as_ref())?,
            Kind::And(a, b) => self.and_or(node, a, b, true)?,
            Kind::Or(a, b) => self.and_or(node, a, b, false)?,
            Kind::Not(x) => {
                let val = self.eval(x)?;
                let truth = self.truth(val);
                Val::Bool(self.cx.b.bool(Op::Not, &[truth]))
            }
            Kind::If { cond, then, otherwise } => {
                let val = self.eval(cond)?;
                if self.is_never(cond) {
                    return Ok(Val::NEVER);
                }
                let test = self.truth(val);
                let place = self.result_place(&ty, node.span)?;
                self.branch(test, |s| s.eval_into(then, &place), |s| s.eval_into(otherwise, &place))?;
                self.load(&place)
            }
            Kind::Case { subject, whens, otherwise } => {
                self.case(subject.as_deref(), whens, otherwise, &ty, node.span)?
            }
            Kind::While { cond, body, body_first } => self.while_loop(cond, body, *body_first, &ty, node.span)?,
            Kind::For { target, over, body } => self.for_loop(target, over, body, &ty, node.span)?,
            Kind::Break(value) => {
                let val = self.optional(value.as_deref())?;
                self.leave(val, true);
                Val::NEVER
            }
            Kind::Next(value) => {
                let val = self.optional(value.as_deref())?;
                self.leave(val, false);
                Val::NEVER
            }
            Kind::Return(value) => {
                let val = self.optional(value.as_deref())?;
                self.give_back(val)?;
                Val::NEVER
            }
            Kind::Seq(items) => {
                let mut last = Val::NIL;
                for item in items {
                    last = self.eval(item)?;
                    if self.is_never(item) {
                        return Ok(Val::NEVER);
                    }
                }
                last
            }
            Kind::Begin { body, rescues, otherwise, ensure } => {
                self.begin(node, (body, otherwise.as_deref()), rescues, ensure.as_deref())?
            }
            Kind::Found => {
                self.leave_section(None);
                Val::NEVER
            }
            Kind::Retry => {
                self.retry();
                Val::NEVER
            }
            Kind::Spread { list, size, calls } => self.spread_call(*list, size, calls, &ty, node.span)?,
            Kind::Yield(args) => self.yielded(node, args)?,
            Kind::Array(items) => self.array_literal(node, items)?,
            Kind::Hash(pairs) => self.hash_literal(node, pairs)?,
            Kind::Lambda(block) => {
                let id = self.an.proc(self.here.spec, block.span, || ProcKind::Lambda(block.clone()));
                Val::Unit(Unit::Proc(id))
            }
            // the node's type is the answer
            Kind::Defined(asked) => {
                if let Kind::Const(path) = &asked.kind
                    && let ast::ConstBase::Of(base) = &path.base
                {
                    self.eval(base)?;
                }
                if matches!(asked.kind, Kind::Yield(_)) {
                    // asks for the block as a root, because a later call of the method around may have one
                    self.own_block(asked.span)?;
                }
                Val::bool(ty.may_be_truthy())
            }
            // the test of a `when *x`
            Kind::Splat(test) => self.eval(test)?,
            _ => return Err(self.error(node.span, "kernels do not know this")),
        })
    }

    fn optional(&mut self, node: Option<&Node>) -> Result<Val> {
        match node {
            Some(node) => self.eval(node),
            None => Ok(Val::NIL),
        }
    }

    /// `return`, or the end of a method.
    ///
    /// # Errors
    /// A type that mixes exceptions with other kinds.
    pub fn give_back(&mut self, val: Val) -> Result<()> {
        if self.cx.b.ended() {
            return Ok(());
        }
        if let Some((label, place)) = self.here.ret.clone() {
            self.jump(Exit::To(label, Some(place)), val);
            return Ok(());
        }
        let ret = self.an.spec(self.here.spec).ret.clone();
        let val = self.cast_to(val, &ret, self.here.unit.body.span)?;
        self.jump(Exit::Function, val);
        Ok(())
    }

    fn leave(&mut self, val: Val, is_break: bool) {
        let Some(frame) = self.frames.last() else { return };
        let exit = match (is_break, frame.brk.clone()) {
            (true, Some((label, place))) => Exit::To(label, Some(place)),
            (true, None) => Exit::Section,
            (false, _) => Exit::To(frame.next, frame.next_place.clone()),
        };
        self.jump(exit, val);
    }

    pub fn result_place(&mut self, ty: &Ty, span: Span) -> Result<Place> {
        let form = self.form(ty, span)?;
        let place = self.place(form, None);
        Ok(place)
    }

    pub fn eval_into(&mut self, node: &Node, place: &Place) -> Result<()> {
        let val = self.eval(node)?;
        if !self.is_never(node) {
            self.store(place, val);
        }
        Ok(())
    }

    /// A branch on a test. If the test is constant, only the side that is taken is lowered.
    pub fn branch(
        &mut self,
        test: Operand,
        then: impl FnOnce(&mut Self) -> Result<()>,
        otherwise: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        match test {
            Operand::Bool(true) => return then(self),
            Operand::Bool(false) => return otherwise(self),
            _ => {}
        }
        self.cx.b.open();
        let a = then(self);
        let then = self.cx.b.close();
        self.cx.b.open();
        let b = otherwise(self);
        let otherwise = self.cx.b.close();
        a?;
        b?;
        self.cx.b.push(Stmt::If { cond: test, then, otherwise });
        Ok(())
    }

    fn and_or(&mut self, node: &Node, a: &Node, b: &Node, and: bool) -> Result<Val> {
        let ty = &self.ty(node);
        let void = self.an.spec(self.here.spec).void.contains(&node.id);
        let left = self.eval(a)?;
        if self.is_never(a) {
            return Ok(Val::NEVER);
        }
        let test = self.truth(left);
        let place = self.result_place(ty, a.span)?;
        let keep = |s: &mut Self| {
            if !void {
                s.store_possible(&place, left);
            }
            Ok(())
        };
        if and {
            self.branch(test, |s| s.eval_into(b, &place), keep)?;
        } else {
            self.branch(test, keep, |s| s.eval_into(b, &place))?;
        }
        Ok(self.load(&place))
    }

    /// Stores a value whose type allows kinds that cannot occur here. Where the place has no form for a scalar, control
    /// never comes.
    fn store_possible(&mut self, place: &Place, val: Val) {
        let fits = match (val, place.form) {
            (Val::Union { .. } | Val::Unit(_), _) | (_, Form::One(Repr::Union | Repr::Unit(_))) => true,
            (Val::Bool(_), Form::One(r)) => r == Repr::Bool,
            (Val::Int(_), Form::One(r)) => r == Repr::Int,
            (Val::Float(_), Form::One(r)) => r == Repr::Float,
            (Val::Sym(_), Form::One(r)) => r == Repr::Sym,
            (Val::Str(_), Form::One(r)) => r == Repr::Str,
            (Val::Ref(..), Form::One(r)) => matches!(r, Repr::Ref(_)),
            (Val::Ref(..), Form::IntRange | Form::FloatRange) => true,
            (Val::Array(..), Form::One(r)) => matches!(r, Repr::Array(_)),
            (Val::IntRange { .. }, f) => matches!(f, Form::IntRange | Form::One(Repr::Ref(_))),
            (Val::FloatRange { .. }, f) => matches!(f, Form::FloatRange | Form::One(Repr::Ref(_))),
            (Val::Exception { .. }, f) => f == Form::Exception,
            _ => false,
        };
        let unit_mismatch = matches!((val, place.form), (Val::Unit(u), Form::One(r))
            if r != Repr::Union && r != Repr::Unit(u) && !(r == Repr::Bool && matches!(u, Unit::True | Unit::False)));
        if fits && !unit_mismatch {
            self.store(place, val);
        } else {
            self.unreachable();
        }
    }

    /// `from..to`. Raises ArgumentError if an end is NaN, which cannot be compared.
    fn range(&mut self, ty: &Ty, from: Val, to: Val, exclusive: bool) -> Val {
        if ty.is_never() {
            return Val::NEVER;
        }
        // a NaN is not compared with nil
        let open = from == Val::NIL || to == Val::NIL;
        for end in [from, to].into_iter().filter(|_| !open) {
            let nan = match end {
                Val::Float(end) => self.cx.b.bool(Op::FCmp(Cmp::Ne), &[end, end]),
                Val::Union { tag, payload } => {
                    let end = self.cx.b.f64(Op::FloatFromBits, &[payload]);
                    let nan = self.cx.b.bool(Op::FCmp(Cmp::Ne), &[end, end]);
                    let float = self.cx.b.icmp(Cmp::Eq, tag, Operand::I32(Tag::FLOAT));
                    self.cx.b.bool(Op::And, &[float, nan])
                }
                Val::Unit(Unit::Never) => return Val::NEVER,
                _ => continue,
            };
            let site =
                self.cx.site(Trap::Raise { class: "ArgumentError", message: "bad value for range".into() }, vec![]);
            self.cx.b.trap_if(nan, site, vec![]);
        }
        let exclusive = Operand::Bool(exclusive);
        if ty.may_be(Prims::RANGE) {
            return self.range_of(ty.prims, from, to, exclusive);
        }
        self.new_value(well_known::RANGE, &[from, to, Val::Bool(exclusive)])
    }

    /// The Integer that ends a Range from an Integer to a Float: a Range up to it has the same elements.
    fn last_integer(&mut self, to: Operand, exclusive: Operand) -> Operand {
        let b = &mut self.cx.b;
        let (above, below) = (b.f64(Op::FCeil, &[to]), b.f64(Op::FFloor, &[to]));
        let whole = b.select(Scalar::F64, exclusive, above, below);
        // greater values are replaced by the greatest Float below 2**63, which no loop reaches
        let bound = 9_223_372_036_854_774_784.0;
        let low = b.fcmp(Cmp::Gt, whole, Operand::float(-bound));
        let whole = b.select(Scalar::F64, low, whole, Operand::float(-bound));
        let high = b.fcmp(Cmp::Lt, whole, Operand::float(bound));
        let whole = b.select(Scalar::F64, high, whole, Operand::float(bound));
        b.i64(Op::FloatToInt, &[whole])
    }

    /// A Range in registers: of Integers, or of ends that are Floats or are converted to Floats.
    pub fn range_of(&mut self, range: Prims, from: Val, to: Val, exclusive: Operand) -> Val {
        if range == Prims::INT_RANGE {
            let to = match to {
                Val::Float(to) => Val::Int(self.last_integer(to, exclusive)),
                to => to,
            };
            let [from, to] = [from, to].map(|end| self.cast(end, Form::One(Repr::Int)));
            return match (from, to) {
                (Val::Int(from), Val::Int(to)) => Val::IntRange { from, to, exclusive },
                _ => Val::NEVER,
            };
        }
        let mut float = |v: Val| match v {
            Val::Int(v) => self.cx.b.f64(Op::IntToFloat, &[v]),
            v => match self.cast(v, Form::One(Repr::Float)) {
                Val::Float(v) => v,
                _ => Operand::float(0.0),
            },
        };
        let (from, to) = (float(from), float(to));
        Val::FloatRange { from, to, exclusive }
    }

    fn constant(&mut self, node: &Node, ty: &Ty) -> Result<Val> {
        let Kind::Const(path) = &node.kind else { return Ok(Val::NEVER) };
        if path.name.starts_with("@@") && self.an.assigns_class_variables && ast::variable_of(&path.name).is_none() {
            let scope = self.an.spec(self.here.spec).scope;
            if let Some(id) = self.an.world.constant(scope, None, &ast::cell(&path.name)) {
                let root = Root::Const(id);
                let object_ty = self.an.root(self.here.spec, &root).unwrap_or_default();
                let object = self.root(&root, &object_ty, &path.name)?;
                return self.read_ivar(object, &object_ty, &path.name[1..].into(), ty, node.span);
            }
        }
        let found = match &path.base {
            ast::ConstBase::Lexical => {
                let scope = self.an.spec(self.here.spec).scope;
                if scope == crate::prelude::SCOPE {
                    self.an.world.top_constant(&path.name)
                } else {
                    self.an.world.constant(scope, None, &path.name)
                }
            }
            ast::ConstBase::Top => self.an.world.top_constant(&path.name),
            ast::ConstBase::Of(base) => {
                self.eval(base)?;
                let scope = self.an.spec(self.here.spec).scope;
                match self.ty(base).atoms().as_slice() {
                    [Atom::Module(class)] => self.an.world.constant(scope, Some(*class), &path.name),
                    _ => None,
                }
            }
        };
        match found {
            // the value is not used, and its type need not be that of the root
            Some(_) if self.an.spec(self.here.spec).void.contains(&node.id) => Ok(Val::NIL),
            Some(id) => self.root(&Root::Const(id), ty, &path.name),
            None => {
                let within = match &path.base {
                    ast::ConstBase::Lexical => Some(self.an.world.scope_module(self.an.spec(self.here.spec).scope)),
                    ast::ConstBase::Top => None,
                    ast::ConstBase::Of(base) => match self.ty(base).atoms().as_slice() {
                        [Atom::Module(class)] => Some(*class),
                        _ => None,
                    },
                };
                let prefix = match within {
                    Some(class) if class != well_known::OBJECT => format!("{}::", self.an.class(class).name),
                    _ => String::new(),
                };
                let mut message = format!("uninitialized constant {prefix}{}", path.name);
                if path.name.starts_with("@@")
                    && let Some(class) = self.an.world.class_variables(self.an.spec(self.here.spec).scope)
                {
                    message = format!("uninitialized class variable {} in {}", path.name, self.an.class(class).name);
                }
                self.trap(Trap::Name { message, name: path.name.clone() }, None);
                Ok(Val::NEVER)
            }
        }
    }

    fn case(
        &mut self,
        subject: Option<&Node>,
        whens: &[ast::When],
        otherwise: &Node,
        ty: &Ty,
        span: Span,
    ) -> Result<Val> {
        let value = match subject {
            Some(node) => {
                let val = self.eval(node)?;
                if self.is_never(node) {
                    return Ok(Val::NEVER);
                }
                // an assignment to the variable in a body must not change the value for the tests
                let ty = self.ty(node);
                let form = self.form(&ty, node.span)?;
                let place = self.place(form, None);
                self.store(&place, val);
                Some((self.load(&place), ty))
            }
            None => None,
        };
        let place = self.result_place(ty, span)?;
        let label = self.cx.b.label();
        self.cx.b.open();
        for when in whens {
            let body_label = self.cx.b.label();
            let skip_label = self.cx.b.label();
            // block skip { block body { tests: break body … ; break skip } body … break out }
            self.cx.b.open();
            self.cx.b.open();
            for test in &when.tests {
                let test_val = self.eval(test)?;
                if self.cx.b.ended() {
                    break;
                }
                let test_ty = self.ty(test);
                let answer = match &value {
                    Some(_) if matches!(test.kind, Kind::Splat(_)) => test_val,
                    Some((val, subject_ty)) => {
                        let spec = self.an.spec(self.here.spec);
                        let subject_ty = spec.subjects.get(&test.id).unwrap_or(subject_ty).clone();
                        let val = self.cast_to(*val, &subject_ty, test.span)?;
                        self.case_eq(test, test_val, &test_ty, val, &subject_ty)?
                    }
                    None => test_val,
                };
                let truth = self.truth(answer);
                match truth {
                    Operand::Bool(false) => {}
                    Operand::Bool(true) => self.cx.b.push(Stmt::Break(body_label)),
                    truth => self.cx.b.when(truth, |b| b.push(Stmt::Break(body_label))),
                }
            }
            self.cx.b.push(Stmt::Break(skip_label));
            let tests = self.cx.b.close();
            self.cx.b.push(Stmt::Block { label: body_label, body: tests });
            self.eval_into(&when.body, &place)?;
            self.cx.b.push(Stmt::Break(label));
            let body = self.cx.b.close();
            self.cx.b.push(Stmt::Block { label: skip_label, body });
        }
        self.eval_into(otherwise, &place)?;
        let body = self.cx.b.close();
        self.cx.b.push(Stmt::Block { label, body });
        Ok(self.load(&place))
    }

    fn spread_call(
        &mut self,
        list: Option<ast::LocalId>,
        size: &Node,
        calls: &[Node],
        ty: &Ty,
        span: Span,
    ) -> Result<Val> {
        if let Some(count) = self.here.rest.filter(|_| list.is_some() && list == self.here.unit.rest)
            && let Some(call) = calls.get(count)
        {
            return self.eval(call);
        }
        let Val::Int(size) = self.eval(size)? else { return Ok(Val::NEVER) };
        let place = self.result_place(ty, span)?;
        let label = self.cx.b.label();
        self.cx.b.open();
        for (count, call) in calls.iter().enumerate() {
            let these = self.cx.b.icmp(Cmp::Eq, size, Operand::I64(count as i64));
            let refused = self.an.spec(self.here.spec).unspread.get(&call.id).cloned();
            self.branch(
                these,
                |s| {
                    match refused {
                        Some(message) => s.refused_when_reached(message),
                        None => s.eval_into(call, &place)?,
                    }
                    s.cx.b.push(Stmt::Break(label));
                    Ok(())
                },
                |_| Ok(()),
            )?;
        }
        let most = calls.len() - 1;
        let (source, at) = self.place_in_source(span);
        let long = Diagnostic::new(&source, at, format!("kernels know splats of up to {most} elements"));
        let long = Error::from(long.advise("let the method take the array itself"));
        self.refused_when_reached(long.to_string());
        let body = self.cx.b.close();
        self.cx.b.push(Stmt::Block { label, body });
        Ok(self.load(&place))
    }

    fn refused_when_reached(&mut self, message: String) {
        self.trap(Trap::Raise { class: "Ikra::CompileError", message }, None);
    }

    /// Whether inference has reached a node.
    pub fn visited(&self, node: &Node) -> bool {
        self.an.spec(self.here.spec).visited[node.id.index()]
    }

    fn while_loop(&mut self, cond: &Node, body: &Node, body_first: bool, ty: &Ty, span: Span) -> Result<Val> {
        let place = self.result_place(ty, span)?;
        self.looping(&place, |s, exit| {
            if body_first {
                s.round_body(|s| s.eval(body).map(drop))?;
            }
            let val = s.eval(cond)?;
            if !s.is_never(cond) {
                let test = s.truth(val);
                s.branch(
                    test,
                    |_| Ok(()),
                    |s| {
                        s.store(&exit.1, Val::NIL);
                        s.cx.b.push(Stmt::Break(exit.0));
                        Ok(())
                    },
                )?;
                if !body_first && !s.cx.b.ended() {
                    s.round_body(|s| s.eval(body).map(drop))?;
                }
            }
            Ok(())
        })?;
        Ok(self.load(&place))
    }

    /// A loop around `once`. `once` is given the label that leaves the loop, and the place for the loop's value.
    pub fn looping(
        &mut self,
        place: &Place,
        once: impl FnOnce(&mut Self, &(LabelId, Place)) -> Result<()>,
    ) -> Result<()> {
        let label = self.cx.b.label();
        let exit = (label, place.clone());
        self.cx.b.open();
        // each round sets `next`
        self.frames.push(Frame { next: label, next_place: None, brk: Some(exit.clone()) });
        let result = once(self, &exit);
        self.frames.pop();
        self.cx.b.push(Stmt::Poll);
        let body = self.cx.b.close();
        result?;
        self.cx.b.push(Stmt::Loop { label, body });
        Ok(())
    }

    /// One round of the innermost loop; `next` in it goes to the round's end.
    pub fn round_body(&mut self, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let next = self.cx.b.label();
        if let Some(frame) = self.frames.last_mut() {
            frame.next = next;
        }
        self.cx.b.open();
        let result = body(self);
        let stmts = self.cx.b.close();
        self.cx.b.push(Stmt::Block { label: next, body: stmts });
        result
    }

    fn for_loop(&mut self, target: &ast::Target, over: &Node, body: &Node, ty: &Ty, span: Span) -> Result<Val> {
        let val = self.eval(over)?;
        if self.is_never(over) {
            return Ok(Val::NEVER);
        }
        let over_ty = self.ty(over);
        let place = self.result_place(ty, span)?;
        self.dispatch(val, &over_ty, &place, |s, atom, val| {
            s.each_element(atom, over_ty.reach, val, &place, span, |s, element, element_ty| {
                s.assign(target, element, element_ty)?;
                s.eval(body).map(drop)
            })?;
            Ok(None)
        })?;
        Ok(self.load(&place))
    }

    /// Binds a block's parameters to yielded `values`.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn bind(&mut self, params: &Params, values: &[(Val, Ty)], span: Span) -> Result<()> {
        let shape = Shape::of_block(params);
        let (parts, apart) = match values {
            [(val, ty)] if takes_apart(params) && ty.array.is_some() => {
                if let Some(ast::Rest(Some(local))) = params.rest {
                    let rest = self.rest_of(*val, ty, shape, span)?;
                    self.write_local(local, rest)?;
                }
                (self.spread(*val, ty, shape, span)?, Some((*val, ty)))
            }
            _ => {
                let given: Vec<Val> = values.iter().map(|v| v.0).collect();
                self.collect_rest(params, &given)?;
                (shape.pick(values.to_vec(), (Val::NIL, Ty::nil())), None)
            }
        };
        let mut parts = parts.into_iter();
        let mut next = || parts.next().unwrap_or((Val::NIL, Ty::nil()));
        for pattern in &params.required {
            self.bind_pattern(pattern, next(), span)?;
        }
        for (i, (local, default)) in params.optional.iter().enumerate() {
            let (part, _) = next();
            let given = match apart {
                Some((val, ty)) => self.is_given(val, ty, shape, i, span)?,
                None => Operand::Bool(shape.is_given(i, values.len())),
            };
            self.branch(
                given,
                |s| s.write_local(*local, part),
                |s| {
                    let val = s.eval(default)?;
                    if s.is_never(default) { Ok(()) } else { s.write_local(*local, val) }
                },
            )?;
        }
        for pattern in &params.post {
            self.bind_pattern(pattern, next(), span)?;
        }
        Ok(())
    }

    pub fn bind_pattern(&mut self, pattern: &Pattern, (val, ty): (Val, Ty), span: Span) -> Result<()> {
        match pattern {
            Pattern::Local(local) => self.write_local(*local, val),
            Pattern::List { before, rest, after } => {
                let shape = Shape::of_list(before.len(), rest.is_some(), after.len());
                if let Some(ast::Rest(Some(local))) = rest {
                    let rest = self.rest_of(val, &ty, shape, span)?;
                    self.write_local(*local, rest)?;
                }
                let parts = self.spread(val, &ty, shape, span)?;
                for (pattern, part) in before.iter().chain(after).zip(parts) {
                    self.bind_pattern(pattern, part, span)?;
                }
                Ok(())
            }
        }
    }

    /// The value that a splat takes of a destructured value.
    fn rest_of(&mut self, val: Val, ty: &Ty, shape: Shape, span: Span) -> Result<Val> {
        let count = |n: usize| (Val::int(n as i64), Ty::int(), None);
        let counts = [count(shape.before + shape.optional), count(shape.after)];
        let (rest, _) = self.call_values((val, ty), "%__rest", &counts, &[], false, span, span)?;
        Ok(rest)
    }

    // ---- assignments ----

    /// The receiver and the arguments of a target, which Ruby evaluates before the value.
    fn owner(&mut self, target: &ast::Target) -> Result<Option<Owner>> {
        let (receiver, args) = match target {
            ast::Target::Attr { receiver, .. } => (receiver, &[][..]),
            ast::Target::Index { receiver, args, .. } => (receiver, &args[..]),
            _ => return Ok(None),
        };
        let object = (self.held(receiver)?, self.ty(receiver));
        let mut values = Vec::new();
        for arg in args {
            values.push((self.held(arg)?, self.ty(arg), crate::infer::literal(arg)));
        }
        Ok(Some((object, values)))
    }

    pub fn assign(&mut self, target: &ast::Target, val: Val, ty: &Ty) -> Result<()> {
        let owner = self.owner(target)?;
        self.assign_to(target, owner, val, ty)
    }

    fn assign_to(&mut self, target: &ast::Target, owner: Option<Owner>, val: Val, ty: &Ty) -> Result<()> {
        if self.cx.b.ended() {
            return Ok(());
        }
        let ((object, mut receiver_ty), mut values) = owner.unwrap_or(((Val::NEVER, Ty::never()), Vec::new()));
        match target {
            ast::Target::Local(local, _) => self.write_local(*local, val),
            ast::Target::Ivar(ivar, span) => {
                let receiver = self.self_value()?;
                let receiver_ty = self.self_ty();
                self.write_ivar(receiver, &receiver_ty, ivar, val, *span)
            }
            ast::Target::Attr { receiver, name, span, safe } => {
                let on_self = matches!(receiver.kind, Kind::SelfRef);
                if *safe {
                    // a safe assignment comes here only if the receiver is not nil
                    receiver_ty = receiver_ty.filter(|a| a != Atom::Nil);
                }
                if receiver_ty.is_never() {
                    return Ok(());
                }
                let setter = format!("{name}=");
                let object = self.cast_to(object, &receiver_ty, *span)?;
                let args = [(val, ty.clone(), None)];
                self.call_values((object, &receiver_ty), &setter, &args, &[], on_self, *span, *span).map(drop)
            }
            ast::Target::Index { receiver, span, .. } => {
                let on_self = matches!(receiver.kind, Kind::SelfRef);
                if receiver_ty.is_never() {
                    return Ok(());
                }
                values.push((val, ty.clone(), None));
                if let Kind::Local(local) = receiver.kind
                    && self.an.spec(self.here.spec).parts.contains(span)
                {
                    let name = "%__with_part";
                    let (array, ty) =
                        self.call_values((object, &receiver_ty), name, &values, &[], on_self, *span, *span)?;
                    return if ty.is_never() { Ok(()) } else { self.write_local(local, array) };
                }
                self.call_values((object, &receiver_ty), "[]=", &values, &[], on_self, *span, *span).map(drop)
            }
            ast::Target::List { before, rest, after } => {
                let shape = Shape::of_list(before.len(), rest.is_some(), after.len());
                let parts = self.spread(val, ty, shape, target.span())?;
                for (target, (val, ty)) in before.iter().chain(after).zip(parts) {
                    self.assign(target, val, &ty)?;
                }
                Ok(())
            }
            ast::Target::Unsupported { .. } => Ok(()),
        }
    }

    fn op_assign(&mut self, node: &Node, target: &ast::Target, op: &AssignOp, value: &Node) -> Result<Val> {
        if let AssignOp::Method(op) = op
            && self.accumulate_slot(node, target, op, value)?
        {
            return Ok(Val::NIL);
        }
        // the target's receiver and arguments are evaluated once
        let (span, on_self) = match target {
            ast::Target::Local(_, span) | ast::Target::Ivar(_, span) => (*span, true),
            ast::Target::Attr { receiver, span, .. } | ast::Target::Index { receiver, span, .. } => {
                (*span, matches!(receiver.kind, Kind::SelfRef))
            }
            ast::Target::List { .. } | ast::Target::Unsupported { .. } => return Ok(Val::NEVER),
        };
        let (object, args) = match self.owner(target)? {
            Some(((object, ty), args)) => (Some((object, ty, on_self)), args),
            None => (None, vec![]),
        };
        if self.cx.b.ended() {
            return Ok(Val::NEVER);
        }
        if let (AssignOp::Method(op), ast::Target::Index { .. }, Some((object, ty, on_self))) = (op, target, &object)
            && let Some(name) = self.an.live_accumulation(self.here.spec, node.id, ty, op)
        {
            let amount = self.eval(value)?;
            if self.is_never(value) {
                return Ok(Val::NEVER);
            }
            let mut args = args;
            args.push((amount, self.ty(value), crate::infer::literal(value)));
            let (_, ty) = self.call_values((*object, ty), &name, &args, &[], *on_self, span, node.span)?;
            return Ok(if ty.is_never() { Val::NEVER } else { Val::NIL });
        }
        if let (Some((object, ty, _)), [key]) = (&object, args.as_slice())
            && op_makes_list(target, op, value)
            && self.an.spec(self.here.spec).void.contains(&node.id)
            && self.an.gives_nil(self.here.spec, ty)
        {
            let key = std::slice::from_ref(key);
            self.call_values((*object, ty), READY_OR_NEW, key, &[], true, span, node.span)?;
            return Ok(Val::NIL);
        }
        let name = match target {
            ast::Target::Attr { name, .. } => name.to_string(),
            _ => "[]".to_string(),
        };
        let (old, old_ty) = match (target, &object) {
            (ast::Target::Local(local, span), _) => {
                let whole = self.an.local(self.here.spec, *local).clone();
                let ty = self.an.spec(self.here.spec).op_reads.get(&node.id).unwrap_or(&whole).clone();
                (self.read_local(*local, &whole, *span)?, ty)
            }
            (ast::Target::Ivar(ivar, span), _) => {
                let receiver = self.self_value()?;
                let receiver_ty = self.self_ty();
                let ty = self.ivar_ty(&receiver_ty, ivar, *span)?;
                (self.read_ivar(receiver, &receiver_ty, ivar, &ty, *span)?, ty)
            }
            (_, Some((object, ty, on_self))) => {
                self.call_values((*object, ty), &name, &args, &[], *on_self, span, node.span)?
            }
            _ => return Ok(Val::NEVER),
        };
        let mut old = self.cast_to(old, &old_ty, node.span)?;
        if matches!(target, ast::Target::Local(..)) && self.may_assign(value) {
            // the old value of the variable is needed after `value` has run
            old = self.copied(old);
        }
        let write = |s: &mut Self, val: Val, ty: &Ty| -> Result<()> {
            match (target, &object) {
                (ast::Target::Local(local, _), _) => s.write_local(*local, val),
                (ast::Target::Ivar(ivar, span), _) => {
                    let receiver = s.self_value()?;
                    let receiver_ty = s.self_ty();
                    s.write_ivar(receiver, &receiver_ty, ivar, val, *span)
                }
                (_, Some((object, object_ty, on_self))) => {
                    let mut args = args.clone();
                    args.push((val, ty.clone(), None));
                    s.call_values((*object, object_ty), &format!("{name}="), &args, &[], *on_self, span, node.span)
                        .map(drop)
                }
                _ => Ok(()),
            }
        };
        if self.cx.b.ended() || old_ty.is_never() {
            return Ok(Val::NEVER);
        }
        match op {
            AssignOp::Method(method) => {
                let arg = self.eval(value)?;
                if self.is_never(value) {
                    return Ok(Val::NEVER);
                }
                self.at(node.span);
                let literal = crate::infer::literal(value);
                let arg = (arg, self.ty(value), literal);
                let (val, ty) = self.call_values((old, &old_ty), method, &[arg], &[], false, node.span, node.span)?;
                if ty.is_never() {
                    return Ok(Val::NEVER);
                }
                write(self, val, &ty)?;
                Ok(val)
            }
            AssignOp::Or | AssignOp::And => {
                let ty = self.ty(node);
                let place = self.result_place(&ty, node.span)?;
                let test = self.truth(old);
                let assign = |s: &mut Self| -> Result<()> {
                    let val = s.eval(value)?;
                    if s.is_never(value) {
                        return Ok(());
                    }
                    let value_ty = s.ty(value);
                    write(s, val, &value_ty)?;
                    s.store(&place, val);
                    Ok(())
                };
                let void = self.an.spec(self.here.spec).void.contains(&node.id);
                let keep = |s: &mut Self| -> Result<()> {
                    if !void {
                        s.store_possible(&place, old);
                    }
                    Ok(())
                };
                if *op == AssignOp::Or {
                    self.branch(test, keep, assign)?;
                } else {
                    self.branch(test, assign, keep)?;
                }
                Ok(self.load(&place))
            }
        }
    }

    fn multi_assign(&mut self, node: &Node, targets: &[&ast::Target], shape: Shape, value: &Node) -> Result<Val> {
        let used = !self.an.spec(self.here.spec).void.contains(&node.id);
        let whole;
        let mut owners = Vec::new();
        for target in targets {
            owners.push(self.owner(target)?);
        }
        let nil = (Val::NIL, Ty::nil());
        let values = match &value.kind {
            Kind::Array(items) => {
                let mut values = Vec::new();
                for item in items {
                    let val = self.eval(item)?;
                    let ty = self.ty(item);
                    // copies the values, because of `a, b = b, a`
                    let form = self.form(&ty, item.span)?;
                    let place = self.place(form, None);
                    self.store(&place, val);
                    values.push((self.load(&place), ty));
                }
                whole = self.array_if(used, &values, value.span)?;
                shape.pick(values, nil)
            }
            Kind::Call(call)
                if let Some([receiver, arg]) = divided(call)
                    && makes_no_array(&self.ty(receiver), &self.ty(arg))
                    && self.reaches_rubys(&self.ty(receiver), "divmod") =>
            {
                let values = self.divmod(receiver, arg, value.span)?;
                whole = self.array_if(used, &values, value.span)?;
                shape.pick(values, nil)
            }
            _ => {
                whole = if used { self.held(value)? } else { self.eval(value)? };
                let ty = self.ty(value);
                self.spread(whole, &ty, shape, node.span)?
            }
        };
        for ((target, owner), (val, ty)) in targets.iter().zip(owners).zip(values) {
            self.assign_to(target, owner, val, &ty)?;
        }
        Ok(whole)
    }

    /// Whether a node may assign a variable of its body: by an assignment, a block, or a call of a Proc.
    fn may_assign(&self, node: &Node) -> bool {
        match &node.kind {
            Kind::Nil | Kind::True | Kind::False | Kind::Int(_) | Kind::Float(_) | Kind::Sym(_) => false,
            Kind::SelfRef | Kind::Local(_) | Kind::Ivar(_) | Kind::Const(_) => {
                self.ty(node).atoms().iter().any(|atom| matches!(atom, Atom::Proc(_)))
            }
            Kind::Call(call) => {
                call.block.is_some()
                    || call.block_arg.is_some()
                    || call.receiver.as_ref().is_some_and(|receiver| self.may_assign(receiver))
                    || call.args.iter().any(|a| match a {
                        ast::Arg::Positional(n) | ast::Arg::Keyword(_, n) | ast::Arg::KeywordSplat(n) => {
                            self.may_assign(n)
                        }
                    })
            }
            Kind::And(a, b) | Kind::Or(a, b) => self.may_assign(a) || self.may_assign(b),
            Kind::Not(x) => self.may_assign(x),
            _ => true,
        }
    }

    /// The array of these values, if `made`.
    fn array_if(&mut self, made: bool, values: &[(Val, Ty)], span: Span) -> Result<Val> {
        if !made || self.cx.b.ended() {
            return Ok(Val::NIL);
        }
        let vals: Vec<Val> = values.iter().map(|v| v.0).collect();
        self.array_of(&vals, span)
    }
}

/// The registers of a value, in the order of [`Form::scalars`].
pub fn operands(val: Val) -> Vec<Operand> {
    match val {
        Val::Unit(_) => vec![],
        Val::Bool(v) | Val::Int(v) | Val::Float(v) | Val::Sym(v) | Val::Str(v) | Val::Ref(_, v) | Val::Array(_, v) => {
            vec![v]
        }
        Val::IntRange { from, to, exclusive } | Val::FloatRange { from, to, exclusive } => vec![from, to, exclusive],
        Val::Union { tag, payload } => vec![tag, payload],
        Val::Exception { code, words } => [code].into_iter().chain(words).collect(),
    }
}

/// A value of a form out of its registers.
pub fn from_operands(form: Form, operands: &[Operand]) -> Val {
    match (form, operands) {
        (Form::One(Repr::Unit(unit)), _) => Val::Unit(unit),
        (Form::One(Repr::Bool), [v]) => Val::Bool(*v),
        (Form::One(Repr::Int), [v]) => Val::Int(*v),
        (Form::One(Repr::Float), [v]) => Val::Float(*v),
        (Form::One(Repr::Sym), [v]) => Val::Sym(*v),
        (Form::One(Repr::Str), [v]) => Val::Str(*v),
        (Form::One(Repr::Ref(h)), [v]) => Val::Ref(h, *v),
        (Form::One(Repr::Array(kind)), [v]) => Val::Array(kind, *v),
        (Form::One(Repr::Union), [tag, payload]) => Val::Union { tag: *tag, payload: *payload },
        (Form::IntRange, [from, to, exclusive]) => Val::IntRange { from: *from, to: *to, exclusive: *exclusive },
        (Form::FloatRange, [from, to, exclusive]) => Val::FloatRange { from: *from, to: *to, exclusive: *exclusive },
        (Form::Exception, [code, a, b, c, d]) => Val::Exception { code: *code, words: [*a, *b, *c, *d] },
        _ => unreachable!("{} registers for {form:?}", operands.len()),
    }
}
