//! Float arithmetic, and what Integer and Float share once both are doubles.

use super::{Kind, Val};
use crate::ir::lower::Cx;
use crate::types::Ty;

/// The types of quotient and remainder of `a.divmod(b)`; both never where it always raises.
pub fn divmod_types(a: Kind, b: Kind) -> (Ty, Ty) {
    match (a, b) {
        (Kind::Int, Kind::Int) => (Ty::int(), Ty::int()),
        (Kind::Int | Kind::Float, Kind::Int | Kind::Float) => (Ty::int(), Ty::float()),
        _ => (Ty::never(), Ty::never()),
    }
}

/// `a.divmod(b)`, for numbers `a`: quotient and remainder.
pub fn divmod(cx: &mut Cx<'_>, a: Val, b: Val) -> (Val, Val) {
    todo!("{a:?} {b:?} {}", cx.line)
}
