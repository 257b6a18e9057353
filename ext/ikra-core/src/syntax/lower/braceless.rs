//! `hash.merge(a: 1)` and `text.gsub(/…/, "a" => "b")`: keywords of Ruby's own methods that take no keywords.
//!
//! Here: the call with a Hash in place of the keywords, where the name means a method of Ruby's own. If it means one of
//! the program's, the call stays as it is, which inference decides. Not here: types.

use super::Lower;
use super::calls::{Head, Literal};
use crate::diagnostic::Span;
use crate::syntax::ast::{Arg, Call, Kind, LocalId, Name, Node};
use lib_ruby_parser::{Loc, Node as Ruby};
use std::sync::Arc;

/// The methods of Hash and String whose last argument may be a Hash.
const TAKES_HASH: &[&str] = &["merge", "merge!", "update", "transform_keys", "sub", "gsub"];

/// What stands between the braces that are not written.
enum Part {
    Named(Name, LocalId),
    Pair(LocalId, LocalId),
    /// `**other`
    All(LocalId),
}

impl Lower<'_> {
    /// None: it is no such call, and the block is still there.
    pub(super) fn braceless(
        &mut self,
        recv: Option<&Ruby>,
        head: &Head<'_>,
        args: &[Ruby],
        span: Span,
        block: &mut Option<(Literal<'_>, Loc)>,
    ) -> Option<Kind> {
        let (recv, [given @ .., Ruby::Kwargs(keywords)]) = (recv?, args) else { return None };
        let plain =
            |arg: &Ruby| !matches!(arg, Ruby::Splat(_) | Ruby::BlockPass(_) | Ruby::ForwardedArgs(_) | Ruby::Kwargs(_));
        let known = |pair: &Ruby| matches!(pair, Ruby::Pair(_) | Ruby::Kwsplat(_));
        if head.safe
            || !TAKES_HASH.contains(&head.name)
            || !given.iter().all(plain)
            || !keywords.pairs.iter().all(known)
        {
            return None;
        }
        let receiver = self.node(recv);
        let (keep, receiver) = self.keep(receiver);
        let mut all = vec![keep];
        let mut values = Vec::new();
        for arg in given {
            let value = self.node(arg);
            let (keep, local) = self.keep(value);
            all.push(keep);
            values.push(local);
        }
        let mut pairs = Vec::new();
        for pair in &keywords.pairs {
            let mut keep = |s: &mut Self, value: &Ruby| {
                let value = s.node(value);
                let (keep, local) = s.keep(value);
                all.push(keep);
                local
            };
            pairs.push(match pair {
                Ruby::Pair(p) => match &*p.key {
                    Ruby::Sym(name) => {
                        let name: Name = String::from_utf8_lossy(&name.name.raw).as_ref().into();
                        Part::Named(name, keep(self, &p.value))
                    }
                    key => {
                        let key = keep(self, key);
                        Part::Pair(key, keep(self, &p.value))
                    }
                },
                Ruby::Kwsplat(other) => Part::All(keep(self, &other.value)),
                _ => return None,
            });
        }
        let block = block.take().map(|(b, at)| Arc::new(self.block(b, &at, true)));
        let ways = [true, false].map(|own| {
            let mut args: Vec<Arg> = Vec::new();
            args.extend(values.iter().map(|local| Arg::Positional(self.local_node(*local, span))));
            if own {
                let hash = self.hash_of(&pairs, span);
                args.push(Arg::Positional(hash));
            } else {
                for part in &pairs {
                    args.push(match part {
                        Part::Named(name, value) => Arg::Keyword(name.clone(), self.local_node(*value, span)),
                        part => Arg::KeywordSplat(self.hash_of(std::slice::from_ref(part), span)),
                    });
                }
            }
            let call = Call {
                receiver: Some(self.local_node(receiver, span)),
                name: self.called(head.name),
                name_span: head.at.as_ref().map_or(span, |at| self.span(at)),
                args,
                block: block.clone(),
                block_arg: None,
                safe: false,
                matches: false,
            };
            let kind = self.noting_match(call, span);
            Box::new(self.make(span, kind))
        });
        let name = self.make(span, Kind::Sym(head.name.into()));
        let asked = self.local_node(receiver, span);
        let asks = self.send(asked, "%__own?", vec![name], span);
        let [then, otherwise] = ways;
        let choice = Kind::If { cond: Box::new(asks), then, otherwise };
        all.push(self.make(span, choice));
        Some(Kind::Seq(all))
    }
    fn hash_of(&mut self, parts: &[Part], span: Span) -> Node {
        let mut made = self.make(span, Kind::Hash(Vec::new()));
        for part in parts {
            let (name, args) = match part {
                Part::Named(name, value) => {
                    let key = self.make(span, Kind::Sym(name.clone()));
                    ("%__with", vec![key, self.local_node(*value, span)])
                }
                Part::Pair(key, value) => ("%__with", vec![self.local_node(*key, span), self.local_node(*value, span)]),
                Part::All(other) => ("%__with_all", vec![self.local_node(*other, span)]),
            };
            made = self.send(made, name, args, span);
        }
        made
    }
}
