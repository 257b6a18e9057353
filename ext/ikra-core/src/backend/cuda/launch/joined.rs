//! Joined kernels: code for several ticks at once, beside a kernel for one.
//!
//! Here: [`Joined`], which compiles such code in the background, once many launches in a row did the same. Not here:
//! which launches become one ([`super::super::queue`]), and how such a program is made ([`FusedTicks`]).

use super::emit;
use super::kernel::{BLOCK, CudaKernel, Maker};
use crate::backend::cuda::background;
use crate::backend::cuda::driver::Spread;
use crate::backend::{FusedTicks, Launch};
use crate::config::CodeOptions;
use crate::error::Result;
use crate::layout::Layout;
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The joined kernel of a kernel; see the module.
pub(super) struct Joined {
    /// Makes the program; taken when that begins.
    make: Mutex<Option<FusedTicks>>,
    /// The kernel; None inside: there is none.
    kernel: Arc<OnceCell<Option<CudaKernel>>>,
    /// How many launches repeated the one before.
    repeated: AtomicU64,
}

/// The joined kernel is compiled after so many repetitions.
const MIN_REPETITIONS: u64 = 32;

impl Joined {
    pub(super) fn new(make: FusedTicks) -> Self {
        Self { make: Mutex::new(Some(make)), kernel: Arc::default(), repeated: AtomicU64::new(0) }
    }

    /// The code and size of a launch on the joined kernel, if that is ready.
    ///
    /// # Errors
    /// `Device`, as for any launch.
    pub(super) fn spread(&self, launch: &Launch<'_>) -> Result<Option<Spread>> {
        let Some(Some(kernel)) = self.kernel.get() else { return Ok(None) };
        let module = kernel.module()?;
        // if the user set a block size, it may be too large for this kernel only
        let spread = kernel.blocks(module, launch, BLOCK).ok();
        Ok(spread.map(|(grid, block)| Spread { module: module.clone(), grid, block }))
    }

    /// Records that a launch of `kernel`, for one tick, repeated the one before. Starts the compilation when it pays.
    /// If that fails, ticks are launched singly as before.
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

/// The code, on the device. None: it needs more than launches of one tick provide.
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
