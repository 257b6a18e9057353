//! Launches that wait for a plan: `policy: :paper` of `Ikra.concurrently`.
//!
//! Here: [`Held`], a launch that is set up, and [`release`], which plans all that wait ([`ikra_core::sched::plan`]) and
//! hands them to lanes, one batch after the other. Not here: when that is (`lib/ikra/sections.rb`).
//!
//! A launch owns its [`Assignment`], and drops it when it has ended or was cancelled. The last assignment to a batch
//! drops the [`Batch`], which releases the next one. A launch that is waited for may begin earlier
//! ([`lanes::Job::wait`]): then it has no share.

use super::run::{Flight, Launched};
use super::submitted::Submitted;
use ikra_core::backend::lanes::{self, Job};
use ikra_core::backend::resources::{Machine, Resources, Share};
use ikra_core::backend::{Backend, CancelToken, Executable};
use ikra_core::sched::occupancy;
use ikra_core::sched::plan::{Planned, Planner, Wanted};
use magnus::prelude::*;
use magnus::{DataTypeFunctions, Error, RArray, RModule, Ruby, TryConvert, TypedData, Value, method};
use once_cell::sync::{Lazy, OnceCell};
use std::sync::{Arc, Weak};

/// Plans that were made before.
static PLANNER: Lazy<Planner> = Lazy::new(Planner::default);

/// What a plan needs to know of a launch, and where its result goes.
pub(super) struct Held {
    wanted: Wanted,
    machine: Machine,
    assignment: Weak<Assignment>,
}

/// What a plan assigns to a launch, once there is a plan: its share of the device, and its batch.
type Assignment = OnceCell<(Option<Share>, Arc<Batch>)>;

/// Launches that begin when those of an earlier batch have ended.
struct Batch {
    next: Vec<Arc<Job<Launched>>>,
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.next.iter().for_each(Job::release);
    }
}

/// What a block of the executable takes. What is not known is of common size.
fn resources(backend: &dyn Backend, executable: &dyn Executable) -> Resources {
    backend.resources(executable).ok().flatten().unwrap_or(Resources::MODEL)
}

impl Held {
    /// Work for a lane, which waits for a plan.
    pub(super) fn new(flight: Flight, backend: &dyn Backend, unsplit: bool) -> (Self, Arc<Job<Launched>>) {
        let wanted = Wanted { jobs: flight.jobs(), kernel: resources(backend, flight.executable()) };
        let assignment = Arc::new(Assignment::new());
        let held = Self { wanted, machine: backend.machine(), assignment: Arc::downgrade(&assignment) };
        let on_device = flight.is_on_device();
        let work = move |cancel: &CancelToken, crowded| {
            let share = assignment.get().and_then(|(share, _)| *share);
            flight.run_on_lane(cancel, crowded && unsplit, share)
        };
        (held, lanes::held(on_device, Box::new(work)))
    }
}

/// `Ikra.__release(submitted)`: plans the launches that wait, and lets them begin.
///
/// # Errors
/// Where it is given something else.
pub fn release(submitted: RArray) -> Result<(), Error> {
    let mut waiting = Vec::new();
    for one in submitted {
        let one = <&Submitted>::try_convert(one)?;
        if let Some((held, job)) = one.held()
            && let Some(assignment) = held.assignment.upgrade()
            && assignment.get().is_none()
        {
            waiting.push((held, assignment, job));
        }
    }
    while let Some(machine) = waiting.first().map(|(held, ..)| held.machine) {
        let (those, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(held, ..)| held.machine == machine);
        waiting = others;
        let plan = PLANNER.plan(those.iter().map(|(held, ..)| held.wanted).collect(), &machine);
        let mut next = Vec::new();
        for number in (0..plan.batches).rev() {
            let members = || those.iter().zip(&plan.launches).filter(|(_, launch)| launch.batch == number);
            let batch = Arc::new(Batch { next: std::mem::take(&mut next) });
            let is_alone = members().nth(1).is_none();
            for ((_, assignment, job), launch) in members() {
                // One that has the device for itself runs as always.
                let share = if is_alone { None } else { launch.share };
                let _ = assignment.set((share, batch.clone()));
                next.push((*job).clone());
            }
        }
        drop(those);
        next.iter().for_each(Job::release);
    }
    Ok(())
}

/// A launch that was explained, for the plan of its group: `Ikra::Wanted`.
#[derive(TypedData)]
#[magnus(class = "Ikra::Wanted", free_immediately)]
pub struct Known {
    wanted: Wanted,
    machine: Machine,
    /// For each size of a block: how many fit by the calculation, and as the device says.
    fit: Vec<(u32, u32, u32)>,
}

impl DataTypeFunctions for Known {}

impl Known {
    pub(super) fn new(jobs: u64, executable: &dyn Executable, backend: &dyn Backend) -> Self {
        let (wanted, machine) = (Wanted { jobs, kernel: resources(backend, executable) }, backend.machine());
        let of = |threads| {
            let fit = backend.blocks(executable, threads)?;
            Some((threads, occupancy::blocks(&wanted.kernel, &machine, threads), fit))
        };
        let fit = (1..=wanted.kernel.threads).map_while(of).collect();
        Self { wanted, machine, fit }
    }

    /// For specs: sizes of a block, with how many fit by the calculation, and as the device says.
    fn occupancy(&self) -> Vec<(u32, u32, u32)> {
        self.fit.clone()
    }
}

/// Defines `Ikra::Wanted`, which Ruby code cannot make.
///
/// # Errors
/// Where the name is taken.
pub fn init(ikra: RModule, ruby: &Ruby) -> Result<(), Error> {
    let class = ikra.define_class("Wanted", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("occupancy", method!(Known::occupancy, 0))?;
    ikra.funcall::<_, _, Value>("private_constant", (ruby.to_symbol("Wanted"),))?;
    <Known as TypedData>::class(ruby);
    Ok(())
}

/// `Ikra.__plan(wanted)`: the plan of launches that were explained. Gives for each its batch, its blocks and their
/// warps on each unit of multiprocessors, and how many these are.
///
/// # Errors
/// Where it is given something else.
pub fn plan(launches: RArray) -> Result<RArray, Error> {
    let (ruby, mut wanted, mut machine) = (Ruby::get_with(launches), Vec::new(), Machine::MODEL);
    for one in launches {
        let one = <&Known>::try_convert(one)?;
        wanted.push(one.wanted);
        machine = one.machine;
    }
    let rows = ruby.ary_new();
    for Planned { batch, size, unit, .. } in &PLANNER.plan(wanted, &machine).launches {
        rows.push((*batch, size.map(|size| size.blocks), size.map(|size| size.warps), *unit))?;
    }
    Ok(rows)
}
