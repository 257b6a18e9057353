//! The prelude: methods of Ruby's own core classes, written in Ruby over a few primitives.
//!
//! Here: which methods it has, by the class or module that defines them in Ruby, and their source. Not here: their
//! meaning. They are inlined where they are called, like any method that takes a block (those in `*_functions.rb` are
//! functions), and their errors are reported at the call. Names that begin with `__` are primitives
//! ([`crate::infer::builtins::primitive`]) and methods of the prelude's own. A program's names always mean the
//! program's methods ([`crate::syntax::ast::PRIMITIVE`]).
//!
//! A method is found by the receiver's class, or else by the class or module that defines it in Ruby. Arguments that
//! Ruby's method takes and the prelude's does not are refused (`blocks::knows_form`, `MORE_ARGUMENTS`).
//! `__doubt(empty)` speculates that a list is not empty, as an index does that it is in range. Methods of Hash call
//! `yield(key, value)`; a block with one parameter gets an array of both (`blocks::pairs`).
//!
//! # Calls that the program may have redefined
//!
//! The prelude's text stands for Ruby's C code. A call in it on a value of a core class reaches Ruby's own method,
//! whatever the program has redefined or prepended: `size`, `each` of the Array itself, arithmetic of indices. So do
//! `is_a?`, `nil?`, `raise` and the like on any receiver ([`crate::infer`], `redefined.rs`). Where Ruby's C code calls
//! a method by its name, the text says so: `x.__asked == item` calls the `==` that the program defines. On objects of
//! the program's own classes, all other calls reach the program's methods. But a method of Enumerable calls only `each`
//! of the object itself. If Ruby calls a method that the text does not call, a program that redefines it is refused
//! (`asks_nothing_redefined`).

mod operations;
mod powers;

use crate::id::{MethodId, ScopeId};
use crate::source::Source;
use crate::syntax::ast::{Name, fused, listed};
use crate::syntax::parse_method;
use crate::world::MethodSource;
use once_cell::sync::Lazy;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

pub use powers::table as powers_of_ten;

/// The prelude's numbers of methods begin here; a World never numbers so many.
const FIRST: u32 = 0xf000_0000;

/// The scope of the prelude: the top level.
pub const SCOPE: ScopeId = ScopeId(u32::MAX);

struct Prelude {
    files: Vec<File>,
    index: HashMap<(Name, Name), MethodId>,
    methods: Vec<Method>,
}

struct File {
    path: String,
    text: Cow<'static, str>,
}

struct Method {
    label: String,
    /// Whether it is a function of its own, instead of being inlined; the name of its file decides. A function raises
    /// nothing.
    function: bool,
    /// The number of its file, and its position there.
    file: usize,
    slice: Range<usize>,
    parsed: once_cell::sync::OnceCell<MethodSource>,
}

static PRELUDE: Lazy<Prelude> = Lazy::new(|| {
    let mut prelude = Prelude { files: Vec::new(), index: HashMap::new(), methods: Vec::new() };
    for (file, text) in [
        ("array.rb", include_str!("array.rb")),
        ("complex.rb", include_str!("complex.rb")),
        ("enumerable.rb", include_str!("enumerable.rb")),
        ("float.rb", include_str!("float.rb")),
        ("hash.rb", include_str!("hash.rb")),
        ("hash_functions.rb", include_str!("hash_functions.rb")),
        ("ikra.rb", include_str!("ikra.rb")),
        ("kernel.rb", include_str!("kernel.rb")),
        ("lists.rb", include_str!("lists.rb")),
        ("made_hash.rb", include_str!("made_hash.rb")),
        ("made_hash_functions.rb", include_str!("made_hash_functions.rb")),
        ("match_data.rb", include_str!("match_data.rb")),
        ("mdarray.rb", include_str!("mdarray.rb")),
        ("operations.rb", include_str!("operations.rb")),
        ("range.rb", include_str!("range.rb")),
        ("rational.rb", include_str!("rational.rb")),
        ("regexp.rb", include_str!("regexp.rb")),
        ("string.rb", include_str!("string.rb")),
        ("string_functions.rb", include_str!("string_functions.rb")),
        ("integer.rb", include_str!("integer.rb")),
        ("struct.rb", include_str!("struct.rb")),
        ("symbol.rb", include_str!("symbol.rb")),
    ] {
        prelude.read(file, text.into());
    }
    prelude.read("operations.rb", operations::several().into());
    prelude
});

impl Prelude {
    /// Records the methods of a file. It reads the file by lines and parses nothing, so that the first use of one
    /// method does not wait for all.
    fn read(&mut self, name: &str, text: Cow<'static, str>) {
        let mut owner: Name = "".into();
        for item in items(&text) {
            match item {
                Item::Scope(name) => owner = name.into(),
                Item::Alias(name, original) => {
                    let id = self.index[&(owner.clone(), original.into())];
                    self.index.insert((owner.clone(), name.into()), id);
                }
                Item::Method { name: method, on_self, slice } => {
                    let id = MethodId(FIRST + self.methods.len() as u32);
                    self.methods.push(Method {
                        label: format!("{owner}#{method}"),
                        function: name.ends_with("_functions.rb"),
                        file: self.files.len(),
                        slice,
                        parsed: once_cell::sync::OnceCell::new(),
                    });
                    let owner = if on_self { format!("{owner}.").into() } else { owner.clone() };
                    self.index.insert((owner, method.into()), id);
                }
            }
        }
        self.files.push(File { path: format!("<ikra/{name}>"), text });
    }
}

/// A piece of a file of the prelude.
#[derive(Debug, PartialEq)]
enum Item<'a> {
    Scope(&'a str),
    Method { name: &'a str, on_self: bool, slice: Range<usize> },
    Alias(&'a str, &'a str),
}

/// The definitions in a file of the prelude. Scopes begin at the margin; methods and their ends are indented by two
/// spaces.
fn items(text: &str) -> Vec<Item<'_>> {
    let mut found = Vec::new();
    // the method whose end has not been read yet
    let mut open: Option<(&str, bool, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let (start, code) = (at, line.trim_end());
        at += line.len();
        if let Some(scope) = code.strip_prefix("class ").or_else(|| code.strip_prefix("module ")) {
            found.push(Item::Scope(scope));
        } else if let Some(names) = code.strip_prefix("  alias ") {
            let (name, original) = names.split_once(' ').unwrap_or((names, names));
            found.push(Item::Alias(name, original));
        } else if let Some(head) = code.strip_prefix("  def ") {
            let (on_self, head) = head.strip_prefix("self.").map_or((false, head), |head| (true, head));
            let name = &head[..head.find(['(', ' ']).unwrap_or(head.len())];
            open = Some((name, on_self, start + 2));
        }
        // `# rubocop:disable` may follow a parenthesis
        let ends = code == "  end" || code.starts_with("  def ") && code.contains(") = ");
        if ends && let Some((name, on_self, from)) = open.take() {
            found.push(Item::Method { name, on_self, slice: from..start + code.len() });
        }
    }
    found
}

/// Whether a method is the prelude's.
pub fn contains(method: MethodId) -> bool {
    method.0 >= FIRST
}

/// The method of that name, for a receiver of a core class (`Array`, `Range`; empty for others) whose method `owner`
/// defines. It is the class's own form, if the prelude has one, or that of the owner. Arrays, Ranges and Structs have
/// all methods of Enumerable, with the same meaning. Some of a Hash's own methods return Hashes instead.
pub fn find(class: &str, owner: &str, name: &str) -> Option<MethodId> {
    // a Struct's own has its members as keys
    let is_other = (owner, name) == ("Struct", "to_h");
    let is_enumerable = matches!(owner, "Array" | "Range" | "Struct") && !is_other;
    let shared = || is_enumerable.then(|| of("Enumerable", name)).flatten();
    of(class, name).or_else(|| of(owner, name)).or_else(shared)
}

/// The method of that name of a class whose objects consist of their parts alone. The class defines it itself, or has
/// it from `owner`.
pub fn own(class: &str, owner: &str, name: &str) -> Option<MethodId> {
    let shared = matches!(owner, "Numeric" | "Comparable");
    find("", if shared { class } else { owner }, name)
}

fn of(owner: &str, name: &str) -> Option<MethodId> {
    PRELUDE.index.get(&(owner.into(), name.into())).copied()
}

/// A method that only the prelude calls, or that the parser put in place of an iterator without a block. It is one of
/// the class, of all lists, of numbers, of Enumerable (if the receiver's class includes it), or of every object.
pub fn helper(class: &str, enumerable: bool, name: &str) -> Option<MethodId> {
    let family = match class {
        "Array" | "Hash" | "MadeHash" | "Range" => "List",
        "Float" | "Integer" => "Numeric",
        _ => "",
    };
    [class, family, if enumerable { "Enumerable" } else { "" }, "Kernel"].into_iter().find_map(|owner| of(owner, name))
}

/// Methods of Ruby's own that take more arguments than the prelude's, and what to write instead.
const MORE_ARGUMENTS: &[(&[&str], &str)] = &[
    (&["inject", "reduce"], "write inject(start, :name) or inject(start) { … }"),
    (&["dig"], "dig five levels at a time"),
    (&["round", "floor", "ceil", "truncate"], "multiply by a power of ten, round, and divide"),
    (&["upcase", "downcase", "capitalize", "swapcase"], "leave its options out"),
    (&["each_with_index", "each_entry", "reverse_each"], "leave them out"),
    (&["find_index", "index", "fill"], "write a loop"),
    (&["merge", "merge!", "update"], "merge three Hashes at a time"),
    (&["tally"], "count in a Hash of your own: counts[x] += 1"),
];

/// The advice for a call with more arguments than the prelude's method takes, if Ruby's own takes more.
pub fn instead_of_longer(name: &str) -> Option<&'static str> {
    MORE_ARGUMENTS.iter().find(|(names, _)| names.contains(&name)).map(|(_, advice)| *advice)
}

/// Methods that take one argument or none, of which Ruby's message says that one is expected.
const EXPECTING_ONE: &[&str] = &["Enumerable#count", "Hash#count", "Range#count", "Range#__first"];

/// Whether the message about a wrong number of arguments says that one is expected.
pub fn expects_one(method: MethodId) -> bool {
    label(method).is_some_and(|label| EXPECTING_ONE.contains(&label))
}

/// Whether a method of Ruby's own, called without a block, always returns an Enumerator.
pub fn needs_block(method: MethodId) -> bool {
    let Some(method) = method.0.checked_sub(FIRST).and_then(|at| PRELUDE.methods.get(at as usize)) else {
        return false;
    };
    let text = &PRELUDE.files[method.file].text[method.slice.clone()];
    let own = !method.label.contains("#__") && !method.label.contains(".__");
    own && text.contains("yield") && !text.contains("block_given?") && !text.contains("(none = true)")
}

/// Whether a method is the prelude's and is inlined into its callers.
pub fn is_inlined(method: MethodId) -> bool {
    method.0.checked_sub(FIRST).and_then(|at| PRELUDE.methods.get(at as usize)).is_some_and(|m| !m.function)
}

/// The prelude's name of a method, `Enumerable#inject`.
pub fn label(method: MethodId) -> Option<&'static str> {
    PRELUDE.methods.get(method.0.checked_sub(FIRST)? as usize).map(|m| &*m.label)
}

/// A method of the prelude, as messages name it: by the method of Ruby that the program called. The label is
/// `Range#__endless`, or the name alone.
pub fn written(label: &str) -> String {
    let (owner, name) = label.rfind(['#', '.']).map_or(("", label), |at| label.split_at(at + 1));
    let name = name.strip_prefix('%').unwrap_or(name);
    let Some(helper) = name.strip_prefix("__") else { return label.into() };
    let ruby = match helper {
        "endless" => "each",
        "includes" => "include?",
        "cover" => "cover?",
        "covers" => "===",
        _ => listed(name).or_else(|| fused(name).map(|(_, outer)| outer)).unwrap_or(helper),
    };
    format!("{owner}{ruby}")
}

/// The source of one of the prelude's methods.
pub fn source(method: MethodId) -> Option<MethodSource> {
    let method = PRELUDE.methods.get(method.0.checked_sub(FIRST)? as usize)?;
    let parsed = method.parsed.get_or_init(|| {
        let File { path, text } = &PRELUDE.files[method.file];
        let source = Arc::new(Source { slice: method.slice.clone(), ..Source::own(path, text) });
        let unit = parse_method(&source).unwrap_or_else(|d| panic!("the prelude parses: {d:?}"));
        MethodSource { unit: Arc::new(unit), scope: SCOPE, label: method.label.clone(), around: None }
    });
    Some(parsed.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_a_line_is_what_the_parser_finds() {
        use crate::syntax::{Item as Parsed, outline};
        for File { path, text } in &PRELUDE.files {
            let mut parsed = Vec::new();
            let whole = outline(&Arc::new(Source::own(path, text))).expect("the prelude parses");
            for scope in &whole {
                let Parsed::Scope { path, body, .. } = scope else { panic!("{scope:?} at the margin") };
                parsed.push(Item::Scope(path.last().expect("a name")));
                parsed.extend(body.iter().map(|item| match item {
                    Parsed::Method { name, on_self, span, .. } => {
                        let slice = span.start as usize..span.end as usize;
                        Item::Method { name, on_self: *on_self, slice }
                    }
                    Parsed::Alias { name, original } => Item::Alias(name, original),
                    other => panic!("{other:?} in the prelude"),
                }));
            }
            assert_eq!(items(text), parsed, "{path}");
        }
    }

    #[test]
    fn every_method_of_the_prelude_parses() {
        for i in 0..PRELUDE.methods.len() {
            assert!(source(MethodId(FIRST + i as u32)).is_some());
        }
        assert!(find("Array", "Array", "any?").is_some());
        assert_eq!(find("Array", "Enumerable", "collect"), find("Array", "Enumerable", "map"));
    }
}
