//! Stages: functions that neighbouring elements call for the same positions. A stage computes what a stencil reads.
//!
//! Here: [`Stage`], the properties of such a function, and [`reaches`], the distances of its positions from the
//! position of the element that calls it. Not here: whether several elements share its values
//! ([`crate::sched::stencil`]), and how (the backends, as far as they can).
//!
//! The arguments of a stage end with a position (I64) and, for each dimension, the distance of that position from the
//! one for which the caller itself was called. Distances are constants that the function does not use. If a function
//! can be shared, it only computes a value, which depends on the position alone ([`may_be_shared`]). So a backend may
//! omit a call whose value it already has.

use super::{ColumnId, FuncId, Jobs, Op, Operand, ParamId, Program, Scalar, Stmt, walk};

/// The properties of a stage.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Stage {
    /// The number of positions in each dimension, the outermost first (I64). They are numbered row after row. Empty:
    /// positions have no fixed distance from the caller's.
    pub sizes: Vec<ParamId>,
    /// The position of element 0 (I64). None: it is the first position.
    pub first: Option<ParamId>,
    /// The number of elements in each dimension that share its values. Empty: each caller computes its own.
    pub tile: Vec<u32>,
}

impl Stage {
    pub fn is_shared(&self) -> bool {
        !self.tile.is_empty()
    }
}

/// The positions for which elements call a stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    pub func: FuncId,
    /// The distances from the element's own position, in each dimension.
    pub least: Vec<i64>,
    pub greatest: Vec<i64>,
    /// Whether every call is in the entry, or in a stage of which this holds as well.
    pub fixed: bool,
}

impl Reach {
    /// The number of positions along a dimension that a tile of so many elements needs.
    pub fn width(&self, dimension: usize, tile: u32) -> u64 {
        self.greatest[dimension].abs_diff(self.least[dimension]).saturating_add(tile.into())
    }
    /// The number of positions that a tile of elements needs.
    pub fn cells(&self, tile: &[u32]) -> u64 {
        tile.iter().enumerate().map(|(d, side)| self.width(d, *side)).fold(1, u64::saturating_mul)
    }
}

/// The constant distances at the end of a call's arguments.
pub fn distances(args: &[Operand], dimensions: usize) -> Option<Vec<i64>> {
    let from = args.len().checked_sub(dimensions)?;
    let constant = |arg: &Operand| if let Operand::I64(distance) = arg { Some(*distance) } else { None };
    args[from..].iter().map(constant).collect()
}

/// All functions that are stages, each after those that it calls.
pub fn reaches(program: &Program) -> Vec<Reach> {
    let mut order = Vec::new();
    callees_first(program, program.entry, &mut vec![false; program.funcs.len()], &mut order);
    let dimensions = |func: FuncId| program.funcs[func.index()].stage.as_ref().map(|stage| stage.sizes.len());
    let mut found: Vec<Option<Reach>> = (0..program.funcs.len())
        .map(|at| {
            let func = FuncId::new(at);
            let none = vec![0; dimensions(func)?];
            Some(Reach { func, least: none.clone(), greatest: none, fixed: true })
        })
        .collect();
    let mut asked = vec![false; program.funcs.len()];
    for &caller in order.iter().rev() {
        let own = match &found[caller.index()] {
            Some(reach) if reach.fixed => Some((reach.least.clone(), reach.greatest.clone())),
            None if caller == program.entry => Some((Vec::new(), Vec::new())),
            _ => None,
        };
        walk(&program.funcs[caller.index()].body, &mut |stmt| {
            let Stmt::Call { func, args, .. } = stmt else { return };
            let first = !std::mem::replace(&mut asked[func.index()], true);
            let Some(reach) = &mut found[func.index()] else { return };
            let dimensions = reach.least.len();
            let away = distances(args, dimensions).filter(|away| !away.is_empty());
            let (Some((least, greatest)), Some(away)) = (&own, away) else { return reach.fixed = false };
            if caller != program.entry && least.len() != dimensions {
                return reach.fixed = false;
            }
            for (d, away) in away.into_iter().enumerate() {
                let at = |from: &[i64]| from.get(d).copied().unwrap_or(0).checked_add(away);
                let (Some(low), Some(high)) = (at(least), at(greatest)) else { return reach.fixed = false };
                reach.least[d] = if first { low } else { reach.least[d].min(low) };
                reach.greatest[d] = if first { high } else { reach.greatest[d].max(high) };
            }
        });
    }
    order.into_iter().filter_map(|func| found[func.index()].take()).collect()
}

fn callees_first(program: &Program, func: FuncId, seen: &mut [bool], order: &mut Vec<FuncId>) {
    if std::mem::replace(&mut seen[func.index()], true) {
        return;
    }
    walk(&program.funcs[func.index()].body, &mut |s| {
        if let Stmt::Call { func, .. } = s {
            callees_first(program, *func, seen, order);
        }
    });
    order.push(func);
}

/// Whether every call of a function gives the same, however often and whenever it runs. It draws nothing, changes
/// nothing that others read, and reads nothing that the program changes. `overwritten`: columns in which the program
/// changes rows that it did not make itself.
pub fn may_be_repeated(program: &Program, func: FuncId, overwritten: &[ColumnId]) -> bool {
    let effects = &program.effects()[func.index()];
    let alike = |(at, column): (usize, &super::Column)| {
        let id = ColumnId::new(at);
        let made = program.heaps.iter().any(|heap| heap.taken == id || column.space.covers(heap.space));
        let used = effects.reads(id) || effects.writes(id);
        !used || !column.written || made && !overwritten.contains(&id)
    };
    !effects.draws && !effects.emits && program.columns.iter().enumerate().all(alike)
}

/// Whether a function only computes one value, which is the same for every caller at any time.
pub fn may_be_shared(program: &Program, func: FuncId) -> bool {
    let effects = &program.effects()[func.index()];
    let only_reads = !effects.writes.contains(&true) && !effects.allocates.contains(&true) && !effects.draws;
    let constant = |(read, column): (&bool, &super::Column)| !read || !column.written;
    let f = &program.funcs[func.index()];
    let dimensions = f.stage.as_ref().map_or(0, |stage| stage.sizes.len());
    let arguments = f.params.len() == dimensions + 1 && f.params.iter().all(|p| f.vars[p.index()].ty == Scalar::I64);
    let mut order = Vec::new();
    callees_first(program, func, &mut vec![false; program.funcs.len()], &mut order);
    let mut alone = true;
    for func in order {
        let func = &program.funcs[func.index()];
        alone &= !func.recursive;
        walk(&func.body, &mut |stmt| alone &= !matches!(stmt, Stmt::Let { op: Op::Ctx(_), .. }));
    }
    program.jobs == Jobs::Identity
        && dimensions > 0
        && arguments
        && f.results.len() == 1
        && only_reads
        && effects.reads.iter().zip(&program.columns).all(constant)
        && alone
}
