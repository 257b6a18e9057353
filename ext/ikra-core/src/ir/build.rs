//! Builds functions: a cursor that appends statements to the innermost open list.
//!
//! Here: registers, labels and nesting. Not here: any rule of Ruby (lowering calls this).

use super::{
    CheckedOp, Cmp, ColumnId, Func, FuncId, HeapId, LabelId, Op, Operand, ParamId, Scalar, SiteId, Stmt, Var, VarId,
};
use std::sync::Arc;

/// A function under construction.
pub struct Builder {
    func: Func,
    /// Open statement lists, innermost last.
    open: Vec<Vec<Stmt>>,
}

impl Builder {
    pub fn new(name: String, results: Vec<Scalar>) -> Self {
        let func = Func {
            name,
            params: Vec::new(),
            results,
            vars: Vec::new(),
            labels: 0,
            body: Vec::new(),
            recursive: false,
            stage: None,
        };
        Self { func, open: vec![Vec::new()] }
    }
    /// A builder for a function that keeps its registers and labels and gets a new body.
    pub fn again(mut func: Func) -> (Self, Vec<Stmt>) {
        let body = std::mem::take(&mut func.body);
        let mut builder = Self::new(String::new(), vec![]);
        builder.func = func;
        (builder, body)
    }
    pub fn results(&self) -> &[Scalar] {
        &self.func.results
    }
    pub fn finish(mut self) -> Func {
        assert_eq!(self.open.len(), 1, "every opened list was closed");
        self.func.body = self.open.pop().unwrap_or_default();
        self.func
    }
    pub fn var(&mut self, ty: Scalar, name: Option<Arc<str>>) -> VarId {
        let id = VarId::new(self.func.vars.len());
        self.func.vars.push(Var { ty, name });
        id
    }
    pub fn temp(&mut self, ty: Scalar) -> VarId {
        self.var(ty, None)
    }
    pub fn param(&mut self, ty: Scalar, name: Option<Arc<str>>) -> VarId {
        let id = self.var(ty, name);
        self.func.params.push(id);
        id
    }
    pub fn label(&mut self) -> LabelId {
        self.func.labels += 1;
        LabelId::new(self.func.labels - 1)
    }
    pub fn ty(&self, operand: Operand) -> Scalar {
        self.func.ty(operand)
    }
    /// Whether control cannot reach the cursor.
    pub fn ended(&self) -> bool {
        matches!(self.open.last().and_then(|l| l.last()), Some(Stmt::Break(_) | Stmt::Return(_) | Stmt::Trap { .. }))
    }
    /// Appends a statement, unless control cannot reach the cursor.
    pub fn push(&mut self, stmt: Stmt) {
        if !self.ended() {
            self.open.last_mut().expect("a list is open").push(stmt);
        }
    }
    pub fn op(&mut self, ty: Scalar, op: Op, args: &[Operand]) -> Operand {
        let dst = self.temp(ty);
        self.push(Stmt::Let { dst, op, args: args.to_vec() });
        Operand::Var(dst)
    }
    /// The launch parameter that an operand was read from in the current list.
    pub fn parameter(&self, mut operand: Operand) -> Option<ParamId> {
        for stmt in self.open.iter().rev().flat_map(|list| list.iter().rev()) {
            match stmt {
                Stmt::Let { dst, op, args } if Operand::Var(*dst) == operand => match op {
                    Op::Param(param) => return Some(*param),
                    Op::Copy => operand = args[0],
                    _ => return None,
                },
                _ => {}
            }
        }
        None
    }
    pub fn set(&mut self, dst: VarId, value: Operand) {
        self.push(Stmt::Let { dst, op: Op::Copy, args: vec![value] });
    }
    pub fn i64(&mut self, op: Op, args: &[Operand]) -> Operand {
        self.op(Scalar::I64, op, args)
    }
    pub fn f64(&mut self, op: Op, args: &[Operand]) -> Operand {
        self.op(Scalar::F64, op, args)
    }
    pub fn bool(&mut self, op: Op, args: &[Operand]) -> Operand {
        self.op(Scalar::Bool, op, args)
    }
    pub fn icmp(&mut self, cmp: Cmp, a: Operand, b: Operand) -> Operand {
        self.bool(Op::ICmp(cmp), &[a, b])
    }
    pub fn fcmp(&mut self, cmp: Cmp, a: Operand, b: Operand) -> Operand {
        self.bool(Op::FCmp(cmp), &[a, b])
    }
    pub fn select(&mut self, ty: Scalar, cond: Operand, a: Operand, b: Operand) -> Operand {
        self.op(ty, Op::Select, &[cond, a, b])
    }
    pub fn checked(&mut self, op: CheckedOp, a: Operand, b: Operand, site: SiteId) -> Operand {
        let dst = self.temp(Scalar::I64);
        self.push(Stmt::Checked { dst, op, args: [a, b], site });
        Operand::Var(dst)
    }
    pub fn load(&mut self, ty: Scalar, column: ColumnId, row: Operand) -> Operand {
        let dst = self.temp(ty);
        self.push(Stmt::Load { dst, column, row });
        Operand::Var(dst)
    }
    pub fn store(&mut self, column: ColumnId, row: Operand, value: Operand) {
        self.push(Stmt::Store { column, row, value });
    }
    /// The first of `count` new rows: an id for a class, an index for arrays.
    pub fn alloc(&mut self, ty: Scalar, heap: HeapId, count: Operand, site: SiteId) -> Operand {
        let dst = self.temp(ty);
        self.push(Stmt::Alloc { dst, heap, count, site });
        Operand::Var(dst)
    }
    /// The wrapped result, and whether it left 64 bits.
    pub fn overflowing(&mut self, op: CheckedOp, a: Operand, b: Operand) -> (Operand, Operand) {
        if op == CheckedOp::Mul {
            let (low, high) = (self.i64(Op::Mul, &[a, b]), self.i64(Op::MulHi, &[a, b]));
            let sign = self.i64(Op::Shr, &[low, Operand::I64(63)]);
            return (low, self.icmp(Cmp::Ne, high, sign));
        }
        if op == CheckedOp::And {
            let bits = self.i64(Op::And, &[a, b]);
            return (bits, self.icmp(Cmp::Lt, bits, Operand::I64(0)));
        }
        // it overflowed if the result's sign differs from those of both summands, or of minuend and negated subtrahend
        let result = self.i64(if op == CheckedOp::Add { Op::Add } else { Op::Sub }, &[a, b]);
        let other = if op == CheckedOp::Add { [b, result] } else { [a, b] };
        let (p, q) = (self.i64(Op::Xor, &[a, result]), self.i64(Op::Xor, &other));
        let both = self.i64(Op::And, &[p, q]);
        (result, self.icmp(Cmp::Lt, both, Operand::I64(0)))
    }
    pub fn trap(&mut self, site: SiteId, operands: Vec<Operand>) {
        self.push(Stmt::Trap { site, operands });
    }
    pub fn call(
        &mut self,
        func: FuncId,
        args: Vec<Operand>,
        results: &[Scalar],
        depth: Option<SiteId>,
    ) -> Vec<Operand> {
        let dsts: Vec<VarId> = results.iter().map(|ty| self.temp(*ty)).collect();
        self.push(Stmt::Call { func, args, dsts: dsts.clone(), depth });
        dsts.into_iter().map(Operand::Var).collect()
    }
    /// Opens a list. The caller closes it with [`Builder::close`].
    pub fn open(&mut self) {
        self.open.push(Vec::new());
    }
    pub fn close(&mut self) -> Vec<Stmt> {
        assert!(self.open.len() > 1, "a list was opened");
        self.open.pop().unwrap_or_default()
    }
    /// `if cond then … else … end`
    pub fn branch<T>(
        &mut self,
        cond: Operand,
        then: impl FnOnce(&mut Self) -> T,
        otherwise: impl FnOnce(&mut Self) -> T,
    ) -> (T, T) {
        self.open();
        let a = then(self);
        let then = self.close();
        self.open();
        let b = otherwise(self);
        let otherwise = self.close();
        self.push(Stmt::If { cond, then, otherwise });
        (a, b)
    }
    /// `if cond then … end`
    pub fn when(&mut self, cond: Operand, then: impl FnOnce(&mut Self)) {
        self.branch(cond, then, |_| {});
    }
    /// Traps at `site` if `cond` holds.
    pub fn trap_if(&mut self, cond: Operand, site: SiteId, operands: Vec<Operand>) {
        self.when(cond, |b| b.trap(site, operands));
    }
    /// A block that `body` leaves by a break to the label that it is given.
    pub fn block(&mut self, body: impl FnOnce(&mut Self, LabelId)) {
        let label = self.label();
        self.open();
        body(self, label);
        let body = self.close();
        self.push(Stmt::Block { label, body });
    }
    /// A loop that `body` leaves by a break to the label that it is given.
    pub fn repeat(&mut self, body: impl FnOnce(&mut Self, LabelId)) {
        let label = self.label();
        self.open();
        body(self, label);
        let body = self.close();
        self.push(Stmt::Loop { label, body });
    }
}
