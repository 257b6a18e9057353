//! What operations make of their sections' results: the elements that flags choose, in the order of keys, by groups.
//!
//! Here: natives that go over a list and what a section gave for each of its elements, where a loop in Ruby would take
//! longer than the section. Elements that come out are the very objects that went in. Not here: what decides; where Ruby
//! itself has the right answer (`sum`, `minmax`, `tally`), `lib/ikra/operation.rb` asks Ruby.
//! Invariant: an answer is Ruby's own or none: where keys are not all Integers or all Floats that compare, the caller asks
//! Ruby's `<=>`.

use crate::heap::{self, Raw, Seen};
use crate::reflect::value;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RHash, Ruby, Symbol, Value};
use rayon::ThreadPoolBuilder;
use rayon::slice::ParallelSliceMut;
use std::cmp::Ordering;

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
            Seen::Int(_) => keys.iter().map(|key| int(*key)).collect::<Option<Vec<i64>>>().map(Numbers::Ints),
            Seen::Float(_) => keys.iter().map(|key| float(*key)).collect::<Option<Vec<f64>>>().map(Numbers::Floats),
            _ => None,
        }
    }
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

/// 0.0 and -0.0 are equal, as for Ruby's `<=>`.
fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// `Ikra.__order(keys)`: the indices of the keys in ascending order, of equal ones the first first; nil where Ruby must be
/// asked.
///
/// # Errors
/// When memory ends.
pub fn order(ruby: &Ruby, keys: RArray) -> Result<Option<RArray>, Error> {
    let Some(numbers) = Numbers::of(keys) else { return Ok(None) };
    let order: Vec<usize> = match numbers {
        Numbers::Ints(keys) => sorted(&keys, |a, b| a.cmp(&b)),
        Numbers::Floats(keys) => sorted(&keys, compare_floats),
    };
    Ok(Some(ruby.ary_from_iter(order)))
}

/// Keys that are sorted by threads of their own.
const MANY: usize = 1 << 16;

/// Without the GVL. The threads live as long as the work: a process that was forked has none of its parent's.
fn sorted<K: Copy + Send + Sync>(keys: &[K], compare: impl Fn(K, K) -> Ordering + Sync) -> Vec<usize> {
    let mut pairs: Vec<(K, usize)> = keys.iter().copied().zip(0..).collect();
    let compare = |a: &(K, usize), b: &(K, usize)| compare(a.0, b.0).then(a.1.cmp(&b.1));
    let pool = if pairs.len() < MANY { None } else { ThreadPoolBuilder::new().build().ok() };
    crate::gvl::released(|| match &pool {
        Some(pool) => pool.install(|| pairs.par_sort_unstable_by(compare)),
        None => pairs.sort_unstable_by(compare),
    });
    pairs.into_iter().map(|(_, index)| index).collect()
}

/// `Ikra.__extreme(keys, greatest)`: the index of the first of the least, or the greatest, keys; nil where Ruby must be
/// asked.
pub fn extreme(keys: RArray, greatest: bool) -> Option<usize> {
    fn first<K: Copy>(keys: &[K], before: impl Fn(K, K) -> bool) -> usize {
        (1..keys.len()).fold(0, |best, i| if before(keys[i], keys[best]) { i } else { best })
    }
    Some(match (Numbers::of(keys)?, greatest) {
        (Numbers::Ints(keys), false) => first(&keys, |a, b| a < b),
        (Numbers::Ints(keys), true) => first(&keys, |a, b| a > b),
        (Numbers::Floats(keys), false) => first(&keys, |a, b| a < b),
        (Numbers::Floats(keys), true) => first(&keys, |a, b| a > b),
    })
}

/// `Ikra.__grouped(list, keys)`: a Hash from each key to the elements that have it, as `group_by` makes it.
///
/// # Errors
/// What `hash` and `eql?` of keys raise.
pub fn grouped(ruby: &Ruby, list: RArray, keys: RArray) -> Result<RHash, Error> {
    let groups = ruby.hash_new();
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
    Ok(groups)
}

/// `Ikra.__distinct(list, keys)`: the first element of each key.
///
/// # Errors
/// What `hash` and `eql?` of keys raise.
pub fn distinct(ruby: &Ruby, list: RArray, keys: RArray) -> Result<RArray, Error> {
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
