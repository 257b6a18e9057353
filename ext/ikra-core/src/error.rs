//! Everything that can go wrong before or around a launch, by its origin.
//!
//! Here: the error type of the core. Not here: exceptions that the Ruby block itself raises in a kernel. They are data
//! ([`crate::backend::Outcome::Trapped`]), not errors.

use crate::diagnostic::{Called, Diagnostic, Span};
use crate::source::Source;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// `Unsupported` and `Conflict` come from the user's program, `Device` from the machine, `Internal` from a bug of Ikra.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Ruby could do it and Ikra cannot.
    #[error("{0}")]
    Unsupported(Box<Diagnostic>),
    /// Elements depend on each other's order.
    #[error("{0}")]
    Conflict(Box<Diagnostic>),
    /// The machine: what was tried, and the driver's answer.
    #[error("{what}: {cause}")]
    Device { what: String, cause: String },
    /// Device or host memory was not enough: what for, and what to do about it.
    #[error("{what}: {wanted} bytes wanted, {free} bytes free\nInstead: {advice}")]
    Memory { what: String, wanted: u64, free: u64, advice: &'static str },
    /// The host's memory was not enough.
    #[error("{}", no_room(*wanted, *free))]
    HostMemory { wanted: u64, free: Option<u64> },
    /// The process has no address space left for code.
    #[error("the host's memory: the process has no addresses left for compiled code")]
    CodeMemory,
    /// An element raised in an earlier launch that made the value that is read, or something that it was computed from.
    #[error("an element raised in the launch that made this")]
    Poisoned(Poison),
    /// A broken invariant of Ikra itself.
    #[error("internal error in Ikra ({stage}): {detail}\nPlease report this, with the block that caused it.")]
    Internal { stage: &'static str, detail: String },
}

impl Error {
    /// The same error, with a call that leads to its position.
    pub fn called_from(mut self, source: &Arc<Source>, span: Span, label: &str) -> Self {
        if let Error::Unsupported(told) | Error::Conflict(told) = &mut self {
            told.called_from(Called { source: source.clone(), span, label: label.into() });
        }
        self
    }
    /// The same error at this position, if it has none of its own: for a method without source.
    pub fn placed_at(mut self, source: &Arc<Source>, span: Span) -> Self {
        if let Error::Unsupported(told) | Error::Conflict(told) = &mut self
            && told.source.text.is_empty()
        {
            told.message = format!("{}: {}", told.source.path, told.message);
            (told.source, told.span) = (source.clone(), span);
        }
        self
    }
}

fn no_room(wanted: u64, free: Option<u64>) -> String {
    let why = free.map_or_else(|| "the system gives no more".into(), |free| format!("{free} bytes free"));
    format!("the host's memory: {wanted} bytes wanted, {why}")
}

/// The error of a launch that failed, and when it was last reported.
#[derive(Clone)]
pub struct Poison {
    /// What the maker of the launch needs to raise the error.
    pub affair: Arc<dyn Any + Send + Sync>,
    reported: Arc<AtomicU64>,
}

/// The number of times that errors of failed launches were reported.
static REPORTS: AtomicU64 = AtomicU64::new(0);

impl Poison {
    pub fn new(affair: impl Any + Send + Sync) -> Self {
        Self { affair: Arc::new(affair), reported: Arc::default() }
    }
    /// Notes that the error was raised.
    pub fn report(&self) {
        self.reported.fetch_max(REPORTS.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
    }
    /// The current time, counted in reports, for [`Poison::was_reported`].
    pub fn now() -> u64 {
        REPORTS.load(Ordering::Acquire)
    }
    /// Whether the error was reported after that time.
    pub fn was_reported(&self, since: u64) -> bool {
        self.reported.load(Ordering::Acquire) > since
    }
}

impl fmt::Debug for Poison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("poison")
    }
}

impl From<Diagnostic> for Error {
    fn from(d: Diagnostic) -> Self {
        Error::Unsupported(Box::new(d))
    }
}

pub type Result<T> = std::result::Result<T, Error>;
