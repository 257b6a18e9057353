//! `ikra-dev FILE.rb --stage STAGE`: prints a stage of a golden case (docs/dev/loops.md). It needs no Ruby.

use ikra_core::engine::stages::{self, Stage};
use ikra_core::world::fixture::Case;
use std::io::{self, Write};
use std::process::ExitCode;

const USAGE: &str = "usage: ikra-dev FILE.rb --stage STAGE [--run N]

FILE.rb is a golden case (ext/ikra-core/tests/cases). --run N takes its N-th run, from 1, not the first.";

struct Arguments {
    file: String,
    stage: Stage,
    /// The position of the run in the case.
    run: usize,
}

fn arguments(mut given: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let (mut file, mut stage, mut run) = (None, None, 0);
    while let Some(argument) = given.next() {
        match &*argument {
            "--stage" => {
                let name = given.next().ok_or_else(|| format!("--stage takes one of {}", Stage::NAMES))?;
                stage = Some(Stage::parse(&name)?);
            }
            "--run" => {
                let number = given.next().and_then(|number| number.parse::<usize>().ok());
                run = number.and_then(|number| number.checked_sub(1)).ok_or("--run takes a number from 1")?;
            }
            _ if argument.starts_with('-') => return Err(format!("no option {argument}")),
            _ if file.is_none() => file = Some(argument),
            _ => return Err(format!("one file, not also {argument}")),
        }
    }
    let file = file.ok_or("no file")?;
    let stage = stage.ok_or_else(|| format!("no --stage: the stages are {}", Stage::NAMES))?;
    Ok(Arguments { file, stage, run })
}

fn text(Arguments { file, stage, run }: &Arguments) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    // as golden tests name it, so that the text is that of the snapshot
    let path = file.rsplit_once("tests/cases/").map_or(&**file, |(_, path)| path);
    let case = Case::parse(path.trim_end_matches(".rb"), path, &text)?;
    let runs = case.runs.len();
    let run = case.runs.get(*run).ok_or_else(|| format!("{file} has {runs} runs; its header must describe one"))?;
    stages::text(&case, run, stage)
}

fn main() -> ExitCode {
    let arguments = match arguments(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(what) => {
            eprintln!("ikra-dev: {what}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match text(&arguments) {
        // a reader such as `head` may close the pipe first
        Ok(text) => match writeln!(io::stdout(), "{}", text.trim_end()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}
