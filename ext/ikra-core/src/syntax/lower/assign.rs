//! Assignments: plain, with an operator, and to several targets.

use super::{Lower, refuse};
use crate::syntax::ast::{AssignOp, ConstBase, ConstPath, Kind, Node, Target, cell};
use lib_ruby_parser::{Loc, Node as Ruby, nodes};

impl Lower<'_> {
    /// `target = value`. The parser keeps the value in the target's own node.
    pub(super) fn assign(&mut self, node: &Ruby) -> Kind {
        let value = match node {
            Ruby::Lvasgn(n) => n.value.as_deref(),
            Ruby::Ivasgn(n) => n.value.as_deref(),
            Ruby::Gvasgn(n) => n.value.as_deref(),
            Ruby::Cvasgn(n) => n.value.as_deref(),
            Ruby::Casgn(n) => n.value.as_deref(),
            Ruby::IndexAsgn(n) => n.value.as_deref(),
            Ruby::Send(n) => n.args.last(),
            Ruby::CSend(n) => n.args.last(),
            _ => None,
        };
        let target = self.target(node);
        let value = Box::new(self.body(value, self.span_of(node)));
        Kind::Assign { target, value }
    }

    pub(super) fn op_assign(&mut self, node: &Ruby) -> Kind {
        let (recv, op, value) = match node {
            Ruby::OpAsgn(n) => (&n.recv, AssignOp::Method(n.operator.as_str().into()), &n.value),
            Ruby::OrAsgn(n) => (&n.recv, AssignOp::Or, &n.value),
            Ruby::AndAsgn(n) => (&n.recv, AssignOp::And, &n.value),
            other => return refuse::node(other),
        };
        let target = self.target(recv);
        let value = self.boxed(value);
        Kind::OpAssign { target, op, value }
    }

    pub(super) fn multi_assign(&mut self, node: &nodes::Masgn) -> Kind {
        let (before, rest, after) = match &*node.lhs {
            Ruby::Mlhs(m) => self.targets(&m.items),
            other => (vec![self.target(other)], None, Vec::new()),
        };
        let value = self.boxed(&node.rhs);
        self.multi_assign_of(before, rest, after, value)
    }

    /// `a, *b, c = value` becomes `t = value; a, *, c = t; b = the rest of t`. `a, (b, *c), d = value` becomes
    /// `w = (a, t, u = value); b, *c = t; d = u; w`.
    fn multi_assign_of(
        &mut self,
        before: Vec<Target>,
        rest: Option<Option<Box<Target>>>,
        after: Vec<Target>,
        value: Box<Node>,
    ) -> Kind {
        let span = value.span;
        let takes_rest = |t: &Target| matches!(t, Target::List { .. }) && t.names_rest();
        if before.iter().chain(&after).any(takes_rest) {
            let mut later = Vec::new();
            let mut wait = |s: &mut Self, targets: Vec<Target>| -> Vec<Target> {
                let wait = |target: Target| {
                    if later.is_empty() && !takes_rest(&target) {
                        return target;
                    }
                    let temp = s.scopes.temp();
                    later.push((target, temp));
                    Target::Local(temp, span)
                };
                targets.into_iter().map(wait).collect()
            };
            let before = wait(self, before);
            let after = wait(self, after);
            let first = self.multi_assign_of(before, rest, after, value);
            let first = Box::new(self.make(span, first));
            let whole = self.scopes.temp();
            let mut all = vec![self.make(span, Kind::Assign { target: Target::Local(whole, span), value: first })];
            for (target, temp) in later {
                let value = Box::new(self.make(span, Kind::Local(temp)));
                let kind = match target {
                    Target::List { before, rest, after } => self.multi_assign_of(before, rest, after, value),
                    target => Kind::Assign { target, value },
                };
                all.push(self.make(span, kind));
            }
            all.push(self.make(span, Kind::Local(whole)));
            return Kind::Seq(all);
        }
        let Some(Some(named)) = rest else { return Kind::MultiAssign { before, rest, after, value } };
        let whole = self.scopes.temp();
        let read = |s: &mut Self| Box::new(s.make(span, Kind::Local(whole)));
        let keep = self.make(span, Kind::Assign { target: Target::Local(whole, span), value });
        let counts = [before.len(), after.len()];
        let value = read(self);
        let parts = self.make(span, Kind::MultiAssign { before, rest: Some(None), after, value });
        let counts = counts.into_iter().map(|n| self.make(span, Kind::Int(n as i64))).collect();
        let receiver = *read(self);
        let value = Box::new(self.send(receiver, "%__rest", counts, span));
        let left = self.make(span, Kind::Assign { target: *named, value });
        let value = *read(self);
        Kind::Seq(vec![keep, parts, left, value])
    }

    fn targets(&mut self, items: &[Ruby]) -> (Vec<Target>, Option<Option<Box<Target>>>, Vec<Target>) {
        let (mut before, mut rest, mut after) = (Vec::new(), None, Vec::new());
        for item in items {
            match item {
                Ruby::Splat(s) => rest = Some(s.value.as_deref().map(|v| Box::new(self.target(v)))),
                item if rest.is_some() => after.push(self.target(item)),
                item => before.push(self.target(item)),
            }
        }
        (before, rest, after)
    }

    /// The target of an assignment. The parser may have put a value into the same node; it is ignored here.
    pub(super) fn target(&mut self, node: &Ruby) -> Target {
        match node {
            Ruby::Lvasgn(n) => match (self.local(&n.name), self.span(&n.name_l)) {
                (local, span) if self.rests.has(local) => {
                    let (what, advice) = refuse::OTHER_REST;
                    Target::Unsupported { what, advice, span }
                }
                (local, span) => Target::Local(local, span),
            },
            Ruby::Ivasgn(n) => Target::Ivar(n.name.as_str().into(), self.span(&n.name_l)),
            Ruby::Cvasgn(n) => {
                let span = self.span(&n.name_l);
                if let Some(local) = self.scopes.find(&n.name) {
                    return Target::Local(local, span);
                }
                let base = ConstBase::Lexical;
                let receiver = self.make(span, Kind::Const(ConstPath { base, name: cell(&n.name) }));
                let name = n.name.trim_start_matches('@').to_string().into();
                Target::Attr { receiver: Box::new(receiver), name, span, safe: false }
            }
            Ruby::Send(n) => self.attr(n.recv.as_deref(), &n.method_name, n.selector_l.as_ref(), node, false),
            Ruby::CSend(n) => self.attr(Some(&n.recv), &n.method_name, n.selector_l.as_ref(), node, true),
            Ruby::IndexAsgn(n) => self.index_target(&n.recv, &n.indexes, &n.end_l, node),
            Ruby::Index(n) => self.index_target(&n.recv, &n.indexes, &n.end_l, node),
            Ruby::Mlhs(m) => {
                let (before, rest, after) = self.targets(&m.items);
                Target::List { before, rest, after }
            }
            // `(a), b = …`
            Ruby::Begin(b) if b.statements.len() == 1 => self.target(&b.statements[0]),
            other => {
                let (what, advice) = refuse::target(other);
                let span = match other {
                    Ruby::Gvasgn(n) => self.span(&n.name_l),
                    Ruby::Casgn(n) => self.span(&n.name_l),
                    other => self.span_of(other),
                };
                Target::Unsupported { what, advice, span }
            }
        }
    }

    fn attr(&mut self, recv: Option<&Ruby>, name: &str, name_l: Option<&Loc>, node: &Ruby, safe: bool) -> Target {
        let span = name_l.map_or_else(|| self.span_of(node), |l| self.span(l));
        let receiver = Box::new(match recv {
            Some(recv) => self.node(recv),
            None => self.make(span, Kind::SelfRef),
        });
        Target::Attr { receiver, name: self.called(name.strip_suffix('=').unwrap_or(name)), span, safe }
    }

    fn index_target(&mut self, recv: &Ruby, indexes: &[Ruby], end_l: &Loc, node: &Ruby) -> Target {
        let mut span = self.span_of(node);
        span.end = self.span(end_l).end;
        if let Some(odd) = indexes.iter().find(|i| matches!(i, Ruby::Kwargs(_) | Ruby::BlockPass(_))) {
            let (what, advice) = refuse::target(odd);
            return Target::Unsupported { what, advice, span: self.span_of(odd) };
        }
        let receiver = self.boxed(recv);
        let args: Vec<Node> = self.list(indexes);
        Target::Index { receiver, args, span }
    }
}
