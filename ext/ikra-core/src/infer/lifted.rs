//! Lambdas that call themselves and that the block itself makes.
//!
//! `fact = ->(n) { n < 2 ? 1 : n * fact.(n - 1) }` is an example.
//!
//! Here: which lambdas are *lifted*. A call of a lifted lambda is a call of a function of its own. The function's
//! parameters are the variables from around the lambda, by value, then the lambda's arguments. Its body calls the
//! lambda as the source does.
//!
//! Not here: other lambdas, which are inlined where they are called ([`super::blocks`]), and captured ones
//! ([`super::outside`]).
//!
//! Passing the variables by value is right because nothing assigns them while the function runs. The lambda does not
//! assign them, and the body that made it is waiting for the call.

use super::calls::Args;
use super::walk::{Env, Walker};
use super::{Analysis, SpecId};
use crate::diagnostic::Span;
use crate::error::{Error, Result};
use crate::id::{MethodId, ProcId};
use crate::syntax::ast::{
    Arg, Block, Call, Kind, Local, LocalId, Name, Node, NodeId, Origin, Params, Pattern, Target, Unit,
};
use crate::syntax::visit;
use crate::types::{Atom, Ty};
use crate::world::{Facts, MethodSource, Root, well_known};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Numbers of lifted lambdas begin here. A World never numbers so many methods, and the prelude's numbers are above.
const FIRST: u32 = 0xe000_0000;

/// The function for a lambda, with a number of arguments and these keywords.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Form {
    home: SpecId,
    span: Span,
    given: usize,
    keywords: Vec<Name>,
}

/// Facts about lifted lambdas.
#[derive(Default)]
pub struct Lifted {
    /// Their positions in the source. They are kept when analysis begins again.
    places: HashSet<(String, u32, Span)>,
    methods: HashMap<Form, MethodId>,
    /// By number: the form, and the variables from around the lambda.
    forms: Vec<(Form, Vec<LocalId>)>,
    /// The types of the variables from around, for a call in a body.
    passed: HashMap<(SpecId, ProcId), Vec<Ty>>,
    /// The callers of each, which run again when its result grows.
    callers: HashMap<ProcId, BTreeSet<SpecId>>,
}

impl Lifted {
    /// Forgets the specialisations. Numbers are not used again.
    pub fn restart(&mut self) {
        self.methods.clear();
        self.passed.clear();
        self.callers.clear();
    }

    /// Replaces merged kinds of arrays in all types.
    pub fn resolve(&mut self, facts: &Facts) {
        for ty in self.passed.values_mut().flatten() {
            *ty = facts.resolve(ty);
        }
    }

    fn form(&self, method: MethodId) -> Option<&(Form, Vec<LocalId>)> {
        self.forms.get(method.0.checked_sub(FIRST)? as usize)
    }
}

/// A call of a lifted lambda.
pub struct LiftedCall {
    pub method: MethodId,
    /// The variables from around the lambda, with their types.
    pub around: Vec<(LocalId, Ty)>,
}

impl Analysis<'_> {
    fn place_of_lambda(&self, home: SpecId, block: &Block) -> (String, u32, Span) {
        let source = &self.spec(home).unit.source;
        (source.path.clone(), source.first_line, block.span)
    }

    /// Whether a call of the lambda is a call of its function. Within that function itself it is not.
    pub fn is_lifted(&self, home: SpecId, block: &Block) -> bool {
        if self.lifted.places.is_empty() || !self.lifted.places.contains(&self.place_of_lambda(home, block)) {
            return false;
        }
        let form = self.spec(home).key.method.and_then(|method| self.lifted.form(method));
        form.is_none_or(|(form, _)| form.span != block.span)
    }

    /// Whether a body has the variables of `home` that a lifted lambda uses: it is `home` itself, or the lambda's
    /// function.
    pub fn stands_for(&self, body: SpecId, home: SpecId) -> bool {
        let form = || self.spec(body).key.method.and_then(|method| self.lifted.form(method));
        body == home || form().is_some_and(|(form, _)| form.home == home)
    }

    /// The call of a lifted lambda, with the types that inference has found.
    pub fn lifted_call(&mut self, from: SpecId, id: ProcId, block: &Block, args: &Args) -> Option<LiftedCall> {
        let home = self.proc_info(id).home;
        let around = around(&self.spec(home).unit.clone(), block).ok()?;
        let method = self.lifted_method(home, block, &around, args);
        let types = self.lifted.passed.get(&(from, id))?.clone();
        Some(LiftedCall { method, around: around.into_iter().zip(types).collect() })
    }

    /// Whether a lambda reads a variable to which it is assigned, directly or through another lambda that it reads.
    pub fn names_itself(&self, id: ProcId, block: &Block) -> bool {
        let unit = &self.spec(self.proc_info(id).home).unit;
        let Ok(around) = around(unit, block) else { return true };
        let mut names = false;
        visit::unit(unit, &mut |node| {
            if let Kind::Assign { target: Target::Local(local, _), value } = &node.kind {
                names |= around.contains(local) && lambda_of(value).is_some_and(|lambda| lambda.span == block.span);
            }
        });
        names
    }

    /// The receiver of such a function: `self` of the body that made the lambda.
    pub fn lifted_self(&mut self, frame: SpecId) -> (Atom, crate::types::Reach) {
        let ty = match self.spec(frame).key.method {
            Some(_) => self.spec(frame).key.self_ty.clone(),
            None => {
                let root = self.root(frame, &Root::SelfObject);
                root.unwrap_or_else(|_| Ty::module(well_known::KERNEL))
            }
        };
        super::outside::receiver_of(&ty)
    }

    fn lifted_method(&mut self, home: SpecId, block: &Block, around: &[LocalId], args: &Args) -> MethodId {
        let keywords = args.keywords.iter().map(|(name, _)| name.clone()).collect();
        let form = Form { home, span: block.span, given: args.positional.len(), keywords };
        if let Some(method) = self.lifted.methods.get(&form) {
            return *method;
        }
        let method = MethodId(FIRST + self.lifted.forms.len() as u32);
        self.lifted.forms.push((form.clone(), around.to_vec()));
        self.lifted.methods.insert(form, method);
        method
    }

    /// Makes the code of a lifted lambda's function.
    fn write_lifted(&mut self, method: MethodId, block: &Arc<Block>) {
        if self.sources.contains_key(&method) {
            return;
        }
        let Some((form, around)) = self.lifted.form(method).cloned() else { return };
        let spec = self.spec(form.home);
        let unit = function(&spec.unit, block, &form, &around);
        let source = MethodSource { unit: Arc::new(unit), scope: spec.scope, label: "lambda".into(), around: None };
        self.sources.insert(method, source);
    }

    /// Runs the callers of a lifted lambda again, because its result has grown.
    pub(super) fn lifted_gives_more(&mut self, id: ProcId) {
        for caller in self.lifted.callers.get(&id).cloned().unwrap_or_default() {
            self.enqueue(caller);
        }
    }
}

impl Walker<'_, '_> {
    /// Makes a lambda that calls itself a function. The error says that analysis begins again, or why the lambda cannot
    /// be a function.
    pub(super) fn lift(&mut self, id: ProcId, block: &Block, span: Span) -> Error {
        let home = self.an.proc_info(id).home;
        let place = self.an.place_of_lambda(home, block);
        if let Err(why) = around(&self.an.spec(home).unit, block) {
            return self
                .error(span, "kernels do not know this lambda, which calls itself, where the block makes it")
                .because(format!("a lambda that calls itself is a function of its own, and this one {why}"))
                .advise("make the lambda before the section's call and outside of its block, or make it a method")
                .into();
        }
        self.an.lifted.places.insert(place);
        self.an.again = true;
        Error::Internal { stage: "infer", detail: "begins again".into() }
    }

    /// A call of a lifted lambda.
    pub(super) fn call_lifted(
        &mut self,
        id: ProcId,
        block: &Arc<Block>,
        args: &Args,
        span: Span,
        env: &mut Env,
    ) -> Result<Ty> {
        let home = self.an.proc_info(id).home;
        let unit = self.an.spec(home).unit.clone();
        let around = around(&unit, block).unwrap_or_default();
        let from = self.here.id;
        let frame = match self.an.stands_for(from, home) {
            true => Some(from),
            false => self.others.iter().rev().map(|body| body.id).find(|body| self.an.stands_for(*body, home)),
        };
        let has_all = |frame: &SpecId| {
            let form = self.an.spec(*frame).key.method.and_then(|method| self.an.lifted.form(method));
            *frame == home || form.is_some_and(|(_, has)| around.iter().all(|local| has.contains(local)))
        };
        let Some(frame) = frame.filter(has_all) else {
            return Err(self
                .error(span, "this lambda is called where the variables from around it are not known")
                .because("a lambda that calls itself is a function, which gets the variables that it names itself")
                .advise("make it a method")
                .into());
        };
        let method = self.an.lifted_method(home, block, &around, args);
        self.an.write_lifted(method, block);
        let entered = self.enter_home(frame);
        let held = around.iter().map(|local| self.read_local(*local, env, span)).collect::<Result<Vec<_>>>();
        if let Some(entered) = entered {
            self.leave_home(entered);
        }
        let before = self.an.lifted.passed.get(&(from, id)).cloned().unwrap_or_else(|| vec![Ty::never(); around.len()]);
        let held: Vec<Ty> = before.iter().zip(held?).map(|(old, now)| self.join(old, &now)).collect();
        if self.an.lifted.callers.entry(id).or_default().insert(from) || held != before {
            self.an.lifted.passed.insert((from, id), held.clone());
            self.an.enqueue(from);
        }
        let all = Args { keywords: args.keywords.clone(), ..Args::of([held, args.positional.clone()].concat()) };
        let receiver = self.an.lifted_self(frame);
        let at = self.assumption(span);
        let target = super::calls::Target::Ruby(method);
        let answer = self.an.reached(from, &target, receiver, "call", &all, &at);
        let ty = self.refused(answer, span)?;
        env.dead |= ty.is_never();
        Ok(ty)
    }
}

/// The variables from around a lambda that it reads, and those that lambdas assigned to such variables read.
///
/// # Errors
/// The lambda cannot be a function: it assigns some of them, or uses the block of the method around it.
fn around(unit: &Unit, block: &Block) -> std::result::Result<Vec<LocalId>, &'static str> {
    let mut lambdas: Vec<(LocalId, &Block)> = Vec::new();
    visit::unit(unit, &mut |node| {
        if let Kind::Assign { target: Target::Local(local, _), value } = &node.kind
            && let Some(lambda) = lambda_of(value)
        {
            lambdas.push((*local, lambda));
        }
    });
    let mut found = outer(unit, block)?;
    let mut at = 0;
    while at < found.len() {
        for (local, lambda) in &lambdas {
            if *local == found[at] && lambda.span != block.span {
                for outer in outer(unit, lambda)? {
                    if !found.contains(&outer) && !is_within(unit, outer, block) {
                        found.push(outer);
                    }
                }
            }
        }
        at += 1;
    }
    Ok(found)
}

fn lambda_of(node: &Node) -> Option<&Block> {
    match &node.kind {
        Kind::Lambda(block) => Some(block),
        Kind::Call(call) if call.receiver.is_none() && &*call.name == "lambda" => call.block.as_deref(),
        _ => None,
    }
}

fn is_within(unit: &Unit, local: LocalId, block: &Block) -> bool {
    own(unit, block).contains(&local)
}

/// The variables of a block itself, and those of blocks in it.
fn own(unit: &Unit, block: &Block) -> Vec<LocalId> {
    let mut own = block.params.locals();
    own.extend(&block.locals);
    visit::block(block, &mut |node| {
        let inner = match &node.kind {
            Kind::Lambda(inner) => Some(inner),
            Kind::Call(call) => call.block.as_ref(),
            Kind::Super { block, .. } => block.as_ref(),
            Kind::Assign { target: Target::Local(local, _), .. } => {
                // a variable for an intermediate value, such as the argument of a splat
                if unit.locals[local.index()].origin == Origin::Temp {
                    own.push(*local);
                }
                None
            }
            _ => None,
        };
        if let Some(inner) = inner {
            own.extend(inner.params.locals());
            own.extend(&inner.locals);
        }
    });
    own
}

/// The variables that a block uses and that are not its own.
fn outer(unit: &Unit, block: &Block) -> std::result::Result<Vec<LocalId>, &'static str> {
    let own = own(unit, block);
    let (mut read, mut assigned, mut asks) = (Vec::new(), Vec::new(), false);
    visit::block(block, &mut |node| match &node.kind {
        Kind::Local(local) => read.push(*local),
        Kind::Yield(_) | Kind::Super { .. } => asks = true,
        Kind::Call(call) => asks |= call.receiver.is_none() && &*call.name == "block_given?",
        _ => {}
    });
    super::walk::assigned(&block.body, &mut assigned);
    if asks {
        return Err("asks for the block or the superclass of the method around it");
    }
    if assigned.iter().any(|local| !own.contains(local)) {
        return Err("assigns a variable from around it");
    }
    read.retain(|local| !own.contains(local));
    read.sort_unstable();
    read.dedup();
    Ok(read)
}

/// The function of a lifted lambda.
fn function(home: &Unit, block: &Arc<Block>, form: &Form, around: &[LocalId]) -> Unit {
    let mut locals: Vec<Local> = home.locals.clone();
    for local in locals.iter_mut().filter(|local| local.origin == Origin::Captured) {
        local.origin = Origin::Own;
    }
    let mut nodes = home.nodes;
    let mut node = |kind: Kind| {
        nodes += 1;
        Node { id: NodeId::new(nodes - 1), span: block.span, kind }
    };
    let mut parameter = || {
        locals.push(Local { name: "".into(), origin: Origin::Param });
        LocalId::new(locals.len() - 1)
    };
    let mut required: Vec<Pattern> = around.iter().map(|local| Pattern::Local(*local)).collect();
    let mut args = Vec::new();
    for _ in 0..form.given {
        let local = parameter();
        required.push(Pattern::Local(local));
        args.push(Arg::Positional(node(Kind::Local(local))));
    }
    let mut keywords = Vec::new();
    for name in &form.keywords {
        let local = parameter();
        keywords.push(crate::syntax::ast::Keyword { name: name.clone(), local, default: None });
        args.push(Arg::Keyword(name.clone(), node(Kind::Local(local))));
    }
    let receiver = Some(node(Kind::Lambda(block.clone())));
    let call = Call {
        receiver,
        name: "call".into(),
        name_span: block.span,
        args,
        block: None,
        block_arg: None,
        safe: false,
        matches: false,
    };
    let body = node(Kind::Call(Box::new(call)));
    let params =
        Params { required, optional: vec![], rest: None, post: vec![], keywords, keyword_rest: None, block: None };
    Unit {
        source: home.source.clone(),
        name: home.name.clone(),
        params,
        body,
        locals,
        nodes,
        lambda: true,
        yields: false,
        rest: None,
        outer_block: None,
        symbol: None,
        parsed_in: Duration::ZERO,
    }
}
