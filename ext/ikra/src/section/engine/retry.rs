//! The loop of a section: select, launch, and begin again where that did not do.
//!
//! Here: [`Section::run`], the only loop over launches, and [`RunOutcome`], over which it loops. Not here: what makes a
//! launch fail ([`super::run`]).

use super::Section;
use super::fast_path::FastPath;
use super::finish::ended;
use super::variant::Variant;
use crate::options::Flag;
use crate::report::explain;
use crate::ruby::holder::LazyHolder;
use crate::section::random;
use ikra_core::backend::Key;
use magnus::prelude::*;
use magnus::{Error, Value};

/// Why a section has to run again from the start.
pub(super) enum Retry {
    /// It must be compiled for the values that are there now.
    Compile,
    /// An interrupt that did not raise stopped it.
    Beside,
    /// There were too few rows for the objects that it makes, or too little stack for its calls. Now there is more.
    Capacity,
    /// It must run up to the element that left it by `break`.
    Until(Key),
    /// It must run past the first element that it found.
    Past,
    /// Memory ran out, and now there may be more.
    Memory,
}

/// What became of one launch of a section.
pub(super) enum RunOutcome {
    /// The section's value.
    Done(Value),
    Retry(Retry),
}

/// How a section launches. Each retry may change it.
#[derive(Clone, Copy)]
pub(super) struct LaunchPolicy {
    /// Elements with greater keys do not run.
    pub(super) limit: Key,
    /// The launch has a thread of its own, so that only interrupts that raise end it
    /// ([`crate::ruby::gvl::run_beside`]).
    pub(super) beside: bool,
    /// How often memory was given back because there was too little.
    pub(super) evicted: usize,
}

/// How often a section is compiled for values that other threads change meanwhile.
pub(super) const MOST_ATTEMPTS: usize = 50;

impl Section<'_> {
    pub(super) fn run(&mut self) -> Result<Value, Error> {
        let outcome = self.attempts();
        if let Some(account) = self.explained.take().and_then(|e| e.account) {
            explain::add(self.ruby, account);
        }
        outcome
    }

    /// Whether the caller wants no section whose program is like this.
    fn refuses(&self, variant: &Variant) -> bool {
        let (flags, properties) = (self.request.settings.flags, &variant.properties);
        flags.has(Flag::Only) && !(variant.fold.is_some() || properties.looks)
            || flags.has(Flag::Piece) && !properties.divisible
            || flags.has(Flag::Pure) && !properties.pure
    }

    fn attempts(&mut self) -> Result<Value, Error> {
        let mut policy = LaunchPolicy { limit: Key::NONE, beside: false, evicted: 0 };
        let mut attempts = 0;
        while attempts < MOST_ATTEMPTS {
            attempts += 1;
            let holder = LazyHolder::default();
            let Some((variant, packed, tables)) = self.packed(&holder)? else {
                random::give_back(self.number);
                let stencil = self.ruby.into_value(self.cut(&self.form()).unwrap_or(0));
                return Ok(ended(self.ruby, Some("apart"), stencil, None));
            };
            if self.refuses(&variant) {
                random::give_back(self.number);
                if let Some(explained) = &mut self.explained {
                    explained.account = None;
                }
                return Ok(ended(self.ruby, Some("refused"), self.ruby.qnil().as_value(), None));
            }
            let outcome = self.launch(&variant, packed, &tables, &holder, policy);
            self.keep(&variant, tables, &holder);
            match outcome? {
                RunOutcome::Done(value) => {
                    if let Some(path) = FastPath::of(self, &variant).filter(|_| policy.limit == Key::NONE) {
                        self.site.remember(path);
                    }
                    return Ok(value);
                }
                // Each time some heap at least doubles, or the stack grows. So memory ends before the attempts do.
                RunOutcome::Retry(Retry::Capacity) => attempts -= 1,
                RunOutcome::Retry(Retry::Compile) => {
                    if let Some(explained) = &mut self.explained {
                        explained.variant = None;
                    }
                    self.forget_state()?;
                }
                RunOutcome::Retry(Retry::Beside) => policy.beside = true,
                RunOutcome::Retry(Retry::Memory) => policy.evicted += 1,
                RunOutcome::Retry(Retry::Until(key)) => policy.limit = key,
                RunOutcome::Retry(Retry::Past) => {}
            }
        }
        Err(Error::new(
            self.ruby.exception_runtime_error(),
            "the objects of a section kept changing their types while it was compiled for them",
        ))
    }
}
