//! References to array expressions that are not computed yet, and their results.
//!
//! Here: steps of `Ikra::MDArray::Expression::Operation` that must be atomic, for other threads and for signal
//! handlers. A native is, because it runs no Ruby code. A handler cannot take a lock of Ruby's, and such a lock does
//! not exclude a handler that interrupts its owner.
//! Not here: expressions (lib/ikra/mdarray/expression.rb).

use crate::ruby::registry::names::{BUFFER, COUNT, OPERANDS, RETAINED, STORAGE};
use magnus::prelude::*;
use magnus::{Error, RObject, Ruby, Value};

/// `Ikra.__retained(operation, change)`: adds `change` to the number of references to an operation. False where it is
/// computed. Then the references are to its result.
///
/// # Errors
/// NoMemoryError.
pub fn retained(_: &Ruby, operation: RObject, change: i64) -> Result<bool, Error> {
    if !operation.ivar_get::<_, Value>(*STORAGE)?.is_nil() {
        return Ok(false);
    }
    let now: i64 = operation.ivar_get(*RETAINED)?;
    operation.ivar_set(*RETAINED, now + change)?;
    Ok(true)
}

/// `Ikra.__computed(operation, storage, buffer)`: stores the result of an operation, and gives its operands, which it
/// does not need any more. nil where another thread stored the result first. Its elements are the same.
///
/// # Errors
/// NoMemoryError.
pub fn computed(ruby: &Ruby, operation: RObject, storage: RObject, buffer: Value) -> Result<Value, Error> {
    if !operation.ivar_get::<_, Value>(*STORAGE)?.is_nil() {
        return Ok(ruby.qnil().as_value());
    }
    let (retained, operands): (i64, Value) = (operation.ivar_get(*RETAINED)?, operation.ivar_get(*OPERANDS)?);
    storage.ivar_set(*RETAINED, retained)?;
    operation.ivar_set(*BUFFER, buffer)?;
    operation.ivar_set(*COUNT, 0)?;
    operation.ivar_set(*STORAGE, storage)?;
    operation.ivar_set(*OPERANDS, ruby.qnil())?;
    Ok(operands)
}
