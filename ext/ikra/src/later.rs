//! Sections that nobody waits for, and the exceptions of those that ended badly.
//!
//! Here: [`Later`], what a section leaves behind to tell of itself when somebody looks at what it made; [`raised`], the exception. Not here:
//! which sections these are ([`crate::engine`]), who finds out how they ended ([`ikra_core::memory::completion`]), and
//! how Ikra's Ruby code tells it (`lib/ikra/mdarray/run.rb`).

use crate::errors;
use crate::holder::LazyHolder;
use crate::registry::Lasting;
use ikra_core::backend::{Ending, Outcome, TrapRecord};
use ikra_core::error::Poison;
use ikra_core::ir::Site;
use ikra_core::memory::completion::Completion;
use ikra_core::types::{Repr, Unit};
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Exception, Ruby, Value};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// What it takes to tell how a section ended, for as long as that may be needed.
pub struct Later {
    sites: Arc<[Site]>,
    /// `told(exception)` gives what is raised.
    teller: Lasting,
}

/// A section that ended badly.
struct Ended {
    record: TrapRecord,
    later: Later,
}

/// Completions that were pending when they were last looked at.
static OPEN: Mutex<VecDeque<Weak<Completion>>> = Mutex::new(VecDeque::new());
/// So many may be, whatever became of them: of one that was before as many, its backend knows by itself, and need not ask a driver.
const MANY: usize = 64;

impl Later {
    pub fn new(sites: &Arc<[Site]>, teller: Value) -> Self {
        Self { sites: sites.clone(), teller: Lasting::new(teller) }
    }

    /// It ended badly.
    pub fn poison(self, record: TrapRecord) -> Poison {
        Poison::new(Ended { record, later: self })
    }

    /// It is under way. Those that were long before it, and are known meanwhile, forget what they would have told.
    pub fn fate(self, ending: Box<dyn Ending>) -> Arc<Completion> {
        let mut later = Some(self);
        let fate = Arc::new(Completion::pending(move |wait| {
            Ok(ending.outcome(wait)?.map(|outcome| match (outcome, later.take()) {
                (Outcome::Trapped(record), Some(later)) => Err(later.poison(record)),
                _ => Ok(()),
            }))
        }));
        let mut open = OPEN.lock();
        for _ in 0..2 {
            let forgets = open.front().is_some_and(|first| match first.upgrade() {
                None => true,
                Some(fate) => open.len() > MANY && !matches!(fate.is_ok(), Ok(false)),
            });
            if !forgets {
                break;
            }
            open.pop_front();
        }
        open.push_back(Arc::downgrade(&fate));
        fate
    }
}

/// The exception of a section that ended badly, as whoever looks at what it made meets it.
pub fn raised(ruby: &Ruby, poison: &Poison) -> Error {
    let Some(Ended { record, later }) = poison.affair.downcast_ref() else {
        return errors::internal(ruby, "a launch that was none of this bridge's");
    };
    poison.report();
    let site = &later.sites[record.site.index()];
    let holder = LazyHolder::default();
    let mut words = record.words.iter().copied();
    let mut operands = Vec::with_capacity(site.operands.len());
    for repr in &site.operands {
        let mut word = || words.next().unwrap_or(0);
        let value = match repr {
            Repr::Int => ruby.into_value(word() as i64),
            Repr::Float => ruby.into_value(f64::from_bits(word())),
            Repr::Bool => ruby.into_value(word() & 1 == 1),
            Repr::Unit(Unit::True) => ruby.into_value(true),
            Repr::Unit(Unit::False) => ruby.into_value(false),
            _ => ruby.qnil().as_value(),
        };
        holder.add(ruby, value.as_raw());
        operands.push(value.as_raw());
    }
    let error = errors::trapped(ruby, site, &operands, record.key);
    let Some(exception) = error.value().and_then(Exception::from_value) else { return error };
    match later.teller.value().funcall::<_, _, Exception>("told", (exception,)) {
        Ok(told) => told.into(),
        Err(error) => error,
    }
}
