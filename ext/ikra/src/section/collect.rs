//! Operations over the results of sections: elements chosen by flags, or sorted by keys.
//!
//! Here: natives that go over a list and over what a section gave for each of its elements. A loop in Ruby would take
//! longer than the section. A native reads all numbers off the heap once. The core's collective operations then process
//! them in threads, without the GVL, and can be interrupted. Elements of a result are the very objects of the list.
//!
//! Not here: grouping by keys ([`super::grouping`]); which operation is used. Sums of lists stay with Ruby
//! (`lib/ikra/operation.rb`), so that every digit agrees. So do the least and the greatest of Integers: Ruby compares
//! them faster than they can be read out.
//!
//! Invariant: an answer is Ruby's own or none. Where keys are neither all Integers nor all Floats that compare, the
//! caller uses Ruby's method.

use crate::options::{REDUCTIONS, Settings};
use crate::report::profile::{Clock, Phase, Step};
use crate::ruby::dtype::Dtype;
use crate::ruby::errors;
use crate::ruby::gvl::{self, Polls};
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::reflect::value;
use crate::ruby::workers;
use crate::section::over::{Placement, waited};
use ikra_core::backend::CancelToken;
use ikra_core::backend::collective::reduce::{Place, Reduced, Reduction, reduce};
use ikra_core::backend::collective::rows::{Give, Stretch};
use ikra_core::backend::collective::sort::{self, Keys};
use ikra_core::backend::collective::{Element, Number, Values, Workers};
use ikra_core::backend::fold;
use ikra_core::engine::Holes;
use ikra_core::memory::buffer::Buffer;
use ikra_core::memory::column::{self, HostColumn};
use ikra_core::memory::room;
use ikra_core::types::Storage;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RHash, Ruby, Symbol, Value};
use std::sync::Arc;
use std::time::Instant;

/// The element of an array at an index that it has.
pub(super) fn at(list: RArray, index: usize) -> Value {
    // SAFETY (chapter of heap.rs): the array is on the machine stack. Nothing happens between reading and use.
    value(heap::elements(list.as_raw()).get(index).copied().unwrap_or(heap::NIL))
}

fn truthy(raw: Raw) -> bool {
    raw & !heap::NIL != 0
}

/// A list of known length that is being filled. Elements wait on the stack, where they are pinned, and are appended
/// many at a time. The array has room for all, so that appending allocates nothing.
pub(super) struct Filling {
    out: RArray,
    polls: Polls,
    waiting: [Value; 64],
    count: usize,
}

impl Filling {
    pub fn new(ruby: &Ruby, len: usize) -> Self {
        Self { out: ruby.ary_new_capa(len), polls: Polls::new(), waiting: [ruby.qnil().as_value(); 64], count: 0 }
    }

    pub fn push(&mut self, element: Value) -> Result<(), Error> {
        self.waiting[self.count] = element;
        self.count += 1;
        if self.count == self.waiting.len() { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let waiting = &self.waiting[..std::mem::take(&mut self.count)];
        self.out.cat(waiting)?;
        self.polls.look_now(&Ruby::get_with(self.out))
    }

    pub fn done(mut self) -> Result<RArray, Error> {
        self.flush()?;
        Ok(self.out)
    }
}

/// Elements of a list that are picked without a look for interrupts.
const FEW: usize = 16;

/// The elements of a list at these indices.
pub(super) fn picked_few(ruby: &Ruby, list: RArray, places: &[u32]) -> Result<RArray, Error> {
    if places.len() > FEW {
        return picked(ruby, list, places.iter().copied());
    }
    let mut values = [ruby.qnil().as_value(); FEW];
    for (value, place) in values.iter_mut().zip(places) {
        *value = at(list, *place as usize);
    }
    Ok(ruby.ary_new_from_values(&values[..places.len()]))
}

/// The elements of a list at these indices.
pub(super) fn picked(ruby: &Ruby, list: RArray, places: impl ExactSizeIterator<Item = u32>) -> Result<RArray, Error> {
    let mut out = Filling::new(ruby, places.len());
    for place in places {
        out.push(at(list, place as usize))?;
    }
    out.done()
}

/// Rows, once they are on the host.
pub(super) fn fetched(ruby: &Ruby, clock: &mut Clock, rows: HostColumn) -> Result<HostColumn, Error> {
    let buffer = Buffer::from_column(rows);
    waited(clock, &buffer);
    on_host(ruby, clock, &buffer)
}

pub(super) fn on_host(ruby: &Ruby, clock: &mut Clock, buffer: &Buffer) -> Result<HostColumn, Error> {
    clock.measure(Phase::Download, || gvl::released(|| buffer.on_host())).map_err(|e| errors::core(ruby, e))
}

/// Measures what is done with a list.
pub(super) fn clock_of(ruby: &Ruby, what: &'static str, list: RArray) -> Result<Clock, Error> {
    let mut clock = Clock::start(ruby);
    tell_of_list(ruby, &mut clock, what, list)?;
    Ok(clock)
}

pub(super) fn tell_of_list(ruby: &Ruby, clock: &mut Clock, what: &'static str, list: RArray) -> Result<(), Error> {
    clock.step(ruby, || {
        let elements = heap::elements(list.as_raw());
        let kind = match elements.first().map(|first| heap::see(*first)) {
            Some(Seen::Int(_) | Seen::BigInt) => "Integer",
            Some(Seen::Float(_)) => "Float",
            Some(Seen::True | Seen::False) => "true and false",
            _ => "objects",
        };
        Step { what, elements: elements.len(), kind, backend: "cpu", why: "elements of a list are the host's".into() }
    })
}

/// What a section gave for each element: Ruby's values, or a buffer of numbers (or of true and false).
pub(super) enum Given {
    List(RArray),
    Numbers(Dtype, Arc<Buffer>),
}

impl Given {
    pub(super) fn of(value: Value) -> Result<Given, Error> {
        match crate::buffers::buffer::of(value.as_raw()) {
            Some((dtype, buffer)) => Ok(Given::Numbers(dtype, buffer)),
            None => RArray::try_convert(value).map(Given::List),
        }
    }
    /// As Ruby's values.
    pub(super) fn list(self, ruby: &Ruby) -> Result<RArray, Error> {
        match self {
            Given::List(list) => Ok(list),
            Given::Numbers(dtype, buffer) => crate::buffers::buffer::list(ruby, dtype, &buffer),
        }
    }
}

/// `Ikra.__chosen(list, flags, wanted)`: the elements whose flags are true, or, with `wanted` false, the others.
///
/// # Errors
/// NoMemoryError; DeviceError and its subclasses.
pub fn chosen(ruby: &Ruby, list: RArray, flags: Value, wanted: bool) -> Result<RArray, Error> {
    let mut clock = Clock::start(ruby);
    let flags = match Given::of(flags)? {
        Given::List(flags) => flags,
        Given::Numbers(dtype, flags) => return chosen_by(ruby, &mut clock, list, (dtype, &flags), wanted),
    };
    tell_of_list(ruby, &mut clock, "choice by flags", flags)?;
    let began = Instant::now();
    let hits = heap::elements(flags.as_raw()).iter().filter(|flag| truthy(**flag) == wanted).count();
    let mut out = Filling::new(ruby, hits);
    for index in 0..flags.len() {
        if truthy(at(flags, index).as_raw()) == wanted {
            out.push(at(list, index))?;
        }
    }
    let chosen = out.done();
    clock.add(Phase::Unpack, began, began.elapsed());
    chosen
}

/// The same for flags of one byte each. Where a device has the flags and few are set, only the indices of these are
/// copied from there.
fn chosen_by(
    ruby: &Ruby,
    clock: &mut Clock,
    list: RArray,
    flags: (Dtype, &Arc<Buffer>),
    wanted: bool,
) -> Result<RArray, Error> {
    if flags.0.element() != Element::U8 {
        return Err(Error::new(ruby.exception_arg_error(), "flags are true or false"));
    }
    let (count, place) = (flags.1.len(), Placement::as_left(ruby, flags.1)?);
    place.tell(ruby, clock, "choice by flags", (flags.0, flags.1), count, None)?;
    if place.is_device()
        && wanted
        && let Reduced::Count(hits) = place.reduce(ruby, clock, Reduction::Count, flags, 0..count)?
        // An index has four bytes.
        && hits * 4 < count as u64
    {
        let places = place.over(ruby, clock, &[flags.1], count, |who, rows| {
            who.select(Stretch { element: Element::U8, rows: &rows[0], range: 0..count }, None)
        })?;
        let places = fetched(ruby, clock, places)?;
        return clock.measure(Phase::Unpack, || picked(ruby, list, places.view::<u32>().iter().copied()));
    }
    let rows = on_host(ruby, clock, flags.1)?;
    clock.measure(Phase::Unpack, || {
        let flags: &[u8] = rows.view();
        let mut out = Filling::new(ruby, flags.iter().filter(|flag| (**flag != 0) == wanted).count());
        for (index, flag) in flags.iter().enumerate() {
            if (*flag != 0) == wanted {
                out.push(at(list, index))?;
            }
        }
        out.done()
    })
}

/// `Ikra.__permuted(list, order)`: the elements at these indices.
///
/// # Errors
/// NoMemoryError.
pub fn permuted(ruby: &Ruby, list: RArray, order: RArray) -> Result<RArray, Error> {
    clock_of(ruby, "rearrangement", order)?.measure(Phase::Unpack, || {
        let mut out = Filling::new(ruby, order.len());
        for index in 0..order.len() {
            out.push(at(list, place(at(order, index))))?;
        }
        out.done()
    })
}

fn place(index: Value) -> usize {
    match heap::see(index.as_raw()) {
        Seen::Int(index) => usize::try_from(index).unwrap_or(usize::MAX),
        _ => usize::MAX,
    }
}

/// Keys as plain numbers.
enum Numbers {
    Ints(HostColumn),
    Floats(HostColumn),
}

impl Numbers {
    /// The keys as numbers. None where they are of several kinds or no numbers, or where some are NaN.
    fn of(keys: RArray) -> Option<Numbers> {
        let keys = heap::elements(keys.as_raw());
        match heap::see(*keys.first()?) {
            Seen::Int(_) => filled_column(Storage::I64, keys, int).map(Numbers::Ints),
            Seen::Float(_) => filled_column(Storage::F64, keys, float).map(Numbers::Floats),
            _ => None,
        }
    }
}

/// The results of `one`, computed by all cores. None where `one` gives None for some value.
fn filled_column<T: column::Element + Send>(
    storage: Storage,
    raw: &[Raw],
    one: impl Fn(Raw) -> Option<T> + Sync,
) -> Option<HostColumn> {
    let mut column = HostColumn::to_fill(storage, raw.len(), None);
    let pieces = raw.chunks(workers::PIECE).zip(column.view_mut::<T>().chunks_mut(workers::PIECE)).collect();
    let fill = |(raw, out): (&[Raw], &mut [T])| {
        for (raw, out) in raw.iter().zip(out) {
            match one(*raw) {
                Some(number) => *out = number,
                None => return false,
            }
        }
        true
    };
    workers::map(raw.len(), pieces, fill).into_iter().all(|filled| filled).then_some(column)
}

fn int(raw: Raw) -> Option<i64> {
    match heap::see(raw) {
        Seen::Int(number) => Some(number),
        _ => None,
    }
}

pub(super) fn float(raw: Raw) -> Option<f64> {
    match heap::see(raw) {
        Seen::Float(number) if !number.is_nan() => Some(number),
        _ => None,
    }
}

impl Numbers {
    /// Each number combined with all before it, in order. None where one leaves 64 bits.
    fn running(mut self, product: bool) -> Option<Numbers> {
        match &mut self {
            Numbers::Ints(column) => {
                let mut memo = i64::from(product);
                for x in column.view_mut::<i64>() {
                    memo = if product { memo.checked_mul(*x)? } else { memo.checked_add(*x)? };
                    *x = memo;
                }
            }
            Numbers::Floats(column) => {
                let out = column.view_mut::<f64>();
                for i in 1..out.len() {
                    out[i] = if product { out[i - 1] * out[i] } else { out[i - 1] + out[i] };
                }
            }
        }
        Some(self)
    }

    fn values(&self) -> Values<'_> {
        match self {
            Numbers::Ints(x) => Values::I64(x.view()),
            Numbers::Floats(x) => Values::F64(x.view()),
        }
    }

    fn keys(&self) -> Keys<'_> {
        match self {
            Numbers::Ints(x) => Keys::I64(x.view()),
            Numbers::Floats(x) => Keys::F64(x.view()),
        }
    }
}

/// The least number of elements for which the GVL is released.
const MIN_ELEMENTS_WITHOUT_GVL: usize = 1 << 14;

/// Runs a collective operation over so many elements. An interrupt ends it. Most interrupts raise; after one that does
/// not, the operation runs again.
pub fn working<T: Send>(
    ruby: &Ruby,
    count: usize,
    work: impl Fn(Workers<'_>) -> ikra_core::error::Result<Option<T>> + Sync,
) -> Result<T, Error> {
    let mut beside = false;
    loop {
        let cancel = CancelToken::default();
        let run = || work(Workers { threads: &workers::THREADS, cancel: &cancel });
        let answer = match (count < MIN_ELEMENTS_WITHOUT_GVL, beside) {
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

/// The same with the GVL, so that no Ruby code runs meanwhile. For what takes some 10 ms at most.
pub(super) fn keeping_gvl<T>(
    ruby: &Ruby,
    work: impl FnOnce(Workers<'_>) -> ikra_core::error::Result<T>,
) -> Result<T, Error> {
    let cancel = CancelToken::default();
    work(Workers { threads: &workers::THREADS, cancel: &cancel }).map_err(|e| errors::core(ruby, e))
}

/// `Ikra.__reduce(buffer, operation, from, count, options)`: reduces elements of a buffer in the memory where they are.
/// What it gives depends on the operation:
///
/// * `:sum`: a number.
/// * `:count`: how many elements are not 0.
/// * `:min`, `:max`: an array of the element, its index, and whether there was a NaN. NaNs are left out.
/// * `:minmax`: an array of both of these.
///
/// # Errors
/// DeviceError and its subclasses, and what interrupts raise.
pub fn reduce_buffer(
    ruby: &Ruby,
    buffer: Value,
    operation: Symbol,
    from: usize,
    count: usize,
    options: Option<RHash>,
) -> Result<Value, Error> {
    let mut clock = Clock::start(ruby);
    let Some((dtype, buffer)) = crate::buffers::buffer::of(buffer.as_raw()) else {
        return Err(Error::new(ruby.exception_arg_error(), "the array's elements are freed"));
    };
    let name = operation.name()?;
    let Some((known, reduction)) = REDUCTIONS.into_iter().find(|(known, _)| *known == &*name) else {
        return Err(Error::new(ruby.exception_arg_error(), format!("no reduction is called {name}")));
    };
    let range = crate::section::over::part(ruby, &buffer, from, count)?;
    let asked = Settings::for_call(ruby, options)?.backend;
    let place = Placement::of(ruby, asked, &buffer, count)?;
    place.tell(ruby, &mut clock, known, (dtype, &buffer), count, Some(asked))?;
    let reduced = place.reduce(ruby, &mut clock, reduction, (dtype, &buffer), range)?;
    reduced_value(ruby, reduction, reduced)
}

/// `Ikra.__filled(operation)`: the Integer and the Float that replace elements without a value in a reduction.
///
/// # Errors
/// ArgumentError where the operation has no such numbers.
pub fn filled(ruby: &Ruby, operation: Symbol) -> Result<(i64, f64), Error> {
    let name = operation.name()?;
    let reduction = REDUCTIONS.into_iter().find(|(known, _)| *known == &*name);
    match reduction.and_then(|(_, reduction)| fold::neutral(reduction)) {
        Some(Holes::Filled { int, float }) => Ok((int, f64::from_bits(float))),
        _ => Err(Error::new(
            ruby.exception_arg_error(),
            format!("nothing stands for elements without a value in {name}"),
        )),
    }
}

/// The result of a reduction as Ruby's values, in the form that [`reduce_buffer`] documents.
///
/// # Errors
/// NoMemoryError.
pub fn reduced_value(ruby: &Ruby, reduction: Reduction, reduced: Reduced) -> Result<Value, Error> {
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
        Reduced::Extremes { least, greatest, nan } if reduction == Reduction::MinMax => {
            ruby.ary_new_from_values(&[place(least, nan), place(greatest, nan)]).as_value()
        }
        Reduced::Extremes { least, greatest, nan } => place(least.or(greatest), nan),
        Reduced::Overflow => return Err(errors::internal(ruby, "a product where none was asked for")),
    })
}

/// Whether 32 bits can hold the count.
pub(super) fn countable(count: usize) -> bool {
    u32::try_from(count).is_ok()
}

/// `Ikra.__sorted(list, keys, count, last)`: the first `count` elements of a list in ascending order of their keys.
/// Elements of equal keys keep their order. With `last` it takes the last ones of that order. nil where the caller must
/// use Ruby's method.
///
/// # Errors
/// DeviceError and its subclasses, and what interrupts raise.
pub fn sorted(ruby: &Ruby, list: RArray, keys: Value, count: usize, last: bool) -> Result<Option<RArray>, Error> {
    let part = |n: usize| if last { n - count.min(n)..n } else { 0..count.min(n) };
    let give = |clock: &mut Clock, order: &[u32]| {
        clock.measure(Phase::Unpack, || match last {
            true => picked(ruby, list, order.iter().rev().copied()),
            false => picked(ruby, list, order.iter().copied()),
        })
    };
    let mut clock = Clock::start(ruby);
    match Given::of(keys)? {
        Given::List(keys) => {
            tell_of_list(ruby, &mut clock, "sort", keys)?;
            let numbers = clock.measure(Phase::Pack, || Numbers::of(keys));
            let Some(numbers) = numbers.filter(|_| countable(keys.len())) else {
                clock.forget();
                return Ok(None);
            };
            let order = clock.measure(Phase::Kernel, || {
                working(ruby, keys.len(), |workers| sort::order(workers, numbers.keys(), sort::By::default()))
            })?;
            give(&mut clock, &order[part(order.len())]).map(Some)
        }
        // Ruby does not compare true with false.
        Given::Numbers(Dtype::Bool, _) => {
            clock.forget();
            Ok(None)
        }
        Given::Numbers(_, keys) if keys.is_empty() => {
            clock.forget();
            Ok(None)
        }
        Given::Numbers(dtype, keys) => {
            let (n, element, place) = (keys.len(), dtype.element(), Placement::as_left(ruby, &keys)?);
            place.tell(ruby, &mut clock, "sort", (dtype, &keys), n, None)?;
            let order = place.over(ruby, &mut clock, &[&keys], n, |who, rows| {
                who.sort(Stretch { element, rows: &rows[0], range: 0..n }, n, false, Give::Places)
            })?;
            let order = Buffer::from_column(order);
            waited(&mut clock, &order);
            let part = part(n);
            let mut places = room::filled(0, part.len());
            let fetch = || {
                // NaN sorts last.
                let mut end = [0u32];
                read_places(&order, n - 1, &mut end)?;
                let mut key = [0; 8];
                keys.read(end[0] as usize * element.bytes(), &mut key[..element.bytes()])?;
                read_places(&order, part.start, &mut places)?;
                Ok(element != Element::F64 || n < 2 || !f64::from_ne_bytes(key).is_nan())
            };
            let fetched = clock.measure(Phase::Download, || gvl::released(fetch));
            if fetched.map_err(|e| errors::core(ruby, e))? { give(&mut clock, &places).map(Some) } else { Ok(None) }
        }
    }
}

/// Consecutive elements of a column of u32.
fn read_places(from: &Buffer, at: usize, to: &mut [u32]) -> ikra_core::error::Result<()> {
    let mut bytes = room::filled(0, to.len() * 4);
    from.read(at * 4, &mut bytes)?;
    to.iter_mut().zip(bytes.as_chunks::<4>().0).for_each(|(to, word)| *to = u32::from_ne_bytes(*word));
    Ok(())
}

/// `Ikra.__extreme(keys, greatest)`: the index of the first of the least, or the greatest, keys. nil where the caller
/// must use Ruby's method.
///
/// # Errors
/// DeviceError and its subclasses, and what interrupts raise.
pub fn extreme(ruby: &Ruby, keys: Value, greatest: bool) -> Result<Option<u64>, Error> {
    let reduction = if greatest { Reduction::Max } else { Reduction::Min };
    let (mut clock, what) = (Clock::start(ruby), if greatest { "max" } else { "min" });
    let reduced = match Given::of(keys)? {
        Given::List(keys) => {
            tell_of_list(ruby, &mut clock, what, keys)?;
            let Some(numbers) = clock.measure(Phase::Pack, || Numbers::of(keys)) else {
                clock.forget();
                return Ok(None);
            };
            let work = || working(ruby, keys.len(), |workers| reduce(workers, reduction, numbers.values()));
            clock.measure(Phase::Kernel, work)?
        }
        Given::Numbers(Dtype::Bool, _) => {
            clock.forget();
            return Ok(None);
        }
        Given::Numbers(dtype, keys) => {
            let place = Placement::as_left(ruby, &keys)?;
            place.tell(ruby, &mut clock, what, (dtype, &keys), keys.len(), None)?;
            place.reduce(ruby, &mut clock, reduction, (dtype, &keys), 0..keys.len())?
        }
    };
    Ok(match reduced {
        Reduced::Extremes { least, greatest, nan: false } => least.or(greatest).map(|place| place.index),
        _ => None,
    })
}

/// `Ikra.__running(list, operator, basic)`: each element combined with all before it, as `inject` combines them.
/// `basic` says that the operator is Ruby's own `+` or `*` of numbers.
///
/// # Errors
/// What the operator raises.
pub fn running(ruby: &Ruby, list: RArray, operator: Symbol, basic: bool) -> Result<RArray, Error> {
    let (mut clock, product) = (clock_of(ruby, "scan", list)?, &operator.name()? == "*");
    if let Some(numbers) = if basic { clock.measure(Phase::Pack, || Numbers::of(list)) } else { None }
        && let Some(values) = clock.measure(Phase::Kernel, || numbers.running(product))
    {
        return clock.measure(Phase::Unpack, || {
            let mut out = Filling::new(ruby, list.len());
            match values {
                Numbers::Ints(column) => {
                    column.view::<i64>().iter().try_for_each(|number| out.push(ruby.into_value(*number)))?;
                }
                Numbers::Floats(column) => {
                    column.view::<f64>().iter().try_for_each(|number| out.push(ruby.into_value(*number)))?;
                }
            }
            out.done()
        });
    }
    clock.forget();
    let (out, polls) = (ruby.ary_new_capa(list.len()), Polls::new());
    let mut memo = at(list, 0);
    for index in 0..list.len() {
        polls.look(ruby)?;
        if index > 0 {
            memo = memo.funcall(operator, (at(list, index),))?;
        }
        out.push(memo)?;
    }
    Ok(out)
}

/// `Ikra.__compacted(list, skip, stop)`: the elements before the first that is `stop`, without those that are `skip`,
/// and whether `stop` occurred. Where nothing is left out, it gives the list itself.
///
/// # Errors
/// NoMemoryError.
pub fn compacted(ruby: &Ruby, list: RArray, skip: Value, stop: Value) -> Result<(RArray, bool), Error> {
    clock_of(ruby, "choice", list)?.measure(Phase::Unpack, || compact(ruby, list, skip, stop))
}

fn compact(ruby: &Ruby, list: RArray, skip: Value, stop: Value) -> Result<(RArray, bool), Error> {
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
