//! The passes that improve a program: one ordered list, and one file per pass.
//!
//! Here: [`PASSES`] and [`run`]. A pass is a name, a description and a pure function from program to program. It logs
//! nothing and keeps no state. Invariant: a pass changes no result, no trap and no draw of `rand`. A pass may change
//! when an element is stopped. (One exception: `demanded_bits` removes overflows that Ruby would not notice.) `facts`
//! is what passes share: knowledge about registers that follows control flow.

mod algebra;
mod checks;
mod dce;
mod demanded_bits;
mod even;
mod expand;
mod facts;
mod floats;
mod gvn;
mod if_combine;
mod if_convert;
mod if_convert_sums;
mod induction_steps;
mod inline;
pub mod jam;
mod jump_threading;
mod licm;
mod load_pipelining;
pub(crate) mod loops;
mod merge_checks;
mod partial_redundancy;
mod polls;
mod ranges;
mod register_promotion;
mod relations;
mod results;
mod rotate;
mod scalar_replacement;
mod single;
mod speculate_overflow;
mod strip_mine;
mod ticks;
mod unify_loop_exits;
mod unwind;
mod whole;
mod widths;

use crate::error::Result;
use crate::ir::{Program, verify};
pub use even::references;
pub use if_combine::if_combine;
pub use load_pipelining::load_pipelining;
pub use merge_checks::merge_checks;
pub use speculate_overflow::{LoopVersions, is_quick, speculate_overflow};
pub use unify_loop_exits::{is_turned, unify_loop_exits};
pub use whole::whole;
pub use widths::{addresses, short};

/// One step from a program to a better one.
pub struct Pass {
    pub name: &'static str,
    pub description: &'static str,
    pub run: fn(Program) -> Program,
}

/// All passes, in order. One may stand more than once.
pub const PASSES: &[Pass] = &[
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
    even::PASS,
    // Inlining shows which objects never leave a function.
    scalar_replacement::PASS,
    // Before `ranges`, which follows branches.
    jump_threading::PASS,
    // The constants of `ranges` settle branches, after which more values are equal.
    ranges::PASS,
    gvn::PASS,
    dce::PASS,
    licm::PASS,
    // The branches are settled, so what is left in the loop over ticks is worth copying.
    ticks::PASS,
    rotate::PASS,
    // Loops are rotated now: a body begins with its work, not with its condition.
    licm::PASS,
    gvn::PASS,
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
    even::ELEMENTS,
    checks::PASS,
    strip_mine::PASS,
    // Backends do not know `Alloc`.
    expand::PASS,
];

/// Runs only the passes that backends cannot do without. For programs that run as lowering left them.
pub fn needed(mut program: Program) -> Program {
    if unwind::rescues(&program) {
        // no handler may catch an overflow that Ruby does not have
        program = (demanded_bits::PASS.run)(program);
    }
    (expand::PASS.run)((unwind::PASS.run)(program))
}

/// Runs all passes.
///
/// # Errors
/// `Internal` when a pass breaks the contract of the IR (checked after each in debug builds, never in release).
pub fn run(program: Program) -> Result<Program> {
    PASSES.iter().try_fold(program, |program, pass| {
        let program = (pass.run)(program);
        if cfg!(debug_assertions) {
            verify::verify_after(pass.name, &program)?;
        }
        Ok(program)
    })
}

#[cfg(test)]
mod tests {
    use super::PASSES;
    use super::testing::after;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INTS, program};
    use crate::ir::{Cmp, Op, Operand, Scalar, Stmt, VarId};

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
        let text = after(PASSES, nested);
        assert_eq!(text.matches("loop L").count(), DEPTH, "{text}");
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
        let program = passes.iter().fold(program, |program, pass| {
            let program = (pass.run)(program);
            verify::verify(&program).unwrap_or_else(|e| panic!("after {}: {e}", pass.name));
            program
        });
        let text = program.to_string();
        let start = text.find("\nentry func").map_or(0, |at| at + 1);
        text[start..].to_string()
    }
}
