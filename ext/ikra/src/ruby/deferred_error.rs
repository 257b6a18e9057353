//! Deferred errors: exceptions of sections that were not waited for.
//!
//! Here: [`DeferredError`], what a section leaves behind so that its exception can be raised where its result is read;
//! and [`raised`], that exception. Not here: which sections these are ([`crate::section::engine`]), how their end is
//! detected ([`ikra_core::memory::completion`]), and how Ikra's Ruby code raises (`lib/ikra/mdarray/run.rb`).

use crate::ruby::errors;
use crate::ruby::holder::LazyHolder;
use crate::ruby::registry::Lasting;
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

/// What is needed to raise a section's exception, for as long as it may be needed.
pub struct DeferredError {
    sites: Arc<[Site]>,
    /// The error callback: `deferred_error(exception)` gives the exception to raise.
    callback: Lasting,
}

/// A section that failed.
struct Ended {
    record: TrapRecord,
    deferred: DeferredError,
}

/// Completions that were pending when they were last checked.
static OPEN: Mutex<VecDeque<Weak<Completion>>> = Mutex::new(VecDeque::new());
/// The most open completions, whatever became of them. Where as many came after a completion, its backend knows its
/// outcome without the driver.
const MAX_OPEN: usize = 64;

impl DeferredError {
    pub fn new(sites: &Arc<[Site]>, callback: Value) -> Self {
        Self { sites: sites.clone(), callback: Lasting::new(callback) }
    }

    /// The result of a section that has failed already.
    pub fn poison(self, record: TrapRecord) -> Poison {
        Poison::new(Ended { record, deferred: self })
    }

    /// The completion of a running section. Older completions whose outcome is known by now drop what they would have
    /// needed to raise.
    pub fn completion(self, ending: Box<dyn Ending>) -> Arc<Completion> {
        let mut deferred = Some(self);
        let completion = Arc::new(Completion::pending(move |wait| {
            Ok(ending.outcome(wait)?.map(|outcome| match (outcome, deferred.take()) {
                (Outcome::Trapped(record), Some(deferred)) => Err(deferred.poison(record)),
                _ => Ok(()),
            }))
        }));
        let mut open = OPEN.lock();
        for _ in 0..2 {
            let forgets = open.front().is_some_and(|first| match first.upgrade() {
                None => true,
                Some(completion) => open.len() > MAX_OPEN && !matches!(completion.is_ok(), Ok(false)),
            });
            if !forgets {
                break;
            }
            open.pop_front();
        }
        open.push_back(Arc::downgrade(&completion));
        completion
    }
}

/// The exception of a section that failed, for the code that reads its result.
pub fn raised(ruby: &Ruby, poison: &Poison) -> Error {
    let Some(Ended { record, deferred }) = poison.affair.downcast_ref() else {
        return errors::internal(ruby, "a launch that was none of this bridge's");
    };
    poison.report();
    let site = &deferred.sites[record.site.index()];
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
    match deferred.callback.value().funcall::<_, _, Exception>("deferred_error", (exception,)) {
        Ok(raised) => raised.into(),
        Err(error) => error,
    }
}
