//! The compiler and run time of Ikra. Knows no Ruby `VALUE`.

/// The version of this crate, which is the gem's.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
