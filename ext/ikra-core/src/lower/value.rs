//! Ruby values in lowering: the registers that hold them.
//!
//! Here: [`Val`], and its conversions between a union and a scalar. Not here: methods of values.

use crate::id::ArrayKind;
use crate::ir::build::Builder;
use crate::ir::{Op, Operand, Scalar, TRAP_WORDS};
use crate::types::{HierarchyIndex, Tag, Unit};

/// A value in registers. Its type ([`crate::types::Ty`]) is known separately, and may be narrower than the form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Val {
    /// A value that follows from its type.
    Unit(Unit),
    Bool(Operand),
    Int(Operand),
    Float(Operand),
    Sym(Operand),
    /// I64, a [`crate::types::StrWord`].
    Str(Operand),
    /// I32 id.
    Ref(HierarchyIndex, Operand),
    /// I64, offset and length.
    Array(ArrayKind, Operand),
    IntRange {
        from: Operand,
        to: Operand,
        /// Bool
        exclusive: Operand,
    },
    FloatRange {
        from: Operand,
        to: Operand,
        exclusive: Operand,
    },
    /// An exception that was rescued, or nil.
    Exception {
        /// I32: the number of its site plus 1; 0 for nil.
        code: Operand,
        /// I64: the trap's words.
        words: [Operand; TRAP_WORDS],
    },
    Union {
        /// I32
        tag: Operand,
        /// I64
        payload: Operand,
    },
}

impl Val {
    pub const NIL: Val = Val::Unit(Unit::Nil);
    /// The value of an expression that does not return.
    pub const NEVER: Val = Val::Unit(Unit::Never);

    pub fn bool(value: bool) -> Val {
        Val::Unit(if value { Unit::True } else { Unit::False })
    }
    pub fn int(value: i64) -> Val {
        Val::Int(Operand::I64(value))
    }

    /// The value as tag and payload. Ranges and exceptions have no such form.
    ///
    /// # Panics
    /// For Ranges and exceptions; inference refuses unions that contain them.
    pub fn tagged(self, b: &mut Builder) -> (Operand, Operand) {
        let zero = Operand::I64(0);
        match self {
            Val::Unit(Unit::Nil | Unit::Never) => (Operand::I32(Tag::NIL), zero),
            Val::Unit(Unit::True) => (Operand::I32(Tag::TRUE), zero),
            Val::Unit(Unit::False) => (Operand::I32(Tag::FALSE), zero),
            Val::Unit(Unit::Module(class)) => (Operand::I32(Tag::MODULE), Operand::I64(i64::from(class.0))),
            Val::Unit(Unit::Proc(id)) => (Operand::I32(Tag::PROC), Operand::I64(i64::from(id.0))),
            Val::Bool(v) => {
                let tag = b.select(Scalar::I32, v, Operand::I32(Tag::TRUE), Operand::I32(Tag::FALSE));
                (tag, zero)
            }
            Val::Int(v) => (Operand::I32(Tag::INT), v),
            Val::Float(v) => (Operand::I32(Tag::FLOAT), b.i64(Op::FloatBits, &[v])),
            Val::Sym(v) => (Operand::I32(Tag::SYM), v),
            Val::Str(v) => (Operand::I32(Tag::STR), v),
            Val::Ref(h, v) => (Operand::I32(Tag::OBJECT + h as i32), b.i64(Op::Widen, &[v])),
            Val::Array(_, v) => (Operand::I32(Tag::ARRAY), v),
            Val::Union { tag, payload } => (tag, payload),
            Val::IntRange { .. } | Val::FloatRange { .. } | Val::Exception { .. } => {
                unreachable!("neither a Range nor an exception becomes part of a union")
            }
        }
    }
}
