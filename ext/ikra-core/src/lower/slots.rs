//! Reads and writes of ivars and array elements.
//!
//! Here: the columns of a slot, checks for frozen receivers, indices, atomics. Not here: addresses.

use super::body::{Body, operands};
use super::tables::Form;
use super::value::Val;
use crate::diagnostic::{Diagnostic, Span};
use crate::error::{Error, Result};
use crate::id::{ArrayKind, ClassId};
use crate::infer::Shape;
use crate::infer::accumulate::combine_of;
use crate::infer::builtins::is_immutable;
use crate::infer::calls::Target;
use crate::ir::{AtomicOp, Cmp, ColumnId, Op, Operand, Scalar, Stmt, Storage, Trap};
use crate::layout::schema::Slot;
use crate::syntax::ast::{self, Kind, Name, Node};
use crate::types::combine::Combine;
use crate::types::{Atom, Prims, Reach, Repr, StrWord, Tag, Ty};

impl Body<'_, '_> {
    // ---- slots ----

    /// Loads the value of a row.
    pub fn load_slot(&mut self, slot: &Slot, row: Operand) -> Val {
        for column in slot.value.iter().chain(&slot.tag) {
            self.t.columns[column.index()].read = true;
        }
        let form = Form::One(slot.repr);
        let mut vals = Vec::new();
        if let Some(tag) = slot.tag {
            vals.push(self.cx.b.load(Scalar::I32, tag, row));
        }
        if let (Some(value), Some(scalar)) = (slot.value, form.scalars().last()) {
            let narrow = self.holds_ids(slot);
            let loaded = self.cx.b.load(if narrow { Scalar::I32 } else { *scalar }, value, row);
            vals.push(if narrow { self.cx.b.op(Scalar::I64, Op::Widen, &[loaded]) } else { loaded });
        }
        super::body::from_operands(form, &vals)
    }

    /// Stores a value into a row, in the slot's form.
    pub fn store_slot(&mut self, slot: &Slot, row: Operand, val: Val) {
        if self.cx.b.ended() {
            return;
        }
        let columns: Vec<ColumnId> = slot.tag.into_iter().chain(slot.value).collect();
        for column in &columns {
            self.t.columns[column.index()].written = true;
        }
        let val = self.cast(val, Form::One(slot.repr));
        let narrow = self.holds_ids(slot);
        for (column, mut operand) in columns.into_iter().zip(operands(val)) {
            if narrow && Some(column) == slot.value {
                operand = self.cx.b.op(Scalar::I32, Op::Narrow, &[operand]);
            }
            self.cx.b.store(column, row, operand);
        }
    }

    /// Whether the payloads of a slot's unions are ids, which have fewer bits in the column than in registers.
    fn holds_ids(&self, slot: &Slot) -> bool {
        let is_u32 = |column: ColumnId| self.t.columns[column.index()].storage == Storage::U32;
        slot.repr == Repr::Union && slot.value.is_some_and(is_u32)
    }

    // ---- ivars ----

    /// The type of an ivar over all kinds of a receiver.
    ///
    /// # Errors
    /// As inference.
    pub fn ivar_ty(&mut self, receiver: &Ty, ivar: &Name, span: Span) -> Result<Ty> {
        let mut out = Ty::never();
        for atom in receiver.atoms() {
            let ty =
                self.an.read_field(self.here.spec, atom, receiver.reach, ivar).map_err(|r| self.refused(r, span))?;
            out = self.an.facts.join(&out, &ty);
        }
        Ok(out)
    }

    /// Reads an ivar of any kind of receiver.
    ///
    /// # Errors
    /// A type that mixes exceptions with other kinds.
    pub fn read_ivar(&mut self, receiver: Val, receiver_ty: &Ty, ivar: &Name, ty: &Ty, span: Span) -> Result<Val> {
        let place = self.result_place(ty, span)?;
        if let Val::Ref(_, id) = receiver {
            let fields: Vec<_> = receiver_ty.objects.iter().map(|class| (*class, ivar)).collect();
            if let Some(slot) = self.read_together(&fields) {
                let val = self.load_slot(&slot, id);
                return Ok(self.cast(val, place.form));
            }
        }
        self.dispatch(receiver, receiver_ty, &place, |s, atom, val| Ok(Some(s.read_field(atom, val, ivar))))?;
        Ok(self.load(&place))
    }

    /// The common slot of the ivars of several classes, if they share its columns. Marks all of them as read.
    pub fn read_together(&mut self, fields: &[(ClassId, &Name)]) -> Option<Slot> {
        let mut found: Option<Slot> = None;
        for (class, ivar) in fields {
            let slot = &self.t.field(*class, ivar)?.slot;
            match &found {
                Some(f) if f.repr == slot.repr && f.value == slot.value && f.tag == slot.tag => {}
                Some(_) => return None,
                None => found = Some(slot.clone()),
            }
        }
        for (class, ivar) in fields {
            // the host checks the facts about these fields at each call, even if no load is left
            self.t.field_mut(*class, ivar)?.read = true;
        }
        found
    }

    /// Reads an ivar of an object of one class.
    pub fn read_field(&mut self, atom: Atom, val: Val, ivar: &Name) -> Val {
        let (Atom::Object(class), Val::Ref(_, id)) = (atom, val) else { return Val::NEVER };
        let Some(field) = self.t.field_mut(class, ivar) else { return Val::NEVER };
        field.read = true;
        let slot = field.slot.clone();
        self.load_slot(&slot, id)
    }

    /// Writes an ivar of any kind of receiver.
    ///
    /// # Errors
    /// A type that mixes exceptions with other kinds.
    pub fn write_ivar(&mut self, receiver: Val, receiver_ty: &Ty, ivar: &Name, val: Val, span: Span) -> Result<()> {
        let place = self.result_place(&Ty::nil(), span)?;
        self.dispatch(receiver, receiver_ty, &place, |s, atom, object| {
            s.write_field((atom, receiver_ty.reach), object, ivar, val);
            Ok(Some(Val::NIL))
        })
    }

    /// Writes an ivar of an object of one class; raises FrozenError if it is frozen.
    pub fn write_field(&mut self, (atom, reach): (Atom, Reach), object: Val, ivar: &Name, val: Val) {
        let (Atom::Object(class), Val::Ref(h, id)) = (atom, object) else { return };
        if reach != Reach::Fresh || self.an.may_freeze(class) {
            self.check_frozen(class, h, id);
        }
        let Some(field) = self.t.field_mut(class, ivar) else { return };
        field.written = true;
        field.overwritten |= reach != Reach::Fresh;
        let slot = field.slot.clone();
        self.store_slot(&slot, id, val);
    }

    fn check_frozen(&mut self, class: ClassId, h: u32, id: Operand) {
        if !self.an.facts.may_be_frozen(class) {
            return;
        }
        let frozen = self.frozen_flag(h, id);
        let site = self.cx.site(Trap::Frozen, vec![Repr::Ref(h)]);
        self.cx.b.trap_if(frozen, site, vec![id]);
    }

    fn frozen_flag(&mut self, h: u32, id: Operand) -> Operand {
        let column = self.t.frozen(h);
        self.t.columns[column.index()].read = true;
        self.cx.b.load(Scalar::Bool, column, id)
    }

    /// `frozen?`
    ///
    /// # Errors
    /// As [`super::tables::Tables::array`].
    pub fn is_frozen(&mut self, atom: Atom, val: Val) -> Result<Val> {
        Ok(match (atom, val) {
            (Atom::Object(class), Val::Ref(h, id)) if !self.an.is_data(class) && !is_immutable(atom) => {
                self.t.schema.asks_frozen = true;
                Val::Bool(self.frozen_flag(h, id))
            }
            (Atom::Array(kind), Val::Array(_, packed)) => {
                let (offset, _) = self.array_parts(packed);
                let column = self.t.frozen_arrays(self.an, kind)?;
                self.t.schema.asks_frozen = true;
                self.t.columns[column.index()].read = true;
                Val::Bool(self.cx.b.load(Scalar::Bool, column, offset))
            }
            (Atom::Str, Val::Str(word)) => {
                self.t.schema.asks_frozen = true;
                let flag = self.cx.b.i64(Op::And, &[word, Operand::I64(StrWord::FROZEN as i64)]);
                Val::Bool(self.cx.b.icmp(Cmp::Ne, flag, Operand::I64(0)))
            }
            _ => Val::bool(true),
        })
    }

    /// `freeze` of an object or an array.
    ///
    /// # Errors
    /// As [`super::tables::Tables::array`].
    pub fn freeze(&mut self, atom: Atom, val: Val) -> Result<()> {
        let (column, row) = match (atom, val) {
            (Atom::Object(class), Val::Ref(h, id)) if !self.an.is_data(class) && !is_immutable(atom) => {
                (self.t.frozen(h), id)
            }
            (Atom::Array(kind), Val::Array(_, packed)) => {
                (self.t.frozen_arrays(self.an, kind)?, self.array_parts(packed).0)
            }
            _ => return Ok(()),
        };
        self.put_flag(column, row, true);
        Ok(())
    }

    /// Writes a frozen flag.
    pub fn put_flag(&mut self, column: ColumnId, row: Operand, frozen: bool) {
        if !self.cx.b.ended() {
            self.t.columns[column.index()].written = true;
            self.cx.b.store(column, row, Operand::Bool(frozen));
        }
    }

    /// Raises FrozenError if an array is frozen.
    ///
    /// # Errors
    /// As [`super::tables::Tables::array`].
    pub fn check_frozen_array(&mut self, kind: ArrayKind, packed: Operand) -> Result<()> {
        if !self.an.facts.arrays_may_be_frozen() {
            return Ok(());
        }
        let column = self.t.frozen_arrays(self.an, kind)?;
        self.t.columns[column.index()].read = true;
        let (offset, _) = self.array_parts(packed);
        let frozen = self.cx.b.load(Scalar::Bool, column, offset);
        let site = self.cx.site(Trap::Frozen, vec![Repr::Array(kind)]);
        self.cx.b.trap_if(frozen, site, vec![packed]);
        Ok(())
    }

    // ---- arrays ----

    /// Offset and length of an array value, both I64.
    pub fn array_parts(&mut self, packed: Operand) -> (Operand, Operand) {
        let offset = self.cx.b.i64(Op::UShr, &[packed, Operand::I64(32)]);
        let length = self.cx.b.i64(Op::And, &[packed, Operand::I64(0xffff_ffff)]);
        (offset, length)
    }

    /// An element at an index that is known to be in range.
    ///
    /// # Errors
    /// A type that mixes exceptions with other kinds.
    pub fn element_in_range(&mut self, kind: ArrayKind, packed: Operand, index: Operand) -> Result<Val> {
        let (offset, _) = self.array_parts(packed);
        let row = self.cx.b.i64(Op::Add, &[offset, index]);
        let field = self.t.array(self.an, kind)?;
        field.read = true;
        let slot = field.slot.clone();
        Ok(self.load_slot(&slot, row))
    }

    /// `array[index]`: a negative index counts from the end; out of range the result is nil (or refutes an assumption).
    ///
    /// # Errors
    /// A type that mixes exceptions with other kinds.
    pub fn element(&mut self, kind: ArrayKind, packed: Operand, index: Operand, span: Span) -> Result<Val> {
        let at = self.assumption(span);
        let (_, length) = self.array_parts(packed);
        let index = self.counted_from_start(index, length);
        let inside = self.cx.b.bool(Op::UCmp(Cmp::Lt), &[index, length]);
        let slot = self.t.array(self.an, kind)?.slot.clone();
        if slot.ty.is_never() {
            return Ok(Val::NIL);
        }
        if self.an.facts.holds(&at) {
            let outside = self.cx.b.bool(Op::Not, &[inside]);
            let site = self.cx.site(Trap::Refuted(at), vec![]);
            self.cx.b.trap_if(outside, site, vec![]);
            return self.element_in_range(kind, packed, index);
        }
        let ty = self.an.facts.join(&slot.ty, &Ty::nil());
        let place = self.result_place(&ty, span)?;
        self.branch(
            inside,
            |s| {
                let val = s.element_in_range(kind, packed, index)?;
                s.store(&place, val);
                Ok(())
            },
            |s| {
                s.store(&place, Val::NIL);
                Ok(())
            },
        )?;
        Ok(self.load(&place))
    }

    fn counted_from_start(&mut self, index: Operand, length: Operand) -> Operand {
        if let Operand::I64(n) = index
            && n >= 0
        {
            return index;
        }
        let negative = self.cx.b.icmp(Cmp::Lt, index, Operand::I64(0));
        let counted = self.cx.b.i64(Op::Add, &[index, length]);
        self.cx.b.select(Scalar::I64, negative, counted, index)
    }

    /// `array[index] = val`. Raises IndexError where Ruby would grow the array or refuse the index.
    ///
    /// # Errors
    /// A type that mixes exceptions with other kinds.
    pub fn write_element(&mut self, kind: ArrayKind, packed: Operand, index: Operand, val: Val) -> Result<()> {
        let row = self.element_row(kind, packed, index)?;
        let field = self.t.array(self.an, kind)?;
        field.written = true;
        field.overwritten = true;
        let slot = field.slot.clone();
        self.t.changed_arrays.insert(kind);
        self.store_slot(&slot, row, val);
        Ok(())
    }

    /// The row of an element that is to be written.
    fn element_row(&mut self, kind: ArrayKind, packed: Operand, index: Operand) -> Result<Operand> {
        let (offset, length) = self.array_parts(packed);
        self.check_frozen_array(kind, packed)?;
        let asked = index;
        let index = self.counted_from_start(index, length);
        let inside = self.cx.b.bool(Op::UCmp(Cmp::Lt), &[index, length]);
        let outside = self.cx.b.bool(Op::Not, &[inside]);
        let message = "index is outside of the array, and arrays do not grow in kernels";
        let too_small = self.cx.site(Trap::IndexTooSmall, vec![Repr::Int, Repr::Int]);
        let too_large = self.cx.site(Trap::limit("IndexError", message), vec![]);
        self.cx.b.when(outside, |b| {
            let least = b.i64(Op::Sub, &[Operand::I64(0), length]);
            let small = b.icmp(Cmp::Lt, asked, least);
            b.trap_if(small, too_small, vec![asked, least]);
            b.trap(too_large, vec![]);
        });
        Ok(self.cx.b.i64(Op::Add, &[offset, index]))
    }

    // ---- accumulations into shared slots ----

    /// `shared.x += n` as an atomic operation, if nothing else in the section touches the slot. False: it must be
    /// lowered as a read and a write.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn accumulate_slot(&mut self, node: &Node, target: &ast::Target, op: &str, value: &Node) -> Result<bool> {
        let Some((combine, negated)) = combine_of(op) else { return Ok(false) };
        if combine == Combine::Mul || !self.an.spec(self.here.spec).void.contains(&node.id) {
            return Ok(false);
        }
        let (receiver_ty, on_self) = match target {
            ast::Target::Ivar(..) => (self.self_ty(), true),
            ast::Target::Attr { receiver, safe: false, .. } => {
                (self.ty(receiver), matches!(receiver.kind, Kind::SelfRef))
            }
            ast::Target::Index { receiver, args, .. } if args.len() == 1 && self.ty(&args[0]) == Ty::int() => {
                (self.ty(receiver), true)
            }
            _ => return Ok(false),
        };
        let amount_ty = self.ty(value);
        let number = Prims(Prims::INT.0 | Prims::FLOAT.0);
        if receiver_ty.reach.is_owned() || receiver_ty.is_never() || !amount_ty.only(number) {
            return Ok(false);
        }
        let fits = |repr: Repr| match repr {
            Repr::Int => amount_ty == Ty::int(),
            Repr::Float => combine == Combine::Add && (amount_ty == Ty::int() || amount_ty == Ty::float()),
            _ => false,
        };
        let mut reprs = Vec::new();
        let mut ivars = Vec::new();
        let mut lacking = Vec::new();
        for atom in receiver_ty.atoms() {
            if let ast::Target::Attr { name, .. } = target
                && self.an.answers_nothing(self.here.spec, atom, name, on_self)
            {
                lacking.push(atom);
                continue;
            }
            let atomic = match (atom, target) {
                (Atom::Array(kind), ast::Target::Index { .. }) => {
                    let kind = self.an.facts.find(kind);
                    reprs.push(self.t.array(self.an, kind)?.slot.repr);
                    self.an.arrays.get(&kind).is_some_and(|a| a.is_atomic())
                }
                (Atom::Object(class), ast::Target::Ivar(ivar, _)) => {
                    ivars.push((class, ivar.clone()));
                    reprs.extend(self.t.field(class, ivar).map(|f| f.slot.repr));
                    self.is_atomic(class, ivar)
                }
                (Atom::Object(class), ast::Target::Attr { name, .. }) => {
                    match self.an.target(self.here.spec, atom, name, on_self) {
                        Ok(Target::Reader(ivar)) => {
                            ivars.push((class, ivar.clone()));
                            reprs.extend(self.t.field(class, &ivar).map(|f| f.slot.repr));
                            self.is_atomic(class, &ivar)
                        }
                        _ => false,
                    }
                }
                _ => false,
            };
            let same = reprs.iter().all(|r| *r == reprs[0] && fits(*r));
            if !atomic || !same {
                if receiver_ty.reach == Reach::Same && matches!(atom, Atom::Object(_)) {
                    return Err(self.read_and_accumulated(node, target));
                }
                return Ok(false);
            }
        }
        let float = reprs.first() == Some(&Repr::Float);
        let (receiver, index) = match target {
            ast::Target::Attr { receiver, .. } => (self.eval(receiver)?, None),
            ast::Target::Index { receiver, args, .. } => {
                let receiver = self.eval(receiver)?;
                (receiver, Some(self.eval(&args[0])?))
            }
            _ => (self.self_value()?, None),
        };
        if let ast::Target::Attr { name, span, .. } = target
            && !lacking.is_empty()
        {
            self.at(*span);
            let place = self.result_place(&Ty::nil(), *span)?;
            self.dispatch(receiver, &receiver_ty, &place, |s, atom, val| {
                if lacking.contains(&atom) {
                    s.no_method(val, name, false, on_self);
                }
                Ok(None)
            })?;
        }
        let amount = self.eval(value)?;
        self.at(node.span);
        let amount = match amount {
            Val::Int(v) if float => self.cx.b.f64(Op::IntToFloat, &[v]),
            Val::Int(v) | Val::Float(v) => v,
            _ => return Ok(true),
        };
        let amount = match (negated, float) {
            (false, _) => amount,
            (true, true) => self.cx.b.f64(Op::FNeg, &[amount]),
            (true, false) => {
                let site = self.cx.site(Trap::IntegerOverflow("-"), vec![]);
                self.cx.b.checked(crate::ir::CheckedOp::Sub, Operand::I64(0), amount, site)
            }
        };
        let atomic = match combine {
            Combine::Add if float => AtomicOp::FAdd,
            Combine::Add => AtomicOp::Add,
            Combine::And => AtomicOp::And,
            Combine::Or => AtomicOp::Or,
            _ => AtomicOp::Xor,
        };
        let site = (atomic == AtomicOp::Add).then(|| self.cx.site(Trap::IntegerOverflow("+"), vec![]));
        let place = self.result_place(&Ty::nil(), node.span)?;
        self.dispatch(receiver, &receiver_ty, &place, |s, atom, val| {
            let (column, row) = match (atom, val) {
                (Atom::Array(kind), Val::Array(_, packed)) => {
                    let Some(Val::Int(index)) = index else { return Ok(None) };
                    let row = s.element_row(kind, packed, index)?;
                    let field = s.t.array(s.an, kind)?;
                    (field.read, field.written, field.overwritten) = (true, true, true);
                    (field.slot.value, row)
                }
                (Atom::Object(class), Val::Ref(h, id)) => {
                    s.check_frozen(class, h, id);
                    let Some((_, ivar)) = ivars.iter().find(|(c, _)| *c == class) else { return Ok(None) };
                    let Some(field) = s.t.field_mut(class, ivar) else { return Ok(None) };
                    (field.read, field.written, field.overwritten) = (true, true, true);
                    (field.slot.value, id)
                }
                _ => return Ok(None),
            };
            if let Some(column) = column {
                (s.t.columns[column.index()].read, s.t.columns[column.index()].written) = (true, true);
                s.cx.b.push(Stmt::Atomic { op: atomic, column, row, value: amount, site });
            }
            Ok(Some(Val::NIL))
        })?;
        Ok(true)
    }

    fn is_atomic(&self, class: ClassId, ivar: &Name) -> bool {
        self.an.fields.get(&(class, ivar.clone())).is_some_and(|a| a.is_atomic())
    }

    fn read_and_accumulated(&self, node: &Node, target: &ast::Target) -> Error {
        let variable = match target {
            ast::Target::Attr { receiver, .. } => match &receiver.kind {
                Kind::Const(path) => ast::variable_of(&path.name),
                _ => None,
            },
            _ => None,
        };
        let (what, again, count) = match (variable, target) {
            (Some(variable), _) => (variable.to_string(), variable, ""),
            (None, ast::Target::Ivar(name, _) | ast::Target::Attr { name, .. }) => {
                (format!("{name} of one object"), &**name, "")
            }
            _ => (
                "what one Array or Hash holds".into(),
                "that",
                ", or count with ptally, or in a Hash that a local variable around the block holds",
            ),
        };
        let d = Diagnostic::new(
            &self.here.unit.source,
            node.span,
            format!("every element adds to {what}, and {again} is read or set in this section as well"),
        )
        .because("elements run at the same time, so what they read in between is not known")
        .advise(format!("read {again} after the section, or give the amounts as pmap's result{count}"));
        Error::Conflict(Box::new(d))
    }

    // ---- destructuring ----

    /// The parts of a destructured value: an array's elements, or the value and nils.
    ///
    /// # Errors
    /// A type that mixes exceptions with other kinds.
    pub fn spread(&mut self, val: Val, ty: &Ty, shape: Shape, span: Span) -> Result<Vec<Typed>> {
        let at = self.assumption(span);
        let mut out = Vec::new();
        for (i, alone) in shape.positions(1).into_iter().enumerate() {
            let mut part_ty = Ty::never();
            for atom in ty.atoms() {
                let part = match atom {
                    Atom::Array(_) => {
                        self.an.element(self.here.spec, (atom, ty.reach), &at).map_err(|r| self.refused(r, span))?
                    }
                    other if alone == Some(0) => Ty::of(other, ty.reach),
                    _ => Ty::nil(),
                };
                part_ty = self.an.facts.join(&part_ty, &part);
            }
            let place = self.result_place(&part_ty, span)?;
            self.dispatch(val, ty, &place, |s, atom, val| {
                Ok(Some(match (atom, val) {
                    (Atom::Array(kind), Val::Array(_, packed)) => {
                        let index = s.part_index(packed, shape, i);
                        s.element(kind, packed, index, span)?
                    }
                    _ if alone == Some(0) => val,
                    _ => Val::NIL,
                }))
            })?;
            out.push((self.load(&place), part_ty));
        }
        Ok(out)
    }

    /// The index of a part: [`Shape::positions`] of an array whose length is known only at run time.
    fn part_index(&mut self, packed: Operand, shape: Shape, part: usize) -> Operand {
        let first = shape.before + shape.optional;
        if part < first || !shape.rest && shape.optional == 0 {
            return Operand::I64(part as i64);
        }
        let (_, length) = self.array_parts(packed);
        let clamp = |s: &mut Self, value: Operand, cmp: Cmp, limit: usize| {
            let limit = Operand::I64(limit as i64);
            let beyond = s.cx.b.icmp(cmp, value, limit);
            s.cx.b.select(Scalar::I64, beyond, limit, value)
        };
        let from_back = self.cx.b.i64(Op::Sub, &[length, Operand::I64(shape.after as i64)]);
        let mut start = clamp(self, from_back, Cmp::Lt, shape.before);
        if !shape.rest {
            start = clamp(self, start, Cmp::Gt, first);
        }
        self.cx.b.i64(Op::Add, &[start, Operand::I64((part - first) as i64)])
    }

    /// Whether a destructured value has an optional part.
    pub fn is_given(&mut self, val: Val, ty: &Ty, shape: Shape, optional: usize, span: Span) -> Result<Operand> {
        let place = self.result_place(&Ty::bool(), span)?;
        self.dispatch(val, ty, &place, |s, _, val| {
            Ok(Some(Val::Bool(match val {
                Val::Array(_, packed) => {
                    let (_, length) = s.array_parts(packed);
                    s.cx.b.icmp(Cmp::Gt, length, Operand::I64((shape.before + shape.after + optional) as i64))
                }
                _ => Operand::Bool(shape.is_given(optional, 1)),
            })))
        })?;
        let given = self.load(&place);
        Ok(self.truth(given))
    }

    /// Whether a value is not nil.
    pub fn is_not_nil(&mut self, val: Val) -> Operand {
        match val {
            Val::Unit(crate::types::Unit::Nil) => Operand::Bool(false),
            Val::Union { tag, .. } => self.cx.b.icmp(Cmp::Ne, tag, Operand::I32(Tag::NIL)),
            Val::Exception { code, .. } => self.cx.b.icmp(Cmp::Ne, code, Operand::I32(0)),
            _ => Operand::Bool(true),
        }
    }
}

/// A value with its type.
pub type Typed = (Val, Ty);
