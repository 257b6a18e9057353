//! Workers that go over Ruby's heap.
//!
//! Here: [`map`], which spreads pieces of work over all cores while the Ruby thread, which holds the GVL, waits for them. Not here:
//! what may be read and written then ([`crate::heap`]); collective operations, which run without the GVL and share the threads.
//!
//! Workers call nothing of Ruby's that allocates, raises, or asks which thread it runs on: of its functions only those that
//! [`crate::heap`] says are for workers. What they cannot do they leave to the Ruby thread.

use ikra_core::backend::threads::Threads;
use once_cell::sync::Lazy;
use rayon::prelude::*;

/// Apart from those of sections, which a launch keeps for as long as it runs.
pub static THREADS: Lazy<Threads> = Lazy::new(Threads::of_host);

/// Rows of one piece: a multiple of 64, so that a piece has words of a bit set of its own.
pub const PIECE: usize = 4096;
/// With fewer rows the Ruby thread is done before workers are awake.
const MANY: usize = 4 * PIECE;

/// Whether so many rows are worth going over in their order, piece by piece.
pub fn many(rows: usize) -> bool {
    rows >= MANY
}

/// Whether so many rows are worth waking workers for.
pub fn pays(rows: usize) -> bool {
    many(rows) && THREADS.count() > 1
}

/// What the work gives for each piece, in their order. The pieces have so many rows together.
pub fn map<T: Send, R: Send>(rows: usize, pieces: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    if !pays(rows) {
        return pieces.into_iter().map(work).collect();
    }
    match THREADS.pool() {
        Ok(pool) => pool.install(|| pieces.into_par_iter().map(&work).collect()),
        Err(_) => pieces.into_iter().map(work).collect(),
    }
}

/// A part of a list.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub list: usize,
    pub from: usize,
    pub len: usize,
}

/// Lists of such lengths in spans, as many together as have about the rows of a piece.
pub fn spans(lengths: &[u32]) -> Vec<Vec<Span>> {
    let mut pieces: Vec<Vec<Span>> = Vec::new();
    let mut room = 0;
    for (list, len) in lengths.iter().enumerate() {
        for from in (0..*len as usize).step_by(PIECE) {
            let len = PIECE.min(*len as usize - from);
            if room < len {
                pieces.push(Vec::new());
                room = PIECE;
            }
            room -= len;
            pieces.last_mut().expect("there is one with room").push(Span { list, from, len });
        }
    }
    pieces
}
