//! Pattern matching (`case … in`, `=>`, `in`), lowered to tests, reads and assignments.
//!
//! Here: each pattern becomes an expression. Where the pattern matches, the expression is true and has assigned the
//! pattern's variables, in Ruby's order. An array literal that is matched against array patterns is never made. Not
//! here: what `**rest` binds ([`super::rests`]). Inference knows what the primitives mean (`__list?`, `__parts`,
//! `__at`, `__keys?`, `__member`, `__key_count`, `__no_match`).

use super::{Lower, refuse};
use crate::diagnostic::Span;
use crate::syntax::ast::{Kind, LocalId, Name, Node, Target};
use lib_ruby_parser::{Node as Ruby, nodes};

/// What a pattern is matched against.
#[derive(Clone)]
enum Subject {
    One(LocalId),
    /// The elements of an array literal, which is not made.
    Parts(Vec<LocalId>),
}

impl Lower<'_> {
    /// `case value in pattern … end`
    pub(super) fn case_in(&mut self, n: &nodes::CaseMatch, span: Span) -> Kind {
        let plain = |node: &Ruby| match node {
            Ruby::InPattern(p) => is_list(&p.pattern),
            _ => false,
        };
        let (mut items, subject) = self.subject(&n.expr, n.in_bodies.iter().all(plain));
        let mut clauses = Vec::new();
        for clause in &n.in_bodies {
            let Ruby::InPattern(p) = clause else { continue };
            let at = self.span_of(&p.pattern);
            let mut test = self.pattern_test(&p.pattern, &subject);
            if let Some(guard) = p.guard.as_deref() {
                let guard = match guard {
                    Ruby::IfGuard(g) => self.node(&g.cond),
                    Ruby::UnlessGuard(g) => {
                        let cond = self.boxed(&g.cond);
                        self.make(at, Kind::Not(cond))
                    }
                    other => self.node(other),
                };
                test = self.both(at, test, guard);
            }
            let body = self.body(p.body.as_deref(), at);
            clauses.push((at, test, body));
        }
        let mut otherwise = match n.else_body.as_deref() {
            Some(Ruby::EmptyElse(_)) => self.nil(span),
            Some(node) => self.node(node),
            None => self.no_match(&subject, span),
        };
        for (at, test, body) in clauses.into_iter().rev() {
            let kind = Kind::If { cond: Box::new(test), then: Box::new(body), otherwise: Box::new(otherwise) };
            otherwise = self.make(at, kind);
        }
        items.push(otherwise);
        Kind::Seq(items)
    }

    /// `value in pattern`
    pub(super) fn match_test(&mut self, value: &Ruby, pattern: &Ruby, span: Span) -> Kind {
        let (mut items, subject) = self.subject(value, is_list(pattern));
        let test = self.pattern_test(pattern, &subject);
        let (yes, no) = (self.make(span, Kind::True), self.make(span, Kind::False));
        let kind = Kind::If { cond: Box::new(test), then: Box::new(yes), otherwise: Box::new(no) };
        items.push(self.make(span, kind));
        Kind::Seq(items)
    }

    /// `value => pattern`
    pub(super) fn match_or_raise(&mut self, value: &Ruby, pattern: &Ruby, span: Span) -> Kind {
        let (mut items, subject) = self.subject(value, is_list(pattern));
        let test = self.pattern_test(pattern, &subject);
        let (nil, wrong) = (self.nil(span), self.no_match(&subject, span));
        let kind = Kind::If { cond: Box::new(test), then: Box::new(nil), otherwise: Box::new(wrong) };
        items.push(self.make(span, kind));
        Kind::Seq(items)
    }

    /// Assigns the value to new variables. `lists`: the patterns only read the value's elements.
    fn subject(&mut self, value: &Ruby, lists: bool) -> (Vec<Node>, Subject) {
        match value {
            Ruby::Array(a) if lists && !a.elements.iter().any(|e| matches!(e, Ruby::Splat(_))) => {
                let (mut items, mut parts) = (Vec::new(), Vec::new());
                // no array is made, but Ruby would call `deconstruct` on one
                let (nil, at) = (self.nil(self.span_of(value)), self.span_of(value));
                items.push(self.send(nil, "%__patterns", Vec::new(), at));
                for element in &a.elements {
                    let value = self.node(element);
                    let (item, local) = self.keep(value);
                    items.push(item);
                    parts.push(local);
                }
                (items, Subject::Parts(parts))
            }
            value => {
                let value = self.node(value);
                let (item, local) = self.keep(value);
                (vec![item], Subject::One(local))
            }
        }
    }

    /// Assigns a value to a variable without a name.
    pub(super) fn keep(&mut self, value: Node) -> (Node, LocalId) {
        let span = value.span;
        let local = self.scopes.temp();
        let kind = Kind::Assign { target: Target::Local(local, span), value: Box::new(value) };
        (self.make(span, kind), local)
    }

    pub(super) fn local_node(&mut self, local: LocalId, span: Span) -> Node {
        self.make(span, Kind::Local(local))
    }

    pub(super) fn both(&mut self, span: Span, a: Node, b: Node) -> Node {
        self.make(span, Kind::And(Box::new(a), Box::new(b)))
    }

    fn no_match(&mut self, subject: &Subject, span: Span) -> Node {
        let value = match subject {
            Subject::One(local) => self.local_node(*local, span),
            Subject::Parts(parts) => match parts.first() {
                Some(local) => self.local_node(*local, span),
                None => self.nil(span),
            },
        };
        self.send(value, "%__no_match", Vec::new(), span)
    }

    /// Binds a name to the subject; the result is true.
    fn bind(&mut self, name: &str, subject: LocalId, span: Span) -> Node {
        let value = Box::new(self.local_node(subject, span));
        let local = self.local(name);
        if self.rests.has(local) {
            let (what, advice) = refuse::OTHER_REST;
            return self.make(span, refuse::refuse(what, advice));
        }
        let assign = self.make(span, Kind::Assign { target: Target::Local(local, span), value });
        let yes = self.make(span, Kind::True);
        self.make(span, Kind::Seq(vec![assign, yes]))
    }

    fn pattern_test(&mut self, pattern: &Ruby, subject: &Subject) -> Node {
        let span = self.span_of(pattern);
        let one = match (subject, pattern) {
            (_, Ruby::MatchVar(v)) if v.name == "_" => return self.make(span, Kind::True),
            (Subject::Parts(parts), Ruby::ArrayPattern(p)) => {
                return self.parts_test(&p.elements, false, parts, span);
            }
            (Subject::Parts(parts), Ruby::ArrayPatternWithTail(p)) => {
                return self.parts_test(&p.elements, true, parts, span);
            }
            (Subject::Parts(_), Ruby::MatchAlt(p)) => {
                let (a, b) = (self.pattern_test(&p.lhs, subject), self.pattern_test(&p.rhs, subject));
                return self.make(span, Kind::Or(Box::new(a), Box::new(b)));
            }
            (Subject::Parts(_), _) => return self.make(span, refuse::node(pattern)),
            (Subject::One(one), _) => *one,
        };
        match pattern {
            Ruby::MatchVar(v) => self.bind(&v.name, one, span),
            Ruby::MatchAs(p) => {
                let test = self.pattern_test(&p.value, subject);
                let bind = self.pattern_test(&p.as_, subject);
                self.both(span, test, bind)
            }
            Ruby::MatchAlt(p) => {
                let (a, b) = (self.pattern_test(&p.lhs, subject), self.pattern_test(&p.rhs, subject));
                self.make(span, Kind::Or(Box::new(a), Box::new(b)))
            }
            Ruby::Pin(p) => self.equality(&p.var, one, span),
            Ruby::Begin(b) if b.statements.len() == 1 => self.pattern_test(&b.statements[0], subject),
            Ruby::ArrayPattern(p) => self.array_test(&p.elements, false, one, span),
            Ruby::ArrayPatternWithTail(p) => self.array_test(&p.elements, true, one, span),
            Ruby::HashPattern(p) => self.keys_test(&p.elements, one, span),
            Ruby::ConstPattern(p) => {
                let class = self.equality(&p.const_, one, span);
                let inside = self.pattern_test(&p.pattern, subject);
                self.both(span, class, inside)
            }
            Ruby::FindPattern(p) => self.find_test(&p.elements, one, span),
            value => self.equality(value, one, span),
        }
    }

    /// `value === subject`
    fn equality(&mut self, value: &Ruby, subject: LocalId, span: Span) -> Node {
        let value = self.node(value);
        let subject = self.local_node(subject, span);
        self.asks_case(value, subject, span)
    }

    /// `[a, 1, *, b]` against an array, or an object that deconstructs to one.
    fn array_test(&mut self, elements: &[Ruby], tail: bool, subject: LocalId, span: Span) -> Node {
        let (before, rest, after) = split(elements);
        let at_least = rest.is_some() || tail;
        let wanted = (before.len() + after.len()) as i64;
        let (mut test, subject) = self.parts(subject, span);
        let array = self.local_node(subject, span);
        let size = self.send(array, "%__size", Vec::new(), span);
        let count = self.make(span, Kind::Int(wanted));
        let fits = self.send(size, if at_least { "@>=" } else { "@==" }, vec![count], span);
        test = self.both(span, test, fits);
        for (i, element) in before.iter().enumerate() {
            let index = self.make(span, Kind::Int(i as i64));
            test = self.element_test(test, element, subject, index, span);
        }
        if let Some(name) = rest.and_then(rest_name) {
            let counts = [before.len(), after.len()].map(|n| self.make(span, Kind::Int(n as i64)));
            let bind = self.bind_rest(name, subject, counts, span);
            test = self.both(span, test, bind);
        }
        for (i, element) in after.iter().enumerate() {
            let back = self.make(span, Kind::Int((after.len() - i) as i64));
            let array = self.local_node(subject, span);
            let size = self.send(array, "%__size", Vec::new(), span);
            let index = self.send(size, "@-", vec![back], span);
            test = self.element_test(test, element, subject, index, span);
        }
        test
    }

    /// The test whether a subject deconstructs to an array, and the variable that then holds the parts.
    fn parts(&mut self, subject: LocalId, span: Span) -> (Node, LocalId) {
        let object = self.local_node(subject, span);
        let is_list = self.send(object, "%__list?", Vec::new(), span);
        let object = self.local_node(subject, span);
        let parts = self.send(object, "%__parts", Vec::new(), span);
        let (keep, parts) = self.keep(parts);
        let yes = self.make(span, Kind::True);
        let kept = self.make(span, Kind::Seq(vec![keep, yes]));
        (self.both(span, is_list, kept), parts)
    }

    fn element_test(&mut self, test: Node, element: &Ruby, subject: LocalId, index: Node, span: Span) -> Node {
        let array = self.local_node(subject, span);
        let value = self.send(array, "%__at", vec![index], span);
        self.part_test(test, element, value, span)
    }

    /// `test && (part = value; part matches the pattern)`
    fn part_test(&mut self, test: Node, pattern: &Ruby, value: Node, span: Span) -> Node {
        let (assign, part) = self.keep(value);
        let inside = self.pattern_test(pattern, &Subject::One(part));
        let both = self.make(span, Kind::Seq(vec![assign, inside]));
        self.both(span, test, both)
    }

    /// An array pattern against elements that are already in variables.
    fn parts_test(&mut self, elements: &[Ruby], tail: bool, parts: &[LocalId], span: Span) -> Node {
        let (before, rest, after) = split(elements);
        let wanted = before.len() + after.len();
        if parts.len() < wanted || parts.len() > wanted && rest.is_none() && !tail {
            return self.make(span, Kind::False);
        }
        let mut test = self.make(span, Kind::True);
        let tail = &parts[parts.len() - after.len()..];
        for (element, part) in before.iter().zip(parts).chain(after.iter().zip(tail)) {
            let inside = self.pattern_test(element, &Subject::One(*part));
            test = self.both(span, test, inside);
        }
        test
    }

    /// Binds a name to the rest of a list, without `counts` elements in front and at the back; the result is true.
    fn bind_rest(&mut self, name: &str, subject: LocalId, counts: [Node; 2], span: Span) -> Node {
        let list = self.local_node(subject, span);
        let list = self.send(list, "@to_a", Vec::new(), span);
        let value = self.send(list, "%__rest", counts.into(), span);
        let (assign, part) = self.keep(value);
        let bind = self.bind(name, part, span);
        self.make(span, Kind::Seq(vec![assign, bind]))
    }

    /// `[*, a, 1, *]`: finds the first index from which on the parts match; the variable `at` counts up.
    fn find_test(&mut self, elements: &[Ruby], subject: LocalId, span: Span) -> Node {
        let (Some(first), Some(last)) = (elements.first(), elements.last()) else {
            return self.make(span, Kind::False);
        };
        let middle = &elements[1..elements.len() - 1];
        let (is_list, subject) = self.parts(subject, span);
        let length = |s: &mut Self| {
            let list = s.local_node(subject, span);
            s.send(list, "%__size", Vec::new(), span)
        };
        let number = |s: &mut Self, n: usize| s.make(span, Kind::Int(n as i64));
        let zero = number(self, 0);
        let (start, at) = self.keep(zero);
        let no = self.make(span, Kind::False);
        let (missing, found) = self.keep(no);
        // while !found && at + n <= size
        let place = |s: &mut Self, offset: usize| {
            let (at, n) = (s.local_node(at, span), number(s, offset));
            s.send(at, "@+", vec![n], span)
        };
        let (end, size) = (place(self, middle.len()), length(self));
        let fits = self.send(end, "@<=", vec![size], span);
        let open = Box::new(self.local_node(found, span));
        let open = self.make(span, Kind::Not(open));
        let cond = self.both(span, open, fits);
        let mut test = self.make(span, Kind::True);
        for (i, element) in middle.iter().enumerate() {
            let index = place(self, i);
            test = self.element_test(test, element, subject, index, span);
        }
        let set = |s: &mut Self, local: LocalId, value: Node| {
            s.make(span, Kind::Assign { target: Target::Local(local, span), value: Box::new(value) })
        };
        let (yes, next) = (self.make(span, Kind::True), place(self, 1));
        let (then, otherwise) = (set(self, found, yes), set(self, at, next));
        let step = Kind::If { cond: Box::new(test), then: Box::new(then), otherwise: Box::new(otherwise) };
        let body = Box::new(self.make(span, step));
        let search = self.make(span, Kind::While { cond: Box::new(cond), body, body_first: false });
        let mut matches = self.local_node(found, span);
        if let Some(name) = rest_name(first) {
            let (size, at, none) = (length(self), self.local_node(at, span), number(self, 0));
            let back = self.send(size, "@-", vec![at], span);
            let bind = self.bind_rest(name, subject, [none, back], span);
            matches = self.both(span, matches, bind);
        }
        if let Some(name) = rest_name(last) {
            let (front, none) = (place(self, middle.len()), number(self, 0));
            let bind = self.bind_rest(name, subject, [front, none], span);
            matches = self.both(span, matches, bind);
        }
        let search = self.make(span, Kind::Seq(vec![start, missing, search, matches]));
        self.both(span, is_list, search)
    }

    /// `{x:, y: 1}`
    fn keys_test(&mut self, elements: &[Ruby], subject: LocalId, span: Span) -> Node {
        let object = self.local_node(subject, span);
        let mut test = self.send(object, "%__keys?", Vec::new(), span);
        // `{}` and `**nil` allow no other keys
        let mut alone = elements.is_empty();
        let mut named: Vec<Name> = Vec::new();
        let mut rest = None;
        for element in elements {
            let at = self.span_of(element);
            let (key, pattern): (Name, Option<&Ruby>) = match element {
                Ruby::MatchVar(v) => (v.name.as_str().into(), None),
                Ruby::Pair(p) => match &*p.key {
                    Ruby::Sym(s) => match std::str::from_utf8(&s.name.raw) {
                        Ok(name) => (name.into(), Some(&p.value)),
                        Err(_) => return self.make(at, refuse::node(element)),
                    },
                    _ => return self.make(at, refuse::node(element)),
                },
                Ruby::MatchRest(r) => {
                    rest = r.name.as_deref();
                    continue;
                }
                Ruby::MatchNilPattern(_) => {
                    alone = true;
                    continue;
                }
                _ => return self.make(at, refuse::node(element)),
            };
            named.push(key.clone());
            let object = self.local_node(subject, at);
            let name = self.make(at, Kind::Sym(key.clone()));
            let has = self.send(object, "%__keys?", vec![name], at);
            test = self.both(at, test, has);
            let object = self.local_node(subject, at);
            let name = self.make(at, Kind::Sym(key.clone()));
            let value = self.send(object, "%__member", vec![name], at);
            match pattern {
                Some(pattern) => test = self.part_test(test, pattern, value, at),
                None => {
                    let (assign, part) = self.keep(value);
                    let bind = self.bind(&key, part, at);
                    let both = self.make(at, Kind::Seq(vec![assign, bind]));
                    test = self.both(at, test, both);
                }
            }
        }
        if alone {
            let object = self.local_node(subject, span);
            let count = self.send(object, "%__key_count", Vec::new(), span);
            let named = self.make(span, Kind::Int(named.len() as i64));
            let no_more = self.send(count, "==", vec![named], span);
            test = self.both(span, test, no_more);
        }
        if let Some(Ruby::MatchVar(v)) = rest {
            let bind = self.bind_keys(&v.name, subject, &named, span);
            test = self.both(span, test, bind);
        }
        test
    }
}

/// Whether it is an array pattern without a named rest, or `_`, or a choice of these.
fn is_list(pattern: &Ruby) -> bool {
    match pattern {
        // a rest that is bound to a name needs an array
        Ruby::ArrayPattern(p) => !p.elements.iter().any(|e| rest_name(e).is_some()),
        Ruby::ArrayPatternWithTail(_) => true,
        Ruby::MatchVar(v) => v.name == "_",
        Ruby::MatchAlt(p) => is_list(&p.lhs) && is_list(&p.rhs),
        _ => false,
    }
}

/// The name in `*name`.
fn rest_name(rest: &Ruby) -> Option<&str> {
    match rest {
        Ruby::MatchRest(r) => match r.name.as_deref() {
            Some(Ruby::MatchVar(v)) => Some(&v.name),
            _ => None,
        },
        _ => None,
    }
}

fn split(elements: &[Ruby]) -> (&[Ruby], Option<&Ruby>, &[Ruby]) {
    match elements.iter().position(|e| matches!(e, Ruby::MatchRest(_))) {
        Some(i) => (&elements[..i], Some(&elements[i]), &elements[i + 1..]),
        None => (elements, None, &[]),
    }
}
