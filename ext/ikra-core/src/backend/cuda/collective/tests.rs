//! Kernels against the host's own code, on the shim, and on a GPU where there is one.

use super::*;
use crate::backend::CancelToken;
use crate::backend::collective::reduce::{Reduced, Reduction};
use crate::backend::collective::testing::{self, Owned};
use crate::backend::collective::{Crew, TILE};
use crate::backend::threads::Threads;
use once_cell::sync::Lazy;

static SHIM: Lazy<CudaShim> = Lazy::new(|| CudaShim::new().expect("a C++ compiler is installed").with_barriers());

fn on_host<T>(work: impl FnOnce(Crew<'_>) -> Result<Option<T>>) -> T {
    let crew = Crew { threads: &Threads::new(2), cancel: &CancelToken::default() };
    work(crew).expect("there are threads").expect("nobody cancels")
}

fn address<T>(values: &[T]) -> u64 {
    values.as_ptr() as u64
}

#[test]
fn every_kernel_is_compiled_by_nvrtc() {
    if let Err(e) = nvrtc::load() {
        eprintln!("SKIPPED: collective kernels are not checked by NVRTC: {e}");
        return;
    }
    for element in Element::ALL {
        for reduction in Reduction::ALL {
            let text = reduce::text(reduction, element);
            for capability in [80, 90] {
                nvrtc::check(&text.source(), capability, &CodeOptions::default()).unwrap_or_else(|e| panic!("{e}"));
            }
        }
    }
}

fn reduced_by_kernel(reduction: Reduction, values: &Owned) -> Reduced {
    let out = [0u64; Reduction::WORDS].map(AtomicU64::new);
    let (element, len) = (values.view().element(), values.view().len());
    reduce::reduce(&OnShim::new(&SHIM), reduction, element, values.address(), len as u64, address(&out))
        .unwrap_or_else(|e| panic!("{e}"));
    reduction.read(element, &out.map(AtomicU64::into_inner))
}

#[test]
fn reductions_of_kernels_and_of_the_host_agree_to_the_bit() {
    for values in testing::samples(&[0, 1, 31, 32, 33, 1000, TILE - 1, TILE, TILE + 1, 5 * TILE + 7]) {
        for reduction in Reduction::ALL {
            let host = on_host(|crew| crate::backend::collective::reduce::reduce(crew, reduction, values.view()));
            let kernel = reduced_by_kernel(reduction, &values);
            assert_eq!(testing::bits(host), testing::bits(kernel), "{reduction:?} of {values:?}");
        }
    }
}
