//! Threads that help with a launch.
//!
//! Here: one rayon pool per process id (a forked child inherits the memory of a pool but none of its threads), and
//! calling helpers. Not here: what they do ([`super::split`]).
//!
//! The calling thread works too, and waits only for helpers that have begun: a pool that is busy with another launch
//! delays nobody.

use super::split::{self, Progress, Record, Shared, Work};
use crate::backend::TrapRecord;
use crate::error::{Error, Result};
use once_cell::race::OnceBox;
use parking_lot::{Condvar, Mutex};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;

/// Stack of a pool's thread. Only what is used takes memory.
const STACK: usize = 32 << 20;
/// What generated code may use of it; the rest is for rayon and libm.
pub const USABLE_STACK: u64 = STACK as u64 - (1 << 20);

/// The threads of one backend.
pub struct Crew {
    threads: usize,
    pools: OnceBox<Pool>,
}

/// The pool of one process; those of its forked children follow. No lock guards the list, because a thread that does
/// not exist in the child may have held it.
struct Pool {
    process: u32,
    threads: Option<ThreadPool>,
    next: OnceBox<Pool>,
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // Inherited: there are no threads to tell.
            std::mem::forget(self.threads.take());
        }
    }
}

impl Crew {
    pub fn new(threads: usize) -> Self {
        Self { threads, pools: OnceBox::new() }
    }

    /// How many threads run a launch at the same time, at most.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Runs a launch on this thread, and on others where it is long enough. Answers the trap with the least key.
    pub fn run(&self, work: Work) -> Option<TrapRecord> {
        let record = Record::default();
        let mut state = work.state.clone();
        let Some(progress) = split::alone(&work, &mut state, &record, self.threads) else {
            return record.get();
        };
        let team = Team::new(Shared::new(work, record, progress, self.threads));
        // Without a pool (the system gives no threads) this thread does it all.
        if let Ok(pool) = self.pool() {
            let helpers = team.shared.left().min(self.threads as u64 - 1);
            team.invite(pool, helpers);
        }
        team.shared.help();
        team.close();
        team.shared.record.get()
    }

    /// Runs a launch on the pool's threads only, whose stacks are known to suffice for nested calls.
    pub fn run_away(&self, work: Work) -> Result<Option<TrapRecord>> {
        if work.steps() == 0 {
            return Ok(None);
        }
        let pool = self.pool()?;
        // Nothing was measured; a guess decides how large chunks are.
        let progress = Progress { step: 0, job: 0, cost: 1e-6 };
        let team = Team::new(Shared::new(work, Record::default(), progress, self.threads));
        team.invite(pool, team.shared.left().min(self.threads as u64));
        team.wait();
        team.close();
        Ok(team.shared.record.get())
    }

    /// This process's pool, started when it is first needed.
    fn pool(&self) -> Result<&ThreadPool> {
        let process = std::process::id();
        let mut slot = &self.pools;
        loop {
            let pool = slot.get_or_try_init(|| self.start(process).map(Box::new))?;
            match &pool.threads {
                Some(threads) if pool.process == process => return Ok(threads),
                _ => slot = &pool.next,
            }
        }
    }

    fn start(&self, process: u32) -> Result<Pool> {
        let threads = ThreadPoolBuilder::new()
            .num_threads(self.threads)
            .stack_size(STACK)
            .thread_name(|i| format!("ikra-{i}"))
            .build()
            .map_err(|error| Error::Device { what: "starting threads".to_owned(), cause: error.to_string() })?;
        Ok(Pool { process, threads: Some(threads), next: OnceBox::new() })
    }
}

/// Shared work, and who is at it.
#[derive(Clone)]
struct Team {
    shared: Arc<Shared>,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    inside: Mutex<Inside>,
    left: Condvar,
}

#[derive(Default)]
struct Inside {
    helpers: usize,
    closed: bool,
}

impl Team {
    fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared), gate: Arc::default() }
    }

    /// Wakes one thread, which wakes two, and so on.
    fn invite(&self, pool: &ThreadPool, helpers: u64) {
        if helpers > 0 {
            let team = self.clone();
            pool.spawn(move || team.join(helpers));
        }
    }

    fn join(self, helpers: u64) {
        {
            let mut inside = self.gate.inside.lock();
            if inside.closed {
                return;
            }
            inside.helpers += 1;
        }
        let others = helpers - 1;
        for half in [others.div_ceil(2), others / 2] {
            if half > 0 {
                let team = self.clone();
                rayon::spawn(move || team.join(half));
            }
        }
        self.shared.help();
        self.gate.inside.lock().helpers -= 1;
        self.gate.left.notify_all();
    }

    /// Waits until all is done, by others.
    fn wait(&self) {
        let mut inside = self.gate.inside.lock();
        while !self.shared.finished() {
            self.gate.left.wait(&mut inside);
        }
    }

    /// Lets nobody in any more, and waits until all have left: from then on nobody touches the launch's memory.
    fn close(&self) {
        let mut inside = self.gate.inside.lock();
        inside.closed = true;
        while inside.helpers > 0 {
            self.gate.left.wait(&mut inside);
        }
    }
}
