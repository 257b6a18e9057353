//! Groups of equal keys, numbered in the order in which they first appear.
//!
//! Here: [`Grouped`], which tells the group of each element. Not here: the tables ([`super::table`]), and GPUs.

use super::Workers;
use super::monitor::{self, Engine};
use super::table::{Fed, Grouping, Groups, Keys, Number, Plan, Seed};
use crate::error::Result;
use crate::memory::room;
use std::sync::LazyLock;
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

/// How many elements are renumbered at once.
const STRETCH: usize = 1 << 14;

/// The seed of this process.
static SEED: LazyLock<Seed> = LazyLock::new(Seed::default);

/// The seed of this process. Nothing that a program sees depends on it.
pub fn seed() -> &'static Seed {
    &SEED
}

/// The word by which a Float is grouped. Both zeroes have one word, and so have all NaNs.
pub fn float_word(x: f64) -> u64 {
    super::reduce::canonical(x + 0.0).to_bits()
}

/// The group of each of the elements `0..count`. None: cancelled. Within that, None: some key has no word.
///
/// # Errors
/// `Device` when the system cannot start threads.
///
/// # Panics
/// For more elements than 32 bits can count.
pub fn numbered<K: Keys + ?Sized>(
    workers: Workers<'_>,
    plan: Plan,
    keys: &K,
    count: usize,
) -> Result<Option<Option<Grouped>>> {
    let mut grouping = Grouping::new(seed(), plan, workers.threads.count(), count);
    let number = || AtomicU32::new(0);
    let of: Vec<AtomicU32> = room::collect((0..count).map(|_| number()));
    let became = room::collect((0..grouping.numbers() as u32).map(AtomicU32::new));
    let fold = Number { of: &of, became: &became };
    match grouping.feed(workers, keys, &fold, 0..count)? {
        Fed::Done => {}
        Fed::Cancelled => return Ok(None),
        Fed::Foreign => return Ok(Some(None)),
    }
    let Some(Groups { firsts, counts, states, .. }) = grouping.finish(workers, keys, &fold)? else { return Ok(None) };
    let most = states.iter().map(|number| *number as usize + 1).max().unwrap_or(0);
    let mut ranks = room::filled(0, most.max(became.len()));
    for (number, rank) in states.iter().zip(0..) {
        ranks[*number as usize] = rank;
    }
    for number in 0..became.len() {
        ranks[number] = ranks[became[number].load(Relaxed) as usize];
    }
    let told = workers.all(of.chunks(STRETCH).collect(), |of: &[AtomicU32]| {
        of.iter().for_each(|group| group.store(ranks[group.load(Relaxed) as usize], Relaxed));
    })?;
    let group_of = of.into_iter().map(AtomicU32::into_inner).collect();
    Ok(told.map(|_| Some(Grouped { group_of, firsts, counts })))
}

/// Groups words. None: cancelled.
///
/// # Errors
/// As [`numbered`].
///
/// # Panics
/// As [`numbered`].
pub fn of_words(workers: Workers<'_>, words: &[u64]) -> Result<Option<Grouped>> {
    let plan = monitor::look(seed(), words, words.len(), true).plan(Engine::Auto);
    Ok(numbered(workers, plan, words, words.len())?.flatten())
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
        for n in [0, 1, 2, 33, 1000, 1 << 16, 200_003] {
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
    fn floats_are_grouped_by_value() {
        let zeroes = [0.0, -0.0, f64::NAN, -f64::NAN].map(float_word);
        assert_eq!(on_host(|workers| of_words(workers, &zeroes)).counts, [2, 2]);
    }
}
