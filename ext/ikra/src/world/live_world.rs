//! Answers the core's questions about classes, methods and constants, by reflection.
//!
//! Here: [`LiveWorld`], one compilation's view of the live program, and the process-wide numbers of methods, scopes and
//! constants. Every answer is logged as a guard ([`Guards`]). Later calls check the guards before they use compiled
//! code.
//! Not here: values ([`crate::world::observe`] scans them; this file only fetches roots).
//! Invariant: no lock is held while Ruby runs.

use crate::marshal::held_procs;
use crate::ruby::constants::{From, method_nesting};
use crate::ruby::derivation;
use crate::ruby::environment::InForce;
use crate::ruby::hash_table;
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::iseq::{self, Sequence};
use crate::ruby::question;
use crate::ruby::reflect::{self, Found, MethodGuard, value};
use crate::ruby::registry::{self, Kept, classes, keep};
use crate::ruby::unicode::Rubys;
use crate::world::block::Captures;
use crate::world::class_variables;
use crate::world::large_stack;
use crate::world::observe::{Observer, Refusal};
use ikra_core::diagnostic::{Diagnostic, Span};
use ikra_core::error::{Error as CoreError, Result as CoreResult};
use ikra_core::id::{ArrayKind, ClassId, MethodId, ProcId, ScopeId};
use ikra_core::regexp::{Options, RegexpSource};
use ikra_core::source::Source;
use ikra_core::syntax::ast::{Name, variable_of};
use ikra_core::syntax::{self, given_at};
use ikra_core::unicode::Unicode;
use ikra_core::world::{
    ClassInfo, ConstId, Construction, Derivation, Facts, Lenient, MethodFact, MethodSource, Opaque, Outside, Receiver,
    Root, World, well_known,
};
use magnus::block::Proc;
use magnus::prelude::*;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, RArray, RString, Ruby, TryConvert, Value};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::cell::RefCell;
use std::sync::Arc;

/// Classes and modules whose C functions are Ruby's own.
const CORE: &[&str] = &[
    "Array",
    "BasicObject",
    "Class",
    "Comparable",
    "Complex",
    "Data",
    "Enumerable",
    "Enumerator",
    "Exception",
    "FalseClass",
    "Float",
    "GC",
    "Hash",
    "Integer",
    "Kernel",
    "MatchData",
    "Math",
    "Method",
    "Module",
    "NilClass",
    "Numeric",
    "Object",
    "ObjectSpace",
    "Proc",
    "Process",
    "Random",
    "Range",
    "Rational",
    "Regexp",
    "String",
    "Struct",
    "Symbol",
    "Thread",
    "Time",
    "TrueClass",
    "UnboundMethod",
];

/// A method with source, numbered for the life of the process.
struct Method {
    iseq: Kept,
    /// The UnboundMethod. None for the code of a captured Proc.
    unbound: Option<Kept>,
    /// For a captured Proc: the fingerprint of the refinements in force there.
    in_force: u64,
    owner: Raw,
    /// The name under which its owner defined it.
    name: String,
    label: String,
    /// Whether it is not known where `super` in it leads.
    lost: bool,
    /// For the code of a captured Proc: the Proc.
    around: Option<Root>,
    source: Option<MethodSource>,
}

/// A lexical scope: the classes and modules around a piece of code, innermost first, without Object.
enum Scope {
    Known(Arc<[Raw]>),
    /// The scope of a method, found out when a constant is first looked up.
    Method {
        method: MethodId,
    },
}

/// A constant as one scope sees it.
struct Const {
    from: From,
    id: rb_sys::ID,
    name: String,
}

#[derive(Default)]
struct Numbers {
    methods: Vec<Method>,
    scopes: Vec<Scope>,
    consts: Vec<Arc<Const>>,
}

/// What is known of the live program in this process.
struct Program {
    numbers: Mutex<Numbers>,
    /// The class whose objects are live, with its subclasses.
    live_class: OnceCell<Raw>,
}

static PROGRAM: Program = Program {
    numbers: Mutex::new(Numbers { methods: Vec::new(), scopes: Vec::new(), consts: Vec::new() }),
    live_class: OnceCell::new(),
};

/// Numbers the scope of a block.
pub fn scope(nesting: &[Raw]) -> ScopeId {
    let mut numbers = PROGRAM.numbers.lock();
    let at = numbers.scopes.iter().position(|s| matches!(s, Scope::Known(known) if **known == *nesting));
    let at = at.unwrap_or_else(|| {
        numbers.scopes.push(Scope::Known(nesting.into()));
        numbers.scopes.len() - 1
    });
    ScopeId::new(at)
}

impl Const {
    /// The current value. None if the constant is not defined.
    fn get(&self) -> Result<Option<Raw>, Error> {
        let id = self.id;
        if self.name.starts_with("@@") {
            return match variable_of(&self.name) {
                Some(variable) => self.cell(variable),
                None => self.class_variable(id),
            };
        }
        self.from.constant(id)
    }

    /// The current value of a class variable.
    fn class_variable(&self, id: rb_sys::ID) -> Result<Option<Raw>, Error> {
        let Some(module) = self.class_variable_module()? else { return Ok(None) };
        class_variable(module, id)
    }

    fn class_variable_module(&self) -> Result<Option<Raw>, Error> {
        match &self.from {
            From::Scope(nesting) => class_variable_module(nesting),
            From::Module(_) => Ok(None),
        }
    }

    /// The object that stands for a class variable in a section that assigns any, with the current value. None where
    /// there is no such variable, or its class is frozen.
    fn cell(&self, variable: &str) -> Result<Option<Raw>, Error> {
        let ruby = Ruby::get().expect("constants are read under the GVL");
        let Some(now) = self.class_variable(registry::id(&ruby, variable))? else { return Ok(None) };
        let Some(module) = self.class_variable_module()? else { return Ok(None) };
        class_variables::object(&ruby, module, variable, now)
    }
}

/// Whether a root is the object of a class variable.
pub fn is_class_variable(root: &Root) -> bool {
    matches!(root, Root::Const(id) if variable_of(&PROGRAM.numbers.lock().consts[id.index()].name).is_some())
}

/// Assigns to a class variable what a section has written to its object. Other roots are left alone.
///
/// # Errors
/// What Ruby raises.
pub fn write_class_variable(ruby: &Ruby, root: &Root) -> Result<(), Error> {
    let Root::Const(id) = root else { return Ok(()) };
    let constant = PROGRAM.numbers.lock().consts[id.index()].clone();
    let Some(variable) = variable_of(&constant.name) else { return Ok(()) };
    match (constant.class_variable_module()?, constant.class_variable(registry::id(ruby, variable))?) {
        (Some(module), Some(old)) => class_variables::write_back(ruby, module, variable, old),
        _ => Ok(()),
    }
}

/// The current value of a class variable that a class or module of a scope sees.
///
/// # Errors
/// What Ruby raises.
pub fn class_variable(module: Raw, id: rb_sys::ID) -> Result<Option<Raw>, Error> {
    // SAFETY: classes and modules of scopes are kept. `protect` catches what Ruby raises.
    #[allow(unsafe_code)]
    unsafe {
        if protect(|| rb_sys::rb_cvar_defined(module, id))? == heap::FALSE {
            return Ok(None);
        }
        protect(|| rb_sys::rb_cvar_get(module, id)).map(Some)
    }
}

/// The innermost class or module of a nesting that is no singleton class.
///
/// # Errors
/// What Ruby raises.
pub fn class_variable_module(nesting: &[Raw]) -> Result<Option<Raw>, Error> {
    for module in nesting {
        let ask: Value = value(*module).class().funcall("instance_method", ("singleton_class?",))?;
        let singleton: bool = ask.funcall("bind_call", (value(*module),))?;
        if !singleton {
            return Ok(Some(*module));
        }
    }
    Ok(None)
}

/// The current value of a constant.
///
/// # Errors
/// What Ruby raises, autoload included.
pub fn constant(id: ConstId) -> Result<Option<Raw>, Error> {
    let constant = PROGRAM.numbers.lock().consts[id.index()].clone();
    constant.get()
}

fn number_constant(from: From, id: rb_sys::ID, name: &str) -> ConstId {
    let mut numbers = PROGRAM.numbers.lock();
    let at = numbers.consts.iter().position(|c| c.id == id && c.from == from);
    let at = at.unwrap_or_else(|| {
        numbers.consts.push(Arc::new(Const { from, id, name: name.into() }));
        numbers.consts.len() - 1
    });
    ConstId::new(at)
}

/// The guards of a compiled section.
#[derive(Default, Debug)]
pub struct Guards {
    methods: Vec<MethodGuard>,
    /// Constants, with the class or module that each names. For other values, only that they are defined.
    constants: Vec<(ConstId, Option<Raw>)>,
    missing: Vec<ConstId>,
    /// Procs and Method objects that were captured, with their code and the fingerprint of the refinements in force
    /// there.
    outside: Vec<(Root, Raw, u64, Nature)>,
    /// Pairs of roots that hold the same Proc.
    same: Vec<(Root, Root)>,
    /// Methods in which refinements are in force, with their fingerprint: refinements may get more methods.
    refined: Vec<(MethodId, u64)>,
    /// Procs made of Symbols, with the names.
    symbols: Vec<(Root, String)>,
    /// Captured Procs that the section puts into arrays, with their numbers.
    numbered: Vec<(Root, u32)>,
    /// Procs and Method objects that Ruby's own code has made, with how.
    derived: Vec<(Root, Derivation)>,
    live: Vec<Root>,
    /// Captured locals that the section would update, and whether each holds a Hash.
    hashes: Vec<(Name, bool)>,
    patterns: Vec<(Root, RegexpSource)>,
    /// The section asked whether an exception was being handled, and none was.
    unhandled: bool,
}

/// The pattern of a Regexp. None: it is another value, or a Regexp that kernels do not know: of a subclass, or in an
/// encoding other than UTF-8 and US-ASCII.
fn pattern_of(ruby: &Ruby, value: Value) -> Result<Option<RegexpSource>, Error> {
    let class: Value = ruby.class_object().const_get("Regexp")?;
    if value.class().as_value().as_raw() != class.as_raw() {
        return Ok(None);
    }
    // by a function of Ruby's own, as the program may have redefined the methods
    let asked = |name: &str| -> Result<Value, Error> {
        let method: Value = class.funcall("instance_method", (name,))?;
        let method: Value = method.funcall("bind", (value,))?;
        method.funcall("call", ())
    };
    let letters: usize = TryConvert::try_convert(asked("options")?)?;
    let Some(text) = RString::from_value(asked("source")?) else { return Ok(None) };
    // 16: with an encoding of its own; 32: without one
    if letters & 32 != 0 {
        return Ok(None);
    }
    // SAFETY: nothing runs while the bytes are read.
    #[allow(unsafe_code)]
    let bytes = unsafe { text.as_slice() }.to_vec();
    let free = letters & 16 == 0 && bytes.is_ascii();
    let utf8 = free || text.enc_get() == ruby.utf8_encindex();
    let options = Options { ignores_case: letters & 1 != 0, extended: letters & 2 != 0, dot_all: letters & 4 != 0 };
    Ok(match String::from_utf8(bytes) {
        Ok(text) if utf8 => Some(RegexpSource { text: text.into(), options }),
        _ => None,
    })
}

/// Whether `$!` is an exception.
fn is_handling() -> Result<bool, Error> {
    // SAFETY: the name ends with a zero byte, and a Ruby thread with the GVL calls.
    let handled = protect(|| unsafe { rb_sys::rb_gv_get(c"$!".as_ptr()) })?;
    Ok(handled != heap::NIL)
}

impl Guards {
    /// Whether the captured Procs have the same code as before. Where they do not, the variant may fit again later.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn outside_hold(&self, ruby: &Ruby, captures: &Captures) -> Result<bool, Error> {
        for (root, iseq, in_force, nature) in &self.outside {
            let code = captured(ruby, captures, root)?;
            let same = Code::of(code).map(|kind| kind.nature()) == Some(*nature)
                && reflect::iseq_of(code)?.map(|now| now.as_raw()) == Some(*iseq)
                && InForce::of(ruby, code)?.fingerprint() == *in_force;
            if !same {
                return Ok(false);
            }
        }
        for (root, name) in &self.symbols {
            let Some(block) = Proc::from_value(captured(ruby, captures, root)?) else { return Ok(false) };
            if crate::world::block::symbol_of(block)?.as_ref() != Some(name) {
                return Ok(false);
            }
        }
        for (root, number) in &self.numbered {
            if held_procs::find(captured(ruby, captures, root)?.as_raw()) != Some(ProcId::held(*number)) {
                return Ok(false);
            }
        }
        for (root, derivation) in &self.derived {
            let now = derivation::of(ruby, captured(ruby, captures, root)?)?;
            if now.as_ref().map(|(now, _)| now) != Some(derivation) {
                return Ok(false);
            }
        }
        for (root, other) in &self.same {
            if captured(ruby, captures, root)?.as_raw() != captured(ruby, captures, other)?.as_raw() {
                return Ok(false);
            }
        }
        for (root, pattern) in &self.patterns {
            if pattern_of(ruby, captured(ruby, captures, root)?)?.as_ref() != Some(pattern) {
                return Ok(false);
            }
        }
        for root in &self.live {
            if !is_live(captured(ruby, captures, root)?) {
                return Ok(false);
            }
        }
        for (local, is_hash) in &self.hashes {
            if (heap::see(captures.get(ruby, local)?.as_raw()) == Seen::Hash) != *is_hash {
                return Ok(false);
            }
        }
        Ok(!(self.unhandled && is_handling()?))
    }

    /// Whether all look-ups still have the same results.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn hold(&self, ruby: &Ruby) -> Result<bool, Error> {
        for guard in &self.methods {
            if !guard.holds(ruby)? {
                return Ok(false);
            }
        }
        for (id, module) in &self.constants {
            match constant(*id)? {
                Some(now) if module.is_none_or(|m| m == now) => {}
                _ => return Ok(false),
            }
        }
        for (method, in_force) in &self.refined {
            let unbound = PROGRAM.numbers.lock().methods[method.index()].unbound.as_ref().map(Kept::value);
            if InForce::of_method(ruby, unbound)?.fingerprint() != *in_force {
                return Ok(false);
            }
        }
        for id in &self.missing {
            if constant(*id)?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// `Ikra.__live(class)`, called once: for objects of this class, `__kernel(name)` gives lambdas for the methods that
/// kernels may call.
pub fn set_live(class: Value) {
    keep(class);
    let _ = PROGRAM.live_class.set(class.as_raw());
}

/// Whether objects of a class are live.
pub fn is_live_class(class: Raw) -> bool {
    PROGRAM.live_class.get().is_some_and(|live| reflect::inherits(class, *live))
}

fn is_live(object: Value) -> bool {
    heap::is_object(object.as_raw()) && is_live_class(heap::class_word(object.as_raw()))
}

/// Code that can be called and is no method of an object.
enum Code {
    Proc(Proc),
    Method,
}

/// How code is called: one block may be that of a proc, of a lambda and of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    Method,
    Lambda,
    Proc,
}

impl Code {
    fn nature(&self) -> Nature {
        match self {
            Code::Method => Nature::Method,
            Code::Proc(block) if block.is_lambda() => Nature::Lambda,
            Code::Proc(_) => Nature::Proc,
        }
    }

    fn of(value: Value) -> Option<Code> {
        if let Some(block) = Proc::from_value(value) {
            return Some(Code::Proc(block));
        }
        value.is_kind_of(Ruby::get_with(value).class_method()).then_some(Code::Method)
    }
}

/// The current value of a root. [`Root::Element`] has none.
///
/// # Errors
/// What Ruby raises.
pub fn captured(ruby: &Ruby, captures: &Captures, root: &Root) -> Result<Value, Error> {
    match root {
        Root::Element => Ok(ruby.qnil().as_value()),
        Root::SelfObject => captures.receiver(ruby),
        Root::Capture(name) => captures.get(ruby, name),
        Root::Const(id) => Ok(value(constant(*id)?.unwrap_or(heap::NIL))),
        Root::Held(number) => Ok(value(held_procs::get(*number))),
        Root::Within(root, name) => match Code::of(captured(ruby, captures, root)?) {
            Some(Code::Proc(block)) => Captures::new(block).get(ruby, name),
            _ => Ok(ruby.qnil().as_value()),
        },
        Root::Ivar(root, name) => {
            let object = captured(ruby, captures, root)?;
            if !heap::is_object(object.as_raw()) {
                return Ok(ruby.qnil().as_value());
            }
            let id = registry::id(ruby, name);
            // SAFETY: an ordinary object, of which the function reads an ivar. A missing one is nil.
            #[allow(unsafe_code)]
            Ok(value(unsafe { rb_sys::rb_ivar_get(object.as_raw(), id) }))
        }
        Root::Member(root, name) => {
            let object = captured(ruby, captures, root)?;
            if !is_live(object) {
                return Ok(ruby.qnil().as_value());
            }
            object.funcall("__kernel", (registry::symbol(ruby, name),))
        }
        Root::Part(root, at) => {
            let code = captured(ruby, captures, root)?;
            let parts = derivation::of(ruby, code)?.map(|(_, parts)| parts).unwrap_or_default();
            Ok(parts.get(*at).copied().unwrap_or_else(|| ruby.qnil().as_value()))
        }
        Root::SelfOf(root) => {
            let code = captured(ruby, captures, root)?;
            match Code::of(code) {
                Some(Code::Proc(block)) => Captures::new(block).receiver(ruby),
                Some(Code::Method) => code.funcall("receiver", ()),
                None => Ok(ruby.qnil().as_value()),
            }
        }
    }
}

/// One compilation's view of the live program.
pub struct LiveWorld<'a> {
    ruby: &'a Ruby,
    captures: &'a Captures,
    /// The base array. None for a Range.
    base: Option<Value>,
    pub observer: Observer,
    pub guards: Guards,
    /// An exception that a question met; the caller raises it instead of what the core makes of the answer. Nothing is
    /// asked of Ruby from then on: it would meet others, of which one may be an interrupt, and only one can be raised.
    pub raised: RefCell<Option<Error>>,
}

impl<'a> LiveWorld<'a> {
    pub fn new(ruby: &'a Ruby, captures: &'a Captures, base: Option<Value>, columns_stay: fn() -> bool) -> Self {
        Self {
            ruby,
            captures,
            base,
            observer: Observer::new(ruby, columns_stay),
            guards: Guards::default(),
            raised: RefCell::default(),
        }
    }

    fn caught<T>(&self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.raised.replace(Some(error));
                None
            }
        }
    }

    /// None where a question met an exception: nothing more is to be asked.
    fn goes_on(&self) -> Option<()> {
        self.raised.borrow().is_none().then_some(())
    }

    /// The class in which a receiver's methods are looked up.
    fn class_of(&self, receiver: Receiver) -> Option<Raw> {
        match receiver {
            Receiver::Instance(class) => Some(classes::get(class).raw),
            Receiver::Module(module) => {
                let singleton = reflect::singleton_class(classes::get(module).raw);
                self.caught(singleton)
            }
        }
    }

    fn guard(&mut self, class: Raw, name: &str) -> Option<()> {
        let id = registry::id(self.ruby, name);
        if !self.guards.methods.iter().any(|g| g.is_about(class, id)) {
            let guard = MethodGuard::new(self.ruby, class, name);
            let guard = self.caught(guard)?;
            self.guards.methods.push(guard);
        }
        Some(())
    }

    /// Guards what a class defines itself behind a module that is prepended to it.
    fn guard_own(&mut self, class: Raw, name: &str) -> Option<()> {
        let prepended = reflect::is_prepended(class);
        if self.caught(prepended)? {
            let guard = MethodGuard::own(self.ruby, class, name);
            let guard = self.caught(guard)?;
            self.guards.methods.push(guard);
        }
        Some(())
    }

    fn fact(&self, receiver: Receiver, found: &Found) -> Result<MethodFact, Error> {
        let visibility = found.visibility;
        let builtin = |owner: &str| -> Result<MethodFact, Error> {
            Ok(MethodFact::Builtin { owner: owner.into(), name: found.original_name()?.as_str().into(), visibility })
        };
        let ikra = reflect::singleton_class(classes::get(well_known::IKRA).raw)?;
        if found.owner == ikra {
            return builtin("Ikra");
        }
        let path: Option<String> = match found.iseq {
            Some(iseq) => Some(iseq.funcall("path", ())?),
            None => None,
        };
        let own = path.as_deref().is_none_or(|p| p.starts_with("<internal:"));
        if own && let Some(owner) = self.core_owner(receiver, found.owner)? {
            return builtin(&owner);
        }
        if let (Some(iseq), false) = (found.iseq, own) {
            let method = number_method(found, iseq)?;
            return Ok(MethodFact::Ruby { method, visibility });
        }
        if let Some((slot, writes)) = reflect::attribute(self.ruby, found)? {
            let ivar = slot.as_str().into();
            return Ok(match writes {
                true => MethodFact::AttrWriter { ivar, visibility },
                false => MethodFact::AttrReader { ivar, visibility },
            });
        }
        if let Receiver::Module(class) = receiver
            && reflect::makes_structs(self.ruby, classes::get(class).raw, found.owner)?
            && matches!(found.original_name()?.as_str(), "new" | "[]")
        {
            let data = reflect::construction(classes::get(class).raw)? == Construction::Data;
            return builtin(if data { "Data" } else { "Struct" });
        }
        Ok(MethodFact::Foreign { what: label(found)? })
    }

    /// The name of a core class or module that owns a method. For methods of a class itself, the name of that class.
    fn core_owner(&self, receiver: Receiver, owner: Raw) -> Result<Option<String>, Error> {
        let mut candidate = owner;
        if let Receiver::Module(module) = receiver {
            let singletons = std::iter::successors(Some(module), |m| classes::get(*m).info.superclass);
            for module in singletons {
                let raw = classes::get(module).raw;
                if reflect::singleton_class(raw)? == owner {
                    candidate = raw;
                    break;
                }
            }
        }
        let id = classes::number(self.ruby, candidate)?;
        let name = classes::get(id).info.name.clone();
        let core = CORE.contains(&name.as_str())
            && self.ruby.class_object().const_get::<_, Value>(name.as_str())?.as_raw() == candidate;
        Ok(core.then_some(name))
    }

    fn look_up(&mut self, receiver: Receiver, name: &str) -> Option<MethodFact> {
        self.goes_on()?;
        let class = self.class_of(receiver)?;
        self.guard(class, name)?;
        let found = reflect::find_method(self.ruby, class, name);
        match self.caught(found)? {
            Some(found) => {
                let fact = self.fact(receiver, &found);
                self.caught(fact)
            }
            None => {
                self.guard(class, "method_missing")?;
                let handler = reflect::find_method(self.ruby, class, "method_missing");
                let handler = match self.caught(handler)? {
                    Some(found) => match found.iseq {
                        Some(iseq) => {
                            let number = number_method(&found, iseq);
                            Some(self.caught(number)?)
                        }
                        None => None,
                    },
                    None => None,
                };
                Some(MethodFact::Missing { handler })
            }
        }
    }

    fn read_source(&mut self, method: MethodId) -> Result<MethodSource, iseq::Failure> {
        let (iseq, unbound, label, known) = {
            let numbers = PROGRAM.numbers.lock();
            let entry = &numbers.methods[method.index()];
            (entry.iseq.value(), entry.unbound.as_ref().map(Kept::value), entry.label.clone(), entry.source.clone())
        };
        let in_force = InForce::of_method(self.ruby, unbound)?;
        match known {
            Some(source) if in_force == InForce::NONE => return Ok(source),
            _ if in_force == InForce::NONE => {}
            _ => self.guards.refined.push((method, in_force.fingerprint())),
        }
        let sequence = Sequence::of(iseq)?;
        let text = sequence.source(self.ruby, &in_force)?;
        let unit = if sequence.kind == "method" {
            large_stack::alone(|| syntax::parse_method(&text))
        } else if sequence.captures {
            let whole = Span::new(text.slice.start, text.slice.end);
            Err(Box::new(
                Diagnostic::new(&text, whole, format!("{label} is a block that uses local variables from around it"))
                    .because("kernels see the locals around a section's block only")
                    .advise("define the method with `def`, and pass it what it needs"),
            ))
        } else {
            large_stack::alone(|| syntax::parse_block(&text, &[])).and_then(|unit| match unit.outer_block {
                None => Ok(unit),
                Some(_) => Err(Box::new(
                    Diagnostic::new(
                        &text,
                        text.span(),
                        format!("{label} is a block that yields to a block from around it"),
                    )
                    .because("kernels see what is around a section's block only")
                    .advise("define the method with `def`"),
                )),
            })
        };
        let unit = Arc::new(unit.map_err(iseq::Failure::Unsupported)?);
        let mut numbers = PROGRAM.numbers.lock();
        numbers.scopes.push(Scope::Method { method });
        let scope = ScopeId::new(numbers.scopes.len() - 1);
        let source = MethodSource { unit, scope, label, around: None };
        numbers.methods[method.index()].source = Some(source.clone());
        Ok(source)
    }

    /// The code of a captured Proc or Method object.
    fn read_outside(&mut self, root: &Root) -> Result<Option<Outside>, iseq::Failure> {
        let code = captured(self.ruby, self.captures, root)?;
        let Some(kind) = Code::of(code) else { return Ok(None) };
        let Some(iseq) = reflect::iseq_of(code)? else { return Ok(None) };
        let same_as = self.holder_of(code, root)?;
        if let Some(other) = &same_as {
            self.guards.same.push((root.clone(), other.clone()));
        }
        let in_force = InForce::of(self.ruby, code)?.fingerprint();
        let method = match kind {
            Code::Method => {
                let name = reflect::symbol_name(code.funcall("name", ())?)?;
                let owner = reflect::owner_of(self.ruby, code)?;
                let label = question::shown(code)?;
                let unbound = Some(Kept::new(code.funcall("unbind", ())?));
                let iseq = Kept::new(iseq);
                number(Method {
                    iseq,
                    unbound,
                    in_force: 0,
                    owner,
                    name,
                    label,
                    lost: false,
                    around: None,
                    source: None,
                })
            }
            Code::Proc(block) => {
                let known = PROGRAM.numbers.lock().methods.iter().position(|m| {
                    (m.iseq.raw(), m.in_force) == (iseq.as_raw(), in_force) && m.around.as_ref() == Some(root)
                });
                match known {
                    Some(at) => MethodId::new(at),
                    None => self.number_proc(block, iseq, root, in_force)?,
                }
            }
        };
        self.guards.outside.push((root.clone(), iseq.as_raw(), in_force, kind.nature()));
        let source = self.read_source(method)?;
        let is_method = matches!(kind, Code::Method);
        let lenient = match kind {
            Code::Proc(block) if !block.is_lambda() => Some(Lenient::of(&source.unit.params)),
            _ => None,
        };
        Ok(Some(Outside { method, lenient, same_as, is_method }))
    }

    /// The farthest root, among those that lead to this one, that holds the same Proc.
    fn holder_of(&self, code: Value, root: &Root) -> Result<Option<Root>, Error> {
        let mut holder = None;
        for other in root.enclosing() {
            if captured(self.ruby, self.captures, other)?.as_raw() == code.as_raw() {
                holder = Some(other.clone());
            }
        }
        Ok(holder)
    }

    /// Numbers the code of a captured Proc.
    fn number_proc(&mut self, block: Proc, iseq: Value, root: &Root, in_force: u64) -> Result<MethodId, iseq::Failure> {
        let source = crate::world::block::read_captured(self.ruby, block, iseq)?;
        let (unit, scope) = (source.unit, source.scope);
        let at = unit.source.path.clone();
        let label = format!("the Proc at {at}:{}", unit.source.first_line);
        let name = String::new();
        let around = Some(root.clone());
        let source = Some(MethodSource { unit, scope, label: label.clone(), around: around.clone() });
        let iseq = Kept::new(iseq);
        let owner = heap::NIL;
        Ok(number(Method { iseq, unbound: None, in_force, owner, name, label, lost: false, around, source }))
    }

    fn nesting(&mut self, scope: ScopeId) -> Result<Arc<[Raw]>, Error> {
        let (iseq, owner) = {
            let numbers = PROGRAM.numbers.lock();
            match &numbers.scopes[scope.index()] {
                Scope::Known(nesting) => return Ok(nesting.clone()),
                Scope::Method { method, .. } => {
                    let method = &numbers.methods[method.index()];
                    (method.iseq.value(), method.owner)
                }
            }
        };
        let nesting = method_nesting(self.ruby, iseq, owner)?;
        PROGRAM.numbers.lock().scopes[scope.index()] = Scope::Known(nesting.clone());
        Ok(nesting)
    }

    fn resolve(&mut self, from: From, name: &str) -> Option<ConstId> {
        if let From::Module(module) = from
            && module != classes::get(well_known::OBJECT).raw
            && !registry::symbols::is_text(name)
        {
            let private = self.is_private(module, name);
            if self.caught(private)? {
                return None;
            }
        }
        let id = number_constant(from, registry::id(self.ruby, name), name);
        let now = constant(id);
        match self.caught(now)? {
            None => {
                self.guards.missing.push(id);
                None
            }
            Some(raw) => {
                let module = (heap::see(raw) == Seen::Module).then_some(raw);
                if !self.guards.constants.contains(&(id, module)) {
                    self.guards.constants.push((id, module));
                }
                Some(id)
            }
        }
    }

    /// Whether a module has a private constant of this name, which may not be reached through the module.
    fn is_private(&self, module: Raw, name: &str) -> Result<bool, Error> {
        let name = self.ruby.to_symbol(name);
        let ask = |question: &str| -> Result<Value, Error> {
            let method: Value =
                self.ruby.class_module().funcall("instance_method", (self.ruby.to_symbol(question),))?;
            match question {
                "constants" => method.funcall("bind_call", (value(module),)),
                _ => method.funcall("bind_call", (value(module), name, false)),
            }
        };
        let public: Value = ask("constants")?.funcall("include?", (name,))?;
        Ok(!public.to_bool() && ask("const_defined?")?.to_bool())
    }

    fn scanned(&mut self, result: Result<(), Refusal>) -> Result<(), Opaque> {
        match result {
            Ok(()) => Ok(()),
            Err(Refusal::Opaque(opaque)) => Err(opaque),
            Err(Refusal::Ruby(error)) => {
                self.raised.replace(Some(error));
                Err(unasked())
            }
        }
    }
}

/// Numbers a method with source. The same definition always gets the same number.
fn number_method(found: &Found, iseq: Value) -> Result<MethodId, Error> {
    let (name, label) = (found.original_name()?, label(found)?);
    keep(value(found.owner));
    let (iseq, unbound) = (Kept::new(iseq), Some(Kept::new(found.unbound)));
    let (owner, lost) = (found.owner, found.lost);
    Ok(number(Method { iseq, unbound, in_force: 0, owner, name, label, lost, around: None, source: None }))
}

/// The number of a method, or of the code of a captured Proc.
fn number(method: Method) -> MethodId {
    let mut numbers = PROGRAM.numbers.lock();
    let same = |m: &Method| {
        m.iseq.raw() == method.iseq.raw()
            && m.owner == method.owner
            && m.name == method.name
            && m.lost == method.lost
            && m.around == method.around
            && m.in_force == method.in_force
    };
    let at = numbers.methods.iter().position(same).unwrap_or_else(|| {
        numbers.methods.push(method);
        numbers.methods.len() - 1
    });
    MethodId::new(at)
}

/// `Car#move` or `Car.build`.
fn label(found: &Found) -> Result<String, Error> {
    let owner: String = value(found.owner).funcall("inspect", ())?;
    let name = found.original_name()?;
    Ok(match owner.strip_prefix("#<Class:").and_then(|o| o.strip_suffix('>')) {
        Some(object) => format!("{object}.{name}"),
        None => format!("{owner}#{name}"),
    })
}

/// What is said of a value where an exception is to be raised: nobody reads it.
fn unasked() -> Opaque {
    Opaque { what: "an exception".into(), place: "Ruby".into() }
}

fn internal(detail: String) -> CoreError {
    CoreError::Internal { stage: "world", detail }
}

impl World for LiveWorld<'_> {
    fn class(&self, class: ClassId) -> ClassInfo {
        (*classes::get(class).info).clone()
    }

    fn is_a(&self, class: ClassId, module: ClassId) -> bool {
        reflect::inherits(classes::get(class).raw, classes::get(module).raw)
    }

    fn is_ordinary(&self, class: ClassId) -> bool {
        reflect::is_ordinary(classes::get(class).raw)
    }

    fn members(&self, class: ClassId) -> Option<Vec<Name>> {
        self.goes_on()?;
        let members = self.caught(reflect::members(self.ruby, classes::get(class).raw))??;
        Some(members.iter().map(|m| m.as_str().into()).collect())
    }

    fn construction(&self, class: ClassId) -> Construction {
        let asked = || self.caught(reflect::construction(classes::get(class).raw));
        self.goes_on().and_then(|()| asked()).unwrap_or(Construction::Positional)
    }

    fn module_is_a(&self, object: ClassId, module: ClassId) -> bool {
        reflect::is_kind_of(classes::get(object).raw, classes::get(module).raw)
    }

    fn method(&mut self, receiver: Receiver, name: &str) -> MethodFact {
        self.look_up(receiver, name).unwrap_or(MethodFact::Foreign { what: name.into() })
    }

    fn method_owner(&mut self, receiver: Receiver, name: &str) -> Option<ClassId> {
        self.goes_on()?;
        let class = self.class_of(receiver)?;
        let found = reflect::find_method(self.ruby, class, name);
        let owner = self.caught(found)??.owner;
        let number = classes::number(self.ruby, owner);
        self.caught(number)
    }

    fn super_method(&mut self, receiver: Receiver, method: MethodId) -> MethodFact {
        let foreign = || MethodFact::Foreign { what: "the method that `super` calls".into() };
        let (owner, name, lost) = {
            let numbers = PROGRAM.numbers.lock();
            let method = &numbers.methods[method.index()];
            (method.owner, method.name.clone(), method.lost)
        };
        if lost {
            return foreign();
        }
        let Some(class) = self.goes_on().and_then(|()| self.class_of(receiver)) else { return foreign() };
        let list = reflect::ancestors(class);
        let Some(list) = self.caught(list) else { return foreign() };
        let list: Vec<Raw> = list.into_iter().map(|a| a.as_raw()).collect();
        // A module may be an ancestor at several places, and it is not known from which of them the method runs.
        if list.iter().filter(|a| **a == owner).count() > 1 {
            return foreign();
        }
        let after = list.into_iter().skip_while(|a| *a != owner).skip(1);
        for ancestor in after.filter(|ancestor| !reflect::is_watcher(*ancestor)) {
            // A method that is added in between would be found here.
            keep(value(ancestor));
            if self.guard(ancestor, &name).and_then(|()| self.guard_own(ancestor, &name)).is_none() {
                return foreign();
            }
            let found = reflect::own_method(self.ruby, ancestor, &name);
            match self.caught(found) {
                None => return foreign(),
                Some(Some(found)) => {
                    let fact = self.fact(receiver, &found);
                    return self.caught(fact).unwrap_or_else(foreign);
                }
                Some(None) => {}
            }
        }
        MethodFact::Missing { handler: None }
    }

    fn source(&mut self, method: MethodId) -> CoreResult<MethodSource> {
        self.goes_on().ok_or_else(|| internal("an exception".into()))?;
        match self.read_source(method) {
            Ok(source) => Ok(source),
            Err(iseq::Failure::Unsupported(diagnostic)) => Err(CoreError::Unsupported(diagnostic)),
            Err(iseq::Failure::NoSource(message)) => {
                let label = PROGRAM.numbers.lock().methods[method.index()].label.clone();
                let source = Arc::new(Source::whole(&label, "", 0));
                Err(Diagnostic::new(&source, Span::default(), message).into())
            }
            Err(iseq::Failure::Ruby(error)) => {
                self.raised.replace(Some(error));
                Err(internal("an exception".into()))
            }
        }
    }

    fn constant(&mut self, scope: ScopeId, base: Option<ClassId>, name: &str) -> Option<ConstId> {
        self.goes_on()?;
        let from = match base {
            Some(module) => From::Module(classes::get(module).raw),
            None => {
                let nesting = self.nesting(scope);
                From::Scope(self.caught(nesting)?)
            }
        };
        self.resolve(from, name)
    }

    fn top_constant(&mut self, name: &str) -> Option<ConstId> {
        self.goes_on()?;
        self.resolve(From::Module(classes::get(well_known::OBJECT).raw), name)
    }

    fn class_named(&mut self, name: &str) -> Option<ClassId> {
        self.goes_on()?;
        let mut found = self.ruby.class_object().as_value();
        for part in name.split("::") {
            let next = found.funcall("const_get", (part,));
            found = self.caught(next)?;
        }
        let number = classes::number(self.ruby, found.as_raw());
        self.caught(number)
    }

    fn scope_module(&mut self, scope: ScopeId) -> ClassId {
        if self.goes_on().is_none() {
            return well_known::OBJECT;
        }
        let nesting = self.nesting(scope);
        let innermost = self.caught(nesting).and_then(|nesting| nesting.first().copied());
        let number = innermost.map(|module| classes::number(self.ruby, module));
        number.and_then(|n| self.caught(n)).unwrap_or(well_known::OBJECT)
    }

    fn class_variables(&mut self, scope: ScopeId) -> Option<ClassId> {
        self.goes_on()?;
        let nesting = self.nesting(scope);
        let nesting = self.caught(nesting)?;
        let module = class_variable_module(&nesting);
        let number = classes::number(self.ruby, self.caught(module)??);
        self.caught(number)
    }

    fn outside(&mut self, root: &Root) -> Option<Outside> {
        self.goes_on()?;
        match self.read_outside(root) {
            Ok(code) => code,
            Err(failure) => {
                self.raised.replace(Some(crate::ruby::errors::source(self.ruby, failure)));
                None
            }
        }
    }

    fn regexp(&mut self, root: &Root) -> Option<RegexpSource> {
        self.goes_on()?;
        let value = captured(self.ruby, self.captures, root);
        let pattern = pattern_of(self.ruby, self.caught(value)?);
        let pattern = self.caught(pattern)??;
        self.guards.patterns.push((root.clone(), pattern.clone()));
        Some(pattern)
    }

    fn unicode(&self) -> &'static dyn Unicode {
        &Rubys
    }

    fn number_of_proc(&mut self, root: &Root) -> Option<u32> {
        self.goes_on()?;
        let code = captured(self.ruby, self.captures, root);
        let number = self.observer.number_of_proc(self.caught(code)?.as_raw());
        let number = self.caught(number)??.held_number()?;
        self.guards.numbered.push((root.clone(), number));
        Some(number)
    }

    fn derived(&mut self, root: &Root) -> Option<Derivation> {
        self.goes_on()?;
        let code = captured(self.ruby, self.captures, root);
        let found = derivation::of(self.ruby, self.caught(code)?);
        let (derivation, _) = self.caught(found)??;
        self.guards.derived.push((root.clone(), derivation.clone()));
        Some(derivation)
    }

    fn names_symbol(&mut self, name: &str) {
        if self.goes_on().is_some() {
            let added = registry::symbols::add(self.ruby, registry::symbol(self.ruby, name).as_raw());
            self.caught(added);
        }
    }

    fn symbol_proc(&mut self, root: &Root) -> Option<Name> {
        self.goes_on()?;
        let code = captured(self.ruby, self.captures, root);
        let name = self.caught(code).and_then(Proc::from_value).map(crate::world::block::symbol_of);
        let name = name.and_then(|name| self.caught(name))??;
        self.guards.symbols.push((root.clone(), name.clone()));
        Some(name.as_str().into())
    }

    fn has_key_fields(&self) -> bool {
        hash_table::is_known()
    }

    fn is_handling(&mut self) -> bool {
        let handling = self.caught(is_handling()).unwrap_or(true);
        self.guards.unhandled |= !handling;
        handling
    }

    fn captures_hash(&mut self, local: &Name) -> bool {
        if self.goes_on().is_none() {
            return false;
        }
        let held = self.captures.get(self.ruby, local);
        let is_hash = self.caught(held).is_some_and(|held| heap::see(held.as_raw()) == Seen::Hash);
        self.guards.hashes.push((local.clone(), is_hash));
        is_hash
    }

    fn captures_default(&mut self, hash: &Name) -> bool {
        if self.goes_on().is_none() {
            return false;
        }
        let given = self.captures.get(self.ruby, &ikra_core::syntax::default_of(hash));
        self.caught(given).is_some_and(|given| matches!(heap::see(given.as_raw()), Seen::Int(_) | Seen::Float(_)))
    }

    fn live(&mut self, root: &Root) -> bool {
        if self.goes_on().is_none() {
            return false;
        }
        let object = captured(self.ruby, self.captures, root);
        let live = self.caught(object).is_some_and(is_live);
        if live {
            self.guards.live.push(root.clone());
        }
        live
    }

    fn scan_root(&mut self, root: &Root, facts: &mut Facts) -> Result<(), Opaque> {
        self.goes_on().ok_or_else(unasked)?;
        let ruby = self.ruby;
        let fetched = match root {
            Root::Element => {
                let Some(base) = self.base.and_then(RArray::from_value) else {
                    facts.saw(&ikra_core::world::Place::Root(Root::Element), &ikra_core::types::Ty::int());
                    return Ok(());
                };
                let result = self.observer.base(ruby, base.as_raw(), facts);
                return self.scanned(result);
            }
            root => captured(ruby, self.captures, root),
        };
        let name = match root {
            Root::Element | Root::SelfObject => "self".to_string(),
            Root::Capture(name) | Root::Within(_, name) if **name == *syntax::OUTER_BLOCK => {
                "the block of the method around it".to_string()
            }
            Root::Capture(name) if **name == *syntax::OWN_BLOCK => "the block".to_string(),
            Root::Capture(name) if given_at(name).is_some() => "an argument".to_string(),
            Root::Capture(name) | Root::Within(_, name) => name.to_string(),
            Root::Part(..) => "a value that a Proc has".to_string(),
            Root::Held(_) => "a Proc that an object or array holds".to_string(),
            Root::Const(id) => PROGRAM.numbers.lock().consts[id.index()].name.clone(),
            Root::SelfOf(_) => "self of a Proc".to_string(),
            Root::Ivar(_, name) | Root::Member(_, name) => name.to_string(),
        };
        let result = match fetched {
            Ok(value) => {
                if let Seen::Int(i) = heap::see(value.as_raw()) {
                    facts.saw_integer(root, i);
                }
                self.observer.root(ruby, root, value.as_raw(), &name, facts)
            }
            Err(error) => Err(Refusal::Ruby(error)),
        };
        self.scanned(result)
    }

    fn scan_field(&mut self, class: ClassId, ivar: &Name, facts: &mut Facts) -> Result<(), Opaque> {
        self.goes_on().ok_or_else(unasked)?;
        let result = self.observer.field(self.ruby, class, ivar, facts);
        self.scanned(result)
    }

    fn scan_array(&mut self, kind: ArrayKind, facts: &mut Facts) -> Result<(), Opaque> {
        self.goes_on().ok_or_else(unasked)?;
        let result = self.observer.elements(self.ruby, kind, facts);
        self.scanned(result)
    }
}
