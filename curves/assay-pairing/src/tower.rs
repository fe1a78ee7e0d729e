//! Towers over the base field: `Fp2 = Fp[u] / (u^2 + NON_RESIDUE)`, `Fp6 = Fp2[v] / (v^3 - xi)`,
//! `Fp12 = Fp6[w] / (w^2 - v)`, with `xi = XI + u`. All pairing-friendly curves here are of this shape.

mod backend;
pub(crate) mod cyclotomic;
mod fp12;
mod fp2;
mod fp6;
mod lazy;
mod sums;
#[cfg(test)]
mod tests;

pub use fp2::Fp2;
pub use fp6::Fp6;
pub use fp12::Fp12;

use crate::field::{Fe, Field, Modulus};
use crate::limbs;

/// A base field with the parameters of its tower.
pub trait TowerModulus<const N: usize>: Modulus<N> {
    /// The negated square of u; its negation is not a square. 1 or 5.
    const NON_RESIDUE: u64;
    /// The real part of `xi`, which is neither a square nor a cube in Fp2. 0 to 15.
    const XI: u64;
    /// The constant b of the curve `y^2 = x^3 + b`.
    const B: u64;
    const TWIST: Twist;
}

/// Type of the twist: the constant of the second curve is that of the first times xi or divided by xi.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twist {
    /// `b` times xi.
    M,
    /// `b` divided by xi.
    D,
}

/// Base ring of Fp2: single elements, or many in lanes.
pub trait TowerRing:
    Copy
    + core::ops::Add<Output = Self>
    + core::ops::Sub<Output = Self>
    + core::ops::Mul<Output = Self>
    + core::ops::Neg<Output = Self>
{
    /// The negated square of u.
    const NON_RESIDUE: u64;
    /// Real part of xi.
    const XI: u64;
    const TWIST: Twist;

    fn zero() -> Self;
    fn one() -> Self;
    /// The product of elements of Fp2.
    #[must_use]
    fn product(a: &Fp2<Self>, b: &Fp2<Self>) -> Fp2<Self>;
    /// The square of an element of Fp2.
    #[must_use]
    fn square(a: &Fp2<Self>) -> Fp2<Self>;
    /// The product of an element of Fp2 and one of the base field.
    #[must_use]
    fn scaled(a: &Fp2<Self>, factor: &Self) -> Fp2<Self>;
    #[must_use]
    fn halved(&self) -> Self;
    #[must_use]
    fn tripled(&self) -> Self;
    #[must_use]
    fn times_u_square(&self) -> Self;
    /// The product with three times the constant of the twist.
    #[must_use]
    fn times_triple_b(x: Fp2<Self>) -> Fp2<Self>;
}

/// Base field of towers.
pub trait TowerField: Field + TowerRing {
    /// `xi^(k (p - 1) / 6)` for k from 0 to 5: factors of the Frobenius map on `w^k`.
    const FROBENIUS: [Fp2<Self>; 6];
    /// The inverses of [`TowerField::FROBENIUS`].
    const FROBENIUS_INVERSES: [Fp2<Self>; 6];
    /// `1 / xi`.
    const XI_INVERSE: Fp2<Self>;

    fn is_odd(&self) -> bool;
    /// The norm of an element of Fp2, `c0^2 + NON_RESIDUE c1^2`.
    fn norm(a: &Fp2<Self>) -> Self;
    /// A root of an element of Fp2 with c1 not zero, from a root of its norm; an arbitrary value if there is none.
    fn sqrt_by_norm(a: &Fp2<Self>, norm_root: &Self) -> Option<Fp2<Self>>;
    fn product_6(a: &Fp6<Self>, b: &Fp6<Self>) -> Fp6<Self>;
    fn product_12(a: &Fp12<Self>, b: &Fp12<Self>) -> Fp12<Self>;
    /// The product with a line, `b0 + b1 v + b4 v w` for twists of type M or `b0 + b1 w + b4 v w` for type D.
    fn line_product(a: &Fp12<Self>, b0: &Fp2<Self>, b1: &Fp2<Self>, b4: &Fp2<Self>) -> Fp12<Self>;
    /// `a^2 + b^2 xi` and `2 a b`.
    fn square_4(a: &Fp2<Self>, b: &Fp2<Self>) -> [Fp2<Self>; 2];
}

impl<M: TowerModulus<N>, const N: usize> TowerRing for Fe<M, N> {
    const NON_RESIDUE: u64 = M::NON_RESIDUE;
    const XI: u64 = M::XI;
    const TWIST: Twist = M::TWIST;

    fn zero() -> Self {
        Self::ZERO
    }

    fn one() -> Self {
        Self::ONE
    }

    #[inline(always)]
    fn product(a: &Fp2<Self>, b: &Fp2<Self>) -> Fp2<Self> {
        complex_product(a, Some(b)).unwrap_or_else(|| {
            if const { uses_sums::<M, N>() } {
                sums::product_2(a, b)
            } else {
                lazy::product_2(a, b)
            }
        })
    }

    #[inline(always)]
    fn square(a: &Fp2<Self>) -> Fp2<Self> {
        complex_product(a, None).unwrap_or_else(|| lazy::square_2(a))
    }

    #[inline(always)]
    fn scaled(a: &Fp2<Self>, factor: &Self) -> Fp2<Self> {
        Fp2 { c0: a.c0 * *factor, c1: a.c1 * *factor }
    }

    #[inline(always)]
    fn halved(&self) -> Self {
        self.halved()
    }

    #[inline(always)]
    fn tripled(&self) -> Self {
        *self + *self + *self
    }

    #[inline(always)]
    fn times_u_square(&self) -> Self {
        -times_small(*self, M::NON_RESIDUE)
    }

    #[inline(always)]
    fn times_triple_b(x: Fp2<Self>) -> Fp2<Self> {
        match M::TWIST {
            Twist::M => times_small(x, 3 * M::B).times_xi(),
            Twist::D => x * const { triple_b_over_xi() },
        }
    }
}

/// True if products in Fp2 and squares in Fp4 use `sums.rs`, which is faster on all curves here but
/// BLS12-381, where the times are equal.
const fn uses_sums<M: TowerModulus<N>, const N: usize>() -> bool {
    N == 4 || M::NON_RESIDUE > 1
}

/// Product, or square, by a kernel; `None` unless `u^2 = -1` and this CPU has one.
#[inline(always)]
fn complex_product<M: TowerModulus<N>, const N: usize>(
    a: &Fp2<Fe<M, N>>,
    b: Option<&Fp2<Fe<M, N>>>,
) -> Option<Fp2<Fe<M, N>>> {
    if M::NON_RESIDUE == 1 { backend::complex_product(a, b) } else { None }
}

/// Product with a small nonzero number, by doubling and adding.
#[inline(always)]
pub(crate) fn times_small<T: Copy + core::ops::Add<Output = T>>(x: T, factor: u64) -> T {
    let mut product = x;
    for bit in (0..factor.ilog2()).rev() {
        product = product + product;
        if factor >> bit & 1 == 1 {
            product = product + x;
        }
    }
    product
}

/// `3 b / xi`.
pub(crate) const fn triple_b_over_xi<M: TowerModulus<N>, const N: usize>() -> Fp2<Fe<M, N>> {
    let factor = Fe::from_u64(3 * M::B);
    let [c0, c1] = const_inverse([Fe::from_u64(M::XI), Fe::ONE]);
    Fp2 { c0: c0.multiply(&factor), c1: c1.multiply(&factor) }
}

impl<M: TowerModulus<N>, const N: usize> TowerField for Fe<M, N> {
    const FROBENIUS: [Fp2<Self>; 6] = {
        let exponent = limbs::divide_small(&limbs::minus_small(&M::MODULUS, 1), 6).0;
        powers(const_power([Self::from_u64(M::XI), Self::ONE], &exponent))
    };

    const FROBENIUS_INVERSES: [Fp2<Self>; 6] = {
        let Fp2 { c0, c1 } = Self::FROBENIUS[1];
        powers(const_inverse([c0, c1]))
    };

    const XI_INVERSE: Fp2<Self> = {
        let [c0, c1] = const_inverse([Self::from_u64(M::XI), Self::ONE]);
        Fp2 { c0, c1 }
    };

    fn is_odd(&self) -> bool {
        self.is_odd()
    }

    fn norm(a: &Fp2<Self>) -> Self {
        lazy::norm(a)
    }

    /// With `n^2 = c0^2 + NON_RESIDUE c1^2`, one of `(c0 + n) / 2` and `(c0 - n) / 2` is the square of the root's
    /// real part. Their product is the square of `c1 / 2` times that of u, so it is not a square, for any p modulo 4.
    fn sqrt_by_norm(a: &Fp2<Self>, norm_root: &Self) -> Option<Fp2<Self>> {
        let half = (a.c0 + *norm_root).halved();
        if const { Self::TWO_ADICITY == 1 && M::NON_RESIDUE == 1 } {
            return Some(root_by_half(&a.c1, &half, &half.power(const { &Self::ROOT_INVERSE })));
        }
        let c0 = match half.sqrt() {
            Some(root) => root,
            None => (half - *norm_root).sqrt()?,
        };
        Some(Fp2 { c0, c1: a.c1 * c0.double().inverse()? })
    }

    fn product_6(a: &Fp6<Self>, b: &Fp6<Self>) -> Fp6<Self> {
        lazy::product_6(a, b)
    }

    fn product_12(a: &Fp12<Self>, b: &Fp12<Self>) -> Fp12<Self> {
        lazy::product_12(a, b)
    }

    fn line_product(a: &Fp12<Self>, b0: &Fp2<Self>, b1: &Fp2<Self>, b4: &Fp2<Self>) -> Fp12<Self> {
        match M::TWIST {
            Twist::M => lazy::product_014(a, b0, b1, b4),
            Twist::D => sums::product_034(a, b0, b1, b4),
        }
    }

    #[inline(always)]
    fn square_4(a: &Fp2<Self>, b: &Fp2<Self>) -> [Fp2<Self>; 2] {
        if const { uses_sums::<M, N>() } { sums::square_4(a, b) } else { lazy::square_4(a, b) }
    }
}

/// The root of an element of Fp2 from its imaginary part c1, `t = (c0 + n) / 2` for a root n of its norm, and
/// `r = t^((p-3)/4)`, for p = 3 modulo 4 and `u^2 = -1`. Either `(t r)^2 = t`, and the root is `(t r, c1 r / 2)`, or
/// `(t r)^2 = -t`, and it is `(c1 r / 2, -t r)`. An arbitrary value if there is no root.
pub(crate) fn root_by_half<F: TowerField>(c1: &F, t: &F, r: &F) -> Fp2<F> {
    let (real, other) = (*t * *r, (*c1 * *r).halved());
    if real.square() == *t { Fp2 { c0: real, c1: other } } else { Fp2 { c0: other, c1: -real } }
}

/// An element of Fp2 at compile time.
type Pair<M, const N: usize> = [Fe<M, N>; 2];

const fn const_product<M: TowerModulus<N>, const N: usize>(
    a: Pair<M, N>,
    b: Pair<M, N>,
) -> Pair<M, N> {
    let [a0, a1] = a;
    let [b0, b1] = b;
    let wrapped = const_times_non_residue(a1.multiply(&b1));
    [a0.multiply(&b0).minus(&wrapped), a0.multiply(&b1).plus(&a1.multiply(&b0))]
}

const fn const_times_non_residue<M: TowerModulus<N>, const N: usize>(x: Fe<M, N>) -> Fe<M, N> {
    let (mut sum, mut i) = (x, 1);
    while i < M::NON_RESIDUE {
        sum = sum.plus(&x);
        i += 1;
    }
    sum
}

const fn const_power<M: TowerModulus<N>, const N: usize>(
    base: Pair<M, N>,
    exponent: &[u64],
) -> Pair<M, N> {
    let mut power = [Fe::ONE, Fe::ZERO];
    let mut index = limbs::bits(exponent);
    while index > 0 {
        index -= 1;
        power = const_product(power, power);
        if limbs::bit(exponent, index) {
            power = const_product(power, base);
        }
    }
    power
}

/// By Fermat's theorem for the norm.
const fn const_inverse<M: TowerModulus<N>, const N: usize>([a0, a1]: Pair<M, N>) -> Pair<M, N> {
    let norm = a0.multiply(&a0).plus(&const_times_non_residue(a1.multiply(&a1)));
    let inverse = norm.const_power(&limbs::minus_small(&M::MODULUS, 2));
    [a0.multiply(&inverse), a1.negated().multiply(&inverse)]
}

/// The powers 0 to 5.
const fn powers<M: TowerModulus<N>, const N: usize>(base: Pair<M, N>) -> [Fp2<Fe<M, N>>; 6] {
    let one = [Fe::ONE, Fe::ZERO];
    let (mut powers, mut power, mut k) = ([Fp2 { c0: Fe::ONE, c1: Fe::ZERO }; 6], one, 0);
    while k < 6 {
        let [c0, c1] = power;
        powers[k] = Fp2 { c0, c1 };
        power = const_product(power, base);
        k += 1;
    }
    powers
}

/// Implements operators by value through methods by reference.
macro_rules! operators {
    ($type:ident) => {
        impl<F: TowerField> core::ops::Add for $type<F> {
            type Output = Self;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.zip(&other, |a, b| a + b)
            }
        }
        impl<F: TowerField> core::ops::Sub for $type<F> {
            type Output = Self;
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.zip(&other, |a, b| a - b)
            }
        }
        impl<F: TowerField> core::ops::Mul for $type<F> {
            type Output = Self;
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.product(&other)
            }
        }
        impl<F: TowerField> core::ops::Neg for $type<F> {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                self.map(|a| -a)
            }
        }
    };
}
use operators;
