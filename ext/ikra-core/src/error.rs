//! Everything that can go wrong before or around a launch, by whose fault it is.
//!
//! Here: the error type of the core. Not here: exceptions that the Ruby block itself raises in a kernel; those are
//! data ([`crate::backend::Outcome::Trapped`]), not errors.

use crate::diagnostic::Diagnostic;

/// `Unsupported` and `Conflict` are the user's program, `Device` is the machine, `Internal` is our bug.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Ruby could do it and Ikra cannot.
    #[error("{0}")]
    Unsupported(Box<Diagnostic>),
    /// Elements depend on each other's order.
    #[error("{0}")]
    Conflict(Box<Diagnostic>),
    /// The machine: what was tried, and what it answered.
    #[error("{what}: {cause}")]
    Device { what: String, cause: String },
    /// Device or host memory did not suffice: what for, and what to do about it.
    #[error("{what}: {wanted} bytes wanted, {free} bytes free\nInstead: {advice}")]
    Memory { what: String, wanted: u64, free: u64, advice: &'static str },
    /// A broken invariant of Ikra itself.
    #[error("internal error in Ikra ({stage}): {detail}\nPlease report this, with the block that caused it.")]
    Internal { stage: &'static str, detail: String },
}

impl From<Diagnostic> for Error {
    fn from(d: Diagnostic) -> Self {
        Error::Unsupported(Box::new(d))
    }
}

pub type Result<T> = std::result::Result<T, Error>;
