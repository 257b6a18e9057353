//! Emits the body of one function: control flow keeps its structure, and expressions are folded into their uses.
//!
//! Here: [`Function`], which emits statement by statement. Not here: where registers are declared ([`super::places`]),
//! signatures and kernels ([`super`]).

use super::places::{ListId, Places};
use super::{Shared, cells_name, identifier, scalar};
use crate::backend::cuda::privatization;
use crate::ir::stages::{Reach, Stage};
use crate::ir::visit::is_plain;
use crate::ir::{
    AtomicOp, CheckedOp, Cmp, ColumnId, Ctx, Func, FuncId, LabelId, MathFn, Op, Operand, Scalar, SiteId, Stmt, Storage,
    VarId, walk,
};
use crate::passes;
use crate::passes::loops::Counting;
use std::fmt::Write;

/// The compiler may unroll a loop of up to so many statements. Longer ones gain nothing, take several times as long to
/// compile, and use a third more registers.
const UNROLL_SIZE: usize = 10;
/// The same for a loop without inner loops, calls and polls. Four repetitions are unrolled, so that the loads of the
/// next ones overlap with the computation of this one.
pub(super) const UNROLL_PLAIN: usize = 40;
/// A loop is unrolled completely if all its repetitions have up to so many statements.
const UNROLL_WHOLE: usize = 160;
/// A loop that [assumes](passes::speculate_overflow) that nothing overflows may have so many times as many statements
/// as another. Its marks in place of checks are more statements, and fewer instructions.
const MARKS: usize = 4;
/// The longest expression that is folded into another.
const FOLD_WIDTH: usize = 72;

/// An expression that is not written yet.
#[derive(Clone, Debug)]
pub(super) struct Expr {
    pub(super) text: String,
    /// Whether it needs parentheses inside another expression.
    pub(super) compound: bool,
    pub(super) reads: Vec<VarId>,
}

impl Expr {
    fn atom(text: String, reads: Vec<VarId>) -> Self {
        Self { text, compound: false, reads }
    }
}

/// A block or loop that is open at the cursor.
pub(super) struct Open {
    pub(super) label: LabelId,
    pub(super) is_loop: bool,
    /// The list of its body, and how many statements that has.
    pub(super) list: ListId,
    pub(super) length: usize,
    /// Whether nothing follows it in the enclosing block, so that leaving it also leaves that block.
    pub(super) last: bool,
    /// Whether a `goto` leaves it.
    pub(super) left: bool,
}

/// The text of one function's body, while it is written.
pub(super) struct Function<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) id: FuncId,
    pub(super) func: &'a Func,
    pub(super) stops: bool,
    pub(super) by_reference: bool,
    pub(super) names: Vec<String>,
    pub(super) places: Places,
    pub(super) pending: Vec<(VarId, Expr)>,
    pub(super) next_list: ListId,
    /// Blocks and loops that are open at the cursor, innermost last.
    pub(super) open: Vec<Open>,
    pub(super) indent: usize,
    pub(super) out: String,
    /// Stages whose shared values it reads.
    pub(super) sharing: Option<&'a [(&'a Stage, Reach)]>,
    /// Registers whose rows are loaded in advance: neighbours in an open loop, or the rows of several jobs of a thread.
    pub(super) nexts: Vec<VarId>,
    /// Columns of which the thread stores the rows of several jobs after them. Empty: it runs one job.
    pub(super) taken: Vec<ColumnId>,
}

impl<'a> Function<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, func: FuncId) -> Self {
        Self::of(shared, func, &shared.program.funcs[func.index()])
    }

    /// `f`: the function, or other statements over its registers.
    pub(super) fn of(shared: &'a Shared<'a>, func: FuncId, f: &'a Func) -> Self {
        Self {
            shared,
            id: func,
            func: f,
            stops: shared.may_stop[func.index()],
            by_reference: shared.by_reference(func),
            names: names(f),
            places: Places::of(f),
            pending: Vec::new(),
            next_list: 1,
            open: Vec::new(),
            indent: 1,
            out: String::new(),
            sharing: None,
            nexts: Vec::new(),
            taken: Vec::new(),
        }
    }

    pub(super) fn emit(mut self) -> String {
        let func = self.func;
        self.list(&func.body, 0);
        if self.stops && !ends(&func.body) {
            self.line("return false;");
        }
        self.out
    }

    pub(super) fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    pub(super) fn register(&self, v: VarId) -> &'static str {
        self.shared.register(self.id, v)
    }

    fn is_short(&self, v: VarId) -> bool {
        self.shared.short[self.id.index()][v.index()]
    }

    /// Whether a register holds only the lower half of a row.
    fn is_low(&self, v: VarId) -> bool {
        self.shared.low[self.id.index()][v.index()]
    }

    /// Whether an operand is a Float of 32 bits: a register of that width, or a constant.
    fn is_single(&self, operand: Operand) -> bool {
        passes::is_single(&self.shared.single[self.id.index()], operand)
    }

    /// Whether a register holds a Float of 32 bits.
    pub(super) fn holds_single(&self, v: VarId) -> bool {
        self.shared.single[self.id.index()][v.index()]
    }

    /// Whether all operands are registers of 32 bits. Products with a constant are excluded, because they may have
    /// cheaper forms.
    fn are_short_registers(&self, args: &[Operand]) -> bool {
        args.iter().all(|arg| matches!(arg, Operand::Var(v) if self.is_short(*v)))
    }

    /// Whether all operands have 32 bits, constants included.
    fn are_short(&self, args: &[Operand]) -> bool {
        args.iter().all(|arg| match arg {
            Operand::Var(v) => self.is_short(*v),
            Operand::I64(i) => i32::try_from(*i).is_ok_and(|i| i != i32::MIN),
            _ => false,
        })
    }

    pub(super) fn name(&self, v: VarId) -> &str {
        &self.names[v.index()]
    }

    pub(super) fn list(&mut self, body: &[Stmt], list: ListId) {
        for (position, stmt) in body.iter().enumerate() {
            self.stmt(stmt, list, position);
        }
        // expressions that are left belonged to unreachable statements
        self.pending.clear();
    }

    /// Writes folded registers that match after all.
    fn materialise(&mut self, which: impl Fn(&(VarId, Expr)) -> bool) {
        let mut kept = Vec::new();
        for (var, expr) in std::mem::take(&mut self.pending) {
            if which(&(var, expr.clone())) {
                let ty = self.register(var);
                self.line(&format!("const {ty} {} = {};", self.names[var.index()], expr.text));
            } else {
                kept.push((var, expr));
            }
        }
        self.pending = kept;
    }

    /// An operand as an expression. Folds the pending expression for it, if there is one. A Float of 32 bits becomes
    /// one of 64.
    pub(super) fn operand(&mut self, operand: Operand) -> Expr {
        match operand {
            Operand::Var(v) if self.holds_single(v) => {
                let expr = self.held(v);
                Expr::atom(format!("f64({})", expr.text), expr.reads)
            }
            Operand::Var(v) if self.is_low(v) => {
                let expr = self.held(v);
                Expr::atom(format!("i64(u32({}))", expr.text), expr.reads)
            }
            Operand::Var(v) => self.held(v),
            Operand::Bool(b) => Expr::atom(b.to_string(), Vec::new()),
            Operand::I32(i32::MIN) => Expr::atom("i32(0x80000000u)".to_string(), Vec::new()),
            Operand::I32(i) => Expr::atom(i.to_string(), Vec::new()),
            Operand::I64(i64::MIN) => Expr::atom("INT_LEAST".to_string(), Vec::new()),
            Operand::I64(i) => Expr::atom(i.to_string(), Vec::new()),
            Operand::F64(bits) => {
                let x = f64::from_bits(bits);
                let text = if x.is_finite() { format!("{x:?}") } else { format!("float_of({bits:#x})") };
                Expr::atom(text, Vec::new())
            }
        }
    }

    /// A register as an expression of its own type.
    fn held(&mut self, v: VarId) -> Expr {
        match self.pending.iter().position(|(p, _)| *p == v) {
            Some(at) => self.pending.remove(at).1,
            None => Expr::atom(self.name(v).to_string(), vec![v]),
        }
    }

    /// An operand as an expression of 32 bits. One that has 64 is rounded.
    fn as_single(&mut self, operand: Operand) -> Expr {
        match operand {
            Operand::Var(v) if self.holds_single(v) => self.held(v),
            Operand::F64(bits) if self.is_single(operand) && f64::from_bits(bits).is_finite() => {
                Expr::atom(format!("{:?}f", f64::from_bits(bits) as f32), Vec::new())
            }
            _ => {
                let expr = self.operand(operand);
                Expr::atom(format!("float({})", expr.text), expr.reads)
            }
        }
    }

    /// The lower half of an operand.
    fn lower(&mut self, operand: Operand) -> Expr {
        match operand {
            Operand::I64(i) => self.operand(Operand::I32(i as i32)),
            Operand::Var(v) if self.is_low(v) => self.held(v),
            _ => self.operand(operand),
        }
    }

    /// The lower half of a result that depends on lower halves alone.
    fn lower_op(&mut self, op: Op, args: &[Operand]) -> Expr {
        let name = match op {
            Op::Add => "add32",
            Op::Sub => "sub32",
            Op::Mul => "mul32",
            Op::Shl => "shl32",
            // a mask for the sign of the whole, which no row has
            Op::And if matches!(args[1], Operand::I64(mask) if mask as u32 == u32::MAX) => return self.lower(args[0]),
            Op::Copy | Op::Widen => {
                let a = self.lower(args[0]);
                return Expr::atom(format!("i32({})", a.text), a.reads);
            }
            Op::Select => {
                let cond = self.operand(args[0]);
                let [a, b] = [args[1], args[2]].map(|arg| {
                    let a = self.lower(arg);
                    Expr::atom(format!("i32({})", a.text), a.reads)
                });
                return selected(&cond, &a, &b);
            }
            _ => {
                let [a, b] = [args[0], args[1]].map(|arg| self.lower(arg));
                let sign = match op {
                    Op::And => "&",
                    Op::Or => "|",
                    _ => "^",
                };
                let both = between(&a, sign, &b);
                return Expr::atom(format!("i32({})", both.text), both.reads);
            }
        };
        let args = args.iter().map(|a| self.lower(*a)).collect();
        called(name, args)
    }

    /// An operand where C++ must not take a literal for an `int`.
    fn typed(&mut self, operand: Operand) -> Expr {
        let ty = scalar(self.func.ty(operand));
        let mut expr = self.operand(operand);
        if matches!(operand, Operand::I64(_)) {
            expr.text = format!("{ty}({})", expr.text);
        }
        expr
    }

    pub(super) fn row(&mut self, column: ColumnId, row: Operand) -> String {
        let ty = self.func.ty(row);
        let low = matches!(row, Operand::Var(v) if self.is_low(v));
        let text = if low { format!("u32({})", self.lower(row).text) } else { self.operand(row).text };
        if self.taken.contains(&column) {
            return self.shared.taken_name(column);
        }
        match ty {
            Scalar::I32 => self.shared.slot(column, &format!("u32({text})")),
            _ => self.shared.slot(column, &text),
        }
    }

    /// Declares the registers that `stmt` is the first to mention. Returns those that the statement itself declares.
    pub(super) fn declare(&mut self, stmt: &Stmt, list: ListId, position: usize) -> Vec<VarId> {
        let mut own = Vec::new();
        for (var, direct) in self.places.declare.remove(&(list, position)).unwrap_or_default() {
            let folds = self.places.foldable[var.index()] && matches!(stmt, Stmt::Let { .. });
            if direct
                && (folds
                    || matches!(stmt, Stmt::Let { .. } | Stmt::Load { .. } | Stmt::FetchAdd { .. } | Stmt::Meet { .. })
                    || self.returns_value(stmt))
            {
                own.push(var);
            } else {
                let text = format!("{} {};", self.register(var), self.name(var));
                self.line(&text);
            }
        }
        own
    }

    /// Whether a call's value is that of its expression.
    fn returns_value(&self, stmt: &Stmt) -> bool {
        matches!(stmt, Stmt::Call { func, dsts, .. } if dsts.len() == 1 && !self.shared.by_reference(*func))
    }

    /// Writes `dst = text`, with a declaration if this is the first assignment.
    fn assign(&mut self, dst: VarId, own: &[VarId], text: &str) {
        let name = self.name(dst);
        let line = if own.contains(&dst) {
            let constant = if self.places.constant[dst.index()] { "const " } else { "" };
            format!("{constant}{} {name} = {text};", self.register(dst))
        } else {
            format!("{name} = {text};")
        };
        self.line(&line);
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt, list: ListId, position: usize) {
        // operands of this statement are rendered before anything else is written
        match stmt {
            Stmt::Let { dst, op, args } => {
                let folds = self.places.foldable[dst.index()];
                let short = self.is_short(*dst);
                let expr = match (op, folds) {
                    _ if self.holds_single(*dst) => self.single_op(*op, args),
                    _ if self.is_low(*dst) => self.lower_op(*op, args),
                    (Op::FCmp(cmp), _) if args.iter().all(|arg| self.is_single(*arg)) => {
                        self.single_infix(comparison(*cmp), args)
                    }
                    (Op::Copy, false) => self.operand(args[0]),
                    // It cannot wrap. The plain `+` lets the compiler replace a counter by an address.
                    (Op::Add, _) if short && self.are_short(args) => self.infix("+", args),
                    (Op::Sub, _) if short && self.are_short(args) => self.infix("-", args),
                    (Op::Mul, _) if short && self.are_short(args) => self.infix("*", args),
                    // the lower half of a sum needs only the lower halves of its operands
                    (Op::Add, _) if short => self.helper("add32", args),
                    (Op::Sub, _) if short => self.helper("sub32", args),
                    (Op::Mul, _) if short => self.helper("mul32", args),
                    (Op::Mul, _) if self.are_short_registers(args) => self.helper("mul_wide", args),
                    (_, true) if short => {
                        let expr = self.op(*op, args, Scalar::I64);
                        Expr::atom(format!("i32({})", expr.text), expr.reads)
                    }
                    _ => self.op(*op, args, self.func.vars[dst.index()].ty),
                };
                self.before_assignment(&[*dst]);
                let own = self.declare(stmt, list, position);
                if folds && own.contains(dst) && expr.text.len() <= FOLD_WIDTH {
                    self.pending.push((*dst, expr));
                } else {
                    self.assign(*dst, &own, &expr.text);
                }
            }
            Stmt::Checked { dst, op: CheckedOp::Mul, args: [x, Operand::I64(by)] | [Operand::I64(by), x], site }
                if let Some((least, most)) = factors(*by) =>
            {
                let x = self.operand(*x).text;
                self.before_assignment(&[*dst]);
                self.declare(stmt, list, position);
                let [by, least, most] = [*by, least, most].map(|i| self.operand(Operand::I64(i)).text);
                let text = format!("times_overflows({x}, {by}, {least}, {most}, {})", self.name(*dst));
                self.stop_if(&text, *site, &[]);
            }
            Stmt::Checked { dst, op, args: [a, b], site } => {
                let (a, b) = (self.operand(*a).text, self.operand(*b).text);
                self.before_assignment(&[*dst]);
                self.declare(stmt, list, position);
                let helper = match op {
                    CheckedOp::Add => "add_overflows",
                    CheckedOp::Sub => "sub_overflows",
                    CheckedOp::Mul => "mul_overflows",
                    CheckedOp::And => "and_overflows",
                };
                let text = format!("{helper}({a}, {b}, {})", self.name(*dst));
                self.stop_if(&text, *site, &[]);
            }
            Stmt::Load { dst, column, row } => {
                let slot = self.row(*column, *row);
                self.before_assignment(&[*dst]);
                let own = self.declare(stmt, list, position);
                let ty = self.func.vars[dst.index()].ty;
                let value = match self.shared.written[column.index()] {
                    _ if self.nexts.contains(dst) => self.next_name(*dst),
                    true => slot,
                    false => format!("__ldg(&{slot})"),
                };
                let text = match (self.shared.program.columns[column.index()].storage, ty) {
                    (Storage::U8, Scalar::Bool) => format!("{value} != 0"),
                    (Storage::U8 | Storage::I32, Scalar::I64) => format!("i64({value})"),
                    (Storage::U8 | Storage::U32, _) => format!("i32({value})"),
                    (Storage::F32, _) if !self.holds_single(*dst) => format!("f64({value})"),
                    _ => value,
                };
                self.assign(*dst, &own, &text);
            }
            Stmt::Store { column, row, value } => {
                let slot = self.row(*column, *row);
                let storage = self.shared.program.columns[column.index()].storage;
                let value = match storage {
                    Storage::F32 => self.as_single(*value).text,
                    _ => self.operand(*value).text,
                };
                self.declare(stmt, list, position);
                let text = match storage {
                    Storage::U8 => format!("{slot} = u8({value});"),
                    Storage::U32 => format!("{slot} = u32({value});"),
                    Storage::I32 => format!("{slot} = i32({value});"),
                    Storage::F32 | Storage::I64 | Storage::F64 => format!("{slot} = {value};"),
                };
                self.line(&text);
            }
            Stmt::Atomic { column, row, value, site, .. }
                if let Some(privatized) =
                    self.shared.privatized.iter().find(|privatized| privatized.column == *column) =>
            {
                let (at, value) = (self.operand(*row).text, self.operand(*value).text);
                let at = if self.func.ty(*row) == Scalar::I32 { format!("u32({at})") } else { at };
                self.declare(stmt, list, position);
                let (operation, name) = (privatization::operation(*privatized), self.shared.column_name(*column));
                let cells = cells_name(*column);
                let call =
                    format!("privatized_update<{operation}>(args.copies, args.{cells}, {at}, args.{name}, {value})");
                match site {
                    Some(site) => self.stop_if(&call, *site, &[]),
                    None => self.line(&format!("{call};")),
                }
            }
            Stmt::Atomic { op, column, row, value, site } => {
                let slot = self.row(*column, *row);
                let value = self.operand(*value).text;
                self.declare(stmt, list, position);
                let helper = match op {
                    AtomicOp::Add => "atomic_add",
                    AtomicOp::FAdd => "atomic_fadd",
                    AtomicOp::Min => "atomic_min",
                    AtomicOp::Max => "atomic_max",
                    AtomicOp::And => "atomic_and",
                    AtomicOp::Or => "atomic_or",
                    AtomicOp::Xor => "atomic_xor",
                };
                match site {
                    Some(site) => self.stop_if(&format!("{helper}_overflows(&{slot}, {value})"), *site, &[]),
                    None => self.line(&format!("{helper}(&{slot}, {value});")),
                }
            }
            Stmt::Emit { key, value, order, text } => {
                let key = key.map(|key| self.operand(key).text);
                let [value, order] = [value, order].map(|operand| self.operand(*operand).text);
                self.declare(stmt, list, position);
                let bytes = match text {
                    Some(column) => format!("&{}", self.row(*column, Operand::I64(0))),
                    None => "nullptr".to_owned(),
                };
                let fixed = self.shared.is_fixed(*text);
                let (count, cells) = (self.shared.block_groups(), self.shared.block_cells());
                self.line(&match key {
                    Some(key) => {
                        format!("add_pair<{count}, {cells}, {fixed}>(args.groups, {bytes}, {key}, {value}, {order});")
                    }
                    None => format!("add_parts<{fixed}>(args.groups, {bytes}, ctx.key, {value}, {order});"),
                });
            }
            Stmt::KeyPart { code, word } => {
                let [code, word] = [code, word].map(|operand| self.operand(*operand).text);
                self.declare(stmt, list, position);
                self.line(&format!("add_part(ctx.key, {code}, {word});"));
            }
            Stmt::FetchAdd { dst, column, row, value } => {
                let slot = self.row(*column, *row);
                let value = self.operand(*value).text;
                self.before_assignment(&[*dst]);
                let own = self.declare(stmt, list, position);
                self.assign(*dst, &own, &format!("fetch_add(&{slot}, {value})"));
            }
            Stmt::Alloc { .. } | Stmt::Try { .. } => unreachable!("refused before"),
            Stmt::If { cond, then, otherwise } => {
                let cond = self.operand(*cond);
                self.materialise(|_| true);
                self.declare(stmt, list, position);
                self.branch(&cond, then, otherwise, "");
            }
            Stmt::Block { label, body } => {
                self.materialise(|_| true);
                self.declare(stmt, list, position);
                self.labelled("{", *label, false, body, (list, position));
            }
            Stmt::Loop { label, body } => {
                self.materialise(|_| true);
                self.declare(stmt, list, position);
                match self.neighbours(stmt) {
                    Some(neighbours) => self.over_neighbours(&neighbours, *label, body),
                    None => self.labelled("while (true) {", *label, true, body, (list, position)),
                }
            }
            Stmt::Break(label) => {
                let target =
                    self.open.iter().rposition(|o| o.label == *label).expect("a break is inside what it leaves");
                let innermost = self.open.iter().rposition(|o| o.is_loop);
                // `break` leaves the innermost loop, and the blocks that end with it
                let leaves = innermost.is_some_and(|i| {
                    target == i
                        || target < i
                            && self.open[target..i].iter().all(|o| !o.is_loop)
                            && self.open[target + 1..=i].iter().all(|o| o.last)
                });
                if leaves {
                    self.line("break;");
                } else {
                    self.open[target].left = true;
                    self.line(&format!("goto {label};"));
                }
            }
            Stmt::Call { func, args, dsts, depth } => self.call(stmt, *func, args, dsts, *depth, (list, position)),
            Stmt::Return(values) => {
                let values: Vec<_> = values.iter().map(|v| self.operand(*v).text).collect();
                match &values[..] {
                    [only] if !self.by_reference => self.line(&format!("return {only};")),
                    _ => {
                        for (i, value) in values.iter().enumerate() {
                            self.line(&format!("result{i} = {value};"));
                        }
                        self.line(if self.stops { "return false;" } else { "return;" });
                    }
                }
            }
            Stmt::Trap { site, operands } => self.stop(*site, operands),
            Stmt::Place(_) => {}
            Stmt::Poll if self.shared.team.is_some() => {
                let lanes = self.shared.lanes("args.");
                self.line(&format!("if (poll_together(ctx, {lanes})) return true;"));
            }
            Stmt::Poll => self.line("if (poll(ctx)) return true;"),
            Stmt::Meet { dst, value } => {
                let lanes = self.shared.lanes("args.");
                // an answer that nobody reads
                if let Operand::I64(_) = value {
                    self.declare(stmt, list, position);
                    return self.line(&format!("gather({lanes});"));
                }
                let value = self.operand(*value).text;
                self.before_assignment(&[*dst]);
                let own = self.declare(stmt, list, position);
                self.assign(*dst, &own, &format!("meet({lanes}, {value})"));
            }
            Stmt::Begin { index, tick, check } => {
                let (index, tick) = (self.operand(*index).text, self.operand(*tick).text);
                self.materialise(|_| true);
                self.declare(stmt, list, position);
                // a thread with several jobs has no limit
                if *check && self.taken.is_empty() {
                    let begin = if self.open.iter().any(|o| o.is_loop) { "begin_watching" } else { "begin_checked" };
                    self.line(&format!("if ({begin}(ctx, {index}, {tick})) return true;"));
                } else {
                    self.line(&format!("begin(ctx, {index}, {tick});"));
                }
            }
        }
    }

    /// Writes pending expressions that read registers which are about to change.
    fn before_assignment(&mut self, dsts: &[VarId]) {
        self.materialise(|(_, expr)| dsts.iter().any(|d| expr.reads.contains(d)));
    }

    fn stop(&mut self, site: SiteId, operands: &[Operand]) {
        let mut text = format!("trap(ctx, {}", site.index());
        for o in operands {
            let _ = write!(text, ", word({})", self.typed(*o).text);
        }
        self.line(&format!("{text});{}", self.shared.site(site)));
        if self.shared.listens {
            self.line("stop_others(ctx);");
        }
        self.line("return true;");
    }

    fn stop_if(&mut self, cond: &str, site: SiteId, operands: &[Operand]) {
        self.line(&format!("if ({cond}) {{"));
        self.indent += 1;
        self.stop(site, operands);
        self.indent -= 1;
        self.line("}");
    }

    /// The number of statements, those of callees included.
    pub(super) fn size(&self, body: &[Stmt]) -> usize {
        let mut size = 0;
        walk(body, &mut |s| {
            size += match s {
                Stmt::Call { func, .. } => self.shared.sizes[func.index()],
                _ => 1,
            }
        });
        size
    }

    pub(super) fn nest(&mut self, body: &[Stmt]) {
        let list = self.next_list;
        self.next_list += 1;
        self.indent += 1;
        self.list(body, list);
        self.indent -= 1;
    }

    pub(super) fn branch(&mut self, cond: &Expr, then: &[Stmt], otherwise: &[Stmt], before: &str) {
        if then.is_empty() && !otherwise.is_empty() {
            let cond = wrapped(cond);
            self.line(&format!("{before}if (!{cond}) {{"));
            self.next_list += 1;
            self.nest(otherwise);
        } else {
            let head = format!("{before}if ({}) ", cond.text);
            if otherwise.is_empty()
                && before.is_empty()
                && let [Stmt::Break(_)] = then
            {
                let start = self.out.len();
                self.nest(then);
                let jump = self.out.split_off(start);
                self.next_list += 1;
                return self.line(&format!("{head}{}", jump.trim()));
            }
            self.line(&format!("{head}{{"));
            self.nest(then);
            match otherwise {
                [] => self.next_list += 1,
                // an `else if`, unless declarations are needed in between
                [Stmt::If { cond, then, otherwise }] if !self.places.declare.contains_key(&(self.next_list, 0)) => {
                    self.next_list += 1;
                    let cond = self.operand(*cond);
                    return self.branch(&cond, then, otherwise, "} else ");
                }
                _ => {
                    self.line("} else {");
                    self.nest(otherwise);
                }
            }
        }
        self.line("}");
    }

    /// For a plain loop, how many statements count as one. None: the loop runs too rarely to pay for more text.
    pub(super) fn scale(&self, label: LabelId) -> Option<usize> {
        let versions = || self.shared.versions.iter().filter(|pair| pair.func == self.id);
        let rare = versions().any(|pair| pair.exact == label);
        (!rare).then(|| if versions().any(|pair| pair.fast == label) { MARKS } else { 1 })
    }

    fn labelled(&mut self, head: &str, label: LabelId, is_loop: bool, body: &[Stmt], at: (ListId, usize)) {
        let last = self.open.last().is_some_and(|o| (o.list, o.length) == (at.0, at.1 + 1));
        self.open.push(Open { label, is_loop, list: self.next_list, length: body.len(), last, left: false });
        if is_loop {
            match (self.scale(label), self.size(body)) {
                // unrolling would repeat the branch of each repetition
                _ if passes::is_turned(label, body) => self.line("#pragma unroll 1"),
                (Some(_), size) if let Some(turns) = few_turns(label, body, size) => {
                    self.line(&format!("#pragma unroll {turns}"));
                }
                // square roots and quotients are long chains, which overlap between repetitions
                (Some(scale), size) if size <= scale * UNROLL_PLAIN && is_plain(body) && self.is_quick_loop(label) => {
                    self.line("#pragma unroll 8")
                }
                _ if !overlaps(body) => self.line("#pragma unroll 1"),
                (Some(scale), size) if size <= scale * UNROLL_PLAIN && is_plain(body) => self.line("#pragma unroll 4"),
                (Some(_), ..=UNROLL_SIZE) => {}
                _ => self.line("#pragma unroll 1"),
            }
        }
        self.line(head);
        self.nest(body);
        self.line("}");
        if self.open.pop().is_some_and(|o| o.left) {
            self.line(&format!("{label}:;"));
        }
    }

    pub(super) fn call(
        &mut self,
        stmt: &Stmt,
        func: FuncId,
        args: &[Operand],
        dsts: &[VarId],
        depth: Option<SiteId>,
        at: (ListId, usize),
    ) {
        let mut text = format!("{}(args, ctx", self.shared.func_name(func));
        for a in args {
            let _ = write!(text, ", {}", self.operand(*a).text);
        }
        self.before_assignment(dsts);
        let own = self.declare(stmt, at.0, at.1);
        if let (Some(value), [dst]) = (self.shared_value(func, args), dsts) {
            return self.assign(*dst, &own, &value);
        }
        if let Some(site) = depth {
            let comment = self.shared.site(site);
            self.line(&format!("if (enter(ctx, {})) return true;{comment}", site.index()));
        }
        if self.shared.by_reference(func) {
            for d in dsts {
                let _ = write!(text, ", {}", self.name(*d));
            }
        }
        text.push(')');
        if self.shared.may_stop[func.index()] {
            self.line(&format!("if ({text}) return true;"));
        } else if self.returns_value(stmt) {
            self.assign(dsts[0], &own, &text);
        } else {
            self.line(&format!("{text};"));
        }
        if depth.is_some() {
            self.line("leave(ctx);");
        }
    }

    pub(super) fn op(&mut self, op: Op, args: &[Operand], ty: Scalar) -> Expr {
        let narrow = args.first().is_some_and(|a| self.func.ty(*a) == Scalar::I32);
        let boolean = args.first().is_some_and(|a| self.func.ty(*a) == Scalar::Bool);
        let suffix = if narrow { "32" } else { "" };
        match op {
            Op::Copy => self.typed(args[0]),
            Op::Add => self.helper(&format!("add{suffix}"), args),
            Op::Sub => self.helper(&format!("sub{suffix}"), args),
            Op::Mul => self.helper(&format!("mul{suffix}"), args),
            Op::MulHi => self.helper("mul_high", args),
            Op::UMulHi => self.helper("umul_high", args),
            Op::Div => self.infix("/", args),
            Op::Rem => self.infix("%", args),
            Op::UDiv => self.helper(&format!("udiv{suffix}"), args),
            Op::URem => self.helper(&format!("urem{suffix}"), args),
            Op::MulMod => self.helper("mul_mod", args),
            Op::AddMod => self.helper("add_mod", args),
            Op::And if boolean => self.infix("&&", args),
            Op::Or if boolean => self.infix("||", args),
            Op::Xor if boolean => self.infix("!=", args),
            Op::And => self.infix("&", args),
            Op::Or => self.infix("|", args),
            Op::Xor => self.infix("^", args),
            Op::Shl => self.helper(&format!("shl{suffix}"), args),
            Op::Shr => self.helper(&format!("shr{suffix}"), args),
            Op::UShr => self.helper(&format!("ushr{suffix}"), args),
            Op::Clz => self.helper("leading_zeros", args),
            Op::ICmp(cmp) | Op::FCmp(cmp) => self.infix(comparison(cmp), args),
            Op::UCmp(cmp) => {
                let unsigned = if narrow { "u32" } else { "u64" };
                let (a, b) = (self.operand(args[0]), self.operand(args[1]));
                let text = format!("{unsigned}({}) {} {unsigned}({})", a.text, comparison(cmp), b.text);
                Expr { text, compound: true, reads: [a.reads, b.reads].concat() }
            }
            Op::FAdd => self.infix("+", args),
            Op::FSub => self.infix("-", args),
            Op::FMul => self.infix("*", args),
            Op::FDiv if self.is_quick(op, args) => self.helper("quick_div", args),
            Op::FDiv => self.infix("/", args),
            Op::FNeg => self.prefix("-", args[0]),
            Op::FAbs => self.helper("fabs", args),
            Op::FSqrt if self.is_quick(op, args) => self.helper("quick_sqrt", args),
            Op::FSqrt => self.helper("sqrt", args),
            Op::FFloor => self.helper("floor", args),
            Op::FCeil => self.helper("ceil", args),
            Op::FTrunc => self.helper("trunc", args),
            Op::FRint => self.helper("rint", args),
            Op::FRound => self.helper("round", args),
            Op::FSingle => self.helper("single", args),
            Op::FRem => self.helper("fmod", args),
            Op::FNextAfter => self.helper("nextafter", args),
            Op::FCopySign => self.helper("copysign", args),
            Op::Math(function) => self.helper(math(function), args),
            Op::IntToFloat => self.helper("f64", args),
            Op::FloatToInt => self.helper("i64", args),
            Op::FloatBits => self.helper("float_bits", args),
            Op::SingleBits => {
                let x = self.as_single(args[0]);
                called("single_bits", vec![x])
            }
            Op::FloatFromBits => self.helper("float_of", args),
            Op::Widen => {
                let x = self.operand(args[0]);
                Expr::atom(format!("i64(u32({}))", x.text), x.reads)
            }
            Op::Narrow => {
                let a = self.lower(args[0]);
                called("i32", vec![a])
            }
            Op::BoolToInt => self.helper(scalar(ty), args),
            Op::Not => self.prefix("!", args[0]),
            Op::Select => {
                let cond = self.operand(args[0]);
                let (a, b) = (self.typed(args[1]), self.typed(args[2]));
                selected(&cond, &a, &b)
            }
            Op::Ctx(Ctx::Tick) => Expr::atom("i64(ctx.tick)".to_string(), Vec::new()),
            Op::Ctx(Ctx::Slot) => Expr::atom("slot()".to_string(), Vec::new()),
            Op::Ctx(Ctx::Stopped) => Expr::atom("poll_alone(ctx)".to_string(), Vec::new()),
            Op::Ctx(Ctx::Index) => Expr::atom("i64(ctx.index)".to_string(), Vec::new()),
            Op::Random => Expr::atom("random_bits(ctx)".to_string(), Vec::new()),
            Op::Param(param) => Expr::atom(format!("args.{}", self.shared.param_name(param)), Vec::new()),
        }
    }

    /// An operation whose result has 32 bits.
    fn single_op(&mut self, op: Op, args: &[Operand]) -> Expr {
        let function = match op {
            Op::Copy | Op::FSingle => return self.as_single(args[0]),
            Op::FAdd => return self.single_infix("+", args),
            Op::FSub => return self.single_infix("-", args),
            Op::FMul => return self.single_infix("*", args),
            Op::FDiv if !self.is_quick(op, args) => return self.single_infix("/", args),
            Op::FNeg => {
                let a = self.as_single(args[0]);
                return negated("-", &a);
            }
            Op::Select => {
                let cond = self.operand(args[0]);
                let (a, b) = (self.as_single(args[1]), self.as_single(args[2]));
                return selected(&cond, &a, &b);
            }
            Op::IntToFloat => return self.helper("float", args),
            Op::FAbs => "fabsf",
            Op::FDiv => "quick_div32",
            Op::FSqrt if self.is_quick(op, args) => "quick_sqrt32",
            Op::FSqrt => "sqrtf",
            Op::FFloor => "floorf",
            Op::FCeil => "ceilf",
            Op::FTrunc => "truncf",
            Op::FRint => "rintf",
            Op::FCopySign => "copysignf",
            op => unreachable!("{op:?} has no result of 32 bits"),
        };
        let args = args.iter().map(|a| self.as_single(*a)).collect();
        called(function, args)
    }

    fn single_infix(&mut self, sign: &str, args: &[Operand]) -> Expr {
        let (a, b) = (self.as_single(args[0]), self.as_single(args[1]));
        between(&a, sign, &b)
    }

    /// Whether the result of an operation without its checks suffices, because an enclosing loop checks afterwards.
    fn is_quick(&self, op: Op, args: &[Operand]) -> bool {
        passes::is_quick(op, args) && self.open.iter().any(|o| o.is_loop && self.is_quick_loop(o.label))
    }

    fn is_quick_loop(&self, label: LabelId) -> bool {
        self.shared.versions.iter().any(|pair| pair.func == self.id && pair.floats && pair.fast == label)
    }

    fn helper(&mut self, name: &str, args: &[Operand]) -> Expr {
        let args = args.iter().map(|a| self.operand(*a)).collect();
        called(name, args)
    }

    fn infix(&mut self, sign: &str, args: &[Operand]) -> Expr {
        let (a, b) = (self.typed(args[0]), self.operand(args[1]));
        between(&a, sign, &b)
    }

    fn prefix(&mut self, sign: &str, arg: Operand) -> Expr {
        let a = self.operand(arg);
        negated(sign, &a)
    }
}

fn called(name: &str, args: Vec<Expr>) -> Expr {
    let text: Vec<_> = args.iter().map(|a| &*a.text).collect();
    let text = format!("{name}({})", text.join(", "));
    Expr::atom(text, args.into_iter().flat_map(|a| a.reads).collect())
}

fn between(a: &Expr, sign: &str, b: &Expr) -> Expr {
    let text = format!("{} {sign} {}", wrapped(a), wrapped(b));
    Expr { text, compound: true, reads: [&a.reads[..], &b.reads].concat() }
}

fn negated(sign: &str, a: &Expr) -> Expr {
    let inner = if a.text.starts_with('-') { format!("({})", a.text) } else { wrapped(a) };
    Expr { text: format!("{sign}{inner}"), compound: true, reads: a.reads.clone() }
}

fn selected(cond: &Expr, a: &Expr, b: &Expr) -> Expr {
    let text = format!("{} ? {} : {}", wrapped(cond), wrapped(a), wrapped(b));
    Expr { text, compound: true, reads: [&cond.reads[..], &a.reads, &b.reads].concat() }
}

pub(super) fn wrapped(expr: &Expr) -> String {
    if expr.compound { format!("({})", expr.text) } else { expr.text.clone() }
}

pub(super) fn comparison(cmp: Cmp) -> &'static str {
    match cmp {
        Cmp::Eq => "==",
        Cmp::Ne => "!=",
        Cmp::Lt => "<",
        Cmp::Le => "<=",
        Cmp::Gt => ">",
        Cmp::Ge => ">=",
    }
}

pub(super) fn math(function: MathFn) -> &'static str {
    match function {
        MathFn::Sin => "sin",
        MathFn::Cos => "cos",
        MathFn::Tan => "tan",
        MathFn::Asin => "asin",
        MathFn::Acos => "acos",
        MathFn::Atan => "atan",
        MathFn::Atan2 => "atan2",
        MathFn::Sinh => "sinh",
        MathFn::Cosh => "cosh",
        MathFn::Tanh => "tanh",
        MathFn::Asinh => "asinh",
        MathFn::Acosh => "acosh",
        MathFn::Atanh => "atanh",
        MathFn::Exp => "exp",
        MathFn::Log => "log",
        MathFn::Log2 => "log2",
        MathFn::Log10 => "log10",
        MathFn::Cbrt => "cbrt",
        MathFn::Hypot => "hypot",
        MathFn::Erf => "erf",
        MathFn::Erfc => "erfc",
        MathFn::Pow => "pow",
        MathFn::Tgamma => "tgamma",
        MathFn::Lgamma => "lgamma",
        MathFn::Ldexp => "scale",
    }
}

/// Whether control never reaches the end of the list.
pub(super) fn ends(body: &[Stmt]) -> bool {
    match body.last() {
        Some(Stmt::Return(_) | Stmt::Trap { .. } | Stmt::Break(_)) => true,
        Some(Stmt::If { then, otherwise, .. }) => ends(then) && ends(otherwise),
        _ => false,
    }
}

/// The least and the greatest Integer whose product with `by` fits 64 bits; None if all do.
fn factors(by: i64) -> Option<(i64, i64)> {
    match by {
        0 | 1 => None,
        -1 => Some((-i64::MAX, i64::MAX)),
        // quotients are rounded towards zero
        2.. => Some((i64::MIN / by, i64::MAX / by)),
        _ => Some((i64::MAX / by, i64::MIN / by)),
    }
}

/// Whether repetitions of a loop can overlap. They can if each repetition loads something, or if all threads take the
/// same way. Loads inside branches do not count, because few threads run them in few repetitions. Unrolling such a loop
/// only adds text: that was half of the compile time of traffic, and a sixth for ten lines with one loop.
fn overlaps(body: &[Stmt]) -> bool {
    let (mut loads, mut parts) = (false, false);
    let (mut lists, mut within) = (vec![body], Vec::new());
    while let Some(list) = lists.pop() {
        for stmt in list {
            match stmt {
                Stmt::Load { .. } => loads = true,
                Stmt::Block { label, body } => {
                    within.push(*label);
                    lists.push(body);
                }
                Stmt::If { then, otherwise, .. } => {
                    let leaves = match &then[..] {
                        [Stmt::Break(to)] => !within.contains(to),
                        [Stmt::Trap { .. } | Stmt::Return(_)] => true,
                        _ => false,
                    };
                    parts |= !leaves || !otherwise.is_empty();
                }
                _ => {}
            }
        }
    }
    loads || !parts
}

/// The number of repetitions of a loop that counts from 0, if it is known and small.
pub(super) fn few_turns(label: LabelId, body: &[Stmt], size: usize) -> Option<usize> {
    let (counting, _) = Counting::of_body(label, body, false)?;
    let Operand::I64(end) = counting.end else { return None };
    let turns = usize::try_from(end).ok()?.div_ceil(counting.step as usize);
    (turns > 0 && turns * size <= UNROLL_WHOLE).then_some(turns)
}

/// The names of registers: `progress_12` for a Ruby variable, `v12` for a register without a name.
pub(super) fn names(func: &Func) -> Vec<String> {
    let name = |(index, var): (usize, &crate::ir::Var)| match var.name.as_deref().map(identifier) {
        Some(name) if !name.trim_matches('_').is_empty() => format!("{}_{index}", name.trim_start_matches('_')),
        _ => format!("v{index}"),
    };
    func.vars.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::factors;

    #[test]
    fn products_with_a_constant_leave_64_bits_right_behind_the_factors() {
        for by in [2, 3, 7, 1 << 32, i64::MAX, -1, -2, -3, -7, i64::MIN + 1, i64::MIN] {
            let (least, most) = factors(by).expect("some products do");
            for (there, beyond) in [(least, least.checked_sub(1)), (most, most.checked_add(1))] {
                assert!(there.checked_mul(by).is_some(), "{there} * {by}");
                assert!(beyond.is_none_or(|x| x.checked_mul(by).is_none()), "beyond {there} * {by}");
            }
        }
        assert_eq!([0, 1].map(factors), [None; 2]);
    }
}
