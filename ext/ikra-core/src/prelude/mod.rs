//! Methods of Ruby's own core classes, written in Ruby over a few primitives: the prelude.
//!
//! Here: which methods it has, by the class or module that defines them in Ruby, and their source. Not here: what they
//! mean; they are inlined where they are called, like any method that takes a block (those in `*_functions.rb` are functions), and
//! their errors are reported at the call. Names that begin with `__` are primitives
//! ([`crate::infer::builtins::primitive`]) and methods of its own: a program's names mean the program's methods ([`crate::syntax::ast::PRIMITIVE`]).

use crate::id::{MethodId, ScopeId};
use crate::source::Source;
use crate::syntax::ast::Name;
use crate::syntax::{Item, outline, parse_method};
use crate::world::MethodSource;
use once_cell::sync::Lazy;
use std::collections::HashMap;
use std::sync::Arc;

/// Numbers from here on are the prelude's; a World never gives as many.
const FIRST: u32 = 0xf000_0000;

/// Where the prelude stands: at the top level.
pub const SCOPE: ScopeId = ScopeId(u32::MAX);

struct Prelude {
    index: HashMap<(Name, Name), MethodId>,
    methods: Vec<Method>,
}

struct Method {
    label: String,
    /// Is a function of its own instead of becoming part of its caller: its file says so by its name. It raises nothing.
    function: bool,
    source: Arc<Source>,
    parsed: once_cell::sync::OnceCell<MethodSource>,
}

static PRELUDE: Lazy<Prelude> = Lazy::new(|| {
    let mut prelude = Prelude { index: HashMap::new(), methods: Vec::new() };
    for (file, text) in [
        ("array.rb", include_str!("array.rb")),
        ("enumerable.rb", include_str!("enumerable.rb")),
        ("hash.rb", include_str!("hash.rb")),
        ("hash_functions.rb", include_str!("hash_functions.rb")),
        ("kernel.rb", include_str!("kernel.rb")),
        ("range.rb", include_str!("range.rb")),
        ("string.rb", include_str!("string.rb")),
        ("string_functions.rb", include_str!("string_functions.rb")),
        ("integer.rb", include_str!("integer.rb")),
        ("struct.rb", include_str!("struct.rb")),
    ] {
        prelude.read(file, text);
    }
    prelude
});

impl Prelude {
    fn read(&mut self, file: &str, text: &str) {
        let whole = Arc::new(Source::own(&format!("<ikra/{file}>"), text));
        let items = outline(&whole).unwrap_or_else(|d| panic!("the prelude parses: {d:?}"));
        for item in items {
            let Item::Scope { path, body, .. } = item else { continue };
            let owner: Name = path.last().cloned().unwrap_or_else(|| "".into());
            for item in body {
                let Item::Method { name, on_self, span, .. } = item else { continue };
                let id = MethodId(FIRST + self.methods.len() as u32);
                let source = Arc::new(Source { slice: span.start as usize..span.end as usize, ..(*whole).clone() });
                self.methods.push(Method {
                    label: format!("{owner}#{name}"),
                    function: file.ends_with("_functions.rb"),
                    source,
                    parsed: once_cell::sync::OnceCell::new(),
                });
                let owner = if on_self { format!("{owner}.").into() } else { owner.clone() };
                self.index.insert((owner, name), id);
            }
        }
    }
}

/// Whether a method is the prelude's.
pub fn contains(method: MethodId) -> bool {
    method.0 >= FIRST
}

/// The method of that name, for a receiver of a core class (`Array`, `Range`; empty for others) whose method `owner`
/// defines: the class's own form, if the prelude has one, or that of the owner. Arrays and Ranges have all of Enumerable's,
/// with the same meaning.
pub fn find(class: &str, owner: &str, name: &str) -> Option<MethodId> {
    let of = |owner: &str| PRELUDE.index.get(&(owner.into(), name.into())).copied();
    let own = || matches!(owner, "Enumerable" | "Array" | "Range").then(|| of(class)).flatten();
    let shared = || matches!(owner, "Array" | "Range" | "Hash" | "Struct").then(|| of("Enumerable")).flatten();
    own().or_else(|| of(owner)).or_else(shared)
}

/// The method of that name of a class whose objects are nothing but their parts, which defines it itself or has it from `owner`.
pub fn own(class: &str, owner: &str, name: &str) -> Option<MethodId> {
    let shared = matches!(owner, "Numeric" | "Comparable");
    find("", if shared { class } else { owner }, name)
}

/// A method that only the prelude calls, or that the parser put in place of an iterator without a block, of a class of its
/// own or of every object.
pub fn helper(class: &str, name: &str) -> Option<MethodId> {
    name.starts_with("__").then(|| find("", class, name).or_else(|| find("", "Kernel", name))).flatten()
}

/// Whether a method is the prelude's and becomes part of whoever calls it.
pub fn is_inlined(method: MethodId) -> bool {
    method.0.checked_sub(FIRST).and_then(|at| PRELUDE.methods.get(at as usize)).is_some_and(|m| !m.function)
}

/// The prelude's name of a method, `Enumerable#inject`.
pub fn label(method: MethodId) -> Option<&'static str> {
    PRELUDE.methods.get(method.0.checked_sub(FIRST)? as usize).map(|m| &*m.label)
}

/// The source of one of its methods.
pub fn source(method: MethodId) -> Option<MethodSource> {
    let method = PRELUDE.methods.get(method.0.checked_sub(FIRST)? as usize)?;
    let parsed = method.parsed.get_or_init(|| MethodSource {
        unit: Arc::new(parse_method(&method.source).unwrap_or_else(|d| panic!("the prelude parses: {d:?}"))),
        scope: SCOPE,
        label: method.label.clone(),
        around: None,
    });
    Some(parsed.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_of_the_prelude_parses() {
        for i in 0..PRELUDE.methods.len() {
            assert!(source(MethodId(FIRST + i as u32)).is_some());
        }
        assert!(find("Array", "Array", "any?").is_some());
    }
}
