//! Machines that run programs.
//!
//! Here: [`Backend`], and the launch protocol that all of them share: keys, traps, cancelling. Not here: any rule of
//! Ruby; a backend translates the IR and nothing else.
//!
//! # Launch protocol
//!
//! Every (tick, index) has a [`Key`]; keys are ordered as sequential Ruby would run them. One shared word, `stop_key`,
//! starts at the launch's limit and only falls. A trap lowers it to its own key and records itself if its key is the
//! least so far. A job ends early only when its own key is greater than `stop_key`, so all smaller keys run to their
//! end and the trap that is reported is the one that sequential Ruby would have met first. Cancelling lowers the word
//! to 0, which is less than every key.
//!
//! A launch need not be waited for if it surely ends and its errors can be deferred
//! ([`crate::ir::Program::can_defer_errors`]): an error is then raised when its result is looked at. The caller says
//! whether it will ask for the outcome ([`Launch::deferred`]). A backend that leaves an [`Ending`] there returns
//! [`Outcome::Done`] for the time being.

pub mod collective;
#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod epilogue;
pub mod fold;
pub mod libm;
pub mod philox;
#[cfg(test)]
mod privatization;
pub mod races;
pub mod reference;
pub mod resident;
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
use collective::reduce::{Reduced, Reduction};
use collective::rows::Collective;
use epilogue::{Compacted, Compaction, Epilogue};
use fold::{Fold, Folded};
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
    /// Greatest number of elements of a launch; indices are less.
    pub const MAX_ELEMENTS: u64 = u32::MAX as u64 - 1;
    /// Index of no element, behind all that are: what a launch finds wrong when its elements are done.
    pub const BEHIND_ALL: u64 = u32::MAX as u64 - 1;
    /// Greatest number of ticks.
    pub const MAX_TICKS: u64 = 1 << 31;

    /// `(tick << 32 | index) + 1`; generated code computes the same.
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
    /// All jobs end as soon as they look. The launch answers [`Outcome::Cancelled`].
    pub fn cancel(&self) {
        self.stop_key.store(Key::CANCEL.0, Ordering::SeqCst);
    }
    pub fn is_cancelled(&self) -> bool {
        self.stop_key.load(Ordering::SeqCst) == Key::CANCEL.0
    }
    /// The shared word itself; kernels on the host poll and lower it in place.
    pub fn stop_key(&self) -> &AtomicU64 {
        &self.stop_key
    }
}

/// One run of a prepared program.
pub struct Launch<'a> {
    /// In the program's order. Written columns are changed in place; after anything but [`Outcome::Done`] (and a
    /// [`Outcome::Trapped`] exactly at `limit`) their contents mean nothing.
    pub columns: &'a mut [HostColumn],
    /// For each column, what the kernel's row operand counts from: the first class's base id in class spaces, else 0.
    pub biases: &'a [u64],
    /// One word per parameter: Bool 0 or 1, I32 sign-extended, I64, F64 bits.
    pub params: &'a [u64],
    /// Jobs, padding included.
    pub jobs: u64,
    /// Threads that may run jobs at the same time: at least 1, and what [`Backend::slots`] said where the program's
    /// rows depend on it.
    pub slots: u64,
    /// Rows that mean nothing before the launch, by column.
    pub fresh: &'a [Fresh],
    /// Ticks `0..ticks`.
    pub ticks: u64,
    pub seed: u64,
    /// Number of this section since seeding, for `rand`.
    pub section: u32,
    /// Elements with greater keys do not run. [`Key::NONE`] but when a section that was left by `break` runs again:
    /// a program that surely ends is given no other.
    pub limit: Key,
    pub cancel: &'a CancelToken,
    /// Threads per block or jobs per chunk, as a hint.
    pub block_size: Option<u32>,
    pub timings: &'a mut Timings,
    /// For a program that can defer its errors: where a backend that does not wait leaves what knows how the launch
    /// ended.
    pub deferred: Option<&'a mut Option<Box<dyn Ending>>>,
}

/// Knows how a launch ended that was not waited for.
pub trait Ending: Send {
    /// None: it has not, and was not to be waited for.
    ///
    /// # Errors
    /// `Device`.
    fn outcome(&self, wait: bool) -> Result<Option<Outcome>>;
}

impl<'a> Launch<'a> {
    /// One tick of so many jobs with nothing beside it: no rows but the columns', no deferred errors.
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
            timings,
            deferred: None,
        }
    }
    /// Runs a launch whose columns, biases and fresh rows are those of the layout's buffers, one after the other. Where each
    /// column has its own, they are the columns.
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

/// Rows of a column that a program may take ([`crate::ir::Heap`]): need not reach a device, and those that were not taken
/// need not come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fresh {
    pub column: ColumnId,
    /// Counted from the column's first row.
    pub rows: Range<u64>,
    /// The `Single` column that says how many of them were taken. None: scratch, of which nothing is wanted.
    pub taken: Option<ColumnId>,
}

/// Wall-clock time of a launch's phases, as far as a backend has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    /// Somebody reads them: a kernel's time is then to be that of the kernel alone, which costs the launch two calls of a driver more.
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
    /// Of a record as kernels leave it, whose key is that of what was raised first, or [`Key::NONE`]. What is raised behind all elements says
    /// by its first word which of them it is told of.
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

/// A program that a backend has compiled. Immutable and shared by threads.
pub trait Executable: Any + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    /// Generated code as text, for people (`Ikra.explain`).
    fn listing(&self) -> String;
    /// Time spent compiling, and whether the code came from the disk cache.
    fn compiled_in(&self) -> Duration;
    #[allow(clippy::wrong_self_convention, reason = "asks where the code came from; converts nothing")]
    fn from_cache(&self) -> bool {
        false
    }
    /// Launches of one tick may be one of several, by a program that does what this one does in each. Whoever has no use for that forgets it.
    fn join_ticks(&self, _: FusedTicks) {}
    /// Of what [`Backend::prepare_with_epilogue`] gave: whether it reduces, or compacts, in the pass that computes.
    /// Where not, the column is there in between.
    fn runs_epilogue(&self) -> bool {
        false
    }
    /// Calls nested too deep in a launch: whether they may nest deeper in the next, as there was room for that.
    ///
    /// # Errors
    /// `Device`.
    fn deepen(&self) -> Result<bool> {
        Ok(false)
    }
}

/// Makes a program whose launch of n ticks does what n launches of one do by another program, over the same columns with the same parameters; None: there is none.
pub type FusedTicks = Box<dyn FnOnce() -> Result<Option<Program>> + Send + Sync>;

/// A backend's own executable.
///
/// # Errors
/// `Internal` for that of another one.
fn own<'a, T: Executable>(executable: &'a dyn Executable, stage: &'static str) -> Result<&'a T> {
    let own = executable.as_any().downcast_ref::<T>();
    own.ok_or_else(|| Error::Internal { stage, detail: "another backend's kernel was launched".into() })
}

/// A machine: compiles programs and runs them. One object per process and device, shared by all threads.
pub trait Backend: Send + Sync {
    /// `reference`, `cpu`, `cuda`, `cuda-shim`.
    fn name(&self) -> &'static str;
    fn target(&self) -> &Target;
    /// A program is about to be made for it: what takes long and needs no program may begin. Does not wait, and says nothing of what fails.
    fn get_ready(&self) {}
    /// # Errors
    /// `Device` when the machine or its compiler fails, `Internal` when the program is malformed.
    fn prepare(&self, program: &Program, layout: &Layout, options: &CodeOptions) -> Result<Arc<dyn Executable>>;
    /// How many jobs of a launch run at the same time, at most: as many slots need room for scratch rows.
    fn slots(&self, jobs: u64) -> u64;
    /// Runs all ticks of all jobs; blocks until they end. Called without the GVL.
    ///
    /// # Errors
    /// `Device` or `Memory`; what the program itself raises is an [`Outcome`].
    fn launch(&self, executable: &dyn Executable, launch: Launch<'_>) -> Result<Outcome>;
    /// As [`Backend::prepare`], for launches of which one column is not wanted itself.
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
    /// Runs one tick of what [`Backend::prepare_with_epilogue`] gave for a fold. The column of the fold means nothing,
    /// before and after; what it is reduced to is there when the outcome is [`Outcome::Done`].
    ///
    /// # Errors
    /// As [`Backend::launch`].
    fn launch_fold(&self, executable: &dyn Executable, fold: Fold, launch: Launch<'_>) -> Result<Folded> {
        fold::apart(self, &Threads::new(1), executable, fold, launch)
    }
    /// Runs one tick of what [`Backend::prepare_with_epilogue`] gave for a compaction, where that runs at once
    /// ([`Executable::runs_epilogue`]). The columns of the compaction mean nothing, before and after; the rows that
    /// there are are given when the outcome is [`Outcome::Done`].
    ///
    /// # Errors
    /// As [`Backend::launch`]; `Internal` where it does not.
    fn launch_compaction(&self, _: &dyn Executable, _: Compaction, _: Launch<'_>) -> Result<Compacted> {
        Err(Error::Internal { stage: "backend", detail: "a selection apart from what computes its rows".into() })
    }
    /// Reduces a stretch of rows that are in its memory.
    ///
    /// # Errors
    /// `Memory` and `Device`; `Internal` for rows that are not.
    fn reduce(&self, _: Reduction, _: Element, _: &HostColumn, _: Range<usize>) -> Result<Reduced> {
        Err(Error::Internal { stage: "backend", detail: "rows of the host are reduced by the host".into() })
    }
    /// What goes over rows in its memory, where that is not the host's.
    fn collective(&self) -> Option<&dyn Collective> {
        None
    }
    /// Its memory, where that is not the host's.
    fn store(&self) -> Option<&dyn DeviceStore> {
        None
    }
}
