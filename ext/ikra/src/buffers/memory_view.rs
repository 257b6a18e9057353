//! Ruby's MemoryView of an MDArray: its elements for C code of other libraries, such as Fiddle and Numo.
//!
//! Here: the functions that Ruby calls (ruby/memory_view.h). Not here: where elements are (`MDArray#__memory_view`).
//!
//! A view shows the elements as they were when it was taken. It holds that version of their buffer, which is never
//! written ([`ikra_core::memory::buffer`]). A writable view has a copy of its own, row after row. When it is released,
//! the copy becomes the array's contents, all at once.
#![allow(unsafe_code, reason = "Ruby's C API calls these functions; see SAFETY at each")]

use crate::buffers::buffer::{self, Part};
use crate::ruby::dtype::Dtype;
use crate::ruby::errors;
use crate::ruby::gvl;
use crate::ruby::heap;
use ikra_core::memory::buffer::Buffer;
use ikra_core::memory::column::HostColumn;
use magnus::error::ErrorType;
use magnus::prelude::*;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RArray, RString, Ruby, Value};
use rb_sys::ruby_memory_view_flags::{RUBY_MEMORY_VIEW_STRIDES, RUBY_MEMORY_VIEW_WRITABLE};
use rb_sys::{VALUE, rb_memory_view_entry_t, rb_memory_view_t};
use std::ffi::{CStr, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The memory that a view points to, until it is released.
struct Shown {
    /// The version of the buffer, or a copy.
    column: HostColumn,
    shape: Vec<rb_sys::ssize_t>,
    strides: Vec<rb_sys::ssize_t>,
    /// Where the elements go when the view is released, if it is writable.
    back: Option<(Arc<Buffer>, Dtype, Part)>,
}

impl Drop for Shown {
    fn drop(&mut self) {
        let Some((buffer, dtype, part)) = self.back.take() else { return };
        let width = buffer.storage().bytes();
        if dtype == Dtype::Bool {
            // Other libraries may store any byte for true.
            self.column.bytes_mut().iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        // The release cannot raise: the next read of the array fails in the same way.
        let _ = buffer.change(|all| part.scatter(width, self.column.bytes(), all));
    }
}

static ENTRY: rb_memory_view_entry_t =
    rb_memory_view_entry_t { get_func: Some(get), release_func: Some(release), available_p_func: Some(available) };

/// `Ikra.__memory_views(class)`: objects of this class get memory views.
pub fn register(class: Value) -> bool {
    // SAFETY: the entry is never freed.
    unsafe { rb_sys::rb_memory_view_register(class.as_raw(), &raw const ENTRY) }
}

/// The format of a dtype's elements, in the notation of Array#pack and MemoryView.
fn format(dtype: Dtype) -> &'static CStr {
    match dtype {
        Dtype::I64 => c"q",
        Dtype::I32 => c"l",
        Dtype::U8 | Dtype::Bool => c"C",
        Dtype::F64 => c"d",
        Dtype::F32 => c"f",
    }
}

/// The distance of neighbours in each dimension, where elements are stored row after row.
fn packed(shape: &[rb_sys::ssize_t], width: rb_sys::ssize_t) -> Vec<rb_sys::ssize_t> {
    let mut strides = vec![width; shape.len()];
    for dimension in (1..shape.len()).rev() {
        strides[dimension - 1] = strides[dimension] * shape[dimension];
    }
    strides
}

/// The elements of an array. Where they need not be stored row after row, the view may be a part of the elements of
/// another array.
///
/// # Errors
/// What the elements' computation raises.
fn shown(ruby: &Ruby, array: Value, strides: bool, written: bool) -> Result<Option<(Dtype, *const u8, Shown)>, Error> {
    let told: Option<RArray> = array.funcall("__memory_view", (!strides && !written, written))?;
    let Some(told) = told else { return Ok(None) };
    let Some((dtype, held)) = buffer::of(told.entry::<Value>(0)?.as_raw()) else { return Ok(None) };
    let offset: usize = told.entry(1)?;
    let (shape, strides): (Vec<rb_sys::ssize_t>, Vec<rb_sys::ssize_t>) = (told.entry(2)?, told.entry(3)?);
    let column = gvl::released(|| held.on_host()).map_err(|error| errors::core(ruby, error))?;
    let width = dtype.storage().bytes();
    if !written {
        // A part without elements may begin after the last one.
        let from = column.bytes().get(offset * width..).unwrap_or_default();
        return Ok(Some((dtype, from.as_ptr(), Shown { column, shape, strides, back: None })));
    }
    let sizes = shape.iter().map(|size| *size as usize).collect();
    let apart = strides.iter().map(|stride| *stride as isize).collect();
    let Some(part) = Part::new(offset, sizes, apart, held.len()) else { return Ok(None) };
    let mut copy = HostColumn::zeroed(dtype.storage(), part.count());
    part.gather(width, column.bytes(), copy.bytes_mut());
    let strides = packed(&shape, 1);
    // The words stay where they are when the column is moved.
    let data = copy.as_kernel_ptr(true).cast_const();
    Ok(Some((dtype, data, Shown { column: copy, shape, strides, back: Some((held, dtype, part)) })))
}

/// How a C function ends early.
enum End {
    Raise(VALUE),
    /// By `throw`, or because its thread is killed.
    Jump(c_int),
}

impl End {
    fn of(error: Error) -> Self {
        match error.error_type() {
            ErrorType::Exception(exception) => Self::Raise(exception.as_raw()),
            ErrorType::Error(class, message) => match class.new_instance((message.as_ref(),)) {
                Ok(exception) => Self::Raise(exception.as_raw()),
                Err(error) => Self::of(error),
            },
            ErrorType::Jump(tag) => Self::Jump(*tag as c_int),
        }
    }

    /// # Safety
    /// Called by a C function of Ruby's that has nothing left to be dropped.
    unsafe fn go(self) -> ! {
        // SAFETY: an exception, or the state that Ruby is in since it was caught.
        unsafe {
            match self {
                Self::Raise(exception) => rb_sys::rb_exc_raise(exception),
                Self::Jump(tag) => rb_sys::rb_jump_tag(tag),
            }
        }
    }
}

unsafe extern "C" fn get(array: VALUE, view: *mut rb_memory_view_t, flags: c_int) -> bool {
    let asks = |flag: c_int| flags & flag == flag;
    let (strides, written) = (asks(RUBY_MEMORY_VIEW_STRIDES as c_int), asks(RUBY_MEMORY_VIEW_WRITABLE as c_int));
    // SAFETY: Ruby passes an object of the class, which its caller keeps alive.
    let array = unsafe { Value::from_raw(array) };
    let ruby = Ruby::get_with(array);
    let got = match catch_unwind(AssertUnwindSafe(|| shown(&ruby, array, strides, written))) {
        Ok(Ok(got)) => got,
        Ok(Err(error)) => {
            let end = End::of(error);
            // SAFETY: nothing of Rust's is left to be dropped: it was moved out of `error`.
            unsafe { end.go() }
        }
        Err(_) => None,
    };
    let Some((dtype, data, mut shown)) = got else { return false };
    let width = dtype.storage().bytes() as rb_sys::ssize_t;
    for stride in &mut shown.strides {
        *stride *= width;
    }
    let size = shown.shape.iter().product::<rb_sys::ssize_t>() * width;
    let shown = Box::new(shown);
    // SAFETY: Ruby passes memory for a view. What the view points to lives until `release`: the column in its holder,
    // shape and strides in the box.
    unsafe {
        (*view).obj = array.as_raw();
        (*view).data = data.cast_mut().cast();
        (*view).byte_size = size;
        (*view).readonly = !written;
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
    // SAFETY: Ruby passes a view that `get` filled, and does so once. Its data is not read any more.
    let shown = unsafe { Box::from_raw((*view).private_data.cast::<Shown>()) };
    catch_unwind(AssertUnwindSafe(|| drop(shown))).is_ok()
}

/// Whether a format is that of a dtype, given that elements are equally wide.
fn holds(format: &[u8], dtype: Dtype) -> bool {
    let letter: Vec<u8> = format.iter().copied().filter(|byte| !b"|=@<!".contains(byte)).collect();
    let letters: &[u8] = match dtype {
        Dtype::I64 | Dtype::I32 => b"csilqj",
        Dtype::U8 => b"C",
        Dtype::Bool => b"C?",
        Dtype::F64 => b"dE",
        Dtype::F32 => b"fe",
    };
    matches!(letter[..], [one] if letters.contains(&one))
}

/// `Ikra.__write_view(object, bytes, dtype, shape)`: copies elements, row after row, into the writable view of an
/// object. Gives what is wrong with the view, if anything is: `:none`, or its item size, shape and format.
///
/// # Errors
/// What the object raises.
pub fn write(
    ruby: &Ruby,
    object: Value,
    bytes: RString,
    dtype: Value,
    shape: Vec<rb_sys::ssize_t>,
) -> Result<Option<Value>, Error> {
    let dtype = Dtype::of(ruby, dtype)?;
    let width = dtype.storage().bytes();
    // SAFETY: a struct of plain words, which Ruby fills.
    let mut view: rb_memory_view_t = unsafe { std::mem::zeroed() };
    let flags = RUBY_MEMORY_VIEW_STRIDES as c_int | RUBY_MEMORY_VIEW_WRITABLE as c_int;
    // SAFETY: the object is alive, and so is the memory of the view. `protect` catches what its class raises.
    let got = protect(|| unsafe {
        if rb_sys::rb_memory_view_get(object.as_raw(), &raw mut view, flags) { heap::TRUE } else { heap::NIL }
    })?;
    if got == heap::NIL {
        return Ok(Some(ruby.to_symbol("none").as_value()));
    }
    let rank = usize::try_from(view.ndim).unwrap_or(0);
    // SAFETY: by Ruby's contract, shape and strides of a view of several dimensions have one entry for each, if they
    // are not null.
    let list = |pointer: *const rb_sys::ssize_t| unsafe {
        (!pointer.is_null()).then(|| std::slice::from_raw_parts(pointer, rank).to_vec())
    };
    let item = usize::try_from(view.item_size).unwrap_or(0);
    let flat = || if item == 0 { Vec::new() } else { vec![view.byte_size / item as rb_sys::ssize_t] };
    let theirs = list(view.shape).unwrap_or_else(flat);
    // SAFETY: a format that is not null is a C string, which lives as long as the view. Null means bytes.
    let format = unsafe { if view.format.is_null() { c"C" } else { CStr::from_ptr(view.format) } }.to_owned();
    let same = item == width && theirs == shape && holds(format.to_bytes(), dtype);
    let fits = same && !view.readonly && view.sub_offsets.is_null();
    if fits {
        let given = heap::bytes(bytes.as_raw());
        let strides = list(view.strides).unwrap_or_else(|| packed(&shape, width as rb_sys::ssize_t));
        let mut at = vec![0; shape.len()];
        for element in given.chunks_exact(width) {
            let place: isize = at.iter().zip(&strides).map(|(index, stride)| (index * stride) as isize).sum();
            // SAFETY: the address of an element of the view, which is of this width and writable.
            unsafe { std::ptr::copy_nonoverlapping(element.as_ptr(), view.data.cast::<u8>().offset(place), width) };
            for dimension in (0..at.len()).rev() {
                at[dimension] += 1;
                if at[dimension] < shape[dimension] {
                    break;
                }
                at[dimension] = 0;
            }
        }
    }
    // SAFETY: the view that Ruby filled, released once.
    protect(|| unsafe {
        rb_sys::rb_memory_view_release(&raw mut view);
        heap::NIL
    })?;
    let wrong = || {
        let format = ruby.str_new(&format.to_string_lossy()).as_value();
        ruby.ary_new_from_values(&[ruby.into_value(item), ruby.ary_from_vec(theirs.clone()).as_value(), format])
    };
    Ok(match (fits, same) {
        (true, _) => None,
        (false, true) => Some(ruby.to_symbol("none").as_value()),
        (false, false) => Some(wrong().as_value()),
    })
}

unsafe extern "C" fn available(array: VALUE) -> bool {
    // SAFETY: Ruby passes an object of the class, which its caller keeps alive.
    let array = unsafe { Value::from_raw(array) };
    let ruby = Ruby::get_with(array);
    let dtype = catch_unwind(AssertUnwindSafe(|| array.funcall::<_, _, Value>("dtype", ())));
    match dtype {
        Ok(Ok(dtype)) => dtype.as_raw() != ruby.to_symbol("object").as_raw(),
        Ok(Err(error)) => {
            let end = End::of(error);
            // SAFETY: nothing of Rust's is left to be dropped: it was moved out of `error`.
            unsafe { end.go() }
        }
        Err(_) => false,
    }
}
