//! Registers at which paths join: a result that several paths assign.

use super::Val;
use crate::ir::build::Builder;
use crate::ir::{Operand, Scalar, VarId};
use crate::types::{Prims, Ty, Unit};

/// Registers for a number, nil, true or false.
#[derive(Clone, Copy)]
pub enum Slot {
    Unit(Unit),
    Bool(VarId),
    Int(VarId),
    Float(VarId),
    Union(VarId, VarId),
}

impl Slot {
    /// # Panics
    /// For types of other kinds.
    pub fn new(b: &mut Builder, ty: &Ty) -> Slot {
        match ty.prims {
            _ if ty.is_never() => Slot::Unit(Unit::Never),
            Prims::NIL => Slot::Unit(Unit::Nil),
            Prims::TRUE => Slot::Unit(Unit::True),
            Prims::FALSE => Slot::Unit(Unit::False),
            Prims::BOOL => Slot::Bool(b.temp(Scalar::Bool)),
            Prims::INT => Slot::Int(b.temp(Scalar::I64)),
            Prims::FLOAT => Slot::Float(b.temp(Scalar::F64)),
            _ => Slot::Union(b.temp(Scalar::I32), b.temp(Scalar::I64)),
        }
    }
    pub fn set(self, b: &mut Builder, val: Val) {
        match (self, val) {
            (Slot::Unit(_), _) | (_, Val::NEVER) => {}
            (Slot::Bool(to), Val::Bool(v)) | (Slot::Int(to), Val::Int(v)) | (Slot::Float(to), Val::Float(v)) => {
                b.set(to, v);
            }
            (Slot::Bool(to), Val::Unit(unit @ (Unit::True | Unit::False))) => {
                b.set(to, Operand::Bool(unit == Unit::True));
            }
            (Slot::Union(tag, payload), val) => {
                let (t, p) = val.tagged(b);
                b.set(tag, t);
                b.set(payload, p);
            }
            (Slot::Bool(_) | Slot::Int(_) | Slot::Float(_), val) => unreachable!("{val:?} in a slot of another kind"),
        }
    }
    pub fn val(self) -> Val {
        match self {
            Slot::Unit(unit) => Val::Unit(unit),
            Slot::Bool(v) => Val::Bool(v.into()),
            Slot::Int(v) => Val::Int(v.into()),
            Slot::Float(v) => Val::Float(v.into()),
            Slot::Union(tag, payload) => Val::Union { tag: tag.into(), payload: payload.into() },
        }
    }
}
