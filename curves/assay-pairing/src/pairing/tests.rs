//! Pairings by their properties; `curves/peer` compares values with other libraries.

use super::{Bls12377, Bls12381, Bn254, Bn254Nogami, Pairing};
use crate::curve::{Affine, Curve, Jacobian};
use crate::field::Fe;
use crate::limbs;
use crate::msm::Backend;
use crate::testing::{Point as _, Random, Rng, tests};
use crate::tower::{Fp6, Fp12, TowerModulus};
use crate::{bn254, bn254_nogami};

fn is_zero_power<P: Pairing>(x: &Fp12<P::Base>) -> bool {
    x.power(&P::G1::ORDER) == Fp12::ONE
}

/// All backends against words, for up to 17 pairs.
fn check_backends<P: Pairing>() {
    let mut rng = Rng::new(8);
    for count in [0, 1, 2, 7, 8, 9, 17] {
        let mut point = || [rng.word(), rng.word(), rng.edge_word(), rng.word() >> 3];
        let mut pairs: Vec<_> = (0..count)
            .map(|_| {
                let (p, q) =
                    (P::G1::GENERATOR.multiply(&point()), P::G2::GENERATOR.multiply(&point()));
                (p.to_affine(), q.to_affine())
            })
            .collect();
        if count > 2 {
            pairs[1].0 = Affine::INFINITY;
            pairs[count - 1].1 = Affine::INFINITY;
            pairs[2] = pairs[0];
        }
        let f = P::miller_loop(Backend::Scalar, &pairs);
        let right = P::final_exponentiation(Backend::Scalar, &f);
        for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
            let f = P::miller_loop(backend, &pairs);
            let found = P::final_exponentiation(backend, &f);
            assert_eq!(found, right, "{count} pairs, {}", backend.name());
        }
    }
}

/// Products that check second points, with points of the curve outside of the group: arbitrary ones, some of an order
/// that divides the cofactor, and some of the order left after a product with `rest`.
fn check_second_points<P: Pairing>(rest: &[u64])
where
    <P::G2 as Curve>::Base: Random,
{
    let mut rng = Rng::new(31);
    let random: Affine<P::G2> = rng.point_of_curve();
    let of_cofactor = Jacobian::from(random).multiply_slowly(&P::G2::ORDER);
    let mut bad = vec![random, of_cofactor.to_affine()];
    let small = of_cofactor.multiply_slowly(rest);
    assert!(!small.is_infinity());
    if rest != [1] {
        let group_and_small = small + Jacobian::from(P::G2::GENERATOR);
        bad.extend(Jacobian::all_to_affine(&[small, small.double(), group_and_small]));
    }
    for count in [1, 2, 8, 9] {
        let mut number = || [rng.word(), rng.word(), 0, 0];
        let pairs: Vec<_> = (0..count)
            .map(|_| {
                let p = P::G1::GENERATOR.multiply(&number());
                (p.to_affine(), P::G2::GENERATOR.multiply(&number()).to_affine())
            })
            .collect();
        for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
            let f = P::miller_loop(backend, &pairs);
            let product = Some(P::final_exponentiation(backend, &f));
            assert_eq!(P::checked_product(backend, &pairs), product);
            for (kind, q) in bad.iter().enumerate() {
                assert!(q.is_on_curve() && !P::G2::is_in_group(q));
                for first in [P::G1::GENERATOR, Affine::INFINITY] {
                    let mut pairs = pairs.clone();
                    pairs[rng.word() as usize % count] = (first, *q);
                    let product = P::checked_product(backend, &pairs);
                    assert_eq!(product, None, "{count} pairs, {}, {kind}", backend.name());
                }
            }
            let mut pairs = pairs.clone();
            pairs[0] = (Affine::INFINITY, P::G2::GENERATOR);
            pairs[count - 1].1 = Affine::INFINITY;
            assert!(P::checked_product(backend, &pairs).is_some());
        }
    }
}

#[test]
fn second_points_are_checked_on_the_way() {
    // Their cofactors divided by 13^2 and 10069.
    check_second_points::<Bls12381>(&[
        0x3336_b315_0941_cfdd,
        0xedf4_046d_b800_a837,
        0x45e0_aef2_9c5e_8629,
        0x5a5b_213d_cb71_0859,
        0x81be_2a9b_0c64_8304,
        0x60a5_f9bd_c250_555d,
        0xd5a3_c566_3541_d68b,
        0x0008_d5fc_7522_f6c4,
    ]);
    check_second_points::<Bn254>(&[
        0x6c3c_d334_915f_1659,
        0x2071_42f7_671a_f448,
        0x9e28_bcf6_5b56_81da,
        0x0001_3af7_a58f_ce69,
    ]);
    check_second_points::<Bls12377>(&[1]);
    check_second_points::<Bn254Nogami>(&[1]);
}

tests! {
    bls12_381_backends: check_backends::<Bls12381>();
    bls12_377_backends: check_backends::<Bls12377>();
    bn254_backends: check_backends::<Bn254>();
    bn254_nogami_backends: check_backends::<Bn254Nogami>();
}

fn check<P: Pairing>() {
    let (p, q) = (P::G1::GENERATOR, P::G2::GENERATOR);
    let one = P::pair(&p, &q);
    assert_ne!(one, Fp12::ONE);
    assert!(is_zero_power::<P>(&one));
    let mut rng = Rng::new(7);
    for _ in 0..20 {
        let a = [rng.word(), rng.edge_word(), rng.word(), rng.word() >> 3];
        let b = [rng.word(), rng.word(), 0, 0];
        let (pa, qb) = (p.multiply(&a).to_affine(), q.multiply(&b).to_affine());
        let value = P::pair(&pa, &qb);
        assert_eq!(value, one.power(&a).power(&b), "{a:x?} {b:x?}");
        assert_eq!(P::pair(&pa, &q), one.power(&a));
        assert_eq!(P::pair(&p, &qb), one.power(&b));
        // e(aP, bQ) e(-abP, Q) = 1, with infinity among the pairs.
        let minus = limbs::minus_small(&P::G1::ORDER, 1);
        let ab = pa.multiply(&b).multiply(&minus).to_affine();
        let pairs = [(pa, qb), (Affine::INFINITY, q), (ab, q), (p, Affine::INFINITY)];
        assert_eq!(P::product(&pairs), Fp12::ONE);
        assert_eq!(P::product(&pairs[..2]), value);
    }
    assert_eq!(P::product(&[]), Fp12::ONE);
    assert_eq!(P::pair(&Affine::INFINITY, &q), Fp12::ONE);
}

tests! {
    bls12_381_is_bilinear: check::<Bls12381>();
    bls12_377_is_bilinear: check::<Bls12377>();
    bn254_is_bilinear: check::<Bn254>();
    bn254_nogami_is_bilinear: check::<Bn254Nogami>();
}

/// The final exponentiation against one power, for every curve.
#[test]
fn final_exponentiations_are_powers() {
    fn check<P, M, const N: usize>(cofactor: &[u64], is_negative: bool)
    where
        P: Pairing<Base = Fe<M, N>>,
        M: TowerModulus<N>,
    {
        // (p^4 - p^2 + 1) / r times the cofactor. The square of p is odd, so nothing carries.
        let square = product(&M::MODULUS, &M::MODULUS);
        let mut less = square.clone();
        less[0] -= 1;
        let mut number = product(&square, &less);
        number[0] += 1;
        let exponent = product(&quotient(&number, &P::G1::ORDER), cofactor);
        let mut rng = Rng::new(24);
        for _ in 0..3 {
            let x = rng.fp12::<M, N>();
            let easy = x.conjugate() * x.inverse().expect("not zero");
            let power = (easy.frobenius(2) * easy).power(&exponent);
            let found = P::final_exponentiation(Backend::detect(), &x);
            assert_eq!(found, if is_negative { power.conjugate() } else { power });
            // Factors in subfields are removed.
            let y = Fp12 { c0: rng.fp6::<M, N>(), c1: Fp6::ZERO };
            assert_eq!(P::final_exponentiation(Backend::detect(), &(x * y)), found);
        }
    }
    check::<Bls12381, _, 6>(&[3], false);
    check::<Bls12377, _, 6>(&[3], false);
    // 2 x (6 x^2 + 3 x + 1), with the sign of x.
    let cofactor = |x: u64, is_negative: bool| {
        let square = 6 * u128::from(x).pow(2);
        let thrice = 3 * u128::from(x);
        let factor = if is_negative { square - thrice + 1 } else { square + thrice + 1 };
        product(&[2 * x, 0], &[factor as u64, (factor >> 64) as u64])
    };
    check::<Bn254, _, 4>(&cofactor(bn254::X, false), false);
    check::<Bn254Nogami, _, 4>(&cofactor(bn254_nogami::X, true), true);
}

/// All limbs of the product.
fn product(a: &[u64], b: &[u64]) -> Vec<u64> {
    let mut product = vec![0; a.len() + b.len()];
    for (i, a) in a.iter().enumerate() {
        let mut carry = 0;
        for (j, b) in b.iter().enumerate() {
            (product[i + j], carry) = limbs::multiply_add(product[i + j], *a, *b, carry);
        }
        product[i + b.len()] = carry;
    }
    product
}

/// Quotient by an order, bit by bit; there must be no remainder.
fn quotient(number: &[u64], order: &[u64; 4]) -> Vec<u64> {
    let (mut quotient, mut rest) = (vec![0; number.len()], [0; 4]);
    for index in (0..limbs::bits(number)).rev() {
        rest = limbs::add(&rest, &rest).0;
        rest[0] |= u64::from(limbs::bit(number, index));
        if !limbs::less(&rest, order) {
            rest = limbs::sub(&rest, order).0;
            quotient[index / 64] |= 1 << (index % 64);
        }
    }
    assert_eq!(rest, [0; 4]);
    quotient
}

/// Miller's function by its definition, with lines through points of the curve over Fp12, to the
/// power of the final exponentiation.
mod by_definition {
    use super::super::{Bls12377, Bls12381, Bn254, Bn254Nogami, Pairing};
    use crate::curve::{Affine, Curve};
    use crate::field::{Fe, Field as _};
    use crate::msm::Backend;
    use crate::tower::{Fp2, Fp6, Fp12, TowerModulus, Twist};

    type Point<F> = (Fp12<F>, Fp12<F>);

    /// `w^k` times an element of Fp2.
    fn at<M: TowerModulus<N>, const N: usize>(k: usize, x: Fp2<Fe<M, N>>) -> Fp12<Fe<M, N>> {
        let part = |place: usize| if place == k { x } else { Fp2::ZERO };
        Fp12 {
            c0: Fp6 { c0: part(0), c1: part(2), c2: part(4) },
            c1: Fp6 { c0: part(1), c1: part(3), c2: part(5) },
        }
    }

    /// The image on the curve of a point of the twist: times `w^2` and `w^3`, or divided by them.
    fn untwisted<C, M, const N: usize>(q: &Affine<C>) -> Point<Fe<M, N>>
    where
        C: Curve<Base = Fp2<Fe<M, N>>>,
        M: TowerModulus<N>,
    {
        let (x, y) = (at(2, Fp2::ONE), at(3, Fp2::ONE));
        let [x, y] = match M::TWIST {
            Twist::D => [x, y],
            Twist::M => [x, y].map(|power| power.inverse().expect("not zero")),
        };
        (at(0, q.x) * x, at(0, q.y) * y)
    }

    /// The line through both points at (x, y), and their sum.
    fn step<M: TowerModulus<N>, const N: usize>(
        a: &Point<Fe<M, N>>,
        b: &Point<Fe<M, N>>,
        [x, y]: [Fe<M, N>; 2],
    ) -> (Fp12<Fe<M, N>>, Point<Fe<M, N>>) {
        let slope = if a == b {
            let square = a.0 * a.0;
            (square + square + square) * (a.1 + a.1).inverse().expect("an odd order")
        } else {
            (b.1 - a.1) * (b.0 - a.0).inverse().expect("different")
        };
        let sum_x = slope * slope - a.0 - b.0;
        let real = |x| at(0, Fp2 { c0: x, c1: Fe::ZERO });
        let line = real(y) - a.1 - slope * (real(x) - a.0);
        (line, (sum_x, slope * (a.0 - sum_x) - a.1))
    }

    /// `f_n(P)` for the absolute value of the loop parameter, inverted if it is negative, and for
    /// BN curves the lines through the multiple, the p-th power of Q and minus its square.
    fn pairing<P, M, const N: usize>(number: u128, is_negative: bool) -> Fp12<Fe<M, N>>
    where
        P: Pairing<Base = Fe<M, N>>,
        M: TowerModulus<N>,
    {
        let (p, q) = (P::G1::GENERATOR, untwisted(&P::G2::GENERATOR));
        let (mut f, mut sum) = (Fp12::ONE, q);
        for place in (0..number.ilog2()).rev() {
            let (line, twice) = step(&sum, &sum, [p.x, p.y]);
            (f, sum) = (f * f * line, twice);
            if number >> place & 1 == 1 {
                let (line, next) = step(&sum, &q, [p.x, p.y]);
                (f, sum) = (f * line, next);
            }
        }
        if is_negative {
            (f, sum.1) = (f.inverse().expect("not zero"), -sum.1);
        }
        if P::LAST_POINTS == 2 {
            let power = |times| (q.0.frobenius(times), q.1.frobenius(times));
            let (line, next) = step(&sum, &power(1), [p.x, p.y]);
            let (x, y) = power(2);
            let (last, _) = step(&next, &(x, -y), [p.x, p.y]);
            f = f * line * last;
        }
        P::final_exponentiation(Backend::detect(), &f)
    }

    #[test]
    fn pairings_of_generators() {
        fn check<P, M, const N: usize>(number: u128, is_negative: bool)
        where
            P: Pairing<Base = Fe<M, N>>,
            M: TowerModulus<N>,
        {
            let right = pairing::<P, M, N>(number, is_negative);
            assert_eq!(P::pair(&P::G1::GENERATOR, &P::G2::GENERATOR), right, "{number}");
        }
        check::<Bls12381, _, 6>(crate::bls12_381::X.into(), true);
        check::<Bls12377, _, 6>(crate::bls12_377::X.into(), false);
        check::<Bn254, _, 4>(6 * u128::from(crate::bn254::X) + 2, false);
        check::<Bn254Nogami, _, 4>(6 * u128::from(crate::bn254_nogami::X) - 2, true);
    }
}
