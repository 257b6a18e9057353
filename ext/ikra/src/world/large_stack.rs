//! A large enough stack for the compiler.
//!
//! Here: [`alone`] and [`asking`], which run a part of the compiler on a thread of its own where the caller's stack is
//! small. Not here: the compiler, and launches ([`crate::ruby::gvl`]).
//!
//! The compiler recurses over expressions, which may nest 400 deep. Ruby's main thread has 8 MiB for that. Its other
//! threads have 1 MiB, and a Fiber a quarter of it. Ruby itself cannot run on another stack, because its GC looks for
//! objects only on the stacks that it knows. But the compiler uses nothing of Ruby's. It asks a [`World`], and its
//! questions are handed back to the caller's thread, which waits for them with the GVL ([`Remote`]).
#![allow(unsafe_code, reason = "what is handed over is not Send; see SAFETY at each")]

use ikra_core::error::Result as CoreResult;
use ikra_core::id::{ArrayKind, ClassId, MethodId, ScopeId};
use ikra_core::locks::{Condvar, Mutex};
use ikra_core::regexp::RegexpSource;
use ikra_core::syntax::ast::Name;
use ikra_core::unicode::Unicode;
use ikra_core::world::{
    ClassInfo, ConstId, Construction, Derivation, Facts, MethodFact, MethodSource, Opaque, Outside, Receiver, Root,
    World,
};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

/// The most stack that the compiler needs. Where less is left, it gets a stack of its own.
const NEEDED: usize = 6 << 20;
/// The size of that stack. Only what is used takes memory.
const STACK: usize = 32 << 20;

/// A value that one thread hands to another.
struct Handed<T>(T);

// SAFETY: of the two threads that have it, one always waits for the other. The lock of `Exchange`, or the join of the
// thread, orders what they do. Nothing that is handed over belongs to a thread: the compiler has no thread-local
// variables.
unsafe impl<T> Send for Handed<T> {}

impl<T> Handed<T> {
    fn get(self) -> T {
        self.0
    }
}

/// Lowest and highest address of this thread's stack, as the operating system made it. A Fiber runs elsewhere.
fn stack() -> Option<(usize, usize)> {
    thread_local! {
        static STACK: Option<(usize, usize)> = bounds();
    }
    STACK.with(|stack| *stack)
}

#[cfg(target_os = "linux")]
fn bounds() -> Option<(usize, usize)> {
    // SAFETY: the functions fill in their arguments. The attributes are destroyed after they were made.
    unsafe {
        let mut attributes = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return None;
        }
        let (mut lowest, mut size) = (std::ptr::null_mut(), 0);
        let failed = libc::pthread_attr_getstack(&raw const attributes, &raw mut lowest, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
        (failed == 0).then_some((lowest as usize, lowest as usize + size))
    }
}

#[cfg(not(target_os = "linux"))]
fn bounds() -> Option<(usize, usize)> {
    None
}

/// Whether enough of the stack is left.
fn is_roomy() -> bool {
    let mark = 0u8;
    let at = (&raw const mark) as usize;
    stack().is_some_and(|(lowest, highest)| (lowest..highest).contains(&at) && at - lowest >= NEEDED)
}

/// Runs work that asks no questions.
pub fn alone<T>(work: impl FnOnce() -> T) -> T {
    if is_roomy() {
        return work();
    }
    elsewhere(work, || ()).unwrap_or_else(|work| work())
}

/// Runs work that asks a world. Its questions are answered on this thread.
pub fn asking<T>(world: &mut dyn World, work: impl FnOnce(&mut dyn World) -> T) -> T {
    if is_roomy() {
        return work(world);
    }
    let exchange = Exchange::default();
    let mut work = Some(work);
    let remote = || {
        let _over = Over(&exchange);
        work.take().map(|work| work(&mut Remote { exchange: &exchange }))
    };
    let answer = elsewhere(remote, || exchange.serve(world)).ok().flatten();
    match (answer, work) {
        (Some(answer), _) => answer,
        (None, Some(work)) => work(world),
        (None, None) => unreachable!("work that was taken gave an answer"),
    }
}

/// Runs work on a thread with a large stack, and `meanwhile` on this one. Gives the work back where the system gives no
/// thread; `meanwhile` does not run then.
fn elsewhere<T, W: FnOnce() -> T>(work: W, meanwhile: impl FnOnce()) -> Result<T, W> {
    let mut work = Some(work);
    let handed = Handed(&mut work);
    let answer = thread::scope(|scope| {
        let run = move || Handed(handed.get().take().map(|work| work()));
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run).ok()?;
        meanwhile();
        match thread.join() {
            Ok(answer) => answer.get(),
            Err(panic) => resume_unwind(panic),
        }
    });
    match (answer, work) {
        (Some(answer), _) => Ok(answer),
        (None, Some(work)) => Err(work),
        (None, None) => unreachable!("work that was taken gave an answer"),
    }
}

/// A question. It lives on the stack of the thread that asks, until it is answered.
type Question<'q> = &'q mut dyn FnMut(&mut dyn World);
/// The address of a question.
type QuestionAt = *mut dyn FnMut(&mut dyn World);

#[derive(Default)]
enum State {
    #[default]
    Nothing,
    /// A [`Question`].
    Asked(Handed<QuestionAt>),
    Answered,
    /// The answer panicked.
    Failed(Box<dyn Any + Send>),
    Over,
}

/// Where questions and answers are handed over.
#[derive(Default)]
struct Exchange {
    state: Mutex<State>,
    changed: Condvar,
}

impl Exchange {
    /// Answers questions until the work is over.
    fn serve(&self, world: &mut dyn World) {
        let mut state = self.state.lock();
        loop {
            match std::mem::take(&mut *state) {
                State::Asked(question) => {
                    drop(state);
                    // SAFETY: the thread that asks waits until the state is another, and keeps the question until then.
                    let question = unsafe { &mut *question.get() };
                    let answered = catch_unwind(AssertUnwindSafe(|| question(world)));
                    state = self.state.lock();
                    *state = match answered {
                        Ok(()) => State::Answered,
                        Err(panic) => State::Failed(panic),
                    };
                    self.changed.notify_all();
                    state = self.changed.wait(state);
                }
                State::Over => return,
                other => {
                    *state = other;
                    state = self.changed.wait(state);
                }
            }
        }
    }

    fn ask(&self, question: Question<'_>) {
        // SAFETY: only the lifetime changes. This function returns once no other thread has the pointer.
        let question: *mut (dyn FnMut(&mut dyn World) + 'static) = unsafe { std::mem::transmute(question) };
        let mut state = self.state.lock();
        *state = State::Asked(Handed(question));
        self.changed.notify_all();
        loop {
            state = self.changed.wait(state);
            match std::mem::take(&mut *state) {
                State::Answered => return,
                State::Failed(panic) => {
                    drop(state);
                    resume_unwind(panic);
                }
                other => *state = other,
            }
        }
    }
}

/// Signals that the work is over, even where it panicked.
struct Over<'e>(&'e Exchange);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        *self.0.state.lock() = State::Over;
        self.0.changed.notify_all();
    }
}

/// A world that is asked on another thread.
struct Remote<'e> {
    exchange: &'e Exchange,
}

impl Remote<'_> {
    fn ask<T>(&self, question: impl FnOnce(&mut dyn World) -> T) -> T {
        let (mut question, mut answer) = (Some(question), None);
        self.exchange.ask(&mut |world| answer = question.take().map(|question| question(world)));
        answer.expect("asked once, and answered")
    }
}

impl World for Remote<'_> {
    fn class(&self, class: ClassId) -> ClassInfo {
        self.ask(|w| w.class(class))
    }
    fn is_a(&self, class: ClassId, module: ClassId) -> bool {
        self.ask(|w| w.is_a(class, module))
    }
    fn module_is_a(&self, object: ClassId, module: ClassId) -> bool {
        self.ask(|w| w.module_is_a(object, module))
    }
    fn is_ordinary(&self, class: ClassId) -> bool {
        self.ask(|w| w.is_ordinary(class))
    }
    fn members(&self, class: ClassId) -> Option<Vec<Name>> {
        self.ask(|w| w.members(class))
    }
    fn construction(&self, class: ClassId) -> Construction {
        self.ask(|w| w.construction(class))
    }
    fn method(&mut self, receiver: Receiver, name: &str) -> MethodFact {
        self.ask(|w| w.method(receiver, name))
    }
    fn method_owner(&mut self, receiver: Receiver, name: &str) -> Option<ClassId> {
        self.ask(|w| w.method_owner(receiver, name))
    }
    fn super_method(&mut self, receiver: Receiver, method: MethodId) -> MethodFact {
        self.ask(|w| w.super_method(receiver, method))
    }
    fn source(&mut self, method: MethodId) -> CoreResult<MethodSource> {
        self.ask(|w| w.source(method))
    }
    fn constant(&mut self, scope: ScopeId, base: Option<ClassId>, name: &str) -> Option<ConstId> {
        self.ask(|w| w.constant(scope, base, name))
    }
    fn top_constant(&mut self, name: &str) -> Option<ConstId> {
        self.ask(|w| w.top_constant(name))
    }
    fn class_named(&mut self, name: &str) -> Option<ClassId> {
        self.ask(|w| w.class_named(name))
    }
    fn scope_module(&mut self, scope: ScopeId) -> ClassId {
        self.ask(|w| w.scope_module(scope))
    }
    fn class_variables(&mut self, scope: ScopeId) -> Option<ClassId> {
        self.ask(|w| w.class_variables(scope))
    }
    fn outside(&mut self, root: &Root) -> Option<Outside> {
        self.ask(|w| w.outside(root))
    }
    fn derived(&mut self, root: &Root) -> Option<Derivation> {
        self.ask(|w| w.derived(root))
    }
    fn regexp(&mut self, root: &Root) -> Option<RegexpSource> {
        self.ask(|w| w.regexp(root))
    }
    fn unicode(&self) -> &'static dyn Unicode {
        self.ask(|w| w.unicode())
    }
    fn number_of_proc(&mut self, root: &Root) -> Option<u32> {
        self.ask(|w| w.number_of_proc(root))
    }
    fn names_symbol(&mut self, name: &str) {
        self.ask(|w| w.names_symbol(name));
    }
    fn symbol_proc(&mut self, root: &Root) -> Option<Name> {
        self.ask(|w| w.symbol_proc(root))
    }
    fn live(&mut self, root: &Root) -> bool {
        self.ask(|w| w.live(root))
    }
    fn captures_hash(&mut self, local: &Name) -> bool {
        self.ask(|w| w.captures_hash(local))
    }
    fn captures_default(&mut self, hash: &Name) -> bool {
        self.ask(|w| w.captures_default(hash))
    }
    fn has_key_fields(&self) -> bool {
        self.ask(|w| w.has_key_fields())
    }
    fn scan_root(&mut self, root: &Root, facts: &mut Facts) -> Result<(), Opaque> {
        self.ask(|w| w.scan_root(root, facts))
    }
    fn scan_field(&mut self, class: ClassId, ivar: &Name, facts: &mut Facts) -> Result<(), Opaque> {
        self.ask(|w| w.scan_field(class, ivar, facts))
    }
    fn scan_array(&mut self, kind: ArrayKind, facts: &mut Facts) -> Result<(), Opaque> {
        self.ask(|w| w.scan_array(kind, facts))
    }
}
