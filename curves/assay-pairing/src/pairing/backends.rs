//! Pairings on each backend: in words, or in lanes of `K` limbs.

use super::{Multiple, Pair, Pairing, easy_part, in_lanes, miller_loop_in_words};
use crate::backend::on_backend;
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
    on_backend!(
        backend;
        miller_loop_in_words::<P>(pairs),
        L => in_lanes::miller_loop::<P, L, M, N, K>(pairs)
    )
}

/// [`Pairing::final_exponentiation`].
pub(super) fn final_exponentiation<P, M, const N: usize, const K: usize>(
    backend: Backend,
    x: &Fp12<Fe<M, N>>,
) -> Fp12<Fe<M, N>>
where
    P: Pairing<Base = Fe<M, N>>,
    M: TowerModulus<N>,
{
    let x = easy_part(x);
    on_backend!(backend; P::hard_part(&x), L => in_lanes::hard_part::<P, L, M, N, K>(&x))
}
