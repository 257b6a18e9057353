//! Every case through every stage, compared with its snapshots. `UPDATE_SNAPSHOTS=1` rewrites them; the diff is
//! reviewed like code.

mod support;

use ikra_core::syntax::print;
use ikra_core::world::World;
use support::{Failures, cases, check_snapshot};

#[test]
fn ast() {
    let mut failures = Failures::default();
    for case in cases() {
        let run = case.runs.first().unwrap_or_else(|| panic!("{} has no run", case.name));
        match case.section(run) {
            Ok(mut section) => {
                let mut text = print::unit(&section.block);
                for method in section.world.classes.methods() {
                    match section.world.source(method) {
                        Ok(source) => text += &format!("\n\n{}\n{}", source.label, print::unit(&source.unit)),
                        Err(error) => failures.add(&case.name, error),
                    }
                }
                check_snapshot(&mut failures, "ast", &case.name, &text);
            }
            Err(error) => failures.add(&case.name, error),
        }
    }
    failures.check();
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
