//! Products of matrices by cuBLAS, if that is on the machine.
//!
//! Here: [`Blas`], the library's handle, and the one kind of call that Ikra makes. Not here: whether to use it. Its
//! results have other bits than those of Ikra's own kernel ([`crate::backend::collective::rows::Collective::product`]).
//!
//! The library is opened when it is first needed. It expects matrices in column-major order. Ours are row-major, which
//! it reads as their transposes, and so is the product.
#![allow(unsafe_code, reason = "calls of cuBLAS")]

use super::driver::{Device, Stream};
use super::nvrtc;
use super::storage::ALIGNMENT;
use crate::backend::collective::Element;
use crate::backend::collective::rows::{Matrix, Product};
use crate::error::{Error, Result};
use crate::memory::buffer::DeviceMemory;
use cudarc::cublas::sys::{self, cublasHandle_t, cublasOperation_t, cublasStatus_t};
use once_cell::sync::Lazy;
use parking_lot::Mutex;
use std::sync::Arc;

/// Whether the library can be opened.
static PRESENT: Lazy<bool> = Lazy::new(|| {
    // SAFETY: the call only tries to open the library by its usual names.
    nvrtc::find("cublas", "libcublasLt.so.").is_some() && unsafe { sys::is_culib_present() }
});

/// The library's handle; see the module. One product at a time is passed to it. That is quick, because the device
/// computes asynchronously.
pub struct Blas {
    handle: Mutex<Handle>,
    /// The library's scratch memory, for the one stream that it uses. It is freed when memory runs out.
    pub scratch: Mutex<Option<Arc<dyn DeviceMemory>>>,
    device: Arc<Device>,
}

/// The scratch memory is at most this part of the device memory that this process may use: one in so many.
const SHARE: u64 = 16;

struct Handle(cublasHandle_t);

// SAFETY: any thread may use the handle, if only one does at a time.
unsafe impl Send for Handle {}

/// Device addresses of the two matrices and of their product.
#[derive(Clone, Copy)]
pub struct Addresses {
    pub left: u64,
    pub right: u64,
    pub out: u64,
    pub scratch: u64,
}

impl Blas {
    /// None if there is no such library, or if it does not work with this driver. The context must be current.
    ///
    /// # Errors
    /// `Memory`.
    pub fn open(device: &Arc<Device>) -> Result<Option<Self>> {
        if !*PRESENT {
            return Ok(None);
        }
        let mut handle = std::ptr::null_mut();
        // SAFETY: the library is open, and the out-pointer is to a live local.
        match check("cublasCreate", unsafe { sys::cublasCreate_v2(&raw mut handle) }) {
            Ok(()) => {
                let (handle, scratch) = (Mutex::new(Handle(handle)), Mutex::default());
                Ok(Some(Self { handle, scratch, device: device.clone() }))
            }
            Err(Error::Device { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Bytes of scratch memory: what the library would allocate on a GPU like this one, if there is enough memory.
    pub fn wanted(&self) -> usize {
        let share = usize::try_from(crate::config::memory_limit() / SHARE).unwrap_or(usize::MAX);
        let own = if self.device.facts.capability >= 90 { 32 << 20 } else { 4 << 20 };
        own.min(share) / ALIGNMENT * ALIGNMENT
    }

    /// Queues products on a stream, which is always the same. False: the library does not support their form.
    ///
    /// # Errors
    /// `Memory`, `Device`.
    ///
    /// # Safety
    /// Each matrix begins at its address and has all elements of which [`Product::fits`] speaks. The output has room
    /// for all products. The scratch memory has `scratch` bytes and is used by this stream only. All of that memory
    /// stays allocated, and nothing else uses the output, until the stream has passed this work.
    pub unsafe fn multiply(
        &self,
        stream: &Stream,
        product: &Product<'_>,
        at: Addresses,
        scratch: usize,
    ) -> Result<bool> {
        let int = |n: usize| i32::try_from(n).ok();
        let (Some(rows), Some(inner), Some(columns), Some(count), Some(left), Some(right)) = (
            int(product.rows),
            int(product.inner),
            int(product.columns),
            int(product.count),
            int(product.left.lead),
            int(product.right.lead),
        ) else {
            return Ok(false);
        };
        let turned = |matrix: &Matrix<'_>| match matrix.turned {
            true => cublasOperation_t::CUBLAS_OP_T,
            false => cublasOperation_t::CUBLAS_OP_N,
        };
        let (of_left, of_right) = (turned(&product.left), turned(&product.right));
        let apart = |n: usize| n as i64;
        let handle = self.handle.lock();
        // SAFETY: both are alive. The library's type for a stream is the driver's.
        check("cublasSetStream", unsafe { sys::cublasSetStream_v2(handle.0, stream.raw.cast()) })?;
        // After a new stream is set, the library uses memory of its own again. SAFETY: the memory has so many bytes,
        // only this stream uses it, and it stays allocated as long as queued work uses it. The next product sets it
        // again.
        let given = unsafe { sys::cublasSetWorkspace_v2(handle.0, at.scratch as *mut std::ffi::c_void, scratch) };
        check("cublasSetWorkspace", given)?;
        macro_rules! call {
            ($function:path, $number:ty) => {{
                let (one, zero): ($number, $number) = (1.0, 0.0);
                // SAFETY: the handle is alive. The factors are live locals, which are read during the call. The caller
                // guarantees the memory.
                unsafe {
                    $function(
                        handle.0,
                        of_right,
                        of_left,
                        columns,
                        rows,
                        inner,
                        &raw const one,
                        at.right as *const $number,
                        right,
                        apart(product.right.apart),
                        at.left as *const $number,
                        left,
                        apart(product.left.apart),
                        &raw const zero,
                        at.out as *mut $number,
                        columns,
                        apart(product.rows * product.columns),
                        count,
                    )
                }
            }};
        }
        let status = match product.element {
            Element::F64 => call!(sys::cublasDgemmStridedBatched, f64),
            Element::F32 => call!(sys::cublasSgemmStridedBatched, f32),
            _ => return Ok(false),
        };
        check("cublasGemmStridedBatched", status).map(|()| true)
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        if self.device.is_ours() && self.device.enter().is_ok() {
            // SAFETY: a context is current, the handle is alive, and nothing uses it any more.
            let _ = unsafe { sys::cublasDestroy_v2(self.handle.get_mut().0) };
        }
    }
}

fn check(what: &str, status: cublasStatus_t) -> Result<()> {
    match status {
        cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
        cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED => Err(Error::Memory {
            what: format!("{what}, cuBLAS's own memory"),
            wanted: 0,
            free: 0,
            advice: "free arrays, or do without it: blas: false",
        }),
        status => Err(Error::Device { what: what.into(), cause: format!("cuBLAS: {status:?}") }),
    }
}
