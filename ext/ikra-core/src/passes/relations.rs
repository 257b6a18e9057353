//! Linear inequalities between values of registers: what comparisons and divisions tell beyond intervals.
//!
//! Here: linear forms over values, and a search that proves a form not negative from forms that are known not to be.
//! Each assignment gives a value a number, its stamp, and [`super::ranges`] chooses it. An example: `i - row` is not
//! negative where `i / row` is not 0. Another: an index that is less than a checked one needs no check. The search
//! subtracts known forms until the rest is not negative by itself. It goes [`DEPTH`] deep, then gives up. All
//! arithmetic is exact: sums that might wrap have no form.

use std::collections::{HashMap, HashSet};

/// Sums of more values have no form.
const MAX_TERMS: usize = 6;
/// How many known forms a proof may use.
const DEPTH: usize = 4;
/// How many forms a proof may look at.
const STEPS: usize = 400;
/// The most forms that are kept; older ones are forgotten. Most checks are of values that were compared shortly before.
const MAX_KNOWN: usize = 96;

/// A sum of values, each times a factor, and a constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// By stamp; no factor is 0.
    terms: Vec<(u32, i64)>,
    constant: i64,
}

impl Form {
    pub fn constant(constant: i64) -> Self {
        Self { terms: Vec::new(), constant }
    }

    pub fn value(stamp: u32) -> Self {
        Self { terms: vec![(stamp, 1)], constant: 0 }
    }

    /// `self + other * factor`. None: the sum is too long, or beyond 64 bits.
    pub fn plus(&self, other: &Form, factor: i64) -> Option<Form> {
        let mut sum = self.clone();
        sum.constant = sum.constant.checked_add(other.constant.checked_mul(factor)?)?;
        for (stamp, times) in &other.terms {
            let times = times.checked_mul(factor)?;
            match sum.terms.binary_search_by_key(stamp, |(stamp, _)| *stamp) {
                Ok(at) => {
                    sum.terms[at].1 = sum.terms[at].1.checked_add(times)?;
                    if sum.terms[at].1 == 0 {
                        sum.terms.remove(at);
                    }
                }
                Err(at) => sum.terms.insert(at, (*stamp, times)),
            }
        }
        (sum.terms.len() <= MAX_TERMS).then_some(sum)
    }
}

/// What is known of a form.
#[derive(Clone, Debug)]
pub enum Known {
    NotNegative(Form),
    NotZero(Form),
}

impl Known {
    fn not_negative(&self) -> Option<&Form> {
        match self {
            Known::NotNegative(form) => Some(form),
            Known::NotZero(_) => None,
        }
    }
}

#[derive(Default)]
pub struct Relations {
    forms: HashMap<u32, Form>,
    /// Values that are never negative.
    natural: HashSet<u32>,
    /// What is known of forms here.
    known: Vec<Known>,
    /// By the stamp of a quotient: the dividend and the divisor.
    quotients: HashMap<u32, (Form, Form)>,
    /// Dividend, divisor, and the stamp of their remainder.
    remainders: Vec<(Form, Form, u32)>,
}

impl Relations {
    /// The form that a value is.
    pub fn of(&self, stamp: u32) -> Form {
        self.forms.get(&stamp).cloned().unwrap_or_else(|| Form::value(stamp))
    }

    pub fn define(&mut self, stamp: u32, form: Form) {
        self.forms.insert(stamp, form);
    }

    pub fn is_natural(&mut self, stamp: u32) {
        self.natural.insert(stamp);
    }

    /// Notes that the value is `dividend / divisor`, neither of which is negative.
    pub fn divides(&mut self, stamp: u32, dividend: Form, divisor: Form) {
        self.quotients.insert(stamp, (dividend, divisor));
    }

    /// Notes that the value is the remainder of that division. The same division has the same remainder a second time.
    pub fn leaves(&mut self, stamp: u32, dividend: Form, divisor: Form) {
        match self.remainders.iter().find(|(a, b, _)| *a == dividend && *b == divisor) {
            Some((_, _, first)) => self.define(stamp, Form::value(*first)),
            None => {
                self.define(stamp, Form::value(stamp));
                self.remainders.push((dividend, divisor, stamp));
            }
        }
    }

    /// Notes that the form is not negative from here on.
    pub fn learn(&mut self, form: Form) {
        if !form.terms.is_empty() {
            self.known.push(Known::NotNegative(form));
        }
    }

    /// Notes that the form is not 0 from here on.
    pub fn is_not_zero(&mut self, form: Form) {
        if !form.terms.is_empty() {
            self.known.push(Known::NotZero(form));
        }
    }

    /// Notes that the value is at least `least`.
    pub fn at_least(&mut self, stamp: u32, least: i64) {
        let value = self.of(stamp);
        let Some(form) = value.plus(&Form::constant(least), -1) else { return };
        self.learn(form);
        let Form { terms, constant: 0 } = value else { return };
        let [(value, 1)] = terms[..] else { return };
        if least < 1 {
            return;
        }
        // the dividend is quotient times divisor plus remainder, and the quotient is at least 1, so it is at least
        // divisor plus remainder
        let Some((dividend, divisor)) = self.quotients.get(&value) else { return };
        let rest = self.remainders.iter().find(|(a, b, _)| a == dividend && b == divisor);
        let rest = rest.map_or(Form::constant(0), |(_, _, rest)| Form::value(*rest));
        if let Some(form) = dividend.plus(divisor, -1).and_then(|form| form.plus(&rest, -1)) {
            self.learn(form);
        }
    }

    /// How much is known, for [`Relations::since`] and [`Relations::forget`].
    pub fn mark(&self) -> usize {
        self.known.len()
    }

    /// Takes back and returns what was learnt since the mark.
    pub fn since(&mut self, mark: usize) -> Vec<Known> {
        self.known.split_off(mark)
    }

    pub fn forget(&mut self, mark: usize) {
        self.known.truncate(mark);
    }

    pub fn extend(&mut self, known: Vec<Known>) {
        self.known.extend(known);
    }

    /// Whether the form is proved not negative.
    pub fn holds(&self, form: &Form) -> bool {
        let recent = &self.known[self.known.len().saturating_sub(MAX_KNOWN)..];
        if self.search(form, recent, DEPTH, &mut { STEPS }) {
            return true;
        }
        // what is at least -1, and not -1, is not negative
        let Some(next) = form.plus(&Form::constant(1), 1) else { return false };
        let Some(opposite) = Form::constant(0).plus(&next, -1) else { return false };
        let is_apart = |known: &Known| matches!(known, Known::NotZero(form) if *form == next || *form == opposite);
        recent.iter().any(is_apart) && self.search(&next, recent, DEPTH, &mut { STEPS })
    }

    fn search(&self, form: &Form, known: &[Known], depth: usize, steps: &mut usize) -> bool {
        let lacks = |(stamp, times): &(u32, i64)| *times < 0 || !self.natural.contains(stamp);
        if form.constant >= 0 && !form.terms.iter().any(lacks) {
            return true;
        }
        if depth == 0 || *steps == 0 {
            return false;
        }
        *steps -= 1;
        // a known form that reduces what is missing
        let helps = |fact: &&Form| {
            fact.constant < 0 && form.constant < 0
                || fact.terms.iter().any(|(stamp, times)| {
                    let mine = form.terms.iter().find(|(s, _)| s == stamp).map_or(0, |(_, times)| *times);
                    mine < 0 && *times < 0 || mine > 0 && *times > 0 && !self.natural.contains(stamp)
                })
        };
        known.iter().rev().filter_map(Known::not_negative).filter(helps).any(|fact| {
            let rest = form.plus(fact, -1);
            rest.is_some_and(|rest| self.search(&rest, known, depth - 1, steps))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(terms: &[(u32, i64)], constant: i64) -> Form {
        terms.iter().fold(Form::constant(constant), |sum, (stamp, times)| {
            sum.plus(&Form::value(*stamp), *times).expect("a short sum")
        })
    }

    const I: u32 = 1;
    const PLANE: u32 = 2;
    const ROW: u32 = 3;
    const X: u32 = 4;
    const WITHIN: u32 = 5;
    const Y: u32 = 6;
    const Z: u32 = 7;

    /// `x, within = i.divmod(plane); y, z = within.divmod(row)`.
    fn positions() -> Relations {
        let mut relations = Relations::default();
        (I..=Z).for_each(|stamp| relations.is_natural(stamp));
        let (i, plane, row, within) = (Form::value(I), Form::value(PLANE), Form::value(ROW), Form::value(WITHIN));
        relations.divides(X, i.clone(), plane.clone());
        relations.leaves(WITHIN, i, plane);
        relations.divides(Y, within.clone(), row.clone());
        relations.leaves(Z, within, row);
        relations
    }

    #[test]
    fn what_is_divided_is_at_least_the_divisor_and_what_is_left_where_the_quotient_is_not_zero() {
        let mut relations = positions();
        let neighbours = [
            sum(&[(I, 1), (PLANE, -1)], 0),
            sum(&[(I, 1), (PLANE, -1), (ROW, -1)], 0),
            sum(&[(I, 1), (PLANE, 1), (ROW, -1)], 0),
            sum(&[(I, 1), (ROW, -1)], -1),
            sum(&[(I, 1), (PLANE, -1)], -1),
        ];
        assert!(neighbours.iter().all(|form| !relations.holds(form)));
        let mark = relations.mark();
        [X, Y, Z].into_iter().for_each(|stamp| relations.at_least(stamp, 1));
        assert!(neighbours.iter().all(|form| relations.holds(form)));
        assert!(!relations.holds(&sum(&[(I, 1), (PLANE, -2)], 0)));
        assert!(!relations.holds(&sum(&[(I, 1), (PLANE, -1), (ROW, -1)], -2)));
        relations.forget(mark);
        assert!(neighbours.iter().all(|form| !relations.holds(form)));
    }

    #[test]
    fn an_index_less_than_one_that_was_checked_is_in_range() {
        let mut relations = positions();
        let size = 9;
        // i + plane + row < size
        relations.learn(sum(&[(size, 1), (I, -1), (PLANE, -1), (ROW, -1)], -1));
        assert!(relations.holds(&sum(&[(size, 1), (I, -1), (PLANE, -1)], -1)));
        assert!(relations.holds(&sum(&[(size, 1), (I, -1), (PLANE, -1), (ROW, 1)], -1)));
        assert!(!relations.holds(&sum(&[(size, 1), (I, -1), (PLANE, -2)], -1)));
        assert!(!relations.holds(&sum(&[(size, 1), (I, -1)], -2)));
    }

    #[test]
    fn what_is_less_than_a_size_and_not_the_last_has_a_next() {
        let mut relations = positions();
        let size = 9;
        relations.learn(sum(&[(size, 1), (I, -1)], -1));
        let next = sum(&[(size, 1), (I, -1)], -2);
        assert!(!relations.holds(&next));
        let mark = relations.mark();
        // i != size - 1, in both directions
        for times in [1, -1] {
            relations.is_not_zero(sum(&[(I, times), (size, -times)], times));
            assert!(relations.holds(&next));
            assert!(!relations.holds(&sum(&[(size, 1), (I, -1)], -3)));
            let known = relations.since(mark);
            assert!(!relations.holds(&next));
            relations.extend(known);
            assert!(relations.holds(&next));
            relations.forget(mark);
        }
        relations.is_not_zero(sum(&[(I, 1), (size, -1)], 2));
        assert!(!relations.holds(&next));
    }

    #[test]
    fn sums_beyond_64_bits_have_no_form() {
        let form = sum(&[(I, i64::MAX)], 0);
        assert_eq!(form.plus(&Form::value(I), 1), None);
        assert_eq!(Form::constant(i64::MIN).plus(&Form::constant(1), -1), None);
    }
}
