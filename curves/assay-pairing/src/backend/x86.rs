//! The kernels: the only functions that enable target features, and their CPU requirements.
//!
//! Methods of vectors are inlined into the kernels. Code over [`Lanes`](crate::lanes::Lanes) uses loops for this
//! reason: a closure passed to the standard library becomes a function without the features.

#![expect(unsafe_code, reason = "entry into target-feature functions")]

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

use assay_hash::cpu::{CpuFeature, has};

use crate::lanes::Task;

/// True if this CPU supports AVX-512 IFMA.
pub(crate) fn ifma_is_available() -> bool {
    has(CpuFeature::Avx512f) && has(CpuFeature::Avx512ifma)
}

/// Runs a task with the features of [`Ifma`](super::Ifma).
#[inline(always)]
pub(super) fn run_checked<T: Task>(task: T) -> T::Result {
    assert!(ifma_is_available(), "a CPU with AVX-512 IFMA");
    // SAFETY: the features have just been checked.
    unsafe { run(task) }
}

#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
fn run<T: Task>(task: T) -> T::Result {
    task.run()
}

/// Prefetches all cache lines of a value.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    let first = core::ptr::from_ref(value).cast::<i8>();
    for at in (0..size_of::<T>()).step_by(64) {
        // SAFETY: an address within the value, which is not read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(first.add(at)) };
    }
}
