//! Groups that stay in columns: the result of a `map_reduce` with `lazy: true`. No Ruby object is made of a group.
//!
//! Here: [`columns`], which makes one column of each part of keys, and one of values. Not here: groups whose keys
//! differ in form, which become Ruby's values ([`super::combining`]), and what reads the columns
//! (`lib/ikra/groups/columns.rb`).
//! Invariant: columns have what [`super::combining::emitted`] would make Ruby's values of, in the same order.

use crate::buffers::buffer;
use crate::marshal::unpack::Unpacker;
use crate::ruby::dtype::Dtype;
use crate::ruby::workers::{self, PIECE};
use crate::section::combining::repr_of_keys;
use ikra_core::backend::collective::emitted::Emitted;
use ikra_core::memory::buffer::Buffer;
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::room;
use ikra_core::types::keys::{KeyCode, codes};
use ikra_core::types::{Encoding, Repr, StrWord};
use magnus::encoding::EncodingCapable;
use magnus::prelude::*;
use magnus::{Error, RArray, Ruby, Value};
use std::sync::Arc;

/// The most parts of a key that stays in columns. `lib/ikra/groups/columns.rb` has code for so many.
const MOST_PARTS: usize = 4;

/// The columns of groups, as `[[parts, is_list, values], nil, nil, :columns]`. A key is an Array of its `parts`, or the
/// only one of them. None where this needs Ruby's values. Each part is
///
/// * a buffer of Integers, or of Floats
/// * `[text, starts, sizes]`: parts of a String, and two buffers that say where each begins and how many bytes it has
/// * an Array of Symbols, or of true and false
///
/// # Errors
/// Words that mean nothing; NoMemoryError; what interrupts raise.
pub fn columns(unpacker: &Unpacker<'_>, groups: &Emitted) -> Result<Option<RArray>, Error> {
    let (ruby, repr) = (unpacker.ruby, repr_of_keys(unpacker));
    let values = if groups.how.floats {
        buffer(ruby, Dtype::F64, &groups.floats(), |value| value.to_bits())
    } else {
        if groups.totals.iter().any(|total| i64::try_from(*total).is_err()) {
            return Ok(None);
        }
        buffer(ruby, Dtype::I64, &groups.totals, |total| *total as u64)
    };
    let parts = ruby.ary_new();
    if let Some(repr) = repr {
        let Some(part) = part(unpacker, repr, &groups.keys)? else { return Ok(None) };
        parts.push(part)?;
    } else {
        let Some(reprs) = forms(groups) else { return Ok(None) };
        for (at, repr) in reprs.into_iter().enumerate() {
            let mut words = room::filled(0, groups.keys.len());
            let pieces = words.chunks_mut(PIECE).zip(groups.keys.chunks(PIECE)).collect();
            workers::map(groups.keys.len(), pieces, |(words, keys): (&mut [u64], &[u64])| {
                words.iter_mut().zip(keys).for_each(|(word, key)| *word = groups.parts(*key)[1 + at]);
            });
            let Some(part) = part(unpacker, repr, &words)? else { return Ok(None) };
            parts.push(part)?;
        }
    }
    let columns = ruby.ary_new_from_values(&[parts.as_value(), ruby.into_value(repr.is_none()), values]);
    let (nil, kind) = (ruby.qnil().as_value(), ruby.to_symbol("columns").as_value());
    Ok(Some(ruby.ary_new_from_values(&[columns.as_value(), nil, nil, kind])))
}

/// What the elements of keys are, if all keys are Arrays of the same form.
fn forms(groups: &Emitted) -> Option<Vec<Repr>> {
    let head = groups.parts(*groups.keys.first()?)[0];
    let mut codes = codes(head);
    let count = codes.next()?.checked_sub(KeyCode::LIST)? as usize;
    let reprs: Vec<Repr> = codes
        .map(|code| match code {
            KeyCode::INT => Some(Repr::Int),
            KeyCode::FLOAT => Some(Repr::Float),
            KeyCode::SYM => Some(Repr::Sym),
            KeyCode::STR => Some(Repr::Str),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let pieces = groups.keys.chunks(PIECE).collect();
    let same = |keys: &[u64]| keys.iter().all(|key| groups.parts(*key)[0] == head);
    let fits = reprs.len() == count && (1..=MOST_PARTS).contains(&count);
    (fits && workers::map(groups.keys.len(), pieces, same).into_iter().all(|same| same)).then_some(reprs)
}

/// A part of all keys.
fn part(unpacker: &Unpacker<'_>, repr: Repr, words: &[u64]) -> Result<Option<Value>, Error> {
    let ruby = unpacker.ruby;
    Ok(match repr {
        Repr::Int => Some(buffer(ruby, Dtype::I64, words, |word| *word)),
        Repr::Float => Some(buffer(ruby, Dtype::F64, words, |word| *word)),
        Repr::Str => texts(unpacker, words)?.map(|text| text.as_value()),
        _ => Some(unpacker.values_of(repr, words)?.as_value()),
    })
}

fn buffer<T: Sync>(ruby: &Ruby, dtype: Dtype, rows: &[T], word: impl Fn(&T) -> u64 + Sync) -> Value {
    let mut column = HostColumn::to_fill(dtype.storage(), rows.len(), None);
    let pieces = column.view_mut::<u64>().chunks_mut(PIECE).zip(rows.chunks(PIECE)).collect();
    workers::map(rows.len(), pieces, |(out, rows): (&mut [u64], &[T])| {
        out.iter_mut().zip(rows).for_each(|(out, row)| *out = word(row));
    });
    buffer::wrap(ruby, dtype, Arc::new(Buffer::from_column(column))).as_value()
}

/// Strings as parts of one. None: they are not all of one encoding and made by a kernel, or too long together.
fn texts(unpacker: &Unpacker<'_>, words: &[u64]) -> Result<Option<RArray>, Error> {
    let (ruby, bytes) = (unpacker.ruby, unpacker.bytes());
    let encoding = |word: u64| match StrWord(word).encoding() {
        Encoding::Ascii => Encoding::Utf8,
        encoding => encoding,
    };
    let Some(first) = words.first().map(|word| encoding(*word)) else { return Ok(None) };
    let checked = workers::map(words.len(), words.chunks(PIECE).collect(), |words: &[u64]| {
        let fits = |word: &u64| {
            let text = StrWord(*word);
            let end = text.offset() as usize + text.length();
            text.is_made() && !text.is_frozen() && encoding(*word) == first && end <= bytes.len()
        };
        let length = |word: &u64| StrWord(*word).length();
        words.iter().all(fits).then(|| words.iter().map(length).sum::<usize>())
    });
    let Some(lengths) = checked.into_iter().collect::<Option<Vec<usize>>>() else { return Ok(None) };
    let all: usize = lengths.iter().sum();
    if all > StrWord::MAX_BYTES {
        return Ok(None);
    }
    let mut columns = [(); 2].map(|()| HostColumn::to_fill(Dtype::I32.storage(), words.len(), None));
    let mut text = room::filled(0u8, all);
    let [starts, sizes] = columns.each_mut().map(HostColumn::view_mut::<i32>);
    let (mut rest, mut from) = (&mut text[..], 0);
    let mut pieces = room::with_capacity(lengths.len());
    let rows = starts.chunks_mut(PIECE).zip(sizes.chunks_mut(PIECE));
    for ((words, (starts, sizes)), length) in words.chunks(PIECE).zip(rows).zip(lengths) {
        let (own, others) = rest.split_at_mut(length);
        pieces.push((words, starts, sizes, from, own));
        (rest, from) = (others, from + length);
    }
    workers::map(words.len(), pieces, |(words, starts, sizes, from, own): Piece<'_>| {
        let mut at = 0;
        for ((word, start), size) in words.iter().zip(starts).zip(sizes) {
            let (offset, length) = (StrWord(*word).offset() as usize, StrWord(*word).length());
            own[at..at + length].copy_from_slice(&bytes[offset..offset + length]);
            (*start, *size) = ((from + at) as i32, length as i32);
            at += length;
        }
    });
    let text = ruby.str_from_slice(&text);
    text.enc_associate(match first {
        Encoding::Utf8 | Encoding::Ascii => ruby.utf8_encindex(),
        Encoding::Binary => ruby.ascii8bit_encindex(),
        Encoding::UsAscii => ruby.usascii_encindex(),
    })?;
    crate::buffers::text::note_ascii(text);
    text.freeze();
    let out = ruby.ary_new_capa(3);
    out.push(text)?;
    for column in columns {
        out.push(buffer::wrap(ruby, Dtype::I32, Arc::new(Buffer::from_column(column))))?;
    }
    Ok(Some(out))
}

/// Words of Strings, where they begin, how long they are, and their bytes, which begin at a place of the text.
type Piece<'a> = (&'a [u64], &'a mut [i32], &'a mut [i32], usize, &'a mut [u8]);
