//! Numbers of Fibers, and Fibers that are gone.
//!
//! Here: [`current`], the number of a Fiber. `Ikra.resident`, `Ikra.profile` and `Ikra.explain` keep what they opened
//! by it. [`take_gone`] says which Fibers cannot be resumed any more. Not here: what is kept, and closing it
//! ([`crate::section::engine::resident`], [`crate::report::profile`], [`crate::report::explain`]).
//!
//! The number is in an object in the Fiber's own variables, which the GC frees with the Fiber. Unlike an address, no
//! number is given twice.

use crate::ruby::heap::{self, Raw};
use crate::ruby::reflect;
use crate::ruby::registry;
use magnus::prelude::*;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{DataTypeFunctions, Error, RModule, Ruby, TypedData, Value};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The number of a Fiber.
pub type Number = u64;

/// The Fibers of this process.
struct Fibers {
    /// The number of the next Fiber that opens something.
    next: AtomicU64,
    /// Fibers that ended, or that cannot be resumed.
    gone: Mutex<Vec<Number>>,
    /// Whether there are any: what [`take_gone`] checks first.
    any_gone: AtomicBool,
}

static FIBERS: Fibers =
    Fibers { next: AtomicU64::new(1), gone: Mutex::new(Vec::new()), any_gone: AtomicBool::new(false) };

#[derive(TypedData)]
#[magnus(class = "Ikra::Numbered", free_immediately)]
struct Numbered(Number);

impl DataTypeFunctions for Numbered {}

impl Drop for Numbered {
    fn drop(&mut self) {
        // The GC may call this at any allocation in Ruby's heap. No other user of the lock allocates there while it
        // holds the lock.
        FIBERS.gone.lock().push(self.0);
        FIBERS.any_gone.store(true, Ordering::Release);
    }
}

/// Defines `Ikra::Numbered`, which Ruby code cannot make.
///
/// # Errors
/// Where the name is taken.
pub fn init(ikra: RModule, ruby: &Ruby) -> Result<(), Error> {
    let class = ikra.define_class("Numbered", ruby.class_object())?;
    class.undef_default_alloc_func();
    ikra.funcall::<_, _, Value>("private_constant", (ruby.to_symbol("Numbered"),))?;
    // For the reason given in `Holder`.
    <Numbered as TypedData>::class(ruby);
    Ok(())
}

/// A variable of the current Fiber. nil where there is none.
pub fn variable(ruby: &Ruby, name: &str) -> Raw {
    // SAFETY: a live thread, and an ID. The function looks it up and allocates nothing.
    #[allow(unsafe_code)]
    unsafe {
        rb_sys::rb_thread_local_aref(ruby.thread_current().as_raw(), registry::id(ruby, name))
    }
}

const VARIABLE: &str = "__ikra_fiber";

/// The number of the current Fiber. None where it has not opened anything yet.
pub fn known(ruby: &Ruby) -> Option<Number> {
    let numbered = variable(ruby, VARIABLE);
    if numbered == heap::NIL {
        return None;
    }
    <&Numbered>::try_convert(reflect::value(numbered)).ok().map(|numbered| numbered.0)
}

/// The number of the current Fiber.
///
/// # Errors
/// FrozenError for a Thread that is frozen.
pub fn current(ruby: &Ruby) -> Result<Number, Error> {
    if let Some(known) = known(ruby) {
        return Ok(known);
    }
    let number = FIBERS.next.fetch_add(1, Ordering::Relaxed);
    let numbered = ruby.obj_wrap(Numbered(number));
    let (thread, id) = (ruby.thread_current().as_raw(), registry::id(ruby, VARIABLE));
    // SAFETY: live VALUEs. `protect` catches what it raises.
    #[allow(unsafe_code)]
    protect(|| unsafe { rb_sys::rb_thread_local_aset(thread, id, numbered.as_raw()) })?;
    Ok(number)
}

/// The Fibers that cannot be resumed any more, each once: the caller closes what they left open.
pub fn take_gone() -> Vec<Number> {
    if !FIBERS.any_gone.swap(false, Ordering::Acquire) {
        return Vec::new();
    }
    std::mem::take(&mut *FIBERS.gone.lock())
}
