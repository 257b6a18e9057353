//! Ruby's MemoryView of an MDArray: its elements for C code of others, such as Fiddle and Numo.
//!
//! Here: the functions that Ruby calls (ruby/memory_view.h). Not here: where elements are (`MDArray#__memory_view`).
//!
//! A view is read-only and shows the elements as they were when it was taken: it holds that version of their buffer, which
//! nobody writes ([`ikra_core::memory::buffer`]).
#![allow(unsafe_code, reason = "Ruby's C API calls these functions; see SAFETY at each")]

use crate::buffer::{self, Dtype};
use crate::gvl;
use ikra_core::memory::column::HostColumn;
use magnus::prelude::*;
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::{RArray, Ruby, Value};
use rb_sys::ruby_memory_view_flags::{RUBY_MEMORY_VIEW_STRIDES, RUBY_MEMORY_VIEW_WRITABLE};
use rb_sys::{VALUE, rb_memory_view_entry_t, rb_memory_view_t};
use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a view points to, until it is released.
struct Shown {
    /// The version.
    _column: HostColumn,
    shape: Vec<rb_sys::ssize_t>,
    strides: Vec<rb_sys::ssize_t>,
}

static ENTRY: rb_memory_view_entry_t =
    rb_memory_view_entry_t { get_func: Some(get), release_func: Some(release), available_p_func: Some(available) };

/// `Ikra.__memory_views(class)`: its objects show their elements.
pub fn register(class: Value) -> bool {
    // SAFETY: the entry lives for good.
    unsafe { rb_sys::rb_memory_view_register(class.as_raw(), &raw const ENTRY) }
}

/// What Array#pack, and with it MemoryView, calls elements of a kind.
fn format(dtype: Dtype) -> &'static CStr {
    match dtype {
        Dtype::I64 => c"q",
        Dtype::I32 => c"l",
        Dtype::U8 | Dtype::Bool => c"C",
        Dtype::F64 => c"d",
        Dtype::F32 => c"f",
    }
}

/// The elements of an array: whether they must stand row after row decides whether it may be a view of others'.
fn shown(array: Value, strides: bool) -> Option<(Dtype, *const u8, Shown)> {
    let told: RArray = array.funcall("__memory_view", (!strides,)).ok()?;
    let (dtype, held) = buffer::of(told.entry::<Value>(0).ok()?.as_raw())?;
    let offset: usize = told.entry(1).ok()?;
    let (shape, strides) = (told.entry(2).ok()?, told.entry(3).ok()?);
    let column = gvl::released(|| held.on_host()).ok()?;
    let data = column.bytes().get(offset * dtype.storage().bytes()..)?.as_ptr();
    Some((dtype, data, Shown { _column: column, shape, strides }))
}

unsafe extern "C" fn get(array: VALUE, view: *mut rb_memory_view_t, flags: c_int) -> bool {
    if flags & RUBY_MEMORY_VIEW_WRITABLE as c_int != 0 {
        return false;
    }
    let strides = flags & RUBY_MEMORY_VIEW_STRIDES as c_int == RUBY_MEMORY_VIEW_STRIDES as c_int;
    // SAFETY: Ruby gives an object of the class, which its caller holds.
    let array = unsafe { Value::from_raw(array) };
    let Ok(Some((dtype, data, mut shown))) = catch_unwind(AssertUnwindSafe(|| shown(array, strides))) else {
        return false;
    };
    let width = dtype.storage().bytes() as rb_sys::ssize_t;
    for stride in &mut shown.strides {
        *stride *= width;
    }
    let size = shown.shape.iter().product::<rb_sys::ssize_t>() * width;
    let shown = Box::new(shown);
    // SAFETY: Ruby gives room for a view. What it points to lives until `release` is given it: the column by its hold,
    // shape and strides in the box.
    unsafe {
        (*view).obj = array.as_raw();
        (*view).data = data.cast_mut().cast();
        (*view).byte_size = size;
        (*view).readonly = true;
        (*view).format = format(dtype).as_ptr();
        (*view).item_size = width;
        (*view).item_desc.components = std::ptr::null();
        (*view).item_desc.length = 0;
        (*view).ndim = shown.shape.len() as rb_sys::ssize_t;
        (*view).shape = shown.shape.as_ptr();
        (*view).strides = shown.strides.as_ptr();
        (*view).sub_offsets = std::ptr::null();
        (*view).private_data = Box::into_raw(shown).cast();
    }
    true
}

unsafe extern "C" fn release(_array: VALUE, view: *mut rb_memory_view_t) -> bool {
    // SAFETY: Ruby gives a view that `get` filled, once; its data is not looked at any more.
    drop(unsafe { Box::from_raw((*view).private_data.cast::<Shown>()) });
    true
}

unsafe extern "C" fn available(array: VALUE) -> bool {
    // SAFETY: Ruby gives an object of the class, which its caller holds.
    let array = unsafe { Value::from_raw(array) };
    let ruby = Ruby::get_with(array);
    catch_unwind(AssertUnwindSafe(|| {
        let dtype = array.funcall::<_, _, magnus::Symbol>("dtype", ()).ok();
        dtype.is_some_and(|dtype| !dtype.equal(ruby.to_symbol("object")).unwrap_or(true))
    }))
    .unwrap_or(false)
}
