//! Classes and cases of characters beyond ASCII.
//!
//! Unicode's tables differ between versions of Ruby, so the compiler has none: [`Unicode`] are the questions that it
//! asks, and the bridge answers them from the tables of the Ruby that runs. Here: the questions, and the table from
//! which kernels read what a change of case makes of a character ([`case_table`]). Not here: what a regular expression
//! makes of a class ([`crate::regexp`]), and the loops over text (`prelude/string_functions.rb`).

mod cases;
mod rusts;

pub use cases::case_table;
pub use rusts::Rusts;

/// Characters, as ranges that ascend and do not touch.
pub type Ranges = Vec<(char, char)>;

/// A change of case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// `upcase`
    Upper,
    /// `downcase`
    Lower,
    /// The first character of `capitalize`.
    Title,
    /// `swapcase`
    Swap,
    /// What `casecmp?` compares.
    Fold,
}

/// What Ruby knows of characters.
pub trait Unicode: Sync {
    /// The characters of `[:name:]`. None: no such class.
    fn bracket(&self, name: &str) -> Option<Ranges>;

    /// The characters of words, at whose edges `\b` holds.
    fn words(&self) -> Ranges;

    /// The characters of `\p{name}`. None: no such property.
    fn property(&self, name: &str) -> Option<Ranges>;

    /// The characters that changes of case may change, among others.
    fn with_case(&self) -> Ranges;

    /// Appends what a change of case makes of a character: one or several.
    fn change(&self, change: Change, from: char, out: &mut String);

    /// Pairs of a character and what a regular expression that ignores case takes for the same: one or several
    /// characters. A pair of single characters is there in both directions.
    fn folds(&self) -> Vec<(char, String)>;
}

/// All characters.
pub fn every_char() -> impl Iterator<Item = char> {
    '\0'..=char::MAX
}

/// The ranges of ascending characters.
pub fn ranges(chars: impl Iterator<Item = char>) -> Ranges {
    let mut all: Ranges = Vec::new();
    for c in chars {
        match all.last_mut() {
            Some((_, last)) if u32::from(*last) + 1 == u32::from(c) => *last = c,
            _ => all.push((c, c)),
        }
    }
    all
}
