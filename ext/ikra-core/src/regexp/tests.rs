use super::*;
use crate::unicode::Rusts;
use proptest::prelude::*;

fn regexp(text: &str) -> Result<Regexp, String> {
    let ignores_case = text.ends_with("/i");
    let text = text.trim_start_matches('/').trim_end_matches('i').trim_end_matches('/');
    let options = Options { ignores_case, ..Options::default() };
    Regexp::new(RegexpSource { text: text.into(), options }, &Rusts).map_err(|Unknown(what)| what)
}

/// What the prelude's loops do with a table.
struct Walk<'a> {
    table: &'a [u8],
    text: &'a [u8],
}

impl Walk<'_> {
    fn width(&self) -> usize {
        self.table[256].into()
    }
    fn symbol(&self, at: Option<usize>) -> usize {
        match at.and_then(|at| self.text.get(at).map(|byte| (at, *byte))) {
            None => self.width() - 1,
            Some((at, b'\n')) if at + 1 == self.text.len() && self.table[257] == 1 => self.width() - 2,
            Some((at, byte)) if !byte.is_ascii() && self.table[259] == 1 => self.symbol_beyond(at),
            Some((_, byte)) => self.table[usize::from(byte)].into(),
        }
    }
    fn symbol_beyond(&self, at: usize) -> usize {
        let from = (0..=at).rev().find(|at| self.text[*at] & 0xc0 != 0x80).expect("text begins with a character");
        let text = str::from_utf8(&self.text[from..]).expect("UTF-8");
        let code = text.chars().next().map_or(0, |c| c as usize);
        let end = self.table.last_chunk().expect("more than four bytes");
        let characters = &self.table[u32::from_le_bytes(*end) as usize..];
        let pair = |at: usize| usize::from(u16::from_le_bytes([characters[at], characters[at + 1]]));
        let blocks = pair(0);
        if code / 128 >= blocks {
            return self.table[128].into();
        }
        characters[2 + 2 * blocks + pair(2 + 2 * (code / 128)) * 128 + code % 128].into()
    }
    /// Where characters begin, and the end.
    fn begins(&self, at: usize) -> bool {
        self.text.get(at).is_none_or(|byte| byte & 0xc0 != 0x80)
    }
    fn entry(&self, row: usize, symbol: usize) -> (usize, bool) {
        let at = row * self.width() + symbol;
        let entry = match self.table[258] {
            1 => usize::from(self.table[260 + at]),
            _ => usize::from(u16::from_le_bytes([self.table[260 + 2 * at], self.table[261 + 2 * at]])),
        };
        (entry >> 1, entry & 1 == 1)
    }
    fn end(&self, from: usize) -> Option<usize> {
        let mut found = None;
        let (mut row, _) = self.entry(1, self.symbol(from.checked_sub(1)));
        for at in (from..=self.text.len()).filter(|at| self.begins(*at)) {
            let (next, matched) = self.entry(row, self.symbol(Some(at)));
            found = if matched { Some(at) } else { found };
            row = next;
        }
        found
    }
    fn start(&self, from: usize, to: usize) -> usize {
        let mut found = to;
        let (mut row, _) = self.entry(1, self.symbol(Some(to)));
        for at in (from..=to).rev().filter(|at| self.begins(*at)) {
            let (next, matched) = self.entry(row, self.symbol(at.checked_sub(1)));
            found = if matched { at } else { found };
            row = next;
        }
        found
    }
}

fn found(regexp: &Regexp, text: &str, from: usize) -> Option<(usize, usize)> {
    let table = |which| regexp.table(which).expect("a table");
    let to = Walk { table: &table(Table::Forward), text: text.as_bytes() }.end(from)?;
    Some((Walk { table: &table(Table::Reverse), text: text.as_bytes() }.start(from, to), to))
}

#[test]
fn the_first_match_is_rubys() {
    // what Ruby's `text.match(pattern, from)&.offset(0)` gives
    for (pattern, text, from, expected) in [
        ("/a/", "bab", 0, Some((1, 2))),
        ("/a|ab/", "xab", 0, Some((1, 2))),
        ("/ab|a/", "xab", 0, Some((1, 3))),
        ("/a*?b/", "aab", 0, Some((0, 3))),
        ("/a+?/", "aab", 0, Some((0, 1))),
        ("/^/", "a\n", 1, None),
        ("/^/", "a\nb", 1, Some((2, 2))),
        ("/$/", "a\n", 0, Some((1, 1))),
        ("/\\Z/", "a\n\n", 0, Some((2, 2))),
        ("/\\z/", "a\n", 0, Some((2, 2))),
        ("/^$/", "", 0, Some((0, 0))),
        ("/[^a]/", "aé", 0, Some((1, 3))),
        ("/x*/", "éx", 0, Some((0, 0))),
        ("/\\bb\\b/", "ab b", 0, Some((3, 4))),
        ("/\\bb\\b/", "éb bé b", 0, Some((8, 9))),
        ("/\\B./", "é日 日", 0, Some((2, 5))),
        ("/[[:alpha:]]+/", "1日é.", 0, Some((1, 6))),
        ("/\\P{L}[\u{e000}-\u{e0ff}]/", "1\u{e200}", 0, None),
        ("/[\\0-\u{d7ff}][\u{e000}-\u{f000}]/", "x\u{f8ff}", 0, None),
        ("/[\\0-\u{d7ff}][\u{e000}-\u{f000}]/", "x\u{f000}", 0, Some((0, 4))),
        ("/ÉK/i", "é\u{212a}", 0, Some((0, 5))),
        ("/[[:punct:]]+/", "a-+b", 0, Some((1, 3))),
        ("/b/i", "aB", 0, Some((1, 2))),
        ("/a{,2}/", "aaa", 0, Some((0, 2))),
        ("/[a-c&&[^b]]+/", "bacb", 0, Some((1, 3))),
    ] {
        let regexp = regexp(pattern).expect(pattern);
        assert_eq!(found(&regexp, text, from), expected, "{pattern} in {text:?}");
    }
}

#[test]
fn what_kernels_do_not_know_is_named() {
    for (pattern, construct) in [
        ("/a(?=b)/", "look-ahead"),
        ("/(?<!a)b/", "look-behind"),
        (r"/(a)\1/", "a back reference"),
        ("/(?>a)/", "an atomic group"),
        ("/a++/", "a possessive quantifier"),
        ("/(a*)+/", "a repetition of what may be empty"),
        ("/a{2}?/", "a quantifier of a quantifier"),
        (r"/\R/", "`\\R`"),
        (r"/\p{Greek}/", "`\\p{Greek}`"),
        ("/ß/i", "a character that stands for several where case is ignored"),
        ("/[é]/i", "a character beyond ASCII where case is ignored"),
        ("/[[:alpha:]]/i", "characters that stand for several in a set where case is ignored"),
        (r"/\p{Alpha}/i", "`\\p{Alpha}` where case is ignored"),
        ("/a(?i)b/", "options in the middle of a pattern"),
        ("/[[:upper:]]/i", "`[:upper:]` where case is ignored"),
    ] {
        let error = regexp(pattern).expect_err(pattern);
        assert_eq!(error, format!("{construct} in the regular expression {pattern}"));
    }
    let large = regexp("/[ab]*a[ab]{20}/").expect("it parses").table(Table::Forward).err();
    assert_eq!(
        large.map(|e| e.0),
        Some("the regular expression /[ab]*a[ab]{20}/, whose table has more than 1 MiB".into())
    );
    let twofold = regexp("/(a|ab)(b?)/").expect("it parses").table(Table::Captures).err();
    assert!(twofold.is_some_and(|e| e.0.contains("is not one-pass")));
}

proptest! {
    /// Against the crate's own search, where Ruby means the same.
    #[test]
    fn tables_find_what_the_states_find(pattern in "((a|b|é|[ab]|\\.|(a|bc)|(b|é)){1,3}[*+?]?|ab|\\|){1,5}", text in "[abcé]{0,8}") {
        let hir = regex_syntax::parse(&pattern);
        let (Ok(ours), Ok(hir)) = (regexp(&format!("/{pattern}/")), hir) else { return Ok(()) };
        let nfa = regex_automata::nfa::thompson::Compiler::new().build_from_hir(&hir).expect("small");
        let expected = simulate(&nfa, text.as_bytes());
        prop_assert_eq!(found(&ours, &text, 0), expected);
    }
}

/// The first match, by following all states at once for each beginning.
fn simulate(nfa: &regex_automata::nfa::thompson::NFA, text: &[u8]) -> Option<(usize, usize)> {
    use regex_automata::nfa::thompson::State;
    fn go(
        nfa: &regex_automata::nfa::thompson::NFA,
        text: &[u8],
        at: usize,
        id: regex_automata::util::primitives::StateID,
        seen: &mut std::collections::HashSet<(usize, usize)>,
    ) -> Option<usize> {
        if !seen.insert((at, id.as_usize())) {
            return None;
        }
        let byte = text.get(at).copied();
        let next = match nfa.state(id) {
            State::ByteRange { trans } => byte.filter(|b| trans.matches_byte(*b)).map(|_| trans.next),
            State::Sparse(all) => byte.and_then(|b| all.matches_byte(b)),
            State::Dense(all) => byte.and_then(|b| all.matches_byte(b)),
            State::Union { alternates } => return alternates.iter().find_map(|id| go(nfa, text, at, *id, seen)),
            State::BinaryUnion { alt1, alt2 } => {
                return [*alt1, *alt2].into_iter().find_map(|id| go(nfa, text, at, id, seen));
            }
            State::Capture { next, .. } => return go(nfa, text, at, *next, seen),
            State::Match { .. } => return Some(at),
            State::Look { .. } | State::Fail => None,
        };
        go(nfa, text, at + 1, next?, seen)
    }
    (0..=text.len()).find_map(|from| {
        let begins = text.get(from).is_none_or(|byte| byte & 0xc0 != 0x80);
        let to = begins.then(|| go(nfa, text, from, nfa.start_anchored(), &mut Default::default())).flatten();
        to.map(|to| (from, to))
    })
}

#[test]
fn patterns_without_white_space_keep_within_words() {
    for (pattern, keeps) in [
        (r"\w+", true),
        (r"\S+", true),
        (r"[a-z]+(?:-[a-z]+)*", true),
        (r"\b[A-Z]\w*\b", true),
        (r"(\d+):(\d+)", true),
        (r"\w*", false),
        (r"a b", false),
        (r"a\sb", false),
        (r"[^,]+", false),
        (r".+", false),
        (r"^\w+", false),
        (r"\w+$", false),
        (r"\w+\t?", false),
    ] {
        let regexp =
            Regexp::new(RegexpSource { text: pattern.into(), options: Options::default() }, &Rusts).expect(pattern);
        assert_eq!(regexp.keeps_within_words(), keeps, "{pattern}");
    }
}
