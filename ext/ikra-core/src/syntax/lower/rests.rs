//! `**rest` in patterns of keys. Its Hash is never made.
//!
//! Here: where the pattern matches, variables take what the unit reads of the Hash: a key's value, whether the key is
//! there, how many keys there are. The unit's calls on `rest` read these variables. Not here: the other keys of a
//! pattern ([`super::patterns`]). Invariant: only `**` binds such a variable, and it never occurs as a value.

use super::{Lower, refuse};
use crate::diagnostic::Span;
use crate::syntax::ast::{Kind, LocalId, Name, Node};
use lib_ruby_parser::Node as Ruby;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The variables that `**` binds in one unit.
#[derive(Default)]
pub(super) struct Rests {
    bound: HashMap<LocalId, Rest>,
    /// By the variable's name: the keys that the unit reads from it.
    pub asked: BTreeMap<Name, BTreeSet<Name>>,
    /// `asked`, as the first walk over the unit left it.
    pub known: BTreeMap<Name, BTreeSet<Name>>,
}

/// The variables that hold what is read of one `**rest`.
#[derive(Clone)]
struct Rest {
    /// True where the pattern has matched; else `rest` is nil.
    matched: LocalId,
    size: LocalId,
    /// By key: the variable that tells whether it is there, and the one with its value, or the default value.
    keys: BTreeMap<Name, (LocalId, LocalId)>,
}

impl Rests {
    pub fn has(&self, local: LocalId) -> bool {
        self.bound.contains_key(&local)
    }
}

impl Lower<'_> {
    /// Assigns what the unit reads of the keys that the pattern does not name; the result is true.
    pub(super) fn bind_keys(&mut self, name: &str, subject: LocalId, named: &[Name], span: Span) -> Node {
        let known = self.scopes.find(name);
        let Some(rest) = self.rest_of(name, known) else {
            let (what, advice) = refuse::OTHER_REST;
            return self.make(span, refuse::refuse(what, advice));
        };
        let mut items = Vec::new();
        for (key, (has, value)) in &rest.keys {
            let is_left = match named.contains(key) {
                true => self.make(span, Kind::False),
                false => self.ask(subject, "%__keys?", Some(key), span),
            };
            items.push(self.set(*has, is_left, span));
            let cond = Box::new(self.local_node(*has, span));
            let then = match named.contains(key) {
                true => self.nil(span),
                false => self.ask(subject, "%__member", Some(key), span),
            };
            let otherwise = Box::new(self.ask(subject, "%__rest_default", None, span));
            let found = self.make(span, Kind::If { cond, then: Box::new(then), otherwise });
            items.push(self.set(*value, found, span));
        }
        let (count, less) = (self.ask(subject, "%__key_count", None, span), named.len() as i64);
        let less = self.make(span, Kind::Int(less));
        let size = self.send(count, "@-", vec![less], span);
        items.push(self.set(rest.size, size, span));
        let yes = self.make(span, Kind::True);
        items.push(self.set(rest.matched, yes, span));
        items.push(self.make(span, Kind::True));
        self.make(span, Kind::Seq(items))
    }

    /// None: the name is that of another variable.
    fn rest_of(&mut self, name: &str, known: Option<LocalId>) -> Option<Rest> {
        if let Some(local) = known {
            return self.rests.bound.get(&local).cloned();
        }
        let local = self.local(name);
        let keys = self.rests.known.get(name).cloned().unwrap_or_default();
        let keys = keys.into_iter().map(|key| (key, (self.scopes.temp(), self.scopes.temp()))).collect();
        let rest = Rest { matched: self.scopes.temp(), size: self.scopes.temp(), keys };
        self.rests.bound.insert(local, rest.clone());
        Some(rest)
    }

    fn ask(&mut self, subject: LocalId, name: &str, key: Option<&Name>, span: Span) -> Node {
        let object = self.local_node(subject, span);
        let args = key.map(|key| self.make(span, Kind::Sym(key.clone())));
        self.send(object, name, args.into_iter().collect(), span)
    }

    /// A call on a variable that `**` has bound. None: the variable is of another kind, or the call is not supported.
    pub(super) fn rest_read(&mut self, variable: &str, name: &str, args: &[Ruby], span: Span) -> Option<Kind> {
        let local = self.scopes.find(variable)?;
        let rest = self.rests.bound.get(&local)?.clone();
        let key: Option<Name> = match args {
            [] => None,
            [Ruby::Sym(s)] => Some(std::str::from_utf8(&s.name.raw).ok()?.into()),
            _ => return None,
        };
        let answer = match (name, &key) {
            ("[]" | "dig" | "key?" | "has_key?" | "include?" | "member?", Some(key)) => {
                self.rests.asked.entry(variable.into()).or_default().insert(key.clone());
                match rest.keys.get(key) {
                    Some((_, value)) if matches!(name, "[]" | "dig") => self.local_node(*value, span),
                    Some((has, _)) => self.local_node(*has, span),
                    // in the first walk the variable does not exist yet; the second walk replaces this
                    None => self.make(span, refuse::REST),
                }
            }
            ("size" | "length" | "count", None) => self.local_node(rest.size, span),
            ("empty?" | "any?", None) => {
                let (size, none) = (self.local_node(rest.size, span), self.make(span, Kind::Int(0)));
                self.send(size, if name == "any?" { "@>" } else { "@==" }, vec![none], span)
            }
            _ => return None,
        };
        let cond = Box::new(self.local_node(rest.matched, span));
        let nil = self.nil(span);
        let args = key.map(|key| self.make(span, Kind::Sym(key)));
        let otherwise = Box::new(self.send(nil, name, args.into_iter().collect(), span));
        Some(Kind::If { cond, then: Box::new(answer), otherwise })
    }
}
