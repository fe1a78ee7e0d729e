//! Optimal ate pairings.
//!
//! Values are those of other libraries: for BLS12-381 the final exponentiation includes a factor of
//! three (Hayashida, Hayasaka, Teruya 2020), for BN254 the cofactor of Fuentes-Castañeda, Knapp and
//! Rodríguez-Henríquez (2011).

mod line;
#[cfg(test)]
mod tests;

use crate::curve::{Affine, BlsG1, BlsG2, BnG1, BnG2, Curve, Jacobian};
use crate::tower::{Fp2, Fp12, TowerField};
use crate::{bls12_381, bn254};
use line::{Accumulator, Twist};

/// A pair of groups and the map from both into Fp12.
pub trait Pairing: Copy + Eq + core::fmt::Debug + Send + Sync + 'static {
    /// The base field.
    type Base: TowerField;
    /// The first group.
    type G1: Curve<Base = Self::Base>;
    /// The second group.
    type G2: Curve<Base = Fp2<Self::Base>>;

    /// The product of the Miller functions of all pairs, before the final exponentiation. Points must be of their
    /// groups; pairs with a point at infinity contribute one.
    fn miller_loop(pairs: &[Pair<Self>]) -> Fp12<Self::Base>;

    /// The final exponentiation.
    ///
    /// # Panics
    /// Where the element is zero, which no product of Miller functions is.
    fn final_exponentiation(x: &Fp12<Self::Base>) -> Fp12<Self::Base>;

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

/// A pair in a Miller loop.
type Started<P> =
    (Affine<<P as Pairing>::G1>, Affine<<P as Pairing>::G2>, Accumulator<<P as Pairing>::Base>);

/// The pairs without infinity, the second points with an accumulator.
fn accumulators<P: Pairing>(pairs: &[Pair<P>]) -> Vec<Started<P>> {
    let finite = pairs.iter().filter(|(p, q)| !p.is_infinity && !q.is_infinity);
    finite.map(|(p, q)| (*p, *q, Accumulator::new(q.x, q.y))).collect()
}

/// To the power `(p^6 - 1) (p^2 + 1)`, into the cyclotomic subgroup.
fn easy_part<F: TowerField>(x: &Fp12<F>) -> Fp12<F> {
    let inverse = x.inverse().expect("products of lines are not zero");
    let x = x.conjugate() * inverse;
    x.frobenius(2) * x
}

impl Pairing for Bls12381 {
    type Base = bls12_381::Fp;
    type G1 = BlsG1;
    type G2 = BlsG2;

    fn miller_loop(pairs: &[Pair<Self>]) -> Fp12<Self::Base> {
        let mut pairs = accumulators::<Self>(pairs);
        let mut f = Fp12::ONE;
        for index in (0..63).rev() {
            if index != 62 {
                f = f.square();
            }
            for (p, q, sum) in &mut pairs {
                f = sum.double::<BlsG2>(Twist::M).times(&f, p.x, p.y);
                if bls12_381::X >> index & 1 == 1 {
                    f = sum.add(q.x, q.y, Twist::M).times(&f, p.x, p.y);
                }
            }
        }
        // x is negative.
        f.conjugate()
    }

    /// The power `3 (p^4 - p^2 + 1) / r = (x - 1)^2 (x + p) (x^2 + p^2 - 1) + 3`.
    fn final_exponentiation(x: &Fp12<Self::Base>) -> Fp12<Self::Base> {
        let x = easy_part(x);
        let to_x = |y: &Fp12<_>| y.cyclotomic_power(bls12_381::X).conjugate();
        let a = to_x(&x) * x.conjugate();
        let a = to_x(&a) * a.conjugate();
        let b = to_x(&a) * a.frobenius(1);
        let c = to_x(&to_x(&b)) * b.frobenius(2) * b.conjugate();
        c * x * x.cyclotomic_square()
    }
}

/// `6 x + 2` of BN254, 65 bits.
const BN_LOOP: u128 = 6 * bn254::X as u128 + 2;

impl Pairing for Bn254 {
    type Base = bn254::Fp;
    type G1 = BnG1;
    type G2 = BnG2;

    fn miller_loop(pairs: &[Pair<Self>]) -> Fp12<Self::Base> {
        let mut pairs = accumulators::<Self>(pairs);
        let mut f = Fp12::ONE;
        // Digits of the non-adjacent form of 6 x + 2: those of 3 n and n differ where one is not zero.
        let (triple, single) = (3 * BN_LOOP, BN_LOOP);
        let top = triple.ilog2();
        for index in (1..top).rev() {
            if index + 1 != top {
                f = f.square();
            }
            let digit = (triple >> index & 1) as i32 - (single >> index & 1) as i32;
            for (p, q, sum) in &mut pairs {
                f = sum.double::<BnG2>(Twist::D).times(&f, p.x, p.y);
                if digit != 0 {
                    let y = if digit > 0 { q.y } else { -q.y };
                    f = sum.add(q.x, y, Twist::D).times(&f, p.x, p.y);
                }
            }
        }
        for (p, q, sum) in &mut pairs {
            let first = BnG2::endomorphism(&Jacobian::from(*q));
            let second = -BnG2::endomorphism(&first);
            f = sum.add(first.x, first.y, Twist::D).times(&f, p.x, p.y);
            f = sum.add(second.x, second.y, Twist::D).times(&f, p.x, p.y);
        }
        f
    }

    /// The power `2 x (6 x^2 + 3 x + 1) (p^4 - p^2 + 1) / r`.
    fn final_exponentiation(x: &Fp12<Self::Base>) -> Fp12<Self::Base> {
        let x = easy_part(x);
        let to_minus_x = |y: &Fp12<_>| y.cyclotomic_power(bn254::X).conjugate();
        let a = to_minus_x(&x).cyclotomic_square();
        let b = a.cyclotomic_square() * a;
        let c = to_minus_x(&b);
        let d = to_minus_x(&c.cyclotomic_square()).conjugate();
        // To the powers 6 x + 6 x^2 + 12 x^3 and 4 x + 6 x^2 + 12 x^3, both negative so far in x.
        let e = d * c * b.conjugate();
        let g = e * a;
        let h = e * c * x;
        let i = g.frobenius(1) * h;
        let j = e.frobenius(2) * i;
        (x.conjugate() * g).frobenius(3) * j
    }
}
