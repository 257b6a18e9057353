//! `defined?`, split into tests that a kernel can make, most of them at compile time.
//!
//! Here: what Ruby tests for each kind of expression, in Ruby's order, and the word that it answers with. Not here:
//! whether a constant, an instance variable, a block or a method of a superclass is defined ([`Kind::Defined`]), and
//! whether a value responds to a name (`__answers?`). Inference knows these.

use super::{Lower, refuse};
use crate::diagnostic::Span;
use crate::syntax::ast::{ConstBase, ConstPath, Kind, Name, Node, Rescue};
use lib_ruby_parser::Node as Ruby;

/// What `defined?` tests for an expression.
struct Asked {
    /// The test. None: the expression is always defined.
    test: Option<Node>,
    /// The answer if the test succeeds.
    word: &'static str,
    /// The test calls methods: the answer is nil if one raises.
    calls: bool,
}

/// Ruby 3.4 tests more than Ruby 3.1 and 3.3 do.
const BY_VERSION: Kind = super::refuse::refuse(
    "`defined?` of what some versions of Ruby look into, and others do not",
    "ask it of the parts that may be missing: `defined?(x) && defined?(y)`",
);

impl Asked {
    fn always(word: &'static str) -> Self {
        Asked { test: None, word, calls: false }
    }
}

impl Lower<'_> {
    pub(super) fn defined(&mut self, value: &Ruby, span: Span) -> Kind {
        let Asked { test, word, calls } = self.asked(value);
        let text = Kind::Str(word.as_bytes().into());
        let Some(test) = test else { return text };
        let (then, otherwise) = (self.make(span, text), self.nil(span));
        let kind = Kind::If { cond: Box::new(test), then: Box::new(then), otherwise: Box::new(otherwise) };
        if !calls {
            return kind;
        }
        let body = Box::new(self.make(span, kind));
        let every = ConstPath { base: ConstBase::Top, name: "Exception".into() };
        let classes = vec![self.make(span, Kind::Const(every))];
        let nothing = self.nil(span);
        let rescues = vec![Rescue { classes, binding: None, body: nothing }];
        Kind::Begin { body, rescues, otherwise: None, ensure: None }
    }

    fn asked(&mut self, node: &Ruby) -> Asked {
        let span = self.span_of(node);
        match node {
            Ruby::Begin(b) => self.asked_in_parentheses(&b.statements),
            Ruby::KwBegin(b) => match b.statements.as_slice() {
                [] => Asked::always("nil"),
                [_, _, ..] => Asked::always("expression"),
                one => self.asked_by_some(one, span),
            },
            Ruby::Hash(h) => self.asked_by_some(&h.pairs, span),
            Ruby::CSend(_) => Asked { test: Some(self.make(span, BY_VERSION)), word: "method", calls: false },
            Ruby::Lvar(_) => Asked::always("local-variable"),
            Ruby::Self_(_) => Asked::always("self"),
            Ruby::Nil(_) => Asked::always("nil"),
            Ruby::True(_) => Asked::always("true"),
            Ruby::False(_) => Asked::always("false"),
            Ruby::Lvasgn(_)
            | Ruby::Ivasgn(_)
            | Ruby::Gvasgn(_)
            | Ruby::Cvasgn(_)
            | Ruby::Casgn(_)
            | Ruby::OpAsgn(_)
            | Ruby::OrAsgn(_)
            | Ruby::AndAsgn(_)
            | Ruby::Masgn(_) => Asked::always("assignment"),
            Ruby::Ivar(v) => self.whether(Kind::Ivar(v.name.as_str().into()), "instance-variable", span),
            Ruby::Cvar(v) => {
                let path = ConstPath { base: ConstBase::Lexical, name: v.name.as_str().into() };
                self.whether(Kind::Const(path), "class variable", span)
            }
            Ruby::Gvar(_) | Ruby::NthRef(_) | Ruby::BackRef(_) => {
                let test = self.make(span, refuse::node(node));
                Asked { test: Some(test), word: "global-variable", calls: false }
            }
            Ruby::Const(c) => match c.scope.as_deref() {
                None | Some(Ruby::Cbase(_)) => {
                    let kind = self.constant(c, span);
                    self.whether(kind, "constant", span)
                }
                Some(scope) => {
                    let (within, base, calls) = self.asked_receiver(scope);
                    let path = ConstPath { base: ConstBase::Of(Box::new(base)), name: c.name.as_str().into() };
                    let there = self.whether(Kind::Const(path), "constant", span);
                    Asked { test: self.all(span, [within, there.test]), calls, ..there }
                }
            },
            Ruby::Yield(_) => {
                self.uses_block();
                self.whether(Kind::Yield(Vec::new()), "yield", span)
            }
            Ruby::Super(_) | Ruby::ZSuper(_) => {
                self.whether(Kind::Super { args: Some(Vec::new()), block: None }, "super", span)
            }
            Ruby::Array(a) => {
                let (test, calls) = self.asked_of_all(&a.elements, span);
                Asked { test, word: "expression", calls }
            }
            Ruby::Send(s) => self.asked_call(s.recv.as_deref(), &s.method_name, &s.args, span),
            Ruby::Index(i) => self.asked_call(Some(&i.recv), "[]", &i.indexes, span),
            Ruby::IndexAsgn(i) => {
                let values = self.asked_of_all(i.value.as_deref().map(std::slice::from_ref).unwrap_or_default(), span);
                let call = self.asked_call(Some(&i.recv), "[]=", &i.indexes, span);
                let test = self.all(span, [values.0, call.test]);
                Asked { test, calls: call.calls || values.1, ..call }
            }
            _ => Asked::always("expression"),
        }
    }

    fn asked_in_parentheses(&mut self, statements: &[Ruby]) -> Asked {
        match statements {
            [] => Asked::always("nil"),
            [one] => self.asked(one),
            _ => Asked::always("expression"),
        }
    }

    /// Ruby tests the parts of such an expression since 3.4 (Prism), and not before. So it is refused, unless all parts
    /// are always defined.
    fn asked_by_some(&mut self, parts: &[Ruby], span: Span) -> Asked {
        let all = parts.iter().all(|part| self.is_always_there(part));
        let test = (!all).then(|| self.make(span, BY_VERSION));
        Asked { test, word: "expression", calls: false }
    }

    /// Whether an expression is always defined, in every version of Ruby.
    fn is_always_there(&mut self, node: &Ruby) -> bool {
        match node {
            Ruby::Splat(s) => s.value.as_deref().is_none_or(|value| self.is_always_there(value)),
            Ruby::Kwsplat(s) => self.is_always_there(&s.value),
            Ruby::Pair(p) => self.is_always_there(&p.key) && self.is_always_there(&p.value),
            Ruby::Kwargs(h) => h.pairs.iter().all(|pair| self.is_always_there(pair)),
            _ => self.asked(node).test.is_none(),
        }
    }

    /// Whether all of a list are defined. Before 3.4 Ruby tests no argument of a list that contains a splat or a block
    /// argument.
    fn asked_of_all(&mut self, list: &[Ruby], span: Span) -> (Option<Node>, bool) {
        let (mut test, mut calls) = (None, false);
        let spread = list.iter().any(|item| matches!(item, Ruby::Splat(_) | Ruby::BlockPass(_)));
        for item in list {
            let asked = match item {
                Ruby::BlockPass(_) => continue,
                Ruby::Splat(_) | Ruby::Kwargs(_) => self.asked_by_some(std::slice::from_ref(item), span),
                _ if spread => self.asked_by_some(std::slice::from_ref(item), span),
                _ => self.asked(item),
            };
            calls |= asked.calls;
            test = self.all(span, [test, asked.test]);
        }
        (test, calls)
    }

    fn asked_call(&mut self, receiver: Option<&Ruby>, name: &str, args: &[Ruby], span: Span) -> Asked {
        let (given, mut calls) = self.asked_of_all(args, span);
        let symbol = self.make(span, Kind::Sym(name.into()));
        let test = match receiver {
            None => {
                let (object, all) = (self.make(span, Kind::SelfRef), self.make(span, Kind::True));
                let answers = self.send(object, "respond_to?", vec![symbol, all], span);
                self.all(span, [given, Some(answers)])
            }
            Some(receiver) => {
                let (there, value, called) = self.asked_receiver(receiver);
                calls |= called;
                let answers = self.send(value, "%__answers?", vec![symbol], span);
                self.all(span, [given, there, Some(answers)])
            }
        };
        Asked { test, word: "method", calls }
    }

    /// The test whether a receiver is defined, and its value, which is computed once. The flag tells whether the test
    /// calls a method.
    fn asked_receiver(&mut self, node: &Ruby) -> (Option<Node>, Node, bool) {
        let span = self.span_of(node);
        match node {
            Ruby::Begin(b) if b.statements.len() == 1 => self.asked_receiver(&b.statements[0]),
            Ruby::Send(s) if s.recv.is_some() && s.operator_l.is_none() => {
                let (given, _) = self.asked_of_all(&s.args, span);
                let (there, value, _) = self.asked_receiver(s.recv.as_deref().expect("asked above"));
                let (keep, local) = self.keep(value);
                let object = self.local_node(local, span);
                let symbol = self.make(span, Kind::Sym(s.method_name.as_str().into()));
                let answers = self.send(object, "%__answers?", vec![symbol], span);
                let asked = self.make(span, Kind::Seq(vec![keep, answers]));
                let test = self.all(span, [given, there, Some(asked)]);
                let name_span = s.selector_l.as_ref().map_or(span, |at| self.span(at));
                let name: Name = self.called(&s.method_name);
                let (args, block_arg) = self.args(&s.args);
                let receiver = Some(self.local_node(local, span));
                let call = crate::syntax::ast::Call {
                    receiver,
                    name,
                    name_span,
                    args,
                    block: None,
                    block_arg,
                    safe: false,
                    matches: false,
                };
                (test, self.make(span, Kind::Call(Box::new(call))), true)
            }
            other => {
                let asked = self.asked(other);
                let calls = asked.calls || matches!(other, Ruby::Send(_) | Ruby::Block(_) | Ruby::Index(_));
                (asked.test, self.node(other), calls)
            }
        }
    }

    fn whether(&mut self, kind: Kind, word: &'static str, span: Span) -> Asked {
        let value = Box::new(self.make(span, kind));
        Asked { test: Some(self.make(span, Kind::Defined(value))), word, calls: false }
    }

    /// All of these tests, one after the other.
    fn all<const N: usize>(&mut self, span: Span, tests: [Option<Node>; N]) -> Option<Node> {
        tests.into_iter().flatten().reduce(|a, b| self.both(span, a, b))
    }
}
