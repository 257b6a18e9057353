//! Ruby source text and positions in it.
//!
//! Here: [`Source`], a run of whole lines of a file with the slice that is the block or method. Not here: finding
//! that slice (the bridge asks Ruby for it) and parsing it ([`crate::syntax`]).

use crate::diagnostic::Span;
use std::ops::Range;
use std::sync::OnceLock;

/// Whole lines of a Ruby file, the part of them that is one block or method, and where they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The path, as in Ruby's backtraces.
    pub path: String,
    /// Whole lines: from the line where the slice begins to the line where it ends, or where the last of its heredocs
    /// ends.
    pub text: String,
    /// Number of the first line of `text`, from 1.
    pub first_line: u32,
    /// Bytes of `text` that are the block (`{ … }` or `do … end`, with the braces) or the `def … end`.
    pub slice: Range<usize>,
    /// Bytes of `text` after the slice's last line: the bodies of heredocs that begin in the slice.
    pub heredocs: Range<usize>,
    /// It is a text of this crate, where `__name` is a primitive.
    pub own: bool,
    /// The file begins with `# frozen_string_literal: true`.
    pub frozen_strings: bool,
    /// Whether some of its String literals are not in UTF-8.
    pub foreign_strings: bool,
    /// Whether Ruby parsed it by Prism, as from Ruby 3.4 on. If an interpolated String does not begin with text, this
    /// decides what it begins with. Prism: the first value, or an empty text if there is nothing else. The parser
    /// before: the first value if there is text anywhere, otherwise an empty text. So `"#{1}#{2}"` is in US-ASCII in
    /// Ruby 3.4, and in UTF-8 before.
    pub prism: bool,
    /// Whether refinements are active that may change what the slice calls.
    pub refined: bool,
    /// Computed at the first use, since every expression needs it.
    pub lines: Lines,
}

/// Whether a file's first comments say that its String literals are frozen.
pub fn freezes_strings(text: &str) -> bool {
    let comments = text.lines().map(str::trim).take_while(|l| l.starts_with('#') || l.is_empty());
    comments.filter(|l| !l.is_empty()).any(|l| {
        let line = l.to_ascii_lowercase().replace('-', "_");
        let said = line.split_once("frozen_string_literal:").map(|(_, value)| value.trim_start());
        said.is_some_and(|value| value.starts_with("true"))
    })
}

/// Where the lines of a text begin, once computed.
#[derive(Clone, Debug, Default)]
pub struct Lines(OnceLock<Vec<usize>>);

impl PartialEq for Lines {
    /// They depend on the text alone, so they are always equal.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Lines {}

impl Source {
    /// A source whose slice is the whole text, for methods made of text and for tests.
    pub fn whole(path: &str, text: &str, first_line: u32) -> Self {
        let slice = 0..text.len();
        Self { path: path.into(), text: text.into(), first_line, slice, ..Self::default() }
    }
    /// Ruby that is part of this crate.
    pub fn own(path: &str, text: &str) -> Self {
        Self { own: true, ..Self::whole(path, text, 1) }
    }
    /// Whether the source belongs to no file, and its path is like that of Ruby's own code, `<internal:kernel>`. Its
    /// exceptions are raised where it is called.
    pub fn is_internal(&self) -> bool {
        self.path.starts_with("<internal:")
    }
    /// The span of the slice.
    pub fn span(&self) -> Span {
        Span::new(self.slice.start, self.slice.end)
    }
    pub fn slice_text(&self) -> &str {
        &self.text[self.slice.clone()]
    }
    /// The text of a span.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }
    /// The span of a block's parameters, `|x|`; for a block without any, its first character.
    pub fn params_span(&self) -> Span {
        let slice = self.slice_text();
        let inner = slice.strip_prefix('{').or(slice.strip_prefix("do")).unwrap_or("").trim_start();
        let at = self.slice.end - inner.len();
        match inner.strip_prefix('|').and_then(|rest| rest.find('|')) {
            Some(length) => Span::new(at, at + length + 2),
            None => Span::new(self.slice.start, self.slice.start + 1),
        }
    }
    /// The line of the text that contains a byte offset, from 0, and the offset where it begins.
    fn line_at(&self, offset: u32) -> (usize, usize) {
        let starts = self.lines.0.get_or_init(|| {
            let ends = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
            std::iter::once(0).chain(ends).collect()
        });
        let line = starts.partition_point(|start| *start <= offset as usize) - 1;
        (line, starts[line])
    }
    /// Line number (from 1) of a byte offset.
    pub fn line_of(&self, offset: u32) -> u32 {
        self.first_line + self.line_at(offset).0 as u32
    }
    /// Line (from 1) and column in characters (from 0) of a byte offset.
    pub fn line_column(&self, offset: u32) -> (u32, usize) {
        let (line, start) = self.line_at(offset);
        let before = &self.text.as_bytes()[start..(offset as usize).clamp(start, self.text.len())];
        (self.first_line + line as u32, String::from_utf8_lossy(before).chars().count())
    }
    /// The whole line that holds a byte offset, without its end.
    pub fn line_text(&self, offset: u32) -> &str {
        let (_, start) = self.line_at(offset);
        self.text[start..].split('\n').next().unwrap_or("")
    }
}
