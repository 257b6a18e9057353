//! Every case through every stage, compared with its snapshots. `UPDATE_SNAPSHOTS=1` rewrites them; the diff is
//! reviewed like code.

mod support;

use ikra_core::engine::stages::{self, Stage, Stages};
use ikra_core::world::fixture::{Case, Expected, Section};
use rayon::prelude::*;
use support::{Failures, cases, check_number, check_snapshot};

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
        match stages::syntax(&mut section) {
            Ok(text) => check_snapshot(&mut failures, "ast", &case.name, &text),
            Err(error) => failures.add(&case.name, error),
        }
    }
    failures.check();
}

/// No snapshot is longer. A case with a longer program says `# checks: N`, and has no snapshots of it.
const MAX_LINES: usize = 400;

/// Types, the program as lowering leaves it, after all passes, and as CUDA C++; or the error. What a case asks for with
/// `# shows: after:PASS`, too.
#[test]
fn types_ir_passes_and_cuda() {
    let each = cases().into_par_iter().map(|case| {
        let mut failures = Failures::default();
        failures.guard(&case.name, |failures| all_stages(&case, failures));
        failures
    });
    each.collect::<Vec<_>>().into_iter().fold(Failures::default(), Failures::and).check();
}

fn all_stages(case: &Case, failures: &mut Failures) {
    let Some((mut section, expected)) = first(case, failures) else { return };
    let stages = match Stages::of(&mut section, expected) {
        Ok(stages) => stages,
        Err(error) => return check_snapshot(failures, "errors", &case.name, &error.to_string()),
    };
    let types = if stages.types.lines().count() > MAX_LINES { &stages.own_types } else { &stages.types };
    check_snapshot(failures, "types", &case.name, types);
    let program = match stages.passes() {
        Ok(program) => program,
        Err(error) => return failures.add(&case.name, error),
    };
    if let Some(checks) = expected.checks {
        check_number(failures, &case.name, "checks", checks, Stages::checks(&program));
    } else {
        let shown = [
            ("ir", stages.lowered.program.to_string()),
            ("passes", program.to_string()),
            ("cuda", stages::emitted(&program).body),
        ];
        for (stage, text) in shown {
            if text.lines().count() > MAX_LINES {
                failures
                    .add(&case.name, format!("{stage} is longer than {MAX_LINES} lines: give the case `# checks: N`"));
            }
            check_snapshot(failures, stage, &case.name, &text);
        }
    }
    for name in &expected.shows {
        match Stage::parse(name) {
            Ok(Stage::After(pass, time)) => match stages.after(pass, time) {
                Ok(program) => check_snapshot(failures, &name.replace(':', "/"), &case.name, &program.to_string()),
                Err(error) => failures.add(&case.name, error),
            },
            Ok(Stage::Team) => check_snapshot(failures, name, &case.name, &stages::team(&program)),
            Ok(_) => failures.add(&case.name, format!("{name} is no stage after a pass, and not `team`")),
            Err(error) => failures.add(&case.name, error),
        }
    }
}
