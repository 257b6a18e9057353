//! Modules call downwards only; unsafe code and lib-ruby-parser stay where they belong; the core knows no Ruby.

use std::fs;
use std::path::{Path, PathBuf};

/// Layers from the bottom. A module uses its own layer and those before it.
const LAYERS: &[&[&str]] = &[
    // A message shows its source line, and a source counts in spans.
    &["id", "source", "diagnostic", "error", "config", "target", "process"],
    &["syntax"],
    // Types name classes by id; facts about live values are types.
    &["types"],
    &["world"],
    &["prelude"],
    &["infer"],
    // The schema names the columns of a program, and a lowered program carries its schema.
    &["ir", "layout"],
    &["lower"],
    &["passes"],
    &["memory"],
    // Backends keep what they compiled.
    &["cache"],
    &["backend"],
    &["sched"],
    &["engine"],
];

/// Files that may contain unsafe code.
const UNSAFE: &[&str] = &[
    "process.rs",
    "memory/ahead.rs",
    "memory/column.rs",
    "memory/pages.rs",
    "memory/pool.rs",
    "memory/table.rs",
    "backend/vectors.rs",
    "backend/libm.rs",
    "backend/worker_pool.rs",
    "backend/cpu/arena.rs",
    "backend/cpu/jit.rs",
    "backend/cuda/blas.rs",
    "backend/cuda/nvrtc.rs",
    "backend/cuda/driver.rs",
    "backend/cuda/storage.rs",
    "backend/cuda/collective/mod.rs",
    "backend/cuda/launch/over.rs",
    // For tests: the generated text as a shared object.
    "backend/cuda/shim.rs",
    "backend/cuda/collective/on_shim.rs",
    "cache/disk.rs",
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every file with its path below `src` and its text, without unit tests.
fn files() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![source()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(source()).expect("a path below src").display().to_string();
                let text = fs::read_to_string(&path).expect("a readable source");
                let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("").to_owned();
                found.push((name, code));
            }
        }
    }
    let tests: Vec<String> = found.iter().flat_map(|(name, text)| test_modules(name, text)).collect();
    found.retain(|(name, _)| !tests.contains(name));
    found.sort();
    found
}

/// Files of the modules that a file declares for tests only.
fn test_modules(name: &str, text: &str) -> Vec<String> {
    let folder =
        name.strip_suffix("mod.rs").map_or_else(|| format!("{}/", name.trim_end_matches(".rs")), str::to_owned);
    let after = text.split("#[cfg(test)]\n").skip(1).filter_map(|rest| rest.lines().next());
    let modules = after.filter_map(|line| line.strip_suffix(';')?.split("mod ").nth(1));
    modules.map(|module| format!("{folder}{module}.rs")).collect()
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Lines of code, without comments.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(i, l)| (i + 1, l.split("//").next().unwrap_or("")))
}

/// The modules that a line names after `crate::`.
fn named(line: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for rest in line.split("crate::").skip(1) {
        let end = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        if let Some(group) = rest.strip_prefix('{') {
            names.extend(group.split([',', '}']).map(|part| &part.trim()[..end(part.trim())]));
        } else {
            names.push(&rest[..end(rest)]);
        }
    }
    names
}

#[test]
fn modules_call_downwards_only() {
    let mut wrong = Vec::new();
    for (name, text) in files() {
        let module = name.split(['/', '.']).next().unwrap_or("");
        if module == "lib" {
            continue;
        }
        let Some(own) = layer(module) else {
            wrong.push(format!("{name}: module {module} has no layer; give it one in tests/layers.rs and lib.rs"));
            continue;
        };
        for (line, code) in code_lines(&text) {
            for used in named(code) {
                if layer(used).is_some_and(|used| used > own) {
                    wrong.push(format!("{name}:{line}: {module} is below {used}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unsafe_code_is_only_where_the_map_says() {
    for (name, text) in files() {
        for (line, code) in code_lines(&text) {
            let opens = code.contains("allow(unsafe_code") || code.contains("unsafe {") || code.contains("unsafe fn");
            assert!(!opens || UNSAFE.contains(&name.as_str()), "{name}:{line}: unsafe code");
        }
    }
}

#[test]
fn only_lowering_knows_the_parser() {
    for (name, text) in files() {
        for (line, code) in code_lines(&text) {
            let knows = code.contains("lib_ruby_parser");
            assert!(!knows || name.starts_with("syntax/lower/"), "{name}:{line}: lib-ruby-parser");
        }
    }
}

#[test]
fn the_core_knows_no_ruby() {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).expect("a manifest");
    for dependency in ["magnus", "rb-sys", "rb_sys"] {
        assert!(!manifest.contains(dependency), "the core depends on {dependency}");
    }
}
