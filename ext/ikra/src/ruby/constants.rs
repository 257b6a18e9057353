//! Constants as Ruby's code sees them, and the modules around a method's text.
//!
//! Here: [`From::constant`], which looks a constant up; and [`method_nesting`]. Not here: the numbers of constants, and
//! what a constant means to a program ([`crate::world::live_world`]).

use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::iseq::{self, Body, Opening, Sequence};
use crate::ruby::reflect::{self, value};
use crate::ruby::registry::{self, classes, keep};
use ikra_core::world::well_known;
use magnus::rb_sys::protect;
use magnus::{Error, Ruby, Value};
use std::sync::Arc;

/// Where a constant is looked up.
#[derive(Clone, PartialEq)]
pub enum From {
    /// In the classes and modules around the code, the innermost first, and what the innermost inherits.
    Scope(Arc<[Raw]>),
    /// In one class or module, and what it inherits.
    Module(Raw),
}

impl From {
    /// The current value. None if the constant is not defined.
    ///
    /// # Errors
    /// What `const_missing` and autoload raise.
    pub fn constant(&self, id: rb_sys::ID) -> Result<Option<Raw>, Error> {
        // SAFETY: classes and modules of scopes are kept. `protect` catches what `const_missing` and autoload raise.
        #[allow(unsafe_code)]
        unsafe {
            match self {
                From::Scope(nesting) => {
                    for module in nesting.iter() {
                        if rb_sys::rb_const_defined_at(*module, id) != 0 {
                            return protect(|| rb_sys::rb_const_get_at(*module, id)).map(Some);
                        }
                    }
                    let object = || classes::get(well_known::OBJECT).raw;
                    let innermost = nesting.first().copied().unwrap_or_else(object);
                    if rb_sys::rb_const_defined(innermost, id) == 0 {
                        return Ok(None);
                    }
                    protect(|| rb_sys::rb_const_get(innermost, id)).map(Some)
                }
                From::Module(module) => {
                    if rb_sys::rb_const_defined_from(*module, id) == 0 {
                        return Ok(None);
                    }
                    protect(|| rb_sys::rb_const_get_from(*module, id)).map(Some)
                }
            }
        }
    }
}

/// The classes and modules around a method's code, innermost first. They are the `class` and `module` bodies around its
/// text, each looked up in the one before. Where that does not lead to the method's owner, the owner alone.
pub fn method_nesting(ruby: &Ruby, iseq: Value, owner: Raw) -> Result<Arc<[Raw]>, Error> {
    let bodies = Sequence::of(iseq).and_then(|sequence| {
        let (text, _) = sequence.text(ruby)?;
        text.bodies(ruby, &sequence)
    });
    let bodies = match bodies {
        Ok(bodies) => bodies,
        Err(iseq::Failure::Ruby(error)) => return Err(error),
        Err(_) => return Ok([owner].into()),
    };
    let mut nesting: Vec<Raw> = Vec::new();
    for body in bodies.iter() {
        match open(ruby, &nesting, body)? {
            Some(module) => nesting.insert(0, module),
            None => return Ok([owner].into()),
        }
    }
    for module in &nesting {
        keep(value(*module));
    }
    Ok(nesting.into())
}

/// What `class A::B` opened, as seen from the scope around it.
fn open(ruby: &Ruby, nesting: &[Raw], body: &Body) -> Result<Option<Raw>, Error> {
    if body.opening == Opening::Singleton {
        return match nesting.first() {
            Some(module) => reflect::singleton_class(*module).map(Some),
            None => Ok(None),
        };
    }
    let object = classes::get(well_known::OBJECT).raw;
    let mut parts = body.path.split("::").peekable();
    let top = parts.next_if(|p| p.is_empty()).is_some();
    let parts: Vec<&str> = parts.collect();
    let Some((last, heads)) = parts.split_last() else { return Ok(None) };
    let mut within = if top { object } else { nesting.first().copied().unwrap_or(object) };
    for (i, head) in heads.iter().enumerate() {
        let from = if i == 0 && !top { From::Scope(nesting.into()) } else { From::Module(within) };
        match from.constant(registry::id(ruby, head))? {
            Some(module) if heap::see(module) == Seen::Module => within = module,
            _ => return Ok(None),
        }
    }
    let id = registry::id(ruby, last);
    // SAFETY: `within` is a live class or module.
    #[allow(unsafe_code)]
    let defined = unsafe { rb_sys::rb_const_defined_at(within, id) } != 0;
    let from = if defined || within != object { From::Module(within) } else { From::Scope([].into()) };
    Ok(from.constant(id)?.filter(|raw| heap::see(*raw) == Seen::Module))
}
