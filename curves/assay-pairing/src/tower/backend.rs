//! Elements of Fp2 as the numbers in memory that kernels read and write.

#![expect(unsafe_code, reason = "elements as limbs in memory")]

use core::mem::MaybeUninit;
use core::ptr;

use super::Fp2;
use crate::field::{Fe, Modulus, backend};

/// The product of `a` and `b` for `u^2 = -1`, or the square without `b`; none where there is nothing for this CPU or prime.
#[inline(always)]
pub(super) fn complex_product<M: Modulus<N>, const N: usize>(
    a: &Fp2<Fe<M, N>>,
    b: Option<&Fp2<Fe<M, N>>>,
) -> Option<Fp2<Fe<M, N>>> {
    let mut product = MaybeUninit::<Fp2<Fe<M, N>>>::uninit();
    let (out, a) = (product.as_mut_ptr().cast(), ptr::from_ref(a).cast());
    let b = b.map(|b| ptr::from_ref(b).cast());
    // SAFETY: `Fp2` is two elements and an element its limbs, in memory as there (`repr(C)`, `repr(transparent)`); elements are
    // below their prime, and what is written is no place that anybody else has.
    let is_written = unsafe { backend::complex_product::<N>(out, a, b, Fe::<M, N>::PRIME) };
    // SAFETY: all of it is written then.
    is_written.then(|| unsafe { product.assume_init() })
}
