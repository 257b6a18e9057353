//! Launch sizes of kernels that share a multiprocessor.
//!
//! Here: the model of Li, Tu and Zeng, *Concurrent query processing in a GPU-based database system* (PLoS ONE 14(4),
//! 2019), equations 11 to 15: the least shared memory, so that all threads run at once. Not here: registers and the
//! amount of shared memory, which are checked behind it, and batches ([`super::batch`], [`super::plan`]).
//!
//! V\[i, b, w\] is the least shared memory of the first i kernels in at most b blocks and w warps. It is the minimum
//! over bᵢ of V\[i − 1, b − bᵢ, w − wᵢbᵢ\] + sᵢbᵢ, where wᵢ = ⌈cᵢ / 32bᵢ⌉. The paper's Algorithm 1 leaves b and w at
//! their largest values, and so lacks two loops. Here all are visited.

/// What a kernel asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// All its warps: ⌈cᵢ / 32⌉.
    pub warps: u32,
    /// Bytes of shared memory of a block: sᵢ.
    pub shared: u32,
    /// The most warps of a block.
    pub most: u32,
}

/// What a kernel gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Size {
    pub blocks: u32,
    /// Warps of a block.
    pub warps: u32,
}

impl Demand {
    /// The sizes worth a thought, in up to so many blocks. More blocks cost more, and so have to save warps.
    fn sizes(&self, blocks: u32) -> Vec<Size> {
        let mut sizes: Vec<Size> = Vec::new();
        let wanted = self.warps.max(1);
        let fewest = wanted.div_ceil(self.most.max(1));
        for blocks in fewest..=blocks {
            let size = Size { blocks, warps: wanted.div_ceil(blocks) };
            if sizes.last().is_none_or(|last| size.total() < last.total()) {
                sizes.push(size);
            }
            if size.total() == wanted {
                break;
            }
        }
        sizes
    }
}

impl Size {
    /// All its warps.
    pub fn total(self) -> u32 {
        self.blocks * self.warps
    }
}

/// The size of each kernel, in so many blocks and warps altogether. None: not all threads run at once.
pub fn solve(demands: &[Demand], blocks: u32, warps: u32) -> Option<Vec<Size>> {
    let choices: Vec<Vec<Size>> = demands.iter().map(|demand| demand.sizes(blocks)).collect();
    // The first choices take the fewest blocks. So no others take less shared memory.
    let first: Vec<Size> = choices.iter().map(|sizes| sizes.first().copied()).collect::<Option<_>>()?;
    if first.iter().map(|size| size.blocks).sum::<u32>() > blocks {
        return None;
    }
    if first.iter().map(|size| size.total()).sum::<u32>() <= warps {
        return Some(first);
    }
    if choices.iter().flat_map(|sizes| sizes.last()).map(|size| size.total()).sum::<u32>() > warps {
        return None;
    }
    let (rows, columns) = (blocks as usize + 1, warps as usize + 1);
    let mut least = vec![0u64; rows * columns];
    let mut chosen = vec![u8::MAX; demands.len() * rows * columns];
    for (i, (demand, sizes)) in demands.iter().zip(&choices).enumerate() {
        let mut next = vec![u64::MAX; rows * columns];
        for (number, size) in sizes.iter().enumerate().take(usize::from(u8::MAX)) {
            let (taken, total) = (size.blocks as usize, size.total() as usize);
            let cost = u64::from(demand.shared) * u64::from(size.blocks);
            for b in taken..rows {
                for w in total..columns {
                    let before = least[(b - taken) * columns + w - total];
                    let at = b * columns + w;
                    if before != u64::MAX && before + cost < next[at] {
                        next[at] = before + cost;
                        chosen[i * rows * columns + at] = number as u8;
                    }
                }
            }
        }
        least = next;
    }
    let (mut b, mut w) = (rows - 1, columns - 1);
    let mut sizes = Vec::with_capacity(demands.len());
    for (i, choices) in choices.iter().enumerate().rev() {
        let size = *choices.get(usize::from(chosen[i * rows * columns + b * columns + w]))?;
        sizes.push(size);
        (b, w) = (b - size.blocks as usize, w - size.total() as usize);
    }
    sizes.reverse();
    Some(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cost(demands: &[Demand], sizes: &[Size]) -> u64 {
        demands.iter().zip(sizes).map(|(d, s)| u64::from(d.shared) * u64::from(s.blocks)).sum()
    }

    /// The least shared memory of all ways, without any of the arguments above.
    fn by_force(demands: &[Demand], blocks: u32, warps: u32) -> Option<u64> {
        let Some((demand, rest)) = demands.split_first() else { return Some(0) };
        let mut least = None;
        for b in 1..=blocks {
            for w in 1..=demand.most.min(warps / b) {
                if b * w >= demand.warps
                    && let Some(cost) = by_force(rest, blocks - b, warps - b * w)
                {
                    let cost = cost + u64::from(demand.shared) * u64::from(b);
                    least = Some(least.map_or(cost, |least: u64| least.min(cost)));
                }
            }
        }
        least
    }

    proptest! {
        #[test]
        fn the_recurrence_finds_what_brute_force_finds(
            demands in prop::collection::vec((1u32..9, 0u32..4, 1u32..6), 1..5),
            blocks in 1u32..9,
            warps in 1u32..13,
        ) {
            let demands: Vec<Demand> =
                demands.into_iter().map(|(warps, shared, most)| Demand { warps, shared, most }).collect();
            let found = solve(&demands, blocks, warps);
            prop_assert_eq!(found.as_ref().map(|sizes| cost(&demands, sizes)), by_force(&demands, blocks, warps));
            for (size, demand) in found.iter().flatten().zip(&demands) {
                prop_assert!(size.total() >= demand.warps && size.warps <= demand.most);
            }
            if let Some(sizes) = found {
                prop_assert!(sizes.iter().map(|size| size.blocks).sum::<u32>() <= blocks);
                prop_assert!(sizes.iter().map(|size| size.total()).sum::<u32>() <= warps);
            }
        }
    }

    #[test]
    fn the_largest_blocks_are_taken_unless_they_waste_warps() {
        let demand = Demand { warps: 9, shared: 100, most: 8 };
        assert_eq!(solve(&[demand], 32, 64), Some(vec![Size { blocks: 2, warps: 5 }]));
        assert_eq!(solve(&[demand], 32, 9), Some(vec![Size { blocks: 3, warps: 3 }]));
        assert_eq!(solve(&[demand], 2, 9), None);
        assert_eq!(solve(&[demand], 32, 8), None);
        assert_eq!(solve(&[], 32, 64), Some(vec![]));
    }
}
