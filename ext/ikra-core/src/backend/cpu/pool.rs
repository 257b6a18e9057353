//! The worker pool of the CPU backend.
//!
//! Here: runs the chunks of a launch ([`super::split`]) on the threads of this process ([`crate::backend::threads`]).
//! Not here: how workers are woken ([`crate::backend::worker_pool`]).

use super::split::{self, Record, Shared, Work};
use crate::backend::TrapRecord;
use crate::backend::threads::{STACK, Threads};
use crate::error::Result;

/// The part of a thread's stack that generated code may use. The rest is for rayon and libm.
pub const USABLE_STACK: u64 = STACK as u64 - (1 << 20);

/// The workers of one backend.
pub struct WorkerPool {
    threads: Threads,
}

impl WorkerPool {
    pub fn new(threads: Threads) -> Self {
        Self { threads }
    }

    /// How many threads run a launch at the same time at most.
    pub fn threads(&self) -> usize {
        self.threads.count()
    }

    pub fn pool(&self) -> &Threads {
        &self.threads
    }

    /// Runs a launch on this thread, and on others if it takes long enough, but for one that is `unsplit`. Returns the
    /// trap with the least key.
    pub fn run(&self, work: Work, unsplit: bool) -> Option<TrapRecord> {
        let record = Record::default();
        let mut state = work.state.clone();
        let threads = if unsplit { 1 } else { self.threads() };
        let progress = match work.emitters.clone() {
            Some(emitters) => emitters.lend(&mut state, |state| split::alone(&work, state, &record, threads)),
            None => split::alone(&work, &mut state, &record, threads),
        };
        let Some(progress) = progress else {
            return record.get();
        };
        let shared = Shared::new(work, record, progress, self.threads());
        let helpers = usize::try_from(shared.left()).unwrap_or(usize::MAX);
        // if the system cannot start threads, this one does all
        if self.threads.share(helpers, &|| shared.help()).is_err() {
            shared.help();
        }
        shared.record.get()
    }

    /// Runs a launch only on the pool's threads, whose stacks suffice for nested calls.
    pub fn run_away(&self, work: Work) -> Result<Option<TrapRecord>> {
        if work.steps() == 0 {
            return Ok(None);
        }
        Ok(self.threads.pool()?.install(|| self.run(work, false)))
    }
}
