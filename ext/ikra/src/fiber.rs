//! Which Fiber runs, and which are gone.
//!
//! Here: [`current`], a Fiber's number, by which is kept what `Ikra.resident`, `Ikra.profile` and `Ikra.explain` opened there; [`let_gone_go`], which closes what a
//! Fiber left open that nobody can resume any more. Not here: what is kept ([`crate::engine::resident`], [`crate::profile`], [`crate::explain`]).
//!
//! The number is in the Fiber's own variables, in an object that goes when the Fiber goes. No number is given twice, which addresses would be.

use crate::engine::resident;
use crate::heap::{self, Raw};
use crate::{explain, profile, registry};
use magnus::prelude::*;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{DataTypeFunctions, Error, RModule, Ruby, TypedData, Value};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a Fiber is called.
pub type Number = u64;

static NEXT: AtomicU64 = AtomicU64::new(1);
/// Those that ended, or that nobody can resume.
static GONE: Mutex<Vec<Number>> = Mutex::new(Vec::new());
static ANY_GONE: AtomicBool = AtomicBool::new(false);

#[derive(TypedData)]
#[magnus(class = "Ikra::Numbered", free_immediately)]
struct Numbered(Number);

impl DataTypeFunctions for Numbered {}

impl Drop for Numbered {
    fn drop(&mut self) {
        // the GC is here: who takes the lock otherwise allocates nothing under it
        GONE.lock().push(self.0);
        ANY_GONE.store(true, Ordering::Release);
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
    // as of `Holder`
    <Numbered as TypedData>::class(ruby);
    Ok(())
}

/// A variable of the Fiber that runs; nil where there is none.
pub fn variable(ruby: &Ruby, name: &str) -> Raw {
    // SAFETY: a live thread, and an ID; it is looked up and nothing is allocated.
    #[allow(unsafe_code)]
    unsafe {
        rb_sys::rb_thread_local_aref(ruby.thread_current().as_raw(), registry::id(ruby, name))
    }
}

const VARIABLE: &str = "__ikra_fiber";

/// The number of the Fiber that runs; None for one that opened nothing yet.
pub fn known(ruby: &Ruby) -> Option<Number> {
    let numbered = variable(ruby, VARIABLE);
    if numbered == heap::NIL {
        return None;
    }
    <&Numbered>::try_convert(crate::reflect::value(numbered)).ok().map(|numbered| numbered.0)
}

/// The number of the Fiber that runs.
///
/// # Errors
/// FrozenError for a Thread that is frozen.
pub fn current(ruby: &Ruby) -> Result<Number, Error> {
    if let Some(known) = known(ruby) {
        return Ok(known);
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let numbered = ruby.obj_wrap(Numbered(number));
    let (thread, id) = (ruby.thread_current().as_raw(), registry::id(ruby, VARIABLE));
    // SAFETY: live VALUEs; what it raises is caught.
    #[allow(unsafe_code)]
    protect(|| unsafe { rb_sys::rb_thread_local_aset(thread, id, numbered.as_raw()) })?;
    Ok(number)
}

/// Closes what Fibers left open that are gone.
///
/// # Errors
/// As [`resident::close`].
pub fn let_gone_go(ruby: &Ruby) -> Result<(), Error> {
    if !ANY_GONE.swap(false, Ordering::Acquire) {
        return Ok(());
    }
    let gone = std::mem::take(&mut *GONE.lock());
    profile::let_go(&gone);
    explain::let_go(&gone);
    resident::let_gone_go(ruby, &gone)
}
