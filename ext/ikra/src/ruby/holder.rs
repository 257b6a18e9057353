//! Keeps objects alive and at their addresses while Rust code remembers the addresses.
//!
//! Here: [`Holder`], a Ruby object that only marks other objects, and lives on the machine stack of its user; and
//! [`LazyHolder`], which keeps a few objects on that stack by itself. Not here: which objects need it.
//! Invariant: the vectors change only under their lock, and no Ruby function is called under it. So the lock is free
//! when the GC runs, in whatever thread.

use crate::ruby::heap::Raw;
use ikra_core::memory::room;
use magnus::prelude::*;
use magnus::rb_sys::FromRawValue;
use magnus::typed_data::Obj;
use magnus::{DataTypeFunctions, Error, RModule, Ruby, TryConvert, TypedData, Value, gc};
use once_cell::unsync::OnceCell;
use parking_lot::Mutex;
use std::cell::Cell;
use std::sync::Arc;

/// Tables that name objects.
pub trait ObjectLists: Send + Sync {
    /// Gives each list of objects. It allocates nothing and cannot panic, because the GC calls it.
    fn each_list(&self, give: &mut dyn FnMut(&[Raw]));
}

/// Marks VALUEs, which pins them too.
#[derive(TypedData, Default)]
#[magnus(class = "Ikra::Holder", free_immediately, mark, size)]
pub struct Holder {
    lists: Mutex<Vec<Vec<Raw>>>,
    tables: Mutex<Option<Arc<dyn ObjectLists>>>,
}

/// Defines `Ikra::Holder`, which Ruby code cannot make.
///
/// # Errors
/// Where the name is taken.
pub fn init(ikra: RModule, ruby: &Ruby) -> Result<(), Error> {
    let class = ikra.define_class("Holder", ruby.class_object())?;
    class.undef_default_alloc_func();
    ikra.funcall::<_, _, Value>("private_constant", (ruby.to_symbol("Holder"),))?;
    // Ruby looks the class up by name the first time. At that point it would raise pending interrupts.
    <Holder as TypedData>::class(ruby);
    Ok(())
}

impl DataTypeFunctions for Holder {
    fn mark(&self, marker: &gc::Marker) {
        let mark = |list: &[Raw]| {
            for raw in list {
                // SAFETY: the VALUE was alive when it was added, and has been marked at every GC since.
                #[allow(unsafe_code)]
                marker.mark(unsafe { Value::from_raw(*raw) });
            }
        };
        self.lists.lock().iter().for_each(|list| mark(list));
        if let Some(tables) = &*self.tables.lock() {
            tables.each_list(&mut |list| mark(list));
        }
    }
    fn size(&self) -> usize {
        size_of::<Self>() + self.lists.lock().iter().map(|list| list.capacity() * size_of::<Raw>()).sum::<usize>()
    }
}

impl Holder {
    pub fn new(ruby: &Ruby) -> Obj<Self> {
        ruby.obj_wrap(Self::default())
    }
    /// Holds these objects in addition.
    pub fn hold(&self, objects: Vec<Raw>) {
        if !objects.is_empty() {
            room::push(&mut self.lists.lock(), objects);
        }
    }
    /// Holds one more object.
    pub fn add(&self, object: Raw) {
        let mut lists = self.lists.lock();
        match lists.first_mut() {
            Some(list) => room::push(list, object),
            None => lists.push(vec![object]),
        }
    }
    /// Holds more objects.
    pub fn add_all(&self, objects: &[Raw]) {
        let mut lists = self.lists.lock();
        if lists.is_empty() {
            lists.push(Vec::new());
        }
        if let Some(list) = lists.first_mut() {
            room::extend(list, objects.iter().copied());
        }
    }
    /// Holds none of these objects any more.
    pub fn let_go(&self) {
        let _gone = std::mem::take(&mut *self.lists.lock());
    }
    /// Holds everything in these tables, instead of the tables before.
    pub fn hold_tables(&self, tables: Arc<dyn ObjectLists>) {
        *self.tables.lock() = Some(tables);
    }
    /// Holds no tables any more.
    pub fn let_tables_go(&self) {
        let _gone = self.tables.lock().take();
    }
}

/// The most objects that are kept without a holder.
const MAX_WITHOUT_HOLDER: usize = 8;

/// Keeps objects alive for as long as it is a local variable of a Ruby thread. The GC scans that thread's machine
/// stack, and neither frees nor moves any object that a word there may name. A holder is made when there are more than
/// a few objects, or on request.
#[derive(Default)]
pub struct LazyHolder {
    few: [Cell<Raw>; MAX_WITHOUT_HOLDER],
    count: Cell<usize>,
    holder: OnceCell<Obj<Holder>>,
}

impl TryFrom<Value> for LazyHolder {
    type Error = Error;

    /// One that a holder was made for.
    fn try_from(holder: Value) -> Result<Self, Error> {
        let holder = OnceCell::with_value(Obj::try_convert(holder)?);
        Ok(Self { few: Default::default(), count: Cell::default(), holder })
    }
}

impl LazyHolder {
    /// The holder, which then holds all that is kept.
    pub fn get(&self, ruby: &Ruby) -> Obj<Holder> {
        *self.holder.get_or_init(|| {
            let holder = Holder::new(ruby);
            holder.hold(self.few[..self.count.get()].iter().map(Cell::get).collect());
            holder
        })
    }
    /// Holds no tables any more.
    pub fn let_tables_go(&self) {
        if let Some(holder) = self.holder.get() {
            holder.let_tables_go();
        }
    }
    /// Keeps objects, of which some may be immediate.
    pub fn add_all(&self, ruby: &Ruby, objects: &[Raw]) {
        if objects.len() > MAX_WITHOUT_HOLDER {
            self.get(ruby).add_all(objects);
        } else {
            objects.iter().for_each(|object| self.add(ruby, *object));
        }
    }
    pub fn add(&self, ruby: &Ruby, object: Raw) {
        if crate::ruby::heap::is_immediate(object) {
            return;
        }
        let at = self.count.get();
        match (self.few.get(at), self.holder.get()) {
            (Some(place), None) => {
                // SAFETY: a word of this thread's own. Only the GC reads it, so a volatile write stops the compiler
                // from leaving it out.
                #[allow(unsafe_code)]
                unsafe {
                    place.as_ptr().write_volatile(object);
                }
                self.count.set(at + 1);
            }
            _ => self.get(ruby).add(object),
        }
    }
}

impl Drop for LazyHolder {
    fn drop(&mut self) {
        // The words are used until here.
        std::hint::black_box(&self.few);
    }
}
