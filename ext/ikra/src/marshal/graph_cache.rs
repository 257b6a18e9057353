//! The graph cache: tables of objects between calls.
//!
//! Here: the graphs that blocks ran over last ([`put`], [`take`]). The next call over the same objects revalidates its
//! tables ([`Tables::revalidate`]) instead of walking again. Not here: the revalidation.
//!
//! Invariant: the cache consists of addresses only. It neither holds objects nor reads them, so it keeps nothing alive.
//! The GC may free or move an object: revalidation then finds that nothing refers to its address, or that something
//! else is there.
//!
//! Memory is bounded by the number of graphs ([`MAX_GRAPHS`]), and by the GC. Tables are dropped that were not used
//! during the last [`MIN_AGE_COLLECTIONS`] runs of the GC, and for [`MIN_AGE`]. A program that makes so much garbage
//! between two calls loses its tables, but spends little of its time on walks.
//!
//! Of the lists that a block runs over, only the last one has tables, and others that were used again when they had
//! none. So where each call has a new list, the memory of one graph is reused.

use crate::marshal::trace::Tables;
use crate::ruby::heap::Raw;
use crate::ruby::workers;
use ikra_core::memory::pool;
use magnus::prelude::*;
use magnus::{DataTypeFunctions, Error, RModule, Ruby, TypedData, gc};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The most graphs in the cache.
const MAX_GRAPHS: usize = 4;
/// Runs of the GC without a use after which tables may be dropped.
const MIN_AGE_COLLECTIONS: u32 = 16;
/// The time without a use after which they may be.
const MIN_AGE: Duration = Duration::from_secs(1);
/// The fewest objects of a graph. A walk over fewer takes less than a millisecond.
const MIN_OBJECTS: usize = workers::PIECE;
/// The most calls without a check, where checks fail again and again.
const MAX_WAIT_CALLS: u32 = 64;

/// The owner of cached graphs: one variant of a block. When it is dropped, the cache drops its graphs.
#[derive(Default)]
pub struct Owner(Arc<()>);

/// The graph that one variant of a block ran over.
struct Graph {
    owner: Weak<()>,
    /// The list, or nil for a Range. Revalidation compares its contents, not its identity.
    base: Raw,
    /// None while they are in use, where checks fail, and for a list that the block left for another.
    tables: Option<Tables>,
    /// The tables were dropped, and then there was another call over the list.
    came_back: bool,
    /// The tables are in use, and no check has failed so far.
    taken: bool,
    /// When they were last used, and the number of GC runs since.
    used: Instant,
    age: u32,
    /// The number of calls whose tables are not kept, and that number after the next failed check.
    wait: u32,
    next_wait: u32,
    /// The number of calls whose check did not fail.
    held: usize,
}

/// The most recently used last.
static GRAPHS: Mutex<Vec<Graph>> = Mutex::new(Vec::new());

/// The tables of an earlier call of an owner over a list of so many elements that refer to other objects. Only this
/// call may use them.
pub fn take(owner: &Owner, base: Raw, elements: usize) -> Option<Tables> {
    let mut graphs = GRAPHS.lock();
    if let Some(graph) = graphs.iter_mut().find(|graph| graph.is_of(owner, base)) {
        graph.came_back |= graph.tables.is_none() && graph.wait == 0;
        graph.taken = graph.tables.is_some();
        return graph.tables.take();
    }
    if elements >= MIN_OBJECTS {
        // Another graph follows, which may reuse their memory.
        leave_others(&mut graphs, owner);
    }
    None
}

/// Drops the tables of an owner's lists that were not used again.
fn leave_others(graphs: &mut [Graph], owner: &Owner) {
    let left = graphs.iter_mut().filter(|graph| graph.is_made_by(owner) && !graph.came_back);
    left.for_each(|graph| graph.tables = None);
}

/// Notes that revalidation failed. The more often that happens, the more rarely tables are kept.
pub fn failed(owner: &Owner, base: Raw) {
    if let Some(graph) = GRAPHS.lock().iter_mut().find(|graph| graph.is_of(owner, base)) {
        (graph.taken, graph.came_back) = (false, false);
        graph.wait = graph.next_wait;
        graph.next_wait = (2 * graph.next_wait).clamp(1, MAX_WAIT_CALLS);
    }
}

/// Whether tables are to be kept after the call. Until then they need their numbers.
pub fn wants(owner: &Owner, base: Raw, tables: &Tables) -> bool {
    // Hashes are laid out anew for each call.
    if tables.rows() < MIN_OBJECTS || !tables.hashes.is_empty() {
        return false;
    }
    match GRAPHS.lock().iter_mut().find(|graph| graph.is_of(owner, base)) {
        Some(graph) if graph.wait > 0 => {
            graph.wait -= 1;
            graph.touch();
            false
        }
        _ => true,
    }
}

/// Keeps tables for the next call.
pub fn put(owner: &Owner, base: Raw, mut tables: Tables) {
    tables.forget_walk();
    let mut graphs = GRAPHS.lock();
    graphs.retain(|graph| graph.owner.strong_count() > 0);
    let mut graph = match graphs.iter().position(|graph| graph.is_of(owner, base)) {
        Some(at) => graphs.remove(at),
        None => {
            leave_others(&mut graphs, owner);
            let owner = Arc::downgrade(&owner.0);
            let used = Instant::now();
            Graph {
                owner,
                base,
                tables: None,
                came_back: false,
                taken: false,
                used,
                age: 0,
                wait: 0,
                next_wait: 0,
                held: 0,
            }
        }
    };
    if std::mem::take(&mut graph.taken) {
        graph.next_wait = 0;
        graph.held += 1;
    }
    graph.touch();
    graph.tables = Some(tables);
    if graphs.len() >= MAX_GRAPHS {
        graphs.remove(0);
    }
    graphs.push(graph);
}

impl Graph {
    fn touch(&mut self) {
        (self.used, self.age) = (Instant::now(), 0);
    }
    fn is_made_by(&self, owner: &Owner) -> bool {
        std::ptr::eq(self.owner.as_ptr(), Arc::as_ptr(&owner.0))
    }
    fn is_of(&self, owner: &Owner, base: Raw) -> bool {
        self.base == base && self.is_made_by(owner)
    }
}

/// Counts the runs of the GC, and marks nothing.
#[derive(TypedData)]
#[magnus(class = "Ikra::GcWatch", free_immediately, mark)]
struct GcWatch;

impl DataTypeFunctions for GcWatch {
    fn mark(&self, _: &gc::Marker) {
        GRAPHS.lock().retain_mut(|graph| {
            graph.age += 1;
            graph.age < MIN_AGE_COLLECTIONS || graph.used.elapsed() < MIN_AGE
        });
        // The memory of freed arrays may not be needed any more.
        pool::host().tidy();
    }
}

/// Defines `Ikra::GcWatch`, which Ruby code cannot make.
///
/// # Errors
/// Where the name is taken.
pub fn init(ikra: RModule, ruby: &Ruby) -> Result<(), Error> {
    let class = ikra.define_class("GcWatch", ruby.class_object())?;
    class.undef_default_alloc_func();
    ikra.funcall::<_, _, magnus::Value>("private_constant", (ruby.to_symbol("GcWatch"),))?;
    crate::ruby::registry::keep(ruby.obj_wrap(GcWatch).as_value());
    Ok(())
}

/// `Ikra.__graphs`: for each graph in the cache, the number of its objects, arrays and Strings, and of calls that used
/// it. For tests.
pub fn describe() -> Vec<(usize, usize)> {
    let graphs = GRAPHS.lock();
    graphs.iter().filter_map(|graph| Some((graph.tables.as_ref()?.rows(), graph.held))).collect()
}
