//! Tables that find matches, built from the states of regex-automata.
//!
//! Here: sets of states become rows of a table, assertions get Ruby's meaning, rows that do the same become one. Not
//! here: the symbols that the rows have entries for ([`super::alphabet`]), and how the tables are followed
//! (`prelude/string_functions.rb`).
//!
//! # What the bytes of a table contain
//!
//! * 0 to 127: the symbol of each character of ASCII.
//! * 128 to 255: the symbol of all other characters, or of those that the table of characters does not have.
//! * 256: the number of symbols with the last ones, which is the number of entries in a row.
//! * 257: whether a newline that ends the text has the symbol before the last one, 1 or 0.
//! * 258: the number of bytes of an entry, 1 or 2.
//! * 259: whether there is a table of characters, 1 or 0. It follows the rows, and the last four bytes of all tell
//!   where it begins.
//! * From 260 on: rows of entries, the low byte first.
//!
//! The last symbol is that of the text's edge: of its end, and for [`Table::Reverse`] of its beginning. An entry is
//! twice the number of the next row, plus 1 if a match ended before this character. Row 0 goes nowhere. Row 1 is asked
//! first, for the character on the other side of where the search begins.
//!
//! In a table of captures, an entry has 10 bytes. Two are the next row. Four tell which positions the match has passed
//! before this character, as bits. Four tell it for a match that ends here, and are 0 where none does. Bit `2n` is the
//! beginning of group `n`, and bit `2n + 1` its end.

use super::alphabet::Alphabet;
use super::{MAX_BYTES, Table, class};
use crate::unicode::Ranges;
use regex_automata::nfa::thompson::{self, NFA, State, WhichCaptures};
use regex_automata::util::look::Look;
use regex_automata::util::primitives::StateID;
use regex_syntax::hir::{ClassUnicode, Hir};
use std::cell::Cell;
use std::collections::HashMap;

/// Where the rows of a table begin.
const ROWS: usize = 260;
/// The most bytes of regex-automata's states.
const MAX_STATES_BYTES: usize = 1 << 20;
/// The most states that may be looked at until a table is built: about half a second of work.
const MAX_WORK: usize = 50 << 20;
/// The most groups whose positions fit into 32 bits.
pub const MAX_GROUPS: usize = 15;

/// What stands on one side of a place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Side {
    /// Nothing: the text begins or ends here.
    Edge,
    /// A newline that ends the text.
    LastNewline,
    Newline,
    Word,
    Other,
}

impl Side {
    fn is_newline(self) -> bool {
        matches!(self, Side::Newline | Side::LastNewline)
    }
}

/// Which assertions a pattern has.
#[derive(Clone, Copy, Default)]
struct Looks {
    lines: bool,
    edges: bool,
    last_newline: bool,
    words: bool,
}

/// A symbol of a table.
#[derive(Clone, Copy)]
struct Symbol {
    /// What it is in the alphabet. None: the text's edge.
    byte: Option<u8>,
    side: Side,
}

struct Builder {
    nfa: NFA,
    reverse: bool,
    looks: Looks,
    alphabet: Alphabet,
    symbols: Vec<Symbol>,
    /// How many states were looked at.
    work: Cell<usize>,
}

/// A row that is not built yet: states in the order in which they are preferred.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Row {
    behind: Side,
    states: Vec<StateID>,
    /// A match may begin here as well, if none has begun that was preferred.
    begins: bool,
}

/// Why there is no table.
pub enum Fault {
    TooLarge,
    /// More work than [`MAX_WORK`].
    TooSlow,
    /// Captures that one look at each character does not tell apart.
    NotOnePass,
    ManyGroups,
}

/// The bytes of a table.
///
/// # Errors
/// Too many rows, or captures that one look at each character does not tell apart.
pub fn build(hir: &Hir, table: Table, words: Option<&Ranges>) -> Result<Vec<u8>, Fault> {
    let words = words.map(|words| class(words));
    let newline = [class(&[('\n', '\n')])];
    let asked: Vec<ClassUnicode> = words.iter().chain(&newline).cloned().collect();
    let alphabet = Alphabet::new(hir, &asked).ok_or(Fault::TooLarge)?;
    let hir = alphabet.translated(hir);
    let reverse = table == Table::Reverse;
    let captures = if table == Table::Captures { WhichCaptures::All } else { WhichCaptures::None };
    let config = thompson::Config::new()
        .reverse(reverse)
        .utf8(false)
        .which_captures(captures)
        .nfa_size_limit(Some(MAX_STATES_BYTES))
        .shrink(false);
    let nfa = thompson::Compiler::new().configure(config).build_from_hir(&hir).map_err(|_| Fault::TooLarge)?;
    let builder = Builder::new(nfa, reverse, alphabet, words.as_ref());
    let mut bytes = match table {
        Table::Captures => builder.captures(),
        Table::Forward => builder.rows(true, false),
        Table::Anchored => builder.rows(false, false),
        Table::Reverse => builder.rows(false, true),
    }?;
    if let Some(characters) = builder.alphabet.table() {
        let begin = bytes.len() as u32;
        bytes.extend(characters);
        bytes.extend(begin.to_le_bytes());
    }
    if bytes.len() > MAX_BYTES { Err(Fault::TooLarge) } else { Ok(bytes) }
}

impl Builder {
    fn new(nfa: NFA, reverse: bool, alphabet: Alphabet, words: Option<&ClassUnicode>) -> Self {
        let mut looks = Looks::default();
        for state in nfa.states() {
            if let State::Look { look, .. } = state {
                match asked(*look, reverse) {
                    Look::StartLF | Look::EndLF => looks.lines = true,
                    Look::EndCRLF => looks.last_newline = true,
                    Look::WordAscii | Look::WordAsciiNegate => looks.words = true,
                    _ => looks.edges = true,
                }
            }
        }
        let side = |c: char| match words {
            _ if c == '\n' => Side::Newline,
            Some(words) if words.iter().any(|range| (range.start()..=range.end()).contains(&c)) => Side::Word,
            _ => Side::Other,
        };
        let samples = alphabet.samples().iter().enumerate();
        let mut symbols: Vec<Symbol> =
            samples.map(|(n, c)| Symbol { byte: Some(n as u8), side: looks.side(side(*c)) }).collect();
        if looks.last_newline {
            symbols.push(Symbol { byte: Some(alphabet.symbol('\n')), side: Side::LastNewline });
        }
        symbols.push(Symbol { byte: None, side: looks.side(Side::Edge) });
        Self { nfa, reverse, looks, alphabet, symbols, work: Cell::new(0) }
    }

    fn holds(&self, look: Look, behind: Side, ahead: Side) -> bool {
        let (before, after) = if self.reverse { (ahead, behind) } else { (behind, ahead) };
        match asked(look, self.reverse) {
            Look::Start => before == Side::Edge,
            Look::End => after == Side::Edge,
            // a line that is empty does not begin at the end of the text, unless it is all of it
            Look::StartLF => before == Side::Edge || before.is_newline() && after != Side::Edge,
            Look::EndLF => after == Side::Edge || after.is_newline(),
            Look::EndCRLF => matches!(after, Side::Edge | Side::LastNewline),
            Look::WordAscii => (before == Side::Word) != (after == Side::Word),
            Look::WordAsciiNegate => (before == Side::Word) == (after == Side::Word),
            _ => unreachable!("the parser makes no other assertion"),
        }
    }

    /// The states that a state reaches without a byte, in the order in which they are preferred. Gives whether a match
    /// ends here; then the search ends there, unless `all` are asked for.
    fn reach(
        &self,
        from: StateID,
        (behind, ahead): (Side, Side),
        all: bool,
        seen: &mut [bool],
        out: &mut Vec<StateID>,
    ) -> bool {
        let mut matched = false;
        let mut open = vec![from];
        while let Some(id) = open.pop() {
            self.work.set(self.work.get() + 1);
            if std::mem::replace(&mut seen[id.as_usize()], true) {
                continue;
            }
            match self.nfa.state(id) {
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => out.push(id),
                State::Look { look, next } => {
                    if self.holds(*look, behind, ahead) {
                        open.push(*next);
                    }
                }
                State::Union { alternates } => open.extend(alternates.iter().rev()),
                State::BinaryUnion { alt1, alt2 } => open.extend([*alt2, *alt1]),
                State::Capture { next, .. } => open.push(*next),
                State::Fail => {}
                State::Match { .. } => {
                    matched = true;
                    if !all {
                        return true;
                    }
                }
            }
        }
        matched
    }

    /// The state after a byte.
    fn after(&self, state: StateID, byte: u8) -> Option<StateID> {
        match self.nfa.state(state) {
            State::ByteRange { trans } => trans.matches_byte(byte).then_some(trans.next),
            State::Sparse(transitions) => transitions.matches_byte(byte),
            State::Dense(transitions) => transitions.matches_byte(byte),
            _ => None,
        }
    }

    /// The row after a symbol, and whether a match ends before the symbol.
    fn step(&self, row: &Row, symbol: Symbol, all: bool) -> (Row, bool) {
        let sides = (row.behind, symbol.side);
        let mut seen = vec![false; self.nfa.states().len()];
        let mut reached = Vec::new();
        let mut matched = false;
        for state in &row.states {
            matched |= self.reach(*state, sides, all, &mut seen, &mut reached);
            if matched && !all {
                break;
            }
        }
        if row.begins && !matched {
            matched = self.reach(self.nfa.start_anchored(), sides, all, &mut seen, &mut reached);
        }
        let mut states = Vec::new();
        if let Some(byte) = symbol.byte {
            for state in reached {
                if let Some(next) = self.after(state, byte)
                    && !states.contains(&next)
                {
                    states.push(next);
                }
            }
        }
        let begins = row.begins && !matched && symbol.byte.is_some();
        let behind = if states.is_empty() && !begins { Side::Other } else { symbol.side };
        (Row { behind, states, begins }, matched)
    }

    fn rows(&self, begins: bool, all: bool) -> Result<Vec<u8>, Fault> {
        let width = self.symbols.len();
        let nowhere = Row { behind: Side::Other, states: Vec::new(), begins: false };
        let mut numbers: HashMap<Row, usize> = HashMap::from([(nowhere.clone(), 0)]);
        let mut open = vec![nowhere];
        // the entries of row 0 and row 1, which no set of states stands for
        let mut entries: Vec<(usize, bool)> = vec![(0, false); width];
        let number = |row: Row, open: &mut Vec<Row>, numbers: &mut HashMap<Row, usize>| {
            *numbers.entry(row.clone()).or_insert_with(|| {
                open.push(row);
                open.len()
            })
        };
        for symbol in &self.symbols {
            let first = Row {
                behind: symbol.side,
                states: if begins { Vec::new() } else { vec![self.nfa.start_anchored()] },
                begins,
            };
            entries.push((number(first, &mut open, &mut numbers), false));
        }
        let mut at = 1;
        while let Some(row) = open.get(at).cloned() {
            for symbol in &self.symbols {
                // a set of all states is made, and the row's are copied and hashed
                self.has_looked(self.nfa.states().len() / 16 + 4 * row.states.len() + 16)?;
                let (next, matched) = self.step(&row, *symbol, all);
                entries.push((number(next, &mut open, &mut numbers), matched));
            }
            if entries.len() > MAX_BYTES / 2 {
                return Err(Fault::TooLarge);
            }
            at += 1;
        }
        let entries = fewer(&entries, width);
        let bytes = if entries.len() / width < 128 { 1 } else { 2 };
        if entries.len() / width >= 1 << 15 || ROWS + entries.len() * bytes > MAX_BYTES {
            return Err(Fault::TooLarge);
        }
        let mut table = self.head(bytes)?;
        for (next, matched) in entries {
            let entry = next << 1 | usize::from(matched);
            table.extend(&entry.to_le_bytes()[..bytes]);
        }
        Ok(table)
    }

    /// Counts work.
    fn has_looked(&self, states: usize) -> Result<(), Fault> {
        self.work.set(self.work.get() + states);
        if self.work.get() > MAX_WORK { Err(Fault::TooSlow) } else { Ok(()) }
    }

    fn head(&self, bytes: usize) -> Result<Vec<u8>, Fault> {
        let width = u8::try_from(self.symbols.len()).map_err(|_| Fault::TooLarge)?;
        let mut head: Vec<u8> = (0..128_u8).map(|byte| self.alphabet.symbol(byte.into())).collect();
        head.resize(256, self.alphabet.symbol(char::MAX));
        let has_characters = self.alphabet.table().is_some();
        head.extend([width, u8::from(self.looks.last_newline), bytes as u8, u8::from(has_characters)]);
        Ok(head)
    }

    // ---- captures ----

    /// The states that a state reaches without a byte, each with the positions on the way, and whether a match ends.
    fn paths(&self, from: StateID, (behind, ahead): (Side, Side), byte: Option<u8>) -> Result<Paths, Fault> {
        let mut paths = Paths::default();
        let mut seen = vec![false; self.nfa.states().len()];
        let mut open = vec![(from, 0_u32)];
        while let Some((id, slots)) = open.pop() {
            self.work.set(self.work.get() + 1);
            if std::mem::replace(&mut seen[id.as_usize()], true) {
                continue;
            }
            match self.nfa.state(id) {
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) => {
                    let Some(next) = byte.and_then(|byte| self.after(id, byte)) else { continue };
                    if paths.next.is_some() {
                        return Err(Fault::NotOnePass);
                    }
                    paths.next = Some((next, slots));
                }
                State::Look { look, next } => {
                    if self.holds(*look, behind, ahead) {
                        open.push((*next, slots));
                    }
                }
                State::Union { alternates } => open.extend(alternates.iter().rev().map(|next| (*next, slots))),
                State::BinaryUnion { alt1, alt2 } => open.extend([(*alt2, slots), (*alt1, slots)]),
                State::Capture { next, slot, .. } => open.push((*next, slots | 1 << slot.as_usize())),
                State::Fail => {}
                State::Match { .. } => paths.matched = paths.matched.or(Some(slots | 1)),
            }
        }
        Ok(paths)
    }

    fn captures(&self) -> Result<Vec<u8>, Fault> {
        if self.nfa.group_info().group_len(regex_automata::PatternID::ZERO) > MAX_GROUPS + 1 {
            return Err(Fault::ManyGroups);
        }
        let mut open = vec![(Side::Other, None)];
        let mut numbers = HashMap::new();
        let number =
            |row: (Side, Option<StateID>), open: &mut Vec<(Side, Option<StateID>)>, numbers: &mut HashMap<_, _>| {
                *numbers.entry(row).or_insert_with(|| {
                    open.push(row);
                    open.len()
                })
            };
        let mut table = self.head(10)?;
        table.extend(vec![0; 10 * self.symbols.len()]);
        for symbol in &self.symbols {
            let first = number((symbol.side, Some(self.nfa.start_anchored())), &mut open, &mut numbers);
            table.extend((first as u16).to_le_bytes());
            table.extend([0; 8]);
        }
        let mut at = 1;
        while let Some((behind, state)) = open.get(at).copied() {
            for symbol in &self.symbols {
                self.has_looked(self.nfa.states().len() / 16 + 16)?;
                let Some(state) = state else { continue };
                let paths = self.paths(state, (behind, symbol.side), symbol.byte)?;
                let (next, slots) = match paths.next {
                    Some((next, slots)) => (number((symbol.side, Some(next)), &mut open, &mut numbers), slots),
                    None => (0, 0),
                };
                table.extend((next as u16).to_le_bytes());
                table.extend(slots.to_le_bytes());
                table.extend(paths.matched.unwrap_or(0).to_le_bytes());
            }
            if table.len() > MAX_BYTES || open.len() >= 1 << 16 {
                return Err(Fault::TooLarge);
            }
            at += 1;
        }
        Ok(table)
    }
}

/// Where a match goes on from a state.
#[derive(Default)]
struct Paths {
    next: Option<(StateID, u32)>,
    matched: Option<u32>,
}

impl Looks {
    /// As much of a side as the assertions of the pattern distinguish.
    fn side(self, side: Side) -> Side {
        match side {
            Side::Edge if self.lines || self.edges || self.last_newline => Side::Edge,
            Side::Newline if self.lines => Side::Newline,
            Side::Word if self.words => Side::Word,
            _ => Side::Other,
        }
    }
}

/// What the pattern asks where the states read the text in their direction.
fn asked(look: Look, reverse: bool) -> Look {
    if reverse { look.reversed() } else { look }
}

/// The entries with rows that do the same as one. Rows 0 and 1 stay the first. Where that is too much work, all rows
/// stay: they do the same.
fn fewer(entries: &[(usize, bool)], width: usize) -> Vec<(usize, bool)> {
    let rows = entries.len() / width;
    let mut class = vec![0_usize; rows];
    let mut count = 1;
    let mut work = 0;
    loop {
        work += entries.len();
        if work > MAX_WORK {
            return entries.to_vec();
        }
        let mut known: HashMap<(usize, Vec<(usize, bool)>), usize> = HashMap::new();
        let mut next = Vec::with_capacity(rows);
        for row in 0..rows {
            let does = entries[row * width..][..width].iter().map(|(to, matched)| (class[*to], *matched)).collect();
            let fresh = known.len();
            // row 1 is asked about another byte than all others
            let is_first = usize::from(row == 1);
            next.push(*known.entry((class[row] * 2 + is_first, does)).or_insert(fresh));
        }
        let now = known.len();
        class = next;
        if now == count {
            break;
        }
        count = now;
    }
    let mut firsts: Vec<Option<usize>> = vec![None; count];
    for row in 0..rows {
        firsts[class[row]].get_or_insert(row);
    }
    let kept = firsts.into_iter().flatten().flat_map(|row| &entries[row * width..][..width]);
    kept.map(|(to, matched)| (class[*to], *matched)).collect()
}
