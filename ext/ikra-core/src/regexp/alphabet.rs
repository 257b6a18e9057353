//! The alphabet of a pattern.
//!
//! A pattern tells few characters apart: `/[[:alpha:]]+\d/` asks whether one is a letter, a digit, or neither. All
//! characters about which it asks the same are one *symbol*, and the automaton reads symbols. So its tables are small,
//! however many characters a class has. Here: the symbols of a pattern, the pattern over symbols, and the table that
//! gives the symbol of a character. Not here: the automaton ([`super::automaton`]).
//!
//! # What the bytes of a table of characters contain
//!
//! Two bytes are the number of blocks of 128 characters, the low byte first. Two for each of these follow: the number
//! of what it contains. Then come the contents: 128 symbols each. Characters beyond the blocks have the symbol of the
//! last character of all.

use regex_syntax::hir::{Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, Hir, HirKind, Repetition};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The most symbols.
const MAX_SYMBOLS: usize = 250;
const BLOCK: usize = 128;

pub struct Alphabet {
    /// The first characters of intervals that ascend from the first of all characters, with their symbols.
    intervals: Vec<(u32, u8)>,
    /// A character of each symbol.
    samples: Vec<char>,
}

impl Alphabet {
    /// The alphabet of a pattern whose assertions tell these classes apart, too. None: it has too many symbols.
    pub fn new(hir: &Hir, asked: &[ClassUnicode]) -> Option<Self> {
        let mut sets: HashSet<ClassUnicodeKey> = asked.iter().map(key).collect();
        collect(hir, &mut sets);
        let mut changes: HashMap<u32, Vec<usize>> = HashMap::new();
        for (number, set) in sets.iter().enumerate() {
            for (from, to) in set {
                changes.entry(u32::from(*from)).or_default().push(number);
                changes.entry(after(*to)).or_default().push(number);
            }
        }
        let places: BTreeSet<u32> = changes.keys().copied().chain([0]).filter(|at| *at <= char::MAX.into()).collect();
        let mut within = vec![0_u64; sets.len().div_ceil(64)];
        let mut known: HashMap<Vec<u64>, u8> = HashMap::new();
        let (mut intervals, mut samples) = (Vec::new(), Vec::new());
        for at in places {
            for number in changes.get(&at).into_iter().flatten() {
                within[number / 64] ^= 1 << (number % 64);
            }
            let Some(sample) = char::from_u32(at) else { continue };
            if known.len() == MAX_SYMBOLS && !known.contains_key(&within) {
                return None;
            }
            let fresh = known.len() as u8;
            let symbol = *known.entry(within.clone()).or_insert_with(|| {
                samples.push(sample);
                fresh
            });
            intervals.push((at, symbol));
        }
        Some(Self { intervals, samples })
    }

    /// A character of each symbol.
    pub fn samples(&self) -> &[char] {
        &self.samples
    }

    pub fn symbol(&self, c: char) -> u8 {
        let after = self.intervals.partition_point(|(first, _)| *first <= c.into());
        self.intervals[after - 1].1
    }

    /// The pattern, with the number of a symbol as a byte for each character.
    pub fn translated(&self, hir: &Hir) -> Hir {
        match hir.kind() {
            HirKind::Empty => Hir::empty(),
            HirKind::Literal(literal) => Hir::literal(text(&literal.0).map(|c| self.symbol(c)).collect::<Vec<_>>()),
            HirKind::Class(class) => {
                let class = unicode(class);
                let inside = |at: u32| class.iter().any(|r| (u32::from(r.start())..=r.end().into()).contains(&at));
                let symbols = self.samples.iter().enumerate().filter(|(_, sample)| inside(u32::from(**sample)));
                let symbols = symbols.map(|(symbol, _)| ClassBytesRange::new(symbol as u8, symbol as u8));
                Hir::class(Class::Bytes(ClassBytes::new(symbols)))
            }
            HirKind::Look(look) => Hir::look(*look),
            HirKind::Repetition(repeated) => {
                Hir::repetition(Repetition { sub: Box::new(self.translated(&repeated.sub)), ..repeated.clone() })
            }
            HirKind::Capture(capture) => {
                Hir::capture(Capture { sub: Box::new(self.translated(&capture.sub)), ..capture.clone() })
            }
            HirKind::Concat(all) => Hir::concat(all.iter().map(|hir| self.translated(hir)).collect()),
            HirKind::Alternation(all) => Hir::alternation(all.iter().map(|hir| self.translated(hir)).collect()),
        }
    }

    /// The table of characters. None: all characters beyond ASCII are one symbol.
    pub fn table(&self) -> Option<Vec<u8>> {
        let last = self.symbol(char::MAX);
        if self.symbol('\u{80}') == last && self.intervals.iter().all(|(at, symbol)| *at < 0x80 || *symbol == last) {
            return None;
        }
        let mut blocks: Vec<[u8; BLOCK]> = Vec::new();
        let mut interval = 0;
        for first in (0..=char::MAX as usize).step_by(BLOCK) {
            let mut block = [last; BLOCK];
            for (k, symbol) in block.iter_mut().enumerate() {
                while self.intervals.get(interval + 1).is_some_and(|(at, _)| *at as usize <= first + k) {
                    interval += 1;
                }
                *symbol = self.intervals[interval].1;
            }
            blocks.push(block);
        }
        while blocks.last().is_some_and(|block| *block == [last; BLOCK]) {
            blocks.pop();
        }
        let mut contents = Vec::new();
        let mut known: HashMap<[u8; BLOCK], u16> = HashMap::new();
        let mut table = (blocks.len() as u16).to_le_bytes().to_vec();
        for block in blocks {
            let fresh = known.len() as u16;
            let number = *known.entry(block).or_insert_with(|| {
                contents.extend(block);
                fresh
            });
            table.extend(number.to_le_bytes());
        }
        table.extend(contents);
        Some(table)
    }
}

/// The number of the next character. Surrogates are none.
fn after(c: char) -> u32 {
    if c == '\u{d7ff}' { 0xe000 } else { u32::from(c) + 1 }
}

/// What tells two classes apart.
type ClassUnicodeKey = Vec<(char, char)>;

fn key(class: &ClassUnicode) -> ClassUnicodeKey {
    class.iter().map(|range| (range.start(), range.end())).collect()
}

/// The characters of a literal.
fn text(literal: &[u8]) -> std::str::Chars<'_> {
    str::from_utf8(literal).expect("the parser makes literals of characters").chars()
}

fn unicode(class: &Class) -> ClassUnicode {
    match class {
        Class::Unicode(class) => class.clone(),
        Class::Bytes(class) => {
            class.to_unicode_class().expect("the parser makes no bytes, and the crate those of ASCII")
        }
    }
}

/// The classes of a pattern, and those of its single characters.
fn collect(hir: &Hir, sets: &mut HashSet<ClassUnicodeKey>) {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => sets.extend(text(&literal.0).map(|c| vec![(c, c)])),
        HirKind::Class(class) => {
            sets.insert(key(&unicode(class)));
        }
        HirKind::Repetition(repeated) => collect(&repeated.sub, sets),
        HirKind::Capture(capture) => collect(&capture.sub, sets),
        HirKind::Concat(all) | HirKind::Alternation(all) => all.iter().for_each(|hir| collect(hir, sets)),
    }
}
