//! A section's block: which one it is, its source, and what it captures.
//!
//! Here: [`Key`], the identity of a block's code, cheap enough for every call; [`read`], from there to a
//! [`BlockSource`]; [`Captures`], its locals and `self`, read and assigned at every call. Not here: positions and texts
//! ([`crate::ruby::iseq`]).

use crate::ruby::constants::method_nesting;
use crate::ruby::derivation;
use crate::ruby::environment::{self, InForce};
use crate::ruby::errors;
use crate::ruby::gate;
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::iseq::{Failure, Sequence, seen_locals};
use crate::ruby::question;
use crate::ruby::reflect;
use crate::ruby::registry::{self, keep, names};
use crate::world::class_variables;
use crate::world::large_stack;
use crate::world::live_world;
use ikra_core::diagnostic::Diagnostic;
use ikra_core::id::ScopeId;
use ikra_core::infer::BlockSource;
use ikra_core::source::Source;
use ikra_core::syntax::ast::Unit;
use ikra_core::syntax::{self, Wrapping};
use magnus::block::Proc;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RHash, Ruby, Value};
use once_cell::unsync::OnceCell;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;

/// Which code a block is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Key {
    /// A literal block or lambda, by its instruction sequence and the fingerprint of the refinements in force there.
    Iseq(Raw, u64),
    /// `&:name`.
    Symbol(String),
    /// A Proc that Ruby's own code has made ([`derivation`]), which is captured as it is.
    Native,
    /// `&method(:name)`: class of the receiver, file and line of the method.
    Method(Raw, String, u32),
}

/// What a key was made of, which must stay alive as long as the key.
pub struct Identified {
    pub key: Key,
    pub holds: Option<Value>,
}

/// Finds out which code a block is.
///
/// # Errors
/// `NoSource` for a block that is not written in Ruby.
pub fn identify(ruby: &Ruby, block: Proc) -> Result<Identified, Failure> {
    if let Some(iseq) = reflect::iseq_of(block.as_value())? {
        let in_force = InForce::of(ruby, block.as_value())?.fingerprint();
        return Ok(Identified { key: Key::Iseq(iseq.as_raw(), in_force), holds: Some(iseq) });
    }
    if let Some(name) = symbol_of(block)? {
        return Ok(Identified { key: Key::Symbol(name), holds: None });
    }
    if let Some((path, line)) = block.funcall::<_, _, Option<(String, u32)>>("source_location", ())? {
        let receiver: Value = Captures::new(block).receiver(ruby)?;
        let class = receiver.class();
        return Ok(Identified { key: Key::Method(class.as_raw(), path, line), holds: Some(class.as_value()) });
    }
    if derivation::of(ruby, block.as_value())?.is_some() {
        return Ok(Identified { key: Key::Native, holds: None });
    }
    let shown: String = block.funcall("inspect", ())?;
    Err(Failure::NoSource(format!(
        "{shown} has no source to compile: it is made of a Hash or by C, or refined. Write the call out in a block: `{{ |x| … }}`"
    )))
}

/// The name of the method that a Proc calls which was made of a Symbol.
///
/// # Errors
/// What Ruby raises.
pub fn symbol_of(block: Proc) -> Result<Option<String>, Error> {
    if reflect::iseq_of(block.as_value())?.is_some() {
        return Ok(None);
    }
    let shown: String = block.funcall("inspect", ())?;
    let symbol = shown.split_once("(&:").and_then(|(_, rest)| rest.strip_suffix(") (lambda)>"));
    Ok(symbol.map(|symbol| symbol.strip_prefix('"').and_then(|s| s.strip_suffix('"')).unwrap_or(symbol).into()))
}

/// Reads and parses a block.
///
/// # Errors
/// Where its source cannot be had or parsed.
pub fn read(ruby: &Ruby, key: &Key, captures: &Captures, within: Option<&Wrapping>) -> Result<BlockSource, Failure> {
    let (unit, scope) = match key {
        Key::Iseq(iseq, _) => read_iseq(ruby, reflect::value(*iseq), captures, true)?,
        Key::Symbol(name) => {
            // it stands in many places, and speaks for each
            let text = format!("&:{name}");
            let source = Arc::new(Source::whole(&format!("<internal:{text}>"), &text, 1));
            (syntax::symbol_block(&source, name), live_world::scope(&[]))
        }
        Key::Native => {
            let source = Arc::new(Source::whole("<internal:&block>", "&block", 1));
            (syntax::native_block(&source), live_world::scope(&[]))
        }
        Key::Method(_, path, line) => read_method(ruby, captures, path, *line)?,
    };
    let unit = match within {
        Some(wrapping) => syntax::wrap(unit, wrapping),
        None => unit,
    };
    Ok(BlockSource { unit: Arc::new(unit), scope })
}

/// `section`: class variables that it sets are read and assigned as captured variables are.
fn read_iseq(ruby: &Ruby, iseq: Value, captures: &Captures, section: bool) -> Result<(Unit, ScopeId), Failure> {
    let mut sequence = Sequence::of(iseq)?;
    let locals = captures.names(ruby)?;
    // a file sees no locals but its own
    if sequence.captures && sequence.absolute_path.is_none() {
        sequence.locals.clone_from(&locals);
    }
    let source = sequence.source(ruby, &InForce::of(ruby, captures.block.as_value())?)?;
    let seen = seen_locals(iseq, &locals)?;
    let mut locals: Vec<&str> = seen.iter().map(String::as_str).collect();
    let parse =
        |locals: &[&str]| large_stack::alone(|| syntax::parse_block(&source, locals)).map_err(Failure::Unsupported);
    let mut unit = parse(&locals)?;
    let set = if section { syntax::visit::set_class_variables(&unit) } else { Default::default() };
    for variable in &set {
        if captures.class_variable(ruby, variable)?.is_some() {
            locals.push(variable);
        }
    }
    if locals.len() > seen.len() {
        unit = parse(&locals)?;
    }
    // `lambda { … }` reads like a block, but `return` ends it
    unit.lambda |= captures.block.is_lambda();
    Ok((unit, captures.scope(ruby)?))
}

/// Reads and parses a Proc that a section captures.
///
/// # Errors
/// Where its source cannot be had or parsed.
pub fn read_captured(ruby: &Ruby, block: Proc, iseq: Value) -> Result<BlockSource, Failure> {
    let (unit, scope) = read_iseq(ruby, iseq, &Captures::new(block), false)?;
    let params = &unit.params;
    let more = !params.keywords.is_empty() || params.keyword_rest.is_some() || params.block.is_some();
    if more && !unit.lambda {
        let message = "kernels know captured procs without keywords and block parameters only";
        let refused = Diagnostic::new(&unit.source, unit.source.params_span(), message).advise("make it a lambda");
        return Err(Failure::Unsupported(Box::new(refused)));
    }
    Ok(BlockSource { unit: Arc::new(unit), scope })
}

/// The method of the receiver that stands at a place.
fn read_method(ruby: &Ruby, captures: &Captures, path: &str, line: u32) -> Result<(Unit, ScopeId), Failure> {
    let receiver = captures.receiver(ruby)?;
    let mut found: Option<(Value, Value, Sequence)> = None;
    for list in ["methods", "private_methods"] {
        for name in receiver.funcall::<_, _, RArray>(list, ())? {
            let method: Value = receiver.funcall("method", (name,))?;
            let at: Option<(String, u32)> = method.funcall("source_location", ())?;
            if at.is_none_or(|(p, l)| p != path || l != line) {
                continue;
            }
            let Some(iseq) = reflect::iseq_of(method)? else { continue };
            // an alias is the same code
            if found.as_ref().is_some_and(|(_, other, _)| other.as_raw() == iseq.as_raw()) {
                continue;
            }
            let sequence = Sequence::of(iseq)?;
            if found.is_some() {
                return Err(Failure::NoSource(format!(
                    "several methods begin at {path}:{line}, and which of them is meant cannot be told. Write the call out in a block: `{{ |x| … }}`"
                )));
            }
            found = Some((method, iseq, sequence));
        }
    }
    match found {
        Some((method, iseq, sequence)) if sequence.kind == "method" => {
            let source = sequence.source(ruby, &InForce::of(ruby, method)?)?;
            let mut unit = large_stack::alone(|| syntax::parse_method(&source)).map_err(Failure::Unsupported)?;
            unit.name = None;
            unit.lambda = true;
            let owner = reflect::owner_of(ruby, method)?;
            let scope = live_world::scope(&method_nesting(ruby, iseq, owner)?);
            Ok((unit, scope))
        }
        Some(_) => Err(Failure::NoSource(format!(
            "the method at {path}:{line} was made of a block. Write the call out in a block: `{{ |x| … }}`"
        ))),
        None => Err(Failure::NoSource(format!(
            "the method at {path}:{line} is not written in Ruby, so there is no source to compile"
        ))),
    }
}

/// The locals and the `self` that a block sees, and values that are given beside it.
pub struct Captures {
    block: Proc,
    binding: OnceCell<Value>,
    /// By [`syntax::given`]. Who calls keeps them.
    given: Given,
    /// What stands in place of the first of them.
    found: Cell<Option<u64>>,
}

/// Values that are given beside what a block captures.
pub type Given = SmallVec<[Raw; 8]>;

impl Captures {
    pub fn new(block: Proc) -> Self {
        Self { block, binding: OnceCell::new(), given: Given::new(), found: Cell::new(None) }
    }

    pub fn with(self, given: Given) -> Self {
        Self { given, ..self }
    }

    pub fn block(&self) -> Proc {
        self.block
    }

    pub fn is_lambda(&self) -> bool {
        self.block.is_lambda()
    }

    /// Whether the block is a Proc of Ruby's own code, without a place in a file.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn is_native(&self) -> Result<bool, Error> {
        let block = self.block.as_value();
        Ok(environment::native(block).is_some() && block.funcall::<_, _, Value>("source_location", ())?.is_nil())
    }

    fn binding(&self) -> Result<Option<Value>, Error> {
        if let Some(binding) = self.binding.get() {
            return Ok(Some(*binding));
        }
        // nor has one that Ruby's own code has made, but a method that is written in Ruby
        if self.is_native()? {
            return Ok(None);
        }
        // `&:name`, which is a lambda, has none
        if self.block.is_lambda() && symbol_of(self.block)?.is_some() {
            return Ok(None);
        }
        let binding = self.block.funcall::<_, _, Value>(*names::BINDING, ())?;
        Ok(Some(*self.binding.get_or_init(|| binding)))
    }

    /// `self` in the block.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn receiver(&self, ruby: &Ruby) -> Result<Value, Error> {
        match self.binding()? {
            Some(binding) => binding.funcall(*names::RECEIVER, ()),
            None => Ok(ruby.qnil().as_value()),
        }
    }

    /// The value of a local now.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn get(&self, ruby: &Ruby, name: &str) -> Result<Value, Error> {
        if let Some(at) = syntax::given_at(name) {
            return Ok(match (at, self.found.get()) {
                (0, Some(index)) => ruby.into_value(index),
                _ => reflect::value(self.given.get(at).copied().unwrap_or(heap::NIL)),
            });
        }
        if let Some(hash) = syntax::has_default(name) {
            let hash = self.get(ruby, hash)?;
            // a Hash of a subclass may give others
            return match RHash::from_value(hash)
                .filter(|_| heap::class_word(hash.as_raw()) == ruby.class_hash().as_raw())
            {
                Some(hash) => hash.funcall("default", ()),
                None => Ok(ruby.qnil().as_value()),
            };
        }
        if name == syntax::OWN_BLOCK {
            return Ok(self.block.as_value());
        }
        if name == syntax::OUTER_BLOCK {
            let Some(given) = environment::outer_block(self.block.as_value()) else {
                let message = "this Ruby does not tell which block the method around this one was given, which yield and \
                               block_given? mean here. Name it, def m(list, &block), and call it: block.call(x)";
                return Err(errors::source(ruby, Failure::NoSource(message.into())));
            };
            return match heap::see(given.as_raw()) {
                Seen::Symbol => given.funcall("to_proc", ()),
                _ => Ok(given),
            };
        }
        if name.starts_with("@@") {
            let Some((_, value)) = self.class_variable(ruby, name)? else {
                let message = format!(
                    "kernels do not assign {name} here: it has no value any more, or its class is frozen. Assign it before the section"
                );
                return Err(errors::source(ruby, Failure::NoSource(message)));
            };
            return Ok(reflect::value(value));
        }
        match self.binding()? {
            Some(binding) => {
                gate::of_section(ruby, binding.funcall(*names::LOCAL_VARIABLE_GET, (registry::symbol(ruby, name),))?)
            }
            None => Ok(ruby.qnil().as_value()),
        }
    }

    /// Assigns a local.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn set(&self, ruby: &Ruby, name: &str, value: Value) -> Result<(), Error> {
        if name.starts_with("@@") {
            let Some((module, _)) = self.class_variable(ruby, name)? else { return Ok(()) };
            return class_variables::set(ruby, module, name, value.as_raw());
        }
        if let Some(binding) = self.binding()? {
            binding.funcall::<_, _, Value>("local_variable_set", (registry::symbol(ruby, name), value))?;
        }
        Ok(())
    }

    /// The class or module through which the block sees a class variable, and the value now. None where it has none, or
    /// where it cannot be set.
    fn class_variable(&self, ruby: &Ruby, name: &str) -> Result<Option<(Raw, Raw)>, Error> {
        class_variables::settable(ruby, &self.nesting(ruby)?, name)
    }

    /// Puts the index of the first element that was looked for in place of what is given first, a negative number;
    /// false: it is there already.
    pub fn find_another(&self, index: u64) -> bool {
        let first = self.given.first().map(|first| heap::see(*first));
        let new = self.found.get().is_none() && matches!(first, Some(Seen::Int(none)) if none < 0);
        if new {
            self.found.set(Some(index));
        }
        new
    }

    fn names(&self, _ruby: &Ruby) -> Result<Vec<String>, Error> {
        let Some(binding) = self.binding()? else { return Ok(Vec::new()) };
        let names: RArray = binding.funcall("local_variables", ())?;
        // one that is not in UTF-8 no text of ours can mean
        Ok(names.into_iter().filter_map(|name| reflect::symbol_name(name).ok()).collect())
    }

    fn scope(&self, ruby: &Ruby) -> Result<ScopeId, Error> {
        Ok(live_world::scope(&self.nesting(ruby)?))
    }

    /// The classes and modules around the block, the innermost first.
    fn nesting(&self, ruby: &Ruby) -> Result<Vec<Raw>, Error> {
        let Some(binding) = self.binding()? else { return Ok(Vec::new()) };
        let nesting: RArray = question::evaluated(ruby, binding, "::Module.nesting")?;
        let mut modules = Vec::with_capacity(nesting.len());
        for module in nesting {
            keep(module);
            modules.push(module.as_raw());
        }
        Ok(modules)
    }
}
