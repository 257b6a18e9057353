//! A kernel that reads columns and writes others, beside one that changes columns in place.
//!
//! Here: [`Doubling`], which compiles such a kernel on demand. Not here: the program ([`passes::double_buffer`]), and
//! the columns of a launch ([`super::resident`]).

use super::{Backend, Executable};
use crate::config::CodeOptions;
use crate::error::Result;
use crate::ir::{ColumnId, Lowered};
use crate::layout::Layout;
use crate::passes::{self, Bound, DoubleBuffered};
use once_cell::sync::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A kernel that is compiled at most once.
#[derive(Default)]
pub struct Doubling {
    /// None inside: there is none.
    kernel: Arc<OnceCell<Option<Arc<Doubled>>>>,
    begun: AtomicBool,
}

/// The kernel, with what its launch needs in addition.
pub struct Doubled {
    pub executable: Arc<dyn Executable>,
    /// Columns that are written, and those, after all others, from which their rows are read.
    pub pairs: Vec<(ColumnId, ColumnId)>,
    bounds: Vec<(ColumnId, Bound)>,
}

impl Doubled {
    /// The parameters after those of the plain program. `biases` and `lengths`: those of the plain program's columns.
    pub fn params<'a>(&'a self, biases: &'a [u64], lengths: &'a [usize]) -> impl Iterator<Item = u64> + 'a {
        self.bounds.iter().map(|(column, bound)| {
            let first = biases[column.index()];
            let id = match bound {
                Bound::First => first,
                Bound::End => first + lengths[column.index()] as u64,
            };
            i64::from(id as u32 as i32) as u64
        })
    }
}

impl Doubling {
    /// The kernel, if it is ready. Begins to compile it at the first call: at once where that takes a millisecond, and
    /// in the background for a device. After an error there is none, so launches write copies.
    pub fn get(&self, backend: &Arc<dyn Backend>, lowered: &Lowered, options: &CodeOptions) -> Option<Arc<Doubled>> {
        if let Some(kernel) = self.kernel.get() {
            return kernel.clone();
        }
        if self.begun.swap(true, Ordering::Relaxed) {
            return None;
        }
        let Some(doubled) = passes::double_buffer(&lowered.program, &lowered.schema) else {
            let _ = self.kernel.set(None);
            return None;
        };
        let (backend, options, kernel) = (backend.clone(), *options, self.kernel.clone());
        let later = backend.store().is_some();
        let work = move || {
            let _ = kernel.set(made(&*backend, doubled, &options).ok().flatten().map(Arc::new));
        };
        if later {
            in_background(work)
        } else {
            work()
        }
        self.kernel.get().cloned().flatten()
    }
}

#[cfg(feature = "cuda")]
fn in_background(work: impl FnOnce() + Send + 'static) {
    super::cuda::background::run("ikra doubling", work);
}

#[cfg(not(feature = "cuda"))]
fn in_background(work: impl FnOnce() + Send + 'static) {
    work();
}

fn made(backend: &dyn Backend, doubled: DoubleBuffered, options: &CodeOptions) -> Result<Option<Doubled>> {
    let DoubleBuffered { program, pairs, bounds } = doubled;
    let layout = Layout::of(&program, options.arrangement);
    if layout.is_shared() {
        return Ok(None);
    }
    let executable = backend.prepare(&program, &layout, options)?;
    let bounds = bounds.into_iter().map(|(_, column, bound)| (column, bound)).collect();
    Ok(Some(Doubled { executable, pairs, bounds }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cpu::CpuBackend;
    use crate::backend::reference::ReferenceBackend;
    use crate::backend::resident::{Resident, Write};
    use crate::backend::{CancelToken, Launch, Outcome, Timings};
    use crate::ir::testing::{OVERFLOW, REFS, SPEED, program};
    use crate::ir::{CheckedOp, Cmp, Op, Operand, Program, Scalar, Space, Stmt, Storage};
    use crate::layout::schema::{Schema, Slot};
    use crate::memory::buffer::Buffer;
    use crate::memory::column::HostColumn;
    use crate::types::{Repr, Ty};

    /// Objects of three classes; their ids begin at 5. The elements are some of them.
    const OBJECTS: usize = 4000;
    const BASE: u64 = 5;
    /// The ids of the class at position 1, which alone has the column of loads.
    const BUSES: std::ops::Range<u64> = 1005..3005;
    const LOAD: ColumnId = ColumnId(6);

    /// Each element adds `n` to its load if it is a bus, which may raise. Every third has a new speed.
    fn moving() -> Lowered {
        let mut program: Program = program(|b, index| {
            let row = b.load(Scalar::I32, REFS, index);
            let n = b.i64(Op::Param(crate::ir::ParamId(0)), &[]);
            let [from, to] = [BUSES.start, BUSES.end].map(|id| Operand::I32(id as i32));
            let [above, below] = [(Cmp::Ge, from), (Cmp::Lt, to)].map(|(cmp, id)| b.bool(Op::UCmp(cmp), &[row, id]));
            let bus = b.bool(Op::And, &[above, below]);
            b.when(bus, |b| {
                let load = b.load(Scalar::I64, LOAD, row);
                let load = b.checked(CheckedOp::Add, load, n, OVERFLOW);
                b.store(LOAD, row, load);
            });
            let third = b.i64(Op::URem, &[index, Operand::I64(3)]);
            let other = b.icmp(Cmp::Ne, third, Operand::I64(0));
            b.when(other, |b| b.push(Stmt::Return(vec![])));
            let speed = b.load(Scalar::F64, SPEED, row);
            let speed = b.f64(Op::FAdd, &[speed, Operand::float(0.5)]);
            b.store(SPEED, row, speed);
        });
        let class = |first, last| Space::Class { hierarchy: 0, first, last };
        program.columns[REFS.index()].refers = Some(class(0, 2));
        let load = crate::ir::Column {
            name: "Bus@load".into(),
            space: class(1, 1),
            storage: Storage::I64,
            ..program.columns[SPEED.index()].clone()
        };
        program.columns.push(load);
        for (at, column) in program.columns.iter_mut().enumerate() {
            column.written = [SPEED, LOAD].contains(&ColumnId::new(at));
        }
        let slot = Slot { ty: Ty::default(), repr: Repr::Int, value: Some(REFS), tag: None };
        let hierarchies = vec![crate::layout::schema::Hierarchy { bases: vec![None; 4], ..Default::default() }];
        let schema = Schema { elements: Some(slot), hierarchies, ..Schema::default() };
        Lowered { program, schema, asks_index: false, fuses: false }
    }

    #[test]
    fn launches_write_two_columns_in_turn_as_one_that_is_changed_in_place() {
        let lowered = moving();
        let backends: [Arc<dyn Backend>; 2] =
            [Arc::new(ReferenceBackend::default()), Arc::new(CpuBackend::with_threads(2).expect("a processor"))];
        for backend in backends {
            let options = CodeOptions::default();
            let layout = Layout::structure_of_arrays(&lowered.program);
            let plain = backend.prepare(&lowered.program, &layout, &options).expect("a kernel");
            let doubled =
                Doubling::default().get(&backend, &lowered, &options).expect("columns that are read and written apart");
            let storages: Vec<Storage> = lowered.program.columns.iter().map(|column| column.storage).collect();
            // every second object is an element
            let jobs = OBJECTS as u64 / 2;
            let lengths = [0, 0, 0, 0, jobs as usize, OBJECTS, (BUSES.end - BUSES.start) as usize];
            let mut biases = vec![0, 0, 0, 0, 0, BASE, BUSES.start];
            let mut columns: Vec<HostColumn> =
                storages.iter().zip(lengths).map(|(storage, len)| HostColumn::zeroed(*storage, len)).collect();
            for (at, id) in columns[REFS.index()].view_mut::<u32>().iter_mut().enumerate() {
                *id = (BASE + 2 * at as u64) as u32;
            }
            let buffers = [SPEED, LOAD].map(|column| Arc::new(Buffer::from_column(columns[column.index()].clone())));
            // the words of `n`, `x`, `flag` and `small`
            let words = |n: i64| vec![n as u64, 0, 0, 0];
            let mut addresses = Vec::new();
            for (tick, n) in [3, i64::MAX, 4, 1, 2].into_iter().enumerate() {
                let mut timings = Timings::default();
                let (kept, cancel) = (columns.clone(), CancelToken::default());
                let plain_words = words(n);
                let launch = Launch::of(jobs, &mut columns, &biases[..7], &plain_words, &cancel, &mut timings);
                let outcome = backend.launch(&*plain, launch).expect("a launch");
                assert_eq!(outcome == Outcome::Done, n < i64::MAX);
                if outcome != Outcome::Done {
                    columns = kept;
                }
                let mut launched: Vec<HostColumn> = columns.clone();
                biases.truncate(7);
                let mut residents = Vec::new();
                for ((written, before), buffer) in doubled.pairs.iter().zip(&buffers) {
                    biases.push(biases[written.index()]);
                    launched.push(HostColumn::zeroed(buffer.storage(), 0));
                    let write = Write::Swap { writer: 1, before: *before };
                    residents.push(Resident { column: *written, buffer: buffer.clone(), write });
                    residents.push(Resident { column: *before, buffer: buffer.clone(), write: Write::None });
                }
                for resident in &residents {
                    resident.enter(&*backend, &mut launched, None, false).expect("columns");
                }
                let params: Vec<u64> = words(n).into_iter().chain(doubled.params(&biases, &lengths)).collect();
                let cancel = CancelToken::default();
                let launch = Launch::of(jobs, &mut launched, &biases, &params, &cancel, &mut timings);
                assert_eq!(backend.launch(&*doubled.executable, launch).expect("a launch"), outcome);
                if outcome == Outcome::Done {
                    addresses.push(launched[SPEED.index()].bytes().as_ptr());
                    residents.iter().for_each(|resident| resident.keep(&mut launched, &[]));
                }
                for (buffer, column) in buffers.iter().zip([SPEED, LOAD]) {
                    assert_eq!(buffer.on_host().expect("rows"), columns[column.index()], "tick {tick}");
                }
            }
            // the launch that raised left the second memory to nobody
            assert_eq!(addresses[1], addresses[3], "nothing is copied");
            assert_ne!(addresses[1], addresses[2]);
        }
    }
}
