//! Procs and Method objects that a program takes from outside: values of captured variables and constants.
//!
//! Here: the type of such a root, and the calls of it. A captured Proc is a method that is always inlined. Its `self`
//! and the variables from around it are roots of their own ([`Root::SelfOf`], [`Root::Within`]), which every call of
//! the section reads anew. Not here: blocks that the program itself contains ([`super::blocks`]).

use super::accumulate;
use super::blocks::{MAX_COMPOSED, ProcInfo, ProcKind};
use super::calls::{Answer, Args, Refusal, Target};
use super::walk::{Env, FrameKind, State, Walker};
use super::{Analysis, SpecId};
use crate::diagnostic::Span;
use crate::error::Result;
use crate::id::{MethodId, ProcId};
use crate::syntax::ast::{LocalId, Name, NodeId, Origin};
use crate::types::{Atom, Reach, Ty};
use crate::world::{Assumption, Derivation, Lenient, Opaque, Outside, Root, well_known};

/// The most runs of one captured Proc's code that may be inlined into one another.
const MAX_NESTED: usize = 4;

/// A captured lambda that neighbouring elements call with the same positions ([`crate::ir::stages`]).
pub struct Producer {
    pub method: MethodId,
    pub receiver: (Atom, Reach),
    pub args: Args,
}

impl Analysis<'_> {
    /// The type of a root that is a Proc or a Method object with source.
    pub(super) fn outside(&mut self, root: &Root) -> Option<Ty> {
        if let Some(id) = self.outside_index.get(root) {
            return Some(Ty::proc(*id));
        }
        if let Root::Held(number) = root {
            let id = ProcId::held(*number);
            return self.meet_held_proc(id).ok().map(|()| Ty::proc(id));
        }
        let kind = if self.world.live(root) {
            ProcKind::Live(root.clone())
        } else if let Some(name) = self.world.symbol_proc(root) {
            ProcKind::Symbol(name)
        } else {
            let Some(code) = self.world.outside(root) else { return self.derived_from(root) };
            if let Some(same) = &code.same_as {
                let ty = self.outside(same)?;
                self.outside_index.extend(ty.procs.first().map(|id| (root.clone(), *id)));
                return Some(ty);
            }
            ProcKind::Outside(root.clone(), code)
        };
        Some(Ty::proc(self.add_outside(root, ProcInfo::new(Self::BLOCK, kind))))
    }

    fn add_outside(&mut self, root: &Root, info: ProcInfo) -> ProcId {
        let id = ProcId::new(self.procs.len());
        self.procs.push(info);
        self.outside_index.insert(root.clone(), id);
        id
    }

    /// The type of a root that is a Proc or Method object which Ruby's own code has made.
    fn derived_from(&mut self, root: &Root) -> Option<Ty> {
        if root.enclosing().filter(|outer| matches!(outer, Root::Part(..))).count() >= MAX_COMPOSED {
            return None;
        }
        let derivation = self.world.derived(root)?;
        let part = |at: usize| Root::Part(Box::new(root.clone()), at);
        let code = |an: &mut Self, at: usize| match *an.outside(&part(at))?.procs {
            [id] => Some(id),
            _ => None,
        };
        let (kind, roots) = match derivation {
            Derivation::Converted => {
                let method = code(self, 0)?;
                let id = self.converted(method);
                self.outside_index.insert(root.clone(), id);
                return Some(Ty::proc(id));
            }
            Derivation::Composed { lambda } => {
                let (first, second) = (code(self, 0)?, code(self, 1)?);
                if self.parts(first) + self.parts(second) > MAX_COMPOSED {
                    return None;
                }
                (ProcKind::Composed { first, second, lambda }, Vec::new())
            }
            Derivation::Curried { given, needs, lambda } => {
                let kind = ProcKind::Curried { of: code(self, 0)?, needs, lambda };
                (kind, (1..=given).map(part).collect())
            }
            Derivation::Method(name) => (ProcKind::Bound(name), vec![Root::SelfOf(Box::new(root.clone()))]),
        };
        let info = ProcInfo { roots, ..ProcInfo::new(Self::BLOCK, kind) };
        Some(Ty::proc(self.add_outside(root, info)))
    }

    /// The type of a value that an array is to hold: a captured Proc becomes one that arrays hold, with a number.
    pub fn as_element(&mut self, ty: Ty) -> Ty {
        let [id] = *ty.procs else { return ty };
        let ProcKind::Outside(root, _) = &self.proc_info(id).kind else { return ty };
        if ty.atoms().len() != 1 || id.held_number().is_some() {
            return ty;
        }
        let root = root.clone();
        let number = match self.numbers.get(&root) {
            Some(number) => *number,
            None => self.world.number_of_proc(&root),
        };
        self.numbers.insert(root, number);
        let held = number.map(ProcId::held).filter(|held| self.meet_held_proc(*held).is_ok());
        held.map_or(ty, Ty::proc)
    }

    /// Asks for the code of a Proc that objects or arrays hold, when the analysis first meets it.
    ///
    /// # Errors
    /// If its source is not available.
    pub(super) fn meet_held_proc(&mut self, id: ProcId) -> std::result::Result<(), Opaque> {
        let Some(number) = id.held_number() else { return Ok(()) };
        if self.held_procs.contains_key(&id) {
            return Ok(());
        }
        let root = Root::Held(number);
        let code = self.world.outside(&root).ok_or_else(|| Opaque {
            what: "a Proc whose source cannot be read".into(),
            place: "an object or array".into(),
        })?;
        let kind = ProcKind::Outside(root.clone(), code);
        self.held_procs.insert(id, ProcInfo::new(Self::BLOCK, kind));
        self.outside_index.insert(root, id);
        Ok(())
    }

    /// Whether a body contains lambdas or blocks that the analysis has met.
    pub(super) fn writes_procs(&self, home: SpecId) -> bool {
        self.procs.iter().any(|info| info.home == home && matches!(info.kind, ProcKind::Lambda(_) | ProcKind::Block(_)))
    }

    /// The Proc that calls `first`, then `second` with the result. `receiver`: the receiver of `>>` or `<<`.
    pub fn composed(&mut self, receiver: ProcId, first: ProcId, second: ProcId) -> ProcId {
        if let Some(id) = self.composed_index.get(&(first, second, receiver)) {
            return *id;
        }
        // the composed Proc takes its arguments as the first one does
        let lambda = self.proc_info(first).kind.is_lambda();
        let id = ProcId::new(self.procs.len());
        let kind = ProcKind::Composed { first, second, lambda };
        self.procs.push(ProcInfo::new(Self::BLOCK, kind));
        self.composed_index.insert((first, second, receiver), id);
        id
    }

    /// The number of Procs of which a Proc is composed.
    pub(super) fn parts(&self, id: ProcId) -> usize {
        match self.proc_info(id).kind {
            ProcKind::Composed { first, second, .. } => self.parts(first) + self.parts(second),
            _ => 1,
        }
    }

    /// Facts about a block, lambda or Method object.
    pub fn proc_info(&self, id: ProcId) -> &ProcInfo {
        match (id.held_number(), id.regexp_number()) {
            (Some(_), _) => self.held_procs.get(&id).expect("met when its place was read"),
            (_, Some(number)) => &self.regexps[number].1,
            _ => &self.procs[id.index()],
        }
    }

    pub(super) fn proc_info_mut(&mut self, id: ProcId) -> &mut ProcInfo {
        match (id.held_number(), id.regexp_number()) {
            (Some(_), _) => self.held_procs.get_mut(&id).expect("met when its place was read"),
            (_, Some(number)) => &mut self.regexps[number].1,
            _ => &mut self.procs[id.index()],
        }
    }

    /// The type of an ivar of the section's `self`, if that is a live object.
    pub fn live_ivar(&mut self, ivar: &Name) -> Option<Ty> {
        let root = Root::Ivar(Box::new(Root::SelfObject), ivar.clone());
        match self.outside_index.get(&root) {
            Some(id) => Some(Ty::proc(*id)),
            None if self.world.live(&root) => self.outside(&root),
            None => None,
        }
    }

    /// The method of a live object: the lambda that stands for it.
    pub(super) fn live_method(&mut self, id: ProcId, name: &str) -> Option<Answer<Target>> {
        let ProcKind::Live(root) = self.proc_info(id).kind.clone() else { return None };
        let member = Root::Member(Box::new(root), name.into());
        let found = self.outside(&member).and_then(|ty| ty.procs.first().copied());
        Some(found.map(Target::Proc).ok_or_else(|| {
            Refusal::new(format!("kernels do not know Ikra::MDArray#{name}"))
                .because("in a block an MDArray, of up to six dimensions, is read and written element by element")
                .advise("call it outside of the block")
        }))
    }

    /// The method of live arrays that adds to an element in one step, such as `[]+=`, if they have it. With it, no
    /// addition of another element is lost.
    pub fn live_accumulation(&mut self, spec: SpecId, node: NodeId, receiver: &Ty, op: &str) -> Option<String> {
        if receiver.is_never() || !self.may_accumulate(spec, node, op) {
            return None;
        }
        let name = format!("[]{op}=");
        let has = |an: &mut Self, atom| match atom {
            Atom::Proc(id) => matches!(an.live_method(id, &name), Some(Ok(_))),
            _ => false,
        };
        receiver.atoms().into_iter().all(|atom| has(self, atom)).then_some(name)
    }

    /// The type of `self` of a captured Proc, or of the receiver of a Method object. If kernels cannot hold it, it
    /// still has Kernel's methods.
    pub fn outside_self(&mut self, from: SpecId, root: &Root) -> Ty {
        let ty = self.root(from, &Root::SelfOf(Box::new(root.clone())));
        ty.unwrap_or_else(|_| Ty::module(well_known::KERNEL))
    }

    /// The root for a local of a captured Proc's code, if the local is from around the Proc.
    pub fn around(&self, spec: SpecId, local: LocalId) -> Option<Root> {
        let spec = self.spec(spec);
        let around = spec.around.clone()?;
        let local = &spec.unit.locals[local.index()];
        (local.origin == Origin::Captured).then(|| Root::Within(Box::new(around), local.name.clone()))
    }

    /// The function that `Ikra.__staged` calls: a captured lambda, which takes a position.
    pub fn staged(&self, args: &Args) -> Option<Producer> {
        let [id] = args.positional.first()?.procs[..] else { return None };
        let ProcKind::Outside(_, code) = &self.proc_info(id).kind else { return None };
        // it is a lambda of Ikra's own, which does not use its `self`
        let receiver = receiver_of(&Ty::module(well_known::KERNEL));
        Some(Producer { method: code.method, receiver, args: Args::of(vec![Ty::int()]) })
    }

    /// The type of its result.
    ///
    /// # Errors
    /// As [`Analysis::reached`].
    pub fn staged_type(&mut self, from: SpecId, args: &Args, at: &Assumption) -> Answer<Ty> {
        let Some(Producer { method, receiver, args, .. }) = self.staged(args) else { return Ok(Ty::never()) };
        self.reached(from, &Target::Ruby(method), receiver, "call", &args, at)
    }

    /// Whether a captured Proc's code is already running where it is called. Then the call is not inlined, but calls a
    /// function.
    ///
    /// `active`: the methods of the current body and of its callers.
    pub fn calls_itself(&self, method: MethodId, active: &[SpecId]) -> bool {
        active.iter().any(|id| self.spec(*id).key.method == Some(method))
    }

    fn is_of_one_code(&mut self, a: MethodId, b: MethodId) -> bool {
        let (Ok(a), Ok(b)) = (self.source(a), self.source(b)) else { return false };
        a.around.is_some()
            && b.around.is_some()
            && a.unit.source.path == b.unit.source.path
            && a.unit.source.slice == b.unit.source.slice
    }
}

impl Walker<'_, '_> {
    /// Interprets a call of a Proc or Method object from outside.
    pub(super) fn call_outside(
        &mut self,
        (root, code): (&Root, &Outside),
        args: &Args,
        span: Span,
        env: &mut Env,
    ) -> Result<Ty> {
        let given = args.positional.len();
        if let Some(Lenient { spreads, .. }) = code.lenient {
            let may_be_list = |ty: &Ty| ty.atoms().iter().any(|atom| matches!(atom, Atom::Array(_) | Atom::Object(_)));
            if spreads && given == 1 && args.positional.iter().any(may_be_list) {
                return Err(self
                    .error(span, "this captured proc would take the array apart that it is called with")
                    .because("how many parameters get an element is known only when it runs")
                    .advise("make it a lambda, or take the array as one parameter")
                    .into());
            }
        }
        let args = &Args { positional: code.taken(&args.positional, Ty::nil), ..args.clone() };
        let self_ty = self.an.outside_self(self.here.id, root);
        let at = self.assumption(span);
        let takes_procs =
            args.positional.iter().chain(args.keywords.iter().map(|(_, ty)| ty)).any(|ty| !ty.procs.is_empty());
        let bodies: Vec<SpecId> = self.others.iter().chain([&self.here]).map(|a| a.id).collect();
        if !takes_procs && self.an.calls_itself(code.method, &bodies) {
            let receiver = receiver_of(&self_ty);
            let answer = self.an.reached(self.here.id, &Target::Ruby(code.method), receiver, "call", args, &at);
            let ty = self.refused(answer, span)?;
            env.dead |= ty.is_never();
            return Ok(ty);
        }
        let active: Vec<MethodId> = bodies.iter().filter_map(|id| self.an.spec(*id).key.method).collect();
        let nested = active.into_iter().filter(|m| self.an.is_of_one_code(*m, code.method)).count();
        if nested >= MAX_NESTED {
            return Err(self
                .error(span, "this captured lambda cannot be inlined: its code is called within itself too often")
                .because("a captured lambda becomes part of its caller, but where it calls itself without a block")
                .advise("make it a method with `def`")
                .into());
        }
        let mut out = Ty::never();
        for atom in self_ty.atoms() {
            let target = Target::Ruby(code.method);
            let ty = self.invoke(&target, (atom, self_ty.reach), "call", args, None, span, &at, env)?;
            out = self.join(&out, &ty);
        }
        Ok(out)
    }

    /// `return` and `break` leave a lambda. In a captured Proc that is not a lambda, they have no target.
    pub(super) fn leaves_captured_proc(&self, span: Span) -> Result<()> {
        let own = self.here.ret_frame.is_some_and(|frame| self.frames[frame].kind == FrameKind::Return);
        if self.here.unit.lambda || !own || self.an.spec(self.here.id).around.is_none() {
            return Ok(());
        }
        Err(self
            .error(span, "this would leave the method that made the captured proc")
            .because("Ruby raises a LocalJumpError here")
            .advise("write next, or make it a lambda")
            .into())
    }

    /// Assigns the variables from around a captured Proc in its code.
    pub(super) fn take_around(&mut self, env: &mut Env) -> Result<()> {
        if self.an.spec(self.here.id).around.is_none() {
            return Ok(());
        }
        let unit = self.here.unit.clone();
        if let Some((local, span)) = accumulate::first_capture_written(&unit) {
            let name = &unit.locals[local.index()].name;
            return Err(self
                .error(span, format!("a captured Proc assigns {name}, a variable from around it"))
                .because("elements run at the same time, and only the section's own block may collect what they give")
                .advise(format!("give it back, and assign {name} in the section's block"))
                .into());
        }
        for i in 0..unit.locals.len() {
            let Some(root) = self.an.around(self.here.id, LocalId::new(i)) else { continue };
            match self.an.root(self.here.id, &root) {
                Ok(ty) => {
                    env.locals[self.here.base + i] = State { ty: ty.clone(), unset: false, sole: false };
                    self.here.locals[i] = self.join(&self.here.locals[i].clone(), &ty);
                }
                Err(opaque) => self.here.opaque[i] = Some(opaque),
            }
        }
        Ok(())
    }
}

/// The kind of receiver that a captured Proc has.
pub fn receiver_of(self_ty: &Ty) -> (Atom, Reach) {
    (self_ty.atoms().first().copied().unwrap_or(Atom::Nil), self_ty.reach)
}
