//! How often each word of a text occurs.
//!
//! Here: [`counts`], which Ruby calls where a block only counts words, and [`taken`], which makes Ruby's objects of
//! what that found. Not here: which blocks do (the core's `syntax/words.rs`), how words are counted
//! (`collective/words.rs`), and where the words of a text are, for other blocks (`buffers/text.rs`).
//!
//! Invariant: the answer is what Ruby's `split` and `tally` give, or none.

use crate::buffers::text::{Known, pieces_of_words};
use crate::report::profile::{Clock, Phase, Step};
use crate::ruby::heap;
use crate::section::collect::{Filling, working};
use ikra_core::backend::collective::groups::seed;
use ikra_core::backend::collective::words::{self, Word};
use magnus::encoding::EncodingCapable;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{DataTypeFunctions, Error, RArray, RModule, RString, Ruby, TypedData, Value};

/// The words of a text that were counted, for [`taken`].
#[derive(TypedData)]
#[magnus(class = "Ikra::WordCounts", free_immediately)]
pub struct Counted(Vec<Word>);

impl DataTypeFunctions for Counted {}

/// Defines `Ikra::WordCounts`, which Ruby code cannot make.
///
/// # Errors
/// Where the name is taken.
pub fn init(ikra: RModule, ruby: &Ruby) -> Result<(), Error> {
    let class = ikra.define_class("WordCounts", ruby.class_object())?;
    class.undef_default_alloc_func();
    ikra.funcall::<_, _, Value>("private_constant", (ruby.to_symbol("WordCounts"),))?;
    <Counted as TypedData>::class(ruby);
    Ok(())
}

/// `Ikra.__word_counts(text, ends, strips)`: how often each word of a text occurs, as `[counted, number of kinds]`.
/// Words end at the places of `ends`, too. nil where [`Known`] does not know the text. Until this returns, nothing may
/// change the text.
///
/// # Errors
/// TypeError for a place that is no Integer; NoMemoryError; what interrupts raise.
pub fn counts(ruby: &Ruby, text: RString, ends: RArray, strips: bool) -> Result<Option<RArray>, Error> {
    let mut clock = Clock::start(ruby);
    let bytes = heap::bytes(text.as_raw());
    let Some(known) = Known::of(text, strips) else { return Ok(None) };
    let pieces = pieces_of_words(bytes, ends)?;
    let found = clock.measure(Phase::Kernel, || {
        working(ruby, bytes.len(), |on| words::counted(on, seed(), bytes, &pieces, |piece| known.fits(piece)))
    })?;
    let Some(found) = found else {
        clock.forget();
        return Ok(None);
    };
    clock.step(ruby, || {
        let why = format!("{} kinds, counted where they are found", found.len());
        let elements = found.iter().map(|word| word.count as usize).sum();
        Step { what: "counting", elements, kind: "words", backend: "cpu", why }
    })?;
    let kinds = ruby.into_value(found.len());
    Ok(Some(ruby.ary_new_from_values(&[ruby.obj_wrap(Counted(found)).as_value(), kinds])))
}

/// `Ikra.__words_of(counted, text, frozen, most)`: each word once, in the order of first places, and how often it
/// occurs, as `[words, counts]`. With `most`, so many of the most frequent words, in their order. The words are
/// `frozen`, or not. The text is that in which they were counted.
///
/// # Errors
/// ArgumentError for another text; NoMemoryError; what interrupts raise.
pub fn taken(
    ruby: &Ruby,
    Counted(found): &Counted,
    text: RString,
    frozen: bool,
    most: Option<usize>,
) -> Result<RArray, Error> {
    Clock::start(ruby).measure(Phase::Unpack, || {
        let frequent = most.map(|most| words::most_frequent(found, most));
        let some = frequent.as_ref().unwrap_or(found);
        let encoding = text.enc_get();
        let (mut words, mut counts) = (Filling::new(ruby, some.len()), Filling::new(ruby, some.len()));
        for word in some {
            // Interrupts may run Ruby code, so the bytes are looked up each time.
            let bytes =
                heap::bytes(text.as_raw()).get(word.first as usize..).and_then(|at| at.get(..word.len as usize));
            let bytes = bytes.ok_or_else(|| Error::new(ruby.exception_arg_error(), "the text has changed"))?;
            let string = ruby.enc_str_new(bytes, encoding);
            if frozen {
                string.freeze();
            }
            words.push(string.as_value())?;
            counts.push(ruby.into_value(word.count))?;
        }
        Ok(ruby.ary_new_from_values(&[words.done()?, counts.done()?]))
    })
}
