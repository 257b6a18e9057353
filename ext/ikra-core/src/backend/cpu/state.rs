//! The block of words that generated code and its caller share: one for each thread of a launch.
//!
//! Here: which word is what. Not here: code that uses them ([`super::lower`]) and the call ([`super::jit`]).
//!
//! The columns' words and then the parameters' words follow the fixed ones; last come, for each column that is
//! privatized, the bytes from a thread's own rows to the program's. A column's word is the address of what would be its
//! row 0: the host's address less bias × stride, by wrapping arithmetic.

/// Address of the launch's stop key.
pub const STOP_KEY: usize = 0;
/// Tick and index of the running element; kept up to date only where functions other than the entry read them, and
/// written when a job ends early.
pub const TICK: usize = 1;
pub const INDEX: usize = 2;
/// Draws of the running element so far, where functions other than the entry draw.
pub const DRAW: usize = 3;
/// Polls to go until the stop key is looked at.
pub const POLLS: usize = 4;
/// Calls that may still nest.
pub const DEPTH: usize = 5;
pub const SEED: usize = 6;
pub const SECTION: usize = 7;
/// The site of a trap, plus 1; 0 when the job was stopped, or ran to its end.
pub const SITE: usize = 8;
/// The trap's words.
pub const WORDS: usize = 9;
/// Written before the stop key is read, so that no read of it is taken for a repetition of an earlier one.
pub const SCRATCH: usize = WORDS + crate::ir::TRAP_WORDS;
/// The thread's number among those of the launch.
pub const SLOT: usize = SCRATCH + 1;
/// Whether rows of columns that are privatized are this thread's alone, by its own or because no other runs.
pub const ALONE: usize = SLOT + 1;
/// The first column's word.
pub const COLUMNS: usize = ALONE + 1;

/// How many polls pass between two looks at the stop key.
pub const POLL_INTERVAL: i64 = 1024;

/// Offset of a word in bytes.
pub fn offset(word: usize) -> i32 {
    i32::try_from(word * 8).expect("a program has fewer than 2^28 columns and parameters")
}
