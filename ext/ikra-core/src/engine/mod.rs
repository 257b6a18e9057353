//! The pipeline up to the backend, as one function that reads from top to bottom. Only this module sees all others.
//!
//! Here: [`compile`], [`explain()`], which does the same and reports what it found, and [`mod@stages`], which does the
//! same for golden cases. Not here: what any stage does.

pub mod explain;
pub mod stages;

use crate::backend::FusedTicks;
use crate::config::CodeOptions;
use crate::error::Result;
use crate::id::ArrayKind;
use crate::infer::{self, Access, Analysis, BlockSource};
use crate::ir::{ColumnId, Lowered, ParamId, Program, Storage, verify};
use crate::layout::Layout;
use crate::layout::schema::{Schema, Slot};
use crate::lower::section;
use crate::passes;
use crate::sched::stencil::{self, Choice, Resources, Strategy};
use crate::world::{Facts, World};
use explain::{Asked, Explanation, Stopwatch};

pub use crate::infer::{Base, SectionOp};
pub use crate::lower::section::{Holes, SectionShape};

/// A section that a backend can prepare, and for which the host can pack.
pub struct Compiled {
    pub lowered: Lowered,
    pub layout: Layout,
    /// The choice for each stencil over other stages, in their order. If a choice reads what another kernel computes,
    /// this program cannot run alone.
    pub stencils: Vec<Choice>,
    /// The program for several ticks in one launch, if consecutive launches may become one.
    pub ticks: Option<FusedTicks>,
}

/// Compiles a block for the current values. `world` answers questions about them; `facts` holds what was seen of them,
/// now and in earlier calls. After an error the facts may have grown, but they are still true.
///
/// # Errors
/// `Unsupported` and `Conflict` about the user's program; `Internal` about ours.
pub fn compile(
    world: &mut dyn World,
    facts: &mut Facts,
    block: &BlockSource,
    shape: &SectionShape,
    options: &CodeOptions,
    resources: Resources,
) -> Result<Compiled> {
    stages(world, facts, block, shape, options, resources, None)
}

/// The same, with an explanation.
///
/// # Errors
/// As [`compile`].
pub fn explain(
    world: &mut dyn World,
    facts: &mut Facts,
    block: &BlockSource,
    shape: &SectionShape,
    options: &CodeOptions,
    resources: Resources,
) -> Result<(Compiled, Explanation)> {
    let mut account = Explanation::default();
    let mut asked = Asked::new(world);
    let compiled = stages(&mut asked, facts, block, shape, options, resources, Some(&mut account))?;
    account.subtract_questions(&asked, &block.unit);
    Ok((compiled, account))
}

fn stages(
    world: &mut dyn World,
    facts: &mut Facts,
    block: &BlockSource,
    shape: &SectionShape,
    options: &CodeOptions,
    resources: Resources,
    mut account: Option<&mut Explanation>,
) -> Result<Compiled> {
    let source = &block.unit.source;
    let name = format!("block at {}:{}", source.path, source.line_of(source.slice.start as u32));
    let mut watch = Stopwatch::start();
    let mut analysis = infer::analyse(world, facts, block, shape.op, shape.base, shape.pairs)?;
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
    let shared = shared_columns(&analysis, shape, options, &schema).map(|columns| (columns, program.clone()));
    let elements = (schema.elements.clone(), schema.order);
    // the interpreter looks for races in the code that the user wrote
    let (mut program, stencils) = if options.races {
        (passes::run(passes::RACES, program)?, Vec::new())
    } else {
        with_stencils(program, &schema, resources)?
    };
    if let Some((columns, lowered)) = shared
        && lowered.funcs.iter().all(|func| func.stage.is_none())
        && passes::are_independent(&program, &columns)
    {
        program = passes::run(passes::COMMON, Program { fused_ticks: true, ..lowered })?;
    }
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

/// A function that makes the program for several ticks in one launch, beside that for a single tick. It runs only on
/// demand, since the program is often not needed.
fn fused(
    ticks: Program,
    single: &Program,
    (elements, order): (Option<Slot>, Option<ColumnId>),
    first: Option<ParamId>,
) -> Option<FusedTicks> {
    let is_plain = single.surely_ends() && !ticks.asks_tick() && ticks.funcs.iter().all(|func| func.stage.is_none());
    let (params, there, stored) = (single.params.len(), uses(single), forms(single).collect::<Vec<_>>());
    is_plain.then(|| {
        Box::new(move || {
            let mut program = passes::run(passes::COMMON, ticks)?;
            if let (Some(first), Some(Slot { value: Some(elements), .. })) = (first, elements)
                && passes::whole(&mut program, elements, order) != Some(first)
            {
                return Ok(None);
            }
            // a launch provides what the program for a single tick needs, and nothing else
            let has_all = uses(&program).iter().zip(&there).all(|(used, there)| !used || *there);
            let has_all = has_all && forms(&program).eq(stored);
            Ok((has_all && program.params.len() == params && program.each_tick_surely_ends()).then_some(program))
        }) as FusedTicks
    })
}

/// The columns that keep the ticks of a section apart, if these are all of arrays.
fn shared_columns(
    analysis: &Analysis<'_>,
    shape: &SectionShape,
    options: &CodeOptions,
    schema: &Schema,
) -> Option<Vec<ColumnId>> {
    let of_arrays = !shape.single && !options.races && !analysis.fields.values().any(Access::keeps_ticks_apart);
    let apart = |kind: &ArrayKind| analysis.arrays.get(kind).is_some_and(Access::keeps_ticks_apart);
    let arrays = schema.arrays.iter().filter(|array| apart(&array.kind));
    let columns: Vec<ColumnId> = arrays.flat_map(|array| array.slot.columns()).collect();
    (of_arrays && !columns.is_empty()).then_some(columns)
}

/// How programs store each column. A pass may have made a column narrower, and added marks.
fn forms(program: &Program) -> impl Iterator<Item = (Storage, Option<ColumnId>)> + '_ {
    program.columns.iter().map(|column| (column.storage, column.marks))
}

/// Two flags for each column: whether a program uses it, and whether it writes it.
fn uses(program: &Program) -> Vec<bool> {
    program.columns.iter().flat_map(|column| [column.read || column.written, column.written]).collect()
}

/// Changes an improved program to run over the rows of its elements, if it allows that.
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

/// Improves a program and chooses a strategy for each stencil by the improved program. If the choices change the
/// program, it is improved again.
fn with_stencils(mut program: Program, schema: &Schema, resources: Resources) -> Result<(Program, Vec<Choice>)> {
    if program.funcs.iter().all(|func| func.stage.is_none()) {
        return Ok((passes::run(passes::COMMON, program)?, Vec::new()));
    }
    let mut improved = passes::run(passes::COMMON, program.clone())?;
    let choices = stencil::choose(&improved, &schema.overwritten(), resources);
    if choices.iter().all(|choice| choice.strategy == Strategy::Shared)
        || choices.iter().any(|choice| choice.strategy == Strategy::Separate)
    {
        stencil::follow(&mut improved, &choices);
        return Ok((improved, choices));
    }
    // a stage that is not shared is an ordinary function, which may be inlined
    stencil::follow(&mut program, &choices);
    Ok((passes::run(passes::COMMON, program)?, choices))
}
