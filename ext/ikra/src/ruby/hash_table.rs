//! Reads the tables of Ruby's Hashes directly.
//!
//! Here: the value of a Hash at a constant key ([`KeyReader`]), and whether kernels know what a missing key gives
//! ([`Fit`]). Not here: Hashes as arrays ([`crate::world::hashes`]).
//!
//! # Safety
//!
//! The chapter of [`crate::ruby::heap`] holds here, too: a live holder, the GVL, and no allocation meanwhile. Workers
//! call [`KeyReader::peek`] and [`prefetch_table`] only.
//!
//! This file assumes the layout of `RHash` in 3.1 to 3.4:
//!
//! * Up to eight pairs are in an array, whose bound is in the flags. The other tables are `st_table`.
//! * Until 3.2 the Hash has a pointer to either, and its default follows. From 3.3 on, either follows the default.
//! * A deleted pair has the key undef in an array, and the greatest hash in an `st_table`.
//!
//! [`init`] compares what is read so with what Ruby gives, for Hashes of all of these forms. Where they differ, and in
//! any other Ruby, [`is_known`] is false, and nothing else here is called.
#![allow(unsafe_code, reason = "this file is one of those that read Ruby's heap; see its safety chapter")]

use crate::ruby::heap::{self, FALSE, NIL, Raw, TRUE, UNDEF};
use ikra_core::memory::ahead;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Ruby, Value};
use once_cell::sync::OnceCell;

const VERSION: (u32, u32) = (rb_sys::RUBY_API_VERSION_MAJOR, rb_sys::RUBY_API_VERSION_MINOR);
const KNOWN_VERSION: bool = VERSION.0 == 3 && VERSION.1 >= 1 && VERSION.1 <= 4;
/// Whether the table is in the Hash itself.
const EMBEDDED: bool = VERSION.1 >= 3;

/// The default is a Proc.
const PROC_DEFAULT: usize = 1 << 14;
/// The table is an `st_table`.
const IS_ST: usize = 1 << 15;
const BOUND_SHIFT: usize = 20;
const BOUND_MASK: usize = 0xf;
const MAX_PAIRS: usize = 8;
/// The words before the pairs of an array that is embedded: flags, class, default and hints.
const EMBEDDED_PAIRS: usize = 4;
/// The word of the default, and that of the table or its pointer.
const DEFAULT: usize = if EMBEDDED { 2 } else { 3 };
const TABLE: usize = if EMBEDDED { 3 } else { 2 };
/// The hash of a deleted entry of an `st_table`.
const DELETED: usize = usize::MAX;
/// The most entries that are searched one after the other.
const MAX_SEARCHED: usize = 64;

/// What [`init`] found out.
struct Layout {
    /// The type of an `st_table` whose keys are not compared by identity.
    st_type: usize,
}

static LAYOUT: OnceCell<Option<Layout>> = OnceCell::new();

/// The `st_table` of st.h.
#[repr(C)]
struct Table {
    powers: u64,
    kind: usize,
    count: usize,
    bins: usize,
    start: usize,
    bound: usize,
    entries: *const Entry,
}

#[repr(C)]
struct Entry {
    hash: usize,
    key: Raw,
    value: Raw,
}

#[repr(C)]
struct Pair {
    key: Raw,
    value: Raw,
}

enum Pairs<'a> {
    Few(&'a [Pair]),
    Many(&'a Table),
}

#[inline]
fn word(hash: Raw, at: usize) -> usize {
    // SAFETY: `hash` is a live Hash (chapter), which has at least five words in the known Rubies; see `pairs`.
    unsafe { *(hash as *const usize).add(at) }
}

#[inline]
fn pairs<'a>(hash: Raw) -> Pairs<'a> {
    let flags = word(hash, 0);
    // SAFETY: the flags say which table it is, and `init` has tested that they do. The table stays as it is as long as
    // no Ruby code runs and nothing allocates. An array of pairs may be missing only where its bound is 0.
    unsafe {
        if flags & IS_ST != 0 {
            let at = if EMBEDDED { (hash as *const usize).add(TABLE) } else { word(hash, TABLE) as *const usize };
            return Pairs::Many(&*at.cast());
        }
        let bound = (flags >> BOUND_SHIFT & BOUND_MASK).min(MAX_PAIRS);
        let at = if EMBEDDED { (hash as *const usize).add(EMBEDDED_PAIRS) } else { word(hash, TABLE) as *const usize };
        Pairs::Few(if bound == 0 { &[] } else { std::slice::from_raw_parts(at.cast(), bound) })
    }
}

impl Table {
    #[inline]
    fn entries(&self) -> &[Entry] {
        // SAFETY: entries from 0 to `bound` were written, and those before `start` are deleted.
        let all: &[Entry] =
            unsafe { if self.bound == 0 { &[] } else { std::slice::from_raw_parts(self.entries, self.bound) } };
        all.get(self.start..).unwrap_or(&[])
    }
}

/// Whether this file knows the layout of this Ruby's Hashes.
pub fn is_known() -> bool {
    LAYOUT.get().is_some_and(Option::is_some)
}

/// What a Hash is to kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// A missing key gives this value.
    Default(Raw),
    HasProc,
    ByIdentity,
}

/// What a Hash is. Only where the layout is known.
#[inline]
pub fn fit(hash: Raw) -> Fit {
    let layout = LAYOUT.get().and_then(Option::as_ref);
    match pairs(hash) {
        Pairs::Many(table) if layout.is_none_or(|layout| table.kind != layout.st_type) => Fit::ByIdentity,
        _ if word(hash, 0) & PROC_DEFAULT != 0 => Fit::HasProc,
        _ => Fit::Default(word(hash, DEFAULT) as Raw),
    }
}

/// Prefetches the table of a Hash, whose own memory should be in the cache already.
#[inline]
pub fn prefetch_table(hash: Raw) {
    if !EMBEDDED {
        heap::prefetch(word(hash, TABLE) as Raw);
    } else {
        // The pairs begin in the first line.
        ahead::to_read((hash as *const Raw).wrapping_add(8));
    }
}

/// Reads the values of Hashes at a constant key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyReader {
    /// A frozen String that Ruby has interned, or a Symbol. It is kept for good.
    key: Raw,
    is_text: bool,
    /// Whether the presence of the key is asked, and not its value.
    present: bool,
    /// Where the key was found last.
    last: u32,
}

impl KeyReader {
    /// A reader for a key, which is a Symbol, or a String of ASCII characters that Ruby has interned.
    pub fn new(key: Raw, present: bool) -> Self {
        Self { key, is_text: heap::see(key) == heap::Seen::Str, present, last: 0 }
    }

    /// The value of a Hash, for a worker. None where only [`KeyReader::get`] can find it.
    #[inline]
    pub fn peek(&self, hash: Raw) -> Option<Raw> {
        let last = self.last as usize;
        match pairs(hash) {
            Pairs::Few(pairs) => {
                let at = match pairs.get(last) {
                    Some(pair) if pair.key == self.key => Some(last),
                    _ => self.search(pairs.iter().map(|pair| (pair.key != UNDEF).then_some(pair.key)))?,
                };
                self.found(hash, at.map(|at| pairs[at].value))
            }
            Pairs::Many(table) => {
                if table.kind != LAYOUT.get()?.as_ref()?.st_type {
                    return Some(UNDEF);
                }
                let entries = table.entries();
                let at = match entries.get(last) {
                    Some(entry) if entry.key == self.key && entry.hash != DELETED => Some(last),
                    _ if entries.len() > MAX_SEARCHED => return None,
                    _ => self.search(entries.iter().map(|e| (e.hash != DELETED).then_some(e.key)))?,
                };
                self.found(hash, at.map(|at| entries[at].value))
            }
        }
    }

    /// The value of a Hash, on the Ruby thread. Undef where kernels cannot know it.
    #[inline]
    pub fn get(&mut self, hash: Raw) -> Raw {
        self.learn(hash);
        self.peek(hash).unwrap_or_else(|| self.look_up(hash))
    }

    /// Notes where the key of a Hash is, if it is not where it was last.
    #[inline]
    fn learn(&mut self, hash: Raw) {
        let last = self.last as usize;
        let at = match pairs(hash) {
            Pairs::Few(pairs) if pairs.get(last).is_none_or(|pair| pair.key != self.key) => {
                pairs.iter().position(|pair| pair.key == self.key)
            }
            Pairs::Many(table) if table.entries().get(last).is_none_or(|entry| entry.key != self.key) => {
                table.entries().iter().take(MAX_SEARCHED).position(|entry| entry.key == self.key)
            }
            _ => None,
        };
        self.last = at.map_or(self.last, |at| at as u32);
    }

    #[cold]
    fn look_up(&self, hash: Raw) -> Raw {
        if fit(hash) == Fit::ByIdentity {
            return UNDEF;
        }
        // SAFETY: a live Hash (chapter) and a key that is kept. A Symbol is compared by identity, and a String by its
        // bytes, for which Ruby calls at most `eql?` of the key: that is not redefined where this reader is made. The
        // function neither allocates nor changes the Hash.
        let value = unsafe { rb_sys::rb_hash_lookup2(hash, self.key, UNDEF) };
        self.found(hash, (value != UNDEF).then_some(value)).unwrap_or(UNDEF)
    }

    /// What to give for the value at the key.
    #[inline]
    fn found(&self, hash: Raw, value: Option<Raw>) -> Option<Raw> {
        Some(match value {
            Some(_) if self.present => TRUE,
            None if self.present => FALSE,
            Some(value) => value,
            None => match fit(hash) {
                Fit::Default(default) => default,
                Fit::HasProc | Fit::ByIdentity => UNDEF,
            },
        })
    }

    /// The position of the key among others. The outer None: only Ruby can tell.
    fn search(&self, keys: impl Iterator<Item = Option<Raw>> + Clone) -> Option<Option<usize>> {
        if let Some(at) = keys.clone().position(|key| key == Some(self.key)) {
            return Some(Some(at));
        }
        if !self.is_text {
            return Some(None);
        }
        let bytes = heap::bytes(self.key);
        for (at, key) in keys.enumerate() {
            let Some(key) = key.filter(|key| !heap::is_immediate(*key)) else { continue };
            match heap::see(key) {
                // Of another class, or in an encoding where the same bytes may be other characters.
                heap::Seen::Str if heap::bytes(key) == bytes => {
                    let same = heap::class_word(key) == heap::class_word(self.key) && heap::encoding(key).is_some();
                    return same.then_some(Some(at));
                }
                _ => {}
            }
        }
        Some(None)
    }
}

/// Compares what this file reads with what Ruby gives.
///
/// # Errors
/// What Ruby raises.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    let layout = if KNOWN_VERSION { test(ruby)? } else { None };
    let _ = LAYOUT.set(layout);
    Ok(())
}

/// The layout, if this file reads the same from examples as Ruby does.
fn test(ruby: &Ruby) -> Result<Option<Layout>, Error> {
    let examples = "\
        many = (0...20).to_h { |i| [\"k#{i}\", i] }\n\
        fewer = many.dup.tap { |h| h.delete('k0'); h.delete('k9') }\n\
        few = { 'a' => 1, :b => 2.5, 'c' => nil, 'k0' => :x }\n\
        less = few.dup.tap { |h| h.delete('a'); h.delete('c') }\n\
        full = (0...8).to_h { |i| [\"k#{i}\", i] }\n\
        [many, fewer, few, less, full, {}, few.dup.clear, few.dup.tap { |h| h.default = 7 },\n\
         many.dup.tap { |h| h.default = 7 }, Hash.new { 1 }, few.dup.compare_by_identity,\n\
         {}.compare_by_identity, many.dup.compare_by_identity]";
    let examples: magnus::RArray = ruby.eval(examples)?;
    let kind = |hash: Raw| match pairs(hash) {
        Pairs::Many(table) => Some(table.kind),
        Pairs::Few(_) => None,
    };
    let example = |at: usize| -> Result<Raw, Error> { Ok(examples.entry::<Value>(at as isize)?.as_raw()) };
    // A table is read only if the flags say what kind it is, which these must say of Hashes of these sizes.
    let sizes = [20, 18, 4, 2, 8, 0, 0, 4, 20, 0];
    let is_st = |at: usize| example(at).map(|hash| word(hash, 0) & IS_ST != 0);
    for (at, size) in sizes.iter().enumerate() {
        if is_st(at)? != (*size > MAX_PAIRS) {
            return Ok(None);
        }
    }
    let Some(st_type) = kind(example(0)?) else { return Ok(None) };
    for (at, size) in sizes.iter().enumerate() {
        let hash = example(at)?;
        let read: Vec<(Raw, Raw)> = match pairs(hash) {
            Pairs::Few(pairs) => pairs.iter().filter(|p| p.key != UNDEF).map(|p| (p.key, p.value)).collect(),
            Pairs::Many(table) => {
                table.entries().iter().filter(|e| e.hash != DELETED).map(|e| (e.key, e.value)).collect()
            }
        };
        let list: Value = examples.entry::<Value>(at as isize)?.funcall("to_a", ())?;
        let list = magnus::RArray::try_convert(list)?;
        if read.len() != *size || list.len() != *size || kind(hash).is_some_and(|kind| kind != st_type) {
            return Ok(None);
        }
        for (i, pair) in read.iter().enumerate() {
            let given = list.entry::<magnus::RArray>(i as isize)?;
            if given.entry::<Value>(0)?.as_raw() != pair.0 || given.entry::<Value>(1)?.as_raw() != pair.1 {
                return Ok(None);
            }
        }
        let default = ruby.integer_from_i64(7).as_raw();
        let has_default = at == 7 || at == 8;
        let has_proc = word(hash, 0) & PROC_DEFAULT != 0;
        if has_proc != (at == 9) || !has_proc && word(hash, DEFAULT) as Raw != if has_default { default } else { NIL } {
            return Ok(None);
        }
    }
    for at in sizes.len()..examples.len() {
        if !is_st(at)? || kind(example(at)?) == Some(st_type) {
            return Ok(None);
        }
    }
    Ok(Some(Layout { st_type }))
}
