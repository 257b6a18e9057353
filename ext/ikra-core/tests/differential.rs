//! Every run of every case on every backend that is present, the reference interpreter first; and the cases
//! themselves against plain Ruby. What was skipped is printed.

mod support;

use ikra_core::backend::cpu::CpuBackend;
use ikra_core::backend::cuda::shim::CudaShim;
use ikra_core::backend::reference::ReferenceBackend;
use ikra_core::backend::{Backend, Executable};
use ikra_core::engine::stages::{compile, improved, needed, shape};
use ikra_core::engine::{self, over_rows};
use ikra_core::error::Error;
use ikra_core::id::ScopeId;
use ikra_core::infer::{BlockSource, SectionOp};
use ikra_core::ir::Lowered;
use ikra_core::layout::Layout;
use ikra_core::lower::section::SectionShape;
use ikra_core::sched::stencil::Resources;
use ikra_core::world::Facts;
use ikra_core::world::fixture::{Case, Raised, Run, Section};
use rayon::prelude::*;
use std::process::Command;
use std::sync::Arc;
use support::machine::{self, Answer};
use support::{Failures, case_files, cases, folder};

/// A run that compiled, ready for further backends.
struct Ready<'c> {
    case: &'c Case,
    run: &'c Run,
    section: Section,
    facts: Facts,
    /// As lowering left it, and after all passes.
    lowered: Lowered,
    improved: Lowered,
}

impl Ready<'_> {
    fn name(&self) -> String {
        format!("{}:{}", self.case.name, self.run.line)
    }

    /// Runs a program on a copy of the world.
    fn run(
        &self,
        lowered: &Lowered,
        backend: &dyn Backend,
        executable: &dyn Executable,
    ) -> Result<(Section, Answer), String> {
        let mut section = self.section.clone();
        let answer = machine::run(&mut section, &self.case.file.text, &self.facts, lowered, backend, executable)?;
        Ok((section, answer))
    }

    fn prepared(&self, lowered: &Lowered, backend: &dyn Backend) -> Result<Arc<dyn Executable>, String> {
        self.laid_out(lowered, &Layout::structure_of_arrays(&lowered.program), backend)
    }

    /// An array of structures, where that is another layout.
    fn structures(&self) -> Option<Layout> {
        Some(Layout::array_of_structures(&self.improved.program)).filter(Layout::is_shared)
    }

    fn laid_out(
        &self,
        lowered: &Lowered,
        layout: &Layout,
        backend: &dyn Backend,
    ) -> Result<Arc<dyn Executable>, String> {
        backend.prepare(&lowered.program, layout, &self.run.expected.options).map_err(|e| e.to_string())
    }

    /// Runs the improved program; says what is wrong.
    fn check(&self, backend: &dyn Backend, executable: &dyn Executable) -> Result<(), String> {
        let (mut section, answer) = self.run(&self.improved, backend, executable)?;
        compare(self.run, &mut section, answer)
    }

    /// Without passes all is the same, but that sums which only a mask or remainder consumes still overflow.
    fn check_unimproved(&self, backend: &dyn Backend) -> Result<(), String> {
        let lowered = needed(&self.lowered);
        let (mut section, answer) = self.run(&lowered, backend, &*self.prepared(&lowered, backend)?)?;
        match answer {
            Answer::Raises(raised) if raised.class == "Ikra::IntegerOverflow" => Ok(()),
            answer => compare(self.run, &mut section, answer),
        }
    }

    /// Whether it goes over the rows of elements, in all ticks.
    fn joins(&self) -> bool {
        self.improved.schema.whole.is_some() && self.improved.program.fused_ticks
    }

    fn check_launches(&self) -> Result<(), String> {
        let launches = if self.improved.program.fused_ticks { 1 } else { self.section.ticks as usize };
        match self.run.expected.kernels {
            Some(kernels) if kernels != launches => Err(format!("{launches} kernels")),
            _ => Ok(()),
        }
    }
}

/// How a host may want a run.
#[derive(Clone, Copy, PartialEq)]
enum Host {
    AsItIs,
    /// By class where elements would be in their own order, or the other way round.
    OtherOrder,
    /// One tick at a time, and over the rows of elements where these are all objects of their classes.
    OneTick,
    /// So over the rows, and several ticks in one launch.
    JoinedTicks,
}

/// Compiles a run, as often as speculations turn out wrong. None: it was refused, as it should be.
fn ready<'c>(case: &'c Case, run: &'c Run, host: Host, backend: &dyn Backend) -> Result<Option<Ready<'c>>, String> {
    let (mut refuted, mut strides, mut outside, mut scattered) = (Vec::new(), Vec::new(), None, false);
    for _ in 0..100 {
        let mut section = case.section(run)?;
        let mut facts = Facts::default();
        strides.iter().for_each(|what| facts.refute_stride(*what));
        if let Some(what) = outside {
            facts.saw_column_out_of_range(what);
        }
        for assumption in &refuted {
            facts.refute(assumption);
        }
        let shape = shape(&section);
        let shape = match host {
            Host::AsItIs | Host::JoinedTicks => shape,
            Host::OtherOrder => SectionShape { reordered: !shape.reordered, ..shape },
            Host::OneTick => SectionShape { single: true, joined: true, ..shape },
        };
        let lowered = match compile(&mut section, &mut facts, &shape, &run.expected.options, |_| {}) {
            Ok(lowered) => lowered,
            Err(error) => return refusal(run, &error).map(|()| None),
        };
        if let Some(expected) = run.expected.refused.as_ref().or(run.expected.conflict.as_ref()) {
            return Err(format!("expected an error about: {expected}"));
        }
        let mut improved = improved(&lowered).map_err(|e| e.to_string())?;
        if matches!(host, Host::OneTick | Host::JoinedTicks) && !scattered {
            over_rows(&mut improved.program, &mut improved.schema).map_err(|e| e.to_string())?;
        }
        let ready = Ready { case, run, section, facts, lowered, improved };
        let executable = ready.prepared(&ready.improved, backend)?;
        match ready.run(&ready.improved, backend, &*executable)? {
            (_, Answer::Refuted(assumption)) => refuted.push(assumption),
            (_, Answer::NoUniformStride(what)) => strides.push(what),
            (_, Answer::ColumnOutOfRange(what)) => outside = Some(what),
            (_, Answer::Scattered) => scattered = true,
            (mut section, answer) => return compare(run, &mut section, answer).map(|()| Some(ready)),
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
        (Answer::NoUniformStride(what), _) => wrong.push(format!("no uniform stride once more: {what:?}")),
        (Answer::ColumnOutOfRange(_), _) => wrong.push("a column is out of range once more".to_owned()),
        (Answer::Scattered, _) => wrong.push("scattered once more".to_owned()),
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
    let runs: Vec<(&Case, &Run)> = cases.iter().flat_map(|case| case.runs.iter().map(move |run| (case, run))).collect();
    let (all, failures): (Vec<_>, Vec<_>) = runs.par_iter().map(|(case, run)| on_reference(case, run)).unzip();
    let all: Vec<Ready<'_>> = all.into_iter().flatten().collect();
    let mut failures = failures.into_iter().fold(Failures::default(), Failures::and);
    let rows = all.iter().filter(|ready| ready.improved.schema.whole.is_some()).count();
    let joined = all.iter().filter(|ready| ready.joins()).count();
    println!(
        "reference: {} runs, {rows} over the rows of elements, {joined} of these several ticks at once",
        all.len()
    );
    on_cpu(&all, &mut failures);
    on_shim(&all, &mut failures);
    failures.check();
    assert!(rows > joined && joined > 0, "no case goes over the rows of its elements");
}

/// A run for each host that may want it otherwise.
fn on_reference<'c>(case: &'c Case, run: &'c Run) -> (Vec<Ready<'c>>, Failures) {
    let (reference, name) = (ReferenceBackend::default(), format!("{}:{}", case.name, run.line));
    let (mut all, mut failures) = (Vec::new(), Failures::default());
    for host in [Host::AsItIs, Host::OtherOrder, Host::OneTick, Host::JoinedTicks] {
        failures.guard(&name, |failures| match ready(case, run, host, &reference) {
            // the others are as they are otherwise
            Ok(Some(ready)) if host == Host::JoinedTicks && !ready.joins() => {}
            Ok(Some(ready)) => {
                let launches = || if host == Host::OneTick { Ok(()) } else { ready.check_launches() };
                let checks = ready.check_unimproved(&reference).and_then(|()| launches());
                checks.unwrap_or_else(|error| failures.add(&name, error));
                all.push(ready);
            }
            Ok(None) => {}
            Err(error) => failures.add(&name, error),
        });
    }
    (all, failures)
}

fn on_cpu(all: &[Ready<'_>], failures: &mut Failures) {
    let cpu = match CpuBackend::new() {
        Ok(cpu) => cpu,
        Err(error) => return println!("cpu: skipped ({error})"),
    };
    let structures = all.par_iter().filter(|ready| ready.structures().is_some()).count();
    let found = all.par_iter().map(|ready| {
        let mut failures = Failures::default();
        failures.guard(&ready.name(), |failures| {
            let checked = ready.prepared(&ready.improved, &cpu).and_then(|e| ready.check(&cpu, &*e));
            checked.unwrap_or_else(|error| failures.add(&ready.name(), format!("cpu: {error}")));
        });
        if let Some(layout) = ready.structures() {
            failures.guard(&ready.name(), |failures| {
                let checked = ready.laid_out(&ready.improved, &layout, &cpu).and_then(|e| ready.check(&cpu, &*e));
                checked
                    .unwrap_or_else(|error| failures.add(&ready.name(), format!("cpu, array of structures: {error}")));
            });
        }
        failures
    });
    *failures = std::mem::take(failures).and(found.reduce(Failures::default, Failures::and));
    assert!(structures > 0, "no case has objects with several fields");
    println!("cpu: {} runs, {structures} of them also with an array of structures", all.len());
}

/// How many programs one call of the C++ compiler gets.
const BATCH: usize = 60;

fn on_shim(all: &[Ready<'_>], failures: &mut Failures) {
    let shim = match CudaShim::new() {
        Ok(shim) => shim.sanitized(),
        Err(error) => return println!("cuda-shim: skipped ({error})"),
    };
    let columns = all.iter().map(|ready| (ready, Layout::structure_of_arrays(&ready.improved.program)));
    let structures = all.iter().filter_map(|ready| Some((ready, ready.structures()?)));
    // Of arrays of structures one in eight: the host's compiler takes long.
    let all: Vec<(&Ready<'_>, Layout)> = columns.chain(structures.step_by(8)).collect();
    let prepared: Vec<_> = all
        .iter()
        .map(|(ready, layout)| (&ready.improved.program, layout))
        .collect::<Vec<_>>()
        .par_chunks(BATCH)
        .map(|programs| shim.prepare_many(programs))
        .collect();
    for (batch, executables) in all.chunks(BATCH).zip(prepared) {
        let executables: Vec<Arc<dyn Executable>> = match executables {
            Ok(executables) => executables,
            Err(error) => return failures.add("cuda-shim", error),
        };
        for ((ready, _), executable) in batch.iter().zip(&executables) {
            if let Err(error) = ready.check(&shim, &**executable) {
                failures.add(&ready.name(), format!("cuda-shim: {error}"));
            }
        }
    }
    println!("cuda-shim: {} runs", all.len());
}

/// Cases that show a program for teams are run by teams: some within a warp, and some that are blocks.
#[test]
fn teams_give_the_same_answers() {
    if let Err(error) = CudaShim::new() {
        return println!("cuda-shim: skipped ({error})");
    }
    let (mut failures, mut teams) = (Failures::default(), 0);
    let shows = |run: &&Run| run.expected.shows.iter().any(|stage| stage == "team");
    for case in &cases() {
        for run in case.runs.iter().filter(shows) {
            teams += 1;
            for lanes in [4, 32, 64] {
                failures.guard(&format!("{}, {lanes} lanes", case.name), |failures| {
                    let shim = CudaShim::new().expect("there is a compiler").with_teams(lanes);
                    let checked = ready(case, run, Host::AsItIs, &shim).and_then(|ready| {
                        let ready = ready.ok_or("nothing to run")?;
                        ready.check(&shim, &*ready.prepared(&ready.improved, &shim)?)
                    });
                    checked.unwrap_or_else(|error| failures.add(&case.name, error));
                });
            }
        }
    }
    failures.check();
    assert!(teams > 0, "no case shows a team");
}

#[test]
fn calls_become_one_launch_only_where_nothing_asks_which_tick_runs() {
    let (mut joined, mut apart) = (0, 0);
    for case in &cases() {
        for run in &case.runs {
            let Ok(mut section) = case.section(run) else { continue };
            let shape = SectionShape { single: true, joined: true, ..shape(&section) };
            let block = BlockSource { unit: section.block.clone(), scope: ScopeId(0) };
            let (mut facts, options) = (Facts::default(), &run.expected.options);
            let resources = Resources::default();
            let compiled = engine::compile(&mut section.world, &mut facts, &block, &shape, options, resources);
            let Ok(compiled) = compiled else { continue };
            let name = format!("{}:{}", case.name, run.line);
            let asks = case.file.text.contains("Ikra.tick") || compiled.lowered.program.uses_random;
            apart += usize::from(asks && compiled.lowered.program.surely_ends());
            let Some(make) = compiled.ticks else { continue };
            assert!(!asks, "{name} asks for its tick, or draws");
            assert_eq!(shape.op, SectionOp::Each, "{name} has no ticks");
            let program = make().unwrap_or_else(|e| panic!("{name}: {e}"));
            joined += usize::from(program.is_some_and(|program| program.fused_ticks));
        }
    }
    assert!(joined > 0 && apart > 0, "{joined} cases may be joined, {apart} only end");
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
