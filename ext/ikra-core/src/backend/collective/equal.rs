//! One of several equal groups, found by several threads.
//!
//! Here: [`merge`], for lists whose elements may be equal, such as the groups that each thread of a launch has made.
//! Not here: what makes elements equal, and what becomes of their values ([`super::emitted`]).
//! Invariant: the first of equal elements stays, and elements keep their order, however many threads there are.

use super::Workers;
use crate::error::Result;
use crate::memory::room;

/// The most parts of all hashes, each of which one thread merges.
const PARTS: usize = 32;
/// The fewest elements of a part, on average.
const MIN_PART: usize = 1 << 12;
/// Elements whose hashes a thread computes at a time.
const PIECE: usize = 1 << 12;

/// Merges the values of equal elements into that of the first of them, and leaves out the others. `hash` gives None for
/// an element that is equal to no other. The result is None where the work is cancelled.
///
/// # Errors
/// `Device` when the system cannot start threads.
pub(super) fn merge<K: Copy + Sync, V: Copy + Send + Sync>(
    on: Workers<'_>,
    (keys, mut values): (Vec<K>, Vec<V>),
    hash: impl Fn(K) -> Option<u32> + Sync,
    same: impl Fn(K, K) -> bool + Sync,
    add: impl Fn(&mut V, V) + Sync,
) -> Result<Option<(Vec<K>, Vec<V>)>> {
    let count = (keys.len() / MIN_PART).clamp(1, PARTS).next_power_of_two();
    let pieces = keys.chunks(PIECE).collect();
    let hashed = |keys: &[K]| keys.iter().map(|key| hash(*key)).collect::<Vec<_>>();
    let Some(hashes) = on.all(pieces, hashed)? else { return Ok(None) };
    let merged = on.each(count, |part| {
        let own = |hash: u32| ((u64::from(hash) * count as u64) >> 32) as usize == part;
        let elements = hashes.iter().flatten().enumerate().filter_map(|(at, hash)| Some((at, (*hash)?)));
        let members = || elements.clone().filter(|(_, hash)| own(*hash));
        let mut found: Vec<(u32, V)> = Vec::new();
        // the upper half has a hash, the lower one the number of what was found, plus 1
        let mut slots: Vec<u64> = room::filled(0, (2 * members().count() + 1).next_power_of_two());
        let mask = slots.len() - 1;
        for (element, hash) in members() {
            let mut at = hash as usize & mask;
            let known = loop {
                let slot = slots[at];
                if slot == 0 {
                    room::push(&mut found, (element as u32, values[element]));
                    slots[at] = u64::from(hash) << 32 | found.len() as u64;
                    break None;
                }
                let known = slot as u32 as usize - 1;
                if (slot >> 32) as u32 == hash && same(keys[found[known].0 as usize], keys[element]) {
                    break Some(known);
                }
                at = (at + 1) & mask;
            };
            if let Some(known) = known {
                add(&mut found[known].1, values[element]);
            }
        }
        found
    })?;
    let Some(merged) = merged else { return Ok(None) };
    let alone = hashes.iter().flatten().zip(0u32..).filter(|(hash, _)| hash.is_none());
    let mut stays = room::filled(false, keys.len());
    alone.for_each(|(_, at)| stays[at as usize] = true);
    for (at, value) in merged.into_iter().flatten() {
        (stays[at as usize], values[at as usize]) = (true, value);
    }
    let (mut first, mut second) = (room::with_capacity(keys.len()), room::with_capacity(keys.len()));
    for ((key, value), _) in keys.into_iter().zip(values).zip(stays).filter(|(_, stays)| *stays) {
        first.push(key);
        second.push(value);
    }
    Ok(Some((first, second)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::on_host;
    use super::*;

    /// What one thread finds.
    fn expected(keys: &[u64], same: impl Fn(u64, u64) -> bool) -> (Vec<u64>, Vec<u64>) {
        let (mut found, mut counts) = (Vec::new(), Vec::new());
        for key in keys {
            match found.iter().position(|known| same(*known, *key)) {
                Some(at) => counts[at] += 1,
                None => {
                    found.push(*key);
                    counts.push(1);
                }
            }
        }
        (found, counts)
    }

    #[test]
    fn the_first_of_equal_elements_stays_in_its_place_with_all_values() {
        for (count, kinds) in [(0, 1), (1, 1), (50, 7), (9000, 1), (9000, 31), (200_000, 40), (70_000, 997)] {
            let keys: Vec<u64> = (0..count).map(|i| i * 7919 % 100_003 * 10).collect();
            let same = |one: u64, other: u64| one % kinds == other % kinds;
            for narrow in [u32::MAX, 3, 0] {
                let hash = |key: u64| Some(((key % kinds) as u32).wrapping_mul(0x9e37_79b9) & narrow);
                let values = vec![1; keys.len()];
                let found = on_host(|on| merge(on, (keys.clone(), values.clone()), hash, same, |sum, one| *sum += one));
                assert_eq!(found, expected(&keys, same), "{count} elements of {kinds} kinds");
            }
        }
    }

    #[test]
    fn elements_without_a_hash_are_equal_to_no_other() {
        let keys: Vec<u64> = (0..20_000).map(|i| i % 10).collect();
        let hash = |key: u64| (key > 4).then_some((key as u32).wrapping_mul(0x9e37_79b9));
        let values = vec![1u64; keys.len()];
        let (found, counts) =
            on_host(|on| merge(on, (keys.clone(), values.clone()), hash, |a, b| a == b, |sum, one| *sum += one));
        assert_eq!(found.len(), 10_000 + 5);
        assert_eq!(found[..15], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4]);
        assert_eq!(counts[..10], [1, 1, 1, 1, 1, 2000, 2000, 2000, 2000, 2000]);
    }
}
