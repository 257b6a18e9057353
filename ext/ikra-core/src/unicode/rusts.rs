//! Rust's own tables, for tests without Ruby.

use super::{Change, Ranges, Unicode, every_char, ranges};
use std::collections::HashMap;

/// What Rust's standard library knows of characters: little, and of its own version of Unicode.
pub struct Rusts;

impl Unicode for Rusts {
    fn bracket(&self, name: &str) -> Option<Ranges> {
        let holds: fn(char) -> bool = match name {
            "alnum" => char::is_alphanumeric,
            "alpha" => char::is_alphabetic,
            "ascii" => |c| c.is_ascii(),
            "blank" => {
                |c| c == '\t' || c.is_whitespace() && !matches!(c, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
            }
            "cntrl" => char::is_control,
            "digit" => |c| c.is_ascii_digit(),
            "graph" => |c| !c.is_control() && !c.is_whitespace(),
            "lower" => char::is_lowercase,
            "print" => |c| !c.is_control(),
            "punct" => |c| c.is_ascii_punctuation(),
            "space" => char::is_whitespace,
            "upper" => char::is_uppercase,
            "word" => |c| c.is_alphanumeric() || c == '_',
            "xdigit" => |c| c.is_ascii_hexdigit(),
            _ => return None,
        };
        Some(ranges(every_char().filter(|c| holds(*c))))
    }

    fn words(&self) -> Ranges {
        ranges(every_char().filter(|c| c.is_alphanumeric() || *c == '_'))
    }

    fn property(&self, name: &str) -> Option<Ranges> {
        let name = name.to_ascii_lowercase();
        match &*name {
            "l" => self.bracket("alpha"),
            "punct" => Some(ranges(every_char().filter(|c| c.is_ascii_punctuation() && !"$+<=>^`|~".contains(*c)))),
            name => self.bracket(name),
        }
    }

    fn with_case(&self) -> Ranges {
        vec![('\0', char::MAX)]
    }

    fn change(&self, change: Change, from: char, out: &mut String) {
        match change {
            Change::Upper | Change::Title => out.extend(from.to_uppercase()),
            Change::Lower | Change::Fold => out.extend(from.to_lowercase()),
            Change::Swap if from.is_uppercase() => out.extend(from.to_lowercase()),
            Change::Swap => out.extend(from.to_uppercase()),
        }
    }

    fn folds(&self) -> Vec<(char, String)> {
        let mut same: HashMap<String, Vec<char>> = HashMap::new();
        for c in every_char() {
            same.entry(c.to_lowercase().collect()).or_default().push(c);
        }
        let mut all = Vec::new();
        for chars in same.values().filter(|chars| chars.len() > 1) {
            let others =
                |c: char| chars.iter().filter(move |other| **other != c).map(move |other| (c, other.to_string()));
            all.extend(chars.iter().flat_map(|c| others(*c)));
        }
        all.extend([('ß', "ss".into()), ('ﬁ', "fi".into())]);
        all
    }
}
