//! Lowers exceptions that are rescued to control flow. It removes the last statement that stands for a rule of Ruby.
//!
//! Here: [`Stmt::Try`] becomes a block, and whatever raises in it sets the registers and leaves the block. Functions
//! that are called in it get *catching variants*, which return what they raise. A variant returns, after its function's
//! results, the *code* of what it raised (the site's number plus 1; 0: nothing) and the trap's words. An exception that
//! Ruby code cannot rescue still ends the job, in a variant as elsewhere. Not here: Ruby's rules, which lowering has
//! made tests and jumps.
//!
//! A program without `rescue` contains none of this. After this pass, backends and the other passes see only ordinary
//! calls, returns and branches. The pass runs after `demanded_bits`, which must see which arithmetic is checked.

use super::Pass;
use crate::ir::build::Builder;
use crate::ir::verify::trap_scalars;
use crate::ir::visit::breaks_to;
use crate::ir::{
    Cmp, Func, FuncId, LabelId, Message, Messages, Op, Operand, Program, Raised, Rescued, Scalar, Site, SiteId, Stmt,
    TRAP_WORDS, walk,
};
use std::collections::{BTreeMap, BTreeSet};

pub const PASS: Pass = Pass { name: "unwind", description: "rescued exceptions are branches and results", run };

/// Whether a program rescues anything.
pub fn rescues(program: &Program) -> bool {
    program.funcs.iter().any(has_try)
}

fn has_try(func: &Func) -> bool {
    let mut found = false;
    walk(&func.body, &mut |s| found |= matches!(s, Stmt::Try { .. }));
    found
}

fn run(mut program: Program) -> Program {
    let rescuing: Vec<bool> = program.funcs.iter().map(has_try).collect();
    let Rescued { tests, again, messages } = std::mem::take(&mut program.rescued);
    if !rescuing.contains(&true) && tests.is_empty() && again.is_none() && messages.is_none() {
        return program;
    }
    let needs = |s: &Site| s.operands.iter().map(|r| trap_scalars(*r).len()).sum::<usize>();
    let words = program.sites.iter().filter(|s| s.trap.is_caught()).map(needs).max().unwrap_or(0);
    let catchable: Vec<bool> = program.sites.iter().map(|s| s.trap.is_caught()).collect();
    let mut shared = Shared {
        words,
        raises: raises(&program.funcs, &catchable, again),
        catchable,
        again,
        count: program.funcs.len(),
        variants: BTreeMap::new(),
        caught: BTreeSet::new(),
        waiting: Vec::new(),
    };
    let lowered = program.funcs.clone();
    for (func, _) in program.funcs.iter_mut().zip(rescuing).filter(|(_, rescues)| *rescues) {
        *func = Unwinder::rewritten(&mut shared, func, false);
    }
    while let Some(func) = shared.waiting.pop() {
        let made = Unwinder::rewritten(&mut shared, &lowered[func.index()], true);
        let number = shared.variants[&func].index();
        if program.funcs.len() <= number {
            program.funcs.resize(number + 1, made.clone());
        }
        program.funcs[number] = made;
    }
    for test in tests {
        let codes = shared.caught.iter().map(|site| {
            let class = program.sites[site.index()].trap.class();
            (code(*site), class.is_some_and(|c| test.hits.contains(&c)))
        });
        program.funcs[test.func.index()] = class_test(&test.name, codes);
    }
    if let Some(Messages { func, known }) = messages {
        let known = known.into_iter().filter(|(site, _)| shared.caught.contains(site));
        program.funcs[func.index()] = message(known);
    }
    if let Some(again) = again {
        program.funcs[again.index()] = raise_again(&program.sites, &shared.caught);
    }
    program
}

/// The code of an exception that comes from a site.
fn code(site: SiteId) -> i32 {
    site.0 as i32 + 1
}

/// For each function, whether a call of it may raise what a rescue can catch.
fn raises(funcs: &[Func], catchable: &[bool], again: Option<FuncId>) -> Vec<bool> {
    let mut all = vec![false; funcs.len()];
    if let Some(again) = again {
        all[again.index()] = true;
    }
    loop {
        let before = all.clone();
        for (func, raises) in funcs.iter().zip(&mut all) {
            *raises |= list_raises(&func.body, catchable, &before);
        }
        if all == before {
            return all;
        }
    }
}

fn list_raises(list: &[Stmt], catchable: &[bool], funcs: &[bool]) -> bool {
    list.iter().any(|s| match s {
        Stmt::Trap { site, .. } | Stmt::Checked { site, .. } => catchable[site.index()],
        Stmt::Call { func, .. } => funcs[func.index()],
        Stmt::Try { .. } => false,
        other => other.bodies().iter().any(|b| list_raises(b, catchable, funcs)),
    })
}

/// Data that is common to all functions that are rewritten.
struct Shared {
    /// How many words the catchable sites need.
    words: usize,
    catchable: Vec<bool>,
    raises: Vec<bool>,
    again: Option<FuncId>,
    /// The number of functions, including the variants that are still to be made.
    count: usize,
    variants: BTreeMap<FuncId, FuncId>,
    waiting: Vec<FuncId>,
    /// Sites whose exceptions a handler catches.
    caught: BTreeSet<SiteId>,
}

impl Shared {
    fn variant(&mut self, func: FuncId) -> FuncId {
        *self.variants.entry(func).or_insert_with(|| {
            self.waiting.push(func);
            self.count += 1;
            FuncId::new(self.count - 1)
        })
    }
}

/// Rewrites one function.
struct Unwinder<'a> {
    shared: &'a mut Shared,
    b: Builder,
    /// The types of the function's results.
    results: Vec<Scalar>,
    /// Whether this is a catching variant, which returns what it raises.
    variant: bool,
    handlers: Vec<(LabelId, Raised)>,
}

impl<'a> Unwinder<'a> {
    fn rewritten(shared: &'a mut Shared, func: &Func, variant: bool) -> Func {
        let (b, body) = Builder::again(func.clone());
        let words = shared.words;
        let mut unwinder = Unwinder { shared, b, results: func.results.clone(), variant, handlers: Vec::new() };
        unwinder.list(body);
        if variant && func.results.is_empty() {
            // control may reach the end of the body
            unwinder.returns(vec![]);
        }
        let mut func = unwinder.b.finish();
        if variant {
            func.name += " rescued";
            func.results.push(Scalar::I32);
            func.results.extend(std::iter::repeat_n(Scalar::I64, words));
        }
        func
    }

    fn list(&mut self, list: Vec<Stmt>) {
        for stmt in list {
            if self.b.ended() {
                return;
            }
            if let Stmt::Try { label, body, raised } = stmt {
                self.handlers.push((label, raised));
                let body = self.nested(body);
                self.handlers.pop();
                let falls = !body.last().is_some_and(Stmt::ends_list);
                let over = !falls && !breaks_to(&body, label);
                self.b.push(Stmt::Block { label, body });
                if over {
                    // nothing was raised before, so control never reaches the rest
                    return;
                }
                continue;
            }
            self.stmt(stmt);
        }
    }

    fn nested(&mut self, list: Vec<Stmt>) -> Vec<Stmt> {
        self.b.open();
        self.list(list);
        self.b.close()
    }

    /// Whether a handler may catch an exception of the site.
    fn catches(&self, site: SiteId) -> bool {
        self.goes_on() && self.shared.catchable[site.index()]
    }

    fn goes_on(&self) -> bool {
        self.variant || !self.handlers.is_empty()
    }

    fn stmt(&mut self, stmt: Stmt) {
        match stmt {
            Stmt::If { cond, then, otherwise } => {
                let (then, otherwise) = (self.nested(then), self.nested(otherwise));
                self.b.push(Stmt::If { cond, then, otherwise });
            }
            Stmt::Block { label, body } => {
                let body = self.nested(body);
                self.b.push(Stmt::Block { label, body });
            }
            Stmt::Loop { label, body } => {
                let body = self.nested(body);
                self.b.push(Stmt::Loop { label, body });
            }
            Stmt::Return(values) if self.variant => self.returns(values),
            Stmt::Trap { site, operands } if self.catches(site) => self.raise(site, &operands),
            Stmt::Checked { dst, op, args: [x, y], site } if self.catches(site) => {
                let (result, overflow) = self.b.overflowing(op, x, y);
                self.b.open();
                self.raise(site, &[]);
                let then = self.b.close();
                self.b.push(Stmt::If { cond: overflow, then, otherwise: vec![] });
                self.b.set(dst, result);
            }
            Stmt::Call { func, args, .. } if self.goes_on() && self.shared.again == Some(func) => self.goes(&args),
            Stmt::Call { func, args, mut dsts, depth } if self.goes_on() && self.shared.raises[func.index()] => {
                let code = self.b.temp(Scalar::I32);
                let words: Vec<_> = (0..self.shared.words).map(|_| self.b.temp(Scalar::I64)).collect();
                dsts.push(code);
                dsts.extend(&words);
                let func = self.shared.variant(func);
                self.b.push(Stmt::Call { func, args, dsts, depth });
                let raised = self.b.icmp(Cmp::Ne, code.into(), Operand::I32(0));
                let given: Vec<Operand> = [code].into_iter().chain(words).map(Operand::Var).collect();
                self.b.open();
                self.goes(&given);
                let then = self.b.close();
                self.b.push(Stmt::If { cond: raised, then, otherwise: vec![] });
            }
            other => self.b.push(other),
        }
    }

    fn returns(&mut self, mut values: Vec<Operand>) {
        values.push(Operand::I32(0));
        values.extend(std::iter::repeat_n(Operand::I64(0), self.shared.words));
        self.b.push(Stmt::Return(values));
    }

    fn raise(&mut self, site: SiteId, operands: &[Operand]) {
        self.shared.caught.insert(site);
        let mut given = vec![Operand::I32(code(site))];
        for operand in operands {
            let word = match self.b.ty(*operand) {
                Scalar::I64 => *operand,
                Scalar::Bool => self.b.i64(Op::BoolToInt, &[*operand]),
                Scalar::I32 => self.b.i64(Op::Widen, &[*operand]),
                Scalar::F64 => self.b.i64(Op::FloatBits, &[*operand]),
            };
            given.push(word);
        }
        self.goes(&given);
    }

    /// An exception continues: to the innermost handler, or out of the variant.
    fn goes(&mut self, given: &[Operand]) {
        let given = |i: usize| given.get(i).copied().unwrap_or(Operand::I64(0));
        match self.handlers.last() {
            Some((label, raised)) => {
                let label = *label;
                for (i, var) in (*raised).into_iter().enumerate() {
                    self.b.set(var, given(i));
                }
                self.b.push(Stmt::Break(label));
            }
            None => {
                let results = self.results.iter().map(|ty| Operand::zero(*ty));
                let values = results.chain((0..=self.shared.words).map(given)).collect();
                self.b.push(Stmt::Return(values));
            }
        }
    }
}

/// A function that tests codes. Neighbours in the set of all codes are one test.
fn class_test(name: &str, codes: impl Iterator<Item = (i32, bool)>) -> Func {
    let mut b = Builder::new(name.into(), vec![Scalar::Bool]);
    let asked = Operand::Var(b.param(Scalar::I32, Some("code".into())));
    let mut runs: Vec<(i32, i32)> = Vec::new();
    let mut goes_on = false;
    for (code, hit) in codes {
        match runs.last_mut() {
            Some((_, last)) if hit && goes_on => *last = code,
            _ if hit => runs.push((code, code)),
            _ => {}
        }
        goes_on = hit;
    }
    let mut any = Operand::Bool(false);
    for (i, (first, last)) in runs.into_iter().enumerate() {
        let test = if first == last {
            b.icmp(Cmp::Eq, asked, Operand::I32(first))
        } else {
            let offset = b.op(Scalar::I32, Op::Sub, &[asked, Operand::I32(first)]);
            b.bool(Op::UCmp(Cmp::Le), &[offset, Operand::I32(last - first)])
        };
        any = if i == 0 { test } else { b.bool(Op::Or, &[any, test]) };
    }
    b.push(Stmt::Return(vec![any]));
    b.finish()
}

/// A function that finds the message of an exception from one of the sites.
fn message(known: impl Iterator<Item = (SiteId, Message)>) -> Func {
    let mut b = Builder::new("message".into(), vec![Scalar::I64, Scalar::Bool]);
    let asked = Operand::Var(b.param(Scalar::I32, Some("code".into())));
    let words: Vec<Operand> = (0..TRAP_WORDS).map(|_| Operand::Var(b.param(Scalar::I64, None))).collect();
    for (site, message) in known {
        let hit = b.icmp(Cmp::Eq, asked, Operand::I32(code(site)));
        let text = match message {
            Message::Text(text) => Operand::I64(text),
            Message::Word(word) => words[word],
        };
        b.when(hit, |b| b.push(Stmt::Return(vec![text, Operand::Bool(true)])));
    }
    b.push(Stmt::Return(vec![Operand::I64(0), Operand::Bool(false)]));
    b.finish()
}

/// A function that raises an exception from one of the sites again.
fn raise_again(all: &[Site], sites: &BTreeSet<SiteId>) -> Func {
    let mut b = Builder::new("raise again".into(), vec![]);
    let asked = Operand::Var(b.param(Scalar::I32, Some("code".into())));
    let words: Vec<Operand> = (0..TRAP_WORDS).map(|_| Operand::Var(b.param(Scalar::I64, None))).collect();
    let sites: Vec<SiteId> = sites.iter().copied().collect();
    split(&mut b, all, asked, &words, &sites);
    b.finish()
}

/// Finds the site by binary search.
fn split(b: &mut Builder, all: &[Site], asked: Operand, words: &[Operand], sites: &[SiteId]) {
    match sites {
        [] => {}
        [site] => {
            let scalars = all[site.index()].operands.iter().flat_map(|r| trap_scalars(*r));
            let operands: Vec<Operand> = scalars
                .zip(words)
                .map(|(scalar, word)| match scalar {
                    Scalar::I64 => *word,
                    Scalar::Bool => b.icmp(Cmp::Ne, *word, Operand::I64(0)),
                    Scalar::I32 => b.op(Scalar::I32, Op::Narrow, &[*word]),
                    Scalar::F64 => b.f64(Op::FloatFromBits, &[*word]),
                })
                .collect();
            b.push(Stmt::Trap { site: *site, operands });
        }
        _ => {
            let (low, high) = sites.split_at(sites.len() / 2);
            let below = b.icmp(Cmp::Lt, asked, Operand::I32(code(high[0])));
            b.branch(below, |b| split(b, all, asked, words, low), |b| split(b, all, asked, words, high));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PASS;
    use crate::ir::build::Builder;
    use crate::ir::testing::{DOMAIN, INTS, OVERFLOW, STACK, program, with_functions};
    use crate::ir::{CheckedOp, FuncId, Operand, Program, Raised, Scalar, Stmt};
    use crate::passes::testing::after;

    fn raised(b: &mut Builder) -> Raised {
        std::array::from_fn(|i| b.temp(if i == 0 { Scalar::I32 } else { Scalar::I64 }))
    }

    /// Stores the result of `body`, or what it raised.
    fn attempt(b: &mut Builder, job: Operand, body: impl FnOnce(&mut Builder) -> Operand) {
        let (done, fails) = (b.label(), b.label());
        let exception = raised(b);
        b.open();
        b.open();
        let value = body(b);
        b.store(INTS, job, value);
        b.push(Stmt::Break(done));
        let list = b.close();
        b.push(Stmt::Try { label: fails, body: list, raised: exception });
        b.store(INTS, job, exception[1].into());
        let list = b.close();
        b.push(Stmt::Block { label: done, body: list });
    }

    fn check(program: Program) -> String {
        after(&[PASS], program)
    }

    #[test]
    fn what_is_raised_in_a_try_is_a_branch() {
        insta::assert_snapshot!(check(program(|b, job| {
            attempt(b, job, |b| {
                let negative = b.icmp(crate::ir::Cmp::Lt, job, Operand::I64(0));
                b.trap_if(negative, DOMAIN, vec![job]);
                b.checked(CheckedOp::Add, job, Operand::I64(1), OVERFLOW)
            });
        })), @r#"
        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          block L0 {
            block L1 {
              v9: bool = icmp.lt v3, 0
              if v9 {
                v4: i32 = copy 2i32
                v5: i64 = copy v3
                v6: i64 = copy 0
                v7: i64 = copy 0
                v8: i64 = copy 0
                break L1
              }
              v10: i64 = checked add v3, 1 else s0
              store ints[v3] = v10
              break L0
            }
            store ints[v3] = v5
          }
        }
        "#);
    }

    #[test]
    fn a_call_in_a_try_gives_back_what_it_raises() {
        let callee = {
            let mut b = Builder::new("callee".into(), vec![Scalar::I64]);
            let x = b.param(Scalar::I64, None);
            let negative = b.icmp(crate::ir::Cmp::Lt, x.into(), Operand::I64(0));
            b.trap_if(negative, DOMAIN, vec![x.into()]);
            b.push(Stmt::Return(vec![x.into()]));
            b.finish()
        };
        let text = check(with_functions(vec![callee], |b, job| {
            attempt(b, job, |b| b.call(FuncId(1), vec![job], &[Scalar::I64], None)[0]);
        }));
        assert!(text.contains("v9: i64, v10: i32, v11: i64 = call f2 \"callee rescued\" v3\n"), "{text}");
        assert!(text.contains("    trap s1 v0\n"), "outside of a try it stays: {text}");
        let (_, variant) =
            text.split_once("func f2 \"callee rescued\" (v0: i64) -> i64, i32, i64 {").expect("a variant");
        assert!(variant.contains("return 0, 2i32, v0\n") && variant.contains("return v0, 0i32, 0\n"), "{text}");
        assert!(!variant.contains("trap"), "{text}");
    }

    #[test]
    fn what_no_code_can_rescue_stays_a_trap() {
        let text = check(program(|b, job| {
            attempt(b, job, |b| {
                b.trap(STACK, vec![]);
                job
            });
        }));
        assert!(text.contains("trap s2") && !text.contains("= try "), "{text}");
    }
}
