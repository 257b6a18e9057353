//! The stages of a golden case as text, for people and tests: no Ruby, and no launch.
//!
//! Here: [`Stages`], from the tree to generated code, and [`Stage`], a stage's name. `ikra-dev` and `tests/golden.rs`
//! print what this module makes. Not here: running a program.

use crate::config::CodeOptions;
use crate::error::Error;
use crate::id::{ClassId, ScopeId};
use crate::infer::hash_updates::Pairs;
use crate::infer::{self, Analysis, Base, BlockSource, SectionOp, Spec};
use crate::ir::{Lowered, Program, Stmt, walk};
use crate::layout::Layout;
use crate::lower::section::{Holes, SectionShape, lower};
use crate::passes::team::Team;
use crate::passes::{self, COMMON, CPU, CUDA, Versioned};
use crate::syntax::ast::Origin;
use crate::syntax::print;
use crate::world::fixture::{Case, Classes, Expected, Left, Run, Section, Value};
use crate::world::{Facts, World};
use std::fmt::Write;

/// The GPU that [`Stages::ptx`] compiles for, if NVRTC knows it: compute capability 9.0.
#[cfg(feature = "cuda")]
const CAPABILITY: u32 = 90;

/// What to print of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The trees of the block and of all methods.
    Syntax,
    Types,
    /// The program as lowering leaves it.
    Ir,
    /// The program after a pass: after the last time that it runs, or after its n-th time, from 1.
    After(&'static str, Option<usize>),
    /// The program after [`COMMON`].
    Passes,
    /// The program for teams of threads ([`passes::team`]).
    Team,
    Cuda,
    /// The functions that Cranelift compiles.
    Clif,
    Ptx,
}

impl Stage {
    /// The names of stages, for messages.
    pub const NAMES: &str = "syntax, types, ir, passes, after:PASS, after:PASS:N, team, cuda, clif, ptx";

    /// Reads a name: `ir`, `after:gvn`, `after:gvn:2`.
    ///
    /// # Errors
    /// A message that lists the known stages or passes.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "syntax" => Self::Syntax,
            "types" => Self::Types,
            "ir" => Self::Ir,
            "passes" => Self::Passes,
            "team" => Self::Team,
            "cuda" => Self::Cuda,
            "clif" => Self::Clif,
            "ptx" => Self::Ptx,
            _ => {
                let Some(pass) = text.strip_prefix("after:") else {
                    return Err(format!("no stage {text}: the stages are {}", Self::NAMES));
                };
                let (name, time) = pass.split_once(':').map_or((pass, None), |(name, time)| (name, Some(time)));
                let names = pass_names();
                let Some(name) = names.iter().find(|known| **known == name) else {
                    return Err(format!("no pass {name}: the passes are {}", names.join(", ")));
                };
                let number = |time: &str| time.parse().ok().filter(|time| *time > 0);
                let bad = || format!("{text}: what follows the pass is its n-th run, a number from 1");
                Self::After(name, time.map(|time| number(time).ok_or_else(bad)).transpose()?)
            }
        })
    }
}

/// The passes of all pipelines, each once, in order.
pub fn pass_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    let all = COMMON.iter().chain(CPU).map(|pass| pass.name).chain(CUDA.iter().map(|pass| pass.name));
    for name in all {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The trees of the block and of all methods of a section.
///
/// # Errors
/// What the parser refuses.
pub fn syntax(section: &mut Section) -> Result<String, Error> {
    let mut text = print::unit(&section.block);
    for method in section.world.classes.methods() {
        let source = section.world.source(method)?;
        text += &format!("\n\n{}\n{}", source.label, print::unit(&source.unit));
    }
    Ok(text)
}

/// A case's first run, compiled up to the IR.
pub struct Stages {
    /// The types of all specialisations.
    pub types: String,
    /// The same, without methods of Ruby's own.
    pub own_types: String,
    pub lowered: Lowered,
    pub options: CodeOptions,
}

impl Stages {
    /// # Errors
    /// As [`compile`].
    pub fn of(section: &mut Section, expected: &Expected) -> Result<Self, Error> {
        let options = expected.options;
        let holes = expected.holes.map(|left| match left {
            Left::Marked => Holes::Marked,
            Left::Filled(int) => Holes::Filled { int, float: (int as f64).to_bits() },
        });
        let shape = SectionShape { holes, ..shape(section) };
        let (mut types, mut own_types) = (String::new(), String::new());
        let own = section.block.source.path.clone();
        let mut facts = Facts::default();
        let classes = section.world.classes.clone();
        let inspect = |analysis: &Analysis<'_>| {
            types = with_names(&typed(analysis, |_| true), &classes);
            own_types = with_names(&typed(analysis, |spec| spec.unit.source.path == own), &classes);
        };
        let lowered = compile(section, &mut facts, &shape, &options, inspect)?;
        Ok(Self { types, own_types, lowered, options })
    }

    /// The program after all common passes.
    ///
    /// # Errors
    /// As [`passes::run`].
    pub fn passes(&self) -> Result<Program, Error> {
        passes::run(COMMON, self.lowered.program.clone())
    }

    /// The program after a pass, if the pass runs that often.
    ///
    /// # Errors
    /// As [`passes::run`], and `Internal` if it does not run that often.
    pub fn after(&self, pass: &'static str, time: Option<usize>) -> Result<Program, Error> {
        let mut found: Vec<Program> = Vec::new();
        let mut note = |name: &str, program: &Program| {
            if name == pass {
                found.push(program.clone());
            }
        };
        let program = passes::run_with(COMMON, self.lowered.program.clone(), &mut note)?;
        passes::run_with(CPU, program.clone(), &mut note)?;
        passes::run_with(CUDA, Versioned::from(program), &mut note)?;
        let runs = found.len();
        let chosen = match time {
            Some(time) => found.into_iter().nth(time - 1),
            None => found.pop(),
        };
        let detail = format!("{pass} runs {runs} times");
        chosen.ok_or(Error::Internal { stage: "after", detail })
    }

    /// The number of checks of a program: statements that may end a job with an exception.
    pub fn checks(program: &Program) -> usize {
        let mut checks = 0;
        for func in &program.funcs {
            walk(&func.body, &mut |stmt| {
                checks += usize::from(matches!(stmt, Stmt::Checked { .. } | Stmt::Trap { .. }))
            });
        }
        checks
    }

    /// CUDA C++, without the prelude.
    ///
    /// # Errors
    /// As [`passes::run`].
    #[cfg(feature = "cuda")]
    pub fn cuda(&self) -> Result<String, Error> {
        Ok(emitted(&self.passes()?).body)
    }

    /// # Errors
    /// As [`passes::run`], and what the backend refuses.
    #[cfg(feature = "cpu")]
    pub fn clif(&self) -> Result<String, Error> {
        use crate::backend::{Backend, cpu::CpuBackend};
        let program = self.passes()?;
        let layout = Layout::structure_of_arrays(&program);
        Ok(CpuBackend::new()?.prepare(&program, &layout, &self.options)?.listing())
    }

    /// # Errors
    /// As [`passes::run`]; `Device` where NVRTC is missing.
    #[cfg(feature = "cuda")]
    pub fn ptx(&self) -> Result<String, Error> {
        crate::backend::cuda::nvrtc::ptx(&emitted(&self.passes()?).source(), CAPABILITY, &self.options)
    }
}

/// The program for teams of threads, if one of its loops can be shared.
pub fn team(program: &Program) -> String {
    Team::of(program).map_or_else(|| "no loop can be shared\n".to_owned(), |team| team.program.to_string())
}

/// The program as CUDA C++.
#[cfg(feature = "cuda")]
pub fn emitted(program: &Program) -> crate::backend::cuda::emit::Emitted {
    use crate::backend::cuda::emit;
    emit::emit(program, &Layout::structure_of_arrays(program), &emit::kernel_name(program))
}

/// One stage of a case's run.
///
/// # Errors
/// The message of what refuses the program, or of what this machine lacks.
#[cfg(all(feature = "cpu", feature = "cuda"))]
pub fn text(case: &Case, run: &Run, stage: &Stage) -> Result<String, String> {
    let mut section = case.section(run)?;
    let text = |error: Error| error.to_string();
    if *stage == Stage::Syntax {
        return syntax(&mut section).map_err(text);
    }
    let stages = Stages::of(&mut section, &run.expected).map_err(text)?;
    match stage {
        Stage::Syntax | Stage::Types => Ok(stages.types),
        Stage::Ir => Ok(stages.lowered.program.to_string()),
        Stage::After(pass, time) => stages.after(pass, *time).map(|program| program.to_string()).map_err(text),
        Stage::Passes => stages.passes().map(|program| program.to_string()).map_err(text),
        Stage::Team => stages.passes().map(|program| team(&program)).map_err(text),
        Stage::Cuda => stages.cuda().map_err(text),
        Stage::Clif => stages.clif().map_err(text),
        Stage::Ptx => stages.ptx().map_err(text),
    }
}

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
        pairs: Pairs { ticks: op(section) == SectionOp::Each, tables: false },
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
        other => unreachable!("the case's section is called {other}"),
    }
}

fn base(section: &Section) -> Base {
    if section.range.is_some() { Base::Range } else { Base::Array }
}

/// A section's program as lowering leaves it. `inspect` sees the types.
///
/// # Errors
/// `Unsupported` and `Conflict` about the case, `Internal` about us.
pub fn compile(
    section: &mut Section,
    facts: &mut Facts,
    shape: &SectionShape,
    options: &CodeOptions,
    inspect: impl FnOnce(&Analysis<'_>),
) -> Result<Lowered, Error> {
    let name = format!("block at {}", section.block.source.path);
    let block = BlockSource { unit: section.block.clone(), scope: ScopeId(0) };
    let mut analysis = infer::analyse(&mut section.world, facts, &block, shape.op, shape.base, shape.pairs)?;
    inspect(&analysis);
    lower(&mut analysis, shape, options, &name)
}

/// The same program after all passes.
///
/// # Errors
/// As [`passes::run`].
pub fn improved(lowered: &Lowered) -> Result<Lowered, Error> {
    let mut lowered = lowered.clone();
    lowered.program = passes::run(COMMON, lowered.program)?;
    Ok(lowered)
}

/// The same program without passes, as far as backends can do without.
pub fn needed(lowered: &Lowered) -> Lowered {
    let mut lowered = lowered.clone();
    lowered.program = passes::unverified(passes::RACES, lowered.program);
    lowered
}

/// The text with names in place of the numbers of classes.
fn with_names(text: &str, classes: &Classes) -> String {
    let mut parts = text.split("class");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        match part[..end].parse() {
            Ok(number) => out += &classes.info(ClassId(number)).name,
            Err(_) => out += "class",
        }
        out += &part[end..];
    }
    out
}

/// Each specialisation with the types of its locals and its result, and the places outside.
/// The specialisations that are `chosen`, and the types of places.
fn typed(analysis: &Analysis<'_>, chosen: impl Fn(&Spec) -> bool) -> String {
    let mut text = String::new();
    let mut specs: Vec<&Spec> = analysis.specs.iter().filter(|spec| chosen(spec)).collect();
    specs.sort_by_key(|s| (s.key.method.is_some(), s.label.clone(), format!("{:?}", s.key)));
    for spec in specs {
        let _ = writeln!(text, "{}", spec.label);
        if spec.key.method.is_some() {
            let _ = writeln!(text, "  self: {:?}", spec.key.self_ty);
        }
        for (local, ty) in spec.unit.locals.iter().zip(&spec.locals) {
            let how = match local.origin {
                Origin::Captured => " (captured)",
                Origin::Param => " (parameter)",
                _ => "",
            };
            let _ = writeln!(text, "  {}{how}: {ty:?}", local.name);
        }
        let _ = writeln!(text, "  → {:?}\n", spec.ret);
    }
    for (place, ty) in analysis.facts.places() {
        let owned = if analysis.facts.is_owned(place) { " owned" } else { "" };
        let _ = writeln!(text, "{place:?}: {ty:?}{owned}");
    }
    text
}
