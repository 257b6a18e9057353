//! Epilogues: what a kernel does with a column of results within the kernel, in place of storing it.
//!
//! Here: [`Epilogue`], and which programs may have one. The kernel either reduces the column ([`Fold`]), or compacts
//! it: it stores side by side the rows that a validity mask selects ([`Compaction`], for `select` and `filter_map`).
//! Not here: reductions and compactions of rows that are in memory ([`super::collective`]).

use super::Outcome;
use super::collective::Element;
use super::fold::Fold;
use crate::ir::{ColumnId, FuncId, Jobs, Program, Space, Stmt, filled, walk};
use crate::layout::Layout;
use crate::memory::column::HostColumn;

/// An epilogue; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Epilogue {
    Fold(Fold),
    Compaction(Compaction),
}

impl Epilogue {
    pub fn column(&self) -> ColumnId {
        match self {
            Epilogue::Fold(fold) => fold.column,
            Epilogue::Compaction(compaction) => compaction.column,
        }
    }
    /// The validity mask: the column that says which rows have a value. None: all have.
    pub fn mask(&self) -> Option<ColumnId> {
        match self {
            Epilogue::Fold(fold) => fold.mask,
            Epilogue::Compaction(compaction) => Some(compaction.mask),
        }
    }
    pub fn element(&self) -> Element {
        match self {
            Epilogue::Fold(fold) => fold.element,
            Epilogue::Compaction(compaction) => compaction.element,
        }
    }
    /// The columns that the kernel does not store.
    pub fn columns(&self) -> impl Iterator<Item = ColumnId> {
        [self.column()].into_iter().chain(self.mask())
    }
    /// The fold, if the epilogue is one.
    pub fn fold(&self) -> Option<Fold> {
        match self {
            Epilogue::Fold(fold) => Some(*fold),
            Epilogue::Compaction(_) => None,
        }
    }
}

/// Stream compaction: of a column, the rows that a validity mask selects, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Compaction {
    pub column: ColumnId,
    pub mask: ColumnId,
    pub element: Element,
}

/// How a launch ended, and the selected rows when it is [`Outcome::Done`].
pub type Compacted = (Outcome, Option<HostColumn>);

impl Compaction {
    /// None for a column without a number type, when a row is not stored by its own job and once, and when the program
    /// does anything else.
    pub fn of(program: &Program, layout: &Layout, column: ColumnId, mask: ColumnId) -> Option<Self> {
        let element = Element::stored(program.columns.get(column.index())?.storage)?;
        let wanted = [column, mask];
        let fits = by_own_jobs(program, layout, &wanted) && does_nothing_else(program, &wanted);
        fits.then_some(Self { column, mask, element })
    }

    /// The result of a launch without jobs, for which no kernel runs.
    pub fn of_nothing(&self) -> Compacted {
        (Outcome::Done, Some(HostColumn::zeroed(self.element.storage(), 0)))
    }
}

/// Whether each row of these columns is stored once, by its own job, and never read. The order of jobs is that of rows.
pub(super) fn by_own_jobs(program: &Program, layout: &Layout, wanted: &[ColumnId]) -> bool {
    let filled = filled::filled(program);
    let whole = |column: &ColumnId| {
        program.columns[column.index()].space == Space::Element
            && filled[column.index()]
            && is_stored_by_entry_only(program, *column)
    };
    program.jobs == Jobs::Identity && !layout.is_shared() && wanted.iter().all(whole)
}

/// Whether a program only stores these columns, adds no pairs to groups, and draws no random numbers.
pub(super) fn does_nothing_else(program: &Program, wanted: &[ColumnId]) -> bool {
    let mut written = program.columns.iter().enumerate().filter(|(_, column)| column.written);
    !program.uses_random && !program.emits() && written.all(|(index, _)| wanted.contains(&ColumnId::new(index)))
}

fn is_stored_by_entry_only(program: &Program, wanted: ColumnId) -> bool {
    let mut only = true;
    for (index, func) in program.funcs.iter().enumerate() {
        walk(&func.body, &mut |stmt| match stmt {
            Stmt::Store { column, .. } if *column == wanted => only &= FuncId::new(index) == program.entry,
            Stmt::Load { column, .. } | Stmt::Atomic { column, .. } | Stmt::FetchAdd { column, .. } => {
                only &= *column != wanted;
            }
            _ => {}
        });
    }
    only
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::*;
    use crate::backend::cuda::CudaShim;
    use crate::backend::{Backend, CancelToken, Executable, Key, Launch, Timings};
    use crate::config::CodeOptions;
    use crate::ir::build::Builder;
    use crate::ir::testing::{OVERFLOW, over_elements};
    use crate::ir::{CheckedOp, Cmp, Op, Operand, ParamId, Scalar, Storage};
    use std::sync::Arc;

    const INPUT: ColumnId = ColumnId(0);
    const OUTPUT: ColumnId = ColumnId(1);
    const MASK: ColumnId = ColumnId(2);
    const OTHER: ColumnId = ColumnId(3);

    /// `out = in + in`, checked, where `in` is above the parameter. `more` adds to the entry.
    fn twice(more: impl FnOnce(&mut Builder, Operand)) -> Program {
        let columns = [
            ("in", Storage::I64, true, false),
            ("out", Storage::I64, false, true),
            ("marks", Storage::U8, false, true),
            ("other", Storage::I64, false, false),
        ];
        over_elements(&columns, |b, job| {
            let x = b.load(Scalar::I64, INPUT, job);
            let least = b.i64(Op::Param(ParamId(0)), &[]);
            let there = b.icmp(Cmp::Gt, x, least);
            let twice = b.checked(CheckedOp::Add, x, x, OVERFLOW);
            b.store(OUTPUT, job, twice);
            b.store(MASK, job, there);
            more(b, job);
        })
    }

    fn compaction(program: &Program) -> Option<Compaction> {
        Compaction::of(program, &Layout::structure_of_arrays(program), OUTPUT, MASK)
    }

    struct Compacting {
        shim: CudaShim,
        compaction: Compaction,
        executable: Arc<dyn Executable>,
    }

    impl Compacting {
        fn new() -> Self {
            let shim = CudaShim::new().expect("a C++ compiler is installed");
            let program = twice(|_, _| ());
            let compaction = compaction(&program).expect("every element stores its own");
            let layout = Layout::structure_of_arrays(&program);
            let executable = shim.prepare_with_epilogue(
                &program,
                &layout,
                Epilogue::Compaction(compaction),
                &CodeOptions::default(),
            );
            let executable = executable.unwrap_or_else(|e| panic!("{e}"));
            Self { shim, compaction, executable }
        }

        fn launch(&self, input: &[i64], least: i64, limit: Key, cancel: &CancelToken) -> Compacted {
            let of = |storage, len| HostColumn::zeroed(storage, len);
            let mut columns =
                [of(Storage::I64, input.len()), of(Storage::I64, 0), of(Storage::U8, 0), of(Storage::I64, 0)];
            columns[0].view_mut().copy_from_slice(input);
            let (params, mut timings) = ([least as u64], Timings::default());
            let jobs = input.len() as u64;
            let launch = Launch { limit, ..Launch::of(jobs, &mut columns, &[0; 4], &params, cancel, &mut timings) };
            self.shim.launch_compaction(&*self.executable, self.compaction, launch).unwrap_or_else(|e| panic!("{e}"))
        }

        fn rows(&self, input: &[i64], least: i64) -> (Outcome, Option<Vec<i64>>) {
            let (outcome, rows) = self.launch(input, least, Key::NONE, &CancelToken::default());
            (outcome, rows.map(|rows| rows.view::<i64>().to_vec()))
        }
    }

    #[test]
    fn the_rows_that_there_are_stand_side_by_side_in_order() {
        let compacting = Compacting::new();
        assert!(compacting.executable.runs_epilogue());
        // none, fewer than a warp, around one row of a block, around a tile, more than a group of 32 tiles
        for n in [0, 1, 31, 256, 257, 4095, 4096, 4097, 32 * 4096 + 5, 7] {
            let input: Vec<i64> = (0..n).map(|i| i * 7919 % 1000).collect();
            for least in [-1, 3, 500, 998, 1000] {
                let expected = input.iter().filter(|x| **x > least).map(|x| x + x).collect();
                assert_eq!(compacting.rows(&input, least), (Outcome::Done, Some(expected)), "{n} over {least}");
            }
        }
    }

    #[test]
    fn a_launch_that_is_stopped_gives_no_rows_and_leaves_nothing_behind() {
        let compacting = Compacting::new();
        let mut input = vec![1; 50_000];
        (input[20_000], input[40_000]) = (i64::MAX, i64::MAX);
        let (outcome, rows) = compacting.rows(&input, 0);
        assert!(matches!(outcome, Outcome::Trapped(trap) if trap.key == Key::new(0, 20_000)), "{outcome:?}");
        assert_eq!(rows, None);
        let cancel = CancelToken::default();
        cancel.cancel();
        assert_eq!(compacting.launch(&input, 0, Key::NONE, &cancel), (Outcome::Cancelled, None));
        assert_eq!(compacting.rows(&[1; 9000], 0), (Outcome::Done, Some(vec![2; 9000])));
    }

    #[test]
    fn what_a_program_also_does_or_reads_is_not_compacted() {
        assert!(compaction(&twice(|_, _| ())).is_some());
        let mut program = twice(|b, job| b.store(OTHER, job, Operand::I64(1)));
        program.columns[OTHER.index()].written = true;
        assert_eq!(compaction(&program), None, "another column is written");
        let read = twice(|b, job| {
            b.load(Scalar::I64, OUTPUT, job);
        });
        assert_eq!(compaction(&read), None);
        assert_eq!(compaction(&Program { jobs: Jobs::Reordered, ..twice(|_, _| ()) }), None);
        assert_eq!(compaction(&Program { uses_random: true, ..twice(|_, _| ()) }), None);
    }
}
