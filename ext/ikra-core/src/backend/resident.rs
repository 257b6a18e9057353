//! Columns whose rows are a buffer's: how they come into a launch, and what becomes of what was written.
//!
//! Here: [`Resident`], and [`send`], by which several are on their way at once. Not here: who they are (the bridge says), and the versions of a buffer
//! ([`crate::memory::buffer`]).

use super::Backend;
use crate::error::Result;
use crate::ir::ColumnId;
use crate::memory::buffer::{Buffer, Residence};
use crate::memory::column::HostColumn;
use crate::memory::completion::Completion;
use crate::memory::room;
use std::sync::Arc;

/// One column of a launch that is a buffer.
#[derive(Clone, Debug)]
pub struct Resident {
    pub column: ColumnId,
    pub buffer: Arc<Buffer>,
    pub write: Write,
}

/// What a launch does to the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// It is only read.
    None,
    /// In part.
    Some,
    /// Every row is.
    All,
}

/// With fewer bytes a column is on the device in no time.
const WORTH_SENDING: usize = 64 << 10;
/// Threads that wait for a column's way at the same time.
const SENDERS: usize = 4;

/// Sends the columns that a launch reads to the backend's memory, where that is not the host's, several at a time: each waits for its way there, most of which is no
/// copying where it is short. What cannot be sent is told of when it enters the launch.
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
            // without a thread they go there as they enter the launch
            let _ = std::thread::Builder::new().name("ikra sends".into()).spawn_scoped(scope, send);
        }
    });
}

impl Resident {
    /// Puts the rows into the launch, wherever the backend wants them, and says how many bytes were copied so that what is written can be undone. What
    /// is written is a version of its own, which nobody else sees before [`Resident::keep`]; or, in part by a launch that `surely` ends well and that
    /// nothing stops, the one that there is, where nobody else sees that. `completions`: of a launch that nobody need
    /// wait for, what it depends on; else all that is read is waited for.
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
            (None, Write::All) => room::caught(|| HostColumn::to_fill(storage, len, None))?,
            // the host's kernels copy what they write
            (None, _) if completions.is_some() => self.buffer.on_host_later()?,
            (None, _) => self.buffer.on_host()?,
        };
        Ok(copied)
    }

    /// After a launch that ended well, if these launches did: what was written is the buffer's from now on.
    pub fn keep(&self, columns: &mut [HostColumn], completions: &[Arc<Completion>]) {
        if self.write != Write::None {
            let none = HostColumn::zeroed(self.buffer.storage(), 0);
            self.buffer.replace_with(std::mem::replace(&mut columns[self.column.index()], none), completions.to_vec());
        }
    }
}
