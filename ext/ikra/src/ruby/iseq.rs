//! Instruction sequences: where a block or method stands in its file, and whether the file still says what runs.
//!
//! Here: [`Sequence`], what one instruction sequence tells of itself, and [`Text`], a file (or the text of an `eval`)
//! with an index of all code in it. Not here: parsing ([`ikra_core::syntax`]) and what a block captures
//! ([`crate::world::block`]).
//! Invariant: a [`Source`] is made only of text that Ruby compiles to the very instructions that run.
//!
//! A file that was loaded after Ikra keeps its lines in memory (`RubyVM.keep_script_lines`), so its text is the one
//! that runs whatever became of the file. A file that was loaded earlier is read again and compiled by Ruby itself; the
//! instructions at the block's place must be the same.

use crate::ruby::environment::InForce;
use crate::ruby::heap::{self, Seen};
use crate::ruby::question::{self, Answer, shown};
use crate::ruby::registry::Kept;
use ikra_core::diagnostic::{Diagnostic, Span};
use ikra_core::source::{Source, freezes_strings};
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, ExceptionClass, RArray, RHash, RString, Ruby, Symbol, Value};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::hash::Hasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::SystemTime;

/// First line, byte column in it, last line, byte column in it.
pub type Location = [u32; 4];

/// Why the text of a block cannot be had.
#[derive(Debug)]
pub enum Failure {
    /// Said to the user.
    NoSource(String),
    /// Said to the user, with the place.
    Unsupported(Box<Diagnostic>),
    Ruby(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Ruby(error)
    }
}

type Result<T> = std::result::Result<T, Failure>;

/// What an instruction sequence tells of itself.
#[derive(Clone, Debug)]
pub struct Sequence {
    pub path: String,
    /// None for `eval`, `-e` and the like.
    pub absolute_path: Option<String>,
    /// `block`, `method`…
    pub kind: String,
    pub location: Location,
    /// Of its instructions, without their lines.
    digest: u64,
    /// It uses locals of the code around it.
    pub captures: bool,
    /// What Ruby kept of the text when it was loaded.
    kept: Option<Arc<Text>>,
    /// As `digest`, but for which locals it uses from around it. They depend on what surrounds an `eval`.
    loose_digest: u64,
    /// Its String literals, and the names in it, that are not in UTF-8.
    foreign: Foreign,
    /// Names of the locals around it, for an `eval` that sees them.
    pub locals: Vec<String>,
    /// Names of the locals that it uses, its own too, in order; for an `eval`, whose blocks may differ in these alone.
    uses: Vec<String>,
}

impl Sequence {
    /// Asks an instruction sequence.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn of(iseq: Value) -> Result<Self> {
        let array: RArray = iseq.funcall("to_a", ())?;
        let found = header(array)?;
        let absolute_path: Option<String> = iseq.funcall("absolute_path", ())?;
        let path: String = array.entry(6)?;
        let lines: Option<RArray> = iseq.funcall("script_lines", ())?;
        let kept = lines.map(|lines| Text::of_lines(&Ruby::get_with(iseq), &path, lines)).transpose()?;
        let tree = Tree::of(array)?;
        let captures = tree.reaches_out()?;
        let uses = if captures && absolute_path.is_none() { used_locals(iseq)? } else { Vec::new() };
        Ok(Self {
            path,
            absolute_path,
            kind: found.kind,
            location: found.location,
            digest: tree.digests()?[0],
            captures,
            kept,
            loose_digest: tree.loose_digest(0)?,
            foreign: tree.foreign()?,
            locals: Vec::new(),
            uses,
        })
    }

    /// Whether a place is its own, but for the number of the first line.
    fn may_stand(&self, [first, from, last, to]: Location) -> bool {
        let [f, a, l, b] = self.location;
        (from, to, last - first) == (a, b, l - f)
    }

    /// The text that it was compiled from, and where in that text it stands.
    ///
    /// # Errors
    /// Where the text cannot be had, or is not what runs.
    pub fn text(&self, ruby: &Ruby) -> Result<(Arc<Text>, Location)> {
        let text = self.find_text()?;
        if let (Some(_), Some(_)) = (&self.kept, &self.absolute_path) {
            return Ok((text, self.location));
        }
        let place = text.place(ruby, self)?;
        Ok((text, place))
    }

    fn find_text(&self) -> Result<Arc<Text>> {
        if let Some(text) = &self.kept {
            return Ok(text.clone());
        }
        if let Some(path) = &self.absolute_path {
            return Text::of_file(&self.path, path);
        }
        if self.path == "-e"
            && let Some(text) = command_line_text()
        {
            return Ok(Text::new("-e", text.into()));
        }
        Err(Failure::NoSource(format!(
            "Ruby kept no source of {}:{}: it was evaluated before `require \"ikra\"`, or does not come from a file",
            self.path, self.location[0]
        )))
    }

    /// A method that Forwardable made (`def_delegators`), as it would be written: the text that Forwardable had
    /// compiled also warns of private methods, by `defined?`.
    fn delegator(&self, kept: &Text) -> Option<Source> {
        if self.kind != "method" || !self.path.ends_with("/forwardable.rb") {
            return None;
        }
        let name = word(kept.text.trim_start().strip_prefix("proc do")?.trim_start().strip_prefix("def ")?);
        let (_, accessor) = kept.text.split_once("begin\n")?;
        let accessor = accessor.lines().take_while(|line| line.trim() != "end").map(str::trim).collect::<String>();
        let called = word(kept.text.split_once(".__send__(:")?.1);
        let text = format!("def {name}(*args, &block)\n({accessor}).__send__(:{called}, *args, &block)\nend");
        Some(Source::whole(&self.path, &text, self.location[0]))
    }

    /// Its source, for parsing, where these refinements are in force.
    ///
    /// # Errors
    /// As [`Sequence::text`].
    pub fn source(&self, ruby: &Ruby, in_force: &InForce) -> Result<Arc<Source>> {
        let (text, place) = self.text(ruby)?;
        if let Some(delegator) = self.kept.as_ref().and_then(|kept| self.delegator(kept)) {
            return Ok(Arc::new(Source { refined: in_force.concern(&delegator.text, &text.text), ..delegator }));
        }
        let mut source = text
            .slice(ruby, &self.path, place, self.location[0], in_force)?
            .ok_or_else(|| match (&self.kept, &self.absolute_path) {
                // what Ruby kept cannot have changed
                (Some(_), Some(_)) => Failure::NoSource(format!(
                    "{} made this method of a text of its own (def_delegators, class_eval), and kernels have no source of it. \
                     Write it with def",
                    self.path
                )),
                _ => changed(&self.path, self.location[0]),
            })?;
        source.foreign_strings = self.foreign.strings;
        source.prism = TEXTS.prism.load(Relaxed);
        let source = Arc::new(source);
        if self.foreign.names || text.written.is_some() && !source.slice_text().is_ascii() {
            let at = Span::new(source.slice.start, source.slice.start + 1);
            let refused = Diagnostic::new(&source, at, "kernels know what is not ASCII in files in UTF-8 only")
                .advise("write the file in UTF-8, or keep to ASCII here");
            return Err(Failure::Unsupported(Box::new(refused)));
        }
        Ok(source)
    }
}

/// The first word of a text.
fn word(text: &str) -> &str {
    text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ',')).next().unwrap_or("")
}

fn changed(path: &str, line: u32) -> Failure {
    Failure::NoSource(format!(
        "{path} changed since it was loaded: what stands at line {line} now is not the code that runs. \
         Load it again, or start the program again; a method that other code made of a text (class_eval, def_delegators) is to be written with def"
    ))
}

/// The scripts given by `-e`, as the operating system remembers them.
fn command_line_text() -> Option<String> {
    let line = std::fs::read("/proc/self/cmdline").ok()?;
    let args: Vec<&[u8]> = line.split(|b| *b == 0).collect();
    let mut text = String::new();
    for pair in args.windows(2).filter(|pair| pair[0].starts_with(b"-") && pair[0].ends_with(b"e")) {
        text.push_str(std::str::from_utf8(pair[1]).ok()?);
        text.push('\n');
    }
    (!text.is_empty()).then_some(text)
}

/// How a class body was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// `class A::B` or `module A::B`.
    Named,
    /// `class << self`.
    Singleton,
}

/// One `class` or `module` around a piece of code: its path as written (`A::B`, `::A`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    pub opening: Opening,
    pub path: String,
}

/// What of a sequence is not in UTF-8.
#[derive(Clone, Copy, Debug, Default)]
struct Foreign {
    /// String literals. An ASCII String of another encoding is one.
    strings: bool,
    /// Names of methods and variables, symbols.
    names: bool,
}

impl Foreign {
    fn look_at(&mut self, value: Value) -> Result<()> {
        if as_sequence(value).is_some() {
            return Ok(());
        }
        if let Some(list) = RArray::from_value(value) {
            return list.into_iter().try_for_each(|item| self.look_at(item));
        }
        if let Some(hash) = RHash::from_value(value) {
            let mut items = Vec::new();
            hash.foreach(|key: Value, item: Value| {
                items.extend([key, item]);
                Ok(magnus::r_hash::ForEach::Continue)
            })?;
            return items.into_iter().try_for_each(|item| self.look_at(item));
        }
        let (is_string, is_symbol) = (RString::from_value(value).is_some(), Symbol::from_value(value).is_some());
        if is_string || is_symbol {
            let encoding = question::text(value.funcall("encoding", ())?)?;
            let (utf8, ascii) = (encoding == "UTF-8", is_symbol && encoding == "US-ASCII");
            let of_pattern = is_string && encoding == "US-ASCII" && is_of_pattern(&question::text(value)?);
            self.strings |= is_string && !utf8 && !of_pattern;
            self.names |= is_symbol && !utf8 && !ascii;
        }
        Ok(())
    }
}

/// Whether a String is what Ruby puts into the code of `case … in` to raise with, which is in US-ASCII whatever the
/// file is in.
fn is_of_pattern(text: &str) -> bool {
    text.starts_with("deconstruct") && text.contains("must return") || text.contains("%p") || text == "%s"
}

/// A heredoc of a text: line and column of its beginning, first and last line of its body.
#[derive(Clone, Copy, Debug)]
struct Heredoc {
    line: usize,
    column: usize,
    first: usize,
    last: usize,
}

/// A text that was not written in UTF-8.
#[derive(Debug)]
struct Written {
    bytes: Vec<u8>,
    encoding: String,
    /// For lines that are not all ASCII, by their numbers: where each character ends as it was written, and in UTF-8.
    columns: HashMap<usize, Vec<(usize, usize)>>,
}

/// Code found in a text.
#[derive(Debug)]
struct Node {
    location: Location,
    kind: String,
    digest: u64,
    loose_digest: u64,
    /// From the outermost inwards.
    bodies: Arc<[Body]>,
}

/// What the text compiles to, and the locals around it that were assumed.
type Compiled = (Vec<String>, Arc<Vec<Node>>);

/// The text of a file, or of an `eval`, and an index of the code in it, made when first asked.
#[derive(Debug)]
pub struct Text {
    path: String,
    text: Arc<str>,
    /// As it was, where that is not UTF-8.
    written: Option<Written>,
    /// Found when first asked for.
    heredocs: Mutex<Option<Arc<[Heredoc]>>>,
    /// With the names of the locals around it.
    nodes: Mutex<Option<Compiled>>,
}

/// Whether a text has `<<` with what may be a heredoc's name behind it.
fn may_begin_heredoc(text: &str) -> bool {
    text.match_indices("<<").any(|(at, _)| {
        let name = text[at + 2..].trim_start_matches(['~', '-']);
        name.starts_with(|c: char| c == '_' || c == '"' || c == '\'' || c == '`' || c.is_alphabetic())
    })
}

struct Cached {
    modified: Option<SystemTime>,
    length: u64,
    text: Arc<Text>,
}

/// The texts that were read in this process.
struct Texts {
    /// Whether Ruby parses by Prism. Prism counts the three bytes of a byte order mark among the first line's columns;
    /// the parser before it counts from behind the mark.
    prism: AtomicBool,
    /// By absolute path.
    files: Mutex<Option<HashMap<String, Cached>>>,
    /// By the Array of lines that Ruby keeps.
    lines: Mutex<Vec<(Kept, Arc<Text>)>>,
}

static TEXTS: Texts = Texts { prism: AtomicBool::new(false), files: Mutex::new(None), lines: Mutex::new(Vec::new()) };

/// Asks whether Ruby parses by Prism, which is seen from how it counts columns.
///
/// # Errors
/// What Ruby raises.
pub fn init(ruby: &Ruby) -> std::result::Result<(), Error> {
    let block = r#"::RubyVM::InstructionSequence.compile("\u{feff}proc{}").enum_for(:each_child).first"#;
    let column: i64 = ruby.eval(&format!("{block}.to_a[4][:code_location][1]"))?;
    TEXTS.prism.store(column > 4, Relaxed);
    Ok(())
}

/// How many texts are remembered by the lines that Ruby keeps.
const REMEMBERED: usize = 256;

impl Text {
    fn new(path: &str, text: Arc<str>) -> Arc<Self> {
        let text = match text.strip_prefix('\u{feff}') {
            // as many columns, and nothing to a parser
            Some(rest) if TEXTS.prism.load(Relaxed) => format!("   {rest}").into(),
            Some(rest) => rest.into(),
            None => text,
        };
        let (written, heredocs) = (None, Mutex::new(None));
        Arc::new(Self { path: path.into(), text, written, heredocs, nodes: Mutex::new(None) })
    }

    fn of_lines(ruby: &Ruby, path: &str, lines: RArray) -> Result<Arc<Self>> {
        let raw = lines.as_raw();
        if let Some((_, text)) = TEXTS.lines.lock().iter().find(|(kept, _)| kept.raw() == raw) {
            return Ok(text.clone());
        }
        let text = Self::joined(ruby, path, lines)?;
        let mut known = TEXTS.lines.lock();
        if known.len() >= REMEMBERED {
            known.drain(..REMEMBERED / 2);
        }
        known.push((Kept::new(lines.as_value()), text.clone()));
        Ok(text)
    }

    fn joined(ruby: &Ruby, path: &str, lines: RArray) -> Result<Arc<Self>> {
        let (mut text, mut bytes, mut columns) = (String::new(), Vec::new(), HashMap::new());
        let mut encoding = None;
        for (at, line) in lines.into_iter().enumerate() {
            let line = RString::from_value(line).ok_or_else(|| {
                Failure::NoSource("Ruby keeps this code's lines in a form that Ikra does not know".into())
            })?;
            // SAFETY: copied before Ruby runs again.
            #[allow(unsafe_code)]
            let raw = unsafe { line.as_slice() }.to_vec();
            let named = question::text(line.funcall("encoding", ())?)?;
            match std::str::from_utf8(&raw) {
                Ok(same) if same.is_ascii() || named == "UTF-8" => text.push_str(same),
                _ => {
                    encoding = Some(named);
                    let (mut ends, from) = (Vec::new(), text.len());
                    let mut end = 0;
                    for char in line.funcall::<_, _, RArray>("chars", ())? {
                        end += char.funcall::<_, _, usize>("bytesize", ())?;
                        // what is no character stays one for the columns behind it
                        let encode = || char.funcall::<_, _, RString>("encode", ("UTF-8",))?.to_string();
                        let known = question::own(ruby, encoding_error(ruby)?, encode)?;
                        let known = known.given().filter(|known| *known != "\0");
                        text.push_str(known.as_deref().unwrap_or("\u{fffd}"));
                        ends.push((end, text.len() - from));
                    }
                    columns.insert(at + 1, ends);
                }
            }
            bytes.extend(raw);
        }
        let new = Self::new(path, text.into());
        let Some(encoding) = encoding else { return Ok(new) };
        let mut new = Arc::into_inner(new).expect("nobody else has it yet");
        new.written = Some(Written { bytes, encoding, columns });
        Ok(Arc::new(new))
    }

    /// The column in UTF-8 of one that Ruby gives.
    fn column(&self, line: usize, column: usize) -> usize {
        let ends = self.written.as_ref().and_then(|written| written.columns.get(&line));
        let end = ends.and_then(|ends| ends.iter().find(|(end, _)| *end == column));
        end.map_or(column, |(_, utf8)| *utf8)
    }

    /// Its heredocs, in order.
    fn heredocs(&self, ruby: &Ruby) -> Result<Arc<[Heredoc]>> {
        if let Some(known) = &*self.heredocs.lock() {
            return Ok(known.clone());
        }
        let found: Arc<[Heredoc]> = self.find_heredocs(ruby)?.into();
        *self.heredocs.lock() = Some(found.clone());
        Ok(found)
    }

    fn find_heredocs(&self, ruby: &Ruby) -> Result<Vec<Heredoc>> {
        self.lex_heredocs(ruby).map_err(|error| {
            // Ripper is written in Ruby, and calls what the program may have redefined
            if error.is_kind_of(ruby.exception_standard_error())
                || error.is_kind_of(ruby.exception_script_error())
                || error.is_kind_of(ruby.exception_sys_stack_error())
            {
                let path = &self.path;
                return Failure::NoSource(format!("Ripper, which finds heredocs in {path}, raised {error}"));
            }
            error.into()
        })
    }

    fn lex_heredocs(&self, ruby: &Ruby) -> std::result::Result<Vec<Heredoc>, Error> {
        ruby.require("ripper")?;
        let ripper: Value = ruby.class_object().const_get("Ripper")?;
        let (mut found, mut begun) = (Vec::new(), std::collections::VecDeque::new());
        let mut behind = 0;
        for token in ripper.funcall::<_, _, RArray>("lex", (&*self.text,))? {
            let token = RArray::try_convert(token)?;
            let [line, column]: [usize; 2] = token.entry::<RArray>(0)?.to_array()?;
            match &*token.entry::<Symbol>(1)?.name()? {
                "on_heredoc_beg" => begun.push_back((line, column)),
                "on_heredoc_end" => {
                    let Some((at, column)) = begun.pop_front() else { continue };
                    let first = if behind > at { behind } else { at + 1 };
                    found.push(Heredoc { line: at, column, first, last: line });
                    behind = line + 1;
                }
                _ => {}
            }
        }
        Ok(found)
    }

    /// Where a line begins, by its number.
    fn line_start(&self, line: usize) -> Option<usize> {
        let mut start = 0;
        for _ in 1..line {
            start += self.text.get(start..)?.find('\n')? + 1;
        }
        Some(start)
    }

    fn of_file(path: &str, absolute: &str) -> Result<Arc<Self>> {
        let unreadable = |e: std::io::Error| Failure::NoSource(format!("{absolute} cannot be read again: {e}"));
        let meta = std::fs::metadata(absolute).map_err(unreadable)?;
        let (modified, length) = (meta.modified().ok(), meta.len());
        if let Some(cached) = TEXTS.files.lock().get_or_insert_default().get(absolute)
            && cached.modified == modified
            && cached.length == length
        {
            return Ok(cached.text.clone());
        }
        let bytes = std::fs::read(absolute).map_err(unreadable)?;
        let text = String::from_utf8(bytes).map_err(|_| {
            Failure::NoSource(format!("{absolute} is not UTF-8, the only encoding of source that Ikra reads"))
        })?;
        let text = Self::new(path, text.into());
        let cached = Cached { modified, length, text: text.clone() };
        TEXTS.files.lock().get_or_insert_default().insert(absolute.into(), cached);
        Ok(text)
    }

    /// Whole lines with the slice at a place; `line` is the number of its first line for people. None: there is no such
    /// place.
    fn slice(&self, ruby: &Ruby, path: &str, place: Location, line: u32, in_force: &InForce) -> Result<Option<Source>> {
        let [first, from, last, to] = place.map(|n| n as usize);
        let (from, to) = (self.column(first, from), self.column(last, to));
        let (Some(start), Some(last_start)) = (self.line_start(first), self.line_start(last)) else { return Ok(None) };
        let line_end = |start: usize| self.text[start..].find('\n').map_or(self.text.len(), |n| start + n);
        let mut end = line_end(last_start);
        let (begins, ends) = (start + from, last_start + to);
        let (Some(slice), Some(before)) = (self.text.get(begins..ends), self.text.get(start..begins)) else {
            return Ok(None);
        };
        let refined = in_force.concern(slice, &self.text);
        let last_line = &self.text[last_start.max(begins)..ends];
        let mut blank = Vec::new();
        let mut heredocs = end..end;
        if may_begin_heredoc(last_line) || first < last && may_begin_heredoc(before) {
            for doc in self.heredocs(ruby)?.iter() {
                let at = (doc.line, doc.column);
                let bounds = self.line_start(doc.first).zip(self.line_start(doc.last));
                let Some((body, last_of_body)) = bounds else { continue };
                let after_body = line_end(last_of_body);
                if at < (first, from) && doc.line == first && doc.last < last {
                    blank.push(body - start..after_body - start);
                } else if at >= (first, from) && at < (last, to) && doc.first > last {
                    heredocs = if heredocs.is_empty() { body..after_body } else { heredocs.start..after_body };
                    end = after_body;
                }
            }
        }
        let mut text = self.text[start..end].to_string();
        // bodies of heredocs that begin before the slice are no code of it
        for body in blank {
            let nothing: String = text[body.clone()].bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }).collect();
            text.replace_range(body, &nothing);
        }
        Ok(Some(Source {
            path: path.into(),
            text,
            first_line: line,
            slice: from..ends - start,
            heredocs: heredocs.start - start..heredocs.end - start,
            frozen_strings: freezes_strings(&self.text),
            refined,
            ..Source::default()
        }))
    }

    /// Where in this text the sequence stands.
    fn place(&self, ruby: &Ruby, sequence: &Sequence) -> Result<Location> {
        self.node(ruby, sequence).map(|(nodes, at)| nodes[at].location)
    }

    /// The classes and modules around a sequence, from the outermost inwards.
    ///
    /// # Errors
    /// Where it is not found in this text.
    pub fn bodies(&self, ruby: &Ruby, sequence: &Sequence) -> Result<Arc<[Body]>> {
        self.node(ruby, sequence).map(|(nodes, at)| nodes[at].bodies.clone())
    }

    fn node(&self, ruby: &Ruby, sequence: &Sequence) -> Result<(Arc<Vec<Node>>, usize)> {
        let nodes = self.index(ruby, &sequence.locals)?;
        let at = if sequence.uses.is_empty() {
            let same = |n: &Node| n.digest == sequence.digest && n.kind == sequence.kind;
            let exact = nodes.iter().position(|n| same(n) && n.location == sequence.location);
            // an `eval` may count its lines from any number
            let moved = |n: &Node| sequence.absolute_path.is_none() && same(n) && sequence.may_stand(n.location);
            exact.or_else(|| nodes.iter().position(moved))
        } else {
            // the text is what runs, so only the place is to be found; where from the locals come is not in the text,
            // but their names are
            let here = self.places_that_use(ruby, sequence)?;
            let alike = |n: &Node| {
                (n.loose_digest, &n.kind) == (sequence.loose_digest, &sequence.kind)
                    && sequence.may_stand(n.location)
                    && here.contains(&n.location)
            };
            let exact = nodes.iter().position(|n| alike(n) && n.location == sequence.location);
            exact.or_else(|| nodes.iter().position(alike))
        };
        Ok((nodes, at.ok_or_else(|| changed(&sequence.path, sequence.location[0]))?))
    }

    /// Where code stands that uses locals of the same names.
    fn places_that_use(&self, ruby: &Ruby, sequence: &Sequence) -> Result<Vec<Location>> {
        let mut places = Vec::new();
        let pending = ruby.ary_new();
        pending.push(self.compiled(ruby, &sequence.locals)?)?;
        while let Some(iseq) = pending.pop::<Option<Value>>()? {
            if used_locals(iseq)? == sequence.uses {
                places.push(header(iseq.funcall("to_a", ())?)?.location);
            }
            let children: RArray = iseq.funcall::<_, _, Value>("to_enum", ("each_child",))?.funcall("to_a", ())?;
            pending.concat(children)?;
        }
        Ok(places)
    }

    fn index(&self, ruby: &Ruby, locals: &[String]) -> Result<Arc<Vec<Node>>> {
        if let Some((known, nodes)) = &*self.nodes.lock()
            && (known == locals || locals.is_empty())
        {
            return Ok(nodes.clone());
        }
        let nodes = Arc::new(self.compile(ruby, locals)?);
        *self.nodes.lock() = Some((locals.to_vec(), nodes.clone()));
        Ok(nodes)
    }

    /// All code in this text, what stands within a sequence right after it.
    fn compile(&self, ruby: &Ruby, locals: &[String]) -> Result<Vec<Node>> {
        let tree = Tree::of(self.compiled(ruby, locals)?.funcall("to_a", ())?)?;
        let digests = tree.digests()?;
        let mut nodes: Vec<Node> = Vec::with_capacity(digests.len());
        for (at, digest) in digests.into_iter().enumerate() {
            let Header { location, kind } = header(tree.sequence(at)?)?;
            let around = if at == 0 { Arc::default() } else { nodes[tree.places[at].parent].bodies.clone() };
            let bodies = if kind == "class" { [&*around, &[self.opening(location)]].concat().into() } else { around };
            nodes.push(Node { location, kind, digest, loose_digest: tree.loose_digest(at)?, bodies });
        }
        Ok(nodes)
    }

    /// The instruction sequence of the whole text.
    fn compiled(&self, ruby: &Ruby, locals: &[String]) -> Result<Value> {
        let class: Value =
            ruby.class_object().const_get::<_, Value>("RubyVM")?.funcall("const_get", ("InstructionSequence",))?;
        // a line of its own, with the number 0, makes locals of names that are locals around the text
        let known: String = locals.iter().map(|name| format!("{name} = ")).collect();
        let (text, first) =
            if locals.is_empty() { (self.text.to_string(), 1) } else { (format!("{known}nil\n{}", self.text), 0) };
        let text = self.as_written(ruby, ruby.str_new(&text), locals.is_empty())?;
        let path = ruby.str_new(&self.path);
        let wrong: ExceptionClass = ruby.class_object().const_get("SyntaxError")?;
        let deep: ExceptionClass = ruby.class_object().const_get("SystemStackError")?;
        let compile = || question::own(ruby, wrong, || class.funcall("compile", (text, path, path, first)));
        // a Fiber's stack may be too small for Ruby's compiler
        let compile = || question::own(ruby, deep, compile);
        // Ruby asks methods here that a program may have redefined, such as `respond_to?`
        match quietly(|| question::own(ruby, ruby.exception_standard_error(), compile))? {
            Answer::Given(Answer::Given(Answer::Given(sequence))) => Ok(sequence),
            Answer::Given(Answer::Raised(_)) => {
                Err(Failure::NoSource(format!("the stack here is too small for Ruby to compile {} again", self.path)))
            }
            _ => Err(changed(&self.path, 1)),
        }
    }

    /// The whole text in its own encoding, where that is not UTF-8, so that columns are Ruby's.
    fn as_written(&self, ruby: &Ruby, utf8: RString, whole: bool) -> Result<RString> {
        match &self.written {
            Some(written) if whole => {
                Ok(ruby.str_from_slice(&written.bytes).funcall("force_encoding", (written.encoding.as_str(),))?)
            }
            _ => Ok(utf8),
        }
    }

    /// Reads `class A::B` or `class << self` at a class body's place.
    fn opening(&self, location: Location) -> Body {
        let line = self.text.split('\n').nth(location[0] as usize - 1).unwrap_or("");
        let column = self.column(location[0] as usize, location[1] as usize);
        let words = line.get(column..).unwrap_or("");
        let words = words.strip_prefix("class").or_else(|| words.strip_prefix("module")).unwrap_or("").trim_start();
        if words.starts_with("<<") {
            return Body { opening: Opening::Singleton, path: String::new() };
        }
        let path: String = words.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect();
        Body { opening: Opening::Named, path }
    }
}

struct Header {
    location: Location,
    kind: String,
}

/// What a String raises that cannot be had in another encoding.
fn encoding_error(ruby: &Ruby) -> std::result::Result<ExceptionClass, Error> {
    ruby.class_object().const_get("EncodingError")
}

fn header(array: RArray) -> Result<Header> {
    let misc: RHash = array.entry(4)?;
    let location: Vec<i64> = misc.aref(Ruby::get_with(misc).to_symbol("code_location"))?;
    // code that stands nowhere, such as the writing of a default value, is at -1
    let location: Vec<u32> = location.into_iter().map(|n| u32::try_from(n).unwrap_or(0)).collect();
    let location =
        location.try_into().map_err(|_| Failure::NoSource("Ruby does not say where its code stands".into()))?;
    let kind: Symbol = array.entry(9)?;
    Ok(Header { location, kind: kind.name()?.into_owned() })
}

/// An instruction sequence and all within it, each before what is within it.
///
/// Code may nest deeper than the stack of a Fiber suffices for, so nothing here recurses.
struct Tree {
    /// Keeps them alive: the GC sees no list of Rust's.
    sequences: RArray,
    places: Vec<Place>,
}

/// Where a sequence stands among those of a [`Tree`].
#[derive(Clone, Copy)]
struct Place {
    /// The index of the sequence right around it. That of the first is its own.
    parent: usize,
    /// How many sequences of the tree are around it.
    depth: i64,
}

impl Tree {
    fn of(first: RArray) -> Result<Self> {
        let ruby = Ruby::get_with(first);
        let (sequences, pending) = (ruby.ary_new(), ruby.ary_new());
        pending.push(first)?;
        let mut waiting = vec![Place { parent: 0, depth: 0 }];
        let mut places = Vec::new();
        while let Some(place) = waiting.pop() {
            let sequence: RArray = pending.pop()?;
            let parent = places.len();
            sequences.push(sequence)?;
            places.push(place);
            let within = ruby.ary_new();
            children(sequence, &mut |child| Ok(within.push(child)?))?;
            waiting.extend((0..within.len()).map(|_| Place { parent, depth: place.depth + 1 }));
            while let Some(child) = within.pop::<Option<Value>>()? {
                pending.push(child)?;
            }
        }
        Ok(Self { sequences, places })
    }

    fn sequence(&self, at: usize) -> Result<RArray> {
        Ok(self.sequences.entry(at as isize)?)
    }

    /// Behind the last of those within one.
    fn end(&self, at: usize) -> usize {
        let within = self.places[at + 1..].iter().take_while(|place| place.depth > self.places[at].depth);
        at + 1 + within.count()
    }

    /// Whether one of them uses a local from around the first.
    fn reaches_out(&self) -> Result<bool> {
        for (at, place) in self.places.iter().enumerate() {
            for item in self.sequence(at)?.entry::<RArray>(13)? {
                let Some(instruction) = RArray::from_value(item) else { continue };
                let name: Symbol = instruction.entry(0)?;
                if level(instruction, &name.name()?)? > place.depth {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn foreign(&self) -> Result<Foreign> {
        let mut found = Foreign::default();
        for at in 0..self.places.len() {
            found.look_at(self.sequence(at)?.entry(13)?)?;
        }
        Ok(found)
    }

    /// Of each a hash of all that it does: parameters, locals, instructions and what is within them. Labels count by
    /// the order in which they turn up. Lines and events are left out.
    fn digests(&self) -> Result<Vec<u64>> {
        shown_by_ruby(|| self.digest_range(0, self.places.len(), |_| None))
    }

    /// As [`Tree::digests`], but locals from further out than the sequence are all alike.
    fn loose_digest(&self, at: usize) -> Result<u64> {
        let outermost = self.places[at].depth;
        Ok(shown_by_ruby(|| self.digest_range(at, self.end(at), |place| Some(place.depth - outermost)))?[0])
    }

    /// `depth`: how far out a sequence is from the one whose digest is wanted; None: locals from anywhere differ.
    fn digest_range(&self, first: usize, end: usize, depth: impl Fn(Place) -> Option<i64>) -> Result<Vec<u64>> {
        let mut digests = vec![0; end - first];
        // of those within each, the last one first
        let mut within: Vec<Vec<u64>> = vec![Vec::new(); end - first];
        for at in (first..end).rev() {
            let place = self.places[at];
            let found = digest(self.sequence(at)?, depth(place), std::mem::take(&mut within[at - first]))?;
            digests[at - first] = found;
            if at > first {
                within[place.parent - first].push(found);
            }
        }
        Ok(digests)
    }
}

/// Runs what asks operands of code for `inspect`, which a program may have redefined.
fn shown_by_ruby<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let ruby = Ruby::get().expect("code is read on a Ruby thread");
    let asked = question::own(&ruby, ruby.exception_standard_error(), || match work() {
        Err(Failure::Ruby(error)) => Err(error),
        answer => Ok(answer),
    })?;
    match asked {
        Answer::Given(answer) => answer,
        Answer::Raised(error) => {
            let raised = error.to_string();
            let raised = raised.lines().next().unwrap_or_default();
            Err(Failure::NoSource(format!("Ikra compares the code of the block by inspect, and Ruby raised {raised}")))
        }
    }
}

/// How many levels out the local is that an instruction uses; 0 for any other.
fn level(instruction: RArray, name: &str) -> Result<i64> {
    let local = ["getlocal", "setlocal", "getblockparam", "setblockparam"].iter().any(|l| name.contains(l));
    Ok(match () {
        () if !local => 0,
        () if name.ends_with("WC_0") => 0,
        () if name.ends_with("WC_1") => 1,
        () => instruction.entry::<i64>(2)?,
    })
}

/// The names of the locals that a sequence and all within it use, in order. Only its listing has those from around it.
fn used_locals(iseq: Value) -> Result<Vec<String>> {
    Ok(local_uses(iseq)?.into_iter().map(|(name, _)| name).collect())
}

/// Each use of a local, in order: its name, and whether it is one of the very sequence that uses it.
fn local_uses(iseq: Value) -> Result<Vec<(String, bool)>> {
    let listing: String = iseq.funcall("disasm", ())?;
    let used = |line: &str| {
        // what a rescue or an ensure does is listed behind bars
        let mut words = line.split_whitespace().skip_while(|word| *word == "|").skip(1);
        let instruction = words.next()?;
        let is_local =
            ["getlocal", "setlocal", "getblockparam", "setblockparam"].iter().any(|l| instruction.contains(l));
        let (name, _) = words.next().filter(|_| is_local)?.rsplit_once('@')?;
        Some((name.to_string(), instruction.ends_with("WC_0")))
    };
    Ok(listing.lines().filter_map(used).collect())
}

/// Of the locals of the code around a block, those that it can see. It cannot see what is assigned only further down:
/// there, a name in the block is the block's own.
///
/// # Errors
/// What Ruby raises.
pub fn seen_locals(iseq: Value, around: &[String]) -> Result<Vec<String>> {
    let own = own_locals(iseq)?;
    Ok(around.iter().filter(|name| !own.contains(*name)).cloned().collect())
}

/// The locals of a sequence itself, and those of what is within it that nothing around them can mean.
fn own_locals(iseq: Value) -> Result<HashSet<String>> {
    let array: RArray = iseq.funcall("to_a", ())?;
    let mut own: HashSet<String> = table(array, 0)?.into_iter().collect();
    let mut inner = HashSet::new();
    let tree = Tree::of(array)?;
    for at in 1..tree.places.len() {
        let child = tree.sequence(at)?;
        let sizes: RHash = child.entry(4)?;
        let parameters: usize = sizes.fetch(Ruby::get_with(child).to_symbol("arg_size"))?;
        inner.extend(table(child, parameters)?);
    }
    let reaching: HashSet<String> =
        local_uses(iseq)?.into_iter().filter(|(_, within)| !within).map(|(name, _)| name).collect();
    own.extend(inner.into_iter().filter(|name| !reaching.contains(name)));
    Ok(own)
}

/// Parameters and other locals of a sequence, without the first ones; those without a name left out.
fn table(array: RArray, first: usize) -> Result<Vec<String>> {
    let names: RArray = array.entry(10)?;
    // one that is not in UTF-8 no text of ours can mean
    let name = |value: Value| Symbol::from_value(value).and_then(|symbol| Some(symbol.name().ok()?.into_owned()));
    Ok(names.into_iter().skip(first).filter_map(name).collect())
}

const FORMAT: &str = "YARVInstructionSequence/SimpleDataFormat";

fn as_sequence(value: Value) -> Option<RArray> {
    let array = RArray::from_value(value)?;
    let first = *heap::elements(array.as_raw()).first()?;
    (heap::see(first) == Seen::Str && heap::bytes(first) == FORMAT.as_bytes()).then_some(array)
}

/// Calls `visit` with each sequence right within one.
fn children(array: RArray, visit: &mut dyn FnMut(RArray) -> Result<()>) -> Result<()> {
    fn walk(value: Value, visit: &mut dyn FnMut(RArray) -> Result<()>) -> Result<()> {
        if let Some(sequence) = as_sequence(value) {
            return visit(sequence);
        }
        if let Some(list) = RArray::from_value(value) {
            for item in list {
                walk(item, visit)?;
            }
        }
        Ok(())
    }
    // catch table and instructions
    for part in [array.entry::<Value>(12)?, array.entry(13)?] {
        if let Some(list) = RArray::from_value(part) {
            for item in list {
                walk(item, visit)?;
            }
        }
    }
    Ok(())
}

/// The digest of one sequence. `within`: those of the sequences right within it, the last one first.
fn digest(array: RArray, depth: Option<i64>, within: Vec<u64>) -> Result<u64> {
    let mut state = Digest { hasher: Default::default(), labels: HashMap::new(), depth, within };
    // kind, locals, parameters; then catch table and instructions
    for part in 9..=11 {
        state.text(&shown(array.entry(part)?)?);
    }
    state.list(array.entry(12)?)?;
    let body: RArray = array.entry(13)?;
    for item in body {
        if let Some(instruction) = RArray::from_value(item) {
            state.instruction(instruction)?;
        } else if let Some(symbol) = Symbol::from_value(item) {
            let name = symbol.name()?;
            if name.starts_with("label_") {
                state.label(&name);
            }
        }
    }
    Ok(state.hasher.finish())
}

struct Digest {
    hasher: std::collections::hash_map::DefaultHasher,
    labels: HashMap<String, u64>,
    depth: Option<i64>,
    within: Vec<u64>,
}

impl Digest {
    fn text(&mut self, text: &str) {
        self.hasher.write(text.as_bytes());
        self.hasher.write_u8(0xff);
    }
    fn label(&mut self, name: &str) {
        let next = self.labels.len() as u64;
        let number = *self.labels.entry(name.into()).or_insert(next);
        self.hasher.write_u64(number);
    }
    fn list(&mut self, list: RArray) -> Result<()> {
        self.hasher.write_usize(list.len());
        for item in list {
            self.operand(item)?;
        }
        Ok(())
    }
    fn instruction(&mut self, instruction: RArray) -> Result<()> {
        if let Some(depth) = self.depth {
            let name: Symbol = instruction.entry(0)?;
            let name = name.name()?;
            if level(instruction, &name)? > depth {
                let name = name.trim_start_matches("trace_");
                self.text(name.split("_WC").next().unwrap_or(name));
                return Ok(());
            }
        }
        let mut is_super = false;
        for (i, item) in instruction.into_iter().enumerate() {
            match (Symbol::from_value(item), RHash::from_value(item)) {
                // an active TracePoint shows in the names of instructions
                (Some(name), _) if i == 0 => {
                    is_super = name.name()?.ends_with("invokesuper");
                    self.text(name.name()?.trim_start_matches("trace_"));
                }
                // once it has run, it knows the method's name
                (_, Some(call)) if is_super => {
                    let call: RHash = call.funcall("except", (Ruby::get_with(call).to_symbol("mid"),))?;
                    self.text(&shown(call.as_value())?);
                }
                _ => self.operand(item)?,
            }
        }
        Ok(())
    }
    fn operand(&mut self, item: Value) -> Result<()> {
        if as_sequence(item).is_some() {
            self.hasher.write_u64(self.within.pop().expect("both go over a sequence in the same order"));
        } else if let Some(list) = RArray::from_value(item) {
            self.list(list)?;
        } else if let Some(symbol) = Symbol::from_value(item)
            && let name = symbol.name()?
            && name.strip_prefix("label_").is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
        {
            self.label(&name);
        } else {
            self.text(&shown(item)?);
        }
        Ok(())
    }
}

/// Runs with Ruby's warnings off: compiling a file again would repeat them.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: Ruby's own variable for $VERBOSE, read and written under the GVL.
    #[allow(unsafe_code)]
    let verbose = unsafe { &mut *rb_sys::rb_ruby_verbose_ptr() };
    let before = std::mem::replace(verbose, crate::ruby::heap::NIL);
    let result = work();
    *verbose = before;
    result
}
