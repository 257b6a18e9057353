//! Captured Hashes into which a block accumulates, as by `counts[word] += 1`.
//!
//! Here: finding the updates in the tree, and the block without them. Each becomes `counts = a pair of key, value and
//! counts`. So the local is a chain of pairs within an element, and the last one is what the element leaves behind. Not
//! here: what becomes of the chains, which the host reads after the section.
//!
//! Invariant: nothing else in the block reads or sets such a Hash, and all updates of one are of one kind. So only the
//! order of updates matters, which the chains keep.

use super::{BlockSource, SectionOp, accumulate};
use crate::diagnostic::{Diagnostic, Span};
use crate::error::{Error, Result};
use crate::syntax::ast::{
    Arg, AssignOp, Call, ConstBase, ConstPath, Kind, LocalId, Name, Node, NodeId, Origin, Target, Unit,
};
use crate::syntax::visit;
use crate::types::combine::HashUpdate;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The captured Hashes that a block updates.
#[derive(Debug, Default, Clone)]
pub struct HashUpdates {
    /// How it updates each.
    pub hashes: BTreeMap<LocalId, HashUpdate>,
    /// The updates, whose values must not be used.
    pub nodes: BTreeMap<NodeId, LocalId>,
    /// Whether pairs say in which tick they were made.
    pub ticks: bool,
}

/// One update.
struct Found {
    local: LocalId,
    update: HashUpdate,
    span: Span,
}

/// What a block does with the captured locals that it may update.
struct Uses<'a> {
    unit: &'a Unit,
    void: BTreeSet<NodeId>,
    updates: BTreeMap<NodeId, Found>,
    /// Nodes that are parts of updates.
    parts: BTreeSet<NodeId>,
    /// The first other use of each local.
    others: BTreeMap<LocalId, Span>,
}

/// Whether a block may update a captured Hash.
pub fn may_update(unit: &Unit) -> bool {
    !Uses::of(unit, SectionOp::Each).updates.is_empty()
}

/// The block with its updates of Hashes rewritten. `is_hash` tells which captured locals hold Hashes. `ticks`: the
/// section has several.
///
/// # Errors
/// `Conflict` for another use of a Hash that is updated, and for updates of several kinds.
pub fn rewrite(
    block: &BlockSource,
    op: SectionOp,
    ticks: bool,
    is_hash: &mut dyn FnMut(&Name) -> bool,
) -> Result<(BlockSource, HashUpdates)> {
    let unit = &*block.unit;
    let uses = Uses::of(unit, op);
    let mut out = HashUpdates { ticks, ..HashUpdates::default() };
    let mut locals: Vec<LocalId> = uses.updates.values().map(|found| found.local).collect();
    locals.sort_unstable();
    locals.dedup();
    locals.retain(|local| is_hash(&unit.locals[local.index()].name));
    if locals.is_empty() {
        return Ok((block.clone(), out));
    }
    for local in locals {
        out.hashes.insert(local, uses.one_kind(local)?);
    }
    let mut rewriting = Rewriting { hashes: &out.hashes, updates: &uses.updates, ticks, nodes: unit.nodes };
    let mut rewritten = unit.clone();
    visit::params_mut(&mut rewritten.params, &mut |node| rewriting.node(node));
    rewriting.node(&mut rewritten.body);
    rewritten.nodes = rewriting.nodes;
    let updates = uses.updates.iter().filter(|(_, found)| out.hashes.contains_key(&found.local));
    out.nodes = updates.map(|(node, found)| (*node, found.local)).collect();
    Ok((BlockSource { unit: Arc::new(rewritten), scope: block.scope }, out))
}

/// The error for an update whose value is used.
pub fn value_is_used(unit: &Unit, local: LocalId, span: Span) -> Error {
    let name = &unit.locals[local.index()].name;
    let message = format!("{name} is accumulated in this block, and the value of the accumulation is used here");
    let told = Diagnostic::new(&unit.source, span, message)
        .because("elements run at the same time: what they give together is known only after all of them")
        .advise(format!("read {name} after the call; end a block whose value is used with another value, such as nil"));
    Error::Conflict(Box::new(told))
}

impl<'a> Uses<'a> {
    fn of(unit: &'a Unit, op: SectionOp) -> Self {
        let void = accumulate::void_nodes(unit, op == SectionOp::Map, &accumulate::Valued::default());
        let (updates, parts, others) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        let mut uses = Uses { unit, void, updates, parts, others };
        visit::unit(unit, &mut |node| uses.see(node));
        uses
    }

    fn see(&mut self, node: &'a Node) {
        if self.parts.contains(&node.id) {
            return;
        }
        match &node.kind {
            Kind::Local(local) if self.is_captured(*local) => {
                self.others.entry(*local).or_insert(node.span);
            }
            Kind::Assign { target, .. } | Kind::OpAssign { target, .. } => match target {
                Target::Local(local, span) if self.is_captured(*local) => {
                    self.others.entry(*local).or_insert(*span);
                }
                _ => self.try_update(node),
            },
            Kind::If { .. } | Kind::Call(_) => self.try_update(node),
            _ => {}
        }
    }

    fn is_captured(&self, local: LocalId) -> bool {
        self.unit.locals[local.index()].origin == Origin::Captured
    }

    fn try_update(&mut self, node: &'a Node) {
        let mut parts = Vec::new();
        if let Some((local, update)) = self.update(node, &mut parts) {
            self.parts.extend(parts);
            self.updates.insert(node.id, Found { local, update, span: node.span });
        }
    }

    /// Reads a node as an update. `parts` receives the nodes that stand for the Hash.
    fn update(&self, node: &'a Node, parts: &mut Vec<NodeId>) -> Option<(LocalId, HashUpdate)> {
        match &node.kind {
            Kind::OpAssign { target, op: AssignOp::Method(op), .. } => {
                let (local, _) = self.place(target, parts)?;
                Some((local, HashUpdate::Operator(operator(op)?)))
            }
            Kind::Assign { target, value } => {
                let (local, key) = self.place(target, parts)?;
                Some((local, self.stored(local, key, value, parts).unwrap_or(HashUpdate::Store)))
            }
            Kind::If { cond, then, otherwise } if matches!(otherwise.kind, Kind::Nil) => {
                let then = single(then);
                let Kind::Assign { target, value } = &then.kind else { return None };
                let (local, key) = self.place(target, parts)?;
                let Kind::Call(test) = &cond.kind else { return None };
                let comparison = ["<", ">", "<=", ">="].into_iter().find(|known| **known == *test.name)?;
                let (left, right) = (test.receiver.as_ref()?, only_arg(test)?);
                parts.push(then.id);
                if self.reads(right, local, key, parts) && self.same(left, value) {
                    return Some((local, HashUpdate::If(comparison)));
                }
                let there = self.reads(left, local, key, parts) && self.same(right, value);
                there.then_some((local, HashUpdate::IfThere(comparison)))
            }
            Kind::Call(call) if matches!(&*call.name, "<<" | "push" | "append") && self.void.contains(&node.id) => {
                only_arg(call)?;
                let receiver = single(call.receiver.as_ref()?);
                match &receiver.kind {
                    Kind::OpAssign { target, op: AssignOp::Or, value } => {
                        let (local, _) = self.place(target, parts)?;
                        parts.push(receiver.id);
                        let is_empty = matches!(&value.kind, Kind::Array(items) if items.is_empty());
                        is_empty.then_some((local, HashUpdate::AppendToNew))
                    }
                    Kind::Call(at) if &*at.name == "[]" => {
                        only_arg(at)?;
                        let local = self.local(at.receiver.as_ref()?, parts)?;
                        parts.push(receiver.id);
                        Some((local, HashUpdate::Append))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// How `h[k] = value` updates what is there, if it reads that.
    fn stored(&self, local: LocalId, key: &Node, value: &'a Node, parts: &mut Vec<NodeId>) -> Option<HashUpdate> {
        let Kind::Call(call) = &value.kind else { return None };
        let receiver = call.receiver.as_ref()?;
        if let (Kind::Array(items), true) = (&receiver.kind, call.args.is_empty() && call.block.is_none()) {
            let [a, b] = items.as_slice() else { return None };
            let name = ["min", "max"].into_iter().find(|known| **known == *call.name)?;
            if self.reads(a, local, key, parts) {
                return Some(HashUpdate::Extreme(name));
            }
            return self.reads(b, local, key, parts).then_some(HashUpdate::ExtremeOfNew(name));
        }
        let operator = operator(&call.name)?;
        only_arg(call)?;
        self.reads(receiver, local, key, parts).then_some(HashUpdate::Operator(operator))
    }

    /// The Hash and the key of a target `h[k]`.
    fn place(&self, target: &'a Target, parts: &mut Vec<NodeId>) -> Option<(LocalId, &'a Node)> {
        let Target::Index { receiver, args, .. } = target else { return None };
        let [key] = args.as_slice() else { return None };
        let plain = !matches!(key.kind, Kind::Splat(_));
        plain.then_some((self.local(receiver, parts)?, key))
    }

    fn local(&self, node: &Node, parts: &mut Vec<NodeId>) -> Option<LocalId> {
        let Kind::Local(local) = node.kind else { return None };
        parts.push(node.id);
        self.is_captured(local).then_some(local)
    }

    /// Whether a node is `h[k]`, with the same key.
    fn reads(&self, node: &Node, local: LocalId, key: &Node, parts: &mut Vec<NodeId>) -> bool {
        let Kind::Call(call) = &node.kind else { return false };
        let (Some(receiver), Some(arg)) = (&call.receiver, only_arg(call)) else { return false };
        let it = &*call.name == "[]" && matches!(receiver.kind, Kind::Local(l) if l == local) && self.same(arg, key);
        if it {
            parts.push(receiver.id);
        }
        it
    }

    /// Whether two nodes have the same text, and evaluating them twice is as evaluating them once.
    fn same(&self, a: &Node, b: &Node) -> bool {
        is_pure(a) && self.unit.source.slice(a.span) == self.unit.source.slice(b.span)
    }

    /// The kind of all updates of a Hash.
    fn one_kind(&self, local: LocalId) -> Result<HashUpdate> {
        let name = &self.unit.locals[local.index()].name;
        let conflict = |span: Span, message: String, advice: String| {
            let told = Diagnostic::new(&self.unit.source, span, message)
                .because("elements run at the same time: what they give together is known only after all of them")
                .advise(advice);
            Error::Conflict(Box::new(told))
        };
        if let Some(span) = self.others.get(&local) {
            return Err(conflict(
                *span,
                format!("{name} is accumulated in this block, and used in another way here"),
                format!(
                    "only update {name}: {name}[key] += value (-, &, |), {name}[key] = [{name}[key], value].max (min), \
                     {name}[key] = value if value < {name}[key] (>), ({name}[key] ||= []) << value, \
                     {name}[key] = value; read it after the call"
                ),
            ));
        }
        let mut all: Vec<&Found> = self.updates.values().filter(|found| found.local == local).collect();
        all.sort_unstable_by_key(|found| found.span.start);
        let first = all[0].update;
        let is_sum = |found: &&Found| matches!(found.update, HashUpdate::Operator("+" | "-"));
        if all.iter().all(is_sum) && all.iter().any(|found| found.update != first) {
            return Ok(HashUpdate::Balance);
        }
        match all.iter().find(|found| found.update != first) {
            None => Ok(first),
            Some(other) => Err(conflict(
                other.span,
                format!("{name} is accumulated in two ways in this block"),
                format!("update {name} in one way, and another Hash in the other"),
            )),
        }
    }
}

/// The operators that accumulate.
fn operator(name: &str) -> Option<&'static str> {
    ["+", "-", "&", "|"].into_iter().find(|known| *known == name)
}

fn only_arg(call: &Call) -> Option<&Node> {
    match call.args.as_slice() {
        [Arg::Positional(arg)] if call.block.is_none() && call.block_arg.is_none() && !call.safe => {
            (!matches!(arg.kind, Kind::Splat(_))).then_some(arg)
        }
        _ => None,
    }
}

fn single(node: &Node) -> &Node {
    match &node.kind {
        Kind::Seq(items) if items.len() == 1 => single(&items[0]),
        _ => node,
    }
}

/// Whether a node only reads variables and literals, and computes with operators and methods without arguments.
fn is_pure(node: &Node) -> bool {
    match &node.kind {
        Kind::Nil | Kind::True | Kind::False | Kind::SelfRef => true,
        Kind::Int(_) | Kind::Float(_) | Kind::Sym(_) | Kind::Str(_) | Kind::Local(_) | Kind::Ivar(_) => true,
        Kind::Array(items) | Kind::DStr(items) => items.iter().all(is_pure),
        Kind::And(a, b) | Kind::Or(a, b) => is_pure(a) && is_pure(b),
        Kind::Not(of) => is_pure(of),
        Kind::If { cond, then, otherwise } => [cond, then, otherwise].into_iter().all(|part| is_pure(part)),
        Kind::Seq(items) => items.iter().all(is_pure),
        Kind::Call(call) => {
            let operator = call.name.chars().all(|c| !c.is_alphanumeric() && c != '_') && &*call.name != "<<";
            let reader = call.args.is_empty() && !call.name.ends_with('!');
            call.block.is_none()
                && call.block_arg.is_none()
                && (operator || reader)
                && call.receiver.as_ref().is_some_and(is_pure)
                && call.args.iter().all(|arg| matches!(arg, Arg::Positional(arg) if is_pure(arg)))
        }
        _ => false,
    }
}

struct Rewriting<'a> {
    hashes: &'a BTreeMap<LocalId, HashUpdate>,
    updates: &'a BTreeMap<NodeId, Found>,
    /// Whether pairs say in which tick they were made.
    ticks: bool,
    nodes: usize,
}

impl Rewriting<'_> {
    fn node(&mut self, node: &mut Node) {
        match self.updates.get(&node.id).filter(|found| self.hashes.contains_key(&found.local)) {
            Some(found) => {
                let kind = std::mem::replace(&mut node.kind, Kind::Nil);
                let Some((mut key, mut value)) = parts(kind, found.update) else { return };
                self.node(&mut key);
                self.node(&mut value);
                if (self.hashes[&found.local], found.update) == (HashUpdate::Balance, HashUpdate::Operator("-")) {
                    value = self.call(value.span, value, "-@", Vec::new());
                }
                node.kind = self.pair(found, key, value);
            }
            None => visit::children_mut(node, &mut |child| self.node(child)),
        }
    }

    fn made(&mut self, span: Span, kind: Kind) -> Node {
        self.nodes += 1;
        Node { id: NodeId::new(self.nodes - 1), span, kind }
    }

    /// `h = ::Ikra::Emitter.__pair(key, value, h)`
    fn pair(&mut self, found: &Found, key: Node, value: Node) -> Kind {
        let span = found.span;
        let ikra = self.made(span, Kind::Const(ConstPath { base: ConstBase::Top, name: "Ikra".into() }));
        let base = ConstBase::Of(Box::new(ikra));
        let emitter = self.made(span, Kind::Const(ConstPath { base, name: "Emitter".into() }));
        let mut args = vec![key, value, self.made(span, Kind::Local(found.local))];
        if self.ticks {
            let nil = self.made(span, Kind::Nil);
            args.push(self.call(span, nil, "%__tick", Vec::new()));
        }
        let name = if self.ticks { "__pair_in_tick" } else { "__pair" };
        let value = Box::new(self.call(span, emitter, name, args));
        Kind::Assign { target: Target::Local(found.local, span), value }
    }

    fn call(&mut self, span: Span, receiver: Node, name: &str, args: Vec<Node>) -> Node {
        let args = args.into_iter().map(Arg::Positional).collect();
        let call = Call {
            receiver: Some(receiver),
            name: name.into(),
            name_span: span,
            args,
            block: None,
            block_arg: None,
            safe: false,
            matches: false,
        };
        self.made(span, Kind::Call(Box::new(call)))
    }
}

/// The key and the value of an update.
fn parts(kind: Kind, update: HashUpdate) -> Option<(Node, Node)> {
    match kind {
        Kind::OpAssign { target, value, .. } => Some((key(target)?, *value)),
        Kind::Assign { target, value } => {
            let value = match (update, value.kind) {
                (HashUpdate::Operator(_), Kind::Call(call)) => sole(call.args)?,
                (HashUpdate::Extreme(_), Kind::Call(call)) => item(call.receiver?, 1)?,
                (HashUpdate::ExtremeOfNew(_), Kind::Call(call)) => item(call.receiver?, 0)?,
                (_, kind) => Node { kind, ..*value },
            };
            Some((key(target)?, value))
        }
        Kind::If { then, .. } => match unwrapped(*then).kind {
            Kind::Assign { target, value } => Some((key(target)?, *value)),
            _ => None,
        },
        Kind::Call(call) => {
            let value = sole(call.args)?;
            match unwrapped(call.receiver?).kind {
                Kind::OpAssign { target, .. } => Some((key(target)?, value)),
                Kind::Call(at) => Some((sole(at.args)?, value)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn key(target: Target) -> Option<Node> {
    match target {
        Target::Index { args, .. } => args.into_iter().next(),
        _ => None,
    }
}

fn sole(args: Vec<Arg>) -> Option<Node> {
    match args.into_iter().next()? {
        Arg::Positional(node) => Some(node),
        _ => None,
    }
}

fn item(list: Node, at: usize) -> Option<Node> {
    match list.kind {
        Kind::Array(items) => items.into_iter().nth(at),
        _ => None,
    }
}

fn unwrapped(node: Node) -> Node {
    match node.kind {
        Kind::Seq(mut items) if items.len() == 1 => unwrapped(items.remove(0)),
        kind => Node { kind, ..node },
    }
}
