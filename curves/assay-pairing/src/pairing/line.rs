//! Steps of Miller's algorithm in homogeneous projective coordinates (Costello, Lange, Naehrig 2010;
//! Aranha, Barreto, Longa, Ricardini 2013), for one pair of points or for many in lanes.

use crate::tower::{Fp2, Fp12, TowerField, TowerRing, Twist};

/// A line through one point or two: coefficients of 1, x and y.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<F> {
    constant: Fp2<F>,
    of_x: Fp2<F>,
    of_y: Fp2<F>,
}

impl<F: TowerRing> Line<F> {
    /// The line at the point (x, y) of the first group: three coefficients in Fp12, see [`places`].
    #[inline(always)]
    pub(super) fn at(&self, x: F, y: F) -> [Fp2<F>; 3] {
        [self.constant, self.of_x.scale(x), self.of_y.scale(y)]
    }
}

/// The powers of w of the coefficients returned by [`Line::at`].
pub(super) const fn places(twist: Twist) -> [usize; 3] {
    match twist {
        Twist::M => [0, 2, 3],
        Twist::D => [3, 1, 0],
    }
}

/// `f` times a line.
pub(super) fn times<F: TowerField>(f: &Fp12<F>, [a, b, c]: [Fp2<F>; 3]) -> Fp12<F> {
    match F::TWIST {
        Twist::M => f.line_product(&a, &b, &c),
        Twist::D => f.line_product(&c, &b, &a),
    }
}

/// A multiple of a point of the second group as (X : Y : Z), x = X / Z.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accumulator<F> {
    x: Fp2<F>,
    y: Fp2<F>,
    z: Fp2<F>,
}

impl<F: TowerRing> Accumulator<F> {
    #[inline(always)]
    pub(super) fn new(x: Fp2<F>, y: Fp2<F>) -> Self {
        Self { x, y, z: Fp2 { c0: F::one(), c1: F::zero() } }
    }

    /// X, Y and Z.
    #[inline(always)]
    pub(super) fn coordinates(&self) -> [Fp2<F>; 3] {
        [self.x, self.y, self.z]
    }

    /// Doubles, and returns the tangent.
    #[inline(always)]
    pub(super) fn double(&mut self) -> Line<F> {
        let a = (self.x * self.y).halved();
        let b = self.y.square();
        let c = self.z.square();
        let e = F::times_triple_b(c);
        let f = e.tripled();
        let g = (b + f).halved();
        let h = (self.y + self.z).square() - (b + c);
        let j = self.x.square();
        let e2 = e.square();
        *self = Self { x: a * (b - f), y: g.square() - e2.tripled(), z: b * h };
        Line { constant: e - b, of_x: j.tripled(), of_y: -h }
    }

    /// Adds the point (x, y), which must differ from this one and its negation, and returns the line through both.
    #[inline(always)]
    pub(super) fn add(&mut self, x: Fp2<F>, y: Fp2<F>) -> Line<F> {
        let theta = self.y - y * self.z;
        let lambda = self.x - x * self.z;
        let c = theta.square();
        let d = lambda.square();
        let e = lambda * d;
        let f = self.z * c;
        let g = self.x * d;
        let h = e + f - g.double();
        *self = Self { x: lambda * h, y: theta * (g - h) - e * self.y, z: self.z * e };
        Line { constant: theta * x - lambda * y, of_x: -theta, of_y: lambda }
    }
}
