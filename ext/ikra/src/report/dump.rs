//! `IKRA_DUMP`: the text of each new kernel, for whoever works on Ikra.
//!
//! Here: which stages are wanted, and where their text goes. Not here: the text ([`Account::text`]).

use crate::report::explain::Account;
use crate::ruby::errors;
use magnus::{Error, Ruby};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The words of `IKRA_DUMP`, and the forms that an account has their text in.
const STAGES: [(&str, &str); 4] = [("ir", "lowered"), ("passes", "ir"), ("cuda", "cuda"), ("clif", "cpu")];

/// What to write, and where.
struct Dump {
    /// Positions in [`STAGES`].
    stages: Vec<usize>,
    /// None: stderr.
    folder: Option<PathBuf>,
    /// How many kernels have had a name.
    named: HashMap<String, usize>,
}

/// What `IKRA_DUMP` asks for.
struct Dumps {
    /// Whether it asks for anything: what sections check first.
    wanted: AtomicBool,
    dump: Mutex<Option<Dump>>,
}

static DUMPS: Dumps = Dumps { wanted: AtomicBool::new(false), dump: Mutex::new(None) };

/// Whether kernels are written.
pub fn is_wanted() -> bool {
    DUMPS.wanted.load(Ordering::Relaxed)
}

/// `Ikra.__dump(words, folder)`: from now on, new kernels are written to files of the folder, or to stderr. `words` is
/// a list such as `ir,cuda`.
///
/// # Errors
/// ArgumentError for an unknown word.
pub fn configure(ruby: &Ruby, words: String, folder: Option<String>) -> Result<(), Error> {
    let mut stages = Vec::new();
    for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let Some(at) = STAGES.iter().position(|(known, _)| *known == word) else {
            let known = STAGES.map(|(known, _)| known).join(", ");
            let message = format!("IKRA_DUMP: {word} is not one of {known}");
            return Err(Error::new(ruby.exception_arg_error(), message));
        };
        if !stages.contains(&at) {
            stages.push(at);
        }
    }
    DUMPS.wanted.store(!stages.is_empty(), Ordering::Relaxed);
    let folder = folder.filter(|folder| !folder.is_empty()).map(PathBuf::from);
    *DUMPS.dump.lock() = Some(Dump { stages, folder, named: HashMap::new() });
    Ok(())
}

/// Writes a new kernel. What cannot be written is a warning.
///
/// # Errors
/// What the user's logger raises.
pub fn write(ruby: &Ruby, account: &Account) -> Result<(), Error> {
    let (path, line) = &account.place;
    let file = Path::new(path).file_name().map_or_else(|| path.clone(), |name| name.to_string_lossy().into_owned());
    let Some((stages, folder, name)) = named(format!("{file}-{line}")) else { return Ok(()) };
    for (word, form) in stages.into_iter().map(|at| STAGES[at]) {
        let title = format!("{word} of the block at {path}:{line} ({} on {})", account.operation, account.backend);
        let written = match account.text(form) {
            Ok(Some(text)) => put(folder.as_deref(), &format!("{name}.{word}"), &title, &text),
            Ok(None) => Ok(()),
            Err(error) => Err(io::Error::other(error.to_string())),
        };
        if let Err(error) = written {
            errors::warn(ruby, &format!("Ikra: IKRA_DUMP: {title}: {error}"))?;
        }
    }
    Ok(())
}

/// What to write, where to, and the kernel's name. From the second kernel of a block on, the name has a number.
fn named(name: String) -> Option<(Vec<usize>, Option<PathBuf>, String)> {
    let mut dump = DUMPS.dump.lock();
    let Dump { stages, folder, named } = dump.as_mut()?;
    let count = named.entry(name.clone()).or_default();
    *count += 1;
    let name = if *count == 1 { name } else { format!("{name}-{count}") };
    Some((stages.clone(), folder.clone(), name))
}

fn put(folder: Option<&Path>, name: &str, title: &str, text: &str) -> io::Result<()> {
    let text = text.trim_end();
    match folder {
        Some(folder) => {
            fs::create_dir_all(folder)?;
            fs::write(folder.join(name), format!("// {title}\n{text}\n"))
        }
        None => io::stderr().write_all(format!("── {title}\n{text}\n\n").as_bytes()),
    }
}
