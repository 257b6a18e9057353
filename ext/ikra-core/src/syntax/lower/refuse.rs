//! Messages for Ruby for which our tree has no node.
//!
//! `what` is a noun phrase that completes "kernels do not know …"; `advice` follows "Instead:". Neither is an error
//! until inference reaches the node.

use crate::syntax::ast::Kind;
use lib_ruby_parser::Node as Ruby;

pub(super) const fn refuse(what: &'static str, advice: &'static str) -> Kind {
    Kind::Unsupported { what, advice }
}

pub(super) const INDENTED_HEREDOC: Kind = refuse(
    "an indented heredoc with interpolation and a line of blanks alone, or one that ends with \\",
    "leave out what stands there, or write it with <<-",
);
pub(super) const NAMED_FORMAT: Kind =
    refuse("a format of the program's own with named values", "call that method by another name");
pub(super) const INTERPOLATED_SYMBOL: Kind =
    refuse("a symbol with interpolation", "choose between plain symbols with `case` or `if`");
pub(super) const BINARY_SYMBOL: Kind = refuse("a symbol that is not valid UTF-8", "use a symbol of valid characters");
pub(super) const FOREIGN_STRING: Kind =
    refuse("a String literal that is not in UTF-8", "write it in a file in UTF-8, or capture the String");
pub(super) const RATIONAL_PART: Kind = refuse("a Complex of Rationals", "write its parts as Integers or Floats");
pub(super) const NUMBER: Kind = refuse("this number", "write it in plain decimal form");
pub(super) const FLIP_FLOP_IN_BLOCK: Kind = refuse(
    "a flip-flop (a range as a condition) in a section's block",
    "compare with the two bounds, or write it in a method that goes over a list of its own: elements, which run at the \
     same time, cannot carry its state",
);
pub(super) const LINE_NUMBERS: Kind =
    refuse("a flip-flop of line numbers", "compare with something: `if (x == 2)..(x == 4)`");
pub(super) const FORWARDING: Kind =
    refuse("argument forwarding (`...`, `*`, `**`, `&`)", "name the parameters and pass them on by name");
pub(super) const DEFAULT_OF_APART: Kind = refuse(
    "a default that reads a parameter in parentheses",
    "assign the default in the body: Ruby takes an array apart after the defaults, which see nil",
);
pub(super) const SUPER_BLOCK: Kind =
    refuse("a block passed on to `super` with `&`", "give `super` a literal block: `super(x) { |y| … }`");
pub(super) const HASH_SPLAT: Kind =
    refuse("`**` in a Hash literal", "write the keys out, or build the Hash before the call and capture it");
pub(super) const REST: Kind = refuse(
    "the Hash that `**` of a pattern gives, but for the keys that are written out",
    "ask it for rest[:key], rest.key?(:key), rest.size or rest.empty? where the pattern has matched",
);
pub(super) const METHOD_NAME: Kind =
    refuse("`__method__` in a block", "store it in a local variable before the call and use that in the block");

pub(super) const OTHER_REST: (&str, &str) =
    ("a variable that `**` of a pattern binds and something else assigns", "give them different names");

const GLOBAL: (&str, &str) =
    ("a global variable", "copy it into a local variable before the call and use that in the block");
const OUTPUT: (&str, &str) = ("a global variable", "give the value as pmap's result, and print it afterwards");
pub(super) const MATCH_VARIABLE: Kind =
    refuse("this variable of the last match", "write text[/…/, 1] for the first group");
pub(super) const NAMED_GROUPS: Kind =
    refuse("a match that assigns variables", "write text =~ /…/, or text[/…/, 1] for a part");
const LAST_LINE: (&str, &str) = ("a match of the last line that was read", "write text.match?(/…/)");
pub(super) const INTERPOLATED_REGEXP: Kind = refuse(
    "a regular expression with interpolation",
    "assign it to a constant, or to a variable before the call: kernels know what these hold",
);
pub(super) const REGEXP_OPTION: Kind =
    refuse("this option of a regular expression", "write the file in UTF-8, and leave the option out");
const PATTERN: (&str, &str) =
    ("this form of pattern matching", "name the keys that matter (`{x:, y: 1}`), and read the others as attributes");
const DEFINITION: (&str, &str) =
    ("a definition of a method or class", "define it outside the block; the block can call it");
const NAMES: (&str, &str) = ("`alias` and `undef`", "do this once, outside the block");
const COMMAND: (&str, &str) = ("a shell command", "run it before the call and capture its result");
const HOOK: (&str, &str) = ("`BEGIN` and `END`", "put this before or after the call");
const AGAIN: (&str, &str) = ("`redo`", "use a `while` loop or `loop do … end` around what is to be repeated");
const ENCODING: (&str, &str) = ("`__ENCODING__`", "store it in a local variable before the call");
const OTHER: (&str, &str) = ("this construct", "compute it before the call and capture the result");

/// Any expression without a node of ours.
pub(super) fn node(node: &Ruby) -> Kind {
    let (what, advice) = describe(node);
    refuse(what, advice)
}

/// Any target that a kernel cannot assign to.
pub(super) fn target(node: &Ruby) -> (&'static str, &'static str) {
    match node {
        Ruby::Gvasgn(_) => (
            "an assignment to a global variable",
            "assign to a local variable of the caller, and to the global after the call",
        ),
        Ruby::Casgn(_) => ("an assignment to a constant", "use a local variable"),
        Ruby::Kwargs(_) => ("keywords in an index assignment", "call a method of your own with these keywords"),
        Ruby::BlockPass(_) => ("a block in an index assignment", "call a method of your own with this block"),
        other => describe(other),
    }
}

fn describe(node: &Ruby) -> (&'static str, &'static str) {
    match node {
        Ruby::Gvar(variable) if matches!(&*variable.name, "$stdout" | "$stderr" | "$>") => OUTPUT,
        Ruby::Gvar(_) => GLOBAL,
        Ruby::MatchCurrentLine(_) => LAST_LINE,
        Ruby::MatchRest(_)
        | Ruby::MatchNilPattern(_)
        | Ruby::HashPattern(_)
        | Ruby::ConstPattern(_)
        | Ruby::Pair(_) => PATTERN,
        Ruby::Def(_) | Ruby::Defs(_) | Ruby::Class(_) | Ruby::Module(_) | Ruby::SClass(_) => DEFINITION,
        Ruby::Alias(_) | Ruby::Undef(_) => NAMES,
        Ruby::Xstr(_) | Ruby::XHeredoc(_) => COMMAND,
        Ruby::Preexe(_) | Ruby::Postexe(_) => HOOK,
        Ruby::Redo(_) => AGAIN,
        Ruby::Encoding(_) => ENCODING,
        Ruby::ForwardedArgs(_) | Ruby::ForwardArg(_) => {
            ("argument forwarding (`...`)", "name the parameters and pass them on by name")
        }
        _ => OTHER,
    }
}
