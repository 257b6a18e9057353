//! Runs the same code with the widest vectors of the processor.
//!
//! Here: [`widest`]; and [`soon`], which prefetches the next elements. Not here: the computations. Ikra is compiled for
//! every processor of an architecture, so its code uses the vectors of the oldest: on x86-64 those hold two Floats,
//! while newer ones hold eight. Results have the same bits, because each lane of a vector rounds as a single number
//! does, and no multiplication and addition are contracted.
#![allow(
    unsafe_code,
    reason = "calls code that is compiled for what was found out about this processor, and asks for memory ahead"
)]

/// A computation. `run` and all that it calls must be `inline(always)`: other functions are compiled for every
/// processor.
pub trait Work {
    type Result;
    fn run(self) -> Self::Result;
}

/// Runs the work, compiled for the widest vectors of this processor.
#[inline]
pub fn widest<W: Work>(work: W) -> W::Result {
    #[cfg(target_arch = "x86_64")]
    {
        let has_512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw");
        if has_512 {
            // SAFETY: the processor has the features for which the function is compiled, as was just checked.
            return unsafe { x86::of_512_bits(work) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { x86::of_256_bits(work) };
        }
    }
    work.run()
}

/// Prefetches so many elements from an address on, which need not exist. They go to the second-level cache. The
/// first-level cache is too small for them beside the data in use, and can have only few loads in flight.
#[inline(always)]
pub fn soon<T>(from: *const T, count: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        const LINE: usize = 64;
        for at in (0..count * size_of::<T>()).step_by(LINE) {
            // SAFETY: a prefetch of any address is allowed, and reads nothing that the program sees.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast::<i8>().wrapping_add(at)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, count);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Work;

    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2")]
    pub fn of_512_bits<W: Work>(work: W) -> W::Result {
        work.run()
    }

    #[target_feature(enable = "avx2")]
    pub fn of_256_bits<W: Work>(work: W) -> W::Result {
        work.run()
    }
}
