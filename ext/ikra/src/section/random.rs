//! The seed of `rand` in kernels, and the number of each section since the seed was set.
//!
//! Here: `Ikra.srand`. Not here: the generator (the backends share it). A process without a seed draws one of its own,
//! and so does a child of `fork`.

use ikra_core::process;
use parking_lot::Mutex;
use std::hash::{BuildHasher, RandomState};

struct Seed {
    value: u64,
    /// The process for which it was drawn. None: the user set it.
    drawn_for: Option<u32>,
    sections: u32,
}

static SEED: Mutex<Seed> = Mutex::new(Seed { value: 0, drawn_for: Some(0), sections: 0 });

fn current(seed: &mut Seed) -> &mut Seed {
    let now = process::id();
    if seed.drawn_for.is_some_and(|p| p != now) {
        *seed = Seed { value: fresh(), drawn_for: Some(now), sections: 0 };
    }
    seed
}

/// Random bits from the operating system, by way of the standard library's hash keys.
fn fresh() -> u64 {
    RandomState::new().hash_one(process::id())
}

/// The seed.
pub fn seed() -> u64 {
    current(&mut SEED.lock()).value
}

/// The number of the section that begins now.
pub fn next_section() -> u32 {
    let mut seed = SEED.lock();
    let seed = current(&mut seed);
    let number = seed.sections;
    seed.sections = seed.sections.wrapping_add(1);
    number
}

/// Gives back the number of a section that did not run. The section that runs in its place then draws the same numbers.
/// Where another section has begun since, the number stays unused.
pub fn give_back(number: u32) {
    let mut seed = SEED.lock();
    let seed = current(&mut seed);
    if seed.sections == number.wrapping_add(1) {
        seed.sections = number;
    }
}

/// Sets the seed (None: a new one) and counts sections from the start. Gives the seed before.
pub fn set(value: Option<u64>) -> u64 {
    let mut seed = SEED.lock();
    let before = current(&mut seed).value;
    *seed = match value {
        Some(value) => Seed { value, drawn_for: None, sections: 0 },
        None => Seed { value: fresh(), drawn_for: Some(process::id()), sections: 0 },
    };
    before
}
