//! Class variables that a section assigns. Each becomes the only attribute of an object, so that it is read, written
//! and added to like an attribute of a shared object.
//!
//! Here: these objects, and how values get from a class variable to its object and back. Not here: which variable a
//! scope sees ([`crate::world::live_world`]).
//! Invariant: from the call of [`object`] until the section is packed, the object has its variable's value. The object
//! is kept for good.

use crate::ruby::heap::{self, Raw};
use crate::ruby::identity::RawMap;
use crate::ruby::reflect::{self, value};
use crate::ruby::registry::{self, keep};
use magnus::prelude::*;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, RArray, Ruby, Value};
use parking_lot::Mutex;

/// The names of class variables and their objects, by the class or module that has the variable.
type Objects = RawMap<Vec<(String, Raw)>>;

static OBJECTS: Mutex<Option<Objects>> = Mutex::new(None);

/// The object of the class variable that `module` sees. It has the value `now`. None where its class is frozen.
///
/// # Errors
/// What Ruby raises.
pub fn object(ruby: &Ruby, module: Raw, variable: &str, now: Raw) -> Result<Option<Raw>, Error> {
    let owner = owner(ruby, module, variable)?;
    if heap::is_frozen(owner) {
        return Ok(None);
    }
    let object = match known(owner, variable) {
        Some(object) => object,
        None => make(ruby, owner, variable)?,
    };
    let ivar = registry::id(ruby, &variable[1..]);
    // SAFETY: a live object of a class of this file, and a live value.
    #[allow(unsafe_code)]
    protect(|| unsafe { rb_sys::rb_ivar_set(object, ivar, now) })?;
    Ok(Some(object))
}

/// Assigns to a class variable, whose value is `old`, what a section has written to its object.
///
/// # Errors
/// What Ruby raises.
pub fn write_back(ruby: &Ruby, module: Raw, variable: &str, old: Raw) -> Result<(), Error> {
    let Some(object) = known(owner(ruby, module, variable)?, variable) else { return Ok(()) };
    let (name, ivar) = (registry::id(ruby, variable), registry::id(ruby, &variable[1..]));
    // SAFETY: a live object, and a live module that sees a variable of this name.
    #[allow(unsafe_code)]
    protect(|| unsafe {
        let new = rb_sys::rb_ivar_get(object, ivar);
        if new != old {
            rb_sys::rb_cvar_set(module, name, new);
        }
        heap::NIL
    })
    .map(drop)
}

/// The class or module through which a nesting sees a class variable, and the value now. None where there is no such
/// variable, or its class is frozen.
///
/// # Errors
/// What Ruby raises.
pub fn settable(ruby: &Ruby, nesting: &[Raw], variable: &str) -> Result<Option<(Raw, Raw)>, Error> {
    let Some(module) = crate::world::live_world::class_variable_module(nesting)? else { return Ok(None) };
    let Some(now) = crate::world::live_world::class_variable(module, registry::id(ruby, variable))? else {
        return Ok(None);
    };
    Ok((!heap::is_frozen(owner(ruby, module, variable)?)).then_some((module, now)))
}

/// Assigns to a class variable.
///
/// # Errors
/// What Ruby raises.
pub fn set(ruby: &Ruby, module: Raw, variable: &str, value: Raw) -> Result<(), Error> {
    let name = registry::id(ruby, variable);
    // SAFETY: a live module that sees a variable of this name, and a live value.
    #[allow(unsafe_code)]
    protect(|| unsafe {
        rb_sys::rb_cvar_set(module, name, value);
        heap::NIL
    })
    .map(drop)
}

fn known(owner: Raw, variable: &str) -> Option<Raw> {
    let objects = OBJECTS.lock();
    let of_owner = objects.as_ref()?.get(&owner)?;
    of_owner.iter().find(|(name, _)| name == variable).map(|(_, object)| *object)
}

/// The ancestor of `module` that has the variable itself.
fn owner(ruby: &Ruby, module: Raw, variable: &str) -> Result<Raw, Error> {
    let name = registry::symbol(ruby, variable);
    let ask: Value = ruby.class_module().funcall("instance_method", ("class_variables",))?;
    for ancestor in reflect::ancestors(module)? {
        let own: RArray = ask.funcall("bind_call", (ancestor, false))?;
        if own.includes(name) {
            return Ok(ancestor.as_raw());
        }
    }
    Ok(module)
}

/// Makes the object, and a class with the name of the variable, which messages show.
fn make(ruby: &Ruby, owner: Raw, variable: &str) -> Result<Raw, Error> {
    let (label, attribute) = (ruby.str_new(variable), std::ffi::CString::new(&variable[2..]));
    let attribute = attribute.expect("Ruby's names of variables have no zero bytes");
    let superclass = ruby.class_object().as_raw();
    // SAFETY: `rb_class_new` calls no `inherited`. The machine stack keeps the class alive until it is kept for good.
    // `protect` catches NoMemoryError.
    #[allow(unsafe_code)]
    let class = protect(|| unsafe {
        let class = rb_sys::rb_class_new(superclass);
        rb_sys::rb_set_class_path_string(class, superclass, label.as_raw());
        rb_sys::rb_define_attr(class, attribute.as_ptr(), 1, 1);
        class
    })?;
    keep(value(class));
    // SAFETY: a live class of ordinary objects.
    #[allow(unsafe_code)]
    let object = protect(|| unsafe { rb_sys::rb_obj_alloc(class) })?;
    keep(value(object));
    keep(value(owner));
    let mut objects = OBJECTS.lock();
    objects.get_or_insert_default().entry(owner).or_default().push((variable.into(), object));
    Ok(object)
}
