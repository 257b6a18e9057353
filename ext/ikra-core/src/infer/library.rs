//! Methods of Ruby's own that are C there and Ruby here: bodies that inference types and lowering lowers as any method.
//!
//! Here: their text, and the calls that only they can make (`__same?`, `__at`, …), which reach what no class can
//! redefine. Not here: methods that need no body ([`super::builtins`]).
//! Invariant: a method of the library raises nothing itself, so no place in it is ever shown to a user.

use super::builtins::Builtin;
use super::calls::{Answer, Refusal, Target};
use super::{Analysis, SpecId};
use crate::diagnostic::Span;
use crate::error::Error;
use crate::id::MethodId;
use crate::source::Source;
use crate::syntax::ast::Unit;
use crate::syntax::parse_method;
use crate::types::Atom;
use crate::world::{MethodFact, MethodSource, well_known};
use std::fmt::Write as _;
use std::sync::Arc;

/// Numbers of methods from here on are the library's, up to the prelude's; a World numbers from 0.
const FIRST: u32 = 1 << 31;

/// Which method, where that is not its whole text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    ArrayEqual,
    ArrayEql,
    ArrayCompare,
    /// Of as many members.
    StructEqual(usize),
    StructEql(usize),
    StructInitialize(usize),
}

impl Routine {
    /// As a message names it.
    fn label(self) -> &'static str {
        match self {
            Routine::ArrayEqual => "Array#==",
            Routine::ArrayEql => "Array#eql?",
            Routine::ArrayCompare => "Array#<=>",
            Routine::StructEqual(_) => "Struct#==",
            Routine::StructEql(_) => "Struct#eql?",
            Routine::StructInitialize(_) => "Struct#initialize",
        }
    }

    fn text(self) -> String {
        match self {
            Routine::ArrayEqual => array_equal("==", "a.__same?(b) || a == b"),
            Routine::ArrayEql => array_equal("eql?", "a.__same?(b) || a.eql?(b)"),
            Routine::ArrayCompare => ARRAY_COMPARE.into(),
            Routine::StructEqual(members) => struct_equal("==", members, |a, b| format!("{a} == {b}")),
            Routine::StructEql(members) => struct_equal("eql?", members, |a, b| format!("{a}.eql?({b})")),
            Routine::StructInitialize(members) => struct_initialize(members),
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
    order = __at(i) <=> other.__at(i)
    return order unless order == 0
    i += 1
  end
  __size <=> other.__size
end";

fn struct_equal(name: &str, members: usize, equal: impl Fn(&str, &str) -> String) -> String {
    let mut text = format!("def {name}(other)\n  return true if __same?(other)\n");
    text += "  return false unless other.__kin?(self)\n";
    for i in 0..members {
        let (a, b) = (format!("__m{i}"), format!("other.__m{i}"));
        let _ = writeln!(text, "  return false unless {a}.__same?({b}) || {}", equal(&a, &b));
    }
    text + "  true\nend"
}

/// Members that are not given are nil.
fn struct_initialize(members: usize) -> String {
    let params: Vec<String> = (0..members).map(|i| format!("a{i} = nil")).collect();
    let body: String = (0..members).map(|i| format!("  self.__m{i} = a{i}\n")).collect();
    format!("def initialize({})\n{body}end", params.join(", "))
}

impl Analysis<'_> {
    /// The library's method behind a builtin; None: it has no body.
    ///
    /// # Errors
    /// A text that does not parse, which is our own fault.
    pub(super) fn routine(&mut self, atom: Atom, builtin: Builtin) -> Answer<Option<MethodId>> {
        let members = |an: &Self| match atom {
            Atom::Object(class) => an.world.members(class).map_or(0, |m| m.len()),
            _ => 0,
        };
        let routine = match builtin {
            Builtin::ArrayEqual => Routine::ArrayEqual,
            Builtin::ArrayEql => Routine::ArrayEql,
            Builtin::ArrayCompare => Routine::ArrayCompare,
            Builtin::StructEqual => Routine::StructEqual(members(self)),
            Builtin::StructEql => Routine::StructEql(members(self)),
            Builtin::StructInitialize => Routine::StructInitialize(members(self)),
            Builtin::StrEqual => return Ok(crate::prelude::find("", "String", "==")),
            Builtin::StrCompare => return Ok(crate::prelude::find("", "String", "<=>")),
            _ => return Ok(None),
        };
        if let Some(at) = self.routines.iter().position(|r| *r == routine) {
            return Ok(Some(MethodId(FIRST + at as u32)));
        }
        let id = MethodId(FIRST + self.routines.len() as u32);
        let text = Arc::new(Source::whole(routine.label(), &routine.text(), 1));
        let unit = parse_method(&text).map_err(Error::Unsupported)?;
        let scope = self.spec(Analysis::BLOCK).scope;
        self.sources.insert(id, MethodSource { unit: Arc::new(unit), scope, label: routine.label().into() });
        self.routines.push(routine);
        Ok(Some(id))
    }

    /// A call in the user's text begins.
    pub(super) fn calls_from(&mut self, place: (Arc<Unit>, Span)) {
        self.calling = Some(place);
    }

    /// Notes where in the user's text a new specialisation of a method of the library was called.
    pub(super) fn note_call(&mut self, new: SpecId) {
        if self.in_library(new) {
            self.specs[new.index()].called_at = self.calling.clone();
        }
    }

    /// Whether a specialisation is one of the library's or the prelude's.
    pub(super) fn in_library(&self, spec: SpecId) -> bool {
        self.spec(spec).key.method.is_some_and(|m| m.0 >= FIRST)
    }

    /// What a call that only the library makes reaches; None: an ordinary call.
    ///
    /// # Errors
    /// An object that Ruby would ask to become an Array.
    pub(super) fn library_target(&mut self, from: SpecId, atom: Atom, name: &str) -> Answer<Option<Target>> {
        let Some(short) = name.strip_prefix("__").filter(|_| self.in_library(from)) else { return Ok(None) };
        let nothing = Target::NoMethod { private: false };
        let is_array = matches!(atom, Atom::Array(_));
        Ok(Some(match short {
            "same?" => Target::Builtin(Builtin::SameReference),
            "kin?" => Target::Builtin(Builtin::Kin),
            "array?" => {
                if let Atom::Object(class) = atom
                    && !matches!(
                        self.method(crate::world::Receiver::Instance(class), "to_ary"),
                        MethodFact::Missing { handler: None }
                    )
                {
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
                // the prelude's own
                (None, _) => return Ok(None),
            },
        }))
    }

    /// Refuses arguments of which Ruby's own `initialize` of a Struct makes something else than one member each.
    ///
    /// # Errors
    /// Keywords, and more arguments than members.
    pub(super) fn struct_arguments(&self, method: MethodId, args: &super::calls::Args) -> Answer<()> {
        let at = method.0.checked_sub(FIRST).map(|at| at as usize);
        let Some(Routine::StructInitialize(members)) = at.and_then(|at| self.routines.get(at)) else { return Ok(()) };
        if !args.keywords.is_empty() {
            return Err(Refusal::new("kernels make Structs of positional arguments only")
                .advise("write the values in the order of the members"));
        }
        if args.positional.len() > *members {
            let given = args.positional.len();
            return Err(Refusal::new(format!("struct size differs: {given} values for {members} members")));
        }
        Ok(())
    }

    /// Whether two kinds are of one class, singleton classes left out.
    pub fn is_kin(&mut self, a: Atom, b: Atom) -> bool {
        match (a, b) {
            (Atom::Module(_), _) | (_, Atom::Module(_)) => false,
            _ => self.real_class(super::calls::class_of(a)) == self.real_class(super::calls::class_of(b)),
        }
    }
}
