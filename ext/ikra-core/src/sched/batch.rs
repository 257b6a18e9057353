//! The fewest batches of kernels, each of which fits a multiprocessor.
//!
//! Here: equations 16 to 30 of Li, Tu and Zeng (see [`super::knapsack`]) by column generation (Gilmore and Gomory, *A
//! linear programming approach to the cutting-stock problem*, Operations Research 1961). A *pattern* says how many
//! kernels of each kind one batch has. The linear program min Σ xⱼ, Σ Pᵢⱼxⱼ ≥ dᵢ has duals π. A pattern with
//! Σ πᵢPᵢ > 1 makes it better: branch and bound looks for the best one. Once there is none, integers are looked for
//! over the patterns found. Two things differ from the paper: registers are those of all threads, and blocks are a
//! fourth dimension.
//!
//! First-fit decreasing comes first. It is the answer if it meets a bound, and where time is over.
//!
//! Not here: what kernels take ([`super::occupancy`]).

use good_lp::solvers::DualValues;
use good_lp::{Expression, Solution, SolutionWithDual, SolverModel, clarabel, constraint, variable, variables};
use std::time::{Duration, Instant};

/// Warps, registers, bytes of shared memory, and blocks.
pub type Load = [u32; 4];

/// Kernels that take the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub load: Load,
    pub count: u32,
}

/// Batches, each with the number of kernels of each kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Batches {
    pub patterns: Vec<Vec<u32>>,
    /// No way has fewer batches than that.
    pub bound: u32,
}

/// The most steps of each search. They count, so that without a limit of time the answer is always the same.
const MAX_STEPS: u32 = 20_000;
const EPSILON: f64 = 1e-6;

/// Stops searches.
struct Clock {
    until: Option<Instant>,
    steps: u32,
}

impl Clock {
    fn is_over(&mut self) -> bool {
        self.steps += 1;
        self.steps > MAX_STEPS || (self.steps.is_multiple_of(64) && self.is_late())
    }
    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
    fn restart(&mut self) {
        self.steps = 0;
    }
}

fn fits(load: &Load, room: &Load) -> bool {
    load.iter().zip(room).all(|(load, room)| load <= room)
}

fn take(room: &mut Load, load: &Load) {
    room.iter_mut().zip(load).for_each(|(room, load)| *room -= load);
}

fn give(room: &mut Load, load: &Load) {
    room.iter_mut().zip(load).for_each(|(room, load)| *room += load);
}

/// How much of the room a kernel takes, in the dimension where that is most.
fn share(load: &Load, room: &Load) -> f64 {
    load.iter().zip(room).map(|(load, room)| f64::from(*load) / f64::from((*room).max(1))).fold(0.0, f64::max)
}

/// Few batches. `limit`: for so long at most. None: a kernel does not fit alone.
pub fn pack(kinds: &[Kind], room: &Load, limit: Option<Duration>) -> Option<Batches> {
    if !kinds.iter().all(|kind| kind.count == 0 || fits(&kind.load, room)) {
        return None;
    }
    let mut clock = Clock { until: limit.map(|limit| Instant::now() + limit), steps: 0 };
    let first = first_fit(kinds, room);
    let bound = by_volume(kinds, room);
    if first.len() as u32 <= bound {
        return Some(Batches { patterns: first, bound });
    }
    Some(generated(kinds, room, first, bound, &mut clock))
}

/// First-fit decreasing: each kernel into the first batch that has room for it, the largest kernels first.
pub fn first_fit(kinds: &[Kind], room: &Load) -> Vec<Vec<u32>> {
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.sort_by(|a, b| share(&kinds[*b].load, room).total_cmp(&share(&kinds[*a].load, room)));
    let mut batches: Vec<(Vec<u32>, Load)> = Vec::new();
    for kind in order {
        for _ in 0..kinds[kind].count {
            let at = batches.iter().position(|(_, left)| fits(&kinds[kind].load, left)).unwrap_or_else(|| {
                batches.push((vec![0; kinds.len()], *room));
                batches.len() - 1
            });
            batches[at].0[kind] += 1;
            take(&mut batches[at].1, &kinds[kind].load);
        }
    }
    batches.into_iter().map(|(pattern, _)| pattern).collect()
}

/// All kernels together take so many batches at least.
fn by_volume(kinds: &[Kind], room: &Load) -> u32 {
    let of = |dimension: usize| {
        let all: u64 = kinds.iter().map(|kind| u64::from(kind.load[dimension]) * u64::from(kind.count)).sum();
        all.div_ceil(u64::from(room[dimension].max(1))) as u32
    };
    let least = u32::from(kinds.iter().any(|kind| kind.count > 0));
    (0..room.len()).map(of).max().unwrap_or(0).max(least)
}

/// The value of the linear program over these patterns, and its duals.
fn relaxed(kinds: &[Kind], patterns: &[Vec<u32>]) -> Option<(f64, Vec<f64>)> {
    let mut program = variables!();
    let used: Vec<_> = patterns.iter().map(|_| program.add(variable().min(0.0))).collect();
    let all: Expression = used.iter().sum();
    let mut model = program.minimise(all).using(clarabel);
    let rows: Vec<_> = kinds
        .iter()
        .enumerate()
        .map(|(i, kind)| {
            let of: Expression = used.iter().zip(patterns).map(|(x, pattern)| f64::from(pattern[i]) * *x).sum();
            model.add_constraint(constraint!(of >= f64::from(kind.count)))
        })
        .collect();
    let mut solved = model.solve().ok()?;
    let value = used.iter().map(|x| solved.value(*x)).sum();
    let duals = solved.compute_dual();
    Some((value, rows.into_iter().map(|row| duals.dual(row).max(0.0)).collect()))
}

fn generated(kinds: &[Kind], room: &Load, first: Vec<Vec<u32>>, mut bound: u32, clock: &mut Clock) -> Batches {
    let mut patterns = first.clone();
    patterns.sort();
    patterns.dedup();
    while let Some((value, duals)) = relaxed(kinds, &patterns) {
        if clock.is_late() {
            break;
        }
        clock.restart();
        let (pattern, worth, complete) = best_pattern(kinds, room, &duals, clock);
        if worth > 1.0 + EPSILON && !patterns.contains(&pattern) {
            if complete {
                // Duals that are divided by the worth of the best pattern are a solution of the dual program.
                bound = bound.max((value / worth - EPSILON).ceil() as u32);
            }
            patterns.push(pattern);
        } else {
            if complete {
                bound = bound.max((value - EPSILON).ceil() as u32);
            }
            break;
        }
        if first.len() as u32 <= bound {
            return Batches { patterns: first, bound };
        }
    }
    clock.restart();
    let found = if clock.is_late() { None } else { integers(kinds, &patterns, first.len() as u32, bound, clock) };
    Batches { patterns: found.unwrap_or(first), bound }
}

/// The pattern with the largest Σ πᵢPᵢ, that sum, and whether the search came to its end.
fn best_pattern(kinds: &[Kind], room: &Load, duals: &[f64], clock: &mut Clock) -> (Vec<u32>, f64, bool) {
    let mut order: Vec<usize> = (0..kinds.len()).filter(|kind| duals[*kind] > EPSILON).collect();
    let density = |kind: usize| duals[kind] / share(&kinds[kind].load, room).max(EPSILON);
    order.sort_by(|a, b| density(*b).total_cmp(&density(*a)));
    let mut search = Pricing {
        kinds,
        duals,
        order: &order,
        room: *room,
        now: vec![0; kinds.len()],
        best: vec![0; kinds.len()],
        worth: 0.0,
    };
    let complete = search.go(0, *room, 0.0, clock);
    (search.best, search.worth, complete)
}

struct Pricing<'a> {
    kinds: &'a [Kind],
    duals: &'a [f64],
    order: &'a [usize],
    room: Load,
    now: Vec<u32>,
    best: Vec<u32>,
    worth: f64,
}

impl Pricing<'_> {
    fn go(&mut self, at: usize, mut left: Load, worth: f64, clock: &mut Clock) -> bool {
        if worth > self.worth {
            self.worth = worth;
            self.best.clone_from(&self.now);
        }
        if at == self.order.len() {
            return true;
        }
        if clock.is_over() {
            return false;
        }
        if worth + self.at_best(at, &left) <= self.worth + EPSILON {
            return true;
        }
        let kind = self.order[at];
        let Kind { load, count } = self.kinds[kind];
        let mut taken = 0;
        while taken < count && fits(&load, &left) {
            take(&mut left, &load);
            taken += 1;
        }
        let mut complete = true;
        loop {
            self.now[kind] = taken;
            complete &= self.go(at + 1, left, worth + self.duals[kind] * f64::from(taken), clock);
            if taken == 0 || !complete {
                break;
            }
            taken -= 1;
            give(&mut left, &load);
        }
        self.now[kind] = 0;
        complete
    }

    /// What the rest of the kinds may be worth, if parts of kernels could be taken: the least over all dimensions.
    fn at_best(&self, at: usize, left: &Load) -> f64 {
        let all: f64 = self.order[at..].iter().map(|k| self.duals[*k] * f64::from(self.kinds[*k].count)).sum();
        let of = |dimension: usize| {
            let density = |k: &usize| match self.kinds[*k].load[dimension] {
                0 => f64::INFINITY,
                load => self.duals[*k] / f64::from(load),
            };
            let densest = self.order[at..].iter().map(density).fold(0.0, f64::max);
            if self.room[dimension] == 0 { f64::INFINITY } else { densest * f64::from(left[dimension]) }
        };
        (0..left.len()).map(of).fold(all, f64::min)
    }
}

/// Fewer than `most` batches of these patterns that have all kernels. None: there are none, or time is over.
fn integers(kinds: &[Kind], patterns: &[Vec<u32>], most: u32, bound: u32, clock: &mut Clock) -> Option<Vec<Vec<u32>>> {
    (bound..most).find_map(|batches| {
        let mut left: Vec<u32> = kinds.iter().map(|kind| kind.count).collect();
        let mut chosen = Vec::new();
        cover(patterns, &mut left, batches, &mut chosen, clock).then_some(chosen)
    })
}

fn cover(patterns: &[Vec<u32>], left: &mut [u32], batches: u32, chosen: &mut Vec<Vec<u32>>, clock: &mut Clock) -> bool {
    let Some(kind) = left.iter().position(|left| *left > 0) else { return true };
    if batches == 0 || clock.is_over() || clock.is_late() {
        return false;
    }
    // Some pattern has a kernel of this kind. Those that have most come first.
    let mut order: Vec<Vec<u32>> = patterns
        .iter()
        .filter(|pattern| pattern[kind] > 0)
        .map(|pattern| pattern.iter().zip(&*left).map(|(has, left)| *has.min(left)).collect())
        .collect();
    order.sort_by_key(|pattern: &Vec<u32>| std::cmp::Reverse(pattern.iter().sum::<u32>()));
    order.dedup();
    for pattern in order {
        left.iter_mut().zip(&pattern).for_each(|(left, taken)| *left -= taken);
        chosen.push(pattern);
        if cover(patterns, left, batches - 1, chosen, clock) {
            return true;
        }
        let Some(pattern) = chosen.pop() else { return false };
        left.iter_mut().zip(&pattern).for_each(|(left, taken)| *left += taken);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROOM: Load = [64, 65_536, 233_472, 32];

    fn kind(load: Load, count: u32) -> Kind {
        Kind { load, count }
    }

    fn check(kinds: &[Kind], room: &Load, batches: &Batches) {
        for (i, kind) in kinds.iter().enumerate() {
            assert_eq!(batches.patterns.iter().map(|pattern| pattern[i]).sum::<u32>(), kind.count);
        }
        for pattern in &batches.patterns {
            let mut left = *room;
            for (kind, count) in kinds.iter().zip(pattern) {
                for _ in 0..*count {
                    assert!(fits(&kind.load, &left));
                    take(&mut left, &kind.load);
                }
            }
        }
    }

    /// The fewest batches, by trying all ways.
    fn by_force(kinds: &[Kind], room: &Load) -> usize {
        fn go(items: &[Load], bins: &mut Vec<Load>, room: &Load, best: &mut usize) {
            let Some((item, rest)) = items.split_first() else {
                *best = (*best).min(bins.len());
                return;
            };
            if bins.len() >= *best {
                return;
            }
            for bin in 0..bins.len() {
                if fits(item, &bins[bin]) {
                    take(&mut bins[bin], item);
                    go(rest, bins, room, best);
                    give(&mut bins[bin], item);
                }
            }
            bins.push(*room);
            let last = bins.len() - 1;
            take(&mut bins[last], item);
            go(rest, bins, room, best);
            bins.pop();
        }
        let items: Vec<Load> = kinds.iter().flat_map(|kind| vec![kind.load; kind.count as usize]).collect();
        let mut best = items.len() + usize::from(items.is_empty());
        if items.is_empty() {
            return 0;
        }
        go(&items, &mut Vec::new(), room, &mut best);
        best
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn batches_lie_between_the_bound_and_first_fit(
            kinds in prop::collection::vec((1u32..10, 1u32..10, 0u32..10, 1u32..10, 1u32..4), 1..4)
        ) {
            let room = [10, 12, 10, 11];
            let kinds: Vec<Kind> = kinds.into_iter().map(|(w, r, s, b, count)| kind([w, r, s, b], count)).collect();
            let batches = pack(&kinds, &room, None).expect("each fits");
            check(&kinds, &room, &batches);
            let (found, least) = (batches.patterns.len(), by_force(&kinds, &room));
            prop_assert!(batches.bound as usize <= least, "{} <= {least}", batches.bound);
            prop_assert!(least <= found && found <= first_fit(&kinds, &room).len());
            // The integers over the patterns of the linear program are one more than the fewest at most.
            prop_assert!(found <= least + 1);
        }
    }

    #[test]
    fn better_than_first_fit() {
        // First-fit takes 6 + 3 and leaves no room for 5 + 5 in as many batches.
        let room = [20, 100, 100, 32];
        let kinds = [kind([11, 1, 0, 1], 2), kind([7, 1, 0, 1], 2), kind([6, 1, 0, 1], 2), kind([3, 1, 0, 1], 2)];
        let batches = pack(&kinds, &room, None).expect("each fits");
        check(&kinds, &room, &batches);
        assert_eq!(batches.patterns.len(), by_force(&kinds, &room));
        let kinds = [
            kind([44, 1, 0, 1], 2),
            kind([24, 1, 0, 1], 2),
            kind([22, 1, 0, 1], 2),
            kind([21, 1, 0, 1], 2),
            kind([17, 1, 0, 1], 2),
            kind([8, 1, 0, 1], 2),
            kind([6, 1, 0, 1], 2),
        ];
        let room = [61, 100, 100, 32];
        let batches = pack(&kinds, &room, None).expect("each fits");
        check(&kinds, &room, &batches);
        assert!(batches.patterns.len() <= first_fit(&kinds, &room).len());
        assert_eq!(batches.patterns.len(), by_force(&kinds, &room));
    }

    #[test]
    fn extremes() {
        assert_eq!(pack(&[], &ROOM, None), Some(Batches { patterns: vec![], bound: 0 }));
        assert_eq!(pack(&[kind([65, 1, 1, 1], 1)], &ROOM, None), None);
        let whole = pack(&[kind([64, 1, 1, 1], 3)], &ROOM, None).expect("each fits");
        assert_eq!((whole.patterns.len(), whole.bound), (3, 3));
        // 1000 kernels of one warp
        let little = pack(&[kind([1, 1024, 1024, 1], 1000)], &ROOM, None).expect("each fits");
        assert_eq!(little.patterns.len(), 32);
        // where time is over at once, first-fit is the answer
        let kinds = [kind([11, 1, 0, 1], 2), kind([7, 1, 0, 1], 2), kind([6, 1, 0, 1], 2), kind([3, 1, 0, 1], 2)];
        let room = [20, 100, 100, 32];
        let at_once = pack(&kinds, &room, Some(Duration::ZERO)).expect("each fits");
        check(&kinds, &room, &at_once);
        assert_eq!(at_once.patterns.len(), first_fit(&kinds, &room).len());
    }
}
