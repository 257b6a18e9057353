//! Questions to Ruby's own classes. A class that redefines the methods used here cannot affect the answers.
//!
//! Here: methods of Module that are called on classes which may define methods of the same names; and [`Found`], the
//! result of a method look-up. Not here: what the answers mean to a program ([`crate::world::live_world`]).

use crate::ruby::constants;
use crate::ruby::hash_table::KeyReader;
use crate::ruby::heap::{self, Raw};
use crate::ruby::question::{self, Answer};
use crate::ruby::registry::{self, Kept, classes, keep, names};
use ikra_core::id::ClassId;
use ikra_core::world::hashes::{self, ConstKey, KeyField};
use ikra_core::world::{Construction, Visibility, values, well_known};
use magnus::prelude::*;
use magnus::rb_sys::{AsRawId, AsRawValue, FromRawValue, protect};
use magnus::value::{IntoId, LazyId};
use magnus::{Error, ExceptionClass, RArray, RClass, Ruby, Value};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

struct Natives {
    instance_method: Kept,
    public_send: Kept,
    private: Kept,
    protected: Kept,
    iseq_class: Kept,
    /// `Thread.list`, and `Thread#native_thread_id`, where it exists.
    threads: Kept,
    thread_number: Option<Kept>,
    /// `Data`, where there is one.
    data: Option<Kept>,
    /// `rb_callable_method_entry`, where this Ruby exports it.
    entry: Option<EntryFn>,
}

type EntryFn = unsafe extern "C" fn(Raw, rb_sys::ID) -> *const Raw;

/// What reflection keeps for this process.
struct Reflection {
    natives: OnceCell<Natives>,
    /// Watchers: modules of Ikra that are prepended to classes, and do not change what their methods mean.
    watchers: Mutex<Vec<Raw>>,
    /// Counts the changes of methods behind watchers.
    changes: AtomicU64,
}

static REFLECTION: Reflection =
    Reflection { natives: OnceCell::new(), watchers: Mutex::new(Vec::new()), changes: AtomicU64::new(0) };

/// Fetches methods that are called often.
///
/// # Errors
/// Where this Ruby lacks one of them.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    let method = |name: &str| -> Result<Kept, Error> {
        Ok(Kept::new(ruby.class_module().funcall::<_, _, Value>("instance_method", (name,))?))
    };
    let vm: Value = ruby.class_object().const_get("RubyVM")?;
    let iseq_class: Value = vm.funcall("const_get", ("InstructionSequence",))?;
    let thread: Value = ruby.class_object().const_get("Thread")?;
    let has_number: bool = thread.funcall("method_defined?", ("native_thread_id",))?;
    let number: Option<Value> =
        has_number.then(|| thread.funcall("instance_method", ("native_thread_id",))).transpose()?;
    let natives = Natives {
        instance_method: method("instance_method")?,
        public_send: Kept::new(ruby.module_kernel().funcall("instance_method", ("public_send",))?),
        private: method("private_method_defined?")?,
        protected: method("protected_method_defined?")?,
        iseq_class: Kept::new(iseq_class),
        threads: Kept::new(thread.funcall::<_, _, Value>("method", ("list",))?),
        thread_number: number.map(Kept::new),
        data: if since_3_2() { Some(Kept::new(ruby.class_object().const_get("Data")?)) } else { None },
        entry: entry_function(),
    };
    let _ = REFLECTION.natives.set(natives);
    Ok(())
}

/// `Kernel#public_send` as Ruby defines it.
pub fn public_send() -> Value {
    natives().public_send.value()
}

fn natives() -> &'static Natives {
    REFLECTION.natives.get().expect("fetched when Ikra is loaded")
}

fn entry_function() -> Option<EntryFn> {
    // SAFETY: a look-up by name among the loaded libraries. The type is that of method.h in 3.1.
    #[allow(unsafe_code)]
    unsafe {
        if (rb_sys::RUBY_API_VERSION_MAJOR, rb_sys::RUBY_API_VERSION_MINOR) != (3, 1) {
            return None;
        }
        let address = libc::dlsym(libc::RTLD_DEFAULT, c"rb_callable_method_entry".as_ptr());
        (!address.is_null()).then(|| std::mem::transmute::<*mut libc::c_void, EntryFn>(address))
    }
}

/// The operating system's numbers of all Ruby threads but the current one. None for a thread that has not begun.
///
/// # Errors
/// What Ruby raises.
pub fn other_threads(ruby: &Ruby) -> Result<Vec<Option<i32>>, Error> {
    let natives = natives();
    let Some(number) = &natives.thread_number else { return Ok(Vec::new()) };
    let (all, own) = (natives.threads.value().funcall::<_, _, RArray>("call", ())?, ruby.thread_current().as_raw());
    let mut numbers = Vec::new();
    for at in 0..all.len() {
        let thread: Value = all.entry(at as isize)?;
        if thread.as_raw() != own {
            numbers.push(number.value().funcall("bind_call", (thread,))?);
        }
    }
    Ok(numbers)
}

/// A VALUE with magnus's type.
pub fn value(raw: Raw) -> Value {
    // SAFETY: callers pass VALUEs that something keeps alive: a table, a holder, or the machine stack.
    #[allow(unsafe_code)]
    unsafe {
        Value::from_raw(raw)
    }
}

/// The result of a method look-up.
#[derive(Clone, Copy)]
pub struct Found {
    /// An UnboundMethod.
    pub unbound: Value,
    pub owner: Raw,
    /// Its instructions. None for C functions and accessors.
    pub iseq: Option<Value>,
    pub visibility: Visibility,
    /// Whether a watcher stands before it.
    watched: bool,
    /// Whether it is an alias of a method that its class no longer has. Then it is not known where `super` leads.
    pub lost: bool,
}

impl Found {
    /// The name under which its owner defined it.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn original_name(&self) -> Result<String, Error> {
        symbol_name(self.unbound.funcall("original_name", ())?)
    }
    /// File and line. None for C functions.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn location(&self) -> Result<Option<(String, u32)>, Error> {
        self.unbound.funcall("source_location", ())
    }
}

/// A Symbol's name, even where a program redefines `name`.
///
/// # Errors
/// TypeError where the value is no Symbol.
pub fn symbol_name(symbol: Value) -> Result<String, Error> {
    Ok(magnus::Symbol::try_convert(symbol)?.name()?.into_owned())
}

/// The ivar (with its `@`), or the member of a Struct, that a method only reads, or (true) only writes. None where the
/// method does anything else.
///
/// # Errors
/// What Ruby raises.
pub fn attribute(ruby: &Ruby, found: &Found) -> Result<Option<(String, bool)>, Error> {
    if found.iseq.is_some() {
        return Ok(None);
    }
    let (name, arity) = (found.original_name()?, found.unbound.funcall::<_, _, i64>("arity", ())?);
    let (name, writes) = match (arity, name.strip_suffix('=')) {
        (0, None) => (name.as_str(), false),
        (1, Some(name)) => (name, true),
        _ => return Ok(None),
    };
    if members(ruby, found.owner)?.is_some_and(|members| members.iter().any(|member| member == name)) {
        return Ok(Some((name.to_owned(), writes)));
    }
    // A method that C defines has no file.
    Ok(found.location()?.map(|_| (format!("@{name}"), writes)))
}

/// `Ikra.__attribute(method)`: the [`attribute`] of an UnboundMethod, and whether it writes that. nil where the method
/// does anything else.
///
/// # Errors
/// TypeError where the value is no method; what Ruby raises.
pub fn attribute_of(ruby: &Ruby, method: Value) -> Result<Option<(magnus::Symbol, bool)>, Error> {
    let (method_class, unbound): (RClass, RClass) =
        (ruby.class_object().const_get("Method")?, ruby.class_object().const_get("UnboundMethod")?);
    if !method.is_kind_of(method_class) && !method.is_kind_of(unbound) {
        return Err(Error::new(ruby.exception_type_error(), "an attribute is asked of a method"));
    }
    let owner: Value = method.funcall("owner", ())?;
    let (owner, iseq) = (owner.as_raw(), iseq_of(method)?);
    let found = Found { unbound: method, owner, iseq, visibility: Visibility::Public, watched: false, lost: false };
    Ok(attribute(ruby, &found)?.map(|(slot, writes)| (ruby.to_symbol(slot), writes)))
}

/// Looks a method up in a class. For the methods of one object, this is its singleton class.
///
/// # Errors
/// What Ruby raises.
pub fn find_method(ruby: &Ruby, class: Raw, name: &str) -> Result<Option<Found>, Error> {
    let found = look_up(ruby, class, name)?.map(|found| defined(ruby, found, name)).transpose()?;
    found.map(|found| unaliased(ruby, found, name)).transpose()
}

/// Finds the definition behind an alias, which Ruby shows as the class's own method. `super` starts from the class that
/// defined the method.
fn unaliased(ruby: &Ruby, found: Found, name: &str) -> Result<Found, Error> {
    let original = found.original_name()?;
    let Some(iseq) = found.iseq else { return Ok(found) };
    // An alias of an alias may have the method's original name again.
    let renamed = original != name;
    let nesting = constants::method_nesting(ruby, iseq, found.owner)?;
    let written_here = nesting.first() == Some(&found.owner);
    if !renamed {
        if written_here {
            return Ok(found);
        }
        // its owner's, as Ruby shows what a class inherits alike
        let own = look_up_own(ruby, found.owner, name)?;
        if !own.as_ref().map(is_from_above).transpose()?.unwrap_or(false) {
            return Ok(found);
        }
    }
    let own = definition(found.unbound)?;
    let all: Vec<Raw> = ancestors(found.owner)?.into_iter().map(|a| a.as_raw()).collect();
    // The class in whose body it is written comes first: a class below may have an alias of that name, too.
    let writer = nesting.first().copied().filter(|writer| all.contains(writer));
    let others = all.iter().copied().filter(|a| (renamed || *a != found.owner) && Some(*a) != writer);
    for ancestor in writer.into_iter().chain(others) {
        let Some(above) = look_up_own(ruby, ancestor, &original)? else { continue };
        let above = defined(ruby, above, &original)?;
        if above.owner == ancestor && (definition(above.unbound)? == own || has_code_of(&found, &above, iseq, renamed)?)
        {
            let place = |class: Raw| all.iter().position(|a| *a == class);
            // of a module that the alias's class has prepended: Ruby goes on behind the class
            let lost = place(above.owner) < place(found.owner);
            return Ok(if lost { Found { lost, ..found } } else { Found { owner: above.owner, ..found } });
        }
    }
    // It was defined anew since. Where it stands in the class's own body, it was the class's own. But `super` goes by
    // the original name, which must not be an alias of another method by now.
    let current = look_up_own(ruby, found.owner, &original)?;
    let replaced = current.map(|current| current.original_name()).transpose()?.is_some_and(|name| name != original);
    Ok(Found { lost: !written_here || replaced, ..found })
}

/// Whether Ruby shows a class's own method as that of another, `C(M)#m` or `M#m`: an alias of what M defined.
fn is_from_above(own: &Found) -> Result<bool, Error> {
    let shown: String = own.unbound.funcall("inspect", ())?;
    let class: String = value(own.owner).funcall("inspect", ())?;
    Ok(!shown.starts_with(&format!("#<UnboundMethod: {class}#")))
}

/// Whether one is an alias of another. An alias of a module's method has another definition with the same code. Two
/// methods that one `def` made in two classes also have the same name and code, and one calls the other by `super`.
fn has_code_of(found: &Found, above: &Found, iseq: Value, renamed: bool) -> Result<bool, Error> {
    if above.iseq.is_none_or(|code| code.as_raw() != iseq.as_raw()) {
        return Ok(false);
    }
    let beyond: Option<Value> = found.unbound.funcall("super_method", ())?;
    Ok(renamed || beyond.map(definition).transpose()? != Some(definition(above.unbound)?))
}

/// The class or module that defines what a Method object calls.
///
/// # Errors
/// What Ruby raises.
pub fn owner_of(ruby: &Ruby, method: Value) -> Result<Raw, Error> {
    let (name, owner): (Value, Value) = (method.funcall("name", ())?, method.funcall("owner", ())?);
    let (unbound, iseq) = (method.funcall("unbind", ())?, iseq_of(method)?);
    let owner = owner.as_raw();
    let found = Found { unbound, owner, iseq, visibility: Visibility::Public, watched: false, lost: false };
    let name = symbol_name(name)?;
    let found = defined(ruby, found, &name)?;
    Ok(unaliased(ruby, found, &name)?.owner)
}

/// Finds the class whose text defines a method. From Ruby 3.2 on, and in the last releases of 3.1, a class that only
/// changes the visibility of an inherited method counts as its owner. So this goes up while the next ancestor has the
/// same code, and `super` does not lead from one to the other.
fn defined(ruby: &Ruby, mut found: Found, name: &str) -> Result<Found, Error> {
    loop {
        let mut above =
            ancestors(found.owner)?.into_iter().map(|a| a.as_raw()).skip_while(|a| *a != found.owner).skip(1);
        let next = above.find_map(|ancestor| look_up(ruby, ancestor, name).transpose()).transpose()?;
        let (Some(next), own) = (next, definition(found.unbound)?) else { break };
        let beyond: Option<Value> = found.unbound.funcall("super_method", ())?;
        if definition(next.unbound)? != own || beyond.map(definition).transpose()? == Some(own) {
            break;
        }
        found = Found { visibility: found.visibility, ..next };
    }
    Ok(found)
}

/// A number that is equal for all entries of one definition. `==` also compares the class through which a module's
/// method was found.
fn definition(method: Value) -> Result<i64, Error> {
    method.funcall("hash", ())
}

/// The method that a call runs, with the owner that Ruby names.
fn look_up(ruby: &Ruby, class: Raw, name: &str) -> Result<Option<Found>, Error> {
    // SAFETY: `class` is a live class.
    #[allow(unsafe_code)]
    let bound = unsafe { rb_sys::rb_method_boundp(class, registry::id(ruby, name), 0) };
    if bound == 0 {
        return Ok(None);
    }
    let natives = natives();
    let class = value(class);
    let symbol = ruby.to_symbol(name);
    let ask = || natives.instance_method.value().funcall::<_, _, Value>("bind_call", (class, symbol));
    let unbound = if class.is_kind_of(ruby.class_class()) {
        ask()?
    } else {
        // of a module, Ruby may still know a method that the program has undefined
        let missing: ExceptionClass = ruby.class_object().const_get("NameError")?;
        let Answer::Given(unbound) = question::own(ruby, missing, ask)? else { return Ok(None) };
        unbound
    };
    let is = |question: &Kept| question.value().funcall::<_, _, bool>("bind_call", (class, symbol));
    let visibility = if is(&natives.private)? {
        Visibility::Private
    } else if is(&natives.protected)? {
        Visibility::Protected
    } else {
        Visibility::Public
    };
    let (mut unbound, mut owner): (Value, Value) = (unbound, unbound.funcall("owner", ())?);
    // A watcher stands before the method itself.
    let watched = is_watcher(owner.as_raw());
    while is_watcher(owner.as_raw()) {
        unbound = unbound.funcall("super_method", ())?;
        if unbound.is_nil() {
            return Ok(None);
        }
        owner = unbound.funcall("owner", ())?;
    }
    Ok(Some(Found { unbound, owner: owner.as_raw(), iseq: iseq_of(unbound)?, visibility, watched, lost: false }))
}

/// `Ikra.__methods_changed`: called when a watched class or module gets another method, or other ancestors. Its watcher
/// still stands before it.
pub fn methods_changed() {
    REFLECTION.changes.fetch_add(1, Ordering::Relaxed);
}

/// `Ikra.__watcher(module)`: makes a module a watcher.
pub fn add_watcher(module: Value) {
    keep(module);
    REFLECTION.watchers.lock().push(module.as_raw());
}

/// Whether a module is a watcher.
pub fn is_watcher(module: Raw) -> bool {
    REFLECTION.watchers.lock().contains(&module)
}

/// The method of that name that a class or module defines itself. A method of a prepended module, or an inherited one,
/// does not count.
///
/// # Errors
/// What Ruby raises.
pub fn own_method(ruby: &Ruby, class: Raw, name: &str) -> Result<Option<Found>, Error> {
    let found = look_up_own(ruby, class, name)?.map(|found| defined(ruby, found, name)).transpose()?;
    found.filter(|found| found.owner == class).map(|found| unaliased(ruby, found, name)).transpose()
}

fn look_up_own(ruby: &Ruby, class: Raw, name: &str) -> Result<Option<Found>, Error> {
    let Some(mut found) = look_up(ruby, class, name)? else { return Ok(None) };
    let ancestors = ancestors(class)?;
    let before = ancestors.into_iter().map(|a| a.as_raw()).take_while(|a| *a != class).count();
    for _ in 0..=before {
        if found.owner == class {
            return Ok(Some(found));
        }
        let above: Value = found.unbound.funcall("super_method", ())?;
        if above.is_nil() {
            break;
        }
        let owner: Value = above.funcall("owner", ())?;
        found = Found { unbound: above, owner: owner.as_raw(), iseq: iseq_of(above)?, ..found };
    }
    Ok(None)
}

/// The instruction sequence of a Proc or Method, the same object each time. None where it has none.
///
/// # Errors
/// What Ruby raises.
pub fn iseq_of(code: Value) -> Result<Option<Value>, Error> {
    natives().iseq_class.value().funcall(*names::OF, (code,))
}

/// A new object of a class of Ikra's own, with these ivars. `allocate` would first ask the class whether it has that
/// method, which takes longer than all the rest.
///
/// # Errors
/// What Ruby raises.
pub fn made(class: Value, ivars: [(&LazyId, Value); 2]) -> Result<Value, Error> {
    let ruby = &Ruby::get_with(class);
    // SAFETY: a live class, and live values. `protect` catches NoMemoryError.
    #[allow(unsafe_code)]
    let raw = protect(|| unsafe {
        let object = rb_sys::rb_obj_alloc(class.as_raw());
        for (ivar, value) in ivars {
            rb_sys::rb_ivar_set(object, ivar.into_id_with(ruby).as_raw(), value.as_raw());
        }
        object
    })?;
    Ok(value(raw))
}

/// The ancestors of a class or module, itself first.
///
/// # Errors
/// What Ruby raises.
pub fn ancestors(class: Raw) -> Result<RArray, Error> {
    // SAFETY: `class` is a live class or module.
    #[allow(unsafe_code)]
    let raw = protect(|| unsafe { rb_sys::rb_mod_ancestors(class) })?;
    Ok(RArray::from_value(value(raw)).expect("ancestors are an Array"))
}

/// Whether modules are prepended to a class or module.
///
/// # Errors
/// What Ruby raises.
pub fn is_prepended(class: Raw) -> Result<bool, Error> {
    Ok(ancestors(class)?.entry::<Value>(0)?.as_raw() != class)
}

/// Whether `class <= module`.
pub fn inherits(class: Raw, module: Raw) -> bool {
    if class == module {
        return true;
    }
    // SAFETY: both are live classes or modules, for which the function only reads.
    #[allow(unsafe_code)]
    unsafe {
        rb_sys::rb_class_inherited_p(class, module) == heap::TRUE
    }
}

/// Whether `new` of a class makes an object that consists of its class and its ivars, and is no exception.
pub fn is_ordinary(class: Raw) -> bool {
    // SAFETY: a live class, and classes that live as long as Ruby. The functions only read them.
    #[allow(unsafe_code)]
    let (allocates_so, object, exception) = unsafe {
        let (object, exception) = (rb_sys::rb_cObject, rb_sys::rb_eException);
        let allocator = |class| rb_sys::rb_get_alloc_func(class).map(|f| f as usize);
        (allocator(class) == allocator(object), object, exception)
    };
    allocates_so && class != object && inherits(class, object) && !inherits(class, exception)
}

/// Whether an object is an instance of a class or module.
pub fn is_kind_of(object: Raw, module: Raw) -> bool {
    // SAFETY: both are alive, and the second is a class or module.
    #[allow(unsafe_code)]
    unsafe {
        rb_sys::rb_obj_is_kind_of(object, module) == heap::TRUE
    }
}

/// Whether `Struct.new` or `Data.define` made the class or an ancestor of it.
pub fn has_members(ruby: &Ruby, class: Raw) -> bool {
    is_below(class, ruby.class_struct().as_raw()) || is_data(class)
}

/// Whether a class is one that `Data.define` made, or below one.
pub fn is_data(class: Raw) -> bool {
    natives().data.as_ref().is_some_and(|data| is_below(class, data.raw()))
}

fn is_below(class: Raw, base: Raw) -> bool {
    is_class(class) && base != class && inherits(class, base)
}

/// Whether `Data` is Ruby's class of values, as of 3.2. Before, a constant of that name is the user's.
const fn since_3_2() -> bool {
    rb_sys::RUBY_API_VERSION_MAJOR > 3 || rb_sys::RUBY_API_VERSION_MINOR >= 2
}

/// The members of the objects of a class, in their order. None for classes without members.
///
/// # Errors
/// What Ruby raises.
pub fn members(ruby: &Ruby, class: Raw) -> Result<Option<Vec<String>>, Error> {
    if !has_members(ruby, class) {
        return Ok(None);
    }
    // SAFETY: `class` is a live class below Struct or Data. `protect` catches what is raised for one without members.
    #[allow(unsafe_code)]
    let list = protect(|| unsafe { rb_sys::rb_struct_s_members(rb_sys::rb_class_real(class)) })?;
    let list = RArray::from_value(value(list)).expect("members are an Array");
    list.into_iter().map(symbol_name).collect::<Result<_, _>>().map(Some)
}

/// How `new` of a class with members takes them.
///
/// # Errors
/// What Ruby raises.
pub fn construction(class: Raw) -> Result<Construction, Error> {
    if is_data(class) {
        return Ok(Construction::Data);
    }
    Ok(match value(class).funcall::<_, _, Option<bool>>("keyword_init?", ())? {
        Some(true) => Construction::Keywords,
        None if since_3_2() => Construction::Either,
        _ => Construction::Positional,
    })
}

/// Whether `owner` is the singleton class in which `Struct.new` or `Data.define` defined how objects of `class` are
/// made. It may belong to a superclass of `class`.
///
/// # Errors
/// What Ruby raises.
pub fn makes_structs(ruby: &Ruby, class: Raw, owner: Raw) -> Result<bool, Error> {
    if !has_members(ruby, class) {
        return Ok(false);
    }
    let mut above = class;
    while has_members(ruby, above) {
        if singleton_class(above)? == owner {
            return Ok(true);
        }
        above = value(above).funcall::<_, _, Value>("superclass", ())?.as_raw();
    }
    Ok(false)
}

/// The core class that a class is, if its objects consist only of their parts.
pub fn own_class(class: Raw) -> Option<ClassId> {
    let own = [well_known::RANGE, well_known::COMPLEX, well_known::RATIONAL];
    own.into_iter().find(|id| classes::get(*id).raw == class)
}

/// The field `name` of the objects of a class: an ivar, or the member of a Struct where the name has no `@`.
///
/// # Errors
/// What Ruby raises.
pub fn field(ruby: &Ruby, class: Raw, name: &str) -> Result<heap::Field, Error> {
    if let Some(part) = ikra_core::world::hashes::PARTS.iter().position(|part| *part == name) {
        return Ok(heap::Field::Part(part));
    }
    if let Some((field, key)) = KeyField::of(name) {
        let key = match key {
            ConstKey::Sym(name) => ruby.to_symbol(name).as_value(),
            // The same String that a Hash keeps for a literal key.
            ConstKey::Str(text) => ruby.str_new(text).to_interned_str().as_value(),
        };
        keep(key);
        return Ok(heap::Field::Key(KeyReader::new(key.as_raw(), field == KeyField::Present)));
    }
    // kernels alone make and read MatchData
    let own =
        own_class(class).or((class == classes::get(well_known::MATCH_DATA).raw).then_some(well_known::MATCH_DATA));
    if let Some(at) = own.and_then(|class| values::parts(class).iter().position(|part| *part == name)) {
        return Ok(heap::Field::Own(at));
    }
    if class == classes::get(well_known::HASH).raw
        && let Some(at) = hashes::MADE_PARTS.iter().position(|part| *part == name)
    {
        return Ok(heap::Field::Own(at));
    }
    if !name.starts_with('@')
        && let Some(at) = members(ruby, class)?.and_then(|m| m.iter().position(|m| m == name))
    {
        return Ok(heap::Field::Member(at as u32));
    }
    Ok(heap::Field::Ivar(registry::id(ruby, name)))
}

/// The singleton class of a class or module. It is made where there is none yet, and kept for good.
///
/// # Errors
/// What Ruby raises.
pub fn singleton_class(module: Raw) -> Result<Raw, Error> {
    // SAFETY: `module` is a live class or module.
    #[allow(unsafe_code)]
    let raw = protect(|| unsafe { rb_sys::rb_singleton_class(module) })?;
    keep(value(raw));
    Ok(raw)
}

/// Tells whether a method look-up would still find the same method.
#[derive(Debug)]
pub struct MethodGuard {
    class: Raw,
    id: rb_sys::ID,
    found: Identity,
    /// The last result of a full check: the watcher's entry, and the count of changes behind watchers. A watcher's
    /// entry does not change with the methods behind it.
    seen: Mutex<Option<(Entry, u64)>>,
}

/// A method entry with its visibility. The entry is kept alive, so no other gets its address.
type Entry = (Raw, usize);

#[derive(Debug)]
enum Identity {
    /// The method is one of Ruby's own, unchanged since Ruby started. Ruby can answer that for a module's method only
    /// through a class that includes the module.
    Basic(Option<Described>),
    /// The method that a call runs, and its entry, if the entry changes with the method. The entry of a watcher does
    /// not.
    Calls(Option<Entry>, Option<Described>),
    None,
    /// The method that the class defines itself, where a look-up finds a prepended module first.
    Own(Option<Described>),
}

/// Owner, visibility, and instructions, or a substitute for these.
#[derive(Clone, Debug, PartialEq)]
struct Described {
    owner: Raw,
    iseq: Option<Raw>,
    /// The substitute for instructions: the source position, and the number that is equal for all entries of one
    /// definition.
    location: Option<(String, u32)>,
    definition: Option<i64>,
    visibility: Visibility,
}

/// Bits of a method entry's flags that hold its visibility (method.h, 3.1).
const VISIBILITY_BITS: usize = 3 << 16;

impl MethodGuard {
    /// The guard for a look-up, as it is now.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn new(ruby: &Ruby, class: Raw, name: &str) -> Result<Self, Error> {
        let id = registry::id(ruby, name);
        let found = identity(ruby, class, id, name)?;
        Ok(Self { class, id, found, seen: Mutex::default() })
    }
    /// The guard for what a class itself defines, as it is now, whatever is prepended to it.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn own(ruby: &Ruby, class: Raw, name: &str) -> Result<Self, Error> {
        let found = Identity::Own(describe(look_up_own(ruby, class, name)?)?);
        Ok(Self { class, id: registry::id(ruby, name), found, seen: Mutex::default() })
    }
    pub fn is_about(&self, class: Raw, id: rb_sys::ID) -> bool {
        (self.class, self.id) == (class, id)
    }
    /// Whether the look-up still finds the same.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn holds(&self, ruby: &Ruby) -> Result<bool, Error> {
        match &self.found {
            Identity::Basic(_) if is_basic(self.class, self.id) => Ok(true),
            Identity::Calls(Some(entry), _) if method_entry(self.class, self.id) == Some(*entry) => Ok(true),
            Identity::Basic(then) | Identity::Calls(_, then) => {
                self.still(|| Ok(describe(look_up(ruby, self.class, &name_of(self.id))?)? == *then))
            }
            Identity::None => {
                // SAFETY: `class` is kept by the registry.
                #[allow(unsafe_code)]
                let bound = unsafe { rb_sys::rb_method_boundp(self.class, self.id, 0) };
                Ok(bound == 0)
            }
            Identity::Own(then) => Ok(describe(look_up_own(ruby, self.class, &name_of(self.id))?)? == *then),
        }
    }

    /// Whether a call runs the same method. This is found out once for each entry and each count of changes.
    fn still(&self, same: impl FnOnce() -> Result<bool, Error>) -> Result<bool, Error> {
        let entry = if is_class(self.class) { method_entry(self.class, self.id) } else { None };
        let now = entry.map(|entry| (entry, REFLECTION.changes.load(Ordering::Relaxed)));
        if now.is_some() && *self.seen.lock() == now {
            return Ok(true);
        }
        let same = same()?;
        if let (true, Some((entry, _))) = (same, now) {
            keep(value(entry.0));
            *self.seen.lock() = now;
        }
        Ok(same)
    }
}

/// Whether it is a class. Ruby's own look-ups of a module's methods work only through the classes that include it.
fn is_class(module: Raw) -> bool {
    // SAFETY: `module` is a live class or module.
    #[allow(unsafe_code)]
    unsafe {
        rb_sys::RB_TYPE_P(module, rb_sys::ruby_value_type::RUBY_T_CLASS)
    }
}

fn is_basic(class: Raw, id: rb_sys::ID) -> bool {
    // SAFETY: `class` is kept by the registry.
    #[allow(unsafe_code)]
    unsafe {
        rb_sys::rb_method_basic_definition_p(class, id) != 0
    }
}

fn method_entry(class: Raw, id: rb_sys::ID) -> Option<Entry> {
    let entry = natives().entry?;
    // SAFETY: `class` is kept by the registry. An entry is an object of the GC, whose first word is its flags.
    #[allow(unsafe_code)]
    unsafe {
        let found = entry(class, id);
        (!found.is_null()).then(|| (found as Raw, *found as usize & VISIBILITY_BITS))
    }
}

/// The name of an ID. It calls no method, which could raise another thread's exception first.
pub fn name_of(id: rb_sys::ID) -> String {
    // SAFETY: an ID that Ruby made from a name, which it keeps for ever, as a string that ends with a zero.
    #[allow(unsafe_code)]
    let name = unsafe { std::ffi::CStr::from_ptr(rb_sys::rb_id2name(id)) };
    name.to_string_lossy().into_owned()
}

fn identity(ruby: &Ruby, class: Raw, id: rb_sys::ID, name: &str) -> Result<Identity, Error> {
    let found = look_up(ruby, class, name)?;
    if is_class(class) && is_basic(class, id) {
        return Ok(Identity::Basic(describe(found)?));
    }
    let watched = found.as_ref().is_some_and(|found| found.watched);
    let entry = if is_class(class) && !watched { method_entry(class, id) } else { None };
    if let Some((entry, _)) = entry {
        keep(value(entry));
    }
    Ok(match (entry, describe(found)?) {
        (None, None) => Identity::None,
        (entry, what) => Identity::Calls(entry, what),
    })
}

fn describe(found: Option<Found>) -> Result<Option<Described>, Error> {
    let Some(found) = found else { return Ok(None) };
    let iseq = found.iseq.map(|i| i.as_raw());
    let (location, definition) =
        if iseq.is_none() { (found.location()?, Some(definition(found.unbound)?)) } else { (None, None) };
    Ok(Some(Described { owner: found.owner, iseq, location, definition, visibility: found.visibility }))
}
