//! `begin … rescue … else … ensure … end`, `retry` and `raise`, as blocks and jumps.
//!
//! Here: handlers and their clauses, the code of an `ensure` on every exit, the values of an exception. Not here: how
//! traps reach a handler ([`crate::ir::build`]), and how exceptions leave functions (the pass `unwind`).
//!
//! A rescued exception is a code and words in registers: the site that raised it, and the values for its message. The
//! host makes the object if the exception leaves the section.

use super::Shared;
use super::body::{Body, Place, from_operands, operands};
use super::calls::Answer;
use super::tables::{Form, Tables};
use super::value::Val;
use crate::diagnostic::{Diagnostic, Span};
use crate::error::{Error, Result};
use crate::id::{ClassId, MethodId};
use crate::infer::builtins::Builtin;
use crate::infer::calls::{Args, Target};
use crate::infer::{Analysis, Raise, Raised, catch_tag, is_text, thrown};
use crate::ir::build::Builder;
use crate::ir::verify::trap_scalars;
use crate::ir::{
    Class, ClassTest, Ctx, FuncId, LabelId, Message, Messages, New, Op, Operand, Part, Piece, Scalar, SiteId, Stmt,
    TRAP_WORDS, Trap,
};
use crate::syntax::ast::{Arg, Call, Kind, Name, Node, Rescue};
use crate::types::{Atom, Prims, Repr, Ty};
use crate::world::{MethodFact, Receiver};
use std::sync::Arc;

/// nil, in the form of an exception.
pub const NO_EXCEPTION: [Operand; TRAP_WORDS + 1] =
    [Operand::I32(0), Operand::I64(0), Operand::I64(0), Operand::I64(0), Operand::I64(0)];

/// The `ensure`s, `rescue` bodies and `catch`es around the current node.
#[derive(Default)]
pub struct Pending {
    ensures: Vec<Ensure>,
    /// For each `rescue` body around: the target of its `retry`, and whether it has one.
    retries: Vec<(LabelId, bool)>,
    /// The exceptions that the bodies around have rescued: a bare `raise` raises the last one again.
    rescued: Vec<Val>,
    /// The `catch`es around.
    catches: Vec<(Name, LabelId, Place)>,
}

/// An `ensure` whose body is being lowered. A jump out of the body goes to a label of its own, where the `ensure`'s
/// code runs first.
struct Ensure {
    /// The label after it. Labels are numbered in the order in which they are opened: those around have lower numbers,
    /// those inside have higher ones.
    after: LabelId,
    exits: Vec<(Exit, Val, LabelId)>,
}

/// The target of a jump, and the place for its value.
#[derive(Clone)]
pub enum Exit {
    To(LabelId, Option<Place>),
    /// Leaves the function, which returns the value in the form of its result.
    Function,
    /// Leaves the section.
    Section,
}

/// The values that an exception carries to the host.
#[derive(Clone, Default)]
struct Carried {
    reprs: Vec<Repr>,
    words: Vec<Operand>,
}

impl Body<'_, '_> {
    /// Jumps to a target, through the `ensure`s on the way.
    pub fn jump(&mut self, exit: Exit, val: Val) {
        if self.cx.b.ended() {
            return;
        }
        let leaves = self.rescue.ensures.last().is_some_and(|ensure| match &exit {
            Exit::To(label, _) => *label < ensure.after,
            Exit::Function | Exit::Section => true,
        });
        if leaves {
            // the `ensure` may assign the variable from which the value was read
            let val = self.copied(val);
            let label = self.cx.b.label();
            self.cx.b.push(Stmt::Break(label));
            if let Some(ensure) = self.rescue.ensures.last_mut() {
                ensure.exits.push((exit, val, label));
            }
            return;
        }
        match exit {
            Exit::To(label, place) => {
                if let Some(place) = place {
                    self.store(&place, val);
                }
                self.cx.b.push(Stmt::Break(label));
            }
            Exit::Function => self.cx.b.push(Stmt::Return(operands(val))),
            Exit::Section => self.leave_section(Some(val)),
        }
    }

    /// Ends the section with the running element, whose effects so far stay.
    pub fn leave_section(&mut self, val: Option<Val>) {
        if !self.contributions.is_empty() {
            let index = self.cx.b.i64(Op::Ctx(Ctx::Index), &[]);
            self.store_contributions(index);
        }
        self.trap(Trap::Break, val);
    }

    /// A copy of a value, which later assignments to its variable do not change.
    pub(super) fn copied(&mut self, val: Val) -> Val {
        let form = match val {
            Val::Unit(_) => return val,
            Val::Bool(_) => Form::One(Repr::Bool),
            Val::Int(_) => Form::One(Repr::Int),
            Val::Float(_) => Form::One(Repr::Float),
            Val::Sym(_) => Form::One(Repr::Sym),
            Val::Str(_) => Form::One(Repr::Str),
            Val::Ref(h, _) => Form::One(Repr::Ref(h)),
            Val::Array(kind, _) => Form::One(Repr::Array(kind)),
            Val::Union { .. } => Form::One(Repr::Union),
            Val::IntRange { .. } => Form::IntRange,
            Val::FloatRange { .. } => Form::FloatRange,
            Val::Exception { .. } => Form::Exception,
        };
        let copies: Vec<Operand> = operands(val)
            .into_iter()
            .map(|operand| {
                let copy = self.cx.b.temp(self.cx.b.ty(operand));
                self.cx.b.set(copy, operand);
                Operand::Var(copy)
            })
            .collect();
        from_operands(form, &copies)
    }

    // ---- begin … end ----

    /// # Errors
    /// As [`Body::eval`].
    pub fn begin(
        &mut self,
        node: &Node,
        body: (&Node, Option<&Node>),
        rescues: &[Rescue],
        ensure: Option<&Node>,
    ) -> Result<Val> {
        let ty = self.ty(node);
        let place = self.result_place(&ty, node.span)?;
        match ensure {
            Some(ensure) => self.ensured(body, rescues, ensure, &place)?,
            None => self.rescued(body, rescues, &place)?,
        }
        Ok(self.load(&place))
    }

    fn ensured(
        &mut self,
        body: (&Node, Option<&Node>),
        rescues: &[Rescue],
        ensure: &Node,
        place: &Place,
    ) -> Result<()> {
        let [after, ends, fails] = [(); 3].map(|()| self.cx.b.label());
        self.rescue.ensures.push(Ensure { after, exits: Vec::new() });
        let raised = self.raised();
        self.cx.b.open();
        self.cx.b.open();
        self.cx.b.open();
        self.rescued(body, rescues, place)?;
        let returns = !self.cx.b.ended();
        self.cx.b.push(Stmt::Break(ends));
        let list = self.cx.b.close();
        let exits = self.rescue.ensures.pop().map_or_else(Vec::new, |e| e.exits);
        self.cx.b.push(Stmt::Try { label: fails, body: list, raised });
        let exception = exception(raised);
        self.rescue.rescued.push(exception);
        self.eval(ensure)?;
        self.rescue.rescued.pop();
        self.raise_again(exception);
        let list = self.cx.b.close();
        self.cx.b.push(Stmt::Block { label: ends, body: list });
        if returns {
            self.eval(ensure)?;
            self.cx.b.push(Stmt::Break(after));
        }
        let mut list = self.cx.b.close();
        for (exit, val, label) in exits {
            list = self.behind(label, list, |s| {
                s.eval(ensure)?;
                s.jump(exit, val);
                Ok(())
            })?;
        }
        self.cx.b.push(Stmt::Block { label: after, body: list });
        Ok(())
    }

    /// A list in a block, followed by the statements that `code` makes.
    fn behind(
        &mut self,
        label: LabelId,
        body: Vec<Stmt>,
        code: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Vec<Stmt>> {
        self.cx.b.open();
        self.cx.b.push(Stmt::Block { label, body });
        code(self)?;
        Ok(self.cx.b.close())
    }

    fn rescued(&mut self, (body, otherwise): (&Node, Option<&Node>), rescues: &[Rescue], place: &Place) -> Result<()> {
        let last = |s: &mut Self| match otherwise {
            Some(otherwise) => s.eval_into(otherwise, place),
            None => Ok(()),
        };
        if rescues.is_empty() {
            match otherwise {
                Some(_) => drop(self.eval(body)?),
                None => self.eval_into(body, place)?,
            }
            return last(self);
        }
        let [done, ends, fails, again] = [(); 4].map(|()| self.cx.b.label());
        let raised = self.raised();
        self.cx.b.open();
        self.cx.b.open();
        self.cx.b.open();
        match otherwise {
            Some(_) => drop(self.eval(body)?),
            None => self.eval_into(body, place)?,
        }
        let returns = !self.cx.b.ended();
        self.cx.b.push(Stmt::Break(ends));
        let list = self.cx.b.close();
        self.cx.b.push(Stmt::Try { label: fails, body: list, raised });
        self.rescue.retries.push((again, false));
        for clause in rescues {
            self.clause(clause, exception(raised), place, done)?;
        }
        self.raise_again(exception(raised));
        let retries = self.rescue.retries.pop().is_some_and(|(_, used)| used);
        let list = self.cx.b.close();
        self.cx.b.push(Stmt::Block { label: ends, body: list });
        if returns {
            last(self)?;
        }
        let list = self.cx.b.close();
        let done = Stmt::Block { label: done, body: list };
        if !retries {
            self.cx.b.push(done);
            return Ok(());
        }
        let over = self.cx.b.label();
        let once = Stmt::Block { label: again, body: vec![done, Stmt::Break(over)] };
        self.cx.b.push(Stmt::Loop { label: over, body: vec![once, Stmt::Poll] });
        Ok(())
    }

    fn raised(&mut self) -> crate::ir::Raised {
        std::array::from_fn(|i| self.cx.b.temp(if i == 0 { Scalar::I32 } else { Scalar::I64 }))
    }

    /// One `rescue` clause; control continues after it if it does not match.
    fn clause(&mut self, clause: &Rescue, exception: Val, place: &Place, done: LabelId) -> Result<()> {
        let [matches, skip] = [(); 2].map(|()| self.cx.b.label());
        self.cx.b.open();
        self.cx.b.open();
        let mut classes = Vec::new();
        if clause.classes.is_empty() {
            classes.extend(self.an.world.class_named("StandardError"));
        }
        for class in &clause.classes {
            if let Kind::Splat(list) = &class.kind {
                self.test_list(list, exception, matches)?;
                continue;
            }
            self.eval(class)?;
            if let [Atom::Module(class)] = self.ty(class).atoms()[..] {
                classes.push(class);
            }
            self.test_classes(&mut classes, exception, matches);
        }
        self.test_classes(&mut classes, exception, matches);
        self.cx.b.push(Stmt::Break(skip));
        let tests = self.cx.b.close();
        self.cx.b.push(Stmt::Block { label: matches, body: tests });
        if let Some(target) = &clause.binding {
            self.assign(target, exception, &Ty::prim(Prims::EXCEPTION))?;
        }
        self.rescue.rescued.push(exception);
        self.eval_into(&clause.body, place)?;
        self.rescue.rescued.pop();
        self.cx.b.push(Stmt::Break(done));
        let body = self.cx.b.close();
        self.cx.b.push(Stmt::Block { label: skip, body });
        Ok(())
    }

    /// Jumps to `matches` if an exception is of one of the classes in a list.
    fn test_list(&mut self, list: &Node, exception: Val, matches: LabelId) -> Result<()> {
        let (val, ty) = (self.eval(list)?, self.ty(list));
        let ([Atom::Array(kind)], Val::Array(_, packed)) = (&ty.atoms()[..], val) else { return Ok(()) };
        let (kind, classes) = (*kind, self.an.elements(self.here.spec, *kind, ty.reach).unwrap_or_default());
        if classes.is_never() {
            return Ok(());
        }
        let nothing = self.result_place(&Ty::nil(), list.span)?;
        let (_, length) = self.array_parts(packed);
        self.each_index(length, |s, i| {
            let class = s.element_in_range(kind, packed, i)?;
            s.dispatch(class, &classes, &nothing, |s, atom, _| {
                if let Atom::Module(class) = atom {
                    s.test_classes(&mut vec![class], exception, matches);
                }
                Ok(None)
            })
        })
    }

    fn test_classes(&mut self, classes: &mut Vec<ClassId>, exception: Val, matches: LabelId) {
        for class in classes.drain(..) {
            let hit = self.is_of_class(exception, class, false);
            self.cx.b.when(hit, |b| b.push(Stmt::Break(matches)));
        }
    }

    /// `message` of an exception, if it is a text of the program or of Ruby, or a String that `raise` was given.
    pub fn message(&mut self, exception: Val, span: Span) -> Answer {
        let Val::Exception { code, words } = exception else { return Ok(None) };
        let func = self.cx.shared.messages();
        let args = [code].into_iter().chain(words).collect();
        let found = self.cx.b.call(func, args, &[Scalar::I64, Scalar::Bool], None);
        let (source, span) = self.place_in_source(span);
        let error = Diagnostic::new(&source, span, "kernels do not know the message of this exception")
            .because("they know messages of Strings, Symbols, numbers, nil, true and false, and Ruby's own that are constant")
            .advise("rescue it by its class, and keep what else is to be known of it in a variable");
        let unknown = self.cx.b.bool(Op::Not, &[found[1]]);
        self.cx.b.open();
        self.trap(Trap::refusal(error.to_string()), None);
        let then = self.cx.b.close();
        self.cx.b.push(Stmt::If { cond: unknown, then, otherwise: vec![] });
        Ok(Some(Val::Str(found[0])))
    }

    /// Whether an exception is of a class.
    pub fn is_of_class(&mut self, exception: Val, class: ClassId, exact: bool) -> Operand {
        let Val::Exception { code, .. } = exception else { return Operand::Bool(false) };
        let test = self.cx.shared.class_test(class, exact);
        self.cx.b.call(test, vec![code], &[Scalar::Bool], None)[0]
    }

    /// `retry`
    pub fn retry(&mut self) {
        if let Some((label, used)) = self.rescue.retries.last_mut() {
            *used = true;
            let exit = Exit::To(*label, None);
            self.jump(exit, Val::NIL);
        }
    }

    // ---- catch and throw ----

    /// Records a `catch` whose block is about to run. True: it is one, and must be closed.
    pub fn open_catch(&mut self, method: MethodId, args: &Args, (label, place): (LabelId, &Place)) -> bool {
        let tag = catch_tag(method, args);
        let opens = tag.is_some();
        self.rescue.catches.extend(tag.map(|tag| (tag, label, place.clone())));
        opens
    }

    pub fn close_catch(&mut self, opened: bool) {
        if opened {
            self.rescue.catches.pop();
        }
    }

    /// A call of Kernel's `throw`; false: it is some other call.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn throw(&mut self, call: &Call) -> Result<bool> {
        if call.receiver.is_some()
            || &*call.name != "throw"
            || !self.self_ty().atoms().into_iter().all(|atom| self.an.is_kernels(atom, "throw"))
        {
            return Ok(false);
        }
        let Some((tag, value)) = thrown(call) else { return Ok(false) };
        let Some((_, label, place)) = self.rescue.catches.iter().rev().find(|(t, ..)| t == tag).cloned() else {
            return Ok(false);
        };
        let val = match value {
            Some(value) => self.eval(value)?,
            None => Val::NIL,
        };
        self.jump(Exit::To(label, Some(place)), val);
        Ok(true)
    }

    // ---- raise ----

    /// Raises a rescued exception again.
    fn raise_again(&mut self, exception: Val) {
        let Val::Exception { code, words } = exception else { return self.not_raised() };
        if self.cx.b.ended() {
            return;
        }
        let func = self.cx.shared.raising_again();
        let args = [code].into_iter().chain(words).collect();
        self.cx.b.push(Stmt::Call { func, args, dsts: vec![], depth: None });
        let nothing = self.cx.b.results().iter().map(|ty| Operand::zero(*ty)).collect();
        self.cx.b.push(Stmt::Return(nothing));
    }

    fn not_raised(&mut self) {
        let message = "exception class/object expected".into();
        self.trap(Trap::Raise { class: "TypeError", message }, None);
    }

    /// A call of Kernel's `raise`; false: it is some other call.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn raise(&mut self, call: &Call) -> Result<bool> {
        if call.receiver.is_some() || !matches!(&*call.name, "raise" | "fail") {
            return Ok(false);
        }
        for atom in self.self_ty().atoms() {
            if !matches!(self.an.target(self.here.spec, atom, &call.name, true), Ok(Target::Builtin(Builtin::Raise))) {
                return Ok(false);
            }
        }
        let mut carried = Carried::default();
        match Raise::of(call) {
            None => {}
            Some(Raise::Again) => match self.rescue.rescued.last().copied() {
                Some(exception) => self.raise_again(exception),
                None => {
                    self.at(call.name_span);
                    self.trap(Trap::Raise { class: "RuntimeError", message: String::new() }, None);
                }
            },
            Some(Raise::Message(text)) => {
                let message = self.made_of(text, &mut carried)?;
                self.at(call.name_span);
                if let Some(class) = self.an.world.class_named("RuntimeError") {
                    self.raise_new(class, None, vec![], Some(message), carried);
                }
            }
            Some(Raise::Value { value, message }) => {
                let val = self.held(value)?;
                let message = message.map(|m| self.made_of(m, &mut carried)).transpose()?;
                if self.cx.b.ended() {
                    return Ok(true);
                }
                self.at(call.name_span);
                let ty = self.ty(value);
                let nothing = self.result_place(&Ty::nil(), value.span)?;
                self.dispatch(val, &ty, &nothing, |s, atom, val| -> Answer {
                    match s.an.raised(atom).map_err(|r| r.at(&s.here.unit.source, value.span))? {
                        Raised::Class(class) => s.raise_new(class, None, vec![], message.clone(), carried.clone()),
                        Raised::Rescued => s.raise_again(val),
                        Raised::Nothing => s.not_raised(),
                    }
                    Ok(None)
                })?;
            }
            Some(Raise::New { class, args, message }) => {
                self.eval(class)?;
                let (mut pieces, mut keywords) = (Vec::new(), Vec::new());
                for arg in args {
                    match arg {
                        Arg::Positional(node) => pieces.push(self.made_of(node, &mut carried)?),
                        Arg::Keyword(name, node) => keywords.push((name.clone(), self.made_of(node, &mut carried)?)),
                        Arg::KeywordSplat(_) => {}
                    }
                }
                let message = message.map(|m| self.made_of(m, &mut carried)).transpose()?;
                self.at(call.name_span);
                if let [Atom::Module(class)] = self.ty(class).atoms()[..] {
                    self.raise_new(class, Some(pieces), keywords, message, carried);
                }
            }
        }
        Ok(true)
    }

    fn raise_new(
        &mut self,
        class: ClassId,
        args: Option<Vec<Piece>>,
        keywords: Vec<(Arc<str>, Piece)>,
        message: Option<Piece>,
        carried: Carried,
    ) {
        if self.cx.b.ended() {
            return;
        }
        let name = self.an.class(class).name;
        let trap = Trap::New(Arc::new(New { class, name, args, keywords, message }));
        let site = self.cx.site(trap, carried.reprs);
        self.cx.b.trap(site, carried.words);
    }

    /// A message or an argument of an exception.
    fn made_of(&mut self, node: &Node, carried: &mut Carried) -> Result<Piece> {
        if !is_text(node) {
            return Ok(Piece::Value(self.carry(node, carried)?));
        }
        if let Kind::DStr(text) = &node.kind
            && self.an.makes_message(self.an.spec(self.here.spec).scope, text, &|node| self.ty(node))
        {
            return Ok(Piece::Value(self.carry(text, carried)?));
        }
        let mut parts = Vec::new();
        self.parts(node, carried, &mut parts)?;
        Ok(Piece::Text(parts))
    }

    fn parts(&mut self, node: &Node, carried: &mut Carried, parts: &mut Vec<Part>) -> Result<()> {
        match &node.kind {
            Kind::Str(bytes) => parts.push(Part::Text(String::from_utf8_lossy(bytes).into_owned())),
            Kind::DStr(text) => {
                for piece in text.pieces() {
                    self.parts(piece, carried, parts)?;
                }
            }
            Kind::Seq(items) if items.len() == 1 && is_text(&items[0]) => self.parts(&items[0], carried, parts)?,
            _ => parts.push(Part::Value(self.carry(node, carried)?)),
        }
        Ok(())
    }

    /// The number of the operand that carries a node's value.
    fn carry(&mut self, node: &Node, carried: &mut Carried) -> Result<usize> {
        let val = self.held(node)?;
        let (repr, words) = self.trap_operand(val);
        carried.reprs.push(repr);
        carried.words.extend(words);
        Ok(carried.reprs.len() - 1)
    }
}

/// The exception in a handler's registers.
fn exception([code, words @ ..]: crate::ir::Raised) -> Val {
    Val::Exception { code: Operand::Var(code), words: words.map(Operand::Var) }
}

impl Shared {
    /// The function that tests whether an exception is a `class` (with `exact`, not of a subclass).
    fn class_test(&mut self, class: ClassId, exact: bool) -> FuncId {
        if let Some((.., func)) = self.class_tests.iter().find(|(c, e, _)| (*c, *e) == (class, exact)) {
            return *func;
        }
        let func = self.reserve();
        let mut b = Builder::new(String::new(), vec![Scalar::Bool]);
        b.param(Scalar::I32, Some("code".into()));
        b.push(Stmt::Return(vec![Operand::Bool(false)]));
        self.funcs[func.index()] = b.finish();
        self.class_tests.push((class, exact, func));
        func
    }

    /// The function that finds messages.
    fn messages(&mut self) -> FuncId {
        if let Some(messages) = &self.rescued.messages {
            return messages.func;
        }
        let func = self.reserve();
        let mut b = Builder::new("message".into(), vec![Scalar::I64, Scalar::Bool]);
        b.param(Scalar::I32, Some("code".into()));
        for _ in 0..TRAP_WORDS {
            b.param(Scalar::I64, None);
        }
        b.push(Stmt::Return(vec![Operand::I64(0), Operand::Bool(false)]));
        self.funcs[func.index()] = b.finish();
        self.rescued.messages = Some(Messages { func, known: Vec::new() });
        func
    }

    /// The function that raises a rescued exception again.
    fn raising_again(&mut self) -> FuncId {
        if let Some(func) = self.rescued.again {
            return func;
        }
        let func = self.reserve();
        let mut b = Builder::new("raise again".into(), vec![]);
        b.param(Scalar::I32, Some("code".into()));
        for _ in 0..TRAP_WORDS {
            b.param(Scalar::I64, None);
        }
        self.funcs[func.index()] = b.finish();
        self.rescued.again = Some(func);
        func
    }
}

/// Records the messages that are known without making a String.
fn find_messages(shared: &mut Shared, an: &mut Analysis<'_>, t: &mut Tables) {
    let Some(messages) = &mut shared.rescued.messages else { return };
    for (i, site) in shared.sites.iter().enumerate().filter(|(_, s)| s.trap.is_caught()) {
        let class = match site.trap.class() {
            Some(Class::Made(id)) => Some(id),
            Some(Class::Named(name)) => an.world.class_named(name),
            None => None,
        };
        let rubys = |name: &str, an: &mut Analysis<'_>| {
            let fact = class.map(|class| an.method(Receiver::Instance(class), name));
            matches!(fact, Some(MethodFact::Builtin { .. }))
        };
        if !["initialize", "exception", "message", "to_s"].into_iter().all(|name| rubys(name, an)) {
            continue;
        }
        let message = match &site.trap {
            Trap::ZeroDivision => Some(Text::Known("divided by 0")),
            Trap::Raise { message, .. } => Some(Text::Known(message)),
            Trap::New(new) => match (&new.args, &new.message) {
                _ if !new.keywords.is_empty() => None,
                (None, None) => Some(Text::Known(&new.name)),
                (Some(args), None) if args.is_empty() => Some(Text::Known(&new.name)),
                (Some(args), None) if args.len() == 1 => text(&args[0]),
                (None, Some(piece)) => text(piece),
                (Some(args), Some(piece)) if args.len() < 2 => text(piece),
                _ => None,
            },
            _ => None,
        };
        let message = match message {
            Some(Text::Known(text)) => Message::Text(t.string_literal(text.as_bytes(), false).0 as i64),
            Some(Text::Operand(at)) if site.operands.get(at) == Some(&Repr::Str) => {
                Message::Word(site.operands[..at].iter().map(|r| trap_scalars(*r).len()).sum())
            }
            _ => continue,
        };
        messages.known.push((SiteId::new(i), message));
    }
}

/// A message that is known.
enum Text<'a> {
    Known(&'a str),
    /// The site's operand of that number, if it is a String.
    Operand(usize),
}

fn text(piece: &Piece) -> Option<Text<'_>> {
    match piece {
        Piece::Value(at) => Some(Text::Operand(*at)),
        Piece::Text(parts) => match parts.as_slice() {
            [] => Some(Text::Known("")),
            [Part::Text(text)] => Some(Text::Known(text)),
            _ => None,
        },
    }
}

/// Records for which classes each test is true, once all classes are known that the program raises.
///
/// # Errors
/// A class that should exist and does not.
pub fn finish(shared: &mut Shared, an: &mut Analysis<'_>, t: &mut Tables) -> Result<()> {
    find_messages(shared, an, t);
    if shared.class_tests.is_empty() {
        return Ok(());
    }
    let mut classes: Vec<(Class, ClassId)> = Vec::new();
    for site in shared.sites.iter().filter(|s| s.trap.is_caught()) {
        let Some(class) = site.trap.class().filter(|c| classes.iter().all(|(k, _)| k != c)) else { continue };
        let id = match class {
            Class::Made(id) => Some(id),
            Class::Named(name) => an.world.class_named(name),
        };
        let Some(id) = id else {
            return Err(Error::Internal { stage: "lower", detail: format!("no class for {}", site.trap) });
        };
        classes.push((class, id));
    }
    for (asked, exact, func) in std::mem::take(&mut shared.class_tests) {
        let hit = |id: ClassId| if exact { id == asked } else { an.world.is_a(id, asked) };
        let hits = classes.iter().filter(|(_, id)| hit(*id)).map(|(class, _)| *class).collect();
        let name = format!("is {}", an.world.class(asked).name);
        shared.funcs[func.index()].name.clone_from(&name);
        shared.rescued.tests.push(ClassTest { func, name, hits });
    }
    Ok(())
}
