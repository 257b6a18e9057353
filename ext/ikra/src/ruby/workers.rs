//! Workers that go over Ruby's heap.
//!
//! Here: [`map`] and [`share`], which spread pieces of work over all cores. The Ruby thread, which holds the GVL, does
//! some pieces itself and waits for the others. Not here: what may be read and written meanwhile
//! ([`crate::ruby::heap`]); collective operations, which run without the GVL and use the same threads.
//!
//! Workers call no function of Ruby that allocates, raises, or asks which thread it runs on. Of Ruby's functions they
//! call only those that [`crate::ruby::heap`] lists for workers. What they cannot do they leave to the Ruby thread.

use crate::ruby::gvl;
use ikra_core::backend::threads::Threads;
use ikra_core::memory::room;
use once_cell::sync::Lazy;
use std::ops::Range;

/// The threads of launches: those that are awake after packing can start the kernel at once. While a launch has them
/// all, the Ruby thread works alone.
pub static THREADS: Lazy<Threads> = Lazy::new(Threads::of_host);

/// Rows of one piece: a multiple of 64, so that no two pieces share a word of a bit set.
pub const PIECE: usize = 4096;
/// Pieces that each worker does between two checks for interrupts. They take some 10 ms.
const AT_ONCE: usize = 16;
/// Things of one piece that lie far from each other in memory.
pub const GROUP: usize = 64;
/// The fewest rows for which workers are woken. With fewer the Ruby thread is done before they are awake.
const MIN_PARALLEL_ROWS: usize = 4 * PIECE;

/// Whether there are enough rows to process them piece by piece, in order.
pub fn many(rows: usize) -> bool {
    rows >= MIN_PARALLEL_ROWS
}

/// Whether there are enough rows to wake workers.
pub fn pays(rows: usize) -> bool {
    many(rows) && THREADS.count() > 1
}

/// The results of the work on each piece, in order. The pieces have so many rows together.
pub fn map<T: Send, R: Send>(rows: usize, pieces: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    if pays(rows) { share(pieces, work) } else { alone(pieces, work) }
}

fn alone<T, R>(pieces: Vec<T>, work: impl Fn(T) -> R) -> Vec<R> {
    let polled = |piece| {
        gvl::poll();
        work(piece)
    };
    pieces.into_iter().map(polled).collect()
}

/// The same for pieces that are large enough to wake workers.
pub fn share<T: Send, R: Send>(pieces: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let some = AT_ONCE * THREADS.count();
    if pieces.len() <= some || !gvl::may_end() {
        return THREADS.map(pieces, work);
    }
    // Only some pieces at a time, so that an interrupt can end the work between them.
    let mut made = room::with_capacity(pieces.len());
    let mut pieces = pieces.into_iter();
    while pieces.len() > 0 {
        gvl::poll();
        made.extend(THREADS.map(pieces.by_ref().take(some).collect(), &work));
    }
    made
}

/// The same for things that lie far from each other in memory, so that each access is a cache miss.
pub fn scattered<T: Send, R: Send>(groups: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    if groups.len() > 2 && THREADS.count() > 1 { share(groups, work) } else { alone(groups, work) }
}

/// Splits the rows of several lists, such as the objects of each class, into pieces. A piece has the same part of each
/// list, and starts at a multiple of 64 rows. Objects that were made one after the other lie together in memory,
/// whatever their classes. So a piece reads lines and pages that objects of several classes share only once.
///
/// Gives for each piece its rows of each list.
pub fn side_by_side(lengths: &[usize]) -> Vec<Vec<Range<usize>>> {
    let count = lengths.iter().sum::<usize>().div_ceil(PIECE);
    let cut = |len: usize, piece: usize| if piece == count { len } else { len * piece / count / 64 * 64 };
    let parts = |piece| lengths.iter().map(|len| cut(*len, piece)..cut(*len, piece + 1)).collect();
    (0..count).map(parts).collect()
}

/// A part of a list.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub list: usize,
    pub from: usize,
    pub len: usize,
}

/// Some of many lists: consecutive whole lists, a part of a long list, or several of either from anywhere, in order.
#[derive(Clone, Debug)]
pub enum Lists {
    Whole(Range<usize>),
    Part(Span),
    Some(Vec<Span>),
}

impl Lists {
    /// Its spans, in order, of lists of such lengths.
    pub fn spans<'a>(&'a self, lengths: &'a [u32]) -> impl Iterator<Item = Span> + 'a {
        let (whole, spans) = match self {
            Self::Whole(lists) => (lists.clone(), &[][..]),
            Self::Part(span) => (0..0, std::slice::from_ref(span)),
            Self::Some(spans) => (0..0, &spans[..]),
        };
        whole.map(|list| Span { list, from: 0, len: lengths[list] as usize }).chain(spans.iter().copied())
    }
    /// The span in which it begins.
    pub fn first(&self) -> Span {
        match self {
            Self::Whole(lists) => Span { list: lists.start, from: 0, len: 0 },
            Self::Part(span) => *span,
            Self::Some(spans) => spans[0],
        }
    }
}

/// All lists of such lengths, in pieces of at most [`PIECE`] rows. A list without rows counts as one row.
pub fn lists(lengths: &[u32]) -> Vec<Lists> {
    let mut pieces = Vec::new();
    let (mut first, mut rows) = (0, 0);
    for (list, len) in lengths.iter().enumerate() {
        let len = *len as usize;
        if rows + len.max(1) > PIECE {
            if first < list {
                pieces.push(Lists::Whole(first..list));
            }
            (first, rows) = (list, 0);
        }
        if len > PIECE {
            let part = |from| Lists::Part(Span { list, from, len: PIECE.min(len - from) });
            pieces.extend((0..len).step_by(PIECE).map(part));
            first = list + 1;
        } else {
            rows += len.max(1);
        }
    }
    if first < lengths.len() {
        pieces.push(Lists::Whole(first..lengths.len()));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::{Lists, PIECE, lists, side_by_side};

    #[test]
    fn pieces_have_the_same_part_of_every_list_and_every_row_once() {
        for lengths in [&[1_000_000, 3, 0, 70_000, 64][..], &[10 * PIECE], &[PIECE + 1, PIECE], &[7], &[0], &[]] {
            let pieces = side_by_side(lengths);
            let all: usize = lengths.iter().sum();
            for (list, len) in lengths.iter().enumerate() {
                let mut next = 0;
                for (at, piece) in pieces.iter().enumerate() {
                    let rows = piece[list].clone();
                    assert!(rows.start == next && rows.start.is_multiple_of(64) && rows.start <= rows.end);
                    let share = len * at / pieces.len();
                    assert!(share - rows.start < 64, "{rows:?} begins at the list's share, {share}");
                    next = rows.end;
                }
                assert_eq!(next, *len);
            }
            let largest = pieces.iter().map(|piece| piece.iter().map(ExactSizeIterator::len).sum()).max();
            assert!(largest.unwrap_or(0) <= PIECE + 64 * lengths.len() && pieces.len() == all.div_ceil(PIECE));
        }
    }

    #[test]
    fn pieces_have_every_row_of_every_list_once_and_no_more_than_they_hold() {
        let piece = PIECE as u32;
        let some = [0, 1, 5, piece, 0, piece + 1, 3 * piece, 2, piece - 1, 1, 7 * piece - 1, 0];
        let many: Vec<u32> = (0..20_000).map(|i| i % 7).collect();
        for lengths in [&some[..], &many, &[0; 10_000], &[], &[5 * piece], &[3]] {
            let pieces = lists(lengths);
            let mut next = (0, 0);
            for piece in pieces {
                let whole = matches!(piece, Lists::Whole(_));
                let (first, mut rows, mut empty) = (piece.first(), 0, 0);
                for (at, span) in piece.spans(lengths).enumerate() {
                    let span = (span.list, span.from, span.len);
                    assert!(at > 0 || span.0 == first.list && span.1 == first.from);
                    assert_eq!((span.0, span.1), next);
                    let ends = span.1 + span.2 == lengths[span.0] as usize;
                    assert!(ends || !whole);
                    next = if ends { (span.0 + 1, 0) } else { (span.0, span.1 + span.2) };
                    rows += span.2;
                    empty += usize::from(span.2 == 0);
                }
                assert!(rows + empty <= PIECE);
            }
            assert_eq!(next, (lengths.len(), 0));
        }
    }
}
