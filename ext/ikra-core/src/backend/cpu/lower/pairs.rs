//! Code for statements that assign the registers of two jobs together; [`crate::backend::cpu::pairs`] chooses them.
//!
//! A pair of Floats is one vector. A pair of truth values is a vector of masks, whose bits are all set or all clear. A
//! single lane is extracted where it is used, and two values that are no pair become a vector where they are used.
//! Neither has an effect, so Cranelift computes each once, and before the loops in which it does not change.

use super::{Lanes, Lowering, Register};
use crate::error::Result;
use crate::ir::{ColumnId, Op, Operand, Scalar, Stmt, Storage, VarId};
use crate::layout::Address;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Type, Value, types};

impl Lowering<'_, '_> {
    /// Translates two statements that assign a pair.
    pub(super) fn both(&mut self, pair: usize, first: &Stmt, second: &Stmt) -> Result<()> {
        let value = match (first, second) {
            (Stmt::Let { op, args, .. }, Stmt::Let { args: others, .. }) => {
                let operands = args.iter().zip(others).map(|(one, other)| [*one, *other]);
                let of = match self.facts.pairs.lanes(pair) {
                    Lanes::Mask if self.are_single(args) && self.are_single(others) => Lanes::F32,
                    Lanes::Mask if matches!(op, Op::FCmp(_)) => Lanes::F64,
                    lanes => lanes,
                };
                // each operation works on each lane
                match op {
                    Op::Select => self.choose(of, operands.collect()),
                    Op::Not => {
                        let mask = self.vector(of, [args[0], others[0]]);
                        self.b.ins().bnot(mask)
                    }
                    Op::FSingle => {
                        let rounded = self.vector(Lanes::F32, [args[0], others[0]]);
                        if of == Lanes::F32 { rounded } else { self.b.ins().fvpromote_low(rounded) }
                    }
                    _ => {
                        let values: Vec<Value> = operands.map(|operands| self.vector(of, operands)).collect();
                        let value = self.compute(Scalar::F64, *op, args, &values)?;
                        match op {
                            Op::FCmp(_) if of == Lanes::F32 => self.b.ins().swiden_low(value),
                            _ => value,
                        }
                    }
                }
            }
            (Stmt::Load { dst, column, row }, Stmt::Load { dst: other, row: next, .. }) => {
                self.load_both(self.facts.pairs.lanes(pair), [*dst, *other], *column, [*row, *next])
            }
            _ => unreachable!("nothing else assigns a pair"),
        };
        self.vectors[pair].set(value, &mut self.b);
        Ok(())
    }

    /// Selects one of two vectors, or lane by lane. If both lanes have the same condition, one `select` of whole
    /// vectors suffices.
    fn choose(&mut self, of: Lanes, operands: Vec<[Operand; 2]>) -> Value {
        let [cond, one, other] = operands[..] else { unreachable!("it chooses between two") };
        let (one, other) = (self.vector(of, one), self.vector(of, other));
        if cond[0] == cond[1] {
            let cond = self.get(cond[0]);
            return self.b.ins().select(cond, one, other);
        }
        let mut mask = self.vector(Lanes::Mask, cond);
        if of == Lanes::F32 {
            mask = self.halves(mask);
        }
        let mask = self.b.ins().bitcast(vector_type(of), little_endian(), mask);
        self.b.ins().bitselect(mask, one, other)
    }

    /// The low half of each lane of a mask, in the first two lanes.
    fn halves(&mut self, mask: Value) -> Value {
        let places: Vec<u8> = [0, 8, 0, 8].into_iter().flat_map(|first| first..first + 4).collect();
        let places = self.b.func.dfg.immediates.push(places.into());
        let bytes = self.b.ins().bitcast(types::I8X16, little_endian(), mask);
        self.b.ins().shuffle(bytes, bytes, places)
    }

    fn vector(&mut self, of: Lanes, operands: [Operand; 2]) -> Value {
        if let Some(pair) = self.facts.pairs.whole(operands) {
            let value = self.whole(pair);
            return match (self.facts.pairs.lanes(pair), of) {
                (Lanes::F64, Lanes::F32) => self.b.ins().fvdemote(value),
                (Lanes::F32, Lanes::F64) => self.b.ins().fvpromote_low(value),
                _ => value,
            };
        }
        let [first, second] = operands;
        let ty = vector_type(of);
        let first_value = self.element(of, first);
        if first == second {
            return self.b.ins().splat(ty, first_value);
        }
        let second_value = self.element(of, second);
        self.vector_of(ty, first_value, second_value)
    }

    /// An operand in the form of a lane.
    fn element(&mut self, of: Lanes, operand: Operand) -> Value {
        match of {
            Lanes::F64 => self.get(operand),
            Lanes::F32 => self.as_single(operand),
            Lanes::Mask => {
                let value = self.get(operand);
                let wide = self.b.ins().uextend(types::I64, value);
                self.b.ins().ineg(wide)
            }
        }
    }

    fn vector_of(&mut self, ty: Type, first: Value, second: Value) -> Value {
        let all = self.b.ins().splat(ty, first);
        self.b.ins().insertlane(all, second, 1)
    }

    /// Loads two rows, with one load if they are neighbours.
    fn load_both(&mut self, of: Lanes, dsts: [VarId; 2], column: ColumnId, rows: [Operand; 2]) -> Value {
        if self.lie_beside(of, column, rows) {
            let (address, at, flags) = self.slot(column, rows[0]);
            // the address of a vector need not be a multiple of its size
            let mut unaligned = MemFlagsData::new().with_notrap().with_alias_region(flags.alias_region());
            if flags.readonly() {
                unaligned.set_readonly();
            }
            if of == Lanes::F32 {
                let both = self.b.ins().load(types::F64, unaligned, address, at);
                let both = self.b.ins().scalar_to_vector(types::F64X2, both);
                return self.b.ins().bitcast(types::F32X4, little_endian(), both);
            }
            return self.b.ins().load(types::F64X2, unaligned, address, at);
        }
        let [first, second] = [0, 1].map(|lane| self.loaded(dsts[lane], column, rows[lane]));
        self.vector_of(vector_type(of), first, second)
    }

    /// Whether the second row's Float follows the first one's in memory.
    fn lie_beside(&mut self, of: Lanes, column: ColumnId, rows: [Operand; 2]) -> bool {
        let Address::Strided { stride, .. } = self.layout.address(column);
        let (storage, bytes) = if of == Lanes::F32 { (Storage::F32, 4) } else { (Storage::F64, 8) };
        if self.program.columns[column.index()].storage != storage || stride != bytes {
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
                let lanes = self.facts.pairs.lanes(pair);
                let zero = match lanes {
                    Lanes::F64 => self.b.ins().f64const(0.0),
                    Lanes::F32 => self.b.ins().f32const(0.0),
                    Lanes::Mask => self.b.ins().iconst(types::I64, 0),
                };
                self.b.ins().splat(vector_type(lanes), zero)
            }
            Register::Many(variable) => self.b.use_var(variable),
            Register::InMemory(_) | Register::Lane(_) => unreachable!("vectors are in registers"),
        }
    }

    /// One lane of a pair.
    pub(super) fn lane(&mut self, pair: usize, lane: u8) -> Value {
        if self.facts.pairs.lanes(pair) == Lanes::Mask {
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

/// The vector type of two lanes. Lanes of 32 bits are the first two of four.
pub(super) fn vector_type(lanes: Lanes) -> Type {
    match lanes {
        Lanes::F64 => types::F64X2,
        Lanes::F32 => types::F32X4,
        Lanes::Mask => types::I64X2,
    }
}

/// The order of lanes for a cast between vectors.
fn little_endian() -> MemFlagsData {
    MemFlagsData::new().with_endianness(Endianness::Little)
}
