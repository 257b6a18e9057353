//! Objects whose methods are running while a section of a scope runs. Nothing notices what such a method reads and
//! writes.
//!
//! Here: [`Inside`], which checks at each section whether these objects are as they were last seen. Mostly they are.
//! Not here: which objects they are, and what is done where they changed (`entered` and `left` in
//! `lib/ikra/resident.rb`). This file may always leave the decision to that code.

use super::is_open;
use crate::ruby::fiber;
use crate::ruby::heap::{self, Raw};
use crate::ruby::reflect;
use crate::ruby::registry;
use crate::section::engine::submitted::Submitted;
use crate::world::block::Captures;
use magnus::prelude::*;
use magnus::r_hash::ForEach;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RHash, RModule, Ruby, TryConvert, TypedData, Value};
use parking_lot::Mutex;

/// Classes whose objects kernels write.
static WRITTEN: Mutex<Vec<Raw>> = Mutex::new(Vec::new());

/// Notes that kernels write objects of a class, which is kept for good.
pub fn is_written(class: Raw) {
    let mut written = WRITTEN.lock();
    if !written.contains(&class) {
        written.push(class);
    }
}

/// What a section knows of these objects.
pub enum Inside {
    /// There are none.
    Nobody,
    /// All are as they were last seen. The Hash has, by object, whether it is frozen, and its ivars with their values.
    Same(RHash),
    /// Ruby code has to look.
    Unknown,
}

impl Inside {
    /// Before a section: what is known of the objects. Where that is nothing, Ruby code looks at them.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn enter(ruby: &Ruby, captures: &Captures) -> Result<Self, Error> {
        let inside = if is_open() { Self::of(ruby, captures)? } else { Self::Nobody };
        if let Self::Unknown = inside {
            ask(ruby, "__section_entered", &[captures.block().as_value()])?;
        }
        Ok(inside)
    }

    /// Whether they are as they were last seen.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// After the section, however it ended: where they may have changed, Ruby code looks at them again. A section that
    /// is under way ends before, and has to run again.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn leave(&self, ruby: &Ruby, value: Option<&Value>) -> Result<(), Error> {
        if !self.still_hold()? {
            // Asked for its class first. To say what another object is, magnus calls `to_s` of the class, and what an
            // interrupt raises there is dropped.
            if let Some(value) = value.filter(|value| value.is_kind_of(Submitted::class(ruby))) {
                <&Submitted>::try_convert(*value)?.stop(ruby)?;
            }
            ask(ruby, "__section_left", &[])?;
        }
        Ok(())
    }

    /// The objects of this Fiber. One of them is the `self` of the section's block.
    fn of(ruby: &Ruby, captures: &Captures) -> Result<Self, Error> {
        let inside = RHash::from_value(reflect::value(fiber::variable(ruby, "__ikra_inside")));
        let Some(inside) = inside else { return Ok(Self::Nobody) };
        let receiver = captures.receiver(ruby)?;
        if inside.get(receiver).is_none() && !is_left_out(ruby, receiver) {
            return Ok(Self::Unknown);
        }
        match inside.len() {
            0 => Ok(Self::Nobody),
            _ if are_same(inside)? => Ok(Self::Same(inside)),
            _ => Ok(Self::Unknown),
        }
    }

    /// Whether a section left them as they were.
    fn still_hold(&self) -> Result<bool, Error> {
        match self {
            Self::Nobody => Ok(true),
            Self::Same(inside) => are_same(*inside),
            Self::Unknown => Ok(false),
        }
    }
}

fn ask(ruby: &Ruby, name: &str, given: &[Value]) -> Result<Value, Error> {
    let ikra: RModule = ruby.class_object().const_get("Ikra")?;
    ikra.funcall(name, given)
}

/// Whether a receiver is of the most frequent kinds that `CORE` leaves out: nil, and plain Objects such as the main
/// object. Ruby code checks the others.
fn is_left_out(ruby: &Ruby, receiver: Value) -> bool {
    receiver.is_nil() || class_of(receiver.as_raw()) == ruby.class_object().as_raw()
}

/// The class of an object, without its singleton class.
fn class_of(object: Raw) -> Raw {
    // SAFETY: any live VALUE has a class, which the function finds without allocating or raising.
    #[allow(unsafe_code)]
    unsafe {
        rb_sys::rb_obj_class(object)
    }
}

fn are_same(inside: RHash) -> Result<bool, Error> {
    let mut same = true;
    inside.foreach(|object: Value, seen: RArray| {
        same = is_same(object.as_raw(), heap::elements(seen.as_raw()));
        Ok(if same { ForEach::Continue } else { ForEach::Stop })
    })?;
    Ok(same)
}

/// Whether an object is known to be as it was seen (`Ikra::Resident.values`), and kernels do not write it.
fn is_same(object: Raw, seen: &[Raw]) -> bool {
    let (Some(is_frozen), true) = (seen.first(), heap::is_object(object)) else { return false };
    if *is_frozen != if heap::is_frozen(object) { heap::TRUE } else { heap::FALSE } {
        return false;
    }
    let (ivars, class) = (heap::ivars(object), class_of(object));
    let mut pairs = seen[1..].chunks_exact(2).zip(&ivars);
    ivars.len() * 2 + 1 == seen.len()
        && pairs.all(|(seen, (id, value))| seen[0] == registry::symbol_of(*id) && seen[1] == *value)
        && !WRITTEN.lock().contains(&class)
}
