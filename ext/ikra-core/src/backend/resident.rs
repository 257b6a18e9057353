//! Resident columns: columns of a launch whose rows are those of a buffer.
//!
//! Here: [`Resident`], which brings a buffer into a launch and takes the written rows back; [`send`], which copies
//! several buffers to a device at the same time. Not here: which columns are buffers (the bridge says), and the
//! versions of a buffer ([`crate::memory::buffer`]).

use super::Backend;
use crate::error::Result;
use crate::ir::ColumnId;
use crate::memory::buffer::{Buffer, Residence};
use crate::memory::column::HostColumn;
use crate::memory::completion::Completion;
use crate::memory::room;
use std::sync::Arc;

/// One column of a launch whose rows are a buffer's.
#[derive(Clone, Debug)]
pub struct Resident {
    pub column: ColumnId,
    pub buffer: Arc<Buffer>,
    pub write: Write,
}

/// Which rows of the buffer a launch writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// None: it only reads.
    None,
    /// Some of them.
    Some,
    /// All of them.
    All,
    /// The same ones as the last launch of a writer with this number, while it reads the rows from another column.
    Swap { writer: u64, before: ColumnId },
}

/// Smaller columns are copied to a device so fast that a thread is not worthwhile.
const WORTH_SENDING: usize = 64 << 10;
/// How many threads copy columns at the same time.
const SENDERS: usize = 4;

/// Copies the columns that a launch reads to the backend's memory, several at a time. Does nothing if that is host
/// memory. A copy of a short column mostly waits, so several threads wait at the same time. Errors are reported when
/// the column enters the launch.
pub fn send(residents: &[Resident], backend: &dyn Backend) {
    let Some(store) = backend.store() else { return };
    let waits = |resident: &&Resident| {
        let buffer = &resident.buffer;
        resident.write != Write::All && buffer.byte_len() >= WORTH_SENDING && buffer.residence() == Residence::Host
    };
    let waiting: Vec<&Resident> = residents.iter().filter(waits).collect();
    if waiting.len() < 2 {
        return;
    }
    std::thread::scope(|scope| {
        for sender in 0..SENDERS.min(waiting.len()) {
            let own: Vec<&Resident> = waiting.iter().skip(sender).step_by(SENDERS).copied().collect();
            let send = move || own.into_iter().for_each(|resident| drop(resident.buffer.on_device(store)));
            // without a thread, a column is copied when it enters the launch
            let _ = std::thread::Builder::new().name("ikra sends".into()).spawn_scoped(scope, send);
        }
    });
}

impl Resident {
    /// Adds the rows to the launch, in the memory of the backend. Returns how many bytes were copied so that the write
    /// can be undone.
    ///
    /// Written rows are a new version, which nobody else sees before [`Resident::keep`]. There is one exception: a
    /// launch that `surely` ends without an error, and that nothing stops, writes parts in place if nobody else sees
    /// the version. `completions`: for an asynchronous launch, collects the completions on which it depends. None:
    /// waits for all that the launch reads.
    ///
    /// # Errors
    /// `Poisoned`, `Memory`, `HostMemory` and `Device`.
    pub fn enter(
        &self,
        backend: &dyn Backend,
        columns: &mut [HostColumn],
        completions: Option<&mut Vec<Arc<Completion>>>,
        surely: bool,
    ) -> Result<usize> {
        let (storage, len) = (self.buffer.storage(), self.buffer.len());
        let mut copied = 0;
        columns[self.column.index()] = match (backend.store(), self.write) {
            (Some(store), Write::None) => match completions {
                Some(completions) => self.buffer.on_device_later(store, completions)?,
                None => self.buffer.on_device(store)?,
            },
            (Some(store), Write::All) => HostColumn::on_device(storage, len, store.allocate(self.buffer.byte_len())?),
            (Some(store), Write::Some) => {
                let rows = if surely { self.buffer.in_place(store)? } else { self.buffer.to_write(store)? };
                copied = rows.1;
                rows.0
            }
            (store, Write::Swap { writer, .. }) => {
                let rows = self.buffer.to_swap(writer, store)?;
                copied = rows.1;
                rows.0
            }
            (None, Write::All) => room::caught(|| HostColumn::to_fill(storage, len, None))?,
            // kernels on the host copy what they write
            (None, _) if completions.is_some() => self.buffer.on_host_later()?,
            (None, _) => self.buffer.on_host()?,
        };
        Ok(copied)
    }

    /// Makes the written rows the contents of the buffer. Called after a launch that ended without an error, if
    /// `completions` do, too.
    pub fn keep(&self, columns: &mut [HostColumn], completions: &[Arc<Completion>]) {
        let mut taken = |column: ColumnId| {
            let none = HostColumn::zeroed(self.buffer.storage(), 0);
            std::mem::replace(&mut columns[column.index()], none)
        };
        match self.write {
            Write::None => {}
            // such launches are waited for
            Write::Swap { writer, before } => self.buffer.swap(taken(self.column), taken(before), writer),
            Write::Some | Write::All => self.buffer.replace_with(taken(self.column), completions.to_vec()),
        }
    }
}
