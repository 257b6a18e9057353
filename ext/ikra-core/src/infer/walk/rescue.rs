//! `begin … rescue … else … ensure … end`, `retry` and `raise`: the locals where an exception arrives, and what may be
//! raised.
//!
//! Here: environments of handlers, jumps that an `ensure` delays, the forms of `raise`. Not here: which exceptions
//! arrive (every handler is assumed to be reached; lowering knows the sites), and code ([`crate::lower`]).

use super::{Env, Walker};
use crate::diagnostic::Span;
use crate::error::Result;
use crate::id::{ClassId, MethodId, ScopeId};
use crate::infer::Analysis;
use crate::infer::builtins::Builtin;
use crate::infer::calls::{Args, Literal, Refusal, Target};
use crate::syntax::ast::{self, Arg, Call, Kind, Name, Node, Rescue};
use crate::types::{Atom, Prims, Ty};
use crate::world::{MethodFact, Receiver, well_known};

/// The handlers, `ensure`s and `catch`es around the current node.
#[derive(Default)]
pub(super) struct Pending {
    /// For each handler around: the locals when an exception arrives there.
    handlers: Vec<Env>,
    ensures: Vec<Ensure>,
    /// For each `rescue` body around: the environments at its `retry`s.
    retries: Vec<Option<Env>>,
    /// Tags of the `catch`es around, with their frames.
    catches: Vec<(Name, usize)>,
}

/// An `ensure` whose body is being interpreted. Jumps out of the body wait here until the `ensure` code has been
/// interpreted for each.
struct Ensure {
    /// The number of frames and `rescue` bodies around it.
    frames: usize,
    retries: usize,
    /// The number of variables in the environment there.
    len: usize,
    exits: Vec<(Exit, Env, Ty)>,
}

/// The target of a jump.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Exit {
    Frame {
        to: usize,
        is_break: bool,
    },
    /// Leaves the specialisation.
    Function,
    Retry,
}

/// The forms of `raise`.
pub enum Raise<'a> {
    /// `raise`: the exception that was rescued last, or a RuntimeError.
    Again,
    /// `raise "…"`
    Message(&'a Node),
    /// `raise value`, `raise value, message`: the value is a class, or an exception that was rescued.
    Value { value: &'a Node, message: Option<&'a Node> },
    /// `raise Class.new(…)`, with or without a message after it.
    New { class: &'a Node, args: &'a [Arg], message: Option<&'a Node> },
}

impl<'a> Raise<'a> {
    /// Reads a call of Kernel's `raise`. None: kernels do not know its form.
    pub fn of(call: &'a Call) -> Option<Self> {
        let mut nodes = Vec::new();
        for arg in &call.args {
            match arg {
                Arg::Positional(node) if !matches!(node.kind, Kind::Splat(_)) => nodes.push(node),
                _ => return None,
            }
        }
        if call.block.is_some() || call.block_arg.is_some() {
            return None;
        }
        Some(match nodes.as_slice() {
            [] => Raise::Again,
            [text] if is_text(text) => Raise::Message(text),
            [value, rest @ ..] if rest.len() < 2 => {
                let message = rest.first().copied();
                match &single(value).kind {
                    Kind::Call(made) if is_new(made) => match &made.receiver {
                        Some(class) => Raise::New { class, args: &made.args, message },
                        None => return None,
                    },
                    _ => Raise::Value { value, message },
                }
            }
            _ => return None,
        })
    }
}

/// `Class.new(…)` and `Class.exception(…)`, which are the same.
fn is_new(call: &Call) -> bool {
    matches!(&*call.name, "new" | "exception")
        && call.receiver.as_ref().is_some_and(|r| matches!(r.kind, Kind::Const(_)))
        && call.block.is_none()
        && call.block_arg.is_none()
        && !call.safe
}

fn single(node: &Node) -> &Node {
    match &node.kind {
        Kind::Seq(items) if items.len() == 1 => single(&items[0]),
        _ => node,
    }
}

/// The tag of a call of the prelude's `catch`.
pub fn catch_tag(method: MethodId, args: &Args) -> Option<Name> {
    match args.literals.first() {
        Some(Some(Literal::Sym(tag))) if crate::prelude::label(method) == Some("Kernel#catch") => Some(tag.clone()),
        _ => None,
    }
}

/// `throw :tag` and `throw :tag, value`. None: kernels do not know its form.
pub fn thrown(call: &Call) -> Option<(&Name, Option<&Node>)> {
    match call.args.as_slice() {
        [Arg::Positional(Node { kind: Kind::Sym(tag), .. }), rest @ ..] => match rest {
            [] => Some((tag, None)),
            [Arg::Positional(value)] if !matches!(value.kind, Kind::Splat(_)) => Some((tag, Some(value))),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a node is a String that the host makes.
pub fn is_text(node: &Node) -> bool {
    matches!(node.kind, Kind::Str(_) | Kind::DStr(_))
}

/// Whether kernels know the texts of all values in a message with interpolation.
fn is_known(text: &Node, ty: &dyn Fn(&Node) -> Ty) -> bool {
    let known = Prims(Prims::NIL.0 | Prims::BOOL.0 | Prims::INT.0 | Prims::FLOAT.0 | Prims::SYM.0 | Prims::STR.0);
    text.pieces().into_iter().all(|piece| match &single(piece).kind {
        Kind::Str(_) => true,
        Kind::DStr(inner) => is_known(inner, ty),
        _ => ty(piece).only(known),
    })
}

/// What `raise` makes of one kind of value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Raised {
    /// An exception class.
    Class(ClassId),
    Rescued,
    /// TypeError: exception class/object expected.
    Nothing,
}

impl Analysis<'_> {
    /// Whether kernels make a message with interpolation: the program asks exceptions for theirs, and kernels know the
    /// texts of all values. Else the host puts it together. It does for the prelude, which raises while it makes texts.
    pub fn makes_message(&self, scope: ScopeId, text: &Node, ty: &dyn Fn(&Node) -> Ty) -> bool {
        self.asks_messages && scope != crate::prelude::SCOPE && is_known(text, ty)
    }

    /// What `raise` makes of a value of one kind.
    ///
    /// # Errors
    /// A value with an `exception` method of its own.
    pub fn raised(&mut self, atom: Atom) -> std::result::Result<Raised, Refusal> {
        Ok(match atom {
            Atom::Exception => Raised::Rescued,
            Atom::Module(class) if self.world.is_a(class, well_known::EXCEPTION) => {
                for name in ["new", "exception"] {
                    if !matches!(self.method(Receiver::Module(class), name), MethodFact::Builtin { .. }) {
                        let class = self.describe(atom);
                        return Err(Refusal::new(format!("{class} has a {name} of its own"))
                            .because("which class of exception it gives is not known when compiling")
                            .advise("raise a class whose exceptions are its own"));
                    }
                }
                if self.world.class_named("StopIteration").is_some_and(|stop| self.world.is_a(class, stop)) {
                    return Err(Refusal::new("kernels do not raise StopIteration")
                        .because("loop would rescue it, and theirs does not")
                        .advise("leave the loop by break"));
                }
                Raised::Class(class)
            }
            Atom::Object(class) if self.world.is_a(class, well_known::EXCEPTION) => {
                return Err(Refusal::new("kernels do not raise an exception that was made outside")
                    .advise("raise its class, with a message"));
            }
            Atom::Module(_) | Atom::Object(_) => {
                let receiver = match atom {
                    Atom::Module(class) => Receiver::Module(class),
                    other => Receiver::Instance(crate::infer::calls::class_of(other)),
                };
                if !matches!(self.method(receiver, "exception"), MethodFact::Missing { handler: None }) {
                    let what = self.describe(atom);
                    return Err(Refusal::new(format!("kernels do not ask {what} for an exception"))
                        .advise("raise an exception class"));
                }
                Raised::Nothing
            }
            Atom::Str => {
                return Err(Refusal::new("kernels do not raise a String that is in a variable")
                    .because("the text of a message is to be known when compiling, but for the values in it")
                    .advise("write raise \"#{text}\""));
            }
            _ => Raised::Nothing,
        })
    }

    /// Whether a kind of value has Kernel's private method of that name, not redefined.
    pub fn is_kernels(&mut self, atom: Atom, name: &str) -> bool {
        let receiver = crate::infer::calls::receiver_of(atom);
        matches!(self.method(receiver, name), MethodFact::Builtin { owner, .. } if &*owner == "Kernel")
    }

    /// The target of a method of a rescued exception: tests of its class, and its message.
    pub(in crate::infer) fn target_of_exception(&mut self, name: &str) -> std::result::Result<Target, Refusal> {
        match crate::infer::builtins::find(Atom::Exception, "Exception", name) {
            Some(builtin) => Ok(Target::Builtin(builtin)),
            None => Err(Refusal::new(format!("kernels do not know {name} of an exception"))
                .because("the exception itself is made when it leaves the section")
                .advise(
                    "ask it for its class (is_a?, instance_of?, case … when) or its message, or raise it again; \
                     what else is to be known of it, keep in a variable",
                )),
        }
    }

    /// Refuses methods that would need an exception's message or identity.
    pub(in crate::infer) fn asks_exception(
        &mut self,
        builtin: Builtin,
        receiver: Atom,
        args: &[Atom],
    ) -> std::result::Result<(), Refusal> {
        use Builtin::*;
        if !args.contains(&Atom::Exception) {
            return Ok(());
        }
        match builtin {
            ModuleCase => Ok(()),
            Equal | NotEqual | Identical if receiver != Atom::Exception => Ok(()),
            _ => Err(Refusal::new("kernels do not compare exceptions, or compute with them")
                .advise("ask the exception for its class (is_a?, instance_of?, case … when)")),
        }
    }
}

impl Walker<'_, '_> {
    // ---- what waits ----

    /// Joins the current locals into the environments of all handlers around.
    pub(in crate::infer) fn seen_by_handlers(&mut self, env: &Env) {
        if self.rescue.handlers.is_empty() {
            return;
        }
        let mut handlers = std::mem::take(&mut self.rescue.handlers);
        for handler in &mut handlers {
            // without the variables of bodies that were inlined later
            let len = handler.locals.len();
            *handler = self.join_env(handler, env);
            handler.locals.truncate(len);
        }
        self.rescue.handlers = handlers;
    }

    /// Evaluates a variable without joining the result into the handlers: the reader does not keep the value.
    pub(in crate::infer) fn eval_unseen(&mut self, variable: &Node, env: &mut Env) -> Result<Ty> {
        let handlers = std::mem::take(&mut self.rescue.handlers);
        let ty = self.eval(variable, env);
        self.rescue.handlers = handlers;
        ty
    }

    /// Delays a jump until the `ensure` that it leaves, if there is one; `env` is dead then.
    pub(super) fn delayed(&mut self, exit: Exit, ty: &Ty, env: &mut Env) -> bool {
        let retries = self.rescue.retries.len();
        let Some(ensure) = self.rescue.ensures.last_mut() else { return false };
        let leaves = match exit {
            Exit::Frame { to, .. } => ensure.frames > to,
            Exit::Retry => ensure.retries == retries,
            Exit::Function => true,
        };
        if leaves {
            let mut waiting = env.clone();
            waiting.locals.truncate(ensure.len);
            ensure.exits.push((exit, waiting, ty.clone()));
            env.dead = true;
        }
        leaves
    }

    // ---- begin … end ----

    pub(super) fn begin(
        &mut self,
        (body, otherwise): (&Node, Option<&Node>),
        rescues: &[Rescue],
        ensure: Option<&Node>,
        env: &mut Env,
    ) -> Result<Ty> {
        let Some(ensure) = ensure else { return self.rescued(body, otherwise, rescues, env) };
        self.rescue.handlers.push(env.clone());
        let (frames, retries) = (self.frames.len(), self.rescue.retries.len());
        let len = env.locals.len();
        self.rescue.ensures.push(Ensure { frames, retries, len, exits: Vec::new() });
        let ty = self.rescued(body, otherwise, rescues, env)?;
        let left = self.rescue.ensures.pop().expect("pushed above");
        let mut raised = self.rescue.handlers.pop().expect("pushed above");
        self.in_clause(ensure, &mut raised)?;
        for (exit, mut env, ty) in left.exits {
            self.eval(ensure, &mut env)?;
            self.jump(exit, &ty, &mut env);
        }
        self.eval(ensure, env)?;
        Ok(if env.dead { Ty::never() } else { ty })
    }

    fn rescued(&mut self, body: &Node, otherwise: Option<&Node>, rescues: &[Rescue], env: &mut Env) -> Result<Ty> {
        if rescues.is_empty() {
            let ty = self.eval(body, env)?;
            return match otherwise {
                Some(otherwise) => self.eval(otherwise, env),
                None => Ok(ty),
            };
        }
        let mut head = env.clone();
        loop {
            let mut after = head.clone();
            self.rescue.handlers.push(head.clone());
            let mut ty = self.eval(body, &mut after)?;
            let mut raised = self.rescue.handlers.pop().expect("pushed above");
            if let Some(otherwise) = otherwise {
                ty = self.eval(otherwise, &mut after)?;
            }
            if after.dead {
                ty = Ty::never();
            }
            self.rescue.retries.push(None);
            for clause in rescues {
                let mut env = env.dead();
                for class in &clause.classes {
                    self.rescued_class(class, &mut raised)?;
                    env = self.join_env(&env, &raised);
                }
                if clause.classes.is_empty() {
                    env = raised.clone();
                }
                if let Some(target) = &clause.binding {
                    self.bind_exception(target, &mut env)?;
                }
                let value = self.in_clause(&clause.body, &mut env)?;
                if !env.dead {
                    ty = self.join(&ty, &value);
                }
                after = self.join_env(&after, &env);
            }
            let again = self.rescue.retries.pop().expect("pushed above");
            let next = match again {
                Some(again) => self.join_env(&head, &again),
                None => head.clone(),
            };
            if next == head {
                *env = after;
                return Ok(ty);
            }
            head = next;
        }
    }

    /// Interprets code that runs while an exception is being handled.
    fn in_clause(&mut self, body: &Node, env: &mut Env) -> Result<Ty> {
        let around = self.an.clauses;
        self.an.clauses += 1;
        let ty = self.eval(body, env);
        self.an.clauses = around;
        ty
    }

    /// A class in a `rescue` clause.
    fn rescued_class(&mut self, class: &Node, env: &mut Env) -> Result<()> {
        if let Kind::Splat(list) = &class.kind {
            return self.rescued_list(list, env);
        }
        let ty = self.eval(class, env)?;
        if env.dead {
            return Ok(());
        }
        match ty.atoms().as_slice() {
            [Atom::Module(module)] => self.may_rescue(*module, class),
            _ => Err(self
                .error(class.span, "kernels know rescue with classes and modules")
                .advise("name each class")
                .into()),
        }
    }

    /// `rescue *list`
    fn rescued_list(&mut self, list: &Node, env: &mut Env) -> Result<()> {
        let ty = self.eval(list, env)?;
        if env.dead {
            return Ok(());
        }
        let classes = match ty.atoms()[..] {
            [Atom::Array(kind)] => {
                self.an.read_array(kind, ty.reach);
                let answer = self.an.elements(self.here.id, kind, ty.reach);
                self.opaque(answer, list.span)?
            }
            _ => Ty::nil(),
        };
        for atom in classes.atoms() {
            let Atom::Module(module) = atom else {
                return Err(self
                    .error(list.span, "kernels know rescue with lists of classes and modules only")
                    .advise("name each class")
                    .into());
            };
            self.may_rescue(module, list)?;
        }
        Ok(())
    }

    /// Refuses classes that kernels do not rescue.
    fn may_rescue(&mut self, module: ClassId, class: &Node) -> Result<()> {
        if self.an.world.class_named("SystemStackError") == Some(module) {
            return Err(self
                .error(class.span, "kernels do not rescue SystemStackError")
                .because("how deep calls may nest is the device's affair; the section ends with the error")
                .advise("count the depth in a parameter, and raise an error of your own")
                .into());
        }
        if self.an.world.class_named("Ikra::Error").is_some_and(|own| self.an.world.is_a(module, own)) {
            return Err(self
                .error(class.span, "kernels do not rescue Ikra's own errors")
                .because("Ruby raises none of them there: they always end the section")
                .advise("test beforehand whether the result fits, or rescue the error outside of the block")
                .into());
        }
        if self.an.world.class_named("NoMatchingPatternKeyError") == Some(module) {
            return Err(self
                .error(class.span, "kernels do not rescue NoMatchingPatternKeyError")
                .because("they raise its superclass for every value that no pattern matches")
                .advise("rescue NoMatchingPatternError, or add an else to the case")
                .into());
        }
        let answer = self.an.target(self.here.id, Atom::Module(module), "===", false);
        if !matches!(self.refused(answer, class.span)?, Target::Builtin(Builtin::ModuleCase)) {
            return Err(self
                .error(class.span, "this class has an === of its own, which kernels do not ask in rescue clauses")
                .advise("rescue plain classes and modules, and test in the clause")
                .into());
        }
        Ok(())
    }

    fn bind_exception(&mut self, target: &ast::Target, env: &mut Env) -> Result<()> {
        match target {
            ast::Target::Local(..) => self.assign(target, &Ty::prim(Prims::EXCEPTION), env),
            ast::Target::Ivar(_, span)
            | ast::Target::Attr { span, .. }
            | ast::Target::Index { span, .. }
            | ast::Target::Unsupported { span, .. } => Err(self
                .error(*span, "kernels keep an exception in a local variable only")
                .because("the exception itself is made when it leaves the section")
                .advise("write rescue => e, and keep what matters of it")
                .into()),
            ast::Target::List { .. } => Ok(()),
        }
    }

    /// Records the environment at a `retry`.
    pub(super) fn tried_again(&mut self, env: &Env) {
        if let Some(slot) = self.rescue.retries.pop() {
            let merged = self.merge_into(slot, env);
            self.rescue.retries.push(merged);
        }
    }

    // ---- catch and throw ----

    /// Records a `catch` whose block is about to run. True: it is one, and must be closed.
    pub(in crate::infer) fn open_catch(&mut self, method: MethodId, args: &Args, frame: usize) -> bool {
        let tag = catch_tag(method, args);
        let opens = tag.is_some();
        self.rescue.catches.extend(tag.map(|tag| (tag, frame)));
        opens
    }

    pub(in crate::infer) fn close_catch(&mut self, opened: bool) {
        if opened {
            self.rescue.catches.pop();
        }
    }

    /// Interprets a call of Kernel's `throw`. False: it is some other call.
    pub(super) fn throw(&mut self, call: &Call, env: &mut Env) -> Result<bool> {
        if call.receiver.is_some() || &*call.name != "throw" {
            return Ok(false);
        }
        let receiver = self.self_type_for(call)?;
        if !receiver.atoms().into_iter().all(|atom| self.an.is_kernels(atom, "throw")) {
            return Ok(false);
        }
        let Some((tag, value)) = thrown(call) else {
            return Err(self
                .error(call.name_span, "kernels know throw with a literal Symbol only")
                .because("where it goes must be known when compiling")
                .advise("write the tag out in catch and throw")
                .into());
        };
        let Some(frame) = self.rescue.catches.iter().rev().find(|(t, _)| t == tag).map(|(_, frame)| *frame) else {
            return Err(self
                .error(call.name_span, format!("no catch(:{tag}) is around this throw"))
                .because("both must be in one method, or in blocks and methods that become part of it")
                .advise("raise an exception, and rescue it")
                .into());
        };
        let ty = self.optional(value, env)?;
        self.jump(Exit::Frame { to: frame, is_break: false }, &ty, env);
        Ok(true)
    }

    // ---- raise ----

    /// Interprets a call of Kernel's `raise`. None: it is some other call.
    pub(super) fn raise(&mut self, call: &Call, env: &mut Env) -> Result<Option<Ty>> {
        if call.receiver.is_some() || !matches!(&*call.name, "raise" | "fail") {
            return Ok(None);
        }
        let receiver = self.self_type_for(call)?;
        for atom in receiver.atoms() {
            let answer = self.an.target(self.here.id, atom, &call.name, true);
            if self.refused(answer, call.name_span)? != Target::Builtin(Builtin::Raise) {
                return Ok(None);
            }
        }
        let Some(raise) = Raise::of(call) else {
            return Err(self
                .error(call.name_span, "kernels do not know this form of raise")
                .advise("raise Class, raise Class, \"message\" or raise Class.new(arguments)")
                .into());
        };
        let mut words = 0;
        match raise {
            Raise::Again => {
                let in_block = self.here.section || self.others.iter().any(|body| body.section);
                if self.rescue.retries.is_empty() && self.an.world.is_handling() {
                    return Err(self
                        .error(call.name_span, "raise without arguments stands for the exception that is being handled")
                        .because("a rescue or ensure clause calls the section, and kernels do not hold its exception")
                        .advise("name the class, or call the section behind the clause")
                        .into());
                }
                if self.rescue.retries.is_empty() && !in_block {
                    let error = self
                        .error(call.name_span, "this method raises what a rescue clause that calls it has rescued")
                        .because("kernels know raise without arguments in the clause itself only")
                        .advise("name the class, or pass the exception on: raise error");
                    let function = self.an.host(self.here.id);
                    self.an.bare_raises.insert(function, error);
                }
            }
            Raise::Message(text) => self.piece(text, env, &mut words)?,
            Raise::Value { value, message } => {
                let ty = self.eval(value, env)?;
                if let Some(message) = message {
                    self.piece(message, env, &mut words)?;
                }
                for atom in ty.atoms() {
                    let answer = self.an.raised(atom);
                    let raised = self.refused(answer, value.span)?;
                    if raised == Raised::Rescued && message.is_some() {
                        return Err(self
                            .error(call.name_span, "kernels do not give a rescued exception another message")
                            .advise("raise its class with the message")
                            .into());
                    }
                }
                if ty.is_never() {
                    env.dead = true;
                }
            }
            Raise::New { class, args, message } => {
                let ty = self.eval(class, env)?;
                for atom in ty.atoms() {
                    let answer = self.an.raised(atom);
                    if !matches!(self.refused(answer, class.span)?, Raised::Class(_)) {
                        return Err(self
                            .error(class.span, "kernels raise new objects of exception classes only")
                            .advise("raise an exception class")
                            .into());
                    }
                }
                for arg in args {
                    match arg {
                        Arg::Positional(node) if !matches!(node.kind, Kind::Splat(_)) => {
                            self.piece(node, env, &mut words)?;
                        }
                        Arg::Keyword(_, node) => self.piece(node, env, &mut words)?,
                        Arg::Positional(node) | Arg::KeywordSplat(node) => {
                            return Err(self
                                .error(node.span, "kernels do not know splats")
                                .advise("write the arguments out")
                                .into());
                        }
                    }
                }
                if let Some(message) = message {
                    self.piece(message, env, &mut words)?;
                }
            }
        }
        if words > crate::types::TRAP_WORDS {
            return Err(self
                .error(call.name_span, format!("this exception carries {words} words"))
                .because(format!(
                    "an exception leaves a kernel with at most {} values; one that may be of several kinds counts twice",
                    crate::types::TRAP_WORDS
                ))
                .advise("leave out what can be found from the others")
                .into());
        }
        env.dead = true;
        Ok(Some(Ty::never()))
    }

    /// A message or an argument of an exception.
    fn piece(&mut self, node: &Node, env: &mut Env, words: &mut usize) -> Result<()> {
        match &node.kind {
            Kind::Str(bytes) if std::str::from_utf8(bytes).is_err() => {
                Err(self.error(node.span, "kernels know messages of valid UTF-8 only").into())
            }
            Kind::Str(_) => Ok(()),
            Kind::DStr(text) => {
                let mut own = 0;
                for part in text.pieces() {
                    if is_text(single(part)) {
                        self.piece(single(part), env, &mut own)?;
                        continue;
                    }
                    let ty = self.eval(part, env)?;
                    for atom in ty.atoms() {
                        if matches!(atom, Atom::Object(_) | Atom::Array(_)) {
                            let what = self.an.describe(atom);
                            return Err(self
                                .error(part.span, format!("kernels do not know to_s of {what}"))
                                .because(
                                    "a message is put together after the section, when the object may have changed",
                                )
                                .advise("interpolate numbers and Symbols")
                                .into());
                        }
                    }
                    self.count(&ty, part.span, &mut own)?;
                }
                if self.an.makes_message(self.here.scope, text, &|node| self.here.types[node.id.index()].clone()) {
                    self.eval(text, env)?;
                    own = 1;
                }
                *words += own;
                Ok(())
            }
            _ => {
                let ty = self.eval(node, env)?;
                self.count(&ty, node.span, words)
            }
        }
    }

    fn count(&mut self, ty: &Ty, span: Span, words: &mut usize) -> Result<()> {
        if ty.may_be(Prims(Prims::INT_RANGE.0 | Prims::FLOAT_RANGE.0 | Prims::EXCEPTION.0)) {
            return Err(self
                .error(span, "kernels put neither Ranges nor exceptions into an exception")
                .advise("give the numbers that matter")
                .into());
        }
        if ty.reach.may_be_fresh() && ty.atoms().iter().any(|a| matches!(a, Atom::Object(_) | Atom::Array(_))) {
            return Err(self
                .error(span, "this may have been made in the kernel, and an exception cannot carry it")
                .because("nothing that the section did is kept when an exception leaves it")
                .advise("give the exception the numbers that matter")
                .into());
        }
        *words += match ty.atoms().as_slice() {
            [] | [Atom::Nil | Atom::True | Atom::False | Atom::Module(_)] => 0,
            [_] => 1,
            _ if ty.only(Prims::BOOL) => 1,
            _ => 2,
        };
        Ok(())
    }
}
