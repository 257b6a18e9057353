//! Branches, loops, jumps and `begin … rescue … ensure`.

use super::{Lower, refuse};
use crate::diagnostic::Span;
use crate::syntax::ast::{Kind, Node, Rescue, When};
use lib_ruby_parser::{Node as Ruby, nodes};

impl Lower<'_> {
    pub(super) fn control(&mut self, node: &Ruby, span: Span) -> Kind {
        match node {
            Ruby::If(n) => self.branch(&n.cond, n.if_true.as_deref(), n.if_false.as_deref(), span),
            // where the parser lets a Range be one
            Ruby::IfTernary(n) if is_flip_flop(&n.cond) => refuse::BOUNDS,
            Ruby::IfTernary(n) => self.branch(&n.cond, Some(&n.if_true), Some(&n.if_false), span),
            Ruby::IfMod(n) => self.branch(&n.cond, n.if_true.as_deref(), n.if_false.as_deref(), span),
            Ruby::Case(n) => self.case(n, span),
            Ruby::While(n) => self.repeat(&n.cond, n.body.as_deref(), span, Loop { until: false, body_first: false }),
            Ruby::Until(n) => self.repeat(&n.cond, n.body.as_deref(), span, Loop { until: true, body_first: false }),
            Ruby::WhilePost(n) => self.repeat(&n.cond, Some(&n.body), span, Loop { until: false, body_first: true }),
            Ruby::UntilPost(n) => self.repeat(&n.cond, Some(&n.body), span, Loop { until: true, body_first: true }),
            Ruby::For(n) => {
                let target = Box::new(self.target(&n.iterator));
                let over = self.boxed(&n.iteratee);
                let body = Box::new(self.body(n.body.as_deref(), span));
                Kind::For { target, over, body }
            }
            Ruby::Break(n) => {
                self.breaks = true;
                Kind::Break(self.jump_value(&n.args, span))
            }
            Ruby::Next(n) => Kind::Next(self.jump_value(&n.args, span)),
            Ruby::Return(n) => Kind::Return(self.jump_value(&n.args, span)),
            Ruby::Rescue(n) => self.rescue(n, span),
            Ruby::Ensure(n) => self.ensure(n, span),
            other => refuse::node(other),
        }
    }

    /// `if` and `unless` in all their forms; the parser has exchanged the branches of `unless`.
    fn branch(&mut self, cond: &Ruby, then: Option<&Ruby>, otherwise: Option<&Ruby>, span: Span) -> Kind {
        let start = |node: Option<&Ruby>| node.map(|n| n.expression().begin);
        let mut parts = [(start(Some(cond)), 0), (start(then), 1), (start(otherwise), 2)];
        parts.sort();
        let [mut c, mut t, mut o] = [None, None, None];
        for (_, part) in parts {
            match part {
                0 => c = Some(self.node(cond)),
                1 => t = Some(self.body(then, span)),
                _ => o = Some(self.body(otherwise, span)),
            }
        }
        match (c, t, o) {
            (Some(cond), Some(then), Some(otherwise)) => {
                Kind::If { cond: Box::new(cond), then: Box::new(then), otherwise: Box::new(otherwise) }
            }
            _ => unreachable!("each of the three parts was walked"),
        }
    }

    fn case(&mut self, n: &nodes::Case, span: Span) -> Kind {
        let subject = n.expr.as_deref().map(|e| self.boxed(e));
        let mut whens = Vec::new();
        for when in &n.when_bodies {
            if let Ruby::When(w) = when {
                let tests = self.list(&w.patterns);
                let at = self.span_of(when);
                let body = self.body(w.body.as_deref(), at);
                whens.push(When { tests, body });
            }
        }
        let otherwise = Box::new(self.body(n.else_body.as_deref(), span));
        Kind::Case { subject, whens, otherwise }
    }

    fn repeat(&mut self, cond: &Ruby, body: Option<&Ruby>, span: Span, form: Loop) -> Kind {
        let written_first = body.is_some_and(|b| b.expression().begin < cond.expression().begin);
        let (cond, body) = if written_first {
            let body = self.body(body, span);
            (self.condition(cond, form.until), body)
        } else {
            let cond = self.condition(cond, form.until);
            (cond, self.body(body, span))
        };
        Kind::While { cond: Box::new(cond), body: Box::new(body), body_first: form.body_first }
    }

    fn condition(&mut self, cond: &Ruby, negate: bool) -> Node {
        let span = self.span_of(cond);
        let cond = self.node(cond);
        if negate { self.make(span, Kind::Not(Box::new(cond))) } else { cond }
    }

    /// `return`, `return a`, `return a, b`.
    fn jump_value(&mut self, args: &[Ruby], span: Span) -> Option<Box<Node>> {
        match args {
            [] => None,
            [one] if !matches!(one, Ruby::Splat(_)) => Some(self.boxed(one)),
            many => {
                let list = self.array(many, span);
                Some(Box::new(self.make(span, list)))
            }
        }
    }

    fn rescue(&mut self, n: &nodes::Rescue, span: Span) -> Kind {
        let body = Box::new(self.body(n.body.as_deref(), span));
        let mut rescues = Vec::new();
        for clause in &n.rescue_bodies {
            if let Ruby::RescueBody(r) = clause {
                let at = self.span_of(clause);
                let classes = match r.exc_list.as_deref() {
                    Some(Ruby::Array(a)) => self.list(&a.elements),
                    Some(one) => vec![self.node(one)],
                    None => Vec::new(),
                };
                let binding = r.exc_var.as_deref().map(|v| self.target(v));
                let body = self.body(r.body.as_deref(), at);
                rescues.push(Rescue { classes, binding, body });
            }
        }
        // An `else` that is there but empty still makes the value nil.
        let otherwise = match (&n.else_, &n.else_l) {
            (Some(e), _) => Some(self.boxed(e)),
            (None, Some(at)) => {
                let at = self.span(at);
                Some(Box::new(self.nil(at)))
            }
            (None, None) => None,
        };
        Kind::Begin { body, rescues, otherwise, ensure: None }
    }

    /// `ensure`, together with the `rescue` clauses of the same `begin`.
    fn ensure(&mut self, n: &nodes::Ensure, span: Span) -> Kind {
        let (body, rescues, otherwise) = match n.body.as_deref() {
            Some(Ruby::Rescue(r)) => match self.rescue(r, span) {
                Kind::Begin { body, rescues, otherwise, .. } => (body, rescues, otherwise),
                _ => unreachable!("a rescue is lowered to a Begin"),
            },
            body => (Box::new(self.body(body, span)), Vec::new(), None),
        };
        let ensure = n.ensure.as_deref().map(|e| self.boxed(e));
        Kind::Begin { body, rescues, otherwise, ensure }
    }
}

/// Whether a Range is written in a place of a condition.
fn is_flip_flop(cond: &Ruby) -> bool {
    match cond {
        Ruby::Irange(_) | Ruby::Erange(_) => true,
        Ruby::Begin(n) => matches!(&n.statements[..], [one] if is_flip_flop(one)),
        Ruby::And(n) => is_flip_flop(&n.lhs) || is_flip_flop(&n.rhs),
        Ruby::Or(n) => is_flip_flop(&n.lhs) || is_flip_flop(&n.rhs),
        _ => false,
    }
}

/// Which of the four loops.
struct Loop {
    until: bool,
    body_first: bool,
}
