//! Which kernels run side by side, and in how many blocks: the paper's model, from kernels to launches.
//!
//! Here: [`plan`]. All kernels run at once if one multiprocessor has room for a part of each ([`super::knapsack`]). If
//! not, two multiprocessors may have it. If not, batches run one after the other ([`super::batch`]). The rule behind
//! that is that blocks of a kernel spread over all multiprocessors.
//!
//! Registers and shared memory are checked behind the knapsack. Where these do not suffice, the kernels go into
//! batches.

use super::batch::{self, Kind, Load};
use super::knapsack::{self, Demand, Size};
use super::occupancy;
use crate::backend::resources::{Machine, Resources, Share};
use foldhash::{HashMap, HashMapExt};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// How long a plan may take, beside its first-fit.
const LIMIT: Duration = Duration::from_micros(300);
/// Plans that are kept.
const MAX_PLANS: usize = 256;

/// A launch that is to be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wanted {
    pub jobs: u64,
    pub kernel: Resources,
}

/// What becomes of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Batches run one after the other.
    pub batch: usize,
    /// On each unit of multiprocessors. None: the kernel gets no share, and runs as it would alone.
    pub size: Option<Size>,
    /// Multiprocessors of a unit.
    pub unit: u32,
    /// What the launch gets on the whole machine.
    pub share: Option<Share>,
}

/// The plan of a group of launches, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub launches: Vec<Planned>,
    pub batches: usize,
}

/// A group of launches, and the device that they are planned for.
type Group = (Machine, Vec<Wanted>);

/// Makes plans, and keeps those of groups that come again.
#[derive(Default)]
pub struct Planner {
    known: Mutex<HashMap<Group, Arc<Plan>>>,
}

impl Planner {
    pub fn plan(&self, wanted: Vec<Wanted>, machine: &Machine) -> Arc<Plan> {
        let key = (*machine, wanted);
        if let Some(plan) = self.known.lock().get(&key) {
            return plan.clone();
        }
        let plan = Arc::new(plan(&key.1, machine, Some(LIMIT)));
        let mut known = self.known.lock();
        if known.len() >= MAX_PLANS {
            *known = HashMap::new();
        }
        known.insert(key, plan.clone());
        plan
    }
}

/// What a kernel asks for on a unit of so many multiprocessors. It loops over its jobs where it has more of them than
/// threads fit.
fn demand(wanted: &Wanted, machine: &Machine, unit: u32) -> Option<Demand> {
    let most = occupancy::warps_of_block(&wanted.kernel, machine);
    let fit = occupancy::warps(&wanted.kernel, machine) * unit;
    let threads = (wanted.jobs * u64::from(unit)).div_ceil(u64::from(machine.multiprocessors.max(1)));
    let warps = u32::try_from(threads.div_ceil(u64::from(machine.warp))).unwrap_or(u32::MAX).clamp(1, fit.max(1));
    let shared = occupancy::shared_of_block(&wanted.kernel, machine);
    // As many blocks as fit have so many warps.
    let most = (1..=most).rev().find(|warps_of_block| {
        let threads = warps_of_block * machine.warp;
        occupancy::blocks(&wanted.kernel, machine, threads) * unit * warps_of_block >= warps
    })?;
    Some(Demand { warps, shared, most })
}

fn load(wanted: &Wanted, size: Size, machine: &Machine) -> Load {
    let registers = occupancy::registers_of_warp(&wanted.kernel, machine) * size.total();
    [size.total(), registers, occupancy::shared_of_block(&wanted.kernel, machine) * size.blocks, size.blocks]
}

fn room(machine: &Machine) -> Load {
    [machine.warps(), machine.registers, machine.shared, machine.blocks]
}

/// Plans a group. `limit`: batches are looked for so long at most.
pub fn plan(wanted: &[Wanted], machine: &Machine, limit: Option<Duration>) -> Plan {
    let sizes = at_once(wanted, machine, 1).map(|sizes| (sizes, 1));
    let sizes = sizes.or_else(|| {
        // The machine is cut into pairs.
        let pairs = machine.multiprocessors >= 2;
        pairs.then(|| at_once(wanted, machine, 2)).flatten().map(|sizes| (sizes, 2))
    });
    let launches = match sizes {
        Some((sizes, unit)) => sizes.into_iter().map(|size| planned(0, Some(size), unit, machine)).collect(),
        None => in_batches(wanted, machine, limit),
    };
    let batches = launches.iter().map(|launch: &Planned| launch.batch + 1).max().unwrap_or(0);
    Plan { launches, batches }
}

fn planned(batch: usize, size: Option<Size>, unit: u32, machine: &Machine) -> Planned {
    let share = |size: Size| Share { blocks: size.blocks * (machine.multiprocessors / unit).max(1), warps: size.warps };
    Planned { batch, size, unit, share: size.map(share) }
}

/// Sizes with which all kernels run at once on each unit. None: they do not fit.
fn at_once(wanted: &[Wanted], machine: &Machine, unit: u32) -> Option<Vec<Size>> {
    let demands: Vec<Demand> = wanted.iter().map(|one| demand(one, machine, unit)).collect::<Option<_>>()?;
    let sizes = knapsack::solve(&demands, machine.blocks * unit, machine.warps() * unit)?;
    let mut blocks: Vec<Load> = Vec::new();
    for (one, size) in wanted.iter().zip(&sizes) {
        let each = load(one, Size { blocks: 1, ..*size }, machine);
        blocks.extend((0..size.blocks).map(|_| each));
    }
    // A block is on one multiprocessor.
    blocks.sort_by(|a, b| b.cmp(a));
    let mut left = vec![room(machine); unit as usize];
    for block in blocks {
        let fits = |left: &Load| block.iter().zip(left).all(|(block, left)| block <= left);
        let on = left.iter_mut().find(|left| fits(left))?;
        on.iter_mut().zip(&block).for_each(|(left, block)| *left -= block);
    }
    Some(sizes)
}

fn in_batches(wanted: &[Wanted], machine: &Machine, limit: Option<Duration>) -> Vec<Planned> {
    let room = room(machine);
    let alone = |one: &Wanted| {
        let demand = demand(one, machine, 1)?;
        let size = knapsack::solve(&[demand], machine.blocks, machine.warps())?.first().copied()?;
        let load = load(one, size, machine);
        load.iter().zip(&room).all(|(load, room)| load <= room).then_some((size, load))
    };
    let alone: Vec<Option<(Size, Load)>> = wanted.iter().map(alone).collect();
    let mut kinds: Vec<(Kind, Vec<usize>)> = Vec::new();
    for (i, one) in alone.iter().enumerate() {
        let Some((_, load)) = one else { continue };
        match kinds.iter_mut().find(|(kind, _)| kind.load == *load) {
            Some((kind, members)) => {
                kind.count += 1;
                members.push(i);
            }
            None => kinds.push((Kind { load: *load, count: 1 }, vec![i])),
        }
    }
    let all: Vec<Kind> = kinds.iter().map(|(kind, _)| *kind).collect();
    let patterns = batch::pack(&all, &room, limit).map(|batches| batches.patterns).unwrap_or_default();
    let mut batch_of = vec![None; wanted.len()];
    for (number, pattern) in patterns.iter().enumerate() {
        for ((_, members), count) in kinds.iter_mut().zip(pattern) {
            // Earlier calls run earlier.
            members.drain(..(*count as usize).min(members.len())).for_each(|i| batch_of[i] = Some(number));
        }
    }
    let mut next = patterns.len();
    let mut launches: Vec<Planned> = Vec::with_capacity(wanted.len());
    for (batch, one) in batch_of.into_iter().zip(&alone) {
        launches.push(match (batch, one) {
            (Some(batch), Some((size, _))) => planned(batch, Some(*size), 1, machine),
            _ => {
                next += 1;
                planned(next - 1, None, 1, machine)
            }
        });
    }
    let members: Vec<Vec<usize>> = (0..patterns.len())
        .map(|number| (0..wanted.len()).filter(|i| launches[*i].batch == number).collect())
        .collect();
    for members in members {
        let group: Vec<Wanted> = members.iter().map(|i| wanted[*i]).collect();
        if let Some(sizes) = at_once(&group, machine, 1) {
            members.iter().zip(sizes).for_each(|(i, size)| {
                launches[*i] = planned(launches[*i].batch, Some(size), 1, machine);
            });
        }
    }
    launches
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const H200: Machine = Machine::MODEL;

    fn wanted(jobs: u64, registers: u32, shared: u32) -> Wanted {
        Wanted { jobs, kernel: Resources { registers, shared, threads: 512 } }
    }

    /// The warps, registers, shared memory and blocks of a batch on a unit, and what that has.
    fn check(group: &[Wanted], machine: &Machine, plan: &Plan) {
        assert_eq!(plan.launches.len(), group.len());
        for batch in 0..plan.batches {
            let members: Vec<(&Wanted, &Planned)> =
                group.iter().zip(&plan.launches).filter(|(_, launch)| launch.batch == batch).collect();
            assert!(!members.is_empty());
            let unit = members[0].1.unit;
            let mut all = [0; 4];
            for (one, launch) in &members {
                assert_eq!(launch.unit, unit);
                let Some(size) = launch.size else {
                    assert_eq!(members.len(), 1);
                    continue;
                };
                all.iter_mut().zip(load(one, size, machine)).for_each(|(all, load)| *all += load);
                let threads = u64::from(size.total() * machine.warp) * u64::from(machine.multiprocessors / unit);
                let most = occupancy::warps(&one.kernel, machine) * unit;
                assert!(threads >= one.jobs || size.total() >= most.min(machine.warps()));
                let share = launch.share.expect("it has a size");
                assert_eq!((share.blocks, share.warps), (size.blocks * (machine.multiprocessors / unit), size.warps));
            }
            assert!(all.iter().zip(room(machine)).all(|(all, room)| *all <= room * unit), "{all:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn each_batch_fits(group in prop::collection::vec((1u64..400_000, 16u32..128, 0u32..3), 1..20)) {
            let group: Vec<Wanted> =
                group.into_iter().map(|(jobs, registers, shared)| wanted(jobs, registers, shared * 8_000)).collect();
            check(&group, &H200, &plan(&group, &H200, None));
            check(&group, &H200, &plan(&group, &H200, Some(Duration::ZERO)));
        }
    }

    #[test]
    fn sixteen_simulations_run_at_once() {
        let group = [wanted(4000, 64, 0); 16];
        let plan = plan(&group, &H200, None);
        check(&group, &H200, &plan);
        assert_eq!(plan.batches, 1);
        assert_eq!(plan.launches[0].share, Some(Share { blocks: 132, warps: 1 }));
    }

    #[test]
    fn two_multiprocessors_are_a_unit_where_one_has_too_few_blocks() {
        let group = [wanted(64, 32, 0); 40];
        let plan = plan(&group, &H200, None);
        check(&group, &H200, &plan);
        assert_eq!((plan.batches, plan.launches[0].unit), (1, 2));
        assert_eq!(plan.launches[0].share, Some(Share { blocks: 66, warps: 1 }));
    }

    #[test]
    fn kernels_that_take_a_whole_multiprocessor_run_one_after_the_other() {
        let group = [wanted(1 << 30, 32, 0), wanted(1 << 30, 32, 0), wanted(100, 32, 0)];
        let plan = plan(&group, &H200, None);
        check(&group, &H200, &plan);
        assert_eq!(plan.batches, 3);
        // one that does not run at all gets no share
        let broken = [wanted(10, 255, 60_000), wanted(10, 32, 0)];
        let plan = super::plan(&broken, &H200, None);
        check(&broken, &H200, &plan);
        assert_eq!((plan.launches[0].share, plan.batches), (None, 2));
        assert_eq!(super::plan(&[], &H200, None), Plan { launches: vec![], batches: 0 });
    }

    #[test]
    fn a_thousand_sections_have_a_plan() {
        let group = vec![wanted(4000, 40, 4096); 1000];
        let plan = plan(&group, &H200, None);
        check(&group, &H200, &plan);
        assert_eq!(plan.batches, 1000usize.div_ceil(32));
    }

    #[test]
    fn known_groups_are_not_planned_again() {
        let planner = Planner::default();
        let group = vec![wanted(4000, 64, 0); 16];
        let first = planner.plan(group.clone(), &H200);
        assert!(Arc::ptr_eq(&first, &planner.plan(group, &H200)));
        (0..MAX_PLANS as u64 + 1).for_each(|jobs| drop(planner.plan(vec![wanted(jobs, 64, 0)], &H200)));
        assert!(planner.known.lock().len() <= MAX_PLANS);
    }
}
