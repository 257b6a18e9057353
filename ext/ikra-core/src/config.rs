//! Every option, its default and its meaning.
//!
//! Here: the options that shape code, in one struct that is hashed whole into cache keys. Not here: reading them from
//! Ruby or the environment (the bridge and `lib/`).

use std::sync::atomic::{AtomicU64, Ordering};

static MEMORY_LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

/// Bytes of device memory that this process may hold.
pub fn memory_limit() -> u64 {
    MEMORY_LIMIT.load(Ordering::Relaxed)
}

/// None: as many as there are.
pub fn set_memory_limit(bytes: Option<u64>) {
    MEMORY_LIMIT.store(bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// What to do when integer arithmetic leaves 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// Raise `Ikra::IntegerOverflow`.
    #[default]
    Raise,
    /// Wrap around, as C's unsigned integers do.
    Wrap,
}

/// How many bits Floats have in between: operands and results of a number's methods, and of functions of Math.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// 64, as Ruby's.
    #[default]
    Double,
    /// Of them, arithmetic and the square root are those of IEEE 754's binary32 ([`crate::ir::Op::FSingle`] says why); what
    /// else there is gives Ruby's result, rounded to 32 bits.
    Single,
}

/// How the fields of objects lie in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Arrangement {
    /// Each column is an array of its own.
    #[default]
    Columns,
    /// Fields of the same objects stand side by side, object by object. For measuring what columns are worth, and for nothing else.
    Structures,
}

/// Options that change generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CodeOptions {
    /// Major and minor version of the Ruby whose answers, and words of exceptions, kernels give.
    pub ruby: (u8, u8),
    /// Whether that Ruby's `round(half: :even)` takes Floats apart first, as the fix of its bug 19318 has it: patches have it
    /// too, so the version does not tell.
    pub even_by_parts: bool,
    /// Whether `Math.lgamma` gives -1 for the sign at negative Integers, where the gamma function has poles. The C library
    /// decides: glibc changed its answer.
    pub negative_poles: bool,
    pub overflow: Overflow,
    /// Lets CUDA contract and approximate Float arithmetic. Results may then differ from Ruby's in the last digits.
    pub fast_math: bool,
    pub precision: Precision,
    /// Looks for data races, which only the interpreter does: programs say at which line they are.
    pub races: bool,
    pub arrangement: Arrangement,
    /// Elements are visited by class where they are of several. Not to do it is for measuring what it is worth.
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
            overflow: Overflow::default(),
            fast_math: false,
            precision: Precision::default(),
            races: false,
            arrangement: Arrangement::default(),
            reorder: true,
        }
    }
}
