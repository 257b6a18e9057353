//! Collective operations over rows that are on the device.
//!
//! Here: the memory that they read and allocate, and the results that the host must read before it goes on. They are
//! queued after the asynchronous launches ([`super::super::queue`]), so they see the results of those. The host waits
//! only for the results that it must read. Not here: kernels ([`super::super::collective`]).

#![allow(unsafe_code, reason = "operations over addresses of memory that is held here")]

use super::memory::CudaMemory;
use super::{CudaBackend, internal};
use crate::backend::Backend;
use crate::backend::collective::Element;
use crate::backend::collective::reduce::{Reduced, Reduction};
use crate::backend::collective::rows::{Collective, Give, GroupedRows, Matrix, Product, Stretch};
use crate::backend::collective::scan::{Scan, ScanFlags};
use crate::backend::cuda::blas::{Addresses, Blas};
use crate::backend::cuda::collective::{self, Flagged, Grouped, Machine, OnStream, Payload, Rows, ScanArgs, Sorting};
use crate::backend::cuda::queue::Length;
use crate::error::Result;
use crate::ir::Storage;
use crate::memory::buffer::{DeviceMemory, DeviceStore};
use crate::memory::column::HostColumn;
use std::sync::Arc;

/// Bytes of memory for a word that the host reads.
const WORD: usize = 8;

pub(super) fn cuda(memory: &Arc<dyn DeviceMemory>) -> Result<&CudaMemory> {
    memory.as_any().downcast_ref::<CudaMemory>().ok_or_else(|| internal("memory of another device"))
}

/// The first word of memory, after queued work on it is done.
fn word(memory: &Arc<dyn DeviceMemory>) -> Result<u64> {
    let mut bytes = [0; 8];
    memory.read(0, &mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

impl CudaBackend {
    /// The address at which a stretch begins. Adds its memory to `holds`.
    fn begin(&self, from: &Stretch<'_>, holds: &mut Vec<Arc<dyn DeviceMemory>>) -> Result<u64> {
        let memory = from.rows.device().filter(|memory| self.owns(&***memory));
        let memory = memory.ok_or_else(|| internal("rows that are elsewhere"))?;
        holds.push(memory.clone());
        Ok(cuda(memory)?.block.address() + (from.range.start * from.element.bytes()) as u64)
    }

    /// Allocates memory for a result, and adds it to `holds`.
    fn room(&self, bytes: usize, holds: &mut Vec<Arc<dyn DeviceMemory>>) -> Result<(Arc<dyn DeviceMemory>, u64)> {
        let memory = self.allocate(bytes)?;
        holds.push(memory.clone());
        let address = cuda(&memory)?.block.address();
        Ok((memory, address))
    }

    /// Queues work. Later readers of the result wait for it.
    fn over(
        &self,
        holds: Vec<Arc<dyn DeviceMemory>>,
        made: &[&Arc<dyn DeviceMemory>],
        work: impl FnOnce(&OnStream<'_>) -> Result<()>,
    ) -> Result<()> {
        self.device.enter()?;
        // SAFETY: the operations of this file get addresses of memory that `begin` and `room` put into `holds`, with
        // the lengths of those stretches, or of scratch memory of their own. The queue holds that memory until the
        // stream has passed the work. Other writers wait for that.
        let mark = self.queue.add(holds, Length::Any, |stream| work(&unsafe { self.collectives.on(stream) }))?;
        made.iter().try_for_each(|memory| {
            cuda(memory)?.pending.set(mark.clone());
            Ok(())
        })
    }
}

impl Collective for CudaBackend {
    fn scan(&self, scan: Scan, from: Stretch<'_>) -> Result<Option<(HostColumn, ScanFlags)>> {
        let (mut holds, n, to) = (Vec::new(), from.len(), scan.total(from.element));
        let input = self.begin(&from, &mut holds)?;
        let (out, output) = self.room(n * to.bytes(), &mut holds)?;
        let (flags, tell) = self.room(WORD, &mut holds)?;
        let args = ScanArgs { input, count: n as u64, output, flags: tell };
        self.over(holds, &[&out, &flags], |on| collective::scan(on, scan, from.element, args))?;
        // only the first bits are written
        let flags = ScanFlags::read(word(&flags)?);
        Ok(Some((HostColumn::on_device(to.storage(), n, out), flags)))
    }

    fn select(&self, flags: Stretch<'_>, from: Option<Stretch<'_>>) -> Result<Option<HostColumn>> {
        // Flags are much smaller than the elements that they select. Counting them first is cheaper than memory for all
        // elements, or another copy.
        let Reduced::Count(hits) = self.reduce(Reduction::Count, Element::U8, flags.rows, flags.range.clone())? else {
            return Err(internal("a count is no count"));
        };
        let (storage, width) = from.as_ref().map_or((Storage::U32, 0), |f| (f.element.storage(), f.element.bytes()));
        let (mut holds, count) = (Vec::new(), flags.len() as u64);
        let flags = self.begin(&flags, &mut holds)?;
        let input = from.as_ref().map_or(Ok(0), |from| self.begin(from, &mut holds))?;
        let hits = usize::try_from(hits).map_err(|_| internal("more elements than memory"))?;
        let (out, to) = self.room(hits * storage.bytes(), &mut holds)?;
        if hits > 0 {
            self.over(holds, &[&out], |on| {
                let counted = on.allocate(8)?;
                match width {
                    0 => collective::indices(on, flags, count, to, counted.address()),
                    _ => collective::chosen(on, Flagged { flags, input, width, count }, to, counted.address()),
                }
            })?;
        }
        Ok(Some(HostColumn::on_device(storage, hits, out)))
    }

    fn sort(&self, keys: Stretch<'_>, row: usize, descending: bool, give: Give) -> Result<Option<HostColumn>> {
        let (mut holds, n, element) = (Vec::new(), keys.len(), keys.element);
        let input = self.begin(&keys, &mut holds)?;
        let storage = if give == Give::Keys { element.storage() } else { Storage::U32 };
        let (out, to) = self.room(n * storage.bytes(), &mut holds)?;
        let (count, row) = (n as u64, row.max(1) as u64);
        let rows = Rows { keys: input, count, row, exact: give == Give::Keys };
        self.over(holds, &[&out], |on| match give {
            Give::Places => collective::order_of_rows(on, element.key(), descending, rows, to),
            Give::Keys if row >= count => {
                let payload = Payload::None;
                collective::sort(
                    on,
                    Sorting { key: element.key(), descending, keys: input, count, sorted: to, payload },
                )
            }
            Give::Keys => {
                let places = on.allocate(n * 4)?;
                collective::order_of_rows(on, element.key(), descending, rows, places.address())?;
                collective::gather(on, element.bytes(), input, places.address(), count, to)
            }
        })?;
        Ok(Some(HostColumn::on_device(storage, n, out)))
    }

    fn groups(&self, keys: Stretch<'_>) -> Result<Option<GroupedRows>> {
        let (mut holds, n) = (Vec::new(), keys.len());
        let input = self.begin(&keys, &mut holds)?;
        let (group_of, a) = self.room(n * 4, &mut holds)?;
        let (firsts, b) = self.room(n * 4, &mut holds)?;
        let (counts, c) = self.room(n * 4, &mut holds)?;
        let (number, d) = self.room(WORD, &mut holds)?;
        let to = Grouped { group_of: a, firsts: b, counts: c, groups: d };
        self.over(holds, &[&group_of, &firsts, &counts, &number], |on| {
            collective::groups(on, keys.element, input, n as u64, to)
        })?;
        let groups = usize::try_from(word(&number)?).map_err(|_| internal("more groups than elements"))?;
        let column = |rows, len| HostColumn::on_device(Storage::U32, len, rows);
        Ok(Some(GroupedRows {
            group_of: column(group_of, n),
            firsts: column(firsts, groups),
            counts: column(counts, groups),
        }))
    }

    fn pick(&self, from: Stretch<'_>, places: &HostColumn) -> Result<Option<HostColumn>> {
        let (mut holds, n, width, storage) = (Vec::new(), places.len(), from.element.bytes(), from.element.storage());
        let input = self.begin(&from, &mut holds)?;
        // places have the width of a Float of 32 bits
        let at = self.begin(&Stretch { element: Element::F32, rows: places, range: 0..n }, &mut holds)?;
        let (out, to) = self.room(n * width, &mut holds)?;
        self.over(holds, &[&out], |on| collective::gather(on, width, input, at, n as u64, to))?;
        Ok(Some(HostColumn::on_device(storage, n, out)))
    }

    fn product(&self, product: &Product<'_>) -> Result<Option<HostColumn>> {
        let Product { element, left, right, .. } = *product;
        self.device.enter()?;
        let blas = self.blas.get_or_try_init(|| self.with_room(|| Blas::open(&self.device)))?;
        let Some(blas) = blas.as_ref().filter(|_| matches!(element, Element::F64 | Element::F32)) else {
            return Ok(None);
        };
        if product.is_empty() || product.inner == 0 || !product.fits() {
            return Err(internal("matrices without elements, or beyond their rows"));
        }
        let mut holds = Vec::new();
        let mut side =
            |of: Matrix<'_>| self.begin(&Stretch { element, rows: of.rows, range: of.from..of.rows.len() }, &mut holds);
        let (left, right) = (side(left)?, side(right)?);
        let (made, out) = self.room(product.len() * element.bytes(), &mut holds)?;
        let known = blas.scratch.lock().clone();
        let scratch = match known {
            Some(scratch) => scratch,
            None => {
                let scratch: Arc<dyn DeviceMemory> = self.memory(self.block(blas.wanted(), |_, _| Ok(()))?);
                blas.scratch.lock().insert(scratch).clone()
            }
        };
        let at = Addresses { left, right, out, scratch: cuda(&scratch)?.block.address() };
        let room = scratch.bytes();
        holds.push(scratch);
        let mut taken = false;
        let mark = self.making_room(self.queue.add(holds, Length::Any, |stream| {
            // SAFETY: the queue holds the memory of the addresses until the stream has passed this work. All elements
            // of both operands exist (just checked), and the output has room for all products. Only products on the
            // queue's stream use the scratch memory.
            taken = unsafe { blas.multiply(stream, product, at, room)? };
            Ok(())
        }))?;
        cuda(&made)?.pending.set(mark);
        Ok(taken.then(|| HostColumn::on_device(element.storage(), product.len(), made)))
    }
}
