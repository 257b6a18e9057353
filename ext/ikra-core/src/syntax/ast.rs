//! The Ruby that Ikra accepts, as a small tree. It has about thirty kinds of node where lib-ruby-parser has a hundred.
//!
//! Here: the tree. Not here: types, and any decision about what a node means. Names of locals are resolved: a
//! [`LocalId`] is an index into [`Unit::locals`]. A unit and all blocks written inside it share these locals.
//! Invariant: [`NodeId`]s are unique within a [`Unit`] and less than [`Unit::nodes`].

use crate::diagnostic::Span;
use crate::id::define_id;
use crate::regexp::RegexpSource;
use crate::source::Source;
use crate::syntax::visit;
use std::sync::Arc;
use std::time::Duration;

define_id!(
    /// A node within its unit.
    NodeId, "n"
);
define_id!(
    /// A local variable within its unit.
    LocalId, "l"
);

/// An identifier: method, variable, ivar (with its `@`), constant or symbol.
pub type Name = Arc<str>;

/// One section block, or one method.
#[derive(Debug, Clone)]
pub struct Unit {
    pub source: Arc<Source>,
    /// `nil` for a block, the method's name for a method.
    pub name: Option<Name>,
    pub params: Params,
    pub body: Node,
    pub locals: Vec<Local>,
    /// The number of node ids in use.
    pub nodes: usize,
    /// A lambda: `return` leaves it, and it takes its arguments as a method does, without spreading an array.
    pub lambda: bool,
    /// For a method: it contains `yield`, `block_given?` or a bare `super`, so it may use a block that it is given.
    pub yields: bool,
    /// The splat parameter, if nothing in the body can change its number of elements.
    pub rest: Option<LocalId>,
    /// For a block that contains `yield` or `block_given?`, which refer to the block of the method around it: the
    /// captured local ([`super::OUTER_BLOCK`]) that holds that block.
    pub outer_block: Option<LocalId>,
    /// The name, for a block that was `&:name`.
    pub symbol: Option<Name>,
    /// How long parsing it took.
    pub parsed_in: Duration,
}

impl Unit {
    /// Whether the unit only adds its two parameters.
    pub fn adds(&self) -> bool {
        if let Some(name) = &self.symbol {
            return **name == *"+";
        }
        let [Pattern::Local(one), Pattern::Local(other)] = self.params.required[..] else { return false };
        let Kind::Call(call) = &self.body.kind else { return false };
        let (Some(left), [Arg::Positional(right)]) = (&call.receiver, &call.args[..]) else { return false };
        let (Kind::Local(left), Kind::Local(right)) = (&left.kind, &right.kind) else { return false };
        let both = one != other && ((left, right) == (&one, &other) || (left, right) == (&other, &one));
        both && *call.name == *"+"
            && self.params.plain()
            && !call.safe
            && call.block.is_none()
            && call.block_arg.is_none()
    }

    /// Whether the unit only gives its single parameter.
    pub fn gives_parameter(&self) -> bool {
        let [Pattern::Local(one)] = self.params.required[..] else { return false };
        self.symbol.is_none() && self.params.plain() && matches!(self.body.kind, Kind::Local(local) if local == one)
    }

    /// Where the unit first calls a method of that name on its own receiver.
    pub fn own_call(&self, name: &str) -> Option<Span> {
        let mut found = None;
        visit::unit(self, &mut |node| {
            if let Kind::Call(call) = &node.kind
                && *call.name == *name
                && call.receiver.as_ref().is_none_or(|of| matches!(of.kind, Kind::SelfRef))
            {
                found.get_or_insert(call.name_span);
            }
        });
        found
    }

    /// The only method that the unit calls on its second parameter, if it does nothing else with it, and catches no
    /// exception. Also whether that call is all that the unit does.
    pub fn asks(&self) -> Option<(&str, bool)> {
        let [Pattern::Local(_), Pattern::Local(asked)] = self.params.required[..] else { return None };
        let asks = |node: &Node| match &node.kind {
            Kind::Call(call) => {
                let of =
                    call.receiver.as_ref().is_some_and(|of| matches!(of.kind, Kind::Local(local) if local == asked));
                let bare = call.args.is_empty() && call.block.is_none() && call.block_arg.is_none() && !call.safe;
                of && bare
            }
            _ => false,
        };
        let (mut names, mut uses, mut other) = (Vec::new(), 0, !self.params.plain());
        visit::unit(self, &mut |node| {
            if let (true, Kind::Call(call)) = (asks(node), &node.kind) {
                names.push(&*call.name);
            }
            uses += usize::from(matches!(node.kind, Kind::Local(local) if local == asked));
            other |= match &node.kind {
                Kind::Begin { .. } | Kind::Lambda(_) | Kind::Super { .. } => true,
                Kind::MultiAssign { .. } | Kind::For { .. } | Kind::Spread { .. } => true,
                Kind::Assign { target, .. } | Kind::OpAssign { target, .. } => {
                    matches!(target, Target::Local(local, _) if *local == asked)
                }
                _ => false,
            };
        });
        let name = *names.first()?;
        let only = !other && names.len() == uses && names.iter().all(|other| *other == name);
        only.then(|| (name, asks(&self.body)))
    }
}

#[derive(Debug, Clone)]
pub struct Local {
    pub name: Name,
    pub origin: Origin,
}

/// Where a local variable belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A variable of the method or block that encloses a section block: a capture.
    Captured,
    /// Parameter of the unit itself.
    Param,
    /// Assigned in the unit's own body.
    Own,
    /// Parameter of, or first assigned in, a block written inside the unit.
    Inner,
    /// Made by desugaring; no Ruby name.
    Temp,
}

impl Params {
    pub fn is_empty(&self) -> bool {
        self.required.is_empty() && self.plain()
    }
    /// Whether all parameters are required and positional.
    pub fn plain(&self) -> bool {
        self.optional.is_empty()
            && self.rest.is_none()
            && self.post.is_empty()
            && self.keywords.is_empty()
            && self.keyword_rest.is_none()
            && self.block.is_none()
    }
}

#[derive(Debug, Clone, Default)]
pub struct Params {
    pub required: Vec<Pattern>,
    pub optional: Vec<(LocalId, Node)>,
    pub rest: Option<Rest>,
    /// Required parameters after the optional ones and the rest.
    pub post: Vec<Pattern>,
    pub keywords: Vec<Keyword>,
    pub keyword_rest: Option<Rest>,
    pub block: Option<LocalId>,
}

impl Params {
    /// Whether any parameter takes a positional argument.
    pub fn take_any(&self) -> bool {
        let named = self.rest.is_some_and(|Rest(local)| local.is_some());
        named || !(self.required.is_empty() && self.optional.is_empty() && self.post.is_empty())
    }

    /// The variables of parameters such as `(a, b)`. Ruby assigns them after the defaults of other parameters ran.
    pub fn locals_apart(&self) -> Vec<LocalId> {
        let mut out = Vec::new();
        let patterns = self.required.iter().chain(&self.post);
        patterns.filter(|p| matches!(p, Pattern::List { .. })).for_each(|pattern| pattern.locals(&mut out));
        out
    }

    /// The variables of all parameters.
    pub fn locals(&self) -> Vec<LocalId> {
        let mut out = Vec::new();
        self.required.iter().chain(&self.post).for_each(|pattern| pattern.locals(&mut out));
        out.extend(self.optional.iter().map(|(local, _)| *local));
        out.extend(self.rest.iter().chain(&self.keyword_rest).filter_map(|Rest(local)| *local));
        out.extend(self.keywords.iter().map(|keyword| keyword.local));
        out.extend(self.block);
        out
    }
}

/// `*name`, or `*` alone.
#[derive(Debug, Clone, Copy)]
pub struct Rest(pub Option<LocalId>);

#[derive(Debug, Clone)]
pub struct Keyword {
    pub name: Name,
    pub local: LocalId,
    /// None: required.
    pub default: Option<Node>,
}

/// A parameter's target: a variable, or a list `(a, (b, *c))`.
#[derive(Debug, Clone)]
pub enum Pattern {
    Local(LocalId),
    List { before: Vec<Pattern>, rest: Option<Rest>, after: Vec<Pattern> },
}

impl Pattern {
    fn locals(&self, out: &mut Vec<LocalId>) {
        match self {
            Pattern::Local(local) => out.push(*local),
            Pattern::List { before, rest, after } => {
                before.iter().chain(after).for_each(|pattern| pattern.locals(out));
                out.extend(rest.and_then(|Rest(local)| local));
            }
        }
    }
}

#[derive(Debug, Clone)]
pub struct Node {
    pub id: NodeId,
    pub span: Span,
    pub kind: Kind,
}

impl Node {
    /// The texts and values of a String with interpolation, in order, from the calls that make it.
    pub fn pieces(&self) -> Vec<&Node> {
        let Kind::Call(call) = &self.kind else { return vec![self] };
        let Some(receiver) = &call.receiver else { return vec![self] };
        match primitive(&call.name) {
            Some("__to_text") => vec![receiver],
            Some(name) if name.starts_with("__join") => {
                let args = call.args.iter().filter_map(|arg| match arg {
                    Arg::Positional(node) => Some(node),
                    _ => None,
                });
                std::iter::once(receiver).chain(args).flat_map(Self::pieces).collect()
            }
            _ => vec![self],
        }
    }

    /// Whether this is the Range of an index `[i..]` or `[..i]` to which the parser has added an end. Such an end has
    /// the span of the Range.
    pub fn is_closed_range(&self) -> bool {
        let Kind::Range { from, to, .. } = &self.kind else { return false };
        [from, to].into_iter().flatten().any(|end| end.span == self.span)
    }
}

#[derive(Debug, Clone)]
pub enum Kind {
    Nil,
    True,
    False,
    SelfRef,
    Int(i64),
    /// An Integer literal beyond 64 bits.
    BigInt(String),
    Float(f64),
    Sym(Name),
    Str(Arc<[u8]>),
    /// A String with interpolation among the arguments of `raise`, as the calls that make it ([`Node::pieces`]).
    DStr(Box<Node>),
    /// `/…/`, without interpolation.
    Regexp(RegexpSource),
    Array(Vec<Node>),
    Hash(Vec<(Node, Node)>),
    Range {
        from: Option<Box<Node>>,
        to: Option<Box<Node>>,
        exclusive: bool,
    },
    /// `*x` among arguments or in an array literal. In `when *x`: the test whether one of the elements matches.
    Splat(Box<Node>),

    Local(LocalId),
    Ivar(Name),
    /// A constant, or a class variable, whose name begins with `@@`.
    Const(ConstPath),
    /// `target = value`; the value of the expression is `value`, whatever a setter returns.
    Assign {
        target: Target,
        value: Box<Node>,
    },
    /// `target op= value`, `||=` and `&&=` included.
    OpAssign {
        target: Target,
        op: AssignOp,
        value: Box<Node>,
    },
    /// `a, (b, *c) = value`.
    MultiAssign {
        before: Vec<Target>,
        rest: Option<Option<Box<Target>>>,
        after: Vec<Target>,
        value: Box<Node>,
    },

    Call(Box<Call>),
    /// `super(args)`; `args` None for the bare `super` that passes the method's own parameters on.
    Super {
        args: Option<Vec<Arg>>,
        block: Option<Arc<Block>>,
    },
    Yield(Vec<Arg>),
    /// A call with a splat. `size` selects one of the calls; the first is for an empty list. A list longer than all
    /// calls allow raises at run time.
    Spread {
        /// The variable that holds the list, if the source names one.
        list: Option<LocalId>,
        size: Box<Node>,
        calls: Vec<Node>,
    },
    /// `->(x) { … }`.
    Lambda(Arc<Block>),

    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    /// Also `unless`, the modifiers and the ternary. A missing branch is a `Nil` node.
    If {
        cond: Box<Node>,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
    Case {
        subject: Option<Box<Node>>,
        whens: Vec<When>,
        otherwise: Box<Node>,
    },
    /// Also `until` (through `Not`). `body_first`: `begin … end while cond`.
    While {
        cond: Box<Node>,
        body: Box<Node>,
        body_first: bool,
    },
    /// `for target in over`: its variables are the enclosing scope's.
    For {
        target: Box<Target>,
        over: Box<Node>,
        body: Box<Node>,
    },
    Break(Option<Box<Node>>),
    Next(Option<Box<Node>>),
    Return(Option<Box<Node>>),
    Retry,
    /// A search has found its element: the section ends, as by `break`.
    Found,
    Seq(Vec<Node>),
    /// `begin … rescue … else … ensure … end`.
    Begin {
        body: Box<Node>,
        rescues: Vec<Rescue>,
        otherwise: Option<Box<Node>>,
        ensure: Option<Box<Node>>,
    },
    /// Whether a constant (or class variable), an instance variable, `yield` or `super` is defined, for `defined?`.
    Defined(Box<Node>),
    /// Ruby for which this tree has no node. It is an error only where inference reaches it.
    Unsupported {
        what: &'static str,
        advice: &'static str,
    },
}

/// The prefix of primitives' names, which the prelude writes as `__name`. No method of a program has such a name.
pub const PRIMITIVE: &str = "%__";

/// The name of the iterator whose values a primitive gives as a list, or as a Range of them.
pub fn listed(primitive: &str) -> Option<&str> {
    primitive.strip_prefix("__list_").or_else(|| primitive.strip_prefix("__span_"))
}

/// The two methods that a primitive is in one: `each_with_index` and `min_by`.
pub fn fused(primitive: &str) -> Option<(&'static str, &str)> {
    let indexed = primitive.strip_prefix("__each_with_index_").map(|outer| ("each_with_index", outer));
    indexed.or_else(|| primitive.strip_prefix("__zipped_").map(|outer| ("zip", outer)))
}

/// A primitive's name as the prelude writes it. None: the name is not a primitive's.
pub fn primitive(name: &str) -> Option<&str> {
    name.starts_with(PRIMITIVE).then(|| &name[1..])
}

/// A class variable that a section assigns is stored as the only attribute of an object. This is that object's name.
pub fn cell(variable: &str) -> Name {
    format!("{variable}=").into()
}

/// The class variable that the object with this name stores.
pub fn variable_of(cell: &str) -> Option<&str> {
    cell.strip_suffix('=').filter(|name| name.starts_with("@@"))
}

/// Marks a call that Ruby's C code makes by name, `?==`: the prelude writes it `x.__asked == y`.
pub const ASKED: char = '?';
/// Marks a call that Ruby or a method makes for the program, `:abs` of `&:abs`.
pub const NAMED: char = ':';
/// Marks a call for which Ruby asks no method of the program, `@+` of `[1, *list]`.
pub const FIXED: char = '@';

/// A method's name without its mark.
pub fn plain(name: &str) -> &str {
    name.strip_prefix([ASKED, NAMED, FIXED]).unwrap_or(name)
}

/// `name` with the mark of `other`.
pub fn marked_as(name: &str, other: &str) -> Name {
    match other.chars().next() {
        Some(mark @ (ASKED | NAMED | FIXED)) => format!("{mark}{name}").as_str().into(),
        _ => name.into(),
    }
}

#[derive(Debug, Clone)]
pub struct Call {
    /// None: an implicit `self`, so private methods and functions are found.
    pub receiver: Option<Node>,
    pub name: Name,
    /// The span of the name alone, for messages that point at it.
    pub name_span: Span,
    pub args: Vec<Arg>,
    pub block: Option<Arc<Block>>,
    /// `&:sym` or `&expr` given as the block.
    pub block_arg: Option<Node>,
    /// `&.`
    pub safe: bool,
    /// It is the `===` of a pattern, which may be private.
    pub matches: bool,
}

impl Call {
    /// Whether the call finds private methods, too.
    pub fn finds_private(&self) -> bool {
        self.matches || self.receiver.as_ref().is_none_or(|r| matches!(r.kind, Kind::SelfRef))
    }
}

#[derive(Debug, Clone)]
pub enum Arg {
    /// A `Splat` node stands for `*x`.
    Positional(Node),
    Keyword(Name, Node),
    /// `**x`.
    KeywordSplat(Node),
}

/// A literal block; it shares its unit's locals.
#[derive(Debug, Clone)]
pub struct Block {
    pub params: Params,
    pub body: Node,
    pub span: Span,
    /// The number of numbered parameters, if the block uses `_1` or `it`. They are in `params.required`.
    pub numbered: u8,
    /// Variables that are nil again at each call: those that the block assigns first, and the `b` of `|a; b|`. Not the
    /// parameters.
    pub locals: Vec<LocalId>,
    /// The block contains a `break`, which leaves the call that takes the block.
    pub breaks: bool,
    /// It is the user's block of a wrapped section, where `break` leaves the section.
    pub section: bool,
}

#[derive(Debug, Clone)]
pub struct When {
    pub tests: Vec<Node>,
    pub body: Node,
}

#[derive(Debug, Clone)]
pub struct Rescue {
    /// Empty: StandardError.
    pub classes: Vec<Node>,
    pub binding: Option<Target>,
    pub body: Node,
}

#[derive(Debug, Clone)]
pub struct ConstPath {
    pub base: ConstBase,
    pub name: Name,
}

#[derive(Debug, Clone)]
pub enum ConstBase {
    /// `A`: lexical scopes, then ancestors.
    Lexical,
    /// `::A`.
    Top,
    /// `expr::A`.
    Of(Box<Node>),
}

#[derive(Debug, Clone)]
pub enum Target {
    Local(LocalId, Span),
    Ivar(Name, Span),
    /// `receiver.name = `; `name` without the `=`.
    Attr {
        receiver: Box<Node>,
        name: Name,
        span: Span,
        safe: bool,
    },
    Index {
        receiver: Box<Node>,
        args: Vec<Node>,
        span: Span,
    },
    /// `(a, *b)` inside a multiple assignment.
    List {
        before: Vec<Target>,
        rest: Option<Option<Box<Target>>>,
        after: Vec<Target>,
    },
    Unsupported {
        what: &'static str,
        advice: &'static str,
        span: Span,
    },
}

impl Target {
    /// Whether it contains a splat with a name, which takes the rest of a list.
    pub fn names_rest(&self) -> bool {
        match self {
            Target::List { before, rest, after } => {
                matches!(rest, Some(Some(_))) || before.iter().chain(after).any(Target::names_rest)
            }
            _ => false,
        }
    }
    /// The target's span; for a list, the span of its first part.
    pub fn span(&self) -> Span {
        match self {
            Target::Local(_, span)
            | Target::Ivar(_, span)
            | Target::Attr { span, .. }
            | Target::Index { span, .. }
            | Target::Unsupported { span, .. } => *span,
            Target::List { before, rest, after } => {
                let first = before.first().or(rest.as_ref().and_then(|r| r.as_deref())).or(after.first());
                first.map_or_else(Span::default, Target::span)
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AssignOp {
    /// `+=` and so on: the operator method's name.
    Method(Name),
    /// `||=`
    Or,
    /// `&&=`
    And,
}
