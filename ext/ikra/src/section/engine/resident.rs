//! Sections that leave their columns where they are: `Ikra.resident`.
//!
//! Here: [`Scope`], what the open scope of a Fiber keeps of each compiled block it ran. Each block has a [`State`]: the
//! tables of objects, and a buffer for each column. This file also moves columns from one block's state to another's,
//! and back to the objects. Not here: how Ruby's own reads and writes are noticed (lib/ikra/resident.rb).
//!
//! # Versions of columns
//!
//! A *key* names an ivar of some classes, in whatever program it is a column. Lists that have no object of a class in
//! common are apart, in *groups* ([`groups`]), and have keys of their own. Each launch that writes a key makes a newer
//! version of it. So does Ruby where it writes a slot ([`slots`]).
//!
//! A state runs only when each of its keys has the newest version. Older columns are taken over from the state that has
//! the newest, where both states number the objects alike. Buffers share contents, so nothing is copied. Else
//! everything is written back to the objects, and packed anew.
//!
//! Ruby sees what kernels did once [`Scope::write_back`] ran. Single slots it sees before. Any other change by Ruby
//! makes all states void ([`Scope::changed`]). Nothing notices writes to arrays, so arrays are compared with what was
//! packed of them. Where the scope says that arrays are fixed, they are compared only after a call of some method of an
//! object, which may have given the program an array.
//!
//! Some programs have no state and run as without a scope. They make objects, freeze anything or ask what is frozen,
//! write to arrays, or read Strings that are not frozen.

use super::Section;
use super::cache::Site;
use super::variant::Variant;
use crate::buffers::buffer;
use crate::marshal::decode::Decoder;
use crate::marshal::graph_cache;
use crate::marshal::made::Made;
use crate::marshal::pack::{self, Elements, Packed, RootValue};
use crate::marshal::plan::SlotPlan;
use crate::marshal::trace::Tables;
use crate::marshal::unpack::Unpacker;
use crate::report::{explain, profile};
use crate::ruby::errors;
use crate::ruby::fiber::{self, Number};
use crate::ruby::gate;
use crate::ruby::gvl;
use crate::ruby::heap::{self, Raw};
use crate::ruby::holder::{Holder, LazyHolder};
use crate::ruby::identity::RawMap;
use crate::ruby::reflect;
use crate::ruby::registry::Kept;
use crate::world::large_stack;
use arrays::Arrays;
use groups::Versions;
use ikra_core::backend::doubled::Doubled;
use ikra_core::backend::resident::{Resident, Write};
use ikra_core::ir::{Column, ColumnId, Space, Storage, UniformStride};
use ikra_core::memory::buffer::Buffer;
use ikra_core::memory::column::HostColumn;
use ikra_core::types::{Prims, Repr};
pub(super) use inside::Inside;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::typed_data::Obj;
use magnus::{Error, RModule, Ruby, TryConvert, Value};
use parking_lot::Mutex;
use slots::Fetched;
pub use slots::{slot, store};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

mod arrays;
mod groups;
mod inside;
mod slots;

/// The members of a column, and what it holds of them.
type Key = (Vec<Member>, Part);

/// An ivar of a class, among the states of one group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Member {
    class: Raw,
    group: u64,
    ivar: String,
}

/// What a column holds of an ivar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part {
    Value,
    /// The tag of its union.
    Tag,
    /// Which rows programs have stored.
    Marks,
}

/// What a scope keeps of one compiled block over one list.
pub(super) struct State {
    site: Arc<Site>,
    variant: Arc<Variant>,
    /// The list, and first element and length of a Range.
    base: (Raw, Option<(i64, usize)>),
    tables: Arc<Tables>,
    /// By column: what the state keeps of it.
    kept: Vec<Option<Kind>>,
    lengths: Vec<usize>,
    biases: Vec<u64>,
    /// Parameters, as they were packed.
    params: Vec<u64>,
    jobs: u64,
    /// All arrays in its tables.
    arrays: Arrays,
    /// The newest version of each key that the state has, and whether the objects lack it.
    versions: Mutex<HashMap<Key, (u64, bool)>>,
    /// The newest version of every key at the time of packing. The objects lacked none.
    packed_at: HashMap<Key, u64>,
    /// By class: the group of states that its objects belong to.
    groups: RawMap<u64>,
    /// Whether the objects lack some version.
    ahead: AtomicBool,
    /// Whether it ran after all states that have one of its versions. All its versions are the newest then, so that it
    /// need not be compared with others.
    is_last: AtomicBool,
    /// The number of finished launches that may have changed its columns.
    launches: AtomicU64,
    fetched: Fetched,
    /// The value of the scope's `changes` at the time of packing.
    seen: u64,
    /// A number that no other state has.
    serial: u64,
    /// Results of comparisons with the tables of other states. Tables never change, so a result holds while both states
    /// exist.
    compared: Mutex<HashMap<(u64, Compared), bool>>,
    /// Marks the objects of the tables.
    holder: Kept,
    _base: Option<Kept>,
}

/// What the tables of two states may have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Compared {
    /// Any object.
    Objects,
    /// The rows of a class.
    Rows(Raw),
    Numbers,
    Texts,
}

/// A column that the state keeps.
struct Kind {
    buffer: Arc<Buffer>,
    /// None where the column never changes.
    key: Option<Key>,
}

#[derive(Default)]
struct Inner {
    /// States, in the order of their last runs.
    states: Vec<Arc<State>>,
    versions: Versions,
    /// How often Ruby changed objects.
    changes: u64,
    /// A method of a watched object was called since arrays were last compared.
    touched: bool,
}

/// An open scope of a Fiber.
pub(super) struct Scope {
    fiber: Number,
    /// The program changes no Array while the scope is open.
    fixed: bool,
    /// Whether columns of Floats have all bits. So it is once programs of both precisions have one in common.
    all_bits: AtomicBool,
    inner: Mutex<Inner>,
}

/// The scopes of this process.
struct Scopes {
    /// Those that are open, the innermost last. One within another is the same scope, and is there twice.
    open: Mutex<Vec<Arc<Scope>>>,
    /// How many are open: what sections, and Ruby's reads and writes, check first.
    count: AtomicUsize,
    /// For each Fiber that has any: the number of scopes for which methods of objects are watched.
    shown: Mutex<Vec<(Number, i32)>>,
    /// The serial number of the next state.
    serial: AtomicU64,
}

static SCOPES: Scopes = Scopes {
    open: Mutex::new(Vec::new()),
    count: AtomicUsize::new(0),
    shown: Mutex::new(Vec::new()),
    serial: AtomicU64::new(0),
};

/// The most attempts to fetch columns while other threads run.
const MAX_FETCH_ATTEMPTS: usize = 4;
/// On the host, fewer bytes are copied so fast that a kernel without copies is not worthwhile.
const WORTH_DOUBLING: usize = 64 << 10;
/// The most states that a scope keeps.
const MAX_STATES: usize = 1024;

/// The innermost scope of this Fiber.
pub(super) fn scope(ruby: &Ruby) -> Option<Arc<Scope>> {
    if SCOPES.count.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let fiber = fiber::known(ruby)?;
    SCOPES.open.lock().iter().rev().find(|scope| scope.fiber == fiber).cloned()
}

/// `Ikra.__resident_open(fixed)`: opens a scope. `fixed` says that the program changes no Array in it.
///
/// # Errors
/// As [`fiber::current`], and as [`let_gone_go`].
pub fn open(ruby: &Ruby, fixed: bool) -> Result<(), Error> {
    let_gone_go(ruby)?;
    let fiber = fiber::current(ruby)?;
    // A scope within another is the same scope.
    let new = || Arc::new(Scope { fiber, fixed, all_bits: AtomicBool::new(false), inner: Mutex::default() });
    let scope = scope(ruby).unwrap_or_else(new);
    SCOPES.count.fetch_add(1, Ordering::Relaxed);
    SCOPES.open.lock().push(scope);
    Ok(())
}

/// `Ikra.__resident_close`: writes everything back.
///
/// # Errors
/// As [`Scope::write_back`].
pub fn close(ruby: &Ruby) -> Result<(), Error> {
    let Some(scope) = scope(ruby) else { return Ok(()) };
    let written = scope.write_back(ruby);
    let last = {
        let mut scopes = SCOPES.open.lock();
        if let Some(at) = scopes.iter().rposition(|other| Arc::ptr_eq(other, &scope)) {
            scopes.remove(at);
        }
        !scopes.iter().any(|other| Arc::ptr_eq(other, &scope))
    };
    if last {
        scope.end();
    }
    SCOPES.count.fetch_sub(1, Ordering::Relaxed);
    written
}

/// The scopes of all other Fibers, of this thread and of others, except `own`.
fn others(own: Option<&Arc<Scope>>) -> Vec<Arc<Scope>> {
    if !is_open() {
        return Vec::new();
    }
    let is_own = |scope: &Arc<Scope>| own.is_some_and(|own| Arc::ptr_eq(own, scope));
    SCOPES.open.lock().iter().filter(|scope| !is_own(scope)).cloned().collect()
}

/// Before a section reads objects: writes back what kernels changed in scopes of other Fibers. A section that finds its
/// state need not ask, because the state would be void.
///
/// # Errors
/// As [`Scope::write_back`].
pub(super) fn read_others(ruby: &Ruby, own: Option<&Arc<Scope>>) -> Result<(), Error> {
    others(own).iter().try_for_each(|scope| scope.write_back(ruby))
}

/// After a section may have changed objects, or the columns of a state: makes states in scopes of other Fibers void,
/// where they may have some of these objects.
pub(super) fn changed_for_others(own: Option<&Arc<Scope>>, state: Option<&Arc<State>>) {
    let others = others(own);
    let met = others.iter().filter(|scope| state.is_none_or(|state| scope.meets(state)));
    met.for_each(|scope| scope.changed());
}

/// Sections of this Fiber that are under way end before Ruby looks at objects whose columns stay.
///
/// # Errors
/// What they raise.
fn before_ruby(ruby: &Ruby) -> Result<(), Error> {
    gate::current(ruby).map_or(Ok(()), |gate| gate.funcall::<_, _, Value>("before_ruby", ()).map(drop))
}

/// `Ikra.__resident_read`: Ruby is about to read objects.
///
/// # Errors
/// As [`Scope::write_back`].
pub fn read(ruby: &Ruby) -> Result<(), Error> {
    before_ruby(ruby)?;
    let scopes = SCOPES.open.lock().clone();
    scopes.iter().for_each(|scope| scope.inner.lock().touched = true);
    scopes.iter().try_for_each(|scope| scope.write_back(ruby))?;
    let_gone_go(ruby)
}

/// Closes what Fibers left open that cannot be resumed any more: scopes, and what `Ikra.profile` and `Ikra.explain`
/// keep.
///
/// # Errors
/// As [`close`]. The scopes are closed even then.
pub fn let_gone_go(ruby: &Ruby) -> Result<(), Error> {
    let gone = fiber::take_gone();
    if gone.is_empty() {
        return Ok(());
    }
    profile::let_go(&gone);
    explain::let_go(&gone);
    let scopes = SCOPES.open.lock().clone();
    let left: Vec<Arc<Scope>> = scopes.into_iter().filter(|scope| gone.contains(&scope.fiber)).collect();
    let written = left.iter().map(|scope| scope.write_back(ruby)).fold(Ok(()), Result::and);
    SCOPES.open.lock().retain(|scope| !gone.contains(&scope.fiber));
    SCOPES.shown.lock().retain(|(fiber, _)| !gone.contains(fiber));
    SCOPES.count.fetch_sub(left.len(), Ordering::Relaxed);
    left.iter().for_each(|scope| scope.end());
    written
}

/// `Ikra.__resident_changed`: Ruby changed an object.
pub fn changed() {
    let scopes = SCOPES.open.lock().clone();
    scopes.iter().for_each(|scope| scope.changed());
}

/// `Ikra.__resident_shown(more)`: adds `more` to the number of watched scopes of this Fiber, and says whether any Fiber
/// has one. `Ikra::Resident` calls it before a scope opens and after it is closed, to know what must be watched.
///
/// # Errors
/// As [`fiber::current`].
pub fn shown(ruby: &Ruby, more: i32) -> Result<bool, Error> {
    if more != 0 {
        let fiber = fiber::current(ruby)?;
        let mut shown = SCOPES.shown.lock();
        match shown.iter_mut().find(|(other, _)| *other == fiber) {
            Some((_, count)) => *count += more,
            None => shown.push((fiber, more)),
        }
        shown.retain(|(_, count)| *count > 0);
    }
    Ok(!SCOPES.shown.lock().is_empty())
}

/// `Ikra.__resident?`: whether some scope is open.
pub fn is_open() -> bool {
    SCOPES.count.load(Ordering::Relaxed) > 0
}

/// Bytes on a device of the columns that scopes keep.
pub fn held() -> usize {
    let scopes = SCOPES.open.lock().clone();
    let states: Vec<Arc<State>> = scopes.iter().flat_map(|scope| scope.inner.lock().states.clone()).collect();
    buffer::on_device(states.iter().flat_map(|state| state.kept.iter().flatten()).map(|kind| &kind.buffer))
}

/// Gives the tables of states that are not needed any more to the graph cache.
fn let_go(states: Vec<Arc<State>>) {
    states.into_iter().filter_map(Arc::into_inner).for_each(State::let_go);
}

impl Scope {
    /// Whether columns of Floats have all bits.
    pub(super) fn all_bits(&self) -> bool {
        self.all_bits.load(Ordering::Relaxed)
    }

    /// Makes all states void.
    pub fn changed(&self) {
        self.inner.lock().changes += 1;
    }

    /// Writes to the objects what they lack.
    ///
    /// # Errors
    /// `Device`; FrozenError for objects that were frozen meanwhile; NoMemoryError.
    pub fn write_back(&self, ruby: &Ruby) -> Result<(), Error> {
        let states = self.inner.lock().states.clone();
        for state in &states {
            if state.write_back(ruby)? {
                let written: Vec<(Key, u64)> = {
                    let mut versions = state.versions.lock();
                    versions.values_mut().for_each(|(_, lacking)| *lacking = false);
                    versions.iter().map(|(key, (version, _))| (key.clone(), *version)).collect()
                };
                // Other states that took over the same version need not write it again.
                for other in states.iter().filter(|other| !Arc::ptr_eq(other, state) && other.has_group_of(state)) {
                    let mut versions = other.versions.lock();
                    for (key, version) in &written {
                        if let Some((known, lacking)) = versions.get_mut(key)
                            && *known <= *version
                        {
                            *lacking = false;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Drops void states. What a kernel changed before Ruby made a state void is first written to the objects.
    pub(super) fn tidy(&self, ruby: &Ruby) -> Result<(), Error> {
        let lost = {
            let inner = self.inner.lock();
            inner.states.iter().any(|state| state.seen != inner.changes && state.ahead.load(Ordering::Relaxed))
        };
        if lost {
            self.write_back(ruby)?;
        }
        let gone = {
            let mut inner = self.inner.lock();
            let changes = inner.changes;
            if inner.states.iter().all(|state| state.seen == changes) {
                return Ok(());
            }
            let (keep, gone): (_, Vec<Arc<State>>) =
                std::mem::take(&mut inner.states).into_iter().partition(|state| state.seen == changes);
            inner.states = keep;
            inner.forget_groups();
            gone
        };
        let_go(gone);
        Ok(())
    }

    /// Drops the numbers of objects from all tables, because the states do not number them alike.
    fn forget(&self) {
        drop(self.take());
    }

    /// Ends the scope: no section runs in it any more.
    fn end(&self) {
        let_go(self.take());
    }

    fn take(&self) -> Vec<Arc<State>> {
        let mut inner = self.inner.lock();
        inner.versions = Versions::default();
        std::mem::take(&mut inner.states)
    }

    /// Updates a state to the newest versions. False where that is not possible.
    fn update(&self, state: &State) -> bool {
        let inner = self.inner.lock();
        // All columns or none: a state with some columns of the newest version would also write back the others.
        let mut taken = Vec::new();
        for kind in state.kept.iter().flatten() {
            let Some(key) = &kind.key else { continue };
            let wanted = inner.versions.of(key);
            let known = state.versions.lock().get(key).map_or(0, |(version, _)| *version);
            if known == wanted {
                continue;
            }
            let has =
                |other: &&Arc<State>| other.versions.lock().get(key).is_some_and(|(version, _)| *version == wanted);
            let from = inner.states.iter().filter(has).find_map(|other| {
                let lacking = other.versions.lock().get(key).is_some_and(|(_, lacking)| *lacking);
                let theirs = other.kept.iter().flatten().find(|theirs| theirs.key.as_ref() == Some(key))?;
                let alike = theirs.buffer.storage() == kind.buffer.storage();
                if !alike && [theirs, kind].iter().any(|kind| kind.buffer.storage() == Storage::F32) {
                    self.all_bits.store(true, Ordering::Relaxed);
                }
                let fits = alike && theirs.buffer.len() == kind.buffer.len();
                (fits && state.numbers_as(other, key)).then(|| (theirs.buffer.clone(), lacking))
            });
            let Some((from, lacking)) = from else { return false };
            taken.push((kind, key, from, wanted, lacking));
        }
        // A version is newer where another block wrote the ivar after this state was packed. This state may have the
        // ivar in another column (of other classes, with a tag), or treat it as a constant.
        let is_new = |key: &Key, version: u64| version > state.packed_at.get(key).copied().unwrap_or(0);
        // The values themselves tell whether a state needs others, so marks need not.
        let lacks = |key: &Key| {
            let known = key.1 == Part::Marks || state.versions.lock().contains_key(key);
            !known && key.0.iter().any(|member| state.knows(member))
        };
        if inner.versions.among(&state.groups).any(|(key, version)| is_new(key, version) && lacks(key)) {
            return false;
        }
        if !taken.is_empty() {
            // The versions that the last state writes next would be newer than those of this state. This state may
            // raise and never run.
            let others = inner.states.iter().filter(|other| other.has_group_of(state));
            others.for_each(|other| other.is_last.store(false, Ordering::Relaxed));
        }
        for (kind, key, from, wanted, lacking) in taken {
            kind.buffer.share(&from);
            state.versions.lock().insert(key.clone(), (wanted, lacking));
            state.ahead.fetch_or(lacking, Ordering::Relaxed);
        }
        true
    }

    /// Registers the new versions, after a launch that ended well.
    pub(super) fn wrote(&self, state: &Arc<State>) {
        state.launches.fetch_add(1, Ordering::Relaxed);
        let mut inner = self.inner.lock();
        if state.is_last.load(Ordering::Relaxed) && state.ahead.load(Ordering::Relaxed) {
            return;
        }
        // The state that ran last stands last. Its versions are newer than those of other states with the same keys.
        inner.states.retain(|other| !Arc::ptr_eq(other, state));
        let others = inner.states.iter().filter(|other| other.has_group_of(state));
        others.for_each(|other| other.is_last.store(false, Ordering::Relaxed));
        inner.states.push(state.clone());
        state.is_last.store(true, Ordering::Relaxed);
        for (at, kind) in state.kept.iter().enumerate() {
            let Some(Kind { key: Some(key), .. }) = kind else { continue };
            if state.variant.lowered.program.columns[at].written {
                let version = inner.versions.next(key);
                state.versions.lock().insert(key.clone(), (version, true));
                state.ahead.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Whether a slot holds only Numbers, Symbols and other immediate values, whose bits do not depend on tables.
fn is_plain(slot: &SlotPlan) -> bool {
    matches!(slot.repr, Repr::Int | Repr::Float | Repr::Bool | Repr::Sym)
}

impl State {
    /// Whether both states give the same rows to the objects of a key, and the same numbers to what its columns refer
    /// to (objects, arrays, Strings).
    fn numbers_as(&self, other: &State, key: &Key) -> bool {
        if !key.0.iter().all(|member| self.same_rows(other, member.class)) {
            return false;
        }
        let slots = || key.0.iter().map(|member| self.slot(member.class, &member.ivar));
        let plain = |slot: Option<&SlotPlan>| slot.is_some_and(is_plain);
        if slots().all(plain) {
            return true;
        }
        let texts = slots().any(|slot| slot.is_none_or(|slot| slot.prims.intersects(Prims::STR)));
        (!texts || self.same_texts(other)) && self.same_numbers(other)
    }

    /// Whether the program has this ivar of objects of this group.
    fn knows(&self, member: &Member) -> bool {
        self.groups.get(&member.class) == Some(&member.group) && self.slot(member.class, &member.ivar).is_some()
    }

    fn slot(&self, class: Raw, ivar: &str) -> Option<&SlotPlan> {
        let plan = &self.variant.plan;
        let class = &plan.classes[*plan.class_index.get(&class)? as usize];
        class.fields.iter().find(|field| field.name == ivar).map(|field| &field.slot)
    }

    /// Compares tables, and remembers the result: tables are long.
    fn compare(&self, other: &State, what: Compared, same: impl FnOnce() -> bool) -> bool {
        let key = (other.serial, what);
        let known = self.compared.lock().get(&key).copied();
        known.unwrap_or_else(|| {
            let same = same();
            self.compared.lock().insert(key, same);
            same
        })
    }

    fn same_rows(&self, other: &State, class: Raw) -> bool {
        let objects = |state: &State| state.variant.plan.class_index.get(&class).map(|at| *at as usize);
        match (objects(self), objects(other)) {
            (Some(a), Some(b)) => self.compare(other, Compared::Rows(class), || {
                self.tables.classes[a].objects[..] == other.tables.classes[b].objects[..]
            }),
            _ => false,
        }
    }

    /// Whether all objects and arrays have the same numbers.
    fn same_numbers(&self, other: &State) -> bool {
        let (own, theirs) = (&self.variant.plan, &other.variant.plan);
        self.compare(other, Compared::Numbers, || {
            own.classes.len() == theirs.classes.len()
                && own.classes.iter().zip(&theirs.classes).all(|(a, b)| a.raw == b.raw && self.same_rows(other, a.raw))
                && own.kinds.len() == theirs.kinds.len()
                && self.tables.kinds.iter().zip(&other.tables.kinds).all(|(a, b)| a.arrays[..] == b.arrays[..])
        })
    }

    /// Whether all Strings lie at the same offsets in both. The program's literals come first, so these count too.
    fn same_texts(&self, other: &State) -> bool {
        self.compare(other, Compared::Texts, || {
            self.variant.plan.literals == other.variant.plan.literals
                && self.tables.strings.strings == other.tables.strings.strings
        })
    }

    /// Gives the tables to the graph cache, for the next run of the block over the same objects, in a scope or without
    /// one.
    fn let_go(self) {
        let holder = Obj::<Holder>::try_convert(self.holder.value());
        holder.expect("a holder is one").let_tables_go();
        if let Ok(tables) = Arc::try_unwrap(self.tables)
            && graph_cache::wants(&self.variant.graphs, self.base.0, &tables)
        {
            graph_cache::put(&self.variant.graphs, self.base.0, tables);
        }
    }

    /// Whether all arrays still hold what was packed of them.
    fn arrays_hold(&self) -> bool {
        let Variant { plan, lowered, .. } = &*self.variant;
        let is_of_arrays = |at: usize| matches!(lowered.program.columns[at].space, Space::Array(_));
        let column = |(at, column): (usize, &Column)| match &self.kept[at] {
            Some(kind) if is_of_arrays(at) => kind.buffer.on_host(),
            _ => Ok(HostColumn::zeroed(column.storage, 0)),
        };
        let columns: Result<Vec<_>, _> = lowered.program.columns.iter().enumerate().map(column).collect();
        // Arrays whose columns cannot be fetched are packed anew.
        columns.is_ok_and(|columns| self.arrays.hold(&Decoder { plan, tables: &self.tables, columns: &columns }))
    }

    /// Writes to the objects what they lack. False where they lack nothing.
    ///
    /// Other threads run while columns are fetched, and may launch, write back and assign. The fetched columns are used
    /// only if no thread did.
    fn write_back(&self, ruby: &Ruby) -> Result<bool, Error> {
        let (holder, made, polls) = (LazyHolder::default(), Made::default(), gvl::Polls::never());
        let mut attempts = 0;
        loop {
            if !self.ahead.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let launches = self.launches.load(Ordering::Relaxed);
            let unpacker = Unpacker {
                ruby,
                plan: &self.variant.plan,
                program: &self.variant.lowered.program,
                schema: &self.variant.lowered.schema,
                tables: &self.tables,
                columns: &[],
                holder: &holder,
                made: &made,
                trapped: false,
                polls: &polls,
            };
            // Looks while the device still computes. Not where other threads could freeze something before it is done.
            let looked = gvl::is_alone().then(|| unpacker.look());
            // After many attempts it waits with the GVL, so that no thread can launch again.
            let fetched = if attempts < MAX_FETCH_ATTEMPTS { gvl::released(|| self.fetched()) } else { self.fetched() };
            let columns = fetched.map_err(|e| errors::core(ruby, e))?;
            if self.launches.load(Ordering::Relaxed) == launches && self.ahead.load(Ordering::Relaxed) {
                let unpacker = Unpacker { columns: &columns, ..unpacker };
                unpacker.write_back(looked.unwrap_or_else(|| unpacker.look()))?;
                self.ahead.store(false, Ordering::Relaxed);
                return Ok(true);
            }
            attempts += 1;
        }
    }

    /// The columns that writing back reads, on the host.
    fn fetched(&self) -> ikra_core::error::Result<Vec<HostColumn>> {
        let Variant { plan, lowered, .. } = &*self.variant;
        // Both columns of an assigned field, even though passes may have found that one of them never changes.
        let fields = plan.classes.iter().flat_map(|class| &class.fields).filter(|field| field.written);
        let assigned: Vec<ColumnId> = fields.flat_map(|field| [field.slot.value, field.slot.tag]).flatten().collect();
        let column = |(at, column): (usize, &Column)| {
            let id = Some(ColumnId::new(at));
            // Strings are made of the bytes that words refer to.
            let wanted = column.written || assigned.iter().any(|own| Some(*own) == id) || lowered.schema.bytes == id;
            match &self.kept[at] {
                Some(kind) if wanted => kind.buffer.on_host(),
                _ => Ok(HostColumn::zeroed(column.storage, 0)),
            }
        };
        lowered.program.columns.iter().enumerate().map(column).collect()
    }
}

impl Section<'_> {
    /// A state that fits the values of this call, ready to run.
    pub(super) fn kept_state(&mut self, scope: &Arc<Scope>) -> Result<Option<(Arc<State>, Packed)>, Error> {
        scope.tidy(self.ruby)?;
        let base = self.base_of_state();
        let form = self.form();
        let fits = |state: &&Arc<State>| {
            Arc::ptr_eq(&state.site, &self.site) && state.base == base && state.variant.form == form
        };
        let fitting: SmallVec<[Arc<State>; 2]> = scope.inner.lock().states.iter().filter(fits).cloned().collect();
        for state in &fitting {
            let variant = &state.variant;
            if !variant.guards.hold(self.ruby)? || !variant.guards.outside_hold(self.ruby, &self.request.captures)? {
                continue;
            }
            let mut roots = Vec::with_capacity(variant.lowered.schema.roots.len());
            for root in &variant.lowered.schema.roots {
                roots.push(RootValue::of(self.ruby, self.root_value(&root.root)?));
            }
            let touched = scope.inner.lock().touched;
            if (touched || !scope.fixed) && !state.arrays_hold() {
                scope.write_back(self.ruby)?;
                scope.changed();
                return Ok(None);
            }
            if touched {
                let states = scope.inner.lock().states.clone();
                let others = states.iter().filter(|other| !Arc::ptr_eq(other, state));
                let hold = others.filter(|other| other.seen == state.seen).all(|other| other.arrays_hold());
                if !hold {
                    scope.write_back(self.ruby)?;
                    scope.changed();
                    return Ok(None);
                }
                scope.inner.lock().touched = false;
            }
            let elements = match self.request.range {
                Some((first, len)) => Elements::Range(first, len),
                None => Elements::Values(heap::elements(self.request.base.as_raw())),
            };
            self.counted.set(Some(elements.len()));
            let params = pack::params(&variant.plan, &variant.lowered, &state.tables, elements, &roots);
            let Ok(mut params) = params else { continue };
            // Those of arrays, which have not changed.
            for param in variant.lowered.program.strides.iter().flat_map(UniformStride::params) {
                params[param.index()] = state.params[param.index()];
            }
            if !state.is_last.load(Ordering::Relaxed) && !scope.update(state) {
                // Some object is numbered in another way. So write all back to the objects, which are then numbered as
                // they are met now.
                scope.write_back(self.ruby)?;
                scope.forget();
                return Ok(None);
            }
            let doubled = self.doubled(state);
            return Ok(Some((state.clone(), state.packed(params, doubled))));
        }
        Ok(None)
    }

    pub(super) fn base_of_state(&self) -> (Raw, Option<(i64, usize)>) {
        if self.request.range.is_some() { (heap::NIL, self.request.range) } else { (self.request.base.as_raw(), None) }
    }

    /// Makes a state of the packed columns, where the program can have one.
    pub(super) fn make_state(
        &mut self,
        scope: &Arc<Scope>,
        variant: &Arc<Variant>,
        packed: Packed,
        tables: &Arc<Tables>,
        holder: &LazyHolder,
    ) -> Result<(Option<Arc<State>>, Packed), Error> {
        let (program, schema) = (&variant.lowered.program, &variant.lowered.schema);
        // Nothing notices writes to the bytes of Strings.
        let texts = !tables.strings.strings.iter().all(|string| heap::is_frozen(*string));
        // The same holds for buffers, which arrays of a kind may be.
        let buffers = (0..tables.kinds.len()).any(|kind| tables.has_buffers(kind));
        // And for Hashes, whose changes nothing notices.
        let hashes = variant.plan.reads_hashes();
        if !variant.may_stay() || texts || buffers || hashes {
            return Ok((None, packed));
        }
        let ruby = self.ruby;
        let stays = |at: usize| match program.columns[at].space {
            Space::Class { .. } | Space::Array(_) | Space::Bytes | Space::Job => true,
            Space::Element => schema.elements.iter().any(|s| [s.value, s.tag].contains(&Some(ColumnId::new(at)))),
            Space::Single | Space::Slot => false,
        };
        let groups = scope.groups(&variant.plan, tables);
        let key = |at: usize| -> Option<Key> {
            let mut members: Vec<Member> = Vec::new();
            let mut part = Part::Value;
            for class in &variant.plan.classes {
                for field in &class.fields {
                    let SlotPlan { value, tag, marks, .. } = field.slot;
                    let all = [(value, Part::Value), (tag, Part::Tag), (marks, Part::Marks)];
                    if let Some((_, own)) = all.iter().find(|(column, _)| *column == Some(ColumnId::new(at))) {
                        part = *own;
                        let group = groups.get(&class.raw).copied().unwrap_or_default();
                        members.push(Member { class: class.raw, group, ivar: field.name.clone() });
                    }
                }
            }
            members.sort();
            (!members.is_empty()).then_some((members, part))
        };
        let base = self.request.range.is_none().then(|| self.request.base.as_raw());
        let kept_base = base.map(|base| Kept::new(reflect::value(base)));
        let arrays = Arrays::now(ruby, holder, base, tables)?;
        let wrapped = self.ruby.class_object().const_get::<_, RModule>("Ikra")?;
        for class in variant.plan.classes.iter().filter(|class| !class.fields.is_empty()) {
            let columns = class.fields.iter().flat_map(|field| [field.slot.value, field.slot.tag]).flatten();
            let written = columns.into_iter().any(|column| program.columns[column.index()].written);
            if written {
                inside::is_written(class.raw);
            }
            wrapped.funcall::<_, _, Value>("__watch", (reflect::value(class.raw), written))?;
        }
        let lengths = packed.columns.iter().map(HostColumn::len).collect();
        let params = packed.params;
        let mut sent = packed.sent;
        sent.resize(packed.columns.len(), None);
        let kept = packed.columns.into_iter().zip(sent).enumerate().map(|(at, (column, sent))| {
            stays(at).then(|| {
                let buffer = Buffer::from_column(column);
                sent.into_iter().for_each(|memory| buffer.also_on(memory));
                Kind { buffer: Arc::new(buffer), key: key(at) }
            })
        });
        let kept: Vec<Option<Kind>> = kept.collect();
        let (seen, versions, packed_at) = {
            let inner = scope.inner.lock();
            let keys = kept.iter().flatten().filter_map(|kind| kind.key.clone());
            let now = |key: Key| {
                let version = inner.versions.of(&key);
                (key, (version, false))
            };
            let packed_at = inner.versions.among(&groups).map(|(key, version)| (key.clone(), version));
            (inner.changes, keys.map(now).collect(), packed_at.collect())
        };
        let state = Arc::new(State {
            site: self.site.clone(),
            variant: variant.clone(),
            base: self.base_of_state(),
            tables: tables.clone(),
            kept,
            lengths,
            biases: packed.biases,
            params: params.clone(),
            jobs: packed.jobs,
            arrays,
            versions: Mutex::new(versions),
            packed_at,
            groups,
            ahead: AtomicBool::new(false),
            is_last: AtomicBool::new(false),
            launches: AtomicU64::new(0),
            fetched: Fetched::default(),
            seen,
            serial: SCOPES.serial.fetch_add(1, Ordering::Relaxed),
            compared: Mutex::default(),
            holder: Kept::new(holder.get(ruby).as_value()),
            _base: kept_base,
        });
        let mut inner = scope.inner.lock();
        // The objects lack nothing here: everything was written back before this was packed.
        if inner.states.len() >= MAX_STATES {
            inner.states.remove(0);
        }
        inner.states.push(state.clone());
        drop(inner);
        let packed = state.packed(params, None);
        Ok((Some(state), packed))
    }

    /// The kernel that reads and writes different columns, where the plain one would write copies of columns.
    fn doubled(&self, state: &State) -> Option<Arc<Doubled>> {
        let Variant { lowered, properties, plan, form, doubling, .. } = &*state.variant;
        // What the first launch writes is a copy of what was packed. A scope with one call does not pay for a kernel.
        let is_loop = state.launches.load(Ordering::Relaxed) > 0;
        let sinks = state.variant.fold.is_some() || state.variant.compaction.is_some();
        if !is_loop || !form.single || form.code.races || sinks {
            return None;
        }
        let copies = match self.backend.store() {
            Some(_) => !properties.surely_ends || !plan.accumulators.is_empty(),
            None => state.written_bytes() >= WORTH_DOUBLING,
        };
        let find = || doubling.get(&self.backend, lowered, &form.code);
        copies.then(|| large_stack::alone(find)).flatten()
    }

    /// Drops the state: what was compiled does not fit any more.
    pub(super) fn forget_state(&mut self) -> Result<(), Error> {
        let (Some(scope), Some(state)) = (&self.scope, self.state.take()) else { return Ok(()) };
        scope.write_back(self.ruby)?;
        scope.inner.lock().states.retain(|other| !Arc::ptr_eq(other, &state));
        Ok(())
    }
}

impl State {
    /// The columns of one launch: those of the state, and new ones.
    fn packed(&self, mut params: Vec<u64>, doubled: Option<Arc<Doubled>>) -> Packed {
        let program = &self.variant.lowered.program;
        let schema = &self.variant.lowered.schema;
        let mut residents = Vec::new();
        let mut columns = Vec::with_capacity(program.columns.len());
        let mut biases = self.biases.clone();
        for (at, column) in program.columns.iter().enumerate() {
            match &self.kept[at] {
                Some(kind) => {
                    let write = if column.written { Write::Some } else { Write::None };
                    let column = ColumnId::new(at);
                    residents.push(Resident { column, buffer: kind.buffer.clone(), write });
                    columns.push(HostColumn::zeroed(kind.buffer.storage(), 0));
                }
                None => columns.push(HostColumn::zeroed(column.storage, self.lengths[at])),
            }
        }
        for accumulator in &schema.accumulators {
            columns[accumulator.written_tick.index()].view_mut::<i64>().fill(-1);
        }
        if let Some(doubled) = &doubled {
            for (written, before) in &doubled.pairs {
                biases.push(self.biases[written.index()]);
                columns.push(HostColumn::zeroed(program.columns[written.index()].storage, 0));
                let resident = residents.iter_mut().find(|resident| resident.column == *written);
                let resident = resident.expect("columns of objects stay");
                resident.write = Write::Swap { writer: self.serial, before: *before };
                let buffer = resident.buffer.clone();
                residents.push(Resident { column: *before, buffer, write: Write::None });
            }
            params.extend(doubled.params(&self.biases, &self.lengths));
        }
        let jobs = self.jobs;
        let (fresh, sent) = (Vec::new(), Vec::new());
        Packed { columns, biases, params, fresh, jobs, residents, stays: true, sent, doubled }
    }
    /// Bytes of the columns that a launch changes.
    fn written_bytes(&self) -> usize {
        let columns = self.variant.lowered.program.columns.iter().zip(&self.kept);
        let written = columns.filter(|(column, _)| column.written).filter_map(|(_, kind)| kind.as_ref());
        written.map(|kind| kind.buffer.byte_len()).sum()
    }
    /// Whether the objects have all that the state has, as they do before its first launch.
    pub(super) fn is_level(&self) -> bool {
        !self.ahead.load(Ordering::Relaxed)
    }
    /// Whether the state keeps a column of a launch.
    pub(super) fn keeps(&self, resident: &Resident) -> bool {
        // a kernel that reads and writes different columns has more of them than the program
        self.kept.get(resident.column.index()).is_none_or(Option::is_some)
    }
    pub(super) fn variant(&self) -> &Arc<Variant> {
        &self.variant
    }
    pub(super) fn tables(&self) -> &Arc<Tables> {
        &self.tables
    }
}
