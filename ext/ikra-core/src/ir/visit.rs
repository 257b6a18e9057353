//! Walks over statements: what each reads, assigns and contains.
//!
//! Here: one statement at a time; [`super::walk`] goes through a whole body. Not here: conclusions from it.

use super::{Func, LabelId, Operand, Stmt, VarId, walk};

impl Stmt {
    /// Its own operands; not those of the statements it contains.
    pub fn reads(&self, mut visit: impl FnMut(Operand)) {
        match self {
            Stmt::Let { args, .. } | Stmt::Call { args, .. } => args.iter().for_each(|a| visit(*a)),
            Stmt::Checked { args, .. } => args.iter().for_each(|a| visit(*a)),
            Stmt::Load { row, .. } => visit(*row),
            Stmt::Store { row, value, .. } | Stmt::Atomic { row, value, .. } | Stmt::FetchAdd { row, value, .. } => {
                visit(*row);
                visit(*value);
            }
            Stmt::Emit { key, value, order, .. } => key.iter().chain([value, order]).for_each(|o| visit(*o)),
            Stmt::KeyPart { code, word } => [code, word].into_iter().for_each(|o| visit(*o)),
            Stmt::Alloc { count: value, .. } | Stmt::Meet { value, .. } => visit(*value),
            Stmt::If { cond, .. } => visit(*cond),
            Stmt::Return(values) => values.iter().for_each(|v| visit(*v)),
            Stmt::Trap { operands, .. } => operands.iter().for_each(|o| visit(*o)),
            Stmt::Begin { index, tick, .. } => {
                visit(*index);
                visit(*tick);
            }
            Stmt::Block { .. }
            | Stmt::Loop { .. }
            | Stmt::Try { .. }
            | Stmt::Break(_)
            | Stmt::Place(_)
            | Stmt::Poll => {}
        }
    }

    /// As [`Stmt::reads`], to replace them.
    pub fn reads_mut(&mut self, mut visit: impl FnMut(&mut Operand)) {
        match self {
            Stmt::Let { args, .. } | Stmt::Call { args, .. } => args.iter_mut().for_each(visit),
            Stmt::Checked { args, .. } => args.iter_mut().for_each(visit),
            Stmt::Load { row, .. } => visit(row),
            Stmt::Store { row, value, .. } | Stmt::Atomic { row, value, .. } | Stmt::FetchAdd { row, value, .. } => {
                visit(row);
                visit(value);
            }
            Stmt::Emit { key, value, order, .. } => key.iter_mut().chain([value, order]).for_each(visit),
            Stmt::KeyPart { code, word } => [code, word].into_iter().for_each(visit),
            Stmt::Alloc { count: value, .. } | Stmt::Meet { value, .. } => visit(value),
            Stmt::If { cond, .. } => visit(cond),
            Stmt::Return(values) => values.iter_mut().for_each(visit),
            Stmt::Trap { operands, .. } => operands.iter_mut().for_each(visit),
            Stmt::Begin { index, tick, .. } => {
                visit(index);
                visit(tick);
            }
            Stmt::Block { .. }
            | Stmt::Loop { .. }
            | Stmt::Try { .. }
            | Stmt::Break(_)
            | Stmt::Place(_)
            | Stmt::Poll => {}
        }
    }

    /// The registers it assigns itself.
    pub fn assigns(&self) -> &[VarId] {
        match self {
            Stmt::Let { dst, .. }
            | Stmt::Checked { dst, .. }
            | Stmt::Load { dst, .. }
            | Stmt::FetchAdd { dst, .. }
            | Stmt::Alloc { dst, .. }
            | Stmt::Meet { dst, .. } => std::slice::from_ref(dst),
            Stmt::Call { dsts, .. } => dsts,
            Stmt::Try { raised, .. } => raised,
            _ => &[],
        }
    }

    /// As [`Stmt::assigns`], to replace them.
    pub fn assigns_mut(&mut self) -> &mut [VarId] {
        match self {
            Stmt::Let { dst, .. }
            | Stmt::Checked { dst, .. }
            | Stmt::Load { dst, .. }
            | Stmt::FetchAdd { dst, .. }
            | Stmt::Alloc { dst, .. }
            | Stmt::Meet { dst, .. } => std::slice::from_mut(dst),
            Stmt::Call { dsts, .. } => dsts,
            Stmt::Try { raised, .. } => raised,
            _ => &mut [],
        }
    }

    /// The lists it contains: two of an `If`, one of a `Block` or `Loop`.
    pub fn bodies(&self) -> [&[Stmt]; 2] {
        match self {
            Stmt::If { then, otherwise, .. } => [then, otherwise],
            Stmt::Block { body, .. } | Stmt::Loop { body, .. } | Stmt::Try { body, .. } => [body, &[]],
            _ => [&[], &[]],
        }
    }

    /// As [`Stmt::bodies`], to change them.
    pub fn bodies_mut(&mut self) -> [Option<&mut Vec<Stmt>>; 2] {
        match self {
            Stmt::If { then, otherwise, .. } => [Some(then), Some(otherwise)],
            Stmt::Block { body, .. } | Stmt::Loop { body, .. } | Stmt::Try { body, .. } => [Some(body), None],
            _ => [None, None],
        }
    }

    /// Whether control never reaches what follows the statement in its list, by its kind alone.
    pub fn ends_list(&self) -> bool {
        matches!(self, Stmt::Break(_) | Stmt::Return(_) | Stmt::Trap { .. })
    }

    /// The label it opens.
    pub fn label(&self) -> Option<LabelId> {
        match self {
            Stmt::Block { label, .. } | Stmt::Loop { label, .. } | Stmt::Try { label, .. } => Some(*label),
            _ => None,
        }
    }
}

/// Whether a body contains no loop, no call and no poll, and its threads do not meet.
pub fn is_plain(body: &[Stmt]) -> bool {
    let mut plain = true;
    walk(body, &mut |s| plain &= !matches!(s, Stmt::Loop { .. } | Stmt::Poll | Stmt::Meet { .. } | Stmt::Call { .. }));
    plain
}

/// Calls `visit` on every statement, outer ones first, to change it.
pub fn walk_mut(body: &mut [Stmt], visit: &mut impl FnMut(&mut Stmt)) {
    for stmt in body {
        visit(stmt);
        for body in stmt.bodies_mut().into_iter().flatten() {
            walk_mut(body, visit);
        }
    }
}

/// The number of statements in a list, nested ones included.
pub fn size(body: &[Stmt]) -> usize {
    body.iter().map(|s| 1 + s.bodies().iter().map(|b| size(b)).sum::<usize>()).sum()
}

/// Whether a `Break` in the list names the label.
pub fn breaks_to(body: &[Stmt], label: LabelId) -> bool {
    body.iter().any(|s| matches!(s, Stmt::Break(l) if *l == label) || s.bodies().iter().any(|b| breaks_to(b, label)))
}

/// Renumbers every label that the list opens with a number that `func` does not use yet.
pub fn freshen_labels(body: &mut [Stmt], func: &mut Func) {
    let mut renamed = std::collections::HashMap::new();
    super::walk(body, &mut |s| {
        if let Some(label) = s.label() {
            renamed.insert(label, LabelId::new(func.labels));
            func.labels += 1;
        }
    });
    walk_mut(body, &mut |s| match s {
        Stmt::Block { label, .. } | Stmt::Loop { label, .. } | Stmt::Try { label, .. } | Stmt::Break(label) => {
            *label = renamed.get(label).copied().unwrap_or(*label);
        }
        _ => {}
    });
}
