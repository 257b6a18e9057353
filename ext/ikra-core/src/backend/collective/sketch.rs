//! How many keys differ, estimated in little memory.
//!
//! Here: [`Sketch`]. Source: P. Flajolet and others, *HyperLogLog: the analysis of a near-optimal cardinality
//! estimation algorithm* (2007). Its error is about 1.6 %, and small numbers are counted linearly.

/// Registers.
const REGISTERS: usize = 4096;
/// The bits of a hash that choose the register.
const INDEX_BITS: u32 = REGISTERS.trailing_zeros();

/// For each register, the most leading zeroes of a hash, plus 1.
#[derive(Clone)]
pub struct Sketch([u8; REGISTERS]);

impl Default for Sketch {
    fn default() -> Self {
        Self([0; REGISTERS])
    }
}

impl Sketch {
    pub fn add(&mut self, hash: u64) {
        let zeroes = (hash << INDEX_BITS | 1 << (INDEX_BITS - 1)).leading_zeros() as u8;
        let register = &mut self.0[(hash >> (64 - INDEX_BITS)) as usize];
        *register = (*register).max(zeroes + 1);
    }

    /// How many different hashes were added, about.
    pub fn estimate(&self) -> f64 {
        let count = REGISTERS as f64;
        let sum: f64 = self.0.iter().map(|zeroes| 2f64.powi(-i32::from(*zeroes))).sum();
        let raw = 0.7213 / (1.0 + 1.079 / count) * count * count / sum;
        let empty = self.0.iter().filter(|zeroes| **zeroes == 0).count();
        if raw <= 2.5 * count && empty > 0 { count * (count / empty as f64).ln() } else { raw }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Random;
    use super::*;

    #[test]
    fn an_estimate_is_close_to_the_count() {
        let mut random = Random(3);
        for count in [0, 1, 10, 1000, 5000, 20_000, 1_000_000] {
            let mut sketch = Sketch::default();
            for _ in 0..count {
                let hash = random.word();
                sketch.add(hash);
                sketch.add(hash);
            }
            let (found, count) = (sketch.estimate(), f64::from(count));
            assert!((found - count).abs() <= count * 0.06, "{found} of {count}");
        }
    }
}
