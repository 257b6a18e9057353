//! Chooses how a stencil gets the values of the stage before it, by the cost of each strategy for a chain of stencils.
//!
//! Here: [`choose`], the one place of that decision, which works on the program that the compiler made of the chain.
//! Not here: what a stage is ([`crate::ir::stages`]), how a kernel shares values ([`crate::backend::cuda`]), and the
//! code that splits a chain (the bridge's Ruby).
//!
//! A cost is that of one element, in simple operations. It only reflects that some operations take far longer than
//! others.

use crate::ir::stages::{self, Reach};
use crate::ir::{ColumnId, FuncId, MathFn, Op, Program, Stmt};
use std::fmt;

/// The cost of a value that one kernel stores and the next one loads.
const MEMORY: f64 = 48.0;
/// `SHARED` is the cost of a value that is read from shared memory. `FILLING` is the cost of filling it, for each
/// element, beside the values: positions, the store, the barrier. In several dimensions positions need divisions.
/// Measured on an H200, with crosses of 4096² and stars of 256³ elements: with these numbers the predicted and measured
/// times of the three ways lie on one line.
const SHARED: f64 = 2.0;
const FILLING: f64 = 8.0;
const FILLING_OF_SEVERAL: f64 = 128.0;
/// The assumed repetitions of a loop whose number is unknown.
const ROUNDS: f64 = 8.0;
/// Tiles: the elements that a block of threads computes together, by dimensions. Larger ones come first.
const TILES: &[&[u32]] = &[
    &[2048],
    &[1024],
    &[512],
    &[256],
    &[32, 64],
    &[32, 32],
    &[16, 32],
    &[8, 32],
    &[8, 16, 32],
    &[8, 8, 32],
    &[4, 8, 32],
    &[4, 4, 32],
    &[2, 4, 32],
];

/// How a stencil gets the values of the stage before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Each thread computes each value that it needs.
    Recompute,
    /// A block of threads computes all values that it needs, in shared memory.
    Shared,
    /// An earlier kernel computes all values.
    Separate,
}

/// The choice for one stencil, and the cost of each strategy. None: that is not possible.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub strategy: Strategy,
    /// How many values one element reads.
    pub neighbours: usize,
    pub anew: f64,
    /// Whether a value may be computed several times. If not, an earlier kernel computes each value once, as Ruby does,
    /// where that is possible.
    pub repeats: bool,
    pub shared: Option<f64>,
    pub apart: Option<f64>,
    pub tile: Vec<u32>,
    /// Bytes of shared memory.
    pub bytes: u64,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.strategy {
            Strategy::Recompute if self.neighbours == 1 => {
                f.write_str("stencil runs the blocks before it once for each element")?
            }
            Strategy::Recompute => {
                write!(f, "stencil runs the blocks before it {} times for each element", self.neighbours)?
            }
            Strategy::Shared => {
                let tile: Vec<String> = self.tile.iter().map(ToString::to_string).collect();
                let (tile, bytes) = (tile.join(" x "), self.bytes);
                write!(
                    f,
                    "stencil shares what the blocks before it give among {tile} elements, in {bytes} bytes of shared memory"
                )?;
            }
            Strategy::Separate => f.write_str("stencil looks at what another kernel has computed")?,
        }
        match self.repeats {
            true => write!(f, " (operations for each element: {:.0} to run them anew", self.anew)?,
            false => f.write_str(" (operations for each element: they change or draw something, and run once")?,
        }
        match self.shared {
            Some(cost) => write!(f, ", {cost:.0} to share them")?,
            None => f.write_str(", they cannot be shared")?,
        }
        match self.apart {
            Some(cost) => write!(f, ", {cost:.0} in a kernel before)"),
            None => f.write_str(")"),
        }
    }
}

/// What is available: the machine's shared memory, and the host's permission for another kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Resources {
    /// Bytes of shared memory of a block; 0: none.
    pub shared_memory: u64,
    /// Whether an earlier kernel may compute the values.
    pub apart: bool,
    /// The strategy to take whenever it is possible, whatever it costs. It serves measurements.
    pub wanted: Option<Strategy>,
}

/// Chooses for each stencil of a program, the first of the chain first. `overwritten`: columns that the program changes
/// and did not make.
pub fn choose(program: &Program, overwritten: &[ColumnId], resources: Resources) -> Vec<Choice> {
    let reaches = stages::reaches(program);
    // Goes from the last stage to the first. A function that recomputes its values knows no positions, so it cannot
    // read shared values. So all readers of a shared stage must be shared, too.
    let mut shareable = vec![false; reaches.len()];
    for at in (0..reaches.len()).rev() {
        let mut asking =
            (at + 1..reaches.len()).filter(|other| calls(program, reaches[*other].func, reaches[at].func) > 0);
        let known = asking.all(|other| shareable[other]);
        shareable[at] = known && reaches[at].fixed && stages::may_be_shared(program, reaches[at].func);
    }
    let tile = tile(program, &reaches, &shareable, resources.shared_memory);
    let mut choices: Vec<Choice> = Vec::new();
    for (at, reach) in reaches.iter().enumerate() {
        let consumer = reaches[at + 1..].iter().find(|other| calls(program, other.func, reach.func) > 0);
        let neighbours = calls(program, consumer.map_or(program.entry, |other| other.func), reach.func);
        let before = reaches[..at].iter().zip(&choices);
        let before: f64 =
            before.filter(|(other, _)| calls(program, reach.func, other.func) > 0).map(|(_, c)| c.cost()).sum();
        let value = work(program, reach.func) + before;
        let shared = tile.as_ref().filter(|_| shareable[at]).map(|tile| {
            let own = consumer.map_or_else(|| tile.iter().map(|side| u64::from(*side)).product(), |c| c.cells(tile));
            let filling = if tile.len() > 1 { FILLING_OF_SEVERAL } else { FILLING };
            value * reach.cells(tile) as f64 / own as f64 + filling + SHARED * neighbours as f64
        });
        let (anew, apart) = (value * neighbours as f64, resources.apart.then_some(value + MEMORY));
        let repeats = stages::may_be_repeated(program, reach.func, overwritten);
        let mut choice = Choice {
            strategy: Strategy::Recompute,
            neighbours,
            anew,
            repeats,
            shared,
            apart,
            tile: Vec::new(),
            bytes: 0,
        };
        let may =
            |way: &Strategy| choice.of(*way).is_some() && (repeats || *way == Strategy::Separate || !resources.apart);
        let strategies = [Strategy::Recompute, Strategy::Shared, Strategy::Separate].into_iter().filter(may);
        let cheapest =
            strategies.min_by(|a, b| choice.of(*a).unwrap_or(f64::MAX).total_cmp(&choice.of(*b).unwrap_or(f64::MAX)));
        choice.strategy = resources.wanted.filter(may).or(cheapest).unwrap_or(Strategy::Recompute);
        choices.push(choice);
    }
    for at in 0..choices.len() {
        let asks = |before: usize| calls(program, reaches[at].func, reaches[before].func) > 0;
        if choices[at].strategy == Strategy::Recompute
            && (0..at).any(|before| choices[before].strategy == Strategy::Shared && asks(before))
        {
            choices[at].strategy = Strategy::Shared;
        }
    }
    for (choice, reach) in choices.iter_mut().zip(&reaches) {
        if let (Strategy::Shared, Some(tile)) = (choice.strategy, &tile) {
            choice.bytes = bytes(program, reach, tile);
            choice.tile.clone_from(tile);
        }
    }
    choices
}

/// Applies the choices to the stages of a program.
pub fn follow(program: &mut Program, choices: &[Choice]) {
    let reaches = stages::reaches(program);
    for (reach, choice) in reaches.iter().zip(choices) {
        let stage = &mut program.funcs[reach.func.index()].stage;
        match choice.strategy {
            Strategy::Shared => stage.iter_mut().for_each(|stage| stage.tile.clone_from(&choice.tile)),
            Strategy::Recompute | Strategy::Separate => *stage = None,
        }
    }
}

impl Choice {
    fn of(&self, strategy: Strategy) -> Option<f64> {
        match strategy {
            Strategy::Recompute => Some(self.anew),
            Strategy::Shared => self.shared,
            Strategy::Separate => self.apart,
        }
    }
    fn cost(&self) -> f64 {
        self.of(self.strategy).unwrap_or(self.anew)
    }
}

/// The largest tile for which all shared values fit.
fn tile(program: &Program, reaches: &[Reach], shareable: &[bool], most: u64) -> Option<Vec<u32>> {
    let wanted: Vec<&Reach> =
        reaches.iter().zip(shareable).filter(|(_, shareable)| **shareable).map(|(r, _)| r).collect();
    let dimensions = wanted.first()?.least.len();
    let fits = |tile: &&&[u32]| {
        tile.len() == dimensions
            && wanted.iter().all(|reach| reach.least.len() == dimensions)
            && wanted.iter().map(|reach| bytes(program, reach, tile)).fold(0, u64::saturating_add) <= most
    };
    TILES.iter().find(fits).map(|tile| tile.to_vec())
}

fn bytes(program: &Program, reach: &Reach, tile: &[u32]) -> u64 {
    // each value takes a word, whatever its kind
    reach.cells(tile).saturating_mul(8 * program.funcs[reach.func.index()].results.len() as u64)
}

/// How many calls of `callee` there are in `caller`. The test of a loop may be there twice: once before the first
/// repetition.
fn calls(program: &Program, caller: FuncId, callee: FuncId) -> usize {
    fn most(body: &[Stmt], callee: FuncId) -> (usize, usize) {
        let (mut here, mut within) = (0, 0);
        for stmt in body {
            here += usize::from(matches!(stmt, Stmt::Call { func, .. } if *func == callee));
            for (own, loops) in stmt.bodies().into_iter().map(|body| most(body, callee)) {
                let own_is_round = matches!(stmt, Stmt::Loop { .. });
                here += if own_is_round { 0 } else { own };
                within = within.max(loops).max(if own_is_round { own } else { 0 });
            }
        }
        (here, within)
    }
    let (here, within) = most(&program.funcs[caller.index()].body, callee);
    here.max(within)
}

/// The cost of a run of a function, without the stages that it calls.
fn work(program: &Program, func: FuncId) -> f64 {
    program.funcs[func.index()].body.iter().map(|stmt| cost(program, stmt)).sum()
}

fn cost(program: &Program, stmt: &Stmt) -> f64 {
    let all = |body: &[Stmt]| -> f64 { body.iter().map(|stmt| cost(program, stmt)).sum() };
    match stmt {
        Stmt::Let { op, .. } => match op {
            Op::Copy | Op::Param(_) => 0.0,
            Op::Div | Op::Rem | Op::UDiv | Op::URem | Op::FDiv | Op::FSqrt | Op::FRem | Op::Random => 10.0,
            Op::Math(MathFn::Pow) => 60.0,
            Op::MulMod | Op::AddMod | Op::Math(_) => 30.0,
            _ => 1.0,
        },
        Stmt::Checked { .. } => 2.0,
        Stmt::Load { .. } | Stmt::Store { .. } | Stmt::FetchAdd { .. } | Stmt::Atomic { .. } | Stmt::Alloc { .. } => {
            4.0
        }
        Stmt::If { then, otherwise, .. } => 1.0 + all(then) + all(otherwise),
        Stmt::Block { body, .. } | Stmt::Try { body, .. } => all(body),
        Stmt::Loop { body, .. } => ROUNDS * all(body),
        Stmt::Call { func, .. } if program.funcs[func.index()].stage.is_some() => 0.0,
        Stmt::Call { func, depth: None, .. } => 2.0 + work(program, *func),
        Stmt::Call { depth: Some(_), .. } => ROUNDS * 10.0,
        _ => 0.0,
    }
}

#[cfg(all(test, feature = "cuda"))]
mod tests {
    use super::*;
    use crate::backend::collective::reduce::Reduction;
    use crate::backend::cuda::emit::SHARED_MEMORY;
    use crate::backend::cuda::{CudaShim, emit};
    use crate::backend::epilogue::Epilogue;
    use crate::backend::fold::Fold;
    use crate::backend::reference::ReferenceBackend;
    use crate::backend::{Backend, CancelToken, Key, Launch, Outcome, Timings};
    use crate::config::CodeOptions;
    use crate::ir::build::Builder;
    use crate::ir::stages::Stage;
    use crate::ir::testing::{INPUT, INTS, OVERFLOW, ZERO, shell};
    use crate::ir::{Cmp, Func, Operand, ParamId, Scalar, SiteId};
    use crate::layout::Layout;
    use crate::memory::column::HostColumn;
    use std::sync::Arc;

    const SIZE: ParamId = ParamId(0);
    const SHIM: Resources = Resources { shared_memory: SHARED_MEMORY, apart: true, wanted: None };

    /// `100 / in[i]`, repeated `dear` times and once more.
    fn producer(dear: usize) -> Func {
        let mut b = Builder::new("producer".into(), vec![Scalar::I64]);
        let position = Operand::Var(b.param(Scalar::I64, Some("i".into())));
        b.param(Scalar::I64, Some("away".into()));
        let x = b.load(Scalar::I64, INPUT, position);
        let zero = b.icmp(Cmp::Eq, x, Operand::I64(0));
        b.trap_if(zero, ZERO, vec![]);
        let mut y = b.i64(Op::Div, &[Operand::I64(100), x]);
        for _ in 0..dear {
            y = b.i64(Op::Div, &[y, x]);
        }
        b.push(Stmt::Return(vec![y]));
        Func { stage: Some(Stage { sizes: vec![SIZE], ..Stage::default() }), ..b.finish() }
    }

    /// `ints[i] = in range ? f1(i - 2) + 3 * f1(i + 1) : -7`, where `away` is the second distance.
    fn stencil(producer: Func, away: i64) -> Program {
        let mut b = Builder::new("entry".into(), Vec::new());
        let [job, first, _] = ["job", "first", "last"].map(|name| b.param(Scalar::I64, Some(name.into())));
        b.push(Stmt::Begin { index: job.into(), tick: first.into(), check: true });
        let at = |b: &mut Builder, away: i64| b.i64(Op::Add, &[job.into(), Operand::I64(away)]);
        let (low, high) = (at(&mut b, -2), at(&mut b, 1));
        let size = b.i64(Op::Param(SIZE), &[]);
        let (below, beyond) = (b.icmp(Cmp::Lt, low, Operand::I64(0)), b.icmp(Cmp::Ge, high, size));
        let outside = b.bool(Op::Or, &[below, beyond]);
        b.branch(
            outside,
            |b| b.store(INTS, job.into(), Operand::I64(-7)),
            |b| {
                let one = b.call(FuncId(1), vec![low, Operand::I64(-2)], &[Scalar::I64], None)[0];
                let other = b.call(FuncId(1), vec![high, Operand::I64(away)], &[Scalar::I64], None)[0];
                let three = b.i64(Op::Mul, &[other, Operand::I64(3)]);
                let sum = b.i64(Op::Add, &[one, three]);
                b.store(INTS, job.into(), sum);
            },
        );
        let mut program = shell(vec![b.finish(), producer]);
        for (at, column) in program.columns.iter_mut().enumerate() {
            (column.read, column.written) = (at == INPUT.index(), at == INTS.index());
        }
        program
    }

    /// `in range ? the sum of f(i + …) : -7`, for a function of the chain.
    fn asking(of: FuncId, away: &[i64]) -> Func {
        let mut b = Builder::new("asking".into(), vec![Scalar::I64]);
        let position = b.param(Scalar::I64, Some("i".into()));
        b.param(Scalar::I64, Some("away".into()));
        let size = b.i64(Op::Param(SIZE), &[]);
        let sum = b.temp(Scalar::I64);
        b.set(sum, Operand::I64(0));
        for &away in away {
            let at = b.i64(Op::Add, &[position.into(), Operand::I64(away)]);
            let (below, beyond) = (b.icmp(Cmp::Lt, at, Operand::I64(0)), b.icmp(Cmp::Ge, at, size));
            let outside = b.bool(Op::Or, &[below, beyond]);
            b.when(outside, |b| b.push(Stmt::Return(vec![Operand::I64(-7)])));
            let value = b.call(of, vec![at, Operand::I64(away)], &[Scalar::I64], None)[0];
            let more = b.i64(Op::Add, &[sum.into(), value]);
            b.set(sum, more);
        }
        b.push(Stmt::Return(vec![sum.into()]));
        Func { stage: Some(Stage { sizes: vec![SIZE], ..Stage::default() }), ..b.finish() }
    }

    /// The result of a launch, and the results' column after it.
    fn launched<T>(program: &Program, input: &[i64], launch: impl FnOnce(Launch<'_>) -> T) -> (T, Vec<i64>) {
        let mut columns: Vec<HostColumn> =
            program.columns.iter().map(|column| HostColumn::zeroed(column.storage, input.len())).collect();
        columns[INPUT.index()].view_mut().copy_from_slice(input);
        let (cancel, mut timings) = (CancelToken::default(), Timings::default());
        let params = [input.len() as u64, 0, 0, 0];
        let answer = launch(Launch::of(params[0], &mut columns, &[0; 6], &params, &cancel, &mut timings));
        (answer, columns[INTS.index()].view().to_vec())
    }

    fn run(machine: &dyn Backend, program: &Program, input: &[i64]) -> Result<Vec<i64>, (Key, SiteId)> {
        let layout = Layout::structure_of_arrays(program);
        let executable = machine.prepare(program, &layout, &CodeOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let (outcome, ints) = launched(program, input, |launch| machine.launch(&*executable, launch));
        match outcome.unwrap_or_else(|e| panic!("{e}")) {
            Outcome::Done => Ok(ints),
            Outcome::Trapped(record) => Err((record.key, record.site)),
            Outcome::Cancelled => panic!("nobody cancels"),
        }
    }

    fn shared(mut program: Program) -> Program {
        let choices = choose(&program, &[], Resources { wanted: Some(Strategy::Shared), ..SHIM });
        assert_eq!(choices.iter().map(|choice| choice.strategy).collect::<Vec<_>>(), [Strategy::Shared]);
        follow(&mut program, &choices);
        program
    }

    #[test]
    fn what_is_shared_is_what_each_element_computes_anew() {
        let (anew, shared) = (stencil(producer(0), 1), shared(stencil(producer(0), 1)));
        let shim = CudaShim::new().expect("a C++ compiler is installed");
        for size in [1, 2, 3, 4, 31, 32, 33, 1000, 2047, 2048, 2049, 7000] {
            let input: Vec<i64> = (0..size).map(|i| i % 97 + 1).collect();
            let expected = run(&ReferenceBackend::default(), &anew, &input);
            assert!(expected.is_ok());
            assert_eq!(run(&shim, &shared, &input), expected, "{size} elements");
        }
    }

    #[test]
    fn who_asks_for_what_is_shared_shares_too() {
        // each stage is read once, so the two stages in between would be computed anew
        let chain = || {
            let mut program = stencil(asking(FuncId(2), &[0]), 1);
            program.funcs.extend([asking(FuncId(3), &[0]), asking(FuncId(4), &[-1, 1]), producer(40)]);
            program
        };
        let ways =
            |program: &Program| choose(program, &[], SHIM).iter().map(|choice| choice.strategy).collect::<Vec<_>>();
        assert_eq!(ways(&chain()), [Strategy::Shared; 4]);
        let mut program = chain();
        let choices = choose(&program, &[], SHIM);
        follow(&mut program, &choices);
        let input: Vec<i64> = (0..5000).map(|i| i % 97 + 1).collect();
        let shim = CudaShim::new().expect("a C++ compiler is installed");
        assert_eq!(run(&shim, &program, &input), run(&ReferenceBackend::default(), &chain(), &input));
        // with a stage in between that cannot share
        let mut program = chain();
        let draw = Stmt::Let { dst: crate::ir::VarId(0), op: Op::Random, args: vec![] };
        program.funcs[1].body.insert(0, draw);
        let choices = choose(&program, &[], SHIM);
        assert!(choices.iter().all(|choice| choice.shared.is_none()), "{choices:?}");
        // only computing the values of this stage again would draw random numbers again
        assert_eq!(choices.iter().map(|choice| choice.repeats).collect::<Vec<_>>(), [true, true, true, false]);
        assert_eq!(choices[3].strategy, Strategy::Separate);
    }

    #[test]
    fn what_raises_in_a_stage_is_told_by_the_first_element_that_asks_for_it() {
        let (anew, shared) = (stencil(producer(0), 1), shared(stencil(producer(0), 1)));
        let shim = CudaShim::new().expect("a C++ compiler is installed");
        for zeros in [&[0][..], &[2], &[2047], &[2048], &[2050, 4096], &[6999], &[6998]] {
            let mut input = vec![5; 7000];
            zeros.iter().for_each(|at| input[*at] = 0);
            let expected = run(&ReferenceBackend::default(), &anew, &input);
            assert_eq!(run(&shim, &shared, &input), expected, "{zeros:?}");
        }
        // with four elements, only one reads values, those of the first and the last; a value that is not read raises
        // nothing
        for at in 0..4 {
            let mut input = vec![5; 4];
            input[at] = 0;
            let expected = run(&ReferenceBackend::default(), &anew, &input);
            assert_eq!(expected.is_ok(), [1, 2].contains(&at));
            assert_eq!(run(&shim, &shared, &input), expected);
        }
    }

    #[test]
    fn elements_that_share_values_are_reduced_in_the_order_of_all_others() {
        let (anew, shared) = (stencil(producer(0), 1), shared(stencil(producer(0), 1)));
        let shim = CudaShim::new().expect("a C++ compiler is installed");
        let backends: [(&dyn Backend, &Program); 2] = [(&ReferenceBackend::default(), &anew), (&shim, &shared)];
        for reduction in [Reduction::Sum, Reduction::MinMax, Reduction::Count] {
            let of = |program| {
                let layout = Layout::structure_of_arrays(program);
                (Fold::of(program, &layout, INTS, None, reduction, true, &[]).expect("nothing else is stored"), layout)
            };
            let [reference, device] = backends.map(|(machine, program)| {
                let (fold, layout) = of(program);
                let kernel =
                    machine.prepare_with_epilogue(program, &layout, Epilogue::Fold(fold), &CodeOptions::default());
                let kernel = kernel.unwrap_or_else(|e| panic!("{e}"));
                move |input: &[i64]| {
                    let reduce = |launch: Launch<'_>| machine.launch_fold(&*kernel, fold, launch);
                    let answer = launched(program, input, reduce).0.unwrap_or_else(|e| panic!("{e}"));
                    (kernel.runs_epilogue(), answer)
                }
            });
            for size in [1, 257, 2048, 8191, 8192, 8195, 30_000] {
                let mut input: Vec<i64> = (0..size).map(|i| i % 97 + 1).collect();
                let answer = device(&input);
                assert!(answer.0);
                assert_eq!(answer.1, reference(&input).1, "{size} elements");
                input[size as usize / 2] = 0;
                assert_eq!(device(&input).1, reference(&input).1, "{size} elements, of which one raises");
            }
        }
    }

    #[test]
    fn the_cheapest_way_is_taken_and_told() {
        let way = |dear, resources| {
            let choices = choose(&stencil(producer(dear), 1), &[], resources);
            (choices[0].strategy, choices[0].to_string())
        };
        let (cpu, alone) =
            (Resources { shared_memory: 0, ..SHIM }, Resources { apart: false, shared_memory: 0, ..SHIM });
        insta::assert_snapshot!(way(0, SHIM).1, @"stencil shares what the blocks before it give among 2048 elements, in 16408 bytes of shared memory (operations for each element: 32 to run them anew, 28 to share them, 64 in a kernel before)");
        insta::assert_snapshot!(way(0, cpu).1, @"stencil runs the blocks before it 2 times for each element (operations for each element: 32 to run them anew, they cannot be shared, 64 in a kernel before)");
        insta::assert_snapshot!(way(4, cpu).1, @"stencil looks at what another kernel has computed (operations for each element: 112 to run them anew, they cannot be shared, 104 in a kernel before)");
        assert_eq!(way(4, SHIM).0, Strategy::Shared);
        assert_eq!(way(4, alone).0, Strategy::Recompute);
        assert_eq!(way(0, Resources { wanted: Some(Strategy::Separate), ..SHIM }).0, Strategy::Separate);
    }

    #[test]
    fn what_depends_on_who_asks_is_not_shared() {
        let cannot = |change: &dyn Fn(&mut Program)| {
            let mut program = stencil(producer(4), 1);
            change(&mut program);
            assert_eq!(choose(&program, &[], SHIM)[0].shared, None);
        };
        cannot(&|program| program.columns[INPUT.index()].written = true);
        cannot(&|program| program.jobs = crate::ir::Jobs::Reordered);
        let with = |stmt: Stmt| move |program: &mut Program| program.funcs[1].body.insert(0, stmt.clone());
        let dst = crate::ir::VarId(0);
        cannot(&with(Stmt::Let { dst, op: Op::Ctx(crate::ir::Ctx::Index), args: vec![] }));
        cannot(&with(Stmt::Let { dst, op: Op::Random, args: vec![] }));
        cannot(&with(Stmt::Store { column: INTS, row: Operand::I64(0), value: Operand::I64(0) }));
        cannot(&with(Stmt::Atomic {
            op: crate::ir::AtomicOp::Add,
            column: INTS,
            row: Operand::I64(0),
            value: Operand::I64(0),
            site: Some(OVERFLOW),
        }));
        // a distance that is not constant
        cannot(&|program| {
            crate::ir::visit::walk_mut(&mut program.funcs[0].body, &mut |stmt| {
                if let Stmt::Call { args, .. } = stmt {
                    args[1] = args[0];
                }
            });
        });
        // a distance for which shared memory is too small
        for away in [1 << 20, i64::MAX] {
            assert_eq!(choose(&stencil(producer(4), away), &[], SHIM)[0].shared, None);
        }
        // beside the shared memory that a kernel uses itself
        let wide =
            choose(&stencil(producer(4), 4094), &[], Resources { wanted: Some(Strategy::Shared), ..SHIM }).remove(0);
        assert!(wide.strategy == Strategy::Shared && wide.bytes < 48 << 10, "{wide:?}");
    }

    #[test]
    fn blocks_fill_what_they_share_then_run_their_elements() {
        let program = shared(stencil(producer(0), 1));
        let emitted = emit::emit(&program, &Layout::structure_of_arrays(&program), "kernel");
        assert_eq!(emitted.tile, 2048);
        let text = &emitted.body[emitted.body.find("__shared__").expect("there is shared memory")..];
        insta::assert_snapshot!(text, @r#"
        __shared__ i64 f1_producer_cells[2051];

        static __device__ __forceinline__ bool f1_producer_sharing(const Args &args, Ctx &ctx, i64 i_0, i64 away_1, i64 &result0, i32 c0) {
          const i64 v2 = __ldg(&args.c0_in[i_0]);
          if (v2 == 0) {
            trap(ctx, 3);  // test.rb:1: divided by 0
            return true;
          }
          result0 = i64(100) / v2;
          return false;
        }

        static __device__ __forceinline__ bool f0_entry_sharing(const Args &args, Ctx &ctx, i64 job_0, i64 first_1, i64 last_2, i32 c0) {
          if (begin_checked(ctx, job_0, first_1)) return true;
          const i64 v3 = add(job_0, -2);
          const i64 v4 = add(job_0, 1);
          if ((v3 < 0) || (v4 >= args.p0_n)) {
            args.c2_ints[job_0] = -7;
          } else {
            i64 v9;
            v9 = f1_producer_cells[c0 + 0];
            i64 v10;
            v10 = f1_producer_cells[c0 + 3];
            args.c2_ints[job_0] = add(v9, mul(v10, 3));
          }
          return false;
        }

        extern "C" __global__ void __launch_bounds__(512) kernel(__grid_constant__ const Args args) {
          __shared__ bool over, raised;
          const i64 first = 0;
          const i64 size0 = i64(args.launch.jobs);
          const u64 tiles = u64((size0 + 2048 - 1) / 2048);
          for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            u64 rest = tile;
            const i64 from0 = first + i64(rest) * 2048;
            if (threadIdx.x == 0) over = false, raised = false;
            __syncthreads();
            if (over) return;
            bool shares = true;
            for (u32 cell = threadIdx.x; shares && cell < 2051; cell += blockDim.x) {
              const i32 c0 = i32(cell) + -2;
              const i64 at0 = from0 + c0;
              if (at0 < 0 || at0 >= args.p0_n) continue;
              Ctx ctx = {args.launch, 0xffffffffu, 0xfffffffeu, 0, 0, 0, NO_SITE};
              i64 value;
              if (f1_producer_sharing(args, ctx, at0, 0, value, c0)) raised = true;
              else f1_producer_cells[cell] = value;
            }
            __syncthreads();
            shares = shares && !raised;
            for (u32 cell = threadIdx.x; cell < 2048; cell += blockDim.x) {
              const i32 c0 = i32(cell) + 0;
              const i64 at0 = from0 + c0;
              const i64 job = at0 - first;
              if (job < 0 || job >= i64(args.launch.jobs)) continue;
              Ctx ctx = {args.launch, 0, 0, 0, 0, 0, NO_SITE};
              if (shares ? f0_entry_sharing(args, ctx, job, args.launch.tick_begin, args.launch.tick_end, c0) : f0_entry(args, ctx, job, args.launch.tick_begin, args.launch.tick_end)) ended(ctx);
            }
            __syncthreads();
          }
        }
        "#);
        let _: Arc<dyn crate::backend::Executable> = CudaShim::new()
            .expect("a C++ compiler is installed")
            .prepare(&program, &Layout::structure_of_arrays(&program), &CodeOptions::default())
            .expect("it compiles");
    }
}
