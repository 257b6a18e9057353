//! Arrays of many numbers, filled by all cores, and Strings of many bytes.
//!
//! Here: [`filled`], an Array whose elements are written in place by workers, so that nothing is copied;
//! [`string`], whose bytes several threads copy; and [`hash`], a Hash that is filled at once. Not here: the numbers and
//! bytes themselves ([`crate::marshal::decode`], [`crate::buffers::buffer`]).
#![allow(unsafe_code, reason = "writes the bodies of an Array and of a String that nobody else knows yet")]

use crate::ruby::heap::{self, Raw};
use crate::ruby::reflect;
use crate::ruby::workers::{self, PIECE};
use ikra_core::memory::pages::large_pages;
use ikra_core::memory::room;
use ikra_core::memory::words::copy_by_threads;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RArray, RHash, RString, Ruby, Value};
use rb_sys::StableApiDefinition;
use std::mem::MaybeUninit;

/// Why an Array was not filled.
pub enum Unfilled<E> {
    Raised(Error),
    /// What `fill` gave.
    Failed(E),
}

impl<E> From<Error> for Unfilled<E> {
    fn from(error: Error) -> Self {
        Unfilled::Raised(error)
    }
}

impl<E> Unfilled<E> {
    /// The exception. `raised` makes one of what `fill` gave.
    pub fn or(self, raised: impl FnOnce(E) -> Error) -> Error {
        match self {
            Unfilled::Raised(error) => error,
            Unfilled::Failed(failure) => raised(failure),
        }
    }
}

/// An Array of so many elements. `fill` gets the index of a first one, and a slice of nils. It replaces these by
/// immediates, or by UNDEF where Ruby must make an object. These elements stay nil, and their indices come with the
/// Array, in ascending order.
///
/// # Errors
/// NoMemoryError, and what `fill` gives.
pub fn filled<E: Send>(
    ruby: &Ruby,
    len: usize,
    fill: impl Fn(usize, &mut [Raw]) -> Result<(), E> + Sync,
) -> Result<(RArray, Vec<usize>), Unfilled<E>> {
    if len == 0 {
        return Ok((ruby.ary_new(), Vec::new()));
    }
    room::check(len.saturating_mul(size_of::<Raw>()));
    // SAFETY: a new Array with room for so many. `protect` catches NoMemoryError.
    let raw = protect(|| unsafe { rb_sys::rb_ary_new_capa(len as std::os::raw::c_long) })?;
    // SAFETY: the Array that was just made, which the machine stack keeps alive from here on.
    let array = unsafe { Value::from_raw(raw) };
    let array = RArray::from_value(array).ok_or_else(|| Error::new(ruby.exception_fatal(), "no Array"))?;
    // SAFETY: `array` is a live Array, because it is on the machine stack until it is returned. This reads where its
    // body is, and only the address is used.
    let body = unsafe { rb_sys::stable_api::get_default().rarray_const_ptr(raw) };
    large_pages(body as usize, len * size_of::<Raw>());
    // SAFETY: `raw` is that Array. It is not frozen, because no other code knows it, and `len` is not 0. Ruby stores
    // nil at an index that is not negative, and fills the elements before it with nil. `protect` catches what it may
    // raise (NoMemoryError, IndexError of too great an index). No frame on the way has anything to drop.
    protect(|| unsafe {
        rb_sys::rb_ary_store(raw, len as std::os::raw::c_long - 1, heap::NIL);
        heap::NIL
    })?;
    // SAFETY: the body has `len` elements now, all of them nil. It moves only where the Array changes or the GC runs.
    // Both need the GVL, which this thread holds until the workers are done (`workers::map` returns after them), and it
    // calls no function of Ruby meanwhile. No other code knows the Array, so nothing else reads or writes the slice.
    // Only immediates are written, which need no write barrier, and UNDEF, which the GC skips. An Array that is
    // returned has no UNDEF left.
    let out = unsafe {
        let body = rb_sys::stable_api::get_default().rarray_const_ptr(raw).cast_mut();
        std::slice::from_raw_parts_mut(body, len)
    };
    let pieces = out.chunks_mut(PIECE).enumerate().collect();
    let rest = workers::map(len, pieces, |(piece, out): (usize, &mut [Raw])| {
        fill(piece * PIECE, out)?;
        let mut rest = Vec::new();
        for (at, value) in out.iter_mut().enumerate().filter(|(_, value)| **value == heap::UNDEF) {
            room::push(&mut rest, piece * PIECE + at);
            *value = heap::NIL;
        }
        Ok(rest)
    });
    let rest = rest.into_iter().collect::<Result<Vec<_>, E>>().map_err(Unfilled::Failed)?;
    Ok((array, room::concat(&rest)))
}

/// A Hash of keys and values, which alternate in a list of the caller's own.
///
/// # Errors
/// What `hash` and `eql?` of keys raise; NoMemoryError.
pub fn hash(ruby: &Ruby, list: RArray) -> Result<RHash, Error> {
    let hash = ruby.hash_new();
    insert(hash, list)?;
    Ok(hash)
}

/// `Ikra.__put_all(hash, keys, values)`: gives a Hash these keys and values, as `Hash#[]=` does. The caller has made
/// sure that it is not frozen, and that no loop goes over it.
///
/// # Errors
/// What `hash` and `eql?` of keys raise; ArgumentError where there are fewer values; NoMemoryError.
pub fn put_all(ruby: &Ruby, hash: RHash, keys: RArray, values: RArray) -> Result<RHash, Error> {
    let (from, to) = (heap::elements(keys.as_raw()), heap::elements(values.as_raw()));
    if from.len() != to.len() {
        return Err(Error::new(ruby.exception_arg_error(), "not a value for each key"));
    }
    let both = ruby.ary_new_capa(2 * from.len());
    for (key, value) in from.iter().zip(to) {
        both.cat(&[reflect::value(*key), reflect::value(*value)])?;
    }
    insert(hash, both)?;
    std::hint::black_box((keys, values));
    Ok(hash)
}

/// With fewer keys and values, the body of an Array may be in memory that a GC moves.
const MIN_BULK: usize = 1 << 13;

/// Puts keys and values, which alternate in a list of the caller's own, into a Hash that is not frozen.
fn insert(hash: RHash, list: RArray) -> Result<(), Error> {
    let count = heap::elements(list.as_raw()).len();
    if count < MIN_BULK {
        for at in (0..count / 2 * 2).step_by(2) {
            let pair = &heap::elements(list.as_raw())[at..at + 2];
            hash.aset(reflect::value(pair[0]), reflect::value(pair[1]))?;
        }
        return Ok(());
    }
    let elements = heap::elements(list.as_raw());
    // SAFETY: both are live, because they are on the machine stack until the end. No other code knows the list, so its
    // body stays as it is, and it is too long for the memory that a GC moves. The function reads that body and changes
    // the Hash, which is not frozen. `protect` catches what it raises. No frame on the way has anything to drop.
    protect(|| unsafe {
        rb_sys::rb_hash_bulk_insert(elements.len() as std::os::raw::c_long, elements.as_ptr(), hash.as_raw());
        heap::NIL
    })?;
    std::hint::black_box(list);
    Ok(())
}

/// A String of such bytes, in no encoding.
///
/// # Errors
/// NoMemoryError.
pub fn string(bytes: &[u8]) -> Result<RString, Error> {
    room::check(bytes.len());
    // SAFETY: a new String of so many undefined bytes. `protect` catches NoMemoryError.
    let raw = protect(|| unsafe { rb_sys::rb_str_new(std::ptr::null(), bytes.len() as std::os::raw::c_long) })?;
    // SAFETY: the String that was just made, which the machine stack keeps alive from here on.
    let string = unsafe { Value::from_raw(raw) };
    // SAFETY: a live String of so many bytes, which stay where they are until Ruby runs again. No other code knows it.
    // The bytes need not be initialised to be written, and initialised bytes may be viewed as ones that need not be.
    let (out, from) = unsafe {
        let body = rb_sys::stable_api::get_default().rstring_ptr(raw).cast_mut().cast::<MaybeUninit<u8>>();
        let from = std::slice::from_raw_parts(bytes.as_ptr().cast::<MaybeUninit<u8>>(), bytes.len());
        (std::slice::from_raw_parts_mut(body, bytes.len()), from)
    };
    large_pages(out.as_ptr() as usize, out.len());
    copy_by_threads(out, from);
    RString::from_value(string).ok_or_else(|| Error::new(Ruby::get_with(string).exception_fatal(), "no String"))
}
