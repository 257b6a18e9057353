//! Tests of backends that privatize reductions ([`crate::ir::privatized`]).

use super::reference::ReferenceBackend;
use super::{Backend, CancelToken, Key, Launch, Outcome, Timings, TrapRecord};
use crate::config::CodeOptions;
use crate::ir::testing::{OVERFLOW, ZERO, program};
use crate::ir::{AtomicOp, Cmp, ColumnId, Operand, Program, Scalar, Space, Stmt, Storage};
use crate::layout::Layout;
use crate::memory::column::HostColumn;

pub const OPS: [AtomicOp; 7] =
    [AtomicOp::Add, AtomicOp::FAdd, AtomicOp::Min, AtomicOp::Max, AtomicOp::And, AtomicOp::Or, AtomicOp::Xor];
/// The id of the first row.
const FIRST: u64 = 11;

/// A test program: each element adds its value to the row of its id, and element `raises` divides by 0.
pub struct Case {
    pub op: AtomicOp,
    pub wraps: bool,
    pub values: Vec<i64>,
    pub ids: Vec<u32>,
    pub start: Vec<i64>,
    pub raises: i64,
    pub limit: Key,
}

impl Case {
    pub fn new(op: AtomicOp, start: Vec<i64>, values: Vec<i64>) -> Self {
        let ids = (0..values.len()).map(|i| (i * 7 % start.len()) as u32).collect();
        Self { op, wraps: false, values, ids, start, raises: -1, limit: Key::NONE }
    }

    fn program(&self) -> Program {
        let (storage, scalar) = match self.op {
            AtomicOp::FAdd => (Storage::F64, Scalar::F64),
            _ => (Storage::I64, Scalar::I64),
        };
        let site = (self.op == AtomicOp::Add && !self.wraps).then_some(OVERFLOW);
        let mut program = program(|b, index| {
            let value = b.load(scalar, ColumnId(0), index);
            let row = b.load(Scalar::I32, ColumnId(1), index);
            b.push(Stmt::Atomic { op: self.op, column: ColumnId(2), row, value, site });
            let raises = b.icmp(Cmp::Eq, index, Operand::I64(self.raises));
            b.trap_if(raises, ZERO, vec![]);
        });
        program.columns.truncate(3);
        for column in [0, 2] {
            program.columns[column].storage = storage;
        }
        program.columns[1].storage = Storage::U32;
        program.columns[2].space = Space::Class { hierarchy: 0, first: 0, last: 0 };
        program.params.clear();
        program
    }

    /// How the launch ended, and the final rows. Floats are converted to Integers.
    pub fn run(&self, machine: &dyn Backend) -> (Outcome, Vec<i64>) {
        let number = |x: &i64| if self.op == AtomicOp::FAdd { (*x as f64).to_bits() as i64 } else { *x };
        let program = self.program();
        let numbers = |numbers: &[i64]| {
            let mut column = HostColumn::zeroed(program.columns[0].storage, numbers.len());
            column.view_mut::<i64>().iter_mut().zip(numbers).for_each(|(row, x)| *row = number(x));
            column
        };
        let mut ids = HostColumn::zeroed(Storage::U32, self.ids.len());
        ids.view_mut::<u32>().iter_mut().zip(&self.ids).for_each(|(row, id)| *row = id + FIRST as u32);
        let mut columns = [numbers(&self.values), ids, numbers(&self.start)];
        let layout = Layout::structure_of_arrays(&program);
        let kernel = machine.prepare(&program, &layout, &CodeOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let (cancel, mut timings) = (CancelToken::default(), Timings::default());
        let jobs = self.values.len() as u64;
        let plain = Launch::of(jobs, &mut columns, &[0, 0, FIRST], &[], &cancel, &mut timings);
        let launch = Launch { limit: self.limit, ..plain };
        let outcome = machine.launch(&*kernel, launch).unwrap_or_else(|e| panic!("{e}"));
        let rows = columns[2].view::<i64>().iter();
        let number = |x: &i64| if self.op == AtomicOp::FAdd { f64::from_bits(*x as u64) as i64 } else { *x };
        (outcome, rows.map(number).collect())
    }
}

/// Checks a backend that privatizes reductions, with so many elements.
pub fn check(machine: &dyn Backend, elements: i64) {
    let reference = ReferenceBackend::default();
    let agrees = |case: &Case| assert_eq!(case.run(machine), case.run(&reference), "{:?}", case.op);
    // few rows, as many as a block may privatize, and too many
    for rows in [1, 7, 1000, 5000] {
        for op in OPS {
            let start = (0..rows).map(|row| row * 3 - 5).collect();
            let values = (0..elements).map(|i| (i * 7919 - 40_000) % 1_000_003);
            agrees(&Case::new(op, start, values.collect()));
        }
    }
    let quarter = 1i64 << 62;
    // partial sums leave 64 bits, the total does not
    for (start, value) in [(i64::MIN, quarter), (i64::MAX, -quarter)] {
        let values = (0..elements).map(|i| if i < 3 { value } else { i % 3 - 1 });
        agrees(&Case::new(AtomicOp::Add, vec![start], values.collect()));
    }
    // values with all bits and both signs
    let mixed = |i: i64| (i / 2).wrapping_mul(0x1e37_79b9_7f4a_7c15).wrapping_add(i / 2);
    let values = (0..elements / 2 * 2).map(|i| if i % 2 == 0 { mixed(i) } else { -mixed(i) });
    agrees(&Case { wraps: true, ..Case::new(AtomicOp::Add, vec![3, 4], values.clone().collect()) });
    let ids = (0..elements / 2 * 2).map(|i| (i / 2 % 2) as u32).collect();
    agrees(&Case { ids, ..Case::new(AtomicOp::Add, vec![3, 4], values.collect()) });
    // A sum that leaves 64 bits is reported for an element. A trap of an element goes before it.
    for (start, value) in [(i64::MAX - elements / 2, 1), (i64::MIN + elements / 2, -1), (0, i64::MAX / 2)] {
        let case = |raises| Case { raises, ..Case::new(AtomicOp::Add, vec![start], vec![value; elements as usize]) };
        let Outcome::Trapped(record) = case(-1).run(machine).0 else { panic!("it leaves 64 bits") };
        assert_eq!((record.site, record.words), (OVERFLOW, [0; 4]));
        assert!(record.key.tick() == 0 && (record.key.index() as i64) < elements, "{:?}", record.key);
        let raised = TrapRecord { key: Key::new(0, 1), site: ZERO, words: [0; 4] };
        assert_eq!(case(1).run(machine).0, Outcome::Trapped(raised));
    }
    // with a limit, only the elements before it count
    let limited = Case { limit: Key::new(0, 3), ..Case::new(AtomicOp::Add, vec![5, 6], (0..elements).collect()) };
    agrees(&limited);
}
