//! Interprets one body over types: environments flow forward, join at merges, and go round loops to a fixpoint.
//!
//! Here: every node of the tree but the look-up of methods ([`super::calls`]). Not here: what anything compiles to.
//! Invariant: the type that a node gives here is the join of all its visits, so it is what lowering will read.

mod narrow;
mod rescue;

use rescue::Exit;
pub use rescue::{Raise, Raised, catch_tag, is_text, thrown};

use super::blocks::{Activation, ProcKind};
use super::builtins::Builtin;
use super::calls::{Args, Literal, RangeForm, Refusal, Target, receiver_of};
use super::locals::Locals;
use super::{Analysis, SpecId, accumulate};
use crate::diagnostic::{Diagnostic, Span};
use crate::error::{Error, Result};
use crate::id::ProcId;
use crate::syntax::ast::{
    self, Arg, AssignOp, Block, Call, ConstBase, Kind, LocalId, Name, Node, Origin, Params, Pattern, Unit,
};
use crate::types::{Atom, Prims, Reach, Ty};
use crate::world::{Assumption, MethodFact, Opaque, Place, Root};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a local holds on the path at hand.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct State {
    pub ty: Ty,
    /// Some path to here did not assign it.
    pub unset: bool,
    /// It holds an array that nobody else holds ([`super::append`]).
    pub sole: bool,
}

impl State {
    pub fn unset() -> Self {
        State { ty: Ty::never(), unset: true, sole: false }
    }
}

/// All locals on the path at hand, of the body that runs and of those that wait for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Env {
    /// Control does not get here.
    pub dead: bool,
    pub locals: Locals,
}

impl Env {
    pub fn dead(&self) -> Env {
        Env { dead: true, locals: self.locals.clone() }
    }
}

/// What leaves a loop, a block or an inlined method early.
pub(super) struct Frame {
    pub next: Option<Env>,
    pub next_ty: Ty,
    pub breaks: Option<Env>,
    pub break_ty: Ty,
    pub kind: FrameKind,
    /// How many variables the environment has there.
    pub len: usize,
    /// Of a `Yield`: the frame of the call that the block was given to. None: a `proc`, which nothing waits for.
    pub brk: Option<usize>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum FrameKind {
    /// `while`, `for`: `next` and `break` are its own.
    Loop,
    /// A call with a literal block, where `break` leaves to.
    Call,
    /// One run of a literal block.
    Yield,
    /// One run of a lambda, which `next`, `break` and `return` end.
    Lambda,
    /// An inlined method, which `return` ends.
    Return,
    Section,
}

/// The frame of the section's block, in which all others are.
pub(super) const SECTION: usize = 0;

pub(super) struct Walker<'a, 'w> {
    pub(super) an: &'a mut Analysis<'w>,
    pub(super) here: Activation,
    /// Bodies that wait for an inlined one, or (while one of their blocks runs) that the block was given to.
    pub(super) others: Vec<Activation>,
    pub(super) frames: Vec<Frame>,
    /// Where `break` in a literal block goes: the frame of the call that it was given to.
    pub(super) block_frames: BTreeMap<ProcId, usize>,
    rescue: rescue::Pending,
    /// Variables that what comes after the condition at hand assigns.
    reassigned: Vec<LocalId>,
    /// Variables, by their places in the environment, whose arrays are the receivers of calls that have not ended.
    pub(super) under_way: Vec<usize>,
    /// Variables, by their places in the environment, whose arrays grow by arguments that are being evaluated.
    pub(super) holders: Vec<usize>,
    /// Blocks and lambdas that are running.
    pub(super) running: Vec<ProcId>,
}

/// The assumption that a place in a unit speculates on.
pub fn assumption(unit: &Unit, span: Span) -> Assumption {
    let (line, column) = unit.source.line_column(span.start);
    // two speculating calls may begin at one place (`a[0][1]`): their ends differ
    Assumption {
        path: unit.source.path.clone(),
        line,
        column: column << 16 | (span.end - span.start) as usize & 0xffff,
    }
}

/// A literal that a node is, for methods that must know it.
pub fn literal(node: &Node) -> Option<Literal> {
    match &node.kind {
        Kind::Int(n) => Some(Literal::Int(*n)),
        // which nobody sends
        Kind::Sym(name) if ast::primitive(name).is_none() => Some(Literal::Sym(name.clone())),
        _ => None,
    }
}

/// Runs a specialisation once over the types as they stand; wakes its callers if its result grew.
pub(super) fn interpret(an: &mut Analysis<'_>, id: SpecId) -> Result<()> {
    let spec = &mut an.specs[id.index()];
    let unit = spec.unit.clone();
    let section = spec.key.method.is_none();
    let here = Activation {
        id,
        scope: spec.scope,
        self_ty: spec.key.self_ty.clone(),
        ret: spec.ret.clone(),
        types: std::mem::take(&mut spec.types),
        locals: std::mem::take(&mut spec.locals),
        opaque: vec![None; unit.locals.len()],
        section,
        base: 0,
        block: None,
        ret_frame: None,
        site: spec.called_at.clone(),
        unit,
    };
    let mut walker = Walker {
        here,
        others: Vec::new(),
        frames: Vec::new(),
        block_frames: BTreeMap::new(),
        rescue: rescue::Pending::default(),
        reassigned: Vec::new(),
        under_way: Vec::new(),
        holders: Vec::new(),
        running: Vec::new(),
        an,
    };
    let outcome = if section { walker.section() } else { walker.method() };
    let Walker { here: Activation { types, locals, ret, .. }, an, .. } = walker;
    let spec = &mut an.specs[id.index()];
    spec.types = types;
    spec.locals = locals;
    let ret = an.facts.resolve(&ret);
    let spec = &mut an.specs[id.index()];
    if ret != spec.ret {
        spec.ret = ret;
        for caller in spec.callers.clone() {
            an.enqueue(caller);
        }
    }
    outcome
}

impl Walker<'_, '_> {
    // ---- bodies ----

    fn method(&mut self) -> Result<()> {
        let mut env = self.fresh_env();
        let args = self.an.spec(self.here.id).key.args.clone();
        let ty = self.method_body(&args, &mut env)?;
        if !env.dead {
            self.returned(&ty);
        }
        Ok(())
    }

    /// `return`
    fn give_back(&mut self, ty: &Ty, env: &mut Env) {
        let exit = match self.here.ret_frame {
            Some(frame) => Exit::Frame { to: frame, is_break: false },
            None => {
                self.returned(ty);
                Exit::Function
            }
        };
        self.jump(exit, ty, env);
    }

    fn returned(&mut self, ty: &Ty) {
        let ty = if self.an.spec(self.here.id).key.void { Ty::nil() } else { ty.clone() };
        self.here.ret = self.join(&self.here.ret.clone(), &ty);
    }

    fn section(&mut self) -> Result<()> {
        let unit = self.here.unit.clone();
        let mut env = self.fresh_env();
        for i in 0..unit.locals.len() {
            let local = LocalId::new(i);
            let acc = &self.an.accumulators;
            if unit.locals[i].origin != Origin::Captured
                || acc.reduced.contains_key(&local)
                || acc.last.contains_key(&local)
            {
                continue;
            }
            // all at once, before any branch: a type that narrowing cut down on one path must not stand for all
            match self.an.root(self.here.id, &Root::Capture(unit.locals[i].name.clone())) {
                Ok(ty) => {
                    env.locals[self.here.base + i] = State { ty: ty.clone(), unset: false, sole: false };
                    self.here.locals[i] = self.join(&self.here.locals[i].clone(), &ty);
                }
                Err(opaque) => self.here.opaque[i] = Some(opaque),
            }
        }
        let wants_element = !unit.params.required.is_empty() || !unit.params.optional.is_empty();
        let element = match self.an.base {
            super::Base::Range => Ty::int(),
            super::Base::Array if !wants_element => Ty::never(),
            super::Base::Array => match self.an.root(self.here.id, &Root::Element) {
                Ok(ty) => ty,
                Err(opaque) => return Err(Refusal::from(opaque).at(&unit.source, unit.source.params_span())),
            },
        };
        if wants_element && element.is_never() {
            // an empty array: the block never runs
            return Ok(());
        }
        self.frames.push(Frame::new(FrameKind::Section, env.locals.len()));
        self.bind(&unit.params, &[element], &mut env, unit.source.params_span())?;
        let ty = self.eval(&unit.body, &mut env)?;
        let frame = self.frames.pop().expect("pushed above");
        let mut ret = self.join(&self.here.ret.clone(), &frame.next_ty);
        if !env.dead {
            ret = self.join(&ret, &ty);
        }
        self.refused(super::blocks::keeps_no_procs(&ret), unit.body.span)?;
        let ret = self.an.facts.boxed(&ret);
        self.an.escapes(&ret);
        let broke = self.an.facts.boxed(&frame.break_ty);
        self.an.escapes(&broke);
        self.here.ret = ret;
        Ok(())
    }

    fn fresh_env(&self) -> Env {
        Env { dead: false, locals: Locals::unset(self.here.unit.locals.len()) }
    }

    // ---- types and environments ----

    pub(super) fn join(&mut self, a: &Ty, b: &Ty) -> Ty {
        self.an.facts.join(a, b)
    }

    pub(super) fn join_env(&mut self, a: &Env, b: &Env) -> Env {
        if a.dead {
            return b.clone();
        }
        if b.dead {
            return a.clone();
        }
        let facts = &mut *self.an.facts;
        let locals = a.locals.join(&b.locals, &mut |x, y| State {
            ty: if x.ty == y.ty { x.ty.clone() } else { facts.join(&x.ty, &y.ty) },
            unset: x.unset || y.unset,
            sole: x.sole && y.sole,
        });
        Env { dead: false, locals }
    }

    fn merge_into(&mut self, slot: Option<Env>, env: &Env) -> Option<Env> {
        Some(match slot {
            Some(old) => self.join_env(&old, env),
            None => env.clone(),
        })
    }

    pub(super) fn assign_local(&mut self, env: &mut Env, local: LocalId, ty: &Ty) {
        self.assign_state(env, local, ty, false);
    }

    /// The same; `sole`: it holds an array that nobody else holds.
    pub(super) fn assign_state(&mut self, env: &mut Env, local: LocalId, ty: &Ty, sole: bool) {
        if env.dead || ty.is_never() {
            return;
        }
        let i = local.index();
        env.locals[self.here.base + i] = State { ty: ty.clone(), unset: false, sole };
        self.here.locals[i] = self.join(&self.here.locals[i].clone(), ty);
        if self.here.section && self.an.accumulators.last.contains_key(&local) {
            let old = self.an.accumulators.types.get(&local).cloned().unwrap_or_default();
            let new = self.join(&old, ty);
            let new = self.an.facts.boxed(&new);
            self.an.escapes(&new);
            self.an.accumulators.types.insert(local, new);
        }
        self.seen_by_handlers(env);
    }

    /// Joins a type into one of the specialisation's side tables.
    fn note(
        &mut self,
        node: ast::NodeId,
        ty: &Ty,
        table: fn(&mut super::Spec) -> &mut std::collections::BTreeMap<ast::NodeId, Ty>,
    ) -> Ty {
        let old = table(&mut self.an.specs[self.here.id.index()]).get(&node).cloned().unwrap_or_default();
        let new = self.join(&old, ty);
        table(&mut self.an.specs[self.here.id.index()]).insert(node, new.clone());
        new
    }

    pub(super) fn error(&self, span: Span, message: impl Into<String>) -> Diagnostic {
        let (source, span) = self.place(span);
        Diagnostic::new(&source, span, message)
    }

    /// An error's place: the user's, where this is the prelude.
    fn place(&self, span: Span) -> (Arc<crate::source::Source>, Span) {
        match &self.here.site {
            Some((unit, call)) => (unit.source.clone(), *call),
            None => (self.here.unit.source.clone(), span),
        }
    }

    pub(super) fn refused<T>(&self, answer: std::result::Result<T, Refusal>, span: Span) -> Result<T> {
        answer.map_err(|r| {
            let (source, span) = self.place(span);
            r.at(&source, span)
        })
    }

    fn opaque<T>(&self, answer: std::result::Result<T, Opaque>, span: Span) -> Result<T> {
        self.refused(answer.map_err(Refusal::from), span)
    }

    // ---- expressions ----

    /// Types a node on the path `env`; `env` is dead afterwards if the node does not return.
    pub(super) fn eval(&mut self, node: &Node, env: &mut Env) -> Result<Ty> {
        if env.dead {
            return Ok(Ty::never());
        }
        let i = node.id.index();
        self.an.specs[self.here.id.index()].visited[i] = true;
        let mut ty = self.eval_kind(node, env)?;
        if !ty.is_never() && self.an.spec(self.here.id).void.contains(&node.id) {
            // nobody looks at the value: it need not be held
            ty = Ty::nil();
        }
        let old = std::mem::take(&mut self.here.types[i]);
        let new = if old == ty { ty } else { self.join(&old, &ty) };
        self.here.types[i] = new.clone();
        Ok(if env.dead { Ty::never() } else { new })
    }

    fn eval_kind(&mut self, node: &Node, env: &mut Env) -> Result<Ty> {
        if self.here.section && self.an.accumulators.nodes.contains(&node.id) {
            return self.contribute(node, env);
        }
        Ok(match &node.kind {
            Kind::Nil => Ty::nil(),
            Kind::True => Ty::prim(Prims::TRUE),
            Kind::False => Ty::prim(Prims::FALSE),
            Kind::Int(_) => Ty::int(),
            // raises, but where a mask or a shift cuts off what is beyond Integers of kernels
            Kind::BigInt(digits) if digits.parse::<u64>().is_ok() => Ty::int(),
            Kind::Float(_) => Ty::float(),
            Kind::Sym(_) => Ty::sym(),
            Kind::SelfRef => self.self_type(node.span)?,
            Kind::Local(local) => self.read_local(*local, env, node.span)?,
            Kind::Ivar(ivar)
                if self.here.section
                    && let Some(ty) = self.an.live_ivar(ivar) =>
            {
                ty
            }
            Kind::Ivar(ivar) => {
                let receiver = self.self_type(node.span)?;
                self.read_ivar(&receiver, ivar, node.span)?
            }
            Kind::Const(_) => self.constant(node, env)?,
            Kind::Range { from, to, .. } => self.range(node, from.as_deref(), to.as_deref(), env)?,
            Kind::Assign { target, value } => {
                let mut owner = self.owner(target, env)?;
                // `a&.x = v` is nil where `a` is, and `v` is not evaluated
                let mut skipped = env.dead();
                if let (ast::Target::Attr { safe: true, .. }, Some((receiver, _))) = (target, &mut owner) {
                    skipped.dead = env.dead || !receiver.may_be(Prims::NIL);
                    *receiver = receiver.filter(|a| a != Atom::Nil);
                    env.dead |= receiver.is_never();
                }
                let ty = self.under_assignment(&[target], env, |s, env| s.eval(value, env))?;
                match target {
                    ast::Target::Local(local, _) => {
                        let new = self.an.spec(self.here.id).void.contains(&node.id) && self.makes_new(value);
                        self.assign_new(env, *local, &ty, new);
                    }
                    _ => self.assign_to(target, owner, &ty, env)?,
                }
                let nil = if skipped.dead { Ty::never() } else { Ty::nil() };
                *env = self.join_env(env, &skipped);
                self.join(&ty, &nil)
            }
            Kind::OpAssign { target, op, value } => {
                self.under_assignment(&[target], env, |s, env| s.op_assign(node, target, op, value, env))?
            }
            Kind::MultiAssign { before, rest, after, value } => {
                self.no_named_rest(rest.as_ref().is_some_and(Option::is_some), node.span)?;
                let targets: Vec<&ast::Target> = before.iter().chain(after).collect();
                let shape = Shape { before: before.len(), rest: rest.is_some(), after: after.len() };
                self.under_assignment(&targets, env, |s, env| s.multi_assign(node, &targets, shape, value, env))?
            }
            Kind::Call(call) => self.call(node, call, env)?,
            Kind::Super { args, block } => self.super_call(node, args.as_deref(), block.as_ref(), env)?,
            Kind::And(a, b) => {
                let left = self.eval(a, env)?;
                let mut right_env = env.clone();
                self.narrow(a, &mut right_env, true);
                if !left.may_be_truthy() {
                    right_env.dead = true;
                }
                let right = self.eval(b, &mut right_env)?;
                self.narrow(a, env, false);
                let falsy = left.filter(|a| matches!(a, Atom::Nil | Atom::False));
                if falsy.is_never() {
                    env.dead = true;
                }
                *env = self.join_env(env, &right_env);
                self.join(&falsy, &right)
            }
            Kind::Or(a, b) => {
                let left = self.eval(a, env)?;
                let mut right_env = env.clone();
                self.narrow(a, &mut right_env, false);
                if !left.may_be_falsy() {
                    right_env.dead = true;
                }
                let right = self.eval(b, &mut right_env)?;
                self.narrow(a, env, true);
                let truthy = left.filter(|a| !matches!(a, Atom::Nil | Atom::False));
                if truthy.is_never() {
                    env.dead = true;
                }
                *env = self.join_env(env, &right_env);
                self.join(&truthy, &right)
            }
            Kind::Not(x) => {
                let ty = self.eval(x, env)?;
                for atom in ty.atoms() {
                    let own = matches!(atom, Atom::Object(_)) && !self.an.is_rubys(self.here.id, atom, "!");
                    if own {
                        let class = self.an.describe(atom);
                        return Err(self
                            .error(node.span, format!("{class} has a ! of its own, which kernels do not ask"))
                            .because("every condition could ask it")
                            .advise("give the method a name, and call it")
                            .into());
                    }
                }
                super::calls::negate(&ty)
            }
            Kind::If { cond, then, otherwise } => {
                let test = self.eval(cond, env)?;
                let mut then_env = env.clone();
                self.narrow(cond, &mut then_env, true);
                then_env.dead |= !test.may_be_truthy();
                let a = self.eval(then, &mut then_env)?;
                self.narrow(cond, env, false);
                env.dead |= !test.may_be_falsy();
                let b = self.eval(otherwise, env)?;
                *env = self.join_env(&then_env, env);
                self.join(&a, &b)
            }
            Kind::Case { subject, whens, otherwise } => self.case(subject.as_deref(), whens, otherwise, env)?,
            Kind::While { cond, body, body_first } => self.while_loop(cond, body, *body_first, env)?,
            Kind::For { target, over, body } => self.for_loop(node, target, over, body, env)?,
            Kind::Break(value) => {
                let ty = self.optional(value.as_deref(), env)?;
                self.leave(env, &ty, true, node.span)?;
                Ty::never()
            }
            Kind::Next(value) => {
                let ty = self.optional(value.as_deref(), env)?;
                self.leave(env, &ty, false, node.span)?;
                Ty::never()
            }
            Kind::Return(value) => {
                let ty = self.optional(value.as_deref(), env)?;
                if !env.dead {
                    if self.here.section && self.here.ret_frame.is_none() && !self.here.unit.lambda {
                        return Err(self
                            .error(node.span, "return would leave the method around the block")
                            .because("elements run at the same time, so none can return for all")
                            .advise("write next to end this element's run")
                            .into());
                    }
                    self.leaves_captured_proc(node.span)?;
                    self.give_back(&ty, env);
                }
                Ty::never()
            }
            Kind::Retry => {
                self.jump(Exit::Retry, &Ty::never(), env);
                Ty::never()
            }
            Kind::Found => {
                self.jump(Exit::Frame { to: SECTION, is_break: true }, &Ty::never(), env);
                Ty::never()
            }
            Kind::Seq(items) => {
                let mut ty = Ty::nil();
                for item in items {
                    ty = self.eval(item, env)?;
                    if env.dead {
                        return Ok(Ty::never());
                    }
                }
                ty
            }
            Kind::Begin { body, rescues, otherwise, ensure } => {
                self.begin((body, otherwise.as_deref()), rescues, ensure.as_deref(), env)?
            }
            Kind::BigInt(_) => {
                return Err(self
                    .error(node.span, "this Integer is beyond 64 bits")
                    .because("kernels hold Integers in 64 bits")
                    .advise(
                        "use a Float, or two Integers; a mask of 64 bits may be written out (& 0xffff_ffff_ffff_ffff)",
                    )
                    .into());
            }
            Kind::Str(_) => Ty::str(),
            Kind::DStr(_) => {
                return Err(self
                    .error(node.span, "kernels do not know a string with interpolation")
                    .advise("return the values from the block and build the string from its results in Ruby")
                    .into());
            }
            Kind::Array(items) => self.array_literal(node, items, env)?,
            Kind::Hash(_) => {
                return Err(self
                    .error(node.span, "kernels make no Hashes")
                    .advise("make it before the section, or use case … when")
                    .into());
            }
            Kind::Splat(_) => {
                return Err(self
                    .error(node.span, "kernels do not know splats")
                    .because("how many arguments a call has is settled when compiling, and an array's length is not")
                    .advise("write the arguments out, f(list[0], list[1]), or let the method take the array itself")
                    .into());
            }
            Kind::Yield(args) => self.yielded(node, args, env)?,
            Kind::Lambda(block) => Ty::proc(self.an.proc(self.here.id, block.span, || ProcKind::Lambda(block.clone()))),
            Kind::Defined(_) => {
                return Err(self
                    .error(node.span, "kernels do not know defined?")
                    .advise("ask before the section, into a local variable")
                    .into());
            }
            Kind::Unsupported { what, advice } => {
                let mut d = self.error(node.span, format!("kernels do not know {what}"));
                if !advice.is_empty() {
                    d = d.advise(*advice);
                }
                return Err(d.into());
            }
        })
    }

    fn optional(&mut self, node: Option<&Node>, env: &mut Env) -> Result<Ty> {
        match node {
            Some(node) => self.eval(node, env),
            None => Ok(Ty::nil()),
        }
    }

    fn leave(&mut self, env: &mut Env, ty: &Ty, is_break: bool, span: Span) -> Result<()> {
        if env.dead {
            return Ok(());
        }
        let Some(last) = self.frames.len().checked_sub(1).filter(|i| self.frames[*i].kind != FrameKind::Return) else {
            if self.an.spec(self.here.id).around.is_some() {
                if is_break {
                    self.leaves_captured_proc(span)?;
                }
                self.give_back(ty, env);
                return Ok(());
            }
            let word = if is_break { "break" } else { "next" };
            return Err(self.error(span, format!("{word} outside of a block or loop")).into());
        };
        let (to, is_break) = match (self.frames[last].kind, is_break) {
            (FrameKind::Yield, true) => match self.frames[last].brk {
                Some(call) => (call, true),
                None => {
                    return Err(self
                        .error(span, "break would leave a proc that nothing waits for")
                        .because("Ruby raises a LocalJumpError here")
                        .advise("write next")
                        .into());
                }
            },
            (FrameKind::Lambda, true) => (last, false),
            (_, is_break) => (last, is_break),
        };
        self.jump(Exit::Frame { to, is_break }, ty, env);
        Ok(())
    }

    /// Goes where a jump goes, by way of the `ensure`s between; `env` is dead then.
    fn jump(&mut self, exit: Exit, ty: &Ty, env: &mut Env) {
        if env.dead || self.delayed(exit, ty, env) {
            return;
        }
        match exit {
            Exit::Frame { to, is_break: true } if self.frames[to].kind == FrameKind::Section => {
                self.an.has_break = true;
                self.frames[to].break_ty = self.join(&self.frames[to].break_ty.clone(), ty);
            }
            Exit::Frame { to, is_break } => self.leave_to(to, env, ty, is_break),
            Exit::Retry => self.tried_again(env),
            Exit::Function => {}
        }
        env.dead = true;
    }

    /// Joins the path at hand into what leaves a frame.
    fn leave_to(&mut self, frame: usize, env: &Env, ty: &Ty, is_break: bool) {
        let mut env = env.clone();
        env.locals.truncate(self.frames[frame].len);
        let frame_ = &mut self.frames[frame];
        let (slot, old) = if is_break {
            (frame_.breaks.take(), std::mem::take(&mut frame_.break_ty))
        } else {
            (frame_.next.take(), std::mem::take(&mut frame_.next_ty))
        };
        let merged = self.merge_into(slot, &env);
        let ty = self.join(&old, ty);
        let frame_ = &mut self.frames[frame];
        if is_break {
            (frame_.breaks, frame_.break_ty) = (merged, ty);
        } else {
            (frame_.next, frame_.next_ty) = (merged, ty);
        }
    }

    pub(super) fn self_type(&mut self, span: Span) -> Result<Ty> {
        if !self.here.section {
            return Ok(self.here.self_ty.clone());
        }
        let answer = self.an.root(self.here.id, &Root::SelfObject);
        self.opaque(answer, span)
    }

    fn read_local(&mut self, local: LocalId, env: &mut Env, span: Span) -> Result<Ty> {
        let i = local.index();
        if let Some(opaque) = self.here.opaque[i].clone() {
            return self.opaque(Err(opaque), span);
        }
        let state = env.locals[self.here.base + i].clone();
        // whoever reads it may keep it
        if state.sole {
            env.locals[self.here.base + i].sole = false;
            self.seen_by_handlers(env);
        }
        if self.here.section && self.here.unit.locals[i].origin == Origin::Captured && state.unset {
            let name = self.here.unit.locals[i].name.clone();
            if let Some(span) = self.an.accumulators.read.get(&local).copied() {
                let d = self.error(span, format!("{name} is accumulated in this block, and its value is used here"));
                return Err(Error::Conflict(Box::new(
                    d.because("elements run at the same time: what they give together is known only after all of them")
                        .advise(format!(
                            "read {name} after the call; pscan, or pmap and a loop over its result, for what each element finds"
                        )),
                )));
            }
            let d = self.error(span, format!("{name} is read here before this element has assigned it"));
            return Err(Error::Conflict(Box::new(
                d.because(format!(
                    "its value would be carried from element to element, and elements run at the same time; \
                     {name} is neither only accumulated (`{name} += x`) nor always assigned first"
                ))
                .advise("pscan or preduce for what depends on the elements before; pmap and a sum over its result for totals"),
            )));
        }
        if state.unset {
            self.here.locals[i] = self.join(&self.here.locals[i].clone(), &Ty::nil());
            return Ok(self.join(&state.ty, &Ty::nil()));
        }
        Ok(state.ty)
    }

    fn read_ivar(&mut self, receiver: &Ty, ivar: &Name, span: Span) -> Result<Ty> {
        let mut out = Ty::never();
        for atom in receiver.atoms() {
            let answer = self.an.read_field(self.here.id, atom, receiver.reach, ivar);
            let ty = self.refused(answer, span)?;
            out = self.join(&out, &ty);
        }
        Ok(out)
    }

    fn constant(&mut self, node: &Node, env: &mut Env) -> Result<Ty> {
        match self.constant_root(node, env)? {
            Some(root) => {
                let answer = self.an.root(self.here.id, &root);
                self.opaque(answer, node.span)
            }
            None => {
                env.dead = true;
                Ok(Ty::never())
            }
        }
    }

    fn constant_root(&mut self, node: &Node, env: &mut Env) -> Result<Option<Root>> {
        let Kind::Const(path) = &node.kind else { return Ok(None) };
        let found = match &path.base {
            ConstBase::Lexical if self.here.scope == crate::prelude::SCOPE => self.an.world.top_constant(&path.name),
            ConstBase::Lexical => self.an.world.constant(self.here.scope, None, &path.name),
            ConstBase::Top => self.an.world.top_constant(&path.name),
            ConstBase::Of(base) => {
                let ty = self.eval(base, env)?;
                match ty.atoms().as_slice() {
                    [Atom::Module(class)] => self.an.world.constant(self.here.scope, Some(*class), &path.name),
                    _ if env.dead => None,
                    _ => {
                        return Err(self
                            .error(
                                node.span,
                                "constants are looked up in a class or module that is known when compiling",
                            )
                            .into());
                    }
                }
            }
        };
        Ok(found.map(Root::Const))
    }

    fn range(&mut self, node: &Node, from: Option<&Node>, to: Option<&Node>, env: &mut Env) -> Result<Ty> {
        let mut end = |end: Option<&Node>| end.map_or(Ok(Ty::nil()), |node| self.eval(node, env));
        let (a, b) = (end(from)?, end(to)?);
        if env.dead {
            return Ok(Ty::never());
        }
        let known = Prims(Prims::INT.0 | Prims::FLOAT.0 | Prims::NIL.0);
        if a.only(Prims::INT) && b.only(Prims::INT) {
            Ok(Ty::prim(Prims::INT_RANGE))
        } else if a.only(Prims::FLOAT) && b.only(Prims::FLOAT) {
            Ok(Ty::prim(Prims::FLOAT_RANGE))
        } else if a.only(known) && b.only(known) {
            let made = self.an.make_value(self.here.id, crate::world::well_known::RANGE, &[a, b, Ty::bool()]);
            self.refused(made, node.span)
        } else {
            Err(self
                .error(node.span, "kernels know Ranges of numbers only")
                .advise("compare both ends yourself")
                .into())
        }
    }

    fn case(&mut self, subject: Option<&Node>, whens: &[ast::When], otherwise: &Node, env: &mut Env) -> Result<Ty> {
        let value = match subject {
            Some(node) => Some(self.eval(node, env)?),
            None => None,
        };
        let local = match subject.map(|s| &s.kind) {
            Some(Kind::Local(local)) => Some(*local),
            _ => None,
        };
        let mut out = Ty::never();
        let mut after = env.dead();
        for when in whens {
            let mut body_env = env.dead();
            for test in &when.tests {
                if matches!(test.kind, Kind::Splat(_)) {
                    return Err(self
                        .error(test.span, "kernels do not know splats")
                        .advise("write the values out")
                        .into());
                }
                let ty = self.eval(test, env)?;
                if env.dead {
                    break;
                }
                let answer = match &value {
                    // a narrowed subject was read before: its type now is the environment's
                    Some(value) => {
                        let base = self.here.base;
                        let now = local.map(|l| &env.locals[base + l.index()]).filter(|s| !s.unset && !s.ty.is_never());
                        let subject_ty = now.map_or_else(|| value.clone(), |s| s.ty.clone());
                        let subject_ty = self.note(test.id, &subject_ty, |s| &mut s.subjects);
                        self.case_eq(test, &ty, &subject_ty, env)?
                    }
                    None => ty.clone(),
                };
                let mut hit = env.clone();
                hit.dead |= !answer.may_be_truthy();
                let from = self.here.id;
                let module = match ty.atoms()[..] {
                    [class @ Atom::Module(m)] if self.an.asks_class(from, class) => local.map(|local| (local, m)),
                    _ => None,
                };
                let is_nil = ty.only(Prims::NIL) && self.an.is_rubys(from, Atom::Nil, "===");
                if let Some((local, m)) = module {
                    self.keep(&mut hit, local, |an, a| an.may_answer(a, m, true));
                    self.keep(env, local, |an, a| an.may_answer(a, m, false));
                } else if let (Some(local), true) = (local, is_nil) {
                    self.keep(&mut hit, local, |_, a| a == Atom::Nil);
                    self.keep(env, local, |_, a| a != Atom::Nil);
                } else if subject.is_none() {
                    self.narrow(test, &mut hit, true);
                    self.narrow(test, env, false);
                }
                env.dead |= !answer.may_be_falsy();
                body_env = self.join_env(&body_env, &hit);
            }
            let ty = self.eval(&when.body, &mut body_env)?;
            out = self.join(&out, &ty);
            after = self.join_env(&after, &body_env);
        }
        let ty = self.eval(otherwise, env)?;
        out = self.join(&out, &ty);
        *env = self.join_env(&after, env);
        Ok(out)
    }

    /// `test === subject`
    fn case_eq(&mut self, test: &Node, test_ty: &Ty, subject: &Ty, env: &mut Env) -> Result<Ty> {
        let at = self.assumption(test.span);
        self.dispatch(test_ty, "===", &Args::of(vec![subject.clone()]), false, test.span, &at, env)
    }

    // ---- loops ----

    fn while_loop(&mut self, cond: &Node, body: &Node, body_first: bool, env: &mut Env) -> Result<Ty> {
        self.frames.push(Frame::new(FrameKind::Loop, env.locals.len()));
        let mut head = env.clone();
        let exit = loop {
            let mut e = head.clone();
            if body_first {
                self.eval(body, &mut e)?;
                e = self.with_nexts(&e);
            }
            let test = self.eval(cond, &mut e)?;
            let mut exit = e.clone();
            self.narrow(cond, &mut exit, false);
            exit.dead |= !test.may_be_falsy();
            self.narrow(cond, &mut e, true);
            e.dead |= !test.may_be_truthy();
            if !body_first {
                self.eval(body, &mut e)?;
                e = self.with_nexts(&e);
            }
            let next = self.join_env(&head, &e);
            if next == head {
                break exit;
            }
            head = next;
        };
        let frame = self.frames.pop().expect("pushed above");
        let normal = if exit.dead { Ty::never() } else { Ty::nil() };
        let breaks = frame.breaks.unwrap_or_else(|| env.dead());
        *env = self.join_env(&exit, &breaks);
        Ok(self.join(&normal, &frame.break_ty))
    }

    fn with_nexts(&mut self, env: &Env) -> Env {
        let next = self.frames.last().and_then(|f| f.next.clone());
        match next {
            Some(next) => self.join_env(env, &next),
            None => env.clone(),
        }
    }

    /// Runs `body` until the environment at its head stands still; `once` sets up one round. Leaves `env` as after any
    /// number of rounds, or (`endless`) only as `break` leaves it; gives the type of `break`.
    fn rounds(
        &mut self,
        env: &mut Env,
        kind: FrameKind,
        endless: bool,
        mut once: impl FnMut(&mut Self, &mut Env) -> Result<()>,
    ) -> Result<Ty> {
        self.frames.push(Frame::new(kind, env.locals.len()));
        let mut head = env.clone();
        loop {
            let mut e = head.clone();
            once(self, &mut e)?;
            e = self.with_nexts(&e);
            let next = self.join_env(&head, &e);
            if next == head {
                break;
            }
            head = next;
        }
        let frame = self.frames.pop().expect("pushed above");
        if endless {
            head.dead = true;
        }
        *env = match frame.breaks {
            Some(breaks) => self.join_env(&head, &breaks),
            None => head,
        };
        Ok(frame.break_ty)
    }

    fn for_loop(&mut self, node: &Node, target: &ast::Target, over: &Node, body: &Node, env: &mut Env) -> Result<Ty> {
        let over_ty = self.eval(over, env)?;
        if env.dead {
            return Ok(Ty::never());
        }
        let mut out = Ty::never();
        for atom in over_ty.atoms() {
            let element = match atom {
                Atom::IntRange => Ty::int(),
                Atom::Array(kind) => {
                    let answer = self.an.elements(self.here.id, kind, over_ty.reach);
                    self.an.read_array(kind, over_ty.reach);
                    self.opaque(answer, over.span)?
                }
                other => {
                    let what = self.an.describe(other);
                    return Err(self.error(node.span, format!("kernels do not know for over {what}")).into());
                }
            };
            let broke = self.rounds(env, FrameKind::Loop, false, |w, e| {
                if element.is_never() {
                    e.dead = true;
                    return Ok(());
                }
                w.assign(target, &element, e)?;
                w.eval(body, e)?;
                Ok(())
            })?;
            out = self.join(&out, &broke);
            out = self.join(&out, &Ty::of(atom, over_ty.reach));
        }
        Ok(out)
    }

    /// Binds a block's parameters as a yield of `values` does.
    pub(super) fn bind(&mut self, params: &Params, values: &[Ty], env: &mut Env, span: Span) -> Result<()> {
        if !params.keywords.is_empty() || params.keyword_rest.is_some() || params.block.is_some() {
            return Err(self
                .error(span, "kernels know only plain parameters of blocks")
                .advise("name each parameter")
                .into());
        }
        let wants = params.required.len() + params.optional.len() + params.post.len();
        let spread: Vec<Ty>;
        let values = match values {
            [one] if wants + usize::from(params.rest.is_some()) > 1 && one.array.is_some() => {
                if let Some(ast::Rest(Some(local))) = params.rest {
                    let rest = self.rest_of(one, span, env)?;
                    self.assign_local(env, local, &rest);
                }
                if !params.optional.is_empty() {
                    return Err(self
                        .error(span, "kernels do not know defaults of parameters that take an array apart")
                        .because("its length decides which defaults are used")
                        .advise("name one parameter, and read the array's elements in the block")
                        .into());
                }
                spread = self.spread(one, Shape::of_block(params), span)?;
                &spread[..]
            }
            _ => {
                self.collect_rest(params, values, env)?;
                values
            }
        };
        let mut values = values.iter();
        let (nil, given) = (Ty::nil(), values.len());
        for pattern in &params.required {
            let ty = values.next().unwrap_or(&nil).clone();
            self.bind_pattern(pattern, &ty, env, span)?;
        }
        let free = given.saturating_sub(params.required.len() + params.post.len());
        for (i, (local, default)) in params.optional.iter().enumerate() {
            let ty = if i < free { values.next().unwrap_or(&nil).clone() } else { self.eval(default, env)? };
            self.assign_local(env, *local, &ty);
        }
        for pattern in &params.post {
            let ty = values.next().unwrap_or(&nil).clone();
            self.bind_pattern(pattern, &ty, env, span)?;
        }
        Ok(())
    }

    pub(super) fn bind_pattern(&mut self, pattern: &Pattern, ty: &Ty, env: &mut Env, span: Span) -> Result<()> {
        match pattern {
            Pattern::Local(local) => self.assign_local(env, *local, ty),
            Pattern::List { before, rest, after } => {
                let shape = Shape { before: before.len(), rest: rest.is_some(), after: after.len() };
                if let Some(ast::Rest(Some(local))) = rest {
                    let rest = self.rest_of(ty, span, env)?;
                    self.assign_local(env, *local, &rest);
                }
                let types = self.spread(ty, shape, span)?;
                for (pattern, ty) in before.iter().chain(after).zip(&types) {
                    self.bind_pattern(pattern, ty, env, span)?;
                }
            }
        }
        Ok(())
    }

    /// The types of the parts of a value that is destructured: an array's elements, or the value and nils.
    fn spread(&mut self, ty: &Ty, shape: Shape, span: Span) -> Result<Vec<Ty>> {
        let at = self.assumption(span);
        let mut out = vec![Ty::never(); shape.before + shape.after];
        for atom in ty.atoms() {
            if matches!(self.an.method(receiver_of(atom), "to_ary"), MethodFact::Ruby { .. }) {
                let class = self.an.describe(atom);
                return Err(self
                    .error(span, format!("kernels do not ask {class} for to_ary"))
                    .because("several variables are given one value, which Ruby would take apart by that method")
                    .advise("call it: a, b = *object.to_ary")
                    .into());
            }
            for (i, slot) in out.iter_mut().enumerate() {
                let part = match atom {
                    Atom::Array(_) => {
                        let answer = self.an.element(self.here.id, (atom, ty.reach), &at);
                        self.refused(answer, span)?
                    }
                    other if i == 0 => Ty::of(other, ty.reach),
                    _ => Ty::nil(),
                };
                *slot = self.an.facts.join(slot, &part);
            }
        }
        Ok(out)
    }

    // ---- assignments ----

    /// Types of the receiver and the arguments of a target, which Ruby evaluates before the value.
    fn owner(&mut self, target: &ast::Target, env: &mut Env) -> Result<Option<(Ty, Vec<Ty>)>> {
        let (receiver, args) = match target {
            ast::Target::Attr { receiver, .. } => (receiver, &[][..]),
            ast::Target::Index { receiver, args, .. } => (receiver, &args[..]),
            _ => return Ok(None),
        };
        let receiver = self.receiver(receiver, "[]=", false, env)?;
        let args = args.iter().map(|arg| self.eval(arg, env)).collect::<Result<_>>()?;
        Ok(Some((receiver, args)))
    }

    fn assign(&mut self, target: &ast::Target, ty: &Ty, env: &mut Env) -> Result<()> {
        let owner = self.owner(target, env)?;
        self.assign_to(target, owner, ty, env)
    }

    fn assign_to(&mut self, target: &ast::Target, owner: Option<(Ty, Vec<Ty>)>, ty: &Ty, env: &mut Env) -> Result<()> {
        if env.dead {
            return Ok(());
        }
        let (receiver_ty, mut types) = owner.unwrap_or_default();
        match target {
            ast::Target::Local(local, _) => self.assign_local(env, *local, ty),
            ast::Target::Ivar(ivar, span) => {
                let receiver = self.self_type(*span)?;
                self.write_ivar(&receiver, ivar, ty, *span)?;
            }
            ast::Target::Attr { receiver, name, span, .. } => {
                let on_self = matches!(receiver.kind, Kind::SelfRef);
                let setter = format!("{name}=");
                let at = self.assumption(*span);
                self.dispatch(&receiver_ty, &setter, &Args::of(vec![ty.clone()]), on_self, *span, &at, env)?;
            }
            ast::Target::Index { receiver, args, span } => {
                let on_self = matches!(receiver.kind, Kind::SelfRef);
                types.push(ty.clone());
                let at = self.assumption(*span);
                self.dispatch(&receiver_ty, "[]=", &indexed(args, types), on_self, *span, &at, env)?;
            }
            ast::Target::List { before, rest, after } => {
                let span = target.span();
                self.no_named_rest(rest.as_ref().is_some_and(Option::is_some), span)?;
                let shape = Shape { before: before.len(), rest: rest.is_some(), after: after.len() };
                let types = self.spread(ty, shape, span)?;
                for (target, ty) in before.iter().chain(after).zip(&types) {
                    self.assign(target, ty, env)?;
                }
            }
            ast::Target::Unsupported { what, advice, span } => {
                return Err(self.error(*span, format!("kernels do not know {what}")).advise(*advice).into());
            }
        }
        Ok(())
    }

    fn write_ivar(&mut self, receiver: &Ty, ivar: &Name, ty: &Ty, span: Span) -> Result<()> {
        if ty.is_never() {
            return Ok(());
        }
        for atom in receiver.atoms() {
            self.check_shared_write(atom, receiver.reach, ivar, span)?;
            let written = self.an.write_field(self.here.id, atom, receiver.reach, ivar, ty);
            self.refused(written, span)?;
        }
        Ok(())
    }

    /// A write to an ivar of one object that all elements have in common, which is no accumulation: Ruby's answer would
    /// be that of the last element, or of whatever each reads in between.
    fn check_shared_write(&mut self, atom: Atom, reach: Reach, ivar: &Name, span: Span) -> Result<()> {
        if reach != Reach::Same || !matches!(atom, Atom::Object(_)) {
            return Ok(());
        }
        let class = self.an.describe(atom);
        let d = self
            .error(span, format!("every element writes {ivar} of the same {class} here"))
            .because("elements run at the same time, so which of them writes last is not known")
            .advise(format!(
                "only add to it ({ivar} += …), or give the value as pmap's result and assign it afterwards"
            ));
        Err(Error::Conflict(Box::new(d)))
    }

    fn op_assign(
        &mut self,
        node: &Node,
        target: &ast::Target,
        op: &AssignOp,
        value: &Node,
        env: &mut Env,
    ) -> Result<Ty> {
        let at = self.assumption(node.span);
        if self.accumulates(node, target, op, value, env)? {
            return Ok(if env.dead { Ty::never() } else { Ty::nil() });
        }
        let (old, place) = self.read_target(target, env, &at)?;
        let old = if env.dead { old } else { self.note(node.id, &old, |s| &mut s.op_reads) };
        match op {
            AssignOp::Method(name) => {
                let arg = self.eval(value, env)?;
                let mut args = Args::of(vec![arg]);
                args.literals[0] = literal(value);
                let ty = self.dispatch(&old, name, &args, false, node.span, &at, env)?;
                self.write_place(&place, &ty, env, &at)?;
                Ok(ty)
            }
            AssignOp::Or | AssignOp::And => {
                let or = *op == AssignOp::Or;
                let keep = old.filter(|a| matches!(a, Atom::Nil | Atom::False) != or);
                let mut assign_env = env.clone();
                assign_env.dead |= if or { !old.may_be_falsy() } else { !old.may_be_truthy() };
                let new = self.eval(value, &mut assign_env)?;
                self.write_place(&place, &new, &mut assign_env, &at)?;
                if let ast::Target::Local(local, _) = target {
                    self.keep(env, *local, |_, a| matches!(a, Atom::Nil | Atom::False) != or);
                }
                env.dead |= keep.is_never();
                *env = self.join_env(env, &assign_env);
                Ok(self.join(&keep, &new))
            }
        }
    }

    /// `shared.count += n` and `shared[i] += n` of numbers whose value nobody uses: noted as an accumulation, which is
    /// an atomic operation if nothing else in the section touches the slot. False: an ordinary read and write.
    fn accumulates(
        &mut self,
        node: &Node,
        target: &ast::Target,
        op: &AssignOp,
        value: &Node,
        env: &mut Env,
    ) -> Result<bool> {
        let AssignOp::Method(op) = op else { return Ok(false) };
        if accumulate::combine_of(op).is_none_or(|(c, _)| c == crate::layout::schema::Combine::Mul)
            || !self.an.spec(self.here.id).void.contains(&node.id)
        {
            return Ok(false);
        }
        let receiver = match target {
            ast::Target::Ivar(_, span) => self.self_type(*span)?,
            ast::Target::Attr { receiver, safe: false, .. } => self.eval(receiver, env)?,
            ast::Target::Index { receiver, args, .. } if args.len() == 1 => {
                self.receiver(receiver, "[]", false, env)?
            }
            _ => return Ok(false),
        };
        let on_self = match target {
            ast::Target::Attr { receiver, .. } => matches!(receiver.kind, Kind::SelfRef),
            _ => true,
        };
        let Some((slots, number)) = self.slots(&receiver, target, on_self, node.span)? else { return Ok(false) };
        if number == Prims::FLOAT && !matches!(&**op, "+" | "-") {
            return Ok(false);
        }
        if let ast::Target::Index { args, .. } = target
            && !self.eval(&args[0], env)?.only(Prims::INT)
        {
            return Ok(false);
        }
        let amount = self.eval(value, env)?;
        if !(amount.only(number) || number == Prims::FLOAT && amount.only(Prims::INT)) {
            return Ok(false);
        }
        for slot in slots {
            match slot {
                Place::Field(class, ivar) => self.an.accumulate_field(class, &ivar),
                Place::Elements(kind) => self.an.accumulate_element(kind),
                Place::Root(_) => {}
            }
        }
        Ok(true)
    }

    /// The slots that an accumulation would touch, if all of them are shared and hold numbers of one kind. Receivers that
    /// do not answer at all have none.
    fn slots(
        &mut self,
        receiver: &Ty,
        target: &ast::Target,
        on_self: bool,
        span: Span,
    ) -> Result<Option<(Vec<Place>, Prims)>> {
        if receiver.reach.is_owned() || receiver.is_never() {
            return Ok(None);
        }
        let mut slots = Vec::new();
        let mut number = None;
        for atom in receiver.atoms() {
            let (place, ty) = match (atom, target) {
                (Atom::Array(kind), ast::Target::Index { .. }) => {
                    let answer = self.an.elements(self.here.id, kind, Reach::Any);
                    (Place::Elements(kind), self.opaque(answer, span)?)
                }
                // NoMethodError, before anything is touched
                (_, ast::Target::Attr { name, .. }) if self.an.answers_nothing(self.here.id, atom, name, on_self) => {
                    continue;
                }
                (Atom::Object(class), ast::Target::Ivar(..) | ast::Target::Attr { .. }) => {
                    let ivar = match target {
                        ast::Target::Attr { name, .. } => {
                            let reader = self.an.target(self.here.id, atom, name, on_self);
                            let writer = self.an.target(self.here.id, atom, &format!("{name}="), on_self);
                            match (reader, writer) {
                                (Ok(Target::Reader(a)), Ok(Target::Writer(b))) if a == b => a,
                                _ => return Ok(None),
                            }
                        }
                        ast::Target::Ivar(ivar, _) => ivar.clone(),
                        _ => return Ok(None),
                    };
                    let answer = self.an.field(self.here.id, class, &ivar, Reach::Any);
                    (Place::Field(class, ivar), self.opaque(answer, span)?)
                }
                _ => return Ok(None),
            };
            let here = if ty.only(Prims::INT) { Prims::INT } else { Prims::FLOAT };
            if !ty.only(here) || *number.get_or_insert(here) != here {
                return Ok(None);
            }
            slots.push(place);
        }
        Ok(number.map(|number| (slots, number)))
    }

    fn read_target(&mut self, target: &ast::Target, env: &mut Env, at: &Assumption) -> Result<(Ty, Written)> {
        Ok(match target {
            ast::Target::Local(local, span) => (self.read_local(*local, env, *span)?, Written::Local(*local)),
            ast::Target::Ivar(ivar, span) => {
                let receiver = self.self_type(*span)?;
                (self.read_ivar(&receiver, ivar, *span)?, Written::Ivar(receiver, ivar.clone(), *span))
            }
            ast::Target::Attr { receiver, name, span, safe } => {
                if *safe {
                    return Err(self.error(*span, "kernels do not know &. before an operator assignment").into());
                }
                let on_self = matches!(receiver.kind, Kind::SelfRef);
                let ty = self.eval(receiver, env)?;
                let old = self.dispatch(&ty, name, &Args::default(), on_self, *span, at, env)?;
                (
                    old,
                    Written::Call {
                        receiver: ty,
                        name: format!("{name}="),
                        args: Args::default(),
                        on_self,
                        span: *span,
                    },
                )
            }
            ast::Target::Index { receiver, args, span } => {
                let on_self = matches!(receiver.kind, Kind::SelfRef);
                let ty = self.receiver(receiver, "[]", false, env)?;
                let mut types = Vec::new();
                for arg in args {
                    types.push(self.eval(arg, env)?);
                }
                let indices = indexed(args, types);
                let old = self.dispatch(&ty, "[]", &indices, on_self, *span, at, env)?;
                (old, Written::Call { receiver: ty, name: "[]=".into(), args: indices, on_self, span: *span })
            }
            ast::Target::List { .. } => unreachable!("a list is no target of an operator assignment"),
            ast::Target::Unsupported { what, advice, span } => {
                return Err(self.error(*span, format!("kernels do not know {what}")).advise(*advice).into());
            }
        })
    }

    fn write_place(&mut self, place: &Written, ty: &Ty, env: &mut Env, at: &Assumption) -> Result<()> {
        if env.dead {
            return Ok(());
        }
        match place {
            Written::Local(local) => self.assign_local(env, *local, ty),
            Written::Ivar(receiver, ivar, span) => self.write_ivar(receiver, ivar, ty, *span)?,
            Written::Call { receiver, name, args, on_self, span } => {
                let mut args = args.clone();
                args.positional.push(ty.clone());
                args.literals.push(None);
                self.dispatch(receiver, name, &args, *on_self, *span, at, env)?;
            }
        }
        Ok(())
    }

    /// What a splat takes of a value that is taken apart.
    fn rest_of(&mut self, ty: &Ty, span: Span, env: &mut Env) -> Result<Ty> {
        let at = self.assumption(span);
        self.dispatch(ty, "%__rest", &Args::of(vec![Ty::int(), Ty::int()]), false, span, &at, env)
    }

    fn no_named_rest(&self, named: bool, span: Span) -> Result<()> {
        if !named {
            return Ok(());
        }
        Err(self.error(span, "kernels do not know splats in assignments").advise("name each variable").into())
    }

    fn multi_assign(
        &mut self,
        node: &Node,
        targets: &[&ast::Target],
        shape: Shape,
        value: &Node,
        env: &mut Env,
    ) -> Result<Ty> {
        let owners = targets.iter().map(|t| self.owner(t, env)).collect::<Result<Vec<_>>>()?;
        // the value of the whole is the right-hand array, which is made where somebody looks at it
        let used = !self.an.spec(self.here.id).void.contains(&node.id);
        let mut whole = Ty::nil();
        let mut new = Vec::new();
        let types = match &value.kind {
            Kind::Array(items) if items.iter().all(|i| !matches!(i.kind, Kind::Splat(_))) => {
                let mut types = Vec::new();
                for item in items {
                    types.push(self.eval(item, env)?);
                    let made = !used && self.makes_new(item);
                    new.push(made);
                }
                if used && !env.dead {
                    whole = self.array_of(&types, value.span)?;
                }
                new = shape.pick(new, false);
                shape.pick(types, Ty::nil())
            }
            Kind::Call(call) if &*call.name == "divmod" && call.receiver.is_some() && call.args.len() == 1 => {
                let types = self.divmod(call, value.span, env)?.to_vec();
                if used && !env.dead {
                    whole = self.array_of(&types, value.span)?;
                }
                shape.pick(types, Ty::nil())
            }
            _ => {
                whole = self.eval(value, env)?;
                self.spread(&whole, shape, node.span)?
            }
        };
        for (i, ((target, owner), ty)) in targets.iter().zip(owners).zip(&types).enumerate() {
            match target {
                ast::Target::Local(local, _) => {
                    self.assign_new(env, *local, ty, new.get(i).copied().unwrap_or_default());
                }
                _ => self.assign_to(target, owner, ty, env)?,
            }
        }
        Ok(if env.dead { Ty::never() } else { whole })
    }

    fn divmod(&mut self, call: &Call, span: Span, env: &mut Env) -> Result<[Ty; 2]> {
        let receiver = self.eval(call.receiver.as_ref().expect("checked by the caller"), env)?;
        let Some(Arg::Positional(arg)) = call.args.first() else {
            return Err(self.error(span, "kernels know divmod with one argument").into());
        };
        let arg = self.eval(arg, env)?;
        let (mut q, mut r) = (Ty::never(), Ty::never());
        use crate::ir::lower::numbers::{Kind as Number, divmod_types};
        for a in receiver.atoms() {
            for b in arg.atoms() {
                if !matches!(a, Atom::Int | Atom::Float) {
                    return Err(self.error(span, "kernels know divmod of numbers only").into());
                }
                let (x, y) = divmod_types(Number::of(a), Number::of(b));
                q = self.join(&q, &x);
                r = self.join(&r, &y);
            }
        }
        env.dead |= q.is_never();
        Ok([q, r])
    }

    /// `sum += x` on a captured local.
    fn contribute(&mut self, node: &Node, env: &mut Env) -> Result<Ty> {
        let unit = self.here.unit.clone();
        let c = accumulate::contribution(&unit, node).expect("found to be one by the same function");
        if let Kind::If { cond, .. } = &node.kind
            && let Kind::Call(test) = &cond.kind
        {
            // types the tested side, for whoever asks
            for side in test.receiver.iter() {
                if !matches!(side.kind, Kind::Local(l) if l == c.local) {
                    self.eval(side, env)?;
                }
            }
        }
        let ty = self.eval(c.value, env)?;
        if env.dead {
            return Ok(Ty::never());
        }
        let old = self.an.accumulators.types.get(&c.local).cloned().unwrap_or_default();
        let new = self.join(&old, &ty);
        let bits = matches!(
            c.combine,
            crate::layout::schema::Combine::And
                | crate::layout::schema::Combine::Or
                | crate::layout::schema::Combine::Xor
        );
        let known = new.only(Prims::INT) || new.only(Prims::FLOAT) && !bits;
        if !known {
            let name = &unit.locals[c.local.index()].name;
            return Err(self
                .error(c.value.span, format!("{name} accumulates {new:?} here"))
                .because("contributions of elements are combined as Integers or as Floats, one of them throughout")
                .advise("write .to_f or .to_i where kinds mix, and keep nil out")
                .into());
        }
        self.an.accumulators.types.insert(c.local, new);
        Ok(Ty::nil())
    }

    // ---- calls ----

    /// A call on every kind of a receiver; `env` is dead if no kind returns.
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub(super) fn dispatch(
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
    pub(super) fn dispatch_with(
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
                // told when Ruby gets there: another kind of receiver may be the one that is there
                Err(error @ Error::Unsupported(_)) if several => {
                    refused.get_or_insert(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            if let Target::Writer(ivar) = &target {
                self.check_shared_write(atom, receiver.reach, ivar, span)?;
            }
            if target == Target::Builtin(Builtin::StructSet) && receiver.reach == Reach::Same {
                for member in self.members_of(atom, args, span)? {
                    self.check_shared_write(atom, receiver.reach, &member, span)?;
                }
            }
            let mut e = env.clone();
            let ty = match self.invoke(&target, (atom, receiver.reach), name, args, block, span, at, &mut e) {
                Ok(ty) => ty,
                Err(error @ Error::Unsupported(_)) if several && target.may_wait() => {
                    refused.get_or_insert(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
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
    pub(super) fn invoke(
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
        if let Some((block, args)) = self.an.operator_block(self.here.id, target, args, block, span) {
            return self.invoke(target, (atom, reach), name, &args, Some(&block), span, at, env);
        }
        if let Some(asked) = super::calls::asked(atom, name, args) {
            let receiver = Ty::of(atom, reach);
            let answer = if asked.swapped {
                self.dispatch(&args.positional[0], asked.name, &Args::of(vec![receiver]), true, span, at, env)?
            } else {
                self.dispatch(&receiver, asked.name, args, true, span, at, env)?
            };
            return Ok(if name == "!=" { super::calls::negate(&answer) } else { answer });
        }
        if let Target::Ruby(method) = target {
            let known = self.an.knows_form(*method, name, args, block);
            self.refused(known, span)?;
        }
        match (target, block) {
            (Target::Builtin(Builtin::MakeValue), _) => {
                let Atom::Module(class) = atom else { return Ok(Ty::never()) };
                if args.positional.len() != crate::world::values::parts(class).len() {
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
                            match self.dispatch_with(&Ty::prim(range), name, args, block, false, span, at, &mut e) {
                                Err(error @ Error::Unsupported(_)) if several => {
                                    self.an.lacking.insert(place, error.to_string());
                                    continue;
                                }
                                ty => ty?,
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
                let args = args.with_name(name);
                let target = Target::Ruby(*handler);
                self.invoke(&target, (atom, reach), "method_missing", &args, block, span, at, env)
            }
            (Target::Builtin(Builtin::RespondTo), _) if self.an.asks_missing(atom, args) => {
                let args = args.for_missing();
                let receiver = Ty::of(atom, reach);
                let answer = self.dispatch(&receiver, "respond_to_missing?", &args, true, span, at, env)?;
                Ok(super::calls::truth(&answer))
            }
            (Target::Builtin(Builtin::MethodMissing), _) => Ok(Ty::never()),
            (Target::Builtin(Builtin::Buffer), _) => {
                if args.positional.first().is_some_and(|length| !length.is_never() && !length.only(Prims::INT)) {
                    let what = "kernels know lengths and places of parts that are Integers only";
                    return Err(self.error(span, what).advise("write .to_i where a Float or nil may be").into());
                }
                self.made_array(span, &Ty::never())
            }
            (
                Target::Builtin(Builtin::ArrayFirst | Builtin::ArrayLast | Builtin::ArrayGet | Builtin::RangeFirst),
                _,
            ) if let Some(method) = longer_form(atom, target, name, args) => {
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
            (Target::Proc(id), None) => self.call_proc(*id, args, !args.void, span, env),
            (Target::Builtin(Builtin::BlockGiven), _) => {
                Ok(Ty::prim(if self.here.block.is_some() { Prims::TRUE } else { Prims::FALSE }))
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
                self.dispatch_with(&receiver, called, &rest, block, !public, span, at, env)
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

    pub(super) fn args(&mut self, args: &[Arg], env: &mut Env) -> Result<Args> {
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

    fn call(&mut self, node: &Node, call: &Call, env: &mut Env) -> Result<Ty> {
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
        let on_self = call.receiver.as_ref().is_none_or(|r| matches!(r.kind, Kind::SelfRef));
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
        let held = self.sole_holder(call, env);
        self.under_way.extend(held);
        let asking = asking_next(call).filter(|_| self.is_rubys(&receiver, &call.name));
        let ty = self.call_on(node, asking.as_ref().unwrap_or(call), &receiver, on_self, env);
        if held.is_some() {
            self.under_way.pop();
        }
        let ty = ty?;
        let nil = if skipped.dead { Ty::never() } else { Ty::nil() };
        *env = self.join_env(env, &skipped);
        Ok(self.join(&ty, &nil))
    }

    /// `self` of a call without a receiver. `rand`, `loop` and the like are Kernel's on whatever `self` is, even one
    /// that kernels cannot hold.
    pub(super) fn self_type_for(&mut self, call: &Call) -> Result<Ty> {
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
        if call.receiver.is_none() {
            // `raise "…"`: what cannot be called is told before what it is called with
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
        // `break` in the literal block comes here
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

    /// Arguments that each round of an iterator yields, and what the call gives in the end (never: it does not end).
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
        let wrong_count = !builtin.arity().contains(&args.positional.len());
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
                if !known || float != (atom == Atom::FloatRange) && (float || atom != Atom::FloatRange) {
                    return Err(self
                        .error(
                            span,
                            "kernels know step of an Integer Range with an Integer, of a Float Range with a number",
                        )
                        .into());
                }
                (vec![if atom == Atom::FloatRange { Ty::float() } else { Ty::int() }], itself)
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

    /// `[a, b].max` and the like of what is one kind of number, without the array. None: some other call.
    fn literal_array(&mut self, node: &Node, call: &Call, items: &[Node], env: &mut Env) -> Result<Option<Ty>> {
        let known = matches!(&*call.name, "min" | "max" | "sum") && call.args.is_empty()
            || &*call.name == "include?" && call.args.len() == 1;
        if !known || call.block.is_some() || items.is_empty() || items.iter().any(|i| matches!(i.kind, Kind::Splat(_)))
        {
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
            // all are asked: one that raises or writes would show it
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
        if !plain {
            return Ok(None);
        }
        Ok(Some(out))
    }

    fn super_call(
        &mut self,
        node: &Node,
        args: Option<&[Arg]>,
        block: Option<&Arc<Block>>,
        env: &mut Env,
    ) -> Result<Ty> {
        let Some(method) = self.an.spec(self.here.id).key.method else {
            return Err(self.error(node.span, "kernels do not know super in a section's block").into());
        };
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
            // the method's own block goes along
            None => self.here.block.clone(),
        };
        let (atom, reach) = (self.here.self_ty.atoms()[0], self.here.self_ty.reach);
        let at = self.assumption(node.span);
        let answer = self.an.super_target(method, atom);
        let (target, name) = self.refused(answer, node.span)?;
        let ty = self.invoke(&target, (atom, reach), &name, &args, block.as_ref(), node.span, &at, env)?;
        env.dead |= ty.is_never();
        Ok(ty)
    }

    /// The method's own parameters, as they are now.
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

/// The arguments of an index, with those that the source has written out; `types` may go on with the value assigned.
fn indexed(args: &[Node], types: Vec<Ty>) -> Args {
    let mut out = Args::of(types);
    for (slot, arg) in out.literals.iter_mut().zip(args) {
        *slot = literal(arg);
    }
    out
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

/// The prelude's method for `first(n)`, `last(n)`, `a[range]` and `a[i, n]`.
pub fn longer_form(atom: Atom, target: &Target, name: &str, args: &Args) -> Option<crate::id::MethodId> {
    if atom == Atom::IntRange {
        return match (target, args.positional.as_slice()) {
            (Target::Builtin(Builtin::RangeFirst), [_]) if name == "first" => {
                crate::prelude::find("Range", "Range", name)
            }
            _ => None,
        };
    }
    let Atom::Array(_) = atom else { return None };
    let ranges = |ty: &Ty| {
        let range = Atom::Object(crate::world::well_known::RANGE);
        ty.atoms().into_iter().any(|atom| matches!(atom, Atom::IntRange | Atom::FloatRange) || atom == range)
    };
    match (target, args.positional.as_slice()) {
        (Target::Builtin(Builtin::ArrayFirst | Builtin::ArrayLast), [_]) => {
            crate::prelude::find("Array", "Array", name)
        }
        (Target::Builtin(Builtin::ArrayGet), [range]) if name == "[]" && ranges(range) => {
            crate::prelude::find("Array", "Array", "slice")
        }
        (Target::Builtin(Builtin::ArrayGet), [_, _]) if name == "[]" => crate::prelude::find("Array", "Array", "slice"),
        _ => None,
    }
}

/// `[a, b].min` in the form in which Ruby compiles it: each next element is asked, and not the least so far.
pub fn asking_next(call: &Call) -> Option<Call> {
    let Some(Node { kind: Kind::Array(items), .. }) = &call.receiver else { return None };
    let name = match &*call.name {
        "min" => "%__min",
        "max" => "%__max",
        _ => return None,
    };
    let plain = call.args.is_empty() && call.block.is_none() && call.block_arg.is_none() && !call.safe;
    // of constants alone it is an array that is there when the program begins
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
    })
}

/// How many parts a value is taken apart into.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// From the front.
    pub before: usize,
    /// A splat stands between.
    pub rest: bool,
    /// From the back, where there is a splat.
    pub after: usize,
}

impl Shape {
    /// How a block takes an array apart that it is given alone.
    pub fn of_block(params: &Params) -> Self {
        Shape {
            before: params.required.len() + params.optional.len(),
            rest: params.rest.is_some(),
            after: params.post.len(),
        }
    }
    /// The parts of a list whose length is known.
    pub fn pick<T: Clone>(self, mut all: Vec<T>, nil: T) -> Vec<T> {
        let wanted = self.before + self.after;
        all.resize(all.len().max(wanted), nil);
        if self.rest {
            all.drain(self.before..all.len() - self.after);
        } else {
            all.truncate(wanted);
        }
        all
    }
}

/// What an operator assignment writes back to.
enum Written {
    Local(LocalId),
    Ivar(Ty, Name, Span),
    Call { receiver: Ty, name: String, args: Args, on_self: bool, span: Span },
}

impl Frame {
    pub fn new(kind: FrameKind, len: usize) -> Self {
        Frame { next: None, next_ty: Ty::never(), breaks: None, break_ty: Ty::never(), kind, len, brk: None }
    }
}
