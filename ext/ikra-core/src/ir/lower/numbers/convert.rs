//! Rounding, and conversions between Integer and Float.

use super::Kind;
use crate::types::{Prims, Ty};

/// `floor`, `ceil`, `round`, `truncate`.
pub fn round_type(receiver: Kind, args: &[Kind], literal: Option<i64>) -> Ty {
    match (receiver, args, literal) {
        (_, [], _) => Ty::int(),
        (_, [k], _) if !k.is_number() => Ty::never(),
        (Kind::Int, ..) => Ty::int(),
        (_, _, Some(digits)) => {
            if digits > 0 {
                Ty::float()
            } else {
                Ty::int()
            }
        }
        _ => Ty::prim(Prims(Prims::INT.0 | Prims::FLOAT.0)),
    }
}
