//! Pairings on each backend: in words, or in lanes of `K` limbs.

use super::{Multiple, Pair, Pairing, easy_part, in_lanes, miller_loop_in_words};
use crate::backend::Portable;
use crate::field::Fe;
use crate::msm::Backend;
use crate::tower::{Fp12, TowerModulus};

/// [`Pairing::miller_loop_to_ends`].
pub(super) fn miller_loop<P, M, const N: usize, const K: usize>(
    backend: Backend,
    pairs: &[Pair<P>],
) -> (Fp12<Fe<M, N>>, Vec<Multiple<P>>)
where
    P: Pairing<Base = Fe<M, N>>,
    M: TowerModulus<N>,
{
    match backend {
        Backend::Scalar => miller_loop_in_words::<P>(pairs),
        Backend::Portable => in_lanes::miller_loop::<P, Portable, M, N, K>(pairs),
        #[cfg(target_arch = "x86_64")]
        Backend::Ifma => in_lanes::miller_loop::<P, crate::backend::Ifma, M, N, K>(pairs),
        #[cfg(not(target_arch = "x86_64"))]
        Backend::Ifma => unreachable!("not available here"),
    }
}

/// [`Pairing::final_exponentiation_with`].
pub(super) fn final_exponentiation<P, M, const N: usize, const K: usize>(
    backend: Backend,
    x: &Fp12<Fe<M, N>>,
) -> Fp12<Fe<M, N>>
where
    P: Pairing<Base = Fe<M, N>>,
    M: TowerModulus<N>,
{
    let x = easy_part(x);
    match backend {
        Backend::Scalar => P::hard_part(&x),
        Backend::Portable => in_lanes::hard_part::<P, Portable, M, N, K>(&x),
        #[cfg(target_arch = "x86_64")]
        Backend::Ifma => in_lanes::hard_part::<P, crate::backend::Ifma, M, N, K>(&x),
        #[cfg(not(target_arch = "x86_64"))]
        Backend::Ifma => unreachable!("not available here"),
    }
}
