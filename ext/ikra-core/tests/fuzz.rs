//! Generated programs on every backend that is present, with plain Ruby as the oracle.
//!
//! `spec/support/fuzz` makes the programs, as cases with what Ruby gives. In the suite: the same ones each time, and
//! some new ones, whose seed is printed. `IKRA_FUZZ` names a folder of cases to run instead; `IKRA_FUZZ_BACKENDS` the
//! backends; and `IKRA_FUZZ_REPORT` a file that gets a line for each program: name, backend, outcome, words.
//!
//! Ruby's Integers have no end. A program whose run in Ruby left 64 bits says where (`beyond: tick/index …` in its
//! first line), and may raise IntegerOverflow there. A program that Ikra refuses is counted, and few may be.

mod support;

use ikra_core::backend::cpu::CpuBackend;
use ikra_core::backend::cuda::shim::CudaShim;
use ikra_core::backend::reference::ReferenceBackend;
use ikra_core::backend::{Backend, Executable};
use ikra_core::config::CodeOptions;
use ikra_core::engine::stages::shape;
use ikra_core::engine::{self, Compiled};
use ikra_core::error::Error;
use ikra_core::id::ScopeId;
use ikra_core::infer::BlockSource;
use ikra_core::sched::stencil::Resources;
use ikra_core::world::Facts;
use ikra_core::world::fixture::{Case, Raised, Run, Section};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::machine::{self, Answer};

/// Programs of the suite: the same each time, and new ones.
const SAME: (u64, usize) = (1, 150);
const NEW: usize = 150;
/// Of a thousand programs, so many may be refused.
const REFUSED: usize = 60;
/// How many programs one call of the C++ compiler gets.
const BATCH: usize = 100;
/// The parser, inference and the interpreter recurse with the program.
const STACK: usize = 256 << 20;

struct Program {
    case: Case,
    /// (tick, index) where Ruby left 64 bits.
    beyond: Vec<(u64, u64)>,
}

impl Program {
    fn read(path: &Path) -> Result<Self, String> {
        let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let first = text.lines().next().unwrap_or_default();
        let pair = |text: &str| {
            let (tick, index) = text.split_once('/')?;
            Some((tick.parse().ok()?, index.parse().ok()?))
        };
        let beyond = first.split_once("beyond: ").map_or("", |(_, places)| places);
        let beyond = beyond.split(' ').filter_map(pair).collect();
        let case = Case::parse(&name, &path.display().to_string(), &text)?;
        if case.runs.is_empty() {
            return Err(format!("{name} expects nothing"));
        }
        Ok(Self { case, beyond })
    }

    fn run(&self) -> &Run {
        &self.case.runs[0]
    }

    /// Whether an answer is Ruby's, or an overflow where Ruby left 64 bits.
    fn judge(&self, section: &mut Section, answer: Result<Answer, String>) -> Outcome {
        let answer = match answer {
            Ok(Answer::Raises(r)) if leaves_kernels(&r) && self.beyond.contains(&(r.tick, r.index)) => {
                return Outcome::Overflow;
            }
            // Where arithmetic made a literal of 2**63 or more a Float, nothing in Ruby left 64 bits.
            Ok(Answer::Raises(r)) if r.message.starts_with("this literal") => return Outcome::Overflow,
            // Of one of several kinds, told when it was met.
            Ok(Answer::Raises(r)) if r.class == "Ikra::CompileError" => {
                let line = r.message.lines().next().unwrap_or_default();
                return Outcome::Refused(line.split_once(": ").map_or(line, |(_, what)| what).into());
            }
            Ok(Answer::Raises(r)) if r.message.ends_with("arrays do not grow in kernels") => {
                return Outcome::Refused(r.message);
            }
            // Of an accumulator, whose parts are put together after the launch.
            Err(error) if error == "overflow" && !self.beyond.is_empty() => return Outcome::Overflow,
            Err(error) => return Outcome::Failed(error),
            Ok(answer) => answer,
        };
        match differences(self.run(), section, answer) {
            wrong if wrong.is_empty() => Outcome::Equal,
            wrong => Outcome::Failed(wrong.join("; ")),
        }
    }
}

enum Outcome {
    Equal,
    /// Integers beyond 64 bits.
    Overflow,
    /// A CompileError.
    Refused(String),
    Failed(String),
}

/// A result that kernels have no room for.
fn leaves_kernels(raised: &Raised) -> bool {
    match &*raised.class {
        "Ikra::IntegerOverflow" => true,
        "RangeError" => raised.message.contains("kernels"),
        _ => false,
    }
}

fn differences(run: &Run, section: &mut Section, answer: Answer) -> Vec<String> {
    let mut wrong = Vec::new();
    match (answer, &run.expected.raises) {
        (Answer::Gives(value), None) => {
            let shown = section.world.show(&value);
            if let Some(expected) = run.expected.gives.as_ref().filter(|e| **e != shown) {
                wrong.push(format!("gives {shown}, not {expected}"));
            }
        }
        (Answer::Gives(value), Some(expected)) => {
            wrong.push(format!("gives {}, and should raise {expected:?}", section.world.show(&value)));
        }
        (Answer::Raises(raised), Some(expected)) if raised == *expected => {}
        (Answer::Raises(raised), Some(expected)) => wrong.push(format!("raises {raised:?}, not {expected:?}")),
        (Answer::Raises(raised), None) => wrong.push(format!("raises {raised:?}")),
        (Answer::NoUniformStride(what), _) => wrong.push(format!("no uniform stride once more: {what:?}")),
        (Answer::ColumnOutOfRange(_), _) => wrong.push("a column is out of range once more".to_owned()),
        (Answer::Scattered, _) => wrong.push("nothing is taken for granted of elements".to_owned()),
        (Answer::Refuted(assumption), _) => wrong.push(format!("refuted once more: {assumption:?}")),
    }
    for (expression, expected) in &run.expected.after {
        let shown = section.world.eval(expression).map(|value| section.world.show(&value));
        if shown.as_ref() != Ok(expected) {
            wrong.push(format!("after it {expression} is {shown:?}, not {expected}"));
        }
    }
    wrong
}

/// A program that compiled.
struct Ready {
    section: Section,
    facts: Facts,
    compiled: Compiled,
}

impl Ready {
    fn answer(
        &self,
        text: &str,
        backend: &dyn Backend,
        executable: &dyn Executable,
    ) -> (Section, Result<Answer, String>) {
        let mut section = self.section.clone();
        let answer = machine::run(&mut section, text, &self.facts, &self.compiled.lowered, backend, executable);
        (section, answer)
    }
}

/// Compiles, as often as speculations turn out wrong, and runs on the first backend.
fn compile(program: &Program, backend: &dyn Backend) -> Result<(Ready, Outcome), Outcome> {
    let options = CodeOptions::default();
    let (mut refuted, mut strides, mut outside) = (Vec::new(), Vec::new(), None);
    for _ in 0..200 {
        let mut section = program.case.section(program.run()).map_err(Outcome::Failed)?;
        let mut facts = Facts::default();
        strides.iter().for_each(|what| facts.refute_stride(*what));
        if let Some(what) = outside {
            facts.saw_column_out_of_range(what);
        }
        refuted.iter().for_each(|assumption| facts.refute(assumption));
        let shape = shape(&section);
        let block = BlockSource { unit: section.block.clone(), scope: ScopeId(0) };
        let compiled = engine::compile(&mut section.world, &mut facts, &block, &shape, &options, Resources::default());
        let compiled = match compiled {
            Ok(compiled) => compiled,
            Err(Error::Unsupported(d) | Error::Conflict(d)) => return Err(Outcome::Refused(d.to_string())),
            Err(error) => return Err(Outcome::Failed(error.to_string())),
        };
        if std::env::var_os("IKRA_FUZZ_IR").is_some() {
            println!("{}", compiled.lowered.program);
        }
        let executable = backend.prepare(&compiled.lowered.program, &compiled.layout, &options);
        let executable = executable.map_err(|e| Outcome::Failed(e.to_string()))?;
        let ready = Ready { section, facts, compiled };
        match ready.answer(&program.case.file.text, backend, &*executable) {
            (_, Ok(Answer::Refuted(assumption))) => refuted.push(assumption),
            (_, Ok(Answer::NoUniformStride(what))) => strides.push(what),
            (_, Ok(Answer::ColumnOutOfRange(what))) => outside = Some(what),
            (mut section, answer) => {
                let outcome = program.judge(&mut section, answer);
                return Ok((ready, outcome));
            }
        }
    }
    Err(Outcome::Failed("speculations do not end".to_owned()))
}

/// What became of all programs.
struct Results {
    /// By backend: equal, overflow, refused.
    counts: Mutex<BTreeMap<&'static str, [usize; 3]>>,
    failures: Mutex<Vec<String>>,
    refusals: Mutex<BTreeMap<String, usize>>,
    report: Option<Mutex<File>>,
}

impl Results {
    fn add(&self, program: &Program, backend: &'static str, outcome: Outcome) {
        let name = &program.case.name;
        let count = |i: usize| self.counts.lock().expect("no panic").entry(backend).or_default()[i] += 1;
        let (word, text) = match outcome {
            Outcome::Equal => {
                count(0);
                ("equal", String::new())
            }
            Outcome::Overflow => {
                count(1);
                ("overflow", String::new())
            }
            Outcome::Refused(text) => {
                count(2);
                let why = text.lines().next().unwrap_or_default();
                let why = why.split_once(": ").map_or(why, |(_, rest)| rest).to_owned();
                *self.refusals.lock().expect("no panic").entry(why).or_default() += 1;
                ("refused", text)
            }
            Outcome::Failed(text) => {
                self.failures.lock().expect("no panic").push(format!("── {name} on {backend}\n{text}"));
                ("failed", text)
            }
        };
        if let Some(report) = &self.report {
            let line = format!("{name}\t{backend}\t{word}\t{}\n", text.replace(['\n', '\t'], " "));
            report.lock().expect("no panic").write_all(line.as_bytes()).expect("a report that can be written");
        }
    }
}

fn guarded<T>(part: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(part)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|t| (*t).to_owned()));
        format!("panic: {}", text.unwrap_or_default())
    })
}

/// Runs `work` on numbers below `count`, on all cores, or on as many as `IKRA_FUZZ_THREADS` says.
fn in_parallel(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let wanted = std::env::var("IKRA_FUZZ_THREADS").ok().and_then(|text| text.parse().ok());
    let cores = wanted.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    std::thread::scope(|scope| {
        for _ in 0..cores {
            let run = || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        return;
                    }
                    work(i);
                }
            };
            std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).expect("a thread");
        }
    });
}

fn check(programs: &[Program], wanted: &str) -> Results {
    let report = std::env::var_os("IKRA_FUZZ_REPORT").map(|path| Mutex::new(File::create(path).expect("a report")));
    let results = Results { counts: Mutex::default(), failures: Mutex::default(), refusals: Mutex::default(), report };
    let wants = |name: &str| wanted.is_empty() || wanted.split(',').any(|w| w == name);
    let reference = ReferenceBackend::default();
    let cpu = CpuBackend::new().expect("a CPU");
    let ready: Vec<Mutex<Option<Ready>>> = programs.iter().map(|_| Mutex::default()).collect();
    in_parallel(programs.len(), |i| {
        let program = &programs[i];
        match guarded(|| compile(program, &reference)) {
            Ok(Ok((compiled, outcome))) => {
                results.add(program, "reference", outcome);
                if wants("cpu") {
                    let outcome = guarded(|| {
                        let Compiled { lowered, layout, .. } = &compiled.compiled;
                        match cpu.prepare(&lowered.program, layout, &CodeOptions::default()) {
                            Ok(executable) => {
                                let text = &program.case.file.text;
                                let (mut section, answer) = compiled.answer(text, &cpu, &*executable);
                                program.judge(&mut section, answer)
                            }
                            Err(error) => Outcome::Failed(error.to_string()),
                        }
                    });
                    results.add(program, "cpu", outcome.unwrap_or_else(Outcome::Failed));
                }
                *ready[i].lock().expect("no panic") = Some(compiled);
            }
            Ok(Err(outcome)) => results.add(program, "reference", outcome),
            Err(panic) => results.add(program, "reference", Outcome::Failed(panic)),
        }
    });
    if wants("cuda-shim") {
        let ready = ready.into_iter().map(|r| r.into_inner().expect("no panic"));
        on_shim(programs, ready.collect(), &results);
    }
    results
}

fn on_shim(programs: &[Program], ready: Vec<Option<Ready>>, results: &Results) {
    let shim = match CudaShim::new() {
        Ok(shim) => shim.sanitized(),
        Err(error) => return println!("cuda-shim: skipped ({error})"),
    };
    let ready: Vec<(&Program, Ready)> = programs.iter().zip(ready).filter_map(|(p, r)| Some((p, r?))).collect();
    let batches: Vec<_> = ready.chunks(BATCH).map(Mutex::new).collect();
    in_parallel(batches.len(), |i| {
        let batch = batches[i].lock().expect("no panic");
        let compiled: Vec<_> = batch.iter().map(|(_, r)| (&r.compiled.lowered.program, &r.compiled.layout)).collect();
        match shim.prepare_many(&compiled) {
            Ok(executables) => {
                for ((program, ready), executable) in batch.iter().zip(&executables) {
                    let outcome = guarded(|| {
                        let (mut section, answer) = ready.answer(&program.case.file.text, &shim, &**executable);
                        program.judge(&mut section, answer)
                    });
                    results.add(program, "cuda-shim", outcome.unwrap_or_else(Outcome::Failed));
                }
            }
            Err(error) => {
                for (program, _) in batch.iter() {
                    results.add(program, "cuda-shim", Outcome::Failed(error.to_string()));
                }
            }
        }
    });
}

/// Programs of a seed, written by Ruby. None where this is no Ruby whose words the oracle speaks.
fn generate(folder: &Path, count: usize, seed: u64) -> Option<()> {
    let version = Command::new("ruby").args(["--disable=gems", "-e", "print RUBY_VERSION"]).output().ok()?;
    if !version.stdout.starts_with(b"3.1.") {
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/support/fuzz/write.rb");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = count.div_ceil(cores);
    let writers: Vec<_> = (0..count)
        .step_by(share)
        .map(|first| {
            let numbers = [seed, first as u64, (first + share).min(count) as u64 - 1];
            let mut ruby = Command::new("ruby");
            ruby.args(["--disable=gems".as_ref(), script.as_os_str(), folder.as_os_str()]);
            ruby.args(numbers.map(|n| n.to_string())).spawn().expect("Ruby runs")
        })
        .collect();
    for mut writer in writers {
        assert!(writer.wait().expect("Ruby ends").success(), "Ruby made no programs");
    }
    Some(())
}

/// The cases of a folder, and what is wrong with those that cannot be read.
fn read(folder: &Path) -> Vec<Result<Program, String>> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("a readable entry").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "rb"));
    paths.sort();
    paths.iter().map(|p| Program::read(p)).collect()
}

#[test]
fn generated_programs_agree_with_ruby() {
    let given = std::env::var_os("IKRA_FUZZ").map(PathBuf::from);
    let made = std::env::temp_dir().join(format!("ikra-fuzz-{}", std::process::id()));
    let folder = given.clone().unwrap_or_else(|| made.clone());
    if given.is_none() {
        let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
        println!("{} programs of seed {}, {NEW} of seed {seed}", SAME.1, SAME.0);
        fs::create_dir_all(&made).expect("a folder");
        for (count, seed) in [(SAME.1, SAME.0), (NEW, seed)] {
            if generate(&made, count, seed).is_none() {
                return println!("skipped: no Ruby 3.1");
            }
        }
    }
    let (programs, unread): (Vec<_>, Vec<_>) = read(&folder).into_iter().partition(Result::is_ok);
    let programs: Vec<Program> = programs.into_iter().flatten().collect();
    let results = check(&programs, &std::env::var("IKRA_FUZZ_BACKENDS").unwrap_or_default());
    for (backend, [equal, overflow, refused]) in &*results.counts.lock().expect("no panic") {
        println!("{backend}: {equal} as Ruby, {overflow} beyond 64 bits, {refused} refused");
    }
    let refusals = results.refusals.into_inner().expect("no panic");
    let mut refused: Vec<_> = refusals.iter().collect();
    refused.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (why, count) in &refused {
        println!("{count:6} × {why}");
    }
    let mut failures = results.failures.into_inner().expect("no panic");
    failures.extend(unread.into_iter().filter_map(Result::err));
    let count = refused.iter().map(|(_, count)| **count).sum::<usize>();
    assert!(failures.is_empty(), "{} failed:\n\n{}\n", failures.len(), failures.join("\n\n"));
    assert!(given.is_some() || count * 1000 <= REFUSED * programs.len(), "{count} of {} refused", programs.len());
    if given.is_none() {
        fs::remove_dir_all(made).expect("a folder of ours");
    }
}
