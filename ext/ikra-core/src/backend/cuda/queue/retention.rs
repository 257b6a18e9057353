//! What launches under way hold until they are done: memory, code, completion slots.
//!
//! Here: [`Work`], [`Retention`]. Not here: how work is queued ([`super::submission`]), and how the queue learns that
//! it is done ([`super::completion`]).
//!
//! Invariant: launches are in the order of the stream, and so are their marks.

use super::completion::{Completion, Mark, Pending};
use crate::backend::cuda::driver::Module;
use crate::backend::cuda::status::CompletionSlot;
use crate::error::Result;
use crate::memory::buffer::DeviceMemory;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// Returns the pending work of memory, if it is of this backend.
pub(super) type PendingOf = fn(&dyn DeviceMemory) -> Option<&Pending>;

/// The code that a launch may run.
pub(super) type Modules = SmallVec<[Arc<Module>; 2]>;

/// A launch that is under way.
pub(super) struct Work {
    pub behind: Arc<Mark>,
    /// Memory that is held until the launch is done.
    pub holds: Vec<Arc<dyn DeviceMemory>>,
    /// Whether it uses no earlier memory, such as work that only allocates. A later launch is then never taken for a
    /// repetition of it.
    pub makes: bool,
    /// Code that is held until the launch is done, because all other owners may drop it.
    pub _code: Modules,
    /// Where the launch reports how it ended, if it may raise.
    pub slot: Option<Arc<CompletionSlot>>,
}

impl Drop for Work {
    /// Runs when the launch is done, or the device is lost.
    fn drop(&mut self) {
        if let Some(slot) = &self.slot
            && self.behind.is_past().unwrap_or(false)
        {
            slot.complete();
        }
    }
}

/// How many of the newest launches are searched for memory that only they hold.
pub(super) const RECENT_LAUNCHES: usize = 8;
/// At least so many launches are queued before the driver is asked again which ones are done.
const MIN_LAUNCHES_BETWEEN_SWEEPS: usize = 32;
/// From how many earlier launches a new launch takes over held memory. Two, for loops of two alternating calls.
const MAX_TAKEN_OVER_LAUNCHES: usize = 2;
/// If launches hold more bytes, the driver is asked which ones are done.
const MAX_FINISHED_BYTES: usize = 16 << 20;

/// The launches under way.
#[derive(Default)]
pub(super) struct Retention {
    /// In the order of the stream.
    under_way: VecDeque<Work>,
    /// How many launches were queued and released before those.
    gone: u64,
    /// Bytes of memory that they hold.
    held: usize,
    /// How many launches there may be before the driver is asked which ones are done.
    patience: usize,
}

impl Retention {
    /// How many launches are under way.
    pub fn len(&self) -> usize {
        self.under_way.len()
    }
    /// The mark behind the last launch.
    pub fn last_mark(&self) -> Option<&Arc<Mark>> {
        self.under_way.back().map(|last| &last.behind)
    }
    /// How many launches were queued so far.
    pub fn total(&self) -> u64 {
        self.gone + self.under_way.len() as u64
    }
    /// The newest launches.
    pub fn last(&self) -> impl DoubleEndedIterator<Item = &Work> {
        self.under_way.range(self.under_way.len().saturating_sub(RECENT_LAUNCHES)..)
    }
    /// Whether the memory has no owners but `holders` and the newest launches.
    pub fn has_alone(&self, memory: &Arc<dyn DeviceMemory>, holders: usize) -> bool {
        let held = |work: &Work| work.holds.iter().filter(|other| Arc::ptr_eq(other, memory)).count();
        Arc::strong_count(memory) == holders + self.last().map(held).sum::<usize>()
    }
    /// The mark behind the last of the newest launches that uses the memory. Only that launch holds it from now on.
    pub fn last_use(&mut self, memory: &Arc<dyn DeviceMemory>) -> Option<Arc<Mark>> {
        let mut behind = None;
        for work in self.under_way.iter_mut().rev().take(RECENT_LAUNCHES) {
            if behind.is_some() {
                let before = work.holds.len();
                work.holds.retain(|other| !Arc::ptr_eq(other, memory));
                self.held -= (before - work.holds.len()) * memory.bytes();
            } else if work.holds.iter().any(|other| Arc::ptr_eq(other, memory)) {
                behind = Some(work.behind.clone());
            }
        }
        behind
    }
    /// Whether a launch that uses this memory repeats the last one's work, as in a loop of calls. If so, a thread that
    /// waits for the last one may wait for both.
    pub fn repeats(&self, holds: &[Arc<dyn DeviceMemory>]) -> bool {
        let is_held = |memory: &Arc<dyn DeviceMemory>| holds.iter().any(|other| Arc::ptr_eq(other, memory));
        self.under_way.back().is_some_and(|last| !last.makes && last.holds.iter().all(is_held))
    }
    /// Holds what a new launch uses.
    pub fn add(&mut self, work: Work) {
        // the new launch runs after those before it, so it can hold for them the memory that it uses, too
        let mut gone = 0;
        for before in self.under_way.iter_mut().rev().take(MAX_TAKEN_OVER_LAUNCHES) {
            before.holds.retain(|memory| {
                let is_held = work.holds.iter().any(|other| Arc::ptr_eq(other, memory));
                gone += if is_held { memory.bytes() } else { 0 };
                !is_held
            });
        }
        self.held -= gone;
        self.held += bytes(&work.holds);
        self.under_way.push_back(work);
    }
    /// How many launches are before the mark that is behind launch `at`.
    fn before(&self, at: usize) -> usize {
        let mark = &self.under_way[at].behind;
        at + self.under_way.range(at..).take_while(|work| Arc::ptr_eq(&work.behind, mark)).count()
    }
    /// Releases the launches before a mark that the stream has passed.
    pub fn let_go_to(&mut self, mark: &Arc<Mark>, completion: &mut Completion, pending: PendingOf) {
        if let Some(at) = self.under_way.iter().position(|work| Arc::ptr_eq(&work.behind, mark)) {
            let done = self.before(at);
            self.let_go(done, completion, pending);
        }
    }
    /// Releases all launches, which are done.
    pub fn let_go_all(&mut self, completion: &mut Completion, pending: PendingOf) {
        let all = self.under_way.len();
        self.let_go(all, completion, pending);
    }
    /// Releases the first launches, which are done and all before one mark. Records in their memory that the stream has
    /// passed their marks, and keeps their events for reuse.
    fn let_go(&mut self, count: usize, completion: &mut Completion, pending: PendingOf) {
        let mut last: Option<Arc<Mark>> = None;
        for mut work in self.under_way.drain(..count) {
            if let Some(slot) = work.slot.take() {
                slot.complete();
            }
            for memory in &work.holds {
                self.held -= memory.bytes();
                if let Some(pending) = pending(&**memory) {
                    pending.passed(&work.behind);
                }
            }
            if last.as_ref().is_none_or(|last| !Arc::ptr_eq(last, &work.behind)) {
                completion.reuse(&work.behind);
                last = Some(work.behind.clone());
            }
            // dropping device memory only records that it is free
        }
        self.gone += count as u64;
        self.patience = self.under_way.len() + MIN_LAUNCHES_BETWEEN_SWEEPS;
    }
    /// Releases those of the first `total` launches, ever queued, that are still held.
    pub fn let_go_before(&mut self, total: u64, completion: &mut Completion, pending: PendingOf) {
        let known = total.saturating_sub(self.gone) as usize;
        self.let_go(known, completion, pending);
    }
    /// Releases launches that are done. If the last one is, all are, and the driver is asked only once.
    pub fn sweep(&mut self, completion: &mut Completion, pending: PendingOf) -> Result<()> {
        let Some(last) = self.under_way.back() else { return Ok(()) };
        let mut done = if last.behind.is_past()? { self.under_way.len() } else { 0 };
        while let Some(work) = self.under_way.get(done)
            && work.behind.is_past()?
        {
            done = self.before(done);
        }
        self.let_go(done, completion, pending);
        Ok(())
    }
    /// Releases launches that are done, before more are queued. Asking the driver takes half as long as a launch. So it
    /// is asked once for many launches, and only whether the first half is done. Those may hold memory for longer than
    /// necessary, if it is not much.
    pub fn sweep_many(&mut self, completion: &mut Completion, pending: PendingOf) -> Result<()> {
        // the last launch has probably not ended
        if self.held > MAX_FINISHED_BYTES
            && self.held - self.under_way.back().map_or(0, |last| bytes(&last.holds)) > MAX_FINISHED_BYTES
        {
            return self.sweep(completion, pending);
        }
        let many = self.under_way.len();
        if many < self.patience.max(MIN_LAUNCHES_BETWEEN_SWEEPS) {
            return Ok(());
        }
        let half = many / 2;
        let done = if self.under_way[half].behind.is_past()? { self.before(half) } else { 0 };
        self.let_go(done, completion, pending);
        Ok(())
    }
}

fn bytes(memories: &[Arc<dyn DeviceMemory>]) -> usize {
    memories.iter().map(|memory| memory.bytes()).sum()
}
