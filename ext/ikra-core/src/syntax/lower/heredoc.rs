//! `<<~` with interpolation.
//!
//! Here: the text of such a heredoc without its indentation. Not here: heredocs without interpolation, and those of
//! `<<-`, which the parser reads as Ruby does ([`super::literal`]). The parser takes indentation also off text that
//! begins in the middle of a line, behind a `}`. So this reads the source between the values instead.

use super::Lower;
use lib_ruby_parser::{Bytes, Node as Ruby, Parser, ParserOptions, nodes};

/// A tabulator goes to the next multiple of this many columns.
const TAB: usize = 8;

/// The end of a heredoc that a piece of text is read as.
const END: &str = "IKRA_END_OF_PIECE";

impl Lower<'_> {
    /// The parts of such a heredoc: texts, and values between them. None: it has something that kernels do not read.
    pub(super) fn indented(&self, heredoc: &nodes::Heredoc) -> Option<Vec<Ruby>> {
        let body = self.span(&heredoc.heredoc_body_l);
        let (mut at, end) = (body.start as usize, body.end as usize);
        let mut texts = Vec::new();
        let mut values = Vec::new();
        for part in heredoc.parts.iter().filter(|part| !matches!(part, Ruby::Str(_))) {
            let span = self.span(part.expression());
            let (mut from, to) = (span.start as usize, span.end as usize);
            if !matches!(part, Ruby::Begin(_)) {
                from = from.checked_sub(1)?;
            }
            let value = self.source.text.get(from..to)?;
            if !value.starts_with('#') || matches!(part, Ruby::Begin(_)) && !value.ends_with('}') {
                return None;
            }
            texts.push(self.source.text.get(at..from)?);
            values.push(part);
            at = to;
        }
        texts.push(self.source.text.get(at..end)?);
        let pieces = dedented(&texts)?;
        let mut parts = Vec::new();
        let mut values = values.into_iter();
        for piece in pieces {
            let bytes = unescaped(&piece)?;
            let expression_l = heredoc.heredoc_body_l;
            let text = nodes::Str { value: Bytes::new(bytes), begin_l: None, end_l: None, expression_l };
            if !text.value.is_empty() {
                parts.push(Ruby::Str(text));
            }
            parts.extend(values.next().cloned());
        }
        Some(parts)
    }
}

/// The texts between values, without the indentation that all lines have. None: they have lines of blanks alone, or
/// line ends that are none of the heredoc's own.
fn dedented(texts: &[&str]) -> Option<Vec<String>> {
    if texts.iter().any(|text| text.contains('\r') || continues(text)) {
        return None;
    }
    let mut width: Option<usize> = None;
    for (n, line) in lines(texts) {
        let indent = indentation(line);
        let is_blank = line[indent..].trim_end_matches('\n').is_empty();
        let has_value = n + 1 < texts.len() && !line.ends_with('\n') && std::ptr::eq(end(line), end(texts[n]));
        if is_blank && !has_value {
            // Ruby 3.1 adds these blanks to the indentation of the next line, and later ones do not.
            if indent > 0 {
                return None;
            }
        } else {
            let columns = columns(&line[..indent]);
            width = Some(width.map_or(columns, |width| width.min(columns)));
        }
    }
    let width = width.unwrap_or(0);
    let one = |(n, text): (usize, &&str)| {
        let mut out = String::with_capacity(text.len());
        for (i, line) in text.split_inclusive('\n').enumerate() {
            let begins = i > 0 || n == 0;
            out.push_str(if begins { &line[taken(line, width)..] } else { line });
        }
        out
    };
    Some(texts.iter().enumerate().map(one).collect())
}

/// The lines of the texts that begin in them, each with its text's number.
fn lines<'a>(texts: &'a [&'a str]) -> impl Iterator<Item = (usize, &'a str)> {
    texts.iter().enumerate().flat_map(|(n, text)| {
        // An empty line stands where a value follows the line's beginning.
        let after = (text.is_empty() && n == 0 || text.ends_with('\n')).then_some(&text[text.len()..]);
        text.split_inclusive('\n').skip(usize::from(n > 0)).chain(after).map(move |line| (n, line))
    })
}

fn end(text: &str) -> *const u8 {
    text.as_bytes().as_ptr_range().end
}

/// Whether a line goes on behind a backslash at its end.
fn continues(text: &str) -> bool {
    text.split_inclusive('\n').any(|line| {
        let Some(line) = line.strip_suffix('\n') else { return false };
        line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
    })
}

/// The bytes of blanks at the beginning of a line.
fn indentation(line: &str) -> usize {
    line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn columns(blanks: &str) -> usize {
    blanks.bytes().fold(0, |at, byte| if byte == b'\t' { TAB * (at / TAB + 1) } else { at + 1 })
}

/// The bytes of a line that are within the width: a tabulator that goes beyond it stays.
fn taken(line: &str, width: usize) -> usize {
    let mut at = 0;
    for (i, byte) in line.bytes().enumerate() {
        let next = match byte {
            b' ' => at + 1,
            b'\t' => TAB * (at / TAB + 1),
            _ => return i,
        };
        if next > width {
            return i;
        }
        at = next;
    }
    line.len()
}

/// The bytes of a piece of source, with its escapes.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    if !text.contains('\\') && !text.contains('#') {
        return Some(text.into());
    }
    if text.contains(END) {
        return None;
    }
    let program = format!("<<-{END}\n{text}\n{END}\n");
    let options = ParserOptions { record_tokens: false, ..ParserOptions::default() };
    let parsed = Parser::new(program, options).do_parse();
    if parsed.diagnostics.iter().any(|d| d.is_error()) {
        return None;
    }
    let Ruby::Heredoc(heredoc) = *parsed.ast? else { return None };
    let mut bytes = super::literal::joined(&heredoc.parts)?;
    // the line end before the end
    (bytes.pop() == Some(b'\n')).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indentation_is_taken_off_lines_and_not_off_text_behind_values() {
        let of = |texts: &[&str]| dedented(texts).expect("it can be read").join("#");
        assert_eq!(of(&["  a ", "  b\n    c\n"]), "a #  b\n  c\n");
        assert_eq!(of(&["    a\n  ", " \n\n      b\n"]), "  a\n# \n\n    b\n");
        assert_eq!(dedented(&["    a\n  ", " \n  \n"]), None);
        assert_eq!(of(&["", "\n  a\n"]), "#\n  a\n");
        assert_eq!(of(&["\ta\n        b", "\n"]), "a\nb#\n");
        assert_eq!(of(&["\ta\n    b", "\n"]), "\ta\nb#\n");
        assert_eq!(of(&["  a\n", "\n"]), "  a\n#\n");
        assert_eq!(dedented(&["a\\\n", "b"]), None);
        assert_eq!(dedented(&["a\\\\\n", "b"]), Some(vec!["a\\\\\n".into(), "b".into()]));
    }

    #[test]
    fn escapes_are_those_of_a_string() {
        assert_eq!(unescaped(" a\\tb\\x41 # \\#{x}\n"), Some(b" a\tbA # #{x}\n".to_vec()));
        assert_eq!(unescaped("\\"), None);
    }
}
