//! The arena: addresses for the generated code of a process.
//!
//! Here: [`Pages`], the pages of one program, which return to the arena when it is dropped. Not here: what is written
//! there ([`super::jit`]).
//!
//! The functions of a program call each other by distances of 32 bits, so all of its pages are in one region. A region
//! is a range of reserved addresses without memory, which is divided among programs. When the last region is full,
//! another is reserved. Pages that programs returned are reused, those with the lowest addresses first.
//!
//! Pages are writable or executable, never both. They are written while the program is linked, and executable from then
//! on. Pages without an owner are neither.
#![allow(unsafe_code, reason = "pages of executable memory")]

use crate::process;
use cranelift_jit::{BranchProtection, JITMemoryKind, JITMemoryProvider};
use cranelift_module::{ModuleError, ModuleResult};
use std::io;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Bytes of a region, and of the smallest that is tried when addresses are scarce.
const REGION: usize = 32 << 20;
const SMALL_REGION: usize = 256 << 10;
/// Bytes that a program takes at a time, unless a function needs more. What it does not need is returned when it is
/// linked.
const CHUNK: usize = 16 << 10;

/// Free ranges of one region, in ascending order, with gaps between them.
struct Region {
    start: usize,
    bytes: usize,
    free: Vec<(usize, usize)>,
}

impl Region {
    /// Reserves a region of addresses; None: there are not so many.
    fn new(bytes: usize) -> Option<Self> {
        // SAFETY: a new private mapping at an address that the system chooses. It changes no existing one.
        let start = unsafe {
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(null_mut(), bytes, libc::PROT_NONE, kind, -1, 0)
        };
        let start = (start != libc::MAP_FAILED).then_some(start.expose_provenance())?;
        Some(Self { start, bytes, free: vec![(start, bytes)] })
    }
    fn take(&mut self, bytes: usize) -> Option<usize> {
        let at = self.free.iter().position(|(_, free)| *free >= bytes)?;
        let (start, free) = self.free[at];
        if free == bytes {
            self.free.remove(at);
        } else {
            self.free[at] = (start + bytes, free - bytes);
        }
        Some(start)
    }
    fn give(&mut self, start: usize, bytes: usize) {
        let at = self.free.partition_point(|(other, _)| *other < start);
        self.free.insert(at, (start, bytes));
        for before in [at, at.wrapping_sub(1)] {
            if let Some([(from, len), (next, more)]) =
                self.free.get(before..).and_then(|rest| rest.first_chunk().copied())
                && from + len == next
            {
                self.free[before].1 += more;
                self.free.remove(before + 1);
            }
        }
    }
    fn is_free(&self) -> bool {
        self.free.as_slice() == [(self.start, self.bytes)]
    }
}

/// The regions of one process. A child of `fork` takes over its copy of the parent's: so code of the parent that the
/// child drops leaves room for code of the child. Where the lock was held during the `fork`, nobody in the child will
/// release it, and the child makes an arena of its own. So arenas are leaked.
struct Arena {
    process: AtomicU32,
    regions: Mutex<Vec<Region>>,
}

static ARENA: AtomicPtr<Arena> = AtomicPtr::new(null_mut());
/// Bytes in pages that programs own.
static HELD: AtomicUsize = AtomicUsize::new(0);

impl Arena {
    fn new() -> Self {
        Self { process: AtomicU32::new(process::id()), regions: Mutex::default() }
    }

    fn of_this_process() -> &'static Self {
        loop {
            let known = ARENA.load(Ordering::Acquire);
            // SAFETY: the pointer is null, or was leaked below.
            match unsafe { known.as_ref() } {
                Some(arena) if arena.take_over() => return arena,
                _ => {}
            }
            let new = Box::into_raw(Box::new(Self::new()));
            if ARENA.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: it was made above, and no other thread saw it.
                drop(unsafe { Box::from_raw(new) });
            }
        }
    }

    /// Makes it this process's. False: the lock is held, as it was during the `fork`. Ranges only change under the
    /// lock, so they are whole where it is free. Pages that other threads of the parent owned stay owned.
    fn take_over(&self) -> bool {
        let now = process::id();
        if self.process.load(Ordering::Acquire) == now {
            return true;
        }
        if matches!(self.regions.try_lock(), Err(TryLockError::WouldBlock)) {
            return false;
        }
        self.process.store(now, Ordering::Release);
        true
    }

    fn regions(&self) -> MutexGuard<'_, Vec<Region>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes pages: of the region that begins at `region`; if that is None, of any region or a new one.
    fn take(&self, region: Option<usize>, bytes: usize) -> Option<(usize, usize)> {
        let mut regions = self.regions();
        let own = |other: &&mut Region| region.is_none_or(|start| other.start == start);
        let found = regions.iter_mut().filter(own).find_map(|region| Some((region.start, region.take(bytes)?)));
        if found.is_some() || region.is_some() {
            return found;
        }
        self.widen(&mut regions, bytes)
    }

    /// Takes pages of a new region.
    fn take_fresh(&self, bytes: usize) -> Option<(usize, usize)> {
        self.widen(&mut self.regions(), bytes)
    }

    fn widen(&self, regions: &mut Vec<Region>, bytes: usize) -> Option<(usize, usize)> {
        let mut sizes =
            std::iter::successors(Some(REGION), |size| Some(size / 2)).take_while(|size| *size >= SMALL_REGION);
        let mut region = sizes.find_map(|size| Region::new(size.max(bytes)))?;
        let taken = (region.start, region.take(bytes)?);
        regions.push(region);
        Some(taken)
    }

    /// Takes pages back from a program.
    fn give(&self, region: usize, start: usize, bytes: usize) {
        // SAFETY: the pages are the arena's, and no program owns them any more. If protecting them fails, that does no
        // harm: they are written anew before their next use.
        unsafe {
            libc::mprotect(without_provenance_mut(start), bytes, libc::PROT_NONE);
            libc::madvise(without_provenance_mut(start), bytes, libc::MADV_DONTNEED);
        }
        // in a child, a copy of an arena whose lock is held cannot be used any more, and need not be
        if !self.take_over() {
            return;
        }
        let mut regions = self.regions();
        let Some(at) = regions.iter().position(|other| other.start == region) else { return };
        regions[at].give(start, bytes);
        if regions[at].is_free() && regions.len() > 1 {
            let gone = regions.swap_remove(at);
            // SAFETY: the mapping is the arena's, and no program owns a part of it.
            unsafe { libc::munmap(without_provenance_mut(gone.start), gone.bytes) };
        }
    }
}

/// Contiguous pages.
struct Chunk {
    start: usize,
    bytes: usize,
    used: usize,
    access: libc::c_int,
}

/// The pages of one program.
pub struct Pages {
    arena: &'static Arena,
    /// The start of the region of all pages; None before the first.
    region: Option<usize>,
    /// Whether to take pages of a new region.
    fresh: bool,
    chunks: Vec<Chunk>,
    linked: usize,
}

impl Pages {
    /// No pages yet. `fresh`: take them of a new region, because the regions of other programs have too few.
    pub fn new(fresh: bool) -> Self {
        Self::of(Arena::of_this_process(), fresh)
    }

    fn of(arena: &'static Arena, fresh: bool) -> Self {
        Self { arena, region: None, fresh, chunks: Vec::new(), linked: 0 }
    }

    fn chunk(&mut self, bytes: usize, access: libc::c_int) -> Option<Chunk> {
        let taken = match self.region {
            None if self.fresh => self.arena.take_fresh(bytes),
            region => self.arena.take(region, bytes),
        };
        let (region, start) = taken?;
        self.region = Some(region);
        // SAFETY: the pages are the arena's, this program owns them now, and they are empty.
        if unsafe { libc::mprotect(without_provenance_mut(start), bytes, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            self.arena.give(region, start, bytes);
            return None;
        }
        HELD.fetch_add(bytes, Ordering::Relaxed);
        Some(Chunk { start, bytes, used: 0, access })
    }

    fn give(&self, start: usize, bytes: usize) {
        if let (Some(region), true) = (self.region, bytes > 0) {
            HELD.fetch_sub(bytes, Ordering::Relaxed);
            self.arena.give(region, start, bytes);
        }
    }

    fn give_all(&mut self) {
        for chunk in std::mem::take(&mut self.chunks) {
            self.give(chunk.start, chunk.bytes);
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // linked code may be running: only its program says when its pages can be returned
        if self.linked == 0 {
            self.give_all();
        }
    }
}

impl JITMemoryProvider for Pages {
    fn allocate(&mut self, size: usize, align: u64, kind: JITMemoryKind) -> io::Result<*mut u8> {
        let access = match kind {
            JITMemoryKind::Executable => libc::PROT_READ | libc::PROT_EXEC,
            JITMemoryKind::Writable => libc::PROT_READ | libc::PROT_WRITE,
            JITMemoryKind::ReadOnly => libc::PROT_READ,
        };
        let align = usize::try_from(align).unwrap_or(usize::MAX);
        let place = |chunk: &Chunk| {
            let from = chunk.used.checked_next_multiple_of(align)?;
            (from.checked_add(size)? <= chunk.bytes).then_some(from)
        };
        let fits = |chunk: &Chunk| chunk.access == access && place(chunk).is_some();
        let unlinked = &self.chunks[self.linked..];
        let at = match unlinked.iter().position(fits) {
            Some(at) => self.linked + at,
            None => {
                let bytes = size.checked_next_multiple_of(CHUNK).ok_or(io::ErrorKind::OutOfMemory)?;
                let chunk = self.chunk(bytes.max(CHUNK), access).ok_or(io::ErrorKind::OutOfMemory)?;
                self.chunks.push(chunk);
                self.chunks.len() - 1
            }
        };
        let chunk = &mut self.chunks[at];
        let from = place(chunk).ok_or(io::ErrorKind::OutOfMemory)?;
        chunk.used = from + size;
        Ok(std::ptr::with_exposed_provenance_mut(chunk.start + from))
    }

    unsafe fn free_memory(&mut self) {
        self.give_all();
    }

    fn finalize(&mut self, protection: BranchProtection) -> ModuleResult<()> {
        let failed = |what: &str| ModuleError::Allocation { err: io::Error::other(what.to_owned()) };
        for at in self.linked..self.chunks.len() {
            let page = page();
            let Chunk { start, bytes, used, access } = self.chunks[at];
            let needed = used.next_multiple_of(page).min(bytes);
            self.chunks[at].bytes = needed;
            self.give(start + needed, bytes - needed);
            if needed == 0 {
                continue;
            }
            if access & libc::PROT_EXEC != 0 {
                // SAFETY: the bytes are in pages that this program owns.
                unsafe { wasmtime_internal_jit_icache_coherence::clear_cache(without_provenance_mut(start), needed) }
                    .map_err(|_| failed("the processor's cache of code"))?;
            }
            let branches = if access & libc::PROT_EXEC != 0 { branch_targets(protection) } else { 0 };
            // SAFETY: this program owns the pages, and nothing writes to them any more.
            if unsafe { libc::mprotect(without_provenance_mut(start), needed, access | branches) } != 0 {
                return Err(failed("pages cannot be made executable"));
            }
        }
        self.linked = self.chunks.len();
        wasmtime_internal_jit_icache_coherence::pipeline_flush_mt().map_err(|_| failed("the processors' pipelines"))
    }
}

/// `PROT_BTI`, if the code has branch targets for it.
fn branch_targets(protection: BranchProtection) -> libc::c_int {
    let is_known = cfg!(all(target_arch = "aarch64", target_os = "linux"));
    if is_known && protection == BranchProtection::BTI { 0x10 } else { 0 }
}

fn page() -> usize {
    // SAFETY: the call only asks the system for a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).ok().filter(|bytes| *bytes > 0).unwrap_or(CHUNK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(pages: &mut Pages, size: usize) -> usize {
        pages.allocate(size, 16, JITMemoryKind::Executable).expect("there are addresses").expose_provenance()
    }

    #[test]
    fn stretches_that_meet_are_one_again() {
        let mut region = Region { start: 4096, bytes: 10 * 4096, free: vec![(4096, 10 * 4096)] };
        let taken: Vec<usize> = (0..3).filter_map(|_| region.take(4096)).collect();
        assert_eq!(taken, [4096, 2 * 4096, 3 * 4096]);
        region.give(4096, 4096);
        region.give(3 * 4096, 4096);
        assert_eq!(region.free, [(4096, 4096), (3 * 4096, 8 * 4096)]);
        assert_eq!(region.take(2 * 4096), Some(3 * 4096), "the first that suffices");
        region.give(3 * 4096, 2 * 4096);
        region.give(2 * 4096, 4096);
        assert!(region.is_free());
        assert_eq!(region.take(11 * 4096), None);
    }

    #[test]
    fn programs_have_what_they_need_until_they_are_gone() {
        let mut pages = Pages::new(false);
        let (first, second) = (code(&mut pages, 1000), code(&mut pages, 3000));
        assert!(second - first < CHUNK && second % 16 == 0);
        let large = code(&mut pages, 100_000);
        assert!(large.abs_diff(first) < REGION, "within reach");
        pages.finalize(BranchProtection::None).expect("pages can be run");
        let held: usize = pages.chunks.iter().map(|chunk| chunk.bytes).sum();
        assert!(held <= 4096 + 102_400, "{held}");
        // SAFETY: no thread runs the code.
        unsafe { pages.free_memory() };
        assert!(pages.chunks.is_empty());
    }

    #[test]
    fn what_nobody_has_is_had_again() {
        let arena: &'static Arena = Box::leak(Box::new(Arena::new()));
        let pages = || Pages::of(arena, false);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            seen.insert(code(&mut pages(), 5000));
        }
        assert_eq!((seen.len(), arena.regions().len()), (1, 1));
        let mut many: Vec<Pages> = (0..3 * REGION / (1 << 20)).map(|_| pages()).collect();
        many.iter_mut().for_each(|pages| _ = code(pages, 1 << 20));
        assert_eq!(arena.regions().len(), 3);
        drop(many);
        assert_eq!(arena.regions().len(), 1, "others went back to the system");
        let mut fresh = Pages::of(arena, true);
        code(&mut fresh, 10);
        assert_eq!(arena.regions().len(), 2);
    }

    /// Whether it is so in a child of `fork`.
    fn in_a_child(question: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child only asks the question, for which it needs no thread of its parent, and then exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = if question() { 7 } else { 1 };
            // SAFETY: `_exit` runs no handlers of the parent.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: the child was made above, and the status is a live local.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7
    }

    #[test]
    fn a_child_reuses_the_pages_of_its_parents_programs() {
        let arena: &'static Arena = Box::leak(Box::new(Arena::new()));
        let mut pages = Pages::of(arena, false);
        let first = code(&mut pages, 5000);
        assert!(in_a_child(|| {
            let mut own = Pages::of(arena, false);
            let is_apart = arena.take_over() && code(&mut own, 5000) != first;
            drop(own);
            pages.give_all();
            is_apart && code(&mut Pages::of(arena, false), 5000) == first && arena.regions().len() == 1
        }));
        assert_ne!(code(&mut Pages::of(arena, false), 5000), first, "the parent's program still has them");
    }

    #[test]
    fn a_child_leaves_an_arena_whose_lock_is_held() {
        let arena: &'static Arena = Box::leak(Box::new(Arena::new()));
        let mut pages = Pages::of(arena, false);
        code(&mut pages, 5000);
        let held = arena.regions();
        assert!(in_a_child(|| {
            pages.give_all();
            !arena.take_over()
        }));
        drop(held);
        assert!(arena.take_over());
    }
}
