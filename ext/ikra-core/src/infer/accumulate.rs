//! Captured locals that the block assigns: which of them are reductions.
//!
//! Here: recognising `sum += x`, `sum = sum + x`, `max = x if x > max` and `max = [max, x].max` from the tree alone.
//! Not here: the combination itself (each backend stores one contribution per element, the host combines them). A local
//! is an accumulator if every use of it in the block has such a form, with one operation, and its value is not used.
//! Every other captured local that is assigned keeps its last writer, and must be written before it is read.

use super::{Analysis, SectionOp, SpecId};
use crate::diagnostic::Span;
use crate::syntax::ast::{Arg, AssignOp, Block, Call, Kind, LocalId, Node, NodeId, Origin, Target, Unit};
use crate::types::combine::{Combine, Equals, Wording};
use crate::types::{Atom, Ty};
use std::collections::{BTreeMap, BTreeSet};

/// The uses of the locals around the block.
#[derive(Debug, Default, Clone)]
pub struct Accumulators {
    /// Reduced locals, with the operation, its written form and the first position.
    pub reduced: BTreeMap<LocalId, (Combine, Wording, Span)>,
    /// Locals whose last writer counts, with the first position.
    pub last: BTreeMap<LocalId, Span>,
    /// The locals of `last` whose assignments are all contributions, and which would be reduced if the block did not
    /// read them. With the position of the first read.
    pub read: BTreeMap<LocalId, Span>,
    /// Statements that contribute once to a reduced local.
    pub nodes: BTreeSet<NodeId>,
    /// Types of the contributions, or of the values written; grown by inference.
    pub types: BTreeMap<LocalId, Ty>,
}

/// One contribution: `local = local combine value`, or `local - value` where `negated`.
#[derive(Debug, Clone, Copy)]
pub struct Contribution<'a> {
    pub local: LocalId,
    pub combine: Combine,
    pub negated: bool,
    pub wording: Wording,
    pub value: &'a Node,
}

/// The operation of an operator that may accumulate, and whether it negates the value.
pub fn combine_of(operator: &str) -> Option<(Combine, bool)> {
    known(operator).map(|(combine, negated, _)| (combine, negated))
}

impl Analysis<'_> {
    /// Whether `… op= n` may be one atomic step for each element: its value is not used, and memory has such an
    /// operation.
    pub fn may_accumulate(&mut self, spec: SpecId, node: NodeId, op: &str) -> bool {
        combine_of(op).is_some_and(|(combine, _)| combine != Combine::Mul)
            && self.spec(spec).void.contains(&node)
            && self.combines_as_rubys(spec, op)
    }

    /// Whether the section's block sets a class variable as it would a captured one.
    pub fn sets_class_variable(&self, variable: &str) -> bool {
        self.spec(Analysis::BLOCK).unit.locals.iter().any(|local| &*local.name == variable)
    }

    /// Whether an operator of numbers that accumulates is Ruby's own.
    pub fn combines_as_rubys(&mut self, spec: SpecId, op: &str) -> bool {
        self.reaches_rubys(spec, Atom::Int, op)
            && (!matches!(op, "+" | "-" | "*") || self.reaches_rubys(spec, Atom::Float, op))
    }
}

/// As [`combine_of`], and the operator.
fn known(operator: &str) -> Option<(Combine, bool, &'static str)> {
    Some(match operator {
        "+" => (Combine::Add, false, "+"),
        "-" => (Combine::Add, true, "-"),
        "*" => (Combine::Mul, false, "*"),
        "&" => (Combine::And, false, "&"),
        "|" => (Combine::Or, false, "|"),
        "^" => (Combine::Xor, false, "^"),
        _ => return None,
    })
}

fn is_local(node: &Node, local: LocalId) -> bool {
    matches!(node.kind, Kind::Local(l) if l == local)
}

fn single_arg(call: &Call) -> Option<&Node> {
    match call.args.as_slice() {
        [Arg::Positional(arg)] if call.block.is_none() && call.block_arg.is_none() && !call.safe => Some(arg),
        _ => None,
    }
}

/// Reads a node as a contribution, if it has that form.
pub fn contribution<'a>(unit: &Unit, node: &'a Node) -> Option<Contribution<'a>> {
    match &node.kind {
        Kind::OpAssign { target: Target::Local(local, _), op: AssignOp::Method(op), value } => {
            let (combine, negated, operator) = known(op)?;
            let wording = Wording { operator, local_first: true };
            Some(Contribution { local: *local, combine, negated, wording, value })
        }
        Kind::Assign { target: Target::Local(local, _), value } => {
            let Kind::Call(call) = &value.kind else { return None };
            let receiver = call.receiver.as_ref()?;
            if let (Kind::Array(items), true) = (&receiver.kind, call.args.is_empty() && call.block.is_none()) {
                // of equal values, Ruby's min and max take the first
                let (local_first, equals, value) = match items.as_slice() {
                    [a, b] if is_local(a, *local) => (true, Equals::Earliest, b),
                    [a, b] if is_local(b, *local) => (false, Equals::Latest, a),
                    _ => return None,
                };
                let (combine, operator) = match &*call.name {
                    "max" => (Combine::Max(equals), "max"),
                    "min" => (Combine::Min(equals), "min"),
                    _ => return None,
                };
                let wording = Wording { operator, local_first };
                return Some(Contribution { local: *local, combine, negated: false, wording, value });
            }
            let (combine, negated, operator) = known(&call.name)?;
            let arg = single_arg(call)?;
            let wording = |local_first| Wording { operator, local_first };
            if is_local(receiver, *local) {
                Some(Contribution { local: *local, combine, negated, wording: wording(true), value: arg })
            } else if is_local(arg, *local) && !negated {
                Some(Contribution { local: *local, combine, negated, wording: wording(false), value: receiver })
            } else {
                None
            }
        }
        Kind::If { cond, then, otherwise } if matches!(otherwise.kind, Kind::Nil) => {
            let Kind::Assign { target: Target::Local(local, _), value } = &single(then).kind else { return None };
            let Kind::Call(test) = &cond.kind else { return None };
            let (left, right) = (test.receiver.as_ref()?, single_arg(test)?);
            let (other, operator, local_first, greater) = match &*test.name {
                ">" if is_local(right, *local) => (left, ">", false, true),
                "<" if is_local(right, *local) => (left, "<", false, false),
                "<" if is_local(left, *local) => (right, "<", true, true),
                ">" if is_local(left, *local) => (right, ">", true, false),
                _ => return None,
            };
            // the tested and the assigned value must be the same variable, which is read twice
            let same = matches!((&other.kind, &value.kind), (Kind::Local(a), Kind::Local(b)) if a == b)
                || matches!((&other.kind, &value.kind), (Kind::Ivar(a), Kind::Ivar(b)) if a == b)
                || (is_pure_path(value) && unit.source.slice(other.span) == unit.source.slice(value.span));
            let combine = if greater { Combine::Max(Equals::Earliest) } else { Combine::Min(Equals::Earliest) };
            let wording = Wording { operator, local_first };
            same.then_some(Contribution { local: *local, combine, negated: false, wording, value })
        }
        _ => None,
    }
}

/// The first assignment to a variable from outside the unit.
pub fn first_capture_written(unit: &Unit) -> Option<(LocalId, Span)> {
    let written = Scan::of(unit, true, &Valued::default()).written;
    written.into_iter().min_by_key(|(_, span)| span.start)
}

fn single(node: &Node) -> &Node {
    match &node.kind {
        Kind::Seq(items) if items.len() == 1 => single(&items[0]),
        _ => node,
    }
}

/// Whether a node is `x`, `@x` or `x.y.z`. Reading it twice gives the same value, unless a method in it is more than a
/// reader; then the second reading counts.
fn is_pure_path(node: &Node) -> bool {
    match &node.kind {
        Kind::Local(_) | Kind::Ivar(_) | Kind::SelfRef => true,
        Kind::Call(call) => {
            call.args.is_empty() && call.block.is_none() && call.receiver.as_ref().is_some_and(is_pure_path)
        }
        _ => false,
    }
}

/// Finds the accumulators of a section's block.
pub fn find(unit: &Unit, op: SectionOp, valued: &Valued) -> Accumulators {
    let scan = Scan::of(unit, op == SectionOp::Map, valued);
    let mut out = Accumulators::default();
    for (local, span) in &scan.written {
        let uses = scan.reduced.get(local).filter(|_| !scan.plain.contains_key(local));
        match uses.and_then(|uses| Some((uses, one_of(uses.iter().map(|(combine, ..)| *combine))?))) {
            Some((uses, combine)) => {
                let first = uses[0].1;
                let telling = |w: &Wording| w.is_list() || first.operator == "-" && w.operator != "-";
                let wording = uses.iter().map(|(_, wording, _)| *wording).find(telling).unwrap_or(first);
                out.reduced.insert(*local, (combine, wording, *span));
                out.nodes.extend(uses.iter().map(|(.., n)| *n));
            }
            _ => {
                out.last.insert(*local, *span);
                if let (Some(span), false) = (scan.plain.get(local), scan.assigned.contains(local)) {
                    out.read.insert(*local, *span);
                }
            }
        }
    }
    out
}

/// The common operation of all of a local's contributions.
fn one_of(mut uses: impl Iterator<Item = Combine>) -> Option<Combine> {
    let first = uses.next()?;
    uses.try_fold(first, |a, b| match (a, b) {
        // which of equal values is kept is then arbitrary; that matters only for 0.0 and -0.0, or for a start of the
        // other numeric class
        (Combine::Min(a), Combine::Min(b)) if a != b => Some(Combine::Min(Equals::Earliest)),
        (Combine::Max(a), Combine::Max(b)) if a != b => Some(Combine::Max(Equals::Earliest)),
        (a, b) => (a == b).then_some(a),
    })
}

/// The nodes of a unit whose value is not used. `used`: whether the value of its body is.
pub fn void_nodes(unit: &Unit, used: bool, valued: &Valued) -> BTreeSet<NodeId> {
    Scan::of(unit, used, valued).void
}

/// Literal blocks whose value is used although the method that takes them has the name of one of Ruby's iterators.
#[derive(Debug, Default, Clone)]
pub struct Valued(std::collections::HashSet<(String, u32, Span)>);

impl Valued {
    fn place(unit: &Unit, block: &Block) -> (String, u32, Span) {
        (unit.source.path.clone(), unit.source.first_line, block.span)
    }
    pub fn insert(&mut self, unit: &Unit, block: &Block) {
        self.0.insert(Self::place(unit, block));
    }
    fn contains(&self, unit: &Unit, block: &Block) -> bool {
        !self.0.is_empty() && self.0.contains(&Self::place(unit, block))
    }
}

struct Scan<'a> {
    unit: &'a Unit,
    valued: &'a Valued,
    reduced: BTreeMap<LocalId, Vec<(Combine, Wording, NodeId)>>,
    /// Locals with a use that is not a contribution, with the first position.
    plain: BTreeMap<LocalId, Span>,
    written: BTreeMap<LocalId, Span>,
    /// Locals with an assignment that is not a contribution.
    assigned: BTreeSet<LocalId>,
    void: BTreeSet<NodeId>,
}

impl<'a> Scan<'a> {
    fn of(unit: &'a Unit, used: bool, valued: &'a Valued) -> Self {
        let mut scan = Scan {
            unit,
            valued,
            reduced: BTreeMap::new(),
            plain: BTreeMap::new(),
            written: BTreeMap::new(),
            assigned: BTreeSet::new(),
            void: BTreeSet::new(),
        };
        for (_, default) in &unit.params.optional {
            scan.node(default, true);
        }
        scan.node(&unit.body, used);
        scan
    }

    fn captured(&self, local: LocalId) -> bool {
        self.unit.locals[local.index()].origin == Origin::Captured
    }

    fn write(&mut self, local: LocalId, span: Span) {
        if self.captured(local) {
            self.written.entry(local).or_insert(span);
        }
    }

    fn node(&mut self, node: &Node, used: bool) {
        if !used
            && let Some(c) = contribution(self.unit, node)
            && self.captured(c.local)
        {
            self.write(c.local, node.span);
            self.reduced.entry(c.local).or_default().push((c.combine, c.wording, node.id));
            // in the `if` form the test reads the same value; a use of the local inside the value is not a contribution
            return self.node(c.value, true);
        }
        if !used {
            self.void.insert(node.id);
        }
        match &node.kind {
            Kind::Local(local) => {
                self.plain.entry(*local).or_insert(node.span);
            }
            Kind::Assign { target, value } | Kind::OpAssign { target, value, .. } => {
                self.node(value, true);
                match (target, contribution(self.unit, node)) {
                    // a contribution whose value is used
                    (Target::Local(local, span), Some(_)) => {
                        self.write(*local, *span);
                        self.plain.entry(*local).or_insert(*span);
                    }
                    _ => self.target(target),
                }
            }
            Kind::MultiAssign { before, rest, after, value } => {
                self.node(value, true);
                for t in before.iter().chain(rest.iter().flatten().map(|b| &**b)).chain(after) {
                    self.target(t);
                }
            }
            Kind::Seq(items) => {
                for (i, item) in items.iter().enumerate() {
                    self.node(item, used && i + 1 == items.len());
                }
            }
            Kind::If { cond, then, otherwise } => {
                self.node(cond, true);
                self.node(then, used);
                self.node(otherwise, used);
            }
            Kind::Case { subject, whens, otherwise } => {
                subject.iter().for_each(|s| self.node(s, true));
                for when in whens {
                    when.tests.iter().for_each(|t| self.node(t, true));
                    self.node(&when.body, used);
                }
                self.node(otherwise, used);
            }
            Kind::Spread { size, calls, .. } => {
                self.node(size, true);
                calls.iter().for_each(|call| self.node(call, used));
            }
            Kind::While { cond, body, .. } => {
                self.node(cond, true);
                self.node(body, false);
            }
            Kind::For { target, over, body } => {
                self.node(over, true);
                self.target(target);
                self.node(body, false);
            }
            Kind::And(a, b) | Kind::Or(a, b) => {
                self.node(a, true);
                self.node(b, used);
            }
            Kind::Call(call) => {
                call.receiver.iter().for_each(|r| self.node(r, true));
                self.args(&call.args);
                match &call.block_arg {
                    // the section's own block, passed to a method
                    Some(Node { kind: Kind::Lambda(block), .. }) if block.section => {
                        self.block(block, used || self.valued.contains(self.unit, block));
                    }
                    arg => arg.iter().for_each(|b| self.node(b, true)),
                }
                if let Some(block) = &call.block {
                    // this guesses by name; if the guess is wrong, the block is added to `valued`, and analysis begins
                    // again
                    let for_effect = !used
                        || call.name.starts_with("each")
                        || matches!(
                            &*call.name,
                            "times" | "upto" | "downto" | "step" | "loop" | "reverse_each" | "%__each_with_index"
                        );
                    self.block(block, !for_effect || self.valued.contains(self.unit, block));
                }
            }
            Kind::Super { args, block } => {
                args.iter().for_each(|a| self.args(a));
                block.iter().for_each(|b| self.block(b, true));
            }
            Kind::Yield(args) => self.args(args),
            Kind::Lambda(block) => self.block(block, true),
            Kind::Not(x) | Kind::Splat(x) | Kind::Defined(x) => self.node(x, true),
            Kind::Break(x) | Kind::Next(x) | Kind::Return(x) => x.iter().for_each(|x| self.node(x, true)),
            Kind::Array(items) => items.iter().for_each(|i| self.node(i, true)),
            Kind::DStr(text) => text.pieces().into_iter().for_each(|i| self.node(i, true)),
            Kind::Hash(pairs) => pairs.iter().for_each(|(k, v)| {
                self.node(k, true);
                self.node(v, true);
            }),
            Kind::Range { from, to, .. } => from.iter().chain(to).for_each(|x| self.node(x, true)),
            Kind::Begin { body, rescues, otherwise, ensure } => {
                self.node(body, used && otherwise.is_none());
                for rescue in rescues {
                    rescue.classes.iter().for_each(|c| self.node(c, true));
                    rescue.binding.iter().for_each(|t| self.target(t));
                    self.node(&rescue.body, used);
                }
                otherwise.iter().for_each(|n| self.node(n, used));
                ensure.iter().for_each(|n| self.node(n, false));
            }
            Kind::Const(path) => {
                if let crate::syntax::ast::ConstBase::Of(base) = &path.base {
                    self.node(base, true);
                }
            }
            Kind::Nil
            | Kind::Retry
            | Kind::Found
            | Kind::True
            | Kind::False
            | Kind::SelfRef
            | Kind::Int(_)
            | Kind::BigInt(_)
            | Kind::Float(_)
            | Kind::Sym(_)
            | Kind::Str(_)
            | Kind::Regexp(_)
            | Kind::Ivar(_)
            | Kind::Unsupported { .. } => {}
        }
    }

    fn args(&mut self, args: &[Arg]) {
        for arg in args {
            match arg {
                Arg::Positional(n) | Arg::Keyword(_, n) | Arg::KeywordSplat(n) => self.node(n, true),
            }
        }
    }

    fn block(&mut self, block: &Block, used: bool) {
        for (_, default) in &block.params.optional {
            self.node(default, true);
        }
        self.node(&block.body, used);
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::Local(local, span) => {
                self.write(*local, *span);
                self.plain.entry(*local).or_insert(*span);
                self.assigned.insert(*local);
            }
            Target::Attr { receiver, .. } => self.node(receiver, true),
            Target::Index { receiver, args, .. } => {
                self.node(receiver, true);
                args.iter().for_each(|a| self.node(a, true));
            }
            Target::List { before, rest, after } => {
                for t in before.iter().chain(rest.iter().flatten().map(|b| &**b)).chain(after) {
                    self.target(t);
                }
            }
            Target::Ivar(..) | Target::Unsupported { .. } => {}
        }
    }
}
