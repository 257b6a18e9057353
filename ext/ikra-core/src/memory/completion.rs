//! Completions: what is known of how asynchronous launches ended.
//!
//! Here: [`Completion`], the completion of one launch, on which the contents that the launch made depend
//! ([`super::buffer`]). Not here: how a backend finds out how a launch ended, and the exception that the bridge makes
//! of a failure.
//!
//! A completion is pending until it is asked after the launch has ended. From then on it is ok or failed. Contents that
//! a launch computes depend on the completions of the launch's inputs, too. So a read of any of them reports the first
//! launch that failed.

use crate::error::{Error, Poison, Result};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// How a launch ended. None: that is not known yet, and the caller does not wait.
type Ended = Option<std::result::Result<(), Poison>>;

/// The completion of one launch; see the module.
pub struct Completion(Mutex<State>);

enum State {
    Pending(Box<dyn FnMut(bool) -> Result<Ended> + Send>),
    Ok,
    Failed(Poison),
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("completion")
    }
}

impl Completion {
    /// The completion of a launch that is under way. `look` is called until it returns how the launch ended. Its
    /// argument says whether to wait for that.
    pub fn pending(look: impl FnMut(bool) -> Result<Ended> + Send + 'static) -> Self {
        Self(Mutex::new(State::Pending(Box::new(look))))
    }
    /// The completion of a launch that failed.
    pub fn failed(poison: Poison) -> Self {
        Self(Mutex::new(State::Failed(poison)))
    }
    /// Whether the launch is known to have ended without an error.
    ///
    /// # Errors
    /// `Poisoned`; `Device`.
    pub fn is_ok(&self) -> Result<bool> {
        // another thread holds the lock while it waits, so the outcome is not known yet
        self.0.try_lock().map_or(Ok(false), |mut state| Self::look(&mut state, false))
    }
    /// Whether the launch is known to have failed.
    pub fn is_failed(&self) -> bool {
        matches!(self.is_ok(), Err(Error::Poisoned(_)))
    }
    /// Whether the launch is known to have failed, and its failure was reported after the time `since`.
    pub fn was_reported(&self, since: u64) -> bool {
        matches!(self.is_ok(), Err(Error::Poisoned(poison)) if poison.was_reported(since))
    }
    /// Waits until the launch has ended.
    ///
    /// # Errors
    /// As [`Completion::is_ok`].
    pub fn wait(&self) -> Result<()> {
        Self::look(&mut self.0.lock(), true).map(drop)
    }
    fn look(state: &mut State, wait: bool) -> Result<bool> {
        if let State::Pending(look) = state {
            match look(wait)? {
                None => return Ok(false),
                Some(Ok(())) => *state = State::Ok,
                Some(Err(poison)) => *state = State::Failed(poison),
            }
        }
        match state {
            State::Failed(poison) => Err(Error::Poisoned(poison.clone())),
            _ => Ok(true),
        }
    }
    /// Adds the completions in `more` that are not known to be ok to `completions`, each once.
    ///
    /// # Errors
    /// As [`Completion::is_ok`].
    pub fn add_pending(completions: &mut Vec<Arc<Completion>>, more: &[Arc<Completion>]) -> Result<()> {
        for completion in more {
            if !completion.is_ok()? && !completions.iter().any(|other| Arc::ptr_eq(other, completion)) {
                completions.push(completion.clone());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_completion_is_looked_at_until_it_is_known() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let completion = Completion::pending(move |wait| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(wait.then_some(Ok(())))
        });
        assert!(!completion.is_ok().unwrap());
        completion.wait().unwrap();
        assert!(completion.is_ok().unwrap());
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_failure_stays_and_is_reported_each_time() {
        let completion = Arc::new(Completion::pending(|_| Ok(Some(Err(Poison::new(7))))));
        for _ in 0..2 {
            assert!(matches!(completion.wait(), Err(Error::Poisoned(_))));
        }
        assert!(matches!(Completion::add_pending(&mut Vec::new(), &[completion]), Err(Error::Poisoned(_))));
    }

    #[test]
    fn pending_completions_are_added_once() {
        let (pending, ok) =
            (Arc::new(Completion::pending(|_| Ok(None))), Arc::new(Completion::pending(|_| Ok(Some(Ok(()))))));
        let mut completions = Vec::new();
        Completion::add_pending(&mut completions, &[pending.clone(), ok, pending]).unwrap();
        assert_eq!(completions.len(), 1);
    }
}
