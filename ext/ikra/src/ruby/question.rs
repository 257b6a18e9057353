//! Questions to Ruby that may raise by themselves, and text of values.
//!
//! Here: [`own`], which tells an exception that a question raises from one that arrives while it is asked. [`text`] and
//! [`shown`] are what `to_s` and `inspect` give; [`described`] uses both. Not here: the questions.
//! Invariant: an exception that arrives is never dropped. Thread#raise, Thread#kill, Timeout and signals leave
//! exceptions for a thread. Ruby raises them at the end of any method that is called, also of one in C. So a caller
//! passes on what the method raises, or calls it by [`own`]. magnus' `inspect` and `to_string` of a Value drop all
//! exceptions, and are not used.
#![allow(unsafe_code, reason = "rb_block_call takes a C function; see SAFETY at each")]

use crate::ruby::errors;
use crate::ruby::heap::{self, Raw};
use crate::ruby::iseq::Failure;
use crate::ruby::reflect;
use crate::ruby::registry::{self, Kept};
use magnus::prelude::*;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, ExceptionClass, RArray, RString, Ruby, Value};
use once_cell::sync::OnceCell;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

/// What became of a question.
pub enum Answer<T> {
    Given(T),
    /// The exception that it raised by itself.
    Raised(Error),
}

impl<T> Answer<T> {
    pub fn given(self) -> Option<T> {
        match self {
            Answer::Given(answer) => Some(answer),
            Answer::Raised(_) => None,
        }
    }
}

/// What a question gives, or the exception of a class that it raises by itself.
///
/// # Errors
/// Every other exception, and every one that another thread raised here, whatever its class. That one waits until the
/// question was asked. A signal's handler does not wait; the default ones raise nothing that is a StandardError.
pub fn own<T>(
    ruby: &Ruby,
    class: ExceptionClass,
    question: impl FnOnce() -> Result<T, Error>,
) -> Result<Answer<T>, Error> {
    match uninterrupted(ruby, question)? {
        Ok(answer) => Ok(Answer::Given(answer)),
        Err(error) if error.is_kind_of(class) => Ok(Answer::Raised(error)),
        Err(error) => Err(error),
    }
}

/// `{ Object => :never }`. It is made once, since Ruby asks a class that becomes a key for `hash`, which a program may
/// redefine.
static NEVER: OnceCell<Kept> = OnceCell::new();

/// Makes what questions need.
///
/// # Errors
/// What Ruby raises.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    let never = ruby.hash_new();
    never.aset(ruby.class_object(), ruby.to_symbol("never"))?;
    never.freeze();
    let _ = NEVER.set(Kept::new(never.as_value()));
    Ok(())
}

struct Asked<F, T> {
    question: Option<F>,
    answer: Option<thread::Result<T>>,
}

unsafe extern "C" fn ask<F: FnOnce() -> T, T>(_: Raw, data: Raw, _: c_int, _: *const Raw, _: Raw) -> Raw {
    // SAFETY: `data` is the `Asked` on the stack of `uninterrupted`, which waits for this function.
    let asked = unsafe { &mut *(data as *mut Asked<F, T>) };
    if let Some(question) = asked.question.take() {
        asked.answer = Some(catch_unwind(AssertUnwindSafe(question)));
    }
    heap::NIL
}

/// Runs `work` within `Thread.handle_interrupt(Object => :never)`.
fn uninterrupted<T>(ruby: &Ruby, work: impl FnOnce() -> T) -> Result<T, Error> {
    fn function<F: FnOnce() -> T, T>(_: &Asked<F, T>) -> unsafe extern "C" fn(Raw, Raw, c_int, *const Raw, Raw) -> Raw {
        ask::<F, T>
    }
    let never = NEVER.get().expect("made when Ikra is loaded").raw();
    let id = registry::id(ruby, "handle_interrupt");
    let mut asked = Asked { question: Some(work), answer: None };
    let ask = function(&asked);
    // SAFETY: `asked` and `NEVER` outlive the call; what is raised when it ends, which is what waited, is caught.
    protect(|| unsafe {
        rb_sys::rb_block_call(rb_sys::rb_cThread, id, 1, &raw const never, Some(ask), (&raw mut asked) as Raw)
    })?;
    match asked.answer.expect("handle_interrupt calls its block") {
        Ok(answer) => Ok(answer),
        Err(panic) => resume_unwind(panic),
    }
}

/// The modules that a text gives in a binding. To compile it, Ruby asks methods that a program may have redefined, such
/// as `respond_to?`.
///
/// # Errors
/// A CompileError for what they raise, and what arrives.
pub fn evaluated(ruby: &Ruby, binding: Value, text: &str) -> Result<RArray, Error> {
    let eval = || binding.funcall::<_, _, RArray>("eval", (text,));
    // to raise an exception, Ruby asks `respond_to?` again: one that raises ends in a SystemStackError
    let deep: ExceptionClass = ruby.class_object().const_get("SystemStackError")?;
    let answer = match own(ruby, ruby.exception_standard_error(), || own(ruby, deep, eval))? {
        Answer::Given(answer) => answer,
        Answer::Raised(error) => Answer::Raised(error),
    };
    match answer {
        Answer::Given(modules) => Ok(modules),
        Answer::Raised(error) => {
            let raised = error.to_string();
            let raised = raised.lines().next().unwrap_or_default();
            let message = format!("Ikra asks for {text} at the block, and Ruby raised {raised}");
            Err(errors::source(ruby, Failure::NoSource(message)))
        }
    }
}

/// What `to_s` of a value gives.
///
/// # Errors
/// What Ruby raises, or what arrives.
pub fn text(value: Value) -> Result<String, Error> {
    // SAFETY: a live value; what is raised is caught.
    utf8(protect(|| unsafe { rb_sys::rb_obj_as_string(value.as_raw()) })?)
}

/// What `inspect` of a value gives.
///
/// # Errors
/// What Ruby raises, or what arrives.
pub fn shown(value: Value) -> Result<String, Error> {
    // SAFETY: a live value; what is raised is caught.
    utf8(protect(|| unsafe { rb_sys::rb_inspect(value.as_raw()) })?)
}

/// The same of any value, for messages about it: one whose method raises, or that has none, is shown as its class.
///
/// # Errors
/// What arrives.
pub fn described(value: Value, question: fn(Value) -> Result<String, Error>) -> Result<String, Error> {
    let ruby = Ruby::get_with(value);
    match own(&ruby, ruby.exception_standard_error(), || question(value))? {
        Answer::Given(text) => Ok(text),
        // SAFETY: a live value; what is raised is caught.
        Answer::Raised(_) => utf8(protect(|| unsafe { rb_sys::rb_any_to_s(value.as_raw()) })?),
    }
}

fn utf8(string: Raw) -> Result<String, Error> {
    let string = RString::from_value(reflect::value(string)).expect("Ruby makes a String of what is none");
    let string = string.conv_enc(Ruby::get_with(string).utf8_encoding())?;
    // SAFETY: copied before Ruby runs again.
    Ok(unsafe { string.to_string_lossy() }.into_owned())
}
