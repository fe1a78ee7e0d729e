//! The groups of curves of Barreto, Lynn and Scott with embedding degree 12, with cofactors.

use core::marker::PhantomData;

use super::prime_order::cube_root_of_one;
use super::scalar::{Short, divide, low};
use super::{Affine, Curve, Jacobian, twist_constant, twist_frobenius};
use crate::field::{Fe, Modulus};
use crate::tower::{Fp2, TowerModulus};
use crate::{bls12_377, bls12_381};

/// Parameters of both groups and the pairing.
pub trait Parameters:
    Copy + Eq + core::fmt::Debug + core::hash::Hash + Send + Sync + 'static
{
    type Base: TowerModulus<6>;
    /// Scalar field: `r = x^4 - x^2 + 1`.
    type Scalar: Modulus<4>;
    /// The absolute value of the parameter x.
    const X: u64;
    /// True if x is negative.
    const IS_NEGATIVE: bool;
    /// A number whose power `(p - 1) / 3` is beta, the cube root of one with
    /// `(beta x, y) = -x^2 (x, y)` in the first group.
    const BETA_ROOT: u64;
    const G1: [Fe<Self::Base, 6>; 2];
    const G2: [Fp2<Fe<Self::Base, 6>>; 2];
}

/// The group over the base field, on `y^2 = x^3 + b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct G1<F>(PhantomData<F>);

/// The group over Fp2, on the twist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct G2<F>(PhantomData<F>);

const fn square<F: Parameters>() -> u128 {
    F::X as u128 * F::X as u128
}

impl<F: Parameters> G1<F> {
    /// A cube root of one, with `(beta x, y) = -x^2 (x, y)` for the parameter x and points of the group.
    pub(crate) const BETA: Fe<F::Base, 6> = cube_root_of_one(F::BETA_ROOT);

    pub(crate) fn endomorphism(point: &Jacobian<Self>) -> Jacobian<Self> {
        Jacobian { x: point.x * Self::BETA, ..*point }
    }
}

impl<F: Parameters> Curve for G1<F> {
    type Base = Fe<F::Base, 6>;
    const ORDER: [u64; 4] = F::Scalar::MODULUS;
    const B: Self::Base = Fe::from_u64(F::Base::B);
    const GENERATOR: Affine<Self> = Affine::new(F::G1[0], F::G1[1]);

    /// Scott, "A note on group membership tests for G1, G2 and GT on BLS pairing-friendly curves"
    /// (2021): the endomorphism acts as `-x^2`. It is a cube root of one on the whole curve, so
    /// such points are annihilated by `x^4 - x^2 + 1`, the order, for any cofactor.
    fn is_in_group(point: &Affine<Self>) -> bool {
        let point = Jacobian::from(*point);
        let x2 = point.multiply_slowly(&[F::X]).multiply_slowly(&[F::X]);
        Self::endomorphism(&point) == -x2
    }

    const PARTS: usize = 2;
    const PART_BITS: usize = 128;

    /// `k = k0 + k1 x^2`.
    fn split(number: &[u64; 4]) -> [Short; 4] {
        let (quotient, rest) = divide(number, const { square::<F>() });
        [Short::new(rest), Short::new(low(&quotient)), Short::ZERO, Short::ZERO]
    }

    fn times_lambda(point: &Jacobian<Self>) -> Jacobian<Self> {
        -Self::endomorphism(point)
    }
}

impl<F: Parameters> G2<F> {
    /// Untwist, Frobenius, twist: acts as the parameter x on the group.
    pub(crate) fn endomorphism(point: &Jacobian<Self>) -> Jacobian<Self> {
        twist_frobenius(point)
    }

    /// The product with the absolute value of x.
    fn times_x(point: &Jacobian<Self>) -> Jacobian<Self> {
        let multiple = Self::endomorphism(point);
        if F::IS_NEGATIVE { -multiple } else { multiple }
    }
}

impl<F: Parameters> Curve for G2<F> {
    type Base = Fp2<Fe<F::Base, 6>>;
    const ORDER: [u64; 4] = F::Scalar::MODULUS;
    const B: Self::Base = twist_constant();
    const GENERATOR: Affine<Self> = Affine::new(F::G2[0], F::G2[1]);

    /// Scott (2021): psi acts as x.
    fn is_in_group(point: &Affine<Self>) -> bool {
        let point = Jacobian::from(*point);
        Self::times_x(&point) == point.multiply_slowly(&[F::X])
    }

    const PARTS: usize = 4;
    const PART_BITS: usize = 64;

    /// `k = k0 + k1 |x| + k2 |x|^2 + k3 |x|^3`.
    fn split(number: &[u64; 4]) -> [Short; 4] {
        let (upper, lower) = divide(number, const { square::<F>() });
        let (upper, x) = (low(&upper), u128::from(F::X));
        [lower % x, lower / x, upper % x, upper / x].map(Short::new)
    }

    fn times_lambda(point: &Jacobian<Self>) -> Jacobian<Self> {
        Self::times_x(point)
    }
}

impl Parameters for bls12_381::Parameters {
    type Base = bls12_381::FpModulus;
    type Scalar = bls12_381::FrModulus;
    const X: u64 = bls12_381::X;
    const IS_NEGATIVE: bool = true;
    const BETA_ROOT: u64 = 2;
    const G1: [Fe<Self::Base, 6>; 2] = Fe::all_from_hex([
        "17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb",
        "08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3edd03cc744a2888ae40caa232946c5e7e1",
    ]);
    const G2: [Fp2<Fe<Self::Base, 6>>; 2] = Fp2::all_from_hex([
        [
            "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8",
            "13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e",
        ],
        [
            "0ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801",
            "0606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be",
        ],
    ]);
}

impl Parameters for bls12_377::Parameters {
    type Base = bls12_377::FpModulus;
    type Scalar = bls12_377::FrModulus;
    const X: u64 = bls12_377::X;
    const IS_NEGATIVE: bool = false;
    const BETA_ROOT: u64 = 2;
    const G1: [Fe<Self::Base, 6>; 2] = Fe::all_from_hex([
        "008848defe740a67c8fc6225bf87ff5485951e2caa9d41bb188282c8bd37cb5cd5481512ffcd394eeab9b16eb21be9ef",
        "01914a69c5102eff1f674f5d30afeec4bd7fb348ca3e52d96d182ad44fb82305c2fe3d3634a9591afd82de55559c8ea6",
    ]);
    const G2: [Fp2<Fe<Self::Base, 6>>; 2] = Fp2::all_from_hex([
        [
            "018480be71c785fec89630a2a3841d01c565f071203e50317ea501f557db6b9b71889f52bb53540274e3e48f7c005196",
            "00ea6040e700403170dc5a51b1b140d5532777ee6651cecbe7223ece0799c9de5cf89984bff76fe6b26bfefa6ea16afe",
        ],
        [
            "00690d665d446f7bd960736bcbb2efb4de03ed7274b49a58e458c282f832d204f2cf88886d8c7c2ef094094409fd4ddf",
            "00f8169fd28355189e549da3151a70aa61ef11ac3d591bf12463b01acee304c24279b83f5e52270bd9a1cdd185eb8f93",
        ],
    ]);
}
