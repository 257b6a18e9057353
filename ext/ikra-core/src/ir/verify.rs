//! The contract of [`super`], checked.
