//! Checks that host memory suffices before large requests.
//!
//! Here: [`check`] and [`promise`], which refuse more memory than the machine has; [`zeroed`] and [`promised`], which
//! allocate; lists that grow with the data ([`collect`], [`push`] and others); how a refusal becomes an error
//! ([`caught`]). Not here: device memory, which its backend counts.
//!
//! Linux hands out addresses for memory that it does not have, and kills the process that touches them. So before a
//! large request, this module asks the machine how much memory it can still give. It compares that with the request,
//! plus the earlier large requests that were not touched yet. A request below [`MUCH`] goes to the allocator unchecked:
//! asking takes as long as filling some of it.
//!
//! Columns are made in many places, and few of them could handle a lack of memory. So a request that cannot be met
//! unwinds ([`Lacking`]; it calls no panic hook). The function that began the work turns that into
//! [`Error::HostMemory`] with [`caught`]. Nothing has changed by then, because new contents are made before they
//! replace old ones.
//!
//! The standard library aborts the process when an infallible allocation fails. So each list whose length grows with
//! the data is made by functions of this module. They use fallible allocation, and unwind when the allocator has
//! nothing (because of an address limit, for instance). Other lists, such as the compiler's, or lists of pieces of the
//! data, are allocated as usual. The extension's allocator has a reserve for those, which it does not use for fallible
//! allocations ([`is_tried`]).

use super::pages;
use super::{free_list, pool};
use crate::error::{Error, Result};
use crate::memory::column::Element;
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Requests from so many bytes on are checked.
pub const MUCH: usize = 64 << 20;

/// The payload of the unwinding when memory does not suffice.
#[derive(Debug)]
pub struct Lacking {
    wanted: usize,
    free: Option<usize>,
}

/// Bytes of the large requests that were granted and are still held.
static PROMISED: AtomicUsize = AtomicUsize::new(0);
/// Whether a request was refused.
static REFUSED: AtomicBool = AtomicBool::new(false);
/// Whether there was no memory for code.
static REFUSED_CODE: AtomicBool = AtomicBool::new(false);

/// A granted large request. It is held as long as the memory.
#[derive(Debug, Default)]
pub struct Promise(usize);

impl Drop for Promise {
    fn drop(&mut self) {
        PROMISED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Asks for so many bytes, which the caller is about to allocate; None: the machine cannot give them.
pub fn promise(bytes: usize) -> Option<Promise> {
    if bytes < MUCH {
        return Some(Promise::default());
    }
    // counted first, so that two threads cannot both get the last bytes
    let promised = PROMISED.fetch_add(bytes, Ordering::Relaxed);
    let promise = Promise(bytes);
    let free = machine::free();
    free.is_none_or(|free| fits(bytes, promised, machine::touched(), free)).then_some(promise)
}

/// Whether `wanted` bytes fit beside the `promised` ones. The process has touched `touched` bytes in all, so at least
/// `promised - touched` bytes still have to come out of `free`.
fn fits(wanted: usize, promised: usize, touched: usize, free: usize) -> bool {
    wanted.saturating_add(promised.saturating_sub(touched)) <= free
}

/// Unwinds if the machine cannot give so many bytes more, from whatever allocator.
pub fn check(bytes: usize) {
    drop(granted(bytes));
}

/// As [`promise`], but first frees memory that is held for reuse if necessary, and unwinds if that does not help.
fn granted(bytes: usize) -> Promise {
    promise(bytes).or_else(|| after(bytes, promise)).unwrap_or_else(|| refuse(bytes))
}

/// Zeroes from the allocator. Unwinds if memory does not suffice.
pub fn zeroed<T: Element>(count: usize) -> Vec<T> {
    promised(count).0
}

/// As [`zeroed`], with the promise that must be held as long as they are.
pub fn promised<T: Element>(count: usize) -> (Vec<T>, Promise) {
    let bytes = count.saturating_mul(T::BYTES);
    let promise = granted(bytes);
    let once = |count| tried(|| pages::zeroed(count));
    let zeroed = once(count).or_else(|| after(count, once));
    (zeroed.unwrap_or_else(|| refuse(bytes)), promise)
}

thread_local! {
    /// Allocations of this thread may fail now.
    static TRIED: Cell<bool> = const { Cell::new(false) };
}

/// Whether allocations of this thread may fail now, because the caller handles a failure.
pub fn is_tried() -> bool {
    TRIED.with(Cell::get)
}

thread_local! {
    /// This thread has changed something that the program sees.
    static CHANGED: Cell<bool> = const { Cell::new(false) };
}

/// From here on, the work of this thread must not be repeated.
pub fn note_change() {
    CHANGED.with(|changed| changed.set(true));
}

/// Sets whether this thread has changed something. Returns the earlier value.
pub fn changed(now: bool) -> bool {
    CHANGED.with(|changed| changed.replace(now))
}

/// Runs an allocation that may fail.
fn tried<T>(allocation: impl FnOnce() -> T) -> T {
    TRIED.with(|tried| tried.set(true));
    let done = allocation();
    TRIED.with(|tried| tried.set(false));
    done
}

/// Whether the allocator has so many bytes now.
pub fn is_there(bytes: usize) -> bool {
    let mut list: Vec<u8> = Vec::new();
    tried(|| list.try_reserve_exact(bytes)).is_ok()
}

/// An empty list with capacity for so many elements. Unwinds if there is no memory; so do all functions below.
pub fn with_capacity<T>(count: usize) -> Vec<T> {
    let mut list = Vec::new();
    reserve_exact(&mut list, count);
    list
}

/// Makes capacity for exactly so many more elements.
fn reserve_exact<T>(list: &mut Vec<T>, more: usize) {
    grow(list, more, Vec::try_reserve_exact);
}

/// Makes capacity for so many more elements, and usually for some more.
pub fn reserve<T>(list: &mut Vec<T>, more: usize) {
    grow(list, more, Vec::try_reserve);
}

fn grow<T, E>(list: &mut Vec<T>, more: usize, by: impl Fn(&mut Vec<T>, usize) -> std::result::Result<(), E>) {
    if more <= list.capacity() - list.len() {
        return;
    }
    let bytes = list.len().saturating_add(more).saturating_mul(size_of::<T>());
    if bytes >= MUCH {
        check(bytes);
    }
    if tried(|| by(list, more)).is_err() {
        give_back();
        tried(|| by(list, more)).unwrap_or_else(|_| refuse(bytes));
    }
}

/// Appends an element.
#[inline]
pub fn push<T>(list: &mut Vec<T>, element: T) {
    if list.len() == list.capacity() {
        reserve(list, 1);
    }
    list.push(element);
}

/// Appends elements.
pub fn extend<T>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    let mut more = more.into_iter();
    let (least, most) = more.size_hint();
    reserve(list, least);
    if most == Some(least) {
        list.extend(more.by_ref().take(least));
    }
    for element in more {
        push(list, element);
    }
}

/// A list of the elements.
pub fn collect<T>(elements: impl IntoIterator<Item = T>) -> Vec<T> {
    let elements = elements.into_iter();
    let mut list = with_capacity(elements.size_hint().0);
    extend(&mut list, elements);
    list
}

/// A list of the elements, or the first error.
///
/// # Errors
/// The first among the elements.
pub fn collect_results<T, E>(
    elements: impl IntoIterator<Item = std::result::Result<T, E>>,
) -> std::result::Result<Vec<T>, E> {
    let mut list = Vec::new();
    for element in elements {
        push(&mut list, element?);
    }
    Ok(list)
}

/// A list with `count` copies of an element.
pub fn filled<T: Clone>(element: T, count: usize) -> Vec<T> {
    let mut list = with_capacity(count);
    list.resize(count, element);
    list
}

/// Changes the length of a list.
pub fn resize<T: Clone>(list: &mut Vec<T>, count: usize, element: T) {
    reserve(list, count.saturating_sub(list.len()));
    list.resize(count, element);
}

/// A copy of the elements.
pub fn copied<T: Clone>(elements: &[T]) -> Vec<T> {
    let mut list = with_capacity(elements.len());
    list.extend_from_slice(elements);
    list
}

/// The elements of several lists, one list after the other.
pub fn concat<T: Clone>(lists: &[impl AsRef<[T]>]) -> Vec<T> {
    let mut all = with_capacity(lists.iter().map(|list| list.as_ref().len()).sum());
    lists.iter().for_each(|list| all.extend_from_slice(list.as_ref()));
    all
}

/// Makes capacity for one more entry of a map.
#[inline]
pub fn reserve_entry<K: Eq + Hash, V, S: BuildHasher>(table: &mut HashMap<K, V, S>) {
    if table.len() == table.capacity() && tried(|| table.try_reserve(1)).is_err() {
        give_back();
        let bytes = table.capacity().saturating_mul(2 * size_of::<(K, V)>());
        tried(|| table.try_reserve(1)).unwrap_or_else(|_| refuse(bytes));
    }
}

/// Unwinds because the allocator's reserve is nearly used up.
pub fn refuse_all() -> ! {
    refuse(0)
}

/// Returns memory that is held for reuse to the system.
pub fn give_back() {
    pool::host().clear();
    free_list::clear();
}

/// Tries once more, after memory that is held for reuse was returned.
fn after<T>(count: usize, attempt: impl Fn(usize) -> Option<T>) -> Option<T> {
    give_back();
    attempt(count)
}

/// Records the refusal and unwinds.
fn refuse(wanted: usize) -> ! {
    REFUSED.store(true, Ordering::Relaxed);
    let promised = PROMISED.load(Ordering::Relaxed).saturating_sub(machine::touched());
    let free = machine::free().map(|free| free.saturating_sub(promised)).filter(|free| *free < wanted);
    resume_unwind(Box::new(Lacking { wanted, free }))
}

/// Records that there was no memory for code, which counts as a refusal.
pub fn note_refused_code() {
    REFUSED.store(true, Ordering::Relaxed);
    REFUSED_CODE.store(true, Ordering::Relaxed);
}

/// Whether there was no memory for code since the last call.
pub fn was_code_refused() -> bool {
    REFUSED_CODE.swap(false, Ordering::Relaxed)
}

/// Whether something was refused since the last call.
pub fn was_refused() -> bool {
    REFUSED.swap(false, Ordering::Relaxed)
}

/// Runs `work`, and turns unwinding for lack of memory into an error.
///
/// # Errors
/// `HostMemory`.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| match panic.downcast::<Lacking>() {
        Ok(lacking) => Error::HostMemory { wanted: lacking.wanted as u64, free: lacking.free.map(|free| free as u64) },
        Err(panic) => resume_unwind(panic),
    })
}

#[cfg(target_os = "linux")]
mod machine {
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Bytes that this process can still get; None: the system does not say.
    pub fn free() -> Option<usize> {
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        let free = line(&text, "MemAvailable:")? * 1024 + line(&text, "SwapFree:").unwrap_or(0) * 1024;
        Some(of_group().map_or(free, |group| group.min(free)))
    }
    /// Bytes of this process that are in memory.
    pub fn touched() -> usize {
        let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
        line(&text, "VmRSS:").unwrap_or(0) * 1024 + line(&text, "VmSwap:").unwrap_or(0) * 1024
    }
    /// What the control groups of the process leave it. The limit of a container is one.
    fn of_group() -> Option<usize> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let root = Path::new("/sys/fs/cgroup");
        let mut folder: PathBuf = root.join(own);
        let mut least = None;
        while folder.starts_with(root) {
            least = [least, left(&folder)].into_iter().flatten().min();
            folder.pop();
        }
        least
    }
    fn left(folder: &Path) -> Option<usize> {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let most: usize = read("memory.max")?.trim().parse().ok()?;
        let used: usize = read("memory.current")?.trim().parse().ok()?;
        // the system drops cached file pages when memory is wanted
        let files = read("memory.stat").and_then(|text| line(&text, "file ")).unwrap_or(0);
        Some(most.saturating_sub(used.saturating_sub(files)))
    }
    /// The first number of the line that begins with `name`.
    pub fn line(text: &str, name: &str) -> Option<usize> {
        text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod machine {
    pub fn free() -> Option<usize> {
        None
    }
    pub fn touched() -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_promised_and_not_touched_is_not_free() {
        assert!(fits(10, 0, 0, 10) && !fits(11, 0, 0, 10));
        assert!(!fits(10, 5, 0, 10) && !fits(10, 5, 4, 10) && fits(10, 5, 5, 10) && fits(10, 5, 99, 10));
        assert!(!fits(usize::MAX, usize::MAX, 0, usize::MAX - 1));
    }

    #[test]
    fn what_no_machine_has_is_refused_as_an_error() {
        let refused = caught(|| zeroed::<u64>(usize::MAX / 64));
        assert!(matches!(refused, Err(Error::HostMemory { .. })), "{refused:?}");
        assert!(was_refused());
        assert!(caught(|| zeroed::<u64>(100)).is_ok_and(|rows| rows == [0; 100]));
    }

    #[test]
    fn lists_that_no_machine_has_are_refused_as_errors() {
        let most = usize::MAX / 64;
        assert!(matches!(caught(|| with_capacity::<u64>(most)), Err(Error::HostMemory { .. })));
        assert!(caught(|| filled(1u64, most)).is_err() && caught(|| collect((0..most as u64).map(|x| x + 1))).is_err());
        let mut list = vec![1, 2];
        assert!(caught(|| reserve(&mut list, most)).is_err());
        assert!(!is_tried(), "what comes next may not fail");
        extend(&mut list, [3, 4].into_iter().filter(|x| x % 2 == 0));
        push(&mut list, 5);
        resize(&mut list, 5, 6);
        assert_eq!(concat(&[list, copied(&[7])]), [1, 2, 4, 5, 6, 7]);
        assert_eq!(collect_results([Ok(1), Err(2), Err(3)]), Err::<Vec<i32>, i32>(2));
    }

    #[test]
    fn promises_count_while_they_are_held() {
        // other tests hold promises, too
        let held = promise(MUCH).expect("the machine has 64 MiB");
        assert!(PROMISED.load(Ordering::Relaxed) >= MUCH);
        drop(held);
        assert!(promise(MUCH - 1).is_some_and(|promise| promise.0 == 0));
    }

    #[test]
    fn other_panics_go_on() {
        let other = catch_unwind(|| caught(|| std::panic::resume_unwind(Box::new("another"))).map(|(): ()| ()));
        assert!(other.is_err_and(|panic| panic.is::<&str>()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_machine_says_what_it_has() {
        assert_eq!(machine::line("MemTotal:  7 kB\nMemAvailable:   12 kB\n", "MemAvailable:"), Some(12));
        assert!(machine::free().is_some_and(|bytes| bytes > 0) && machine::touched() > 0);
    }
}
