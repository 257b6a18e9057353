//! Ruby's regular expressions as tables, which the prelude's loops over characters follow.
//!
//! Here: what a pattern means ([`parse`]), which characters it tells apart ([`alphabet`]), and the automata that find
//! its matches ([`automaton`]). Only this folder imports regex-automata. Not here: the loops
//! (`prelude/string_functions.rb`), and what methods do with a match.
//!
//! The crates build an automaton of states from the tree of a pattern. Everything in which Ruby differs from them is
//! decided here: the parser accepts only what it knows, and assertions such as `^` get Ruby's meaning where the table
//! is built. Tables are for text in valid UTF-8, which the loops follow character by character.

mod alphabet;
mod automaton;
mod parse;

use crate::unicode::{Ranges, Unicode};
use automaton::{Fault, MAX_GROUPS};
use once_cell::sync::OnceCell;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look};
use std::fmt;
use std::sync::Arc;

/// The most bytes of one table.
pub const MAX_BYTES: usize = 1 << 20;

/// The letters behind a pattern: `/…/mix`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Options {
    /// `i`
    pub ignores_case: bool,
    /// `x`
    pub extended: bool,
    /// `m`: a dot is any character.
    pub dot_all: bool,
}

/// What identifies a regular expression: its text between the slashes, and its options.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegexpSource {
    pub text: Arc<str>,
    pub options: Options,
}

impl RegexpSource {
    /// Whether a group seems to have a name, so that `=~` may assign variables.
    pub fn names_groups(&self) -> bool {
        parse::may_have_names(&self.text)
    }
}

impl fmt::Display for RegexpSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { ignores_case, extended, dot_all } = self.options;
        let letters = [(dot_all, "m"), (ignores_case, "i"), (extended, "x")];
        let letters: String = letters.iter().filter(|(on, _)| *on).map(|(_, letter)| *letter).collect();
        write!(f, "/{}/{letters}", self.text)
    }
}

/// Why kernels do not know a pattern: a noun phrase that completes "kernels do not know …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown(pub String);

/// The tables of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    /// Finds the end of the first match from a byte on.
    Forward,
    /// Finds the end of the match that begins at a byte.
    Anchored,
    /// Finds the beginning of the match that ends at a byte.
    Reverse,
    /// Finds the parts of a match.
    Captures,
}

/// A regular expression that kernels know.
#[derive(Debug)]
pub struct Regexp {
    pub pattern: RegexpSource,
    hir: Hir,
    /// The number of its groups.
    pub groups: usize,
    /// The names of groups with names, in order. Then other groups do not count.
    pub names: Vec<String>,
    /// It has this meaning for text in ASCII only.
    pub ascii: bool,
    /// The characters of words, if assertions ask about them.
    words: Option<Ranges>,
    tables: [OnceCell<Result<Arc<[u8]>, Unknown>>; 4],
}

impl Regexp {
    /// # Errors
    /// A construct that kernels do not know.
    pub fn new(pattern: RegexpSource, unicode: &dyn Unicode) -> Result<Self, Unknown> {
        let parse::Parsed { hir, groups, names, ascii, words } = parse::parse(&pattern, unicode)?;
        Ok(Self { pattern, hir, groups, names, ascii, words, tables: Default::default() })
    }

    /// Whether matches have bytes, but no ASCII white space, and depend on no byte beyond white space around them.
    pub fn keeps_within_words(&self) -> bool {
        fn spaceless(hir: &Hir) -> bool {
            let space = |c: u32| matches!(c, 9..=13 | 32);
            match hir.kind() {
                HirKind::Empty => true,
                HirKind::Literal(literal) => !literal.0.iter().any(|byte| space((*byte).into())),
                HirKind::Class(Class::Unicode(class)) => {
                    let spaces = [(9, 13), (32, 32)];
                    let meets = |range: &ClassUnicodeRange| {
                        spaces.iter().any(|(from, to)| range.start() as u32 <= *to && *from <= range.end() as u32)
                    };
                    !class.ranges().iter().any(meets)
                }
                HirKind::Class(Class::Bytes(_)) => false,
                HirKind::Look(look) => matches!(look, Look::WordAscii | Look::WordAsciiNegate),
                HirKind::Repetition(of) => spaceless(&of.sub),
                HirKind::Capture(of) => spaceless(&of.sub),
                HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().all(spaceless),
            }
        }
        self.hir.properties().minimum_len().is_some_and(|least| least > 0) && spaceless(&self.hir)
    }

    /// The bytes of a table. [`automaton`] says what they mean.
    ///
    /// # Errors
    /// A table that has too many bytes, or parts that one look at each character does not tell apart.
    pub fn table(&self, table: Table) -> Result<Arc<[u8]>, Unknown> {
        let build = || match automaton::build(&self.hir, table, self.words.as_ref()) {
            Ok(bytes) => Ok(bytes.into()),
            Err(fault) => Err(self.refused(&fault)),
        };
        self.tables[table as usize].get_or_init(build).clone()
    }

    fn refused(&self, fault: &Fault) -> Unknown {
        let pattern = &self.pattern;
        Unknown(match fault {
            Fault::TooLarge => format!("the regular expression {pattern}, whose table has more than 1 MiB"),
            Fault::TooSlow => format!("the regular expression {pattern}, whose table takes too long to build"),
            Fault::NotOnePass => format!(
                "captures of the regular expression {pattern}, which is not one-pass: a character does not tell where it \
                 goes on"
            ),
            Fault::ManyGroups => format!("more than {MAX_GROUPS} groups in the regular expression {pattern}"),
        })
    }
}

fn class(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|(from, to)| ClassUnicodeRange::new(*from, *to)))
}

#[cfg(test)]
mod tests;
