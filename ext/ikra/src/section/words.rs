//! How often each word of a text occurs.
//!
//! Here: [`counts`], which Ruby calls where a block only counts words. Not here: which blocks do (the core's
//! `syntax/words.rs`), how words are counted (`collective/words.rs`), and where the words of a text are, for other
//! blocks (`buffers/text.rs`).
//!
//! Invariant: the answer is what Ruby's `split` and `tally` give, or none.

use crate::buffers::text::{Known, pieces_of_words};
use crate::report::profile::{Clock, Phase, Step};
use crate::ruby::heap;
use crate::section::collect::{Filling, working};
use ikra_core::backend::collective::groups::seed;
use ikra_core::backend::collective::words;
use magnus::encoding::EncodingCapable;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RString, Ruby};

/// `Ikra.__word_counts(text, ends, strips, frozen, most)`: each word of a text once, in the order of first places, and
/// how often it occurs, as `[words, counts]`. Words end at the places of `ends`, too. The words are `frozen`, or not.
/// With `most`, so many of the most frequent words, in their order. nil where [`Known`] does not know the text. Until
/// this returns, nothing may change the text.
///
/// # Errors
/// TypeError for a place that is no Integer; NoMemoryError; what interrupts raise.
pub fn counts(
    ruby: &Ruby,
    text: RString,
    ends: RArray,
    strips: bool,
    frozen: bool,
    most: Option<usize>,
) -> Result<Option<RArray>, Error> {
    let mut clock = Clock::start(ruby);
    let bytes = heap::bytes(text.as_raw());
    let Some(known) = Known::of(text, strips) else { return Ok(None) };
    let pieces = pieces_of_words(bytes, ends)?;
    let found = clock.measure(Phase::Kernel, || {
        working(ruby, bytes.len(), |on| words::counted(on, seed(), bytes, &pieces, |piece| known.fits(piece)))
    })?;
    let Some(mut found) = found else {
        clock.forget();
        return Ok(None);
    };
    let count: usize = found.iter().map(|word| word.count as usize).sum();
    clock.step(ruby, || {
        let why = format!("{} kinds, counted where they are found", found.len());
        Step { what: "counting", elements: count, kind: "words", backend: "cpu", why }
    })?;
    if let Some(most) = most {
        words::leave_most_frequent(&mut found, most);
    }
    clock.measure(Phase::Unpack, || {
        let encoding = text.enc_get();
        let (mut words, mut counts) = (Filling::new(ruby, found.len()), Filling::new(ruby, found.len()));
        for word in &found {
            let string = ruby.enc_str_new(&bytes[word.first as usize..][..word.len as usize], encoding);
            if frozen {
                string.freeze();
            }
            words.push(string.as_value())?;
            counts.push(ruby.into_value(word.count))?;
        }
        Ok(Some(ruby.ary_new_from_values(&[words.done()?, counts.done()?])))
    })
}
