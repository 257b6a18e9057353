//! Runs every numeric method on difficult values in the interpreter, and compares with Ruby's answers.
//!
//! The tests call the `ruby` on the path (or the one that the variable `RUBY` names). If there is none, the tests that
//! need it say so, and only the answers in `answers.txt` are compared. `UPDATE_SNAPSHOTS=1` writes that file anew, with
//! Ruby 3.1.

use super::divmod;
use super::questions::{Callee, FEW, MANY, Question, SYMBOL, Word, math_questions, questions, random_questions};
use crate::backend::reference::ReferenceBackend;
use crate::backend::{Backend, CancelToken, Executable, Launch, Outcome, Timings, TrapRecord, philox};
use crate::config::{CodeOptions, Overflow};
use crate::ir::build::Builder;
use crate::ir::{Cmp, Column, ColumnId, Ctx, FuncId, Jobs, Op, Program, Scalar, Site, Space, Stmt, Storage, Trap};
use crate::layout::Layout;
use crate::lower::value::Val;
use crate::lower::{Cx, Shared};
use crate::memory::column::HostColumn;
use crate::types::numeric::{Kind, Method, Rand, divmod_types};
use crate::types::{Prims, Repr, Tag, Ty, Unit};
use std::collections::HashMap;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Columns `0..3` are operands, followed by the tags and payloads of up to two results.
const COLUMNS: usize = 7;

/// A program that runs a test case for every row.
struct Asking {
    program: Program,
    results: usize,
}

impl Asking {
    /// None if the call is not supported.
    fn new(question: &Question, options: CodeOptions) -> Option<Asking> {
        let mut shared = Shared { options, ..Shared::default() };
        // The entry comes first, so that helpers are numbered after it.
        shared.funcs.push(Builder::new("entry".into(), vec![]).finish());
        let mut b = Builder::new("entry".into(), vec![]);
        let job = b.param(Scalar::I64, None);
        let tick = b.param(Scalar::I64, None);
        b.param(Scalar::I64, None);
        b.push(Stmt::Begin { index: job.into(), tick: tick.into(), check: true });
        let row = b.i64(Op::Ctx(Ctx::Index), &[]);
        let operands: Vec<Val> = question
            .operands
            .iter()
            .enumerate()
            .map(|(i, word)| {
                if question.constants && (i > 0 || question.operands.len() == 1) {
                    return word.constant();
                }
                match word {
                    Word::Int(_) => Val::Int(b.load(Scalar::I64, ColumnId::new(i), row)),
                    Word::Float(_) => {
                        let bits = b.load(Scalar::I64, ColumnId::new(i), row);
                        Val::Float(b.f64(Op::FloatFromBits, &[bits]))
                    }
                    Word::IntRange(.., exclusive) | Word::FloatRange(.., exclusive) => {
                        let [from, to] = [i, i + 1].map(|i| b.load(Scalar::I64, ColumnId::new(i), row));
                        // Known only at run time.
                        let exclusive = b.icmp(if *exclusive { Cmp::Eq } else { Cmp::Ne }, row, row);
                        if word.kind() == Kind::IntRange {
                            Val::IntRange { from, to, exclusive }
                        } else {
                            let [from, to] = [from, to].map(|bits| b.f64(Op::FloatFromBits, &[bits]));
                            Val::FloatRange { from, to, exclusive }
                        }
                    }
                    other => other.constant(),
                }
            })
            .collect();
        let kinds: Vec<Kind> = question.operands.iter().map(|w| w.kind()).collect();
        let first = usize::from(!matches!(question.callee, Callee::Rand(_)));
        let literal = match question.operands.get(first) {
            Some(Word::Int(n)) if question.constants => Some(*n),
            _ => None,
        };
        let mut cx = Cx { b, shared: &mut shared, path: "test.rb".into(), line: 1 };
        let (values, types) = match question.callee {
            Callee::Method(method) => {
                let ty = method.result(kinds[0], &kinds[1..], literal).ok()?;
                (vec![method.lower(&mut cx, operands[0], &operands[1..], literal)], vec![ty])
            }
            Callee::Divmod => {
                let (q, r) = divmod(&mut cx, operands[0], operands[1]);
                let (tq, tr) = divmod_types(kinds[0], kinds[1]);
                (vec![q, r], vec![tq, tr])
            }
            Callee::Math(function) => (vec![function.lower(&mut cx, &operands)], vec![function.result(&kinds)]),
            Callee::Rand(rand) => {
                let ty = rand.result(&kinds, literal).ok()?;
                (vec![rand.lower(&mut cx, &operands, literal)], vec![ty])
            }
            Callee::Conversion(conversion) => {
                (vec![conversion.lower(&mut cx, operands[0])], vec![conversion.result(kinds[0])])
            }
        };
        for (i, (value, ty)) in values.iter().zip(&types).enumerate() {
            assert!(is_of(*value, ty), "{value:?} is not of {ty:?}: {}", question.text());
            assert_eq!(cx.b.ended(), ty.is_never(), "{ty:?}: {}", question.text());
            let (tag, payload) = value.tagged(&mut cx.b);
            let tag = cx.b.i64(Op::Widen, &[tag]);
            cx.b.store(ColumnId::new(3 + 2 * i), row, tag);
            cx.b.store(ColumnId::new(4 + 2 * i), row, payload);
        }
        let entry = cx.b.finish();
        let uses_random = matches!(question.callee, Callee::Rand(_));
        Some(Asking { results: values.len(), program: program(shared, entry, uses_random) })
    }

    /// The results for rows of operands.
    fn run(&self, backend: &dyn Backend, executable: &dyn Executable, rows: &[&Question]) -> Vec<String> {
        let mut answers = Vec::new();
        // A trap ends the launch; the rows after it go into the next launch.
        while answers.len() < rows.len() {
            let rest = &rows[answers.len()..rows.len().min(answers.len() + 200)];
            let mut columns = vec![HostColumn::zeroed(Storage::I64, rest.len()); COLUMNS];
            for (row, question) in rest.iter().enumerate() {
                for (i, word) in question.operands.iter().enumerate() {
                    let (first, second) = word.bits();
                    columns[i].view_mut::<i64>()[row] = first;
                    if let Some(second) = second {
                        columns[i + 1].view_mut::<i64>()[row] = second;
                    }
                }
            }
            let (cancel, mut timings) = (CancelToken::default(), Timings::default());
            let plain = Launch::of(rest.len() as u64, &mut columns, &[0; COLUMNS], &[], &cancel, &mut timings);
            let launch = Launch { seed: 1, ..plain };
            let outcome = backend.launch(executable, launch).expect("a launch");
            let (done, trapped) = match outcome {
                Outcome::Done => (rest.len(), None),
                Outcome::Trapped(trap) => (trap.key.index() as usize, Some(trap)),
                Outcome::Cancelled => unreachable!("nothing cancels"),
            };
            for row in 0..done {
                let at = |column: usize| columns[column].view::<i64>()[row];
                let values: Vec<String> = (0..self.results).map(|i| tagged(at(3 + 2 * i), at(4 + 2 * i))).collect();
                answers.push(values.join(" "));
            }
            answers.extend(trapped.map(|trap| self.exception(&trap)));
        }
        answers
    }

    /// Class and message, as the host makes them.
    fn exception(&self, trap: &TrapRecord) -> String {
        let Site { trap: kind, operands, .. } = &self.program.sites[trap.site.index()];
        let shown = operands.first().map(|repr| shown(*repr, trap.words[0]));
        let shown = shown.as_deref().unwrap_or("");
        match kind {
            Trap::ZeroDivision => "ZeroDivisionError: divided by 0".into(),
            Trap::IntegerOverflow(_) => "big".into(),
            Trap::FloatDomain => format!("FloatDomainError: {shown}"),
            Trap::OutOfRange => {
                format!("RangeError: {}", crate::ir::out_of_range(f64::from_bits(trap.words[0])))
            }
            Trap::Raise { class, message } => format!("{class}: {message}"),
            Trap::Mention { class, before, after } | Trap::Limit { class, before, after } => {
                format!("{class}: {before}{shown}{after}")
            }
            Trap::Describe { class, before, after } => {
                let class_or_constant = match operands[..] {
                    [Repr::Sym] => "Symbol",
                    [Repr::Int | Repr::Float] => unreachable!("numbers convert"),
                    _ => shown,
                };
                format!("{class}: {before}{class_or_constant}{after}")
            }
            other => format!("{other:?}"),
        }
    }
}

fn program(shared: Shared, entry: crate::ir::Func, uses_random: bool) -> Program {
    let mut funcs = shared.funcs;
    funcs[0] = entry;
    let column = |i: usize| Column {
        name: format!("c{i}"),
        space: Space::Element,
        storage: Storage::I64,
        read: true,
        refers: None,
        ranged: None,
        roundable: false,
        marks: None,
        written: true,
    };
    Program {
        name: "numbers".into(),
        funcs,
        entry: FuncId(0),
        columns: (0..COLUMNS).map(column).collect(),
        params: vec![],
        heaps: Vec::new(),
        strides: Vec::new(),
        extents: Vec::new(),
        sites: shared.sites,
        jobs: Jobs::Identity,
        few: false,
        fused_ticks: false,
        uses_random,
        rescued: Default::default(),
    }
}

/// Whether a value has the form of its type.
fn is_of(value: Val, ty: &Ty) -> bool {
    match value {
        Val::Unit(Unit::Never) => ty.is_never(),
        Val::Unit(Unit::Nil) => *ty == Ty::nil(),
        Val::Unit(Unit::True) => *ty == Ty::prim(Prims::TRUE),
        Val::Unit(Unit::False) => *ty == Ty::prim(Prims::FALSE),
        Val::Bool(_) => *ty == Ty::bool(),
        Val::Int(_) => *ty == Ty::int(),
        Val::Float(_) => *ty == Ty::float(),
        Val::Union { .. } => ty.atoms().len() > 1 && *ty != Ty::bool(),
        _ => false,
    }
}

fn float(x: f64) -> String {
    if x.is_nan() { "fnan".into() } else { format!("f{:x}", x.to_bits()) }
}

fn tagged(tag: i64, payload: i64) -> String {
    match tag as i32 {
        Tag::NIL => "nil".into(),
        Tag::TRUE => "true".into(),
        Tag::FALSE => "false".into(),
        Tag::INT => format!("i{payload}"),
        Tag::FLOAT => float(f64::from_bits(payload as u64)),
        other => format!("tag {other}"),
    }
}

/// A value as in a message: special constants and Floats inspected, others by their class.
fn shown(repr: Repr, word: u64) -> String {
    match repr {
        Repr::Unit(Unit::Nil) => "nil".into(),
        Repr::Unit(Unit::True) => "true".into(),
        Repr::Unit(Unit::False) => "false".into(),
        Repr::Unit(Unit::Module(_)) => "Module".into(),
        Repr::Int => (word as i64).to_string(),
        Repr::Float => inspect(f64::from_bits(word)),
        Repr::Sym if word == SYMBOL as u64 => ":a".into(),
        other => format!("{other:?}"),
    }
}

/// Ruby's Float#inspect.
fn inspect(x: f64) -> String {
    let size = x.abs();
    if x.is_nan() {
        "NaN".into()
    } else if x.is_infinite() {
        if x > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else if size == 0.0 || (1e-4..1e15).contains(&size) {
        format!("{x:?}")
    } else {
        let text = format!("{x:e}");
        let (mantissa, exponent) = text.split_once('e').expect("an exponent");
        let dot = if mantissa.contains('.') { "" } else { ".0" };
        let exponent: i32 = exponent.parse().expect("a number");
        format!("{mantissa}{dot}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
    }
}

/// The results of all cases of a list, in order; None for unsupported ones.
fn ask(backend: &dyn Backend, questions: &[Question], options: CodeOptions) -> Vec<Option<String>> {
    ask_prepared(backend, questions, options, |asked| {
        let prepare = |asking: &Asking| {
            let layout = Layout::structure_of_arrays(&asking.program);
            backend.prepare(&asking.program, &layout, &options).expect("a well-formed program")
        };
        asked.iter().map(prepare).collect()
    })
}

/// As [`ask`], but all programs are prepared at once.
fn ask_prepared(
    backend: &dyn Backend,
    questions: &[Question],
    options: CodeOptions,
    prepare: impl FnOnce(&[Asking]) -> Vec<Arc<dyn Executable>>,
) -> Vec<Option<String>> {
    let mut shapes: HashMap<String, Vec<usize>> = HashMap::new();
    for (i, question) in questions.iter().enumerate() {
        shapes.entry(question.shape()).or_default().push(i);
    }
    let (rows, asking): (Vec<Vec<usize>>, Vec<Asking>) =
        shapes.into_values().filter_map(|rows| Asking::new(&questions[rows[0]], options).map(|a| (rows, a))).unzip();
    let mut answers = vec![None; questions.len()];
    for ((rows, asking), executable) in rows.iter().zip(&asking).zip(prepare(&asking)) {
        let asked: Vec<&Question> = rows.iter().map(|i| &questions[*i]).collect();
        for (i, answer) in rows.iter().zip(asking.run(backend, &*executable, &asked)) {
            answers[*i] = Some(answer);
        }
    }
    answers
}

/// Ruby's answers; None if there is no Ruby.
fn ask_ruby(questions: &[Question]) -> Option<Vec<String>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lower/numbers/oracle.rb");
    let mut ruby = Command::new(std::env::var_os("RUBY").unwrap_or("ruby".into()))
        .args(["-W0", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut stdin = ruby.stdin.take().expect("a pipe");
    let text: String = questions.iter().map(|q| q.text() + "\n").collect();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = ruby.wait_with_output().expect("Ruby ends");
    writer.join().expect("no panic").expect("Ruby reads everything");
    assert!(output.status.success(), "the oracle failed");
    let answers: Vec<String> = String::from_utf8(output.stdout).expect("UTF-8").lines().map(str::to_owned).collect();
    assert_eq!(answers.len(), questions.len(), "one answer to each question");
    Some(answers)
}

fn ruby_version() -> Option<(u8, u8)> {
    let ruby = std::env::var_os("RUBY").unwrap_or("ruby".into());
    let output = Command::new(ruby).args(["-e", "print RUBY_VERSION"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut parts = text.split('.').map_while(|p| p.parse().ok());
    Some((parts.next()?, parts.next()?))
}

/// Whether a result is right: Ruby's, or one of the declared exceptions.
fn agrees(question: &Question, ours: &str, ruby: &str, overflow: Overflow) -> bool {
    let message = |part: &str| ours.starts_with("RangeError: ") && ours.contains(part);
    let huge = |w: &Word| matches!(w, Word::Float(x) if x.abs() >= 9.2e18);
    let many = |w: &Word| matches!(w, Word::Int(15..)) || matches!(w, Word::Float(x) if *x >= 15.0);
    let digits =
        matches!(question.callee, Callee::Method(Method::Floor | Method::Ceil | Method::Round | Method::Truncate));
    if ours == ruby {
        return true;
    }
    if let Callee::Rand(_) = question.callee {
        // Another generator: only the kind of the number must be the same. Random's message names an empty Range.
        let kind = |answer: &str| answer.chars().next();
        let invalid = "ArgumentError: invalid argument - ";
        return ours.starts_with(invalid) && ruby.starts_with(invalid)
            || ours == "big" && (ruby.starts_with("big ") || huge(&question.operands[0]))
            || !ours.contains(':') && !ruby.contains(':') && kind(ours) == kind(ruby);
    }
    match ruby {
        "huge" => true,
        "Rational" => message("is a Rational"),
        "Complex" => message("is a Complex"),
        "RangeError: shift width too big" => ours == "big",
        _ if ruby.starts_with("big ") && ours == "big" => true,
        _ if ruby.starts_with("big ") && overflow == Overflow::Wrap => Some(&ruby["big ".len()..]) == ours.get(1..),
        // Ruby refuses Integers of many megabytes.
        "f7ff0000000000000" | "ffff0000000000000" if question.callee.is_power() => {
            ours == "big" || overflow == Overflow::Wrap
        }
        "f0" | "f8000000000000000" if question.callee.is_power() => message("is a Rational"),
        // A Float beyond 64 bits that Ruby converts as a step to a small result.
        _ if ours == "big" && question.operands.last().is_some_and(huge) => true,
        _ if digits && message("more than 14 digits") => many(&question.operands[1]),
        // A Float that is within 64 bits only after rounding, and zeros beyond all Integers: Ruby's bug 20654.
        _ if digits && ours == "big" => huge(&question.operands[0]) || matches!(question.operands[1], Word::Int(..-18)),
        // The identity of numbers that Ruby allocates.
        _ if question.name == "equal?" => message("identity"),
        _ if digits && ours == "i0" && ruby.starts_with("big ") => matches!(question.operands[1], Word::Int(..-18)),
        _ if question.name == "[]" && ours.starts_with("TypeError: no implicit conversion") => {
            ruby.starts_with("TypeError: no implicit conversion")
        }
        // Integers on Ruby's heap convert an index by another function.
        _ if ruby.ends_with("out of range of integer") => question.name == "[]" && ours.starts_with("FloatDomainError"),
        // Ruby names Integers on its heap by their class.
        _ if ruby.ends_with("with Integer failed") => ours.contains("comparison of") && ours.ends_with(" failed"),
        _ if ours == "big" => {
            // Bits of an Integer that were shifted beyond 64 in between.
            question.name == "[]"
                && (question.operands.len() == 3 || matches!(question.operands[1], Word::IntRange(..)))
        }
        _ => false,
    }
}

/// Panics with the first differences.
fn compare(questions: &[Question], ours: &[Option<String>], ruby: &[String], overflow: Overflow) {
    let wrong: Vec<String> = questions
        .iter()
        .zip(ours)
        .zip(ruby)
        .filter_map(|((question, ours), ruby)| {
            let ours = ours.as_ref()?;
            (!agrees(question, ours, ruby, overflow)).then(|| {
                let constants = if question.constants { " (constant)" } else { "" };
                format!("{}{constants}: {ours}, and in Ruby {ruby}", question.text())
            })
        })
        .collect();
    let shown = wrong[..wrong.len().min(60)].join("\n");
    assert!(wrong.is_empty(), "{} of {} differ:\n{shown}", wrong.len(), questions.len());
}

fn options(ruby: (u8, u8)) -> CodeOptions {
    CodeOptions { ruby, ..CodeOptions::default() }
}

/// Ruby's version; or None, after printing which test is skipped.
fn ruby_or_skip(test: &str) -> Option<(u8, u8)> {
    let version = ruby_version();
    if version.is_none() {
        eprintln!("SKIPPED: {test}: there is no ruby on the path");
    }
    version
}

fn compare_with_ruby(backend: &dyn Backend, questions: &[Question], options: CodeOptions) {
    let ruby = ask_ruby(questions).expect("Ruby is there");
    compare(questions, &ask(backend, questions, options), &ruby, options.overflow);
}

#[test]
fn every_method_answers_as_ruby() {
    let Some(version) = ruby_or_skip("every_method_answers_as_ruby") else { return };
    let questions = [questions(&MANY, version), math_questions()].concat();
    compare_with_ruby(&ReferenceBackend::default(), &questions, options(version));
}

#[test]
fn numbers_of_all_sizes_answer_as_ruby() {
    let Some(version) = ruby_or_skip("numbers_of_all_sizes_answer_as_ruby") else { return };
    let seed = std::env::var("IKRA_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let count = std::env::var("IKRA_QUESTIONS").ok().and_then(|s| s.parse().ok()).unwrap_or(5_000);
    compare_with_ruby(&ReferenceBackend::default(), &random_questions(seed, count), options(version));
}

#[test]
fn wrapping_arithmetic_keeps_rubys_low_bits() {
    use Method::*;
    let Some(version) = ruby_or_skip("wrapping_arithmetic_keeps_rubys_low_bits") else { return };
    let wraps = [Add, Sub, Mul, Div, IntDiv, Modulo, Remainder, Pow, Neg, Abs, Abs2, Succ, Pred, Shl, Shr, Gcd, Lcm];
    let mut questions = questions(&MANY, version);
    questions.retain(|q| {
        let ints = q.operands.iter().all(|w| w.kind() == Kind::Int);
        ints && matches!(q.callee, Callee::Method(method) if wraps.contains(&method))
    });
    assert!(questions.len() > 1_000);
    let options = CodeOptions { overflow: Overflow::Wrap, ..options(version) };
    compare_with_ruby(&ReferenceBackend::default(), &questions, options);
}

/// Ruby's answers to a few cases, for machines without Ruby.
const ANSWERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lower/numbers/answers.txt");

#[test]
fn the_checked_in_answers_are_given() {
    let version = (3, 1);
    let mut questions = questions(&FEW, version);
    questions.retain(|q| !q.constants && !matches!(q.callee, Callee::Rand(_)));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() && ruby_version() == Some(version) {
        let answers = ask_ruby(&questions).expect("Ruby is there");
        let lines = questions.iter().zip(answers).map(|(q, answer)| format!("{} => {answer}\n", q.text()));
        std::fs::write(ANSWERS, lines.collect::<String>()).expect("a writable source folder");
    }
    let text = std::fs::read_to_string(ANSWERS).expect("answers.txt");
    let kept: HashMap<&str, &str> = text.lines().filter_map(|line| line.split_once(" => ")).collect();
    let ruby: Vec<String> = questions
        .iter()
        .map(|q| kept.get(q.text().as_str()).unwrap_or_else(|| panic!("no answer to {}", q.text())).to_string())
        .collect();
    compare(&questions, &ask(&ReferenceBackend::default(), &questions, options(version)), &ruby, Overflow::Raise);
}

/// Panics with the first cases in which a backend differs from the interpreter.
fn compare_with_reference(questions: &[Question], answers: &[Option<String>], options: CodeOptions) {
    let reference = ask(&ReferenceBackend::default(), questions, options);
    let wrong: Vec<String> = questions
        .iter()
        .zip(answers.iter().zip(&reference))
        .filter(|(_, (a, b))| a != b)
        .map(|(q, (a, b))| format!("{}: {a:?} and {b:?}", q.text()))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), questions.len(), wrong[..wrong.len().min(40)].join("\n"));
}

#[cfg(feature = "cpu")]
#[test]
fn the_cpu_answers_as_the_interpreter() {
    let cpu = crate::backend::cpu::CpuBackend::with_threads(2).expect("this host is supported");
    let options = CodeOptions::default();
    let mut questions = questions(&FEW, options.ruby);
    questions.retain(|q| !q.constants);
    questions.extend(random_questions(2, 1_000));
    questions.extend(math_questions());
    compare_with_reference(&questions, &ask(&cpu, &questions, options), options);
}

/// The CUDA C++ of every method with numbers, run on the host, where undefined arithmetic aborts the process.
#[cfg(feature = "cuda")]
#[test]
fn cuda_answers_as_the_interpreter() {
    use crate::backend::cuda::shim::CudaShim;
    let Ok(shim) = CudaShim::new().map(CudaShim::sanitized) else {
        eprintln!("SKIPPED: cuda_answers_as_the_interpreter: there is no C++ compiler");
        return;
    };
    let options = CodeOptions::default();
    let mut questions = questions(&MANY, options.ruby);
    questions.retain(|q| !q.constants && q.name == q.callee.name() && q.operands.iter().all(|w| w.kind().is_number()));
    let answers = ask_prepared(&shim, &questions, options, |asked| {
        let layouts: Vec<Layout> = asked.iter().map(|a| Layout::structure_of_arrays(&a.program)).collect();
        let programs: Vec<_> = asked.iter().map(|a| &a.program).zip(&layouts).collect();
        shim.prepare_many(&programs).expect("well-formed programs")
    });
    compare_with_reference(&questions, &answers, options);
}

/// The first 64-bit draws of an element.
fn draws(index: usize) -> impl Iterator<Item = u64> {
    (0..).map(move |draw| philox::draw(1, 0, 0, index as u32, draw))
}

/// The formulae for a Float below 1.0, and for one up to it, from the documentation of `random`.
fn unit(bits: u64) -> f64 {
    let (w0, w1) = (bits & 0xffff_ffff, bits >> 32);
    ((w0 >> 5) as f64 * 67_108_864.0 + (w1 >> 6) as f64) * (1.0 / 9_007_199_254_740_992.0)
}

fn closed_unit(bits: u64) -> f64 {
    let turned = u128::from(bits.rotate_left(32));
    ((turned * ((1 << 53) + 1)) >> 64) as u64 as f64 / 9_007_199_254_740_992.0
}

/// The formula for an Integer below `n`.
fn below(n: u128, mut draws: impl Iterator<Item = u64>) -> i128 {
    loop {
        let product = u128::from(draws.next().expect("no end")) * n;
        if product & u128::from(u64::MAX) >= (1 << 64) % n {
            return (product >> 64) as i128;
        }
    }
}

#[test]
fn draws_are_as_documented() {
    use Word::{Float, FloatRange, Int, IntRange};
    let int = |n: u128| Box::new(move |i: usize| format!("i{}", below(n, draws(i)))) as Box<dyn Fn(usize) -> String>;
    let first = |i: usize| draws(i).next().expect("no end");
    let float_of =
        |f: fn(f64) -> f64| Box::new(move |i: usize| float(f(unit(first(i))))) as Box<dyn Fn(usize) -> String>;
    let closed =
        |f: fn(f64) -> f64| Box::new(move |i: usize| float(f(closed_unit(first(i))))) as Box<dyn Fn(usize) -> String>;
    let range = |from: i128, n: u128| {
        Box::new(move |i: usize| format!("i{}", from + below(n, draws(i)))) as Box<dyn Fn(usize) -> String>
    };
    let nil = || Box::new(|_: usize| "nil".to_owned()) as Box<dyn Fn(usize) -> String>;
    let (max, min) = (i64::MAX, i64::MIN);
    let kernel = [
        (Int(1), int(1)),
        (Int(6), int(6)),
        (Int(-7), int(7)),
        (Int(1 << 40), int(1 << 40)),
        // Nearly one draw in three is rejected.
        (Int(6_000_000_000_000_000_000), int(6_000_000_000_000_000_000)),
        (Int(max), int(max as u128)),
        (Int(min), int(1 << 63)),
        (Int(0), float_of(|u| u)),
        (Float(-2.9), int(2)),
        (Float(0.9), float_of(|u| u)),
        (Word::Nil, float_of(|u| u)),
        (IntRange(1, 6, false), range(1, 6)),
        (IntRange(-3, 7, true), range(-3, 10)),
        (IntRange(5, 5, false), range(5, 1)),
        (IntRange(5, 5, true), nil()),
        (IntRange(6, 5, false), nil()),
        (IntRange(min, max, false), range(min.into(), 1 << 64)),
        (IntRange(min, max, true), range(min.into(), u64::MAX.into())),
        (IntRange(-6_000_000_000_000_000_000, 7_000_000_000_000_000_000, false), {
            range(-6_000_000_000_000_000_000, 13_000_000_000_000_000_001)
        }),
        (FloatRange(-2.5, 4.0, true), float_of(|u| u * 6.5 + -2.5)),
        (FloatRange(-2.5, 4.0, false), closed(|u| u * 6.5 + -2.5)),
        (FloatRange(-1e308, 1e308, false), closed(|u| (u - 0.5) * 1e308 * 2.0 + 0.0)),
        (FloatRange(2.5, 2.5, false), Box::new(|_: usize| float(2.5))),
        (FloatRange(2.5, 2.5, true), nil()),
        (FloatRange(2.5, -2.5, false), nil()),
    ];
    let random = [
        (Int(6), int(6)),
        (Float(2.5), float_of(|u| u * 2.5)),
        (Float(0.0), float_of(|u| u)),
        (IntRange(1, 6, false), range(1, 6)),
        (FloatRange(0.0, 1.0, false), closed(|u| u)),
    ];
    let all = kernel.iter().map(|c| (Rand::Kernel, c)).chain(random.iter().map(|c| (Rand::Random, c)));
    for (rand, (arg, expected)) in all {
        for constants in [false, true] {
            let question = Question { callee: Callee::Rand(rand), name: "rand", operands: vec![*arg], constants };
            let answers = ask(&ReferenceBackend::default(), &vec![question.clone(); 100], CodeOptions::default());
            for (i, answer) in answers.iter().enumerate() {
                let expected = expected(i);
                assert_eq!(answer.as_ref(), Some(&expected), "{} ({constants}), element {i}", question.text());
            }
        }
    }
}
