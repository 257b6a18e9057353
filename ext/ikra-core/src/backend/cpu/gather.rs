//! What threads of the host add up for themselves ([`crate::ir::gathered`]).
//!
//! Here: whether rows are few enough ([`Gather`]), and one thread's sums ([`Own`]). Not here: the code that adds ([`super::lower`]), and the
//! rows' memory ([`super::jit`]).
//!
//! As long as a thread runs a launch alone, the rows themselves are its own: it adds to them in Ruby's order, and needs no atomic operation.
//! Threads that run together each have rows of their own, and add them to the program's when they are done. A number with which a thread's
//! own sum would leave 64 bits is added to the program's row at once: where numbers have one sign, each row that is ever there is between
//! the first and the last.

use super::jit::State;
use super::state;
use crate::backend::{Key, Launch};
use crate::ir::gathered::{Gathered, gathered};
use crate::ir::{AtomicOp, Program, SiteId, Storage};
use crate::layout::Layout;
use crate::memory::column::HostColumn;

/// Rows of a thread, at most: they stay in its nearest cache.
const ROWS: u64 = 4096;

/// The columns that threads may have rows of for themselves: where each column has its own buffer.
pub fn columns(program: &Program, layout: &Layout) -> Vec<Gathered> {
    if layout.is_shared() { Vec::new() } else { gathered(program) }
}

/// The rows of a launch that each thread has for itself.
pub struct Gather(Vec<Rows>);

struct Rows {
    gathered: Gathered,
    /// The number of the first, and how many there are.
    first: u64,
    count: usize,
}

impl Gather {
    /// None: there are none, or too many of them. Launches up to a limit do without: there, what is raised must be raised by an element.
    pub fn of(gathers: &[Gathered], launch: &Launch<'_>, elements: u64, threads: usize) -> Option<Self> {
        let rows = |gathered: &Gathered| {
            let at = gathered.column.index();
            Rows { gathered: *gathered, first: launch.biases[at], count: launch.columns[at].len() }
        };
        let all: Vec<Rows> = gathers.iter().map(rows).collect();
        let count: u64 = all.iter().map(|rows| rows.count as u64).sum();
        let work = elements.saturating_mul(launch.ticks);
        let few = (1..=ROWS).contains(&count) && count * threads as u64 <= work && launch.limit == Key::NONE;
        few.then_some(Self(all))
    }

    /// Makes the state's rows its own.
    pub fn begin(&self, state: &mut State) -> Own {
        let sums = self.0.iter().enumerate().map(|(at, rows)| {
            let neutral = match rows.gathered.op {
                AtomicOp::Add | AtomicOp::Or | AtomicOp::Xor => 0,
                AtomicOp::FAdd => (-0.0f64).to_bits() as i64,
                AtomicOp::And => -1,
                AtomicOp::Min => i64::MAX,
                AtomicOp::Max => i64::MIN,
            };
            let storage = if rows.gathered.op == AtomicOp::FAdd { Storage::F64 } else { Storage::I64 };
            let mut own = HostColumn::zeroed(storage, rows.count);
            own.view_mut::<i64>().fill(neutral);
            state.aim_sums(at, rows.gathered.column, &mut own, rows.first);
            own
        });
        let sums = sums.collect();
        state.set_word(state::ALONE, 1);
        Own { sums }
    }
}

/// One thread's sums.
pub struct Own {
    sums: Vec<HostColumn>,
}

impl Own {
    /// Adds them to the program's rows, which `state` knows; answers where a row left 64 bits.
    pub fn merge(self, gather: &Gather, state: &State) -> Option<SiteId> {
        let mut left = None;
        for (rows, sums) in gather.0.iter().zip(&self.sums) {
            let Gathered { column, op, site } = rows.gathered;
            for (row, sum) in (rows.first..).zip(sums.view::<i64>()) {
                if state.combine(column, row, op, *sum) {
                    left = left.or(site);
                }
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::super::CpuBackend;
    use crate::backend::gathering;

    #[test]
    fn sums_of_threads_are_those_of_all() {
        for threads in [1, 4] {
            gathering::check(&CpuBackend::with_threads(threads).expect("this host is supported"), 300_000);
        }
    }
}
