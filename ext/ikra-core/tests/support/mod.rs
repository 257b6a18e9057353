//! What the tests over `tests/cases` share.

#![allow(dead_code, reason = "each test binary uses its part")]

pub mod machine;
pub mod random_program;

use ikra_core::world::fixture::Case;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// `tests/`.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Files of cases, in a fixed order.
pub fn case_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for topic in entries(&folder().join("cases")).into_iter().filter(|p| p.is_dir()) {
        files.extend(entries(&topic).into_iter().filter(|p| p.extension().is_some_and(|e| e == "rb")));
    }
    files
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = found.map(|entry| entry.expect("a readable entry").path()).collect();
    paths.sort();
    paths
}

/// All cases; with `CASE=topic/name` only those whose name begins so.
pub fn cases() -> Vec<Case> {
    let only = std::env::var("CASE").unwrap_or_default();
    let root = folder().join("cases");
    let mut cases = Vec::new();
    for file in case_files() {
        let name = file.strip_prefix(&root).expect("a file below the cases").with_extension("").display().to_string();
        if name.starts_with(&only) {
            let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let path = format!("{name}.rb");
            cases.push(Case::parse(&name, &path, &text).unwrap_or_else(|e| panic!("{e}")));
        }
    }
    cases
}

/// Collects what is wrong with many cases, to report all of it at once.
#[derive(Default)]
pub struct Failures(Vec<String>);

impl Failures {
    pub fn add(&mut self, case: &str, what: impl std::fmt::Display) {
        self.0.push(format!("── {case}\n{what}"));
    }
    /// Runs a part of a test; a panic in it is a failure like others.
    pub fn guard(&mut self, case: &str, part: impl FnOnce(&mut Failures)) {
        let mut inner = Failures::default();
        let outcome = catch_unwind(AssertUnwindSafe(|| part(&mut inner)));
        self.0.append(&mut inner.0);
        if let Err(panic) = outcome {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|t| (*t).to_owned()));
            self.add(case, format!("panic: {}", text.unwrap_or_default()));
        }
    }
    /// These and those of `other`.
    pub fn and(mut self, mut other: Failures) -> Self {
        self.0.append(&mut other.0);
        self
    }
    pub fn check(self) {
        assert!(self.0.is_empty(), "{} failed:\n\n{}\n", self.0.len(), self.0.join("\n\n"));
    }
}

/// Compares text with its snapshot `tests/snapshots/<stage>/<name>`; `UPDATE_SNAPSHOTS=1` writes it instead.
pub fn check_snapshot(failures: &mut Failures, stage: &str, name: &str, text: &str) {
    let path = folder().join("snapshots").join(stage).join(format!("{name}.txt"));
    let text = format!("{}\n", text.trim_end());
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::create_dir_all(path.parent().expect("a path below a folder")).expect("a folder to write to");
        fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        return;
    }
    let old = fs::read_to_string(&path).unwrap_or_default();
    if old != text {
        let (line, (before, after)) = first_difference(&old, &text);
        failures
            .add(name, format!("{stage} differs from {} in line {line}:\n  - {before}\n  + {after}", path.display()));
    }
}

/// Compares a number with the one that the header of a case gives; `UPDATE_SNAPSHOTS=1` writes it there instead.
pub fn check_number(failures: &mut Failures, name: &str, key: &str, old: usize, new: usize) {
    if old == new {
        return;
    }
    let (before, after) = (format!("# {key}: {old}"), format!("# {key}: {new}"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_none() {
        return failures.add(name, format!("the case says `{before}`, and it is {new}"));
    }
    let path = folder().join("cases").join(format!("{name}.rb"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    fs::write(&path, text.replacen(&before, &after, 1)).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
}

fn first_difference<'a>(old: &'a str, new: &'a str) -> (usize, (&'a str, &'a str)) {
    let (mut a, mut b) = (old.lines(), new.lines());
    let mut line = 1;
    loop {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) if x == y => line += 1,
            (x, y) => return (line, (x.unwrap_or("(nothing)"), y.unwrap_or("(nothing)"))),
        }
    }
}
