//! Threads that help with a launch.
//!
//! Here: calling helpers from the pool of this process ([`crate::backend::threads`]). Not here: what they do
//! ([`super::split`]).
//!
//! The calling thread works too, and waits only for helpers that have begun: a pool that is busy with another launch
//! delays nobody.

use super::split::{self, Progress, Record, Shared, Work};
use crate::backend::TrapRecord;
use crate::backend::threads::{STACK, Threads};
use crate::error::Result;
use parking_lot::{Condvar, Mutex};
use rayon::ThreadPool;
use std::sync::Arc;

/// What generated code may use of a thread's stack; the rest is for rayon and libm.
pub const USABLE_STACK: u64 = STACK as u64 - (1 << 20);

/// The threads of one backend.
pub struct Crew {
    threads: Threads,
}

impl Crew {
    pub fn new(threads: Threads) -> Self {
        Self { threads }
    }

    /// How many threads run a launch at the same time, at most.
    pub fn threads(&self) -> usize {
        self.threads.count()
    }

    pub fn pool(&self) -> &Threads {
        &self.threads
    }

    /// Runs a launch on this thread, and on others where it is long enough. Answers the trap with the least key.
    pub fn run(&self, work: Work) -> Option<TrapRecord> {
        let record = Record::default();
        let mut state = work.state.clone();
        let Some(progress) = split::alone(&work, &mut state, &record, self.threads()) else {
            return record.get();
        };
        let team = Team::new(Shared::new(work, record, progress, self.threads()));
        // Without a pool (the system gives no threads) this thread does it all.
        if let Ok(pool) = self.threads.pool() {
            let helpers = team.shared.left().min(self.threads() as u64 - 1);
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
        let pool = self.threads.pool()?;
        // Nothing was measured; a guess decides how large chunks are.
        let progress = Progress { step: 0, job: 0, cost: 1e-6 };
        let team = Team::new(Shared::new(work, Record::default(), progress, self.threads()));
        team.invite(pool, team.shared.left().min(self.threads() as u64));
        team.wait();
        team.close();
        Ok(team.shared.record.get())
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
