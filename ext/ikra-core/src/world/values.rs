//! Classes of Ruby's own whose objects are nothing but a few parts that never change: Ranges, Complexes, Rationals.
//!
//! Here: which parts, each a field of the class under a name that no ivar has. Not here: what their methods do
//! ([`crate::prelude`]), and how the host reads the parts of an object.

use super::well_known;
use crate::id::ClassId;

/// The names of the parts, in the order in which an object is made of them; empty for all other classes.
pub fn parts(class: ClassId) -> &'static [&'static str] {
    match class {
        well_known::RANGE => &["begin", "end", "exclude_end"],
        well_known::COMPLEX => &["real", "imaginary"],
        well_known::RATIONAL => &["numerator", "denominator"],
        _ => &[],
    }
}

/// Whether objects of the class are nothing but such parts.
pub fn is_value(class: ClassId) -> bool {
    !parts(class).is_empty()
}
