//! Running without the GVL, and what may interrupt it.
//!
//! Here: [`released`], for short stretches of pure Rust, and [`run`], for launches: Ctrl-C, `Timeout`, `Thread#kill` and
//! `Thread#raise` cancel them. Not here: what runs.
//! Invariant: no panic crosses a C frame; it is carried to this side and goes on here. No lock is held when the GVL is
//! taken again.
//!
//! A launch is interrupted by its cancel token and ends as cancelled. Most interrupts raise. Where one does not (a `trap`
//! handler that just returns) the launch must run again; so that a stream of such signals cannot keep it from ever
//! ending, the second time it runs on a thread of its own, and only the wait for it is interrupted ([`run_beside`]).
#![allow(unsafe_code, reason = "rb_nogvl takes C functions; see SAFETY at each")]

use ikra_core::backend::CancelToken;
use magnus::prelude::*;
use magnus::{Error, RArray, RClass, Ruby};
use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

/// Flags of `rb_nogvl` (thread.h).
const INTERRUPTS_FAIL: i32 = 1;
const UNBLOCK_IS_ASYNC_SAFE: i32 = 2;

/// How often a thread that waits for a launch looks for signals by itself. Ruby calls an unblock function for a signal
/// only while some thread waits for signals, or no other thread lives.
const LOOK: Duration = Duration::from_millis(50);

/// Whether other Ruby threads live: then a signal may not unblock this one, and launches run beside it.
///
/// # Errors
/// What `Thread.list` raises.
pub fn others_live(ruby: &Ruby) -> Result<bool, Error> {
    let thread: RClass = ruby.class_object().const_get("Thread")?;
    Ok(thread.funcall::<_, _, RArray>("list", ())?.len() > 1)
}

type Answer<T> = Result<T, Box<dyn Any + Send>>;

struct Call<F, T> {
    work: Option<F>,
    answer: Option<Answer<T>>,
}

unsafe extern "C" fn trampoline<F: FnOnce() -> T, T>(data: *mut c_void) -> *mut c_void {
    // SAFETY: `data` is the `Call` on the stack of `leave`, which waits for this function.
    let call = unsafe { &mut *data.cast::<Call<F, T>>() };
    if let Some(work) = call.work.take() {
        call.answer = Some(catch_unwind(AssertUnwindSafe(work)));
    }
    std::ptr::null_mut()
}

/// Runs `work` without the GVL; None if an interrupt was pending, and it did not run.
fn leave<T>(
    unblock: rb_sys::rb_unblock_function_t,
    data: *mut c_void,
    flags: i32,
    work: impl FnOnce() -> T,
) -> Option<T> {
    fn pointer<F: FnOnce() -> T, T>(_: &Call<F, T>) -> unsafe extern "C" fn(*mut c_void) -> *mut c_void {
        trampoline::<F, T>
    }
    let mut call = Call { work: Some(work), answer: None };
    let function = pointer(&call);
    // SAFETY: `call` and what `data` points to outlive the call; with `INTERRUPTS_FAIL` Ruby raises nothing in it.
    unsafe { rb_sys::rb_nogvl(Some(function), (&raw mut call).cast(), unblock, data, flags) };
    match call.answer? {
        Ok(answer) => Some(answer),
        Err(panic) => resume_unwind(panic),
    }
}

/// Runs `work`, which is short and touches nothing of Ruby's, without the GVL. Interrupts wait; where one is pending
/// already, the GVL is kept.
pub fn released<T>(work: impl FnOnce() -> T) -> T {
    let mut work = Some(work);
    let answer = leave(None, std::ptr::null_mut(), INTERRUPTS_FAIL, || work.take().map(|work| work()));
    match (answer, work) {
        (Some(Some(answer)), _) => answer,
        (_, Some(work)) => work(),
        _ => unreachable!("work that was taken gave an answer"),
    }
}

/// Runs a launch without the GVL; an interrupt cancels its token. None: it has to run again, beside.
///
/// # Errors
/// What the interrupt raises.
pub fn run<T>(ruby: &Ruby, cancel: &CancelToken, work: impl FnOnce() -> T) -> Result<Option<T>, Error> {
    unsafe extern "C" fn unblock(data: *mut c_void) {
        // SAFETY: the token outlives the call that this unblocks; storing to an atomic is safe anywhere.
        unsafe { (*data.cast::<CancelToken>()).cancel() };
    }
    let data = (&raw const *cancel).cast_mut().cast();
    let answer = leave(Some(unblock), data, INTERRUPTS_FAIL | UNBLOCK_IS_ASYNC_SAFE, work);
    if answer.is_none() || cancel.is_cancelled() {
        ruby.thread_check_ints()?;
        return Ok(None);
    }
    Ok(answer)
}

#[derive(Default)]
struct Waiting {
    state: Mutex<WaitState>,
    changed: Condvar,
}

#[derive(Default)]
struct WaitState {
    finished: bool,
    interrupted: bool,
}

/// Runs a launch on a thread of its own. Interrupts are looked at while it runs on; one that raises cancels it.
///
/// # Errors
/// What an interrupt raises, once the launch has ended.
pub fn run_beside<T: Send>(ruby: &Ruby, cancel: &CancelToken, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    unsafe extern "C" fn unblock(data: *mut c_void) {
        // SAFETY: `Waiting` outlives the call that this unblocks.
        let waiting = unsafe { &*data.cast::<Waiting>() };
        waiting.state.lock().interrupted = true;
        waiting.changed.notify_all();
    }
    let waiting = Waiting::default();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let answer = catch_unwind(AssertUnwindSafe(work));
            waiting.state.lock().finished = true;
            waiting.changed.notify_all();
            answer
        });
        let mut raised = None;
        loop {
            let data = (&raw const waiting).cast_mut().cast();
            let finished = leave(Some(unblock), data, INTERRUPTS_FAIL, || {
                let mut state = waiting.state.lock();
                while !state.finished && !state.interrupted {
                    if waiting.changed.wait_for(&mut state, LOOK).timed_out() {
                        break;
                    }
                }
                state.interrupted = false;
                state.finished
            });
            if finished == Some(true) {
                break;
            }
            if let Err(error) = ruby.thread_check_ints() {
                raised = Some(error);
                cancel.cancel();
                released(|| {
                    let mut state = waiting.state.lock();
                    while !state.finished {
                        waiting.changed.wait(&mut state);
                    }
                });
                break;
            }
        }
        let answer = match thread.join() {
            Ok(Ok(answer)) => answer,
            Ok(Err(panic)) | Err(panic) => resume_unwind(panic),
        };
        raised.map_or(Ok(answer), Err)
    })
}
