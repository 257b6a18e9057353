//! What the text of a regular expression means in Ruby.
//!
//! Here: a parser of the constructs that mean the same in a table as in Ruby. Everything else is refused by name:
//! look-around, back references, atomic groups, and forms about which Ruby has rules of its own. What classes have
//! beyond ASCII is asked of [`Unicode`], as it differs between versions of Ruby.
//!
//! # Where case is ignored
//!
//! A character also stands for what [`Unicode::folds`] pairs it with. Ruby takes some characters for several (`ß` for
//! `ss`), too. Kernels do not: such a character is refused, also in a class that is not negated. What may be several
//! for one is for ASCII text only. Ruby's sets with other characters beyond ASCII follow no rule that is known here, so
//! these are refused, too.

use super::{Options, RegexpSource, Unknown, class};
use crate::unicode::{Ranges, Unicode};
use regex_syntax::hir::{Capture, Class, ClassUnicode, ClassUnicodeRange, Hir, Look, Repetition};
use std::collections::{HashMap, HashSet};

/// The greatest number of repetitions that is written out.
const MAX_REPEATED: u32 = 1000;
/// The greatest depth of groups.
const MAX_DEPTH: usize = 100;

pub struct Parsed {
    pub hir: Hir,
    pub groups: usize,
    pub names: Vec<String>,
    pub ascii: bool,
    /// The characters of words, where the pattern has `\b` or `\B`.
    pub words: Option<Ranges>,
}

/// Whether a group has a name. What is escaped, in a set or in a comment may be mistaken for one.
pub fn may_have_names(text: &str) -> bool {
    text.match_indices("(?").any(|(at, _)| {
        let mut rest = text[at + 2..].chars();
        match rest.next() {
            Some('\'') => true,
            Some('<') => !matches!(rest.next(), Some('=' | '!')),
            _ => false,
        }
    })
}

/// # Errors
/// A construct that kernels do not know.
pub fn parse(pattern: &RegexpSource, unicode: &dyn Unicode) -> Result<Parsed, Unknown> {
    let text: Vec<char> = pattern.text.chars().collect();
    let named = may_have_names(&pattern.text);
    let mut parser = Parser {
        unicode,
        folds: None,
        text,
        at: 0,
        depth: 0,
        named,
        groups: 0,
        names: Vec::new(),
        before: None,
        ascii: false,
        words: false,
    };
    let hir = match parser.alternatives(pattern.options) {
        Ok(_) if parser.named && parser.names.is_empty() => {
            return Err(Unknown(format!("what looks like the name of a group in the regular expression {pattern}")));
        }
        Ok(hir) if parser.at == parser.text.len() => hir,
        Ok(_) => return Err(Unknown(format!("the regular expression {pattern}: its `)` has no `(`"))),
        Err(construct) => return Err(Unknown(format!("{construct} in the regular expression {pattern}"))),
    };
    let words = parser.words.then(|| unicode.words());
    Ok(Parsed { hir, groups: parser.groups, names: parser.names, ascii: parser.ascii, words })
}

/// The construct that kernels do not know.
type Answer<T> = Result<T, String>;

struct Parser<'a> {
    unicode: &'a dyn Unicode,
    /// What [`Unicode::folds`] says, once it was asked.
    folds: Option<Folds>,
    text: Vec<char>,
    at: usize,
    depth: usize,
    /// Whether some group has a name: then groups without one do not count.
    named: bool,
    groups: usize,
    names: Vec<String>,
    /// The character just before, where it may be the first of several that case makes one.
    before: Option<char>,
    ascii: bool,
    words: bool,
}

/// What is the same but for case.
struct Folds {
    singles: HashMap<char, Vec<char>>,
    /// The characters that are the same as several.
    several: HashSet<char>,
    /// The first two of several characters that are the same as one.
    pairs: HashSet<(char, char)>,
}

impl Folds {
    fn new(all: Vec<(char, String)>) -> Self {
        let mut folds = Folds { singles: HashMap::new(), several: HashSet::new(), pairs: HashSet::new() };
        for (from, to) in all {
            let mut to = to.chars();
            match (to.next(), to.next()) {
                (Some(one), None) => folds.singles.entry(from).or_default().push(one),
                (Some(one), Some(two)) => {
                    folds.several.insert(from);
                    folds.pairs.insert((one, two));
                }
                _ => {}
            }
        }
        folds
    }

    fn same_as(&self, c: char) -> impl Iterator<Item = char> + Clone {
        self.singles.get(&c).into_iter().flatten().copied().chain([c])
    }

    fn may_be_one(&self, before: char, c: char) -> bool {
        self.same_as(before).any(|one| self.same_as(c).any(|two| self.pairs.contains(&(one, two))))
    }
}

fn refuse<T>(construct: impl Into<String>) -> Answer<T> {
    Err(construct.into())
}

const DIGIT: &[(char, char)] = &[('0', '9')];
const WORD: &[(char, char)] = &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
const SPACE: &[(char, char)] = &[('\t', '\r'), (' ', ' ')];
const HEX: &[(char, char)] = &[('0', '9'), ('A', 'F'), ('a', 'f')];

/// The class of one letter behind a backslash.
fn shorthand(letter: char) -> Option<ClassUnicode> {
    let mut class = class(match letter.to_ascii_lowercase() {
        'd' => DIGIT,
        'w' => WORD,
        's' => SPACE,
        'h' => HEX,
        _ => return None,
    });
    if letter.is_ascii_uppercase() {
        class.negate();
    }
    Some(class)
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn after(&self, n: usize) -> Option<char> {
        self.text.get(self.at + n).copied()
    }

    fn takes(&mut self, text: &str) -> bool {
        let n = text.chars().count();
        let found = text.chars().eq(self.text.iter().skip(self.at).take(n).copied());
        if found {
            self.at += n;
        }
        found
    }

    fn alternatives(&mut self, options: Options) -> Answer<Hir> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return refuse(format!("groups more than {MAX_DEPTH} deep"));
        }
        let mut all = vec![self.sequence(options)?];
        while self.takes("|") {
            all.push(self.sequence(options)?);
        }
        self.depth -= 1;
        Ok(Hir::alternation(all))
    }

    fn skip_free_space(&mut self, options: Options) {
        if !options.extended {
            return;
        }
        loop {
            match self.peek() {
                Some(' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c') => self.at += 1,
                Some('#') => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn sequence(&mut self, options: Options) -> Answer<Hir> {
        let mut all = Vec::new();
        loop {
            self.skip_free_space(options);
            match self.peek() {
                None | Some('|' | ')') => return Ok(Hir::concat(all)),
                _ => {}
            }
            if self.comment()? {
                continue;
            }
            let atom = self.atom(options)?;
            all.push(self.quantified(atom, options)?);
        }
    }

    /// `(?#…)`
    fn comment(&mut self) -> Answer<bool> {
        if !self.takes("(?#") {
            return Ok(false);
        }
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                ')' => return Ok(true),
                '\\' => return refuse("a backslash in a comment"),
                _ => {}
            }
        }
        refuse("a comment without an end")
    }

    fn quantified(&mut self, mut atom: Hir, options: Options) -> Answer<Hir> {
        let mut any = false;
        loop {
            self.skip_free_space(options);
            while self.comment()? {
                self.skip_free_space(options);
            }
            let (min, max) = match self.peek() {
                Some('*') => (0, None),
                Some('+') => (1, None),
                Some('?') => (0, Some(1)),
                Some('{') => match self.counts()? {
                    Some(counts) => counts,
                    None => return Ok(atom),
                },
                _ => return Ok(atom),
            };
            let braces = self.peek() == Some('{');
            if any {
                return refuse("a quantifier of a quantifier");
            }
            any = true;
            while braces && self.peek() != Some('}') {
                self.at += 1;
            }
            self.at += 1;
            let mut greedy = true;
            match (self.peek(), braces) {
                (Some('?'), false) => greedy = false,
                (Some('?'), true) if max != Some(min) => greedy = false,
                // Ruby takes `{2}?` for an optional one, and `{1,2}+` for a repeated one
                (Some('?' | '+'), true) => return refuse("a quantifier of a quantifier"),
                (Some('+'), false) => return refuse("a possessive quantifier"),
                _ => {}
            }
            if !greedy {
                self.at += 1;
            }
            if max != Some(1) && atom.properties().minimum_len() == Some(0) {
                return refuse("a repetition of what may be empty");
            }
            if min > MAX_REPEATED || max.is_some_and(|max| max > MAX_REPEATED) {
                return refuse(format!("more than {MAX_REPEATED} repetitions"));
            }
            if let (Some(c), true) = (self.before, options.ignores_case && max != Some(1)) {
                self.ascii |= self.folds().may_be_one(c, c);
            }
            if max.is_some_and(|max| max < min) {
                return refuse("a number of repetitions that descends");
            }
            atom = Hir::repetition(Repetition { min, max, greedy, sub: Box::new(atom) });
        }
    }

    /// The numbers of `{2}`, `{2,}`, `{,3}`, `{2,3}`; None for another brace. Takes nothing.
    fn counts(&self) -> Answer<Option<(u32, Option<u32>)>> {
        let inner: String = self.text[self.at + 1..].iter().take_while(|c| **c != '}').collect();
        if self.at + inner.chars().count() + 1 >= self.text.len() {
            return Ok(None);
        }
        let number = |digits: &str| -> Answer<Option<u32>> {
            if digits.is_empty() {
                return Ok(None);
            }
            digits.parse().map(Some).or_else(|_| refuse(format!("more than {MAX_REPEATED} repetitions")))
        };
        let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
        Ok(match inner.split_once(',') {
            None if inner.is_empty() || !digits(&inner) => None,
            None => number(&inner)?.map(|n| (n, Some(n))),
            Some((from, to)) if from.is_empty() && to.is_empty() || !digits(from) || !digits(to) => None,
            Some((from, to)) => Some((number(from)?.unwrap_or(0), number(to)?)),
        })
    }

    fn folds(&mut self) -> &Folds {
        self.folds.get_or_insert_with(|| Folds::new(self.unicode.folds()))
    }

    /// `before`: the character before it, if that is one of the pattern, too.
    fn literal(&mut self, c: char, before: Option<char>, options: Options) -> Answer<Hir> {
        self.before = Some(c);
        if options.ignores_case {
            let folds = self.folds();
            if folds.several.contains(&c) {
                return refuse("a character that stands for several where case is ignored");
            }
            let same = class(&folds.same_as(c).map(|c| (c, c)).collect::<Vec<_>>());
            let one = before.is_some_and(|before| folds.may_be_one(before, c));
            self.ascii |= one;
            return Ok(Hir::class(Class::Unicode(same)));
        }
        Ok(Hir::literal(c.to_string().into_bytes()))
    }

    /// Whether some character of a class stands for several where case is ignored.
    fn has_several(&mut self, class: &ClassUnicode) -> bool {
        let several = &self.folds().several;
        class.iter().any(|range| several.iter().any(|c| (range.start()..=range.end()).contains(c)))
    }

    /// With what is the same but for case.
    fn folded(&mut self, class: &ClassUnicode) -> ClassUnicode {
        let mut all = class.clone();
        for (from, to) in &self.folds().singles {
            if class.iter().any(|range| (range.start()..=range.end()).contains(from)) {
                all.union(&ClassUnicode::new(to.iter().map(|c| ClassUnicodeRange::new(*c, *c))));
            }
        }
        all
    }

    fn atom(&mut self, options: Options) -> Answer<Hir> {
        let Some(c) = self.peek() else { return Ok(Hir::empty()) };
        let before = self.before.take();
        match c {
            '(' => return self.group(options),
            '[' => {
                let class = self.set(options)?;
                return Ok(Hir::class(Class::Unicode(class)));
            }
            '\\' => return self.escape(before, options),
            _ => self.at += 1,
        }
        match c {
            '.' => {
                let mut any = class(&[]);
                if !options.dot_all {
                    any = class(&[('\n', '\n')]);
                }
                any.negate();
                Ok(Hir::class(Class::Unicode(any)))
            }
            '^' => Ok(Hir::look(Look::StartLF)),
            '$' => Ok(Hir::look(Look::EndLF)),
            '*' | '+' | '?' => refuse("a quantifier of nothing"),
            '{' => refuse("`{` without a backslash"),
            c => self.literal(c, before, options),
        }
    }

    fn group(&mut self, options: Options) -> Answer<Hir> {
        let mut inner = options;
        let mut capture = None;
        self.at += 1;
        if !self.takes("?") {
            if !self.named {
                self.groups += 1;
                capture = Some(self.groups);
            }
        } else if self.takes(":") {
        } else if self.takes("=") || self.takes("!") {
            return refuse("look-ahead");
        } else if self.takes("<=") || self.takes("<!") {
            return refuse("look-behind");
        } else if self.takes(">") {
            return refuse("an atomic group");
        } else if self.takes("~") {
            return refuse("an absence operator");
        } else if self.takes("(") {
            return refuse("a conditional group");
        } else if matches!(self.peek(), Some('<' | '\'')) {
            let end = if self.peek() == Some('<') { '>' } else { '\'' };
            self.at += 1;
            let name: String = self.text[self.at..].iter().take_while(|c| **c != end).collect();
            self.at += name.chars().count() + 1;
            let word = |c: char| c.is_alphanumeric() || c == '_';
            if !name.chars().all(word) || name.chars().next().is_none_or(|c| c.is_ascii_digit()) {
                return refuse("this name of a group");
            }
            if self.names.contains(&name) {
                return refuse("two groups of one name");
            }
            self.names.push(name);
            self.groups += 1;
            capture = Some(self.groups);
        } else {
            let first = self.at == 2 && self.depth == 1;
            inner = self.letters(options)?;
            if self.takes(")") {
                // up to the end of the group around it, all alternatives included
                if !first {
                    return refuse("options in the middle of a pattern");
                }
                return self.alternatives(inner);
            }
            if !self.takes(":") {
                return refuse("this form of group");
            }
        }
        let sub = self.alternatives(inner)?;
        if !self.takes(")") {
            return refuse("a group without an end");
        }
        Ok(match capture {
            Some(index) => Hir::capture(Capture { index: index as u32, name: None, sub: Box::new(sub) }),
            None => sub,
        })
    }

    /// `mix-mix`
    fn letters(&mut self, mut options: Options) -> Answer<Options> {
        let mut on = true;
        while let Some(c) = self.peek() {
            match c {
                'm' => options.dot_all = on,
                'i' => options.ignores_case = on,
                'x' => options.extended = on,
                '-' if on => on = false,
                ':' | ')' => break,
                _ => return refuse("this form of group"),
            }
            self.at += 1;
        }
        Ok(options)
    }

    fn escape(&mut self, before: Option<char>, options: Options) -> Answer<Hir> {
        let Some(c) = self.after(1) else { return refuse("a backslash at the end") };
        if let Some(class) = shorthand(c) {
            self.at += 2;
            return Ok(Hir::class(Class::Unicode(class)));
        }
        let look = match c {
            'A' => Look::Start,
            'z' => Look::End,
            // the automaton gives this one Ruby's meaning of `\Z`
            'Z' => Look::EndCRLF,
            'b' | 'B' => {
                self.words = true;
                // the table says which characters are those of words
                if c == 'b' { Look::WordAscii } else { Look::WordAsciiNegate }
            }
            'p' | 'P' => {
                let class = self.property(options)?;
                return Ok(Hir::class(Class::Unicode(class)));
            }
            '1'..='9' => return refuse("a back reference"),
            'k' => return refuse("a back reference"),
            'g' => return refuse("a subexpression call"),
            'G' => return refuse("`\\G`"),
            'K' => return refuse("look-behind (`\\K`)"),
            'R' | 'X' => return refuse(format!("`\\{c}`")),
            _ => {
                let c = self.escaped()?;
                return self.literal(c, before, options);
            }
        };
        self.at += 2;
        Ok(Hir::look(look))
    }

    /// `\p{Alpha}`, `\p{^Alpha}` and `\P{Alpha}`.
    fn property(&mut self, options: Options) -> Answer<ClassUnicode> {
        let negated = self.after(1) == Some('P');
        let rest: String = self.text[self.at..].iter().skip(2).take_while(|c| **c != '}').collect();
        let Some(name) = rest.strip_prefix('{') else { return refuse("this property") };
        let (caret, name) = name.strip_prefix('^').map_or((false, name), |name| (true, name));
        let Some(ranges) = self.unicode.property(name) else { return refuse(format!("`\\p{{{name}}}`")) };
        self.at += rest.chars().count() + 3;
        let mut class = class(&ranges);
        if negated != caret {
            class.negate();
        }
        if options.ignores_case && (self.has_several(&class) || self.folded(&class) != class) {
            return refuse(format!("`\\p{{{name}}}` where case is ignored"));
        }
        Ok(class)
    }

    /// A character that a backslash writes.
    fn escaped(&mut self) -> Answer<char> {
        let Some(c) = self.after(1) else { return refuse("a backslash at the end") };
        self.at += 2;
        Ok(match c {
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'f' => '\x0c',
            'v' => '\x0b',
            'a' => '\x07',
            'e' => '\x1b',
            '0' if !self.peek().is_some_and(|c| c.is_ascii_digit()) => '\0',
            'x' => {
                let digits = self.digits(2);
                match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32) {
                    Some(c) if c.is_ascii() => c,
                    _ => return refuse("a byte beyond ASCII"),
                }
            }
            'u' if self.takes("{") => {
                let digits = self.digits(8);
                let c = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                match c {
                    Some(c) if self.takes("}") => c,
                    _ => return refuse("this form of `\\u`"),
                }
            }
            'u' => {
                let digits = self.digits(4);
                let c = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                match c {
                    Some(c) if digits.len() == 4 => c,
                    _ => return refuse("this form of `\\u`"),
                }
            }
            c if c.is_ascii_punctuation() || c == ' ' => c,
            '\n' => return refuse("a backslash at the end of a line"),
            c => return refuse(format!("`\\{c}`")),
        })
    }

    fn digits(&mut self, most: usize) -> String {
        let digits: String = self.text[self.at..].iter().take(most).take_while(|c| c.is_ascii_hexdigit()).collect();
        self.at += digits.len();
        digits
    }

    /// `[…]`
    fn set(&mut self, options: Options) -> Answer<ClassUnicode> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return refuse(format!("groups more than {MAX_DEPTH} deep"));
        }
        self.at += 1;
        let negated = self.takes("^");
        let mut whole: Option<ClassUnicode> = None;
        let mut part = class(&[]);
        // where case is ignored: what has both cases, and whether that makes some of it stand for several
        let mut both = class(&[]);
        let mut stands_for_several = false;
        let mut first = true;
        loop {
            let Some(c) = self.peek() else { return refuse("a set without an end") };
            match c {
                ']' if first => return refuse("`]` as the first of a set"),
                ']' => break,
                '&' if self.after(1) == Some('&') => {
                    if first || options.ignores_case {
                        return refuse("this use of `&&`");
                    }
                    self.at += 2;
                    part.union(&std::mem::replace(&mut both, class(&[])));
                    let before = std::mem::replace(&mut part, class(&[]));
                    whole = Some(meet(whole, before));
                    first = true;
                    continue;
                }
                '[' if self.after(1) == Some(':') => {
                    let named = self.bracket(options)?;
                    stands_for_several |= options.ignores_case && self.has_several(&named);
                    both.union(&named);
                }
                '[' if options.ignores_case => return refuse("a set in a set where case is ignored"),
                '[' => {
                    let inner = self.set(options)?;
                    part.union(&inner);
                }
                '\\' if self.after(1).is_some_and(|c| matches!(c, 'p' | 'P')) => {
                    let property = self.property(options)?;
                    both.union(&property);
                }
                '\\' if let Some(shorthand) = self.after(1).and_then(shorthand) => {
                    self.at += 2;
                    stands_for_several |= options.ignores_case && self.has_several(&shorthand);
                    both.union(&shorthand);
                }
                _ => {
                    let from = self.member()?;
                    let range = self.peek() == Some('-') && !matches!(self.after(1), Some(']') | None);
                    let to = if range {
                        self.at += 1;
                        let set = self.peek() == Some('[') || self.peek() == Some('&') && self.after(1) == Some('&');
                        let shorthand = self.peek() == Some('\\') && self.after(1).and_then(shorthand).is_some();
                        if set || shorthand || from == '-' {
                            return refuse("`-` without a backslash in a set");
                        }
                        self.member()?
                    } else {
                        // only where it cannot be taken for a range
                        if from == '-' && !first && !matches!(self.peek(), Some(']')) {
                            return refuse("`-` without a backslash in a set");
                        }
                        from
                    };
                    if to < from {
                        return refuse("a range that descends");
                    }
                    if options.ignores_case && !(from.is_ascii() && to.is_ascii()) {
                        return refuse("a character beyond ASCII where case is ignored");
                    }
                    part.push(ClassUnicodeRange::new(from, to));
                }
            }
            first = false;
        }
        if first {
            return refuse("an empty part of a set");
        }
        self.at += 1;
        self.depth -= 1;
        if options.ignores_case {
            // Ruby looks for the several only where the set is not negated
            if stands_for_several && !negated {
                return refuse("characters that stand for several in a set where case is ignored");
            }
            part = self.folded(&part);
        }
        part.union(&both);
        let mut all = meet(whole, part);
        if negated {
            all.negate();
        }
        Ok(all)
    }

    fn member(&mut self) -> Answer<char> {
        match self.peek() {
            Some('\\') if self.after(1) == Some('b') => {
                self.at += 2;
                Ok('\x08')
            }
            Some('\\') => {
                if self.after(1).is_some_and(|c| matches!(c, '1'..='9' | 'R' | 'X')) {
                    return refuse("this escape in a set");
                }
                self.escaped()
            }
            Some(c) => {
                self.at += 1;
                Ok(c)
            }
            None => refuse("a set without an end"),
        }
    }

    /// `[:alpha:]` and `[:^alpha:]` within a set.
    fn bracket(&mut self, options: Options) -> Answer<ClassUnicode> {
        let rest: String = self.text[self.at + 2..].iter().take_while(|c| **c != ':').collect();
        let (negated, name) = rest.strip_prefix('^').map_or((false, &*rest), |name| (true, name));
        let Some(ranges) = self.unicode.bracket(name) else { return refuse(format!("`[:{name}:]`")) };
        let named = class(&ranges);
        if options.ignores_case && self.folded(&named) != named {
            return refuse(format!("`[:{name}:]` where case is ignored"));
        }
        self.at += 2 + rest.chars().count();
        if !self.takes(":]") {
            return refuse(format!("`[:{name}`"));
        }
        let mut class = named;
        if negated {
            class.negate();
        }
        Ok(class)
    }
}

fn meet(whole: Option<ClassUnicode>, mut part: ClassUnicode) -> ClassUnicode {
    if let Some(whole) = whole {
        part.intersect(&whole);
    }
    part
}
