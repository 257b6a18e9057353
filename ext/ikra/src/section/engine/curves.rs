//! What kernels took, for the predictions of `policy: :auto`.
//!
//! Here: [`Measured`], the curve of one kernel, in memory and on disk. Not here: what follows from it
//! ([`ikra_core::sched::makespan`]), and who asks (`lib/ikra/sections.rb`).

use crate::device::backends;
use crate::ruby::workers;
use ikra_core::backend::Backend;
use ikra_core::backend::resources::{Resources, Share};
use ikra_core::cache::key::{Key, KeyBuilder};
use ikra_core::ir::Program;
use ikra_core::sched::makespan::{self, Curve, Member};
use ikra_core::sched::occupancy;
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::time::Duration;

/// A curve is written to the disk after its first launch, and after every so many.
const SAVE_EVERY: u32 = 64;
/// Seconds that a section costs beside its kernel, where it runs beside others.
const COST: f64 = 9e-6;

/// The curve of a kernel.
#[derive(Default)]
pub(super) struct Measured {
    state: Mutex<State>,
    key: OnceCell<Key>,
}

#[derive(Default)]
struct State {
    curve: Curve,
    notes: u32,
}

/// One launch.
pub(super) struct Took {
    pub(super) jobs: u64,
    pub(super) ticks: u64,
    /// Whether it ran on one processor of the host.
    pub(super) unsplit: bool,
    pub(super) share: Option<Share>,
    pub(super) time: Duration,
}

impl Measured {
    /// How long a launch is expected to take. None: no launch was noted.
    pub(super) fn expected(&self, jobs: u64, ticks: u64) -> Option<Duration> {
        let member = self.state.lock().curve.member(jobs * ticks, u32::MAX, 1)?;
        Duration::try_from_secs_f64(member.alone).ok()
    }

    /// Notes a launch of the program. Gives what the next one like it is among others.
    pub(super) fn note(&self, program: &Program, backend: &dyn Backend, took: &Took) -> Option<Member> {
        let (warps, alone, most) = busy(backend, took);
        let runs = took.jobs * took.ticks;
        let key = self.key.get_or_init(|| key(program, backend));
        let is_first = self.state.lock().notes == 0;
        let on_disk = if is_first { backends::cache().load(key) } else { None };
        let (member, bytes) = {
            let mut state = self.state.lock();
            if let Some(curve) = on_disk.and_then(|bytes| Curve::from_bytes(&bytes)) {
                state.curve = curve;
            }
            state.curve.note(warps, runs, took.time.as_secs_f64());
            let save = state.notes.is_multiple_of(SAVE_EVERY);
            state.notes = state.notes.wrapping_add(1);
            (state.curve.member(runs, alone, most), save.then(|| state.curve.to_bytes()))
        };
        if let Some(bytes) = bytes {
            backends::cache().save(key, &bytes);
        }
        member
    }
}

/// How much of the machine a launch used, from 0 to 1.
pub(super) fn part(backend: &dyn Backend, took: &Took) -> f64 {
    let (used, _, all) = busy(backend, took);
    f64::from(used) / f64::from(all.max(1))
}

/// How much of the machine a launch used, how much it uses where it is alone, and all of it: warps of a multiprocessor,
/// or processors of the host.
fn busy(backend: &dyn Backend, took: &Took) -> (u32, u32, u32) {
    if backend.store().is_none() {
        let all = workers::THREADS.count() as u32;
        return (if took.unsplit { 1 } else { all }, all, all);
    }
    let machine = backend.machine();
    let (warp, all) = (u64::from(machine.warp), u64::from(machine.multiprocessors.max(1)));
    let fit = occupancy::warps(&Resources::MODEL, &machine).max(1);
    let warps = |threads: u64| u32::try_from(threads.div_ceil(warp).div_ceil(all)).unwrap_or(u32::MAX).clamp(1, fit);
    let threads = took.share.map_or(took.jobs, |share| share.threads(machine.warp).min(took.jobs));
    (warps(threads), warps(took.jobs), fit)
}

fn key(program: &Program, backend: &dyn Backend) -> Key {
    KeyBuilder::new("curve").text(&backend.target().architecture).text(&program.to_string()).finish()
}

/// `Ikra.__pays(members)`: whether to run these kernels side by side is worth it. `members`: for each how long it takes
/// alone, and how long it would take if it filled the machine.
pub fn pays(members: Vec<(f64, f64)>) -> bool {
    let members: Vec<Member> = members.into_iter().map(|(alone, whole)| Member { alone, whole }).collect();
    let serial = members.iter().map(|member| member.alone).sum();
    makespan::pays(serial, makespan::batch(&members), COST * members.len() as f64)
}
