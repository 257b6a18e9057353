//! Instruction sequences: where a block or method stands in its file, and whether the file still says what runs.
//!
//! Here: [`Sequence`], what one instruction sequence tells of itself, and [`Text`], a file (or the text of an `eval`)
//! with an index of all code in it. Not here: parsing ([`ikra_core::syntax`]) and what a block captures
//! ([`crate::block`]).
//! Invariant: a [`Source`] is made only of text that Ruby compiles to the very instructions that run.
//!
//! A file that was loaded after Ikra keeps its lines in memory (`RubyVM.keep_script_lines`), so its text is the one that
//! runs whatever became of the file. A file that was loaded earlier is read again and compiled by Ruby itself; the
//! instructions at the block's place must be the same.

use crate::environment::InForce;
use crate::registry::Kept;
use ikra_core::diagnostic::Diagnostic;
use ikra_core::source::{Lines, Source, freezes_strings};
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RHash, RString, Ruby, Symbol, Value};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::hash::Hasher;
use std::sync::Arc;
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
        let kept = lines.map(|lines| Text::of_lines(&path, lines)).transpose()?;
        let captures = reaches_out(array, 0)?;
        let uses = if captures && absolute_path.is_none() { used_locals(iseq)? } else { Vec::new() };
        Ok(Self {
            path,
            absolute_path,
            kind: found.kind,
            location: found.location,
            digest: digest(array, None)?,
            captures,
            kept,
            loose_digest: digest(array, Some(0))?,
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

    /// Its source, for parsing, where these refinements are in force.
    ///
    /// # Errors
    /// As [`Sequence::text`].
    pub fn source(&self, ruby: &Ruby, in_force: &InForce) -> Result<Arc<Source>> {
        let (text, place) = self.text(ruby)?;
        text.slice(&self.path, place, self.location[0], in_force).ok_or_else(|| changed(&self.path, self.location[0]))
    }
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
    /// With the names of the locals around it.
    nodes: Mutex<Option<Compiled>>,
}

struct Cached {
    modified: Option<SystemTime>,
    length: u64,
    text: Arc<Text>,
}

static FILES: Mutex<Option<HashMap<String, Cached>>> = Mutex::new(None);
/// Texts by the Array of lines that Ruby keeps.
static LINES: Mutex<Vec<(Kept, Arc<Text>)>> = Mutex::new(Vec::new());
/// How many of them are remembered.
const REMEMBERED: usize = 256;

impl Text {
    fn new(path: &str, text: Arc<str>) -> Arc<Self> {
        // Ruby counts columns from behind a byte order mark
        let text = text.strip_prefix('\u{feff}').map_or(text.clone(), Arc::from);
        Arc::new(Self { path: path.into(), text, nodes: Mutex::new(None) })
    }

    fn of_lines(path: &str, lines: RArray) -> Result<Arc<Self>> {
        let raw = lines.as_raw();
        if let Some((_, text)) = LINES.lock().iter().find(|(kept, _)| kept.raw() == raw) {
            return Ok(text.clone());
        }
        let text = Self::new(path, join(lines)?);
        let mut known = LINES.lock();
        if known.len() >= REMEMBERED {
            known.drain(..REMEMBERED / 2);
        }
        known.push((Kept::new(lines.as_value()), text.clone()));
        Ok(text)
    }

    fn of_file(path: &str, absolute: &str) -> Result<Arc<Self>> {
        let unreadable = |e: std::io::Error| Failure::NoSource(format!("{absolute} cannot be read again: {e}"));
        let meta = std::fs::metadata(absolute).map_err(unreadable)?;
        let (modified, length) = (meta.modified().ok(), meta.len());
        if let Some(cached) = FILES.lock().get_or_insert_default().get(absolute)
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
        FILES.lock().get_or_insert_default().insert(absolute.into(), cached);
        Ok(text)
    }

    /// Whole lines with the slice at a place; `line` is the number of its first line for people.
    fn slice(&self, path: &str, place: Location, line: u32, in_force: &InForce) -> Option<Arc<Source>> {
        let [first, from, last, to] = place.map(|n| n as usize);
        let mut start = 0;
        for _ in 1..first {
            start += self.text.get(start..)?.find('\n')? + 1;
        }
        let mut last_start = start;
        for _ in first..last {
            last_start += self.text.get(last_start..)?.find('\n')? + 1;
        }
        let end = self.text.get(last_start..)?.find('\n').map_or(self.text.len(), |n| last_start + n);
        let text = self.text.get(start..end)?;
        let slice = from..last_start - start + to;
        let refined = in_force.concern(text.get(slice.clone())?, &self.text);
        Some(Arc::new(Source {
            path: path.into(),
            text: text.into(),
            first_line: line,
            slice,
            own: false,
            frozen_strings: freezes_strings(&self.text),
            refined,
            lines: Lines::default(),
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
            // the text is what runs, so only the place is to be found; where from the locals come is not in the text, but
            // their names are
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

    fn compile(&self, ruby: &Ruby, locals: &[String]) -> Result<Vec<Node>> {
        let mut nodes = Vec::new();
        self.visit(self.compiled(ruby, locals)?.funcall("to_a", ())?, &[], &mut nodes)?;
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
        let text = ruby.str_new(&text);
        let path = ruby.str_new(&self.path);
        let compiled: std::result::Result<Value, Error> =
            quietly(|| class.funcall("compile", (text, path, path, first)));
        compiled.map_err(|_| changed(&self.path, 1))
    }

    /// Adds a sequence and all within it.
    fn visit(&self, array: RArray, bodies: &[Body], nodes: &mut Vec<Node>) -> Result<()> {
        let Header { location, kind } = header(array)?;
        let mut bodies = bodies.to_vec();
        if kind == "class" {
            bodies.push(self.opening(location));
        }
        let (digest, loose_digest) = (digest(array, None)?, digest(array, Some(0))?);
        nodes.push(Node { location, kind, digest, loose_digest, bodies: bodies.clone().into() });
        children(array, &mut |child| self.visit(child, &bodies, nodes))
    }

    /// Reads `class A::B` or `class << self` at a class body's place.
    fn opening(&self, location: Location) -> Body {
        let line = self.text.split('\n').nth(location[0] as usize - 1).unwrap_or("");
        let words = line.get(location[1] as usize..).unwrap_or("");
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

/// Whether a sequence, or one within it, uses a local from more than `depth` levels out.
fn reaches_out(array: RArray, depth: i64) -> Result<bool> {
    let body: RArray = array.entry(13)?;
    for item in body {
        let Some(instruction) = RArray::from_value(item) else { continue };
        let name: Symbol = instruction.entry(0)?;
        if level(instruction, &name.name()?)? > depth {
            return Ok(true);
        }
    }
    let mut found = false;
    children(array, &mut |child| {
        found |= reaches_out(child, depth + 1)?;
        Ok(())
    })?;
    Ok(found)
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

/// Of the locals of the code around a block, those that it can see: not what is assigned there only further down, where
/// a name in the block is the block's own.
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
    inner_locals(array, &mut inner)?;
    let reaching: HashSet<String> =
        local_uses(iseq)?.into_iter().filter(|(_, within)| !within).map(|(name, _)| name).collect();
    own.extend(inner.into_iter().filter(|name| !reaching.contains(name)));
    Ok(own)
}

fn inner_locals(array: RArray, found: &mut HashSet<String>) -> Result<()> {
    children(array, &mut |child| {
        let sizes: RHash = child.entry(4)?;
        let parameters: usize = sizes.fetch(Ruby::get_with(child).to_symbol("arg_size"))?;
        found.extend(table(child, parameters)?);
        inner_locals(child, found)
    })
}

/// Parameters and other locals of a sequence, without the first ones; those without a name left out.
fn table(array: RArray, first: usize) -> Result<Vec<String>> {
    let names: RArray = array.entry(10)?;
    let name = |value: Value| Symbol::from_value(value).map(|symbol| symbol.name().map(|name| name.into_owned()));
    Ok(names.into_iter().skip(first).filter_map(name).collect::<std::result::Result<_, Error>>()?)
}

const FORMAT: &str = "YARVInstructionSequence/SimpleDataFormat";

fn as_sequence(value: Value) -> Option<RArray> {
    let array = RArray::from_value(value)?;
    let first = RString::from_value(array.entry(0).ok()?)?;
    (first.to_string().ok()? == FORMAT).then_some(array)
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

/// A value as `inspect` shows it; what arrives meanwhile, an interrupt, is told.
fn shown(value: Value) -> Result<String> {
    Ok(value.funcall("inspect", ())?)
}

/// A hash of all that a sequence does: parameters, locals, instructions and what is within them; labels by the order in
/// which they turn up, lines and events left out.
///
/// `depth`: how far out the sequence is from the one whose digest this is; locals from further out are all alike. None:
/// they are not.
fn digest(array: RArray, depth: Option<i64>) -> Result<u64> {
    let mut state = Digest { hasher: Default::default(), labels: HashMap::new(), depth };
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
        if let Some(sequence) = as_sequence(item) {
            self.hasher.write_u64(digest(sequence, self.depth.map(|depth| depth + 1))?);
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
    let before = std::mem::replace(verbose, crate::heap::NIL);
    let result = work();
    *verbose = before;
    result
}

fn join(lines: RArray) -> Result<Arc<str>> {
    let mut text = String::new();
    for line in lines {
        let line = RString::from_value(line).ok_or_else(|| {
            Failure::NoSource("Ruby keeps this code's lines in a form that Ikra does not know".into())
        })?;
        text.push_str(&line.to_string()?);
    }
    Ok(text.into())
}
