//! Calls: dispatch over the kinds of receivers and arguments, and the code of each target.
//!
//! Here: the switch over tags and id intervals, and calls of specialisations. Ruby's own methods ([`builtins`]) and
//! iterators ([`iterate`]) are modules of their own. Not here: the target of a call (inference answers that again) and
//! arithmetic ([`super::numbers`]).

mod builtins;
mod iterate;

use super::body::{Body, Place, operands};
use super::numbers;
use super::tables::Form;
use super::value::Val;
use crate::diagnostic::Span;
use crate::error::{Error, Result};
use crate::id::{MethodId, ProcId};
use crate::infer::blocks::{ProcKind, proc_form};
use crate::infer::builtins::Builtin;
use crate::infer::calls::{
    Args, Literal, RangeForm, Refusal, Target, asked, bind, gives_range, of_range, positions, range_form,
};
use crate::infer::keys::{DUG, Keyed};
use crate::infer::outside::Producer;
use crate::infer::{Binding, SpecId, asking_next, literal, longer_form, super_locals};
use crate::ir::stages::Stage;
use crate::ir::{Cmp, Ctx, FuncId, Op, Operand, Scalar, Stmt, Trap};
use crate::layout::schema::Slot;
use crate::syntax::ast::{self, Block, Call, Kind, Name, Node, fused, listed, marked_as, plain};
use crate::types::combine::{Combine, Equals};
use crate::types::numeric::{Kind as Number, Method, divmod_types};
use crate::types::{Atom, Prims, Reach, Repr, Tag, Ty, Unit};
use crate::world::{values, well_known};
use std::sync::Arc;

/// An argument: its value, its type, and the literal, if it is one.
pub type Arg = (Val, Ty, Option<Literal>);

/// The result for one kind of receiver or argument. None: the result is stored already, or control does not continue.
pub type Answer = Result<Option<Val>>;

/// The name and the value of a keyword argument.
pub type Keyword = (Name, Val, Ty);

/// The form and the position of a call.
#[derive(Clone, Copy)]
pub struct How {
    /// Whether it has no receiver, or `self`.
    pub on_self: bool,
    /// The span of the method's name.
    pub span: Span,
    /// The span of the whole call.
    pub at: Span,
    /// Whether it is a name alone, which might have been a variable.
    pub bare: bool,
    /// Whether its value is not used.
    pub void: bool,
}

impl Args {
    /// The types of arguments.
    pub fn of_values(args: &[Arg], keywords: &[Keyword]) -> Self {
        Args {
            void: false,
            positional: args.iter().map(|a| a.1.clone()).collect(),
            literals: args.iter().map(|a| a.2.clone()).collect(),
            keywords: keywords.iter().map(|k| (k.0.clone(), k.2.clone())).collect(),
        }
    }
}

/// A number of arguments, as Ruby's message about a wrong one says it.
fn expected(arity: &std::ops::RangeInclusive<usize>) -> String {
    match arity.start() == arity.end() {
        true => arity.start().to_string(),
        false => format!("{}..{}", arity.start(), arity.end()),
    }
}

impl Body<'_, '_> {
    /// The error of a refusal at a position.
    pub fn refused(&self, refusal: Refusal, span: Span) -> crate::error::Error {
        let (source, span) = self.place_in_source(span);
        refusal.at(&source, span)
    }

    /// The result of a target for one kind of receiver.
    pub fn outcome(
        &mut self,
        target: &Target,
        (atom, reach): (Atom, Reach),
        name: &str,
        types: &Args,
        block: Option<&(Val, Ty)>,
        how: How,
    ) -> Result<Ty> {
        let written = name;
        let name = plain(written);
        if let Some((block, types)) =
            self.an.operator_block(self.here.spec, target, types, block.map(|b| &b.1), how.span)
        {
            let block = (Val::Unit(Unit::Proc(block.procs[0])), block);
            return self.outcome(target, (atom, reach), name, &types, Some(&block), how);
        }
        if let Some(asked) = asked(atom, name, types) {
            let (receiver, how) = (Ty::of(atom, reach), How { on_self: true, ..how });
            let again = marked_as(asked.name, written);
            let answer = if asked.swapped {
                self.outcome_of(&types.positional[0], &again, &Args::of(vec![receiver]), None, how)?
            } else {
                self.outcome_of(&receiver, &again, types, None, how)?
            };
            return Ok(if name == "!=" { crate::infer::calls::negate(&answer) } else { answer });
        }
        if let Some(keyed) = self.an.keyed(target, atom, types, block.map(|b| &b.1)) {
            let span = how.span;
            let mut read = |field: &Name| {
                let answer = self.an.read_field(self.here.spec, atom, reach, field);
                answer.map_err(|r| self.refused(r, span))
            };
            return match keyed {
                Keyed::Field(field) => read(&field),
                Keyed::Fetch { method, present, value } => {
                    let types = types.with_found(read(&present)?, read(&value)?);
                    self.outcome(&Target::Ruby(method), (atom, reach), name, &types, block, how)
                }
                Keyed::Dig(field) => {
                    let value = read(&field)?;
                    self.outcome_of(&value, DUG, &types.after_first(), None, How { on_self: true, ..how })
                }
            };
        }
        Ok(match target {
            Target::Builtin(Builtin::MakeValue) => match atom {
                Atom::Module(class) => Ty::object(class, Reach::Fresh),
                _ => Ty::never(),
            },
            Target::Builtin(Builtin::OfRange) => {
                let mut out = Ty::never();
                for form in self.range_forms((atom, reach), name, how.span)? {
                    let ty = match form {
                        RangeForm::Registers(range) if self.an.lacks(self.here.spec, how.span, range).is_some() => {
                            Ty::never()
                        }
                        RangeForm::Registers(range) => {
                            let how = How { on_self: false, ..how };
                            let ty = self.outcome_of(&Ty::prim(range), written, types, block, how)?;
                            of_range(ty, name, block.is_some(), &Ty::of(atom, reach))
                        }
                        RangeForm::Helper(method) => {
                            self.outcome(&Target::Ruby(method), (atom, reach), name, types, block, how)?
                        }
                    };
                    out = self.an.facts.join(&out, &ty);
                }
                out
            }
            Target::Builtin(Builtin::RangeMin | Builtin::RangeMax)
                if block.is_some()
                    && let Some(method) = crate::prelude::find("", "Enumerable", name) =>
            {
                let target = Target::Ruby(method);
                self.outcome(&target, (atom, reach), name, types, block, how)?
            }
            Target::Handler(handler) => {
                let types = types.with_name(name);
                self.outcome(&Target::Ruby(*handler), (atom, reach), "method_missing", &types, block, how)?
            }
            Target::Builtin(Builtin::RespondTo | Builtin::Answers) if self.an.asks_missing(atom, types) => {
                let types = types.for_missing();
                let target = self.an.target(self.here.spec, atom, "respond_to_missing?", true);
                let target = target.map_err(|r| self.refused(r, how.span))?;
                let how = How { on_self: true, ..how };
                let answer = self.outcome(&target, (atom, reach), "respond_to_missing?", &types, None, how)?;
                crate::infer::calls::truth(&answer)
            }
            Target::Builtin(Builtin::Doubt) => {
                let doubted = types.positional.first().cloned().unwrap_or_default();
                if doubted.prims == Prims::BOOL && self.an.facts.holds(&self.assumption(how.at)) {
                    Ty::prim(Prims::FALSE)
                } else {
                    doubted
                }
            }
            Target::Builtin(Builtin::Staged) => {
                let at = self.assumption(how.at);
                self.an.staged_type(self.here.spec, types, &at).map_err(|r| self.refused(r, how.span))?
            }
            Target::Builtin(Builtin::ProcCall) => match atom {
                Atom::Proc(id) => self.an.result_of(id, (self.here.spec, how.span), types.positional.len()),
                _ => Ty::never(),
            },
            Target::Builtin(Builtin::Curry) => match atom {
                Atom::Proc(of) => self.curried(of, types, how.span)?.map_or_else(|_| Ty::never(), Ty::proc),
                _ => Ty::never(),
            },
            Target::Builtin(Builtin::MakeProc) if name == "method" => Ty::proc(self.method_object(types, how.span)),
            Target::Builtin(Builtin::MakeProc) => block.map_or_else(Ty::never, |(_, ty)| ty.clone()),
            Target::Builtin(Builtin::Compose { receiver_first }) => {
                self.composed(*receiver_first, atom, types).map_or_else(Ty::never, Ty::proc)
            }
            Target::Proc(id) => self.an.proc_info(*id).result.clone(),
            Target::Builtin(Builtin::BlockGiven) => Ty::prim(if self.has_block() { Prims::TRUE } else { Prims::FALSE }),
            Target::Builtin(Builtin::Send { public }) => {
                let Some(Some(Literal::Sym(called))) = types.literals.first() else { return Ok(Ty::never()) };
                let on_self = !public;
                let called = &*marked_as(called, written);
                let target =
                    self.an.target(self.here.spec, atom, called, on_self).map_err(|r| self.refused(r, how.span))?;
                self.outcome(&target, (atom, reach), called, &types.after_first(), block, How { on_self, ..how })?
            }
            Target::Builtin(Builtin::MethodMissing) => Ty::never(),
            Target::Builtin(Builtin::MakeHash) => Ty::object(self.an.made_hash(self.here.spec, how.span), Reach::Fresh),
            Target::Builtin(Builtin::Buffer) => {
                Ty::array(self.an.made_kind(self.here.spec, how.span)).reached(Reach::Fresh)
            }
            Target::Builtin(_) if let Some(method) = longer_form(atom, target, name, types) => {
                self.outcome(&Target::Ruby(method), (atom, reach), name, types, None, how)?
            }
            Target::Builtin(builtin @ (Builtin::New | Builtin::Allocate)) => {
                self.new_outcome(*builtin, atom, types, block, how)?
            }
            Target::Builtin(Builtin::Loop) if block.is_some() => Ty::never(),
            Target::Builtin(builtin) if builtin.iterates() && block.is_some() => Ty::of(atom, reach),
            Target::Ruby(method) if self.an.inlines(*method, types, block.map(|b| &b.1))? => {
                if bind(&self.an.source(*method)?.unit.params, types).is_err() {
                    return Ok(Ty::never());
                }
                let id = self.an.inlined(self.inlining(*method, Ty::of(atom, reach), types.void, how.span))?;
                self.an.spec(id).ret.clone()
            }
            target => {
                let at = self.assumption(how.at);
                self.an
                    .reached(self.here.spec, target, (atom, reach), name, types, &at)
                    .map_err(|r| self.refused(r, how.span))?
            }
        })
    }

    /// The result of a call on any kind of receiver.
    fn outcome_of(
        &mut self,
        receiver: &Ty,
        name: &str,
        types: &Args,
        block: Option<&(Val, Ty)>,
        how: How,
    ) -> Result<Ty> {
        let mut out = Ty::never();
        for atom in receiver.atoms() {
            let target = self.an.target(self.here.spec, atom, name, how.on_self);
            let target = target.map_err(|r| self.refused(r, how.span))?;
            let ty = self.outcome(&target, (atom, receiver.reach), name, types, block, how)?;
            out = self.an.facts.join(&out, &ty);
        }
        Ok(out)
    }

    fn range_forms(&mut self, receiver: (Atom, Reach), name: &str, span: Span) -> Result<Vec<RangeForm>> {
        self.an.range_forms(self.here.spec, receiver, name).map_err(|r| self.refused(r, span))
    }

    /// A method of a Range object.
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    fn of_range(
        &mut self,
        (atom, reach): (Atom, Reach),
        receiver: Val,
        name: &str,
        args: &[Arg],
        keywords: &[Keyword],
        types: &Args,
        block: Option<(Val, Ty)>,
        how: How,
        place: &Place,
    ) -> Result<()> {
        let mut parts = Vec::new();
        for part in values::parts(well_known::RANGE) {
            let part: Name = (*part).into();
            let ty = self.an.read_field(self.here.spec, atom, reach, &part).map_err(|r| self.refused(r, how.span))?;
            parts.push((self.read_field(atom, receiver, &part), ty));
        }
        let exclusive = self.truth(parts[2].0);
        let ends = [parts[0].clone(), parts[1].clone()].map(|(val, ty)| (val, ty, None));
        self.dispatch_args(&ends, &mut Vec::new(), place, &mut |s, ends| {
            let lacking = |s: &mut Self, message: String| {
                s.trap(Trap::refusal(message), None);
                Ok(None)
            };
            let form = match range_form(ends[0].0, ends[1].0, name) {
                Ok(form) => form,
                Err(refusal) => {
                    let message = s.refused(refusal, how.span).to_string();
                    return lacking(s, message);
                }
            };
            match form {
                RangeForm::Registers(range)
                    if let Some(message) = s.an.lacks(s.here.spec, how.span, range).cloned() =>
                {
                    lacking(s, message)
                }
                RangeForm::Registers(range) => {
                    let val = s.range_of(range, ends[0].1, ends[1].1, exclusive);
                    let (ty, how) = (Ty::prim(range), How { on_self: false, ..how });
                    let (val, ty) = s.call_target((val, &ty), name, args, keywords, block.clone(), how)?;
                    let val = if gives_range(name, block.is_some()) { receiver } else { val };
                    Ok((!ty.is_never()).then_some(val))
                }
                RangeForm::Helper(method) => {
                    s.inline(method, (atom, reach), receiver, args, keywords, types, block.clone(), how.span)
                }
            }
        })
    }

    // ---- dispatch ----

    /// Runs `each` for every kind that a value may have, under a test for that kind; stores its results in `place`.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn dispatch(
        &mut self,
        val: Val,
        ty: &Ty,
        place: &Place,
        mut each: impl FnMut(&mut Self, Atom, Val) -> Answer,
    ) -> Result<()> {
        let mut atoms = ty.atoms();
        atoms.sort_by_key(|a| match a {
            Atom::Object(class) => {
                let (h, p) = self.t.position(*class);
                (1, h, p)
            }
            _ => (0, 0, 0),
        });
        self.dispatch_rest(val, &atoms, place, &mut each)
    }

    fn dispatch_rest(
        &mut self,
        val: Val,
        atoms: &[Atom],
        place: &Place,
        each: &mut impl FnMut(&mut Self, Atom, Val) -> Answer,
    ) -> Result<()> {
        let Some((first, rest)) = atoms.split_first() else {
            self.unreachable();
            return Ok(());
        };
        let run = |s: &mut Self, each: &mut dyn FnMut(&mut Self, Atom, Val) -> Answer| -> Result<()> {
            let narrowed = s.narrowed(val, *first);
            if let Some(answer) = each(s, *first, narrowed)? {
                s.store(place, answer);
            }
            Ok(())
        };
        if rest.is_empty() {
            return run(self, each);
        }
        let test = self.is_kind(val, *first, rest);
        self.cx.b.open();
        let a = run(self, each);
        let then = self.cx.b.close();
        self.cx.b.open();
        let b = self.dispatch_rest(val, rest, place, each);
        let otherwise = self.cx.b.close();
        a?;
        b?;
        match test {
            Operand::Bool(true) => then.into_iter().for_each(|s| self.cx.b.push(s)),
            Operand::Bool(false) => otherwise.into_iter().for_each(|s| self.cx.b.push(s)),
            cond => self.cx.b.push(Stmt::If { cond, then, otherwise }),
        }
        Ok(())
    }

    fn narrowed(&mut self, val: Val, atom: Atom) -> Val {
        let form = self.t.form(&Ty::of(atom, Reach::Any)).unwrap_or(Form::One(Repr::Unit(Unit::Never)));
        self.cast(val, form)
    }

    /// A test that a value is of a kind, given that it is of that kind or of one of `rest`. Objects come last, in the
    /// order of their ids, so one comparison separates a class from those after it.
    fn is_kind(&mut self, val: Val, atom: Atom, rest: &[Atom]) -> Operand {
        let tag_is = |s: &mut Self, tag: Operand, n: i32| s.cx.b.icmp(Cmp::Eq, tag, Operand::I32(n));
        match (val, atom) {
            (Val::Exception { code, .. }, Atom::Nil) => self.cx.b.icmp(Cmp::Eq, code, Operand::I32(0)),
            (Val::Bool(v), Atom::True) => v,
            (Val::Bool(v), Atom::False) => self.cx.b.bool(Op::Not, &[v]),
            (Val::Ref(_, id), Atom::Object(_)) => self.below_next(id, rest),
            (Val::Union { tag, payload }, _) => match atom {
                Atom::Nil => tag_is(self, tag, Tag::NIL),
                Atom::False => tag_is(self, tag, Tag::FALSE),
                Atom::True => tag_is(self, tag, Tag::TRUE),
                Atom::Int => tag_is(self, tag, Tag::INT),
                Atom::Float => tag_is(self, tag, Tag::FLOAT),
                Atom::Sym => tag_is(self, tag, Tag::SYM),
                Atom::Str => tag_is(self, tag, Tag::STR),
                Atom::Array(_) => tag_is(self, tag, Tag::ARRAY),
                Atom::Proc(id) | Atom::Regexp(id) => {
                    let is_proc = tag_is(self, tag, Tag::PROC);
                    let same = self.cx.b.icmp(Cmp::Eq, payload, Operand::I64(i64::from(id.0)));
                    self.cx.b.bool(Op::And, &[is_proc, same])
                }
                Atom::Module(class) => {
                    let is_module = tag_is(self, tag, Tag::MODULE);
                    let same = self.cx.b.icmp(Cmp::Eq, payload, Operand::I64(i64::from(class.0)));
                    self.cx.b.bool(Op::And, &[is_module, same])
                }
                Atom::Object(class) => {
                    let (h, _) = self.t.position(class);
                    let in_hierarchy = tag_is(self, tag, Tag::OBJECT + h as i32);
                    let more = matches!(rest.first(), Some(Atom::Object(c)) if self.t.position(*c).0 == h);
                    if !more {
                        return in_hierarchy;
                    }
                    let id = self.cx.b.op(Scalar::I32, Op::Narrow, &[payload]);
                    let below = self.below_next(id, rest);
                    self.cx.b.bool(Op::And, &[in_hierarchy, below])
                }
                Atom::IntRange | Atom::FloatRange | Atom::Exception => Operand::Bool(false),
            },
            _ => Operand::Bool(true),
        }
    }

    fn below_next(&mut self, id: Operand, rest: &[Atom]) -> Operand {
        let Some(Atom::Object(next)) = rest.first() else { return Operand::Bool(true) };
        let (h, p) = self.t.position(*next);
        let base = self.t.base(h, p);
        let base = self.cx.b.op(Scalar::I32, Op::Param(base), &[]);
        self.cx.b.bool(Op::UCmp(Cmp::Lt), &[id, base])
    }

    /// Runs `each` for every combination of one kind per argument.
    #[allow(clippy::type_complexity, reason = "a callback that recursion must be able to pass on")]
    fn dispatch_args(
        &mut self,
        args: &[Arg],
        chosen: &mut Vec<(Atom, Val)>,
        place: &Place,
        each: &mut dyn FnMut(&mut Self, &[(Atom, Val)]) -> Answer,
    ) -> Result<()> {
        let Some((first, rest)) = args.split_first() else {
            if let Some(answer) = each(self, chosen)? {
                self.store(place, answer);
            }
            return Ok(());
        };
        let place = place.clone();
        self.dispatch(first.0, &first.1, &place, |s, atom, val| {
            chosen.push((atom, val));
            let result = s.dispatch_args(rest, chosen, &place, each);
            chosen.pop();
            result.map(|()| None)
        })
    }

    // ---- calls in the tree ----

    pub fn args(&mut self, args: &[ast::Arg]) -> Result<(Vec<Arg>, Vec<Keyword>)> {
        let (mut positional, mut keywords) = (Vec::new(), Vec::new());
        for arg in args {
            match arg {
                ast::Arg::Positional(node) => {
                    let val = self.held(node)?;
                    positional.push((val, self.ty(node), literal(node)));
                }
                ast::Arg::Keyword(name, node) => {
                    let val = self.held(node)?;
                    keywords.push((name.clone(), val, self.ty(node)));
                }
                ast::Arg::KeywordSplat(_) => {}
            }
        }
        Ok((positional, keywords))
    }

    /// A node's value that later assignments do not change: a variable's registers are copied.
    pub fn held(&mut self, node: &Node) -> Result<Val> {
        let val = self.eval(node)?;
        if !is_variable(node) || self.cx.b.ended() {
            return Ok(val);
        }
        let ty = self.ty(node);
        let form = self.form(&ty, node.span)?;
        let place = self.place(form, None);
        self.store(&place, val);
        Ok(self.load(&place))
    }

    /// A call in the tree.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn call(&mut self, node: &Node, call: &Call) -> Result<Val> {
        if self.raise(call)? || self.throw(call)? {
            return Ok(Val::NEVER);
        }
        if let Some(receiver) = &call.receiver
            && let Kind::Array(items) = &receiver.kind
            && !self.visited(receiver)
        {
            return self.literal_array(node, call, items);
        }
        if let Some(val) = self.grown(node, call)? {
            return Ok(val);
        }
        if let Some(val) = self.grown_in_hash(node, call)? {
            return Ok(val);
        }
        if let Some(val) = self.wide_modulo(call)? {
            return Ok(val);
        }
        if let (Some((span, kind)), [id]) = (proc_form(call), self.ty(node).procs.as_slice())
            && self.an.proc(self.here.spec, span, || kind) == *id
        {
            return Ok(Val::Unit(Unit::Proc(*id)));
        }
        let on_self = call.finds_private();
        let (receiver, mut receiver_ty) = match &call.receiver {
            Some(receiver) => (self.held(receiver)?, self.ty(receiver)),
            None => {
                let ty = self.self_ty();
                let kernel = ty == Ty::module(well_known::KERNEL);
                (if kernel { Val::Unit(Unit::Module(well_known::KERNEL)) } else { self.self_value()? }, ty)
            }
        };
        if self.cx.b.ended() {
            return Ok(Val::NEVER);
        }
        let asking = asking_next(call).filter(|_| self.reaches_rubys(&receiver_ty, &call.name));
        let call = asking.as_ref().unwrap_or(call);
        if !call.safe || !receiver_ty.may_be(Prims::NIL) {
            return self.call_on(node, call, receiver, &receiver_ty, on_self);
        }
        receiver_ty = receiver_ty.filter(|a| a != Atom::Nil);
        let ty = self.ty(node);
        let place = self.result_place(&ty, node.span)?;
        let test = self.is_not_nil(receiver);
        self.branch(
            test,
            |s| {
                let receiver = s.cast_to(receiver, &receiver_ty, node.span)?;
                let val = s.call_on(node, call, receiver, &receiver_ty, on_self)?;
                s.store(&place, val);
                Ok(())
            },
            |s| {
                s.store(&place, Val::NIL);
                Ok(())
            },
        )?;
        Ok(self.load(&place))
    }

    fn call_on(&mut self, node: &Node, call: &Call, receiver: Val, receiver_ty: &Ty, on_self: bool) -> Result<Val> {
        let (args, keywords) = self.args(&call.args)?;
        if self.cx.b.ended() || receiver_ty.is_never() {
            self.unreachable();
            return Ok(Val::NEVER);
        }
        let block = self.given_block(call)?;
        if self.cx.b.ended() {
            return Ok(Val::NEVER);
        }
        self.at(call.name_span);
        let bare = call.receiver.is_none() && call.args.is_empty() && node.span == call.name_span;
        let void = self.an.spec(self.here.spec).void.contains(&node.id);
        let how = How { on_self, span: call.name_span, at: node.span, bare, void };
        let (Some(literal), Some((_, ty))) = (&call.block, &block) else {
            let (val, _) = self.call_target((receiver, receiver_ty), &call.name, &args, &keywords, block, how)?;
            return Ok(val);
        };
        let id = ty.procs[0];
        let place = self.result_place(&self.ty(node), node.span)?;
        self.with_exit(literal, id, &place, |s| {
            let (val, ty) = s.call_target((receiver, receiver_ty), &call.name, &args, &keywords, block, how)?;
            if !ty.is_never() {
                s.store(&place, val);
            }
            Ok(())
        })?;
        Ok(self.load(&place))
    }

    /// A call on values; returns the result with its type.
    ///
    /// # Errors
    /// As [`Body::eval`].
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub fn call_values(
        &mut self,
        receiver: (Val, &Ty),
        name: &str,
        args: &[Arg],
        keywords: &[Keyword],
        on_self: bool,
        span: Span,
        at: Span,
    ) -> Result<(Val, Ty)> {
        let how = How { on_self, span, at, bare: false, void: false };
        self.call_target(receiver, name, args, keywords, None, how)
    }

    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub fn call_target(
        &mut self,
        (receiver, receiver_ty): (Val, &Ty),
        name: &str,
        args: &[Arg],
        keywords: &[Keyword],
        block: Option<(Val, Ty)>,
        how: How,
    ) -> Result<(Val, Ty)> {
        let How { on_self, span, void, .. } = how;
        let types = Args { void, ..Args::of_values(args, keywords) };
        let mut targets = Vec::new();
        let mut ty = Ty::never();
        let several = receiver_ty.atoms().len() > 1;
        for atom in receiver_ty.atoms() {
            let target = self.an.target(self.here.spec, atom, name, on_self).map_err(|r| self.refused(r, span));
            let mut target = match target {
                Err(error @ Error::Unsupported(_)) if several => Target::Refused(error.to_string()),
                target => target?,
            };
            let result = self.outcome(&target, (atom, receiver_ty.reach), name, &types, block.as_ref(), how);
            let result = match result {
                Err(error @ Error::Unsupported(_)) if several && target.may_wait() => {
                    target = Target::Refused(error.to_string());
                    Ty::never()
                }
                result => result?,
            };
            ty = self.an.facts.join(&ty, &result);
            targets.push((atom, target));
        }
        let place = self.result_place(&ty, span)?;
        let written = name;
        let name = plain(written);
        // all classes of a hierarchy have the same `==`, so one comparison of ids is enough
        if let (Val::Ref(h, a), [(Val::Ref(k, b), ..)]) = (receiver, args)
            && matches!(name, "==" | "!=" | "equal?")
            && targets.iter().all(|(_, t)| Self::is_identity(t))
            && (name != "!=" || self.equality_is_identity(receiver_ty))
        {
            let same = if h == *k { self.cx.b.icmp(Cmp::Eq, a, *b) } else { Operand::Bool(false) };
            let val = if name == "!=" { self.cx.b.bool(Op::Not, &[same]) } else { same };
            let val = self.bool_val(val, &ty);
            return Ok((val, ty));
        }
        if keywords.is_empty()
            && let Some(slot) = self.shared_reader(&targets, args)
            && let Val::Ref(_, id) = receiver
        {
            let val = self.load_slot(&slot, id);
            return Ok((self.cast(val, place.form), ty));
        }
        self.dispatch(receiver, receiver_ty, &place, |s, atom, val| {
            let target = targets.iter().find(|(a, _)| *a == atom).map(|(_, t)| t.clone());
            let Some(target) = target else { return Ok(None) };
            s.invoke(
                &target,
                (atom, receiver_ty.reach),
                val,
                written,
                args,
                keywords,
                &types,
                block.clone(),
                how,
                &place,
            )
        })?;
        if ty.is_never() {
            self.unreachable();
            return Ok((Val::NEVER, ty));
        }
        Ok((self.load(&place), ty))
    }

    /// Whether a call on all kinds of a receiver reaches a method of Ruby's own.
    pub fn reaches_rubys(&mut self, receiver: &Ty, name: &str) -> bool {
        receiver.atoms().into_iter().all(|atom| self.an.reaches_rubys(self.here.spec, atom, name))
    }

    fn equality_is_identity(&mut self, ty: &Ty) -> bool {
        ty.atoms()
            .into_iter()
            .all(|a| matches!(self.an.target(self.here.spec, a, "==", false), Ok(Target::Builtin(Builtin::Equal))))
    }

    /// A Boolean in the form of its type, which may allow only one of the two values.
    fn bool_val(&mut self, val: Operand, ty: &Ty) -> Val {
        match self.t.form(ty) {
            Some(form) => self.cast(Val::Bool(val), form),
            None => Val::Bool(val),
        }
    }

    /// The common slot of attribute readers that all read one column.
    fn shared_reader<'t>(&mut self, targets: &'t [(Atom, Target)], args: &[Arg]) -> Option<Slot> {
        if targets.len() < 2 || !args.is_empty() {
            return None;
        }
        let field = |(atom, target): &'t (Atom, Target)| match (atom, target) {
            (Atom::Object(class), Target::Reader(ivar)) => Some((*class, ivar)),
            _ => None,
        };
        let fields: Option<Vec<_>> = targets.iter().map(field).collect();
        self.read_together(&fields?)
    }

    /// NameError for a name that no ivar can have.
    fn wrong_ivar(&mut self, name: &Name) {
        let quoted = self.cx.shared.options.quoted(name);
        let message = format!("{quoted} is not allowed as an instance variable name");
        self.trap(Trap::Name { message, name: name.clone() }, None);
    }

    /// NoMethodError.
    pub fn no_method(&mut self, receiver: Val, name: &str, private: bool, bare: bool) {
        let written = |name| listed(name).or_else(|| fused(name).map(|(inner, _)| inner));
        let name = name.strip_prefix('%').and_then(written).unwrap_or(name);
        if let Err((_, class)) = numbers::carried(receiver) {
            let quoted = self.cx.shared.options.quoted(name);
            let message = match private {
                true => format!("private method {quoted} called for an instance of {class}"),
                false => format!("undefined method {quoted} for an instance of {class}"),
            };
            return self.trap(Trap::Raise { class: "NoMethodError", message }, None);
        }
        self.trap(Trap::NoMethod { name: name.into(), private, bare }, Some(receiver));
    }

    /// The code of one target for one kind of receiver. None: the result is in `place` already, or control does not
    /// continue.
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub fn invoke(
        &mut self,
        target: &Target,
        (atom, reach): (Atom, Reach),
        receiver: Val,
        name: &str,
        args: &[Arg],
        keywords: &[Keyword],
        types: &Args,
        block: Option<(Val, Ty)>,
        how: How,
        place: &Place,
    ) -> Result<Option<Val>> {
        let How { span, at, bare, .. } = how;
        let written = name;
        let name = plain(written);
        let wrong_count = |s: &mut Self, expected: &str| {
            let given = args.len() + usize::from(!keywords.is_empty());
            let message = format!("wrong number of arguments (given {given}, expected {expected})");
            s.trap(Trap::Raise { class: "ArgumentError", message }, None);
            Ok(None)
        };
        if let Some((block, types)) =
            self.an.operator_block(self.here.spec, target, types, block.as_ref().map(|b| &b.1), span)
        {
            let block = (Val::Unit(Unit::Proc(block.procs[0])), block);
            let args = &args[..args.len() - 1];
            return self.invoke(target, (atom, reach), receiver, name, args, keywords, &types, Some(block), how, place);
        }
        if let Some(asked) = asked(atom, name, types) {
            let itself = Ty::of(atom, reach);
            let again = marked_as(asked.name, written);
            let (val, ty) = if asked.swapped {
                let swapped = [(receiver, itself, None)];
                self.call_values((args[0].0, &args[0].1), &again, &swapped, &[], true, span, at)?
            } else {
                self.call_values((receiver, &itself), &again, args, &[], true, span, at)?
            };
            if ty.is_never() || name != "!=" {
                return Ok((!ty.is_never()).then_some(val));
            }
            let truth = self.truth(val);
            return Ok(Some(Val::Bool(self.cx.b.bool(Op::Not, &[truth]))));
        }
        if let Some(keyed) = self.an.keyed(target, atom, types, block.as_ref().map(|b| &b.1)) {
            let mut read = |field: &Name| -> Result<Arg> {
                let ty = self.an.read_field(self.here.spec, atom, reach, field);
                let ty = ty.map_err(|r| self.refused(r, span))?;
                Ok((self.read_field(atom, receiver, field), ty, None))
            };
            return match keyed {
                Keyed::Field(field) => Ok(Some(read(&field)?.0)),
                Keyed::Fetch { method, present, value } => {
                    let found = [read(&present)?, read(&value)?];
                    let types = types.with_found(found[0].1.clone(), found[1].1.clone());
                    let mut args = args.to_vec();
                    args.splice(1..1, found);
                    let target = Target::Ruby(method);
                    self.invoke(&target, (atom, reach), receiver, name, &args, keywords, &types, block, how, place)
                }
                Keyed::Dig(field) => {
                    let (value, ty, _) = read(&field)?;
                    let (val, ty) = self.call_values((value, &ty), DUG, &args[1..], &[], true, span, at)?;
                    Ok((!ty.is_never()).then_some(val))
                }
            };
        }
        match target {
            Target::Builtin(Builtin::MakeValue) => {
                let Atom::Module(class) = atom else { return Ok(None) };
                let parts: Vec<Val> = args.iter().map(|a| a.0).collect();
                Ok(Some(self.new_value(class, &parts)))
            }
            Target::Builtin(Builtin::OfRange) => {
                self.of_range((atom, reach), receiver, written, args, keywords, types, block, how, place)?;
                Ok(None)
            }
            Target::Builtin(Builtin::RangeMin | Builtin::RangeMax)
                if block.is_some()
                    && let Some(method) = crate::prelude::find("", "Enumerable", name) =>
            {
                self.inline(method, (atom, reach), receiver, args, keywords, types, block, span)
            }
            Target::Builtin(Builtin::Doubt) => {
                let (Some((val, ty, _)), at) = (args.first().cloned(), self.assumption(at)) else { return Ok(None) };
                if ty.prims != Prims::BOOL || !self.an.facts.holds(&at) {
                    return Ok(Some(val));
                }
                let truth = self.truth(val);
                let site = self.cx.site(Trap::Refuted(at), vec![]);
                self.cx.b.trap_if(truth, site, vec![]);
                Ok(Some(Val::bool(false)))
            }
            Target::Handler(handler) => {
                let types = types.with_name(name);
                let symbol = Val::Sym(Operand::I64(crate::world::symbol_hash(name)));
                let mut args = args.to_vec();
                args.insert(0, (symbol, Ty::sym(), types.literals[0].clone()));
                let target = Target::Ruby(*handler);
                let name = "method_missing";
                self.invoke(&target, (atom, reach), receiver, name, &args, keywords, &types, block, how, place)
            }
            Target::Builtin(Builtin::RespondTo | Builtin::Answers) if self.an.asks_missing(atom, types) => {
                let ty = Ty::of(atom, reach);
                let no = (Val::bool(false), Ty::prim(Prims::FALSE), None);
                let args = [args[0].clone(), no];
                let name = "respond_to_missing?";
                let (val, _) = self.call_values((receiver, &ty), name, &args, &[], true, span, at)?;
                let truth = self.truth(val);
                Ok(Some(Val::Bool(truth)))
            }
            Target::Builtin(Builtin::NoMatch) => {
                numbers::mention(&mut self.cx, "NoMatchingPatternError", "", receiver, "");
                Ok(None)
            }
            Target::Builtin(Builtin::Buffer) => {
                let Some((Val::Int(length), ..)) = args.first() else { return Ok(None) };
                Ok(Some(self.buffer(*length, span)?))
            }
            Target::Builtin(Builtin::MakeHash) => {
                let parts: Vec<Val> = args.iter().map(|a| a.0).collect();
                Ok(Some(self.new_hash(&parts, span)))
            }
            Target::Builtin(_) if let Some(method) = longer_form(atom, target, name, types) => {
                self.inline(method, (atom, reach), receiver, args, keywords, types, None, span)
            }
            Target::Builtin(Builtin::MethodMissing) => {
                let Some((name, ..)) = args.first() else { return Ok(None) };
                let name = self.cast(*name, Form::One(Repr::Sym));
                let ((repr, mut words), (_, symbol)) = (self.trap_operand(receiver), self.trap_operand(name));
                words.extend(symbol);
                let site = self.cx.site(Trap::Missing, vec![repr, Repr::Sym]);
                self.cx.b.trap(site, words);
                Ok(None)
            }
            Target::Builtin(Builtin::IvarSet) => {
                let Some(Some(Literal::Sym(ivar))) = types.literals.first() else { return Ok(None) };
                if !ivar.starts_with('@') {
                    self.wrong_ivar(ivar);
                    return Ok(None);
                }
                self.write_field((atom, reach), receiver, ivar, args[1].0);
                Ok(Some(args[1].0))
            }
            Target::Builtin(Builtin::IvarGet) => {
                let Some(Some(Literal::Sym(ivar))) = types.literals.first() else { return Ok(None) };
                if !ivar.starts_with('@') {
                    self.wrong_ivar(ivar);
                    return Ok(None);
                }
                Ok(Some(self.read_field(atom, receiver, ivar)))
            }
            Target::Builtin(Builtin::NeedsArray) => {
                let given = args.first().map_or(Val::NIL, |a| a.0);
                numbers::describe(&mut self.cx, "TypeError", "no implicit conversion of ", given, " into Array");
                Ok(None)
            }
            Target::Builtin(Builtin::Uncoercible) => {
                let class = self.an.describe(atom);
                let given = args.first().map_or(Val::NIL, |a| a.0);
                numbers::mention(&mut self.cx, "TypeError", "", given, &format!(" can't be coerced into {class}"));
                Ok(None)
            }
            Target::Builtin(Builtin::Uncomparable) => {
                let class = self.an.describe(atom);
                let other = args.first().map_or(Val::NIL, |a| a.0);
                let before = format!("comparison of {class} with ");
                numbers::mention(&mut self.cx, "ArgumentError", &before, other, " failed");
                Ok(None)
            }
            Target::NoMethod { private } => {
                self.no_method(receiver, name, *private, bare);
                Ok(None)
            }
            Target::Refused(message) => {
                self.trap(Trap::refusal(message.clone()), None);
                Ok(None)
            }
            Target::Reader(ivar) if args.is_empty() && keywords.is_empty() => {
                Ok(Some(self.read_field(atom, receiver, ivar)))
            }
            Target::Reader(_) => wrong_count(self, "0"),
            Target::Writer(ivar) => match args {
                [(val, ..)] if keywords.is_empty() => {
                    self.write_field((atom, reach), receiver, ivar, *val);
                    Ok(Some(*val))
                }
                _ => wrong_count(self, "1"),
            },
            Target::Ruby(method) if self.an.inlines(*method, types, block.as_ref().map(|b| &b.1))? => {
                self.inline(*method, (atom, reach), receiver, args, keywords, types, block, span)
            }
            Target::Builtin(Builtin::Staged) => self.staged(args, types, span),
            Target::Builtin(Builtin::ProcCall) => {
                if let Atom::Proc(id) = atom {
                    self.call_proc(id, args, keywords, span, Some(place))?;
                }
                Ok(None)
            }
            Target::Builtin(Builtin::Compose { receiver_first }) => {
                Ok(self.composed(*receiver_first, atom, types).map(|id| Val::Unit(Unit::Proc(id))))
            }
            Target::Builtin(Builtin::Curry) => {
                let Atom::Proc(of) = atom else { return Ok(None) };
                match self.curried(of, types, span)? {
                    Ok(id) => Ok(Some(Val::Unit(Unit::Proc(id)))),
                    Err(message) => {
                        self.trap(Trap::Raise { class: "ArgumentError", message }, None);
                        Ok(None)
                    }
                }
            }
            Target::Builtin(Builtin::MakeProc) if name == "method" => {
                let id = self.method_object(types, span);
                Ok(Some(self.keep(id, &[receiver])))
            }
            Target::Builtin(Builtin::MakeProc) => Ok(block.map(|(val, _)| val)),
            Target::Proc(id) => {
                self.call_proc(*id, args, keywords, span, Some(place))?;
                Ok(None)
            }
            Target::Builtin(Builtin::BlockGiven) => Ok(Some(Val::bool(self.own_block(span)?.is_some()))),
            Target::Builtin(Builtin::Send { public }) => {
                let Some(Some(Literal::Sym(called))) = types.literals.first() else { return Ok(None) };
                let how = How { on_self: !public, ..how };
                let ty = Ty::of(atom, reach);
                let (val, ty) =
                    self.call_target((receiver, &ty), &marked_as(called, written), &args[1..], keywords, block, how)?;
                Ok((!ty.is_never()).then_some(val))
            }
            Target::Builtin(builtin @ (Builtin::New | Builtin::Allocate)) => {
                self.new_object(*builtin, atom, args, keywords, block, how)
            }
            Target::Builtin(builtin) if builtin.iterates() && block.is_some() => {
                let Some(block) = block else { return Ok(None) };
                self.iterate(*builtin, name, reach, receiver, args, keywords, &block, span, place)?;
                Ok(None)
            }
            Target::Ruby(method) => {
                self.call_method(*method, (atom, reach), receiver, name, args, keywords, types, span)
            }
            Target::Builtin(builtin) if !builtin.arity().contains(&args.len()) => {
                wrong_count(self, &expected(&builtin.arity()))
            }
            Target::Builtin(builtin) => {
                let mut chosen = Vec::new();
                let several = args.iter().any(|a| a.1.atoms().len() > 1);
                self.dispatch_args(args, &mut chosen, place, &mut |s, args_now| {
                    if several && s.refuses(*builtin, (atom, reach), name, types, args_now, (span, at))? {
                        return Ok(None);
                    }
                    s.builtin(*builtin, (atom, reach), receiver, name, args_now, types, (span, at))
                })?;
                Ok(None)
            }
        }
    }

    /// `f.curry`
    fn curried(&mut self, of: ProcId, types: &Args, span: Span) -> Result<std::result::Result<ProcId, String>> {
        let answer = self.an.curried((self.here.spec, span), of, types);
        answer.map_err(|refusal| self.refused(refusal, span))
    }

    /// The Method object that a call of `method` makes.
    fn method_object(&mut self, types: &Args, span: Span) -> ProcId {
        let name = match types.literals.first() {
            Some(Some(Literal::Sym(name))) => name.clone(),
            _ => "".into(),
        };
        self.an.keeping((self.here.spec, span), None, 1, || ProcKind::Bound(name))
    }

    /// `f >> g` and `f << g`.
    fn composed(&mut self, receiver_first: bool, receiver: Atom, types: &Args) -> Option<ProcId> {
        let (Atom::Proc(receiver), [given]) = (receiver, types.positional.first()?.procs.as_slice()) else {
            return None;
        };
        let (first, second) = if receiver_first { (receiver, *given) } else { (*given, receiver) };
        Some(self.an.composed(receiver, first, second))
    }

    /// Calls a method as a function of its own. None: control does not continue.
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub(super) fn call_method(
        &mut self,
        method: MethodId,
        (atom, reach): (Atom, Reach),
        receiver: Val,
        name: &str,
        args: &[Arg],
        keywords: &[Keyword],
        types: &Args,
        span: Span,
    ) -> Result<Option<Val>> {
        let source = self.an.source(method)?;
        match bind(&source.unit.params, types) {
            Ok(bindings) => {
                let key = types.key(method, name, Ty::of(atom, reach), bindings.clone());
                let spec = self.an.specialise(self.here.spec, key)?;
                let values = bound_values(&source.unit.params, &bindings, args, keywords);
                self.call_spec(spec, receiver, &bindings, &values, span)
            }
            Err(message) => {
                self.wrong_arguments(method, types, message)?;
                Ok(None)
            }
        }
    }

    /// Calls a specialisation.
    fn call_spec(
        &mut self,
        spec: SpecId,
        receiver: Val,
        bindings: &[Binding],
        values: &[Val],
        span: Span,
    ) -> Result<Option<Val>> {
        let func = self.function(spec);
        let self_ty = self.an.spec(spec).key.self_ty.clone();
        let receiver = self.cast_to(receiver, &self_ty, span)?;
        let mut arguments = operands(receiver);
        for (binding, val) in bindings.iter().zip(values) {
            if let Binding::Given(ty) = binding {
                let val = self.cast_to(*val, ty, span)?;
                arguments.extend(operands(val));
            }
        }
        self.call_func(spec, func, arguments, span)
    }

    fn call_func(&mut self, spec: SpecId, func: FuncId, arguments: Vec<Operand>, span: Span) -> Result<Option<Val>> {
        let ret = self.an.spec(spec).ret.clone();
        let form = self.form(&ret, span)?;
        let depth = self.t.recursive.contains(&spec).then(|| {
            // Ruby's own comparisons detect that they have come to the same pair again
            let compares = self.an.compares(spec) || self.an.compares(self.here.spec);
            let trap = if compares { self.endless_comparison(span) } else { Trap::StackOverflow };
            self.cx.site(trap, vec![])
        });
        let results = self.cx.b.call(func, arguments, &form.scalars(), depth);
        if ret.is_never() {
            self.unreachable();
            return Ok(None);
        }
        Ok(Some(super::body::from_operands(form, &results)))
    }

    fn endless_comparison(&self, span: Span) -> Trap {
        let (source, span) = self.place_in_source(span);
        let error = crate::diagnostic::Diagnostic::new(&source, span, "kernels do not compare what nests so deep")
            .because(
                "or it contains itself and its == is a method of the program's, across which kernels do not remember \
                 what they are comparing",
            )
            .advise("compare what tells them apart, such as a number of their own; or nest them less deep");
        Trap::refusal(error.to_string())
    }

    /// `Ikra.__staged`: a call of the producer with a position and its distance from the caller's own position.
    fn staged(&mut self, args: &[Arg], types: &Args, span: Span) -> Answer {
        let Some(Producer { method, receiver: (atom, reach), args: types }) = self.an.staged(types) else {
            return Ok(None);
        };
        let source = self.an.source(method)?;
        let (Ok(bindings), [_, (position, ..), rest @ ..]) = (bind(&source.unit.params, &types), args) else {
            return Ok(None);
        };
        let key = types.key(method, "call", Ty::of(atom, reach), bindings);
        let spec = self.an.specialise(self.here.spec, key)?;
        let func = self.function(spec);
        let (offsets, sizes) = rest.split_at(rest.len() / 2);
        let numbers = |list: &[Arg]| -> Vec<Operand> { list.iter().flat_map(|arg| operands(arg.0)).collect() };
        let (offsets, sizes) = (numbers(offsets), numbers(sizes));
        let sizes: Option<Vec<_>> = sizes.into_iter().map(|size| self.cx.b.parameter(size)).collect();
        let stage = Stage { sizes: sizes.unwrap_or_default(), ..Stage::default() };
        self.t.stages.entry(spec).or_insert((offsets.len(), stage));
        let arguments = [operands(*position), offsets].concat();
        self.call_func(spec, func, arguments, span)
    }

    /// The function of a specialisation. At its first call, it is queued for lowering.
    fn function(&mut self, spec: SpecId) -> FuncId {
        if let Some(func) = self.t.functions.get(&spec) {
            return *func;
        }
        let func = self.cx.shared.reserve();
        self.t.functions.insert(spec, func);
        self.t.pending.push(spec);
        func
    }

    /// A parameter, as a bare `super` passes it on.
    fn passed_on(&mut self, node: &Node, local: ast::LocalId) -> Result<(Val, Ty)> {
        let ty = self.an.spec(self.here.spec).passed_on.get(&(node.id, local)).cloned().unwrap_or_default();
        Ok((self.read_local(local, &ty, node.span)?, ty))
    }

    /// `super`.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn super_call(&mut self, node: &Node, args: Option<&[ast::Arg]>, block: Option<&Arc<Block>>) -> Result<Val> {
        let Some(method) = self.an.spec(self.here.spec).key.method else { return Ok(Val::NEVER) };
        let (args, keywords) = match args {
            Some(args) => self.args(args)?,
            None => {
                let unit = self.here.unit.clone();
                let mut positional = Vec::new();
                for local in super_locals(&unit.params) {
                    let (val, ty) = self.passed_on(node, local)?;
                    positional.push((val, ty, None));
                }
                let mut keywords = Vec::new();
                for keyword in &unit.params.keywords {
                    let (val, ty) = self.passed_on(node, keyword.local)?;
                    keywords.push((keyword.name.clone(), val, ty));
                }
                (positional, keywords)
            }
        };
        if self.cx.b.ended() {
            return Ok(Val::NEVER);
        }
        self.at(node.span);
        let void = self.an.spec(self.here.spec).void.contains(&node.id);
        let types = Args { void, ..Args::of_values(&args, &keywords) };
        let self_ty = self.self_ty();
        let (atom, reach) = (self_ty.atoms()[0], self_ty.reach);
        let (target, name) = self.an.super_target(method, atom).map_err(|r| self.refused(r, node.span))?;
        let id = block.map(|b| self.an.proc(self.here.spec, b.span, || ProcKind::Block(b.clone())));
        let given = match id {
            Some(id) => Some((Val::Unit(Unit::Proc(id)), Ty::proc(id))),
            None => self.here.block.clone(),
        };
        let how = How { on_self: true, span: node.span, at: node.span, bare: false, void };
        let ty = self.outcome(&target, (atom, reach), &name, &types, given.as_ref(), how)?;
        let place = self.result_place(&ty, node.span)?;
        let receiver = self.self_value()?;
        let answer = match target {
            Target::NoMethod { .. } => {
                self.trap(Trap::NoSuper(name.clone()), Some(receiver));
                None
            }
            target => {
                self.invoke(&target, (atom, reach), receiver, &name, &args, &keywords, &types, given, how, &place)?
            }
        };
        if let Some(val) = answer {
            self.store(&place, val);
        }
        Ok(self.load(&place))
    }

    /// Whether kernels lack a builtin for these kinds of arguments, which are among several kinds that may occur. Then
    /// it raises CompileError at run time.
    fn refuses(
        &mut self,
        builtin: Builtin,
        (atom, reach): (Atom, Reach),
        name: &str,
        types: &Args,
        args: &[(Atom, Val)],
        (span, at): (Span, Span),
    ) -> Result<bool> {
        let atoms: Vec<Atom> = args.iter().map(|a| a.0).collect();
        let at = self.assumption(at);
        let answer = self.an.combination(self.here.spec, builtin, (atom, reach), name, types, &atoms, &at);
        match answer.map_err(|r| self.refused(r, span)) {
            Ok(_) => Ok(false),
            Err(error @ Error::Unsupported(_)) => {
                self.trap(Trap::refusal(error.to_string()), None);
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    // ---- forms without an intermediate value ----

    fn literal_array(&mut self, node: &Node, call: &Call, items: &[Node]) -> Result<Val> {
        let mut values: Vec<Arg> = Vec::new();
        for item in items {
            let val = self.held(item)?;
            values.push((val, self.ty(item), None));
        }
        if &*call.name == "include?" {
            let (args, _) = self.args(&call.args)?;
            if self.cx.b.ended() {
                return Ok(Val::NEVER);
            }
            let mut any = Operand::Bool(false);
            for (val, ty, _) in &values {
                let (equal, _) = self.call_values((*val, ty), "==", &args, &[], false, call.name_span, node.span)?;
                let truth = self.truth(equal);
                any = self.cx.b.bool(Op::Or, &[any, truth]);
            }
            return Ok(Val::Bool(any));
        }
        if self.cx.b.ended() {
            return Ok(Val::NEVER);
        }
        let mut best = values[0].0;
        for (val, ..) in &values[1..] {
            best = match (&*call.name, best, *val) {
                ("sum", a, b) => Method::Add.lower(&mut self.cx, a, &[b], None),
                (name, Val::Int(a), Val::Int(b)) => {
                    let cmp = if name == "max" { Cmp::Gt } else { Cmp::Lt };
                    let better = self.cx.b.icmp(cmp, b, a);
                    Val::Int(self.cx.b.select(Scalar::I64, better, b, a))
                }
                (name, Val::Float(a), Val::Float(b)) => {
                    numbers::ordered(&mut self.cx, b, a);
                    let better = self.cx.b.fcmp(if name == "max" { Cmp::Gt } else { Cmp::Lt }, b, a);
                    Val::Float(self.cx.b.select(Scalar::F64, better, b, a))
                }
                (_, a, _) => a,
            };
        }
        Ok(best)
    }

    /// `q, r = a.divmod(b)`
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn divmod(&mut self, receiver: &Node, arg: &Node, span: Span) -> Result<Vec<(Val, Ty)>> {
        let object = self.held(receiver)?;
        let receiver_ty = self.ty(receiver);
        let args = [(self.held(arg)?, self.ty(arg), None)];
        if self.cx.b.ended() {
            return Ok(vec![]);
        }
        let (mut q, mut r) = (Ty::never(), Ty::never());
        for a in receiver_ty.atoms() {
            for b in args[0].1.atoms() {
                let (x, y) = divmod_types(Number::of(a), Number::of(b));
                q = self.an.facts.join(&q, &x);
                r = self.an.facts.join(&r, &y);
            }
        }
        let (q_place, r_place) = (self.result_place(&q, span)?, self.result_place(&r, span)?);
        let nothing = self.result_place(&Ty::nil(), span)?;
        self.dispatch(object, &receiver_ty, &nothing, |s, _, a| {
            let mut chosen = Vec::new();
            s.dispatch_args(&args, &mut chosen, &nothing, &mut |s, args| {
                let (x, y) = numbers::divmod(&mut s.cx, a, args[0].1);
                s.store(&q_place, x);
                s.store(&r_place, y);
                Ok(None)
            })?;
            Ok(None)
        })?;
        Ok(vec![(self.load(&q_place), q), (self.load(&r_place), r)])
    }

    /// `test === subject`
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn case_eq(&mut self, test: &Node, test_val: Val, test_ty: &Ty, subject: Val, subject_ty: &Ty) -> Result<Val> {
        let arg = (subject, subject_ty.clone(), None);
        let (val, _) = self.call_values((test_val, test_ty), "===", &[arg], &[], true, test.span, test.span)?;
        Ok(val)
    }

    /// One contribution to a captured local.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn contribute(&mut self, node: &Node) -> Result<Val> {
        let unit = self.here.unit.clone();
        let Some(c) = crate::infer::accumulate::contribution(&unit, node) else { return Ok(Val::NEVER) };
        let val = self.eval(c.value)?;
        if self.cx.b.ended() {
            return Ok(Val::NEVER);
        }
        self.at(node.span);
        let Some(entry) = self.contributions.iter().find(|e| e.local == c.local) else { return Ok(Val::NEVER) };
        let (place, written) = (entry.place.clone(), entry.written);
        let val = match (c.negated, val) {
            (true, val) => Method::Neg.lower(&mut self.cx, val, &[], None),
            (false, val) => val,
        };
        if let (true, Val::Float(x)) = (c.wording.is_list(), val) {
            // checks the contribution whatever the variable holds, which is known only after the launch
            numbers::ordered(&mut self.cx, x, x);
        }
        let first = self.cx.b.icmp(Cmp::Lt, Operand::Var(written), Operand::I64(0));
        let tick = self.cx.b.i64(Op::Ctx(Ctx::Tick), &[]);
        self.branch(
            first,
            |s| {
                s.store(&place, val);
                Ok(())
            },
            |s| {
                let old = s.load(&place);
                let new = s.combined(c.combine, old, val);
                s.store(&place, new);
                Ok(())
            },
        )?;
        self.cx.b.set(written, tick);
        Ok(Val::NIL)
    }

    fn combined(&mut self, combine: Combine, old: Val, val: Val) -> Val {
        let method = match combine {
            Combine::Add => Method::Add,
            Combine::Mul => Method::Mul,
            Combine::And => Method::BitAnd,
            Combine::Or => Method::BitOr,
            Combine::Xor => Method::BitXor,
            Combine::Last => return val,
            Combine::Min(equals) | Combine::Max(equals) => {
                let cmp = if matches!(combine, Combine::Max(_)) { Cmp::Gt } else { Cmp::Lt };
                return match (old, val) {
                    (Val::Int(a), Val::Int(b)) => {
                        let better = self.cx.b.icmp(cmp, b, a);
                        Val::Int(self.cx.b.select(Scalar::I64, better, b, a))
                    }
                    // a NaN is replaced by the next value
                    (Val::Float(a), Val::Float(b)) if equals == Equals::Latest => {
                        let worse = self.cx.b.fcmp(cmp, a, b);
                        Val::Float(self.cx.b.select(Scalar::F64, worse, a, b))
                    }
                    (Val::Float(a), Val::Float(b)) => {
                        let better = self.cx.b.fcmp(cmp, b, a);
                        // a NaN stays only until another value comes
                        let nan = self.cx.b.fcmp(Cmp::Ne, a, a);
                        let better = self.cx.b.bool(Op::Or, &[better, nan]);
                        Val::Float(self.cx.b.select(Scalar::F64, better, b, a))
                    }
                    _ => val,
                };
            }
        };
        method.lower(&mut self.cx, old, &[val], None)
    }
}

/// Whether a node's value is in the registers of a variable.
fn is_variable(node: &Node) -> bool {
    match &node.kind {
        Kind::Local(_) => true,
        Kind::Seq(items) => items.last().is_some_and(is_variable),
        Kind::Assign { value, .. } => is_variable(value),
        Kind::Call(call) => &*call.name == "itself" && call.receiver.as_ref().is_some_and(is_variable),
        _ => false,
    }
}

/// The value of each binding, nil for defaults.
pub fn bound_values(params: &ast::Params, bindings: &[Binding], args: &[Arg], keywords: &[Keyword]) -> Vec<Val> {
    let positions = positions(params, args.len()).unwrap_or_default();
    let positional = positions.into_iter().map(|p| p.map_or(Val::NIL, |p| args[p].0));
    let by_name = |name: &Name| keywords.iter().find(|k| k.0 == *name).map_or(Val::NIL, |k| k.1);
    let values: Vec<Val> = positional.chain(params.keywords.iter().map(|k| by_name(&k.name))).collect();
    debug_assert_eq!(values.len(), bindings.len(), "one value for each binding");
    values
}
