//! The host threads that work for this process.
//!
//! Here: one rayon pool per process id, because a forked child inherits the memory of a pool but none of its threads.
//! Not here: the work ([`super::cpu`], [`super::collective`]), and how threads are woken for it
//! ([`super::worker_pool`]).

use crate::error::{Error, Result};
use once_cell::race::OnceBox;
use once_cell::sync::Lazy;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::sync::Arc;

/// The stack of a thread. Only touched pages use memory.
pub const STACK: usize = 32 << 20;

/// A number of threads, which are started when they are first needed. Clones share the threads.
#[derive(Clone)]
pub struct Threads(Arc<Pools>);

struct Pools {
    count: usize,
    first: OnceBox<Pool>,
}

/// The pool of one process; those of its forked children follow in a list. No lock guards the list, because a thread
/// that does not exist in the child may have held it.
struct Pool {
    process: u32,
    threads: Option<ThreadPool>,
    next: OnceBox<Pool>,
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.process != crate::process::id() {
            // the pool is inherited: dropping it would signal threads that do not exist
            std::mem::forget(self.threads.take());
        }
    }
}

impl Threads {
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Pools { count: count.max(1), first: OnceBox::new() }))
    }

    /// The threads of this process; all callers get the same. Their number is `IKRA_THREADS` or `RAYON_NUM_THREADS`,
    /// else how many the process may run at once.
    pub fn of_host() -> Self {
        static HOST: Lazy<Threads> = Lazy::new(Threads::as_many_as_asked);
        HOST.clone()
    }

    fn as_many_as_asked() -> Self {
        let asked = ["IKRA_THREADS", "RAYON_NUM_THREADS"]
            .into_iter()
            .filter_map(|name| std::env::var(name).ok()?.trim().parse().ok())
            .find(|threads| *threads > 0);
        Self::new(asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into)))
    }

    pub fn count(&self) -> usize {
        self.0.count
    }

    /// The pool of this process. Starts it when it is first needed.
    ///
    /// # Errors
    /// `HostMemory` when the process has no addresses for their stacks, `Device` when the system cannot start them.
    pub fn pool(&self) -> Result<&ThreadPool> {
        let process = crate::process::id();
        let mut slot = &self.0.first;
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
            .num_threads(self.0.count)
            .stack_size(STACK)
            .thread_name(|i| format!("ikra-{i}"))
            .build()
            .map_err(|error| self.not_started(&error))?;
        Ok(Pool { process, threads: Some(threads), next: OnceBox::new() })
    }

    /// The system says the same where it has no more threads and where the process has no more addresses.
    fn not_started(&self, error: &ThreadPoolBuildError) -> Error {
        let stacks = STACK * self.0.count;
        if Vec::<u8>::new().try_reserve_exact(stacks).is_err() {
            return Error::HostMemory { wanted: stacks as u64, free: None };
        }
        Error::Device { what: "starting threads".to_owned(), cause: error.to_string() }
    }
}
