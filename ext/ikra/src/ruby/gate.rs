//! Gates: objects of Ruby that sections report to where several run at once.
//!
//! Here: whether the current Fiber has a gate. Not here: what sections report
//! ([`crate::section::engine`]), and what gates do (`lib/ikra/sections.rb`).

use crate::ruby::fiber;
use crate::ruby::reflect;
use magnus::prelude::*;
use magnus::{Error, RClass, RModule, Ruby, Value};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many gates there are: what each section checks first.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The Fiber variable that has the gate.
const VARIABLE: &str = "__ikra_gate";

/// `Ikra.__gates(more)`: there are so many more gates.
pub fn count(more: isize) {
    OPEN.fetch_add(more.cast_unsigned(), Ordering::Relaxed);
}

/// Whether any Fiber has a gate.
pub fn is_open() -> bool {
    OPEN.load(Ordering::Relaxed) != 0
}

/// The gate of the current Fiber.
pub fn current(ruby: &Ruby) -> Option<Value> {
    if !is_open() {
        return None;
    }
    let gate = reflect::value(fiber::variable(ruby, VARIABLE));
    (!gate.is_nil()).then_some(gate)
}

/// The value of a section, where a value is one: an `Ikra::Section` that a block captured. Others are given as they
/// are.
///
/// # Errors
/// What the section raised.
pub fn of_section(ruby: &Ruby, value: Value) -> Result<Value, Error> {
    if !is_open() {
        return Ok(value);
    }
    let ikra: RModule = ruby.class_object().const_get("Ikra")?;
    let class: RClass = ikra.const_get("Section")?;
    if value.is_kind_of(class) { value.funcall("value", ()) } else { Ok(value) }
}
