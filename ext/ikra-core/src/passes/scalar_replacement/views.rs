//! Which registers hold an array of constant length, or the row of one of its elements.
//!
//! An array is a word: its first row, shifted, and its length. Programs make the word of a row, take the row out of a
//! word, and add an index to a row. A register has a *view* if each of its assignments gives the same one.

use crate::ir::{Func, HeapId, Op, Operand, Space, Stmt, VarId, walk};
use std::collections::HashMap;

/// The low half of an array's word is its length, the high half is where it begins.
const LENGTH: i64 = 0xffff_ffff;
const HALF: i64 = 32;
/// The greatest length: longer arrays would not fit into registers.
const MAX_LENGTH: i64 = 16;

/// What a register holds.
#[derive(Clone, Copy, PartialEq)]
struct View {
    heap: HeapId,
    form: Form,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// The row of the element at this index, in an allocation of so many rows.
    Row { at: i64, count: i64 },
    /// The first row, shifted.
    Shifted { count: i64 },
    /// The word of an array of this length, which owns so many rows.
    Word { length: i64, count: i64 },
}

/// By register. None: its assignments give different views.
pub struct Views(HashMap<VarId, Option<View>>);

impl Views {
    pub fn of(func: &Func, spaces: &[Space]) -> Self {
        let mut views = Self(HashMap::new());
        loop {
            let mut grew = false;
            walk(&func.body, &mut |stmt| {
                let found = match stmt {
                    Stmt::Alloc { dst, heap, count: Operand::I64(count @ 1..=MAX_LENGTH), .. }
                        if matches!(spaces[heap.index()], Space::Array(_)) =>
                    {
                        Some((*dst, Some(View { heap: *heap, form: Form::Row { at: 0, count: *count } })))
                    }
                    Stmt::Let { dst, op, args } => views.result(*op, args).map(|view| (*dst, view)),
                    _ => None,
                };
                if let Some((dst, view)) = found {
                    grew |= views.join(dst, view);
                }
            });
            if !grew {
                return views;
            }
        }
    }

    /// Registers to which different views were assigned.
    pub fn mixed(&self) -> impl Iterator<Item = VarId> {
        self.0.iter().filter(|(_, view)| view.is_none()).map(|(var, _)| *var)
    }

    /// Whether the register has a view.
    pub fn has(&self, var: VarId) -> bool {
        self.view(var.into()).flatten().is_some()
    }

    /// The index of the element whose row the register holds.
    pub fn element(&self, var: VarId) -> Option<i64> {
        match self.form(var.into())? {
            Form::Row { at, count } => (0..count).contains(&at).then_some(at),
            _ => None,
        }
    }

    /// The length of the array whose word the register holds, and the number of its rows.
    pub fn word(&self, var: VarId) -> Option<(i64, i64)> {
        match self.form(var.into())? {
            Form::Word { length, count } => Some((length, count)),
            _ => None,
        }
    }

    fn view(&self, operand: Operand) -> Option<Option<View>> {
        match operand {
            Operand::Var(var) => self.0.get(&var).copied(),
            _ => None,
        }
    }

    fn form(&self, operand: Operand) -> Option<Form> {
        self.view(operand).flatten().map(|view| view.form)
    }

    /// Joins a view into that of a register. Whether that changed anything.
    fn join(&mut self, var: VarId, view: Option<View>) -> bool {
        match self.0.get_mut(&var) {
            None => {
                self.0.insert(var, view);
                true
            }
            Some(known) if known.is_none() || *known == view => false,
            Some(known) => {
                *known = None;
                true
            }
        }
    }

    /// The view that an operation gives. None: it gives no view, or one that is not known yet.
    fn result(&self, op: Op, args: &[Operand]) -> Option<Option<View>> {
        let sources = match op {
            Op::Copy => args,
            Op::Select => &args[1..],
            Op::Shl | Op::Or | Op::UShr | Op::Add => &args[..1],
            _ => return None,
        };
        let mut views = sources.iter().filter_map(|source| self.view(*source));
        let first = views.next()?;
        let Some(View { heap, form }) = first.filter(|first| views.all(|view| view == Some(*first))) else {
            return Some(None);
        };
        let form = match (op, form, args.get(1)) {
            (Op::Copy | Op::Select, form, _) => form,
            (Op::Shl, Form::Row { at: 0, count }, Some(Operand::I64(HALF))) => Form::Shifted { count },
            (Op::Or, Form::Shifted { count }, Some(Operand::I64(length))) if (0..=count).contains(length) => {
                Form::Word { length: *length, count }
            }
            (Op::UShr, Form::Word { count, .. }, Some(Operand::I64(HALF))) => Form::Row { at: 0, count },
            (Op::Add, Form::Row { at, count }, Some(Operand::I64(by))) => {
                Form::Row { at: at.saturating_add(*by).clamp(-1, MAX_LENGTH), count }
            }
            _ => return Some(None),
        };
        Some(Some(View { heap, form }))
    }
}

/// The length that an operation takes out of the word of an array, if it is known.
pub fn length_of(views: &Views, op: Op, args: &[Operand]) -> Option<i64> {
    match (op, args, views.form(*args.first()?)?) {
        (Op::And, [_, Operand::I64(LENGTH)], Form::Word { length, .. }) => Some(length),
        _ => None,
    }
}
