//! Chooses which registers of two neighbouring jobs become the lanes of one vector: Floats, and truth values as its
//! masks.
//!
//! In a group of jobs ([`crate::passes::jam`]) there is one copy of each statement for each job, and one copy of each
//! register in which jobs differ. A *pair* is two copies of a register, for neighbouring jobs. It may be one vector
//! from its first assignment to its last use. If one operation assigns both, that is one instruction. A processor takes
//! no longer for two square roots or quotients than for one. Comparisons of such Floats give a vector of masks. One
//! instruction tests whether both or any of the two hold ([`Pairs::folded`]), so jobs that mostly take the same branch
//! are compared and branched together.
//!
//! Here: which pairs become vectors, and which statements assign both registers. Not here: the code for them
//! ([`super::lower`]). The program means the same either way, because each operation on a vector is one on each lane.
//! Invariant: a register of a pair is never assigned alone.
//!
//! Source: S. Larsen, S. Amarasinghe, Exploiting superword level parallelism with multimedia instruction sets, 2000.
//! Unlike there, it is known which statements correspond.

use crate::ir::{Func, Op, Operand, Scalar, Stmt, VarId, walk};
use std::collections::{HashMap, HashSet};

/// The pairs of an entry that are vectors.
#[derive(Default)]
pub struct Pairs {
    /// The pair and the lane of each register.
    of: HashMap<VarId, Lane>,
    lanes: Vec<Lanes>,
}

/// What the two lanes of a pair hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    F64,
    /// Floats of 32 bits ([`crate::passes::single`]).
    F32,
    /// Truth values.
    Mask,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Lane {
    pub pair: usize,
    pub lane: u8,
}

impl Pairs {
    /// Of the candidates, the pairs for which vectors pay.
    pub fn of(func: &Func, candidates: &[[VarId; 2]], single: &[bool]) -> Self {
        let mut pairs = Self::default();
        for pair in candidates {
            let lanes = match (func.ty(pair[0].into()), pair.map(|v| single[v.index()])) {
                (Scalar::Bool, _) => Lanes::Mask,
                (_, [false, false]) => Lanes::F64,
                (_, [true, true]) => Lanes::F32,
                _ => continue,
            };
            pairs.add(*pair, lanes);
        }
        let mut alone = vec![false; pairs.len()];
        pairs.assigned_alone(&func.body, &mut alone);
        let pairs = pairs.without(&alone);
        let poor = Costs::of(func, &pairs).poor();
        pairs.without(&poor)
    }

    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    pub fn lanes(&self, pair: usize) -> Lanes {
        self.lanes[pair]
    }

    fn is_mask(&self, pair: usize) -> bool {
        self.lanes[pair] == Lanes::Mask
    }

    pub fn lane(&self, v: VarId) -> Option<Lane> {
        self.of.get(&v).copied()
    }

    /// The pair whose two lanes are these operands.
    pub fn whole(&self, [first, second]: [Operand; 2]) -> Option<usize> {
        let (Operand::Var(first), Operand::Var(second)) = (first, second) else { return None };
        let (first, second) = (self.lane(first)?, self.lane(second)?);
        (first.pair == second.pair && (first.lane, second.lane) == (0, 1)).then_some(first.pair)
    }

    /// The mask pair of a statement that tests whether it holds for both lanes, or for any.
    pub fn folded(&self, stmt: &Stmt) -> Option<usize> {
        let Stmt::Let { op: Op::And | Op::Or, args, .. } = stmt else { return None };
        self.whole([args[0], args[1]]).filter(|pair| self.is_mask(*pair))
    }

    /// The pair that the first two statements of a list assign as one.
    pub fn assigned(&self, list: &[Stmt]) -> Option<usize> {
        let [first, second, ..] = list else { return None };
        let is_mask = |v: VarId| self.lane(v).is_some_and(|lane| self.is_mask(lane.pair));
        let dsts = match (first, second) {
            (Stmt::Let { dst, op, .. }, Stmt::Let { dst: other, op: too, args })
                if op == too
                    && is_for_each_lane(*op)
                    && !args.contains(&(*dst).into())
                    && !(*op == Op::Select && is_mask(*dst)) =>
            {
                [*dst, *other]
            }
            (Stmt::Load { dst, column, .. }, Stmt::Load { dst: other, column: too, row })
                // truth values in memory are not masks
                if column == too && *row != (*dst).into() && !is_mask(*dst) =>
            {
                [*dst, *other]
            }
            _ => return None,
        };
        self.whole(dsts.map(Operand::from))
    }

    fn add(&mut self, registers: [VarId; 2], lanes: Lanes) {
        let pair = self.len();
        self.of.extend(registers.into_iter().zip(0..).map(|(v, lane)| (v, Lane { pair, lane })));
        self.lanes.push(lanes);
    }

    /// Finds the pairs of which one register is assigned alone.
    fn assigned_alone(&self, list: &[Stmt], alone: &mut [bool]) {
        let mut rest = list;
        while let [stmt, behind @ ..] = rest {
            if self.assigned(rest).is_some() {
                rest = &behind[1..];
                continue;
            }
            stmt.assigns().iter().filter_map(|v| self.lane(*v)).for_each(|lane| alone[lane.pair] = true);
            stmt.bodies().into_iter().for_each(|body| self.assigned_alone(body, alone));
            rest = behind;
        }
    }

    fn without(self, dropped: &[bool]) -> Self {
        let mut kept = 0;
        let numbers: Vec<_> = dropped.iter().map(|dropped| (!dropped).then(|| (kept, kept += 1).0)).collect();
        let of = self.of.into_iter().filter_map(|(v, lane)| Some((v, Lane { pair: numbers[lane.pair]?, ..lane })));
        let lanes = self.lanes.iter().zip(dropped).filter(|(_, dropped)| !**dropped).map(|(lanes, _)| *lanes);
        Self { of: of.collect(), lanes: lanes.collect() }
    }
}

/// Whether processors have the operation for vectors of Floats, or for the masks that their comparisons give.
fn is_for_each_lane(op: Op) -> bool {
    let of_floats = matches!(op, Op::FAdd | Op::FSub | Op::FMul | Op::FDiv | Op::FNeg | Op::FAbs | Op::FSqrt);
    of_floats || op == Op::FSingle || matches!(op, Op::Copy | Op::Select | Op::FCmp(_) | Op::And | Op::Or | Op::Not)
}

/// A rough estimate of what pairs save and cost, in instructions. Pairs that are computed from each other are accepted
/// or rejected together.
struct Costs<'a> {
    pairs: &'a Pairs,
    /// Union-find: for each pair, the next one on the way to the representative of its set.
    next: Vec<usize>,
    gains: Vec<i64>,
    /// Registers that are the sum of an operand and a constant.
    sums: HashMap<VarId, (Operand, i64)>,
    /// Registers that the innermost loop assigns. Vectors of all others are made before the loop.
    changing: HashSet<VarId>,
    /// Lanes and vectors, of registers that change in that loop, whose making was counted already.
    made: HashSet<[Operand; 2]>,
    /// How often the current statements run.
    times: i64,
}

impl<'a> Costs<'a> {
    fn of(func: &Func, pairs: &'a Pairs) -> Self {
        let mut sums = HashMap::new();
        walk(&func.body, &mut |stmt| {
            if let Stmt::Let { dst, op: Op::Add, args } = stmt
                && let [from @ Operand::Var(_), Operand::I64(more)] = args[..]
            {
                sums.insert(*dst, (from, more));
            }
        });
        let (changing, made) = (HashSet::new(), HashSet::new());
        let (next, gains) = ((0..pairs.len()).collect(), vec![0; pairs.len()]);
        let mut costs = Self { pairs, next, gains, sums, changing, made, times: 1 };
        costs.list(&func.body);
        costs
    }

    /// The pairs that do not save more than they cost.
    fn poor(mut self) -> Vec<bool> {
        let all = 0..self.gains.len();
        for pair in all.clone() {
            let root = self.root(pair);
            if root != pair {
                self.gains[root] += self.gains[pair];
            }
        }
        all.map(|pair| self.gains[self.root(pair)] <= 0).collect()
    }

    fn root(&self, mut pair: usize) -> usize {
        while self.next[pair] != pair {
            pair = self.next[pair];
        }
        pair
    }

    fn list(&mut self, list: &[Stmt]) {
        let mut rest = list;
        while let [stmt, behind @ ..] = rest {
            match (self.pairs.assigned(rest), behind) {
                (Some(pair), [second, after @ ..]) => {
                    self.both(pair, stmt, second);
                    rest = after;
                }
                _ => {
                    self.single(stmt);
                    rest = behind;
                }
            }
        }
    }

    fn both(&mut self, pair: usize, first: &Stmt, second: &Stmt) {
        match (first, second) {
            (Stmt::Let { op, args, .. }, Stmt::Let { args: others, .. }) => {
                self.gains[pair] += self.times
                    * match op {
                        // what has 32 bits is not rounded again
                        Op::Copy | Op::FSingle => 0,
                        Op::FDiv | Op::FSqrt => 5,
                        // a single Float is selected by a branch
                        Op::Select => 2,
                        _ => 1,
                    };
                for (at, (one, other)) in args.iter().zip(others).enumerate() {
                    if *op == Op::Select && at == 0 && one == other {
                        continue;
                    }
                    let truths = match op {
                        Op::And | Op::Or | Op::Not => true,
                        Op::Copy => self.pairs.is_mask(pair),
                        Op::Select => at == 0,
                        _ => false,
                    };
                    self.operand(pair, [*one, *other], truths);
                }
            }
            (Stmt::Load { row, .. }, Stmt::Load { row: other, .. }) => {
                [row, other].into_iter().for_each(|row| self.read(*row));
                self.gains[pair] += if self.is_next(*row, *other) { self.times } else { -self.times };
            }
            _ => unreachable!("nothing else assigns a pair"),
        }
    }

    fn is_next(&self, row: Operand, other: Operand) -> bool {
        let sum = |row: Operand| match row {
            Operand::Var(v) => self.sums.get(&v).copied().unwrap_or((row, 0)),
            _ => (row, 0),
        };
        let ((from, more), (other, most)) = (sum(row), sum(other));
        from == other && more.checked_add(1) == Some(most)
    }

    /// Counts the operands of a pair, which are Floats or truth values.
    fn operand(&mut self, pair: usize, operands: [Operand; 2], truths: bool) {
        if let Some(other) = self.pairs.whole(operands) {
            let (root, other) = (self.root(pair), self.root(other));
            self.next[root] = other;
            return;
        }
        if !operands.iter().any(|operand| self.changes(*operand)) || !self.made.insert(operands) {
            return;
        }
        // a truth value must first become a mask
        let each = if truths { 3 } else { 1 };
        self.gains[pair] -= self.times * each * if operands[0] == operands[1] { 1 } else { 2 };
        operands.into_iter().for_each(|operand| self.read(operand));
    }

    fn changes(&self, operand: Operand) -> bool {
        matches!(operand, Operand::Var(v) if self.changing.contains(&v))
    }

    /// Counts the use of a single register of a pair.
    fn read(&mut self, operand: Operand) {
        let Operand::Var(v) = operand else { return };
        let Some(Lane { pair, lane }) = self.pairs.lane(v) else { return };
        // the first Float of a vector is available at no cost
        if (lane > 0 || self.pairs.is_mask(pair)) && self.changes(operand) && self.made.insert([operand; 2]) {
            self.gains[pair] -= self.times;
        }
    }

    fn single(&mut self, stmt: &Stmt) {
        if self.pairs.folded(stmt).is_some() {
            return;
        }
        let mut reads = Vec::new();
        stmt.reads(|operand| reads.push(operand));
        reads.into_iter().for_each(|operand| self.read(operand));
        let Stmt::Loop { body, .. } = stmt else {
            // statements behind a branch count half
            let around = self.times;
            if let Stmt::If { .. } = stmt {
                self.times = (around / 2).max(1);
            }
            stmt.bodies().into_iter().for_each(|body| self.list(body));
            self.times = around;
            return;
        };
        let mut changing = HashSet::new();
        walk(body, &mut |stmt| changing.extend(stmt.assigns()));
        let around = (std::mem::replace(&mut self.changing, changing), std::mem::take(&mut self.made), self.times);
        self.times = self.times.saturating_mul(8).min(1 << 30);
        self.list(body);
        (self.changing, self.made, self.times) = around;
    }
}
