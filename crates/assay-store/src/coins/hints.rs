//! CPU prefetch, the only part of coin reads with `unsafe`.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "the prefetch intrinsic takes a raw pointer")
)]

/// Prefetches the first cache lines of `bytes`, four at most.
#[inline]
pub fn prefetch_bytes(bytes: &[u8]) {
    bytes.iter().step_by(LINE_BYTES).take(4).for_each(prefetch);
}

const LINE_BYTES: usize = 64;

/// Prefetches the cache line of `target`; never faults and affects only timing.
#[inline(always)]
pub(super) fn prefetch<T>(target: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: SSE is part of x86-64, the pointer comes from a reference, and a prefetch reads nothing architecturally.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(target).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = target;
}
