//! Selects the declarations of the prelude that a program needs.
//!
//! Here: [`with_prelude`]. Not here: the prelude itself. NVRTC parses all text that it gets. For the whole prelude that
//! takes 2 to 3 ms, a tenth of the time for a short kernel. This module does not parse C++. A declaration begins in the
//! first column and goes up to the line that ends it, and its lines in the first column have its names.

use super::{PRELUDE, without_comments};
use once_cell::sync::Lazy;
use std::collections::HashMap;

/// A declaration of the prelude, or several between `#ifdef` and `#endif`.
struct Item {
    text: String,
    /// The items whose names it mentions.
    mentions: Vec<usize>,
}

struct Items {
    all: Vec<Item>,
    /// The items that declare each name. There are several if it is overloaded or specialised.
    by_name: HashMap<String, Vec<usize>>,
}

static ITEMS: Lazy<Items> = Lazy::new(|| {
    let texts = cut(&without_comments(PRELUDE));
    let mut by_name = HashMap::<String, Vec<usize>>::new();
    for (index, text) in texts.iter().enumerate() {
        for name in text.lines().filter_map(declared) {
            by_name.entry(name.to_owned()).or_default().push(index);
        }
    }
    let mentions = |text: &str| words(text).filter_map(|word| by_name.get(word)).flatten().copied().collect();
    let all = texts.into_iter().map(|text| Item { mentions: mentions(&text), text }).collect();
    Items { all, by_name }
});

/// A program, after the part of the prelude that it needs.
pub fn with_prelude(program: &str) -> String {
    let items = &*ITEMS;
    // names in comments do not count
    let code = without_comments(program);
    let mut found: Vec<usize> = words(&code).filter_map(|word| items.by_name.get(word)).flatten().copied().collect();
    let mut needed = vec![false; items.all.len()];
    while let Some(index) = found.pop() {
        if !std::mem::replace(&mut needed[index], true) {
            found.extend(&items.all[index].mentions);
        }
    }
    let mut out = String::with_capacity(PRELUDE.len() + program.len());
    for (item, _) in items.all.iter().zip(needed).filter(|(_, needed)| *needed) {
        out += &item.text;
    }
    out.push('\n');
    out + program
}

/// The identifiers and numbers in a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The declarations of the prelude, in order.
fn cut(prelude: &str) -> Vec<String> {
    let (mut all, mut item, mut within) = (Vec::new(), String::new(), false);
    for line in prelude.lines() {
        item += line;
        item.push('\n');
        within = (within || line.starts_with("#ifdef")) && line != "#endif";
        let whole = !line.starts_with([' ', '#']) && line.ends_with([';', '}']);
        if !within && (whole || line.starts_with("#define") || line == "#endif") {
            all.push(std::mem::take(&mut item));
        }
    }
    all
}

/// The name that a line declares.
fn declared(line: &str) -> Option<&str> {
    if line.starts_with([' ', '}']) {
        return None;
    }
    if let Some(defined) = line.strip_prefix("#define ") {
        return words(defined).next();
    }
    if line.starts_with("typedef") {
        return words(line).last();
    }
    match line.split_once("struct ") {
        Some((before, behind)) if !before.contains('(') => words(behind).next(),
        _ => words(line.split_once('(')?.0).last(),
    }
}

#[cfg(test)]
mod tests {
    use super::{ITEMS, with_prelude};

    #[test]
    fn what_a_program_mentions_comes_with_what_that_mentions() {
        let text = with_prelude("void f() { mul_overflows(a, b, c); }  // shl\n");
        for there in ["typedef long long i64;", "typedef __int128 i128;", "#define INLINE", "bool mul_overflows"] {
            assert!(text.contains(there), "{there} in {text}");
        }
        for not in [" shl(", "struct", "quick_div", "add_overflows"] {
            assert!(!text.contains(not), "{not} in {text}");
        }
    }

    #[test]
    fn every_declaration_has_a_name() {
        let items = &*ITEMS;
        for (index, item) in items.all.iter().enumerate() {
            assert!(items.by_name.values().any(|found| found.contains(&index)), "{}", item.text);
        }
        for name in ["record_trap", "quick_sqrt", "Neighbours", "AtOnce", "of_words", "Ctx", "NO_SITE", "wide_mod"] {
            assert!(items.by_name.contains_key(name), "{name}");
        }
        assert_eq!(items.by_name["i64"].len(), 1);
    }
}
