//! Folds: programs with a column of which only a reduction is wanted, as in `(a * 2 + b).sum`.
//!
//! Here: [`Fold`], which says for which programs the column can be reduced while it is computed; [`apart`], which
//! launches first and then reduces, for all other backends and programs. Not here: reductions ([`super::collective`]).
//!
//! A job's row of such a column is one element of the reduction, whichever thread runs the job. The order of elements
//! is that of [`super::collective`]. So the result has the same bits whether the column is stored or not. A launch that
//! does not end with [`Outcome::Done`] has no result. Its traps, refuted assumptions and cancelling are the same as
//! without a fold.

use super::collective::reduce::{self, Reduced, Reduction};
use super::collective::rows::{Collective as _, Stretch};
use super::collective::{Element, Workers};
use super::threads::Threads;
use super::{Backend, Executable, Launch, Outcome, epilogue};
use crate::error::Result;
use crate::ir::{ColumnId, Ctx, Op, Operand, Program, Space, Stmt};
use crate::layout::Layout;
use crate::lower::section::Holes;
use crate::memory::column::HostColumn;
use crate::memory::room;
use std::time::Instant;

/// A column, and the reduction of its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fold {
    pub column: ColumnId,
    /// The column that says which rows count; None: all do. With a mask, the place of an extreme is not reported.
    pub mask: Option<ColumnId>,
    pub element: Element,
    pub reduction: Reduction,
    /// The column that the program copies into this one, if it does nothing else.
    pub copied: Option<ColumnId>,
}

/// How a launch ended, and the result of the reduction when it is [`Outcome::Done`].
pub type Folded = (Outcome, Option<Reduced>);

impl Fold {
    /// None when a row is not stored once and by its own job: elements run in another order, or several run in one job.
    /// None also when the program reads the rows, and when they have no number type.
    ///
    /// Some folds may have to compute all elements again: extremes of Floats do when they meet a NaN, to report what
    /// Ruby compares it with. `again` says that this fold may, too. For those, None when the program changes anything
    /// else that existed before (`overwritten` are the columns where it does).
    pub fn of(
        program: &Program,
        layout: &Layout,
        column: ColumnId,
        mask: Option<ColumnId>,
        reduction: Reduction,
        again: bool,
        overwritten: &[ColumnId],
    ) -> Option<Self> {
        let element = Element::stored(program.columns.get(column.index())?.storage)?;
        let wanted: Vec<ColumnId> = [Some(column), mask].into_iter().flatten().collect();
        let extreme = matches!(reduction, Reduction::Min | Reduction::Max | Reduction::MinMax);
        let again = !(again || extreme && element.is_float()) || program.changes_only(&wanted, overwritten);
        let fits = again && epilogue::by_own_jobs(program, layout, &wanted);
        let copied = copied(program, column).filter(|_| mask.is_none());
        fits.then_some(Self { column, mask, element, reduction, copied })
    }
}

/// The column whose rows each job copies to its row of this column, if the program does nothing else.
fn copied(program: &Program, column: ColumnId) -> Option<ColumnId> {
    let (mut own, mut loaded, mut stored) = (Vec::new(), None, false);
    for stmt in &program.funcs[program.entry.index()].body {
        match stmt {
            Stmt::Begin { index, .. } => own.push(*index),
            Stmt::Let { dst, op: Op::Ctx(Ctx::Index), .. } => own.push(Operand::Var(*dst)),
            Stmt::Load { dst, column, row } if own.contains(row) && loaded.is_none() => loaded = Some((*dst, *column)),
            Stmt::Store { column: to, row, value: Operand::Var(value) } if *to == column && own.contains(row) => {
                stored = loaded.is_some_and(|(dst, _)| dst == *value);
            }
            Stmt::Return(values) if values.is_empty() => {}
            _ => return None,
        }
    }
    let (_, from) = loaded.filter(|_| stored)?;
    let [one, other] = [from, column].map(|column| &program.columns[column.index()]);
    (one.space == Space::Element && one.storage == other.storage).then_some(from)
}

/// The value that stands for elements without one, when all rows are reduced. None: there is no such value.
pub fn neutral(reduction: Reduction) -> Option<Holes> {
    let (int, float) = match reduction {
        Reduction::Sum | Reduction::Count => (0, 0.0),
        Reduction::Product => (1, 1.0),
        Reduction::Min => (i64::MAX, f64::INFINITY),
        Reduction::Max => (i64::MIN, f64::NEG_INFINITY),
        Reduction::MinMax => return None,
    };
    Some(Holes::Filled { int, float: f64::to_bits(float) })
}

/// Runs a launch, then reduces the column where its rows are.
///
/// # Errors
/// As [`Backend::launch`].
pub fn apart<B: Backend + ?Sized>(
    backend: &B,
    threads: &Threads,
    executable: &dyn Executable,
    fold: Fold,
    launch: Launch<'_>,
) -> Result<Folded> {
    let Launch { columns, jobs, cancel, .. } = launch;
    let len = usize::try_from(jobs).unwrap_or(usize::MAX);
    let workers = Workers { threads, cancel };
    if let (Some(copied), None) = (fold.copied, backend.store()) {
        let began = Instant::now();
        let elements = Stretch { element: fold.element, rows: &columns[copied.index()], range: 0..len };
        let reduced = reduce::reduce(workers, fold.reduction, elements.values())?;
        launch.timings.kernel += began.elapsed();
        return Ok((if reduced.is_some() { Outcome::Done } else { Outcome::Cancelled }, reduced));
    }
    let wanted = [Some((fold.column, fold.element)), fold.mask.map(|mask| (mask, Element::U8))];
    for (column, element) in wanted.into_iter().flatten() {
        let storage = element.storage();
        columns[column.index()] = match backend.store() {
            Some(store) if len > 0 => HostColumn::on_device(storage, len, store.allocate(len * storage.bytes())?),
            _ => room::caught(|| HostColumn::zeroed(storage, len))?,
        };
    }
    let outcome = backend.launch(executable, Launch { columns: &mut *columns, ..launch })?;
    let [rows, mask] = wanted.map(|wanted| {
        let (column, element) = wanted?;
        Some(std::mem::replace(&mut columns[column.index()], HostColumn::zeroed(element.storage(), 0)))
    });
    let (Outcome::Done, Some(mut rows)) = (outcome, rows) else { return Ok((outcome, None)) };
    if let Some(mask) = mask {
        let flags = Stretch { element: Element::U8, rows: &mask, range: 0..len };
        let elements = Some(Stretch { element: fold.element, rows: &rows, range: 0..len });
        let chosen = match backend.collective() {
            Some(device) if rows.device().is_some() => device.select(flags, elements)?,
            _ => workers.select(flags, elements)?,
        };
        let Some(chosen) = chosen else { return Ok((Outcome::Cancelled, None)) };
        rows = chosen;
    }
    let range = 0..rows.len();
    if rows.device().is_some() {
        return Ok((outcome, Some(backend.reduce(fold.reduction, fold.element, &rows, range)?)));
    }
    let elements = Stretch { element: fold.element, rows: &rows, range };
    let reduced = reduce::reduce(workers, fold.reduction, elements.values())?;
    Ok((if reduced.is_some() { outcome } else { Outcome::Cancelled }, reduced))
}

#[cfg(all(test, feature = "cpu", feature = "cuda"))]
mod tests {
    use super::*;
    use crate::backend::collective::TILE;
    use crate::backend::collective::testing::{self, Owned, on_host};
    use crate::backend::cpu::CpuBackend;
    use crate::backend::cuda::CudaShim;
    use crate::backend::epilogue::Epilogue;
    use crate::backend::reference::ReferenceBackend;
    use crate::backend::{CancelToken, Key, Timings};
    use crate::config::CodeOptions;
    use crate::id::ArrayKind;
    use crate::ir::build::Builder;
    use crate::ir::testing::{OVERFLOW, over_elements};
    use crate::ir::{CheckedOp, Column, Heap, Jobs, Op, Operand, ParamId, Scalar, Space, Stmt, Storage};
    use std::sync::Arc;

    const INPUT: ColumnId = ColumnId(0);
    const OUTPUT: ColumnId = ColumnId(1);
    const OTHER: ColumnId = ColumnId(2);

    /// A program with columns `in` and `out` of elements, and another column of Integers.
    fn computing(storage: Storage, body: impl FnOnce(&mut Builder, Operand)) -> Program {
        let other = ("other", Storage::I64, false, storage == Storage::I64);
        over_elements(&[("in", storage, true, false), ("out", storage, false, true), other], body)
    }

    /// `out = in`. With Integers of 64 bits `out = in + n`, checked, and `other = in`, so that one column is not
    /// reduced.
    fn copies(storage: Storage) -> Program {
        let ty = match storage {
            Storage::F64 | Storage::F32 => Scalar::F64,
            _ => Scalar::I64,
        };
        computing(storage, |b, index| {
            let x = b.load(ty, INPUT, index);
            if storage == Storage::I64 {
                let n = b.i64(Op::Param(ParamId(0)), &[]);
                let sum = b.checked(CheckedOp::Add, x, n, OVERFLOW);
                b.store(OTHER, index, x);
                b.store(OUTPUT, index, sum);
            } else {
                b.store(OUTPUT, index, x);
            }
        })
    }

    /// A program that does `out = in` and nothing else.
    fn only_copies(storage: Storage) -> Program {
        let ty = if Element::stored(storage).is_some_and(Element::is_float) { Scalar::F64 } else { Scalar::I64 };
        computing(storage, |b, index| {
            let x = b.load(ty, INPUT, index);
            b.store(OUTPUT, index, x);
        })
    }

    /// `out = in` after a loop, which keeps kernels from reducing while they compute.
    fn slowly() -> Program {
        computing(Storage::I64, |b, index| {
            b.repeat(|b, done| {
                b.push(Stmt::Poll);
                let positive = b.icmp(crate::ir::Cmp::Ge, index, Operand::I64(0));
                b.when(positive, |b| b.push(Stmt::Break(done)));
            });
            let x = b.load(Scalar::I64, INPUT, index);
            b.store(OUTPUT, index, x);
        })
    }

    fn machines() -> Vec<Box<dyn Backend>> {
        let cpu = |threads| Box::new(CpuBackend::with_threads(threads).expect("this processor is known"));
        let shim = Box::new(CudaShim::new().expect("a C++ compiler is installed"));
        vec![Box::new(ReferenceBackend::default()), cpu(1), cpu(2), shim]
    }

    fn column(values: &Owned) -> HostColumn {
        let mut column = HostColumn::zeroed(values.view().element().storage(), values.view().len());
        match values {
            Owned::I64(x) => column.view_mut().copy_from_slice(x),
            Owned::I32(x) => column.view_mut().copy_from_slice(x),
            Owned::U8(x) => column.view_mut().copy_from_slice(x),
            Owned::F64(x) => column.view_mut().copy_from_slice(x),
            Owned::F32(x) => column.view_mut().copy_from_slice(x),
        }
        column
    }

    struct Compiled {
        fold: Fold,
        executable: Arc<dyn Executable>,
    }

    fn prepare(machine: &dyn Backend, program: &Program, reduction: Reduction) -> Compiled {
        let layout = Layout::structure_of_arrays(program);
        let fold = Fold::of(program, &layout, OUTPUT, None, reduction, false, &[])
            .expect("every element stores its own number");
        let executable = machine.prepare_with_epilogue(program, &layout, Epilogue::Fold(fold), &CodeOptions::default());
        Compiled { fold, executable: executable.unwrap_or_else(|e| panic!("{}: {e}", machine.name())) }
    }

    fn launch(
        machine: &dyn Backend,
        compiled: &Compiled,
        columns: &mut [HostColumn],
        n: i64,
        limit: Key,
        cancel: &CancelToken,
    ) -> Folded {
        let launched = with_launch(columns, n, limit, cancel, |launch| {
            let slots = machine.slots(launch.jobs);
            machine.launch_fold(&*compiled.executable, compiled.fold, Launch { slots, ..launch })
        });
        launched.unwrap_or_else(|e| panic!("{}: {e}", machine.name()))
    }

    fn with_launch<T>(
        columns: &mut [HostColumn],
        n: i64,
        limit: Key,
        cancel: &CancelToken,
        run: impl FnOnce(Launch<'_>) -> T,
    ) -> T {
        let jobs = columns[0].len() as u64;
        run(Launch { limit, ..Launch::of(jobs, columns, &[0; 3], &[n as u64], cancel, &mut Timings::default()) })
    }

    fn columns(values: &Owned) -> Vec<HostColumn> {
        let len = values.view().len();
        let of = |storage| HostColumn::zeroed(storage, len);
        vec![column(values), of(values.view().element().storage()), of(Storage::I64)]
    }

    #[test]
    fn what_is_reduced_while_it_is_computed_is_what_the_host_reduces_to_the_bit() {
        let samples = testing::samples(&[0, 1, 31, 32, 33, TILE - 1, TILE, TILE + 1, 9 * TILE + 7]);
        for machine in machines() {
            let programs = Element::ALL.map(|element| (element, copies(element.storage())));
            let only = (Element::I64, only_copies(Storage::I64));
            for (element, program) in programs.into_iter().chain([only]) {
                for reduction in Reduction::ALL {
                    let compiled = prepare(&*machine, &program, reduction);
                    for values in samples.iter().filter(|values| values.view().element() == element) {
                        // the interpreter is too slow for more
                        if machine.name() == "reference" && values.view().len() > TILE + 1 {
                            continue;
                        }
                        let mut columns = columns(values);
                        let cancel = CancelToken::default();
                        let (outcome, reduced) = launch(&*machine, &compiled, &mut columns, 0, Key::NONE, &cancel);
                        assert_eq!(outcome, Outcome::Done);
                        let host = on_host(|workers| reduce::reduce(workers, reduction, values.view()));
                        let reduced = reduced.expect("all ended well");
                        let name = machine.name();
                        assert_eq!(testing::bits(reduced), testing::bits(host), "{name}: {reduction:?} of {values:?}");
                        if compiled.fold.copied.is_none() {
                            assert_eq!(columns[2].view::<i64>(), columns[0].view::<i64>(), "{name}: the other column");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_column_that_is_only_copied_is_reduced_where_it_is() {
        let shim = CudaShim::new().expect("a C++ compiler is installed");
        let listing = |program: &Program| {
            let compiled = prepare(&shim, program, Reduction::Sum);
            (compiled.fold.copied, compiled.executable.listing())
        };
        for storage in [Storage::I64, Storage::F64, Storage::U8] {
            let (copied, text) = listing(&only_copies(storage));
            assert_eq!(copied, Some(INPUT));
            assert!(text.contains("reduce_loaded<") && !text.contains("reduce_each<"), "{text}");
        }
        let (copied, text) = listing(&copies(Storage::I64));
        assert_eq!(copied, None, "it adds, and stores to another column");
        assert!(text.contains("reduce_each<"), "{text}");
    }

    #[test]
    fn the_trap_with_the_least_key_is_told_and_there_is_no_result() {
        let mut values = vec![5; 9 * TILE + 7];
        (values[3 * TILE + 5], values[8 * TILE], values[9 * TILE + 6]) = (i64::MAX, i64::MAX, i64::MAX);
        for machine in machines() {
            let compiled = prepare(&*machine, &copies(Storage::I64), Reduction::Sum);
            let run = |values: &[i64], limit| {
                let mut columns = columns(&Owned::I64(values.to_vec()));
                launch(&*machine, &compiled, &mut columns, 1, limit, &CancelToken::default())
            };
            let (outcome, reduced) = run(&values, Key::NONE);
            let Outcome::Trapped(record) = outcome else { panic!("{}: {outcome:?}", machine.name()) };
            assert_eq!((record.key, record.site, reduced), (Key::new(0, 3 * TILE as u64 + 5), OVERFLOW, None));
            // a launch leaves no state for the next one
            let sum = Reduced::Integer(6 * 3 * TILE as i128);
            assert_eq!(run(&values[..3 * TILE], Key::NONE), (Outcome::Done, Some(sum)), "{}", machine.name());
        }
    }

    #[test]
    fn what_stands_for_elements_without_a_value_changes_no_reduction() {
        let values = [(3, 2.5), (-7, -0.0), (i64::MAX, f64::INFINITY), (i64::MIN, f64::NEG_INFINITY), (0, f64::NAN)];
        for reduction in [Reduction::Sum, Reduction::Product, Reduction::Min, Reduction::Max, Reduction::Count] {
            let Some(Holes::Filled { int, float }) = neutral(reduction) else { panic!("{reduction:?}") };
            let value = |values: Owned| {
                // of extremes only the value: the place may be that of the neutral element
                match on_host(|workers| reduce::reduce(workers, reduction, values.view())) {
                    Reduced::Extremes { least, greatest, nan } => {
                        format!("{:?} {nan}", least.or(greatest).map(|place| place.value))
                    }
                    reduced => format!("{:?}", testing::bits(reduced)),
                }
            };
            for (i, f) in values {
                assert_eq!(value(Owned::I64(vec![int, i, int])), value(Owned::I64(vec![i])), "{reduction:?} of {i}");
                let float = f64::from_bits(float);
                // a NaN among extremes is reported, and there is no value
                if f.is_nan() && matches!(reduction, Reduction::Min | Reduction::Max) {
                    continue;
                }
                let (with, without) = (vec![float, f, float], vec![f]);
                assert_eq!(value(Owned::F64(with)), value(Owned::F64(without)), "{reduction:?} of {f}");
            }
        }
        assert_eq!(neutral(Reduction::MinMax), None);
    }

    #[test]
    fn a_cancelled_launch_has_no_result() {
        let values = Owned::I64(vec![1; 9 * TILE]);
        for machine in machines() {
            let compiled = prepare(&*machine, &copies(Storage::I64), Reduction::Sum);
            let cancel = CancelToken::default();
            cancel.cancel();
            let answer = launch(&*machine, &compiled, &mut columns(&values), 1, Key::NONE, &cancel);
            assert_eq!(answer, (Outcome::Cancelled, None), "{}", machine.name());
        }
    }

    #[test]
    fn jobs_that_may_take_long_have_a_thread_each_and_the_column_is_reduced_behind_them() {
        let values: Vec<i64> = (0..5 * TILE as i64).collect();
        let sum = values.iter().map(|x| i128::from(*x)).sum();
        for machine in machines() {
            let compiled = prepare(&*machine, &slowly(), Reduction::Sum);
            let cancel = CancelToken::default();
            let mut columns = columns(&Owned::I64(values.clone()));
            let answer = launch(&*machine, &compiled, &mut columns, 0, Key::NONE, &cancel);
            assert_eq!(answer, (Outcome::Done, Some(Reduced::Integer(sum))), "{}", machine.name());
            assert_eq!(compiled.executable.runs_epilogue(), machine.name() == "cpu", "{}", machine.name());
        }
    }

    #[test]
    fn a_kernel_that_reduces_runs_one_tick_and_not_without_its_fold() {
        let shim = CudaShim::new().expect("a C++ compiler is installed");
        let compiled = prepare(&shim, &copies(Storage::I64), Reduction::Sum);
        assert!(compiled.executable.runs_epilogue());
        let mut columns = columns(&Owned::I64(vec![1; 100]));
        let cancel = CancelToken::default();
        let mut refused = |run: &dyn Fn(Launch<'_>) -> Result<Outcome>| {
            let outcome = with_launch(&mut columns, 0, Key::NONE, &cancel, run);
            assert!(matches!(outcome, Err(crate::error::Error::Internal { .. })), "{outcome:?}");
        };
        refused(&|launch| shim.launch(&*compiled.executable, launch));
        refused(&|launch| {
            let launch = Launch { ticks: 2, ..launch };
            Ok(shim.launch_fold(&*compiled.executable, compiled.fold, launch)?.0)
        });
    }

    #[test]
    fn what_may_run_again_may_make_arrays_and_write_to_no_others() {
        let mut program = copies(Storage::F64);
        let arrays = Space::Array(ArrayKind::new(0));
        let elements = ColumnId::new(program.columns.len());
        program.columns.push(Column { space: arrays, written: true, ..program.columns[OUTPUT.index()].clone() });
        let layout = Layout::structure_of_arrays(&program);
        let of = |program: &Program, overwritten: &[ColumnId]| {
            Fold::of(program, &layout, OUTPUT, None, Reduction::Min, true, overwritten).is_some()
        };
        assert!(!of(&program, &[]), "the program takes no rows of that space, so it cannot have made them");
        let heap = Heap { space: arrays, scratch: true, start: ParamId(0), capacity: ParamId(0), taken: OTHER };
        program.heaps.push(heap);
        assert_eq!([of(&program, &[]), of(&program, &[elements])], [true, false]);
    }

    #[test]
    fn columns_that_are_read_or_stored_in_part_or_out_of_order_are_not_reduced() {
        let of = |program: &Program| {
            let layout = Layout::structure_of_arrays(program);
            Fold::of(program, &layout, OUTPUT, None, Reduction::Sum, false, &[]).is_some()
        };
        let program = copies(Storage::I64);
        assert!(of(&program));
        let extreme = |storage| {
            let mut program = copies(storage);
            let layout = Layout::structure_of_arrays(&program);
            let of = |program: &Program, again| {
                Fold::of(program, &layout, OUTPUT, None, Reduction::Min, again, &[]).is_some()
            };
            program.columns[OTHER.index()].written = true;
            let with_other = [false, true].map(|again| of(&program, again));
            program.columns[OTHER.index()].written = false;
            let random = Program { uses_random: true, ..program.clone() };
            (with_other, of(&program, true), of(&random, false))
        };
        assert_eq!(extreme(Storage::F64), ([false, false], true, false), "a NaN makes all be computed again");
        assert_eq!(extreme(Storage::I64), ([true, false], true, true));
        assert!(!of(&Program { jobs: Jobs::Reordered, ..program.clone() }));
        assert!(!of(&Program { jobs: Jobs::Grouped, ..program }));
        assert!(!of(&copies(Storage::U32)), "references are no numbers");
        let read = computing(Storage::I64, |b, index| {
            b.store(OUTPUT, index, Operand::I64(1));
            let x = b.load(Scalar::I64, OUTPUT, index);
            b.store(OTHER, index, x);
        });
        assert!(!of(&read));
        let partly = computing(Storage::I64, |b, index| {
            let x = b.load(Scalar::I64, INPUT, index);
            let positive = b.icmp(crate::ir::Cmp::Gt, x, Operand::I64(0));
            b.when(positive, |b| b.store(OUTPUT, index, x));
        });
        assert!(!of(&partly));
        let elsewhere = computing(Storage::I64, |b, index| {
            let next = b.i64(Op::Add, &[index, Operand::I64(1)]);
            b.store(OUTPUT, next, index);
        });
        assert!(!of(&elsewhere));
    }
}
