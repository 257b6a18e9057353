//! Captured Hashes into which a block accumulates, as by `counts[word] += 1`.
//!
//! Here: finding the updates in the tree, and the block without them. Each becomes `counts = a pair of key, value and
//! counts`. So the local is a chain of pairs within an element, and the last one is what the element leaves behind.
//! Where the section's tables take the pairs of one Hash ([`HashUpdates::tabled`]), each of its updates adds a pair to
//! them, and 1 to the local. Not here: what becomes of the chains and of the tables, which the host reads after the
//! section.
//!
//! Invariant: nothing else in the block reads or sets such a Hash, and all updates of one are of one kind. So only the
//! order of updates matters, which the chains keep.

use super::{BlockSource, SectionOp, accumulate};
use crate::diagnostic::{Diagnostic, Span};
use crate::error::{Error, Result};
use crate::syntax::ast::{
    Arg, AssignOp, Call, ConstBase, ConstPath, Kind, Local, LocalId, Node, NodeId, Origin, Target, Unit,
};
use crate::syntax::{self, visit};
use crate::types::combine::{HashStep, HashUpdate, Missing, Seed};
use crate::world::World;
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
    /// The Hash whose pairs go into the section's tables. Its local counts the pairs of an element.
    pub tabled: Option<LocalId>,
}

/// How a section collects the pairs that update captured Hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pairs {
    /// It may have several ticks.
    pub ticks: bool,
    /// Its tables take the pairs of one Hash.
    pub tables: bool,
}

/// One update.
struct Found {
    local: LocalId,
    update: HashUpdate,
    span: Span,
}

/// `h[k] ||= 0`, before `h[k] += v`.
struct Given<'a> {
    local: LocalId,
    key: &'a Node,
    /// None: `h[k] ||= []`.
    missing: Option<Missing>,
}

/// What a block does with the captured locals that it may update.
struct Uses<'a> {
    unit: &'a Unit,
    void: BTreeSet<NodeId>,
    updates: BTreeMap<NodeId, Found>,
    /// Nodes that are parts of updates.
    parts: BTreeSet<NodeId>,
    /// Statements that are a part of the update after them.
    dropped: BTreeMap<NodeId, LocalId>,
    /// Where an exception, or a jump, may be caught.
    catching: Vec<Span>,
    /// The first other use of each local.
    others: BTreeMap<LocalId, Span>,
}

/// Whether a block may update a captured Hash.
pub fn may_update(unit: &Unit) -> bool {
    !Uses::of(unit, SectionOp::Each).updates.is_empty()
}

/// The block with its updates of Hashes rewritten.
///
/// # Errors
/// `Conflict` for another use of a Hash that is updated, and for updates of several kinds.
pub fn rewrite(
    block: &BlockSource,
    op: SectionOp,
    Pairs { ticks, tables }: Pairs,
    world: &mut dyn World,
) -> Result<(BlockSource, HashUpdates)> {
    let unit = &*block.unit;
    let uses = Uses::of(unit, op);
    let mut out = HashUpdates { ticks, ..HashUpdates::default() };
    let mut locals: Vec<LocalId> = uses.updates.values().map(|found| found.local).collect();
    locals.sort_unstable();
    locals.dedup();
    locals.retain(|local| world.captures_hash(&unit.locals[local.index()].name));
    if locals.is_empty() {
        return Ok((block.clone(), out));
    }
    for local in locals {
        out.hashes.insert(local, uses.one_kind(local)?);
    }
    if tables && !ticks {
        let mut takes = |(local, update): &(&LocalId, &HashUpdate)| {
            let mut has_default = || world.captures_default(&unit.locals[local.index()].name);
            update.total().is_some() && (update.beyond().is_none() || has_default())
        };
        out.tabled = out.hashes.iter().find(&mut takes).map(|(local, _)| *local);
    }
    let (updates, dropped) = (&uses.updates, &uses.dropped);
    let mut rewriting = Rewriting { updates, dropped, nodes: unit.nodes, of: &out, default: None };
    let mut rewritten = unit.clone();
    if let Some(local) = out.tabled.filter(|local| out.hashes[local].beyond().is_some()) {
        let name = syntax::default_of(&unit.locals[local.index()].name);
        rewriting.default = Some(LocalId::new(rewritten.locals.len()));
        rewritten.locals.push(Local { name, origin: Origin::Captured });
    }
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
        let mut uses = Uses {
            unit,
            void,
            updates: BTreeMap::new(),
            parts: BTreeSet::new(),
            dropped: BTreeMap::new(),
            catching: Vec::new(),
            others: BTreeMap::new(),
        };
        visit::unit(unit, &mut |node| uses.see(node));
        uses
    }

    fn see(&mut self, node: &'a Node) {
        if self.parts.contains(&node.id) || self.updates.contains_key(&node.id) {
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
            Kind::If { .. } => self.try_update(node),
            Kind::Call(call) => {
                self.catching.extend(call.block.as_ref().map(|block| block.span));
                self.try_update(node);
            }
            Kind::Lambda(block) => self.catching.push(block.span),
            Kind::Begin { .. } => self.catching.push(node.span),
            Kind::Seq(items) => items.windows(2).for_each(|pair| self.try_pair(&pair[0], &pair[1])),
            _ => {}
        }
    }

    /// Reads a statement as `h[k] ||= 0`, `h[k] = 0 unless h.key?(k)` or the like.
    fn given(&self, node: &'a Node) -> Option<Given<'a>> {
        let mut unused = Vec::new();
        match &node.kind {
            Kind::OpAssign { target, op: AssignOp::Or, value } => {
                let (local, key) = self.place(target, &mut unused)?;
                let missing = match &value.kind {
                    Kind::Array(items) if items.is_empty() => None,
                    _ => Some(Missing::Falsy(seed(value)?)),
                };
                Some(Given { local, key, missing })
            }
            Kind::If { cond, then, otherwise } => {
                let (cond, assign) = match &single(cond).kind {
                    Kind::Not(cond) if matches!(otherwise.kind, Kind::Nil) => (single(cond), single(then)),
                    _ if matches!(then.kind, Kind::Nil) => (single(cond), single(otherwise)),
                    _ => return None,
                };
                let Kind::Assign { target, value } = &assign.kind else { return None };
                let (local, key) = self.place(target, &mut unused)?;
                let missing = match self.reads(cond, local, key, &mut unused) {
                    true => Missing::Falsy(seed(value)?),
                    false if self.has_key(cond, local, key) => Missing::Absent(seed(value)?),
                    false => return None,
                };
                Some(Given { local, key, missing: Some(missing) })
            }
            _ => None,
        }
    }

    /// Whether a node is `h.key?(k)`.
    fn has_key(&self, node: &Node, local: LocalId, key: &Node) -> bool {
        let Kind::Call(call) = &node.kind else { return false };
        let named = matches!(&*call.name, "key?" | "has_key?" | "include?" | "member?");
        let of_it = call.receiver.as_ref().is_some_and(|of| matches!(of.kind, Kind::Local(l) if l == local));
        named && of_it && only_arg(call).is_some_and(|arg| self.same(arg, key))
    }

    /// Reads two statements as one update, as in `h[k] ||= 0; h[k] += v`.
    fn try_pair(&mut self, first: &'a Node, second: &'a Node) {
        let mut parts = Vec::new();
        let whole = self.given(first).and_then(|given| {
            let (local, update) = self.update(second, &mut parts).filter(|(local, _)| *local == given.local)?;
            Some((local, self.after_given(&given, second, update)?))
        });
        if let Some((local, update)) = whole {
            visit::node(first, &mut |node| parts.push(node.id));
            self.parts.extend(parts);
            self.dropped.insert(first.id, local);
            self.updates.insert(second.id, Found { local, update, span: second.span });
        }
    }

    /// An update and the statement before it. Ruby runs that first. So the value must not end in an exception that the
    /// block rescues.
    fn after_given(&self, given: &Given<'_>, node: &Node, mut update: HashUpdate) -> Option<HashUpdate> {
        let (key, value) = match &node.kind {
            Kind::OpAssign { target: Target::Index { args, .. }, value, .. } => (args.first()?, &**value),
            Kind::Call(call) => {
                let Kind::Call(at) = &single(call.receiver.as_ref()?).kind else { return None };
                (only_arg(at)?, only_arg(call)?)
            }
            _ => return None,
        };
        match (update.step, given.missing) {
            (HashStep::Operator(_), Some(missing)) => update.missing = Some(missing),
            (HashStep::Append, None) => update.step = HashStep::AppendToNew,
            _ => return None,
        }
        let caught = || self.catching.iter().any(|span| span.start <= node.span.start && node.span.end <= span.end);
        let hidden = is_simple(value) || is_pure(value) && !caught();
        (self.same(key, given.key) && hidden).then_some(update)
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
                Some((local, HashStep::Operator(operator(op)?).into()))
            }
            // Ruby evaluates the value only where it is stored
            Kind::OpAssign { target, op: AssignOp::Or, value } if is_simple(value) => {
                let (local, _) = self.place(target, parts)?;
                Some((local, HashStep::Default.into()))
            }
            Kind::Assign { target, value } => {
                let (local, key) = self.place(target, parts)?;
                Some((local, self.stored(local, key, value, parts)))
            }
            Kind::If { cond, then, otherwise } if matches!(otherwise.kind, Kind::Nil) => {
                let then = single(then);
                let Kind::Assign { target, value } = &then.kind else { return None };
                let (local, key) = self.place(target, parts)?;
                parts.push(then.id);
                Some((local, self.stored_if(single(cond), local, key, value, parts)?.into()))
            }
            Kind::Call(call) if &*call.name == "store" && call.block.is_none() && call.block_arg.is_none() => {
                let [Arg::Positional(key), Arg::Positional(value)] = call.args.as_slice() else { return None };
                if call.safe || [key, value].iter().any(|arg| matches!(arg.kind, Kind::Splat(_))) {
                    return None;
                }
                let local = self.local(call.receiver.as_ref()?, parts)?;
                Some((local, self.stored(local, key, value, parts)))
            }
            Kind::Call(call) if matches!(&*call.name, "<<" | "push" | "append") && self.void.contains(&node.id) => {
                only_arg(call)?;
                let receiver = single(call.receiver.as_ref()?);
                match &receiver.kind {
                    Kind::OpAssign { target, op: AssignOp::Or, value } => {
                        let (local, _) = self.place(target, parts)?;
                        parts.push(receiver.id);
                        let is_empty = matches!(&value.kind, Kind::Array(items) if items.is_empty());
                        is_empty.then_some((local, HashStep::AppendToNew.into()))
                    }
                    Kind::Call(at) if &*at.name == "[]" => {
                        only_arg(at)?;
                        let local = self.local(at.receiver.as_ref()?, parts)?;
                        parts.push(receiver.id);
                        Some((local, HashStep::Append.into()))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// How `h[k] = value` updates what is there.
    fn stored(&self, local: LocalId, key: &Node, value: &'a Node, parts: &mut Vec<NodeId>) -> HashUpdate {
        let mut read = Vec::new();
        let Some(update) = self.computed(local, key, value, &mut read) else { return HashStep::Store.into() };
        parts.append(&mut read);
        update
    }

    /// How `h[k] = value` updates what is there, if it reads that.
    fn computed(&self, local: LocalId, key: &Node, value: &'a Node, parts: &mut Vec<NodeId>) -> Option<HashUpdate> {
        let Kind::Call(call) = &value.kind else { return None };
        let receiver = single(call.receiver.as_ref()?);
        if call.args.is_empty() && call.block.is_none() && call.block_arg.is_none() && !call.safe {
            let name = ["min", "max"].into_iter().find(|known| **known == *call.name)?;
            let (list, compact) = match &receiver.kind {
                Kind::Call(of) if is_reader(of, "compact") => (of.receiver.as_ref()?, true),
                _ => (receiver, false),
            };
            let Kind::Array(items) = &list.kind else { return None };
            let [a, b] = items.as_slice() else { return None };
            let (missing, first) = match self.reads_or(a, local, key, parts) {
                Some(missing) => (missing, true),
                None => (self.reads_or(b, local, key, parts)?, false),
            };
            let step = match (compact, first) {
                (false, true) => HashStep::Extreme(name),
                (false, false) => HashStep::ExtremeOfNew(name),
                (true, true) => HashStep::Compact(name),
                (true, false) => HashStep::CompactOfNew(name),
            };
            return Some(HashUpdate { step, missing });
        }
        let step = HashStep::Operator(operator(&call.name)?);
        only_arg(call)?;
        Some(HashUpdate { step, missing: self.reads_or(receiver, local, key, parts)? })
    }

    /// How `h[k] = value if cond` updates what is there.
    fn stored_if(
        &self,
        cond: &Node,
        local: LocalId,
        key: &Node,
        value: &Node,
        parts: &mut Vec<NodeId>,
    ) -> Option<HashStep> {
        let (test, any) = match &cond.kind {
            Kind::Or(none, test) => {
                let Kind::Call(none) = &single(none).kind else { return None };
                if !is_reader(none, "nil?") || !self.reads(single(none.receiver.as_ref()?), local, key, parts) {
                    return None;
                }
                (single(test), true)
            }
            _ => (cond, false),
        };
        let Kind::Call(test) = &test.kind else { return None };
        let comparison = ["<", ">", "<=", ">="].into_iter().find(|known| **known == *test.name)?;
        let (left, right) = (test.receiver.as_ref()?, only_arg(test)?);
        if self.reads(right, local, key, parts) && self.same(left, value) {
            return Some(if any { HashStep::IfAny(comparison) } else { HashStep::If(comparison) });
        }
        let there = self.reads(left, local, key, parts) && self.same(right, value);
        there.then_some(if any { HashStep::IfAnyThere(comparison) } else { HashStep::IfThere(comparison) })
    }

    /// Whether a node is `h[k]`, `h[k] || 0` or `h.fetch(k, 0)`: with what stands for a missing value.
    fn reads_or(&self, node: &Node, local: LocalId, key: &Node, parts: &mut Vec<NodeId>) -> Option<Option<Missing>> {
        let node = single(node);
        match &node.kind {
            Kind::Or(there, otherwise) if self.reads(single(there), local, key, parts) => {
                Some(Some(Missing::Falsy(seed(otherwise)?)))
            }
            Kind::Call(call) if &*call.name == "fetch" && call.block.is_none() && call.block_arg.is_none() => {
                let [Arg::Positional(asked), Arg::Positional(otherwise)] = call.args.as_slice() else { return None };
                let receiver = call.receiver.as_ref()?;
                let of_it = matches!(receiver.kind, Kind::Local(l) if l == local) && !call.safe;
                if !of_it || !self.same(asked, key) {
                    return None;
                }
                parts.push(receiver.id);
                Some(Some(Missing::Absent(seed(otherwise)?)))
            }
            _ => self.reads(node, local, key, parts).then_some(None),
        }
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
        let is_sum = |found: &&Found| {
            matches!(found.update.step, HashStep::Operator("+" | "-")) && found.update.missing == first.missing
        };
        if all.iter().all(is_sum) && all.iter().any(|found| found.update != first) {
            return Ok(HashUpdate { step: HashStep::Balance, ..first });
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

/// `of.name`, without anything else.
fn is_reader(call: &Call, name: &str) -> bool {
    *call.name == *name && call.args.is_empty() && call.block.is_none() && call.block_arg.is_none() && !call.safe
}

/// A literal that may stand for a missing value.
fn seed(node: &Node) -> Option<Seed> {
    match &single(node).kind {
        Kind::Int(value) => Some(Seed::Int(*value)),
        Kind::Float(value) => Some(Seed::Float(value.to_bits())),
        Kind::Str(bytes) if bytes.is_empty() => Some(Seed::Text),
        _ => None,
    }
}

/// Whether a node is a literal or a variable, which never raises.
fn is_simple(node: &Node) -> bool {
    let literal = matches!(node.kind, Kind::Int(_) | Kind::Float(_) | Kind::Sym(_) | Kind::Str(_));
    let named = matches!(node.kind, Kind::Nil | Kind::True | Kind::False | Kind::SelfRef);
    literal || named || matches!(node.kind, Kind::Local(_) | Kind::Ivar(_))
}

/// Whether a node only reads variables and literals, and computes with operators and methods without arguments.
fn is_pure(node: &Node) -> bool {
    match &node.kind {
        _ if is_simple(node) => true,
        Kind::Array(items) => items.iter().all(is_pure),
        Kind::DStr(text) => text.pieces().into_iter().all(is_pure),
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
    of: &'a HashUpdates,
    updates: &'a BTreeMap<NodeId, Found>,
    dropped: &'a BTreeMap<NodeId, LocalId>,
    nodes: usize,
    /// What the Hash whose pairs go into tables gives for other keys, where updates compare with that.
    default: Option<LocalId>,
}

impl Rewriting<'_> {
    fn node(&mut self, node: &mut Node) {
        if self.dropped.get(&node.id).is_some_and(|local| self.of.hashes.contains_key(local)) {
            node.kind = Kind::Nil;
            return;
        }
        match self.updates.get(&node.id).filter(|found| self.of.hashes.contains_key(&found.local)) {
            Some(found) => {
                let kind = std::mem::replace(&mut node.kind, Kind::Nil);
                let Some((mut key, mut value)) = parts(kind, found.update.step) else { return };
                self.node(&mut key);
                self.node(&mut value);
                if (self.of.hashes[&found.local].step, found.update.step)
                    == (HashStep::Balance, HashStep::Operator("-"))
                {
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

    /// `h = h.__pair(key, value)`, where tables take the pairs.
    fn counted(&mut self, found: &Found, key: Node, value: Node) -> Kind {
        let span = found.span;
        let number = self.made(span, Kind::Local(found.local));
        let mut args = vec![key, value];
        let name = match found.update.beyond() {
            None => "%__pair",
            Some("<") => "%__pair_below",
            Some(">") => "%__pair_above",
            Some("<=") => "%__pair_up_to",
            Some(_) => "%__pair_from",
        };
        if let (Some(default), true) = (self.default, found.update.beyond().is_some()) {
            args.push(self.made(span, Kind::Local(default)));
        }
        let value = Box::new(self.call(span, number, name, args));
        Kind::Assign { target: Target::Local(found.local, span), value }
    }

    /// `h = ::Ikra::Emitter.__pair(key, value, h)`
    fn pair(&mut self, found: &Found, key: Node, value: Node) -> Kind {
        if self.of.tabled == Some(found.local) {
            return self.counted(found, key, value);
        }
        let span = found.span;
        let ikra = self.made(span, Kind::Const(ConstPath { base: ConstBase::Top, name: "Ikra".into() }));
        let base = ConstBase::Of(Box::new(ikra));
        let emitter = self.made(span, Kind::Const(ConstPath { base, name: "Emitter".into() }));
        let mut args = vec![key, value, self.made(span, Kind::Local(found.local))];
        if self.of.ticks {
            let nil = self.made(span, Kind::Nil);
            args.push(self.call(span, nil, "%__tick", Vec::new()));
        }
        let name = if self.of.ticks { "__pair_in_tick" } else { "__pair" };
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
fn parts(kind: Kind, step: HashStep) -> Option<(Node, Node)> {
    match kind {
        Kind::OpAssign { target, value, .. } => Some((key(target)?, *value)),
        Kind::Assign { target, value } => Some((key(target)?, stored(*value, step)?)),
        Kind::If { then, .. } => match unwrapped(*then).kind {
            Kind::Assign { target, value } => Some((key(target)?, *value)),
            _ => None,
        },
        Kind::Call(call) if &*call.name == "store" => {
            let mut args = call.args.into_iter();
            let (Arg::Positional(key), Arg::Positional(value)) = (args.next()?, args.next()?) else { return None };
            Some((key, stored(value, step)?))
        }
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

/// The value with which `h[k] = stored` updates what is there.
fn stored(stored: Node, step: HashStep) -> Option<Node> {
    match (step, stored.kind) {
        (HashStep::Operator(_), Kind::Call(call)) => sole(call.args),
        (HashStep::Extreme(_), Kind::Call(call)) => item(call.receiver?, 1),
        (HashStep::ExtremeOfNew(_), Kind::Call(call)) => item(call.receiver?, 0),
        (HashStep::Compact(_) | HashStep::CompactOfNew(_), Kind::Call(call)) => {
            let at = usize::from(matches!(step, HashStep::Compact(_)));
            match unwrapped(call.receiver?).kind {
                Kind::Call(compact) => item(compact.receiver?, at),
                _ => None,
            }
        }
        (_, kind) => Some(Node { kind, ..stored }),
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
    match unwrapped(list).kind {
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
