//! Methods of Ruby's core classes that a program has redefined, and calls that these do not affect.
//!
//! Here: which calls reach Ruby's own definition, whatever the program defines. They are the calls in Ikra's own text,
//! which stands for Ruby's C code ([`crate::prelude`] has the convention). Also here: what is refused because Ruby's C
//! code calls a redefined method where kernels do not. Not here: look-up of all other calls ([`super::calls`]).

use super::builtins;
use super::calls::{Answer, Refusal, Target, class_of, is_known, receiver_of};
use super::{Analysis, SpecId};
use crate::id::ClassId;
use crate::syntax::ast::{ASKED, FIXED, NAMED, fused, plain, primitive};
use crate::types::Atom;
use crate::world::{MethodFact, Receiver, values, well_known};

/// The rule by which a call looks up its method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The program's call: it reaches what the program defines.
    Program,
    /// Ruby's C code calls no method here: the call reaches what Ruby itself defines.
    Ruby,
    /// Ruby's C code calls a method by its name.
    Asked,
}

/// Methods that Ruby's C code never calls by name, whatever the receiver.
const NEVER_ASKED: &[&str] = &[
    "!",
    "block_given?",
    "class",
    "equal?",
    "fail",
    "instance_of?",
    "is_a?",
    "itself",
    "kind_of?",
    "lambda",
    "loop",
    "nil?",
    "proc",
    "raise",
];

/// Methods that Ruby's own Numeric methods call on numbers.
const ASKED_OF_NUMBERS: &[&str] = &[
    "zero?",
    "floor",
    "%",
    "/",
    "*",
    "+",
    "-",
    "-@",
    "<",
    ">",
    "==",
    "<=>",
    "div",
    "negative?",
    "positive?",
    "coerce",
];

/// Pairs of names of one core method. Ruby defines the first as an alias of the second.
const ALIASES: &[(&str, &str)] =
    &[("inspect", "to_s"), ("to_s", "inspect"), ("magnitude", "abs"), ("append", "push"), ("prepend", "unshift")];

/// Whether `name` is an alias that Ruby itself defines for the method `original`.
fn is_rubys_alias(name: &str, original: &str) -> bool {
    name == original || ALIASES.contains(&(name, original))
}

/// The name under which kernels know the method of Ruby's own that a call by `name` reaches.
pub(super) fn known_as<'a>(name: &'a str, original: &'a str) -> &'a str {
    if is_rubys_alias(name, original) { name } else { original }
}

/// The classes and modules in which Ruby itself defines the methods of a kind of value, if Ikra's own text calls them.
/// None for the program's own classes.
fn owners(atom: Atom) -> &'static [&'static str] {
    match atom {
        Atom::Nil => &["NilClass", "Kernel"],
        Atom::True => &["TrueClass", "Kernel"],
        Atom::False => &["FalseClass", "Kernel"],
        Atom::Int => &["Integer", "Numeric", "Comparable", "Kernel"],
        Atom::Float => &["Float", "Numeric", "Comparable", "Kernel"],
        Atom::Sym => &["Symbol", "Comparable", "Kernel"],
        Atom::Str => &["String", "Comparable", "Kernel"],
        Atom::IntRange | Atom::FloatRange | Atom::Object(well_known::RANGE) => &["Range", "Enumerable", "Kernel"],
        Atom::Array(_) => &["Array", "Enumerable", "Kernel"],
        Atom::Proc(_) => &["Proc"],
        Atom::Regexp(_) => &["Regexp", "Kernel"],
        Atom::Module(well_known::MATH) => &["Math"],
        Atom::Module(_) => &["Class", "Module", "Kernel"],
        Atom::Object(class) if well_known::is_hash(class) => &["Hash", "Enumerable"],
        Atom::Object(well_known::COMPLEX) => &["Complex", "Numeric"],
        Atom::Object(well_known::RATIONAL) => &["Rational", "Numeric", "Comparable"],
        Atom::Object(well_known::MATCH_DATA) => &["MatchData", "Kernel"],
        Atom::Object(_) | Atom::Exception => &[],
    }
}

/// Whether the class of a kind of value is one of Ruby's own.
fn is_core(atom: Atom) -> bool {
    match atom {
        Atom::Object(class) => well_known::is_hash(class) || values::is_value(class),
        Atom::Exception | Atom::Module(_) | Atom::Proc(_) => false,
        _ => true,
    }
}

/// Whether Ruby itself defines a method of that name for a kind of value, as far as kernels know.
fn is_of_ruby(atom: Atom, name: &str) -> bool {
    // kernels take an object with any of Ruby's methods for the Range in registers
    let atom = if atom == Atom::Object(well_known::RANGE) { Atom::IntRange } else { atom };
    primitive(name).is_none() && owners(atom).iter().any(|owner| is_known(atom, owner, name))
}

fn is_rubys_own(fact: &MethodFact, name: &str) -> bool {
    matches!(fact, MethodFact::Builtin { name: original, .. } if is_rubys_alias(name, original))
}

impl Analysis<'_> {
    /// The rule by which a call in a body looks up its method, and the name without its mark.
    pub(super) fn origin<'n>(&self, from: SpecId, name: &'n str) -> (Origin, &'n str) {
        let origin = match name.chars().next() {
            Some(ASKED) => Origin::Asked,
            Some(NAMED) => Origin::Program,
            Some(FIXED) => Origin::Ruby,
            _ if self.is_own(from) => Origin::Ruby,
            _ => Origin::Program,
        };
        (origin, plain(name))
    }

    /// Whether a body is Ikra's own text, which stands for Ruby's C code.
    fn is_own(&self, from: SpecId) -> bool {
        let source = &self.spec(from).unit.source;
        source.own || source.is_internal()
    }

    /// The target that Ruby itself defines for a name. None: kernels do not know it, or it depends on the receiver's
    /// class.
    ///
    /// # Errors
    /// A text of the library that does not parse.
    pub(super) fn rubys_own(&mut self, from: SpecId, atom: Atom, name: &str, on_self: bool) -> Answer<Option<Target>> {
        // a Range object uses its form in registers for everything else
        let is_range = atom == Atom::Object(well_known::RANGE);
        let kernels = NEVER_ASKED.contains(&name).then(|| builtins::find(atom, "Kernel", name)).flatten();
        if let (Some(builtin), true) = (kernels, is_range) {
            return Ok(Some(Target::Builtin(builtin)));
        }
        for owner in owners(atom) {
            if let Some(target) = self.builtin_target(atom, owner, name)? {
                return Ok(Some(target));
            }
        }
        if NEVER_ASKED.contains(&name) {
            return Ok(kernels.map(Target::Builtin));
        }
        // Ruby's Enumerable calls `each` on itself, and no other method
        let label = &self.spec(from).label;
        if on_self && name != "each" && matches!(atom, Atom::Object(_)) && is_enumerables(label) {
            return Ok(crate::prelude::find("", "Enumerable", name).map(Target::Ruby));
        }
        Ok(None)
    }

    /// Whether a kind of value has Ruby's own method of that name, neither redefined nor removed, or never had one.
    pub fn is_unaltered(&mut self, atom: Atom, name: &str) -> bool {
        match self.method(receiver_of(atom), name) {
            MethodFact::Missing { .. } => !is_of_ruby(atom, name),
            fact => is_rubys_own(&fact, name),
        }
    }

    /// Whether a class has Ruby's own method of that name, neither redefined nor removed.
    pub(super) fn is_unaltered_of(&mut self, class: ClassId, name: &str) -> bool {
        let fact = self.method(Receiver::Instance(class), name);
        is_rubys_own(&fact, name)
    }

    /// Whether a call by this name in a body reaches Ruby's own method for a kind of value of a core class.
    pub fn reaches_rubys(&mut self, from: SpecId, atom: Atom, name: &str) -> bool {
        let (origin, name) = self.origin(from, name);
        origin == Origin::Ruby || primitive(name).is_some() || {
            let fact = self.method(receiver_of(atom), name);
            is_rubys_own(&fact, name)
        }
    }

    /// Refuses methods that Ruby's C code calls by name but not always, since kernels cannot leave out the same calls.
    ///
    /// # Errors
    /// A redefined method.
    pub(super) fn may_be_asked(&mut self, atom: Atom, name: &str) -> Answer<()> {
        // every object has a hash, unless the program has removed it
        if name == "eql?" && matches!(self.method(receiver_of(atom), "hash"), MethodFact::Missing { .. }) {
            return Err(self.redefined(atom, "hash", "the program has removed it"));
        }
        if !is_core(atom) {
            return Ok(());
        }
        let asked: &[&str] = match name {
            "==" => &["=="],
            "eql?" => &["eql?", "==", "hash"],
            "<" | ">" if atom == Atom::Float => &["<", ">"],
            "respond_to?" => &["respond_to?", "respond_to_missing?"],
            _ => return Ok(()),
        };
        self.is_not_redefined(atom, asked, "Ruby's own methods ask it in some places, and not in others")
    }

    /// Refuses a method of Ruby's own whose C code calls a method of the receiver that the program has redefined.
    ///
    /// # Errors
    /// Such a method.
    pub(super) fn asks_nothing_redefined(&mut self, atom: Atom, owner: &str, name: &str) -> Answer<()> {
        let number = matches!(atom, Atom::Int | Atom::Float);
        let range = matches!(atom, Atom::IntRange | Atom::FloatRange | Atom::Object(well_known::RANGE));
        let asked: &[&str] = match (owner, name) {
            ("Enumerable", "each_slice" | "each_cons") if is_core(atom) => &["each", "size"],
            ("Enumerable", _) if is_core(atom) => &["each"],
            ("Array", "sort_by!") => &["sort_by", "each"],
            ("Hash", "[]" | "dig" | "values_at") => {
                if !self.is_unaltered_of(well_known::HASH, "default") {
                    return Err(self.redefined(atom, "default", &format!("{owner}#{name} asks it")));
                }
                &[]
            }
            ("Range", "to_a" | "entries" | "first" | "last" | "count" | "min" | "max" | "minmax") => {
                &["each", "to_a", "min", "max"]
            }
            ("Comparable", "clamp" | "between?") if number => &["<=>"],
            ("Numeric", "eql?") if number => &["=="],
            ("Numeric", "nonzero?") if number => &["zero?"],
            ("Integer", "digits") => &["<"],
            // Ruby 3.3 and later implement it in Ruby
            ("Integer", "times") => &["<", "succ"],
            (_, "===") if matches!(atom, Atom::Nil | Atom::True | Atom::False | Atom::Array(_)) => &["=="],
            _ => &[],
        };
        let because = format!("{owner}#{name} asks it");
        if owner == "Range" {
            self.enumerables_is_unaltered(name, &because)?;
        }
        self.is_not_redefined(atom, asked, &because)?;
        let of_numbers: &[&str] = match (owner, name) {
            (_, "include?" | "member?" | "cover?" | "===" | "min" | "max" | "minmax") if range => &["<=>"],
            (_, "==" | "eql?") if range => &["=="],
            ("Numeric", "eql?" | "nonzero?") => &[],
            ("Numeric", _) | ("Integer", "remainder") if number => ASKED_OF_NUMBERS,
            _ if has_numbers(atom) => ASKED_OF_NUMBERS,
            _ => &[],
        };
        self.numbers_are_not_redefined(of_numbers, &because)
    }

    /// Refuses a primitive if a method that it stands for, or that Ruby's C code would call in its place, is redefined.
    ///
    /// # Errors
    /// A redefined method.
    pub(super) fn stands_for_rubys(&mut self, atom: Atom, primitive: &str) -> Answer<()> {
        let Some(short) = primitive.strip_prefix("__") else { return Ok(()) };
        let range = matches!(atom, Atom::IntRange | Atom::FloatRange | Atom::Object(well_known::RANGE));
        if has_numbers(atom) {
            self.numbers_are_not_redefined(ASKED_OF_NUMBERS, "arithmetic of Rationals and Complexes asks it")?;
        }
        match short {
            "list?" | "patterns" => {
                self.numbers_are_not_redefined(&["==", ">=", "<=", "+", "-"], "patterns ask it")?;
                for name in ["deconstruct", "length", "[]"] {
                    if !self.is_unaltered_of(well_known::ARRAY, name) {
                        return Err(Refusal::new(format!("kernels do not ask Array for a redefined {name} here"))
                            .because("patterns ask it")
                            .advise("call the redefined method yourself, or leave Ruby's own as it is"));
                    }
                }
            }
            "map_with_index" => {
                for name in ["map", "each_with_index"] {
                    self.enumerables_is_unaltered(name, "each_with_index.map asks it")?;
                }
            }
            "keys?" => {
                self.is_not_redefined(
                    Atom::Object(well_known::HASH),
                    &["key?", "[]", "fetch", "size"],
                    "patterns ask it",
                )?;
                // where a program has removed it, no pattern of keys matches a Hash
                let is_hash = matches!(atom, Atom::Object(class) if well_known::is_hash(class));
                if is_hash && !self.is_unaltered_of(well_known::HASH, "deconstruct_keys") {
                    return Err(self.redefined(atom, "deconstruct_keys", "patterns ask it"));
                }
            }
            "splat" | "rest" if range => self.enumerables_is_unaltered("to_a", "Range#to_a asks it")?,
            _ => match fused(primitive) {
                Some(("zip", outer)) if !self.is_unaltered_of(well_known::ARRAY, outer) => {
                    return Err(Refusal::new(format!("kernels do not ask Array for a redefined {outer} here"))
                        .because("zip gives an Array")
                        .advise("call zip first, and the redefined method on a local variable"));
                }
                Some((inner @ "each_with_index", outer)) => {
                    for name in [inner, outer] {
                        self.enumerables_is_unaltered(name, "each_with_index has it")?;
                    }
                }
                _ => {}
            },
        }
        if short.ends_with("_with_index") && !self.is_unaltered_of(well_known::ENUMERATOR, "with_index") {
            return Err(Refusal::new("kernels do not ask an Enumerator for a redefined with_index")
                .because("kernels make no Enumerators")
                .advise("give the method another name, or leave Ruby's own as it is"));
        }
        let asked: Vec<&str> = match short {
            "splat" | "rest" if !matches!(atom, Atom::Array(_)) => vec!["to_a", "each", "respond_to?"],
            "nth" if range => vec!["each"],
            "keys?" => vec!["deconstruct_keys"],
            _ if fused(primitive).is_some() => {
                fused(primitive).into_iter().map(|(inner, _)| inner).chain(["each"]).collect()
            }
            _ => match (short.strip_prefix("list_").or(short.strip_prefix("span_")), short.strip_suffix("_with_index"))
            {
                (Some("with_index"), _) => return Ok(()),
                (Some(written), _) => vec![written, "each"],
                (_, Some(written)) => vec![written, "each", "each_with_index"],
                _ => return Ok(()),
            },
        };
        if matches!(atom, Atom::Object(_)) && !is_core(atom) {
            // primitives on the program's own classes call the program's methods, with this one exception
            let own = short == "map_with_index" && !self.is_unaltered(atom, "each_with_index");
            return if own { Err(self.redefined(atom, "each_with_index", "map asks it")) } else { Ok(()) };
        }
        self.is_not_redefined(atom, &asked, "Ruby asks it here")
    }

    /// Refuses a method on the list that stands for an Enumerator, if a method of that name is redefined for
    /// Enumerators or lists.
    ///
    /// # Errors
    /// Such a method.
    pub(super) fn list_is_an_enumerator(&mut self, atom: Atom, name: &str) -> Answer<()> {
        let name = plain(name);
        if !matches!(atom, Atom::Array(_) | Atom::IntRange) || primitive(name).is_some() {
            return Ok(());
        }
        self.enumerables_is_unaltered(name, "an iterator has it")?;
        self.is_not_redefined(atom, &[name], "an Enumerator has another, and here a list stands for it")
    }

    fn enumerables_is_unaltered(&mut self, name: &str, because: &str) -> Answer<()> {
        let never = crate::prelude::find("", "Enumerable", name).is_none();
        let fact = self.method(Receiver::Instance(well_known::ENUMERABLE), name);
        if is_rubys_own(&fact, name) || never && matches!(fact, MethodFact::Missing { .. }) {
            return Ok(());
        }
        Err(Refusal::new(format!("kernels do not ask Enumerable for a redefined {name} here"))
            .because(because)
            .advise("call it on an Array"))
    }

    fn numbers_are_not_redefined(&mut self, names: &[&str], because: &str) -> Answer<()> {
        self.is_not_redefined(Atom::Int, names, because)?;
        self.is_not_redefined(Atom::Float, names, because)
    }

    fn is_not_redefined(&mut self, atom: Atom, names: &[&str], because: &str) -> Answer<()> {
        match names.iter().find(|name| !self.is_unaltered(atom, name)) {
            Some(name) => Err(self.redefined(atom, name, because)),
            None => Ok(()),
        }
    }

    fn redefined(&mut self, atom: Atom, name: &str, because: &str) -> Refusal {
        let class = self.class(class_of(atom)).name;
        Refusal::new(format!("kernels do not ask {class} for a redefined {name} here"))
            .because(because)
            .advise("call the redefined method yourself, or leave Ruby's own as it is")
    }
}

/// Whether a kind of value has numeric parts, on which Ruby's C code calls their own operators.
fn has_numbers(atom: Atom) -> bool {
    matches!(atom, Atom::Object(well_known::COMPLEX | well_known::RATIONAL))
}

/// Whether a method of the prelude is one of Ruby's Enumerable.
fn is_enumerables(label: &str) -> bool {
    label.strip_prefix("Enumerable#").is_some_and(|name| !name.starts_with("__"))
}
