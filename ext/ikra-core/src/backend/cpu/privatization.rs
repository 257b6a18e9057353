//! Privatized reductions on threads of the host ([`crate::ir::privatized`]).
//!
//! Here: whether there are few enough rows ([`PrivateRows`]), and the sums of one thread ([`Own`]). Not here: the code
//! that adds ([`super::lower`]), and the addresses of the rows ([`super::jit`]).
//!
//! A thread that runs a launch alone uses the program's rows: it adds to them in Ruby's order, without atomic
//! operations. Threads that run together each have private rows, and add them to the program's rows at the end. If a
//! number would make a thread's own sum exceed 64 bits, it is added to the program's row at once. Where all numbers
//! have one sign, each intermediate row is between its first and its last value.

use super::jit::State;
use super::state;
use crate::backend::{Key, Launch};
use crate::ir::privatized::{Privatized, privatized};
use crate::ir::{AtomicOp, Program, SiteId, Storage};
use crate::layout::Layout;
use crate::memory::column::HostColumn;

/// How many private rows a thread has at most: they stay in its first-level cache.
const ROWS: u64 = 4096;

/// The columns of which threads may have private rows: only if each column has its own buffer.
pub fn columns(program: &Program, layout: &Layout) -> Vec<Privatized> {
    if layout.is_shared() { Vec::new() } else { privatized(program) }
}

/// The private rows that each thread of a launch has.
pub struct PrivateRows(Vec<Rows>);

struct Rows {
    privatized: Privatized,
    /// The index of the first row, and how many there are.
    first: u64,
    count: usize,
}

impl PrivateRows {
    /// None: there are no rows, or too many. A launch with a limit has none either: there, an overflow must be raised
    /// by an element.
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

    /// Makes the state use private rows.
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
    /// Adds the sums to the program's rows, whose addresses `state` has. Returns the site of a row that exceeded 64
    /// bits.
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
