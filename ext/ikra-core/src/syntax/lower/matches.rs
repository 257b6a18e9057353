//! `$1` and the like: which match was the last.
//!
//! Here: three variables of the unit, which hold the text and the Regexp of the last match, and from which byte on it
//! is the first one. A unit has them if it reads `$1`. `text =~ /…/` assigns them, and a call that may match in another
//! way assigns a Symbol that says so. Then `$1` becomes `text.__nth_part(regexp, 1, from)`, which matches once more. In
//! a block of `gsub` and `sub`, the first parameter is a part of the text, so it says where the match is. Not here:
//! types. They tell which value is a Regexp, and that `$1` follows no match.

use super::{Lower, refuse};
use crate::diagnostic::Span;
use crate::syntax::ast::{Arg, Block, Call, Kind, LocalId, Node, Pattern, Target, When};
use std::sync::Arc;

#[derive(Clone, Copy)]
pub(super) struct LastMatch {
    text: LocalId,
    regexp: LocalId,
    from: LocalId,
}

/// Methods after which the last match is the first one in the text.
const FIRST: &[&str] = &["=~", "!~", "===", "[]", "slice", "sub", "partition"];

/// Other methods that may match.
const OTHERS: &[&str] = &[
    "scan",
    "gsub",
    "index",
    "rindex",
    "byteindex",
    "byterindex",
    "rpartition",
    "start_with?",
    "split",
    "match",
    "grep",
    "grep_v",
    "any?",
    "all?",
    "none?",
    "one?",
    "slice_before",
    "slice_after",
    "slice_when",
    "chunk_while",
    "count",
    "delete_prefix",
    "delete_suffix",
    "end_with?",
    "include?",
    "each_line",
    "lines",
    "case",
    "find_index",
    "last_match",
];

/// Methods whose block is called after a match of the argument.
const YIELDING: &[&str] = &["scan", "gsub", "sub", "match", "grep", "grep_v"];

/// Those of them whose block gets the text that matches.
const GIVING: &[&str] = &["gsub", "sub"];

/// Methods that call what their argument names, or a Proc, whose code may match.
const CALLERS: &[&str] = &["send", "__send__", "public_send", "call", "()", "yield", "instance_exec", "instance_eval"];

impl Lower<'_> {
    /// `$1`, or `$&` as group 0.
    pub(super) fn nth_match(&mut self, group: i64, span: Span) -> Kind {
        self.reads_match = true;
        let Some(LastMatch { text, regexp, from }) = self.last_match() else { return refuse::MATCH_VARIABLE };
        let [text, regexp, from] = [text, regexp, from].map(|local| self.local_node(local, span));
        let group = self.make(span, Kind::Int(group));
        self.send(text, "%__nth_part", vec![regexp, group, from], span).kind
    }

    fn last_match(&mut self) -> Option<LastMatch> {
        if !self.tracks_matches {
            return None;
        }
        if self.last_match.is_none() {
            let [text, regexp, from] = std::array::from_fn(|_| self.scopes.method_temp());
            self.last_match = Some(LastMatch { text, regexp, from });
        }
        self.last_match
    }

    fn note(&mut self, local: LocalId, value: Node) -> Node {
        let span = value.span;
        self.make(span, Kind::Assign { target: Target::Local(local, span), value: Box::new(value) })
    }

    /// Says what the last match is: the first one in the text from a byte on.
    fn note_match(&mut self, last: LastMatch, [text, regexp, from]: [Node; 3]) -> [Node; 3] {
        [self.note(last.text, text), self.note(last.regexp, regexp), self.note(last.from, from)]
    }

    /// Says that `$1` is not known from here on.
    fn forget_match(&mut self, LastMatch { regexp, .. }: LastMatch, span: Span) -> Node {
        let unknown = self.make(span, Kind::Sym("unknown".into()));
        self.note(regexp, unknown)
    }

    /// Evaluates what a call reads again afterwards. Variables are read again themselves.
    fn read_twice(&mut self, node: Node, before: &mut Vec<Node>) -> (Node, LocalId) {
        if let Kind::Local(local) = node.kind {
            return (node, local);
        }
        self.read_once(node, before)
    }

    /// Evaluates what is read again afterwards.
    fn read_once(&mut self, node: Node, before: &mut Vec<Node>) -> (Node, LocalId) {
        let span = node.span;
        let (keep, local) = self.keep(node);
        before.push(keep);
        (self.local_node(local, span), local)
    }

    /// A call, and what it does to the last match.
    pub(super) fn noting_match(&mut self, mut call: Call, span: Span) -> Kind {
        let name = call.name.trim_start_matches(['?', ':', '@']).to_owned();
        // a block of `sub` may match as well
        let first = FIRST.contains(&&*name) || name == "match" && call.args.len() == 1;
        let first = first && call.block.is_none();
        // a block from outside may match in the same method
        let given = call.block_arg.as_ref().is_some_and(|block| !matches!(block.kind, Kind::Sym(_)));
        let calls = given || CALLERS.contains(&&*name);
        let known = FIRST.contains(&&*name) || OTHERS.contains(&&*name);
        if !known && !calls {
            return Kind::Call(Box::new(call));
        }
        let Some(last) = self.last_match() else { return Kind::Call(Box::new(call)) };
        if YIELDING.contains(&&*name)
            && let Some(block) = &mut call.block
        {
            // which match it is, only the method knows
            let at = block.body.span;
            let forget = self.forget_match(last, at);
            let block = Arc::make_mut(block);
            let body = std::mem::replace(&mut block.body, self.nil(at));
            block.body = self.make(at, Kind::Seq(vec![forget, body]));
        }
        let plain = |node: &Node| {
            let number = matches!(node.kind, Kind::Int(_) | Kind::Float(_) | Kind::Sym(_) | Kind::Range { .. });
            number || matches!(node.kind, Kind::Str(_)) && &*name == "[]"
        };
        let simple = !call.safe && call.receiver.is_some() && !calls;
        match (&call.args[..], simple) {
            ([] | [Arg::Keyword(..)], true) => return Kind::Call(Box::new(call)),
            ([Arg::Positional(arg), ..], true) if plain(arg) => return Kind::Call(Box::new(call)),
            ([Arg::Positional(_), ..], true) => {}
            _ => {
                let call = self.make(span, Kind::Call(Box::new(call)));
                let (value, local) = self.keep(call);
                let forget = self.forget_match(last, span);
                return Kind::Seq(vec![value, forget, self.local_node(local, span)]);
            }
        }
        let mut all = Vec::new();
        let (Some(receiver), Arg::Positional(arg)) = (call.receiver.take(), call.args.remove(0)) else {
            unreachable!("matched above")
        };
        let giving = GIVING.contains(&&*name) && call.block.is_some();
        // a block may assign the variables that the call reads
        let read = if giving { Self::read_once } else { Self::read_twice };
        let (receiver, at) = read(self, receiver, &mut all);
        let (arg, pattern) = read(self, arg, &mut all);
        if let (true, Some(block)) = (giving, &mut call.block) {
            self.note_given(last, Arc::make_mut(block), at, pattern);
        }
        call.receiver = Some(receiver);
        call.args.insert(0, Arg::Positional(arg));
        let call = self.make(span, Kind::Call(Box::new(call)));
        let (value, result) = self.keep(call);
        all.push(value);
        let of = |s: &mut Self, name: &str, old: LocalId| {
            let (receiver, args) = (s.local_node(at, span), [pattern, old].map(|local| s.local_node(local, span)));
            s.send(receiver, name, args.into(), span)
        };
        if first {
            let text = of(self, "%__seen_text", last.text);
            let regexp = of(self, "%__seen", last.regexp);
            let from = self.make(span, Kind::Int(0));
            all.extend(self.note_match(last, [text, regexp, from]));
        } else {
            let regexp = of(self, "%__lost", last.regexp);
            let regexp = self.note(last.regexp, regexp);
            all.push(regexp);
        }
        all.push(self.local_node(result, span));
        Kind::Seq(all)
    }

    /// In a block that gets what matches of a text: the last match is that one.
    fn note_given(&mut self, last: LastMatch, block: &mut Block, text: LocalId, pattern: LocalId) {
        let at = block.body.span;
        if !block.params.take_any() {
            block.params.required.push(Pattern::Local(self.scopes.method_temp()));
        }
        let [Pattern::Local(part), ..] = block.params.required[..] else { return };
        let [own, part, regexp] = [text, part, pattern].map(|local| self.local_node(local, at));
        let from = self.send(own, "%__place_of", vec![part], at);
        let text = self.local_node(text, at);
        let noted = self.note_match(last, [text, regexp, from]);
        let Kind::Seq(all) = &mut block.body.kind else { unreachable!("such a block begins by forgetting the match") };
        let body = all.len() - 1;
        all.splice(body..body, noted);
    }

    /// A pattern match, whose patterns may match a text.
    pub(super) fn forgetting_match(&mut self, kind: Kind, span: Span) -> Kind {
        let Some(last) = self.last_match() else { return kind };
        let forget = self.forget_match(last, span);
        Kind::Seq(vec![forget, self.make(span, kind)])
    }

    /// `case subject when /…/`: in the body of a single literal, the last match is that of the subject.
    pub(super) fn noting_case(&mut self, kind: Kind, span: Span) -> Kind {
        let (true, Kind::Case { subject: Some(subject), whens, otherwise }) = (self.tracks_matches, kind) else {
            unreachable!("asked for a case with a subject")
        };
        let Some(last) = self.last_match() else { unreachable!("matches are tracked") };
        let mut all = Vec::new();
        let (subject, local) = self.read_twice(*subject, &mut all);
        let mut matched = false;
        let mut noted = Vec::new();
        for When { tests, body } in whens {
            let plain = |test: &Node| matches!(test.kind, Kind::Int(_) | Kind::Sym(_) | Kind::Str(_) | Kind::Nil);
            let at = body.span;
            let body = match &tests[..] {
                [Node { kind: Kind::Regexp(source), .. }] => {
                    let regexp = self.make(at, Kind::Regexp(source.clone()));
                    let text = self.local_node(local, at);
                    let from = self.make(at, Kind::Int(0));
                    let [text, regexp, from] = self.note_match(last, [text, regexp, from]);
                    self.make(at, Kind::Seq(vec![text, regexp, from, body]))
                }
                tests if !matched && tests.iter().all(plain) => body,
                _ => {
                    let forget = self.forget_match(last, at);
                    self.make(at, Kind::Seq(vec![forget, body]))
                }
            };
            matched |= !tests.iter().all(plain);
            noted.push(When { tests, body });
        }
        let otherwise = if matched {
            let (at, forget) = (otherwise.span, self.forget_match(last, otherwise.span));
            Box::new(self.make(at, Kind::Seq(vec![forget, *otherwise])))
        } else {
            otherwise
        };
        let case = Kind::Case { subject: Some(Box::new(subject)), whens: noted, otherwise };
        all.push(self.make(span, case));
        Kind::Seq(all)
    }
}
