//! Small programs for unit tests: a fixed set of columns, parameters and sites, and an entry whose body the test
//! writes.
//!
//! | | |
//! | --- | --- |
//! | `c0` | I64 column `in`, one row per element |
//! | `c1` | F64 column `out` |
//! | `c2` | I64 column `ints` |
//! | `c3` | U8 column `tags` |
//! | `c4` | U32 column `refs` |
//! | `c5` | F64 column of objects, `Car@speed` |
//! | `p0..p3` | `n` I64, `x` F64, `flag` Bool, `small` I32 |
//! | `s0` | overflow of `*` |
//! | `s1` | a FloatDomain with one Integer |
//! | `s2` | SystemStackError |
//! | `s3` | ZeroDivisionError |

use super::build::Builder;
use super::{
    Cmp, Column, ColumnId, Ctx, Func, FuncId, Heap, HeapId, Jobs, LabelId, Op, Operand, Param, ParamId, Program,
    Scalar, Site, SiteId, Space, Stmt, Storage, Trap, VarId,
};
use crate::id::ArrayKind;
use crate::types::Repr;

pub const INPUT: ColumnId = ColumnId(0);
pub const OUT: ColumnId = ColumnId(1);
pub const INTS: ColumnId = ColumnId(2);
pub const TAGS: ColumnId = ColumnId(3);
pub const REFS: ColumnId = ColumnId(4);
pub const SPEED: ColumnId = ColumnId(5);
pub const OVERFLOW: SiteId = SiteId(0);
pub const DOMAIN: SiteId = SiteId(1);
pub const STACK: SiteId = SiteId(2);
pub const ZERO: SiteId = SiteId(3);

/// A program of one function, which is given the element's index.
pub fn program(body: impl FnOnce(&mut Builder, Operand)) -> Program {
    with_functions(Vec::new(), body)
}

/// As [`program`], with functions that the entry may call: the first is `f1`.
pub fn with_functions(functions: Vec<Func>, body: impl FnOnce(&mut Builder, Operand)) -> Program {
    let mut b = Builder::new("entry".into(), Vec::new());
    let job = b.param(Scalar::I64, Some("job".into()));
    let first = b.param(Scalar::I64, Some("first".into()));
    b.param(Scalar::I64, Some("last".into()));
    b.push(Stmt::Begin { index: job.into(), tick: first.into(), check: true });
    let index = b.i64(Op::Ctx(Ctx::Index), &[]);
    body(&mut b, index);
    shell(std::iter::once(b.finish()).chain(functions).collect())
}

/// `begin; body; i += step; end while i < end`, the form into which [`crate::passes`] bring loops. `body` is given the
/// label that leaves the loop.
pub fn turned(
    b: &mut Builder,
    (i, step, end): (VarId, i64, Operand),
    polls: bool,
    body: impl FnOnce(&mut Builder, LabelId),
) {
    b.repeat(|b, done| {
        body(b, done);
        b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(step)] });
        if polls {
            b.push(Stmt::Poll);
        }
        let over = b.icmp(Cmp::Ge, i.into(), end);
        b.when(over, |b| b.push(Stmt::Break(done)));
    });
}

/// Adds heaps to a program: `h0`, of cars (class 1 of `Car@speed`'s hierarchy), and `h1`, scratch, of arrays of kind 0.
/// Their counters are `c6` and `c7`, their parameters `p4..p7` and their sites `s4` and `s5`.
pub fn heaps(program: &mut Program) {
    let cars = Space::Class { hierarchy: 0, first: 1, last: 1 };
    for (i, space) in [cars, Space::Array(ArrayKind(0))].into_iter().enumerate() {
        let (scratch, id) = (i == 1, HeapId::new(i));
        let param = |name: &str| Param::new(format!("{name}{i}"), Scalar::I64);
        program.heaps.push(Heap {
            space,
            scratch,
            start: ParamId::new(program.params.len()),
            capacity: ParamId::new(program.params.len() + 1),
            taken: ColumnId::new(program.columns.len()),
        });
        program.params.extend([param("start"), param("capacity")]);
        program.columns.push(Column {
            name: format!("taken{i}"),
            space: if scratch { Space::Slot } else { Space::Single },
            storage: Storage::I64,
            refers: None,
            ranged: None,
            roundable: false,
            marks: None,
            read: true,
            written: true,
        });
        let operands = vec![Repr::Int];
        program.sites.push(Site { trap: Trap::Grow(id), path: "test.rb".into(), line: 1, operands });
    }
}

/// A program over columns of elements and an I64 parameter `n`, whose entry is given the job. Its one site is
/// [`OVERFLOW`].
///
/// `columns`: for each its name, its storage, whether it is read, and whether it is written.
pub fn over_elements(columns: &[(&str, Storage, bool, bool)], body: impl FnOnce(&mut Builder, Operand)) -> Program {
    let mut b = Builder::new("entry".into(), Vec::new());
    let [job, begin, _] = [(); 3].map(|()| b.param(Scalar::I64, None));
    b.push(Stmt::Begin { index: job.into(), tick: begin.into(), check: true });
    body(&mut b, job.into());
    let column = |&(name, storage, read, written): &(&str, Storage, bool, bool)| Column {
        name: name.into(),
        space: Space::Element,
        storage,
        refers: None,
        ranged: None,
        roundable: false,
        marks: None,
        read,
        written,
    };
    let mut program = shell(vec![b.finish()]);
    program.columns = columns.iter().map(column).collect();
    program.params.truncate(1);
    program.sites.truncate(1);
    program
}

/// A program of these functions, the first of which is the entry.
pub fn shell(funcs: Vec<Func>) -> Program {
    let column = |name: &str, space, storage| Column {
        name: name.into(),
        space,
        storage,
        refers: None,
        ranged: None,
        roundable: false,
        marks: None,
        read: true,
        written: true,
    };
    let param = |name: &str, ty| Param::new(name, ty);
    let site = |trap, operands| Site { trap, path: "test.rb".into(), line: 1, operands };
    Program {
        name: "test".into(),
        funcs,
        entry: FuncId(0),
        columns: vec![
            column("in", Space::Element, Storage::I64),
            column("out", Space::Element, Storage::F64),
            column("ints", Space::Element, Storage::I64),
            column("tags", Space::Element, Storage::U8),
            column("refs", Space::Element, Storage::U32),
            column("Car@speed", Space::Class { hierarchy: 0, first: 0, last: 2 }, Storage::F64),
        ],
        params: vec![
            param("n", Scalar::I64),
            param("x", Scalar::F64),
            param("flag", Scalar::Bool),
            param("small", Scalar::I32),
        ],
        heaps: Vec::new(),
        strides: Vec::new(),
        extents: Vec::new(),
        sites: vec![
            site(Trap::IntegerOverflow("*"), vec![]),
            site(Trap::FloatDomain, vec![Repr::Int]),
            site(Trap::StackOverflow, vec![]),
            site(Trap::ZeroDivision, vec![]),
        ],
        jobs: Jobs::Identity,
        few: false,
        fused_ticks: false,
        uses_random: false,
        rescued: Default::default(),
    }
}
