//! Arrays that grow: `<<`, `push`, `pop` and the like on an array that only one local variable holds.
//!
//! Here: which variable is the sole holder of an array ([`super::walk::State::sole`]), and the effect of growing on
//! types. An array is a value of offset and length. So growing it makes a new value, which is assigned to the variable,
//! and nothing else may hold the old one. A method that iterates over the old array would not see the new one, so
//! growing it there is refused. Not here: room for more elements ([`crate::lower`]).
//!
//! A variable becomes the sole holder when a new array is assigned to it. It stays so until its value is read for
//! anything but a call that does not keep it.

use super::SpecId;
use super::calls::Args;
use super::walk::{Env, Walker};
use crate::diagnostic::Span;
use crate::error::Result;
use crate::id::ArrayKind;
use crate::syntax::ast::{Arg, AssignOp, Call, Kind, LocalId, Node, Target, plain};
use crate::types::{Atom, Prims, Reach, Ty};

/// A method that changes the length of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// `<<`, `push`, `append`: appends each argument.
    Push,
    Pop,
    Shift,
    Clear,
    /// `concat(array)`
    Concat,
}

impl Growth {
    pub fn find(name: &str, arguments: usize) -> Option<Self> {
        Some(match (name, arguments) {
            ("<<", 1) | ("push" | "append", _) => Growth::Push,
            ("pop", 0) => Growth::Pop,
            ("shift", 0) => Growth::Shift,
            ("clear", 0) => Growth::Clear,
            ("concat", 1) => Growth::Concat,
            _ => return None,
        })
    }
}

/// Ruby's own methods that return a new array.
const MAKE: &[&str] = &[
    "map",
    "collect",
    "select",
    "filter",
    "reject",
    "filter_map",
    "find_all",
    "flat_map",
    "compact",
    "reverse",
    "rotate",
    "dup",
    "take",
    "drop",
    "take_while",
    "drop_while",
    "+",
    "-",
    "*",
    "&",
    "|",
    "uniq",
    "sort",
    "sort_by",
    "zip",
    "flatten",
    "product",
    "%__slice",
    "%__buffer",
    "%__splat",
    "%__rest",
    "%__build",
    "%__by",
    "difference",
    "intersection",
    "union",
];

/// Other methods of Ruby's own that neither keep their receiver nor return it.
const LOOK: &[&str] = &[
    "size",
    "length",
    "empty?",
    "[]",
    "[]=",
    "at",
    "first",
    "last",
    "any?",
    "all?",
    "none?",
    "one?",
    "count",
    "sum",
    "min",
    "max",
    "minmax",
    "min_by",
    "max_by",
    "include?",
    "member?",
    "index",
    "find_index",
    "rindex",
    "find",
    "detect",
    "inject",
    "reduce",
    "partition",
    "clone",
    "slice",
    "transpose",
    "==",
    "!=",
    "eql?",
    "<=>",
    "nil?",
    "is_a?",
    "kind_of?",
    "instance_of?",
    "frozen?",
    "freeze",
    "equal?",
    "each_with_object",
    "class",
    "respond_to?",
    "!",
    "values_at",
    "%__put",
    "%__take",
    "%__at",
    "%__before?",
    "%__nth",
    "intersect?",
    "minmax_by",
    "fetch",
    "bsearch",
    "bsearch_index",
];

/// Methods of Strings that neither keep their receiver nor return it.
const LOOK_AT_TEXT: &[&str] = &[
    "bytesize",
    "start_with?",
    "end_with?",
    "match?",
    "to_i",
    "to_f",
    "ord",
    "getbyte",
    "upcase",
    "downcase",
    "chars",
    "bytes",
    "lines",
    "split",
    "%__to_text",
    "%__state",
];

/// Ruby's own methods that return their receiver.
const GIVE_ITSELF: &[&str] = &[
    "each",
    "each_with_index",
    "each_index",
    "reverse_each",
    "each_slice",
    "each_cons",
    "each_entry",
    "map!",
    "collect!",
    "fill",
    "cycle",
    "sort!",
    "sort_by!",
    "reverse!",
    "rotate!",
    "combination",
    "permutation",
];

impl Walker<'_, '_> {
    /// Assigns a value of this type to a local. `new`: nothing else holds the value.
    pub(super) fn assign_new(&mut self, env: &mut Env, local: LocalId, ty: &Ty, new: bool) {
        let array = matches!(ty.atoms().as_slice(), [Atom::Array(_)]) && ty.reach == Reach::Fresh || is_text(ty);
        // in `list << (list = [])` it is the old list that grows
        let grows = self.holders.contains(&(self.here.base + local.index()));
        self.assign_state(env, local, ty, new && array && !grows);
    }

    /// Whether a node that was interpreted surely returns an array that nothing else holds.
    pub(super) fn makes_new(&mut self, node: &Node) -> bool {
        match &node.kind {
            Kind::Array(_) => true,
            Kind::Str(_) => !self.here.unit.source.frozen_strings,
            Kind::Seq(items) => items.last().is_some_and(|last| self.makes_new(last)),
            Kind::Call(call) => {
                let Some(receiver) = &call.receiver else { return false };
                if is_text(&self.here.types[node.id.index()]) {
                    return self.makes_new_text(receiver, &call.name);
                }
                let made =
                    &*call.name == "new" && matches!(&receiver.kind, Kind::Const(path) if &*path.name == "Array");
                let ty = self.here.types[receiver.id.index()].clone();
                // `break` may return any value
                let broken = call.block.as_ref().is_some_and(|block| block.breaks);
                (made || MAKE.contains(&plain(&call.name))) && !broken && self.is_rubys(&ty, &call.name)
            }
            _ => false,
        }
    }

    /// The same of a call that returns a String.
    fn makes_new_text(&mut self, receiver: &Node, name: &str) -> bool {
        let ty = self.here.types[receiver.id.index()].clone();
        let literal = matches!(receiver.kind, Kind::Str(_));
        let text = matches!(
            plain(name),
            "+" | "*" | "dup" | "upcase" | "downcase" | "reverse" | "%__join1" | "%__join2" | "%__join3" | "%__join4"
        );
        let of_class = name == "new" && matches!(&receiver.kind, Kind::Const(path) if &*path.name == "String");
        let made = of_class
            || is_text(&ty) && (text || literal && name == "+@")
            || ty.only(Prims::INT) && matches!(plain(name), "to_s" | "inspect");
        made && self.is_rubys(&ty, name)
    }

    /// Whether a call on all kinds of a receiver reaches a method as Ruby itself defines it.
    pub(super) fn is_rubys(&mut self, receiver: &Ty, name: &str) -> bool {
        receiver.atoms().into_iter().all(|atom| self.an.is_rubys(self.here.id, atom, name))
    }

    /// Whether a call on all kinds of a receiver reaches a method of Ruby's own, whether kernels know it or not.
    pub(super) fn reaches_rubys(&mut self, receiver: &Ty, name: &str) -> bool {
        receiver.atoms().into_iter().all(|atom| self.an.reaches_rubys(self.here.id, atom, name))
    }

    /// Evaluates the receiver of a call. If the call does not keep it, its variable stays the sole holder.
    pub(super) fn receiver(&mut self, node: &Node, name: &str, used: bool, env: &mut Env) -> Result<Ty> {
        let Kind::Local(local) = &node.kind else { return self.eval(node, env) };
        let at = self.here.base + local.index();
        let sole = env.locals[at].sole;
        let ty = self.eval_unseen(node, env)?;
        let written = name;
        let name = plain(written);
        let text = is_text(&ty) && LOOK_AT_TEXT.contains(&name);
        let borrows = || text || MAKE.contains(&name) || LOOK.contains(&name) || !used && GIVE_ITSELF.contains(&name);
        if !env.dead && sole && borrows() && self.is_rubys(&ty, written) {
            env.locals[at].sole = true;
        } else if sole {
            self.seen_by_handlers(env);
        }
        Ok(ty)
    }

    /// The place in the environment of the variable that is the sole holder of a call's receiver, which was evaluated.
    pub(super) fn sole_holder(&self, call: &Call, env: &Env) -> Option<usize> {
        self.holder(call.receiver.as_ref()?, env)
    }

    /// Types the value of an assignment to an element. The value must not change the length of the element's array.
    pub(super) fn under_assignment(
        &mut self,
        targets: &[&Target],
        env: &mut Env,
        value: impl FnOnce(&mut Self, &mut Env) -> Result<Ty>,
    ) -> Result<Ty> {
        let before = self.under_way.len();
        for target in targets {
            if let Target::Index { receiver, .. } = target {
                let held = self.holder(receiver, env);
                self.under_way.extend(held);
            }
        }
        let ty = value(self, env);
        self.under_way.truncate(before);
        ty
    }

    fn holder(&self, receiver: &Node, env: &Env) -> Option<usize> {
        let Kind::Local(local) = &receiver.kind else { return None };
        let at = self.here.base + local.index();
        (!env.dead && env.locals[at].sole).then_some(at)
    }

    /// Interprets `result << x` and the like. None: it is some other call.
    pub(super) fn grown(&mut self, node: &Node, call: &Call, env: &mut Env) -> Result<Option<Ty>> {
        let Some((holder, growth, steps)) = growth(call) else { return Ok(None) };
        let Kind::Local(local) = holder.kind else { return Ok(None) };
        let at = self.here.base + local.index();
        if env.dead || env.locals[at].unset {
            return Ok(None);
        }
        let ty = env.locals[at].ty.clone();
        if is_text(&ty) && matches!(growth, Growth::Push | Growth::Concat) && matches!(&*call.name, "<<" | "concat") {
            return self.grown_text(node, call, holder, &steps, env);
        }
        let [Atom::Array(kind)] = ty.atoms()[..] else { return Ok(None) };
        if ty.reach != Reach::Fresh || !self.reaches_rubys(&ty, &call.name) {
            return Ok(None);
        }
        // a running method of the array would not see its new length
        if self.under_way.contains(&at) {
            return Err(self
                .error(
                    call.name_span,
                    format!("{} changes the length of an array while another of its methods runs", call.name),
                )
                .because("an array that grows is made anew, and what runs goes on with the old one")
                .advise("go over it by its index (while i < list.size), or collect in another array")
                .into());
        }
        let sole = env.locals[at].sole;
        let mut receiver = self.eval_unseen(holder, env)?;
        env.locals[at].sole = sole;
        let used = !self.an.spec(self.here.id).void.contains(&node.id);
        let mut out = None;
        for (step, args) in steps.iter().enumerate() {
            self.holders.push(at);
            let args = self.args(args, env);
            self.holders.pop();
            let args = args?;
            if env.dead {
                return Ok(Some(Ty::never()));
            }
            // after the arguments, because of `list << list`
            if !sole || !env.locals[at].sole {
                return Err(self
                    .error(call.name_span, format!("{} changes the length of an array that others may hold", call.name))
                    .because("an array that grows must be held by one local variable alone")
                    .advise("make it in this method, and hand it on only when it is done; or use Array.new(n) and write its elements")
                    .into());
            }
            self.an.grows(kind);
            let array = (Atom::Array(kind), Reach::Fresh);
            match growth {
                Growth::Push => {
                    for ty in &args.positional {
                        let answer = self.an.write_element(self.here.id, array, ty);
                        self.refused(answer, call.name_span)?;
                    }
                }
                Growth::Concat => {
                    let parts = self.parts_of(&args, call)?;
                    let answer = self.an.write_element(self.here.id, array, &parts);
                    self.refused(answer, call.name_span)?;
                }
                Growth::Clear => {}
                Growth::Pop | Growth::Shift => {
                    let at = self.assumption(node.span);
                    let answer = self.an.element(self.here.id, array, &at);
                    out = Some(self.refused(answer, call.name_span)?);
                }
            }
            // a join may have merged the kind
            receiver = self.an.facts.resolve(&receiver);
            let last = step + 1 == steps.len();
            self.assign_state(env, local, &receiver, out.is_some() || !used || !last);
        }
        Ok(Some(out.unwrap_or(receiver)))
    }

    /// Interprets `text << x`: the variable gets a longer String. None: others may hold the String.
    fn grown_text(
        &mut self,
        node: &Node,
        call: &Call,
        holder: &Node,
        steps: &[&[Arg]],
        env: &mut Env,
    ) -> Result<Option<Ty>> {
        let Kind::Local(local) = holder.kind else { return Ok(None) };
        let at = self.here.base + local.index();
        if !env.locals[at].sole || self.under_way.contains(&at) || !self.reaches_rubys(&Ty::str(), &call.name) {
            return Ok(None);
        }
        self.eval_unseen(holder, env)?;
        env.locals[at].sole = true;
        let used = !self.an.spec(self.here.id).void.contains(&node.id);
        let place = self.assumption(call.name_span);
        for (step, args) in steps.iter().enumerate() {
            self.holders.push(at);
            let args = self.args(args, env);
            self.holders.pop();
            let args = args?;
            if env.dead {
                return Ok(Some(Ty::never()));
            }
            // after the arguments, because of `text << text`
            if !env.locals[at].sole {
                return Err(self
                    .error(call.name_span, format!("{} changes a String that others may hold", call.name))
                    .because("a String that grows must be held by one local variable alone")
                    .advise("make it in this method, and hand it on only when it is done; or make a new one with +")
                    .into());
            }
            self.dispatch(&Ty::str(), WITH_TEXT, &args, true, call.name_span, &place, env)?;
            self.assign_state(env, local, &Ty::str(), !used || step + 1 < steps.len());
        }
        Ok(Some(if env.dead { Ty::never() } else { Ty::str() }))
    }

    /// Interprets `h[k] << x` of a Hash that kernels make, whose values are lists. None: it is some other call.
    pub(super) fn grown_in_hash(&mut self, node: &Node, call: &Call, env: &mut Env) -> Result<Option<Ty>> {
        let Some(parts) = in_hash(call) else { return Ok(None) };
        let hash = parts.hash;
        if env.dead || matches!(hash.kind, Kind::Local(local) if env.locals[self.here.base + local.index()].unset) {
            return Ok(None);
        }
        let mut before = env.clone();
        let ty = self.eval(hash, &mut before)?;
        if !only_made_hashes(&ty) || !(parts.or_new || self.an.may_have_lists(self.here.id, &ty)) {
            return Ok(None);
        }
        *env = before;
        let key = self.eval(parts.key, env)?;
        let (span, at) = (call.name_span, self.assumption(call.name_span));
        let looked = Args::of(vec![key.clone()]);
        for (step, args) in parts.steps.iter().enumerate() {
            let list = match parts.ready(step) {
                Some(ready) => Some(self.dispatch(&ty, ready, &looked, true, span, &at, env)?),
                None => None,
            };
            for (i, arg) in self.args(args, env)?.positional.into_iter().enumerate() {
                let (push, given) = match &list {
                    Some(list) if i == 0 => (PUSH_TO, vec![key.clone(), list.clone(), arg]),
                    _ => (PUSH, vec![key.clone(), arg]),
                };
                self.dispatch(&ty, push, &Args::of(given), true, span, &at, env)?;
            }
        }
        if self.an.spec(self.here.id).void.contains(&node.id) {
            return Ok(Some(if env.dead { Ty::never() } else { Ty::nil() }));
        }
        let list = self.dispatch(&ty, "[]", &looked, true, span, &at, env)?;
        Ok(Some(if env.dead { Ty::never() } else { list }))
    }

    /// Interprets `h[k] ||= []`, whose value is not used, of a Hash without a default. False: it is something else.
    pub(super) fn made_in_hash(
        &mut self,
        node: &Node,
        target: &Target,
        op: &AssignOp,
        value: &Node,
        env: &mut Env,
    ) -> Result<bool> {
        let Target::Index { receiver, args, span } = target else { return Ok(false) };
        let void = self.an.spec(self.here.id).void.contains(&node.id);
        let [key] = args.as_slice() else { return Ok(false) };
        if env.dead || !void || !op_makes_list(target, op, value) || !is_looked_up(receiver) {
            return Ok(false);
        }
        if matches!(receiver.kind, Kind::Local(local) if env.locals[self.here.base + local.index()].unset) {
            return Ok(false);
        }
        let mut before = env.clone();
        let ty = self.eval(receiver, &mut before)?;
        if !self.an.gives_nil(self.here.id, &ty) {
            return Ok(false);
        }
        *env = before;
        let key = self.eval(key, env)?;
        let at = self.assumption(node.span);
        self.dispatch(&ty, READY_OR_NEW, &Args::of(vec![key]), true, *span, &at, env)?;
        Ok(true)
    }

    /// Whether an assignment to a part of an array gives its sole holder a new array, because the length may change.
    pub(super) fn replaces(
        &mut self,
        receiver: &Node,
        ty: &Ty,
        args: &Args,
        span: Span,
        env: &Env,
    ) -> Result<Option<LocalId>> {
        let Kind::Local(local) = receiver.kind else { return Ok(None) };
        let part = args.positional.len() == 3 || only_ranges(&args.positional[0]);
        if env.dead || !part || !matches!(ty.atoms()[..], [Atom::Array(_)]) || !self.reaches_rubys(ty, "[]=") {
            return Ok(None);
        }
        let source = &self.here.unit.source;
        let place = (source.path.clone(), source.first_line, span);
        // a running method of the array would not see the new array
        let runs = self.under_way.contains(&(self.here.base + local.index()));
        let alone = !runs && self.holder(receiver, env).is_some() && ty.reach == Reach::Fresh;
        if !alone && self.an.shared_parts.insert(place.clone()) && self.an.spec(self.here.id).parts.contains(&span) {
            self.an.again = true;
            return Err(crate::error::Error::Internal { stage: "infer", detail: "begins again".into() });
        }
        let replaces = !self.an.shared_parts.contains(&place);
        if replaces {
            self.an.specs[self.here.id.index()].parts.insert(span);
        }
        Ok(replaces.then_some(local))
    }

    fn parts_of(&mut self, args: &Args, call: &Call) -> Result<Ty> {
        let ty = args.positional[0].clone();
        let [Atom::Array(other)] = ty.atoms()[..] else {
            return Err(self.error(call.name_span, "kernels know concat of an array only").into());
        };
        let answer = self.an.elements(self.here.id, other, ty.reach);
        let parts = self.refused(answer.map_err(Into::into), call.name_span)?;
        self.an.read_array(other, ty.reach);
        Ok(parts)
    }
}

/// The prelude's method for a String with another behind it.
pub const WITH_TEXT: &str = "%__with_text";

/// Whether all that a value may be are Strings.
pub fn is_text(ty: &Ty) -> bool {
    matches!(ty.atoms().as_slice(), [Atom::Str])
}

/// Whether a value is a Range of any kind.
pub fn only_ranges(ty: &Ty) -> bool {
    let is_range =
        |atom: &Atom| matches!(atom, Atom::IntRange | Atom::FloatRange | Atom::Object(crate::world::well_known::RANGE));
    !ty.is_never() && ty.atoms().iter().all(is_range)
}

/// `h[k] << x` and `(h[k] ||= []) << x`, also by `push` and `append`: what may append to a list of a Hash.
pub struct InHash<'a> {
    pub hash: &'a Node,
    pub key: &'a Node,
    /// Whether `||= []` gives the Hash a list first.
    pub or_new: bool,
    /// The arguments of each `<<`.
    pub steps: Vec<&'a [Arg]>,
}

impl InHash<'_> {
    /// The prelude's method that gives the list before the arguments of a step are evaluated. None: they cannot change
    /// it.
    pub fn ready(&self, step: usize) -> Option<&'static str> {
        let plain = self.steps[step].iter().all(|arg| matches!(arg, Arg::Positional(node) if is_plain(node)));
        if step == 0 && self.or_new { Some(READY_OR_NEW) } else { (!plain).then_some("%__ready") }
    }
}

/// The prelude's methods that append to a list of a Hash, and that give a Hash a list that nothing else holds.
pub const PUSH: &str = "%__push";
pub const PUSH_TO: &str = "%__push_to";
pub const STORE_LIST: &str = "%__store_list";

/// The one for `(h[k] ||= []) << x`.
pub const READY_OR_NEW: &str = "%__ready_or_new";

/// Whether a node is a variable or an attribute.
fn is_looked_up(node: &Node) -> bool {
    match &node.kind {
        Kind::Local(_) | Kind::Ivar(_) => true,
        Kind::Call(call) => {
            let on_variable = |r: &Node| matches!(r.kind, Kind::Local(_) | Kind::SelfRef);
            let bare = call.args.is_empty() && call.block.is_none() && call.block_arg.is_none() && !call.safe;
            bare && call.receiver.as_ref().is_none_or(on_variable)
        }
        _ => false,
    }
}

/// Whether an assignment is `h[k] ||= []`.
pub fn op_makes_list(target: &Target, op: &AssignOp, value: &Node) -> bool {
    let one = matches!(target, Target::Index { args, .. } if matches!(args.as_slice(), [key] if !matches!(key.kind, Kind::Splat(_))));
    one && *op == AssignOp::Or && is_new_list(value, true)
}

/// The method that stores a value in an assignment to an element. `void`: nothing else gets the value.
pub fn storing(receiver: &Ty, value: &Node, void: bool) -> &'static str {
    if void && is_new_list(value, false) && only_made_hashes(receiver) { STORE_LIST } else { "[]=" }
}

/// The parts of a call that may append to a list of a Hash.
pub fn in_hash(call: &Call) -> Option<InHash<'_>> {
    let positional = |arg: &Arg| matches!(arg, Arg::Positional(n) if !matches!(n.kind, Kind::Splat(_)));
    if call.safe || call.block.is_some() || call.block_arg.is_some() || !call.args.iter().all(positional) {
        return None;
    }
    if Growth::find(&call.name, call.args.len()) != Some(Growth::Push) || call.args.is_empty() {
        return None;
    }
    let mut list = call.receiver.as_ref()?;
    while let Kind::Seq(items) = &list.kind
        && let [only] = items.as_slice()
    {
        list = only;
    }
    let (hash, key, or_new) = match &list.kind {
        Kind::Call(inner) if &*inner.name == "<<" && &*call.name == "<<" => {
            let mut before = in_hash(inner)?;
            before.steps.push(&call.args);
            return Some(before);
        }
        Kind::Call(inner) if &*inner.name == "[]" => {
            let bare = !inner.safe && inner.block.is_none() && inner.block_arg.is_none();
            let ([Arg::Positional(key)], true) = (inner.args.as_slice(), bare) else { return None };
            (inner.receiver.as_ref()?, key, false)
        }
        Kind::OpAssign { target, op, value } if op_makes_list(target, op, value) => {
            let Target::Index { receiver, args, .. } = target else { return None };
            (&**receiver, args.first()?, true)
        }
        _ => return None,
    };
    let whole = !matches!(key.kind, Kind::Splat(_)) && is_looked_up(hash);
    whole.then(|| InHash { hash, key, or_new, steps: vec![&call.args] })
}

/// Whether the evaluation of a node neither changes anything nor depends on what a Hash has.
fn is_plain(node: &Node) -> bool {
    matches!(
        node.kind,
        Kind::Local(_)
            | Kind::Int(_)
            | Kind::Float(_)
            | Kind::Str(_)
            | Kind::Sym(_)
            | Kind::Nil
            | Kind::True
            | Kind::False
    )
}

/// Whether a node is a literal Array without splats. `empty`: without elements.
pub fn is_new_list(node: &Node, empty: bool) -> bool {
    match &node.kind {
        Kind::Array(items) => !items.iter().any(|item| empty || matches!(item.kind, Kind::Splat(_))),
        _ => false,
    }
}

/// Whether all that a value may be are Hashes that kernels make.
pub fn only_made_hashes(ty: &Ty) -> bool {
    let is_made = |atom: &Atom| matches!(atom, Atom::Object(class) if crate::world::well_known::is_made_hash(*class));
    !ty.is_never() && ty.atoms().iter().all(is_made)
}

/// A call that changes the length of a local variable's array: the variable, and the arguments of each step.
/// `a << x << y` has two steps.
pub fn growth(call: &Call) -> Option<(&Node, Growth, Vec<&[Arg]>)> {
    if call.safe || call.block.is_some() || call.block_arg.is_some() {
        return None;
    }
    let positional = |arg: &Arg| matches!(arg, Arg::Positional(_));
    let growth = Growth::find(&call.name, call.args.len()).filter(|_| call.args.iter().all(positional))?;
    let receiver = call.receiver.as_ref()?;
    match &receiver.kind {
        Kind::Local(_) => Some((receiver, growth, vec![&call.args])),
        Kind::Call(inner) if &*call.name == "<<" && &*inner.name == "<<" => {
            let (holder, growth, mut steps) = self::growth(inner)?;
            steps.push(&call.args);
            Some((holder, growth, steps))
        }
        _ => None,
    }
}

impl super::Analysis<'_> {
    /// Notes that arrays of this kind are allocated with room to grow.
    fn grows(&mut self, kind: ArrayKind) {
        let kind = self.facts.find(kind);
        self.growing.insert(kind);
    }

    /// Whether some of the values of Hashes that kernels make may be Arrays, or nothing is known of them yet.
    pub fn may_have_lists(&mut self, from: SpecId, hashes: &Ty) -> bool {
        let mut found = false;
        for atom in hashes.atoms() {
            let Atom::Object(class) = atom else { continue };
            let Ok(values) = self.field(from, class, &"values".into(), Reach::Fresh) else { return false };
            let Some(kind) = values.array else {
                found = true;
                continue;
            };
            match self.elements(from, kind, Reach::Fresh) {
                Ok(ty) => found |= ty.is_never() || ty.array.is_some(),
                Err(_) => return false,
            }
        }
        found
    }

    /// Whether all that a value may be are Hashes that kernels make, without a block and a default.
    pub fn gives_nil(&mut self, from: SpecId, hashes: &Ty) -> bool {
        only_made_hashes(hashes)
            && hashes.atoms().into_iter().all(|atom| {
                let Atom::Object(class) = atom else { return false };
                let block = self.block_of_hash(class);
                let default = self.field(from, class, &"default".into(), Reach::Fresh);
                let nil = |ty: &Ty| ty.atoms().iter().all(|atom| *atom == Atom::Nil);
                nil(&block) && default.is_ok_and(|ty| nil(&ty))
            })
    }

    /// Notes that lists in the Hashes of a class grow.
    pub(super) fn hash_lists_grow(&mut self, class: crate::id::ClassId) {
        self.growing_hashes.insert(class);
    }

    /// Whether the section appends to lists in the Hashes of a class.
    pub fn do_hash_lists_grow(&self, class: crate::id::ClassId) -> bool {
        self.growing_hashes.contains(&class)
    }

    /// Notes that an Array of this kind grows by one element, which only a Hash holds.
    pub(super) fn grow_by(&mut self, from: SpecId, kind: ArrayKind, element: &Ty) -> super::calls::Answer<()> {
        self.grows(kind);
        self.write_element(from, (Atom::Array(kind), Reach::Fresh), element)
    }

    /// Whether arrays of a kind have room to grow: their capacity is their length rounded up to a power of two, at
    /// least four.
    pub fn has_room(&self, kind: ArrayKind) -> bool {
        self.growing.iter().any(|k| self.facts.find(*k) == self.facts.find(kind))
    }
}
