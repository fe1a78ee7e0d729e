//! Optimal ate pairings.
//!
//! Values equal those of other libraries: for BLS12 curves the final exponentiation includes a
//! factor of three (Hayashida, Hayasaka, Teruya 2020), for BN curves the cofactor of
//! Fuentes-Castañeda, Knapp and Rodríguez-Henríquez (2011).

mod bls12;
mod bn;
mod in_lanes;
mod line;
#[cfg(test)]
mod tests;

use crate::curve::{Affine, Curve};
use crate::field::Field as _;
use crate::msm::Backend;
use crate::tower::cyclotomic::Cyclotomic;
use crate::tower::{Fp2, Fp12, TowerField};
use crate::{bls12_377, bls12_381, bn254, bn254_nogami};
use bls12::Bls12;
use bn::Bn;
use line::Accumulator;

/// A pair of groups and their map into Fp12.
pub trait Pairing: Copy + Eq + core::fmt::Debug + Send + Sync + 'static {
    type Base: TowerField;
    type G1: Curve<Base = Self::Base>;
    type G2: Curve<Base = Fp2<Self::Base>>;

    /// Digits of the loop parameter of Miller's algorithm after the highest one, from the top.
    #[doc(hidden)]
    const DIGITS: &'static [i8];
    /// True if the loop parameter is negative.
    #[doc(hidden)]
    const IS_NEGATIVE: bool;
    /// Number of points that are added after the loop.
    #[doc(hidden)]
    const LAST_POINTS: usize;

    /// Point number `index` to add after the loop.
    #[doc(hidden)]
    fn last_point(q: &Affine<Self::G2>, index: usize) -> Affine<Self::G2>;

    /// End of Miller's loop for a point of the second group: the multiple of it that the last line goes through.
    #[doc(hidden)]
    fn end(q: &Affine<Self::G2>) -> Affine<Self::G2>;

    /// Hard part of the final exponentiation, from an element of the cyclotomic subgroup.
    #[doc(hidden)]
    fn hard_part<G: Cyclotomic>(x: &G) -> G;

    /// [`Pairing::miller_loop`] with the end of the loop for each pair without infinity.
    #[doc(hidden)]
    fn miller_loop_to_ends(
        backend: Backend,
        pairs: &[Pair<Self>],
    ) -> (Fp12<Self::Base>, Vec<Multiple<Self>>);

    /// Product of the Miller functions of all pairs, before the final exponentiation: up to factors that the final
    /// exponentiation removes. Points must be in their groups; pairs with a point at infinity contribute one.
    fn miller_loop(backend: Backend, pairs: &[Pair<Self>]) -> Fp12<Self::Base> {
        Self::miller_loop_to_ends(backend, pairs).0
    }

    /// The final exponentiation.
    ///
    /// # Panics
    /// If the element is zero, which no product of Miller functions is.
    fn final_exponentiation(backend: Backend, x: &Fp12<Self::Base>) -> Fp12<Self::Base>;

    /// Product of the pairings of all pairs, with one final exponentiation, on the fastest backend.
    fn product(pairs: &[Pair<Self>]) -> Fp12<Self::Base> {
        let backend = Backend::detect();
        Self::final_exponentiation(backend, &Self::miller_loop(backend, pairs))
    }

    /// [`Pairing::product`] for second points that need only be on the curve: `None` if one is not
    /// in the group. The check costs no additional time.
    ///
    /// The loop computes a multiple of the point. In the group it equals the image under a power of the Frobenius
    /// endomorphism; for other points it does not, since the norm of this equation and the cofactor have no common
    /// factor but the order (Dai, Lin, Zhao, Zhou 2022; `6 x + 2 + p - p^2 + p^3` for BN curves, `x - p` for BLS12
    /// curves). Formulas that fail on the way leave Z = 0. They do not fail for points of the group.
    fn checked_product(backend: Backend, pairs: &[Pair<Self>]) -> Option<Fp12<Self::Base>> {
        let (f, ends) = Self::miller_loop_to_ends(backend, pairs);
        let is_right = |((_, q), [x, y, z]): (&Pair<Self>, &Multiple<Self>)| {
            let end = Self::end(q);
            !z.is_zero() && *x == end.x * *z && *y == end.y * *z
        };
        // The loop skips pairs with infinity.
        let mut left_out = pairs.iter().filter(|(p, _)| p.is_infinity);
        let are_right = finite::<Self>(pairs).zip(&ends).all(is_right)
            && left_out.all(|(_, q)| Self::G2::is_in_group(q));
        are_right.then(|| Self::final_exponentiation(backend, &f))
    }

    /// Pairing of two points of their groups.
    fn pair(p: &Affine<Self::G1>, q: &Affine<Self::G2>) -> Fp12<Self::Base> {
        Self::product(&[(*p, *q)])
    }
}

/// A point of each group.
pub type Pair<P> = (Affine<<P as Pairing>::G1>, Affine<<P as Pairing>::G2>);

/// A multiple of a point of the second group as (X : Y : Z), x = X / Z.
#[doc(hidden)]
pub type Multiple<P> = [Fp2<<P as Pairing>::Base>; 3];

pub type Bls12381 = Bls12<bls12_381::Parameters>;

pub type Bls12377 = Bls12<bls12_377::Parameters>;

pub type Bn254 = Bn<bn254::Parameters>;

pub type Bn254Nogami = Bn<bn254_nogami::Parameters>;

/// The pairs without infinity.
fn finite<P: Pairing>(pairs: &[Pair<P>]) -> impl Iterator<Item = &Pair<P>> {
    pairs.iter().filter(|(p, q)| !p.is_infinity && !q.is_infinity)
}

/// Miller's loop for all pairs in sequence, with common squarings.
fn miller_loop_in_words<P: Pairing>(pairs: &[Pair<P>]) -> (Fp12<P::Base>, Vec<Multiple<P>>) {
    let mut pairs: Vec<_> =
        finite::<P>(pairs).map(|(p, q)| (*p, *q, Accumulator::new(q.x, q.y))).collect();
    let mut f = Fp12::ONE;
    for (index, digit) in P::DIGITS.iter().enumerate() {
        if index != 0 {
            f = f.square();
        }
        for (p, q, sum) in &mut pairs {
            f = line::times(&f, sum.double().at(p.x, p.y));
            if *digit != 0 {
                let y = if *digit > 0 { q.y } else { -q.y };
                f = line::times(&f, sum.add(q.x, y).at(p.x, p.y));
            }
        }
    }
    for (p, q, sum) in &mut pairs {
        for index in 0..P::LAST_POINTS {
            let last = P::last_point(q, index);
            f = line::times(&f, sum.add(last.x, last.y).at(p.x, p.y));
        }
    }
    let ends = pairs.iter().map(|(_, _, sum)| sum.coordinates()).collect();
    (if P::IS_NEGATIVE { f.conjugate() } else { f }, ends)
}

/// Power `(p^6 - 1) (p^2 + 1)`, which is in the cyclotomic subgroup.
fn easy_part<F: TowerField>(x: &Fp12<F>) -> Fp12<F> {
    let inverse = x.inverse().expect("products of lines are not zero");
    let x = x.conjugate() * inverse;
    x.frobenius(2) * x
}
