//! Iterators with their literal blocks: each becomes a loop.
//!
//! Here: elements, Ranges, counting and steps. Not here: the block's body ([`crate::lower::blocks`]), and iterators
//! that are written in Ruby ([`crate::prelude`]).

use super::{Arg, Keyword};
use crate::diagnostic::Span;
use crate::error::Result;
use crate::infer::builtins::Builtin;
use crate::ir::{Cmp, Op, Operand, Scalar, Stmt, Trap};
use crate::lower::body::{Body, Place};
use crate::lower::value::Val;
use crate::types::{Atom, Reach, Ty};

impl Body<'_, '_> {
    /// An iterator with its literal block; its result goes into `place`.
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub(super) fn iterate(
        &mut self,
        builtin: Builtin,
        name: &str,
        reach: Reach,
        receiver: Val,
        args: &[Arg],
        keywords: &[Keyword],
        block: &(Val, Ty),
        span: Span,
        place: &Place,
    ) -> Result<()> {
        use Builtin::*;
        let arity = builtin.arity_by_name(name);
        if !arity.contains(&args.len()) {
            let message =
                format!("wrong number of arguments (given {}, expected {})", args.len(), super::expected(&arity));
            self.trap(Trap::Raise { class: "ArgumentError", message }, None);
            return Ok(());
        }
        let int = Ty::int;
        let one = Operand::I64(1);
        match (builtin, receiver) {
            (Loop, _) => self.looping(place, |s, _| s.each_round(block, &[], span))?,
            (Times, Val::Int(n)) => {
                self.counted(Operand::I64(0), n, true, one, receiver, place, |s, i| {
                    s.each_round(block, &[(Val::Int(i), int())], span)
                })?;
            }
            (Upto, Val::Int(from)) => {
                let Val::Int(to) = args[0].0 else { return Ok(()) };
                self.counted(from, to, false, one, receiver, place, |s, i| {
                    s.each_round(block, &[(Val::Int(i), int())], span)
                })?;
            }
            (Downto, Val::Int(from)) => {
                let Val::Int(to) = args[0].0 else { return Ok(()) };
                let minus = Operand::I64(-1);
                self.counted(from, to, false, minus, receiver, place, |s, i| {
                    s.each_round(block, &[(Val::Int(i), int())], span)
                })?;
            }
            (Step, _) => self.step(receiver, args, keywords, block, span, place)?,
            (RangeStep, Val::IntRange { from, to, exclusive }) if matches!(args.first(), Some((Val::Float(_), ..))) => {
                let step = self.float(args[0].0);
                self.check_range_float_step(step);
                let (from, to) = (self.float(Val::Int(from)), self.float(Val::Int(to)));
                self.float_steps(from, to, step, exclusive, receiver, block, span, place)?;
            }
            (RangeStep, Val::IntRange { from, to, exclusive }) => {
                let Val::Int(step) = args.first().map_or(Val::int(1), |by| by.0) else { return Ok(()) };
                self.check_range_step(step);
                let rises = !self.ranges_step_down() || matches!(step, Operand::I64(1..));
                let (last, empty) = match rises {
                    true => (self.last(to, exclusive), self.empty_least(to, exclusive)),
                    false => self.last_either_way(to, exclusive, step),
                };
                self.unless_empty(empty, receiver, place, |s| {
                    s.counted(from, last, false, step, receiver, place, |s, i| {
                        s.each_round(block, &[(Val::Int(i), int())], span)
                    })
                })?;
            }
            (RangeStep, Val::FloatRange { from, to, exclusive }) => {
                let step = self.float(args.first().map_or(Val::int(1), |by| by.0));
                self.check_range_float_step(step);
                self.float_steps(from, to, step, exclusive, receiver, block, span, place)?;
            }
            // a Range that excludes its end counts as Integer#times does
            (RangeEach | RangeEachWithIndex, Val::IntRange { from, to, exclusive: Operand::Bool(true) }) => {
                self.counted(from, to, true, one, receiver, place, |s, i| {
                    let mut values = vec![(Val::Int(i), int())];
                    if builtin == RangeEachWithIndex {
                        values.push((Val::Int(s.cx.b.i64(Op::Sub, &[i, from])), int()));
                    }
                    s.each_round(block, &values, span)
                })?;
            }
            (RangeEach | RangeReverseEach | RangeEachWithIndex, Val::IntRange { from, to, exclusive }) => {
                let last = self.last(to, exclusive);
                let empty = self.empty_least(to, exclusive);
                let (start, end, step) =
                    if builtin == RangeReverseEach { (last, from, Operand::I64(-1)) } else { (from, last, one) };
                self.unless_empty(empty, receiver, place, |s| {
                    s.counted(start, end, false, step, receiver, place, |s, i| {
                        let mut values = vec![(Val::Int(i), int())];
                        if builtin == RangeEachWithIndex {
                            values.push((Val::Int(s.cx.b.i64(Op::Sub, &[i, from])), int()));
                        }
                        s.each_round(block, &values, span)
                    })
                })?;
            }
            (RangeEach | RangeReverseEach | RangeEachWithIndex, _) => {
                let message = "can't iterate from Float".to_string();
                self.trap(Trap::Raise { class: "TypeError", message }, None);
            }
            (ArrayEachIndex, Val::Array(_, packed)) => {
                let (_, length) = self.array_parts(packed);
                self.counted(Operand::I64(0), length, true, one, receiver, place, |s, i| {
                    s.each_round(block, &[(Val::Int(i), int())], span)
                })?;
            }
            (ArrayEach | ArrayEachWithIndex | ArrayReverseEach, Val::Array(kind, packed)) => {
                let ty = self.an.elements(self.here.spec, kind, reach).unwrap_or_default();
                let (_, length) = self.array_parts(packed);
                if ty.is_never() {
                    // no array of the kind has an element yet; marking the column as read makes the host watch for the
                    // first one
                    self.t.array(self.an, kind)?.read = true;
                    self.store(place, receiver);
                    return Ok(());
                }
                let (start, end, exclusive, step) = if builtin == ArrayReverseEach {
                    (self.cx.b.i64(Op::Sub, &[length, one]), Operand::I64(0), false, Operand::I64(-1))
                } else {
                    (Operand::I64(0), length, true, one)
                };
                self.counted(start, end, exclusive, step, receiver, place, |s, i| {
                    let element = s.element_in_range(kind, packed, i)?;
                    let mut values = vec![(element, ty.clone())];
                    if builtin == ArrayEachWithIndex {
                        values.push((Val::Int(i), int()));
                    }
                    s.each_round(block, &values, span)
                })?;
            }
            _ => self.unreachable(),
        }
        Ok(())
    }

    /// One round of an iterator; the block's value is not used.
    fn each_round(&mut self, (val, ty): &(Val, Ty), values: &[(Val, Ty)], span: Span) -> Result<()> {
        let args: Vec<Arg> = values.iter().map(|(val, ty)| (*val, ty.clone(), None)).collect();
        self.call_procs((*val, ty), &args, &[], span, None)
    }

    /// Runs `each` for the elements of a `for`.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn each_element(
        &mut self,
        atom: Atom,
        reach: Reach,
        val: Val,
        place: &Place,
        span: Span,
        mut each: impl FnMut(&mut Self, Val, &Ty) -> Result<()>,
    ) -> Result<()> {
        let one = Operand::I64(1);
        match (atom, val) {
            (_, Val::IntRange { from, to, exclusive: Operand::Bool(true) }) => {
                self.counted(from, to, true, one, val, place, |s, i| s.round_body(|s| each(s, Val::Int(i), &Ty::int())))
            }
            (_, Val::IntRange { from, to, exclusive }) => {
                let last = self.last(to, exclusive);
                let empty = self.empty_least(to, exclusive);
                self.unless_empty(empty, val, place, |s| {
                    s.counted(from, last, false, one, val, place, |s, i| {
                        s.round_body(|s| each(s, Val::Int(i), &Ty::int()))
                    })
                })
            }
            (Atom::Array(kind), Val::Array(_, packed)) => {
                let ty = self.an.elements(self.here.spec, kind, reach).unwrap_or_default();
                if ty.is_never() {
                    self.t.array(self.an, kind)?.read = true;
                    self.store(place, val);
                    return Ok(());
                }
                let (_, length) = self.array_parts(packed);
                self.counted(Operand::I64(0), length, true, one, val, place, |s, i| {
                    s.round_body(|s| {
                        let element = s.element_in_range(kind, packed, i)?;
                        each(s, element, &ty)
                    })
                })
            }
            _ => Err(self.error(span, "kernels do not know for over this")),
        }
    }

    /// Whether a Range is `first...least Integer`, which is empty, and whose last number does not exist.
    pub(super) fn empty_least(&mut self, to: Operand, exclusive: Operand) -> Operand {
        let least = self.cx.b.icmp(Cmp::Eq, to, Operand::I64(i64::MIN));
        self.cx.b.bool(Op::And, &[least, exclusive])
    }

    /// The last Integer that a Range may have in steps up or down. Also whether it has none, because its end is the
    /// last Integer of all.
    fn last_either_way(&mut self, to: Operand, exclusive: Operand, step: Operand) -> (Operand, Operand) {
        let rising = self.cx.b.icmp(Cmp::Gt, step, Operand::I64(0));
        let edge = self.cx.b.select(Scalar::I64, rising, Operand::I64(i64::MIN), Operand::I64(i64::MAX));
        let at_edge = self.cx.b.icmp(Cmp::Eq, to, edge);
        let empty = self.cx.b.bool(Op::And, &[at_edge, exclusive]);
        let one = self.cx.b.select(Scalar::I64, rising, Operand::I64(1), Operand::I64(-1));
        let before = self.cx.b.i64(Op::Sub, &[to, one]);
        (self.cx.b.select(Scalar::I64, exclusive, before, to), empty)
    }

    fn unless_empty(
        &mut self,
        empty: Operand,
        result: Val,
        place: &Place,
        run: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.branch(
            empty,
            |s| {
                s.store(place, result);
                Ok(())
            },
            run,
        )
    }

    /// Counts from `start` by `step` to `end` (`below`: not including it); afterwards `result` is in `place`. Never
    /// overflows, since it stops before a number that would.
    #[allow(clippy::too_many_arguments, reason = "a loop has this many parts")]
    pub(super) fn counted(
        &mut self,
        start: Operand,
        end: Operand,
        below: bool,
        step: Operand,
        result: Val,
        place: &Place,
        body: impl FnOnce(&mut Self, Operand) -> Result<()>,
    ) -> Result<()> {
        let i = self.cx.b.temp(Scalar::I64);
        self.cx.b.set(i, start);
        let known = match step {
            Operand::I64(n) => Some(n > 0),
            _ => None,
        };
        let i = Operand::Var(i);
        let (up_cmp, down_cmp) = if below { (Cmp::Lt, Cmp::Gt) } else { (Cmp::Le, Cmp::Ge) };
        self.looping(place, |s, exit| {
            let goes_on = match known {
                Some(true) => s.cx.b.icmp(up_cmp, i, end),
                Some(false) => s.cx.b.icmp(down_cmp, i, end),
                None => {
                    let rising = s.cx.b.icmp(Cmp::Gt, step, Operand::I64(0));
                    let (up, down) = (s.cx.b.icmp(up_cmp, i, end), s.cx.b.icmp(down_cmp, i, end));
                    s.cx.b.select(Scalar::Bool, rising, up, down)
                }
            };
            let leave = |s: &mut Self| {
                s.store(&exit.1, result);
                s.cx.b.push(Stmt::Break(exit.0));
                Ok(())
            };
            s.branch(goes_on, |_| Ok(()), leave)?;
            // the body may assign its parameter, so that is a copy
            let copy = s.cx.b.temp(Scalar::I64);
            s.cx.b.set(copy, i);
            body(s, Operand::Var(copy))?;
            let Operand::Var(counter) = i else { return Ok(()) };
            if below && matches!(step, Operand::I64(1 | -1)) {
                // `i + step` cannot pass the end, so it cannot overflow
                s.cx.b.push(Stmt::Let { dst: counter, op: Op::Add, args: vec![i, step] });
            } else {
                // beyond the end, or past the greatest Integer: both end the loop
                let at_end = match step {
                    Operand::I64(1 | -1) => s.cx.b.icmp(Cmp::Eq, i, end),
                    _ => {
                        let left = s.cx.b.i64(Op::Sub, &[end, i]);
                        let rising = s.cx.b.icmp(Cmp::Gt, step, Operand::I64(0));
                        // the distance can only wrap where it is far greater than any step
                        let near_up = s.cx.b.bool(Op::UCmp(Cmp::Lt), &[left, step]);
                        let (back, back_step) =
                            (s.cx.b.i64(Op::Sub, &[i, end]), s.cx.b.i64(Op::Sub, &[Operand::I64(0), step]));
                        let near_down = s.cx.b.bool(Op::UCmp(Cmp::Lt), &[back, back_step]);
                        s.cx.b.select(Scalar::Bool, rising, near_up, near_down)
                    }
                };
                s.branch(at_end, leave, |_| Ok(()))?;
                s.cx.b.push(Stmt::Let { dst: counter, op: Op::Add, args: vec![i, step] });
            }
            Ok(())
        })
    }

    /// Whether Ranges go down by a negative step, as they do since Ruby 3.4.
    fn ranges_step_down(&self) -> bool {
        self.cx.shared.options.ruby >= (3, 4)
    }

    /// ArgumentError where a Range cannot have this step.
    fn check_range_step(&mut self, step: Operand) {
        let zero = self.cx.b.icmp(Cmp::Eq, step, Operand::I64(0));
        self.refuse_step_if(zero, "step can't be 0");
        if !self.ranges_step_down() {
            let down = self.cx.b.icmp(Cmp::Lt, step, Operand::I64(0));
            self.refuse_step_if(down, "step can't be negative");
        }
    }

    /// As [`Self::check_range_step`], of a Float.
    fn check_range_float_step(&mut self, step: Operand) {
        let zero = self.cx.b.fcmp(Cmp::Eq, step, Operand::float(0.0));
        self.refuse_step_if(zero, "step can't be 0");
        if !self.ranges_step_down() {
            let down = self.cx.b.fcmp(Cmp::Lt, step, Operand::float(0.0));
            self.refuse_step_if(down, "step can't be negative");
            let nan = self.cx.b.fcmp(Cmp::Ne, step, step);
            self.refuse_step_if(nan, "comparison of Float with 0 failed");
        }
    }

    fn refuse_step_if(&mut self, wrong: Operand, message: &str) {
        let site = self.cx.site(Trap::Raise { class: "ArgumentError", message: message.into() }, vec![]);
        self.cx.b.trap_if(wrong, site, vec![]);
    }

    pub(super) fn float(&mut self, val: Val) -> Operand {
        match val {
            Val::Int(v) => self.cx.b.f64(Op::IntToFloat, &[v]),
            Val::Float(v) => v,
            _ => Operand::float(0.0),
        }
    }

    /// `Numeric#step` with a limit.
    pub(super) fn step(
        &mut self,
        receiver: Val,
        args: &[Arg],
        keywords: &[Keyword],
        block: &(Val, Ty),
        span: Span,
        place: &Place,
    ) -> Result<()> {
        let keyword = |name: &str| keywords.iter().find(|k| &*k.0 == name).map(|k| k.1);
        let Some(limit) = args.first().map(|a| a.0).or_else(|| keyword("to")) else {
            self.unreachable();
            return Ok(());
        };
        let by = args.get(1).map(|a| a.0).or_else(|| keyword("by")).unwrap_or(Val::int(1));
        if let (Val::Int(from), Val::Int(to), Val::Int(step)) = (receiver, limit, by) {
            let zero = self.cx.b.icmp(Cmp::Eq, step, Operand::I64(0));
            let site = self.cx.site(Trap::Raise { class: "ArgumentError", message: "step can't be 0".into() }, vec![]);
            self.cx.b.trap_if(zero, site, vec![]);
            return self.counted(from, to, false, step, receiver, place, |s, i| {
                s.each_round(block, &[(Val::Int(i), Ty::int())], span)
            });
        }
        let (from, to, step) = (self.float(receiver), self.float(limit), self.float(by));
        let zero = self.cx.b.fcmp(Cmp::Eq, step, Operand::float(0.0));
        let site = self.cx.site(Trap::Raise { class: "ArgumentError", message: "step can't be 0".into() }, vec![]);
        self.cx.b.trap_if(zero, site, vec![]);
        self.float_steps(from, to, step, Operand::Bool(false), receiver, block, span, place)
    }

    /// MRI's `ruby_float_step`: computes the number of steps first, then `i * step + from`, which is cut at the end.
    #[allow(clippy::too_many_arguments, reason = "a loop has this many parts")]
    fn float_steps(
        &mut self,
        from: Operand,
        to: Operand,
        step: Operand,
        exclusive: Operand,
        result: Val,
        block: &(Val, Ty),
        span: Span,
        place: &Place,
    ) -> Result<()> {
        let b = &mut self.cx.b;
        let epsilon = Operand::float(f64::EPSILON);
        let distance = b.f64(Op::FSub, &[to, from]);
        let n = b.f64(Op::FDiv, &[distance, step]);
        let (x, y, z) = (b.f64(Op::FAbs, &[from]), b.f64(Op::FAbs, &[to]), b.f64(Op::FAbs, &[distance]));
        let sum = b.f64(Op::FAdd, &[x, y]);
        let sum = b.f64(Op::FAdd, &[sum, z]);
        let unit = b.f64(Op::FAbs, &[step]);
        let err = b.f64(Op::FDiv, &[sum, unit]);
        let err = b.f64(Op::FMul, &[err, epsilon]);
        let half = Operand::float(0.5);
        let too_great = b.fcmp(Cmp::Gt, err, half);
        let err = b.select(Scalar::F64, too_great, half, err);
        // inclusive: floor(n + err) + 1
        let with_err = b.f64(Op::FAdd, &[n, err]);
        let floor = b.f64(Op::FFloor, &[with_err]);
        let inclusive_n = b.f64(Op::FAdd, &[floor, Operand::float(1.0)]);
        let negative = b.fcmp(Cmp::Lt, n, Operand::float(0.0));
        let inclusive_n = b.select(Scalar::F64, negative, Operand::float(0.0), inclusive_n);
        // exclusive: n < 1 gives one step; otherwise floor(n - err) + 1 steps, and one more if that is still before the
        // end
        let without_err = b.f64(Op::FSub, &[n, err]);
        let floored = b.f64(Op::FFloor, &[without_err]);
        let below_one = b.fcmp(Cmp::Lt, n, Operand::float(1.0));
        let d = b.select(Scalar::F64, below_one, Operand::float(0.0), floored);
        let d = b.f64(Op::FAdd, &[d, Operand::float(1.0)]);
        let reached = b.f64(Op::FMul, &[d, step]);
        let reached = b.f64(Op::FAdd, &[reached, from]);
        let (up, down) = (b.fcmp(Cmp::Lt, reached, to), b.fcmp(Cmp::Gt, reached, to));
        let (rising, falling) = (b.fcmp(Cmp::Lt, from, to), b.fcmp(Cmp::Gt, from, to));
        let up = b.bool(Op::And, &[up, rising]);
        let down = b.bool(Op::And, &[down, falling]);
        let more = b.bool(Op::Or, &[up, down]);
        let plus = b.f64(Op::FAdd, &[d, Operand::float(1.0)]);
        let exclusive_n = b.select(Scalar::F64, more, plus, d);
        let not_positive = b.fcmp(Cmp::Le, n, Operand::float(0.0));
        let exclusive_n = b.select(Scalar::F64, not_positive, Operand::float(0.0), exclusive_n);
        let count = b.select(Scalar::F64, exclusive, exclusive_n, inclusive_n);
        let nan = b.fcmp(Cmp::Ne, count, count);
        let count = b.select(Scalar::F64, nan, Operand::float(0.0), count);
        let most = b.fcmp(Cmp::Ge, count, Operand::float(9.0e18));
        let count = b.select(Scalar::F64, most, Operand::float(9.0e18), count);
        let rising_step = b.fcmp(Cmp::Ge, step, Operand::float(0.0));
        // an infinite step gives `from` alone, unless that is past the end
        let endless = b.fcmp(Cmp::Eq, unit, Operand::float(f64::INFINITY));
        let (before, behind) = (b.fcmp(Cmp::Le, from, to), b.fcmp(Cmp::Ge, from, to));
        let once = b.select(Scalar::Bool, rising_step, before, behind);
        let once = b.select(Scalar::F64, once, Operand::float(1.0), Operand::float(0.0));
        let count = b.select(Scalar::F64, endless, once, count);
        let step = b.select(Scalar::F64, endless, Operand::float(0.0), step);
        let count = b.i64(Op::FloatToInt, &[count]);
        self.counted(Operand::I64(0), count, true, Operand::I64(1), result, place, |s, i| {
            let b = &mut s.cx.b;
            let d = b.f64(Op::IntToFloat, &[i]);
            let d = b.f64(Op::FMul, &[d, step]);
            let d = b.f64(Op::FAdd, &[d, from]);
            let (over, under) = (b.fcmp(Cmp::Lt, to, d), b.fcmp(Cmp::Lt, d, to));
            let past = b.select(Scalar::Bool, rising_step, over, under);
            let d = b.select(Scalar::F64, past, to, d);
            s.each_round(block, &[(Val::Float(d), Ty::float())], span)
        })
    }
}
