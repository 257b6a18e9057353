//! The passes that improve a program: ordered lists, and one file per pass.
//!
//! Here: the pipelines [`COMMON`], [`CUDA`], [`CPU`] and [`RACES`], and [`run`]. A pass is a name, a description and a
//! pure function from program to program. It logs nothing and keeps no state. Invariant: a pass changes no result, no
//! trap and no draw of `rand`. A pass may change when an element is stopped. (One exception: `demanded_bits` removes
//! overflows that Ruby would not notice.) `facts` is what passes share: knowledge about registers that follows control
//! flow.

mod algebra;
mod checks;
mod copies;
mod dce;
mod demanded_bits;
mod double_buffer;
mod expand;
mod facts;
mod floats;
mod gvn;
mod if_combine;
mod if_convert;
mod if_convert_sums;
mod inclusive_ends;
mod independent_ticks;
mod induction_steps;
mod inline;
pub mod jam;
mod jump_threading;
mod licm;
mod load_pipelining;
pub(crate) mod loops;
mod merge_checks;
mod narrow_floats;
mod near_remainders;
mod owned_sums;
mod partial_redundancy;
mod polls;
mod ranges;
mod register_promotion;
mod relations;
mod results;
mod rotate;
mod scalar_replacement;
mod single;
mod single_precision;
mod speculate_overflow;
mod strip_checks;
mod strip_mine;
pub mod team;
mod ticks;
mod uniform_stride;
mod unify_loop_exits;
mod unroll;
mod unwind;
mod whole;
mod widths;

use crate::error::{Error, Result};
use crate::ir::{Program, verify};
pub use double_buffer::{Bound, DoubleBuffered, double_buffer};
pub use independent_ticks::are_independent;
pub use single_precision::{is_single, single};
pub use speculate_overflow::{LoopVersions, is_quick, speculate_overflow};
pub use unify_loop_exits::is_turned;
pub use whole::whole;
pub use widths::{low, short};

/// One step from a program to a better one. `S` is what it changes: a [`Program`], or one with notes ([`Versioned`]).
pub struct Pass<S = Program> {
    /// Unlike that of any other pass. A pipeline may have the pass more than once.
    pub name: &'static str,
    pub description: &'static str,
    pub run: fn(S) -> S,
}

/// A program, and the loops that it has in two versions.
#[derive(Clone, Debug)]
pub struct Versioned {
    pub program: Program,
    pub versions: Vec<LoopVersions>,
}

impl From<Program> for Versioned {
    fn from(program: Program) -> Self {
        Self { program, versions: Vec::new() }
    }
}

impl AsRef<Program> for Program {
    fn as_ref(&self) -> &Program {
        self
    }
}

impl AsRef<Program> for Versioned {
    fn as_ref(&self) -> &Program {
        &self.program
    }
}

/// The passes of every program, in order.
pub const COMMON: &[Pass] = &[
    // It must see the source's arithmetic before anything moves, so that no other pass decides which overflow raises.
    demanded_bits::PASS,
    // The passes below know no exceptions.
    unwind::PASS,
    single::PASS,
    // Shrinks functions before `inline`, so that more of them are small enough to inline.
    gvn::PASS,
    dce::PASS,
    inline::PASS,
    gvn::PASS,
    dce::PASS,
    // Functions that inlined others have shrunk by now, so more of them can be inlined.
    inline::PASS,
    gvn::PASS,
    dce::PASS,
    // Before the passes over loops, so that these know which lengths all arrays share.
    uniform_stride::PASS,
    // Before `scalar_replacement`, which knows constant indices only.
    unroll::PASS,
    // Inlining shows which objects never leave a function.
    scalar_replacement::PASS,
    // Before `ranges`, which follows branches.
    jump_threading::PASS,
    // The constants of `ranges` settle branches, after which more values are equal.
    ranges::PASS,
    gvn::PASS,
    dce::PASS,
    // The form of loops that all passes below know.
    inclusive_ends::PASS,
    licm::PASS,
    // The branches are settled, so what is left in the loop over ticks is worth copying.
    ticks::PASS,
    rotate::PASS,
    // Loops are rotated now: a body begins with its work, not with its condition.
    licm::PASS,
    gvn::PASS,
    // Before fields are in registers: there, a value that was only loaded may be what is stored.
    narrow_floats::PASS,
    owned_sums::PASS,
    register_promotion::PASS,
    // So that a register that holds a field has the same number as the row that the field refers to.
    gvn::PASS,
    dce::PASS,
    partial_redundancy::PASS,
    gvn::PASS,
    dce::PASS,
    // After the fields that results depend on are in registers.
    results::PASS,
    // No pass from here on asks which branch is taken more rarely.
    if_convert::PASS,
    if_convert_sums::PASS,
    gvn::PASS,
    dce::PASS,
    // All redundant code is removed, and nothing moves any more.
    uniform_stride::ELEMENTS,
    checks::PASS,
    strip_mine::PASS,
    // Backends do not know `Alloc`.
    expand::PASS,
];

/// What a program needs in place of [`COMMON`] to run as lowering left it. The interpreter looks for races in the code
/// that the user wrote, and tests compare it with what passes made.
pub const RACES: &[Pass] = &[
    // No handler may catch an overflow that Ruby does not have.
    demanded_bits::BEFORE_HANDLERS,
    unwind::PASS,
    // Backends do not know `Alloc`.
    expand::PASS,
];

/// What the CPU backend adds.
pub const CPU: &[Pass] = &[
    // The backend moves no loads.
    uniform_stride::REFERENCES,
    // After `unroll` and `ranges`, by which constants are known.
    near_remainders::PASS,
];

/// What the CUDA backend adds, for processors that wait at loads and branches.
pub const CUDA: &[Pass<Versioned>] = &[
    // Sums whose overflow it rules out are nothing to speculate on.
    strip_checks::PASS,
    speculate_overflow::PASS,
    // Takes loads out of branches, so that branches can be combined.
    load_pipelining::PASS,
    if_combine::PASS,
    unify_loop_exits::PASS,
    polls::STOP_CHECKS,
    merge_checks::PASS,
    // The verifier does not accept the result.
    widths::PASS,
];

/// Whether the verifier accepts what a pass makes. Such a pass ends its pipeline.
fn is_verifiable(pass: &str) -> bool {
    pass != widths::PASS.name
}

/// Runs a pipeline.
///
/// # Errors
/// `Internal` when a pass breaks the contract of the IR (checked after each in debug builds, never in release). It has
/// the program before and after the pass.
pub fn run<S: AsRef<Program> + Clone>(pipeline: &[Pass<S>], state: S) -> Result<S> {
    run_with(pipeline, state, |_, _| ())
}

/// The same for a program that need not be legal.
pub fn unverified<S>(pipeline: &[Pass<S>], state: S) -> S {
    pipeline.iter().fold(state, |state, pass| (pass.run)(state))
}

/// As [`run`], for backends: tests give them programs that are not legal, which are not verified.
///
/// # Errors
/// As [`run`].
pub fn run_given<S: AsRef<Program> + Clone>(pipeline: &[Pass<S>], state: S) -> Result<S> {
    let is_legal = cfg!(debug_assertions) && verify::check(state.as_ref()).is_ok();
    if is_legal { run(pipeline, state) } else { Ok(unverified(pipeline, state)) }
}

/// As [`run`]. `inspect` sees the name of each pass and the program after it.
///
/// # Errors
/// As [`run`].
pub fn run_with<S: AsRef<Program> + Clone>(
    pipeline: &[Pass<S>],
    state: S,
    mut inspect: impl FnMut(&'static str, &Program),
) -> Result<S> {
    pipeline.iter().try_fold(state, |state, pass| {
        let state = if cfg!(debug_assertions) { verified(pass, state)? } else { (pass.run)(state) };
        inspect(pass.name, state.as_ref());
        Ok(state)
    })
}

/// What a pass makes, if it is legal IR.
fn verified<S: AsRef<Program> + Clone>(pass: &Pass<S>, before: S) -> Result<S> {
    let after = (pass.run)(before.clone());
    if !is_verifiable(pass.name) {
        return Ok(after);
    }
    match verify::check(after.as_ref()) {
        Ok(()) => Ok(after),
        Err(what) => {
            let (before, after) = (before.as_ref(), after.as_ref());
            let name = pass.name;
            let detail = format!("{what}\n\n── before {name}\n{before}\n── after {name}\n{after}");
            Err(Error::Internal { stage: name, detail })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::after;
    use super::{COMMON, CPU, CUDA, Pass, RACES, Versioned, is_verifiable, run, run_with};
    use crate::ir::build::Builder;
    use crate::ir::testing::{INTS, program};
    use crate::ir::{Cmp, Op, Operand, Program, Scalar, Stmt, VarId};
    use std::collections::BTreeMap;

    const DEPTH: usize = 20;

    /// Loops within loops, each twice around, that count.
    fn nest(b: &mut Builder, depth: usize, count: VarId) {
        let Some(depth) = depth.checked_sub(1) else {
            let next = b.i64(Op::Add, &[count.into(), Operand::I64(1)]);
            return b.set(count, next);
        };
        let i = b.temp(Scalar::I64);
        b.set(i, Operand::I64(0));
        b.block(|b, done| {
            b.repeat(|b, _| {
                let ends = b.icmp(Cmp::Ge, i.into(), Operand::I64(2));
                b.when(ends, |b| b.push(Stmt::Break(done)));
                nest(b, depth, count);
                let next = b.i64(Op::Add, &[i.into(), Operand::I64(1)]);
                b.set(i, next);
            });
        });
    }

    #[test]
    fn loops_within_loops_do_not_multiply_the_work() {
        let nested = program(|b, index| {
            let count = b.temp(Scalar::I64);
            b.set(count, Operand::I64(0));
            nest(b, DEPTH, count);
            b.store(INTS, index, count.into());
        });
        // the time of a pass must not double or triple with each level of nesting
        let text = after(COMMON, nested);
        assert_eq!(text.matches("loop L").count(), DEPTH, "{text}");
    }

    #[test]
    fn a_name_means_one_pass() {
        let plain = COMMON.iter().chain(CPU).chain(RACES).map(|pass| (pass.name, pass.description));
        let mut known = BTreeMap::new();
        for (name, description) in plain.chain(CUDA.iter().map(|pass| (pass.name, pass.description))) {
            assert_eq!(*known.entry(name).or_insert(description), description, "{name}");
        }
        assert!(
            CUDA.iter().rev().skip(1).all(|pass| is_verifiable(pass.name)),
            "a pass after one that is not verified"
        );
    }

    #[test]
    fn inspection_sees_each_pass_in_order() {
        let counting = program(|b, index| b.store(INTS, index, Operand::I64(1)));
        let mut seen = Vec::new();
        let last = run_with(CUDA, Versioned::from(counting), |name, program| seen.push((name, program.clone())));
        let names: Vec<_> = seen.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, CUDA.iter().map(|pass| pass.name).collect::<Vec<_>>());
        assert_eq!(seen.last().map(|(_, program)| program), last.ok().map(|last| last.program).as_ref());
    }

    #[cfg(debug_assertions)]
    #[test]
    fn a_pass_that_breaks_the_contract_is_shown_before_and_after() {
        /// Stores a register that does not exist.
        fn spoil(mut program: Program) -> Program {
            for func in &mut program.funcs {
                func.body.push(Stmt::Let { dst: VarId::new(99), op: Op::Copy, args: vec![Operand::I64(7)] });
            }
            program
        }
        let counting = program(|b, index| b.store(INTS, index, Operand::I64(1)));
        let before = counting.to_string();
        let spoiling = Pass { name: "spoil", description: "no legal program", run: spoil };
        let Err(error) = run(&[spoiling], counting) else { panic!("the verifier accepts anything") };
        let text = error.to_string();
        assert!(text.contains(&format!("── before spoil\n{before}")), "{text}");
        assert!(text.contains("── after spoil\n") && text.contains("v99 = copy 7"), "{text}");
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Helpers that the tests of passes share.
    use super::Pass;
    use crate::ir::{Program, verify};

    /// The text of the functions after a pass.
    pub fn after(passes: &[Pass], program: Program) -> String {
        verify::verify(&program).unwrap_or_else(|e| panic!("before: {e}"));
        let program = passes
            .iter()
            .fold(program, |program, pass| super::verified(pass, program).unwrap_or_else(|e| panic!("{e}")));
        let text = program.to_string();
        let start = text.find("\nentry func").map_or(0, |at| at + 1);
        text[start..].to_string()
    }
}
