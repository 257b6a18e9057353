//! Walks over a tree.
//!
//! Here: [`unit()`] and [`node()`], which show every node to a function, including the nodes of blocks, targets and
//! defaults; [`reads_any`], which tells whether a block reads certain variables; [`children_mut`], for changes.

use super::ast::{Arg, AssignOp, Block, ConstBase, Kind, LocalId, Name, Node, Params, Target, Unit, variable_of};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Every node of a unit, outer ones first.
pub fn unit<'a>(unit: &'a Unit, see: &mut impl FnMut(&'a Node)) {
    params(&unit.params, see);
    node(&unit.body, see);
}

/// The class variables that a unit sets otherwise than by an operation that elements may contribute to a shared place.
pub fn set_class_variables(of: &Unit) -> BTreeSet<Name> {
    fn variable(node: &Node) -> Option<&str> {
        match &node.kind {
            Kind::Const(path) => variable_of(&path.name),
            _ => None,
        }
    }
    let (mut contributed, mut found) = (BTreeSet::new(), BTreeSet::new());
    unit(of, &mut |node| match &node.kind {
        Kind::OpAssign { target: Target::Attr { receiver, .. }, op, .. } if variable(receiver).is_some() => {
            let shared = match op {
                AssignOp::Method(op) => matches!(&**op, "+" | "-" | "&" | "|" | "^"),
                AssignOp::Or | AssignOp::And => true,
            };
            if shared {
                contributed.insert(receiver.id);
            }
        }
        _ if !contributed.contains(&node.id) => found.extend(variable(node).map(Name::from)),
        _ => {}
    });
    found
}

/// A node and all nodes below it, outer ones first.
pub fn node<'a>(at: &'a Node, see: &mut impl FnMut(&'a Node)) {
    see(at);
    match &at.kind {
        Kind::Nil
        | Kind::True
        | Kind::False
        | Kind::SelfRef
        | Kind::Int(_)
        | Kind::BigInt(_)
        | Kind::Float(_)
        | Kind::Sym(_)
        | Kind::Str(_)
        | Kind::Regexp(_)
        | Kind::Local(_)
        | Kind::Ivar(_)
        | Kind::Retry
        | Kind::Found
        | Kind::Unsupported { .. } => {}
        Kind::DStr(text) => node(text, see),
        Kind::Array(items) | Kind::Seq(items) => items.iter().for_each(|n| node(n, see)),
        Kind::Hash(pairs) => pairs.iter().flat_map(|(k, v)| [k, v]).for_each(|n| node(n, see)),
        Kind::Range { from, to, .. } => from.iter().chain(to).for_each(|n| node(n, see)),
        Kind::Splat(x) | Kind::Not(x) | Kind::Defined(x) => node(x, see),
        Kind::Const(path) => {
            if let ConstBase::Of(base) = &path.base {
                node(base, see);
            }
        }
        Kind::Assign { target: to, value } | Kind::OpAssign { target: to, value, .. } => {
            target(to, see);
            node(value, see);
        }
        Kind::MultiAssign { before, rest, after, value } => {
            let rest = rest.iter().flatten().map(|t| &**t);
            before.iter().chain(rest).chain(after).for_each(|t| target(t, see));
            node(value, see);
        }
        Kind::Call(call) => {
            call.receiver.iter().for_each(|n| node(n, see));
            args(&call.args, see);
            call.block_arg.iter().for_each(|n| node(n, see));
            call.block.iter().for_each(|b| block(b, see));
        }
        Kind::Super { args: given, block: given_block } => {
            given.iter().for_each(|a| args(a, see));
            given_block.iter().for_each(|b| block(b, see));
        }
        Kind::Yield(given) => args(given, see),
        Kind::Spread { size, calls, .. } => {
            node(size, see);
            calls.iter().for_each(|n| node(n, see));
        }
        Kind::Lambda(lambda) => block(lambda, see),
        Kind::And(a, b) | Kind::Or(a, b) => [a, b].into_iter().for_each(|n| node(n, see)),
        Kind::If { cond, then, otherwise } => [cond, then, otherwise].into_iter().for_each(|n| node(n, see)),
        Kind::Case { subject, whens, otherwise } => {
            subject.iter().for_each(|n| node(n, see));
            for when in whens {
                when.tests.iter().for_each(|n| node(n, see));
                node(&when.body, see);
            }
            node(otherwise, see);
        }
        Kind::While { cond, body, .. } => [cond, body].into_iter().for_each(|n| node(n, see)),
        Kind::For { target: to, over, body } => {
            target(to, see);
            [over, body].into_iter().for_each(|n| node(n, see));
        }
        Kind::Break(value) | Kind::Next(value) | Kind::Return(value) => value.iter().for_each(|n| node(n, see)),
        Kind::Begin { body, rescues, otherwise, ensure } => {
            node(body, see);
            for rescue in rescues {
                rescue.classes.iter().for_each(|n| node(n, see));
                rescue.binding.iter().for_each(|t| target(t, see));
                node(&rescue.body, see);
            }
            otherwise.iter().chain(ensure).for_each(|n| node(n, see));
        }
    }
}

/// Whether a block reads one of these variables.
pub fn reads_any(block: &Block, locals: &[LocalId]) -> bool {
    let mut reads = false;
    self::block(block, &mut |node| reads |= reads_one(node, locals));
    reads
}

/// Whether a default value reads one of these variables.
pub fn default_reads_any(given: &Params, locals: &[LocalId]) -> bool {
    let mut reads = false;
    params(given, &mut |node| reads |= reads_one(node, locals));
    reads
}

fn reads_one(node: &Node, locals: &[LocalId]) -> bool {
    match &node.kind {
        Kind::Local(local) | Kind::OpAssign { target: Target::Local(local, _), .. } => locals.contains(local),
        _ => false,
    }
}

fn args<'a>(given: &'a [Arg], see: &mut impl FnMut(&'a Node)) {
    for arg in given {
        match arg {
            Arg::Positional(n) | Arg::Keyword(_, n) | Arg::KeywordSplat(n) => node(n, see),
        }
    }
}

/// Every node of a block.
pub fn block<'a>(given: &'a Block, see: &mut impl FnMut(&'a Node)) {
    params(&given.params, see);
    node(&given.body, see);
}

fn params<'a>(given: &'a Params, see: &mut impl FnMut(&'a Node)) {
    given.optional.iter().for_each(|(_, default)| node(default, see));
    given.keywords.iter().filter_map(|k| k.default.as_ref()).for_each(|default| node(default, see));
}

fn target<'a>(to: &'a Target, see: &mut impl FnMut(&'a Node)) {
    match to {
        Target::Attr { receiver, .. } => node(receiver, see),
        Target::Index { receiver, args, .. } => {
            node(receiver, see);
            args.iter().for_each(|n| node(n, see));
        }
        Target::List { before, rest, after } => {
            let rest = rest.iter().flatten().map(|t| &**t);
            before.iter().chain(rest).chain(after).for_each(|t| target(t, see));
        }
        Target::Local(..) | Target::Ivar(..) | Target::Unsupported { .. } => {}
    }
}

/// Shows the nodes directly below a node to a function that may change them. Blocks that others hold, too, are copied.
pub fn children_mut(at: &mut Node, see: &mut impl FnMut(&mut Node)) {
    match &mut at.kind {
        Kind::Nil
        | Kind::True
        | Kind::False
        | Kind::SelfRef
        | Kind::Int(_)
        | Kind::BigInt(_)
        | Kind::Float(_)
        | Kind::Sym(_)
        | Kind::Str(_)
        | Kind::Regexp(_)
        | Kind::Local(_)
        | Kind::Ivar(_)
        | Kind::Retry
        | Kind::Found
        | Kind::Unsupported { .. } => {}
        Kind::DStr(text) => see(text),
        Kind::Array(items) | Kind::Seq(items) => items.iter_mut().for_each(see),
        Kind::Hash(pairs) => pairs.iter_mut().for_each(|(k, v)| [k, v].into_iter().for_each(&mut *see)),
        Kind::Range { from, to, .. } => from.iter_mut().chain(to).for_each(|n| see(n)),
        Kind::Splat(x) | Kind::Not(x) | Kind::Defined(x) => see(x),
        Kind::Const(path) => {
            if let ConstBase::Of(base) = &mut path.base {
                see(base);
            }
        }
        Kind::Assign { target, value } | Kind::OpAssign { target, value, .. } => {
            target_mut(target, see);
            see(value);
        }
        Kind::MultiAssign { before, rest, after, value } => {
            let rest = rest.iter_mut().flatten().map(|t| &mut **t);
            before.iter_mut().chain(rest).chain(after).for_each(|t| target_mut(t, see));
            see(value);
        }
        Kind::Call(call) => {
            call.receiver.iter_mut().for_each(&mut *see);
            args_mut(&mut call.args, see);
            call.block_arg.iter_mut().for_each(&mut *see);
            call.block.iter_mut().for_each(|b| block_mut(b, see));
        }
        Kind::Super { args, block } => {
            args.iter_mut().for_each(|a| args_mut(a, see));
            block.iter_mut().for_each(|b| block_mut(b, see));
        }
        Kind::Yield(given) => args_mut(given, see),
        Kind::Spread { size, calls, .. } => {
            see(size);
            calls.iter_mut().for_each(see);
        }
        Kind::Lambda(lambda) => block_mut(lambda, see),
        Kind::And(a, b) | Kind::Or(a, b) => [a, b].into_iter().for_each(|n| see(n)),
        Kind::If { cond, then, otherwise } => [cond, then, otherwise].into_iter().for_each(|n| see(n)),
        Kind::Case { subject, whens, otherwise } => {
            subject.iter_mut().for_each(|n| see(n));
            for when in whens {
                when.tests.iter_mut().for_each(&mut *see);
                see(&mut when.body);
            }
            see(otherwise);
        }
        Kind::While { cond, body, .. } => [cond, body].into_iter().for_each(|n| see(n)),
        Kind::For { target, over, body } => {
            target_mut(target, see);
            [over, body].into_iter().for_each(|n| see(n));
        }
        Kind::Break(value) | Kind::Next(value) | Kind::Return(value) => value.iter_mut().for_each(|n| see(n)),
        Kind::Begin { body, rescues, otherwise, ensure } => {
            see(body);
            for rescue in rescues {
                rescue.classes.iter_mut().for_each(&mut *see);
                rescue.binding.iter_mut().for_each(|t| target_mut(t, see));
                see(&mut rescue.body);
            }
            otherwise.iter_mut().chain(ensure).for_each(|n| see(n));
        }
    }
}

fn args_mut(given: &mut [Arg], see: &mut impl FnMut(&mut Node)) {
    for arg in given {
        match arg {
            Arg::Positional(n) | Arg::Keyword(_, n) | Arg::KeywordSplat(n) => see(n),
        }
    }
}

fn block_mut(given: &mut Arc<Block>, see: &mut impl FnMut(&mut Node)) {
    let block = Arc::make_mut(given);
    params_mut(&mut block.params, see);
    see(&mut block.body);
}

/// Shows the default values of parameters to a function that may change them.
pub fn params_mut(given: &mut Params, see: &mut impl FnMut(&mut Node)) {
    given.optional.iter_mut().for_each(|(_, default)| see(default));
    given.keywords.iter_mut().filter_map(|k| k.default.as_mut()).for_each(see);
}

fn target_mut(to: &mut Target, see: &mut impl FnMut(&mut Node)) {
    match to {
        Target::Attr { receiver, .. } => see(receiver),
        Target::Index { receiver, args, .. } => {
            see(receiver);
            args.iter_mut().for_each(see);
        }
        Target::List { before, rest, after } => {
            let rest = rest.iter_mut().flatten().map(|t| &mut **t);
            before.iter_mut().chain(rest).chain(after).for_each(|t| target_mut(t, see));
        }
        Target::Local(..) | Target::Ivar(..) | Target::Unsupported { .. } => {}
    }
}
