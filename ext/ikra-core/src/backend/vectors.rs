//! The same code, for processors with wider vectors.
//!
//! Here: [`widest`], and [`soon`], which asks memory for what is computed with next. Not here: what is computed. Ikra itself is compiled for every processor of an architecture, so its vectors are those that the oldest has:
//! of two Floats on x86-64, where others have eight. Results are the same bits: each lane of a vector rounds as one number does, and nobody contracts.
#![allow(
    unsafe_code,
    reason = "calls code that is compiled for what was found out about this processor, and asks for memory ahead"
)]

/// Something to compute. `run` and what it calls are to be `inline(always)`: what is not inlined is compiled for every processor.
pub trait Work {
    type Result;
    fn run(self) -> Self::Result;
}

/// Runs the work, compiled for the widest vectors that this processor has.
#[inline]
pub fn widest<W: Work>(work: W) -> W::Result {
    #[cfg(target_arch = "x86_64")]
    {
        let has_512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw");
        if has_512 {
            // SAFETY: the processor has what the function is compiled for, as it just said.
            return unsafe { x86::of_512_bits(work) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { x86::of_256_bits(work) };
        }
    }
    work.run()
}

/// Asks for so many elements from here on, whether or not there are any: into the second cache, since the first is too small for what others do meanwhile, and has room for few that are on
/// their way.
#[inline(always)]
pub fn soon<T>(from: *const T, count: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        const LINE: usize = 64;
        for at in (0..count * size_of::<T>()).step_by(LINE) {
            // SAFETY: this is advice about an address, which need not be one of anybody's memory: nothing is read that a program sees.
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
