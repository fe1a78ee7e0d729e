//! Optimal ate pairings.
//!
//! Values are those of other libraries: for BLS12-381 the final exponentiation includes a factor of
//! three (Hayashida, Hayasaka, Teruya 2020), for BN254 the cofactor of Fuentes-Castañeda, Knapp and
//! Rodríguez-Henríquez (2011).

mod in_lanes;
mod line;
#[cfg(test)]
mod tests;

use crate::curve::{Affine, BlsG1, BlsG2, BnG1, BnG2, Curve, Jacobian};
use crate::msm::Backend;
use crate::tower::cyclotomic::Cyclotomic;
use crate::tower::{Fp2, Fp12, TowerField};
use crate::{bls12_381, bn254};
use line::Accumulator;

/// A pair of groups and the map from both into Fp12.
pub trait Pairing: Copy + Eq + core::fmt::Debug + Send + Sync + 'static {
    /// The base field.
    type Base: TowerField;
    /// The first group.
    type G1: Curve<Base = Self::Base>;
    /// The second group.
    type G2: Curve<Base = Fp2<Self::Base>>;

    /// Digits of the number of Miller's loop after the highest one, from the top.
    #[doc(hidden)]
    const DIGITS: &'static [i8];
    /// Whether the number is negative.
    #[doc(hidden)]
    const IS_NEGATIVE: bool;
    /// Points that are added after the loop.
    #[doc(hidden)]
    const LAST_POINTS: usize;

    /// The point of this index to add after the loop.
    #[doc(hidden)]
    fn last_point(q: &Affine<Self::G2>, index: usize) -> Affine<Self::G2>;

    /// The final exponentiation from an element of the cyclotomic subgroup on.
    #[doc(hidden)]
    fn hard_part<G: Cyclotomic>(x: &G) -> G;

    /// [`Pairing::miller_loop`] on a certain backend.
    #[doc(hidden)]
    fn miller_loop_with(backend: Backend, pairs: &[Pair<Self>]) -> Fp12<Self::Base>;

    /// [`Pairing::final_exponentiation`] on a certain backend.
    #[doc(hidden)]
    fn final_exponentiation_with(backend: Backend, x: &Fp12<Self::Base>) -> Fp12<Self::Base>;

    /// The product of the Miller functions of all pairs, before the final exponentiation: up to factors that the final
    /// exponentiation removes. Points must be of their groups; pairs with a point at infinity contribute one.
    fn miller_loop(pairs: &[Pair<Self>]) -> Fp12<Self::Base> {
        Self::miller_loop_with(Backend::detect(), pairs)
    }

    /// The final exponentiation.
    ///
    /// # Panics
    /// Where the element is zero, which no product of Miller functions is.
    fn final_exponentiation(x: &Fp12<Self::Base>) -> Fp12<Self::Base> {
        Self::final_exponentiation_with(Backend::detect(), x)
    }

    /// The product of the pairings of all pairs: one final exponentiation.
    fn product(pairs: &[Pair<Self>]) -> Fp12<Self::Base> {
        Self::final_exponentiation(&Self::miller_loop(pairs))
    }

    /// The pairing of two points of their groups.
    fn pair(p: &Affine<Self::G1>, q: &Affine<Self::G2>) -> Fp12<Self::Base> {
        Self::product(&[(*p, *q)])
    }
}

/// A point of each group.
pub type Pair<P> = (Affine<<P as Pairing>::G1>, Affine<<P as Pairing>::G2>);

/// BLS12-381.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bls12381;

/// BN254.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bn254;

/// The pairs without infinity.
fn finite<P: Pairing>(pairs: &[Pair<P>]) -> impl Iterator<Item = &Pair<P>> {
    pairs.iter().filter(|(p, q)| !p.is_infinity && !q.is_infinity)
}

/// Miller's loop for one pair after the other, all with the same squarings.
fn miller_loop_in_words<P: Pairing>(pairs: &[Pair<P>]) -> Fp12<P::Base> {
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
    if P::IS_NEGATIVE { f.conjugate() } else { f }
}

/// To the power `(p^6 - 1) (p^2 + 1)`, into the cyclotomic subgroup.
fn easy_part<F: TowerField>(x: &Fp12<F>) -> Fp12<F> {
    let inverse = x.inverse().expect("products of lines are not zero");
    let x = x.conjugate() * inverse;
    x.frobenius(2) * x
}

/// The entries of backends for a curve whose elements have so many limbs in lanes.
macro_rules! backends {
    ($modulus:ty, $words:literal, $limbs:literal) => {
        fn miller_loop_with(backend: Backend, pairs: &[Pair<Self>]) -> Fp12<Self::Base> {
            use crate::backend::Portable;
            match backend {
                Backend::Scalar => miller_loop_in_words::<Self>(pairs),
                Backend::Portable => {
                    in_lanes::miller_loop::<Self, Portable, $modulus, $words, $limbs>(pairs)
                }
                #[cfg(target_arch = "x86_64")]
                Backend::Ifma => {
                    type Lanes = crate::backend::Ifma;
                    in_lanes::miller_loop::<Self, Lanes, $modulus, $words, $limbs>(pairs)
                }
                #[cfg(not(target_arch = "x86_64"))]
                Backend::Ifma => unreachable!("not available here"),
            }
        }

        fn final_exponentiation_with(backend: Backend, x: &Fp12<Self::Base>) -> Fp12<Self::Base> {
            use crate::backend::Portable;
            let x = easy_part(x);
            match backend {
                Backend::Scalar => Self::hard_part(&x),
                Backend::Portable => {
                    in_lanes::hard_part::<Self, Portable, $modulus, $words, $limbs>(&x)
                }
                #[cfg(target_arch = "x86_64")]
                Backend::Ifma => {
                    type Lanes = crate::backend::Ifma;
                    in_lanes::hard_part::<Self, Lanes, $modulus, $words, $limbs>(&x)
                }
                #[cfg(not(target_arch = "x86_64"))]
                Backend::Ifma => unreachable!("not available here"),
            }
        }
    };
}

impl Pairing for Bls12381 {
    type Base = bls12_381::Fp;
    type G1 = BlsG1;
    type G2 = BlsG2;
    /// Of the absolute value of x, in binary: only six of its bits are set.
    const DIGITS: &'static [i8] = &{
        let (mut digits, mut i) = ([0; 63], 0);
        while i < 63 {
            digits[i] = (bls12_381::X >> (62 - i) & 1) as i8;
            i += 1;
        }
        digits
    };
    const IS_NEGATIVE: bool = true;
    const LAST_POINTS: usize = 0;

    fn last_point(q: &Affine<Self::G2>, _: usize) -> Affine<Self::G2> {
        *q
    }

    /// The power `3 (p^4 - p^2 + 1) / r = (x - 1)^2 (x + p) (x^2 + p^2 - 1) + 3`.
    fn hard_part<G: Cyclotomic>(x: &G) -> G {
        let to_x = |y: &G| y.power_of(bls12_381::X).conjugate();
        let a = to_x(x).times(&x.conjugate());
        let a = to_x(&a).times(&a.conjugate());
        let b = to_x(&a).times(&a.frobenius(1));
        let c = to_x(&to_x(&b)).times(&b.frobenius(2)).times(&b.conjugate());
        c.times(x).times(&x.squared(1))
    }

    backends!(bls12_381::FpModulus, 6, 8);
}

/// `6 x + 2` of BN254, 65 bits.
const BN_LOOP: u128 = 6 * bn254::X as u128 + 2;

/// Three times that: digits of its non-adjacent form are differences of digits of both.
const BN_LOOP_TRIPLE: u128 = 3 * BN_LOOP;

impl Pairing for Bn254 {
    type Base = bn254::Fp;
    type G1 = BnG1;
    type G2 = BnG2;
    const DIGITS: &'static [i8] = &{
        const COUNT: usize = BN_LOOP_TRIPLE.ilog2() as usize - 1;
        let (mut digits, mut i) = ([0; COUNT], 0);
        while i < COUNT {
            let place = COUNT - i;
            digits[i] = (BN_LOOP_TRIPLE >> place & 1) as i8 - (BN_LOOP >> place & 1) as i8;
            i += 1;
        }
        digits
    };
    const IS_NEGATIVE: bool = false;
    const LAST_POINTS: usize = 2;

    /// `psi(Q)`, then `-psi^2(Q)`.
    fn last_point(q: &Affine<Self::G2>, index: usize) -> Affine<Self::G2> {
        let first = BnG2::endomorphism(&Jacobian::from(*q));
        let point = if index == 0 { first } else { -BnG2::endomorphism(&first) };
        // The endomorphism leaves Z = 1.
        Affine::new(point.x, point.y)
    }

    /// The power `2 x (6 x^2 + 3 x + 1) (p^4 - p^2 + 1) / r`.
    fn hard_part<G: Cyclotomic>(x: &G) -> G {
        let to_minus_x = |y: &G| y.power_of(bn254::X).conjugate();
        let a = to_minus_x(x).squared(1);
        let b = a.squared(1).times(&a);
        let c = to_minus_x(&b);
        let d = to_minus_x(&c.squared(1)).conjugate();
        // To the powers 6 x + 6 x^2 + 12 x^3 and 4 x + 6 x^2 + 12 x^3, both negative so far in x.
        let e = d.times(&c).times(&b.conjugate());
        let g = e.times(&a);
        let h = e.times(&c).times(x);
        let i = g.frobenius(1).times(&h);
        let j = e.frobenius(2).times(&i);
        x.conjugate().times(&g).frobenius(3).times(&j)
    }

    backends!(bn254::FpModulus, 4, 5);
}
