//! Order and equality.

use super::Kind;
use crate::types::{Prims, Ty};

/// `clamp(min, max)`: the receiver or one of the bounds.
pub fn clamp_type(receiver: Kind, args: &[Kind]) -> Ty {
    let prim = |k: Kind| match k {
        Kind::Int => Prims::INT.0,
        Kind::Float => Prims::FLOAT.0,
        _ => 0,
    };
    match args {
        [min, max] if args.iter().all(|k| k.is_number() || *k == Kind::Nil) => {
            Ty::prim(Prims(prim(receiver) | prim(*min) | prim(*max)))
        }
        [Kind::IntRange] => Ty::prim(Prims(prim(receiver) | Prims::INT.0)),
        [Kind::FloatRange] => Ty::prim(Prims(prim(receiver) | Prims::FLOAT.0)),
        _ => Ty::never(),
    }
}

/// `between?` asks the upper bound only where the lower one holds.
pub fn between_type(args: &[Kind]) -> Ty {
    match args {
        [min, max] if min.is_number() && max.is_number() => Ty::bool(),
        [min, _] if min.is_number() => Ty::prim(Prims::FALSE),
        _ => Ty::never(),
    }
}
