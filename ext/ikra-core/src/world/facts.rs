//! Which types were seen where: the assumptions that scanning and inference extend together.
//!
//! Invariant: the type of a place only grows, and array kinds only merge. A stored type may name a kind that has been
//! merged into another, so types are read through [`Facts::resolve`].

use super::{Root, well_known};
use crate::id::{ArrayKind, ClassId};
use crate::syntax::ast::Name;
use crate::types::{Prims, Reach, Storage, Ty};
use std::collections::{BTreeMap, BTreeSet};

/// A place outside the program's registers that holds values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Place {
    Root(Root),
    /// An ivar of objects of exactly this class.
    Field(ClassId, Name),
    /// Elements of the arrays of a kind.
    Elements(ArrayKind),
}

/// A speculation at a position in the source: an index was never out of range there, so no nil came of it. If it fails,
/// the launch traps ([`crate::ir::Trap::Refuted`]) and nothing is written back. The section is then compiled and run
/// again without it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Assumption {
    pub path: String,
    pub line: u32,
    pub column: usize,
}

/// Assumptions about uniform strides in columns. Each holds until a launch refutes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StrideAssumption {
    /// Arrays that are equally long follow each other.
    Arrays,
    /// Short arrays have the length that was seen.
    Lengths,
    /// References that were to consecutive objects still are.
    References,
    /// Arrays that constants hold have the Integers that were seen.
    Constants,
}

/// By root, a number. Roots that had different values at an earlier call have different numbers.
pub type Apart = BTreeMap<Root, usize>;

type Interval = (i64, i64);

/// Arrays up to this length are unrolled: a program assumes their common length, and has no loop over their elements.
const MAX_UNROLLED_LENGTH: usize = 16;

/// The most Integers in the arrays of a kind that are a part of the program.
const MAX_CONSTANTS: usize = 64;

/// The limit of the Integers, counts and indices in an assumed range: sums of four of them fit into 32 bits.
pub const ASSUMED_LIMIT: i64 = 1 << 29;

/// The range of sizes, counts and positions. Products of two of them fit into 64 bits, so they need no check. Sums of
/// four fit into 32 bits, with which a GPU computes.
const ASSUMED_RANGE: Interval = (0, ASSUMED_LIMIT - 1);

/// The assumed range of Integers in a column that a program only reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssumedRows {
    /// None is negative, as with sizes and numbers of other things.
    Natural,
    /// The square of a difference of two of them, and the sum of two such squares, fit into 63 bits.
    Signed,
}

impl AssumedRows {
    pub fn interval(self) -> Interval {
        match self {
            AssumedRows::Natural => ASSUMED_RANGE,
            AssumedRows::Signed => (-ASSUMED_LIMIT, ASSUMED_LIMIT - 1),
        }
    }
}

/// What an Integer is that is not in an assumed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutOfRange {
    /// Negative, and in the range of [`AssumedRows::Signed`].
    Negative,
    /// In no assumed range.
    Far,
}

impl OutOfRange {
    /// None for an Integer of [`AssumedRows::Natural`].
    pub fn of(integer: i64) -> Option<Self> {
        match integer {
            0..ASSUMED_LIMIT => None,
            i if (-ASSUMED_LIMIT..0).contains(&i) => Some(OutOfRange::Negative),
            _ => Some(OutOfRange::Far),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Facts {
    types: BTreeMap<Place, Ty>,
    /// Union-find over kinds; a root is its own parent.
    parents: Vec<ArrayKind>,
    changes: BTreeSet<Place>,
    /// Kinds that were merged into another, with the surviving kind, for code that keeps lists by kind.
    merges: Vec<(ArrayKind, ArrayKind)>,
    refuted: BTreeSet<Assumption>,
    /// The assumed ranges of roots that are Integers.
    integers: BTreeMap<Root, Interval>,
    /// Roots that were once beyond [`ASSUMED_RANGE`]; their ranges are not assumed.
    out_of_range: BTreeSet<Root>,
    /// The values of roots that are Integers.
    values: BTreeMap<Root, i64>,
    /// Which of them had different values at earlier calls.
    apart: Apart,
    /// Places that once held an Integer outside of [`AssumedRows::Natural`], and what it was.
    places_out_of_range: BTreeMap<Place, OutOfRange>,
    /// A launch once refuted the assumed range of a column. It is then assumed for none.
    column_out_of_range: Option<OutOfRange>,
    /// Classes of which a frozen object was seen.
    frozen: BTreeSet<ClassId>,
    /// Whether a frozen array was seen.
    frozen_arrays: bool,
    /// By kind: how arrays store their elements, if they are not Ruby's own arrays. None: not all arrays of the kind
    /// store them alike.
    storages: BTreeMap<ArrayKind, Option<Storage>>,
    /// Kinds of which some array is a buffer.
    buffers: BTreeSet<ArrayKind>,
    /// Whether columns of Floats have all bits, even where the program rounds each that it loads.
    all_bits: bool,
    /// Whether columns of objects stay, so that other programs may change them.
    columns_stay: bool,
    /// By kind: the length of arrays. None: they are not all equally long.
    lengths: BTreeMap<ArrayKind, Option<usize>>,
    /// By kind: the elements of all arrays, one array after the other. None: they are many, or no Integers.
    contents: BTreeMap<ArrayKind, Option<Vec<i64>>>,
    /// Whether the references at a place are to consecutive objects, in the order in which scanning found these.
    in_order: BTreeMap<Place, bool>,
    /// Assumptions that a launch has refuted.
    refuted_strides: BTreeSet<StrideAssumption>,
    /// Places whose references are each reached from one element only.
    owned: BTreeSet<Place>,
    /// Those owned places on which a program relies.
    relied_on: BTreeSet<Place>,
    /// Places into which the kernel stores objects or arrays that it made.
    fresh: BTreeSet<Place>,
    /// Whether some Range in registers becomes an object.
    boxes: bool,
}

impl Facts {
    /// A kind that no array has yet.
    pub fn fresh_kind(&mut self) -> ArrayKind {
        let kind = ArrayKind::new(self.parents.len());
        self.parents.push(kind);
        kind
    }
    /// The kind that `kind` has been merged into.
    pub fn find(&self, mut kind: ArrayKind) -> ArrayKind {
        while self.parents[kind.index()] != kind {
            kind = self.parents[kind.index()];
        }
        kind
    }
    /// Merges two kinds; their element types join. The smaller number survives.
    pub fn merge(&mut self, a: ArrayKind, b: ArrayKind) -> ArrayKind {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return a;
        }
        let (keep, gone) = (a.min(b), a.max(b));
        self.parents[gone.index()] = keep;
        self.merges.push((gone, keep));
        if !self.owned.contains(&Place::Elements(gone)) || !self.owned.contains(&Place::Elements(keep)) {
            self.owned.remove(&Place::Elements(keep));
        }
        if self.fresh.contains(&Place::Elements(gone)) {
            self.fresh.insert(Place::Elements(keep));
        }
        if self.buffers.remove(&gone) {
            self.buffers.insert(keep);
        }
        if let Some(storage) = self.storages.remove(&gone) {
            self.saw_storage(keep, storage);
        }
        if let Some(length) = self.lengths.remove(&gone) {
            let known = self.lengths.entry(keep).or_insert(length);
            *known = known.filter(|known| Some(*known) == length);
        }
        if self.contents.remove(&gone).is_some() {
            self.contents.insert(keep, None);
        }
        if [gone, keep].iter().any(|kind| self.in_order.remove(&Place::Elements(*kind)).is_some()) {
            self.saw_in_order(&Place::Elements(keep), false);
        }
        let old = self.types.remove(&Place::Elements(gone));
        self.changes.insert(Place::Elements(keep));
        self.changes.insert(Place::Elements(gone));
        if let Some(ty) = old {
            self.saw(&Place::Elements(keep), &ty);
        }
        keep
    }
    /// The type, with every kind replaced by the kind into which it was merged.
    pub fn resolve(&self, ty: &Ty) -> Ty {
        let mut out = ty.clone();
        out.array = ty.array.map(|k| self.find(k));
        out
    }
    /// Union of two types; if both have an array kind, the kinds are merged.
    pub fn join(&mut self, a: &Ty, b: &Ty) -> Ty {
        let (mut a, mut b) = (self.resolve(a), self.resolve(b));
        if let (Some(x), Some(y)) = (a.array, b.array) {
            let kind = self.merge(x, y);
            a.array = Some(kind);
            b.array = Some(kind);
        }
        let joined = a.union_same_arrays(&b);
        if joined.may_be(Prims::RANGE) && joined.atoms().len() > 1 { self.boxed(&joined) } else { joined }
    }
    /// The type of the same values in memory, or at a place that may hold other kinds. There, a Range is an object.
    pub fn boxed(&mut self, ty: &Ty) -> Ty {
        if !ty.may_be(Prims::RANGE) {
            return ty.clone();
        }
        self.boxes = true;
        for (range, end) in [(Prims::INT_RANGE, Ty::int()), (Prims::FLOAT_RANGE, Ty::float())] {
            let ends = ["begin", "end"].iter().filter(|_| ty.may_be(range));
            ends.for_each(|part| self.saw(&Place::Field(well_known::RANGE, (*part).into()), &end));
        }
        self.saw(&Place::Field(well_known::RANGE, "exclude_end".into()), &Ty::bool());
        let mut rest = ty.clone();
        rest.prims.0 &= !Prims::RANGE.0;
        rest.union_same_arrays(&Ty::object(well_known::RANGE, Reach::Fresh))
    }
    /// Whether some Range of registers becomes an object.
    pub fn boxes(&self) -> bool {
        self.boxes
    }
    /// The type of a place as far as it is known. None: nothing was reported for it.
    pub fn get(&self, place: &Place) -> Option<Ty> {
        self.types.get(&self.canonical(place)).map(|t| self.resolve(t))
    }
    /// Joins `ty` into the type of a place; logs the place if it grew.
    pub fn saw(&mut self, place: &Place, ty: &Ty) {
        let place = self.canonical(place);
        let known = self.types.contains_key(&place);
        let old = self.get(&place).unwrap_or_default();
        let boxed = match place {
            // a launch parameter holds both ends of a Range
            Place::Root(ref root) if *root != Root::Element => None,
            _ => ty.may_be(Prims::RANGE).then(|| self.boxed(ty).reached(Reach::Any)),
        };
        let new = self.join(&old, boxed.as_ref().unwrap_or(ty));
        // joining may have merged the very kind that `place` names
        let place = self.canonical(&place);
        if !known || new != old {
            self.types.insert(place.clone(), new);
            self.changes.insert(place);
        }
    }
    /// The kind of the arrays at a place. If it has none, it gets a fresh one.
    pub fn array_at(&mut self, place: &Place) -> ArrayKind {
        if let Some(kind) = self.get(place).and_then(|t| t.array) {
            return kind;
        }
        let kind = self.fresh_kind();
        self.saw(place, &Ty::array(kind));
        kind
    }
    /// Takes over which roots had different values at earlier calls.
    pub fn know_apart(&mut self, apart: Apart) {
        self.apart = apart;
    }
    /// The same for this call and those before it. Roots that were never seen together are apart, too.
    pub fn apart(&self) -> Apart {
        let mut numbers = BTreeMap::new();
        let mut number = |root: &Root| {
            let key = (self.apart.get(root), self.values.get(root));
            let next = numbers.len();
            *numbers.entry(key).or_insert(next)
        };
        let roots: BTreeSet<&Root> = self.apart.keys().chain(self.values.keys()).collect();
        roots.into_iter().map(|root| (root.clone(), number(root))).collect()
    }
    /// The roots that are assumed to be the same Integer as a root: sizes of arrays, and what was always equal to one.
    /// None: nothing is assumed of the root. 0 and 1 are mostly equal by chance.
    pub fn alike(&self, root: &Root) -> Option<Vec<&Root>> {
        let value = *self.values.get(root).filter(|value| **value > 1)?;
        let known = self.apart.get(root);
        let is_alike = |(other, seen): &(&Root, &i64)| {
            **seen == value && self.apart.get(other) == known && !self.out_of_range.contains(other)
        };
        let all: Vec<&Root> = self.values.iter().filter(is_alike).map(|(other, _)| other).collect();
        (all.contains(&root) && all.iter().any(|root| root.is_of_live_object())).then_some(all)
    }
    /// Notes that a root is this Integer. Ranges of elements that start at 0 are assumed to do so in later calls.
    pub fn saw_integer(&mut self, root: &Root, value: i64) {
        if !(ASSUMED_RANGE.0..=ASSUMED_RANGE.1).contains(&value) {
            self.out_of_range.insert(root.clone());
        }
        let seen = match value {
            0 if *root == Root::Element => (0, 0),
            // an empty array is rare
            1.. if root.is_of_live_object() => (1, ASSUMED_RANGE.1),
            _ => ASSUMED_RANGE,
        };
        self.integers.insert(root.clone(), seen);
        self.values.insert(root.clone(), value);
    }
    /// The assumed range of the word of a root that is an Integer or an array. The word of the only array of its kind
    /// is its length, since its elements are the first of their column. A launch with a word outside the range needs
    /// another program.
    pub fn word(&self, root: &Root) -> Option<Interval> {
        if self.out_of_range.contains(root) {
            // it may only have been an empty array, or a Range that does not start at 0
            let is_size = |value: &i64| (ASSUMED_RANGE.0..=ASSUMED_RANGE.1).contains(value);
            let is_again = root.is_of_live_object() || *root == Root::Element;
            return (is_again && self.values.get(root).is_some_and(is_size)).then_some(ASSUMED_RANGE);
        }
        let array = self.get(&Place::Root(root.clone())).and_then(|ty| ty.array);
        match array {
            Some(kind) => {
                let alone = self.places().all(|(p, ty)| ty.array != Some(kind) || *p == Place::Root(root.clone()));
                // otherwise the word also contains the offset, which is small, so that rows of its elements fit into 32
                // bits
                let length = self.length(kind).filter(|_| alone && matches!(root, Root::Const(_)));
                if let Some(length) = length {
                    return Some((length as i64, length as i64));
                }
                Some(if alone { ASSUMED_RANGE } else { (0, ASSUMED_RANGE.1 << 32 | ASSUMED_RANGE.1) })
            }
            None => self.integers.get(root).copied(),
        }
    }
    /// The ranges of these roots are no longer assumed.
    pub fn drop_ranges(&mut self, roots: &BTreeSet<Root>) {
        self.out_of_range.extend(roots.iter().cloned());
    }
    pub fn out_of_range(&self) -> &BTreeSet<Root> {
        &self.out_of_range
    }
    /// The assumption is no longer made.
    pub fn refute(&mut self, assumption: &Assumption) {
        self.refuted.insert(assumption.clone());
    }
    pub fn holds(&self, assumption: &Assumption) -> bool {
        !self.refuted.contains(assumption)
    }
    /// Notes that an object of this class is frozen. Programs check writes to objects of it from now on.
    pub fn saw_frozen(&mut self, class: ClassId) {
        self.frozen.insert(class);
    }
    pub fn may_be_frozen(&self, class: ClassId) -> bool {
        self.frozen.contains(&class)
    }
    /// Notes that an array is frozen. Programs check writes to arrays from now on.
    pub fn saw_frozen_array(&mut self) {
        self.frozen_arrays = true;
    }
    pub fn arrays_may_be_frozen(&self) -> bool {
        self.frozen_arrays
    }
    /// Notes how an array of a kind stores its elements. None: as Ruby's arrays do.
    pub fn saw_storage(&mut self, kind: ArrayKind, storage: Option<Storage>) {
        let kind = self.find(kind);
        if storage.is_some() {
            self.buffers.insert(kind);
        }
        let known = self.storages.entry(kind).or_insert(storage);
        if *known != storage {
            *known = None;
        }
    }
    /// Whether some array of a kind is a buffer.
    pub fn are_buffers(&self, kind: ArrayKind) -> bool {
        self.buffers.contains(&self.find(kind))
    }
    /// Columns of Floats get all bits from now on: other programs read them, too.
    pub fn keep_all_bits(&mut self) {
        self.all_bits = true;
    }
    pub fn keeps_all_bits(&self) -> bool {
        self.all_bits
    }
    /// Columns of objects stay from call to call, and nobody looks at them before each. Those of arrays do not change.
    pub fn let_columns_stay(&mut self) {
        (self.columns_stay, self.column_out_of_range) = (true, Some(OutOfRange::Far));
    }
    pub fn columns_stay(&self) -> bool {
        self.columns_stay
    }
    /// How all arrays of a kind store their elements, if they do so otherwise than Ruby's arrays.
    pub fn storage(&self, kind: ArrayKind) -> Option<Storage> {
        *self.storages.get(&self.find(kind))?
    }
    /// Notes the length of an array of a kind.
    pub fn saw_length(&mut self, kind: ArrayKind, length: usize) {
        let kind = self.find(kind);
        let known = self.lengths.entry(kind).or_insert(Some(length));
        *known = known.filter(|known| *known == length);
    }
    /// Whether the host has arrays of a kind.
    pub fn has_any(&self, kind: ArrayKind) -> bool {
        self.lengths.contains_key(&self.find(kind))
    }
    /// Whether arrays of a kind are assumed to have a uniform stride in their column. Those that were seen are equally
    /// long, so they do if they were found in the column's order. A launch where they do not needs another program.
    pub fn has_uniform_stride(&self, kind: ArrayKind) -> bool {
        self.takes(StrideAssumption::Arrays) && self.lengths.get(&self.find(kind)).is_some_and(Option::is_some)
    }
    /// The assumed length of arrays of a kind with uniform stride, if they are short.
    pub fn length(&self, kind: ArrayKind) -> Option<usize> {
        let known = self.lengths.get(&self.find(kind)).copied().flatten();
        known.filter(|length| self.takes(StrideAssumption::Lengths) && *length <= MAX_UNROLLED_LENGTH)
    }
    /// Notes the elements of an array of a kind, in the order in which arrays are found. None: they are not all
    /// Integers.
    pub fn saw_contents(&mut self, kind: ArrayKind, integers: Option<&[i64]>) {
        let kind = self.find(kind);
        let known = self.contents.entry(kind).or_insert_with(|| Some(Vec::new()));
        match (known.as_mut(), integers) {
            (Some(all), Some(integers)) if all.len() + integers.len() <= MAX_CONSTANTS => all.extend(integers),
            _ => *known = None,
        }
    }
    /// Whether the elements of arrays of a kind may still be few Integers.
    pub fn may_be_constant(&self, kind: ArrayKind) -> bool {
        self.contents.get(&self.find(kind)).is_none_or(Option::is_some)
    }
    /// The assumed elements of all arrays of a kind, in the order of their column. Only constants hold the arrays, so a
    /// launch with other elements is rare.
    pub fn constants(&self, kind: ArrayKind) -> Option<&[i64]> {
        let known = self.contents.get(&self.find(kind))?.as_deref()?;
        let holds = self.takes(StrideAssumption::Constants) && self.is_of_constants(kind, &mut Vec::new());
        holds.then_some(known)
    }
    fn is_of_constants(&self, kind: ArrayKind, within: &mut Vec<ArrayKind>) -> bool {
        let kind = self.find(kind);
        if within.contains(&kind) {
            return false;
        }
        within.push(kind);
        let holds = self.places().all(|(place, ty)| {
            ty.array != Some(kind)
                || match place {
                    Place::Root(Root::Const(_)) => true,
                    Place::Elements(outer) => self.is_of_constants(*outer, within),
                    _ => false,
                }
        });
        within.pop();
        holds
    }
    /// Notes whether the references at a place that were just seen are to consecutive objects, in the order in which
    /// scanning found these.
    pub fn saw_in_order(&mut self, place: &Place, is: bool) {
        let place = self.canonical(place);
        *self.in_order.entry(place).or_insert(is) &= is;
    }
    /// Whether the references at a place are assumed to be to consecutive rows.
    pub fn is_in_order(&self, place: &Place) -> bool {
        self.takes(StrideAssumption::References) && self.in_order.get(&self.canonical(place)) == Some(&true)
    }
    /// Notes that a place holds such an Integer.
    pub fn saw_out_of_range(&mut self, place: &Place, what: OutOfRange) {
        let place = self.canonical(place);
        let seen = self.places_out_of_range.entry(place).or_insert(what);
        *seen = what.max(*seen);
    }
    /// A range that such Integers are not in is no longer assumed of columns.
    pub fn saw_column_out_of_range(&mut self, what: OutOfRange) {
        self.column_out_of_range = Some(what).max(self.column_out_of_range);
    }
    /// The range that the Integers at a place are assumed to be in, since all that were seen are.
    pub fn assumed_rows(&self, place: &Place) -> Option<AssumedRows> {
        let place = self.canonical(place);
        let here = self.places_out_of_range.iter().filter(|(other, _)| self.canonical(other) == place);
        match here.map(|(_, what)| *what).max().max(self.column_out_of_range) {
            None => Some(AssumedRows::Natural),
            Some(OutOfRange::Negative) => Some(AssumedRows::Signed),
            Some(OutOfRange::Far) => None,
        }
    }
    /// This assumption is no longer made.
    pub fn refute_stride(&mut self, what: StrideAssumption) {
        self.refuted_strides.insert(what);
    }
    fn takes(&self, what: StrideAssumption) -> bool {
        !self.refuted_strides.contains(&what)
    }
    /// Notes whether each object or array that the place refers to is reached from exactly one element. The place is a
    /// field of owned objects, or the elements of an owned array. The World decides at the scan, and later may only
    /// withdraw it.
    pub fn set_owned(&mut self, place: &Place, owned: bool) {
        let place = self.canonical(place);
        let changed = if owned { self.owned.insert(place.clone()) } else { self.owned.remove(&place) };
        if changed {
            self.changes.insert(place);
        }
    }
    pub fn is_owned(&self, place: &Place) -> bool {
        self.owned.contains(&self.canonical(place))
    }
    /// Notes that the program relies on this place being owned, so packing for it must check that. Other places need no
    /// check. Places that nothing has reported or that no program reads are owned only because no scan has refuted it.
    pub fn rely_on_owned(&mut self, place: &Place) {
        let place = self.canonical(place);
        self.relied_on.insert(place);
    }
    pub fn must_be_owned(&self, place: &Place) -> bool {
        let place = self.canonical(place);
        self.owned.contains(&place) && self.relied_on.iter().any(|relied| self.canonical(relied) == place)
    }
    /// Notes that the kernel stores objects or arrays there that it made itself.
    pub fn set_may_hold_fresh(&mut self, place: &Place) {
        let place = self.canonical(place);
        if self.fresh.insert(place.clone()) {
            self.changes.insert(place);
        }
    }
    pub fn may_hold_fresh(&self, place: &Place) -> bool {
        self.fresh.contains(&self.canonical(place))
    }
    /// Places that grew since the last call.
    pub fn take_changes(&mut self) -> BTreeSet<Place> {
        std::mem::take(&mut self.changes)
    }
    /// Merges of kinds since the last call, as (merged, survivor).
    pub fn take_merges(&mut self) -> Vec<(ArrayKind, ArrayKind)> {
        std::mem::take(&mut self.merges)
    }
    /// All places with their types, in a fixed order.
    pub fn places(&self) -> impl Iterator<Item = (&Place, Ty)> {
        self.types.iter().map(|(p, t)| (p, self.resolve(t)))
    }
    fn canonical(&self, place: &Place) -> Place {
        match place {
            Place::Elements(kind) => Place::Elements(self.find(*kind)),
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Prims;

    #[test]
    fn kinds_that_meet_become_one_and_join_their_elements() {
        let mut facts = Facts::default();
        let (a, b) = (facts.fresh_kind(), facts.fresh_kind());
        facts.saw(&Place::Elements(a), &Ty::int());
        facts.saw(&Place::Elements(b), &Ty::nil());
        facts.take_changes();
        let joined = facts.join(&Ty::array(b), &Ty::array(a));
        assert_eq!(joined, Ty::array(a));
        assert_eq!(facts.get(&Place::Elements(b)), Some(Ty::prim(Prims(Prims::INT.0 | Prims::NIL.0))));
        assert!(facts.take_changes().contains(&Place::Elements(a)));
        assert_eq!(facts.take_merges(), [(b, a)]);
    }

    #[test]
    fn sizes_that_were_always_equal_are_assumed_to_be() {
        let size = |of: &str, name: &str| {
            let lambda = Root::Member(Box::new(Root::Capture(of.into())), "[]".into());
            Root::Within(Box::new(lambda), name.into())
        };
        let (a, b, c, n) = (size("a", "d0"), size("b", "d0"), size("c", "d0"), Root::Capture("n".into()));
        let (i, j) = (Root::Capture("i".into()), Root::Capture("j".into()));
        let see = |apart: Apart, values: &[(&Root, i64)]| {
            let mut facts = Facts::default();
            facts.know_apart(apart);
            values.iter().for_each(|(root, value)| facts.saw_integer(root, *value));
            facts
        };
        let alike = |facts: &Facts, root: &Root| {
            facts.alike(root).map(|all| all.into_iter().cloned().collect::<BTreeSet<Root>>())
        };
        let set = |roots: &[&Root]| Some(roots.iter().map(|root| (*root).clone()).collect());
        let first = see(Apart::new(), &[(&a, 9), (&b, 9), (&c, 1), (&n, 9), (&i, 5), (&j, 5)]);
        assert_eq!(alike(&first, &n), set(&[&a, &b, &n]));
        // numbers of which none is a size, and the size 1, may be equal by chance
        assert_eq!([&i, &j, &c].map(|root| alike(&first, root)), [None, None, None]);
        // n turns out to be another number, and c may be equal from now on only by chance
        let second = see(first.apart(), &[(&a, 7), (&b, 7), (&c, 7), (&n, 9), (&i, 5), (&j, 5)]);
        assert_eq!([&a, &c].map(|root| alike(&second, root)), [set(&[&a, &b]), set(&[&c])]);
        assert_eq!(alike(&second, &n), None);
        let third = see(second.apart(), &[(&a, 7), (&b, 7), (&n, 7)]);
        assert_eq!(alike(&third, &b), set(&[&a, &b]));
        assert_eq!(third.word(&a), Some((1, ASSUMED_LIMIT - 1)));
        // an array was empty
        let mut empty = see(Apart::new(), &[(&a, 0), (&b, 7)]);
        empty.drop_ranges(&[a.clone(), b.clone()].into());
        assert_eq!([&a, &b].map(|root| empty.word(root)), [Some((0, ASSUMED_LIMIT - 1)); 2]);
        assert_eq!(alike(&empty, &b), None);
        empty.saw_integer(&a, -1);
        assert_eq!(empty.word(&a), None);
    }

    #[test]
    fn an_array_may_hold_itself() {
        let mut facts = Facts::default();
        let a = facts.fresh_kind();
        facts.saw(&Place::Elements(a), &Ty::array(a));
        assert_eq!(facts.get(&Place::Elements(a)), Some(Ty::array(a)));
    }
    #[test]
    fn a_place_must_be_owned_where_somebody_took_it_for_granted_and_nobody_took_it_back() {
        let mut facts = Facts::default();
        let kinds = [(); 3].map(|()| facts.fresh_kind());
        let places = kinds.map(Place::Elements);
        places[..2].iter().for_each(|place| facts.set_owned(place, true));
        assert_eq!(places.each_ref().map(|place| facts.must_be_owned(place)), [false; 3]);
        places[1..].iter().for_each(|place| facts.rely_on_owned(place));
        assert_eq!(places.each_ref().map(|place| facts.must_be_owned(place)), [false, true, false]);
        // facts about a kind hold for the kind into which it was merged
        facts.merge(kinds[0], kinds[1]);
        assert!(facts.must_be_owned(&places[0]));
        facts.set_owned(&places[1], false);
        assert!(!facts.must_be_owned(&places[0]));
    }
    #[test]
    fn lists_are_taken_to_be_as_long_and_in_the_order_that_they_were_until_something_else_is_found() {
        let mut facts = Facts::default();
        let kinds = [(); 3].map(|()| facts.fresh_kind());
        for (kind, lengths) in kinds.iter().zip([[8, 8], [8, 7], [MAX_UNROLLED_LENGTH + 1, MAX_UNROLLED_LENGTH + 1]]) {
            lengths.iter().for_each(|length| facts.saw_length(*kind, *length));
        }
        assert_eq!(kinds.map(|kind| facts.length(kind)), [Some(8), None, None]);
        assert_eq!(kinds.map(|kind| facts.has_uniform_stride(kind)), [true, false, true]);
        let places = kinds.map(Place::Elements);
        facts.saw_in_order(&places[0], true);
        facts.saw_in_order(&places[1], true);
        facts.saw_in_order(&places[1], false);
        facts.saw_in_order(&places[1], true);
        assert_eq!(places.each_ref().map(|place| facts.is_in_order(place)), [true, false, false]);
        let mut wrong = facts.clone();
        wrong.refute_stride(StrideAssumption::Lengths);
        assert!(
            wrong.length(kinds[0]).is_none() && wrong.has_uniform_stride(kinds[0]) && wrong.is_in_order(&places[0])
        );
        wrong.refute_stride(StrideAssumption::References);
        assert!(!wrong.is_in_order(&places[0]));
        // the column of the merged kind is in neither kind's order
        facts.merge(kinds[2], kinds[0]);
        assert!(!facts.is_in_order(&places[0]) && facts.length(kinds[0]).is_none());
    }
}
