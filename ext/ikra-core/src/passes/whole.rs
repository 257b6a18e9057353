//! Specialises a program for elements that are all the objects of their classes: job j is then row `first + j`.
//!
//! Normally a job needs two loads, one after the other, before it can begin: which element it is, and which row that
//! element has. If the elements of a section are all objects of their classes, each once, the rows need no loads, since
//! they follow each other. The host launches such a program only in that case, and passes the first row as a parameter.
//!
//! Elements then run in another order. So the pass applies only to programs that do not depend on an element's place in
//! the list. They store nothing by it, draw no random numbers, and raise nothing, since that order decides which
//! exception is first.
//!
//! Part of no pipeline: checking whether the elements are all objects of their classes only pays for callers
//! that run over the same objects again and again.

use crate::ir::{
    Cmp, ColumnId, Ctx, Jobs, Op, Operand, Param, ParamId, Program, Scalar, Space, Stmt, Var, VarId, walk,
};

/// Changes the program, if it is of this kind, and returns the parameter for the first row. `elements`: the column of
/// the section's elements.
pub fn whole(program: &mut Program, elements: ColumnId, order: Option<ColumnId>) -> Option<ParamId> {
    let ids = matches!(program.columns[elements.index()].refers, Some(Space::Class { .. }));
    if !ids || program.uses_random || program.takes_rows() || !program.each_tick_surely_ends() {
        return None;
    }
    let place = Place::of(program, order)?;
    if !place.is_nothing(program, elements) {
        return None;
    }
    let first = ParamId::new(program.params.len());
    program.params.push(Param::new("first_row", Scalar::I64));
    let func = &mut program.funcs[program.entry.index()];
    let (row, start) = (VarId::new(func.vars.len()), VarId::new(func.vars.len() + 1));
    func.vars.extend([(); 2].map(|()| Var { ty: Scalar::I64, name: None }));
    let job = place.job;
    if let Place { numbers: Some(numbers), index, .. } = place {
        func.body.retain(|stmt| !numbers.is_part(stmt));
        replace(&mut func.body, index, job);
    }
    let count = [
        Stmt::Let { dst: start, op: Op::Param(first), args: vec![] },
        Stmt::Let { dst: row, op: Op::Add, args: vec![job, start.into()] },
    ];
    func.body.splice(0..0, count);
    load(&mut func.body, elements, row);
    program.jobs = Jobs::Identity;
    for column in order.into_iter().chain([elements]) {
        program.columns[column.index()].read = false;
    }
    Some(first)
}

/// Where the entry function holds the element's place in the list.
struct Place {
    job: Operand,
    index: Operand,
    numbers: Option<Numbers>,
}

/// The registers that compute the place where elements are visited in an order:
/// `number = load order[job]; padding = number == -1; if padding { return }; index = number`.
#[derive(Clone, Copy)]
struct Numbers {
    number: VarId,
    padding: VarId,
    index: VarId,
}

impl Numbers {
    fn is_part(self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::If { cond, .. } => *cond == self.padding.into(),
            other => other.assigns().iter().any(|v| [self.number, self.padding, self.index].contains(v)),
        }
    }
}

impl Place {
    fn of(program: &Program, order: Option<ColumnId>) -> Option<Self> {
        let func = &program.funcs[program.entry.index()];
        let job: Operand = (*func.params.first()?).into();
        match (program.jobs, order) {
            (Jobs::Identity, None) => Some(Self { job, index: job, numbers: None }),
            (Jobs::Reordered, Some(order)) => {
                let number = func.body.iter().find_map(|stmt| match stmt {
                    Stmt::Load { dst, column, row } if *column == order && *row == job => Some(*dst),
                    _ => None,
                })?;
                let made = |wanted: Op, with: &[Operand]| {
                    func.body.iter().find_map(|stmt| match stmt {
                        Stmt::Let { dst, op, args } if *op == wanted && args[..] == *with => Some(*dst),
                        _ => None,
                    })
                };
                let padding = made(Op::ICmp(Cmp::Eq), &[number.into(), Operand::I32(-1)])?;
                let index = made(Op::Widen, &[number.into()])?;
                let leaves = |stmt: &Stmt| {
                    matches!(stmt, Stmt::If { cond, then, otherwise }
                        if *cond == padding.into() && otherwise.is_empty()
                            && matches!(&then[..], [Stmt::Return(values)] if values.is_empty()))
                };
                let (mut reads, mut assigned) = ([0; 2], 0);
                walk(&func.body, &mut |stmt| {
                    stmt.reads(|operand| {
                        reads[0] += u32::from(operand == number.into());
                        reads[1] += u32::from(operand == padding.into());
                    });
                    assigned += stmt.assigns().iter().filter(|v| [number, padding, index].contains(v)).count();
                });
                let known = reads == [2, 1] && assigned == 3 && func.body.iter().any(leaves);
                let numbers = Numbers { number, padding, index };
                known.then_some(Self { job, index: index.into(), numbers: Some(numbers) })
            }
            _ => None,
        }
    }

    /// Whether the program uses the place only to load the element.
    fn is_nothing(&self, program: &Program, elements: ColumnId) -> bool {
        let mut nothing = true;
        for (at, func) in program.funcs.iter().enumerate() {
            let is_entry = at == program.entry.index();
            walk(&func.body, &mut |stmt| {
                let mut others = 0;
                stmt.reads(|operand| others += u32::from(is_entry && (operand == self.index || operand == self.job)));
                nothing &= match stmt {
                    Stmt::Begin { index, .. } => is_entry && *index == self.index,
                    Stmt::Load { column, row, .. } if *column == elements => is_entry && *row == self.index,
                    Stmt::Let { op: Op::Ctx(Ctx::Index | Ctx::Slot), .. } => false,
                    stmt if self.numbers.is_some_and(|numbers| is_entry && numbers.is_part(stmt)) => true,
                    _ => others == 0,
                };
            });
        }
        nothing
    }
}

fn replace(body: &mut [Stmt], old: Operand, new: Operand) {
    for stmt in body {
        stmt.reads_mut(|operand| {
            if *operand == old {
                *operand = new;
            }
        });
        stmt.bodies_mut().into_iter().flatten().for_each(|inner| replace(inner, old, new));
    }
}

/// Makes the element's row the element itself.
fn load(body: &mut [Stmt], elements: ColumnId, row: VarId) {
    for stmt in body {
        if let Stmt::Load { dst, column, .. } = stmt
            && *column == elements
        {
            *stmt = Stmt::Let { dst: *dst, op: Op::Narrow, args: vec![row.into()] };
        }
        stmt.bodies_mut().into_iter().flatten().for_each(|inner| load(inner, elements, row));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::build::Builder;
    use crate::ir::testing::{INTS, OVERFLOW, REFS, SPEED, shell};
    use crate::ir::{CheckedOp, verify};

    const CARS: Space = Space::Class { hierarchy: 0, first: 0, last: 2 };
    const ORDER: ColumnId = ColumnId(6);

    /// The program over cars after this pass. `body` is given the element's index and its row.
    fn after(jobs: Jobs, body: impl FnOnce(&mut Builder, Operand, Operand)) -> (Program, Option<ParamId>) {
        let mut b = Builder::new("entry".into(), Vec::new());
        let [job, tick, _] = [(); 3].map(|()| Operand::Var(b.param(Scalar::I64, None)));
        let index = if jobs == Jobs::Identity {
            job
        } else {
            let number = b.load(Scalar::I32, ORDER, job);
            let padding = b.icmp(Cmp::Eq, number, Operand::I32(-1));
            b.when(padding, |b| b.push(Stmt::Return(vec![])));
            b.i64(Op::Widen, &[number])
        };
        b.push(Stmt::Begin { index, tick, check: true });
        let row = b.load(Scalar::I32, REFS, index);
        body(&mut b, index, row);
        b.push(Stmt::Return(vec![]));
        let mut program = shell(vec![b.finish()]);
        program.jobs = jobs;
        program.columns[REFS.index()].refers = Some(CARS);
        let mut order = program.columns[REFS.index()].clone();
        (order.name, order.space, order.refers, order.written) = ("order".into(), Space::Job, None, false);
        program.columns.push(order);
        verify::verify(&program).unwrap_or_else(|e| panic!("{e}"));
        let first = whole(&mut program, REFS, (jobs == Jobs::Reordered).then_some(ORDER));
        verify::verify(&program).unwrap_or_else(|e| panic!("{e}"));
        (program, first)
    }

    fn speeds(b: &mut Builder, row: Operand) {
        let speed = b.load(Scalar::F64, SPEED, row);
        let more = b.f64(Op::FAdd, &[speed, Operand::float(1.0)]);
        b.store(SPEED, row, more);
    }

    #[test]
    fn jobs_are_rows_where_nothing_but_the_element_depends_on_its_place() {
        for jobs in [Jobs::Identity, Jobs::Reordered] {
            let (program, first) = after(jobs, |b, _, row| speeds(b, row));
            let mut loads = Vec::new();
            walk(&program.funcs[0].body, &mut |stmt| {
                if let Stmt::Load { column, .. } = stmt {
                    loads.push(*column);
                }
            });
            assert_eq!((program.jobs, loads), (Jobs::Identity, vec![SPEED]));
            assert_eq!(first, Some(ParamId::new(4)));
            let read = |column: ColumnId| program.columns[column.index()].read;
            assert_eq!(
                (read(REFS), read(ORDER)),
                (false, jobs == Jobs::Identity),
                "it is nobody's in the elements' own order"
            );
        }
    }

    #[test]
    fn who_stores_by_the_elements_place_goes_over_elements() {
        let (program, first) = after(Jobs::Reordered, |b, index, row| {
            speeds(b, row);
            b.store(INTS, index, index);
        });
        assert_eq!((program.jobs, first), (Jobs::Reordered, None));
    }

    #[test]
    fn who_may_raise_goes_over_elements_for_the_first_in_their_order_is_told() {
        let (_, first) = after(Jobs::Identity, |b, _, row| {
            let n = b.i64(Op::Widen, &[row]);
            let n = b.checked(CheckedOp::Add, Operand::I64(7), n, OVERFLOW);
            b.store(INTS, n, n);
            speeds(b, row);
        });
        assert_eq!(first, None);
    }

    #[test]
    fn who_draws_or_asks_for_the_index_goes_over_elements() {
        let (_, first) = after(Jobs::Identity, |b, _, row| {
            let index = b.i64(Op::Ctx(Ctx::Index), &[]);
            let index = b.f64(Op::IntToFloat, &[index]);
            b.store(SPEED, row, index);
        });
        assert_eq!(first, None);
    }
}
