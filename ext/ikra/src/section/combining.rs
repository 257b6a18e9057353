//! Groups that are combined while their keys are inserted into tables.
//!
//! Here: [`PairKeys`], the keys that a kernel emitted; [`tallied`], and [`combined`], what the values of each key are
//! combined to. Not here: keys that are elements of a list ([`super::listed`]), the tables (the core's
//! `collective/table.rs`), and groups whose values are needed one by one ([`super::grouping`]).
//!
//! Invariant: tables only take keys that they compare as Ruby does. If one key is of another kind, Ruby's own Hash
//! groups all.

use crate::marshal::unpack::{KeyWords, Pairs, Unpacker};
use crate::options::Combine;
use crate::report::profile::{Clock, Phase, Step};
use crate::ruby::errors;
use crate::ruby::gvl::Polls;
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::list;
use crate::ruby::workers;
use crate::section::collect::{Filling, at, clock_of, keeping_gvl, picked, working};
use crate::section::listed::{self, UTF8, When, held};
use crate::section::sums::unrounded;
use ikra_core::backend::collective::Workers;
use ikra_core::backend::collective::emitted::Emitted;
use ikra_core::backend::collective::exact_sum::ExactSum;
use ikra_core::backend::collective::groups::{self, Grouped, Members, seed};
use ikra_core::backend::collective::monitor::{self, Engine, Sample};
use ikra_core::backend::collective::table::{self, Count, Each, Fold, Folding, Groups, Keys, Plan, Seed, Sum};
use ikra_core::layout::schema::GroupKeys;
use ikra_core::memory::{ahead, room};
use ikra_core::types::keys::{KeyCode, codes};
use ikra_core::types::{Encoding, Repr, StrWord};
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RHash, Ruby, Value};

/// The bytes of a String in UTF-8, which other such Strings equal if their bytes are equal.
fn text<'a>(raw: Raw) -> Option<&'a [u8]> {
    (heap::plain_encoding(raw) == Some(UTF8)).then(|| heap::bytes(raw))
}

/// Keys that a kernel emitted.
pub(super) struct PairKeys<'a> {
    /// The row of each pair.
    rows: &'a [u32],
    words: KeyWords<'a>,
}

impl<'a> PairKeys<'a> {
    /// None where Ruby's Hash must compare them.
    pub fn of(pairs: &'a Pairs<'_>) -> Option<Self> {
        Some(Self { rows: &pairs.rows, words: pairs.key_words()? })
    }

    fn text(&self, pair: usize) -> Option<&[u8]> {
        match &self.words {
            KeyWords::Texts(words, bytes) => {
                let word = StrWord(words[self.rows[pair] as usize]);
                let known = matches!(word.encoding(), Encoding::Utf8 | Encoding::Ascii);
                let from = word.offset() as usize;
                if known { bytes.get(from..from + word.length()) } else { None }
            }
            KeyWords::Strings(numbers, strings) => text(strings[numbers[pair] as usize]),
            _ => None,
        }
    }

    /// Whether they are on Ruby's heap, which only a thread with the GVL may read.
    fn are_rubys(&self) -> bool {
        matches!(self.words, KeyWords::Strings(..))
    }

    fn kind(&self) -> &'static str {
        match self.words {
            KeyWords::Integers(_) => kind_of(Repr::Int),
            KeyWords::Words(_) => kind_of(Repr::Sym),
            KeyWords::Floats(_) => kind_of(Repr::Float),
            _ => kind_of(Repr::Str),
        }
    }

    fn look(&self) -> Sample {
        monitor::look(seed(), self, self.rows.len(), matches!(self.words, KeyWords::Integers(_)))
    }
}

impl Keys for PairKeys<'_> {
    fn words(&self, first: usize, out: &mut [u64]) -> bool {
        let rows = &self.rows[first..first + out.len()];
        match &self.words {
            KeyWords::Integers(words) | KeyWords::Words(words) => {
                out.iter_mut().zip(rows).for_each(|(out, row)| *out = words[*row as usize]);
                true
            }
            KeyWords::Floats(words) => out.iter_mut().zip(rows).all(|(out, row)| {
                let key = f64::from_bits(words[*row as usize]);
                *out = groups::float_word(key);
                // A NaN is equal to no other.
                !key.is_nan()
            }),
            KeyWords::Texts(..) | KeyWords::Strings(..) => {
                if let KeyWords::Strings(numbers, strings) = &self.words {
                    heap::prefetch_all(numbers[first..first + out.len()].iter().map(|at| strings[*at as usize]));
                }
                let word = |pair| self.text(pair).map(|text| seed().word(text));
                out.iter_mut().zip(first..).all(|(out, pair)| word(pair).map(|word| *out = word).is_some())
            }
        }
    }

    fn same(&self, word: u64, one: usize, other: usize) -> bool {
        match self.words {
            KeyWords::Texts(..) | KeyWords::Strings(..) => {
                Seed::is_whole(word) || self.text(one).is_some_and(|text| self.text(other) == Some(text))
            }
            _ => true,
        }
    }

    fn are_far(&self) -> bool {
        matches!(self.words, KeyWords::Texts(..) | KeyWords::Strings(..))
    }

    fn ahead(&self, word: u64, element: usize) {
        match &self.words {
            _ if Seed::is_whole(word) => {}
            KeyWords::Texts(words, bytes) => {
                let from = StrWord(words[self.rows[element] as usize]).offset() as usize;
                ahead::to_read(bytes.as_ptr().wrapping_add(from));
            }
            KeyWords::Strings(numbers, strings) => heap::prefetch(strings[numbers[element] as usize]),
            _ => {}
        }
    }
}

/// `Ikra.__tallied(list)`: a Hash from each element to the number of elements equal to it, as `tally` makes it. nil
/// where the caller must use Ruby's method.
///
/// # Errors
/// What interrupts raise.
pub fn tallied(ruby: &Ruby, list: RArray) -> Result<Option<RHash>, Error> {
    let mut clock = clock_of(ruby, "grouping", list)?;
    let count = |plan, threads, elements| Folding::new(seed(), plan, threads, elements, &Count);
    let Some((kind, found)) = listed::grouped(ruby, &mut clock, list, When::FasterThanTally, count)? else {
        clock.forget();
        return Ok(None);
    };
    clock.measure(Phase::Unpack, || {
        let keys = picked(ruby, list, found.firsts.iter().copied())?;
        if kind.has_strings() {
            return with_very_keys(keys, found.counts.iter().map(|count| ruby.into_value(*count))).map(Some);
        }
        paired(ruby, keys, counts(ruby, &found.counts)?).map(Some)
    })
}

/// A Hash of keys that differ, and of how often each occurs. It has the very Strings, which Hash#[]= would copy.
fn with_very_keys(keys: RArray, counts: impl Iterator<Item = Value>) -> Result<RHash, Error> {
    let (tally, polls): (RHash, _) = (keys.funcall("tally", ())?, Polls::new());
    for (key, count) in counts.enumerate().filter(|(_, count)| heap::see(count.as_raw()) != Seen::Int(1)) {
        polls.look(&Ruby::get_with(keys))?;
        tally.aset(at(keys, key), count)?;
    }
    Ok(tally)
}

/// `Ikra.__counted(keys, counts)`: a Hash of keys that differ, and of how often each occurs, as `tally` makes it.
///
/// # Errors
/// What `hash` and `eql?` of keys raise; NoMemoryError; what interrupts raise.
pub fn counted(ruby: &Ruby, keys: RArray, counts: RArray) -> Result<RHash, Error> {
    if !heap::elements(keys.as_raw()).iter().any(|key| heap::see(*key) == Seen::Str) {
        return paired(ruby, keys, counts);
    }
    with_very_keys(keys, (0..counts.len()).map(|group| at(counts, group)))
}

/// A list of Integers. None where one is None.
fn integers(ruby: &Ruby, numbers: impl ExactSizeIterator<Item = Option<i64>>) -> Result<Option<RArray>, Error> {
    let mut out = Filling::new(ruby, numbers.len());
    for number in numbers {
        let Some(number) = number else { return Ok(None) };
        out.push(ruby.into_value(number))?;
    }
    out.done().map(Some)
}

/// A list of how often keys occur.
pub(super) fn counts(ruby: &Ruby, counts: &[u32]) -> Result<RArray, Error> {
    let mut out = Filling::new(ruby, counts.len());
    for count in counts {
        out.push(ruby.into_value(*count))?;
    }
    out.done()
}

/// Totals of Integers, of any size.
fn totals(ruby: &Ruby, totals: &[i128]) -> Result<RArray, Error> {
    let mut out = Filling::new(ruby, totals.len());
    for total in totals {
        // most have a short way
        out.push(match i64::try_from(*total) {
            Ok(total) => ruby.into_value(total),
            Err(_) => ruby.into_value(*total),
        })?;
    }
    out.done()
}

/// Sums of Floats that are not rounded.
fn partial_sums(ruby: &Ruby, sums: impl ExactSizeIterator<Item = Vec<f64>>) -> Result<RArray, Error> {
    let mut out = Filling::new(ruby, sums.len());
    for parts in sums {
        out.push(unrounded(ruby, &parts)?)?;
    }
    out.done()
}

fn floats(ruby: &Ruby, numbers: Vec<f64>) -> Result<RArray, Error> {
    let mut out = Filling::new(ruby, numbers.len());
    for number in numbers {
        out.push(ruby.into_value(number))?;
    }
    out.done()
}

/// `Ikra.__paired(keys, values)`: a Hash of them, as `Hash#[]=` makes it.
///
/// # Errors
/// What `hash` and `eql?` of keys raise; NoMemoryError; what interrupts raise.
pub fn paired(ruby: &Ruby, keys: RArray, values: RArray) -> Result<RHash, Error> {
    let mut both = Filling::new(ruby, 2 * keys.len());
    for index in 0..keys.len() {
        both.push(at(keys, index))?;
        both.push(at(values, index))?;
    }
    list::hash(ruby, both.done()?)
}

/// Each key once, in the order of first pairs, and what the values of its pairs combine to. None where values must
/// stand group by group first.
///
/// # Errors
/// ArgumentError where an engine was asked for that cannot do this; IntegerOverflow for a sum beyond 64 bits; rows that
/// mean nothing; what interrupts raise.
pub(super) fn combined(
    unpacker: &Unpacker<'_>,
    pairs: &Pairs<'_>,
    how: Combine,
    engine: Engine,
) -> Result<Option<(RArray, Value)>, Error> {
    if engine == Engine::Group {
        return Ok(None);
    }
    let ruby = unpacker.ruby;
    let unable = |why: &str| match engine {
        Engine::Auto => Ok(None),
        _ => {
            let told = format!("engine: :{} cannot run this: {why}; without engine:, Ikra chooses one", engine.name());
            Err(Error::new(ruby.exception_arg_error(), told))
        }
    };
    let Some(keys) = PairKeys::of(pairs) else { return unable("only Ruby's own Hash can compare these keys") };
    let (count, sample) = (pairs.rows.len(), keys.look());
    if engine == Engine::Direct && sample.cells().is_none() {
        return unable("it needs keys that are Integers in a small range");
    }
    let (integers_of, floats_of) = (pairs.integers(pairs.value), pairs.floats(pairs.value));
    let rows = &pairs.rows[..];
    let first_rows = |firsts: &[u32]| room::collect(firsts.iter().map(|pair| rows[*pair as usize]));
    let run = Run { ruby, keys: &keys, plan: sample.plan(engine), count };
    let value = |pair: usize| integers_of.map_or(0, |all| all[rows[pair] as usize] as i64);
    let each = |combine: fn(i64, i64) -> i64| {
        let found = run.groups(&Each(value, combine))?;
        Ok::<_, Error>(found.map(|found| (found.firsts, found.states)))
    };
    let known = match (how, integers_of, floats_of) {
        (Combine::Count, ..) => match run.groups(&Count)? {
            Some(found) => Some((Some(counts(ruby, &found.counts)?), found.firsts)),
            None => None,
        },
        (Combine::First, ..) => match run.groups(&Count)? {
            Some(found) => Some((Some(pairs.values(pairs.value, &first_rows(&found.firsts))?), found.firsts)),
            None => None,
        },
        (Combine::Sum, Some(_), _) => match run.groups(&Sum(value))? {
            Some(found) => {
                let sums = found.states.iter().map(|sum| i64::try_from(*sum).ok());
                let sums = integers(ruby, sums)?.ok_or_else(|| errors::group_overflow(ruby))?;
                Some((Some(sums), found.firsts))
            }
            None => None,
        },
        (Combine::Total, Some(_), _) => match run.groups(&Sum(value))? {
            Some(found) => Some((Some(totals(ruby, &found.states)?), found.firsts)),
            None => None,
        },
        (Combine::Sum | Combine::Total, _, Some(of)) if engine == Engine::Auto => match run.numbered()? {
            Some(grouped) => {
                let value = |pair: u32| f64::from_bits(of[rows[pair as usize] as usize]);
                let sums = if how == Combine::Sum {
                    floats(ruby, exact_sums(ruby, &grouped, value, ExactSum::rounded)?)?
                } else {
                    partial_sums(ruby, exact_sums(ruby, &grouped, value, ExactSum::parts)?.into_iter())?
                };
                Some((Some(sums), grouped.firsts))
            }
            None => None,
        },
        (Combine::Min | Combine::Max | Combine::And | Combine::Or, Some(_), _) => {
            let combine: fn(i64, i64) -> i64 = match how {
                Combine::Min => i64::min,
                Combine::Max => i64::max,
                Combine::And => |a, b| a & b,
                _ => |a, b| a | b,
            };
            match each(combine)? {
                Some((firsts, states)) => Some((integers(ruby, states.iter().map(|state| Some(*state)))?, firsts)),
                None => None,
            }
        }
        _ => return unable("it needs values that are Integers"),
    };
    let Some((Some(values), firsts)) = known else { return unable("only Ruby's own Hash can compare these keys") };
    Clock::start(ruby).step(ruby, || {
        let engine = if engine == Engine::Auto { sample.choice() } else { engine };
        let why = format!("engine :{}, {} keys found: {sample}", engine.name(), firsts.len());
        Step { what: "combining", elements: count, kind: keys.kind(), backend: "cpu", why }
    })?;
    Ok(Some((pairs.values(pairs.key, &first_rows(&firsts))?, values.as_value())))
}

/// Makes one group of those that a kernel made on a backend for equal keys.
///
/// # Errors
/// `Device` when the system cannot start threads.
pub(super) fn merge_equal(unpacker: &Unpacker<'_>, groups: &mut Emitted) -> Result<(), Error> {
    match repr_of_keys(unpacker) {
        Some(Repr::Str) => keeping_gvl(unpacker.ruby, |on| groups.merge_texts(on, unpacker.bytes())),
        Some(_) => Ok(()),
        None => keeping_gvl(unpacker.ruby, |on| groups.merge_parts(on, unpacker.bytes())),
    }
}

/// The groups that a kernel made on a backend, as [`super::grouping::pairs`] gives them. `how` is what the caller asked
/// for. Equal keys have one group ([`merge_equal`]).
///
/// # Errors
/// IntegerOverflow for a sum beyond 64 bits; words that mean nothing; NoMemoryError; what interrupts raise.
pub(super) fn emitted(unpacker: &Unpacker<'_>, groups: &Emitted, how: Option<Combine>) -> Result<RArray, Error> {
    let (ruby, repr) = (unpacker.ruby, repr_of_keys(unpacker));
    let values = match (how, groups.how.floats) {
        (Some(Combine::Total), true) => partial_sums(ruby, groups.float_parts())?,
        (Some(Combine::Total), false) => totals(ruby, &groups.totals)?,
        (_, true) => floats(ruby, groups.floats())?,
        (_, false) => {
            let values = integers(ruby, groups.totals.iter().map(|total| i64::try_from(*total).ok()))?;
            values.ok_or_else(|| errors::group_overflow(ruby))?
        }
    };
    let keys = match repr {
        Some(repr) => unpacker.values_of(repr, &groups.keys)?,
        None => {
            let mut keys = Filling::new(ruby, groups.keys.len());
            for key in &groups.keys {
                keys.push(key_of_parts(unpacker, groups.parts(*key))?)?;
            }
            keys.done()?
        }
    };
    let out = ruby.ary_new();
    out.push(keys)?;
    out.push(values)?;
    out.push(ruby.qnil())?;
    out.push(true)?;
    Ok(out)
}

/// Tells `Ikra.explain` of groups that a kernel made on a backend.
///
/// # Errors
/// What interrupts raise.
pub(super) fn tell_of_emitted(unpacker: &Unpacker<'_>, groups: &Emitted, backend: &'static str) -> Result<(), Error> {
    Clock::start(unpacker.ruby).step(unpacker.ruby, || {
        let Emitted { pairs, split, keys, .. } = groups;
        let engine = match pairs {
            _ if groups.are_direct() => Engine::Direct,
            Some(_) if *split == 0 => Engine::Small,
            _ => Engine::Hash,
        };
        let (engine, keys) = (engine.name(), keys.len());
        let of = pairs.map(|pairs| format!(" in {pairs} pairs, {split} split by hashes")).unwrap_or_default();
        let why = format!("engine :{engine} in the kernel, {keys} keys found{of}");
        let elements = usize::try_from(pairs.unwrap_or(keys as u64)).unwrap_or(usize::MAX);
        let kind = repr_of_keys(unpacker).map_or("several parts", kind_of);
        Step { what: "combining", elements, kind, backend, why }
    })
}

/// The kind of the keys that a kernel grouped. None: they have parts.
pub(super) fn repr_of_keys(unpacker: &Unpacker<'_>) -> Option<Repr> {
    match unpacker.schema.groups {
        Some(GroupKeys::Of(repr)) => Some(repr),
        Some(GroupKeys::Parts) => None,
        // nothing was emitted
        _ => Some(Repr::Int),
    }
}

/// A key from its words.
fn key_of_parts(unpacker: &Unpacker<'_>, words: &[u64]) -> Result<Value, Error> {
    let (head, mut words) = (words[0], words[1..].iter());
    key_from(unpacker, &mut codes(head), &mut words)
}

fn key_from(
    unpacker: &Unpacker<'_>,
    codes: &mut impl Iterator<Item = u64>,
    words: &mut std::slice::Iter<'_, u64>,
) -> Result<Value, Error> {
    let ruby = unpacker.ruby;
    let code = codes.next().unwrap_or(KeyCode::NIL);
    let mut word = |repr| unpacker.value_of(repr, words.next().copied().unwrap_or_default());
    match code {
        KeyCode::NIL => Ok(ruby.qnil().as_value()),
        KeyCode::FALSE => Ok(ruby.qfalse().as_value()),
        KeyCode::TRUE => Ok(ruby.qtrue().as_value()),
        KeyCode::INT => word(Repr::Int),
        KeyCode::FLOAT => word(Repr::Float),
        KeyCode::SYM => word(Repr::Sym),
        KeyCode::STR => word(Repr::Str),
        list => {
            let elements = ruby.ary_new();
            for _ in KeyCode::LIST..list {
                elements.push(key_from(unpacker, codes, words)?)?;
            }
            Ok(elements.as_value())
        }
    }
}

fn kind_of(repr: Repr) -> &'static str {
    match repr {
        Repr::Int => "Integer",
        Repr::Sym => "Symbol",
        Repr::Float => "Float",
        Repr::Str => "String",
        _ => "true or false",
    }
}

/// Which pairs have equal keys. None where Ruby's Hash must tell.
///
/// # Errors
/// What interrupts raise.
pub(super) fn numbered(ruby: &Ruby, pairs: &Pairs<'_>) -> Result<Option<Grouped>, Error> {
    let Some(keys) = PairKeys::of(pairs) else { return Ok(None) };
    Run { ruby, keys: &keys, plan: keys.look().plan(Engine::Auto), count: pairs.rows.len() }.numbered()
}

/// Whether there seem to be at least half as many keys as pairs.
pub(super) fn differ_mostly(pairs: &Pairs<'_>) -> bool {
    PairKeys::of(pairs).is_some_and(|keys| {
        let sample = keys.look();
        if sample.seen > 0 { sample.many_differ() } else { monitor::glance(&keys, pairs.rows.len()) }
    })
}

/// The first pair of each key, and how many pairs have it. None where Ruby's Hash must tell.
///
/// # Errors
/// What interrupts raise.
pub(super) fn count(ruby: &Ruby, pairs: &Pairs<'_>) -> Result<Option<Groups<()>>, Error> {
    let Some(keys) = PairKeys::of(pairs) else { return Ok(None) };
    Run { ruby, keys: &keys, plan: keys.look().plan(Engine::Auto), count: pairs.rows.len() }.groups(&Count)
}

/// How pairs are grouped.
struct Run<'a> {
    ruby: &'a Ruby,
    keys: &'a PairKeys<'a>,
    plan: Plan,
    count: usize,
}

impl Run<'_> {
    /// None: a key is of another kind.
    fn groups<F: Fold>(&self, fold: &F) -> Result<Option<Groups<F::State>>, Error> {
        let Self { ruby, keys, plan, count } = *self;
        if keys.are_rubys() {
            let folding = Folding::new(seed(), plan, workers::THREADS.count(), count, fold);
            return held(ruby, count, || Some(keys), folding);
        }
        working(ruby, count, |on| table::groups(on, seed(), plan, keys, count, fold))
    }

    fn numbered(&self) -> Result<Option<Grouped>, Error> {
        let Self { ruby, keys, plan, count } = *self;
        let number = |on: Workers<'_>| groups::numbered(on, plan, keys, count);
        if keys.are_rubys() {
            return Ok(keeping_gvl(ruby, number)?.flatten());
        }
        working(ruby, count, number)
    }
}

impl Keys for &PairKeys<'_> {
    fn words(&self, first: usize, out: &mut [u64]) -> bool {
        PairKeys::words(self, first, out)
    }
    fn same(&self, word: u64, one: usize, other: usize) -> bool {
        PairKeys::same(self, word, one, other)
    }
    fn are_far(&self) -> bool {
        PairKeys::are_far(self)
    }
    fn ahead(&self, word: u64, element: usize) {
        PairKeys::ahead(self, word, element);
    }
}

/// Groups that one worker sums.
const SUMMED: usize = 64;

/// What becomes of the exact sum of each group's Floats.
fn exact_sums<T: Send + Sync + Clone>(
    ruby: &Ruby,
    grouped: &Grouped,
    value: impl Fn(u32) -> f64 + Sync,
    left: fn(ExactSum) -> T,
) -> Result<Vec<T>, Error> {
    let members = keeping_gvl(ruby, |on| Members::of(on, grouped))?;
    let sum = |bounds: &[i64]| {
        let mut sum = ExactSum::default();
        members.order[bounds[0] as usize..bounds[1] as usize].iter().for_each(|pair| sum.add(value(*pair)));
        left(sum)
    };
    let bounds: Vec<&[i64]> = room::collect(members.starts.windows(2));
    let sums = working(ruby, grouped.group_of.len(), |on| {
        on.all(bounds.chunks(SUMMED).collect(), |bounds: &[&[i64]]| {
            room::collect(bounds.iter().map(|bounds| sum(bounds)))
        })
    })?;
    Ok(room::concat(&sums))
}
