//! Modules call downwards only; unsafe code and lib-ruby-parser stay where they belong; the core knows no Ruby. A file
//! of the bridge has one owner of all that it keeps for the process.
//!
//! Both crates are checked: the core, and the bridge to Ruby beside it.

use std::fs;
use std::path::{Path, PathBuf};

/// What is said of one crate.
struct Crate {
    /// The folder of its sources, as seen from this crate.
    folder: &'static str,
    /// Layers from the bottom. A module uses its own layer and those before it.
    layers: &'static [&'static [&'static str]],
    /// Files that may contain unsafe code.
    unsafe_code: &'static [&'static str],
}

const CORE: Crate = Crate { folder: "src", layers: CORE_LAYERS, unsafe_code: CORE_UNSAFE };
const BRIDGE: Crate = Crate { folder: "../ikra/src", layers: BRIDGE_LAYERS, unsafe_code: BRIDGE_UNSAFE };

const CORE_LAYERS: &[&[&str]] = &[
    // A message shows its source line, and a source counts in spans.
    &["id", "source", "diagnostic", "error", "config", "target", "process", "locks"],
    &["unicode"],
    &["regexp"],
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

const CORE_UNSAFE: &[&str] = &[
    "process.rs",
    "memory/ahead.rs",
    "memory/column.rs",
    "memory/pages.rs",
    "memory/pool.rs",
    "memory/table.rs",
    "backend/vectors.rs",
    "backend/libm.rs",
    "backend/worker_pool.rs",
    "backend/collective/product.rs",
    "backend/cpu/arena.rs",
    "backend/cpu/jit.rs",
    "backend/cuda/blas.rs",
    "backend/cuda/nvrtc.rs",
    "backend/cuda/driver.rs",
    "backend/cuda/graph.rs",
    "backend/cuda/storage.rs",
    "backend/cuda/collective/mod.rs",
    "backend/cuda/launch/over.rs",
    // For tests: the generated text as a shared object.
    "backend/cuda/shim.rs",
    "cache/disk.rs",
];

const BRIDGE_LAYERS: &[&[&str]] =
    &[&["ruby"], &["options"], &["device"], &["report"], &["buffers"], &["marshal"], &["world"], &["section"]];

const BRIDGE_UNSAFE: &[&str] = &[
    "ruby/constants.rs",
    "ruby/environment.rs",
    "ruby/errors.rs",
    "ruby/fiber.rs",
    "ruby/gvl.rs",
    "ruby/hash_table.rs",
    "ruby/heap.rs",
    "ruby/holder.rs",
    "ruby/iseq.rs",
    "ruby/list.rs",
    "ruby/question.rs",
    "ruby/range.rs",
    "ruby/reflect.rs",
    "ruby/registry.rs",
    "ruby/reserve.rs",
    "ruby/unicode.rs",
    "buffers/buffer.rs",
    "buffers/memory_view.rs",
    "marshal/made.rs",
    "marshal/unpack.rs",
    "marshal/unpack/write_back.rs",
    "world/class_variables.rs",
    "world/large_stack.rs",
    "world/live_world.rs",
    "section/engine/resident/inside.rs",
];

impl Crate {
    fn source(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(self.folder)
    }

    fn layer(&self, module: &str) -> Option<usize> {
        self.layers.iter().position(|layer| layer.contains(&module))
    }
}

/// Every file of a crate with its path below `src` and its text, without unit tests.
fn files(of: &Crate) -> Vec<(String, String)> {
    let source = of.source();
    let mut found = Vec::new();
    let mut open = vec![source.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let name = path.strip_prefix(&source).expect("a path below src").display().to_string();
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
    for krate in [CORE, BRIDGE] {
        for (name, text) in files(&krate) {
            let module = name.split(['/', '.']).next().unwrap_or("");
            // programs are crates of their own
            if ["lib", "bin"].contains(&module) {
                continue;
            }
            let Some(own) = krate.layer(module) else {
                wrong.push(format!("{name}: module {module} has no layer; give it one in tests/layers.rs and lib.rs"));
                continue;
            };
            for (line, code) in code_lines(&text) {
                for used in named(code) {
                    if krate.layer(used).is_some_and(|used| used > own) {
                        wrong.push(format!("{name}:{line}: {module} is below {used}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A path that begins with `super` in place of `crate` would pass by the check of layers.
#[test]
fn no_path_leaves_its_layer_by_super() {
    for krate in [CORE, BRIDGE] {
        for (name, text) in files(&krate) {
            // The root of the crate is as many modules above a file as its path has parts.
            let above = name.trim_end_matches("/mod.rs").split('/').count();
            let root = "super::".repeat(above);
            for (line, code) in code_lines(&text) {
                assert!(name == "lib.rs" || !code.contains(&root), "{name}:{line}: write crate:: for {root}");
            }
        }
    }
}

#[test]
fn every_name_of_the_map_is_there() {
    for krate in [CORE, BRIDGE] {
        let files: Vec<String> = files(&krate).into_iter().map(|(name, _)| name).collect();
        for module in krate.layers.iter().copied().flatten() {
            let is_there = [format!("{module}.rs"), format!("{module}/mod.rs")].iter().any(|name| files.contains(name));
            assert!(is_there, "{module} of {} is gone", krate.folder);
        }
        for file in krate.unsafe_code {
            assert!(files.iter().any(|name| name == file), "{file} of {} is gone", krate.folder);
        }
    }
}

/// Names of a file's process-wide statics. Names that Ruby has interned are no state.
fn statics(text: &str) -> Vec<&str> {
    let mut of_threads = false;
    let mut names = Vec::new();
    for (_, code) in code_lines(text) {
        let code = code.trim();
        of_threads = (of_threads || code.starts_with("thread_local!")) && code != "}";
        let behind = code.split_once("static ").filter(|(before, _)| {
            // `&'static` in the head of a function is none
            before.is_empty() || before.starts_with("pub") && !before.contains("fn ")
        });
        let found = behind.and_then(|(_, rest)| rest.split_once(':'));
        names.extend(found.filter(|(_, ty)| !of_threads && !ty.contains("LazyId")).map(|(name, _)| name));
    }
    names
}

#[test]
fn a_file_of_the_bridge_has_one_static_and_the_table_describes_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/dev/state.md");
    let table = fs::read_to_string(path).expect("the table of process-wide state");
    let mut rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| `")).collect();
    for (name, text) in files(&BRIDGE) {
        let found = statics(&text);
        assert!(found.len() <= 1, "{name}: {found:?}: make one struct of them");
        for one in found {
            let row = rows.iter().position(|row| row.starts_with(&format!("| `{name}` | `{one}` |")));
            let row = row.unwrap_or_else(|| panic!("{name}: {one} is not in docs/dev/state.md"));
            assert_eq!(rows.remove(row).split('|').filter(|cell| !cell.trim().is_empty()).count(), 6, "{name}: a cell");
        }
    }
    assert!(rows.is_empty(), "docs/dev/state.md describes what is gone:\n{}", rows.join("\n"));
}

#[test]
fn unsafe_code_is_only_where_the_map_says() {
    for krate in [CORE, BRIDGE] {
        for (name, text) in files(&krate) {
            let opens = ["allow(unsafe_code", "unsafe {", "unsafe fn", "unsafe impl", "unsafe extern"];
            for (line, code) in code_lines(&text) {
                let is_unsafe = opens.iter().any(|opening| code.contains(opening));
                assert!(!is_unsafe || krate.unsafe_code.contains(&name.as_str()), "{name}:{line}: unsafe code");
            }
        }
    }
}

#[test]
fn only_lowering_knows_the_parser() {
    for (name, text) in files(&CORE) {
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
