//! Elements of Fp2 in the memory form of kernels.

#![expect(unsafe_code, reason = "elements as limbs in memory")]

use core::mem::MaybeUninit;
use core::ptr;

use super::Fp2;
use crate::field::{Fe, Modulus, backend};

/// The product of `a` and `b` for `u^2 = -1`, or the square without `b`; `None` without a kernel.
#[inline(always)]
pub(super) fn complex_product<M: Modulus<N>, const N: usize>(
    a: &Fp2<Fe<M, N>>,
    b: Option<&Fp2<Fe<M, N>>>,
) -> Option<Fp2<Fe<M, N>>> {
    let mut product = MaybeUninit::<Fp2<Fe<M, N>>>::uninit();
    let (out, a) = (product.as_mut_ptr().cast(), ptr::from_ref(a).cast());
    let b = b.map(|b| ptr::from_ref(b).cast());
    // SAFETY: `Fp2` is two elements and an element its limbs, with the layout that the kernel expects (`repr(C)`,
    // `repr(transparent)`); elements are below their prime, and the output overlaps no other value.
    let is_written = unsafe { backend::complex_product::<N>(out, a, b, Fe::<M, N>::PRIME) };
    // SAFETY: all of it is initialised in that case.
    is_written.then(|| unsafe { product.assume_init() })
}
