//! Where the lines and the words of a text are.
//!
//! Here: [`lines`], for texts whose lines end as Ruby's do by default; [`words`]. Not here: reading files, and other
//! separators (`lib/ikra/source.rb`).

use crate::buffers::buffer;
use crate::ruby::dtype::Dtype;
use crate::ruby::{heap, workers};
use ikra_core::memory::buffer::Buffer;
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::room;
use ikra_core::types::Encoding;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RString, Ruby};
use std::sync::Arc;

/// The bytes of a text in which one thread looks for lines or words.
const PIECE: usize = 1 << 20;

/// `Ikra.__lines(text, ends, chomp)`: the first byte of each line and the number of its bytes, as two buffers. A line
/// ends behind a line feed, and at these places, which are in order: those where a file ends. With `chomp` neither a
/// line feed nor a carriage return before it is part of the line.
///
/// # Errors
/// TypeError for a place that is no Integer; NoMemoryError.
pub fn lines(ruby: &Ruby, text: RString, ends: RArray, chomp: bool) -> Result<RArray, Error> {
    // No Ruby code runs, and nothing changes the String, until all lines are found.
    let bytes = heap::bytes(text.as_raw());
    let pieces = pieces(bytes, ends.to_vec()?, |byte| byte == b'\n');
    let found = workers::scattered(pieces, |(from, piece)| lines_of(from, piece, chomp));
    buffers(ruby, &found)
}

/// `Ikra.__note_ascii(text)`: makes Ruby note that a frozen String has ASCII only, if it has. Then no section has to
/// read all of it to know that. Of others, a section reads the bytes before the first such character.
pub fn note_ascii(text: RString) {
    if heap::bytes(text.as_raw()).is_ascii() {
        // SAFETY: `text` is a live String. The function reads its bytes, and sets flags of the object.
        #[allow(unsafe_code)]
        unsafe {
            rb_sys::rb_enc_str_coderange(text.as_raw());
        }
    }
}

/// `Ikra.__words(text, ends, strips)`: the first byte of each word and the number of its bytes, as two buffers. A word
/// is a run of bytes without ASCII white space, which ends at these places, too: those where a file ends. nil: the text
/// is not valid in its encoding; or `strips`, and it has NUL, which is no white space for `split` but is for `strip`.
///
/// # Errors
/// TypeError for a place that is no Integer; NoMemoryError.
pub fn words(ruby: &Ruby, text: RString, ends: RArray, strips: bool) -> Result<Option<RArray>, Error> {
    // No Ruby code runs, and nothing changes the String, until all words are found.
    let bytes = heap::bytes(text.as_raw());
    let Some(encoding) = heap::encoding(text.as_raw()) else { return Ok(None) };
    let found: Option<Vec<_>> = workers::scattered(pieces(bytes, ends.to_vec()?, is_space), |(from, piece)| {
        let valid = match encoding {
            Encoding::Utf8 => std::str::from_utf8(piece).is_ok(),
            Encoding::Ascii | Encoding::UsAscii => piece.is_ascii(),
            Encoding::Binary => true,
        };
        (valid && !(strips && piece.contains(&0))).then(|| words_of(from, piece))
    })
    .into_iter()
    .collect();
    found.map(|found| buffers(ruby, &found)).transpose()
}

/// Where lines or words begin, and how many bytes they have.
type Spans = (Vec<i32>, Vec<i32>);

/// The pieces of a text, each with its place. A piece ends where a file does, or behind such a byte.
fn pieces(bytes: &[u8], ends: Vec<usize>, is_last: impl Fn(u8) -> bool) -> Vec<(usize, &[u8])> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for file in ends.into_iter().chain([bytes.len()]).map(|end| end.min(bytes.len())) {
        while from < file {
            let last = bytes[..file].get(from + PIECE..).and_then(|rest| rest.iter().position(|byte| is_last(*byte)));
            let to = last.map_or(file, |last| from + PIECE + last + 1);
            pieces.push((from, &bytes[from..to]));
            from = to;
        }
    }
    pieces
}

/// What was found in all pieces, as two buffers.
fn buffers(ruby: &Ruby, found: &[Spans]) -> Result<RArray, Error> {
    let count = found.iter().map(|(starts, _)| starts.len()).sum();
    let mut columns = [(); 2].map(|()| HostColumn::to_fill(Dtype::I32.storage(), count, None));
    let mut copies = Vec::new();
    let [mut starts, mut sizes] = columns.each_mut().map(HostColumn::view_mut::<i32>);
    for (own, their) in found {
        let ((some, more), (lengths, others)) = (starts.split_at_mut(own.len()), sizes.split_at_mut(own.len()));
        copies.extend([(some, own), (lengths, their)]);
        (starts, sizes) = (more, others);
    }
    workers::scattered(copies, |(to, from)| to.copy_from_slice(from));
    let out = ruby.ary_new_capa(2);
    for column in columns {
        out.push(buffer::wrap(ruby, Dtype::I32, Arc::new(Buffer::from_column(column))))?;
    }
    Ok(out)
}

/// The lines of a piece of a text, which begins at this place.
fn lines_of(from: usize, piece: &[u8], chomp: bool) -> Spans {
    let mut spans = Spans::default();
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', piece).map(|at| at + 1).chain([piece.len()]) {
        // behind a last line feed there is no line
        if end > start {
            let line = &piece[start..end];
            let kept = if chomp { chomped(line) } else { line };
            push(&mut spans, from + start, kept.len());
            start = end;
        }
    }
    spans
}

fn chomped(line: &[u8]) -> &[u8] {
    let Some(line) = line.strip_suffix(b"\n") else { return line };
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, 9..=13 | b' ')
}

/// The words of a piece of a text, which begins at this place.
fn words_of(from: usize, piece: &[u8]) -> Spans {
    let mut spans = Spans::default();
    let mut at = 0;
    while let Some(begin) = piece[at..].iter().position(|byte| !is_space(*byte)) {
        let start = at + begin;
        let len = piece[start..].iter().position(|byte| is_space(*byte)).unwrap_or(piece.len() - start);
        push(&mut spans, from + start, len);
        at = start + len;
    }
    spans
}

/// A String of a kernel has less than 2³¹ bytes.
fn push(spans: &mut Spans, start: usize, len: usize) {
    room::push(&mut spans.0, start as i32);
    room::push(&mut spans.1, len as i32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_wherever_a_piece_begins() {
        assert_eq!(words_of(0, b""), (vec![], vec![]));
        assert_eq!(words_of(0, b" \t\r\n"), (vec![], vec![]));
        assert_eq!(words_of(5, b"the cat"), (vec![5, 9], vec![3, 3]));
        assert_eq!(words_of(0, b"\n a\0b\x0bc "), (vec![2, 6], vec![3, 1]));
    }

    #[test]
    fn lines_end_behind_line_feeds_and_pieces() {
        assert_eq!(lines_of(0, b"", false), (vec![], vec![]));
        assert_eq!(lines_of(7, b"ab\n\nc", false), (vec![7, 10, 11], vec![3, 1, 1]));
        assert_eq!(lines_of(0, b"ab\r\n\n\r\nc\r", true), (vec![0, 4, 5, 7], vec![2, 0, 0, 2]));
    }

    #[test]
    fn pieces_end_behind_such_a_byte_and_where_files_end() {
        let text = [vec![b'a'; PIECE + 3], vec![b'\n'], vec![b'b'; 5]].concat();
        let of = |ends: &[usize]| {
            let pieces = pieces(&text, ends.to_vec(), |byte| byte == b'\n');
            pieces.into_iter().map(|(from, piece)| (from, piece.len())).collect::<Vec<_>>()
        };
        assert_eq!(of(&[]), [(0, PIECE + 4), (PIECE + 4, 5)]);
        assert_eq!(of(&[3, 3, PIECE + 4]), [(0, 3), (3, PIECE + 1), (PIECE + 4, 5)]);
    }
}
