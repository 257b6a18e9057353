//! Blocks, lambdas and the methods that take them.
//!
//! Here: a method that is given a block is interpreted *inside* its caller. So the block stays what it is in Ruby, a
//! piece of the body that contains it. It reads and assigns that body's variables, and `break` and `return` in it leave
//! what they leave in Ruby. The type of a variable tells which block it holds ([`Ty::procs`]). Not here: iterators that
//! are loops of our own ([`super::walk`]).
//!
//! Each inlined call has a specialisation of its own, found again by caller, position and receiver; lowering asks for
//! it in the same way. While an inlined body runs, its caller's variables stay in the same environment, below the
//! variables of the inlined body.

use super::builtins::Builtin;
use super::calls::{
    Answer, Args, Literal, Refusal, Target, bind, check_keywords, check_params, positions, rest_positions,
};
use super::walk::{Env, Frame, FrameKind, SECTION, State, Walker, assumption, takes_apart};
use super::{Analysis, Binding, Spec, SpecId, SpecKey};
use crate::diagnostic::Span;
use crate::error::{Error, Result};
use crate::id::{MethodId, ProcId, ScopeId};
use crate::regexp::Regexp;
use crate::syntax::ast::{Arg, Block, Call, Kind, LocalId, NAMED, Name, Node, Params, Pattern, Rest, Unit};
use crate::syntax::visit;
use crate::types::{Atom, Prims, Ty};
use crate::world::{Assumption, MethodSource, Opaque, Outside, Root, well_known};
use std::sync::Arc;

/// The most calls that may be inlined into one another.
const MAX_DEPTH: usize = 40;
/// The most calls of one method among these, since a recursive method with a block would have no end.
const MAX_OF_ONE: usize = 8;
/// The most runs of one lambda that may be inlined into one another.
const MAX_NESTED_LAMBDAS: usize = 3;

/// The most Procs that may be composed into one.
pub(super) const MAX_COMPOSED: usize = 16;

/// A block, lambda or Method object that the program contains or captures.
#[derive(Clone, Debug)]
pub struct ProcInfo {
    /// The body that contains it.
    pub home: SpecId,
    pub kind: ProcKind,
    /// Values from outside that it has, before those that it keeps.
    pub roots: Vec<Root>,
    /// The types of the values that it keeps ([`super::bound_procs`]).
    pub kept: Vec<Ty>,
    /// The call that made it, if it keeps values.
    pub at: Span,
    /// The join of the results of all its runs.
    pub result: Ty,
}

impl ProcInfo {
    pub fn new(home: SpecId, kind: ProcKind) -> Self {
        Self { home, kind, roots: Vec::new(), kept: Vec::new(), at: Span::default(), result: Ty::never() }
    }
}

#[derive(Clone, Debug)]
pub enum ProcKind {
    /// A literal block, also `proc { … }`.
    Block(Arc<Block>),
    Lambda(Arc<Block>),
    /// `&:name`
    Symbol(Name),
    /// `method(:name)` of the body's own `self`.
    Method(Name),
    /// `receiver.method(:name)`, which keeps its receiver.
    Bound(Name),
    /// `method(:name).to_proc`, also for a Method object after `&`.
    Converted(ProcId),
    /// `f.curry`, which keeps its arguments so far, and calls `of` when it has enough.
    Curried {
        of: ProcId,
        needs: usize,
        lambda: bool,
    },
    /// `f >> g`: the second is called with the result of the first.
    Composed {
        first: ProcId,
        second: ProcId,
        lambda: bool,
    },
    /// A captured Proc or Method object.
    Outside(Root, Outside),
    /// Not a Proc, but a live object, whose methods are captured lambdas.
    Live(Root),
    /// Not a Proc, but a regular expression.
    Regexp(Arc<Regexp>),
}

impl ProcKind {
    /// Whether it may be a Method object, which is not a Proc.
    pub fn is_method(&self) -> bool {
        match self {
            ProcKind::Method(_) | ProcKind::Bound(_) => true,
            ProcKind::Outside(_, code) => code.is_method,
            _ => false,
        }
    }

    pub fn is_lambda(&self) -> bool {
        match self {
            ProcKind::Block(_) | ProcKind::Live(_) | ProcKind::Regexp(_) => false,
            ProcKind::Composed { lambda, .. } | ProcKind::Curried { lambda, .. } => *lambda,
            ProcKind::Outside(_, code) => code.lenient.is_none(),
            ProcKind::Lambda(_)
            | ProcKind::Symbol(_)
            | ProcKind::Method(_)
            | ProcKind::Bound(_)
            | ProcKind::Converted(_) => true,
        }
    }
}

/// Whether the key and value of a Hash are yielded as one array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    Yes,
    No,
    /// Some of the blocks would take an array, others two values; or the kind of Proc does not tell.
    Unknown,
}

/// Methods of Hash that give a block of one parameter the key alone.
const GIVES_TWO: [&str; 7] = ["select", "reject", "to_h", "delete_if", "reject!", "keep_if", "select!"];

/// The identity of an inlined call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Inlining {
    pub from: SpecId,
    pub span: Span,
    pub method: MethodId,
    pub self_ty: Ty,
    pub void: bool,
}

/// One body while it is being interpreted.
pub(super) struct Activation {
    pub id: SpecId,
    pub unit: Arc<Unit>,
    pub scope: ScopeId,
    pub self_ty: Ty,
    pub ret: Ty,
    pub types: Vec<Ty>,
    pub locals: Vec<Ty>,
    /// For each captured local: its value, if kernels cannot hold it.
    pub opaque: Vec<Option<Opaque>>,
    pub section: bool,
    /// Position of its first local in the environment.
    pub base: usize,
    /// The block that was passed to it, if there is one.
    pub block: Option<Ty>,
    /// The frame that `return` leaves. None: `return` ends the specialisation.
    pub ret_frame: Option<usize>,
    /// The user's call of a method of the prelude that led here.
    pub site: Option<(Arc<Unit>, Span)>,
    /// The number of arguments in its splat parameter.
    pub rest: Option<usize>,
}

impl Analysis<'_> {
    /// The number of a block or lambda at a position of a body.
    pub fn proc(&mut self, home: SpecId, at: Span, kind: impl FnOnce() -> ProcKind) -> ProcId {
        if let Some(id) = self.proc_index.get(&(home, at)) {
            return *id;
        }
        let id = ProcId::new(self.procs.len());
        self.procs.push(ProcInfo::new(home, kind()));
        self.proc_index.insert((home, at), id);
        id
    }

    /// The specialisation of a method for one inlined call.
    ///
    /// # Errors
    /// If the method's source is not available.
    pub fn inlined(&mut self, at: Inlining) -> Result<SpecId> {
        if let Some(id) = self.inlinings.get(&at) {
            return Ok(*id);
        }
        let source = self.source(at.method)?;
        let host = self.host(at.from);
        let key = SpecKey { method: Some(at.method), self_ty: at.self_ty.clone(), args: Vec::new(), void: at.void };
        let id = SpecId::new(self.specs.len());
        self.specs.push(Spec::new(&source, key, Some(host), &self.valued));
        self.inlinings.insert(at, id);
        Ok(id)
    }

    /// Whether a method is inlined into its caller.
    ///
    /// # Errors
    /// If the method's source is not available.
    pub fn inlines(&mut self, method: MethodId, args: &Args, block: Option<&Ty>) -> Result<bool> {
        let procs = args.positional.iter().chain(args.keywords.iter().map(|(_, t)| t)).any(|t| !t.procs.is_empty());
        if crate::prelude::is_inlined(method) || procs {
            return Ok(true);
        }
        let MethodSource { unit, around, .. } = self.source(method)?;
        if around.is_some() {
            return Ok(true);
        }
        let collects = matches!(unit.params.rest, Some(Rest(Some(_))));
        Ok(collects || block.is_some() && wants_block(&unit))
    }

    /// Whether exceptions of an inlined method are reported at its call: it is the prelude's, or Ikra's own Ruby code.
    ///
    /// # Errors
    /// If the method's source is not available.
    pub fn speaks_for_caller(&mut self, method: MethodId) -> Result<bool> {
        Ok(self.is_prelude(method) || self.source(method)?.unit.source.is_internal())
    }

    /// Whether a method is one of Ruby's own that the prelude defines.
    pub fn is_prelude(&self, method: MethodId) -> bool {
        crate::prelude::contains(method)
    }

    /// Refuses forms of Ruby's own methods that the prelude lacks: arguments that only Ruby's method takes, and a block
    /// that the prelude's method would ignore.
    ///
    /// # Errors
    /// Such a form.
    pub fn knows_form(&mut self, method: MethodId, name: &str, args: &Args, block: Option<&Ty>) -> Answer<()> {
        if !self.is_prelude(method) {
            return Ok(());
        }
        let unit = self.source(method)?.unit;
        let unknown = || Refusal::new(format!("kernels do not know this form of {}", crate::prelude::written(name)));
        if block.is_some() && !wants_block(&unit) {
            return Err(unknown().because("here it takes no block").advise("call it without a block, or write it out"));
        }
        if block.is_none() && crate::prelude::needs_block(method) {
            let label = crate::prelude::written(crate::prelude::label(method).unwrap_or(name));
            return Err(Refusal::new(format!(
                "{label} without a block gives an Enumerator, which kernels do not know"
            ))
            .advise(instead_of_enumerator(&label)));
        }
        let given = args.positional.len();
        if !args.keywords.is_empty() && bind(&unit.params, args).is_err() {
            return Err(unknown().because("here it takes no such keywords").advise("leave them out, or write it out"));
        }
        if let (Err(_), Some(advice)) = (positions(&unit.params, given), crate::prelude::instead_of_longer(name)) {
            let plural = if given == 1 { "" } else { "s" };
            return Err(unknown().because(format!("it is given {given} argument{plural}")).advise(advice));
        }
        Ok(())
    }

    /// For `inject(:+)` and `inject(0, :+)`: the block for which the literal Symbol stands, and the arguments without
    /// it.
    pub fn operator_block(
        &mut self,
        home: SpecId,
        target: &Target,
        args: &Args,
        block: Option<&Ty>,
        span: Span,
    ) -> Option<(Ty, Args)> {
        let (Target::Ruby(method), None, Some(Some(Literal::Sym(name)))) = (target, block, args.literals.last()) else {
            return None;
        };
        if !crate::prelude::label(*method)?.ends_with("#inject") {
            return None;
        }
        let name = name.clone();
        let block = Ty::proc(self.proc(home, span, || ProcKind::Symbol(name)));
        let mut args = args.clone();
        args.positional.pop();
        args.literals.pop();
        Some((block, args))
    }

    /// Whether a Hash method of the prelude yields key and value as one array, as Ruby does. A block of two parameters
    /// destructures such an array, so it gets both values directly.
    pub fn pairs(&self, from: SpecId, block: &Ty, args: &Args) -> Pairs {
        let of_hash = || {
            let spec = self.spec(from);
            let name = spec.label.strip_prefix("Hash#").or_else(|| spec.label.strip_prefix("MadeHash#"));
            spec.key.method.is_some_and(crate::prelude::contains) && name.is_some_and(|name| !GIVES_TWO.contains(&name))
        };
        if args.positional.len() != 2 || !of_hash() {
            return Pairs::No;
        }
        let mut all = block.procs.iter().map(|id| match &self.proc_info(*id).kind {
            ProcKind::Block(block) => {
                let p = &block.params;
                let none = p.required.is_empty() && p.optional.is_empty() && p.post.is_empty() && p.rest.is_none();
                if none || takes_apart(p) { Pairs::No } else { Pairs::Yes }
            }
            ProcKind::Symbol(_) => Pairs::Yes,
            ProcKind::Lambda(block) if block.params.required.len() == 1 => Pairs::Yes,
            ProcKind::Lambda(_)
            | ProcKind::Method(_)
            | ProcKind::Bound(_)
            | ProcKind::Converted(_)
            | ProcKind::Curried { .. }
            | ProcKind::Composed { .. }
            | ProcKind::Outside(..)
            | ProcKind::Live(_)
            | ProcKind::Regexp(_) => Pairs::Unknown,
        });
        let first = all.next().unwrap_or(Pairs::No);
        if all.all(|other| other == first) { first } else { Pairs::Unknown }
    }

    /// The specialisation with which a body is interpreted: itself, or the one into which it is inlined.
    pub fn host(&self, id: SpecId) -> SpecId {
        self.specs[id.index()].host.unwrap_or(id)
    }
}

/// The advice for a call without a block, which would give an Enumerator.
fn instead_of_enumerator(label: &str) -> &'static str {
    match label {
        "String#each_char" => "give it a block, or take the array of chars",
        "String#each_byte" => "give it a block, or take the array of bytes",
        "String#each_line" => "give it a block, or take the array of lines",
        _ => "give it a block",
    }
}

/// Whether a unit takes a block in any way.
pub fn wants_block(unit: &Unit) -> bool {
    unit.params.block.is_some() || unit.yields
}

impl Walker<'_, '_> {
    /// The block passed to a call: a literal one, or the value after `&`.
    pub(super) fn given_block(&mut self, call: &Call, env: &mut Env) -> Result<Option<Ty>> {
        if let Some(block) = &call.block {
            let id = self.an.proc(self.here.id, block.span, || ProcKind::Block(block.clone()));
            return Ok(Some(Ty::proc(id)));
        }
        let Some(node) = &call.block_arg else { return Ok(None) };
        if let Kind::Sym(name) = &node.kind {
            if !self.an.reaches_rubys(self.here.id, Atom::Sym, "to_proc") {
                return Err(self
                    .error(node.span, "kernels do not ask Symbol for a redefined to_proc")
                    .advise("write the call out in a block")
                    .into());
            }
            let id = self.an.proc(self.here.id, node.span, || ProcKind::Symbol(name.clone()));
            return Ok(Some(Ty::proc(id)));
        }
        let ty = self.eval(node, env)?;
        if env.dead || ty.only(Prims::NIL) {
            return Ok(None);
        }
        if ty.atoms().iter().any(|a| !matches!(a, Atom::Proc(_) | Atom::Nil)) {
            let kinds: Vec<String> = ty.atoms().into_iter().map(|atom| self.an.describe(atom)).collect();
            return Err(self
                .error(node.span, format!("kernels do not know {} as a block", kinds.join(" or ")))
                .because("which block it is must be known when compiling")
                .advise("give a literal block, a lambda, &:name or &method(:name)")
                .into());
        }
        if ty.may_be(Prims::NIL) {
            return Err(self
                .error(node.span, "there may be a block here or none")
                .because("which block it is must be known when compiling")
                .advise("call the method once with the block and once without, in an if")
                .into());
        }
        Ok(Some(self.an.as_block(ty)))
    }

    /// Interprets a method's body in place of a call.
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub(super) fn inline(
        &mut self,
        method: MethodId,
        self_ty: Ty,
        args: &Args,
        block: Option<Ty>,
        span: Span,
        env: &mut Env,
    ) -> Result<Ty> {
        if env.dead {
            return Ok(Ty::never());
        }
        let same = |a: &Activation, an: &Analysis<'_>| an.spec(a.id).key.method == Some(method);
        let depth = self.others.len() + 1;
        let of_one = self.others.iter().chain([&self.here]).filter(|a| same(a, self.an)).count();
        if depth >= MAX_DEPTH || of_one >= MAX_OF_ONE {
            let name = self.an.source(method)?.label;
            return Err(self
                .error(span, format!("{name} takes a block and calls itself, so it cannot be inlined"))
                .because("a method with a block becomes part of its caller")
                .advise("call it without a block, or write the loop out")
                .into());
        }
        let at = Inlining { from: self.here.id, span, method, self_ty, void: args.void };
        let id = self.an.inlined(at)?;
        let unit = self.an.spec(id).unit.clone();
        let label = self.an.spec(id).label.clone();
        if self.others.iter().chain([&self.here]).any(|body| body.id == id) {
            return Err(self
                .error(span, format!("{label} is called here while the same call of it runs"))
                .because("a lambda that is called within itself became part of the code that calls it")
                .advise("make the lambda a method")
                .into());
        }
        let label = if self.an.is_prelude(method) { crate::prelude::written(&label) } else { label };
        self.refused(check_params(&unit.params, &label), span)?;
        self.refused(check_keywords(&unit.params, args, &label), span)?;
        let bindings = match bind(&unit.params, args) {
            Ok(bindings) => bindings,
            Err(_) => {
                env.dead = true;
                return Ok(Ty::never());
            }
        };
        let base = env.locals.len();
        env.locals.extend_unset(unit.locals.len());
        let site = match &self.here.site {
            Some(site) => Some(site.clone()),
            None => self.an.speaks_for_caller(method)?.then(|| (self.here.unit.clone(), span)),
        };
        let ret_frame = self.frames.len();
        self.frames.push(Frame::new(FrameKind::Return, base));
        let spec = &mut self.an.specs[id.index()];
        let callee = Activation {
            id,
            unit: unit.clone(),
            scope: spec.scope,
            self_ty: spec.key.self_ty.clone(),
            ret: Ty::never(),
            types: std::mem::take(&mut spec.types),
            locals: std::mem::take(&mut spec.locals),
            opaque: vec![None; unit.locals.len()],
            section: false,
            base,
            block,
            ret_frame: Some(ret_frame),
            site,
            rest: Some(rest_positions(&unit.params, args.positional.len()).len()),
        };
        let caller = std::mem::replace(&mut self.here, callee);
        self.others.push(caller);
        let catches = self.open_catch(method, args, ret_frame);
        let outcome =
            self.collect_rest(&unit.params, &args.positional, env).and_then(|()| self.method_body(&bindings, env));
        self.close_catch(catches);
        let caller = self.others.pop().expect("pushed above");
        let callee = std::mem::replace(&mut self.here, caller);
        let spec = &mut self.an.specs[id.index()];
        spec.types = callee.types;
        spec.locals = callee.locals;
        let ty = outcome.map_err(|error| error.called_from(&self.here.unit.source, span, &label))?;
        let frame = self.frames.pop().expect("pushed above");
        let ty = self.join(&ty, &frame.next_ty);
        if let Some(returned) = frame.next {
            *env = self.join_env(env, &returned);
        }
        env.locals.truncate(base);
        let ty = if args.void && !ty.is_never() { Ty::nil() } else { ty };
        let ret = self.an.facts.join(&self.an.specs[id.index()].ret.clone(), &ty);
        self.an.specs[id.index()].ret = ret.clone();
        Ok(if env.dead { Ty::never() } else { ret })
    }

    /// Makes the body that contains a block the current one. None: that body has been left.
    pub(super) fn enter_home(&mut self, home: SpecId) -> Option<Option<usize>> {
        if self.here.id == home {
            return Some(None);
        }
        let k = self.others.iter().rposition(|a| a.id == home)?;
        std::mem::swap(&mut self.here, &mut self.others[k]);
        Some(Some(k))
    }

    pub(super) fn leave_home(&mut self, entered: Option<usize>) {
        if let Some(k) = entered {
            std::mem::swap(&mut self.here, &mut self.others[k]);
        }
    }

    /// Runs each of the blocks that a value may be.
    ///
    /// `used`: whether the block's value is used.
    pub(super) fn call_procs(&mut self, procs: &Ty, args: &Args, used: bool, span: Span, env: &mut Env) -> Result<Ty> {
        let mut out = Ty::never();
        let mut after = env.dead();
        for id in procs.procs.clone() {
            let mut e = env.clone();
            let ty = self.call_proc(id, args, used, span, &mut e)?;
            out = self.join(&out, &ty);
            after = self.join_env(&after, &e);
        }
        *env = after;
        Ok(out)
    }

    /// Runs a block with these arguments, as `yield` or `call` does.
    pub(super) fn call_proc(&mut self, id: ProcId, args: &Args, used: bool, span: Span, env: &mut Env) -> Result<Ty> {
        if let ProcInfo { home, kind: ProcKind::Block(block) | ProcKind::Lambda(block), .. } = self.an.proc_info(id)
            && used
            && self.an.spec(*home).void.contains(&block.body.id)
        {
            let (unit, block) = (self.an.spec(*home).unit.clone(), block.clone());
            self.an.valued.insert(&unit, &block);
            self.an.again = true;
            return Err(Error::Internal { stage: "infer", detail: "begins again".into() });
        }
        let ty = self.run_proc(id, args, span, env)?;
        let old = self.an.proc_info(id).result.clone();
        let all = self.join(&old, &ty);
        self.an.proc_info_mut(id).result = all.clone();
        if all != old {
            self.an.lifted_gives_more(id);
        }
        // whether it calls another Proc depends on the number of arguments
        let own = matches!(self.an.proc_info(id).kind, ProcKind::Curried { .. } | ProcKind::Converted(_));
        Ok(if env.dead {
            Ty::never()
        } else if own {
            ty
        } else {
            all
        })
    }

    fn run_proc(&mut self, id: ProcId, args: &Args, span: Span, env: &mut Env) -> Result<Ty> {
        if env.dead || args.positional.iter().any(Ty::is_never) {
            env.dead = true;
            return Ok(Ty::never());
        }
        // one call may not use the value while another does
        let args = &Args { void: false, ..args.clone() };
        let info = self.an.proc_info(id).clone();
        if let ProcKind::Symbol(name) = &info.kind {
            let Some((receiver, rest)) = args.positional.split_first() else {
                // ArgumentError: no receiver given
                env.dead = true;
                return Ok(Ty::never());
            };
            let rest = Args { keywords: args.keywords.clone(), ..Args::of(rest.to_vec()) };
            let at = self.assumption(span);
            let name = format!("{NAMED}{name}");
            return self.dispatch(receiver, &name, &rest, false, span, &at, env);
        }
        if let ProcKind::Outside(root, code) = &info.kind {
            return self.call_outside((root, code), args, span, env);
        }
        match &info.kind {
            ProcKind::Converted(of) => return self.call_proc(*of, args, true, span, env),
            ProcKind::Curried { .. } => return self.call_curried(id, args, span, env),
            ProcKind::Bound(name) => {
                self.is_at_hand(id, span)?;
                let at = self.assumption(span);
                let name = format!("{NAMED}{name}");
                let values = self.values_of(id, span)?;
                return self.dispatch(&values[0], &name, args, true, span, &at, env);
            }
            _ => {}
        }
        if let ProcKind::Composed { first, second, .. } = info.kind {
            let between = self.call_proc(first, args, true, span, env)?;
            return self.call_proc(second, &Args::of(vec![between]), true, span, env);
        }
        if let ProcKind::Lambda(block) = &info.kind {
            if self.an.is_lifted(info.home, block) {
                return self.call_lifted(id, block, args, span, env);
            }
            let nested = self.running.iter().filter(|running| **running == id).count();
            let nested = nested >= MAX_NESTED_LAMBDAS || nested > 0 && self.an.names_itself(id, block);
            let bodies = || self.others.iter().chain([&self.here]).map(|body| body.id);
            let left =
                bodies().all(|body| body != info.home) && bodies().any(|body| self.an.stands_for(body, info.home));
            if nested || left {
                return Err(self.lift(id, block, span));
            }
        }
        if self.running.iter().filter(|running| **running == id).count() > MAX_OF_ONE {
            return Err(self
                .error(span, "kernels do not know procs that call themselves where the block makes them")
                .because("such a proc becomes part of the code that calls it")
                .advise("make it a lambda, or a method")
                .into());
        }
        let Some(entered) = self.enter_home(info.home) else {
            return Err(self
                .error(span, "this block is called after the method that wrote it has ended")
                .because("blocks live in the variables of their method")
                .advise("call it within that method, or pass what it needs as arguments")
                .into());
        };
        self.running.push(id);
        let result = match &info.kind {
            ProcKind::Block(block)
                if block.params.take_any()
                    && let Err(refusal) = check_keywords(&block.params, args, "this block") =>
            {
                self.refused(Err(refusal), span)
            }
            ProcKind::Lambda(block) if let Err(refusal) = check_keywords(&block.params, args, "this lambda") => {
                self.refused(Err(refusal), span)
            }
            ProcKind::Block(block) => self.run_block(id, block, args, env),
            ProcKind::Lambda(block) => self.run_lambda(block, args, env),
            ProcKind::Method(name) => {
                let at = self.assumption(span);
                let receiver = self.self_type(span)?;
                self.dispatch(&receiver, name, args, true, span, &at, env)
            }
            ProcKind::Symbol(_)
            | ProcKind::Bound(_)
            | ProcKind::Converted(_)
            | ProcKind::Curried { .. }
            | ProcKind::Composed { .. }
            | ProcKind::Outside(..)
            | ProcKind::Live(_)
            | ProcKind::Regexp(_) => Ok(Ty::never()),
        };
        self.running.pop();
        self.leave_home(entered);
        result
    }

    fn clear_block_locals(&mut self, block: &Block, env: &mut Env) {
        for local in &block.locals {
            env.locals[self.here.base + local.index()] = State::unset();
        }
    }

    fn run_block(&mut self, id: ProcId, block: &Arc<Block>, args: &Args, env: &mut Env) -> Result<Ty> {
        self.clear_block_locals(block, env);
        let mut frame = Frame::new(FrameKind::Yield, env.locals.len());
        frame.brk = if block.section { Some(SECTION) } else { self.block_frames.get(&id).copied() };
        self.frames.push(frame);
        self.bind(&block.params, &args.positional, env, block.span)?;
        let ty = self.eval(&block.body, env)?;
        let ty = self.end_of_block(&ty, env)?;
        self.check_closures(block, &ty, env)?;
        Ok(ty)
    }

    /// Refuses lambdas and procs that outlive the run of a block whose own variables they read.
    ///
    /// A block's variables are places in the environment of the body that contains it, and the next run uses the same
    /// places. A closure of an earlier run would read what a later run has assigned.
    fn check_closures(&self, block: &Block, ty: &Ty, env: &Env) -> Result<()> {
        self.leaves_no_kept(block, ty)?;
        let mut own = block.params.locals();
        own.extend(&block.locals);
        if own.is_empty() || !self.an.writes_procs(self.here.id) {
            return Ok(());
        }
        let kept = (0..env.locals.len()).filter(|at| {
            let own = own.iter().any(|local| self.here.base + local.index() == *at);
            !own && !env.dead
        });
        let mut escaped = kept.flat_map(|at| &env.locals[at].ty.procs).chain(&ty.procs);
        let Some(span) = escaped.find_map(|id| self.closure_over(*id, block, &own)) else { return Ok(()) };
        Err(self
            .error(span, "this closure outlives the run of the block whose variables it reads")
            .because("kernels have one set of a block's variables, which the next run assigns anew")
            .advise("call it within the same run, or pass what it needs as arguments")
            .into())
    }

    /// The position of a closure, if it is within a block and reads these variables of it.
    fn closure_over(&self, id: ProcId, block: &Block, own: &[LocalId]) -> Option<Span> {
        match self.an.proc_info(id) {
            ProcInfo { home, kind: ProcKind::Lambda(inner) | ProcKind::Block(inner), .. } => {
                let within = block.span.start < inner.span.start && inner.span.end <= block.span.end;
                (*home == self.here.id && within && visit::reads_any(inner, own)).then_some(inner.span)
            }
            ProcInfo { kind: ProcKind::Composed { first, second, .. }, .. } => {
                [*first, *second].into_iter().find_map(|part| self.closure_over(part, block, own))
            }
            ProcInfo { kind: ProcKind::Converted(of), .. } => self.closure_over(*of, block, own),
            ProcInfo { kind: ProcKind::Curried { of, .. }, kept, .. } => {
                let kept = kept.iter().flat_map(|ty| &ty.procs);
                std::iter::once(of).chain(kept).find_map(|part| self.closure_over(*part, block, own))
            }
            ProcInfo { kind: ProcKind::Bound(_), kept, .. } => {
                kept.iter().flat_map(|ty| &ty.procs).find_map(|part| self.closure_over(*part, block, own))
            }
            _ => None,
        }
    }

    fn run_lambda(&mut self, block: &Arc<Block>, args: &Args, env: &mut Env) -> Result<Ty> {
        self.refused(check_params(&block.params, "this lambda"), block.span)?;
        let Ok(bindings) = bind(&block.params, args) else {
            env.dead = true;
            return Ok(Ty::never());
        };
        self.clear_block_locals(block, env);
        let ret_frame = self.here.ret_frame.replace(self.frames.len());
        self.frames.push(Frame::new(FrameKind::Lambda, env.locals.len()));
        self.collect_rest(&block.params, &args.positional, env)?;
        self.bind_params(&block.params, &bindings, env)?;
        let ty = self.eval(&block.body, env)?;
        self.here.ret_frame = ret_frame;
        let ty = self.end_of_block(&ty, env)?;
        self.check_closures(block, &ty, env)?;
        Ok(ty)
    }

    fn end_of_block(&mut self, ty: &Ty, env: &mut Env) -> Result<Ty> {
        let frame = self.frames.pop().expect("pushed above");
        let ty = if env.dead { frame.next_ty } else { self.join(&frame.next_ty, ty) };
        if let Some(next) = frame.next {
            *env = self.join_env(env, &next);
        }
        Ok(ty)
    }

    /// Makes the array that a splat parameter collects.
    pub(super) fn collect_rest(&mut self, params: &Params, args: &[Ty], env: &mut Env) -> Result<()> {
        let Some(Rest(Some(local))) = params.rest else { return Ok(()) };
        let mut element = Ty::never();
        for ty in &args[rest_positions(params, args.len())] {
            element = self.join(&element, ty);
        }
        let ty = self.made_array(self.here.unit.body.span, &element)?;
        self.assign_local(env, local, &ty);
        env.locals[self.here.base + local.index()].sole = true;
        Ok(())
    }

    /// Assigns the parameters as bound, and evaluates defaults.
    pub(super) fn bind_params(&mut self, params: &Params, bindings: &[Binding], env: &mut Env) -> Result<()> {
        let mut args = bindings.iter().cloned();
        let mut defaults: Vec<(LocalId, &Node)> = Vec::new();
        let span = self.here.unit.body.span;
        let one = |w: &mut Self, pattern: &Pattern, binding: Option<Binding>, env: &mut Env| -> Result<()> {
            match binding {
                Some(Binding::Given(ty)) => w.bind_pattern(pattern, &ty, env, span),
                _ => Ok(()),
            }
        };
        for pattern in &params.required {
            one(self, pattern, args.next(), env)?;
        }
        for (local, default) in &params.optional {
            match args.next() {
                Some(Binding::Given(ty)) => self.assign_local(env, *local, &ty),
                _ => defaults.push((*local, default)),
            }
        }
        for pattern in &params.post {
            one(self, pattern, args.next(), env)?;
        }
        for keyword in &params.keywords {
            match (args.next(), &keyword.default) {
                (Some(Binding::Given(ty)), _) => self.assign_local(env, keyword.local, &ty),
                (_, Some(default)) => defaults.push((keyword.local, default)),
                _ => {}
            }
        }
        if let Some(local) = params.block {
            let ty = self.here.block.clone().unwrap_or_else(Ty::nil);
            self.assign_local(env, local, &ty);
        }
        for (local, default) in defaults {
            let ty = self.eval(default, env)?;
            self.assign_local(env, local, &ty);
        }
        Ok(())
    }

    /// Interprets the parameters, then the body. Returns the type of the value at the body's end.
    pub(super) fn method_body(&mut self, bindings: &[Binding], env: &mut Env) -> Result<Ty> {
        let unit = self.here.unit.clone();
        self.take_around(env)?;
        self.bind_params(&unit.params, bindings, env)?;
        let ty = self.eval(&unit.body, env)?;
        Ok(if env.dead { Ty::never() } else { ty })
    }

    /// `yield`
    pub(super) fn yielded(&mut self, node: &Node, args: &[Arg], env: &mut Env) -> Result<Ty> {
        let args = self.args(args, env)?;
        let Some(block) = self.own_block(node.span, env)? else {
            if let (Some((_, span)), Some(method)) = (&self.here.site, self.an.spec(self.here.id).key.method)
                && self.an.is_prelude(method)
            {
                let label = crate::prelude::written(&self.an.spec(self.here.id).label);
                let name = label.rsplit(['#', '.']).next().unwrap_or("");
                if matches!(name, "inject" | "reduce") {
                    let error =
                        self.error(*span, format!("kernels know {label} with a block, or a literal Symbol, only"));
                    return Err(error.advise(format!("write {name}(:+), or give it a block")).into());
                }
                return Err(self
                    .error(*span, format!("{label} without a block gives an Enumerator, which kernels do not know"))
                    .advise(instead_of_enumerator(&label))
                    .into());
            }
            // LocalJumpError: no block given (yield)
            env.dead = true;
            return Ok(Ty::never());
        };
        let args = match self.an.pairs(self.here.id, &block, &args) {
            Pairs::No => args,
            Pairs::Yes => {
                let element = self.join(&args.positional[0], &args.positional[1]);
                Args::of(vec![self.made_array(node.span, &element)?])
            }
            Pairs::Unknown => {
                return Err(self
                    .error(node.span, "kernels give a Hash's keys and values to literal blocks and &:name only")
                    .because("a lambda may take one parameter or two")
                    .advise("write { |key, value| … }")
                    .into());
            }
        };
        let used = !self.an.spec(self.here.id).void.contains(&node.id);
        self.call_procs(&block, &args, used, node.span, env)
    }

    /// The block that `yield` runs: the one passed to the method; in a block, the one passed to the method around it.
    pub(super) fn own_block(&mut self, span: Span, env: &mut Env) -> Result<Option<Ty>> {
        let Some(local) = self.here.unit.outer_block else { return Ok(self.here.block.clone()) };
        let ty = self.read_local(local, env, span)?;
        Ok((!ty.procs.is_empty()).then_some(ty))
    }

    /// The assumption for speculation at a position. Positions in the prelude have an assumption for each call in the
    /// user's text.
    pub(super) fn assumption(&self, span: Span) -> Assumption {
        place_of(&self.here.unit, self.here.site.as_ref(), span)
    }

    /// `proc(&f)` and `lambda(&f)`, which give `f` back.
    pub(super) fn proc_of_block(&mut self, name: &str, block: &Ty, span: Span) -> Result<Ty> {
        let lambdas = block.procs.iter().all(|id| self.an.proc_info(*id).kind.is_lambda());
        if name == "proc" || name == "lambda" && lambdas {
            return Ok(block.clone());
        }
        Err(self.error(span, format!("{name} needs a literal block")).advise("write -> { … }").into())
    }

    /// `f >> g` and `f << g`: each pair that is composed is a Proc of its own.
    pub(super) fn compose(&mut self, receiver: Atom, receiver_first: bool, args: &Args, span: Span) -> Result<Ty> {
        let given = args.positional.first().cloned().unwrap_or_default();
        if given.is_never() {
            return Ok(given);
        }
        let given = given.atoms();
        let (Atom::Proc(receiver), [Atom::Proc(given)]) = (receiver, given.as_slice()) else {
            return Err(self
                .error(span, "kernels compose Procs that are known when compiling only")
                .because("which code is called must be known where it is called")
                .advise("write a lambda that calls both: ->(x) { g.(f.(x)) }")
                .into());
        };
        let (first, second) = if receiver_first { (receiver, *given) } else { (*given, receiver) };
        if self.an.parts(first) + self.an.parts(second) > MAX_COMPOSED {
            return Err(self
                .error(span, format!("kernels compose at most {MAX_COMPOSED} Procs into one"))
                .because("which code is called must be known when compiling, and a loop may compose without end")
                .advise("call one after the other")
                .into());
        }
        Ok(Ty::proc(self.an.composed(receiver, first, second)))
    }

    /// `lambda { … }`, `proc { … }` and `method(:name)`. None: it is some other call.
    pub(super) fn proc_literal(&mut self, call: &Call) -> Result<Option<Ty>> {
        let Some((at, kind)) = proc_form(call) else { return Ok(None) };
        if call.receiver.is_none() {
            let self_ty = self.self_type_for(call)?;
            for atom in self_ty.atoms() {
                let answer = self.an.target(self.here.id, atom, &call.name, true);
                if !matches!(answer, Ok(Target::Builtin(Builtin::MakeProc))) {
                    return Ok(None);
                }
            }
        }
        if let ProcKind::Method(name) = &kind {
            let receiver = self.self_type_for(call)?;
            self.has_method(&receiver, name, call.name_span)?;
        }
        Ok(Some(Ty::proc(self.an.proc(self.here.id, at, || kind))))
    }
}

/// A call that makes a Proc: its position, and the kind of Proc.
pub fn proc_form(call: &Call) -> Option<(Span, ProcKind)> {
    let own = call.receiver.as_ref().is_none_or(|r| matches!(r.kind, Kind::SelfRef));
    match (&*call.name, &call.receiver, &call.block, call.args.as_slice()) {
        ("lambda", None, Some(block), []) => Some((block.span, ProcKind::Lambda(block.clone()))),
        ("proc", None, Some(block), []) => Some((block.span, ProcKind::Block(block.clone()))),
        ("new", Some(r), Some(block), []) if matches!(&r.kind, Kind::Const(p) if &*p.name == "Proc") => {
            Some((block.span, ProcKind::Block(block.clone())))
        }
        ("to_proc", Some(Node { kind: Kind::Sym(name), span, .. }), None, []) => {
            Some((*span, ProcKind::Symbol(name.clone())))
        }
        ("method", _, None, [Arg::Positional(Node { kind: Kind::Sym(name), span, .. })]) if own => {
            Some((*span, ProcKind::Method(name.clone())))
        }
        _ => None,
    }
}

/// The assumption for a position in a unit; for a position in the prelude, it is combined with the user's call.
pub fn place_of(unit: &Unit, site: Option<&(Arc<Unit>, Span)>, span: Span) -> Assumption {
    match site {
        None => assumption(unit, span),
        Some((user, call)) => {
            let mut at = assumption(user, *call);
            at.column = at.column << 24 | (span.start as usize & 0xff_ffff);
            at
        }
    }
}

/// Refuses to store Procs that the program contains or captures in objects and arrays: they would outlive their method.
/// Nor can what a regular expression has found be kept, as the host cannot make it.
pub fn can_be_kept(ty: &Ty) -> std::result::Result<(), Refusal> {
    if ty.objects.contains(&well_known::MATCH_DATA) {
        return Err(Refusal::new("kernels keep no MatchData in objects and arrays, and give none")
            .advise("take what is needed from it: its groups, to_a or captures, or begin and end"));
    }
    if ty.procs.iter().all(|id| id.held_number().is_some()) {
        return Ok(());
    }
    if ty.procs.iter().all(|id| id.regexp_number().is_some()) {
        return Err(Refusal::new("kernels keep no regular expressions in objects and arrays")
            .because("which one it is must be known when compiling")
            .advise("choose with if or case … when, and match there"));
    }
    Err(Refusal::new("kernels keep no blocks or lambdas in objects and arrays")
        .because("which block is called must be known when compiling")
        .advise("choose among Procs that an array, a Hash or an object holds before the call, or keep a Symbol"))
}
