//! Narrows the types of variables by conditions.
//!
//! Here: tests that Ruby itself answers (`nil?`, `is_a?`, `===`, `== nil`, the value's own truth), and the type of a
//! variable on each side of them. Not here: `case`, which narrows its subject itself ([`super`]).

use super::{Env, Walker};
use crate::id::ClassId;
use crate::infer::Analysis;
use crate::syntax::ast::{self, Arg, Call, Kind, LocalId, Node};
use crate::types::Atom;

impl Walker<'_, '_> {
    /// Narrows types of locals by a condition.
    pub(super) fn narrow(&mut self, cond: &Node, env: &mut Env, truth: bool) {
        match &cond.kind {
            Kind::Not(x) => self.narrow(x, env, !truth),
            Kind::And(a, b) if truth => {
                self.narrow_before(a, b, env, truth);
                self.narrow(b, env, true);
            }
            Kind::Or(a, b) if !truth => {
                self.narrow_before(a, b, env, truth);
                self.narrow(b, env, false);
            }
            Kind::Seq(items) => {
                if let Some(last) = items.last() {
                    self.narrow(last, env, truth);
                }
            }
            Kind::Local(local) | Kind::Assign { target: ast::Target::Local(local, _), .. } => {
                self.keep(env, *local, |_, a| matches!(a, Atom::Nil | Atom::False) != truth);
            }
            Kind::Call(call) => self.narrow_by_call(call, env, truth),
            _ => {}
        }
    }

    /// Narrows by `a`, which is evaluated before `b`, except for variables that `b` assigns.
    fn narrow_before(&mut self, a: &Node, b: &Node, env: &mut Env, truth: bool) {
        let known = self.reassigned.len();
        if assigned(b, &mut self.reassigned) {
            self.narrow(a, env, truth);
        }
        self.reassigned.truncate(known);
    }

    /// Narrows by a call, if Ruby itself answers it: a class may define a `nil?` or an `==` of its own.
    fn narrow_by_call(&mut self, call: &Call, env: &mut Env, truth: bool) {
        let Some(receiver) = &call.receiver else { return };
        let local = |node: &Node| match node.kind {
            Kind::Local(local) => Some(local),
            _ => None,
        };
        let types = |node: &Node| self.here.types[node.id.index()].atoms();
        let from = self.here.id;
        match (&*call.name, call.args.as_slice()) {
            ("===", [Arg::Positional(asked)]) => {
                if let Some(local) = local(asked)
                    && let [class @ Atom::Module(m)] = types(receiver)[..]
                    && self.an.asks_class(from, class)
                {
                    self.keep(env, local, |an, a| an.may_answer(a, m, truth));
                }
            }
            (name, args) => {
                let Some(local) = local(receiver) else { return };
                let question = match (name, args) {
                    ("nil?" | "%__nil?", []) => Question::Is(Atom::Nil),
                    ("==" | "!=", [Arg::Positional(n)]) if matches!(n.kind, Kind::Nil) => Question::Is(Atom::Nil),
                    ("%__kin?" | "%__array?", [Arg::Positional(_)]) => Question::Kin(self.here.self_ty.atoms()[0]),
                    ("is_a?" | "kind_of?", [Arg::Positional(class)]) => match types(class)[..] {
                        [Atom::Module(m)] => Question::Of(m),
                        _ => return,
                    },
                    _ => return,
                };
                self.keep(env, local, |an, a| {
                    if call.safe && a == Atom::Nil {
                        return !truth;
                    }
                    if !an.is_rubys(from, a, name) || name == "!=" && !an.is_rubys(from, a, "==") {
                        return true;
                    }
                    match question {
                        Question::Is(atom) => (a == atom) == (truth == (name != "!=")),
                        Question::Kin(own) => an.is_kin(a, own) == truth,
                        Question::Of(class) => an.may_answer(a, class, truth),
                    }
                });
            }
        }
    }

    pub(super) fn keep(
        &mut self,
        env: &mut Env,
        local: LocalId,
        mut keep: impl FnMut(&mut Analysis<'_>, Atom) -> bool,
    ) {
        let at = self.here.base + local.index();
        if env.dead || env.locals[at].unset || self.reassigned.contains(&local) {
            return;
        }
        let ty = env.locals[self.here.base + local.index()].ty.clone();
        let narrowed = ty.filter(|a| keep(self.an, a));
        if narrowed.is_never() {
            env.dead = true;
        } else {
            env.locals[self.here.base + local.index()].ty = narrowed;
        }
    }
}

/// Adds the variables that a node may assign. False: a lambda may assign others.
pub fn assigned(node: &Node, locals: &mut Vec<LocalId>) -> bool {
    fn note(target: &ast::Target, locals: &mut Vec<LocalId>) {
        match target {
            ast::Target::Local(local, _) => locals.push(*local),
            ast::Target::List { before, rest, after } => {
                let rest = rest.iter().flatten().map(|t| &**t);
                before.iter().chain(rest).chain(after).for_each(|t| note(t, locals));
            }
            _ => {}
        }
    }
    let mut all = true;
    crate::syntax::visit::node(node, &mut |n| match &n.kind {
        Kind::Assign { target, .. } | Kind::OpAssign { target, .. } => note(target, locals),
        Kind::For { target, .. } => note(target, locals),
        Kind::MultiAssign { before, rest, after, .. } => {
            let rest = rest.iter().flatten().map(|t| &**t);
            before.iter().chain(rest).chain(after).for_each(|t| note(t, locals));
        }
        Kind::Begin { rescues, .. } => rescues.iter().filter_map(|r| r.binding.as_ref()).for_each(|t| note(t, locals)),
        Kind::Call(call) => all &= !matches!(&*call.name, "call" | "()" | "yield"),
        _ => {}
    });
    all
}

/// A test of a variable's value.
#[derive(Clone, Copy)]
enum Question {
    Is(Atom),
    Kin(Atom),
    Of(ClassId),
}
