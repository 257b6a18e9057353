//! Assignments: parameters and patterns, variables, ivars, elements, and operator assignments.
//!
//! Here: where types flow, and the order in which Ruby evaluates the parts. Not here: the effect of a type on an
//! environment or a slot ([`super`]), and the calls that an assignment may be ([`super::call`]).

use super::{Env, Walker, literal};
use crate::diagnostic::Span;
use crate::error::{Error, Result};
use crate::infer::calls::{Args, Target, divided, makes_no_array};
use crate::infer::{SharedWrite, accumulate};
use crate::syntax::ast::{self, AssignOp, Kind, LocalId, Name, Node, Params, Pattern};
use crate::types::combine::Combine;
use crate::types::numeric::{Kind as Number, Method, divmod_types};
use crate::types::{Atom, Prims, Reach, Ty};
use crate::world::{Assumption, Place, well_known};
use std::collections::BTreeSet;

impl Walker<'_, '_> {
    /// Binds a block's parameters to yielded `values`.
    pub(in crate::infer) fn bind(&mut self, params: &Params, values: &[Ty], env: &mut Env, span: Span) -> Result<()> {
        if !params.keywords.is_empty() || params.keyword_rest.is_some() || params.block.is_some() {
            return Err(self
                .error(span, "kernels know only plain parameters of blocks")
                .advise("name each parameter")
                .into());
        }
        if let [one] = values
            && takes_apart(params)
        {
            for atom in one.atoms() {
                let answer = self.an.asks_conversion(atom, "to_ary");
                self.refused(answer, span)?;
            }
        }
        let shape = Shape::of_block(params);
        let (spread, given): (Vec<Ty>, Option<usize>) = match values {
            [one] if takes_apart(params) && one.array.is_some() => {
                if let Some(ast::Rest(Some(local))) = params.rest {
                    let rest = self.rest_of(one, span, env)?;
                    self.assign_local(env, local, &rest);
                }
                (self.spread(one, shape, span)?, None)
            }
            _ => {
                self.collect_rest(params, values, env)?;
                (shape.pick(values.to_vec(), Ty::nil()), Some(values.len()))
            }
        };
        let mut parts = spread.iter();
        let mut next = || parts.next().cloned().unwrap_or_else(Ty::nil);
        for pattern in &params.required {
            self.bind_pattern(pattern, &next(), env, span)?;
        }
        for (i, (local, default)) in params.optional.iter().enumerate() {
            let part = next();
            let (mut as_given, mut left_out) = (env.clone(), env.clone());
            // if an array is destructured, its length decides
            as_given.dead |= given.is_some_and(|given| !shape.is_given(i, given));
            left_out.dead |= given.is_some_and(|given| shape.is_given(i, given));
            if !as_given.dead {
                self.assign_local(&mut as_given, *local, &part);
            }
            if !left_out.dead {
                let ty = self.eval(default, &mut left_out)?;
                self.assign_local(&mut left_out, *local, &ty);
            }
            *env = self.join_env(&as_given, &left_out);
        }
        for pattern in &params.post {
            self.bind_pattern(pattern, &next(), env, span)?;
        }
        Ok(())
    }

    pub(in crate::infer) fn bind_pattern(
        &mut self,
        pattern: &Pattern,
        ty: &Ty,
        env: &mut Env,
        span: Span,
    ) -> Result<()> {
        match pattern {
            Pattern::Local(local) => self.assign_local(env, *local, ty),
            Pattern::List { before, rest, after } => {
                let shape = Shape::of_list(before.len(), rest.is_some(), after.len());
                if let Some(ast::Rest(Some(local))) = rest {
                    let rest = self.rest_of(ty, span, env)?;
                    self.assign_local(env, *local, &rest);
                }
                let types = self.spread(ty, shape, span)?;
                for (pattern, ty) in before.iter().chain(after).zip(&types) {
                    self.bind_pattern(pattern, ty, env, span)?;
                }
            }
        }
        Ok(())
    }

    /// The types of the parts of a destructured value: an array's elements, or the value and nils.
    fn spread(&mut self, ty: &Ty, shape: Shape, span: Span) -> Result<Vec<Ty>> {
        let at = self.assumption(span);
        let mut out = vec![Ty::never(); shape.parts()];
        let alone = shape.positions(1);
        for atom in ty.atoms() {
            if self.an.answers_to(atom, "to_ary") {
                let class = self.an.describe(atom);
                return Err(self
                    .error(span, format!("kernels do not ask {class} for to_ary"))
                    .because("several variables are given one value, which Ruby would take apart by that method")
                    .advise("call it: a, b = *object.to_ary")
                    .into());
            }
            for (i, slot) in out.iter_mut().enumerate() {
                let part = match atom {
                    Atom::Array(_) => {
                        let answer = self.an.element(self.here.id, (atom, ty.reach), &at);
                        self.refused(answer, span)?
                    }
                    other if alone[i] == Some(0) => Ty::of(other, ty.reach),
                    _ => Ty::nil(),
                };
                *slot = self.an.facts.join(slot, &part);
            }
        }
        Ok(out)
    }

    // ---- assignments ----

    /// The types of a target's receiver and arguments, which Ruby evaluates before the value.
    pub(super) fn owner(&mut self, target: &ast::Target, env: &mut Env) -> Result<Option<(Ty, Vec<Ty>)>> {
        let (receiver, args) = match target {
            ast::Target::Attr { receiver, .. } => (receiver, &[][..]),
            ast::Target::Index { receiver, args, .. } => (receiver, &args[..]),
            _ => return Ok(None),
        };
        let receiver = self.receiver(receiver, "[]=", false, env)?;
        let args = args.iter().map(|arg| self.eval(arg, env)).collect::<Result<_>>()?;
        Ok(Some((receiver, args)))
    }

    pub(super) fn assign(&mut self, target: &ast::Target, ty: &Ty, env: &mut Env) -> Result<()> {
        let owner = self.owner(target, env)?;
        self.assign_to(target, owner, ty, env)
    }

    pub(super) fn assign_to(
        &mut self,
        target: &ast::Target,
        owner: Option<(Ty, Vec<Ty>)>,
        ty: &Ty,
        env: &mut Env,
    ) -> Result<()> {
        if env.dead {
            return Ok(());
        }
        let (receiver_ty, mut types) = owner.unwrap_or_default();
        match target {
            ast::Target::Local(local, _) => self.assign_local(env, *local, ty),
            ast::Target::Ivar(ivar, span) => {
                let receiver = self.self_type(*span)?;
                self.write_ivar(&receiver, ivar, ty, *span)?;
            }
            ast::Target::Attr { receiver, name, span, .. } => {
                let on_self = matches!(receiver.kind, Kind::SelfRef);
                let setter = format!("{name}=");
                let at = self.assumption(*span);
                self.dispatch(&receiver_ty, &setter, &Args::of(vec![ty.clone()]), on_self, *span, &at, env)?;
            }
            ast::Target::Index { receiver, args, span } => {
                let on_self = matches!(receiver.kind, Kind::SelfRef);
                types.push(ty.clone());
                let at = self.assumption(*span);
                let indices = indexed(args, types);
                if let Some(local) = self.replaces(receiver, &receiver_ty, &indices, *span, env)? {
                    let ty = self.dispatch(&receiver_ty, "%__with_part", &indices, on_self, *span, &at, env)?;
                    if !env.dead {
                        self.assign_new(env, local, &ty, true);
                    }
                    return Ok(());
                }
                self.dispatch(&receiver_ty, "[]=", &indices, on_self, *span, &at, env)?;
            }
            ast::Target::List { before, rest, after } => {
                let span = target.span();
                self.no_named_rest(rest.as_ref().is_some_and(Option::is_some), span)?;
                let shape = Shape::of_list(before.len(), rest.is_some(), after.len());
                let types = self.spread(ty, shape, span)?;
                for (target, ty) in before.iter().chain(after).zip(&types) {
                    self.assign(target, ty, env)?;
                }
            }
            ast::Target::Unsupported { what, advice, span } => {
                return Err(self.error(*span, format!("kernels do not know {what}")).advise(*advice).into());
            }
        }
        Ok(())
    }

    fn write_ivar(&mut self, receiver: &Ty, ivar: &Name, ty: &Ty, span: Span) -> Result<()> {
        if ty.is_never() {
            return Ok(());
        }
        for atom in receiver.atoms() {
            self.check_shared_write(atom, receiver.reach, ivar, span)?;
            self.note_write(atom, receiver.reach, Some(ivar), span);
            let written = self.an.write_field(self.here.id, atom, receiver.reach, ivar, ty);
            self.refused(written, span)?;
        }
        Ok(())
    }

    /// Notes a write to an ivar or (without an ivar) to an element of an array, if another element of the section may
    /// reach the same object.
    pub(super) fn note_write(&mut self, atom: Atom, reach: Reach, ivar: Option<&Name>, span: Span) {
        let place = match (atom, ivar) {
            (Atom::Object(class), Some(ivar)) => Place::Field(class, ivar.clone()),
            (Atom::Array(kind), None) => Place::Elements(kind),
            _ => return,
        };
        if reach.is_owned() {
            return;
        }
        let (source, span) = self.place(span);
        let (path, line) = (source.path.clone(), source.line_of(span.start));
        self.an.shared_writes.insert(SharedWrite { spec: self.here.id, path, line, place });
    }

    /// Refuses a write to an ivar of an object that all elements share, unless it is an accumulation. Ruby's answer
    /// would be that of the last element, or depend on what each element reads in between.
    pub(super) fn check_shared_write(&mut self, atom: Atom, reach: Reach, ivar: &Name, span: Span) -> Result<()> {
        if reach != Reach::Same || !matches!(atom, Atom::Object(_)) {
            return Ok(());
        }
        let class = self.an.describe(atom);
        let (what, again) = match class.starts_with("@@") {
            true => (class.clone(), &*class),
            false => (format!("{ivar} of the same {class}"), &**ivar),
        };
        let d = self
            .error(span, format!("every element writes {what} here"))
            .because("elements run at the same time, so which of them writes last is not known")
            .advise(format!(
                "only add to it ({again} += …), or give the value as pmap's result and assign it afterwards"
            ));
        Err(Error::Conflict(Box::new(d)))
    }

    pub(super) fn op_assign(
        &mut self,
        node: &Node,
        target: &ast::Target,
        op: &AssignOp,
        value: &Node,
        env: &mut Env,
    ) -> Result<Ty> {
        let at = self.assumption(node.span);
        if self.accumulates(node, target, op, value, env)? || self.adds_to_live(node, target, op, value, env)? {
            return Ok(if env.dead { Ty::never() } else { Ty::nil() });
        }
        if self.made_in_hash(node, target, op, value, env)? {
            return Ok(if env.dead { Ty::never() } else { Ty::nil() });
        }
        let (old, place) = self.read_target(target, env, &at)?;
        let old = if env.dead { old } else { self.note(node.id, &old, |s| &mut s.op_reads) };
        match op {
            AssignOp::Method(name) => {
                let arg = self.eval(value, env)?;
                let mut args = Args::of(vec![arg]);
                args.literals[0] = literal(value);
                let ty = self.dispatch(&old, name, &args, false, node.span, &at, env)?;
                self.write_place(&place, &ty, env, &at)?;
                Ok(ty)
            }
            AssignOp::Or | AssignOp::And => {
                let or = *op == AssignOp::Or;
                let keep = old.filter(|a| matches!(a, Atom::Nil | Atom::False) != or);
                let mut assign_env = env.clone();
                assign_env.dead |= if or { !old.may_be_falsy() } else { !old.may_be_truthy() };
                let new = self.eval(value, &mut assign_env)?;
                self.write_place(&place, &new, &mut assign_env, &at)?;
                if let ast::Target::Local(local, _) = target {
                    self.keep(env, *local, |_, a| matches!(a, Atom::Nil | Atom::False) != or);
                }
                env.dead |= keep.is_never();
                *env = self.join_env(env, &assign_env);
                Ok(self.join(&keep, &new))
            }
        }
    }

    /// Notes `shared.count += n` and `shared[i] += n` of numbers as accumulations, if the value is not used. An
    /// accumulation is an atomic operation if nothing else in the section touches the slot. False: it is an ordinary
    /// read and write.
    fn accumulates(
        &mut self,
        node: &Node,
        target: &ast::Target,
        op: &AssignOp,
        value: &Node,
        env: &mut Env,
    ) -> Result<bool> {
        let AssignOp::Method(op) = op else { return Ok(false) };
        if !self.an.may_accumulate(self.here.id, node.id, op) {
            return Ok(false);
        }
        let receiver = match target {
            ast::Target::Ivar(_, span) => self.self_type(*span)?,
            ast::Target::Attr { receiver, safe: false, .. } => self.eval(receiver, env)?,
            ast::Target::Index { receiver, args, .. } if args.len() == 1 => {
                self.receiver(receiver, "[]", false, env)?
            }
            _ => return Ok(false),
        };
        let on_self = match target {
            ast::Target::Attr { receiver, .. } => matches!(receiver.kind, Kind::SelfRef),
            _ => true,
        };
        if matches!(target, ast::Target::Index { .. })
            && !(self.reaches_rubys(&receiver, "[]") && self.reaches_rubys(&receiver, "[]="))
        {
            return Ok(false);
        }
        let Some((slots, number)) = self.slots(&receiver, target, on_self, node.span)? else { return Ok(false) };
        if number == Prims::FLOAT && !matches!(&**op, "+" | "-") {
            return Ok(false);
        }
        if let ast::Target::Index { args, .. } = target
            && !self.eval(&args[0], env)?.only(Prims::INT)
        {
            return Ok(false);
        }
        let amount = self.eval(value, env)?;
        if !(amount.only(number) || number == Prims::FLOAT && amount.only(Prims::INT)) {
            return if is_mixed(&amount) { Err(self.mixed(value.span)) } else { Ok(false) };
        }
        for slot in slots {
            match slot {
                Place::Field(class, ivar) => self.an.accumulate_field(class, &ivar),
                Place::Elements(kind) => self.an.accumulate_element(kind),
                Place::Root(_) => {}
            }
        }
        Ok(true)
    }

    /// For `array[i] += n` of live arrays, whose value is not used: calls the method of theirs that accumulates. False:
    /// as above.
    fn adds_to_live(
        &mut self,
        node: &Node,
        target: &ast::Target,
        op: &AssignOp,
        value: &Node,
        env: &mut Env,
    ) -> Result<bool> {
        let (AssignOp::Method(op), ast::Target::Index { receiver, args, span }) = (op, target) else {
            return Ok(false);
        };
        let on_self = matches!(receiver.kind, Kind::SelfRef);
        let ty = self.receiver(receiver, "[]", false, env)?;
        let Some(name) = self.an.live_accumulation(self.here.id, node.id, &ty, op) else { return Ok(false) };
        let types = args.iter().map(|arg| self.eval(arg, env)).collect::<Result<Vec<_>>>()?;
        let mut indices = indexed(args, types);
        indices.positional.push(self.eval(value, env)?);
        indices.literals.push(literal(value));
        let at = self.assumption(node.span);
        self.dispatch(&ty, &name, &indices, on_self, *span, &at, env)?;
        Ok(true)
    }

    /// The slots that an accumulation would touch, if all of them are shared and hold numbers of one kind. Receivers
    /// without such a method have none.
    fn slots(
        &mut self,
        receiver: &Ty,
        target: &ast::Target,
        on_self: bool,
        span: Span,
    ) -> Result<Option<(Vec<Place>, Prims)>> {
        if receiver.reach.is_owned() || receiver.is_never() {
            return Ok(None);
        }
        let mut slots = Vec::new();
        let mut number = None;
        for atom in receiver.atoms() {
            let (place, ty) = match (atom, target) {
                (Atom::Array(kind), ast::Target::Index { .. }) => {
                    let answer = self.an.elements(self.here.id, kind, Reach::Any);
                    (Place::Elements(kind), self.opaque(answer, span)?)
                }
                // NoMethodError, before any slot is read or written
                (_, ast::Target::Attr { name, .. }) if self.an.answers_nothing(self.here.id, atom, name, on_self) => {
                    continue;
                }
                (Atom::Object(class), ast::Target::Ivar(..) | ast::Target::Attr { .. }) => {
                    let ivar = match target {
                        ast::Target::Attr { name, .. } => {
                            let reader = self.an.target(self.here.id, atom, name, on_self);
                            let writer = self.an.target(self.here.id, atom, &format!("{name}="), on_self);
                            match (reader, writer) {
                                (Ok(Target::Reader(a)), Ok(Target::Writer(b))) if a == b => a,
                                _ => return Ok(None),
                            }
                        }
                        ast::Target::Ivar(ivar, _) => ivar.clone(),
                        _ => return Ok(None),
                    };
                    let answer = self.an.field(self.here.id, class, &ivar, Reach::Any);
                    (Place::Field(class, ivar), self.opaque(answer, span)?)
                }
                _ => return Ok(None),
            };
            let here = if ty.only(Prims::INT) { Prims::INT } else { Prims::FLOAT };
            if is_mixed(&ty) {
                return Err(self.mixed(span));
            }
            if !ty.only(here) || *number.get_or_insert(here) != here {
                return Ok(None);
            }
            slots.push(place);
        }
        Ok(number.map(|number| (slots, number)))
    }

    /// The error of an accumulation of numbers of several kinds in a shared slot. It cannot be an atomic operation, so
    /// elements would overwrite each other's values.
    fn mixed(&self, span: Span) -> Error {
        let d = self
            .error(span, "elements add Integers and Floats, or nil, to what they may share here")
            .because("it is one step for each element only where all are Integers, or all Floats: else one loses what another adds")
            .advise(
                "write .to_f or .to_i where kinds mix, begin with 0.0, and keep nil out; if no two elements add to the same object, write it out: a.n = a.n + x",
            );
        Error::Conflict(Box::new(d))
    }

    fn read_target(&mut self, target: &ast::Target, env: &mut Env, at: &Assumption) -> Result<(Ty, Written)> {
        Ok(match target {
            ast::Target::Local(local, span) => (self.read_local(*local, env, *span)?, Written::Local(*local)),
            ast::Target::Ivar(ivar, span) => {
                let receiver = self.self_type(*span)?;
                (self.read_ivar(&receiver, ivar, *span)?, Written::Ivar(receiver, ivar.clone(), *span))
            }
            ast::Target::Attr { receiver, name, span, safe } => {
                if *safe {
                    return Err(self
                        .error(*span, "kernels do not know &. before an operator assignment")
                        .advise("ask first: `object.x += 1 if object`")
                        .into());
                }
                let on_self = matches!(receiver.kind, Kind::SelfRef);
                let ty = self.eval(receiver, env)?;
                let old = self.dispatch(&ty, name, &Args::default(), on_self, *span, at, env)?;
                (
                    old,
                    Written::Call {
                        receiver: ty,
                        name: format!("{name}="),
                        args: Args::default(),
                        on_self,
                        span: *span,
                    },
                )
            }
            ast::Target::Index { receiver, args, span } => {
                let on_self = matches!(receiver.kind, Kind::SelfRef);
                let ty = self.receiver(receiver, "[]", false, env)?;
                let mut types = Vec::new();
                for arg in args {
                    types.push(self.eval(arg, env)?);
                }
                let indices = indexed(args, types);
                let old = self.dispatch(&ty, "[]", &indices, on_self, *span, at, env)?;
                (old, Written::Call { receiver: ty, name: "[]=".into(), args: indices, on_self, span: *span })
            }
            ast::Target::List { .. } => unreachable!("a list is no target of an operator assignment"),
            ast::Target::Unsupported { what, advice, span } => {
                return Err(self.error(*span, format!("kernels do not know {what}")).advise(*advice).into());
            }
        })
    }

    fn write_place(&mut self, place: &Written, ty: &Ty, env: &mut Env, at: &Assumption) -> Result<()> {
        if env.dead {
            return Ok(());
        }
        match place {
            Written::Local(local) => self.assign_local(env, *local, ty),
            Written::Ivar(receiver, ivar, span) => self.write_ivar(receiver, ivar, ty, *span)?,
            Written::Call { receiver, name, args, on_self, span } => {
                let mut args = args.clone();
                args.positional.push(ty.clone());
                args.literals.push(None);
                self.dispatch(receiver, name, &args, *on_self, *span, at, env)?;
            }
        }
        Ok(())
    }

    /// The type that a splat takes of a destructured value.
    fn rest_of(&mut self, ty: &Ty, span: Span, env: &mut Env) -> Result<Ty> {
        let at = self.assumption(span);
        self.dispatch(ty, "%__rest", &Args::of(vec![Ty::int(), Ty::int()]), false, span, &at, env)
    }

    pub(super) fn no_named_rest(&self, named: bool, span: Span) -> Result<()> {
        if !named {
            return Ok(());
        }
        Err(self.error(span, "kernels do not know splats in assignments").advise("name each variable").into())
    }

    pub(super) fn multi_assign(
        &mut self,
        node: &Node,
        targets: &[&ast::Target],
        shape: Shape,
        value: &Node,
        env: &mut Env,
    ) -> Result<Ty> {
        let owners = targets.iter().map(|t| self.owner(t, env)).collect::<Result<Vec<_>>>()?;
        // the value of the whole assignment is the right-hand array, which is made only if the value is used
        let used = !self.an.spec(self.here.id).void.contains(&node.id);
        let mut whole = Ty::nil();
        let mut new = Vec::new();
        let types = match &value.kind {
            Kind::Array(items) if items.iter().all(|i| !matches!(i.kind, Kind::Splat(_))) => {
                let mut types = Vec::new();
                for item in items {
                    types.push(self.eval(item, env)?);
                    let made = !used && self.makes_new(item);
                    new.push(made);
                }
                if used && !env.dead {
                    whole = self.array_of(&types, value.span)?;
                }
                new = shape.pick(new, false);
                shape.pick(types, Ty::nil())
            }
            Kind::Call(call)
                if let Some([receiver, arg]) = divided(call)
                    && let (receiver, arg) = (self.eval(receiver, env)?, self.eval(arg, env)?)
                    && makes_no_array(&receiver, &arg)
                    && self.reaches_rubys(&receiver, "divmod") =>
            {
                let types = self.divmod(&receiver, &arg, value.span, env)?.to_vec();
                if used && !env.dead {
                    whole = self.array_of(&types, value.span)?;
                }
                shape.pick(types, Ty::nil())
            }
            _ => {
                whole = self.eval(value, env)?;
                self.spread(&whole, shape, node.span)?
            }
        };
        for (i, ((target, owner), ty)) in targets.iter().zip(owners).zip(&types).enumerate() {
            match target {
                ast::Target::Local(local, _) => {
                    self.assign_new(env, *local, ty, new.get(i).copied().unwrap_or_default());
                }
                _ => self.assign_to(target, owner, ty, env)?,
            }
        }
        Ok(if env.dead { Ty::never() } else { whole })
    }

    /// The types of both results of `divmod` of numbers.
    fn divmod(&mut self, receiver: &Ty, arg: &Ty, span: Span, env: &mut Env) -> Result<[Ty; 2]> {
        let (mut q, mut r) = (Ty::never(), Ty::never());
        for a in receiver.atoms() {
            for b in arg.atoms() {
                let asked = self.an.asks_argument(Method::Div, a, &[b]);
                self.refused(asked, span)?;
                let (x, y) = divmod_types(Number::of(a), Number::of(b));
                q = self.join(&q, &x);
                r = self.join(&r, &y);
            }
        }
        env.dead |= q.is_never();
        Ok([q, r])
    }

    /// `sum += x` on a captured local.
    pub(super) fn contribute(&mut self, node: &Node, env: &mut Env) -> Result<Ty> {
        let unit = self.here.unit.clone();
        let c = accumulate::contribution(&unit, node).expect("found to be one by the same function");
        if let Kind::If { cond, .. } = &node.kind
            && let Kind::Call(test) = &cond.kind
        {
            // types the tested side, since other code may ask for it
            for side in test.receiver.iter() {
                if !matches!(side.kind, Kind::Local(l) if l == c.local) {
                    self.eval(side, env)?;
                }
            }
        }
        let ty = self.eval(c.value, env)?;
        if env.dead {
            return Ok(Ty::never());
        }
        let asked: &[&str] = match c.combine {
            Combine::Add if c.negated => &["-"],
            Combine::Add => &["+"],
            Combine::Mul => &["*"],
            Combine::And => &["&"],
            Combine::Or => &["|"],
            Combine::Xor => &["^"],
            _ => &["<", ">", "<=>"],
        };
        let operator = c.wording.operator;
        let extreme = matches!(operator, "min" | "max") && !self.an.is_unaltered_of(well_known::ARRAY, operator);
        let altered = asked.iter().copied().find(|name| !self.an.combines_as_rubys(self.here.id, name));
        if let Some(name) = extreme.then_some(operator).or(altered) {
            return Err(self
                .error(c.value.span, format!("kernels do not accumulate with a redefined {name}"))
                .because("elements run at the same time, and the parts of a sum are brought together behind them")
                .advise("give the values as pmap's result, and combine them afterwards")
                .into());
        }
        let old = self.an.accumulators.types.get(&c.local).cloned().unwrap_or_default();
        let new = self.join(&old, &ty);
        let known = new.only(Prims::INT) || new.only(Prims::FLOAT) && !c.combine.is_bitwise();
        if !known {
            let kinds: BTreeSet<String> = new.atoms().into_iter().map(|atom| self.an.describe(atom)).collect();
            let kinds = kinds.into_iter().collect::<Vec<_>>().join(" and ");
            let name = &unit.locals[c.local.index()].name;
            return Err(self
                .error(c.value.span, format!("{name} accumulates {kinds} here"))
                .because("contributions of elements are combined as Integers or as Floats, one of them throughout")
                .advise("write .to_f or .to_i where kinds mix, and keep nil out")
                .into());
        }
        self.an.accumulators.types.insert(c.local, new);
        Ok(Ty::nil())
    }
}

/// Whether a type has numbers of several kinds, or numbers and nil.
fn is_mixed(ty: &Ty) -> bool {
    let is_number = |atom: Atom| matches!(atom, Atom::Int | Atom::Float);
    let atoms = ty.atoms();
    atoms.len() > 1
        && atoms.iter().any(|atom| is_number(*atom))
        && atoms.iter().all(|atom| is_number(*atom) || *atom == Atom::Nil)
}

/// The arguments of an index, with those that are literals. `types` may also contain the assigned value.
fn indexed(args: &[Node], types: Vec<Ty>) -> Args {
    let mut out = Args::of(types);
    for (slot, arg) in out.literals.iter_mut().zip(args) {
        *slot = literal(arg);
    }
    out
}

/// The parts into which values are distributed: a block's parameters, a list in parentheses, or an assignment's
/// targets.
///
/// All follow one rule. The first parts take values from the front. Parts after a splat or after optional parts take
/// values from the back. Then optional parts take values from the front of the rest, and a splat takes what is left.
/// Where required parts outnumber the values, the missing values are nils at the end.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Parts that take values from the front.
    pub before: usize,
    /// Parts with a default.
    pub optional: usize,
    /// Whether there is a splat between them.
    pub rest: bool,
    /// Parts that take values from the back.
    pub after: usize,
}

impl Shape {
    pub fn of_list(before: usize, rest: bool, after: usize) -> Self {
        Shape { before, optional: 0, rest, after }
    }

    pub fn of_block(params: &Params) -> Self {
        Shape {
            before: params.required.len(),
            optional: params.optional.len(),
            rest: params.rest.is_some(),
            after: params.post.len(),
        }
    }

    pub fn parts(self) -> usize {
        self.before + self.optional + self.after
    }

    /// Whether an optional part gets one of so many values.
    pub fn is_given(self, optional: usize, given: usize) -> bool {
        given > self.before + self.after + optional
    }

    /// The index of the value for each part, out of so many values. None: a default. Values from `given` on are nil.
    pub fn positions(self, given: usize) -> Vec<Option<usize>> {
        let least = self.before + self.after;
        let most = if self.rest { usize::MAX } else { least + self.optional };
        let count = given.max(least).min(most);
        let before = (0..self.before).map(Some);
        let optional = (0..self.optional).map(|i| self.is_given(i, given).then_some(self.before + i));
        before.chain(optional).chain((count - self.after..count).map(Some)).collect()
    }

    /// The values of the parts, for a list of known length.
    pub fn pick<T: Clone>(self, all: Vec<T>, nil: T) -> Vec<T> {
        let part = |at: Option<usize>| at.and_then(|at| all.get(at)).unwrap_or(&nil).clone();
        self.positions(all.len()).into_iter().map(part).collect()
    }
}

/// Whether a block destructures an array that is its only argument.
pub fn takes_apart(params: &Params) -> bool {
    let required = params.required.len() + params.post.len();
    let alone = required == 1 && params.optional.is_empty() && params.rest.is_none();
    !alone && (required > 0 || params.optional.len() > 1)
}

/// The target that an operator assignment writes.
enum Written {
    Local(LocalId),
    Ivar(Ty, Name, Span),
    Call { receiver: Ty, name: String, args: Args, on_self: bool, span: Span },
}
