//! Device memory that outlives launches: the contents of arrays.
//!
//! Here: [`CudaMemory`]; [`CudaBackend`] as the store that makes it; how launches find rows in it, and wait for queued
//! work that writes them. Not here: the memory of a launch ([`super::plan`]), queued work ([`super::super::queue`]),
//! and copies ([`super::super::storage`]).

use super::over::cuda;
use super::{CudaBackend, Lanes, internal};
use crate::backend::cuda::driver::Device;
use crate::backend::cuda::queue::{Allocation, Length, Pending, Queue};
use crate::backend::cuda::storage::Block;
use crate::error::Result;
use crate::memory::buffer::{DeviceMemory, DeviceStore};
use crate::memory::column::HostColumn;
use crate::memory::words::HostWords;
use std::any::Any;
use std::sync::Arc;

/// Waits until queued work on these memories is done.
pub(super) fn wait_for<'a>(mut memories: impl Iterator<Item = &'a Arc<dyn DeviceMemory>>) -> Result<()> {
    memories.try_for_each(|memory| match memory.as_any().downcast_ref::<CudaMemory>() {
        Some(memory) => memory.wait(),
        None => Ok(()),
    })
}

/// The address of rows that are on the device; None: they are on the host. An error for rows on another device.
pub(super) fn address_of(device: &Device, column: &HostColumn) -> Result<Option<u64>> {
    let Some(memory) = column.device() else { return Ok(None) };
    match memory.as_any().downcast_ref::<CudaMemory>() {
        Some(memory) if std::ptr::eq(&**memory.block.device(), device) => Ok(Some(memory.block.address())),
        _ => Err(internal("rows of another device")),
    }
}

/// Memory that outlives launches. When its last owner drops it, no launch uses it, because launches hold their memory.
pub(super) struct CudaMemory {
    pub(super) block: Block,
    pub(super) lanes: Arc<Lanes>,
    pub(super) queue: Arc<Queue>,
    pub(super) pending: Pending,
}

impl CudaMemory {
    /// The pending work of memory, if it is of this type.
    pub(super) fn pending(memory: &dyn DeviceMemory) -> Option<&Pending> {
        memory.as_any().downcast_ref::<Self>().map(|memory| &memory.pending)
    }
    /// Waits until queued work on the memory is done.
    fn wait(&self) -> Result<()> {
        self.pending.wait(&self.queue)
    }
}

impl std::fmt::Debug for CudaMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.block.fmt(f)
    }
}

impl DeviceMemory for CudaMemory {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn bytes(&self) -> usize {
        self.block.bytes()
    }
    fn read(&self, from: usize, to: &mut [u8]) -> Result<()> {
        if to.is_empty() {
            return Ok(());
        }
        self.wait()?;
        self.lanes.on_one(|lane| {
            let region = self.block.on(&lane.stream);
            let download = lane.staging.begin_download(&region, from..from + to.len())?;
            lane.staging.finish_download(&region, download, &mut [(from, to)])
        })
    }
    fn lend(&self, words: usize) -> Option<HostWords> {
        self.lanes.pool.lend(words)
    }
    fn read_column(&self, to: &mut HostColumn) -> Result<()> {
        if let Some((_locked, bytes)) = to.locked_mut() {
            self.wait()?;
            return self.lanes.on_one(|lane| self.block.on(&lane.stream).read(bytes));
        }
        self.read(0, to.bytes_mut())
    }
    fn write(&mut self, from: usize, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.wait()?;
        self.lanes.on_one(|lane| {
            let queued = lane.staging.upload(&self.block.on(&lane.stream), &[(from, bytes)]);
            lane.stream.finish()?;
            queued
        })
    }
    fn settle(&self) -> Result<()> {
        if !self.block.device().is_ours() {
            return Ok(());
        }
        self.wait()
    }
}

impl DeviceStore for CudaBackend {
    fn allocate(&self, bytes: usize) -> Result<Arc<dyn DeviceMemory>> {
        self.device.enter()?;
        let Allocation { memory, behind } =
            self.with_room(|| self.queue.allocate(bytes, |block| self.memory(block)))?;
        if let (Some(mark), Some(memory)) = (behind, memory.as_any().downcast_ref::<CudaMemory>()) {
            memory.pending.set(mark);
        }
        Ok(memory)
    }
    fn upload(&self, bytes: usize, from: Option<&[u8]>) -> Result<Arc<dyn DeviceMemory>> {
        let block = self.block(bytes, |lane, block| match from {
            Some(from) if bytes > 0 => lane.staging.upload(&block.on(&lane.stream), &[(0, from)]),
            _ => block.on(&lane.stream).fill(0, bytes, 0),
        });
        Ok(self.memory(block?))
    }
    fn upload_column(&self, from: &HostColumn) -> Result<Arc<dyn DeviceMemory>> {
        match from.locked() {
            Some((_locked, bytes)) => {
                Ok(self.memory(self.block(bytes.len(), |lane, block| block.on(&lane.stream).write(bytes))?))
            }
            None => self.upload(from.byte_len(), Some(from.bytes())),
        }
    }
    fn lend(&self, words: usize) -> Option<HostWords> {
        self.lanes.pool.lend(words)
    }
    fn lent(&self) -> (usize, usize) {
        self.lanes.pool.held()
    }
    fn before_fork(&self) {
        self.lanes.pool.unlock();
    }
    fn copy(&self, from: &Arc<dyn DeviceMemory>) -> Result<Arc<dyn DeviceMemory>> {
        let copy = self.allocate(from.bytes())?;
        let (source, target) = (cuda(from)?, cuda(&copy)?);
        // work that writes to the memory is queued before, or was waited for
        let mark = self.queue.add(vec![from.clone(), copy.clone()], Length::Any, |stream| {
            target.block.on(stream).copy_from(&source.block.on(stream))
        })?;
        target.pending.set(mark);
        Ok(copy)
    }
    fn held(&self) -> u64 {
        self.device.ledger.held() + self.device.ledger.kept()
    }
    fn may_write(&self, memory: &Arc<dyn DeviceMemory>, holders: usize) -> bool {
        let own = memory.as_any().downcast_ref::<CudaMemory>();
        own.is_some_and(|own| self.queue.has_alone(memory, holders, &own.pending).unwrap_or(false))
    }
    fn is_at_leisure(&self) -> bool {
        self.queue.is_short()
    }
    fn owns(&self, memory: &dyn DeviceMemory) -> bool {
        let memory = memory.as_any().downcast_ref::<CudaMemory>();
        memory.is_some_and(|memory| Arc::ptr_eq(memory.block.device(), &self.device) && self.device.is_ours())
    }
}
