//! Code for statements that assign the registers of two jobs together; [`crate::backend::cpu::pairs`] chooses them.
//!
//! A pair of Floats is one vector. A pair of truth values is a vector of masks, whose bits are all set or all clear. A
//! single lane is extracted where it is used, and two values that are no pair become a vector where they are used.
//! Neither has an effect, so Cranelift computes each once, and before the loops in which it does not change.

use super::{Lowering, Register};
use crate::error::Result;
use crate::ir::{ColumnId, Op, Operand, Scalar, Stmt, Storage, VarId};
use crate::layout::Address;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value, types};

impl Lowering<'_, '_> {
    /// Translates two statements that assign a pair.
    pub(super) fn both(&mut self, pair: usize, first: &Stmt, second: &Stmt) -> Result<()> {
        let value = match (first, second) {
            (Stmt::Let { op, args, .. }, Stmt::Let { args: others, .. }) => {
                let operands = args.iter().zip(others).map(|(one, other)| [*one, *other]);
                // each operation works on each lane
                match op {
                    Op::Select => self.choose(operands.collect()),
                    Op::Not => {
                        let mask = self.vector([args[0], others[0]]);
                        self.b.ins().bnot(mask)
                    }
                    _ => {
                        let values: Vec<Value> = operands.map(|operands| self.vector(operands)).collect();
                        self.compute(Scalar::F64, *op, args, &values)?
                    }
                }
            }
            (Stmt::Load { dst, column, row }, Stmt::Load { dst: other, row: next, .. }) => {
                self.load_both([*dst, *other], *column, [*row, *next])
            }
            _ => unreachable!("nothing else assigns a pair"),
        };
        self.vectors[pair].set(value, &mut self.b);
        Ok(())
    }

    /// Selects one of two vectors, or lane by lane. If both lanes have the same condition, one `select` of whole
    /// vectors suffices.
    fn choose(&mut self, operands: Vec<[Operand; 2]>) -> Value {
        let [cond, one, other] = operands[..] else { unreachable!("it chooses between two") };
        let (one, other) = (self.vector(one), self.vector(other));
        if cond[0] == cond[1] {
            let cond = self.get(cond[0]);
            return self.b.ins().select(cond, one, other);
        }
        let mask = self.vector(cond);
        let mask = self.b.ins().bitcast(types::F64X2, MemFlagsData::new(), mask);
        self.b.ins().bitselect(mask, one, other)
    }

    fn vector(&mut self, operands: [Operand; 2]) -> Value {
        if let Some(pair) = self.facts.pairs.whole(operands) {
            return self.whole(pair);
        }
        let [first, second] = operands;
        let ty = vector_type(self.func.ty(first));
        let first_value = self.element(first);
        if first == second {
            return self.b.ins().splat(ty, first_value);
        }
        let second_value = self.element(second);
        self.vector_of(ty, first_value, second_value)
    }

    /// An operand in the form of a lane.
    fn element(&mut self, operand: Operand) -> Value {
        let value = self.get(operand);
        if self.func.ty(operand) != Scalar::Bool {
            return value;
        }
        let wide = self.b.ins().uextend(types::I64, value);
        self.b.ins().ineg(wide)
    }

    fn vector_of(&mut self, ty: Type, first: Value, second: Value) -> Value {
        let all = self.b.ins().splat(ty, first);
        self.b.ins().insertlane(all, second, 1)
    }

    /// Loads two rows, with one load if they are neighbours.
    fn load_both(&mut self, dsts: [VarId; 2], column: ColumnId, rows: [Operand; 2]) -> Value {
        if self.lie_beside(column, rows) {
            let (address, at, flags) = self.slot(column, rows[0]);
            // the address of a vector need not be a multiple of its size
            let mut unaligned = MemFlagsData::new().with_notrap().with_alias_region(flags.alias_region());
            if flags.readonly() {
                unaligned.set_readonly();
            }
            return self.b.ins().load(types::F64X2, unaligned, address, at);
        }
        let [first, second] = [0, 1].map(|lane| self.loaded(dsts[lane], column, rows[lane]));
        self.vector_of(types::F64X2, first, second)
    }

    /// Whether the second row's Float follows the first one's in memory.
    fn lie_beside(&mut self, column: ColumnId, rows: [Operand; 2]) -> bool {
        let Address::Strided { stride, .. } = self.layout.address(column);
        if self.program.columns[column.index()].storage != Storage::F64 || stride != 8 {
            return false;
        }
        let [(from, more), (other, most)] = rows.map(|row| {
            let row = self.get(row);
            self.sums.get(&row).copied().unwrap_or((row, 0))
        });
        from == other && more.checked_add(1) == Some(most)
    }

    /// The vector of a pair.
    fn whole(&mut self, pair: usize) -> Value {
        match self.vectors[pair] {
            Register::Once(Some(value)) => value,
            // never assigned, so never reached
            Register::Once(None) => {
                let (lane, ty) = match self.facts.pairs.is_mask(pair) {
                    true => (Scalar::I64, types::I64X2),
                    false => (Scalar::F64, types::F64X2),
                };
                let zero = self.zero(lane);
                self.b.ins().splat(ty, zero)
            }
            Register::Many(variable) => self.b.use_var(variable),
            Register::InMemory(_) | Register::Lane(_) => unreachable!("vectors are in registers"),
        }
    }

    /// One lane of a pair.
    pub(super) fn lane(&mut self, pair: usize, lane: u8) -> Value {
        if self.facts.pairs.is_mask(pair) {
            let bits = self.bits(pair);
            return if lane == 0 { self.b.ins().band_imm_s(bits, 1) } else { self.b.ins().ushr_imm_u(bits, 1) };
        }
        let vector = self.whole(pair);
        self.b.ins().extractlane(vector, lane)
    }

    /// Whether a mask holds for both lanes (`and`), or for any (`or`).
    pub(super) fn folded(&mut self, pair: usize, op: Op) -> Value {
        let bits = self.bits(pair);
        let (how, number) = if op == Op::And { (IntCC::Equal, 3) } else { (IntCC::NotEqual, 0) };
        self.b.ins().icmp_imm_s(how, bits, number)
    }

    /// The lanes of a mask as bits.
    fn bits(&mut self, pair: usize) -> Value {
        let mask = self.whole(pair);
        self.b.ins().vhigh_bits(types::I8, mask)
    }
}

/// The vector type of two lanes.
pub(super) fn vector_type(lane: Scalar) -> Type {
    if lane == Scalar::Bool { types::I64X2 } else { types::F64X2 }
}
