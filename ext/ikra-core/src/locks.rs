//! Locks for threads that wait for each other in work that a forked child may do, too.
//!
//! Here: [`Mutex`] and [`Condvar`], those of the standard library without poisoning. Not here: the locks of
//! parking_lot, which serve where nobody waits for long. These share one table of all threads that wait. A child of
//! `fork` inherits this table, with threads that the child does not have, and perhaps locked. Then its own threads are
//! never woken.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// As the standard library's, but a panic does not poison it.
#[derive(Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As the standard library's.
#[derive(Default)]
pub struct Condvar(std::sync::Condvar);

impl Condvar {
    pub const fn new() -> Self {
        Self(std::sync::Condvar::new())
    }
    pub fn notify_one(&self) {
        self.0.notify_one();
    }
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
    pub fn wait<'m, T>(&self, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }
    /// Waits for so long at most. Also tells whether the time is over.
    pub fn wait_for<'m, T>(&self, guard: MutexGuard<'m, T>, most: Duration) -> (MutexGuard<'m, T>, bool) {
        let (guard, waited) = self.0.wait_timeout(guard, most).unwrap_or_else(PoisonError::into_inner);
        (guard, waited.timed_out())
    }
}
