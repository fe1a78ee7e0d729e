//! Groups of points on `y^2 = x^3 + b`.
//!
//! [`Affine`] is for input and storage, [`Jacobian`] (x = X / Z^2, y = Y / Z^3) for arithmetic. Addition and doubling
//! are complete: correct for all points, including infinity and equal operands.

pub(crate) mod bls12;
pub(crate) mod bn;
mod gls;
mod glv;
pub(crate) mod prime_order;
mod scalar;
pub(crate) mod secret;
#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use scalar::Short;
pub(crate) use scalar::{divide_by_square, parts, sum_of_few};

use core::ops::{Add, Neg, Sub};

use crate::field::{Fe, Field};
use crate::limbs;
use crate::tower::{Fp2, TowerField, TowerModulus, Twist};
use crate::{bls12_377, bls12_381, bn254, bn254_nogami};

/// The group over the base field of BLS12-381, on `y^2 = x^3 + 4`.
pub type BlsG1 = bls12::G1<bls12_381::Parameters>;
/// The group over Fp2, on the twist `y^2 = x^3 + 4 (1 + u)`.
pub type BlsG2 = bls12::G2<bls12_381::Parameters>;
/// The group over the base field of BLS12-377, on `y^2 = x^3 + 1`; its cofactor, `(x - 1)^2 / 3`, is even.
pub type Bls377G1 = bls12::G1<bls12_377::Parameters>;
/// The group over Fp2, on the twist `y^2 = x^3 + 1 / u`.
pub type Bls377G2 = bls12::G2<bls12_377::Parameters>;
/// The group over the base field of BN254, on `y^2 = x^3 + 3`, without a cofactor.
pub type BnG1 = prime_order::PrimeOrder<bn254::Parameters>;
/// The group over Fp2, on the twist `y^2 = x^3 + 3 / (9 + u)`.
pub type BnG2 = bn::G2<bn254::Parameters>;
/// The group over the base field of BN254-Nogami, on `y^2 = x^3 + 2`, without a cofactor.
pub type NogamiG1 = prime_order::PrimeOrder<bn254_nogami::Parameters>;
/// The group over Fp2, on the twist `y^2 = x^3 + 2 / (1 + u)`, which is `x^3 + 1 - u`.
pub type NogamiG2 = bn::G2<bn254_nogami::Parameters>;

/// A group of prime order on a curve `y^2 = x^3 + b`.
pub trait Curve: Copy + Eq + core::fmt::Debug + Send + Sync + 'static {
    /// The field of coordinates.
    type Base: Field;
    const ORDER: [u64; 4];
    /// The constant of the equation.
    const B: Self::Base;
    const GENERATOR: Affine<Self>;

    /// True if a point of the curve is in the group; checked by an endomorphism if there is a cofactor.
    fn is_in_group(point: &Affine<Self>) -> bool;

    /// Number of parts that the endomorphism splits a number into, and the bits of each.
    #[doc(hidden)]
    const PARTS: usize;
    #[doc(hidden)]
    const PART_BITS: usize;

    /// Numbers k0, k1, … with `k = k0 + k1 l + k2 l^2 + k3 l^3` modulo the order for a number k below it, where l is
    /// the eigenvalue of [`Curve::times_lambda`]. Numbers from [`Curve::PARTS`] on are zero.
    #[doc(hidden)]
    fn split(number: &[u64; 4]) -> [Short; 4];

    /// The endomorphism; preserves Z = 1.
    #[doc(hidden)]
    #[must_use]
    fn times_lambda(point: &Jacobian<Self>) -> Jacobian<Self>;

    /// Product of a point *of the group* and a number below 2^256, by the endomorphism. For other
    /// points of the curve the result is wrong; see [`Jacobian::multiply_slowly`].
    #[must_use]
    fn multiply(point: &Jacobian<Self>, scalar: &[u64; 4]) -> Jacobian<Self> {
        scalar::product(point, scalar)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine<C: Curve> {
    /// Zero at infinity.
    pub x: C::Base,
    /// Zero at infinity.
    pub y: C::Base,
    /// True for the point at infinity.
    pub is_infinity: bool,
}

/// A point in Jacobian coordinates; infinity has Z = 0.
#[derive(Clone, Copy, Debug)]
pub struct Jacobian<C: Curve> {
    pub(crate) x: C::Base,
    pub(crate) y: C::Base,
    pub(crate) z: C::Base,
}

impl<C: Curve> Affine<C> {
    pub const INFINITY: Self = Self { x: C::Base::ZERO, y: C::Base::ZERO, is_infinity: true };

    /// The point with these unchecked coordinates.
    #[must_use]
    pub const fn new(x: C::Base, y: C::Base) -> Self {
        Self { x, y, is_infinity: false }
    }

    /// True if the point satisfies the curve equation.
    pub fn is_on_curve(&self) -> bool {
        self.is_infinity || self.y.square() == self.x.square() * self.x + C::B
    }

    /// The point with this x and the larger or the smaller y; `None` if x is not on the curve.
    pub fn from_x(x: C::Base, is_y_largest: bool) -> Option<Self> {
        let y = (x.square() * x + C::B).sqrt()?;
        Some(Self::new(x, if y.is_largest() == is_y_largest { y } else { -y }))
    }

    /// True if the point is on the curve and in the group.
    pub fn is_in_group(&self) -> bool {
        self.is_on_curve() && C::is_in_group(self)
    }

    /// Product with a number; the point must be in the group.
    #[must_use]
    pub fn multiply(&self, scalar: &[u64; 4]) -> Jacobian<C> {
        C::multiply(&(*self).into(), scalar)
    }
}

impl<C: Curve> Jacobian<C> {
    pub const INFINITY: Self = Self { x: C::Base::ONE, y: C::Base::ONE, z: C::Base::ZERO };

    /// True if this is the point at infinity.
    pub fn is_infinity(&self) -> bool {
        self.z.is_zero()
    }

    /// Conversion to affine coordinates; one inversion.
    pub fn to_affine(&self) -> Affine<C> {
        match self.z.inverse() {
            Some(inverse) => self.scaled(inverse),
            None => Affine::INFINITY,
        }
    }

    fn scaled(&self, z_inverse: C::Base) -> Affine<C> {
        let square = z_inverse.square();
        Affine::new(self.x * square, self.y * square * z_inverse)
    }

    /// Conversion of many points; one inversion in total.
    pub fn all_to_affine(points: &[Self]) -> Vec<Affine<C>> {
        let mut inverses: Vec<_> = points.iter().map(|point| point.z).collect();
        C::Base::invert_all(&mut inverses);
        let of = |(point, inverse): (&Self, C::Base)| {
            if point.is_infinity() { Affine::INFINITY } else { point.scaled(inverse) }
        };
        points.iter().zip(inverses).map(of).collect()
    }

    /// Doubling: 2009, Lange, dbl-2009-l, with Z halved and `x y^2` as a product: six instead of fourteen additions.
    #[must_use]
    pub fn double(&self) -> Self {
        let b = self.y.square();
        let d = self.x.times(&b);
        let a = self.x.square();
        let e = a + a.half();
        let x = e.square() - d.double();
        let y = e.times(&(d - x)) - b.square();
        Self { x, y, z: self.y.times(&self.z) }
    }

    /// Sum with an affine point: Z3 = Z1 H.
    #[must_use]
    pub fn add_affine(&self, other: &Affine<C>) -> Self {
        if other.is_infinity {
            return *self;
        }
        if self.is_infinity() {
            return (*other).into();
        }
        let z2 = self.z.square();
        let h = other.x.times(&z2) - self.x;
        let r = other.y.times(&self.z) * z2 - self.y;
        if h.is_zero() {
            return if r.is_zero() { self.double() } else { Self::INFINITY };
        }
        Self::sum_by(&h, &r, &self.x, &self.y, self.z.times(&h))
    }

    /// Sum: Z3 = Z1 Z2 H. Replacing a product by a square would save nothing in Fp and cost additions.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        if other.is_infinity() {
            return *self;
        }
        if self.is_infinity() {
            return *other;
        }
        let (z1, z2) = (self.z.square(), other.z.square());
        let u = self.x.times(&z2);
        let s = self.y.times(&other.z) * z2;
        let h = other.x.times(&z1) - u;
        let r = other.y.times(&self.z) * z1 - s;
        if h.is_zero() {
            return if r.is_zero() { self.double() } else { Self::INFINITY };
        }
        Self::sum_by(&h, &r, &u, &s, self.z.times(&other.z).times(&h))
    }

    /// `x = r^2 - h^3 - 2 u h^2`, `y = r (u h^2 - x) - s h^3`.
    #[inline(always)]
    fn sum_by(h: &C::Base, r: &C::Base, u: &C::Base, s: &C::Base, z: C::Base) -> Self {
        let h2 = h.square();
        let h3 = h2.times(h);
        let v = u.times(&h2);
        let x = r.square() - h3 - v.double();
        let y = r.times(&(v - x)) - s.times(&h3);
        Self { x, y, z }
    }

    /// Product of any point of the curve and a number, bit by bit.
    #[must_use]
    pub fn multiply_slowly(&self, scalar: &[u64]) -> Self {
        (0..limbs::bits(scalar)).rev().fold(Self::INFINITY, |sum, index| {
            let twice = sum.double();
            if limbs::bit(scalar, index) { twice + *self } else { twice }
        })
    }

    /// Product of a point of the group and a number ([`Curve::multiply`]).
    #[must_use]
    pub fn multiply(&self, scalar: &[u64; 4]) -> Self {
        C::multiply(self, scalar)
    }
}

impl<C: Curve> From<Affine<C>> for Jacobian<C> {
    fn from(point: Affine<C>) -> Self {
        if point.is_infinity {
            return Self::INFINITY;
        }
        Self { x: point.x, y: point.y, z: C::Base::ONE }
    }
}

/// Equality as points: representations are not unique.
impl<C: Curve> PartialEq for Jacobian<C> {
    fn eq(&self, other: &Self) -> bool {
        if self.is_infinity() || other.is_infinity() {
            return self.is_infinity() == other.is_infinity();
        }
        let (z1, z2) = (self.z.square(), other.z.square());
        self.x * z2 == other.x * z1 && self.y * z2 * other.z == other.y * z1 * self.z
    }
}

impl<C: Curve> Eq for Jacobian<C> {}

impl<C: Curve> Add for Jacobian<C> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.plus(&other)
    }
}

impl<C: Curve> Sub for Jacobian<C> {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.plus(&-other)
    }
}

impl<C: Curve> Neg for Jacobian<C> {
    type Output = Self;
    fn neg(self) -> Self {
        Self { y: -self.y, ..self }
    }
}

impl<C: Curve> Neg for Affine<C> {
    type Output = Self;
    fn neg(self) -> Self {
        Self { y: -self.y, ..self }
    }
}

/// The constant of the twist that the second group of a pairing is on: b times xi, or divided by it.
const fn twist_constant<M: TowerModulus<N>, const N: usize>() -> Fp2<Fe<M, N>> {
    let b = Fe::from_u64(M::B);
    let Fp2 { c0, c1 } = match M::TWIST {
        Twist::M => Fp2 { c0: Fe::from_u64(M::XI), c1: Fe::ONE },
        Twist::D => Fe::<M, N>::XI_INVERSE,
    };
    Fp2 { c0: c0.multiply(&b), c1: c1.multiply(&b) }
}

/// The factors of x and y in [`twist_frobenius`].
pub(crate) const fn frobenius_factors<M: TowerModulus<N>, const N: usize>() -> [Fp2<Fe<M, N>>; 2] {
    match M::TWIST {
        Twist::M => [Fe::<M, N>::FROBENIUS_INVERSES[2], Fe::<M, N>::FROBENIUS_INVERSES[3]],
        Twist::D => [Fe::<M, N>::FROBENIUS[2], Fe::<M, N>::FROBENIUS[3]],
    }
}

/// The Frobenius map on the second group of a pairing: untwist, Frobenius, twist.
fn twist_frobenius<M: TowerModulus<N>, const N: usize, C: Curve<Base = Fp2<Fe<M, N>>>>(
    point: &Jacobian<C>,
) -> Jacobian<C> {
    let [x, y] = const { frobenius_factors::<M, N>() };
    Jacobian { x: point.x.conjugate() * x, y: point.y.conjugate() * y, z: point.z.conjugate() }
}
