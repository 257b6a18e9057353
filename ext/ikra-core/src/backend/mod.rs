//! Backends: machines that run programs.
//!
//! Here: [`Backend`], and the launch protocol of all backends: keys, traps, cancelling. Not here: any rule of Ruby; a
//! backend translates the IR and nothing else.
//!
//! # Launch protocol
//!
//! Each (tick, index) has a [`Key`]; keys are ordered as sequential Ruby would run them. One shared word, `stop_key`,
//! starts at the launch's limit and never rises. A trap lowers it to its own key, and records itself if its key is the
//! least so far. A job ends early only when its own key is greater than `stop_key`. So all smaller keys run to their
//! end, and the reported trap is the one that sequential Ruby would meet first. Cancelling lowers the word to 0, which
//! is less than every key.
//!
//! Nobody has to wait for a launch if it surely ends and its errors can be deferred
//! ([`crate::ir::Program::can_defer_errors`]). An error is then raised when its result is read. The caller says whether
//! it will ask for the outcome later ([`Launch::deferred`]). A backend that stores an [`Ending`] there returns
//! [`Outcome::Done`] at once.

pub mod collective;
#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod doubled;
pub mod epilogue;
pub mod fold;
pub mod lanes;
pub mod libm;
pub mod philox;
#[cfg(test)]
mod privatization;
pub mod races;
pub mod reference;
pub mod resident;
pub mod resources;
pub mod threads;
pub mod vectors;
mod worker_pool;

use crate::config::CodeOptions;
use crate::error::{Error, Result};
use crate::ir::{ColumnId, Program, SiteId, TRAP_WORDS};
use crate::layout::{Address, Layout};
use crate::memory::buffer::DeviceStore;
use crate::memory::column::HostColumn;
use crate::memory::interleave;
use crate::target::Target;
use collective::Element;
use collective::emitted::Emitted;
use collective::reduce::{Reduced, Reduction};
use collective::rows::Collective;
use epilogue::{Compacted, Compaction, Epilogue};
use fold::{Fold, Folded};
use resources::{Machine, Resources, Share};
use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use threads::Threads;

/// Position of an element's run in sequential Ruby's order: tick first, then index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(pub u64);

impl Key {
    /// Greater than every key: nothing stops.
    pub const NONE: Key = Key(u64::MAX);
    /// Less than every key: everything stops.
    pub const CANCEL: Key = Key(0);
    /// The greatest number of elements of a launch; indices are less.
    pub const MAX_ELEMENTS: u64 = u32::MAX as u64 - 1;
    /// An index behind those of all elements. A trap has it when the launch finds the error after its elements are
    /// done.
    pub const BEHIND_ALL: u64 = u32::MAX as u64 - 1;
    /// The greatest number of ticks.
    pub const MAX_TICKS: u64 = 1 << 31;

    /// `(tick << 32 | index) + 1`. Generated code computes the same.
    pub fn new(tick: u64, index: u64) -> Self {
        Key((tick << 32 | index) + 1)
    }
    pub fn tick(self) -> u64 {
        (self.0 - 1) >> 32
    }
    pub fn index(self) -> u64 {
        (self.0 - 1) & 0xffff_ffff
    }
}

/// Stops a launch from another thread.
#[derive(Debug)]
pub struct CancelToken {
    stop_key: AtomicU64,
}

impl Default for CancelToken {
    fn default() -> Self {
        Self { stop_key: AtomicU64::new(Key::NONE.0) }
    }
}

impl CancelToken {
    /// Ends all jobs at their next poll. The launch returns [`Outcome::Cancelled`].
    pub fn cancel(&self) {
        self.stop_key.store(Key::CANCEL.0, Ordering::SeqCst);
    }
    pub fn is_cancelled(&self) -> bool {
        self.stop_key.load(Ordering::SeqCst) == Key::CANCEL.0
    }
    /// The shared word itself. Kernels on the host read and lower it in place.
    pub fn stop_key(&self) -> &AtomicU64 {
        &self.stop_key
    }
}

/// One run of a prepared program.
pub struct Launch<'a> {
    /// The columns, in the program's order. Written columns are changed in place. Their contents are unspecified after
    /// any other outcome than [`Outcome::Done`], or [`Outcome::Trapped`] exactly at `limit`.
    pub columns: &'a mut [HostColumn],
    /// For each column, the row operand of its first row: in class spaces the first class's base id, else 0.
    pub biases: &'a [u64],
    /// One word per parameter: a Bool is 0 or 1, an I32 is sign-extended, a Float is its bits.
    pub params: &'a [u64],
    /// The number of jobs, including padding.
    pub jobs: u64,
    /// The number of threads that may run jobs at the same time, at least 1. It is what [`Backend::slots`] returned if
    /// the size of the program's columns depends on it.
    pub slots: u64,
    /// Rows whose contents are unspecified before the launch, by column.
    pub fresh: &'a [Fresh],
    /// The number of ticks, which count from 0.
    pub ticks: u64,
    pub seed: u64,
    /// The number of this section since seeding, for `rand`.
    pub section: u32,
    /// Elements with greater keys do not run. It is [`Key::NONE`] except when a section that was left by `break` runs
    /// again. A program that surely ends always gets [`Key::NONE`].
    pub limit: Key,
    pub cancel: &'a CancelToken,
    /// A hint: threads per block, or jobs per chunk.
    pub block_size: Option<u32>,
    /// A hint: other launches have work for the other threads of the host.
    pub unsplit: bool,
    /// A hint: other launches run beside this one, which gets these threads. They loop over its jobs.
    pub share: Option<Share>,
    pub timings: &'a mut Timings,
    /// For a program that [emits](Program::emits) pairs: where their groups go. They count when the outcome is
    /// [`Outcome::Done`].
    pub groups: Option<&'a mut Emitted>,
    /// For a program that can defer its errors: where a backend that does not wait stores the object that knows how the
    /// launch ended.
    pub deferred: Option<&'a mut Option<Box<dyn Ending>>>,
}

/// Knows how an asynchronous launch ended.
pub trait Ending: Send {
    /// The outcome. None: the launch has not ended, and `wait` is false.
    ///
    /// # Errors
    /// `Device`.
    fn outcome(&self, wait: bool) -> Result<Option<Outcome>>;
}

impl<'a> Launch<'a> {
    /// A launch of one tick and `jobs` jobs, without fresh rows and deferred errors.
    pub fn of(
        jobs: u64,
        columns: &'a mut [HostColumn],
        biases: &'a [u64],
        params: &'a [u64],
        cancel: &'a CancelToken,
        timings: &'a mut Timings,
    ) -> Self {
        Self {
            columns,
            biases,
            params,
            jobs,
            slots: 1,
            fresh: &[],
            ticks: 1,
            seed: 0,
            section: 0,
            limit: Key::NONE,
            cancel,
            block_size: None,
            unsplit: false,
            share: None,
            timings,
            groups: None,
            deferred: None,
        }
    }
    /// The same launch once more, without groups and deferred errors.
    pub fn again(&mut self) -> Launch<'_> {
        Launch { columns: self.columns, timings: self.timings, groups: None, deferred: None, ..*self }
    }
    /// Runs a launch over the layout's buffers: their columns, biases and fresh rows, one after the other. Where each
    /// column has its own buffer, the buffers are the columns.
    pub fn with_buffers<T>(self, layout: &Layout, run: impl FnOnce(Launch<'_>) -> T) -> T {
        if !layout.is_shared() {
            return run(Launch { ..self });
        }
        let columns = self.columns;
        let mut buffers = interleave::gather(layout, columns);
        let first = |buffer| layout.fields(buffer).next().map_or(0, |(column, _)| self.biases[column]);
        let biases: Vec<u64> = (0..layout.buffers()).map(first).collect();
        let moved = |column| {
            let Address::Strided { buffer, .. } = layout.address(column);
            ColumnId::new(buffer)
        };
        let fresh: Vec<Fresh> = self
            .fresh
            .iter()
            .map(|f| Fresh { column: moved(f.column), rows: f.rows.clone(), taken: f.taken.map(moved) })
            .collect();
        let answer = run(Launch { columns: &mut buffers, biases: &biases, fresh: &fresh, ..self });
        interleave::scatter(layout, buffers, columns);
        answer
    }
}

/// Rows of a column that a program may allocate ([`crate::ir::Heap`]). They need not be copied to a device, and those
/// that were not allocated need not be copied back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fresh {
    pub column: ColumnId,
    /// Counted from the first row of the column.
    pub rows: Range<u64>,
    /// The `Single` column that says how many of the rows were allocated. None: scratch rows, which nobody reads
    /// afterwards.
    pub taken: Option<ColumnId>,
}

/// Wall-clock time of the phases of a launch, as far as a backend has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Whether the times will be read. If so, the kernel's time must be that of the kernel alone, which costs two more
    /// driver calls.
    pub exact: bool,
    pub upload: Duration,
    pub kernel: Duration,
    pub download: Duration,
}

/// The trap with the least key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrapRecord {
    pub key: Key,
    pub site: SiteId,
    pub words: [u64; TRAP_WORDS],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Trapped(TrapRecord),
    Cancelled,
}

impl Outcome {
    /// The outcome from a record as kernels write it. Its key is that of the first trap, or [`Key::NONE`]. If the trap
    /// was found behind all elements, its first word is the index of the element to report.
    pub(crate) fn recorded(key: u64, site: u64, words: [u64; TRAP_WORDS]) -> Self {
        if key == Key::NONE.0 {
            return Outcome::Done;
        }
        let site = SiteId::new(usize::try_from(site).unwrap_or(usize::MAX));
        let key = Key(key);
        Outcome::Trapped(match key.index() {
            Key::BEHIND_ALL => TrapRecord { key: Key::new(key.tick(), words[0]), site, words: [0; TRAP_WORDS] },
            _ => TrapRecord { key, site, words },
        })
    }
}

/// A program that a backend has compiled. It is immutable and shared by threads.
pub trait Executable: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    /// The generated code as text, for `Ikra.explain`.
    fn listing(&self) -> String;
    /// The time spent compiling, and whether the code came from the disk cache.
    fn compiled_in(&self) -> Duration;
    #[allow(clippy::wrong_self_convention, reason = "asks where the code came from; converts nothing")]
    fn from_cache(&self) -> bool {
        false
    }
    /// How long one thread of the host computes, or waits for a device, for so many jobs and ticks, as far as earlier
    /// launches have shown.
    fn predicted(&self, _jobs: u64, _ticks: u64) -> Option<Duration> {
        None
    }
    /// Says that several launches of one tick may become one launch, of a program that does in each tick what this one
    /// does. A backend without a use for that ignores it.
    fn join_ticks(&self, _: FusedTicks) {}
    /// For an executable of [`Backend::prepare_with_epilogue`]: whether it reduces, or compacts, in the pass that
    /// computes. If not, the column is stored in between.
    fn runs_epilogue(&self) -> bool {
        false
    }
    /// Called when calls nested too deep in a launch. Whether the next launch allows deeper nesting, because memory
    /// sufficed for that.
    ///
    /// # Errors
    /// `Device`.
    fn deepen(&self) -> Result<bool> {
        Ok(false)
    }
}

/// Makes a program whose launch of n ticks does what n launches of one tick do by another program, over the same
/// columns with the same parameters. None: there is no such program.
pub type FusedTicks = Box<dyn FnOnce() -> Result<Option<Program>> + Send + Sync>;

/// Casts to a backend's own type of executable.
///
/// # Errors
/// `Internal` for the executable of another backend.
fn own<'a, T: Executable>(executable: &'a dyn Executable, stage: &'static str) -> Result<&'a T> {
    let own = executable.as_any().downcast_ref::<T>();
    own.ok_or_else(|| Error::Internal { stage, detail: "another backend's kernel was launched".into() })
}

/// A machine that compiles programs and runs them. There is one object per process and device, which all threads share.
pub trait Backend: Send + Sync {
    /// `reference`, `cpu`, `cuda`, `cuda-shim`.
    fn name(&self) -> &'static str;
    fn target(&self) -> &Target;
    /// Starts slow initialisation that needs no program, because one will be prepared soon. Does not wait, and reports
    /// no failure.
    fn get_ready(&self) {}
    /// # Errors
    /// `Device` when the machine or its compiler fails, `Internal` when the program is malformed.
    fn prepare(&self, program: &Program, layout: &Layout, options: &CodeOptions) -> Result<Arc<dyn Executable>>;
    /// Whether its kernels group the pairs that programs emit.
    fn groups(&self) -> bool {
        false
    }
    /// How many jobs of a launch run at the same time at most. So many slots need memory for scratch rows.
    fn slots(&self, jobs: u64) -> u64;
    /// Runs all ticks of all jobs, and blocks until they end. Called without the GVL.
    ///
    /// # Errors
    /// `Device` or `Memory`. What the program itself raises is an [`Outcome`].
    fn launch(&self, executable: &dyn Executable, launch: Launch<'_>) -> Result<Outcome>;
    /// As [`Backend::prepare`], for launches with an epilogue in place of one column.
    ///
    /// # Errors
    /// As [`Backend::prepare`].
    fn prepare_with_epilogue(
        &self,
        program: &Program,
        layout: &Layout,
        _: Epilogue,
        options: &CodeOptions,
    ) -> Result<Arc<dyn Executable>> {
        self.prepare(program, layout, options)
    }
    /// The device, for plans. A backend without one has that of [`Machine::MODEL`].
    fn machine(&self) -> Machine {
        Machine::MODEL
    }
    /// How many blocks of so many threads run at once on a multiprocessor, as the device says. None: there is none.
    fn blocks(&self, _: &dyn Executable, _threads: u32) -> Option<u32> {
        None
    }
    /// Over how many multiprocessors a grid with one block for each has spread, and how many there are. Plans rest on
    /// that. None: there is no device.
    ///
    /// # Errors
    /// `Device`.
    fn spread(&self) -> Result<Option<(u32, u32)>> {
        Ok(None)
    }
    /// What a block of an executable takes. None: a backend that has no blocks.
    ///
    /// # Errors
    /// `Device`.
    fn resources(&self, _: &dyn Executable) -> Result<Option<Resources>> {
        Ok(None)
    }
    /// Runs one tick of an executable of [`Backend::prepare_with_epilogue`] for a fold. The contents of the fold's
    /// column are unspecified before and after. The result of the reduction is there when the outcome is
    /// [`Outcome::Done`].
    ///
    /// # Errors
    /// As [`Backend::launch`].
    fn launch_fold(&self, executable: &dyn Executable, fold: Fold, launch: Launch<'_>) -> Result<Folded> {
        fold::apart(self, &Threads::new(1), executable, fold, launch)
    }
    /// Runs one tick of an executable of [`Backend::prepare_with_epilogue`] for a compaction, if it compacts in the
    /// pass that computes ([`Executable::runs_epilogue`]). The contents of the compaction's columns are unspecified
    /// before and after. The selected rows are returned when the outcome is [`Outcome::Done`].
    ///
    /// # Errors
    /// As [`Backend::launch`]; `Internal` if the executable does not compact.
    fn launch_compaction(&self, _: &dyn Executable, _: Compaction, _: Launch<'_>) -> Result<Compacted> {
        Err(Error::Internal { stage: "backend", detail: "a selection apart from what computes its rows".into() })
    }
    /// Reduces a range of rows in the backend's memory.
    ///
    /// # Errors
    /// `Memory` and `Device`; `Internal` for rows in other memory.
    fn reduce(&self, _: Reduction, _: Element, _: &HostColumn, _: Range<usize>) -> Result<Reduced> {
        Err(Error::Internal { stage: "backend", detail: "rows of the host are reduced by the host".into() })
    }
    /// Collective operations over rows in the backend's memory. None: that is host memory.
    fn collective(&self) -> Option<&dyn Collective> {
        None
    }
    /// The backend's memory. None: it is host memory.
    fn store(&self) -> Option<&dyn DeviceStore> {
        None
    }
}
