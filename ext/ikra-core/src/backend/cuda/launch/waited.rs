//! Synchronous launches: upload the columns into an arena, run the ticks in batches, download.
//!
//! Here: [`run`], which uses a lane and watches the cancel token. Not here: asynchronous launches
//! ([`crate::backend::cuda::queue`]), and the places of columns in the arena ([`super::plan`]).

use super::kernel::CudaKernel;
use super::lanes::{FLAG_SLOT, GATE_SLOT, Lane};
use super::plan::{Use, runs};
use super::prepared::Prepared;
use super::watch::Watch;
use crate::backend::collective::Workers;
use crate::backend::collective::emitted::{Combine, Emitted, Records};
use crate::backend::cuda::driver::{Device, Module, Spread, Stream};
use crate::backend::cuda::emit::Header;
use crate::backend::cuda::graph::{Chains, Launches};
use crate::backend::cuda::groups::{self, Asked, Room};
use crate::backend::cuda::status::Status;
use crate::backend::cuda::storage::{Arena, Held, SMALL_SLOT_BYTES, Staging};
use crate::backend::threads::Threads;
use crate::backend::{CancelToken, Key, Launch, Outcome};
use crate::error::{Error, Result};
use crate::ir::Storage;
use crate::memory::column::HostColumn;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Fused ticks run for about so long before the host checks for a stop.
const SLICE: Duration = Duration::from_millis(100);
/// The most launches of single ticks between two checks of the status. CUDA queues more before it blocks.
const MAX_LAUNCHES: u64 = 384;

/// Runs all ticks of a launch over the layout's buffers. `jobs`: the program's jobs, while those of the launch may be
/// groups of them.
pub(super) fn run(
    device: &Arc<Device>,
    kernel: &CudaKernel,
    module: &Arc<Module>,
    lane: &mut Lane,
    jobs: u64,
    launch: Launch<'_>,
    beside: Beside<'_>,
) -> Result<Outcome> {
    let Lane { stream, beside: other, staging, page_locked, batch, batches, marks, chains } = lane;
    let (epilogue, mut table) = match beside {
        Beside::Epilogue(words) => (words, None),
        Beside::Groups(groups, asked) => (&[][..], Some((GroupMemory::new(device, stream, groups)?, groups, asked))),
    };
    let words = table.as_ref().map_or(&[][..], |(memory, ..)| &memory.words);
    let prepared = Prepared::new(device, kernel, module, &launch, words)?;
    let arena = Arena::new(device, stream, prepared.plan.end)?;
    let (mut args, memory) = prepared.arguments(kernel, &launch, arena.address);
    args.extend_from_slice(epilogue);
    let Prepared { uses, plan, code, .. } = prepared;
    let mut ticks =
        Ticks { device, kernel, stream, chains, code, args, total: launch.ticks, next: 0, batch: 0, jobs: launch.jobs };
    let timed = launch.timings.exact || kernel.is_next_timed();
    let new = (!arena.is_kept()).then_some(&marks[0]);
    let mut watch = Watch::new(launch.cancel, page_locked, *arena, new, plan.status, other);

    if timed || new.is_some() {
        marks[0].record(stream)?;
    }
    let initial = Status::initial(launch.limit);
    // Rows that no element stores would be lost. A launch with a limit must keep all rows.
    let covered = |(i, c): (usize, &HostColumn)| uses[i] != Use::Filled || c.len() as u64 <= jobs;
    let whole =
        plan.end <= SMALL_SLOT_BYTES || launch.limit != Key::NONE || !launch.columns.iter().enumerate().all(covered);
    // page-locked columns are copied directly
    let mut held = Held::new(stream);
    let mut direct = vec![false; launch.columns.len()];
    for (i, column) in launch.columns.iter().enumerate() {
        if let Some(offset) = plan.goes_up(i, launch.fresh, whole) {
            direct[i] = held.copy_in(&arena, offset, column)?;
        }
    }
    for run in runs(plan.parts_up(launch.columns, launch.fresh, &memory, &initial, whole, &direct)) {
        staging.upload(&arena, &run)?;
    }
    // After a short upload the device waits for the host to queue the kernel. That time would count as the kernel's, so
    // the gate holds the stream until the kernel is queued.
    let mut gate = None;
    if launch.timings.exact {
        // An event behind a copy has the time at which the copy engine was done. A kernel begins up to 7 µs later,
        // which should count for the upload. So a memory operation comes in between, on a word that is zero anyway.
        arena.fill(plan.status + 8, 8, 0)?;
        gate = page_locked.hold(GATE_SLOT, stream);
    }
    if timed {
        marks[1].record(stream)?;
    }

    // The batches of ticks under way. If all is small, the download follows the last of them.
    // A launch with too small a table runs again. Nothing that it has written may come back, so the table is read
    // first.
    let small = table.is_none() && plan.end - plan.written <= SMALL_SLOT_BYTES;
    let mut under_way: VecDeque<(Range<u64>, usize, Option<u32>, Instant)> = VecDeque::new();
    let mut download = None;
    let mut bytes = initial;
    let ended = (|| {
        let mut stopped = false;
        for turn in 0.. {
            let depth = if kernel.fused_ticks { 1 } else { batches.len() };
            if !stopped && under_way.len() < depth && !ticks.are_over() {
                let range = ticks.queue_batch()?;
                let slot = turn % batches.len();
                if ticks.are_over() && timed {
                    marks[2].record(stream)?;
                }
                drop(gate.take());
                if ticks.are_over() && small {
                    download = Some(staging.begin_download(&arena, plan.written..plan.end)?);
                    // nothing follows it
                    if timed {
                        marks[3].record(stream)?;
                    }
                } else {
                    page_locked.fetch(slot, &arena, plan.status)?;
                }
                batches[slot].record(stream)?;
                *batch = batch.wrapping_add(1);
                let number = page_locked.signal(FLAG_SLOT, *batch, stream).then_some(*batch);
                under_way.push_back((range, slot, number, Instant::now()));
                if under_way.len() < depth && !ticks.are_over() {
                    continue;
                }
            }
            let Some((range, slot, number, queued)) = under_way.pop_front() else { break };
            watch.wait(number.map(|number| (FLAG_SLOT, number)), &batches[slot])?;
            if download.is_none() || !under_way.is_empty() || !ticks.are_over() {
                bytes = page_locked.read(slot);
                // later ticks do not start after the launch was stopped
                stopped |= Status::read(&bytes).stop_key <= range.end << 32;
            }
            ticks.adapt(&range, queued.elapsed());
        }
        if !ticks.are_over() && timed {
            marks[2].record(stream)?;
        }
        Ok::<_, Error>(())
    })();
    drop(gate);
    drop(held);
    if let Err(e) = ended.and_then(|()| watch.end()) {
        // no queued work may use the lane's memory after an error
        let _ = watch.stop();
        let _ = watch.end();
        let _ = stream.finish();
        return Err(e);
    }

    let came_back = download.is_some();
    if let Some(download) = download {
        staging.is_passed();
        staging.finish_download(&arena, download, &mut plan.parts_back(launch.columns, &[], &mut bytes, &[]))?;
    }
    let outcome = Status::read(&bytes).outcome(launch.cancel);
    let mut complete = true;
    if let (Some((memory, groups, asked)), Outcome::Done) = (&mut table, outcome) {
        complete = memory.read(staging, launch.cancel, groups, asked)?;
    }
    let meaningful = match outcome {
        Outcome::Done => complete,
        Outcome::Trapped(record) => record.key == launch.limit,
        Outcome::Cancelled => false,
    };
    if !came_back && meaningful {
        // the number of allocated rows says which ones to download
        for counter in launch.fresh.iter().filter_map(|f| f.taken) {
            let Some(offset) = plan.offsets[counter.index()] else { continue };
            let column = &mut launch.columns[counter.index()];
            let download = staging.begin_download(&arena, offset..offset + column.byte_len())?;
            staging.finish_download(&arena, download, &mut [(offset, column.bytes_mut())])?;
        }
        let mut held = Held::new(stream);
        let mut direct = vec![false; launch.columns.len()];
        for (i, column) in launch.columns.iter_mut().enumerate() {
            if let Some(offset) = plan.comes_back(i, launch.fresh) {
                direct[i] = held.copy_out(&arena, offset, column)?;
            }
        }
        drop(held);
        for mut run in runs(plan.parts_back(launch.columns, launch.fresh, &mut bytes, &direct)) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let range = first.0..last.0 + last.1.len();
            let download = staging.begin_download(&arena, range)?;
            staging.finish_download(&arena, download, &mut run)?;
        }
    }
    if !came_back {
        marks[3].record(stream)?;
        marks[3].wait()?;
    }
    arena.is_done();
    table.iter().for_each(|(memory, ..)| memory.arena.is_done());
    if timed {
        launch.timings.upload += marks[1].since(&marks[0]);
        let kernel_time = marks[2].since(&marks[1]);
        launch.timings.kernel += kernel_time;
        launch.timings.download += marks[3].since(&marks[2]);
        if outcome == Outcome::Done {
            let pace = kernel_time.as_nanos() as f64 / (launch.jobs as f64 * launch.ticks as f64);
            kernel.pace.store(pace.to_bits(), Ordering::Relaxed);
        }
    }
    Ok(outcome)
}

/// What a kernel does beside its jobs.
pub(super) enum Beside<'a> {
    /// An epilogue, which has these words.
    Epilogue(&'a [u64]),
    /// It groups pairs. The number is that of the groups which the table was asked for.
    Groups(&'a mut Emitted, &'a mut u64),
}

/// A table of groups on the device.
struct GroupMemory<'a> {
    arena: Arena<'a>,
    room: Room,
    words: [u64; groups::WORDS],
}

impl<'a> GroupMemory<'a> {
    /// # Errors
    /// `Memory`, `Device`.
    fn new(device: &'a Device, stream: &'a Stream, groups: &Emitted) -> Result<Self> {
        let room = Room::of(groups);
        let arena = Arena::new(device, stream, room.bytes())?;
        arena.fill(0, room.zeroes(), 0)?;
        let words = room.words(arena.address, groups);
        Ok(Self { arena, room, words })
    }

    /// Reads the groups, and how many were asked for. Whether there was room for all.
    ///
    /// # Errors
    /// `Memory`, `Device`.
    fn read(&self, staging: &mut Staging, cancel: &CancelToken, groups: &mut Emitted, asked: &mut u64) -> Result<bool> {
        let mut head = HostColumn::zeroed(Storage::I64, Asked::WORDS);
        let download = staging.begin_download(&self.arena, 0..head.bytes_mut().len())?;
        staging.finish_download(&self.arena, download, &mut [(0, head.bytes_mut())])?;
        let &[records, words, refused, negative_zero] = head.view::<u64>() else { return Ok(false) };
        let head = Asked::of([records, words, refused, negative_zero]);
        (*asked, groups.refused) = (head.needed(), head.refused);
        if groups.refused || *asked > groups.records {
            return Ok(groups.refused);
        }
        let count = head.records as usize;
        let mut read = |range: Range<usize>| {
            let mut column = HostColumn::to_fill(Storage::I64, range.len() / 8, None);
            if !range.is_empty() {
                let download = staging.begin_download(&self.arena, range.clone())?;
                staging.finish_download(&self.arena, download, &mut [(range.start, column.bytes_mut())])?;
            }
            Ok::<_, Error>(column)
        };
        let words = read(self.room.words_of_keys(if groups.has_parts { head.words as usize } else { 0 }))?;
        let tops = read(self.room.tops(if groups.how.has_sums() { count } else { 0 }))?;
        let is_sum = groups.how.combine == Combine::Sum;
        let highs = read(self.room.highs(if is_sum { count } else { 0 }))?;
        let [rows, states] = [read(self.room.records(count))?, read(self.room.states(count))?];
        let words = groups.has_parts.then(|| words.view::<u64>());
        let on = Workers { threads: &Threads::new(1), cancel };
        let tops = groups.how.has_sums().then(|| tops.view::<u64>());
        let negative_zero = head.negative_zero;
        groups.take_records(
            on,
            &Records { rows: rows.view(), states: states.view(), words, highs: highs.view(), tops, negative_zero },
        )?;
        Ok(true)
    }
}

/// The ticks of a launch, in batches.
struct Ticks<'a> {
    device: &'a Arc<Device>,
    kernel: &'a CudaKernel,
    stream: &'a Stream,
    chains: &'a mut Chains,
    code: Spread,
    args: Vec<u64>,
    total: u64,
    next: u64,
    /// Ticks of the next batch; 0 before the first.
    batch: u64,
    jobs: u64,
}

impl Ticks<'_> {
    fn are_over(&self) -> bool {
        self.next == self.total
    }

    /// Queues the next batch. Fused ticks are one launch, others one each.
    fn queue_batch(&mut self) -> Result<Range<u64>> {
        if self.batch == 0 {
            self.batch = self.first_batch();
        }
        let range = self.next..self.total.min(self.next + self.batch);
        let Self { device, kernel, stream, chains, code, args, .. } = self;
        let each = if kernel.fused_ticks { range.end - range.start } else { 1 };
        chains.submit(device, stream, &mut Batch { range: range.clone(), each, code, args })?;
        self.next = range.end;
        Ok(range)
    }

    fn first_batch(&self) -> u64 {
        let pace = f64::from_bits(self.kernel.pace.load(Ordering::Relaxed));
        let slice = (SLICE.as_nanos() as f64 / (pace * self.jobs as f64)).max(1.0) as u64;
        match (self.kernel.fused_ticks, pace > 0.0) {
            // the status is read back between two batches, and kernels wait for that
            (false, true) => slice.min(MAX_LAUNCHES),
            (false, false) => 16,
            (true, true) => slice,
            // a few milliseconds of a short block on a large device
            (true, false) => ((1 << 25) / self.jobs).clamp(1, 1 << 16),
        }
    }

    /// Chooses the size of the next batch, after one that took `took`.
    fn adapt(&mut self, range: &Range<u64>, took: Duration) {
        let ticks = range.end - range.start;
        if self.kernel.fused_ticks {
            let wanted = ticks as f64 * SLICE.as_secs_f64() / took.as_secs_f64().max(1e-6);
            self.batch = (wanted as u64).clamp(1, ticks.saturating_mul(64));
        } else if took < SLICE / 10 {
            self.batch = (self.batch * 2).min(MAX_LAUNCHES);
        } else if took > SLICE {
            self.batch = (self.batch / 2).max(1);
        }
    }
}

/// A batch of ticks, as launches.
struct Batch<'a> {
    range: Range<u64>,
    /// Ticks of a launch.
    each: u64,
    code: &'a Spread,
    args: &'a mut [u64],
}

impl Launches for Batch<'_> {
    fn count(&self) -> usize {
        (self.range.end - self.range.start).div_ceil(self.each) as usize
    }
    fn at(&mut self, index: usize) -> (&Spread, &mut [u64]) {
        let tick = self.range.start + index as u64 * self.each;
        (self.args[Header::TICK_BEGIN], self.args[Header::TICK_END]) = (tick, tick + self.each);
        (self.code, self.args)
    }
}
