//! The state: a block of words that generated code and its caller share. Each thread of a launch has one.
//!
//! Here: the meaning of each word. Not here: code that uses them ([`super::lower`]) and the call ([`super::jit`]).
//!
//! After the fixed words come those of the columns, then those of the parameters. Then come the words of privatized
//! columns: the distance in bytes from a thread's own rows to the program's. Behind them each counter of a heap has its
//! words ([`COUNTER_WORDS`]). A column's word is the address of its row 0, even if the host's rows begin later: the
//! host's address less bias × stride, in wrapping arithmetic.

/// Address of the launch's stop key.
pub const STOP_KEY: usize = 0;
/// Tick and index of the running element. They are up to date only if functions other than the entry read them, and
/// after a job ended early.
pub const TICK: usize = 1;
pub const INDEX: usize = 2;
/// The number of draws of the running element, if functions other than the entry draw.
pub const DRAW: usize = 3;
/// The polls that are left until the stop key is read.
pub const POLLS: usize = 4;
/// How much deeper calls may nest.
pub const DEPTH: usize = 5;
pub const SEED: usize = 6;
pub const SECTION: usize = 7;
/// The site of a trap, plus 1; 0 when the job was stopped, or ran to its end.
pub const SITE: usize = 8;
/// The trap's words.
pub const WORDS: usize = 9;
/// Written before each read of the stop key, so that the optimiser does not replace the read by an earlier one.
pub const SCRATCH: usize = WORDS + crate::ir::TRAP_WORDS;
/// The thread's number among those of the launch.
pub const SLOT: usize = SCRATCH + 1;
/// Whether the thread may use rows of privatized columns without atomic operations: it has private ones, or runs alone.
pub const ALONE: usize = SLOT + 1;
/// Address of the thread's [`crate::backend::collective::emitted::Emitter`], in a launch that groups pairs.
pub const GROUPS: usize = ALONE + 1;
/// The first column's word.
pub const COLUMNS: usize = GROUPS + 1;

/// The words of a counter: the next row that the thread has taken in advance, the end of these rows, and how many it
/// takes at once.
pub const COUNTER_WORDS: usize = 3;
pub const COUNTER_END: usize = 1;
pub const COUNTER_BATCH: usize = 2;

/// How many polls there are between two reads of the stop key.
pub const POLL_INTERVAL: i64 = 1024;

/// The offset of a word in bytes.
pub fn offset(word: usize) -> i32 {
    i32::try_from(word * 8).expect("a program has fewer than 2^28 columns and parameters")
}
