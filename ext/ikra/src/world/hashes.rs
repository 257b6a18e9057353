//! Ruby's Hashes laid out as arrays: keys, values, and an index over the keys' hashes.
//!
//! Here: [`parts`], which makes the arrays, as Ruby objects, so that they are observed, traced and packed like any. Not
//! here: how keys are hashed and found ([`ikra_core::world::hashes`]). They are made anew for each call.

use crate::ruby::hash_table::{self, Fit};
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::reflect::value;
use crate::ruby::registry::{Kept, symbols};
use ikra_core::memory::room;
use ikra_core::types::Tag;
use ikra_core::world::hashes::{Key, index};
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, RHash, Ruby, Value};
use once_cell::sync::OnceCell;

/// The methods of a Hash that layout calls.
const ASKED: [&str; 5] = ["compare_by_identity?", "default_proc", "default", "keys", "values"];

/// Ruby's own methods of these names: a program may redefine them.
static METHODS: OnceCell<Vec<Kept>> = OnceCell::new();

/// Fetches these methods.
///
/// # Errors
/// What Ruby raises.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    let method = |name: &&str| Ok(Kept::new(ruby.class_hash().funcall::<_, _, Value>("instance_method", (*name,))?));
    let methods: Result<Vec<Kept>, Error> = ASKED.iter().map(method).collect();
    let _ = METHODS.set(methods?);
    Ok(())
}

/// Why a Hash is not laid out.
pub enum Unfit {
    /// Kernels cannot hold it. It is said what it is.
    Refused(String),
    Raised(Error),
}

impl From<Error> for Unfit {
    fn from(error: Error) -> Self {
        Unfit::Raised(error)
    }
}

fn refused<T>(what: impl Into<String>) -> Result<T, Unfit> {
    Err(Unfit::Refused(what.into()))
}

/// Why kernels cannot read a Hash, apart from its keys. None: they can. Only where the layout of tables is known.
pub fn unfit(ruby: &Ruby, hash: Raw) -> Option<String> {
    is_subclass(ruby, hash).or_else(|| what_unfits(hash_table::fit(hash)).map(Into::into))
}

fn is_subclass(ruby: &Ruby, hash: Raw) -> Option<String> {
    (heap::class_word(hash) != ruby.class_hash().as_raw()).then(|| {
        let class = crate::ruby::errors::class_name(value(hash));
        format!("a {class} that is no plain Hash")
    })
}

fn what_unfits(fit: Fit) -> Option<&'static str> {
    match fit {
        Fit::Default(_) => None,
        Fit::ByIdentity => Some("a Hash that compares keys by identity"),
        Fit::HasProc => Some("a Hash with a block for its defaults"),
    }
}

/// The arrays of a Hash. The caller keeps them alive.
///
/// # Errors
/// The reason why kernels cannot hold it, and what Ruby raises.
pub fn parts(ruby: &Ruby, hash: Raw) -> Result<[Raw; 4], Unfit> {
    if let Some(what_it_is) = is_subclass(ruby, hash) {
        return refused(what_it_is);
    }
    let own = RHash::from_value(value(hash)).expect("the caller has seen a Hash");
    let methods = METHODS.get().expect("fetched when Ikra is loaded");
    let asked = |name: &str| -> Result<Value, Error> {
        let at = ASKED.iter().position(|asked| *asked == name).expect("one of these");
        methods[at].value().funcall("bind_call", (own,))
    };
    let fit = match hash_table::is_known() {
        true => hash_table::fit(hash),
        false if asked("compare_by_identity?")?.to_bool() => Fit::ByIdentity,
        false if !asked("default_proc")?.is_nil() => Fit::HasProc,
        false => Fit::Default(asked("default")?.as_raw()),
    };
    let Fit::Default(default) = fit else { return refused(what_unfits(fit).unwrap_or_default()) };
    let keys = RArray::try_convert(asked("keys")?)?;
    let values = RArray::try_convert(asked("values")?)?;
    let mut hashes = room::with_capacity(keys.len());
    let mut objects = 0;
    for i in 0..keys.len() {
        let key: Value = keys.entry(i as isize)?;
        let raw = key.as_raw();
        hashes.push(key_hash(ruby, raw, 0)?);
        objects += usize::from(heap::see(raw) == Seen::Object);
        if objects > MAX_OBJECT_KEYS {
            return refused(format!("a Hash with more than {MAX_OBJECT_KEYS} objects as keys"));
        }
        // A key that was changed after it was stored is not found any more.
        if matches!(heap::see(raw), Seen::Array | Seen::Struct) {
            let asks: Value = ruby.class_hash().funcall("instance_method", ("key?",))?;
            if !asks.funcall::<_, _, Value>("bind_call", (own, key))?.to_bool() {
                return refused("a Hash with a key that was changed after it was put in");
            }
        }
    }
    let places = ruby.ary_from_iter(index(&hashes));
    Ok([keys.as_raw(), values.as_raw(), places.as_raw(), default])
}

/// The most objects without a hash of their own that may be keys. They are searched one after the other.
const MAX_OBJECT_KEYS: usize = 256;

/// The deepest nesting of Arrays and Structs in a key, in levels.
const MAX_KEY_DEPTH: usize = 16;

fn key_hash(ruby: &Ruby, raw: Raw, depth: usize) -> Result<u64, Unfit> {
    Ok(match heap::see(raw) {
        Seen::Nil => Key::Word(Tag::NIL, 0).hash(),
        Seen::False => Key::Word(Tag::FALSE, 0).hash(),
        Seen::True => Key::Word(Tag::TRUE, 1).hash(),
        Seen::Int(i) => Key::Word(Tag::INT, i as u64).hash(),
        Seen::Float(f) if f.is_nan() => return refused("a Hash with NaN as a key"),
        Seen::Float(f) => Key::Word(Tag::FLOAT, f.to_bits()).hash(),
        Seen::Symbol => Key::Word(Tag::SYM, symbols::add(ruby, raw)? as u64).hash(),
        Seen::Str => Key::Str(heap::bytes(raw)).hash(),
        Seen::Array if heap::class_word(raw) == ruby.class_array().as_raw() && depth < MAX_KEY_DEPTH => {
            return parts_hash(ruby, value(raw), depth);
        }
        Seen::Struct if depth < MAX_KEY_DEPTH && has_hash_of(raw, ruby.class_struct().as_value())? => {
            let to_a: Value = ruby.class_struct().funcall("instance_method", ("to_a",))?;
            return parts_hash(ruby, to_a.funcall("bind_call", (value(raw),))?, depth);
        }
        Seen::Object if has_hash_of(raw, ruby.module_kernel().as_value())? => Key::Object.hash(),
        _ => return refused(format!("a Hash with {} as a key", crate::world::observe::a_thing(raw))),
    })
}

fn parts_hash(ruby: &Ruby, list: Value, depth: usize) -> Result<u64, Unfit> {
    let list = RArray::try_convert(list)?;
    let mut hashes = Vec::with_capacity(list.len());
    for i in 0..list.len() {
        let part: Value = list.entry(i as isize)?;
        hashes.push(key_hash(ruby, part.as_raw(), depth + 1)?);
    }
    Ok(Key::Parts(&hashes).hash())
}

/// Whether an object's `hash` and `eql?` are those of a class or module of Ruby's own.
fn has_hash_of(raw: Raw, owner: Value) -> Result<bool, Error> {
    for name in ["hash", "eql?"] {
        let class: Value = value(raw).class().as_value();
        let method: Value = class.funcall("instance_method", (name,))?;
        if method.funcall::<_, _, Value>("owner", ())?.as_raw() != owner.as_raw() {
            return Ok(false);
        }
    }
    Ok(true)
}
