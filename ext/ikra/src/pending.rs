//! Who looks at an expression of arrays that is not computed yet, and what it came to.
//!
//! Here: steps of `Ikra::MDArray::Expression::Operation` that no thread and no signal's handler may come between: they run no Ruby code, which is all that a
//! native needs for that. A lock of Ruby's cannot be taken by a handler, and would not keep out a handler that interrupts the thread that has it.
//! Not here: expressions (lib/ikra/mdarray/expression.rb).

use crate::registry::names::{BUFFER, COUNT, OPERANDS, RETAINED, STORAGE};
use magnus::prelude::*;
use magnus::{Error, RObject, Ruby, Value};

/// `Ikra.__retained(operation, change)`: so many more look at an operation; false where it is computed: then they look at what it came to.
///
/// # Errors
/// What Ruby raises when memory ends.
pub fn retained(_: &Ruby, operation: RObject, change: i64) -> Result<bool, Error> {
    if !operation.ivar_get::<_, Value>(*STORAGE)?.is_nil() {
        return Ok(false);
    }
    let now: i64 = operation.ivar_get(*RETAINED)?;
    operation.ivar_set(*RETAINED, now + change)?;
    Ok(true)
}

/// `Ikra.__computed(operation, storage, buffer)`: an operation came to this. Its operands, which it does not need any more; nil where somebody else
/// was first, whose elements are as good.
///
/// # Errors
/// What Ruby raises when memory ends.
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
