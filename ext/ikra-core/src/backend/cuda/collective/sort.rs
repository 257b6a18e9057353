//! Sorting: see `sort.cuh`.

use super::{Blocks, Machine, Parts, Text};
use crate::backend::collective::sort::Key;
use crate::error::Result;

const SORT: &str = include_str!("sort.cuh");
const BINS: u64 = 256;
const DIGIT: u64 = 8;
/// Threads of a block that counts.
const COUNTING: u32 = 256;
/// Each block that counts has at least so many keys.
const COUNTED: u64 = 16_384;
/// From so many keys on, counts need words of 64 bits.
const MIN_WIDE_COUNT_KEYS: u64 = 1 << 30;

/// The payload: what moves along with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    None,
    /// Values, as u32, from the first address to the second.
    Values(u64, u64),
    /// The indices of the keys, as u32, to this address.
    Indices(u64),
}

fn ty(key: Key) -> &'static str {
    match key {
        Key::U8 => "u8",
        Key::U32 => "u32",
        Key::I32 => "i32",
        Key::F32 => "f32",
        Key::U64 => "u64",
        Key::I64 => "i64",
        Key::F64 => "f64",
    }
}

/// Parameters that only affect how long a pass takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// Threads of a block: a multiple of 32, and at least one for each value of a digit.
    pub threads: u32,
    /// The fewest blocks that a multiprocessor must be able to run at once, which limits the registers of a thread.
    pub blocks: u32,
    /// Keys of each thread.
    pub items: u32,
}

impl Tuning {
    /// The fastest on an H200 of those that `examples/collective.rs` tries.
    pub fn of(key: Key, moves: bool) -> Self {
        let (threads, blocks, items) = match (key.bytes(), moves) {
            (8, false) => (256, 4, 16),
            (8, true) => (384, 3, 12),
            (_, false) => (384, 3, 18),
            (_, true) => (384, 2, 22),
        };
        Self { threads, blocks, items }
    }
    /// Keys of a tile.
    pub(super) fn tile(self) -> u64 {
        u64::from(self.threads) * u64::from(self.items)
    }
}

/// How keys compare.
#[derive(Clone, Copy, Debug)]
pub(super) struct By {
    pub key: Key,
    pub descending: bool,
    /// Whether to use the exact order of Floats: by the signs of zeroes and the bits of NaNs.
    pub exact: bool,
}

impl By {
    fn suffix(self) -> String {
        let float = matches!(self.key, Key::F32 | Key::F64);
        let exact = if float && self.exact { "_exact" } else { "" };
        format!("{}{exact}{}", ty(self.key), if self.descending { "_descending" } else { "" })
    }
    /// The form as arguments of a template.
    fn arguments(self) -> String {
        format!("{}, {}, {}", ty(self.key), self.descending, self.exact)
    }
}

pub(super) fn counting(by: By) -> Text {
    let kernel = format!("ikra_sort_count_{}", by.suffix());
    let body = format!("count_digits<{}>(args)", by.arguments());
    Text::new(kernel, &[SORT], (COUNTING, 1), "CountArgs", &body)
}

pub(super) fn starting() -> Text {
    Text::new("ikra_sort_start".to_owned(), &[SORT], (BINS as u32, 1), "StartArgs", "start_digits(args)")
}

pub(super) fn pass(by: By, payload: Payload, many: bool, tuning: Tuning) -> Text {
    let (valued, moved) = match payload {
        Payload::None => ("NO_VALUES", ""),
        Payload::Values(..) => ("VALUES", "_values"),
        Payload::Indices(_) => ("INDICES", "_indices"),
    };
    let word = if many { "u64" } else { "u32" };
    let Tuning { threads, blocks, items } = tuning;
    let mut kernel = format!("ikra_sort_{}{moved}{}", by.suffix(), if many { "_many" } else { "" });
    if tuning != Tuning::of(by.key, payload != Payload::None) {
        kernel += &format!("_{threads}_{blocks}_{items}");
    }
    let body = format!("sort_pass<{}, {threads}, {items}, {valued}, {word}>(args)", by.arguments());
    Text::new(kernel, &[SORT], (threads, blocks), "PassArgs", &body)
}

/// Keys to sort, and addresses for the result.
#[derive(Clone, Copy, Debug)]
pub struct Sorting {
    pub key: Key,
    pub descending: bool,
    pub keys: u64,
    pub count: u64,
    /// It may be `keys`, except for keys of one byte.
    pub sorted: u64,
    /// Likewise, its values may be sorted in place.
    pub payload: Payload,
}

/// Queues that keys are written in sorted order. Equal keys keep their order.
///
/// Without a payload, Floats are sorted in the exact order: -0.0 comes before 0.0, and NaNs are in the order of their
/// bits. With a payload, equal Floats keep their order, and the sorted keys lose the signs of zeroes and the bits of
/// NaNs.
///
/// # Errors
/// `Memory`, `Device`.
pub fn sort(machine: &impl Machine, sorting: Sorting) -> Result<()> {
    sort_tuned(machine, sorting, Tuning::of(sorting.key, sorting.payload != Payload::None))
}

/// As [`sort`], with other parameters than the fastest known ones.
///
/// # Errors
/// As [`sort`].
pub fn sort_tuned(machine: &impl Machine, sorting: Sorting, tuning: Tuning) -> Result<()> {
    let Sorting { key, descending, keys, count, sorted, payload } = sorting;
    let by = By { key, descending, exact: payload == Payload::None };
    sort_by_digits(machine, (by, key.bytes() as u64), keys, count, sorted, payload, tuning)
}

/// As [`sort`], by so many of the lowest digits of 8 bits; keys differ in no others. If their number is odd, nothing
/// may be sorted in place.
///
/// # Errors
/// `Memory`, `Device`.
pub(super) fn sort_by_digits(
    machine: &impl Machine,
    (by, digits): (By, u64),
    keys: u64,
    count: u64,
    sorted: u64,
    payload: Payload,
    tuning: Tuning,
) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let (bytes, tiles, many) = (by.key.bytes() as u64, count.div_ceil(tuning.tile()), count >= MIN_WIDE_COUNT_KEYS);
    let (values, sorted_values) = match payload {
        Payload::None => (0, 0),
        Payload::Values(from, to) => (from, to),
        Payload::Indices(to) => (0, to),
    };
    let in_place = sorted == keys || (values != 0 && values == sorted_values);
    assert!(digits.is_multiple_of(2) || !in_place, "what goes to and fro an odd number of times does not stay");
    let seen_bytes = tiles * BINS * if many { 8 } else { 4 };
    let mut parts = Parts::default();
    let bins = parts.add(bytes * BINS * 8);
    let next = parts.add(8 * bytes);
    let cleared = parts.bytes;
    let seen = parts.add(seen_bytes);
    let (between, values_between) = if digits > 1 { (count * bytes, count * 4) } else { (0, 0) };
    let other = parts.add(between);
    let other_values = parts.add(if payload == Payload::None { 0 } else { values_between });
    let scratch = machine.allocate(parts.bytes)?;
    let at = scratch.address();
    machine.fill(at, cleared, 0)?;
    machine.run(&counting(by), Blocks::Resident(count.div_ceil(COUNTED)), &mut [keys, count, at + bins])?;
    machine.run(&starting(), Blocks::All(bytes), &mut [at + bins])?;

    let text = pass(by, payload, many, tuning);
    let (mut from, mut from_values) = (keys, values);
    for digit in 0..digits {
        // the last pass must write to the final address
        let away = (digits - 1 - digit) % 2 == 1;
        let (to, to_values) = if away { (at + other, at + other_values) } else { (sorted, sorted_values) };
        machine.fill(at + seen, seen_bytes as usize, 0)?;
        let starts = at + bins + digit * BINS * 8;
        let (first, last) = (u64::from(digit == 0), u64::from(digit == digits - 1));
        let (seen, next) = (at + seen, at + next + digit * 8);
        let mut args = [from, to, from_values, to_values, count, starts, seen, next, digit * DIGIT, first, last];
        machine.run(&text, Blocks::All(tiles), &mut args)?;
        (from, from_values) = (to, to_values);
    }
    Ok(())
}
