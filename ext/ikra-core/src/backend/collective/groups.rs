//! Groups of equal keys, numbered in the order in which they first appear.
//!
//! Here: [`Grouped`], which tells the group of each element, and [`Members`], which tells the elements of each group.
//! Not here: the tables ([`super::table`]), and GPUs.

use super::monitor::{self, Engine};
use super::table::{Fed, Gathering, Grouping, Groups, Keys, Number, Plan, Seed};
use super::{Values, Workers};
use crate::error::Result;
use crate::memory::room;
use std::ops::Range;
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

/// Elements whose groups are being numbered.
pub struct Numbering {
    grouping: Grouping<'static, u32>,
    of: Vec<AtomicU32>,
    became: Vec<AtomicU32>,
}

impl Numbering {
    /// For so many elements in all.
    ///
    /// # Panics
    /// For more elements than 32 bits can count.
    pub fn new(plan: Plan, threads: usize, elements: usize) -> Self {
        let grouping = Grouping::new(seed(), plan, threads, elements);
        let became = room::collect((0..grouping.numbers() as u32).map(AtomicU32::new));
        Self { grouping, of: room::collect((0..elements).map(|_| AtomicU32::new(0))), became }
    }
}

impl Gathering for Numbering {
    type Found = Grouped;

    fn feed<K: Keys + ?Sized>(&mut self, on: Workers<'_>, keys: &K, stretch: Range<usize>) -> Result<Fed> {
        self.grouping.feed(on, keys, &Number { of: &self.of, became: &self.became }, stretch)
    }

    fn finish<K: Keys + ?Sized>(self, on: Workers<'_>, keys: &K) -> Result<Option<Grouped>> {
        let Self { grouping, of, became } = self;
        let found = grouping.finish(on, keys, &Number { of: &of, became: &became })?;
        let Some(Groups { firsts, counts, states, .. }) = found else { return Ok(None) };
        let most = states.iter().map(|number| *number as usize + 1).max().unwrap_or(0);
        let mut ranks = room::filled(0, most.max(became.len()));
        for (number, rank) in states.iter().zip(0..) {
            ranks[*number as usize] = rank;
        }
        for number in 0..became.len() {
            ranks[number] = ranks[became[number].load(Relaxed) as usize];
        }
        let told = on.all(of.chunks(STRETCH).collect(), |of: &[AtomicU32]| {
            of.iter().for_each(|group| group.store(ranks[group.load(Relaxed) as usize], Relaxed));
        })?;
        let group_of = of.into_iter().map(AtomicU32::into_inner).collect();
        Ok(told.map(|_| Grouped { group_of, firsts, counts }))
    }
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
    let mut numbering = Numbering::new(plan, workers.threads.count(), count);
    match numbering.feed(workers, keys, 0..count)? {
        Fed::Done => Ok(numbering.finish(workers, keys)?.map(Some)),
        Fed::Cancelled => Ok(None),
        Fed::Foreign => Ok(Some(None)),
    }
}

/// The members of each group.
#[derive(Debug, PartialEq, Eq)]
pub struct Members {
    /// The elements, group by group, each group in order.
    pub order: Vec<u32>,
    /// The place in `order` of each group's first member, and at the end the number of elements.
    pub starts: Vec<i64>,
}

/// With fewer members per group and thread, one thread is faster than several that count apart.
const MIN_MEMBERS: usize = 8;

impl Members {
    /// A stable counting sort by group. Each thread has a range of elements, and places of its own in each group.
    ///
    /// # Errors
    /// `Device` when the system cannot start threads.
    pub fn of(workers: Workers<'_>, grouped: &Grouped) -> Result<Self> {
        let (elements, groups) = (grouped.group_of.len(), grouped.counts.len());
        let mut starts: Vec<i64> = room::with_capacity(groups + 1);
        let mut next = 0;
        for count in &grouped.counts {
            starts.push(next);
            next += i64::from(*count);
        }
        starts.push(next);
        let threads = workers.threads.count();
        let shares = if groups * threads * MIN_MEMBERS > elements { 1 } else { threads.min(elements / STRETCH).max(1) };
        let shares: Vec<&[u32]> = room::collect(grouped.group_of.chunks(elements.div_ceil(shares).max(1)));
        let mut next: Vec<u32> = room::collect(starts[..groups].iter().map(|start| *start as u32));
        let counted = workers.several(shares.len().saturating_sub(1), |share| {
            let mut counts: Vec<u32> = room::filled(0, groups);
            shares[share].iter().for_each(|group| counts[*group as usize] += 1);
            counts
        })?;
        let mut pieces = room::with_capacity(shares.len());
        let mut first = 0;
        for (share, groups) in shares.iter().enumerate() {
            let places = if let Some(counts) = counted.get(share) {
                let places = room::copied(&next);
                next.iter_mut().zip(counts).for_each(|(next, count)| *next += count);
                places
            } else {
                std::mem::take(&mut next)
            };
            pieces.push((first, *groups, places));
            first += groups.len() as u32;
        }
        let order: Vec<AtomicU32> = room::collect((0..elements).map(|_| AtomicU32::new(0)));
        let place = |(first, groups, mut places): (u32, &[u32], Vec<u32>)| {
            for (element, group) in (first..).zip(groups) {
                let place = &mut places[*group as usize];
                order[*place as usize].store(element, Relaxed);
                *place += 1;
            }
        };
        if pieces.len() < 2 {
            pieces.into_iter().for_each(place)
        } else {
            drop(workers.threads.map(pieces, place))
        }
        Ok(Self { order: order.into_iter().map(AtomicU32::into_inner).collect(), starts })
    }
}

impl Keys for Values<'_> {
    fn words(&self, first: usize, out: &mut [u64]) -> bool {
        fn all<T: Copy>(values: &[T], first: usize, out: &mut [u64], word: impl Fn(T) -> u64) {
            let values = &values[first..first + out.len()];
            out.iter_mut().zip(values).for_each(|(out, value)| *out = word(*value));
        }
        match self {
            Values::I64(x) => all(x, first, out, i64::cast_unsigned),
            Values::I32(x) => all(x, first, out, |x| i64::from(x).cast_unsigned()),
            Values::U8(x) => all(x, first, out, u64::from),
            Values::F64(x) => all(x, first, out, float_word),
            Values::F32(x) => all(x, first, out, |x| float_word(x.into())),
        }
        true
    }

    fn same(&self, _: u64, _: usize, _: usize) -> bool {
        true
    }
}

/// Groups numbers. All NaNs are in one group. None: cancelled.
///
/// # Errors
/// As [`numbered`].
///
/// # Panics
/// As [`numbered`].
pub fn of_values(workers: Workers<'_>, values: Values<'_>) -> Result<Option<Grouped>> {
    let plan = monitor::look(seed(), &values, values.len(), !values.element().is_float()).plan(Engine::Auto);
    Ok(numbered(workers, plan, &values, values.len())?.flatten())
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
    fn members_are_in_order() {
        for n in [0, 1, 2, 1000, (1 << 14) + 1, 200_003] {
            for kinds in [1, 2, 100, n as u64 / 20 + 1, 1 << 40] {
                let mut r = Random(n as u64 + kinds);
                let grouped = plain(&(0..n).map(|_| r.word() % kinds).collect::<Vec<_>>());
                let members = on_host(|workers| Members::of(workers, &grouped).map(Some));
                let mut expected = vec![Vec::new(); grouped.counts.len()];
                grouped.group_of.iter().zip(0..).for_each(|(group, i)| expected[*group as usize].push(i));
                let found = members.starts.windows(2).map(|ends| &members.order[ends[0] as usize..ends[1] as usize]);
                assert!(found.eq(&expected), "{n} of {kinds}");
                assert_eq!(members.order.len(), n);
            }
        }
    }

    #[test]
    fn floats_are_grouped_by_value() {
        let zeroes = [0.0, -0.0, f64::NAN, -f64::NAN].map(float_word);
        assert_eq!(on_host(|workers| of_words(workers, &zeroes)).counts, [2, 2]);
    }
}
