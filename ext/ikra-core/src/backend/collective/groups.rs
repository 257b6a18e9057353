//! Groups of equal keys, numbered in the order in which they first appear.
//!
//! Here: [`Grouped`], the result for `group_by`, `tally` and `uniq`, and [`groups`] on the host, for keys that can be
//! hashed and compared by their indices. Not here: GPUs.

use super::Workers;
use crate::error::Result;
use crate::memory::room;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The groups of a list of elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grouped {
    /// The number of each element's group.
    pub group_of: Vec<u32>,
    /// The first element of each group.
    pub firsts: Vec<u32>,
    /// The number of elements of each group.
    pub counts: Vec<u32>,
}

/// From so many elements on, several threads group them.
const MIN_PARALLEL_ELEMENTS: usize = 1 << 16;
/// How many elements are grouped between two looks at the cancel token.
const STRETCH: usize = 1 << 14;

/// A hash: equal for equal words, and different for most others.
pub fn hash(word: u64) -> u64 {
    let word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    word ^ word >> 32
}

/// The word by which a Float is grouped. Both zeroes have one word, and so have all NaNs.
pub fn float_word(x: f64) -> u64 {
    super::reduce::canonical(x + 0.0).to_bits()
}

/// A hash table with open addressing. It maps elements to numbers of groups, and compares with their first elements.
struct Table {
    /// The number of a group plus 1; 0: an empty slot.
    slots: Vec<u32>,
    hashes: Vec<u64>,
    firsts: Vec<u32>,
    counts: Vec<u32>,
}

impl Table {
    fn new() -> Self {
        Self { slots: vec![0; 256], hashes: Vec::new(), firsts: Vec::new(), counts: Vec::new() }
    }

    /// The group of an element, which may be new.
    fn group(&mut self, i: usize, hash: u64, same: &impl Fn(usize, usize) -> bool) -> u32 {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            match self.slots[slot].checked_sub(1) {
                None => break,
                Some(group) => {
                    let g = group as usize;
                    if self.hashes[g] == hash && same(self.firsts[g] as usize, i) {
                        self.counts[g] += 1;
                        return group;
                    }
                }
            }
            slot = (slot + 1) & mask;
        }
        let group = self.firsts.len() as u32;
        self.slots[slot] = group + 1;
        room::push(&mut self.hashes, hash);
        room::push(&mut self.firsts, i as u32);
        room::push(&mut self.counts, 1);
        if self.firsts.len() * 2 > self.slots.len() {
            self.grow();
        }
        group
    }

    fn grow(&mut self) {
        let mut slots = room::filled(0, self.slots.len() * 4);
        let mask = slots.len() - 1;
        for (hash, number) in self.hashes.iter().zip(1..) {
            let mut slot = *hash as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            slots[slot] = number;
        }
        self.slots = slots;
    }
}

/// Groups the elements `0..count`. Elements for which `same` is true must have equal hashes. None: cancelled.
///
/// Each thread goes over all elements and groups those whose hashes are in its share. Then the groups of all shares are
/// numbered by their first elements.
///
/// # Errors
/// `Device` when the system cannot start threads.
///
/// # Panics
/// For more elements than 32 bits can count.
pub fn groups(
    workers: Workers<'_>,
    count: usize,
    hash: impl Fn(usize) -> u64 + Sync,
    same: impl Fn(usize, usize) -> bool + Sync,
) -> Result<Option<Grouped>> {
    assert!(u32::try_from(count).is_ok(), "indices have 32 bits");
    let shares = if count < MIN_PARALLEL_ELEMENTS { 1 } else { workers.threads.count().max(1) };
    let group_of = room::collect((0..count).map(|_| AtomicU32::new(0)));
    // the upper half of a hash chooses the share, the lower half the slot
    let share_of = |hash: u64| ((hash >> 32) * shares as u64) >> 32;
    let tables = workers.several(shares, |share| {
        let mut table = Table::new();
        for start in (0..count).step_by(STRETCH) {
            if workers.cancel.is_cancelled() {
                return None;
            }
            for (i, group) in group_of.iter().enumerate().take(count.min(start + STRETCH)).skip(start) {
                let hash = hash(i);
                if share_of(hash) == share as u64 {
                    group.store(table.group(i, hash, &same), Relaxed);
                }
            }
        }
        Some(table)
    })?;
    let Some(tables): Option<Vec<Table>> = tables.into_iter().collect() else { return Ok(None) };
    if let [table] = &tables[..] {
        let group_of = group_of.into_iter().map(AtomicU32::into_inner).collect();
        return Ok(Some(Grouped {
            group_of,
            firsts: room::copied(&table.firsts),
            counts: room::copied(&table.counts),
        }));
    }
    let mut all: Vec<(u32, u32, usize, usize)> =
        room::with_capacity(tables.iter().map(|table| table.firsts.len()).sum());
    for (share, table) in tables.iter().enumerate() {
        all.extend(table.firsts.iter().zip(&table.counts).enumerate().map(|(g, (first, n))| (*first, *n, share, g)));
    }
    all.sort_unstable();
    let mut numbers: Vec<Vec<u32>> = tables.iter().map(|table| room::filled(0, table.firsts.len())).collect();
    all.iter().zip(0..).for_each(|((_, _, share, group), number)| numbers[*share][*group] = number);
    let pieces = count.div_ceil(STRETCH);
    let told = workers.each(pieces, |p| {
        for (i, group) in group_of.iter().enumerate().take(count.min((p + 1) * STRETCH)).skip(p * STRETCH) {
            let share = share_of(hash(i)) as usize;
            group.store(numbers[share][group.load(Relaxed) as usize], Relaxed);
        }
    })?;
    Ok(told.map(|_| Grouped {
        group_of: group_of.into_iter().map(AtomicU32::into_inner).collect(),
        firsts: room::collect(all.iter().map(|a| a.0)),
        counts: room::collect(all.iter().map(|a| a.1)),
    }))
}

/// Groups words. None: cancelled.
///
/// # Errors
/// As [`groups`].
///
/// # Panics
/// As [`groups`].
pub fn of_words(workers: Workers<'_>, words: &[u64]) -> Result<Option<Grouped>> {
    groups(workers, words.len(), |i| hash(words[i]), |i, j| words[i] == words[j])
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Random, on_host};
    use super::*;
    use std::collections::HashMap;

    /// Groups one element after the other, with a map of the standard library.
    fn plain(words: &[u64]) -> Grouped {
        let mut known = HashMap::new();
        let mut out = Grouped::default();
        for (i, word) in words.iter().enumerate() {
            let group = *known.entry(*word).or_insert(out.firsts.len());
            if group == out.firsts.len() {
                out.firsts.push(i as u32);
                out.counts.push(0);
            }
            out.counts[group] += 1;
            out.group_of.push(group as u32);
        }
        out
    }

    #[test]
    fn groups_are_numbered_as_they_appear() {
        for n in [0, 1, 2, 33, 1000, MIN_PARALLEL_ELEMENTS - 1, MIN_PARALLEL_ELEMENTS, 200_003] {
            for kinds in [1, 2, 100, 1 << 40] {
                let mut r = Random(n as u64 + kinds);
                let words: Vec<u64> = (0..n).map(|_| r.word() % kinds).collect();
                assert_eq!(on_host(|workers| of_words(workers, &words)), plain(&words), "{n} of {kinds}");
            }
        }
        let sorted: Vec<u64> = (0..100_000).map(|i| (i / 3) << 32).collect();
        assert_eq!(on_host(|workers| of_words(workers, &sorted)), plain(&sorted));
    }

    #[test]
    fn keys_of_any_kind_are_grouped_by_their_indices() {
        let words = ["a", "b", "a", "", "b", "a"];
        let same = |i: usize, j: usize| words[i] == words[j];
        let found = on_host(|workers| groups(workers, words.len(), |i| hash(words[i].len() as u64), same));
        assert_eq!((&found.group_of[..], &found.firsts[..]), (&[0, 1, 0, 2, 1, 0][..], &[0, 1, 3][..]));
        assert_eq!(found.counts, [3, 2, 1]);
        let zeroes = [0.0, -0.0, f64::NAN, -f64::NAN].map(float_word);
        assert_eq!(on_host(|workers| of_words(workers, &zeroes)).counts, [2, 2]);
    }
}
