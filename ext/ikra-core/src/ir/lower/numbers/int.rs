//! Integer arithmetic: 64 bits, exact or trapping.

use super::{Kind, Unsupported};
use crate::types::Ty;

pub fn bit_ref_type(args: &[Kind]) -> Result<Ty, Unsupported> {
    match args {
        [Kind::FloatRange] => {
            Err(Unsupported { why: "bits are counted in Integers", advice: "give the Range Integer bounds" })
        }
        [Kind::IntRange] => Ok(Ty::int()),
        args if args.iter().all(|k| k.is_number()) => Ok(Ty::int()),
        _ => Ok(Ty::never()),
    }
}
