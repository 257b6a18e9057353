//! Objects and arrays that a kernel made, as Ruby objects.
//!
//! Here: [`Made`], which gives each row that something refers to its Ruby object, once, and fills it. Not here: where
//! rows lie in columns ([`crate::marshal::pack`]), and how many there are ([`crate::marshal::capacity`]). Invariant:
//! each new object is held as soon as it exists, and filled before any object changes that existed before.
//!
//! Nothing recurses: a new object waits in a list until its contents are read, which may make more objects.

use crate::marshal::plan::Plan;
use crate::ruby::heap::{self, Field, Raw};
use crate::ruby::identity::WordMap;
use crate::ruby::reflect;
use ikra_core::memory::room;
use ikra_core::world::well_known;
use magnus::Error;
use magnus::rb_sys::protect;
use std::cell::RefCell;

/// The rows of a launch that have become Ruby objects.
#[derive(Default)]
pub struct Made {
    known: RefCell<WordMap<u64, Raw>>,
    /// Objects that exist and are not filled yet.
    waiting: RefCell<Vec<Waiting>>,
}

/// An object without contents.
#[derive(Clone, Copy)]
pub enum Waiting {
    /// With class index and row.
    Object(Raw, usize, usize),
    /// With kind index, offset and length.
    Array(Raw, usize, usize, usize),
}

const ARRAY: u64 = 1 << 63;

impl Made {
    /// The object of a row of a class. It is made at the first request, and `hold` keeps it.
    ///
    /// # Errors
    /// NoMemoryError.
    pub fn object(&self, plan: &Plan, class: usize, row: usize, hold: impl FnOnce(Raw)) -> Result<Raw, Error> {
        let key = (class as u64) << 32 | row as u64;
        if let Some(raw) = self.known.borrow().get(&key) {
            return Ok(*raw);
        }
        // SAFETY: a live class whose instances are ordinary objects or Structs, because other classes have no rows.
        // `protect` catches NoMemoryError.
        #[allow(unsafe_code)]
        let raw = protect(|| unsafe { rb_sys::rb_obj_alloc(plan.classes[class].raw) })?;
        hold(raw);
        self.know(key, raw);
        room::push(&mut self.waiting.borrow_mut(), Waiting::Object(raw, class, row));
        Ok(raw)
    }

    /// The same for an object that consists only of its parts.
    ///
    /// # Errors
    /// NoMemoryError.
    pub fn own(
        &self,
        of: Raw,
        class: usize,
        row: usize,
        parts: [Raw; 3],
        hold: impl FnOnce(Raw),
    ) -> Result<Raw, Error> {
        let key = (class as u64) << 32 | row as u64;
        if let Some(raw) = self.known.borrow().get(&key) {
            return Ok(*raw);
        }
        let [a, b, c] = parts;
        // SAFETY: constructors of the class at hand, of numbers, or of nil where a Range has no end. `protect` catches
        // what they raise.
        #[allow(unsafe_code)]
        let raw = protect(|| unsafe {
            match reflect::own_class(of) {
                Some(well_known::COMPLEX) => rb_sys::rb_complex_raw(a, b),
                Some(well_known::RATIONAL) => rb_sys::rb_rational_raw(a, b),
                _ => rb_sys::rb_range_new(a, b, i32::from(c == heap::TRUE)),
            }
        })?;
        hold(raw);
        self.know(key, raw);
        Ok(raw)
    }

    /// The array at an offset of a kind.
    ///
    /// # Errors
    /// NoMemoryError.
    pub fn array(&self, kind: usize, offset: usize, len: usize, hold: impl FnOnce(Raw)) -> Result<Raw, Error> {
        let key = ARRAY | (kind as u64) << 32 | offset as u64;
        if let Some(raw) = self.known.borrow().get(&key) {
            return Ok(*raw);
        }
        // SAFETY: makes an empty Array; `protect` catches NoMemoryError.
        #[allow(unsafe_code)]
        let raw = protect(|| unsafe { rb_sys::rb_ary_new_capa(len as _) })?;
        hold(raw);
        self.know(key, raw);
        room::push(&mut self.waiting.borrow_mut(), Waiting::Array(raw, kind, offset, len));
        Ok(raw)
    }

    fn know(&self, key: u64, raw: Raw) {
        let mut known = self.known.borrow_mut();
        room::reserve_entry(&mut known);
        known.insert(key, raw);
    }

    /// The next object that must be filled.
    pub fn next(&self) -> Option<Waiting> {
        self.waiting.borrow_mut().pop()
    }
}

unsafe extern "C" fn copy_ivar(ivar: rb_sys::ID, value: Raw, to: rb_sys::st_data_t) -> i32 {
    // SAFETY: `fill_object` gives a live object. Errors leave by its `protect`, and no Rust frame on the way has
    // anything to drop.
    #[allow(unsafe_code)]
    unsafe {
        rb_sys::rb_ivar_set(to as Raw, ivar, value)
    };
    rb_sys::st_retval::ST_CONTINUE as i32
}

/// Fills a new object. A copy first gets what its `origin` has. Then the object gets its ivars or members, and becomes
/// `frozen`.
///
/// # Errors
/// NoMemoryError.
pub fn fill_object(object: Raw, origin: Option<Raw>, fields: &[(Field, Raw)], frozen: bool) -> Result<(), Error> {
    // SAFETY: a live object that no other code knows, live values, and members that the Struct has. The origin is a
    // live object of the same class, which nothing changes meanwhile.
    #[allow(unsafe_code)]
    protect(|| unsafe {
        if let Some(origin) = origin {
            rb_sys::rb_ivar_foreach(origin, Some(copy_ivar), object as _);
            if heap::is_struct(origin) {
                for member in 0..rb_sys::rb_num2long(rb_sys::rb_struct_size(origin)) {
                    let index = (member as usize) << 1 | 1;
                    rb_sys::rb_struct_aset(object, index as Raw, rb_sys::rb_struct_aref(origin, index as Raw));
                }
            }
        }
        for (field, value) in fields {
            match field {
                // The ivar is not set in the origin either.
                Field::Ivar(ivar)
                    if *value == heap::NIL
                        && origin.is_some()
                        && rb_sys::rb_ivar_defined(object, *ivar) == heap::FALSE =>
                {
                    heap::NIL
                }
                Field::Ivar(ivar) => rb_sys::rb_ivar_set(object, *ivar, *value),
                Field::Member(index) => rb_sys::rb_struct_aset(object, ((*index as usize) << 1 | 1) as Raw, *value),
                // A part of a Hash, which kernels do not make, or of an object that was made with its parts.
                Field::Part(_) | Field::Key(_) | Field::Own(_) => heap::NIL,
            };
        }
        if frozen {
            rb_sys::rb_obj_freeze(object);
        }
        heap::NIL
    })
    .map(drop)
}

/// Fills a new Array, which then becomes `frozen`.
///
/// # Errors
/// NoMemoryError.
pub fn fill_array(array: Raw, elements: &[Raw], frozen: bool) -> Result<(), Error> {
    // SAFETY: a live Array that no other code knows, and live values, which Ruby copies.
    #[allow(unsafe_code)]
    protect(|| unsafe {
        rb_sys::rb_ary_cat(array, elements.as_ptr(), elements.len() as _);
        if frozen {
            rb_sys::rb_obj_freeze(array);
        }
        heap::NIL
    })
    .map(drop)
}
