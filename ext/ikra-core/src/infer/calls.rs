//! The target of a call, and its result.
//!
//! Here: method look-up for each kind of receiver, binding of arguments to parameters, and result types of all methods
//! that take no block. Inference asks while types grow; lowering asks again when they are final.

use super::builtins::{self, Builtin, is_immutable};
use super::made::Thing;
use super::redefined::{Origin, known_as};
use super::structs::KeyValue;
use super::{Analysis, Binding, SpecId, SpecKey};
use crate::diagnostic::Span;
use crate::error::Error;
use crate::id::{ClassId, MethodId, ProcId};
use crate::source::Source;
use crate::syntax::ast::{Arg, Call, Name, Node, Params, fused, listed, plain, primitive};
use crate::types::numeric::{Kind, Unsupported};
use crate::types::{Atom, Prims, Reach, Ty};
use crate::world::{Assumption, MethodFact, Opaque, Place, Receiver, Root, Visibility, hashes, values, well_known};
use std::sync::Arc;

/// The class whose instance methods a kind of value has.
pub fn class_of(atom: Atom) -> ClassId {
    match atom {
        Atom::Nil => well_known::NIL,
        Atom::False => well_known::FALSE,
        Atom::True => well_known::TRUE,
        Atom::Int => well_known::INTEGER,
        Atom::Float => well_known::FLOAT,
        Atom::Sym => well_known::SYMBOL,
        Atom::Str => well_known::STRING,
        Atom::IntRange | Atom::FloatRange => well_known::RANGE,
        Atom::Exception => well_known::EXCEPTION,
        Atom::Array(_) => well_known::ARRAY,
        Atom::Module(_) => well_known::MODULE,
        Atom::Proc(_) => well_known::PROC,
        Atom::Regexp(_) => well_known::REGEXP,
        Atom::Object(class) => class,
    }
}

/// Whether classes and modules are instances of `owner`, a class or module of Ruby's own.
fn is_of_modules(owner: &str) -> bool {
    matches!(owner, "BasicObject" | "Class" | "Comparable" | "Kernel" | "Module" | "Object")
}

/// A function of Ikra that the prelude defines.
fn ikras_own(owner: &str, name: &str) -> Option<MethodId> {
    if owner == "Ikra" { crate::prelude::find("", "Ikra.", name) } else { None }
}

/// The class of a kind of value for which the prelude has methods.
fn core_class(atom: Atom) -> &'static str {
    match atom {
        Atom::Nil => "NilClass",
        Atom::Int => "Integer",
        Atom::Float => "Float",
        Atom::Array(_) => "Array",
        Atom::IntRange | Atom::FloatRange => "Range",
        Atom::Str => "String",
        Atom::Sym => "Symbol",
        Atom::Regexp(_) => "Regexp",
        Atom::Object(well_known::HASH) => "Hash",
        Atom::Object(class) if well_known::is_made_hash(class) => "MadeHash",
        Atom::Object(well_known::RANGE) => "Range",
        Atom::Object(well_known::COMPLEX) => "Complex",
        Atom::Object(well_known::RATIONAL) => "Rational",
        Atom::Object(well_known::MATCH_DATA) => "MatchData",
        _ => "",
    }
}

pub fn receiver_of(atom: Atom) -> Receiver {
    match atom {
        Atom::Module(class) => Receiver::Module(class),
        other => Receiver::Instance(class_of(other)),
    }
}

/// The target of a call on one kind of receiver.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    Builtin(Builtin),
    Ruby(MethodId),
    Reader(Name),
    Writer(Name),
    /// The lambda that a live object returns for its method.
    Proc(ProcId),
    /// A user-defined `method_missing`, which receives the name.
    Handler(MethodId),
    /// No receiver of this kind has the method: the call raises NoMethodError. `private`: the method exists, but may
    /// not be called this way.
    NoMethod {
        private: bool,
    },
    /// A method that kernels lack, while other kinds of receiver have one that they know. The call raises a
    /// CompileError with this message. Only lowering makes it.
    Refused(String),
}

impl Target {
    /// Whether an error in it may become an error at run time, while other kinds of receiver continue. This requires
    /// that nothing else was interpreted before the error was found.
    pub fn may_wait(&self) -> bool {
        match self {
            Target::Builtin(builtin) => {
                !builtin.iterates()
                    && !matches!(
                        builtin,
                        Builtin::ProcCall
                            | Builtin::Compose { .. }
                            | Builtin::Send { .. }
                            | Builtin::Curry
                            | Builtin::MakeProc
                    )
            }
            Target::Reader(_) | Target::Writer(_) => true,
            Target::Ruby(_) | Target::Proc(_) | Target::Handler(_) | Target::NoMethod { .. } | Target::Refused(_) => {
                false
            }
        }
    }
}

/// A literal argument that a method must know at compile time.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Sym(Name),
    /// A String of ASCII characters.
    Str(Name),
    Int(i64),
    /// `[i..]` and `[..i]`: a Range whose other end the parser has added.
    From,
    UpTo,
}

/// The arguments of a call, by type.
#[derive(Clone, Debug, Default)]
pub struct Args {
    pub positional: Vec<Ty>,
    pub literals: Vec<Option<Literal>>,
    pub keywords: Vec<(Name, Ty)>,
    /// Whether the call's value is not used.
    pub void: bool,
}

impl Args {
    /// The arguments of `method_missing`.
    pub fn with_name(&self, name: &str) -> Self {
        Self {
            positional: std::iter::once(Ty::sym()).chain(self.positional.iter().cloned()).collect(),
            literals: std::iter::once(Some(Literal::Sym(name.into()))).chain(self.literals.iter().cloned()).collect(),
            ..self.clone()
        }
    }
    /// The arguments of `respond_to_missing?`: the name, and that private methods do not count.
    pub fn for_missing(&self) -> Self {
        let name = self.literals.first().cloned().flatten();
        Self { literals: vec![name, None], ..Self::of(vec![Ty::sym(), Ty::prim(Prims::FALSE)]) }
    }
    /// The arguments that `send` passes on.
    pub fn after_first(&self) -> Self {
        Self {
            positional: self.positional.iter().skip(1).cloned().collect(),
            literals: self.literals.iter().skip(1).cloned().collect(),
            ..self.clone()
        }
    }
    pub fn of(positional: Vec<Ty>) -> Self {
        Self { literals: vec![None; positional.len()], positional, ..Self::default() }
    }
}

/// Whether the name is `name=` or `[]=`, whose return value is always ignored.
fn is_setter(name: &str) -> bool {
    name.ends_with('=') && !matches!(name, "==" | "===" | "!=" | "<=" | ">=")
}

/// Why a call cannot be compiled; the caller adds the position.
#[derive(Debug)]
pub enum Refusal {
    Unsupported { message: String, reason: Option<String>, advice: Option<String> },
    Failed(Error),
}

impl Refusal {
    pub fn new(message: impl Into<String>) -> Self {
        Refusal::Unsupported { message: message.into(), reason: None, advice: None }
    }
    pub fn because(mut self, text: impl Into<String>) -> Self {
        if let Refusal::Unsupported { reason, .. } = &mut self {
            *reason = Some(text.into());
        }
        self
    }
    pub fn advise(mut self, text: impl Into<String>) -> Self {
        if let Refusal::Unsupported { advice, .. } = &mut self {
            *advice = Some(text.into());
        }
        self
    }
    /// The error at a position.
    pub fn at(self, source: &Arc<Source>, span: Span) -> Error {
        match self {
            Refusal::Unsupported { message, reason, advice } => {
                let mut d = super::unsupported(source, span, message);
                d.reason = reason;
                d.advice = advice;
                d.into()
            }
            Refusal::Failed(error) => error,
        }
    }
}

fn endless(label: &str) -> Refusal {
    Refusal::new(format!("{label} calls itself with arguments of ever other types"))
        .because("each type is compiled, and [x] within [x] within [x] has no end")
        .advise("write it as a loop, or keep the types of the arguments as they are from call to call")
}

impl From<Opaque> for Refusal {
    fn from(opaque: Opaque) -> Self {
        let advice = match &*opaque.what {
            "a Proc" | "a Method" => {
                "call a lambda, a proc or a Method object written in Ruby, which a local variable or a constant holds"
            }
            "an Ikra::MDArray" => {
                "assign the array to a local variable before the block (grid = object.grid), and use that in it; \
                 ivars of the block's own self work, too"
            }
            what if what.starts_with("an Integer") => {
                "keep to 64 bits; a mask of 64 bits may be a literal in the block (& 0xffff_ffff_ffff_ffff)"
            }
            _ => {
                "keep what the block needs in Integers, Floats, Symbols, Strings in UTF-8, true, false, nil, arrays and objects of these"
            }
        };
        Refusal::new(format!("kernels cannot hold {}, which {} is", opaque.what, opaque.place)).advise(advice)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Failed(error)
    }
}

impl Args {
    /// The value of the first argument, if it is an Integer literal.
    pub fn int_literal(&self) -> Option<i64> {
        match self.literals.first() {
            Some(Some(Literal::Int(n))) => Some(*n),
            _ => None,
        }
    }
}

pub type Answer<T> = std::result::Result<T, Refusal>;

impl Args {
    /// The key of the specialisation for these arguments and bindings.
    pub fn key(&self, method: MethodId, name: &str, self_ty: Ty, args: Vec<Binding>) -> SpecKey {
        SpecKey { method: Some(method), self_ty, args, void: self.void || is_setter(name) }
    }
}

/// The argument of each positional parameter, in the order required, optional, post. Err is ArgumentError's message.
pub fn positions(params: &Params, given: usize) -> std::result::Result<Vec<Option<usize>>, String> {
    let (required, post, optional) = (params.required.len(), params.post.len(), params.optional.len());
    let least = required + post;
    let most = least + optional;
    if given < least || given > most && params.rest.is_none() {
        let expected = match (params.rest.is_some(), most > least) {
            (true, _) => format!("{least}+"),
            (false, true) => format!("{least}..{most}"),
            (false, false) => least.to_string(),
        };
        let keywords: Vec<&str> = params.keywords.iter().filter(|k| k.default.is_none()).map(|k| &*k.name).collect();
        let required = match &*keywords {
            [] => String::new(),
            [one] => format!("; required keyword: {one}"),
            all => format!("; required keywords: {}", all.join(", ")),
        };
        return Err(format!("wrong number of arguments (given {given}, expected {expected}{required})"));
    }
    let filled = (given - least).min(optional);
    let first = (0..required).map(Some);
    let middle = (0..optional).map(|i| (i < filled).then_some(required + i));
    Ok(first.chain(middle).chain((given - post..given).map(Some)).collect())
}

/// The positions of the arguments that a splat parameter takes.
pub fn rest_positions(params: &Params, given: usize) -> std::ops::Range<usize> {
    let first = params.required.len() + params.optional.len();
    first.min(given)..given.saturating_sub(params.post.len()).max(first.min(given))
}

/// Receiver and argument of `a.divmod(b)`.
pub fn divided(call: &Call) -> Option<[&Node; 2]> {
    match (&*call.name, &call.receiver, &call.args[..]) {
        ("divmod", Some(receiver), [Arg::Positional(arg)]) if call.block.is_none() => Some([receiver, arg]),
        _ => None,
    }
}

/// Whether an assignment can take both results of `divmod` directly, without an array: for numbers.
pub fn makes_no_array(receiver: &Ty, arg: &Ty) -> bool {
    receiver.atoms().iter().all(|atom| matches!(atom, Atom::Int | Atom::Float))
        && !arg.objects.contains(&well_known::RATIONAL)
}

/// Binds arguments to parameters; Err is ArgumentError's message.
pub fn bind(params: &Params, args: &Args) -> std::result::Result<Vec<Binding>, String> {
    let positions = positions(params, args.positional.len())?;
    let of = |p: &Option<usize>| p.map_or(Binding::Default, |p| Binding::Given(args.positional[p].clone()));
    let mut out: Vec<Binding> = positions.iter().map(of).collect();
    let mut missing = Vec::new();
    for keyword in &params.keywords {
        match args.keywords.iter().find(|(name, _)| *name == keyword.name) {
            Some((_, ty)) => out.push(Binding::Given(ty.clone())),
            None => {
                if keyword.default.is_none() {
                    missing.push(format!(":{}", keyword.name));
                }
                out.push(Binding::Default);
            }
        }
    }
    let plural = |list: &[String]| if list.len() > 1 { "s" } else { "" };
    if !missing.is_empty() {
        return Err(format!("missing keyword{}: {}", plural(&missing), missing.join(", ")));
    }
    let unknown: Vec<String> = args
        .keywords
        .iter()
        .filter(|(name, _)| params.keyword_rest.is_none() && !params.keywords.iter().any(|k| k.name == *name))
        .map(|(name, _)| format!(":{name}"))
        .collect();
    if !unknown.is_empty() {
        return Err(format!("unknown keyword{}: {}", plural(&unknown), unknown.join(", ")));
    }
    Ok(out)
}

/// Refuses keywords for a method that declares none. Ruby makes a Hash of them, the last positional argument.
pub fn check_keywords(params: &Params, args: &Args, label: &str) -> Answer<()> {
    if args.keywords.is_empty() || !params.keywords.is_empty() || params.keyword_rest.is_some() {
        return Ok(());
    }
    Err(Refusal::new(format!("kernels make no Hash of keywords, and {label} declares none"))
        .because("Ruby makes a Hash of them then, which is the last argument")
        .advise("pass the values as arguments, or declare the keywords"))
}

/// Refuses parameter lists that kernels do not know.
pub fn check_params(p: &Params, label: &str) -> Answer<()> {
    if label.starts_with("Ikra::Parallel") {
        return Err(Refusal::new("kernels run no parallel method within a block")
            .because("the block's elements run at the same time already")
            .advise("write Ruby's own method, without the p"));
    }
    let named = |rest: &Option<crate::syntax::ast::Rest>| rest.is_some_and(|r| r.0.is_some());
    let what = if named(&p.keyword_rest) {
        "a double-splat parameter"
    } else {
        return Ok(());
    };
    Err(Refusal::new(format!("{label} has {what}, which kernels do not know")).advise("name each parameter"))
}

fn is_protected(fact: &MethodFact) -> bool {
    match fact {
        MethodFact::Ruby { visibility, .. }
        | MethodFact::AttrReader { visibility, .. }
        | MethodFact::AttrWriter { visibility, .. }
        | MethodFact::Builtin { visibility, .. } => *visibility == Visibility::Protected,
        MethodFact::Foreign { .. } | MethodFact::Missing { .. } => false,
    }
}

/// The methods of Method objects that kernels know, as Procs have them.
const METHOD_OBJECTS: &[&str] = &["call", "()", "===", "[]", ">>", "<<", "curry", "arity", "nil?", "!", "itself"];

/// What only Method objects have. `is_own`: the program itself makes the object.
fn of_method_object(name: &str, is_own: bool, is_bound: bool) -> Option<Builtin> {
    match name {
        "to_proc" => Some(Builtin::MethodToProc),
        "name" if is_own => Some(Builtin::MethodName),
        "owner" if is_own => Some(Builtin::MethodOwner),
        "receiver" if is_bound => Some(Builtin::MethodReceiver),
        _ => None,
    }
}

impl Analysis<'_> {
    /// Whether a kind of receiver has no such method: the call raises NoMethodError.
    pub fn answers_nothing(&mut self, from: SpecId, atom: Atom, name: &str, on_self: bool) -> bool {
        matches!(self.target(from, atom, name, on_self), Ok(Target::NoMethod { private: false }))
    }

    /// The target of a call of `name` in `from` on one kind of receiver. `on_self`: the call has no receiver, or
    /// `self`.
    ///
    /// # Errors
    /// Methods that Ruby has and kernels do not.
    pub fn target(&mut self, from: SpecId, atom: Atom, name: &str, on_self: bool) -> Answer<Target> {
        let (origin, name) = self.origin(from, name);
        if let Some(target) = self.library_target(from, atom, name)? {
            return Ok(target);
        }
        if let Atom::Proc(id) = atom
            && !matches!(name, "nil?" | "!")
            && let Some(answer) = self.live_method(id, name)
        {
            return answer;
        }
        if let Atom::Proc(id) = atom
            && self.proc_info(id).kind.is_method()
            && primitive(name).is_none()
            && !METHOD_OBJECTS.contains(&name)
        {
            let bound = matches!(self.proc_info(id).kind, super::blocks::ProcKind::Bound(_));
            if let Some(builtin) = of_method_object(name, self.method_name(id).is_some(), bound) {
                return Ok(Target::Builtin(builtin));
            }
            return Err(Refusal::new(format!("kernels do not know {name} of a Method object"))
                .because("they know what it calls, and nothing else of it")
                .advise("ask it in Ruby, before the call, and capture the answer"));
        }
        if let Some(name) = primitive(name) {
            self.stands_for_rubys(atom, name)?;
            if name == "__parts" {
                return match (atom, self.method(receiver_of(atom), "deconstruct")) {
                    (Atom::Object(_), MethodFact::Ruby { .. }) => self.target(from, atom, "deconstruct", true),
                    _ => Ok(Target::Builtin(Builtin::Itself)),
                };
            }
            if name == "__freeze_literal" {
                return match self.method(receiver_of(atom), "freeze") {
                    MethodFact::Builtin { .. } => Ok(Target::Builtin(Builtin::StrInterned)),
                    _ => self.target(from, atom, "freeze", on_self),
                };
            }
            if let (Atom::Object(class), "__hash") = (atom, name) {
                if well_known::is_hash(class) {
                    return Err(Refusal::new("kernels do not know Hashes as keys of a Hash")
                        .advise("take what tells them apart: an Array, a Struct or a number"));
                }
                for asked in ["hash", "eql?"] {
                    if matches!(
                        self.method(receiver_of(atom), asked),
                        MethodFact::Ruby { .. } | MethodFact::Foreign { .. }
                    ) {
                        let class = self.describe(atom);
                        return Err(Refusal::new(format!(
                            "kernels do not ask {class} for {asked}, as a key of a Hash"
                        ))
                        .advise("look it up by what it is made of: an Array, a Struct or a number"));
                    }
                }
                if self.world.members(class).is_some()
                    && let Some(method) = crate::prelude::helper("Struct", false, name)
                {
                    if !self.is_unaltered_of(well_known::OBJECT, "hash") {
                        return Err(Refusal::new("kernels do not ask a hash that is redefined for all objects")
                            .because("Struct#hash asks the class for it")
                            .advise("redefine it in your own classes only"));
                    }
                    return Ok(Target::Ruby(method));
                }
            }
            if let (Atom::Object(well_known::HASH), "__keys?") = (atom, name)
                && !matches!(self.method(receiver_of(atom), "deconstruct_keys"), MethodFact::Builtin { .. })
            {
                return Err(Refusal::new("kernels know Hash#deconstruct_keys as Ruby defines it only"));
            }
            if let Some(builtin) = builtins::primitive(atom, name) {
                return Ok(Target::Builtin(builtin));
            }
            if let Atom::Object(class) = atom
                && let Some(part) = values::parts(class).iter().find(|part| name[2..] == ***part)
            {
                return Ok(Target::Reader((*part).into()));
            }
            if let Atom::Object(class) = atom
                && well_known::is_made_hash(class)
                && let Some(part) = hashes::MADE_PARTS.iter().find(|part| *name[2..].trim_end_matches('=') == ***part)
            {
                let access = if name.ends_with('=') { Target::Writer } else { Target::Reader };
                return Ok(access((*part).into()));
            }
            if let Some((inner, outer)) = fused(name) {
                match self.method(receiver_of(atom), inner) {
                    MethodFact::Builtin { .. } => {}
                    MethodFact::Missing { .. } => return Ok(Target::NoMethod { private: false }),
                    _ => {
                        let class = self.describe(atom);
                        return Err(Refusal::new(format!("kernels do not know {inner}.{outer} of {class}"))
                            .advise("count in a variable of your own"));
                    }
                }
            }
            // the program defines a method of that name, which the parser did not know
            if let Some(written) = listed(name).or_else(|| name.strip_prefix("__cycle_").and(Some("cycle")))
                && matches!(self.method(receiver_of(atom), written), MethodFact::Ruby { .. })
            {
                return self.target(from, atom, written, on_self);
            }
            // the parser did not know the class, and only Enumerable's method is meant
            if name == "__list_each_with_object" {
                match self.method(receiver_of(atom), "each_with_object") {
                    MethodFact::Builtin { owner, .. } if &*owner == "Enumerable" => {}
                    MethodFact::Missing { .. } => return Ok(Target::NoMethod { private: false }),
                    _ => {
                        let class = self.describe(atom);
                        return Err(Refusal::new(format!("kernels do not know each_with_object([]) of {class}"))
                            .advise("make the array first, in a local variable"));
                    }
                }
            }
            let enumerable = |an: &mut Self| match an.method(receiver_of(atom), "each_entry") {
                MethodFact::Builtin { owner, .. } => &*owner == "Enumerable",
                // a program may have removed it
                _ => an.atom_is_a(atom, well_known::ENUMERABLE),
            };
            // Integers are compared directly, unless the program defines their `<=>`
            let ordered =
                atom != Atom::Int || !matches!(name, "__above?" | "__below?") || self.is_unaltered(atom, "<=>");
            let class = if ordered { core_class(atom) } else { "" };
            if let Some(method) = crate::prelude::helper(class, enumerable(self), name) {
                return Ok(Target::Ruby(method));
            }
            if name == "__part" {
                let class = self.describe(atom);
                return Err(Refusal::new(format!("kernels make no Complex of a {class}"))
                    .advise("write its parts as Integers or Floats"));
            }
            if name == "__exact" {
                let class = self.describe(atom);
                return Err(Refusal::new(format!("kernels make no Rational of a {class}"))
                    .advise("write numerator and denominator as two Integers"));
            }
            // the parser did not know the type
            if let Some(written) = listed(name) {
                return self.target(from, atom, written, on_self);
            }
            if let Some(written) = name.strip_prefix("__").and_then(|n| n.strip_suffix("_with_index")) {
                let class = self.describe(atom);
                return Err(Refusal::new(format!("kernels do not know {written}.with_index of {class}"))
                    .advise("count in a variable of your own"));
            }
            return Ok(Target::NoMethod { private: false });
        }
        if atom == Atom::Exception {
            return self.target_of_exception(name);
        }
        // this tests the sign of a result of `<=>`
        let sign = origin == Origin::Asked && atom == Atom::Int && matches!(name, "<" | ">");
        if (origin == Origin::Ruby || sign)
            && let Some(target) = self.rubys_own(from, atom, name, on_self)?
        {
            return Ok(target);
        }
        if origin == Origin::Asked {
            self.may_be_asked(atom, name)?;
        }
        // a method of the Enumerator for which the list stands
        if matches!(atom, Atom::Array(_)) && matches!(name, "with_index" | "with_object" | "next" | "peek" | "rewind") {
            return Err(Refusal::new(format!("kernels do not know {name} of this iterator"))
                .advise("count, or keep the object, in a variable of your own"));
        }
        let fact = self.method(receiver_of(atom), name);
        let on_self = on_self || is_protected(&fact) && self.may_call_protected(from, atom, name);
        self.target_of(fact, atom, name, on_self)
    }

    fn target_of(&mut self, fact: MethodFact, atom: Atom, name: &str, on_self: bool) -> Answer<Target> {
        let visible = |v: Visibility| on_self || v == Visibility::Public;
        Ok(match fact {
            MethodFact::Ruby { method, visibility } => {
                if visible(visibility) {
                    Target::Ruby(method)
                } else {
                    self.hidden(atom)
                }
            }
            MethodFact::AttrReader { ivar, visibility } if visible(visibility) => Target::Reader(ivar),
            MethodFact::AttrWriter { ivar, visibility } if visible(visibility) => Target::Writer(ivar),
            MethodFact::Builtin { owner, name: original, visibility } if visible(visibility) => {
                let name = known_as(name, &original);
                self.asks_nothing_redefined(atom, &owner, name)?;
                if name == "!=" && !matches!(atom, Atom::Object(_)) && !self.is_unaltered(atom, "==") {
                    return Ok(Target::Builtin(Builtin::NotEqual));
                }
                match self.builtin_target(atom, &owner, name)? {
                    Some(target) => target,
                    None => {
                        // the module that defines the method says more than an anonymous class that includes it
                        let what = match atom {
                            Atom::Module(_) if &*owner != "Kernel" => format!("{}.{name}", self.describe(atom)),
                            _ => format!("{owner}#{name}"),
                        };
                        let refusal = Refusal::new(format!("kernels do not know {what}"));
                        return Err(refusal.advise(builtins::instead(&owner, name)));
                    }
                }
            }
            MethodFact::AttrReader { .. } | MethodFact::AttrWriter { .. } | MethodFact::Builtin { .. } => {
                self.hidden(atom)
            }
            MethodFact::Foreign { what } => {
                let refusal = Refusal::new(format!("{what} is not written in Ruby, so kernels cannot run it"));
                return Err(refusal.advise(
                    "call it before or after the section; with unsupported: :ruby the block runs as plain Ruby",
                ));
            }
            MethodFact::Missing { handler: None } => Target::NoMethod { private: false },
            MethodFact::Missing { handler: Some(handler) } => Target::Handler(handler),
        })
    }

    /// The target for a method of Ruby's own.
    ///
    /// # Errors
    /// A text of the library that does not parse.
    pub(super) fn builtin_target(&mut self, atom: Atom, owner: &str, name: &str) -> Answer<Option<Target>> {
        if let Some(target) = value_target(atom, owner, name) {
            return Ok(Some(target));
        }
        Ok(match builtins::find(atom, owner, name) {
            Some(builtin) => Some(match self.routine(atom, builtin)? {
                Some(method) => Target::Ruby(method),
                None => Target::Builtin(builtin),
            }),
            None => {
                // a class does not have the methods of its instances; those of Math are its own
                let is_instance = !matches!(atom, Atom::Module(_)) || is_of_modules(owner) || owner == "Math";
                let find = || crate::prelude::find(core_class(atom), owner, name).filter(|_| is_instance);
                ikras_own(owner, name).or_else(find).map(Target::Ruby)
            }
        })
    }

    /// The target of a call of a method that may not be called this way.
    fn hidden(&mut self, atom: Atom) -> Target {
        match self.method(receiver_of(atom), "method_missing") {
            MethodFact::Ruby { method, .. } => Target::Handler(method),
            _ => Target::NoMethod { private: true },
        }
    }

    /// Whether `self` in `from` is an instance of the class or module that defines a protected method.
    fn may_call_protected(&mut self, from: SpecId, atom: Atom, name: &str) -> bool {
        let Some(owner) = self.world.method_owner(receiver_of(atom), name) else { return false };
        let callers = match self.spec(from).key.method {
            Some(_) => self.spec(from).key.self_ty.clone(),
            None => self.root(from, &Root::SelfObject).unwrap_or_default(),
        };
        !callers.is_never() && callers.atoms().into_iter().all(|caller| self.atom_is_a(caller, owner))
    }

    /// The name of a kind of value's class, for messages.
    pub fn describe(&mut self, atom: Atom) -> String {
        match atom {
            Atom::Module(class) => self.class(class).name,
            other => self.class(class_of(other)).name,
        }
    }

    /// The type of a call on one kind of receiver. Registers its reads, writes and calls.
    ///
    /// # Errors
    /// What Ruby can do and kernels cannot.
    pub fn call(
        &mut self,
        from: SpecId,
        (atom, reach): (Atom, Reach),
        name: &str,
        args: &Args,
        on_self: bool,
        at: &Assumption,
    ) -> Answer<(Target, Ty)> {
        let target = self.target(from, atom, name, on_self)?;
        let ty = self.reached(from, &target, (atom, reach), name, args, at)?;
        Ok((target, ty))
    }

    /// The target of `super` in `method`, and its name.
    ///
    /// # Errors
    /// As [`Analysis::target`].
    pub fn super_target(&mut self, method: MethodId, atom: Atom) -> Answer<(Target, Name)> {
        let fact = self.world.super_method(receiver_of(atom), method);
        let name = self.source(method)?.unit.name.clone().unwrap_or_else(|| "super".into());
        if &*name == "method_missing" && matches!(fact, MethodFact::Missing { .. }) {
            return Ok((Target::Builtin(Builtin::MethodMissing), name));
        }
        Ok((self.target_of(fact, atom, &name, true)?, name))
    }

    /// The type of a target on one kind of receiver. Registers its reads, writes and calls.
    ///
    /// # Errors
    /// What Ruby can do and kernels cannot.
    pub fn reached(
        &mut self,
        from: SpecId,
        target: &Target,
        (atom, reach): (Atom, Reach),
        name: &str,
        args: &Args,
        at: &Assumption,
    ) -> Answer<Ty> {
        let given = args.positional.len();
        let name = plain(name);
        Ok(match target {
            Target::NoMethod { .. } | Target::Refused(_) => Ty::never(),
            Target::Handler(_) => unreachable!("asked with the name as an argument"),
            Target::Proc(_) => unreachable!("called as a lambda"),
            Target::Ruby(method) => {
                let source = self.source(*method)?;
                let label = match self.is_prelude(*method) {
                    true => crate::prelude::written(&source.label),
                    false => source.label.clone(),
                };
                check_params(&source.unit.params, &label)?;
                check_keywords(&source.unit.params, args, &label)?;
                self.struct_arguments(*method, args)?;
                match bind(&source.unit.params, args) {
                    Ok(bindings) => {
                        let key = args.key(*method, name, Ty::of(atom, reach), bindings);
                        let key = self.rejoined(from, key);
                        if self.has_no_end(from, &key) {
                            return Err(endless(&source.label));
                        }
                        let spec = self.specialise(from, key)?;
                        self.spec(spec).ret.clone()
                    }
                    Err(_) => Ty::never(),
                }
            }
            Target::Writer(_) if given == 0 && !args.keywords.is_empty() => {
                return Err(Refusal::new(format!("kernels make no Hash of keywords, which {name} takes"))
                    .advise("make it before the section"));
            }
            // Ruby makes one more argument of keywords
            Target::Reader(_) | Target::Writer(_) if !args.keywords.is_empty() => Ty::never(),
            Target::Reader(ivar) if given == 0 => {
                let ty = self.read_field(from, atom, reach, ivar)?;
                if atom == Atom::Object(well_known::COMPLEX) && ty.objects.contains(&well_known::RATIONAL) {
                    return Err(Refusal::new("kernels do not know Complexes of Rationals")
                        .advise("write their parts as Integers or Floats"));
                }
                ty
            }
            Target::Writer(ivar) if given == 1 => {
                self.write_field(from, atom, reach, ivar, &args.positional[0])?;
                args.positional[0].clone()
            }
            Target::Reader(_) | Target::Writer(_) => Ty::never(),
            Target::Builtin(_) if !args.keywords.is_empty() => {
                return Err(Refusal::new(format!("kernels do not know {name} with keywords"))
                    .advise("write out what the keyword asks for"));
            }
            Target::Builtin(Builtin::RangeStep) if name == "%" && given == 0 => {
                return Err(Refusal::new("kernels do not know % of a Range without an argument"));
            }
            Target::Builtin(builtin) if !builtin.arity().contains(&given) => {
                // forms of these methods that kernels lack must not be taken for an ArgumentError
                if matches!(
                    builtin,
                    Builtin::IvarGet
                        | Builtin::IvarSet
                        | Builtin::ArrayFirst
                        | Builtin::ArrayLast
                        | Builtin::ArrayGet
                        | Builtin::ArraySet
                        | Builtin::ArraySize
                        | Builtin::RangeFirst
                        | Builtin::RangeLast
                        | Builtin::RangeMin
                        | Builtin::RangeMax
                        | Builtin::RangeSize
                        | Builtin::ToInteger
                        | Builtin::ToFloat
                ) {
                    return Err(Refusal::new(format!("kernels do not know {name} with {given} arguments")));
                }
                if builtin.iterates() {
                    return Err(Refusal::new(format!("kernels do not know {name} with {given} arguments")));
                }
                Ty::never()
            }
            Target::Builtin(builtin) => self.builtin(from, *builtin, (atom, reach), name, args, at)?,
        })
    }

    /// The result of a builtin without a block, for all kinds of its arguments.
    fn builtin(
        &mut self,
        from: SpecId,
        builtin: Builtin,
        (atom, reach): (Atom, Reach),
        name: &str,
        args: &Args,
        at: &Assumption,
    ) -> Answer<Ty> {
        if builtin.iterates() {
            return Err(Refusal::new(format!("{name} without a block gives an Enumerator, which kernels do not know"))
                .advise(format!("give {name} a block")));
        }
        let combinations = combinations(&args.positional);
        let several = combinations.len() > 1;
        let (mut out, mut refused) = (Ty::never(), None);
        for atoms in combinations {
            match self.combination(from, builtin, (atom, reach), name, args, &atoms, at) {
                Ok(ty) => out = self.facts.join(&out, &ty),
                // becomes an error at run time
                Err(refusal @ Refusal::Unsupported { .. }) if several && self.may_wait() => {
                    _ = refused.get_or_insert(refusal)
                }
                Err(refusal) => return Err(refusal),
            }
        }
        match refused {
            Some(refusal) if out.is_never() => Err(refusal),
            _ => Ok(out),
        }
    }

    /// The result of a builtin for one kind of each argument.
    ///
    /// # Errors
    /// What Ruby can do and kernels cannot.
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub fn combination(
        &mut self,
        from: SpecId,
        builtin: Builtin,
        (atom, reach): (Atom, Reach),
        name: &str,
        args: &Args,
        atoms: &[Atom],
        at: &Assumption,
    ) -> Answer<Ty> {
        use Builtin::*;
        let builtin = builtin.with_arguments(atoms.len());
        self.asks_exception(builtin, atom, atoms)?;
        let whole = builtin.whole_numbers(atoms);
        no_value(name, whole)?;
        let asked = if builtin == RangeCover { "coerce" } else { "to_int" };
        whole.iter().try_for_each(|atom| self.asks_conversion(*atom, asked))?;
        if asked == "to_int" {
            whole.iter().try_for_each(|atom| self.is_no_range(*atom))?;
        }
        Ok(match builtin {
            Numeric(method) if self.asks_equality(from, method, atoms)? => {
                let receiver = Ty::of(atom, Reach::Mixed);
                let (_, ty) = self.asked(from, (atoms[0], Reach::Mixed), "==", &receiver, at)?;
                match method {
                    crate::types::numeric::Method::NotEq => negate(&ty),
                    _ => super::compare::truths(&ty),
                }
            }
            Numeric(crate::types::numeric::Method::BitRef) if atoms.contains(&Atom::Object(well_known::RANGE)) => {
                return Err(Refusal::new("kernels know bits of an Integer by Ranges of two Integers only")
                    .advise("write both ends; for the bits from one on, x >> from"));
            }
            Numeric(method) => {
                use crate::types::numeric::Method;
                if matches!(method, Method::BitRef | Method::Clamp) {
                    atoms.iter().try_for_each(|atom| self.is_no_range(*atom))?;
                }
                if method.asks_argument().is_some() {
                    no_value(name, atoms)?;
                }
                self.asks_argument(method, atom, atoms)?;
                method.result(Kind::of(atom), &kinds(atoms), args.int_literal()).map_err(|u| unknown_form(name, u))?
            }
            Math(function) => {
                no_value(name, atoms)?;
                for atom in atoms {
                    // Math takes only numbers; all other values are a TypeError, whatever methods they have
                    match *atom {
                        _ if function == crate::types::numeric::Function::IntegerSqrt => {
                            self.asks_conversion(*atom, "to_int")?;
                        }
                        Atom::Object(class) if self.world.is_a(class, well_known::NUMERIC) => {
                            self.asks_conversion(*atom, "to_f")?;
                        }
                        _ => {}
                    }
                }
                function.result(&kinds(atoms))
            }
            Primitive(primitive) => {
                if primitive == builtins::Primitive::MemberName
                    && let Atom::Object(class) = atom
                {
                    let members = self.world.members(class).unwrap_or_default();
                    members.iter().for_each(|name| self.world.names_symbol(name));
                }
                primitive.result()
            }
            Rand(rand) => {
                let ty = rand.result(&kinds(atoms), args.int_literal()).map_err(|u| unknown_form(name, u))?;
                self.speculate_rand(ty, atoms, at)
            }
            IsNil => flag(atom == Atom::Nil),
            Not => match atom {
                Atom::Nil | Atom::False => Ty::prim(Prims::TRUE),
                _ => Ty::prim(Prims::FALSE),
            },
            Equal => self.equal_ty(atom, atoms[0])?,
            NotEqual => {
                let args = Args::of(vec![Ty::of(atoms[0], Reach::Mixed)]);
                if let (Atom::Proc(_) | Atom::Regexp(_), Target::Ruby(method)) =
                    (atoms[0], self.target(from, atom, ":==", false)?)
                    && self.inlines(method, &args, None)?
                {
                    let class = self.describe(atom);
                    return Err(Refusal::new(format!("kernels do not compare {class} with a block or Regexp by !="))
                        .advise("write !(a == b)"));
                }
                let (_, equal) =
                    self.call(from, (atom, reach), ":==", &Args::of(vec![Ty::of(atoms[0], Reach::Mixed)]), false, at)?;
                negate(&equal)
            }
            Identical => self.identical_ty(atom, atoms[0])?,
            CaseEqual | Compare | Ordered(_) => self.comparison(from, builtin, (atom, reach), atoms, at)?,
            Raise => return Err(Refusal::new("kernels know raise only as a call of its own")),
            SameReference => self.same_reference_ty(atom, atoms[0]),
            Kin => flag(self.is_kin(atom, atoms[0])),
            Kinds | Identity => Ty::int(),
            IsA | InstanceOf | ModuleCase => {
                let (value, module) = if builtin == ModuleCase { (atoms[0], atom) } else { (atom, atoms[0]) };
                if let Atom::Proc(id) = value
                    && self.proc_info(id).kind.is_method()
                {
                    return Err(Refusal::new("kernels do not know the class of a Method object")
                        .advise("ask it in Ruby, before the call, and capture the answer"));
                }
                match module {
                    Atom::Module(_) if value == Atom::Exception => Ty::bool(),
                    Atom::Module(m) if builtin == InstanceOf => {
                        flag(!matches!(value, Atom::Module(_)) && self.real_class(class_of(value)) == m)
                    }
                    Atom::Module(m) => flag(self.atom_is_a(value, m)),
                    // TypeError: class or module required
                    _ => Ty::never(),
                }
            }
            RespondTo | Answers => {
                let Some(Some(Literal::Sym(asked))) = args.literals.first() else {
                    return Err(Refusal::new("kernels know respond_to? only with a literal Symbol"));
                };
                let all = match args.positional.get(1) {
                    None => false,
                    Some(all) if !all.may_be_falsy() => true,
                    Some(all) if !all.may_be_truthy() => false,
                    Some(_) => {
                        return Err(Refusal::new("kernels know respond_to? only with a literal true or false").advise(
                            "write respond_to?(:name), or respond_to?(:name, true) to ask for private methods, too",
                        ));
                    }
                };
                let answer = match self.method(receiver_of(atom), asked) {
                    MethodFact::Missing { handler: None } => false,
                    MethodFact::Missing { handler: Some(_) } => {
                        unreachable!("asked where respond_to_missing? is called")
                    }
                    MethodFact::Foreign { .. } => true,
                    MethodFact::Ruby { visibility, .. }
                    | MethodFact::AttrReader { visibility, .. }
                    | MethodFact::AttrWriter { visibility, .. }
                    | MethodFact::Builtin { visibility, .. } => match visibility {
                        Visibility::Public => true,
                        Visibility::Protected if builtin == Answers => self.may_call_protected(from, atom, asked),
                        _ => all,
                    },
                };
                flag(answer)
            }
            ClassOf => match atom {
                Atom::Module(_) => return Err(Refusal::new("kernels do not know the class of a class")),
                other => {
                    let class = self.real_class(class_of(other));
                    Ty::module(class)
                }
            },
            New | Allocate => return Err(Refusal::new(format!("kernels do not know {name} here"))),
            Initialize => Ty::nil(),
            Itself => Ty::of(atom, reach),
            MakeProc => return Err(Refusal::new(format!("{name} needs a literal block")).advise("write -> { … }")),
            ProcCall | Compose { .. } | Staged | BlockGiven | Send { .. } | Curry => {
                unreachable!("asked where the block is known")
            }
            ArrayPut => {
                self.write_element(from, (atom, reach), &args.positional[1])?;
                Ty::nil()
            }
            TakeOf => Ty::of(atom, reach),
            Alike => Ty::of(atom, Reach::Fresh),
            Grown => match atom {
                Atom::Array(kind) => {
                    self.grow_by(from, kind, &args.positional[0])?;
                    Ty::array(self.facts.find(kind)).reached(Reach::Fresh)
                }
                _ => Ty::never(),
            },
            HashLend => Ty::nil(),
            HashLent => match atom {
                Atom::Object(class) => {
                    self.hash_lists_grow(class);
                    self.read_field(from, atom, reach, &"walks".into())?;
                    self.write_field(from, atom, reach, &"walks".into(), &Ty::int())?;
                    Ty::bool()
                }
                _ => Ty::never(),
            },
            HashStoresList => flag(matches!(atom, Atom::Object(class) if self.stores_list(class))),
            HashBlock => match atom {
                Atom::Object(class) => self.block_of_hash(class),
                _ => Ty::nil(),
            },
            Buffer | MakeHash => unreachable!("asked where places are known"),
            Unconverted(asked) => {
                self.asks_conversion(atoms[0], asked)?;
                Ty::nil()
            }
            OneLevel => match atoms[0] {
                Atom::Array(_) => {
                    return Err(
                        Refusal::new("kernels flatten one level of arrays only").advise("write flatten(1), twice")
                    );
                }
                _ => {
                    self.asks_conversion(atoms[0], "to_ary")?;
                    Ty::nil()
                }
            },
            Uncoercible => {
                if let Some(Atom::Object(well_known::COMPLEX | well_known::RATIONAL)) = atoms.first() {
                    return Err(Refusal::new("kernels do not compute with a Complex and a Rational")
                        .advise("compute with the parts of the Complex"));
                }
                self.asks_argument(crate::types::numeric::Method::Add, Atom::Int, atoms)?;
                Ty::never()
            }
            NeedsArray => {
                self.asks_conversion(atoms[0], "to_ary")?;
                Ty::never()
            }
            Uncomparable | NoMatch | MethodMissing => Ty::never(),
            NoRange => {
                self.is_no_range(atom)?;
                Ty::nil()
            }
            Lacks(asked, beside) => {
                let own = |fact: MethodFact| matches!(fact, MethodFact::Ruby { .. } | MethodFact::AttrReader { .. });
                if matches!(atom, Atom::Object(_))
                    && own(self.method(receiver_of(atom), asked))
                    && !own(self.method(receiver_of(atom), beside))
                {
                    let class = self.describe(atom);
                    return Err(Refusal::new(format!("{class} has {asked} of its own, and no {beside}"))
                        .because(format!("Ruby asks for {beside} first, which differs for each object"))
                        .advise(format!("define {beside}, too")));
                }
                Ty::nil()
            }
            IsList => match (atom, self.method(receiver_of(atom), "deconstruct")) {
                (Atom::Array(_), _) => Ty::prim(Prims::TRUE),
                (_, MethodFact::Missing { .. }) => Ty::prim(Prims::FALSE),
                (_, MethodFact::Ruby { visibility, .. }) if visibility != Visibility::Public => Ty::prim(Prims::FALSE),
                (Atom::Object(_), MethodFact::Builtin { owner, .. }) if &*owner == "Struct" => Ty::prim(Prims::TRUE),
                (Atom::Object(_), MethodFact::Ruby { .. }) => Ty::prim(Prims::TRUE),
                _ => {
                    let class = self.describe(atom);
                    return Err(Refusal::new(format!("kernels do not ask {class} for deconstruct"))
                        .because("it gives an Array of parts")
                        .advise("match the class, and read the attributes in a guard: `in Point if …`"));
                }
            },
            HasKeys => {
                let key = match args.literals.first() {
                    Some(Some(Literal::Sym(key))) => Some(key),
                    _ => None,
                };
                match (atom, self.method(receiver_of(atom), "deconstruct_keys"), key) {
                    (_, MethodFact::Missing { .. }, _) => Ty::prim(Prims::FALSE),
                    (_, MethodFact::Ruby { visibility, .. }, _) if visibility != Visibility::Public => {
                        Ty::prim(Prims::FALSE)
                    }
                    (Atom::Object(_), _, None) => {
                        self.own_keys(from, atom)?;
                        Ty::prim(Prims::TRUE)
                    }
                    (Atom::Object(class), _, Some(key)) => flag(match self.own_keys(from, atom)? {
                        Some(keys) => keys.iter().any(|(name, _)| name == key),
                        None => self.world.members(class).unwrap_or_default().contains(key),
                    }),
                    _ => {
                        let class = self.describe(atom);
                        return Err(Refusal::new(format!("kernels do not ask {class} for deconstruct_keys"))
                            .advise("match the class, and read what matters in a guard"));
                    }
                }
            }
            KeyCount => Ty::int(),
            Member => match (self.own_keys(from, atom)?, args.literals.first()) {
                (None, _) => self.struct_index(from, StructGet, (atom, reach), atoms, args)?,
                (Some(keys), Some(Some(Literal::Sym(key)))) => {
                    match keys.into_iter().find(|(name, _)| name == key).map(|(_, value)| value) {
                        None => Ty::never(),
                        Some(KeyValue::Field(field)) => self.read_field(from, atom, reach, &field)?,
                        Some(KeyValue::Sym(_)) => Ty::sym(),
                        Some(KeyValue::Int(_)) => Ty::int(),
                        Some(KeyValue::True) => Ty::prim(Prims::TRUE),
                        Some(KeyValue::False) => Ty::prim(Prims::FALSE),
                        Some(KeyValue::Nil) => Ty::nil(),
                    }
                }
                _ => Ty::never(),
            },
            IvarGet | IvarSet => {
                let Some(Some(Literal::Sym(ivar))) = args.literals.first() else {
                    return Err(Refusal::new(format!("kernels know {name} with a literal Symbol only"))
                        .because("which column it is must be known when compiling"));
                };
                if !ivar.starts_with('@') {
                    return Ok(Ty::never());
                }
                if builtin == IvarGet {
                    self.read_field(from, atom, reach, ivar)?
                } else {
                    self.write_field(from, atom, reach, ivar, &args.positional[1])?;
                    return Ok(args.positional[1].clone());
                }
            }
            Doubt => match atoms[0] {
                Atom::True => Ty::prim(Prims::TRUE),
                Atom::False => Ty::prim(Prims::FALSE),
                _ => Ty::never(),
            },
            ProcArity => {
                if let Atom::Proc(id) = atom {
                    self.arity(from, id)?;
                }
                Ty::int()
            }
            MethodToProc => match atom {
                Atom::Proc(id) => Ty::proc(self.converted(id)),
                _ => Ty::never(),
            },
            MethodName => {
                if let Atom::Proc(id) = atom
                    && let Some(name) = self.method_name(id)
                {
                    self.world.names_symbol(&name);
                }
                Ty::sym()
            }
            MethodOwner => match atom {
                Atom::Proc(id) => Ty::module(self.method_owner(id).ok_or_else(|| {
                    Refusal::new("kernels do not know the owner of this Method object")
                        .because("its receiver may be of several classes")
                })?),
                _ => Ty::never(),
            },
            MethodReceiver => match atom {
                Atom::Proc(id) => self.values_of(from, id)?.first().cloned().unwrap_or_default(),
                _ => Ty::never(),
            },
            CaseTable(_) => Ty::str(),
            RegexpTable(table) => match atom {
                Atom::Regexp(id) => {
                    self.regexp_table(id, table)?;
                    Ty::str()
                }
                _ => Ty::never(),
            },
            IsOwn => match args.literals.first() {
                Some(Some(Literal::Sym(asked))) => flag(self.reaches_rubys(from, atom, &asked.clone())),
                _ => Ty::never(),
            },
            RegexpHasGroups => flag(matches!(atom, Atom::Regexp(id) if self.regexp_of(id).groups > 0)),
            RegexpIsAscii => flag(matches!(atom, Atom::Regexp(id) if self.regexp_of(id).ascii)),
            RegexpIsNumbered => flag(matches!(atom, Atom::Regexp(id) if self.regexp_of(id).names.is_empty())),
            RegexpIsOnePass => flag(
                matches!(atom, Atom::Regexp(id) if self.regexp_of(id).table(crate::regexp::Table::Captures).is_ok()),
            ),
            RegexpGroups | RegexpGroupNamed => Ty::int(),
            RegexpGroupName => Ty::sym(),
            IsLambda => match atom {
                Atom::Proc(id) => flag(self.proc_info(id).kind.is_lambda()),
                _ => Ty::never(),
            },
            // Ikra's own text passes Integers, but a block made of it may run over other elements than it was made for
            ArrayAt if args.positional.first().is_some_and(|index| !index.only(Prims::INT)) => {
                return Err(Refusal::new("an element of an array is asked for at no Integer"));
            }
            ArrayAt => match self.element_kind(from, (atom, reach))? {
                ty if ty.is_never() && self.is_settled(from) => Ty::nil(),
                ty => ty,
            },
            Unwritten => Ty::prim(Prims::BOOL),
            ElementsAre(prims) => {
                let ty = self.element_kind(from, (atom, reach))?;
                if ty.only(prims) { Ty::prim(Prims::TRUE) } else { Ty::prim(Prims::FALSE) }
            }
            IsFrozen => {
                self.has_flag(from, atom, reach)?;
                match atom {
                    Atom::Object(class) if self.is_data(class) => Ty::prim(Prims::TRUE),
                    atom if is_immutable(atom) => Ty::prim(Prims::TRUE),
                    _ => Ty::bool(),
                }
            }
            Freeze => {
                self.freezes(from, atom, reach)?;
                Ty::of(atom, reach)
            }
            Builtin::Copy => self.copy(atom, reach)?,
            IsCopied => flag(!is_immutable(atom)),
            NilToInt => Ty::int(),
            NilToFloat => Ty::float(),
            BoolAnd => match atom {
                Atom::True => flag(!matches!(atoms[0], Atom::Nil | Atom::False)),
                _ => Ty::prim(Prims::FALSE),
            },
            BoolOr => match atom {
                Atom::True => Ty::prim(Prims::TRUE),
                _ => flag(!matches!(atoms[0], Atom::Nil | Atom::False)),
            },
            BoolXor => flag((atom == Atom::True) == matches!(atoms[0], Atom::Nil | Atom::False)),
            Tick | Index => Ty::int(),
            Single if Kind::of(atoms[0]).is_number() => Ty::float(),
            Single => Ty::never(),
            ToFloat => match atoms[0] {
                Atom::Int | Atom::Float => Ty::float(),
                // TypeError
                Atom::Nil | Atom::True | Atom::False | Atom::Sym | Atom::Array(_) => Ty::never(),
                _ => return Err(Refusal::new("kernels know Float() only of numbers and Strings")),
            },
            ToInteger => match atoms[0] {
                Atom::Int | Atom::Float => Ty::int(),
                // TypeError
                Atom::Nil | Atom::True | Atom::False | Atom::Sym | Atom::Array(_) => Ty::never(),
                _ => return Err(Refusal::new("kernels know Integer() only of numbers and Strings")),
            },
            RangeFirst | RangeLast if atom == Atom::FloatRange => Ty::float(),
            RangeMin | RangeMax | RangeSize if atom == Atom::FloatRange => {
                return Err(Refusal::new(format!("kernels do not know {name} of a Range of Floats"))
                    .advise("ask for first and last, and compute with them"));
            }
            RangeFirst | RangeLast => Ty::int(),
            RangeMin | RangeMax => Ty::prim(Prims(Prims::INT.0 | Prims::NIL.0)),
            RangeSize => Ty::int(),
            RangeCover => match atoms[0] {
                Atom::Int | Atom::Float => Ty::bool(),
                _ => Ty::prim(Prims::FALSE),
            },
            RangeExcludesEnd => Ty::bool(),
            ArrayGet => match atoms[0] {
                Atom::Int | Atom::Float => self.element(from, (atom, reach), at)?,
                Atom::IntRange | Atom::FloatRange => {
                    return Err(
                        Refusal::new("kernels do not know slices of arrays").advise("index the elements one by one")
                    );
                }
                _ => Ty::never(),
            },
            ArraySet if matches!(atoms[0], Atom::IntRange | Atom::FloatRange | Atom::Object(well_known::RANGE)) => {
                return Err(Refusal::new("kernels do not know []= with what may be a Range or an index")
                    .advise("write an if for either"));
            }
            ArraySet => match atoms[0] {
                Atom::Int | Atom::Float => {
                    self.write_element(from, (atom, reach), &Ty::of(atoms[1], args.positional[1].reach))?;
                    Ty::of(atoms[1], args.positional[1].reach)
                }
                _ => Ty::never(),
            },
            ArrayFirst | ArrayLast => self.element(from, (atom, reach), at)?,
            ArraySize | StructSize => Ty::int(),
            MakeValue | OfRange => unreachable!("these are no calls of one method"),
            StructGet | StructSet => self.struct_index(from, builtin, (atom, reach), atoms, args)?,
            StrBytes | KeyHash => Ty::int(),
            Message => {
                self.ask_messages();
                Ty::str()
            }
            StrInterned => Ty::str(),
            StrRefuse(_) => Ty::never(),
            Refuse(message, advice) => return Err(Refusal::new(message).advise(advice)),
            AsText => {
                self.asks_conversion(atoms[0], "to_str")?;
                if atoms[0] == Atom::Str { Ty::str() } else { Ty::never() }
            }
            AsInt | AsCInt => match atoms[0] {
                Atom::Int | Atom::Float => Ty::int(),
                _ => Ty::never(),
            },
            ArrayEqual | ArrayEql | ArrayCompare | StructEqual | StructEql | StructInitialize | DataWith | StrEqual
            | StrCompare => {
                unreachable!("these have bodies in the library")
            }
            ArrayIsEmpty => Ty::bool(),
            Loop | Times | Upto | Downto | Step | RangeEach | RangeReverseEach | RangeEachWithIndex | RangeStep
            | ArrayEach | ArrayEachWithIndex | ArrayEachIndex | ArrayReverseEach => {
                unreachable!("iterators were refused above")
            }
        })
    }

    /// The ways to call a method on a Range object, each once, for all kinds of its ends.
    ///
    /// # Errors
    /// What kernels do not know of such Ranges.
    pub fn range_forms(&mut self, from: SpecId, (atom, reach): (Atom, Reach), name: &str) -> Answer<Vec<RangeForm>> {
        let mut kinds = Vec::new();
        for part in values::parts(well_known::RANGE) {
            kinds.push(self.read_field(from, atom, reach, &(*part).into())?.atoms());
        }
        let mut forms = Vec::new();
        let mut refused = None;
        for from in &kinds[0] {
            for to in &kinds[1] {
                match range_form(*from, *to, name) {
                    Ok(form) if !forms.contains(&form) => forms.push(form),
                    Ok(_) => {}
                    // becomes an error at run time, since the ends may be of another kind
                    Err(refusal) => refused = Some(refusal),
                }
            }
        }
        match refused {
            Some(refusal) if forms.is_empty() => Err(refusal),
            _ => Ok(forms),
        }
    }

    /// Whether a number's `==` or `!=` calls the argument's `==`, because the program defines that.
    pub fn asks_equality(
        &mut self,
        from: SpecId,
        method: crate::types::numeric::Method,
        args: &[Atom],
    ) -> Answer<bool> {
        use crate::types::numeric::Method;
        Ok(match args.first() {
            Some(atom @ Atom::Object(_)) if matches!(method, Method::Eq | Method::NotEq) => {
                self.target(from, *atom, "==", true)? != Target::Builtin(Builtin::Equal)
            }
            Some(Atom::Int | Atom::Float | Atom::Exception | Atom::Module(_) | Atom::Proc(_) | Atom::Regexp(_)) => {
                false
            }
            Some(atom) if matches!(method, Method::Eq | Method::NotEq) => !self.is_unaltered(*atom, "=="),
            _ => false,
        })
    }

    /// Whether an ordinary object responds to a conversion that Ruby's own methods call. Its visibility does not
    /// matter, and `method_missing` counts.
    pub fn answers_to(&mut self, atom: Atom, conversion: &str) -> bool {
        let Atom::Object(class) = atom else { return false };
        if values::is_value(class) || well_known::is_hash(class) {
            return false;
        }
        match self.method(receiver_of(atom), conversion) {
            MethodFact::Missing { handler } => handler.is_some(),
            MethodFact::Builtin { owner, .. } => !matches!(&*owner, "BasicObject" | "Kernel" | "Object"),
            _ => true,
        }
    }

    /// Refuses an object where Ruby would convert it to an Array, an Integer, a String, ….
    ///
    /// # Errors
    /// The object responds to the conversion.
    pub fn asks_conversion(&mut self, atom: Atom, conversion: &str) -> Answer<()> {
        if !self.answers_to(atom, conversion) {
            return Ok(());
        }
        let class = self.describe(atom);
        Err(Refusal::new(format!("kernels do not ask {class} for {conversion}"))
            .because("Ruby would have the object become something else here")
            .advise(format!("call {conversion} yourself, and give what it gives")))
    }

    /// Refuses an object that Ruby's C code takes for a Range, since it responds to `begin`, `end` and `exclude_end?`.
    ///
    /// # Errors
    /// Such an object.
    pub fn is_no_range(&mut self, atom: Atom) -> Answer<()> {
        let asked = ["begin", "end", "exclude_end?"];
        if !asked.iter().all(|name| self.answers_to(atom, name)) {
            return Ok(());
        }
        let of = receiver_of(atom);
        let by_handler = asked.iter().any(|name| matches!(self.method(of, name), MethodFact::Missing { .. }));
        if by_handler && !matches!(self.method(of, "respond_to_missing?"), MethodFact::Ruby { .. }) {
            return Ok(());
        }
        let class = self.describe(atom);
        Err(Refusal::new(format!("kernels do not take {class} for a Range"))
            .because("Ruby does, as it has begin, end and exclude_end?")
            .advise("make a Range of its ends"))
    }

    /// Refuses a numeric method with an argument that responds to what Ruby would call on it (`coerce`, …).
    pub fn asks_argument(&mut self, method: crate::types::numeric::Method, number: Atom, args: &[Atom]) -> Answer<()> {
        let Some(asked) = method.asks_argument() else { return Ok(()) };
        for atom in args.iter().filter(|a| matches!(a, Atom::Object(_))) {
            let answers = match asked {
                "==" => matches!(
                    self.method(receiver_of(*atom), asked),
                    MethodFact::Ruby { .. } | MethodFact::Foreign { .. }
                ),
                _ => self.answers_to(*atom, asked),
            };
            if answers {
                let (class, number) = (self.describe(*atom), self.describe(number));
                return Err(Refusal::new(format!("kernels do not ask {class} for {asked}"))
                    .because(format!("its argument may be a {class} where the receiver may be a number ({number}), which asks it for that"))
                    .advise("have the object on the left: call its own method"));
            }
        }
        Ok(())
    }

    /// `rand(n)` is an Integer unless n = 0, and `rand(a..b)` a number unless the Range is empty. Both are assumed
    /// until a launch refutes it at this position.
    fn speculate_rand(&self, ty: Ty, args: &[Atom], at: &Assumption) -> Ty {
        if !self.facts.holds(at) {
            return ty;
        }
        match args {
            [Atom::Int] if ty.may_be(Prims::INT) => Ty::int(),
            [Atom::IntRange | Atom::FloatRange] => ty.filter(|a| a != Atom::Nil),
            _ => ty,
        }
    }

    /// The class without singleton classes, as in `class` and `instance_of?`. The World numbers an object's singleton
    /// class as a class of its own, whose name begins with `#<Class:`.
    pub fn real_class(&mut self, mut class: ClassId) -> ClassId {
        loop {
            let info = self.class(class);
            match info.superclass {
                Some(superclass) if info.name.starts_with("#<Class:#<") || well_known::is_made_hash(class) => {
                    class = superclass;
                }
                _ => return class,
            }
        }
    }

    fn equal_ty(&mut self, a: Atom, b: Atom) -> Answer<Ty> {
        Ok(match (a, b) {
            (Atom::Nil, Atom::Nil) | (Atom::True, Atom::True) | (Atom::False, Atom::False) => Ty::prim(Prims::TRUE),
            (Atom::Sym, Atom::Sym) | (Atom::Str, Atom::Str) => Ty::bool(),
            (Atom::Module(x), Atom::Module(y)) => flag(x == y),
            (Atom::Array(_), Atom::Array(_)) => {
                return Err(Refusal::new("kernels do not compare arrays").advise("compare their elements"));
            }
            (Atom::IntRange | Atom::FloatRange, Atom::IntRange | Atom::FloatRange) => Ty::bool(),
            (Atom::Object(x), Atom::Object(y)) => {
                let same = self.class(x).hierarchy == self.class(y).hierarchy;
                if same && x == y { Ty::bool() } else { Ty::prim(Prims::FALSE) }
            }
            _ => Ty::prim(Prims::FALSE),
        })
    }

    fn identical_ty(&mut self, a: Atom, b: Atom) -> Answer<Ty> {
        match (a, b) {
            (Atom::Int, Atom::Int) | (Atom::Array(_), Atom::Array(_)) => Ok(Ty::bool()),
            (Atom::Float, Atom::Float) => {
                Err(Refusal::new("kernels do not know the identity of Floats").advise("write =="))
            }
            (Atom::IntRange | Atom::FloatRange, Atom::IntRange | Atom::FloatRange) => {
                Err(Refusal::new("kernels do not know the identity of Ranges"))
            }
            _ => self.equal_ty(a, b),
        }
    }

    /// The type of `array[i]`: without nil as long as the index was never out of range here.
    ///
    /// # Errors
    /// If some array holds a value that kernels cannot hold.
    pub fn element(&mut self, from: SpecId, (array, reach): (Atom, Reach), at: &Assumption) -> Answer<Ty> {
        let Atom::Array(kind) = array else { return Ok(Ty::never()) };
        let ty = self.elements(from, kind, reach)?;
        self.read_array(kind, reach);
        if ty.is_never() && self.is_settled(from) || !self.facts.holds(at) {
            return Ok(self.facts.join(&ty, &Ty::nil()));
        }
        Ok(ty)
    }

    /// Whether an array of which no element is known has none. If that is not known yet, the reader is run again.
    fn is_settled(&mut self, reader: SpecId) -> bool {
        if !self.settled {
            self.waiting.insert(reader);
        }
        self.settled
    }

    /// Whether `respond_to?` with a literal name returns what `respond_to_missing?` returns.
    pub fn asks_missing(&mut self, atom: Atom, args: &Args) -> bool {
        let Some(Some(Literal::Sym(asked))) = args.literals.first().cloned() else { return false };
        matches!(self.method(receiver_of(atom), &asked), MethodFact::Missing { handler: Some(_) })
            || matches!(self.method(receiver_of(atom), &asked), MethodFact::Missing { .. })
                && matches!(self.method(receiver_of(atom), "respond_to_missing?"), MethodFact::Ruby { .. })
    }

    /// The type of the elements of an array.
    fn element_kind(&mut self, from: SpecId, (array, reach): (Atom, Reach)) -> Answer<Ty> {
        let Atom::Array(kind) = array else { return Ok(Ty::never()) };
        let ty = self.elements(from, kind, reach)?;
        self.read_array(kind, reach);
        Ok(ty)
    }

    /// Registers a read of elements of an array.
    pub fn read_array(&mut self, kind: crate::id::ArrayKind, reach: Reach) {
        let access = self.arrays.entry(self.facts.find(kind)).or_default();
        if reach.is_owned() {
            access.read_owned = true;
        } else {
            access.read_shared = true;
        }
    }

    /// Registers a write to the elements of an array. Existing elements are scanned, since the column contains them
    /// too.
    ///
    /// # Errors
    /// If some array holds a value that kernels cannot hold.
    pub fn write_element(&mut self, from: SpecId, (array, reach): (Atom, Reach), ty: &Ty) -> Answer<()> {
        let Atom::Array(kind) = array else { return Ok(()) };
        super::blocks::can_be_kept(ty)?;
        let ty = &self.facts.boxed(ty);
        self.elements(from, kind, reach)?;
        let kind = self.facts.find(kind);
        let access = self.arrays.entry(kind).or_default();
        let first = !access.written();
        if reach.is_owned() {
            access.written_owned = true;
        } else {
            access.written_shared = true;
        }
        if first {
            self.wake(&Place::Elements(kind));
        }
        if !self.frozen {
            self.facts.saw(&Place::Elements(kind), &unowned(ty));
            if self.put_into(Thing::Array(kind), reach, ty) {
                self.facts.set_may_hold_fresh(&Place::Elements(kind));
            }
        }
        Ok(())
    }

    /// The type of an ivar of one kind of object.
    ///
    /// # Errors
    /// If some object holds a value that kernels cannot hold.
    pub fn read_field(&mut self, from: SpecId, atom: Atom, reach: Reach, ivar: &Name) -> Answer<Ty> {
        let class =
            self.field_owner(atom, "read it before the call, into a local variable, or keep it in a constant")?;
        let ty = self.field(from, class, ivar, reach)?;
        let access = self.fields.entry((class, ivar.clone())).or_default();
        if reach.is_owned() {
            access.read_owned = true;
        } else {
            access.read_shared = true;
        }
        Ok(ty)
    }

    /// Registers a write to an ivar of one kind of object. Existing values are scanned, since the column contains them
    /// too.
    ///
    /// # Errors
    /// If some object holds a value that kernels cannot hold, or the receiver has no columns.
    pub fn write_field(&mut self, from: SpecId, atom: Atom, reach: Reach, ivar: &Name, ty: &Ty) -> Answer<()> {
        let class = self.field_owner(atom, "give the value as pmap's result, and assign it after the call")?;
        super::blocks::can_be_kept(ty)?;
        let ty = &self.facts.boxed(ty);
        if reach.may_be_fresh() && ivar.starts_with('@') && self.is_data(class) {
            return Err(Refusal::new("kernels write no instance variables of a Data that is made in the section")
                .because("it is frozen once its members are given")
                .advise("make what it is a member of the Data"));
        }
        self.field(from, class, ivar, reach)?;
        let access = self.fields.entry((class, ivar.clone())).or_default();
        let first = !access.written();
        if reach.is_owned() {
            access.written_owned = true;
        } else {
            access.written_shared = true;
        }
        if first {
            self.wake(&Place::Field(class, ivar.clone()));
        }
        self.widen_field(class, ivar, ty);
        if !self.frozen && self.put_into(Thing::Class(class), reach, ty) {
            self.facts.set_may_hold_fresh(&Place::Field(class, ivar.clone()));
        }
        Ok(())
    }

    /// Registers `object.ivar += …` through a shared path, where the value is not used.
    pub fn accumulate_field(&mut self, class: ClassId, ivar: &Name) {
        self.fields.entry((class, ivar.clone())).or_default().accumulated = true;
    }

    /// Registers `array[i] += …` through a shared path, where the value is not used.
    pub fn accumulate_element(&mut self, kind: crate::id::ArrayKind) {
        let kind = self.facts.find(kind);
        self.arrays.entry(kind).or_default().accumulated = true;
    }

    fn widen_field(&mut self, class: ClassId, ivar: &Name, ty: &Ty) {
        if !self.frozen {
            self.facts.saw(&Place::Field(class, ivar.clone()), &unowned(ty));
        }
    }

    /// The class of an object that has columns. Ivars of classes, Strings, numbers and so on have none.
    fn field_owner(&mut self, atom: Atom, advice_for_modules: &str) -> Answer<ClassId> {
        match atom {
            Atom::Object(class) => Ok(class),
            other => {
                let what = self.describe(other);
                let refusal = Refusal::new(format!("kernels do not know instance variables of {what}"));
                Err(match other {
                    Atom::Module(_) => refusal.advise(advice_for_modules),
                    _ => refusal,
                })
            }
        }
    }
}

/// Whether kernels know the method that a class or module defines for a kind of value.
pub(super) fn is_known(atom: Atom, owner: &str, name: &str) -> bool {
    builtins::find(atom, owner, name).is_some()
        || crate::prelude::find(core_class(atom), owner, name).is_some()
        || value_target(atom, owner, name).is_some()
}

/// The target of a method of Ruby's own on an object that consists of its parts alone.
fn value_target(atom: Atom, owner: &str, name: &str) -> Option<Target> {
    match atom {
        Atom::Object(well_known::RANGE) => match (owner, name) {
            (_, "begin" | "end") => Some(Target::Reader(name.into())),
            (_, "exclude_end?") => Some(Target::Reader("exclude_end".into())),
            (_, "==") => crate::prelude::helper("Range", false, "__same_range").map(Target::Ruby),
            (_, "eql?") => crate::prelude::helper("Range", false, "__eql_range").map(Target::Ruby),
            (_, "<=>") => crate::prelude::helper("Range", false, "__compare_range").map(Target::Ruby),
            ("Range" | "Enumerable", _) => Some(Target::Builtin(Builtin::OfRange)),
            _ => None,
        },
        Atom::Object(class) if values::is_value(class) => {
            crate::prelude::own(core_class(atom), owner, name).map(Target::Ruby)
        }
        Atom::Module(class) if values::is_value(class) => {
            crate::prelude::find("", &format!("{}.", core_class(Atom::Object(class))), name).map(Target::Ruby)
        }
        _ => None,
    }
}

/// A way to call a method on a Range object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RangeForm {
    /// On a Range in registers.
    Registers(Prims),
    /// As a method of the prelude, on the object.
    Helper(MethodId),
}

/// Whether a method of a Range returns the Range itself. The Range in registers may have other ends.
pub fn gives_range(name: &str, block: bool) -> bool {
    let names = ["each", "each_entry", "each_with_index", "reverse_each", "each_slice", "each_cons", "step", "%"];
    block && names.contains(&plain(name))
}

/// The result of a method that was called on a Range in registers instead of a Range object.
pub fn of_range(ty: Ty, name: &str, block: bool, range: &Ty) -> Ty {
    if gives_range(name, block) && !ty.is_never() { range.clone() } else { ty }
}

/// How a method is called on a Range whose ends are of these kinds.
///
/// # Errors
/// What kernels do not know of such Ranges.
pub fn range_form(from: Atom, to: Atom, name: &str) -> Answer<RangeForm> {
    let name = plain(name);
    let helper = |name: &str| crate::prelude::helper("Range", false, name).map(RangeForm::Helper);
    let found = match (from, to, name) {
        (Atom::Int, Atom::Int, _) => Some(RangeForm::Registers(Prims::INT_RANGE)),
        (Atom::Float, Atom::Float, _) => Some(RangeForm::Registers(Prims::FLOAT_RANGE)),
        (_, _, "include?" | "member?") => helper("__includes"),
        (_, _, "cover?") => helper("__cover"),
        (_, _, "===") => helper("__covers"),
        (Atom::Int | Atom::Float | Atom::Nil, Atom::Int | Atom::Float | Atom::Nil, "bsearch") => helper("__bsearch"),
        (Atom::Int, Atom::Float, "__list_step" | "__step_size") => None,
        // Ruby has a formula for two Integers, and else asks for each element
        (Atom::Int, Atom::Float, "sum") => crate::prelude::find("", "Enumerable", name).map(RangeForm::Helper),
        (Atom::Int | Atom::Float, Atom::Int | Atom::Float, "step" | "%") => {
            Some(RangeForm::Registers(Prims::FLOAT_RANGE))
        }
        (_, _, "min" | "max" | "minmax") => crate::prelude::find("Range", "Range", name).map(RangeForm::Helper),
        (Atom::Int, _, "first") => helper("__first"),
        // the method runs over the Integers up to the end; these others need the end itself
        (Atom::Int, Atom::Float, name) if !matches!(name, "last" | "min" | "max" | "minmax" | "size" | "hash") => {
            Some(RangeForm::Registers(Prims::INT_RANGE))
        }
        (Atom::Int, Atom::Nil, "each") => helper("__endless"),
        (
            Atom::Int,
            Atom::Nil,
            "find" | "detect" | "find_index" | "each_with_index" | "each_entry" | "each_slice" | "each_cons" | "take"
            | "take_while" | "any?" | "none?",
        ) => crate::prelude::find("", "Enumerable", name).map(RangeForm::Helper),
        _ => None,
    };
    found.ok_or_else(|| {
        let what = match (from, to) {
            (Atom::Nil, _) => "a Range without a beginning",
            (_, Atom::Nil) => "an endless Range",
            _ => "a Range of an Integer and a Float",
        };
        Refusal::new(format!("kernels do not know {name} of {what}"))
            .advise("write both ends, as two Integers or two Floats")
    })
}

/// The call for an operator whose receiver or argument is an object that consists of its parts alone. `swapped`: the
/// argument is the receiver of the call.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub name: &'static str,
    pub swapped: bool,
}

/// The call that takes the place of an operator of a number, a Range or an object that consists of its parts alone.
pub fn asked(atom: Atom, name: &str, args: &Args) -> Option<Asked> {
    let name = plain(name);
    if let Atom::Object(class) = atom
        && (values::is_value(class) || well_known::is_made_hash(class))
        && args.positional.len() == 1
    {
        let equal = name == "!=" || name == "===" && class != well_known::RANGE;
        return equal.then_some(Asked { name: "==", swapped: false });
    }
    asked_argument(atom, name, args).map(|name| Asked { name, swapped: true })
}

fn asked_argument(atom: Atom, name: &str, args: &Args) -> Option<&'static str> {
    let [arg] = args.positional.as_slice() else { return None };
    let is_other = |class: &ClassId| values::is_value(*class) && *class != well_known::MATCH_DATA;
    if !args.keywords.is_empty() || !arg.objects.iter().any(is_other) {
        return None;
    }
    match (atom, name) {
        (Atom::IntRange | Atom::FloatRange, "==" | "!=") => Some("%__same_range"),
        (Atom::IntRange | Atom::FloatRange, "eql?") => Some("%__eql_range"),
        (Atom::IntRange | Atom::FloatRange, "<=>") => Some("%__compare_range"),
        (Atom::Int | Atom::Float, _) => Some(match name {
            "==" | "!=" | "===" => "%__equals",
            "clamp" if arg.objects.contains(&well_known::RANGE) => "%__clamps",
            _ if !arg.objects.iter().any(|class| *class != well_known::RANGE && values::is_value(*class)) => {
                return None;
            }
            "+" => "%__added_to",
            "-" => "%__taken_from",
            "*" => "%__times",
            "/" => "%__divides",
            "quo" => "%__quotient_of",
            _ if !arg.objects.contains(&well_known::RATIONAL) => return None,
            "%" | "modulo" => "%__modulo_of",
            "div" => "%__div_of",
            "fdiv" => "%__fdivides",
            "<=>" => "%__compared_by",
            "<" => "%__above",
            "<=" => "%__at_least",
            ">" => "%__below",
            ">=" => "%__at_most",
            _ => return None,
        }),
        _ => None,
    }
}

/// Refuses a Complex or a Rational as an argument.
fn no_value(name: &str, args: &[Atom]) -> Answer<()> {
    let refuse = |class, advice| {
        // users do not know the name of a primitive
        let text = match primitive(name) {
            Some(_) => format!("kernels do not take a {class} here"),
            None => format!("kernels do not know {name} with a {class}"),
        };
        Err(Refusal::new(text).advise(advice))
    };
    if args.contains(&Atom::Object(well_known::COMPLEX)) {
        return refuse("Complex", "compute with its parts");
    }
    if args.contains(&Atom::Object(well_known::RATIONAL)) {
        return refuse("Rational", "write to_f, to_i, or compute with numerator and denominator");
    }
    Ok(())
}

fn unowned(ty: &Ty) -> Ty {
    ty.clone().reached(Reach::Any)
}

fn kinds(atoms: &[Atom]) -> Vec<Kind> {
    atoms.iter().map(|a| Kind::of(*a)).collect()
}

fn unknown_form(name: &str, u: Unsupported) -> Refusal {
    Refusal::new(format!("kernels do not know this form of {name}")).because(u.why).advise(u.advice)
}

fn flag(value: bool) -> Ty {
    Ty::prim(if value { Prims::TRUE } else { Prims::FALSE })
}

/// The type of `!!x`.
pub fn truth(ty: &Ty) -> Ty {
    negate(&negate(ty))
}

/// The type of `!x` for a Boolean type.
pub fn negate(ty: &Ty) -> Ty {
    let mut out = Prims::default();
    if ty.may_be_truthy() {
        out.0 |= Prims::FALSE.0;
    }
    if ty.may_be_falsy() {
        out.0 |= Prims::TRUE.0;
    }
    Ty::prim(out)
}

/// Every combination of one kind for each argument.
pub fn combinations(args: &[Ty]) -> Vec<Vec<Atom>> {
    let mut out = vec![Vec::new()];
    for arg in args {
        out = out
            .into_iter()
            .flat_map(|head| {
                arg.atoms().into_iter().map(move |a| {
                    let mut row: Vec<Atom> = head.clone();
                    row.push(a);
                    row
                })
            })
            .collect();
    }
    out
}
