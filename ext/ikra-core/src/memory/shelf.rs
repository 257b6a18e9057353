//! Middling memory of the host's, used again.
//!
//! Here: [`put`] and [`take`]: words of the allocator's that nobody needs, for the next who wants about as many. Not here: larger ones, which a pool lends
//! ([`super::pool`]); smaller ones, which the allocator keeps itself.
//!
//! The allocator gives such memory back to the system at once, and the first touch of fresh pages takes longer than most of what is done with them: a map of 100 000
//! Floats takes 50 µs, its pages 150.
//!
//! Nobody waits here, whoever drops what they had, be it the GC or a child of `fork` in which the lock is held by a thread that it has not: words that
//! cannot be put or taken at once are the allocator's.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// Bytes of what is kept: from so many, and fewer than so many. Of these a pool has the larger ones, but for a child of `fork`, which has no pool.
const LEAST: usize = 64 << 10;
const BEYOND: usize = 4 << 20;
/// Bytes of all that is kept, at most: what programs make between two runs of the GC.
const MOST: usize = 64 << 20;
/// What nobody wanted for so long is the allocator's again.
const LONG: Duration = Duration::from_secs(30);

/// In the order in which they came.
static SHELF: Mutex<Vec<(Vec<u64>, Instant)>> = Mutex::new(Vec::new());

fn is_kept(bytes: usize) -> bool {
    (LEAST..BEYOND).contains(&bytes)
}

/// So many words, whose contents mean nothing.
pub fn take(count: usize) -> Option<Vec<u64>> {
    if !is_kept(count.checked_mul(8)?) {
        return None;
    }
    let mut shelf = SHELF.try_lock()?;
    // the last that came may be in a cache still
    let at = shelf.iter().rposition(|(words, _)| (count..=count + count / 4).contains(&words.capacity()))?;
    let (mut words, _) = shelf.remove(at);
    drop(shelf);
    words.resize(count, 0);
    Some(words)
}

/// Words that nobody needs.
pub fn put(words: Vec<u64>) {
    if !is_kept(words.capacity() * 8) {
        return;
    }
    let Some(mut shelf) = SHELF.try_lock() else { return };
    let now = Instant::now();
    let mut bytes: usize = shelf.iter().map(|(words, _)| words.capacity() * 8).sum();
    let mut gone = 0;
    for (old, since) in shelf.iter() {
        if bytes + words.capacity() * 8 <= MOST && now.duration_since(*since) < LONG {
            break;
        }
        bytes -= old.capacity() * 8;
        gone += 1;
    }
    let gone: Vec<_> = shelf.drain(..gone).collect();
    shelf.push((words, now));
    drop(shelf);
    drop(gone);
}

/// Gives the allocator everything back.
pub fn clear() {
    let gone = SHELF.try_lock().map(|mut shelf| std::mem::take(&mut *shelf));
    drop(gone);
}

/// Bytes that are kept.
pub fn held() -> usize {
    SHELF.try_lock().map_or(0, |shelf| shelf.iter().map(|(words, _)| words.capacity() * 8).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of lengths that no other test has, so that it gets its own back: others use the shelf at the same time.
    const COUNT: usize = (LEAST / 8) * 7 + 1234;

    #[test]
    fn what_is_put_is_taken_by_who_wants_about_as_much() {
        let words = vec![5; COUNT];
        let place = words.as_ptr();
        put(words);
        assert!(held() >= COUNT * 8);
        assert!(take(COUNT / 2).is_none_or(|other| other.as_ptr() != place), "it is much too large");
        assert!(take(COUNT + 1).is_none_or(|other| other.as_ptr() != place), "it is too small");
        let again = take(COUNT - 7).expect("it is there");
        assert_eq!((again.as_ptr(), again.len(), again[0]), (place, COUNT - 7, 5));
        put(again);
        let again = take(COUNT).expect("it is there");
        assert_eq!((again.as_ptr(), again.len()), (place, COUNT));
    }

    #[test]
    fn neither_little_nor_much_is_kept() {
        for count in [0, 1, LEAST / 8 - 1, BEYOND / 8] {
            put(vec![1; count]);
            assert!(take(count).is_none());
        }
        let pieces = 3 * MOST / (1 << 20);
        (0..pieces).for_each(|_| put(vec![1; 1 << 17]));
        assert!(held() <= MOST);
    }
}
