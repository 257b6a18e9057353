//! What a block or method has around it beside its variables: the block of the method around it, and the refinements in
//! force.
//!
//! Here: [`outer_block`], and [`InForce`], which refinements the calls of a piece of code obey. Not here: locals and
//! `self`, for which a Binding is asked ([`crate::world::block`]), and what a refinement in force means to a
//! compilation ([`crate::ruby::iseq`]).
//!
//! Ruby has no function that gives the block of a frame other than the caller's, and none that tells which refinements
//! a method obeys. So this file reads the structures in which Ruby 3.1 to 3.4 keeps both:
//!
//! * A Proc's data (`rb_proc_t`): `self`, the environment, the code, and the kind, each a word.
//! * The code of a Proc of C: the function and the object that it gets, the third and fourth word.
//! * An environment: its flags at 0; at -1 the environment around it; at -2 the method entry or the scope
//!   (`rb_cref_t`). A method's environment has none around it. It has the method's block at -1, a Proc or a Symbol once
//!   any Proc of the method exists.
//! * A Method's data: its method entry, the fourth or fifth word. A method entry: its definition, the third word; and
//!   of a definition the second and third word: instructions and scope, or the Proc of `define_method`, or another
//!   entry.
//! * A scope: its refinements (a Hash, or nil), its class or module, and the scope around it, from the second word on.
//!
//! When Ikra is loaded, [`init`] compares what is read so with what Ruby says of a few objects ([`PROBE`]). Where it
//! differs, or in another Ruby, nothing is read: [`outer_block`] knows nothing, and refinements are asked of the
//! Binding, or of the text.
#![allow(unsafe_code, reason = "this file reads environments and scopes, which no function of Ruby gives")]

use crate::ruby::heap::{self, Raw};
use crate::ruby::question;
use crate::ruby::reflect;
use crate::ruby::registry::{self, names};
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RModule, Ruby, Value};
use std::hash::Hasher;
use std::os::raw::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this Ruby's structures are those that this file knows.
static KNOWN: AtomicBool = AtomicBool::new(false);

const VERSION: (u32, u32) = (rb_sys::RUBY_API_VERSION_MAJOR, rb_sys::RUBY_API_VERSION_MINOR);

const TYPE_MASK: usize = 0x1f;
const T_DATA: usize = rb_sys::ruby_value_type::RUBY_T_DATA as usize;
const T_IMEMO: usize = rb_sys::ruby_value_type::RUBY_T_IMEMO as usize;
/// Kinds of internal objects, in the flags from this bit on.
const IMEMO_SHIFT: u32 = 12;
const IMEMO_MASK: usize = 0xf;
const CREF: usize = 1;
const SVAR: usize = 2;
const IFUNC: usize = 4;
const ENTRY: usize = 6;
const ISEQ: usize = 7;
/// An environment has none around it.
const LOCAL: usize = 2;
/// The most environments or scopes around each other that are followed.
const MAX_SCOPES: usize = 10_000;

/// Objects of which Ruby says what reading their structures must find. They are a Proc made in a method that was given
/// a block, one made where there is none, that block, the method, and a Proc whose scope is of `Ikra`.
const PROBE: &str = "
    object = Object.new
    def object.probe = proc { proc { } }.call
    block = proc { }
    [object.probe(&block), object.probe, block, object.method(:probe), ::Ikra.module_eval('proc { }')]
";

/// Compares what is read with what Ruby says.
///
/// # Errors
/// What Ruby raises.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    if VERSION.0 != 3 || !(1..=4).contains(&VERSION.1) {
        return Ok(());
    }
    let probes: RArray = ruby.eval(PROBE)?;
    let [given, bare, block, method, within]: [Value; 5] = probes.to_array()?;
    let ikra: RModule = ruby.class_object().const_get("Ikra")?;
    let (same, scope) = (scope_of(method), scope_of(given));
    let known = block_around(given.as_raw()) == Some(Some(block.as_raw()))
        && block_around(bare.as_raw()) == Some(None)
        && scope.is_some()
        && same == scope
        && scope_of(within).is_some_and(|scope| scope.module() == ikra.as_raw() && scope.refinements() == heap::NIL);
    KNOWN.store(known, Ordering::Relaxed);
    Ok(())
}

fn is_known() -> bool {
    KNOWN.load(Ordering::Relaxed)
}

/// A word of a structure.
fn word(at: usize, index: isize) -> usize {
    // SAFETY: callers pass the address of a structure of the file's chapter that a live object holds, and an index of
    // it.
    unsafe { *(at as *const usize).offset(index) }
}

/// Which kind of internal object a word leads to; None: it is none.
fn imemo(object: usize) -> Option<usize> {
    if object == 0 || heap::is_immediate(object as Raw) {
        return None;
    }
    let flags = word(object, 0);
    (flags & TYPE_MASK == T_IMEMO).then_some((flags >> IMEMO_SHIFT) & IMEMO_MASK)
}

/// Where the data of an object of C is.
fn data(object: Raw) -> Option<usize> {
    const EMBEDDED: usize = 2;
    let object = object as usize;
    if heap::is_immediate(object as Raw) || word(object, 0) & TYPE_MASK != T_DATA {
        return None;
    }
    let embedded = VERSION.1 >= 3 && word(object, 3) & EMBEDDED != 0;
    Some(if embedded { object + 4 * size_of::<usize>() } else { word(object, 4) })
}

/// The function of C that a Proc calls, and the object that the function gets. None: it is another Proc.
pub fn native(block: Value) -> Option<(usize, Raw)> {
    const OF_C: usize = 1;
    if !is_known() || magnus::block::Proc::from_value(block).is_none() {
        return None;
    }
    let data = data(block.as_raw())?;
    let code = word(data, 2);
    if word(data, 3) & 0xffff_ffff != OF_C || imemo(code) != Some(IFUNC) {
        return None;
    }
    Some((word(code, 2), word(code, 3) as Raw))
}

/// The environment of a Proc that is written in Ruby.
fn environment(block: Raw) -> Option<usize> {
    const OF_PROC: usize = 3;
    let data = data(block)?;
    match word(data, 3) & 0xffff_ffff {
        0 => Some(word(data, 1)),
        OF_PROC => environment(word(data, 0) as Raw),
        _ => None,
    }
}

/// The environments from the innermost outwards.
fn environments(innermost: usize) -> impl Iterator<Item = usize> {
    let around = |env: &usize| (word(*env, 0) & LOCAL == 0).then(|| word(*env, -1) & !3);
    std::iter::successors(Some(innermost), around).take(MAX_SCOPES)
}

/// The block of the method around a Proc. None: it cannot be told.
fn block_around(block: Raw) -> Option<Option<Raw>> {
    let outermost = environments(environment(block)?).last()?;
    match word(outermost, -1) {
        0 => Some(None),
        // one that is on the stack still, which none is that a Proc can see
        other if other & 3 != 0 => None,
        other => Some(Some(other as Raw)),
    }
}

/// The block of the method around a block: a Proc, a Symbol (of `&:name`), or nil. None: it cannot be told.
pub fn outer_block(block: Value) -> Option<Value> {
    if !is_known() {
        return None;
    }
    block_around(block.as_raw()).map(|given| reflect::value(given.unwrap_or(heap::NIL)))
}

/// A lexical scope as Ruby keeps it.
#[derive(Clone, Copy, PartialEq)]
struct Cref(usize);

impl Cref {
    fn refinements(self) -> Raw {
        word(self.0, 1) as Raw
    }
    fn module(self) -> Raw {
        word(self.0, 2) as Raw
    }
    fn around(self) -> Option<Cref> {
        Some(Cref(word(self.0, 3))).filter(|around| imemo(around.0) == Some(CREF))
    }
}

/// The scope to which a word of an environment, or of a definition, leads.
fn scope_at(object: usize) -> Option<Cref> {
    match imemo(object)? {
        CREF => Some(Cref(object)),
        SVAR => scope_at(word(object, 1)),
        ENTRY => {
            let definition = word(object, 2);
            match (definition, word(definition, 1)) {
                (0, _) => None,
                (_, inner) if imemo(inner) == Some(ISEQ) => scope_at(word(definition, 2)),
                (_, inner) if imemo(inner) == Some(ENTRY) => scope_at(inner),
                (_, inner) => scope_of_proc(inner as Raw),
            }
        }
        _ => None,
    }
}

fn scope_of_proc(block: Raw) -> Option<Cref> {
    environments(environment(block)?).find_map(|env| scope_at(word(env, -2)))
}

/// The scope of a Proc's, Method's or UnboundMethod's code.
fn scope_of(code: Value) -> Option<Cref> {
    if magnus::block::Proc::from_value(code).is_some() {
        return scope_of_proc(code.as_raw());
    }
    let data = data(code.as_raw())?;
    // after the receiver and two or three classes
    [3, 4].into_iter().map(|at| word(data, at)).find(|entry| imemo(*entry) == Some(ENTRY)).and_then(scope_at)
}

/// Which refinements, other than Ikra's own, the calls of a piece of code obey.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum InForce {
    /// The methods that they define, sorted.
    Methods(Vec<String>),
    /// Some, or none: only the text tells.
    Unknown,
}

impl InForce {
    pub const NONE: InForce = InForce::Methods(Vec::new());

    /// Those that a block, a Method or an UnboundMethod obeys, which is written in Ruby.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn of(ruby: &Ruby, code: Value) -> Result<Self, Error> {
        if let Some(scope) = if is_known() { scope_of(code) } else { None } {
            let scopes = || std::iter::successors(Some(scope), |scope| scope.around()).take(MAX_SCOPES);
            // nearly always
            if scopes().all(|scope| scope.refinements() == heap::NIL) {
                return Ok(Self::NONE);
            }
            let mut found = Vec::new();
            for scope in scopes() {
                refinements(ruby, scope.refinements(), &mut found)?;
            }
            return Self::methods(ruby, &found);
        }
        if magnus::block::Proc::from_value(code).is_none() {
            return Ok(Self::Unknown);
        }
        let binding: Value = code.funcall(*names::BINDING, ())?;
        let used: RArray = question::evaluated(ruby, binding, "::Module.used_modules")?;
        let own = own_module(ruby)?;
        let others = used.into_iter().any(|module| Some(module.as_raw()) != own);
        Ok(if others { Self::Unknown } else { Self::NONE })
    }

    /// Those that an UnboundMethod obeys, or, without one, none.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn of_method(ruby: &Ruby, unbound: Option<Value>) -> Result<Self, Error> {
        unbound.map_or(Ok(Self::NONE), |unbound| Self::of(ruby, unbound))
    }

    fn methods(ruby: &Ruby, refinements: &[Raw]) -> Result<Self, Error> {
        let (own, id) = (own_module(ruby)?, registry::id(ruby, "__defined_at__"));
        let mut methods = Vec::new();
        for refinement in refinements.iter().filter(|refinement| Some(heap::ivar(**refinement, id)) != own) {
            // then comes what is refined
            let is_part = |module: &Value| module.as_raw() == *refinement || !module.is_kind_of(ruby.class_class());
            for module in reflect::ancestors(*refinement)?.into_iter().take_while(is_part) {
                for list in ["instance_methods", "private_instance_methods"] {
                    let names: RArray = module.funcall(list, (false,))?;
                    for name in names {
                        methods.push(reflect::symbol_name(name)?);
                    }
                }
            }
        }
        methods.sort_unstable();
        methods.dedup();
        Ok(Self::Methods(methods))
    }

    /// What tells those in force at one time from those at another; 0: none are.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        match self {
            Self::Methods(methods) if methods.is_empty() => return 0,
            Self::Methods(methods) => methods.iter().for_each(|name| hasher.write(name.as_bytes())),
            Self::Unknown => {}
        }
        hasher.finish() | 1
    }

    /// Whether they may change what a code does, by its text and the text around it. They may where one of their
    /// methods is named there, or is one that Ruby calls without a name, or by a sign.
    pub fn concern(&self, text: &str, whole: &str) -> bool {
        match self {
            Self::Methods(methods) => methods.iter().any(|name| may_call(text, name)),
            Self::Unknown => whole.contains("using"),
        }
    }
}

/// Methods that Ruby calls though nobody names them.
const UNNAMED: &[&str] = &[
    "call",
    "coerce",
    "deconstruct",
    "deconstruct_keys",
    "each",
    "inspect",
    "method_missing",
    "respond_to?",
    "respond_to_missing?",
    "to_a",
    "to_ary",
    "to_hash",
    "to_proc",
    "to_s",
    "to_str",
    "===",
];

/// The names in a text, those that end with a sign also without it: `a ?b :c` may be written without spaces.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '?' | '!')));
    parts.flat_map(|part| [part, part.trim_end_matches(['?', '!'])])
}

fn may_call(text: &str, name: &str) -> bool {
    let is_word = name.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    match name.chars().next() {
        _ if UNNAMED.contains(&name) => true,
        Some(_) if is_word => words(text).any(|word| word == name.trim_end_matches('=')),
        Some(sign) => text.contains(sign) || sign == '!' && text.contains("not"),
        None => true,
    }
}

/// The module of Ikra's own refinements, if it was loaded.
fn own_module(ruby: &Ruby) -> Result<Option<Raw>, Error> {
    let ikra: RModule = ruby.class_object().const_get("Ikra")?;
    let loaded: bool = ikra.funcall("const_defined?", ("Refinements", false))?;
    Ok(if loaded { Some(ikra.const_get::<_, Value>("Refinements")?.as_raw()) } else { None })
}

/// Adds the refinements of a scope's Hash, which has a chain of them for each class.
fn refinements(ruby: &Ruby, table: Raw, found: &mut Vec<Raw>) -> Result<(), Error> {
    struct Chains<'a> {
        refinement: Raw,
        found: &'a mut Vec<Raw>,
    }
    unsafe extern "C" fn collect(_: Raw, chain: Raw, out: Raw) -> c_int {
        // SAFETY: `out` is the struct below, which outlives the call; each class of the chain is a live class.
        unsafe {
            let (out, mut at) = (&mut *(out as *mut Chains<'_>), chain);
            while !heap::is_immediate(at) && reflect::is_kind_of(heap::class_word(at), out.refinement) {
                out.found.push(heap::class_word(at));
                at = rb_sys::rb_class_get_superclass(at);
            }
        }
        0
    }
    if table != heap::NIL {
        let refinement = ruby.class_object().const_get::<_, Value>("Refinement")?.as_raw();
        let mut chains = Chains { refinement, found };
        // SAFETY: a Hash that a live scope holds; the callback changes nothing of Ruby's.
        unsafe { rb_sys::rb_hash_foreach(table, Some(collect), (&raw mut chains) as Raw) };
    }
    Ok(())
}
