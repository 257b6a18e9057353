//! The effects of a call of each function, including those of its callees: reads, writes and more.

use super::{Column, ColumnId, Op, Program, Stmt, walk};

/// Summary of a function. Columns are a set of flags in the program's order.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Effects {
    pub reads: Vec<bool>,
    pub writes: Vec<bool>,
    /// The heaps from which it takes rows, as flags.
    pub allocates: Vec<bool>,
    /// Whether it advances the element's draw counter.
    pub draws: bool,
    /// Whether it adds pairs to groups.
    pub emits: bool,
    /// Whether it can end the job early.
    pub stops: bool,
    /// Whether it repeats something, so that it may run long or for ever.
    pub loops: bool,
}

impl Effects {
    pub fn reads(&self, column: ColumnId) -> bool {
        self.reads[column.index()]
    }
    pub fn writes(&self, column: ColumnId) -> bool {
        self.writes[column.index()]
    }
    /// Whether a call whose results are not used can be left out.
    pub fn is_pure(&self) -> bool {
        !self.draws && !self.emits && !self.stops && !self.loops && !self.writes.contains(&true)
    }
}

impl Program {
    /// Whether a run changes only these columns, apart from rows that it made itself, and draws nothing; then it may
    /// run again. `overwritten`: columns in which the program changes rows that it did not make.
    pub fn changes_only(&self, wanted: &[ColumnId], overwritten: &[ColumnId]) -> bool {
        !self.emits() && self.emits_or_changes_only(wanted, overwritten)
    }

    /// The same, if it may also emit pairs.
    pub fn emits_or_changes_only(&self, wanted: &[ColumnId], overwritten: &[ColumnId]) -> bool {
        let made = |id: ColumnId, column: &Column| {
            let own = self.heaps.iter().any(|heap| heap.taken == id || column.space.covers(heap.space));
            own && !overwritten.contains(&id)
        };
        let kept = |(at, column): (usize, &Column)| {
            let id = ColumnId::new(at);
            !column.written || wanted.contains(&id) || made(id, column)
        };
        !self.uses_random && self.columns.iter().enumerate().all(kept)
    }

    /// For each function, the effects of a call of it.
    pub fn effects(&self) -> Vec<Effects> {
        let none = vec![false; self.columns.len()];
        let stops = self.may_stop();
        let mut all: Vec<Effects> = stops
            .into_iter()
            .zip(&self.funcs)
            .map(|(stops, func)| Effects {
                reads: none.clone(),
                writes: none.clone(),
                allocates: vec![false; self.heaps.len()],
                draws: false,
                emits: false,
                stops,
                loops: func.recursive,
            })
            .collect();
        loop {
            let before = all.clone();
            for (func, effects) in self.funcs.iter().zip(&mut all) {
                walk(&func.body, &mut |stmt| effects.add(stmt, &before));
            }
            if all == before {
                return all;
            }
        }
    }
}

impl Effects {
    /// Adds the effects of one statement; `callees`: the known effects of the functions.
    pub fn add(&mut self, stmt: &Stmt, callees: &[Effects]) {
        match stmt {
            Stmt::Let { op: Op::Random, .. } => self.draws = true,
            Stmt::Load { column, .. } => self.reads[column.index()] = true,
            Stmt::Store { column, .. } => self.writes[column.index()] = true,
            Stmt::Atomic { column, .. } | Stmt::FetchAdd { column, .. } => {
                self.reads[column.index()] = true;
                self.writes[column.index()] = true;
            }
            Stmt::Emit { text, .. } => {
                self.emits = true;
                text.iter().for_each(|column| self.reads[column.index()] = true);
            }
            Stmt::KeyPart { .. } => self.emits = true,
            Stmt::Alloc { heap, .. } => self.allocates[heap.index()] = true,
            Stmt::Loop { .. } => self.loops = true,
            Stmt::Call { func, .. } => {
                let callee = &callees[func.index()];
                self.draws |= callee.draws;
                self.emits |= callee.emits;
                self.loops |= callee.loops;
                self.allocates.iter_mut().zip(&callee.allocates).for_each(|(a, b)| *a |= b);
                self.reads.iter_mut().zip(&callee.reads).for_each(|(a, b)| *a |= b);
                self.writes.iter_mut().zip(&callee.writes).for_each(|(a, b)| *a |= b);
            }
            _ => {}
        }
    }
}
