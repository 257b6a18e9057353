//! The only module that sees all others.
