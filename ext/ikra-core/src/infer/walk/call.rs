//! Calls: of methods, with blocks and without, and `super`.
//!
//! Here: receivers kind by kind, arguments, and the values for which a call's block runs. Not here: the look-up of the
//! method ([`super::super::calls`]), and the results of Ruby's own methods ([`super::super::builtins`]).

use super::{Env, Frame, FrameKind, Walker, literal};
use crate::diagnostic::Span;
use crate::error::{Error, Result};
use crate::id::ProcId;
use crate::infer::blocks::ProcKind;
use crate::infer::builtins::Builtin;
use crate::infer::calls::{self, Args, Literal, RangeForm, Target, of_range};
use crate::infer::keys::{DUG, Keyed};
use crate::syntax::ast::{Arg, Block, Call, Kind, LocalId, Name, Node, Params, Pattern, listed, marked_as, plain};
use crate::types::{Atom, Prims, Reach, Ty};
use crate::world::{Assumption, Root, well_known};
use std::sync::Arc;

impl Walker<'_, '_> {
    /// A call on every kind of a receiver; `env` is dead if it returns for none.
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub(in crate::infer) fn dispatch(
        &mut self,
        receiver: &Ty,
        name: &str,
        args: &Args,
        on_self: bool,
        span: Span,
        at: &Assumption,
        env: &mut Env,
    ) -> Result<Ty> {
        self.dispatch_with(receiver, name, args, None, on_self, span, at, env)
    }

    /// The same, with a block.
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub(in crate::infer) fn dispatch_with(
        &mut self,
        receiver: &Ty,
        name: &str,
        args: &Args,
        block: Option<&Ty>,
        on_self: bool,
        span: Span,
        at: &Assumption,
        env: &mut Env,
    ) -> Result<Ty> {
        if env.dead {
            return Ok(Ty::never());
        }
        let mut out = Ty::never();
        let mut after = env.dead();
        let place = self.here.site.clone().unwrap_or_else(|| (self.here.unit.clone(), span));
        self.an.calls_from(place);
        let several = receiver.atoms().len() > 1;
        let mut refused = None;
        for atom in receiver.atoms() {
            let answer = self.an.target(self.here.id, atom, name, on_self);
            let target = match self.refused(answer, span) {
                Ok(target) => target,
                // becomes an error at run time, since the receiver may be of another kind
                Err(error @ Error::Unsupported(_)) if several && self.an.may_wait() => {
                    refused.get_or_insert(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            match &target {
                Target::Writer(ivar) => {
                    self.check_shared_write(atom, receiver.reach, ivar, span)?;
                    self.note_write(atom, receiver.reach, Some(ivar), span);
                }
                Target::Builtin(Builtin::StructSet) if receiver.reach == Reach::Same => {
                    for member in self.members_of(atom, args, span)? {
                        self.check_shared_write(atom, receiver.reach, &member, span)?;
                    }
                }
                Target::Builtin(Builtin::StructSet) => {
                    // a refusal is reported where the method is interpreted
                    for member in self.members_of(atom, args, span).unwrap_or_default() {
                        self.note_write(atom, receiver.reach, Some(&member), span);
                    }
                }
                Target::Builtin(Builtin::IvarSet) => {
                    if let Some(Some(Literal::Sym(ivar))) = args.literals.first() {
                        self.check_shared_write(atom, receiver.reach, ivar, span)?;
                        self.note_write(atom, receiver.reach, Some(ivar), span);
                    }
                }
                Target::Builtin(Builtin::ArraySet | Builtin::ArrayPut) => {
                    self.note_write(atom, receiver.reach, None, span);
                }
                _ => {}
            }
            let mut e = env.clone();
            let invoked = self.invoke(&target, (atom, receiver.reach), name, args, block, span, at, &mut e);
            let (source, place) = self.place(span);
            let ty = match invoked.map_err(|error| error.placed_at(&source, place)) {
                Ok(ty) => ty,
                Err(error @ Error::Unsupported(_)) if several && target.may_wait() && self.an.may_wait() => {
                    refused.get_or_insert(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            if name == "%__parts"
                && matches!(target, Target::Ruby(_))
                && ty.atoms().iter().any(|part| !matches!(part, Atom::Array(_)))
            {
                let class = self.an.describe(atom);
                return Err(self
                    .error(
                        span,
                        format!("kernels know deconstruct only where it gives an Array, which {class}'s may not"),
                    )
                    .advise("give an Array on all of its paths")
                    .into());
            }
            e.dead |= ty.is_never();
            out = self.join(&out, &ty);
            after = self.join_env(&after, &e);
        }
        if let (true, Some(error)) = (out.is_never(), refused) {
            return Err(error);
        }
        *env = after;
        Ok(out)
    }

    /// The members that `s[…] = v` may write.
    fn members_of(&mut self, atom: Atom, args: &Args, span: Span) -> Result<Vec<Name>> {
        let mut out = Vec::new();
        for index in args.positional.first().map(Ty::atoms).unwrap_or_default() {
            let literal = args.literals.first().and_then(Option::as_ref);
            let members = self.an.touched_members(atom, index, literal);
            out.extend(self.refused(members, span)?);
        }
        Ok(out)
    }

    /// One target for one kind of receiver.
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub(in crate::infer) fn invoke(
        &mut self,
        target: &Target,
        (atom, reach): (Atom, Reach),
        name: &str,
        args: &Args,
        block: Option<&Ty>,
        span: Span,
        at: &Assumption,
        env: &mut Env,
    ) -> Result<Ty> {
        let written = name;
        let name = plain(written);
        if let Some((block, args)) = self.an.operator_block(self.here.id, target, args, block, span) {
            return self.invoke(target, (atom, reach), name, &args, Some(&block), span, at, env);
        }
        if let Some(asked) = calls::asked(atom, name, args) {
            let receiver = Ty::of(atom, reach);
            let again = marked_as(asked.name, written);
            let answer = if asked.swapped {
                self.dispatch(&args.positional[0], &again, &Args::of(vec![receiver]), true, span, at, env)?
            } else {
                self.dispatch(&receiver, &again, args, true, span, at, env)?
            };
            return Ok(if name == "!=" { calls::negate(&answer) } else { answer });
        }
        if let Some(keyed) = self.an.keyed(target, atom, args, block) {
            return self.keyed(&keyed, (atom, reach), name, args, block, span, at, env);
        }
        if let Target::Ruby(method) = target {
            let known = self.an.knows_form(*method, name, args, block);
            self.refused(known, span)?;
        }
        match (target, block) {
            (Target::Builtin(Builtin::MakeValue), _) => {
                let Atom::Module(class) = atom else { return Ok(Ty::never()) };
                if args.positional.len() != crate::world::values::parts(class).len() || !args.keywords.is_empty() {
                    let class = self.an.describe(atom);
                    return Err(self
                        .error(span, format!("kernels know this of {class} only with both arguments"))
                        .into());
                }
                let made = self.an.make_value(self.here.id, class, &args.positional);
                self.refused(made, span)
            }
            (Target::Builtin(Builtin::OfRange), _) => {
                let mut out = Ty::never();
                let mut after = env.dead();
                let forms = self.an.range_forms(self.here.id, (atom, reach), name);
                let forms = self.refused(forms, span)?;
                let several = forms.len() > 1;
                for form in forms {
                    let mut e = env.clone();
                    let ty = match form {
                        RangeForm::Registers(range) => {
                            let place = (self.here.id, span, range);
                            self.an.lacking.remove(&place);
                            match self.dispatch_with(&Ty::prim(range), written, args, block, false, span, at, &mut e) {
                                Err(error @ Error::Unsupported(_)) if several && self.an.may_wait() => {
                                    self.an.lacking.insert(place, error.to_string());
                                    continue;
                                }
                                ty => of_range(ty?, name, block.is_some(), &Ty::of(atom, reach)),
                            }
                        }
                        RangeForm::Helper(method) => {
                            self.inline(method, Ty::of(atom, reach), args, block.cloned(), span, &mut e)?
                        }
                    };
                    out = self.join(&out, &ty);
                    e.dead |= ty.is_never();
                    after = self.join_env(&after, &e);
                }
                *env = after;
                Ok(out)
            }
            (Target::Builtin(Builtin::RangeMin | Builtin::RangeMax), Some(_))
                if let Some(method) = crate::prelude::find("", "Enumerable", name) =>
            {
                self.invoke(&Target::Ruby(method), (atom, reach), name, args, block, span, at, env)
            }
            (Target::Handler(handler), _) => {
                self.an.world.names_symbol(name);
                let args = args.with_name(name);
                let target = Target::Ruby(*handler);
                self.invoke(&target, (atom, reach), "method_missing", &args, block, span, at, env)
            }
            (Target::Builtin(Builtin::RespondTo | Builtin::Answers), _) if self.an.asks_missing(atom, args) => {
                let args = args.for_missing();
                let receiver = Ty::of(atom, reach);
                let answer = self.dispatch(&receiver, "respond_to_missing?", &args, true, span, at, env)?;
                Ok(calls::truth(&answer))
            }
            (Target::Builtin(Builtin::MethodMissing), _) => Ok(Ty::never()),
            (Target::Builtin(Builtin::Buffer), _) => {
                if args.positional.first().is_some_and(|length| !length.is_never() && !length.only(Prims::INT)) {
                    let what = "kernels know lengths and places of parts that are Integers only";
                    return Err(self.error(span, what).advise("write .to_i where a Float or nil may be").into());
                }
                self.made_array(span, &Ty::never())
            }
            (Target::Builtin(Builtin::MakeHash), _) => {
                let block = self.here.block.clone().map(|block| (block, self.place(span)));
                let made = self.an.make_hash((self.here.id, span), &args.positional, block);
                self.refused(made, span)
            }
            (Target::Builtin(_), _) if let Some(method) = longer_form(atom, target, name, args) => {
                self.invoke(&Target::Ruby(method), (atom, reach), name, args, block, span, at, env)
            }
            (Target::Builtin(Builtin::Staged), _) => {
                let answer = self.an.staged_type(self.here.id, args, at);
                self.refused(answer, span)
            }
            (Target::Builtin(Builtin::Doubt), _) => {
                let doubted = args.positional.first().cloned().unwrap_or_default();
                Ok(if doubted.only(Prims::BOOL) && doubted.prims == Prims::BOOL && self.an.facts.holds(at) {
                    Ty::prim(Prims::FALSE)
                } else {
                    doubted
                })
            }
            (Target::Builtin(builtin), Some(block)) if builtin.iterates() => {
                self.iterate(*builtin, atom, reach, name, args, block, span, env)
            }
            (Target::Builtin(Builtin::ProcCall) | Target::Proc(_), Some(_)) => {
                let error = self.error(span, "kernels pass no blocks to Procs");
                Err(error.advise("pass a lambda as an argument").into())
            }
            (Target::Builtin(Builtin::ProcCall), None) => match atom {
                Atom::Proc(id) => self.call_proc(id, args, !args.void, span, env),
                _ => Ok(Ty::never()),
            },
            (Target::Builtin(Builtin::Compose { receiver_first }), None) => {
                self.compose(atom, *receiver_first, args, span)
            }
            (Target::Builtin(Builtin::Curry), _) => match atom {
                Atom::Proc(id) => self.curry(id, args, span, env),
                _ => Ok(Ty::never()),
            },
            (Target::Builtin(Builtin::MakeProc), None) if name == "method" => {
                self.method_object(&Ty::of(atom, reach), args, span, env)
            }
            (Target::Builtin(Builtin::MakeProc), Some(block)) => self.proc_of_block(name, block, span),
            (Target::Builtin(Builtin::MethodReceiver), None) => {
                if let Atom::Proc(id) = atom {
                    self.is_at_hand(id, span)?;
                }
                let answer = self.an.reached(self.here.id, target, (atom, reach), name, args, at);
                self.refused(answer, span)
            }
            (Target::Proc(id), None) => self.call_proc(*id, args, !args.void, span, env),
            (Target::Builtin(Builtin::BlockGiven), _) => {
                if self.here.unit.name.is_none() && self.here.unit.outer_block.is_none() {
                    let error = self.error(span, "kernels know block_given? as a plain call only");
                    return Err(error.advise("write block_given?").into());
                }
                let given = self.own_block(span, env)?.is_some();
                Ok(Ty::prim(if given { Prims::TRUE } else { Prims::FALSE }))
            }
            (Target::Builtin(Builtin::Send { public }), _) => {
                let Some(Some(Literal::Sym(called))) = args.literals.first() else {
                    return Err(self
                        .error(span, format!("kernels know {name} with a literal Symbol only"))
                        .because("what is called must be known when compiling")
                        .advise("choose with case … when")
                        .into());
                };
                let rest = args.after_first();
                let receiver = Ty::of(atom, reach);
                let called = marked_as(called, written);
                self.dispatch_with(&receiver, &called, &rest, block, !public, span, at, env)
            }
            (Target::Builtin(builtin @ (Builtin::New | Builtin::Allocate)), _) => {
                self.new_object(*builtin, atom, args, block, span, at, env)
            }
            (Target::Ruby(method), _) if self.an.inlines(*method, args, block)? => {
                self.inline(*method, Ty::of(atom, reach), args, block.cloned(), span, env)
            }
            _ => {
                let answer = self.an.reached(self.here.id, target, (atom, reach), name, args, at);
                self.refused(answer, span)
            }
        }
    }

    /// A call with a constant key of a Hash.
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    fn keyed(
        &mut self,
        keyed: &Keyed,
        (atom, reach): (Atom, Reach),
        name: &str,
        args: &Args,
        block: Option<&Ty>,
        span: Span,
        at: &Assumption,
        env: &mut Env,
    ) -> Result<Ty> {
        let mut read = |field: &Name| {
            let answer = self.an.read_field(self.here.id, atom, reach, field);
            self.refused(answer, span)
        };
        match keyed {
            Keyed::Field(field) => read(field),
            Keyed::Fetch { method, present, value } => {
                let args = args.with_found(read(present)?, read(value)?);
                self.invoke(&Target::Ruby(*method), (atom, reach), name, &args, block, span, at, env)
            }
            Keyed::Dig(field) => {
                let value = read(field)?;
                self.dispatch(&value, DUG, &args.after_first(), true, span, at, env)
            }
        }
    }

    pub(in crate::infer) fn args(&mut self, args: &[Arg], env: &mut Env) -> Result<Args> {
        let mut out = Args::default();
        for arg in args {
            match arg {
                Arg::Positional(node) => {
                    let ty = self.eval(node, env)?;
                    out.positional.push(ty);
                    out.literals.push(literal(node));
                }
                Arg::Keyword(name, node) => {
                    let ty = self.eval(node, env)?;
                    out.keywords.push((name.clone(), ty));
                }
                Arg::KeywordSplat(node) => {
                    return Err(self
                        .error(node.span, "kernels do not know double splats")
                        .because("which keywords a call has is settled when compiling, and a Hash's keys are not")
                        .advise("write the keywords out, f(a: options[:a])")
                        .into());
                }
            }
        }
        Ok(out)
    }

    pub(super) fn call(&mut self, node: &Node, call: &Call, env: &mut Env) -> Result<Ty> {
        if let Some(ty) = self.raise(call, env)? {
            return Ok(ty);
        }
        if self.throw(call, env)? {
            return Ok(Ty::never());
        }
        if let Some(ty) = self.proc_literal(call)? {
            return Ok(ty);
        }
        if let Some(receiver) = &call.receiver
            && let Kind::Array(items) = &receiver.kind
            && let Some(ty) = self.literal_array(node, call, items, env)?
        {
            return Ok(ty);
        }
        if let Some(ty) = self.grown(node, call, env)? {
            return Ok(ty);
        }
        if let Some(ty) = self.grown_in_hash(node, call, env)? {
            return Ok(ty);
        }
        let on_self = call.finds_private();
        let receiver = match &call.receiver {
            Some(receiver) => {
                let used = !self.an.spec(self.here.id).void.contains(&node.id);
                self.receiver(receiver, &call.name, used, env)?
            }
            None => self.self_type_for(call)?,
        };
        let mut skipped = env.dead();
        let mut receiver = receiver;
        if call.safe {
            if receiver.may_be(Prims::NIL) {
                skipped = env.clone();
            }
            receiver = receiver.filter(|a| a != Atom::Nil);
            env.dead |= receiver.is_never();
        }
        self.open_index(call, &receiver)?;
        let held = self.sole_holder(call, env);
        self.under_way.extend(held);
        let asking = asking_next(call).filter(|_| self.reaches_rubys(&receiver, &call.name));
        let ty = self.call_on(node, asking.as_ref().unwrap_or(call), &receiver, on_self, env);
        if held.is_some() {
            self.under_way.pop();
        }
        let ty = ty?;
        let nil = if skipped.dead { Ty::never() } else { Ty::nil() };
        *env = self.join_env(env, &skipped);
        Ok(self.join(&ty, &nil))
    }

    /// Refuses `x[i..]` and `x[..i]` on a receiver that is not a list: the parser has added the end that such a Range
    /// has for lists.
    fn open_index(&self, call: &Call, receiver: &Ty) -> Result<()> {
        let lists = |atom: &Atom| matches!(atom, Atom::Array(_) | Atom::Str | Atom::Sym | Atom::Nil | Atom::Int);
        match call.args.as_slice() {
            [Arg::Positional(arg)]
                if &*call.name == "[]" && arg.is_closed_range() && !receiver.atoms().iter().all(lists) =>
            {
                Err(self
                    .error(arg.span, "kernels know [] with an open Range of Arrays, Strings, Symbols and Integers only")
                    .advise("write both ends")
                    .into())
            }
            _ => Ok(()),
        }
    }

    /// The type of `self` for a call without a receiver. `rand`, `loop` and the like are Kernel's for every `self`,
    /// even for one that kernels cannot hold.
    pub(in crate::infer) fn self_type_for(&mut self, call: &Call) -> Result<Ty> {
        if self.here.section
            && matches!(
                &*call.name,
                "rand" | "loop" | "Integer" | "Float" | "Complex" | "Rational" | "raise" | "fail" | "catch" | "throw"
            )
        {
            return match self.an.root(self.here.id, &Root::SelfObject) {
                Ok(ty) => Ok(ty),
                Err(_) => Ok(Ty::module(crate::world::well_known::KERNEL)),
            };
        }
        self.self_type(call.name_span)
    }

    fn call_on(&mut self, node: &Node, call: &Call, receiver: &Ty, on_self: bool, env: &mut Env) -> Result<Ty> {
        if call.receiver.as_ref().is_some_and(stands_for_enumerator) {
            for atom in receiver.atoms() {
                let answer = self.an.list_is_an_enumerator(atom, &call.name);
                self.refused(answer, call.name_span)?;
            }
        }
        if call.receiver.is_none() {
            // as in `raise "…"`: an error in the call itself is reported before errors in its arguments
            for atom in receiver.atoms() {
                let answer = self.an.target(self.here.id, atom, &call.name, on_self);
                self.refused(answer, call.name_span)?;
            }
        }
        let mut args = self.args(&call.args, env)?;
        args.void = self.an.spec(self.here.id).void.contains(&node.id);
        if env.dead {
            return Ok(Ty::never());
        }
        let block = self.given_block(call, env)?;
        if env.dead {
            return Ok(Ty::never());
        }
        let at = self.assumption(node.span);
        if call.block.as_ref().is_none_or(|block| block.section) {
            return self.dispatch_with(receiver, &call.name, &args, block.as_ref(), on_self, call.name_span, &at, env);
        }
        // `break` in the literal block leaves this frame
        let id = block.as_ref().map_or(ProcId(0), |ty| ty.procs[0]);
        let outer = self.block_frames.insert(id, self.frames.len());
        self.frames.push(Frame::new(FrameKind::Call, env.locals.len()));
        let ty = self.dispatch_with(receiver, &call.name, &args, block.as_ref(), on_self, call.name_span, &at, env)?;
        let frame = self.frames.pop().expect("pushed above");
        match outer {
            Some(outer) => self.block_frames.insert(id, outer),
            None => self.block_frames.remove(&id),
        };
        if let Some(broke) = frame.breaks {
            *env = self.join_env(env, &broke);
        }
        Ok(self.join(&ty, &frame.break_ty))
    }

    /// The arguments that an iterator yields in each round, and the type of the call (never: it does not end).
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    fn iterate(
        &mut self,
        builtin: Builtin,
        atom: Atom,
        reach: Reach,
        name: &str,
        args: &Args,
        block: &Ty,
        span: Span,
        env: &mut Env,
    ) -> Result<Ty> {
        let numbers = |args: &Args| {
            let all = args.positional.iter().chain(args.keywords.iter().map(|(_, t)| t));
            all.into_iter().fold((true, false), |(known, float), ty| {
                (known && (ty.only(Prims::INT) || ty.only(Prims::FLOAT)), float || ty.only(Prims::FLOAT))
            })
        };
        if builtin != Builtin::Step && !args.keywords.is_empty() {
            return Err(self
                .error(span, format!("kernels do not know {name} with keywords"))
                .advise("write out what the keyword asks for")
                .into());
        }
        let wrong_count = !builtin.arity_by_name(name).contains(&args.positional.len());
        if wrong_count {
            env.dead = true;
            return Ok(Ty::never());
        }
        let itself = Ty::of(atom, reach);
        let (values, result) = match builtin {
            Builtin::Loop => (vec![], Ty::never()),
            Builtin::Times => (vec![Ty::int()], itself),
            Builtin::Upto | Builtin::Downto => {
                if !args.positional[0].only(Prims::INT) {
                    return Err(self.error(span, format!("kernels know {name} with an Integer limit")).into());
                }
                (vec![Ty::int()], itself)
            }
            Builtin::Step => {
                let (known, float) = numbers(args);
                let limit = !args.positional.is_empty() || args.keywords.iter().any(|(n, _)| &**n == "to");
                if !known || args.keywords.iter().any(|(n, _)| !matches!(&**n, "by" | "to")) {
                    return Err(self.error(span, "kernels know step with numbers only").into());
                }
                if !limit {
                    return Err(self.error(span, "kernels do not know step without a limit").advise("use loop").into());
                }
                (vec![if float || atom == Atom::Float { Ty::float() } else { Ty::int() }], itself)
            }
            Builtin::RangeStep => {
                let (known, float) = numbers(args);
                if !known {
                    return Err(self.error(span, "kernels know step of a Range with an Integer or a Float").into());
                }
                (vec![if float || atom == Atom::FloatRange { Ty::float() } else { Ty::int() }], itself)
            }
            Builtin::RangeEach | Builtin::RangeReverseEach | Builtin::RangeEachWithIndex => {
                if atom == Atom::FloatRange {
                    // TypeError: can't iterate from Float
                    env.dead = true;
                    return Ok(Ty::never());
                }
                let n = if builtin == Builtin::RangeEachWithIndex { 2 } else { 1 };
                (vec![Ty::int(); n], itself)
            }
            Builtin::ArrayEach | Builtin::ArrayEachWithIndex | Builtin::ArrayReverseEach => {
                let Atom::Array(kind) = atom else { unreachable!("found for arrays only") };
                let answer = self.an.elements(self.here.id, kind, reach);
                let element = self.opaque(answer, span)?;
                self.an.read_array(kind, reach);
                let mut values = vec![element];
                if builtin == Builtin::ArrayEachWithIndex {
                    values.push(Ty::int());
                }
                (values, itself)
            }
            Builtin::ArrayEachIndex => (vec![Ty::int()], itself),
            _ => unreachable!("not an iterator"),
        };
        let values = Args::of(values);
        self.rounds(env, FrameKind::Call, builtin == Builtin::Loop, |w, e| {
            w.call_procs(block, &values, false, span, e).map(drop)
        })?;
        Ok(if env.dead { Ty::never() } else { result })
    }

    /// `[a, b].max` and the like, for elements of one kind of number, without making the array. None: it is some other
    /// call.
    fn literal_array(&mut self, node: &Node, call: &Call, items: &[Node], env: &mut Env) -> Result<Option<Ty>> {
        let known = matches!(&*call.name, "min" | "max" | "sum") && call.args.is_empty()
            || &*call.name == "include?" && call.args.len() == 1;
        let given_block = call.block.is_some() || call.block_arg.is_some();
        if !known || given_block || items.is_empty() || items.iter().any(|i| matches!(i.kind, Kind::Splat(_))) {
            return Ok(None);
        }
        if !self.an.is_unaltered_of(well_known::ARRAY, &call.name) {
            return Ok(None);
        }
        let mut out = Ty::never();
        for item in items {
            let ty = self.eval(item, env)?;
            out = self.join(&out, &ty);
        }
        if env.dead {
            return Ok(Some(Ty::never()));
        }
        if &*call.name == "include?" {
            // all elements must be compared: a comparison that raises or writes would show
            if !self.is_rubys(&out, "==") {
                return Ok(None);
            }
            let args = self.args(&call.args, env)?;
            let at = self.assumption(node.span);
            for item in items {
                let ty = self.here.types[item.id.index()].clone();
                self.dispatch(&ty, "==", &args, false, call.name_span, &at, env)?;
            }
            return Ok(Some(if env.dead { Ty::never() } else { Ty::bool() }));
        }
        let plain = out.only(Prims::INT) || out.only(Prims::FLOAT) && &*call.name != "sum";
        if !plain || &*call.name != "sum" && !self.reaches_rubys(&out, "<=>") {
            return Ok(None);
        }
        Ok(Some(out))
    }

    /// A call with a splat, for each number of elements that its list may have. If it cannot be compiled for some of
    /// these, that becomes an error at run time.
    pub(super) fn spread_call(
        &mut self,
        list: Option<LocalId>,
        size: &Node,
        calls: &[Node],
        env: &mut Env,
    ) -> Result<Ty> {
        self.eval(size, env)?;
        if env.dead {
            return Ok(Ty::never());
        }
        if let Some(count) = self.here.rest.filter(|_| list.is_some() && list == self.here.unit.rest)
            && let Some(call) = calls.get(count)
        {
            return self.eval(call, env);
        }
        let (mut out, mut after) = (Ty::never(), env.dead());
        let (mut refused, mut known) = (None, false);
        for call in calls {
            let mut e = env.clone();
            let within = (self.here.id, self.frames.len(), self.others.len());
            match self.eval(call, &mut e) {
                Ok(ty) => {
                    known = true;
                    self.an.specs[self.here.id.index()].unspread.remove(&call.id);
                    out = self.join(&out, &ty);
                    after = self.join_env(&after, &e);
                }
                Err(error @ Error::Unsupported(_))
                    if within == (self.here.id, self.frames.len(), self.others.len()) =>
                {
                    self.an.specs[self.here.id.index()].unspread.insert(call.id, error.to_string());
                    refused.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        match refused {
            Some(error) if !known => Err(error),
            _ => {
                *env = after;
                Ok(out)
            }
        }
    }

    pub(super) fn super_call(
        &mut self,
        node: &Node,
        args: Option<&[Arg]>,
        block: Option<&Arc<Block>>,
        env: &mut Env,
    ) -> Result<Ty> {
        let Some(method) = self.an.spec(self.here.id).key.method else {
            return Err(self.error(node.span, "kernels do not know super in a section's block").into());
        };
        let bare = args.is_none();
        let mut args = match args {
            Some(args) => self.args(args, env)?,
            None => self.implicit_super_args(node, env)?,
        };
        args.void = self.an.spec(self.here.id).void.contains(&node.id);
        if env.dead {
            return Ok(Ty::never());
        }
        let block = match block {
            Some(block) => Some(Ty::proc(self.an.proc(self.here.id, block.span, || ProcKind::Block(block.clone())))),
            // `super` without a block passes on the method's own block
            None => self.here.block.clone(),
        };
        let (atom, reach) = (self.here.self_ty.atoms()[0], self.here.self_ty.reach);
        let at = self.assumption(node.span);
        let answer = self.an.super_target(method, atom);
        let (target, name) = self.refused(answer, node.span)?;
        // Ruby's own method_missing and respond_to_missing? ignore the arguments
        let looks = matches!(target, Target::Ruby(_) | Target::Proc(_)) || &*name == "new";
        if bare && looks && passes_lists(&self.here.unit.params) {
            let message = "kernels do not know a bare super in a method with `*`, `**` or parameters in parentheses";
            let diagnostic = self.error(node.span, message);
            return Err(diagnostic.advise("write down what it is to pass on: super(a, b)").into());
        }
        let ty = self.invoke(&target, (atom, reach), &name, &args, block.as_ref(), node.span, &at, env)?;
        env.dead |= ty.is_never();
        Ok(ty)
    }

    /// The method's own parameters, with their current values.
    fn implicit_super_args(&mut self, node: &Node, env: &mut Env) -> Result<Args> {
        let unit = self.here.unit.clone();
        let mut out = Args::default();
        for local in super_locals(&unit.params) {
            let ty = self.pass_on(node, local, env)?;
            out.positional.push(ty);
            out.literals.push(None);
        }
        for keyword in &unit.params.keywords {
            let ty = self.pass_on(node, keyword.local, env)?;
            out.keywords.push((keyword.name.clone(), ty));
        }
        Ok(out)
    }

    fn pass_on(&mut self, node: &Node, local: LocalId, env: &mut Env) -> Result<Ty> {
        let now = self.read_local(local, env, node.span)?;
        let place = (node.id, local);
        let old = self.an.spec(self.here.id).passed_on.get(&place).cloned().unwrap_or_default();
        let ty = self.join(&old, &now);
        self.an.specs[self.here.id.index()].passed_on.insert(place, ty.clone());
        Ok(ty)
    }
}

/// Whether a node is the list of the values that an iterator yields.
fn stands_for_enumerator(node: &Node) -> bool {
    matches!(&node.kind, Kind::Call(list) if list.name.strip_prefix('%').is_some_and(|name| listed(name).is_some()))
}

/// Whether a bare `super` passes on more than parameters with names.
fn passes_lists(params: &Params) -> bool {
    let in_parentheses = |pattern: &Pattern| matches!(pattern, Pattern::List { .. });
    let lists = params.rest.is_some() || params.keyword_rest.is_some();
    lists || params.required.iter().chain(&params.post).any(in_parentheses)
}

/// Positional parameters in order, as a bare `super` passes them on.
pub fn super_locals(params: &Params) -> Vec<LocalId> {
    let local = |p: &Pattern| match p {
        Pattern::Local(local) => Some(*local),
        Pattern::List { .. } => None,
    };
    params
        .required
        .iter()
        .filter_map(local)
        .chain(params.optional.iter().map(|(l, _)| *l))
        .chain(params.post.iter().filter_map(local))
        .collect()
}

/// The prelude's method for forms of a builtin that take more arguments: `first(n)`, `last(n)`, `a[range]`, `a[i, n]`,
/// `round(half: …)`, `Integer(text)`.
pub fn longer_form(atom: Atom, target: &Target, name: &str, args: &Args) -> Option<crate::id::MethodId> {
    let Target::Builtin(builtin) = target else { return None };
    let given = args.positional.as_slice();
    let ranges = |ty: &Ty| {
        let range = Atom::Object(crate::world::well_known::RANGE);
        ty.atoms().into_iter().any(|atom| matches!(atom, Atom::IntRange | Atom::FloatRange) || atom == range)
    };
    let may_be_text = |ty: &Ty| ty.atoms().contains(&Atom::Str);
    match builtin {
        Builtin::Numeric(crate::types::numeric::Method::Round)
            if !args.keywords.is_empty() && args.keywords.iter().all(|(keyword, _)| &**keyword == "half") =>
        {
            return crate::prelude::helper(
                "",
                false,
                if atom == Atom::Int { "__round_integer" } else { "__round_float" },
            );
        }
        Builtin::Numeric(crate::types::numeric::Method::BitRef)
            if given.len() == 1 && given[0].only(Prims::INT_RANGE) =>
        {
            return match args.literals.first() {
                Some(Some(Literal::From)) => crate::prelude::helper("Integer", false, "__bits_from"),
                Some(Some(Literal::UpTo)) => crate::prelude::helper("Integer", false, "__bits_up_to"),
                _ => None,
            };
        }
        Builtin::ToInteger if given.first().is_some_and(may_be_text) => {
            return crate::prelude::helper("", false, "__to_integer");
        }
        Builtin::ToFloat if given.first().is_some_and(may_be_text) => {
            return crate::prelude::helper("", false, "__to_float");
        }
        Builtin::RangeCover if name == "cover?" && given.len() == 1 && ranges(&given[0]) => {
            return crate::prelude::helper("Range", false, "__cover_any");
        }
        _ => {}
    }
    if matches!(atom, Atom::IntRange | Atom::FloatRange) {
        return match (builtin, given) {
            (Builtin::RangeFirst, [_]) if name == "first" => crate::prelude::find("Range", "Range", name),
            (Builtin::RangeLast, [_]) if name == "last" => crate::prelude::find("Range", "Range", name),
            (Builtin::RangeMin | Builtin::RangeMax, [_]) => crate::prelude::find("Range", "Range", name),
            (Builtin::RangeMin | Builtin::RangeMax, []) if atom == Atom::FloatRange => {
                crate::prelude::find("Range", "Range", name)
            }
            _ => None,
        };
    }
    let Atom::Array(_) = atom else { return None };
    match (builtin, given) {
        (Builtin::ArrayFirst | Builtin::ArrayLast, [_]) => crate::prelude::find("Array", "Array", name),
        (Builtin::ArrayGet, [range]) if name != "at" && ranges(range) => {
            crate::prelude::find("Array", "Array", "slice")
        }
        (Builtin::ArrayGet, [_, _]) if name != "at" => crate::prelude::find("Array", "Array", "slice"),
        (Builtin::ArraySet, [part, _]) if crate::infer::append::only_ranges(part) => {
            crate::prelude::helper("Array", false, "__set_part")
        }
        (Builtin::ArraySet, [_, _, _]) => crate::prelude::helper("Array", false, "__set_part"),
        _ => None,
    }
}

/// `[a, b].min` as Ruby compiles it: it calls `<=>` on each next element, and not on the least so far.
pub fn asking_next(call: &Call) -> Option<Call> {
    let Some(Node { kind: Kind::Array(items), .. }) = &call.receiver else { return None };
    let name = match &*call.name {
        "min" => "%__min",
        "max" => "%__max",
        _ => return None,
    };
    let plain = call.args.is_empty() && call.block.is_none() && call.block_arg.is_none() && !call.safe;
    // a literal of constants alone is an array that exists from the start, so Ruby does not compile it so
    let constant = |item: &Node| {
        matches!(item.kind, Kind::Nil | Kind::True | Kind::False | Kind::Int(_) | Kind::Float(_) | Kind::Sym(_))
    };
    let made = !items.iter().any(|item| matches!(item.kind, Kind::Splat(_))) && !items.iter().all(constant);
    (plain && made).then(|| Call {
        receiver: None,
        name: name.into(),
        name_span: call.name_span,
        args: Vec::new(),
        block: None,
        block_arg: None,
        safe: false,
        matches: false,
    })
}
