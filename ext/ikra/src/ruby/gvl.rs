//! Running without the GVL, and what may interrupt it.
//!
//! Here: [`released`], for short stretches of pure Rust, and [`run`], for launches. Ctrl-C, `Timeout`, `Thread#kill`
//! and `Thread#raise` cancel launches. By [`Polls`], long work with the GVL looks at these now and then. By
//! [`Patience`], it ends for them. Not here: what runs.
//!
//! Invariant: no panic crosses a C frame; it is carried to this side and goes on here. No lock is held when the GVL is
//! taken again.
//!
//! Before 3.3 no thread of Ruby's looks at signals while the main thread is away without the GVL and all others rest
//! elsewhere, unless it was alone when it left. So where it is not alone a thread of ours looks ([`Watched`]).
//!
//! A launch is interrupted by its cancel token and ends as cancelled. Most interrupts raise. Where one does not (a
//! `trap` handler that just returns) the launch must run again. The second time it runs on a thread of its own, and
//! only the wait for it is interrupted ([`run_beside`]). So a stream of such signals cannot keep it from ending.
#![allow(unsafe_code, reason = "rb_nogvl takes C functions; see SAFETY at each")]

use crate::ruby::heap;
use crate::ruby::reflect;
use ikra_core::backend::CancelToken;
use ikra_core::locks::{Condvar, Mutex};
use ikra_core::memory::room;
use ikra_core::process;
use magnus::rb_sys::protect;
use magnus::{Error, ExceptionClass, Ruby};
use once_cell::sync::OnceCell;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, Instant};

/// Flags of `rb_nogvl` (thread.h).
const INTERRUPTS_FAIL: i32 = 1;
const UNBLOCK_IS_ASYNC_SAFE: i32 = 2;

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
///
/// # Errors
/// Of a main thread that is alone, with `unblock` that is not safe in signal handlers: what an interrupt raises,
/// whether `work` ran or not.
fn leave<T>(
    unblock: rb_sys::rb_unblock_function_t,
    data: *mut c_void,
    flags: i32,
    work: impl FnOnce() -> T,
) -> Result<Option<T>, Error> {
    fn pointer<F: FnOnce() -> T, T>(_: &Call<F, T>) -> unsafe extern "C" fn(*mut c_void) -> *mut c_void {
        trampoline::<F, T>
    }
    let mut call = Call { work: Some(work), answer: None };
    let function = pointer(&call);
    // SAFETY: `call` and what `data` points to outlive the call; with `INTERRUPTS_FAIL` Ruby raises nothing in it, or
    // it is caught below.
    let mut leave = || unsafe { rb_sys::rb_nogvl(Some(function), (&raw mut call).cast(), unblock, data, flags) };
    let mut left = Ok(heap::NIL);
    if unblock.is_some() && flags & UNBLOCK_IS_ASYNC_SAFE == 0 {
        // from a main thread that is alone Ruby starts another, and waits for its end, where interrupts are looked at
        left = protect(|| {
            leave();
            heap::NIL
        });
    } else {
        leave();
    }
    let answer = match call.answer {
        Some(Ok(answer)) => Some(answer),
        Some(Err(panic)) => resume_unwind(panic),
        None => None,
    };
    match left {
        // it could not be started, and the work did not run
        Err(error) if answer.is_none() && is_of_no_thread(&error) => Ok(None),
        left => left.map(|_| answer),
    }
}

/// Whether an error says that there is no memory, or no thread, to be had.
fn is_of_no_thread(error: &Error) -> bool {
    // SAFETY: classes that live as long as Ruby.
    let classes = unsafe { [rb_sys::rb_eThreadError, rb_sys::rb_eNoMemError] };
    let is_of = |class: heap::Raw| {
        ExceptionClass::from_value(reflect::value(class)).is_some_and(|class| error.is_kind_of(class))
    };
    classes.into_iter().any(is_of)
}

/// Runs `work`, which is short and touches nothing of Ruby's, without the GVL. Interrupts wait; where one is pending
/// already, the GVL is kept.
pub fn released<T>(work: impl FnOnce() -> T) -> T {
    let mut work = Some(work);
    let answer = leave(None, std::ptr::null_mut(), INTERRUPTS_FAIL, || work.take().map(|work| work()));
    match (answer.expect("nothing is raised without a function to unblock"), work) {
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
    let _watched = is_main_of_many().then(|| Watched::new(cancel));
    let data = (&raw const *cancel).cast_mut().cast();
    let answer = leave(Some(unblock), data, INTERRUPTS_FAIL | UNBLOCK_IS_ASYNC_SAFE, work)?;
    if answer.is_none() || cancel.is_cancelled() {
        ruby.thread_check_ints()?;
        return Ok(None);
    }
    Ok(answer)
}

/// Of work that holds the GVL for long: looks at interrupts, and lets other threads run, now and then. Ruby code may
/// run in it, so that what was found out of objects before is void then, and slices of Ruby's heap are.
pub struct Polls {
    calls: Cell<u32>,
    looked: Cell<Instant>,
    let_others: Cell<Instant>,
    ran: Cell<bool>,
    never: bool,
}

impl Polls {
    /// So often somebody asks for the time.
    const CALLS: u32 = 64;
    const LOOK: Duration = Duration::from_millis(5);
    /// Others that compute for long take turns of Ruby's length, 100 ms.
    const LET_OTHERS: Duration = Duration::from_millis(40);

    pub fn new() -> Self {
        let now = Instant::now();
        let (looked, let_others) = (Cell::new(now), Cell::new(now));
        Self { calls: Cell::new(0), looked, let_others, ran: Cell::new(false), never: false }
    }
    /// For work that nothing may come between.
    pub fn never() -> Self {
        Self { never: true, ..Self::new() }
    }
    /// Whether something may come between.
    pub fn may_end(&self) -> bool {
        !self.never
    }
    /// Whether Ruby code may have run since the last time that somebody asked.
    pub fn ran(&self) -> bool {
        self.ran.replace(false)
    }
    /// After some hundred nanoseconds of work.
    ///
    /// # Errors
    /// What an interrupt raises.
    #[inline]
    pub fn look(&self, ruby: &Ruby) -> Result<(), Error> {
        let calls = self.calls.get().wrapping_add(1);
        self.calls.set(calls);
        if calls.is_multiple_of(Self::CALLS) { self.look_now(ruby) } else { Ok(()) }
    }
    /// After more work than that.
    ///
    /// # Errors
    /// What an interrupt raises.
    pub fn look_now(&self, ruby: &Ruby) -> Result<(), Error> {
        let now = Instant::now();
        if self.never || now.saturating_duration_since(self.looked.get()) < Self::LOOK {
            return Ok(());
        }
        self.ran.set(true);
        if !is_alone() && now.saturating_duration_since(self.let_others.get()) >= Self::LET_OTHERS {
            // SAFETY: called by a Ruby thread with the GVL; what is raised is caught.
            protect(|| unsafe {
                rb_sys::rb_thread_schedule();
                heap::NIL
            })?;
            self.let_others.set(Instant::now());
        }
        ruby.thread_check_ints()?;
        self.looked.set(Instant::now());
        Ok(())
    }
}

/// Of work that holds the GVL and slices of Ruby's heap, so that no Ruby code may run. It ends where an interrupt
/// waits, or another thread that may be about to make one. It begins anew once Ruby code has run
/// ([`Patience::let_run`]). It changes nothing but what is its own, and unwinds, as where memory ends: it asks in the
/// middle of loops ([`poll`]).
///
/// Signals, and what other threads did before, are found by a flag. But a thread that is to raise something, as that of
/// `Timeout`, needs the GVL for it. The work may not give that away in the middle: everything would have to begin anew,
/// whether a thread comes or not. A thread that wakes up computes before it waits for the GVL; so what others have
/// computed is asked for.
pub struct Patience {
    /// The clocks of other Ruby threads, and how far they were.
    others: RefCell<Vec<Other>>,
    began: Cell<Instant>,
    looked: Cell<Instant>,
    looked_at_others: Cell<Instant>,
    /// Nobody looks before: signals whose handler just returns, and threads that compute all the time, must not keep it
    /// from ever ending.
    quiet: Cell<Duration>,
}

/// The clock of another thread, and how far it was when somebody looked. No clock: it has not begun, and waits for the
/// GVL.
type Other = (Option<i32>, Option<Duration>);

/// What it unwinds with.
struct Interrupted;

thread_local! {
    /// What this thread is at, if that may end.
    static AT: Cell<*const Patience> = const { Cell::new(std::ptr::null()) };
}

/// Ends the work that this thread is at where something waits; after some microseconds of it.
#[inline]
pub fn poll() {
    let at = AT.get();
    if !at.is_null() {
        // SAFETY: `Patience::attempt` is below on this stack, and has it.
        unsafe { (*at).look() }
    }
}

/// What a thread was at before.
pub struct Before(*const Patience);

impl Drop for Before {
    fn drop(&mut self) {
        AT.set(self.0);
    }
}

/// Ruby code that such work calls may come back to Ikra: what that does, up to the end of what is given here, does not
/// end.
pub fn for_itself() -> Before {
    Before(AT.replace(std::ptr::null()))
}

/// Whether the work that this thread is at may end.
pub fn may_end() -> bool {
    !AT.get().is_null()
}

impl Patience {
    const LOOK: Duration = Duration::from_millis(5);
    const LOOK_AT_OTHERS: Duration = Duration::from_millis(20);
    /// Nobody looks for so long after the first time that it ended.
    const QUIET: Duration = Duration::from_millis(80);
    /// After each further time, nobody looks for so many times as long. So the work takes half as long again at most.
    const QUIET_FACTOR: u32 = 4;

    /// `long`: it may take so long that other threads matter.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn new(ruby: &Ruby, long: bool) -> Result<Self, Error> {
        let now = Instant::now();
        let others = if !long || is_alone() { Vec::new() } else { clocks_of_others(ruby)? };
        Ok(Self {
            others: RefCell::new(others),
            began: Cell::new(now),
            looked: Cell::new(now),
            looked_at_others: Cell::new(now),
            quiet: Cell::default(),
        })
    }

    /// Work that may end; None where it did.
    pub fn attempt<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let before = Before(AT.replace(self));
        let done = catch_unwind(AssertUnwindSafe(work));
        drop(before);
        match done {
            Ok(done) => Some(done),
            Err(panic) if panic.is::<Interrupted>() => None,
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Lets other threads and interrupts run, before it begins anew.
    ///
    /// # Errors
    /// What an interrupt raises.
    pub fn let_run(&self, ruby: &Ruby) -> Result<(), Error> {
        if !is_alone() {
            // SAFETY: called by a Ruby thread with the GVL; what is raised is caught.
            protect(|| unsafe {
                rb_sys::rb_thread_schedule();
                heap::NIL
            })?;
        }
        ruby.thread_check_ints()?;
        self.quiet.set((self.quiet.get() * Self::QUIET_FACTOR).max(Self::QUIET));
        let now = Instant::now();
        self.began.set(now);
        self.looked.set(now);
        self.looked_at_others.set(now);
        let others = if is_alone() { Vec::new() } else { clocks_of_others(ruby)? };
        *self.others.borrow_mut() = others;
        Ok(())
    }

    fn look(&self) {
        let now = Instant::now();
        if now.saturating_duration_since(self.looked.get()) < Self::LOOK {
            return;
        }
        self.looked.set(now);
        if now.saturating_duration_since(self.began.get()) < self.quiet.get() {
            return;
        }
        // SAFETY: called by a Ruby thread with the GVL; it reads two words of the thread's.
        let waits = unsafe { rb_sys::rb_thread_interrupted(rb_sys::rb_thread_current()) != 0 };
        if waits || self.others_woke(now) {
            resume_unwind(Box::new(Interrupted));
        }
    }

    /// Whether another thread computed since somebody looked.
    fn others_woke(&self, now: Instant) -> bool {
        let mut others = self.others.borrow_mut();
        // one that went to sleep just before has computed, too: the first look only says how far they are
        let is_first = others.first().is_some_and(|(_, known)| known.is_none());
        if others.is_empty()
            || !is_first && now.saturating_duration_since(self.looked_at_others.get()) < Self::LOOK_AT_OTHERS
        {
            return false;
        }
        self.looked_at_others.set(now);
        let mut woke = false;
        for (clock, known) in others.iter_mut() {
            let now = clock.map_or(Duration::MAX, computed);
            woke |= clock.is_none() && known.is_some();
            woke |= known.is_some_and(|known| now > known);
            *known = Some(now);
        }
        woke
    }
}

/// How long the thread of a clock has computed; nothing where it is gone.
#[cfg(target_os = "linux")]
fn computed(clock: i32) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it fills in what it is given.
    let known = unsafe { libc::clock_gettime(clock, &raw mut time) } == 0;
    if known { Duration::new(time.tv_sec as u64, time.tv_nsec as u32) } else { Duration::ZERO }
}

#[cfg(not(target_os = "linux"))]
fn computed(_: i32) -> Duration {
    Duration::ZERO
}

/// The clocks of all Ruby threads but this one; none where the system has no such clocks.
fn clocks_of_others(ruby: &Ruby) -> Result<Vec<Other>, Error> {
    if !cfg!(target_os = "linux") {
        return Ok(Vec::new());
    }
    // the kernel's name for the clock of a thread by its number (CPUCLOCK_PERTHREAD, CPUCLOCK_SCHED), as
    // pthread_getcpuclockid makes it
    let other = |number: Option<i32>| (number.map(|number| (!number << 3) | 6), None);
    Ok(reflect::other_threads(ruby)?.into_iter().map(other).collect())
}

/// How soon a signal is seen.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Whether a signal waits for the main thread; None for a Ruby that does not say. Ruby exports the function, but for no
/// header, so that a later one may lack it.
fn signal_waits() -> Option<bool> {
    let ask = SIGNALS.ask.get_or_init(|| {
        // SAFETY: the name ends in a zero.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"rb_thread_check_trap_pending".as_ptr()) };
        // SAFETY: in every Ruby that has it, it takes nothing and answers an int.
        (!found.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Ask>(found) })
    });
    // SAFETY: it reads one atomic counter, from any thread.
    ask.map(|ask| unsafe { ask() } != 0)
}

/// Whether no other thread can run Ruby code, whoever has the GVL.
pub fn is_alone() -> bool {
    // SAFETY: called by a Ruby thread with the GVL.
    unsafe { rb_sys::rb_thread_alone() != 0 }
}

fn is_main_of_many() -> bool {
    // SAFETY: called by a Ruby thread with the GVL.
    unsafe { rb_sys::rb_thread_alone() == 0 && rb_sys::rb_thread_current() == rb_sys::rb_thread_main() }
}

/// The launches of one process that are watched. Leaked: its lock may be taken at a `fork`, so a child makes its own.
struct Watch {
    process: u32,
    tokens: Mutex<Vec<Token>>,
    changed: Condvar,
}

struct Token(*const CancelToken);

// SAFETY: the token is atomic, and alive as long as it is in the list: `Watched` takes it out under the lock.
unsafe impl Send for Token {}

type Ask = unsafe extern "C" fn() -> i32;

/// How signals are noticed in this process.
struct Signals {
    /// `rb_thread_check_trap_pending`, where this Ruby exports it.
    ask: OnceCell<Option<Ask>>,
    /// Null as long as no launch was watched.
    watch: AtomicPtr<Watch>,
}

static SIGNALS: Signals = Signals { ask: OnceCell::new(), watch: AtomicPtr::new(std::ptr::null_mut()) };

impl Watch {
    /// This process's, with its thread. Called with the GVL held, so by one thread at a time.
    fn of_this_process() -> &'static Self {
        let now = process::id();
        // SAFETY: null, or leaked by this function.
        let known = unsafe { SIGNALS.watch.load(Ordering::Acquire).as_ref() };
        if let Some(known) = known
            && known.process == now
        {
            return known;
        }
        let new = Box::leak(Box::new(Self { process: now, tokens: Default::default(), changed: Default::default() }));
        SIGNALS.watch.store(new, Ordering::Release);
        let new: &'static Self = new;
        // without the thread signals wait for the launch's end, as they would without all this
        let _ = std::thread::Builder::new().name("ikra signals".into()).spawn(|| new.watch());
        new
    }

    fn tokens(&self) -> MutexGuard<'_, Vec<Token>> {
        self.tokens.lock()
    }

    fn watch(&self) {
        let mut tokens = self.tokens();
        loop {
            if tokens.is_empty() {
                tokens = self.changed.wait(tokens);
                continue;
            }
            let (held, late) = self.changed.wait_for(tokens, LOOK_EVERY);
            tokens = held;
            if late && signal_waits() == Some(true) {
                for token in tokens.iter() {
                    // SAFETY: in the list, so alive.
                    unsafe { (*token.0).cancel() };
                }
            }
        }
    }
}

/// A launch of the main thread whose token is cancelled when a signal waits.
struct Watched {
    by: &'static Watch,
    token: *const CancelToken,
}

impl Watched {
    fn new(cancel: &CancelToken) -> Self {
        let by = Watch::of_this_process();
        by.tokens().push(Token(cancel));
        by.changed.notify_all();
        Self { by, token: cancel }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.by.tokens().retain(|token| token.0 != self.token);
    }
}

#[derive(Default)]
struct Beside {
    state: Mutex<WaitState>,
    changed: Condvar,
}

#[derive(Default)]
struct WaitState {
    finished: bool,
    interrupted: bool,
}

/// Stack of a thread that a launch has for itself; what recurses has other threads.
const BESIDE_STACK: usize = 2 << 20;

/// Runs a launch on a thread of its own. Interrupts are looked at while it runs on; one that raises cancels it.
///
/// # Errors
/// What an interrupt raises, once the launch has ended.
pub fn run_beside<T: Send>(ruby: &Ruby, cancel: &CancelToken, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
    unsafe extern "C" fn unblock(data: *mut c_void) {
        // SAFETY: `Beside` outlives the call that this unblocks.
        let waiting = unsafe { &*data.cast::<Beside>() };
        waiting.state.lock().interrupted = true;
        waiting.changed.notify_all();
    }
    let waiting = Beside::default();
    let work = Mutex::new(Some(work));
    std::thread::scope(|scope| {
        let own = || {
            let answer = work.lock().take().map(|work| catch_unwind(AssertUnwindSafe(work)));
            waiting.state.lock().finished = true;
            waiting.changed.notify_all();
            answer
        };
        // the C library ends a process whose new thread has no memory for its own data
        let has_room = room::is_there(2 * BESIDE_STACK);
        let builder = std::thread::Builder::new().name("ikra beside".into()).stack_size(BESIDE_STACK);
        let thread = if has_room { builder.spawn_scoped(scope, own).ok() } else { None };
        let Some(thread) = thread else {
            // without a thread interrupts wait until it has ended
            let work = work.lock().take();
            return Ok(released(work.unwrap_or_else(|| unreachable!("no thread took it"))));
        };
        let mut raised = None;
        loop {
            let data = (&raw const waiting).cast_mut().cast();
            let finished = leave(Some(unblock), data, INTERRUPTS_FAIL, || {
                let mut state = waiting.state.lock();
                while !state.finished && !state.interrupted {
                    let late;
                    (state, late) = waiting.changed.wait_for(state, LOOK_EVERY);
                    if late && signal_waits() != Some(false) {
                        break;
                    }
                }
                state.interrupted = false;
                state.finished
            });
            let (finished, interrupted) = match finished {
                Ok(finished) => (finished, Ok(())),
                Err(error) => (None, Err(error)),
            };
            // an interrupt may wait each time that the GVL is to be left: under GC.stress, finalizers do
            if interrupted.is_ok() && (finished == Some(true) || waiting.state.lock().finished) {
                break;
            }
            if let Err(error) = interrupted.and_then(|()| ruby.thread_check_ints()) {
                raised = Some(error);
                cancel.cancel();
                released(|| {
                    let mut state = waiting.state.lock();
                    while !state.finished {
                        state = waiting.changed.wait(state);
                    }
                });
                break;
            }
            if finished.is_none() {
                // where Ruby cannot have this wait interrupted it is a short one
                released(|| {
                    let state = waiting.state.lock();
                    if !state.finished {
                        drop(waiting.changed.wait_for(state, LOOK_EVERY));
                    }
                });
            }
        }
        let answer = match thread.join() {
            Ok(Some(Ok(answer))) => answer,
            Ok(Some(Err(panic))) | Err(panic) => resume_unwind(panic),
            Ok(None) => unreachable!("the thread took the work"),
        };
        raised.map_or(Ok(answer), Err)
    })
}
