//! Interprets one body over types: environments flow forward, join at merges, and go round loops to a fixpoint.
//!
//! Here: environments, expressions, and loops. Assignments ([`assign`]), calls ([`call`]), conditions that narrow types
//! ([`narrow`]) and exceptions ([`rescue`]) are modules of their own. Not here: the look-up of methods
//! ([`super::calls`]), and code. Invariant: the type of a node is the join of all its visits, and lowering reads that
//! type.

mod assign;
mod call;
mod narrow;
mod rescue;

pub use assign::{Shape, takes_apart};
pub use call::{asking_next, longer_form, super_locals};
pub use narrow::assigned;
use rescue::Exit;
pub use rescue::{Raise, Raised, catch_tag, is_text, thrown};

use super::append::{STORE_LIST, is_new_list, storing};
use super::blocks::{Activation, ProcKind};
use super::calls::{Args, Literal, Refusal, receiver_of};
use super::locals::Locals;
use super::made::{STORE, hash_maker};
use super::{Analysis, SpecId, hash_updates};
use crate::diagnostic::{Diagnostic, Span};
use crate::error::{Error, Result};
use crate::id::ProcId;
use crate::syntax::ast::{self, ConstBase, Kind, LocalId, Name, Node, Origin, Unit};
use crate::types::{Atom, Prims, Ty};
use crate::world::{Assumption, MethodFact, Opaque, Receiver, Root, well_known};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The value of a local on the current path.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct State {
    pub ty: Ty,
    /// Whether some path to here did not assign it.
    pub unset: bool,
    /// Whether it holds an array that nothing else holds ([`super::append`]).
    pub sole: bool,
}

impl State {
    pub fn unset() -> Self {
        State { ty: Ty::never(), unset: true, sole: false }
    }
}

/// All locals on the current path, of the current body and of its callers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Env {
    /// Control does not reach this point.
    pub dead: bool,
    pub locals: Locals,
}

impl Env {
    pub fn dead(&self) -> Env {
        Env { dead: true, locals: self.locals.clone() }
    }
}

/// A loop, a block or an inlined method that control may leave early.
pub(super) struct Frame {
    pub next: Option<Env>,
    pub next_ty: Ty,
    pub breaks: Option<Env>,
    pub break_ty: Ty,
    pub kind: FrameKind,
    /// The number of variables in the environment there.
    pub len: usize,
    /// For a `Yield`: the frame of the call that takes the block. None: a `proc`, which no call is waiting for.
    pub brk: Option<usize>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum FrameKind {
    /// `while`, `for`: `next` and `break` apply to it.
    Loop,
    /// A call with a literal block, which `break` leaves.
    Call,
    /// One run of a literal block.
    Yield,
    /// One run of a lambda, which `next`, `break` and `return` end.
    Lambda,
    /// An inlined method, which `return` ends.
    Return,
    Section,
}

/// The frame of the section's block, which contains all others.
pub(super) const SECTION: usize = 0;

pub(super) struct Walker<'a, 'w> {
    pub(super) an: &'a mut Analysis<'w>,
    pub(super) here: Activation,
    /// Callers of the current body, which is inlined. While a block runs: also the bodies to which the block was
    /// passed.
    pub(super) others: Vec<Activation>,
    pub(super) frames: Vec<Frame>,
    /// The frame that `break` leaves in a literal block: that of the call that takes the block.
    pub(super) block_frames: BTreeMap<ProcId, usize>,
    rescue: rescue::Pending,
    /// Variables that the code after the current condition assigns.
    reassigned: Vec<LocalId>,
    /// Variables, by their places in the environment, whose arrays are receivers of calls that are still running.
    pub(super) under_way: Vec<usize>,
    /// Variables, by their places in the environment, whose arrays will grow once the arguments are evaluated.
    pub(super) holders: Vec<usize>,
    /// Blocks and lambdas that are running.
    pub(super) running: Vec<ProcId>,
}

/// The assumption for speculation at a position of a unit.
pub fn assumption(unit: &Unit, span: Span) -> Assumption {
    let (line, column) = unit.source.line_column(span.start);
    // two speculating calls may begin at one position (`a[0][1]`), but their ends differ
    Assumption {
        path: unit.source.path.clone(),
        line,
        column: column << 16 | (span.end - span.start) as usize & 0xffff,
    }
}

/// The literal that a node is, for methods that must know it.
pub fn literal(node: &Node) -> Option<Literal> {
    match &node.kind {
        Kind::Int(n) => Some(Literal::Int(*n)),
        // a primitive's name, which no call sends
        Kind::Sym(name) if ast::primitive(name).is_none() => Some(Literal::Sym(name.clone())),
        Kind::Str(bytes) if bytes.is_ascii() => std::str::from_utf8(bytes).ok().map(|text| Literal::Str(text.into())),
        Kind::Range { to: Some(to), .. } if to.span == node.span => Some(Literal::From),
        Kind::Range { from: Some(from), .. } if from.span == node.span => Some(Literal::UpTo),
        _ => None,
    }
}

/// Interprets a specialisation once with the current types. Runs its callers again if its result grew.
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
        rest: None,
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
        // Ruby's C code calls it on every value that it converts
        if !self.an.is_unaltered_of(well_known::OBJECT, "respond_to?") {
            return Err(self
                .error(unit.body.span, "kernels do not ask a respond_to? that is redefined for all objects")
                .because("Ruby asks it wherever it converts a value")
                .advise("redefine it in your own classes only")
                .into());
        }
        let mut env = self.fresh_env();
        for i in 0..unit.locals.len() {
            let local = LocalId::new(i);
            if self.an.hash_updates.hashes.contains_key(&local) {
                self.chain_of_pairs(local, &mut env);
                continue;
            }
            let acc = &self.an.accumulators;
            if unit.locals[i].origin != Origin::Captured
                || acc.reduced.contains_key(&local)
                || acc.last.contains_key(&local)
            {
                continue;
            }
            // all captures are read before any branch: a type that was narrowed on one path must not apply to all
            match self.an.root(self.here.id, &Root::Capture(unit.locals[i].name.clone())) {
                Ok(ty) => {
                    env.locals[self.here.base + i] = State { ty: ty.clone(), unset: false, sole: false };
                    self.here.locals[i] = self.join(&self.here.locals[i].clone(), &ty);
                }
                Err(opaque) => self.here.opaque[i] = Some(opaque),
            }
        }
        let wants_element = unit.params.take_any();
        let element = match self.an.base {
            super::Base::Range => Ty::int(),
            super::Base::Array if !wants_element => Ty::never(),
            super::Base::Array => match self.an.root(self.here.id, &Root::Element) {
                Ok(ty) => ty,
                Err(opaque) => return Err(Refusal::from(opaque).at(&unit.source, unit.source.params_span())),
            },
        };
        if wants_element && element.is_never() {
            // the array is empty, so the block never runs
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
        self.refused(super::blocks::can_be_kept(&ret), unit.body.span)?;
        self.refused(super::blocks::can_be_kept(&frame.break_ty), unit.body.span)?;
        let acc = &self.an.accumulators;
        let left = acc.last.iter().filter_map(|(local, span)| Some((acc.types.get(local)?, *span)));
        for (ty, span) in left {
            self.refused(super::blocks::can_be_kept(ty), span)?;
        }
        let ret = self.an.facts.boxed(&ret);
        self.an.escapes(&ret);
        let broke = self.an.facts.boxed(&frame.break_ty);
        self.an.escapes(&broke);
        self.here.ret = ret;
        Ok(())
    }

    /// What a captured Hash is before an element's first update in a tick: nil, or the chain of earlier ticks. Or it is
    /// the number of pairs for tables.
    fn chain_of_pairs(&mut self, local: LocalId, env: &mut Env) {
        let i = local.index();
        let updates = &self.an.hash_updates;
        let ty = match (updates.tabled == Some(local), updates.ticks) {
            (true, _) => Ty::int(),
            (false, false) => Ty::nil(),
            (false, true) => {
                let earlier = self.an.accumulators.types.get(&local).cloned().unwrap_or_default();
                self.join(&earlier, &Ty::nil())
            }
        };
        env.locals[self.here.base + i] = State { ty: ty.clone(), unset: false, sole: false };
        self.here.locals[i] = self.join(&self.here.locals[i].clone(), &ty);
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

    /// The same. `sole`: the local becomes the only holder of an array.
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
            if new != old && self.an.hash_updates.hashes.contains_key(&local) {
                // the next tick begins with it
                self.an.enqueue(self.here.id);
            }
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

    /// The position for an error. Within the prelude: that of the user's call.
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

    pub(super) fn opaque<T>(&self, answer: std::result::Result<T, Opaque>, span: Span) -> Result<T> {
        self.refused(answer.map_err(Refusal::from), span)
    }

    // ---- expressions ----

    /// Types a node on the path `env`. `env` is dead afterwards if the node does not return.
    pub(super) fn eval(&mut self, node: &Node, env: &mut Env) -> Result<Ty> {
        if env.dead {
            return Ok(Ty::never());
        }
        let i = node.id.index();
        self.an.specs[self.here.id.index()].visited[i] = true;
        let mut ty = self.eval_kind(node, env)?;
        if !ty.is_never() && self.an.spec(self.here.id).void.contains(&node.id) {
            // the value is not used, so no register needs to hold it
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
        if self.here.section
            && let Some(local) = self.an.hash_updates.nodes.get(&node.id)
            && !self.an.spec(self.here.id).void.contains(&node.id)
        {
            return Err(hash_updates::value_is_used(&self.here.unit, *local, node.span));
        }
        Ok(match &node.kind {
            Kind::Nil => Ty::nil(),
            Kind::True => Ty::prim(Prims::TRUE),
            Kind::False => Ty::prim(Prims::FALSE),
            Kind::Int(_) => Ty::int(),
            // raises, except where a mask or a shift drops the bits beyond Integers of kernels
            Kind::BigInt(digits) if digits.parse::<u64>().is_ok() => Ty::int(),
            Kind::Float(_) => Ty::float(),
            Kind::Sym(name) => {
                self.an.world.names_symbol(name);
                Ty::sym()
            }
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
                // if `a` is nil, `a&.x = v` is nil and `v` is not evaluated
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
                    _ => {
                        let void = self.an.spec(self.here.id).void.contains(&node.id);
                        match (target, owner) {
                            (ast::Target::Index { span, .. }, Some((receiver, mut types)))
                                if storing(&receiver, value, void) == STORE_LIST && types.len() == 1 =>
                            {
                                types.push(ty.clone());
                                let at = self.assumption(*span);
                                self.dispatch(&receiver, STORE_LIST, &Args::of(types), true, *span, &at, env)?;
                            }
                            (_, owner) => self.assign_to(target, owner, &ty, env)?,
                        }
                    }
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
                let shape = Shape::of_list(before.len(), rest.is_some(), after.len());
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
                    let own = !self.an.reaches_rubys(self.here.id, atom, "!");
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
            Kind::Regexp(pattern) => {
                let known = self.an.regexp(pattern);
                self.refused(known, node.span)?
            }
            Kind::DStr(text) => self.eval(text, env)?,
            Kind::Array(items) => self.array_literal(node, items, env)?,
            Kind::Hash(pairs) => {
                let of = Ty::module(crate::world::well_known::HASH);
                let made = self.inline(hash_maker(), of, &Args::default(), None, node.span, env)?;
                for (key, value) in pairs {
                    let pair = vec![self.eval(key, env)?, self.eval(value, env)?];
                    let at = self.assumption(key.span);
                    let store = if is_new_list(value, false) { STORE_LIST } else { STORE };
                    self.dispatch(&made, store, &Args::of(pair), true, key.span, &at, env)?;
                }
                if env.dead { Ty::never() } else { made }
            }
            // the test of a `when *x`: its value is the answer
            Kind::Splat(test) if matches!(test.kind, Kind::Seq(_)) => self.eval(test, env)?,
            Kind::Splat(_) => {
                return Err(self
                    .error(node.span, "kernels do not know splats")
                    .because("how many arguments a call has is settled when compiling, and an array's length is not")
                    .advise("write the arguments out, f(list[0], list[1]), or let the method take the array itself")
                    .into());
            }
            Kind::Spread { list, size, calls } => self.spread_call(*list, size, calls, env)?,
            Kind::Yield(args) => self.yielded(node, args, env)?,
            Kind::Lambda(block) => Ty::proc(self.an.proc(self.here.id, block.span, || ProcKind::Lambda(block.clone()))),
            Kind::Defined(asked) => self.defined(asked, env)?,
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

    /// Takes a jump, through the `ensure`s on its way; `env` is dead then.
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

    /// Joins the current path into those that leave a frame.
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

    pub(super) fn read_local(&mut self, local: LocalId, env: &mut Env, span: Span) -> Result<Ty> {
        let i = local.index();
        if let Some(opaque) = self.here.opaque[i].clone() {
            return self.opaque(Err(opaque), span);
        }
        let state = env.locals[self.here.base + i].clone();
        // the reader of the value may keep it
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
        if let Kind::Const(path) = &node.kind
            && path.name.starts_with("@@")
        {
            let variable = ast::variable_of(&path.name).unwrap_or(&path.name);
            if self.an.sets_class_variable(variable) {
                return Err(self
                    .error(node.span, format!("{variable} is used here, and the section's block sets it"))
                    .because("elements run at the same time, and what the block has set is known in the block alone")
                    .advise("give the value to the method as an argument")
                    .into());
            }
            if ast::variable_of(&path.name).is_some() {
                // the class variables that were read before must be read as attributes, too
                self.an.again |= !std::mem::replace(&mut self.an.assigns_class_variables, true);
            } else if self.an.assigns_class_variables
                && let Some(id) = self.an.world.constant(self.here.scope, None, &ast::cell(&path.name))
            {
                let answer = self.an.root(self.here.id, &Root::Const(id));
                let object = self.opaque(answer, node.span)?;
                return self.read_ivar(&object, &path.name[1..].into(), node.span);
            }
        }
        match self.constant_root(node, env)? {
            Some(root) => {
                let answer = self.an.root(self.here.id, &root);
                self.opaque(answer, node.span)
            }
            None => {
                if let (Kind::Const(path), false) = (&node.kind, env.dead) {
                    if let Some(variable) = ast::variable_of(&path.name) {
                        return Err(self
                            .error(node.span, format!("kernels do not assign {variable} here"))
                            .because("it has no value yet, or its class is frozen")
                            .advise("assign it before the section")
                            .into());
                    }
                    self.no_const_missing(node.span, path)?;
                }
                env.dead = true;
                Ok(Ty::never())
            }
        }
    }

    fn constant_root(&mut self, node: &Node, env: &mut Env) -> Result<Option<Root>> {
        let Kind::Const(path) = &node.kind else { return Ok(None) };
        if path.name.starts_with("@@") && self.an.world.class_variables(self.here.scope).is_none() {
            return Err(self
                .error(node.span, "kernels know class variables in methods of classes and modules only")
                .advise("read it in a method of its class, which the block calls")
                .into());
        }
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

    /// Whether something is defined. For methods, `defined?` becomes a call instead.
    fn defined(&mut self, asked: &Node, env: &mut Env) -> Result<Ty> {
        let answer = match &asked.kind {
            Kind::Ivar(ivar) => {
                let ty = match self.here.section.then(|| self.an.live_ivar(ivar)).flatten() {
                    Some(ty) => ty,
                    None => {
                        let receiver = self.self_type(asked.span)?;
                        self.read_ivar(&receiver, ivar, asked.span)?
                    }
                };
                if ty.may_be(Prims::NIL) {
                    return Err(self
                        .error(asked.span, format!("kernels do not know defined?({ivar}) where {ivar} may be nil"))
                        .because("a variable that was never assigned is nil to them")
                        .advise(format!("write {ivar}.nil?"))
                        .into());
                }
                !ty.is_never()
            }
            Kind::Const(path) => {
                if let ConstBase::Of(base) = &path.base
                    && !self.eval(base, env)?.atoms().iter().any(|atom| matches!(atom, Atom::Module(_)))
                {
                    return Ok(Ty::prim(Prims::FALSE));
                }
                let root = self.constant_root(asked, env)?;
                if env.dead {
                    return Ok(Ty::never());
                }
                root.is_some()
            }
            Kind::Yield(_) => self.own_block(asked.span, env)?.is_some(),
            _ => {
                let Some(method) = self.an.spec(self.here.id).key.method else {
                    return Err(self.error(asked.span, "kernels do not know super in a section's block").into());
                };
                let atom = self.here.self_ty.atoms()[0];
                !matches!(self.an.world.super_method(receiver_of(atom), method), MethodFact::Missing { .. })
            }
        };
        Ok(Ty::prim(if answer { Prims::TRUE } else { Prims::FALSE }))
    }

    /// Refuses a constant that is not defined if the program has a `const_missing` that Ruby would call.
    fn no_const_missing(&mut self, span: Span, path: &ast::ConstPath) -> Result<()> {
        let module = match &path.base {
            ConstBase::Lexical => self.an.world.scope_module(self.here.scope),
            ConstBase::Top => well_known::OBJECT,
            ConstBase::Of(base) => match self.here.types[base.id.index()].atoms()[..] {
                [Atom::Module(module)] => module,
                _ => return Ok(()),
            },
        };
        let asked = self.an.method(Receiver::Module(module), "const_missing");
        if !matches!(asked, MethodFact::Ruby { .. } | MethodFact::Foreign { .. }) {
            return Ok(());
        }
        let name = &path.name;
        Err(self
            .error(span, format!("the constant {name} is not defined, and kernels do not call const_missing"))
            .advise(format!("define {name}, or have it loaded, before the call"))
            .into())
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
                let ty = self.eval(test, env)?;
                if env.dead {
                    break;
                }
                let answer = match &value {
                    Some(_) if matches!(test.kind, Kind::Splat(_)) => ty.clone(),
                    // the subject was narrowed after it was read, so the environment has its current type
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

    /// `test === subject`; the method may be private.
    fn case_eq(&mut self, test: &Node, test_ty: &Ty, subject: &Ty, env: &mut Env) -> Result<Ty> {
        let at = self.assumption(test.span);
        self.dispatch(test_ty, "===", &Args::of(vec![subject.clone()]), true, test.span, &at, env)
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

    /// Runs `body` until the environment at its head no longer changes; `once` prepares one round. Afterwards `env` is
    /// that after any number of rounds, or (`endless`) that of the `break`s alone. Returns the type of `break`.
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
            if !self.an.reaches_rubys(self.here.id, atom, "each") && !self.an.is_unaltered(atom, "each") {
                let class = self.an.describe(atom);
                return Err(self
                    .error(node.span, format!("kernels do not know for over {class} whose each is redefined"))
                    .advise("write each { … }")
                    .into());
            }
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
}

impl Frame {
    pub fn new(kind: FrameKind, len: usize) -> Self {
        Frame { next: None, next_ty: Ty::never(), breaks: None, break_ty: Ty::never(), kind, len, brk: None }
    }
}
