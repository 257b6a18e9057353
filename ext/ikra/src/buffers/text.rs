//! Where the lines of a text are.
//!
//! Here: [`lines`], for texts whose lines end as Ruby's do by default. Not here: reading files, and other separators
//! (`lib/ikra/source.rb`).

use crate::buffers::buffer;
use crate::ruby::dtype::Dtype;
use crate::ruby::heap;
use ikra_core::memory::buffer::Buffer;
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::room;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RString, Ruby};
use std::sync::Arc;

/// `Ikra.__lines(text, ends, chomp)`: the first byte of each line and the number of its bytes, as two buffers. A line
/// ends behind a line feed, and at these places, which are in order: those where a file ends. With `chomp` neither a
/// line feed nor a carriage return before it is part of the line.
///
/// # Errors
/// TypeError for a place that is no Integer; NoMemoryError.
pub fn lines(ruby: &Ruby, text: RString, ends: RArray, chomp: bool) -> Result<RArray, Error> {
    let ends: Vec<usize> = ends.to_vec()?;
    // No Ruby code runs, and nothing changes the String, until all lines are found.
    let bytes = heap::bytes(text.as_raw());
    let (mut starts, mut sizes): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    let mut start = 0;
    for file in ends.into_iter().chain([bytes.len()]).map(|end| end.min(bytes.len())) {
        let from = start.min(file);
        let feeds = memchr::memchr_iter(b'\n', &bytes[from..file]).map(|at| from + at + 1);
        for end in feeds.chain([file]) {
            // behind a last line feed there is no line
            if end > start {
                let line = &bytes[start..end];
                let kept = if chomp { chomped(line) } else { line };
                room::push(&mut starts, start as i64);
                room::push(&mut sizes, kept.len() as i64);
                start = end;
            }
        }
    }
    let out = ruby.ary_new_capa(2);
    for words in [starts, sizes] {
        let mut column = HostColumn::zeroed(Dtype::I64.storage(), words.len());
        column.view_mut::<i64>().copy_from_slice(&words);
        out.push(buffer::wrap(ruby, Dtype::I64, Arc::new(Buffer::from_column(column))))?;
    }
    Ok(out)
}

fn chomped(line: &[u8]) -> &[u8] {
    let Some(line) = line.strip_suffix(b"\n") else { return line };
    line.strip_suffix(b"\r").unwrap_or(line)
}
