//! Elements of a list as keys.
//!
//! Here: [`Listed`], by which tables read keys where Ruby has them, without a copy of all; [`grouped`], which feeds
//! them to tables stretch by stretch. Not here: the tables (the core's `collective/table.rs`), what becomes of the
//! groups ([`super::grouping`], [`super::combining`]), and keys that a kernel emitted.
//!
//! Invariant: tables only take keys that they compare as Ruby's Hash does. If one key is of another kind, Ruby's own
//! Hash groups all. Nothing here keeps the address of an object while Ruby code may run.

use crate::report::profile::{Clock, Phase};
use crate::ruby::errors;
use crate::ruby::gvl::Polls;
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::workers;
use crate::section::collect::{countable, float};
use ikra_core::backend::CancelToken;
use ikra_core::backend::collective::Workers;
use ikra_core::backend::collective::groups::{float_word, seed};
use ikra_core::backend::collective::monitor::{self, Engine};
use ikra_core::backend::collective::table::{Fed, Gathering, Keys, Plan, Seed};
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, Ruby};

/// The kind of the keys of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Integers, Symbols, true, false and nil that are no objects on the heap.
    Immediate,
    Float,
    /// Strings in the encoding of this number.
    Text(i32),
    /// All of these.
    Mixed(i32),
}

/// The number of UTF-8.
pub(super) const UTF8: i32 = 1;

impl Kind {
    /// What the first element shows. None: tables do not take it.
    fn of(raw: &[Raw]) -> Option<Kind> {
        let first = *raw.first()?;
        match heap::see(first) {
            Seen::Float(_) => Some(Kind::Float),
            Seen::Str => heap::plain_encoding(first).map(Kind::Text),
            _ => is_itself(first).then_some(Kind::Immediate),
        }
    }

    /// The kind that takes others, too.
    fn wider(self, raw: &[Raw]) -> Option<Kind> {
        match self {
            Kind::Mixed(_) => None,
            Kind::Text(encoding) => Some(Kind::Mixed(encoding)),
            _ => Some(Kind::Mixed(raw.iter().find_map(|raw| heap::plain_encoding(*raw)).unwrap_or(UTF8))),
        }
    }

    /// Whether some may be Strings.
    pub fn has_strings(self) -> bool {
        matches!(self, Kind::Text(_) | Kind::Mixed(_))
    }
}

/// Elements of a list as keys. They must not be used after a stretch.
struct Listed<'a> {
    raw: &'a [Raw],
    kind: Kind,
}

impl Listed<'_> {
    /// The bytes of a String that others equal if their bytes are equal.
    #[inline]
    fn text<'a>(&self, raw: Raw) -> Option<&'a [u8]> {
        let (Kind::Text(encoding) | Kind::Mixed(encoding)) = self.kind else { return None };
        (heap::plain_encoding(raw) == Some(encoding)).then(|| heap::bytes(raw))
    }

    /// Whether equal words may be those of different keys.
    fn must_compare(&self, word: u64) -> bool {
        self.kind.has_strings() && !Seed::is_whole(word)
    }

    /// The word of what is no such String.
    fn other(&self, seed: &Seed, raw: Raw) -> Option<u64> {
        if !matches!(self.kind, Kind::Mixed(_)) {
            return None;
        }
        // Words of Strings describe them wholly, or are hashes with such upper bits.
        let hashed = |word| Some(seed.hash(word) | 0xff << 56);
        if is_itself(raw) { hashed(raw) } else { float(raw).and_then(|x| hashed(float_word(x))) }
    }
}

/// Whether bytes are equal. Most keys are short.
#[inline]
fn equal(one: &[u8], other: &[u8]) -> bool {
    let ends = |bytes: &[u8]| Some((*bytes.first_chunk::<8>()?, *bytes.last_chunk::<8>()?));
    one.len() == other.len() && if one.len() <= 16 && one.len() >= 8 { ends(one) == ends(other) } else { one == other }
}

/// Whether a value is equal only to itself, and is wholly described by its word.
fn is_itself(raw: Raw) -> bool {
    match heap::see(raw) {
        Seen::Nil | Seen::False | Seen::True => true,
        Seen::Int(_) => heap::is_fixnum(raw),
        // Immediate Symbols end in these bits.
        Seen::Symbol => raw & 0xff == 0x0c,
        _ => false,
    }
}

/// The word of an immediate value. That of an Integer is its number, so that neighbours have neighbouring words.
#[inline]
fn immediate(raw: Raw) -> Option<u64> {
    if heap::is_fixnum(raw) {
        return Some(heap::fixnum(raw) as u64);
    }
    // no immediate Integer is so great
    const OTHERS: u64 = 1 << 62;
    (is_itself(raw) && raw < OTHERS).then_some(raw | OTHERS)
}

impl Keys for Listed<'_> {
    fn words(&self, first: usize, out: &mut [u64]) -> bool {
        let Some(raw) = self.raw.get(first..first + out.len()) else { return false };
        fn all(raw: &[Raw], out: &mut [u64], word: impl Fn(Raw) -> Option<u64>) -> bool {
            raw.iter().zip(out).all(|(raw, out)| word(*raw).map(|word| *out = word).is_some())
        }
        let seed = seed();
        match self.kind {
            Kind::Immediate => all(raw, out, immediate),
            Kind::Float => all(raw, out, |raw| float(raw).map(float_word)),
            Kind::Text(_) | Kind::Mixed(_) => {
                // Objects of the next call are loaded while those of this one are read.
                let next = self.raw.get(first + out.len()..).unwrap_or_default();
                let mut next = next.iter().filter(|raw| !heap::is_immediate(**raw));
                raw.iter().zip(out).all(|(raw, out)| {
                    next.next().copied().into_iter().for_each(heap::prefetch);
                    let word = self.text(*raw).map(|text| seed.word(text)).or_else(|| self.other(seed, *raw));
                    word.map(|word| *out = word).is_some()
                })
            }
        }
    }

    fn same(&self, word: u64, one: usize, other: usize) -> bool {
        if !self.must_compare(word) {
            return true;
        }
        let (Some(one), Some(other)) = (self.raw.get(one), self.raw.get(other)) else { return false };
        if one == other {
            return true;
        }
        match (self.text(*one), self.text(*other)) {
            (Some(one), Some(other)) => equal(one, other),
            (None, None) => float(*one).map(float_word).is_some_and(|word| float(*other).map(float_word) == Some(word)),
            _ => false,
        }
    }

    fn are_far(&self) -> bool {
        self.kind.has_strings()
    }

    fn ahead(&self, word: u64, element: usize) {
        if self.must_compare(word)
            && let Some(raw) = self.raw.get(element)
            && !heap::is_immediate(*raw)
        {
            heap::prefetch(*raw);
        }
    }
}

/// Elements that are grouped between two looks for interrupts. They take some 10 ms.
const STRETCH: usize = 1 << 19;

/// Groups keys on Ruby's heap, which `keys` finds anew for each stretch. None: a key is of another kind.
///
/// # Errors
/// What interrupts raise.
pub(super) fn held<K: Keys, G: Gathering>(
    ruby: &Ruby,
    count: usize,
    keys: impl Fn() -> Option<K>,
    mut gathering: G,
) -> Result<Option<G::Found>, Error> {
    let (polls, cancel) = (Polls::new(), CancelToken::default());
    let on = Workers { threads: &workers::THREADS, cancel: &cancel };
    for first in (0..count).step_by(STRETCH) {
        polls.look(ruby)?;
        let Some(keys) = keys() else { return Ok(None) };
        let fed = gathering.feed(on, &keys, first..count.min(first + STRETCH));
        if fed.map_err(|e| errors::core(ruby, e))? != Fed::Done {
            return Ok(None);
        }
    }
    let Some(keys) = keys() else { return Ok(None) };
    gathering.finish(on, &keys).map_err(|e| errors::core(ruby, e))
}

/// With fewer elements Ruby's own methods are faster.
const MIN_ELEMENTS: usize = 512;
/// With fewer elements, and at least half as many keys, they are, too.
const MIN_DIFFERING: usize = 1 << 15;

/// When tables group the elements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// Where they can.
    Always,
    /// Where they are faster than Ruby's `group_by`, which makes an Array for each group.
    FasterThanGroups,
    /// Where they are faster than Ruby's `uniq`.
    FasterThanUniq,
    /// Where they are faster than Ruby's `tally`. Only Ruby makes a Hash of the very Strings. With many of them, that
    /// takes most of the time.
    FasterThanTally,
}

impl When {
    /// Whether they do. `many`: there seem to be at least half as many keys as elements.
    fn pays(self, kind: Kind, count: usize, many: impl FnOnce() -> bool) -> bool {
        let rarely = match self {
            When::Always => return true,
            When::FasterThanGroups => false,
            When::FasterThanUniq => count < MIN_DIFFERING,
            When::FasterThanTally => count < MIN_DIFFERING || kind.has_strings(),
        };
        !(rarely && many())
    }
}

/// Groups the elements of a list by themselves, by what `gathering` makes for a plan, a number of threads, and a number
/// of elements. Gives their kind, too. None: Ruby must group them, or is faster.
///
/// # Errors
/// What interrupts raise.
pub(super) fn grouped<G: Gathering>(
    ruby: &Ruby,
    clock: &mut Clock,
    list: RArray,
    when: When,
    gathering: impl Fn(Plan, usize, usize) -> G,
) -> Result<Option<(Kind, G::Found)>, Error> {
    let count = list.len();
    if when != When::Always && count < MIN_ELEMENTS {
        return Ok(None);
    }
    let mut next = Kind::of(heap::elements(list.as_raw())).filter(|_| countable(count));
    while let Some(kind) = next {
        let keys = || Listed { raw: heap::elements(list.as_raw()), kind };
        let sample = monitor::look(seed(), &keys(), count, kind == Kind::Immediate);
        let many = || if sample.seen > 0 { sample.many_differ() } else { monitor::glance(&keys(), count) };
        if !when.pays(kind, count, many) {
            return Ok(None);
        }
        let gathering = gathering(sample.plan(Engine::Auto), workers::THREADS.count(), count);
        if let Some(found) = clock.measure(Phase::Kernel, || held(ruby, count, || Some(keys()), gathering))? {
            return Ok(Some((kind, found)));
        }
        next = kind.wider(heap::elements(list.as_raw()));
    }
    Ok(None)
}
