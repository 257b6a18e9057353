//! Procs and Method objects that Ruby's own code has made: `f >> g`, `f.curry[1]`, `Math.method(:sqrt)`.
//!
//! They have no source. Here: how each was made, and of which values. Not here: what kernels make of that
//! ([`ikra_core::world::Derivation`]).
//!
//! Ruby has no function that gives the parts of a composed or curried Proc. Such a Proc consists of a function of C and
//! an object. [`init`] makes one of each kind, and compares the object with the form that Ruby 3.1 to 3.4 gives it. If
//! it differs, Procs of that kind are unknown.

use crate::ruby::environment;
use crate::ruby::heap::Raw;
use crate::ruby::reflect;
use ikra_core::world::Derivation;
use magnus::block::Proc;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, Ruby, Value};
use std::sync::OnceLock;

/// Ruby's functions behind such Procs; 0: unknown.
#[derive(Default)]
struct Functions {
    curry: usize,
    compose: usize,
    convert: usize,
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

/// A lambda, a proc, a Method object, and what Ruby makes of them.
const PROBE: &str = "
    code, other = ->(a, b) { }, proc { |a| }
    method = code.method(:call)
    [code, other, method, code.curry[other], code >> other, method.to_proc]
";

/// Finds the functions.
///
/// # Errors
/// What Ruby raises.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    let probes: RArray = ruby.eval(PROBE)?;
    let [code, other, method, curried, composed, converted]: [Value; 6] = probes.to_array()?;
    let mut functions = Functions::default();
    if let Some((function, data)) = environment::native(curried)
        && let Some([of, given, needs]) = elements(data)?
        && of.as_raw() == code.as_raw()
        && usize::try_convert(needs).is_ok_and(|needs| needs == 2)
        && RArray::from_value(given).is_some_and(|given| given.len() == 1)
    {
        functions.curry = function;
    }
    if let Some((function, data)) = environment::native(composed)
        && let Some([second, first]) = elements(data)?
        && (first.as_raw(), second.as_raw()) == (code.as_raw(), other.as_raw())
    {
        functions.compose = function;
    }
    if let Some((function, data)) = environment::native(converted)
        && data == method.as_raw()
    {
        functions.convert = function;
    }
    FUNCTIONS.get_or_init(|| functions);
    Ok(())
}

/// The elements of an array of this length.
fn elements<const N: usize>(array: Raw) -> Result<Option<[Value; N]>, Error> {
    match RArray::from_value(reflect::value(array)) {
        Some(array) if array.len() == N => array.to_array().map(Some),
        _ => Ok(None),
    }
}

/// How a Proc or Method object was made, and of which values. None: it is written in Ruby, or unknown.
///
/// # Errors
/// What Ruby raises.
pub fn of(ruby: &Ruby, code: Value) -> Result<Option<(Derivation, Vec<Value>)>, Error> {
    let Some(block) = Proc::from_value(code) else { return method(ruby, code) };
    let (Some((function, data)), Some(functions)) = (environment::native(code), FUNCTIONS.get()) else {
        return Ok(None);
    };
    let lambda = block.is_lambda();
    if function == functions.convert {
        return Ok(Some((Derivation::Converted, vec![reflect::value(data)])));
    }
    if function == functions.compose {
        let Some([second, first]) = elements(data)? else { return Ok(None) };
        return Ok(Some((Derivation::Composed { lambda }, vec![first, second])));
    }
    if function == functions.curry {
        let Some([of, given, needs]) = elements(data)? else { return Ok(None) };
        let Some(given) = RArray::from_value(given) else { return Ok(None) };
        let needs = usize::try_convert(needs).unwrap_or(0);
        let derivation = Derivation::Curried { given: given.len(), needs, lambda };
        return Ok(Some((derivation, std::iter::once(of).chain(given).collect())));
    }
    Ok(None)
}

/// A Method object of a method of C that its receiver still has by this name.
fn method(ruby: &Ruby, code: Value) -> Result<Option<(Derivation, Vec<Value>)>, Error> {
    if !code.is_kind_of(ruby.class_method()) || reflect::iseq_of(code)?.is_some() {
        return Ok(None);
    }
    let (name, receiver): (Value, Value) = (code.funcall("name", ())?, code.funcall("receiver", ())?);
    let ask: Value = ruby.module_kernel().funcall("instance_method", ("method",))?;
    let now: Result<Value, Error> = ask.funcall("bind_call", (receiver, name));
    let same = now.and_then(|now| now.funcall::<_, _, bool>("==", (code,))).unwrap_or(false);
    let name = reflect::symbol_name(name)?;
    Ok(same.then(|| (Derivation::Method(name.as_str().into()), vec![receiver])))
}
