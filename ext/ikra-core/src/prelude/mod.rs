//! Methods of Ruby's own core classes, written in Ruby over a few primitives: the prelude.
//!
//! Here: which methods it has, by the class or module that defines them in Ruby, and their source. Not here: what they
//! mean; they are inlined where they are called, like any method that takes a block (those in `*_functions.rb` are functions), and
//! their errors are reported at the call. Names that begin with `__` are primitives
//! ([`crate::infer::builtins::primitive`]) and methods of its own: a program's names mean the program's methods ([`crate::syntax::ast::PRIMITIVE`]).

mod operations;

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
        ("complex.rb", include_str!("complex.rb")),
        ("enumerable.rb", include_str!("enumerable.rb")),
        ("hash.rb", include_str!("hash.rb")),
        ("hash_functions.rb", include_str!("hash_functions.rb")),
        ("kernel.rb", include_str!("kernel.rb")),
        ("lists.rb", include_str!("lists.rb")),
        ("operations.rb", include_str!("operations.rb")),
        ("range.rb", include_str!("range.rb")),
        ("rational.rb", include_str!("rational.rb")),
        ("string.rb", include_str!("string.rb")),
        ("string_functions.rb", include_str!("string_functions.rb")),
        ("integer.rb", include_str!("integer.rb")),
        ("struct.rb", include_str!("struct.rb")),
    ] {
        prelude.read(file, text);
    }
    prelude.read("operations.rb", &operations::several());
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
                let (name, on_self, span) = match item {
                    Item::Method { name, on_self, span, .. } => (name, on_self, span),
                    Item::Alias { name, original } => {
                        let id = self.index[&(owner.clone(), original)];
                        self.index.insert((owner.clone(), name), id);
                        continue;
                    }
                    _ => continue,
                };
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
/// defines: the class's own form, if the prelude has one, or that of the owner. Arrays, Ranges and Structs have all of
/// Enumerable's, with the same meaning; of a Hash's own, some give Hashes.
pub fn find(class: &str, owner: &str, name: &str) -> Option<MethodId> {
    let shared = || matches!(owner, "Array" | "Range" | "Struct").then(|| of("Enumerable", name)).flatten();
    of(class, name).or_else(|| of(owner, name)).or_else(shared)
}

/// The method of that name of a class whose objects are nothing but their parts, which defines it itself or has it from `owner`.
pub fn own(class: &str, owner: &str, name: &str) -> Option<MethodId> {
    let shared = matches!(owner, "Numeric" | "Comparable");
    find("", if shared { class } else { owner }, name)
}

fn of(owner: &str, name: &str) -> Option<MethodId> {
    PRELUDE.index.get(&(owner.into(), name.into())).copied()
}

/// A method that only the prelude calls, or that the parser put in place of an iterator without a block: of the class, of
/// all lists of values that are at hand, of numbers, of Enumerable (where the receiver's class has it), or of every object.
pub fn helper(class: &str, enumerable: bool, name: &str) -> Option<MethodId> {
    let family = match class {
        "Array" | "Hash" | "Range" => "List",
        "Float" | "Integer" => "Numeric",
        _ => "",
    };
    [class, family, if enumerable { "Enumerable" } else { "" }, "Kernel"].into_iter().find_map(|owner| of(owner, name))
}

/// Methods of Ruby's own that take more arguments than the prelude's, and what to write instead.
const LONGER: &[(&[&str], &str)] = &[
    (&["min"], "write sort.first(n)"),
    (&["max"], "write sort.reverse.first(n)"),
    (&["min_by"], "write sort_by { … }.first(n)"),
    (&["max_by"], "write sort_by { … }.reverse.first(n)"),
    (&["find", "detect"], "write `find { … } || value`"),
    (&["inject", "reduce"], "write inject(start, :name) or inject(start) { … }"),
    (&["difference", "intersection", "union", "product"], "give it one array, and call it again on the result"),
    (&["zip"], "zip up to three arrays, or index them"),
    (&["dig"], "dig two levels at a time"),
    (&["start_with?", "end_with?"], "ask for one after the other, with ||"),
    (&["round", "floor", "ceil", "truncate"], "multiply by a power of ten, round, and divide"),
    (&["to_i"], "kernels read numbers to the base of 10 only"),
];

/// What to write instead of a call with more arguments than the prelude's method takes, where Ruby's own takes more.
pub fn instead_of_longer(name: &str) -> Option<&'static str> {
    LONGER.iter().find(|(names, _)| names.contains(&name)).map(|(_, advice)| *advice)
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
        assert_eq!(find("Array", "Enumerable", "collect"), find("Array", "Enumerable", "map"));
    }
}
