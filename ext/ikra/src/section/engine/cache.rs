//! What is kept of each block between calls.
//!
//! Here: the table of blocks ([`find_site`]), each with its source, its variants ([`SiteState`]) and its fast paths.
//! Not here: which variant fits a call ([`super::select`]).
//!
//! A section of an operation runs the block within methods of the prelude ([`ikra_core::syntax::Wrapping`]). Some of
//! their arguments are values of the call. Each combination of a block and such methods is a site of its own.

use super::fast_path::FastPath;
use super::variant::{Form, Variant};
use crate::options::Choice;
use crate::ruby::errors;
use crate::ruby::identity::WordMap;
use crate::ruby::iseq::Failure;
use crate::ruby::reflect;
use crate::ruby::registry::Kept;
use crate::ruby::unicode::Rubys;
use crate::world::block::{self, Captures, Key as BlockKey};
use ikra_core::backend::Timings;
use ikra_core::backend::collective::cells::FirstCell;
use ikra_core::diagnostic::Diagnostic;
use ikra_core::infer::BlockSource;
use ikra_core::regexp::{Regexp, RegexpSource};
use ikra_core::sched::cost::{History, Side, Taken};
use ikra_core::syntax::Wrapping;
use ikra_core::syntax::words::{self, WordWise};
use ikra_core::world::{Apart, Assumption, OutOfRange, Root, StrideAssumption};
use magnus::block::Proc;
use magnus::{Error, Ruby};
use parking_lot::Mutex;
use rb_sys::ID;
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is kept of one block.
pub(super) struct Site {
    pub(super) source: BlockSource,
    /// Whether the block may accumulate into captured Hashes.
    pub(super) updates_hashes: bool,
    /// How long it took to find and parse the text of the block.
    pub(super) read_in: Duration,
    /// Keeps the block's instruction sequence alive, so that no other one gets its address.
    _holds: Option<Kept>,
    pub(super) state: Mutex<SiteState>,
    /// What earlier launches took.
    pub(super) history: Mutex<History>,
    /// The fast paths of its calls, the newest first.
    pub(super) fast_paths: Mutex<SmallVec<[Arc<FastPath>; 1]>>,
    /// When it was last used, by the clock of [`Sites`].
    last_used: AtomicU64,
}

#[derive(Default)]
pub(super) struct SiteState {
    /// The most recently used first.
    pub(super) variants: Vec<Arc<Variant>>,
    pub(super) refuted: Vec<Assumption>,
    /// Roots whose value was once outside its assumed range.
    pub(super) out_of_range: BTreeSet<Root>,
    /// Which roots had different values when it was compiled.
    pub(super) apart: Apart,
    /// What once did not have a uniform stride.
    pub(super) refuted_strides: BTreeSet<StrideAssumption>,
    /// A column once had Integers outside the assumed range.
    pub(super) column_out_of_range: Option<OutOfRange>,
    /// The elements of a list were once not exactly the objects of their classes.
    pub(super) scattered: bool,
    /// Of a chain of operations: the forms for which a stencil reads values that another section has computed, and the
    /// index of that stencil.
    pub(super) cuts: Vec<(Form, usize)>,
    /// Kernels cannot group the pairs that the block emits.
    pub(super) refuses_tables: bool,
    /// The same for those with which it updates captured Hashes.
    pub(super) refuses_hash_tables: bool,
    /// Which keys of pairs have cells.
    pub(super) first_cell: FirstCell,
    /// Whether the host groups Strings that kernels could group.
    pub(super) leaves_texts: bool,
}

/// A block, and the methods that it is passed to.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Use {
    pub(super) block: BlockKey,
    pub(super) within: Within,
}

/// The methods that a block is passed to, each with the number of its other arguments.
#[derive(PartialEq, Eq, Hash, Default)]
pub(super) struct Within {
    pub(super) methods: SmallVec<[(ID, usize); 4]>,
    pub(super) finds: bool,
}

#[derive(Default)]
struct Sites {
    by_block: WordMap<Use, Arc<Site>>,
    clock: u64,
}

static SITES: Mutex<Option<Sites>> = Mutex::new(None);
/// The most sites, one for each block, that are remembered.
const MAX_SITES: usize = 4_096;
/// The most variants of one block.
pub(super) const MAX_VARIANTS: usize = 6;

impl Site {
    /// Remembers what a launch of so many elements and ticks took, and the bytes that it read and wrote. `auto` chooses
    /// by these.
    pub(super) fn note(
        &self,
        choice: Choice,
        (elements, ticks): (u64, u64),
        timings: &Timings,
        (up, down): (f64, f64),
    ) {
        let side = match choice {
            Choice::Cpu => Side::Cpu,
            Choice::Cuda => Side::Gpu,
            _ => return,
        };
        // A launch that is not waited for has no time yet.
        if timings.kernel.is_zero() {
            return;
        }
        let (moved, kernel) = ((timings.upload + timings.download).as_secs_f64(), timings.kernel.as_secs_f64());
        self.history.lock().note(side, Taken { elements, ticks, kernel, moved, up, down });
    }
}

/// The site of a block within methods. The first call of a block reads and parses its text.
pub(super) fn find_site(ruby: &Ruby, captures: &Captures, within: Within) -> Result<Arc<Site>, Failure> {
    let identified = block::identify(ruby, captures.block())?;
    let key = Use { block: identified.key, within };
    if let Some(site) = known_site(&key) {
        return Ok(site);
    }
    let began = Instant::now();
    let source = block::read(ruby, &key.block, captures, key.within.wrapping().as_ref())?;
    let site = Site {
        updates_hashes: ikra_core::infer::hash_updates::may_update(&source.unit),
        source,
        read_in: began.elapsed(),
        _holds: identified.holds.map(Kept::new),
        state: Mutex::default(),
        history: Mutex::default(),
        fast_paths: Mutex::default(),
        last_used: AtomicU64::default(),
    };
    Ok(remember(key, site))
}

pub(super) fn known_site(key: &Use) -> Option<Arc<Site>> {
    let mut sites = SITES.lock();
    let sites = sites.get_or_insert_default();
    sites.clock += 1;
    let site = sites.by_block.get(key)?.clone();
    site.last_used.store(sites.clock, Ordering::Relaxed);
    Some(site)
}

fn remember(key: Use, site: Site) -> Arc<Site> {
    let site = Arc::new(site);
    let mut sites = SITES.lock();
    let sites = sites.get_or_insert_default();
    if sites.by_block.len() >= MAX_SITES {
        let mut uses: Vec<u64> = sites.by_block.values().map(|s| s.last_used.load(Ordering::Relaxed)).collect();
        uses.sort_unstable();
        let middle = uses[uses.len() / 2];
        sites.by_block.retain(|_, s| s.last_used.load(Ordering::Relaxed) > middle);
    }
    sites.by_block.entry(key).or_insert(site).clone()
}

/// Drops all code that is not running, because there is no memory for more.
pub fn forget_code() {
    // Dropping may take long, and may take other locks.
    let sites = SITES.lock().as_mut().map(|sites| std::mem::take(&mut sites.by_block));
    drop(sites);
}

/// `Ikra.__adds?(block)`: whether all that a block does is add its two parameters. False where its source is missing.
///
/// # Errors
/// What Ruby raises.
pub fn adds(ruby: &Ruby, block: Proc) -> Result<bool, Error> {
    match find_site(ruby, &Captures::new(block), Within::default()) {
        Ok(site) => Ok(site.source.unit.adds()),
        Err(Failure::Ruby(error)) => Err(error),
        Err(_) => Ok(false),
    }
}

/// `Ikra.__gives_element?(block)`: whether a block only gives its parameter. nil: it calls `itself`. False where its
/// source is missing.
///
/// # Errors
/// What Ruby raises.
pub fn gives_element(ruby: &Ruby, block: Proc) -> Result<Option<bool>, Error> {
    match find_site(ruby, &Captures::new(block), Within::default()) {
        Ok(site) if site.source.unit.symbol.as_deref() == Some("itself") => Ok(None),
        Ok(site) => Ok(Some(site.source.unit.gives_parameter())),
        Err(Failure::Ruby(error)) => Err(error),
        Err(_) => Ok(Some(false)),
    }
}

/// `Ikra.__asks(block)`: what a block does with its second parameter ([`ikra_core::syntax::ast::Unit::asks`]), as
/// `[name, alone]`. nil: something else, or its source is missing, or refinements are in force there.
///
/// # Errors
/// What Ruby raises.
pub fn asks(ruby: &Ruby, block: Proc) -> Result<Option<(String, bool)>, Error> {
    if refined(ruby, block) {
        return Ok(None);
    }
    match find_site(ruby, &Captures::new(block), Within::default()) {
        Ok(site) => Ok(site.source.unit.asks().map(|(name, alone)| (name.to_owned(), alone))),
        Err(Failure::Ruby(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

/// The fields of a [`WordWise`].
type TakenApart = (bool, bool, Vec<String>, Vec<String>);

/// `Ikra.__word_wise(block, emits)`: what makes a block look at one word of a line after the other ([`WordWise`]), as
/// `[splits, strips, methods of String, methods of Array]`. nil: it may look at more, or its source is missing, or
/// refinements are in force there.
///
/// # Errors
/// What Ruby raises.
pub fn word_wise(ruby: &Ruby, block: Proc, emits: bool) -> Result<Option<TakenApart>, Error> {
    if refined(ruby, block) {
        return Ok(None);
    }
    let site = match find_site(ruby, &Captures::new(block), Within::default()) {
        Ok(site) => site,
        Err(Failure::Ruby(error)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let within = |pattern: RegexpSource| Regexp::new(pattern, &Rubys).is_ok_and(|regexp| regexp.keeps_within_words());
    Ok(WordWise::of(&site.source.unit, emits).and_then(|found| {
        found.pattern.is_none_or(within).then(|| {
            (found.splits, found.strips, found.of_text.into_iter().collect(), found.of_list.into_iter().collect())
        })
    }))
}

/// `Ikra.__counts?(block)`: whether all that a block does is to emit a pair of its parameter and 1. false: it may do
/// more, or its source is missing, or refinements are in force there.
///
/// # Errors
/// What Ruby raises.
pub fn counts(ruby: &Ruby, block: Proc) -> Result<bool, Error> {
    if refined(ruby, block) {
        return Ok(false);
    }
    match find_site(ruby, &Captures::new(block), Within::default()) {
        Ok(site) => Ok(words::counts_elements(&site.source.unit)),
        Err(Failure::Ruby(error)) => Err(error),
        Err(_) => Ok(false),
    }
}

/// Whether refinements are in force where a block stands.
fn refined(ruby: &Ruby, block: Proc) -> bool {
    block::identify(ruby, block)
        .is_ok_and(|identified| matches!(identified.key, BlockKey::Iseq(_, refined) if refined != 0))
}

/// `Ikra.__emits(code)`: raises where a method, given as a Proc of it, calls `emit` on its own receiver. nil where its
/// source is missing, too: then the call itself raises.
///
/// # Errors
/// CompileError; what Ruby raises.
pub fn emits(ruby: &Ruby, code: Proc) -> Result<(), Error> {
    let site = match find_site(ruby, &Captures::new(code), Within::default()) {
        Ok(site) => site,
        Err(Failure::Ruby(error)) => return Err(error),
        Err(_) => return Ok(()),
    };
    let unit = &site.source.unit;
    let Some(span) = unit.own_call("emit") else { return Ok(()) };
    let told = Diagnostic::new(&unit.source, span, "emit is called in a method that combines or reduces values")
        .because("pairs are grouped by now, and further ones would belong to no element")
        .advise("emit the pair in map, or make it of the result: run(…).map { |key, value| … }");
    Err(errors::core(ruby, told.into()))
}

impl Within {
    /// The methods for the compiler. None where the block is passed to no method.
    fn wrapping(&self) -> Option<Wrapping> {
        let methods = self.methods.iter().map(|(id, count)| (reflect::name_of(*id).into(), *count)).collect::<Vec<_>>();
        (!methods.is_empty()).then_some(Wrapping { methods, finds: self.finds })
    }
}
