//! Code for several ticks at once, beside a kernel for one.
//!
//! Here: [`Joined`], which has it made in the background once many launches followed each other that did the same. Not here: which of them become one launch
//! ([`super::super::queue`]), and what such a program is ([`FusedTicks`]).

use super::emit;
use super::kernel::{BLOCK, CudaKernel, Maker};
use crate::backend::cuda::background;
use crate::backend::cuda::queue::Spread;
use crate::backend::{FusedTicks, Launch};
use crate::config::CodeOptions;
use crate::error::Result;
use crate::layout::Layout;
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// See the module.
pub(super) struct Joined {
    /// Until it begins.
    make: Mutex<Option<FusedTicks>>,
    /// None: there is none.
    kernel: Arc<OnceCell<Option<CudaKernel>>>,
    /// Launches that did what the one before did.
    repeated: AtomicU64,
}

/// Repetitions from which on the joined kernel is worth its compilation.
const MIN_REPETITIONS: u64 = 32;

impl Joined {
    pub(super) fn new(make: FusedTicks) -> Self {
        Self { make: Mutex::new(Some(make)), kernel: Arc::default(), repeated: AtomicU64::new(0) }
    }

    /// How a launch runs on it, as soon as it is there.
    ///
    /// # Errors
    /// `Device`, as of any launch.
    pub(super) fn spread(&self, launch: &Launch<'_>) -> Result<Option<Spread>> {
        let Some(Some(kernel)) = self.kernel.get() else { return Ok(None) };
        let module = kernel.module()?;
        // of blocks of a size that somebody wants, these may be too large for it alone
        let spread = kernel.blocks(module, launch, BLOCK).ok();
        Ok(spread.map(|(grid, block)| Spread { module: module.clone(), grid, block }))
    }

    /// A launch of `kernel`, for one tick, did once more what the one before did. Where making the code for several fails, they go on one by one.
    pub(super) fn repeats(&self, kernel: &CudaKernel) {
        if self.repeated.fetch_add(1, Ordering::Relaxed) + 1 != MIN_REPETITIONS {
            return;
        }
        let Some(make) = self.make.lock().take() else { return };
        let (maker, layout, options) = (kernel.maker.clone(), kernel.layout.clone(), kernel.options);
        let made = self.kernel.clone();
        let work = move || {
            let _ = made.set(joined(&maker, make, &layout, &options).unwrap_or(None));
        };
        background::run("ikra ticks", work);
    }
}

/// The code, on the device; None: it needs more than launches of one tick have.
fn joined(maker: &Maker, make: FusedTicks, layout: &Layout, options: &CodeOptions) -> Result<Option<CudaKernel>> {
    let Some(program) = make()? else { return Ok(None) };
    let name = emit::kernel_name(&program);
    let kernel = maker.compiled(&program, layout, options, None, || emit::emit(&program, layout, &name))?;
    if !kernel.emitted.privatized.is_empty() || kernel.emitted.indirect {
        return Ok(None);
    }
    kernel.module()?;
    Ok(Some(kernel))
}
