//! Wraps a section's block in the block of an operation, such as a search.
//!
//! Here: [`wrap`], which turns `{ |x| … }` into the unit `{ |element| nil.%__truth(element) { |x| … } }`, where
//! `__truth` is a method of the prelude (`prelude/operations.rb`). Not here: what such methods do. The user's block
//! stays a literal block of the unit. So its parameters, its locals and those around it mean what they mean in any
//! block. Invariant: positions in the unit are the user's; the added nodes have the position of the whole block.

use super::OWN_BLOCK;
use super::ast::{Arg, Block, Call, Kind, Local, LocalId, Name, Node, NodeId, Origin, Params, Pattern, Unit};
use crate::diagnostic::Span;
use std::sync::Arc;

/// The operation in which a section's block is wrapped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wrapping {
    /// Methods of the prelude (`truth` for `__truth`), each with the number of values that it is *given* besides the
    /// element. Each runs in the block of the one before; the last takes the user's block.
    pub methods: Vec<(Name, usize)>,
    /// The section ends at the first element for which the first method returns true.
    pub finds: bool,
}

/// The name of a given value, by its index: a captured local that no program can name.
pub fn given(at: usize) -> Name {
    format!("%{at}").into()
}

/// The index of a given value, by the name of its captured local. None: the local is one of the program's.
pub fn given_at(name: &str) -> Option<usize> {
    name.strip_prefix('%')?.parse().ok()
}

/// The name of the captured local that holds what a captured Hash gives for keys that it lacks.
pub fn default_of(hash: &str) -> Name {
    format!("{DEFAULT}{hash}").into()
}

/// The name of the Hash, by that name. None: the local is another.
pub fn has_default(name: &str) -> Option<&str> {
    name.strip_prefix(DEFAULT)
}

const DEFAULT: &str = "%default ";

/// Passes the user's block to the methods. If there are none, the unit stays as it is.
pub fn wrap(unit: Unit, wrapping: &Wrapping) -> Unit {
    let Some(((outermost, first_given), inner)) = wrapping.methods.split_first() else { return unit };
    let mut wrap = Wrap { whole: unit.source.span(), locals: unit.locals, nodes: unit.nodes };
    let takes_element = unit.symbol.is_some() || !unit.params.is_empty();
    for local in wrap.locals.iter_mut().filter(|l| matches!(l.origin, Origin::Param | Origin::Own)) {
        local.origin = Origin::Inner;
    }
    let own = |(i, local): (usize, &Local)| (local.origin != Origin::Captured).then(|| LocalId::new(i));
    let itself = match unit.body.kind {
        Kind::Local(local) if *wrap.locals[local.index()].name == *OWN_BLOCK => Some(Kind::Local(local)),
        _ => unit.symbol.clone().map(Kind::Sym),
    };
    let mut block = match itself {
        Some(itself) => Given::Argument(wrap.node(itself)),
        None => {
            let locals = wrap.locals.iter().enumerate().filter_map(own).collect();
            let (params, body, span) = (unit.params, unit.body, wrap.whole);
            let block = Arc::new(Block { params, body, span, numbered: 0, locals, breaks: false, section: true });
            match unit.lambda {
                true => Given::Argument(wrap.node(Kind::Lambda(block))),
                false => Given::Block(block),
            }
        }
    };
    let mut given_at: usize = wrapping.methods.iter().map(|(_, given)| given).sum();
    for (depth, (name, count)) in inner.iter().enumerate().rev() {
        given_at -= count;
        let (params, element) = wrap.params(takes_element, Origin::Inner);
        let body = wrap.call(name, element, given_at..given_at + count, block);
        // each block needs a span of its own
        let span = Span { end: wrap.whole.start + depth as u32, ..wrap.whole };
        let locals = Vec::new();
        block =
            Given::Block(Arc::new(Block { params, body, span, numbered: 0, locals, breaks: false, section: false }));
    }
    let (params, element) = wrap.params(takes_element, Origin::Param);
    let mut body = wrap.call(outermost, element, 0..*first_given, block);
    if wrapping.finds {
        let (then, otherwise) = (Box::new(wrap.node(Kind::Found)), Box::new(wrap.node(Kind::Nil)));
        body = wrap.node(Kind::If { cond: Box::new(body), then, otherwise });
    }
    let Wrap { locals, nodes, .. } = wrap;
    Unit { params, body, locals, nodes, lambda: false, symbol: None, ..unit }
}

/// The parameters and the body that the user wrote, of a unit that may be wrapped.
pub fn written(unit: &Unit) -> (&Params, &Node) {
    let mut at = &unit.body;
    while let Kind::If { cond, .. } = &at.kind {
        at = cond;
    }
    let Kind::Call(call) = &at.kind else { return (&unit.params, &unit.body) };
    let block = match &call.block_arg {
        Some(Node { kind: Kind::Lambda(block), .. }) => Some(block),
        _ => call.block.as_ref(),
    };
    match block {
        Some(block) if block.section => (&block.params, &block.body),
        _ => (&unit.params, &unit.body),
    }
}

enum Given {
    Block(Arc<Block>),
    Argument(Node),
}

struct Wrap {
    whole: Span,
    locals: Vec<Local>,
    nodes: usize,
}

impl Wrap {
    fn node(&mut self, kind: Kind) -> Node {
        self.nodes += 1;
        Node { id: NodeId::new(self.nodes - 1), span: self.whole, kind }
    }

    fn local(&mut self, name: Name, origin: Origin) -> LocalId {
        self.locals.push(Local { name, origin });
        LocalId::new(self.locals.len() - 1)
    }

    /// The parameter for the element, if the block takes it.
    fn params(&mut self, takes: bool, origin: Origin) -> (Params, Option<LocalId>) {
        let element = takes.then(|| self.local("".into(), origin));
        (Params { required: element.map(Pattern::Local).into_iter().collect(), ..Params::default() }, element)
    }

    fn call(&mut self, name: &str, element: Option<LocalId>, given_at: std::ops::Range<usize>, block: Given) -> Node {
        let receiver = Some(self.node(Kind::Nil));
        let element = self.node(element.map_or(Kind::Nil, Kind::Local));
        let mut args = vec![Arg::Positional(element)];
        for at in given_at {
            let local = self.local(given(at), Origin::Captured);
            args.push(Arg::Positional(self.node(Kind::Local(local))));
        }
        let (block, block_arg) = match block {
            Given::Block(block) => (Some(block), None),
            Given::Argument(node) => (None, Some(node)),
        };
        let name = format!("{}{name}", super::ast::PRIMITIVE).into();
        let name_span = self.whole;
        self.node(Kind::Call(Box::new(Call {
            receiver,
            name,
            name_span,
            args,
            block,
            block_arg,
            safe: false,
            matches: false,
        })))
    }
}
