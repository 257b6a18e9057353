//! Every case through every stage, compared with its snapshots. `UPDATE_SNAPSHOTS=1` rewrites them; the diff is
//! reviewed like code.

mod support;

use ikra_core::backend::cuda::emit;
use ikra_core::engine::{Holes, SectionShape};
use ikra_core::id::ClassId;
use ikra_core::infer::{Analysis, Spec};
use ikra_core::layout::Layout;
use ikra_core::syntax::ast::Origin;
use ikra_core::syntax::print;
use ikra_core::world::fixture::{Case, Classes, Expected, Left, Section};
use ikra_core::world::{Facts, World};
use std::fmt::Write;
use support::compile::{compile, improved, shape};
use support::{Failures, cases, check_snapshot};

/// The section of a case's first run.
fn first<'a>(case: &'a Case, failures: &mut Failures) -> Option<(Section, &'a Expected)> {
    let run = case.runs.first().unwrap_or_else(|| panic!("{} has no run", case.name));
    match case.section(run) {
        Ok(section) => Some((section, &run.expected)),
        Err(error) => {
            failures.add(&case.name, error);
            None
        }
    }
}

#[test]
fn every_run_of_a_case_can_be_set_up() {
    let mut failures = Failures::default();
    for case in cases() {
        for run in &case.runs {
            if let Err(error) = case.section(run) {
                failures.add(&case.name, error);
            }
        }
    }
    failures.check();
}

#[test]
fn ast() {
    let mut failures = Failures::default();
    for case in cases() {
        let Some((mut section, _)) = first(&case, &mut failures) else { continue };
        let mut text = print::unit(&section.block);
        for method in section.world.classes.methods() {
            match section.world.source(method) {
                Ok(source) => text += &format!("\n\n{}\n{}", source.label, print::unit(&source.unit)),
                Err(error) => failures.add(&case.name, error),
            }
        }
        check_snapshot(&mut failures, "ast", &case.name, &text);
    }
    failures.check();
}

/// Types, the program as lowering leaves it, after all passes, and as CUDA C++; or the error.
#[test]
fn types_ir_passes_and_cuda() {
    let mut failures = Failures::default();
    for case in cases() {
        failures.guard(&case.name, |failures| stages(&case, failures));
    }
    failures.check();
}

fn stages(case: &Case, failures: &mut Failures) {
    let Some((mut section, &Expected { options, holes, .. })) = first(case, failures) else { return };
    let holes = holes.map(|left| match left {
        Left::Marked => Holes::Marked,
        Left::Filled(int) => Holes::Filled { int, float: (int as f64).to_bits() },
    });
    let shape = SectionShape { holes, ..shape(&section) };
    let mut types = String::new();
    let mut facts = Facts::default();
    let classes = section.world.classes.clone();
    let inspect = |analysis: &Analysis<'_>| types = with_names(&typed(analysis), &classes);
    let lowered = match compile(&mut section, &mut facts, &shape, &options, inspect) {
        Ok(lowered) => lowered,
        Err(error) => return check_snapshot(failures, "errors", &case.name, &error.to_string()),
    };
    check_snapshot(failures, "types", &case.name, &types);
    check_snapshot(failures, "ir", &case.name, &lowered.program.to_string());
    match improved(&lowered) {
        Ok(improved) => {
            check_snapshot(failures, "passes", &case.name, &improved.program.to_string());
            let layout = Layout::structure_of_arrays(&improved.program);
            let emitted = emit::emit(&improved.program, &layout, &emit::kernel_name(&improved.program));
            check_snapshot(failures, "cuda", &case.name, &emitted.body);
        }
        Err(error) => failures.add(&case.name, error),
    }
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
fn typed(analysis: &Analysis<'_>) -> String {
    let mut text = String::new();
    let mut specs: Vec<&Spec> = analysis.specs.iter().collect();
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
