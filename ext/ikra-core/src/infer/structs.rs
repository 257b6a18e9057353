//! Members of Structs by position or name.
//!
//! Here: the member that `s[…]` means, and the value of a pattern's key. Not here: accessors by name. They are readers
//! and writers like those of ivars, since a member is a field of its class, under its name without `@`.

use super::builtins::Builtin;
use super::calls::{Answer, Args, Literal, Refusal, Target, receiver_of};
use super::{Analysis, SpecId};
use crate::syntax::ast::{Kind, Name, Pattern};
use crate::types::{Atom, Reach, Ty};
use crate::world::MethodFact;

/// The member that an index of a Struct means.
#[derive(Clone, Debug, PartialEq)]
pub enum Which {
    One(Name),
    /// One of these; the Integer is known only at run time.
    Any(Vec<Name>),
    /// There is none: the exception that Ruby raises.
    Missing {
        class: &'static str,
        message: String,
    },
    /// TypeError: the value cannot be an index.
    NoIndex,
}

/// The value that a class's own `deconstruct_keys` gives for a key.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyValue {
    Field(Name),
    Sym(Name),
    Int(i64),
    True,
    False,
    Nil,
}

impl Analysis<'_> {
    /// The keys and values of a class's own `deconstruct_keys`. None: the class does not define it.
    ///
    /// # Errors
    /// A `deconstruct_keys` that is not a literal Hash of fields and literals: kernels make no Hashes there.
    pub fn own_keys(&mut self, from: SpecId, atom: Atom) -> Answer<Option<Vec<(Name, KeyValue)>>> {
        let method = match self.method(receiver_of(atom), "deconstruct_keys") {
            MethodFact::Ruby { method, .. } => method,
            MethodFact::Builtin { owner, .. } if matches!(&*owner, "Struct" | "Data") => return Ok(None),
            _ => return Err(self.no_keys(atom)),
        };
        let unit = self.source(method)?.unit;
        let takes_keys = matches!(unit.params.required[..], [Pattern::Local(_)]) && unit.params.plain();
        let Kind::Hash(pairs) = &unit.body.kind else { return Err(self.no_keys(atom)) };
        let mut keys: Vec<(Name, KeyValue)> = Vec::new();
        for (key, value) in pairs.iter().filter(|_| takes_keys) {
            let Kind::Sym(name) = &key.kind else { return Err(self.no_keys(atom)) };
            let value = match &value.kind {
                Kind::Ivar(ivar) => KeyValue::Field(ivar.clone()),
                Kind::Sym(name) => KeyValue::Sym(name.clone()),
                Kind::Int(n) => KeyValue::Int(*n),
                Kind::True => KeyValue::True,
                Kind::False => KeyValue::False,
                Kind::Nil => KeyValue::Nil,
                Kind::Call(call)
                    if call.args.is_empty()
                        && call.block.is_none()
                        && call.block_arg.is_none()
                        && call.receiver.as_ref().is_none_or(|r| matches!(r.kind, Kind::SelfRef))
                        && let Target::Reader(field) = self.target(from, atom, &call.name, true)? =>
                {
                    KeyValue::Field(field)
                }
                _ => return Err(self.no_keys(atom)),
            };
            keys.retain(|(known, _)| known != name);
            keys.push((name.clone(), value));
        }
        if takes_keys { Ok(Some(keys)) } else { Err(self.no_keys(atom)) }
    }

    fn no_keys(&mut self, atom: Atom) -> Refusal {
        let class = self.describe(atom);
        Refusal::new(format!("kernels do not ask {class} for deconstruct_keys"))
            .because("it gives a Hash, which they know only where it is written out, of instance variables: { x: @x }")
            .advise("match the class, and read the attributes in a guard: `in Point if …`")
    }

    /// The member that an index of one kind means. `literal`: the index, if it is a literal.
    ///
    /// # Errors
    /// An index that Ruby accepts and kernels do not.
    pub fn which_member(&mut self, atom: Atom, index: Atom, literal: Option<&Literal>) -> Answer<Which> {
        let members = match atom {
            Atom::Object(class) => self.world.members(class).unwrap_or_default(),
            _ => Vec::new(),
        };
        Ok(match (literal, index) {
            (Some(Literal::Sym(name)), _) => match members.iter().find(|m| *m == name) {
                Some(member) => Which::One(member.clone()),
                None => Which::Missing { class: "NameError", message: format!("no member '{name}' in struct") },
            },
            (Some(Literal::Int(n)), _) => {
                let size = members.len() as i64;
                let at = if *n < 0 { n.wrapping_add(size) } else { *n };
                match usize::try_from(at).ok().and_then(|at| members.get(at)) {
                    Some(member) => Which::One(member.clone()),
                    None => {
                        let how = if *n < 0 { "small" } else { "large" };
                        let message = format!("offset {n} too {how} for struct(size:{size})");
                        Which::Missing { class: "IndexError", message }
                    }
                }
            }
            (_, Atom::Int) => Which::Any(members),
            (_, Atom::Sym) => {
                return Err(Refusal::new("kernels know a member of a Struct by a Symbol only where it is written out")
                    .advise("write s[:name] or s.name, or choose with case … when"));
            }
            (_, Atom::Str) => {
                return Err(Refusal::new("kernels do not know members of Structs by a String").advise("write s[:name]"));
            }
            (_, Atom::Float) => {
                return Err(
                    Refusal::new("kernels index Structs with Integers and Symbols only").advise("write s[i.to_i]")
                );
            }
            _ => Which::NoIndex,
        })
    }

    /// The members that `s[…]` may read or write.
    ///
    /// # Errors
    /// As [`Analysis::which_member`].
    pub fn touched_members(&mut self, atom: Atom, index: Atom, literal: Option<&Literal>) -> Answer<Vec<Name>> {
        Ok(match self.which_member(atom, index, literal)? {
            Which::One(member) => vec![member],
            Which::Any(members) => members,
            Which::Missing { .. } | Which::NoIndex => Vec::new(),
        })
    }

    /// Interprets `s[…]` and `s[…] = v`.
    ///
    /// # Errors
    /// As [`Analysis::which_member`], and if some object holds a value that kernels cannot hold.
    pub(super) fn struct_index(
        &mut self,
        from: SpecId,
        builtin: Builtin,
        (atom, reach): (Atom, Reach),
        atoms: &[Atom],
        args: &Args,
    ) -> Answer<Ty> {
        let members = self.touched_members(atom, atoms[0], args.literals.first().and_then(Option::as_ref))?;
        let mut out = Ty::never();
        for member in members {
            if builtin == Builtin::StructSet {
                let value = Ty::of(atoms[1], args.positional[1].reach);
                self.write_field(from, atom, reach, &member, &value)?;
                out = value;
            } else {
                let ty = self.read_field(from, atom, reach, &member)?;
                out = self.facts.join(&out, &ty);
            }
        }
        Ok(out)
    }
}
