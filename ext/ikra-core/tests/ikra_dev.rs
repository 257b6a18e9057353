//! The program `ikra-dev`: every stage of one case, and wrong arguments.

#![cfg(all(feature = "cpu", feature = "cuda"))]

mod support;

use std::fs;
use std::process::{Command, Output};
use support::folder;

fn ikra_dev(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ikra-dev")).args(arguments).output().expect("the program runs")
}

/// What it prints of `integers/division`.
fn stage(name: &str) -> String {
    let file = folder().join("cases/integers/division.rb").display().to_string();
    let output = ikra_dev(&[&file, "--stage", name]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{name}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The message for arguments that it refuses, and the exit status.
fn refusal(arguments: &[&str]) -> (String, Option<i32>) {
    let output = ikra_dev(arguments);
    assert!(output.stdout.is_empty(), "{arguments:?} prints something");
    (String::from_utf8(output.stderr).expect("UTF-8"), output.status.code())
}

#[test]
fn stages_are_those_of_the_snapshots() {
    for (name, snapshot) in
        [("syntax", "ast"), ("types", "types"), ("ir", "ir"), ("passes", "passes"), ("cuda", "cuda")]
    {
        let path = folder().join(format!("snapshots/{snapshot}/integers/division.txt"));
        assert_eq!(stage(name), fs::read_to_string(path).expect("a snapshot"), "{name}");
    }
}

#[test]
fn passes_are_seen_one_by_one() {
    assert!(stage("after:unwind").starts_with("program "));
    assert_eq!(stage("after:expand"), stage("passes"), "the last of the common passes");
    // gvn runs more than once, and the last time is the one without a number
    assert_ne!(stage("after:gvn:1"), stage("after:gvn"));
    assert_eq!(stage("after:gvn:7"), stage("after:gvn"));
    for of_a_backend in ["after:references", "after:merge_checks", "after:widths"] {
        assert!(stage(of_a_backend).starts_with("program "), "{of_a_backend}");
    }
}

#[test]
fn machine_code_needs_no_device() {
    assert!(stage("clif").contains("function "));
    let file = folder().join("cases/integers/division.rb").display().to_string();
    let output = ikra_dev(&[&file, "--stage", "ptx"]);
    if output.status.success() {
        assert!(String::from_utf8_lossy(&output.stdout).contains(".visible .entry"));
    } else {
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("libnvrtc") && errors.contains("nvidia-cuda-nvrtc"), "{errors}");
    }
}

#[test]
fn a_program_that_is_refused_is_an_error() {
    let file = folder().join("cases/comparisons/refused.rb").display().to_string();
    let (errors, status) = refusal(&[&file, "--stage", "ir"]);
    assert_eq!(status, Some(1));
    let snapshot = folder().join("snapshots/errors/comparisons/refused.txt");
    assert_eq!(errors, fs::read_to_string(snapshot).expect("a snapshot"));
}

#[test]
fn wrong_arguments_are_told() {
    let file = folder().join("cases/integers/division.rb").display().to_string();
    for (arguments, part) in [
        (vec![], "no file"),
        (vec![&*file], "no --stage: the stages are syntax, types, ir"),
        (vec![&*file, "--stage"], "--stage takes one of syntax, types, ir"),
        (vec![&*file, "--stage", "asm"], "no stage asm: the stages are syntax, types, ir"),
        (vec![&*file, "--stage", "after:magic"], "no pass magic: the passes are demanded_bits, unwind"),
        (vec![&*file, "--stage", "after:gvn:0"], "a number from 1"),
        (vec![&*file, "--stage", "ir", "--fast"], "no option --fast"),
        (vec![&*file, "--stage", "ir", "--run", "0"], "--run takes a number from 1"),
        (vec![&*file, "other.rb", "--stage", "ir"], "one file, not also other.rb"),
    ] {
        let (errors, status) = refusal(&arguments);
        assert_eq!(status, Some(2), "{arguments:?}");
        assert!(errors.contains(part) && errors.contains("usage: ikra-dev FILE.rb"), "{arguments:?}: {errors}");
    }
    for (arguments, part) in [
        (vec!["missing.rb", "--stage", "ir"], "missing.rb: "),
        (vec![&*file, "--stage", "ir", "--run", "99"], "its header must describe one"),
        (vec![&*file, "--stage", "after:gvn:99"], "gvn runs "),
    ] {
        let (errors, status) = refusal(&arguments);
        assert_eq!(status, Some(1), "{arguments:?}");
        assert!(errors.contains(part), "{arguments:?}: {errors}");
    }
}
