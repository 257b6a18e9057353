//! Scalar replacement: an object that never leaves a function becomes registers, one for each column. An array of
//! constant length becomes registers, too, one for each element.
//!
//! Fires for a group of registers that only hold ids of rows that the function itself allocates. Their only uses are
//! loads and stores of the rows' columns, and copies to each other. The row is then never allocated. Of an array, all
//! indices must be constants ([`views`]).
//!
//! A copy of an id is a second name of one object; a copy of its registers is a second object. The two behave alike as
//! long as the program does not store through one name while it may still read through another. [`Aliases`] looks for
//! such stores. A store right after the allocation, before the id is copied, is always fine. So values that `new` makes
//! and that never change pay nothing. A register that is assigned once, from one that is assigned once, is no second
//! name: it holds what the other holds wherever it is read ([`Roots`]).
//!
//! An object that leaves the function at its end is a row there alone ([`sinking`]).
//!
//! Not here: ids that go through calls that were not inlined. The pass runs in rounds: an object whose id is stored in
//! a field of another can only become registers once the other has.

mod sinking;
mod views;

use super::loops::Counts;
use super::{Pass, dce, gvn};
use crate::ir::{Column, ColumnId, Func, HeapId, LabelId, Op, Operand, Program, Scalar, Space, Stmt, Var, VarId, walk};
use sinking::Maker;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use views::{Views, length_of};

pub const PASS: Pass = Pass { name: "scalar_replacement", description: "objects that stay inside are registers", run };

/// The most fields of a group; more would not fit into registers.
const MAX_FIELDS: usize = 24;
/// Rounds. Each round replaces what the round before made possible.
const ROUNDS: usize = 12;
/// How many groups of objects of a function are made where they leave it.
const SUNK: usize = 12;

fn run(mut program: Program) -> Program {
    let spaces: Vec<Space> = program.heaps.iter().map(|h| h.space).collect();
    let clean = |program| (dce::PASS.run)((gvn::PASS.run)(program));
    if improve_all(&mut program, &spaces) {
        program = clean(program);
    }
    for _ in 0..SUNK {
        let Program { funcs, columns, .. } = &mut program;
        let mut sunk = false;
        for func in funcs {
            sunk |= sink(func, columns, &spaces);
        }
        if !sunk {
            break;
        }
        // what it held may be registers now
        improve_all(&mut program, &spaces);
        program = clean(program);
    }
    program
}

fn improve_all(program: &mut Program, spaces: &[Space]) -> bool {
    let mut improved = false;
    for func in &mut program.funcs {
        for _ in 0..ROUNDS {
            if !improve(func, &program.columns, spaces) {
                break;
            }
            improved = true;
        }
    }
    improved
}

fn allocates(func: &Func) -> bool {
    let mut allocates = false;
    walk(&func.body, &mut |s| allocates |= matches!(s, Stmt::Alloc { .. }));
    allocates
}

/// Replaces objects by registers where possible. Returns whether any was replaced.
fn improve(func: &mut Func, columns: &[Column], spaces: &[Space]) -> bool {
    if !allocates(func) {
        return false;
    }
    let counts = Counts::of(func);
    let rows = new_rows(func, &counts);
    let mut body = std::mem::take(&mut func.body);
    name_last(&mut body, &rows);
    func.body = body;
    let views = Views::of(func, spaces);
    let roots = Roots::of(func, &views, &counts);
    let groups = Groups::of(func, columns, spaces, &views);
    let mut found = false;
    for group in groups.sound(func, &roots, |group| group.left == 0) {
        group.replace(func, &views, &roots);
        found = true;
    }
    found
}

/// Makes objects of one group where they leave the function, and keeps them in registers before. Returns whether there
/// is such a group.
fn sink(func: &mut Func, columns: &[Column], spaces: &[Space]) -> bool {
    if !allocates(func) {
        return false;
    }
    let counts = Counts::of(func);
    let views = Views::of(func, spaces);
    let roots = Roots::of(func, &views, &counts);
    let groups = Groups::of(func, columns, spaces, &views);
    let fits = |g: &Group| g.left > 0 && g.may_leave(func, &views) && g.is_worth_sinking(func);
    let sound = groups.sound(func, &roots, fits);
    // First what nothing else of these holds: what it holds may then never leave.
    let held = |group: &&Group| sound.iter().any(|holder| group.is_put_into(holder, func));
    let Some(group) = sound.iter().find(|group| !held(group)).or(sound.first()) else { return false };
    group.replace(func, &views, &roots);
    true
}

/// The registers that are assigned once, a new row or the word of a new array.
fn new_rows(func: &Func, counts: &Counts) -> HashSet<VarId> {
    let mut rows = HashSet::new();
    walk(&func.body, &mut |stmt| {
        let (dst, is_row) = match stmt {
            Stmt::Alloc { dst, .. } => (dst, true),
            Stmt::Let { dst, op: Op::Copy | Op::Widen | Op::Narrow | Op::Shl | Op::Or | Op::Add, args } => {
                (dst, matches!(args[0], Operand::Var(from) if rows.contains(&from)))
            }
            _ => return,
        };
        if is_row && counts.assigned(*dst) == 1 {
            rows.insert(*dst);
        }
    });
    rows
}

/// Gives a new row its further name after its first stores, not before: they are then stores through its only name.
fn name_last(body: &mut [Stmt], rows: &HashSet<VarId>) {
    let is_row = |operand: &Operand| matches!(operand, Operand::Var(v) if rows.contains(v));
    for at in (0..body.len()).rev() {
        body[at].bodies_mut().into_iter().flatten().for_each(|body| name_last(body, rows));
        let Stmt::Let { dst, op: Op::Copy | Op::Widen | Op::Or, args } = &body[at] else { continue };
        if rows.contains(dst) || !matches!(args[..], [row] | [row, Operand::I64(_)] if is_row(&row)) {
            continue;
        }
        let (dst, mut last) = (*dst, at);
        for (next, stmt) in body.iter().enumerate().skip(at + 1) {
            let mut uses = stmt.assigns().contains(&dst);
            stmt.reads(|operand| uses |= operand == dst.into());
            if uses || !matches!(stmt, Stmt::Let { .. } | Stmt::Load { .. } | Stmt::Store { .. }) {
                break;
            }
            if matches!(stmt, Stmt::Store { row, .. } if is_row(row)) {
                last = next;
            }
        }
        body[at..=last].rotate_left(1);
    }
}

/// A field of a row: its column, and the distance from the row to the row that has it. Fields of the row itself have 0.
type Field = (ColumnId, i64);

/// Registers that may hold the same ids.
#[derive(Default)]
struct Group {
    vars: BTreeSet<VarId>,
    heap: Option<HeapId>,
    /// The registers have a use that only a row can serve.
    broken: bool,
    /// How many stores put an id into a column.
    left: usize,
    /// The fields that are stored.
    stored: BTreeSet<Field>,
    /// The fields that are loaded or stored, with the type of their values.
    fields: BTreeMap<Field, Scalar>,
}

struct Groups<'a> {
    func: &'a Func,
    columns: &'a [Column],
    spaces: &'a [Space],
    views: &'a Views,
    /// By register: the number of its group.
    of: Vec<usize>,
    all: Vec<Group>,
}

/// Whether the result of an operation is an id that it was given, in one width or another. If so, the arguments that
/// may be the id.
fn passes_on<'a>(views: &Views, dst: VarId, op: Op, args: &'a [Operand]) -> Option<&'a [Operand]> {
    match op {
        Op::Copy | Op::Widen | Op::Narrow => Some(args),
        Op::Select => Some(&args[1..]),
        Op::Shl | Op::Or | Op::UShr | Op::Add => {
            let views = matches!(args[0], Operand::Var(from) if views.has(from) && views.has(dst));
            views.then(|| &args[..1])
        }
        _ => None,
    }
}

/// For registers that always hold what another holds: the register from which that came.
struct Roots(HashMap<VarId, VarId>);

impl Roots {
    /// A definition comes before each use of a register that is assigned once. The definition of the register that it
    /// was made from comes before that. So no repetition of a loop reaches a use between the two.
    fn of(func: &Func, views: &Views, counts: &Counts) -> Self {
        let mut sources = HashMap::new();
        walk(&func.body, &mut |stmt| {
            if let Stmt::Let { dst, op, args } = stmt
                && *op != Op::Select
                && counts.assigned(*dst) == 1
                && let Some([Operand::Var(from)]) = passes_on(views, *dst, *op, args)
                && counts.assigned(*from) == 1
            {
                sources.insert(*dst, *from);
            }
        });
        let roots = sources.keys().map(|var| {
            let mut root = *var;
            while let Some(from) = sources.get(&root) {
                root = *from;
            }
            (*var, root)
        });
        Self(roots.collect())
    }
    fn get(&self, var: VarId) -> VarId {
        self.0.get(&var).copied().unwrap_or(var)
    }
}

impl<'a> Groups<'a> {
    fn of(func: &'a Func, columns: &'a [Column], spaces: &'a [Space], views: &'a Views) -> Self {
        let mut parents: Vec<usize> = (0..func.vars.len()).collect();
        fn find(parents: &mut [usize], mut at: usize) -> usize {
            while parents[at] != at {
                parents[at] = parents[parents[at]];
                at = parents[at];
            }
            at
        }
        let wide = |v: VarId| matches!(func.vars[v.index()].ty, Scalar::I32 | Scalar::I64);
        walk(&func.body, &mut |s| {
            if let Stmt::Let { dst, op, args } = s
                && let Some(sources) = passes_on(views, *dst, *op, args)
                && wide(*dst)
            {
                for arg in sources {
                    if let Operand::Var(v) = arg {
                        let (a, b) = (find(&mut parents, dst.index()), find(&mut parents, v.index()));
                        parents[a] = b;
                    }
                }
            }
        });
        let of: Vec<usize> = (0..func.vars.len()).map(|v| find(&mut parents, v)).collect();
        let mut all: Vec<Group> = (0..func.vars.len()).map(|_| Group::default()).collect();
        for (v, group) in of.iter().enumerate() {
            all[*group].vars.insert(VarId::new(v));
        }
        let mut groups = Self { func, columns, spaces, views, of, all };
        func.params.iter().for_each(|p| groups.group(*p).broken = true);
        views.mixed().for_each(|var| groups.group(var).broken = true);
        walk(&func.body, &mut |s| groups.look(s));
        groups
    }

    fn group(&mut self, v: VarId) -> &mut Group {
        &mut self.all[self.of[v.index()]]
    }

    fn breaks(&mut self, operand: Operand) {
        if let Operand::Var(v) = operand {
            self.group(v).broken = true;
        }
    }

    fn touches(&mut self, row: Operand, column: ColumnId, ty: Scalar) {
        let Operand::Var(v) = row else { return };
        let at = match self.columns[column.index()].space {
            Space::Class { .. } if self.func.ty(row) == Scalar::I32 => Some(0),
            Space::Array(_) => self.views.element(v),
            _ => None,
        };
        let group = self.group(v);
        let Some(at) = at else { return group.broken = true };
        if *group.fields.entry((column, at)).or_insert(ty) != ty {
            group.broken = true;
        }
    }

    fn look(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Alloc { dst, heap, count, .. } => {
                self.breaks(*count);
                let fits = match self.spaces[heap.index()] {
                    Space::Class { .. } => true,
                    _ => self.views.has(*dst),
                };
                let group = self.group(*dst);
                group.broken |= !fits || group.heap.is_some_and(|known| known != *heap);
                group.heap = Some(*heap);
            }
            Stmt::Let { op, args, .. } if length_of(self.views, *op, args).is_some() => {}
            Stmt::Let { dst, op, args } => match passes_on(self.views, *dst, *op, args) {
                // A variable may hold a constant before it holds an id.
                Some(_) => {}
                None => {
                    self.group(*dst).broken = true;
                    args.iter().for_each(|a| self.breaks(*a));
                }
            },
            Stmt::Load { dst, column, row } => {
                self.group(*dst).broken = true;
                self.touches(*row, *column, self.func.vars[dst.index()].ty);
            }
            Stmt::Store { column, row, value } => {
                if let Operand::Var(value) = value {
                    self.group(*value).left += 1;
                }
                self.touches(*row, *column, self.func.ty(*value));
                if let Operand::Var(row) = row {
                    let field = (*column, self.views.element(*row).unwrap_or(0));
                    self.group(*row).stored.insert(field);
                }
            }
            other => {
                other.reads(|o| self.breaks(o));
                other.assigns().iter().for_each(|v| self.breaks((*v).into()));
            }
        }
    }

    /// The groups that may become registers, of those that `wanted` takes.
    fn sound(self, func: &Func, roots: &Roots, wanted: impl Fn(&Group) -> bool) -> Vec<Group> {
        let fits = |g: &Group| g.heap.is_some() && !g.broken && g.fields.len() <= MAX_FIELDS && wanted(g);
        let views = self.views;
        self.all.into_iter().filter(|g| fits(g) && Aliases::allow(func, g, views, roots)).collect()
    }
}

impl Group {
    /// Makes a new register for each register of the group that is a name of its own, and each field.
    fn registers(&self, func: &mut Func, roots: &Roots) -> HashMap<(VarId, Field), VarId> {
        let mut registers = HashMap::new();
        for var in self.vars.iter().filter(|var| roots.get(**var) == **var) {
            for (field, ty) in &self.fields {
                let name = func.vars[var.index()].name.clone();
                func.vars.push(Var { ty: *ty, name });
                registers.insert((*var, *field), VarId::new(func.vars.len() - 1));
            }
        }
        registers
    }

    /// Makes registers of the objects. Those that leave become rows where they do.
    fn replace(&self, func: &mut Func, views: &Views, roots: &Roots) {
        let registers = self.registers(func, roots);
        let maker = if self.left == 0 { None } else { Maker::new(func, self).map(RefCell::new) };
        let mut body = std::mem::take(&mut func.body);
        let replacement = Replacement { group: self, views, roots, registers: &registers, maker };
        replacement.list(&mut body);
        func.body = body;
        func.vars.extend(replacement.maker.map(|maker| maker.into_inner().into_vars()).unwrap_or_default());
    }

    /// Whether one of its objects is stored in one of the holder's.
    fn is_put_into(&self, holder: &Group, func: &Func) -> bool {
        let mut found = false;
        walk(&func.body, &mut |stmt| {
            if let Stmt::Store { row: Operand::Var(row), value: Operand::Var(value), .. } = stmt {
                found |= self.vars.contains(value) && holder.vars.contains(row);
            }
        });
        found
    }
}

fn zero(ty: Scalar) -> Operand {
    match ty {
        Scalar::Bool => Operand::Bool(false),
        Scalar::I32 => Operand::I32(0),
        Scalar::I64 => Operand::I64(0),
        Scalar::F64 => Operand::float(0.0),
    }
}

/// Replaces rows by registers.
struct Replacement<'a> {
    group: &'a Group,
    views: &'a Views,
    roots: &'a Roots,
    registers: &'a HashMap<(VarId, Field), VarId>,
    /// Where objects leave.
    maker: Option<RefCell<Maker>>,
}

impl Replacement<'_> {
    fn has(&self, var: VarId) -> bool {
        self.group.vars.contains(&var)
    }

    /// The register of a field.
    fn register(&self, row: VarId, field: Field) -> Option<VarId> {
        self.registers.get(&(self.roots.get(row), field)).copied()
    }

    fn value(&self, row: Operand, field: Field) -> Operand {
        let register = match row {
            Operand::Var(row) => self.register(row, field),
            _ => None,
        };
        register.map_or_else(|| zero(self.group.fields[&field]), Operand::Var)
    }

    fn field(&self, row: VarId, column: ColumnId) -> Field {
        (column, self.views.element(row).unwrap_or(0))
    }

    fn list(&self, body: &mut Vec<Stmt>) {
        let copy = |dst, value| Stmt::Let { dst, op: Op::Copy, args: vec![value] };
        let mut out = Vec::with_capacity(body.len());
        for mut stmt in std::mem::take(body) {
            stmt.bodies_mut().into_iter().flatten().for_each(|nested| self.list(nested));
            match &stmt {
                Stmt::Alloc { dst, .. } if self.has(*dst) => {
                    for (field, ty) in &self.group.fields {
                        out.extend(self.register(*dst, *field).map(|dst| copy(dst, zero(*ty))));
                    }
                }
                Stmt::Let { dst, .. } if self.has(*dst) && self.roots.get(*dst) != *dst => {}
                Stmt::Let { dst, op, args } if self.has(*dst) => {
                    let sources = passes_on(self.views, *dst, *op, args).unwrap_or_default();
                    let op = if *op == Op::Select { Op::Select } else { Op::Copy };
                    for field in self.group.fields.keys() {
                        let Some(dst) = self.register(*dst, *field) else { continue };
                        let mut args = if op == Op::Select { vec![args[0]] } else { Vec::new() };
                        args.extend(sources.iter().map(|source| self.value(*source, *field)));
                        out.push(Stmt::Let { dst, op, args });
                    }
                }
                Stmt::Let { dst, op, args }
                    if matches!(args.first(), Some(Operand::Var(v)) if self.has(*v))
                        && let Some(length) = length_of(self.views, *op, args) =>
                {
                    out.push(copy(*dst, Operand::I64(length)));
                }
                Stmt::Load { dst, column, row: Operand::Var(row) } if self.has(*row) => {
                    out.push(copy(*dst, self.value((*row).into(), self.field(*row, *column))));
                }
                Stmt::Store { column, row, value: Operand::Var(name) }
                    if let Some(maker) = self.maker.as_ref().filter(|_| self.has(*name)) =>
                {
                    let values = self.group.fields.keys().map(|field| self.value((*name).into(), *field));
                    let values: Vec<Operand> = values.collect();
                    let mut maker = maker.borrow_mut();
                    let value = maker.make(self.group, *name, self.views.word(*name), &values, &mut out);
                    out.push(Stmt::Store { column: *column, row: *row, value });
                }
                Stmt::Store { column, row: Operand::Var(row), value } if self.has(*row) => {
                    out.extend(self.register(*row, self.field(*row, *column)).map(|dst| copy(dst, *value)));
                }
                _ => out.push(stmt),
            }
        }
        *body = out;
    }
}

/// For each register of a group, those that may name the same object.
type Names = BTreeMap<VarId, BTreeSet<VarId>>;

/// Looks for stores through one name of an object while the program may still read another name.
struct Aliases<'a> {
    group: &'a Group,
    views: &'a Views,
    roots: &'a Roots,
    /// By the address of a store statement: the registers that are read after it.
    read_after: HashMap<*const Stmt, BTreeSet<VarId>>,
    open: Vec<(LabelId, Option<Names>)>,
    fine: bool,
}

impl Aliases<'_> {
    fn allow(func: &Func, group: &Group, views: &Views, roots: &Roots) -> bool {
        let mut stores = false;
        walk(&func.body, &mut |s| {
            stores |= matches!(s, Stmt::Store { row: Operand::Var(v), .. } if group.vars.contains(v))
        });
        if !stores && group.left == 0 {
            return true;
        }
        let mut reads = Reads { group, roots, read_after: HashMap::new(), at_end: HashMap::new() };
        reads.list(&func.body, BTreeSet::new());
        let read_after = reads.read_after;
        let mut aliases = Aliases { group, views, roots, read_after, open: Vec::new(), fine: true };
        aliases.list(&func.body, Some(Names::new()));
        aliases.fine
    }

    fn list(&mut self, body: &[Stmt], mut names: Option<Names>) -> Option<Names> {
        for stmt in body {
            let Some(now) = &mut names else { break };
            match stmt {
                Stmt::Let { dst, .. } if self.roots.get(*dst) != *dst => {}
                Stmt::Let { dst, op, args } if self.group.vars.contains(dst) => {
                    let sources: Vec<VarId> = passes_on(self.views, *dst, *op, args)
                        .unwrap_or_default()
                        .iter()
                        .filter_map(|a| match a {
                            Operand::Var(v) => Some(self.roots.get(*v)),
                            _ => None,
                        })
                        .collect();
                    let mut others: BTreeSet<VarId> = BTreeSet::new();
                    for source in sources {
                        others.insert(source);
                        // a conditional copy may leave the register as it is, so it keeps its names
                        others.extend(now.get(&source).into_iter().flatten());
                    }
                    others.remove(dst);
                    forget(now, *dst);
                    for other in &others {
                        now.entry(*other).or_default().insert(*dst);
                    }
                    now.insert(*dst, others);
                }
                Stmt::Alloc { dst, .. } if self.group.vars.contains(dst) => forget(now, *dst),
                Stmt::Store { value: Operand::Var(value), .. } if self.group.vars.contains(value) => {
                    // it leaves, so nobody may read it by any name
                    let read = self.read_after.get(&std::ptr::from_ref(stmt));
                    let seen = |v: &VarId| read.is_none_or(|read| read.contains(v));
                    let value = self.roots.get(*value);
                    self.fine &= !seen(&value) && !now.get(&value).is_some_and(|others| others.iter().any(seen));
                }
                Stmt::Store { row: Operand::Var(row), .. } if self.group.vars.contains(row) => {
                    let read = self.read_after.get(&std::ptr::from_ref(stmt));
                    let seen = |v: &VarId| read.is_none_or(|read| read.contains(v));
                    self.fine &= !now.get(&self.roots.get(*row)).is_some_and(|others| others.iter().any(seen));
                }
                Stmt::If { then, otherwise, .. } => {
                    let a = self.list(then, names.clone());
                    let b = self.list(otherwise, names.take());
                    names = meet(a, b);
                }
                Stmt::Block { label, body } => {
                    self.open.push((*label, None));
                    let end = self.list(body, names.take());
                    let left = self.open.pop().and_then(|(_, left)| left);
                    names = meet(end, left);
                }
                Stmt::Loop { label, body } => {
                    let mut head = names.take();
                    loop {
                        self.open.push((*label, None));
                        let end = self.list(body, head.clone());
                        let left = self.open.pop().and_then(|(_, left)| left);
                        let next = meet(head.clone(), end);
                        if next == head || !self.fine {
                            names = left;
                            break;
                        }
                        head = next;
                    }
                }
                Stmt::Break(label) => {
                    let now = names.take();
                    if let Some(open) = self.open.iter_mut().rev().find(|o| o.0 == *label) {
                        open.1 = meet(open.1.take(), now);
                    }
                }
                Stmt::Return(_) | Stmt::Trap { .. } => names = None,
                _ => {}
            }
        }
        names
    }
}

/// The register holds another object from here on.
fn forget(names: &mut Names, var: VarId) {
    names.remove(&var);
    names.values_mut().for_each(|others| {
        others.remove(&var);
    });
}

fn meet(a: Option<Names>, b: Option<Names>) -> Option<Names> {
    match (a, b) {
        (Some(mut a), Some(b)) => {
            for (var, others) in b {
                a.entry(var).or_default().extend(others);
            }
            a.retain(|_, others| !others.is_empty());
            Some(a)
        }
        (one, None) | (None, one) => one,
    }
}

/// Walks backwards with the registers of a group that are read later.
struct Reads<'a> {
    group: &'a Group,
    roots: &'a Roots,
    read_after: HashMap<*const Stmt, BTreeSet<VarId>>,
    at_end: HashMap<LabelId, BTreeSet<VarId>>,
}

impl Reads<'_> {
    fn list(&mut self, body: &[Stmt], mut read: BTreeSet<VarId>) -> BTreeSet<VarId> {
        for stmt in body.iter().rev() {
            match stmt {
                Stmt::If { then, otherwise, .. } => {
                    let mut a = self.list(then, read.clone());
                    a.extend(self.list(otherwise, read));
                    read = a;
                }
                Stmt::Block { label, body } => {
                    self.at_end.insert(*label, read.clone());
                    read = self.list(body, read);
                }
                Stmt::Loop { label, body } => {
                    self.at_end.insert(*label, read);
                    let mut head = BTreeSet::new();
                    loop {
                        let before = self.list(body, head.clone());
                        if before == head {
                            break;
                        }
                        head = before;
                    }
                    read = head;
                }
                Stmt::Break(label) => read = self.at_end.get(label).cloned().unwrap_or_default(),
                Stmt::Return(_) | Stmt::Trap { .. } => read = BTreeSet::new(),
                Stmt::Store { row: Operand::Var(row), .. } if self.group.vars.contains(row) => {
                    self.read_after.insert(std::ptr::from_ref(stmt), read.clone());
                    // A store alone does not read an object. Where the object has left, others may.
                    if self.group.left > 0 {
                        read.insert(self.roots.get(*row));
                    }
                }
                Stmt::Let { dst, .. } if self.roots.get(*dst) != *dst => {}
                other => {
                    if matches!(other, Stmt::Store { value: Operand::Var(v), .. } if self.group.vars.contains(v)) {
                        self.read_after.insert(std::ptr::from_ref(other), read.clone());
                    }
                    other.assigns().iter().for_each(|v| {
                        read.remove(v);
                    });
                    other.reads(|o| {
                        if let Operand::Var(v) = o
                            && self.group.vars.contains(&v)
                        {
                            read.insert(self.roots.get(v));
                        }
                    });
                }
            }
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{OUT, SPEED, heaps, program};
    use crate::ir::{Cmp, HeapId, Op, Operand, Program, Scalar, SiteId, Stmt, VarId};
    use crate::passes::testing::after;

    fn car(b: &mut Builder, speed: Operand) -> Operand {
        let id = b.alloc(Scalar::I32, HeapId(0), Operand::I64(1), SiteId(4));
        b.store(SPEED, id, speed);
        id
    }

    fn with_cars(body: impl FnOnce(&mut Builder, Operand)) -> Program {
        let mut program = program(body);
        heaps(&mut program);
        program
    }

    #[test]
    fn what_is_made_anew_in_a_loop_stays_in_registers() {
        let program = with_cars(|b, index| {
            let (fastest, i) = (b.temp(Scalar::I32), b.temp(Scalar::I64));
            let first = car(b, Operand::float(1.0));
            b.set(fastest, first);
            b.set(i, Operand::I64(0));
            b.repeat(|b, done| {
                let speed = b.load(Scalar::F64, SPEED, fastest.into());
                let twice = b.f64(Op::FMul, &[speed, Operand::float(2.0)]);
                let next = car(b, twice);
                b.set(fastest, next);
                b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
                let end = b.icmp(Cmp::Ge, i.into(), index);
                b.when(end, |b| b.push(Stmt::Break(done)));
            });
            let speed = b.load(Scalar::F64, SPEED, fastest.into());
            b.store(OUT, index, speed);
        });
        insta::assert_snapshot!(after(&[PASS], program), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: f64 = copy 1.0
          v4: i64 = copy 0
          loop L0 {
            v5: f64 = fmul v3, 2.0
            v3 = copy v5
            v4 = add v4, 1
            v6: bool = icmp.ge v4, job.0
            if v6 {
              break L0
            }
          }
          store out[job.0] = v5
        }
        "#);
    }

    /// Whether the program still allocates rows.
    fn allocates(body: impl FnOnce(&mut Builder, Operand)) -> bool {
        after(&[PASS], with_cars(body)).contains("alloc")
    }

    #[test]
    fn two_names_of_what_changes_are_one_row() {
        let change = |late: bool| {
            move |b: &mut Builder, index: Operand| {
                let other = b.temp(Scalar::I32);
                let id = car(b, Operand::float(1.0));
                b.set(other, id);
                let there = b.icmp(Cmp::Gt, index, Operand::I64(3));
                b.when(there, |b| {
                    let another = car(b, Operand::float(3.0));
                    b.set(other, another);
                });
                b.store(SPEED, id, Operand::float(2.0));
                let speed = b.load(Scalar::F64, SPEED, if late { other.into() } else { id });
                b.store(OUT, index, speed);
            }
        };
        assert!(allocates(change(true)), "it is read by its other name");
        assert!(!allocates(change(false)), "nobody reads its other name");
    }

    #[test]
    fn a_name_that_is_never_another_object_is_no_second_name() {
        assert!(!allocates(|b, index| {
            let id = car(b, Operand::float(1.0));
            let other = b.op(Scalar::I32, Op::Copy, &[id]);
            b.store(SPEED, id, Operand::float(2.0));
            let speed = b.load(Scalar::F64, SPEED, other);
            b.store(OUT, index, speed);
        }));
    }

    #[test]
    fn a_name_of_the_object_before_is_another_object() {
        let program = |b: &mut Builder, index: Operand| {
            let (now, before) = (b.temp(Scalar::I32), b.temp(Scalar::I32));
            let first = car(b, Operand::float(1.0));
            b.set(before, first);
            b.push(Stmt::Alloc { dst: now, heap: HeapId(0), count: Operand::I64(1), site: SiteId(4) });
            b.store(SPEED, now.into(), Operand::float(2.0));
            let speed = b.load(Scalar::F64, SPEED, before.into());
            b.store(OUT, index, speed);
        };
        assert!(!allocates(program));
    }

    #[test]
    fn one_that_may_be_nil_stays_in_registers_too() {
        let program = |b: &mut Builder, index: Operand| {
            let payload: VarId = b.temp(Scalar::I64);
            b.set(payload, Operand::I64(0));
            let there = b.icmp(Cmp::Gt, index, Operand::I64(3));
            b.when(there, |b| {
                let id = car(b, Operand::float(1.0));
                let wide = b.i64(Op::Widen, &[id]);
                b.set(payload, wide);
            });
            b.when(there, |b| {
                let id = b.op(Scalar::I32, Op::Narrow, &[payload.into()]);
                let speed = b.load(Scalar::F64, SPEED, id);
                b.store(OUT, index, speed);
            });
        };
        assert!(!allocates(program));
    }

    #[test]
    fn what_is_compared_stored_or_passed_on_is_a_row() {
        assert!(allocates(|b, index| {
            let (x, y) = (car(b, Operand::float(1.0)), car(b, Operand::float(2.0)));
            let same = b.icmp(Cmp::Eq, x, y);
            b.when(same, |b| b.store(OUT, index, Operand::float(0.0)));
        }));
        assert!(allocates(|b, index| {
            let id = car(b, Operand::float(1.0));
            b.store(crate::ir::testing::REFS, index, id);
        }));
    }
}
