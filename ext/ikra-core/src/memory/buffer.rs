//! Typed arrays whose bytes are on the host, on a device, or on both. An `MDArray` stores its elements in one.
//!
//! Here: [`Buffer`], its versions and where their bytes are; [`DeviceStore`], the interface of a backend that has
//! memory of its own. Not here: that memory itself ([`crate::backend::cuda`]); shapes and views, which are in Ruby.
//!
//! # Coherence
//!
//! The contents of a buffer are a *version*. A version that others can see is never written: a writer makes the next
//! version and puts it in its place. So kernels read without a lock, a section that traps leaves everything as it was,
//! and a copy costs nothing until one of the two is written. A version is in one of four states, the same for all
//! backends:
//!
//! | host | device | |
//! | --- | --- | --- |
//! | – | – | all zero, not allocated yet |
//! | ✓ | – | the host's is newer |
//! | – | ✓ | the device's is newer |
//! | ✓ | ✓ | both are the same |
//!
//! A launch may make a version although nobody waits for the launch. Such a version *depends* on the completion of the
//! launch ([`super::completion`]), and on all completions on which the launch's inputs depend. When one of these
//! launches is known to have failed, the version is *poisoned*: it is on neither side, and each read of it reports the
//! error.
//!
//! A launch that writes all of an existing array makes such a version, too. If that version depends on a launch that
//! failed, the buffer returns to the contents before the first failed write ([`Buffer::follow`]). It does so once the
//! error was reported, by a read of anything that depends on that launch. Until the outcome is known, the buffer holds
//! the versions to which it may return.
//!
//! A read from a side that lacks the contents copies them there; then both sides have them. A write through one side
//! makes the other side's copy invalid.
//!
//! Parts of a version are written in place where nothing else sees the version. On a device, more must hold. Only the
//! device has the contents, and no queued kernel still reads them. They are larger than 64 KiB, and at most 64 parts
//! were written since the version was made. A launch that cannot fail also writes in place, because it never has to be
//! undone ([`Buffer::in_place`]).
//!
//! A loop of launches that may fail writes to two memories in turn ([`Buffer::to_swap`], [`Buffer::swap`]). Each launch
//! reads one and writes the other. Rows that no such launch writes are the same in both. Any other change of the
//! contents drops the second memory.

use super::column::HostColumn;
use super::completion::Completion;
use super::room;
use super::words::{HostWords, copy_by_threads};
use crate::error::{Error, Poison, Result};
use crate::ir::Storage;
use parking_lot::Mutex;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// An allocation of a device. It is immutable while it has several owners, and freed when the last one drops it.
pub trait DeviceMemory: Any + Send + Sync + fmt::Debug {
    fn as_any(&self) -> &dyn Any;
    fn bytes(&self) -> usize;
    /// Copies bytes to the host, starting at offset `from`. Blocks until they are there.
    ///
    /// # Errors
    /// `Device`.
    fn read(&self, from: usize, to: &mut [u8]) -> Result<()>;
    /// Host words into which to read, with unspecified contents. None: those of the allocator are as good.
    fn lend(&self, words: usize) -> Option<HostWords> {
        let _ = words;
        None
    }
    /// Copies the first bytes of the memory to the host, as many as the column has. Blocks until they are there.
    ///
    /// # Errors
    /// `Device`.
    fn read_column(&self, to: &mut HostColumn) -> Result<()> {
        self.read(0, to.bytes_mut())
    }
    /// Copies bytes of the host to offset `from`. Blocks until they are there.
    ///
    /// # Errors
    /// `Device`.
    fn write(&mut self, from: usize, bytes: &[u8]) -> Result<()>;
    /// Waits for the launches that write to the memory, and releases the references of all launches that have ended. It
    /// does not wait for a launch that only reads: that launch still holds a reference, so the memory is not exclusive.
    /// Does nothing in a process that did not make the memory.
    ///
    /// # Errors
    /// `Device`.
    fn settle(&self) -> Result<()>;
}

/// The memory of a backend that does not compute in host memory.
pub trait DeviceStore: Send + Sync {
    /// Allocates memory with unspecified contents.
    ///
    /// # Errors
    /// `Memory` when the device has no memory left or the limit is reached; `Device`.
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn DeviceMemory>>;
    /// Allocates memory with a copy of the host's bytes; all zero when `from` is `None`.
    ///
    /// # Errors
    /// As [`DeviceStore::allocate`].
    fn upload(&self, bytes: usize, from: Option<&[u8]>) -> Result<Arc<dyn DeviceMemory>>;
    /// Allocates memory with a copy of a column.
    ///
    /// # Errors
    /// As [`DeviceStore::allocate`].
    fn upload_column(&self, from: &HostColumn) -> Result<Arc<dyn DeviceMemory>> {
        self.upload(from.byte_len(), Some(from.bytes()))
    }
    /// As [`DeviceMemory::lend`], for words that will be copied to the device.
    fn lend(&self, words: usize) -> Option<HostWords> {
        let _ = words;
        None
    }
    /// How many bytes of host memory are page-locked for columns, and how many are free and held for reuse.
    fn lent(&self) -> (usize, usize) {
        (0, 0)
    }
    /// Called before the process forks.
    fn before_fork(&self) {}
    /// Copies memory on the device, asynchronously.
    ///
    /// # Errors
    /// As [`DeviceStore::allocate`].
    fn copy(&self, from: &Arc<dyn DeviceMemory>) -> Result<Arc<dyn DeviceMemory>>;
    /// Bytes that are allocated, including those of launches.
    fn held(&self) -> u64;
    /// Whether the next launch may write to the memory in place. That is so when it has no more than `holders` owners,
    /// apart from launches that are queued before the next one.
    fn may_write(&self, memory: &Arc<dyn DeviceMemory>, holders: usize) -> bool;
    /// Whether a launch that nobody waits for would be queued at once, because only few are queued now. An estimate.
    fn is_at_leisure(&self) -> bool {
        false
    }
    /// Whether the memory was made by this store, in this process.
    fn owns(&self, memory: &dyn DeviceMemory) -> bool;
}

/// A typed array with versions; see the module.
#[derive(Debug)]
pub struct Buffer {
    storage: Storage,
    len: usize,
    version: Mutex<Version>,
    spare: Mutex<Option<Spare>>,
}

/// Memory of the version before, into which a launch may write the next one ([`Buffer::to_swap`]).
#[derive(Debug)]
struct Spare {
    /// Says which rows may differ from those of the version.
    writer: u64,
    rows: SpareRows,
}

#[derive(Debug)]
enum SpareRows {
    Host(Arc<HostWords>),
    Device(Arc<dyn DeviceMemory>),
}

/// The contents of a buffer, and where they are.
#[derive(Clone, Debug, Default)]
struct Version {
    host: Option<Arc<HostWords>>,
    device: Option<Arc<dyn DeviceMemory>>,
    /// Parts that were written on the device since the version was made.
    parts: u32,
    /// The completions on which the contents depend, oldest launch first.
    completions: Vec<Arc<Completion>>,
    /// Earlier versions to which the buffer may return, newest first. Their own lists `before` are empty.
    before: Vec<Arc<Version>>,
    /// The time of the latest write over an earlier version ([`Poison::now`]).
    since: u64,
}

impl Version {
    /// Whether a launch on which the contents depend is known to have failed.
    fn is_poisoned(&self) -> bool {
        self.completions.iter().any(|completion| completion.is_failed())
    }
    /// Whether all launches on which the contents depend are known to have succeeded.
    fn is_ok(&self) -> bool {
        self.completions.iter().all(|completion| matches!(completion.is_ok(), Ok(true)))
    }
    /// Drops completions that are known to be ok, and versions to which the buffer cannot return any more.
    fn trim(&mut self) {
        self.completions.retain(|completion| !matches!(completion.is_ok(), Ok(true)));
        // a failure hides those after it: they are never reported
        if let Some(failed) = self.completions.iter().position(|completion| completion.is_failed()) {
            self.completions.truncate(failed + 1);
        }
        self.before.retain(|version| !version.is_poisoned());
        if let Some(last) = self.before.iter().position(|version| version.is_ok()) {
            self.before.truncate(last + 1);
        }
        if self.completions.is_empty() {
            self.before.clear();
        }
    }
    /// The newest version before the first failed write; None: there is none.
    fn back(&self) -> Option<Self> {
        let at = self.before.iter().position(|version| !version.is_poisoned())?;
        let mut version = Self { before: self.before[at + 1..].to_vec(), ..Self::clone(&self.before[at]) };
        version.trim();
        Some(version)
    }
}

/// How many earlier versions a buffer holds at most. To add one more, a caller waits for the oldest. So many queued
/// launches are enough to keep a device busy.
const MAX_VERSIONS: usize = 8;

/// Up to so many bytes of contents are fetched to the host for a partial write, not written in place on the device.
const MAX_FETCHED_BYTES: usize = 64 << 10;
/// How many parts of a version are written on the device at most. After that the contents are fetched, because the host
/// writes parts faster.
const MAX_PARTS: u32 = 64;

/// Where the contents of a buffer are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residence {
    /// They are all zero.
    Nowhere,
    Host,
    Device,
    Both,
    /// A launch on which they depend failed.
    Poisoned,
}

impl Buffer {
    /// A buffer whose contents are all zero.
    #[inline]
    pub fn zeroed(storage: Storage, len: usize) -> Self {
        Self { storage, len, version: Mutex::default(), spare: Mutex::default() }
    }
    /// A buffer with rows that a kernel or the host made.
    pub fn from_column(column: HostColumn) -> Self {
        let buffer = Self::zeroed(column.storage(), column.len());
        buffer.replace(column);
        buffer
    }
    #[inline]
    pub fn storage(&self) -> Storage {
        self.storage
    }
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.len * self.storage.bytes()
    }
    #[inline]
    pub fn residence(&self) -> Residence {
        self.recall();
        let version = self.version.lock();
        let residence = match (&version.host, &version.device) {
            (None, None) => Residence::Nowhere,
            (Some(_), None) => Residence::Host,
            (None, Some(_)) => Residence::Device,
            (Some(_), Some(_)) => Residence::Both,
        };
        if version.completions.is_empty() {
            return residence;
        }
        // `is_poisoned` may ask a backend, so it runs after the lock is released
        let version = version.clone();
        if version.is_poisoned() { Residence::Poisoned } else { residence }
    }
    /// Bytes on the host and on the device, including those of versions to which the buffer may return, and of memory
    /// for the next version.
    pub fn held(&self) -> (usize, usize) {
        let version = self.version.lock();
        let versions = || version.before.iter().map(|before| &**before).chain([&*version]);
        let host: usize = versions().filter_map(|version| version.host.as_ref()).map(|words| words.len() * 8).sum();
        let device: usize = versions().filter_map(|version| version.device.as_ref()).map(|memory| memory.bytes()).sum();
        match self.spare.lock().as_ref().map(|spare| &spare.rows) {
            Some(SpareRows::Host(words)) => (host + words.len() * 8, device),
            Some(SpareRows::Device(memory)) => (host, device + memory.bytes()),
            None => (host, device),
        }
    }
    /// The device memory with the contents, which copies share, that of versions to which the buffer may return, and
    /// that for the next version.
    pub fn device(&self) -> Vec<Arc<dyn DeviceMemory>> {
        let version = self.version.lock();
        let before = version.before.iter().filter_map(|version| version.device.clone());
        let spare = self.spare.lock();
        let next = match spare.as_ref().map(|spare| &spare.rows) {
            Some(SpareRows::Device(memory)) => Some(memory.clone()),
            _ => None,
        };
        version.device.iter().cloned().chain(before).chain(next).collect()
    }
    /// A buffer of its own with the same contents. Nothing is copied until one of the two is written. If the contents
    /// turn out to be poisoned, so is the copy.
    pub fn snapshot(&self) -> Self {
        self.recall();
        let version = Version { before: Vec::new(), ..self.version.lock().clone() };
        Self { storage: self.storage, len: self.len, version: Mutex::new(version), spare: Mutex::default() }
    }
    /// Whether the buffer may yet return to earlier contents.
    pub fn may_come_back(&self) -> bool {
        self.recall();
        let mut version = self.version.lock();
        if !version.before.is_empty() {
            version.trim();
        }
        !version.before.is_empty()
    }
    /// Whether the outcome of all launches that made the contents is known.
    #[inline]
    pub fn is_sure(&self) -> bool {
        let version = self.version.lock();
        version.completions.is_empty() && version.before.is_empty()
    }
    /// Declares that this buffer's contents replace all of `earlier`'s in one array. When a launch on which either
    /// depends turns out to have failed, the next read reports the first error. From then on the buffer has the
    /// contents from before that failed write.
    ///
    /// # Panics
    /// If the other is of another size or storage.
    pub fn follow(&self, earlier: &Self) {
        assert_eq!((earlier.storage, earlier.len), (self.storage, self.len), "contents of another form");
        if self.is_sure() && earlier.is_sure() {
            return;
        }
        earlier.recall();
        let mut earlier = earlier.version.lock().clone();
        earlier.trim();
        if earlier.before.len() >= MAX_VERSIONS
            && let Some(oldest) = earlier.before.iter().rev().nth(1)
        {
            // the error is dropped here: a read of the buffer reports it
            let _ = oldest.completions.iter().try_for_each(|completion| completion.wait());
            earlier.trim();
        }
        let mut now = self.version.lock();
        let mut completions = earlier.completions.clone();
        completions.extend(
            now.completions
                .drain(..)
                .filter(|completion| !earlier.completions.iter().any(|other| Arc::ptr_eq(completion, other))),
        );
        let mut before = std::mem::take(&mut earlier.before);
        before.insert(0, Arc::new(earlier));
        (now.completions, now.before, now.since) = (completions, before, Poison::now());
        now.trim();
    }
    /// Replaces the version.
    ///
    /// # Panics
    /// If it is of another size or storage.
    pub fn replace(&self, column: HostColumn) {
        self.replace_with(column, Vec::new());
    }
    /// Replaces the version with one made by launches that nobody has waited for.
    ///
    /// # Panics
    /// As [`Buffer::replace`].
    pub fn replace_with(&self, column: HostColumn, completions: Vec<Arc<Completion>>) {
        assert_eq!((column.storage(), column.len()), (self.storage, self.len), "a version of another form");
        let device = column.device().cloned();
        let host = if device.is_some() { None } else { column.into_words() };
        // the old version is dropped after the lock is released
        let version = Version { host, device, completions, ..Version::default() };
        let _old = std::mem::replace(&mut *self.version.lock(), version);
        self.forget_spare();
    }
    /// Replaces the version with one that a launch wrote into the memory of [`Buffer::to_swap`]. `read` is the version
    /// that it read, whose memory is kept for the next launch of the same `writer`. Such a launch may leave each row
    /// alone that this one did not write.
    ///
    /// # Panics
    /// As [`Buffer::replace`].
    pub fn swap(&self, column: HostColumn, read: HostColumn, writer: u64) {
        let before = self.version.lock().clone();
        // another thread may have changed the contents meanwhile
        let rows = match (read.device().cloned(), before.device) {
            (Some(memory), Some(now)) => Arc::ptr_eq(&memory, &now).then_some(SpareRows::Device(memory)),
            (None, _) => {
                let same = |words: &Arc<HostWords>| before.host.as_ref().is_some_and(|now| Arc::ptr_eq(words, now));
                read.into_words().filter(same).map(SpareRows::Host)
            }
            _ => None,
        };
        drop(before.host);
        self.replace(column);
        *self.spare.lock() = rows.map(|rows| Spare { writer, rows });
    }
    /// Memory in which a launch of a `writer` makes the next version, while it reads this one. All rows of it that the
    /// launch does not write are those of this version. The number is how many bytes were copied for that on a device;
    /// rows of the host may be shared, and are copied before they are written.
    ///
    /// # Errors
    /// As [`Buffer::on_device`] and [`Buffer::on_host`].
    pub fn to_swap(&self, writer: u64, store: Option<&dyn DeviceStore>) -> Result<(HostColumn, usize)> {
        let spare = self.spare.lock().take().filter(|spare| spare.writer == writer).map(|spare| spare.rows);
        match (store, spare) {
            (Some(store), Some(SpareRows::Device(memory))) if store.owns(&*memory) && store.may_write(&memory, 1) => {
                Ok((HostColumn::on_device(self.storage, self.len, memory), 0))
            }
            (None, Some(SpareRows::Host(words))) if Arc::strong_count(&words) == 1 => {
                Ok((HostColumn::shared(self.storage, self.len, words), 0))
            }
            (Some(store), _) => self.to_write(store),
            (None, _) => Ok((self.on_host()?, 0)),
        }
    }
    /// Drops the memory for the next version, because that has other contents than a launch expects.
    fn forget_spare(&self) {
        // dropped after the lock is released
        let _gone = self.spare.lock().take();
    }
    /// Records that a device's memory has the same contents as the host.
    ///
    /// # Panics
    /// If the memory is too small for the contents.
    pub fn also_on(&self, memory: Arc<dyn DeviceMemory>) {
        assert!(memory.bytes() >= self.byte_len(), "the memory holds the rows");
        self.version.lock().device = Some(memory);
    }
    /// Makes the version depend on one more completion.
    pub fn depend(&self, completion: Arc<Completion>) {
        self.version.lock().completions.push(completion);
    }
    /// Replaces the version with a poisoned one.
    pub fn poison(&self, poison: Poison) {
        let version = Version { completions: vec![Arc::new(Completion::failed(poison))], ..Version::default() };
        let _old = std::mem::replace(&mut *self.version.lock(), version);
        self.forget_spare();
    }
    /// Makes the contents the same as the other buffer's. Nothing is copied until one of the two is written.
    ///
    /// # Panics
    /// If the other is of another size or storage.
    pub fn share(&self, other: &Self) {
        assert_eq!((other.storage, other.len), (self.storage, self.len), "contents of another form");
        let version = other.version.lock().clone();
        let _old = std::mem::replace(&mut *self.version.lock(), version);
        self.forget_spare();
    }
    /// Waits for the launches on which the contents depend.
    ///
    /// # Errors
    /// `Poisoned`, `Device`.
    pub fn settle(&self) -> Result<()> {
        self.settled().map(drop)
    }
    /// Waits until the contents exist. Does not move them.
    ///
    /// # Errors
    /// As [`Buffer::settle`].
    pub fn finish(&self) -> Result<()> {
        self.settled()?.device.map_or(Ok(()), |memory| memory.settle())
    }
    /// As [`Buffer::settle`], for callers that do not report the error to the user: the buffer does not return to
    /// earlier contents.
    ///
    /// # Errors
    /// As [`Buffer::settle`].
    pub fn wait(&self) -> Result<()> {
        self.decided().map(drop).map_err(|(error, _)| error)
    }
    /// The version, after all launches on which it depends have ended. After an error the buffer returns to earlier
    /// contents, since the caller reports the error.
    fn settled(&self) -> Result<Version> {
        self.decided().map_err(|(error, completions)| {
            if let Error::Poisoned(_) = error {
                self.go_back(&completions);
            }
            error
        })
    }
    /// Returns to earlier contents, because one of these `completions` failed. Does nothing when the version was
    /// replaced meanwhile. False: there are no earlier contents.
    fn go_back(&self, completions: &[Arc<Completion>]) -> bool {
        let mut now = self.version.lock();
        if now.completions.len() != completions.len()
            || !now.completions.iter().zip(completions).all(|(a, b)| Arc::ptr_eq(a, b))
        {
            return true;
        }
        let Some(before) = now.back() else { return false };
        // the old version is dropped after the lock is released
        let _gone = std::mem::replace(&mut *now, before);
        drop(now);
        self.forget_spare();
        true
    }
    /// Returns to earlier contents, if the failure of this version was already reported by a read of another buffer.
    #[inline]
    fn recall(&self) {
        let version = self.version.lock();
        if version.before.is_empty() {
            return;
        }
        let (completions, since) = (version.completions.clone(), version.since);
        drop(version);
        if completions.iter().any(|completion| completion.was_reported(since)) {
            // a failure before the reported one is possible; the next read reports that
            let _ = self.decided();
        }
    }
    /// As [`Buffer::settled`], for callers that report the error later or not at all. On an error also returns the
    /// completions.
    fn decided(&self) -> std::result::Result<Version, (Error, Vec<Arc<Completion>>)> {
        let mut version = loop {
            let version = self.version.lock().clone();
            match version.completions.iter().try_for_each(|completion| completion.wait()) {
                Ok(()) => break version,
                Err(Error::Poisoned(poison))
                    if poison.was_reported(version.since) && self.go_back(&version.completions) => {}
                Err(error) => return Err((error, version.completions)),
            }
        };
        if version.completions.is_empty() {
            return Ok(version);
        }
        let known = std::mem::take(&mut version.completions);
        let before = std::mem::take(&mut version.before);
        let mut now = self.version.lock();
        let mut gone = Vec::new();
        if now.completions.len() == known.len() && now.completions.iter().zip(&known).all(|(a, b)| Arc::ptr_eq(a, b)) {
            now.completions.clear();
            gone = std::mem::take(&mut now.before);
        }
        // versions are dropped after the lock is released
        drop(now);
        drop((before, gone));
        Ok(version)
    }
    /// The contents, for the host to read.
    ///
    /// # Errors
    /// `Poisoned`; `HostMemory` when host memory does not suffice; `Device` when the copy fails.
    pub fn on_host(&self) -> Result<HostColumn> {
        let version = self.settled()?;
        self.fetched(version)
    }
    /// As [`Buffer::on_host`], for callers that do not report that the contents are poisoned: another caller will.
    ///
    /// # Errors
    /// As [`Buffer::on_host`].
    pub fn on_host_later(&self) -> Result<HostColumn> {
        let version = self.decided().map_err(|(error, _)| error)?;
        self.fetched(version)
    }
    fn fetched(&self, version: Version) -> Result<HostColumn> {
        let words = match (version.host, version.device) {
            (Some(words), _) => words,
            (None, None) => {
                let words = room::caught(|| HostWords::zeroed(HostColumn::words_for(self.storage, self.len)))?;
                let words = Arc::new(words);
                self.learn(None, |now| now.host = Some(words.clone()));
                words
            }
            (None, Some(memory)) => {
                let column = self.copied_home(&*memory)?;
                let words = column.into_words().unwrap_or_default();
                self.learn(Some(&memory), |now| now.host = Some(words.clone()));
                words
            }
        };
        Ok(HostColumn::shared(self.storage, self.len, words))
    }
    /// Copies memory of a device to the host.
    fn copied_home(&self, memory: &dyn DeviceMemory) -> Result<HostColumn> {
        let lent = memory.lend(HostColumn::words_for(self.storage, self.len));
        let mut column = room::caught(|| HostColumn::to_fill(self.storage, self.len, lent))?;
        memory.read_column(&mut column)?;
        Ok(column)
    }
    /// The contents for an asynchronous launch to read. Adds the completions on which they depend to `completions`.
    ///
    /// # Errors
    /// As [`Buffer::on_device`].
    pub fn on_device_later(
        &self,
        store: &dyn DeviceStore,
        completions: &mut Vec<Arc<Completion>>,
    ) -> Result<HostColumn> {
        self.recall();
        let (device, depends) = {
            let version = self.version.lock();
            (version.device.clone(), version.completions.clone())
        };
        match device {
            Some(memory) if store.owns(&*memory) => {
                Completion::add_pending(completions, &depends)?;
                Ok(HostColumn::on_device(self.storage, self.len, memory))
            }
            _ => self.uploaded(self.decided().map_err(|(error, _)| error)?, store),
        }
    }
    /// The contents, for a device to read.
    ///
    /// # Errors
    /// `Poisoned`, `Memory` and `Device`.
    pub fn on_device(&self, store: &dyn DeviceStore) -> Result<HostColumn> {
        self.uploaded(self.settled()?, store)
    }
    fn uploaded(&self, version: Version, store: &dyn DeviceStore) -> Result<HostColumn> {
        let memory = match (version.device, version.host) {
            (Some(memory), _) if store.owns(&*memory) => memory,
            (other, host) => {
                let host = match (other, host) {
                    // memory of another device or of another process
                    (Some(memory), None) => {
                        let column = Version { device: Some(memory), ..Version::default() };
                        self.fetched(column)?.into_words()
                    }
                    (_, host) => host,
                };
                let column = host.as_ref().map(|words| HostColumn::shared(self.storage, self.len, words.clone()));
                let memory = match &column {
                    Some(column) => store.upload_column(column)?,
                    None => store.upload(self.byte_len(), None)?,
                };
                let mut now = self.version.lock();
                let same = match (&now.host, &host) {
                    (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                    (None, None) => now.device.is_none(),
                    _ => false,
                };
                if same {
                    now.device = Some(memory.clone());
                }
                memory
            }
        };
        Ok(HostColumn::on_device(self.storage, self.len, memory))
    }
    /// The contents for a launch to write in part, where the launch cannot fail and is never interrupted. Gives the
    /// memory itself when nothing else sees it, else a copy. The number is how many bytes were copied.
    ///
    /// # Errors
    /// As [`Buffer::on_device`].
    pub fn in_place(&self, store: &dyn DeviceStore) -> Result<(HostColumn, usize)> {
        self.forget_spare();
        let column = self.on_device(store)?;
        if let Some(memory) = column.device() {
            let now = self.version.lock();
            // the two owners are the version and the column
            let same = now.device.as_ref().is_some_and(|own| Arc::ptr_eq(own, memory));
            if same && store.may_write(memory, 2) {
                drop(now);
                return Ok((column, 0));
            }
        }
        self.copied(column, store)
    }
    /// A copy of the contents for a launch to write in part, and how many bytes were copied.
    ///
    /// # Errors
    /// As [`Buffer::on_device`].
    pub fn to_write(&self, store: &dyn DeviceStore) -> Result<(HostColumn, usize)> {
        let column = self.on_device(store)?;
        self.copied(column, store)
    }
    fn copied(&self, column: HostColumn, store: &dyn DeviceStore) -> Result<(HostColumn, usize)> {
        let Some(memory) = column.device() else { return Ok((column, 0)) };
        let copy = store.copy(memory)?;
        Ok((HostColumn::on_device(self.storage, self.len, copy), self.byte_len()))
    }
    /// Updates where the version is, if the buffer still has the same version.
    fn learn(&self, device: Option<&Arc<dyn DeviceMemory>>, note: impl FnOnce(&mut Version)) {
        let mut now = self.version.lock();
        let same = match (&now.device, device) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => now.host.is_none(),
            _ => false,
        };
        if same {
            note(&mut now);
        }
    }
    /// Reads bytes, starting at offset `from`, without fetching the other bytes.
    ///
    /// # Errors
    /// `Device`.
    ///
    /// # Panics
    /// If the range exceeds the contents.
    pub fn read(&self, from: usize, to: &mut [u8]) -> Result<()> {
        assert!(from + to.len() <= self.byte_len(), "bytes of the buffer");
        let version = self.settled()?;
        match (version.host, version.device) {
            (Some(words), _) => {
                let column = HostColumn::shared(self.storage, self.len, words);
                copy_by_threads(to, &column.bytes()[from..from + to.len()]);
                Ok(())
            }
            (None, Some(memory)) => memory.read(from, to),
            (None, None) => {
                to.fill(0);
                Ok(())
            }
        }
    }
    /// Writes bytes, starting at offset `from`.
    ///
    /// # Errors
    /// `Device`, when the other bytes cannot be fetched.
    ///
    /// # Panics
    /// If the range exceeds the contents.
    pub fn write(&self, from: usize, bytes: &[u8]) -> Result<()> {
        if self.write_parts(&[(from, bytes)])? {
            return Ok(());
        }
        self.change(|all| all[from..from + bytes.len()].copy_from_slice(bytes))
    }
    /// Writes parts in place on the device. Works only where the device alone has the contents and nothing else sees
    /// them, queued launches included. False: nothing was written, because that does not hold, or because fetching the
    /// contents is cheaper.
    ///
    /// # Errors
    /// `Device`.
    ///
    /// # Panics
    /// If a range exceeds the contents.
    pub fn write_parts(&self, parts: &[(usize, &[u8])]) -> Result<bool> {
        if self.byte_len() <= MAX_FETCHED_BYTES || parts.len() > MAX_PARTS as usize {
            return Ok(false);
        }
        let count = |now: &Version| now.parts + parts.len() as u32;
        let worth_it = |now: &Version| now.host.is_none() && count(now) <= MAX_PARTS;
        let alone = Some(self.version.lock()).filter(|now| worth_it(now)).and_then(|now| now.device.clone());
        let Some(memory) = alone else { return Ok(false) };
        self.settle()?;
        memory.settle()?;
        drop(memory);
        self.forget_spare();
        let mut now = self.version.lock();
        // another thread may have written or read meanwhile
        if !worth_it(&now) || !now.completions.is_empty() {
            return Ok(false);
        }
        let count = count(&now);
        let Some(memory) = now.device.as_mut().and_then(Arc::get_mut) else { return Ok(false) };
        for (from, bytes) in parts {
            assert!(from + bytes.len() <= memory.bytes(), "bytes of the buffer");
            memory.write(*from, bytes)?;
        }
        now.parts = count;
        Ok(true)
    }
    /// Lets the host change the bytes. Copies them first if others see them.
    ///
    /// # Errors
    /// `Device`, when they cannot be fetched; `HostMemory` when memory does not suffice for a copy.
    pub fn change(&self, change: impl FnOnce(&mut [u8])) -> Result<()> {
        let mut now = loop {
            self.on_host()?;
            let now = self.version.lock();
            // another thread's kernel may have written meanwhile
            if now.host.is_some() {
                break now;
            }
        };
        // `take`: a second reference, held by the version, would force a copy
        let words = now.host.take().unwrap_or_default();
        let mut column = HostColumn::shared(self.storage, self.len, words);
        if let Err(error) = room::caught(|| _ = column.bytes_mut()) {
            now.host = column.into_words();
            return Err(error);
        }
        change(column.bytes_mut());
        self.forget_spare();
        let old = std::mem::replace(&mut *now, Version { host: column.into_words(), ..Version::default() });
        drop(now);
        drop(old);
        Ok(())
    }
    /// Moves all contents to the host, those of earlier versions included, and releases the device's memory.
    ///
    /// # Errors
    /// `Device`, when they cannot be fetched.
    pub fn leave_device(&self) -> Result<()> {
        self.forget_spare();
        // versions are dropped after the lock is released
        let _gone = loop {
            let mut now = self.version.lock();
            if now.before.is_empty() && (now.device.is_none() || now.host.is_some()) {
                break now.device.take();
            }
            drop(now);
            // another thread may replace the version meanwhile
            match self.on_host_later() {
                Err(Error::Poisoned(_)) => {
                    self.bring_back()?;
                    let mut now = self.version.lock();
                    if now.is_poisoned() {
                        break now.device.take();
                    }
                }
                fetched => drop(fetched?),
            }
        };
        Ok(())
    }
    /// Waits until it is known to which version the buffer returns, if to any, and drops the other versions. Reports no
    /// failed launch.
    ///
    /// # Errors
    /// `Device`.
    pub fn make_sure(&self) -> Result<()> {
        if self.version.lock().before.is_empty() {
            return Ok(());
        }
        match self.wait() {
            Err(Error::Poisoned(_)) => {
                // versions are dropped after the lock is released
                let mut now = self.version.lock();
                let _gone = now.clone();
                now.trim();
                drop(now);
                Ok(())
            }
            waited => waited,
        }
    }
    /// Copies to the host what only a device has, so that a child of `fork` finds it there. Reports no failed launch.
    ///
    /// # Errors
    /// `Device`, when it cannot be fetched.
    pub fn come_home(&self) -> Result<()> {
        match self.residence() {
            Residence::Device => match self.on_host_later() {
                Err(Error::Poisoned(_)) => self.bring_back(),
                fetched => fetched.map(drop),
            },
            Residence::Poisoned => self.bring_back(),
            _ => Ok(()),
        }
    }
    /// Moves the contents to which a poisoned buffer will return from the device to the host.
    fn bring_back(&self) -> Result<()> {
        let now = self.version.lock().clone();
        let Some(mut back) = now.back() else { return Ok(()) };
        if let (None, Some(memory)) = (&back.host, &back.device) {
            back.host = self.copied_home(&**memory)?.into_words();
        }
        (back.device, back.before) = (None, Vec::new());
        let mut version = self.version.lock();
        let same = version.before.len() == now.before.len()
            && version.before.iter().zip(&now.before).all(|(a, b)| Arc::ptr_eq(a, b));
        if same {
            version.before = vec![Arc::new(back)];
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A fake device's memory, which lies on the host.
    #[derive(Debug)]
    struct Elsewhere(Mutex<Vec<u8>>);

    impl DeviceMemory for Elsewhere {
        fn as_any(&self) -> &dyn Any {
            self
        }
        fn bytes(&self) -> usize {
            self.0.lock().len()
        }
        fn read(&self, from: usize, to: &mut [u8]) -> Result<()> {
            to.copy_from_slice(&self.0.lock()[from..from + to.len()]);
            Ok(())
        }
        fn write(&mut self, from: usize, bytes: &[u8]) -> Result<()> {
            self.0.lock()[from..from + bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
        fn settle(&self) -> Result<()> {
            Ok(())
        }
    }

    /// A fake device's memory. During its first fetch another thread makes the next version; nobody may wait on it.
    #[derive(Debug)]
    struct Overtaken {
        buffer: std::sync::Weak<Buffer>,
        next: Mutex<Option<HostColumn>>,
    }

    impl DeviceMemory for Overtaken {
        fn as_any(&self) -> &dyn Any {
            self
        }
        fn bytes(&self) -> usize {
            MAX_FETCHED_BYTES + 8
        }
        fn read(&self, _: usize, to: &mut [u8]) -> Result<()> {
            to.fill(0xaa);
            if let (Some(buffer), Some(next)) = (self.buffer.upgrade(), self.next.lock().take()) {
                buffer.replace(next);
            }
            Ok(())
        }
        fn write(&mut self, _: usize, _: &[u8]) -> Result<()> {
            unreachable!("nobody writes here")
        }
        fn settle(&self) -> Result<()> {
            Err(crate::error::Error::Device { what: "settling".into(), cause: "the process was forked".into() })
        }
    }

    #[derive(Default)]
    struct Store {
        uploads: AtomicUsize,
    }

    impl DeviceStore for Store {
        fn allocate(&self, bytes: usize) -> Result<Arc<dyn DeviceMemory>> {
            Ok(Arc::new(Elsewhere(Mutex::new(vec![0xaa; bytes]))))
        }
        fn upload(&self, bytes: usize, from: Option<&[u8]>) -> Result<Arc<dyn DeviceMemory>> {
            self.uploads.fetch_add(1, Ordering::Relaxed);
            Ok(Arc::new(Elsewhere(Mutex::new(from.map_or(vec![0; bytes], <[u8]>::to_vec)))))
        }
        fn copy(&self, from: &Arc<dyn DeviceMemory>) -> Result<Arc<dyn DeviceMemory>> {
            let mut bytes = vec![0; from.bytes()];
            from.read(0, &mut bytes)?;
            self.upload(bytes.len(), Some(&bytes))
        }
        fn held(&self) -> u64 {
            0
        }
        fn may_write(&self, memory: &Arc<dyn DeviceMemory>, holders: usize) -> bool {
            Arc::strong_count(memory) == holders
        }
        fn owns(&self, memory: &dyn DeviceMemory) -> bool {
            memory.as_any().is::<Elsewhere>()
        }
    }

    fn three() -> Buffer {
        let mut column = HostColumn::zeroed(Storage::I64, 3);
        column.view_mut::<i64>().copy_from_slice(&[1, 2, 3]);
        Buffer::from_column(column)
    }

    #[test]
    fn contents_that_were_sent_ahead_are_not_sent_again() {
        let (buffer, store) = (three(), Store::default());
        buffer.also_on(store.upload_column(&buffer.on_host().unwrap()).unwrap());
        assert_eq!(buffer.residence(), Residence::Both);
        assert!(buffer.on_device(&store).unwrap().device().is_some());
        assert_eq!(store.uploads.load(Ordering::Relaxed), 1);
        assert_eq!(buffer.on_host().unwrap().view::<i64>(), [1, 2, 3]);
    }

    #[test]
    fn contents_go_where_they_are_looked_at_and_stay_there() {
        let (buffer, store) = (three(), Store::default());
        assert_eq!(buffer.residence(), Residence::Host);
        for _ in 0..2 {
            assert!(buffer.on_device(&store).unwrap().device().is_some());
        }
        assert_eq!((buffer.residence(), store.uploads.load(Ordering::Relaxed)), (Residence::Both, 1));
        buffer.write(8, &7i64.to_ne_bytes()).unwrap();
        assert_eq!(buffer.residence(), Residence::Host);
        let made = buffer.on_device(&store).unwrap();
        buffer.replace(made);
        assert_eq!(buffer.residence(), Residence::Device);
        let mut second = [0; 8];
        buffer.read(8, &mut second).unwrap();
        assert_eq!((i64::from_ne_bytes(second), buffer.residence()), (7, Residence::Device));
        assert_eq!(buffer.on_host().unwrap().view::<i64>(), [1, 7, 3]);
        assert_eq!(buffer.residence(), Residence::Both);
        buffer.leave_device().unwrap();
        assert_eq!(buffer.residence(), Residence::Host);
    }

    /// A large buffer with contents on a device. Another thread replaces them by `next` while they are fetched.
    fn overtaken(next: impl FnOnce(&Buffer) -> Option<HostColumn>) -> Arc<Buffer> {
        let buffer = Arc::new(Buffer::zeroed(Storage::I64, MAX_FETCHED_BYTES / 8 + 1));
        let memory = Overtaken { buffer: Arc::downgrade(&buffer), next: Mutex::new(next(&buffer)) };
        buffer.replace(HostColumn::on_device(Storage::I64, buffer.len(), Arc::new(memory)));
        buffer
    }

    #[test]
    fn a_version_that_is_made_while_the_one_before_leaves_the_device_leaves_it_too() {
        let store = Store::default();
        let buffer = overtaken(|buffer| {
            let mut column = HostColumn::zeroed(Storage::I64, buffer.len());
            column.view_mut::<i64>().fill(7);
            Some(Buffer::from_column(column).on_device(&store).unwrap())
        });
        buffer.leave_device().unwrap();
        assert_eq!(buffer.residence(), Residence::Host);
        assert!(buffer.on_host().unwrap().view::<i64>().iter().all(|element| *element == 7));
    }

    #[test]
    fn what_the_host_has_is_written_without_a_look_at_the_device() {
        let buffer = overtaken(|_| None);
        buffer.write(0, &[1]).expect_err("only the device has it");
        buffer.on_host().unwrap();
        assert_eq!(buffer.residence(), Residence::Both);
        assert!(!buffer.write_parts(&[(0, &[1])]).unwrap());
        buffer.write(0, &[1]).unwrap();
        assert_eq!(buffer.residence(), Residence::Host);
    }

    #[test]
    fn a_copy_keeps_what_it_saw() {
        let buffer = three();
        let copy = buffer.snapshot();
        let read = buffer.on_host().unwrap();
        buffer.write(0, &9i64.to_ne_bytes()).unwrap();
        assert_eq!(buffer.on_host().unwrap().view::<i64>(), [9, 2, 3]);
        assert_eq!(copy.on_host().unwrap().view::<i64>(), [1, 2, 3]);
        assert_eq!(read.view::<i64>(), [1, 2, 3]);
    }

    #[test]
    fn parts_are_written_where_they_are_unless_others_see_them_or_they_are_many() {
        let store = Store::default();
        let large = Buffer::zeroed(Storage::I64, 10_000);
        large.replace(large.on_device(&store).unwrap());
        let element = |buffer: &Buffer, at: usize| {
            let mut bytes = [0; 8];
            buffer.read(at * 8, &mut bytes).unwrap();
            i64::from_ne_bytes(bytes)
        };
        large.write(80, &7i64.to_ne_bytes()).unwrap();
        assert_eq!((element(&large, 10), large.residence()), (7, Residence::Device));
        let copy = large.snapshot();
        large.write(80, &8i64.to_ne_bytes()).unwrap();
        assert_eq!((element(&large, 10), element(&copy, 10)), (8, 7));
        assert_eq!((large.residence(), copy.residence()), (Residence::Host, Residence::Device));
        for at in 0..=i64::from(MAX_PARTS) {
            copy.write(at as usize * 8, &at.to_ne_bytes()).unwrap();
        }
        assert_eq!((element(&copy, 64), element(&copy, 10), copy.residence()), (64, 10, Residence::Host));
    }

    #[test]
    fn a_launch_that_surely_ends_well_writes_in_place_unless_others_see_the_contents() {
        let store = Store::default();
        let buffer = three();
        let address = |column: &HostColumn| column.device().map(|memory| Arc::as_ptr(memory).cast::<()>());
        let now = address(&buffer.on_device(&store).unwrap());
        let (column, copied) = buffer.in_place(&store).unwrap();
        assert_eq!((address(&column), copied), (now, 0));
        buffer.replace(column);
        assert_eq!(buffer.residence(), Residence::Device, "the host's contents are old");
        assert_eq!(buffer.to_write(&store).unwrap().1, 24, "what may have to be undone is copied");
        let copy = buffer.snapshot();
        let (column, copied) = buffer.in_place(&store).unwrap();
        assert!(address(&column) != now && copied == 24);
        buffer.replace(column);
        assert_eq!(address(&copy.on_device(&store).unwrap()), now);
        assert_eq!(copy.in_place(&store).unwrap().1, 0, "nobody else sees them any more");
    }

    #[test]
    fn launches_swap_two_memories_until_something_else_changes_the_contents() {
        let (buffer, store) = (three(), Store::default());
        let on = |column: &HostColumn| column.device().map(|memory| Arc::as_ptr(memory).cast::<()>());
        let swap = |writer: u64| {
            let read = buffer.on_device(&store).unwrap();
            let (next, copied) = buffer.to_swap(writer, Some(&store)).unwrap();
            let addresses = (on(&read), on(&next));
            buffer.swap(next, read, writer);
            (addresses, copied)
        };
        let ((first, second), copied) = swap(1);
        assert!(first != second && copied == 24);
        assert_eq!((swap(1), swap(1)), (((second, first), 0), ((first, second), 0)));
        assert_eq!(buffer.device().len(), 2);
        assert_eq!(swap(2).1, 24, "other rows may differ");
        let copy = buffer.snapshot();
        assert_eq!((swap(2).1, swap(2).1), (0, 24), "somebody sees the memory");
        drop(copy);
        for change in 0..5 {
            assert_eq!((swap(2), swap(2).1).1, 0);
            match change {
                0 => buffer.write(8, &7i64.to_ne_bytes()).unwrap(),
                1 => drop(buffer.in_place(&store).unwrap()),
                2 => buffer.share(&three()),
                3 => buffer.leave_device().unwrap(),
                _ => {
                    let read = buffer.on_device(&store).unwrap();
                    let next = buffer.to_swap(2, Some(&store)).unwrap().0;
                    buffer.write(8, &8i64.to_ne_bytes()).unwrap();
                    buffer.swap(next, read, 2);
                }
            }
            assert_eq!(swap(2).1, 24, "{change}");
        }
        let host = three();
        let swap = || {
            let read = host.on_host().unwrap();
            let (mut next, copied) = host.to_swap(1, None).unwrap();
            next.view_mut::<i64>()[0] += 1;
            let address = next.view::<i64>().as_ptr();
            host.swap(next, read, 1);
            (address, copied, elements(&host)[0])
        };
        let turns: Vec<_> = (0..4).map(|_| swap()).collect();
        assert!(turns[0].0 == turns[2].0 && turns[1].0 == turns[3].0 && turns[0].0 != turns[1].0);
        assert_eq!(turns.iter().map(|(_, _, element)| *element).collect::<Vec<_>>(), [2, 2, 3, 3]);
    }

    #[test]
    fn contents_that_never_came_to_be_raise_wherever_they_are_read() {
        let store = Store::default();
        let poisoned = |answer: Result<()>| matches!(answer, Err(Error::Poisoned(_)));
        let known = Arc::new(Mutex::new(None));
        let look = known.clone();
        let completion = Arc::new(Completion::pending(move |wait| {
            let known: &Mutex<Option<std::result::Result<(), Poison>>> = &look;
            Ok(known.lock().clone().or(wait.then_some(Ok(()))))
        }));
        let made = three().on_device(&store).unwrap();
        let buffer = three();
        buffer.replace_with(made, vec![completion.clone()]);
        let copy = buffer.snapshot();
        let mut completions = Vec::new();
        assert!(buffer.on_device_later(&store, &mut completions).unwrap().device().is_some());
        assert!(copy.on_device_later(&store, &mut completions).is_ok());
        assert_eq!((completions.len(), buffer.residence()), (1, Residence::Device), "one launch is not known yet");
        *known.lock() = Some(Err(Poison::new(())));
        for buffer in [&buffer, &copy] {
            assert_eq!(buffer.residence(), Residence::Poisoned);
            assert!(poisoned(buffer.settle()) && poisoned(buffer.on_host().map(drop)));
            assert!(poisoned(buffer.on_device(&store).map(drop)) && poisoned(buffer.read(0, &mut [0])));
            assert!(poisoned(buffer.write(0, &[1])) && poisoned(buffer.change(|_| ())));
            assert!(poisoned(buffer.on_device_later(&store, &mut Vec::new()).map(drop)));
            buffer.leave_device().unwrap();
            assert!(buffer.device().is_empty() && buffer.residence() == Residence::Poisoned);
        }
        buffer.replace(HostColumn::zeroed(Storage::I64, 3));
        assert_eq!(buffer.on_host().unwrap().view::<i64>(), [0, 0, 0], "a new version is well");
    }

    #[test]
    fn contents_depend_on_launches_until_these_are_known_to_have_ended_well() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let completion = Completion::pending(move |wait| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(wait.then_some(Ok(())))
        });
        let (buffer, store) = (three(), Store::default());
        buffer.replace_with(three().on_device(&store).unwrap(), vec![Arc::new(completion)]);
        for _ in 0..2 {
            assert_eq!(buffer.on_host().unwrap().view::<i64>(), [1, 2, 3]);
        }
        assert_eq!((asked.load(Ordering::Relaxed), buffer.residence()), (1, Residence::Both));
    }

    /// How a launch ended, once that is known.
    type Known = Arc<Mutex<Option<std::result::Result<(), Poison>>>>;

    fn ill() -> Option<std::result::Result<(), Poison>> {
        Some(Err(Poison::new(())))
    }

    /// A buffer that a launch wrote over all of `over`; the launch is still pending.
    fn written(over: &Buffer, element: i64) -> (Buffer, Known) {
        let known = Known::default();
        let look = known.clone();
        let completion = Completion::pending(move |wait| Ok(look.lock().clone().or(wait.then_some(Ok(())))));
        let mut column = HostColumn::zeroed(Storage::I64, 3);
        column.view_mut::<i64>().fill(element);
        let (buffer, device) = (Buffer::zeroed(Storage::I64, 3), Buffer::from_column(column));
        buffer.replace_with(device.on_device(&Store::default()).unwrap(), vec![Arc::new(completion)]);
        buffer.follow(over);
        (buffer, known)
    }

    fn elements(buffer: &Buffer) -> Vec<i64> {
        buffer.on_host().unwrap().view::<i64>().to_vec()
    }

    #[test]
    fn what_was_written_to_all_is_gone_once_the_error_of_a_launch_was_reported() {
        let first = three();
        let (second, well) = written(&first, 4);
        let (third, known) = written(&second, 5);
        let (fourth, _) = written(&third, 6);
        let copy = fourth.snapshot();
        assert!(fourth.may_come_back() && !copy.may_come_back());
        *well.lock() = Some(Ok(()));
        *known.lock() = ill();
        assert_eq!(fourth.residence(), Residence::Poisoned);
        assert!(fourth.wait().is_err() && fourth.on_host_later().is_err(), "these tell nobody");
        assert!(matches!(fourth.on_host(), Err(Error::Poisoned(_))), "the first read reports the error");
        assert_eq!(elements(&fourth), [4; 3], "what was there before the write that ended badly");
        assert!(!fourth.may_come_back());
        assert!(copy.on_host().is_err() && copy.on_host().is_err(), "a copy never came to be");
        let (fifth, _) = written(&fourth, 7);
        assert_eq!(elements(&fifth), [7; 3]);
    }

    #[test]
    fn after_a_report_by_something_else_a_read_finds_what_was_there_before_and_writes_to_that() {
        let first = three();
        for look in 0..6 {
            let (second, known) = written(&first, 4);
            let copy = second.snapshot();
            *known.lock() = ill();
            let Err(Error::Poisoned(poison)) = copy.on_host() else { panic!("the copy is poisoned") };
            assert_eq!(second.residence(), Residence::Poisoned, "the error was not reported yet");
            poison.report();
            assert!(copy.on_host().is_err(), "a copy never came to be");
            match look {
                0 => assert_eq!(second.residence(), Residence::Host),
                1 => assert_eq!(elements(&second.snapshot()), [1, 2, 3]),
                2 => second.write(0, &[1]).unwrap(),
                3 => assert!(second.on_device_later(&Store::default(), &mut Vec::new()).is_ok()),
                4 => assert!(!second.may_come_back()),
                _ => assert_eq!(elements(&written(&second, 9).0), [9; 3], "what is written after that is there"),
            }
            assert_eq!(elements(&second), [1, 2, 3]);
            // a write over contents whose failure was reported before starts anew: its failure is reported, too
            let third = three();
            third.poison(poison);
            third.follow(&second);
            assert!(third.on_host().is_err());
            assert_eq!(elements(&third), [1, 2, 3]);
        }
    }

    #[test]
    fn what_was_reported_last_is_not_all_that_ended_badly() {
        let first = three();
        let (second, one) = written(&first, 4);
        let (third, two) = written(&second, 5);
        (*one.lock(), *two.lock()) = (ill(), ill());
        let Some(Err(poison)) = two.lock().clone() else { unreachable!("it ended badly") };
        poison.report();
        assert!(third.on_host().is_err(), "the error of the first was not reported");
        assert_eq!(elements(&third), [1, 2, 3]);
    }

    #[test]
    fn contents_that_are_poisoned_for_good_do_not_grow_with_what_is_written_to_them() {
        let mut buffer = three();
        buffer.poison(Poison::new(()));
        for _ in 0..20 {
            let next = three();
            next.poison(Poison::new(()));
            next.follow(&buffer);
            buffer = next;
        }
        assert_eq!(buffer.version.lock().completions.len(), 1);
    }

    #[test]
    fn what_a_buffer_may_come_back_to_leaves_the_device_with_it_and_is_let_go_once_all_is_well() {
        let store = Store::default();
        let first = three();
        first.replace(first.on_device(&store).unwrap());
        let (second, known) = written(&first, 4);
        assert_eq!((second.held().1, second.device().len()), (48, 2));
        *known.lock() = ill();
        second.leave_device().unwrap();
        assert_eq!((second.held(), second.residence()), ((24, 0), Residence::Poisoned));
        assert!(second.settle().is_err());
        assert_eq!(elements(&second), [1, 2, 3]);
        let (third, known) = written(&first, 5);
        *known.lock() = Some(Ok(()));
        third.make_sure().unwrap();
        assert_eq!(third.device().len(), 1);
        third.leave_device().unwrap();
        assert_eq!((third.held(), elements(&third)), ((24, 0), vec![5; 3]));
        let (fourth, known) = written(&first, 6);
        *known.lock() = ill();
        fourth.come_home().unwrap();
        assert_eq!(fourth.device().len(), 1, "nobody looks at what never came to be");
        assert!(fourth.settle().is_err());
        assert_eq!(elements(&fourth), [1, 2, 3]);
    }

    #[test]
    fn only_so_many_versions_are_held_that_are_not_known_to_be_well() {
        let mut buffer = three();
        for element in 0..30 {
            buffer = written(&buffer, element).0;
            assert!(buffer.device().len() <= MAX_VERSIONS + 1);
        }
        assert_eq!(elements(&buffer), [29; 3]);
        assert_eq!(buffer.device().len(), 1);
    }

    #[test]
    fn zeroes_are_nowhere_until_somebody_looks() {
        let (buffer, store) = (Buffer::zeroed(Storage::F32, 5), Store::default());
        let mut bytes = [1; 4];
        buffer.read(16, &mut bytes).unwrap();
        assert_eq!((bytes, buffer.residence()), ([0; 4], Residence::Nowhere));
        assert_eq!(buffer.on_device(&store).unwrap().device().map(|m| m.bytes()), Some(20));
        assert_eq!(buffer.on_host().unwrap().view::<f32>(), [0.0; 5]);
        assert_eq!(buffer.residence(), Residence::Both);
    }
}
