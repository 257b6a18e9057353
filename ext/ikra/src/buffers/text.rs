//! Where the lines and the words of a text are.
//!
//! Here: [`lines`], for texts whose lines end as Ruby's do by default; [`words`]. Not here: reading files, and other
//! separators (`lib/ikra/source.rb`).

use crate::buffers::buffer;
use crate::ruby::dtype::Dtype;
use crate::ruby::{heap, workers};
use ikra_core::memory::buffer::Buffer;
use ikra_core::memory::column::HostColumn;
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
    buffers(ruby, &pieces, |piece, see| lines_of(piece, chomp, see))
}

/// `Ikra.__note_ascii(text)`: makes Ruby note that a frozen String has ASCII only, if it has. Then no section has to
/// read all of it to know that. Of others, a section reads the bytes before the first such character.
pub fn note_ascii(text: RString) {
    if heap::bytes(text.as_raw()).is_ascii() {
        text.enc_coderange_scan();
    }
}

/// `Ikra.__words(text, ends, strips, least)`: the first byte of each word and the number of its bytes, as two buffers.
/// A word is a run of bytes without ASCII white space, which ends at these places, too: those where a file ends. nil:
///
/// * The text is not valid in its encoding.
/// * `strips`, and it has NUL, which is no white space for `split` but is for `strip`.
/// * No line has as many bytes as `least`.
///
/// # Errors
/// TypeError for a place that is no Integer; NoMemoryError.
pub fn words(ruby: &Ruby, text: RString, ends: RArray, strips: bool, least: usize) -> Result<Option<RArray>, Error> {
    // No Ruby code runs, and nothing changes the String, until all words are found.
    let bytes = heap::bytes(text.as_raw());
    let Some(encoding) = heap::encoding(text.as_raw()) else { return Ok(None) };
    let pieces = pieces(bytes, ends.to_vec()?, is_space);
    let longest = |piece: &[u8]| {
        let mut longest = 0;
        lines_of(piece, false, &mut |_, len| longest = longest.max(len));
        longest
    };
    if least > 0 && workers::scattered(pieces.clone(), |(_, piece)| longest(piece)).iter().all(|len| *len < least) {
        return Ok(None);
    }
    let known = |piece: &[u8]| match encoding {
        Encoding::Utf8 => std::str::from_utf8(piece).is_ok(),
        Encoding::UsAscii => piece.is_ascii(),
        Encoding::Ascii | Encoding::Binary => true,
    };
    let fits = workers::scattered(pieces.clone(), |(_, piece)| known(piece) && !(strips && piece.contains(&0)));
    if fits.contains(&false) { Ok(None) } else { buffers(ruby, &pieces, words_of).map(Some) }
}

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

/// What `spans` finds in all pieces, as two buffers: where each begins in the text, and how many bytes it has. It shows
/// both for a piece, in order. It runs twice, so that no memory is needed beside the buffers.
fn buffers(
    ruby: &Ruby,
    pieces: &[(usize, &[u8])],
    spans: impl Fn(&[u8], &mut dyn FnMut(usize, usize)) + Sync,
) -> Result<RArray, Error> {
    let counts = workers::scattered(pieces.to_vec(), |(_, piece)| {
        let mut count = 0;
        spans(piece, &mut |_, _| count += 1);
        count
    });
    let mut columns = [(); 2].map(|()| HostColumn::to_fill(Dtype::I32.storage(), counts.iter().sum(), None));
    let [mut starts, mut sizes] = columns.each_mut().map(HostColumn::view_mut::<i32>);
    let mut parts = Vec::new();
    for (piece, count) in pieces.iter().zip(counts) {
        let ((own, more), (lengths, others)) = (starts.split_at_mut(count), sizes.split_at_mut(count));
        parts.push((piece, own, lengths));
        (starts, sizes) = (more, others);
    }
    workers::scattered(parts, |((from, piece), starts, sizes)| {
        let mut rows = starts.iter_mut().zip(sizes);
        // a String of a kernel has less than 2³¹ bytes
        spans(piece, &mut |start, len| {
            if let Some((place, size)) = rows.next() {
                (*place, *size) = ((from + start) as i32, len as i32);
            }
        });
    });
    let out = ruby.ary_new_capa(2);
    for column in columns {
        out.push(buffer::wrap(ruby, Dtype::I32, Arc::new(Buffer::from_column(column))))?;
    }
    Ok(out)
}

/// Shows the lines of a piece.
fn lines_of(piece: &[u8], chomp: bool, see: &mut dyn FnMut(usize, usize)) {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', piece).map(|at| at + 1).chain([piece.len()]) {
        // behind a last line feed there is no line
        if end > start {
            let line = &piece[start..end];
            see(start, if chomp { chomped(line) } else { line }.len());
            start = end;
        }
    }
}

fn chomped(line: &[u8]) -> &[u8] {
    let Some(line) = line.strip_suffix(b"\n") else { return line };
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, 9..=13 | b' ')
}

/// Shows the words of a piece.
fn words_of(piece: &[u8], see: &mut dyn FnMut(usize, usize)) {
    let mut at = 0;
    while let Some(begin) = piece[at..].iter().position(|byte| !is_space(*byte)) {
        let start = at + begin;
        let len = piece[start..].iter().position(|byte| is_space(*byte)).unwrap_or(piece.len() - start);
        see(start, len);
        at = start + len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(spans: impl Fn(&mut dyn FnMut(usize, usize))) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        spans(&mut |start, len| found.push((start, len)));
        found
    }

    #[test]
    fn words_have_no_white_space() {
        let words = |piece: &[u8]| shown(|see| words_of(piece, see));
        assert_eq!(words(b""), []);
        assert_eq!(words(b" \t\r\n"), []);
        assert_eq!(words(b"the cat"), [(0, 3), (4, 3)]);
        assert_eq!(words(b"\n a\0b\x0bc "), [(2, 3), (6, 1)]);
    }

    #[test]
    fn lines_end_behind_line_feeds_and_pieces() {
        let lines = |piece: &[u8], chomp| shown(|see| lines_of(piece, chomp, see));
        assert_eq!(lines(b"", false), []);
        assert_eq!(lines(b"ab\n\nc", false), [(0, 3), (3, 1), (4, 1)]);
        assert_eq!(lines(b"ab\r\n\n\r\nc\r", true), [(0, 2), (4, 0), (5, 0), (7, 2)]);
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
