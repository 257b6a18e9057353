//! A directory of compiled code, shared by all processes of one user.
//!
//! Here: files named by their [`Key`], each with a hash of key and content in front. A file is written to a temporary
//! name and renamed, so that a reader meets a whole file or none. The least recently used files go when the directory
//! outgrows its bound. Not here: any failure. What cannot be read is compiled again, what cannot be written is not
//! kept, and [`DiskCache::note`] says why, once ([`DiskCache::trouble`]: whenever asked).
//!
//! Code that is loaded is run. So a file counts only if this user alone can have written it: it and the directory
//! belong to the user, and nobody else may write. Its content must have the hash that it had when it was written.
#![allow(unsafe_code, reason = "asks for the user's id")]

use super::key::Key;
use parking_lot::Mutex;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

const MAGIC: &[u8; 8] = b"ikra\0\0\0\x01";
const SUFFIX: &str = "kernel";

/// Bytes that the directory may hold.
pub const DEFAULT_BOUND: u64 = 256 << 20;

/// See the module.
#[derive(Debug)]
pub struct DiskCache {
    /// None: nothing is kept.
    directory: Option<PathBuf>,
    bound: u64,
    /// Bytes in the directory, as far as known; [`u64::MAX`] before it was ever counted.
    size: AtomicU64,
    note: Mutex<Note>,
}

#[derive(Debug, Default)]
enum Note {
    #[default]
    None,
    Unsaid(String),
    Said(String),
}

/// `IKRA_CACHE_DIR`, else `ikra` in the user's cache directory.
pub fn default_directory() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    variable("IKRA_CACHE_DIR")
        .or_else(|| variable("XDG_CACHE_HOME").filter(|p| p.is_absolute()).map(|p| p.join("ikra")))
        .or_else(|| variable("HOME").filter(|p| p.is_absolute()).map(|p| p.join(".cache/ikra")))
}

impl DiskCache {
    /// The cache in a directory, which is made if need be.
    pub fn open(directory: Option<&Path>, bound: u64) -> Self {
        let cache = |directory, note| Self { directory, bound, size: u64::MAX.into(), note: Mutex::new(note) };
        let Some(directory) = directory else {
            return cache(
                None,
                Note::Unsaid("no HOME and no IKRA_CACHE_DIR: kernels are not kept on disk".to_string()),
            );
        };
        match prepare(directory) {
            Ok(()) => cache(Some(directory.to_path_buf()), Note::None),
            Err(e) => {
                let note = format!("{}: {e}; kernels are not kept on disk", directory.display());
                cache(None, Note::Unsaid(note))
            }
        }
    }

    /// Why nothing is kept, or could not be: said once.
    pub fn note(&self) -> Option<String> {
        let mut note = self.note.lock();
        let Note::Unsaid(text) = &*note else { return None };
        let text = text.clone();
        *note = Note::Said(text.clone());
        Some(text)
    }

    /// Why nothing is kept, or could not be, said or not.
    pub fn trouble(&self) -> Option<String> {
        match &*self.note.lock() {
            Note::None => None,
            Note::Unsaid(text) | Note::Said(text) => Some(text.clone()),
        }
    }

    /// Where it is, if anything is kept.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// What was kept under the key.
    pub fn load(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key)?;
        let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(&path).ok()?;
        let facts = file.metadata().ok()?;
        if !facts.is_file() || facts.uid() != user() || facts.mode() & 0o022 != 0 {
            self.say(format!("{}: others may write to it; it is not used", path.display()));
            return None;
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let Some(content) = content(key, &bytes) else {
            // Truncated, or tampered with: whoever compiles it again replaces it.
            let _ = fs::remove_file(&path);
            return None;
        };
        let content = content.to_vec();
        // Its time is that of its last use. Seldom, since it costs a write.
        if facts.modified().is_ok_and(|t| t.elapsed().is_ok_and(|age| age > Duration::from_secs(600))) {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(content)
    }

    /// Keeps `content` under the key.
    pub fn save(&self, key: &Key, content: &[u8]) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let Some(path) = self.path(key) else { return };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = path.with_extension(format!("{}.{number}.new", std::process::id()));
        let written = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(MAGIC)?;
            file.write_all(hash(key, content).as_bytes())?;
            file.write_all(content)?;
            drop::<File>(file);
            fs::rename(&temporary, &path)
        };
        if let Err(e) = written() {
            let _ = fs::remove_file(&temporary);
            self.say(format!("{}: {e}; the kernel is not kept on disk", path.display()));
            return;
        }
        let added = (MAGIC.len() + blake3::OUT_LEN + content.len()) as u64;
        let known = self.size.load(Ordering::Relaxed);
        self.size.store(known.saturating_add(added), Ordering::Relaxed);
        if known.saturating_add(added) > self.bound {
            self.shrink(&path);
        }
    }

    /// Counts the directory, and removes what was not used for longest until three quarters of the bound are left.
    fn shrink(&self, newest: &Path) {
        let Some(directory) = &self.directory else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let (path, Ok(facts)) = (entry.path(), entry.metadata()) else { continue };
            let used = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if path.extension() == Some(OsStr::new(SUFFIX)) {
                files.push((used, facts.len(), path));
            } else if path.extension() == Some(OsStr::new("new"))
                && used.elapsed().is_ok_and(|age| age > Duration::from_secs(3600))
            {
                // Of a process that died while writing.
                let _ = fs::remove_file(path);
            }
        }
        let mut size: u64 = files.iter().map(|f| f.1).sum();
        if size > self.bound {
            files.sort();
            for (_, length, path) in files.iter().filter(|f| f.2 != newest) {
                if size <= self.bound / 4 * 3 {
                    break;
                }
                if fs::remove_file(path).is_ok() {
                    size -= length;
                }
            }
        }
        self.size.store(size, Ordering::Relaxed);
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(format!("{key}.{SUFFIX}")))
    }

    fn say(&self, text: String) {
        let mut note = self.note.lock();
        if matches!(*note, Note::None) {
            *note = Note::Unsaid(text);
        }
    }
}

fn hash(key: &Key, content: &[u8]) -> blake3::Hash {
    blake3::Hasher::new().update(key.bytes()).update(content).finalize()
}

/// The content of a whole, unchanged file.
fn content<'a>(key: &Key, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (kept, content) = rest.split_at_checked(blake3::OUT_LEN)?;
    (hash(key, content).as_bytes() == kept).then_some(content)
}

/// Makes the directory, and sees that nobody else can write to it.
fn prepare(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let facts = fs::metadata(directory)?;
    let refuse = |why: &str| Err(io::Error::new(io::ErrorKind::PermissionDenied, why.to_string()));
    if !facts.is_dir() {
        refuse("it is not a directory")
    } else if facts.uid() != user() {
        refuse("it belongs to another user")
    } else if facts.mode() & 0o022 != 0 {
        refuse("others may write to it")
    } else {
        Ok(())
    }
}

fn user() -> u32 {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::super::key::KeyBuilder;
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A directory of its own, removed in the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("ikra-cache-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }
        fn open(&self) -> DiskCache {
            DiskCache::open(Some(&self.0), 1 << 20)
        }
        fn only_file(&self) -> PathBuf {
            let mut files = fs::read_dir(&self.0).expect("it was made").map(|e| e.expect("readable").path());
            let file = files.next().expect("a file was kept");
            assert_eq!(files.next(), None);
            file
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::set_permissions(&self.0, fs::Permissions::from_mode(0o700));
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn key(text: &str) -> Key {
        KeyBuilder::new("test").text(text).finish()
    }

    #[test]
    fn what_is_kept_is_found_by_another_process() {
        let folder = Folder::new("kept");
        folder.open().save(&key("a"), b"code");
        let later = folder.open();
        assert_eq!(later.load(&key("a")).as_deref(), Some(&b"code"[..]));
        assert_eq!(later.load(&key("b")), None);
        assert_eq!(later.note(), None);
        let mode = |path: &Path| fs::metadata(path).expect("it exists").mode() & 0o777;
        assert_eq!((mode(&folder.0), mode(&folder.only_file())), (0o700, 0o600));
    }

    #[test]
    fn a_changed_file_is_not_used_and_replaced() {
        let folder = Folder::new("changed");
        let cache = folder.open();
        let spoil: [fn(&mut Vec<u8>); 4] =
            [|f| f.truncate(30), Vec::clear, |f| *f.last_mut().expect("not empty") ^= 1, |f| f.push(0)];
        for spoil in spoil {
            cache.save(&key("a"), b"code");
            let file = folder.only_file();
            let mut bytes = fs::read(&file).expect("it was kept");
            spoil(&mut bytes);
            fs::write(&file, bytes).expect("it is ours");
            assert_eq!(cache.load(&key("a")), None);
            assert!(!file.exists());
        }
    }

    #[test]
    fn a_file_under_another_key_is_not_used() {
        let folder = Folder::new("renamed");
        let cache = folder.open();
        cache.save(&key("a"), b"code");
        fs::rename(folder.only_file(), folder.0.join(format!("{}.{SUFFIX}", key("b")))).expect("it is ours");
        assert_eq!(cache.load(&key("b")), None);
    }

    #[test]
    fn what_others_may_write_is_refused() {
        let folder = Folder::new("open");
        let cache = folder.open();
        cache.save(&key("a"), b"code");
        fs::set_permissions(folder.only_file(), fs::Permissions::from_mode(0o666)).expect("it is ours");
        assert_eq!(cache.load(&key("a")), None);
        assert!(cache.note().is_some_and(|n| n.contains("others may write to it")));
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).expect("it is ours");
        let cache = folder.open();
        assert!(cache.note().is_some_and(|n| n.contains("others may write to it; kernels are not kept")));
        assert_eq!(cache.note(), None, "it is said once");
        assert!(cache.trouble().is_some_and(|n| n.contains("others may write to it")));
        assert_eq!(cache.directory(), None);
        cache.save(&key("b"), b"code");
        assert_eq!(cache.load(&key("b")), None);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_no_failure() {
        let folder = Folder::new("file");
        fs::write(&folder.0, b"").expect("a file in its place");
        let cache = folder.open();
        cache.save(&key("a"), b"code");
        assert_eq!(cache.load(&key("a")), None);
        assert!(cache.note().is_some());
        let _ = fs::remove_file(&folder.0);
    }

    #[test]
    fn the_least_recently_used_go_first() {
        let folder = Folder::new("bound");
        let cache = folder.open();
        let content = vec![7; 300 << 10];
        for (age, name) in [(300, "oldest"), (200, "older"), (100, "old")] {
            cache.save(&key(name), &content);
            let path = cache.path(&key(name)).expect("it is kept");
            let time = SystemTime::now() - Duration::from_secs(age * 60);
            File::open(path).and_then(|f| f.set_modified(time)).expect("it is ours");
        }
        assert!(cache.load(&key("oldest")).is_some(), "which makes it the newest");
        cache.save(&key("new"), &content);
        let kept = ["oldest", "older", "old", "new"].map(|n| cache.load(&key(n)).is_some());
        assert_eq!(kept, [true, false, false, true]);
    }

    #[test]
    fn writers_of_one_key_do_not_disturb_each_other() {
        let folder = Folder::new("race");
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    let cache = folder.open();
                    for _ in 0..50 {
                        cache.save(&key("a"), &[9; 5000]);
                        assert_eq!(cache.load(&key("a")).as_deref(), Some(&[9; 5000][..]));
                    }
                });
            }
        });
        folder.only_file();
    }
}
