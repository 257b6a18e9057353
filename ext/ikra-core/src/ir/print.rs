//! Programs as text.
