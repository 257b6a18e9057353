//! Helpers: functions that generated code calls, for operations that are too long to be generated at each use.

use super::jit::{emit_parts, emit_text};
use crate::backend::collective::emitted::Emitter;
use crate::backend::{libm, philox};
use crate::ir::MathFn;

/// A helper function of the host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Helper {
    Math(MathFn),
    Remainder,
    NextAfter,
    MulMod,
    AddMod,
    Random,
    Emit,
    EmitText,
    EmitParts,
    KeyPart,
}

/// The type of a helper's parameter or result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Word {
    Int,
    Float,
}

impl Helper {
    pub fn name(self) -> String {
        match self {
            Helper::Math(f) => format!("{f:?}").to_lowercase(),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    pub fn named(name: &str) -> Option<Helper> {
        let others = [
            Helper::Remainder,
            Helper::NextAfter,
            Helper::MulMod,
            Helper::AddMod,
            Helper::Random,
            Helper::Emit,
            Helper::EmitText,
            Helper::EmitParts,
            Helper::KeyPart,
        ];
        libm::ALL.into_iter().map(Helper::Math).chain(others).find(|helper| helper.name() == name)
    }

    pub fn address(self) -> *const u8 {
        match self {
            Helper::Math(f) => match libm::function(f) {
                libm::Function::One(f) => f as *const u8,
                libm::Function::Two(f) => f as *const u8,
                libm::Function::Exponent(f) => f as *const u8,
            },
            Helper::Remainder => libm::fmod as *const u8,
            Helper::NextAfter => libm::nextafter as *const u8,
            Helper::MulMod => mul_mod as *const u8,
            Helper::AddMod => add_mod as *const u8,
            Helper::Random => random as *const u8,
            Helper::Emit => emit as *const u8,
            Helper::EmitText => emit_text as *const u8,
            Helper::EmitParts => emit_parts as *const u8,
            Helper::KeyPart => key_part as *const u8,
        }
    }

    /// The types of the parameters and of the result.
    pub fn signature(self) -> (&'static [Word], Word) {
        use Word::{Float, Int};
        match self {
            Helper::Math(f) => match libm::function(f) {
                libm::Function::One(_) => (&[Float], Float),
                libm::Function::Two(_) => (&[Float, Float], Float),
                libm::Function::Exponent(_) => (&[Float, Int], Float),
            },
            Helper::Remainder | Helper::NextAfter => (&[Float, Float], Float),
            Helper::MulMod | Helper::AddMod | Helper::KeyPart => (&[Int, Int, Int], Int),
            Helper::Random | Helper::EmitText => (&[Int, Int, Int, Int, Int], Int),
            Helper::Emit | Helper::EmitParts => (&[Int, Int, Int, Int], Int),
        }
    }
}

extern "C" fn mul_mod(a: i64, b: i64, m: i64) -> i64 {
    (i128::from(a) * i128::from(b)).rem_euclid(i128::from(m)) as i64
}

extern "C" fn add_mod(a: i64, b: i64, m: i64) -> i64 {
    (i128::from(a) + i128::from(b)).rem_euclid(i128::from(m)) as i64
}

extern "C" fn random(seed: u64, section: u64, tick: u64, index: u64, draw: u64) -> u64 {
    philox::draw(seed, section as u32, tick as u32, index as u32, draw as u32)
}

/// No panic leaves it: the emitter keeps one for the caller of the launch.
extern "C" fn emit(emitter: &mut Emitter, key: u64, value: i64, order: u64) -> u64 {
    emitter.push(key, value, order);
    0
}

extern "C" fn key_part(emitter: &mut Emitter, code: u64, word: u64) -> u64 {
    emitter.push_part(code, word);
    0
}
