//! Objects and arrays that a kernel made, as Ruby objects.
//!
//! Here: [`Made`], which gives each row that something refers to its Ruby object, once, and fills it. Not here: where
//! rows lie in columns ([`crate::marshal::pack`]), and how many there are ([`crate::marshal::capacity`]). Invariant:
//! each new object is held as soon as it exists, and filled before any object changes that existed before.
//!
//! Nothing recurses: a new object waits in a list until its contents are read, which may make more objects. If
//! all elements of an Array exist, it is made with them. Objects are made and filled in batches ([`BATCH`]).

use crate::ruby::heap::{self, Field, Raw};
use crate::ruby::identity::WordMap;
use ikra_core::id::ClassId;
use ikra_core::memory::room;
use ikra_core::world::well_known;
use magnus::Error;
use magnus::rb_sys::protect;
use smallvec::SmallVec;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

/// The most objects that are made or filled together. `rb_protect` and a lock take as long as several of them.
pub const BATCH: usize = 128;
/// The number of parts of an object that consists only of its parts. Some are nil.
pub const OWN_PARTS: usize = 3;

/// The rows of a launch that have become Ruby objects. After an error it must not be used any more.
#[derive(Default)]
pub struct Made {
    known: RefCell<Known>,
    /// Objects that exist and are not filled yet.
    waiting: RefCell<Vec<Waiting>>,
    /// The Strings of literals, by their words.
    literals: RefCell<WordMap<u64, Raw>>,
    /// What all objects of a class have in common, by class index.
    shapes: RefCell<Vec<Option<Rc<Shape>>>>,
    /// New Hashes with their keys and values, which wait until all keys are filled.
    pub hashes: RefCell<Vec<NewHash>>,
    /// Elements of a kind of arrays that were read together.
    pub window: RefCell<Window>,
    /// Parts of objects of a class that were read together.
    pub own_window: RefCell<OwnWindow>,
    /// The rows that were allocated for good.
    pub taken: OnceCell<Vec<Taken>>,
}

/// Elements of arrays, which mostly follow each other. UNDEF: an object must be made.
#[derive(Default)]
pub struct Window {
    pub kind: usize,
    pub first: usize,
    pub elements: Vec<Raw>,
}

/// Parts of objects of a class, which mostly follow each other, too.
#[derive(Default)]
pub struct OwnWindow {
    pub class: usize,
    pub first: usize,
    pub parts: Vec<[Raw; OWN_PARTS]>,
}

/// First and last row of a heap.
pub type Taken = (crate::marshal::plan::Rows, std::ops::Range<u64>);

/// A Hash that exists and is empty, and what it is to have.
pub struct NewHash {
    pub raw: Raw,
    pub default: Raw,
    pub keys: Vec<Raw>,
    pub values: Vec<Raw>,
}

/// What all new objects of a class have in common.
pub struct Shape {
    pub raw: Raw,
    /// The core class, if the objects consist only of their parts.
    pub own: Option<ClassId>,
    /// Indices of fields, in the order in which objects get them.
    pub order: Vec<usize>,
    /// The fields, in that order.
    pub fields: Vec<Field>,
    pub is_data: bool,
    pub is_hash: bool,
}

/// An object without contents.
#[derive(Clone, Copy)]
pub enum Waiting {
    /// With class index and row.
    Object(Raw, usize, usize),
    /// With kind index, offset and length.
    Array(Raw, usize, usize, usize),
}

/// Objects without contents, of one class or kind.
pub enum Run {
    /// Class index; objects and rows.
    Objects(usize, Vec<(Raw, usize)>),
    /// Kind index; Arrays, offsets and lengths.
    Arrays(usize, Vec<(Raw, usize, usize)>),
}

/// Numbers of an object that a kernel made: the same for each reference to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    pub fn object(class: usize, row: usize) -> Self {
        Key((class as u64) << 32 | row as u64)
    }
    pub fn array(kind: usize, offset: usize) -> Self {
        Key(1 << 63 | (kind as u64) << 32 | offset as u64)
    }
}

/// What is known of a row.
#[derive(Clone, Copy)]
pub enum Knowledge {
    Nothing,
    /// It is to become this object of the batch.
    Planned(usize),
    Object(Raw),
}

const CHUNK_BITS: u32 = 5;

/// The objects of rows. Most rows follow each other, so they are kept in chunks of rows.
struct Known {
    chunks: Vec<[Raw; 1 << CHUNK_BITS]>,
    numbers: WordMap<u64, usize>,
    /// The chunk that was last used: its part of keys, and its number.
    last: Cell<(u64, usize)>,
}

impl Default for Known {
    fn default() -> Self {
        Known { chunks: Vec::new(), numbers: WordMap::default(), last: Cell::new((u64::MAX, 0)) }
    }
}

impl Known {
    /// `false` where no object is known: it is none that a kernel made.
    const NONE: Raw = heap::FALSE;

    #[inline]
    fn chunk(&self, part: u64) -> Option<usize> {
        if self.last.get().0 == part {
            return Some(self.last.get().1);
        }
        let number = *self.numbers.get(&part)?;
        self.last.set((part, number));
        Some(number)
    }
    #[inline]
    fn get(&self, key: Key) -> Raw {
        let at = key.0 as usize % (1 << CHUNK_BITS);
        self.chunk(key.0 >> CHUNK_BITS).map_or(Self::NONE, |chunk| self.chunks[chunk][at])
    }
    #[inline]
    fn set(&mut self, key: Key, raw: Raw) {
        let part = key.0 >> CHUNK_BITS;
        let chunk = match self.chunk(part) {
            Some(chunk) => chunk,
            None => {
                let chunk = self.chunks.len();
                room::push(&mut self.chunks, [Self::NONE; 1 << CHUNK_BITS]);
                room::reserve_entry(&mut self.numbers);
                self.numbers.insert(part, chunk);
                self.last.set((part, chunk));
                chunk
            }
        };
        self.chunks[chunk][key.0 as usize % (1 << CHUNK_BITS)] = raw;
    }
}

/// An object to be made.
#[derive(Clone, Copy)]
pub enum New {
    Float(f64),
    Int(i64),
    /// Address and length of bytes that stay, with one of Ruby's own encodings.
    Str(*const u8, usize, *mut rb_sys::rb_encoding, Kind),
    /// Of a class, without fields.
    Object(Raw),
    /// Empty, with room for so many elements.
    Array(usize),
    /// With so many of the contents, and whether it is frozen.
    Full(usize, bool),
    /// Of a core class, with its parts, the next [`OWN_PARTS`] of the contents.
    Own(ClassId),
}

/// An object of a batch. With a key where a row is known to become it, and with what must be filled.
type Entry = (New, Option<(Key, Option<Waiting>)>);

/// How a String came to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Made,
    MadeFrozen,
    Literal,
}

/// Objects that are made together.
pub struct Batch {
    news: Vec<Entry>,
    /// Words of literals, with the number of their object.
    literals: SmallVec<[(u64, usize); 4]>,
    /// Where objects go, and their numbers in the batch.
    places: Vec<(usize, usize)>,
    /// The elements of new Arrays, one after the other.
    pub contents: Vec<Raw>,
}

impl Batch {
    /// An empty batch, for so many references.
    pub fn new(count: usize) -> Self {
        let count = count.min(BATCH);
        Batch {
            news: room::with_capacity(count),
            literals: SmallVec::new(),
            places: room::with_capacity(count),
            contents: Vec::new(),
        }
    }
    /// Whether it should be made before more is added.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.news.len() >= BATCH || self.places.len() >= BATCH
    }
    /// Adds an object that goes to a place.
    #[inline]
    pub fn add(&mut self, place: usize, new: New) {
        self.places.push((place, self.news.len()));
        self.news.push((new, None));
    }
    /// Sends one more reference to an object of the batch.
    #[inline]
    pub fn refer(&mut self, place: usize, number: usize) {
        self.places.push((place, number));
    }
}

impl Made {
    #[inline]
    pub fn known(&self, key: Key) -> Knowledge {
        match self.known.borrow().get(key) {
            Known::NONE => Knowledge::Nothing,
            number if number & 1 == 1 => Knowledge::Planned(number as usize >> 1),
            raw => Knowledge::Object(raw),
        }
    }

    /// Adds the object of a row of which nothing is known. `waiting`: what must be filled, with any object.
    #[inline]
    pub fn plan(&self, batch: &mut Batch, place: usize, key: Key, new: New, waiting: Option<Waiting>) {
        self.known.borrow_mut().set(key, (batch.news.len() << 1 | 1) as Raw);
        batch.add(place, new);
        if let Some(last) = batch.news.last_mut() {
            last.1 = Some((key, waiting));
        }
    }

    /// Adds the String of a literal.
    pub fn literal(&self, batch: &mut Batch, place: usize, word: u64, out: &mut [Raw], new: impl FnOnce() -> New) {
        if let Some(raw) = self.literals.borrow().get(&word) {
            out[place] = *raw;
        } else if let Some((_, number)) = batch.literals.iter().find(|(known, _)| *known == word) {
            batch.refer(place, *number);
        } else {
            batch.literals.push((word, batch.news.len()));
            batch.add(place, new());
        }
    }

    /// Makes all objects of a batch, and stores them in their places. `hold` keeps them. The batch is empty then.
    ///
    /// # Errors
    /// NoMemoryError.
    pub fn make(&self, batch: &mut Batch, out: &mut [Raw], hold: impl FnOnce(&[Raw])) -> Result<(), Error> {
        if batch.news.is_empty() {
            debug_assert!(batch.places.is_empty());
            return Ok(());
        }
        // The machine stack keeps new objects alive, until `hold` does.
        let mut fresh = [heap::NIL; BATCH];
        let fresh = std::hint::black_box(&mut fresh[..batch.news.len()]);
        let contents = batch.contents.as_slice();
        create(&batch.news, contents, fresh)?;
        hold(fresh);
        let (mut known, mut waiting) = (self.known.borrow_mut(), self.waiting.borrow_mut());
        for ((_, key), raw) in batch.news.iter().zip(fresh.iter()) {
            let Some((key, wait)) = key else { continue };
            known.set(*key, *raw);
            match wait {
                Some(Waiting::Object(_, class, row)) => {
                    room::push(&mut waiting, Waiting::Object(*raw, *class, *row));
                }
                Some(Waiting::Array(_, kind, offset, len)) => {
                    room::push(&mut waiting, Waiting::Array(*raw, *kind, *offset, *len));
                }
                None => {}
            }
        }
        for (word, number) in batch.literals.drain(..) {
            let mut literals = self.literals.borrow_mut();
            room::reserve_entry(&mut literals);
            literals.insert(word, fresh[number]);
        }
        for (place, number) in batch.places.drain(..) {
            out[place] = fresh[number];
        }
        batch.news.clear();
        batch.contents.clear();
        Ok(())
    }

    /// Remembers the object of a row that was made by itself.
    pub fn know(&self, key: Key, raw: Raw) {
        self.known.borrow_mut().set(key, raw);
    }

    /// What objects of a class have in common. `describe` is asked once for each class.
    pub fn shape(&self, class: usize, describe: impl FnOnce() -> Shape) -> Rc<Shape> {
        let mut shapes = self.shapes.borrow_mut();
        if shapes.len() <= class {
            room::resize(&mut shapes, class + 1, None);
        }
        shapes[class].get_or_insert_with(|| Rc::new(describe())).clone()
    }

    /// The next objects that must be filled.
    pub fn next(&self) -> Option<Run> {
        let mut waiting = self.waiting.borrow_mut();
        let recent = &waiting[waiting.len().saturating_sub(BATCH)..];
        let run = match *recent.last()? {
            Waiting::Object(_, class, _) => {
                let of = |waiting: &Waiting| match *waiting {
                    Waiting::Object(raw, other, row) if other == class => Some((raw, row)),
                    _ => None,
                };
                let mut run = room::collect(recent.iter().rev().map_while(of));
                run.reverse();
                Run::Objects(class, run)
            }
            Waiting::Array(_, kind, _, _) => {
                let of = |waiting: &Waiting| match *waiting {
                    Waiting::Array(raw, other, offset, len) if other == kind => Some((raw, offset, len)),
                    _ => None,
                };
                let mut run = room::collect(recent.iter().rev().map_while(of));
                run.reverse();
                Run::Arrays(kind, run)
            }
        };
        let len = match &run {
            Run::Objects(_, run) => run.len(),
            Run::Arrays(_, run) => run.len(),
        };
        let left = waiting.len() - len;
        waiting.truncate(left);
        Some(run)
    }
}

/// Makes objects, which `fresh` has then.
fn create(news: &[Entry], mut contents: &[Raw], fresh: &mut [Raw]) -> Result<(), Error> {
    // SAFETY: constructors, with a live class whose instances are ordinary objects or Structs, because other classes
    // have no rows; with bytes that stay; and with live elements, which Ruby copies. Parts are as [`with_parts`] wants
    // them. `protect` catches NoMemoryError, and what constructors raise.
    // No frame on the way has anything to drop, and nothing here panics. Each object is on the machine stack.
    #[allow(unsafe_code)]
    protect(|| unsafe {
        for ((new, _), fresh) in news.iter().zip(fresh.iter_mut()) {
            let raw = match *new {
                New::Float(f) => rb_sys::rb_float_new(f),
                New::Int(i) => rb_sys::rb_ll2inum(i),
                New::Str(at, len, encoding, Kind::Literal) => {
                    rb_sys::rb_enc_interned_str(at.cast(), len as _, encoding)
                }
                New::Str(at, len, encoding, kind) => {
                    let string = rb_sys::rb_enc_str_new(at.cast(), len as _, encoding);
                    if kind == Kind::MadeFrozen { rb_sys::rb_obj_freeze(string) } else { string }
                }
                New::Object(class) => rb_sys::rb_obj_alloc(class),
                New::Array(len) => rb_sys::rb_ary_new_capa(len as _),
                New::Full(len, frozen) => {
                    let Some((elements, rest)) = contents.split_at_checked(len) else { continue };
                    contents = rest;
                    let array = rb_sys::rb_ary_new_from_values(len as _, elements.as_ptr());
                    if frozen { rb_sys::rb_obj_freeze(array) } else { array }
                }
                New::Own(class) => {
                    let Some((parts, rest)) = contents.split_first_chunk() else { continue };
                    contents = rest;
                    with_parts(class, *parts)
                }
            };
            // SAFETY: a word of `fresh`. The write is volatile so that the GC finds the object.
            std::ptr::from_mut(fresh).write_volatile(raw);
        }
        heap::NIL
    })
    .map(drop)
}

/// An object that consists only of its parts.
///
/// # Errors
/// NoMemoryError, and what the constructor raises.
pub fn own(of: ClassId, parts: [Raw; OWN_PARTS]) -> Result<Raw, Error> {
    // SAFETY: the parts that a kernel gave the object. `protect` catches what the constructor raises.
    #[allow(unsafe_code)]
    protect(|| unsafe { with_parts(of, parts) })
}

/// # Safety
/// The parts are live, and fit the class: numbers, or nil where a Range has no end. It runs within `protect`.
#[allow(unsafe_code)]
unsafe fn with_parts(of: ClassId, [a, b, c]: [Raw; OWN_PARTS]) -> Raw {
    // SAFETY: constructors of the class at hand, with what the caller says.
    unsafe {
        match of {
            well_known::COMPLEX => rb_sys::rb_complex_raw(a, b),
            well_known::RATIONAL => rb_sys::rb_rational_raw(a, b),
            _ => rb_sys::rb_range_new(a, b, i32::from(c == heap::TRUE)),
        }
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

/// A new object that is to be filled.
pub struct Filled {
    pub object: Raw,
    /// The object of the host of which it is a copy.
    pub origin: Option<Raw>,
    pub frozen: bool,
}

/// Fills new objects of one class. A copy first gets what its origin has. Then an object gets its ivars or members, and
/// becomes frozen. `values` has the first field of all objects, then the second one, and so on; UNDEF where an object
/// does not get one.
///
/// # Errors
/// NoMemoryError.
pub fn fill_objects(objects: &[Filled], fields: &[Field], values: &[Raw]) -> Result<(), Error> {
    // SAFETY: live objects that no other code knows, live values, and members that the Struct has. An origin is a live
    // object of the same class, which nothing changes meanwhile. No frame on the way has anything to drop, and nothing
    // here panics.
    #[allow(unsafe_code)]
    protect(|| unsafe {
        for (i, Filled { object, origin, frozen }) in objects.iter().enumerate() {
            if let Some(origin) = *origin {
                copy(origin, *object);
            }
            for (field, value) in fields.iter().zip(values.iter().skip(i).step_by(objects.len())) {
                match *field {
                    _ if *value == heap::UNDEF => {}
                    // The ivar is not set in the origin either.
                    Field::Ivar(ivar)
                        if *value == heap::NIL
                            && origin.is_some()
                            && rb_sys::rb_ivar_defined(*object, ivar) == heap::FALSE => {}
                    Field::Ivar(ivar) => _ = rb_sys::rb_ivar_set(*object, ivar, *value),
                    Field::Member(index) => {
                        rb_sys::rb_struct_aset(*object, ((index as usize) << 1 | 1) as Raw, *value);
                    }
                    // A part of a Hash, which is filled otherwise, or of an object that was made with its parts.
                    Field::Part(_) | Field::Key(_) | Field::Own(_) => {}
                }
            }
            if *frozen {
                rb_sys::rb_obj_freeze(*object);
            }
        }
        heap::NIL
    })
    .map(drop)
}

/// Copies ivars and members.
///
/// # Safety
/// Both are live and of one class. The new one is known to no other code, and nothing changes the origin meanwhile. It
/// runs within `protect`.
#[allow(unsafe_code)]
unsafe fn copy(origin: Raw, object: Raw) {
    // SAFETY: as the caller says.
    unsafe {
        rb_sys::rb_ivar_foreach(origin, Some(copy_ivar), object as _);
        if heap::is_struct(origin) {
            for member in 0..rb_sys::rb_num2long(rb_sys::rb_struct_size(origin)) {
                let index = (member as usize) << 1 | 1;
                rb_sys::rb_struct_aset(object, index as Raw, rb_sys::rb_struct_aref(origin, index as Raw));
            }
        }
    }
}

/// Appends elements to new Arrays: to each as many as it says, one after the other. Those that say so become frozen.
///
/// # Errors
/// NoMemoryError.
pub fn fill_arrays(arrays: &[(Raw, usize, bool)], mut elements: &[Raw]) -> Result<(), Error> {
    // SAFETY: live Arrays that no other code knows, and live values, which Ruby copies. No frame on the way has
    // anything to drop, and nothing here panics.
    #[allow(unsafe_code)]
    protect(|| unsafe {
        for (array, len, frozen) in arrays {
            let Some((own, rest)) = elements.split_at_checked(*len) else { continue };
            elements = rest;
            rb_sys::rb_ary_cat(*array, own.as_ptr(), own.len() as _);
            if *frozen {
                rb_sys::rb_obj_freeze(*array);
            }
        }
        heap::NIL
    })
    .map(drop)
}

/// Gives a new Hash its keys and values, and its default.
///
/// # Errors
/// NoMemoryError, and what Ruby raises.
pub fn fill_hash(hash: &NewHash) -> Result<(), Error> {
    // SAFETY: a live Hash that no other code knows, and live keys and values, which the section keeps. The methods that
    // Ruby calls on keys are those of core classes. Errors leave by `protect`, and no frame on the way has anything to
    // drop.
    #[allow(unsafe_code)]
    protect(|| unsafe {
        // Only `tally` keeps Strings that are not frozen: the very elements.
        let is_open = |key: Raw| heap::see(key) == heap::Seen::Str && rb_sys::rb_obj_frozen_p(key) == heap::FALSE;
        if hash.keys.iter().any(|key| is_open(*key)) {
            let keys = rb_sys::rb_ary_new_from_values(hash.keys.len() as _, hash.keys.as_ptr());
            let tally = rb_sys::rb_funcallv(keys, rb_sys::rb_intern(c"tally".as_ptr()), 0, std::ptr::null());
            rb_sys::rb_funcallv(hash.raw, rb_sys::rb_intern(c"replace".as_ptr()), 1, &raw const tally);
        }
        for (key, value) in hash.keys.iter().zip(&hash.values) {
            rb_sys::rb_hash_aset(hash.raw, *key, *value);
        }
        if hash.default != heap::NIL {
            rb_sys::rb_hash_set_ifnone(hash.raw, hash.default);
        }
        heap::NIL
    })
    .map(drop)
}

/// Appends values to a new Array.
///
/// # Errors
/// NoMemoryError.
pub fn append(array: Raw, values: &[Raw]) -> Result<(), Error> {
    // SAFETY: a live Array that no other code knows, and live values, which Ruby copies. No frame on the way has
    // anything to drop, and nothing here panics.
    #[allow(unsafe_code)]
    protect(|| unsafe { rb_sys::rb_ary_cat(array, values.as_ptr(), values.len() as _) }).map(drop)
}

/// Stores values in an Array at indices that it has.
///
/// # Errors
/// FrozenError and the like, which a new Array does not raise.
pub fn store(array: Raw, indices: &[usize], values: &[Raw]) -> Result<(), Error> {
    // SAFETY: a live Array that no other code knows, and live values. No frame on the way has anything to drop, and
    // nothing here panics.
    #[allow(unsafe_code)]
    protect(|| unsafe {
        for (index, value) in indices.iter().zip(values) {
            rb_sys::rb_ary_store(array, *index as _, *value);
        }
        heap::NIL
    })
    .map(drop)
}
