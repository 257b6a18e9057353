//! The only module that sees all others: one function, read top to bottom, is the pipeline up to the backend.

use crate::config::CodeOptions;
use crate::error::Result;
use crate::infer::{self, BlockSource};
use crate::ir::lower::section;
use crate::ir::{Lowered, verify};
use crate::layout::Layout;
use crate::passes;
use crate::world::{Facts, World};

pub use crate::infer::{Base, SectionOp};
pub use crate::ir::lower::section::SectionShape;

/// A section that a backend can prepare, and that the host can pack for.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub lowered: Lowered,
    pub layout: Layout,
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
) -> Result<Compiled> {
    let source = &block.unit.source;
    let name = format!("block at {}:{}", source.path, source.line_of(source.slice.start as u32));
    let mut analysis = infer::analyse(world, facts, block, shape.op, shape.base)?;
    let Lowered { program, schema } = section::lower(&mut analysis, shape, options, &name)?;
    if cfg!(debug_assertions) {
        verify::verify(&program)?;
    }
    let program = passes::run(program)?;
    let layout = Layout::structure_of_arrays(&program);
    Ok(Compiled { lowered: Lowered { program, schema }, layout })
}
