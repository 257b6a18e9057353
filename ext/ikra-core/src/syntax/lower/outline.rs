//! What a file defines: its classes, methods and constants, with the spans of their text.
//!
//! Here: [`outline`] and [`parse_expression`], for tests without a running Ruby ([`crate::world::fixture`]). Not here:
//! what the definitions mean.

use super::{Lower, Parsed};
use crate::diagnostic::{Diagnostic, Span};
use crate::source::Source;
use crate::syntax::ast::{Name, Params, Unit};
use lib_ruby_parser::Node as Ruby;
use std::sync::Arc;

/// One statement of a file or of the body of a class.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// `class A::B < C`, `module A`; `class << self` has no path.
    Scope {
        form: Form,
        path: Vec<Name>,
        superclass: Option<Vec<Name>>,
        /// The members, if it is a Struct or inherits from one directly.
        members: Option<Members>,
        body: Vec<Item>,
    },
    /// `def name`, `def self.name` and `define_method(:name) { … }`. `span` is the slice for [`super::parse_method`],
    /// or for `define_method` that for [`super::parse_block`].
    Method {
        name: Name,
        on_self: bool,
        span: Span,
        is_block: bool,
    },
    /// `NAME = value`, with the span of the value.
    Constant {
        name: Name,
        value: Span,
    },
    /// A call without a receiver whose arguments are symbols or constants: `attr_reader :a`, `include B`, `private`.
    Directive {
        name: Name,
        args: Vec<Name>,
    },
    /// `alias name original`
    Alias {
        name: Name,
        original: Name,
    },
    Expression(Span),
}

/// `A = Struct.new(:x) do … end`, or (`inherited`) `class A < Struct.new(:x)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    pub names: Vec<Name>,
    pub inherited: bool,
    /// `keyword_init: true`
    pub keyword_init: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Class,
    Module,
    Singleton,
}

/// The statements of the slice.
pub fn outline(source: &Arc<Source>) -> Result<Vec<Item>, Box<Diagnostic>> {
    if source.slice_text().trim().is_empty() {
        return Ok(Vec::new());
    }
    let parsed = Parsed::new(source, source.slice.clone(), "", &[])?;
    let mut items = Vec::new();
    parsed.outline(Some(&parsed.tree), &mut items);
    Ok(items)
}

/// Parses a whole program or expression; names in `locals` are variables.
pub fn parse_expression(source: &Arc<Source>, locals: &[&str]) -> Result<Unit, Box<Diagnostic>> {
    let parsed = Parsed::new(source, source.slice.clone(), "", locals)?;
    let mut lower = Lower::new(&parsed, locals, None);
    let body = lower.node(&parsed.tree);
    Ok(lower.finish(parsed, Params::default(), body, false))
}

impl Parsed<'_> {
    fn outline(&self, node: Option<&Ruby>, items: &mut Vec<Item>) {
        let Some(node) = node else { return };
        match node {
            Ruby::Begin(b) => b.statements.iter().for_each(|s| self.outline(Some(s), items)),
            Ruby::Class(c) => {
                let members = c.superclass.as_deref().and_then(structure);
                let superclass = c.superclass.as_deref().filter(|_| members.is_none()).map(path);
                let members = members.map(|m| Members { inherited: true, ..m.0 });
                self.scope(Form::Class, path(&c.name), superclass, members, c.body.as_deref(), items);
            }
            Ruby::Module(m) => self.scope(Form::Module, path(&m.name), None, None, m.body.as_deref(), items),
            Ruby::SClass(c) => self.scope(Form::Singleton, Vec::new(), None, None, c.body.as_deref(), items),
            Ruby::Casgn(c) if c.scope.is_none() && c.value.as_deref().is_some_and(|v| structure(v).is_some()) => {
                let Some((members, body)) = c.value.as_deref().and_then(structure) else { return };
                self.scope(Form::Class, vec![c.name.as_str().into()], None, Some(members), body, items);
            }
            Ruby::Def(d) => items.push(self.method(&d.name, false, node)),
            Ruby::Defs(d) => items.push(self.method(&d.name, true, node)),
            Ruby::Alias(a) if let (Some(name), Some(original)) = (word(&a.to), word(&a.from)) => {
                items.push(Item::Alias { name, original });
            }
            Ruby::Casgn(c) if c.scope.is_none() => match c.value.as_deref() {
                Some(value) => {
                    items.push(Item::Constant { name: c.name.as_str().into(), value: self.span(value.expression()) });
                }
                None => items.push(self.expression(node)),
            },
            Ruby::Send(s) if s.recv.is_none() => {
                // `private def a` first defines the method, then makes it private.
                for arg in &s.args {
                    if matches!(arg, Ruby::Def(_) | Ruby::Defs(_)) {
                        self.outline(Some(arg), items);
                    }
                }
                match s.args.iter().map(word).collect::<Option<Vec<_>>>() {
                    Some(args) => items.push(Item::Directive { name: s.method_name.as_str().into(), args }),
                    None => items.push(self.expression(node)),
                }
            }
            Ruby::Block(b) => match &*b.call {
                Ruby::Send(s) if s.method_name == "define_method" && s.args.len() == 1 => match word(&s.args[0]) {
                    Some(name) => {
                        let span = self.span(&b.begin_l.join(&b.end_l));
                        items.push(Item::Method { name, on_self: false, span, is_block: true });
                    }
                    None => items.push(self.expression(node)),
                },
                _ => items.push(self.expression(node)),
            },
            other => items.push(self.expression(other)),
        }
    }

    fn scope(
        &self,
        form: Form,
        path: Vec<Name>,
        superclass: Option<Vec<Name>>,
        members: Option<Members>,
        body: Option<&Ruby>,
        items: &mut Vec<Item>,
    ) {
        let mut inner = Vec::new();
        self.outline(body, &mut inner);
        items.push(Item::Scope { form, path, superclass, members, body: inner });
    }

    fn method(&self, name: &str, on_self: bool, node: &Ruby) -> Item {
        Item::Method { name: name.into(), on_self, span: self.span(node.expression()), is_block: false }
    }

    fn expression(&self, node: &Ruby) -> Item {
        Item::Expression(self.span(node.expression()))
    }
}

/// The members and the block of `Struct.new(:a, :b, keyword_init: true) { … }`.
fn structure(node: &Ruby) -> Option<(Members, Option<&Ruby>)> {
    let (call, body) = match node {
        Ruby::Block(b) => (&*b.call, b.body.as_deref()),
        other => (other, None),
    };
    let Ruby::Send(s) = call else { return None };
    let known = matches!(s.recv.as_deref(), Some(Ruby::Const(c)) if c.name == "Struct") && s.method_name == "new";
    let keyword_init = s.args.iter().any(
        |a| matches!(a, Ruby::Kwargs(k) if matches!(&*k.pairs, [Ruby::Pair(p)] if matches!(&*p.value, Ruby::True(_)))),
    );
    let names = s.args.iter().filter(|a| matches!(a, Ruby::Sym(_))).filter_map(word).collect();
    known.then_some((Members { names, inherited: false, keyword_init }, body))
}

/// `A::B` as its names.
fn path(node: &Ruby) -> Vec<Name> {
    match node {
        Ruby::Const(c) => {
            let mut names = c.scope.as_deref().map(path).unwrap_or_default();
            names.push(c.name.as_str().into());
            names
        }
        _ => Vec::new(),
    }
}

/// The name that an argument stands for: a symbol's, a constant's, or that of a method defined in place.
fn word(node: &Ruby) -> Option<Name> {
    match node {
        Ruby::Sym(s) => std::str::from_utf8(&s.name.raw).ok().map(Into::into),
        Ruby::Const(_) => Some(path(node).join("::").into()),
        Ruby::Def(d) => Some(d.name.as_str().into()),
        Ruby::Defs(d) => Some(d.name.as_str().into()),
        _ => None,
    }
}
