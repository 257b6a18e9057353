//! What operations make of their sections' results: the elements that flags choose, in the order of keys, by groups.
//!
//! Here: natives that go over a list and what a section gave for each of its elements, where a loop in Ruby would take
//! longer than the section. Numbers are read off the heap once; the core's collective operations then go over them without the
//! GVL, by threads, and can be interrupted. Elements that come out are the very objects that went in. Not here: what decides.
//! Sums are Ruby's own (`lib/ikra/operation.rb`): adding numbers takes less time than reading them out first.
//! Invariant: an answer is Ruby's own or none: where keys are not all Integers or all Floats that compare, the caller asks Ruby.

use crate::backends;
use crate::buffer::Dtype;
use crate::config::{Choice, Settings};
use crate::errors;
use crate::gvl;
use crate::heap::{self, Raw, Seen};
use crate::reflect::value;
use ikra_core::backend::CancelToken;
use ikra_core::backend::collective::groups::{self, Grouped};
use ikra_core::backend::collective::reduce::{Place, Reduced, Reduction, reduce};
use ikra_core::backend::collective::sort::{self, Keys};
use ikra_core::backend::collective::{Crew, Element, Number, Values};
use ikra_core::backend::threads::Threads;
use ikra_core::memory::buffer::Residence;
use ikra_core::memory::column::HostColumn;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RHash, Ruby, Symbol, Value};
use once_cell::sync::Lazy;

/// The element of an array at an index that it has.
fn at(list: RArray, index: usize) -> Value {
    // SAFETY (chapter of heap.rs): the array is on the machine stack; nothing happens between reading and use
    value(heap::elements(list.as_raw()).get(index).copied().unwrap_or(heap::NIL))
}

fn truthy(raw: Raw) -> bool {
    raw & !heap::NIL != 0
}

/// A list of known length in the making. Elements wait on the stack, where they are pinned, and go into the array many at a
/// time; the array has room for all, so nothing is allocated on the way.
struct Filling {
    out: RArray,
    waiting: [Value; 64],
    count: usize,
}

impl Filling {
    fn new(ruby: &Ruby, len: usize) -> Self {
        Self { out: ruby.ary_new_capa(len), waiting: [ruby.qnil().as_value(); 64], count: 0 }
    }

    fn push(&mut self, element: Value) -> Result<(), Error> {
        self.waiting[self.count] = element;
        self.count += 1;
        if self.count == self.waiting.len() { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let waiting = &self.waiting[..std::mem::take(&mut self.count)];
        self.out.cat(waiting)
    }

    fn done(mut self) -> Result<RArray, Error> {
        self.flush()?;
        Ok(self.out)
    }
}

/// `Ikra.__chosen(list, flags, wanted)`: the elements whose flags are true, or (`wanted` false) are not.
///
/// # Errors
/// When memory ends.
pub fn chosen(ruby: &Ruby, list: RArray, flags: RArray, wanted: bool) -> Result<RArray, Error> {
    let hits = heap::elements(flags.as_raw()).iter().filter(|flag| truthy(**flag) == wanted).count();
    let mut out = Filling::new(ruby, hits);
    for index in 0..flags.len() {
        if truthy(at(flags, index).as_raw()) == wanted {
            out.push(at(list, index))?;
        }
    }
    out.done()
}

/// `Ikra.__permuted(list, order)`: the elements at these indices.
///
/// # Errors
/// When memory ends.
pub fn permuted(ruby: &Ruby, list: RArray, order: RArray) -> Result<RArray, Error> {
    let mut out = Filling::new(ruby, order.len());
    for index in 0..order.len() {
        out.push(at(list, place(at(order, index))))?;
    }
    out.done()
}

fn place(index: Value) -> usize {
    match heap::see(index.as_raw()) {
        Seen::Int(index) => usize::try_from(index).unwrap_or(usize::MAX),
        _ => usize::MAX,
    }
}

/// Keys as plain numbers.
enum Numbers {
    Ints(Vec<i64>),
    Floats(Vec<f64>),
}

impl Numbers {
    /// None: they are of several kinds, of others, or some are NaN.
    fn of(keys: RArray) -> Option<Numbers> {
        let keys = heap::elements(keys.as_raw());
        match heap::see(*keys.first()?) {
            Seen::Int(_) => all(keys, int).map(Numbers::Ints),
            Seen::Float(_) => all(keys, float).map(Numbers::Floats),
            _ => None,
        }
    }
}

/// What `one` makes of each, if it makes something of all. (`collect` would not know how many they are.)
fn all<T>(raw: &[Raw], one: impl Fn(Raw) -> Option<T>) -> Option<Vec<T>> {
    let mut out = Vec::with_capacity(raw.len());
    for raw in raw {
        out.push(one(*raw)?);
    }
    Some(out)
}

fn int(raw: Raw) -> Option<i64> {
    match heap::see(raw) {
        Seen::Int(number) => Some(number),
        _ => None,
    }
}

fn float(raw: Raw) -> Option<f64> {
    match heap::see(raw) {
        Seen::Float(number) if !number.is_nan() => Some(number),
        _ => None,
    }
}

impl Numbers {
    fn values(&self) -> Values<'_> {
        match self {
            Numbers::Ints(x) => Values::I64(x),
            Numbers::Floats(x) => Values::F64(x),
        }
    }
    fn keys(&self) -> Keys<'_> {
        match self {
            Numbers::Ints(x) => Keys::I64(x),
            Numbers::Floats(x) => Keys::F64(x),
        }
    }
}

/// Apart from those of sections, which a launch keeps for as long as it runs.
static THREADS: Lazy<Threads> = Lazy::new(Threads::of_host);

/// Fewer elements are gone over at once, with the GVL.
const MANY: usize = 1 << 14;

/// Runs a collective operation over so many elements. Interrupts end it: most of them raise; after one that does not it runs
/// again.
fn working<T: Send>(
    ruby: &Ruby,
    count: usize,
    work: impl Fn(Crew<'_>) -> ikra_core::error::Result<Option<T>> + Sync,
) -> Result<T, Error> {
    let mut beside = false;
    loop {
        let cancel = CancelToken::default();
        let run = || work(Crew { threads: &THREADS, cancel: &cancel });
        let answer = match (count < MANY, beside) {
            (true, _) => Some(run()),
            (_, true) => Some(gvl::run_beside(ruby, &cancel, run)?),
            _ => gvl::run(ruby, &cancel, run)?,
        };
        match answer {
            Some(Ok(Some(done))) => return Ok(done),
            Some(Err(error)) => return Err(errors::core(ruby, error)),
            None | Some(Ok(None)) => beside = true,
        }
    }
}

/// `Ikra.__reduce(buffer, operation, from, count, options)`: what elements of a buffer are reduced to, where they are: `:sum` a number, `:min`
/// and `:max` an array of the element, its index, and whether there was a NaN, which is left out.
///
/// # Errors
/// DeviceError and its kin, and what interrupts raise.
pub fn reduce_buffer(
    ruby: &Ruby,
    buffer: Value,
    operation: Symbol,
    from: usize,
    count: usize,
    options: Option<RHash>,
) -> Result<Value, Error> {
    let Some((dtype, buffer)) = crate::buffer::of(buffer.as_raw()) else {
        return Err(Error::new(ruby.exception_arg_error(), "the array's elements are freed"));
    };
    let reduction = match &*operation.name()? {
        "sum" => Reduction::Sum,
        "min" => Reduction::Min,
        "max" => Reduction::Max,
        other => return Err(Error::new(ruby.exception_arg_error(), format!("no reduction is called {other}"))),
    };
    let range = from..from.saturating_add(count);
    if range.end > buffer.len() {
        let said = format!("elements {range:?} of {}", buffer.len());
        return Err(Error::new(ruby.exception_index_error(), said));
    }
    let element = match dtype {
        Dtype::I64 => Element::I64,
        Dtype::I32 => Element::I32,
        Dtype::U8 | Dtype::Bool => Element::U8,
        Dtype::F64 => Element::F64,
        Dtype::F32 => Element::F32,
    };
    let settings = Settings::for_call(ruby, options)?;
    let there = matches!(buffer.residence(), Residence::Device | Residence::Both);
    let choice = match settings.backend {
        // where the elements are; a forked process has no device
        Choice::Auto if there && backends::open(Choice::Cuda).is_ok() => Choice::Cuda,
        Choice::Auto => backends::choose(Choice::Auto, count, 1),
        chosen => chosen,
    };
    let backend = backends::open(choice).map_err(|e| errors::core(ruby, e))?;
    let reduced = match backend.store() {
        Some(store) => gvl::released(|| {
            let rows = buffer.on_device(store)?;
            backend.reduce(reduction, element, &rows, range)
        })
        .map_err(|e| errors::core(ruby, e))?,
        None => {
            let rows = gvl::released(|| buffer.on_host()).map_err(|e| errors::core(ruby, e))?;
            working(ruby, count, |crew| reduce(crew, reduction, values(&rows, dtype, range.clone())))?
        }
    };
    let place = |place: Option<Place>, nan: bool| {
        let (value, index) = match place {
            Some(Place { index, value: Number::Int(i) }) => (ruby.into_value(i), ruby.into_value(index)),
            Some(Place { index, value: Number::Float(f) }) => (ruby.into_value(f), ruby.into_value(index)),
            None => (ruby.qnil().as_value(), ruby.qnil().as_value()),
        };
        ruby.ary_new_from_values(&[value, index, ruby.into_value(nan)]).as_value()
    };
    Ok(match reduced {
        Reduced::Integer(i) => ruby.into_value(i),
        Reduced::Float(f) => ruby.into_value(f),
        Reduced::Count(n) => ruby.into_value(n),
        Reduced::Extremes { least, greatest, nan } => place(least.or(greatest), nan),
        Reduced::Overflow => return Err(errors::internal(ruby, "a product where none was asked for")),
    })
}

/// Rows of a buffer as the elements that they are.
fn values(rows: &HostColumn, dtype: Dtype, range: std::ops::Range<usize>) -> Values<'_> {
    match dtype {
        Dtype::I64 => Values::I64(&rows.view()[range]),
        Dtype::I32 => Values::I32(&rows.view()[range]),
        Dtype::U8 | Dtype::Bool => Values::U8(&rows.view()[range]),
        Dtype::F64 => Values::F64(&rows.view()[range]),
        Dtype::F32 => Values::F32(&rows.view()[range]),
    }
}

/// Whether 32 bits count them.
fn countable(list: RArray) -> bool {
    u32::try_from(list.len()).is_ok()
}

/// `Ikra.__order(keys)`: the indices of the keys in ascending order, of equal ones the first first; nil where Ruby must be
/// asked.
///
/// # Errors
/// What interrupts raise.
pub fn order(ruby: &Ruby, keys: RArray) -> Result<Option<RArray>, Error> {
    let Some(numbers) = Numbers::of(keys).filter(|_| countable(keys)) else { return Ok(None) };
    let order = working(ruby, keys.len(), |crew| sort::order(crew, numbers.keys(), false))?;
    Ok(Some(ruby.ary_from_iter(order)))
}

/// `Ikra.__extreme(keys, greatest)`: the index of the first of the least, or the greatest, keys; nil where Ruby must be
/// asked.
///
/// # Errors
/// What interrupts raise.
pub fn extreme(ruby: &Ruby, keys: RArray, greatest: bool) -> Result<Option<u64>, Error> {
    let Some(numbers) = Numbers::of(keys) else { return Ok(None) };
    let reduction = if greatest { Reduction::Max } else { Reduction::Min };
    let reduced = working(ruby, keys.len(), |crew| reduce(crew, reduction, numbers.values()))?;
    Ok(match reduced {
        Reduced::Extremes { least, greatest, nan: false } => least.or(greatest).map(|place| place.index),
        _ => None,
    })
}

/// Keys as words that are equal where Ruby's `eql?` finds the keys so: all are Integers, Symbols, true, false or nil that are
/// no objects, or all are Floats. None: they are not, or some are NaN.
fn words(keys: RArray) -> Option<Vec<u64>> {
    let raw = heap::elements(keys.as_raw());
    if let Seen::Float(_) = heap::see(*raw.first()?) {
        return all(raw, |key| float(key).map(groups::float_word));
    }
    all(raw, |key| is_itself(key).then_some(key))
}

/// Whether a value is equal to nothing but itself, and its word is all there is of it.
fn is_itself(raw: Raw) -> bool {
    match heap::see(raw) {
        Seen::Nil | Seen::False | Seen::True => true,
        // Fixnums end in 1.
        Seen::Int(_) => raw & 1 == 1,
        // Symbols that are no objects end in this.
        Seen::Symbol => raw & 0xff == 0x0c,
        _ => false,
    }
}

/// Keys that are looked at to guess how many differ.
const SAMPLE: usize = 1024;

/// Whether most keys seem to be there once: then making the Hash is what takes time, and Ruby does it at once.
fn mostly_differ(words: &[u64]) -> bool {
    let step = (words.len() / SAMPLE).max(1);
    let mut sample: Vec<u64> = words.iter().step_by(step).copied().collect();
    let all = sample.len();
    sample.sort_unstable();
    sample.dedup();
    all > 16 && sample.len() * 4 > all * 3
}

/// Which keys are equal; None where Ruby must be asked, or is faster.
fn grouping(ruby: &Ruby, keys: RArray) -> Result<Option<Grouped>, Error> {
    let Some(words) = words(keys).filter(|words| countable(keys) && !mostly_differ(words)) else { return Ok(None) };
    working(ruby, keys.len(), |crew| groups::of_words(crew, &words)).map(Some)
}

/// `Ikra.__grouped(list, keys)`: a Hash from each key to the elements that have it, as `group_by` makes it.
///
/// # Errors
/// What `hash` and `eql?` of keys raise, and interrupts.
pub fn grouped(ruby: &Ruby, list: RArray, keys: RArray) -> Result<RHash, Error> {
    let groups = ruby.hash_new();
    let Some(Grouped { group_of, firsts, counts }) = grouping(ruby, keys)? else {
        for index in 0..keys.len() {
            let key = at(keys, index);
            match groups.lookup2::<_, _, Option<RArray>>(key, ruby.qnil())? {
                Some(group) => group.push(at(list, index))?,
                None => {
                    let group = ruby.ary_new();
                    group.push(at(list, index))?;
                    groups.aset(key, group)?;
                }
            }
        }
        return Ok(groups);
    };
    // The elements' indices, group by group.
    let mut next = 0;
    let start_of = |count: &u32| {
        next += count;
        next - count
    };
    let mut places: Vec<u32> = counts.iter().map(start_of).collect();
    let mut members = vec![0; group_of.len()];
    for (index, group) in group_of.iter().enumerate() {
        let place = &mut places[*group as usize];
        members[*place as usize] = index;
        *place += 1;
    }
    let mut rest = &members[..];
    for (first, count) in firsts.iter().zip(&counts) {
        let (own, others) = rest.split_at(*count as usize);
        rest = others;
        let mut group = Filling::new(ruby, own.len());
        for index in own {
            group.push(at(list, *index))?;
        }
        groups.aset(at(keys, *first as usize), group.done()?)?;
    }
    Ok(groups)
}

/// `Ikra.__tallied(list)`: a Hash from each element to how many are equal to it, as `tally` makes it; nil where Ruby must be
/// asked.
///
/// # Errors
/// What interrupts raise.
pub fn tallied(ruby: &Ruby, list: RArray) -> Result<Option<RHash>, Error> {
    let Some(Grouped { firsts, counts, .. }) = grouping(ruby, list)? else { return Ok(None) };
    let tally = ruby.hash_new();
    for (first, count) in firsts.iter().zip(counts) {
        tally.aset(at(list, *first as usize), count)?;
    }
    Ok(Some(tally))
}

/// `Ikra.__distinct(list, keys)`: the first element of each key.
///
/// # Errors
/// What `hash` and `eql?` of keys raise, and interrupts.
pub fn distinct(ruby: &Ruby, list: RArray, keys: RArray) -> Result<RArray, Error> {
    if let Some(Grouped { firsts, .. }) = grouping(ruby, keys)? {
        let mut out = Filling::new(ruby, firsts.len());
        for first in firsts {
            out.push(at(list, first as usize))?;
        }
        return out.done();
    }
    let seen = ruby.hash_new();
    let out = ruby.ary_new();
    for index in 0..keys.len() {
        let key = at(keys, index);
        if !seen.lookup2::<_, _, bool>(key, false)? {
            seen.aset(key, true)?;
            out.push(at(list, index))?;
        }
    }
    Ok(out)
}

/// `Ikra.__running(list, operator)`: each element combined with all before it, as `inject` combines them.
///
/// # Errors
/// What the operator raises.
pub fn running(ruby: &Ruby, list: RArray, operator: Symbol) -> Result<RArray, Error> {
    let out = ruby.ary_new_capa(list.len());
    let mut memo = at(list, 0);
    for index in 0..list.len() {
        if index > 0 {
            memo = memo.funcall(operator, (at(list, index),))?;
        }
        out.push(memo)?;
    }
    Ok(out)
}

/// `Ikra.__sieved(list, skip, stop)`: the elements before the first that is `stop`, without those that are `skip`, and
/// whether there was such an end. Where nothing is left out it is the list itself.
///
/// # Errors
/// When memory ends.
pub fn sieved(ruby: &Ruby, list: RArray, skip: Symbol, stop: Symbol) -> Result<(RArray, bool), Error> {
    let (skip, stop) = (skip.as_raw(), stop.as_raw());
    let elements = heap::elements(list.as_raw());
    let len = elements.len();
    let end = elements.iter().position(|raw| *raw == stop).unwrap_or(len);
    let kept = elements[..end].iter().filter(|raw| **raw != skip).count();
    if kept == len {
        return Ok((list, false));
    }
    let mut out = Filling::new(ruby, kept);
    for element in (0..end).map(|index| at(list, index)).filter(|element| element.as_raw() != skip) {
        out.push(element)?;
    }
    Ok((out.done()?, end < len))
}
