//! Hints about memory, to the CPU and to the kernel: the two things here that need `unsafe`.
#![expect(unsafe_code, reason = "the prefetch intrinsic and madvise take raw pointers")]

/// Asks for the cache line of `target`; never faults and changes nothing but timing.
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

/// `length` zeros, on huge pages where the kernel has some to give.
///
/// The cache is read at random, so with pages of 4 KiB nearly every access would also miss the TLB. On a first touch a huge
/// page is also cheaper than 512 small ones.
pub(super) fn zeroed<T: Copy + Default>(length: usize) -> Vec<T> {
    let zeros = vec![T::default(); length];
    #[cfg(target_os = "linux")]
    if size_of_val(zeros.as_slice()) >= 2 * HUGE_PAGE_BYTES {
        let start = zeros.as_ptr().addr().next_multiple_of(HUGE_PAGE_BYTES);
        let end = zeros.as_ptr_range().end.addr() / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        let first = zeros.as_ptr().with_addr(start).cast_mut().cast();
        // SAFETY: the range is inside the allocation, and the advice changes which pages back it, never its contents.
        // It may be refused (no huge pages in this kernel), which is as good as not having asked.
        unsafe { libc::madvise(first, end - start, libc::MADV_HUGEPAGE) };
    }
    zeros
}

#[cfg(target_os = "linux")]
const HUGE_PAGE_BYTES: usize = 2 << 20;
