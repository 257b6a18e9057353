//! The pool: reusable host memory for large columns and tables, page-locked where a device copies it.
//!
//! Here: [`Pool`], which maps stretches of memory, lends them ([`Lent`]), takes them back, and decides when they are
//! page-locked; the pool for columns that no device uses ([`host`]). Not here: how memory is page-locked (a backend's
//! [`Locker`]), what is in it ([`super::words`]), and who borrows it.
//!
//! The first touch of fresh pages takes most of the time of fetching a large array, or of a computation bound by
//! memory. Page-locking takes as long again. So a stretch is ordinary memory when it is lent for the first time. Before
//! it is lent again it is page-locked, if there is a device, and stays so.
//!
//! Dropping lent memory only marks it as free; it calls no driver and waits for nothing, because the GC may do it. The
//! next request returns memory to the system if there is too much, or if it was unused for long. [`Pool::tidy`] does so
//! for [`host`] after a run of the GC.
//!
//! **After a fork** the child finds the contents in its own copy of the memory. The child lends nothing more, and
//! unmaps lent memory when it is dropped. [`Pool::unlock`] ends page-locking before a fork, because the system would
//! have to copy locked pages.
#![allow(unsafe_code, reason = "memory that is mapped, lent and unmapped")]

use super::pages::{LARGE_PAGE_BYTES, large_pages};
use super::room::{self, Promise};
use super::words::HostWords;
use once_cell::race::OnceBox;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::collections::HashMap;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Page-locks memory. Neither function touches the contents.
pub trait Locker: Send + Sync {
    /// Page-locks the memory. False: it could not.
    fn lock(&self, memory: NonNull<u8>, bytes: usize) -> bool;
    /// Ends page-locking. False: it could not, and the memory stays locked for the rest of the process.
    fn unlock(&self, memory: NonNull<u8>) -> bool;
}

/// The `Locker` for memory that no device copies: it locks nothing.
struct Unlocked;

impl Locker for Unlocked {
    fn lock(&self, _: NonNull<u8>, _: usize) -> bool {
        false
    }
    fn unlock(&self, _: NonNull<u8>) -> bool {
        true
    }
}

/// This process's pool for columns that no device uses. A child of `fork` finds its parent's pool, which lends nothing
/// there.
pub fn host() -> &'static Arc<Pool> {
    // no lock: if another thread held it during a fork, it would stay locked in the child
    static HOST: OnceBox<Arc<Pool>> = OnceBox::new();
    HOST.get_or_init(|| Box::new(Arc::new(Pool { staggered: true, ..Pool::default() })))
}

/// The pool serves requests of at least so many bytes; smaller ones go to the allocator.
pub const MIN_BYTES: usize = PAGE;
/// Stretches are whole numbers of large pages, and begin at a multiple of one, plus a stagger.
const PAGE: usize = LARGE_PAGE_BYTES;
/// Memory that was unused for so long goes back to the system.
const MAX_IDLE: Duration = Duration::from_secs(30);
/// Bytes of all stretches at most. The limit is also an eighth of the machine's memory.
const MAX_BYTES: usize = 8 << 30;

/// The stagger: by how many bytes, within a large page, a stretch begins behind the one before. After [`PLACES`]
/// stretches it starts over. A kernel reads several columns side by side. Without the stagger, equal rows of all
/// columns would compete for the same few cache lines.
const STAGGER: usize = 4096 + 256;
const PLACES: usize = 61;

/// A pool of host memory; see the module.
pub struct Pool {
    locker: Box<dyn Locker>,
    most: usize,
    process: u32,
    /// Whether stretches are staggered within their large pages.
    staggered: bool,
    mapped: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By start address.
    stretches: HashMap<usize, Stretch>,
    /// Bytes of all stretches, including those that are being mapped.
    bytes: usize,
}

struct Stretch {
    mapping: Arc<Mapping>,
    /// Since when the stretch is free; None while it is lent.
    idle: Option<Instant>,
}

/// Memory that was mapped, with a stretch in it.
struct Mapping {
    /// The stretch starts at `start`; `mapped` is larger, so that the stretch could be aligned.
    start: NonNull<u8>,
    bytes: usize,
    mapped: (NonNull<u8>, usize),
    /// Whether the stretch is page-locked. Readers of the lock rely on it staying so.
    locked: RwLock<bool>,
    /// Locking failed and is not tried again.
    refused: AtomicBool,
    /// The memory was unmapped: a child of `fork` unmaps what it inherited.
    gone: AtomicBool,
    _promise: Promise,
}

// SAFETY: plain bytes, which a borrower has alone or shares as `&[u64]`.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps untouched zeroes that begin `behind` bytes after the start of a large page; None: there is no memory.
    /// `filled`: the caller will write all of them.
    fn new(bytes: usize, behind: usize, filled: bool) -> Option<Self> {
        let length = bytes.checked_add(PAGE + behind)?;
        let promise = room::promise(bytes)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address that the system chooses, so it overlaps nothing.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return None;
        }
        let base = NonNull::new(address.cast::<u8>())?;
        // SAFETY: the offset is at most `PAGE + behind`, and the mapping is that much longer than `bytes`.
        let start = unsafe { base.add(base.as_ptr().align_offset(PAGE).min(PAGE) + behind) };
        // If all is filled, the page in which the stretch begins is large, too. Otherwise its start is of small pages,
        // since perhaps only the start is ever touched.
        let before = if filled { behind } else { 0 };
        large_pages(start.as_ptr() as usize - before, before + bytes);
        let (locked, refused, gone) = (RwLock::new(false), AtomicBool::new(false), AtomicBool::new(false));
        Some(Self { start, bytes, mapped: (base, length), locked, refused, gone, _promise: promise })
    }
    fn lock(&self, locker: &dyn Locker) {
        let mut locked = self.locked.write();
        if !*locked && !self.refused.load(Ordering::Relaxed) {
            *locked = locker.lock(self.start, self.bytes);
            self.refused.store(!*locked, Ordering::Relaxed);
        }
    }
    fn unlock(&self, locker: &dyn Locker) {
        let mut locked = self.locked.write();
        *locked = *locked && !locker.unlock(self.start);
    }
    fn unmap(&self) {
        if !self.gone.swap(true, Ordering::Relaxed) {
            // SAFETY: `new` mapped the range, and `gone` makes sure that it is unmapped once. Nothing accesses it any
            // more: `drop` is the last owner, and in a child the lent memory has the one owner that drops it.
            unsafe { libc::munmap(self.mapped.0.as_ptr().cast(), self.mapped.1) };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // memory that is still page-locked stays mapped: the driver may identify it by its address
        if !*self.locked.get_mut() {
            self.unmap();
        }
    }
}

impl Default for Pool {
    /// A pool that page-locks nothing.
    fn default() -> Self {
        Self {
            locker: Box::new(Unlocked),
            most: most(),
            process: crate::process::id(),
            staggered: false,
            mapped: AtomicUsize::new(0),
            state: Mutex::default(),
        }
    }
}

impl Pool {
    pub fn new(locker: Box<dyn Locker>) -> Arc<Self> {
        Self::with_room(locker, most())
    }
    /// A pool of at most `most` bytes.
    pub fn with_room(locker: Box<dyn Locker>, most: usize) -> Arc<Self> {
        Arc::new(Self { locker, most, ..Self::default() })
    }

    /// Lends so many words, with unspecified contents; None: the allocator is the better source.
    pub fn lend(self: &Arc<Self>, words: usize) -> Option<HostWords> {
        self.lend_known(words, true).map(|(words, _)| words)
    }
    /// As [`Pool::lend`]. Also says whether the words are fresh, so that all are zero. `filled`: the caller will write
    /// all of them.
    pub fn lend_known(self: &Arc<Self>, words: usize, filled: bool) -> Option<(HostWords, bool)> {
        let bytes = words.checked_mul(8)?;
        if bytes < MIN_BYTES || bytes > self.most || self.process != crate::process::id() {
            return None;
        }
        let wanted = bytes.next_multiple_of(PAGE);
        let (found, gone) = self.state.lock().find(wanted, self.most);
        self.give_back(gone);
        let (mapping, fresh) = match found {
            Found::Idle(mapping) => {
                mapping.lock(&*self.locker);
                (mapping, false)
            }
            Found::Room => (self.map(wanted, filled)?, true),
            Found::Nothing => return None,
        };
        Some((HostWords::lent(Lent { mapping, words, pool: self.clone() }), fresh))
    }
    fn map(&self, bytes: usize, filled: bool) -> Option<Arc<Mapping>> {
        let before = self.mapped.fetch_add(1, Ordering::Relaxed);
        let behind = if self.staggered { before % PLACES * STAGGER } else { 0 };
        let mapping = Mapping::new(bytes, behind, filled).or_else(|| {
            self.clear();
            Mapping::new(bytes, behind, filled)
        });
        let mut state = self.state.lock();
        let Some(mapping) = mapping.map(Arc::new) else {
            state.bytes -= bytes;
            return None;
        };
        let stretch = Stretch { mapping: mapping.clone(), idle: None };
        state.stretches.insert(mapping.start.as_ptr() as usize, stretch);
        Some(mapping)
    }
    /// Unmaps all free stretches.
    pub fn clear(&self) {
        self.give_back_idle(|_| true);
    }
    /// Unmaps stretches that were free for long. Each request for words does so first, too.
    pub fn tidy(&self) {
        self.give_back_idle(is_long_ago);
    }
    fn give_back_idle(&self, which: impl Fn(Instant) -> bool) {
        if self.process == crate::process::id() {
            let gone = self.state.lock().take_idle(which);
            self.give_back(gone);
        }
    }
    /// Ends the page-locking of all stretches, once nothing relies on it. They are locked again when they are lent
    /// again.
    pub fn unlock(&self) {
        if self.process == crate::process::id() {
            let all: Vec<_> = self.state.lock().stretches.values().map(|stretch| stretch.mapping.clone()).collect();
            all.iter().for_each(|mapping| mapping.unlock(&*self.locker));
        }
    }
    fn give_back(&self, gone: Vec<Arc<Mapping>>) {
        for mapping in gone {
            mapping.unlock(&*self.locker);
        }
    }
    /// How many bytes are page-locked, and how many are free and held for reuse.
    pub fn held(&self) -> (usize, usize) {
        if self.process != crate::process::id() {
            return (0, 0);
        }
        let state = self.state.lock();
        let bytes = |one: &dyn Fn(&Stretch) -> bool| {
            state.stretches.values().filter(|stretch| one(stretch)).map(|stretch| stretch.mapping.bytes).sum()
        };
        // a writer that holds the lock is just locking the stretch
        let locked = |stretch: &Stretch| stretch.mapping.locked.try_read().is_some_and(|locked| *locked);
        (bytes(&locked), bytes(&|stretch| stretch.idle.is_some()))
    }
}

enum Found {
    Idle(Arc<Mapping>),
    /// Room for a new stretch, whose bytes are counted already.
    Room,
    Nothing,
}

impl State {
    /// The smallest free stretch that is large enough, unless it is much larger. Otherwise room for a new one, for
    /// which free stretches may be unmapped.
    fn find(&mut self, wanted: usize, most: usize) -> (Found, Vec<Arc<Mapping>>) {
        let fits = |stretch: &&mut Stretch| {
            stretch.idle.is_some() && (wanted..=wanted + wanted / 4).contains(&stretch.mapping.bytes)
        };
        let best = self.stretches.values_mut().filter(fits).min_by_key(|stretch| stretch.mapping.bytes);
        let found = best.map(|stretch| {
            stretch.idle = None;
            Found::Idle(stretch.mapping.clone())
        });
        let mut gone = self.take_idle(is_long_ago);
        if let Some(found) = found {
            return (found, gone);
        }
        if self.bytes + wanted > most {
            gone.extend(self.take_idle(|_| true));
        }
        if self.bytes + wanted > most {
            return (Found::Nothing, gone);
        }
        self.bytes += wanted;
        (Found::Room, gone)
    }
    fn take_idle(&mut self, which: impl Fn(Instant) -> bool) -> Vec<Arc<Mapping>> {
        let taken = self.stretches.extract_if(|_, stretch| stretch.idle.is_some_and(&which));
        let gone: Vec<_> = taken.map(|(_, stretch)| stretch.mapping).collect();
        self.bytes -= gone.iter().map(|mapping| mapping.bytes).sum::<usize>();
        gone
    }
}

fn is_long_ago(since: Instant) -> bool {
    since.elapsed() > MAX_IDLE
}

/// The limit for the bytes of all stretches of a pool.
fn most() -> usize {
    MAX_BYTES.min(machine() / 8)
}

/// Bytes of the machine's memory.
fn machine() -> usize {
    // SAFETY: both calls only ask the system for a number.
    let [pages, size] = [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
    usize::try_from(pages).unwrap_or(0).saturating_mul(usize::try_from(size).unwrap_or(0))
}

/// Lent words: a stretch of a pool with one owner.
pub struct Lent {
    mapping: Arc<Mapping>,
    words: usize,
    pool: Arc<Pool>,
}

impl Lent {
    pub fn words(&self) -> &[u64] {
        // SAFETY: the mapping is alive and at least as long (`lend` checked that). It is aligned to more than a word
        // ([`STAGGER`]). It is initialised: the system maps zeroes, and earlier borrowers wrote plain bytes. It is lent
        // to nobody else, and the slice borrows `self`.
        unsafe { std::slice::from_raw_parts(self.mapping.start.as_ptr().cast::<u64>(), self.words) }
    }
    pub fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.start.as_ptr().cast::<u64>(), self.words) }
    }
    /// Keeps the words page-locked while the guard lives; None: they are not page-locked.
    pub fn locked(&self) -> Option<Locked<'_>> {
        let guard = self.mapping.locked.read();
        if *guard { Some(Locked(guard)) } else { None }
    }
    /// As [`Lent::locked`], with the words to write.
    pub fn locked_mut(&mut self) -> Option<(Locked<'_>, &mut [u64])> {
        let guard = self.mapping.locked.read();
        // SAFETY: as in `words_mut`. The guard borrows another field of `self`.
        let words = unsafe { std::slice::from_raw_parts_mut(self.mapping.start.as_ptr().cast::<u64>(), self.words) };
        if *guard { Some((Locked(guard), words)) } else { None }
    }
}

/// A guard: memory stays page-locked while it lives.
pub struct Locked<'a>(#[allow(dead_code, reason = "held")] RwLockReadGuard<'a, bool>);

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} words", self.words)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.pool.process != crate::process::id() {
            // in a child, a lock of the pool may be held by a thread that does not exist there
            self.mapping.unmap();
            return;
        }
        let mut state = self.pool.state.lock();
        if let Some(stretch) = state.stretches.get_mut(&(self.mapping.start.as_ptr() as usize)) {
            stretch.idle = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `Locker` that locks at most so many stretches and counts the locked ones.
    struct Counting {
        locks: Arc<AtomicUsize>,
        most: usize,
    }

    impl Locker for Counting {
        fn lock(&self, _: NonNull<u8>, _: usize) -> bool {
            let fits = self.locks.load(Ordering::Relaxed) < self.most;
            self.locks.fetch_add(usize::from(fits), Ordering::Relaxed);
            fits
        }
        fn unlock(&self, _: NonNull<u8>) -> bool {
            self.locks.fetch_sub(1, Ordering::Relaxed);
            true
        }
    }

    fn pool(most_locks: usize, most: usize) -> (Arc<Pool>, Arc<AtomicUsize>) {
        let locks = Arc::new(AtomicUsize::new(0));
        (Pool::with_room(Box::new(Counting { locks: locks.clone(), most: most_locks }), most), locks)
    }

    const WORDS: usize = MIN_BYTES / 8;

    /// Lends words that were lent before.
    fn again(pool: &Arc<Pool>) -> HostWords {
        drop(pool.lend(WORDS));
        pool.lend(WORDS).expect("there is room")
    }

    #[test]
    fn what_nobody_used_for_long_is_given_back_when_somebody_tidies() {
        let (pool, locks) = pool(9, 1 << 30);
        let words = again(&pool);
        drop(pool.lend(3 * WORDS));
        let (lent, idle) = pool.held();
        assert!(lent > 0 && idle > 0);
        drop(words);
        pool.tidy();
        assert_eq!(pool.held(), (lent, lent + idle), "it was used just now");
        let long_ago = Instant::now().checked_sub(2 * MAX_IDLE).expect("the machine has run for a minute");
        for stretch in pool.state.lock().stretches.values_mut().filter(|stretch| stretch.mapping.bytes == lent) {
            stretch.idle = Some(long_ago);
        }
        pool.tidy();
        assert_eq!((pool.held(), locks.load(Ordering::Relaxed)), ((0, idle), 0));
    }

    #[test]
    fn memory_is_page_locked_when_it_is_lent_again() {
        let (pool, locks) = pool(9, 1 << 30);
        let mut first = pool.lend(2 * WORDS).expect("there is room");
        assert!(first.iter().all(|word| *word == 0) && first.locked().is_none());
        first.fill(7);
        let address = first.as_ptr();
        drop(first);
        assert_eq!(pool.held(), (0, 2 * MIN_BYTES));
        let mut again = pool.lend(2 * WORDS - 1).expect("there is room");
        assert_eq!((again.as_ptr(), again.len(), again[0]), (address, 2 * WORDS - 1, 7));
        assert!(again.locked().is_some() && again.locked_mut().is_some());
        assert_eq!((pool.held(), locks.load(Ordering::Relaxed)), ((2 * MIN_BYTES, 0), 1));
        pool.clear();
        assert_eq!(pool.held(), (2 * MIN_BYTES, 0), "what is lent stays");
        drop(again);
        pool.clear();
        assert_eq!((pool.held(), locks.load(Ordering::Relaxed)), ((0, 0), 0));
    }

    #[test]
    fn stretches_of_the_host_begin_at_places_of_their_pages_that_differ() {
        let pool = Arc::new(Pool { staggered: true, ..Pool::default() });
        let mut words: Vec<_> = (0..3).map(|_| pool.lend(WORDS).expect("there is room")).collect();
        let places: Vec<_> = words.iter().map(|words| words.as_ptr() as usize % PAGE).collect();
        assert_eq!(places, [0, STAGGER, 2 * STAGGER]);
        words.iter_mut().for_each(|words| words.fill(5));
        assert!(words.iter().all(|words| words[WORDS - 1] == 5));
    }

    #[test]
    fn what_cannot_be_locked_is_lent_as_it_is_and_not_tried_again() {
        let (pool, locks) = pool(0, 1 << 30);
        drop(pool.lend(WORDS));
        for _ in 0..2 {
            assert!(pool.lend(WORDS).is_some_and(|words| words.locked().is_none()));
        }
        pool.unlock();
        pool.clear();
        assert_eq!((locks.load(Ordering::Relaxed), pool.held()), (0, (0, 0)));
    }

    #[test]
    fn locking_ends_before_a_fork_and_begins_anew() {
        let (pool, locks) = pool(9, 1 << 30);
        let mut words = again(&pool);
        words.fill(5);
        pool.unlock();
        assert_eq!((locks.load(Ordering::Relaxed), words.locked().is_none(), words[WORDS - 1]), (0, true, 5));
        drop(words);
        assert!(pool.lend(WORDS).is_some_and(|words| words.locked().is_some()));
    }

    #[test]
    fn no_more_is_mapped_than_there_is_room_for() {
        let (pool, _) = pool(9, 2 * MIN_BYTES);
        let (one, other) = (pool.lend(WORDS), pool.lend(WORDS));
        assert!(one.is_some() && other.is_some() && pool.lend(WORDS).is_none(), "all is lent");
        drop(one);
        assert!(pool.lend(WORDS).is_some());
        drop(other);
        let large = pool.lend(2 * WORDS);
        assert!(large.is_some() && pool.held().1 == 0, "what is idle goes for it");
        assert!(pool.lend(2 * WORDS + 1).is_none() && pool.lend(WORDS - 1).is_none());
    }

    #[test]
    fn what_is_much_larger_is_left_for_others() {
        let (pool, _) = pool(9, 1 << 30);
        drop(pool.lend(4 * WORDS));
        let small = pool.lend(WORDS);
        assert_eq!((small.is_some(), pool.held().1), (true, 4 * MIN_BYTES));
    }

    #[test]
    fn a_child_finds_the_contents_and_lends_nothing() {
        let (pool, locks) = pool(9, 1 << 30);
        let mut words = again(&pool);
        words.fill(3);
        // SAFETY: the child only reads its memory and leaves by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let found = words[0] == 3 && words[WORDS - 1] == 3;
            words.fill(4);
            drop(words);
            let right = found && pool.lend(WORDS).is_none() && pool.held() == (0, 0);
            pool.clear();
            pool.unlock();
            drop(pool);
            // SAFETY: `_exit` runs no destructors of the parent's objects.
            unsafe { libc::_exit(if right && locks.load(Ordering::Relaxed) == 1 { 7 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: the child is this test's, and the status is a live local.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 7));
        assert!(words.iter().all(|word| *word == 3), "what a child writes is its own");
    }
}
