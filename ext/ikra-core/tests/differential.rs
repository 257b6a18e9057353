//! Every run of every case on every backend that is present, the reference interpreter first; and the cases
//! themselves against plain Ruby. What was skipped is printed.

mod support;

use ikra_core::backend::cuda::shim::CudaShim;
use ikra_core::backend::reference::ReferenceBackend;
use ikra_core::backend::{Backend, Executable};
use ikra_core::error::Error;
use ikra_core::ir::Lowered;
use ikra_core::ir::lower::section::SectionShape;
use ikra_core::layout::Layout;
use ikra_core::world::Facts;
use ikra_core::world::fixture::{Case, Raised, Run, Section};
use std::process::Command;
use std::sync::Arc;
use support::compile::{compile, improved, shape};
use support::machine::{self, Answer};
use support::{Failures, case_files, cases, folder};

/// A run that compiled, ready for further backends.
struct Ready<'c> {
    case: &'c Case,
    run: &'c Run,
    section: Section,
    facts: Facts,
    lowered: Lowered,
}

impl Ready<'_> {
    fn name(&self) -> String {
        format!("{}:{}", self.case.name, self.run.line)
    }

    /// Runs it on a copy of its world; says what is wrong.
    fn check(&self, lowered: &Lowered, backend: &dyn Backend, executable: &dyn Executable) -> Result<(), String> {
        let mut section = self.section.clone();
        let answer = machine::run(&mut section, &self.case.file.text, &self.facts, lowered, backend, executable)?;
        compare(self.run, &mut section, answer)
    }

    fn check_on(&self, lowered: &Lowered, backend: &dyn Backend) -> Result<(), String> {
        let layout = Layout::structure_of_arrays(&lowered.program);
        let options = &self.run.expected.options;
        let executable = backend.prepare(&lowered.program, &layout, options).map_err(|e| e.to_string())?;
        self.check(lowered, backend, &*executable)
    }
}

/// Compiles a run, as often as speculations turn out wrong. None: it was refused, as it should be.
fn ready<'c>(case: &'c Case, run: &'c Run, toggle_order: bool) -> Result<Option<Ready<'c>>, String> {
    let reference = ReferenceBackend::default();
    let mut refuted = Vec::new();
    for _ in 0..100 {
        let mut section = case.section(run)?;
        let mut facts = Facts::default();
        for assumption in &refuted {
            facts.refute(assumption);
        }
        let shape = shape(&section);
        let shape = SectionShape { reordered: shape.reordered != toggle_order, ..shape };
        let lowered = match compile(&mut section, &mut facts, &shape, &run.expected.options, |_| {}) {
            Ok(lowered) => lowered,
            Err(error) => return refusal(run, &error).map(|()| None),
        };
        if let Some(expected) = run.expected.refused.as_ref().or(run.expected.conflict.as_ref()) {
            return Err(format!("expected an error about: {expected}"));
        }
        let ready = Ready { case, run, section, facts, lowered };
        let layout = Layout::structure_of_arrays(&ready.lowered.program);
        let program = &ready.lowered.program;
        let executable = reference.prepare(program, &layout, &run.expected.options).map_err(|e| e.to_string())?;
        let mut section = ready.section.clone();
        let text = &case.file.text;
        match machine::run(&mut section, text, &ready.facts, &ready.lowered, &reference, &*executable)? {
            Answer::Refuted(assumption) => refuted.push(assumption),
            answer => {
                compare(run, &mut section, answer)?;
                let launches = if program.fused_ticks { 1 } else { section.ticks as usize };
                return match run.expected.kernels {
                    Some(kernels) if kernels != launches => Err(format!("{launches} kernels")),
                    _ => Ok(Some(ready)),
                };
            }
        }
    }
    Err("speculations do not end".to_owned())
}

fn refusal(run: &Run, error: &Error) -> Result<(), String> {
    let (expected, diagnostic) = match error {
        Error::Unsupported(diagnostic) => (&run.expected.refused, diagnostic),
        Error::Conflict(diagnostic) => (&run.expected.conflict, diagnostic),
        other => return Err(other.to_string()),
    };
    match expected {
        Some(part) if diagnostic.to_string().contains(part.as_str()) => Ok(()),
        _ => Err(diagnostic.to_string()),
    }
}

fn compare(run: &Run, section: &mut Section, answer: Answer) -> Result<(), String> {
    let mut wrong = Vec::new();
    match (answer, &run.expected.raises) {
        (Answer::Gives(value), None) => {
            let shown = section.world.show(&value);
            if let Some(expected) = run.expected.gives.as_ref().filter(|e| **e != shown) {
                wrong.push(format!("gives {shown}\n  not {expected}"));
            }
        }
        (Answer::Gives(value), Some(expected)) => {
            wrong.push(format!("gives {}, and should raise {expected:?}", section.world.show(&value)));
        }
        (Answer::Raises(raised), Some(expected)) if same(&raised, expected) => {}
        (Answer::Raises(raised), expected) => wrong.push(format!("raises {raised:?}\n  not {expected:?}")),
        (Answer::Refuted(assumption), _) => wrong.push(format!("refuted once more: {assumption:?}")),
    }
    for (expression, expected) in &run.expected.after {
        let shown = section.world.eval(expression).map(|value| section.world.show(&value));
        if shown.as_ref() != Ok(expected) {
            wrong.push(format!("after it {expression} is {shown:?}, not {expected}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn same(raised: &Raised, expected: &Raised) -> bool {
    // The words of Ikra's own errors are the bridge's.
    let message = if expected.class.starts_with("Ikra::") { &raised.message } else { &expected.message };
    *raised == Raised { message: message.clone(), ..expected.clone() }
}

#[test]
fn every_run_on_every_backend() {
    let cases = cases();
    let mut failures = Failures::default();
    let reference = ReferenceBackend::default();
    let mut all = Vec::new();
    for case in &cases {
        for run in &case.runs {
            let name = format!("{}:{}", case.name, run.line);
            for toggle_order in [false, true] {
                failures.guard(&name, |failures| match ready(case, run, toggle_order) {
                    Ok(Some(ready)) => match improved(&ready.lowered) {
                        Ok(improved) => match ready.check_on(&improved, &reference) {
                            Ok(()) => all.push((ready, improved)),
                            Err(error) => failures.add(&name, format!("reference, after passes: {error}")),
                        },
                        Err(error) => failures.add(&name, format!("passes: {error}")),
                    },
                    Ok(None) => {}
                    Err(error) => failures.add(&name, error),
                });
            }
        }
    }
    println!("reference: {} runs", all.len());
    on_shim(&all, &mut failures);
    failures.check();
}

/// How many programs one call of the C++ compiler gets.
const BATCH: usize = 60;

fn on_shim(all: &[(Ready<'_>, Lowered)], failures: &mut Failures) {
    let shim = match CudaShim::new() {
        Ok(shim) => shim.sanitized(),
        Err(error) => return println!("cuda-shim: skipped ({error})"),
    };
    for batch in all.chunks(BATCH) {
        let layouts: Vec<Layout> = batch.iter().map(|(_, l)| Layout::structure_of_arrays(&l.program)).collect();
        let programs: Vec<_> = batch.iter().map(|(_, l)| &l.program).zip(&layouts).collect();
        let executables: Vec<Arc<dyn Executable>> = match shim.prepare_many(&programs) {
            Ok(executables) => executables,
            Err(error) => return failures.add("cuda-shim", error),
        };
        for ((ready, improved), executable) in batch.iter().zip(&executables) {
            if let Err(error) = ready.check(improved, &shim, &**executable) {
                failures.add(&ready.name(), format!("cuda-shim: {error}"));
            }
        }
    }
    println!("cuda-shim: {} runs", all.len());
}

#[test]
fn cases_agree_with_ruby() {
    let oracle = folder().join("cases").join("oracle.rb");
    // Without RubyGems, so that nothing adds hints to messages.
    let version = Command::new("ruby").args(["--disable=gems", "-e", "print RUBY_VERSION"]).output();
    match version {
        // Messages of other versions differ.
        Ok(answer) if answer.stdout.starts_with(b"3.1.") => {}
        Ok(answer) => {
            let version = String::from_utf8_lossy(&answer.stdout).into_owned();
            return println!("skipped: this is Ruby {version}, the cases are in the words of 3.1");
        }
        Err(error) => return println!("skipped: no Ruby ({error})"),
    }
    let root = folder().join("cases");
    let files = case_files().into_iter().map(|f| f.strip_prefix(&root).expect("below the cases").to_owned());
    let answer = Command::new("ruby")
        .args(["--disable=gems".as_ref(), oracle.as_os_str()])
        .args(files)
        .current_dir(&root)
        .output()
        .expect("Ruby runs");
    let differences = String::from_utf8_lossy(&answer.stdout);
    let complaints = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "Ruby gives something else:\n{differences}{complaints}");
}
