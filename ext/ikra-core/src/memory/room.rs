//! Whether the host's memory suffices for what is much.
//!
//! Here: [`check`] and [`promise`], which refuse what the machine does not have; [`zeroed`] and [`promised`], of the allocator; how a refusal travels ([`caught`]). Not here: a device's memory, which its
//! backend counts.
//!
//! Linux gives addresses for memory that it does not have, and ends the process that touches them. So before much is had, the machine is asked how much it can still give, and that is compared
//! with what is wanted, and with what was had already and nobody has touched yet. What is less than [`MUCH`] is the allocator's affair: asking takes as long as filling some of it.
//!
//! Columns are made in many places, few of which could do anything about a machine that is too small. So who finds no memory unwinds ([`Lacking`]; no panic hook hears of it), and who began
//! what it was for makes an [`Error::HostMemory`] of that: [`caught`]. Nothing has changed by then: contents are made before they take the place of others.

use super::pages;
use super::{pool, shelf};
use crate::error::{Error, Result};
use crate::memory::column::Element;
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
    let zeroed = pages::zeroed(count).or_else(|| after(count, pages::zeroed));
    (zeroed.unwrap_or_else(|| refuse(bytes)), promise)
}

/// Tries once more, with nothing kept.
fn after<T>(count: usize, attempt: impl Fn(usize) -> Option<T>) -> Option<T> {
    pool::host().clear();
    shelf::clear();
    attempt(count)
}

/// Unwinds.
fn refuse(wanted: usize) -> ! {
    REFUSED.store(true, Ordering::Relaxed);
    let promised = PROMISED.load(Ordering::Relaxed).saturating_sub(machine::touched());
    let free = machine::free().map(|free| free.saturating_sub(promised)).filter(|free| *free < wanted);
    resume_unwind(Box::new(Lacking { wanted, free }))
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
