//! Arrays that grow: capacity for elements, and the effect of `<<`, `pop` and the like on the value of a variable.
//!
//! Here: capacities. The capacity of an array of a kind that grows is at least its length rounded up to a power of two,
//! and at least [`MIN_CAPACITY`]. So the length alone tells whether one more element needs new rows. Not here: which
//! variable is the sole holder of the array ([`crate::infer::append`]), so that no code sees the old value.

use super::body::Body;
use super::calls::Arg;
use super::value::Val;
use crate::diagnostic::Span;
use crate::error::Result;
use crate::id::ArrayKind;
use crate::infer::append::{Growth, PUSH, PUSH_TO, WITH_TEXT, growth, in_hash, is_text, only_made_hashes};
use crate::ir::{Cmp, Op, Operand, Scalar, Stmt, VarId};
use crate::syntax::ast::{Call, Kind, Node};
use crate::types::{Atom, Reach, Ty};

/// The least capacity of an array that grows.
const MIN_CAPACITY: i64 = 4;

/// The bit of a made Hash's `walks` that says that others may hold lists in it.
pub const LENT: i64 = 1 << 32;

impl Body<'_, '_> {
    /// The capacity of an array of this length.
    pub fn room(&mut self, length: Operand) -> Operand {
        if let Operand::I64(n) = length {
            return Operand::I64((n.max(MIN_CAPACITY) as u64).next_power_of_two() as i64);
        }
        let b = &mut self.cx.b;
        let small = b.icmp(Cmp::Le, length, Operand::I64(MIN_CAPACITY));
        let less = b.i64(Op::Sub, &[length, Operand::I64(1)]);
        let zeros = b.i64(Op::Clz, &[less]);
        let bits = b.i64(Op::Sub, &[Operand::I64(64), zeros]);
        let bits = b.select(Scalar::I64, small, Operand::I64(2), bits);
        b.i64(Op::Shl, &[Operand::I64(1), bits])
    }

    /// `__buffer(n)`
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn buffer(&mut self, length: Operand, span: Span) -> Result<Val> {
        let kind = self.an.made_kind(self.here.spec, span);
        let (_, _, array) = self.rows(kind, length)?;
        Ok(array)
    }

    /// Writes an element at an index within the capacity.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn put_element(&mut self, kind: ArrayKind, packed: Operand, index: Operand, val: Val) -> Result<()> {
        let (offset, _) = self.array_parts(packed);
        let row = self.cx.b.i64(Op::Add, &[offset, index]);
        let field = self.t.array(self.an, kind)?;
        field.written = true;
        let slot = field.slot.clone();
        self.t.changed_arrays.insert(kind);
        self.store_slot(&slot, row, val);
        Ok(())
    }

    /// `result << x` and the like; None: some other call.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn grown(&mut self, node: &Node, call: &Call) -> Result<Option<Val>> {
        let Some((receiver, growth, steps)) = growth(call) else { return Ok(None) };
        let Kind::Local(local) = receiver.kind else { return Ok(None) };
        if !self.visited(receiver) {
            return Ok(None);
        }
        let ty = self.ty(receiver);
        if is_text(&ty)
            && matches!(&*call.name, "<<" | "concat")
            && self.an.reaches_rubys(self.here.spec, Atom::Str, &call.name)
        {
            let mut out = Val::NEVER;
            for args in steps {
                let (args, _) = self.args(args)?;
                if self.cx.b.ended() {
                    return Ok(Some(Val::NEVER));
                }
                let at = call.name_span;
                let text = self.read_local(local, &ty, at)?;
                let (longer, given) = self.call_values((text, &ty), WITH_TEXT, &args, &[], true, at, at)?;
                if given.is_never() || self.cx.b.ended() {
                    return Ok(Some(Val::NEVER));
                }
                self.write_local(local, longer)?;
                out = longer;
            }
            return Ok(Some(out));
        }
        let [Atom::Array(kind)] = ty.atoms()[..] else { return Ok(None) };
        if ty.reach != Reach::Fresh || !self.an.reaches_rubys(self.here.spec, Atom::Array(kind), &call.name) {
            return Ok(None);
        }
        let mut out = Val::NEVER;
        for args in steps {
            let (args, _) = self.args(args)?;
            if self.cx.b.ended() {
                return Ok(Some(Val::NEVER));
            }
            self.at(call.name_span);
            let Val::Array(_, packed) = self.read_local(local, &ty, call.name_span)? else { return Ok(None) };
            if self.an.freezes_arrays() {
                self.check_frozen_array(kind, packed)?;
            }
            let array = self.cx.b.temp(Scalar::I64);
            self.cx.b.set(array, packed);
            let given = self.growth(growth, kind, array, &args, node.span)?;
            // `given` may be in registers that a later step writes again
            self.write_local(local, Val::Array(kind, array.into()))?;
            out = given.unwrap_or(Val::Array(kind, array.into()));
        }
        Ok(Some(out))
    }

    /// `h[k] << x` of a Hash that kernels make, whose values are lists; None: some other call.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn grown_in_hash(&mut self, node: &Node, call: &Call) -> Result<Option<Val>> {
        let Some(parts) = in_hash(call) else { return Ok(None) };
        let hash = parts.hash;
        if !self.visited(hash) {
            return Ok(None);
        }
        let ty = self.ty(hash);
        if !only_made_hashes(&ty) || !(parts.or_new || self.an.may_have_lists(self.here.spec, &ty)) {
            return Ok(None);
        }
        let object = self.held(hash)?;
        let key = (self.held(parts.key)?, self.ty(parts.key), None);
        let at = call.name_span;
        for (step, args) in parts.steps.iter().enumerate() {
            if self.cx.b.ended() {
                return Ok(Some(Val::NEVER));
            }
            let list = match parts.ready(step) {
                Some(ready) => {
                    let given = std::slice::from_ref(&key);
                    let (list, list_ty) = self.call_values((object, &ty), ready, given, &[], true, at, at)?;
                    Some((self.copied(list), list_ty, None))
                }
                None => None,
            };
            let (args, _) = self.args(args)?;
            for (i, arg) in args.into_iter().enumerate() {
                if self.cx.b.ended() {
                    return Ok(Some(Val::NEVER));
                }
                let (push, given) = match &list {
                    Some(list) if i == 0 => (PUSH_TO, vec![key.clone(), list.clone(), arg]),
                    _ => (PUSH, vec![key.clone(), arg]),
                };
                self.call_values((object, &ty), push, &given, &[], true, at, at)?;
            }
        }
        if self.cx.b.ended() || self.an.spec(self.here.spec).void.contains(&node.id) {
            return Ok(Some(if self.cx.b.ended() { Val::NEVER } else { Val::NIL }));
        }
        let (list, list_ty) = self.call_values((object, &ty), "[]", &[key], &[], true, at, at)?;
        Ok(Some(if list_ty.is_never() { Val::NEVER } else { list }))
    }

    /// An array with one element more.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn grown_by(&mut self, kind: ArrayKind, packed: Operand, val: Val, span: Span) -> Result<Operand> {
        let array = self.cx.b.temp(Scalar::I64);
        self.cx.b.set(array, packed);
        self.push(kind, array.into(), val, span)?;
        Ok(array.into())
    }

    /// Changes the length of the array in `array`. Returns the call's result, if that is not the array.
    fn growth(
        &mut self,
        growth: Growth,
        kind: ArrayKind,
        array: VarId,
        args: &[Arg],
        span: Span,
    ) -> Result<Option<Val>> {
        Ok(match growth {
            Growth::Push => {
                for (val, ..) in args {
                    self.push(kind, array.into(), *val, span)?;
                }
                None
            }
            Growth::Concat => {
                let Some((Val::Array(other, from), ..)) = args.first().cloned() else { return Ok(None) };
                let (_, length) = self.array_parts(from);
                self.each_index(length, |s, i| {
                    let val = s.element_in_range(other, from, i)?;
                    s.push(kind, array.into(), val, span)
                })?;
                None
            }
            Growth::Clear => {
                let (offset, _) = self.array_parts(array.into());
                let empty = self.cx.b.i64(Op::Shl, &[offset, Operand::I64(32)]);
                self.cx.b.set(array, empty);
                None
            }
            Growth::Pop => {
                let val = self.element(kind, array.into(), Operand::I64(-1), span)?;
                self.shorten(array.into());
                Some(val)
            }
            Growth::Shift => {
                let val = self.element(kind, array.into(), Operand::I64(0), span)?;
                let (_, length) = self.array_parts(array.into());
                let rest = self.cx.b.i64(Op::Sub, &[length, Operand::I64(1)]);
                self.each_index(rest, |s, i| {
                    let next = s.cx.b.i64(Op::Add, &[i, Operand::I64(1)]);
                    let val = s.element_in_range(kind, array.into(), next)?;
                    s.put_element(kind, array.into(), i, val)
                })?;
                self.shorten(array.into());
                Some(val)
            }
        })
    }

    /// Removes one element, if there is one.
    fn shorten(&mut self, array: Operand) {
        let (_, length) = self.array_parts(array);
        let some = self.cx.b.icmp(Cmp::Gt, length, Operand::I64(0));
        let one = self.cx.b.i64(Op::BoolToInt, &[some]);
        if let Operand::Var(var) = array {
            self.cx.b.push(Stmt::Let { dst: var, op: Op::Sub, args: vec![array, one] });
        }
    }

    /// Runs `each` for the indices below a length.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn each_index(&mut self, length: Operand, each: impl FnOnce(&mut Self, Operand) -> Result<()>) -> Result<()> {
        let i = self.cx.b.temp(Scalar::I64);
        self.cx.b.set(i, Operand::I64(0));
        let done = self.cx.b.label();
        self.cx.b.open();
        let end = self.cx.b.icmp(Cmp::Ge, i.into(), length);
        self.cx.b.when(end, |b| b.push(Stmt::Break(done)));
        self.cx.b.push(Stmt::Poll);
        let outcome = each(self, i.into());
        self.cx.b.push(Stmt::Let { dst: i, op: Op::Add, args: vec![i.into(), Operand::I64(1)] });
        let body = self.cx.b.close();
        self.cx.b.push(Stmt::Loop { label: done, body });
        outcome
    }

    /// Appends an element. `array` is a register that gets the longer array.
    fn push(&mut self, kind: ArrayKind, array: Operand, val: Val, span: Span) -> Result<()> {
        let (_, length) = self.array_parts(array);
        let b = &mut self.cx.b;
        let less = b.i64(Op::Sub, &[length, Operand::I64(1)]);
        let both = b.i64(Op::And, &[length, less]);
        let power = b.icmp(Cmp::Eq, both, Operand::I64(0));
        let large = b.icmp(Cmp::Ge, length, Operand::I64(MIN_CAPACITY));
        let full = b.bool(Op::And, &[power, large]);
        self.branch(
            full,
            |s| {
                let twice = s.cx.b.i64(Op::Shl, &[length, Operand::I64(1)]);
                let Val::Array(_, wider) = s.rows_of(kind, twice)? else { return Ok(()) };
                s.each_index(length, |s, i| {
                    let val = s.element_in_range(kind, array, i)?;
                    s.put_element(kind, wider, i, val)
                })?;
                // the length stays that of the old array for now
                let longer = s.cx.b.i64(Op::Sub, &[wider, length]);
                if let Operand::Var(var) = array {
                    s.cx.b.set(var, longer);
                }
                Ok(())
            },
            |_| Ok(()),
        )?;
        let ty = self.an.elements(self.here.spec, kind, Reach::Fresh).unwrap_or_else(|_| Ty::never());
        let val = self.cast_to(val, &ty, span)?;
        self.put_element(kind, array, length, val)?;
        if let Operand::Var(var) = array {
            self.cx.b.push(Stmt::Let { dst: var, op: Op::Add, args: vec![array, Operand::I64(1)] });
        }
        Ok(())
    }

    fn rows_of(&mut self, kind: ArrayKind, length: Operand) -> Result<Val> {
        let (_, _, array) = self.rows(kind, length)?;
        Ok(array)
    }
}
