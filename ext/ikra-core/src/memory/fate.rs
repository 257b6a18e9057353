//! How launches ended that nobody has waited for, as far as that is known.
//!
//! Here: [`Fate`], on which the contents depend that such a launch made ([`super::buffer`]). Not here: who knows how a launch ended
//! (backends), and what there is to tell of it (the bridge).
//!
//! A fate is open until somebody looks; then it is well or ill for good. Contents that were computed from others depend on what those depend on,
//! so whoever looks at any of them hears of the first launch that ended badly.

use crate::error::{Error, Poison, Result};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// How a launch ended; None where that is not known yet, and was not to be waited for.
type Ended = Option<std::result::Result<(), Poison>>;

/// See the module.
pub struct Fate(Mutex<State>);

enum State {
    Open(Box<dyn FnMut(bool) -> Result<Ended> + Send>),
    Well,
    Ill(Poison),
}

impl fmt::Debug for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("fate")
    }
}

impl Fate {
    /// Of a launch that is under way. `look` is asked until it says how that ended, and whether it is to wait for that.
    pub fn open(look: impl FnMut(bool) -> Result<Ended> + Send + 'static) -> Self {
        Self(Mutex::new(State::Open(Box::new(look))))
    }
    /// Of a launch that ended badly.
    pub fn ill(poison: Poison) -> Self {
        Self(Mutex::new(State::Ill(poison)))
    }
    /// Whether it is known that all is well.
    ///
    /// # Errors
    /// `Poisoned`; `Device`.
    pub fn is_well(&self) -> Result<bool> {
        // while another thread waits, nothing is known
        self.0.try_lock().map_or(Ok(false), |mut state| Self::look(&mut state, false))
    }
    /// Whether it is known that it ended badly.
    pub fn is_ill(&self) -> bool {
        matches!(self.is_well(), Err(Error::Poisoned(_)))
    }
    /// Whether it is known that it ended badly, and somebody was told since.
    pub fn was_told(&self, since: u64) -> bool {
        matches!(self.is_well(), Err(Error::Poisoned(poison)) if poison.was_told(since))
    }
    /// Waits until it is known that all is well.
    ///
    /// # Errors
    /// As [`Fate::is_well`].
    pub fn wait(&self) -> Result<()> {
        Self::look(&mut self.0.lock(), true).map(drop)
    }
    fn look(state: &mut State, wait: bool) -> Result<bool> {
        if let State::Open(look) = state {
            match look(wait)? {
                None => return Ok(false),
                Some(Ok(())) => *state = State::Well,
                Some(Err(poison)) => *state = State::Ill(poison),
            }
        }
        match state {
            State::Ill(poison) => Err(Error::Poisoned(poison.clone())),
            _ => Ok(true),
        }
    }
    /// Adds those to `fates` that are not known to be well, each once.
    ///
    /// # Errors
    /// As [`Fate::is_well`].
    pub fn gather(fates: &mut Vec<Arc<Fate>>, more: &[Arc<Fate>]) -> Result<()> {
        for fate in more {
            if !fate.is_well()? && !fates.iter().any(|other| Arc::ptr_eq(other, fate)) {
                fates.push(fate.clone());
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
    fn a_fate_is_looked_at_until_it_is_known() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let fate = Fate::open(move |wait| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(wait.then_some(Ok(())))
        });
        assert!(!fate.is_well().unwrap());
        fate.wait().unwrap();
        assert!(fate.is_well().unwrap());
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn what_is_ill_stays_so_and_is_told_each_time() {
        let fate = Arc::new(Fate::open(|_| Ok(Some(Err(Poison::new(7))))));
        for _ in 0..2 {
            assert!(matches!(fate.wait(), Err(Error::Poisoned(_))));
        }
        assert!(matches!(Fate::gather(&mut Vec::new(), &[fate]), Err(Error::Poisoned(_))));
    }

    #[test]
    fn what_is_not_known_is_gathered_once() {
        let (open, well) = (Arc::new(Fate::open(|_| Ok(None))), Arc::new(Fate::open(|_| Ok(Some(Ok(()))))));
        let mut fates = Vec::new();
        Fate::gather(&mut fates, &[open.clone(), well, open]).unwrap();
        assert_eq!(fates.len(), 1);
    }
}
