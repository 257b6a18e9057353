//! The Ruby extension: what Ruby can see of Ikra, and the only crate that uses Ruby's API.
//!
//! Public methods are Ruby code under `lib/`. They call the natives defined here, whose names begin with `__`.
//!
//! # The folders, from the bottom; a folder uses only those before it
//!
//! * [`ruby`]: Ruby's heap, classes, instruction sequences, GVL and exceptions
//! * [`options`]: options of Ruby calls as options of the core
//! * [`device`]: the backends of this process
//! * [`report`]: what `Ikra.profile` and `Ikra.explain` tell
//! * [`buffers`]: typed arrays that may live on a device
//! * [`marshal`]: objects to columns and back, by a schema
//! * [`world`]: the block, and answers and facts about the live program
//! * [`section`]: one section, from the call to its value; operations over whole arrays
//!
//! # Safety
//!
//! These rules hold in the whole crate, and no type enforces them:
//!
//! * A `Value` or a raw VALUE stays on the machine stack, or in something that marks it. That is
//!   [`ruby::holder::Holder`] while a section runs, [`ruby::registry::keep`] for good, and [`ruby::registry::Kept`]
//!   until it is dropped. Any other raw VALUE in a `Vec` is used only before the next allocation in Ruby's heap.
//! * Ruby functions that may raise are called through magnus, or through `protect`: no `longjmp` crosses a Rust frame.
//! * No lock is held while Ruby runs. Locks are taken with the GVL held (but for one in [`device::backends`]), so that
//!   `fork` copies no lock that is taken.
//! * Mark functions lock, read and mark. They allocate nothing and cannot panic.
//! * Only [`ruby::heap`] reads objects directly, and only [`ruby::environment`] reads environments and scopes. Their
//!   own chapters say when that is allowed.

mod buffers;
mod device;
mod marshal;
mod options;
mod report;
mod ruby;
mod section;
mod world;

use buffers::{buffer, memory_view, text};
use device::backends;
use magnus::{Error, Object, Ruby, function};
use marshal::graph_cache;
use report::{dump, explain, profile};
use ruby::{
    derivation, environment, errors, fiber, gate, hash_table, holder, iseq, list, question, reflect, registry, reserve,
};
use section::{collect, combining, engine, form, grouping, over, pending, random, sums, words};
use world::{hashes, live_world};

#[global_allocator]
static ALLOCATOR: reserve::Reserving = reserve::Reserving;

/// A native that may need much of the host's memory. Double parentheses: it gets its arguments as one.
macro_rules! roomy {
    ($($native:ident)::+(($($argument:ident),*)), $arity:tt) => {
        function!(
            |ruby: &Ruby $(, $argument)*| {
                errors::within_memory_and_code(ruby, engine::forget_code, || $($native)::+(ruby, ($($argument),*)))
            },
            $arity
        )
    };
    ($($native:ident)::+($($argument:ident),*), $arity:tt) => {
        function!(
            |ruby: &Ruby $(, $argument)*| {
                errors::within_memory_and_code(ruby, engine::forget_code, || $($native)::+(ruby $(, $argument)*))
            },
            $arity
        )
    };
}

/// `Ikra.__memory`. Gives, in this order:
///
/// * bytes of arrays on the host,
/// * bytes of arrays on the device,
/// * the number of arrays,
/// * bytes of resident objects' columns,
/// * bytes that this process has on the device,
/// * the limit of these, if there is one,
/// * page-locked bytes of the host,
/// * bytes on free lists.
fn memory() -> (usize, usize, usize, usize, u64, Option<u64>, usize, usize) {
    let (host, device, arrays) = buffer::held();
    let backends::Memory { device: all, limit, locked, free } = backends::memory();
    (host, device, arrays, engine::resident::held(), all, limit, locked, free)
}

/// `Ikra.__profile_start`: closes what Fibers left open that are gone, and measures from now on.
///
/// # Errors
/// As [`engine::resident::let_gone_go`], and as [`profile::start`].
fn start_profile(ruby: &Ruby) -> Result<(), Error> {
    engine::resident::let_gone_go(ruby)?;
    profile::start(ruby)
}

#[magnus::init]
fn init(ruby: &Ruby) -> Result<(), Error> {
    reserve::init();
    let ikra = ruby.define_module("Ikra")?;
    options::learn(ruby)?;
    ikra.define_singleton_method("__native_version", function!(|| env!("CARGO_PKG_VERSION"), 0))?;
    ikra.define_singleton_method("__section", roomy!(engine::section((a, b, c, d, e, f, g)), 7))?;
    ikra.define_singleton_method("__fast_path", roomy!(engine::fast_path::run(a, b, c, d), 4))?;
    ikra.define_singleton_method("__gives_element?", roomy!(engine::gives_element(a), 1))?;
    ikra.define_singleton_method("__adds?", roomy!(engine::adds(a), 1))?;
    ikra.define_singleton_method("__asks", roomy!(engine::asks(a), 1))?;
    ikra.define_singleton_method("__word_wise", roomy!(engine::word_wise(a, b), 2))?;
    ikra.define_singleton_method("__counts?", roomy!(engine::counts(a), 1))?;
    ikra.define_singleton_method("__emits", roomy!(engine::emits(a), 1))?;
    ikra.define_singleton_method("__check", roomy!(options::check(a), 1))?;
    ikra.define_singleton_method("__chosen", roomy!(collect::chosen(a, b, c), 3))?;
    ikra.define_singleton_method("__permuted", roomy!(collect::permuted(a, b), 2))?;
    ikra.define_singleton_method("__sorted", roomy!(collect::sorted(a, b, c, d), 4))?;
    ikra.define_singleton_method("__extreme", roomy!(collect::extreme(a, b), 2))?;
    ikra.define_singleton_method("__tallied", roomy!(combining::tallied(a), 1))?;
    ikra.define_singleton_method("__split", roomy!(grouping::split(a, b, c), 3))?;
    ikra.define_singleton_method("__counted", roomy!(combining::counted(a, b), 2))?;
    ikra.define_singleton_method("__grouped", roomy!(grouping::grouped(a, b, c), 3))?;
    ikra.define_singleton_method("__grouped_by_itself", roomy!(grouping::grouped_by_itself(a), 1))?;
    ikra.define_singleton_method("__uniq", roomy!(grouping::uniq(a), 1))?;
    ikra.define_singleton_method("__by_hash", roomy!(grouping::by_hash(a, b), 2))?;
    ikra.define_singleton_method("__group_sums", roomy!(sums::group_sums(a, b, c), 3))?;
    ikra.define_singleton_method("__hash_sums", roomy!(sums::hash_sums(a, b, c, d), 4))?;
    ikra.define_singleton_method("__hash_totals", roomy!(sums::hash_totals(a, b, c), 3))?;
    ikra.define_singleton_method("__put_all", roomy!(list::put_all(a, b, c), 3))?;
    ikra.define_singleton_method("__paired", roomy!(combining::paired(a, b), 2))?;
    ikra.define_singleton_method("__distinct", roomy!(grouping::distinct(a, b, c), 3))?;
    ikra.define_singleton_method("__reduce", roomy!(collect::reduce_buffer(a, b, c, d, e), 5))?;
    ikra.define_singleton_method("__filled", function!(collect::filled, 1))?;
    ikra.define_singleton_method("__scan", roomy!(over::scan(a, b, c, d, e), 5))?;
    ikra.define_singleton_method("__select", roomy!(over::select(a, b, c, d), 4))?;
    ikra.define_singleton_method("__sort", roomy!(over::sort((a, b, c, d, e, f)), 6))?;
    ikra.define_singleton_method("__multiplier", function!(over::multiplier, 3))?;
    ikra.define_singleton_method("__product", roomy!(over::product(a, b, c, d), 4))?;
    ikra.define_singleton_method("__running", roomy!(collect::running(a, b, c), 3))?;
    ikra.define_singleton_method("__compacted", roomy!(collect::compacted(a, b, c), 3))?;
    ikra.define_singleton_method("__configure", roomy!(options::configure(a, b), 2))?;
    ikra.define_singleton_method("__dump", function!(dump::configure, 2))?;
    ikra.define_singleton_method("__seed", function!(random::set, 1))?;
    ikra.define_singleton_method("__profile_start", function!(start_profile, 0))?;
    ikra.define_singleton_method("__profile_stop", function!(profile::stop, 0))?;
    ikra.define_singleton_method("__profile_give", function!(profile::give, 1))?;
    ikra.define_singleton_method("__profiled", function!(profile::profiled, 0))?;
    ikra.define_singleton_method("__waits", function!(profile::waits, 0))?;
    ikra.define_singleton_method("__waited", function!(profile::waited, 0))?;
    ikra.define_singleton_method("__measured?", function!(profile::is_measured, 0))?;
    ikra.define_singleton_method("__enter", function!(profile::enter, 6))?;
    ikra.define_singleton_method("__leave", function!(profile::leave, 1))?;
    ikra.define_singleton_method("__explaining?", function!(explain::wanted, 0))?;
    ikra.define_singleton_method("__explain_start", function!(explain::start, 0))?;
    ikra.define_singleton_method("__explain_stop", function!(explain::stop, 0))?;
    ikra.define_singleton_method("__backend", function!(backends::describe, 1))?;
    ikra.define_singleton_method("__cache", function!(backends::describe_cache, 0))?;
    ikra.define_singleton_method("__watcher", function!(reflect::add_watcher, 1))?;
    ikra.define_singleton_method("__attribute", roomy!(reflect::attribute_of(a), 1))?;
    ikra.define_singleton_method("__methods_changed", function!(reflect::methods_changed, 0))?;
    ikra.define_singleton_method("__resident_open", function!(engine::resident::open, 1))?;
    ikra.define_singleton_method("__resident_close", roomy!(engine::resident::close(), 0))?;
    ikra.define_singleton_method("__resident_read", roomy!(engine::resident::read(), 0))?;
    ikra.define_singleton_method("__resident_slot", roomy!(engine::resident::slot(a, b), 2))?;
    ikra.define_singleton_method("__resident_store", roomy!(engine::resident::store(a, b, c), 3))?;
    ikra.define_singleton_method("__resident_changed", function!(engine::resident::changed, 0))?;
    ikra.define_singleton_method("__resident_shown", function!(engine::resident::shown, 1))?;
    ikra.define_singleton_method("__resident?", function!(engine::resident::is_open, 0))?;
    ikra.define_singleton_method("__gates", function!(gate::count, 1))?;
    ikra.define_singleton_method("__spread", function!(backends::spread, 0))?;
    ikra.define_singleton_method("__pays", function!(engine::curves::pays, 1))?;
    ikra.define_singleton_method("__release", function!(engine::held::release, 1))?;
    ikra.define_singleton_method("__plan", function!(engine::held::plan, 1))?;
    ikra.define_singleton_method("__graphs", function!(graph_cache::describe, 0))?;
    ikra.define_singleton_method("__retained", function!(pending::retained, 2))?;
    ikra.define_singleton_method("__form", function!(form::form, 3))?;
    ikra.define_singleton_method("__described", function!(form::described, 2))?;
    ikra.define_singleton_method("__computed", function!(pending::computed, 3))?;
    ikra.define_singleton_method("__live", function!(live_world::set_live, 1))?;
    ikra.define_singleton_method("__memory_views", function!(memory_view::register, 1))?;
    ikra.define_singleton_method("__write_view", function!(memory_view::write, 4))?;
    ikra.define_singleton_method("__single", function!(buffer::single, 1))?;
    ikra.define_singleton_method("__before_exit", function!(backends::before_exit, 0))?;
    ikra.define_singleton_method("__before_fork", roomy!(buffer::before_fork(), 0))?;
    ikra.define_singleton_method("__lines", roomy!(text::lines(a, b, c), 3))?;
    ikra.define_singleton_method("__note_ascii", function!(text::note_ascii, 1))?;
    ikra.define_singleton_method("__words", roomy!(text::words(a, b, c, d), 4))?;
    ikra.define_singleton_method("__word_counts", roomy!(words::counts(a, b, c), 3))?;
    ikra.define_singleton_method("__words_of", roomy!(words::taken(a, b, c, d), 4))?;
    ikra.define_singleton_method("__memory", function!(memory, 0))?;
    ikra.define_singleton_method("__library", function!(errors::set_library, 1))?;
    holder::init(ikra, ruby)?;
    graph_cache::init(ikra, ruby)?;
    buffer::init(ikra, ruby)?;
    explain::init(ikra, ruby)?;
    fiber::init(ikra, ruby)?;
    engine::footprint::init(ikra, ruby)?;
    engine::submitted::init(ikra, ruby)?;
    engine::held::init(ikra, ruby)?;
    grouping::init(ikra, ruby)?;
    words::init(ikra, ruby)?;
    registry::symbols::init(ikra, ruby)?;
    registry::classes::init(ruby)?;
    hashes::init(ruby)?;
    hash_table::init(ruby)?;
    reflect::init(ruby)?;
    question::init(ruby)?;
    iseq::init(ruby)?;
    environment::init(ruby)?;
    derivation::init(ruby)
}
