//! Grouping: elements of a list by their keys, and the pairs that the block of a `map_reduce` emitted.
//!
//! Here: natives that tell which keys are equal, and make Hashes and lists of that. Keys that are numbers of one kind,
//! immediate values or Strings are compared by the core, in threads; Ruby's own Hash compares others. Keys that a
//! section gives as its results are compared where the kernel left them ([`by_results`]). Not here: values that are
//! combined while they are grouped ([`super::combining`]), the tables (the core's `collective/table.rs`), and what a
//! kernel emitted (`marshal/unpack/pairs.rs`).
//!
//! Invariant: keys are in one group exactly where Ruby's `eql?` and `hash` say so, and groups are in the order of their
//! first elements. Each NaN has a group of its own.

use crate::buffers::buffer;
use crate::marshal::plan::SlotPlan;
use crate::marshal::unpack::Unpacker;
use crate::options::Combine;
use crate::report::profile::{Clock, Phase, Step};
use crate::ruby::dtype::Dtype;
use crate::ruby::gvl::Polls;
use crate::ruby::list;
use crate::section::collect::{
    Filling, Given, at, clock_of, countable, fetched, keeping_gvl, on_host, picked, picked_few, tell_of_list, working,
};
use crate::section::combining;
use crate::section::listed::{self, When};
use crate::section::over::Placement;
use ikra_core::backend::collective::Element;
use ikra_core::backend::collective::groups::{self, Grouped, Members, Numbering};
use ikra_core::backend::collective::monitor::Engine;
use ikra_core::backend::collective::rows::{Collective, Stretch, column};
use ikra_core::backend::collective::table::{Count, Folding};
use ikra_core::memory::buffer::Buffer;
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::room;
use ikra_core::types::Storage;
use magnus::prelude::*;
use magnus::{DataTypeFunctions, Error, RArray, RHash, RModule, Ruby, TryConvert, TypedData, Value};
use parking_lot::Mutex;
use std::sync::Arc;

/// Which elements of a list are equal. None where Ruby must decide.
fn grouping_in(ruby: &Ruby, clock: &mut Clock, keys: RArray, when: When) -> Result<Option<Grouped>, Error> {
    Ok(listed::grouped(ruby, clock, keys, when, Numbering::new)?.map(|(_, grouped)| grouped))
}

/// The same for numbers in a buffer, with the key of each group.
fn grouping_of(
    ruby: &Ruby,
    clock: &mut Clock,
    dtype: Dtype,
    keys: &Arc<Buffer>,
) -> Result<Option<(Grouped, RArray)>, Error> {
    let (n, element, place) = (keys.len(), dtype.element(), Placement::as_left(ruby, keys)?);
    place.tell(ruby, clock, "grouping", (dtype, keys), n, None)?;
    // A NaN is equal to no other.
    let has_nan = |keys: &HostColumn| element == Element::F64 && keys.view::<f64>().iter().any(|key| key.is_nan());
    let list_of = |keys| buffer::list(ruby, dtype, &Buffer::from_column(keys));
    if !place.is_device() {
        let rows = on_host(ruby, clock, keys)?;
        let keys = Stretch { element, rows: &rows, range: 0..n };
        let (grouped, firsts) = clock.measure(Phase::Kernel, || {
            working(ruby, n, |on| {
                let Some(grouped) = groups::of_values(on, keys.values())? else { return Ok(None) };
                let firsts = on.pick(keys.clone(), &column(Storage::U32, &grouped.firsts))?;
                Ok(firsts.map(|firsts| (grouped, firsts)))
            })
        })?;
        return if has_nan(&firsts) { Ok(None) } else { Ok(Some((grouped, list_of(firsts)?))) };
    }
    let (grouped, keys) = place.over(ruby, clock, &[keys], n, |who, rows| {
        let keys = || Stretch { element, rows: &rows[0], range: 0..n };
        let Some(grouped) = who.groups(keys())? else { return Ok(None) };
        let Some(firsts) = who.pick(keys(), &grouped.firsts)? else { return Ok(None) };
        Ok(Some((grouped, firsts)))
    })?;
    let keys = fetched(ruby, clock, keys)?;
    if has_nan(&keys) {
        return Ok(None);
    }
    let mut list = |rows| Ok::<_, Error>(room::copied(fetched(ruby, clock, rows)?.view()));
    let (group_of, firsts, counts) = (list(grouped.group_of)?, list(grouped.firsts)?, list(grouped.counts)?);
    Ok(Some((Grouped { group_of, firsts, counts }, list_of(keys)?)))
}

/// Groups that [`by_results`] found, for [`grouped`] and [`distinct`].
#[derive(TypedData)]
#[magnus(class = "Ikra::Grouped", free_immediately)]
pub struct Told(Mutex<Grouped>);

impl DataTypeFunctions for Told {}

/// Defines `Ikra::Grouped`, which Ruby code cannot make.
///
/// # Errors
/// Where the name is taken.
pub fn init(ikra: RModule, ruby: &Ruby) -> Result<(), Error> {
    let class = ikra.define_class("Grouped", ruby.class_object())?;
    class.undef_default_alloc_func();
    ikra.funcall::<_, _, Value>("private_constant", (ruby.to_symbol("Grouped"),))?;
    <Told as TypedData>::class(ruby);
    Ok(())
}

/// What is wanted of groups.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Members,
    Firsts,
    Keys,
    Counts,
}

/// The groups of elements that have the same result. None where results must become Ruby's values first. No value is
/// made of the results that are no key. Gives what is wanted:
///
/// * `[keys, groups]`, with each key once, in the order of first elements
/// * `[nil, groups]`, where first elements are all that is known of groups
/// * `[keys, nil]`
/// * `[keys, counts]`
///
/// # Errors
/// Rows that mean nothing; NoMemoryError; what interrupts raise.
pub fn by_results(
    unpacker: &Unpacker<'_>,
    slot: &SlotPlan,
    len: usize,
    wanted: Wanted,
) -> Result<Option<RArray>, Error> {
    let ruby = unpacker.ruby;
    if !countable(len) || !unpacker.polls.may_end() {
        return Ok(None);
    }
    let results = unpacker.results_as_keys(slot, len);
    let found = match wanted {
        Wanted::Members => combining::numbered(ruby, &results)?,
        // making a Hash of the very Strings takes most of the time, and only Ruby can do that
        Wanted::Counts if combining::differ_mostly(&results) => None,
        _ => combining::count(ruby, &results)?.map(|groups| Grouped {
            group_of: Vec::new(),
            firsts: groups.firsts,
            counts: groups.counts,
        }),
    };
    let Some(found) = found else { return Ok(None) };
    Clock::start(ruby).step(ruby, || {
        let why = format!("{} keys found where the kernel left them", found.firsts.len());
        Step { what: "grouping", elements: len, kind: "objects", backend: "cpu", why }
    })?;
    let keys = match wanted {
        Wanted::Firsts => ruby.qnil().as_value(),
        _ => results.values(results.key, &found.firsts)?.as_value(),
    };
    let groups = match wanted {
        Wanted::Keys => ruby.qnil().as_value(),
        Wanted::Counts => combining::counts(ruby, &found.counts)?.as_value(),
        _ => ruby.obj_wrap(Told(Mutex::new(found))).as_value(),
    };
    Ok(Some(ruby.ary_new_from_values(&[keys, groups])))
}

/// Which keys are equal.
enum Grouping {
    /// The groups, and the key of each.
    Known(Grouped, RArray),
    /// Ruby must decide. The keys as Ruby's values.
    Rubys(RArray),
}

fn grouping(ruby: &Ruby, clock: &mut Clock, keys: Value, told: Option<&Told>) -> Result<Grouping, Error> {
    if let Some(Told(found)) = told {
        // their memory is not left to the GC
        let keys = RArray::from_value(keys).unwrap_or_else(|| ruby.ary_new());
        return Ok(Grouping::Known(std::mem::take(&mut found.lock()), keys));
    }
    let keys = match Given::of(keys)? {
        Given::Numbers(dtype, buffer) => match grouping_of(ruby, clock, dtype, &buffer)? {
            Some((grouped, firsts)) => return Ok(Grouping::Known(grouped, firsts)),
            None => clock.measure(Phase::Unpack, || Given::Numbers(dtype, buffer).list(ruby))?,
        },
        Given::List(keys) => {
            tell_of_list(ruby, clock, "grouping", keys)?;
            keys
        }
    };
    let Some(grouped) = grouping_in(ruby, clock, keys, When::Always)? else { return Ok(Grouping::Rubys(keys)) };
    let firsts = picked(ruby, keys, grouped.firsts.iter().copied())?;
    Ok(Grouping::Known(grouped, firsts))
}

/// `Ikra.__grouped(list, keys, groups)`: a Hash from each key to the elements that have it, as `group_by` makes it.
/// `keys` are those of elements, or those of `groups`.
///
/// # Errors
/// What `hash` and `eql?` of keys raise; DeviceError and its subclasses; what interrupts raise.
pub fn grouped(ruby: &Ruby, list: RArray, keys: Value, groups: Option<&Told>) -> Result<RHash, Error> {
    let mut clock = Clock::start(ruby);
    let grouping = grouping(ruby, &mut clock, keys, groups)?;
    clock.measure(Phase::Unpack, || match grouping {
        Grouping::Known(grouped, keys) => by_groups(ruby, list, &grouped, keys),
        Grouping::Rubys(keys) => by_rubys_hash(ruby, list, keys),
    })
}

/// `Ikra.__grouped_by_itself(list)`: the same for elements that are their own keys. nil where the caller must use
/// Ruby's method.
///
/// # Errors
/// NoMemoryError; what interrupts raise.
pub fn grouped_by_itself(ruby: &Ruby, list: RArray) -> Result<Option<RHash>, Error> {
    let mut clock = clock_of(ruby, "grouping", list)?;
    let Some(grouped) = grouping_in(ruby, &mut clock, list, When::FasterThanGroups)? else {
        clock.forget();
        return Ok(None);
    };
    clock.measure(Phase::Unpack, || {
        let keys = picked(ruby, list, grouped.firsts.iter().copied())?;
        by_groups(ruby, list, &grouped, keys).map(Some)
    })
}

/// Elements that are distributed to their groups at once. The cache of a core has room for them.
const AT_ONCE: usize = 1 << 16;
/// With fewer of them for each group, groups are made one by one.
const MIN_EACH: usize = 8;

/// A Hash from each group's key to its elements.
fn by_groups(ruby: &Ruby, list: RArray, grouped: &Grouped, keys: RArray) -> Result<RHash, Error> {
    let Grouped { group_of, counts, .. } = grouped;
    let mut both = Filling::new(ruby, 2 * counts.len());
    if counts.len() * MIN_EACH <= group_of.len().min(AT_ONCE) {
        for (group, count) in counts.iter().enumerate() {
            both.push(at(keys, group))?;
            both.push(ruby.ary_new_capa(*count as usize).as_value())?;
        }
        let both = both.done()?;
        distribute(ruby, list, grouped, both)?;
        return list::hash(ruby, both);
    }
    let Members { order, starts } = keeping_gvl(ruby, |on| Members::of(on, grouped))?;
    for (group, bounds) in starts.windows(2).enumerate() {
        both.push(at(keys, group))?;
        both.push(picked_few(ruby, list, &order[bounds[0] as usize..bounds[1] as usize])?.as_value())?;
    }
    list::hash(ruby, both.done()?)
}

/// Appends the elements of a list to the Arrays of their groups, which alternate with keys in `both`. These are empty,
/// and have room for all.
fn distribute(ruby: &Ruby, list: RArray, grouped: &Grouped, both: RArray) -> Result<(), Error> {
    let polls = Polls::new();
    let mut values = room::filled(ruby.qnil().as_value(), AT_ONCE.min(grouped.group_of.len()));
    let mut ends: Vec<u32> = room::filled(0, grouped.counts.len());
    for (some, first) in grouped.group_of.chunks(AT_ONCE).zip((0..).step_by(AT_ONCE)) {
        polls.look_now(ruby)?;
        ends.fill(0);
        some.iter().for_each(|group| ends[*group as usize] += 1);
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        // From here to the end of the loop nothing allocates, because the Arrays have room. So no GC runs, which would
        // neither mark nor follow what `values` holds.
        for (at, group) in (first..).zip(some) {
            let end = &mut ends[*group as usize];
            values[*end as usize] = self::at(list, at);
            *end += 1;
        }
        let mut start = 0;
        for (group, end) in ends.iter().map(|end| *end as usize).enumerate().filter(|(_, end)| *end > 0) {
            if start < end {
                RArray::try_convert(at(both, 2 * group + 1))?.cat(&values[start..end])?;
            }
            start = end;
        }
    }
    Ok(())
}

/// `Ikra.__split(keys, values, starts)`: a Hash from each key to its values: those from its start to the next one.
///
/// # Errors
/// What `hash` and `eql?` of keys raise; NoMemoryError; what interrupts raise.
pub fn split(ruby: &Ruby, keys: RArray, values: RArray, starts: RArray) -> Result<RHash, Error> {
    let mut both = Filling::new(ruby, 2 * keys.len());
    let start = |group| usize::try_convert(at(starts, group));
    let mut from = start(0)?;
    for group in 0..keys.len() {
        let to = start(group + 1)?;
        let own = values.subseq(from, to - from).unwrap_or_else(|| ruby.ary_new());
        both.push(at(keys, group))?;
        both.push(own.as_value())?;
        from = to;
    }
    list::hash(ruby, both.done()?)
}

fn by_rubys_hash(ruby: &Ruby, list: RArray, keys: RArray) -> Result<RHash, Error> {
    let (groups, polls) = (ruby.hash_new(), Polls::new());
    for index in 0..keys.len() {
        polls.look(ruby)?;
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

/// `Ikra.__uniq(list)`: each element once, as `uniq` gives them. nil where the caller must use Ruby's method.
///
/// # Errors
/// NoMemoryError; what interrupts raise.
pub fn uniq(ruby: &Ruby, list: RArray) -> Result<Option<RArray>, Error> {
    let mut clock = clock_of(ruby, "grouping", list)?;
    let count = |plan, threads, elements| Folding::new(groups::seed(), plan, threads, elements, &Count);
    let Some((_, found)) = listed::grouped(ruby, &mut clock, list, When::FasterThanUniq, count)? else {
        clock.forget();
        return Ok(None);
    };
    clock.measure(Phase::Unpack, || picked(ruby, list, found.firsts.into_iter())).map(Some)
}

/// `Ikra.__distinct(list, keys, groups)`: the first element of each key. `keys` are those of elements, or nil, with the
/// `groups`.
///
/// # Errors
/// What `hash` and `eql?` of keys raise; DeviceError and its subclasses; what interrupts raise.
pub fn distinct(ruby: &Ruby, list: RArray, keys: Value, groups: Option<&Told>) -> Result<RArray, Error> {
    let mut clock = Clock::start(ruby);
    let grouping = grouping(ruby, &mut clock, keys, groups)?;
    clock.measure(Phase::Unpack, || {
        let keys = match grouping {
            Grouping::Known(Grouped { firsts, .. }, _) => return picked(ruby, list, firsts.into_iter()),
            Grouping::Rubys(keys) => keys,
        };
        let (seen, out, polls) = (ruby.hash_new(), ruby.ary_new(), Polls::new());
        for index in 0..keys.len() {
            polls.look(ruby)?;
            let key = at(keys, index);
            if !seen.lookup2::<_, _, bool>(key, false)? {
                seen.aset(key, true)?;
                out.push(at(list, index))?;
            }
        }
        Ok(out)
    })
}

/// How pairs are grouped.
#[derive(Clone, Copy, Default)]
pub struct Grouper {
    /// What the values of a group combine to, where tables can do that.
    pub combine: Option<Combine>,
    pub engine: Engine,
}

/// The places of first members, as a buffer.
fn starts(ruby: &Ruby, members: &Members) -> Value {
    let mut column = HostColumn::zeroed(Dtype::I64.storage(), members.starts.len());
    column.view_mut::<i64>().copy_from_slice(&members.starts);
    numbers(ruby, Dtype::I64, column)
}

/// What the elements of a section emitted: `[keys, values]`, in order. With a `grouper`: `[keys, values, starts]`.
/// Each key occurs once there, in the order of first pairs. The values of group `g` are those from `starts[g]` to
/// `starts[g + 1]`, in order. Only [`by_hash`] can group keys whose own methods compare them: then `starts` is nil.
/// `starts` is a buffer, and lists of numbers of one kind are. Keys of groups are an Array.
///
/// With `grouper.combine`, and where tables can combine values so: `[keys, values, nil, true]`, with one value for each
/// key.
///
/// # Errors
/// What [`combining::combined`] raises. Rows that mean nothing; NoMemoryError; RangeError for more pairs than 32 bits
/// can count; what interrupts raise.
pub fn pairs(unpacker: &Unpacker<'_>, slot: &SlotPlan, len: usize, grouper: Option<Grouper>) -> Result<RArray, Error> {
    let (ruby, out) = (unpacker.ruby, unpacker.ruby.ary_new());
    let Some(pairs) = unpacker.pairs(slot, len)? else {
        out.push(ruby.ary_new())?;
        out.push(ruby.ary_new())?;
        return Ok(out);
    };
    let list = |slot, rows: &[u32]| match pairs.numbers(slot, rows) {
        Some((dtype, column)) => Ok(numbers(ruby, dtype, column)),
        None => pairs.values(slot, rows).map(|values| values.as_value()),
    };
    if grouper.is_some() && !countable(pairs.rows.len()) {
        return Err(Error::new(ruby.exception_range_error(), "more than 4294967295 pairs were emitted"));
    }
    if let Some(Grouper { combine: Some(how), engine }) = grouper
        && let Some((keys, values)) = combining::combined(unpacker, &pairs, how, engine)?
    {
        out.push(keys)?;
        out.push(values)?;
        out.push(ruby.qnil())?;
        out.push(true)?;
        return Ok(out);
    }
    let known = if grouper.is_some() { combining::numbered(ruby, &pairs)? } else { None };
    let Some(groups) = known else {
        out.push(list(pairs.key, &pairs.rows)?)?;
        out.push(list(pairs.value, &pairs.rows)?)?;
        return Ok(out);
    };
    let firsts: Vec<u32> = room::collect(groups.firsts.iter().map(|pair| pairs.rows[*pair as usize]));
    let members = keeping_gvl(ruby, |on| Members::of(on, &groups))?;
    out.push(pairs.values(pairs.key, &firsts)?)?;
    if pairs.are_numbers(pairs.value) {
        let rows: Vec<u32> = room::collect(members.order.iter().map(|pair| pairs.rows[*pair as usize]));
        out.push(list(pairs.value, &rows)?)?;
    } else {
        // Values are made in the order in which they lie in memory.
        let values = pairs.values(pairs.value, &pairs.rows)?;
        out.push(picked(ruby, values, members.order.iter().copied())?)?;
    }
    out.push(starts(ruby, &members))?;
    Ok(out)
}

fn numbers(ruby: &Ruby, dtype: Dtype, column: HostColumn) -> Value {
    buffer::wrap(ruby, dtype, Arc::new(Buffer::from_column(column))).as_value()
}

/// `Ikra.__by_hash(keys, values)`: pairs, grouped as [`pairs`] gives them. Ruby's own Hash groups them, unless all keys
/// are immediate values.
///
/// # Errors
/// What `hash` and `eql?` of keys raise; NoMemoryError; RangeError as [`pairs`]; what interrupts raise.
pub fn by_hash(ruby: &Ruby, keys: Value, values: Value) -> Result<RArray, Error> {
    let (keys, values) = (Given::of(keys)?.list(ruby)?, Given::of(values)?.list(ruby)?);
    if !countable(keys.len()) {
        return Err(Error::new(ruby.exception_range_error(), "more than 4294967295 pairs were emitted"));
    }
    let mut clock = Clock::start(ruby);
    let (distinct, grouped) = match grouping_in(ruby, &mut clock, keys, When::Always)? {
        Some(grouped) => (picked(ruby, keys, grouped.firsts.iter().copied())?, grouped),
        None => grouped_by_ruby(ruby, keys)?,
    };
    let members = keeping_gvl(ruby, |on| Members::of(on, &grouped))?;
    let out = ruby.ary_new();
    out.push(distinct)?;
    out.push(picked(ruby, values, members.order.iter().copied())?)?;
    out.push(starts(ruby, &members))?;
    Ok(out)
}

/// Each key once, and the groups, by Ruby's own Hash.
fn grouped_by_ruby(ruby: &Ruby, keys: RArray) -> Result<(RArray, Grouped), Error> {
    let (numbers, distinct, polls) = (ruby.hash_new(), ruby.ary_new(), Polls::new());
    let mut grouped = Grouped::default();
    for index in 0..keys.len() {
        polls.look(ruby)?;
        let key = at(keys, index);
        let group = match numbers.lookup2::<_, _, Option<usize>>(key, ruby.qnil())? {
            Some(group) => group,
            None => {
                numbers.aset(key, distinct.len())?;
                distinct.push(key)?;
                room::push(&mut grouped.counts, 0);
                distinct.len() - 1
            }
        };
        grouped.counts[group] += 1;
        room::push(&mut grouped.group_of, group as u32);
    }
    Ok((distinct, grouped))
}
