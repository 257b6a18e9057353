//! The free list: freed host memory of 64 KiB to 4 MiB, for reuse.
//!
//! Here: [`put`] and [`take`]: words that were freed are kept for the next request of about the same size. Not here:
//! larger memory, which a pool lends ([`super::pool`]); smaller memory, which the allocator keeps itself.
//!
//! The allocator returns such memory to the system at once. The first touch of fresh pages takes longer than most
//! computations on them: a map of 100 000 Floats takes 50 µs, its pages 150.
//!
//! No caller waits for the lock. The GC may drop memory at any time, and in a child of `fork` the lock may be held by a
//! thread that does not exist there. Words that cannot be put or taken at once go to the allocator, or come from it.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// The size of an entry in bytes: at least the first number, and less than the second. A pool also serves the larger
/// ones of these sizes, but a child of `fork` has no pool.
const MIN_BYTES: usize = 64 << 10;
const LIMIT_BYTES: usize = 4 << 20;
/// Bytes of all entries at most: about what programs allocate between two runs of the GC.
const MAX_HELD_BYTES: usize = 64 << 20;
/// An entry that was not taken for so long is returned to the allocator.
const MAX_IDLE: Duration = Duration::from_secs(30);

/// The entries, oldest first.
static FREE_LIST: Mutex<Vec<(Vec<u64>, Instant)>> = Mutex::new(Vec::new());

fn is_kept(bytes: usize) -> bool {
    (MIN_BYTES..LIMIT_BYTES).contains(&bytes)
}

/// Takes so many words, with unspecified contents.
pub fn take(count: usize) -> Option<Vec<u64>> {
    if !is_kept(count.checked_mul(8)?) {
        return None;
    }
    let mut list = FREE_LIST.try_lock()?;
    // the newest entry may still be in a cache
    let at = list.iter().rposition(|(words, _)| (count..=count + count / 4).contains(&words.capacity()))?;
    let (mut words, _) = list.remove(at);
    drop(list);
    words.resize(count, 0);
    Some(words)
}

/// Adds words to the list.
pub fn put(words: Vec<u64>) {
    if !is_kept(words.capacity() * 8) {
        return;
    }
    let Some(mut list) = FREE_LIST.try_lock() else { return };
    let now = Instant::now();
    let mut bytes: usize = list.iter().map(|(words, _)| words.capacity() * 8).sum();
    let mut gone = 0;
    for (old, since) in list.iter() {
        if bytes + words.capacity() * 8 <= MAX_HELD_BYTES && now.duration_since(*since) < MAX_IDLE {
            break;
        }
        bytes -= old.capacity() * 8;
        gone += 1;
    }
    let gone: Vec<_> = list.drain(..gone).collect();
    list.push((words, now));
    drop(list);
    drop(gone);
}

/// Returns all entries to the allocator.
pub fn clear() {
    let gone = FREE_LIST.try_lock().map(|mut list| std::mem::take(&mut *list));
    drop(gone);
}

/// Bytes of all entries.
pub fn held() -> usize {
    FREE_LIST.try_lock().map_or(0, |list| list.iter().map(|(words, _)| words.capacity() * 8).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No other test uses this length, so a test gets its own words back. Other tests use the free list at the same
    /// time.
    const COUNT: usize = (MIN_BYTES / 8) * 7 + 1234;

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
        for count in [0, 1, MIN_BYTES / 8 - 1, LIMIT_BYTES / 8] {
            put(vec![1; count]);
            assert!(take(count).is_none());
        }
        let pieces = 3 * MAX_HELD_BYTES / (1 << 20);
        (0..pieces).for_each(|_| put(vec![1; 1 << 17]));
        assert!(held() <= MAX_HELD_BYTES);
    }
}
