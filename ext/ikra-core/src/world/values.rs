//! Ruby's own classes whose objects consist of a few constant parts: Ranges, Complexes, Rationals, and MatchData, which
//! only kernels make and read.
//!
//! Here: the parts. Each is a field of the class under a name that no ivar has. Not here: the methods of these classes
//! ([`crate::prelude`]), and how the host reads the parts of an object.

use super::well_known;
use crate::id::ClassId;

/// The names of the parts, in the order in which an object is built from them; empty for all other classes.
pub fn parts(class: ClassId) -> &'static [&'static str] {
    match class {
        well_known::RANGE => &["begin", "end", "exclude_end"],
        well_known::COMPLEX => &["real", "imaginary"],
        well_known::RATIONAL => &["numerator", "denominator"],
        well_known::MATCH_DATA => &["text", "spans", "names"],
        _ => &[],
    }
}

/// Whether objects of the class consist of such parts alone.
pub fn is_value(class: ClassId) -> bool {
    !parts(class).is_empty()
}
