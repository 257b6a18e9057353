//! Checks that a program is well formed. Runs after lowering and after every pass in debug builds and tests, and in
//! every interpreter run. A backend may rely on all of it.
//!
//! # What well formed means
//!
//! **References.** Every register, function, label, column, parameter and site that a statement names exists. A label
//! is opened by one `Block` or `Loop` of its function, and only statements inside it break to it.
//!
//! **Types.** Operands and results of each operation have the types that [`Op`] states. `Checked` and `Atomic` are of
//! I64. The condition of an `If` is Bool. The operands of a `Call` and of a `Return` are as the function's signature
//! says.
//!
//! **Registers** are assigned on every path before they are read. Parameters are assigned on entry. After a `Loop` or
//! `Block`, the registers count as assigned that were assigned at every `Break` to it (and at the `Block`'s end). After
//! a `Try`, its exception's registers count as well, if only exceptions lead there.
//!
//! **Control flow.** Nothing follows a `Break`, `Return` or `Trap` in the same list. The end of a function with
//! results is never reached; at the end of one without results it returns.
//!
//! **Calls.** Every cycle of calls has a call with `depth` in it, and its functions are marked `recursive`. The entry
//! is not called.
//!
//! **Columns.** The row of a column is an I32 in class spaces and an I64 in all others. Register and storage types must
//! match: U8 with Bool and I32, U32 with I32, I64 with I64, F64 with F64. A column that is loaded is marked `read`, one
//! that is stored `written`. One that an `Atomic` names (of I64 storage, or F64) is marked both.
//!
//! An I32 in a U8 column is a tag, from 0 to 255. Only a column of ids (U32) says to which space it refers.
//!
//! **Traps.** A site's operands take at most [`TRAP_WORDS`] words, and a `Trap` passes exactly them. A unit takes none,
//! a union (I32, I64), and every other representation one word of its type. `Checked`, `Atomic` and `Call` pass none,
//! so their sites have none.
//!
//! **Heaps.** A heap is of one class or of one kind of arrays. Its counter is an I64 column (`Single`, for scratch
//! `Slot`), its start and capacity are I64. `Alloc` takes an I64 and gives a row of the heap's space. Its site is a
//! [`super::Trap::Grow`] of that heap and has one Integer as operand.
//!
//! **Elements.** The entry takes three I64 and returns nothing. `Begin` stands only in it. No statement that can end
//! the job, call, or read tick, index or random bits runs before a `Begin`. A program that draws random bits sets
//! `uses_random`.

use super::{
    AtomicOp, Column, ColumnId, Ctx, Extent, Func, FuncId, Heap, HeapId, LabelId, MathFn, Op, Operand, Param, ParamId,
    Program, Scalar, SiteId, Space, Stmt, Storage, TRAP_WORDS, Trap, UniformStride, VarId, walk,
};
use crate::error::{Error, Result};
use crate::types::Repr;
use std::collections::HashMap;

/// Checks the whole contract above.
///
/// # Errors
/// [`Error::Internal`] that says what is wrong where, with the program as text.
pub fn verify(program: &Program) -> Result<()> {
    verify_after("lowering", program)
}

/// As [`verify`]; `stage` is the name of the stage that made the program.
///
/// # Errors
/// As [`verify`].
pub fn verify_after(stage: &'static str, program: &Program) -> Result<()> {
    check_program(program).map_err(|detail| Error::Internal { stage, detail: format!("{detail}\n\n{program}") })
}

/// As [`verify`], without the program's text.
///
/// # Errors
/// What is wrong, and where.
pub fn check(program: &Program) -> std::result::Result<(), String> {
    check_program(program)
}

/// For each loop of a function: which registers are assigned on every path to it. None where no path leads to it.
/// Of a function that is not well formed, only the loops before the first mistake are in it.
pub fn assigned_before_loops(program: &Program, func: &Func) -> HashMap<LabelId, Option<Vec<bool>>> {
    let mut loops = HashMap::new();
    let is_entry = program.funcs.get(program.entry.index()).is_some_and(|entry| std::ptr::eq(entry, func));
    // What is wrong with the program, if anything, [`verify`] says.
    let _ = Checker { loops: Some(&mut loops), ..Checker::new(program, func, is_entry) }.run();
    loops
}

type Check<T = ()> = std::result::Result<T, String>;

/// The types of the operands that a representation takes in a trap.
pub fn trap_scalars(repr: Repr) -> &'static [Scalar] {
    match repr {
        Repr::Unit(_) => &[],
        Repr::Bool => &[Scalar::Bool],
        Repr::Int | Repr::Sym | Repr::Str | Repr::Array(_) => &[Scalar::I64],
        Repr::Float => &[Scalar::F64],
        Repr::Ref(_) => &[Scalar::I32],
        Repr::Union => &[Scalar::I32, Scalar::I64],
    }
}

fn check_program(program: &Program) -> Check {
    let entry = program.funcs.get(program.entry.index()).ok_or("the entry function does not exist")?;
    let tys: Vec<Option<Scalar>> = entry.params.iter().map(|p| Some(entry.vars.get(p.index())?.ty)).collect();
    if tys != [Some(Scalar::I64); 3] || !entry.results.is_empty() {
        return Err("the entry takes three I64 and returns nothing".into());
    }
    for (i, site) in program.sites.iter().enumerate() {
        if site.operands.iter().map(|r| trap_scalars(*r).len()).sum::<usize>() > TRAP_WORDS {
            return Err(format!("s{i} carries more than {TRAP_WORDS} words"));
        }
    }
    let is_same = |(i, param): (usize, &Param)| {
        let earlier = |same: ParamId| {
            let first = program.params[..i].get(same.index());
            param.ty == Scalar::I64 && first.is_some_and(|first| first.ty == Scalar::I64 && first.same.is_none())
        };
        param.same.is_none_or(earlier)
    };
    if let Some((i, _)) = program.params.iter().enumerate().find(|param| !is_same(*param)) {
        return Err(format!("p{i} is the same as no earlier Integer"));
    }
    if let Some(column) = program.columns.iter().find(|c| c.refers.is_some() && c.storage != Storage::U32) {
        return Err(format!("{:?} does not hold ids", column.name));
    }
    if let Some(column) =
        program.columns.iter().find(|c| c.ranged.is_some() && (c.written || c.storage != Storage::I64))
    {
        return Err(format!("{:?} does not stay in its range", column.name));
    }
    let is_float = |column: &&Column| !column.roundable || column.storage == Storage::F64;
    if let Some(column) = program.columns.iter().find(|column| !is_float(column)) {
        return Err(format!("{:?} holds no Floats of 64 bits", column.name));
    }
    let are_marks = |column: &Column, marks: ColumnId| {
        let marks = program.columns.get(marks.index());
        let fits = |marks: &Column| marks.storage == Storage::U8 && marks.space == column.space;
        column.storage == Storage::F32 && marks.is_some_and(fits)
    };
    if let Some(column) = program.columns.iter().find(|c| c.marks.is_some_and(|marks| !are_marks(c, marks))) {
        return Err(format!("{:?} has no marks", column.name));
    }
    program.heaps.iter().enumerate().try_for_each(|(i, heap)| {
        check_heap(program, heap).map_err(|detail| format!("{}: {detail}", HeapId::new(i)))
    })?;
    program.strides.iter().try_for_each(|stride| check_stride(program, stride))?;
    program.extents.iter().try_for_each(|Extent { column, rows }| {
        let space = program.columns.get(column.index()).map(|c| c.space);
        let wide = program.params.get(rows.index()).map(|p| p.ty) == Some(Scalar::I64);
        let holds = matches!(space, Some(Space::Array(_))) && wide;
        if holds { Ok(()) } else { Err(format!("{column} has no extent {rows}")) }
    })?;
    check_recursion(program)?;
    for (i, func) in program.funcs.iter().enumerate() {
        Checker::new(program, func, program.entry.index() == i)
            .run()
            .map_err(|detail| format!("in {} {:?}: {detail}", FuncId::new(i), func.name))?;
    }
    Ok(())
}

fn check_heap(program: &Program, heap: &Heap) -> Check {
    match heap.space {
        Space::Class { first, last, .. } if first == last => {}
        Space::Array(_) | Space::Bytes => {}
        other => return Err(format!("new rows of {other}")),
    }
    for param in [heap.start, heap.capacity] {
        if program.params.get(param.index()).map(|p| p.ty) != Some(Scalar::I64) {
            return Err(format!("{param} is no I64"));
        }
    }
    let taken = program.columns.get(heap.taken.index()).ok_or("its counter does not exist")?;
    let space = if heap.scratch { Space::Slot } else { Space::Single };
    if taken.space == space && taken.storage == Storage::I64 {
        Ok(())
    } else {
        Err(format!("its counter is no column of i64 in {space}"))
    }
}

fn check_stride(program: &Program, stride: &UniformStride) -> Check {
    let column = program.columns.get(stride.column().index()).ok_or("a uniform stride in no column")?;
    let (holds, params) = match *stride {
        UniformStride::Arrays { start, step, length, .. } => {
            (column.storage == Storage::I64, vec![start, step, length])
        }
        UniformStride::References { start, .. } => {
            (column.storage == Storage::U32 && column.refers.is_some(), vec![start])
        }
        UniformStride::Constants { .. } => (column.storage == Storage::I64, vec![]),
    };
    if !holds || column.written {
        return Err(format!("{:?} is no column of arrays or references that is only read", column.name));
    }
    let wide = |param: ParamId| program.params.get(param.index()).map(|p| p.ty) == Some(Scalar::I64);
    match params.into_iter().find(|param| !wide(*param)) {
        Some(param) => Err(format!("{param} is no I64")),
        None => Ok(()),
    }
}

/// Calls without `depth` form no cycle, and functions on a cycle are marked.
fn check_recursion(program: &Program) -> Check {
    let n = program.funcs.len();
    let mut plain = vec![vec![false; n]; n];
    let mut any = plain.clone();
    for (i, func) in program.funcs.iter().enumerate() {
        let mut missing = false;
        walk(&func.body, &mut |s| {
            if let Stmt::Call { func: callee, depth, .. } = s {
                match any[i].get_mut(callee.index()) {
                    Some(cell) => {
                        *cell = true;
                        plain[i][callee.index()] |= depth.is_none();
                    }
                    None => missing = true,
                }
            }
        });
        if missing {
            return Err(format!("{} calls a function that does not exist", FuncId::new(i)));
        }
        if any[i].get(program.entry.index()) == Some(&true) {
            return Err(format!("{} calls the entry", FuncId::new(i)));
        }
    }
    for edges in [&mut plain, &mut any] {
        for via in 0..n {
            let onward = edges[via].clone();
            for reached in edges.iter_mut().filter(|reached| reached[via]) {
                reached.iter_mut().zip(&onward).for_each(|(reached, onward)| *reached |= onward);
            }
        }
    }
    for i in 0..n {
        if plain[i][i] {
            return Err(format!("{} calls itself without a depth site", FuncId::new(i)));
        }
        if any[i][i] && !program.funcs[i].recursive {
            return Err(format!("{} calls itself and is not marked recursive", FuncId::new(i)));
        }
    }
    Ok(())
}

/// The set of registers that are assigned at a point; None if the point is not reachable. The slot after the last
/// register says whether a `Begin` was executed.
type State = Option<Vec<bool>>;

fn meet(a: &mut State, b: State) {
    match (a.as_mut(), b) {
        (_, None) => {}
        (None, b) => *a = b,
        (Some(a), Some(b)) => a.iter_mut().zip(b).for_each(|(a, b)| *a &= b),
    }
}

struct Checker<'a> {
    program: &'a Program,
    func: &'a Func,
    is_entry: bool,
    state: State,
    /// For each label: whether it was opened. `open` has the states at the breaks to the labels that are open.
    seen: Vec<bool>,
    open: Vec<(LabelId, State)>,
    /// The states at the beginnings of loops, if these are wanted.
    loops: Option<&'a mut HashMap<LabelId, State>>,
}

impl<'a> Checker<'a> {
    fn new(program: &'a Program, func: &'a Func, is_entry: bool) -> Self {
        Self { program, func, is_entry, state: None, seen: vec![false; func.labels], open: Vec::new(), loops: None }
    }

    fn run(mut self) -> Check {
        let mut assigned = vec![false; self.func.vars.len() + 1];
        for param in &self.func.params {
            let slot = assigned.get_mut(param.index()).ok_or(format!("parameter {param} does not exist"))?;
            if std::mem::replace(slot, true) {
                return Err(format!("{param} is two parameters"));
            }
        }
        *assigned.last_mut().expect("one slot more than registers") = !self.is_entry;
        self.state = Some(assigned);
        self.list(&self.func.body)?;
        if self.state.is_some() && !self.func.results.is_empty() {
            return Err("the end of a function with results can be reached".into());
        }
        Ok(())
    }

    fn list(&mut self, body: &[Stmt]) -> Check {
        for (i, stmt) in body.iter().enumerate() {
            self.stmt(stmt)?;
            let ends = matches!(stmt, Stmt::Break(_) | Stmt::Return(_) | Stmt::Trap { .. });
            if ends && i + 1 < body.len() {
                return Err(format!("{:?} follows {stmt:?}", body[i + 1]));
            }
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Check {
        self.stmt_here(stmt).map_err(|detail| match stmt {
            Stmt::If { .. } | Stmt::Block { .. } | Stmt::Loop { .. } | Stmt::Try { .. } => detail,
            simple if detail.ends_with('`') => format!("{detail} in {simple:?}"),
            simple => format!("{detail}: `{simple:?}`"),
        })
    }

    fn stmt_here(&mut self, stmt: &Stmt) -> Check {
        match stmt {
            Stmt::Let { dst, op, args } => {
                let args = args.iter().map(|a| self.read(*a)).collect::<Check<Vec<_>>>()?;
                if matches!(op, Op::Ctx(Ctx::Tick | Ctx::Index | Ctx::Stopped) | Op::Random) {
                    self.begun()?;
                }
                if *op == Op::Random && !self.program.uses_random {
                    return Err("the program does not say that it uses random bits".into());
                }
                let dst_ty = self.assign(*dst)?;
                if !self.op_types(*op, &args, dst_ty) {
                    return Err(format!("{op} takes no {args:?} to {dst_ty}"));
                }
            }
            Stmt::Checked { dst, args, site, .. } => {
                self.begun()?;
                self.wants(args, &[Scalar::I64; 2])?;
                self.bare_site(*site)?;
                if self.assign(*dst)? != Scalar::I64 {
                    return Err("the result is an I64".into());
                }
            }
            Stmt::Load { dst, column, row } => {
                let column = self.column(*column, *row)?;
                if !column.read {
                    return Err("the column is not marked read".into());
                }
                let storage = column.storage;
                let ty = self.assign(*dst)?;
                self.fits(storage, ty)?;
            }
            Stmt::Store { column, row, value } => {
                let column = self.column(*column, *row)?;
                if !column.written {
                    return Err("the column is not marked written".into());
                }
                let storage = column.storage;
                let ty = self.read(*value)?;
                self.fits(storage, ty)?;
            }
            Stmt::Atomic { op, column, row, value, site } => {
                let column = self.column(*column, *row)?;
                let (storage, scalar) = match op {
                    AtomicOp::FAdd => (Storage::F64, Scalar::F64),
                    _ => (Storage::I64, Scalar::I64),
                };
                if !column.written || !column.read || column.storage != storage {
                    return Err(format!("the column is of {storage}, read and written"));
                }
                self.wants(&[*value], &[scalar])?;
                if let Some(site) = site {
                    self.begun()?;
                    self.bare_site(*site)?;
                    if *op != AtomicOp::Add {
                        return Err("only add can overflow".into());
                    }
                }
            }
            Stmt::Meet { dst, value } => {
                self.begun()?;
                self.wants(&[*value], &[Scalar::I64])?;
                if self.assign(*dst)? != Scalar::I64 {
                    return Err("the result is an I64".into());
                }
            }
            Stmt::FetchAdd { dst, column, row, value } => {
                let column = self.column(*column, *row)?;
                if !column.written || !column.read || column.storage != Storage::I64 {
                    return Err("the column is of i64, read and written".into());
                }
                self.wants(&[*value], &[Scalar::I64])?;
                if self.assign(*dst)? != Scalar::I64 {
                    return Err("the result is an I64".into());
                }
            }
            Stmt::Emit { key, value, order, text } => {
                self.begun()?;
                if let Some(text) = text {
                    let column = self.column(*text, Operand::I64(0))?;
                    if column.storage != Storage::U8 || !column.read {
                        return Err("the column is of u8, and read".into());
                    }
                }
                key.map_or(Ok(()), |key| self.wants(&[key], &[Scalar::I64]))?;
                self.wants(&[*value, *order], &[Scalar::I64; 2])?;
            }
            Stmt::KeyPart { code, word } => {
                self.begun()?;
                self.wants(&[*code, *word], &[Scalar::I64; 2])?;
            }
            Stmt::Alloc { dst, heap, count, site } => {
                self.begun()?;
                let space = self.program.heaps.get(heap.index()).ok_or("the heap does not exist")?.space;
                self.wants(&[*count], &[Scalar::I64])?;
                let wanted = if matches!(space, Space::Class { .. }) { Scalar::I32 } else { Scalar::I64 };
                if self.assign(*dst)? != wanted {
                    return Err(format!("the result is an {wanted}"));
                }
                let site = self.program.sites.get(site.index()).ok_or("the site does not exist")?;
                if site.trap != Trap::Grow(*heap) || site.operands != [Repr::Int] {
                    return Err("its site grows another heap".into());
                }
            }
            Stmt::If { cond, then, otherwise } => {
                self.wants(&[*cond], &[Scalar::Bool])?;
                let before = self.state.clone();
                self.list(then)?;
                let after_then = std::mem::replace(&mut self.state, before);
                self.list(otherwise)?;
                meet(&mut self.state, after_then);
            }
            Stmt::Block { label, body } => {
                self.open_label(*label)?;
                self.list(body)?;
                let at_breaks = self.open.pop().and_then(|(_, state)| state);
                meet(&mut self.state, at_breaks);
            }
            Stmt::Loop { label, body } => {
                // A register that is assigned on entry is still assigned at every repetition.
                self.open_label(*label)?;
                if let Some(loops) = &mut self.loops {
                    loops.insert(*label, self.state.clone());
                }
                self.list(body)?;
                self.state = self.open.pop().and_then(|(_, state)| state);
            }
            Stmt::Try { label, body, raised } => {
                let before = self.state.clone();
                self.open_label(*label)?;
                self.list(body)?;
                let at_breaks = self.open.pop().and_then(|(_, state)| state);
                let at_end = std::mem::replace(&mut self.state, before);
                for (i, var) in raised.iter().enumerate() {
                    if self.assign(*var)? != if i == 0 { Scalar::I32 } else { Scalar::I64 } {
                        return Err("an exception is an I32 and I64s".into());
                    }
                }
                meet(&mut self.state, at_breaks);
                meet(&mut self.state, at_end);
            }
            Stmt::Break(label) => {
                let state = self.state.take();
                let open = self.open.iter_mut().find(|(l, _)| l == label);
                let (_, at_breaks) = open.ok_or(format!("{label} is not open here"))?;
                meet(at_breaks, state);
            }
            Stmt::Call { func, args, dsts, depth } => {
                self.begun()?;
                let callee = self.program.funcs.get(func.index()).ok_or("the function does not exist")?;
                let tys: Vec<Scalar> = callee.params.iter().map(|p| callee.vars[p.index()].ty).collect();
                self.wants(args, &tys)?;
                if let Some(site) = depth {
                    self.bare_site(*site)?;
                }
                let results = dsts.iter().map(|d| self.assign(*d)).collect::<Check<Vec<_>>>()?;
                if results != callee.results {
                    return Err(format!("the function returns {:?}", callee.results));
                }
                if (1..dsts.len()).any(|i| dsts[..i].contains(&dsts[i])) {
                    return Err("one register takes two results".into());
                }
            }
            Stmt::Return(values) => {
                self.wants(values, &self.func.results)?;
                self.state = None;
            }
            Stmt::Trap { site, operands } => {
                self.begun()?;
                let site = self.program.sites.get(site.index()).ok_or("the site does not exist")?;
                let tys: Vec<Scalar> = site.operands.iter().flat_map(|r| trap_scalars(*r)).copied().collect();
                self.wants(operands, &tys)?;
                self.state = None;
            }
            Stmt::Place(_) => {}
            Stmt::Poll => self.begun()?,
            Stmt::Begin { index, tick, .. } => {
                if !self.is_entry {
                    return Err("Begin outside the entry".into());
                }
                self.wants(&[*index, *tick], &[Scalar::I64; 2])?;
                if let Some(begun) = self.state.as_mut().and_then(|s| s.last_mut()) {
                    *begun = true;
                }
            }
        }
        Ok(())
    }

    fn open_label(&mut self, label: LabelId) -> Check {
        let seen = self.seen.get_mut(label.index()).ok_or(format!("{label} is not a label of the function"))?;
        if std::mem::replace(seen, true) {
            return Err(format!("{label} is opened twice"));
        }
        self.open.push((label, None));
        Ok(())
    }

    fn begun(&self) -> Check {
        match &self.state {
            Some(state) if state.last() == Some(&false) => Err("no element was begun on some path".into()),
            _ => Ok(()),
        }
    }

    fn read(&self, operand: Operand) -> Check<Scalar> {
        if let Operand::Var(v) = operand {
            if v.index() >= self.func.vars.len() {
                return Err(format!("{v} does not exist"));
            }
            if self.state.as_ref().is_some_and(|s| !s[v.index()]) {
                return Err(format!("{} is not assigned on every path", self.func.var_word(v)));
            }
        }
        Ok(self.func.ty(operand))
    }

    fn assign(&mut self, var: VarId) -> Check<Scalar> {
        let ty = self.func.vars.get(var.index()).ok_or(format!("{var} does not exist"))?.ty;
        if let Some(state) = &mut self.state {
            state[var.index()] = true;
        }
        Ok(ty)
    }

    fn wants(&self, operands: &[Operand], tys: &[Scalar]) -> Check {
        let given = operands.iter().map(|o| self.read(*o)).collect::<Check<Vec<_>>>()?;
        if given == tys { Ok(()) } else { Err(format!("takes {tys:?} and is given {given:?}")) }
    }

    fn bare_site(&self, site: SiteId) -> Check {
        let site = self.program.sites.get(site.index()).ok_or("the site does not exist")?;
        if site.operands.iter().all(|r| trap_scalars(*r).is_empty()) {
            Ok(())
        } else {
            Err("the site has operands that are not passed".into())
        }
    }

    fn column(&self, column: ColumnId, row: Operand) -> Check<&'a super::Column> {
        let column = self.program.columns.get(column.index()).ok_or("the column does not exist")?;
        let wanted = if matches!(column.space, Space::Class { .. }) { Scalar::I32 } else { Scalar::I64 };
        self.wants(&[row], &[wanted])?;
        Ok(column)
    }

    fn fits(&self, storage: Storage, ty: Scalar) -> Check {
        let fits = match storage {
            Storage::U8 => matches!(ty, Scalar::Bool | Scalar::I32 | Scalar::I64),
            Storage::U32 => ty == Scalar::I32,
            Storage::I32 | Storage::I64 => ty == Scalar::I64,
            Storage::F32 | Storage::F64 => ty == Scalar::F64,
        };
        if fits { Ok(()) } else { Err(format!("a {storage} column holds no {ty}")) }
    }

    fn op_types(&self, op: Op, args: &[Scalar], dst: Scalar) -> bool {
        use Scalar::{Bool, F64, I32, I64};
        let int = |ty| matches!(ty, I32 | I64);
        match op {
            Op::Copy => args == [dst],
            Op::Add | Op::Sub | Op::Mul | Op::Div | Op::Rem | Op::UDiv | Op::URem | Op::Shl | Op::Shr | Op::UShr => {
                int(dst) && args == [dst; 2]
            }
            Op::And | Op::Or | Op::Xor => (int(dst) || dst == Bool) && args == [dst; 2],
            Op::MulHi | Op::UMulHi => dst == I64 && args == [I64; 2],
            Op::MulMod | Op::AddMod => dst == I64 && args == [I64; 3],
            Op::Clz => dst == I64 && args == [I64],
            Op::ICmp(super::Cmp::Eq | super::Cmp::Ne) => {
                dst == Bool && matches!(args, [a, b] if a == b && (int(*a) || *a == Bool))
            }
            Op::ICmp(_) | Op::UCmp(_) => dst == Bool && matches!(args, [a, b] if a == b && int(*a)),
            Op::FCmp(_) => dst == Bool && args == [F64; 2],
            Op::FAdd | Op::FSub | Op::FMul | Op::FDiv | Op::FRem | Op::FNextAfter | Op::FCopySign => {
                dst == F64 && args == [F64; 2]
            }
            Op::FNeg
            | Op::FAbs
            | Op::FSqrt
            | Op::FFloor
            | Op::FCeil
            | Op::FTrunc
            | Op::FRint
            | Op::FRound
            | Op::FSingle => dst == F64 && args == [F64],
            Op::Math(MathFn::Ldexp) => dst == F64 && args == [F64, I64],
            Op::Math(function) => dst == F64 && args.len() == function.arity() && args.iter().all(|a| *a == F64),
            Op::IntToFloat | Op::FloatFromBits => dst == F64 && args == [I64],
            Op::FloatToInt | Op::FloatBits => dst == I64 && args == [F64],
            Op::SingleBits => dst == I32 && args == [F64],
            Op::Widen => dst == I64 && args == [I32],
            Op::Narrow => dst == I32 && args == [I64],
            Op::BoolToInt => int(dst) && args == [Bool],
            Op::Not => dst == Bool && args == [Bool],
            Op::Select => args == [Bool, dst, dst],
            Op::Ctx(Ctx::Stopped) => dst == Bool && args.is_empty(),
            Op::Ctx(_) | Op::Random => dst == I64 && args.is_empty(),
            Op::Param(p) => args.is_empty() && self.program.params.get(p.index()).is_some_and(|p| p.ty == dst),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::verify;
    use crate::ir::build::Builder;
    use crate::ir::testing::{DOMAIN, INPUT, OUT, OVERFLOW, SPEED, STACK, ZERO, program, with_functions};
    use crate::ir::{
        AtomicOp, CheckedOp, Cmp, ColumnId, FuncId, LabelId, Op, Operand, Program, Scalar, SiteId, Stmt, VarId,
    };

    fn accepts(program: &Program) {
        if let Err(error) = verify(program) {
            panic!("{error}");
        }
    }

    fn refuses(program: &Program, because: &str) {
        let text = verify(program).expect_err("the program is malformed").to_string();
        let first = text.lines().next().unwrap_or_default();
        assert!(first.contains(because), "{first}");
        assert!(text.contains("entry func"), "the program is shown");
    }

    #[test]
    fn a_register_is_assigned_on_every_path() {
        let partly = |both: bool| {
            program(|b, index| {
                let x = b.temp(Scalar::I64);
                let cond = b.icmp(Cmp::Lt, index, Operand::I64(3));
                b.branch(cond, |b| b.set(x, index), |b| if both { b.set(x, index) } else { b.push(Stmt::Poll) });
                b.store(INPUT, index, x.into());
            })
        };
        accepts(&partly(true));
        refuses(&partly(false), "v4 is not assigned on every path");
    }

    #[test]
    fn a_branch_that_ends_does_not_count() {
        accepts(&program(|b, index| {
            let x = b.temp(Scalar::I64);
            let cond = b.icmp(Cmp::Lt, index, Operand::I64(3));
            b.branch(cond, |b| b.set(x, index), |b| b.trap(ZERO, vec![]));
            b.store(INPUT, index, x.into());
        }));
    }

    #[test]
    fn behind_a_loop_counts_what_every_break_saw() {
        let looped = |early: bool| {
            program(|b, index| {
                let x = b.temp(Scalar::I64);
                b.repeat(|b, done| {
                    let cond = b.icmp(Cmp::Lt, index, Operand::I64(3));
                    if early {
                        b.when(cond, |b| b.push(Stmt::Break(done)));
                    }
                    b.set(x, index);
                    b.when(cond, |b| b.push(Stmt::Break(done)));
                });
                b.store(INPUT, index, x.into());
            })
        };
        accepts(&looped(false));
        refuses(&looped(true), "not assigned on every path");
    }

    #[test]
    fn types_of_operations() {
        let with = |op: Op, ty: Scalar, args: &[Operand]| {
            program(|b, _| {
                b.op(ty, op, args);
            })
        };
        accepts(&with(Op::Add, Scalar::I64, &[Operand::I64(1), Operand::I64(2)]));
        accepts(&with(Op::Add, Scalar::I32, &[Operand::I32(1), Operand::I32(2)]));
        refuses(&with(Op::Add, Scalar::I64, &[Operand::I64(1), Operand::I32(2)]), "add takes no [I64, I32] to i64");
        refuses(&with(Op::FAdd, Scalar::F64, &[Operand::float(1.0), Operand::I64(2)]), "fadd takes no");
        refuses(&with(Op::ICmp(Cmp::Lt), Scalar::Bool, &[Operand::Bool(true); 2]), "icmp.lt takes no");
        accepts(&with(Op::ICmp(Cmp::Eq), Scalar::Bool, &[Operand::Bool(true); 2]));
        refuses(&with(Op::Select, Scalar::I64, &[Operand::Bool(true), Operand::I64(2), Operand::I32(1)]), "select");
        refuses(&with(Op::Param(crate::ir::ParamId(9)), Scalar::I64, &[]), "param p9 takes no");
        refuses(&with(Op::Random, Scalar::I64, &[]), "random bits");
    }

    #[test]
    fn rows_and_values_fit_their_column() {
        let id = Operand::I32(1);
        accepts(&program(|b, _| b.store(SPEED, id, Operand::float(1.0))));
        refuses(&program(|b, index| b.store(SPEED, index, Operand::float(1.0))), "takes [I32] and is given [I64]");
        refuses(&program(|b, index| b.store(OUT, index, Operand::I64(1))), "a f64 column holds no i64");
        refuses(&program(|b, index| b.store(ColumnId(77), index, index)), "the column does not exist");
        let mut unmarked = program(|b, index| b.store(OUT, index, Operand::float(1.0)));
        unmarked.columns[OUT.index()].written = false;
        refuses(&unmarked, "not marked written");
    }

    #[test]
    fn nothing_follows_a_terminator() {
        let mut bad = program(|b, _| b.trap(ZERO, vec![]));
        bad.funcs[0].body.push(Stmt::Poll);
        refuses(&bad, "follows");
    }

    #[test]
    fn labels_are_open_and_unique() {
        refuses(&program(|b, _| b.push(Stmt::Break(LabelId(0)))), "L0 is not open here");
        let twice = |b: &mut Builder, _| {
            let label = b.label();
            b.push(Stmt::Block { label, body: vec![] });
            b.push(Stmt::Block { label, body: vec![] });
        };
        refuses(&program(twice), "L0 is opened twice");
        refuses(&program(|b, _| b.push(Stmt::Block { label: LabelId(5), body: vec![] })), "not a label");
    }

    #[test]
    fn sites_get_the_words_they_describe() {
        accepts(&program(|b, index| b.trap(DOMAIN, vec![index])));
        refuses(&program(|b, _| b.trap(DOMAIN, vec![])), "takes [I64] and is given []");
        refuses(&program(|b, _| b.trap(SiteId(50), vec![])), "the site does not exist");
        refuses(
            &program(|b, index| {
                b.checked(CheckedOp::Add, index, index, DOMAIN);
            }),
            "operands that are not passed",
        );
        let mut same = program(|_, _| {});
        same.params.push(crate::ir::Param::new("again", Scalar::I64));
        let last = same.params.len() - 1;
        same.params[last].same = Some(crate::ir::ParamId(0));
        accepts(&same);
        same.params[0].same = Some(crate::ir::ParamId::new(last));
        refuses(&same, "is the same as no earlier Integer");
        let mut changing = program(|_, _| {});
        changing.columns[0].ranged = Some(crate::ir::AssumedRows::Signed);
        refuses(&changing, "does not stay in its range");
        let mut wide = program(|_, _| {});
        wide.sites[0].operands = vec![crate::types::Repr::Union; 3];
        refuses(&wide, "more than 4 words");
    }

    #[test]
    fn calls_match_signatures_and_cycles_count_their_depth() {
        let callee = |recurse: Option<Option<SiteId>>, marked: bool| {
            let mut b = Builder::new("callee".into(), vec![Scalar::F64]);
            let x = b.param(Scalar::F64, None);
            if let Some(depth) = recurse {
                b.call(FuncId(1), vec![x.into()], &[Scalar::F64], depth);
            }
            b.push(Stmt::Return(vec![x.into()]));
            let mut func = b.finish();
            func.recursive = marked;
            func
        };
        let calls = |func, arg: Operand| {
            with_functions(vec![func], |b, _| {
                b.call(FuncId(1), vec![arg], &[Scalar::F64], None);
            })
        };
        let one = Operand::float(1.0);
        accepts(&calls(callee(None, false), one));
        refuses(&calls(callee(None, false), Operand::I64(1)), "takes [F64] and is given [I64]");
        accepts(&calls(callee(Some(Some(STACK)), true), one));
        refuses(&calls(callee(Some(None), true), one), "calls itself without a depth site");
        refuses(&calls(callee(Some(Some(STACK)), false), one), "not marked recursive");
    }

    #[test]
    fn functions_with_results_return() {
        let b = Builder::new("callee".into(), vec![Scalar::F64]);
        refuses(&with_functions(vec![b.finish()], |_, _| {}), "the end of a function with results");
    }

    #[test]
    fn the_entry_begins_before_it_can_stop() {
        let mut bad = program(|_, _| {});
        bad.funcs[0].body.insert(0, Stmt::Poll);
        refuses(&bad, "no element was begun");
        let mut bad = program(|_, _| {});
        bad.funcs[0].params.pop();
        refuses(&bad, "the entry takes three I64");
        let unknown = program(|b, _| {
            b.push(Stmt::Let { dst: VarId(99), op: Op::Copy, args: vec![Operand::I64(1)] });
        });
        refuses(&unknown, "v99 does not exist");
    }

    #[test]
    fn only_atomic_adds_overflow() {
        let atomic = |op| {
            program(|b, index| {
                b.push(Stmt::Atomic { op, column: INPUT, row: index, value: index, site: Some(OVERFLOW) });
            })
        };
        accepts(&atomic(AtomicOp::Add));
        refuses(&atomic(AtomicOp::Max), "only add can overflow");
    }
}
