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

/// `Ikra.__lines(text, chomp)`: the first byte of each line and the number of its bytes, as two buffers. A line ends
/// behind a line feed. With `chomp` neither that nor a carriage return before it is part of the line.
///
/// # Errors
/// NoMemoryError.
pub fn lines(ruby: &Ruby, text: RString, chomp: bool) -> Result<RArray, Error> {
    // No Ruby code runs, and nothing changes the String, until all lines are found.
    let bytes = heap::bytes(text.as_raw());
    let (mut starts, mut sizes): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', bytes).map(|at| at + 1);
    for end in ends.chain((!bytes.is_empty() && !bytes.ends_with(b"\n")).then_some(bytes.len())) {
        let line = &bytes[start..end];
        let kept = if chomp { chomped(line) } else { line };
        room::push(&mut starts, start as i64);
        room::push(&mut sizes, kept.len() as i64);
        start = end;
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
