//! From a section to a program, over all stages of the core.

use ikra_core::config::CodeOptions;
use ikra_core::error::{Error, Result};
use ikra_core::id::ScopeId;
use ikra_core::infer::{self, Base, BlockSource, SectionOp};
use ikra_core::ir::Lowered;
use ikra_core::lower::section::{SectionShape, lower};
use ikra_core::passes;
use ikra_core::world::Facts;
use ikra_core::world::fixture::{Section, Value};

/// What the host says of the elements.
pub fn shape(section: &Section) -> SectionShape {
    let objects: Vec<_> = section.world.elements.iter().filter(|e| matches!(e, Value::Object(_))).collect();
    let grouped = objects.iter().enumerate().any(|(i, o)| objects[..i].contains(o));
    let mut classes: Vec<_> = objects
        .iter()
        .filter_map(|e| match e {
            Value::Object(o) => Some(section.world.heap.object(*o).class),
            _ => None,
        })
        .collect();
    classes.sort();
    classes.dedup();
    SectionShape {
        op: op(section),
        base: base(section),
        grouped,
        reordered: classes.len() > 1,
        few: true,
        single: false,
        joined: false,
        whole: false,
        results: None,
        holes: None,
    }
}

fn op(section: &Section) -> SectionOp {
    match &*section.method {
        "pmap" => SectionOp::Map,
        "peach" | "pfind" => SectionOp::Each,
        other => panic!("no section is called {other}"),
    }
}

fn base(section: &Section) -> Base {
    if section.range.is_some() { Base::Range } else { Base::Array }
}

/// A section's program as lowering leaves it. `inspect` sees the types.
pub fn compile(
    section: &mut Section,
    facts: &mut Facts,
    shape: &SectionShape,
    options: &CodeOptions,
    inspect: impl FnOnce(&infer::Analysis<'_>),
) -> Result<Lowered> {
    let name = format!("block at {}", section.block.source.path);
    let block = BlockSource { unit: section.block.clone(), scope: ScopeId(0) };
    let mut analysis = infer::analyse(&mut section.world, facts, &block, shape.op, shape.base)?;
    inspect(&analysis);
    lower(&mut analysis, shape, options, &name)
}

/// The same program after all passes.
pub fn improved(lowered: &Lowered) -> Result<Lowered> {
    let mut lowered = lowered.clone();
    lowered.program = passes::run(passes::COMMON, lowered.program)?;
    Ok(lowered)
}

/// The same program without passes, as far as backends can do without.
pub fn needed(lowered: &Lowered) -> Lowered {
    let mut lowered = lowered.clone();
    lowered.program = passes::unverified(passes::RACES, lowered.program);
    lowered
}

/// The error's message, and whether it is the user's program.
pub fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Unsupported(_) | Error::Conflict(_))
}
