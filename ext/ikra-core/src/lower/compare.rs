//! Comparisons that go through another method, and members of Structs by index.
//!
//! Here: `Comparable` through `<=>`, `===` and `<=>` of Kernel through `==`, equality of Ranges, `s[…]`. Not here:
//! equality of arrays and Structs, which the library implements ([`crate::infer`]), and the order of numbers.

use super::body::Body;
use super::calls::Answer;
use super::numbers;
use super::tables::Form;
use super::value::Val;
use crate::diagnostic::Span;
use crate::error::Result;
use crate::infer::builtins::{Builtin, Ordered};
use crate::infer::calls::{Literal, Target, class_of};
use crate::infer::structs::Which;
use crate::ir::{Cmp, Op, Operand, Scalar, Trap};
use crate::syntax::ast::{ASKED, Name};
use crate::types::numeric::Method;
use crate::types::{Atom, Reach, Repr, Tag, Ty};

/// The receiver of a comparison, and the position of the call.
#[derive(Clone, Copy)]
pub struct Asker {
    pub atom: Atom,
    pub reach: Reach,
    pub val: Val,
    pub span: Span,
    pub at: Span,
}

impl Body<'_, '_> {
    /// The result of `name` on a receiver, called as Ruby's C code calls it.
    fn ask(&mut self, asker: Asker, name: &str, (atom, val): (Atom, Val)) -> Result<(Val, Ty)> {
        let arg = (val, Ty::of(atom, Reach::Mixed), None);
        let ty = Ty::of(asker.atom, asker.reach);
        let name = format!("{ASKED}{name}");
        self.call_values((asker.val, &ty), &name, &[arg], &[], true, asker.span, asker.at)
    }

    /// Whether two values are the same object or array.
    pub fn same_reference(&mut self, a: Atom, x: Val, b: Atom, y: Val) -> Val {
        match (a, b) {
            (Atom::Object(_), Atom::Object(_)) | (Atom::Array(_), Atom::Array(_)) => self.equal(a, x, b, y),
            _ => Val::bool(false),
        }
    }

    /// `obj == number` in place of `number == obj`, or its negation.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn asked_equality(&mut self, asker: Asker, negated: bool, number: (Atom, Val)) -> Answer {
        let (val, ty) = self.ask(asker, "==", number)?;
        if ty.is_never() {
            return Ok(None);
        }
        let truth = self.truth(val);
        Ok(Some(match (negated, truth) {
            (true, Operand::Bool(b)) => Val::bool(!b),
            (true, t) => Val::Bool(self.cx.b.bool(Op::Not, &[t])),
            (false, t) => Val::Bool(t),
        }))
    }

    /// `===` and `<=>` of Kernel, and the methods of Comparable.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn comparison(&mut self, builtin: Builtin, asker: Asker, args: &[(Atom, Val)]) -> Answer {
        match builtin {
            Builtin::CaseEqual => self.equal_or_same(asker, args[0]).map(|t| t.map(Val::Bool)),
            Builtin::Compare => {
                let Some(equal) = self.equal_or_same(asker, args[0])? else { return Ok(None) };
                Ok(Some(match equal {
                    Operand::Bool(true) => Val::int(0),
                    Operand::Bool(false) => Val::NIL,
                    equal => {
                        let (int, nil) = (Operand::I32(Tag::INT), Operand::I32(Tag::NIL));
                        let tag = self.cx.b.select(Scalar::I32, equal, int, nil);
                        Val::Union { tag, payload: Operand::I64(0) }
                    }
                }))
            }
            Builtin::Ordered(Ordered::Equal) => self.ordered_equal(asker, args[0]),
            Builtin::Ordered(Ordered::Between) => {
                let Some(low) = self.order(asker, args[0])? else { return Ok(None) };
                let out = self.place(Form::One(Repr::Bool), None);
                self.store(&out, Val::bool(false));
                let above = self.cx.b.icmp(Cmp::Ge, low, Operand::I64(0));
                self.branch(
                    above,
                    |s| {
                        if let Some(high) = s.order(asker, args[1])? {
                            let below = s.cx.b.icmp(Cmp::Le, high, Operand::I64(0));
                            s.store(&out, Val::Bool(below));
                        }
                        Ok(())
                    },
                    |_| Ok(()),
                )?;
                Ok(Some(self.load(&out)))
            }
            Builtin::Ordered(Ordered::Clamp) => self.clamp(asker, args[0], args[1]),
            Builtin::Ordered(how) => {
                let cmp = match how {
                    Ordered::Less => Cmp::Lt,
                    Ordered::LessOrEqual => Cmp::Le,
                    Ordered::Greater => Cmp::Gt,
                    _ => Cmp::Ge,
                };
                let Some(order) = self.order(asker, args[0])? else { return Ok(None) };
                Ok(Some(Val::Bool(self.cx.b.icmp(cmp, order, Operand::I64(0)))))
            }
            _ => Ok(None),
        }
    }

    /// Whether two are the same object, or `==` says that they are equal.
    fn equal_or_same(&mut self, asker: Asker, arg: (Atom, Val)) -> Result<Option<Operand>> {
        let Val::Bool(same) = self.same_reference(asker.atom, asker.val, arg.0, arg.1) else {
            let (val, ty) = self.ask(asker, "==", arg)?;
            return Ok(if ty.is_never() { None } else { Some(self.truth(val)) });
        };
        let out = self.place(Form::One(Repr::Bool), None);
        self.store(&out, Val::bool(true));
        self.branch(
            same,
            |_| Ok(()),
            |s| {
                let (val, ty) = s.ask(asker, "==", arg)?;
                if !ty.is_never() {
                    let truth = s.truth(val);
                    s.store(&out, Val::Bool(truth));
                }
                Ok(())
            },
        )?;
        Ok(match self.load(&out) {
            Val::Bool(v) => Some(v),
            _ => None,
        })
    }

    fn ordered_equal(&mut self, asker: Asker, arg: (Atom, Val)) -> Answer {
        let same = self.same_reference(asker.atom, asker.val, arg.0, arg.1);
        let by_identity = self.an.compares_by_identity(self.here.spec, asker.atom);
        if by_identity.map_err(|r| self.refused(r, asker.span))? {
            return Ok(Some(same));
        }
        let out = self.place(Form::One(Repr::Bool), None);
        self.store(&out, Val::bool(true));
        let same = self.truth(same);
        self.branch(
            same,
            |_| Ok(()),
            |s| {
                let (val, ty) = s.ask(asker, "<=>", arg)?;
                let place = s.result_place(&Ty::bool(), asker.span)?;
                s.dispatch(val, &ty, &place, |s, _, val| {
                    Ok(Some(match val {
                        Val::Int(_) | Val::Float(_) => Method::Eq.lower(&mut s.cx, val, &[Val::int(0)], None),
                        _ => Val::bool(false),
                    }))
                })?;
                let equal = s.load(&place);
                s.store(&out, equal);
                Ok(())
            },
        )?;
        Ok(Some(self.load(&out)))
    }

    /// The sign of `x <=> arg`; raises ArgumentError if that is nil. None: control does not continue.
    fn order(&mut self, asker: Asker, arg: (Atom, Val)) -> Result<Option<Operand>> {
        let (val, ty) = self.ask(asker, "<=>", arg)?;
        if ty.is_never() {
            return Ok(None);
        }
        let class = self.an.real_class(class_of(asker.atom));
        let class = self.an.class(class).name;
        let place = self.place(Form::One(Repr::Int), None);
        self.dispatch(val, &ty, &place, |s, _, val| {
            Ok(match val {
                Val::Int(_) => Some(val),
                Val::Float(f) => {
                    let (more, less) =
                        (s.cx.b.fcmp(Cmp::Gt, f, Operand::float(0.0)), s.cx.b.fcmp(Cmp::Lt, f, Operand::float(0.0)));
                    let sign = s.cx.b.select(Scalar::I64, less, Operand::I64(-1), Operand::I64(0));
                    Some(Val::Int(s.cx.b.select(Scalar::I64, more, Operand::I64(1), sign)))
                }
                _ => {
                    let before = format!("comparison of {class} with ");
                    numbers::mention(&mut s.cx, "ArgumentError", &before, arg.1, " failed");
                    None
                }
            })
        })?;
        if !ty.may_be(crate::types::Prims(crate::types::Prims::INT.0 | crate::types::Prims::FLOAT.0)) {
            return Ok(None);
        }
        Ok(match self.load(&place) {
            Val::Int(v) => Some(v),
            _ => None,
        })
    }

    fn clamp(&mut self, asker: Asker, min: (Atom, Val), max: (Atom, Val)) -> Answer {
        if min.0 != Atom::Nil && max.0 != Atom::Nil {
            let of_min = Asker { atom: min.0, reach: Reach::Mixed, val: min.1, ..asker };
            let Some(order) = self.order(of_min, max)? else { return Ok(None) };
            let wrong = self.cx.b.icmp(Cmp::Gt, order, Operand::I64(0));
            let message = numbers::clamp_message(&self.cx).to_string();
            let site = self.cx.site(Trap::Raise { class: "ArgumentError", message }, vec![]);
            self.cx.b.trap_if(wrong, site, vec![]);
        }
        let mut ty = Ty::of(asker.atom, asker.reach);
        for bound in [min.0, max.0].into_iter().filter(|a| *a != Atom::Nil) {
            ty = self.an.facts.join(&ty, &Ty::of(bound, Reach::Mixed));
        }
        let out = self.result_place(&ty, asker.span)?;
        self.store(&out, asker.val);
        let clamp_to_max = |s: &mut Self| -> Result<()> {
            if max.0 == Atom::Nil {
                return Ok(());
            }
            let Some(order) = s.order(asker, max)? else { return Ok(()) };
            let above = s.cx.b.icmp(Cmp::Gt, order, Operand::I64(0));
            s.branch(
                above,
                |s| {
                    s.store(&out, max.1);
                    Ok(())
                },
                |_| Ok(()),
            )
        };
        if min.0 == Atom::Nil {
            clamp_to_max(self)?;
            return Ok(Some(self.load(&out)));
        }
        let Some(order) = self.order(asker, min)? else { return Ok(None) };
        let below = self.cx.b.icmp(Cmp::Lt, order, Operand::I64(0));
        self.branch(
            below,
            |s| {
                s.store(&out, min.1);
                Ok(())
            },
            |s| {
                let above = s.cx.b.icmp(Cmp::Gt, order, Operand::I64(0));
                s.branch(above, clamp_to_max, |_| Ok(()))
            },
        )?;
        Ok(Some(self.load(&out)))
    }

    /// `==` of two Ranges. `exact`: `eql?`, which distinguishes 1 and 1.0.
    pub fn equal_ranges(&mut self, x: Val, y: Val, exact: bool) -> Val {
        let ends = |v: Val| match v {
            Val::IntRange { from, to, exclusive } => Some((Val::Int(from), Val::Int(to), exclusive)),
            Val::FloatRange { from, to, exclusive } => Some((Val::Float(from), Val::Float(to), exclusive)),
            _ => None,
        };
        let (Some((a, b, x)), Some((c, d, y))) = (ends(x), ends(y)) else { return Val::bool(false) };
        let method = if exact { Method::Eql } else { Method::Eq };
        let first = method.lower(&mut self.cx, a, &[c], None);
        let last = method.lower(&mut self.cx, b, &[d], None);
        let (first, last) = (self.truth(first), self.truth(last));
        let both = self.cx.b.bool(Op::And, &[first, last]);
        let differ = self.cx.b.icmp(Cmp::Ne, x, y);
        let alike = self.cx.b.bool(Op::Not, &[differ]);
        Val::Bool(self.cx.b.bool(Op::And, &[both, alike]))
    }

    // ---- members of Structs ----

    /// `s[…]`, and `s[…] = val`.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn struct_index(
        &mut self,
        asker: Asker,
        (index_atom, index): (Atom, Val),
        literal: Option<&Literal>,
        val: Option<Val>,
    ) -> Answer {
        let which = self.an.which_member(asker.atom, index_atom, literal);
        match which.map_err(|r| self.refused(r, asker.span))? {
            Which::One(member) => Ok(Some(self.touch_member(asker, &member, val))),
            Which::Any(members) => self.any_member(asker, &members, index, val),
            Which::Missing { class: "NameError", message } => {
                let name: Name = match literal {
                    Some(Literal::Sym(name)) => name.clone(),
                    _ => "".into(),
                };
                self.trap(Trap::Name { message, name }, None);
                Ok(None)
            }
            Which::Missing { class, message } => {
                self.trap(Trap::Raise { class, message }, None);
                Ok(None)
            }
            Which::NoIndex => {
                self.no_conversion(index, "Integer");
                Ok(None)
            }
        }
    }

    fn touch_member(&mut self, asker: Asker, member: &Name, val: Option<Val>) -> Val {
        match val {
            Some(val) => {
                self.write_field((asker.atom, asker.reach), asker.val, member, val);
                val
            }
            None => self.read_field(asker.atom, asker.val, member),
        }
    }

    fn any_member(&mut self, asker: Asker, members: &[Name], index: Val, val: Option<Val>) -> Answer {
        let Val::Int(asked) = index else { return Ok(None) };
        let size = Operand::I64(members.len() as i64);
        let negative = self.cx.b.icmp(Cmp::Lt, asked, Operand::I64(0));
        let counted = self.cx.b.i64(Op::Add, &[asked, size]);
        let at = self.cx.b.select(Scalar::I64, negative, counted, asked);
        for (how, outside) in [("small", (Cmp::Lt, Operand::I64(0))), ("large", (Cmp::Ge, size))] {
            let outside = self.cx.b.icmp(outside.0, at, outside.1);
            let (before, after) = ("offset ".into(), format!(" too {how} for struct(size:{})", members.len()));
            let site = self.cx.site(Trap::Mention { class: "IndexError", before, after }, vec![Repr::Int]);
            self.cx.b.trap_if(outside, site, vec![asked]);
        }
        let mut ty = Ty::never();
        for member in members {
            let read = self.an.read_field(self.here.spec, asker.atom, asker.reach, member);
            let read = read.map_err(|r| self.refused(r, asker.span))?;
            ty = self.an.facts.join(&ty, &read);
        }
        let place = self.result_place(&ty, asker.span)?;
        self.nth_member(asker, members, 0, at, val, &place)?;
        Ok(Some(val.unwrap_or_else(|| self.load(&place))))
    }

    fn nth_member(
        &mut self,
        asker: Asker,
        members: &[Name],
        n: i64,
        at: Operand,
        val: Option<Val>,
        place: &super::body::Place,
    ) -> Result<()> {
        let Some((first, rest)) = members.split_first() else { return Ok(()) };
        let touch = |s: &mut Self| {
            let read = s.touch_member(asker, first, val);
            if val.is_none() {
                s.store(place, read);
            }
            Ok(())
        };
        if rest.is_empty() {
            return touch(self);
        }
        let here = self.cx.b.icmp(Cmp::Eq, at, Operand::I64(n));
        self.branch(here, touch, |s| s.nth_member(asker, rest, n + 1, at, val, place))
    }

    /// Whether a number's `==` calls its argument's `==` instead.
    ///
    /// # Errors
    /// As inference.
    pub fn asks_equality(&mut self, method: Method, args: &[(Atom, Val)], span: Span) -> Result<bool> {
        let atoms: Vec<Atom> = args.iter().map(|a| a.0).collect();
        self.an.asks_equality(self.here.spec, method, &atoms).map_err(|r| self.refused(r, span))
    }

    /// The number of members of a Struct.
    pub fn struct_size(&mut self, atom: Atom) -> Val {
        let members = match atom {
            Atom::Object(class) => self.an.world.members(class),
            _ => None,
        };
        Val::int(members.map_or(0, |m| m.len() as i64))
    }

    /// The index of the member that a Symbol names, or -1.
    pub fn struct_place(&mut self, atom: Atom, name: Operand) -> Val {
        let members = match atom {
            Atom::Object(class) => self.an.world.members(class).unwrap_or_default(),
            _ => Vec::new(),
        };
        let mut place = Operand::I64(-1);
        for (n, member) in members.iter().enumerate() {
            let hash = Operand::I64(crate::world::symbol_hash(member));
            let this = self.cx.b.icmp(Cmp::Eq, name, hash);
            place = self.cx.b.select(Scalar::I64, this, Operand::I64(n as i64), place);
        }
        Val::Int(place)
    }

    /// The name of the member at an index in range.
    pub fn member_name(&mut self, atom: Atom, place: Operand) -> Val {
        let members = match atom {
            Atom::Object(class) => self.an.world.members(class).unwrap_or_default(),
            _ => Vec::new(),
        };
        let mut name = Operand::I64(0);
        for (n, member) in members.iter().enumerate() {
            let hash = Operand::I64(crate::world::symbol_hash(member));
            let this = self.cx.b.icmp(Cmp::Eq, place, Operand::I64(n as i64));
            name = self.cx.b.select(Scalar::I64, this, hash, name);
        }
        Val::Sym(name)
    }

    /// Whether a target only compares identities.
    pub fn is_identity(target: &Target) -> bool {
        matches!(target, Target::Builtin(Builtin::Equal | Builtin::NotEqual | Builtin::Identical))
    }
}
