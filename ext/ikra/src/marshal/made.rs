//! Objects and arrays that a kernel made, as Ruby objects.
//!
//! Here: [`Made`], which gives each row that something refers to its Ruby object, once, and fills it; and
//! [`HeapCapacities`], the heap capacities of a program. Not here: where rows lie in columns
//! ([`crate::marshal::pack`]). Invariant: each new object is held as soon as it exists, and filled before any object
//! changes that existed before.
//!
//! Nothing recurses: a new object waits in a list until its contents are read, which may make more objects.

use crate::marshal::plan::Plan;
use crate::ruby::heap::{self, Field, Raw};
use crate::ruby::identity::WordMap;
use crate::ruby::reflect;
use ikra_core::backend::{Fresh, Key};
use ikra_core::error::Error as CoreError;
use ikra_core::ir::{HeapId, Program, Site, Space};
use ikra_core::memory::room;
use ikra_core::world::well_known;
use magnus::Error;
use magnus::rb_sys::protect;
use parking_lot::Mutex;
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
                Field::Part(_) | Field::Own(_) => heap::NIL,
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

/// The rows of each heap of a program, or of each slot of a scratch heap. A heap grows, and never shrinks.
pub struct HeapCapacities(Mutex<Vec<u64>>);

/// The initial rows of a scratch heap, for each slot.
const SCRATCH_ROWS_PER_SLOT: u64 = 32;
/// The least initial rows of another heap.
const MIN_INITIAL_ROWS: u64 = 256;
/// The greatest factor by which a heap grows at once.
const MAX_GROWTH_FACTOR: u64 = 32;

/// The rows of a program's heaps in one launch.
#[derive(Clone, Debug, Default)]
pub struct HeapCapacity {
    /// By heap: rows in all.
    pub rows: Vec<u64>,
    /// By heap: rows, or rows of each slot.
    pub capacities: Vec<u64>,
    pub slots: u64,
}

impl HeapCapacities {
    pub fn new(program: &Program, elements: usize) -> Self {
        let first = |heap: usize| match program.heaps[heap].scratch {
            true => SCRATCH_ROWS_PER_SLOT,
            false => (elements as u64).max(MIN_INITIAL_ROWS),
        };
        Self(Mutex::new((0..program.heaps.len()).map(first).collect()))
    }

    /// The heap capacities of the next launch.
    pub fn now(&self, program: &Program, slots: u64) -> HeapCapacity {
        let mut capacities = self.0.lock().clone();
        for (i, capacity) in capacities.iter_mut().enumerate() {
            if !program.takes_from(HeapId::new(i)) {
                *capacity = 0;
            }
        }
        let times = |(i, capacity): (usize, &u64)| capacity * if program.heaps[i].scratch { slots } else { 1 };
        let rows = capacities.iter().enumerate().map(times).collect();
        HeapCapacity { rows, capacities, slots }
    }

    /// Grows the heaps after a launch that stopped at an element because a heap was full. `needed` rows would have been
    /// enough so far.
    ///
    /// # Errors
    /// `Memory` where there is not so much.
    #[allow(clippy::too_many_arguments, reason = "what tells how much is needed")]
    pub fn grow(
        &self,
        program: &Program,
        heap: HeapId,
        needed: u64,
        key: Key,
        (elements, ticks, slots): (u64, u64, u64),
        memory: u64,
        site: &Site,
    ) -> Result<(), CoreError> {
        let description = &program.heaps[heap.index()];
        let mut capacities = self.0.lock();
        let capacity = &mut capacities[heap.index()];
        // The elements that follow will need as many rows each as those before.
        let done = key.tick() * elements + key.index() + 1;
        let share = (elements * ticks) as f64 / done as f64;
        let expected = if description.scratch { needed } else { (needed as f64 * share * 1.1) as u64 };
        let most = needed.max(capacity.saturating_mul(MAX_GROWTH_FACTOR));
        let wanted = expected.clamp(needed.max(*capacity * 2), most.max(*capacity * 2));
        let rows = wanted.saturating_mul(if description.scratch { slots } else { 1 });
        let width: u64 = program
            .columns
            .iter()
            .filter(|c| c.space.covers(description.space))
            .map(|c| c.storage.bytes() as u64)
            .sum();
        let bytes = rows.saturating_mul(width.max(1));
        if rows > u64::from(u32::MAX) / 2 || bytes > memory / 2 {
            let what = match description.space {
                Space::Array(_) => "arrays",
                _ => "objects",
            };
            let place = format!("making {what} at {}:{}", site.path, site.line);
            let advice = "make fewer or smaller ones, or run fewer elements at a time";
            return Err(CoreError::Memory { what: place, wanted: bytes, free: memory / 2, advice });
        }
        *capacity = wanted;
        Ok(())
    }
}

/// The rows of columns that are undefined before a launch. The host fills the flags of frozen objects all the same.
pub fn fresh(program: &Program, capacity: &HeapCapacity, biases: &[u64], params: &[u64], host: &[usize]) -> Vec<Fresh> {
    let mut fresh = Vec::new();
    for (i, heap) in program.heaps.iter().enumerate().filter(|(i, _)| capacity.rows[*i] > 0) {
        let start = params[heap.start.index()];
        for (at, column) in program.columns.iter().enumerate() {
            if column.space.covers(heap.space) && !host.contains(&at) {
                let first = start - biases[at];
                fresh.push(Fresh {
                    column: ikra_core::ir::ColumnId::new(at),
                    rows: first..first + capacity.rows[i],
                    taken: (!heap.scratch).then_some(heap.taken),
                });
            }
        }
    }
    fresh
}
