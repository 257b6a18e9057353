//! The exceptions of numeric methods, in Ruby's own words.
