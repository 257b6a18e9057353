//! Remainders of sums and products beyond 64 bits: `(x * a + c) % m`.
//!
//! Here: which trees of `+`, `-` and `*` are computed as a whole, and their remainder. Not here: values of which a mask
//! uses only the low bits ([`crate::passes`]).

use super::body::Body;
use super::tables::Form;
use super::value::Val;
use crate::error::Result;
use crate::infer::builtins::Builtin;
use crate::infer::calls::Target;
use crate::ir::build::Builder;
use crate::ir::{Cmp, Op, Operand, Trap};
use crate::syntax::ast::{self, Call, Kind, Node};
use crate::types::numeric::Method;
use crate::types::{Atom, Repr, Ty};

/// An Integer that may have more than 64 bits until its remainder is taken.
enum Wide {
    Exact(Operand),
    Of {
        name: &'static str,
        parts: Box<(Wide, Wide)>,
        /// The low 64 bits.
        low: Operand,
        /// Bool: some operation in it left 64 bits.
        overflows: Operand,
    },
}

impl Wide {
    fn low(&self) -> Operand {
        match self {
            Wide::Exact(v) => *v,
            Wide::Of { low, .. } => *low,
        }
    }

    /// The remainder by `m` > 0.
    fn modulo(&self, b: &mut Builder, m: Operand) -> Operand {
        let Wide::Of { name, parts, .. } = self else { return self.low() };
        let (x, y) = (parts.0.modulo(b, m), parts.1.modulo(b, m));
        match *name {
            "*" => b.i64(Op::MulMod, &[x, y, m]),
            "+" => b.i64(Op::AddMod, &[x, y, m]),
            _ => {
                let negated = b.i64(Op::MulMod, &[y, Operand::I64(-1), m]);
                b.i64(Op::AddMod, &[x, negated, m])
            }
        }
    }
}

impl Body<'_, '_> {
    /// `(a * b + c) % m` of Integers: intermediate results have 128 bits, so they cannot overflow. None: it is some
    /// other call.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn wide_modulo(&mut self, call: &Call) -> Result<Option<Val>> {
        let (Some(dividend), [ast::Arg::Positional(m)]) = (&call.receiver, call.args.as_slice()) else {
            return Ok(None);
        };
        if !matches!(&*call.name, "%" | "modulo")
            || call.safe
            || self.wide_parts(dividend).is_none()
            || ![dividend, m].iter().all(|n| self.ty(n) == Ty::int())
            || !self.is_numeric(&call.name)
            || self.cx.shared.options.overflow == crate::config::Overflow::Wrap
        {
            return Ok(None);
        }
        let (Some(dividend), Val::Int(m)) = (self.wide(dividend)?, self.held(m)?) else { return Ok(None) };
        self.at(call.name_span);
        let out = self.place(Form::One(Repr::Int), None);
        let Wide::Of { name, low, overflows, .. } = &dividend else { return Ok(None) };
        let (name, low, overflows) = (*name, *low, *overflows);
        // 128 bits are slow, and rarely needed
        let positive = self.cx.b.icmp(Cmp::Gt, m, Operand::I64(0));
        let wide = self.cx.b.bool(Op::And, &[overflows, positive]);
        self.branch(
            wide,
            |s| {
                let val = Val::Int(dividend.modulo(&mut s.cx.b, m));
                s.store(&out, val);
                Ok(())
            },
            |s| {
                // overflows here only if m <= 0
                let val = Method::Modulo.lower(&mut s.cx, Val::Int(low), &[Val::Int(m)], None);
                let site = s.cx.site(Trap::IntegerOverflow(name), vec![]);
                s.cx.b.trap_if(overflows, site, vec![]);
                s.store(&out, val);
                Ok(())
            },
        )?;
        Ok(Some(self.load(&out)))
    }

    /// Whether Integers have Ruby's own method of that name.
    fn is_numeric(&mut self, name: &str) -> bool {
        matches!(self.an.target(self.here.spec, Atom::Int, name, false), Ok(Target::Builtin(Builtin::Numeric(_))))
    }

    /// Operator and operands of a sum, difference or product of Integers.
    fn wide_parts<'n>(&mut self, mut node: &'n Node) -> Option<(&'static str, &'n Node, &'n Node)> {
        while let Kind::Seq(items) = &node.kind
            && let [only] = items.as_slice()
        {
            node = only;
        }
        let Kind::Call(call) = &node.kind else { return None };
        let name = ["+", "-", "*"].into_iter().find(|n| *n == &*call.name)?;
        let (Some(a), [ast::Arg::Positional(b)]) = (&call.receiver, call.args.as_slice()) else { return None };
        let known = !call.safe && [a, b].iter().all(|n| self.ty(n) == Ty::int()) && self.is_numeric(name);
        known.then_some((name, a, b))
    }

    /// None: control does not continue after it.
    fn wide(&mut self, node: &Node) -> Result<Option<Wide>> {
        let Some((name, a, b)) = self.wide_parts(node) else {
            let Val::Int(v) = self.held(node)? else { return Ok(None) };
            return Ok(Some(Wide::Exact(v)));
        };
        let (Some(x), Some(y)) = (self.wide(a)?, self.wide(b)?) else { return Ok(None) };
        let (p, q) = (x.low(), y.low());
        let c = &mut self.cx.b;
        let (low, mut overflows) = if name == "*" {
            let (low, high) = (c.i64(Op::Mul, &[p, q]), c.i64(Op::MulHi, &[p, q]));
            let sign = c.i64(Op::Shr, &[low, Operand::I64(63)]);
            (low, c.icmp(Cmp::Ne, high, sign))
        } else {
            let low = c.i64(if name == "+" { Op::Add } else { Op::Sub }, &[p, q]);
            // a sum overflows if its sign is neither operand's; a difference, if the operands' signs differ and its
            // sign is not the minuend's
            let (r, s) = if name == "+" { (q, low) } else { (p, q) };
            let (p, q) = (c.i64(Op::Xor, &[p, low]), c.i64(Op::Xor, &[r, s]));
            let both = c.i64(Op::And, &[p, q]);
            (low, c.icmp(Cmp::Lt, both, Operand::I64(0)))
        };
        for part in [&x, &y] {
            if let Wide::Of { overflows: inner, .. } = part {
                overflows = c.bool(Op::Or, &[overflows, *inner]);
            }
        }
        Ok(Some(Wide::Of { name, parts: Box::new((x, y)), low, overflows }))
    }
}
