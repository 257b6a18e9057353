//! Types of comparisons that go through another method: `Comparable` through `<=>`, `===` and `<=>` of Kernel through
//! `==`.
//!
//! Here: their types. Not here: their code ([`crate::lower`]), and equality of numbers.

use super::builtins::{Builtin, Ordered};
use super::calls::{Answer, Args, Refusal, Target};
use super::{Analysis, SpecId};
use crate::syntax::ast::ASKED;
use crate::types::{Atom, Prims, Reach, Ty};
use crate::world::Assumption;

impl Analysis<'_> {
    /// The type of `name` on one kind, for one kind of argument, where Ruby's C code makes the call. Visibility does
    /// not matter.
    ///
    /// # Errors
    /// As [`Analysis::call`].
    pub fn asked(
        &mut self,
        from: SpecId,
        (atom, reach): (Atom, Reach),
        name: &str,
        arg: &Ty,
        at: &Assumption,
    ) -> Answer<(Target, Ty)> {
        let args = Args::of(vec![arg.clone()]);
        // an inlined method must belong to a call in the source
        let asked = format!("{ASKED}{name}");
        if let Target::Ruby(method) = self.target(from, atom, &asked, true)?
            && self.inlines(method, &args, None)?
        {
            let class = self.describe(atom);
            return Err(if arg.procs.is_empty() {
                Refusal::new(format!("kernels do not compare by {class}#{name}, which takes any number of arguments"))
                    .advise(format!("give it one parameter: def {name}(other)"))
            } else {
                Refusal::new(format!(
                    "kernels give no blocks or lambdas to {class}#{name} where something else asks it"
                ))
                .advise("compare with something else")
            });
        }
        self.call(from, (atom, reach), &asked, &args, true, at)
    }

    /// `===` and `<=>` of Kernel, and the methods of Comparable.
    ///
    /// # Errors
    /// As [`Analysis::call`], and results of `<=>` that are not numbers.
    pub(super) fn comparison(
        &mut self,
        from: SpecId,
        builtin: Builtin,
        (atom, reach): (Atom, Reach),
        args: &[Atom],
        at: &Assumption,
    ) -> Answer<Ty> {
        let other = Ty::of(args[0], Reach::Mixed);
        match builtin {
            Builtin::CaseEqual => {
                let (target, ty) = self.asked(from, (atom, reach), "==", &other, at)?;
                if target == Target::Builtin(Builtin::Equal) {
                    return Ok(ty);
                }
                let same = self.same_reference_ty(atom, args[0]);
                Ok(self.facts.join(&truths(&ty), &same))
            }
            Builtin::Compare => {
                let ty = self.comparison(from, Builtin::CaseEqual, (atom, reach), args, at)?;
                let mut out = Prims::default();
                if ty.may_be_truthy() {
                    out.0 |= Prims::INT.0;
                }
                if ty.may_be_falsy() {
                    out.0 |= Prims::NIL.0;
                }
                Ok(Ty::prim(out))
            }
            Builtin::Ordered(Ordered::Equal) => {
                if self.compares_by_identity(from, atom)? {
                    return Ok(self.same_reference_ty(atom, args[0]));
                }
                let (_, order) = self.asked(from, (atom, reach), "<=>", &other, at)?;
                self.check_order(&order)?;
                Ok(if order.is_never() { Ty::never() } else { Ty::bool() })
            }
            Builtin::Ordered(Ordered::Clamp) if args.len() == 1 => {
                Err(Refusal::new("kernels know clamp of objects with two arguments only")
                    .advise("write clamp(min, max)"))
            }
            Builtin::Ordered(how) => {
                // the first call decides whether it returns; the others may never run
                let mut returns = None;
                for arg in args.iter().filter(|a| **a != Atom::Nil || how != Ordered::Clamp) {
                    let (_, order) = self.asked(from, (atom, reach), "<=>", &Ty::of(*arg, Reach::Mixed), at)?;
                    let answers = self.check_order(&order)?;
                    returns.get_or_insert(answers);
                }
                let mut returns = returns.unwrap_or(true);
                if how != Ordered::Clamp {
                    return Ok(if returns { Ty::bool() } else { Ty::never() });
                }
                if let [min, max] = args
                    && *min != Atom::Nil
                    && *max != Atom::Nil
                {
                    let (_, order) = self.asked(from, (*min, Reach::Mixed), "<=>", &Ty::of(*max, Reach::Mixed), at)?;
                    returns &= self.check_order(&order)?;
                }
                if !returns {
                    return Ok(Ty::never());
                }
                let mut out = Ty::of(atom, reach);
                for arg in args.iter().filter(|a| **a != Atom::Nil) {
                    out = self.facts.join(&out, &Ty::of(*arg, Reach::Mixed));
                }
                Ok(out)
            }
            _ => Ok(Ty::never()),
        }
    }

    /// Whether `<=>` is Kernel's, which calls `==`. Comparable's `==` then stops the recursion, and only the same
    /// object is equal.
    ///
    /// # Errors
    /// As [`Analysis::target`].
    pub fn compares_by_identity(&mut self, from: SpecId, atom: Atom) -> Answer<bool> {
        Ok(self.target(from, atom, "?<=>", true)? == Target::Builtin(Builtin::Compare))
    }

    /// Whether the result of `<=>` may be a number; else the comparison raises.
    fn check_order(&mut self, order: &Ty) -> Answer<bool> {
        let known = Prims(Prims::INT.0 | Prims::FLOAT.0 | Prims::NIL.0);
        if !order.is_never() && !order.only(known) {
            return Err(Refusal::new("kernels know <=> that gives Integers, Floats and nil only")
                .advise("give -1, 0, 1 or nil"));
        }
        Ok(order.may_be(Prims(Prims::INT.0 | Prims::FLOAT.0)))
    }

    /// Whether two values are the same object or array; false for other values.
    pub fn same_reference_ty(&mut self, a: Atom, b: Atom) -> Ty {
        match (a, b) {
            (Atom::Array(_), Atom::Array(_)) => Ty::bool(),
            (Atom::Object(x), Atom::Object(y)) if x == y => Ty::bool(),
            _ => Ty::prim(Prims::FALSE),
        }
    }
}

/// The possible truth values of a type.
pub fn truths(ty: &Ty) -> Ty {
    super::calls::negate(&super::calls::negate(ty))
}
