//! Job reordering: sorts elements by class, so that the threads of a warp take the same branches (Springer & Masuhara
//! 2016, §4.3).
//!
//! Here: [`by_class`], a counting sort of class tags by several threads. Not here: what the tags are of, and when the
//! order is worth it (the bridge asks a program's [`crate::ir::Jobs`]). Invariant: the sort is stable for any number of
//! threads, so elements of one class keep their order.
//!
//! The sort makes two passes over all tags: one counts, one places. When equal tags follow each other, a counter is
//! loaded right after it was stored, which costs a processor several cycles. So each thread works on several stretches
//! at once, each with counters of its own. With few groups, tags are compared with each group in vectors, and no tag is
//! counted singly.

use crate::backend::threads::Threads;
use crate::backend::vectors::{Work, widest};
use crate::ir::Storage;
use crate::memory::ahead;
use crate::memory::column::HostColumn;

/// Marks elements without a class, and padding of a warp.
pub const NONE: u32 = u32::MAX;
/// Stretches on which a thread works at once.
const LANES: usize = 4;
/// Elements of a stretch, with few groups and with more. The first cache lines of a group in a stretch are not
/// prefetched. So a stretch must have many lines of each group.
const STRETCH: usize = 4096;
const LONG_STRETCH: usize = 4 * STRETCH;
const _: () = assert!(STRETCH <= u16::MAX as usize);
/// How far ahead rows are prefetched: the next cache line but one.
const AHEAD: usize = 32;
/// Up to so many groups, tags are compared in vectors; with more, counting each tag is as fast.
const MAX_GROUPS_COUNTED_TOGETHER: usize = 24;
/// From so many elements on, several threads work; with fewer, one thread is done before the others wake up.
const MIN_PARALLEL_ELEMENTS: usize = LANES * STRETCH;

/// The places for the elements of one group and stretch.
type Place<'a> = std::slice::IterMut<'a, u32>;

/// The elements, ordered by tag. Those with tags of `groups - 1` and above come last, and [`NONE`] ends the list. Each
/// group begins at a multiple of the warp; [`NONE`] fills the gaps.
///
/// # Panics
/// If there are no groups, or more elements than a `u32` can number.
pub fn by_class(tags: &[u16], groups: usize, warp: usize, threads: &Threads) -> HostColumn {
    assert!(groups > 0 && tags.len() < NONE as usize);
    let stretch = if groups <= MAX_GROUPS_COUNTED_TOGETHER { STRETCH } else { LONG_STRETCH };
    let pieces = tags.chunks(LANES * stretch);
    let mut counts = vec![0u32; pieces.len() * LANES * groups];
    let work = pieces.clone().zip(counts.chunks_mut(LANES * groups)).collect();
    each(threads, tags.len(), work, |(tags, counts): (&[u16], &mut [u32])| count(tags, counts, groups, stretch));
    let of_group = |group: usize| counts.iter().skip(group).step_by(groups).map(|count| *count as usize).sum::<usize>();
    let sizes: Vec<usize> = (0..groups).map(of_group).collect();
    // no group begins behind the last one, so that one needs no padding
    let last = sizes.iter().rposition(|size| *size > 0);
    let room = |group: usize| if Some(group) == last { sizes[group] } else { sizes[group].next_multiple_of(warp) };
    let all = (0..groups).map(room).sum::<usize>() + 1;
    let mut column = HostColumn::to_fill(Storage::U32, all, None);
    let (order, end) = column.view_mut::<u32>().split_at_mut(all - 1);
    end.fill(NONE);
    // divides the places of each group among the stretches
    let mut places: Vec<Place<'_>> = counts.iter().map(|_| Place::default()).collect();
    let mut rest = order;
    for group in (0..groups).filter(|group| sizes[*group] > 0) {
        let (mut slots, behind) = rest.split_at_mut(room(group));
        rest = behind;
        for (place, count) in
            places.iter_mut().skip(group).step_by(groups).zip(counts.iter().skip(group).step_by(groups))
        {
            let (own, others) = slots.split_at_mut(*count as usize);
            *place = own.iter_mut();
            slots = others;
        }
        slots.fill(NONE);
    }
    let work = pieces.enumerate().zip(places.chunks_mut(LANES * groups)).collect();
    each(threads, tags.len(), work, |((at, tags), places): ((usize, &[u16]), &mut [Place<'_>])| {
        put(at * LANES * stretch, tags, places, groups, stretch);
    });
    column
}

fn each<I: Send>(threads: &Threads, rows: usize, pieces: Vec<I>, work: impl Fn(I) + Sync) {
    if rows > MIN_PARALLEL_ELEMENTS && threads.count() > 1 {
        threads.map(pieces, work);
    } else {
        pieces.into_iter().for_each(work);
    }
}

/// The group of a tag, where there are `last + 1` groups.
#[inline]
fn group(tag: u16, last: usize) -> usize {
    usize::from(tag).min(last)
}

/// The stretches of a piece. The last ones may be shorter or empty.
fn stretches(tags: &[u16], stretch: usize) -> [&[u16]; LANES] {
    std::array::from_fn(|lane| {
        let from = (lane * stretch).min(tags.len());
        &tags[from..tags.len().min(from + stretch)]
    })
}

/// The part of each stretch in a list that has an entry for each stretch and group.
fn lanes<T>(all: &mut [T], groups: usize) -> [&mut [T]; LANES] {
    let mut rest = all;
    std::array::from_fn(|_| rest.split_off_mut(..groups).expect("as many as there are lanes"))
}

/// Counts the elements of each group in each stretch of a piece.
fn count(tags: &[u16], counts: &mut [u32], groups: usize, stretch: usize) {
    let (of, counts) = (stretches(tags, stretch), lanes(counts, groups));
    if groups <= MAX_GROUPS_COUNTED_TOGETHER {
        return counts.into_iter().zip(of).for_each(|(counts, tags)| widest(Count { tags, counts }));
    }
    let count = |counts: &mut [u32], tag: u16| {
        let last = counts.len() - 1;
        counts[group(tag, last)] += 1;
    };
    if of[LANES - 1].len() == stretch {
        let ([a, b, c, d], [one, two, three, four]) = (of, counts);
        for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
            count(one, *a);
            count(two, *b);
            count(three, *c);
            count(four, *d);
        }
    } else {
        for (counts, tags) in counts.into_iter().zip(of) {
            tags.iter().for_each(|tag| count(counts, *tag));
        }
    }
}

/// Counts the tags of a stretch by group. The last group has all other tags.
struct Count<'a> {
    tags: &'a [u16],
    counts: &'a mut [u32],
}

impl Work for Count<'_> {
    type Result = ();

    #[inline(always)]
    fn run(self) {
        let Some((rest, counts)) = self.counts.split_last_mut() else { return };
        *rest = self.tags.len() as u32;
        for (group, count) in (0u16..).zip(counts) {
            // a stretch is shorter than the limit of this type
            let mut found = 0u16;
            self.tags.iter().for_each(|tag| found += u16::from(*tag == group));
            *count = u32::from(found);
            *rest -= *count;
        }
    }
}

/// Stores the elements of a piece at the places of their stretches.
fn put(first: usize, tags: &[u16], places: &mut [Place<'_>], groups: usize, stretch: usize) {
    let put = |places: &mut [Place<'_>], tag: u16, element: usize| {
        let last = places.len() - 1;
        // there are as many places as were counted
        let places = &mut places[group(tag, last)];
        if let Some(place) = places.next() {
            *place = element as u32;
            ahead::to_write(places.as_slice().as_ptr().wrapping_add(AHEAD));
        }
    };
    let (of, places) = (stretches(tags, stretch), lanes(places, groups));
    if of[LANES - 1].len() == stretch {
        let ([a, b, c, d], [one, two, three, four]) = (of, places);
        for (i, (((a, b), c), d)) in a.iter().zip(b).zip(c).zip(d).enumerate() {
            put(one, *a, first + i);
            put(two, *b, first + stretch + i);
            put(three, *c, first + 2 * stretch + i);
            put(four, *d, first + 3 * stretch + i);
        }
    } else {
        for (lane, (places, tags)) in places.into_iter().zip(of).enumerate() {
            tags.iter().enumerate().for_each(|(i, tag)| put(places, *tag, first + lane * stretch + i));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LANES, LONG_STRETCH, NONE, STRETCH, by_class};
    use crate::backend::threads::Threads;

    /// The same, computed in the simplest way.
    fn expected(tags: &[u16], groups: usize, warp: usize) -> Vec<u32> {
        let mut order = Vec::new();
        for group in 0..groups {
            let own = (0..tags.len()).filter(|i| usize::from(tags[*i]).min(groups - 1) == group).map(|i| i as u32);
            let own: Vec<u32> = own.collect();
            if !own.is_empty() {
                order.resize(order.len().next_multiple_of(warp), NONE);
            }
            order.extend(own);
        }
        order.push(NONE);
        order
    }

    #[test]
    fn elements_stand_by_class_each_group_at_a_warp_and_in_their_order() {
        let mut state = 5u64;
        let mut dice = |end: u64| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) % end
        };
        for threads in [1, 3] {
            let workers = Threads::new(threads);
            let few = [0, 1, 31, 33, STRETCH, LANES * STRETCH, LANES * STRETCH + 1, 3 * LANES * STRETCH - 5];
            let more = [LONG_STRETCH + 1, LANES * LONG_STRETCH, 2 * LANES * LONG_STRETCH + 7];
            for len in few.into_iter().chain(more) {
                for (groups, beyond) in [(1, 0), (2, 1), (4, 0), (7, 3), (24, 1), (25, 0), (300, 2)] {
                    for warp in [1, 32] {
                        let most = (groups + beyond) as u64;
                        let tags: Vec<u16> =
                            (0..len).map(|_| if dice(50) == 0 { u16::MAX } else { dice(most) as u16 }).collect();
                        let found = by_class(&tags, groups, warp, &workers);
                        assert!(found.view::<u32>() == expected(&tags, groups, warp), "{len} of {groups}, {warp}");
                    }
                }
            }
        }
    }
}
