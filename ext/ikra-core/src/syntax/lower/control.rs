//! Branches, loops, jumps and `begin … rescue … ensure`.

use super::text_ranges::text_range;
use super::{Lower, calls::written_out, refuse};
use crate::diagnostic::Span;
use crate::syntax::ast::{Kind, LocalId, Node, Rescue, Target, When};
use lib_ruby_parser::{Node as Ruby, nodes};

impl Lower<'_> {
    pub(super) fn control(&mut self, node: &Ruby, span: Span) -> Kind {
        match node {
            Ruby::If(n) => self.branch(&n.cond, n.if_true.as_deref(), n.if_false.as_deref(), span),
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
                0 => c = Some(self.test(cond)),
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
        let mut subject = n.expr.as_deref().map(|e| self.boxed(e));
        let mut first = None;
        let mut kept = None;
        if n.when_bodies.iter().any(|when| has_list(when) || has_text_range(when))
            && let Some(value) = subject.take()
        {
            // the tests of the subject stand in a loop of their own
            let read = match value.kind {
                Kind::Local(local) => Some(local),
                _ => None,
            };
            let (keep, local) = self.keep(*value);
            first = Some(keep);
            kept = Some(local);
            subject = Some(Box::new(self.local_node(read.unwrap_or(local), span)));
        }
        let mut whens = Vec::new();
        for when in &n.when_bodies {
            if let Ruby::When(w) = when {
                let mut tests = Vec::new();
                for pattern in &w.patterns {
                    match pattern {
                        Ruby::Splat(s) if let Some(elements) = written_out(s) => tests.extend(self.list(elements)),
                        Ruby::Splat(s) if let Some(list) = s.value.as_deref() => {
                            let at = self.span_of(pattern);
                            let list = self.node(list);
                            let test = Box::new(self.any_of(list, kept, at));
                            tests.push(self.make(at, Kind::Splat(test)));
                        }
                        other => match (text_range(other), kept) {
                            (Some(range), Some(kept)) => {
                                let at = self.span_of(other);
                                tests.push(self.when_in_text_range(&range, kept, at));
                            }
                            _ => tests.push(self.node(other)),
                        },
                    }
                }
                let at = self.span_of(when);
                let body = self.body(w.body.as_deref(), at);
                whens.push(When { tests, body });
            }
        }
        let otherwise = Box::new(self.body(n.else_body.as_deref(), span));
        let mut case = Kind::Case { subject, whens, otherwise };
        if self.tracks_matches && n.expr.is_some() {
            case = self.noting_case(case, span);
        }
        match first {
            Some(first) => Kind::Seq(vec![first, self.make(span, case)]),
            None => case,
        }
    }

    /// `when *list`: whether one of its elements matches the subject (`===`). Without a subject, whether one of them is
    /// true.
    fn any_of(&mut self, list: Node, subject: Option<LocalId>, span: Span) -> Node {
        let list = self.send(list, "%__splat", Vec::new(), span);
        let (start, list) = self.keep(list);
        let zero = self.make(span, Kind::Int(0));
        let (first, at) = self.keep(zero);
        let no = self.make(span, Kind::False);
        let (missing, found) = self.keep(no);
        // while !found && at < list.size
        let open = Box::new(self.local_node(found, span));
        let open = self.make(span, Kind::Not(open));
        let size = self.local_node(list, span);
        let size = self.send(size, "size", Vec::new(), span);
        let place = self.local_node(at, span);
        let inside = self.send(place, "<", vec![size], span);
        let cond = Box::new(self.both(span, open, inside));
        // element = list[at]; found = true if element === subject; at += 1
        let (array, place) = (self.local_node(list, span), self.local_node(at, span));
        let mut test = self.send(array, "%__at", vec![place], span);
        if let Some(subject) = subject {
            let subject = self.local_node(subject, span);
            test = self.asks_case(test, subject, span);
        }
        let yes = self.make(span, Kind::True);
        let (then, otherwise) = (self.set(found, yes, span), self.nil(span));
        let ask = Kind::If { cond: Box::new(test), then: Box::new(then), otherwise: Box::new(otherwise) };
        let ask = self.make(span, ask);
        let (place, one) = (self.local_node(at, span), self.make(span, Kind::Int(1)));
        let next = self.send(place, "+", vec![one], span);
        let next = self.set(at, next, span);
        let body = Box::new(self.make(span, Kind::Seq(vec![ask, next])));
        let search = self.make(span, Kind::While { cond, body, body_first: false });
        let answer = self.local_node(found, span);
        self.make(span, Kind::Seq(vec![start, first, missing, search, answer]))
    }

    /// The condition of an `if`. The parser has made flip-flops of Ranges in it, except in a ternary.
    fn test(&mut self, cond: &Ruby) -> Node {
        let span = self.span_of(cond);
        let kind = match cond {
            Ruby::Irange(r) => self.flip_flop(r.left.as_deref(), r.right.as_deref(), false, span),
            Ruby::Erange(r) => self.flip_flop(r.left.as_deref(), r.right.as_deref(), true, span),
            Ruby::Begin(n) if n.statements.len() == 1 => return self.test(&n.statements[0]),
            Ruby::And(n) => Kind::And(Box::new(self.test(&n.lhs)), Box::new(self.test(&n.rhs))),
            Ruby::Or(n) => Kind::Or(Box::new(self.test(&n.lhs)), Box::new(self.test(&n.rhs))),
            other => return self.node(other),
        };
        self.make(span, kind)
    }

    /// `from..to` as a condition: false until `from` is true, then true until `to` is. A variable of the method around
    /// holds the current state. `exclusive` (three dots): `to` is not evaluated when `from` has just become true.
    pub(super) fn flip_flop(&mut self, from: Option<&Ruby>, to: Option<&Ruby>, exclusive: bool, span: Span) -> Kind {
        if self.name.is_none() {
            return refuse::FLIP_FLOP_IN_BLOCK;
        }
        if [from, to].into_iter().flatten().any(|end| matches!(end, Ruby::Int(_))) {
            return refuse::LINE_NUMBERS;
        }
        let state = self.scopes.method_temp();
        let on = Box::new(self.local_node(state, span));
        let start = Box::new(match from {
            Some(from) => self.test(from),
            None => self.nil(span),
        });
        let end = Box::new(match to {
            Some(to) => self.test(to),
            None => self.nil(span),
        });
        let (no, yes) = (self.make(span, Kind::False), self.make(span, Kind::True));
        let (off, still_on) = (self.set(state, no, span), self.set(state, yes, span));
        let asked = Kind::If { cond: end, then: Box::new(off), otherwise: Box::new(still_on) };
        let asked = self.make(span, asked);
        let [yes, no] = [Kind::True, Kind::False].map(|kind| self.make(span, kind));
        let goes_on = Box::new(self.make(span, Kind::Seq(vec![asked, yes])));
        if !exclusive {
            let cond = Box::new(self.make(span, Kind::Or(on, start)));
            return Kind::If { cond, then: goes_on, otherwise: Box::new(no) };
        }
        let [on_now, yes] = [Kind::True, Kind::True].map(|kind| self.make(span, kind));
        let begins = self.set(state, on_now, span);
        let begins = Box::new(self.make(span, Kind::Seq(vec![begins, yes])));
        let off = Kind::If { cond: start, then: begins, otherwise: Box::new(no) };
        let off = Box::new(self.make(span, off));
        Kind::If { cond: on, then: goes_on, otherwise: off }
    }

    /// `local = value`
    pub(super) fn set(&mut self, local: LocalId, value: Node, span: Span) -> Node {
        self.make(span, Kind::Assign { target: Target::Local(local, span), value: Box::new(value) })
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

    /// The classes of a `rescue` clause. A literal list stands for its elements.
    fn rescued(&mut self, classes: &[Ruby]) -> Vec<Node> {
        let mut nodes = Vec::new();
        for class in classes {
            match class {
                Ruby::Splat(s) if let Some(elements) = written_out(s) => nodes.extend(self.list(elements)),
                other => nodes.push(self.node(other)),
            }
        }
        nodes
    }

    fn rescue(&mut self, n: &nodes::Rescue, span: Span) -> Kind {
        let body = Box::new(self.body(n.body.as_deref(), span));
        let mut rescues = Vec::new();
        for clause in &n.rescue_bodies {
            if let Ruby::RescueBody(r) = clause {
                let at = self.span_of(clause);
                let classes = match r.exc_list.as_deref() {
                    Some(Ruby::Array(a)) => self.rescued(&a.elements),
                    Some(one) => self.rescued(std::slice::from_ref(one)),
                    None => Vec::new(),
                };
                let binding = r.exc_var.as_deref().map(|v| self.target(v));
                let body = self.body(r.body.as_deref(), at);
                rescues.push(Rescue { classes, binding, body });
            }
        }
        // An empty `else` still makes the value nil.
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

/// Whether a `when` contains a splat of a list that is not a literal.
fn has_list(when: &Ruby) -> bool {
    let listed = |pattern: &Ruby| matches!(pattern, Ruby::Splat(s) if s.value.is_some() && written_out(s).is_none());
    matches!(when, Ruby::When(w) if w.patterns.iter().any(listed))
}

fn has_text_range(when: &Ruby) -> bool {
    matches!(when, Ruby::When(w) if w.patterns.iter().any(|pattern| text_range(pattern).is_some()))
}

/// The kind of loop: `while` or `until`, with the test first or last.
struct Loop {
    until: bool,
    body_first: bool,
}
