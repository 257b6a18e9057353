//! Numbers for classes and hashes for symbols, for the life of the process.
//!
//! Here: [`classes`] and [`symbols`], two tables behind locks that are never held while Ruby runs. Not here: questions
//! about a class ([`crate::world::live_world`]).
//! Invariant: a class or symbol in a table is registered with the GC, so it stays alive and at its address.

use crate::ruby::heap::{self, Raw};
use crate::ruby::identity::{RawMap, WordMap};
use crate::ruby::question::shown;
use ikra_core::id::ClassId;
use ikra_core::world::{ClassInfo, symbol_hash, well_known};
use magnus::prelude::*;
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::value::Id;
use magnus::{Error, RHash, RModule, Ruby, Symbol, Value, rb_sys::AsRawId};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::sync::Arc;

#[derive(Default)]
struct Classes {
    by_value: RawMap<ClassId>,
    entries: Vec<Class>,
}

/// A class or module with its number.
#[derive(Clone)]
pub struct Class {
    pub raw: Raw,
    pub info: Arc<ClassInfo>,
}

#[derive(Default)]
struct Symbols {
    hashes: RawMap<i64>,
    back: WordMap<i64, Raw>,
}

/// Texts of all symbols in the table, for kernels.
struct Texts {
    /// Ruby's Hashes of the names, and of what `inspect` gives.
    hashes: [Kept; 2],
    /// Ruby's own `Symbol#inspect`, which a program may redefine.
    inspect: Kept,
}

/// What this process has numbered, and what it keeps alive.
struct Registry {
    classes: Mutex<Option<Classes>>,
    symbols: Mutex<Option<Symbols>>,
    texts: OnceCell<Texts>,
    /// Objects that are registered with the GC for good.
    kept: Mutex<Option<RawMap<()>>>,
    /// Objects of dropped [`Lasting`]s, which are released with the GVL held.
    let_go: Mutex<Vec<Kept>>,
}

static REGISTRY: Registry = Registry {
    classes: Mutex::new(None),
    symbols: Mutex::new(None),
    texts: OnceCell::new(),
    kept: Mutex::new(None),
    let_go: Mutex::new(Vec::new()),
};

pub mod classes {
    use super::*;

    /// Numbers the well-known classes.
    ///
    /// # Errors
    /// Where one of them is missing.
    pub fn init(ruby: &Ruby) -> Result<(), Error> {
        *REGISTRY.classes.lock() = Some(Classes::default());
        for (i, name) in well_known::NAMES.iter().enumerate() {
            let class: Value = ruby.class_object().const_get(*name)?;
            // Superclasses are registered on the way, so numbers are given by position.
            keep(class);
            let mut table = REGISTRY.classes.lock();
            let table = table.as_mut().expect("the table was made above");
            table.by_value.insert(class.as_raw(), ClassId::new(i));
            let info =
                ClassInfo { name: (*name).into(), superclass: None, hierarchy: ClassId::new(i), is_module: false };
            table.entries.push(Class { raw: class.as_raw(), info: Arc::new(info) });
        }
        for i in 0..well_known::NAMES.len() {
            let raw = get(ClassId::new(i)).raw;
            let info = Arc::new(describe(ruby, raw, ClassId::new(i))?);
            with(|table| table.entries[i].info = info);
        }
        Ok(())
    }

    fn with<T>(work: impl FnOnce(&mut Classes) -> T) -> T {
        work(REGISTRY.classes.lock().as_mut().expect("the table is made when Ikra is loaded"))
    }

    /// The class or module of a number.
    pub fn get(id: ClassId) -> Class {
        with(|table| table.entries[well_known::known(id).index()].clone())
    }

    /// The number of a class or module that has one.
    pub fn find(raw: Raw) -> Option<ClassId> {
        with(|table| table.by_value.get(&raw).copied())
    }

    /// The number of a class or module, which gets one now if it has none.
    ///
    /// # Errors
    /// What Ruby raises when it is asked for the name.
    pub fn number(ruby: &Ruby, raw: Raw) -> Result<ClassId, Error> {
        if let Some(id) = find(raw) {
            return Ok(id);
        }
        // SAFETY: `raw` is the class word of a live object, or a class that the caller holds.
        #[allow(unsafe_code)]
        keep(unsafe { Value::from_raw(raw) });
        // The superclass comes first. Describing it may run Ruby code, and another thread may number the class
        // meanwhile.
        let superclass = superclass(raw);
        if let Some(superclass) = superclass {
            number(ruby, superclass)?;
        }
        let placeholder = ClassId(u32::MAX);
        let mut info = describe(ruby, raw, placeholder)?;
        Ok(with(|table| {
            if let Some(id) = table.by_value.get(&raw) {
                return *id;
            }
            let id = ClassId::new(table.entries.len());
            if info.hierarchy == placeholder {
                info.hierarchy = id;
            }
            table.by_value.insert(raw, id);
            table.entries.push(Class { raw, info: Arc::new(info) });
            id
        }))
    }

    fn describe(ruby: &Ruby, raw: Raw, own: ClassId) -> Result<ClassInfo, Error> {
        // SAFETY: `raw` is a class or module that the table keeps alive.
        #[allow(unsafe_code)]
        let value = unsafe { Value::from_raw(raw) };
        let is_module = value.is_kind_of(ruby.class_module()) && !value.is_kind_of(ruby.class_class());
        let superclass = superclass(raw).map(|s| number(ruby, s)).transpose()?;
        let object = well_known::OBJECT;
        let hierarchy = match superclass {
            None => own,
            Some(s) if s == object || s == well_known::BASIC_OBJECT || own == object => own,
            Some(s) => get(s).info.hierarchy,
        };
        Ok(ClassInfo { name: name(value)?, superclass, hierarchy, is_module })
    }

    /// The superclass as `superclass` gives it, without modules. None for modules and BasicObject.
    fn superclass(raw: Raw) -> Option<Raw> {
        if heap::see(raw) != heap::Seen::Module || !is_class(raw) {
            return None;
        }
        // SAFETY: `raw` is a live class.
        #[allow(unsafe_code)]
        let superclass = unsafe { rb_sys::rb_class_superclass(raw) };
        (superclass != heap::NIL).then_some(superclass)
    }

    fn is_class(raw: Raw) -> bool {
        // SAFETY: `raw` is a live class or module.
        #[allow(unsafe_code)]
        unsafe {
            rb_sys::RB_TYPE_P(raw, rb_sys::ruby_value_type::RUBY_T_CLASS)
        }
    }

    /// The result of `Module#name`, even where the class redefines `name`. Module's `inspect` where it has no name.
    fn name(class: Value) -> Result<String, Error> {
        // SAFETY: `class` is a live class or module.
        #[allow(unsafe_code)]
        let name = unsafe { Value::from_raw(rb_sys::rb_mod_name(class.as_raw())) };
        if !name.is_nil() {
            return name.funcall("to_s", ());
        }
        // Not the class's own `inspect`: that of a Struct's singleton class is the Struct's.
        let inspect: Value = Ruby::get_with(class).class_module().funcall("instance_method", ("inspect",))?;
        inspect.funcall("bind_call", (class,))
    }
}

/// Registers an object with the GC, for good.
pub fn keep(value: Value) {
    let new = REGISTRY.kept.lock().get_or_insert_default().insert(value.as_raw(), ()).is_none();
    if new {
        // SAFETY: `value` is alive.
        #[allow(unsafe_code)]
        unsafe {
            rb_sys::rb_gc_register_mark_object(value.as_raw());
        }
    }
}

/// A VALUE that the GC neither frees nor moves until this is dropped, with the GVL held.
#[derive(Debug)]
pub struct Kept(Box<Raw>);

impl Kept {
    pub fn new(value: Value) -> Self {
        let mut place = Box::new(value.as_raw());
        // SAFETY: the box does not move its content, and is unregistered before it is freed.
        #[allow(unsafe_code)]
        unsafe {
            rb_sys::rb_gc_register_address(&raw mut *place);
        }
        Self(place)
    }
    pub fn raw(&self) -> Raw {
        *self.0
    }
    pub fn value(&self) -> Value {
        // SAFETY: registered with the GC.
        #[allow(unsafe_code)]
        unsafe {
            Value::from_raw(*self.0)
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // SAFETY: registered in `new`.
        #[allow(unsafe_code)]
        unsafe {
            rb_sys::rb_gc_unregister_address(&raw mut *self.0);
        }
    }
}

/// A [`Kept`] that may be dropped anywhere: the object is released when the next one is made.
#[derive(Debug)]
pub struct Lasting(Option<Kept>);

impl Lasting {
    /// Called with the GVL held.
    pub fn new(value: Value) -> Self {
        let gone = std::mem::take(&mut *REGISTRY.let_go.lock());
        drop(gone);
        Self(Some(Kept::new(value)))
    }
    pub fn value(&self) -> Value {
        self.0.as_ref().map(Kept::value).expect("kept until it is dropped")
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        REGISTRY.let_go.lock().extend(self.0.take());
    }
}

pub mod symbols {
    use super::*;

    /// Constants of Ikra that the prelude reads: a Hash of the names of all symbols in the table, and one of what
    /// `inspect` gives for them.
    const TEXTS: [&str; 2] = ["SYMBOL_NAMES", "SYMBOL_INSPECTIONS"];

    /// Makes the table.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn init(ikra: RModule, ruby: &Ruby) -> Result<(), Error> {
        *REGISTRY.symbols.lock() = Some(Symbols::default());
        let texts = TEXTS.map(|_| ruby.hash_new());
        for (name, hash) in TEXTS.into_iter().zip(texts) {
            ikra.const_set(name, hash)?;
            ikra.funcall::<_, _, Value>("private_constant", (ruby.to_symbol(name),))?;
        }
        let inspect: Value = ruby.class_symbol().funcall("instance_method", (ruby.to_symbol("inspect"),))?;
        let hashes = texts.map(|hash| Kept::new(hash.as_value()));
        let _ = REGISTRY.texts.set(Texts { hashes, inspect: Kept::new(inspect) });
        // so that the kinds of keys and values are known from the start
        add(ruby, super::symbol(ruby, "name").as_raw()).map(drop)
    }

    /// Whether a constant is one of the Hashes of texts.
    pub fn is_text(name: &str) -> bool {
        TEXTS.contains(&name)
    }

    /// Whether a Hash is one of those of texts, which a new symbol changes.
    pub fn holds_texts(hash: Raw) -> bool {
        REGISTRY.texts.get().is_some_and(|texts| texts.hashes.iter().any(|kept| kept.value().as_raw() == hash))
    }

    /// Adds a symbol's texts to the Hashes.
    fn add_texts(value: Value) -> Result<(), Error> {
        let Some(Texts { hashes: [names, inspections], inspect }) = REGISTRY.texts.get() else { return Ok(()) };
        // SAFETY: a symbol, whose name Ruby keeps.
        #[allow(unsafe_code)]
        let name = unsafe { Value::from_raw(rb_sys::rb_sym2str(value.as_raw())) };
        let inspection: Value = inspect.value().funcall("bind_call", (value,))?;
        inspection.freeze();
        let hash = |kept: &Kept| RHash::from_value(kept.value()).expect("a Hash was made");
        hash(names).aset(value, name)?;
        hash(inspections).aset(value, inspection)
    }

    fn with<T>(work: impl FnOnce(&mut Symbols) -> T) -> T {
        work(REGISTRY.symbols.lock().as_mut().expect("the table is made when Ikra is loaded"))
    }

    /// A symbol's hash. None for one that is not in the table yet.
    #[inline]
    pub fn hash(symbol: Raw) -> Option<i64> {
        with(|table| table.hashes.get(&symbol).copied())
    }

    /// Puts symbols into the table.
    ///
    /// # Errors
    /// Two symbols whose names have the same hash.
    pub fn add(ruby: &Ruby, symbol: Raw) -> Result<i64, Error> {
        if let Some(known) = with(|table| table.hashes.get(&symbol).copied().filter(|h| table.back[h] == symbol)) {
            return Ok(known);
        }
        // SAFETY: the caller holds the symbol.
        #[allow(unsafe_code)]
        let value = unsafe { Value::from_raw(symbol) };
        keep(value);
        let name = crate::ruby::reflect::symbol_name(value)?;
        let hash = symbol_hash(&name);
        let (other, new) = with(|table| {
            let holder = *table.back.entry(hash).or_insert(symbol);
            (holder, table.hashes.insert(symbol, hash).is_none())
        });
        if other == symbol {
            if new {
                add_texts(value)?;
            }
            return Ok(hash);
        }
        // SAFETY: registered with the GC when it came into the table.
        #[allow(unsafe_code)]
        let other = unsafe { Value::from_raw(other) };
        let message =
            format!("Ikra cannot tell {} and {} apart: their names have the same hash", shown(value)?, shown(other)?);
        Err(Error::new(ruby.exception_arg_error(), message))
    }

    /// The symbol of a hash from a kernel. None where no value of Ruby had it, as for a symbol of the program's text.
    pub fn symbol(hash: i64) -> Option<Raw> {
        with(|table| table.back.get(&hash).copied())
    }

    /// Finds the symbol of a hash that no value had. The program names it in its text, so Ruby knows it.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn search(ruby: &Ruby, wanted: i64) -> Result<Option<Raw>, Error> {
        if let Some(known) = symbol(wanted) {
            return Ok(Some(known));
        }
        // SAFETY: a new list that Ruby makes.
        #[allow(unsafe_code)]
        let all = magnus::rb_sys::protect(|| unsafe { rb_sys::rb_sym_all_symbols() })?;
        // SAFETY: just made.
        #[allow(unsafe_code)]
        let all = magnus::RArray::try_convert(unsafe { Value::from_raw(all) })?;
        for symbol in all {
            if crate::ruby::reflect::symbol_name(symbol).is_ok_and(|name| symbol_hash(&name) == wanted) {
                add(ruby, symbol.as_raw())?;
                return Ok(Some(symbol.as_raw()));
            }
        }
        Ok(None)
    }
}

/// The Symbol of a name in a program's text or in Ikra's. It stays for good, and is found without a String.
pub fn symbol(ruby: &Ruby, name: &str) -> Symbol {
    ruby.intern(name).into()
}

/// The ID of a name.
pub fn id(ruby: &Ruby, name: &str) -> rb_sys::ID {
    let id: Id = ruby.intern(name);
    id.as_raw()
}

/// The Symbol of an ID of Ruby's.
pub fn symbol_of(id: rb_sys::ID) -> Raw {
    // SAFETY: the ID is Ruby's, so its Symbol exists. It is computed or looked up, and nothing is allocated.
    #[allow(unsafe_code)]
    unsafe {
        rb_sys::rb_id2sym(id)
    }
}

/// Names that the fast path needs. Ruby need not look for them.
pub mod names {
    use crate::ruby::dtype::Dtype;
    use magnus::value::LazyId;

    pub static BINDING: LazyId = LazyId::new("binding");
    pub static LAMBDA: LazyId = LazyId::new("lambda");
    pub static LOCAL_VARIABLE_GET: LazyId = LazyId::new("local_variable_get");
    pub static OF: LazyId = LazyId::new("of");
    pub static PEACH: LazyId = LazyId::new("peach");
    pub static PMAP: LazyId = LazyId::new("pmap");
    pub static RECEIVER: LazyId = LazyId::new("receiver");
    pub static STORED: LazyId = LazyId::new("stored");

    // Ivars and methods of arrays, storages and layouts.
    pub static BUFFER: LazyId = LazyId::new("@buffer");
    pub static COUNT: LazyId = LazyId::new("@count");
    pub static DTYPE: LazyId = LazyId::new("@dtype");
    pub static IS_PACKED: LazyId = LazyId::new("packed?");
    pub static LAYOUT: LazyId = LazyId::new("@layout");
    pub static NAME: LazyId = LazyId::new("@name");
    pub static OFFSET: LazyId = LazyId::new("@offset");
    pub static OPERANDS: LazyId = LazyId::new("@operands");
    pub static PACKED: LazyId = LazyId::new("@packed");
    pub static RETAINED: LazyId = LazyId::new("@retained");
    pub static SHAPE: LazyId = LazyId::new("@shape");
    pub static SIZE: LazyId = LazyId::new("@size");
    pub static STORAGE: LazyId = LazyId::new("@storage");
    pub static STRIDES: LazyId = LazyId::new("@strides");
    pub static VALUE: LazyId = LazyId::new("@value");

    /// The dtypes of elements, in their order.
    pub static DTYPES: [LazyId; Dtype::ALL.len()] = {
        let [i64, i32, u8, f64, f32, bool] = Dtype::ALL;
        [
            LazyId::new(i64.0),
            LazyId::new(i32.0),
            LazyId::new(u8.0),
            LazyId::new(f64.0),
            LazyId::new(f32.0),
            LazyId::new(bool.0),
        ]
    };

    /// The methods of the prelude that make elements of values, in the same order.
    pub static AS: [LazyId; Dtype::ALL.len()] = [
        LazyId::new("as_i64"),
        LazyId::new("as_i32"),
        LazyId::new("as_u8"),
        LazyId::new("as_f64"),
        LazyId::new("as_f32"),
        LazyId::new("as_bool"),
    ];

    // Kinds of section.
    pub static MAP: LazyId = LazyId::new("map");
    pub static FIND: LazyId = LazyId::new("find");
    pub static ANOTHER: LazyId = LazyId::new("another");

    // Options that Ikra's own Ruby code passes.
    pub static INTO: LazyId = LazyId::new("__into");
    pub static ERROR_CALLBACK: LazyId = LazyId::new("__error_callback");
    pub static TOLD: LazyId = LazyId::new("__told");
}
