//! Converts lib-ruby-parser's tree to ours. This is the only importer of lib-ruby-parser.
//!
//! Here: parsing of one slice with exact positions, the walk over Ruby's nodes, and [`parse_block`], [`parse_method`]
//! and [`symbol_block`]. In the files beside: [`scope`] (names to locals), [`params`], [`patterns`], [`assign`],
//! [`calls`], [`control`], [`defined`], [`literal`], [`rests`], and [`refuse`] (messages for Ruby that has no node of
//! ours). Invariant: the walk follows the order of the text, because Ruby scopes a local from where it is first
//! assigned.
//!
//! Only the slice is parsed, after a short prefix that makes it a whole program. The rest of the file may use newer
//! syntax.

mod assign;
mod braceless;
mod calls;
mod control;
mod defined;
mod formats;
mod heredoc;
mod literal;
mod matches;
mod outline;
mod params;
mod patterns;
mod refuse;
mod rests;
mod scope;
#[cfg(test)]
mod tests;
mod text_ranges;

use super::ast::{
    Arg, Call, ConstBase, ConstPath, Kind, LocalId, Name, Node, NodeId, Origin, PRIMITIVE, Params, Pattern, Rest,
    Target, Unit,
};
use crate::diagnostic::{Diagnostic, Span};
use crate::source::Source;
use lib_ruby_parser::{Loc, Node as Ruby, Parser, ParserOptions, nodes};
pub use outline::{Form, Item, Members, outline, parse_expression};
use scope::Scopes;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The greatest depth of nested expressions. Later stages recurse over the tree; their caller provides a stack that is
/// large enough.
const MAX_DEPTH: usize = 400;

/// Parses a block: `{ |x| … }`, `do |x| … end`, or a lambda literal.
///
/// Ruby reports the position of a lambda literal without its `->`; such a slice is extended to it.
/// `enclosing_locals` are the names of the locals that the block sees; those that it uses become captures.
pub fn parse_block(source: &Arc<Source>, enclosing_locals: &[&str]) -> Result<Unit, Box<Diagnostic>> {
    let slice = with_arrow(source);
    let literal = source.text.get(slice.clone()).is_some_and(|text| text.starts_with("->"));
    let parsed = Parsed::new(source, slice, if literal { "" } else { "proc " }, enclosing_locals)?;
    let (call, args, numbered, body) = match &*parsed.tree {
        Ruby::Block(b) => (&b.call, b.args.as_deref(), None, b.body.as_deref()),
        Ruby::Numblock(b) => (&b.call, None, Some(b.numargs), Some(&*b.body)),
        other => return Err(parsed.not_one("block", other)),
    };
    if !parsed.is_all(&parsed.tree) || !is_carrier(call, literal) {
        return Err(parsed.not_one("block", &parsed.tree));
    }
    let new = || Lower::new(&parsed, enclosing_locals, None);
    let (lower, params, body) = Lower::unit(new, args, numbered, body, !literal);
    Ok(lower.finish(parsed, params, body, literal))
}

/// Parses a method: `def name(a, b = 1) … end`, also endless or with a receiver (`def self.name`).
pub fn parse_method(source: &Arc<Source>) -> Result<Unit, Box<Diagnostic>> {
    let parsed = Parsed::new(source, source.slice.clone(), "", &[])?;
    let (name, args, body) = match &*parsed.tree {
        Ruby::Def(d) => (&d.name, d.args.as_deref(), d.body.as_deref()),
        Ruby::Defs(d) => (&d.name, d.args.as_deref(), d.body.as_deref()),
        other => return Err(parsed.not_one("method", other)),
    };
    if !parsed.is_all(&parsed.tree) {
        return Err(parsed.not_one("method", &parsed.tree));
    }
    let new = || Lower::new(&parsed, &[], Some(name.as_str().into()));
    let (lower, params, body) = Lower::unit(new, args, None, body, false);
    Ok(lower.finish(parsed, params, body, false))
}

/// Whether something may assign a variable.
fn assigns(body: &Node, variable: LocalId) -> bool {
    let is_it = |target: &Target| matches!(target, Target::Local(local, _) if *local == variable);
    let may_be = |target: &Target| is_it(target) || matches!(target, Target::List { .. });
    let mut found = false;
    crate::syntax::visit::node(body, &mut |node| {
        found |= match &node.kind {
            Kind::Assign { target, .. } | Kind::OpAssign { target, .. } => is_it(target),
            Kind::For { target, .. } => may_be(target),
            Kind::MultiAssign { before, rest, after, .. } => {
                let mut parts = before.iter().chain(rest.iter().flatten().map(|target| &**target)).chain(after);
                parts.any(may_be)
            }
            Kind::Begin { rescues, .. } => rescues.iter().filter_map(|r| r.binding.as_ref()).any(is_it),
            _ => false,
        };
    });
    found
}

/// Whether a list in a variable keeps its number of elements. This holds if nothing assigns the variable, and nothing
/// calls a method on it that adds or removes elements.
fn keeps_length(body: &Node, list: LocalId) -> bool {
    let mut keeps = !assigns(body, list);
    crate::syntax::visit::node(body, &mut |node| {
        keeps &= match &node.kind {
            Kind::Call(call) => {
                let on_list = call.receiver.as_ref().is_some_and(|r| matches!(r.kind, Kind::Local(l) if l == list));
                let changes = call.name.ends_with('!')
                    || matches!(
                        &*call.name,
                        "<<" | "push"
                            | "append"
                            | "concat"
                            | "unshift"
                            | "prepend"
                            | "insert"
                            | "pop"
                            | "shift"
                            | "clear"
                            | "delete"
                            | "delete_at"
                            | "delete_if"
                            | "keep_if"
                            | "replace"
                            | "fill"
                            | "[]="
                    );
                !(on_list && changes)
            }
            _ => true,
        };
    });
    keeps
}

/// The block that `&:name` stands for: `{ |x| x.name }`. All its nodes have the position of the source's slice.
pub fn symbol_block(source: &Arc<Source>, name: &str) -> Unit {
    let span = Span::new(source.slice.start, source.slice.end);
    let mut scopes = Scopes::new(&[]);
    let x = scopes.declare("x", Origin::Param);
    let receiver = Node { id: NodeId(0), span, kind: Kind::Local(x) };
    let call = Call {
        receiver: Some(receiver),
        name: name.into(),
        name_span: span,
        args: Vec::new(),
        block: None,
        block_arg: None,
        safe: false,
        matches: false,
    };
    Unit {
        source: source.clone(),
        name: None,
        params: Params { required: vec![Pattern::Local(x)], ..Params::default() },
        body: Node { id: NodeId(1), span, kind: Kind::Call(Box::new(call)) },
        locals: scopes.locals,
        nodes: 2,
        lambda: false,
        yields: false,
        rest: None,
        outer_block: None,
        symbol: Some(name.into()),
        parsed_in: Duration::ZERO,
    }
}

/// The unit of a block without text: its body is the Proc. Only an operation can run it ([`crate::syntax::wrap()`]).
pub fn native_block(source: &Arc<Source>) -> Unit {
    let mut unit = symbol_block(source, "call");
    unit.locals.push(super::ast::Local { name: crate::syntax::OWN_BLOCK.into(), origin: Origin::Captured });
    unit.body.kind = Kind::Local(LocalId::new(unit.locals.len() - 1));
    unit.symbol = None;
    unit
}

/// The slice, extended to a `->` right before it.
fn with_arrow(source: &Source) -> Range<usize> {
    let slice = source.slice.clone();
    let before = source.text.get(..slice.start).unwrap_or("").trim_end();
    match before.strip_suffix("->") {
        Some(rest) => rest.len()..slice.end,
        None => slice,
    }
}

/// Whether the call is the one that the block belongs to: our prefix, or the arrow of a lambda literal.
fn is_carrier(call: &Ruby, literal: bool) -> bool {
    match call {
        Ruby::Lambda(_) => literal,
        Ruby::Send(s) => !literal && s.recv.is_none() && s.args.is_empty() && s.method_name == "proc",
        _ => false,
    }
}

/// A slice as lib-ruby-parser sees it, and the conversion of positions back to the source.
struct Parsed<'a> {
    source: &'a Arc<Source>,
    tree: Box<Ruby>,
    /// Bytes put before the slice.
    prefix: usize,
    slice: Range<usize>,
    began: Instant,
}

impl<'a> Parsed<'a> {
    fn new(
        source: &'a Arc<Source>,
        slice: Range<usize>,
        prefix: &str,
        locals: &[&str],
    ) -> Result<Self, Box<Diagnostic>> {
        let began = Instant::now();
        let at = Span::new(slice.start.min(source.text.len()), slice.end.min(source.text.len()));
        let refuse = |message: &str| Box::new(Diagnostic::new(source, at, message));
        let Some(text) = source.text.get(slice.clone()) else {
            return Err(refuse("the source does not hold the block that Ruby says is there"));
        };
        let mut program = format!("{prefix}{text}");
        if let Some(bodies) = source.text.get(source.heredocs.clone()).filter(|bodies| !bodies.is_empty()) {
            program.push('\n');
            program.push_str(bodies);
        }
        // The parser is generated code with many assertions. If one fails, that is an error, not a crash.
        let result = catch_unwind(AssertUnwindSafe(|| {
            let options = ParserOptions { record_tokens: false, ..ParserOptions::default() };
            let parser = Parser::new(program, options);
            for name in locals {
                parser.static_env.declare(name);
            }
            let result = parser.do_parse();
            (result.ast, result.diagnostics)
        }));
        let Ok((tree, diagnostics)) = result else {
            return Err(Box::new(refuse("Ikra's parser failed on this").because(NEWER_SYNTAX)));
        };
        let map = |loc: &Loc| map_span(loc, prefix.len(), &slice, source);
        if let Some(first) = diagnostics.iter().filter(|d| d.is_error()).min_by_key(|d| d.loc.begin) {
            let message = format!("syntax error: {}", first.render_message());
            return Err(Box::new(Diagnostic::new(source, map(&first.loc), message).because(NEWER_SYNTAX)));
        }
        match tree {
            Some(tree) => Ok(Self { source, tree, prefix: prefix.len(), slice, began }),
            None => Err(refuse("there is no code here")),
        }
    }

    fn span(&self, loc: &Loc) -> Span {
        map_span(loc, self.prefix, &self.slice, self.source)
    }

    /// Does this node reach to the end of the slice?
    fn is_all(&self, node: &Ruby) -> bool {
        let end = self.span(node.expression()).end as usize;
        self.source.text[end..self.slice.end].trim().is_empty()
    }

    fn not_one(&self, thing: &str, found: &Ruby) -> Box<Diagnostic> {
        Box::new(Diagnostic::new(self.source, self.span(found.expression()), format!("this is not one {thing}")))
    }
}

const NEWER_SYNTAX: &str =
    "Ikra reads the syntax of Ruby 3.1. Newer forms, such as anonymous arguments (`f(*)`), it does not know";

fn map_span(loc: &Loc, prefix: usize, slice: &Range<usize>, source: &Source) -> Span {
    let map = |at: usize| {
        let at = at.saturating_sub(prefix);
        match at.checked_sub(slice.len() + 1) {
            // in a heredoc after the slice
            Some(behind) if !source.heredocs.is_empty() => (source.heredocs.start + behind).min(source.heredocs.end),
            _ => (slice.start + at).min(slice.end),
        }
    };
    Span::new(map(loc.begin), map(loc.end.max(loc.begin)))
}

/// The walk over one unit.
struct Lower<'a> {
    source: &'a Arc<Source>,
    prefix: usize,
    slice: Range<usize>,
    name: Option<Name>,
    scopes: Scopes,
    nodes: usize,
    depth: usize,
    too_deep: bool,
    /// Whether the walk has met `yield` or the like.
    yields: bool,
    outer_block: Option<LocalId>,
    /// Whether the walk has met `break` in the innermost literal block.
    breaks: bool,
    rests: rests::Rests,
    /// Whether the walk is among the arguments of `raise`: an exception puts its message together after the section.
    raises: bool,
    /// Whether the walk has met `$1`, and whether this is the walk after that one.
    reads_match: bool,
    tracks_matches: bool,
    last_match: Option<matches::LastMatch>,
}

impl<'a> Lower<'a> {
    fn new(parsed: &Parsed<'a>, captured: &[&str], name: Option<Name>) -> Self {
        Self {
            source: parsed.source,
            prefix: parsed.prefix,
            slice: parsed.slice.clone(),
            name,
            scopes: Scopes::new(captured),
            nodes: 0,
            depth: 0,
            too_deep: false,
            yields: false,
            outer_block: None,
            breaks: false,
            rests: rests::Rests::default(),
            raises: false,
            reads_match: false,
            tracks_matches: false,
            last_match: None,
        }
    }

    /// Walks a unit. Only after the walk is it known which keys the unit reads from a pattern's `**rest`, and whether
    /// it reads `$1`. If so, the unit is walked a second time.
    fn unit(
        new: impl Fn() -> Self,
        args: Option<&Ruby>,
        numbered: Option<u8>,
        body: Option<&Ruby>,
        spreads: bool,
    ) -> (Self, Params, Node) {
        let mut lower = new();
        let (params, lowered) = lower.unit_body(args, numbered, body, spreads);
        if lower.rests.asked.is_empty() && !lower.reads_match {
            return (lower, params, lowered);
        }
        let mut again = new();
        again.rests.known = lower.rests.asked;
        again.tracks_matches = lower.reads_match;
        let (params, lowered) = again.unit_body(args, numbered, body, spreads);
        (again, params, lowered)
    }

    fn finish(self, parsed: Parsed<'a>, params: Params, body: Node, lambda: bool) -> Unit {
        if self.too_deep {
            // Dropping the parser's tree would recurse as deeply as it nests, so a few kilobytes are leaked instead.
            std::mem::forget(parsed.tree);
        }
        let rest = params.rest.and_then(|Rest(local)| local).filter(|rest| keeps_length(&body, *rest));
        Unit {
            source: self.source.clone(),
            name: self.name,
            params,
            body,
            locals: self.scopes.locals,
            nodes: self.nodes,
            lambda,
            yields: self.yields,
            rest,
            outer_block: self.outer_block,
            symbol: None,
            parsed_in: parsed.began.elapsed(),
        }
    }

    /// Parameters and body of the unit itself, in its outermost scope.
    fn unit_body(
        &mut self,
        args: Option<&Ruby>,
        numbered: Option<u8>,
        body: Option<&Ruby>,
        spreads: bool,
    ) -> (Params, Node) {
        let is_block = self.name.is_none();
        let (mut params, refused) = match numbered {
            Some(count) => (self.numbered_params(count), None),
            None => self.params(args, spreads),
        };
        self.scopes.allow_it(is_block && args.is_none() && numbered.is_none());
        let lowered = self.body(body, self.end_of_slice());
        if let Some(it) = self.scopes.take_it() {
            params.required.push(Pattern::Local(it));
        }
        (params, refused.unwrap_or(lowered))
    }

    /// Notes that the unit uses the block of a method: its own method's, or, in a block, that of the method around it.
    fn uses_block(&mut self) {
        if self.name.is_some() {
            self.yields = true;
        } else {
            self.outer_block = Some(self.scopes.outer_block());
        }
    }

    fn end_of_slice(&self) -> Span {
        Span::new(self.slice.start, self.slice.end)
    }

    fn span(&self, loc: &Loc) -> Span {
        map_span(loc, self.prefix, &self.slice, self.source)
    }

    fn span_of(&self, node: &Ruby) -> Span {
        self.span(node.expression())
    }

    fn make(&mut self, span: Span, kind: Kind) -> Node {
        let id = NodeId::new(self.nodes);
        self.nodes += 1;
        Node { id, span, kind }
    }

    fn nil(&mut self, span: Span) -> Node {
        self.make(span, Kind::Nil)
    }

    /// A body. If it is missing: `nil` at `at`.
    fn body(&mut self, body: Option<&Ruby>, at: Span) -> Node {
        match body {
            Some(body) => self.node(body),
            None => self.nil(at),
        }
    }

    fn list(&mut self, nodes: &[Ruby]) -> Vec<Node> {
        nodes.iter().map(|n| self.node(n)).collect()
    }

    fn boxed(&mut self, node: &Ruby) -> Box<Node> {
        Box::new(self.node(node))
    }

    fn statements(&mut self, statements: &[Ruby], span: Span) -> Node {
        match statements {
            [] => self.nil(span),
            [one] => self.node(one),
            many => {
                let many = self.list(many);
                self.make(span, Kind::Seq(many))
            }
        }
    }

    fn unsupported(&mut self, span: Span, what: &'static str, advice: &'static str) -> Node {
        self.make(span, Kind::Unsupported { what, advice })
    }

    /// Any expression.
    fn node(&mut self, node: &Ruby) -> Node {
        if self.depth >= MAX_DEPTH {
            self.too_deep = true;
            return self.unsupported(
                self.span_of(node),
                "an expression nested this deeply",
                "give parts of it names, or write it as several statements",
            );
        }
        self.depth += 1;
        let lowered = self.node_within_depth(node);
        self.depth -= 1;
        lowered
    }

    fn node_within_depth(&mut self, node: &Ruby) -> Node {
        let span = self.span_of(node);
        let kind = match node {
            Ruby::Nil(_) => Kind::Nil,
            Ruby::True(_) => Kind::True,
            Ruby::False(_) => Kind::False,
            Ruby::Self_(_) => Kind::SelfRef,
            Ruby::Int(_)
            | Ruby::Float(_)
            | Ruby::Complex(_)
            | Ruby::Rational(_)
            | Ruby::Str(_)
            | Ruby::Dstr(_)
            | Ruby::Heredoc(_)
            | Ruby::Sym(_)
            | Ruby::Dsym(_)
            | Ruby::File(_)
            | Ruby::Line(_) => self.literal(node, span),
            Ruby::Array(a) => self.array(&a.elements, span),
            Ruby::Hash(h) => self.hash(&h.pairs, span),
            Ruby::Irange(r) => self.range(r.left.as_deref(), r.right.as_deref(), false),
            Ruby::Erange(r) => self.range(r.left.as_deref(), r.right.as_deref(), true),
            Ruby::Splat(s) => self.splat(s),

            Ruby::Lvar(v) => match self.scopes.read(&v.name) {
                local if self.rests.has(local) => refuse::REST,
                local => Kind::Local(local),
            },
            Ruby::Ivar(v) => Kind::Ivar(v.name.as_str().into()),
            Ruby::Const(c) => self.constant(c, span),

            Ruby::Lvasgn(_)
            | Ruby::Ivasgn(_)
            | Ruby::Gvasgn(_)
            | Ruby::Cvasgn(_)
            | Ruby::Casgn(_)
            | Ruby::IndexAsgn(_) => self.assign(node),
            Ruby::OpAsgn(_) | Ruby::OrAsgn(_) | Ruby::AndAsgn(_) => self.op_assign(node),
            Ruby::Masgn(m) => self.multi_assign(m),

            Ruby::Send(s) if s.operator_l.is_some() => self.assign(node),
            Ruby::CSend(s) if s.operator_l.is_some() => self.assign(node),
            Ruby::Send(_)
            | Ruby::CSend(_)
            | Ruby::Index(_)
            | Ruby::Super(_)
            | Ruby::ZSuper(_)
            | Ruby::Block(_)
            | Ruby::Numblock(_)
            | Ruby::Yield(_) => self.call_like(node, span),

            Ruby::Begin(b) => return self.statements(&b.statements, span),
            Ruby::KwBegin(b) => return self.statements(&b.statements, span),
            Ruby::And(n) => Kind::And(self.boxed(&n.lhs), self.boxed(&n.rhs)),
            Ruby::Or(n) => Kind::Or(self.boxed(&n.lhs), self.boxed(&n.rhs)),
            Ruby::If(_)
            | Ruby::IfMod(_)
            | Ruby::IfTernary(_)
            | Ruby::Case(_)
            | Ruby::While(_)
            | Ruby::Until(_)
            | Ruby::WhilePost(_)
            | Ruby::UntilPost(_)
            | Ruby::For(_)
            | Ruby::Break(_)
            | Ruby::Next(_)
            | Ruby::Return(_)
            | Ruby::Rescue(_)
            | Ruby::Ensure(_) => self.control(node, span),
            Ruby::CaseMatch(n) => {
                let kind = self.case_in(n, span);
                self.forgetting_match(kind, span)
            }
            Ruby::MatchPattern(n) => {
                let kind = self.match_or_raise(&n.value, &n.pattern, span);
                self.forgetting_match(kind, span)
            }
            Ruby::MatchPatternP(n) => {
                let kind = self.match_test(&n.value, &n.pattern, span);
                self.forgetting_match(kind, span)
            }
            Ruby::Retry(_) => Kind::Retry,
            other => self.rare(other, span),
        };
        self.make(span, kind)
    }

    /// Expressions that rarely nest. A separate function keeps the stack frame of the function above small, since that
    /// one recurses for each level.
    #[inline(never)]
    fn rare(&mut self, node: &Ruby, span: Span) -> Kind {
        match node {
            Ruby::Cvar(v) => match self.scopes.find(&v.name) {
                // one that the section's block assigns
                Some(local) => Kind::Local(local),
                // looked up from the same scope, and read at each call, as a constant is
                None => Kind::Const(ConstPath { base: ConstBase::Lexical, name: v.name.as_str().into() }),
            },
            Ruby::Defined(d) => self.defined(&d.value, span),
            Ruby::IFlipFlop(r) => self.flip_flop(r.left.as_deref(), r.right.as_deref(), false, span),
            Ruby::EFlipFlop(r) => self.flip_flop(r.left.as_deref(), r.right.as_deref(), true, span),
            Ruby::Regexp(r) => self.regexp(r),
            Ruby::NthRef(n) => match n.name.parse() {
                Ok(group) => self.nth_match(group, span),
                Err(_) => refuse::MATCH_VARIABLE,
            },
            Ruby::BackRef(b) if b.name == "$&" => self.nth_match(0, span),
            Ruby::BackRef(_) => refuse::MATCH_VARIABLE,
            Ruby::MatchWithLvasgn(m) => match self.node(&m.re) {
                // the parser knows nothing of groups
                Node { kind: Kind::Regexp(pattern), .. } if pattern.names_groups() => refuse::NAMED_GROUPS,
                regexp => {
                    let text = self.node(&m.value);
                    match self.send(regexp, "=~", vec![text], span).kind {
                        Kind::Call(call) => self.noting_match(*call, span),
                        kind => kind,
                    }
                }
            },
            other => refuse::node(other),
        }
    }

    fn range(&mut self, from: Option<&Ruby>, to: Option<&Ruby>, exclusive: bool) -> Kind {
        let from = from.map(|n| self.boxed(n));
        let to = to.map(|n| self.boxed(n));
        Kind::Range { from, to, exclusive }
    }

    /// `[a, b]`. With splats, `[*a, b, *c]`, the sum of the lists and of the arrays between them.
    pub(super) fn array(&mut self, elements: &[Ruby], span: Span) -> Kind {
        if !elements.iter().any(|e| matches!(e, Ruby::Splat(s) if s.value.is_some())) {
            return Kind::Array(self.list(elements));
        }
        let mut sum: Option<Node> = None;
        for part in elements.chunk_by(|a, b| !matches!(a, Ruby::Splat(_)) && !matches!(b, Ruby::Splat(_))) {
            let node = match part {
                [Ruby::Splat(s)] => {
                    let value = self.body(s.value.as_deref(), span);
                    self.send(value, "%__splat", Vec::new(), span)
                }
                plain => {
                    let items = self.list(plain);
                    self.make(span, Kind::Array(items))
                }
            };
            sum = Some(match sum {
                Some(sum) => self.send(sum, "@+", vec![node], span),
                None => node,
            });
        }
        sum.map_or(Kind::Nil, |sum| sum.kind)
    }

    /// The name with the meaning that it has in this text.
    fn called(&self, name: &str) -> Name {
        match name.strip_prefix("__") {
            Some(primitive) if self.source.own => format!("{PRIMITIVE}{primitive}").as_str().into(),
            _ => name.into(),
        }
    }

    /// A call that the source does not contain.
    pub(super) fn send(&mut self, receiver: Node, name: &str, args: Vec<Node>, span: Span) -> Node {
        let call = Call {
            receiver: Some(receiver),
            name: name.into(),
            name_span: span,
            args: args.into_iter().map(Arg::Positional).collect(),
            block: None,
            block_arg: None,
            safe: false,
            matches: false,
        };
        self.make(span, Kind::Call(Box::new(call)))
    }

    /// `value === subject`, the test of `case`.
    pub(super) fn asks_case(&mut self, value: Node, subject: Node, span: Span) -> Node {
        let mut asked = self.send(value, "===", vec![subject], span);
        if let Kind::Call(call) = &mut asked.kind {
            call.matches = true;
        }
        asked
    }

    fn splat(&mut self, splat: &nodes::Splat) -> Kind {
        match &splat.value {
            Some(value) => Kind::Splat(self.boxed(value)),
            None => refuse::FORWARDING,
        }
    }

    fn local(&mut self, name: &str) -> LocalId {
        self.scopes.assign(name)
    }
}
