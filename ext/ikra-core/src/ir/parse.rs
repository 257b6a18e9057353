//! Parses the text form of programs, which [`super::print`] describes, for tests that are written in it.
//!
//! Here: the reverse of printing; a printed program parses to one that prints equally. Not here: whether the program is
//! well formed ([`super::verify`]).

use super::print::PLAIN_OPS;
use super::stages::Stage;
use super::{
    AssumedRows, AtomicOp, CheckedOp, Class, ClassTest, Cmp, Column, ColumnId, Extent, Func, FuncId, Heap, HeapId,
    Jobs, LabelId, MathFn, Message, Messages, New, Op, Operand, Param, ParamId, Part, Piece, Program, Rescued, Scalar,
    Site, SiteId, Space, Stmt, Storage, Trap, UniformStride, Var, VarId,
};
use crate::id::{ArrayKind, ClassId};
use crate::types::{Repr, Unit};
use crate::world::Assumption;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

/// Parses a program.
///
/// # Errors
/// The text that was expected, and the line.
pub fn parse(text: &str) -> Result<Program, String> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, columns: HashMap::new() };
    parser.program().map_err(|what| format!("line {}: {what}", parser.line()))
}

type Parsed<T> = Result<T, String>;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name, a keyword or a number.
    Word(String),
    Text(String),
    /// `( ) { } [ ] , = :`
    Mark(char),
    /// `->`
    Arrow,
}

fn tokens(text: &str) -> Parsed<Vec<(usize, Token)>> {
    let mut tokens = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let (token, length) = match first {
                '"' => quoted(rest).ok_or_else(|| format!("line {}: a text that does not end", number + 1))?,
                '-' if rest.starts_with("->") => (Token::Arrow, 2),
                '(' | ')' | '{' | '}' | '[' | ']' | ',' | '=' | ':' => (Token::Mark(first), 1),
                _ => {
                    let mut length = rest.find(|c: char| c.is_whitespace() || "(){}[],=\"".contains(c));
                    if rest[..length.unwrap_or(rest.len())].contains("..") {
                        // `0..=3`
                        length = rest
                            .find(char::is_whitespace)
                            .or(rest.find(','))
                            .map(|at| at.min(rest.find(',').unwrap_or(at)));
                    }
                    let word = rest[..length.unwrap_or(rest.len())].trim_end_matches(':');
                    (Token::Word(word.to_owned()), word.len())
                }
            };
            tokens.push((number + 1, token));
            rest = rest[length..].trim_start();
        }
    }
    Ok(tokens)
}

/// Reads a text as Rust's `Debug` writes it; also gives its length with its quotes.
fn quoted(rest: &str) -> Option<(Token, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    loop {
        match chars.next()? {
            (at, '"') => return Some((Token::Text(text), at + 1)),
            (_, '\\') => match chars.next()?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                '0' => text.push('\0'),
                'u' => {
                    let digits: String = chars.by_ref().skip(1).map(|(_, c)| c).take_while(|c| *c != '}').collect();
                    text.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                }
                other => text.push(other),
            },
            (_, other) => text.push(other),
        }
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    columns: HashMap<String, ColumnId>,
}

/// The registers of a function, as its text gives them.
#[derive(Default)]
struct Registers {
    vars: Vec<Var>,
    labels: usize,
}

impl Parser {
    fn line(&self) -> usize {
        self.tokens.get(self.at.min(self.tokens.len().saturating_sub(1))).map_or(0, |(line, _)| *line)
    }
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }
    fn next(&mut self) -> Parsed<Token> {
        let token = self.peek().cloned().ok_or("more was expected")?;
        self.at += 1;
        Ok(token)
    }
    fn takes(&mut self, token: &Token) -> bool {
        let there = self.peek() == Some(token);
        self.at += usize::from(there);
        there
    }
    fn takes_word(&mut self, word: &str) -> bool {
        let there = matches!(self.peek(), Some(Token::Word(w)) if w == word);
        self.at += usize::from(there);
        there
    }
    fn takes_mark(&mut self, mark: char) -> bool {
        self.takes(&Token::Mark(mark))
    }
    fn mark(&mut self, mark: char) -> Parsed<()> {
        if self.takes_mark(mark) { Ok(()) } else { Err(format!("`{mark}` was expected, not {:?}", self.peek())) }
    }
    fn keyword(&mut self, word: &str) -> Parsed<()> {
        if self.takes_word(word) { Ok(()) } else { Err(format!("`{word}` was expected, not {:?}", self.peek())) }
    }
    fn word(&mut self) -> Parsed<String> {
        match self.next()? {
            Token::Word(word) => Ok(word),
            other => Err(format!("a word was expected, not {other:?}")),
        }
    }
    fn text(&mut self) -> Parsed<String> {
        match self.next()? {
            Token::Text(text) => Ok(text),
            other => Err(format!("a text was expected, not {other:?}")),
        }
    }
    fn number<T: FromStr>(&mut self) -> Parsed<T> {
        let word = self.word()?;
        word.parse().map_err(|_| format!("{word} is no such number"))
    }
    /// `c3`, `s0`, …
    fn id(&mut self, prefix: char) -> Parsed<usize> {
        let word = self.word()?;
        let number = word.strip_prefix(prefix).and_then(|n| n.parse().ok());
        number.ok_or_else(|| format!("{prefix} and a number were expected, not {word}"))
    }
    fn site(&mut self) -> Parsed<SiteId> {
        self.id('s').map(SiteId::new)
    }
    fn one_of<T: Copy>(&mut self, words: &[(&str, T)]) -> Parsed<T> {
        let word = self.word()?;
        find(words, &word)
            .ok_or_else(|| format!("{word} is none of {:?}", words.iter().map(|w| w.0).collect::<Vec<_>>()))
    }

    fn program(&mut self) -> Parsed<Program> {
        self.keyword("program")?;
        let name = self.text()?;
        self.keyword("jobs")?;
        let jobs =
            self.one_of(&[("identity", Jobs::Identity), ("reordered", Jobs::Reordered), ("grouped", Jobs::Grouped)])?;
        let (mut few, mut fused_ticks, mut uses_random) = (false, false, false);
        while self.takes_mark(',') {
            if self.takes_word("random") {
                uses_random = true;
            } else if self.takes_word("few") {
                few = true;
            } else {
                self.keyword("ticks")?;
                self.keyword("fused")?;
                fused_ticks = true;
            }
        }
        let (mut columns, mut params, mut heaps, mut sites) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        while self.takes_word("column") {
            self.id('c')?;
            columns.push(self.column()?);
        }
        while self.takes_word("param") {
            self.id('p')?;
            let (name, ty) = (self.text()?, self.one_of(Scalar::WORDS)?);
            let range = if self.takes_word("from") {
                let from = self.number()?;
                self.keyword("to")?;
                Some((from, self.number()?))
            } else {
                None
            };
            let same = if self.takes_word("same") {
                self.keyword("as")?;
                Some(ParamId::new(self.id('p')?))
            } else {
                None
            };
            params.push(Param { name, ty, range, same });
        }
        while self.takes_word("heap") {
            self.id('h')?;
            heaps.push(self.heap()?);
        }
        let mut strides = Vec::new();
        while self.takes_word("stride") {
            strides.push(self.stride()?);
        }
        let mut extents = Vec::new();
        while self.takes_word("extent") {
            let column = ColumnId::new(self.id('c')?);
            self.keyword("rows")?;
            extents.push(Extent { column, rows: ParamId::new(self.id('p')?) });
        }
        while self.takes_word("site") {
            self.id('s')?;
            sites.push(self.site_description()?);
        }
        let mut rescued = Rescued::default();
        if self.takes_word("again") {
            rescued.again = Some(FuncId::new(self.id('f')?));
        }
        if self.takes_word("messages") {
            let func = FuncId::new(self.id('f')?);
            self.keyword("of")?;
            self.mark('[')?;
            let mut known = Vec::new();
            while !self.takes_mark(']') {
                self.takes_mark(',');
                let site = SiteId::new(self.id('s')?);
                let message = if self.takes_word("text") {
                    Message::Text(self.number()?)
                } else {
                    self.keyword("word")?;
                    Message::Word(self.number()?)
                };
                known.push((site, message));
            }
            rescued.messages = Some(Messages { func, known });
        }
        while self.takes_word("test") {
            let (func, name) = (FuncId::new(self.id('f')?), self.text()?);
            self.keyword("of")?;
            self.mark('[')?;
            let mut hits = Vec::new();
            while !self.takes_mark(']') {
                self.takes_mark(',');
                hits.push(match self.peek() {
                    Some(Token::Text(_)) => Class::Named(self.lasting()?),
                    _ => Class::Made(ClassId(self.number()?)),
                });
            }
            rescued.tests.push(ClassTest { func, name, hits });
        }
        for (i, column) in columns.iter().enumerate() {
            self.columns.insert(format!("c{i}"), ColumnId::new(i));
            self.columns.entry(column.name.clone()).or_insert(ColumnId::new(i));
        }
        let (mut funcs, mut entry) = (Vec::new(), None);
        while self.peek().is_some() {
            if self.takes_word("entry") {
                entry = Some(FuncId::new(funcs.len()));
            }
            funcs.push(self.func()?);
        }
        let entry = entry.ok_or("an entry was expected")?;
        Ok(Program {
            name,
            funcs,
            entry,
            columns,
            params,
            heaps,
            strides,
            extents,
            sites,
            jobs,
            few,
            fused_ticks,
            uses_random,
            rescued,
        })
    }

    fn column(&mut self) -> Parsed<Column> {
        let name = self.text()?;
        let storage = self.one_of(Storage::WORDS)?;
        self.keyword("in")?;
        let space = self.space()?;
        let refers = if self.takes_word("to") { Some(self.space()?) } else { None };
        let (mut read, mut written, mut roundable, mut ranged, mut marks) = (false, false, false, None, None);
        while self.takes_mark(',') {
            read |= self.takes_word("read");
            written |= self.takes_word("written");
            if self.takes_word("natural") {
                ranged = Some(AssumedRows::Natural);
            }
            if self.takes_word("ranged") {
                ranged = Some(AssumedRows::Signed);
            }
            roundable |= self.takes_word("roundable");
            if self.takes_word("marks") {
                marks = Some(ColumnId::new(self.id('c')?));
            }
        }
        Ok(Column { name, space, storage, refers, ranged, roundable, marks, read, written })
    }

    fn stride(&mut self) -> Parsed<UniformStride> {
        let column = ColumnId::new(self.id('c')?);
        if self.takes_word("is") {
            let mut rows = Vec::new();
            self.mark('[')?;
            while !self.takes_mark(']') {
                rows.push(self.number()?);
                self.takes_mark(',');
            }
            return Ok(UniformStride::Constants { column, rows: rows.into() });
        }
        self.keyword("from")?;
        let start = ParamId::new(self.id('p')?);
        if !self.takes_word("step") {
            return Ok(UniformStride::References { column, start });
        }
        let step = ParamId::new(self.id('p')?);
        self.keyword("length")?;
        Ok(UniformStride::Arrays { column, start, step, length: ParamId::new(self.id('p')?) })
    }

    fn heap(&mut self) -> Parsed<Heap> {
        let space = self.space()?;
        let scratch = self.takes_word("scratch");
        self.keyword("from")?;
        let start = ParamId::new(self.id('p')?);
        self.keyword("capacity")?;
        let capacity = ParamId::new(self.id('p')?);
        self.keyword("taken")?;
        Ok(Heap { space, scratch, start, capacity, taken: ColumnId::new(self.id('c')?) })
    }

    fn space(&mut self) -> Parsed<Space> {
        Ok(match self.word()?.as_str() {
            "element" => Space::Element,
            "job" => Space::Job,
            "single" => Space::Single,
            "slot" => Space::Slot,
            "bytes" => Space::Bytes,
            "array" => Space::Array(ArrayKind(self.number()?)),
            "class" => {
                let hierarchy = self.number()?;
                let range = self.word()?;
                let bounds = range.split_once("..=").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                let (first, last) = bounds.ok_or_else(|| format!("{range} is no range of classes"))?;
                Space::Class { hierarchy, first, last }
            }
            other => return Err(format!("{other} is no space")),
        })
    }

    fn site_description(&mut self) -> Parsed<Site> {
        let trap = self.trap()?;
        self.keyword("at")?;
        let path = self.text()?;
        self.mark(':')?;
        let line = self.number()?;
        self.mark('(')?;
        let mut operands = Vec::new();
        while !self.takes_mark(')') {
            self.takes_mark(',');
            operands.push(match self.word()?.as_str() {
                "nil" => Repr::Unit(Unit::Nil),
                "true" => Repr::Unit(Unit::True),
                "false" => Repr::Unit(Unit::False),
                "never" => Repr::Unit(Unit::Never),
                "module" => Repr::Unit(Unit::Module(ClassId(self.number()?))),
                "proc" => Repr::Unit(Unit::Proc(crate::id::ProcId(self.number()?))),
                "bool" => Repr::Bool,
                "int" => Repr::Int,
                "float" => Repr::Float,
                "sym" => Repr::Sym,
                "str" => Repr::Str,
                "ref" => Repr::Ref(self.number()?),
                "array" => Repr::Array(ArrayKind(self.number()?)),
                "union" => Repr::Union,
                other => return Err(format!("{other} is no representation")),
            });
        }
        Ok(Site { trap, path, line, operands })
    }

    fn trap(&mut self) -> Parsed<Trap> {
        Ok(match self.word()?.as_str() {
            "zero_division" => Trap::ZeroDivision,
            "overflow" => Trap::IntegerOverflow(self.lasting()?),
            "no_method" => {
                let name = self.text()?.into();
                Trap::NoMethod { name, private: self.takes_word("private"), bare: self.takes_word("bare") }
            }
            "race" => Trap::Race,
            "missing" => Trap::Missing,
            "no_super" => Trap::NoSuper(self.text()?.into()),
            "index_too_small" => Trap::IndexTooSmall,
            "key_missing" => Trap::KeyMissing,
            "name" => {
                let name = self.text()?.into();
                Trap::Name { name, message: self.text()? }
            }
            "frozen" => Trap::Frozen,
            "float_domain" => Trap::FloatDomain,
            "out_of_range" => Trap::OutOfRange,
            "raise" => Trap::Raise { class: self.lasting()?, message: self.text()? },
            "limit" => Trap::Limit { class: self.lasting()?, before: self.text()?, after: self.text()? },
            "describe" => Trap::Describe { class: self.lasting()?, before: self.text()?, after: self.text()? },
            "mention" => Trap::Mention { class: self.lasting()?, before: self.text()?, after: self.text()? },
            "new" => Trap::New(Arc::new(self.new_exception()?)),
            "stack_overflow" => Trap::StackOverflow,
            "break" => Trap::Break,
            "grow" => Trap::Grow(HeapId::new(self.id('h')?)),
            "refuted" => Trap::Refuted(Assumption { path: self.text()?, line: self.number()?, column: self.number()? }),
            other => return Err(format!("{other} is no trap")),
        })
    }

    fn new_exception(&mut self) -> Parsed<New> {
        let mut new =
            New { name: self.text()?, class: ClassId(self.number()?), args: None, keywords: Vec::new(), message: None };
        if self.takes_word("args") {
            self.mark('[')?;
            let mut args = Vec::new();
            while !self.takes_mark(']') {
                self.takes_mark(',');
                args.push(self.piece()?);
            }
            new.args = Some(args);
        }
        while self.takes_word("keyword") {
            new.keywords.push((self.text()?.into(), self.piece()?));
        }
        if self.takes_word("message") {
            new.message = Some(self.piece()?);
        }
        Ok(new)
    }

    fn piece(&mut self) -> Parsed<Piece> {
        if self.takes_word("value") {
            return Ok(Piece::Value(self.number()?));
        }
        self.keyword("text")?;
        self.mark('[')?;
        let mut parts = Vec::new();
        while !self.takes_mark(']') {
            self.takes_mark(',');
            parts.push(match self.peek() {
                Some(Token::Text(_)) => Part::Text(self.text()?),
                Some(Token::Word(word)) if word == "inspect" => {
                    self.keyword("inspect")?;
                    Part::Inspect(self.number()?)
                }
                _ => Part::Value(self.number()?),
            });
        }
        Ok(Piece::Text(parts))
    }

    /// A name that programs hold as `&'static str`. Tests read few such names, so they are leaked.
    fn lasting(&mut self) -> Parsed<&'static str> {
        Ok(Box::leak(self.text()?.into_boxed_str()))
    }

    fn func(&mut self) -> Parsed<Func> {
        self.keyword("func")?;
        self.id('f')?;
        let name = self.text()?;
        let mut registers = Registers::default();
        self.mark('(')?;
        let mut params = Vec::new();
        while !self.takes_mark(')') {
            self.takes_mark(',');
            params.push(self.register(&mut registers)?);
        }
        let mut results = Vec::new();
        if self.takes(&Token::Arrow) {
            results.push(self.one_of(Scalar::WORDS)?);
            while self.takes_mark(',') {
                results.push(self.one_of(Scalar::WORDS)?);
            }
        }
        let recursive = self.takes_word("recursive");
        let stage = self.stage()?;
        let body = self.list(&mut registers)?;
        Ok(Func { name, params, results, vars: registers.vars, labels: registers.labels, body, recursive, stage })
    }

    fn stage(&mut self) -> Parsed<Option<Stage>> {
        if !self.takes_word("stage") {
            return Ok(None);
        }
        let mut stage = Stage::default();
        self.mark('(')?;
        while !self.takes_mark(')') {
            stage.sizes.push(ParamId::new(self.id('p')?));
            self.takes_mark(',');
        }
        if self.takes_word("from") {
            stage.first = Some(ParamId::new(self.id('p')?));
        }
        while self.takes_word("tile") {
            stage.tile.push(self.number()?);
        }
        Ok(Some(stage))
    }

    /// A register, with its type where it stands.
    fn register(&mut self, registers: &mut Registers) -> Parsed<VarId> {
        let word = self.word()?;
        let var = registers.find(&word).ok_or_else(|| format!("{word} is no register"))?;
        if self.takes_mark(':') {
            registers.vars[var.index()].ty = self.one_of(Scalar::WORDS)?;
        }
        Ok(var)
    }

    fn list(&mut self, registers: &mut Registers) -> Parsed<Vec<Stmt>> {
        self.mark('{')?;
        let mut body = Vec::new();
        while !self.takes_mark('}') {
            body.push(self.stmt(registers)?);
        }
        Ok(body)
    }

    fn stmt(&mut self, registers: &mut Registers) -> Parsed<Stmt> {
        let line = self.line();
        let start = self.at;
        Ok(match self.word()?.as_str() {
            "store" => {
                let (column, row) = self.slot(registers)?;
                self.mark('=')?;
                Stmt::Store { column, row, value: self.operand(registers)? }
            }
            "emit" => {
                let (key, value, order) = match *self.operands(registers, line)? {
                    [key, value, order] => (Some(key), value, order),
                    [value, order] => (None, value, order),
                    _ => return Err("a pair takes two or three operands".into()),
                };
                let text = if self.takes_word("in") { Some(ColumnId::new(self.id('c')?)) } else { None };
                Stmt::Emit { key, value, order, text }
            }
            "key_part" => {
                let [code, word] =
                    self.operands(registers, line)?.try_into().map_err(|_| "a part of a key takes two operands")?;
                Stmt::KeyPart { code, word }
            }
            "atomic" => {
                let op = self.one_of(AtomicOp::WORDS)?;
                let (column, row) = self.slot(registers)?;
                self.mark(',')?;
                let value = self.operand(registers)?;
                let site = if self.takes_word("else") { Some(self.site()?) } else { None };
                Stmt::Atomic { op, column, row, value, site }
            }
            "if" => {
                let cond = self.operand(registers)?;
                let then = self.list(registers)?;
                let otherwise = if self.takes_word("else") { self.list(registers)? } else { Vec::new() };
                Stmt::If { cond, then, otherwise }
            }
            "block" => Stmt::Block { label: self.label(registers)?, body: self.list(registers)? },
            "loop" => Stmt::Loop { label: self.label(registers)?, body: self.list(registers)? },
            "break" => Stmt::Break(self.label(registers)?),
            "return" => Stmt::Return(self.operands(registers, line)?),
            "trap" => Stmt::Trap { site: self.site()?, operands: self.operands(registers, line)? },
            "poll" => Stmt::Poll,
            "begin" => {
                let check = self.takes_word("check");
                let index = self.operand(registers)?;
                self.mark(',')?;
                Stmt::Begin { index, tick: self.operand(registers)?, check }
            }
            "call" => self.call(registers, Vec::new(), line)?,
            _ => {
                self.at = start;
                let mut dsts = vec![self.register(registers)?];
                while self.takes_mark(',') {
                    dsts.push(self.register(registers)?);
                }
                self.mark('=')?;
                self.assignment(registers, dsts, line)?
            }
        })
    }

    fn assignment(&mut self, registers: &mut Registers, dsts: Vec<VarId>, line: usize) -> Parsed<Stmt> {
        let dst = dsts[0];
        let word = self.word()?;
        Ok(match word.as_str() {
            "call" => self.call(registers, dsts, line)?,
            "try" => {
                let raised = dsts.try_into().map_err(|_| "an exception takes five registers")?;
                Stmt::Try { label: self.label(registers)?, body: self.list(registers)?, raised }
            }
            "load" => {
                let (column, row) = self.slot(registers)?;
                Stmt::Load { dst, column, row }
            }
            "checked" => {
                let op = self.one_of(CheckedOp::WORDS)?;
                let args = self.operands(registers, line)?;
                let args = args.try_into().map_err(|_| "checked operations take two operands")?;
                self.keyword("else")?;
                Stmt::Checked { dst, op, args, site: self.site()? }
            }
            "fetch_add" => {
                let (column, row) = self.slot(registers)?;
                self.mark(',')?;
                Stmt::FetchAdd { dst, column, row, value: self.operand(registers)? }
            }
            "meet" => Stmt::Meet { dst, value: self.operand(registers)? },
            "alloc" => {
                let heap = HeapId::new(self.id('h')?);
                let count = self.operand(registers)?;
                self.keyword("else")?;
                Stmt::Alloc { dst, heap, count, site: self.site()? }
            }
            "param" => {
                let param = ParamId::new(self.id('p')?);
                self.text()?;
                Stmt::Let { dst, op: Op::Param(param), args: Vec::new() }
            }
            _ => {
                let op = operation(&word).ok_or_else(|| format!("{word} is no operation"))?;
                Stmt::Let { dst, op, args: self.operands(registers, line)? }
            }
        })
    }

    fn call(&mut self, registers: &mut Registers, dsts: Vec<VarId>, line: usize) -> Parsed<Stmt> {
        let func = FuncId::new(self.id('f')?);
        self.text()?;
        let args = self.operands(registers, line)?;
        let depth = if self.takes_word("depth") { Some(self.site()?) } else { None };
        Ok(Stmt::Call { func, args, dsts, depth })
    }

    fn label(&mut self, registers: &mut Registers) -> Parsed<LabelId> {
        let label = self.id('L')?;
        registers.labels = registers.labels.max(label + 1);
        Ok(LabelId::new(label))
    }

    fn slot(&mut self, registers: &mut Registers) -> Parsed<(ColumnId, Operand)> {
        let word = self.word()?;
        let column = *self.columns.get(&word).ok_or_else(|| format!("{word} is no column"))?;
        self.mark('[')?;
        let row = self.operand(registers)?;
        self.mark(']')?;
        Ok((column, row))
    }

    /// The operands up to the end of the line, or to the word that follows them.
    fn operands(&mut self, registers: &mut Registers, line: usize) -> Parsed<Vec<Operand>> {
        let mut operands = Vec::new();
        loop {
            let more = match self.tokens.get(self.at) {
                Some((at, Token::Word(word))) => *at == line && !["else", "depth", "in"].contains(&&**word),
                _ => false,
            };
            if !more {
                return Ok(operands);
            }
            operands.push(self.operand(registers)?);
            if !self.takes_mark(',') {
                return Ok(operands);
            }
        }
    }

    fn operand(&mut self, registers: &mut Registers) -> Parsed<Operand> {
        let word = self.word()?;
        let constant = || {
            Some(match word.as_str() {
                "true" => Operand::Bool(true),
                "false" => Operand::Bool(false),
                "inf" => Operand::float(f64::INFINITY),
                "-inf" => Operand::float(f64::NEG_INFINITY),
                word => {
                    if let Some(bits) = word.strip_prefix("nan:") {
                        Operand::F64(u64::from_str_radix(bits, 16).ok()?)
                    } else if let Some(int) = word.strip_suffix("i32") {
                        Operand::I32(int.parse().ok()?)
                    } else if let Ok(int) = word.parse() {
                        Operand::I64(int)
                    } else {
                        Operand::float(word.parse().ok().filter(|_| word.contains(['.', 'e']))?)
                    }
                }
            })
        };
        let starts_number = word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let register = if starts_number { None } else { registers.find(&word) };
        let operand = register.map(Operand::Var).or_else(constant);
        operand.ok_or_else(|| format!("{word} is no operand"))
    }
}

impl Registers {
    /// The register of a word like `v3` or `progress.3`.
    fn find(&mut self, word: &str) -> Option<VarId> {
        let (name, number) = match word.rsplit_once('.') {
            Some((name, number)) => (Some(name), number),
            None => (None, word.strip_prefix('v')?),
        };
        let number: usize = number.parse().ok()?;
        if number >= self.vars.len() {
            self.vars.resize(number + 1, Var { ty: Scalar::I64, name: None });
        }
        if let Some(name) = name {
            self.vars[number].name = Some(name.into());
        }
        Some(VarId::new(number))
    }
}

fn operation(word: &str) -> Option<Op> {
    let cmp = |cmp: &str| find(Cmp::WORDS, cmp);
    match word.split_once('.') {
        Some(("icmp", rest)) => cmp(rest).map(Op::ICmp),
        Some(("ucmp", rest)) => cmp(rest).map(Op::UCmp),
        Some(("fcmp", rest)) => cmp(rest).map(Op::FCmp),
        Some(("math", rest)) => find(MathFn::WORDS, rest).map(Op::Math),
        _ => find(PLAIN_OPS, word),
    }
}

fn find<T: Copy>(words: &[(&str, T)], word: &str) -> Option<T> {
    words.iter().find(|(w, _)| *w == word).map(|(_, value)| *value)
}

#[cfg(test)]
mod tests {
    use super::parse;

    const TEXT: &str = r#"program "say \"hi\" at\n\u{7f}x.rb:1" jobs grouped, ticks fused, random
column c0 "A::B@length" f64 in class 1 0..=3, read written
column c1 "elements of 2" i64 in array 2, read
column c2 "order" u32 in job to class 0 1..=1, read
column c3 "tag" u8 in element
column c4 "taken" i64 in single, read written
column c5 "of each" i64 in slot
param p0 "the limit" i64
param p1 "x" f64
heap h0 class 1 1..=1 from p0 capacity p0 taken c4
heap h1 array 2 scratch from p0 capacity p0 taken c5
site s0 overflow "*" at "a b.rb":3 ()
site s1 no_method "go" private bare at "x.rb":4 (ref 0, union, nil, module 7)
site s2 grow h1 at "x.rb":5 (int)
site s3 new "A::B" 12 args [value 0, text ["say \"", 1, "\""]] keyword "at" value 1 message text [] at "x.rb":6 (int, sym)
site s4 new "Own" 13 at "x.rb":7 ()
again f1
test f2 "StandardError" of ["KeyError", 12]

entry func f0 "block in main" (job.0: i64, first.1: i64, last.2: i64) {
  begin check job.0, first.1
  v3: i32 = load order[job.0]
  v4: f64 = load A::B@length[v3]
  größe.5: f64 = fadd v4, -0.0
  v6: bool = fcmp.lt größe.5, nan:7ff8000000000000
  if v6 {
    store A::B@length[v3] = inf
  } else {
    v7: i64, v8: f64 = call f1 "down" 1e300, -5i32 depth s0
    atomic add c1[v7], -9223372036854775808 else s0
  }
  loop L0 {
    v9: i64 = param p0 "the limit"
    v10: i64 = checked mul v9, 3 else s0
    v11: f64 = math.atan2 größe.5, 0.1
    v12: i64 = random
    v13: i64 = alloc h1 v9 else s2
    v14: i64 = fetch_add taken[0], 3
    v15: i64 = slot
    poll
    block L1 {
      break L0
    }
  }
  trap s1 v3, v3, v10
}

func f1 "down" (v0: f64, v1: i32) -> i64, f64 recursive {
  return 1, v0
}
"#;

    #[test]
    fn what_is_printed_is_read_back() {
        let program = parse(TEXT).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(program.to_string(), TEXT);
        assert_eq!(parse(&program.to_string()), Ok(program));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let wrong = TEXT.replace("poll", "poll 3");
        assert_eq!(parse(&wrong), Err("line 41: 3 is no register".into()));
        assert!(parse("program \"x\" jobs odd").is_err_and(|e| e.starts_with("line 1: odd is none of")));
    }
}
