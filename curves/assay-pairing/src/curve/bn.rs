//! The second groups of curves of Barreto and Naehrig. The first ones are [`prime_order`](super::prime_order).

use core::marker::PhantomData;

use super::glv::Lattice;
use super::scalar::{Short, by_windows};
use super::{Affine, Curve, Jacobian, gls, prime_order, twist_constant, twist_frobenius};
use crate::field::{Fe, Modulus as _};
use crate::tower::{Fp2, TowerModulus};
use crate::{bn254, bn254_nogami};

/// Parameters of the second group and the pairing.
pub trait Parameters: prime_order::Parameters<Base: TowerModulus<4>> {
    /// The absolute value of the parameter x.
    const X: u64;
    /// True if x is negative.
    const IS_NEGATIVE: bool;
    const G2: [Fp2<Fe<Self::Base, 4>>; 2];
}

/// Lattice of the first group: `6 x^2 + 2 x` and `2 x + 1`, for `lambda = (36 x^3 + 18 x^2 + 6 x + 1)^2`.
pub(super) const fn lattice(order: &[u64; 4], x: u64, is_negative: bool) -> Lattice {
    let (square, twice) = (6 * x as u128 * x as u128, 2 * x as u128);
    if is_negative {
        Lattice::new(order, square - twice, twice - 1, true)
    } else {
        Lattice::new(order, square + twice, twice + 1, false)
    }
}

/// The group over Fp2, on the twist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct G2<F>(PhantomData<F>);

impl<F: Parameters> G2<F> {
    /// Untwist, Frobenius, twist: acts as `6 x^2` on the group.
    pub(crate) fn endomorphism(point: &Jacobian<Self>) -> Jacobian<Self> {
        twist_frobenius(point)
    }
}

impl<F: Parameters> Curve for G2<F> {
    type Base = Fp2<Fe<F::Base, 4>>;
    const ORDER: [u64; 4] = F::Scalar::MODULUS;
    const B: Self::Base = twist_constant();
    const GENERATOR: Affine<Self> = Affine::new(F::G2[0], F::G2[1]);

    /// `(x + 1) P + psi(x P) + psi^2(x P) = psi^3(2 x P)` (Dai, Lin, Zhao, Zhou, "Fast subgroup membership testings
    /// for G1, G2 and GT on pairing-friendly curves", 2022, section 3).
    fn is_in_group(point: &Affine<Self>) -> bool {
        let point = Jacobian::from(*point);
        let psi = Self::endomorphism;
        // A table costs as much as eight additions.
        let multiple = if const { F::X.count_ones() > 18 } {
            by_windows(&point, F::X)
        } else {
            point.multiply_slowly(&[F::X])
        };
        let multiple = if F::IS_NEGATIVE { -multiple } else { multiple };
        let left = point + multiple + psi(&multiple) + psi(&psi(&multiple));
        left == psi(&psi(&psi(&multiple.double())))
    }

    const PARTS: usize = 4;
    const PART_BITS: usize = gls::PART_BITS;

    fn split(number: &[u64; 4]) -> [Short; 4] {
        const { &gls::Rows::new(&Self::ORDER, F::X, F::IS_NEGATIVE) }.split(number)
    }

    fn times_lambda(point: &Jacobian<Self>) -> Jacobian<Self> {
        Self::endomorphism(point)
    }
}

impl prime_order::Parameters for bn254::Parameters {
    type Base = bn254::FpModulus;
    type Scalar = bn254::FrModulus;
    const B: u64 = bn254::FpModulus::B;
    const BETA_ROOT: u64 = 3;
    const LATTICE: Lattice = lattice(&bn254::FrModulus::MODULUS, bn254::X, false);
    const GENERATOR: [Fe<Self::Base, 4>; 2] = [Fe::ONE, Fe::from_u64(2)];
}

impl Parameters for bn254::Parameters {
    const X: u64 = bn254::X;
    const IS_NEGATIVE: bool = false;
    const G2: [Fp2<Fe<Self::Base, 4>>; 2] = Fp2::all_from_hex([
        [
            "1800deef121f1e76426a00665e5c4479674322d4f75edadd46debd5cd992f6ed",
            "198e9393920d483a7260bfb731fb5d25f1aa493335a9e71297e485b7aef312c2",
        ],
        [
            "12c85ea5db8c6deb4aab71808dcb408fe3d1e7690c43d37b4ce6cc0166fa7daa",
            "090689d0585ff075ec9e99ad690c3395bc4b313370b38ef355acdadcd122975b",
        ],
    ]);
}

impl prime_order::Parameters for bn254_nogami::Parameters {
    type Base = bn254_nogami::FpModulus;
    type Scalar = bn254_nogami::FrModulus;
    const B: u64 = bn254_nogami::FpModulus::B;
    const BETA_ROOT: u64 = 2;
    const LATTICE: Lattice = lattice(&bn254_nogami::FrModulus::MODULUS, bn254_nogami::X, true);
    const GENERATOR: [Fe<Self::Base, 4>; 2] = [Fe::ONE.negated(), Fe::ONE];
}

impl Parameters for bn254_nogami::Parameters {
    const X: u64 = bn254_nogami::X;
    const IS_NEGATIVE: bool = true;
    /// The point (-u, 1) times the cofactor, as in Aranha et al., "Faster explicit formulas for computing pairings over ordinary
    /// curves" (2011).
    const G2: [Fp2<Fe<Self::Base, 4>>; 2] = Fp2::all_from_hex([
        [
            "061a10bb519eb62feb8d8c7e8c61edb6a4648bbb4898bf0d91ee4224c803fb2b",
            "0516aaf9ba737833310aa78c5982aa5b1f4d746bae3784b70d8c34c1e7d54cf3",
        ],
        [
            "021897a06baf93439a90e096698c822329bd0ae6bdbe09bd19f0e07891cd2b9a",
            "0ebb2b0e7c8b15268f6d4456f5f38d37b09006ffd739c9578a2d1aec6b3ace9b",
        ],
    ]);
}
