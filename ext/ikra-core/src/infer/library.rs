//! Ruby's own methods that are C in Ruby and Ruby here. Inference types their bodies and lowering lowers them, like
//! those of any method.
//!
//! Here: their text, and the calls that only they can make (`__same?`, `__at`, …), which no class can redefine. Not
//! here: methods that need no body ([`super::builtins`]). Invariant: a method of the library raises nothing itself, so
//! messages never show a position in it.

use super::builtins::Builtin;
use super::calls::{Answer, Refusal, Target};
use super::{Analysis, SpecId};
use crate::diagnostic::Span;
use crate::error::Error;
use crate::id::{ClassId, MethodId};
use crate::source::Source;
use crate::syntax::ast::{Name, PRIMITIVE, Unit};
use crate::syntax::parse_method;
use crate::types::Atom;
use crate::world::{Construction, MethodSource, well_known};
use std::fmt::Write as _;
use std::sync::Arc;

/// The library's numbers of methods begin here and end where the prelude's begin. A World numbers from 0.
const FIRST: u32 = 1 << 31;

/// A method of the library, if its text depends on more than its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    ArrayEqual,
    ArrayEql,
    ArrayCompare,
    /// For this number of members.
    StructEqual(usize),
    StructEql(usize),
    /// Begins a comparison that may come to the same two arrays again.
    ArrayBegin(Comparison),
    /// Goes on with it.
    ArrayWithin(Comparison),
    StructBegin(usize, Comparison),
    StructWithin(usize, Comparison),
    StructInitialize(usize),
    StructKeywords(ClassId),
    StructEither(ClassId),
    DataInitialize(ClassId),
    DataWith(ClassId),
}

/// What two arrays or Structs are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    Equal,
    Eql,
    Order,
}

impl Comparison {
    fn name(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::Eql => "eql?",
            Comparison::Order => "<=>",
        }
    }

    /// The primitive that goes on with a comparison. Values that hold no others are just asked.
    fn within(self) -> &'static str {
        match self {
            Comparison::Equal => "__equal_within",
            Comparison::Eql => "__eql_within",
            Comparison::Order => "__order_within",
        }
    }
}

impl Routine {
    /// The name for messages.
    fn label(self) -> &'static str {
        match self {
            Routine::ArrayEqual => "Array#==",
            Routine::ArrayEql => "Array#eql?",
            Routine::ArrayCompare => "Array#<=>",
            Routine::StructEqual(_) => "Struct#==",
            Routine::StructEql(_) => "Struct#eql?",
            Routine::ArrayBegin(how) | Routine::ArrayWithin(how) => match how {
                Comparison::Equal => "Array#==",
                Comparison::Eql => "Array#eql?",
                Comparison::Order => "Array#<=>",
            },
            Routine::StructBegin(_, how) | Routine::StructWithin(_, how) => match how {
                Comparison::Eql => "Struct#eql?",
                _ => "Struct#==",
            },
            Routine::StructInitialize(_) | Routine::StructKeywords(_) | Routine::StructEither(_) => "Struct#initialize",
            Routine::DataInitialize(_) => "Data#initialize",
            Routine::DataWith(_) => "Data#with",
        }
    }

    /// `members`: the number of members of its class.
    fn text(self, members: usize) -> String {
        match self {
            Routine::ArrayEqual => array_equal("==", "a.__same?(b) || a.__asked == b"),
            Routine::ArrayEql => array_equal("eql?", "a.__same?(b) || a.__asked.eql?(b)"),
            Routine::ArrayCompare => ARRAY_COMPARE.into(),
            Routine::StructEqual(_) => struct_equal("==", members, |a, b| format!("{a}.__asked == {b}")),
            Routine::StructEql(_) => struct_equal("eql?", members, |a, b| format!("{a}.__asked.eql?({b})")),
            Routine::ArrayBegin(how) => begin(how, how.name(), "__array?"),
            Routine::StructBegin(_, how) => begin(how, how.name(), "__kin?"),
            Routine::ArrayWithin(Comparison::Order) => {
                ARRAY_ORDER_WITHIN.replace("TRAIL", &TRAIL.replace("FOUND", "(__size <=> other.__size)"))
            }
            Routine::ArrayWithin(how) => array_within(how),
            Routine::StructWithin(_, how) => struct_within(how, members),
            Routine::StructInitialize(_) => initialize(members, 'a', |i| vec![format!("a{i} = nil")]),
            Routine::StructKeywords(_) => initialize(members, 'k', |i| vec![format!("k{i}: nil")]),
            Routine::StructEither(_) => {
                initialize(members, 'k', |i| vec![format!("a{i} = nil"), format!("k{i}: a{i}")])
            }
            Routine::DataInitialize(_) => initialize(members, 'k', |i| vec![format!("k{i}:")]),
            Routine::DataWith(_) => {
                let params: Vec<String> = (0..members).map(|i| format!("k{i}: __m{i}")).collect();
                let given: Vec<String> = (0..members).map(|i| format!("k{i}")).collect();
                format!("def with({})\n  self.class.new({})\nend", params.join(", "), given.join(", "))
            }
        }
    }
}

fn array_equal(name: &str, same: &str) -> String {
    format!(
        "def {name}(other)
  return true if __same?(other)
  return false unless other.__array?(self)
  return false unless __size == other.__size
  i = 0
  while i < __size
    a = __at(i)
    b = other.__at(i)
    return false unless {same}
    i += 1
  end
  true
end"
    )
}

const ARRAY_COMPARE: &str = "def <=>(other)
  return 0 if __same?(other)
  return nil unless other.__array?(self)
  i = 0
  while i < __size && i < other.__size
    order = __at(i).__asked <=> other.__at(i)
    return order unless order == 0
    i += 1
  end
  __size <=> other.__size
end";

// Ruby remembers which two it is comparing. If it comes to the same two again, they count as equal there. So does this
// text, where the types of a program let arrays or Structs contain themselves. `trail` has three numbers for each two
// that are being compared, `depth` of them in all. `index` finds them there by their hash.

fn begin(how: Comparison, name: &str, kin: &str) -> String {
    let (same, other) = if how == Comparison::Order { ("0", "nil") } else { ("true", "false") };
    format!(
        "def {name}(other)
  return {same} if __same?(other)
  return {other} unless other.{kin}(self)
  {}(other, __build(24) {{ 0 }}, __build(16) {{ 0 }}, 0)
end",
        how.within()
    )
}

/// Returns `FOUND` if the two are being compared already, and adds them otherwise.
const TRAIL: &str = "  kinds = __kinds(other)
  one = __identity
  two = other.__identity
  place = index.__pair_place(trail, one, two, kinds)
  return FOUND if place < 0
  if depth == trail.__size
    short = trail
    trail = __build(depth * 2) { |n| n < depth ? short.__at(n) : 0 }
    index = __build(index.__size * 2) { 0 }
    index.__add_pairs(trail, depth)
    place = index.__pair_place(trail, one, two, kinds)
  end
  trail.__put(depth, one)
  trail.__put(depth + 1, two)
  trail.__put(depth + 2, kinds)
  index.__put(place, depth + 1)
";

fn array_within(how: Comparison) -> String {
    let (name, trail) = (how.within(), TRAIL.replace("FOUND", "true"));
    format!(
        "def {name}(other, trail, index, depth)
  return true if __same?(other)
  return false unless other.__array?(self)
  return false unless __size == other.__size
{trail}  i = 0
  while i < __size
    a = __at(i)
    b = other.__at(i)
    return false unless a.__same?(b) || a.{name}(b, trail, index, depth + 3)
    i += 1
  end
  index.__put(place, 0)
  true
end"
    )
}

const ARRAY_ORDER_WITHIN: &str = "def __order_within(other, trail, index, depth)
  return 0 if __same?(other)
  return nil unless other.__array?(self)
TRAIL  i = 0
  while i < __size && i < other.__size
    order = __at(i).__order_within(other.__at(i), trail, index, depth + 3)
    return order unless order == 0
    i += 1
  end
  index.__put(place, 0)
  __size <=> other.__size
end";

fn struct_within(how: Comparison, members: usize) -> String {
    let (name, trail) = (how.within(), TRAIL.replace("FOUND", "true"));
    let mut text = format!("def {name}(other, trail, index, depth)\n  return true if __same?(other)\n");
    text += "  return false unless other.__kin?(self)\n";
    text += &trail;
    for i in 0..members {
        let (a, b) = (format!("__m{i}"), format!("other.__m{i}"));
        let _ = writeln!(text, "  return false unless {a}.__same?({b}) || {a}.{name}({b}, trail, index, depth + 3)");
    }
    text + "  index.__put(place, 0)\n  true\nend"
}

fn struct_equal(name: &str, members: usize, equal: impl Fn(&str, &str) -> String) -> String {
    let mut text = format!("def {name}(other)\n  return true if __same?(other)\n");
    text += "  return false unless other.__kin?(self)\n";
    for i in 0..members {
        let (a, b) = (format!("__m{i}"), format!("other.__m{i}"));
        let _ = writeln!(text, "  return false unless {a}.__same?({b}) || {}", equal(&a, &b));
    }
    text + "  true\nend"
}

/// `params` gives the parameters of a member, the optional ones first. The variable that begins with `from` has the
/// member's value.
fn initialize(members: usize, from: char, params: impl Fn(usize) -> Vec<String>) -> String {
    let mut all: Vec<String> = (0..members).flat_map(params).collect();
    all.sort_by_key(|param| param.contains(':'));
    let body: String = (0..members).map(|i| format!("  self.__m{i} = {from}{i}\n")).collect();
    format!("def initialize({})\n{body}end", all.join(", "))
}

impl Analysis<'_> {
    /// The library's method that implements a builtin. None: the builtin needs no body.
    ///
    /// # Errors
    /// A text that does not parse, which is a bug of Ikra.
    pub(super) fn routine(&mut self, atom: Atom, builtin: Builtin) -> Answer<Option<MethodId>> {
        let (class, names) = match atom {
            Atom::Object(class) => (class, self.world.members(class).unwrap_or_default()),
            _ => (well_known::OBJECT, Vec::new()),
        };
        let members = names.len();
        let routine = match builtin {
            Builtin::ArrayEqual if self.remembers => Routine::ArrayBegin(Comparison::Equal),
            Builtin::ArrayEql if self.remembers => Routine::ArrayBegin(Comparison::Eql),
            Builtin::ArrayCompare if self.remembers => Routine::ArrayBegin(Comparison::Order),
            Builtin::StructEqual if self.remembers => Routine::StructBegin(members, Comparison::Equal),
            Builtin::StructEql if self.remembers => Routine::StructBegin(members, Comparison::Eql),
            Builtin::ArrayEqual => Routine::ArrayEqual,
            Builtin::ArrayEql => Routine::ArrayEql,
            Builtin::ArrayCompare => Routine::ArrayCompare,
            Builtin::StructEqual => Routine::StructEqual(members),
            Builtin::StructEql => Routine::StructEql(members),
            Builtin::StructInitialize => match self.world.construction(class) {
                Construction::Positional => Routine::StructInitialize(members),
                Construction::Keywords => Routine::StructKeywords(class),
                Construction::Either => Routine::StructEither(class),
                Construction::Data => Routine::DataInitialize(class),
            },
            Builtin::DataWith => Routine::DataWith(class),
            Builtin::StrEqual => return Ok(crate::prelude::find("", "String", "==")),
            Builtin::StrCompare => return Ok(crate::prelude::find("", "String", "<=>")),
            _ => return Ok(None),
        };
        self.routine_number(routine, names).map(Some)
    }

    /// The number of a routine. `names`: those of the members of its class.
    fn routine_number(&mut self, routine: Routine, names: Vec<Name>) -> Answer<MethodId> {
        let members = names.len();
        if let Some(at) = self.routines.iter().position(|r| *r == routine) {
            return Ok(MethodId(FIRST + at as u32));
        }
        let id = MethodId(FIRST + self.routines.len() as u32);
        let text = Arc::new(Source::own(routine.label(), &routine.text(members)));
        let mut unit = parse_method(&text).map_err(Error::Unsupported)?;
        // a member's name may be one that a variable cannot have
        for (keyword, name) in unit.params.keywords.iter_mut().zip(names) {
            keyword.name = name;
        }
        let scope = self.spec(Analysis::BLOCK).scope;
        self.sources
            .insert(id, MethodSource { unit: Arc::new(unit), scope, label: routine.label().into(), around: None });
        self.routines.push(routine);
        Ok(id)
    }

    /// Whether an array or a Struct may contain itself where the program compares it. Then analysis begins again, and
    /// comparisons remember what they are comparing.
    pub(super) fn must_remember(&mut self) -> bool {
        let may_return = !self.remembers && self.recursive().into_iter().any(|spec| self.compares(spec));
        self.remembers |= may_return;
        may_return
    }

    /// The method that goes on with a comparison. None: the value is asked as always.
    fn goes_on(&mut self, from: SpecId, atom: Atom, how: Comparison) -> Answer<Option<Target>> {
        let asked = format!("{}{}", crate::syntax::ast::ASKED, how.name());
        let Ok(Target::Ruby(method)) = self.target(from, atom, &asked, false) else { return Ok(None) };
        let (within, names) = match (self.routine_of(method), atom) {
            (Some(Routine::ArrayBegin(how)), _) => (Routine::ArrayWithin(how), Vec::new()),
            (Some(Routine::StructBegin(members, how)), Atom::Object(class)) => {
                (Routine::StructWithin(members, how), self.world.members(class).unwrap_or_default())
            }
            _ => return Ok(None),
        };
        Ok(Some(Target::Ruby(self.routine_number(within, names)?)))
    }

    /// Notes that a call in the user's text begins.
    pub(super) fn calls_from(&mut self, place: (Arc<Unit>, Span)) {
        self.calling = Some(place);
    }

    /// Notes the user's call for a new specialisation of a method of the library.
    pub(super) fn note_call(&mut self, new: SpecId) {
        if self.in_library(new) {
            self.specs[new.index()].called_at = self.calling.clone();
        }
    }

    /// Whether a method is one of the library's.
    pub fn is_library(&self, method: MethodId) -> bool {
        self.routine_of(method).is_some()
    }

    /// Whether a specialisation is one of the library's or the prelude's.
    pub(super) fn in_library(&self, spec: SpecId) -> bool {
        self.spec(spec).key.method.is_some_and(|m| m.0 >= FIRST)
    }

    /// Whether a call on a kind of receiver does what Ruby itself defines, and calls no method of the program.
    pub fn is_rubys(&mut self, from: SpecId, atom: Atom, name: &str) -> bool {
        // `case` finds a private `===`
        match self.target(from, atom, name, name == "===") {
            Ok(Target::Builtin(builtin)) => {
                !matches!(builtin, Builtin::Ordered(_) | Builtin::CaseEqual | Builtin::Compare | Builtin::Send { .. })
            }
            Ok(Target::Ruby(method)) => method.0 >= FIRST,
            Ok(Target::NoMethod { .. }) => true,
            _ => false,
        }
    }

    /// Whether a module's `===` is Ruby's own, which tests the class of an object.
    pub(super) fn asks_class(&mut self, from: SpecId, module: Atom) -> bool {
        self.target(from, module, "===", true).is_ok_and(|t| t == Target::Builtin(Builtin::ModuleCase))
    }

    /// The target of a call that only the library makes. None: it is an ordinary call.
    ///
    /// # Errors
    /// An object that Ruby would convert to an Array.
    pub(super) fn library_target(&mut self, from: SpecId, atom: Atom, name: &str) -> Answer<Option<Target>> {
        let Some(short) = name.strip_prefix(PRIMITIVE).filter(|_| self.in_library(from)) else { return Ok(None) };
        let nothing = Target::NoMethod { private: false };
        let is_array = matches!(atom, Atom::Array(_));
        Ok(Some(match short {
            "same?" => Target::Builtin(Builtin::SameReference),
            "kin?" => Target::Builtin(Builtin::Kin),
            "kinds" => Target::Builtin(Builtin::Kinds),
            "identity" if matches!(atom, Atom::Array(_) | Atom::Object(_)) => Target::Builtin(Builtin::Identity),
            "identity" => nothing,
            "equal_within" => return self.goes_on(from, atom, Comparison::Equal),
            "eql_within" => return self.goes_on(from, atom, Comparison::Eql),
            "order_within" => return self.goes_on(from, atom, Comparison::Order),
            "array?" => {
                if self.answers_to(atom, "to_ary") {
                    let class = self.describe(atom);
                    return Err(Refusal::new(format!("kernels do not ask {class} for to_ary"))
                        .advise("call to_ary on the object, and compare the arrays"));
                }
                Target::Builtin(Builtin::Kin)
            }
            "keys" | "values" | "index" | "default" if atom == Atom::Object(well_known::HASH) => {
                Target::Reader(format!("#{short}").into())
            }
            "size" if is_array => Target::Builtin(Builtin::ArraySize),
            "at" if is_array => Target::Builtin(Builtin::ArrayAt),
            _ => match (short.strip_prefix('m').and_then(|n| n.trim_end_matches('=').parse::<usize>().ok()), atom) {
                (Some(n), Atom::Object(class)) => {
                    let member = self.world.members(class).and_then(|m| m.get(n).cloned());
                    let access = if short.ends_with('=') { Target::Writer } else { Target::Reader };
                    member.map_or(nothing, access)
                }
                (Some(_), _) => nothing,
                // the prelude's own primitives
                (None, _) => return Ok(None),
            },
        }))
    }

    /// Refuses arguments that Ruby's own `initialize` of a Struct does not assign to one member each.
    ///
    /// # Errors
    /// Keywords that become a Hash.
    pub(super) fn struct_arguments(&self, method: MethodId, args: &super::calls::Args) -> Answer<()> {
        let hash = match self.routine_of(method) {
            Some(Routine::StructInitialize(_)) => true,
            Some(Routine::StructEither(_)) => !args.positional.is_empty(),
            _ => false,
        };
        if hash && !args.keywords.is_empty() {
            return Err(Refusal::new("the keywords would be a Hash here, one member's value")
                .because("this Struct's new takes its members by position")
                .advise("write the values in the order of the members, or make the Struct with keyword_init: true"));
        }
        Ok(())
    }

    /// Whether `Data.define` made a class or one of its superclasses.
    pub fn is_data(&self, class: ClassId) -> bool {
        self.world.members(class).is_some() && self.world.construction(class) == Construction::Data
    }

    /// Whether a specialisation is `==`, `eql?` or `<=>` of Ruby's arrays or Structs.
    pub fn compares(&self, spec: SpecId) -> bool {
        let routine = self.spec(spec).key.method.and_then(|method| self.routine_of(method));
        routine.is_some_and(|routine| {
            matches!(
                routine,
                Routine::ArrayEqual
                    | Routine::ArrayEql
                    | Routine::ArrayCompare
                    | Routine::StructEqual(_)
                    | Routine::StructEql(_)
                    | Routine::ArrayBegin(_)
                    | Routine::ArrayWithin(_)
                    | Routine::StructBegin(..)
                    | Routine::StructWithin(..)
            )
        })
    }

    fn routine_of(&self, method: MethodId) -> Option<Routine> {
        self.routines.get(method.0.checked_sub(FIRST)? as usize).copied()
    }

    /// The message of the ArgumentError for arguments that do not fit. `message`: that for a method written in Ruby.
    pub fn argument_error(&self, method: MethodId, args: &super::calls::Args, message: String) -> String {
        let members = |class: ClassId| self.world.members(class).unwrap_or_default();
        match self.routine_of(method) {
            Some(Routine::StructInitialize(_)) => "struct size differs".into(),
            Some(Routine::StructEither(_)) if !args.positional.is_empty() => "struct size differs".into(),
            Some(Routine::StructKeywords(class) | Routine::StructEither(class)) if args.positional.is_empty() => {
                let members = members(class);
                let unknown = args.keywords.iter().map(|k| &k.0).filter(|k| !members.contains(k));
                let unknown: Vec<&str> = unknown.map(|k| &**k).collect();
                format!("unknown keywords: {}", unknown.join(", "))
            }
            Some(Routine::StructKeywords(_)) => {
                let given = args.positional.len() + usize::from(!args.keywords.is_empty());
                format!("wrong number of arguments (given {given}, expected 0)")
            }
            _ if crate::prelude::expects_one(method) => {
                format!("wrong number of arguments (given {}, expected 1)", args.positional.len())
            }
            _ => message,
        }
    }

    /// For each argument of a Data's `new`, the member that it sets. Err is ArgumentError's message. None: it is not a
    /// class of Data.
    #[allow(clippy::type_complexity, reason = "an answer with two outcomes, if at all")]
    pub fn data_members(
        &self,
        class: ClassId,
        given: usize,
        keywords: bool,
    ) -> Option<std::result::Result<Vec<Name>, String>> {
        let members = self.world.members(class)?;
        if !self.is_data(class) {
            return None;
        }
        let wrong = |given: usize, expected: String| {
            Some(Err(format!("wrong number of arguments (given {given}, expected {expected})")))
        };
        match (given, members.len()) {
            (1.., _) if keywords => wrong(given + 1, "0".into()),
            (_, 0) if given > 0 => wrong(given, "0".into()),
            (_, most) if given > most => wrong(given, format!("0..{most}")),
            _ => Some(Ok(members.into_iter().take(given).collect())),
        }
    }

    /// Whether two kinds are of one class, ignoring singleton classes.
    pub fn is_kin(&mut self, a: Atom, b: Atom) -> bool {
        match (a, b) {
            (Atom::Module(_), _) | (_, Atom::Module(_)) => false,
            _ => self.real_class(super::calls::class_of(a)) == self.real_class(super::calls::class_of(b)),
        }
    }
}
