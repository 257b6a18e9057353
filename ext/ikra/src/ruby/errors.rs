//! The core's errors and traps to Ruby's exceptions: one match each.
//!
//! Here: classes, messages, backtraces. Not here: the exception classes themselves (lib/ikra/error.rb), and any message
//! of the core.
//! Invariant: an exception that a block raises in a kernel is of Ruby's own class, with Ruby's own message.

use crate::ruby::gvl;
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::iseq::Failure;
use crate::ruby::question::{self, Answer, shown};
use crate::ruby::reflect::{self, symbol_name, value};
use crate::ruby::registry::{self, classes};
use crate::ruby::reserve;
use ikra_core::backend::races::Races;
use ikra_core::backend::{Key, TrapRecord};
use ikra_core::diagnostic::Diagnostic;
use ikra_core::error::Error as CoreError;
use ikra_core::ir::{New, Part, Piece, Program, Site, Space, Trap};
use ikra_core::memory::room;
use ikra_core::source::Source;
use magnus::error::ErrorType;
use magnus::prelude::*;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, Exception, ExceptionClass, RArray, RHash, RModule, Ruby, Value};
use once_cell::sync::OnceCell;
use std::sync::Arc;

static LIBRARY: OnceCell<String> = OnceCell::new();

/// Told once, by lib/ikra.rb: the folder of Ikra's own Ruby code, whose frames no backtrace shows.
pub fn set_library(folder: String) {
    let _ = LIBRARY.set(folder);
}

/// The module of that name.
///
/// # Errors
/// None that is known.
pub fn ikra(ruby: &Ruby) -> Result<RModule, Error> {
    ruby.class_object().const_get("Ikra")
}

/// The class of that name. No method is called for it, before which an interrupt might come.
fn class(ruby: &Ruby, name: &str) -> Result<ExceptionClass, Error> {
    let mut found = ruby.class_object().as_raw();
    for part in name.split("::") {
        if heap::see(found) != Seen::Module {
            break;
        }
        let id = registry::id(ruby, part);
        // SAFETY: a live class or module; what a program's `const_missing` raises is caught.
        #[allow(unsafe_code)]
        let next = |module| protect(|| unsafe { rb_sys::rb_const_get(module, id) });
        found = next(found)?;
    }
    // a program may have put something else there
    Ok(ExceptionClass::from_value(value(found)).unwrap_or_else(|| ruby.exception_runtime_error()))
}

/// An exception of the class of that name, or what arrives meanwhile.
fn new(ruby: &Ruby, name: &str, message: String) -> Error {
    class(ruby, name).map_or_else(|error| error, |class| Error::new(class, message))
}

/// A broken invariant of the bridge.
pub fn internal(ruby: &Ruby, detail: &str) -> Error {
    core(ruby, CoreError::Internal { stage: "bridge", detail: detail.into() })
}

/// Warns the user, as Ikra's Ruby code does.
///
/// # Errors
/// What the user's logger raises.
pub fn warn(ruby: &Ruby, message: &str) -> Result<(), Error> {
    ikra(ruby)?.funcall::<_, _, Value>("__warn", (message,)).map(drop)
}

/// Whether an exception says that kernels cannot run a block.
///
/// # Errors
/// What looking up its class raises.
pub fn is_compile_error(ruby: &Ruby, error: &Error) -> Result<bool, Error> {
    let class = class(ruby, "Ikra::CompileError")?;
    Ok(error.is_kind_of(class))
}

/// The core's error as an exception.
pub fn core(ruby: &Ruby, mut error: CoreError) -> Error {
    if let CoreError::Unsupported(told) | CoreError::Conflict(told) = &mut error
        && let Err(arrived) = tell_to_caller(ruby, told)
    {
        return arrived;
    }
    let name = match &error {
        CoreError::Poisoned(poison) => return crate::ruby::deferred_error::raised(ruby, poison),
        CoreError::Unsupported(_) | CoreError::Conflict(_) => "Ikra::CompileError",
        CoreError::Device { .. } => "Ikra::DeviceError",
        CoreError::Memory { .. } => "Ikra::DeviceMemoryError",
        CoreError::HostMemory { .. } | CoreError::CodeMemory => "NoMemoryError",
        CoreError::Internal { .. } => "Ikra::InternalError",
    };
    new(ruby, name, error.to_string())
}

/// Tells what is wrong in code that is not the user's where the user's calls that.
fn tell_to_caller(ruby: &Ruby, told: &mut Diagnostic) -> Result<(), Error> {
    if told.source.is_internal() {
        // what is in no file of the program's is told where that called
        // unless the program redefined what is asked: the error itself matters more
        if let Answer::Given((path, first_line)) =
            question::own(ruby, ruby.exception_standard_error(), || caller(ruby))?
        {
            told.source = Arc::new(Source { path, first_line, ..(*told.source).clone() });
        }
    }
    if let Some(calls) = not_theirs(ruby, told)? {
        let (call, label) = (&told.calls[calls], &told.calls[calls].label);
        let message = format!("kernels cannot compile {label}");
        *told = told.told_at(call, message, "call it before the block, and use what it gives there".into());
    }
    Ok(())
}

/// Of what is wrong in a file of Ikra's, or of Ruby's library: which of the calls is the first from the user's own.
fn not_theirs(ruby: &Ruby, told: &Diagnostic) -> Result<Option<usize>, Error> {
    // without RubyGems nobody may have loaded it
    // SAFETY: a live class, in which the function only looks.
    #[allow(unsafe_code)]
    let is_there =
        unsafe { rb_sys::rb_const_defined(ruby.class_object().as_raw(), registry::id(ruby, "RbConfig")) } != 0;
    if !is_there {
        return Ok(None);
    }
    let config: RModule = ruby.class_object().const_get("RbConfig")?;
    let folder: String = config.const_get::<_, RHash>("CONFIG")?.aref("rubylibdir")?;
    let is_theirs = |source: &Source| is_library(&source.path) || source.path.starts_with(&folder);
    if !is_theirs(&told.source) {
        return Ok(None);
    }
    Ok(told.calls.iter().position(|call| !is_theirs(&call.source)))
}

/// Does what a native does. Where Ikra's memory does not suffice, it is tried once more, unless it has changed
/// anything. Before that, the GC runs, which may find arrays that nobody has any more. What changes something comes
/// behind what needs memory, as far as that is known before.
///
/// Where Ruby's own memory ends, nothing is tried again, and no code is forgotten. Ruby may have stopped in the middle
/// of its own tables, in which a GC or another compilation ends the process.
///
/// # Errors
/// What it gives; NoMemoryError.
pub fn within_memory<T>(ruby: &Ruby, work: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    within_memory_and_code(ruby, || {}, work)
}

/// As [`within_memory`], for work that may compile. Where there is no memory for code, `forget_code` is called first.
///
/// # Errors
/// As [`within_memory`].
pub fn within_memory_and_code<T>(
    ruby: &Ruby,
    forget_code: fn(),
    mut work: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let _before = gvl::for_itself();
    let mut attempt = || {
        room::caught(|| {
            reserve::check();
            work()
        })
        .unwrap_or_else(|error| Err(core(ruby, error)))
    };
    let before = room::changed(false);
    let done = match attempt() {
        Err(error) if room::was_refused() && is_of_memory(ruby, &error) && !room::changed(false) => {
            if room::was_code_refused() {
                forget_code();
            }
            ruby.gc_start();
            let again = attempt();
            // whoever called this need not try, too
            room::was_refused();
            again
        }
        done => done,
    };
    room::changed(before);
    done.map_err(made)
}

/// An error whose exception exists. magnus makes it otherwise when nothing can be returned any more, and ends the
/// process where Thread#kill arrives while it is made.
fn made(error: Error) -> Error {
    let ErrorType::Error(class, message) = error.error_type() else { return error };
    class.new_instance((message.as_ref(),)).map_or_else(|arrived| arrived, Exception::into)
}

/// Whether it may be that memory ended: not what Ruby raised for another reason, such as an interrupt.
fn is_of_memory(ruby: &Ruby, error: &Error) -> bool {
    matches!(error.error_type(), ErrorType::Error(..)) || error.is_kind_of(ruby.exception_no_mem_error())
}

/// A block whose source cannot be had, as an exception.
pub fn source(ruby: &Ruby, failure: Failure) -> Error {
    match failure {
        Failure::Ruby(error) => error,
        Failure::Unsupported(diagnostic) => core(ruby, CoreError::Unsupported(diagnostic)),
        Failure::NoSource(message) => new(ruby, "Ikra::CompileError", message),
    }
}

/// FrozenError as Ruby words it.
pub fn frozen(_ruby: &Ruby, object: Value) -> Error {
    // SAFETY: `object` is alive; `protect` catches what is raised, which is the point.
    #[allow(unsafe_code)]
    let raised = protect(|| unsafe { rb_sys::rb_error_frozen_object(object.as_raw()) });
    raised.expect_err("rb_error_frozen_object raises")
}

/// A captured Integer left 64 bits.
pub fn accumulated_overflow(ruby: &Ruby, name: &str) -> Error {
    new(ruby, "Ikra::IntegerOverflow", format!("`{name}` becomes an Integer beyond 64 bits"))
}

/// A section of some elements depends on the others (`lib/ikra/lazy/streamed.rb`).
pub fn needs_all(ruby: &Ruby) -> Error {
    new(ruby, "Ikra::NeedsAll", "a section that needs all elements at once".into())
}

/// The sum of a group left 64 bits.
pub fn group_overflow(ruby: &Ruby) -> Error {
    new(ruby, "Ikra::IntegerOverflow", "the sum of a group is an Integer beyond 64 bits".into())
}

/// What Ruby raised for the contribution of an element to a captured variable, `left operator right`.
pub fn of_contribution(
    ruby: &Ruby,
    error: Error,
    (left, operator): (Value, &str),
    (path, line): (&str, u32),
    index: usize,
) -> Error {
    let Some(exception) = error.value().and_then(Exception::from_value) else { return error };
    if !exception.is_kind_of(ruby.exception_standard_error()) {
        return error;
    }
    let located = || -> Result<Exception, Error> {
        let mut exception = exception;
        if exception.is_kind_of(class(ruby, "NoMethodError")?) {
            // one may have none, for which it raises
            let ask = || exception.funcall::<_, _, Value>("receiver", ());
            let receiver = question::own(ruby, ruby.exception_arg_error(), ask)?.given();
            let name: Value = exception.funcall("name", ())?;
            let is_name = || symbol_name(name).is_ok_and(|name| name == operator);
            if receiver.is_some_and(|receiver| receiver.as_raw() == left.as_raw()) && is_name() {
                // anew, because Ruby would show the line of Ikra's own that made the call
                exception = no_method_error(ruby, left.as_raw(), operator, false)?;
            }
        }
        locate(ruby, exception, (path, line), index as u64, 0)
    };
    located().map_or_else(|error| error, Into::into)
}

/// What Ruby raised when a captured Hash was updated. Where one of Ruby's own methods raised for Ikra, the error has
/// the line of the update.
pub fn of_update(ruby: &Ruby, error: Error, (path, line): (&str, u32)) -> Error {
    let Some(exception) = error.value().and_then(Exception::from_value) else { return error };
    if !exception.is_kind_of(ruby.exception_standard_error()) {
        return error;
    }
    let located = || -> Result<Exception, Error> {
        let raised: Option<Vec<String>> = exception.funcall("backtrace", ())?;
        if !raised.is_some_and(|frames| frames.first().is_some_and(|frame| is_library(frame))) {
            return Ok(exception);
        }
        let mut exception = exception;
        if exception.class().as_raw() == class(ruby, "NoMethodError")?.as_raw() {
            let ask = || exception.funcall::<_, _, Value>("receiver", ());
            let receiver = question::own(ruby, ruby.exception_arg_error(), ask)?.given();
            let name: Value = exception.funcall("name", ())?;
            if let Some(receiver) = receiver {
                // anew, because Ruby would show the line of Ikra's own that made the call
                exception = no_method_error(ruby, receiver.as_raw(), &symbol_name(name)?, false)?;
            }
        }
        let mut frames = if is_ours(path) { vec![] } else { vec![format!("{path}:{line}")] };
        frames.extend(backtrace(ruby)?);
        exception.funcall::<_, _, Value>("set_backtrace", (frames,))?;
        Ok(exception)
    };
    located().map_or_else(|error| error, Into::into)
}

/// Two elements touched one slot in one tick.
pub fn race(ruby: &Ruby, program: &Program, record: &TrapRecord) -> Error {
    let [place, index, column, how] = record.words;
    let (first, second) = (&program.sites[place as usize], &program.sites[record.site.index()]);
    let [before, now] = Races::words(how as i64);
    let column = &program.columns[column as usize];
    let written = if let Space::Array(_) = column.space { "an element of an array" } else { &column.name };
    let message = format!(
        "{} is {before} by element {index} (at {}:{}) and {now} by element {} (at {}:{}) in tick {}\n\nReason: elements run at the \
         same time, so which of them comes first is not known\nInstead: let each element write what it alone owns, add with += \
         only, or give the values as pmap's results",
        written,
        first.path,
        first.line,
        record.key.index(),
        second.path,
        second.line,
        record.key.tick(),
    );
    let made = || class(ruby, "Ikra::RaceError")?.new_instance((message,));
    let located = made().and_then(|exception: Exception| {
        let mut frames = vec![format!("{}:{}", second.path, second.line)];
        frames.extend(backtrace(ruby)?);
        ikra(ruby)?.funcall::<_, _, Value>("__locate", (exception, record.key.index(), record.key.tick(), frames))?;
        Ok(exception)
    });
    match located {
        Ok(exception) => exception.into(),
        Err(error) => error,
    }
}

/// The exception that an element raised.
pub fn trapped(ruby: &Ruby, site: &Site, operands: &[Raw], key: Key) -> Error {
    let located = exception(ruby, site, operands)
        .and_then(|exception| locate(ruby, exception, (&site.path, site.line), key.index(), key.tick()));
    match located {
        Ok(exception) => exception.into(),
        Err(error) => error,
    }
}

/// Tells an exception where an element raised it.
fn locate(
    ruby: &Ruby,
    exception: Exception,
    (path, line): (&str, u32),
    index: u64,
    tick: u64,
) -> Result<Exception, Error> {
    // what is no line of the program's speaks for the one that called
    let mut frames = if is_ours(path) { vec![] } else { vec![format!("{path}:{line}")] };
    frames.extend(backtrace(ruby)?);
    ikra(ruby)?.funcall::<_, _, Value>("__locate", (exception, index, tick, frames))?;
    Ok(exception)
}

/// Whether a path is of Ikra's own Ruby code, or of a text that it made.
fn is_ours(path: &str) -> bool {
    path.starts_with("<internal:") || LIBRARY.get().is_some_and(|library| path.starts_with(library.as_str()))
}

fn exception(ruby: &Ruby, site: &Site, operands: &[Raw]) -> Result<Exception, Error> {
    let operand = operands.first().copied().unwrap_or(heap::NIL);
    let made = |name: &str, message: String| class(ruby, name)?.new_instance((message,));
    match &site.trap {
        Trap::ZeroDivision => made("ZeroDivisionError", "divided by 0".into()),
        Trap::IntegerOverflow(operation) => {
            made("Ikra::IntegerOverflow", format!("{operation} gives an Integer beyond 64 bits"))
        }
        Trap::NoMethod { name, bare, .. } => no_method_error(ruby, operand, name, *bare),
        Trap::Race => made("Ikra::RaceError", "a data race".into()),
        Trap::Missing => {
            let name = operands.get(1).map_or(Ok(String::new()), |name| symbol_name(value(*name)))?;
            no_method_error(ruby, operand, &name, false)
        }
        Trap::NoSuper(name) => no_super(ruby, value(operand), name),
        Trap::KeyMissing => {
            let key = value(operands.get(1).copied().unwrap_or(heap::NIL));
            let keywords = magnus::kwargs!(ruby, "receiver" => value(operand), "key" => key);
            class(ruby, "KeyError")?.funcall("new", (format!("key not found: {}", shown(key)?), keywords))
        }
        Trap::IndexTooSmall => {
            let shown = |i: usize| operands.get(i).map_or_else(|| Ok(String::new()), |o| shown(value(*o)));
            let (index, least) = (shown(0)?, shown(1)?);
            made("IndexError", format!("index {index} too small for array; minimum: {least}"))
        }
        Trap::Name { message, name } => {
            let name = ruby.to_symbol(name.as_ref());
            class(ruby, "NameError")?.new_instance((message.as_str(), name))
        }
        Trap::Frozen => {
            let error = frozen(ruby, value(operand));
            let own = error.is_kind_of(ruby.exception_frozen_error());
            error.value().and_then(Exception::from_value).filter(|_| own).ok_or(error)
        }
        Trap::FloatDomain => made("FloatDomainError", value(operand).funcall("to_s", ())?),
        Trap::OutOfRange => {
            let Seen::Float(float) = heap::see(operand) else { return Err(internal(ruby, "a Float that is none")) };
            made("RangeError", ikra_core::ir::out_of_range(float))
        }
        Trap::Raise { class, message } => made(class, message.clone()),
        Trap::Limit { class, before, after } if operands.is_empty() => made(class, format!("{before}{after}")),
        Trap::Describe { class, before, after } => {
            let what = match heap::see(operand) {
                Seen::Nil => "nil".into(),
                Seen::True => "true".into(),
                Seen::False => "false".into(),
                _ => class_name(value(operand)),
            };
            made(class, format!("{before}{what}{after}"))
        }
        Trap::Limit { class, before, after } | Trap::Mention { class, before, after } => {
            let what = match heap::see(operand) {
                Seen::Nil | Seen::True | Seen::False | Seen::Int(_) | Seen::Float(_) | Seen::Symbol => {
                    shown(value(operand))?
                }
                _ => class_name(value(operand)),
            };
            made(class, format!("{before}{what}{after}"))
        }
        Trap::New(new) => new_exception(ruby, new, operands),
        Trap::StackOverflow => made("SystemStackError", "stack level too deep".into()),
        Trap::Break | Trap::Refuted(_) | Trap::Grow(_) => Err(internal(ruby, "a trap that raises nothing")),
    }
}

/// What the program raises: Ruby makes it, as where it is raised.
fn new_exception(ruby: &Ruby, new: &New, operands: &[Raw]) -> Result<Exception, Error> {
    let piece = |piece: &Piece| -> Result<Value, Error> {
        let operand = |at: usize| value(operands.get(at).copied().unwrap_or(heap::NIL));
        let parts = match piece {
            Piece::Value(at) => return Ok(operand(*at)),
            Piece::Text(parts) => parts,
        };
        let mut text = String::new();
        for part in parts {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Value(at) => text.push_str(&operand(*at).funcall::<_, _, String>("to_s", ())?),
                Part::Inspect(at) => text.push_str(&operand(*at).funcall::<_, _, String>("inspect", ())?),
            }
        }
        Ok(ruby.str_new(&text).as_value())
    };
    let args = match &new.args {
        Some(pieces) => {
            let args = ruby.ary_new();
            for each in pieces {
                args.push(piece(each)?)?;
            }
            args.as_value()
        }
        None => ruby.qnil().as_value(),
    };
    let keywords = ruby.hash_new();
    for (name, each) in &new.keywords {
        keywords.aset(ruby.to_symbol(name.as_ref()), piece(each)?)?;
    }
    let message = ruby.ary_new();
    if let Some(each) = &new.message {
        message.push(piece(each)?)?;
    }
    let class = value(classes::get(new.class).raw);
    ikra(ruby)?.funcall("__raised", (class, args, keywords, message))
}

/// The name of an object's class.
pub fn class_name(object: Value) -> String {
    // SAFETY: the name is copied at once.
    #[allow(unsafe_code)]
    unsafe { object.classname() }.into_owned()
}

/// Has Ruby itself raise an exception of a class, and takes it.
fn raised_by(
    ruby: &Ruby,
    class: ExceptionClass,
    raise: impl FnOnce() -> Result<Value, Error>,
) -> Result<Exception, Error> {
    match question::own(ruby, class, raise)? {
        Answer::Raised(error) => error.value().and_then(Exception::from_value).ok_or(error),
        Answer::Given(_) => Err(internal(ruby, "a call that has no receiver in the kernel has one in Ruby")),
    }
}

/// The message without what libraries add to it, which they will add again.
fn plain_message(exception: Exception) -> Result<Value, Error> {
    let mut method: Value = exception.funcall("method", ("to_s",))?;
    loop {
        let owner: Value = method.funcall("owner", ())?;
        let next: Option<Value> = method.funcall("super_method", ())?;
        match next {
            Some(next) if !owner.is_kind_of(Ruby::get_with(exception).class_class()) => method = next,
            _ => return method.funcall("call", ()),
        }
    }
}

/// Calls what no method answers.
fn no_method(ruby: &Ruby, receiver: Value, name: &str, bare: bool) -> Result<Value, Error> {
    if bare {
        let eval: Value =
            ruby.class_object().const_get::<_, Value>("BasicObject")?.funcall("instance_method", ("instance_eval",))?;
        return eval.funcall("bind_call", (receiver, name));
    }
    reflect::public_send().funcall("bind_call", (receiver, ruby.to_symbol(name)))
}

/// NoMethodError or (`bare`) NameError, in Ruby's words.
fn no_method_error(ruby: &Ruby, receiver: Raw, name: &str, bare: bool) -> Result<Exception, Error> {
    let raised = raised_by(ruby, class(ruby, "NameError")?, || no_method(ruby, value(receiver), name, bare))?;
    // anew, because Ruby would show the source line where the call just now was made
    let class: Value = raised.funcall("class", ())?;
    let keywords = magnus::kwargs!(ruby, "receiver" => value(receiver));
    let name = ruby.to_symbol(name);
    match bare {
        true => class.funcall("new", (plain_message(raised)?, name, keywords)),
        false => class.funcall("new", (plain_message(raised)?, name, ruby.ary_new(), keywords)),
    }
}

/// NoMethodError of `super`: Ruby's words for a receiver are those of any other missing method.
fn no_super(ruby: &Ruby, receiver: Value, name: &str) -> Result<Exception, Error> {
    const NOWHERE: &str = "__ikra_nowhere";
    let missing = raised_by(ruby, class(ruby, "NameError")?, || no_method(ruby, receiver, NOWHERE, false))?;
    let message = plain_message(missing)?.to_r_string()?.to_string()?;
    let message = message.replacen("undefined method", "super: no superclass method", 1).replacen(NOWHERE, name, 1);
    let keywords = magnus::kwargs!(ruby, "receiver" => receiver);
    class(ruby, "NoMethodError")?.funcall("new", (message, ruby.to_symbol(name), ruby.ary_new(), keywords))
}

/// Whether a path is of Ikra's own Ruby code, or of text that it makes itself (lib/ikra/mdarray/text.rb).
pub fn is_library(path: &str) -> bool {
    path == "an expression of Ikra::MDArray" || LIBRARY.get().is_some_and(|library| path.starts_with(library.as_str()))
}

/// Where Ruby is now, without Ikra's own frames, and those of methods of Ruby's own that are in Ruby which these call.
fn backtrace(ruby: &Ruby) -> Result<Vec<String>, Error> {
    let frames: RArray = ruby.module_kernel().funcall("caller", (0,))?;
    let frames: Vec<String> = frames.to_vec()?;
    let mut is_own = false;
    let own: Vec<bool> = frames
        .iter()
        .rev()
        .map(|frame| {
            let library = LIBRARY.get().is_some_and(|library| frame.starts_with(library.as_str()));
            is_own = library || is_own && frame.starts_with("<internal:");
            is_own
        })
        .collect();
    let theirs = frames.into_iter().zip(own.into_iter().rev()).filter(|(_, own)| !own);
    Ok(theirs.map(|(frame, _)| frame).collect())
}

/// File and line where a block stands; of one that is in no file of the program's, where that called.
///
/// # Errors
/// What Ruby raises.
pub fn place(ruby: &Ruby, source: &Source) -> Result<(String, u32), Error> {
    if source.is_internal() {
        return caller(ruby);
    }
    Ok((source.path.clone(), source.line_of(source.slice.start as u32)))
}

/// File and line of the user's code that called Ikra.
///
/// # Errors
/// What Ruby raises.
pub fn caller(ruby: &Ruby) -> Result<(String, u32), Error> {
    let frames = backtrace(ruby)?;
    let first = frames.first().map_or("", String::as_str);
    let mut parts = first.splitn(3, ':');
    let path = parts.next().unwrap_or("").to_string();
    let line = parts.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    Ok((path, line))
}
