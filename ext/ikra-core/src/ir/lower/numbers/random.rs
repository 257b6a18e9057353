//! `rand` over [`Op::Random`](crate::ir::Op::Random).

use super::{Kind, Unsupported, Val};
use crate::ir::lower::Cx;
use crate::types::{Prims, Ty};

/// Whose `rand`: they differ in what they accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rand {
    /// `rand`, `Kernel.rand`
    Kernel,
    /// `Random.rand`
    Random,
}

impl Rand {
    /// The type of `rand` with at most one argument; never where it always raises. `literal` is the argument's value
    /// where the source has an Integer literal there: `rand(0)` is a Float, `rand(6)` an Integer.
    ///
    /// # Errors
    /// Ruby could do it and Ikra cannot.
    pub fn result(self, args: &[Kind], literal: Option<i64>) -> Result<Ty, Unsupported> {
        let number = Prims(Prims::INT.0 | Prims::FLOAT.0);
        let or_nil = |p: Prims| Ty::prim(if self == Rand::Kernel { Prims(p.0 | Prims::NIL.0) } else { p });
        Ok(match (self, args) {
            (_, []) | (Rand::Kernel, [Kind::Nil]) | (Rand::Random, [Kind::Float]) => Ty::float(),
            (Rand::Kernel, [Kind::Int]) => match literal {
                Some(0) => Ty::float(),
                Some(_) => Ty::int(),
                None => Ty::prim(number),
            },
            (Rand::Kernel, [Kind::Float]) => Ty::prim(number),
            (Rand::Random, [Kind::Int]) => Ty::int(),
            (_, [Kind::IntRange]) => or_nil(Prims::INT),
            (_, [Kind::FloatRange]) => or_nil(Prims::FLOAT),
            _ => Ty::never(),
        })
    }
    /// Emits the draw at the cursor; the value's form is that of [`Rand::result`].
    pub fn lower(self, cx: &mut Cx<'_>, args: &[Val], literal: Option<i64>) -> Val {
        todo!("{self:?} {args:?} {literal:?} {}", cx.line)
    }
}
