//! Objects in the middle of whose methods the sections of a scope run: what such a method reads and writes, nobody notices.
//!
//! Here: [`Inside`], which finds out at each section that they are as they were last seen, as they mostly are. Not here: who they are, and what is done
//! where they are not (`lib/ikra/resident.rb`, `entered` and `left`), for which this may always ask.

use crate::block::Captures;
use crate::fiber;
use crate::heap::{self, Raw};
use crate::reflect;
use crate::registry;
use magnus::prelude::*;
use magnus::r_hash::ForEach;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RHash, Ruby, Value};
use parking_lot::Mutex;

/// Classes whose objects kernels write.
static WRITTEN: Mutex<Vec<Raw>> = Mutex::new(Vec::new());

/// That kernels write objects of a class, which is kept.
pub fn is_written(class: Raw) {
    let mut written = WRITTEN.lock();
    if !written.contains(&class) {
        written.push(class);
    }
}

/// What a section knows of them.
pub enum Inside {
    /// There are none.
    Nobody,
    /// All of them are as they were seen: by object, whether it is frozen, and its ivars with their values.
    Same(RHash),
    /// Ruby code has to look.
    Unknown,
}

impl Inside {
    /// Those of this Fiber, of whom one is the `self` of a section's block.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn of(ruby: &Ruby, captures: &Captures) -> Result<Self, Error> {
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
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn still_hold(&self) -> Result<bool, Error> {
        match self {
            Self::Nobody => Ok(true),
            Self::Same(inside) => are_same(*inside),
            Self::Unknown => Ok(false),
        }
    }
}

/// The most frequent of those that are never among them (`CORE`): what a program's outermost lines are run by, and nobody. Of others Ruby code knows.
fn is_left_out(ruby: &Ruby, receiver: Value) -> bool {
    receiver.is_nil() || class_of(receiver.as_raw()) == ruby.class_object().as_raw()
}

/// The class, whatever methods the object has of its own.
fn class_of(object: Raw) -> Raw {
    // SAFETY: any live VALUE has a class, which is found without allocating or raising.
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

/// Whether it is known that an object is what was seen (`Ikra::Resident.values`), and that kernels do not write it.
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
