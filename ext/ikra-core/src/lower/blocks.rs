//! Blocks and inlined methods in lowering: labelled pieces of the function that is being made.
//!
//! Here: [`Here`], the body that is being lowered; methods that take blocks, `yield`, calls of Procs. Not here: which
//! calls are inlined, and types ([`crate::infer::blocks`] decides both, position by position).

use super::body::{Body, Frame, Place};
use super::calls::{Arg, How, Keyword, bound_values};
use super::value::Val;
use crate::diagnostic::Span;
use crate::error::Result;
use crate::id::{MethodId, ProcId};
use crate::infer::blocks::{Inlining, Pairs, ProcInfo, ProcKind, place_of};
use crate::infer::calls::{Args, Target, bind, rest_positions};
use crate::infer::lifted::LiftedCall;
use crate::infer::outside::receiver_of;
use crate::infer::{Binding, SpecId};
use crate::ir::{LabelId, Stmt, Trap};
use crate::syntax::ast::{self, Block, Call, Kind, LocalId, NAMED, Node, Params};
use crate::types::{Atom, Reach, Ty, Unit};
use crate::world::{Assumption, Outside, Root};
use std::sync::Arc;

/// A body that is being lowered.
pub struct Here {
    pub spec: SpecId,
    pub unit: Arc<ast::Unit>,
    pub self_val: Option<Val>,
    pub locals: Vec<Option<Place>>,
    pub section: bool,
    /// The block that was passed to it.
    pub block: Option<(Val, Ty)>,
    /// The target of `return`. None: it leaves the function.
    pub ret: Option<(LabelId, Place)>,
    /// The user's call of a method of the prelude that led here.
    pub site: Option<(Arc<ast::Unit>, Span)>,
    /// The number of arguments in its splat parameter.
    pub rest: Option<usize>,
}

impl Here {
    pub fn new(spec: SpecId, unit: Arc<ast::Unit>, section: bool) -> Self {
        let locals = vec![None; unit.locals.len()];
        Self { spec, unit, self_val: None, locals, section, block: None, ret: None, site: None, rest: None }
    }
}

impl Body<'_, '_> {
    /// The block passed to a call: a literal one, or the value after `&`.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn given_block(&mut self, call: &Call) -> Result<Option<(Val, Ty)>> {
        let spec = self.here.spec;
        let unit = |id: ProcId| Some((Val::Unit(Unit::Proc(id)), Ty::proc(id)));
        if let Some(block) = &call.block {
            return Ok(unit(self.an.proc(spec, block.span, || ProcKind::Block(block.clone()))));
        }
        let Some(node) = &call.block_arg else { return Ok(None) };
        if let Kind::Sym(name) = &node.kind {
            return Ok(unit(self.an.proc(spec, node.span, || ProcKind::Symbol(name.clone()))));
        }
        let val = self.held(node)?;
        let ty = self.ty(node);
        let block = self.an.as_block(ty.clone());
        if let ([id], true) = (&*block.procs, block != ty) {
            return Ok(unit(*id));
        }
        Ok((!ty.procs.is_empty()).then_some((val, ty)))
    }

    /// Inlines a method's body in place of a call.
    ///
    /// # Errors
    /// As [`Body::eval`].
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub fn inline(
        &mut self,
        method: MethodId,
        (atom, reach): (Atom, Reach),
        receiver: Val,
        args: &[Arg],
        keywords: &[Keyword],
        types: &Args,
        block: Option<(Val, Ty)>,
        span: Span,
    ) -> Result<Option<Val>> {
        let source = self.an.source(method)?;
        let unit = source.unit.clone();
        let bindings = match bind(&unit.params, types) {
            Ok(bindings) => bindings,
            Err(message) => {
                self.wrong_arguments(method, types, message)?;
                return Ok(None);
            }
        };
        let values = bound_values(&unit.params, &bindings, args, keywords);
        let self_ty = Ty::of(atom, reach);
        let id = self.an.inlined(self.inlining(method, self_ty.clone(), types.void, span))?;
        self.an.specs[id.index()].lowered = true;
        let ret = self.an.spec(id).ret.clone();
        let place = self.result_place(&ret, span)?;
        let label = self.cx.b.label();
        let mut callee = Here::new(id, unit.clone(), false);
        callee.block = block;
        callee.rest = Some(rest_positions(&unit.params, args.len()).len());
        callee.ret = Some((label, place.clone()));
        callee.site = match &self.here.site {
            Some(site) => Some(site.clone()),
            None => self.an.speaks_for_caller(method)?.then(|| (self.here.unit.clone(), span)),
        };
        callee.self_val = Some(self.cast_to(receiver, &self_ty, span)?);
        let at = (self.cx.path.clone(), self.cx.line);
        if callee.site.is_none() {
            self.cx.path.clone_from(&unit.source.path);
        }
        let caller = std::mem::replace(&mut self.here, callee);
        self.others.push(caller);
        let catches = self.open_catch(method, types, (label, &place));
        self.cx.b.open();
        let outcome = (|| -> Result<()> {
            self.declare_locals()?;
            let given: Vec<Val> = args.iter().map(|a| a.0).collect();
            self.collect_rest(&unit.params, &given)?;
            self.bind_params(&unit.params, &bindings, &values)?;
            let exit = (label, place.clone());
            if source.around.is_some() {
                self.frames.push(Frame { next: label, next_place: Some(place.clone()), brk: Some(exit) });
            }
            let val = self.eval(&unit.body);
            if source.around.is_some() {
                self.frames.pop();
            }
            let val = val?;
            if !self.is_never(&unit.body) {
                self.store(&place, val);
            }
            Ok(())
        })();
        let body = self.cx.b.close();
        self.close_catch(catches);
        self.here = self.others.pop().expect("pushed above");
        (self.cx.path, self.cx.line) = at;
        outcome?;
        self.cx.b.push(Stmt::Block { label, body });
        if ret.is_never() {
            self.unreachable();
            return Ok(None);
        }
        Ok(Some(self.load(&place)))
    }

    /// The identity by which an inlined call is found again.
    pub fn inlining(&self, method: MethodId, self_ty: Ty, void: bool, span: Span) -> Inlining {
        Inlining { from: self.here.spec, span, method, self_ty, void }
    }

    /// Raises ArgumentError. Ruby raises it where the method is defined; its own methods are in no file.
    ///
    /// # Errors
    /// If the method's source is not available.
    pub fn wrong_arguments(&mut self, method: MethodId, types: &Args, message: String) -> Result<()> {
        let message = self.an.argument_error(method, types, message);
        if self.an.is_library(method) || self.an.speaks_for_caller(method)? {
            self.trap(Trap::Raise { class: "ArgumentError", message }, None);
            return Ok(());
        }
        let unit = self.an.source(method)?.unit;
        let here = (self.cx.path.clone(), self.cx.line);
        let defined = &unit.source;
        self.cx.path.clone_from(&defined.path);
        self.cx.line = defined.line_of(defined.slice.start as u32);
        self.trap(Trap::Raise { class: "ArgumentError", message }, None);
        (self.cx.path, self.cx.line) = here;
        Ok(())
    }

    /// Makes the array that a splat parameter collects.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn collect_rest(&mut self, params: &Params, args: &[Val]) -> Result<()> {
        let Some(ast::Rest(Some(local))) = params.rest else { return Ok(()) };
        let vals = &args[rest_positions(params, args.len())];
        let array = self.array_of(vals, self.here.unit.body.span)?;
        self.write_local(local, array)
    }

    /// Assigns parameters as bound, and evaluates defaults.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn bind_params(&mut self, params: &Params, bindings: &[Binding], values: &[Val]) -> Result<()> {
        let span = self.here.unit.body.span;
        let mut defaults: Vec<(LocalId, &Node)> = Vec::new();
        let mut given = bindings.iter().zip(values.iter().copied());
        let mut next = || match given.next() {
            Some((Binding::Given(ty), val)) => Some((val, ty.clone())),
            _ => None,
        };
        for pattern in &params.required {
            if let Some(value) = next() {
                self.bind_pattern(pattern, value, span)?;
            }
        }
        for (local, default) in &params.optional {
            match next() {
                Some((val, _)) => self.write_local(*local, val)?,
                None => defaults.push((*local, default)),
            }
        }
        for pattern in &params.post {
            if let Some(value) = next() {
                self.bind_pattern(pattern, value, span)?;
            }
        }
        for keyword in &params.keywords {
            match (next(), &keyword.default) {
                (Some((val, _)), _) => self.write_local(keyword.local, val)?,
                (None, Some(default)) => defaults.push((keyword.local, default)),
                _ => {}
            }
        }
        if let Some(local) = params.block {
            let val = self.here.block.as_ref().map_or(Val::NIL, |b| b.0);
            self.write_local(local, val)?;
        }
        for (local, default) in defaults {
            let val = self.eval(default)?;
            if self.cx.b.ended() {
                return Ok(());
            }
            self.write_local(local, val)?;
        }
        Ok(())
    }

    /// `yield`
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn yielded(&mut self, node: &Node, args: &[ast::Arg]) -> Result<Val> {
        let (args, keywords) = self.args(args)?;
        if self.cx.b.ended() {
            return Ok(Val::NEVER);
        }
        self.at(node.span);
        let Some((val, ty)) = self.own_block(node.span)? else {
            let message = "no block given (yield)".to_string();
            self.trap(Trap::Raise { class: "LocalJumpError", message }, None);
            return Ok(Val::NEVER);
        };
        let args = match self.an.pairs(self.here.spec, &ty, &Args::of_values(&args, &keywords)) {
            Pairs::Yes => {
                let pair = Ty::array(self.an.made_kind(self.here.spec, node.span)).reached(Reach::Fresh);
                vec![(self.array_of(&[args[0].0, args[1].0], node.span)?, pair, None)]
            }
            Pairs::No | Pairs::Unknown => args,
        };
        let place = self.result_place(&self.ty(node), node.span)?;
        self.call_procs((val, &ty), &args, &keywords, node.span, Some(&place))?;
        Ok(self.load(&place))
    }

    /// Whether `yield` has a block to run.
    pub fn has_block(&self) -> bool {
        match self.here.unit.outer_block {
            Some(local) => !self.an.local(self.here.spec, local).procs.is_empty(),
            None => self.here.block.is_some(),
        }
    }

    /// The block that `yield` runs.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn own_block(&mut self, span: Span) -> Result<Option<(Val, Ty)>> {
        let Some(local) = self.here.unit.outer_block else { return Ok(self.here.block.clone()) };
        let ty = self.an.local(self.here.spec, local).clone();
        // also if it is nil, because a later call may pass one
        let val = self.read_local(local, &ty, span)?;
        Ok((!ty.procs.is_empty()).then_some((val, ty)))
    }

    /// Runs whichever of the blocks a value is. The block's value goes into `result`, if it is used.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn call_procs(
        &mut self,
        (val, ty): (Val, &Ty),
        args: &[Arg],
        keywords: &[Keyword],
        span: Span,
        result: Option<&Place>,
    ) -> Result<()> {
        if let [one] = ty.procs.as_slice() {
            return self.call_proc(*one, args, keywords, span, result);
        }
        let procs = ty.filter(|a| matches!(a, Atom::Proc(_)));
        let nothing = self.result_place(&Ty::nil(), span)?;
        self.dispatch(val, &procs, &nothing, |s, atom, _| {
            if let Atom::Proc(id) = atom {
                s.call_proc(id, args, keywords, span, result)?;
            }
            Ok(None)
        })
    }

    /// Runs a block, lambda or Method object.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn call_proc(
        &mut self,
        id: ProcId,
        args: &[Arg],
        keywords: &[Keyword],
        span: Span,
        result: Option<&Place>,
    ) -> Result<()> {
        let info = self.an.proc_info(id).clone();
        let into = |s: &mut Self, (val, ty): (Val, Ty)| {
            if let (Some(place), false) = (result, ty.is_never()) {
                s.store(place, val);
            }
        };
        if let ProcKind::Symbol(name) = &info.kind {
            let Some(((receiver, ty, _), rest)) = args.split_first() else {
                let message = "no receiver given".to_string();
                self.trap(Trap::Raise { class: "ArgumentError", message }, None);
                return Ok(());
            };
            let name = format!("{NAMED}{name}");
            let answer = self.call_values((*receiver, ty), &name, rest, keywords, false, span, span)?;
            into(self, answer);
            return Ok(());
        }
        if let ProcKind::Outside(root, code) = &info.kind {
            return self.call_outside((root, code), args, keywords, span, result);
        }
        match &info.kind {
            ProcKind::Converted(of) => return self.call_proc(*of, args, keywords, span, result),
            ProcKind::Curried { .. } => return self.call_curried(id, args, span, result),
            ProcKind::Bound(name) => {
                let Some((receiver, ty, _)) = self.kept_values(id)?.into_iter().next() else { return Ok(()) };
                let name = format!("{NAMED}{name}");
                let answer = self.call_values((receiver, &ty), &name, args, keywords, true, span, span)?;
                into(self, answer);
                return Ok(());
            }
            _ => {}
        }
        if let ProcKind::Composed { first, second, .. } = info.kind {
            let ty = self.an.result_of(first, (self.here.spec, span), args.len());
            let between = self.result_place(&ty, span)?;
            self.call_proc(first, args, keywords, span, Some(&between))?;
            if ty.is_never() {
                self.unreachable();
                return Ok(());
            }
            let val = self.load(&between);
            return self.call_proc(second, &[(val, ty, None)], &[], span, result);
        }
        if let ProcKind::Lambda(block) = &info.kind
            && self.an.is_lifted(info.home, block)
        {
            return self.call_lifted(id, block, args, keywords, span, result);
        }
        let entered = if self.here.spec == info.home {
            None
        } else {
            let k = self.others.iter().rposition(|h| h.spec == info.home);
            let Some(k) = k else { return Err(self.error(span, "this block has outlived its method")) };
            std::mem::swap(&mut self.here, &mut self.others[k]);
            Some(k)
        };
        let at = (self.cx.path.clone(), self.cx.line);
        if self.here.site.is_none() {
            self.cx.path.clone_from(&self.here.unit.source.path);
        }
        let outcome = match &info.kind {
            ProcKind::Block(block) => self.run_block(id, block, args, result),
            ProcKind::Lambda(block) => self.run_lambda(block, args, keywords, result),
            ProcKind::Method(name) => {
                let (receiver, ty) = (self.self_value()?, self.self_ty());
                let answer = self.call_values((receiver, &ty), name, args, keywords, true, span, span);
                answer.map(|answer| into(self, answer))
            }
            ProcKind::Symbol(_)
            | ProcKind::Bound(_)
            | ProcKind::Converted(_)
            | ProcKind::Curried { .. }
            | ProcKind::Composed { .. }
            | ProcKind::Outside(..)
            | ProcKind::Live(_)
            | ProcKind::Regexp(_) => Ok(()),
        };
        (self.cx.path, self.cx.line) = at;
        if let Some(k) = entered {
            std::mem::swap(&mut self.here, &mut self.others[k]);
        }
        outcome
    }

    /// Makes the places of what Procs keep, and clears them.
    ///
    /// # Errors
    /// A type that mixes exceptions with other kinds.
    pub fn declare_kept(&mut self) -> Result<()> {
        let function = self.an.host(self.here.spec);
        for (id, types) in self.an.kept_in(function) {
            // a call that is never reached
            if types.iter().any(Ty::is_never) {
                continue;
            }
            let mut places = Vec::new();
            for ty in &types {
                let place = self.result_place(ty, self.here.unit.body.span)?;
                self.clear(&place);
                places.push(place);
            }
            self.kept.insert(id, places);
        }
        Ok(())
    }

    /// Makes a Proc that keeps these values.
    pub fn keep(&mut self, id: ProcId, values: &[Val]) -> Val {
        for (place, val) in self.kept.get(&id).cloned().unwrap_or_default().iter().zip(values) {
            self.store(place, *val);
        }
        Val::Unit(Unit::Proc(id))
    }

    /// The values that a Proc has: those from outside, and those that it keeps.
    ///
    /// # Errors
    /// A value from outside that kernels cannot hold.
    pub fn kept_values(&mut self, id: ProcId) -> Result<Vec<Arg>> {
        let ProcInfo { roots, kept, .. } = self.an.proc_info(id).clone();
        let mut values = Vec::new();
        for root in &roots {
            let ty = self.an.root(self.here.spec, root).unwrap_or_default();
            values.push((self.root(root, &ty, "a Proc's value")?, ty, None));
        }
        let places = self.kept.get(&id).into_iter().flatten();
        values.extend(places.zip(kept).map(|(place, ty)| (self.load(place), ty, None)));
        Ok(values)
    }

    /// Calls the code of a curried Proc, or keeps more of its arguments.
    fn call_curried(&mut self, id: ProcId, args: &[Arg], span: Span, result: Option<&Place>) -> Result<()> {
        let ProcKind::Curried { of, needs, lambda } = self.an.proc_info(id).kind else { return Ok(()) };
        let all = [self.kept_values(id)?, args.to_vec()].concat();
        if self.an.is_complete(id, args.len()) {
            return self.call_proc(of, &all, &[], span, result);
        }
        let made = if args.is_empty() {
            Val::Unit(Unit::Proc(id))
        } else {
            let kind = || ProcKind::Curried { of, needs, lambda };
            let made = self.an.keeping((self.here.spec, span), Some(id), all.len(), kind);
            let values: Vec<Val> = all.iter().map(|arg| arg.0).collect();
            self.keep(made, &values)
        };
        if let Some(place) = result {
            self.store(place, made);
        }
        Ok(())
    }

    /// Calls the function of a lambda that calls itself.
    fn call_lifted(
        &mut self,
        id: ProcId,
        block: &Block,
        args: &[Arg],
        keywords: &[Keyword],
        span: Span,
        result: Option<&Place>,
    ) -> Result<()> {
        let home = self.an.proc_info(id).home;
        let from = self.here.spec;
        let found = self.an.lifted_call(from, id, block, &Args::of_values(args, keywords));
        let Some(LiftedCall { method, around }) = found else {
            return Err(self.error(span, "this lambda has outlived its method"));
        };
        let at = match self.an.stands_for(from, home) {
            true => None,
            false => self.others.iter().rposition(|body| self.an.stands_for(body.spec, home)),
        };
        if let Some(k) = at {
            std::mem::swap(&mut self.here, &mut self.others[k]);
        }
        let frame = self.here.spec;
        let read = || -> Result<_> {
            let mut all = Vec::new();
            for (local, ty) in around {
                all.push((self.read_local(local, &ty, span)?, ty, None));
            }
            Ok((all, self.self_value()?))
        };
        let read = read();
        if let Some(k) = at {
            std::mem::swap(&mut self.here, &mut self.others[k]);
        }
        let (mut all, receiver) = read?;
        all.extend_from_slice(args);
        let (atom, reach) = self.an.lifted_self(frame);
        let types = Args::of_values(&all, keywords);
        let val = self.call_method(method, (atom, reach), receiver, "call", &all, keywords, &types, span)?;
        if let (Some(val), Some(place)) = (val, result) {
            self.store(place, val);
        }
        Ok(())
    }

    fn call_outside(
        &mut self,
        (root, code): (&Root, &Outside),
        args: &[Arg],
        keywords: &[Keyword],
        span: Span,
        result: Option<&Place>,
    ) -> Result<()> {
        let self_ty = self.an.outside_self(self.here.spec, root);
        let receiver = self.root(&Root::SelfOf(Box::new(root.clone())), &self_ty, "self")?;
        let nil = (Val::NIL, Ty::nil(), None);
        let args = &code.taken(args, || nil.clone())[..];
        let types = Args::of_values(args, keywords);
        let place = match result {
            Some(place) => place.clone(),
            None => self.result_place(&Ty::nil(), span)?,
        };
        let how = How { on_self: true, span, at: span, bare: false, void: false };
        let target = Target::Ruby(code.method);
        let (atom, reach) = receiver_of(&self_ty);
        let bodies: Vec<_> = self.others.iter().chain([&self.here]).map(|body| body.spec).collect();
        let takes_procs =
            args.iter().map(|arg| &arg.1).chain(keywords.iter().map(|(_, _, ty)| ty)).any(|ty| !ty.procs.is_empty());
        if !takes_procs && self.an.calls_itself(code.method, &bodies) {
            let val = self.call_method(code.method, (atom, reach), receiver, "call", args, keywords, &types, span)?;
            if let (Some(val), Some(place)) = (val, result) {
                self.store(place, val);
            }
            return Ok(());
        }
        let val = self.invoke(&target, (atom, reach), receiver, "call", args, keywords, &types, None, how, &place)?;
        if let (Some(val), Some(place)) = (val, result) {
            self.store(place, val);
        }
        Ok(())
    }

    fn clear_block_locals(&mut self, block: &Block) -> Result<()> {
        for local in &block.locals {
            if !self.an.local(self.here.spec, *local).is_never() {
                let place = self.local(*local)?;
                self.clear(&place);
            }
        }
        Ok(())
    }

    fn run_block(&mut self, id: ProcId, block: &Arc<Block>, args: &[Arg], result: Option<&Place>) -> Result<()> {
        let next = self.cx.b.label();
        let brk = self.block_exits.get(&id).cloned();
        let values: Vec<(Val, Ty)> = args.iter().map(|a| (a.0, a.1.clone())).collect();
        self.piece(next, Frame { next, next_place: result.cloned(), brk }, |s| {
            s.clear_block_locals(block)?;
            s.bind(&block.params, &values, block.span)?;
            s.last_value(&block.body, result)
        })
    }

    fn run_lambda(
        &mut self,
        block: &Arc<Block>,
        args: &[Arg],
        keywords: &[Keyword],
        result: Option<&Place>,
    ) -> Result<()> {
        let types = Args::of_values(args, keywords);
        let bindings = match bind(&block.params, &types) {
            Ok(bindings) => bindings,
            Err(message) => {
                // Ruby raises it at the position of the lambda
                self.at(block.span);
                self.trap(Trap::Raise { class: "ArgumentError", message }, None);
                return Ok(());
            }
        };
        let values = bound_values(&block.params, &bindings, args, keywords);
        let next = self.cx.b.label();
        let place = match result {
            Some(place) => place.clone(),
            None => self.result_place(&Ty::nil(), block.span)?,
        };
        let exit = (next, place.clone());
        let ret = self.here.ret.replace(exit.clone());
        let outcome = self.piece(next, Frame { next, next_place: Some(place), brk: Some(exit) }, |s| {
            s.clear_block_locals(block)?;
            let given: Vec<Val> = args.iter().map(|a| a.0).collect();
            s.collect_rest(&block.params, &given)?;
            s.bind_params(&block.params, &bindings, &values)?;
            s.last_value(&block.body, result)
        });
        self.here.ret = ret;
        outcome
    }

    fn last_value(&mut self, body: &Node, result: Option<&Place>) -> Result<()> {
        let val = self.eval(body)?;
        if let (Some(place), false) = (result, self.is_never(body)) {
            self.store(place, val);
        }
        Ok(())
    }

    /// A labelled piece of code that `next` leaves.
    fn piece(&mut self, label: LabelId, frame: Frame, run: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.cx.b.open();
        self.frames.push(frame);
        let outcome = run(self);
        self.frames.pop();
        let body = self.cx.b.close();
        self.cx.b.push(Stmt::Block { label, body });
        outcome
    }

    /// Runs `call` with a target for `break` in its literal block. Either way, the value is in `place`.
    ///
    /// # Errors
    /// Those of `call`.
    pub fn with_exit(
        &mut self,
        block: &Block,
        id: ProcId,
        place: &Place,
        call: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if !block.breaks {
            return call(self);
        }
        let label = self.cx.b.label();
        let outer = self.block_exits.insert(id, (label, place.clone()));
        self.cx.b.open();
        let outcome = call(self);
        let body = self.cx.b.close();
        match outer {
            Some(outer) => self.block_exits.insert(id, outer),
            None => self.block_exits.remove(&id),
        };
        self.cx.b.push(Stmt::Block { label, body });
        outcome
    }

    /// The assumption for speculation at a position, as inference names it.
    pub fn assumption(&self, span: Span) -> Assumption {
        place_of(&self.here.unit, self.here.site.as_ref(), span)
    }

    /// The position for an error. Within the prelude: that of the user's call.
    pub fn place_in_source(&self, span: Span) -> (Arc<crate::source::Source>, Span) {
        match &self.here.site {
            Some((unit, call)) => (unit.source.clone(), *call),
            None => (self.here.unit.source.clone(), span),
        }
    }
}
