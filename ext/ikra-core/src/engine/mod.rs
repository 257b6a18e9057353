//! The only module that sees all others: one function, read top to bottom, is the pipeline up to the backend.
//!
//! Here: [`compile`], and [`explain()`], which does the same and says what it found. Not here: what any stage does.

pub mod explain;

use crate::backend::FusedTicks;
use crate::config::CodeOptions;
use crate::error::Result;
use crate::infer::{self, BlockSource};
use crate::ir::lower::section;
use crate::ir::{ColumnId, Lowered, ParamId, Program, verify};
use crate::layout::Layout;
use crate::layout::schema::{Schema, Slot};
use crate::passes;
use crate::sched::stencil::{self, Choice, Means, Way};
use crate::world::{Facts, World};
use explain::{Asked, Explanation, Stopwatch};

pub use crate::infer::{Base, SectionOp};
pub use crate::ir::lower::section::{Holes, SectionShape};

/// A section that a backend can prepare, and that the host can pack for.
pub struct Compiled {
    pub lowered: Lowered,
    pub layout: Layout,
    /// What was chosen for each stencil over other stages, the first first. Where one is to look at what another kernel has computed, this
    /// program is not to be run.
    pub stencils: Vec<Choice>,
    /// Where launches that follow each other may be one of several ticks: the program for these.
    pub ticks: Option<FusedTicks>,
}

/// Compiles a block for the values at hand: `world` answers for them, `facts` is what was seen of them, here and in
/// earlier calls. After an error the facts may have grown; they are true all the same.
///
/// # Errors
/// `Unsupported` and `Conflict` about the user's program; `Internal` about ours.
pub fn compile(
    world: &mut dyn World,
    facts: &mut Facts,
    block: &BlockSource,
    shape: &SectionShape,
    options: &CodeOptions,
    means: Means,
) -> Result<Compiled> {
    stages(world, facts, block, shape, options, means, None)
}

/// The same, with an account of it.
///
/// # Errors
/// As [`compile`].
pub fn explain(
    world: &mut dyn World,
    facts: &mut Facts,
    block: &BlockSource,
    shape: &SectionShape,
    options: &CodeOptions,
    means: Means,
) -> Result<(Compiled, Explanation)> {
    let mut account = Explanation::default();
    let mut asked = Asked::new(world);
    let compiled = stages(&mut asked, facts, block, shape, options, means, Some(&mut account))?;
    account.subtract_questions(&asked, &block.unit);
    Ok((compiled, account))
}

fn stages(
    world: &mut dyn World,
    facts: &mut Facts,
    block: &BlockSource,
    shape: &SectionShape,
    options: &CodeOptions,
    means: Means,
    mut account: Option<&mut Explanation>,
) -> Result<Compiled> {
    let source = &block.unit.source;
    let name = format!("block at {}:{}", source.path, source.line_of(source.slice.start as u32));
    let mut watch = Stopwatch::start();
    let mut analysis = infer::analyse(world, facts, block, shape.op, shape.base)?;
    watch.lap("infer");
    let Lowered { program, mut schema, asks_index, fuses } = section::lower(&mut analysis, shape, options, &name)?;
    watch.lap("lower");
    if cfg!(debug_assertions) {
        verify::verify(&program)?;
    }
    if let Some(account) = &mut account {
        account.types(&mut analysis);
        account.lowered(&program);
        watch.skip();
    }
    // a map has one tick, and no loop over several
    let joins = shape.joined && fuses && shape.op == SectionOp::Each;
    let over_ticks = joins.then(|| Program { fused_ticks: true, ..program.clone() });
    let elements = (schema.elements.clone(), schema.order);
    // the interpreter looks for races in what the user wrote
    let (mut program, stencils) =
        if options.races { (passes::needed(program), Vec::new()) } else { with_stencils(program, &schema, means)? };
    if shape.whole {
        over_rows(&mut program, &mut schema)?;
    }
    watch.lap("passes");
    let layout = Layout::of(&program, options.arrangement);
    watch.lap("layout");
    if let Some(account) = account {
        account.improved(&mut analysis, &program, &schema, &layout);
        account.stages = watch.laps;
    }
    let ticks = over_ticks.and_then(|ticks| fused(ticks, &program, elements, schema.whole));
    Ok(Compiled { lowered: Lowered { program, schema, asks_index, fuses }, layout, stencils, ticks })
}

/// The program for several ticks at once beside one for a single one, which nobody need wait for. It is made when it is wanted, which it often never is.
fn fused(
    ticks: Program,
    single: &Program,
    (elements, order): (Option<Slot>, Option<ColumnId>),
    first: Option<ParamId>,
) -> Option<FusedTicks> {
    let is_plain = single.surely_ends() && !ticks.asks_tick() && ticks.funcs.iter().all(|func| func.stage.is_none());
    let (params, there) = (single.params.len(), uses(single));
    is_plain.then(|| {
        Box::new(move || {
            let mut program = passes::run(ticks)?;
            if let (Some(first), Some(Slot { value: Some(elements), .. })) = (first, elements)
                && passes::whole(&mut program, elements, order) != Some(first)
            {
                return Ok(None);
            }
            // launches have what the one for a single tick needs
            let has_all = uses(&program).iter().zip(&there).all(|(used, there)| !used || *there);
            Ok((has_all && program.params.len() == params && program.each_tick_surely_ends()).then_some(program))
        }) as FusedTicks
    })
}

/// By column, whether a program looks at it, or writes it.
fn uses(program: &Program) -> Vec<bool> {
    program.columns.iter().flat_map(|column| [column.read || column.written, column.written]).collect()
}

/// Runs an improved program over the rows of its elements, if it is such.
///
/// # Errors
/// `Internal`, where that breaks the contract of the IR (checked in debug builds).
pub fn over_rows(program: &mut Program, schema: &mut Schema) -> Result<()> {
    if let Some(Slot { value: Some(elements), tag: None, .. }) = schema.elements
        && let Some(first) = passes::whole(program, elements, schema.order)
    {
        (schema.whole, schema.order) = (Some(first), None);
        if cfg!(debug_assertions) {
            verify::verify_after("whole", program)?;
        }
    }
    Ok(())
}

/// Improves a program, whose stencils are chosen for by what became of it; where that changes it, it is improved once more.
fn with_stencils(mut program: Program, schema: &Schema, means: Means) -> Result<(Program, Vec<Choice>)> {
    if program.funcs.iter().all(|func| func.stage.is_none()) {
        return Ok((passes::run(program)?, Vec::new()));
    }
    let mut improved = passes::run(program.clone())?;
    let choices = stencil::choose(&improved, &schema.overwritten(), means);
    if choices.iter().all(|choice| choice.way == Way::Shared) || choices.iter().any(|choice| choice.way == Way::Apart) {
        stencil::follow(&mut improved, &choices);
        return Ok((improved, choices));
    }
    // what nobody shares is a function like any, which may become part of its callers
    stencil::follow(&mut program, &choices);
    Ok((passes::run(program)?, choices))
}
