//! Privatized reductions of threads of the host ([`crate::ir::privatized`]).
//!
//! Here: whether rows are few enough ([`PrivateRows`]), and one thread's sums ([`Own`]). Not here: the code that adds
//! ([`super::lower`]), and the rows' memory ([`super::jit`]).
//!
//! As long as a thread runs a launch alone, the rows themselves are its own: it adds to them in Ruby's order, and needs
//! no atomic operation. Threads that run together each have rows of their own, and add them to the program's when they
//! are done. A number with which a thread's own sum would leave 64 bits is added to the program's row at once: where
//! numbers have one sign, each row that is ever there is between the first and the last.

use super::jit::State;
use super::state;
use crate::backend::{Key, Launch};
use crate::ir::privatized::{Privatized, privatized};
use crate::ir::{AtomicOp, Program, SiteId, Storage};
use crate::layout::Layout;
use crate::memory::column::HostColumn;

/// Rows of a thread, at most: they stay in its nearest cache.
const ROWS: u64 = 4096;

/// The columns that threads may have rows of for themselves: where each column has its own buffer.
pub fn columns(program: &Program, layout: &Layout) -> Vec<Privatized> {
    if layout.is_shared() { Vec::new() } else { privatized(program) }
}

/// The rows of a launch that each thread has for itself.
pub struct PrivateRows(Vec<Rows>);

struct Rows {
    privatized: Privatized,
    /// The number of the first, and how many there are.
    first: u64,
    count: usize,
}

impl PrivateRows {
    /// None: there are none, or too many of them. Launches up to a limit do without: there, what is raised must be
    /// raised by an element.
    pub fn of(privatized: &[Privatized], launch: &Launch<'_>, elements: u64, threads: usize) -> Option<Self> {
        let rows = |privatized: &Privatized| {
            let at = privatized.column.index();
            Rows { privatized: *privatized, first: launch.biases[at], count: launch.columns[at].len() }
        };
        let all: Vec<Rows> = privatized.iter().map(rows).collect();
        let count: u64 = all.iter().map(|rows| rows.count as u64).sum();
        let work = elements.saturating_mul(launch.ticks);
        let few = (1..=ROWS).contains(&count) && count * threads as u64 <= work && launch.limit == Key::NONE;
        few.then_some(Self(all))
    }

    /// Makes the state's rows its own.
    pub fn begin(&self, state: &mut State) -> Own {
        let sums = self.0.iter().enumerate().map(|(at, rows)| {
            let neutral = match rows.privatized.op {
                AtomicOp::Add | AtomicOp::Or | AtomicOp::Xor => 0,
                AtomicOp::FAdd => (-0.0f64).to_bits() as i64,
                AtomicOp::And => -1,
                AtomicOp::Min => i64::MAX,
                AtomicOp::Max => i64::MIN,
            };
            let storage = if rows.privatized.op == AtomicOp::FAdd { Storage::F64 } else { Storage::I64 };
            let mut own = HostColumn::zeroed(storage, rows.count);
            own.view_mut::<i64>().fill(neutral);
            state.aim_sums(at, rows.privatized.column, &mut own, rows.first);
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
    pub fn merge(self, private_rows: &PrivateRows, state: &State) -> Option<SiteId> {
        let mut left = None;
        for (rows, sums) in private_rows.0.iter().zip(&self.sums) {
            let Privatized { column, op, site } = rows.privatized;
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
    use crate::backend::privatization;

    #[test]
    fn sums_of_threads_are_those_of_all() {
        for threads in [1, 4] {
            privatization::check(&CpuBackend::with_threads(threads).expect("this host is supported"), 300_000);
        }
    }
}
