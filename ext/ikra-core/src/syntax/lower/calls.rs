//! Calls, `super`, `yield`, blocks and lambdas, and names that may be a call or something else.

use super::{Lower, params::ANONYMOUS_BLOCK, refuse};
use crate::diagnostic::Span;
use crate::syntax::ast::{
    ASKED, Arg, Block, Call, ConstBase, ConstPath, Kind, LocalId, Name, Node, PRIMITIVE, Pattern, Target, listed,
};
use lib_ruby_parser::{Loc, Node as Ruby, nodes};
use std::sync::Arc;

impl Lower<'_> {
    pub(super) fn call_like(&mut self, node: &Ruby, span: Span) -> Kind {
        match node {
            Ruby::Block(b) => {
                let block = Literal { args: b.args.as_deref(), numbered: None, body: b.body.as_deref() };
                self.with_block(&b.call, block, b.begin_l.join(&b.end_l), span)
            }
            Ruby::Numblock(b) => {
                let block = Literal { args: None, numbered: Some(b.numargs), body: Some(&b.body) };
                self.with_block(&b.call, block, b.begin_l.join(&b.end_l), span)
            }
            Ruby::Yield(y) => {
                self.uses_block();
                if let Some(kind) = self.spread(None, &y.args, span, |_, _, args, _| Kind::Yield(args)) {
                    return kind;
                }
                let (args, _) = self.args(&y.args);
                Kind::Yield(args)
            }
            other => self.call(other, span, None),
        }
    }

    fn with_block(&mut self, call: &Ruby, block: Literal<'_>, at: Loc, span: Span) -> Kind {
        if matches!(call, Ruby::Lambda(_)) {
            return Kind::Lambda(Arc::new(self.block(block, &at, false)));
        }
        self.call(call, span, Some((block, at)))
    }

    /// A call, with the literal block that follows it.
    fn call(&mut self, node: &Ruby, span: Span, block: Option<(Literal<'_>, Loc)>) -> Kind {
        match node {
            Ruby::Send(n) => {
                if block.is_none()
                    && let Some(kind) = self.not_a_call(n)
                {
                    return kind;
                }
                // Ruby has one String for all runs of `"a".freeze`
                let literal = matches!(n.recv.as_deref(), Some(Ruby::Str(_))) && n.args.is_empty() && block.is_none();
                let freezes = literal && n.method_name == "freeze";
                let name = if freezes { "%__freeze_literal" } else { &n.method_name };
                let head = Head { name, at: n.selector_l.or(n.dot_l), safe: false };
                // `raise Failure.new("…")`
                let makes = self.raises && matches!(name, "new" | "exception") && block.is_none();
                let raises = makes || n.recv.is_none() && matches!(name, "raise" | "fail");
                let around = std::mem::replace(&mut self.raises, raises);
                let kind = self.finish_call(n.recv.as_deref(), &head, &n.args, span, block);
                self.raises = around;
                kind
            }
            Ruby::CSend(n) => {
                let head = Head { name: &n.method_name, at: Some(n.selector_l.unwrap_or(n.dot_l)), safe: true };
                self.finish_call(Some(&n.recv), &head, &n.args, span, block)
            }
            Ruby::Index(n) => {
                let head = Head { name: "[]", at: Some(n.begin_l.join(&n.end_l)), safe: false };
                let mut kind = self.finish_call(Some(&n.recv), &head, &n.indexes, span, block);
                self.close_range(&mut kind);
                kind
            }
            Ruby::Super(n) => {
                self.yields = true;
                if has_list(&n.args) && !n.args.iter().any(|arg| matches!(arg, Ruby::BlockPass(_))) {
                    let block = block.map(|(b, at)| Arc::new(self.block(b, &at, true)));
                    let make = |_: &mut Self, _, args, _| Kind::Super { args: Some(args), block: block.clone() };
                    return self.spread(None, &n.args, span, make).expect("it has a list");
                }
                let (args, block_arg) = self.args(&n.args);
                if block_arg.is_some() {
                    return refuse::SUPER_BLOCK;
                }
                let block = block.map(|(b, at)| Arc::new(self.block(b, &at, true)));
                Kind::Super { args: Some(args), block }
            }
            Ruby::ZSuper(_) => {
                self.yields = true;
                let block = block.map(|(b, at)| Arc::new(self.block(b, &at, true)));
                Kind::Super { args: None, block }
            }
            other => refuse::node(other),
        }
    }

    /// `a[i..]` and `a[..i]`: a Range without an end, as an index, ends at the last element.
    fn close_range(&mut self, kind: &mut Kind) {
        let Kind::Call(call) = kind else { return };
        let [Arg::Positional(Node { kind: Kind::Range { from, to, exclusive }, span, .. })] = call.args.as_mut_slice()
        else {
            return;
        };
        if from.is_none() && to.is_some() {
            *from = Some(Box::new(self.make(*span, Kind::Int(0))));
        } else if to.is_none() && from.is_some() {
            *to = Some(Box::new(self.make(*span, Kind::Int(-1))));
            *exclusive = false;
        }
    }

    /// Handles what the parser takes for a call, but Ikra does not.
    fn not_a_call(&mut self, n: &nodes::Send) -> Option<Kind> {
        if let Some(recv) = &n.recv {
            // Ruby assigns variables here; the parser knows nothing of groups
            if n.method_name == "=~"
                && let Some(regexp) = super::literal::regexp_in(recv)
                && matches!(self.regexp(regexp), Kind::Regexp(source) if source.names_groups())
            {
                return Some(refuse::NAMED_GROUPS);
            }
            let negated = n.method_name == "!" && n.dot_l.is_none() && n.args.is_empty();
            return negated.then(|| Kind::Not(self.boxed(recv)));
        }
        if !n.args.is_empty() || n.begin_l.is_some() {
            return None;
        }
        match n.method_name.as_str() {
            "block_given?" => {
                self.uses_block();
                None
            }
            "it" => self.scopes.it().map(Kind::Local),
            "__method__" => Some(match &self.name {
                Some(name) => Kind::Sym(name.clone()),
                None => refuse::METHOD_NAME,
            }),
            _ => None,
        }
    }

    fn finish_call(
        &mut self,
        recv: Option<&Ruby>,
        head: &Head<'_>,
        args: &[Ruby],
        span: Span,
        block: Option<(Literal<'_>, Loc)>,
    ) -> Kind {
        if block.is_none()
            && let Some(kind) = self.formatted(recv, head, args, span)
        {
            return kind;
        }
        let mut block = block;
        if let Some(kind) = self.braceless(recv, head, args, span, &mut block) {
            return kind;
        }
        let name_span = head.at.as_ref().map_or(span, |at| self.span(at));
        if let (Some(Ruby::Lvar(v)), None, false) = (recv, &block, head.safe)
            && let Some(kind) = self.rest_read(&v.name, head.name, args, span)
        {
            return kind;
        }
        if has_list(args) {
            let receiver = recv.map(|r| self.node(r));
            return match receiver {
                Some(receiver) if head.safe => self.spread_safely(receiver, head, args, span, block),
                receiver => self.spread_call(receiver, head, args, span, block),
            };
        }
        if block.is_none()
            && let Some(node) = self.on_text_range(recv, head, args, span)
        {
            return node.kind;
        }
        let characters = self.characters(recv, head, span);
        let mut receiver = characters.or_else(|| recv.map(|r| self.node(r)));
        let mut asked = false;
        if let Some(Node { kind: Kind::Call(mark), .. }) = &mut receiver
            && *mark.name == *"%__asked"
        {
            receiver = mark.receiver.take();
            asked = true;
        }
        let (args, block_arg) = self.args(args);
        let block = block.map(|(b, at)| Arc::new(self.block(b, &at, true)));
        let name: Name = match asked {
            true => format!("{ASKED}{}", head.name).as_str().into(),
            false => self.called(head.name),
        };
        let mut call = Call { receiver, name, name_span, args, block, block_arg, safe: head.safe, matches: false };
        over_enumerator(&mut call);
        match into_variable(&mut call) {
            None => self.noting_match(call, span),
            Some((variable, list)) => {
                let target = Target::Local(variable, span);
                let first = self.make(span, Kind::Assign { target, value: Box::new(list) });
                let each = self.make(span, Kind::Call(Box::new(call)));
                Kind::Seq(vec![first, each, self.make(span, Kind::Local(variable))])
            }
        }
    }

    fn spread_call(
        &mut self,
        receiver: Option<Node>,
        head: &Head<'_>,
        args: &[Ruby],
        span: Span,
        mut block: Option<(Literal<'_>, Loc)>,
    ) -> Kind {
        let name_span = head.at.as_ref().map_or(span, |at| self.span(at));
        let name = self.called(head.name);
        let mut literal = None;
        let make = |s: &mut Self, receiver, args, block_arg| {
            // the block stands after the arguments in the text
            if let Some((b, at)) = block.take() {
                literal = Some(Arc::new(s.block(b, &at, true)));
            }
            let (name, block) = (name.clone(), literal.clone());
            Kind::Call(Box::new(Call {
                receiver,
                name,
                name_span,
                args,
                block,
                block_arg,
                safe: false,
                matches: false,
            }))
        };
        self.spread(receiver, args, span, make).expect("it has a list")
    }

    /// `a&.f(*list)`, whose arguments are evaluated only if the receiver is not nil.
    fn spread_safely(
        &mut self,
        receiver: Node,
        head: &Head<'_>,
        args: &[Ruby],
        span: Span,
        block: Option<(Literal<'_>, Loc)>,
    ) -> Kind {
        let at = receiver.span;
        let (keep, local) = self.keep(receiver);
        let asked = self.local_node(local, at);
        let none = self.send(asked, "%__nil?", Vec::new(), at);
        let nothing = self.nil(span);
        let there = self.local_node(local, at);
        let call = self.spread_call(Some(there), head, args, span, block);
        let call = self.make(span, call);
        let kind = Kind::If { cond: Box::new(none), then: Box::new(nothing), otherwise: Box::new(call) };
        Kind::Seq(vec![keep, self.make(span, kind)])
    }

    /// A call with a splat of a list that is not a literal: one call for each number of elements that the list may
    /// have. The other arguments are evaluated before, in Ruby's order. None: there is no such splat.
    fn spread(
        &mut self,
        recv: Option<Node>,
        args: &[Ruby],
        span: Span,
        mut make: impl FnMut(&mut Self, Option<Node>, Vec<Arg>, Option<Node>) -> Kind,
    ) -> Option<Kind> {
        if !has_list(args) {
            return None;
        }
        let mut before = Vec::new();
        let mut receiver = recv.map(|value| {
            // the receiver may be a list that grows, so the call uses its own variable
            match value.kind {
                Kind::Local(local) => Again::Kept(local, value.span),
                _ => self.again(value, &mut before),
            }
        });
        let is_splat = |arg: &Ruby| matches!(arg, Ruby::Splat(_));
        let (first, last) = (args.iter().position(is_splat)?, args.iter().rposition(is_splat)?);
        let mut given = Vec::new();
        let (mut block, mut named) = (None, None);
        for (i, arg) in args.iter().enumerate() {
            match arg {
                _ if i == first => {
                    let at = self.span_of(arg);
                    let list = match arg {
                        Ruby::Splat(s) if first == last => {
                            let value = self.body(s.value.as_deref(), at);
                            if let Kind::Local(local) = value.kind {
                                named = Some(local);
                            }
                            self.send(value, "%__splat", Vec::new(), at)
                        }
                        _ => {
                            let list = self.array(&args[first..=last], at);
                            self.make(at, list)
                        }
                    };
                    let (keep, local) = self.keep(list);
                    before.push(keep);
                    given.push(Given::List(local));
                }
                _ if first < i && i <= last => {}
                Ruby::BlockPass(b) => {
                    let value = self.block_pass(b);
                    block = Some(self.again(value, &mut before));
                }
                Ruby::Kwargs(k) => {
                    let mut keywords = Vec::new();
                    self.keywords(&k.pairs, &mut keywords);
                    for keyword in keywords {
                        given.push(match keyword {
                            Arg::Keyword(name, value) => Given::Keyword(name, self.again(value, &mut before)),
                            Arg::Positional(value) => Given::One(self.again(value, &mut before)),
                            Arg::KeywordSplat(value) => Given::Keywords(self.again(value, &mut before)),
                        });
                    }
                }
                other => {
                    let value = self.node(other);
                    given.push(Given::One(self.again(value, &mut before)));
                }
            }
        }
        if let Some(Again::Kept(local, at)) = receiver
            && before.iter().any(|node| assigns(node, local))
        {
            let value = self.local_node(local, at);
            let (keep, local) = self.keep(value);
            before.insert(0, keep);
            receiver = Some(Again::Kept(local, at));
        }
        let mut size = None;
        let mut calls = Vec::new();
        for count in 0..=MAX_SPREAD_ELEMENTS {
            let mut args = Vec::new();
            for one in &given {
                match one {
                    Given::One(value) => args.push(Arg::Positional(self.once_more(value))),
                    Given::Keyword(name, value) => args.push(Arg::Keyword(name.clone(), self.once_more(value))),
                    Given::Keywords(value) => args.push(Arg::KeywordSplat(self.once_more(value))),
                    Given::List(list) => {
                        if size.is_none() {
                            let list = self.local_node(*list, span);
                            size = Some(self.send(list, "size", Vec::new(), span));
                        }
                        for i in 0..count {
                            let (list, at) = (self.local_node(*list, span), self.make(span, Kind::Int(i)));
                            args.push(Arg::Positional(self.send(list, "%__at", vec![at], span)));
                        }
                    }
                }
            }
            let receiver = receiver.as_ref().map(|value| self.once_more(value));
            let block = block.as_ref().map(|value| self.once_more(value));
            let kind = make(self, receiver, args, block);
            calls.push(self.make(span, kind));
        }
        let spread = Kind::Spread { list: named, size: Box::new(size?), calls };
        before.push(self.make(span, spread));
        Some(Kind::Seq(before))
    }

    /// Makes a value usable by several nodes: as a literal, or through a new variable.
    fn again(&mut self, value: Node, before: &mut Vec<Node>) -> Again {
        let span = value.span;
        match value.kind {
            Kind::SelfRef => Again::Own(span),
            Kind::Int(n) => Again::Int(n, span),
            Kind::Sym(name) => Again::Sym(name, span),
            kind => {
                let (keep, local) = self.keep(Node { kind, ..value });
                before.push(keep);
                Again::Kept(local, span)
            }
        }
    }

    fn once_more(&mut self, value: &Again) -> Node {
        match value {
            Again::Own(span) => self.make(*span, Kind::SelfRef),
            Again::Int(n, span) => self.make(*span, Kind::Int(*n)),
            Again::Sym(name, span) => self.make(*span, Kind::Sym(name.clone())),
            Again::Kept(local, span) => self.local_node(*local, *span),
        }
    }

    /// The arguments, and the argument after `&`.
    pub(super) fn args(&mut self, args: &[Ruby]) -> (Vec<Arg>, Option<Node>) {
        let mut lowered = Vec::new();
        let mut block_arg = None;
        for arg in args {
            match arg {
                Ruby::BlockPass(b) => block_arg = Some(self.block_pass(b)),
                Ruby::Kwargs(k) => self.keywords(&k.pairs, &mut lowered),
                Ruby::Splat(s) if let Some(elements) = written_out(s) => {
                    lowered.extend(self.list(elements).into_iter().map(Arg::Positional));
                }
                other => lowered.push(Arg::Positional(self.node(other))),
            }
        }
        (lowered, block_arg)
    }

    fn block_pass(&mut self, pass: &nodes::BlockPass) -> Node {
        let span = self.span(&pass.expression_l);
        match &pass.value {
            Some(value) => self.node(value),
            None => match self.scopes.find(ANONYMOUS_BLOCK) {
                Some(local) => self.make(span, Kind::Local(local)),
                None => self.make(span, refuse::FORWARDING),
            },
        }
    }

    fn keywords(&mut self, pairs: &[Ruby], args: &mut Vec<Arg>) {
        for pair in pairs {
            match pair {
                Ruby::Pair(p) => match symbol_key(&p.key) {
                    Some(name) => {
                        let value = self.node(&p.value);
                        args.push(Arg::Keyword(name.into(), value));
                    }
                    None => {
                        let span = self.span_of(pair);
                        let entry = (self.node(&p.key), self.node(&p.value));
                        let hash = self.make(span, Kind::Hash(vec![entry]));
                        args.push(Arg::KeywordSplat(hash));
                    }
                },
                Ruby::Kwsplat(s)
                    if let Ruby::Hash(hash) = &*s.value
                        && new_keys(&hash.pairs, args) =>
                {
                    self.keywords(&hash.pairs, args);
                }
                Ruby::Kwsplat(s) => {
                    let value = self.node(&s.value);
                    args.push(Arg::KeywordSplat(value));
                }
                other => args.push(Arg::Positional(self.node(other))),
            }
        }
    }

    /// `{ key => value, **other }`: what stands behind a `**` is added by calls.
    pub(super) fn hash(&mut self, pairs: &[Ruby], span: Span) -> Kind {
        let is_pair = |pair: &&Ruby| matches!(pair, Ruby::Pair(_));
        let (first, rest) = pairs.split_at(pairs.iter().take_while(is_pair).count());
        let mut entries = Vec::new();
        for pair in first {
            if let Ruby::Pair(p) = pair {
                let key = self.node(&p.key);
                entries.push((key, self.node(&p.value)));
            }
        }
        let mut made = Kind::Hash(entries);
        for pair in rest {
            let at = self.span_of(pair);
            let (name, args) = match pair {
                Ruby::Pair(p) => {
                    let key = self.node(&p.key);
                    ("%__with", vec![key, self.node(&p.value)])
                }
                Ruby::Kwsplat(s) => ("%__with_all", vec![self.node(&s.value)]),
                _ => return refuse::HASH_SPLAT,
            };
            let before = self.make(span, made);
            made = self.send(before, name, args, at).kind;
        }
        made
    }

    /// A literal block. `spreads`: a block proper, not a lambda.
    pub(super) fn block(&mut self, literal: Literal<'_>, at: &Loc, spreads: bool) -> Block {
        let span = self.span(at);
        self.scopes.enter();
        let (mut params, refused) = match literal.numbered {
            Some(count) => (self.numbered_params(count), None),
            None => self.params(literal.args, spreads),
        };
        self.scopes.allow_it(literal.args.is_none() && literal.numbered.is_none());
        let outer = std::mem::take(&mut self.breaks);
        let body = self.body(literal.body, span);
        let breaks = std::mem::replace(&mut self.breaks, outer);
        let mut numbered = literal.numbered.unwrap_or(0);
        if let Some(it) = self.scopes.take_it() {
            params.required.push(Pattern::Local(it));
            numbered = 1;
        }
        let locals = self.scopes.leave();
        Block { params, body: refused.unwrap_or(body), span, numbered, locals, breaks, section: false }
    }

    pub(super) fn constant(&mut self, c: &nodes::Const, span: Span) -> Kind {
        // The parser takes the `_x` of a hash `{_x:}` for a constant.
        if c.scope.is_none() && c.name.starts_with('_') {
            return match self.scopes.find(&c.name) {
                Some(local) => Kind::Local(local),
                None => {
                    let head = Head { name: &c.name, at: Some(c.name_l), safe: false };
                    self.finish_call(None, &head, &[], span, None)
                }
            };
        }
        let base = match c.scope.as_deref() {
            None => ConstBase::Lexical,
            Some(Ruby::Cbase(_)) => ConstBase::Top,
            Some(scope) => ConstBase::Of(self.boxed(scope)),
        };
        Kind::Const(ConstPath { base, name: c.name.as_str().into() })
    }
}

/// A literal block as the parser gives it.
pub(super) struct Literal<'a> {
    args: Option<&'a Ruby>,
    numbered: Option<u8>,
    body: Option<&'a Ruby>,
}

/// The name of a call and where it stands.
pub(super) struct Head<'a> {
    pub(super) name: &'a str,
    pub(super) at: Option<Loc>,
    pub(super) safe: bool,
}

/// The most elements for which a call with a splat is compiled.
const MAX_SPREAD_ELEMENTS: i64 = 8;

/// An argument beside a splat, or the splat's list.
enum Given {
    One(Again),
    Keyword(Name, Again),
    Keywords(Again),
    List(LocalId),
}

/// A value that several nodes can read.
enum Again {
    Own(Span),
    Int(i64, Span),
    Sym(Name, Span),
    Kept(LocalId, Span),
}

/// Whether evaluating a node may assign the variable `local`, apart from the assignment that the node itself is.
fn assigns(node: &Node, local: LocalId) -> bool {
    let is_it = |target: &Target| match target {
        Target::Local(to, _) => *to == local,
        Target::List { .. } => true,
        _ => false,
    };
    let mut found = false;
    crate::syntax::visit::node(node, &mut |n| {
        found |= match &n.kind {
            Kind::Assign { target, .. } => is_it(target) && n.id != node.id,
            Kind::OpAssign { target, .. } => is_it(target),
            Kind::For { .. } | Kind::MultiAssign { .. } | Kind::Begin { .. } | Kind::Yield(_) => true,
            Kind::Call(call) => matches!(&*call.name, "call" | "()" | "yield" | "[]"),
            _ => false,
        };
    });
    found
}

/// Whether arguments contain a splat of a list that is not a literal.
fn has_list(args: &[Ruby]) -> bool {
    args.iter().any(|arg| matches!(arg, Ruby::Splat(s) if s.value.is_some() && written_out(s).is_none()))
}

/// The elements of the array in `f(*[a, b])`.
pub(super) fn written_out(splat: &nodes::Splat) -> Option<&[Ruby]> {
    match splat.value.as_deref() {
        Some(Ruby::Array(array)) if !array.elements.iter().any(|e| matches!(e, Ruby::Splat(_))) => {
            Some(&array.elements)
        }
        _ => None,
    }
}

/// Whether the keys of `f(**{ a: 1 })` are Symbols, none of which was given before.
fn new_keys(pairs: &[Ruby], given: &[Arg]) -> bool {
    let new = |name: &str| !given.iter().any(|arg| matches!(arg, Arg::Keyword(known, _) if &**known == name));
    pairs.iter().all(|pair| matches!(pair, Ruby::Pair(p) if symbol_key(&p.key).is_some_and(new)))
}

fn symbol_key(key: &Ruby) -> Option<&str> {
    match key {
        Ruby::Sym(s) => std::str::from_utf8(&s.name.raw).ok(),
        _ => None,
    }
}

/// The methods that may be called on Enumerators over pieces of a list: Enumerable has them, and their result on an
/// Array is the same.
const OVER_PIECES: &[&str] = &[
    "all?",
    "any?",
    "collect",
    "collect_concat",
    "count",
    "detect",
    "drop",
    "drop_while",
    "each_with_object",
    "entries",
    "filter",
    "filter_map",
    "find",
    "find_all",
    "find_index",
    "first",
    "flat_map",
    "include?",
    "inject",
    "map",
    "max",
    "max_by",
    "member?",
    "min",
    "min_by",
    "minmax_by",
    "none?",
    "one?",
    "partition",
    "reduce",
    "reject",
    "select",
    "sort",
    "sort_by",
    "sum",
    "take",
    "take_while",
    "to_a",
    "uniq",
    "zip",
];

/// The methods of Enumerators that a list of the yielded values can serve instead.
const OF_ENUMERATORS: [&str; 62] = [
    "all?",
    "any?",
    "chunk_while",
    "collect",
    "collect_concat",
    "compact",
    "count",
    "cycle",
    "detect",
    "drop",
    "drop_while",
    "each",
    "each_cons",
    "each_entry",
    "each_slice",
    "each_with_index",
    "each_with_object",
    "entries",
    "filter",
    "filter_map",
    "find",
    "find_all",
    "find_index",
    "first",
    "flat_map",
    "grep",
    "grep_v",
    "group_by",
    "include?",
    "inject",
    "map",
    "max",
    "max_by",
    "member?",
    "min",
    "min_by",
    "minmax",
    "minmax_by",
    "none?",
    "one?",
    "partition",
    "reduce",
    "reject",
    "reverse_each",
    "select",
    "size",
    "slice_when",
    "sort",
    "sort_by",
    "sum",
    "take",
    "take_while",
    "tally",
    "to_a",
    "to_h",
    "to_set",
    "uniq",
    "with_index",
    "with_object",
    "zip",
    "chunk",
    "lazy",
];

/// Those whose result with a block is the same on a Range as on an Enumerator of the same Integers. No list is made.
const OF_SPANS: [&str; 16] = [
    "all?",
    "any?",
    "collect",
    "count",
    "detect",
    "each_with_object",
    "find",
    "find_index",
    "inject",
    "map",
    "max_by",
    "min_by",
    "none?",
    "one?",
    "reduce",
    "sum",
];

/// Those that the prelude has for `each_with_index`, with a block that takes an element and its index. No pair is made.
const OF_INDEXED: [&str; 12] =
    ["all?", "any?", "count", "detect", "filter_map", "find", "find_index", "max_by", "min_by", "none?", "one?", "sum"];

/// Those that give their blocks the values that an Enumerator yields, an element and its index. Others give them one
/// pair of these.
const SPREADING: [&str; 16] = [
    "all?",
    "any?",
    "collect",
    "collect_concat",
    "count",
    "cycle",
    "each",
    "filter_map",
    "find_index",
    "flat_map",
    "map",
    "none?",
    "one?",
    "take_while",
    "to_h",
    "uniq",
];

/// Those that the prelude has for `zip` of two lists, with a block that takes an element of each. No pair is made.
const OF_ZIPPED: [&str; 11] =
    ["all?", "any?", "collect", "count", "filter_map", "find_index", "flat_map", "map", "none?", "one?", "sum"];

/// A call on the Enumerator that an iterator without a block returns. The Enumerator is never made.
/// `map.with_index(1) { … }` becomes one call, and `each_slice(2).sum { … }` a call on the list of the yielded values.
fn over_enumerator(call: &mut Call) {
    let given = call.block.is_some() || call.block_arg.is_some();
    // the block takes the parts of a pair, and never the pair itself
    let by_pairs = call.block.as_ref().is_some_and(|b| b.params.plain() && b.params.required.len() == 2);
    let Some(Node { kind: Kind::Call(inner), .. }) = &mut call.receiver else { return };
    if inner.safe || inner.receiver.is_none() || call.safe {
        return;
    }
    let pieces = matches!(&*inner.name, "chunk" | "chunk_while" | "slice_when" | "slice_before" | "slice_after");
    let by_block = inner.block.is_some() || inner.block_arg.is_some();
    if pieces && (by_block || inner.args.len() == 1) {
        if &*call.name == "each" && given && call.args.is_empty() {
            call.name = format!("{PRIMITIVE}each_piece").as_str().into();
        } else if !OVER_PIECES.contains(&&*call.name) {
            return;
        }
        inner.name = format!("{PRIMITIVE}list_{}", inner.name).as_str().into();
        return;
    }
    if by_block {
        return;
    }
    let fused = match (&*inner.name, &*call.name) {
        ("cycle", "take" | "first") if inner.args.is_empty() && !given => {
            format!("{PRIMITIVE}cycle_{}", call.name)
        }
        ("cycle", "take" | "first" | "to_a" | "entries" | "map" | "collect" | "each_slice" | "each_cons")
            if !inner.args.is_empty() =>
        {
            inner.name = format!("{PRIMITIVE}list_cycle").as_str().into();
            return;
        }
        (
            "map" | "collect" | "each" | "select" | "filter" | "reject" | "filter_map" | "flat_map",
            "with_index" | "each_with_index",
        )
        | ("each_char" | "each_byte" | "reverse_each", "with_index" | "each_with_index")
            if given && inner.args.is_empty() =>
        {
            format!("{PRIMITIVE}{}_with_index", inner.name)
        }
        // `each.with_index(1).map { … }`: the outer method is called on the list of pairs
        ("with_index", name) if over_list(inner) => {
            if SPREADING.contains(&name) && !by_parts(&mut call.block, call.block_arg.is_some()) {
                return;
            }
            inner.name = "%__list_with_index".into();
            return;
        }
        ("each_with_index", name)
            if by_pairs && OF_INDEXED.contains(&name) && inner.args.is_empty() && call.args.is_empty() =>
        {
            format!("{PRIMITIVE}each_with_index_{name}")
        }
        ("zip", name) if by_pairs && OF_ZIPPED.contains(&name) => {
            let [Arg::Positional(second)] = &inner.args[..] else { return };
            // the start is computed after the pairs
            let start =
                |arg: &Arg| matches!(arg, Arg::Positional(n) if matches!(n.kind, Kind::Int(_) | Kind::Float(_)));
            if matches!(second.kind, Kind::Splat(_))
                || call.args.len() > usize::from(name == "sum")
                || !call.args.iter().all(start)
            {
                return;
            }
            let mut args = std::mem::take(&mut inner.args);
            args.append(&mut call.args);
            call.args = args;
            format!("{PRIMITIVE}zipped_{name}")
        }
        ("each_with_index", "map" | "collect") if given && inner.args.is_empty() && call.args.is_empty() => {
            "%__map_with_index".to_string()
        }
        ("step", "size") if !given && call.args.is_empty() => {
            call.args = std::mem::take(&mut inner.args);
            "%__step_size".to_string()
        }
        // an Enumerator is not an Array, and has no other methods
        (_, name) if !(OF_ENUMERATORS.contains(&name) || &*inner.name == "step" && name == "last") => return,
        ("times" | "upto" | "each_index", name) if OF_SPANS.contains(&name) && given => {
            inner.name = format!("{PRIMITIVE}span_{}", inner.name).as_str().into();
            return;
        }
        ("times" | "upto" | "downto" | "step" | "each" | "each_entry" | "each_index" | "reverse_each", name)
        | (
            "each_with_index"
            | "each_slice"
            | "each_cons"
            | "each_char"
            | "each_byte"
            | "each_line"
            | "each_pair"
            | "each_key"
            | "each_value"
            | "combination"
            | "permutation"
            | "repeated_combination"
            | "repeated_permutation",
            name,
        ) => {
            let two = &*inner.name == "each_with_index" && SPREADING.contains(&name);
            if two && !by_parts(&mut call.block, call.block_arg.is_some()) {
                return;
            }
            if name == "with_object" {
                call.name = "each_with_object".into();
            }
            inner.name = format!("{PRIMITIVE}list_{}", inner.name).as_str().into();
            return;
        }
        _ => return,
    };
    call.name = fused.as_str().into();
    call.receiver = inner.receiver.take();
}

/// Has a block that gets one pair take it as the two values that Ruby gives it. `|x|` is then the first, and `|*all|`
/// has both. False: what the block is, is not known here.
fn by_parts(block: &mut Option<Arc<Block>>, given_otherwise: bool) -> bool {
    let Some(block) = block else { return !given_otherwise };
    let params = &mut Arc::make_mut(block).params;
    // Ruby spreads the pair itself where a block has more parameters
    let takes_one = params.required.len() == 1 && params.plain();
    let takes_all =
        params.required.is_empty() && params.rest.is_some() && params.optional.is_empty() && params.post.is_empty();
    if takes_one || takes_all {
        let rest = params.rest.take();
        let before = std::mem::take(&mut params.required);
        params.required.push(Pattern::List { before, rest, after: Vec::new() });
    }
    true
}

/// `each_with_object([]) { |x, list| … }`: the list becomes a variable around the block. Nothing else refers to the
/// list, so it may grow. Returns the variable and its first value, and leaves a call with a block of one parameter.
fn into_variable(call: &mut Call) -> Option<(LocalId, Node)> {
    let ("each_with_object", [Arg::Positional(Node { kind, .. })]) = (&*call.name, call.args.as_slice()) else {
        return None;
    };
    let new = match kind {
        Kind::Array(items) => items.is_empty(),
        Kind::Str(_) => true,
        Kind::Call(text) => &*text.name == "+@" && matches!(&text.receiver, Some(Node { kind: Kind::Str(_), .. })),
        _ => false,
    };
    let block = Arc::get_mut(call.block.as_mut()?)?;
    let [_, Pattern::Local(variable)] = *block.params.required.as_slice() else { return None };
    if !new || block.breaks || block.numbered > 0 || !block.params.plain() || call.safe || call.receiver.is_none() {
        return None;
    }
    // Ruby's result is what was given
    if super::assigns(&block.body, variable) {
        return None;
    }
    block.params.required.pop();
    call.name = format!("{PRIMITIVE}list_each_with_object").as_str().into();
    match call.args.pop() {
        Some(Arg::Positional(list)) => Some((variable, list)),
        _ => None,
    }
}

/// Whether the receiver of a call becomes the list of the values that an iterator yields.
fn over_list(call: &Call) -> bool {
    matches!(call.receiver.as_ref().map(|r| &r.kind), Some(Kind::Call(list)) if list.name.strip_prefix('%').is_some_and(|name| listed(name).is_some()))
}
