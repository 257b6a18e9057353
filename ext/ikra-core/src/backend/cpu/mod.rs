//! Cranelift and rayon.
