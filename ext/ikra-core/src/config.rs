//! Every option, its default and its meaning.
//!
//! Here: the options that affect code, in one struct. Cache keys contain a hash of the whole struct. Not here: reading
//! options from Ruby or the environment (the bridge and `lib/`).

use std::sync::atomic::{AtomicU64, Ordering};

static MEMORY_LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// The most bytes of device memory that this process may hold.
pub fn memory_limit() -> u64 {
    MEMORY_LIMIT.load(Ordering::Relaxed)
}

/// None: as much as the device has.
pub fn set_memory_limit(bytes: Option<u64>) {
    MEMORY_LIMIT.store(bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// What happens when integer arithmetic leaves 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// Raise `Ikra::IntegerOverflow`.
    #[default]
    Raise,
    /// Wrap around, as C's unsigned integers do.
    Wrap,
}

/// The precision of Floats: of operands and results of numeric methods, and of functions of Math.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 64 bits, as in Ruby.
    #[default]
    Double,
    /// 32 bits. Arithmetic and the square root are those of IEEE 754's binary32 ([`crate::ir::Op::FSingle`] says why).
    /// Other functions give Ruby's result, rounded to 32 bits.
    Single,
}

/// The arrangement of objects' fields in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arrangement {
    /// Each column is an array of its own.
    #[default]
    Columns,
    /// Fields of the same objects stand side by side, object by object. Only for measuring what columns are worth.
    Structures,
}

/// Options that change generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeOptions {
    /// Major and minor version of the Ruby whose results and error messages kernels give.
    pub ruby: (u8, u8),
    /// Whether that Ruby's `round(half: :even)` first splits Floats into parts, which fixed its bug 19318. Patch
    /// releases have the fix too, so the version alone does not tell.
    pub even_by_parts: bool,
    /// Whether `Math.lgamma` gives -1 for the sign at negative Integers, where the gamma function has poles. The C
    /// library decides: glibc changed its answer.
    pub negative_poles: bool,
    /// Whether Integer powers of Complexes are exact where the angle is a multiple of an eighth of the circle: from
    /// Ruby 3.4 on, and in patch releases of 3.3.
    pub exact_eighths: bool,
    /// Whether `last(n)` of a Range of Integers with one element, such as `3..3`, is empty: a bug of Ruby 3.1 that
    /// patch releases mend.
    pub single_lost: bool,
    pub overflow: Overflow,
    /// Lets CUDA contract and approximate Float arithmetic. Results may then differ from Ruby's in the last digits.
    pub fast_math: bool,
    pub precision: Precision,
    /// Looks for data races, which only the interpreter does. Such programs record the line of each access.
    pub races: bool,
    pub arrangement: Arrangement,
    /// Whether elements of several classes are visited by class. Off only for measuring what it is worth.
    pub reorder: bool,
}

impl CodeOptions {
    /// A name as that Ruby quotes it in the messages of exceptions.
    pub fn quoted(&self, name: &str) -> String {
        let open = if self.ruby >= (3, 4) { '\'' } else { '`' };
        format!("{open}{name}'")
    }
}

impl Default for CodeOptions {
    fn default() -> Self {
        Self {
            ruby: (3, 1),
            even_by_parts: false,
            negative_poles: false,
            exact_eighths: false,
            single_lost: false,
            overflow: Overflow::default(),
            fast_math: false,
            precision: Precision::default(),
            races: false,
            arrangement: Arrangement::default(),
            reorder: true,
        }
    }
}
