//! Places of a function's registers: each is declared where it is first assigned, or folded into its only use.
//!
//! Here: [`Places`], which is made from all occurrences of registers. Not here: the text ([`super::function`]).

use crate::ir::{Ctx, Func, Op, Operand, Stmt, VarId};
use std::collections::HashMap;

/// The number of a list of statements in a function. Lists are numbered in the order of the text, outer ones first.
pub(super) type ListId = usize;

/// Where registers of a function are declared.
pub(super) struct Places {
    /// The registers to declare before the statement at a position of a list. True: the statement itself declares it.
    pub(super) declare: HashMap<(ListId, usize), Vec<(VarId, bool)>>,
    /// Whether a register is assigned exactly once.
    pub(super) constant: Vec<bool>,
    /// Whether a register may be folded into its only use.
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

/// Visits the operands that a statement itself reads, without statements nested in it.
pub(super) fn operands(stmt: &Stmt, visit: impl FnMut(Operand)) {
    stmt.reads(visit);
}

/// The registers that a statement itself assigns.
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

/// The first pass: finds the innermost list with all occurrences of each register.
pub(super) struct Survey {
    pub(super) parents: Vec<Option<ListId>>,
    pub(super) home: Vec<Option<ListId>>,
    pub(super) defs: Vec<usize>,
    pub(super) uses: Vec<usize>,
    /// The list of the only assignment of each register, if that can be folded.
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
                if matches!(stmt, Stmt::Let { op, .. } if !matches!(op, Op::Random | Op::Ctx(Ctx::Stopped))) {
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
        // the number of a list is greater than its parent's
        let (mut a, mut b) = (home.unwrap_or(list), list);
        while a != b {
            let higher = if a > b { &mut a } else { &mut b };
            *higher = self.parents[*higher].unwrap_or(0);
        }
        *home = Some(a);
    }
}

/// The second pass: finds the first statement of its list in which each register occurs.
pub(super) struct First<'a> {
    pub(super) home: &'a [Option<ListId>],
    pub(super) next: ListId,
    /// The open lists, with the position in each.
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
