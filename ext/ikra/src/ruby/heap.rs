//! Reads, and in one case writes, Ruby's heap directly.
//!
//! Here: the class word, the flags, the ivar slots, the members of a Struct, the array body and a String's bytes behind
//! a VALUE, and the bits of immediate values.
//! Not here: what they mean to a program ([`crate::world::observe`], [`crate::marshal::pack`]).
//!
//! # Safety
//!
//! Every function here that takes a VALUE assumes three things of its caller, and keeps one promise.
//!
//! * **A live holder.** The VALUE was read, in the same stretch of work, from something that keeps it alive. That is an
//!   argument on the machine stack, a slot of a live object, or a table that [`crate::ruby::holder::Holder`] marks (and
//!   so pins).
//! * **The GVL is held**, by this thread or, for workers, by the Ruby thread that waits for them. No Ruby code runs
//!   meanwhile, so nothing is written to the objects that are read.
//! * **No allocation, no GC.** Nothing allocates in Ruby's heap between the first read of a stretch and the last use of
//!   its result. So no object is freed or moved. Work that must allocate is deferred to the end of the stretch.
//! * The promise: no function here allocates in Ruby's heap, raises, or runs Ruby code, except [`set_field`], which
//!   says so.
//!
//! **Workers** ([`crate::ruby::workers`]) call only [`see`], [`class_word`], [`is_frozen`], [`elements`], [`bytes`],
//! [`encoding`], [`prefetch`], [`needs_no_barrier`] and the functions that are documented as for workers. These read
//! memory, or call functions of Ruby that only compute (`rb_float_value`, `rb_integer_pack`) or look something up
//! (`rb_enc_get_index`).
//!
//! This file assumes the layout of four structures of Ruby:
//!
//! * `RBasic`: flags and class.
//! * `RFloat`: read through `rb_float_value`.
//! * `RArray` of 3.1 to 3.4. In other versions it is read through rb-sys's stable API, whose functions are calls.
//! * `RObject` of 3.1 to 3.4. With flag `FL_USER1`, ivars are embedded at offset 16; else they are behind a pointer.
//!   From 3.2 on, the shape number is in the upper half of the flags.
//!
//! It does not assume which slot holds which ivar. [`slots_of`] finds out: it pairs what `rb_ivar_foreach` yields with
//! the slots of one object, value by value. In any other Ruby, and for any object that does not pair, ivars are read
//! through `rb_ivar_get`.
//!
//! Of `RStruct` (3.1 to 3.3) it assumes that members are embedded at offset 16 where the length bits of the flags are
//! not 0. Else they are behind a pointer after a length. The memory of one object is compared with what
//! `rb_struct_aref` gives. Where they differ, all objects of the class are read through that function.
#![allow(unsafe_code, reason = "this file is the one that reads Ruby's heap; see its safety chapter")]

use crate::ruby::hash_table::{self, KeyReader};
use crate::ruby::identity::RawMap;
use ikra_core::memory::ahead;
use ikra_core::types::Encoding;
use once_cell::sync::OnceCell;
use rb_sys::{ID, VALUE, ruby_value_type as T};
use smallvec::SmallVec;
use std::os::raw::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A Ruby VALUE as a plain word, without magnus's type.
pub type Raw = VALUE;

pub const NIL: Raw = rb_sys::Qnil as Raw;
pub const TRUE: Raw = rb_sys::Qtrue as Raw;
pub const FALSE: Raw = rb_sys::Qfalse as Raw;

/// What this process knows of the heap.
struct Heap {
    /// The class word of typed arrays. 0 until their class is defined.
    buffer_class: AtomicUsize,
    /// What [`no_hashes`] gives.
    no_hashes: OnceCell<Arc<Hashes>>,
}

static HEAP: Heap = Heap { buffer_class: AtomicUsize::new(0), no_hashes: OnceCell::new() };

/// Notes the class whose objects are [`Seen::Buffer`].
pub fn set_buffer_class(class: Raw) {
    HEAP.buffer_class.store(class as usize, Ordering::Relaxed);
}

/// A word that is no value. No slot that Ruby shows holds it.
pub const UNDEF: Raw = rb_sys::Qundef as Raw;

const FROZEN: usize = 1 << 11;
const TYPE_MASK: usize = 0x1f;
const ROBJECT_EMBED: usize = 1 << 13;
const RARRAY_EMBED: usize = 1 << 13;
const RSTRING_NOEMBED: usize = rb_sys::ruby_rstring_flags::RSTRING_NOEMBED as usize;
const EMBEDDED_LEN: usize = rb_sys::ruby_rarray_flags::RARRAY_EMBED_LEN_MASK as usize;
const EMBEDDED_LEN_SHIFT: usize = rb_sys::ruby_rarray_consts::RARRAY_EMBED_LEN_SHIFT as usize;

/// An object that has all of these bits is of the old generation.
const PROMOTED: usize = rb_sys::ruby_fl_type::RUBY_FL_PROMOTED as usize;

const VERSION: (u32, u32) = (rb_sys::RUBY_API_VERSION_MAJOR, rb_sys::RUBY_API_VERSION_MINOR);
/// Whether objects have shapes, instead of an index table per class.
const SHAPES: bool = VERSION.0 == 3 && VERSION.1 >= 2;
/// Whether this Ruby's `RObject` has a layout that this file knows.
const KNOWN_OBJECTS: bool = VERSION.0 == 3 && VERSION.1 >= 1 && VERSION.1 <= 4;
/// The same for `RArray`: elements embedded at offset 16, or else the length there, and the pointer to them two words
/// on.
const KNOWN_ARRAYS: bool = KNOWN_OBJECTS;
/// Whether this file knows this Ruby's write barrier. It records an old object to which a value is assigned that is not
/// old. While the GC is marking, it records any.
const KNOWN_PROMOTION: bool = VERSION.0 == 3 && VERSION.1 >= 1 && VERSION.1 <= 3;
/// The shape of objects whose ivars are in a hash table.
const COMPLEX_SHAPE: usize = if VERSION.1 == 2 { 11 } else { 6 };

const _: () = assert!(size_of::<Raw>() == 8, "Ikra needs a 64-bit Ruby");

/// The kind of a VALUE, as its own word and its flags show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Seen {
    Nil,
    False,
    True,
    Int(i64),
    Float(f64),
    /// Static or dynamic.
    Symbol,
    Array,
    /// A String of any class and encoding.
    Str,
    /// A Hash of any class.
    Hash,
    /// An ordinary object, T_OBJECT.
    Object,
    /// A class or module.
    Module,
    /// A Bignum beyond 64 bits.
    BigInt,
    /// A Struct, a Data, or a Range.
    Struct,
    /// A Complex or a Rational.
    Number,
    /// An `Ikra::Buffer`, freed or not.
    Buffer,
    Other,
}

/// Whether a value is immediate, and so no address. Addresses are multiples of 8 beyond false and nil, which are 0 and
/// 8 or less. One comparison tests both: rotated by three bits, such a multiple is from 2 on, and the low bits of
/// anything else end up at the top.
#[inline]
pub fn is_immediate(v: Raw) -> bool {
    v.rotate_right(3).wrapping_sub(2) >= (1 << 61) - 2
}

#[inline]
fn flags(v: Raw) -> usize {
    debug_assert!(!is_immediate(v));
    // SAFETY: `v` is a live heap object (chapter); its first word is its flags.
    unsafe { *(v as *const usize) }
}

/// The class word: the singleton class where there is one. Not for immediate values.
#[inline]
pub fn class_word(v: Raw) -> Raw {
    // SAFETY: `v` is a live heap object (chapter); its second word is its class.
    unsafe { *(v as *const Raw).add(1) }
}

#[inline]
pub fn is_frozen(v: Raw) -> bool {
    is_immediate(v) || flags(v) & FROZEN != 0
}

/// The distance, in objects, at which memory is prefetched.
pub const AHEAD: usize = 16;

/// Prefetches an object.
#[inline]
pub fn prefetch(v: Raw) {
    ahead::to_read(v as *const Raw);
    // The last word of the object may be in the next line.
    ahead::to_read((v as *const Raw).wrapping_add(4));
}

/// Whether an object, Array or String has a body outside of its slot. For other values it is false. Serves only as a
/// hint.
#[inline]
pub fn has_body(v: Raw) -> bool {
    let flags = flags(v);
    // In a Ruby that this file does not know, the hint is useless, but harmless.
    match flags & TYPE_MASK {
        kind if kind == T::RUBY_T_OBJECT as usize => flags & ROBJECT_EMBED == 0,
        kind if kind == T::RUBY_T_ARRAY as usize => flags & RARRAY_EMBED == 0,
        kind if kind == T::RUBY_T_STRING as usize => flags & RSTRING_NOEMBED != 0,
        kind if kind == T::RUBY_T_HASH as usize => true,
        _ => false,
    }
}

/// Prefetches the body of an object, Array or String, whose own memory should be in the cache already.
#[inline]
pub fn prefetch_body(v: Raw) {
    if has_body(v) {
        let flags = flags(v);
        if flags & TYPE_MASK == T::RUBY_T_HASH as usize {
            return hash_table::prefetch_table(v);
        }
        let word = if SHAPES && flags & TYPE_MASK == T::RUBY_T_OBJECT as usize { 2 } else { 3 };
        let word = if flags & TYPE_MASK == T::RUBY_T_ARRAY as usize { 4 } else { word };
        // SAFETY: `v` is a live heap object (chapter), whose five words may be read.
        prefetch(unsafe { *(v as *const Raw).add(word) });
    }
}

/// Prefetches objects, Arrays and Strings that are read next, and their bodies.
#[inline]
pub fn prefetch_all(objects: impl Iterator<Item = Raw> + Clone) {
    // By now the first of them are in the cache.
    objects.clone().for_each(prefetch);
    objects.for_each(prefetch_body);
}

/// Whether `v` is an ordinary object.
#[inline]
pub fn is_object(v: Raw) -> bool {
    !is_immediate(v) && flags(v) & TYPE_MASK == T::RUBY_T_OBJECT as usize
}

/// Whether `v` is a Hash.
#[inline]
pub fn is_hash(v: Raw) -> bool {
    !is_immediate(v) && flags(v) & TYPE_MASK == T::RUBY_T_HASH as usize
}

/// Whether `v` is a Struct, a Data or a Range.
#[inline]
pub fn is_struct(v: Raw) -> bool {
    !is_immediate(v) && flags(v) & TYPE_MASK == T::RUBY_T_STRUCT as usize
}

/// A kind of object, tested by the first two words of a value.
#[derive(Clone, Copy)]
pub struct What {
    class: Raw,
    looked_at: usize,
    flags: usize,
}

impl What {
    /// Objects of the same class word as an ordinary object, Struct or Hash. None where it is none of them.
    pub fn like(object: Raw, not_frozen: bool) -> Option<Self> {
        let kinds = [T::RUBY_T_OBJECT, T::RUBY_T_STRUCT, T::RUBY_T_HASH];
        let kind = kinds.into_iter().find(|kind| flags(object) & TYPE_MASK == *kind as usize)?;
        Some(Self::of(class_word(object), kind, not_frozen))
    }
    /// Arrays of Ruby's own class, without singleton methods.
    pub fn plain_array(not_frozen: bool) -> Self {
        Self::of(array_class(), T::RUBY_T_ARRAY, not_frozen)
    }
    fn of(class: Raw, kind: T, not_frozen: bool) -> Self {
        Self { class, looked_at: TYPE_MASK | if not_frozen { FROZEN } else { 0 }, flags: kind as usize }
    }
    /// Whether a value, which is no immediate, is of this kind.
    #[inline]
    pub fn is(self, v: Raw) -> bool {
        flags(v) & self.looked_at == self.flags && class_word(v) == self.class
    }
}

#[inline]
pub fn see(v: Raw) -> Seen {
    if is_fixnum(v) {
        return Seen::Int(fixnum(v));
    }
    if is_flonum(v) {
        return Seen::Float(flonum(v));
    }
    if is_immediate(v) {
        return match v {
            NIL => Seen::Nil,
            FALSE => Seen::False,
            TRUE => Seen::True,
            _ if v & 0xff == 0x0c => Seen::Symbol,
            _ => Seen::Other,
        };
    }
    let kind = flags(v) & TYPE_MASK;
    match kind {
        k if k == T::RUBY_T_OBJECT as usize => Seen::Object,
        k if k == T::RUBY_T_FLOAT as usize => {
            // SAFETY: `v` is a live Float; the function only reads its double.
            Seen::Float(unsafe { rb_sys::rb_float_value(v) })
        }
        k if k == T::RUBY_T_ARRAY as usize => Seen::Array,
        k if k == T::RUBY_T_STRING as usize => Seen::Str,
        k if k == T::RUBY_T_HASH as usize => Seen::Hash,
        k if k == T::RUBY_T_SYMBOL as usize => Seen::Symbol,
        k if k == T::RUBY_T_BIGNUM as usize => bignum(v).map_or(Seen::BigInt, Seen::Int),
        k if k == T::RUBY_T_CLASS as usize || k == T::RUBY_T_MODULE as usize => Seen::Module,
        k if k == T::RUBY_T_STRUCT as usize => Seen::Struct,
        k if k == T::RUBY_T_COMPLEX as usize || k == T::RUBY_T_RATIONAL as usize => Seen::Number,
        k if k == T::RUBY_T_DATA as usize && class_word(v) == HEAP.buffer_class.load(Ordering::Relaxed) as Raw => {
            Seen::Buffer
        }
        _ => Seen::Other,
    }
}

/// Whether a value is a flonum: a Float that is immediate.
#[inline]
pub fn is_flonum(v: Raw) -> bool {
    v & 3 == 2
}

/// The Float in a flonum's bits, as Ruby's `rb_float_flonum_value`.
#[inline]
pub fn flonum(v: Raw) -> f64 {
    if v == 0x8000_0000_0000_0002 {
        return 0.0;
    }
    let b63 = v >> 63;
    f64::from_bits((2u64.wrapping_sub(b63) | (v & !3)).rotate_right(3))
}

/// The flonum of a Float. None where only an object on the heap can hold it.
#[inline]
pub fn flonum_of(f: f64) -> Option<Raw> {
    let bits = f.to_bits();
    if bits == 0 {
        return Some(0x8000_0000_0000_0002);
    }
    let top = (bits >> 60) & 7;
    (bits != 0x3000_0000_0000_0000 && (top == 3 || top == 4)).then(|| (bits.rotate_left(3) & !3) | 2)
}

/// Whether a value is a fixnum: an Integer that is immediate.
#[inline]
pub fn is_fixnum(v: Raw) -> bool {
    v & 1 == 1
}

/// The Integer in a fixnum's bits.
#[inline]
pub fn fixnum(v: Raw) -> i64 {
    (v as i64) >> 1
}

/// The fixnum of an Integer. None where only a Bignum can hold it.
#[inline]
pub fn fixnum_of(i: i64) -> Option<Raw> {
    (-(1 << 62)..1 << 62).contains(&i).then_some(((i << 1) | 1) as Raw)
}

/// The value of a Bignum, if it fits 64 bits.
fn bignum(v: Raw) -> Option<i64> {
    const NATIVE_WORD: c_int = 0x40; // INTEGER_PACK_NATIVE_BYTE_ORDER
    const LEAST_FIRST: c_int = 0x02; // INTEGER_PACK_LSWORD_FIRST
    const TWO_COMPLEMENT: c_int = 0x80; // INTEGER_PACK_2COMP
    let mut words = [0i64; 2];
    // SAFETY: `v` is a live Bignum. The function writes exactly two words, and returns ±2 where that is not enough.
    let sign = unsafe {
        rb_sys::rb_integer_pack(v, words.as_mut_ptr().cast(), 2, 8, 0, LEAST_FIRST | NATIVE_WORD | TWO_COMPLEMENT)
    };
    (sign.abs() < 2 && words[1] == words[0] >> 63).then_some(words[0])
}

/// Whether an Array is of Ruby's own class, without singleton methods.
#[inline]
pub fn is_of_array(array: Raw) -> bool {
    class_word(array) == array_class()
}

#[inline]
fn array_class() -> Raw {
    // SAFETY: Ruby sets it before it loads any library, and never again.
    unsafe { rb_sys::rb_cArray }
}

/// Whether `v`, which is no immediate, is an Array of Ruby's own class, without singleton methods.
#[inline]
pub fn is_plain_array(v: Raw) -> bool {
    flags(v) & TYPE_MASK == T::RUBY_T_ARRAY as usize && is_of_array(v)
}

/// The elements of an Array. They must not be used after the stretch.
///
/// # Panics
/// Where the VALUE is no Array.
#[inline]
pub fn elements<'a>(array: Raw) -> &'a [Raw] {
    let flags = flags(array);
    assert!(flags & TYPE_MASK == T::RUBY_T_ARRAY as usize, "an Array");
    // SAFETY: a live Array (chapter), whose layout is known, or which rb-sys reads. Its body stays where it is as long
    // as no Ruby code runs.
    unsafe {
        let words = array as *const usize;
        let (at, len) = if !KNOWN_ARRAYS {
            let api = rb_sys::stable_api::get_default();
            let len = rb_sys::StableApiDefinition::rarray_len(api, array) as usize;
            (rb_sys::StableApiDefinition::rarray_const_ptr(api, array), len)
        } else if flags & RARRAY_EMBED == 0 {
            (*words.add(4) as *const Raw, *words.add(2))
        } else {
            (words.add(2).cast(), (flags & EMBEDDED_LEN) >> EMBEDDED_LEN_SHIFT)
        };
        if len == 0 { &[] } else { std::slice::from_raw_parts(at, len) }
    }
}

/// Whether `v`, which is no immediate, is a String of this class, without singleton methods. For workers.
#[inline]
pub fn is_string(v: Raw, class: Raw) -> bool {
    flags(v) & TYPE_MASK == T::RUBY_T_STRING as usize && class_word(v) == class
}

/// The bytes of a String. They must not be used after the stretch.
#[inline]
pub fn bytes<'a>(string: Raw) -> &'a [u8] {
    let api = rb_sys::stable_api::get_default();
    // SAFETY: `string` is a live String (chapter). Its bytes stay where they are as long as no Ruby code runs.
    unsafe {
        let len = rb_sys::StableApiDefinition::rstring_len(api, string);
        if len <= 0 {
            return &[];
        }
        std::slice::from_raw_parts(rb_sys::StableApiDefinition::rstring_ptr(api, string).cast(), len as usize)
    }
}

/// The encoding of a String. None where kernels cannot hold it.
#[inline]
pub fn encoding(string: Raw) -> Option<Encoding> {
    const SEVEN_BITS: usize = rb_sys::ruby_coderange_type::RUBY_ENC_CODERANGE_7BIT as usize;
    const KNOWN: usize = SEVEN_BITS | rb_sys::ruby_coderange_type::RUBY_ENC_CODERANGE_VALID as usize;
    // These are the numbers of Ruby's first three encodings (encindex.h), which are the same in every Ruby.
    // SAFETY: `string` is a live String. The function reads its encoding's number.
    match unsafe { rb_sys::StableApiDefinition::encoding_get(rb_sys::stable_api::get_default(), string) } {
        0 => Some(Encoding::Binary),
        // Ruby mostly knows, so that the bytes need not be read.
        1 => Some(match flags(string) & KNOWN {
            0 => Encoding::of_utf8(bytes(string)),
            SEVEN_BITS => Encoding::Ascii,
            _ => Encoding::Utf8,
        }),
        2 => Some(Encoding::UsAscii),
        _ => None,
    }
}

/// The number of the encoding of a String of Ruby's own class and without singleton methods. None for other values. For
/// workers.
#[inline]
pub fn plain_encoding(v: Raw) -> Option<c_int> {
    let is_string = !is_immediate(v) && flags(v) & TYPE_MASK == T::RUBY_T_STRING as usize;
    // SAFETY: Ruby sets the class before it loads any library. `v` is a live String, and the function reads its
    // encoding's number.
    unsafe {
        let is_plain = is_string && class_word(v) == rb_sys::rb_cString;
        is_plain.then(|| rb_sys::StableApiDefinition::encoding_get(rb_sys::stable_api::get_default(), v))
    }
}

/// How the ivars of one object are held.
struct Body {
    at: *const Raw,
    len: usize,
}

/// Where an ordinary object keeps its ivars. Objects with shapes have `count` slots, which the caller knows from the
/// shape.
#[inline]
fn body(object: Raw, count: usize) -> Body {
    // SAFETY: `object` is a live T_OBJECT, and its RObject has a known layout (`KNOWN_OBJECTS`).
    unsafe {
        let words = object as *const usize;
        if *words & ROBJECT_EMBED != 0 {
            return Body { at: words.add(2).cast(), len: if SHAPES { count } else { 3 } };
        }
        if SHAPES {
            Body { at: *words.add(2) as *const Raw, len: count }
        } else {
            Body { at: *words.add(3) as *const Raw, len: *words.add(2) as u32 as usize }
        }
    }
}

/// What determines where an object keeps an ivar: its shape, or (3.1) its class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Form(pub u64);

/// The form of an ordinary object of class `class`.
#[inline]
pub fn form(object: Raw, class: Raw) -> Form {
    if SHAPES { Form(flags(object) as u64 >> 32) } else { Form(class) }
}

/// Where objects of one form keep one ivar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    At(u32),
    /// Objects of this form do not have the ivar (shapes only).
    Absent,
    /// Only `rb_ivar_get` finds it.
    Unknown,
}

/// Reads an ivar from its slot. None where the slot is not known. An ivar that was never assigned is nil, as in Ruby.
#[inline]
pub fn slot_value(object: Raw, slot: Slot) -> Option<Raw> {
    match slot {
        Slot::At(index) => {
            let index = index as usize;
            let body = body(object, index + 1);
            if index >= body.len {
                return Some(NIL);
            }
            // SAFETY: `index` is within the object's slots: by `len` on 3.1, by the object's shape from 3.2.
            let value = unsafe { *body.at.add(index) };
            Some(if value == UNDEF { NIL } else { value })
        }
        Slot::Absent => Some(NIL),
        Slot::Unknown => None,
    }
}

/// Runs the GC's write barrier for a value that was assigned to an object, as Ruby does after each store. Only for the
/// Ruby thread. Nothing may allocate between the store and this call.
#[inline]
pub fn barrier(object: Raw, value: Raw) {
    if !is_immediate(value) {
        // SAFETY: both are live (chapter), and this thread holds the GVL.
        unsafe { rb_sys::rb_gc_writebarrier(object, value) }
    }
}

/// Whether the GC is in an incremental marking phase, during which programs run. Then every assignment needs its
/// barrier. Only for the Ruby thread.
pub fn is_marking() -> bool {
    if !KNOWN_PROMOTION {
        return true;
    }
    // SAFETY: a name that outlives the call, and a Symbol. For a Symbol the function only looks up, and allocates
    // nothing.
    unsafe {
        let state = rb_sys::rb_id2sym(rb_sys::rb_intern(c"state".as_ptr()));
        let now = rb_sys::rb_gc_latest_gc_info(state);
        let marking = rb_sys::rb_id2sym(rb_sys::rb_intern(c"marking".as_ptr()));
        now == marking
    }
}

/// Whether [`barrier`] would do nothing for a value, whatever it was assigned to, while the GC is not marking. That
/// holds for immediates, and for objects of the old generation.
#[inline]
pub fn needs_no_barrier(value: Raw) -> bool {
    is_immediate(value) || KNOWN_PROMOTION && flags(value) & PROMOTED == PROMOTED
}

/// Assigns an ivar through its slot. False where only `rb_ivar_set` can. The object is not frozen. The caller calls
/// [`barrier`] afterwards.
#[inline]
fn put_slot(object: Raw, slot: Slot, value: Raw) -> bool {
    let Slot::At(index) = slot else { return false };
    let index = index as usize;
    let body = body(object, index + 1);
    if index >= body.len {
        return false;
    }
    // SAFETY: within the object's slots, as in `slot_value`. Ruby itself stores in the same way.
    unsafe {
        let at = body.at.add(index).cast_mut();
        if *at == UNDEF {
            return false;
        }
        *at = value;
    }
    true
}

/// Reads an ivar of any object by Ruby's own function, which neither allocates nor raises.
pub fn ivar(object: Raw, ivar: ID) -> Raw {
    // SAFETY: `object` is live (chapter). The function gives nil for an ivar that it lacks.
    unsafe { rb_sys::rb_attr_get(object, ivar) }
}

/// All ivars of an object with their values, in the order in which Ruby lists them.
pub fn ivars(object: Raw) -> SmallVec<[(ID, Raw); 8]> {
    unsafe extern "C" fn collect(id: ID, value: Raw, out: rb_sys::st_data_t) -> c_int {
        // SAFETY: `out` is the vector below, which outlives the call.
        unsafe { (*(out as *mut SmallVec<[(ID, Raw); 8]>)).push((id, value)) };
        0
    }
    let mut pairs = SmallVec::new();
    // SAFETY: `object` is live. The callback allocates nothing in Ruby's heap and changes no object.
    unsafe { rb_sys::rb_ivar_foreach(object, Some(collect), (&raw mut pairs) as rb_sys::st_data_t) };
    pairs
}

/// All ivars of an object with their slots, verified. None where the slots are not known.
pub fn slots_of(object: Raw) -> Option<Vec<(ID, u32)>> {
    if !KNOWN_OBJECTS || !is_object(object) || (SHAPES && flags(object) >> 32 == COMPLEX_SHAPE) {
        return None;
    }
    let pairs = ivars(object);
    let mut body = body(object, pairs.len());
    if SHAPES && flags(object) & ROBJECT_EMBED == 0 {
        // SAFETY: `at` is the start of a block from malloc, or null, for which the function gives 0.
        let room = unsafe { libc::malloc_usable_size(body.at.cast_mut().cast()) };
        body.len = body.len.min(room / size_of::<Raw>());
    }
    let mut slots = Vec::with_capacity(pairs.len());
    let mut next = 0;
    for (id, value) in pairs {
        let found = loop {
            if next >= body.len {
                return None;
            }
            // SAFETY: `next` is within the object's slots.
            let held = unsafe { *body.at.add(next) };
            next += 1;
            if held != UNDEF {
                break held;
            }
        };
        if found != value {
            return None;
        }
        slots.push((id, next as u32 - 1));
    }
    Some(slots)
}

/// The slot of one ivar in objects of the form of `example`.
pub fn find_slot(example: Raw, ivar: ID) -> Slot {
    match slots_of(example) {
        None => Slot::Unknown,
        Some(slots) => match slots.iter().find(|(id, _)| *id == ivar) {
            Some((_, index)) => Slot::At(*index),
            // A shape determines all ivars of its objects. On 3.1 another object of the class may have the ivar.
            None => {
                if SHAPES {
                    Slot::Absent
                } else {
                    Slot::Unknown
                }
            }
        },
    }
}

/// The bits of a Struct's length if its members are embedded (struct.h of 3.1 and 3.2, and of 3.3).
const RSTRUCT_EMBED: usize = if VERSION.1 >= 3 { 0x7f << 13 } else { 3 << 13 };
const KNOWN_STRUCTS: bool = VERSION.0 == 3 && VERSION.1 >= 1 && VERSION.1 <= 3;

/// Where the members of a Struct are, and how many.
#[inline]
fn members(object: Raw) -> Body {
    // SAFETY: `object` is a live T_STRUCT, and its RStruct has a known layout (`KNOWN_STRUCTS`).
    unsafe {
        let words = object as *const usize;
        match (*words & RSTRUCT_EMBED) >> 13 {
            0 => Body { at: *words.add(3) as *const Raw, len: *words.add(2) },
            len => Body { at: words.add(2).cast(), len },
        }
    }
}

/// Reads a member of a Struct by Ruby's own function, which neither allocates nor raises for an existing member.
fn member_slowly(object: Raw, index: u32) -> Raw {
    // SAFETY: `object` is a live T_STRUCT with more than `index` members, as its class says.
    unsafe { rb_sys::rb_struct_aref(object, ((index as usize) << 1 | 1) as Raw) }
}

/// Whether a Struct's memory has the members that Ruby's functions give.
fn is_as_known(object: Raw) -> bool {
    if !KNOWN_STRUCTS {
        return false;
    }
    // SAFETY: `object` is a live T_STRUCT. The function reads its length.
    let size = match see(unsafe { rb_sys::rb_struct_size(object) }) {
        Seen::Int(size) => size as usize,
        _ => return false,
    };
    let body = members(object);
    // SAFETY: within the members, of which there are `len`.
    body.len == size && (0..size).all(|i| unsafe { *body.at.add(i) } == member_slowly(object, i as u32))
}

/// A sample of many objects. It mostly has the forms of all of them.
pub fn sample(objects: &[Raw]) -> Vec<Raw> {
    objects.iter().copied().step_by(crate::ruby::workers::PIECE).collect()
}

/// Reads and writes one field of the objects of a class.
#[derive(Clone, Debug)]
pub enum FieldReader {
    Ivar(IvarReader),
    Member(MemberReader),
    /// A part of Hashes.
    Part(usize, Arc<Hashes>),
    /// What Hashes have at a constant key.
    Key(KeyReader),
    Own(usize),
}

/// Hashes, the arrays in which they are laid out, and their default values.
pub type Hashes = RawMap<[Raw; 4]>;

/// No Hashes, as nearly always.
pub fn no_hashes() -> Arc<Hashes> {
    HEAP.no_hashes.get_or_init(Arc::default).clone()
}

/// A field of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    Ivar(ID),
    /// A member of a Struct, by its position.
    Member(u32),
    /// A part of a Hash, by its position among [`ikra_core::world::hashes::PARTS`].
    Part(usize),
    /// What a Hash has at a constant key.
    Key(KeyReader),
    /// A part of a Range, a Complex or a Rational, by its position among [`ikra_core::world::values::parts`]. Of a Hash
    /// that a kernel made, by its position among [`ikra_core::world::hashes::MADE_PARTS`].
    Own(usize),
}

impl FieldReader {
    /// A reader of a field. `hashes` are the Hashes that may occur.
    pub fn new(field: Field, hashes: &Arc<Hashes>) -> Self {
        match field {
            Field::Part(part) => FieldReader::Part(part, hashes.clone()),
            Field::Key(reader) => FieldReader::Key(reader),
            Field::Own(part) => FieldReader::Own(part),
            Field::Ivar(id) => FieldReader::Ivar(IvarReader::new(id)),
            Field::Member(index) => FieldReader::Member(MemberReader { index, as_known: None }),
        }
    }
    /// The field of an object of class `class` (its class word). A field that was never assigned is nil.
    #[inline]
    pub fn get(&mut self, object: Raw, class: Raw) -> Raw {
        match self {
            FieldReader::Ivar(reader) => reader.get(object, class),
            FieldReader::Member(reader) => reader.get(object),
            FieldReader::Part(part, hashes) => hashes.get(&object).map_or(NIL, |parts| parts[*part]),
            FieldReader::Key(reader) => reader.get(object),
            FieldReader::Own(part) => own_part(object, *part),
        }
    }
    /// Assigns the field in memory. False where only [`set_field`] can. The object is not frozen.
    #[inline]
    pub fn set(&mut self, object: Raw, class: Raw, value: Raw) -> bool {
        let stored = self.put(object, class, value);
        if stored {
            barrier(object, value);
        }
        stored
    }
    /// Learns the forms of these objects, for workers.
    pub fn learn(&mut self, objects: &[Raw], class: Raw) {
        for object in objects {
            self.get(*object, class);
        }
    }
    /// As [`FieldReader::get`], for a worker, which learns no new forms. None where only [`FieldReader::get`] can read
    /// the field.
    #[inline]
    pub fn peek(&self, object: Raw, class: Raw) -> Option<Raw> {
        match self {
            FieldReader::Ivar(reader) => slot_value(object, reader.known(form(object, class))?),
            // SAFETY: a member of a live Struct.
            FieldReader::Member(reader) => reader.known(object).map(|at| unsafe { *at }),
            FieldReader::Part(part, hashes) => Some(hashes.get(&object).map_or(NIL, |parts| parts[*part])),
            FieldReader::Key(reader) => reader.peek(object),
            FieldReader::Own(_) => None,
        }
    }
    /// The fields of many objects of a class, read as by [`FieldReader::get`].
    pub fn get_all(&mut self, objects: &[Raw], class: Raw, values: &mut [Raw]) {
        if self.peek_all(objects, class, values) {
            return;
        }
        for (object, value) in objects.iter().zip(values) {
            *value = self.get(*object, class);
        }
    }
    /// The same for a worker. False where only [`FieldReader::get`] can read one of them. The kind of field is tested
    /// once for all of them.
    #[inline]
    pub fn peek_all(&self, objects: &[Raw], class: Raw, values: &mut [Raw]) -> bool {
        if let FieldReader::Ivar(reader) = self {
            return reader.peek_all(objects, class, values);
        }
        objects.iter().zip(values).all(|(object, value)| {
            self.peek(*object, class).is_some_and(|read| {
                *value = read;
                true
            })
        })
    }
    /// Whether a worker can read all of these.
    pub fn knows_all(&self, objects: &[Raw], class: Raw) -> bool {
        match self {
            FieldReader::Ivar(reader) => {
                let is_known = |slot| slot != Slot::Unknown;
                objects.iter().all(|object| reader.known(form(*object, class)).is_some_and(is_known))
            }
            _ => objects.iter().all(|object| self.peek(*object, class).is_some()),
        }
    }
    /// As [`FieldReader::set`], for a worker, with the known forms. The Ruby thread that waits for the worker calls
    /// [`barrier`] before anything allocates.
    #[inline]
    pub fn put(&self, object: Raw, class: Raw, value: Raw) -> bool {
        match self {
            FieldReader::Ivar(reader) => {
                reader.known(form(object, class)).is_some_and(|slot| put_slot(object, slot, value))
            }
            FieldReader::Member(reader) => match reader.known(object) {
                // SAFETY: a member of a live Struct that is not frozen. No other thread reads or writes it meanwhile.
                Some(at) => unsafe {
                    *at = value;
                    true
                },
                None => false,
            },
            FieldReader::Part(..) | FieldReader::Key(_) | FieldReader::Own(_) => false,
        }
    }
}

/// A part of a Range, a Complex or a Rational. The caller knows the class.
fn own_part(object: Raw, part: usize) -> Raw {
    let kind = flags(object) & TYPE_MASK;
    // SAFETY: `object` is live. The type is tested before anything is read that only Complexes and Rationals have. Any
    // other object is a Range by its class, of which rb_range_values reads three members. None of the functions
    // allocates, raises or calls a method.
    unsafe {
        if kind == T::RUBY_T_COMPLEX as usize {
            [rb_sys::rb_complex_real, rb_sys::rb_complex_imag][part.min(1)](object)
        } else if kind == T::RUBY_T_RATIONAL as usize {
            [rb_sys::rb_rational_num, rb_sys::rb_rational_den][part.min(1)](object)
        } else {
            let (mut from, mut to, mut exclusive) = (NIL, NIL, 0);
            rb_sys::rb_range_values(object, &mut from, &mut to, &mut exclusive);
            [from, to, if exclusive != 0 { TRUE } else { FALSE }][part.min(2)]
        }
    }
}

/// Reads and writes the members at one position of objects of one class.
#[derive(Clone, Debug)]
pub struct MemberReader {
    index: u32,
    /// Whether the class's objects have the layout that this file knows. Tested with the first object.
    as_known: Option<bool>,
}

impl MemberReader {
    #[inline]
    fn get(&mut self, object: Raw) -> Raw {
        self.as_known.get_or_insert_with(|| is_as_known(object));
        match self.known(object) {
            // SAFETY: a member of a live Struct.
            Some(at) => unsafe { *at },
            None => member_slowly(object, self.index),
        }
    }
    /// The address of the member. None unless the class's objects have the layout that this file knows.
    #[inline]
    fn known(&self, object: Raw) -> Option<*mut Raw> {
        let body = if self.as_known? { members(object) } else { return None };
        // SAFETY: within the members.
        (body.len > self.index as usize).then(|| unsafe { body.at.add(self.index as usize).cast_mut() })
    }
}

/// Where objects of a few forms keep one ivar. The latest form comes first.
#[derive(Clone, Debug)]
pub struct IvarReader {
    pub ivar: ID,
    last: (Form, Slot),
    others: Vec<(Form, Slot)>,
}

impl IvarReader {
    pub fn new(ivar: ID) -> Self {
        Self { ivar, last: (Form(u64::MAX), Slot::Unknown), others: Vec::new() }
    }
    /// The ivar of an object of class `class` (its class word). An ivar that was never assigned is nil.
    #[inline]
    pub fn get(&mut self, object: Raw, class: Raw) -> Raw {
        let form = form(object, class);
        if self.last.0 == form
            && let Some(value) = slot_value(object, self.last.1)
        {
            return value;
        }
        self.get_slowly(object, form)
    }
    /// The slot in objects of a form, if it is known yet.
    #[inline]
    fn known(&self, form: Form) -> Option<Slot> {
        if self.last.0 == form {
            return Some(self.last.1);
        }
        self.others.iter().find(|(known, _)| *known == form).map(|(_, slot)| *slot)
    }
    /// The ivars of many objects. False where one of them has an unknown form.
    fn peek_all(&self, objects: &[Raw], class: Raw, values: &mut [Raw]) -> bool {
        let (last, at) = self.last;
        for (object, value) in objects.iter().zip(values) {
            let form = form(*object, class);
            let slot = if form == last { Some(at) } else { self.known(form) };
            let Some(read) = slot.and_then(|slot| slot_value(*object, slot)) else { return false };
            *value = read;
        }
        true
    }
    #[cold]
    fn get_slowly(&mut self, object: Raw, form: Form) -> Raw {
        if !is_object(object) {
            return ivar(object, self.ivar);
        }
        let known = self.others.iter().find(|(f, _)| *f == form).map(|(_, slot)| *slot);
        let slot = match known {
            Some(slot) => slot,
            None => {
                let slot = find_slot(object, self.ivar);
                if slot != Slot::Unknown || SHAPES {
                    self.others.push((form, slot));
                }
                slot
            }
        };
        self.last = (form, slot);
        slot_value(object, slot).unwrap_or_else(|| ivar(object, self.ivar))
    }
}

/// Assigns a field by Ruby's own function. It may allocate, and raises for a frozen object.
///
/// # Errors
/// What Ruby raises.
pub fn set_field(object: Raw, field: Field, value: Raw) -> Result<(), magnus::Error> {
    // SAFETY: `object` and `value` are live, and the object has the member. `protect` catches what Ruby raises.
    let assign = || unsafe {
        match field {
            Field::Ivar(ivar) => rb_sys::rb_ivar_set(object, ivar, value),
            Field::Member(index) => rb_sys::rb_struct_aset(object, ((index as usize) << 1 | 1) as Raw, value),
            Field::Part(_) | Field::Key(_) | Field::Own(_) => NIL,
        }
    };
    magnus::rb_sys::protect(assign).map(drop)
}
