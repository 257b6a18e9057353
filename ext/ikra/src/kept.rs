//! Tables of objects between calls.
//!
//! Here: a few graphs that blocks ran over last ([`put`], [`take`]), so that the next call over the same objects checks its tables
//! ([`Tables::again`]) in place of walking again. Not here: the check.
//! Invariant: what waits here holds no object and looks at none; it is addresses, and nothing more. So it keeps nothing alive, and an
//! object that the GC frees or moves is no matter: the check finds that nothing refers to its address, or what else is there.
//!
//! Memory is bounded by the number of graphs ([`MOST`]), and by the GC: what was not used in the last [`OLD`] of its runs, and for [`REST`],
//! is dropped. A program that makes so much garbage between two calls loses its tables, but then a walk is little of what it does.
//! Of the lists that a block runs over, the last one alone has tables, and others that it came back to when they had none: where each call has a new list, one graph's memory is used again and
//! again.

use crate::crew;
use crate::engine::Variant;
use crate::heap::Raw;
use crate::trace::Tables;
use ikra_core::memory::pool;
use magnus::prelude::*;
use magnus::{DataTypeFunctions, Error, RModule, Ruby, TypedData, gc};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// Graphs that are kept.
const MOST: usize = 4;
/// Runs of the GC.
const OLD: u32 = 16;
const REST: Duration = Duration::from_secs(1);
/// With fewer objects a walk takes less than a millisecond.
const FEWEST: usize = crew::PIECE;
/// Calls without a check, at most, where checks fail again and again.
const LONGEST_WAIT: u32 = 64;

/// What one variant of a block ran over.
struct Graph {
    variant: Weak<Variant>,
    /// The list, nil for a Range. What is in it is checked, not who it is.
    base: Raw,
    /// None while they are in use, where checks fail, and of a list that another came after.
    tables: Option<Tables>,
    /// Its tables had to go, and there was a call over it again.
    came_back: bool,
    /// They were taken, and not found wanting so far.
    taken: bool,
    /// When they were last used, and how often the GC ran since.
    used: Instant,
    age: u32,
    /// Calls whose tables are not kept, and how many there will be when the next check fails.
    wait: u32,
    next_wait: u32,
    /// Calls whose check did not fail.
    held: usize,
}

/// The last used last.
static GRAPHS: Mutex<Vec<Graph>> = Mutex::new(Vec::new());

/// Tables of an earlier call of a variant over a list of so many elements that lead on, for this call alone.
pub fn take(variant: &Arc<Variant>, base: Raw, elements: usize) -> Option<Tables> {
    let mut graphs = GRAPHS.lock();
    if let Some(graph) = graphs.iter_mut().find(|graph| graph.is_of(variant, base)) {
        graph.came_back |= graph.tables.is_none() && graph.wait == 0;
        graph.taken = graph.tables.is_some();
        return graph.tables.take();
    }
    if elements >= FEWEST {
        // another graph is on its way, which may have their memory
        leave_others(&mut graphs, variant);
    }
    None
}

/// Drops the tables of a variant's lists that nobody came back to.
fn leave_others(graphs: &mut [Graph], variant: &Arc<Variant>) {
    let left = graphs.iter_mut().filter(|graph| graph.is_made_by(variant) && !graph.came_back);
    left.for_each(|graph| graph.tables = None);
}

/// The tables that were taken are not those of what is there: the more often that is so, the more rarely tables are kept.
pub fn failed(variant: &Arc<Variant>, base: Raw) {
    if let Some(graph) = GRAPHS.lock().iter_mut().find(|graph| graph.is_of(variant, base)) {
        (graph.taken, graph.came_back) = (false, false);
        graph.wait = graph.next_wait;
        graph.next_wait = (2 * graph.next_wait).clamp(1, LONGEST_WAIT);
    }
}

/// Whether tables are to be kept once the call is over: until then, they must not forget their numbers.
pub fn wants(variant: &Arc<Variant>, base: Raw, tables: &Tables) -> bool {
    // Hashes are laid out anew for each call
    if tables.rows() < FEWEST || !tables.hashes.is_empty() {
        return false;
    }
    match GRAPHS.lock().iter_mut().find(|graph| graph.is_of(variant, base)) {
        Some(graph) if graph.wait > 0 => {
            graph.wait -= 1;
            graph.touch();
            false
        }
        _ => true,
    }
}

/// Keeps tables for the next call.
pub fn put(variant: &Arc<Variant>, base: Raw, mut tables: Tables) {
    tables.forget_walk();
    let mut graphs = GRAPHS.lock();
    graphs.retain(|graph| graph.variant.strong_count() > 0);
    let mut graph = match graphs.iter().position(|graph| graph.is_of(variant, base)) {
        Some(at) => graphs.remove(at),
        None => {
            leave_others(&mut graphs, variant);
            let variant = Arc::downgrade(variant);
            let used = Instant::now();
            Graph {
                variant,
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
    if graphs.len() >= MOST {
        graphs.remove(0);
    }
    graphs.push(graph);
}

impl Graph {
    fn touch(&mut self) {
        (self.used, self.age) = (Instant::now(), 0);
    }
    fn is_made_by(&self, variant: &Arc<Variant>) -> bool {
        std::ptr::eq(self.variant.as_ptr(), Arc::as_ptr(variant))
    }
    fn is_of(&self, variant: &Arc<Variant>, base: Raw) -> bool {
        self.base == base && self.is_made_by(variant)
    }
}

/// Hears of each run of the GC, and marks nothing.
#[derive(TypedData)]
#[magnus(class = "Ikra::GcWatch", free_immediately, mark)]
struct GcWatch;

impl DataTypeFunctions for GcWatch {
    fn mark(&self, _: &gc::Marker) {
        GRAPHS.lock().retain_mut(|graph| {
            graph.age += 1;
            graph.age < OLD || graph.used.elapsed() < REST
        });
        // what they were in may be wanted by nobody any more
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
    crate::registry::keep(ruby.obj_wrap(GcWatch).as_value());
    Ok(())
}

/// `Ikra.__graphs`: of each graph that is kept, how many objects, arrays and Strings it has, and how many calls used it; for tests.
pub fn describe() -> Vec<(usize, usize)> {
    let graphs = GRAPHS.lock();
    graphs.iter().filter_map(|graph| Some((graph.tables.as_ref()?.rows(), graph.held))).collect()
}
