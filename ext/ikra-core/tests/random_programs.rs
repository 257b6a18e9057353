//! Programs that nobody would write, before and after each pass, and on each machine that is present.

mod support;

use ikra_core::backend::Outcome;
use ikra_core::backend::reference::ReferenceBackend;
use ikra_core::ir::parse::parse;
use ikra_core::ir::verify::verify;
use ikra_core::ir::{Program, Stmt, walk};
use ikra_core::passes::{self, COMMON, RACES};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;
use std::collections::BTreeMap;
use support::random_program::{Rows, leaving, program, run, wandering};

/// More or fewer with `CASES=1000`.
fn runner(cases: u32) -> TestRunner {
    let cases = std::env::var("CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(cases);
    TestRunner::new(Config { cases, failure_persistence: None, max_shrink_iters: 5000, ..Config::default() })
}

/// As far as backends cannot do without.
fn needed(program: Program) -> Program {
    passes::run(RACES, program).unwrap_or_else(|e| panic!("{e}"))
}

fn choices() -> impl Strategy<Value = Vec<u16>> {
    proptest::collection::vec(0..0x1000u16, 0..600)
}

fn explained(what: &str, before: &Program, after: &Program) -> String {
    format!("{what}\n\n── before\n{before}\n── after\n{after}")
}

#[test]
fn passes_change_no_outcome() {
    let backend = ReferenceBackend::default();
    let cases = (choices(), prop_oneof![Just(Rows::Own), Just(Rows::Any)], 1..4u64);
    let result = runner(400).run(&cases, |(choices, rows, ticks)| {
        let mut before = program(&choices, rows);
        verify(&before).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let mut expected =
            run(&backend, &needed(before.clone()), ticks).map_err(|e| TestCaseError::fail(e.to_string()))?;
        if expected.0 == Outcome::Cancelled {
            return Ok(());
        }
        for pass in COMMON {
            let after = (pass.run)(before.clone());
            let fail =
                |what: String| TestCaseError::fail(explained(&format!("{}: {what}", pass.name), &before, &after));
            verify(&after).map_err(|e| fail(e.to_string().lines().next().unwrap_or("").to_owned()))?;
            let got = run(&backend, &needed(after.clone()), ticks).map_err(|e| fail(e.to_string()))?;
            if pass.name == "demanded_bits" {
                // It takes away overflows.
                expected = got;
            } else if got != expected {
                return Err(fail(format!("{:?}, not {:?}", got, expected)));
            }
            before = after;
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn what_is_carried_is_what_was_there() {
    let backend = ReferenceBackend::default();
    let fired = RefCell::new(BTreeMap::<&str, u32>::new());
    let result = runner(400).run(&choices(), |choices| {
        let mut before = needed(wandering(&choices));
        let expected = run(&backend, &before, 2).map_err(|e| TestCaseError::fail(e.to_string()))?;
        if expected.0 == Outcome::Cancelled {
            return Ok(());
        }
        for pass in COMMON.iter().filter(|pass| ["gvn", "dce", "partial_redundancy", "results"].contains(&pass.name)) {
            let after = (pass.run)(before.clone());
            let fail =
                |what: String| TestCaseError::fail(explained(&format!("{}: {what}", pass.name), &before, &after));
            verify(&after).map_err(|e| fail(e.to_string().lines().next().unwrap_or("").to_owned()))?;
            let got = run(&backend, &after, 2).map_err(|e| fail(e.to_string()))?;
            if got != expected {
                return Err(fail(format!("{got:?}, not {expected:?}")));
            }
            *fired.borrow_mut().entry(pass.name).or_default() += u32::from(after != before);
            before = after;
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let fired = fired.into_inner();
    assert!(fired["partial_redundancy"] >= 100 && fired["results"] >= 50, "the test says little: {fired:?}");
}

#[test]
fn what_leaves_a_loop_is_what_was_made() {
    /// Objects that are made in loops, and others.
    fn made(program: &Program) -> (u32, u32) {
        let (mut inside, mut all) = (0, 0);
        walk(&program.funcs[0].body, &mut |stmt| match stmt {
            // the loop over ticks
            Stmt::Loop { body, .. } if !body.iter().any(|stmt| matches!(stmt, Stmt::Begin { .. })) => {
                walk(body, &mut |stmt| inside += u32::from(matches!(stmt, Stmt::Alloc { .. })));
            }
            stmt => all += u32::from(matches!(stmt, Stmt::Alloc { .. })),
        });
        (inside, all)
    }
    let backend = ReferenceBackend::default();
    let fired = RefCell::new(0);
    let result = runner(400).run(&choices(), |choices| {
        let fail = |what: String| TestCaseError::fail(what);
        let first = leaving(&choices);
        let expected = run(&backend, &needed(first.clone()), 2).map_err(|e| fail(e.to_string()))?;
        if expected.0 == Outcome::Cancelled {
            return Ok(());
        }
        let mut before = first;
        for name in ["unwind", "gvn", "dce", "inline", "gvn", "dce", "scalar_replacement"] {
            let pass = COMMON.iter().find(|pass| pass.name == name).expect("a pass of the pipeline");
            let after = (pass.run)(before.clone());
            let fail = |what: String| fail(explained(&format!("{name}: {what}"), &before, &after));
            verify(&after).map_err(|e| fail(e.to_string().lines().next().unwrap_or("").to_owned()))?;
            let got = run(&backend, &needed(after.clone()), 2).map_err(|e| fail(e.to_string()))?;
            if got != expected {
                return Err(fail(format!("{got:?}, not {expected:?}")));
            }
            if name == "scalar_replacement" {
                let ((inside, _), (still, all)) = (made(&before), made(&after));
                *fired.borrow_mut() += u32::from(still < inside && all > 0);
            }
            before = after;
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(fired.into_inner() >= 20, "the test says little");
}

#[cfg(feature = "cpu")]
#[test]
fn cpu_agrees_with_the_reference() {
    let reference = ReferenceBackend::default();
    let cpu = ikra_core::backend::cpu::CpuBackend::new().expect("a host that Cranelift knows");
    let result = runner(200).run(&(choices(), 1..4u64, any::<bool>()), |(choices, ticks, optimise)| {
        let mut program = program(&choices, Rows::Own);
        if optimise {
            program = passes::unverified(COMMON, program);
        }
        program = needed(program);
        let fail = |what: String| TestCaseError::fail(format!("{what}\n\n{program}"));
        let expected = run(&reference, &program, ticks).map_err(|e| fail(e.to_string()))?;
        let got = run(&cpu, &program, ticks).map_err(|e| fail(e.to_string()))?;
        if got == expected { Ok(()) } else { Err(fail(format!("{got:?}, not {expected:?}"))) }
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn printed_programs_are_read_back() {
    let result = runner(100).run(&choices(), |choices| {
        let text = program(&choices, Rows::Any).to_string();
        let back = parse(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        if back.to_string() == text { Ok(()) } else { Err(TestCaseError::fail(format!("{text}\n{back}"))) }
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn golden_programs_are_read_back() {
    let root = support::folder().join("snapshots").join("passes");
    let mut failures = support::Failures::default();
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of snapshots") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a readable snapshot");
            if !text.starts_with("program ") {
                continue;
            }
            match parse(&text) {
                Ok(program) if program.to_string() == text => {}
                Ok(program) => failures.add(&path.display().to_string(), program),
                Err(error) => failures.add(&path.display().to_string(), error),
            }
        }
    }
    failures.check();
}
