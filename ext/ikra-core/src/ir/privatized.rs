//! Privatized reductions: columns to which a program only ever adds, so that the order of the additions does not
//! matter.
//!
//! Here: [`privatized`], which finds these columns. If such a column has few rows, all jobs would wait for the same
//! rows. So a backend gives each group of jobs a private copy of the rows to add to: a block of threads on a GPU, a
//! thread on the host. It merges the copies when the group is done. Not here: how many rows are few.

use super::{AtomicOp, ColumnId, Program, SiteId, Stmt, walk};

/// The only operation by which a program touches a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privatized {
    pub column: ColumnId,
    pub op: AtomicOp,
    /// The site that raises when a sum leaves 64 bits. If there are several: the first.
    pub site: Option<SiteId>,
}

/// The columns that a program touches by one atomic operation alone, in the order of columns.
pub fn privatized(program: &Program) -> Vec<Privatized> {
    /// The uses of a column seen so far.
    #[derive(Clone, Copy)]
    enum Use {
        None,
        Only(Privatized),
        Other,
    }
    let mut uses = vec![Use::None; program.columns.len()];
    for func in &program.funcs {
        walk(&func.body, &mut |stmt| match stmt {
            Stmt::Atomic { op, column, site, .. } => {
                let seen = &mut uses[column.index()];
                *seen = match *seen {
                    Use::None => Use::Only(Privatized { column: *column, op: *op, site: *site }),
                    Use::Only(all) if all.op == *op && all.site.is_some() == site.is_some() => *seen,
                    _ => Use::Other,
                };
            }
            Stmt::Load { column, .. } | Stmt::Store { column, .. } | Stmt::FetchAdd { column, .. } => {
                uses[column.index()] = Use::Other;
            }
            _ => {}
        });
    }
    let only = |seen| match seen {
        Use::Only(privatized) => Some(privatized),
        Use::None | Use::Other => None,
    };
    uses.into_iter().filter_map(only).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::testing::{INTS, program};
    use crate::ir::{Operand, Scalar};

    fn add(row: i64, site: Option<SiteId>, op: AtomicOp) -> Stmt {
        Stmt::Atomic { op, column: INTS, row: Operand::I64(row), value: Operand::I64(1), site }
    }

    #[test]
    fn a_column_that_is_only_added_to_is_privatized() {
        let of = |stmts: Vec<Stmt>| privatized(&program(|b, _| stmts.into_iter().for_each(|stmt| b.push(stmt))));
        let sums = Privatized { column: INTS, op: AtomicOp::Add, site: Some(SiteId(1)) };
        assert_eq!(of(vec![add(0, Some(SiteId(1)), AtomicOp::Add), add(1, Some(SiteId(0)), AtomicOp::Add)]), [sums]);
        let max = Privatized { op: AtomicOp::Max, site: None, ..sums };
        assert_eq!(of(vec![add(0, None, AtomicOp::Max)]), [max]);
        assert_eq!(of(vec![]), []);
        // Two operations on a row, or one that wraps and one that does not.
        assert_eq!(of(vec![add(0, None, AtomicOp::Max), add(0, None, AtomicOp::Min)]), []);
        assert_eq!(of(vec![add(0, None, AtomicOp::Add), add(0, Some(SiteId(1)), AtomicOp::Add)]), []);
    }

    #[test]
    fn what_is_read_or_stored_is_not() {
        let read = program(|b, _| {
            b.push(add(0, None, AtomicOp::Add));
            b.load(Scalar::I64, INTS, Operand::I64(0));
        });
        let stored = program(|b, _| {
            b.store(INTS, Operand::I64(0), Operand::I64(0));
            b.push(add(0, None, AtomicOp::Add));
        });
        assert_eq!([privatized(&read), privatized(&stored)], [[], []]);
    }
}
