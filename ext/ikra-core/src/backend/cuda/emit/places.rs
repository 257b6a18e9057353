//! Where the registers of a function live: declared where they are first assigned, or folded into their only use.
//!
//! Here: [`Places`], by a survey of all occurrences. Not here: the text ([`super::function`]).

use crate::ir::{Func, Op, Operand, Stmt, VarId};
use std::collections::HashMap;

/// A list of statements of a function, numbered outer ones first, in the order of the text.
pub(super) type ListId = usize;

/// Where the registers of a function live.
pub(super) struct Places {
    /// Registers to declare before the statement at a position of a list; true: the statement itself declares it.
    pub(super) declare: HashMap<(ListId, usize), Vec<(VarId, bool)>>,
    /// Assigned exactly once.
    pub(super) constant: Vec<bool>,
    /// May be folded into its only use.
    pub(super) foldable: Vec<bool>,
}

impl Places {
    pub(super) fn of(func: &Func) -> Self {
        let n = func.vars.len();
        let mut survey = Survey {
            parents: vec![None],
            home: vec![None; n],
            defs: vec![0; n],
            uses: vec![0; n],
            def_list: vec![None; n],
            use_list: vec![None; n],
        };
        survey.list(&func.body, 0);
        let mut first = First { home: &survey.home, next: 1, path: Vec::new(), found: vec![None; n] };
        first.list(&func.body, 0);
        let mut declare: HashMap<_, Vec<_>> = HashMap::new();
        for (index, found) in first.found.iter().enumerate() {
            let var = VarId::new(index);
            if let Some((place, direct)) = found
                && !func.params.contains(&var)
            {
                declare.entry(*place).or_default().push((var, *direct));
            }
        }
        let foldable = (0..n)
            .map(|v| {
                let var = VarId::new(v);
                func.vars[v].name.is_none()
                    && !func.params.contains(&var)
                    && survey.defs[v] == 1
                    && survey.uses[v] == 1
                    && survey.def_list[v] == survey.use_list[v]
                    && survey.def_list[v].is_some()
            })
            .collect();
        let constant = survey.defs.iter().map(|d| *d == 1).collect();
        Places { declare, constant, foldable }
    }
}

/// Registers that a statement itself (not those nested in it) reads.
pub(super) fn operands(stmt: &Stmt, visit: impl FnMut(Operand)) {
    stmt.reads(visit);
}

/// Registers that a statement itself assigns.
pub(super) fn results(stmt: &Stmt) -> &[VarId] {
    stmt.assigns()
}

pub(super) fn nested(stmt: &Stmt) -> [Option<&Vec<Stmt>>; 2] {
    match stmt {
        Stmt::If { then, otherwise, .. } => [Some(then), Some(otherwise)],
        Stmt::Block { body, .. } | Stmt::Loop { body, .. } => [Some(body), None],
        _ => [None, None],
    }
}

/// First pass: the innermost list that holds all occurrences of each register.
pub(super) struct Survey {
    pub(super) parents: Vec<Option<ListId>>,
    pub(super) home: Vec<Option<ListId>>,
    pub(super) defs: Vec<usize>,
    pub(super) uses: Vec<usize>,
    /// The list of the only assignment, where that can be folded.
    pub(super) def_list: Vec<Option<ListId>>,
    pub(super) use_list: Vec<Option<ListId>>,
}

impl Survey {
    pub(super) fn list(&mut self, body: &[Stmt], list: ListId) {
        for stmt in body {
            operands(stmt, |o| {
                if let Operand::Var(v) = o {
                    self.occurs(v, list);
                    self.uses[v.index()] += 1;
                    self.use_list[v.index()] = Some(list);
                }
            });
            for v in results(stmt) {
                self.occurs(*v, list);
                self.defs[v.index()] += 1;
                if matches!(stmt, Stmt::Let { op, .. } if *op != Op::Random) {
                    self.def_list[v.index()] = Some(list);
                }
            }
            for inner in nested(stmt).into_iter().flatten() {
                self.parents.push(Some(list));
                self.list(inner, self.parents.len() - 1);
            }
        }
    }
    fn occurs(&mut self, v: VarId, list: ListId) {
        let home = &mut self.home[v.index()];
        // A list's number is greater than its parent's.
        let (mut a, mut b) = (home.unwrap_or(list), list);
        while a != b {
            let higher = if a > b { &mut a } else { &mut b };
            *higher = self.parents[*higher].unwrap_or(0);
        }
        *home = Some(a);
    }
}

/// Second pass: the first statement of its home list in which each register occurs.
pub(super) struct First<'a> {
    pub(super) home: &'a [Option<ListId>],
    pub(super) next: ListId,
    /// Open lists with the position in each.
    pub(super) path: Vec<(ListId, usize)>,
    pub(super) found: Vec<Option<((ListId, usize), bool)>>,
}

impl First<'_> {
    pub(super) fn list(&mut self, body: &[Stmt], list: ListId) {
        for (position, stmt) in body.iter().enumerate() {
            self.path.push((list, position));
            operands(stmt, |o| {
                if let Operand::Var(v) = o {
                    self.occurs(v, false);
                }
            });
            for v in results(stmt) {
                self.occurs(*v, true);
            }
            for inner in nested(stmt).into_iter().flatten() {
                let id = self.next;
                self.next += 1;
                self.list(inner, id);
            }
            self.path.pop();
        }
    }
    fn occurs(&mut self, v: VarId, assigned: bool) {
        if self.found[v.index()].is_none() {
            let at = self.path.iter().rev().find(|(list, _)| Some(*list) == self.home[v.index()]);
            let at = *at.expect("a register's home encloses it");
            let direct = assigned && self.path.last() == Some(&at);
            self.found[v.index()] = Some((at, direct));
        }
    }
}
