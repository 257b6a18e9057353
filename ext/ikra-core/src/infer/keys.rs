//! Methods of Hashes with a constant key.
//!
//! Here: which calls read the fields that a constant key names ([`KeyField`]) instead of looking the key up. Not here:
//! look-up of other keys, which the prelude does. Invariant: only calls that reach Ruby's own method are of this form,
//! and what they give is what the look-up gives.

use super::Analysis;
use super::calls::{Args, Literal, Target};
use crate::id::MethodId;
use crate::prelude;
use crate::syntax::ast::Name;
use crate::types::{Atom, Ty};
use crate::world::hashes::{ConstKey, KeyField};
use crate::world::well_known;

/// What a call with a constant key does.
#[derive(Clone, Debug, PartialEq)]
pub enum Keyed {
    /// Reads a field.
    Field(Name),
    /// Calls a method of the prelude with the key, with whether it is present and with its value, from these fields.
    Fetch { method: MethodId, present: Name, value: Name },
    /// Reads a field, and digs on in its value with the other arguments.
    Dig(Name),
}

/// The name under which a `dig` goes on in a value.
pub const DUG: &str = "%__dug";

impl Analysis<'_> {
    /// What a call of a Hash's method does if its first argument is a constant key. None: it is any other call.
    pub fn keyed(&mut self, target: &Target, atom: Atom, args: &Args, block: Option<&Ty>) -> Option<Keyed> {
        let Target::Ruby(method) = target else { return None };
        let (Atom::Object(well_known::HASH), Some(Some(literal))) = (atom, args.literals.first()) else { return None };
        let key = match literal {
            Literal::Str(text) => ConstKey::Str(text),
            Literal::Sym(name) => ConstKey::Sym(name),
            _ => return None,
        };
        let field = |field: KeyField| field.name(key).map(Name::from);
        let label = prelude::label(*method)?;
        if !args.keywords.is_empty() || !self.world.has_key_fields() {
            return None;
        }
        let (alone, blockless) = (args.positional.len() == 1, block.is_none());
        let keyed = match label {
            "Hash#[]" | "Hash#__member" | "Hash#dig" if alone && blockless => Keyed::Field(field(KeyField::Value)?),
            "Hash#key?" | "Hash#__keys?" if alone && blockless => Keyed::Field(field(KeyField::Present)?),
            "Hash#fetch" if args.positional.len() <= 2 => {
                let method = prelude::helper("Hash", false, "__fetched")?;
                Keyed::Fetch { method, present: field(KeyField::Present)?, value: field(KeyField::Value)? }
            }
            "Hash#dig" if blockless => Keyed::Dig(field(KeyField::Value)?),
            "Kernel#__dug" if blockless && self.digs_as_ruby() => match alone {
                true => Keyed::Field(field(KeyField::Value)?),
                false => Keyed::Dig(field(KeyField::Value)?),
            },
            _ => return None,
        };
        // The host looks a String up by Ruby's own function, which may ask it.
        let asked = matches!(key, ConstKey::Sym(_)) || self.is_unaltered_of(well_known::STRING, "eql?");
        asked.then_some(keyed)
    }

    /// Whether `dig` of a Hash is Ruby's own, and asks only what is.
    fn digs_as_ruby(&mut self) -> bool {
        ["dig", "default"].iter().all(|name| self.is_unaltered_of(well_known::HASH, name))
    }
}

impl Args {
    /// The arguments of [`Keyed::Fetch`]'s method.
    pub fn with_found(&self, present: Ty, value: Ty) -> Self {
        let mut args = self.clone();
        args.positional.splice(1..1, [present, value]);
        args.literals.splice(1..1, [None, None]);
        args
    }
}
