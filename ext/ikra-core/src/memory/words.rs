//! Host words that hold a column.
//!
//! Here: [`HostWords`], which are from the allocator, perhaps reused ([`super::free_list`]), or lent by a pool
//! ([`super::pool`]); copies of large memory by several threads. Not here: what the words mean ([`super::column`]).

use super::free_list;
use super::pool::{self, Lent, Locked};
use super::room::{self, Promise};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::ops::{Deref, DerefMut};

/// Words with one owner.
#[derive(Debug)]
pub struct HostWords(Source);

#[derive(Debug)]
enum Source {
    Allocator(Vec<u64>, #[allow(dead_code, reason = "held")] Promise),
    Pool(Lent),
}

impl HostWords {
    /// Words that are zero. Large requests reuse memory where possible. Unwinds if memory does not suffice ([`room`]),
    /// as do all functions that make words.
    pub fn zeroed(count: usize) -> Self {
        // columns whose rows are elsewhere have no words
        if count == 0 {
            return Self::of_allocator(0);
        }
        if let Some(mut words) = free_list::take(count) {
            words.fill(0);
            return Self::from(words);
        }
        let Some((mut words, fresh)) = pool::host().lend_known(count, true) else { return Self::of_allocator(count) };
        if !fresh {
            clear_by_threads(&mut words);
        }
        words
    }
    /// Words with unspecified contents, all of which the caller writes.
    pub fn unset(count: usize) -> Self {
        Self::of_nothing(count, true)
    }
    /// Words with unspecified contents, of which perhaps only the first are ever touched.
    pub fn reserved(count: usize) -> Self {
        Self::of_nothing(count, false)
    }
    fn of_nothing(count: usize, filled: bool) -> Self {
        if let Some(words) = free_list::take(count) {
            return Self::from(words);
        }
        pool::host().lend_known(count, filled).map_or_else(|| Self::of_allocator(count), |(words, _)| words)
    }
    fn of_allocator(count: usize) -> Self {
        let (words, promise) = room::promised::<u64>(count);
        super::pages::large_pages(words.as_ptr() as usize, count * 8);
        Self(Source::Allocator(words, promise))
    }
    pub fn lent(words: Lent) -> Self {
        Self(Source::Pool(words))
    }
    /// Changes the number of words. New ones are zero.
    pub fn resize(&mut self, count: usize) {
        match &mut self.0 {
            Source::Allocator(words, _) if count <= words.capacity() => words.resize(count, 0),
            _ => {
                let mut own = Self::of_allocator(count);
                let both = count.min(self.len());
                own[..both].copy_from_slice(&self[..both]);
                *self = own;
            }
        }
    }
    /// Keeps the words page-locked while the guard lives; None: they are not page-locked.
    pub fn locked(&self) -> Option<Locked<'_>> {
        match &self.0 {
            Source::Allocator(..) => None,
            Source::Pool(lent) => lent.locked(),
        }
    }
    /// As [`HostWords::locked`], with the words to write.
    pub fn locked_mut(&mut self) -> Option<(Locked<'_>, &mut [u64])> {
        match &mut self.0 {
            Source::Allocator(..) => None,
            Source::Pool(lent) => lent.locked_mut(),
        }
    }
}

impl Drop for HostWords {
    fn drop(&mut self) {
        if let Source::Allocator(words, _) = &mut self.0 {
            free_list::put(std::mem::take(words));
        }
    }
}

impl Default for HostWords {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl From<Vec<u64>> for HostWords {
    fn from(words: Vec<u64>) -> Self {
        Self(Source::Allocator(words, Promise::default()))
    }
}

impl Deref for HostWords {
    type Target = [u64];
    fn deref(&self) -> &[u64] {
        match &self.0 {
            Source::Allocator(words, _) => words,
            Source::Pool(lent) => lent.words(),
        }
    }
}

impl DerefMut for HostWords {
    fn deref_mut(&mut self) -> &mut [u64] {
        match &mut self.0 {
            Source::Allocator(words, _) => words,
            Source::Pool(lent) => lent.words_mut(),
        }
    }
}

impl Clone for HostWords {
    fn clone(&self) -> Self {
        let mut copy = Self::unset(self.len());
        copy_by_threads(&mut copy, self);
        copy
    }
}

/// Up to so many bytes, one thread copies or clears as fast as several, which have to be started first.
const MUCH: usize = 8 << 20;
/// How many threads copy at most. Fewer than that saturate the memory of a machine.
const THREADS: usize = 8;
/// Bytes that a thread copies at a time.
const PIECE: usize = 1 << 20;

/// Copies, with several threads if there is much. The threads end with the copy, so a child of `fork` never waits for a
/// thread that it does not have.
///
/// # Panics
/// If the two are of different lengths.
pub fn copy_by_threads<T: Copy + Send + Sync>(to: &mut [T], from: &[T]) {
    assert_eq!(to.len(), from.len(), "a copy is as long as what is copied");
    let bytes = size_of_val(from);
    if bytes < MUCH {
        return to.copy_from_slice(from);
    }
    let piece = (PIECE / size_of::<T>().max(1)).max(1);
    by_threads(to.chunks_mut(piece).zip(from.chunks(piece)), |(to, from)| to.copy_from_slice(from));
}

fn clear_by_threads(words: &mut [u64]) {
    if words.len() * 8 < MUCH {
        return words.fill(0);
    }
    by_threads(words.chunks_mut(PIECE / 8), |words| words.fill(0));
}

/// Runs `each` for all pieces, by several threads.
fn by_threads<T>(pieces: impl Iterator<Item = T> + Send, each: impl Fn(T) + Sync) {
    static CORES: OnceCell<usize> = OnceCell::new();
    let threads = *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get().min(THREADS)));
    let pieces = Mutex::new(pieces);
    let work = || {
        loop {
            let Some(piece) = pieces.lock().next() else { break };
            each(piece);
        }
    };
    std::thread::scope(|scope| {
        // if a thread cannot be started, the others do its work
        let start = |_| std::thread::Builder::new().name("ikra copy".into()).spawn_scoped(scope, work).is_ok();
        let _ = (1..threads).all(start);
        work();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn much_is_copied_whole() {
        let from: Vec<u64> = (0..MUCH as u64 / 8 + 77).collect();
        let mut to = vec![0; from.len()];
        copy_by_threads(&mut to, &from);
        assert!(to == from);
        assert!(HostWords::from(from).clone()[..] == to[..]);
    }

    #[test]
    fn words_that_are_zero_are_so_in_memory_that_was_used_before() {
        // no other test uses this length
        let count = MUCH / 8 + 3 * (1 << 20);
        let place = {
            let mut words = HostWords::unset(count);
            words.fill(7);
            words.as_ptr()
        };
        assert_eq!(HostWords::unset(count).as_ptr(), place, "what comes back is lent again");
        let words = HostWords::zeroed(count);
        assert!(words.as_ptr() == place && words.len() == count && words.iter().all(|word| *word == 0));
    }

    #[test]
    fn words_grow_by_zeroes() {
        let mut words = HostWords::from(vec![1, 2]);
        words.resize(4);
        assert_eq!(words[..], [1, 2, 0, 0]);
        words.resize(1);
        assert_eq!(words[..], [1]);
    }

    #[test]
    fn words_that_no_machine_has_are_refused() {
        for count in [usize::MAX / 8 / 4, usize::MAX] {
            assert!(room::caught(|| HostWords::zeroed(count)).is_err());
            assert!(room::caught(|| HostWords::unset(count)).is_err());
        }
        let mut words = HostWords::from(vec![1, 2]);
        assert!(room::caught(|| words.resize(usize::MAX / 32)).is_err());
        assert_eq!(words[..], [1, 2], "nothing is lost");
    }
}
