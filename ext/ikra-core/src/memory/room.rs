//! Whether the host's memory suffices for what is much.
//!
//! Here: [`check`] and [`promise`], which refuse what the machine does not have; [`zeroed`] and [`promised`], of the allocator; lists that grow with the data ([`collect`], [`push`] and their kin);
//! how a refusal travels ([`caught`]). Not here: a device's memory, which its backend counts.
//!
//! Linux gives addresses for memory that it does not have, and ends the process that touches them. So before much is had, the machine is asked how much it can still give, and that is compared
//! with what is wanted, and with what was had already and nobody has touched yet. What is less than [`MUCH`] is the allocator's affair: asking takes as long as filling some of it.
//!
//! Columns are made in many places, few of which could do anything about a machine that is too small. So who finds no memory unwinds ([`Lacking`]; no panic hook hears of it), and who began
//! what it was for makes an [`Error::HostMemory`] of that: [`caught`]. Nothing has changed by then: contents are made before they take the place of others.
//!
//! The standard library ends the process where an allocation fails that it was not told to expect. So every list whose length grows with the data is made by this module's functions, which try, and
//! unwind where the allocator has nothing (an address limit, for instance). What does not grow with the data (what the compiler makes, lists of pieces of the data) is made as usual: the extension's
//! allocator has a reserve for that, which it does not touch for what is only tried ([`is_tried`]).

use super::pages;
use super::{free_list, pool};
use crate::error::{Error, Result};
use crate::memory::column::Element;
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes before which the machine is asked.
pub const MUCH: usize = 64 << 20;

/// What unwinds where there is no memory.
#[derive(Debug)]
pub struct Lacking {
    wanted: usize,
    free: Option<usize>,
}

/// Bytes that were had when the machine was asked, while they are held.
static PROMISED: AtomicUsize = AtomicUsize::new(0);
/// Something was refused.
static REFUSED: AtomicBool = AtomicBool::new(false);
/// There was no room for code.
static REFUSED_CODE: AtomicBool = AtomicBool::new(false);

/// Held with memory that is much, for as long.
#[derive(Debug, Default)]
pub struct Promise(usize);

impl Drop for Promise {
    fn drop(&mut self) {
        PROMISED.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Asks for so many bytes, which are about to be had; None: the machine cannot give them.
pub fn promise(bytes: usize) -> Option<Promise> {
    if bytes < MUCH {
        return Some(Promise::default());
    }
    // counted first, so that two threads do not both get the last
    let promised = PROMISED.fetch_add(bytes, Ordering::Relaxed);
    let promise = Promise(bytes);
    let free = machine::free();
    free.is_none_or(|free| fits(bytes, promised, machine::touched(), free)).then_some(promise)
}

/// Whether bytes are there beside those that were promised. Of these, so many at least were not touched as the process has fewer in memory.
fn fits(wanted: usize, promised: usize, touched: usize, free: usize) -> bool {
    wanted.saturating_add(promised.saturating_sub(touched)) <= free
}

/// Unwinds if so many bytes more cannot be had, of whatever allocator.
pub fn check(bytes: usize) {
    drop(granted(bytes));
}

/// A promise, for which what is kept is given back; unwinds if there is no room.
fn granted(bytes: usize) -> Promise {
    promise(bytes).or_else(|| after(bytes, promise)).unwrap_or_else(|| refuse(bytes))
}

/// Elements of the allocator's that are zero. Unwinds if there is no room.
pub fn zeroed<T: Element>(count: usize) -> Vec<T> {
    promised(count).0
}

/// As [`zeroed`], with what is to be held as long as they are.
pub fn promised<T: Element>(count: usize) -> (Vec<T>, Promise) {
    let bytes = count.saturating_mul(T::BYTES);
    let promise = granted(bytes);
    let once = |count| tried(|| pages::zeroed(count));
    let zeroed = once(count).or_else(|| after(count, once));
    (zeroed.unwrap_or_else(|| refuse(bytes)), promise)
}

thread_local! {
    /// What this thread allocates now may fail.
    static TRIED: Cell<bool> = const { Cell::new(false) };
}

/// Whether what this thread allocates now may fail, as somebody looks whether it did.
pub fn is_tried() -> bool {
    TRIED.with(Cell::get)
}

thread_local! {
    /// What this thread does has changed something of the program's.
    static CHANGED: Cell<bool> = const { Cell::new(false) };
}

/// From here on what this thread does is not to be tried again.
pub fn note_change() {
    CHANGED.with(|changed| changed.set(true));
}

/// Sets whether this thread has changed something; answers whether it had.
pub fn changed(now: bool) -> bool {
    CHANGED.with(|changed| changed.replace(now))
}

/// An allocation that may fail.
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

/// An empty list with room for so many. Unwinds if there is none; so do all functions below.
pub fn with_capacity<T>(count: usize) -> Vec<T> {
    let mut list = Vec::new();
    reserve_exact(&mut list, count);
    list
}

/// Makes room for exactly so many more.
fn reserve_exact<T>(list: &mut Vec<T>, more: usize) {
    grow(list, more, Vec::try_reserve_exact);
}

/// Makes room for so many more, and as a rule for more than these.
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

/// One more element.
#[inline]
pub fn push<T>(list: &mut Vec<T>, element: T) {
    if list.len() == list.capacity() {
        reserve(list, 1);
    }
    list.push(element);
}

/// More elements.
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

/// A list of these.
pub fn collect<T>(elements: impl IntoIterator<Item = T>) -> Vec<T> {
    let elements = elements.into_iter();
    let mut list = with_capacity(elements.size_hint().0);
    extend(&mut list, elements);
    list
}

/// A list of these, or the first error.
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

/// A list of so many that are all the same.
pub fn filled<T: Clone>(element: T, count: usize) -> Vec<T> {
    let mut list = with_capacity(count);
    list.resize(count, element);
    list
}

/// Makes a list longer, or shorter.
pub fn resize<T: Clone>(list: &mut Vec<T>, count: usize, element: T) {
    reserve(list, count.saturating_sub(list.len()));
    list.resize(count, element);
}

/// The same elements in a list of their own.
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

/// Makes room for one more entry of a table.
#[inline]
pub fn reserve_entry<K: Eq + Hash, V, S: BuildHasher>(table: &mut HashMap<K, V, S>) {
    if table.len() == table.capacity() && tried(|| table.try_reserve(1)).is_err() {
        give_back();
        let bytes = table.capacity().saturating_mul(2 * size_of::<(K, V)>());
        tried(|| table.try_reserve(1)).unwrap_or_else(|_| refuse(bytes));
    }
}

/// Unwinds: this library's reserve is nearly used up.
pub fn refuse_all() -> ! {
    refuse(0)
}

/// What is kept for later goes back to the system.
pub fn give_back() {
    pool::host().clear();
    free_list::clear();
}

/// Tries once more, with nothing kept.
fn after<T>(count: usize, attempt: impl Fn(usize) -> Option<T>) -> Option<T> {
    give_back();
    attempt(count)
}

/// Unwinds.
fn refuse(wanted: usize) -> ! {
    REFUSED.store(true, Ordering::Relaxed);
    let promised = PROMISED.load(Ordering::Relaxed).saturating_sub(machine::touched());
    let free = machine::free().map(|free| free.saturating_sub(promised)).filter(|free| *free < wanted);
    resume_unwind(Box::new(Lacking { wanted, free }))
}

/// There was no room for code: something was refused, too.
pub fn note_refused_code() {
    REFUSED.store(true, Ordering::Relaxed);
    REFUSED_CODE.store(true, Ordering::Relaxed);
}

/// Whether there was no room for code since this was asked.
pub fn was_code_refused() -> bool {
    REFUSED_CODE.swap(false, Ordering::Relaxed)
}

/// Whether something was refused since this was asked.
pub fn was_refused() -> bool {
    REFUSED.swap(false, Ordering::Relaxed)
}

/// What is done, unless there is no memory for it.
///
/// # Errors
/// `HostMemory`, in place of unwinding.
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

    /// Bytes that this process can still have; None: nobody says.
    pub fn free() -> Option<usize> {
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        let free = line(&text, "MemAvailable:")? * 1024 + line(&text, "SwapFree:").unwrap_or(0) * 1024;
        Some(of_group().map_or(free, |group| group.min(free)))
    }
    /// Bytes of it that are in memory.
    pub fn touched() -> usize {
        let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
        line(&text, "VmRSS:").unwrap_or(0) * 1024 + line(&text, "VmSwap:").unwrap_or(0) * 1024
    }
    /// What the process's control group, and those around it, leave it: a container's limit is there.
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
        // files' pages go when others are wanted
        let files = read("memory.stat").and_then(|text| line(&text, "file ")).unwrap_or(0);
        Some(most.saturating_sub(used.saturating_sub(files)))
    }
    /// The first number of the line that begins so.
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
        // others hold some, too
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
