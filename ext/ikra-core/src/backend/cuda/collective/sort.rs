//! Sorting: see `sort.cuh`.

use super::{Blocks, Machine, Parts, Text};
use crate::backend::collective::sort::Key;
use crate::error::Result;

const SORT: &str = include_str!("sort.cuh");
const BINS: u64 = 256;
const DIGIT: u64 = 8;
/// Threads of a pass, and of counting.
const PASS: u32 = 384;
const COUNTING: u32 = 256;
/// Blocks that count at once have at least so many keys each.
const COUNTED: u64 = 16_384;
/// From so many keys on, counts need wider words.
const MANY: u64 = 1 << 30;

/// What moves along with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    None,
    /// u32 from the first address to the second.
    Values(u64, u64),
    /// The keys' indices, as u32, to this address.
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

/// Keys of each thread.
fn items(key: Key) -> u64 {
    if key.bytes() == 8 { 14 } else { 22 }
}

/// Keys of a tile.
pub(super) fn tile(key: Key) -> u64 {
    u64::from(PASS) * items(key)
}

fn suffix(key: Key, descending: bool) -> String {
    format!("{}{}", ty(key), if descending { "_descending" } else { "" })
}

pub(super) fn counting(key: Key, descending: bool) -> Text {
    let kernel = format!("ikra_sort_count_{}", suffix(key, descending));
    let body = format!("count_digits<{}, {descending}>(args)", ty(key));
    Text::new(kernel, &[SORT], (COUNTING, 1), "CountArgs", &body)
}

pub(super) fn starting() -> Text {
    Text::new("ikra_sort_start".to_owned(), &[SORT], (BINS as u32, 1), "StartArgs", "start_digits(args)")
}

pub(super) fn pass(key: Key, descending: bool, payload: Payload, many: bool) -> Text {
    let (valued, moved) = match payload {
        Payload::None => ("NO_VALUES", ""),
        Payload::Values(..) => ("VALUES", "_values"),
        Payload::Indices(_) => ("INDICES", "_indices"),
    };
    let word = if many { "u64" } else { "u32" };
    let kernel = format!("ikra_sort_{}{moved}{}", suffix(key, descending), if many { "_many" } else { "" });
    let body = format!("sort_pass<{}, {descending}, {}, {valued}, {word}>(args)", ty(key), items(key));
    Text::new(kernel, &[SORT], (PASS, 2), "PassArgs", &body)
}

/// Queues that `count` keys at `keys` are written to `sorted` in their order, equal ones as they stand. `sorted` may be `keys`,
/// but for keys of one byte; what moves along may stay where it is likewise.
///
/// # Errors
/// `Memory`, `Device`.
pub fn sort(
    machine: &impl Machine,
    key: Key,
    descending: bool,
    keys: u64,
    count: u64,
    sorted: u64,
    payload: Payload,
) -> Result<()> {
    sort_by_digits(machine, (key, key.bytes() as u64), descending, keys, count, sorted, payload)
}

/// As [`sort`], by so many of the keys' lowest digits of 8 bits, which are all that differ. Of an odd number of them, nothing
/// may stay where it is.
///
/// # Errors
/// `Memory`, `Device`.
pub(super) fn sort_by_digits(
    machine: &impl Machine,
    (key, digits): (Key, u64),
    descending: bool,
    keys: u64,
    count: u64,
    sorted: u64,
    payload: Payload,
) -> Result<()> {
    if count == 0 {
        return Ok(());
    }
    let (bytes, tiles, many) = (key.bytes() as u64, count.div_ceil(tile(key)), count >= MANY);
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
    machine.run(
        &counting(key, descending),
        Blocks::Resident(count.div_ceil(COUNTED)),
        &mut [keys, count, at + bins],
    )?;
    machine.run(&starting(), Blocks::All(bytes), &mut [at + bins])?;

    let text = pass(key, descending, payload, many);
    let (mut from, mut from_values) = (keys, values);
    for digit in 0..digits {
        // The last pass ends where it should.
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
