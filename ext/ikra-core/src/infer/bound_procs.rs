//! Procs and Method objects that keep values: curried Procs with their arguments so far, and the Method objects of a
//! receiver.
//!
//! `add.curry[1]` keeps 1, and `x.method(:+)` keeps `x`. Here: the identity of such a Proc, the types of what it keeps,
//! and what Ruby says of it (`arity`, `name`). Not here: other Procs ([`super::blocks`]).
//!
//! A Proc that keeps values is known by the call that made it. Its values are in registers of the function that
//! contains this call, one set for each call. So there must be only one such Proc at a time. Inference refuses to make
//! it again while a variable still holds an earlier one. A block may run again, so it does not give such a Proc back.

use super::blocks::{ProcInfo, ProcKind};
use super::calls::{Answer, Args, Literal, Refusal, Target};
use super::walk::{Env, Walker};
use super::{Analysis, SpecId};
use crate::diagnostic::Span;
use crate::error::Result;
use crate::id::{ClassId, ProcId};
use crate::syntax::ast::{Block, NAMED, Name, Params};
use crate::types::{Atom, Prims, Ty};
use crate::world::{Opaque, Root};

/// The identity of a Proc that is made of another Proc, or of a receiver.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Derived {
    /// Made by a call: of this Proc, if it is a curried one, with this number of values.
    Keeping {
        home: SpecId,
        at: Span,
        of: Option<ProcId>,
        count: usize,
    },
    Converted(ProcId),
}

/// The numbers of arguments that code takes. None: any number above the least.
pub type Takes = (usize, Option<usize>);

/// What Ruby's `curry` and `arity` say of a parameter list. Required keywords count as one argument.
fn takes(params: &Params) -> Takes {
    let least = params.required.len() + params.post.len();
    let required = params.keywords.iter().any(|keyword| keyword.default.is_none());
    let keywords = !params.keywords.is_empty() || params.keyword_rest.is_some();
    let most = least + params.optional.len() + usize::from(keywords);
    (least + usize::from(required), params.rest.is_none().then_some(most))
}

/// The operators that Ruby defines with one argument for all of its classes, and those with none.
const OPERATORS: &[&str] =
    &["+", "-", "*", "/", "%", "**", "&", "|", "^", "==", "!=", "===", "<", "<=", ">", ">=", "<=>", "eql?", "equal?"];
const UNARY: &[&str] = &["+@", "-@", "~", "!", "succ", "pred", "abs", "nil?"];

/// Methods that ask for the code that calls them.
const ASK_CALLER: &[&str] =
    &["block_given?", "binding", "local_variables", "__method__", "lambda", "proc", "raise", "fail", "catch", "throw"];

impl Analysis<'_> {
    /// The Proc that a call makes to keep a number of values.
    pub fn keeping(
        &mut self,
        (home, at): (SpecId, Span),
        of: Option<ProcId>,
        count: usize,
        kind: impl FnOnce() -> ProcKind,
    ) -> ProcId {
        let key = Derived::Keeping { home, at, of, count };
        if let Some(id) = self.derived.get(&key) {
            return *id;
        }
        let id = ProcId::new(self.procs.len());
        let kept = vec![Ty::never(); count];
        self.procs.push(ProcInfo { kept, at, ..ProcInfo::new(home, kind()) });
        self.derived.insert(key, id);
        id
    }

    /// The Proc that `to_proc` makes of a Method object; a Proc gives itself.
    pub fn converted(&mut self, method: ProcId) -> ProcId {
        if !self.proc_info(method).kind.is_method() {
            return method;
        }
        if let Some(id) = self.derived.get(&Derived::Converted(method)) {
            return *id;
        }
        let id = ProcId::new(self.procs.len());
        self.procs.push(ProcInfo::new(Self::BLOCK, ProcKind::Converted(method)));
        self.derived.insert(Derived::Converted(method), id);
        id
    }

    /// The type of a value after `&`: a Method object becomes a Proc.
    pub fn as_block(&mut self, ty: Ty) -> Ty {
        match *ty.procs {
            [method] if ty.atoms().len() == 1 => Ty::proc(self.converted(method)),
            _ => ty,
        }
    }

    /// The Procs that a function makes and that keep values, with the types of these.
    pub fn kept_in(&self, function: SpecId) -> Vec<(ProcId, Vec<Ty>)> {
        let all = self.procs.iter().enumerate().filter(|(_, info)| !info.kept.is_empty());
        let own = all.filter(|(_, info)| self.host(info.home) == function);
        own.map(|(i, info)| (ProcId::new(i), info.kept.clone())).collect()
    }

    /// The Procs of which a Proc consists, without itself.
    fn parts_of(&self, id: ProcId) -> Vec<ProcId> {
        let info = self.proc_info(id);
        let mut parts: Vec<ProcId> = info.kept.iter().flat_map(|ty| ty.procs.iter().copied()).collect();
        match info.kind {
            ProcKind::Converted(of) | ProcKind::Curried { of, .. } => parts.push(of),
            ProcKind::Composed { first, second, .. } => parts.extend([first, second]),
            _ => {}
        }
        parts
    }

    /// All Procs that a value may be, or of which they consist.
    fn all_parts(&self, ty: &Ty) -> Vec<ProcId> {
        let mut all = ty.procs.clone();
        let mut at = 0;
        while let Some(id) = all.get(at) {
            for part in self.parts_of(*id) {
                if !all.contains(&part) {
                    all.push(part);
                }
            }
            at += 1;
        }
        all
    }

    /// Whether the values that a Proc keeps follow from their types.
    fn keeps_nothing(&self, id: ProcId) -> bool {
        self.proc_info(id).kept.iter().all(|ty| match *ty.atoms() {
            [Atom::Proc(_) | Atom::Regexp(_) | Atom::Module(_) | Atom::Nil | Atom::True | Atom::False] => true,
            ref atoms => atoms.is_empty(),
        })
    }

    /// The type of the result of a call with a number of arguments.
    pub fn result_of(&self, id: ProcId, (from, span): (SpecId, Span), given: usize) -> Ty {
        let info = self.proc_info(id);
        match info.kind {
            ProcKind::Converted(of) => self.result_of(of, (from, span), given),
            ProcKind::Curried { .. } if given == 0 && !self.is_complete(id, given) => Ty::proc(id),
            ProcKind::Curried { of, .. } if self.is_complete(id, given) => {
                self.result_of(of, (from, span), info.roots.len() + info.kept.len() + given)
            }
            ProcKind::Curried { .. } => {
                let count = info.roots.len() + info.kept.len() + given;
                let key = Derived::Keeping { home: from, at: span, of: Some(id), count };
                self.derived.get(&key).map_or_else(Ty::never, |id| Ty::proc(*id))
            }
            _ => info.result.clone(),
        }
    }

    /// Whether a curried Proc calls its code when it is given a number of arguments.
    pub fn is_complete(&self, id: ProcId, given: usize) -> bool {
        let info = self.proc_info(id);
        let given = info.roots.len() + info.kept.len() + given;
        matches!(info.kind, ProcKind::Curried { needs, .. } if given >= needs)
    }

    /// `f.curry` and `f.curry(n)`. The inner error is the message of Ruby's ArgumentError.
    ///
    /// # Errors
    /// Procs whose number of arguments is not known.
    pub fn curried(
        &mut self,
        (from, at): (SpecId, Span),
        of: ProcId,
        args: &Args,
    ) -> Answer<std::result::Result<ProcId, String>> {
        let lambda = self.proc_info(of).kind.is_lambda();
        let needs = match (args.positional.as_slice(), args.literals.first()) {
            ([], _) => self.takes(from, of)?.0,
            ([ty], _) if ty.only(Prims::NIL) => self.takes(from, of)?.0,
            ([_], Some(Some(Literal::Int(n)))) => {
                let (least, most) = if lambda { self.takes(from, of)? } else { (0, None) };
                let above = |limit: usize| *n > i64::try_from(limit).unwrap_or(i64::MAX);
                if lambda && (*n < 0 || !above(least.saturating_sub(1)) && least > 0 || most.is_some_and(above)) {
                    let expected = match most {
                        Some(most) if most == least => least.to_string(),
                        Some(most) => format!("{least}..{most}"),
                        None => format!("{least}+"),
                    };
                    return Ok(Err(format!("wrong number of arguments (given {n}, expected {expected})")));
                }
                usize::try_from(*n).unwrap_or(0)
            }
            ([_], _) => {
                return Err(Refusal::new("kernels know curry only with a literal Integer")
                    .because("how many arguments a call needs must be known when compiling")
                    .advise("write the number: f.curry(2)"));
            }
            (several, _) => {
                let given = several.len();
                return Ok(Err(format!("wrong number of arguments (given {given}, expected 0..1)")));
            }
        };
        Ok(Ok(self.keeping((from, at), Some(of), 0, || ProcKind::Curried { of, needs, lambda })))
    }

    /// The numbers of arguments that a Proc or Method object takes.
    fn takes(&mut self, from: SpecId, id: ProcId) -> Answer<Takes> {
        let unknown = || {
            Refusal::new("kernels do not know how many arguments this takes")
                .because("they know it of code in Ruby, of Symbols and of operators")
                .advise("write a lambda that calls it: ->(x) { receiver.name(x) }")
        };
        match self.proc_info(id).kind.clone() {
            ProcKind::Block(block) | ProcKind::Lambda(block) => Ok(takes(&block.params)),
            ProcKind::Symbol(_) => Ok((1, None)),
            ProcKind::Composed { .. } | ProcKind::Curried { .. } => Ok((0, None)),
            ProcKind::Converted(of) => self.takes(from, of),
            ProcKind::Outside(_, code) => Ok(takes(&self.source(code.method)?.unit.params)),
            ProcKind::Live(_) | ProcKind::Regexp(_) => Err(unknown()),
            ProcKind::Method(name) | ProcKind::Bound(name) => {
                let mut all = Vec::new();
                for atom in self.receiver_of_method(id).atoms() {
                    all.push(match self.target(from, atom, &format!("{NAMED}{name}"), true)? {
                        Target::Ruby(method) if !self.is_prelude(method) && !self.is_library(method) => {
                            takes(&self.source(method)?.unit.params)
                        }
                        Target::Reader(_) => (0, Some(0)),
                        Target::Writer(_) => (1, Some(1)),
                        _ if OPERATORS.contains(&&*name) => (1, Some(1)),
                        _ if UNARY.contains(&&*name) => (0, Some(0)),
                        _ => return Err(unknown()),
                    });
                }
                all.dedup();
                match *all {
                    [one] => Ok(one),
                    _ => Err(unknown()),
                }
            }
        }
    }

    /// `arity`
    ///
    /// # Errors
    /// Procs whose number of arguments is not known.
    pub fn arity(&mut self, from: SpecId, id: ProcId) -> Answer<i64> {
        let (least, most) = self.takes(from, id)?;
        let lambda = self.proc_info(id).kind.is_lambda();
        let exact = if lambda { most == Some(least) } else { most.is_some() };
        let least = i64::try_from(least).unwrap_or(i64::MAX - 1);
        Ok(if exact { least } else { -least - 1 })
    }

    /// The types of the values that a Proc has: those from outside, and those that it keeps.
    ///
    /// # Errors
    /// A value from outside that kernels cannot hold.
    pub fn values_of(&mut self, from: SpecId, id: ProcId) -> std::result::Result<Vec<Ty>, Opaque> {
        let ProcInfo { roots, kept, .. } = self.proc_info(id).clone();
        let mut values = Vec::new();
        for root in &roots {
            values.push(self.root(from, root)?);
        }
        values.extend(kept);
        Ok(values)
    }

    /// The type of a Method object's receiver.
    fn receiver_of_method(&mut self, id: ProcId) -> Ty {
        let ProcInfo { home, kind, .. } = self.proc_info(id).clone();
        match kind {
            ProcKind::Method(_) if self.spec(home).key.method.is_some() => self.spec(home).key.self_ty.clone(),
            ProcKind::Method(_) => self.root(home, &Root::SelfObject).unwrap_or_default(),
            _ => self.values_of(home, id).ok().and_then(|values| values.first().cloned()).unwrap_or_default(),
        }
    }

    /// `name` of a Method object that the program itself makes.
    pub fn method_name(&self, id: ProcId) -> Option<Name> {
        match &self.proc_info(id).kind {
            ProcKind::Method(name) | ProcKind::Bound(name) => Some(name.clone()),
            _ => None,
        }
    }

    /// `owner` of a Method object that the program itself makes. None: it depends on the receiver.
    pub fn method_owner(&mut self, id: ProcId) -> Option<ClassId> {
        let name = self.method_name(id)?;
        let mut owners = Vec::new();
        for atom in self.receiver_of_method(id).atoms() {
            owners.push(self.world.method_owner(super::calls::receiver_of(atom), &name)?);
        }
        owners.dedup();
        match *owners {
            [one] => Some(one),
            _ => None,
        }
    }
}

impl Walker<'_, '_> {
    /// Refuses `method(:name)` where a kind of receiver has no such method.
    pub(super) fn has_method(&mut self, receiver: &Ty, name: &str, span: Span) -> Result<()> {
        if ASK_CALLER.contains(&name) {
            return Err(self
                .error(span, format!("kernels do not know the Method object of {name}"))
                .because("it concerns the code that calls it")
                .advise(format!("write {name} where it is meant"))
                .into());
        }
        for atom in receiver.atoms() {
            let answer = self.an.target(self.here.id, atom, &format!("{NAMED}{name}"), true);
            if matches!(self.refused(answer, span)?, Target::NoMethod { .. } | Target::Handler(_)) {
                let class = self.an.describe(atom);
                return Err(self
                    .error(span, format!("{class} defines no method {name}"))
                    .because("Ruby raises a NameError here, unless respond_to_missing? answers for it")
                    .advise("write a lambda that makes the call: ->(x) { receiver.name(x) }")
                    .into());
            }
        }
        Ok(())
    }

    /// `receiver.method(:name)`
    pub(super) fn method_object(&mut self, receiver: &Ty, args: &Args, span: Span, env: &mut Env) -> Result<Ty> {
        let (Some(Some(Literal::Sym(name))), 1) = (args.literals.first(), args.positional.len()) else {
            return Err(self
                .error(span, "kernels know method with a literal Symbol only")
                .because("which method it is must be known when compiling")
                .advise("write method(:name), and choose with case … when")
                .into());
        };
        self.has_method(receiver, name, span)?;
        // the variable of the receiver is no longer its only holder
        for at in 0..env.locals.len() {
            if env.locals[at].sole && (receiver.array.is_some() || super::append::is_text(receiver)) {
                env.locals[at].sole = false;
            }
        }
        let id = self.an.keeping((self.here.id, span), None, 1, || ProcKind::Bound(name.clone()));
        self.keep_values(id, std::slice::from_ref(receiver), span, env)
    }

    /// `f.curry`
    pub(super) fn curry(&mut self, of: ProcId, args: &Args, span: Span, env: &mut Env) -> Result<Ty> {
        let answer = self.an.curried((self.here.id, span), of, args);
        match self.refused(answer, span)? {
            Ok(id) => Ok(Ty::proc(id)),
            Err(_) => {
                env.dead = true;
                Ok(Ty::never())
            }
        }
    }

    /// A call of a curried Proc: of its code, or to keep more arguments.
    pub(super) fn call_curried(&mut self, id: ProcId, args: &Args, span: Span, env: &mut Env) -> Result<Ty> {
        let ProcKind::Curried { of, needs, lambda } = self.an.proc_info(id).kind else { return Ok(Ty::never()) };
        if !args.keywords.is_empty() {
            return Err(self
                .error(span, "kernels pass no keywords to curried Procs")
                .because("Ruby passes them on as a Hash")
                .advise("write a lambda that calls it: ->(x) { f.(x, key: value) }")
                .into());
        }
        self.is_at_hand(id, span)?;
        let all = [self.values_of(id, span)?, args.positional.clone()].concat();
        if self.an.is_complete(id, args.positional.len()) {
            return self.call_proc(of, &Args::of(all), true, span, env);
        }
        if args.positional.is_empty() {
            return Ok(Ty::proc(id));
        }
        let kind = || ProcKind::Curried { of, needs, lambda };
        let made = self.an.keeping((self.here.id, span), Some(id), all.len(), kind);
        self.keep_values(made, &all, span, env)
    }

    /// The types of the values that a Proc has.
    pub(super) fn values_of(&mut self, id: ProcId, span: Span) -> Result<Vec<Ty>> {
        let answer = self.an.values_of(self.here.id, id);
        self.opaque(answer, span)
    }

    /// The type of a Proc that keeps these values from here on.
    fn keep_values(&mut self, id: ProcId, values: &[Ty], span: Span, env: &Env) -> Result<Ty> {
        let before = self.an.proc_info(id).kept.clone();
        let now: Vec<Ty> = before.iter().zip(values).map(|(old, new)| self.join(old, new)).collect();
        if now != before {
            self.an.proc_info_mut(id).kept = now;
            self.an.enqueue(self.here.id);
        }
        if self.an.keeps_nothing(id) {
            return Ok(Ty::proc(id));
        }
        let held = |ty: &Ty| self.an.all_parts(ty).contains(&id);
        let twice = self.running.iter().enumerate().any(|(i, proc)| self.running[..i].contains(proc));
        if twice || values.iter().any(held) || (0..env.locals.len()).any(|at| held(&env.locals[at].ty)) {
            return Err(self.one_at_a_time(span, "this makes a Proc again while an earlier one is still held"));
        }
        Ok(Ty::proc(id))
    }

    fn one_at_a_time(&self, span: Span, what: &str) -> crate::error::Error {
        self.error(span, what)
            .because("kernels have one place for the arguments or the receiver that a Proc made here keeps")
            .advise("call it before the next one is made, or pass on the arguments instead of the Proc")
            .into()
    }

    /// Refuses a call of a Proc whose kept values are in another function.
    pub(super) fn is_at_hand(&self, id: ProcId, span: Span) -> Result<()> {
        let home = self.an.proc_info(id).home;
        if self.an.keeps_nothing(id) || self.an.host(home) == self.an.host(self.here.id) {
            return Ok(());
        }
        Err(self
            .error(span, "this Proc is called after the method that made it has ended")
            .because("what it keeps is in the variables of that method")
            .advise("call it within that method, or pass what it needs as arguments")
            .into())
    }

    /// Refuses Procs that keep values as the result of a block in which they are made: the block may run again.
    pub(super) fn leaves_no_kept(&self, block: &Block, ty: &Ty) -> Result<()> {
        for id in self.an.all_parts(ty) {
            if !self.an.proc_info(id).kept.is_empty()
                && !self.an.keeps_nothing(id)
                && let Some(span) = self.made_within(id, block)
            {
                return Err(self.one_at_a_time(span, "this Proc outlives the run of the block that makes it"));
            }
        }
        Ok(())
    }

    /// The position within a block at which a Proc is made, directly or by a method that is called there.
    fn made_within(&self, id: ProcId, block: &Block) -> Option<Span> {
        let info = self.an.proc_info(id);
        let (mut home, mut at) = (info.home, info.at);
        while home != self.here.id {
            let (inlining, _) = self.an.inlinings.iter().find(|(_, inlined)| **inlined == home)?;
            (home, at) = (inlining.from, inlining.span);
        }
        (block.span.start < at.start && at.end <= block.span.end).then_some(at)
    }
}
