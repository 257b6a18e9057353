//! What the threads of a launch group pairs with.
//!
//! Here: [`Emitters`], of which each thread has one while it runs. Not here: tables of groups
//! ([`crate::backend::collective::emitted`]).

use super::jit::State;
use super::state;
use crate::backend::collective::emitted::{Emitter, Grouping};
use parking_lot::Mutex;

/// The emitters of a launch.
pub struct Emitters {
    how: Grouping,
    idle: Mutex<Vec<Emitter>>,
}

impl Emitters {
    pub fn new(how: Grouping) -> Self {
        Self { how, idle: Mutex::default() }
    }

    /// Runs `work` with a state that has an emitter of its own.
    pub fn lend<T>(&self, state: &mut State, work: impl FnOnce(&mut State) -> T) -> T {
        let idle = self.idle.lock().pop();
        let mut own = idle.unwrap_or_else(|| Emitter::new(self.how));
        // only generated code uses it until the work is done
        state.set_word(state::GROUPS, (&raw mut own).expose_provenance() as u64);
        let done = work(state);
        state.set_word(state::GROUPS, 0);
        self.idle.lock().push(own);
        done
    }

    /// All emitters, once no thread runs.
    pub fn all(&self) -> Vec<Emitter> {
        std::mem::take(&mut *self.idle.lock())
    }
}
