//! Where the lines and the words of a text are.
//!
//! Here: [`lines`], for texts whose lines end as Ruby's do by default; [`words()`]. Not here: reading files, and other
//! separators (`lib/ikra/source.rb`); how words are found (the core's `collective/words.rs`), and their number
//! (`section/words.rs`).

use crate::buffers::buffer;
use crate::ruby::dtype::Dtype;
use crate::ruby::{heap, workers};
use ikra_core::backend::collective::words;
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
    buffers(ruby, &pieces, count_lines, |piece, rows| lines_of(piece, chomp, |start, len| rows.put(start, len)))
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
/// * [`Known`] does not know the text.
/// * No line has as many bytes as `least`.
///
/// # Errors
/// TypeError for a place that is no Integer; NoMemoryError.
pub fn words(ruby: &Ruby, text: RString, ends: RArray, strips: bool, least: usize) -> Result<Option<RArray>, Error> {
    // No Ruby code runs, and nothing changes the String, until all words are found.
    let bytes = heap::bytes(text.as_raw());
    let Some(known) = Known::of(text, strips) else { return Ok(None) };
    let pieces = pieces_of_words(bytes, ends)?;
    let longest = |piece: &[u8]| {
        let mut longest = 0;
        lines_of(piece, false, |_, len| longest = longest.max(len));
        longest
    };
    if least > 0 && workers::scattered(pieces.clone(), |(_, piece)| longest(piece)).iter().all(|len| *len < least) {
        return Ok(None);
    }
    let fits = workers::scattered(pieces.clone(), |(_, piece)| known.fits(piece));
    if fits.contains(&false) {
        return Ok(None);
    }
    buffers(ruby, &pieces, words::count, |piece, rows| words::find(piece, |start, len| rows.put(start, len))).map(Some)
}

/// Of which texts the words are known: those that are valid in their encoding, because Ruby's methods raise for others,
/// or take a byte at a time.
#[derive(Clone, Copy)]
pub struct Known {
    encoding: Encoding,
    /// Whether NUL is white space at the ends of lines: for `strip` it is, for `split` it is not. Then no text with NUL
    /// is known.
    strips: bool,
}

impl Known {
    /// None for other encodings.
    pub fn of(text: RString, strips: bool) -> Option<Self> {
        heap::encoding(text.as_raw()).map(|encoding| Self { encoding, strips })
    }

    /// Whether a piece, which ends with a character, is one of such a text.
    pub fn fits(self, piece: &[u8]) -> bool {
        let valid = match self.encoding {
            Encoding::Utf8 => std::str::from_utf8(piece).is_ok(),
            Encoding::UsAscii => piece.is_ascii(),
            Encoding::Ascii | Encoding::Binary => true,
        };
        valid && !(self.strips && piece.contains(&0))
    }
}

/// The pieces of a text, each with its place, which end where words do.
///
/// # Errors
/// TypeError for a place that is no Integer.
pub fn pieces_of_words(bytes: &[u8], ends: RArray) -> Result<Vec<(usize, &[u8])>, Error> {
    Ok(pieces(bytes, ends.to_vec()?, words::is_space))
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

/// The rows of a piece in two buffers.
struct Rows<'a> {
    starts: std::slice::IterMut<'a, i32>,
    sizes: std::slice::IterMut<'a, i32>,
    from: usize,
}

impl Rows<'_> {
    fn put(&mut self, start: usize, len: usize) {
        if let (Some(place), Some(size)) = (self.starts.next(), self.sizes.next()) {
            // a String of a kernel has less than 2³¹ bytes
            (*place, *size) = ((self.from + start) as i32, len as i32);
        }
    }
}

/// What `find` puts into the rows of all pieces, as two buffers: where each begins in the text, and how many bytes it
/// has. `count` tells how many they are in a piece, so that no memory is needed beside the buffers.
fn buffers(
    ruby: &Ruby,
    pieces: &[(usize, &[u8])],
    count: impl Fn(&[u8]) -> usize + Sync,
    find: impl Fn(&[u8], &mut Rows<'_>) + Sync,
) -> Result<RArray, Error> {
    let counts = workers::scattered(pieces.to_vec(), |(_, piece)| count(piece));
    let mut columns = [(); 2].map(|()| HostColumn::to_fill(Dtype::I32.storage(), counts.iter().sum(), None));
    let [mut starts, mut sizes] = columns.each_mut().map(HostColumn::view_mut::<i32>);
    let mut parts = Vec::new();
    for ((from, piece), count) in pieces.iter().zip(counts) {
        let ((own, more), (lengths, others)) = (starts.split_at_mut(count), sizes.split_at_mut(count));
        parts.push((piece, Rows { starts: own.iter_mut(), sizes: lengths.iter_mut(), from: *from }));
        (starts, sizes) = (more, others);
    }
    workers::scattered(parts, |(piece, mut rows)| find(piece, &mut rows));
    let out = ruby.ary_new_capa(2);
    for column in columns {
        out.push(buffer::wrap(ruby, Dtype::I32, Arc::new(Buffer::from_column(column))))?;
    }
    Ok(out)
}

/// The number of lines of a piece.
fn count_lines(piece: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', piece).count() + usize::from(piece.last().is_some_and(|last| *last != b'\n'))
}

/// Shows the lines of a piece.
fn lines_of(piece: &[u8], chomp: bool, mut see: impl FnMut(usize, usize)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_behind_line_feeds_and_pieces() {
        let lines = |piece: &[u8], chomp| {
            let mut found = Vec::new();
            lines_of(piece, chomp, |start, len| found.push((start, len)));
            assert_eq!(found.len(), count_lines(piece));
            found
        };
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
